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
//! look-up. Everything rejected here would also be rejected by [`Brief`], which has 64 groups.

use std::sync::OnceLock;

use crate::plan::Plan;
use crate::sketches::Brief;
use crate::types::Threshold;

/// Set size and group parities of one document, packed into 32 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Glance(u32);

const GROUPS: u32 = 24;

impl Glance {
    /// A prefilter that never rejects.
    pub(super) const NOTHING: Self = Self(0);

    fn of(brief: Brief) -> Self {
        let Some(size) = u8::try_from(brief.size).ok().filter(|&size| size > 0) else {
            return Self::NOTHING;
        };
        let parities = brief.parities();
        let folded = parities ^ parities >> GROUPS ^ parities >> (2 * GROUPS);
        Self(u32::from(size) << GROUPS | folded as u32 & ((1 << GROUPS) - 1))
    }

    fn size(self) -> usize {
        (self.0 >> GROUPS) as usize
    }

    /// Returns the number of parity groups in which the two documents differ.
    fn apart(self, other: Self) -> i8 {
        ((self.0 ^ other.0) << (u32::BITS - GROUPS)).count_ones() as i8
    }
}

/// Largest number of differing groups in a matching pair, for one size of the other document. −1 if no
/// pair of these sizes can match.
type Row = [i8; 256];

/// Makes and compares prefilters, for plans in which features decide.
#[derive(Debug)]
pub(super) struct Glances {
    threshold: Threshold,
    /// Limits by size of one document, made on first use. Empty if features do not decide.
    rows: Vec<OnceLock<Box<Row>>>,
}

impl Glances {
    pub(super) fn new(plan: &Plan) -> Self {
        let by_features = plan.join().is_some()
            && plan.distance().is_none()
            && plan.sentences().is_none()
            && plan.smallest().is_none();
        let rows = if by_features { 256 } else { 0 };
        Self {
            threshold: plan.candidate_threshold(),
            rows: (0..rows).map(|_| OnceLock::new()).collect(),
        }
    }

    /// Returns the prefilter of a document, from its set summary if there is one.
    pub(super) fn of(&self, brief: Option<Brief>) -> Glance {
        match brief {
            Some(brief) if !self.rows.is_empty() => Glance::of(brief),
            _ => Glance::NOTHING,
        }
    }

    /// Returns a prefilter to compare with others.
    pub(super) fn from(&self, glance: Glance) -> From<'_> {
        let row = (glance != Glance::NOTHING).then(|| {
            let size = glance.size();
            &**self.rows[size].get_or_init(|| Box::new(self.row(size)))
        });
        From { glance, row }
    }

    fn row(&self, size: usize) -> Row {
        let mut row = [0; 256];
        for (other, most) in row.iter_mut().enumerate() {
            let fits = |apart: usize| {
                let shared = (size + other).saturating_sub(apart) / 2;
                let shared = shared.min(size).min(other);
                shared > 0 && self.threshold.admits(shared, size + other - shared)
            };
            let apart = (0..=GROUPS as usize).take_while(|&apart| fits(apart));
            *most = apart.count() as i8 - 1;
        }
        row
    }
}

/// The prefilter of a document with the limits for its size.
#[derive(Clone, Copy)]
pub(super) struct From<'a> {
    glance: Glance,
    row: Option<&'a Row>,
}

impl From<'_> {
    /// Returns `true` if the two documents cannot match.
    #[inline]
    pub(super) fn rules_out(self, other: Glance) -> bool {
        let Some(row) = self.row else {
            return false;
        };
        other != Glance::NOTHING && self.glance.apart(other) > row[other.size()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Recipe;
    use crate::hash::mix;
    use crate::plan::{Method, Settings};

    /// All that the prefilter rejects, the summary rejects too; and the prefilter rejects nearly all
    /// that the summary does.
    #[test]
    fn rules_out_what_a_brief_rules_out() {
        for hundredths in [10, 50, 80, 95, 100] {
            let settings = Settings {
                method: Method::Join,
                threshold: Threshold::new(f64::from(hundredths) / 100.0).unwrap(),
                ..Settings::default()
            };
            let plan = Plan::new(&Recipe::default(), settings).unwrap();
            let glances = Glances::new(&plan);
            let mut random = 1u64;
            let mut below = |limit: u64| {
                random = mix(random.wrapping_add(0x9e37_79b9_7f4a_7c15));
                random % limit
            };
            let (mut ruled_out, mut by_brief) = (0, 0);
            for _ in 0..20_000 {
                let size = below(300);
                let one: Vec<u64> = (0..size).map(|_| mix(below(1000))).collect();
                let mut other = one.clone();
                other.truncate(below(size + 1) as usize);
                other.extend((0..below(20)).map(|_| mix(below(1000))));
                let brief = |features: &[u64]| Brief::new(7, features.len() as u32, features);
                let (one, other) = (brief(&one), brief(&other));
                let from = glances.from(glances.of(Some(one)));
                let shared = one.most_shared(other);
                let union = (one.size + other.size) as usize - shared;
                let near = shared > 0 && plan.candidate_threshold().admits(shared, union);
                let out = from.rules_out(glances.of(Some(other)));
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
    fn says_nothing_where_it_must_not() {
        let plan = Plan::new(&Recipe::default(), Settings::default()).unwrap();
        let glances = Glances::new(&plan);
        let brief = |size: u32| glances.of(Some(Brief::new(1, size, &[3, 4])));
        for size in [0, 256, u32::MAX] {
            assert_eq!(brief(size), Glance::NOTHING);
        }
        assert_ne!(brief(255), Glance::NOTHING);
        assert!(!glances.from(Glance::NOTHING).rules_out(brief(2)));
        assert!(!glances.from(brief(2)).rules_out(Glance::NOTHING));
        assert!(glances.from(brief(2)).rules_out(brief(9)));
        let settings = Settings {
            method: Method::SimHash,
            ..Settings::default()
        };
        let plan = Plan::new(&Recipe::default(), settings).unwrap();
        let brief = Brief::new(1, 2, &[3, 4]);
        assert_eq!(Glances::new(&plan).of(Some(brief)), Glance::NOTHING);
    }
}
