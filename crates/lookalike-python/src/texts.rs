//! A column of texts in any Arrow string type.

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, LargeStringArray, RecordBatchReader, StringArray, StringViewArray,
};
use arrow_schema::DataType;
use lookalike_io::source::{first_malformed, to_large_strings};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;

use crate::error::InputError;
use crate::table::PyTableStream;

/// Texts of a call: a stream whose first column holds them, or a list of strings, which needs no table.
#[derive(FromPyObject)]
pub(crate) enum TextInput {
    Strings(Vec<Option<PyBackedStr>>),
    Stream(PyTableStream),
}

enum StringBatch {
    Strings(Vec<Option<PyBackedStr>>),
    Small(StringArray),
    Large(LargeStringArray),
    View(StringViewArray),
}

impl StringBatch {
    fn new(array: &ArrayRef) -> PyResult<Self> {
        match array.data_type() {
            DataType::Utf8 => Ok(Self::Small(array.as_string::<i32>().clone())),
            DataType::LargeUtf8 => Ok(Self::Large(array.as_string::<i64>().clone())),
            DataType::Utf8View => Ok(Self::View(array.as_string_view().clone())),
            DataType::Dictionary(..) | DataType::Null => {
                let strings = to_large_strings(array);
                let strings = strings.map_err(|error| InputError::new_err(error.to_string()))?;
                Ok(Self::Large(strings))
            }
            other => Err(InputError::new_err(format!(
                "the texts are of the type {other}, not strings"
            ))),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Strings(texts) => texts.len(),
            Self::Small(array) => array.len(),
            Self::Large(array) => array.len(),
            Self::View(array) => array.len(),
        }
    }

    fn text_at(&self, row: usize) -> Option<&str> {
        match self {
            Self::Strings(texts) => texts[row].as_deref(),
            Self::Small(array) => array.is_valid(row).then(|| array.value(row)),
            Self::Large(array) => array.is_valid(row).then(|| array.value(row)),
            Self::View(array) => array.is_valid(row).then(|| array.value(row)),
        }
    }
}

/// The texts of a table's first column.
pub(crate) struct TextColumn {
    parts: Vec<StringBatch>,
    /// Number of texts before each part, and in total at the end.
    starts: Vec<usize>,
}

impl TextColumn {
    /// Returns the texts of a call.
    pub(crate) fn from_input(input: TextInput) -> PyResult<Self> {
        match input {
            TextInput::Stream(stream) => Self::new(stream),
            TextInput::Strings(texts) => Ok(Self {
                starts: vec![0, texts.len()],
                parts: vec![StringBatch::Strings(texts)],
            }),
        }
    }

    pub(crate) fn new(stream: PyTableStream) -> PyResult<Self> {
        let reader = stream.0;
        if reader.schema().fields().is_empty() {
            return Err(InputError::new_err("the texts have no column"));
        }
        let (mut parts, mut starts) = (Vec::new(), vec![0]);
        for batch in reader {
            let batch = batch
                .map_err(|error| InputError::new_err(format!("cannot read the texts: {error}")))?;
            let before = starts[parts.len()];
            if let Some(bad) = first_malformed(batch.column(0)) {
                return Err(InputError::new_err(format!(
                    "cannot read the texts: texts[{}] is not UTF-8",
                    before + bad
                )));
            }
            let strings = StringBatch::new(batch.column(0))?;
            starts.push(before + strings.len());
            parts.push(strings);
        }
        Ok(Self { parts, starts })
    }

    pub(crate) fn len(&self) -> usize {
        self.starts[self.parts.len()]
    }

    /// Returns a text; `None` if it is null.
    pub(crate) fn text_at(&self, index: usize) -> Option<&str> {
        let part = self.starts.partition_point(|&start| start <= index) - 1;
        self.parts[part].text_at(index - self.starts[part])
    }
}
