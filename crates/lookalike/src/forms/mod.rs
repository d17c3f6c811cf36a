//! Forms: frames that many different documents share, with slots at which most have a value of their own.
//!
//! Offers of a shop, weather reports and minutes are filled forms: two of them are similar because their frame is equal,
//! and say different things because their values are not. So two documents of one form match only if their slots agree
//! as well: at most one slot in five may differ, rounded down, so none of fewer than five. Documents of different forms do not match, nor does a
//! document of a form match one of none; documents of no form match by their similarity alone.
//!
//! * [`FormTable`] is the list of forms. A recipe may name one ([`Recipe::forms`](crate::Recipe::forms)), and it belongs
//!   to the identity of the recipe. So whether two documents match depends on the two texts and the recipe alone.
//! * `form_index` finds the form of a text and the values of its slots.
//! * [`FormLearner`] learns forms from groups of similar documents.

mod alignment;
mod form_index;
mod frame_grams;
mod learning;
mod table;

pub(crate) use form_index::{FormIndex, do_forms_agree, visit_form_keys};
pub use learning::{FormLearner, LEAST_TEXTS, MOST_SAMPLED_TEXTS};
pub use table::{Form, FormTable};

#[cfg(test)]
mod tests;
