//! Decisions on single pairs that the caller names.

use rayon::prelude::*;

use super::batch_sizes::BatchSizes;
use super::corpus::MatchCorpus;
use super::pair_verifier::PairVerifier;
use crate::error::Result;
use crate::plan::SimilarityMeasure;
use crate::similarity::Route;
use crate::text::TextState;
use crate::types::{DocId, Similarity};

/// Decides for each of these pairs whether it matches, and returns the route and the similarity of
/// those that do, in the order of the pairs.
///
/// The answer for a pair is the one that [`find_pairs`](super::find_pairs) with
/// [`CopyPairs::All`](super::CopyPairs::All) gives for a corpus that
/// contains both documents. Each pair costs one comparison, because no candidates are searched for.
///
/// The plan of the corpus may have a higher threshold or a smaller distance than the plan that the
/// sketches were made for, if all else is the same.
///
/// The [module](super) has an example.
///
/// # Errors
/// Fails if `corpus.texts` cannot provide a document again, or if two texts are too long for the
/// measure.
pub fn decide_pairs(
    corpus: &MatchCorpus<'_>,
    pairs: &[(DocId, DocId)],
) -> Result<Vec<Option<(Route, Similarity)>>> {
    // Decisions of a person are left out, because the plan alone is asked. The order has no influence on whether two
    // documents match; without it, the rank of a document is its number.
    let corpus = MatchCorpus {
        order: None,
        decisions: None,
        ..*corpus
    };
    let verifier = PairVerifier::new(&corpus, BatchSizes::default());
    let is_empty = |document| corpus.sketches.text_state(document) == TextState::Empty;
    pairs
        .par_iter()
        .map(|&(a, b)| {
            if is_empty(a) || is_empty(b) {
                return Ok(None);
            }
            let Some(route) = verifier.candidates(a.0, b.0) else {
                return Ok(None);
            };
            let similarity = verifier.verify_pair(a.0, b.0, route)?;
            Ok(similarity.map(|similarity| (route, similarity)))
        })
        .collect()
}

/// Returns the route by which the plan makes two documents candidates, if it does.
///
/// Unlike [`decide_pairs`], it does not apply an exact measure: the caller knows whether the pair
/// reaches the threshold. With [`SimilarityMeasure::Sketch`] the pair must also match by its sketches.
///
/// # Errors
/// Fails if `corpus.texts` cannot provide a document again, for example where the exact join compares
/// features under [`SimilarityMeasure::Sketch`].
pub fn route_between(corpus: &MatchCorpus<'_>, a: DocId, b: DocId) -> Result<Option<Route>> {
    let in_order_read = MatchCorpus {
        order: None,
        decisions: None,
        ..*corpus
    };
    let verifier = PairVerifier::new(&in_order_read, BatchSizes::default());
    let Some(route) = verifier.candidates(a.0, b.0) else {
        return Ok(None);
    };
    if corpus.plan.match_settings().measure == SimilarityMeasure::Sketch {
        return Ok(verifier.verify_pair(a.0, b.0, route)?.map(|_| route));
    }
    Ok(Some(route))
}
