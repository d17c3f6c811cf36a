//! The inputs of a run, opened: the documents to decide about, and the known documents of `--against`.

use lookalike_io::error::Result;
use lookalike_io::source::{InputSet, ReadOptions};

use crate::run::reading::documents::ExtraFields;
use crate::run::settings::{RunInputs, RunSettings};

/// The opened inputs of a run: the documents of `--against`, and the documents to decide about.
pub(in crate::run) struct OpenInputs {
    pub(in crate::run) against: Option<InputSet>,
    pub(in crate::run) documents: InputSet,
    /// The extra fields that are read from the rows of each.
    pub(in crate::run) against_fields: ExtraFields,
    pub(in crate::run) document_fields: ExtraFields,
}

impl OpenInputs {
    pub(in crate::run) fn new(paths: &RunInputs, settings: &RunSettings) -> Result<Self> {
        let options = |extra: &ExtraFields| {
            let mut options: ReadOptions = settings.read.clone();
            options.fields.extra = extra.names.clone();
            options
        };
        let against_fields = ExtraFields::for_against(settings);
        let against = if paths.against.is_empty() {
            None
        } else {
            Some(InputSet::open_source(
                &paths.against,
                &options(&against_fields),
            )?)
        };
        let document_fields = ExtraFields::new(settings);
        Ok(Self {
            against,
            documents: InputSet::open_source(&paths.documents, &options(&document_fields))?,
            against_fields,
            document_fields,
        })
    }

    /// Returns the expected number of rows in all inputs, if it can be determined before they are read.
    pub(in crate::run) fn expected_rows(&self) -> Result<Option<f64>> {
        let against = self
            .against
            .as_ref()
            .map_or(Ok(Some(0.0)), InputSet::expected_rows)?;
        let rows = self.documents.expected_rows()?;
        Ok(rows.zip(against).map(|(rows, against)| rows + against))
    }

    /// Returns the size on disk of all inputs in bytes, if it is known.
    pub(in crate::run) fn size_on_disk(&self) -> Option<u64> {
        let against = self
            .against
            .as_ref()
            .map_or(Some(0), InputSet::total_bytes)?;
        Some(self.documents.total_bytes()? + against)
    }

    /// Returns the bytes of memory that large record batches of Arrow files take while they are read.
    pub(in crate::run) fn decoding_bytes(&self) -> Result<u64> {
        let against = self
            .against
            .as_ref()
            .map_or(Ok(0), InputSet::decoding_bytes)?;
        Ok(self.documents.decoding_bytes()?.max(against))
    }
}
