//! The number of documents of a corpus that a setting removes.

use super::scored::{EvaluatedSetting, sketch_texts, with_corpus};
use crate::dedup::find_verdicts;
use crate::error::Result;
use crate::plan::MatchPlan;

/// Counts the texts that a setting removes, with the threshold or distance it has, where of similar texts
/// the first is kept.
///
/// # Errors
/// If the setting has no plan, or texts are too long for its measure.
pub fn count_removed(setting: &EvaluatedSetting, texts: &[String]) -> Result<usize> {
    let recipe = &setting.recipe;
    let plan = MatchPlan::new(recipe, setting.matching)?;
    let sketches = sketch_texts(recipe, &plan, texts);
    with_corpus(recipe, &plan, texts, &sketches, |corpus| {
        let outcome = find_verdicts(corpus, &|_| {})?;
        Ok(outcome.removals.len())
    })
}
