//! The best setting for labelled texts: chosen on one half, judged on the other.
//!
//! Settings stand in an order, from what everybody runs to what is rarely worth its price. Each is
//! taken at the threshold or distance at which its measure does best on the half to choose by, and
//! valued by what the whole method finds there. Of the settings that are not clearly worse than the
//! best, the first wins: where the best of many does better by no more than chance, it was picked by
//! chance. What the choice is worth is told by the half that had no part in it.
//!
//! No threshold is chosen where labels cannot judge it ([`LabelReach`]): below the lowest pair that has a
//! label, and below a long range of similarities in which no pair is labelled as different, a lower
//! threshold only finds more, because nothing that it finds wrongly has a label. For the same reason a
//! goal of precision does not count as reached by a setting that keeps it at every threshold.

use super::bootstrap::{
    BootstrapOptions, MetricEstimates, PairObservation, estimate_metrics, share_better,
};
use super::classes::ScriptClass;
use super::counts::ConfusionCounts;
use super::curve::TuningGoal;
use super::labelled::LabelledTexts;
use super::reach::LabelReach;
use super::scored::{EvaluatedSetting, ScoredPairs, SweptParameter};
use crate::error::{Error, Result};
use crate::plan::{MatchMethod, MatchSettings, SimilarityMeasure};
use crate::recipe::{Recipe, TokenKind, WeightScheme};
use crate::types::Threshold;

/// The largest distance that is tried for fingerprints alone: beyond it chance begins.
const MOST_DISTANCE: u32 = 20;

/// A setting is clearly better if it is so in this share of resamples.
const CLEARLY_BETTER_SHARE: f64 = 0.95;

/// Options of a tuning.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TuneOptions {
    /// Goal by which settings are chosen.
    pub goal: TuningGoal,
    /// Resampling for the intervals; its seed also divides the labels.
    pub bootstrap: BootstrapOptions,
}

/// A setting with what it did on the half to choose by.
#[derive(Clone, Debug)]
pub struct TunedContender {
    /// The setting, whose threshold or distance is now the best.
    pub setting: EvaluatedSetting,
    /// Counts of the pairs that its method finds with it.
    pub counts: ConfusionCounts,
    /// Value by the goal: F1, or recall; `None` where the goal is missed, or where the labels cannot
    /// judge it.
    pub value: Option<f64>,
    /// `false` if a goal of precision is kept at every cut, so that the labels cannot judge it.
    pub is_judged: bool,
    /// The range that the labels cover.
    pub reach: LabelReach,
    /// `true` if the best setting is not clearly better.
    pub as_good: bool,
    /// Which pairs it finds.
    observations: Vec<PairObservation>,
}

/// The outcome of a tuning.
#[derive(Clone, Debug)]
pub struct TuningOutcome {
    /// The halves: to choose by, and held back.
    pub halves: [LabelledTexts; 2],
    /// All settings in their order; those without a threshold that finds anything are left out.
    pub contenders: Vec<TunedContender>,
    /// The setting with the highest value.
    pub best: usize,
    /// The first that is as good.
    pub chosen: usize,
    /// The best of the others.
    pub runner_up: Option<usize>,
}

/// All settings that are tried, in their order: the features of the recipe and its neighbours, words
/// and characters in n-grams, and words cut by jieba where texts are written without spaces; by the
/// Jaccard index, containment, fingerprints, signatures, the smallest hashes, the cosine, edits,
/// sentences and equality. Fingerprints are tried with other weights too, and so is the cosine with
/// those of the recipe's table, which says nothing of other features than the recipe's own.
///
/// # Errors
/// If the recipe takes its features from another tool.
pub fn contenders(
    base: &Recipe,
    labelled: &LabelledTexts,
    lowest: Threshold,
) -> Result<Vec<EvaluatedSetting>> {
    if base.scheme.is_some() {
        return Err(Error::recipe_error(format!(
            "recipe '{}' has the features of another tool, so no others can be tried: start from a \
             recipe without a scheme",
            base.name
        )));
    }
    let recipes = candidate_recipes(base, labelled)?;
    let own = &recipes[..1];
    let mut all = Vec::new();
    let mut add = |recipes: &[Recipe], method, measure| {
        all.extend(recipes.iter().map(|recipe| EvaluatedSetting {
            recipe: recipe.clone(),
            matching: MatchSettings {
                method,
                measure,
                threshold: lowest,
                distance: MOST_DISTANCE.min(recipe.simhash.bits - 1),
                ..MatchSettings::default()
            },
        }));
    };
    let of_sets = SimilarityMeasure::ALL
        .into_iter()
        .filter(|&measure| measure.set_measure().is_some() && measure != SimilarityMeasure::Sketch);
    for measure in of_sets {
        add(&recipes, MatchMethod::Auto, measure);
    }
    add(&recipes, MatchMethod::SimHash, SimilarityMeasure::Sketch);
    let mut other_weights = Vec::new();
    for recipe in &recipes {
        other_weights.extend(with_other_weights(recipe)?);
    }
    add(
        &other_weights,
        MatchMethod::SimHash,
        SimilarityMeasure::Sketch,
    );
    add(&recipes, MatchMethod::MinHash, SimilarityMeasure::Sketch);
    add(&recipes, MatchMethod::BottomK, SimilarityMeasure::Sketch);
    other_weights.retain(|recipe| recipe.simhash.weights.needs_table());
    let of_weights = |measure: &SimilarityMeasure| measure.weight_measure().is_some();
    for measure in SimilarityMeasure::ALL.into_iter().filter(of_weights) {
        add(&recipes, MatchMethod::Auto, measure);
        add(&other_weights, MatchMethod::Auto, measure);
    }
    let of_sequences = |measure: &SimilarityMeasure| measure.sequence_measure().is_some();
    for measure in SimilarityMeasure::ALL.into_iter().filter(of_sequences) {
        add(own, MatchMethod::Auto, measure);
    }
    let has_key = |method: &MatchMethod| method.equal_key().is_some();
    for method in MatchMethod::ALL.into_iter().filter(has_key) {
        add(own, method, SimilarityMeasure::Sketch);
    }
    add(own, MatchMethod::Exact, SimilarityMeasure::Jaccard);
    Ok(all)
}

/// The recipe, and the same with other features.
fn candidate_recipes(base: &Recipe, labelled: &LabelledTexts) -> Result<Vec<Recipe>> {
    let without_spaces = |script| matches!(script, ScriptClass::WithoutSpaces | ScriptClass::Mixed);
    let by_jieba = labelled
        .classify_texts()
        .iter()
        .any(|class| without_spaces(class.script));
    let mut features = vec![(base.tokens, base.ngram)];
    if base.filter.parts.is_empty() {
        // Only jieba knows parts of speech.
        features.extend([1, 2, 3, 5].map(|ngram| (TokenKind::Words, ngram)));
    }
    if base.filter.is_empty() {
        // Filters are for words.
        features.extend([2, 3, 4, 5].map(|ngram| (TokenKind::Characters, ngram)));
    }
    if by_jieba {
        features.extend([1, 2].map(|ngram| (TokenKind::Jieba, ngram)));
    }
    let mut recipes: Vec<Recipe> = Vec::new();
    for (tokens, ngram) in features {
        let recipe = with_features(base, tokens, ngram)?;
        if recipes
            .iter()
            .all(|known| known.recipe_id() != recipe.recipe_id())
        {
            recipes.push(recipe);
        }
    }
    Ok(recipes)
}

fn with_features(base: &Recipe, tokens: TokenKind, ngram: u32) -> Result<Recipe> {
    if (tokens, ngram) == (base.tokens, base.ngram) {
        return Ok(base.clone());
    }
    let mut recipe = Recipe {
        name: format!("{}-{ngram}", tokens.name()),
        tokens,
        ngram,
        segment: base.segment.clone().filter(|_| tokens == TokenKind::Jieba),
        ..base.clone()
    };
    if recipe.simhash.table.take().is_some() {
        recipe.simhash.weights = WeightScheme::Frequency;
    }
    recipe.validate()?.without_forgotten_files()
}

/// The same features with the other weights that can be had: each once, each as often as it occurs,
/// and those that the table of the recipe makes.
fn with_other_weights(recipe: &Recipe) -> Result<Vec<Recipe>> {
    use WeightScheme::{Binary, Frequency, Levels, Tfidf};
    let of_corpus = recipe.has_frequencies();
    let all = [
        (Tfidf, of_corpus),
        (Levels, of_corpus),
        (Frequency, true),
        (Binary, true),
    ];
    all.into_iter()
        .filter(|&(weights, can_be_had)| can_be_had && weights != recipe.simhash.weights)
        .map(|(weights, _)| with_weights(recipe, weights))
        .collect()
}

fn with_weights(recipe: &Recipe, weights: WeightScheme) -> Result<Recipe> {
    let mut recipe = recipe.clone();
    recipe.name = format!("{}-{}", recipe.name, weights.name());
    recipe.simhash.weights = weights;
    recipe.simhash.table = recipe.simhash.table.filter(|_| weights.needs_table());
    recipe.without_forgotten_files()
}

/// Looks for the best of these settings. `progress` is called with the number of settings tried.
///
/// ```
/// use lookalike::quality::evaluate::{BootstrapOptions, TuningGoal, LabelledTexts, EvaluatedSetting, TuneOptions, tune_settings};
/// use lookalike::plan::MatchSettings;
/// use lookalike::{Recipe, Threshold};
///
/// let starts = ["The boat left the harbour", "Snow fell on the pass", "We lit the lamp", "Rain stopped"];
/// let texts = starts.iter().flat_map(|start| ["dawn", "noon"].map(|end| format!("{start} at {end}")));
/// let labelled = LabelledTexts::from_groups(texts.collect(), vec![0, 0, 1, 1, 2, 2, 3, 3])?;
/// let matching = MatchSettings { threshold: Threshold::new(0.4)?, ..MatchSettings::default() };
/// let settings = [EvaluatedSetting { recipe: Recipe::built_in("default")?, matching }];
/// let options = TuneOptions { goal: TuningGoal::F1, bootstrap: BootstrapOptions::default() };
/// let tuning = tune_settings(&labelled, &settings, &options, &|_| {})?;
/// // In the half to choose by, one threshold finds all similar pairs and no others.
/// assert_eq!(tuning.contenders[tuning.chosen].value, Some(1.0));
/// # Ok::<_, lookalike::Error>(())
/// ```
///
/// # Errors
/// If the labels cannot be parted into halves; if no setting reaches the goal; texts too long for a
/// measure.
pub fn tune_settings(
    labelled: &LabelledTexts,
    settings: &[EvaluatedSetting],
    options: &TuneOptions,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<TuningOutcome> {
    let halves = labelled.split_in_halves(options.bootstrap.seed)?;
    let mut tried = Vec::new();
    for (at, setting) in settings.iter().enumerate() {
        tried.extend(evaluate_contender(&halves[0], setting, options.goal)?);
        progress(at + 1);
    }
    let best = highest_contender(&tried, |_| true)
        .ok_or_else(|| goal_missed_error(&halves[0], &tried, options.goal))?;
    let units = halves[0].unit_count();
    for at in 0..tried.len() {
        tried[at].as_good = at == best
            || tried[at].value.is_some()
                && !clearly_better(&tried[best], &tried[at], units, options);
    }
    let chosen = tried
        .iter()
        .position(|candidate| candidate.as_good)
        .unwrap_or(best);
    Ok(TuningOutcome {
        runner_up: highest_contender(&tried, |at| at != chosen),
        best,
        chosen,
        contenders: tried,
        halves,
    })
}

/// The first of those with the highest value.
fn highest_contender(tried: &[TunedContender], among: impl Fn(usize) -> bool) -> Option<usize> {
    let values = tried.iter().enumerate().filter(|&(at, _)| among(at));
    let values = values.filter_map(|(at, contender)| Some((at, contender.value?)));
    let best = values.reduce(|best, next| if next.1 > best.1 { next } else { best });
    best.map(|(at, _)| at)
}

fn goal_missed_error(half: &LabelledTexts, tried: &[TunedContender], goal: TuningGoal) -> Error {
    let most = |of: fn(&ConfusionCounts) -> Option<f64>| {
        let values = tried.iter().filter_map(|candidate| of(&candidate.counts));
        values.fold(0.0, f64::max)
    };
    let unjudged = tried
        .iter()
        .filter(|candidate| !candidate.is_judged)
        .count();
    Error::setting_error(match goal {
        TuningGoal::Precision(least) if unjudged > 0 => format!(
            "the labels cannot judge the precision {least}: {unjudged} of {} settings keep it at every \
             threshold or distance, and no other setting reaches it. {} of {} pairs for choosing are \
             labelled as different: label more of those that have something in common, or make some with \
             lookalike plant",
            tried.len(),
            half.count_different_pairs(),
            half.count_similar_pairs() + half.count_different_pairs()
        ),
        TuningGoal::F1 => "no setting finds a similar pair on the half for choosing".to_owned(),
        TuningGoal::Precision(least) => format!(
            "no setting reaches the precision {least} on the half for choosing; the highest is \
             {:.3}: give a lower precision, or check the labels of pairs that are nearly equal",
            most(ConfusionCounts::precision)
        ),
    })
}

fn clearly_better(
    best: &TunedContender,
    other: &TunedContender,
    units: usize,
    options: &TuneOptions,
) -> bool {
    let figure = match options.goal {
        TuningGoal::F1 => ConfusionCounts::f1_score,
        TuningGoal::Precision(_) => ConfusionCounts::recall,
    };
    let observations = [&best.observations[..], &other.observations];
    let share = share_better(observations, units, figure, &options.bootstrap);
    share.is_none_or(|share| share >= CLEARLY_BETTER_SHARE)
}

/// A setting at the cut that does best by its measure, if it finds anything; none if there is no
/// plan for that cut.
fn evaluate_contender(
    labelled: &LabelledTexts,
    setting: &EvaluatedSetting,
    goal: TuningGoal,
) -> Result<Option<TunedContender>> {
    let scored = ScoredPairs::new(labelled, setting, &twentieths(setting))?;
    let curve = scored.measure_curve();
    let reach = LabelReach::new(&scored, setting);
    // Where the goal is missed, what comes nearest is told.
    let best = curve.best_from(goal, reach.floor);
    let Some(best) = best.or_else(|| curve.best_from(TuningGoal::F1, reach.floor)) else {
        return Ok(None);
    };
    let is_open = setting.swept_parameter() != SweptParameter::Nothing;
    let is_judged = !(is_open && curve.is_kept_everywhere(goal));
    let cut = match setting.swept_parameter() {
        SweptParameter::Distance => -curve.curve_points()[best].cut,
        SweptParameter::Threshold => curve.rounded_threshold(best, reach.floor),
        SweptParameter::Nothing => 1.0,
    };
    let setting = setting.at_cut(cut)?;
    let Some(observations) = find_observations(&scored, &setting, cut)? else {
        return Ok(None);
    };
    let counts = estimate_metrics(
        &observations,
        scored.count_unscored_pairs(),
        1,
        0,
        &BootstrapOptions::default(),
    )[0]
    .counts;
    Ok(Some(TunedContender {
        setting,
        value: goal.evaluate_counts(&counts).filter(|_| is_judged),
        counts,
        is_judged,
        reach,
        as_good: false,
        observations,
    }))
}

/// Thresholds at which pairs across groups are looked for, where sketches alone decide.
fn twentieths(setting: &EvaluatedSetting) -> Vec<f64> {
    let lowest = setting.matching.threshold.get();
    let twentieths = (1..=20).map(|count| f64::from(count) / 20.0);
    std::iter::once(lowest)
        .chain(twentieths.filter(|&value| value > lowest))
        .collect()
}

/// Which pairs a setting finds at a cut; none if there is no plan for it.
fn find_observations(
    scored: &ScoredPairs<'_>,
    setting: &EvaluatedSetting,
    cut: f64,
) -> Result<Option<Vec<PairObservation>>> {
    let (found, planned) = match setting.swept_parameter() {
        SweptParameter::Threshold => scored.find_by_method(&[cut])?,
        SweptParameter::Distance => (scored.find_by_measure(&[-cut]), 1),
        SweptParameter::Nothing => (scored.find_by_measure(&[cut]), 1),
    };
    Ok((planned != 0).then(|| scored.observations(&found)))
}

impl EvaluatedSetting {
    /// The setting with this threshold or distance.
    fn at_cut(&self, cut: f64) -> Result<Self> {
        let mut setting = self.clone();
        match self.swept_parameter() {
            SweptParameter::Threshold => setting.matching.threshold = Threshold::new(cut)?,
            SweptParameter::Distance => setting.matching.distance = cut as u32,
            SweptParameter::Nothing => {}
        }
        Ok(setting)
    }

    /// Measures the setting on labelled texts with the threshold or distance it has.
    ///
    /// # Errors
    /// A setting without a plan; texts too long for the measure.
    pub fn estimate_metrics(
        &self,
        labelled: &LabelledTexts,
        bootstrap: &BootstrapOptions,
    ) -> Result<MetricEstimates> {
        let cut = match self.swept_parameter() {
            SweptParameter::Distance => f64::from(self.matching.distance),
            SweptParameter::Threshold => self.matching.threshold.get(),
            SweptParameter::Nothing => 1.0,
        };
        let scored = ScoredPairs::new(labelled, self, &[cut])?;
        let Some(observations) = find_observations(&scored, self, cut)? else {
            // The plan itself says why.
            return Err(self.plan_at_threshold(cut).err().unwrap_or_else(|| {
                Error::setting_error(format!("there is no plan for the threshold {cut}"))
            }));
        };
        let (others, units) = (scored.count_unscored_pairs(), labelled.unit_count());
        Ok(estimate_metrics(&observations, others, 1, units, bootstrap)[0])
    }
}
