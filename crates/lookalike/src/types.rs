//! Numbers with a meaning, as types that reject invalid values.

use std::fmt;

use crate::error::{Error, Result};

/// A document's position in the order in which its run read it, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DocId(pub u32);

impl DocId {
    /// Largest number of documents in one run.
    pub const LIMIT: usize = u32::MAX as usize;

    /// Returns the position as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A similarity from 0 (nothing in common) to 1 (equal).
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Similarity(f64);

impl Similarity {
    /// The similarity of equal texts.
    pub const ONE: Self = Self(1.0);

    /// Returns `part / whole`; 0 if `whole` is 0.
    pub fn from_ratio(part: usize, whole: usize) -> Self {
        debug_assert!(part <= whole);
        if whole == 0 {
            Self(0.0)
        } else {
            Self(part as f64 / whole as f64)
        }
    }

    /// Returns `part / whole` of two positive numbers, at most 1 because rounding may make `whole` too small.
    pub(crate) fn from_quotient(part: f64, whole: f64) -> Self {
        Self((part / whole).min(1.0))
    }

    /// Returns a similarity that was stored by its [value](Self::get), or `None` if it is not in 0..=1.
    pub fn from_stored(value: f64) -> Option<Self> {
        (0.0..=1.0).contains(&value).then_some(Self(value))
    }

    /// Returns the value, in 0..=1.
    pub fn get(self) -> f64 {
        self.0
    }
}

impl fmt::Display for Similarity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// The lowest similarity that counts as a match (≥), above 0 and at most 1.
///
/// ```
/// use lookalike::Threshold;
///
/// let threshold = Threshold::new(0.8)?;
/// assert!(threshold.admits_ratio(8, 10) && !threshold.admits_ratio(79, 100));
/// assert!(Threshold::new(1.5).is_err());
/// # Ok::<_, lookalike::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Threshold(f64);

impl Threshold {
    /// The default threshold. It is the highest one, in steps of 0.05, at which the default recipe finds 95
    /// of 100 pairs that are mostly the same, measured on revisions of documents and edits of titles.
    pub const DEFAULT: Self = Self(0.75);

    /// Creates a threshold.
    ///
    /// # Errors
    /// [`ErrorKind::Setting`](crate::ErrorKind::Setting) if the value is not above 0
    /// and at most 1.
    pub fn new(value: f64) -> Result<Self> {
        if value > 0.0 && value <= 1.0 {
            Ok(Self(value))
        } else {
            Err(Error::setting_error(format!(
                "the threshold {value} is not above 0 and at most 1: give a similarity such as 0.8"
            )))
        }
    }

    /// Returns the value, above 0 and at most 1.
    pub fn get(self) -> f64 {
        self.0
    }

    /// Returns `true` if a similarity reaches the threshold.
    pub fn admits_similarity(self, similarity: Similarity) -> bool {
        similarity.get() >= self.0
    }

    /// Returns `true` if `part / whole` reaches the threshold.
    pub fn admits_ratio(self, part: usize, whole: usize) -> bool {
        Similarity::from_ratio(part, whole).get() >= self.0
    }

    /// Returns the smallest `part` with `part / whole ≥ threshold`. It is exact, because it uses the same
    /// division as [`admits_ratio`](Self::admits_ratio). `whole` must not be 0.
    pub fn least_part(self, whole: usize) -> usize {
        let mut part = ((self.0 * whole as f64) as usize).min(whole);
        while part > 0 && self.admits_ratio(part - 1, whole) {
            part -= 1;
        }
        while !self.admits_ratio(part, whole) {
            part += 1;
        }
        part
    }

    /// Returns the smallest number of shared features with which two sets of `both` features together
    /// reach the threshold in Jaccard index: ⌈t / (1 + t) · both⌉. It is exact, because it uses the same
    /// division as [`admits_ratio`](Self::admits_ratio). The result is more than half of `both`, which
    /// no two sets can share, if no number reaches the threshold. `both` must not be 0.
    pub fn least_shared(self, both: usize) -> usize {
        let reaches =
            |shared: usize| 2 * shared >= both || self.admits_ratio(shared, both - shared);
        let mut shared = ((self.0 / (1.0 + self.0) * both as f64) as usize).min(both / 2);
        while shared > 0 && reaches(shared - 1) {
            shared -= 1;
        }
        while !reaches(shared) {
            shared += 1;
        }
        shared
    }
}

/// A number of differing bits.
///
/// ```
/// use lookalike::Distance;
///
/// assert_eq!(Distance::new(3, 64)?.get(), 3);
/// assert!(Distance::new(64, 64).is_err());
/// # Ok::<_, lookalike::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Distance(u32);

impl Distance {
    /// Creates a Hamming distance for fingerprints of `bits` bits.
    ///
    /// # Errors
    /// [`ErrorKind::Setting`](crate::ErrorKind::Setting) if the distance is not below
    /// the number of bits.
    pub fn new(value: u32, bits: u32) -> Result<Self> {
        if value < bits {
            Ok(Self(value))
        } else {
            Err(Error::setting_error(format!(
                "the distance {value} is not below the {bits} bits of the fingerprint"
            )))
        }
    }

    /// Returns the number of bits.
    pub fn get(self) -> u32 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_are_inclusive_and_exact() {
        let threshold = Threshold::new(0.8).unwrap();
        assert!(
            threshold.admits_ratio(4, 5)
                && threshold.admits_ratio(8, 10)
                && !threshold.admits_ratio(79, 100)
        );
        for hundredths in 1..=100 {
            let threshold = Threshold::new(f64::from(hundredths) / 100.0).unwrap();
            for whole in 1..400 {
                let least = threshold.least_part(whole);
                assert!(threshold.admits_ratio(least, whole));
                assert!(least == 0 || !threshold.admits_ratio(least - 1, whole));
                let shared = threshold.least_shared(whole);
                assert!(shared <= whole.div_ceil(2));
                assert!(2 * shared > whole || threshold.admits_ratio(shared, whole - shared));
                assert!(shared == 0 || !threshold.admits_ratio(shared - 1, whole - shared + 1));
            }
        }
    }

    #[test]
    fn invalid_values_are_refused() {
        for value in [0.0, -0.1, 1.0001, f64::NAN, f64::INFINITY] {
            assert!(Threshold::new(value).is_err());
        }
        assert!(Distance::new(64, 64).is_err() && Distance::new(63, 64).is_ok());
    }
}
