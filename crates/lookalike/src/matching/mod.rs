//! Finds matching pairs and verdicts in a batch of documents.
//!
//! ```text
//! sketches ── keys ──> bucket keys ── groups ──> buckets ── walk ──> candidate pairs
//!                                                                         │ judge: verify
//!                      components <── matching pairs, verdicts <──────────┘
//! ```
//!
//! Every method finds candidates in the same way. A document has bucket keys (`keys`), documents with
//! equal keys form a bucket, and keys that only one document has are dropped (`groups`). `walk` goes
//! through the documents in their total order, looks up the kept ones in their buckets, and verifies
//! each candidate pair. `judge` decides which pairs are candidates and which of these match. It looks
//! at the two documents alone, so batch, stream and cluster agree on every pair.
//!
//! `crowds` holds the bitmap filter, which rules out most pairs of dense buckets before they are
//! verified. `components` connects the documents of matching pairs. `stored` compares documents with
//! those of an index on disk. `survey` counts the comparisons that a plan makes on a sample.
//!
//! # Example
//!
//! The pairs, verdicts and components of three texts. The first resembles the second, which resembles the
//! third:
//!
//! ```
//! use lookalike::matching::{
//!     CopyPairs, Corpus, Texts, decide_pairs, find_components, find_pairs, find_verdicts,
//! };
//! use lookalike::plan::{Plan, Settings};
//! use lookalike::text::{Analyzer, Scratch};
//! use lookalike::{Cpu, DocId, Error, Recipe, Result, Sketcher, Threshold};
//!
//! /// The features of every text.
//! struct AllFeatures(Vec<Vec<u64>>);
//!
//! impl Texts for AllFeatures {
//!     fn features(&self, document: DocId, into: &mut Vec<u64>) -> Result<()> {
//!         into.extend(&self.0[document.index()]);
//!         Ok(())
//!     }
//! }
//!
//! let recipe = Recipe::named("default")?;
//! let settings = Settings { threshold: Threshold::new(0.6)?, ..Settings::default() };
//! let plan = Plan::new(&recipe, settings)?;
//! let (analyzer, sketcher) = (Analyzer::new(&recipe), Sketcher::new(&recipe, &plan, Cpu::best()));
//! let (mut sketches, mut texts) = (sketcher.sketches(0), AllFeatures(Vec::new()));
//! for text in [
//!     "The boat left at dawn with nine men on board.",
//!     "The boat left at dawn with ten men on board.",
//!     "The boat left at dawn with ten men on board and a dog.",
//! ] {
//!     let (mut scratch, mut features) = (Scratch::default(), Vec::new());
//!     let analysis = analyzer.analyze(text, &mut scratch);
//!     sketcher.add(&analysis, &mut sketches);
//!     analysis.features(&mut features);
//!     texts.0.push(features);
//! }
//! let corpus = Corpus {
//!     plan: &plan,
//!     sketches: &sketches,
//!     texts: &texts,
//!     order: None,
//!     parts: None,
//!     window: None,
//!     given: 0,
//! };
//!
//! let mut pairs = Vec::new();
//! find_pairs(
//!     &corpus,
//!     CopyPairs::WithEarliest,
//!     |pair| {
//!         pairs.push((pair.a.index(), pair.b.index(), pair.similarity.get()));
//!         Ok::<_, Error>(())
//!     },
//!     &|_| {},
//! )?;
//! assert_eq!(pairs, [(0, 1, 7.0 / 11.0), (1, 2, 9.0 / 12.0)]);
//!
//! // The first and the third text have a Jaccard index of 7 / 14, which is below the threshold.
//! assert_eq!(decide_pairs(&corpus, &[(DocId(0), DocId(2))])?, [None]);
//!
//! // The second text repeats the first, so it is removed. The third repeats no kept one, so it is kept.
//! let outcome = find_verdicts(&corpus, &|_| {})?;
//! let removed: Vec<_> = outcome.removals.iter().map(|removal| removal.document).collect();
//! assert_eq!(removed, [DocId(1)]);
//!
//! // Matching pairs connect all three.
//! assert_eq!(find_components(&corpus, &outcome)?, [DocId(0); 3]);
//! # Ok::<_, Error>(())
//! ```

mod cache;
mod components;
mod crowds;
mod decide;
mod groups;
mod judge;
mod keys;
mod portions;
mod stored;
mod survey;
mod walk;

pub(crate) use cache::{Cache, List};
pub(crate) use components::Union;
pub(crate) use groups::Side;
pub(crate) use judge::{Compared, Rule, Sketched};
pub(crate) use keys::{
    Frequencies, Prefixes, Rarest, band_key, block_key, feature_key, smallest_key, text_key,
};

pub use cache::Texts;
pub use components::find_components;
pub use decide::{decide_pairs, route_between};
pub use judge::{Match, Route};
pub use stored::{
    ComparedDocument, DocumentComparer, DocumentRecorder, MOST_INDEXED, visit_record_keys,
};
pub use survey::{ComparedPairs, Survey, SurveyLimits, Surveyed, survey};
pub use walk::{
    CopyPairs, Corpus, Outcome, Pair, Removal, Window, find_pairs, find_verdicts, follow_verdicts,
};

#[cfg(test)]
mod tests;
