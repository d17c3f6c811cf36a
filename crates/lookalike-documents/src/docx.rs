//! The text of a `.docx` file: paragraphs, tables, text boxes, footnotes and endnotes.
//!
//! Tabs and breaks are white space. Inserted changes are text; deleted and moved-away ones are not, nor are
//! instructions of fields, and text boxes are read once. The parts that are read expand to at most the limit
//! of a document together. Entities that a file defines itself are refused, so none can grow.

use std::io::{Cursor, Read};

use quick_xml::Reader;
use quick_xml::events::{BytesRef, Event};
use zip::ZipArchive;
use zip::result::ZipError;

/// The parts of the archive that hold text, in reading order. The first one must exist.
const TEXT_PARTS: [&str; 3] = [
    "word/document.xml",
    "word/footnotes.xml",
    "word/endnotes.xml",
];

/// Elements whose content is not text of the document: properties, deletions, the origin of moved text,
/// and second copies of text boxes for older programs.
const SKIPPED_ELEMENTS: [&[u8]; 7] = [
    b"pPr",
    b"rPr",
    b"tblPr",
    b"del",
    b"moveFrom",
    b"instrText",
    b"Fallback",
];

/// Returns the text of a `.docx` file, or the reason why there is none.
pub(crate) fn read_docx(bytes: &[u8], max_bytes: usize) -> Result<String, String> {
    let mut archive = ZipArchive::new(Cursor::new(bytes))
        .map_err(|cause| format!("it is damaged or not a .docx file: {cause}"))?;
    let mut text = String::new();
    let mut left = max_bytes;
    for (index, part) in TEXT_PARTS.iter().enumerate() {
        match read_part(&mut archive, part, left, max_bytes)? {
            Some(xml) => {
                left -= xml.len();
                append_part(&xml, &mut text).map_err(|cause| format!("{part}: {cause}"))?;
            }
            None if index == 0 => {
                return Err(format!(
                    "it is an archive without {part}, so it is not a .docx file"
                ));
            }
            None => {}
        }
    }
    Ok(text)
}

fn read_part(
    archive: &mut ZipArchive<Cursor<&[u8]>>,
    part: &str,
    left: usize,
    max_bytes: usize,
) -> Result<Option<String>, String> {
    let file = match archive.by_name(part) {
        Ok(file) => file,
        Err(ZipError::FileNotFound) => return Ok(None),
        Err(cause) => return Err(format!("{part} cannot be read: {cause}")),
    };
    let mut xml = Vec::new();
    file.take(left as u64 + 1)
        .read_to_end(&mut xml)
        .map_err(|cause| format!("{part} is damaged: {cause}"))?;
    if xml.len() > left {
        return Err(format!(
            "its text parts expand to more than {max_bytes} bytes, the limit of a document"
        ));
    }
    String::from_utf8(xml)
        .map(Some)
        .map_err(|_| format!("{part} is not valid UTF-8"))
}

fn append_part(xml: &str, text: &mut String) -> Result<(), String> {
    let mut reader = Reader::from_str(xml);
    let mut part = PartText {
        text,
        skipped: 0,
        is_text: false,
    };
    loop {
        let event = reader
            .read_event()
            .map_err(|cause| format!("the XML is damaged: {cause}"))?;
        match event {
            Event::Start(tag) => part.begin_element(tag.local_name().as_ref()),
            Event::End(tag) => part.end_element(tag.local_name().as_ref()),
            Event::Empty(tag) => part.append_empty(tag.local_name().as_ref()),
            Event::Text(piece) => {
                let piece = piece.decode().map_err(|cause| cause.to_string())?;
                part.append_text(&piece);
            }
            Event::CData(piece) => {
                let piece = piece.decode().map_err(|cause| cause.to_string())?;
                part.append_text(&piece);
            }
            Event::GeneralRef(reference) => {
                let character = resolve_reference(&reference)?;
                part.append_text(character.encode_utf8(&mut [0; 4]));
            }
            Event::Eof => return Ok(()),
            _ => {}
        }
    }
}

fn resolve_reference(reference: &BytesRef<'_>) -> Result<char, String> {
    if let Some(character) = reference
        .resolve_char_ref()
        .map_err(|cause| format!("the XML is damaged: {cause}"))?
    {
        return Ok(character);
    }
    match &**reference {
        b"amp" => Ok('&'),
        b"lt" => Ok('<'),
        b"gt" => Ok('>'),
        b"quot" => Ok('"'),
        b"apos" => Ok('\''),
        name => Err(format!(
            "the XML has the unknown entity `&{};`",
            String::from_utf8_lossy(name)
        )),
    }
}

/// The text of a part so far.
struct PartText<'a> {
    text: &'a mut String,
    /// Number of open elements from the skipped one inwards.
    skipped: usize,
    is_text: bool,
}

impl PartText<'_> {
    fn begin_element(&mut self, name: &[u8]) {
        if self.skipped > 0 || SKIPPED_ELEMENTS.contains(&name) {
            self.skipped += 1;
            return;
        }
        match name {
            b"t" => self.is_text = true,
            // A text box stands inside a paragraph, whose text before it ends here.
            b"p" => self.end_line(),
            _ => self.append_empty(name),
        }
    }

    fn end_element(&mut self, name: &[u8]) {
        if self.skipped > 0 {
            self.skipped -= 1;
            return;
        }
        match name {
            b"t" => self.is_text = false,
            b"p" => self.end_line(),
            _ => {}
        }
    }

    fn append_empty(&mut self, name: &[u8]) {
        if self.skipped > 0 {
            return;
        }
        match name {
            b"tab" | b"ptab" => self.text.push('\t'),
            b"br" | b"cr" => self.text.push('\n'),
            b"noBreakHyphen" => self.text.push('\u{2011}'),
            _ => {}
        }
    }

    fn append_text(&mut self, piece: &str) {
        if self.is_text && self.skipped == 0 {
            self.text.push_str(piece);
        }
    }

    fn end_line(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push('\n');
        }
    }
}
