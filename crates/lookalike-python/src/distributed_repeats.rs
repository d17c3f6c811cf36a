//! The steps of a search for repeated text on many machines ([`lookalike_batch::repeated_text_shuffle`]), text by text.
//!
//! Cuts travel as records: the bytes of each cut one after another, as [`TextCut::encode_cut`] writes them.

use std::ops::Range;

use lookalike::byte_reader::ByteReader;
use lookalike::passages::{PassageSettings, RepeatedRun, TextCut};
use lookalike_batch::repeated_text_shuffle::{self as shuffle, DescribedPlace};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error::{InputError, engine_error_to_py, run_error_to_py};
use crate::recipe::Recipe;

/// A piece: start, end, start and end of the first occurrence, length, text.
type PieceRow = (u64, u64, u64, u64, u64, String);

/// The index of the place of a piece, and the piece.
type PlacedPiece = (usize, PieceRow);

/// A place: start, end, hash of its tokens.
type PlaceRow = (u64, u64, [u8; 16]);

/// The steps that read texts.
#[pyclass(frozen, module = "lookalike._engine", name = "RepeatedTextSteps")]
pub(crate) struct RepeatedTextSteps(shuffle::RepeatedTextSteps);

#[pymethods]
impl RepeatedTextSteps {
    #[new]
    fn new(recipe: &Recipe, min_length: u32) -> PyResult<Self> {
        let passages = PassageSettings::new(min_length).map_err(engine_error_to_py)?;
        Ok(Self(shuffle::RepeatedTextSteps::new(&recipe.0, passages)))
    }

    /// Returns the hashes of the runs of a text, 8 bytes each, lowest first. Only runs of documents with the same `part`
    /// are equal.
    #[pyo3(signature = (text, part))]
    fn hash_runs<'py>(
        &self,
        py: Python<'py>,
        text: &str,
        part: Option<&str>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let partition = part.map_or(0, |part| lookalike::value_hash(part.as_bytes()));
        let hashes = py.detach(|| self.0.hash_runs(text, partition));
        let hashes = hashes.map_err(run_error_to_py)?;
        let bytes: Vec<u8> = hashes.into_iter().flat_map(u64::to_le_bytes).collect();
        Ok(PyBytes::new(py, &bytes))
    }

    /// Returns the record of the cuts of a text. `repeated` has the first token of each repeated run, and the document and
    /// the token of its first occurrence, ascending.
    fn choose_cuts<'py>(
        &self,
        py: Python<'py>,
        text: &str,
        repeated: Vec<(u32, u32, u32)>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let cuts = py.detach(|| {
            let runs = repeated.into_iter().map(|(start, document, first)| {
                let first = u64::from(document) << 32 | u64::from(first);
                RepeatedRun::from_numbers(u64::from(start), first)
            });
            let runs: Vec<RepeatedRun> = runs.collect();
            self.0.choose_cuts(text, &runs)
        });
        let cuts = cuts.map_err(run_error_to_py)?;
        Ok(PyBytes::new(py, &encode_record(&cuts)))
    }

    /// Returns the places of ranges of tokens, each given by its first token and its length; None for a range that the text
    /// does not have.
    fn describe_places(
        &self,
        py: Python<'_>,
        text: String,
        ranges: Vec<(u32, u32)>,
    ) -> PyResult<Vec<Option<PlaceRow>>> {
        let described = py.detach(|| {
            let ranges = ranges.into_iter();
            let ranges = ranges.map(|(start, length)| start..start.saturating_add(length));
            self.0.describe_places(text, &ranges.collect::<Vec<_>>())
        });
        let described = described.map_err(run_error_to_py)?;
        let rows = described.into_iter().map(|place| {
            place.map(|place| {
                let Range { start, end } = place.characters;
                (start, end, place.tokens.to_le_bytes())
            })
        });
        Ok(rows.collect())
    }

    /// Returns the pieces of the cuts of a text, the text that is left, and whether that is empty. `places` are those that
    /// the pieces name, in their order. Each piece comes with the index of its place.
    fn describe_cuts(
        &self,
        py: Python<'_>,
        text: String,
        record: &[u8],
        places: Vec<Option<PlaceRow>>,
    ) -> PyResult<(Vec<PlacedPiece>, String, bool)> {
        let cuts = decode_record(record)?;
        let described = py.detach(|| {
            let places = places.into_iter().map(|place| {
                place.map(|(start, end, tokens)| DescribedPlace {
                    characters: start..end,
                    tokens: u128::from_le_bytes(tokens),
                })
            });
            self.0
                .describe_cuts(text, &cuts, &places.collect::<Vec<_>>())
        });
        let described = described.map_err(run_error_to_py)?;
        let pieces = described.pieces.into_iter().map(|piece| {
            let row = (
                piece.characters.start,
                piece.characters.end,
                piece.first_characters.start,
                piece.first_characters.end,
                piece.length,
                piece.text,
            );
            (piece.place, row)
        });
        Ok((pieces.collect(), described.rest, described.is_emptied))
    }
}

/// Returns the document, the first token and the length of the place that each piece of a record names.
#[pyfunction]
pub(crate) fn places_of_cuts(record: &[u8]) -> PyResult<Vec<(u32, u32, u32)>> {
    let cuts = decode_record(record)?;
    let pieces = cuts.iter().flat_map(|cut| &cut.pieces);
    let places = pieces.map(|piece| {
        let length = piece.tokens.end - piece.tokens.start;
        (piece.document, piece.start, length)
    });
    Ok(places.collect())
}

/// Lets cuts name what stays, document by document.
#[pyclass(module = "lookalike._engine")]
pub(crate) struct PlaceNaming(shuffle::PlaceNaming);

#[pymethods]
impl PlaceNaming {
    #[new]
    fn new() -> Self {
        Self(shuffle::PlaceNaming::new())
    }

    /// Takes the record of the next document, and returns it with places that stay.
    fn name_places<'py>(
        &mut self,
        py: Python<'py>,
        document: u32,
        record: &[u8],
    ) -> PyResult<Bound<'py, PyBytes>> {
        let cuts = decode_record(record)?;
        let named = self.0.name_places(document, cuts);
        Ok(PyBytes::new(py, &encode_record(named)))
    }
}

fn encode_record(cuts: &[TextCut]) -> Vec<u8> {
    let mut record = Vec::new();
    cuts.iter().for_each(|cut| cut.encode_cut(&mut record));
    record
}

fn decode_record(record: &[u8]) -> PyResult<Vec<TextCut>> {
    let mut reader = ByteReader::new(record);
    let mut cuts = Vec::new();
    while !reader.is_at_end() {
        let cut = TextCut::decode_cut(&mut reader);
        cuts.push(cut.ok_or_else(|| {
            InputError::new_err(
                "a record of cuts is truncated or damaged: give records that an earlier step of this run made",
            )
        })?);
    }
    Ok(cuts)
}
