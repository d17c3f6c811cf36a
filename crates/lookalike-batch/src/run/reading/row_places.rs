//! The places and the numbers of rows, in about four bytes each.

use lookalike_io::source::RowPlace;

/// Number of places that are decoded together. Smaller groups are faster to decode and take more memory.
const PLACES_PER_GROUP: usize = 64;

/// The places of rows in reading order. A row mostly begins where the one before it ends, so each takes one byte and
/// those of its length, at most 15, and .13 bytes of its group.
///
/// Cost: adding a place is constant. Finding one decodes up to 64.
#[derive(Debug, Clone, Default)]
pub(in crate::run) struct RowPlaces {
    /// For each place the distance from the end of the one before it in its group, and its length, both as varints.
    bytes: Vec<u8>,
    /// The start in `bytes` of every [`PLACES_PER_GROUP`]th place.
    group_starts: Vec<u64>,
    count: usize,
    /// End of the last place.
    end: u64,
}

impl RowPlaces {
    /// Number of places.
    pub(in crate::run) fn len(&self) -> usize {
        self.count
    }

    /// Returns the bytes of memory.
    pub(in crate::run) fn memory_bytes(&self) -> usize {
        self.bytes.len() + size_of::<u64>() * self.group_starts.len()
    }

    /// Adds the place of the next row.
    pub(in crate::run) fn push_place(&mut self, place: RowPlace) {
        if self.count.is_multiple_of(PLACES_PER_GROUP) {
            self.group_starts.push(self.bytes.len() as u64);
            self.end = 0;
        }
        let distance = place.start_offset().wrapping_sub(self.end).cast_signed();
        put_varint(zigzag(distance), &mut self.bytes);
        put_varint(place.byte_length().into(), &mut self.bytes);
        self.end = end_of(place);
        self.count += 1;
    }

    /// Returns the place of a row.
    ///
    /// # Panics
    /// If there is no place `index`.
    pub(in crate::run) fn place_of(&self, index: usize) -> RowPlace {
        assert!(index < self.count, "place {index} of {}", self.count);
        let group = index / PLACES_PER_GROUP;
        let mut decoder = PlaceDecoder::new(&self.bytes[self.group_starts[group] as usize..]);
        for _ in group * PLACES_PER_GROUP..index {
            decoder.next_place();
        }
        decoder.next_place()
    }

    /// Returns all places in order.
    pub(in crate::run) fn iter(&self) -> impl Iterator<Item = RowPlace> + '_ {
        let mut decoder = PlaceDecoder::new(&self.bytes);
        (0..self.count).map(move |at| {
            if at.is_multiple_of(PLACES_PER_GROUP) {
                decoder.end = 0;
            }
            decoder.next_place()
        })
    }

    /// Adds the places of `other`.
    pub(in crate::run) fn append_places(&mut self, other: &Self) {
        other.iter().for_each(|place| self.push_place(place));
    }

    /// Reserves memory for as many places as expected, if they are like those that are already there.
    pub(in crate::run) fn reserve_places(&mut self, expected: usize) {
        let more = expected.saturating_sub(self.count);
        let per_place = self.bytes.len().div_ceil(self.count.max(1));
        self.bytes.reserve_exact(more.saturating_mul(per_place));
        self.group_starts.reserve_exact(more / PLACES_PER_GROUP + 1);
    }
}

impl FromIterator<RowPlace> for RowPlaces {
    fn from_iter<I: IntoIterator<Item = RowPlace>>(places: I) -> Self {
        let mut collected = Self::default();
        places
            .into_iter()
            .for_each(|place| collected.push_place(place));
        collected
    }
}

/// Decodes the places of a group.
struct PlaceDecoder<'a> {
    bytes: &'a [u8],
    /// End of the place before.
    end: u64,
}

impl<'a> PlaceDecoder<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, end: 0 }
    }

    fn next_place(&mut self) -> RowPlace {
        let distance = unzigzag(take_varint(&mut self.bytes));
        let offset = self.end.wrapping_add(distance.cast_unsigned());
        let place = RowPlace::new(offset, take_varint(&mut self.bytes) as u32);
        self.end = end_of(place);
        place
    }
}

fn end_of(place: RowPlace) -> u64 {
    place
        .start_offset()
        .wrapping_add(place.byte_length().into())
}

/// Returns a number that is small for numbers near 0.
fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63).cast_unsigned()
}

fn unzigzag(value: u64) -> i64 {
    (value >> 1).cast_signed() ^ -(value & 1).cast_signed()
}

/// Appends a number by seven bits a byte, the lowest first. The high bit says that more follow.
fn put_varint(mut value: u64, into: &mut Vec<u8>) {
    while value >= 0x80 {
        into.push(value as u8 | 0x80);
        value >>= 7;
    }
    into.push(value as u8);
}

/// Takes a number that [`put_varint`] has appended.
fn take_varint(bytes: &mut &[u8]) -> u64 {
    let (mut value, mut shift) = (0, 0);
    while let Some((&byte, rest)) = bytes.split_first() {
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
        shift += 7;
    }
    value
}

/// The numbers of rows in reading order, ascending. Rows that are missing between them, because they are bad, cost 8
/// bytes each time; the others take nothing.
#[derive(Debug, Clone, Default)]
pub(in crate::run) struct RowNumbers {
    /// The index and the number of each row whose number does not follow the one before.
    runs: Vec<(u32, u32)>,
    count: usize,
}

impl RowNumbers {
    /// Returns the bytes of memory.
    pub(in crate::run) fn memory_bytes(&self) -> usize {
        size_of_val(&self.runs[..])
    }

    /// Adds the number of the next row, which is larger than those before.
    pub(in crate::run) fn push_number(&mut self, number: u32) {
        if self.last_number().checked_add(1) != Some(number) {
            self.runs.push((self.count as u32, number));
        } else if self.runs.is_empty() {
            self.runs.push((0, 1));
        }
        self.count += 1;
    }

    /// Returns the number of the last row; 0 if there is none.
    pub(in crate::run) fn last_number(&self) -> u32 {
        let last = self.runs.last();
        last.map_or(0, |&(index, number)| {
            number + (self.count as u32 - 1 - index)
        })
    }

    /// Returns the number of a row.
    pub(in crate::run) fn number_of(&self, index: usize) -> u32 {
        let index = index as u32;
        let run = self.runs.partition_point(|&(first, _)| first <= index);
        let (first, number) = self.runs[run - 1];
        number + (index - first)
    }

    /// Returns the index of the row with a number.
    pub(in crate::run) fn index_of(&self, number: u32) -> Option<usize> {
        let run = self.runs.partition_point(|&(_, first)| first <= number);
        let (index, first) = *self.runs.get(run.checked_sub(1)?)?;
        let index = index as usize + (number - first) as usize;
        let end = self
            .runs
            .get(run)
            .map_or(self.count, |&(end, _)| end as usize);
        (index < end).then_some(index)
    }

    /// Returns all numbers in order.
    pub(in crate::run) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        let ends = self.runs.iter().skip(1).map(|&(end, _)| end);
        let ends = ends.chain([self.count as u32]);
        let runs = self.runs.iter().zip(ends);
        runs.flat_map(|(&(first, number), end)| (0..end - first).map(move |more| number + more))
    }

    /// Adds the numbers of `other`, which are larger than those before.
    pub(in crate::run) fn append_numbers(&mut self, other: &Self) {
        let ends = other.runs.iter().skip(1).map(|&(end, _)| end);
        let ends = ends.chain([other.count as u32]);
        for (&(first, number), end) in other.runs.iter().zip(ends) {
            self.push_number(number);
            self.count += (end - first - 1) as usize;
        }
    }
}

impl FromIterator<u32> for RowNumbers {
    fn from_iter<I: IntoIterator<Item = u32>>(numbers: I) -> Self {
        let mut collected = Self::default();
        numbers
            .into_iter()
            .for_each(|number| collected.push_number(number));
        collected
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_as_they_were_pushed() {
        let lengths = [0, 1, 127, 128, 5000, u32::MAX];
        let mut offset = 0;
        let mut given: Vec<RowPlace> = Vec::new();
        for at in 0..1000_u64 {
            let length = lengths[at as usize % lengths.len()];
            match at % 97 {
                // A row after a gap, one before all others, and one at the end of the address space.
                5 => offset += 1 << (at % 40),
                6 => offset = at,
                7 => offset = u64::MAX - at,
                _ => {}
            }
            given.push(RowPlace::new(offset, length));
            offset = offset.wrapping_add(length.into());
        }
        let mut places = RowPlaces::default();
        for part in given.chunks(37) {
            places.append_places(&part.iter().copied().collect());
        }
        assert_eq!(places.len(), given.len());
        assert!(places.iter().eq(given.iter().copied()));
        for (at, &place) in given.iter().enumerate() {
            assert_eq!(places.place_of(at), place, "{at}");
        }
        assert_eq!(
            places.memory_bytes(),
            given.iter().copied().collect::<RowPlaces>().memory_bytes()
        );
    }

    #[test]
    fn contiguous_rows_take_little_memory() {
        let rows = (0..6400_u64).map(|at| RowPlace::new(at * 200, 200));
        let places: RowPlaces = rows.collect();
        // A distance, a length of two bytes, and a hundredth of a group of places.
        assert!(
            places.memory_bytes() < 6400 * 33 / 10,
            "{}",
            places.memory_bytes()
        );
    }

    #[test]
    fn numbers_are_found_by_index_and_indices_by_number() {
        for given in [
            vec![],
            vec![1],
            vec![2],
            vec![u32::MAX],
            (1..200).collect(),
            (1..2000).filter(|number| number % 7 != 1).collect(),
            (5..90).chain([100, 101, 500]).collect::<Vec<u32>>(),
        ] {
            let mut numbers = RowNumbers::default();
            for part in given.chunks(11) {
                numbers.append_numbers(&part.iter().copied().collect());
            }
            assert!(numbers.iter().eq(given.iter().copied()), "{given:?}");
            assert_eq!(numbers.last_number(), given.last().copied().unwrap_or(0));
            for (at, &number) in given.iter().enumerate() {
                assert_eq!(numbers.number_of(at), number);
            }
            for number in (0..2100).chain([u32::MAX]) {
                let index = given.binary_search(&number).ok();
                assert_eq!(numbers.index_of(number), index, "{number} of {given:?}");
            }
            let at_once: RowNumbers = given.iter().copied().collect();
            assert_eq!(numbers.memory_bytes(), at_once.memory_bytes());
        }
    }
}
