//! All pairs that matter, with their scores under a setting.

use rayon::prelude::*;
use serde::Serialize;

use super::bootstrap::{FoundAtCuts, PairObservation};
use super::curve::PrecisionRecallCurve;
use super::labelled::{LabelledPair, LabelledTexts, MOST_PAIRS};
use super::measure::PairScorer;
use crate::arch::Cpu;
use crate::dedup::{CopyPairs, MatchCorpus, TextReanalysis, decide_pairs, find_pairs};
use crate::error::{Error, ErrorKind, Result};
use crate::plan::{
    CandidateRule, MatchMethod, MatchPlan, MatchSettings, MethodSketch, SimilarityMeasure,
};
use crate::recipe::Recipe;
use crate::sketch::{DocumentSketcher, DocumentSketches};
use crate::text::{AnalysisScratch, TextAnalysis, TextAnalyzer};
use crate::types::{DocId, Threshold};

/// A setting to evaluate: a recipe with match options whose threshold or distance varies.
#[derive(Clone, Debug)]
pub struct EvaluatedSetting {
    /// Recipe of the texts.
    pub recipe: Recipe,
    /// Method and measure. The threshold is the lowest considered. With fingerprints alone, the
    /// distance is the largest.
    pub matching: MatchSettings,
}

/// The quantity that varies in a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SweptParameter {
    /// The least similarity of a match.
    Threshold,
    /// The largest Hamming distance of a match.
    Distance,
    /// Nothing, because texts either match or do not.
    Nothing,
}

impl EvaluatedSetting {
    /// Returns the quantity that varies.
    pub fn swept_parameter(&self) -> SweptParameter {
        let method = self.matching.method;
        let by_sketch = self.matching.measure == SimilarityMeasure::Sketch;
        if method.finds_equal_texts_alone() || by_sketch && method.equal_key().is_some() {
            SweptParameter::Nothing
        } else if by_sketch && method.takes_distance() {
            SweptParameter::Distance
        } else {
            SweptParameter::Threshold
        }
    }

    /// Returns the number of blocks of bits, if candidates are fingerprints that share one.
    pub(super) fn block_count(&self) -> Option<u32> {
        let matching = &self.matching;
        let by_blocks =
            matching.method.takes_distance() && matching.candidates == CandidateRule::Blocks;
        by_blocks.then_some(matching.distance + 1)
    }

    /// Returns the plan with another threshold.
    pub(super) fn plan_at_threshold(&self, threshold: f64) -> Result<MatchPlan> {
        let settings = MatchSettings {
            threshold: Threshold::new(threshold)?,
            ..self.matching
        };
        MatchPlan::new(&self.recipe, settings)
    }

    /// Returns a plan that finds candidates by the exact join, which works at every threshold.
    fn exact_join_plan(&self) -> Result<MatchPlan> {
        let settings = MatchSettings {
            method: MatchMethod::Join,
            ..self.matching
        };
        MatchPlan::new(&self.recipe, settings)
    }

    /// Returns a plan with the measure, distance and bits of the setting, whatever its threshold is.
    /// Some methods have no plan at low thresholds.
    fn measuring_plan(&self) -> Result<MatchPlan> {
        let by_slots = matches!(
            self.matching.method.descriptor().sketch,
            MethodSketch::Signature | MethodSketch::Smallest
        );
        let settings = MatchSettings {
            threshold: if by_slots {
                Threshold::new(1.0)?
            } else {
                self.matching.threshold
            },
            ..self.matching
        };
        match self.matching.measure {
            SimilarityMeasure::Sketch => MatchPlan::new(&self.recipe, settings),
            _ if self.matching.method.finds_equal_texts_alone() => {
                MatchPlan::new(&self.recipe, settings)
            }
            _ => self.exact_join_plan(),
        }
    }
}

/// The pairs of labelled texts with their scores under a setting. With groups, these include pairs
/// across groups that reach the lowest threshold or the largest distance.
pub(super) struct ScoredPairs<'a> {
    labelled: &'a LabelledTexts,
    setting: &'a EvaluatedSetting,
    pub(super) pairs: Vec<LabelledPair>,
    pub(super) scores: Vec<Option<f64>>,
}

impl<'a> ScoredPairs<'a> {
    /// Scores the pairs. `thresholds` are those that will be decided.
    ///
    /// # Errors
    /// Fails if the setting has no plan, if too many pairs across groups are found, or if texts are too
    /// long for the measure.
    pub(super) fn new(
        labelled: &'a LabelledTexts,
        setting: &'a EvaluatedSetting,
        thresholds: &[f64],
    ) -> Result<Self> {
        let mut scored = Self {
            labelled,
            setting,
            pairs: labelled.listed_pairs().to_vec(),
            scores: Vec::new(),
        };
        if labelled.text_groups().is_some() {
            scored.pairs.extend(scored.find_pairs_across(thresholds)?);
        }
        scored.pairs.sort_unstable_by_key(|pair| (pair.a, pair.b));
        scored.scores = scored.score_pairs()?;
        Ok(scored)
    }

    /// Returns the number of pairs that are not similar and that no threshold or distance finds.
    pub(super) fn count_unscored_pairs(&self) -> u64 {
        let found = self.pairs.len() - self.labelled.listed_pairs().len();
        self.labelled.count_unlisted_pairs() - found as u64
    }

    /// Returns the curve of the measure alone.
    pub(super) fn measure_curve(&self) -> PrecisionRecallCurve {
        let similar = self.pairs.iter().map(|pair| pair.similar);
        PrecisionRecallCurve::new(
            self.scores.iter().copied().zip(similar),
            self.count_unscored_pairs(),
        )
    }

    /// Returns the pairs for resampling, with the cuts at which each is `found`.
    pub(super) fn observations(&self, found: &[FoundAtCuts]) -> Vec<PairObservation> {
        let unit = |document| self.labelled.unit_of(document);
        let pairs = self.pairs.iter().zip(found);
        pairs
            .map(|(pair, &found)| PairObservation {
                units: [unit(pair.a), unit(pair.b)],
                similar: pair.similar,
                found,
            })
            .collect()
    }

    /// Returns, for each pair, the cuts that its score reaches.
    pub(super) fn find_by_measure(&self, cuts: &[f64]) -> Vec<FoundAtCuts> {
        let found = |score: f64| {
            let bits = (0..)
                .zip(cuts)
                .map(|(at, &cut)| FoundAtCuts::from(score >= cut) << at);
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
    pub(super) fn find_by_method(
        &self,
        thresholds: &[f64],
    ) -> Result<(Vec<FoundAtCuts>, FoundAtCuts)> {
        let mut found = vec![0; self.pairs.len()];
        let mut planned: FoundAtCuts = 0;
        let named: Vec<_> = self.pairs.iter().map(|pair| (pair.a, pair.b)).collect();
        let mut sketched = None;
        let mut ascending: Vec<usize> = (0..thresholds.len()).collect();
        ascending.sort_by(|&a, &b| thresholds[a].total_cmp(&thresholds[b]));
        for at in ascending {
            let Ok(plan) = self.setting.plan_at_threshold(thresholds[at]) else {
                continue;
            };
            planned |= 1 << at;
            // Sketches for the lowest threshold also serve all higher ones.
            let sketches = sketched.get_or_insert_with(|| self.sketch_texts(&plan));
            let decided =
                self.with_corpus(&plan, sketches, |corpus| decide_pairs(corpus, &named))?;
            for (found, decided) in found.iter_mut().zip(decided) {
                *found |= FoundAtCuts::from(decided.is_some()) << at;
            }
        }
        Ok((found, planned))
    }

    /// Returns `true` if a score counts for the setting. Pairs across groups with other scores are not
    /// searched for.
    fn counted_score(&self, score: f64) -> bool {
        match self.setting.swept_parameter() {
            SweptParameter::Distance => score >= -f64::from(self.setting.matching.distance),
            SweptParameter::Threshold => score >= self.setting.matching.threshold.get(),
            SweptParameter::Nothing => true,
        }
    }

    fn score_pairs(&self) -> Result<Vec<Option<f64>>> {
        let scorer = PairScorer::new(&self.setting.recipe, &self.setting.measuring_plan()?);
        let text = |document: DocId| self.labelled.texts()[document.index()].as_str();
        let of_one: Vec<&[LabelledPair]> = self.pairs.chunk_by(|x, y| x.a == y.a).collect();
        let scores: Vec<Vec<Option<f64>>> = of_one
            .into_par_iter()
            .map_init(AnalysisScratch::default, |scratch, pairs| {
                let a = scorer.prepare_text(text(pairs[0].a), scratch);
                let score = |pair: &LabelledPair| {
                    let score =
                        scorer.score_pair(&a, &scorer.prepare_text(text(pair.b), scratch))?;
                    Ok(score.filter(|&score| self.counted_score(score)))
                };
                pairs.iter().map(score).collect::<Result<Vec<_>>>()
            })
            .collect::<Result<_>>()?;
        Ok(scores.into_iter().flatten().collect())
    }

    /// Returns the pairs across groups that may be found at one of the thresholds.
    fn find_pairs_across(&self, thresholds: &[f64]) -> Result<Vec<LabelledPair>> {
        let matching = &self.setting.matching;
        let mut plans = Vec::new();
        let by_sketch = matching.measure == SimilarityMeasure::Sketch;
        let by_own_candidates = !matching.method.finds_shared_features();
        if !by_sketch && !matching.method.finds_equal_texts_alone() {
            plans.push(self.setting.exact_join_plan()?);
        }
        if by_own_candidates {
            plans.push(MatchPlan::new(&self.setting.recipe, *matching)?);
        } else if by_sketch {
            let at_thresholds = thresholds
                .iter()
                .map(|&at| self.setting.plan_at_threshold(at));
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

    fn find_across(&self, plan: &MatchPlan, across: &mut Vec<(DocId, DocId)>) -> Result<()> {
        let groups = self.labelled.text_groups().unwrap_or_default();
        let sketches = self.sketch_texts(plan);
        self.with_corpus(plan, &sketches, |corpus| {
            find_pairs(
                corpus,
                CopyPairs::All,
                |pair| {
                    if groups[pair.a.index()] != groups[pair.b.index()] {
                        across.push((pair.a.min(pair.b), pair.a.max(pair.b)));
                    }
                    if across.len() > MOST_PAIRS {
                        return Err(too_many_pairs(plan.threshold()));
                    }
                    Ok(())
                },
                &|_| {},
            )
        })?;
        Ok(())
    }

    fn sketch_texts(&self, plan: &MatchPlan) -> DocumentSketches {
        sketch_texts(&self.setting.recipe, plan, self.labelled.texts())
    }

    fn with_corpus<T>(
        &self,
        plan: &MatchPlan,
        sketches: &DocumentSketches,
        work: impl FnOnce(&MatchCorpus<'_>) -> Result<T>,
    ) -> Result<T> {
        let texts = self.labelled.texts();
        with_corpus(&self.setting.recipe, plan, texts, sketches, work)
    }
}

/// Sketches texts by all threads.
pub(super) fn sketch_texts(
    recipe: &Recipe,
    plan: &MatchPlan,
    texts: &[String],
) -> DocumentSketches {
    /// Features that are kept of short texts, 8 bytes each.
    const FEATURES_HELD: usize = 4 << 20;
    let sketcher = DocumentSketcher::new(recipe, plan, Cpu::detect_best());
    let analyzer = TextAnalyzer::new(recipe).with_extras(sketcher.required_extras());
    let parts: Vec<DocumentSketches> = texts
        .par_chunks(1024)
        .map_init(AnalysisScratch::default, |scratch, texts| {
            let mut sketches = sketcher.new_sketches(FEATURES_HELD);
            for text in texts {
                sketcher.add_document(&analyzer.analyze_text(text, scratch), &mut sketches);
            }
            sketches
        })
        .collect();
    let mut all = sketcher.new_sketches(FEATURES_HELD);
    parts.iter().for_each(|part| all.append_sketches(part));
    all
}

/// Works on texts and their sketches as a corpus.
pub(super) fn with_corpus<T>(
    recipe: &Recipe,
    plan: &MatchPlan,
    texts: &[String],
    sketches: &DocumentSketches,
    work: impl FnOnce(&MatchCorpus<'_>) -> Result<T>,
) -> Result<T> {
    let extras = DocumentSketcher::new(recipe, plan, Cpu::detect_best()).required_extras();
    let reanalyzer = TextReanalyzer {
        analyzer: TextAnalyzer::new(recipe).with_extras(extras),
        texts,
    };
    work(&MatchCorpus::new(plan, sketches, &reanalyzer))
}

fn too_many_pairs(threshold: Threshold) -> Error {
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
struct TextReanalyzer<'a> {
    analyzer: TextAnalyzer,
    texts: &'a [String],
}

impl TextReanalysis for TextReanalyzer<'_> {
    fn reanalyze_text(
        &self,
        document: DocId,
        visit: &mut dyn FnMut(&TextAnalysis<'_>),
    ) -> Result<()> {
        let (text, mut scratch) = (&self.texts[document.index()], AnalysisScratch::default());
        visit(&self.analyzer.analyze_text(text, &mut scratch));
        Ok(())
    }
}
