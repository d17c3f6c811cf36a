//! `segment`, `idf`, `--set`, and recipes with files.

use crate::support::{Numbers, Place, corpus_jsonl, jsonl, rows};

/// Returns a corpus in which some words are rare.
fn corpus() -> String {
    let mut numbers = Numbers::new(11);
    let words = [
        "船长",
        "缆绳",
        "清华大学",
        "北京",
        "ferry",
        "island",
        "解开",
        "岛上",
        "的",
        "了",
    ];
    let documents: Vec<_> = (0..400)
        .map(|at| {
            let count = 3 + numbers.below(30);
            let text: Vec<_> = (0..count)
                .map(|_| words[numbers.below(words.len()).min(numbers.below(words.len()))])
                .collect();
            (format!("d{at}"), text.join(["", "，", " "][at % 3]))
        })
        .collect();
    corpus_jsonl(&documents)
}

#[test]
fn tokens_of_a_text_given_on_the_command_line() {
    let place = Place::new();
    for (recipe, words) in [
        ("", "我 来到 北京 清华大学"),
        (
            "--recipe jieba-full",
            "我 来到 北京 清华 清华大学 华大 大学",
        ),
        ("--recipe default", "我 来 到 北 京 清 华 大 学"),
        ("--set filter.least_characters=3", "清华大学"),
    ] {
        let ran = place.ok(&format!("segment --literal 我來到北京清華大學 {recipe}"));
        assert_eq!(ran.text(), format!("id\ttokens\n1\t{words}\n"));
        assert_eq!(ran.err, "");
    }
    let ran = place.ok("segment --literal 船长船长Ferry --weights --literal x --recipe jieba");
    assert_eq!(
        ran.text(),
        "id\tterm\tcount\tweight\tpart\n1\t船长\t2\t2\tn\n1\tferry\t1\t1\teng\n2\tx\t1\t1\teng\n"
    );
}

#[test]
fn segment_rejects_bad_rows_at_any_threads() {
    let place = Place::new();
    place.write("in.jsonl", corpus());
    for what in ["", "--weights"] {
        let one = place.ok(&format!("segment in.jsonl --threads 1 {what}"));
        for threads in [2, 7] {
            let ran = place.ok(&format!("segment in.jsonl --threads {threads} {what}"));
            assert_eq!(ran.out, one.out);
        }
    }
    assert_eq!(rows(place.ok("segment in.jsonl").text()).len(), 400);
    place.write(
        "bad.jsonl",
        "{\"text\": \"a\"}\nnothing\n{\"text\": \"b\"}\n",
    );
    let ran = place.run("segment bad.jsonl --rejected bad.txt");
    assert_eq!(ran.code, Some(1));
    assert_eq!(ran.text(), "id\ttokens\n1\ta\n3\tb\n");
    assert_eq!(place.read("bad.txt"), "nothing\n");
    place.refused(
        "segment in.jsonl --features f",
        &["--features f", "leave it out"],
    );
    place.refused("segment", &["<IN>"]);
}

#[test]
fn learned_table_does_not_depend_on_threads() {
    let place = Place::new();
    place.write("in.jsonl", corpus());
    for recipe in ["jieba", "characters-3", "default"] {
        let line = format!("idf in.jsonl --recipe {recipe}");
        place.ok(&format!("{line} -o one.tsv --threads 1"));
        place.ok(&format!("{line} -o many.tsv --threads 5"));
        assert_eq!(place.read("one.tsv"), place.read("many.tsv"));
        assert_eq!(place.ok(&line).text(), place.read("one.tsv"));
        // The table contains the same terms: a document of which all terms are known has a weight for each.
        let weighed = format!(
            "fingerprint in.jsonl --recipe {recipe} --set simhash.weights=tfidf \
             --set simhash.table=one.tsv --set simhash.top=5"
        );
        let one = place.ok(&format!("{weighed} --threads 1"));
        assert_eq!(place.ok(&format!("{weighed} --threads 3")).out, one.out);
        assert_ne!(
            place
                .ok(&format!("fingerprint in.jsonl --recipe {recipe}"))
                .out,
            one.out
        );
    }
    let table = place.read("one.tsv");
    let head: Vec<_> = table.lines().take(6).collect();
    assert_eq!(
        (head[0], head[1]),
        ("# lookalike idf 1", "# recipe default-1")
    );
    assert!(
        head[2].starts_with("# terms ") && head[2].len() == 24,
        "{head:?}"
    );
    assert_eq!(
        (head[3], head[5]),
        ("# documents 400", "term\tdocuments\tidf")
    );
    assert_eq!(head[4], format!("# rows {}", table.lines().count() - 6));
}

#[test]
fn tables_are_pruned_and_merged_per_recipe() {
    let place = Place::new();
    let all = corpus();
    let lines: Vec<_> = all.lines().collect();
    place.write("all.jsonl", &all);
    place.write("a.jsonl", lines[..150].join("\n"));
    place.write("b.jsonl", lines[150..].join("\n"));
    place.ok("idf all.jsonl -o all.tsv");
    place.ok("idf a.jsonl -o a.tsv");
    place.ok("idf b.jsonl --merge a.tsv -o merged.tsv");
    assert_eq!(place.read("merged.tsv"), place.read("all.tsv"));
    let summary = place.summary("idf all.jsonl -o least.tsv --min-documents 100");
    assert_eq!(summary["counted"], 400);
    let least = place.read("least.tsv");
    let terms: Vec<_> = least.lines().skip(6).collect();
    assert_eq!(summary["terms"], terms.len() as u64);
    let all = place.read("all.tsv");
    assert!(all.lines().skip(6).zip(&terms).all(|(a, b)| a == *b));
    place.ok("idf --merge a.tsv -o alone.tsv");
    assert_eq!(place.read("alone.tsv"), place.read("a.tsv"));
    place.write("cut.tsv", all.trim_end().rsplit_once('\n').unwrap().0);
    place.refused(
        "idf --merge cut.tsv -o no.tsv",
        &["cut.tsv has", "was truncated or changed"],
    );
    let cut =
        "segment --literal x --weights --set simhash.weights=tfidf --set simhash.table=cut.tsv";
    place.refused(cut, &["cut.tsv has", "was truncated or changed"]);
    let documents = |line: &&str| line.split('\t').nth(1).unwrap().parse::<u64>().unwrap();
    assert!(!terms.is_empty() && terms.iter().all(|line| documents(line) >= 100));
    place.ok("idf all.jsonl -o top.tsv --top 3");
    assert_eq!(place.read("top.tsv").lines().count(), 9);
    place.refused(
        "idf b.jsonl --merge a.tsv --recipe default -o no.tsv",
        &["a.tsv was learned under the recipe jieba", "default-1"],
    );
    place.refused(
        "fingerprint b.jsonl --set simhash.weights=tfidf --set simhash.table=a.tsv",
        &[
            "a.tsv was learned under the recipe jieba",
            "has other terms",
        ],
    );
    place.refused("idf b.jsonl -o t.tsv.gz", &["t.tsv.gz", "another format"]);
    place.refused("idf b.jsonl --merge b.jsonl", &["b.jsonl is not a table"]);
    assert!(!place.has("no.tsv") && !place.has("t.tsv.gz"));
}

#[test]
fn changed_recipe_is_printed_and_reused() {
    let place = Place::new();
    place.write("stop.txt", "的\n了\n");
    place.write("user.txt", "岛上船长 5 n\n");
    let set = "--set filter.stopwords=stop.txt --set segment.user=user.txt --set name=mine";
    let printed = place.ok(&format!("recipe jieba {set}"));
    place.write("mine.toml", printed.text());
    assert_eq!(place.ok("recipe mine.toml").text(), printed.text());
    let ran = place.ok("segment --literal 岛上船长的缆绳 --recipe mine.toml");
    assert_eq!(ran.text(), "id\ttokens\n1\t岛上船长 缆绳\n");
    place.write("stop.txt", "了\n");
    place.refused(
        "segment --literal x --recipe mine.toml",
        &["stop.txt has the digest", "[files] says"],
    );
    place.write("stop.txt", "的\n了\n");
    place.write("user.txt", "岛上船长 many n\n岛 0\n");
    place.refused(
        "segment --literal x --set segment.user=user.txt",
        &["user.txt:1:"],
    );
    place.refused("recipe --set ngram=3", &["--set changes a recipe"]);
    place.refused(
        "recipe default --set ngrams=3",
        &["--set ngrams=3", "unknown field"],
    );
    place.refused("recipe default --set filter.parts=n", &["parts of speech"]);
    place.refused(
        "recipe characters-3 --set filter.stopwords=zh",
        &["[filter] is for words"],
    );
}

/// An index contains the files of its recipe: it needs neither these files nor the directory in which it was
/// built.
#[test]
fn index_contains_its_tables() {
    let place = Place::new();
    place.write("in.jsonl", corpus());
    place.write("stop.txt", "的\n");
    place.ok("idf in.jsonl -o idf.tsv --set filter.stopwords=stop.txt");
    let set = "--recipe jieba --set simhash.weights=tfidf --set simhash.table=idf.tsv \
               --set simhash.top=8 --set filter.stopwords=stop.txt";
    place.ok(&format!(
        "index build news.lib in.jsonl --texts --distance 8 {set}"
    ));
    let before = place.ok("search news.lib in.jsonl");
    let found = place.ok(&format!("search news.lib in.jsonl {set}"));
    assert_eq!(found.out, before.out);
    std::fs::remove_file(place.path("idf.tsv")).unwrap();
    std::fs::remove_file(place.path("stop.txt")).unwrap();
    std::fs::create_dir(place.path("elsewhere")).unwrap();
    std::fs::rename(place.path("news.lib"), place.path("elsewhere/news.lib")).unwrap();
    assert_eq!(
        place.ok("search elsewhere/news.lib in.jsonl").out,
        before.out
    );
    place.ok("index verify elsewhere/news.lib");
    place.write(
        "more.jsonl",
        jsonl([("new", "船长把缆绳解开了，清华大学的ferry")]),
    );
    place.ok("index add elsewhere/news.lib more.jsonl");
    let new = place.ok("search elsewhere/news.lib more.jsonl --nearest 1");
    assert!(new.text().contains("new\tnew\t0"), "{}", new.text());
    place.refused(
        "search elsewhere/news.lib in.jsonl --recipe jieba",
        &["jieba"],
    );
    // A damaged table is reported.
    let names = std::fs::read_dir(place.path("elsewhere/news.lib")).unwrap();
    let tables: Vec<_> = names
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|it| it == "table"))
        .collect();
    assert_eq!(tables.len(), 2);
    std::fs::write(&tables[0], "x\n").unwrap();
    place.refused("search elsewhere/news.lib in.jsonl", &["has the digest"]);
    // Building the index again leaves no table behind.
    place.ok("index build elsewhere/news.lib in.jsonl --force");
    assert!(!tables[0].exists() && !tables[1].exists());
}

#[test]
fn equal_terms_of_a_table_must_agree() {
    let place = Place::new();
    let by = "segment --literal x --weights --recipe words-1 --set simhash.weights=given";
    let list = format!("{by} --set simhash.table=t.tsv");
    place.write("t.tsv", "Ferry\t2\nother\t3\nFERRY\t2\n");
    place.ok(&list);
    place.write("t.tsv", "# mine\nFerry\t2\nother\t3\nferry\t2.5\n");
    place.refused(
        &list,
        &["t.tsv:4: 'ferry' weighs 2.5, and 'Ferry' on line 2 weighs 2"],
    );
    let levels = list.replace("given", "levels");
    place.write("t.tsv", "學\t2\n学\t2\n");
    place.ok(&levels);
    place.write("t.tsv", "學\t2\n学\t4\n");
    place.refused(
        &levels,
        &["t.tsv:2: '学' weighs 4, and '學' on line 1 weighs 2"],
    );
}

#[test]
fn schemes_refuse_values_they_replace() {
    let place = Place::new();
    for (line, said) in [
        (
            "recipe default --set scheme=1e0ng",
            "has markup, normalize, tokens, ngram as well",
        ),
        (
            "recipe seomoz --set tokens=words --set ngram=2",
            "scheme = \"seomoz\" decides over all between a text and its features, but the recipe \
             has tokens, ngram as well",
        ),
    ] {
        place.refused(
            line,
            &[said, "built-in recipes with a scheme are 1e0ng, seomoz"],
        );
    }
}

#[test]
fn features_format_is_listed_only_if_accepted() {
    let place = Place::new();
    place.write("in.jsonl", "{\"id\":\"a\",\"text\":\"x\"}\n");
    for (command, inputs) in [
        ("segment", "in.jsonl"),
        ("idf", "in.jsonl"),
        ("compare", "in.jsonl in.jsonl"),
    ] {
        let help = place.ok(&format!("{command} --help"));
        assert!(!help.text().contains("--features"), "{command}");
        let refused = format!("{command} {inputs} --features f");
        place.refused(&refused, &["--features", "leave it out"]);
    }
    assert!(place.ok("dedup --help").text().contains("--features"));
}

/// Texts in which no feature has a weight do not match for that reason, but only if they are equal.
#[test]
fn weightless_texts_match_equal_texts() {
    let place = Place::new();
    place.write("t.tsv", "的\t0\n了\t0\n不\t0\n是\t0\n");
    place.write(
        "in.jsonl",
        [
            "的 了 不",
            "不 是 的",
            "不 是 的",
            "的 北京 了 大学",
            "北京 不 大学",
        ]
        .iter()
        .enumerate()
        .map(|(at, text)| format!("{{\"id\":\"{at}\",\"text\":\"{text}\"}}\n"))
        .collect::<String>(),
    );
    let set = "--recipe jieba --set simhash.weights=given --set simhash.table=t.tsv";
    let prints = place.ok(&format!("fingerprint in.jsonl {set}"));
    let column = |row: &str| row.split('\t').nth(1).unwrap().to_owned();
    let prints: Vec<_> = prints.text().lines().skip(1).map(column).collect();
    assert_eq!(prints[..3], ["-", "-", "-"]);
    assert_eq!(prints[3], prints[4]);
    place.ok(&format!(
        "pairs in.jsonl -o p.tsv --distinct {set} --method simhash --distance 0 --verify none"
    ));
    let pairs = place.read("p.tsv");
    let pairs: Vec<_> = pairs.lines().skip(1).collect();
    // Of equal texts, one stands for all.
    assert_eq!(pairs, ["3\t4\t1\tin.jsonl\t4\tin.jsonl\t5"]);
    let compared = place.ok(&format!(
        "compare in.jsonl#0 in.jsonl#1 {set} --method simhash --verify none"
    ));
    assert!(compared.text().contains("without a weighted feature"));
}
