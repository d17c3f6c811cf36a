//! The rows that could not be used, byte for byte.

use std::sync::{Mutex, PoisonError};

use super::progress::Progress;
use crate::error::{Error, ErrorKind, Result};
use crate::sink::{ByteWriter, Output, Prepared, commit_all};
use crate::source::{BadRow, Inputs};

/// Counts bad rows, and writes them if that is wanted.
pub(crate) struct Rejected {
    state: Mutex<State>,
}

struct State {
    count: u64,
    output: Option<ByteWriter>,
    row: Vec<u8>,
}

impl Rejected {
    pub(crate) fn create(output: Option<&Output>) -> Result<Self> {
        let output = output.map(ByteWriter::create).transpose()?;
        Ok(Self {
            state: Mutex::new(State {
                count: 0,
                output,
                row: Vec::new(),
            }),
        })
    }

    /// Takes a row: its bytes as they are, or, where it has none of its own (Parquet), a line of
    /// JSON that says which row it is and what is wrong.
    pub(crate) fn push(&self, inputs: &Inputs, bad: &BadRow) -> Result<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let State { count, output, row } = &mut *state;
        *count += 1;
        let Some(output) = output else { return Ok(()) };
        row.clear();
        if bad.place.length() > 0 {
            inputs.raw(bad.place, row)?;
        } else {
            let fields =
                serde_json::json!({ "file": bad.file, "row": bad.line, "reason": bad.reason });
            row.extend_from_slice(fields.to_string().as_bytes());
        }
        if row.last() != Some(&b'\n') {
            row.push(b'\n');
        }
        match output.put(row) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => state.output = None,
            put => put?,
        }
        Ok(())
    }

    /// Puts the output in place; returns how many rows there were.
    pub(crate) fn finish(self) -> Result<u64> {
        let (count, prepared) = self.prepare()?;
        commit_all(prepared)?;
        Ok(count)
    }

    /// Completes the output, if there is one; returns how many rows there were as well.
    pub(crate) fn prepare(self) -> Result<(u64, Option<Prepared>)> {
        let state = self
            .state
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        let prepare = |output: ByteWriter| Prepared::even_if_unread(output.prepare());
        let prepared = state.output.map(prepare).transpose()?;
        Ok((state.count, prepared))
    }
}

/// Tells of bad rows, in order.
pub(crate) struct BadRows<'a> {
    pub(crate) inputs: &'a Inputs,
    pub(crate) rejected: &'a Rejected,
    pub(crate) progress: &'a dyn Progress,
    /// The first one is an error.
    pub(crate) strict: bool,
}

impl BadRows<'_> {
    pub(crate) fn tell(&self, rows: &[BadRow]) -> Result<()> {
        for bad in rows {
            self.progress.bad_row(bad);
            self.rejected.push(self.inputs, bad)?;
            if self.strict {
                let message = format!("{}:{}: {}", bad.file, bad.line, bad.reason);
                return Err(Error::new(ErrorKind::BadRow, message));
            }
        }
        Ok(())
    }
}
