//! Document files among other inputs, and the texts of document files as outputs.

use std::fs;
use std::io::Write;

use lookalike_io::sink::ExtractedTextWriter;
use lookalike_io::source::{DocumentFileOptions, InputSet, ParseScratch, ReadOptions};
use tempfile::tempdir;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

/// Returns a `.docx` file with one paragraph.
fn docx(text: &str) -> Vec<u8> {
    let mut writer = ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default();
    writer.start_file("word/document.xml", options).unwrap();
    let xml =
        format!("<w:document xmlns:w=\"w\"><w:p><w:r><w:t>{text}</w:t></w:r></w:p></w:document>");
    writer.write_all(xml.as_bytes()).unwrap();
    writer.finish().unwrap().into_inner()
}

/// Returns the lines `number id text` or `number reason` of all rows, each of which is also read again.
fn read_rows(inputs: &InputSet) -> Vec<String> {
    let (mut scratch, mut again) = (ParseScratch::default(), ParseScratch::default());
    let mut seen = Vec::new();
    while let Some(block) = inputs.next_block().unwrap() {
        let visit = &mut |row: lookalike_io::source::RowResult<'_>| {
            seen.push(match row {
                Ok(row) => {
                    let reread = inputs.reread_document(row.place, &mut again)?;
                    assert_eq!(reread.text, row.text);
                    format!(
                        "{} {} {}",
                        row.number,
                        row.id.unwrap_or("-"),
                        row.text.trim()
                    )
                }
                Err(bad) => format!("{} {}", bad.number, bad.reason),
            });
            Ok(())
        };
        inputs.parse_block(&block, &mut scratch, visit).unwrap();
    }
    seen
}

#[test]
fn directories_are_read_in_order_with_bad_files_reported() {
    let directory = tempdir().unwrap();
    let root = directory.path();
    fs::create_dir_all(root.join("sub")).unwrap();
    let write = |name: &str, bytes: &[u8]| fs::write(root.join(name), bytes).unwrap();
    write("a.txt", b"plain");
    write("b.html", b"<p>html</p>");
    write("c.docx", &docx("word"));
    write("d.md", b"*mark*");
    write("e.doc", b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1");
    write("f.jsonl", b"{\"id\": \"row\", \"text\": \"of a file\"}\n");
    write("g.txt", b"\xFF");
    write("h.docx", b"PK");
    write("i.png", b"\x89PNG");
    write("j.htm", "x".repeat(101).as_bytes());
    write("k.htm", "x".repeat(100).as_bytes());
    write("sub/b.html", b"");
    write("sub/m.TXT", b"\xEF\xBB\xBFdeep");
    let options = ReadOptions {
        text_documents: true,
        document_files: Some(DocumentFileOptions::default()),
        max_row_bytes: 100,
        ..ReadOptions::default()
    };
    // A block of one byte has one file.
    for block_bytes in [1, 1 << 20] {
        let options = ReadOptions {
            block_bytes,
            max_row_bytes: 4096,
            ..options.clone()
        };
        let inputs = InputSet::open_paths(&[root.to_path_buf()], &options).unwrap();
        assert_eq!(inputs.skipped_files(), [root.join("i.png")]);
        assert!(inputs.mixes_files_and_rows());
        let seen = read_rows(&inputs);
        let name = |name: &str| format!("{}/{name}", root.display());
        let expected = [
            format!("1 {} plain", name("a.txt")),
            format!("2 {} html", name("b.html")),
            format!("3 {} word", name("c.docx")),
            format!("4 {} mark", name("d.md")),
            "5 it is a word processor document of another format".to_owned(),
            "6 row of a file".to_owned(),
            "7 the file is not valid UTF-8 at its byte 1".to_owned(),
            "8 it is damaged or not a .docx file".to_owned(),
            format!("9 {} x", name("j.htm")),
            format!("10 {} x", name("k.htm")),
            format!("11 {} ", name("sub/b.html")),
            format!("12 {} deep", name("sub/m.TXT")),
        ];
        for (line, expected) in seen.iter().zip(&expected) {
            assert!(line.starts_with(expected), "{line}, not {expected}");
        }
        assert_eq!(seen.len(), expected.len());
    }
    // The limit of a file is inclusive, and only the files beyond it are bad.
    let files = ["j.htm", "k.htm"].map(|name| root.join(name));
    let seen = read_rows(&InputSet::open_paths(&files, &options).unwrap());
    assert!(
        seen[0].ends_with("is longer than the limit of 100 bytes"),
        "{seen:?}"
    );
    assert!(seen[1].ends_with("xx"), "{seen:?}");
}

#[test]
fn extracted_texts_do_not_collide_and_appear_together() {
    let directory = tempdir().unwrap();
    let root = directory.path().join("texts");
    let mut writer = ExtractedTextWriter::new(&root);
    let mut names = Vec::new();
    for id in [
        "a/b.docx",
        "a/b.docx",
        "A/B.docx",
        "../../b.pdf",
        "/b.pdf",
        "..",
    ] {
        let path = writer.write_text(id, id).unwrap();
        names.push(path.strip_prefix(&root).unwrap().display().to_string());
        assert!(!path.exists());
    }
    assert_eq!(
        names,
        [
            "a/b.docx.txt",
            "a/b.docx-2.txt",
            "A/B.docx-3.txt",
            "b.pdf.txt",
            "b.pdf-2.txt",
            "document.txt"
        ]
    );
    assert_eq!(writer.prepare_texts().commit_output().unwrap().rows, 6);
    // The same texts may be written again; others are not replaced.
    let mut writer = ExtractedTextWriter::new(&root);
    writer.write_text("a/b.docx", "a/b.docx").unwrap();
    assert_eq!(writer.text_count(), 0);
    let error = writer.write_text("b.pdf", "other").unwrap_err().to_string();
    assert!(error.contains("b.pdf.txt exists already"), "{error}");
    assert_eq!(
        fs::read_to_string(root.join("a/b.docx-2.txt")).unwrap(),
        "a/b.docx"
    );
    let mut writer = ExtractedTextWriter::new(&directory.path().join("other"));
    writer.write_text("x", "x").unwrap();
    drop(writer);
    assert!(!directory.path().join("other").exists());
}
