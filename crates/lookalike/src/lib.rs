//! Near-duplicate text: which documents repeat one another, how similar they are, and by what evidence.
//!
//! This is the engine of lookalike. It takes texts in any language and finds the pairs that are similar
//! enough. It also decides which documents to keep, so that no kept document repeats another kept one.
//! Similarity is defined exactly: the Jaccard index of the sets of features that a [`Recipe`] makes of two
//! texts, compared with a [`Threshold`] (≥). Sketches only find candidate pairs. Every reported pair is
//! verified on its features, unless the caller asks for sketches alone.
//!
//! The same texts, recipe and settings give the same result on every CPU, with any number of threads and any
//! batch sizes.
//!
//! # Example
//!
//! ```
//! use lookalike::dedup::{MatchCorpus, DocumentSource, find_verdicts};
//! use lookalike::plan::{MatchPlan, MatchSettings};
//! use lookalike::text::{TextAnalyzer, AnalysisScratch};
//! use lookalike::{Cpu, DocId, Recipe, Result, DocumentSketcher, Threshold};
//!
//! let texts = [
//!     "The ferry leaves at seven, and nobody on the island misses it.",
//!     "清晨六點，老船長已經把纜繩解開了。",
//!     "THE FERRY leaves at seven – and nobody on the island misses it",
//!     "清晨六点，老船长已经把缆绳解开了！",
//!     "The ferry leaves at seven, and nobody on the island ever misses it.",
//!     "Something else entirely.",
//! ];
//!
//! // The recipe defines the features of a text; the plan, how candidates are found and verified.
//! let recipe = Recipe::built_in("default")?;
//! let threshold = Threshold::new(0.75)?;
//! let plan = MatchPlan::new(&recipe, MatchSettings { threshold, ..MatchSettings::default() })?;
//!
//! // Every text is analysed once, and only its sketches are stored.
//! let analyzer = TextAnalyzer::new(&recipe);
//! let sketcher = DocumentSketcher::new(&recipe, &plan, Cpu::detect_best());
//! let mut sketches = sketcher.new_sketches(1 << 20);
//! let mut scratch = AnalysisScratch::default();
//! for text in texts {
//!     sketcher.add_document(&analyzer.analyze_text(text, &mut scratch), &mut sketches);
//! }
//!
//! // Candidate pairs are verified on their features, so the engine asks for some texts again.
//! struct Again<'a>(&'a TextAnalyzer, &'a [&'a str]);
//!
//! impl DocumentSource for Again<'_> {
//!     fn append_features(&self, document: DocId, into: &mut Vec<u64>) -> Result<()> {
//!         let text = self.1[document.index()];
//!         self.0.analyze_text(text, &mut AnalysisScratch::default()).append_features(into);
//!         Ok(())
//!     }
//! }
//!
//! let again = Again(&analyzer, &texts);
//! let corpus = MatchCorpus::new(&plan, &sketches, &again);
//! let outcome = find_verdicts(&corpus, &|_| {})?;
//!
//! let found: Vec<_> = outcome
//!     .removals
//!     .iter()
//!     .map(|removal| {
//!         let (document, kept) = (removal.document.index(), removal.kept.with.index());
//!         (document, kept, removal.kept.similarity.get(), removal.kept.route.name())
//!     })
//!     .collect();
//! assert_eq!(
//!     found,
//!     [
//!         // Normalisation removes differences of case, punctuation and Chinese script.
//!         (2, 0, 1.0, "exact"),
//!         (3, 1, 1.0, "exact"),
//!         // The texts have 11 and 12 pairs of adjacent words, of which 10 are shared: 10 / (11 + 12 − 10).
//!         (4, 0, 10.0 / 13.0, "join"),
//!     ]
//! );
//! # Ok::<_, lookalike::Error>(())
//! ```
//!
//! The folder `examples` has programs to run with `cargo run -p lookalike --example NAME`:
//!
//! | name | shows |
//! |---|---|
//! | `dedup_slice` | the verdicts on a slice of texts |
//! | `stream` | documents checked and inserted one after another, with a window |
//! | `hamming_index` | an index of fingerprints, compared with a scan |
//! | `other_tools` | fingerprints and signatures of other tools, bit for bit |
//!
//! # Modules, in the order in which a document passes through them
//!
//! 1. [`recipe`]: everything that determines a fingerprint, as one value with an identity.
//! 2. [`text`]: normalises a text, cuts it into tokens, and hashes n-grams of tokens to 64-bit features. A
//!    text that is too short to have a feature has its own [`TextState`](text::TextState) and matches only equal
//!    texts. [`text::weight`] computes the weights of features; [`text::frequencies`] learns them from a corpus.
//! 3. [`sketch`]: reduces many features to a few numbers (SimHash, MinHash, bottom-k). [`DocumentSketcher`] computes
//!    the sketches that a plan needs, and [`DocumentSketches`] stores them.
//! 4. [`plan`]: derives from recipe, threshold and method which pairs are candidates, and with what recall. A
//!    plan never depends on the corpus.
//! 5. [`candidates`]: bucket keys and buckets, which find the pairs that can match.
//! 6. [`similarity`]: verifies a candidate pair: measures, their bounds, and where features and texts come from.
//! 7. [`dedup`]: the verdicts on a batch: [`find_verdicts`](dedup::find_verdicts),
//!    [`find_pairs`](dedup::find_pairs), [`find_components`](dedup::find_components). [`stream`] does the same
//!    for documents that arrive one after another, with a window, and [`shuffle`] for documents on many machines.
//!
//! [`quality`] makes edits of known kind and strength, measures recall and precision on labelled pairs, and
//! estimates how many matches a run has missed. [`compare`] shows every step for two texts, [`passages`] finds what
//! two texts share and where, [`contamination`] finds items of benchmarks in documents, and [`hamming`] finds the
//! fingerprints within a distance. [`content_hash`] names a text by its content, as decisions of a person do.
//!
//! # Limits
//!
//! The engine reads no documents from files, decodes no encodings and prints nothing; the crates that build
//! on it do that. It runs in the `rayon` pool in which it is called. It knows no synonyms and no
//! translations: two texts are similar if they share words. Its hashes resist chance collisions, but not an
//! adversary who constructs collisions. A run has at most 2³² − 1 documents.

#[allow(unsafe_code)]
mod arch;
pub mod byte_reader;
pub mod bytes;
pub mod candidates;
pub mod compare;
mod compat;
pub mod contamination;
pub mod content_hash;
pub mod dedup;
mod digest;
mod error;
pub mod forms;
pub mod hamming;
mod hash;
mod panics;
pub mod passages;
pub mod plan;
pub mod quality;
pub mod recipe;
pub mod shuffle;
pub mod similarity;
pub mod sketch;
pub mod stream;
pub mod text;
mod types;

pub use arch::{Cpu, prefetch};
pub use error::{Error, ErrorKind, Result};
pub use hash::{value_digest, value_hash};
pub use panics::catch_panics;
pub use recipe::{Recipe, RecipeId};
pub use sketch::{ColumnReservation, DocumentSketcher, DocumentSketches};
pub use types::{Distance, DocId, Similarity, Threshold};
