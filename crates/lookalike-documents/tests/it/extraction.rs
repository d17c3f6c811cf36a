//! Texts of document files, and where their parts stand in the file.

use std::io::Write;

use lookalike_documents::{
    DocumentKind, ExtractOptions, ExtractedText, TextOrigin, estimate_memory, extract_text,
};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

fn extract(kind: DocumentKind, bytes: &[u8]) -> ExtractedText {
    extract_text(kind, bytes, &ExtractOptions::default()).unwrap()
}

fn refusal(kind: DocumentKind, bytes: &[u8]) -> String {
    extract_text(kind, bytes, &ExtractOptions::default()).unwrap_err()
}

/// Returns the part of the original that the first occurrence of `part` in the text comes from.
fn origin<'a>(extracted: &'a ExtractedText, part: &str) -> &'a str {
    let at = extracted.text.find(part).unwrap();
    let range = extracted.original_range(at..at + part.len()).unwrap();
    &extracted.original_text()[range]
}

fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

#[test]
fn html_parts_lead_back_to_the_file() {
    let html = "<!doctype html><html><head><title>no</title><style>p{}</style></head>\r\n<body>\
        <p>Fish &amp; <b>chi</b>ps</p><!-- no --><ul><li>e\u{301}<li>👩\u{200d}👩 &#x4E2D;&nGt;</ul>\
        <script>var a = '<p>';</script><table><tr><td>a<td>b</table>x&ltcy<br>中文 a<b c &notit;";
    let extracted = extract(DocumentKind::Html, html.as_bytes());
    assert_eq!(
        words(&extracted.text),
        [
            "Fish",
            "&",
            "chips",
            "e\u{301}",
            "👩\u{200d}👩",
            "中≫\u{20d2}",
            "a",
            "b",
            "x<cy",
            "中文",
            "a",
        ]
    );
    for (part, original) in [
        ("&", "&amp;"),
        ("& c", "&amp; <b>c"),
        ("chips", "chi</b>ps"),
        ("e\u{301}", "e\u{301}"),
        ("👩\u{200d}👩", "👩\u{200d}👩"),
        ("中≫\u{20d2}", "&#x4E2D;&nGt;"),
        ("≫", "&nGt;"),
        ("x<c", "x&ltc"),
        ("中文", "中文"),
    ] {
        assert_eq!(origin(&extracted, part), original, "{part}");
    }
}

#[test]
fn html_line_ends_and_odd_ends_lead_back() {
    let extracted = extract(DocumentKind::Html, b"\xEF\xBB\xBFa\r\nb &am c &lt");
    assert_eq!(origin(&extracted, "b"), "b");
    assert_eq!(origin(&extracted, "&am"), "&am");
    assert_eq!(origin(&extracted, "<"), "&lt");
    let noscript = extract(
        DocumentKind::Html,
        b"<noscript><p>a</p></noscript><head><p>b</head>c",
    );
    assert_eq!(words(&noscript.text), ["a", "b", "c"]);
}

#[test]
fn markdown_parts_lead_back_to_the_file() {
    let markdown = "\u{feff}---\ntitle: no\n---\n# A *title*\r\n\r\nSome [link](http://x.y) and \
        `code`, \\* &amp; **bo**ld.\r\n\r\n* one\n  * two\n\n| a | b |\n|---|---|\n| 1 | 中 |\n\n\
        ```rust\nfn a() {}\n```\n\n<div>html &lt; <i>x</i></div>\n\n> quoted e\u{301}[^1]\n\n[^1]: note 👩\u{200d}👩\n";
    let extracted = extract(DocumentKind::Markdown, markdown.as_bytes());
    assert_eq!(
        words(&extracted.text),
        [
            "A",
            "title",
            "Some",
            "link",
            "and",
            "code,",
            "*",
            "&",
            "bold.",
            "one",
            "two",
            "a",
            "b",
            "1",
            "中",
            "fn",
            "a()",
            "{}",
            "html",
            "<",
            "x",
            "quoted",
            "e\u{301}",
            "note",
            "👩\u{200d}👩",
        ]
    );
    for (part, original) in [
        ("title", "title"),
        ("link and", "link](http://x.y) and"),
        ("code", "code"),
        ("& ", "&amp; "),
        ("bold", "bo**ld"),
        ("中", "中"),
        ("fn a()", "fn a()"),
        ("< x", "&lt; <i>x"),
        ("e\u{301}", "e\u{301}"),
    ] {
        assert_eq!(origin(&extracted, part), original, "{part}");
    }
}

#[test]
fn plain_text_is_decoded() {
    let extracted = extract(DocumentKind::PlainText, b"\xEF\xBB\xBFa\r\nb");
    assert_eq!(extracted.text, "a\r\nb");
    assert_eq!(extracted.original_range(3..4), Some(3..4));
    let text = "后来他们在发廊里头谈了很久";
    let (bytes, _, _) = encoding_rs::GB18030.encode(text);
    assert!(refusal(DocumentKind::PlainText, &bytes).contains("--encoding gb18030"));
    let options = ExtractOptions {
        encoding: encoding_rs::GB18030,
        ..ExtractOptions::default()
    };
    let decoded = extract_text(DocumentKind::Html, &bytes, &options).unwrap();
    assert_eq!(decoded.text, text);
    for marked in [&b"\xFF\xFEa\0-N"[..], b"\xFE\xFF\0aN-"] {
        assert_eq!(extract(DocumentKind::PlainText, marked).text, "a中");
    }
    assert!(refusal(DocumentKind::PlainText, b"ab\0c").contains("byte 3"));
    assert!(refusal(DocumentKind::Html, b"\x89PNG\r\n\x1A\nxx").contains("image"));
    assert!(refusal(DocumentKind::PlainText, b"%PDF-1.7").contains("PDF"));
}

#[test]
fn limits_are_inclusive() {
    for (length, accepted) in [(99, true), (100, true), (101, false)] {
        let options = ExtractOptions {
            max_bytes: 100,
            ..ExtractOptions::default()
        };
        let bytes = vec![b'a'; length];
        let read = extract_text(DocumentKind::PlainText, &bytes, &options);
        assert_eq!(read.is_ok(), accepted, "{length}");
    }
}

/// A caller with a budget learns from the file alone that its tree would be large.
#[test]
fn estimated_memory_grows_with_markup() {
    let options = ExtractOptions::default();
    let estimate = |kind, text: &str| estimate_memory(kind, text.as_bytes(), &options);
    let plain = "A line of plain words, which has no markup in it.\n".repeat(1000);
    let marked = "*a_ ".repeat(plain.len() / 4);
    let references = "&lt;".repeat(plain.len() / 4);
    assert!(estimate(DocumentKind::Markdown, &plain) < 10 * plain.len());
    assert!(estimate(DocumentKind::Markdown, &marked) > 140 * marked.len());
    assert!(estimate(DocumentKind::Html, &plain) < 4 * plain.len());
    assert!(estimate(DocumentKind::Html, &references) > 20 * references.len());
    assert_eq!(estimate(DocumentKind::PlainText, &marked), 2 * marked.len());
}

#[test]
fn markup_a_million_deep_is_read() {
    for (kind, open) in [
        (DocumentKind::Html, "<div>"),
        (DocumentKind::Html, "<b>"),
        (DocumentKind::Markdown, "> "),
        (DocumentKind::Markdown, "<div>"),
    ] {
        let deep = open.repeat(1_000_000) + "end";
        let extracted = extract(kind, deep.as_bytes());
        assert!(extracted.text.contains("end"), "{open}");
    }
    let deep = format!(
        "{}{}",
        "<w:p>".repeat(1_000_000),
        "</w:p>".repeat(1_000_000)
    );
    assert_eq!(extract(DocumentKind::Docx, &docx(&deep, None)).text, "");
}

fn archive(parts: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, content) in parts {
        writer
            .start_file(*name, SimpleFileOptions::default())
            .unwrap();
        writer.write_all(content).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn docx(body: &str, footnotes: Option<&str>) -> Vec<u8> {
    let part = |root: &str, inner: &str| {
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?><w:{root} xmlns:w=\"w\" xmlns:mc=\"mc\">{inner}</w:{root}>"
        )
    };
    let document = part("document", body);
    let notes = footnotes.map(|notes| part("footnotes", notes));
    let mut parts = vec![("word/document.xml", document.as_bytes())];
    if let Some(notes) = &notes {
        parts.push(("word/footnotes.xml", notes.as_bytes()));
    }
    archive(&parts)
}

#[test]
fn docx_text_is_what_a_reader_sees() {
    let body = "<w:p><w:pPr><w:tabs><w:tab w:val=\"left\"/></w:tabs><w:rPr><w:del/></w:rPr></w:pPr>\
        <w:r><w:t>Fish &amp; </w:t></w:r><w:r><w:t>chips &#x4E2D;</w:t></w:r></w:p>\n\
        <w:p><w:ins><w:r><w:t>new</w:t></w:r></w:ins><w:del><w:r><w:delText>old</w:delText><w:t>old</w:t></w:r></w:del>\
        <w:moveFrom><w:r><w:t>moved</w:t></w:r></w:moveFrom><w:r><w:tab/><w:t>tab</w:t><w:br/><w:t>line</w:t>\
        <w:instrText>PAGE</w:instrText></w:r></w:p>\
        <w:tbl><w:tr><w:tc><w:p><w:r><w:t>a</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>b</w:t></w:r></w:p></w:tc></w:tr></w:tbl>\
        <w:p><w:r><w:t>box:</w:t><mc:AlternateContent><mc:Choice><w:txbxContent><w:p><w:r><w:t>in</w:t></w:r></w:p>\
        </w:txbxContent></mc:Choice><mc:Fallback><w:p><w:r><w:t>in</w:t></w:r></w:p></mc:Fallback></mc:AlternateContent></w:r></w:p>";
    let notes = "<w:footnote><w:p><w:r><w:t>note 脚注</w:t></w:r></w:p></w:footnote>";
    let extracted = extract(DocumentKind::Docx, &docx(body, Some(notes)));
    assert!(matches!(extracted.origin, TextOrigin::Extracted));
    assert_eq!(extracted.original_range(0..1), None);
    assert_eq!(
        extracted.text,
        "Fish & chips 中\nnew\ttab\nline\na\nb\nbox:\nin\nnote 脚注\n"
    );
}

#[test]
fn damaged_docx_files_are_refused_by_reason() {
    let whole = docx("<w:p><w:r><w:t>text of a document</w:t></w:r></w:p>", None);
    for length in 0..whole.len() {
        let read = extract_text(
            DocumentKind::Docx,
            &whole[..length],
            &ExtractOptions::default(),
        );
        assert!(read.is_err(), "{length}");
    }
    for at in 0..whole.len() {
        let mut changed = whole.clone();
        changed[at] ^= 0x41;
        let _ = extract_text(DocumentKind::Docx, &changed, &ExtractOptions::default());
    }
    let other = archive(&[("mimetype", b"application/epub+zip")]);
    assert!(refusal(DocumentKind::Docx, &other).contains("without word/document.xml"));
    assert!(refusal(DocumentKind::Docx, &docx("<w:p>", None)).contains("damaged"));
    assert!(refusal(DocumentKind::Docx, &docx("<w:t>&own;</w:t>", None)).contains("&own;"));
    assert!(
        refusal(DocumentKind::Docx, b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1rest").contains("encrypted")
    );
}

#[test]
fn docx_bombs_are_bounded() {
    let body = format!("<w:p><w:r><w:t>{}</w:t></w:r></w:p>", "a".repeat(10 << 20));
    let bomb = docx(&body, None);
    assert!(bomb.len() < 100_000);
    let options = ExtractOptions {
        max_bytes: 1 << 20,
        ..ExtractOptions::default()
    };
    let reason = extract_text(DocumentKind::Docx, &bomb, &options).unwrap_err();
    assert!(reason.contains("more than 1048576 bytes"), "{reason}");
    assert_eq!(
        extract(DocumentKind::Docx, &bomb).text.len(),
        (10 << 20) + 1
    );
}

/// Builds a PDF file from its objects, numbered from 1.
fn pdf(objects: &[String]) -> Vec<u8> {
    let mut file = b"%PDF-1.5\n".to_vec();
    let mut places = Vec::new();
    for (index, object) in objects.iter().enumerate() {
        places.push(file.len());
        file.extend(format!("{} 0 obj\n{object}\nendobj\n", index + 1).bytes());
    }
    let table = file.len();
    file.extend(format!("xref\n0 {}\n0000000000 65535 f \n", places.len() + 1).bytes());
    for place in &places {
        file.extend(format!("{place:010} 00000 n \n").bytes());
    }
    let size = places.len() + 1;
    file.extend(
        format!("trailer <</Size {size} /Root 1 0 R>>\nstartxref\n{table}\n%%EOF\n").bytes(),
    );
    file
}

fn stream(content: &str) -> String {
    format!(
        "<</Length {}>>\nstream\n{content}\nendstream",
        content.len()
    )
}

/// A page that shows `content` with a CID font, which maps code `n` to the `n`th character of `text`.
fn chinese_pdf(text: &str, content: &str) -> Vec<u8> {
    let mut map = String::from(
        "/CIDInit /ProcSet findresource begin\n12 dict begin\nbegincmap\n/CMapName /A def\n/CMapType 2 def\n\
         1 begincodespacerange\n<0000> <FFFF>\nendcodespacerange\n",
    );
    map += &format!("{} beginbfchar\n", text.chars().count());
    for (code, character) in text.chars().enumerate() {
        map += &format!("<{:04X}> <{:04X}>\n", code + 1, character as u32);
    }
    map += "endbfchar\nendcmap\nend\nend\n";
    pdf(&[
        "<</Type /Catalog /Pages 2 0 R>>".to_owned(),
        "<</Type /Pages /Kids [3 0 R] /Count 1>>".to_owned(),
        "<</Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 4 0 R \
         /Resources <</Font <</F1 5 0 R>>>>>>"
            .to_owned(),
        stream(content),
        "<</Type /Font /Subtype /Type0 /BaseFont /Song /Encoding /Identity-H \
         /DescendantFonts [6 0 R] /ToUnicode 7 0 R>>"
            .to_owned(),
        "<</Type /Font /Subtype /CIDFontType2 /BaseFont /Song /DW 1000 /CIDSystemInfo \
         <</Registry (Adobe) /Ordering (Identity) /Supplement 0>> /FontDescriptor 8 0 R>>"
            .to_owned(),
        stream(&map),
        "<</Type /FontDescriptor /FontName /Song /Flags 4 /FontBBox [0 0 1000 1000] /ItalicAngle 0 \
         /Ascent 800 /Descent -200 /CapHeight 700 /StemV 80>>"
            .to_owned(),
    ])
}

const CHINESE: &str = "BT /F1 12 Tf 50 700 Td <000100020003> Tj 0 -20 Td <00040005> Tj ET";

#[cfg(feature = "pdf")]
fn pdf_refusal(bytes: &[u8]) -> String {
    lookalike_documents::extract_pdf_text(bytes, 1 << 20).unwrap_err()
}

#[cfg(feature = "pdf")]
#[test]
fn chinese_pdf_files_are_chinese() {
    use lookalike_documents::extract_pdf_text;

    let file = chinese_pdf("抄袭的段落", CHINESE);
    let text = extract_pdf_text(&file, 1 << 20).unwrap();
    assert_eq!(words(&text), ["抄袭的", "段落"]);
    let length = text.len() as u32;
    assert!(extract_pdf_text(&file, length).is_ok());
    let reason = extract_pdf_text(&file, length - 1).unwrap_err();
    assert!(
        reason.contains(&format!("more than {} bytes", length - 1)),
        "{reason}"
    );
}

#[cfg(feature = "pdf")]
#[test]
fn pdf_files_without_text_have_a_reason() {
    let scanned = chinese_pdf("a", "0 0 100 100 re f");
    assert!(pdf_refusal(&scanned).contains("without text"));
    let whole = chinese_pdf("抄袭的段落", CHINESE);
    assert!(pdf_refusal(&whole[..40]).contains("PDF file"));
    assert!(pdf_refusal(b"").contains("PDF file"));
    let text = String::from_utf8(whole.clone()).unwrap();
    let sizeless = text.replace("/MediaBox", "/Mediabox").into_bytes();
    assert!(pdf_refusal(&sizeless).contains("damaged"));
    for at in (0..whole.len()).step_by(7) {
        let mut changed = whole.clone();
        changed[at] ^= 0x11;
        let _ = lookalike_documents::extract_pdf_text(&changed, 1 << 20);
    }
}

#[test]
fn pdf_files_need_a_reader() {
    let reason = refusal(DocumentKind::Pdf, &chinese_pdf("a", CHINESE));
    assert!(
        reason.contains("reads none") && !reason.contains("cargo"),
        "{reason}"
    );
}
