//! The documents of a segment in the form in which thresholds and measures compare them, without their
//! texts.
//!
//! ```text
//! records     records of all rows, as DocumentRecorder writes them
//!             start of each record, and the end of the last (8 bytes each)
//!             number of rows (8 bytes)
//!
//! signatures  signatures of the long documents (4 bytes per slot)
//!             row of each signature (4 bytes, ascending)
//!             number of signatures, number of slots (8 bytes each)
//! ```
//!
//! A segment without signatures has no file of signatures.

use std::borrow::Cow;
use std::path::Path;

use lookalike::hamming::ColumnBuffer;
use lookalike::similarity::{DocumentRecorder, visit_record_keys};
use lookalike_io::error::Result;

use crate::index::build_space::BuildSpace;
use crate::index::manifest::{
    MatchingEntry, POSTINGS_FILE, RECORDS_FILE, SIGNATURES_FILE, file_name,
};
use crate::index::paged::{
    FileMagic, MIN_RECENT_PAGES, PagedFile, PagedWriter, damaged_file, to_array,
};
use crate::index::postings::{PostingList, PostingSort, pack_posting, write_postings};
use crate::index::row_set::RowSet;
use crate::index::spill_buffer::SpillBuffer;
use crate::index::spill_buffer::spill_failed;
use crate::sealed_manifest::FileChecksum;

const RECORDS_MAGIC: FileMagic = *b"LAre";
const SIGNATURES_MAGIC: FileMagic = *b"LAsi";

/// Records and signatures in the format of the files; several threads produce such batches.
#[derive(Default)]
pub(super) struct StoredRecordBatch {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    signatures: Vec<u32>,
    /// Rows of the signatures, counted from the first row of the batch.
    signed: Vec<u32>,
}

impl StoredRecordBatch {
    /// Appends the next row.
    pub(super) fn push_record(
        &mut self,
        recorder: &DocumentRecorder,
        analysis: &lookalike::text::TextAnalysis<'_>,
    ) {
        let row = self.ends.len() as u32;
        if recorder.record_document(analysis, &mut self.bytes, &mut self.signatures) {
            self.signed.push(row);
        }
        self.ends.push(self.bytes.len());
    }

    pub(super) fn byte_count(&self) -> usize {
        self.bytes.len() + 4 * self.signatures.len()
    }
}

/// Writes the records and signatures of a segment.
pub(super) struct RecordsWriter {
    records: PagedWriter,
    places: SpillBuffer,
    rows: u64,
    signatures: PagedWriter,
    /// Rows of the signatures.
    signed: SpillBuffer,
    signed_rows: u64,
    slots: u64,
}

impl RecordsWriter {
    pub(super) fn create_files(
        index_path: &Path,
        file: u64,
        slots: usize,
        space: &BuildSpace,
    ) -> Result<Self> {
        let path = |extension| index_path.join(file_name(file, extension));
        Ok(Self {
            records: PagedWriter::create_file(&path(RECORDS_FILE), RECORDS_MAGIC)?,
            places: space.new_buffer(),
            rows: 0,
            signatures: PagedWriter::create_file(&path(SIGNATURES_FILE), SIGNATURES_MAGIC)?,
            signed: space.new_buffer(),
            signed_rows: 0,
            slots: slots as u64,
        })
    }

    fn put_signed_row(&mut self, row: u32) -> Result<()> {
        self.signed_rows += 1;
        let appended = self.signed.append_bytes(&row.to_le_bytes());
        appended.map_err(spill_failed)
    }

    fn put_place(&mut self, place: u64) -> Result<()> {
        let appended = self.places.append_bytes(&place.to_le_bytes());
        appended.map_err(spill_failed)
    }

    pub(super) fn append_batch(&mut self, batch: &StoredRecordBatch) -> Result<()> {
        for &row in &batch.signed {
            self.put_signed_row(self.rows as u32 + row)?;
        }
        let bytes: Vec<u8> = batch
            .signatures
            .iter()
            .flat_map(|slot| slot.to_le_bytes())
            .collect();
        self.signatures.put_bytes(&bytes)?;
        let base = self.records.byte_length();
        let starts = [0].into_iter().chain(batch.ends.iter().copied());
        for start in starts.take(batch.ends.len()) {
            self.put_place(base + start as u64)?;
        }
        self.rows += batch.ends.len() as u64;
        self.records.put_bytes(&batch.bytes)
    }

    /// Appends all rows of another segment that are not removed.
    pub(super) fn copy_rows(&mut self, from: &DocumentRecords, removed: &RowSet) -> Result<()> {
        for row in (0..from.rows as u32).filter(|&row| !removed.contains_row(row)) {
            if let Some(signature) = from.signature_bytes(row)? {
                self.put_signed_row(self.rows as u32)?;
                self.signatures.put_bytes(&signature)?;
            }
            self.put_place(self.records.byte_length())?;
            self.records.put_bytes(&from.record_of_row(row)?)?;
            self.rows += 1;
        }
        Ok(())
    }

    /// Completes both files. An empty file of signatures is left out.
    pub(super) fn finish_files(mut self) -> Result<(FileChecksum, Option<FileChecksum>)> {
        let end = self.records.byte_length();
        self.places
            .move_bytes(&mut self.records)
            .map_err(spill_failed)?;
        self.records.put_bytes(&end.to_le_bytes())?;
        self.records.put_bytes(&self.rows.to_le_bytes())?;
        let records = FileChecksum(self.records.finish_file()?);
        if self.signed_rows == 0 {
            return Ok((records, None));
        }
        self.signed
            .move_bytes(&mut self.signatures)
            .map_err(spill_failed)?;
        self.signatures.put_bytes(&self.signed_rows.to_le_bytes())?;
        self.signatures.put_bytes(&self.slots.to_le_bytes())?;
        Ok((records, Some(FileChecksum(self.signatures.finish_file()?))))
    }
}

/// The records of a segment, with its signatures.
pub(super) struct DocumentRecords {
    file: PagedFile,
    rows: u64,
    /// Start of the table of record starts.
    table: u64,
    signatures: Option<SignatureFile>,
}

struct SignatureFile {
    file: PagedFile,
    rows: Vec<u32>,
    slots: u64,
}

impl DocumentRecords {
    /// Opens the records of a segment. The caller must compare the seals with the manifest.
    pub(super) fn open_files(index_path: &Path, file: u64, has_signatures: bool) -> Result<Self> {
        let path = index_path.join(file_name(file, RECORDS_FILE));
        let file_of_records = PagedFile::open_file(&path, RECORDS_MAGIC)?;
        let short = || damaged_file(&path, "it is too short for its number of rows");
        let length = file_of_records.byte_length();
        let at = length.checked_sub(8).ok_or_else(short)?;
        let rows = u64::from_le_bytes(to_array(&file_of_records.read_range(at, length)?));
        let places = rows.checked_add(1).and_then(|places| places.checked_mul(8));
        let table = places.and_then(|bytes| at.checked_sub(bytes));
        let signatures = if has_signatures {
            Some(SignatureFile::open_file(
                &index_path.join(file_name(file, SIGNATURES_FILE)),
                rows,
            )?)
        } else {
            None
        };
        Ok(Self {
            table: table.ok_or_else(short)?,
            file: file_of_records,
            rows,
            signatures,
        })
    }

    /// Keeps only the pages that were read last from now on.
    pub(super) fn keep_recent_pages(&mut self) {
        self.file.keep_recent_pages(MIN_RECENT_PAGES);
        if let Some(signatures) = &mut self.signatures {
            signatures.file.keep_recent_pages(MIN_RECENT_PAGES);
        }
    }

    pub(super) fn len(&self) -> u64 {
        self.rows
    }

    /// Returns the seals of the records and of the signatures.
    pub(super) fn file_checksums(&self) -> (FileChecksum, Option<FileChecksum>) {
        let signatures = self.signatures.as_ref();
        let signatures = signatures.map(|signatures| FileChecksum(signatures.file.seal()));
        (FileChecksum(self.file.seal()), signatures)
    }

    /// Returns the record of a row.
    pub(super) fn record_of_row(&self, row: u32) -> Result<Cow<'_, [u8]>> {
        let at = self.table + 8 * u64::from(row);
        let ends = self.file.read_range(at, at + 16)?;
        let start = u64::from_le_bytes(to_array(&ends[..8]));
        let end = u64::from_le_bytes(to_array(&ends[8..]));
        self.file.read_range(start, end.min(self.table))
    }

    fn signature_bytes(&self, row: u32) -> Result<Option<Cow<'_, [u8]>>> {
        let Some(signatures) = &self.signatures else {
            return Ok(None);
        };
        match signatures.rows.binary_search(&row) {
            Ok(at) => signatures.signature_bytes(at).map(Some),
            Err(_) => Ok(None),
        }
    }

    /// Reads the signature of a row into `into`. Returns `false` if the row has none.
    pub(super) fn read_signature(&self, row: u32, into: &mut Vec<u32>) -> Result<bool> {
        into.clear();
        let Some(bytes) = self.signature_bytes(row)? else {
            return Ok(false);
        };
        decode_slots(&bytes, into);
        Ok(true)
    }

    /// Calls `visit` with every row that has a signature, and with the signature.
    pub(super) fn visit_signatures(&self, mut visit: impl FnMut(u32, &[u32])) -> Result<()> {
        let mut signature = Vec::new();
        let Some(signatures) = &self.signatures else {
            return Ok(());
        };
        for (at, &row) in signatures.rows.iter().enumerate() {
            signature.clear();
            decode_slots(&signatures.signature_bytes(at)?, &mut signature);
            visit(row, &signature);
        }
        Ok(())
    }

    /// Bytes of memory of the numbers of rows with signatures.
    pub(super) fn row_bytes(&self) -> u64 {
        let rows = self
            .signatures
            .as_ref()
            .map_or(0, |signatures| signatures.rows.len());
        (size_of::<u32>() * rows) as u64
    }

    /// Returns the number of slots of the signatures, if there are any.
    pub(super) fn signature_slots(&self) -> Option<u64> {
        self.signatures.as_ref().map(|signatures| signatures.slots)
    }

    /// Writes the postings of all rows beside the records. Returns the manifest's entry for the three
    /// files.
    pub(super) fn write_postings(
        &self,
        index_path: &Path,
        file: u64,
        sort: &PostingSort,
    ) -> Result<MatchingEntry> {
        let path = index_path.join(file_name(file, POSTINGS_FILE));
        let mut count = 0;
        self.visit_postings(&mut |_| count += 1)?;
        let seal = write_postings(&path, count, sort, |visit| self.visit_postings(visit))?;
        let (records, signatures) = self.file_checksums();
        Ok(MatchingEntry {
            records,
            postings: FileChecksum(seal),
            signatures,
        })
    }

    fn visit_postings(&self, visit: &mut dyn FnMut(u64)) -> Result<()> {
        for row in 0..self.rows as u32 {
            let record = self.record_of_row(row)?;
            visit_record_keys(&record, &mut |key| visit(pack_posting(key, row)))
                .ok_or_else(|| self.invalid_record(row))?;
        }
        Ok(())
    }

    /// Returns the error for a row whose record is not valid.
    pub(super) fn invalid_record(&self, row: u32) -> lookalike_io::Error {
        damaged_file(
            self.file.file_path(),
            &format!("the record of row {row} is not valid"),
        )
    }

    pub(super) fn verify_files(&self) -> Result<()> {
        self.file.verify_pages()?;
        let signatures = self.signatures.as_ref();
        signatures.map_or(Ok(()), |signatures| signatures.file.verify_pages())?;
        self.visit_postings(&mut |_| ())
    }
}

impl SignatureFile {
    fn open_file(path: &Path, most_rows: u64) -> Result<Self> {
        let file = PagedFile::open_file(path, SIGNATURES_MAGIC)?;
        let short = || damaged_file(path, "it is too short for its number of signatures");
        let at = file.byte_length().checked_sub(16).ok_or_else(short)?;
        let ends = file.read_range(at, at + 16)?;
        let count = u64::from_le_bytes(to_array(&ends[..8]));
        let slots = u64::from_le_bytes(to_array(&ends[8..]));
        drop(ends);
        let table = slots
            .checked_mul(4)
            .and_then(|bytes| bytes.checked_mul(count));
        let whole = table.and_then(|table| table.checked_add(count.checked_mul(4)?));
        if whole != Some(at) || slots == 0 {
            return Err(short());
        }
        let mut rows = Vec::new();
        decode_slots(&file.read_range(table.ok_or_else(short)?, at)?, &mut rows);
        let ascending = rows.windows(2).all(|pair| pair[0] < pair[1]);
        if !ascending || rows.last().is_some_and(|&row| u64::from(row) >= most_rows) {
            return Err(damaged_file(path, "its rows are out of order"));
        }
        Ok(Self { file, rows, slots })
    }

    fn signature_bytes(&self, at: usize) -> Result<Cow<'_, [u8]>> {
        let bytes = 4 * self.slots;
        let start = at as u64 * bytes;
        self.file.read_range(start, start + bytes)
    }
}

fn decode_slots(bytes: &[u8], into: &mut Vec<u32>) {
    let numbers = bytes.chunks_exact(4);
    into.extend(numbers.map(|number| u32::from_le_bytes(to_array(number))));
}

/// Opens the postings of a segment and compares their checksum.
pub(super) fn open_postings(
    index_path: &Path,
    file: u64,
    expected: FileChecksum,
) -> Result<PostingList> {
    PostingList::open_named(&index_path.join(file_name(file, POSTINGS_FILE)), expected)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::PathBuf;

    use lookalike::dedup::CopyPairs;
    use lookalike::plan::{EditUnit, SimilarityMeasure};
    use lookalike::{Recipe, Threshold};
    use lookalike_io::sink::OutputTarget;
    use lookalike_io::source::{ReadOptions, RowSource};

    use super::*;
    use crate::index::{
        BuildSettings, IndexReadOptions, ListedMatches, RowContent, SearchCandidates,
        SearchSettings, TextCheck, build_index, directory, search_index, verify_index,
    };
    use crate::run::commands::output_settings::PairsOutputs;
    use crate::run::{RunInputs, RunSettings, SilentProgress, find_pairs};

    const DOCUMENT_COUNT: usize = 400;

    /// Returns a text of 5 to 300 words. Every third text resembles the one before it.
    fn text(document: usize) -> String {
        let about = document - usize::from(document % 3 == 2);
        let word = |at: usize| {
            let hash = lookalike::value_hash(&((1000 * about + at) as u64).to_le_bytes());
            format!("{:x}", hash >> 44)
        };
        let mut words: Vec<_> = (0..5 + about * 7 % 296).map(word).collect();
        if about != document {
            words.truncate(words.len() * 9 / 10);
        }
        words.join(" ")
    }

    fn read_options() -> IndexReadOptions {
        IndexReadOptions {
            content: RowContent::Documents,
            read: ReadOptions::default(),
            strict: true,
            threads: 2,
            memory: None,
        }
    }

    fn build(index_path: &Path, inputs: &[PathBuf]) {
        let settings = BuildSettings {
            recipe: Some(Recipe::default()),
            bits: 64,
            distance: 3,
            plan: "auto".to_owned(),
            index_memory: None,
            texts: false,
            distance_only: false,
            passages: None,
            replace: false,
        };
        build_index(
            index_path,
            inputs,
            &settings,
            &read_options(),
            None,
            &SilentProgress,
        )
        .unwrap();
    }

    /// Returns the lines of a table without its header, with the first two columns in ascending order, and
    /// without those that name one document twice.
    fn read_pairs(path: &Path) -> BTreeSet<[String; 3]> {
        let table = fs::read_to_string(path).unwrap();
        let rows = table.lines().skip(1).map(|line| {
            let mut columns = line.split('\t').map(str::to_owned);
            let mut next = || columns.next().unwrap();
            let (a, b, similarity) = (next(), next(), next());
            [a.clone().min(b.clone()), a.max(b), similarity]
        });
        rows.filter(|[a, b, _]| a != b).collect()
    }

    fn searched_pairs(
        index_path: &Path,
        inputs: &[PathBuf],
        threshold: Threshold,
    ) -> BTreeSet<[String; 3]> {
        let table = index_path.with_extension("found.tsv");
        let settings = SearchSettings {
            distance: None,
            which: ListedMatches::All,
            limit: None,
            candidates: SearchCandidates::Plan,
            check: Some(TextCheck {
                measure: SimilarityMeasure::Jaccard,
                unit: EditUnit::Characters,
                threshold,
            }),
            recipe: None,
        };
        let output = OutputTarget::Path(table.clone());
        search_index(
            index_path,
            inputs,
            &settings,
            &read_options(),
            &output,
            None,
            &SilentProgress,
        )
        .unwrap();
        read_pairs(&table)
    }

    fn batch_pairs(
        table: &Path,
        inputs: &[PathBuf],
        threshold: Threshold,
    ) -> BTreeSet<[String; 3]> {
        let mut settings = RunSettings::default();
        settings.matching.threshold = threshold;
        let inputs = RunInputs {
            documents: RowSource::Paths(inputs.to_vec()),
            against: RowSource::default(),
        };
        let outputs = PairsOutputs {
            pairs: Some(OutputTarget::Path(table.to_owned())),
            sample: None,
            copies: CopyPairs::All,
            apart: false,
            rejected: None,
            report: None,
        };
        find_pairs(&inputs, &settings, &outputs, &SilentProgress).unwrap();
        read_pairs(table)
    }

    /// The index with postings of several passes has the bytes of one pass and finds the pairs of a run.
    #[test]
    fn postings_of_several_passes_find_the_pairs_of_a_run() {
        let place = tempfile::tempdir().unwrap();
        let inputs = [place.path().join("in.jsonl")];
        let rows = (0..DOCUMENT_COUNT).map(|at| {
            let row = serde_json::json!({ "id": format!("d{at}"), "text": text(at) });
            format!("{row}\n")
        });
        fs::write(&inputs[0], rows.collect::<String>()).unwrap();
        let index_path = place.path().join("index");
        build(&index_path, &inputs);
        let manifest = directory::read_manifest(&index_path).unwrap();
        let [segment] = &manifest.segments[..] else {
            panic!("one segment: {manifest:?}");
        };
        let matching = segment.matching.as_ref().unwrap();
        let path = index_path.join(file_name(segment.file, POSTINGS_FILE));
        let one_pass = fs::read(&path).unwrap();
        assert!(matching.signatures.is_some() && one_pass.len() > 10_000 * 8);
        let records = DocumentRecords::open_files(&index_path, segment.file, true).unwrap();
        let threshold = Threshold::new(0.7).unwrap();
        let expected = batch_pairs(&place.path().join("pairs.tsv"), &inputs, threshold);
        assert!(expected.len() > DOCUMENT_COUNT / 4, "{}", expected.len());
        for most_sorted in [10_000, 1000, 37] {
            fs::remove_file(&path).unwrap();
            let sort = PostingSort {
                most_sorted,
                space: None,
            };
            let entry = records.write_postings(&index_path, segment.file, &sort);
            assert_eq!(entry.unwrap(), *matching, "{most_sorted}");
            assert!(fs::read(&path).unwrap() == one_pass, "{most_sorted}");
            let found = searched_pairs(&index_path, &inputs, threshold);
            assert_eq!(found, expected, "{most_sorted}");
        }
        verify_index(&index_path, 2, &SilentProgress).unwrap();
    }
}
