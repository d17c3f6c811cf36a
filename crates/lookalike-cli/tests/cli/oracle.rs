//! Whole runs compared with a definition on strings, which shares no code with the engine.

use std::collections::HashMap;

use lookalike_oracle::effort::choose_effort;
use lookalike_oracle::generate::{self, CorpusKind};
use lookalike_oracle::{
    OracleDocument, OracleVerdict, all_containments, all_pairs, split_tokens, verdicts_from_pairs,
};

use crate::support::{Place, jsonl, rows};

type Texts = Vec<(String, String)>;

/// Returns texts of every kind, long and short, and siblings of one template a little below the threshold.
fn corpora() -> [(&'static str, Texts); 5] {
    [
        (
            "english",
            generate::generate_corpus(CorpusKind::English, 800, 21),
        ),
        (
            "chinese",
            generate::generate_corpus(CorpusKind::Chinese, 800, 22),
        ),
        (
            "short",
            generate::generate_corpus(CorpusKind::Short, 2500, 23),
        ),
        ("template", generate::generate_template(900, 100, 24, 0.05)),
        ("form", generate::generate_form(900, 100, 25, 0.08)),
    ]
}

fn written(place: &Place, documents: &Texts) {
    let rows = documents.iter().map(|(id, text)| (&id[..], &text[..]));
    place.write("in.jsonl", jsonl(rows));
}

/// Returns the kept document and the similarity of every removed document.
fn removed(place: &Place, options: &str) -> HashMap<String, (String, f64)> {
    place.ok(&format!("dedup in.jsonl {options} --removed removed.tsv"));
    let rows = place.table("removed.tsv").into_iter();
    rows.map(|row| (row[0].clone(), (row[1].clone(), row[2].parse().unwrap())))
        .collect()
}

#[test]
fn exact_join_equals_the_definition() {
    let mut all = 0;
    for (at, (name, documents)) in corpora().into_iter().enumerate() {
        let place = Place::new();
        written(&place, &documents);
        let texts: Vec<&str> = documents.iter().map(|(_, text)| &text[..]).collect();
        let order: Vec<usize> = (0..texts.len()).collect();
        let thresholds = [0.5, 0.75, 0.9];
        for threshold in choose_effort(vec![thresholds[at % 3]], thresholds.to_vec()) {
            let pairs = all_pairs(&texts, 2, threshold);
            let verdicts = verdicts_from_pairs(&order, 0, &pairs);
            let expected: HashMap<_, _> = verdicts
                .iter()
                .enumerate()
                .filter_map(|(at, verdict)| match *verdict {
                    OracleVerdict::Kept => None,
                    OracleVerdict::Removed { kept, similarity } => {
                        let id = |at: usize| documents[at].0.clone();
                        Some((id(at), (id(kept), similarity)))
                    }
                })
                .collect();
            let found = removed(&place, &format!("--method join --threshold {threshold}"));
            assert_eq!(found, expected, "{name} at {threshold}");
            all += found.len();
        }
    }
    assert!(all > choose_effort(600, 2000), "{all}");
}

/// Returns the features of texts under the default recipe.
fn analyzed(documents: &Texts) -> Vec<OracleDocument> {
    let texts = documents.iter();
    texts
        .map(|(_, text)| OracleDocument::new(text, 2))
        .collect()
}

fn read_pairs(place: &Place, line: &str) -> Vec<(String, String, f64)> {
    let rows = rows(place.ok(line).text()).into_iter();
    rows.map(|row| (row[0].clone(), row[1].clone(), row[2].parse().unwrap()))
        .collect()
}

/// Texts of all lengths that contain one another: `pairs`, `dedup` and `search` find what the definition says.
#[test]
fn containments_equal_the_definition() {
    let (mut all, mut far) = (0, 0);
    for (at, threshold) in [0.5, 0.9, 1.0].into_iter().enumerate() {
        let place = Place::new();
        let documents = generate::generate_contained(choose_effort(700, 1500), 50 + at as u64);
        written(&place, &documents);
        let analyzed = analyzed(&documents);
        let id = |at: usize| documents[at].0.clone();
        let pairs = all_containments(&analyzed, threshold);
        let options = format!("--verify containment --threshold {threshold}");
        let expected: Vec<_> = pairs.iter().map(|&(a, b, it)| (id(a), id(b), it)).collect();
        let found = read_pairs(&place, &format!("pairs in.jsonl --all {options}"));
        assert_eq!(found, expected, "{threshold}");
        let length = |at: usize| documents[at].1.len();
        let is_far = |&&(a, b, _): &&(usize, usize, f64)| {
            length(a).max(length(b)) > 3 * length(a).min(length(b))
        };
        (all, far) = (all + pairs.len(), far + pairs.iter().filter(is_far).count());

        let order: Vec<usize> = (0..documents.len()).collect();
        let verdicts = verdicts_from_pairs(&order, 0, &pairs);
        let expected: HashMap<_, _> = (0..)
            .zip(&verdicts)
            .filter_map(|(at, verdict)| match *verdict {
                OracleVerdict::Kept => None,
                OracleVerdict::Removed { kept, similarity } => {
                    Some((id(at), (id(kept), similarity)))
                }
            })
            .collect();
        assert_eq!(removed(&place, &options), expected, "{threshold}");

        place.ok("index build lib in.jsonl");
        let found = read_pairs(&place, &format!("search lib in.jsonl {options}"));
        let mut found: Vec<_> = found.into_iter().filter(|(a, b, _)| a != b).collect();
        let both = pairs
            .iter()
            .flat_map(|&(a, b, it)| [(id(a), id(b), it), (id(b), id(a), it)]);
        let mut expected: Vec<_> = both.collect();
        found.sort_by(|a, b| a.partial_cmp(b).unwrap());
        expected.sort_by(|a, b| a.partial_cmp(b).unwrap());
        assert_eq!(found, expected, "search at {threshold}");
    }
    assert!(all > 1000 && far > 200, "{all} {far}");
}

/// A text that is copied whole into one 1.2, 1.5, 3 or 20 times as long is found, in either order.
#[test]
fn every_text_copied_whole_is_found() {
    let place = Place::new();
    let english = generate::generate_corpus(CorpusKind::English, 400, 61);
    let sources: Vec<String> = english.into_iter().map(|(_, text)| text).collect();
    let lengths = sources.iter().map(|text| text.split(' ').count());
    let lengths: Vec<usize> = lengths.collect();
    let filler: Vec<&str> = sources[200..]
        .iter()
        .flat_map(|text| text.split(' '))
        .collect();
    for times in [1.2, 1.5, 3.0, 20.0] {
        let mut documents = Texts::new();
        for (at, text) in sources[..60].iter().enumerate() {
            let more = (lengths[at] as f64 * (times - 1.0)).ceil() as usize;
            let own = filler.iter().cycle().skip(at * 997).take(more);
            let own: Vec<&str> = own.copied().collect();
            let (before, after) = own.split_at(more / 3);
            let whole = format!("{} {text} {}", before.join(" "), after.join(" "));
            let copy = [(format!("s{at}"), text.clone()), (format!("w{at}"), whole)];
            documents.extend(if at % 2 == 0 {
                copy
            } else {
                let [a, b] = copy;
                [b, a]
            });
        }
        written(&place, &documents);
        let found = read_pairs(
            &place,
            "pairs in.jsonl --all --verify containment --threshold 0.9",
        );
        let planted = (0..60).filter(|at| {
            let (text, whole) = (format!("s{at}"), format!("w{at}"));
            let is_pair = |(a, b, _): &(String, String, f64)| {
                (a, b) == (&text, &whole) || (a, b) == (&whole, &text)
            };
            found.iter().any(is_pair)
        });
        assert_eq!(planted.count(), 60, "{times} times as long");
    }
}

/// Returns `true` if two texts are equal after normalisation.
fn is_copy(a: &str, b: &str) -> bool {
    if split_tokens(a).is_empty() && split_tokens(b).is_empty() {
        a.trim() == b.trim() && !a.trim().is_empty()
    } else {
        split_tokens(a) == split_tokens(b)
    }
}

/// Three listings of pairs: all combinations; each copy with the earliest of its text, and other pairs only
/// of the earliest; and the latter without copies.
#[test]
fn pairs_with_copies_equal_the_definition() {
    let (mut copies, mut others) = (0, 0);
    for (name, mut documents) in corpora() {
        // Copies are far from their originals, and some have similar documents while others have none.
        documents.truncate(500);
        let again: Vec<_> = documents.iter().step_by(7).cloned().collect();
        let again = again.into_iter().map(|(id, text)| (id + "-again", text));
        documents.extend(again);
        let place = Place::new();
        written(&place, &documents);
        let texts: Vec<&str> = documents.iter().map(|(_, text)| &text[..]).collect();
        let keys: Vec<_> = texts.iter().map(|text| split_tokens(text)).collect();
        let all = all_pairs(&texts, 2, 0.7);
        let first = |at: usize| {
            let same =
                |&before: &usize| keys[before] == keys[at] && is_copy(texts[before], texts[at]);
            (0..at).find(same).unwrap_or(at)
        };
        let firsts: Vec<usize> = (0..texts.len()).map(first).collect();
        let is_linked = |&&(a, b, _): &&(usize, usize, f64)| {
            firsts[a] == a && (firsts[b] == b || firsts[b] == a)
        };
        let linked: Vec<_> = all.iter().filter(is_linked).copied().collect();
        let distinct: Vec<_> = linked
            .iter()
            .filter(|pair| firsts[pair.1] == pair.1)
            .copied()
            .collect();
        let row_of = |cell: &String| cell.parse::<usize>().unwrap() - 1;
        for (options, expected) in [("--all", &all), ("", &linked), ("--distinct", &distinct)] {
            let line = format!("pairs in.jsonl --method join --threshold 0.7 {options}");
            let table = place.ok(&line);
            let rows = rows(table.text()).into_iter();
            let found: Vec<(usize, usize, f64)> = rows
                .map(|row| (row_of(&row[4]), row_of(&row[6]), row[2].parse().unwrap()))
                .collect();
            assert_eq!(found, *expected, "{name} {options}");
        }
        copies += linked.len() - distinct.len();
        others += distinct.len();
    }
    assert!(copies > 300 && others > 300, "{copies} {others}");
}

/// By default, candidates of long texts are found by sketches. Hardly any is missed, and every reported
/// similarity is true.
#[test]
fn default_removals_have_the_stated_similarity() {
    for (name, documents) in corpora() {
        let place = Place::new();
        written(&place, &documents);
        let text_of: HashMap<_, _> = documents.iter().map(|(id, text)| (id, text)).collect();
        let document = |id: &String| OracleDocument::new(text_of[id], 2);
        let found = removed(&place, "");
        for (id, (kept, similarity)) in &found {
            assert_eq!(document(id).similarity(&document(kept)), *similarity);
            assert!(
                *similarity >= 0.75 && !found.contains_key(kept),
                "{id} {kept}"
            );
        }
        let exactly = removed(&place, "--method join").len();
        let share = found.len() as f64 / exactly.max(1) as f64;
        let near = |share: f64| (0.99..=1.01).contains(&share);
        assert!(
            exactly == 0 && found.is_empty() || near(share),
            "{name}: {share}"
        );
    }
}
