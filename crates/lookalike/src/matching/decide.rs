//! Pairs that are named, decided one by one.

use rayon::prelude::*;

use super::judge::{Judge, Route};
use super::portions::Portions;
use super::walk::Corpus;
use crate::error::Result;
use crate::plan::Measure;
use crate::text::State;
use crate::types::{DocId, Similarity};

/// Decides whether each of these pairs matches: whether [`find_pairs`](super::find_pairs) over
/// documents that hold both would list it, by what route and with what similarity. The answers come
/// in the order of the pairs and cost a comparison each; no candidates are looked for.
///
/// The plan of the corpus may have a higher threshold than the one that its sketches were made for,
/// and a smaller distance, with all else alike.
///
/// # Errors
/// If what a document is compared by cannot be had again.
pub fn decide_pairs(
    corpus: &Corpus<'_>,
    pairs: &[(DocId, DocId)],
) -> Result<Vec<Option<(Route, Similarity)>>> {
    // Who comes first does not matter to whether two documents match.
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

/// How a run finds two documents that are similar enough by its measure, if it does: the plan makes
/// them candidates, and where sketches alone decide, these agree. Unlike [`decide_pairs`] it does not
/// compare them by an exact measure: whether that admits them is for the caller to know.
///
/// # Errors
/// If what a document is compared by cannot be had again.
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
