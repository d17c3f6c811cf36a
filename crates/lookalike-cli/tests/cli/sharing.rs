//! Runs with `--shard`, which several processes share.

use std::thread;
use std::time::Duration;

use crate::support::{Numbers, Place, corpus_jsonl, gzip};

const SHARDS: u32 = 3;

/// Five files of documents, of which one is compressed.
fn with_files() -> Place {
    let place = Place::new();
    let rows = corpus_jsonl(&Numbers::new(8).corpus(600));
    let lines: Vec<&str> = rows.lines().collect();
    for (at, part) in lines.chunks(lines.len().div_ceil(5)).enumerate() {
        let part = part.join("\n") + "\n";
        match at {
            3 => place.write("part-3.jsonl.gz", gzip(part.as_bytes())),
            _ => place.write(&format!("part-{at}.jsonl"), part),
        }
    }
    place
}

fn share(index: u32) -> String {
    format!(
        "dedup part-0.jsonl part-1.jsonl part-2.jsonl part-3.jsonl.gz part-4.jsonl -o shared.jsonl \
         --removed shared.tsv --work run --shard {index}/{SHARDS}"
    )
}

#[test]
fn three_rounds_of_all_shards_give_the_outputs_of_one_process() {
    let place = with_files();
    place.ok(
        "dedup part-0.jsonl part-1.jsonl part-2.jsonl part-3.jsonl.gz part-4.jsonl -o alone.jsonl \
              --removed alone.tsv",
    );
    let said = place.ok(&share(2)).err;
    assert!(
        said.contains("shard 2/3 has read its share; still to come: 1, 3 of 3"),
        "{said}"
    );
    let status = place.ok("status run").text().to_owned();
    assert!(
        status.contains("stage      reading") && status.contains("to come    1, 3"),
        "{status}"
    );
    // At the same time, as a scheduler runs them.
    for _ in 0..3 {
        thread::scope(|scope| {
            for index in 1..=SHARDS {
                let place = &place;
                scope.spawn(move || place.ok(&share(index)));
            }
        });
    }
    place.ok(&share(1));
    assert!(place.bytes("alone.jsonl") == place.bytes("shared.jsonl"));
    assert!(place.bytes("alone.tsv") == place.bytes("shared.tsv"));
    let status = place.ok("status run").text().to_owned();
    assert!(status.contains("finished; run may be deleted"), "{status}");
}

/// Runs shards in random order and kills some of them, until one finishes the run.
#[test]
fn killed_shards_are_continued() {
    let place = with_files();
    place.ok(
        "dedup part-0.jsonl part-1.jsonl part-2.jsonl part-3.jsonl.gz part-4.jsonl -o alone.jsonl \
         --removed alone.tsv",
    );
    let mut numbers = Numbers::new(5);
    let (mut killed, mut finished) = (0, false);
    for attempt in 0..200 {
        let index = 1 + numbers.below(SHARDS as usize) as u32;
        if attempt % 3 < 2 {
            let mut child = place.spawn(&share(index));
            thread::sleep(Duration::from_millis(numbers.below(60) as u64));
            killed += u32::from(child.try_wait().unwrap().is_none());
            let _ = child.kill();
            child.wait().unwrap();
        } else {
            place.ok(&share(index));
            finished = place
                .ok("status run --json --verify")
                .text()
                .contains("\"finished\":true");
        }
        if finished {
            break;
        }
    }
    assert!(finished && killed > 2, "{killed}");
    assert!(place.bytes("alone.jsonl") == place.bytes("shared.jsonl"));
    assert!(place.bytes("alone.tsv") == place.bytes("shared.tsv"));
}

#[test]
fn wrong_numbers_and_other_runs_are_refused() {
    let place = with_files();
    place.refused(
        "dedup part-0.jsonl -o kept.jsonl --work run --shard 4/3",
        &["4/3", "such as 3/16"],
    );
    place.refused("dedup part-0.jsonl -o kept.jsonl --shard 1/3", &["--work"]);
    place.ok("dedup part-0.jsonl -o kept.jsonl --work alone");
    place.refused(
        "dedup part-0.jsonl -o kept.jsonl --work alone --shard 1/3",
        &["not divided into shards"],
    );
    place.ok("dedup part-0.jsonl part-1.jsonl -o kept.jsonl --work run --shard 1/3");
    place.refused(
        "dedup part-0.jsonl part-1.jsonl -o kept.jsonl --work run --resume",
        &["divided into shards", "--shard"],
    );
    place.refused(
        "dedup part-0.jsonl part-1.jsonl -o kept.jsonl --work run --shard 1/4",
        &["divided into 3 shards, not 4"],
    );
}
