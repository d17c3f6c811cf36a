//! Precision, recall and F1 of a setting at every cut, with intervals and by class of text.

use std::collections::BTreeMap;

use serde::Serialize;

use super::bootstrap::{
    BootstrapOptions, FoundAtCuts, MOST_CUTS, MetricEstimates, PairObservation, estimate_metrics,
};
use super::classes::TextClass;
use super::curve::{PrecisionRecallCurve, TuningGoal};
use super::labelled::{LabelledPair, LabelledTexts};
use super::scored::{EvaluatedSetting, ScoredPairs, SweptParameter};
use crate::error::{Error, Result};

/// Options of an evaluation.
#[derive(Clone, Debug, PartialEq)]
pub struct EvaluationOptions {
    /// Thresholds to evaluate besides the best one, ascending. The first is the lowest considered.
    pub thresholds: Vec<f64>,
    /// Options of the intervals.
    pub bootstrap: BootstrapOptions,
}

/// The performance of a setting on labelled texts.
///
/// ```
/// use lookalike::quality::evaluate::{BootstrapOptions, Evaluation, LabelledTexts, EvaluationOptions, EvaluatedSetting};
/// use lookalike::plan::MatchSettings;
/// use lookalike::{Recipe, Threshold};
///
/// let texts = ["The boat left at dawn.", "The boat left at noon.", "Snow fell on the pass."];
/// let labelled = LabelledTexts::from_groups(texts.map(String::from).to_vec(), vec![0, 0, 1])?;
/// let matching = MatchSettings { threshold: Threshold::new(0.5)?, ..MatchSettings::default() };
/// let setting = EvaluatedSetting { recipe: Recipe::built_in("default")?, matching };
/// let options = EvaluationOptions { thresholds: vec![0.5, 0.9], bootstrap: BootstrapOptions::default() };
/// let evaluation = Evaluation::new(&labelled, &setting, &options)?;
/// // The similar pair has a Jaccard index of 0.6: it is found at 0.5 and missed at 0.9.
/// assert_eq!(evaluation.points[0].measure.recall.value, Some(1.0));
/// assert_eq!(evaluation.points.last().unwrap().measure.recall.value, Some(0.0));
/// # Ok::<_, lookalike::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Evaluation {
    /// Quantity that varies: threshold, distance or nothing.
    pub sweep: SweptParameter,
    /// Number of blocks of bits, if candidates are fingerprints that share one.
    pub blocks: Option<u32>,
    /// A point for every threshold or distance, ascending: the given thresholds and the one with the
    /// highest F1 of the measure, or the distances from 0 up.
    pub points: Vec<EvaluationPoint>,
    /// Point at which the method has the highest F1. If several have it, this is the best point of the
    /// measure, or else the strictest. `None` if F1 has no value anywhere.
    pub best: Option<usize>,
    /// Figures at the best point by class of text: length, script, and edit if it is known.
    pub breakdown: Vec<ClassBreakdown>,
}

/// The figures at one threshold or distance.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct EvaluationPoint {
    /// Least similarity of a match, or largest distance; 1 if nothing varies.
    pub cut: f64,
    /// Figures of the measure, as if every pair were compared.
    pub measure: MetricEstimates,
    /// Figures of the method, which compares candidates only; `None` if no plan has this threshold.
    pub method: Option<MetricEstimates>,
}

impl EvaluationPoint {
    /// Returns the method's figures if there are any, else the measure's.
    pub fn decisive_metrics(&self) -> &MetricEstimates {
        self.method.as_ref().unwrap_or(&self.measure)
    }
}

/// Pairs divided into classes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClassBreakdown {
    /// Criterion: `length`, `script` or `kind`.
    pub by: &'static str,
    /// Classes that occur, in their own order.
    pub classes: Vec<ClassMetrics>,
}

/// The figures of one class. A pair has the class of its shorter text.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClassMetrics {
    /// Name of the class.
    pub name: String,
    /// Figures of the method on the pairs of the class. Pairs that are neither listed nor found are not
    /// counted.
    pub metrics: MetricEstimates,
}

impl Evaluation {
    /// Evaluates a setting. Its threshold is the lowest considered.
    ///
    /// # Errors
    /// Fails if there are no thresholds or distances, more than 127 of them, or one outside its range;
    /// if the setting has no plan at any of the thresholds; or if texts are too long for the measure.
    pub fn new(
        labelled: &LabelledTexts,
        setting: &EvaluatedSetting,
        options: &EvaluationOptions,
    ) -> Result<Self> {
        let cuts = EvaluatedCuts::new(setting, options)?;
        let scored = ScoredPairs::new(labelled, setting, &cuts.values)?;
        let cuts = cuts.with_best_threshold(&scored.measure_curve(), setting);
        let measured = scored.find_by_measure(&cuts.score_cuts());
        let (decided, planned) = match cuts.sweep {
            SweptParameter::Threshold => scored.find_by_method(&cuts.values)?,
            // The score alone decides.
            SweptParameter::Distance | SweptParameter::Nothing => {
                (measured.clone(), FoundAtCuts::MAX)
            }
        };
        if planned == 0 {
            setting.plan_at_threshold(cuts.values[cuts.values.len() - 1])?;
        }
        let figures = |found: &[FoundAtCuts]| {
            estimate_metrics(
                &scored.observations(found),
                scored.count_unscored_pairs(),
                cuts.values.len(),
                labelled.unit_count(),
                &options.bootstrap,
            )
        };
        let by_measure = figures(&measured);
        let by_method = match cuts.sweep {
            SweptParameter::Threshold => figures(&decided),
            SweptParameter::Distance | SweptParameter::Nothing => by_measure.clone(),
        };
        let points: Vec<EvaluationPoint> = (0..cuts.values.len())
            .map(|at| EvaluationPoint {
                cut: cuts.values[at],
                measure: by_measure[at],
                method: (planned >> at & 1 == 1).then_some(by_method[at]),
            })
            .collect();
        let best = best_by_f1(&points, &cuts);
        let breakdown = best.map_or_else(Vec::new, |best| {
            let found = if points[best].method.is_some() {
                decided
            } else {
                measured
            };
            let found: Vec<FoundAtCuts> =
                found.into_iter().map(|found| found >> best & 1).collect();
            break_down_pairs(labelled, &scored, &found, &options.bootstrap)
        });
        Ok(Self {
            sweep: cuts.sweep,
            blocks: setting.block_count(),
            points,
            best,
            breakdown,
        })
    }
}

/// The cuts to evaluate.
struct EvaluatedCuts {
    sweep: SweptParameter,
    values: Vec<f64>,
    /// Threshold at which the measure does best.
    of_measure: Option<f64>,
}

impl EvaluatedCuts {
    fn new(setting: &EvaluatedSetting, options: &EvaluationOptions) -> Result<Self> {
        let sweep = setting.swept_parameter();
        let values: Vec<f64> = match sweep {
            SweptParameter::Threshold => options.thresholds.clone(),
            SweptParameter::Distance => (0..=setting.matching.distance).map(f64::from).collect(),
            SweptParameter::Nothing => vec![1.0],
        };
        // Room for one more is needed, because the best threshold is added later.
        if values.is_empty() || values.len() >= MOST_CUTS {
            return Err(Error::setting_error(format!(
                "{} {} are requested: give 1 to {}",
                values.len(),
                match sweep {
                    SweptParameter::Distance => "distances, from 0 to the largest,",
                    _ => "thresholds",
                },
                MOST_CUTS - 1
            )));
        }
        Ok(Self {
            sweep,
            values,
            of_measure: None,
        })
    }

    /// Adds the threshold with the highest F1 of the measure.
    fn with_best_threshold(
        mut self,
        curve: &PrecisionRecallCurve,
        setting: &EvaluatedSetting,
    ) -> Self {
        if let (SweptParameter::Threshold, Some(best)) =
            (self.sweep, curve.best_point(TuningGoal::F1))
        {
            let threshold = curve.rounded_threshold(best, setting.matching.threshold.get());
            self.values.push(threshold);
            self.values.sort_by(f64::total_cmp);
            self.values.dedup();
            self.of_measure = Some(threshold);
        }
        self
    }

    /// Returns the cuts as scores.
    fn score_cuts(&self) -> Vec<f64> {
        let sign = if self.sweep == SweptParameter::Distance {
            -1.0
        } else {
            1.0
        };
        self.values.iter().map(|value| sign * value).collect()
    }
}

/// Returns the point with the highest F1.
fn best_by_f1(points: &[EvaluationPoint], cuts: &EvaluatedCuts) -> Option<usize> {
    let f1 = |at: usize| points[at].decisive_metrics().f1.value;
    let highest = (0..points.len()).filter_map(f1).max_by(f64::total_cmp)?;
    let mut best = (0..points.len()).filter(|&at| f1(at) == Some(highest));
    let of_measure = |at: &usize| Some(points[*at].cut) == cuts.of_measure;
    best.clone().find(of_measure).or_else(|| match cuts.sweep {
        SweptParameter::Distance => best.next(),
        SweptParameter::Threshold | SweptParameter::Nothing => best.next_back(),
    })
}

fn break_down_pairs(
    labelled: &LabelledTexts,
    scored: &ScoredPairs<'_>,
    found: &[FoundAtCuts],
    bootstrap: &BootstrapOptions,
) -> Vec<ClassBreakdown> {
    let of_text = labelled.classify_texts();
    let class = |pair: &LabelledPair| -> TextClass {
        let (a, b) = (of_text[pair.a.index()], of_text[pair.b.index()]);
        let order = |class: &TextClass| (class.tokens, class.script);
        if order(&a) <= order(&b) { a } else { b }
    };
    let observations = scored.observations(found);
    let parted = PairBreakdown {
        pairs: &scored.pairs,
        observations: &observations,
        units: labelled.unit_count(),
        bootstrap,
    };
    let mut all = vec![
        parted.break_down_by(
            "length",
            |pair| Some(class(pair).length),
            |length| length.name(),
        ),
        parted.break_down_by(
            "script",
            |pair| Some(class(pair).script),
            |name| name.name().to_owned(),
        ),
    ];
    if !labelled.edit_kinds().is_empty() {
        let kind = |pair: &LabelledPair| Some(&labelled.edit_kinds()[pair.kind? as usize]);
        all.push(parted.break_down_by("kind", kind, |name| (*name).clone()));
    }
    all
}

/// Pairs to be divided into classes.
struct PairBreakdown<'a> {
    pairs: &'a [LabelledPair],
    observations: &'a [PairObservation],
    units: usize,
    bootstrap: &'a BootstrapOptions,
}

impl PairBreakdown<'_> {
    fn break_down_by<K: Ord>(
        &self,
        by: &'static str,
        class: impl Fn(&LabelledPair) -> Option<K>,
        name: impl Fn(&K) -> String,
    ) -> ClassBreakdown {
        let mut parts: BTreeMap<K, Vec<PairObservation>> = BTreeMap::new();
        for (pair, observation) in self.pairs.iter().zip(self.observations) {
            if let Some(class) = class(pair) {
                parts.entry(class).or_default().push(*observation);
            }
        }
        let classes = parts.iter().map(|(class, observations)| ClassMetrics {
            name: name(class),
            metrics: estimate_metrics(observations, 0, 1, self.units, self.bootstrap)[0],
        });
        ClassBreakdown {
            by,
            classes: classes.collect(),
        }
    }
}
