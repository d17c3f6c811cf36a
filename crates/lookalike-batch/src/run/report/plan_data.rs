//! The plan of a run as data: its settings, and the probability that a pair is found, by its similarity.

use lookalike::plan::MatchPlan;
use serde::Serialize;

use crate::run::execution::form_learning::recipe_as_given;
use crate::run::recall_curve::RecallCurve;
use crate::run::report::budgets::shorten_name;
use crate::run::settings::RunSettings;

/// The settings and the match plan of a run.
#[derive(Debug, Serialize)]
pub(super) struct PlanData {
    method: &'static str,
    measure: &'static str,
    threshold: f64,
    candidate_threshold: Option<f64>,
    recipe: String,
    recipe_id: String,
    recipe_toml: String,
    keep: String,
    within: Option<String>,
    window_seconds: Option<f64>,
    bands: Option<usize>,
    rows: Option<usize>,
    /// Documents of up to this many features are joined exactly.
    joined_features: Option<usize>,
    distance: Option<u32>,
    /// Probability that a pair is a candidate, at similarities 0, 0.01, … 1; empty if it is 1 or unknown.
    curve: Vec<f64>,
    /// The same probability at the least Jaccard index of candidates, which need not be a hundredth.
    recall_at_threshold: Option<f64>,
}

impl PlanData {
    pub(super) fn new(settings: &RunSettings, plan: &MatchPlan) -> Self {
        let matching = plan.match_settings();
        let bands = plan.band_plan();
        Self {
            method: matching.method.name(),
            measure: matching.measure.name(),
            threshold: plan.threshold().get(),
            candidate_threshold: plan
                .separate_candidate_threshold()
                .map(|threshold| threshold.get()),
            recipe: settings.recipe.name.clone(),
            recipe_id: recipe_as_given(&settings.recipe).recipe_id().to_string(),
            recipe_toml: settings.recipe.to_toml(),
            keep: shorten_name(&settings.keep.to_string()),
            within: settings.within.as_deref().map(shorten_name),
            window_seconds: settings.window.as_ref().map(|window| window.seconds),
            bands: bands.map(|bands| bands.bands),
            rows: bands.map(|bands| bands.rows),
            joined_features: plan.join_plan().map(|join| join.max_features),
            distance: plan.distance().map(|distance| distance.get()),
            curve: compute_curve(plan),
            recall_at_threshold: jaccard_curve(plan)
                .map(|curve| round_recall(curve.recall_at(plan.candidate_threshold().get()))),
        }
    }
}

/// Returns the curve that the report draws over the Jaccard index, if the plan has one.
fn jaccard_curve(plan: &MatchPlan) -> Option<RecallCurve> {
    let curve = RecallCurve::from_plan(plan);
    curve.filter(|curve| curve.axis_name() == "Jaccard")
}

/// Returns the probability of being found at 101 similarities.
fn compute_curve(plan: &MatchPlan) -> Vec<f64> {
    let Some(curve) = jaccard_curve(plan) else {
        return Vec::new();
    };
    let similarities = (0..=100).map(|at| f64::from(at) / 100.0);
    similarities
        .map(|similarity| round_recall(curve.recall_at(similarity)))
        .collect()
}

/// Rounds to the four decimals that `--explain-plan` prints.
fn round_recall(recall: f64) -> f64 {
    (recall * 1e4).round() / 1e4
}
