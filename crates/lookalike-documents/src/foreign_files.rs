//! Recognises files that cannot be read by their extension or their first bytes, and the encoding of malformed text, for
//! better messages.
//!
//! Ordinary text is never refused for the way it begins, because each signature contains control
//! characters.

use std::path::Path;

use encoding_rs::Encoding;

/// Extensions of unsupported files, with a phrase that says what such a file is and what to do with it.
const FOREIGN_EXTENSIONS: [(&[&str], &str); 9] = [
    (
        &["docx", "doc", "odt", "rtf"],
        "a word processor document, which cannot be read: save its text as .txt first, and give --document-per-file",
    ),
    (
        &["pdf", "epub", "djvu", "ps"],
        "a document with pages, which cannot be read: extract its text first, for example with \
         `pdftotext`",
    ),
    (
        &["xlsx", "xls", "ods"],
        "a spreadsheet, which cannot be read: save it as .csv first",
    ),
    (
        &["lz4", "lzma", "br", "snappy", "sz"],
        "compressed in a way that cannot be read: unpack it first, or compress it as .gz or .zst",
    ),
    (
        &["zip", "7z", "rar", "tar", "tgz"],
        "an archive, which cannot be read: unpack it first and give the directory",
    ),
    (
        &["avro", "orc"],
        "a table that cannot be read: write it as .parquet first",
    ),
    (
        &["html", "htm", "xml"],
        "marked-up text, which cannot be read: extract its text as .txt or .jsonl first",
    ),
    (
        &["db", "sqlite", "sqlite3"],
        "a database, which cannot be read: export the table as .csv first",
    ),
    (
        &["toml", "yaml", "yml"],
        "a file of settings, which cannot be read as documents",
    ),
];

/// First bytes of unsupported files, with the matching extension in [`FOREIGN_EXTENSIONS`].
const FOREIGN_SIGNATURES: [(&[u8], &str); 5] = [
    (b"PK\x03\x04", "zip"),
    (b"7z\xBC\xAF\x27\x1C", "7z"),
    (b"ARROW1\0\0", "arrow"),
    (b"\x04\x22\x4D\x18", "lz4"),
    (b"SQLite format 3\0", "db"),
];

/// Describes a file of an unsupported format by its extension.
pub fn foreign_extension(path: &Path) -> Option<&'static str> {
    describe_extension(&path.extension()?.to_str()?.to_ascii_lowercase())
}

/// Describes an input of an unsupported format by its first bytes.
pub fn foreign_content(start: &[u8]) -> Option<&'static str> {
    let found = FOREIGN_SIGNATURES
        .iter()
        .find(|(bytes, _)| start.starts_with(bytes));
    match found? {
        (_, "zip") => Some(
            "a ZIP archive, as .zip, .docx, .xlsx and .odt are, which cannot be read: unpack it, \
             or save its text as .txt first",
        ),
        (_, "arrow") => Some("an Arrow file: name it .arrow, or give --format arrow"),
        (_, extension) => describe_extension(extension),
    }
}

fn describe_extension(extension: &str) -> Option<&'static str> {
    let found = FOREIGN_EXTENSIONS
        .iter()
        .find(|(all, _)| all.contains(&extension));
    found.map(|(_, what)| *what)
}

/// Returns the encoding that a malformed row is probably in, as `--encoding` names it, or `None` if the
/// row says too little.
///
/// It tells GB18030 from Big5 by the bytes of two-byte characters. Most GB18030 text uses only the
/// range of GB 2312, where the second byte is at least A1. In Big5 more than a third of the second
/// bytes are smaller, and the first bytes of its common characters are A4 to C6.
///
/// Text in Latin letters with accents is told from both by the bytes beside: there a byte beyond ASCII mostly stands alone
/// between letters, whereas Chinese characters come in runs of pairs.
pub(crate) fn likely_encoding(bytes: &[u8]) -> Option<&'static str> {
    if is_western(bytes) {
        return Some("windows-1252");
    }
    let (mut pairs, mut high, mut common) = (0u32, 0u32, 0u32);
    let mut at = 0;
    while let Some(&lead) = bytes.get(at) {
        at += 1;
        if lead < 0x80 {
            continue;
        }
        let trail = bytes.get(at).copied().unwrap_or(0);
        at += 1;
        pairs += 1;
        high += u32::from(trail >= 0xA1);
        common += u32::from((0xA4..=0xC6).contains(&lead));
    }
    let decodes = |encoding: &'static Encoding| {
        encoding
            .decode_without_bom_handling_and_without_replacement(bytes)
            .is_some()
    };
    if pairs < 2 {
        return None;
    }
    let is_gb2312 = high == pairs;
    if !is_gb2312 && 4 * common >= 3 * pairs && decodes(encoding_rs::BIG5) {
        return Some("big5");
    }
    decodes(encoding_rs::GB18030).then_some("gb18030")
}

/// Returns `true` if bytes look like text in Latin letters in windows-1252: three of four bytes beyond ASCII are accented
/// letters or typographic signs that stand alone or beside such a sign, and all are few beside the others.
fn is_western(bytes: &[u8]) -> bool {
    let (mut beyond, mut western) = (0, 0);
    for run in bytes.split(u8::is_ascii) {
        beyond += run.len();
        let is_alone = run.len() == 1 || run.len() == 2 && run.iter().copied().any(is_typographic);
        let is_known = |&byte: &u8| is_western_letter(byte) || is_typographic(byte);
        if is_alone && run.iter().all(is_known) {
            western += run.len();
        }
    }
    beyond > 0 && 4 * western >= 3 * beyond && 4 * beyond <= bytes.len()
}

/// Returns `true` for accented letters of windows-1252.
fn is_western_letter(byte: u8) -> bool {
    match byte {
        0xD7 | 0xF7 => false,
        0xC0.. => true,
        _ => matches!(byte, 0x8A | 0x8C | 0x8E | 0x9A | 0x9C | 0x9E | 0x9F),
    }
}

/// Returns `true` for quotation marks, dashes, the ellipsis and the like of windows-1252.
fn is_typographic(byte: u8) -> bool {
    matches!(
        byte,
        0x80 | 0x82 | 0x84 | 0x85 | 0x91
            ..=0x97 | 0xA0 | 0xA1 | 0xA3 | 0xA7 | 0xA9 | 0xAB | 0xB0 | 0xBB | 0xBF
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A class of German essays, old files of Windows among them, is not read as Chinese.
    #[test]
    fn accented_letters_are_not_chinese_characters() {
        let western = |text: &str| encoding_rs::WINDOWS_1252.encode(text).0.into_owned();
        for text in [
            "Der Leuchtturmwärter beschließt, dass er hättest. Schreibe mindestens zweihundert Wörter.",
            "Les élèves ont été priés d’écrire à propos de « la mer »…",
            "Il café costò 5 €",
            "Señor Muñoz, ¿dónde está el niño?",
        ] {
            assert_eq!(
                likely_encoding(&western(text)),
                Some("windows-1252"),
                "{text}"
            );
        }
        for text in [
            "The word 重复 is Chinese, and so is 文本.",
            "后来他们在发廊里头谈了很久",
            "id,标题\n1,通报\n",
        ] {
            let bytes = encoding_rs::GB18030.encode(text).0;
            assert_eq!(likely_encoding(&bytes), Some("gb18030"), "{text}");
        }
        // Half of the second bytes of Big5 are ASCII.
        let traditional = encoding_rs::BIG5
            .encode("後來他們在髮廊裏頭談了很久，功課一一交上")
            .0;
        assert_eq!(likely_encoding(&traditional), Some("big5"));
    }

    #[test]
    fn encodings_are_distinguished_from_rows() {
        let simplified = "{\"id\": 1, \"text\": \"后来他们在发廊里头谈了很久\"}";
        let traditional = "{\"id\": 1, \"text\": \"後來他們在髮廊裏頭談了很久\"}";
        let encoded = |encoding: &'static Encoding, text| encoding.encode(text).0.into_owned();
        let cases = [
            (encoded(encoding_rs::GB18030, simplified), Some("gb18030")),
            (encoded(encoding_rs::BIG5, traditional), Some("big5")),
            (b"caf\xE9".to_vec(), Some("windows-1252")),
            (b"a\xFF\xFF\xFF\xFFb".to_vec(), None),
        ];
        for (bytes, expected) in cases {
            assert_eq!(likely_encoding(&bytes), expected, "{bytes:?}");
        }
    }

    #[test]
    fn unsupported_files_are_named() {
        let named = |name: &str| foreign_extension(Path::new(name)).unwrap_or("");
        assert!(named("a.docx").contains("word processor"));
        assert!(named("a.jsonl.LZ4").contains("compressed in a way"));
        assert_eq!(named("a.jsonl.xz"), "");
        assert_eq!(named("a.arrow"), "");
        assert_eq!(named("a.bin"), "");
        assert!(
            foreign_content(b"PK\x03\x04rest").is_some_and(|message| message.contains(".docx"))
        );
        assert!(
            foreign_content(b"\x04\x22\x4D\x18rest")
                .is_some_and(|message| message.contains("compressed"))
        );
        assert!(
            foreign_content(b"ARROW1\0\0rest").is_some_and(|message| message.contains("--format"))
        );
        assert_eq!(foreign_content(b"\xFD7zXZ\0rest"), None);
        assert_eq!(foreign_content(b"PK is text"), None);
    }
}
