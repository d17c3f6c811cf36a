//! Drawn documents, in an inverted index by their features.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Mutex, PoisonError};

use crate::arch::{Arch, Cpu, Kernel};
use crate::hash::mix;
use crate::plan::{Measure, Plan};
use crate::text::{Analysis, State};
use crate::types::{Similarity, Threshold};
use crate::verify::intersection;

/// Documents that all others are compared with.
///
/// A document with a Jaccard index of at least t with a drawn one lacks at most l = n − ⌈t·n⌉ of its
/// n features, and so has at least k of any l + k of them. Those that are rarest in the sample are
/// indexed, for a k of a fifth of n. Of drawn documents with many features only those in a part of
/// all hashes are looked at, some 64 to 128 of them, and l is then what a document at t lacks of
/// these with a probability of at most 10⁻⁹ (Chernoff's bound for samples without replacement,
/// Chvátal 1979). What a document costs is thus a look-up in a small bitmap for every feature, and
/// for few of them a look-up in a hash table; it is compared feature by feature, with all of them,
/// only with drawn documents of which it has as many indexed features as it needs.
///
/// Drawn documents of equal texts are one. Of each, up to [`PARTNERS`] similar documents are
/// remembered: those with the smallest numbers, which are a sample that does not depend on the order
/// in which documents come.
#[derive(Debug)]
pub struct Sample {
    cpu: Cpu,
    measure: Of,
    floor: Threshold,
    texts: Vec<Text>,
    /// The texts of the drawn documents, by their keys.
    by_key: HashMap<u128, u32>,
    by_row: BTreeMap<u64, u32>,
    index: Index,
    /// Texts of which no document is drawn any more.
    dead: usize,
}

/// At these numbers of texts, powers of two, the index is built anew.
const EARLY: std::ops::RangeInclusive<usize> = 16..=256;

/// The similar documents that are remembered of a drawn one.
pub const PARTNERS: usize = 64;

/// A measure on sets of features.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    Jaccard,
    Containment,
}

/// A document as a sample wants it, made before it is known whether it is drawn.
#[derive(Clone, Debug)]
pub struct Drawn {
    key: u128,
    features: Box<[u64]>,
    length: u32,
}

impl Drawn {
    /// What an analysis says of a document.
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
    /// So many of the features that are indexed a similar document has at the least.
    least: u32,
    /// The first row with the text that was drawn: only later ones are its partners.
    first: u64,
    /// How many drawn rows have the text.
    rows: usize,
    partners: Mutex<Partners>,
}

/// Similar documents by their numbers: the number, the row, the similarity.
#[derive(Debug, Default)]
struct Partners {
    smallest: BTreeMap<u64, (u64, Similarity)>,
}

/// A document that is similar to a drawn one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Partner {
    /// Its row.
    pub row: u64,
    /// How similar they are.
    pub similarity: Similarity,
}

/// What comparing needs from document to document: one for each thread.
#[derive(Clone, Debug, Default)]
pub struct Counter {
    /// The document that is compared, among those of the thread.
    document: u32,
    /// The last document that had a feature of the index, by the feature's place there.
    seen: Vec<u32>,
    hits: Vec<u32>,
    met: Vec<u32>,
    features: Vec<u64>,
}

impl Sample {
    /// An empty sample that sees similarities from `floor` on, by the measure of a plan; `None` if
    /// that is not one of sets of features.
    pub fn new(plan: &Plan, floor: Threshold) -> Option<Self> {
        let measure = match plan.settings().measure {
            Measure::Jaccard | Measure::Sketch => Of::Jaccard,
            Measure::Containment if plan.finds_by_features() => Of::Containment,
            _ => return None,
        };
        // A containment is looked for from a lower Jaccard index on.
        let lowered = floor.get().min(plan.candidate_threshold().get());
        let floor = match measure {
            Of::Jaccard => floor,
            Of::Containment => Threshold::new(lowered).ok()?,
        };
        Some(Self {
            cpu: Cpu::best(),
            measure,
            floor,
            texts: Vec::new(),
            by_key: HashMap::new(),
            by_row: BTreeMap::new(),
            index: Index::new(),
            dead: 0,
        })
    }

    /// How many documents are drawn.
    pub fn len(&self) -> usize {
        self.by_row.len()
    }

    /// Whether none is drawn.
    pub fn is_empty(&self) -> bool {
        self.by_row.is_empty()
    }

    /// The drawn rows, ascending.
    pub fn rows(&self) -> impl Iterator<Item = u64> {
        self.by_row.keys().copied()
    }

    /// Bytes that the sample takes, about.
    pub fn bytes(&self) -> usize {
        let of_text = |text: &Text| 8 * text.drawn.features.len() + size_of::<Text>();
        let texts: usize = self.texts.iter().map(of_text).sum();
        texts + self.index.bytes() + 64 * self.by_row.len()
    }

    /// Adds a document, whose row must be behind all that were added before. Documents without
    /// features are similar to nothing but equal ones: they are drawn and have no partners.
    pub fn add(&mut self, row: u64, drawn: Drawn) {
        if let Some(&at) = self.by_key.get(&drawn.key) {
            self.texts[at as usize].rows += 1;
            self.by_row.insert(row, at);
            return;
        }
        let at = self.texts.len() as u32;
        self.index.note(&drawn.features);
        let least = self.index.insert(at, &drawn.features, self.floor);
        self.by_key.insert(drawn.key, at);
        self.by_row.insert(row, at);
        self.texts.push(Text {
            drawn,
            least,
            first: row,
            rows: 1,
            partners: Mutex::default(),
        });
        // The first texts could not know what is rare.
        if self.texts.len().is_power_of_two() && EARLY.contains(&self.texts.len()) {
            self.compact();
        }
    }

    /// Takes a row out again.
    pub fn remove(&mut self, row: u64) {
        let Some(at) = self.by_row.remove(&row) else {
            return;
        };
        let text = &mut self.texts[at as usize];
        text.rows -= 1;
        if text.rows == 0 {
            self.by_key.remove(&text.drawn.key);
            text.drawn.features = Box::default();
            text.least = u32::MAX;
            self.dead += 1;
            if 2 * self.dead > self.texts.len() {
                self.compact();
            }
        }
    }

    /// Builds the index again without what was taken out, and by what is rare now.
    fn compact(&mut self) {
        let mut moved = vec![0; self.texts.len()];
        let mut index = self.index.emptied();
        let texts = std::mem::take(&mut self.texts);
        for (from, mut text) in texts.into_iter().enumerate() {
            if text.rows == 0 {
                continue;
            }
            let at = self.texts.len() as u32;
            text.least = index.insert(at, &text.drawn.features, self.floor);
            moved[from] = at;
            self.texts.push(text);
        }
        let places = self.by_key.values_mut().chain(self.by_row.values_mut());
        places.for_each(|at| *at = moved[*at as usize]);
        self.index = index;
        self.dead = 0;
    }

    /// Compares a document with all drawn ones before it.
    pub fn compare(&self, row: u64, analysis: &Analysis<'_>, counter: &mut Counter) {
        if analysis.state != State::Rich {
            return;
        }
        counter.begin(self.texts.len(), self.index.firsts.len());
        self.cpu.run(Count {
            index: &self.index,
            analysis,
            counter,
        });
        let Counter {
            hits,
            met,
            features,
            ..
        } = counter;
        features.clear();
        let number = mix(row ^ PARTNER_DOMAIN);
        for at in met.drain(..) {
            let text = &self.texts[at as usize];
            if std::mem::take(&mut hits[at as usize]) < text.least {
                continue;
            }
            let is_other = text.first < row && text.drawn.key != analysis.key;
            // A document has no more features than it has with their repetitions.
            let few = analysis.feature_count() < text.drawn.features.len()
                && !self
                    .floor
                    .admits(analysis.feature_count(), text.drawn.features.len());
            if !is_other || few || !text.wants(number) {
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

    /// The similar documents that are remembered of a drawn row, all behind it.
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
    /// The length of a drawn document in tokens; 0 if the row is not drawn.
    pub fn length(&self, row: u64) -> usize {
        let at = self.by_row.get(&row);
        at.map_or(0, |&at| self.texts[at as usize].drawn.length as usize)
    }
}

const PARTNER_DOMAIN: u64 = 0x2545_f491_4f6c_dd1d;

impl Text {
    fn partners(&self) -> std::sync::MutexGuard<'_, Partners> {
        // An insertion is the last step, so the list is whole whatever happened elsewhere.
        self.partners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a document of this number would be remembered.
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

/// Which drawn texts have a feature.
#[derive(Debug, Default)]
struct Index {
    /// A bit for every feature that may be there: 8 to 32 bits a feature.
    bits: Vec<u64>,
    /// The places of features in `firsts`.
    places: HashMap<u64, u32, BuildHasherDefault<Itself>>,
    /// Where the list of every feature begins in `links`.
    firsts: Vec<u32>,
    /// A text and the next place of its list.
    links: Vec<(u32, u32)>,
    /// In how many drawn texts features occur, whether indexed or not, up to 255; features that share
    /// a counter count as more frequent than they are, which costs time alone.
    counts: Vec<u8>,
}

/// Of a document with twice as many features or more, so many to twice as many are looked at.
const LOOKED_AT: usize = 64;

/// At a lower floor a document may lack all of a part too easily.
const LEAST_OF_PARTS: f64 = 0.3;

/// The part of all hashes in which a document of so many features is looked at: one in 2 to the power
/// of this.
fn part_of(features: usize, floor: Threshold) -> u32 {
    if floor.get() < LEAST_OF_PARTS {
        return 0;
    }
    (features / LOOKED_AT).max(1).ilog2().min(PARTS)
}

const PARTS: u32 = 10;

/// Bits of a hash that serve for nothing else here.
fn is_in(feature: u64, part: u32) -> bool {
    (feature >> 46) & ((1 << part) - 1) == 0
}

/// The natural logarithm of the probability with which a similar document may be overlooked.
const OVERLOOKED: f64 = -20.7;

/// Of `count` features that were chosen by their hashes, the most that a document lacks whose Jaccard
/// index is at the floor; all but one if no number is improbable enough.
fn most_lacking(count: usize, floor: Threshold) -> usize {
    let expected = 1.0 - floor.get();
    let improbable = |lacking: usize| {
        let share = (lacking + 1) as f64 / count as f64;
        if share >= 1.0 {
            return true;
        }
        if share <= expected {
            return false;
        }
        let had = 1.0 - share;
        let apart = share * (share / expected).ln() + had * (had / floor.get()).ln();
        -apart * count as f64 <= OVERLOOKED
    };
    let most = count.saturating_sub(1);
    (0..most)
        .find(|&lacking| improbable(lacking))
        .unwrap_or(most)
}

/// Counters of features: more than there are features in thousands of texts.
const COUNTERS: usize = 1 << 22;

fn counter_of(feature: u64) -> usize {
    (feature >> 24) as usize & (COUNTERS - 1)
}

const END: u32 = u32::MAX;

impl Index {
    fn bytes(&self) -> usize {
        8 * self.bits.len() + 18 * self.places.capacity() + 8 * self.links.capacity() + COUNTERS
    }

    fn new() -> Self {
        Self {
            counts: vec![0; COUNTERS],
            ..Self::default()
        }
    }

    /// An empty index that knows how often features occur.
    fn emptied(&mut self) -> Self {
        Self {
            counts: std::mem::take(&mut self.counts),
            ..Self::default()
        }
    }

    fn note(&mut self, features: &[u64]) {
        for &feature in features {
            let count = &mut self.counts[counter_of(feature)];
            *count = count.saturating_add(1);
        }
    }

    /// Indexes the features of a text that are rarest here; returns how many of them a document with
    /// a Jaccard index at the floor has.
    fn insert(&mut self, text: u32, features: &[u64], floor: Threshold) -> u32 {
        if features.is_empty() {
            return u32::MAX;
        }
        let part = part_of(features.len(), floor);
        let looked_at = |part| {
            let counted = |&feature: &u64| (self.counts[counter_of(feature)], feature);
            let inside = features.iter().filter(|&&feature| is_in(feature, part));
            inside.map(counted).collect::<Vec<(u8, u64)>>()
        };
        let some = looked_at(part);
        let (mut order, lacking) = if part > 0 && some.len() >= LOOKED_AT / 2 {
            let lacking = most_lacking(some.len(), floor);
            (some, lacking)
        } else {
            let needed = floor.least_part(features.len()).max(1);
            (looked_at(0), features.len() - needed)
        };
        let least = order.len().div_ceil(5).min(order.len() - lacking);
        let prefix = lacking + least;
        order.select_nth_unstable(prefix - 1);
        for &(_, feature) in &order[..prefix] {
            self.link(feature, text);
        }
        least as u32
    }

    fn link(&mut self, feature: u64, text: u32) {
        let at = self.links.len() as u32;
        let next = self.firsts.len() as u32;
        let place = *self.places.entry(feature).or_insert(next);
        if place == next {
            self.firsts.push(END);
        }
        let first = &mut self.firsts[place as usize];
        self.links.push((text, std::mem::replace(first, at)));
        if self.firsts.len() > 8 * self.bits.len() {
            self.grow();
        } else {
            let (word, bit) = self.place(feature);
            self.bits[word] |= bit;
        }
    }

    fn grow(&mut self) {
        let words = (self.firsts.len() / 4).next_power_of_two().max(1024);
        self.bits = vec![0; words];
        let features: Vec<u64> = self.places.keys().copied().collect();
        for feature in features {
            let (word, bit) = self.place(feature);
            self.bits[word] |= bit;
        }
    }

    fn place(&self, feature: u64) -> (usize, u64) {
        let word = (feature >> 6) as usize & (self.bits.len() - 1);
        (word, 1 << (feature & 63))
    }

    /// Counts the features of a document for every text that has them, each once.
    #[inline(always)]
    fn count(&self, features: &[u64], counter: &mut Counter) {
        if self.bits.is_empty() {
            return;
        }
        for &feature in features {
            let (word, bit) = self.place(feature);
            if self.bits[word] & bit != 0 {
                self.count_one(feature, counter);
            }
        }
    }

    #[inline(never)]
    fn count_one(&self, feature: u64, counter: &mut Counter) {
        let Some(&place) = self.places.get(&feature) else {
            return;
        };
        let seen = &mut counter.seen[place as usize];
        if std::mem::replace(seen, counter.document) == counter.document {
            return;
        }
        let mut at = self.firsts[place as usize];
        while at != END {
            let (text, next) = self.links[at as usize];
            let hits = &mut counter.hits[text as usize];
            if *hits == 0 {
                counter.met.push(text);
            }
            *hits += 1;
            at = next;
        }
    }
}

/// Makes the features of a document and counts those that are indexed.
struct Count<'a, 'd> {
    index: &'a Index,
    analysis: &'a Analysis<'d>,
    counter: &'a mut Counter,
}

impl Kernel for Count<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arch>(self, _: A) {
        let Self {
            index,
            analysis,
            counter,
        } = self;
        analysis.chunks(|chunk| index.count(chunk, counter));
    }
}

impl Counter {
    /// Begins with another document.
    fn begin(&mut self, texts: usize, features: usize) {
        self.hits.resize(texts.max(self.hits.len()), 0);
        self.seen.resize(features.max(self.seen.len()), 0);
        self.document = self.document.wrapping_add(1);
        if self.document == 0 {
            self.seen.fill(0);
            self.document = 1;
        }
    }
}

/// Features are hashes already.
#[derive(Clone, Copy, Debug, Default)]
struct Itself(u64);

impl Hasher for Itself {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = mix(self.0 ^ u64::from(byte));
        }
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }
}
