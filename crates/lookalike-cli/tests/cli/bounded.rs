//! Runs with `--memory`.

use lookalike_oracle::effort::is_long_run;

use crate::support::{Numbers, Place, corpus_jsonl};

/// Titles of which some repeat and some nearly repeat an earlier one.
fn write_titles(place: &Place, titles: u64) {
    let mut rows = String::new();
    for at in 0..titles {
        let of = if at % 10 < 6 { at } else { at / 2 };
        let word = |which: u64| (of * 7919 + which * 104_729) % 50_021;
        let last = if at % 10 == 9 { word(6) + 1 } else { word(6) };
        rows += &format!(
            "{{\"text\":\"{:x} {:x} {:x} {:x} {:x} {last:x}\"}}\n",
            word(1),
            word(2),
            word(3),
            word(4),
            word(5)
        );
    }
    place.write("titles.jsonl", rows);
}

/// Articles of 50 sentences of 30 words, every other one of which many articles have.
fn write_articles(place: &Place, articles: u64) {
    let mut numbers = Numbers::new(31);
    let mut rows = String::new();
    for at in 0..articles {
        let mut text = String::new();
        for own in 0..50 {
            let sentence = match own % 2 {
                0 => (1 << 32) + at * 50 + own,
                _ => numbers.below(30_000) as u64,
            };
            for word in 0..30 {
                text += &format!("{:x} ", (sentence * 30 + word) * 7919 % 15_485_863);
            }
            text += "end. ";
        }
        rows += &format!("{{\"text\":\"{text}\"}}\n");
    }
    place.write("articles.jsonl", rows);
}

#[test]
fn passages_stay_within_the_memory_and_results_are_the_same() {
    let place = Place::new();
    write_articles(&place, 12_000);
    let line = "dedup articles.jsonl --method exact --passages remove --min-length 10 --threads 2";
    place.ok(&format!("{line} -o all.jsonl --cuts all.tsv"));
    let limited = format!("{line} -o bounded.jsonl --cuts bounded.tsv --memory 220M");
    let (done, peak) = place.summary_and_peak(&limited);
    let spilled = done["passages"]["spilled_bytes"].as_u64().unwrap();
    assert!(spilled > 50_000_000, "{done}");
    assert!(peak <= 220_000_000, "{peak}");
    assert!(place.bytes("all.jsonl") == place.bytes("bounded.jsonl"));
    assert!(place.bytes("all.tsv") == place.bytes("bounded.tsv"));
    let shown = place.ok(&format!("{limited} --explain-plan"));
    let shown = String::from_utf8(shown.out).unwrap();
    let coefficients = "28 bytes of memory per document, and 32 per run of words";
    assert!(shown.contains(coefficients), "{shown}");
}

#[test]
fn memory_stays_within_its_limit_and_results_are_the_same() {
    let place = Place::new();
    write_titles(&place, 450_000);
    place.ok("dedup titles.jsonl -o all.jsonl --removed all.tsv --threads 2");
    let limit =
        "dedup titles.jsonl -o bounded.jsonl --removed bounded.tsv --memory 190M --threads 2";
    let (done, peak) = place.summary_and_peak(limit);
    assert!(
        done["spilled"]["bytes"].as_u64().unwrap() > 10_000_000,
        "{done}"
    );
    assert!(peak <= 190_000_000, "{peak}");
    assert!(place.bytes("all.jsonl") == place.bytes("bounded.jsonl"));
    assert!(place.bytes("all.tsv") == place.bytes("bounded.tsv"));
    place.ok("pairs titles.jsonl -o all.tsv --threads 2");
    place.ok("pairs titles.jsonl -o bounded.tsv --memory 190M --threads 2");
    assert!(place.bytes("all.tsv") == place.bytes("bounded.tsv"));
    place.refused(
        "dedup titles.jsonl -o kept.jsonl --memory 190M --threads 2 --audit",
        &["--audit needs all documents in memory", "raise --memory"],
    );
    place.refused(
        "dedup titles.jsonl -o kept.jsonl --memory 150M --threads 2",
        &["150 MB of memory are too little for", "or more"],
    );
    let plan = place.ok("dedup titles.jsonl --explain-plan --memory 190M --threads 2");
    assert!(
        plan.text().contains("out of core: about"),
        "{}",
        plan.text()
    );
}

#[test]
fn a_run_beside_a_library_stays_within_its_limit() {
    if !is_long_run() {
        return;
    }
    let place = Place::new();
    write_titles(&place, 450_000);
    place.ok("dedup titles.jsonl --library all.lib -o all.jsonl --threads 2 --memory 4G");
    let limit =
        "dedup titles.jsonl --library bounded.lib -o bounded.jsonl --memory 282M --threads 2";
    let done = place.summary(limit);
    let spilled = done["spilled"]["bytes"].as_u64();
    assert!(spilled.is_some_and(|bytes| bytes > 1_000_000), "{done}");
    assert!(place.bytes("all.jsonl") == place.bytes("bounded.jsonl"));
    // Now every document has a match in the library.
    let peak = place.peak_of(limit);
    assert!(peak <= 282_000_000, "{peak}");
    assert!(place.bytes("bounded.jsonl").is_empty());
    place.refused(
        "dedup titles.jsonl --library all.lib -o kept.jsonl --memory 180M --threads 2",
        &["180 MB of memory are too little for"],
    );
}

#[test]
fn standard_input_under_a_limit_goes_to_temporary_files() {
    let place = Place::new();
    let corpus = corpus_jsonl(&Numbers::new(31).corpus(800));
    let line = "dedup - --removed all.tsv --clusters all-clusters.tsv --components";
    place.run_with(line, corpus.as_bytes());
    let limited = "dedup - --removed bounded.tsv --clusters bounded-clusters.tsv --components --memory 200M --json";
    let done = place.run_with(limited, corpus.as_bytes());
    assert!(done.text().contains("\"spilled\""), "{}", done.text());
    assert!(place.bytes("all.tsv") == place.bytes("bounded.tsv"));
    assert!(place.bytes("all-clusters.tsv") == place.bytes("bounded-clusters.tsv"));
    assert!(place.bytes("all.tsv").len() > 1000);
}

#[test]
fn a_chain_that_does_not_fit_is_refused_with_the_limit_that_would_do() {
    let place = Place::new();
    let row = |at: u32| {
        format!("{{\"text\":\"the ferry leaves the island at noon today number {at}\"}}\n")
    };
    let rows: String = (0..400_000).map(row).collect();
    let ran = place.run_with(
        "dedup - -o kept.jsonl --memory 187M --threads 2",
        rows.as_bytes(),
    );
    let error = ran.err.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(error.contains("may match one another by chains"), "{error}");
    assert!(error.contains("give a limit of"), "{error}");
    assert!(!place.has("kept.jsonl"));
}

#[test]
fn a_full_disk_of_temporary_files_is_reported() {
    let place = Place::new();
    write_titles(&place, 20_000);
    let (program, line) = (
        env!("CARGO_BIN_EXE_lookalike"),
        "dedup - --memory 200M --forms off -o ../kept.jsonl",
    );
    let script = format!(
        "TMPDIR=. {program} {line} < ../titles.jsonl > /dev/null; echo code $?; echo left $(ls -A)"
    );
    // Large enough for the copy of the input and too small for the keys.
    if let Some((said, _)) = place.run_on_small_disk(1 << 20, &script) {
        assert!(
            said.contains("code 2") && said.ends_with("left\n"),
            "{said}"
        );
        assert!(!place.has("kept.jsonl"));
    }
}

// `--scratch` has all temporary files of a run, also those of a run that does not fit into its memory.
#[cfg(unix)]
#[test]
fn temporary_files_of_a_bounded_run_are_in_the_scratch_directory() {
    let place = Place::new();
    write_titles(&place, 450_000);
    let run = |scratch: &str| {
        let limited = "dedup titles.jsonl -o kept.jsonl --memory 190M --threads 2 --json";
        let mut command = place.command(&format!("{limited} {scratch}"));
        command.env("TMPDIR", "missing").output().unwrap()
    };
    let without = run("");
    let refusal = String::from_utf8(without.stderr).unwrap();
    assert_eq!(without.status.code(), Some(2), "{refusal}");
    assert!(
        refusal.contains("create a temporary file in missing"),
        "{refusal}"
    );
    let with = run("--scratch .");
    let told = String::from_utf8(with.stderr).unwrap();
    assert_eq!(with.status.code(), Some(0), "{told}");
    let done: serde_json::Value = serde_json::from_slice(&with.stdout).unwrap();
    assert!(done["spilled"]["bytes"].as_u64() > Some(0), "{done}");
}
