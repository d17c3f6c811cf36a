//! MinHash in two families of its own, and in the two of the Python package `datasketch`.
//!
//! The share of equal slots of two signatures is an unbiased estimate of the Jaccard index of the two sets.
//!
//! - [`MinHashFamily::FastSimilarity`] follows Dahlgaard, Knudsen and Thorup, "Fast Similarity Sketching"
//!   (2017). In round i every feature goes to one slot with a value in [i, i + 1), and the rounds end when
//!   every slot is filled. A large set therefore costs one round, and a small set has about half the variance
//!   of independent functions.
//! - [`MinHashFamily::Affine32`] is the textbook version: slot j is the minimum of `a_j · h + b_j` over
//!   32-bit hashes h.
//! - The families of `datasketch` are the textbook version with that package's numbers and arithmetic. They
//!   need the hashes of its scheme.
//!
//! A slot has 32 bits. Repeated features do not change a signature.

use super::datasketch_functions::{PermutationFunctions, finalize_hash, legacy_value};
use crate::arch::{Arch, Cpu, Kernel};
use crate::hash::mix_bits;
use crate::recipe::{MinHashFamily, MinHashRecipe};
use crate::text::{CHUNK_FEATURES, TextAnalysis};

/// Computes signatures of one family and number of slots.
///
/// ```
/// use lookalike::sketch::{MinHasher, equal_slots};
/// use lookalike::text::{TextAnalyzer, AnalysisScratch};
/// use lookalike::{Cpu, Recipe};
///
/// let recipe = Recipe::built_in("default")?;
/// let (analyzer, hasher) = (TextAnalyzer::new(&recipe), MinHasher::new(&recipe.minhash, Cpu::detect_best()));
/// let [a, b] = ["Two birds sat on the roof.", "two birds sat on the roof"].map(|text| {
///     let mut signature = vec![0; hasher.slot_count()];
///     hasher.write_signature(&analyzer.analyze_text(text, &mut AnalysisScratch::default()), &mut signature);
///     signature
/// });
/// assert_eq!(equal_slots(&a, &b), 128);
/// # Ok::<_, lookalike::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct MinHasher {
    slots: usize,
    functions: FamilyFunctions,
    cpu: Cpu,
}

/// The usual number of slots, which is also the largest for FastSimilaritySketch.
const USUAL_SLOTS: usize = 128;

/// The functions of the slots.
#[derive(Clone, Debug)]
enum FamilyFunctions {
    FastSimilarity,
    Affine(AffineFunctions<u32>),
    Legacy(AffineFunctions<u64>),
}

/// Multiplier and summand of every slot, padded to whole groups of slots.
#[derive(Clone, Debug)]
struct AffineFunctions<T> {
    factors: Vec<T>,
    summands: Vec<T>,
    /// `true` if the functions take the hashes of `datasketch`, which are the lower halves of the tokens.
    foreign: bool,
}

impl<T: Copy + Default> AffineFunctions<T> {
    fn new(factors: Vec<T>, summands: Vec<T>, foreign: bool) -> Self {
        let filled = |mut values: Vec<T>| {
            values.resize(values.len().next_multiple_of(SLOTS_AT_ONCE), T::default());
            values
        };
        Self {
            factors: filled(factors),
            summands: filled(summands),
            foreign,
        }
    }
}

impl FamilyFunctions {
    fn new(recipe: &MinHashRecipe) -> Self {
        let (family, slots) = (recipe.family, recipe.slots as usize);
        if let Some(drawn) = PermutationFunctions::new(family, slots, recipe.seed.unwrap_or(1)) {
            let PermutationFunctions { factors, summands } = drawn;
            let narrow = |values: Vec<u64>| values.into_iter().map(|value| value as u32).collect();
            return if family == MinHashFamily::DatasketchLegacy {
                Self::Legacy(AffineFunctions::new(factors, summands, true))
            } else {
                Self::Affine(AffineFunctions::new(
                    narrow(factors),
                    narrow(summands),
                    true,
                ))
            };
        }
        if family == MinHashFamily::FastSimilarity {
            return Self::FastSimilarity;
        }
        let number = |at: usize| mix_bits(0x6d69_6e68_6173_6800 ^ at as u64) as u32;
        // Slots below 128 use the numbers 0 to 255: all factors, then all summands. Every later slot uses two
        // numbers in a row.
        let place = |slot: usize, half: usize| match slot {
            ..USUAL_SLOTS => slot + half * USUAL_SLOTS,
            _ => 2 * slot + half,
        };
        let factors = (0..slots).map(|slot| number(place(slot, 0)) | 1).collect();
        let summands = (0..slots).map(|slot| number(place(slot, 1))).collect();
        Self::Affine(AffineFunctions::new(factors, summands, false))
    }
}

/// Value of a slot that no feature has reached.
const UNFILLED_SLOT: u32 = u32::MAX;

/// Number of rounds that assign features to random slots. After them, each slot that is still empty gets a
/// round of its own. The number is the same for all texts, so that the tags of any two signatures agree.
const RANDOM_ROUNDS: u32 = 128;

impl MinHasher {
    /// Creates a hasher for a recipe.
    pub fn new(recipe: &MinHashRecipe, cpu: Cpu) -> Self {
        Self {
            slots: recipe.slots as usize,
            functions: FamilyFunctions::new(recipe),
            cpu,
        }
    }

    /// Returns the number of slots of a signature.
    pub fn slot_count(&self) -> usize {
        self.slots
    }

    /// Writes the signature of a text to `signature`, which must have [`slot_count`](Self::slot_count)
    /// slots. Returns `false` for a text without features; the contents of `signature` are then
    /// meaningless.
    pub fn write_signature(&self, analysis: &TextAnalysis<'_>, signature: &mut [u32]) -> bool {
        self.write_signature_showing(analysis, signature, &mut |_| ())
    }

    /// Writes the same signature and also passes the features on, so that the caller need not compute them
    /// again. If the family [works on features](Self::works_on_features), `see` is called with all of them in
    /// the order of the text, with repetitions, one chunk at a time.
    pub(crate) fn write_signature_showing(
        &self,
        analysis: &TextAnalysis<'_>,
        signature: &mut [u32],
        see: FeatureObserver<'_>,
    ) -> bool {
        assert_eq!(
            signature.len(),
            self.slots,
            "a signature has as many slots as its hasher"
        );
        signature.fill(UNFILLED_SLOT);
        if analysis.feature_count() == 0 {
            return false;
        }
        match &self.functions {
            FamilyFunctions::FastSimilarity => self.cpu.run(FastSimilarity {
                analysis,
                signature,
                see,
            }),
            FamilyFunctions::Affine(functions) => self.cpu.run(LeastValuesKernel {
                analysis,
                functions,
                signature,
                see,
            }),
            FamilyFunctions::Legacy(functions) => self.cpu.run(LeastValuesKernel {
                analysis,
                functions,
                signature,
                see,
            }),
        }
        true
    }

    /// Writes the signature that the tool of the recipe's scheme gives to a text. It also exists for a text
    /// without features: all its slots are empty (2³² − 1). Without a scheme, and for tools without
    /// signatures, this is the same as [`write_signature`](Self::write_signature).
    pub fn original_signature(&self, analysis: &TextAnalysis<'_>, signature: &mut [u32]) -> bool {
        self.write_signature(analysis, signature) || !self.works_on_features()
    }

    /// Returns `true` if signatures are computed from the recipe's features, and not from the hashes of
    /// another tool.
    pub(crate) fn works_on_features(&self) -> bool {
        match &self.functions {
            FamilyFunctions::FastSimilarity => true,
            FamilyFunctions::Affine(functions) => !functions.foreign,
            FamilyFunctions::Legacy(functions) => !functions.foreign,
        }
    }
}

/// A callback that receives features as they are computed.
pub(crate) type FeatureObserver<'a> = &'a mut dyn FnMut(&[u64]);

struct FastSimilarity<'a, 't> {
    analysis: &'a TextAnalysis<'t>,
    signature: &'a mut [u32],
    see: FeatureObserver<'a>,
}

impl Kernel for FastSimilarity<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arch>(self, _arch: A) {
        let Self {
            analysis,
            signature,
            see,
        } = self;
        let in_one = analysis.feature_count() <= CHUNK_FEATURES;
        analysis.visit_chunks(|features| {
            see(features);
            SamplingRound::Random(0).apply_round(features, signature);
            if in_one {
                more_rounds(signature, |round, signature| {
                    round.apply_round(features, signature)
                });
            }
        });
        if !in_one {
            more_rounds(signature, |round, signature| {
                analysis.visit_chunks(|features| round.apply_round(features, signature));
            });
        }
    }
}

/// Runs the rounds after the first, until every slot is filled. These are few if the set is large compared
/// with the number of slots. `apply` applies a round to all features.
#[inline(always)]
fn more_rounds(signature: &mut [u32], mut apply: impl FnMut(SamplingRound, &mut [u32])) {
    for round in 1..RANDOM_ROUNDS {
        if !signature.contains(&UNFILLED_SLOT) {
            return;
        }
        apply(SamplingRound::Random(round), signature);
    }
    for slot in 0..signature.len() {
        if signature[slot] == UNFILLED_SLOT {
            apply(SamplingRound::Own(slot), signature);
        }
    }
}

/// A pass over all features.
#[derive(Clone, Copy)]
enum SamplingRound {
    /// Every feature goes to one slot.
    Random(u32),
    /// Every feature goes to this slot.
    Own(usize),
}

impl SamplingRound {
    #[inline(always)]
    fn apply_round(self, features: &[u64], signature: &mut [u32]) {
        match (self, <&mut [u32; USUAL_SLOTS]>::try_from(&mut *signature)) {
            // The number of slots is a constant here, so that the compiler can optimise for it.
            (Self::Random(0), Ok(signature)) => first_round(features, signature),
            (Self::Random(round), _) => random_round(round, features, signature),
            (Self::Own(slot), _) => {
                let round = RANDOM_ROUNDS + slot as u32;
                let least = features
                    .iter()
                    .map(|&feature| tag_round(round, round_hash(round, feature)));
                signature[slot] = least.fold(signature[slot], u32::min);
            }
        }
    }
}

/// Number of signatures that take consecutive features in turn.
const SIGNATURES_SIDE_BY_SIDE: usize = 4;

/// Runs the first round for a signature of the usual length. A CPU predicts that reading a slot need not wait
/// for the previous write, and pays a penalty if both are the same slot. Consecutive features therefore go to
/// separate signatures, which are merged at the end.
#[inline(always)]
fn first_round(features: &[u64], signature: &mut [u32; USUAL_SLOTS]) {
    if features.len() < USUAL_SLOTS {
        return random_round(0, features, signature);
    }
    let mut lanes = [[UNFILLED_SLOT; USUAL_SLOTS]; SIGNATURES_SIDE_BY_SIDE];
    let (groups, rest) = features.as_chunks::<SIGNATURES_SIDE_BY_SIDE>();
    for group in groups {
        for (lane, &feature) in lanes.iter_mut().zip(group) {
            let slot = (feature >> (64 - USUAL_SLOTS.ilog2())) as usize;
            lane[slot] = lane[slot].min(tag_round(0, feature));
        }
    }
    random_round(0, rest, signature);
    for lane in &lanes {
        for (slot, &value) in signature.iter_mut().zip(lane) {
            *slot = value.min(*slot);
        }
    }
}

/// Runs a round in which every feature goes to one slot.
#[inline(always)]
fn random_round(round: u32, features: &[u64], signature: &mut (impl AsMut<[u32]> + ?Sized)) {
    let signature = signature.as_mut();
    let slots = signature.len() as u64;
    for &feature in features {
        let hash = round_hash(round, feature);
        let slot = (((hash >> 32) * slots) >> 32) as usize;
        let value = tag_round(round, hash);
        signature[slot] = signature[slot].min(value);
    }
}

/// Returns the hash of a feature in a round. The first round uses the feature itself, because it is already
/// mixed.
#[inline(always)]
fn round_hash(round: u32, feature: u64) -> u64 {
    if round == 0 {
        feature
    } else {
        mix_bits(feature ^ u64::from(round) << 32)
    }
}

/// Returns the value of a slot: the round in the upper byte and a rank of 24 bits below it. It is never
/// [`UNFILLED_SLOT`].
#[inline(always)]
fn tag_round(round: u32, hash: u64) -> u32 {
    round << 24 | (hash as u32 & 0x00ff_ffff).min(0x00ff_fffe)
}

struct LeastValuesKernel<'a, 't, T> {
    analysis: &'a TextAnalysis<'t>,
    functions: &'a AffineFunctions<T>,
    signature: &'a mut [u32],
    see: FeatureObserver<'a>,
}

/// Number of slots that fit into the registers of a CPU together.
const SLOTS_AT_ONCE: usize = 64;

/// A number type of affine functions.
trait AffineNumber: Copy + Default {
    /// Returns the value of the function with this factor and summand for a hash.
    fn apply_function(factor: Self, summand: Self, hash: u32) -> u32;
}

impl AffineNumber for u32 {
    #[inline(always)]
    fn apply_function(factor: u32, summand: u32, hash: u32) -> u32 {
        factor.wrapping_mul(hash).wrapping_add(summand)
    }
}

impl AffineNumber for u64 {
    #[inline(always)]
    fn apply_function(factor: u64, summand: u64, hash: u32) -> u32 {
        legacy_value(factor, summand, hash.into())
    }
}

impl<T: AffineNumber> Kernel for LeastValuesKernel<'_, '_, T> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arch>(self, _arch: A) {
        let Self {
            analysis,
            functions,
            signature,
            see,
        } = self;
        let (factors, _) = functions.factors.as_chunks::<SLOTS_AT_ONCE>();
        let (summands, _) = functions.summands.as_chunks::<SLOTS_AT_ONCE>();
        let groups = || factors.iter().zip(summands);
        let foreign = |hash: &u64| {
            let hash = *hash as u32;
            // `datasketch` before 2.0 does not finalise hashes.
            if size_of::<T>() == size_of::<u32>() {
                finalize_hash(hash)
            } else {
                hash
            }
        };
        if functions.foreign {
            for ((factors, summands), slots) in groups().zip(signature.chunks_mut(SLOTS_AT_ONCE)) {
                lower_to_least(
                    factors,
                    summands,
                    slots,
                    analysis.token_values().iter().map(foreign),
                );
            }
            return;
        }
        analysis.visit_chunks(|features| {
            see(features);
            for ((factors, summands), slots) in groups().zip(signature.chunks_mut(SLOTS_AT_ONCE)) {
                lower_to_least(
                    factors,
                    summands,
                    slots,
                    features.iter().map(|feature| (feature >> 32) as u32),
                );
            }
        });
    }
}

/// Lowers a group of slots to the minima of their functions. The last group of a signature may have fewer
/// slots.
#[inline(always)]
fn lower_to_least<T: AffineNumber>(
    factors: &[T; SLOTS_AT_ONCE],
    summands: &[T; SLOTS_AT_ONCE],
    slots: &mut [u32],
    hashes: impl Iterator<Item = u32>,
) {
    let mut least = [UNFILLED_SLOT; SLOTS_AT_ONCE];
    least[..slots.len()].copy_from_slice(slots);
    for hash in hashes {
        for slot in 0..SLOTS_AT_ONCE {
            let value = T::apply_function(factors[slot], summands[slot], hash);
            least[slot] = least[slot].min(value);
        }
    }
    slots.copy_from_slice(&least[..slots.len()]);
}

/// Returns the number of slots that two signatures share. Divided by the number of slots, it is an unbiased
/// estimate of the Jaccard index with a standard error of at most √(J(1−J)/slots).
pub fn equal_slots(a: &[u32], b: &[u32]) -> usize {
    struct EqualSlotsKernel<'a>(&'a [u32], &'a [u32]);

    impl Kernel for EqualSlotsKernel<'_> {
        type Output = usize;

        #[inline(always)]
        fn run<A: Arch>(self, _arch: A) -> usize {
            let mut equal = 0u32;
            for (a, b) in self.0.iter().zip(self.1) {
                equal += u32::from(a == b);
            }
            equal as usize
        }
    }

    Cpu::detect_best().run(EqualSlotsKernel(a, b))
}
