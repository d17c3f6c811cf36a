//! Near-duplicate text: who repeats whom, by how much, and on what evidence.
//!
//! This is the engine of lookalike. It takes texts, in any language and any number, and says which
//! pairs of them are similar enough, and which to keep so that none is left that repeats a kept
//! one. Similar means something exact: the Jaccard index of the sets of features that a [`Recipe`]
//! makes of two texts, at or above a [`Threshold`]. Sketches only find candidates; every reported
//! pair was compared, unless sketches alone are asked for.
//!
//! The same texts, recipe and settings give the same result on every CPU, with every number of
//! threads and in whatever portions the work is done.
//!
//! # An example
//!
//! ```
//! use lookalike::matching::{Corpus, Texts, find_verdicts};
//! use lookalike::plan::{Plan, Settings};
//! use lookalike::text::{Analyzer, Scratch};
//! use lookalike::{Cpu, DocId, Recipe, Result, Sketcher, Threshold};
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
//! // The recipe says what a text's features are; the plan, how candidates are found and checked.
//! let recipe = Recipe::named("default")?;
//! let threshold = Threshold::new(0.75)?;
//! let plan = Plan::new(&recipe, Settings { threshold, ..Settings::default() })?;
//!
//! // Every text is analysed once. Of each, only its sketches are remembered.
//! let analyzer = Analyzer::new(&recipe);
//! let sketcher = Sketcher::new(&recipe, &plan, Cpu::best());
//! let mut sketches = sketcher.sketches(1 << 20);
//! let mut scratch = Scratch::default();
//! for text in texts {
//!     sketcher.add(&analyzer.analyze(text, &mut scratch), &mut sketches);
//! }
//!
//! // Candidates are compared feature by feature, for which a text may be asked for again.
//! struct Again<'a>(&'a Analyzer, &'a [&'a str]);
//!
//! impl Texts for Again<'_> {
//!     fn features(&self, document: DocId, into: &mut Vec<u64>) -> Result<()> {
//!         let text = self.1[document.index()];
//!         self.0.analyze(text, &mut Scratch::default()).features(into);
//!         Ok(())
//!     }
//! }
//!
//! let corpus = Corpus {
//!     plan: &plan,
//!     sketches: &sketches,
//!     texts: &Again(&analyzer, &texts),
//!     order: None,
//!     parts: None,
//!     window: None,
//!     given: 0,
//! };
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
//!         // Case and punctuation, and the two Chinese scripts, are cancelled by normalisation.
//!         (2, 0, 1.0, "exact"),
//!         (3, 1, 1.0, "exact"),
//!         // 11 pairs of neighbouring words and 12, of which 10 are the same.
//!         (4, 0, 10.0 / 13.0, "join"),
//!     ]
//! );
//! # Ok::<_, lookalike::Error>(())
//! ```
//!
//! # How the modules follow one another
//!
//! 1. [`recipe`]: everything that determines a fingerprint, as one value with an identity.
//! 2. [`text`]: a text becomes tokens, and n-grams of tokens become features, 64 bits each. Texts
//!    with too little in them for a feature have a [`State`](text::State) of their own and match
//!    only what is equal.
//!    [`weight`] says what a feature weighs, [`frequencies`] learns it from a corpus.
//! 3. [`sketch`]: many features become a few numbers, SimHash or MinHash. [`Sketcher`] and
//!    [`Sketches`] make and remember what a plan asks for.
//! 4. [`plan`]: from recipe, threshold and method alone, never from the corpus, which pairs are
//!    candidates and with what recall.
//! 5. [`matching`]: candidates are found by shared keys, [verified](verify) and decided upon:
//!    [`find_verdicts`](matching::find_verdicts), [`find_pairs`](matching::find_pairs),
//!    [`find_components`](matching::find_components). [`online`] does the same for one document after
//!    another, and forgets old ones; [`distributed`] where the documents lie on many machines.
//!
//! [`plant`] makes edits of known kind and strength, by which a recipe and a plan can be measured;
//! [`evaluate`] measures how well they do on texts with labels, and [`audit`] estimates what a run has
//! missed. [`compare`] shows all of it for two texts, and [`hamming`] finds fingerprints within a
//! distance.
//!
//! # What it does not do
//!
//! It reads no documents from files, decodes no encodings and prints nothing: that is for the crates
//! that build on it. It works in the `rayon` pool in which it is called. It knows no synonyms
//! and no translations: two texts are similar by the words they share. Its hashes withstand chance,
//! not somebody who constructs collisions. A run numbers up to 2³² − 1 documents.

mod arch;
pub mod audit;
pub mod bytes;
pub mod compare;
mod digest;
pub mod distributed;
mod error;
pub mod evaluate;
pub mod frequencies;
pub mod hamming;
mod hash;
pub mod matching;
pub mod online;
pub mod plan;
pub mod plant;
pub mod recipe;
pub mod sketch;
mod sketches;
pub mod text;
mod types;
pub mod verify;
pub mod weight;

pub use arch::{Cpu, prefetch};
pub use error::{Error, ErrorKind, Result};
pub use hash::value_hash;
pub use recipe::{Recipe, RecipeId};
pub use sketches::{Sketcher, Sketches};
pub use types::{Distance, DocId, Similarity, Threshold};
