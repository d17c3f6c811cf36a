//! From the number of a token to its unit.
//!
//! Cost: two loads as a rule, because few units end within [`PLACE_STEP`] tokens. Memory: 4 bytes for each unit and for
//! each [`PLACE_STEP`] tokens.

use std::ops::Range;

/// Places between two entries of [`UnitPlaces::first_units`].
const PLACE_STEP: u32 = 64;

/// The places of all units. A place is the number of a token, counted through all items.
#[derive(Clone, Debug)]
pub(super) struct UnitPlaces {
    /// End of each unit.
    ends: Vec<u32>,
    /// For every [`PLACE_STEP`]th place the first unit that ends behind it, up to the end of the last unit.
    first_units: Vec<u32>,
}

impl UnitPlaces {
    /// Creates the places of units, given the range of each, ascending.
    pub(super) fn new(units: &[Range<u32>]) -> Self {
        let mut first_units = Vec::new();
        for (number, unit) in (0..).zip(units) {
            while first_units.len() as u32 * PLACE_STEP < unit.end {
                first_units.push(number);
            }
        }
        Self {
            ends: units.iter().map(|unit| unit.end).collect(),
            first_units,
        }
    }

    /// Returns the number of the unit with a place, or of the next one if none has it.
    #[inline]
    pub(super) fn unit_of_place(&self, place: u32) -> u32 {
        let mut unit = self.first_units[(place / PLACE_STEP) as usize];
        while self.ends[unit as usize] <= place {
            unit += 1;
        }
        unit
    }

    /// Returns the place behind the unit with a place.
    #[inline]
    pub(super) fn end_of_unit(&self, place: u32) -> u32 {
        self.ends[self.unit_of_place(place) as usize]
    }

    /// Returns the bytes of memory.
    pub(super) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.ends) + size_of_val(&*self.first_units)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_have_the_unit_around_them() {
        let units = [0..1, 1..3, 10..300, 300..301, 700..712];
        let places = UnitPlaces::new(&units);
        for (number, unit) in (0..).zip(&units) {
            for place in unit.clone() {
                assert_eq!(places.unit_of_place(place), number);
                assert_eq!(places.end_of_unit(place), unit.end);
            }
        }
        assert_eq!(places.unit_of_place(5), 2);
    }
}
