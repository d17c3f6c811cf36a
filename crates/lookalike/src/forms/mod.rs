//! Forms: frames that many different documents share, with slots at which most have a value of their own.
//!
//! Offers of a shop, weather reports and minutes are filled forms: two of them are similar because their frame is equal,
//! and say different things because their values are not. So two documents of one form match only if their slots agree
//! as well: at most one slot in five may differ, rounded down, so none of fewer than five. Documents of different forms
//! do not match, nor does a document of a form match one of none. Whether they are of a form or not, the titles and most
//! numbers of two documents have to agree.
//!
//! * [`FormTable`] is the list of forms. A recipe may name one ([`Recipe::forms`](crate::Recipe::forms)), and it belongs
//!   to the identity of the recipe. So whether two documents match depends on the two texts and the recipe alone.
//! * `form_index` finds the form of a text and the values of its slots.
//! * `differences` decides from two texts alone whether they are about different things.
//! * [`FormLearner`] learns forms from groups of similar documents.

mod alignment;
mod differences;
mod form_index;
mod frame_grams;
mod group_learning;
mod learning;
mod table;

pub(crate) use differences::{ContentDifference, compared_part, find_difference};
pub use form_index::FormId;
pub(crate) use form_index::{FormIndex, FormMatch, do_forms_agree, visit_form_keys};
pub use group_learning::FormCorpus;
pub use learning::{COMPARED_HASHES, FormLearner, LEAST_TEXTS, MOST_SAMPLED_TEXTS, RejectedForms};
pub use table::{Form, FormTable};

#[cfg(test)]
mod tests;
