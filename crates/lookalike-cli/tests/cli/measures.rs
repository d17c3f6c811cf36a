//! Measures besides the Jaccard index, and other ways to find candidates.

use crate::support::{Numbers, Place, corpus_jsonl, jsonl, rows};

const SENTENCES: [&str; 4] = [
    "你妈妈喊你回家吃饭哦，回家罗回家罗",
    "你妈妈叫你回家吃饭啦，回家罗回家罗",
    "清晨六点，老船长已经把缆绳解开了",
    "你媽媽喊你回家吃飯哦 回家羅回家羅！",
];

/// The command of the articles: blocks of fingerprints as candidates, then edit distance.
#[test]
fn short_posts_by_blocks_and_levenshtein() {
    let place = Place::new();
    place.write("short.txt", SENTENCES.join("\n") + "\n");
    // The features are single characters, so that the fingerprints of the two sentences share a block.
    let recipe = place.ok("recipe words-1").text().to_owned();
    place.write("single.toml", recipe);
    let by = "--method simhash --candidates blocks --distance 7 --recipe single.toml";
    let command = format!("dedup short.txt {by} --verify levenshtein --threshold 0.8");
    place.ok(&format!("{command} -o out.txt --removed removed.tsv"));
    assert_eq!(
        place.read("out.txt"),
        [SENTENCES[0], SENTENCES[2]].join("\n") + "\n"
    );
    // Punctuation is not compared: 14 of 16 characters are equal.
    let expected = [
        ["2", "1", "0.875", "simhash", "0.8", "1"],
        ["4", "1", "1", "exact", "0.8", "1"],
    ];
    let removed = place.table("removed.tsv");
    let removed: Vec<_> = removed.iter().map(|row| &row[..6]).collect();
    assert_eq!(removed, expected);
    for (threshold, kept) in [("0.875", 2), ("0.876", 3)] {
        let ran = format!("dedup short.txt {by} --verify levenshtein --threshold {threshold}");
        place.ok(&format!("{ran} -o out.txt"));
        assert_eq!(place.read("out.txt").lines().count(), kept, "{threshold}");
    }
    let why = "explain removed.tsv 2 short.txt --recipe single.toml --verify levenshtein";
    let said = place.ok(why).text().to_owned();
    assert!(
        said.contains("the recorded similarity is that of") && said.contains("0.8750"),
        "{said}"
    );
}

/// Returns 1 − edits ÷ length of the longer text, by the textbook algorithm.
fn plain_levenshtein(a: &str, b: &str) -> f64 {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for (row, x) in a.iter().enumerate() {
        let mut left = row + 1;
        let mut line = vec![left];
        for (column, y) in b.iter().enumerate() {
            let kept_or_replaced = above[column] + usize::from(x != y);
            left = kept_or_replaced.min(above[column + 1] + 1).min(left + 1);
            line.push(left);
        }
        above = line;
    }
    1.0 - above[b.len()] as f64 / a.len().max(b.len()) as f64
}

/// Returns posts of 20 to 80 Chinese characters that normalisation does not change, three in a row of one
/// origin.
fn posts(numbers: &mut Numbers, origins: usize) -> Vec<String> {
    const CHARACTERS: &str = "山水日月天地人口手足花草木鱼鸟虫牛羊马犬雨雪春夏秋冬东西南北大小多少\
                              上下左右前中早明今年书画琴棋茶米菜豆金石土火江河海湖田林森村城市";
    let all: Vec<char> = CHARACTERS.chars().collect();
    let mut posts = Vec::new();
    for origin in 0..origins {
        let length = [20, 40, 80][origin % 3];
        let post: Vec<char> = (0..length).map(|_| all[numbers.below(all.len())]).collect();
        for edits in 0..3 {
            let mut edited = post.clone();
            for _ in 0..edits * (1 + origin % 4) {
                let at = numbers.below(edited.len());
                match numbers.below(3) {
                    0 => drop(edited.remove(at)),
                    1 => edited.insert(at, all[numbers.below(all.len())]),
                    _ => edited[at] = all[numbers.below(all.len())],
                }
            }
            posts.push(edited.into_iter().collect());
        }
    }
    posts
}

/// The same command finds the pairs that share one of four blocks of 16 bits and are similar, and no others.
#[test]
fn four_blocks_reach_their_stated_recall() {
    let place = Place::new();
    let posts = posts(&mut Numbers::new(3), 100);
    place.write("posts.txt", posts.join("\n") + "\n");
    let prints = place.ok("fingerprint posts.txt").text().to_owned();
    let prints: Vec<String> = rows(&prints)
        .into_iter()
        .map(|row| row[1].clone())
        .collect();
    let share = |a: &str, b: &str| (0..16).step_by(4).any(|at| a[at..at + 4] == b[at..at + 4]);
    let (mut expected, mut apart, mut unlike) = (Vec::new(), 0, 0);
    for b in 0..posts.len() {
        for a in 0..b {
            let shared = share(&prints[a], &prints[b]);
            // Only posts of one origin can be similar.
            if !shared && a / 3 != b / 3 {
                continue;
            }
            let similarity = plain_levenshtein(&posts[a], &posts[b]);
            match (shared, similarity >= 0.8) {
                (true, true) => expected.push((a + 1, b + 1, similarity)),
                (true, false) => unlike += 1,
                (false, similar) => apart += usize::from(similar),
            }
        }
    }
    assert!(
        expected.len() > 50 && apart > 50 && unlike > 0,
        "{} found, {apart} apart, {unlike} unlike",
        expected.len()
    );
    let by = "--method simhash --candidates blocks --verify levenshtein --threshold 0.8";
    let listed = place.ok(&format!("pairs posts.txt --all {by}"));
    let mut found: Vec<(usize, usize, f64)> = rows(listed.text())
        .iter()
        .map(|row| {
            (
                row[0].parse().unwrap(),
                row[1].parse().unwrap(),
                row[2].parse().unwrap(),
            )
        })
        .collect();
    found.sort_by_key(|&(a, b, _)| (b, a));
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(&expected) {
        assert_eq!((found.0, found.1), (expected.0, expected.1));
        assert!(
            (found.2 - expected.2).abs() < 1e-12,
            "{found:?} {expected:?}"
        );
    }
    // A post is kept unless a kept one before it matches.
    place.ok(&format!("dedup posts.txt {by} -o kept.txt"));
    let mut kept: Vec<usize> = Vec::new();
    for post in 1..=posts.len() {
        let has = |&earlier: &usize| expected.iter().any(|it| (it.0, it.1) == (earlier, post));
        if !kept.iter().any(has) {
            kept.push(post);
        }
    }
    let kept: Vec<&str> = kept.iter().map(|post| &*posts[post - 1]).collect();
    assert_eq!(place.read("kept.txt"), kept.join("\n") + "\n");
}

/// Returns the similarity of the second of two texts with the first, if it is removed.
fn similarity(texts: [&str; 2], options: &str) -> Option<f64> {
    let place = Place::new();
    place.write("in.jsonl", jsonl([("a", texts[0]), ("b", texts[1])]));
    place.ok(&format!("dedup in.jsonl {options} --removed removed.tsv"));
    let pairs = place.ok(&format!("pairs in.jsonl {options}"));
    let removed = place.table("removed.tsv").first().map(|row| row[2].clone());
    let listed = rows(pairs.text()).first().map(|row| row[2].clone());
    assert_eq!(removed, listed, "{options}");
    removed.map(|value| value.parse().unwrap())
}

#[test]
fn help_explains_every_measure() {
    let texts = [SENTENCES[0], SENTENCES[1]];
    let of = |options: &str| {
        similarity(
            texts,
            &format!("--recipe words-1 --method join --threshold 0.3 {options}"),
        )
    };
    assert_eq!(of("--verify levenshtein"), Some(14.0 / 16.0));
    assert_eq!(of("--verify levenshtein --unit words"), Some(14.0 / 16.0));
    assert_eq!(of("--verify indel"), Some(28.0 / 32.0));
    // The substring 回家罗回家罗 has 6 characters, and each text has 16.
    assert_eq!(of("--verify lcs"), Some(12.0 / 32.0));
    // 14 characters are common, and each text has two of its own: 32 of 34 by their squares.
    assert_eq!(of("--verify cosine"), Some(32.0 / 34.0));
    let english = ["the cat sat on the mat", "the cat sat on a mat"];
    let of = |options: &str| {
        similarity(
            english,
            &format!("--recipe words-1 --method join --threshold 0.3 {options}"),
        )
    };
    assert_eq!(of("--verify levenshtein"), Some(19.0 / 22.0));
    assert_eq!(of("--verify levenshtein --unit words"), Some(5.0 / 6.0));
    assert_eq!(of("--verify indel --unit words"), Some(10.0 / 12.0));
    assert_eq!(of("--verify lcs --unit words"), Some(8.0 / 12.0));
    // the 2, cat, sat, on, mat and the, cat, sat, on, a, mat.
    assert_eq!(of("--verify cosine"), Some(6.0 / 48f64.sqrt()));
}

#[test]
fn binary_weights_count_in_the_cosine() {
    let texts = ["the cat and the dog and the bird", "the cat and a dog"];
    let by = "--recipe words-1 --method join --threshold 0.3 --verify cosine";
    // the 3, cat, and 2, dog, bird; the, cat, and, a, dog: 7 / √(16 · 5), and 4 / √(5 · 5).
    assert_eq!(similarity(texts, by), Some(7.0 / 80f64.sqrt()));
    let binary = format!("{by} --set simhash.weights=binary");
    assert_eq!(similarity(texts, &binary), Some(4.0 / 5.0));
}

#[test]
fn edit_threshold_is_inclusive() {
    let [a, b] = [
        "abcdefghij klmnopqrs".to_owned(),
        "abcdefghij klmnopxyz".to_owned(),
    ];
    for (threshold, found) in [
        ("0.84", true),
        ("0.85", true),
        ("0.8500001", false),
        ("0.9", false),
    ] {
        let options = format!(
            "--recipe characters-3 --method join --verify levenshtein --threshold {threshold}"
        );
        assert_eq!(
            similarity([&a, &b], &options),
            found.then_some(0.85),
            "{threshold}"
        );
    }
}

#[test]
fn results_do_not_depend_on_threads() {
    let place = Place::new();
    place.write("in.jsonl", corpus_jsonl(&Numbers::new(8).corpus(1500)));
    for options in [
        "--method simhash --candidates blocks --verify levenshtein --threshold 0.7",
        "--method bottomk --threshold 0.7",
        "--method bottomk --verify none",
        "--method sentences --verify cosine --threshold 0.5",
        "--verify indel --unit words --threshold 0.8",
        "--verify lcs --unit words --threshold 0.6",
    ] {
        let run = |threads: usize| {
            place.ok(&format!(
                "dedup in.jsonl {options} --threads {threads} --removed r.tsv"
            ));
            place.read("r.tsv")
        };
        let one = run(1);
        assert!(one.lines().count() > 50, "{options}");
        assert_eq!((run(2), run(8)), (one.clone(), one), "{options}");
    }
}

#[test]
fn longest_sentences_find_reprints() {
    let body = "The ferry left the island at seven in the morning as it always does. Nobody on \
                the quay had seen the captain since the night before! What became of him is a \
                matter that the company does not discuss.";
    let place = Place::new();
    let reprint = format!("By our own reporter. {} Read more.", body.to_uppercase());
    place.write(
        "in.jsonl",
        jsonl([
            ("a", body),
            ("b", &reprint[..]),
            ("c", "Something else. Entirely."),
        ]),
    );
    place.ok("dedup in.jsonl --method sentences --verify none -o out.jsonl --removed r.tsv");
    assert_eq!(place.ids("out.jsonl"), ["a", "c"]);
    assert_eq!(place.table("r.tsv")[0][2..4], ["1", "sentences"]);
    place.ok("dedup in.jsonl --method sentences --verify containment -o out.jsonl");
    assert_eq!(place.ids("out.jsonl"), ["a", "c"]);
    // The reporter's line is the fourth longest sentence.
    place.ok("dedup in.jsonl --method sentences --sentences 4 --verify none -o out.jsonl");
    assert_eq!(place.ids("out.jsonl"), ["a", "b", "c"]);
    let printed = place.ok("fingerprint in.jsonl --method sentences");
    let table = rows(printed.text());
    assert_eq!(table[0][1], table[1][1]);
    assert_eq!(table[0][1].len(), 16);
    assert_ne!(table[0][1], table[2][1]);
    let said = place.ok("explain r.tsv b in.jsonl --verify none");
    assert!(
        said.text().contains("the recorded similarity is that of"),
        "{}",
        said.text()
    );
}

#[test]
fn bottom_k_finds_what_minhash_finds() {
    let place = Place::new();
    let corpus = Numbers::new(4).corpus(1200);
    place.write("in.jsonl", corpus_jsonl(&corpus));
    place.ok("dedup in.jsonl --method bottomk --removed b.tsv");
    place.ok("dedup in.jsonl --method join --removed j.tsv");
    let ids = |name: &str| {
        let mut ids: Vec<_> = place
            .table(name)
            .into_iter()
            .map(|row| row[0].clone())
            .collect();
        ids.sort();
        ids
    };
    let (found, all) = (ids("b.tsv"), ids("j.tsv"));
    let missed = all.iter().filter(|id| !found.contains(id)).count();
    assert!(missed * 50 <= all.len(), "{missed} of {}", all.len());
    assert!(place.read("b.tsv").contains("\tbottomk\t"));
    let printed = place.ok("fingerprint in.jsonl --method bottomk -o f.jsonl");
    assert!(
        printed.err.contains("at most 128 smallest hashes"),
        "{}",
        printed.err
    );
    let first: serde_json::Value =
        serde_json::from_str(place.read("f.jsonl").lines().next().unwrap()).unwrap();
    let hashes: Vec<u64> = serde_json::from_value(first["fingerprint"].clone()).unwrap();
    assert!(hashes.is_sorted() && !hashes.is_empty() && hashes.len() <= 128);
}

#[test]
fn indexes_are_searched_by_every_measure() {
    let place = Place::new();
    place.write(
        "lib.jsonl",
        jsonl([("a", SENTENCES[0]), ("c", SENTENCES[2])]),
    );
    place.write("q.jsonl", jsonl([("b", SENTENCES[1])]));
    place.ok("index build lib lib.jsonl --texts --plan blocks --distance 7 --recipe words-1");
    for (options, expected) in [
        ("--verify levenshtein", Some("0.875")),
        ("--verify indel --unit words", Some("0.875")),
        ("--verify lcs --threshold 0.375", Some("0.375")),
        ("--verify lcs --threshold 0.376", None),
        (
            "--verify cosine --threshold 0.94",
            Some("0.9411764705882353"),
        ),
        ("--verify levenshtein --threshold 0.876", None),
    ] {
        let found = place.ok(&format!("search lib q.jsonl --candidates blocks {options}"));
        let row = rows(found.text()).first().map(|row| row[2].clone());
        assert_eq!(row.as_deref(), expected, "{options}");
    }
    place.refused(
        "search lib q.jsonl --verify cosine --unit words",
        &["--unit", "lcs"],
    );
}

#[test]
fn texts_too_short_match_only_equal_texts() {
    let place = Place::new();
    let texts = [
        ("a", ""),
        ("b", "x"),
        ("c", "X!"),
        ("d", "y"),
        ("e", "!!"),
        ("f", "!!"),
        ("g", "??"),
    ];
    place.write("in.jsonl", jsonl(texts));
    for options in [
        "--verify levenshtein --threshold 0.1",
        "--method simhash --candidates blocks --verify indel --threshold 0.1",
        "--method bottomk --verify cosine --threshold 0.5",
        "--method sentences --verify none",
        "--method join --verify lcs --threshold 0.1",
    ] {
        place.ok(&format!("dedup in.jsonl {options} -o out.jsonl"));
        assert_eq!(
            place.ids("out.jsonl"),
            ["a", "b", "d", "e", "g"],
            "{options}"
        );
    }
}

#[test]
fn plan_report_states_what_is_compared() {
    let place = Place::new();
    for (options, said) in [
        (
            "--verify levenshtein --threshold 0.9",
            "in characters, >= 0.9, for pairs with a Jaccard index >= 0.6667",
        ),
        (
            "--verify levenshtein --threshold 0.5",
            "the lowest that is searched for",
        ),
        (
            "--method simhash --candidates blocks --verify cosine",
            "share one of 4 blocks of their 64 bits",
        ),
        ("--method sentences", "the same 3 longest sentences"),
        ("--method bottomk", "share one of their 4 smallest hashes"),
    ] {
        let text = place.ok(&format!("dedup --explain-plan {options}"));
        assert!(text.text().contains(said), "{options}: {}", text.text());
        let json = place.ok(&format!("dedup --explain-plan {options} --json"));
        serde_json::from_slice::<serde_json::Value>(&json.out).unwrap();
    }
}

#[test]
fn contradictory_options_are_refused() {
    let place = Place::new();
    place.write("in.jsonl", "{\"text\":\"a\",\"f\":[\"x\"]}\n");
    for (options, words) in [
        ("--unit words", &["--unit", "levenshtein"][..]),
        ("--candidates blocks", &["--method simhash"]),
        (
            "--method simhash --candidates blocks --verify none",
            &["--verify none"],
        ),
        ("--sentences 2", &["--method sentences"]),
        (
            "--method sentences --verify none --threshold 0.5",
            &["--threshold"],
        ),
        ("--features f --verify levenshtein", &["--unit words"]),
        ("--features f --method sentences", &["--features"]),
        (
            "--method bottomk --threshold 0.01",
            &["0.01", "smallest hashes"],
        ),
    ] {
        place.refused(&format!("dedup in.jsonl --dry-run {options}"), words);
    }
    place.refused(
        "fingerprint in.jsonl --sentences 2",
        &["--method sentences"],
    );
    place.ok("dedup in.jsonl --dry-run --features f --verify levenshtein --unit words");
}
