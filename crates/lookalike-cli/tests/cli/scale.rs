//! Inputs that are large in one way.

use std::fs::File;
use std::io::{BufWriter, Write};

use lookalike_oracle::effort::choose_effort;

use crate::support::Place;

#[test]
fn identical_rows_take_linear_time() {
    let place = Place::new();
    let count = choose_effort(100_000, 1_000_000);
    let mut file = BufWriter::new(File::create(place.path("in.jsonl")).unwrap());
    for _ in 0..count {
        file.write_all(b"{\"text\":\"breaking news: the same again\"}\n")
            .unwrap();
    }
    file.flush().unwrap();
    let summary = place.summary("dedup in.jsonl -o out.jsonl --removed r.tsv --clusters c.tsv");
    assert_eq!(
        (&summary["kept"], &summary["removed"]),
        (&1.into(), &(count - 1).into())
    );
    assert_eq!(place.read("out.jsonl").lines().count(), 1);
    let removed = place.read("r.tsv");
    assert_eq!(removed.lines().count(), count);
    let last = format!("{count}\t1\t1\texact\t0.75\t1\tin.jsonl\t{count}\tin.jsonl\t1");
    assert_eq!(removed.lines().last(), Some(&last[..]));
    for (copies, pairs) in [("", count - 1), ("--distinct", 0)] {
        let summary = place.summary(&format!("pairs in.jsonl -o p.tsv {copies}"));
        assert_eq!(summary["pairs"], pairs);
    }
}

/// Returns a text of a little more than 100 MB, or 20 MB in the short form, made of all these pieces in turn.
fn long_text(piece: impl Fn(u64) -> String) -> String {
    let bytes = choose_effort(20_000_000, 100_000_000);
    let mut text = String::new();
    for at in 0u64.. {
        text.push_str(&piece(at.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        if text.len() > bytes {
            break;
        }
    }
    text
}

fn word(number: u64) -> String {
    format!("w{} ", number % 100_000_007)
}

fn character(number: u64) -> String {
    char::from_u32(0x4e00 + (number >> 40) as u32 % 20_000)
        .unwrap()
        .to_string()
}

/// Runs with these documents and a few short ones, and checks the peak memory against its bound.
fn peak_is_bounded(texts: &[String], arguments: &str, kept: u64) {
    let place = Place::new();
    let mut file = BufWriter::new(File::create(place.path("in.txt")).unwrap());
    for text in texts
        .iter()
        .map(String::as_str)
        .chain(["short", "短文", "short!"])
    {
        file.write_all(text.as_bytes()).unwrap();
        file.write_all(b"\n").unwrap();
    }
    file.flush().unwrap();
    let longest = texts.iter().map(String::len).max().unwrap();
    let bound = 256_000_000 + 12 * longest as u64;
    let peak = place.peak_of(&format!("dedup in.txt -o out.txt --quiet {arguments}"));
    assert!(
        peak > longest as u64 && peak <= bound,
        "{arguments}: {peak} bytes of {bound}"
    );
    let summary = place.summary(&format!("dedup in.txt -o again.txt {arguments}"));
    let documents = texts.len() as u64 + 3;
    assert_eq!(
        (&summary["documents"], &summary["kept"]),
        (&documents.into(), &kept.into())
    );
    assert_eq!(place.bytes("out.txt"), place.bytes("again.txt"));
}

#[test]
fn one_long_document_is_deduplicated() {
    peak_is_bounded(&[long_text(word)], "", 3);
    peak_is_bounded(&[long_text(|_| "a ".to_owned())], "", 3);
    peak_is_bounded(&[long_text(word)], "--method sentences", 3);
}

/// Each document has a feature for every three bytes, and the two must be compared.
#[test]
fn two_long_documents_are_compared() {
    let text = long_text(character);
    let similar = format!("{}尾", &text[..text.len() / 3 / 20 * 57]);
    peak_is_bounded(&[text, similar], "", 3);
}
