//! Document files (`.txt`, `.md`, `.html`, `.docx`, `.pdf`) as inputs of `passages` and `compare`.

use std::fmt::Write as _;
use std::io::Write as _;

use serde_json::{Value, json};

use crate::reporting::read_report;
use crate::service::{Reply, Service};
use crate::support::{Numbers, Place, jsonl};

/// A passage of 20 words with a combining mark, an emoji, a quote and an ampersand.
const PASSAGE: &str = "nobody on the e\u{301}lan island misses the 🏝️ ferry & its bell, because the next one \
                       leaves at noon \"sharp\" and waits";

/// Returns words that occur nowhere else.
fn filler(numbers: &mut Numbers, words: usize) -> String {
    let word = |_| format!("x{}", numbers.below(1 << 40));
    (0..words).map(word).collect::<Vec<_>>().join(" ")
}

/// Builds a `.docx` file of paragraphs.
fn docx(paragraphs: &[&str]) -> Vec<u8> {
    let mut body = String::new();
    for paragraph in paragraphs {
        let escaped = paragraph.replace('&', "&amp;").replace('<', "&lt;");
        let _ = write!(body, "<w:p><w:r><w:t>{escaped}</w:t></w:r></w:p>");
    }
    let xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><w:document xmlns:w=\"w\"><w:body>{body}</w:body></w:document>"
    );
    let mut writer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    writer
        .start_file(
            "word/document.xml",
            zip::write::SimpleFileOptions::default(),
        )
        .unwrap();
    writer.write_all(xml.as_bytes()).unwrap();
    writer.finish().unwrap().into_inner()
}

/// Sends a file to the service for its text. `name` is percent-encoded.
fn extract(service: &Service, name: &str, file: &[u8]) -> Reply {
    let kind = [("Content-Type", "application/octet-stream")];
    let path = format!("/v1/extract?name={name}");
    service.connect().request("POST", &path, &kind, file)
}

/// Builds a PDF file from its objects, numbered from 1.
fn pdf(objects: &[Vec<u8>]) -> Vec<u8> {
    let mut file = b"%PDF-1.5\n".to_vec();
    let mut places = Vec::new();
    for (index, object) in objects.iter().enumerate() {
        places.push(file.len());
        file.extend(format!("{} 0 obj\n", index + 1).bytes());
        file.extend(object);
        file.extend(b"\nendobj\n");
    }
    let table = file.len();
    let size = objects.len() + 1;
    file.extend(format!("xref\n0 {size}\n0000000000 65535 f \n").bytes());
    for place in places {
        file.extend(format!("{place:010} 00000 n \n").bytes());
    }
    file.extend(
        format!("trailer <</Size {size} /Root 1 0 R>>\nstartxref\n{table}\n%%EOF\n").bytes(),
    );
    file
}

/// Returns an object with content; `entries` are more entries of its dictionary.
fn stream(entries: &str, content: &[u8]) -> Vec<u8> {
    let head = format!("<<{entries} /Length {}>>\nstream\n", content.len());
    [head.as_bytes(), content, b"\nendstream"].concat()
}

/// Builds a PDF file with one page that has this content, one font `F1`, and more objects from number 6 on. `entries` are
/// more entries of the dictionary of the page's resources.
fn pdf_page(content: &str, entries: &str, more: &[Vec<u8>]) -> Vec<u8> {
    let page = format!(
        "<</Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 4 0 R \
         /Resources <</Font <</F1 5 0 R>> {entries}>>>>"
    );
    let mut objects = vec![
        b"<</Type /Catalog /Pages 2 0 R>>".to_vec(),
        b"<</Type /Pages /Kids [3 0 R] /Count 1>>".to_vec(),
        page.into_bytes(),
        stream("", content.as_bytes()),
        b"<</Type /Font /Subtype /Type1 /BaseFont /Helvetica>>".to_vec(),
    ];
    objects.extend_from_slice(more);
    pdf(&objects)
}

/// Builds a PDF file that shows lines of ASCII.
fn text_pdf(lines: &[&str]) -> Vec<u8> {
    let shown = lines
        .iter()
        .map(|line| format!("({line}) Tj 0 -20 Td "))
        .collect::<String>();
    pdf_page(&format!("BT /F1 12 Tf 50 700 Td {shown}ET"), "", &[])
}

/// Returns the rows of a table in JSONL.
fn found(place: &Place, table: &str) -> Vec<Value> {
    let rows = place.read(table);
    rows.lines()
        .map(|row| serde_json::from_str(row).unwrap())
        .collect()
}

/// Returns the part of a file between two positions of a row, counted in characters or bytes of the whole file.
fn part(place: &Place, file: &str, row: &Value, side: &str, unit: &str) -> String {
    let at = |end: &str| row[format!("{side}{end}")].as_u64().unwrap() as usize;
    let (start, end) = (at("start"), at("end"));
    let bytes = place.bytes(file);
    match unit {
        "bytes" => String::from_utf8(bytes[start..end].to_vec()).unwrap(),
        _ => {
            let text = String::from_utf8(bytes).unwrap();
            text.chars().skip(start).take(end - start).collect()
        }
    }
}

/// Writes a folder with a document of every kind, each with [`PASSAGE`], and an essay in HTML that has it too.
/// Returns for each file how the passage stands in it.
fn write_mixed_folder(place: &Place) -> Vec<(&'static str, String)> {
    let mut numbers = Numbers::new(3);
    let mut words = || filler(&mut numbers, 30);
    let html_passage = "<b>nobody</b> on the&nbsp;e&#x301;lan <i>isl</i>and misses the &#x1F3DD;&#xFE0F; ferry &amp; its \
                        bell, because the next one<!-- no -->\r\nleaves at noon &quot;sharp&quot; and wa<u>it</u>s";
    let markdown = PASSAGE
        .replace("misses", "**misses**")
        .replace('&', "&amp;")
        .replace("the next", "[the next](http://x.y/z)");
    place.write(
        "essay.html",
        format!("\u{feff}<html><head><title>{PASSAGE}</title></head>\r\n<body><p>{}\r\n<p>é👩‍👩‍👧 {html_passage}</p>{}", words(), words()),
    );
    place.write(
        "in/a.html",
        format!("<p>{} {html_passage}. {}", words(), words()),
    );
    place.write(
        "in/b.md",
        format!(
            "\u{feff}# {}\r\n\r\n* {markdown}\r\n* {}\r\n",
            words(),
            words()
        ),
    );
    place.write(
        "in/c.docx",
        docx(&[&words(), &format!("ü {PASSAGE}"), &words()]),
    );
    place.write(
        "in/sub/a.html",
        format!("{} {PASSAGE} {}", words(), words()),
    );
    place.write(
        "in/plain.txt",
        format!("\u{feff}{}\r\n{PASSAGE}\r\n{}", words(), words()),
    );
    let row = format!("{} {PASSAGE}", words());
    place.write("in/rows.jsonl", jsonl([("r1", "nothing"), ("r2", &*row)]));
    let begun =
        |passage: &str, end: &str| passage[..passage.find(end).unwrap() + end.len()].to_owned();
    vec![
        (
            "in/a.html",
            begun(&html_passage.replace("<b>nobody", "nobody"), "s"),
        ),
        ("in/b.md", markdown),
        ("in/c.docx", PASSAGE.to_owned()),
        ("in/plain.txt", PASSAGE.to_owned()),
        ("r2", PASSAGE.to_owned()),
        ("in/sub/a.html", PASSAGE.to_owned()),
    ]
    .into_iter()
    .map(|(file, passage)| match file {
        "in/a.html" => (file, html_passage.replace("<b>nobody", "nobody")),
        _ => (file, passage),
    })
    .collect()
}

#[test]
fn folder_of_all_kinds_is_compared() {
    let place = Place::new();
    let expected = write_mixed_folder(&place);
    for unit in ["characters", "bytes"] {
        place.ok(&format!(
            "passages essay.html --against in --extracted texts --offsets {unit} -o out.jsonl"
        ));
        let rows = found(&place, "out.jsonl");
        let sources: Vec<_> = rows
            .iter()
            .map(|row| row["source"].as_str().unwrap())
            .collect();
        let wanted: Vec<_> = expected.iter().map(|(source, _)| *source).collect();
        assert_eq!(sources, wanted);
        for (row, (source, passage)) in rows.iter().zip(&expected) {
            assert_eq!(row["document"], "essay.html");
            assert_eq!(
                (row["length"].as_u64(), &row["kind"]),
                (Some(20), &json!("verbatim")),
                "{row}"
            );
            let own = part(&place, "essay.html", row, "", unit);
            assert_eq!(own, expected[0].1, "{source}");
            let file = match *source {
                "r2" => continue,
                "in/c.docx" => "texts/in/c.docx.txt",
                file => file,
            };
            assert_eq!(
                &part(&place, file, row, "source_", unit),
                passage,
                "{source}"
            );
        }
    }
    assert_eq!(place.names(), ["essay.html", "in", "out.jsonl", "texts"]);
    assert!(!place.has("texts/in/a.html.txt"));
    let shown = place.ok("passages essay.html --against in --show");
    for (number, line) in [
        (
            "1. essay.html, line 3, from in/a.html, line 1: 20 words, verbatim",
            1,
        ),
        (
            "2. essay.html, line 3, from in/b.md, line 3: 20 words, verbatim",
            3,
        ),
        (
            "3. essay.html, line 3, from in/c.docx, line 2: 20 words, verbatim",
            2,
        ),
        (
            "4. essay.html, line 3, from in/plain.txt, line 2: 20 words, verbatim",
            2,
        ),
    ] {
        assert!(shown.text().contains(number), "{line}: {}", shown.text());
    }
    // The text is shown without markup, and the title is no text.
    assert!(
        shown
            .text()
            .contains("bell, because the next one leaves at noon \"sharp\"")
    );
    let told = place.summary("passages essay.html --against in -o out.tsv");
    assert_eq!(told["longest"][1]["source_line"], 3);
    assert_eq!(
        (
            told["documents"].as_u64(),
            told["against"].as_u64(),
            told["rejected"].as_u64()
        ),
        (Some(1), Some(7), Some(0))
    );
}

#[test]
fn results_do_not_depend_on_threads_or_compression() {
    let place = Place::new();
    write_mixed_folder(&place);
    let table = |options: &str| {
        place.ok(&format!("passages in essay.html {options} -o out.tsv"));
        place.read("out.tsv")
    };
    let expected = table("--threads 1");
    assert_eq!(expected.lines().count(), 1 + 6 * 7 / 2);
    assert_eq!(table("--threads 4"), expected);
    for (name, packed) in [
        ("in/a.html", crate::support::gzip(&place.bytes("in/a.html"))),
        ("in/c.docx", crate::support::zstd(&place.bytes("in/c.docx"))),
    ] {
        std::fs::remove_file(place.path(name)).unwrap();
        let extension = if name.ends_with("html") { "gz" } else { "zst" };
        place.write(&format!("{name}.{extension}"), packed);
    }
    let named = expected
        .replace("in/a.html", "in/a.html.gz")
        .replace("in/c.docx", "in/c.docx.zst");
    assert_eq!(table(""), named);
    // As rows of text, a file of lines is not one document, and other kinds are no inputs.
    let lines = place.summary("passages in --document-per-line -o out.tsv");
    assert_eq!(lines["documents"].as_u64(), Some(4 + 3 + 2));
    place.refused(
        "passages in --time published -o out.tsv",
        &["published", "without fields"],
    );
}

#[test]
fn files_that_cannot_be_read_are_reported_and_counted() {
    let place = Place::new();
    write_mixed_folder(&place);
    let whole = place.bytes("in/c.docx");
    place.write("in/bad/broken.docx", &whole[..whole.len() / 2]);
    place.write("in/bad/bytes.html", b"<p>caf\xFF\xFF\xFF</p>");
    place.write("in/bad/old.doc", b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1rest");
    place.write(
        "in/bad/secret.docx",
        b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1rest",
    );
    place.write("in/bad/wide.txt", b"a\0b\0c\0d\0");
    place.write(
        "in/bad/torn.md.gz",
        &crate::support::gzip(PASSAGE.as_bytes())[..40],
    );
    place.write("in/bad/long.md", "x ".repeat(5000));
    place.write("in/bad/photo.png", b"\x89PNG");
    let line = "passages essay.html --against in --max-row 8Ki -o out.tsv";
    let ran = place.run(&format!("{line} --rejected bad.jsonl"));
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    for reason in [
        "in/bad/broken.docx:1: it is damaged or not a .docx file",
        "in/bad/bytes.html:1: the file is not valid UTF-8 at its byte 7",
        "in/bad/long.md:1: the file is longer than the limit of 8192 bytes",
        "in/bad/old.doc:1: it is a word processor document of another format",
        "in/bad/secret.docx:1: it is encrypted or an old .doc file",
        "in/bad/torn.md.gz:1: cannot decompress in/bad/torn.md.gz",
        "in/bad/wide.txt:1: it looks like UTF-16 without a byte order mark",
    ] {
        assert!(ran.err.contains(reason), "no {reason} in {}", ran.err);
    }
    let said = ran.err.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("unreadable files 7 left out"), "{said}");
    assert!(said.contains("1 file in directories is skipped"), "{said}");
    assert!(!said.contains("bad rows 7"), "{said}");
    assert_eq!(place.table("out.tsv").len(), 6);
    let rejected = found(&place, "bad.jsonl");
    assert_eq!(rejected.len(), 7);
    assert_eq!(rejected[0]["file"], "in/bad/broken.docx");
    assert!(rejected[1]["reason"].as_str().unwrap().contains("byte 7"));
    let told = place.summary(line);
    assert_eq!(
        (told["rejected"].as_u64(), told["unreadable_files"].as_u64()),
        (Some(7), Some(7))
    );
    place.write("out.tsv", "before");
    place.refused(
        &format!("{line} --strict"),
        &["in/bad/broken.docx:1", "damaged"],
    );
    assert_eq!(place.read("out.tsv"), "before");
    // Without one file that can be read there is nothing to compare.
    place.refused(
        "passages essay.html --against in/bad/broken.docx in/bad/bytes.html -o out.tsv",
        &["none of the 2 rows can be used", "broken.docx"],
    );
    place.refused(
        "passages in/bad/old.doc -o out.tsv",
        &["old.doc", "save it as"],
    );
    place.refused(
        "compare essay.html in/bad/broken.docx",
        &["broken.docx:1", "damaged"],
    );
    place.refused(
        "passages essay.html --against in/none.pdf",
        &["in/none.pdf"],
    );
}

#[cfg(unix)]
#[test]
fn file_without_permission_is_one_bad_file() {
    use std::os::unix::fs::PermissionsExt;

    let place = Place::new();
    write_mixed_folder(&place);
    let closed = std::fs::Permissions::from_mode(0o000);
    std::fs::set_permissions(place.path("in/a.html"), closed).unwrap();
    if std::fs::read(place.path("in/a.html")).is_ok() {
        return; // The superuser may read every file.
    }
    let ran = place.run("passages essay.html --against in -o out.tsv");
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    assert!(ran.err.contains("cannot open in/a.html"), "{}", ran.err);
    assert_eq!(place.table("out.tsv").len(), 5);
}

#[test]
fn extracted_texts_replace_nothing() {
    let place = Place::new();
    write_mixed_folder(&place);
    let line = "passages essay.html --against in -o out.tsv --extracted";
    let said = place.ok(&format!("{line} texts")).err;
    assert!(said.contains("1 new in texts"), "{said}");
    let told = place.summary(&format!("{line} texts"));
    assert_eq!(told["extracted_texts"].as_u64(), Some(0));
    place.write("texts/in/c.docx.txt", "mine");
    place.write("out.tsv", "before");
    place.refused(
        &format!("{line} texts"),
        &["texts/in/c.docx.txt exists already"],
    );
    assert_eq!(
        (place.read("texts/in/c.docx.txt"), place.read("out.tsv")),
        ("mine".to_owned(), "before".to_owned())
    );
    place.refused(&format!("{line} in/texts"), &["in/texts", "next run"]);
    place.refused(&format!("{line} in"), &["next run"]);
    place.refused(&format!("{line} essay.html"), &["essay.html"]);
    // A run that is refused leaves no directory behind.
    place.refused(
        "passages essay.html --against in --extracted new -o none/out.tsv",
        &["none"],
    );
    assert!(!place.has("new"));
}

#[test]
fn equal_names_of_different_directories_are_different_ids() {
    let place = Place::new();
    for (directory, text) in [
        ("one", PASSAGE),
        ("two", "Something else"),
        ("three/deep", PASSAGE),
    ] {
        place.write(&format!("{directory}/essay.html"), text);
    }
    place.write(
        "one/rows.jsonl",
        format!("{{\"text\": \"{}\"}}\n", "y ".repeat(30)),
    );
    place.write("two/rows.csv", "text\nnothing here\n");
    let told = place.summary("passages one two three -o out.tsv");
    assert_eq!(told["repeated_ids"].as_u64(), Some(0));
    assert_eq!(
        place.table("out.tsv")[0][..2],
        ["three/deep/essay.html", "one/essay.html"]
    );
    let told = place.summary("passages one one -o out.tsv");
    assert_eq!(told["repeated_ids"].as_u64(), Some(1));
    place.refused("passages one one -o out.tsv --strict", &["one/essay.html"]);
}

/// The service extracts the texts that the command compares.
#[test]
fn service_extracts_texts_of_files() {
    let place = Place::new();
    let service = Service::start(&place, "");
    let word = docx(&["My own words.", PASSAGE]);
    place.write("in/essay.docx", &word);
    place.ok("passages in -o out.jsonl --extracted texts");
    let html = format!("<h1>Title</h1><script>x</script><p>{PASSAGE}</p>");
    for (name, kind, file, text) in [
        (
            "essay.docx",
            "docx",
            word,
            place.read("texts/in/essay.docx.txt"),
        ),
        (
            "page.html",
            "html",
            html.into_bytes(),
            format!("Title\n{PASSAGE}\n"),
        ),
        (
            "notes.md",
            "markdown",
            b"# Notes\n\n*fish*".into(),
            "Notes\nfish\n".to_owned(),
        ),
        ("plain.txt", "text", PASSAGE.into(), PASSAGE.to_owned()),
        (
            "%E6%96%87%E7%AB%A0+1.MD",
            "markdown",
            "一".into(),
            "一\n".to_owned(),
        ),
    ] {
        let told = extract(&service, name, &file).json();
        assert_eq!(
            (&told["kind"], &told["text"]),
            (&json!(kind), &json!(text)),
            "{name}"
        );
        let decoded = name.replace("%E6%96%87%E7%AB%A0+", "文章 ");
        assert_eq!(told["name"], decoded);
        assert_eq!(told["guessed_encoding"], Value::Null, "{name}");
    }
    for (name, file, text, encoding) in [
        ("old.txt", &b"\xCE\xC4\xD5\xC2"[..], "文章", "gb18030"),
        ("old.md", b"\xCE\xC4\xD5\xC2", "文章\n", "gb18030"),
        (
            "mark.txt",
            b"caf\xE9 au lait",
            "café au lait",
            "windows-1252",
        ),
    ] {
        let told = extract(&service, name, file).json();
        assert_eq!(
            (&told["text"], &told["guessed_encoding"]),
            (&json!(text), &json!(encoding)),
            "{name}"
        );
    }
}

#[test]
fn service_refuses_files_with_the_reason() {
    let place = Place::new();
    let service = Service::start(&place, "--max-document 100000");
    let reason = |name: &str, file: &[u8], status: u16, code: &str, words: &str| {
        let reply = extract(&service, name, file);
        assert_eq!(reply.problem(), (status, code.to_owned()), "{name}");
        assert!(reply.text().contains(words), "{name}: {}", reply.text());
    };
    reason("", b"x", 400, "bad_request", "such as essay.docx");
    let unreadable = |name: &str, file: &[u8], words: &str| {
        reason(name, file, 422, "bad_document", words);
    };
    unreadable(
        "a.doc",
        b"x",
        "'a.doc' cannot be read: it is a word processor document",
    );
    unreadable("a.png", b"x", "it is an image");
    unreadable("a.docx", b"x", "'a.docx' cannot be read: ");
    unreadable("a.docx.gz", b"\x1F\x8B", "cannot be read");
    unreadable("a.txt", b"a\xFFb", "UTF-8");
    unreadable("a.md", b"%PDF-1.5", "its content is a PDF file");
    // A file of a few kilobytes whose text is longer than a document may be.
    let bomb = docx(&[&"word ".repeat(200_000)]);
    assert!(bomb.len() < 10_000);
    unreadable("a.docx", &bomb, "100000");
    reason("a.txt", &vec![b'a'; 100_001], 413, "too_large", "100000");
    for kind in ["application/json", "text/plain", ""] {
        let headers = [("Content-Type", kind)];
        let reply = service
            .connect()
            .request("POST", "/v1/extract?name=a.txt", &headers, b"x");
        assert_eq!(reply.problem(), (415, "unsupported_type".into()), "{kind}");
    }
    // The service is as before.
    assert_eq!(extract(&service, "a.txt", b"text").json()["text"], "text");
}

#[test]
fn word_document_is_compared_with_a_page() {
    let place = Place::new();
    write_mixed_folder(&place);
    let told = place.summary("compare in/c.docx essay.html");
    let passage = &told["shared"]["passages"][0];
    assert_eq!(
        (&passage["length"], &passage["kind"]),
        (&json!(20), &json!("verbatim"))
    );
    let html = place.read("essay.html");
    let slice = |text: &str, spot: &Value, names: [&str; 2]| {
        let [start, end] = names.map(|name| spot[name].as_u64().unwrap() as usize);
        text.chars()
            .skip(start)
            .take(end - start)
            .collect::<String>()
    };
    let own = slice(&html, &passage["b"], ["start", "end"]);
    assert!(
        own.starts_with("nobody</b> on the&nbsp;e&#x301;lan"),
        "{own}"
    );
    assert!(own.ends_with("wa<u>it</u>s"), "{own}");
    assert_eq!(passage["b"]["line"], 3);
    let stripped = slice(
        told["b"]["text"].as_str().unwrap(),
        &passage["b"],
        ["text_start", "text_end"],
    );
    assert!(
        stripped.starts_with("nobody on the\u{a0}e\u{301}lan island"),
        "{stripped}"
    );
    // The text of a Word document is what positions in it count in.
    assert_eq!(passage["a"].get("text_start"), None);
    assert_eq!(
        slice(
            told["a"]["text"].as_str().unwrap(),
            &passage["a"],
            ["start", "end"]
        ),
        PASSAGE
    );
    let shown = place.ok("compare in/c.docx essay.html --html page.html");
    assert!(
        shown
            .text()
            .contains("1. line 3 of B, line 2 of A: 20 words, verbatim"),
        "{}",
        shown.text()
    );
    let page = read_report(&place, "page.html");
    let text = page["comparison"]["b"]["text"].as_str().unwrap();
    let at = |which: usize| page["passages"][0][which].as_u64().unwrap() as usize;
    let units: Vec<u16> = text.encode_utf16().collect();
    let shown = String::from_utf16_lossy(&units[at(2)..at(3)]);
    assert!(
        shown.starts_with("nobody on the") && shown.ends_with("waits"),
        "{shown}"
    );
    // A format that is given takes the file as it is.
    let raw = place.summary("compare essay.html essay.html --format text --document-per-file");
    assert!(raw["a"]["text"].as_str().unwrap().contains("<title>"));
    let plain = place.summary("compare in/plain.txt essay.html");
    assert_eq!(
        slice(
            &place.read("in/plain.txt"),
            &plain["shared"]["passages"][0]["a"],
            ["start", "end"]
        ),
        PASSAGE
    );
    // Files of unknown kinds are text.
    place.write("notes", PASSAGE);
    assert_eq!(
        place.summary("compare notes in/a.html")["shared"]["passages"][0]["length"],
        20
    );
}

#[cfg(feature = "pdf")]
mod pdf_files {
    use std::time::Instant;

    use flate2::Compression;
    use flate2::write::ZlibEncoder;
    use lookalike_documents::{PdfLimits, PdfReader};

    use super::*;

    const LINES: [&str; 3] = [
        "The harbour was built by the fishermen themselves.",
        "In the first winter a storm took the northern wall, and the village",
        "spent four years paying for a new one.",
    ];

    #[test]
    fn pdf_files_are_compared() {
        let place = Place::new();
        place.write("in/paper.pdf", text_pdf(&LINES));
        place.write("in/scan.pdf", pdf_page("0 0 100 100 re f", "", &[]));
        place.write("in/torn.pdf", &text_pdf(&LINES)[..300]);
        let passage =
            "in the first winter, a storm took the northern wall and the village spent four years";
        place.write("essay.md", format!("They say that *{passage}* without it."));
        let ran = place.run("passages essay.md --against in -o out.jsonl --extracted texts");
        assert_eq!(ran.code, Some(1), "{}", ran.err);
        assert!(
            ran.err
                .contains("in/scan.pdf:1: it is a PDF file without text"),
            "{}",
            ran.err
        );
        assert!(
            ran.err.contains("in/torn.pdf:1: the PDF file"),
            "{}",
            ran.err
        );
        let rows = found(&place, "out.jsonl");
        assert_eq!(
            (rows.len(), &rows[0]["source"]),
            (1, &json!("in/paper.pdf"))
        );
        assert_eq!(part(&place, "essay.md", &rows[0], "", ""), passage);
        let copied = part(&place, "texts/in/paper.pdf.txt", &rows[0], "source_", "");
        let words: Vec<_> = copied.split_whitespace().collect();
        assert_eq!(
            (words[0], words[words.len() - 1], words.len()),
            ("In", "years", 16)
        );
        place.ok("compare essay.md in/paper.pdf");
        place.refused(
            "compare essay.md in/scan.pdf",
            &["in/scan.pdf:1", "without text"],
        );
    }

    #[test]
    fn service_extracts_texts_of_pdf_files() {
        let place = Place::new();
        let service = Service::start(&place, "");
        let told = extract(&service, "paper.pdf", &text_pdf(&LINES)).json();
        assert_eq!(told["kind"], "pdf");
        assert!(told["text"].as_str().unwrap().contains(LINES[1]), "{told}");
        let scan = extract(&service, "scan.pdf", &pdf_page("0 0 100 100 re f", "", &[]));
        assert_eq!(scan.problem(), (422, "bad_document".into()));
        assert!(
            scan.text()
                .contains("'scan.pdf' cannot be read: it is a PDF file without text")
        );
        // A form that shows itself overflows the stack of the process that reads it, and of no other one.
        let deep = pdf_page("/A Do", "/XObject <</A 6 0 R>>", &[form("/A Do")]);
        let deep = extract(&service, "deep.pdf", &deep);
        assert_eq!(deep.problem(), (422, "bad_document".into()));
        assert!(deep.text().contains("64 MiB of stack"), "{}", deep.text());
        assert_eq!(service.get("/livez").json()["live"], true);
    }

    fn read_within(bytes: &[u8], limits: PdfLimits) -> Result<String, String> {
        let program = env!("CARGO_BIN_EXE_lookalike").into();
        PdfReader::new(program, "read-pdf", limits).read_pdf(bytes, 1 << 20)
    }

    /// Returns a form that shows each of these forms twice.
    fn form(shown: &str) -> Vec<u8> {
        let resources = "/Type /XObject /Subtype /Form /BBox [0 0 1 1]";
        stream(resources, shown.as_bytes())
    }

    #[test]
    fn endless_file_ends_at_its_limit_of_processor_time() {
        // Each of 40 forms shows the next one twice.
        let names: Vec<_> = (0..41).map(|at| format!("/A{at} {} 0 R", at + 6)).collect();
        let entries = format!("/XObject <<{}>>", names.join(" "));
        let mut forms: Vec<_> = (1..41)
            .map(|at| form(&format!("/A{at} Do /A{at} Do")))
            .collect();
        forms.push(form("0 0 m"));
        let file = pdf_page("/A0 Do", &entries, &forms);
        let limits = PdfLimits {
            cpu_seconds: 1,
            ..PdfLimits::default()
        };
        let told = read_within(&file, limits).unwrap_err();
        assert!(
            told.contains("more than 1 s of processor time, the limit"),
            "{told}"
        );
        let limits = PdfLimits {
            wall_seconds: 1,
            ..PdfLimits::default()
        };
        let started = Instant::now();
        let told = read_within(&file, limits).unwrap_err();
        assert!(told.contains("more than 1 s, the limit"), "{told}");
        assert!(started.elapsed().as_secs() < 30);
    }

    #[test]
    fn expanding_file_ends_at_its_limit_of_memory() {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
        let operations = b"0 0 m ".repeat(1 << 16);
        (0..400).for_each(|_| encoder.write_all(&operations).unwrap());
        let packed = encoder.finish().unwrap();
        assert!(packed.len() < 1 << 20);
        let bomb = stream(
            "/Type /XObject /Subtype /Form /Filter /FlateDecode",
            &packed,
        );
        let file = pdf_page("/A Do", "/XObject <</A 6 0 R>>", &[bomb]);
        let limits = PdfLimits {
            // The allocator reserves a gigabyte of address space at once.
            memory_bytes: 1400 << 20,
            ..PdfLimits::default()
        };
        let told = read_within(&file, limits).unwrap_err();
        assert!(
            told.contains("more than 1400 MiB of memory, the limit"),
            "{told}"
        );
    }

    #[test]
    fn deep_files_end_with_a_reason() {
        // A form that shows itself.
        let file = pdf_page("/A Do", "/XObject <</A 6 0 R>>", &[form("/A Do")]);
        let told = read_within(&file, PdfLimits::default()).unwrap_err();
        assert!(told.contains("64 MiB of stack"), "{told}");
        // Arrays and dictionaries inside one another.
        for (open, close) in [("[", "]"), ("<</A ", ">>"), ("(", ")")] {
            let deep = format!("{}{}", open.repeat(300_000), close.repeat(300_000));
            let file = pdf_page("BT /F1 9 Tf (text) Tj ET", "", &[deep.into_bytes()]);
            let started = Instant::now();
            let read = read_within(&file, PdfLimits::default());
            assert!(
                read.is_ok() || read.is_err_and(|told| !told.is_empty()),
                "{open}"
            );
            assert!(started.elapsed().as_secs() < 60);
        }
        // Pages whose parents are each other.
        let file = String::from_utf8(text_pdf(&LINES)).unwrap();
        let looped = file
            .replace("/Type /Pages /Kids [3 0 R]", "/Type /Pages /Kids [2 0 R]")
            .into_bytes();
        assert!(read_within(&looped, PdfLimits::default()).is_err());
    }

    #[test]
    fn damaged_files_end_with_a_reason() {
        let whole = text_pdf(&LINES);
        assert!(
            read_within(&whole, PdfLimits::default())
                .unwrap()
                .contains("winter")
        );
        for length in (0..whole.len()).step_by(whole.len() / 12) {
            let read = read_within(&whole[..length], PdfLimits::default());
            let told = read.unwrap_err();
            assert!(told.contains("PDF file"), "{length}: {told}");
        }
    }

    #[test]
    fn killed_reader_is_one_bad_file() {
        let place = Place::new();
        place.write(
            "in/deep.pdf",
            pdf_page("/A Do", "/XObject <</A 6 0 R>>", &[form("/A Do")]),
        );
        place.write("in/paper.pdf", text_pdf(&LINES));
        place.write("essay.txt", LINES.join(" "));
        let ran = place.run("passages essay.txt --against in -o out.tsv");
        assert_eq!(ran.code, Some(1), "{}", ran.err);
        assert!(
            ran.err
                .contains("in/deep.pdf:1: its parts are nested too deeply"),
            "{}",
            ran.err
        );
        assert_eq!(place.table("out.tsv").len(), 1);
    }
}
