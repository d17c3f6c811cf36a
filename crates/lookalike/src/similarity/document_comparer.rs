//! Comparison with documents of an index on disk, by records that serve every threshold and measure.
//!
//! For each document, an index stores a record: the key of its text, and its features with their
//! weights. Documents with more than [`SHORT`] features also have a MinHash signature. The sketches of
//! *any* plan of [`MatchMethod::Auto`](crate::plan::MatchMethod::Auto) follow from these, so one index answers
//! every threshold and measure. A [`DocumentComparer`] decides on a pair by the same predicate as a
//! batch.
//!
//! Candidates are found by bucket keys. A record yields the key of its text and, up to [`MOST_INDEXED`]
//! features, one key for each feature. A signature yields the keys of the plan's bands.
//!
//! Guarantee: every match of the plan is found. Of two sets with a Jaccard index of at least t, at
//! least ⌈t·n⌉ of the n features of one are in the other. So *any* n − ⌈t·n⌉ + 1 features of a query
//! contain a shared one, and the query probes those with the shortest buckets. Prefixes on both sides
//! would need an order of features that index and query agree on; this needs none. For containment, the query
//! probes all of its features, and the caller counts how many a record shares; then it also needs the
//! [keys](visit_feature_keys) of longer records.
//!
//! ```text
//! key of the text (16) | state (1) | kind (1) | number of features (4) | features (8 each) | weights
//! ```
//!
//! The kind is 0 where every feature has the weight 1, and no weights follow. Otherwise it is 1, and
//! pairs of a feature and its weight follow (8 + 8 each). There may be fewer pairs than features. All
//! numbers are little-endian.

use super::document_lists::DocumentList;
use super::pair_predicate::{PairInputs, PairPredicate, Route, SketchRef};
use crate::arch::Cpu;
use crate::byte_reader::ByteReader;
use crate::candidates::{PrefixLengths, band_key, equal_text_key, feature_key};
use crate::error::Result;
use crate::plan::SimilarityMeasure;
use crate::plan::{ComparedInputs, EditUnit, LOWEST_CANDIDATE_THRESHOLD, MatchPlan, SHORT};
use crate::recipe::Recipe;
use crate::similarity::{StepBudget, WeightedFeature};
use crate::sketch::MinHasher;
use crate::sketch::{DocumentSketcher, DocumentSketches, TEXT_STATES};
use crate::text::{AnalysisExtras, TextAnalysis, TextState};
use crate::types::{DocId, Similarity};

/// Largest number of features at which a record yields a bucket key for each feature. The exact join
/// reaches this far at the threshold [`LOWEST_CANDIDATE_THRESHOLD`]; searches whose join reaches further are
/// refused.
pub const MOST_INDEXED: usize = (SHORT as f64 / LOWEST_CANDIDATE_THRESHOLD) as usize + 1;

/// Bytes of one feature or weight in a record.
const NUMBER_BYTES: usize = 8;

const ONLY_DOCUMENT: DocId = DocId(0);

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
    pub fn slot_count(&self) -> usize {
        self.minhash.slot_count()
    }

    /// Appends the record of a document, and its signature if it has more than [`SHORT`] features.
    /// Returns `true` if a signature was appended.
    pub fn record_document(
        &self,
        analysis: &TextAnalysis<'_>,
        records: &mut Vec<u8>,
        signatures: &mut Vec<u32>,
    ) -> bool {
        let state = analysis.state;
        let (mut features, mut weighted) = (Vec::new(), Vec::new());
        if state == TextState::Fingerprintable {
            analysis.append_features(&mut features);
            analysis.weighted_features(&mut weighted);
        }
        let plain = features.iter().map(|&feature| (feature, 1));
        let is_weighted = !weighted.iter().copied().eq(plain);
        records.extend(analysis.key.to_le_bytes());
        records.push(TEXT_STATES.iter().position(|&it| it == state).unwrap_or(0) as u8);
        records.push(is_weighted.into());
        records.extend((features.len() as u32).to_le_bytes());
        records.extend(features.iter().flat_map(|feature| feature.to_le_bytes()));
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
        signatures.resize(start + self.slot_count(), 0);
        self.minhash
            .write_signature(analysis, &mut signatures[start..]);
        true
    }
}

/// A parsed record.
struct RecordView<'a> {
    key: u128,
    state: TextState,
    features: &'a [u8],
    /// Pairs of a feature and its weight; `None` if all weights are 1.
    weights: Option<&'a [u8]>,
}

impl<'a> RecordView<'a> {
    /// Parses a record. Returns `None` if these bytes are not a record.
    fn parse_record(record: &'a [u8]) -> Option<Self> {
        let mut reader = ByteReader::new(record);
        let key = reader.read_u128()?;
        let state = *TEXT_STATES.get(usize::from(reader.read_u8()?))?;
        let has_weights = reader.read_u8()?;
        let count = reader.read_u32()? as usize;
        let features = reader.read_bytes(count.checked_mul(NUMBER_BYTES)?)?;
        let weights = reader.rest();
        let weights = match has_weights {
            0 if weights.is_empty() => None,
            1 if weights.len().is_multiple_of(2 * NUMBER_BYTES) => Some(weights),
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
        self.features.len() / NUMBER_BYTES
    }

    fn iter_features(&self) -> impl Iterator<Item = u64> + 'a {
        decode_numbers(self.features)
    }
}

fn decode_numbers(bytes: &[u8]) -> impl Iterator<Item = u64> + '_ {
    let numbers = bytes.chunks_exact(NUMBER_BYTES);
    numbers.map(|number| u64::from_le_bytes(number.try_into().expect("a chunk of 8 bytes")))
}

/// Calls `visit` with every bucket key of a record. Returns `None` if these bytes are not a record.
pub fn visit_record_keys(record: &[u8], visit: &mut dyn FnMut(u64)) -> Option<()> {
    let view = RecordView::parse_record(record)?;
    visit(equal_text_key(view.key));
    if view.len() <= MOST_INDEXED {
        view.iter_features().map(feature_key).for_each(visit);
    }
    Some(())
}

/// Calls `visit` with the bucket key of every feature of a record, and returns their number. Returns `None` if these
/// bytes are not a record.
pub fn visit_feature_keys(record: &[u8], visit: &mut dyn FnMut(u64)) -> Option<usize> {
    let view = RecordView::parse_record(record)?;
    view.iter_features().map(feature_key).for_each(visit);
    Some(view.len())
}

/// The sketches, features, weights and sequences of one document under a plan.
#[derive(Clone, Debug, Default)]
pub struct ComparedDocument {
    sketches: DocumentSketches,
    features: Vec<u64>,
    weighted: Vec<WeightedFeature>,
    characters: Vec<u32>,
    words: Vec<u64>,
    forms: Vec<u64>,
    marked: Vec<u64>,
}

impl ComparedDocument {
    fn sketch_ref(&self) -> SketchRef<'_> {
        SketchRef {
            sketches: &self.sketches,
            document: ONLY_DOCUMENT,
        }
    }

    fn clear_lists(&mut self) {
        self.features.clear();
        self.weighted.clear();
        self.characters.clear();
        self.words.clear();
        self.forms.clear();
        self.marked.clear();
    }
}

impl PairInputs for ComparedDocument {
    fn distinct_features(&self) -> Result<DocumentList<'_, u64>> {
        Ok(DocumentList::Kept(&self.features))
    }

    fn weighted_features(&self) -> Result<DocumentList<'_, WeightedFeature>> {
        Ok(DocumentList::Kept(&self.weighted))
    }

    fn code_points(&self) -> Result<DocumentList<'_, u32>> {
        Ok(DocumentList::Kept(&self.characters))
    }

    fn token_values(&self) -> Result<DocumentList<'_, u64>> {
        Ok(DocumentList::Kept(&self.words))
    }

    fn form_values(&self) -> Result<DocumentList<'_, u64>> {
        Ok(DocumentList::Kept(&self.forms))
    }

    fn marked_tokens(&self) -> Result<DocumentList<'_, u64>> {
        Ok(DocumentList::Kept(&self.marked))
    }
}

/// Decides on pairs of documents by the predicate of a plan.
#[derive(Clone, Debug)]
pub struct DocumentComparer {
    plan: MatchPlan,
    sketcher: DocumentSketcher,
}

impl DocumentComparer {
    /// Returns a comparer for documents of a recipe and its plan.
    pub fn new(recipe: &Recipe, plan: &MatchPlan) -> Self {
        Self {
            plan: *plan,
            sketcher: DocumentSketcher::new(recipe, plan, Cpu::detect_best()),
        }
    }

    /// Returns the plan.
    pub fn plan(&self) -> &MatchPlan {
        &self.plan
    }

    /// Returns the extras that an analysis needs for [`prepare_document`](Self::prepare_document).
    pub fn required_extras(&self) -> AnalysisExtras {
        self.sketcher.required_extras()
    }

    /// Returns `true` if stored documents are compared by their texts, because records hold no
    /// sequences of characters or words and no values of forms.
    pub fn needs_texts(&self) -> bool {
        self.plan.sequence_measure().is_some() || self.plan.compares_forms()
    }

    /// Converts the analysis of a text into a document for comparison.
    pub fn prepare_document(&self, analysis: &TextAnalysis<'_>) -> ComparedDocument {
        let mut sketches = self.sketcher.new_sketches(0);
        self.sketcher.add_document(analysis, &mut sketches);
        let mut document = ComparedDocument {
            sketches,
            ..ComparedDocument::default()
        };
        self.fill_lists(analysis, &mut document);
        document
    }

    /// Overwrites the lists of a document by which the plan verifies candidates. The sketches, by which it
    /// finds them, stay as they are.
    pub fn fill_lists(&self, analysis: &TextAnalysis<'_>, into: &mut ComparedDocument) {
        into.clear_lists();
        let plan = &self.plan;
        if plan.compares_forms() {
            analysis.append_form_values(&mut into.forms);
            analysis.append_marked_tokens(&mut into.marked);
        }
        if plan.compares_features() && analysis.state == TextState::Fingerprintable {
            analysis.append_features(&mut into.features);
        }
        match plan.match_settings().measure.descriptor().inputs {
            ComparedInputs::Sets(_) => {}
            ComparedInputs::Weights(_) => {
                analysis.weighted_features(&mut into.weighted);
            }
            ComparedInputs::Sequences(_) => match plan.match_settings().unit {
                EditUnit::Characters => into.characters.extend_from_slice(analysis.characters()),
                EditUnit::Words => into.words.extend_from_slice(analysis.token_values()),
            },
        }
    }

    /// Restores a document from its record, and from its signature if it has one, and overwrites
    /// `into`. Returns `None` if these bytes are not a record.
    pub fn restore_document(
        &self,
        record: &[u8],
        signature: Option<&[u32]>,
        into: &mut ComparedDocument,
    ) -> Option<()> {
        let view = RecordView::parse_record(record)?;
        into.features.clear();
        into.features.extend(view.iter_features());
        let measure = self.plan.match_settings().measure;
        if measure.weight_measure().is_some() {
            let features = view.iter_features();
            into.weighted.clear();
            match view.weights {
                None => into.weighted.extend(features.map(|feature| (feature, 1))),
                Some(weights) => {
                    let features = decode_numbers(weights).step_by(2);
                    let weights = decode_numbers(weights).skip(1).step_by(2);
                    let weights = weights.map(|weight| weight as i64);
                    into.weighted.extend(features.zip(weights));
                }
            }
        }
        let (key, state) = (view.key, view.state);
        self.sketcher
            .restore_document(key, state, &into.features, signature, &mut into.sketches);
        Some(())
    }

    /// Returns the bucket key of documents with the same text.
    pub fn text_key(&self, document: &ComparedDocument) -> u64 {
        equal_text_key(document.sketch_ref().text_key())
    }

    /// Appends the bucket keys of all features of a document that takes part in the exact join. Returns
    /// how many of them must be probed, where any of them serve; 0 if the document does not take part.
    pub fn feature_keys(&self, document: &ComparedDocument, into: &mut Vec<u64>) -> usize {
        let features = &document.features;
        let reach = self
            .plan
            .join_plan()
            .map_or(0, |join| join.max_partner_features);
        if features.is_empty() || features.len() > reach {
            return 0;
        }
        into.extend(features.iter().map(|&feature| feature_key(feature)));
        PrefixLengths::from_feature_count(features.len(), self.plan.overlap_bound()).probing
    }

    /// Returns `true` if a document that shares `shared` features with another one of `size` features reaches the
    /// overlap that the exact join asks for.
    pub fn may_contain(&self, document: &ComparedDocument, shared: usize, size: usize) -> bool {
        let own = document.features.len();
        // More features may be counted than are shared, because keys can collide.
        let shared = shared.min(own).min(size);
        shared > 0 && self.plan.overlap_bound().admits_overlap(shared, own, size)
    }

    /// Calls `visit` with the bucket keys of the bands of a document that has a signature.
    pub fn band_keys(&self, document: &ComparedDocument, visit: &mut dyn FnMut(u64)) {
        if let Some(signature) = document.sketch_ref().signature() {
            self.signature_keys(signature, visit);
        }
    }

    /// Calls `visit` with the bucket keys of the bands of a signature.
    pub fn signature_keys(&self, signature: &[u32], visit: &mut dyn FnMut(u64)) {
        if let Some(bands) = self.plan.band_plan() {
            (0..bands.bands).for_each(|band| visit(band_key(bands, band, signature)));
        }
    }

    /// Returns the similarity of two documents by the measure of the plan if it reaches the threshold, whether or
    /// not their features reach the candidate threshold. It reads the lists of the documents alone.
    ///
    /// # Errors
    /// Fails if sequences are too long to be compared.
    pub(crate) fn measure_documents(
        &self,
        a: &ComparedDocument,
        b: &ComparedDocument,
    ) -> Result<Option<Similarity>> {
        PairPredicate::new(&self.plan).measure_inputs(a, b, &mut StepBudget::unlimited())
    }

    /// Returns the similarity of two documents by the measure of the plan if it reaches the threshold. They
    /// need not be candidates of the plan.
    ///
    /// # Errors
    /// Fails if sequences are too long to be compared.
    pub fn verify_documents(
        &self,
        a: &ComparedDocument,
        b: &ComparedDocument,
    ) -> Result<Option<Similarity>> {
        PairPredicate::new(&self.plan).verify_inputs(a, b, &mut StepBudget::unlimited())
    }

    /// Returns the route and the similarity of a document and a restored one if they match. Their fingerprints
    /// differ in `distance` bits, by which the plan makes them candidates, because a record holds no fingerprint.
    ///
    /// # Errors
    /// Fails if sequences are too long to be compared.
    pub fn compare_near_documents(
        &self,
        a: &ComparedDocument,
        b: &ComparedDocument,
        distance: u32,
    ) -> Result<Option<(Route, Similarity)>> {
        if a.sketch_ref().has_equal_text(b.sketch_ref()) {
            return Ok(Some((Route::Exact, Similarity::ONE)));
        }
        let similarity = match self.plan.match_settings().measure {
            SimilarityMeasure::Sketch => {
                let bits = self.plan.fingerprint_bits();
                Some(Similarity::from_ratio(
                    (bits - distance) as usize,
                    bits as usize,
                ))
            }
            _ => self.verify_documents(a, b)?,
        };
        Ok(similarity.map(|similarity| (Route::SimHash, similarity)))
    }

    /// Returns the key of a document's text after normalisation. Equal texts have equal keys.
    pub fn whole_text_key(&self, document: &ComparedDocument) -> u128 {
        document.sketch_ref().text_key()
    }

    /// Returns the fingerprint of a document, if the plan compares fingerprints and the document has one.
    pub fn fingerprint(&self, document: &ComparedDocument) -> Option<u128> {
        document.sketch_ref().fingerprint()
    }

    /// Returns the route and the similarity of two documents if they match.
    ///
    /// # Errors
    /// Fails if sequences are too long to be compared.
    pub fn compare_documents(
        &self,
        a: &ComparedDocument,
        b: &ComparedDocument,
    ) -> Result<Option<(Route, Similarity)>> {
        let rule = PairPredicate::new(&self.plan);
        let (in_a, in_b) = (a.sketch_ref(), b.sketch_ref());
        let Some(route) = rule.candidates(in_a, in_b) else {
            return Ok(None);
        };
        let similarity = rule.verify_candidates(route, in_a, a, in_b, b)?;
        Ok(similarity.map(|similarity| (route, similarity)))
    }
}
