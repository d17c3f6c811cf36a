//! The step of a run that has learned its forms.
//!
//! | part of the content | bytes |
//! |---|---|
//! | number of documents of the pass | 8 |
//! | length of the table of forms, in TOML | 8 |
//! | the table | any number |
//! | documents that would be removed by their similarity alone | 4 each |

use std::path::Path;

use lookalike::DocId;
use lookalike::byte_reader::ByteReader;
use lookalike::forms::FormTable;
use lookalike_io::error::{Result, display_path};

use crate::run::execution::work_directory::manifest::{StepEntry, StepKind, damaged_file};
use crate::run::execution::work_directory::step_file::{self, NewStep, StepContent};
use crate::sealed_manifest::FileChecksum;

/// Documents that would be removed by their similarity alone, as the pass found them that learned the forms.
#[derive(Clone, Debug)]
pub(in crate::run) struct RemovedWithoutForms {
    pub(in crate::run) removed: Vec<DocId>,
    /// Number of documents of the pass.
    pub(in crate::run) documents: u64,
}

/// The forms that a run has learned.
#[derive(Clone, Debug)]
pub(in crate::run) struct LearnedStep {
    pub(in crate::run) table: FormTable,
    pub(in crate::run) removed: RemovedWithoutForms,
}

impl LearnedStep {
    /// Writes the step of a run, and returns its entry.
    pub(super) fn write_step(&self, path: &Path, run: FileChecksum) -> Result<StepEntry> {
        let table = self.table.to_toml();
        let mut content = self.removed.documents.to_le_bytes().to_vec();
        content.extend((table.len() as u64).to_le_bytes());
        content.extend(table.as_bytes());
        let removed = self.removed.removed.iter();
        content.extend(removed.flat_map(|document| document.0.to_le_bytes()));
        let step = NewStep {
            kind: StepKind::Forms,
            range: 0..0,
            documents: self.removed.documents,
            input_bytes: 0,
            content,
        };
        step_file::write_step(path, run, &step)
    }

    /// Reads the step of a run.
    ///
    /// # Errors
    /// If the file cannot be read or is damaged.
    pub(super) fn read_step(path: &Path, run: FileChecksum, entry: &StepEntry) -> Result<Self> {
        let content = step_file::read_step(path, run, entry)?;
        Self::parse_content(&content, path)
            .unwrap_or_else(|| Err(damaged_file(path, "its content is too short")))
    }

    /// Returns `None` if the content is too short.
    fn parse_content(content: &StepContent, path: &Path) -> Option<Result<Self>> {
        let mut reader = ByteReader::new(content.as_bytes());
        let documents = reader.read_u64()?;
        let length = usize::try_from(reader.read_u64()?).ok()?;
        let table = std::str::from_utf8(reader.read_bytes(length)?).ok()?;
        let mut removed = Vec::new();
        while !reader.is_at_end() {
            removed.push(DocId(reader.read_u32()?));
        }
        let removed = RemovedWithoutForms { removed, documents };
        let table = FormTable::parse_table(&display_path(path), table);
        Some(
            table
                .map_err(Into::into)
                .map(|table| Self { table, removed }),
        )
    }
}
