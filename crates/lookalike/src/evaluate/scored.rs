//! All pairs that matter, with their scores under a setting.

use rayon::prelude::*;
use serde::Serialize;

use super::bootstrap::{Found, Observation};
use super::curve::Curve;
use super::labelled::{Labelled, LabelledPair, MOST_PAIRS};
use super::measure::Scorer;
use crate::arch::Cpu;
use crate::error::{Error, ErrorKind, Result};
use crate::matching::{CopyPairs, Corpus, Texts, decide_pairs, find_pairs};
use crate::plan::{Candidates, Measure, Method, Plan, Settings};
use crate::recipe::Recipe;
use crate::sketches::{Sketcher, Sketches};
use crate::text::{Analysis, Analyzer, Scratch};
use crate::types::{DocId, Threshold};
use crate::verify::Weighted;

/// A setting to evaluate: a recipe with match options whose threshold or distance varies.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Recipe of the texts.
    pub recipe: Recipe,
    /// Method and measure. The threshold is the lowest considered. With fingerprints alone, the
    /// distance is the largest.
    pub matching: Settings,
}

/// The quantity that varies in a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Sweep {
    /// The least similarity of a match.
    Threshold,
    /// The largest Hamming distance of a match.
    Distance,
    /// Nothing, because texts either match or do not.
    Nothing,
}

impl Setting {
    /// Returns the quantity that varies.
    pub fn sweep(&self) -> Sweep {
        match (self.matching.method, self.matching.measure) {
            (Method::SimHash, Measure::Sketch) => Sweep::Distance,
            (Method::Exact, _) | (Method::Sentences, Measure::Sketch) => Sweep::Nothing,
            _ => Sweep::Threshold,
        }
    }

    /// Returns the number of blocks of bits, if candidates are fingerprints that share one.
    pub(super) fn blocks(&self) -> Option<u32> {
        let matching = &self.matching;
        let by_blocks =
            matching.method == Method::SimHash && matching.candidates == Candidates::Blocks;
        by_blocks.then_some(matching.distance + 1)
    }

    /// Returns the plan with another threshold.
    pub(super) fn plan_at(&self, threshold: f64) -> Result<Plan> {
        let settings = Settings {
            threshold: Threshold::new(threshold)?,
            ..self.matching
        };
        Plan::new(&self.recipe, settings)
    }

    /// Returns a plan that finds candidates by the exact join, which works at every threshold.
    fn join_plan(&self) -> Result<Plan> {
        let settings = Settings {
            method: Method::Join,
            ..self.matching
        };
        Plan::new(&self.recipe, settings)
    }

    /// Returns a plan with the measure, distance and bits of the setting, whatever its threshold is.
    /// Some methods have no plan at low thresholds.
    fn measuring_plan(&self) -> Result<Plan> {
        let by_slots = matches!(self.matching.method, Method::Auto | Method::MinHash);
        let by_smallest = self.matching.method == Method::BottomK;
        let settings = Settings {
            threshold: if by_slots || by_smallest {
                Threshold::new(1.0)?
            } else {
                self.matching.threshold
            },
            ..self.matching
        };
        match self.matching.measure {
            Measure::Sketch => Plan::new(&self.recipe, settings),
            _ if self.matching.method == Method::Exact => Plan::new(&self.recipe, settings),
            _ => self.join_plan(),
        }
    }
}

/// The pairs of labelled texts with their scores under a setting. With groups, these include pairs
/// across groups that reach the lowest threshold or the largest distance.
pub(super) struct Scored<'a> {
    labelled: &'a Labelled,
    setting: &'a Setting,
    pub(super) pairs: Vec<LabelledPair>,
    pub(super) scores: Vec<Option<f64>>,
}

impl<'a> Scored<'a> {
    /// Scores the pairs. `thresholds` are those that will be decided.
    ///
    /// # Errors
    /// Fails if the setting has no plan, if too many pairs across groups are found, or if texts are too
    /// long for the measure.
    pub(super) fn new(
        labelled: &'a Labelled,
        setting: &'a Setting,
        thresholds: &[f64],
    ) -> Result<Self> {
        let mut scored = Self {
            labelled,
            setting,
            pairs: labelled.pairs().to_vec(),
            scores: Vec::new(),
        };
        if labelled.groups().is_some() {
            scored.pairs.extend(scored.across(thresholds)?);
        }
        scored.pairs.sort_unstable_by_key(|pair| (pair.a, pair.b));
        scored.scores = scored.score()?;
        Ok(scored)
    }

    /// Returns the number of pairs that are not similar and that no threshold or distance finds.
    pub(super) fn others(&self) -> u64 {
        let found = self.pairs.len() - self.labelled.pairs().len();
        self.labelled.unlisted() - found as u64
    }

    /// Returns the curve of the measure alone.
    pub(super) fn curve(&self) -> Curve {
        let similar = self.pairs.iter().map(|pair| pair.similar);
        Curve::new(self.scores.iter().copied().zip(similar), self.others())
    }

    /// Returns the pairs for resampling, with the cuts at which each is `found`.
    pub(super) fn observations(&self, found: &[Found]) -> Vec<Observation> {
        let unit = |document| self.labelled.unit(document);
        let pairs = self.pairs.iter().zip(found);
        pairs
            .map(|(pair, &found)| Observation {
                units: [unit(pair.a), unit(pair.b)],
                similar: pair.similar,
                found,
            })
            .collect()
    }

    /// Returns, for each pair, the cuts that its score reaches.
    pub(super) fn measured(&self, cuts: &[f64]) -> Vec<Found> {
        let found = |score: f64| {
            let bits = (0..)
                .zip(cuts)
                .map(|(at, &cut)| Found::from(score >= cut) << at);
            bits.fold(0, |found, bit| found | bit)
        };
        self.scores
            .iter()
            .map(|score| score.map_or(0, found))
            .collect()
    }

    /// Returns, for each pair, the thresholds at which the whole method finds it, and also the
    /// thresholds that have a plan.
    ///
    /// # Errors
    /// Fails if texts are too long for the measure.
    pub(super) fn decided(&self, thresholds: &[f64]) -> Result<(Vec<Found>, Found)> {
        let mut found = vec![0; self.pairs.len()];
        let mut planned: Found = 0;
        let named: Vec<_> = self.pairs.iter().map(|pair| (pair.a, pair.b)).collect();
        let mut sketched = None;
        let mut ascending: Vec<usize> = (0..thresholds.len()).collect();
        ascending.sort_by(|&a, &b| thresholds[a].total_cmp(&thresholds[b]));
        for at in ascending {
            let Ok(plan) = self.setting.plan_at(thresholds[at]) else {
                continue;
            };
            planned |= 1 << at;
            // Sketches for the lowest threshold also serve all higher ones.
            let sketches = sketched.get_or_insert_with(|| self.sketch(&plan));
            let decided =
                self.with_corpus(&plan, sketches, |corpus| decide_pairs(corpus, &named))?;
            for (found, decided) in found.iter_mut().zip(decided) {
                *found |= Found::from(decided.is_some()) << at;
            }
        }
        Ok((found, planned))
    }

    /// Returns `true` if a score counts for the setting. Pairs across groups with other scores are not
    /// searched for.
    fn counts(&self, score: f64) -> bool {
        match self.setting.sweep() {
            Sweep::Distance => score >= -f64::from(self.setting.matching.distance),
            Sweep::Threshold => score >= self.setting.matching.threshold.get(),
            Sweep::Nothing => true,
        }
    }

    fn score(&self) -> Result<Vec<Option<f64>>> {
        let scorer = Scorer::new(&self.setting.recipe, &self.setting.measuring_plan()?);
        let text = |document: DocId| self.labelled.texts()[document.index()].as_str();
        let of_one: Vec<&[LabelledPair]> = self.pairs.chunk_by(|x, y| x.a == y.a).collect();
        let scores: Vec<Vec<Option<f64>>> = of_one
            .into_par_iter()
            .map_init(Scratch::default, |scratch, pairs| {
                let a = scorer.side(text(pairs[0].a), scratch);
                let score = |pair: &LabelledPair| {
                    let score = scorer.score(&a, &scorer.side(text(pair.b), scratch))?;
                    Ok(score.filter(|&score| self.counts(score)))
                };
                pairs.iter().map(score).collect::<Result<Vec<_>>>()
            })
            .collect::<Result<_>>()?;
        Ok(scores.into_iter().flatten().collect())
    }

    /// Returns the pairs across groups that may be found at one of the thresholds.
    fn across(&self, thresholds: &[f64]) -> Result<Vec<LabelledPair>> {
        let matching = &self.setting.matching;
        let mut plans = Vec::new();
        let by_sketch = matching.measure == Measure::Sketch;
        let by_own_candidates = matches!(
            matching.method,
            Method::SimHash | Method::Sentences | Method::Exact
        );
        if !by_sketch && matching.method != Method::Exact {
            plans.push(self.setting.join_plan()?);
        }
        if by_own_candidates {
            plans.push(Plan::new(&self.setting.recipe, *matching)?);
        } else if by_sketch {
            let at_thresholds = thresholds.iter().map(|&at| self.setting.plan_at(at));
            plans.extend(at_thresholds.filter_map(Result::ok));
        }
        let mut across = Vec::new();
        for plan in plans {
            self.find_across(&plan, &mut across)?;
            across.sort_unstable();
            across.dedup();
        }
        let pair = |(a, b)| LabelledPair {
            a,
            b,
            similar: false,
            kind: None,
        };
        Ok(across.into_iter().map(pair).collect())
    }

    fn find_across(&self, plan: &Plan, across: &mut Vec<(DocId, DocId)>) -> Result<()> {
        let groups = self.labelled.groups().unwrap_or_default();
        let sketches = self.sketch(plan);
        self.with_corpus(plan, &sketches, |corpus| {
            find_pairs(
                corpus,
                CopyPairs::All,
                |pair| {
                    if groups[pair.a.index()] != groups[pair.b.index()] {
                        across.push((pair.a.min(pair.b), pair.a.max(pair.b)));
                    }
                    if across.len() > MOST_PAIRS {
                        return Err(too_many(plan.threshold()));
                    }
                    Ok(())
                },
                &|_| {},
            )
        })?;
        Ok(())
    }

    fn sketch(&self, plan: &Plan) -> Sketches {
        sketch_texts(&self.setting.recipe, plan, self.labelled.texts())
    }

    fn with_corpus<T>(
        &self,
        plan: &Plan,
        sketches: &Sketches,
        work: impl FnOnce(&Corpus<'_>) -> Result<T>,
    ) -> Result<T> {
        let texts = self.labelled.texts();
        with_corpus(&self.setting.recipe, plan, (texts, sketches), work)
    }
}

/// Sketches texts by all threads.
pub(super) fn sketch_texts(recipe: &Recipe, plan: &Plan, texts: &[String]) -> Sketches {
    /// Features that are kept of short texts, 8 bytes each.
    const FEATURES_HELD: usize = 4 << 20;
    let sketcher = Sketcher::new(recipe, plan, Cpu::best());
    let analyzer = Analyzer::new(recipe).with_extras(sketcher.extras());
    let parts: Vec<Sketches> = texts
        .par_chunks(1024)
        .map_init(Scratch::default, |scratch, texts| {
            let mut sketches = sketcher.sketches(FEATURES_HELD);
            for text in texts {
                sketcher.add(&analyzer.analyze(text, scratch), &mut sketches);
            }
            sketches
        })
        .collect();
    let mut all = sketcher.sketches(FEATURES_HELD);
    parts.iter().for_each(|part| all.append(part));
    all
}

/// Works on texts and their sketches as a corpus.
pub(super) fn with_corpus<T>(
    recipe: &Recipe,
    plan: &Plan,
    (texts, sketches): (&[String], &Sketches),
    work: impl FnOnce(&Corpus<'_>) -> Result<T>,
) -> Result<T> {
    let extras = Sketcher::new(recipe, plan, Cpu::best()).extras();
    work(&Corpus {
        plan,
        sketches,
        texts: &Again {
            analyzer: Analyzer::new(recipe).with_extras(extras),
            texts,
        },
        order: None,
        parts: None,
        window: None,
        given: 0,
    })
}

fn too_many(threshold: Threshold) -> Error {
    Error::new(
        ErrorKind::Limit,
        format!(
            "more than {MOST_PAIRS} pairs of texts of different groups reach the threshold {}: \
             give a higher lowest threshold",
            threshold.get()
        ),
    )
}

/// The source of the labelled texts.
struct Again<'a> {
    analyzer: Analyzer,
    texts: &'a [String],
}

impl Again<'_> {
    fn analyze(&self, document: DocId, visit: impl FnOnce(&Analysis<'_>)) {
        let text = &self.texts[document.index()];
        visit(&self.analyzer.analyze(text, &mut Scratch::default()));
    }
}

impl Texts for Again<'_> {
    fn features(&self, document: DocId, into: &mut Vec<u64>) -> Result<()> {
        self.analyze(document, |analysis| analysis.features(into));
        Ok(())
    }

    fn weighted(&self, document: DocId, into: &mut Vec<Weighted>) -> Result<()> {
        self.analyze(document, |analysis| analysis.weighted_features(into));
        Ok(())
    }

    fn characters(&self, document: DocId, into: &mut Vec<u32>) -> Result<()> {
        self.analyze(document, |analysis| {
            into.extend_from_slice(analysis.characters());
        });
        Ok(())
    }

    fn words(&self, document: DocId, into: &mut Vec<u64>) -> Result<()> {
        self.analyze(document, |analysis| {
            into.extend_from_slice(analysis.tokens());
        });
        Ok(())
    }
}
