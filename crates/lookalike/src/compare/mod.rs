//! A detailed comparison of two texts for people: each step of a recipe, and every similarity.
//!
//! The verdict is that of a run over the two texts alone, by the same code. All other figures are
//! computed independently of it, and exactly unless they are named estimates. The steps are consistent:
//! the votes of the features add up to the sums, and the signs of the sums are the bits.
//!
//! Cost: suitable for a few pairs and not for millions, because every measure is computed.

mod form_comparison;
mod steps;

pub use form_comparison::{
    ComparedContents, FilledForm, FormComparison, FormDifference, SlotComparison,
};
pub use steps::{AnalysisSteps, FeatureVote};

use crate::arch::Cpu;
use crate::dedup::{CopyPairs, MatchCorpus, TextReanalysis, find_pairs};
use crate::error::Result;
use crate::plan::{EditUnit, MatchPlan, MatchSettings, MethodSketch, SimilarityMeasure};
use crate::recipe::Recipe;
use crate::similarity::{
    Route, SequenceSymbol, SymbolNoun, WeightedFeature, cosine_similarity, euclidean_distance,
    format_count,
};
use crate::sketch::DocumentSketcher;
use crate::sketch::{
    bottom_k_containment, bottom_k_jaccard, equal_slots, textbook_bottom_k, textbook_k_minima,
};
use crate::text::weight::WEIGHT_STEPS;
use crate::text::{AnalysisExtras, AnalysisScratch, TextAnalysis, TextAnalyzer, TextState};
use crate::types::{DocId, Similarity};

/// The comparison of two texts.
///
/// ```
/// use lookalike::Recipe;
/// use lookalike::compare::Comparison;
/// use lookalike::plan::MatchSettings;
///
/// let recipe = Recipe::built_in("default")?;
/// let (a, b) = ("The boat left at dawn.", "The boat left at noon.");
/// let comparison = Comparison::new(&recipe, MatchSettings::default(), a, b)?;
/// // Three of five pairs of words are in both.
/// assert_eq!(comparison.find_figure("Jaccard").unwrap().value, Some(0.6));
/// // This is below the threshold of 0.75, so the two do not match.
/// assert_eq!(comparison.verdict.similarity, Some(0.6));
/// # Ok::<_, lookalike::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Comparison {
    /// Steps of the recipe for the first text.
    pub a: AnalysisSteps,
    /// Steps of the recipe for the second text.
    pub b: AnalysisSteps,
    /// All similarities, distances and estimates.
    pub figures: Vec<ComparisonFigure>,
    /// Verdict on the two texts, and the reason.
    pub verdict: ComparisonVerdict,
}

/// A number that says how alike two texts are.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparisonFigure {
    /// Name in reports.
    pub name: &'static str,
    /// Kind of the number.
    pub kind: FigureKind,
    /// Value; `None` if it cannot be computed, for the reason in `detail`.
    pub value: Option<f64>,
    /// Explanation of the value.
    pub detail: String,
}

/// The kind of a [`ComparisonFigure`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FigureKind {
    /// An exact similarity, from 0 for nothing in common to 1.
    Similarity,
    /// An exact distance, 0 for no difference.
    Distance,
    /// An unbiased estimate of a similarity, from sketches.
    Estimate,
    /// A biased estimate of a similarity, by the formula of textbooks.
    Biased,
}

impl FigureKind {
    /// Returns the name of the kind in reports.
    pub fn kind_name(self) -> &'static str {
        match self {
            Self::Similarity => "similarity",
            Self::Distance => "distance",
            Self::Estimate => "estimate",
            Self::Biased => "biased estimate",
        }
    }
}

/// The verdict of a run over the two texts.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparisonVerdict {
    /// Route and similarity of the match, if the texts match.
    pub matched: Option<(Route, Similarity)>,
    /// The similarity that is compared with the threshold, whether it reaches it or not; 0 for texts
    /// that can match only by being equal. `None` if it cannot be computed; its [`ComparisonFigure`]
    /// says why.
    pub similarity: Option<f64>,
    /// Reason, as a sentence without its full stop.
    pub why: String,
}

impl Comparison {
    /// Compares two texts under a recipe and settings.
    ///
    /// # Errors
    /// Fails as [`MatchPlan::new`] does. With a measure of sequences, fails if the texts are too long for a
    /// verdict.
    pub fn new(recipe: &Recipe, settings: MatchSettings, a: &str, b: &str) -> Result<Self> {
        let plan = MatchPlan::new(recipe, settings)?;
        let analyzer = TextAnalyzer::new(recipe).with_extras(AnalysisExtras {
            characters: true,
            sentences: Some(settings.sentences),
        });
        let (mut scratch_a, mut scratch_b) =
            (AnalysisScratch::default(), AnalysisScratch::default());
        let in_a = analyzer.analyze_text(a, &mut scratch_a);
        let in_b = analyzer.analyze_text(b, &mut scratch_b);
        let steps = [
            AnalysisSteps::new(&analyzer, a, &in_a, plan.sentence_count()),
            AnalysisSteps::new(&analyzer, b, &in_b, plan.sentence_count()),
        ];
        let figures = compute_figures(recipe, [&in_a, &in_b], &steps);
        let pair = AnalysisPair([&in_a, &in_b]);
        let matched = pair.find_match(recipe, &plan)?;
        let why = pair.explain_verdict(&plan, &figures, &steps, matched);
        let similarity = match matched {
            Some((_, similarity)) => Some(similarity.get()),
            None => pair.short_of_a_match(&plan, &figures),
        };
        let [a, b] = steps;
        Ok(Self {
            a,
            b,
            figures,
            verdict: ComparisonVerdict {
                matched,
                similarity,
                why,
            },
        })
    }

    /// Returns the figure with a name.
    pub fn find_figure(&self, name: &str) -> Option<&ComparisonFigure> {
        self.figures.iter().find(|figure| figure.name == name)
    }
}

/// The analyses of the two texts.
struct AnalysisPair<'a, 't>([&'a TextAnalysis<'t>; 2]);

impl TextReanalysis for AnalysisPair<'_, '_> {
    fn reanalyze_text(
        &self,
        document: DocId,
        visit: &mut dyn FnMut(&TextAnalysis<'_>),
    ) -> Result<()> {
        visit(self.0[document.index()]);
        Ok(())
    }
}

impl AnalysisPair<'_, '_> {
    /// Returns the match that a run over the two texts finds.
    fn find_match(&self, recipe: &Recipe, plan: &MatchPlan) -> Result<Option<(Route, Similarity)>> {
        let sketcher = DocumentSketcher::new(recipe, plan, Cpu::detect_best());
        let mut sketches = sketcher.new_sketches(0);
        for analysis in self.0 {
            sketcher.add_document(analysis, &mut sketches);
        }
        let corpus = MatchCorpus::new(plan, &sketches, self);
        let mut found = None;
        find_pairs(
            &corpus,
            CopyPairs::All,
            |pair| {
                found = Some((pair.route, pair.similarity));
                Ok::<_, crate::Error>(())
            },
            &|_| {},
        )?;
        Ok(found)
    }

    /// Returns the similarity of texts that do not match.
    fn short_of_a_match(&self, plan: &MatchPlan, figures: &[ComparisonFigure]) -> Option<f64> {
        let by_key = plan.equal_key().is_some()
            && plan.match_settings().measure == SimilarityMeasure::Sketch;
        if by_key
            || self
                .0
                .iter()
                .any(|text| text.state != TextState::Fingerprintable)
        {
            return Some(0.0);
        }
        deciding_figure(plan, figures, self.expected_route(plan))
            .map_or(Some(0.0), |figure| figure.value)
    }

    /// Returns the route by which a run would find the pair, judged by the number of features alone.
    fn expected_route(&self, plan: &MatchPlan) -> Route {
        let short = plan.join_plan().map_or(0, |join| join.max_features);
        let is_long = |text: &&TextAnalysis<'_>| {
            let mut features = Vec::new();
            text.append_features(&mut features);
            features.len() > short
        };
        if self.0.iter().all(is_long) {
            Route::MinHash
        } else {
            Route::Join
        }
    }

    fn explain_verdict(
        &self,
        plan: &MatchPlan,
        figures: &[ComparisonFigure],
        steps: &[AnalysisSteps; 2],
        matched: Option<(Route, Similarity)>,
    ) -> String {
        let threshold = plan.threshold().get();
        let route = matched.map_or_else(|| self.expected_route(plan), |(route, _)| route);
        let checked = deciding_figure(plan, figures, route);
        let by_sketch = plan.match_settings().measure == SimilarityMeasure::Sketch;
        let differing = match steps.each_ref().map(|side| side.fingerprint) {
            [Some(a), Some(b)] => (a ^ b).count_ones(),
            _ => 0,
        };
        if by_sketch
            && let Some((route, _)) = matched
            && let Some(key) = plan.equal_key().filter(|key| key.route == route)
        {
            return format!("their {} are the same", key.noun);
        }
        match matched {
            Some((Route::Exact, _)) => return "they are equal after normalisation".into(),
            Some((Route::SimHash, _)) if by_sketch => {
                return format!(
                    "the fingerprints differ in {}, at most the distance {}",
                    format_bits(differing),
                    plan.distance().map_or(0, |distance| distance.get())
                );
            }
            Some((route, similarity)) => {
                return format!(
                    "found by {}; {} {:.4} ≥ the threshold {threshold}",
                    route.name(),
                    checked.map_or("similarity", |figure| figure.name),
                    similarity.get()
                );
            }
            None => {}
        }
        if self.0.iter().any(|text| text.state == TextState::Empty) {
            return "an empty text matches nothing".into();
        }
        if self
            .0
            .iter()
            .any(|text| text.state != TextState::Fingerprintable)
        {
            return "a text that is too short for a feature matches only texts that are equal after \
                    normalisation"
                .into();
        }
        if plan.distance().is_some() && steps.iter().any(|step| step.fingerprint.is_none()) {
            return "a text without a weighted feature matches only texts that are equal after \
                    normalisation"
                .into();
        }
        if let (Some(distance), [Some(a), Some(b)]) = (
            plan.distance(),
            steps.each_ref().map(|side| side.fingerprint),
        ) {
            match plan.block_plan() {
                Some(blocks) if !blocks.share_block(a, b) => {
                    return format!(
                        "the fingerprints share none of {} blocks of bits",
                        blocks.count
                    );
                }
                None if differing > distance.get() => {
                    return format!(
                        "the fingerprints differ in {}, more than the distance {}",
                        format_bits(differing),
                        distance.get()
                    );
                }
                _ => {}
            }
        }
        if let Some(key) = plan.equal_key()
            && (key.key_of)(self.0[0]) != (key.key_of)(self.0[1])
        {
            return format!("their {} differ", key.noun);
        }
        let [a, b] = self.0;
        if let Some(difference) = FormDifference::between_forms(a, b) {
            return difference.to_string();
        }
        let needed = plan.candidate_threshold().get();
        let shared = figures.iter().find(|figure| figure.name == "Jaccard");
        let shared = shared.and_then(|figure| figure.value).unwrap_or(0.0);
        if plan.has_candidate_threshold()
            && shared < needed
            && checked.is_some_and(|checked| checked.value.is_some_and(|value| value >= threshold))
        {
            return format!(
                "they share too few features to be candidates: Jaccard {shared:.4} is below \
                 {needed:.4}, the least for this measure at the threshold {threshold}"
            );
        }
        match checked {
            None => "they are not equal after normalisation".into(),
            Some(figure)
                if figure.value.is_some_and(|value| value >= threshold)
                    && let Some(difference) = FormDifference::between_contents(a, b) =>
            {
                format!(
                    "{} {:.4} reaches the threshold {threshold}, but {difference}",
                    figure.name,
                    figure.value.unwrap_or(0.0)
                )
            }
            Some(figure) if figure.value.is_some_and(|value| value >= threshold) => format!(
                "{} {:.4} reaches the threshold {threshold}, but the sketches did not make them \
                 candidates, as happens to about one pair in a hundred at the threshold",
                figure.name,
                figure.value.unwrap_or(0.0)
            ),
            Some(figure) => format!(
                "{} {:.4} is below the threshold {threshold}",
                figure.name,
                figure.value.unwrap_or(0.0)
            ),
        }
    }
}

fn format_bits(count: u32) -> String {
    format_count(count as usize, "bit", "bits")
}

/// Returns the figure that a plan compares with its threshold, for a pair of this route. Returns `None`
/// if only equal texts match.
fn deciding_figure<'f>(
    plan: &MatchPlan,
    figures: &'f [ComparisonFigure],
    route: Route,
) -> Option<&'f ComparisonFigure> {
    let settings = plan.match_settings();
    if settings.method.finds_equal_texts_alone() {
        return None;
    }
    let [of_characters, of_words] = settings.measure.descriptor().figure_names;
    let by_sketch = settings.measure == SimilarityMeasure::Sketch
        && (plan.join_plan().is_none() || route == Route::MinHash);
    let name = match settings.method.descriptor().sketch {
        MethodSketch::Fingerprint if by_sketch => "SimHash bits",
        MethodSketch::Signature if by_sketch => "MinHash",
        MethodSketch::Smallest if by_sketch => "bottom-k",
        _ if settings.unit == EditUnit::Words => of_words,
        _ => of_characters,
    };
    figures.iter().find(|figure| figure.name == name)
}

/// Returns all figures, in the order in which they are shown.
fn compute_figures(
    recipe: &Recipe,
    analyses: [&TextAnalysis<'_>; 2],
    steps: &[AnalysisSteps; 2],
) -> Vec<ComparisonFigure> {
    let mut all = set_figures(analyses);
    all.extend(of_weights(analyses, steps));
    all.extend(of_sketches(recipe, steps));
    let [a, b] = analyses.map(TextAnalysis::characters);
    let character = SymbolNoun {
        singular: "character",
        plural: "characters",
    };
    add_sequence_figures(EditUnit::Characters, character, a, b, &mut all);
    let [a, b] = analyses.map(TextAnalysis::token_values);
    let word = SymbolNoun {
        singular: "word",
        plural: "words",
    };
    add_sequence_figures(EditUnit::Words, word, a, b, &mut all);
    all
}

fn similarity(name: &'static str, value: Similarity, detail: String) -> ComparisonFigure {
    ComparisonFigure {
        name,
        kind: FigureKind::Similarity,
        value: Some(value.get()),
        detail,
    }
}

/// Returns a figure without a value, for two texts without features.
fn of_nothing(name: &'static str) -> ComparisonFigure {
    ComparisonFigure {
        name,
        kind: FigureKind::Similarity,
        value: None,
        detail: "neither text has a feature".into(),
    }
}

fn set_figures(analyses: [&TextAnalysis<'_>; 2]) -> Vec<ComparisonFigure> {
    let [a, b] = analyses.map(|analysis| {
        let mut features = Vec::new();
        analysis.append_features(&mut features);
        features
    });
    let measures =
        verified_measures().filter_map(|measure| Some((measure, measure.set_measure()?)));
    if a.is_empty() && b.is_empty() {
        let names = measures.map(|(measure, _)| of_nothing(measure.descriptor().figure_names[0]));
        return names.collect();
    }
    let shared = crate::similarity::intersection(&a, &b);
    let figures = measures.map(|(measure, of_sets)| {
        similarity(
            measure.descriptor().figure_names[0],
            of_sets.similarity_of_sizes(shared, a.len(), b.len()),
            of_sets.describe_sizes(shared, a.len(), b.len()),
        )
    });
    figures.collect()
}

/// Returns all measures by which pairs are verified.
fn verified_measures() -> impl Iterator<Item = SimilarityMeasure> {
    let all = SimilarityMeasure::ALL.into_iter();
    all.filter(|&measure| measure != SimilarityMeasure::Sketch)
}

fn of_weights(
    analyses: [&TextAnalysis<'_>; 2],
    steps: &[AnalysisSteps; 2],
) -> Vec<ComparisonFigure> {
    let [counts_a, counts_b] = steps.each_ref().map(count_features);
    let [a, b] = analyses.map(|analysis| {
        let mut weighted = Vec::new();
        analysis.weighted_features(&mut weighted);
        weighted
    });
    let measures =
        verified_measures().filter_map(|measure| Some((measure, measure.weight_measure()?)));
    if a.is_empty() && b.is_empty() {
        let distance = ComparisonFigure {
            kind: FigureKind::Distance,
            ..of_nothing("Euclidean distance")
        };
        let mut figures = vec![of_nothing("cosine of counts")];
        figures
            .extend(measures.map(|(measure, _)| of_nothing(measure.descriptor().figure_names[0])));
        figures.push(distance);
        return figures;
    }
    let weighed = analyses
        .iter()
        .any(|analysis| analysis.iter_weighted().is_some());
    let unit = if weighed { WEIGHT_STEPS as f64 } else { 1.0 };
    let detail = "of the weights of the recipe";
    let mut figures = vec![similarity(
        "cosine of counts",
        cosine_similarity(&counts_a, &counts_b),
        "of how often features occur".into(),
    )];
    figures.extend(measures.map(|(measure, of_weights)| {
        let name = measure.descriptor().figure_names[0];
        similarity(name, of_weights(&a, &b), detail.into())
    }));
    figures.push(ComparisonFigure {
        name: "Euclidean distance",
        kind: FigureKind::Distance,
        value: Some(euclidean_distance(&a, &b) / unit),
        detail: detail.into(),
    });
    figures
}

/// Returns how often each feature occurs, ascending by feature.
fn count_features(steps: &AnalysisSteps) -> Vec<WeightedFeature> {
    let features = steps.features.iter();
    let mut counts: Vec<WeightedFeature> = features
        .map(|feature| (feature.value, feature.count as i64))
        .collect();
    counts.sort_unstable();
    counts
}

fn of_sketches(recipe: &Recipe, steps: &[AnalysisSteps; 2]) -> Vec<ComparisonFigure> {
    let mut all = Vec::new();
    let mut add = |name, kind, value: f64, detail| {
        all.push(ComparisonFigure {
            name,
            kind,
            value: Some(value),
            detail,
        });
    };
    if let [Some(a), Some(b)] = steps.each_ref().map(|steps| steps.fingerprint) {
        let bits = f64::from(recipe.simhash.bits);
        let differing = f64::from((a ^ b).count_ones());
        let detail = format!("{differing} of {bits} differ");
        add(
            "SimHash bits",
            FigureKind::Similarity,
            1.0 - differing / bits,
            detail,
        );
        let angle = std::f64::consts::PI * differing / bits;
        let detail = "of the weights, by the angle that the differing bits stand for".into();
        add(
            "cosine by SimHash",
            FigureKind::Estimate,
            angle.cos(),
            detail,
        );
    }
    if let [Some(a), Some(b)] = steps.each_ref().map(|steps| steps.signature.as_deref()) {
        let equal = equal_slots(a, b);
        let detail = format!("of Jaccard: {equal} of {} slots are equal", a.len());
        add(
            "MinHash",
            FigureKind::Estimate,
            equal as f64 / a.len() as f64,
            detail,
        );
        let detail = "of Jaccard: minima in both by minima in either".into();
        let value = textbook_k_minima(a, b).get();
        add("MinHash, textbook", FigureKind::Biased, value, detail);
    }
    let kept = recipe.minhash.slots as usize;
    let [a, b] = steps.each_ref().map(|steps| &steps.smallest[..]);
    if a.is_empty() && b.is_empty() {
        return all;
    }
    let of = |what: &str| format!("of {what}, by the {kept} smallest hashes");
    let value = bottom_k_jaccard(a, b, kept).get();
    add("bottom-k", FigureKind::Estimate, value, of("Jaccard"));
    let contained = bottom_k_containment(a, b, kept).get();
    let value = contained.max(bottom_k_containment(b, a, kept).get());
    add(
        "containment by bottom-k",
        FigureKind::Estimate,
        value,
        of("containment"),
    );
    let value = textbook_bottom_k(a, b).get();
    let detail = "of Jaccard: smallest hashes in both by those in either".into();
    add("bottom-k, textbook", FigureKind::Biased, value, detail);
    all
}

/// Largest number of cells of an edit distance table that are computed for one figure: some seconds of
/// work.
const MOST_CELLS: u64 = 100_000_000_000;

/// Adds the figures of the measures of sequences, for two texts by characters or by words.
fn add_sequence_figures<S: SequenceSymbol>(
    unit: EditUnit,
    symbol: SymbolNoun,
    a: &[S],
    b: &[S],
    all: &mut Vec<ComparisonFigure>,
) {
    // The largest number of edits that can be counted in some seconds.
    let longest = a.len().max(b.len()).max(1);
    let most_edits = usize::try_from(MOST_CELLS / longest as u64).unwrap_or(usize::MAX);
    for measure in SimilarityMeasure::ALL {
        let Some(of_sequences) = measure.sequence_measure() else {
            continue;
        };
        let [of_characters, of_words] = measure.descriptor().figure_names;
        let name = match unit {
            EditUnit::Characters => of_characters,
            EditUnit::Words => of_words,
        };
        let (value, detail) = if a.is_empty() && b.is_empty() {
            (None, format!("neither text has any {}", symbol.plural))
        } else {
            match of_sequences.describe_similarity(a, b, most_edits, symbol) {
                Ok((similarity, detail)) => (Some(similarity.get()), detail),
                Err(error) => (None, error.to_string()),
            }
        };
        all.push(ComparisonFigure {
            name,
            kind: FigureKind::Similarity,
            value,
            detail,
        });
    }
}

#[cfg(test)]
mod tests;
