//! Decisions on single pairs that the caller names.

use rayon::prelude::*;

use super::judge::{Judge, Route};
use super::portions::Portions;
use super::walk::Corpus;
use crate::error::Result;
use crate::plan::Measure;
use crate::text::State;
use crate::types::{DocId, Similarity};

/// Decides for each of these pairs whether it matches, and returns the route and the similarity of
/// those that do, in the order of the pairs.
///
/// The answer for a pair is the one that [`find_pairs`](super::find_pairs) with
/// [`CopyPairs::All`](super::CopyPairs::All) gives for a corpus that contains both documents. Each pair
/// costs one comparison, because no candidates are searched for.
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
    corpus: &Corpus<'_>,
    pairs: &[(DocId, DocId)],
) -> Result<Vec<Option<(Route, Similarity)>>> {
    // The order is dropped because it has no influence on whether two documents match: without it,
    // the rank of a document is its number.
    let corpus = Corpus {
        order: None,
        ..*corpus
    };
    let judge = Judge::new(&corpus, Portions::default());
    let is_empty = |document| corpus.sketches.state(document) == State::Empty;
    pairs
        .par_iter()
        .map(|&(a, b)| {
            if is_empty(a) || is_empty(b) {
                return Ok(None);
            }
            let Some(route) = judge.candidates(a.0, b.0) else {
                return Ok(None);
            };
            let similarity = judge.check(a.0, b.0, route)?;
            Ok(similarity.map(|similarity| (route, similarity)))
        })
        .collect()
}

/// Returns the route by which the plan makes two documents candidates, if it does.
///
/// Unlike [`decide_pairs`], it does not apply an exact measure: the caller knows whether the pair
/// reaches the threshold. With [`Measure::Sketch`] the pair must also match by its sketches.
///
/// # Errors
/// Fails if `corpus.texts` cannot provide a document again, for example where the exact join compares
/// features under [`Measure::Sketch`].
pub fn route_between(corpus: &Corpus<'_>, a: DocId, b: DocId) -> Result<Option<Route>> {
    let in_order_read = Corpus {
        order: None,
        ..*corpus
    };
    let judge = Judge::new(&in_order_read, Portions::default());
    let Some(route) = judge.candidates(a.0, b.0) else {
        return Ok(None);
    };
    if corpus.plan.settings().measure == Measure::Sketch {
        return Ok(judge.check(a.0, b.0, route)?.map(|_| route));
    }
    Ok(Some(route))
}
