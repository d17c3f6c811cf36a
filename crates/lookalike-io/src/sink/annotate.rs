//! Rows with appended fields; otherwise byte for byte.

use encoding_rs::UTF_8;

use super::table::{put_delimited, put_json_string};
use super::{AddedFields, AddedValue};
use crate::error::{Error, Result};
use crate::source::{FieldProbe, InputFile, InputFormat, InputSet, trim_line_end};

/// Annotates the rows of one thread.
pub(super) struct RowAnnotator<'a> {
    inputs: &'a InputSet,
    fields: &'a AddedFields<'a>,
    probe: FieldProbe,
    decoded: String,
    added: String,
}

impl<'a> RowAnnotator<'a> {
    pub(super) fn new(inputs: &'a InputSet, fields: &'a AddedFields<'a>) -> Self {
        Self {
            inputs,
            fields,
            probe: FieldProbe::new(&fields.names().collect::<Vec<_>>()),
            decoded: String::new(),
            added: String::new(),
        }
    }

    /// Appends the annotated row to `out`.
    pub(super) fn annotate_row(
        &mut self,
        file: &InputFile,
        number: u64,
        index: usize,
        row: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let values = (self.fields.values)(index)?;
        let content = trim_line_end(row);
        self.added.clear();
        let (kept, closing) = match file.input_format() {
            InputFormat::Csv { delimiter, quoting } => {
                append_cells(&values, delimiter, quoting, &mut self.added);
                (content, &b""[..])
            }
            InputFormat::Jsonl | InputFormat::Json => {
                let kept = self.open_object(file, number, content)?;
                let is_empty = kept.ends_with(b"{");
                put_members(self.fields, &values, is_empty, &mut self.added);
                if self.inputs.text_encoding() != UTF_8 {
                    self.added = escape_non_ascii(&self.added);
                }
                (kept, &b"}"[..])
            }
            _ => {
                // `check_kept` refuses these, and columns have writers of their own.
                return Err(Error::usage_error(format!(
                    "no fields can be added to the rows of {}",
                    file.display_name()
                )));
            }
        };
        out.extend_from_slice(kept);
        put_encoded(self.inputs, file, &self.added, out)?;
        out.extend_from_slice(closing);
        out.extend_from_slice(&row[content.len()..]);
        Ok(())
    }

    /// Returns a JSON row without its closing brace and the blanks around it.
    fn open_object<'b>(
        &mut self,
        file: &InputFile,
        number: u64,
        content: &'b [u8],
    ) -> Result<&'b [u8]> {
        let refuse = |reason: String| {
            Error::input_error(format!(
                "row {number}, in {}: {reason}",
                file.display_name()
            ))
        };
        let text = self
            .inputs
            .decode_row(content, &mut self.decoded)
            .map_err(refuse)?;
        if let Some(field) = self.probe.find_field(text).map_err(refuse)? {
            return Err(refuse(format!("the field `{field}` exists already")));
        }
        let open = content.trim_ascii_end().strip_suffix(b"}");
        let open = open.ok_or_else(|| refuse("the row is not a JSON object".to_owned()))?;
        Ok(open.trim_ascii_end())
    }
}

/// Returns the header of annotated CSV.
pub(super) fn annotated_header(
    inputs: &InputSet,
    file: &InputFile,
    header: &[u8],
    fields: &AddedFields<'_>,
) -> Result<Vec<u8>> {
    let taken = |field: &&str| {
        file.column_names()
            .is_some_and(|names| names.iter().any(|name| name == *field))
    };
    if let Some(field) = fields.names().find(taken) {
        return Err(Error::input_error(format!(
            "{} already has a column `{field}`",
            file.display_name()
        )));
    }
    let InputFormat::Csv { delimiter, .. } = file.input_format() else {
        return Ok(header.to_vec());
    };
    let content = trim_line_end(header);
    let mut out = content.to_vec();
    let delimiter = char::from(delimiter);
    let added: String = fields
        .names()
        .flat_map(|field| [delimiter.to_string(), field.to_owned()])
        .collect();
    put_encoded(inputs, file, &added, &mut out)?;
    out.extend_from_slice(&header[content.len()..]);
    Ok(out)
}

fn append_cells(values: &[AddedValue], delimiter: u8, quoting: bool, out: &mut String) {
    for value in values {
        out.push(char::from(delimiter));
        match value {
            AddedValue::Text(text) | AddedValue::Json(text) => {
                put_delimited(text, delimiter, quoting, out);
            }
            AddedValue::Texts(texts) => {
                put_delimited(&texts_to_json(texts), delimiter, quoting, out);
            }
            AddedValue::Number(number) => out.push_str(&number.to_string()),
            AddedValue::Integer(number) => out.push_str(&number.to_string()),
            AddedValue::Null => {}
        }
    }
}

pub(super) fn put_members(
    fields: &AddedFields<'_>,
    values: &[AddedValue],
    is_empty: bool,
    out: &mut String,
) {
    for (at, (name, value)) in fields.names().zip(values).enumerate() {
        if at > 0 || !is_empty {
            out.push(',');
        }
        put_json_string(name, out);
        out.push(':');
        match value {
            AddedValue::Text(text) => put_json_string(text, out),
            AddedValue::Json(json) => out.push_str(json),
            AddedValue::Texts(texts) => out.push_str(&texts_to_json(texts)),
            AddedValue::Integer(number) => out.push_str(&number.to_string()),
            AddedValue::Number(number) if number.is_finite() => out.push_str(&number.to_string()),
            AddedValue::Number(_) | AddedValue::Null => out.push_str("null"),
        }
    }
}

/// Returns a list of strings as JSON.
pub(super) fn texts_to_json(texts: &[String]) -> String {
    let mut json = "[".to_owned();
    for (at, text) in texts.iter().enumerate() {
        if at > 0 {
            json.push(',');
        }
        put_json_string(text, &mut json);
    }
    json.push(']');
    json
}

/// Replaces every non-ASCII character of JSON with an escape.
fn escape_non_ascii(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for character in json.chars() {
        if character.is_ascii() {
            escaped.push(character);
            continue;
        }
        for unit in character.encode_utf16(&mut [0; 2]) {
            escaped.push_str(&format!("\\u{unit:04x}"));
        }
    }
    escaped
}

/// Appends text in the encoding of the inputs.
pub(super) fn put_encoded(
    inputs: &InputSet,
    file: &InputFile,
    text: &str,
    out: &mut Vec<u8>,
) -> Result<()> {
    let encoding = inputs.text_encoding();
    let (bytes, _, unmappable) = encoding.encode(text);
    if unmappable {
        return Err(Error::output_error(format!(
            "`{text}` cannot be written in {}, the encoding of {}",
            encoding.name(),
            file.display_name()
        )));
    }
    out.extend_from_slice(&bytes);
    Ok(())
}
