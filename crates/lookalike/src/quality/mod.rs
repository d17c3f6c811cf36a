//! The quality of a run: planted edits, labelled pairs, audits.
//!
//! | module | answers |
//! |---|---|
//! | [`plant`] | which edits does a recipe survive? |
//! | [`evaluate`] | recall and precision on labelled pairs, at every threshold; which settings are best? |
//! | [`audit`] | how many matches has this run missed? |
//! | [`passages`] | which of the true passages were found, and how exactly? |

pub mod audit;
pub mod evaluate;
pub mod passages;
pub mod plant;
