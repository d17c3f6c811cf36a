//! Precision, recall and F1 of a setting at every cut, with intervals and by kinds of text.

use std::collections::BTreeMap;

use serde::Serialize;

use super::bootstrap::{Bootstrap, Found, MOST_CUTS, Metrics, Observation, metrics};
use super::classes::TextClass;
use super::curve::{Curve, Goal};
use super::labelled::{Labelled, LabelledPair};
use super::scored::{Scored, Setting, Sweep};
use crate::error::{Error, Result};

/// What is asked of an evaluation.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The thresholds that are looked at besides the best, ascending; the first is the lowest.
    pub thresholds: Vec<f64>,
    /// How intervals are made.
    pub bootstrap: Bootstrap,
}

/// How a setting does on labelled texts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Evaluation {
    /// What is open in the setting.
    pub sweep: Sweep,
    /// How many blocks of bits there are, if candidates are fingerprints that share one.
    pub blocks: Option<u32>,
    /// A point for every threshold or distance, ascending: the thresholds asked for and the one with
    /// the highest F1 of the measure, or the distances from 0 on.
    pub points: Vec<Point>,
    /// The point where the method has the highest F1; of several the one that the measure does best
    /// at, or else the strictest. None if F1 has no value anywhere.
    pub best: Option<usize>,
    /// What happens at the best point, by kinds of text: length, script, and edit if it is known.
    pub breakdown: Vec<Breakdown>,
}

/// What is found with a threshold or a distance.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Point {
    /// The least similarity that matches, or the largest distance; 1 if nothing is open.
    pub cut: f64,
    /// What the measure finds, if every pair is compared.
    pub measure: Metrics,
    /// What the method finds, whose candidates may not meet; none if no plan has this threshold.
    pub method: Option<Metrics>,
}

impl Point {
    /// The method's figures, or else the measure's.
    pub fn decisive(&self) -> &Metrics {
        self.method.as_ref().unwrap_or(&self.measure)
    }
}

/// Pairs parted by what they are.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Breakdown {
    /// By what: `length`, `script` or `kind`.
    pub by: &'static str,
    /// The classes that occur, in their own order.
    pub classes: Vec<Class>,
}

/// Pairs of one class; a pair has the class of its shorter text.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Class {
    /// Its name.
    pub name: String,
    /// How the method does on its pairs. Pairs that are neither listed nor found are not counted.
    pub metrics: Metrics,
}

impl Evaluation {
    /// Evaluates a setting. The threshold in it is the lowest that is looked at.
    ///
    /// # Errors
    /// If there are more than 127 thresholds or distances, or one outside its range; if the setting
    /// has no plan at any of the thresholds; if texts are too long for the measure.
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

/// The cuts that are looked at.
struct Cuts {
    sweep: Sweep,
    values: Vec<f64>,
    /// The threshold at which the measure does best.
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
        // One more is found.
        if values.is_empty() || values.len() >= MOST_CUTS {
            return Err(Error::setting(format!(
                "{} {} are to be looked at: give 1 to {}",
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

    /// The threshold with the highest F1 besides.
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

    /// The cuts as scores.
    fn scores(&self) -> Vec<f64> {
        let sign = if self.sweep == Sweep::Distance {
            -1.0
        } else {
            1.0
        };
        self.values.iter().map(|value| sign * value).collect()
    }
}

/// The point with the highest F1.
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

/// Pairs that are to be parted.
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
