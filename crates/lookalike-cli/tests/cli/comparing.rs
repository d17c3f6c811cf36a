//! `lookalike compare`.

use serde_json::Value;

use crate::reporting::read_report;
use crate::support::{Place, jsonl};

const CATS: [&str; 2] = ["the cat sat on the mat", "the cat sat on a mat"];
const DINNER: [&str; 2] = [
    "你妈妈喊你回家吃饭哦，回家罗回家罗",
    "你妈妈叫你回家吃饭啦，回家罗回家罗",
];

/// Writes a.txt and b.txt, and returns the JSON of `compare`.
fn compared([a, b]: [&str; 2], options: &str) -> (Place, Value) {
    let place = Place::new();
    place.write("a.txt", a);
    place.write("b.txt", b);
    let ran = place.ok(&format!("compare a.txt b.txt --json {options}"));
    let said = serde_json::from_slice(&ran.out).unwrap();
    (place, said)
}

#[test]
fn every_step_is_shown() {
    let (place, _) = compared(CATS, "");
    let said = place
        .ok("compare a.txt b.txt --recipe words-1")
        .text()
        .to_owned();
    for words in [
        "recipe words-1",
        "the cat sat on [-the-]{+a+} mat",
        "the | cat | sat | on | a | mat",
        "Heaviest features of A (5 of 5)",
        "Sums of the votes",
        "Fingerprints in 4 blocks: distance 6",
        "Jaccard                              0.8333  features: 5 and 6, 5 shared",
        "1 edit, 6 words in the longer",
        "They match: found by join; Jaccard 0.8333 ≥ the threshold 0.75.",
    ] {
        assert!(said.contains(words), "no '{words}' in:\n{said}");
    }
}

#[test]
fn figures_equal_those_of_other_commands() {
    let (place, said) = compared(DINNER, "--verify levenshtein");
    assert_eq!(said["figures"]["levenshtein"]["value"], 0.875);
    assert_eq!(
        (&said["match"], &said["method"]),
        (&true.into(), &"join".into())
    );
    assert_eq!(said["similarity"], 0.875);
    place.write("both.jsonl", jsonl([("a", DINNER[0]), ("b", DINNER[1])]));
    let prints = place.ok("fingerprint both.jsonl").text().to_owned();
    for (id, side) in [("a", &said["a"]), ("b", &said["b"])] {
        let line = format!("{id}\t{}\n", side["fingerprint"].as_str().unwrap());
        assert!(prints.contains(&line), "no {line} in {prints}");
        let sums: Vec<f64> = serde_json::from_value(side["sums"].clone()).unwrap();
        let bits = side["bits"].as_str().unwrap();
        for (sum, bit) in sums.into_iter().zip(bits.chars()) {
            assert!(sum == 0.0 || (sum > 0.0) == (bit == '1'));
        }
        assert!(side["tie"]["feature"].is_string(), "{}", side["tie"]);
    }
    let pairs = place
        .ok("pairs both.jsonl --threshold 0.5")
        .text()
        .to_owned();
    let jaccard = said["figures"]["jaccard"]["value"].as_f64().unwrap();
    assert!(pairs.contains(&format!("a\tb\t{jaccard}")), "{pairs}");
    let apart = said["blocks"].as_array().unwrap().iter();
    let apart: u64 = apart.map(|block| block["distance"].as_u64().unwrap()).sum();
    assert_eq!(said["distance"], apart);
    for (distance, widths) in [(2, &[21, 21, 22][..]), (4, &[12, 13, 13, 13, 13])] {
        let (_, said) = compared(DINNER, &format!("--method simhash --distance {distance}"));
        let blocks = said["blocks"].as_array().unwrap().iter();
        let found: Vec<_> = blocks
            .map(|block| block["a"].as_str().unwrap().len())
            .collect();
        assert_eq!(found, widths);
    }
}

#[test]
fn fingerprints_are_compared_without_texts() {
    let place = Place::new();
    let articles = "1000010010101101111111100000101011010001001111100001001011001011 \
                    1000010010101101011111100000101011010001001111100001101010001011";
    for (line, distance) in [
        ("--digits binary 10101 00110", 3),
        ("--digits binary 101011 101000", 2),
        ("--digits binary 1 0", 1),
        (&format!("--digits binary {articles}")[..], 3),
        ("ff00ff00ff00ff00 0xff00ff00ff00ff0f", 4),
        ("--digits decimal 18446744073709551615 -1", 0),
        (
            "--digits decimal 340282366920938463463374607431768211455 0",
            128,
        ),
    ] {
        let ran = place.ok(&format!("compare --json --fingerprints {line}"));
        let said: Value = serde_json::from_slice(&ran.out).unwrap();
        assert_eq!(said["distance"], distance, "{line}");
        let bits = said["a"]["bits"].as_str().unwrap().len() as u64;
        assert_eq!(said["match"], distance <= 3.min(bits - 1), "{line}");
        let blocks = said["blocks"].as_array().unwrap().iter();
        let apart: u64 = blocks
            .map(|block| block["distance"].as_u64().unwrap())
            .sum();
        assert_eq!(apart, distance, "{line}");
    }
    let shown = place.ok("compare --fingerprints --digits binary 10101 00110 --distance 2");
    assert_eq!(
        shown.text(),
        "Fingerprints in 3 blocks: distance 3\n  A   1 01 01  15\n  B   0 01 10  06\n      ^    ^^\n      \
         1 0  2\n\nThey do not match: they differ in 3 bits, more than the distance 2.\n"
    );
    place.refused("compare --fingerprints 12 xyz", &["'xyz'", "hexadecimal"]);
    place.refused("compare --fingerprints 12 -", &["without a fingerprint"]);
    place.refused(
        "compare --fingerprints 1 2 --distance 4",
        &["--distance is 4", "4 bits"],
    );
    place.refused(
        "compare --fingerprints 12 13 --verify cosine",
        &["--verify"],
    );
    place.refused(
        "compare --fingerprints 12 13 --text body",
        &["--fingerprints", "--text"],
    );
    place.refused("compare --digits hex 12 13", &["--fingerprints"]);
    let long = "1".repeat(129);
    place.refused(
        &format!("compare --fingerprints --digits binary {long} 1"),
        &["at most 128 bits", "129"],
    );
}

#[test]
fn given_hashes_and_weights_show_every_step() {
    let place = Place::new();
    let shown = place.ok("compare --hashes CSDN=100101:4%20blog=101011:5 \
         CSDN=100101:4%20blog=101011:3%20new=010011:1.5");
    for line in [
        "  CSDN       4  100101     4  -4  -4   4  -4   4\n",
        "  new      1.5  010011   -1.5 1.5 -1.5 -1.5 1.5 1.5\n",
        "Sums of the votes, from the highest bit; above 0 gives 1\n",
        "  A       9    -9     1    -1     1     9\n",
        "  B     5.5  -5.5  -2.5  -0.5   0.5   8.5\n",
        "  A   1 01 0 11  2b\n  B   1 00 0 11  23\n",
        "They match: they differ in 1 bit, at most the distance 3.\n",
    ] {
        assert!(shown.text().contains(line), "no {line} in {}", shown.text());
    }
    let json = place.ok("compare --json --hashes a=10011100:5 a=10011100:1 --distance 2");
    let said: Value = serde_json::from_slice(&json.out).unwrap();
    assert_eq!(
        (&said["distance"], &said["match"]),
        (&0.into(), &true.into())
    );
    assert_eq!(said["a"]["features"][0]["votes"][0], 5.0);
    assert_eq!(said["b"]["bits"], "10011100");
    for (line, said) in [
        ("--hashes a=10:1 a=1:1", &["A have 2 bits", "B 1"][..]),
        ("--hashes a=10:1 a=11:1", &["'a'", "10 in A", "11 in B"]),
        ("--hashes a=10:1 b", &["B:", "'b'", "TOKEN=BITS:WEIGHT"]),
        (
            "--hashes a=10:1 a=10:1 --distance 2",
            &["--distance is 2", "2 bits"],
        ),
        (
            "--hashes a=10:1 a=10:1 --recipe words-1",
            &["--hashes", "--recipe"],
        ),
        (
            "--hashes a=10:1 a=10:1 --fingerprints",
            &["--hashes", "--fingerprints"],
        ),
    ] {
        place.refused(&format!("compare {line}"), said);
    }
}

#[test]
fn java_recipe_shows_the_values_of_its_blocks() {
    let place = Place::new();
    place.write("a.txt", "This is a test string for testing");
    place.write("b.txt", "This is a test string for testing abcdef");
    let line = "compare a.txt b.txt --recipe java-classic --method simhash";
    let json = place.ok(&format!("{line} --json"));
    let said: Value = serde_json::from_slice(&json.out).unwrap();
    let blocks = &said["sub_by_distance"];
    assert_eq!(
        blocks["a"]["values"],
        serde_json::json!(["4387", "14887", "2417", "45057"])
    );
    assert_eq!(blocks["a"]["listed_by_class"], 4);
    let shown = place.ok(line);
    let heading = "Values of subByDistance(3): 4 blocks from the lowest bits on";
    assert!(shown.text().contains(heading), "{}", shown.text());
    assert!(
        shown.text().contains("  A    4387 14887  2417 45057\n"),
        "{}",
        shown.text()
    );
    let five = place.ok(&format!("{line} --distance 4 --json"));
    let said: Value = serde_json::from_slice(&five.out).unwrap();
    assert_eq!(
        said["sub_by_distance"]["b"]["values"]
            .as_array()
            .unwrap()
            .len(),
        5
    );
    // Under other recipes, fingerprints are cut from the highest bit on.
    let (_, said) = compared(CATS, "--method simhash");
    assert!(said["sub_by_distance"].is_null());
}

#[test]
fn votes_list_the_heaviest_features() {
    let long: Vec<_> = (0..3000).map(|word| format!("w{word}")).collect();
    let (_, said) = compared([&long.join(" "), "x"], "--recipe words-1");
    let features = said["a"]["features"].as_array().unwrap();
    let voting = features
        .iter()
        .filter(|feature| feature["votes"].is_array())
        .count();
    assert_eq!((features.len(), voting), (3000, 1000));
}

#[test]
fn other_tools_recipes_show_their_own_steps() {
    let (_, said) = compared(
        ["How are you? I AM fine. Thanks. And you?", "x"],
        "--recipe 1e0ng",
    );
    assert_eq!(said["a"]["fingerprint"], "bff3cd8a201e681a");
    assert_eq!(said["a"]["normalized"], "howareyouiamfinethanksandyou");
    assert_eq!(said["a"]["tokens"][0], "howa");
    let (_, said) = compared(
        [CATS[0], CATS[1]],
        "--recipe datasketch-affine32 --method minhash",
    );
    assert_eq!(said["a"]["signature"].as_array().unwrap().len(), 128);
}

#[test]
fn texts_come_from_arguments_files_and_rows() {
    let place = Place::new();
    place.write("some.jsonl", jsonl([("x#1", CATS[0]), ("y", CATS[1])]));
    place.write("one.jsonl", jsonl([("x", CATS[0])]));
    place.write("two#three.txt", CATS[1]);
    let distance = |line: &str| {
        let ran = place.ok(&format!("compare {line} --json"));
        let said: Value = serde_json::from_slice(&ran.out).unwrap();
        said["distance"].as_u64().unwrap()
    };
    let expected = distance("some.jsonl#x#1 some.jsonl#y");
    assert!(expected > 0);
    assert_eq!(distance("one.jsonl two#three.txt"), expected);
    assert_eq!(distance("some.jsonl#y two#three.txt"), 0);
    assert_eq!(distance("--recipe words-1 --literal same same-"), 0);
    let ran = place.run_with("compare - two#three.txt --json", CATS[0].as_bytes());
    let said: Value = serde_json::from_slice(&ran.out).unwrap();
    assert_eq!(said["distance"], expected);
    place.refused(
        "compare some.jsonl one.jsonl",
        &["several documents", "some.jsonl#ID"],
    );
    place.refused(
        "compare some.jsonl#z one.jsonl",
        &["no document with the id 'z'"],
    );
    place.refused(
        "compare missing.txt one.jsonl",
        &["there is no file missing.txt", "--literal"],
    );
    place.write("empty.jsonl", "");
    place.refused(
        "compare empty.jsonl one.jsonl",
        &["empty.jsonl", "no document"],
    );
    place.write("bad.txt", b"\xff\xfe\xfd");
    place.refused("compare bad.txt one.jsonl", &["bad.txt"]);
}

#[test]
fn nearly_empty_texts_are_compared() {
    for (a, b, why) in [
        ("", "", "matches nothing"),
        ("a", "b", "too short for a feature"),
        ("!", "!", "equal after normalisation"),
    ] {
        let (_, said) = compared([a, b], "");
        let said_why = said["why"].as_str().unwrap();
        assert!(said_why.contains(why), "{a:?} {b:?}: {said_why}");
        assert_eq!(said["match"], Value::Bool(why.starts_with("equal")));
    }
}

#[test]
fn page_is_complete_and_escaped() {
    let (place, _) = compared(["<script>alert('a')</script> & more", "\u{1b}[2J more"], "");
    place.ok("compare a.txt b.txt --html page.html");
    let page = place.read("page.html");
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
    assert!(!page.contains("<script>alert") && !page.contains('\u{1b}'));
    let data = read_report(&place, "page.html");
    assert_eq!(data["kind"], "compare");
    let text = data["comparison"]["a"]["text"].as_str().unwrap();
    assert_eq!(text, "<script>alert('a')</script> & more");
    place.refused(
        "compare a.txt b.txt --html missing/page.html",
        &["missing/page.html"],
    );
}

#[test]
fn texts_below_threshold_have_a_similarity() {
    let (_, said) = compared([CATS[0], CATS[1]], "--threshold 0.9");
    assert_eq!(
        (&said["match"], &said["similarity"]),
        (&false.into(), &said["figures"]["jaccard"]["value"])
    );
    let (_, said) = compared([CATS[0], CATS[1]], "--threshold 0.9 --verify levenshtein");
    assert_eq!(said["similarity"], said["figures"]["levenshtein"]["value"]);
    for (texts, options) in [
        ([CATS[0], CATS[1]], "--method exact"),
        ([CATS[0], "cat"], ""),
        ([CATS[0], ""], ""),
        (
            [CATS[0], "we all scream for ice cream"],
            "--method sentences --verify none",
        ),
    ] {
        let (_, said) = compared(texts, options);
        assert_eq!(
            (&said["match"], &said["similarity"]),
            (&false.into(), &0.0.into()),
            "{options}"
        );
    }
}

#[test]
fn longest_sentences_of_both_are_shown() {
    let texts = [
        "A short one. This sentence is in both of them. And here the two texts differ.",
        "This sentence is IN both of them! And here the two texts are not the same. No.",
    ];
    let (place, said) = compared(texts, "--method sentences --sentences 2");
    let shown = |side: &str| -> Vec<(String, u64)> {
        let all = said[side]["sentences"].as_array().unwrap();
        let shown = all.iter().map(|it| {
            let text = it["text"].as_str().unwrap().to_owned();
            (text, it["characters"].as_u64().unwrap())
        });
        shown.collect()
    };
    let sentence = |text: &str, characters| (text.to_owned(), characters);
    let in_a = [
        sentence("This sentence is in both of them.", 32),
        sentence("And here the two texts differ.", 29),
    ];
    let in_b = [
        sentence("And here the two texts are not the same.", 39),
        sentence("This sentence is IN both of them!", 32),
    ];
    assert_eq!((shown("a"), shown("b")), (in_a.into(), in_b.into()));
    let hash = said["a"]["sentences"][0]["hash"].as_str().unwrap();
    assert_eq!(said["b"]["sentences"][1]["hash"], hash);
    let by = "compare a.txt b.txt --method sentences --sentences 2";
    let words = place
        .ok(&format!("{by} --html page.html"))
        .text()
        .to_owned();
    for line in [
        format!("=   32  {hash}  This sentence is in both of them."),
        format!("=   32  {hash}  This sentence is IN both of them!"),
        "  And here the two texts are not the same.\n".to_owned(),
        "their longest sentences differ".to_owned(),
    ] {
        assert!(words.contains(&line), "no '{line}' in:\n{words}");
    }
    assert!(!words.contains("A short one.\n"), "{words}");
    let page = read_report(&place, "page.html");
    let expected = serde_json::json!(["This sentence is IN both of them!", 32, hash, true]);
    assert_eq!(page["sentences"][1][1], expected);
    // Other methods do not use sentences.
    let (_, said) = compared(texts, "");
    assert_eq!(said["a"]["sentences"], Value::Null);
}

#[test]
fn compared_sketches_equal_the_fingerprints() {
    let (place, said) = compared(CATS, "--recipe words-1");
    place.write("both.jsonl", jsonl([("a", CATS[0]), ("b", CATS[1])]));
    let printed = |method: &str| -> Vec<Vec<u64>> {
        place.ok(&format!(
            "fingerprint both.jsonl --recipe words-1 --method {method} -o f.jsonl"
        ));
        let rows = place.read("f.jsonl");
        let rows = rows.lines().map(|row| {
            let row: Value = serde_json::from_str(row).unwrap();
            serde_json::from_value(row["fingerprint"].clone()).unwrap()
        });
        rows.collect()
    };
    let (minima, smallest) = (printed("minhash"), printed("bottomk"));
    for (side, (minima, smallest)) in ["a", "b"].into_iter().zip(minima.iter().zip(&smallest)) {
        let side: &Value = &said[side];
        assert_eq!(side["signature"], Value::from(minima.clone()));
        assert_eq!(side["smallest"], Value::from(smallest.clone()));
    }
    let words = place.ok("compare a.txt b.txt --recipe words-1 --html page.html");
    let words = words.text();
    let slots = |side: &[u64]| -> String {
        let first = side[..8].iter().map(|slot| format!(" {slot:>10}"));
        first.collect()
    };
    // Only the second text has a feature of its own.
    let only = smallest[1]
        .iter()
        .find(|hash| !smallest[0].contains(hash))
        .unwrap();
    for line in [
        "MinHash: the first 8 of 128 slots; ".to_owned(),
        format!("\n  A  {}\n", slots(&minima[0])),
        format!("\n  B  {}\n", slots(&minima[1])),
        "smallest hashes of the union (6 of 6); in both texts: 5 of 6".to_owned(),
        format!("\n    B  {only:>20}  a\n"),
        format!("\n  A B  {:>20}  ", smallest[0][0]),
    ] {
        assert!(words.contains(&line), "no '{line}' in:\n{words}");
    }
    let page = read_report(&place, "page.html");
    let sample = page["smallest"].as_array().unwrap();
    assert!(sample.contains(&serde_json::json!([only.to_string(), false, true, "a"])));
    assert_eq!(sample.iter().filter(|it| it[1] == it[2]).count(), 5);
    assert_eq!(page["comparison"]["a"]["signature"][0], minima[0][0]);
}
