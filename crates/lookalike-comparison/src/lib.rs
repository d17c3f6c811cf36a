//! Two texts side by side, as data for people and programs.
//!
//! The engine decides whether two texts match, and finds what they share as numbers of tokens. This crate makes of it what is
//! shown: values with their names, places in files, and words. Its main user is `compare`, in the command and in the service.
//!
//! ```
//! use lookalike::Recipe;
//! use lookalike::passages::PassageSettings;
//! use lookalike_comparison::shared_passages::SharedPassages;
//!
//! let source = "The ferry leaves at seven. Nobody on the island misses it, because the mail is on it.";
//! let copy = "We asked around: nobody on the island misses it, because the mail is on it!";
//! let recipe = Recipe::built_in("default")?;
//! let shared = SharedPassages::find_all(&recipe, [source, copy], PassageSettings::default())?;
//! let place = &shared.passages[0].a;
//! assert_eq!(&source[place.bytes.clone()], "Nobody on the island misses it, because the mail is on it");
//! assert_eq!(place.line, 1);
//! # Ok::<_, lookalike::Error>(())
//! ```
//!
//! | module | holds |
//! |---|---|
//! | [`comparison`] | a comparison with every step, as JSON |
//! | [`shared_passages`] | the passages that two documents share, with their places in the files |
//! | [`passage_table`] | a passage as a row of a table |
//! | [`text_diff`] | differences word by word |
//! | [`decision_lines`] | decisions of a person on two texts, as lines of a file and of a request |
//! | [`worked_examples`] | SimHash and MinHash by hand, for people who learn how they work |
//!
//! It reads no files and searches no corpus.

pub mod comparison;
pub mod decision_lines;
pub mod passage_table;
pub mod shared_passages;
pub mod text_diff;
pub mod worked_examples;
