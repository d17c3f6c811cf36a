//! The sample of drawn documents, in an inverted index by their features.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

use super::index::{Binned, Hits, Index, Looked, Looks};
use crate::arch::{Arch, Cpu, Kernel};
use crate::hash::mix;
use crate::plan::{Measure, Plan};
use crate::text::{Analysis, State};
use crate::types::{Similarity, Threshold};
use crate::verify::intersection;

/// Drawn documents with which all later ones are compared.
///
/// A document with a Jaccard index of at least t with a drawn one lacks at most l = n − ⌈t·n⌉ of the n
/// features of the drawn one. So it has at least k of any l + k of them. The l + k features that are
/// rarest in the sample are indexed, where k is a twelfth of n. A long drawn document, of some hundreds
/// of features, is indexed by the smallest hashes in its bins instead. Of these, a document at t lacks
/// no more than Chernoff's bound, with a probability of 1 − 10⁻⁶.
///
/// So a document costs one step for each of its features, and one look-up for each bin. It is compared
/// feature by feature only with drawn documents of which it has enough index keys and, if they are
/// long, enough of the bytes of 256 bins.
///
/// Drawn documents with equal texts are one. For each, up to [`PARTNERS`] similar documents are stored:
/// those with the smallest hash numbers, which are a sample that does not depend on the order in which
/// documents come.
#[derive(Debug)]
pub struct Sample {
    measure: Of,
    floor: Threshold,
    looks: Looks,
    texts: Vec<Text>,
    /// Texts of the drawn documents, by their keys.
    by_key: HashMap<u128, u32>,
    by_row: BTreeMap<u64, u32>,
    index: Index,
    /// Number of texts of which no document is drawn any more.
    dead: usize,
}

/// Numbers of texts at which the index is rebuilt, if they are powers of two.
const EARLY: std::ops::RangeInclusive<usize> = 16..=256;

/// Largest number of similar documents stored for a drawn one.
pub const PARTNERS: usize = 16;

/// A measure on sets of features.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    Jaccard,
    Containment,
}

/// A document in the form in which a sample stores it, made before it is known whether it is drawn.
#[derive(Clone, Debug)]
pub struct Drawn {
    key: u128,
    features: Box<[u64]>,
    length: u32,
}

impl Drawn {
    /// Takes what a sample needs from the analysis of a document.
    pub fn new(analysis: &Analysis<'_>) -> Self {
        let mut features = Vec::new();
        if analysis.state == State::Rich {
            analysis.features(&mut features);
        }
        Self {
            key: analysis.key,
            features: features.into(),
            length: u32::try_from(analysis.tokens().len()).unwrap_or(u32::MAX),
        }
    }
}

/// A drawn text.
#[derive(Debug)]
struct Text {
    drawn: Drawn,
    /// Tags of the bins, for a long text.
    binned: Option<Binned>,
    /// First drawn row with the text. Only later rows are its partners.
    first: u64,
    /// Number of drawn rows with the text.
    rows: usize,
    partners: Mutex<Partners>,
}

/// Similar documents by hash number, each with its row and similarity.
#[derive(Debug, Default)]
struct Partners {
    smallest: BTreeMap<u64, (u64, Similarity)>,
}

/// A document that is similar to a drawn one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Partner {
    /// Row of the document.
    pub row: u64,
    /// Similarity of the two documents.
    pub similarity: Similarity,
}

/// Buffers for the comparison of documents, one for each thread.
#[derive(Clone, Debug)]
pub struct Counter {
    cpu: Cpu,
    looks: Looks,
    hits: Hits,
    looked: Looked,
    features: Vec<u64>,
}

impl Counter {
    /// Starts with a document. All its features must be [seen](Self::see) before it is
    /// [compared](Sample::compare_seen), so they can come from a caller that makes them anyway.
    pub fn begin(&mut self, analysis: &Analysis<'_>) {
        self.looked.begin(self.looks, analysis.feature_count());
    }

    /// Adds features of the current document. All must be added, in any order and in any batches;
    /// repetitions do no harm.
    pub fn see(&mut self, features: &[u64]) {
        self.looked.take(features);
    }

    fn see_all(&mut self, analysis: &Analysis<'_>) {
        struct All<'a, 'd>(&'a mut Counter, &'a Analysis<'d>);

        impl Kernel for All<'_, '_> {
            type Output = ();

            #[inline(always)]
            fn run<A: Arch>(self, _: A) {
                self.1.chunks(|features| self.0.looked.take(features));
            }
        }

        self.cpu.run(All(self, analysis));
    }
}

impl Sample {
    /// Returns an empty sample that detects similarities from `floor` up, by the measure of a plan.
    /// Returns `None` if the measure does not compare sets of features.
    pub fn new(plan: &Plan, floor: Threshold) -> Option<Self> {
        let measure = match plan.settings().measure {
            Measure::Jaccard | Measure::Sketch => Of::Jaccard,
            Measure::Containment if plan.finds_by_features() => Of::Containment,
            _ => return None,
        };
        // Containment is searched for down to a lower Jaccard index.
        let lowered = floor.get().min(plan.candidate_threshold().get());
        let floor = match measure {
            Of::Jaccard => floor,
            Of::Containment => Threshold::new(lowered).ok()?,
        };
        Some(Self {
            measure,
            floor,
            texts: Vec::new(),
            by_key: HashMap::new(),
            by_row: BTreeMap::new(),
            looks: Looks::new(floor),
            index: Index::new(Looks::new(floor)),
            dead: 0,
        })
    }

    /// Returns the number of drawn documents.
    pub fn len(&self) -> usize {
        self.by_row.len()
    }

    /// Returns `true` if no document is drawn.
    pub fn is_empty(&self) -> bool {
        self.by_row.is_empty()
    }

    /// Returns the drawn rows, ascending.
    pub fn rows(&self) -> impl Iterator<Item = u64> {
        self.by_row.keys().copied()
    }

    /// Returns the approximate number of bytes that the sample takes.
    pub fn bytes(&self) -> usize {
        let of_text = |text: &Text| 8 * text.drawn.features.len() + size_of::<Text>();
        let texts: usize = self.texts.iter().map(of_text).sum();
        texts + self.index.bytes() + 64 * self.by_row.len()
    }

    /// Adds a document. Its row must be after all rows added before. A document without features can be
    /// drawn, but it has no partners, because only equal texts are similar to it.
    pub fn add(&mut self, row: u64, drawn: Drawn) {
        if let Some(&at) = self.by_key.get(&drawn.key) {
            self.texts[at as usize].rows += 1;
            self.by_row.insert(row, at);
            return;
        }
        let at = self.texts.len() as u32;
        self.index.note(&drawn.features);
        let binned = self.index.insert(&drawn.features);
        self.by_key.insert(drawn.key, at);
        self.by_row.insert(row, at);
        self.texts.push(Text {
            drawn,
            binned,
            first: row,
            rows: 1,
            partners: Mutex::default(),
        });
        // Rebuilt early, because the first texts were indexed before it was known which features are
        // rare.
        if self.texts.len().is_power_of_two() && EARLY.contains(&self.texts.len()) {
            self.compact();
        }
    }

    /// Removes a row.
    pub fn remove(&mut self, row: u64) {
        let Some(at) = self.by_row.remove(&row) else {
            return;
        };
        let text = &mut self.texts[at as usize];
        text.rows -= 1;
        if text.rows == 0 {
            self.by_key.remove(&text.drawn.key);
            text.drawn.features = Box::default();
            text.binned = None;
            self.index.forget(at);
            self.dead += 1;
            if 2 * self.dead > self.texts.len() {
                self.compact();
            }
        }
    }

    /// Rebuilds the index without removed texts, and with the features that are rare now.
    fn compact(&mut self) {
        let mut moved = vec![0; self.texts.len()];
        let mut index = self.index.emptied();
        let texts = std::mem::take(&mut self.texts);
        for (from, mut text) in texts.into_iter().enumerate() {
            if text.rows == 0 {
                continue;
            }
            let at = self.texts.len() as u32;
            text.binned = index.insert(&text.drawn.features);
            moved[from] = at;
            self.texts.push(text);
        }
        let places = self.by_key.values_mut().chain(self.by_row.values_mut());
        places.for_each(|at| *at = moved[*at as usize]);
        self.index = index;
        self.dead = 0;
    }

    /// Returns the buffers that a thread needs for comparisons. They remain valid when documents are
    /// added.
    pub fn counter(&self) -> Counter {
        Counter {
            cpu: Cpu::best(),
            looks: self.looks,
            hits: Hits::default(),
            looked: Looked::default(),
            features: Vec::new(),
        }
    }

    /// Compares a document with all drawn ones before it.
    pub fn compare(&self, row: u64, analysis: &Analysis<'_>, counter: &mut Counter) {
        counter.begin(analysis);
        counter.see_all(analysis);
        self.compare_seen(row, analysis, counter);
    }

    /// Compares a document, whose features were seen, with all drawn ones before it. Documents may have
    /// been drawn since [`Counter::begin`].
    pub fn compare_seen(&self, row: u64, analysis: &Analysis<'_>, counter: &mut Counter) {
        struct Comparing<'a, 'd>(&'a Sample, u64, &'a Analysis<'d>, &'a mut Counter);

        impl Kernel for Comparing<'_, '_> {
            type Output = ();

            #[inline(always)]
            fn run<A: Arch>(self, _: A) {
                self.0.compare_rich(self.1, self.2, self.3);
            }
        }

        if analysis.state == State::Rich {
            counter.cpu.run(Comparing(self, row, analysis, counter));
        }
    }

    #[inline(always)]
    fn compare_rich(&self, row: u64, analysis: &Analysis<'_>, counter: &mut Counter) {
        let Counter {
            hits,
            looked,
            features,
            ..
        } = counter;
        hits.begin(self.texts.len());
        let all = |into: &mut Vec<u64>| analysis.features(into);
        let few = looked.features(self.looks, analysis.feature_count(), all);
        self.index.count(few, hits);
        self.index.count(looked.keys(self.looks), hits);
        features.clear();
        let number = mix(row ^ PARTNER_DOMAIN);
        for at in hits.met.drain(..) {
            let count = std::mem::take(&mut hits.of[at as usize]);
            if !self.index.are_enough(count, at) {
                continue;
            }
            let text = &self.texts[at as usize];
            let is_other = text.first < row && text.drawn.key != analysis.key;
            if !is_other || !text.wants(number) {
                continue;
            }
            if let Some(binned) = &text.binned
                && !binned.may_be_similar(looked)
            {
                continue;
            }
            if features.is_empty() {
                analysis.features(features);
            }
            if let Some(similarity) = self.similarity(&text.drawn.features, features) {
                text.take(number, Partner { row, similarity });
            }
        }
    }

    fn similarity(&self, a: &[u64], b: &[u64]) -> Option<Similarity> {
        if !self
            .floor
            .admits(a.len().min(b.len()), a.len().max(b.len()))
        {
            return None;
        }
        let shared = intersection(a, b);
        let union = a.len() + b.len() - shared;
        let near = self.floor.admits(shared, union);
        near.then(|| match self.measure {
            Of::Jaccard => Similarity::ratio(shared, union),
            Of::Containment => Similarity::ratio(shared, a.len().min(b.len())),
        })
    }

    /// Returns the stored similar documents of a drawn row. All are later rows.
    pub fn partners(&self, row: u64) -> Vec<Partner> {
        let Some(&at) = self.by_row.get(&row) else {
            return Vec::new();
        };
        let partners = self.texts[at as usize].partners();
        let all = partners.smallest.values();
        all.map(|&(row, similarity)| Partner { row, similarity })
            .filter(|partner| partner.row > row)
            .collect()
    }
}

impl Sample {
    /// Returns the length of a drawn document in tokens, or 0 if the row is not drawn.
    pub fn length(&self, row: u64) -> usize {
        let at = self.by_row.get(&row);
        at.map_or(0, |&at| self.texts[at as usize].drawn.length as usize)
    }
}

const PARTNER_DOMAIN: u64 = 0x2545_f491_4f6c_dd1d;

impl Text {
    fn partners(&self) -> std::sync::MutexGuard<'_, Partners> {
        // The list is whole whatever happened elsewhere, because the insertion is the last step.
        self.partners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns `true` if a document of this hash number would be stored.
    fn wants(&self, number: u64) -> bool {
        let partners = self.partners();
        let full = partners.smallest.len() == PARTNERS;
        !full
            || partners
                .smallest
                .last_key_value()
                .is_some_and(|(&last, _)| number < last)
    }

    fn take(&self, number: u64, partner: Partner) {
        let mut partners = self.partners();
        let entry = (partner.row, partner.similarity);
        partners.smallest.insert(number, entry);
        if partners.smallest.len() > PARTNERS {
            partners.smallest.pop_last();
        }
    }
}
