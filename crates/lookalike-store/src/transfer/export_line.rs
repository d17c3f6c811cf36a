//! The lines of an export: each is a document with its verdict, as JSON. An import reads the document alone.

use lookalike::stream::Timestamp;
use serde::{Deserialize, Serialize};

use crate::document::{DocumentContent, NewDocument, StoredDocument, StoredVerdict};
use crate::error::{Error, Result};

/// A line of an export.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExportLine {
    id: String,
    /// Microseconds since 1970.
    time_us: i64,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    text: Option<String>,
    /// 32 hexadecimal digits.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    fingerprint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    meta: Option<String>,
    /// Sequence number.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    seq: Option<u64>,
    /// Id of the representative, if the document is a duplicate.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    of: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    similarity: Option<f64>,
}

impl From<StoredDocument> for ExportLine {
    fn from(stored: StoredDocument) -> Self {
        let evidence = match stored.answer.verdict {
            StoredVerdict::Kept => None,
            StoredVerdict::Duplicate(evidence) => Some(evidence),
        };
        let (text, fingerprint) = match stored.content {
            DocumentContent::Text(text) => (Some(text), None),
            DocumentContent::Fingerprint(code) => (None, Some(format!("{code:032x}"))),
        };
        Self {
            id: stored.answer.id,
            time_us: stored.answer.time.0,
            text,
            fingerprint,
            meta: stored.meta,
            seq: stored.answer.seq,
            similarity: evidence.as_ref().map(|evidence| evidence.similarity),
            of: evidence.map(|evidence| evidence.of),
        }
    }
}

impl ExportLine {
    pub(super) fn parse_line(line: &[u8]) -> Result<NewDocument> {
        let line: Self = serde_json::from_slice(line).map_err(|error| {
            // The caller reports the number of the line.
            let (message, column) = (error.to_string(), error.column());
            match message.strip_suffix(&format!(" at line 1 column {column}")) {
                Some(what) => Error::document_error(format!("{what} at column {column}")),
                None => Error::document_error(message),
            }
        })?;
        line.into_document()
    }

    fn into_document(self) -> Result<NewDocument> {
        let content = match (self.text, self.fingerprint) {
            (Some(text), None) => DocumentContent::Text(text),
            (None, Some(digits)) => {
                let code = u128::from_str_radix(&digits, 16);
                let wrong = |_| Error::document_error(format!("'{digits}' is not a fingerprint"));
                DocumentContent::Fingerprint(code.map_err(wrong)?)
            }
            _ => {
                return Err(Error::document_error(
                    "it must have either 'text' or 'fingerprint'",
                ));
            }
        };
        Ok(NewDocument {
            id: self.id,
            content,
            time: Some(Timestamp(self.time_us)),
            meta: self.meta,
        })
    }
}
