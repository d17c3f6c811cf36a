//! Data behind the estimates of a comparison: slots, smallest hashes, longest sentences.

use lookalike::compare::AnalysisSteps;
use lookalike::text::LongSentence;
use lookalike_comparison::comparison::ComparisonCase;

/// Slots shown of a signature.
pub(super) const SLOTS: usize = 8;

/// Returns both signatures, and the number of slots in which they agree.
pub(super) fn signatures<'c>(case: &'c ComparisonCase<'_>) -> Option<([&'c [u32]; 2], usize)> {
    let a = case.compared.a.signature.as_deref()?;
    let b = case.compared.b.signature.as_deref()?;
    let equal = a.iter().zip(b).filter(|(a, b)| a == b).count();
    Some(([a, b], equal))
}

/// One of the smallest hashes of two texts.
pub(super) struct SampledHash<'c> {
    pub(super) hash: u64,
    pub(super) in_a: bool,
    pub(super) in_b: bool,
    /// The feature that has this hash.
    pub(super) feature: &'c str,
}

/// Returns the smallest hashes of the union of both texts, ascending, as many as are kept of one text. This
/// is the sample of the bottom-k estimate.
pub(super) fn sample_hashes<'c>(case: &'c ComparisonCase<'_>) -> Vec<SampledHash<'c>> {
    let sides = [&case.compared.a, &case.compared.b];
    let mut all = sides.map(|side| &side.smallest[..]).concat();
    all.sort_unstable();
    all.dedup();
    all.truncate(case.recipe.minhash.slots as usize);
    let sampled = |hash| {
        let [in_a, in_b] = sides.map(|side| side.smallest.binary_search(&hash).is_ok());
        let mut features = sides.into_iter().flat_map(|side| &side.features);
        let feature = features.find(|feature| feature.value == hash);
        SampledHash {
            hash,
            in_a,
            in_b,
            feature: feature.map_or("", |feature| &feature.text),
        }
    };
    all.into_iter().map(sampled).collect()
}

/// Returns the longest sentences of a text, each with `true` if the other text has it too. Returns `None` if
/// the method does not use sentences.
pub(super) fn list_sentences<'c>(
    own: &'c AnalysisSteps,
    other: &AnalysisSteps,
) -> Option<Vec<(&'c LongSentence, bool)>> {
    let (own, other) = (own.sentences.as_ref()?, other.sentences.as_ref()?);
    let shared = |one: &LongSentence| other.iter().any(|sentence| sentence.hash == one.hash);
    Some(own.iter().map(|one| (one, shared(one))).collect())
}
