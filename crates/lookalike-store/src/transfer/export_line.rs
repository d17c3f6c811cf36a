//! The lines of an export, as JSON: decisions, and documents with their verdicts. An import reads no verdicts.

use lookalike::content_hash::ContentHash;
use lookalike::dedup::{DecidedText, PairDecision};
use lookalike::stream::Timestamp;
use serde::{Deserialize, Serialize};

use crate::decision::{DecisionRequest, DecisionSubject, NamedText, StoredDecision};
use crate::document::{DocumentContent, NewDocument, StoredDocument, StoredVerdict};
use crate::error::{Error, Result};

/// A decision as a line of an export. Exports begin with them, so that an import judges documents by the corrected
/// relation.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DecisionLine {
    /// `same` or `different`.
    decision: String,
    a: String,
    a_key: String,
    b: String,
    b_key: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    a_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    b_id: Option<String>,
}

impl From<&StoredDecision> for DecisionLine {
    fn from(stored: &StoredDecision) -> Self {
        let [a, b] = &stored.texts;
        Self {
            decision: label_of(stored.decision).to_owned(),
            a: a.text.content.to_string(),
            a_key: format!("{:032x}", a.text.text_key),
            b: b.text.content.to_string(),
            b_key: format!("{:032x}", b.text.text_key),
            a_id: a.id.clone(),
            b_id: b.id.clone(),
        }
    }
}

impl DecisionLine {
    fn into_request(self) -> Result<DecisionRequest> {
        let decision = [PairDecision::Same, PairDecision::Different]
            .into_iter()
            .find(|&decision| label_of(decision) == self.decision);
        let decision = decision.ok_or_else(|| {
            let what = format!("'{}' is not same or different", self.decision);
            Error::document_error(what)
        })?;
        let texts = [
            read_named_text(&self.a, &self.a_key, self.a_id)?,
            read_named_text(&self.b, &self.b_key, self.b_id)?,
        ];
        Ok(DecisionRequest {
            subject: DecisionSubject::Texts(texts),
            decision: Some(decision),
        })
    }
}

fn read_named_text(content: &str, key: &str, id: Option<String>) -> Result<NamedText> {
    let wrong = || Error::document_error(format!("'{content}' with '{key}' is not a text"));
    Ok(NamedText {
        text: DecidedText {
            content: ContentHash::parse_hash(content).ok_or_else(wrong)?,
            text_key: u128::from_str_radix(key, 16).map_err(|_| wrong())?,
        },
        id,
    })
}

fn label_of(decision: PairDecision) -> &'static str {
    match decision {
        PairDecision::Same => "same",
        PairDecision::Different => "different",
    }
}

/// Content of a line of an export.
pub(super) enum ImportedLine {
    Document(NewDocument),
    Decision(DecisionRequest),
}

/// A line of an export with a document.
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

fn parse_json<'a, T: Deserialize<'a>>(line: &'a [u8]) -> Result<T> {
    serde_json::from_slice(line).map_err(|error| {
        // The caller reports the number of the line.
        let (message, column) = (error.to_string(), error.column());
        match message.strip_suffix(&format!(" at line 1 column {column}")) {
            Some(what) => Error::document_error(format!("{what} at column {column}")),
            None => Error::document_error(message),
        }
    })
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
    pub(super) fn parse_line(line: &[u8]) -> Result<ImportedLine> {
        // A decision has no id, so a look at the first field is enough to tell them apart.
        if line.trim_ascii_start().starts_with(b"{\"decision\"") {
            let line: DecisionLine = parse_json(line)?;
            return line.into_request().map(ImportedLine::Decision);
        }
        let line: Self = parse_json(line)?;
        line.into_document().map(ImportedLine::Document)
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
