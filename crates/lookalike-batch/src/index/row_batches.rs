//! New rows of an index on their way to its files: threads record rows in batches, which are appended in order.
//!
//! Memory: ids, texts and records of a batch go to files when the batch is appended. Hashes of ids stay in memory until
//! the segment is written; fingerprints and grams stay there as far as the space of the build allows.

use std::path::Path;

use lookalike::Cpu;
use lookalike::hamming::FingerprintCode;
use lookalike::similarity::DocumentRecorder;
use lookalike::text::{AnalysisScratch, TextAnalysis};
use lookalike_io::error::{Error, Result, display_path};
use lookalike_io::source::{BadRow, IdField, InputRow, InputSet};

use crate::index::build::IndexChange;
use crate::index::grams::GramSelector;
use crate::index::ids::IdsWriter;
use crate::index::manifest::{CountsEntry, IndexManifest, file_name};
use crate::index::records::RecordsWriter;
use crate::index::row_fingerprints::{ComparedValue, IndexRow, RowFingerprinter};
use crate::index::row_numbers::RowNumbers;
use crate::index::segments::MOST_ROWS;
use crate::index::spill_buffer::FingerprintSpool;
use crate::index::spill_buffer::spill_failed;
use crate::index::texts::TextsWriter;
use crate::index::{RowContent, grams, ids, records, texts};

/// Bytes of a batch's fingerprints, ids, texts and records that are passed on before its block ends.
pub(super) const CHUNK_BYTES: usize = 8 << 20;

/// Makes the entries of rows: their fingerprints, records and grams, as the index stores them.
pub(super) struct RowRecorder {
    fingerprinter: RowFingerprinter,
    recorder: Option<DocumentRecorder>,
    grams: Option<GramSelector>,
    has_texts: bool,
}

/// The buffers of a thread that records rows.
#[derive(Default)]
pub(super) struct RecordScratch {
    analysis: AnalysisScratch,
    grams: Option<GramSelector>,
}

impl RowRecorder {
    /// Returns the recorder of an index for rows with this content.
    ///
    /// # Errors
    ///
    /// If the index has no recipe for documents, or if the rows are binary numbers.
    pub(super) fn new(
        manifest: &IndexManifest,
        content: &RowContent,
        id: &IdField,
    ) -> Result<Self> {
        let recipe = manifest.known_recipe();
        Ok(Self {
            fingerprinter: RowFingerprinter::new(content, recipe.as_ref(), manifest.bits, id)?,
            recorder: recipe
                .as_ref()
                .filter(|_| manifest.matching)
                .map(|recipe| DocumentRecorder::new(recipe, Cpu::detect_best())),
            grams: GramSelector::for_index(manifest),
            has_texts: manifest.texts,
        })
    }

    /// Appends a row with this number to a batch. The inner error is the reason why the row is not valid.
    pub(super) fn record_row<C: FingerprintCode>(
        &self,
        inputs: &InputSet,
        row: &InputRow<'_>,
        number: u64,
        scratch: &mut RecordScratch,
        batch: &mut RowBatch<C>,
    ) -> Result<Result<(), String>> {
        let records = &mut batch.records;
        let mut record = |analysis: &TextAnalysis<'_>| {
            if let Some(recorder) = &self.recorder {
                records.push_record(recorder, analysis);
            }
        };
        let outcome = self
            .fingerprinter
            .make_row(inputs, row, &mut scratch.analysis, &mut record);
        let item = match outcome {
            Err(reason) => return Ok(Err(reason)),
            Ok(None) => return Ok(Ok(())),
            Ok(Some(item)) => item,
        };
        batch.push_row(&item, number, self.has_texts)?;
        if let Some(grams) = &self.grams
            && item.value != ComparedValue::Nothing
        {
            let row = batch.codes.len() as u32 - 1;
            let selector = scratch.grams.get_or_insert_with(|| grams.clone());
            selector.select_grams(item.text, row, &mut batch.grams)?;
        }
        Ok(Ok(()))
    }
}

/// The rows read from a block.
pub(super) struct RowBatch<C> {
    codes: Vec<C>,
    /// Rows without a fingerprint, with the keys of their texts.
    unfingerprinted: Vec<(u128, u32)>,
    ids: ids::IdBatch,
    /// Hashes of the ids.
    hashes: Vec<u64>,
    /// Numbers of the rows with ids.
    numbers: Vec<u32>,
    texts: texts::TextBatch,
    records: records::StoredRecordBatch,
    /// Grams of the texts.
    grams: Vec<u64>,
    pub(super) bad: Vec<BadRow>,
    /// Numbers of the rows without ids.
    unnamed: RowNumbers,
    /// Number of the last row read, whether it was used or not.
    last: u64,
    /// Number of rows without a text and a fingerprint.
    empty_rows: u64,
    bytes: u64,
}

impl<C> Default for RowBatch<C> {
    fn default() -> Self {
        Self {
            codes: Vec::new(),
            unfingerprinted: Vec::new(),
            ids: ids::IdBatch::default(),
            hashes: Vec::new(),
            numbers: Vec::new(),
            texts: texts::TextBatch::default(),
            records: records::StoredRecordBatch::default(),
            grams: Vec::new(),
            bad: Vec::new(),
            unnamed: RowNumbers::default(),
            last: 0,
            empty_rows: 0,
            bytes: 0,
        }
    }
}

impl<C: FingerprintCode> RowBatch<C> {
    /// Adds a row, with its text if texts are stored.
    fn push_row(&mut self, item: &IndexRow<'_>, number: u64, texts: bool) -> Result<()> {
        let code = match item.value {
            ComparedValue::Nothing => {
                self.empty_rows += 1;
                return Ok(());
            }
            ComparedValue::Code(fingerprint) => fingerprint,
            ComparedValue::Text { key, code } => {
                self.unfingerprinted.push((key, self.codes.len() as u32));
                code
            }
        };
        self.codes.push(C::narrow_from(code));
        if let Some(id) = item.id {
            self.ids.push_id(id);
            self.hashes.push(lookalike::value_hash(id.as_bytes()));
            self.numbers.push(number.min(u32::MAX.into()) as u32);
        } else {
            self.unnamed.push_number(number);
        }
        if texts {
            self.texts.push_text(item.text)?;
        }
        Ok(())
    }

    /// Notes a row that was read, whether it is used or not.
    pub(super) fn count_row(&mut self, row: &InputRow<'_>) {
        self.bytes += u64::from(row.place.byte_length());
        self.last = row.number;
    }

    /// Adds a row that cannot be used.
    pub(super) fn push_bad_row(&mut self, bad: BadRow) {
        self.bytes += u64::from(bad.place.byte_length());
        self.last = bad.number;
        self.bad.push(bad);
    }

    /// Returns the number of rows, without empty ones.
    pub(super) fn row_count(&self) -> usize {
        self.codes.len()
    }

    /// Returns the number of rows that could be used, including empty ones.
    pub(super) fn used_rows(&self) -> u64 {
        self.codes.len() as u64 + self.empty_rows
    }

    /// Returns `true` if the batch should be passed on.
    pub(super) fn is_full(&self) -> bool {
        self.memory_bytes() >= CHUNK_BYTES
    }

    /// Closes the batch and returns it, and begins a new one.
    pub(super) fn take_closed(&mut self) -> Result<Self> {
        self.texts.close_frame()?;
        Ok(std::mem::take(self))
    }

    fn memory_bytes(&self) -> usize {
        let codes = self.codes.len() * size_of::<C>();
        let grams = 8 * self.grams.len();
        codes
            + grams
            + self.ids.byte_count()
            + self.texts.compressed_bytes()
            + self.records.byte_count()
    }
}

/// All new rows. Their ids, texts and records are already in files.
pub(super) struct NewRows<C> {
    /// The number in the names of their files.
    file: u64,
    pub(super) codes: FingerprintSpool<C>,
    pub(super) unfingerprinted: Vec<(u128, u32)>,
    pub(super) unnamed: RowNumbers,
    pub(super) last: u64,
    pub(super) hashes: Vec<u64>,
    pub(super) numbers: Vec<u32>,
    pub(super) ids: Option<IdsWriter>,
    pub(super) texts: Option<TextsWriter>,
    pub(super) records: Option<RecordsWriter>,
    pub(super) grams: FingerprintSpool<u64>,
    /// `true` if rows have ids, `false` if they have numbers; `None` if there are no rows yet.
    pub(super) named: Option<bool>,
    pub(super) empty_rows: u64,
    pub(super) bytes: u64,
    /// The counts of the rows, if a run adds them.
    pub(super) counts: Option<CountsEntry>,
}

impl<C: FingerprintCode> NewRows<C> {
    pub(super) fn without_rows(change: &IndexChange<'_>, manifest: &IndexManifest) -> Self {
        Self {
            file: 0,
            codes: change.space.new_spool(),
            unfingerprinted: Vec::new(),
            unnamed: RowNumbers::default(),
            last: 0,
            hashes: Vec::new(),
            numbers: Vec::new(),
            ids: None,
            texts: None,
            records: None,
            grams: change.space.new_spool(),
            named: manifest.ids,
            empty_rows: 0,
            bytes: 0,
            counts: None,
        }
    }

    pub(super) fn push_codes(&mut self, codes: &[C]) -> Result<()> {
        self.codes.push_codes(codes).map_err(spill_failed)?;
        if self.codes.len() as u64 > MOST_ROWS {
            Err(Error::limit_error(format!(
                "one run adds at most {MOST_ROWS} fingerprints: give the inputs in several runs of `lookalike \
                 index add`"
            )))
        } else {
            Ok(())
        }
    }

    /// Starts without rows, and creates the files of their texts and records.
    pub(super) fn create_files(
        change: &IndexChange<'_>,
        manifest: &IndexManifest,
        file: u64,
        recorder: &RowRecorder,
    ) -> Result<Self> {
        let path = change.index_path.join(file_name(file, "texts"));
        Ok(Self {
            texts: if manifest.texts {
                Some(TextsWriter::create_file(&path)?)
            } else {
                None
            },
            records: match &recorder.recorder {
                Some(recorder) => Some(RecordsWriter::create_files(
                    change.index_path,
                    file,
                    recorder.slot_count(),
                    change.space,
                )?),
                None => None,
            },
            file,
            ..Self::without_rows(change, manifest)
        })
    }

    /// Appends the next batch.
    ///
    /// # Errors
    ///
    /// If some rows have ids and others have none, or if a file cannot be written.
    pub(super) fn append_batch(
        &mut self,
        change: &IndexChange<'_>,
        mut batch: RowBatch<C>,
    ) -> Result<()> {
        check_ids(
            change.index_path,
            &mut self.named,
            &batch.unnamed,
            &batch.numbers,
        )?;
        if batch.ids.len() > 0 && self.ids.is_none() {
            let path = change.index_path.join(file_name(self.file, "ids"));
            self.ids = Some(IdsWriter::create_file(&path)?);
        }
        if let Some(ids) = &mut self.ids {
            ids.append_batch(&batch.ids)?;
        }
        if let Some(texts) = &mut self.texts {
            texts.append_batch(&batch.texts)?;
        }
        if let Some(records) = &mut self.records {
            records.append_batch(&batch.records)?;
        }
        let base = self.codes.len() as u32;
        grams::append_grams(&mut self.grams, &mut batch.grams, base)?;
        let unfingerprinted = batch
            .unfingerprinted
            .iter()
            .map(|&(key, row)| (key, base + row));
        self.unfingerprinted.extend(unfingerprinted);
        self.unnamed.append_numbers(&batch.unnamed);
        self.last = batch.last.max(self.last);
        self.push_codes(&batch.codes)?;
        self.hashes.append(&mut batch.hashes);
        self.numbers.append(&mut batch.numbers);
        self.empty_rows += batch.empty_rows;
        self.bytes += batch.bytes;
        let (named, unfingerprinted) = (self.hashes.len(), self.unfingerprinted.len());
        change
            .space
            .reserve_row_bytes(named as u64, unfingerprinted as u64)
    }

    /// Ends the fingerprints. No more rows follow.
    pub(super) fn finish_codes(&mut self) -> Result<()> {
        self.grams.finish_codes().map_err(spill_failed)?;
        self.codes.finish_codes().map_err(spill_failed)
    }
}

/// Verifies that either all rows of an index have ids or none has.
/// `unnamed` and `with_ids` are the numbers of new rows without and with ids.
pub(super) fn check_ids(
    index_path: &Path,
    named: &mut Option<bool>,
    unnamed: &RowNumbers,
    with_ids: &[u32],
) -> Result<()> {
    let index_path = display_path(index_path);
    let has_names = !with_ids.is_empty();
    if let Some(row) = unnamed.first_number()
        && (has_names || *named == Some(true))
    {
        return Err(Error::input_error(format!(
            "row {row} of the inputs has no id, but other rows of the index {index_path} have ids: \
             name the field with --id, or build the index with --id-row"
        )));
    }
    if has_names && *named == Some(false) {
        return Err(Error::input_error(format!(
            "row {} of the inputs has an id, but the rows of the index {index_path} are numbered: \
             number these rows too, with --id-row",
            with_ids[0]
        )));
    }
    if has_names || unnamed.first_number().is_some() {
        *named = Some(has_names);
    }
    Ok(())
}
