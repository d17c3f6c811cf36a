//! Concurrent clients that insert similar documents, retry and delete. Their answers must be those of a
//! serial run in the order of the sequence numbers, and that order must agree with what each client has
//! observed.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lookalike_oracle::OracleDocument as Plain;
use lookalike_oracle::effort::choose_effort;
use lookalike_store::{Collection, InsertAnswer, StoredVerdict};

use crate::disk::Simulated;
use crate::support::{Hand, Random, document, prepare, settings, text};

/// An answered call, and the ticks at which it began and ended.
struct Call {
    began: u64,
    ended: u64,
    /// Texts and answers.
    answers: Vec<(String, InsertAnswer)>,
}

/// A deletion, and the ticks at which it began and ended.
struct Deletion {
    began: u64,
    ended: u64,
    id: String,
}

const CLIENTS: usize = 6;
const CALLS: usize = 60;

#[test]
fn concurrent_answers_equal_sequential_ones() {
    for seed in 0..choose_effort(2, 6) {
        let hand = Hand::default();
        let disk = Arc::new(Simulated::new());
        let collection = Collection::create_empty(disk, &settings(None), hand.options()).unwrap();
        let (calls, deletions) = run(&collection, seed);
        let retries = calls.iter().flat_map(|call| &call.answers);
        assert!(retries.filter(|(_, answer)| answer.again).count() > 20);
        assert!(deletions.len() > 5);
        assert_order_was_seen(&calls, &deletions);
        replay(&calls, &deletions);
    }
}

fn run(collection: &Collection, seed: u64) -> (Vec<Call>, Vec<Deletion>) {
    let clock = AtomicU64::new(0);
    let tick = || clock.fetch_add(1, Ordering::SeqCst);
    let (calls, deletions) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    let (ids, busy) = (Mutex::new(Vec::new()), AtomicUsize::new(CLIENTS));
    let (ids, busy) = (&ids, &busy);
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (calls, tick) = (&calls, &tick);
            scope.spawn(move || {
                let mut random = Random(seed * 100 + client as u64);
                let mut sent: Vec<(String, String)> = Vec::new();
                for call in 0..CALLS {
                    let mut documents: Vec<(String, String)> = (0..1 + random.below(40))
                        .map(|at| (format!("{client}-{call}-{at}"), text(random.below(400))))
                        .collect();
                    if random.chance(40) && !sent.is_empty() {
                        documents.push(sent[random.below(sent.len())].clone());
                    }
                    let prepared = documents
                        .iter()
                        .map(|(id, text)| document(id, text, Some(0)));
                    let prepared = prepare(collection, prepared.collect());
                    let began = tick();
                    let answers = collection.insert_documents(&prepared);
                    let ended = tick();
                    let texts = documents.iter().map(|(_, text)| text.clone());
                    let answers = texts.zip(answers.into_iter().map(Result::unwrap));
                    calls.lock().unwrap().push(Call {
                        began,
                        ended,
                        answers: answers.collect(),
                    });
                    let named = documents.iter().map(|(id, _)| id.clone());
                    ids.lock().unwrap().extend(named);
                    sent.extend(documents);
                }
                busy.fetch_sub(1, Ordering::SeqCst);
            });
        }
        // Only one client deletes, so the deletions are in the order of their numbers.
        let (deletions, tick) = (&deletions, &tick);
        scope.spawn(move || {
            let mut random = Random(seed + 7);
            while busy.load(Ordering::SeqCst) > 0 {
                std::thread::sleep(Duration::from_micros(300));
                let id = {
                    let ids: &Vec<String> = &ids.lock().unwrap();
                    match ids.len() {
                        0 => continue,
                        count => ids[random.below(count)].clone(),
                    }
                };
                let began = tick();
                let deleted = collection.delete_document(&id).unwrap();
                let ended = tick();
                if deleted {
                    deletions
                        .lock()
                        .unwrap()
                        .push(Deletion { began, ended, id });
                }
            }
        });
    });
    (calls.into_inner().unwrap(), deletions.into_inner().unwrap())
}

/// Returns the sequence numbers that no document has; they must be those of deletions.
fn numbers(calls: &[Call], deletions: &[Deletion]) -> Vec<u64> {
    let fresh = calls.iter().flat_map(|call| &call.answers);
    let fresh = fresh.filter(|(_, answer)| !answer.again);
    let taken: BTreeMap<u64, ()> = fresh.map(|(_, answer)| (answer.seq.unwrap(), ())).collect();
    let last = *taken.keys().next_back().unwrap();
    let mut free: Vec<u64> = (1..=last)
        .filter(|number| !taken.contains_key(number))
        .collect();
    assert!(free.len() <= deletions.len());
    // The rest are after the last document.
    free.extend((last + 1..).take(deletions.len() - free.len()));
    free
}

fn assert_order_was_seen(calls: &[Call], deletions: &[Deletion]) {
    let mut spans: Vec<(u64, u64, u64, u64)> = Vec::new();
    for call in calls {
        let fresh = call.answers.iter().filter(|(_, answer)| !answer.again);
        let numbers: Vec<u64> = fresh.map(|(_, answer)| answer.seq.unwrap()).collect();
        assert!(
            numbers.is_sorted(),
            "the order within a call is the order of its documents"
        );
        if let (Some(&first), Some(&last)) = (numbers.first(), numbers.last()) {
            spans.push((call.began, call.ended, first, last));
        }
    }
    let numbered = deletions.iter().zip(numbers(calls, deletions));
    spans.extend(numbered.map(|(it, number)| (it.began, it.ended, number, number)));
    for (began, _, first, _) in &spans {
        for (_, ended, _, last) in &spans {
            assert!(
                ended >= began || last < first,
                "answered before, and counted later"
            );
        }
    }
}

enum Event<'a> {
    Document(&'a str, &'a InsertAnswer),
    Deletion(&'a str),
}

/// Checks every answer by comparing each document with all kept ones.
fn replay(calls: &[Call], deletions: &[Deletion]) {
    let mut events: BTreeMap<u64, Event<'_>> = BTreeMap::new();
    let mut first: BTreeMap<(&str, u64), &InsertAnswer> = BTreeMap::new();
    for (text, answer) in calls.iter().flat_map(|call| &call.answers) {
        if !answer.again {
            events.insert(answer.seq.unwrap(), Event::Document(text, answer));
            first.insert((&answer.id, answer.seq.unwrap()), answer);
        }
    }
    for (deletion, number) in deletions.iter().zip(numbers(calls, deletions)) {
        events.insert(number, Event::Deletion(&deletion.id));
    }
    for (_, answer) in calls.iter().flat_map(|call| &call.answers) {
        let as_first = InsertAnswer {
            again: false,
            ..answer.clone()
        };
        assert_eq!(as_first, *first[&(&*answer.id, answer.seq.unwrap())]);
    }
    let mut kept: Vec<(&str, u64, Plain)> = Vec::new();
    for (number, event) in events {
        match event {
            Event::Deletion(id) => kept.retain(|(other, ..)| *other != id),
            Event::Document(text, answer) => {
                let plain = Plain::new(text, 2);
                let mut best: Option<(&str, u64, f64)> = None;
                for (id, seq, other) in &kept {
                    let similarity = other.similarity(&plain);
                    let better = best.is_none_or(|(.., most)| similarity > most);
                    if similarity >= 0.6 && better {
                        best = Some((*id, *seq, similarity));
                    }
                }
                match (&answer.verdict, best) {
                    (StoredVerdict::Kept, None) => kept.push((&answer.id, number, plain)),
                    (StoredVerdict::Duplicate(evidence), Some(best)) => {
                        let found = (&*evidence.of, evidence.seq, evidence.similarity);
                        assert_eq!(found, best);
                    }
                    (verdict, best) => panic!("{number} '{text}': {verdict:?}, not {best:?}"),
                }
            }
        }
    }
}
