//! What a run remembers of every document.
//!
//! Structure of arrays, in the order read. A document costs 17 bytes for its key and its state; 16 for
//! what decides most pairs of the exact join, a signature (4 bytes a slot) or a fingerprint (8 bytes, or
//! 16 above 64 bits) only where the plan asks for one. The
//! features of documents in the exact join are kept while a budget lasts, and so are the characters
//! or words of documents where sequences are compared, with 20 bytes of outline for each.

use crate::arch::{Cpu, prefetch};
use crate::plan::{Plan, Unit};
use crate::recipe::Recipe;
use crate::sketch::{MinHasher, See, SimHasher, smallest_features};
use crate::text::{Analysis, Extras, State};
use crate::types::DocId;
use crate::verify::Outline;

/// Makes what [`Sketches`] holds, as a plan asks.
#[derive(Clone, Debug)]
pub struct Sketcher {
    plan: Plan,
    minhash: Option<MinHasher>,
    simhash: Option<SimHasher>,
}

/// The size of a document with more features than the exact join reaches.
pub(crate) const LONG: u32 = u32::MAX;

const NONE: u32 = u32::MAX;

/// What decides most pairs at a glance: 16 bytes, one cache line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Brief {
    /// The lowest bits of the key.
    key: u32,
    /// Distinct features, or [`LONG`]; 0 unless rich.
    pub(crate) size: u32,
    /// Bit i says whether the number of features whose hash leads to bit i is odd; 0 if the
    /// document is [`LONG`].
    parities: u64,
}

impl Brief {
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

    /// The same without the bits of the key, which it can do without where no texts are equal.
    pub(crate) fn without_key(size: u32, parities: u64) -> Self {
        let key = 0;
        Self {
            key,
            size,
            parities,
        }
    }

    /// Bit i says whether the number of features whose hash leads to bit i is odd.
    pub(crate) fn parities(self) -> u64 {
        self.parities
    }

    /// Whether two documents may have the same key.
    pub(crate) fn may_equal(self, other: Self) -> bool {
        self.key == other.key
    }

    /// The most features that two documents which are not long can share: every bit in which the
    /// parities differ is a feature that only one has (Sandes, Teodoro and Melo, "Bitmap Filter",
    /// 2020).
    pub(crate) fn most_shared(self, other: Self) -> usize {
        let alone = (self.parities ^ other.parities).count_ones();
        ((self.size + other.size - alone) / 2)
            .min(self.size)
            .min(other.size) as usize
    }
}

/// What a run remembers of its documents.
#[derive(Clone, Debug, Default)]
pub struct Sketches {
    keys: Vec<u128>,
    states: Vec<State>,
    briefs: Vec<Brief>,
    signature_at: Vec<u32>,
    signatures: Vec<u32>,
    slots: usize,
    fingerprints: Fingerprints,
    features_at: Vec<u32>,
    features: Vec<u64>,
    feature_budget: usize,
    /// What is compared of sequences.
    outlines: Vec<Outline>,
    characters: Held<u32>,
    words: Held<u64>,
    sentences: Vec<u64>,
    /// The smallest hashes of all documents one after another, and where those of each end.
    smallest: Vec<u64>,
    smallest_ends: Vec<usize>,
}

/// Fingerprints in no more room than their bits need.
#[derive(Clone, Debug)]
enum Fingerprints {
    Narrow(Vec<u64>),
    Wide(Vec<u128>),
}

impl Default for Fingerprints {
    fn default() -> Self {
        Self::Narrow(Vec::new())
    }
}

impl Fingerprints {
    fn of_bits(bits: u32) -> Self {
        if bits <= u64::BITS {
            Self::default()
        } else {
            Self::Wide(Vec::new())
        }
    }

    fn push(&mut self, fingerprint: u128) {
        match self {
            Self::Narrow(fingerprints) => fingerprints.push(fingerprint as u64),
            Self::Wide(fingerprints) => fingerprints.push(fingerprint),
        }
    }

    fn append(&mut self, other: &Self) {
        match (self, other) {
            (Self::Narrow(to), Self::Narrow(from)) => to.extend_from_slice(from),
            (to, Self::Narrow(from)) => from.iter().for_each(|&it| to.push(it.into())),
            (to, Self::Wide(from)) => from.iter().for_each(|&it| to.push(it)),
        }
    }

    fn get(&self, at: usize) -> Option<u128> {
        match self {
            Self::Narrow(fingerprints) => fingerprints.get(at).copied().map(u128::from),
            Self::Wide(fingerprints) => fingerprints.get(at).copied(),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Narrow(fingerprints) => 8 * fingerprints.capacity(),
            Self::Wide(fingerprints) => 16 * fingerprints.capacity(),
        }
    }

    fn shrink_to_fit(&mut self) {
        match self {
            Self::Narrow(fingerprints) => fingerprints.shrink_to_fit(),
            Self::Wide(fingerprints) => fingerprints.shrink_to_fit(),
        }
    }
}

/// Lists of documents that are kept while there is room.
#[derive(Clone, Debug, Default)]
struct Held<T> {
    at: Vec<u32>,
    items: Vec<T>,
}

impl<T: Copy> Held<T> {
    /// Adds the list of the next document, which is kept if all are then at most `room` items.
    fn push(&mut self, list: &[T], room: usize) {
        let start = self.items.len();
        let fits = !list.is_empty() && start + list.len() <= room.min(NONE as usize);
        if fits {
            self.items.extend_from_slice(list);
        }
        self.at.push(if fits { start as u32 } else { NONE });
    }

    fn append(&mut self, other: &Self, room: usize) {
        let start = self.items.len();
        let fits = start + other.items.len() <= room.min(NONE as usize);
        let moved = |&at: &u32| match at {
            NONE => NONE,
            at if fits => at + start as u32,
            _ => NONE,
        };
        self.at.extend(other.at.iter().map(moved));
        if fits {
            self.items.extend_from_slice(&other.items);
        }
    }

    fn get(&self, document: DocId, length: usize) -> Option<&[T]> {
        match self.at.get(document.index()) {
            None | Some(&NONE) => None,
            Some(&at) => Some(&self.items[at as usize..][..length]),
        }
    }
}

/// So many features are kept besides the budget for every document there is.
const FEATURES_A_DOCUMENT: usize = 15;

impl Sketcher {
    /// A sketcher for a recipe and its plan.
    pub fn new(recipe: &Recipe, plan: &Plan, cpu: Cpu) -> Self {
        Self {
            plan: *plan,
            minhash: plan.bands().map(|_| MinHasher::new(&recipe.minhash, cpu)),
            simhash: plan
                .distance()
                .map(|_| SimHasher::new(&recipe.simhash, cpu)),
        }
    }

    /// What the analyses must hold that are [added](Self::add).
    pub fn extras(&self) -> Extras {
        let by_characters = self.plan.settings().unit == Unit::Characters;
        Extras {
            characters: by_characters && self.plan.of_sequences().is_some(),
            sentences: self.plan.sentences(),
        }
    }

    /// An empty store that keeps up to `feature_budget` features of short documents (8 bytes each),
    /// and 15 more for every document; none if the budget is 0. Where sequences are compared, as many
    /// bytes of characters or words are kept besides.
    pub fn sketches(&self, feature_budget: usize) -> Sketches {
        let slots = self.minhash.as_ref().map_or(0, MinHasher::slots);
        Sketches {
            slots,
            feature_budget,
            fingerprints: Fingerprints::of_bits(self.plan.bits()),
            ..Sketches::default()
        }
    }

    /// Adds a document, of which the analysis holds the [extras](Self::extras).
    pub fn add(&self, analysis: &Analysis<'_>, to: &mut Sketches) {
        self.add_parts(analysis, to, &mut |_| ());
    }

    /// The same for somebody who wants the features too: `see` is called with all features of a rich
    /// document, some at a time, some perhaps more than once. They are those that the sketches were
    /// made of, where that is how sketches are made.
    pub fn add_seen(
        &self,
        analysis: &Analysis<'_>,
        to: &mut Sketches,
        see: &mut dyn FnMut(&[u64]),
    ) {
        let seen = self.add_parts(analysis, to, see);
        if !seen && analysis.state == State::Rich {
            analysis.chunks(see);
        }
    }

    /// Returns whether the features were shown.
    fn add_parts(&self, analysis: &Analysis<'_>, to: &mut Sketches, see: See<'_>) -> bool {
        to.keys.push(analysis.key);
        to.states.push(analysis.state);
        let size = self.add_features(analysis, to, see);
        let mut seen = size != LONG;
        if let Some(minhash) = &self.minhash {
            let short = self.plan.join().map_or(0, |join| join.short);
            let at = if analysis.state == State::Rich && size as usize > short {
                let start = to.signatures.len();
                to.signatures.resize(start + to.slots, 0);
                let signature = &mut to.signatures[start..];
                if seen {
                    minhash.sign(analysis, signature);
                } else {
                    minhash.sign_seen(analysis, signature, see);
                    seen = minhash.works_on_features();
                }
                (start / to.slots) as u32
            } else {
                NONE
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
                && *state == State::Rich
            {
                // Where no feature votes there is nothing to compare but the whole.
                *state = State::Poor;
            }
            to.fingerprints.push(fingerprint.unwrap_or(0));
        }
        if self.plan.sentences().is_some() {
            to.sentences.push(analysis.sentences().unwrap_or(0));
        }
        if let Some(smallest) = self.plan.smallest() {
            if analysis.state == State::Rich {
                smallest_features(analysis, smallest.kept, &mut to.smallest);
            }
            to.smallest_ends.push(to.smallest.len());
        }
        if self.plan.of_sequences().is_some() {
            self.add_sequence(analysis, to);
        }
        seen
    }

    fn add_sequence(&self, analysis: &Analysis<'_>, to: &mut Sketches) {
        let room = to.feature_room();
        match self.plan.settings().unit {
            Unit::Characters => {
                to.outlines.push(Outline::new(analysis.characters()));
                to.characters.push(analysis.characters(), 2 * room);
            }
            Unit::Words => {
                to.outlines.push(Outline::new(analysis.tokens()));
                to.words.push(analysis.tokens(), room);
            }
        }
    }

    /// Counts the distinct features of a document as far as the join reaches, shows and keeps them.
    fn add_features(&self, analysis: &Analysis<'_>, to: &mut Sketches, see: See<'_>) -> u32 {
        let Some(join) = self.plan.join() else {
            return if analysis.state == State::Rich {
                LONG
            } else {
                0
            };
        };
        let start = to.features.len();
        let short = !analysis.has_more_features_than(join.reach);
        if short {
            analysis.features(&mut to.features);
            see(&to.features[start..]);
        }
        let features = &to.features[start..];
        let size = if short { features.len() as u32 } else { LONG };
        to.briefs.push(Brief::new(analysis.key, size, features));
        let kept = !features.is_empty() && to.features.len() <= to.feature_room();
        if !kept {
            to.features.truncate(start);
        }
        if to.feature_budget > 0 {
            to.features_at.push(if kept { start as u32 } else { NONE });
        }
        size
    }
}

/// The numbers of states in files.
pub(crate) const STATES: [State; 4] = [State::Rich, State::Poor, State::Blank, State::Empty];

/// Writing the sketches of one document, and reading them again under the same recipe and plan.
/// Sequences are not written: they take as much room as the text.
impl Sketcher {
    /// Whether all that is compared at a glance can be written.
    pub(crate) fn can_write(&self) -> bool {
        self.plan.of_sequences().is_none()
    }

    /// Appends the sketches of a store's only document.
    pub(crate) fn write(&self, from: &Sketches, into: &mut Vec<u8>) {
        let document = DocId(0);
        let state = from.state(document);
        into.extend(from.key(document).to_le_bytes());
        into.push(STATES.iter().position(|&it| it == state).unwrap_or(0) as u8);
        if self.plan.join().is_some() {
            into.extend(from.brief(document).size.to_le_bytes());
            let features = from.features(document).unwrap_or_default();
            features
                .iter()
                .for_each(|feature| into.extend(feature.to_le_bytes()));
        }
        if self.minhash.is_some() {
            let signature = from.signature(document);
            into.push(u8::from(signature.is_some()));
            let slots = signature.unwrap_or_default().iter();
            slots.for_each(|slot| into.extend(slot.to_le_bytes()));
        }
        if self.simhash.is_some() {
            let code = from.fingerprints.get(0).unwrap_or(0);
            into.extend(code.to_le_bytes());
        }
        if self.plan.sentences().is_some() {
            into.extend(from.sentences[0].to_le_bytes());
        }
        if self.plan.smallest().is_some() {
            let hashes = from.smallest(document).unwrap_or_default();
            into.extend((hashes.len() as u32).to_le_bytes());
            hashes
                .iter()
                .for_each(|hash| into.extend(hash.to_le_bytes()));
        }
    }

    /// Makes a store hold one document alone, of which key, state, all features and, if it has more
    /// than the join calls short, its signature are known. Where sequences are compared it lacks their
    /// outlines.
    pub(crate) fn restore(
        &self,
        (key, state): (u128, State),
        features: &[u64],
        signature: Option<&[u32]>,
        to: &mut Sketches,
    ) {
        to.slots = self.minhash.as_ref().map_or(0, MinHasher::slots);
        to.keys.clear();
        to.keys.push(key);
        to.states.clear();
        to.states.push(state);
        let mut size = features.len() as u32;
        if let Some(join) = self.plan.join() {
            let is_long = features.len() > join.reach;
            let joined = if is_long { &[] } else { features };
            size = if is_long { LONG } else { size };
            to.briefs.clear();
            to.briefs.push(Brief::new(key, size, joined));
        }
        if self.minhash.is_some() {
            let short = self.plan.join().map_or(0, |join| join.short);
            let signature = signature.filter(|_| size as usize > short);
            to.signatures.clear();
            to.signatures
                .extend_from_slice(signature.unwrap_or_default());
            to.signature_at.clear();
            to.signature_at
                .push(if signature.is_some() { 0 } else { NONE });
        }
    }

    /// The store of one document whose sketches were written; None if these are none of this plan.
    pub(crate) fn read(&self, bytes: &[u8], feature_budget: usize) -> Option<Sketches> {
        let mut reader = Reader(bytes);
        let mut to = self.sketches(feature_budget);
        let key = u128::from_le_bytes(reader.array()?);
        to.keys.push(key);
        to.states
            .push(*STATES.get(usize::from(reader.array::<1>()?[0]))?);
        if let Some(join) = self.plan.join() {
            let size = u32::from_le_bytes(reader.array()?);
            if size != LONG && size as usize > join.reach {
                return None;
            }
            let features = if size == LONG { 0 } else { size };
            let features = reader.list(features as usize, u64::from_le_bytes)?;
            to.briefs.push(Brief::new(key, size, &features));
            let held = if features.is_empty() { NONE } else { 0 };
            to.features_at.push(held);
            to.features = features;
        }
        if self.minhash.is_some() {
            let there = reader.array::<1>()?[0] != 0;
            let slots = if there { to.slots } else { 0 };
            to.signatures = reader.list(slots, u32::from_le_bytes)?;
            to.signature_at.push(if there { 0 } else { NONE });
        }
        if self.simhash.is_some() {
            to.fingerprints.push(u128::from_le_bytes(reader.array()?));
        }
        if self.plan.sentences().is_some() {
            to.sentences.push(u64::from_le_bytes(reader.array()?));
        }
        if self.plan.smallest().is_some() {
            let count = u32::from_le_bytes(reader.array()?);
            to.smallest = reader.list(count as usize, u64::from_le_bytes)?;
            to.smallest_ends.push(to.smallest.len());
        }
        reader.0.is_empty().then_some(to)
    }
}

/// Bytes that are read from the front.
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl Reader<'_> {
    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    pub(crate) fn list<T, const N: usize>(
        &mut self,
        count: usize,
        read: fn([u8; N]) -> T,
    ) -> Option<Vec<T>> {
        if self.0.len() / N < count {
            return None;
        }
        (0..count).map(|_| self.array().map(read)).collect()
    }
}

impl Sketches {
    /// How many documents there are.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Adds the documents of another store behind those of this one.
    pub fn append(&mut self, other: &Sketches) {
        let rebased = |at: u32, by: usize| if at == NONE { NONE } else { at + by as u32 };
        let signatures = self.signatures.len().checked_div(self.slots).unwrap_or(0);
        self.signature_at
            .extend(other.signature_at.iter().map(|&at| rebased(at, signatures)));
        self.signatures.extend_from_slice(&other.signatures);
        let fits = self.features.len() + other.features.len() <= self.feature_room();
        let features = self.features.len();
        let moved = |&at: &u32| if fits { rebased(at, features) } else { NONE };
        if self.feature_budget > 0 {
            self.features_at.extend(other.features_at.iter().map(moved));
        }
        if fits {
            self.features.extend_from_slice(&other.features);
        }
        let room = self.feature_room();
        self.characters.append(&other.characters, 2 * room);
        self.words.append(&other.words, room);
        self.outlines.extend_from_slice(&other.outlines);
        self.sentences.extend_from_slice(&other.sentences);
        let smallest = self.smallest.len();
        self.smallest_ends
            .extend(other.smallest_ends.iter().map(|end| smallest + end));
        self.smallest.extend_from_slice(&other.smallest);
        self.keys.extend_from_slice(&other.keys);
        self.states.extend_from_slice(&other.states);
        self.briefs.extend_from_slice(&other.briefs);
        self.fingerprints.append(&other.fingerprints);
    }

    /// Forgets all documents and holds this one, of which it knows what names its text.
    pub(crate) fn name_only(&mut self, analysis: &Analysis<'_>) {
        (self.keys, self.states) = (vec![analysis.key], vec![analysis.state]);
        self.sentences = analysis.sentences().into_iter().collect();
    }

    /// Adds a document of which only the fingerprint is known.
    pub(crate) fn push_fingerprint(&mut self, fingerprint: u128) {
        self.keys.push(fingerprint);
        self.states.push(State::Rich);
        self.fingerprints.push(fingerprint);
    }

    /// Gives back the room that is not used.
    pub(crate) fn shrink_to_fit(&mut self) {
        self.keys.shrink_to_fit();
        self.states.shrink_to_fit();
        self.briefs.shrink_to_fit();
        self.signature_at.shrink_to_fit();
        self.signatures.shrink_to_fit();
        self.fingerprints.shrink_to_fit();
        self.outlines.shrink_to_fit();
        self.sentences.shrink_to_fit();
        self.smallest.shrink_to_fit();
        self.smallest_ends.shrink_to_fit();
    }

    /// Bytes of memory of sketches: all but lists that are kept within a budget.
    pub fn bytes(&self) -> u64 {
        let (signatures, smallest) = (self.signatures.capacity(), self.smallest.capacity());
        let bytes = self.keys.capacity() * size_of::<u128>()
            + self.states.capacity()
            + self.briefs.capacity() * size_of::<Brief>()
            + 4 * (self.signature_at.capacity() + signatures)
            + self.fingerprints.bytes()
            + self.outlines.capacity() * size_of::<Outline>()
            + 8 * (self.sentences.capacity() + smallest + self.smallest_ends.capacity());
        bytes as u64
    }

    fn feature_room(&self) -> usize {
        if self.feature_budget == 0 {
            return 0;
        }
        self.feature_budget + FEATURES_A_DOCUMENT * self.len()
    }

    /// How much a document offers.
    pub fn state(&self, document: DocId) -> State {
        self.states[document.index()]
    }

    /// The name of a document's text after normalisation.
    pub fn key(&self, document: DocId) -> u128 {
        self.keys[document.index()]
    }

    /// What decides most pairs of a document, if there is an exact join.
    #[inline]
    pub(crate) fn brief(&self, document: DocId) -> Brief {
        self.briefs[document.index()]
    }

    /// The same where it is not known whether there is a join.
    pub(crate) fn brief_of(&self, document: DocId) -> Option<Brief> {
        self.briefs.get(document.index()).copied()
    }

    /// Asks the memory for the brief of a document, if there are briefs.
    #[inline]
    pub(crate) fn fetch(&self, document: DocId) {
        if let Some(brief) = self.briefs.get(document.index()) {
            prefetch(brief);
        }
    }

    /// Whether a document may have the key of one of another store of the same plan.
    #[inline]
    pub(crate) fn may_equal(&self, document: DocId, other: &Self, of_other: DocId) -> bool {
        let briefs = (
            self.briefs.get(document.index()),
            other.briefs.get(of_other.index()),
        );
        match briefs {
            (Some(one), Some(other)) => one.may_equal(*other),
            _ => true,
        }
    }

    /// The MinHash signature of a document that has one.
    pub fn signature(&self, document: DocId) -> Option<&[u32]> {
        match self.signature_at.get(document.index()) {
            None | Some(&NONE) => None,
            Some(&at) => Some(&self.signatures[at as usize * self.slots..][..self.slots]),
        }
    }

    /// The SimHash fingerprint of a rich document, if the plan asked for it.
    pub fn fingerprint(&self, document: DocId) -> Option<u128> {
        let rich = self.state(document) == State::Rich;
        self.fingerprints.get(document.index()).filter(|_| rich)
    }

    /// The distinct features of a short document, ascending, if they were kept.
    pub fn features(&self, document: DocId) -> Option<&[u64]> {
        match self.features_at.get(document.index()) {
            None | Some(&NONE) => None,
            Some(&at) => {
                Some(&self.features[at as usize..][..self.briefs[document.index()].size as usize])
            }
        }
    }

    /// What decides most pairs of sequences, if the plan compares these.
    #[inline]
    pub(crate) fn outline(&self, document: DocId) -> Outline {
        self.outlines[document.index()]
    }

    /// The normalised characters of a document, if they were kept.
    pub(crate) fn characters(&self, document: DocId) -> Option<&[u32]> {
        let length = self.outlines.get(document.index())?.length()?;
        self.characters.get(document, length)
    }

    /// The tokens of a document, if they were kept.
    pub(crate) fn words(&self, document: DocId) -> Option<&[u64]> {
        let length = self.outlines.get(document.index())?.length()?;
        self.words.get(document, length)
    }

    /// The signature of the longest sentences of a rich document, if the plan asked for it.
    pub fn sentences(&self, document: DocId) -> Option<u64> {
        let rich = self.state(document) == State::Rich;
        self.sentences
            .get(document.index())
            .copied()
            .filter(|_| rich)
    }

    /// The smallest hashes of a rich document, ascending, if the plan asked for them.
    pub fn smallest(&self, document: DocId) -> Option<&[u64]> {
        let end = *self.smallest_ends.get(document.index())?;
        let before = document.index().checked_sub(1);
        let start = before.map_or(0, |before| self.smallest_ends[before]);
        (start < end).then(|| &self.smallest[start..end])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Method, Settings};
    use crate::recipe::{MinHashFamily, MinHashRecipe};
    use crate::text::{Analyzer, Scratch};

    #[test]
    fn all_features_are_shown_and_sketches_stay_the_same() {
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
            Method::Auto,
            Method::Exact,
            Method::MinHash,
            Method::SimHash,
            Method::Join,
        ];
        for (family, method) in families
            .into_iter()
            .flat_map(|it| methods.map(|of| (it, of)))
        {
            let mut recipe = match family {
                MinHashFamily::DatasketchLegacy => Recipe::named("datasketch-legacy").unwrap(),
                _ => Recipe::default(),
            };
            recipe.minhash = MinHashRecipe {
                family,
                ..recipe.minhash
            };
            let settings = Settings {
                method,
                ..Settings::default()
            };
            let Ok(plan) = Plan::new(&recipe, settings) else {
                continue;
            };
            let sketcher = Sketcher::new(&recipe, &plan, Cpu::best());
            let analyzer = Analyzer::new(&recipe);
            let (mut plain, mut seen) = (sketcher.sketches(4096), sketcher.sketches(4096));
            let mut scratch = Scratch::default();
            for text in &texts {
                let analysis = analyzer.analyze(text, &mut scratch);
                let mut expected = Vec::new();
                analysis.features(&mut expected);
                let mut shown = Vec::new();
                sketcher.add_seen(&analysis, &mut seen, &mut |some| {
                    shown.extend_from_slice(some);
                });
                shown.sort_unstable();
                shown.dedup();
                assert_eq!(shown, expected, "{family:?} {method:?} {}", text.len());
                sketcher.add(&analysis, &mut plain);
            }
            for document in (0..texts.len()).map(|at| DocId(at as u32)) {
                assert_eq!(plain.key(document), seen.key(document));
                assert_eq!(plain.signature(document), seen.signature(document));
                assert_eq!(plain.features(document), seen.features(document));
                assert_eq!(plain.fingerprint(document), seen.fingerprint(document));
            }
        }
    }
}
