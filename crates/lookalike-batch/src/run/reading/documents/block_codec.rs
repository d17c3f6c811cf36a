//! Serialisation of the documents of one block, so that an interrupted run need not sketch them again.
//!
//! A list follows its number of elements (8 bytes). A place takes 12 bytes, a row number 4, an id as many as it has,
//! a time and a partition 8. Each document has as many values of `--keep`, one after another; a value begins with a byte
//! for its kind. The sketches are
//! [columns](DocumentSketcher::encode_columns).

use lookalike::DocumentSketcher;
use lookalike::byte_reader::{ByteReader, put_string};
use lookalike_io::source::{BadRow, RowPlace};
use lookalike_options::rank_value::RankValue;

use crate::run::reading::document_ids::DocumentIds;
use crate::run::reading::documents::ReadDocuments;
use crate::run::reading::element_count::{put_count, read_count};
use crate::run::reading::row_places::RowPlaces;
use crate::run::reading::source_values::SourceValues;

pub(in crate::run) fn put_place(place: RowPlace, into: &mut Vec<u8>) {
    into.extend(place.start_offset().to_le_bytes());
    into.extend(place.byte_length().to_le_bytes());
}

pub(in crate::run) fn read_place(reader: &mut ByteReader<'_>) -> Option<RowPlace> {
    Some(RowPlace::new(reader.read_u64()?, reader.read_u32()?))
}

fn put_rank(rank: &RankValue, into: &mut Vec<u8>) {
    match rank {
        RankValue::Missing => into.push(0),
        RankValue::Integer(value) => {
            into.push(1);
            into.extend(value.to_le_bytes());
        }
        RankValue::Number(value) => {
            into.push(2);
            into.extend(value.to_bits().to_le_bytes());
        }
        RankValue::Text(value) => {
            into.push(3);
            put_string(value, into);
        }
    }
}

fn read_rank(reader: &mut ByteReader<'_>) -> Option<RankValue> {
    Some(match reader.read_u8()? {
        0 => RankValue::Missing,
        1 => RankValue::Integer(reader.read_i64()?),
        2 => RankValue::Number(f64::from_bits(reader.read_u64()?)),
        3 => RankValue::Text(reader.read_string()?.into()),
        _ => return None,
    })
}

pub(in crate::run) fn put_bad_row(bad: &BadRow, into: &mut Vec<u8>) {
    put_string(&bad.file, into);
    into.extend(bad.line.to_le_bytes());
    into.extend(bad.number.to_le_bytes());
    put_string(&bad.reason, into);
    put_place(bad.place, into);
}

pub(in crate::run) fn read_bad_row(reader: &mut ByteReader<'_>) -> Option<BadRow> {
    Some(BadRow {
        file: reader.read_string()?.to_owned(),
        line: reader.read_u64()?,
        number: reader.read_u64()?,
        reason: reader.read_string()?.to_owned(),
        place: read_place(reader)?,
    })
}

/// Reads the number of elements of a list, and then the elements.
pub(in crate::run) fn read_all<'a, T>(
    reader: &mut ByteReader<'a>,
    read: impl Fn(&mut ByteReader<'a>) -> Option<T>,
) -> Option<Vec<T>> {
    let count = read_count(reader)?;
    (0..count).map(|_| read(reader)).collect()
}

/// Returns `true` if there is no value, or one for each document.
fn is_column<T>(values: &[T], documents: usize) -> bool {
    values.is_empty() || values.len() == documents
}

/// Returns `true` if each document has as many values.
fn is_columns<T>(values: &[T], documents: usize) -> bool {
    values.is_empty() || values.len().is_multiple_of(documents)
}

impl ReadDocuments {
    /// Appends all documents, with the bad rows among them and without the values of `--sources`. `keeps_lists` is that of
    /// [`DocumentSketcher::encode_columns`].
    pub(in crate::run) fn encode_block(
        &self,
        sketcher: &DocumentSketcher,
        keeps_lists: bool,
        into: &mut Vec<u8>,
    ) {
        put_count(self.places.len(), into);
        self.places.iter().for_each(|place| put_place(place, into));
        let numbers = self.numbers.iter();
        numbers.for_each(|number| into.extend(number.to_le_bytes()));
        self.ids.encode_ids(into);
        put_count(self.keep_values.len(), into);
        self.keep_values
            .iter()
            .for_each(|rank| put_rank(rank, into));
        put_count(self.times.len(), into);
        let times = self.times.iter();
        times.for_each(|time| into.extend(time.to_bits().to_le_bytes()));
        put_count(self.partitions.len(), into);
        let partitions = self.partitions.iter();
        partitions.for_each(|partition| into.extend(partition.to_le_bytes()));
        put_count(self.seen_fields.len(), into);
        into.extend(self.seen_fields.iter().map(|&is_seen| u8::from(is_seen)));
        put_count(self.bad.len(), into);
        self.bad.iter().for_each(|bad| put_bad_row(bad, into));
        into.extend(self.bytes.to_le_bytes());
        sketcher.encode_columns(&self.sketches, keeps_lists, into);
    }

    /// Reads documents that [`encode_block`](Self::encode_block) has written under the same settings. Returns
    /// `None` if the bytes are no block.
    pub(in crate::run) fn decode_block(
        reader: &mut ByteReader<'_>,
        sketcher: &DocumentSketcher,
        feature_budget: usize,
    ) -> Option<Self> {
        let places = read_all(reader, read_place)?;
        let numbers = reader.read_list(places.len(), u32::from_le_bytes)?;
        let ids = DocumentIds::decode_ids(reader)?;
        let keep_values = read_all(reader, read_rank)?;
        let times = read_all(reader, |reader| reader.read_u64().map(f64::from_bits))?;
        let partitions = read_all(reader, ByteReader::read_u64)?;
        let seen_fields = read_all(reader, ByteReader::read_u8)?;
        let bad = read_all(reader, read_bad_row)?;
        let bytes = reader.read_u64()?;
        let sketches = sketcher.decode_columns(reader, feature_budget)?;
        let documents = places.len();
        let fits = sketches.len() == documents
            && numbers.is_sorted_by(|number, next| number < next)
            && ids.fits_documents(documents)
            && is_columns(&keep_values, documents)
            && is_column(&times, documents)
            && is_column(&partitions, documents);
        fits.then(|| Self {
            places: places.into_iter().collect(),
            numbers: numbers.into_iter().collect(),
            ids,
            keep_values,
            times,
            partitions,
            sources: SourceValues::default(),
            sketches,
            seen_fields: seen_fields
                .into_iter()
                .map(|is_seen| is_seen != 0)
                .collect(),
            bad,
            bytes,
        })
    }

    /// Replaces the places of all rows, good and bad, because a further reading copies rows to other places.
    /// `places` has the number and the place of each row, ascending by number. Returns `false` if a row is
    /// missing.
    pub(in crate::run) fn replace_places(&mut self, places: &[(u64, RowPlace)]) -> bool {
        let place_of = |number: u64| {
            let at = places.binary_search_by_key(&number, |&(number, _)| number);
            at.ok().map(|at| places[at].1)
        };
        let good = self.numbers.iter().map(|number| place_of(number.into()));
        let Some(good) = good.collect::<Option<RowPlaces>>() else {
            return false;
        };
        self.places = good;
        let mut bad = self.bad.iter_mut();
        bad.all(|bad| match place_of(bad.number) {
            Some(place) => {
                bad.place = place;
                true
            }
            None => false,
        })
    }
}
