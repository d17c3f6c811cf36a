//! `--memory` of commands that make tables and indexes.

use crate::support::Place;

/// Rows of texts in which nearly every run of words is new.
fn write_texts(place: &Place, name: &str, documents: u64, words: u64) {
    let mut rows = String::new();
    for document in 0..documents {
        let word = |at: u64| {
            let number = lookalike::value_hash(&(document << 20 | at).to_le_bytes());
            format!("{:x}", number % 5000)
        };
        let words: Vec<String> = (0..words).map(word).collect();
        rows += &format!("{{\"text\":\"{}\"}}\n", words.join(" "));
    }
    place.write(name, rows);
}

#[test]
fn idf_keeps_its_limit_and_writes_the_same_table() {
    let place = Place::new();
    write_texts(&place, "in.jsonl", 12_000, 100);
    place.ok("idf in.jsonl --recipe words-5 -o all.tsv --threads 2");
    let line = "idf in.jsonl --recipe words-5 -o bounded.tsv --memory 240M --threads 2";
    let (done, peak) = place.summary_and_peak(line);
    assert!(
        done["spilled"]["bytes"].as_u64().unwrap() > 20_000_000,
        "{done}"
    );
    assert!(peak <= 240_000_000, "{peak}");
    assert!(place.bytes("all.tsv") == place.bytes("bounded.tsv"));
    let said = place.ok(line).err;
    assert!(said.contains("written to temporary files"), "{said}");
    place.refused(
        "idf in.jsonl --recipe words-5 -o no.tsv --memory 200M --threads 2",
        &["200 MB of memory are too little", "give 235 MB or more"],
    );
    let plan = place.ok("idf in.jsonl --recipe words-5 --explain-plan --memory 240M --threads 2");
    for said in ["out of core: about", "--memory 235M", "documents"] {
        assert!(plan.text().contains(said), "{}", plan.text());
    }
    let plan = place.ok("idf in.jsonl --recipe words-5 --explain-plan --memory 4G --threads 2");
    assert!(
        plan.text().contains("in memory, without"),
        "{}",
        plan.text()
    );
    assert!(!place.has("no.tsv"));
}

#[test]
fn a_full_disk_of_sorted_runs_is_reported() {
    let place = Place::new();
    write_texts(&place, "in.jsonl", 12_000, 100);
    let (program, line) = (
        env!("CARGO_BIN_EXE_lookalike"),
        "idf ../in.jsonl --recipe words-5 --memory 240M --threads 2 -o ../table.tsv",
    );
    let script = format!("TMPDIR=. {program} {line} > /dev/null; echo code $?; echo left $(ls -A)");
    if let Some((said, _)) = place.run_on_small_disk(1 << 20, &script) {
        assert!(
            said.contains("code 2") && said.ends_with("left\n"),
            "{said}"
        );
        assert!(!place.has("table.tsv"));
    }
}

#[test]
fn index_of_documents_keeps_its_limit_and_is_the_same() {
    let place = Place::new();
    write_texts(&place, "in.jsonl", 60_000, 60);
    write_texts(&place, "more.jsonl", 500, 60);
    let files = |name: &str| {
        let mut names: Vec<_> = std::fs::read_dir(place.path(name))
            .unwrap()
            .map(|file| file.unwrap().file_name().into_string().unwrap())
            .filter(|file| file != "lock")
            .collect();
        names.sort();
        let read = |file: String| (place.bytes(&format!("{name}/{file}")), file);
        names.into_iter().map(read).collect::<Vec<_>>()
    };
    place.ok("index build all in.jsonl --texts --threads 2 --memory 8G");
    let peak = place.peak_of("index build bounded in.jsonl --texts --threads 2 --memory 340M");
    assert!(peak <= 340_000_000, "{peak}");
    assert!(files("all") == files("bounded"));
    place.refused(
        "index build no in.jsonl --memory 320M --threads 2",
        &[
            "--memory 320000000 is not enough",
            "2 threads",
            "Mi or more",
        ],
    );
    assert!(!place.has("no"));
    let plan = place.ok("index build no in.jsonl --explain-plan --memory 340M --threads 2");
    for said in [
        "rows",
        "temporary files in the directory of the index",
        "--memory 3",
    ] {
        assert!(plan.text().contains(said), "{}", plan.text());
    }
    assert!(!place.has("no"));
    place.ok("index add all more.jsonl --threads 2");
    place.ok("index add bounded more.jsonl --threads 2 --memory 340M");
    let bounded = place.ok("search bounded more.jsonl --threshold 0.8").out;
    assert!(bounded == place.ok("search all more.jsonl --threshold 0.8").out);
    assert!(bounded.len() > 5000);
}

/// Texts of which many share a passage with an earlier one.
fn write_sharing_texts(place: &Place, name: &str, documents: u64) {
    let mut rows = String::new();
    for document in 0..documents {
        let word = |of: u64, at: u64| {
            let number = lookalike::value_hash(&(of << 20 | at).to_le_bytes());
            format!("{:x}", number % 50_000)
        };
        let from = document - document % 7;
        let own = (0..120).map(|at| word(document, at));
        let shared = (0..30).map(|at| word(from, at));
        let words: Vec<String> = own.chain(shared).collect();
        rows += &format!(
            "{{\"id\":\"d{document}\",\"text\":\"{}\"}}\n",
            words.join(" ")
        );
    }
    place.write(name, rows);
}

#[test]
fn passages_keep_their_limit_and_are_the_same() {
    let place = Place::new();
    write_sharing_texts(&place, "in.jsonl", 80_000);
    place.ok("passages in.jsonl -o all.tsv --threads 2");
    let line = "passages in.jsonl -o bounded.tsv --threads 2 --memory 245M";
    let (done, peak) = place.summary_and_peak(line);
    assert!(
        done["spilled"]["bytes"].as_u64().unwrap() > 10_000_000,
        "{done}"
    );
    assert!(peak <= 245_000_000, "{peak}");
    assert!(place.bytes("all.tsv") == place.bytes("bounded.tsv"));
    place.refused(
        "passages in.jsonl -o no.tsv --threads 2 --memory 200M",
        &[
            "200 MB of memory are too little for",
            "documents",
            "MB or more",
        ],
    );
    let plan = place.ok("passages in.jsonl --threads 2 --memory 245M --explain-plan");
    for said in ["out of core: about", "documents", "least    --memory 23"] {
        assert!(plan.text().contains(said), "{}", plan.text());
    }
    let script = format!(
        "TMPDIR=. {} passages ../in.jsonl -o ../no.tsv --threads 2 --memory 245M > /dev/null; \
         echo code $?; echo left $(ls -A)",
        env!("CARGO_BIN_EXE_lookalike")
    );
    if let Some((said, _)) = place.run_on_small_disk(1 << 20, &script) {
        assert!(
            said.contains("code 2") && said.ends_with("left\n"),
            "{said}"
        );
    }
    assert!(!place.has("no.tsv"));
}
