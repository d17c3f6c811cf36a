//! A document as it comes to a step, and what keeps documents apart whatever their texts are.

use std::borrow::Cow;

use super::{Setup, Value};
use crate::error::{Error, Result};
use crate::text::{Analysis, Scratch};

/// What keeps documents apart, and what their texts are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// Documents match only if their parts are equal.
    pub within: bool,
    /// Some documents are given as known: they come before all others and count as kept.
    pub against: bool,
    /// Texts are features that somebody else has made, [packed](pack_features).
    pub features: bool,
}

/// A document.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Document<'a> {
    /// Names it, alone among those that are given as known or among those that are not.
    pub id: &'a str,
    /// What orders it; the id where the order wants no value.
    pub value: Value<'a>,
    /// Its text, or its features where these are given.
    pub text: &'a str,
    /// What must be equal for two documents to match, where something must.
    pub part: u64,
    /// Whether it is given as known.
    pub given: bool,
}

impl<'a> Document<'a> {
    /// A document that may match every other one.
    pub fn new(id: &'a str, value: Value<'a>, text: &'a str) -> Self {
        Self {
            id,
            value,
            text,
            part: 0,
            given: false,
        }
    }
}

/// Where known documents are given, the first byte of a position tells them from the others.
const GIVEN: u8 = 0;
const JUDGED: u8 = 1;

/// The same of ids.
const GIVEN_ID: char = 'g';
const JUDGED_ID: char = 'j';

impl Setup {
    /// The position of a document in the total order, as bytes that compare like it.
    pub(super) fn position(&self, document: &Document<'_>) -> Vec<u8> {
        let mut position = Vec::with_capacity(document.id.len() + 12);
        if self.bounds.against && document.given {
            position.push(GIVEN);
            position.extend_from_slice(document.id.as_bytes());
            return position;
        }
        if self.bounds.against {
            position.push(JUDGED);
        }
        self.first
            .position(document.id, document.value, &mut position);
        position
    }

    /// The id of a document, with a mark where known ones are given: these may have the same ids.
    pub(super) fn marked_id<'d>(&self, document: &Document<'d>) -> Cow<'d, str> {
        match (self.bounds.against, document.given) {
            (false, _) => Cow::Borrowed(document.id),
            (true, true) => Cow::Owned(format!("{GIVEN_ID}{}", document.id)),
            (true, false) => Cow::Owned(format!("{JUDGED_ID}{}", document.id)),
        }
    }

    /// The id behind the mark, and whether it is one of a known document.
    pub(super) fn unmarked_id<'i>(&self, id: &'i str) -> (&'i str, bool) {
        if !self.bounds.against {
            return (id, false);
        }
        let rest = |mark| id.strip_prefix(mark);
        rest(GIVEN_ID).map_or_else(|| (rest(JUDGED_ID).unwrap_or(id), false), |id| (id, true))
    }

    /// Whether a position is one of a document that is given as known.
    pub(super) fn is_given(&self, position: &[u8]) -> bool {
        self.bounds.against && position.first() == Some(&GIVEN)
    }

    /// The id in a position.
    ///
    /// # Errors
    /// If these bytes are none of this order.
    pub fn id_at<'p>(&self, position: &'p [u8]) -> Result<&'p str> {
        match (self.bounds.against, position) {
            (false, position) => self.first.id(position),
            (true, [GIVEN, id @ ..]) => super::First::Smallest.id(id),
            (true, [JUDGED, position @ ..]) => self.first.id(position),
            (true, _) => Err(super::position::none_of_this_order(position)),
        }
    }

    /// Analyses a text, or features that are given.
    pub(super) fn analyze<'s>(&self, text: &str, scratch: &'s mut Scratch) -> Analysis<'s> {
        if self.bounds.features {
            self.analyzer.analyze_features(unpacked(text), scratch)
        } else {
            self.analyzer.analyze(text, scratch)
        }
    }

    /// Refuses what is to be features and is none.
    pub(super) fn check_text(&self, text: &str) -> Result<()> {
        let is_whole = || {
            let mut features = unpacked(text);
            features.by_ref().for_each(drop);
            features.0.is_empty()
        };
        if self.bounds.features && !is_whole() {
            return Err(Error::text(
                "features are cut off or damaged: give those that an earlier step of this run made",
            ));
        }
        Ok(())
    }
}

/// Features as one string: the length of each in bytes, its weight, and itself.
pub fn pack_features<'f>(features: impl IntoIterator<Item = (&'f str, f64)>) -> String {
    use std::fmt::Write;

    let mut packed = String::new();
    for (feature, weight) in features {
        write!(packed, "{} {weight} {feature}", feature.len())
            .expect("a string takes what is written to it");
    }
    packed
}

fn unpacked(packed: &str) -> Unpacked<'_> {
    Unpacked(packed)
}

/// The features of a string that was packed; what is left at the end is damaged.
struct Unpacked<'f>(&'f str);

impl<'f> Iterator for Unpacked<'f> {
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
    fn packed_features_are_themselves_again() {
        let features = [
            ("", 1.0),
            ("a b", 0.1),
            ("5 1 x", 1e-300),
            ("文\n", 65536.0),
            (" ", 1.0 / 3.0),
        ];
        for count in 0..=features.len() {
            let packed = pack_features(features[..count].iter().copied());
            let unpacked: Vec<_> = unpacked(&packed).collect();
            assert_eq!(unpacked, features[..count]);
        }
    }

    #[test]
    fn features_that_are_cut_off_are_refused() {
        let bounds = Bounds {
            features: true,
            ..Bounds::default()
        };
        let settings = crate::plan::Settings::default();
        let recipe = crate::recipe::Recipe::default();
        let setup = Setup::new(&recipe, settings, super::super::First::Smallest, bounds).unwrap();
        let packed = pack_features([("apple", 1.0), ("文", 2.5)]);
        let whole =
            |length: usize| length == 0 || length == packed.len() || length == "5 1 apple".len();
        for length in (0..=packed.len()).filter(|&length| packed.is_char_boundary(length)) {
            assert_eq!(setup.check_text(&packed[..length]).is_ok(), whole(length));
        }
    }
}
