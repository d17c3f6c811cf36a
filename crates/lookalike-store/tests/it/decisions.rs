//! Decisions of a person, compared with a model that looks at all pairs, and on disks that fail.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lookalike::dedup::PairDecision;
use lookalike::stream::Timestamp;
use lookalike_oracle::OracleDocument as Plain;
use lookalike_oracle::effort::choose_effort;
use lookalike_store::{
    Collection, CollectionSettings, DecisionOutcome, DecisionRequest, DecisionSubject,
    DocumentSelection, ErrorKind, ImportCounts, InsertAnswer, StoredVerdict, export_documents,
    import_documents, repair_collection, restore_collection, verify_collection,
};

use crate::disk::Simulated;
use crate::support::{Hand, Random, S, document, prepare, settings, text};

/// Returns one of few texts. Three of them are equal after normalisation.
fn decided_text(number: usize) -> String {
    let seed = [8, 2, 4, 5, 6, 7, 12, 13, 14, 15][number / 3];
    let base = text(seed);
    match number % 3 {
        0 => base,
        1 => base.to_uppercase(),
        _ => format!("{base}!"),
    }
}

const TEXTS: usize = 30;

fn have_equal_texts(a: usize, b: usize) -> bool {
    decided_text(a / 3 * 3) == decided_text(b / 3 * 3)
}

#[derive(Clone, Debug)]
struct ModelDocument {
    id: String,
    text: usize,
    time: i64,
    seq: u64,
    /// Sequence number of the kept document, and the similarity; `None` if it is kept.
    of: Option<(u64, f64)>,
}

/// Documents in the order of their sequence numbers, and decisions.
struct Model {
    documents: Vec<ModelDocument>,
    decisions: BTreeMap<(usize, usize), PairDecision>,
    similarities: Vec<Vec<f64>>,
    width: Option<i64>,
    clock: i64,
}

impl Model {
    fn new(width: Option<i64>) -> Self {
        let plain: Vec<_> = (0..TEXTS)
            .map(|number| Plain::new(&decided_text(number / 3 * 3), 2))
            .collect();
        let similarities = plain
            .iter()
            .map(|a| plain.iter().map(|b| a.similarity(b)).collect())
            .collect();
        Self {
            documents: Vec::new(),
            decisions: BTreeMap::new(),
            similarities,
            width,
            clock: 0,
        }
    }

    fn decision(&self, a: usize, b: usize) -> Option<PairDecision> {
        self.decisions.get(&(a.min(b), a.max(b))).copied()
    }

    /// Returns what decisions say about two texts.
    fn relation(&self, a: usize, b: usize) -> Option<PairDecision> {
        if decided_text(a) == decided_text(b) {
            return None;
        }
        self.decision(a, b).or_else(|| {
            let different = Some(PairDecision::Different);
            let has_common = (0..TEXTS).any(|third| {
                self.decision(a, third) == different && self.decision(b, third) == different
            });
            different.filter(|_| has_common && !have_equal_texts(a, b))
        })
    }

    /// Returns the similarity of two texts if they match.
    fn similarity(&self, a: usize, b: usize) -> Option<f64> {
        match self.relation(a, b) {
            Some(PairDecision::Same) => Some(1.0),
            Some(PairDecision::Different) => None,
            None => Some(self.similarities[a][b]).filter(|&similarity| similarity >= 0.6),
        }
    }

    fn is_in_window(&self, time: i64) -> bool {
        self.width.is_none_or(|width| time >= self.clock - width)
    }

    /// Returns the best match among kept documents.
    fn best_match(&self, text: usize, time: i64) -> Option<(u64, f64)> {
        let mut best: Option<(u64, f64)> = None;
        for kept in self.documents.iter().filter(|kept| kept.of.is_none()) {
            let is_reached = self
                .width
                .is_none_or(|width| (kept.time - time).abs() <= width)
                && self.is_in_window(kept.time);
            let similarity = self.similarity(kept.text, text).filter(|_| is_reached);
            if let Some(similarity) = similarity
                && best.is_none_or(|(_, most)| similarity > most)
            {
                best = Some((kept.seq, similarity));
            }
        }
        best
    }

    fn insert(&mut self, id: &str, text: usize, time: i64, answer: &InsertAnswer) {
        self.clock = self.clock.max(time);
        let of = self.best_match(text, time);
        let found = match &answer.verdict {
            StoredVerdict::Kept => None,
            StoredVerdict::Duplicate(evidence) => Some((evidence.seq, evidence.similarity)),
        };
        assert_eq!(found, of, "{id} with text {text}: {answer:?}");
        self.documents.push(ModelDocument {
            id: id.to_owned(),
            text,
            time,
            seq: answer.seq.unwrap(),
            of,
        });
    }

    /// Decides, and returns the documents that are judged again.
    fn decide(&mut self, a: usize, b: usize, decision: Option<PairDecision>) -> Vec<ModelDocument> {
        let pair = (a.min(b), a.max(b));
        let texts = (0..TEXTS).flat_map(|a| (0..TEXTS).map(move |b| (a, b)));
        let before: BTreeMap<_, _> = texts.map(|(a, b)| ((a, b), self.relation(a, b))).collect();
        match decision {
            Some(decision) => self.decisions.insert(pair, decision),
            None => self.decisions.remove(&pair),
        };
        let mut leaving: Vec<u64> = Vec::new();
        for kept in self.documents.iter().filter(|kept| kept.of.is_none()) {
            if !self.is_in_window(kept.time) {
                continue;
            }
            let is_earlier_match = |other: &&ModelDocument| {
                other.of.is_none()
                    && other.seq < kept.seq
                    && !leaving.contains(&other.seq)
                    && self.is_in_window(other.time)
                    && self.similarity(kept.text, other.text).is_some()
            };
            let is_demoted = self.documents.iter().any(|other| is_earlier_match(&other));
            let members = self.documents.iter().filter(|member| {
                let names_it = member.of.is_some_and(|(seq, _)| seq == kept.seq);
                names_it && self.is_in_window(member.time)
            });
            let separated = members.filter(|member| {
                let relation = self.relation(kept.text, member.text);
                let has_changed = relation != before[&(kept.text, member.text)];
                is_demoted || has_changed && relation != Some(PairDecision::Same)
            });
            let separated: Vec<u64> = separated.map(|member| member.seq).collect();
            leaving.extend(separated);
            leaving.extend(is_demoted.then_some(kept.seq));
        }
        let (left, stay) = std::mem::take(&mut self.documents)
            .into_iter()
            .partition(|document| leaving.contains(&document.seq));
        self.documents = stay;
        left
    }

    fn judge_again(&mut self, left: Vec<ModelDocument>, outcome: &DecisionOutcome) {
        let ids: Vec<_> = left.iter().map(|document| &*document.id).collect();
        let rejudged = outcome.rejudged.first.iter();
        let rejudged_ids: Vec<_> = rejudged.map(|document| &*document.after.id).collect();
        assert_eq!(rejudged_ids, ids);
        for (document, rejudged) in left.iter().zip(&outcome.rejudged.first) {
            assert_eq!(rejudged.before.seq, Some(document.seq));
            assert_eq!(rejudged.after.time, Timestamp(document.time));
            self.insert(&document.id, document.text, document.time, &rejudged.after);
        }
    }

    /// Checks the law of verdicts for all documents, and that the collection has them.
    fn check(&self, collection: &Collection) {
        for kept in self.documents.iter().filter(|kept| kept.of.is_none()) {
            let matches_it = |other: &&ModelDocument| {
                let is_reached = self
                    .width
                    .is_none_or(|width| (kept.time - other.time).abs() <= width);
                other.of.is_none()
                    && other.seq < kept.seq
                    && is_reached
                    && self.is_in_window(other.time)
                    && self.is_in_window(kept.time)
                    && self.similarity(kept.text, other.text).is_some()
            };
            let earlier = self.documents.iter().find(matches_it);
            assert!(earlier.is_none(), "{kept:?} matches {earlier:?}");
        }
        for expected in &self.documents {
            if !self.is_in_window(expected.time) {
                continue;
            }
            let found = collection.find_document(&expected.id).unwrap().unwrap();
            let of = match &found.answer.verdict {
                StoredVerdict::Kept => None,
                StoredVerdict::Duplicate(evidence) => Some((evidence.seq, evidence.similarity)),
            };
            assert_eq!((found.answer.seq, of), (Some(expected.seq), expected.of));
        }
        let page = collection.list_decisions(0, usize::MAX, None).unwrap();
        assert_eq!(page.total, self.decisions.len());
        assert_eq!(page.decisions.len(), self.decisions.len());
        let seqs: Vec<_> = page.decisions.iter().map(|decision| decision.seq).collect();
        assert!(seqs.is_sorted());
    }
}

fn request(a: &str, b: &str, decision: Option<PairDecision>) -> DecisionRequest {
    DecisionRequest {
        subject: DecisionSubject::Documents([a.to_owned(), b.to_owned()]),
        decision,
    }
}

fn random_decision(random: &mut Random) -> Option<PairDecision> {
    [
        Some(PairDecision::Same),
        Some(PairDecision::Different),
        Some(PairDecision::Different),
        None,
    ][random.below(4)]
}

fn open(disk: &Simulated, hand: &Hand) -> Collection {
    Collection::open_existing(Arc::new(disk.clone()), hand.options()).unwrap()
}

fn insert(collection: &Collection, id: &str, text: &str, time: i64) -> InsertAnswer {
    let prepared = prepare(collection, vec![document(id, text, Some(time))]);
    collection.insert_documents(&prepared).remove(0).unwrap()
}

/// Random inserts, deletions, decisions, restarts, compactions and expiry follow the law. With even seeds here and odd ones
/// below, so that two tests run side by side.
#[test]
fn decisions_follow_the_law() {
    follow_the_law(0);
}

#[test]
fn decisions_follow_the_law_with_odd_seeds() {
    follow_the_law(1);
}

fn follow_the_law(first_seed: u64) {
    for seed in (first_seed..choose_effort(60, 2000) as u64).step_by(2) {
        let mut random = Random(seed);
        let width = [None, Some(20), Some(60)][random.below(3)];
        let hand = Hand::default();
        let mut disk = Simulated::new();
        let settings = settings(width.map(|width| (width, false)));
        let mut collection =
            Collection::create_empty(Arc::new(disk.clone()), &settings, hand.options()).unwrap();
        let mut model = Model::new(width.map(|width| width as i64 * S));
        let mut now = 1000 * S;
        for step in 0..70 {
            now += random.below(3) as i64 * S;
            hand.set(now);
            match random.below(20) {
                0 => {
                    if !model.documents.is_empty() {
                        let at = random.below(model.documents.len());
                        let gone = model.documents.remove(at);
                        collection.delete_document(&gone.id).unwrap();
                    }
                }
                1 => {
                    let copy = disk.copy();
                    drop(collection);
                    disk = copy;
                    collection = open(&disk, &hand);
                }
                2 => collection.compact_all(&mut || true).map(drop).unwrap(),
                3..9 if model.documents.len() > 1 => {
                    let in_window = model.documents.iter();
                    let in_window = in_window.filter(|document| model.is_in_window(document.time));
                    let in_window: Vec<_> = in_window.cloned().collect();
                    let [a, b] = [0, 1].map(|_| &in_window[random.below(in_window.len())]);
                    let decision = random_decision(&mut random);
                    let decided = collection.decide(&request(&a.id, &b.id, decision));
                    if decided_text(a.text) == decided_text(b.text) {
                        assert_eq!(decided.unwrap_err().kind(), ErrorKind::Decision);
                        continue;
                    }
                    let outcome = decided.unwrap();
                    let left = model.decide(a.text, b.text, decision);
                    model.judge_again(left, &outcome);
                }
                _ => {
                    let (id, text) = (format!("{seed}-{step}"), random.below(TEXTS));
                    let answer = insert(&collection, &id, &decided_text(text), now);
                    model.insert(&id, text, now, &answer);
                }
            }
            model.check(&collection);
        }
        let report = verify_collection(&disk.copy()).unwrap();
        assert!(report.findings.is_empty(), "{:?}", report.findings);
    }
}

/// A collection with a kept document, two duplicates of it, and a document beside.
fn small_collection(disk: &Simulated, settings: &CollectionSettings, hand: &Hand) -> Collection {
    hand.set(1000 * S);
    let collection =
        Collection::create_empty(Arc::new(disk.clone()), settings, hand.options()).unwrap();
    let words = "the ferry leaves at seven and nobody on the island misses it";
    for (id, text) in [
        ("kept", words.to_owned()),
        ("near", format!("{words} today")),
        ("copy", words.to_uppercase()),
        (
            "other",
            "a lamp burns by the harbour all night long".to_owned(),
        ),
    ] {
        insert(&collection, id, &text, 1000 * S);
    }
    collection
}

fn verdict_of(collection: &Collection, id: &str) -> Option<String> {
    let found = collection.find_document(id).unwrap().unwrap();
    match found.answer.verdict {
        StoredVerdict::Kept => None,
        StoredVerdict::Duplicate(evidence) => Some(evidence.of),
    }
}

fn verdicts(collection: &Collection) -> [Option<String>; 4] {
    ["kept", "near", "copy", "other"].map(|id| verdict_of(collection, id))
}

/// Decides that `near` and `copy` differ from the kept document, and that the one beside is the same as it.
fn decide_all(collection: &Collection) -> [Option<String>; 4] {
    for (a, b, decision) in [
        ("kept", "near", PairDecision::Different),
        ("kept", "copy", PairDecision::Different),
        ("other", "kept", PairDecision::Same),
    ] {
        let outcome = collection.decide(&request(a, b, Some(decision))).unwrap();
        assert!(outcome.is_new);
        assert_eq!(outcome.rejudged.total, 1);
    }
    let expected = [None, None, None, Some("kept".to_owned())];
    assert_eq!(verdicts(collection), expected);
    expected
}

/// An overruled duplicate is kept, copies of it join it, and the opposite decision takes all back.
#[test]
fn decisions_overrule_verdicts_and_are_withdrawn() {
    let (disk, hand) = (Simulated::new(), Hand::default());
    let collection = small_collection(&disk, &settings(None), &hand);
    let kept = || Some("kept".to_owned());
    assert_eq!(verdicts(&collection), [None, kept(), kept(), None]);
    decide_all(&collection);
    let again = collection
        .decide(&request("near", "kept", Some(PairDecision::Different)))
        .unwrap();
    assert!(!again.is_new && again.rejudged.total == 0);
    // An exact copy of an overruled document has its content, so it joins it, and a later one, too.
    let words = "the ferry leaves at seven and nobody on the island misses it";
    let copied = insert(&collection, "copied", &format!("{words} today"), 1000 * S);
    assert_eq!(copied.cluster_id(), "near");
    let withdrawn = collection.decide(&request("kept", "near", None)).unwrap();
    let mut ids: Vec<_> = withdrawn
        .rejudged
        .first
        .iter()
        .map(|one| &*one.after.id)
        .collect();
    ids.sort_unstable();
    assert_eq!(ids, ["copied", "near"]);
    assert_eq!(verdicts(&collection)[1], kept());
    assert_eq!(verdict_of(&collection, "copied"), kept());
    let page = collection.list_decisions(0, 1, None).unwrap();
    assert_eq!((page.decisions.len(), page.total), (1, 2));
    let rest = collection.list_decisions(page.continue_after.unwrap(), 9, None);
    let rest = rest.unwrap();
    assert_eq!((rest.decisions.len(), rest.continue_after), (1, None));
    assert_eq!(rest.decisions[0].decision, PairDecision::Same);
    let about = collection.list_decisions(0, 9, Some("copy")).unwrap();
    assert_eq!(about.decisions.len(), 1);
    for (a, b) in [("kept", "kept"), ("kept", "missing")] {
        let refused = collection.decide(&request(a, b, None)).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Decision);
    }
}

/// Decisions are in snapshots, exports and repaired collections, and hold there.
#[test]
fn decisions_are_copied_with_the_collection() {
    let (disk, hand) = (Simulated::new(), Hand::default());
    let collection = small_collection(&disk, &settings(None), &hand);
    let expected = decide_all(&collection);
    let check = |copied: &Collection| {
        assert_eq!(verdicts(copied), expected);
        let decisions = |collection: &Collection| {
            let page = collection.list_decisions(0, 9, None).unwrap();
            page.decisions
                .into_iter()
                .map(|one| (one.texts, one.decision))
                .collect::<Vec<_>>()
        };
        assert_eq!(decisions(copied), decisions(&collection));
        let later = insert(
            copied,
            "later",
            "A LAMP burns by the harbour all night long",
            1000 * S,
        );
        assert_eq!(
            later.verdict,
            StoredVerdict::Kept,
            "only the text itself is the same"
        );
    };
    let snapshot = Simulated::new();
    collection.copy_to_snapshot(&snapshot).unwrap();
    let restored = Simulated::new();
    restore_collection(&snapshot, &restored, 0).unwrap();
    check(&open(&restored, &hand));
    let mut lines = Vec::new();
    assert_eq!(export_documents(&collection, &mut lines).unwrap(), 4);
    let create = || {
        let disk = Arc::new(Simulated::new());
        Collection::create_empty(disk, &settings(None), hand.options()).unwrap()
    };
    let imported = create();
    let mut reject = |number, error: &_| panic!("{number}: {error}");
    let counts = import_documents(&imported, &mut &*lines, &mut reject).unwrap();
    let expected_counts = ImportCounts {
        new: 4,
        decisions: 3,
        ..ImportCounts::default()
    };
    assert_eq!(counts, expected_counts);
    check(&imported);
    let (report, repaired) = repair_collection(
        &disk.copy(),
        None,
        Arc::new(Simulated::new()),
        hand.options(),
    )
    .unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    check(&repaired);
}

/// A decision outlives the partition that it was made in.
#[test]
fn decisions_do_not_expire() {
    let (mut disk, hand) = (Simulated::new(), Hand::default());
    let mut collection = small_collection(&disk, &settings(Some((24, false))), &hand);
    decide_all(&collection);
    let words = "the ferry leaves at seven and nobody on the island misses it";
    for round in 1..6 {
        let now = (1000 + round * 30) * S;
        hand.set(now);
        let copy = disk.copy();
        drop(collection);
        disk = copy;
        collection = open(&disk, &hand);
        let kept = insert(&collection, &format!("kept-{round}"), words, now);
        let near = insert(
            &collection,
            &format!("near-{round}"),
            &format!("{words} today"),
            now,
        );
        let harbour = "a lamp burns by the harbour all night long";
        let other = insert(&collection, &format!("other-{round}"), harbour, now);
        let is_kept = [&kept, &near].map(|answer| answer.verdict == StoredVerdict::Kept);
        assert_eq!(is_kept, [true, true], "{round}");
        assert_eq!(other.cluster_id(), kept.id, "{round}");
        assert!(collection.find_document("kept").unwrap().is_none());
        assert_eq!(collection.list_decisions(0, 9, None).unwrap().total, 3);
    }
    assert!(collection.collect_stats().unwrap().partitions < 4);
}

/// After a loss of power, a decision is there with the verdicts that follow from it, or neither is.
#[test]
fn decision_is_on_disk_as_a_whole() {
    let (disk, hand) = (Simulated::new(), Hand::default());
    let collection = small_collection(&disk, &settings(None), &hand);
    let lost: Arc<Mutex<Vec<Simulated>>> = Arc::default();
    let seen = Arc::clone(&lost);
    disk.set_hook(move |disk, operation| {
        let after = disk.after_power_loss(&mut Random(operation));
        seen.lock().unwrap().push(after);
    });
    decide_all(&collection);
    let kept = || Some("kept".to_owned());
    let states = [
        [None, kept(), kept(), None],
        [None, None, kept(), None],
        [None, None, None, None],
        [None, None, None, kept()],
    ];
    let mut counts = [0; 4];
    for disk in lost.lock().unwrap().iter() {
        let reopened = open(disk, &hand);
        let total = reopened.list_decisions(0, 9, None).unwrap().total;
        assert_eq!(verdicts(&reopened), states[total], "{total} decisions");
        counts[total] += 1;
    }
    assert!(counts.iter().all(|&count| count > 0), "{counts:?}");
}

/// If the disk refuses a text while documents are judged again, nothing of the decision reaches it.
#[test]
fn refused_read_leaves_no_half_of_a_decision() {
    let (disk, hand) = (Simulated::new(), Hand::default());
    drop(small_collection(&disk, &settings(None), &hand));
    let mut failures = 0;
    for read in 0..60 {
        let disk = disk.copy();
        let collection = open(&disk, &hand);
        disk.fail_read(read + 1);
        let request = request("kept", "near", Some(PairDecision::Different));
        let decided = collection.decide(&request);
        drop(collection);
        let reopened = open(&disk.copy(), &hand);
        let total = reopened.list_decisions(0, 9, None).unwrap().total;
        let near = verdict_of(&reopened, "near");
        match decided {
            Ok(_) => assert_eq!((total, near), (1, None)),
            Err(_) => {
                failures += 1;
                assert_eq!((total, near), (0, Some("kept".to_owned())));
            }
        }
    }
    assert!(failures > 0);
}

/// Windows that are refreshed and follow the wall clock are respected: a document past its window is not judged again.
#[test]
fn documents_past_the_window_are_not_judged_again() {
    let (disk, hand) = (Simulated::new(), Hand::default());
    let made = settings(Some((240, true)));
    let collection = small_collection(&disk, &made, &hand);
    let words = "the ferry leaves at seven and nobody on the island misses it";
    for (id, seconds) in [("first", 1100), ("second", 1300)] {
        hand.set(seconds * S);
        let answer = insert(&collection, id, &format!("{words} today"), seconds * S);
        assert_eq!(answer.cluster_id(), "kept");
    }
    // `near` has left the window, but the kept document was refreshed by `second`.
    let decision = Some(PairDecision::Different);
    let outcome = collection.decide(&request("kept", "second", decision));
    let outcome = outcome.unwrap();
    let ids: Vec<_> = outcome
        .rejudged
        .first
        .iter()
        .map(|one| &*one.after.id)
        .collect();
    assert_eq!(ids, ["first", "second"]);
    assert_eq!(outcome.rejudged.first[0].after.verdict, StoredVerdict::Kept);
    assert_eq!(outcome.rejudged.first[1].after.cluster_id(), "first");
    assert_eq!(Duration::from_secs(240), made.window.unwrap().width());
}

/// A text of nothing but white space matches nothing, so nothing can be decided about it, and what was decided before can
/// be withdrawn.
#[test]
fn empty_texts_are_not_decided() {
    let (disk, hand) = (Simulated::new(), Hand::default());
    let collection = small_collection(&disk, &settings(None), &hand);
    insert(&collection, "blank", " \n ", 1000 * S);
    for decision in [PairDecision::Same, PairDecision::Different] {
        for (a, b) in [("blank", "kept"), ("kept", "blank")] {
            let refused = collection.decide(&request(a, b, Some(decision)));
            let refused = refused.unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Decision);
            assert!(
                refused.to_string().contains("'blank' is empty"),
                "{refused}"
            );
        }
    }
    let withdrawn = collection.decide(&request("blank", "kept", None)).unwrap();
    assert!(!withdrawn.is_new);
    assert_eq!(collection.list_decisions(0, 9, None).unwrap().total, 0);
    assert_eq!(verdict_of(&collection, "blank"), None);
}

/// The documents that an outcome has forgotten are those of a list after its number.
#[test]
fn forgotten_documents_are_listed_after_the_others() {
    let (disk, hand) = (Simulated::new(), Hand::default());
    let collection = small_collection(&disk, &settings(None), &hand);
    let same = Some(PairDecision::Same);
    let outcome = collection.decide(&request("other", "kept", same)).unwrap();
    let whole = outcome.rejudged;
    assert_eq!((whole.total, whole.continue_after()), (1, None));
    collection.decide(&request("other", "kept", None)).unwrap();
    insert(
        &collection,
        "first",
        "a boat of oak lies on the beach in the evening",
        1000 * S,
    );
    let different = Some(PairDecision::Different);
    collection
        .decide(&request("kept", "near", different))
        .unwrap();
    let withdrawn = collection.decide(&request("kept", "near", None)).unwrap();
    let mut rejudged = withdrawn.rejudged;
    let ids: Vec<String> = rejudged
        .first
        .iter()
        .map(|one| one.after.id.clone())
        .collect();
    for kept in (0..ids.len()).rev() {
        rejudged.keep_first(kept);
        assert_eq!((rejudged.total, rejudged.first.len()), (ids.len(), kept));
        let selection = DocumentSelection {
            count: 9,
            has_texts: false,
            accepts: &|_, _| true,
        };
        let after = rejudged.continue_after().unwrap();
        let page = collection.list_documents(after, &selection).unwrap();
        let listed: Vec<_> = page.documents.iter().map(|one| &*one.answer.id).collect();
        assert_eq!(listed, ids[kept..]);
    }
}
