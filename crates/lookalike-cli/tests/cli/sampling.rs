//! `pairs --sample-by-similarity`: pairs of each band of similarity, with their texts.

use std::collections::HashMap;

use serde_json::Value;

use crate::support::{Numbers, Place, corpus_jsonl, jsonl};

const STEPS: f64 = 20.0;

/// A sampled pair: both ids and the similarity.
type ShownPair = (String, String, f64);

fn sampled_pairs(band: &Value) -> Vec<ShownPair> {
    let id = |side: &Value| side["id"].as_str().unwrap().to_owned();
    let sampled = band["sampled"].as_array().unwrap().iter();
    sampled
        .map(|sampled| {
            (
                id(&sampled["a"]),
                id(&sampled["b"]),
                sampled["similarity"].as_f64().unwrap(),
            )
        })
        .collect()
}

/// Every band has as many pairs as the table, and the sample is some of them, with the texts of the inputs.
#[test]
fn sample_is_of_the_pairs_of_the_table() {
    let place = Place::new();
    let corpus = Numbers::new(5).corpus(500);
    let texts: HashMap<_, _> = corpus.iter().cloned().collect();
    place.write("in.jsonl", corpus_jsonl(&corpus));
    place.ok("pairs in.jsonl --threshold 0.52 -o all.tsv");
    let table = place.table("all.tsv");
    let line = "pairs in.jsonl --threshold 0.52 --sample-by-similarity 3";
    let summary = place.summary(&format!("{line} -o same.tsv"));
    assert_eq!(place.bytes("all.tsv"), place.bytes("same.tsv"));
    let bands = summary["sample"].as_array().unwrap();
    assert_eq!(bands.len(), 11);
    let mut is_cut = false;
    for (bin, band) in (10..).zip(bands) {
        assert_eq!(band["from"], f64::from(bin) / STEPS);
        let in_band: Vec<_> = table
            .iter()
            .filter(|pair| (pair[2].parse::<f64>().unwrap() * STEPS) as i32 == bin)
            .collect();
        assert_eq!(band["pairs"], in_band.len(), "{bin}");
        let sampled = sampled_pairs(band);
        assert_eq!(sampled.len(), in_band.len().min(3), "{bin}");
        is_cut |= sampled.len() < in_band.len();
        assert!(sampled.is_sorted_by(|one, other| one.2 >= other.2));
        for (a, b, similarity) in sampled {
            let is_it = |pair: &&&Vec<String>| pair[0] == a && pair[1] == b;
            let pair = in_band.iter().find(is_it).unwrap();
            assert_eq!(pair[2].parse(), Ok(similarity));
        }
        for pair in band["sampled"].as_array().unwrap() {
            for side in [&pair["a"], &pair["b"]] {
                let text = &texts[side["id"].as_str().unwrap()];
                assert_eq!(side["text"], text.as_str());
                assert_eq!(side["source"], "in.jsonl");
            }
        }
    }
    assert!(is_cut);
    assert_eq!(bands[10]["below"], Value::Null);
}

#[test]
fn sample_does_not_depend_on_threads() {
    let place = Place::new();
    place.write("in.jsonl", corpus_jsonl(&Numbers::new(6).corpus(800)));
    let line = "pairs in.jsonl --threshold 0.6 --sample-by-similarity 2 --quiet";
    let one = place.ok(&format!("{line} --threads 1")).out;
    for threads in [2, 5] {
        assert_eq!(place.ok(&format!("{line} --threads {threads}")).out, one);
    }
    // Pairs of further documents leave most of the sample as it is.
    let sample = |corpus: usize| -> Vec<ShownPair> {
        place.write("in.jsonl", corpus_jsonl(&Numbers::new(6).corpus(corpus)));
        let summary = place.summary(line);
        let bands = summary["sample"].as_array().unwrap().iter();
        bands.flat_map(sampled_pairs).collect()
    };
    let (before, after) = (sample(800), sample(840));
    let kept = before.iter().filter(|it| after.contains(it)).count();
    assert!(2 * kept > before.len(), "{kept} of {}", before.len());
}

#[test]
fn sample_is_shown_from_the_most_similar_band_on() {
    let place = Place::new();
    let words = |end: &str| format!("the keeper lights the lamp of the {end}");
    place.write(
        "in.jsonl",
        jsonl([
            ("a", &words("harbour before night")[..]),
            ("b", &words("harbour before noon")),
            ("c", &words("harbour before noon!")),
            ("d", "something else entirely"),
            ("e\u{1b}[2J", "something else entirely"),
            ("f", "Something else, entirely"),
        ]),
    );
    let ran = place.ok("pairs in.jsonl --all --sample-by-similarity 1 --quiet");
    let expected = "\
Differences: [-only in the first text-] {+only in the second text+}

Similarity 1: 1 of 4 pairs

  1.0000  e\u{fffd}[2J (in.jsonl, row 5)
          f (in.jsonl, row 6)
    [-something-]{+Something+} else{+,+} entirely

Similarity 0.95 to 1.00: no pairs

Similarity 0.90 to 0.95: no pairs

Similarity 0.85 to 0.90: no pairs

Similarity 0.80 to 0.85: 1 of 2 pairs

  0.8000  a (in.jsonl, row 1)
          c (in.jsonl, row 3)
    the keeper lights the lamp of the harbour before [-night-]{+noon!+}

Similarity 0.75 to 0.80: no pairs

Pairs below 0.75 are not searched for: a lower --threshold shows them.
";
    assert_eq!(ran.text(), expected);
    assert!(ran.err.is_empty());
    let two = place.ok("pairs in.jsonl --sample-by-similarity 2");
    assert!(
        two.text().contains("Similarity 1: 2 of 3 pairs")
            || two.text().contains("Similarity 1: 3 pairs")
    );
    assert!(two.err.contains("Similarity of the pairs"), "{}", two.err);
}

#[test]
fn sample_refuses_what_it_cannot_show() {
    let place = Place::new();
    place.write("in.jsonl", jsonl([("a", "one two three")]));
    let line = "pairs in.jsonl --sample-by-similarity";
    place.refused(&format!("{line} 0"), &["give a number of at least 1"]);
    place.refused(
        &format!("{line} 2 -o -"),
        &["only one output", "standard output"],
    );
    place.refused(
        &format!("{line} 2 --features tokens"),
        &["--sample-by-similarity shows texts"],
    );
    let none = place.ok(&format!("{line} 2 --quiet"));
    assert!(none.text().contains("Similarity 1: no pairs"));
}
