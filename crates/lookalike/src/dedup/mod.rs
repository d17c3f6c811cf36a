//! Finds matching pairs and verdicts in a batch of documents.
//!
//! ```text
//! sketches ── keys ──> bucket keys ── groups ──> buckets ── walk ──> candidate pairs
//!                                                                         │ judge: verify
//!                      components <── matching pairs, verdicts <──────────┘
//! ```
//!
//! Every method finds candidates in the same way. A document has bucket keys (`corpus_buckets`), documents with
//! equal keys form a bucket, and keys that only one document has are dropped (`buckets`). `deduplicator` goes
//! through the documents in their total order, looks up the kept ones in their buckets, and verifies
//! each candidate pair. `pair_verifier` decides which pairs are candidates and which of these match. It looks
//! at the two documents alone, so batch, stream and shuffle agree on every pair.
//!
//! `bitmap_filter` holds the bitmap filter, which rules out most pairs of dense buckets before they are
//! verified. `components` connects the documents of matching pairs. `named_pairs` decides on pairs that
//! the caller names. `pair_decisions` corrects the relation of matching by decisions of a person. `decided_prefix`
//! continues behind verdicts that are known. `survey_corpus` counts the comparisons that a plan makes on a sample.
//!
//! # Example
//!
//! The pairs, verdicts and components of three texts. The first resembles the second, which resembles the
//! third:
//!
//! ```
//! use lookalike::dedup::{
//!     CopyPairs, MatchCorpus, DocumentSource, decide_pairs, find_components, find_pairs, find_verdicts,
//! };
//! use lookalike::plan::{MatchPlan, MatchSettings};
//! use lookalike::text::{TextAnalyzer, AnalysisScratch};
//! use lookalike::{Cpu, DocId, Error, Recipe, Result, DocumentSketcher, Threshold};
//!
//! /// The features of every text.
//! struct AllFeatures(Vec<Vec<u64>>);
//!
//! impl DocumentSource for AllFeatures {
//!     fn append_features(&self, document: DocId, into: &mut Vec<u64>) -> Result<()> {
//!         into.extend(&self.0[document.index()]);
//!         Ok(())
//!     }
//! }
//!
//! let recipe = Recipe::built_in("default")?;
//! let settings = MatchSettings { threshold: Threshold::new(0.6)?, ..MatchSettings::default() };
//! let plan = MatchPlan::new(&recipe, settings)?;
//! let (analyzer, sketcher) = (TextAnalyzer::new(&recipe), DocumentSketcher::new(&recipe, &plan, Cpu::detect_best()));
//! let (mut sketches, mut texts) = (sketcher.new_sketches(0), AllFeatures(Vec::new()));
//! for text in [
//!     "The boat left at dawn with nine men on board.",
//!     "The boat left at dawn with ten men on board.",
//!     "The boat left at dawn with ten men on board and a dog.",
//! ] {
//!     let (mut scratch, mut features) = (AnalysisScratch::default(), Vec::new());
//!     let analysis = analyzer.analyze_text(text, &mut scratch);
//!     sketcher.add_document(&analysis, &mut sketches);
//!     analysis.append_features(&mut features);
//!     texts.0.push(features);
//! }
//! let corpus = MatchCorpus::new(&plan, &sketches, &texts);
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

mod batch_sizes;
mod components;
mod corpus;
mod corpus_buckets;
mod decided_prefix;
mod deduplicator;
mod document_cache;
mod named_pairs;
mod pair_decisions;
mod pair_verifier;
mod pairs;
mod rare_keys;
mod seen_candidates;
mod survey;

pub(crate) use batch_sizes::BatchSizes;
pub use components::find_components;
pub use corpus::{MatchCorpus, TimeWindow};
pub use decided_prefix::{DecidedPrefix, continue_verdicts};
pub use deduplicator::{
    DedupOutcome, DocumentRemoval, VerdictsAndCandidates, find_verdicts,
    find_verdicts_and_candidates, follow_verdicts, follow_verdicts_beside_index,
};
pub use document_cache::{DocumentSource, TextReanalysis};
pub use named_pairs::{decide_pairs, route_between};
pub use pair_decisions::{ClassDecisions, DecidedText, PairDecision, PairDecisions};
pub use pairs::{CopyPairs, MatchingPair, find_pairs};
pub use survey::{CandidateSurvey, ComparedPairs, SurveyKind, SurveyLimits, survey_corpus};

#[cfg(test)]
mod tests;
