//! The reach of labels: the similarities at which they show the errors of a threshold.

use serde::Serialize;

use super::scored::{EvaluatedSetting, ScoredPairs, SweptParameter};

/// A stretch without labels counts from this share of the range that is looked at.
const STRETCH_SHARE: f64 = 0.2;

/// Negatives above the others say nothing of the stretch below them, because a single odd label would
/// decide: this share of those that have a score.
const ODD_NEGATIVES_SHARE: f64 = 0.1;

/// The similarities, or distances, that the labels cover under a setting.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LabelReach {
    /// The lowest threshold, or the largest distance, that the labels can judge: none is recommended
    /// beyond it. None if nothing is open in the setting.
    pub limit: Option<f64>,
    /// Ranges of a fifth or more of what is looked at in which no pair is labelled as different.
    pub without_different: Vec<[f64; 2]>,
    /// Ranges of a fifth or more in which no pair is labelled as similar.
    pub without_similar: Vec<[f64; 2]>,
    /// The least score that may be chosen.
    #[serde(skip)]
    pub(super) floor: f64,
    /// The width of a range that counts.
    #[serde(skip)]
    width: f64,
}

impl LabelReach {
    pub(super) fn new(scored: &ScoredPairs<'_>, setting: &EvaluatedSetting) -> Self {
        let range = match setting.swept_parameter() {
            SweptParameter::Threshold => [setting.matching.threshold.get(), 1.0],
            SweptParameter::Distance => [-f64::from(setting.matching.distance), 0.0],
            SweptParameter::Nothing => {
                return Self {
                    limit: None,
                    without_different: Vec::new(),
                    without_similar: Vec::new(),
                    floor: f64::NEG_INFINITY,
                    width: f64::INFINITY,
                };
            }
        };
        let similar = Scores::new(scored, range, true);
        let different = Scores::new(scored, range, false);
        let floor = match scored.count_unscored_pairs() {
            0 => different.floor(range).max(lowest(scored)).min(range[1]),
            // All pairs have labels.
            _ => range[0],
        };
        let as_cuts = |stretches: Vec<[f64; 2]>| match setting.swept_parameter() {
            SweptParameter::Distance => {
                let turned = stretches.into_iter().rev();
                turned.map(|[low, high]| [-high, -low]).collect()
            }
            _ => stretches,
        };
        Self {
            limit: Some(floor.abs()),
            without_different: as_cuts(different.stretches(range)),
            without_similar: as_cuts(similar.stretches(range)),
            floor,
            width: STRETCH_SHARE * (range[1] - range[0]),
        }
    }

    /// Returns `true` if a range without labels matters to a setting with this threshold or distance: the
    /// part of it that is less similar than pairs at the threshold is wide enough to count.
    pub fn concerns(&self, [low, high]: [f64; 2], cut: f64, sweep: SweptParameter) -> bool {
        match sweep {
            SweptParameter::Threshold => high.min(cut) - low > self.width,
            SweptParameter::Distance => high - low.max(cut) > self.width,
            SweptParameter::Nothing => false,
        }
    }
}

/// The lowest score of all.
fn lowest(scored: &ScoredPairs<'_>) -> f64 {
    let scores = scored.scores.iter().copied().flatten();
    scores.reduce(f64::min).unwrap_or(f64::NEG_INFINITY)
}

/// Scores of pairs with one label.
struct Scores {
    /// Ascending.
    known: Vec<f64>,
    /// There are pairs below all that is looked at.
    are_below: bool,
}

impl Scores {
    fn new(scored: &ScoredPairs<'_>, [least, _]: [f64; 2], similar: bool) -> Self {
        let pairs = scored.pairs.iter().zip(&scored.scores);
        let of_label = pairs.filter(|(pair, _)| pair.similar == similar);
        let all: Vec<Option<f64>> = of_label.map(|(_, score)| *score).collect();
        let is_low = |score: &Option<f64>| score.is_none_or(|score| score < least);
        let mut known: Vec<f64> = all.iter().flatten().copied().collect();
        known.retain(|&score| score >= least);
        known.sort_unstable_by(f64::total_cmp);
        Self {
            known,
            are_below: all.iter().any(is_low) || !similar && scored.count_unscored_pairs() > 0,
        }
    }

    /// Ranges without a score that are long enough to count.
    fn stretches(&self, [least, most]: [f64; 2]) -> Vec<[f64; 2]> {
        let mut bounds = vec![least];
        bounds.extend(&self.known);
        bounds.push(most);
        let long = |bounds: &&[f64]| is_stretch([bounds[0], bounds[1]], [least, most]);
        let pairs = bounds.windows(2).filter(long);
        pairs.map(|bounds| [bounds[0], bounds[1]]).collect()
    }

    /// The lowest score that is reached from the highest ones without a stretch between.
    fn floor(&self, range: [f64; 2]) -> f64 {
        let mut down = self.known.iter().rev().copied();
        let odd = (self.known.len() as f64 * ODD_NEGATIVES_SHARE) as usize;
        let Some(mut floor) = down.nth(odd) else {
            return range[0];
        };
        for score in down.chain(self.are_below.then_some(range[0])) {
            if is_stretch([score, floor], range) {
                break;
            }
            floor = score;
        }
        floor
    }
}

fn is_stretch([low, high]: [f64; 2], [least, most]: [f64; 2]) -> bool {
    high - low > STRETCH_SHARE * (most - least)
}
