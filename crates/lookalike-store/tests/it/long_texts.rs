//! Long texts are read, compared and prepared without a lock.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak, mpsc};
use std::time::Duration;

use lookalike::Threshold;
use lookalike::plan::{self, SimilarityMeasure};
use lookalike::stream::StreamWindow;
use lookalike_store::{
    Collection, CollectionOptions, CollectionSettings, DocumentContent, DocumentLookup, ErrorKind,
    OnConflict, StoredVerdict, VerificationLimits,
};

use crate::disk::Simulated;
use crate::support::{Hand, Random, S, document, prepare};

/// Bytes of a read that only a long record needs.
const LONG_READ: usize = 8 << 10;

/// Steps of a turn that reads texts of up to 4 KiB.
const TURN_STEPS: u64 = 1 << 16;

fn refreshing(measure: SimilarityMeasure) -> CollectionSettings {
    let seconds = Duration::from_secs;
    CollectionSettings {
        matching: plan::MatchSettings {
            measure,
            threshold: Threshold::new(0.75).unwrap(),
            ..plan::MatchSettings::default()
        },
        window: Some(StreamWindow::new(seconds(240), seconds(5), true).unwrap()),
        ..CollectionSettings::default()
    }
}

fn options(hand: &Hand, turn_steps: u64) -> CollectionOptions {
    CollectionOptions {
        verification: VerificationLimits {
            document_steps: u64::MAX,
            turn_steps,
        },
        ..hand.options()
    }
}

/// Returns a text that does not become much shorter by compression.
fn random_text(words: usize, seed: u64) -> String {
    let mut random = Random(seed);
    let words = (0..words).map(|_| format!("{:x} ", random.next() >> 20));
    words.collect()
}

/// Counts the reads of long records, and those during which nobody else could change the collection.
struct LongReads {
    reads: Arc<AtomicUsize>,
    blocked: Arc<AtomicUsize>,
}

impl LongReads {
    fn observe(disk: &Simulated, collection: &Arc<Collection>) -> Self {
        let observed = Self {
            reads: Arc::default(),
            blocked: Arc::default(),
        };
        let (reads, blocked) = (observed.reads.clone(), observed.blocked.clone());
        let collection = Arc::downgrade(collection);
        disk.set_read_hook(move |name, length| {
            if !name.contains("texts") || length < LONG_READ {
                return;
            }
            reads.fetch_add(1, Ordering::SeqCst);
            // One that is blocked is enough, because each takes long.
            if blocked.load(Ordering::SeqCst) == 0 && !can_change(&collection) {
                blocked.fetch_add(1, Ordering::SeqCst);
            }
        });
        observed
    }

    /// Returns the number of long reads since the last call.
    fn take(&self) -> usize {
        assert_eq!(self.blocked.load(Ordering::SeqCst), 0, "a lock was held");
        self.reads.swap(0, Ordering::SeqCst)
    }
}

/// Returns `true` if another thread can change the collection now.
fn can_change(collection: &Weak<Collection>) -> bool {
    let Some(collection) = collection.upgrade() else {
        return true;
    };
    let (changed, is_changed) = mpsc::channel();
    std::thread::spawn(move || {
        collection.delete_document("nobody").unwrap();
        let _ = changed.send(());
    });
    is_changed.recv_timeout(Duration::from_secs(10)).is_ok()
}

#[test]
fn others_change_the_collection_while_a_long_text_is_read() {
    for measure in [
        SimilarityMeasure::Sketch,
        SimilarityMeasure::Jaccard,
        SimilarityMeasure::Containment,
        SimilarityMeasure::Cosine,
        SimilarityMeasure::Levenshtein,
        SimilarityMeasure::Indel,
        SimilarityMeasure::Substring,
    ] {
        let (hand, disk) = (Hand::default(), Simulated::new());
        let create = || {
            let disk = Arc::new(disk.clone());
            Collection::create_empty(disk, &refreshing(measure), options(&hand, TURN_STEPS))
        };
        let collection = Arc::new(create().unwrap());
        let (text, edited) = (random_text(3000, 1), random_text(3000, 1) + "and an edit");
        let insert = |id: &str, text: &str| {
            let documents = prepare(&collection, vec![document(id, text, None)]);
            collection.insert_documents(&documents).remove(0)
        };
        hand.set(1000 * S);
        assert_eq!(insert("a", &text).unwrap().verdict, StoredVerdict::Kept);
        let reads = LongReads::observe(&disk, &collection);
        // The document is compared with the kept one, and moves it to another partition.
        hand.set(1100 * S);
        let first = insert("b", &edited).unwrap();
        assert_eq!(first.cluster_id(), "a", "{measure:?}");
        let compares = measure != SimilarityMeasure::Sketch;
        assert_eq!(reads.take(), 1 + usize::from(compares), "{measure:?}");
        // The kept document is in the newest partition now.
        let again = insert("b", &edited).unwrap();
        assert!(again.again && again.verdict == first.verdict);
        assert!(reads.take() > 0);
        let refused = insert("b", &text).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Conflict);
        let query = prepare(&collection, vec![document("c", &edited, None)]);
        let answer = collection.query_document(&query[0]).unwrap();
        assert_eq!(answer.verdict, first.verdict, "{measure:?}");
        let (_, matches) = collection.query_matches(&query[0], 5, &|| true).unwrap();
        assert_eq!(matches.len(), 1);
        let query = prepare(&collection, vec![document("b", &edited, None)]);
        assert!(collection.query_document(&query[0]).unwrap().again);
        assert!(reads.take() > 0);
        // Where a document has no room, a repeated one still gets its first answer.
        disk.set_free(1000);
        assert!(insert("b", &edited).unwrap().again);
        assert!(reads.take() > 0);
        disk.set_free(1 << 40);

        let reopened = Arc::new(disk.copy());
        let reopened = Collection::open_existing(reopened, options(&hand, TURN_STEPS)).unwrap();
        let kept = reopened.find_document("a").unwrap().unwrap();
        assert_eq!(kept.content, DocumentContent::Text(text));
        let query = prepare(&reopened, vec![document("c", &edited, None)]);
        assert_eq!(
            reopened.query_document(&query[0]).unwrap().verdict,
            first.verdict
        );
    }
}

/// Answers and the bytes on disk are the same, whether work is done in a turn or without a lock.
#[test]
fn work_without_a_lock_changes_no_answer_and_no_byte() {
    for (measure, on_conflict) in [
        (SimilarityMeasure::Jaccard, OnConflict::Refuse),
        (SimilarityMeasure::Cosine, OnConflict::Replace),
        (SimilarityMeasure::Levenshtein, OnConflict::Replace),
        (SimilarityMeasure::Substring, OnConflict::Refuse),
    ] {
        let settings = CollectionSettings {
            on_conflict,
            ..refreshing(measure)
        };
        let run = |turn_steps: u64| {
            let (hand, disk) = (Hand::default(), Simulated::new());
            let collection = Collection::create_empty(
                Arc::new(disk.clone()),
                &settings,
                options(&hand, turn_steps),
            )
            .unwrap();
            let (mut random, mut answers) = (Random(9), Vec::new());
            for round in 0..60 {
                hand.set((1000 + 7 * round) * S);
                let documents = (0..3).map(|_| {
                    let id = format!("d{}", random.below(40));
                    let seed = random.below(6) as u64;
                    let mut text = random_text([8, 300, 900][random.below(3)], seed);
                    if random.chance(60) {
                        text += ["one", "another", "a longer end of it"][random.below(3)];
                    }
                    document(&id, &text, None)
                });
                let documents = prepare(&collection, documents.collect());
                let inserted = collection.insert_documents(&documents).into_iter();
                answers.extend(inserted.map(|answer| answer.map_err(|error| error.to_string())));
                if random.chance(20) {
                    let id = format!("d{}", random.below(40));
                    collection.delete_document(&id).unwrap();
                }
            }
            (answers, disk.contents())
        };
        let (expected, contents) = run(u64::MAX);
        let duplicates = expected.iter().flatten().filter(|answer| {
            answer.seq.is_some() && !answer.again && answer.verdict != StoredVerdict::Kept
        });
        assert!(duplicates.count() > 20, "{measure:?}");
        for turn_steps in [0, 2000, TURN_STEPS] {
            let (answers, their_contents) = run(turn_steps);
            assert_eq!(answers, expected, "{measure:?} in turns of {turn_steps}");
            for (name, content) in &contents {
                let same = their_contents.get(name) == Some(content);
                assert!(same, "{name} in turns of {turn_steps}");
            }
        }
    }
}

/// A text at the limit of a look-up is returned. Of a longer one nothing is read.
#[test]
fn look_up_reads_no_text_beyond_its_limit() {
    let (hand, disk) = (Hand::default(), Simulated::new());
    let settings = refreshing(SimilarityMeasure::Jaccard);
    let options = options(&hand, TURN_STEPS);
    let collection = Collection::create_empty(Arc::new(disk.clone()), &settings, options.clone());
    let collection = collection.unwrap();
    let text = random_text(30_000, 1);
    hand.set(1000 * S);
    let documents = prepare(&collection, vec![document("a", &text, None)]);
    collection.insert_documents(&documents).remove(0).unwrap();
    let reopened = Collection::open_existing(Arc::new(disk.copy()), options).unwrap();
    for collection in [Arc::new(collection), Arc::new(reopened)] {
        let reads = LongReads::observe(&disk, &collection);
        let look_up = |most_bytes| collection.find_short_document("a", most_bytes).unwrap();
        for most_bytes in [0, text.len() - 1] {
            let Some(DocumentLookup::Long { text_bytes }) = look_up(most_bytes) else {
                panic!("{most_bytes} bytes are too few");
            };
            assert_eq!(text_bytes, text.len());
            assert_eq!(reads.take(), 0);
        }
        for most_bytes in [text.len(), text.len() + 1] {
            let Some(DocumentLookup::Short(found)) = look_up(most_bytes) else {
                panic!("{most_bytes} bytes are enough");
            };
            assert_eq!(found.content, DocumentContent::Text(text.clone()));
        }
        assert!(collection.find_short_document("b", 0).unwrap().is_none());
    }
}
