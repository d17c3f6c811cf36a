//! Recipes of other tools, through every command that takes a recipe.

use serde_json::{Value, json};

use crate::support::{Numbers, Place, jsonl, row, rows};

/// Values published for the tools.
const PUBLISHED: [(&str, &str, &str); 8] = [
    ("1e0ng", "", "e9800998ecf8427e"),
    (
        "1e0ng",
        "How are you? I AM fine. Thanks. And you?",
        "bff3cd8a201e681a",
    ),
    (
        "1e0ng",
        "你好\u{3000}世界！\u{3000}\u{3000}呼噜。",
        "db8c51c7172ea364",
    ),
    ("news-md5", "", "ffffffffffffffff"),
    ("news-md5", "the cat sat on the mat", "dff9e69f3a2deaff"),
    ("java-classic", "the cat sat on the mat", "fabbff6b39cfadff"),
    (
        "java-classic",
        "This is a test string for testing",
        "800d8e90e45cc488",
    ),
    ("seomoz", "", "0000000000000000"),
];

#[test]
fn fingerprints_equal_the_published_ones() {
    let place = Place::new();
    for (recipe, text, expected) in PUBLISHED {
        place.write("in.jsonl", row("a", text));
        let ran = place.ok(&format!("fingerprint in.jsonl --recipe {recipe}"));
        assert_eq!(rows(ran.text()), [["a", expected]], "{recipe} {text}");
    }
    place.write("in.jsonl", row("a", ""));
    let ran = place.ok("fingerprint in.jsonl --recipe datasketch-legacy");
    assert_eq!(rows(ran.text())[0][1], vec!["4294967295"; 128].join(" "));
}

#[test]
fn title_and_content_are_two_fields() {
    let place = Place::new();
    let both = json!({ "id": "a", "title": "the cat sat", "content": "on the mat" });
    place.write("in.jsonl", format!("{both}\n"));
    let ran = place.ok("fingerprint in.jsonl --text title,content --recipe news-md5");
    assert_eq!(rows(ran.text()), [["a", "dff9e69f3a2deaff"]]);
}

#[test]
fn given_features_are_hashed_unchanged() {
    let place = Place::new();
    let lines = [
        json!({ "id": "none", "tokens": [] }),
        json!({ "id": "two", "tokens": ["aaa", "bbb"] }),
        json!({ "id": "weighted", "tokens": { "aaa": 2, "bbb": 1 } }),
    ];
    let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
    place.write("in.jsonl", lines);
    let ran = place.ok("fingerprint in.jsonl --features tokens --recipe 1e0ng --digits decimal");
    let table = rows(ran.text());
    assert_eq!(table[0], ["none", "0"]);
    assert_eq!(table[1], ["two", "57087923692560392"]);
    // The heavier feature decides every bit.
    place.write(
        "aaa.jsonl",
        format!("{}\n", json!({ "id": "a", "tokens": ["aaa"] })),
    );
    let ran = place.ok("fingerprint aaa.jsonl --features tokens --recipe 1e0ng --digits decimal");
    assert_eq!(table[2][1], rows(ran.text())[0][1]);
}

/// Returns the recorded vectors that contain complete signatures, with their texts.
fn signatures(column: &str) -> Vec<(String, String)> {
    let here = env!("CARGO_MANIFEST_DIR");
    let file = std::fs::read_to_string(format!("{here}/../../testdata/compat/vectors.jsonl"))
        .expect("the vectors are in the repository");
    let lines = file
        .lines()
        .map(|line| -> Value { serde_json::from_str(line).expect("JSON") });
    lines
        .filter_map(|line| {
            let slots = line[column].as_array()?;
            let slots: Vec<String> = slots.iter().map(ToString::to_string).collect();
            Some((line["text"].as_str()?.to_owned(), slots.join(" ")))
        })
        .collect()
}

#[test]
fn signatures_equal_the_package_at_both_seeds() {
    let place = Place::new();
    for name in ["datasketch-legacy", "datasketch-affine32"] {
        for seed in ["1", "42"] {
            let toml = place.ok(&format!("recipe {name}")).text().to_owned();
            place.write(
                "mine.toml",
                toml.replace("seed = 1", &format!("seed = {seed}")),
            );
            let known = signatures(&format!("{name}-{seed}"));
            assert!(known.len() >= 10);
            let texts = known.iter().map(|(text, _)| ("a", text.as_str()));
            place.write("in.jsonl", jsonl(texts));
            let ran = place.ok("fingerprint in.jsonl --recipe mine.toml");
            let made: Vec<_> = rows(ran.text())
                .into_iter()
                .map(|row| row[1].clone())
                .collect();
            let expected: Vec<_> = known.into_iter().map(|(_, slots)| slots).collect();
            assert_eq!(made, expected, "{name} {seed}");
        }
    }
}

/// Returns words of letters. Words that differ only in digits after a common stem would share most
/// characters.
fn letters(numbers: &mut Numbers, words: usize) -> String {
    let mut word = || -> String {
        (0..6)
            .map(|_| char::from(b'a' + numbers.below(26) as u8))
            .collect()
    };
    let words: Vec<String> = (0..words).map(|_| word()).collect();
    words.join(" ")
}

const ALL: [&str; 6] = [
    "1e0ng",
    "seomoz",
    "news-md5",
    "java-classic",
    "datasketch-legacy",
    "datasketch-affine32",
];

#[test]
fn every_recipe_and_method_finds_duplicates() {
    let place = Place::new();
    let mut numbers = Numbers::new(8);
    let original = letters(&mut numbers, 300);
    let edited = numbers.edited(&original, 1);
    let other = letters(&mut numbers, 300);
    let texts = [
        ("a", original.as_str()),
        ("b", edited.as_str()),
        ("c", other.as_str()),
        ("blank", "!!! ???"),
        ("empty", ""),
        ("empty too", ""),
        ("short", "x"),
        ("short too", "x"),
    ];
    place.write("in.jsonl", jsonl(texts));
    for recipe in ALL {
        for method in [
            "auto",
            "minhash",
            "join",
            "simhash --distance 6",
            "simhash --distance 6 --verify none",
        ] {
            place.ok(&format!(
                "dedup in.jsonl -o out.jsonl --recipe {recipe} --method {method} {}",
                if method.ends_with("none") {
                    ""
                } else {
                    "--threshold 0.7"
                }
            ));
            // Texts without features match only equal texts; empty texts match nothing.
            let kept = ["a", "c", "blank", "empty", "empty too", "short"];
            assert_eq!(place.ids("out.jsonl"), kept, "{recipe} {method}");
            // Without copies, `pairs` lists equal texts as one document.
            let pairs = place.ok(&format!(
                "pairs in.jsonl --distinct --recipe {recipe} --method {method} {}",
                if method.ends_with("none") {
                    ""
                } else {
                    "--threshold 0.7"
                }
            ));
            let pairs: Vec<_> = rows(pairs.text())
                .into_iter()
                .map(|row| format!("{} {}", row[0], row[1]))
                .collect();
            assert_eq!(pairs, ["a b"], "{recipe} {method}");
        }
    }
}

#[test]
fn indexes_are_searched_under_every_recipe() {
    let place = Place::new();
    let mut numbers = Numbers::new(9);
    let original = letters(&mut numbers, 300);
    let edited = numbers.edited(&original, 1);
    place.write(
        "in.jsonl",
        jsonl([("a", original.as_str()), ("b", &letters(&mut numbers, 300))]),
    );
    place.write(
        "query.jsonl",
        jsonl([("q", edited.as_str()), ("empty", "")]),
    );
    for recipe in ALL {
        place.ok(&format!(
            "index build lib-{recipe} in.jsonl --recipe {recipe} --texts --distance 6"
        ));
        let found = place.ok(&format!("search lib-{recipe} query.jsonl --distance 6"));
        let found: Vec<_> = rows(found.text())
            .into_iter()
            .map(|row| row[..2].to_vec())
            .collect();
        assert_eq!(found, [["q", "a"]], "{recipe}");
        place.ok(&format!("index verify lib-{recipe}"));
    }
}

#[test]
fn values_fixed_by_a_scheme_are_refused() {
    let place = Place::new();
    let toml = place.ok("recipe 1e0ng").text().to_owned();
    place.write(
        "mine.toml",
        toml.replace("version = 1", "version = 1\nngram = 3"),
    );
    place.write("in.jsonl", row("a", "text"));
    place.refused(
        "fingerprint in.jsonl --recipe mine.toml",
        &["mine.toml", "ngram"],
    );
    place.write("mine.toml", toml.replace("bits = 64", "bits = 12"));
    place.refused(
        "fingerprint in.jsonl --recipe mine.toml",
        &["simhash.bits is 12", "steps of 8"],
    );
    place.refused(
        "fingerprint in.jsonl --recipe datasketch-legacy --digits hex",
        &["--digits", "--method minhash"],
    );
    place.write("mine.toml", toml.replace("bits = 64", "bits = 128"));
    let ran = place.ok("fingerprint in.jsonl --recipe mine.toml");
    assert_eq!(rows(ran.text())[0][1].len(), 32);
}
