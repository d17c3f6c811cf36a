//! Random sequences of calls, compared with a model that scans all documents.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use lookalike_oracle::OracleDocument as Plain;
use lookalike_oracle::effort::choose_effort;
use lookalike_store::{
    Collection, CollectionOptions, CollectionSettings, DocumentContent, ErrorKind, ExpiryClock,
    InsertAnswer, OnConflict, SettingsChange, StoredVerdict,
};
use proptest::prelude::*;

use crate::disk::Simulated;
use crate::support::{Hand, S, document, page_of_clusters, prepare, settings, text};

#[derive(Clone, Debug)]
enum Step {
    /// Documents by id and text, and how late each is, inserted together.
    Insert(Vec<(usize, usize, i64)>),
    /// A document by id and text, and how late it is.
    Query(usize, usize, i64),
    Delete(usize),
    Wait(i64),
    SetBack(i64),
    Restart,
    /// Compacts every partition with dead rows, while a document, by id and text, is inserted.
    Compact(usize, usize),
    Maintain,
    /// Changes the width of the window, `refresh`, `expire` and `on_conflict`.
    Change(u64, bool, ExpiryClock, OnConflict),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let lag = prop_oneof![6 => Just(0i64), 3 => -2i64..10, 1 => -100i64..100];
    let one = (0..60usize, 0..90usize, lag.clone());
    let step = prop_oneof![
        10 => proptest::collection::vec(one, 1..5).prop_map(Step::Insert),
        2 => (0..60usize, 0..90usize, lag)
            .prop_map(|(id, text, lag)| Step::Query(id, text, lag)),
        2 => (0..60usize).prop_map(Step::Delete),
        4 => (0..9i64).prop_map(Step::Wait),
        1 => (20..60i64).prop_map(Step::Wait),
        1 => (1..80i64).prop_map(Step::SetBack),
        1 => Just(Step::Restart),
        2 => (0..60usize, 0..90usize).prop_map(|(id, text)| Step::Compact(id, text)),
        1 => Just(Step::Maintain),
        2 => change_steps(),
    ];
    proptest::collection::vec(step, 1..60)
}

fn change_steps() -> impl Strategy<Value = Step> {
    let width = prop_oneof![Just(12u64), Just(24), Just(48), Just(96)];
    let expire = prop_oneof![3 => Just(ExpiryClock::Documents), 1 => Just(ExpiryClock::Wall)];
    let on_conflict = prop_oneof![Just(OnConflict::Refuse), Just(OnConflict::Replace)];
    let change = (width, any::<bool>(), expire, on_conflict);
    change.prop_map(|(width, refresh, expire, on_conflict)| {
        Step::Change(width, refresh, expire, on_conflict)
    })
}

struct Remembered {
    id: String,
    plain: Plain,
    time: i64,
    seq: u64,
}

/// Answer to a document, and its text.
struct Said {
    answer: InsertAnswer,
    text: String,
    /// Clock when it was inserted or moved.
    since: i64,
    /// `true` if the clock was later set back to more than a window before it.
    is_far: bool,
}

struct Model {
    settings: CollectionSettings,
    width: i64,
    newest: i64,
    /// Clock when the newest partition began.
    began: Option<i64>,
    /// Latest value of the clock; `was_set_back` is `true` if it was ever set back.
    peak: i64,
    was_set_back: bool,
    /// `true` if the window also follows the wall clock.
    by_wall: bool,
    kept: Vec<Remembered>,
    /// Answers by id.
    answered: BTreeMap<String, Said>,
    /// Documents past the window, which may be within it again after a change.
    gone: BTreeMap<String, (Said, Option<Remembered>)>,
    /// Longest time that a partition lasts.
    lasts: i64,
}

impl Model {
    fn arrival(&self, stated: i64, now: i64) -> (i64, i64) {
        let time = stated.min(now + 5 * S);
        let least = if self.by_wall { now } else { i64::MIN };
        (time, self.newest.max(time).max(least).min(now + 5 * S))
    }

    fn best(&self, text: &str, stated: i64, now: i64) -> Option<(usize, f64)> {
        self.best_of(|_| true, text, stated, now)
    }

    /// Returns the best match as if the document with this id did not exist.
    fn best_without(&self, id: &str, text: &str, stated: i64, now: i64) -> Option<(usize, f64)> {
        self.best_of(|kept| kept.id != id, text, stated, now)
    }

    fn best_of(
        &self,
        counts: impl Fn(&Remembered) -> bool,
        text: &str,
        stated: i64,
        now: i64,
    ) -> Option<(usize, f64)> {
        let (time, clock) = self.arrival(stated, now);
        let plain = Plain::new(text, 2);
        let mut best: Option<(usize, f64)> = None;
        for (at, kept) in self.kept.iter().enumerate() {
            let reached = (kept.time - time).abs() <= self.width && kept.time >= clock - self.width;
            let similarity = kept.plain.similarity(&plain);
            if counts(kept)
                && reached
                && similarity >= 0.6
                && best.is_none_or(|(_, most)| similarity > most)
            {
                best = Some((at, similarity));
            }
        }
        best
    }

    fn agrees(&self, answer: &InsertAnswer, best: Option<(usize, f64)>) -> bool {
        match (&answer.verdict, best) {
            (StoredVerdict::Kept, None) => true,
            (StoredVerdict::Duplicate(evidence), Some((at, similarity))) => {
                let kept = &self.kept[at];
                (&*evidence.of, evidence.seq, evidence.similarity)
                    == (&*kept.id, kept.seq, similarity)
            }
            _ => false,
        }
    }

    /// Returns the start of a document's window.
    fn time_of(&self, id: &str) -> Option<i64> {
        let kept = self.kept.iter().find(|kept| kept.id == id);
        let said = self.answered.get(id).map(|said| said.answer.time.0);
        kept.map(|kept| kept.time).or(said)
    }

    /// Returns `true` if a document may have been dropped with its partition. This stays true if the clock is
    /// set back.
    fn may_be_gone(&self, id: &str) -> bool {
        let is_far = self.answered.get(id).is_none_or(|said| said.is_far);
        is_far || self.time_of(id) < Some(self.peak - self.width)
    }

    /// Removes dropped documents. Nothing may be dropped too early, and nothing too late.
    fn drop_expired(&mut self, collection: &Collection, now: i64) -> Result<(), TestCaseError> {
        if self.by_wall {
            self.peak = self.peak.max(now);
        }
        let clock = self.peak;
        let ids: Vec<String> = self.answered.keys().cloned().collect();
        for id in ids {
            let there = collection.find_document(&id).unwrap();
            let seq = self.answered[&id].answer.seq;
            if there.is_some_and(|there| there.answer.seq == seq) {
                // A partition lasts a 24th of the window, and is dropped a window later.
                let stays = self.answered[&id].since + self.width + self.lasts;
                prop_assert!(
                    self.was_set_back || clock < stays,
                    "'{}' is still there",
                    id
                );
            } else {
                prop_assert!(self.may_be_gone(&id), "'{}' is gone", id);
                let said = self.answered.remove(&id).unwrap();
                let at = self.kept.iter().position(|kept| kept.id == id);
                let kept = at.map(|at| self.kept.remove(at));
                self.gone.insert(id, (said, kept));
            }
        }
        Ok(())
    }

    fn forget(&mut self, id: &str) {
        self.gone.remove(id);
        self.answered.remove(id);
        self.kept.retain(|kept| kept.id != id);
    }

    /// Follows a change of the settings. Documents past the former window that are still stored exist again.
    fn change(&mut self, collection: &Collection, now: i64) -> Result<(), TestCaseError> {
        self.settings = CollectionSettings::clone(&collection.collection_settings());
        let window = self.settings.window.unwrap();
        self.width = window.width().as_micros() as i64;
        self.lasts = self.lasts.max(self.width / 24);
        // The clock of the documents may be behind the wall clock.
        self.was_set_back |= self.by_wall && !window.follows_wall_clock();
        // A narrower window expires documents by the clock of now, which is behind its latest value if the wall
        // clock was set back.
        self.was_set_back |= self.peak > now + 5 * S;
        self.by_wall = window.follows_wall_clock();
        for (id, (said, kept)) in std::mem::take(&mut self.gone) {
            let there = collection.find_document(&id).unwrap();
            if there.is_some_and(|there| there.answer.seq == said.answer.seq) {
                self.kept.extend(kept);
                self.answered.insert(id, said);
            } else {
                self.gone.insert(id, (said, kept));
            }
        }
        self.kept.sort_by_key(|kept| kept.seq);
        self.drop_expired(collection, now)
    }

    /// Checks the answer to a document and adds it to the model.
    fn take(
        &mut self,
        (id, text, stated, now): (&str, &str, i64, i64),
        answer: Result<InsertAnswer, lookalike_store::Error>,
    ) -> Result<(), TestCaseError> {
        let (time, clock) = self.arrival(stated, now);
        if let Some(said) = self.answered.get(id) {
            // A document past the window is unknown, even if it is still stored.
            let past = self.time_of(id) < Some(clock - self.width);
            match &answer {
                Ok(again) if again.again => {
                    prop_assert!(!past);
                    prop_assert_eq!(&said.text, text);
                    let plain = InsertAnswer {
                        again: false,
                        time: said.answer.time,
                        ..again.clone()
                    };
                    prop_assert_eq!(&plain, &said.answer);
                    return Ok(());
                }
                Err(error) => {
                    prop_assert!(!past);
                    prop_assert_eq!(error.kind(), ErrorKind::Conflict);
                    prop_assert!(said.text != text);
                    prop_assert!(self.settings.on_conflict == OnConflict::Refuse);
                    return Ok(());
                }
                Ok(fresh) => {
                    let replaces = self.settings.on_conflict == OnConflict::Replace;
                    let replaced = said.text != text && replaces;
                    prop_assert!(past || replaced || self.may_be_gone(id));
                    if fresh.seq.is_some() {
                        self.forget(id);
                    }
                }
            }
        }
        let answer = answer.unwrap();
        let mut best = self.best(text, stated, now);
        if answer.seq.is_none() && self.answered.contains_key(id) {
            best = self.best_without(id, text, stated, now);
        }
        if !self.agrees(&answer, best) {
            // This document may be the one that expires them.
            let stays = |kept: &Remembered| !self.answered[&kept.id].is_far;
            best = self.best_of(stays, text, stated, now);
        }
        prop_assert!(self.agrees(&answer, best), "{:?} {:?}", answer, best);
        prop_assert_eq!(answer.time.0, time);
        prop_assert_eq!(answer.seq.is_none(), time < clock - self.width);
        let Some(seq) = answer.seq else {
            return Ok(());
        };
        let lasts = self.width / 24;
        if self
            .began
            .is_none_or(|began| (clock - began).abs() >= lasts)
        {
            self.began = Some(clock);
            self.newest = self.newest.min(clock + self.width);
        }
        self.newest = self.newest.max(time);
        self.was_set_back |= clock < self.peak;
        self.peak = self.peak.max(clock);
        let end = Some(clock + self.width);
        let ids = self.answered.keys().cloned();
        let far: Vec<String> = ids.filter(|id| self.time_of(id) > end).collect();
        for id in far {
            self.answered.get_mut(&id).unwrap().is_far = true;
        }
        match best {
            Some((at, _)) => {
                if self
                    .settings
                    .window
                    .is_some_and(|window| window.is_refreshing())
                {
                    let kept = &mut self.kept[at];
                    kept.time = kept.time.max(time);
                    // It is stored again if it moves to another partition.
                    self.newest = self.newest.max(kept.time);
                    let said = self.answered.get_mut(&kept.id).unwrap();
                    said.since = clock;
                }
            }
            None => self.kept.push(Remembered {
                id: id.to_owned(),
                plain: Plain::new(text, 2),
                time,
                seq,
            }),
        }
        let said = Said {
            answer,
            text: text.to_owned(),
            since: clock,
            is_far: false,
        };
        self.answered.insert(id.to_owned(), said);
        Ok(())
    }
}

fn open(disk: &Simulated, options: CollectionOptions) -> Collection {
    Collection::open_existing(Arc::new(disk.clone()), options).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(choose_effort(40, 120)))]

    #[test]
    fn every_sequence_of_calls_follows_the_rule(
        steps in steps(),
        width in prop_oneof![Just(48i64), Just(12)],
        refresh in any::<bool>(),
        replace in any::<bool>(),
        by_wall in any::<bool>(),
        // Without steps, all that needs a text is done without a lock.
        turn_steps in prop_oneof![Just(1u64 << 21), Just(2000), Just(0)],
    ) {
        let on_conflict = if replace { OnConflict::Replace } else { OnConflict::Refuse };
        let made = settings(Some((width.unsigned_abs(), refresh)));
        let settings = CollectionSettings {
            on_conflict,
            window: made.window.map(|window| window.with_wall_clock(by_wall)),
            ..made
        };
        let hand = Hand::default();
        let options = || {
            let mut options = hand.options();
            options.verification.turn_steps = turn_steps;
            options
        };
        let mut now = 5000 * S;
        hand.set(now);
        let mut disk = Simulated::new();
        let mut collection =
            Collection::create_empty(Arc::new(disk.clone()), &settings, options()).unwrap();
        let mut model = Model {
            settings,
            width: width * S,
            newest: i64::MIN / 2,
            began: None,
            peak: i64::MIN / 2,
            was_set_back: false,
            by_wall,
            kept: Vec::new(),
            answered: BTreeMap::new(),
            gone: BTreeMap::new(),
            lasts: width * S / 24,
        };
        for step in steps {
            match step {
                Step::Wait(seconds) => {
                    now += seconds * S;
                    hand.set(now);
                }
                // The clock is not set back, because documents past the window by the wall clock would exist
                // again.
                Step::SetBack(_) if model.by_wall => {}
                Step::SetBack(seconds) => {
                    now -= seconds * S;
                    hand.set(now);
                }
                Step::Insert(offered) => {
                    let offered: Vec<_> = offered
                        .into_iter()
                        .map(|(id, seed, lag)| (format!("d{id}"), text(seed), now - lag * S))
                        .collect();
                    let documents = offered
                        .iter()
                        .map(|(id, text, time)| document(id, text, Some(*time)))
                        .collect();
                    let answers = collection.insert_documents(&prepare(&collection, documents));
                    for ((id, text, time), answer) in offered.iter().zip(answers) {
                        model.take((id, text, *time, now), answer)?;
                    }
                    model.drop_expired(&collection, now)?;
                }
                Step::Query(id, seed, lag) => {
                    let (id, text, time) = (format!("d{id}"), text(seed), now - lag * S);
                    let asked = prepare(&collection, vec![document(&id, &text, Some(time))]);
                    let answer = collection.query_document(&asked[0]);
                    let (_, clock) = model.arrival(time, now);
                    let past = model.time_of(&id) < Some(clock - model.width);
                    match collection.find_document(&id).unwrap().filter(|_| !past) {
                        Some(there) if there.content == DocumentContent::Text(text.clone()) => {
                            let first = InsertAnswer { again: true, ..there.answer };
                            prop_assert_eq!(answer.unwrap(), first);
                        }
                        Some(_) if model.settings.on_conflict == OnConflict::Refuse => {
                            prop_assert_eq!(answer.unwrap_err().kind(), ErrorKind::Conflict);
                        }
                        _ => {
                            let answer = answer.unwrap();
                            let best = model.best_without(&id, &text, time, now);
                            prop_assert!(model.agrees(&answer, best), "{:?} {:?}", answer, best);
                            prop_assert!(answer.seq.is_none());
                        }
                    }
                }
                Step::Compact(id, seed) => {
                    let (id, text) = (format!("d{id}"), text(seed));
                    let mut said = None;
                    collection.compact_all(&mut || {
                        let asked = vec![document(&id, &text, Some(now))];
                        said.get_or_insert_with(|| collection.insert_documents(&prepare(&collection, asked)).remove(0));
                        true
                    }).unwrap();
                    if let Some(answer) = said {
                        model.take((&id, &text, now, now), answer)?;
                    }
                    model.drop_expired(&collection, now)?;
                }
                Step::Maintain => {
                    collection.run_maintenance(&mut || true).unwrap();
                    model.drop_expired(&collection, now)?;
                }
                Step::Change(width, refresh, expire, on_conflict) => {
                    model.drop_expired(&collection, now)?;
                    let change = SettingsChange {
                        width: Some(Duration::from_secs(width)),
                        skew: None,
                        refresh: Some(refresh),
                        expire: Some(expire),
                        on_conflict: Some(on_conflict),
                    };
                    let changed = collection.change_settings(&change).unwrap();
                    prop_assert_eq!(&changed, &collection.collection_settings());
                    model.change(&collection, now)?;
                }
                Step::Delete(id) => {
                    let id = format!("d{id}");
                    model.drop_expired(&collection, now)?;
                    let there = collection.find_document(&id).unwrap().is_some();
                    prop_assert!(there || model.may_be_gone(&id));
                    prop_assert_eq!(collection.delete_document(&id).unwrap(), there);
                    prop_assert!(collection.find_document(&id).unwrap().is_none());
                    model.forget(&id);
                }
                Step::Restart => {
                    let after = disk.copy();
                    drop(collection);
                    disk = after;
                    collection = open(&disk, options());
                }
            }
        }
        let page = page_of_clusters(&collection, None, usize::MAX, usize::MAX);
        for cluster in page.clusters {
            for member in cluster.members {
                prop_assert_eq!(member.cluster_id(), &cluster.kept.id);
                prop_assert_eq!(model.answered[&member.id].answer.seq, member.seq);
            }
        }
    }
}

/// Of equal documents that arrive at the same time, exactly one is kept.
#[test]
fn concurrent_equal_documents_keep_exactly_one() {
    let hand = Hand::default();
    let collection =
        Collection::create_empty(Arc::new(Simulated::new()), &settings(None), hand.options())
            .unwrap();
    let answers = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let (collection, answers) = (&collection, &answers);
            scope.spawn(move || {
                for round in 0..50 {
                    let id = format!("{writer}-{round}");
                    let text = format!("the same words in round {round}");
                    let one = prepare(collection, vec![document(&id, &text, None)]);
                    let answer = collection.insert_documents(&one).remove(0).unwrap();
                    answers.lock().unwrap().push((round, answer));
                }
            });
        }
    });
    let mut answers = answers.into_inner().unwrap();
    answers.sort_by_key(|(_, answer)| answer.seq);
    let mut model = Model {
        settings: settings(None),
        width: i64::MAX / 4,
        newest: 0,
        began: None,
        peak: 0,
        was_set_back: false,
        by_wall: false,
        kept: Vec::new(),
        answered: BTreeMap::new(),
        gone: BTreeMap::new(),
        lasts: 0,
    };
    for (round, answer) in answers {
        let text = format!("the same words in round {round}");
        let id = answer.id.clone();
        model.take((&id, &text, 0, 0), Ok(answer)).unwrap();
    }
    assert_eq!(model.answered.len(), 200);
}

/// A document is no duplicate of the one that it replaces, not even if it is only queried or is too late to
/// be stored.
#[test]
fn replaced_document_is_not_compared() {
    let settings = CollectionSettings {
        on_conflict: OnConflict::Replace,
        ..settings(Some((100, false)))
    };
    let hand = Hand::default();
    let disk = Arc::new(Simulated::new());
    let collection = Collection::create_empty(disk, &settings, hand.options()).unwrap();
    hand.set(1000 * S);
    let one = |id: &str, text: &str, seconds: i64| {
        prepare(&collection, vec![document(id, text, Some(seconds * S))]).remove(0)
    };
    let insert = |document| collection.insert_documents(&[document]).remove(0).unwrap();
    insert(one("a", "alpha beta gamma", 900));
    insert(one("b", "something else", 990));
    let late = insert(one("a", "alpha beta gamma!", 850));
    assert_eq!((late.verdict, late.seq), (StoredVerdict::Kept, None));
    let asked = one("a", "alpha beta gamma?", 910);
    assert_eq!(
        collection.query_document(&asked).unwrap().verdict,
        StoredVerdict::Kept
    );
    assert_eq!(insert(asked).verdict, StoredVerdict::Kept);
    let other = one("c", "alpha beta gamma", 910);
    assert_eq!(collection.query_document(&other).unwrap().cluster_id(), "a");
}

/// An id is taken only while its document is in the window, however long that stays on disk.
#[test]
fn expired_id_can_be_reused() {
    for on_conflict in [OnConflict::Refuse, OnConflict::Replace] {
        let settings = CollectionSettings {
            on_conflict,
            ..settings(Some((240, false)))
        };
        let hand = Hand::default();
        let disk = Simulated::new();
        let collection =
            Collection::create_empty(Arc::new(disk.clone()), &settings, hand.options()).unwrap();
        let insert = |id: &str, text: &str, seconds: i64| {
            hand.set(seconds * S);
            let one = prepare(&collection, vec![document(id, text, None)]);
            let verdict = |answer: Result<InsertAnswer, lookalike_store::Error>| {
                answer.map(|answer| answer.verdict).ok()
            };
            let asked = verdict(collection.query_document(&one[0]));
            assert_eq!(asked, verdict(collection.insert_documents(&one).remove(0)));
            collection.insert_documents(&one).remove(0)
        };
        let seq = |answer: Result<InsertAnswer, lookalike_store::Error>| answer.unwrap().seq;
        let first = "alpha beta gamma";
        assert_eq!(seq(insert("a", first, 1000)), Some(1));
        // This document keeps its partition from expiring.
        assert_eq!(seq(insert("b", "some other words", 1005)), Some(2));
        assert_eq!(seq(insert("a", first, 1240)), Some(1));
        if on_conflict == OnConflict::Refuse {
            let refused = insert("a", "something else", 1240).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Conflict);
        }
        assert!(collection.find_document("a").unwrap().is_some());
        // Row 3 deletes the previous document.
        assert_eq!(seq(insert("a", "something else", 1241)), Some(4));
        assert_eq!(seq(insert("a", "something else", 100_000)), Some(5));
        assert_eq!(
            collection.find_document("a").unwrap().unwrap().answer.seq,
            Some(5)
        );
        let again = open(&disk.copy(), hand.options());
        assert_eq!(
            again.find_document("a").unwrap().unwrap().answer.seq,
            Some(5)
        );
    }
}
