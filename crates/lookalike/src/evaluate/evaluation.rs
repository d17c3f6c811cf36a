//! Precision, recall and F1 of a setting at every cut, with intervals and by class of text.

use std::collections::BTreeMap;

use serde::Serialize;

use super::bootstrap::{Bootstrap, Found, MOST_CUTS, Metrics, Observation, metrics};
use super::classes::TextClass;
use super::curve::{Curve, Goal};
use super::labelled::{Labelled, LabelledPair};
use super::scored::{Scored, Setting, Sweep};
use crate::error::{Error, Result};

/// Options of an evaluation.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Thresholds to evaluate besides the best one, ascending. The first is the lowest considered.
    pub thresholds: Vec<f64>,
    /// Options of the intervals.
    pub bootstrap: Bootstrap,
}

/// The performance of a setting on labelled texts.
///
/// ```
/// use lookalike::evaluate::{Bootstrap, Evaluation, Labelled, Options, Setting};
/// use lookalike::plan::Settings;
/// use lookalike::{Recipe, Threshold};
///
/// let texts = ["The boat left at dawn.", "The boat left at noon.", "Snow fell on the pass."];
/// let labelled = Labelled::of_groups(texts.map(String::from).to_vec(), vec![0, 0, 1])?;
/// let matching = Settings { threshold: Threshold::new(0.5)?, ..Settings::default() };
/// let setting = Setting { recipe: Recipe::named("default")?, matching };
/// let options = Options { thresholds: vec![0.5, 0.9], bootstrap: Bootstrap::default() };
/// let evaluation = Evaluation::new(&labelled, &setting, &options)?;
/// // The similar pair has a Jaccard index of 0.6: it is found at 0.5 and missed at 0.9.
/// assert_eq!(evaluation.points[0].measure.recall.value, Some(1.0));
/// assert_eq!(evaluation.points.last().unwrap().measure.recall.value, Some(0.0));
/// # Ok::<_, lookalike::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Evaluation {
    /// Quantity that varies: threshold, distance or nothing.
    pub sweep: Sweep,
    /// Number of blocks of bits, if candidates are fingerprints that share one.
    pub blocks: Option<u32>,
    /// A point for every threshold or distance, ascending: the given thresholds and the one with the
    /// highest F1 of the measure, or the distances from 0 up.
    pub points: Vec<Point>,
    /// Point at which the method has the highest F1. If several have it, this is the best point of the
    /// measure, or else the strictest. `None` if F1 has no value anywhere.
    pub best: Option<usize>,
    /// Figures at the best point by class of text: length, script, and edit if it is known.
    pub breakdown: Vec<Breakdown>,
}

/// The figures at one threshold or distance.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Point {
    /// Least similarity of a match, or largest distance; 1 if nothing varies.
    pub cut: f64,
    /// Figures of the measure, as if every pair were compared.
    pub measure: Metrics,
    /// Figures of the method, which compares candidates only; `None` if no plan has this threshold.
    pub method: Option<Metrics>,
}

impl Point {
    /// Returns the method's figures if there are any, else the measure's.
    pub fn decisive(&self) -> &Metrics {
        self.method.as_ref().unwrap_or(&self.measure)
    }
}

/// Pairs divided into classes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Breakdown {
    /// Criterion: `length`, `script` or `kind`.
    pub by: &'static str,
    /// Classes that occur, in their own order.
    pub classes: Vec<Class>,
}

/// The figures of one class. A pair has the class of its shorter text.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Class {
    /// Name of the class.
    pub name: String,
    /// Figures of the method on the pairs of the class. Pairs that are neither listed nor found are not
    /// counted.
    pub metrics: Metrics,
}

impl Evaluation {
    /// Evaluates a setting. Its threshold is the lowest considered.
    ///
    /// # Errors
    /// Fails if there are no thresholds or distances, more than 127 of them, or one outside its range;
    /// if the setting has no plan at any of the thresholds; or if texts are too long for the measure.
    pub fn new(labelled: &Labelled, setting: &Setting, options: &Options) -> Result<Self> {
        let cuts = Cuts::new(setting, options)?;
        let scored = Scored::new(labelled, setting, &cuts.values)?;
        let cuts = cuts.with_best(&scored.curve(), setting);
        let measured = scored.measured(&cuts.scores());
        let (decided, planned) = match cuts.sweep {
            Sweep::Threshold => scored.decided(&cuts.values)?,
            // The score alone decides.
            Sweep::Distance | Sweep::Nothing => (measured.clone(), Found::MAX),
        };
        if planned == 0 {
            setting.plan_at(cuts.values[cuts.values.len() - 1])?;
        }
        let figures = |found: &[Found]| {
            metrics(
                &scored.observations(found),
                scored.others(),
                cuts.values.len(),
                labelled.units(),
                &options.bootstrap,
            )
        };
        let by_measure = figures(&measured);
        let by_method = match cuts.sweep {
            Sweep::Threshold => figures(&decided),
            Sweep::Distance | Sweep::Nothing => by_measure.clone(),
        };
        let points: Vec<Point> = (0..cuts.values.len())
            .map(|at| Point {
                cut: cuts.values[at],
                measure: by_measure[at],
                method: (planned >> at & 1 == 1).then_some(by_method[at]),
            })
            .collect();
        let best = best(&points, &cuts);
        let breakdown = best.map_or_else(Vec::new, |best| {
            let found = if points[best].method.is_some() {
                decided
            } else {
                measured
            };
            let found: Vec<Found> = found.into_iter().map(|found| found >> best & 1).collect();
            breakdown(labelled, &scored, &found, &options.bootstrap)
        });
        Ok(Self {
            sweep: cuts.sweep,
            blocks: setting.blocks(),
            points,
            best,
            breakdown,
        })
    }
}

/// The cuts to evaluate.
struct Cuts {
    sweep: Sweep,
    values: Vec<f64>,
    /// Threshold at which the measure does best.
    of_measure: Option<f64>,
}

impl Cuts {
    fn new(setting: &Setting, options: &Options) -> Result<Self> {
        let sweep = setting.sweep();
        let values: Vec<f64> = match sweep {
            Sweep::Threshold => options.thresholds.clone(),
            Sweep::Distance => (0..=setting.matching.distance).map(f64::from).collect(),
            Sweep::Nothing => vec![1.0],
        };
        // Room for one more is needed, because the best threshold is added later.
        if values.is_empty() || values.len() >= MOST_CUTS {
            return Err(Error::setting(format!(
                "{} {} are requested: give 1 to {}",
                values.len(),
                match sweep {
                    Sweep::Distance => "distances, from 0 to the largest,",
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
    fn with_best(mut self, curve: &Curve, setting: &Setting) -> Self {
        if let (Sweep::Threshold, Some(best)) = (self.sweep, curve.best(Goal::F1)) {
            let threshold = curve.threshold(best, setting.matching.threshold.get());
            self.values.push(threshold);
            self.values.sort_by(f64::total_cmp);
            self.values.dedup();
            self.of_measure = Some(threshold);
        }
        self
    }

    /// Returns the cuts as scores.
    fn scores(&self) -> Vec<f64> {
        let sign = if self.sweep == Sweep::Distance {
            -1.0
        } else {
            1.0
        };
        self.values.iter().map(|value| sign * value).collect()
    }
}

/// Returns the point with the highest F1.
fn best(points: &[Point], cuts: &Cuts) -> Option<usize> {
    let f1 = |at: usize| points[at].decisive().f1.value;
    let highest = (0..points.len()).filter_map(f1).max_by(f64::total_cmp)?;
    let mut best = (0..points.len()).filter(|&at| f1(at) == Some(highest));
    let of_measure = |at: &usize| Some(points[*at].cut) == cuts.of_measure;
    best.clone().find(of_measure).or_else(|| match cuts.sweep {
        Sweep::Distance => best.next(),
        Sweep::Threshold | Sweep::Nothing => best.next_back(),
    })
}

fn breakdown(
    labelled: &Labelled,
    scored: &Scored<'_>,
    found: &[Found],
    bootstrap: &Bootstrap,
) -> Vec<Breakdown> {
    let of_text = labelled.classes();
    let class = |pair: &LabelledPair| -> TextClass {
        let (a, b) = (of_text[pair.a.index()], of_text[pair.b.index()]);
        let order = |class: &TextClass| (class.tokens, class.script);
        if order(&a) <= order(&b) { a } else { b }
    };
    let observations = scored.observations(found);
    let parted = Parted {
        pairs: &scored.pairs,
        observations: &observations,
        units: labelled.units(),
        bootstrap,
    };
    let mut all = vec![
        parted.by("length", |pair| Some(class(pair).length), |it| it.name()),
        parted.by(
            "script",
            |pair| Some(class(pair).script),
            |it| it.name().to_owned(),
        ),
    ];
    if !labelled.kinds().is_empty() {
        let kind = |pair: &LabelledPair| Some(&labelled.kinds()[pair.kind? as usize]);
        all.push(parted.by("kind", kind, |name| (*name).clone()));
    }
    all
}

/// Pairs to be divided into classes.
struct Parted<'a> {
    pairs: &'a [LabelledPair],
    observations: &'a [Observation],
    units: usize,
    bootstrap: &'a Bootstrap,
}

impl Parted<'_> {
    fn by<K: Ord>(
        &self,
        by: &'static str,
        class: impl Fn(&LabelledPair) -> Option<K>,
        name: impl Fn(&K) -> String,
    ) -> Breakdown {
        let mut parts: BTreeMap<K, Vec<Observation>> = BTreeMap::new();
        for (pair, observation) in self.pairs.iter().zip(self.observations) {
            if let Some(class) = class(pair) {
                parts.entry(class).or_default().push(*observation);
            }
        }
        let classes = parts.iter().map(|(class, observations)| Class {
            name: name(class),
            metrics: metrics(observations, 0, 1, self.units, self.bootstrap)[0],
        });
        Breakdown {
            by,
            classes: classes.collect(),
        }
    }
}
