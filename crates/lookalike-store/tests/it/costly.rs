//! Documents that take much work to verify.

use std::sync::Arc;

use lookalike::Threshold;
use lookalike::plan::{self, SimilarityMeasure};
use lookalike_store::{
    Collection, CollectionOptions, CollectionSettings, ErrorKind, InsertAnswer, Result,
    StoredVerdict, VerificationLimits,
};

use crate::disk::Simulated;
use crate::support::{Hand, Random, S, document, prepare, settings};

fn by_edits() -> CollectionSettings {
    CollectionSettings {
        matching: plan::MatchSettings {
            measure: SimilarityMeasure::Levenshtein,
            threshold: Threshold::new(0.75).unwrap(),
            ..plan::MatchSettings::default()
        },
        ..CollectionSettings::default()
    }
}

fn collection(document_steps: u64, turn_steps: u64) -> Collection {
    let options = CollectionOptions {
        verification: VerificationLimits {
            document_steps,
            turn_steps,
        },
        ..Hand::default().options()
    };
    Collection::create_empty(Arc::new(Simulated::new()), &by_edits(), options).unwrap()
}

/// Texts of the same blocks in other orders, every fourth with a near-duplicate of itself behind it.
fn texts(count: usize) -> Vec<String> {
    let mut random = Random(11);
    let mut blocks: Vec<String> = (0..10)
        .map(|block| {
            (0..30)
                .map(|word| format!("b{block}w{} ", word * block))
                .collect()
        })
        .collect();
    let mut texts = Vec::new();
    while texts.len() < count {
        for at in (1..blocks.len()).rev() {
            blocks.swap(at, random.below(at + 1));
        }
        texts.push(blocks.concat());
        if texts.len() % 4 == 0 {
            texts.push(format!("{} edited", blocks.concat()));
        }
    }
    texts
}

/// Answers as far as they can be compared: the id of the kept document, or why there is none.
fn summarise(answers: Vec<Result<InsertAnswer>>) -> Vec<Result<Option<String>, ErrorKind>> {
    let one = |answer: Result<InsertAnswer>| match answer {
        Ok(answer) => Ok(match answer.verdict {
            StoredVerdict::Kept => None,
            StoredVerdict::Duplicate(evidence) => Some(evidence.of),
        }),
        Err(error) => Err(error.kind()),
    };
    answers.into_iter().map(one).collect()
}

/// The work of a turn decides when others have theirs, and no answer.
#[test]
fn length_of_turns_changes_no_answer() {
    let texts = texts(50);
    let documents = || {
        let numbered = texts.iter().enumerate();
        numbered
            .map(|(id, text)| document(&id.to_string(), text, None))
            .collect()
    };
    let plain = collection(u64::MAX, u64::MAX);
    let expected = summarise(plain.insert_documents(&prepare(&plain, documents())));
    let duplicates = expected.iter().filter(|it| matches!(it, Ok(Some(_))));
    assert!(duplicates.count() >= 5, "{expected:?}");
    for turn_steps in [0, 300_000, u64::MAX] {
        let whole = collection(u64::MAX, turn_steps);
        let answers = summarise(whole.insert_documents(&prepare(&whole, documents())));
        assert_eq!(answers, expected, "{turn_steps}");

        let by_turns = collection(u64::MAX, turn_steps);
        let mut prepared = prepare(&by_turns, documents());
        let (mut answers, mut turns) = (Vec::new(), 0);
        while answers.len() < prepared.len() {
            let admitted = by_turns.admit_turn(&mut prepared[answers.len()..]);
            answers.extend(by_turns.wait_until_durable(admitted));
            turns += 1;
        }
        assert_eq!(summarise(answers), expected, "{turn_steps}");
        assert_eq!(
            turns > 1,
            turn_steps < u64::MAX,
            "{turn_steps}: {turns} turns"
        );
    }
}

/// The partition that a document would begin expires no other one if the document is refused.
#[test]
fn refused_costly_documents_expire_nothing() {
    let texts = texts(60);
    let hand = Hand::default();
    let settings = CollectionSettings {
        window: settings(Some((100, false))).window,
        ..by_edits()
    };
    let options = CollectionOptions {
        verification: VerificationLimits {
            document_steps: 400_000,
            turn_steps: 1 << 21,
        },
        ..hand.options()
    };
    let disk = Arc::new(Simulated::new());
    let collection = Collection::create_empty(disk, &settings, options).unwrap();
    let insert = |id: &str, text: &str, seconds: i64| {
        hand.set(hand.get().max(seconds * S));
        let offered = prepare(&collection, vec![document(id, text, Some(seconds * S))]);
        summarise(collection.insert_documents(&offered)).remove(0)
    };
    let honest = "an honest text ".repeat(20);
    assert_eq!(insert("first", &honest, 1), Ok(None));
    let mut refused = Vec::new();
    for (id, text) in texts.iter().enumerate() {
        if insert(&id.to_string(), text, 100) == Err(ErrorKind::TooCostly) {
            refused.push(text);
        }
    }
    // It comes when the first document is no longer in its window.
    assert_eq!(insert("costly", refused[0], 150), Err(ErrorKind::TooCostly));
    let again = insert("again", &format!("{honest}!"), 95);
    assert_eq!(again, Ok(Some("first".to_owned())));
}

/// Beyond the limit nothing is stored, and beyond half of it only what matches. Others keep their verdicts.
#[test]
fn refused_costly_documents_change_no_verdict() {
    let texts = texts(60);
    let limited = collection(400_000, 1 << 21);
    let mut refused = 0;
    for (id, text) in texts.iter().enumerate() {
        let before = limited.collect_stats().unwrap().rows;
        let offered = prepare(&limited, vec![document(&id.to_string(), text, None)]);
        let answer = limited.insert_documents(&offered).pop().unwrap();
        if let Err(error) = answer {
            assert_eq!(error.kind(), ErrorKind::TooCostly);
            assert!(error.to_string().contains("400000"), "{error}");
            assert_eq!(limited.collect_stats().unwrap().rows, before);
            refused += 1;
        }
    }
    let kept = limited.collect_stats().unwrap().kept;
    assert!(kept > 3 && refused > 10, "{kept} kept, {refused} refused");
    // One that is near a kept document is told so, with what is left of the limit.
    let edited = format!("edited {}", texts[0]);
    let again = prepare(&limited, vec![document("edited", &edited, None)]);
    let answer = summarise(limited.insert_documents(&again));
    assert_eq!(answer, [Ok(Some("0".to_owned()))]);
    // The limit is of the verification, not of the document.
    let other = "an honest text ".repeat(200);
    let honest = prepare(&limited, vec![document("honest", &other, None)]);
    assert_eq!(summarise(limited.insert_documents(&honest)), [Ok(None)]);
    let query = prepare(
        &limited,
        vec![document("like it", &format!("{other}!"), None)],
    );
    let answer = limited.query_document(&query[0]).unwrap().verdict;
    assert!(matches!(answer, StoredVerdict::Duplicate(it) if it.of == "honest"));
}
