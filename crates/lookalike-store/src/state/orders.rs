//! Concurrent callers, in every order of their turns.
//!
//! A caller looks ahead under the shared lock and admits under the exclusive one; another caller deletes.
//! Callers share nothing but the lock, so the orders of turns are all that threads can produce. Every order
//! must end as if each document were checked and admitted in one turn.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use lookalike::Threshold;
use lookalike::online::{Preparer, Time, Window};
use lookalike::plan::{self, Method};
use lookalike::text::Scratch;

use super::{Looked, State};
use crate::document::{Answer, Content, Document, Prepared};
use crate::error::{ErrorKind, Result};
use crate::ids::id_hash;
use crate::rows::Row;
use crate::settings::{OnConflict, Settings};

const S: i64 = 1_000_000;

/// A caller.
enum Caller {
    /// Inserts documents together, at this time.
    Insert(Vec<Prepared>, Time),
    Delete(String),
}

impl Caller {
    fn turns(&self) -> usize {
        match self {
            Self::Insert(..) => 2,
            Self::Delete(_) => 1,
        }
    }
}

/// Answers of all callers, and the rows at the end.
#[derive(Debug, PartialEq)]
struct Outcome {
    answers: Vec<Vec<Result<Answer, ErrorKind>>>,
    rows: Vec<Row>,
}

/// Returns all orders of turns, each as a list of callers.
fn orders(callers: &[Caller]) -> Vec<Vec<usize>> {
    fn extend(left: &mut [usize], order: &mut Vec<usize>, orders: &mut Vec<Vec<usize>>) {
        if left.iter().all(|&turns| turns == 0) {
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
    let mut left: Vec<usize> = callers.iter().map(Caller::turns).collect();
    let mut orders = Vec::new();
    extend(&mut left, &mut Vec::new(), &mut orders);
    orders
}

/// Checks all documents before their turn.
pub(super) fn check(state: &State, documents: &[Prepared], now: Time) -> Vec<Result<Looked>> {
    let mut checks: Vec<_> = documents.iter().map(|_| None).collect();
    let count = state.precheck(documents, &mut checks, now, u64::MAX);
    assert_eq!(count, documents.len());
    checks.into_iter().flatten().collect()
}

/// Runs the callers in an order. With `at_once`, each looks ahead only in its last turn.
fn run(mut state: State, callers: &[Caller], order: &[usize], at_once: bool) -> Outcome {
    let mut ahead: Vec<_> = callers.iter().map(|_| None).collect();
    let mut answers: Vec<Vec<_>> = callers.iter().map(|_| Vec::new()).collect();
    for (turn, &caller) in order.iter().enumerate() {
        let is_last = !order[turn + 1..].contains(&caller);
        match &callers[caller] {
            Caller::Insert(documents, now) => {
                if at_once == is_last {
                    ahead[caller] = Some(check(&state, documents, *now));
                }
                if is_last {
                    let looked = ahead[caller].take().unwrap();
                    for (document, ahead) in documents.iter().zip(looked) {
                        let answer = state.admit(document, ahead, *now);
                        answers[caller].push(answer.map_err(|error| error.kind()));
                    }
                }
            }
            Caller::Delete(id) => {
                if let Some(known) = state.find(id, id_hash(id)).unwrap() {
                    answers[caller].push(Ok(known.answer(false)));
                    state.delete(&known, Time(0));
                }
            }
        }
    }
    let rows = (1..=state.last()).map(|number| state.row(number).unwrap());
    Outcome {
        answers,
        rows: rows.collect(),
    }
}

/// A pseudo-random number generator.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        ((self.0 >> 33) % limit as u64) as usize
    }

    /// Returns an edit of one of two texts, similar enough that many of them match.
    fn text(&mut self) -> String {
        let base = self.below(2);
        let mut words: Vec<String> = (0..9).map(|at| format!("w{base}{at}")).collect();
        for _ in 0..self.below(3) {
            let at = self.below(words.len());
            words[at] = format!("e{}", self.below(3));
        }
        words.join(" ")
    }
}

/// A collection with three documents, and three or four concurrent callers.
struct Case {
    settings: Arc<Settings>,
    before: Vec<Caller>,
    callers: Vec<Caller>,
}

impl Case {
    fn new(settings: &Arc<Settings>, seed: u64, callers: usize) -> Self {
        let mut numbers = Numbers(seed);
        let preparer = State::new(settings.clone(), 0).unwrap();
        let preparer = preparer.matcher.preparer();
        let mut insert = |ids: &[&str], seconds: i64| {
            let mut document = |id: &&str| prepare(preparer, settings, id, numbers.text());
            let documents = ids.iter().map(&mut document).collect();
            Caller::Insert(documents, Time(seconds * S))
        };
        let before = vec![insert(&["x"], 1000), insert(&["y", "z"], 1003)];
        // The second caller sends another text under the first one's id, when the window has passed the
        // oldest document.
        let all = [
            insert(&["a", "b"], 1010),
            insert(&["a"], 1026),
            Caller::Delete(["x", "y", "a", "c"][seed as usize % 4].to_owned()),
            insert(&["c"], 1011),
        ];
        let callers = all.into_iter().take(callers).collect();
        Self {
            settings: settings.clone(),
            before,
            callers,
        }
    }

    fn state(&self) -> State {
        let mut state = State::new(self.settings.clone(), 0).unwrap();
        for caller in &self.before {
            if let Caller::Insert(documents, now) = caller {
                for document in documents {
                    let ahead = check(&state, std::slice::from_ref(document), *now);
                    let ahead = ahead.into_iter().next().unwrap();
                    state.admit(document, ahead, *now).unwrap();
                }
            }
        }
        state
    }
}

pub(super) fn prepare(
    preparer: &Preparer,
    settings: &Settings,
    id: &str,
    text: String,
) -> Prepared {
    let document = Document {
        id: id.to_owned(),
        content: Content::Text(text),
        time: None,
        meta: None,
    };
    Prepared::new(document, settings.holds, preparer, &mut Scratch::default()).unwrap()
}

#[test]
fn every_order_of_turns_is_one_of_whole_calls() {
    let joined = plan::Settings {
        method: Method::Join,
        threshold: Threshold::new(0.6).unwrap(),
        ..plan::Settings::default()
    };
    let window = |refresh| {
        let seconds = Duration::from_secs;
        Some(Window::new(seconds(24), seconds(5), refresh).unwrap())
    };
    let of = |matching, window, on_conflict| {
        Arc::new(Settings {
            matching,
            window,
            on_conflict,
            ..Settings::default()
        })
    };
    let kinds = [
        of(joined, None, OnConflict::Refuse),
        of(joined, window(false), OnConflict::Replace),
        of(joined, window(true), OnConflict::Replace),
        of(plan::Settings::default(), window(true), OnConflict::Refuse),
    ];
    let (mut runs, mut overtaken) = (0, 0);
    for (kind, settings) in kinds.iter().enumerate() {
        for (seed, callers) in [(0, 4), (1, 3), (2, 3), (3, 3), (4, 3)] {
            let seed = 101 * kind as u64 + seed;
            let case = Case::new(settings, seed, callers);
            let mut in_turn: HashMap<Vec<usize>, Outcome> = HashMap::new();
            let whole_calls =
                |callers: &Vec<usize>| run(case.state(), &case.callers, callers, true);
            for order in orders(&case.callers) {
                let apart = run(case.state(), &case.callers, &order, false);
                let [first, last] = [first_turns(&order), last_turns(&order)];
                for callers in [&first, &last] {
                    if !in_turn.contains_key(callers) {
                        in_turn.insert(callers.clone(), whole_calls(callers));
                    }
                }
                let whole = &in_turn[&last];
                assert_eq!(
                    apart, *whole,
                    "settings {kind}, seed {seed}, order {order:?}"
                );
                runs += 1;
                // The state at their look-ahead would have given another answer.
                overtaken += usize::from(in_turn[&first].answers != whole.answers);
            }
        }
    }
    assert_eq!(runs, 4 * (630 + 4 * 30));
    assert!(overtaken > runs / 10, "{overtaken}");
}

/// Returns the callers in the order of their first turns.
fn first_turns(order: &[usize]) -> Vec<usize> {
    let mut callers: Vec<usize> = Vec::new();
    for &caller in order {
        if !callers.contains(&caller) {
            callers.push(caller);
        }
    }
    callers
}

/// Returns the callers in the order of their last turns.
fn last_turns(order: &[usize]) -> Vec<usize> {
    let backwards: Vec<usize> = order.iter().rev().copied().collect();
    let mut callers = first_turns(&backwards);
    callers.reverse();
    callers
}
