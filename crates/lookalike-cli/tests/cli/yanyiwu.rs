//! The scheme whose tables are files, tested with small tables of this project's own. The expected
//! fingerprints are those of the C++ library with the same tables: `testdata/compat/yanyiwu.cpp` prints them,
//! with simhash at 30c243b and cppjieba 5.6.7.

use serde_json::{Value, json};

use crate::support::{Place, jsonl, rows};

const RECIPE: &str = r#"
name = "small"
version = 1
scheme = "yanyiwu"
[yanyiwu]
dictionary = "words"
hmm = "model"
idf = "idf"
stopwords = "stop"
[simhash]
bits = 64
weights = "tfidf"
[minhash]
family = "fast-similarity"
slots = 128
"#;

const WORDS: &str = "渡口 40 n\n渡口边 2 s\n边上 9 f\n清早 25 t\n老船 12 n\n船 30 n\n的 400 uj\n\
                     A-B 3 nz\n我们 90 r\n";

const MODEL: &str = "-0.2 -3.14e+100 -3.14e+100 -1.5\n\
                     -3.14e+100 -0.5 -0.9 -3.14e+100\n-0.6 -3.14e+100 -3.14e+100 -0.8\n\
                     -3.14e+100 -0.3 -1.2 -3.14e+100\n-0.7 -3.14e+100 -3.14e+100 -0.6\n\
                     阿:-1,蛮:-7,呀:-9\n阿:-8,蛮:-1,呀:-9\n阿:-8,蛮:-4,呀:-9\n阿:-5,蛮:-5,呀:-1\n";

const LONG: &str = "我们清早在渡口边上等老船abc，阿蛮呀。阿蛮的A-B 3.14呢";

fn place() -> Place {
    let place = Place::new();
    place.write("y.toml", RECIPE);
    place.write("words", WORDS);
    place.write("model", MODEL);
    place.write("idf", "渡口 2\n清早 4\n老船 8\n阿蛮 6\n");
    place.write("stop", "我们\n,\n");
    place
}

#[test]
fn fingerprints_equal_the_library() {
    let place = place();
    let known = [
        ("", "0000000000000000"),
        ("船", "0000000000000000"),
        ("渡口边上", "8b900e37e6b0c600"),
        ("清早的老船", "c900e2b2db488951"),
        ("呀阿蛮呀阿蛮", "5deaf44c6f4ebbff"),
        ("3.14.15", "c101040210124023"),
        ("渡口清早渡口", "4b21600504e9642c"),
        (LONG, "c980f6164f4c8953"),
    ];
    place.write("in.jsonl", jsonl(known.map(|(text, _)| ("a", text))));
    for threads in [1, 3] {
        let ran = place.ok(&format!(
            "fingerprint in.jsonl --id-row --recipe y.toml --threads {threads}"
        ));
        let made: Vec<_> = rows(ran.text())
            .into_iter()
            .map(|row| row[1].clone())
            .collect();
        assert_eq!(made, known.map(|(_, print)| print));
    }
    place.write("long.jsonl", jsonl([("a", LONG)]));
    let ran = place.ok("fingerprint long.jsonl --recipe y.toml --set simhash.top=2");
    assert_eq!(rows(ran.text()), [["a", "5deaf44c6f4ebbff"]]);
}

#[test]
fn thousand_texts_equal_the_library() {
    let here = env!("CARGO_MANIFEST_DIR");
    let file = std::fs::read_to_string(format!("{here}/../../testdata/compat/yanyiwu.jsonl"));
    let file = file.unwrap();
    let mut lines = file
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let tables = lines.next().unwrap();
    let place = place();
    for (name, table) in [
        ("words", "dictionary"),
        ("model", "hmm"),
        ("idf", "idf"),
        ("stop", "stopwords"),
    ] {
        place.write(name, tables[table].as_str().unwrap());
    }
    let vectors: Vec<Value> = lines.collect();
    assert_eq!(vectors.len(), 1000);
    let texts = vectors
        .iter()
        .map(|vector| ("a", vector["text"].as_str().unwrap()));
    place.write("in.jsonl", jsonl(texts));
    for (top, change) in [
        ("top-2", "--set simhash.top=2"),
        ("top-5", "--set simhash.top=5"),
        ("top", ""),
    ] {
        let ran = place.ok(&format!(
            "fingerprint in.jsonl --id-row --recipe y.toml {change}"
        ));
        let made = rows(ran.text());
        assert_eq!(made.len(), vectors.len());
        for (made, vector) in made.iter().zip(&vectors) {
            assert_eq!(made[1], vector[top], "{top}: {vector}");
        }
    }
}

/// Of two words, the heavier one decides every bit.
#[test]
fn published_fingerprint_is_reproduced() {
    let place = place();
    place.write("words", "你好 100 l\n世界 300 n\n");
    place.write("hello.txt", "你好世界\n");
    let by = "fingerprint hello.txt --recipe y.toml --set simhash.top=3 --digits decimal";
    for (idf, expected) in [
        ("你好 8\n世界 4\n", "17676873585679812141"),
        ("你好 4\n世界 8\n", "17364469107188678083"),
    ] {
        place.write("idf", idf);
        assert_eq!(rows(place.ok(by).text()), [["1", expected]]);
    }
}

#[test]
fn features_vote_with_their_own_weights() {
    let place = place();
    let words = json!({ "id": "a", "words": { "老船": 8, "渡口边": 5, "渡口": 2 } });
    place.write("in.jsonl", format!("{words}\n"));
    let ran = place.ok("fingerprint in.jsonl --features words --recipe y.toml");
    assert_eq!(rows(ran.text()), [["a", "c900e2b2db488951"]]);
}

#[test]
fn words_are_listed_with_their_weights() {
    let place = place();
    let ran = place.ok("segment --literal 阿蛮，清早的渡口。阿蛮 --recipe y.toml");
    assert_eq!(ran.text(), "id\ttokens\n1\t阿蛮 清早 渡口 阿蛮\n");
    let ran = place.ok(
        "segment --literal 阿蛮，清早的渡口。阿蛮 --weights --recipe y.toml --set simhash.top=2",
    );
    assert_eq!(
        ran.text(),
        "id\tterm\tcount\tweight\tpart\n1\t阿蛮\t2\t12\t\n1\t清早\t1\t4\t\n"
    );
    let ran = place.ok("compare --literal 清早的老船 清早老船 --recipe y.toml --json");
    assert!(ran.text().contains("c900e2b2db488951"), "{}", ran.text());
}

#[test]
fn index_contains_the_yanyiwu_tables() {
    let place = place();
    place.write("in.jsonl", jsonl([("long", LONG), ("short", "渡口边上")]));
    place.ok("index build lib in.jsonl --texts --distance 3 --recipe y.toml");
    for name in ["words", "model", "idf", "stop", "y.toml"] {
        std::fs::remove_file(place.path(name)).unwrap();
    }
    let found = place.ok("search lib in.jsonl");
    assert_eq!(
        rows(found.text()),
        [["long", "long", "0"], ["short", "short", "0"]]
    );
    place.ok("index verify lib");
}

#[test]
fn near_duplicates_are_found_by_their_words() {
    let place = place();
    let edited = LONG.replace("abc", "ab");
    place.write(
        "in.jsonl",
        jsonl([
            ("a", LONG),
            ("b", &edited),
            ("c", "渡口清早"),
            ("none", "船"),
            ("too", "的船"),
        ]),
    );
    for method in ["auto", "join", "minhash", "simhash --distance 20"] {
        place.ok(&format!(
            "dedup in.jsonl -o out.jsonl --recipe y.toml --method {method} --threshold 0.7"
        ));
        assert_eq!(
            place.ids("out.jsonl"),
            ["a", "c", "none", "too"],
            "{method}"
        );
    }
}

#[test]
fn bare_name_and_bad_tables_are_refused() {
    let place = place();
    place.write("in.jsonl", jsonl([("a", LONG)]));
    place.refused(
        "fingerprint in.jsonl --recipe yanyiwu",
        &["its tables are files", "dictionary = \"jieba.dict.utf8\""],
    );
    place.write("bad", "渡口 2\n清早\n");
    place.refused(
        "fingerprint in.jsonl --recipe y.toml --set yanyiwu.idf=bad",
        &["bad:2: a line is a word, a space, its idf"],
    );
    place.refused(
        "fingerprint in.jsonl --recipe y.toml --set yanyiwu.user=missing",
        &["yanyiwu.user: cannot read missing"],
    );
}
