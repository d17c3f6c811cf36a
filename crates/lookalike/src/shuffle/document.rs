//! The documents of a shuffle, and the bounds that keep documents apart whatever their texts are.

use std::borrow::Cow;

use super::{OrderValue, ShuffleSetup};
use crate::error::{Error, Result};
use crate::text::{AnalysisScratch, TextAnalysis};

/// Bounds between documents, and the kind of their texts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MatchBounds {
    /// `true` if documents match only within a partition.
    pub within: bool,
    /// `true` if some documents are known (`--against`). These come before all others and are always kept.
    pub against: bool,
    /// `true` if texts are [packed](pack_features) features that the caller has made.
    pub features: bool,
}

/// A document.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShuffleDocument<'a> {
    /// Id, unique among the known documents, and among the others.
    pub id: &'a str,
    /// Values by which the document is ordered, those that decide first before the others. An order of ids ignores them.
    pub values: &'a [OrderValue<'a>],
    /// Text, or packed features.
    pub text: &'a str,
    /// Partition, if documents match only within one.
    pub partition: u64,
    /// `true` if the document is known.
    pub is_known: bool,
}

impl<'a> ShuffleDocument<'a> {
    /// Returns a document that has no partition and is not known.
    pub fn new(id: &'a str, values: &'a [OrderValue<'a>], text: &'a str) -> Self {
        Self {
            id,
            values,
            text,
            partition: 0,
            is_known: false,
        }
    }
}

/// First byte of a position in a run with known documents.
const KNOWN_BYTE: u8 = 0;
const DECIDED_BYTE: u8 = 1;

/// First character of an id in a run with known documents.
const GIVEN_ID: char = 'g';
const JUDGED_ID: char = 'j';

impl ShuffleSetup {
    /// Returns the position of a document in the total order, as bytes that compare in that order.
    pub(super) fn document_position(&self, document: &ShuffleDocument<'_>) -> Vec<u8> {
        let mut position = Vec::with_capacity(document.id.len() + 14);
        if self.bounds.against && document.is_known {
            position.push(KNOWN_BYTE);
            position.extend_from_slice(document.id.as_bytes());
            return position;
        }
        if self.bounds.against {
            position.push(DECIDED_BYTE);
        }
        self.first
            .append_position(document.id, document.values, &mut position);
        position
    }

    /// Returns the id of a document. In a run with known documents it has a mark, because a known and
    /// another document may have the same id.
    pub(super) fn mark_known_id<'d>(&self, document: &ShuffleDocument<'d>) -> Cow<'d, str> {
        match (self.bounds.against, document.is_known) {
            (false, _) => Cow::Borrowed(document.id),
            (true, true) => Cow::Owned(format!("{GIVEN_ID}{}", document.id)),
            (true, false) => Cow::Owned(format!("{JUDGED_ID}{}", document.id)),
        }
    }

    /// Returns the id without the mark, and `true` if the mark is that of a known document.
    pub(super) fn unmarked_id<'i>(&self, id: &'i str) -> (&'i str, bool) {
        if !self.bounds.against {
            return (id, false);
        }
        let rest = |mark| id.strip_prefix(mark);
        rest(GIVEN_ID).map_or_else(|| (rest(JUDGED_ID).unwrap_or(id), false), |id| (id, true))
    }

    /// Returns `true` if a position is that of a known document.
    pub(super) fn is_known(&self, position: &[u8]) -> bool {
        self.bounds.against && position.first() == Some(&KNOWN_BYTE)
    }

    /// Returns the id in a position.
    ///
    /// # Errors
    /// Fails if these bytes are not a position in this order.
    pub fn id_at_position<'p>(&self, position: &'p [u8]) -> Result<&'p str> {
        match (self.bounds.against, position) {
            (false, position) => self.first.id_in_position(position),
            (true, [KNOWN_BYTE, id @ ..]) => super::DocumentOrder::SMALLEST_ID.id_in_position(id),
            (true, [DECIDED_BYTE, position @ ..]) => self.first.id_in_position(position),
            (true, _) => Err(super::position::none_of_this_order(position)),
        }
    }

    /// Analyses a text, or packed features.
    pub(super) fn analyze_text<'s>(
        &'s self,
        text: &str,
        scratch: &'s mut AnalysisScratch,
    ) -> TextAnalysis<'s> {
        if self.bounds.features {
            self.analyzer
                .analyze_features(unpack_features(text), scratch)
        } else {
            self.analyzer.analyze_text(text, scratch)
        }
    }

    /// Checks that a text consists of packed features, if the run has such texts.
    ///
    /// # Errors
    /// Fails if packed features are cut off or damaged.
    pub(super) fn check_text(&self, text: &str) -> Result<()> {
        let is_whole = || {
            let mut features = unpack_features(text);
            features.by_ref().for_each(drop);
            features.0.is_empty()
        };
        if self.bounds.features && !is_whole() {
            return Err(Error::text_error(
                "features are truncated or damaged: give features that an earlier step of this run \
                 made",
            ));
        }
        Ok(())
    }
}

/// Packs features into one string: for each its length in bytes, its weight, and the feature itself.
pub fn pack_features<'f>(features: impl IntoIterator<Item = (&'f str, f64)>) -> String {
    use std::fmt::Write;

    let mut packed = String::new();
    for (feature, weight) in features {
        write!(packed, "{} {weight} {feature}", feature.len())
            .expect("a string takes what is written to it");
    }
    packed
}

fn unpack_features(packed: &str) -> UnpackedFeatures<'_> {
    UnpackedFeatures(packed)
}

/// An iterator over packed features. It stops at the first damaged feature, and the rest remains.
struct UnpackedFeatures<'f>(&'f str);

impl<'f> Iterator for UnpackedFeatures<'f> {
    type Item = (&'f str, f64);

    fn next(&mut self) -> Option<Self::Item> {
        let (length, rest) = self.0.split_once(' ')?;
        let (weight, rest) = rest.split_once(' ')?;
        let (feature, rest) = rest.split_at_checked(length.parse().ok()?)?;
        let weight = weight.parse().ok()?;
        self.0 = rest;
        Some((feature, weight))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_features_round_trip() {
        let features = [
            ("", 1.0),
            ("a b", 0.1),
            ("5 1 x", 1e-300),
            ("文\n", 65536.0),
            (" ", 1.0 / 3.0),
        ];
        for count in 0..=features.len() {
            let packed = pack_features(features[..count].iter().copied());
            let unpacked: Vec<_> = unpack_features(&packed).collect();
            assert_eq!(unpacked, features[..count]);
        }
    }

    #[test]
    fn truncated_features_are_refused() {
        let bounds = MatchBounds {
            features: true,
            ..MatchBounds::default()
        };
        let settings = crate::plan::MatchSettings::default();
        let recipe = crate::recipe::Recipe::default();
        let setup = ShuffleSetup::new(
            &recipe,
            settings,
            super::super::DocumentOrder::SMALLEST_ID,
            bounds,
        )
        .unwrap();
        let packed = pack_features([("apple", 1.0), ("文", 2.5)]);
        let whole =
            |length: usize| length == 0 || length == packed.len() || length == "5 1 apple".len();
        for length in (0..=packed.len()).filter(|&length| packed.is_char_boundary(length)) {
            assert_eq!(setup.check_text(&packed[..length]).is_ok(), whole(length));
        }
    }
}
