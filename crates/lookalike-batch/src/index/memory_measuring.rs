//! The measuring of the memory of a build: its rows are estimated from the first block, and [`BuildPlan`] is made from
//! them.

use std::path::PathBuf;

use lookalike_io::error::Result;
use lookalike_io::source::{IdField, InputSet, ParseScratch, RowSource};

use crate::index::{IndexReadOptions, RowContent};
use crate::memory::MemoryLimit;
use crate::memory::build_plan::{BuildPlan, ExpectedRows};

impl ExpectedRows {
    /// Estimates the rows of inputs. It reads the first block, unless the inputs can be read only once, are in an
    /// object store, or are so small that a limit cannot matter.
    ///
    /// # Errors
    /// If the inputs cannot be read.
    pub(super) fn from_inputs(
        paths: &[PathBuf],
        reading: &IndexReadOptions,
        are_added: bool,
        limit: Option<MemoryLimit>,
    ) -> Result<Self> {
        let mut expected = Self {
            are_documents: reading.content == RowContent::Documents,
            are_added,
            ..Self::default()
        };
        let source = RowSource::from(paths.to_vec());
        if reading.content == RowContent::Numbers || source.is_read_once() || source.has_objects() {
            return Ok(expected);
        }
        let options = reading.content.read_options(&reading.read, false)?;
        let inputs = InputSet::open_source(&source, &options)?;
        let Some(bytes) = inputs.total_bytes() else {
            return Ok(expected);
        };
        if limit.is_some_and(|limit| limit.is_far_above(bytes)) {
            return Ok(expected);
        }
        expected.documents = inputs.expected_rows()?;
        if reading.read.fields.id != IdField::RowNumber
            && let Some(block) = inputs.next_block()?
        {
            let is_line = matches!(reading.content, RowContent::Lines(_));
            inputs.parse_block(&block, &mut ParseScratch::default(), &mut |row| {
                if let Ok(row) = row {
                    expected.have_ids |= row.id.is_some() || is_line && row.text.contains('\t');
                }
                Ok(())
            })?;
        }
        Ok(expected)
    }
}

impl BuildPlan {
    /// Plans a build over inputs, or an addition to an index.
    ///
    /// # Errors
    /// If the inputs cannot be read.
    pub fn plan_build(
        inputs: &[PathBuf],
        reading: &IndexReadOptions,
        limit_bytes: Option<u64>,
        is_addition: bool,
    ) -> Result<Self> {
        let rows = ExpectedRows::from_inputs(inputs, reading, is_addition, None)?;
        Ok(Self::from_rows(&rows, reading.threads, limit_bytes))
    }
}
