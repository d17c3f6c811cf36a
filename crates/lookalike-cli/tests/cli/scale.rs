//! Inputs that are large in one way.

use std::fs::File;
use std::io::{BufWriter, Write};

use crate::support::Place;

#[test]
fn a_million_identical_rows() {
    let place = Place::new();
    let mut file = BufWriter::new(File::create(place.path("in.jsonl")).unwrap());
    for _ in 0..1_000_000 {
        file.write_all(b"{\"text\":\"breaking news: the same again\"}\n")
            .unwrap();
    }
    file.flush().unwrap();
    let summary = place.summary("dedup in.jsonl -o out.jsonl --removed r.tsv --clusters c.tsv");
    assert_eq!(
        (&summary["kept"], &summary["removed"]),
        (&1.into(), &999_999.into())
    );
    assert_eq!(place.read("out.jsonl").lines().count(), 1);
    let removed = place.read("r.tsv");
    assert_eq!(removed.lines().count(), 1_000_000);
    assert_eq!(
        removed.lines().last(),
        Some("1000000\t1\t1\texact\t0.75\t1")
    );
    let summary = place.summary("pairs in.jsonl -o p.tsv");
    assert_eq!(summary["pairs"], 0);
}

#[test]
fn a_document_of_a_hundred_megabytes() {
    let place = Place::new();
    let mut file = BufWriter::new(File::create(place.path("in.txt")).unwrap());
    let mut written = 0;
    for word in 0u64.. {
        let word = format!("w{} ", word.wrapping_mul(0x9e37_79b9) % 100_000_007);
        file.write_all(word.as_bytes()).unwrap();
        written += word.len();
        if written > 100_000_000 {
            break;
        }
    }
    file.write_all("\nshort\n短文\nshort!\n".as_bytes())
        .unwrap();
    file.flush().unwrap();
    let summary = place.summary("dedup in.txt -o out.txt");
    assert_eq!(
        (&summary["documents"], &summary["kept"]),
        (&4.into(), &3.into())
    );
    let peak = place.peak_of("dedup in.txt -o again.txt --quiet");
    let bound = 256_000_000 + 12 * written as u64;
    assert!(
        peak > written as u64 && peak <= bound,
        "{peak} bytes of {bound}"
    );
    assert_eq!(
        place.bytes("out.txt").len(),
        written + "\nshort\n短文\n".len()
    );
}
