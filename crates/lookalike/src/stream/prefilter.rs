//! A 4-byte prefilter stored beside each bucket entry, so that most candidates are rejected without a
//! cache miss.
//!
//! It bounds the overlap of two short documents from above. The feature hashes are split into 24 parity
//! groups. A group whose parities differ contains at least one feature that only one document has. If
//! more groups differ than may in a pair of these sizes, the pair cannot reach the threshold.
//!
//! ```text
//!  31        24 23                     0
//! +------------+------------------------+
//! | set size   | parity of groups 23..0 |     size 0: unknown or more than 255 features, never rejects
//! +------------+------------------------+
//! ```
//!
//! Guarantee: a matching pair is never rejected. Cost: one XOR, one population count and one table
//! look-up. Everything rejected here would also be rejected by [`SetSummary`], which has 64 groups.

use std::sync::OnceLock;

use crate::plan::MatchPlan;
use crate::similarity::OverlapBound;
use crate::sketch::SetSummary;

/// Set size and group parities of one document, packed into 32 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ParityPrefilter(u32);

const PARITY_GROUPS: u32 = 24;

impl ParityPrefilter {
    /// A prefilter that never rejects.
    pub(super) const NEVER_REJECTS: Self = Self(0);

    fn from_summary(summary: SetSummary) -> Self {
        let Some(size) = u8::try_from(summary.size).ok().filter(|&size| size > 0) else {
            return Self::NEVER_REJECTS;
        };
        let parities = summary.group_parities();
        let folded = parities ^ parities >> PARITY_GROUPS ^ parities >> (2 * PARITY_GROUPS);
        Self(u32::from(size) << PARITY_GROUPS | folded as u32 & ((1 << PARITY_GROUPS) - 1))
    }

    fn set_size(self) -> usize {
        (self.0 >> PARITY_GROUPS) as usize
    }

    /// Returns the number of parity groups in which the two documents differ.
    fn count_differing_groups(self, other: Self) -> i8 {
        ((self.0 ^ other.0) << (u32::BITS - PARITY_GROUPS)).count_ones() as i8
    }
}

/// Largest number of differing groups in a matching pair, for one size of the other document. −1 if no
/// pair of these sizes can match.
type DifferenceLimits = [i8; 256];

/// Makes and compares prefilters, for plans in which features decide.
#[derive(Debug)]
pub(super) struct PrefilterTable {
    bound: OverlapBound,
    /// Limits by size of one document, made on first use. Empty if features do not decide.
    rows: Vec<OnceLock<Box<DifferenceLimits>>>,
}

impl PrefilterTable {
    pub(super) fn new(plan: &MatchPlan) -> Self {
        let by_features = plan.join_plan().is_some()
            && plan.distance().is_none()
            && plan.equal_key().is_none()
            && plan.bottom_k_plan().is_none();
        let rows = if by_features { 256 } else { 0 };
        Self {
            bound: plan.overlap_bound(),
            rows: (0..rows).map(|_| OnceLock::new()).collect(),
        }
    }

    /// Returns the prefilter of a document, from its set summary if there is one.
    pub(super) fn prefilter_of(&self, summary: Option<SetSummary>) -> ParityPrefilter {
        match summary {
            Some(summary) if !self.rows.is_empty() => ParityPrefilter::from_summary(summary),
            _ => ParityPrefilter::NEVER_REJECTS,
        }
    }

    /// Returns a prefilter to compare with others.
    pub(super) fn query_from(&self, prefilter: ParityPrefilter) -> PrefilterQuery<'_> {
        let row = (prefilter != ParityPrefilter::NEVER_REJECTS).then(|| {
            let size = prefilter.set_size();
            &**self.rows[size].get_or_init(|| Box::new(self.difference_limits(size)))
        });
        PrefilterQuery { prefilter, row }
    }

    fn difference_limits(&self, size: usize) -> DifferenceLimits {
        let mut row = [0; 256];
        for (other, most) in row.iter_mut().enumerate() {
            let fits = |apart: usize| {
                let shared = (size + other).saturating_sub(apart) / 2;
                let shared = shared.min(size).min(other);
                shared > 0 && self.bound.admits_overlap(shared, size, other)
            };
            let apart = (0..=PARITY_GROUPS as usize).take_while(|&apart| fits(apart));
            *most = apart.count() as i8 - 1;
        }
        row
    }
}

/// The prefilter of a document with the limits for its size.
#[derive(Clone, Copy)]
pub(super) struct PrefilterQuery<'a> {
    prefilter: ParityPrefilter,
    row: Option<&'a DifferenceLimits>,
}

impl PrefilterQuery<'_> {
    /// Returns `true` if the two documents cannot match.
    #[inline]
    pub(super) fn rules_out_match(self, other: ParityPrefilter) -> bool {
        let Some(row) = self.row else {
            return false;
        };
        other != ParityPrefilter::NEVER_REJECTS
            && self.prefilter.count_differing_groups(other) > row[other.set_size()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Recipe;
    use crate::hash::mix_bits;
    use crate::plan::{MatchMethod, MatchSettings};
    use crate::types::Threshold;

    /// All that the prefilter rejects, the summary rejects too; and the prefilter rejects nearly all
    /// that the summary does.
    #[test]
    fn prefilter_rejects_only_what_summaries_reject() {
        for hundredths in [10, 50, 80, 95, 100] {
            let settings = MatchSettings {
                method: MatchMethod::Join,
                threshold: Threshold::new(f64::from(hundredths) / 100.0).unwrap(),
                ..MatchSettings::default()
            };
            let plan = MatchPlan::new(&Recipe::default(), settings).unwrap();
            let prefilters = PrefilterTable::new(&plan);
            let mut random = 1u64;
            let mut below = |limit: u64| {
                random = mix_bits(random.wrapping_add(0x9e37_79b9_7f4a_7c15));
                random % limit
            };
            let (mut ruled_out, mut by_brief) = (0, 0);
            for _ in 0..20_000 {
                let size = below(300);
                let one: Vec<u64> = (0..size).map(|_| mix_bits(below(1000))).collect();
                let mut other = one.clone();
                other.truncate(below(size + 1) as usize);
                other.extend((0..below(20)).map(|_| mix_bits(below(1000))));
                let summary =
                    |features: &[u64]| SetSummary::new(7, features.len() as u32, features);
                let (one, other) = (summary(&one), summary(&other));
                let from = prefilters.query_from(prefilters.prefilter_of(Some(one)));
                let shared = one.most_shared(other);
                let union = (one.size + other.size) as usize - shared;
                let near = shared > 0 && plan.candidate_threshold().admits_ratio(shared, union);
                let out = from.rules_out_match(prefilters.prefilter_of(Some(other)));
                assert!(!(near && out), "{one:?} {other:?}");
                ruled_out += u32::from(out);
                by_brief += u32::from(!near);
            }
            assert!(by_brief > 1000 || hundredths == 10, "{by_brief}");
            assert!(
                hundredths < 80 || 10 * ruled_out > 7 * by_brief,
                "{ruled_out} {by_brief}"
            );
        }
    }

    #[test]
    fn prefilter_without_data_rejects_nothing() {
        let plan = MatchPlan::new(&Recipe::default(), MatchSettings::default()).unwrap();
        let prefilters = PrefilterTable::new(&plan);
        let summary = |size: u32| prefilters.prefilter_of(Some(SetSummary::new(1, size, &[3, 4])));
        for size in [0, 256, u32::MAX] {
            assert_eq!(summary(size), ParityPrefilter::NEVER_REJECTS);
        }
        assert_ne!(summary(255), ParityPrefilter::NEVER_REJECTS);
        assert!(
            !prefilters
                .query_from(ParityPrefilter::NEVER_REJECTS)
                .rules_out_match(summary(2))
        );
        assert!(
            !prefilters
                .query_from(summary(2))
                .rules_out_match(ParityPrefilter::NEVER_REJECTS)
        );
        assert!(
            prefilters
                .query_from(summary(2))
                .rules_out_match(summary(9))
        );
        let settings = MatchSettings {
            method: MatchMethod::SimHash,
            ..MatchSettings::default()
        };
        let plan = MatchPlan::new(&Recipe::default(), settings).unwrap();
        let summary = SetSummary::new(1, 2, &[3, 4]);
        assert_eq!(
            PrefilterTable::new(&plan).prefilter_of(Some(summary)),
            ParityPrefilter::NEVER_REJECTS
        );
    }
}
