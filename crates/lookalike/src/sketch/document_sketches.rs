//! The sketches of all documents of a run.
//!
//! They are stored as a structure of arrays, in the order read:
//!
//! | per document | bytes | stored if |
//! |---|---|---|
//! | key of the text, text state | 17 | always |
//! | summary of the feature set | 16 | the plan has an exact join |
//! | MinHash signature | 4, and 4 per slot unless the document is short | the plan has bands |
//! | SimHash fingerprint | 8, or 16 above 64 bits | the plan has a Hamming distance |
//! | outline of the sequence | 20 | the measure compares sequences |
//! | features, characters, words | 8, 4, 8 each | they are compared and a budget has room |
//! | key in common, such as the signature of the longest sentences | 8 | the plan compares such keys |
//! | smallest hashes | 8 each, and 8 for their place | the plan compares them |
//! | form and values of its slots | 8 each, and 8 for their place | the recipe has a table of forms |

mod column_codec;
mod list_column;

use self::list_column::ListColumn;
use crate::arch::{Cpu, prefetch};
use crate::byte_reader::ByteReader;
use crate::forms::FormId;
use crate::plan::{EditUnit, MatchPlan};
use crate::recipe::Recipe;
use crate::similarity::SequenceOutline;
use crate::sketch::{FeatureObserver, MinHasher, SimHasher, smallest_features};
use crate::text::{AnalysisExtras, TextAnalysis, TextState};
use crate::types::DocId;

/// Makes the [`DocumentSketches`] that a plan needs.
///
/// ```
/// use lookalike::plan::{MatchPlan, MatchSettings};
/// use lookalike::text::{TextAnalyzer, AnalysisScratch};
/// use lookalike::{Cpu, DocId, Recipe, DocumentSketcher};
///
/// let recipe = Recipe::built_in("default")?;
/// let plan = MatchPlan::new(&recipe, MatchSettings::default())?;
/// let sketcher = DocumentSketcher::new(&recipe, &plan, Cpu::detect_best());
/// let analyzer = TextAnalyzer::new(&recipe).with_extras(sketcher.required_extras());
/// let mut sketches = sketcher.new_sketches(1 << 20);
/// for text in ["两只鸟停在屋顶上。", "兩隻鳥停在屋頂上"] {
///     sketcher.add_document(&analyzer.analyze_text(text, &mut AnalysisScratch::default()), &mut sketches);
/// }
/// // The two texts are equal after normalisation.
/// assert_eq!(sketches.text_key(DocId(0)), sketches.text_key(DocId(1)));
/// # Ok::<_, lookalike::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct DocumentSketcher {
    plan: MatchPlan,
    minhash: Option<MinHasher>,
    simhash: Option<SimHasher>,
}

/// Size of a document with more features than the exact join reaches.
pub(crate) const LONG_SIZE: u32 = u32::MAX;

const NO_ENTRY: u32 = u32::MAX;

/// Prefilter of the exact join: a summary of a feature set that rejects most pairs.
///
/// ```text
/// +------------------+----------+-------------------------------------------+
/// | bits 0..32 of    | set size | parities of 64 groups of feature hashes   |
/// | the text key (4) | (4)      | (8)                                       |
/// +------------------+----------+-------------------------------------------+
/// ```
///
/// It has 16 bytes, so it lies within one cache line. Guarantee: [`most_shared`](Self::most_shared) is
/// never less than the number of features that two documents share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SetSummary {
    /// Lowest 32 bits of the text key.
    key: u32,
    /// Number of distinct features, or [`LONG_SIZE`]; 0 if the document is not fingerprintable.
    pub(crate) size: u32,
    /// Bit i is the parity of the number of features in group i, which the upper 6 bits of a hash name.
    /// 0 if the document is [`LONG_SIZE`].
    parities: u64,
}

impl SetSummary {
    pub(crate) fn new(key: u128, size: u32, features: &[u64]) -> Self {
        let parities = features
            .iter()
            .fold(0, |bits, feature| bits ^ 1 << (feature >> 58));
        Self {
            key: key as u32,
            size,
            parities,
        }
    }

    /// Returns a summary without the key, for callers that do not compare keys.
    pub(crate) fn without_key(size: u32, parities: u64) -> Self {
        let key = 0;
        Self {
            key,
            size,
            parities,
        }
    }

    /// Returns the parities: bit i is the parity of the number of features in group i.
    pub(crate) fn group_parities(self) -> u64 {
        self.parities
    }

    /// Returns `true` if two documents may have the same text key.
    pub(crate) fn may_have_equal_key(self, other: Self) -> bool {
        self.key == other.key
    }

    /// Returns the largest number of features that two documents can share. Neither may be [`LONG_SIZE`].
    ///
    /// Every bit in which the parities differ stands for a feature that only one document has (Sandes,
    /// Teodoro and Melo, "Bitmap Filter", 2020).
    pub(crate) fn most_shared(self, other: Self) -> usize {
        let alone = (self.parities ^ other.parities).count_ones();
        ((self.size + other.size - alone) / 2)
            .min(self.size)
            .min(other.size) as usize
    }
}

/// The sketches of the documents of a run.
#[derive(Clone, Debug, Default)]
pub struct DocumentSketches {
    keys: Vec<u128>,
    states: Vec<TextState>,
    summaries: Vec<SetSummary>,
    signature_at: Vec<u32>,
    signatures: Vec<u32>,
    slots: usize,
    fingerprints: FingerprintColumn,
    features_at: Vec<u32>,
    features: Vec<u64>,
    feature_budget: usize,
    /// Outlines of the sequences that the measure compares.
    outlines: Vec<SequenceOutline>,
    characters: BudgetedLists<u32>,
    words: BudgetedLists<u64>,
    /// Keys that candidates have in common.
    equal_keys: Vec<u64>,
    /// Smallest hashes of the features.
    smallest: ListColumn,
    /// Form and values of its slots, as [`FormIndex::append_values`](crate::forms::FormIndex) has them.
    forms: ListColumn,
}

/// Fingerprints of 64 bits, or of 128 where they have more than 64.
#[derive(Clone, Debug)]
enum FingerprintColumn {
    Narrow(Vec<u64>),
    Wide(Vec<u128>),
}

impl Default for FingerprintColumn {
    fn default() -> Self {
        Self::Narrow(Vec::new())
    }
}

impl FingerprintColumn {
    fn with_bits(bits: u32) -> Self {
        if bits <= u64::BITS {
            Self::default()
        } else {
            Self::Wide(Vec::new())
        }
    }

    fn push_fingerprint(&mut self, fingerprint: u128) {
        match self {
            Self::Narrow(fingerprints) => fingerprints.push(fingerprint as u64),
            Self::Wide(fingerprints) => fingerprints.push(fingerprint),
        }
    }

    fn append_column(&mut self, other: &Self) {
        match (self, other) {
            (Self::Narrow(to), Self::Narrow(from)) => to.extend_from_slice(from),
            (to, Self::Narrow(from)) => from.iter().for_each(|&it| to.push_fingerprint(it.into())),
            (to, Self::Wide(from)) => from.iter().for_each(|&it| to.push_fingerprint(it)),
        }
    }

    fn get(&self, at: usize) -> Option<u128> {
        match self {
            Self::Narrow(fingerprints) => fingerprints.get(at).copied().map(u128::from),
            Self::Wide(fingerprints) => fingerprints.get(at).copied(),
        }
    }

    fn memory_bytes(&self) -> usize {
        match self {
            Self::Narrow(fingerprints) => 8 * fingerprints.len(),
            Self::Wide(fingerprints) => 16 * fingerprints.len(),
        }
    }

    fn shrink_to_fit(&mut self) {
        match self {
            Self::Narrow(fingerprints) => fingerprints.shrink_to_fit(),
            Self::Wide(fingerprints) => fingerprints.shrink_to_fit(),
        }
    }
}

/// Lists of documents, kept while there is room.
#[derive(Clone, Debug, Default)]
struct BudgetedLists<T> {
    at: Vec<u32>,
    items: Vec<T>,
}

impl<T: Copy> BudgetedLists<T> {
    /// Adds the list of the next document. It is kept only if all lists together then have at most
    /// `room` items.
    fn push_list(&mut self, list: &[T], room: usize) {
        let start = self.items.len();
        let fits = !list.is_empty() && start + list.len() <= room.min(NO_ENTRY as usize);
        if fits {
            self.items.extend_from_slice(list);
        }
        self.at.push(if fits { start as u32 } else { NO_ENTRY });
    }

    fn append_lists(&mut self, other: &Self, room: usize) {
        let start = self.items.len();
        let fits = start + other.items.len() <= room.min(NO_ENTRY as usize);
        let moved = |&at: &u32| match at {
            NO_ENTRY => NO_ENTRY,
            at if fits => at + start as u32,
            _ => NO_ENTRY,
        };
        self.at.extend(other.at.iter().map(moved));
        if fits {
            self.items.extend_from_slice(&other.items);
        }
    }

    fn get(&self, document: DocId, length: usize) -> Option<&[T]> {
        match self.at.get(document.index()) {
            None | Some(&NO_ENTRY) => None,
            Some(&at) => Some(&self.items[at as usize..][..length]),
        }
    }
}

/// Number of features that are kept for each document in addition to the budget.
const FEATURES_A_DOCUMENT: usize = 15;

impl DocumentSketcher {
    /// Returns a sketcher for a recipe and its plan.
    pub fn new(recipe: &Recipe, plan: &MatchPlan, cpu: Cpu) -> Self {
        Self {
            plan: *plan,
            minhash: plan
                .band_plan()
                .map(|_| MinHasher::new(&recipe.minhash, cpu)),
            simhash: plan
                .distance()
                .map(|_| SimHasher::new(&recipe.simhash, cpu)),
        }
    }

    /// Returns the extras that an analysis needs for [`add_document`](Self::add_document).
    pub fn required_extras(&self) -> AnalysisExtras {
        let by_characters = self.plan.match_settings().unit == EditUnit::Characters;
        AnalysisExtras {
            characters: by_characters && self.plan.sequence_measure().is_some(),
            sentences: self.plan.sentence_count(),
        }
    }

    /// Returns an empty store. It keeps up to `feature_budget` features of short documents (8 bytes
    /// each), and 15 more for every document; none if the budget is 0. Where the measure compares
    /// sequences, it also keeps as many bytes of characters or words.
    pub fn new_sketches(&self, feature_budget: usize) -> DocumentSketches {
        let slots = self.minhash.as_ref().map_or(0, MinHasher::slot_count);
        DocumentSketches {
            slots,
            feature_budget,
            fingerprints: FingerprintColumn::with_bits(self.plan.fingerprint_bits()),
            ..DocumentSketches::default()
        }
    }

    /// Adds a document. The analysis must hold the [extras](Self::required_extras).
    pub fn add_document(&self, analysis: &TextAnalysis<'_>, to: &mut DocumentSketches) {
        self.add_sketch_parts(analysis, to, &mut |_| ());
    }

    /// Adds a document, and calls `see` with all its features if it is fingerprintable.
    ///
    /// Features come in several batches, and some may come more than once. Where the sketches are made
    /// of the features, `see` gets them in the same pass, so they are not made twice.
    pub fn add_showing_features(
        &self,
        analysis: &TextAnalysis<'_>,
        to: &mut DocumentSketches,
        see: &mut dyn FnMut(&[u64]),
    ) {
        let seen = self.add_sketch_parts(analysis, to, see);
        if !seen && analysis.state == TextState::Fingerprintable {
            analysis.visit_chunks(see);
        }
    }

    /// Returns `true` if `see` was called with all features.
    fn add_sketch_parts(
        &self,
        analysis: &TextAnalysis<'_>,
        to: &mut DocumentSketches,
        see: FeatureObserver<'_>,
    ) -> bool {
        to.keys.push(analysis.key);
        to.states.push(analysis.state);
        let size = self.add_features(analysis, to, see);
        let mut seen = size != LONG_SIZE;
        if let Some(minhash) = &self.minhash {
            let short = self.plan.join_plan().map_or(0, |join| join.max_features);
            let at = if analysis.state == TextState::Fingerprintable && size as usize > short {
                let start = to.signatures.len();
                to.signatures.resize(start + to.slots, 0);
                let signature = &mut to.signatures[start..];
                if seen {
                    minhash.write_signature(analysis, signature);
                } else {
                    minhash.write_signature_showing(analysis, signature, see);
                    seen = minhash.works_on_features();
                }
                (start / to.slots) as u32
            } else {
                NO_ENTRY
            };
            to.signature_at.push(at);
        }
        if let Some(simhash) = &self.simhash {
            let fingerprint = if seen {
                simhash.fingerprint(analysis)
            } else {
                seen = simhash.works_on_features(analysis);
                simhash.fingerprint_seen(analysis, see)
            };
            if fingerprint.is_none()
                && let Some(state) = to.states.last_mut()
                && *state == TextState::Fingerprintable
            {
                // The weights of all features cancel out, so the document has no fingerprint, and only
                // its whole text can be compared.
                *state = TextState::TooShort;
            }
            to.fingerprints.push_fingerprint(fingerprint.unwrap_or(0));
        }
        if let Some(key) = self.plan.equal_key() {
            to.equal_keys.push((key.key_of)(analysis).unwrap_or(0));
        }
        if let Some(smallest) = self.plan.bottom_k_plan() {
            to.smallest.push_list(|hashes| {
                if analysis.state == TextState::Fingerprintable {
                    smallest_features(analysis, smallest.hashes, hashes);
                }
            });
        }
        if self.plan.compares_forms() {
            to.push_form(analysis);
        }
        if self.plan.sequence_measure().is_some() {
            self.add_sequence(analysis, to);
        }
        seen
    }

    fn add_sequence(&self, analysis: &TextAnalysis<'_>, to: &mut DocumentSketches) {
        let room = to.feature_room();
        match self.plan.match_settings().unit {
            EditUnit::Characters => {
                to.outlines
                    .push(SequenceOutline::new(analysis.characters()));
                to.characters.push_list(analysis.characters(), 2 * room);
            }
            EditUnit::Words => {
                to.outlines
                    .push(SequenceOutline::new(analysis.token_values()));
                to.words.push_list(analysis.token_values(), room);
            }
        }
    }

    /// Counts the distinct features of a document as far as the join reaches, passes them to `see`, and
    /// keeps them if there is room. Returns their number, or [`LONG_SIZE`].
    fn add_features(
        &self,
        analysis: &TextAnalysis<'_>,
        to: &mut DocumentSketches,
        see: FeatureObserver<'_>,
    ) -> u32 {
        let Some(join) = self.plan.join_plan() else {
            return if analysis.state == TextState::Fingerprintable {
                LONG_SIZE
            } else {
                0
            };
        };
        let start = to.features.len();
        let short = !analysis.has_more_features_than(join.max_partner_features);
        if short {
            analysis.append_features(&mut to.features);
            see(&to.features[start..]);
        }
        let features = &to.features[start..];
        let size = if short {
            features.len() as u32
        } else {
            LONG_SIZE
        };
        to.summaries
            .push(SetSummary::new(analysis.key, size, features));
        let kept = !features.is_empty() && to.features.len() <= to.feature_room();
        if !kept {
            to.features.truncate(start);
        }
        if to.feature_budget > 0 {
            to.features_at
                .push(if kept { start as u32 } else { NO_ENTRY });
        }
        size
    }
}

/// Text states in the order of their numbers in files.
pub(crate) const TEXT_STATES: [TextState; 4] = [
    TextState::Fingerprintable,
    TextState::TooShort,
    TextState::SymbolsOnly,
    TextState::Empty,
];

/// Serialisation of the sketches of one document, to be read under the same recipe and plan. Sequences
/// are not written, because they take as much space as the text.
impl DocumentSketcher {
    /// Returns `true` if the sketches can be written: the plan compares no sequences.
    pub(crate) fn can_encode(&self) -> bool {
        self.plan.sequence_measure().is_none()
    }

    /// Appends the sketches of the only document of a store.
    pub(crate) fn encode_sketches(&self, from: &DocumentSketches, into: &mut Vec<u8>) {
        let document = DocId(0);
        let state = from.text_state(document);
        into.extend(from.text_key(document).to_le_bytes());
        into.push(TEXT_STATES.iter().position(|&it| it == state).unwrap_or(0) as u8);
        if self.plan.join_plan().is_some() {
            into.extend(from.set_summary(document).size.to_le_bytes());
            let features = from.kept_features(document).unwrap_or_default();
            features
                .iter()
                .for_each(|feature| into.extend(feature.to_le_bytes()));
        }
        if self.minhash.is_some() {
            let signature = from.minhash_signature(document);
            into.push(u8::from(signature.is_some()));
            let slots = signature.unwrap_or_default().iter();
            slots.for_each(|slot| into.extend(slot.to_le_bytes()));
        }
        if self.simhash.is_some() {
            let code = from.fingerprints.get(0).unwrap_or(0);
            into.extend(code.to_le_bytes());
        }
        if self.plan.equal_key().is_some() {
            into.extend(from.equal_keys[0].to_le_bytes());
        }
        if self.plan.bottom_k_plan().is_some() {
            let hashes = from.smallest_hashes(document).unwrap_or_default();
            into.extend((hashes.len() as u32).to_le_bytes());
            hashes
                .iter()
                .for_each(|hash| into.extend(hash.to_le_bytes()));
        }
        if self.plan.compares_forms() {
            from.forms.encode_column(into);
        }
    }

    /// Makes a store hold one document, of which key, state and all features are known, and its
    /// signature if it has more features than the join calls short. Outlines of sequences are not
    /// restored.
    pub(crate) fn restore_document(
        &self,
        key: u128,
        state: TextState,
        features: &[u64],
        signature: Option<&[u32]>,
        to: &mut DocumentSketches,
    ) {
        to.slots = self.minhash.as_ref().map_or(0, MinHasher::slot_count);
        to.keys.clear();
        to.keys.push(key);
        to.states.clear();
        to.states.push(state);
        let mut size = features.len() as u32;
        if let Some(join) = self.plan.join_plan() {
            let is_long = features.len() > join.max_partner_features;
            let joined = if is_long { &[] } else { features };
            size = if is_long { LONG_SIZE } else { size };
            to.summaries.clear();
            to.summaries.push(SetSummary::new(key, size, joined));
        }
        if self.minhash.is_some() {
            let short = self.plan.join_plan().map_or(0, |join| join.max_features);
            let signature = signature.filter(|_| size as usize > short);
            to.signatures.clear();
            to.signatures
                .extend_from_slice(signature.unwrap_or_default());
            to.signature_at.clear();
            to.signature_at
                .push(if signature.is_some() { 0 } else { NO_ENTRY });
        }
    }

    /// Reads a store of one document. Returns `None` if the bytes do not fit this plan.
    pub(crate) fn decode_sketches(
        &self,
        bytes: &[u8],
        feature_budget: usize,
    ) -> Option<DocumentSketches> {
        let mut reader = ByteReader::new(bytes);
        let mut to = self.new_sketches(feature_budget);
        let key = reader.read_u128()?;
        to.keys.push(key);
        to.states
            .push(*TEXT_STATES.get(usize::from(reader.read_u8()?))?);
        if let Some(join) = self.plan.join_plan() {
            let size = reader.read_u32()?;
            if size != LONG_SIZE && size as usize > join.max_partner_features {
                return None;
            }
            let features = if size == LONG_SIZE { 0 } else { size };
            let features = reader.read_list(features as usize, u64::from_le_bytes)?;
            to.summaries.push(SetSummary::new(key, size, &features));
            let held = if features.is_empty() { NO_ENTRY } else { 0 };
            to.features_at.push(held);
            to.features = features;
        }
        if self.minhash.is_some() {
            let there = reader.read_u8()? != 0;
            let slots = if there { to.slots } else { 0 };
            to.signatures = reader.read_list(slots, u32::from_le_bytes)?;
            to.signature_at.push(if there { 0 } else { NO_ENTRY });
        }
        if self.simhash.is_some() {
            to.fingerprints.push_fingerprint(reader.read_u128()?);
        }
        if self.plan.equal_key().is_some() {
            to.equal_keys.push(reader.read_u64()?);
        }
        if self.plan.bottom_k_plan().is_some() {
            to.smallest = ListColumn::decode_column(&mut reader, 1)?;
        }
        if self.plan.compares_forms() {
            to.forms = ListColumn::decode_column(&mut reader, 1)?;
        }
        reader.is_at_end().then_some(to)
    }
}

/// The growth of columns from some documents to as many as are expected.
#[derive(Clone, Copy, Debug)]
pub struct ColumnReservation {
    /// Number of documents in the columns. Nothing is reserved if it is 0.
    pub documents: usize,
    /// Number of documents that are expected, those in the columns included.
    pub expected: usize,
}

impl ColumnReservation {
    /// Reserves memory for the items of all expected documents.
    pub fn extend_column<T>(self, column: &mut Vec<T>) {
        let items = column.len() as f64 * self.expected as f64 / self.documents.max(1) as f64;
        column.reserve((items as usize).saturating_sub(column.len()));
    }
}

impl DocumentSketches {
    /// Returns the number of documents.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns `true` if there are no documents.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Appends the documents of another store.
    pub fn append_sketches(&mut self, other: &DocumentSketches) {
        let rebased = |at: u32, by: usize| {
            if at == NO_ENTRY {
                NO_ENTRY
            } else {
                at + by as u32
            }
        };
        let signatures = self.signatures.len().checked_div(self.slots).unwrap_or(0);
        self.signature_at
            .extend(other.signature_at.iter().map(|&at| rebased(at, signatures)));
        self.signatures.extend_from_slice(&other.signatures);
        let fits = self.features.len() + other.features.len() <= self.feature_room();
        let features = self.features.len();
        let moved = |&at: &u32| {
            if fits {
                rebased(at, features)
            } else {
                NO_ENTRY
            }
        };
        if self.feature_budget > 0 {
            self.features_at.extend(other.features_at.iter().map(moved));
        }
        if fits {
            self.features.extend_from_slice(&other.features);
        }
        let room = self.feature_room();
        self.characters.append_lists(&other.characters, 2 * room);
        self.words.append_lists(&other.words, room);
        self.outlines.extend_from_slice(&other.outlines);
        self.equal_keys.extend_from_slice(&other.equal_keys);
        self.smallest.append_column(&other.smallest);
        self.forms.append_column(&other.forms);
        self.keys.extend_from_slice(&other.keys);
        self.states.extend_from_slice(&other.states);
        self.summaries.extend_from_slice(&other.summaries);
        self.fingerprints.append_column(&other.fingerprints);
    }

    /// Appends one document of another store of the same sketcher. Its lists are kept if they are kept there and
    /// there is room.
    pub fn append_document(&mut self, other: &DocumentSketches, document: DocId) {
        let at = document.index();
        self.keys.push(other.keys[at]);
        self.states.push(other.states[at]);
        self.summaries.extend(other.summaries.get(at));
        if !other.signature_at.is_empty() {
            let signature = other.minhash_signature(document);
            let next = (self.signatures.len() / self.slots.max(1)) as u32;
            self.signature_at
                .push(if signature.is_some() { next } else { NO_ENTRY });
            self.signatures
                .extend_from_slice(signature.unwrap_or_default());
        }
        if let Some(fingerprint) = other.fingerprints.get(at) {
            self.fingerprints.push_fingerprint(fingerprint);
        }
        if self.feature_budget > 0 && !other.summaries.is_empty() {
            let features = other.kept_features(document).unwrap_or_default();
            let start = self.features.len();
            let fits = !features.is_empty() && start + features.len() <= self.feature_room();
            if fits {
                self.features.extend_from_slice(features);
            }
            self.features_at
                .push(if fits { start as u32 } else { NO_ENTRY });
        }
        self.outlines.extend(other.outlines.get(at).copied());
        let room = self.feature_room();
        if !other.characters.at.is_empty() {
            let characters = other.characters(document).unwrap_or_default();
            self.characters.push_list(characters, 2 * room);
        }
        if !other.words.at.is_empty() {
            let words = other.kept_words(document).unwrap_or_default();
            self.words.push_list(words, room);
        }
        self.equal_keys.extend(other.equal_keys.get(at));
        self.smallest.append_list(&other.smallest, at);
        self.forms.append_list(&other.forms, at);
    }

    /// Reserves memory for as many documents as expected, if they are like those that are already there. So columns
    /// are not copied while they grow. Memory that is not used in the end is not taken from the system.
    pub fn reserve_documents(&mut self, expected: usize) {
        let documents = self.len();
        let reserve = ColumnReservation {
            documents,
            expected,
        };
        reserve.extend_column(&mut self.keys);
        reserve.extend_column(&mut self.states);
        reserve.extend_column(&mut self.summaries);
        reserve.extend_column(&mut self.signature_at);
        reserve.extend_column(&mut self.signatures);
        reserve.extend_column(&mut self.features_at);
        reserve.extend_column(&mut self.features);
        reserve.extend_column(&mut self.outlines);
        reserve.extend_column(&mut self.equal_keys);
        self.smallest.reserve(reserve);
        self.forms.reserve(reserve);
        match &mut self.fingerprints {
            FingerprintColumn::Narrow(column) => reserve.extend_column(column),
            FingerprintColumn::Wide(column) => reserve.extend_column(column),
        }
    }

    /// Makes the store hold one document, of which only the text key, the state and the key that it has in
    /// common with its candidates are known.
    pub(crate) fn reset_to_name(&mut self, analysis: &TextAnalysis<'_>, plan: &MatchPlan) {
        (self.keys, self.states) = (vec![analysis.key], vec![analysis.state]);
        let key = plan.equal_key().and_then(|key| (key.key_of)(analysis));
        self.equal_keys = key.into_iter().collect();
    }

    /// Adds a document of which only the fingerprint is known.
    pub(crate) fn push_fingerprint(&mut self, fingerprint: u128) {
        self.keys.push(fingerprint);
        self.states.push(TextState::Fingerprintable);
        self.fingerprints.push_fingerprint(fingerprint);
    }

    /// Releases unused capacity.
    pub(crate) fn shrink_to_fit(&mut self) {
        self.keys.shrink_to_fit();
        self.states.shrink_to_fit();
        self.summaries.shrink_to_fit();
        self.signature_at.shrink_to_fit();
        self.signatures.shrink_to_fit();
        self.fingerprints.shrink_to_fit();
        self.outlines.shrink_to_fit();
        self.equal_keys.shrink_to_fit();
        self.smallest.shrink_to_fit();
        self.forms.shrink_to_fit();
    }

    /// Returns the bytes of memory that sketches take, without the lists that are kept within a budget.
    pub fn memory_bytes(&self) -> u64 {
        let bytes = self.keys.len() * size_of::<u128>()
            + self.states.len()
            + self.summaries.len() * size_of::<SetSummary>()
            + 4 * (self.signature_at.len() + self.signatures.len())
            + self.fingerprints.memory_bytes()
            + self.outlines.len() * size_of::<SequenceOutline>()
            + 8 * self.equal_keys.len()
            + self.smallest.memory_bytes()
            + self.forms.memory_bytes();
        bytes as u64
    }

    /// Returns the bytes of the lists that are kept within a budget.
    pub fn list_bytes(&self) -> u64 {
        let at = self.features_at.len() + self.characters.at.len() + self.words.at.len();
        let items = 8 * (self.features.len() + self.words.items.len());
        (4 * (at + self.characters.items.len()) + items) as u64
    }

    /// Returns `true` if features of further documents would still be kept.
    pub fn has_feature_room(&self) -> bool {
        let kept = self.features.len().max(self.words.items.len());
        kept.max(self.characters.items.len() / 2) < self.feature_room()
    }

    fn feature_room(&self) -> usize {
        if self.feature_budget == 0 {
            return 0;
        }
        self.feature_budget + FEATURES_A_DOCUMENT * self.len()
    }

    /// Returns the text state of a document.
    pub fn text_state(&self, document: DocId) -> TextState {
        self.states[document.index()]
    }

    /// Returns the key of a document's text after normalisation. Equal texts have equal keys.
    pub fn text_key(&self, document: DocId) -> u128 {
        self.keys[document.index()]
    }

    /// Returns the summary of a document's features. The plan must have an exact join.
    #[inline]
    pub(crate) fn set_summary(&self, document: DocId) -> SetSummary {
        self.summaries[document.index()]
    }

    /// Returns the summary of a document's features, if the plan has an exact join.
    pub(crate) fn optional_summary(&self, document: DocId) -> Option<SetSummary> {
        self.summaries.get(document.index()).copied()
    }

    /// Prefetches the summary of a document, if there is one.
    #[inline]
    pub(crate) fn prefetch_summary(&self, document: DocId) {
        if let Some(summary) = self.summaries.get(document.index()) {
            prefetch(summary);
        }
    }

    /// Returns `true` if a document may have the same text key as a document of another store of the
    /// same plan.
    #[inline]
    pub(crate) fn may_have_equal_text(
        &self,
        document: DocId,
        other: &Self,
        of_other: DocId,
    ) -> bool {
        let summaries = (
            self.summaries.get(document.index()),
            other.summaries.get(of_other.index()),
        );
        match summaries {
            (Some(one), Some(other)) => one.may_have_equal_key(*other),
            _ => true,
        }
    }

    /// Returns the MinHash signature of a document, if it has one.
    pub fn minhash_signature(&self, document: DocId) -> Option<&[u32]> {
        match self.signature_at.get(document.index()) {
            None | Some(&NO_ENTRY) => None,
            Some(&at) => Some(&self.signatures[at as usize * self.slots..][..self.slots]),
        }
    }

    /// Returns the SimHash fingerprint of a fingerprintable document, if the plan needs it.
    pub fn fingerprint(&self, document: DocId) -> Option<u128> {
        let fingerprintable = self.text_state(document) == TextState::Fingerprintable;
        self.fingerprints
            .get(document.index())
            .filter(|_| fingerprintable)
    }

    /// Returns the distinct features of a short document, ascending, if they were kept.
    pub fn kept_features(&self, document: DocId) -> Option<&[u64]> {
        match self.features_at.get(document.index()) {
            None | Some(&NO_ENTRY) => None,
            Some(&at) => Some(
                &self.features[at as usize..][..self.summaries[document.index()].size as usize],
            ),
        }
    }

    /// Returns the outline of a document's sequence, which decides most pairs. The plan must compare
    /// sequences.
    #[inline]
    pub(crate) fn sequence_outline(&self, document: DocId) -> SequenceOutline {
        self.outlines[document.index()]
    }

    /// Returns the normalised characters of a document, if they were kept.
    pub(crate) fn characters(&self, document: DocId) -> Option<&[u32]> {
        let length = self.outlines.get(document.index())?.symbol_count()?;
        self.characters.get(document, length)
    }

    /// Returns the tokens of a document, if they were kept.
    pub(crate) fn kept_words(&self, document: DocId) -> Option<&[u64]> {
        let length = self.outlines.get(document.index())?.symbol_count()?;
        self.words.get(document, length)
    }

    /// Returns the key that a fingerprintable document has in common with its candidates, such as the
    /// signature of its longest sentences, if the plan needs one.
    pub fn equal_key(&self, document: DocId) -> Option<u64> {
        let fingerprintable = self.text_state(document) == TextState::Fingerprintable;
        self.equal_keys
            .get(document.index())
            .copied()
            .filter(|_| fingerprintable)
    }

    /// Returns the smallest hashes of a fingerprintable document, ascending, if the plan needs them.
    pub fn smallest_hashes(&self, document: DocId) -> Option<&[u64]> {
        let smallest = self.smallest.list(document.index())?;
        (!smallest.is_empty()).then_some(smallest)
    }

    /// Returns the form of a document with a hash of the value of each slot, or an empty list if it is of no form.
    /// Returns `None` if the store has no forms.
    pub(crate) fn form_values(&self, document: DocId) -> Option<&[u64]> {
        self.forms.list(document.index())
    }

    /// Returns the form of a document, if it is of one and the store has forms.
    pub fn form_id(&self, document: DocId) -> Option<FormId> {
        FormId::from_values(self.form_values(document)?)
    }

    /// Removes the forms of all documents, so that they can be added for another table.
    pub fn clear_forms(&mut self) {
        self.forms = ListColumn::default();
    }

    /// Adds the form of the next document that has none. `analysis` is that of its text, by a recipe with a table of
    /// forms.
    pub fn push_form(&mut self, analysis: &TextAnalysis<'_>) {
        self.forms
            .push_list(|values| analysis.append_form_values(values));
    }

    /// Adds the next document that has no form.
    pub fn push_no_form(&mut self) {
        self.forms.push_list(|_| {});
    }

    /// Appends the forms of another store, for the next documents that have none.
    pub fn append_forms(&mut self, other: &Self) {
        self.forms.append_column(&other.forms);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{MatchMethod, MatchSettings};
    use crate::recipe::{MinHashFamily, MinHashRecipe};
    use crate::text::{AnalysisScratch, TextAnalyzer};

    #[test]
    fn observing_features_changes_no_sketch() {
        let texts = [0, 1, 2, 3, 40, 400, 5000].map(|count| {
            let word = |at: usize| format!("w{} ", at % 1700);
            (0..count).map(word).collect::<String>()
        });
        let families = [
            MinHashFamily::FastSimilarity,
            MinHashFamily::Affine32,
            MinHashFamily::DatasketchLegacy,
        ];
        let methods = [
            MatchMethod::Auto,
            MatchMethod::Exact,
            MatchMethod::MinHash,
            MatchMethod::SimHash,
            MatchMethod::Join,
        ];
        for (family, method) in families
            .into_iter()
            .flat_map(|family| methods.map(|of| (family, of)))
        {
            let mut recipe = match family {
                MinHashFamily::DatasketchLegacy => Recipe::built_in("datasketch-legacy").unwrap(),
                _ => Recipe::default(),
            };
            recipe.minhash = MinHashRecipe {
                family,
                ..recipe.minhash
            };
            let settings = MatchSettings {
                method,
                ..MatchSettings::default()
            };
            let Ok(plan) = MatchPlan::new(&recipe, settings) else {
                continue;
            };
            let sketcher = DocumentSketcher::new(&recipe, &plan, Cpu::detect_best());
            let analyzer = TextAnalyzer::new(&recipe);
            let (mut plain, mut seen) = (sketcher.new_sketches(4096), sketcher.new_sketches(4096));
            let mut scratch = AnalysisScratch::default();
            for text in &texts {
                let analysis = analyzer.analyze_text(text, &mut scratch);
                let mut expected = Vec::new();
                analysis.append_features(&mut expected);
                let mut shown = Vec::new();
                sketcher.add_showing_features(&analysis, &mut seen, &mut |some| {
                    shown.extend_from_slice(some);
                });
                shown.sort_unstable();
                shown.dedup();
                assert_eq!(shown, expected, "{family:?} {method:?} {}", text.len());
                sketcher.add_document(&analysis, &mut plain);
            }
            for document in (0..texts.len()).map(|at| DocId(at as u32)) {
                assert_eq!(plain.text_key(document), seen.text_key(document));
                assert_eq!(
                    plain.minhash_signature(document),
                    seen.minhash_signature(document)
                );
                assert_eq!(plain.kept_features(document), seen.kept_features(document));
                assert_eq!(plain.fingerprint(document), seen.fingerprint(document));
            }
        }
    }
}
