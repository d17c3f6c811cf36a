//! Bad rows: writing them to an output, and refusing inputs of which no row can be used.

use std::sync::{Mutex, PoisonError};

use lookalike_io::error::{Error, ErrorKind, Result};
use lookalike_io::sink::{ByteWriter, OutputTarget, StagedOutput, check_output, commit_all};
use lookalike_io::source::{BadRow, InputFormat, InputRow, InputSet, ReadOptions, RowSource};

use crate::run::progress::ProgressListener;

/// Counts bad rows and writes them if there is an output for them.
pub(crate) struct RejectedRows {
    state: Mutex<RejectedState>,
}

struct RejectedState {
    count: u64,
    output: Option<ByteWriter>,
    row: Vec<u8>,
}

impl RejectedRows {
    pub(crate) fn create_output(output: Option<&OutputTarget>) -> Result<Self> {
        let output = output.map(ByteWriter::create_output).transpose()?;
        Ok(Self {
            state: Mutex::new(RejectedState {
                count: 0,
                output,
                row: Vec::new(),
            }),
        })
    }

    /// Adds rows. They are written unchanged, except for rows of Parquet and Arrow, which have no bytes of
    /// their own: these become lines of JSON with the file, the row number in it, the reason and all columns.
    pub(crate) fn push_rows(&self, inputs: &InputSet, rows: &[BadRow]) -> Result<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.count += rows.len() as u64;
        let is_packed = |bad: &BadRow| inputs.input_of(bad.place).input_format().is_columnar();
        for rows in rows.chunk_by(|a, b| is_packed(a) && is_packed(b) && a.file == b.file) {
            if state.output.is_none() {
                return Ok(());
            }
            if is_packed(&rows[0]) {
                inputs.visit_whole_rows(rows, &mut |bad, columns| {
                    let (file, reason) = (quote_json(&bad.file), quote_json(&bad.reason));
                    let row = bad.line;
                    let line = format!(
                        "{{\"file\":{file},\"row\":{row},\"reason\":{reason},\"columns\":{columns}}}\n"
                    );
                    state.write_line(line.as_bytes())
                })?;
                continue;
            }
            for bad in rows {
                state.push_row(inputs, bad)?;
            }
        }
        Ok(())
    }

    /// Puts the output in place and returns the number of rows.
    pub(crate) fn finish_output(self) -> Result<u64> {
        let (count, prepared) = self.prepare_output()?;
        commit_all(prepared)?;
        Ok(count)
    }

    /// Completes the output, if there is one, and returns it with the number of rows.
    pub(crate) fn prepare_output(self) -> Result<(u64, Option<StagedOutput>)> {
        let state = self
            .state
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        let prepare = |output: ByteWriter| StagedOutput::even_if_unread(output.prepare_output());
        let prepared = state.output.map(prepare).transpose()?;
        Ok((state.count, prepared))
    }
}

fn quote_json(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

impl RejectedState {
    /// Writes a row that has bytes of its own.
    fn push_row(&mut self, inputs: &InputSet, bad: &BadRow) -> Result<()> {
        let mut row = std::mem::take(&mut self.row);
        row.clear();
        if bad.place.byte_length() > 0 {
            inputs.read_raw_row(bad.place, &mut row)?;
        } else {
            let fields =
                serde_json::json!({ "file": bad.file, "row": bad.line, "reason": bad.reason });
            row.extend_from_slice(fields.to_string().as_bytes());
        }
        if row.last() != Some(&b'\n') {
            row.push(b'\n');
        }
        let written = self.write_line(&row);
        self.row = row;
        written
    }

    /// Writes a line. A closed pipe ends the output without an error, because its reader has all it
    /// wanted.
    fn write_line(&mut self, line: &[u8]) -> Result<()> {
        let Some(output) = &mut self.output else {
            return Ok(());
        };
        match output.write_bytes(line) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => self.output = None,
            written => written?,
        }
        Ok(())
    }
}

/// Counts of usable and bad rows, evaluated after all rows have been read.
#[derive(Debug, Default)]
pub(crate) struct RowTally {
    used: u64,
    bad: u64,
    /// The first bad row, with its place and the reason.
    first: Option<String>,
}

impl RowTally {
    /// Adds usable rows and bad rows to the counts.
    pub(crate) fn add_rows(&mut self, used: u64, bad: &[BadRow]) {
        self.used += used;
        self.bad += bad.len() as u64;
        if let (None, Some(bad)) = (&self.first, bad.first()) {
            self.first = Some(format!("{}:{}: {}", bad.file, bad.line, bad.reason));
        }
    }

    /// Refuses inputs without a usable row, because they would replace a good result with an empty one.
    ///
    /// # Errors
    /// If the inputs have rows but none of them can be used, or none has a wanted field. Inputs without
    /// rows are accepted.
    pub(crate) fn refuse_useless(&self, inputs: &InputSet) -> Result<()> {
        let Some(first) = self.first.as_ref().filter(|_| self.used == 0) else {
            return Ok(());
        };
        inputs.refuse_absent_fields()?;
        // The result of a table in memory is a return value and replaces no output.
        if inputs
            .input_files()
            .iter()
            .any(|file| file.input_format() == InputFormat::Memory)
        {
            return Ok(());
        }
        Err(Error::input_error(format!(
            "none of the {} rows can be used, so every output stays as it was; the first: {first}",
            self.bad
        )))
    }
}

/// Reports the bad rows of a block in order. In a strict run only the first one is reported, and it is
/// an error.
pub(crate) fn tell_bad_rows(
    rows: &[BadRow],
    progress: &dyn ProgressListener,
    strict: bool,
    push: impl FnOnce(&[BadRow]) -> Result<()>,
) -> Result<()> {
    let reported = if strict { rows.get(..1) } else { Some(rows) };
    let reported = reported.unwrap_or_default();
    if reported.is_empty() {
        return Ok(());
    }
    reported.iter().for_each(|bad| progress.report_bad_row(bad));
    push(reported)?;
    if strict {
        let bad = &reported[0];
        let message = format!("{}:{}: {}", bad.file, bad.line, bad.reason);
        return Err(Error::new(ErrorKind::BadRow, message));
    }
    Ok(())
}

/// The inputs of a run, its output of bad rows, and the counts of its rows.
pub(crate) struct OpenedRows<'a> {
    pub(crate) inputs: InputSet,
    rejected: RejectedRows,
    pub(crate) progress: &'a dyn ProgressListener,
    /// `true` if the first bad row is an error.
    strict: bool,
    /// Counts of the rows read so far.
    tally: Mutex<RowTally>,
}

impl<'a> OpenedRows<'a> {
    pub(crate) fn new(
        inputs: InputSet,
        rejected: RejectedRows,
        strict: bool,
        progress: &'a dyn ProgressListener,
    ) -> Self {
        Self {
            inputs,
            rejected,
            progress,
            strict,
            tally: Mutex::default(),
        }
    }

    /// Opens the inputs of a run with one output and another for bad rows, which is created.
    ///
    /// # Errors
    /// If an input cannot be opened, or is also an output, or if the output cannot be created.
    pub(crate) fn open_source(
        source: &RowSource,
        options: &ReadOptions,
        output: &OutputTarget,
        rejected: Option<&OutputTarget>,
        strict: bool,
        progress: &'a dyn ProgressListener,
    ) -> Result<Self> {
        let options = ReadOptions {
            again: rejected.is_some(),
            ..options.clone()
        };
        let inputs = InputSet::open_source(source, &options)?;
        for output in [Some(output), rejected].into_iter().flatten() {
            check_output(output, &inputs)?;
        }
        let rejected = RejectedRows::create_output(rejected)?;
        Ok(Self::new(inputs, rejected, strict, progress))
    }

    /// Returns the number of bad rows so far.
    pub(crate) fn rejected_count(&self) -> u64 {
        self.lock_tally().bad
    }

    /// Returns the output of bad rows.
    pub(crate) fn into_rejected(self) -> RejectedRows {
        self.rejected
    }

    /// Reports the bad rows of a block with this many usable rows.
    pub(crate) fn report_rows(&self, rows: &[BadRow], used: u64) -> Result<()> {
        self.lock_tally().add_rows(used, rows);
        tell_bad_rows(rows, self.progress, self.strict, |rows| {
            self.rejected.push_rows(&self.inputs, rows)
        })
    }

    /// Refuses inputs in which no row has a wanted field or no row can be used. Call it after all rows
    /// have been read and before outputs are put in place.
    pub(crate) fn refuse_useless(&self) -> Result<()> {
        self.inputs.refuse_absent_fields()?;
        self.lock_tally().refuse_useless(&self.inputs)
    }

    fn lock_tally(&self) -> std::sync::MutexGuard<'_, RowTally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts of the rows of a chunk of a block, and its bad rows.
#[derive(Default)]
pub(crate) struct CountedRows {
    pub(crate) bad: Vec<BadRow>,
    pub(crate) documents: u64,
    pub(crate) bytes: u64,
}

impl CountedRows {
    /// Counts a row, and returns it if it is usable.
    pub(crate) fn count_row<'r>(
        &mut self,
        row: std::result::Result<InputRow<'r>, BadRow>,
    ) -> Option<InputRow<'r>> {
        match row {
            Ok(row) => {
                self.documents += 1;
                self.bytes += u64::from(row.place.byte_length());
                Some(row)
            }
            Err(bad) => {
                self.bytes += u64::from(bad.place.byte_length());
                self.bad.push(bad);
                None
            }
        }
    }
}
