//! Prechecks: most of a check is done on any thread while others insert, and only what has changed in
//! between is checked when the document's turn comes.
//!
//! Guarantee: the answer is that of a [`check`](Matcher::check) at that moment. Insertions only add
//! candidates, so it is enough to check the new ones. After any other change, or with another arrival
//! time, the whole check is repeated.

use super::keys::{Keyed, Keyer};
use super::material::Texts;
use super::rarity::Asked;
use super::{Arrival, Found, Matcher, Prepared, Slot, Time, better};
use crate::error::{Error, ErrorKind, Result};
use crate::matching::Side;
use crate::text::State;

/// The result of a check at some moment. See [`Matcher::look_ahead`].
#[derive(Clone, Debug)]
pub struct Ahead {
    found: Option<Found>,
    /// Steps of verification.
    steps: u64,
    arrival: Arrival,
    /// `true` if an equal text was found, over which no later insertion takes precedence. Keys were not
    /// made.
    settled: bool,
    /// Bucket keys under which the document looks for others.
    asked: Vec<Asked>,
    /// Bucket keys under which it will be inserted; empty if a match was found.
    added: Vec<(u64, Side)>,
    /// Number of the first document that was not there yet.
    since: u64,
    changes: u64,
    /// Generation of the keys; see `Keys::generation`.
    generation: u64,
}

impl Ahead {
    /// Returns the match that the check found.
    pub fn found(&self) -> Option<Found> {
        self.found
    }

    /// Steps that verification took, those of checks before included; see
    /// [`set_step_limit`](Matcher::set_step_limit).
    pub fn steps(&self) -> u64 {
        self.steps
    }
}

impl Matcher {
    /// Checks a document in such a way that [`check_again`](Self::check_again) can update the result
    /// later at little cost.
    ///
    /// # Errors
    /// Fails if `texts` cannot provide the text of a candidate, or if verification takes more steps than are
    /// [allowed](Matcher::set_step_limit).
    pub fn look_ahead(
        &self,
        document: &Prepared,
        arrival: &Arrival,
        texts: &dyn Texts,
    ) -> Result<Ahead> {
        self.look(document, arrival, None, texts)
    }

    pub(super) fn look(
        &self,
        document: &Prepared,
        arrival: &Arrival,
        without: Option<Slot>,
        texts: &dyn Texts,
    ) -> Result<Ahead> {
        let mut ahead = Ahead {
            found: None,
            steps: 0,
            arrival: *arrival,
            settled: false,
            asked: Vec::new(),
            added: Vec::new(),
            since: self.sections.next(),
            changes: self.changes,
            generation: self.keys.generation(),
        };
        if document.state() == State::Empty {
            return Ok(ahead);
        }
        ahead.found = self.equal(document, arrival, without);
        ahead.settled = ahead.found.is_some();
        if !ahead.settled {
            ahead.asked = self.keys.to_ask(document);
            let mut candidates = self.candidates(document, arrival, &ahead.asked)?;
            candidates.retain(|candidate| Some(candidate.slot) != without);
            (ahead.found, ahead.steps) = self.best(document, candidates, texts, 0)?;
            if ahead.found.is_none() {
                ahead.added = self.keys.to_add(document);
            }
        }
        Ok(ahead)
    }

    /// Updates the result of an earlier check of the same document to this moment.
    ///
    /// # Errors
    /// Fails as [`look_ahead`](Self::look_ahead) does.
    pub fn check_again(
        &self,
        mut ahead: Ahead,
        document: &Prepared,
        arrival: &Arrival,
        texts: &dyn Texts,
    ) -> Result<Ahead> {
        let same_reach = self.window.is_none() || ahead.arrival == *arrival;
        if ahead.changes != self.changes || !same_reach {
            return self.look_ahead(document, arrival, texts);
        }
        if document.state() == State::Empty || ahead.settled {
            return Ok(ahead);
        }
        let mut added: Vec<u64> = Vec::new();
        self.visit_added(document, &ahead, |number| added.push(number));
        added.sort_unstable();
        added.dedup();
        let candidate = |number: u64| self.candidate(document, arrival, number);
        let candidates: Vec<_> = added.into_iter().filter_map(candidate).collect();
        let (added, steps) = self.best(document, candidates, texts, ahead.steps)?;
        ahead.found = better(ahead.found, added);
        ahead.steps = steps;
        ahead.arrival = *arrival;
        ahead.since = self.sections.next();
        Ok(ahead)
    }

    /// Calls `visit` with all documents that were inserted since the check and share a key.
    fn visit_added(&self, document: &Prepared, ahead: &Ahead, mut visit: impl FnMut(u64)) {
        let since = ahead.since;
        if since == self.sections.next() {
            return;
        }
        let from = self.glances.from(self.glances.of(document.brief()));
        for &asked in &ahead.asked {
            if self.recent.may_have(asked.key, since) {
                // The newest come first, so the first document before `since` ends the chain.
                self.buckets
                    .visit(asked.key, since, |number, glance, side| {
                        if asked.finds(side) && !from.rules_out(glance) {
                            visit(number);
                        }
                    });
            }
        }
        if let (Some(_), Some(distance), Some(code)) =
            (&self.codes, self.plan.distance(), document.code())
        {
            let near = |other: u128| (other ^ code).count_ones() <= distance.get();
            self.sections.visit_codes(since, |number, other| {
                if near(other) {
                    visit(number);
                }
            });
        }
    }

    /// Checks that a document may be kept after its check: one that takes more than half of the
    /// [allowed](Self::set_step_limit) steps may not, because it makes the checks of all later ones like it
    /// more costly.
    ///
    /// # Errors
    /// [`ErrorKind::TooCostly`] if it may not.
    pub fn check_keepable(&self, ahead: &Ahead) -> Result<()> {
        if self.plan.of_sequences().is_none() || ahead.steps <= self.step_limit / 2 {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::TooCostly,
            format!(
                "comparing the text with its candidates took {} steps of 64 cells and found no \
                 match: it is not kept, because a kept text may take at most half of {}, the limit \
                 for one document. Send a shorter text, or use a collection with a higher \
                 threshold or a measure of features, such as jaccard",
                ahead.steps, self.step_limit
            ),
        ))
    }

    /// Inserts a document as [`keep`](Self::keep) does, with the keys that its check has made.
    ///
    /// # Errors
    /// Fails as [`keep`](Self::keep) does.
    pub fn keep_checked(
        &mut self,
        document: &Prepared,
        ahead: &Ahead,
        order: u64,
        time: Time,
    ) -> Result<Slot> {
        if ahead.generation != self.keys.generation() || ahead.added.is_empty() {
            return self.keep(document, order, time);
        }
        self.add(document, &ahead.added, order, time)
    }

    /// Returns a maker of the keys of documents that are inserted next. When the order of features
    /// changes, keys made before are discarded and made again on insertion.
    pub fn keyer(&self) -> Keyer {
        self.keys.keyer().clone()
    }

    /// Prefetches the memory that the insertion of a document needs.
    pub fn prefetch(&self, document: &Prepared, keyed: &Keyed) {
        self.prefetch_to_add(document, &keyed.keys);
    }

    /// Prefetches as [`prefetch`](Self::prefetch) does, for a document that was checked.
    pub fn prefetch_checked(&self, document: &Prepared, ahead: &Ahead) {
        self.prefetch_to_add(document, &ahead.added);
    }

    fn prefetch_to_add(&self, document: &Prepared, keys: &[(u64, Side)]) {
        for &(key, _) in keys {
            self.buckets.prefetch_to_add(key);
        }
        if !keys.is_empty() {
            self.keys.prefetch(document);
        }
    }

    /// Inserts a document as [`keep`](Self::keep) does, with keys that were made before.
    ///
    /// # Errors
    /// Fails as [`keep`](Self::keep) does.
    pub fn keep_with(
        &mut self,
        document: &Prepared,
        keyed: &Keyed,
        order: u64,
        time: Time,
    ) -> Result<Slot> {
        if keyed.generation != self.keys.generation() {
            return self.keep(document, order, time);
        }
        self.add(document, &keyed.keys, order, time)
    }
}
