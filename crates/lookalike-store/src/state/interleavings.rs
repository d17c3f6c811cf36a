//! Concurrent callers, in every order of their steps.
//!
//! A caller looks ahead under the shared lock and admits under the exclusive one; another caller deletes.
//! Callers share nothing but the lock, so the orders of steps are all that threads can produce. Every order
//! must end as if each document were checked and admitted in one step.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use lookalike::Threshold;
use lookalike::plan::{self, MatchMethod};
use lookalike::stream::{DocumentPreparer, StreamWindow, Timestamp};
use lookalike::text::AnalysisScratch;

use super::{CollectionState, DocumentCheck};
use crate::document::{DocumentContent, InsertAnswer, NewDocument, PendingInsert, hash_id};
use crate::error::{ErrorKind, Result};
use crate::files::rows::PartitionRow;
use crate::settings::{CollectionSettings, OnConflict};

const S: i64 = 1_000_000;

/// A caller.
enum ConcurrentCaller {
    /// Inserts documents together, at this time.
    Insert(Vec<PendingInsert>, Timestamp),
    Delete(String),
}

impl ConcurrentCaller {
    fn step_count(&self) -> usize {
        match self {
            Self::Insert(..) => 2,
            Self::Delete(_) => 1,
        }
    }
}

/// Answers of all callers, and the rows at the end.
#[derive(Debug, PartialEq)]
struct CallerOutcome {
    answers: Vec<Vec<Result<InsertAnswer, ErrorKind>>>,
    rows: Vec<PartitionRow>,
}

/// Returns all orders of steps, each as a list of callers.
fn all_orders(callers: &[ConcurrentCaller]) -> Vec<Vec<usize>> {
    fn extend(left: &mut [usize], order: &mut Vec<usize>, orders: &mut Vec<Vec<usize>>) {
        if left.iter().all(|&steps| steps == 0) {
            orders.push(order.clone());
        }
        for caller in 0..left.len() {
            if left[caller] > 0 {
                left[caller] -= 1;
                order.push(caller);
                extend(left, order, orders);
                order.pop();
                left[caller] += 1;
            }
        }
    }
    let mut left: Vec<usize> = callers.iter().map(ConcurrentCaller::step_count).collect();
    let mut orders = Vec::new();
    extend(&mut left, &mut Vec::new(), &mut orders);
    orders
}

/// Checks all documents before they are admitted.
pub(super) fn check(
    state: &CollectionState,
    documents: &[PendingInsert],
    now: Timestamp,
) -> Vec<DocumentCheck> {
    let mut checks: Vec<_> = documents.iter().map(|_| None).collect();
    let count = state.check_ahead(documents, &mut checks, now, u64::MAX);
    assert_eq!(count, documents.len());
    checks.into_iter().flatten().collect()
}

/// Runs the callers in an order. With `at_once`, each looks ahead only in its last step.
fn run_order(
    mut state: CollectionState,
    callers: &[ConcurrentCaller],
    order: &[usize],
    at_once: bool,
) -> CallerOutcome {
    let mut precheck: Vec<_> = callers.iter().map(|_| None).collect();
    let mut answers: Vec<Vec<_>> = callers.iter().map(|_| Vec::new()).collect();
    for (step, &caller) in order.iter().enumerate() {
        let is_last = !order[step + 1..].contains(&caller);
        match &callers[caller] {
            ConcurrentCaller::Insert(documents, now) => {
                if at_once == is_last {
                    precheck[caller] = Some(check(&state, documents, *now));
                }
                if is_last {
                    let prechecked = precheck[caller].take().unwrap();
                    for (document, mut check) in documents.iter().zip(prechecked) {
                        let answer = state.admit_document(document, &mut check, *now);
                        answers[caller].push(answer.map_err(|error| error.kind()));
                    }
                }
            }
            ConcurrentCaller::Delete(id) => {
                if let Some(known) = state.find_by_id(id, hash_id(id)).unwrap() {
                    answers[caller].push(Ok(known.to_answer(false)));
                    state.delete_document(&known, Timestamp(0));
                }
            }
        }
    }
    let rows = (1..=state.last_row()).map(|number| state.read_row(number).unwrap());
    CallerOutcome {
        answers,
        rows: rows.collect(),
    }
}

/// A pseudo-random number generator.
struct RandomNumbers(u64);

impl RandomNumbers {
    fn next_below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        ((self.0 >> 33) % limit as u64) as usize
    }

    /// Returns an edit of one of two texts, similar enough that many of them match.
    fn edited_text(&mut self) -> String {
        let base = self.next_below(2);
        let mut words: Vec<String> = (0..9).map(|at| format!("w{base}{at}")).collect();
        for _ in 0..self.next_below(3) {
            let at = self.next_below(words.len());
            words[at] = format!("e{}", self.next_below(3));
        }
        words.join(" ")
    }
}

/// A collection with three documents, and three or four concurrent callers.
struct InterleavingCase {
    settings: Arc<CollectionSettings>,
    before: Vec<ConcurrentCaller>,
    callers: Vec<ConcurrentCaller>,
}

impl InterleavingCase {
    fn new(settings: &Arc<CollectionSettings>, seed: u64, callers: usize) -> Self {
        let mut numbers = RandomNumbers(seed);
        let preparer = CollectionState::new(settings.clone(), 0).unwrap();
        let preparer = preparer.matcher.document_preparer();
        let mut insert = |ids: &[&str], seconds: i64| {
            let mut document =
                |id: &&str| prepare_text(preparer, settings, id, numbers.edited_text());
            let documents = ids.iter().map(&mut document).collect();
            ConcurrentCaller::Insert(documents, Timestamp(seconds * S))
        };
        let before = vec![insert(&["x"], 1000), insert(&["y", "z"], 1003)];
        // The second caller sends another text under the first one's id, when the window has passed the
        // oldest document.
        let all = [
            insert(&["a", "b"], 1010),
            insert(&["a"], 1026),
            ConcurrentCaller::Delete(["x", "y", "a", "c"][seed as usize % 4].to_owned()),
            insert(&["c"], 1011),
        ];
        let callers = all.into_iter().take(callers).collect();
        Self {
            settings: settings.clone(),
            before,
            callers,
        }
    }

    fn initial_state(&self) -> CollectionState {
        let mut state = CollectionState::new(self.settings.clone(), 0).unwrap();
        for caller in &self.before {
            if let ConcurrentCaller::Insert(documents, now) = caller {
                for document in documents {
                    let mut checks = check(&state, std::slice::from_ref(document), *now);
                    state
                        .admit_document(document, &mut checks[0], *now)
                        .unwrap();
                }
            }
        }
        state
    }
}

pub(super) fn prepare_text(
    preparer: &DocumentPreparer,
    settings: &CollectionSettings,
    id: &str,
    text: String,
) -> PendingInsert {
    let document = NewDocument {
        id: id.to_owned(),
        content: DocumentContent::Text(text),
        time: None,
        meta: None,
    };
    PendingInsert::new(
        document,
        settings.holds,
        preparer,
        &mut AnalysisScratch::default(),
    )
    .unwrap()
}

#[test]
fn interleaved_steps_equal_whole_calls() {
    let joined = plan::MatchSettings {
        method: MatchMethod::Join,
        threshold: Threshold::new(0.6).unwrap(),
        ..plan::MatchSettings::default()
    };
    let window = |refresh| {
        let seconds = Duration::from_secs;
        Some(StreamWindow::new(seconds(24), seconds(5), refresh).unwrap())
    };
    let of = |matching, window, on_conflict| {
        Arc::new(CollectionSettings {
            matching,
            window,
            on_conflict,
            ..CollectionSettings::default()
        })
    };
    let kinds = [
        of(joined, None, OnConflict::Refuse),
        of(joined, window(false), OnConflict::Replace),
        of(joined, window(true), OnConflict::Replace),
        of(
            plan::MatchSettings::default(),
            window(true),
            OnConflict::Refuse,
        ),
    ];
    let (mut runs, mut overtaken) = (0, 0);
    for (kind, settings) in kinds.iter().enumerate() {
        for (seed, callers) in [(0, 4), (1, 3), (2, 3), (3, 3), (4, 3)] {
            let seed = 101 * kind as u64 + seed;
            let case = InterleavingCase::new(settings, seed, callers);
            let mut uninterrupted: HashMap<Vec<usize>, CallerOutcome> = HashMap::new();
            let whole_calls = |callers: &Vec<usize>| {
                run_order(case.initial_state(), &case.callers, callers, true)
            };
            for order in all_orders(&case.callers) {
                let apart = run_order(case.initial_state(), &case.callers, &order, false);
                let [first, last] = [first_steps(&order), last_steps(&order)];
                for callers in [&first, &last] {
                    if !uninterrupted.contains_key(callers) {
                        uninterrupted.insert(callers.clone(), whole_calls(callers));
                    }
                }
                let whole = &uninterrupted[&last];
                assert_eq!(
                    apart, *whole,
                    "settings {kind}, seed {seed}, order {order:?}"
                );
                runs += 1;
                // The state at their look-ahead would have given another answer.
                overtaken += usize::from(uninterrupted[&first].answers != whole.answers);
            }
        }
    }
    assert_eq!(runs, 4 * (630 + 4 * 30));
    assert!(overtaken > runs / 10, "{overtaken}");
}

/// Returns the callers in the order of their first steps.
fn first_steps(order: &[usize]) -> Vec<usize> {
    let mut callers: Vec<usize> = Vec::new();
    for &caller in order {
        if !callers.contains(&caller) {
            callers.push(caller);
        }
    }
    callers
}

/// Returns the callers in the order of their last steps.
fn last_steps(order: &[usize]) -> Vec<usize> {
    let backwards: Vec<usize> = order.iter().rev().copied().collect();
    let mut callers = first_steps(&backwards);
    callers.reverse();
    callers
}
