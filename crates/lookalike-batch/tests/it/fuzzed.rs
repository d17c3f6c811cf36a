//! Runs the checks of the fuzz targets on malformed and on random bytes.

#[path = "../../../../fuzz/bodies/columns.rs"]
mod columns;
#[path = "../../../../fuzz/bodies/documents.rs"]
mod documents;
#[path = "../../../../fuzz/bodies/library.rs"]
mod library;
#[path = "../../../../fuzz/bodies/recipe.rs"]
mod recipe;
#[path = "../../../../fuzz/bodies/rows.rs"]
mod rows;
#[path = "../../../../fuzz/bodies/text.rs"]
mod text;

use proptest::prelude::*;

/// Pieces that have a meaning for one of the parsers, or that break off in the middle of such a piece.
const SYNTAX_PIECES: [&[u8]; 64] = [
    b"",
    b"a",
    b"text",
    b"id",
    b"\n",
    b"\r\n",
    b"\r",
    b"\n\n",
    b"\t",
    b",",
    b"\"",
    b"\"\"",
    b"\\",
    b"\\\"",
    b"\\u",
    b"\\ud83d",
    b"\\ude00",
    b"\\u0000",
    b"\0",
    b" ",
    b"{",
    b"}",
    b"[",
    b"]",
    b":",
    b"null",
    b"true",
    b"-0",
    b"1e400",
    b"0.1e-7",
    b"{\"text\":\"",
    b"\",\"id\":1}\n",
    b"{\"id\":\"x\",\"text\":\"y\",\"features\":[\"a\",[\"b\",2]],\"a\":{\"b\":3}}\n",
    b"id,text\n",
    b"id\ttext\r\n",
    b"1,\"a\nb\"\n",
    b"\"a\"b,c",
    b"\xEF\xBB\xBF",
    b"\xFF\xFE",
    b"\x84\x31\x95\x33",
    b"\x1F\x8B\x08\0",
    b"\x28\xB5\x2F\xFD",
    b"\xFF",
    b"\xE4\xB8",
    b"\xED\xA0\x80",
    "中文".as_bytes(),
    "é e\u{301}".as_bytes(),
    "\u{345}\u{1fbc}".as_bytes(),
    "ᄀ\u{1161}\u{11a8}".as_bytes(),
    "\u{200b}\u{feff}".as_bytes(),
    "ﬁﷺ".as_bytes(),
    "漢字，。".as_bytes(),
    "👩\u{200d}👩".as_bytes(),
    "\u{202e}\u{e0001}".as_bytes(),
    "İſẞ".as_bytes(),
    b"<p>",
    b"<script>",
    b"<!--",
    b"&amp",
    b"&#x110000;",
    b"</",
    b"```\n",
    b"| a | b |\n|---|",
    b"[^1]: *_`~",
];

/// Either random bytes, or a sequence of pieces, each repeated up to three times.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let pieces =
        prop::collection::vec((prop::sample::select(&SYNTAX_PIECES[..]), 1usize..4), 0..24);
    let joined = pieces.prop_map(|pieces| {
        pieces
            .into_iter()
            .flat_map(|(piece, times)| piece.repeat(times))
            .collect()
    });
    prop_oneof![1 => prop::collection::vec(any::<u8>(), 0..200), 4 => joined]
}

fn chosen(choice: u8, bytes: &[u8]) -> Vec<u8> {
    [&[choice], bytes].concat()
}

#[test]
fn every_sample_is_read_by_every_target() {
    for piece in SYNTAX_PIECES {
        for choice in 0..=u8::MAX {
            rows::check(&chosen(choice, piece));
        }
        for choice in [0, 1] {
            documents::check(&chosen(choice, piece));
        }
        for repeated in [1, 70] {
            for choice in 0..text::RECIPES as u8 {
                text::check(&chosen(choice, &piece.repeat(repeated)));
            }
        }
    }
}

#[test]
fn changed_recipes_are_read_or_refused() {
    let toml = lookalike::Recipe::default().to_toml().into_bytes();
    recipe::check(&toml);
    for piece in SYNTAX_PIECES.into_iter().chain(TOML_PIECES) {
        recipe::check(piece);
        for at in 0..=toml.len() {
            let (before, after) = toml.split_at(at);
            if after
                .first()
                .is_none_or(|byte| !byte.is_ascii_alphanumeric())
            {
                recipe::check(&[before, piece, after].concat());
            }
        }
    }
    recipe::check("[".repeat(100_000).as_bytes());
    recipe::check(format!("a = {}", "[".repeat(100_000)).as_bytes());
    recipe::check(format!("a = {}", "{b=".repeat(100_000)).as_bytes());
}

const TOML_PIECES: [&[u8]; 5] = [b"#", b"=", b"'''", b"[[simhash]]", b"99999999999999999999"];

#[test]
fn deep_nesting_is_an_error_or_text() {
    for open in [
        "[",
        "{\"text\":",
        "{\"a\":",
        "<b>",
        "> ",
        "*a **",
        "- ",
        "[a](",
        "![",
        "&",
    ] {
        let deep = open.repeat(20_000 / open.len());
        for choice in 0..text::RECIPES as u8 {
            text::check(&chosen(choice, &deep.as_bytes()[..4000]));
        }
        for choice in [0, 1] {
            documents::check(&chosen(choice, deep.as_bytes()));
        }
        for choice in [0x00, 0x10, 0x20] {
            rows::check(&chosen(choice, deep.as_bytes()));
            rows::check(&chosen(
                choice,
                format!("{{\"text\":\"a\",\"x\":{deep}").as_bytes(),
            ));
        }
    }
}

#[test]
fn changed_files_with_columns_are_read_or_refused() {
    for choice in 0..12 {
        columns::check(&[choice]);
        for at in (0..4096u16).step_by(29 + usize::from(choice)) {
            let [high, low] = at.to_be_bytes();
            columns::check(&[choice, high, low, 1 << (at % 8)]);
            columns::check(&[choice, high, low, 0]);
        }
    }
}

#[test]
fn changed_manifests_are_read_or_refused() {
    let json = br#"{"recipe":null,"bits":64,"distance":3,"plan":"auto","memory":null,"ids":true,
        "texts":false,"next_row":9,"next_file":4,"segments":[{"file":1,"rows":8,
        "codes":"00112233445566aa","bytes":100,"first":1,"poor":{"rows":3,
        "seal":"00112233445566aa"},"removed":{"file":3,"rows":2,
        "seal":"00112233445566aa"}}]}"#;
    library::check(&chosen(1, json));
    for piece in
        SYNTAX_PIECES
            .into_iter()
            .chain([&b"9"[..], b"-1", b"18446744073709551615", b"\"x\""])
    {
        for at in 0..=json.len() {
            let (before, after) = json.split_at(at);
            if after.first().is_none_or(|byte| !byte.is_ascii_lowercase()) {
                library::check(&chosen(1, &[before, piece, after].concat()));
                library::check(&chosen(
                    1,
                    &[before, piece, &after[after.len().min(1)..]].concat(),
                ));
            }
        }
    }
}

#[test]
fn changed_index_files_are_read_or_refused() {
    for file in 4..9 {
        library::check(&[file]);
        for at in (0..4096u32).step_by(41) {
            let [_, _, high, low] = at.to_be_bytes();
            library::check(&[file, high, low, 1 << (at % 8)]);
            library::check(&[file, high, low, 0]);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn arbitrary_bytes_as_documents(choice in 0u8..2, bytes in bytes()) {
        documents::check(&chosen(choice, &bytes));
    }

    #[test]
    fn arbitrary_bytes_as_files_with_columns(choice in 16u8..32, bytes in bytes()) {
        columns::check(&chosen(choice, &bytes));
    }

    #[test]
    fn arbitrary_bytes_as_rows(choice: u8, bytes in bytes()) {
        rows::check(&chosen(choice, &bytes));
    }

    #[test]
    fn arbitrary_bytes_as_text(choice: u8, bytes in bytes()) {
        text::check(&chosen(choice, &bytes));
    }

    #[test]
    fn arbitrary_bytes_as_manifest(choice in 0u8..2, bytes in bytes()) {
        library::check(&chosen(choice, &bytes));
    }

    #[test]
    fn arbitrary_bytes_as_recipe(bytes in bytes()) {
        recipe::check(&bytes);
    }
}
