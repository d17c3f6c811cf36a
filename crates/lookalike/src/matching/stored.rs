//! Comparison with documents of an index on disk, by records that serve every threshold and measure.
//!
//! For each document, an index stores a record: the key of its text, and its features with their
//! weights. Documents with more than [`SHORT`] features also have a MinHash signature. The sketches of
//! *any* plan of [`Method::Auto`](crate::plan::Method::Auto) follow from these, so one index answers
//! every threshold and measure. A [`DocumentComparer`] decides on a pair by the same predicate as a
//! batch.
//!
//! Candidates are found by bucket keys. A record yields the key of its text and, up to [`MOST_INDEXED`]
//! features, one key for each feature. A signature yields the keys of the plan's bands.
//!
//! Guarantee: every match of the plan is found. Of two sets with a Jaccard index of at least t, at
//! least ⌈t·n⌉ of the n features of one are in the other. So *any* n − ⌈t·n⌉ + 1 features of a query
//! contain a shared one, and the query probes those with the shortest buckets. Prefixes on both sides
//! would need an order of features that index and query agree on; this needs none.
//!
//! ```text
//! key of the text (16) | state (1) | kind (1) | number of features (4) | features (8 each) | weights
//! ```
//!
//! The kind is 0 where every feature has the weight 1, and no weights follow. Otherwise it is 1, and
//! pairs of a feature and its weight follow (8 + 8 each). There may be fewer pairs than features. All
//! numbers are little-endian.

use super::cache::List;
use super::judge::{Compared, Route, Rule, Sketched};
use super::keys::{Prefixes, band_key, feature_key, text_key};
use crate::arch::Cpu;
use crate::error::Result;
use crate::plan::{LEAST_CANDIDATES, Measure, Plan, SHORT};
use crate::recipe::Recipe;
use crate::sketch::MinHasher;
use crate::sketches::{STATES, Sketcher, Sketches};
use crate::text::{Analysis, Extras, State};
use crate::types::{DocId, Similarity};
use crate::verify::Weighted;

/// Largest number of features at which a record yields a bucket key for each feature. The exact join
/// reaches this far at the threshold [`LEAST_CANDIDATES`]; searches whose join reaches further are
/// refused.
pub const MOST_INDEXED: usize = (SHORT as f64 / LEAST_CANDIDATES) as usize + 1;

/// Bytes of a record before its features.
const HEADER: usize = 22;

/// Bytes of one feature or weight in a record.
const NUMBER: usize = 8;

const ALONE: DocId = DocId(0);

/// Makes the records and signatures of documents.
#[derive(Clone, Debug)]
pub struct DocumentRecorder {
    minhash: MinHasher,
}

impl DocumentRecorder {
    /// Returns a recorder for documents of a recipe.
    pub fn new(recipe: &Recipe, cpu: Cpu) -> Self {
        Self {
            minhash: MinHasher::new(&recipe.minhash, cpu),
        }
    }

    /// Returns the number of slots of a signature.
    pub fn slots(&self) -> usize {
        self.minhash.slots()
    }

    /// Appends the record of a document, and its signature if it has more than [`SHORT`] features.
    /// Returns `true` if a signature was appended.
    pub fn record(
        &self,
        analysis: &Analysis<'_>,
        records: &mut Vec<u8>,
        signatures: &mut Vec<u32>,
    ) -> bool {
        let state = analysis.state;
        let (mut features, mut weighted) = (Vec::new(), Vec::new());
        if state == State::Rich {
            analysis.features(&mut features);
            analysis.weighted_features(&mut weighted);
        }
        let plain = features.iter().map(|&feature| (feature, 1));
        let is_weighted = !weighted.iter().copied().eq(plain);
        records.extend(analysis.key.to_le_bytes());
        records.push(STATES.iter().position(|&it| it == state).unwrap_or(0) as u8);
        records.push(is_weighted.into());
        records.extend((features.len() as u32).to_le_bytes());
        records.extend(features.iter().flat_map(|it| it.to_le_bytes()));
        if is_weighted {
            for (feature, weight) in weighted {
                records.extend(feature.to_le_bytes());
                records.extend(weight.to_le_bytes());
            }
        }
        if features.len() <= SHORT {
            return false;
        }
        let start = signatures.len();
        signatures.resize(start + self.slots(), 0);
        self.minhash.sign(analysis, &mut signatures[start..]);
        true
    }
}

/// A parsed record.
struct RecordView<'a> {
    key: u128,
    state: State,
    features: &'a [u8],
    /// Pairs of a feature and its weight; `None` if all weights are 1.
    weights: Option<&'a [u8]>,
}

impl<'a> RecordView<'a> {
    /// Parses a record. Returns `None` if these bytes are not a record.
    fn parse(record: &'a [u8]) -> Option<Self> {
        let (header, numbers) = record.split_at_checked(HEADER)?;
        let key = u128::from_le_bytes(header[..16].try_into().ok()?);
        let state = *STATES.get(usize::from(header[16]))?;
        let count = u32::from_le_bytes(header[18..].try_into().ok()?) as usize;
        let (features, weights) = numbers.split_at_checked(count.checked_mul(NUMBER)?)?;
        let weights = match header[17] {
            0 if weights.is_empty() => None,
            1 if weights.len().is_multiple_of(2 * NUMBER) => Some(weights),
            _ => return None,
        };
        Some(Self {
            key,
            state,
            features,
            weights,
        })
    }

    fn len(&self) -> usize {
        self.features.len() / NUMBER
    }

    fn features(&self) -> impl Iterator<Item = u64> + 'a {
        numbers(self.features)
    }
}

fn numbers(bytes: &[u8]) -> impl Iterator<Item = u64> + '_ {
    let numbers = bytes.chunks_exact(NUMBER);
    numbers.map(|number| u64::from_le_bytes(number.try_into().expect("a chunk of 8 bytes")))
}

/// Calls `visit` with every bucket key of a record. Returns `None` if these bytes are not a record.
pub fn visit_record_keys(record: &[u8], visit: &mut dyn FnMut(u64)) -> Option<()> {
    let view = RecordView::parse(record)?;
    visit(text_key(view.key));
    if view.len() <= MOST_INDEXED {
        view.features().map(feature_key).for_each(visit);
    }
    Some(())
}

/// The sketches, features, weights and sequences of one document under a plan.
#[derive(Clone, Debug, Default)]
pub struct ComparedDocument {
    sketches: Sketches,
    features: Vec<u64>,
    weighted: Vec<Weighted>,
    characters: Vec<u32>,
    words: Vec<u64>,
}

impl ComparedDocument {
    fn sketched(&self) -> Sketched<'_> {
        Sketched {
            sketches: &self.sketches,
            document: ALONE,
        }
    }
}

impl Compared for ComparedDocument {
    fn features(&self) -> Result<List<'_, u64>> {
        Ok(List::Kept(&self.features))
    }

    fn weighted(&self) -> Result<List<'_, Weighted>> {
        Ok(List::Kept(&self.weighted))
    }

    fn characters(&self) -> Result<List<'_, u32>> {
        Ok(List::Kept(&self.characters))
    }

    fn words(&self) -> Result<List<'_, u64>> {
        Ok(List::Kept(&self.words))
    }
}

/// Decides on pairs of documents by the predicate of a plan.
#[derive(Clone, Debug)]
pub struct DocumentComparer {
    plan: Plan,
    sketcher: Sketcher,
}

impl DocumentComparer {
    /// Returns a comparer for documents of a recipe and its plan.
    pub fn new(recipe: &Recipe, plan: &Plan) -> Self {
        Self {
            plan: *plan,
            sketcher: Sketcher::new(recipe, plan, Cpu::best()),
        }
    }

    /// Returns the plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Returns the extras that an analysis needs for [`prepare`](Self::prepare).
    pub fn extras(&self) -> Extras {
        self.sketcher.extras()
    }

    /// Returns `true` if stored documents are compared by their texts, because records hold no
    /// sequences of characters or words.
    pub fn needs_texts(&self) -> bool {
        self.plan.of_sequences().is_some()
    }

    /// Converts the analysis of a text into a document for comparison.
    pub fn prepare(&self, analysis: &Analysis<'_>) -> ComparedDocument {
        let mut sketches = self.sketcher.sketches(0);
        self.sketcher.add(analysis, &mut sketches);
        let mut document = ComparedDocument {
            sketches,
            ..ComparedDocument::default()
        };
        if analysis.state == State::Rich {
            analysis.features(&mut document.features);
        }
        if self.plan.settings().measure == Measure::Cosine {
            analysis.weighted_features(&mut document.weighted);
        }
        if self.needs_texts() {
            document.characters.extend_from_slice(analysis.characters());
            document.words.extend_from_slice(analysis.tokens());
        }
        document
    }

    /// Restores a document from its record, and from its signature if it has one, and overwrites
    /// `into`. Returns `None` if these bytes are not a record.
    pub fn restore(
        &self,
        record: &[u8],
        signature: Option<&[u32]>,
        into: &mut ComparedDocument,
    ) -> Option<()> {
        let view = RecordView::parse(record)?;
        into.features.clear();
        into.features.extend(view.features());
        if self.plan.settings().measure == Measure::Cosine {
            let features = view.features();
            into.weighted.clear();
            match view.weights {
                None => into.weighted.extend(features.map(|feature| (feature, 1))),
                Some(weights) => {
                    let features = numbers(weights).step_by(2);
                    let weights = numbers(weights).skip(1).step_by(2);
                    let weights = weights.map(|weight| weight as i64);
                    into.weighted.extend(features.zip(weights));
                }
            }
        }
        let (key, state) = (view.key, view.state);
        self.sketcher
            .restore((key, state), &into.features, signature, &mut into.sketches);
        Some(())
    }

    /// Returns the bucket key of documents with the same text.
    pub fn text_key(&self, document: &ComparedDocument) -> u64 {
        text_key(document.sketched().key())
    }

    /// Appends the bucket keys of all features of a document that takes part in the exact join. Returns
    /// how many of them must be probed, where any of them serve; 0 if the document does not take part.
    pub fn feature_keys(&self, document: &ComparedDocument, into: &mut Vec<u64>) -> usize {
        let features = &document.features;
        let reach = self.plan.join().map_or(0, |join| join.reach);
        if features.is_empty() || features.len() > reach {
            return 0;
        }
        into.extend(features.iter().map(|&feature| feature_key(feature)));
        Prefixes::of(features.len(), self.plan.candidate_threshold()).probing
    }

    /// Calls `visit` with the bucket keys of the bands of a document that has a signature.
    pub fn band_keys(&self, document: &ComparedDocument, visit: &mut dyn FnMut(u64)) {
        if let Some(signature) = document.sketched().signature() {
            self.signature_keys(signature, visit);
        }
    }

    /// Calls `visit` with the bucket keys of the bands of a signature.
    pub fn signature_keys(&self, signature: &[u32], visit: &mut dyn FnMut(u64)) {
        if let Some(bands) = self.plan.bands() {
            (0..bands.bands).for_each(|band| visit(band_key(bands, band, signature)));
        }
    }

    /// Returns the route and the similarity of two documents if they match.
    ///
    /// # Errors
    /// Fails if sequences are too long to be compared.
    pub fn compare(
        &self,
        a: &ComparedDocument,
        b: &ComparedDocument,
    ) -> Result<Option<(Route, Similarity)>> {
        let rule = Rule::new(&self.plan);
        let (in_a, in_b) = (a.sketched(), b.sketched());
        let Some(route) = rule.candidates(in_a, in_b) else {
            return Ok(None);
        };
        let similarity = rule.check(route, (in_a, a), (in_b, b))?;
        Ok(similarity.map(|similarity| (route, similarity)))
    }
}
