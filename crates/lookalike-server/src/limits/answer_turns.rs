//! Turns for answers that take long to make: a few at a time, shared between clients.
//!
//! One client has at most all turns but one, so that another one finds a turn free however many such answers the first
//! asks for. A turn that ends goes to the client that has the fewest, and among equals to
//! whoever has waited longest.
//!
//! Work runs on as many threads as there are turns, because the allocator keeps freed memory for the thread that allocated
//! it.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

use crate::limits::byte_budget::ClientId;

/// Turns of all clients.
pub(crate) struct AnswerTurns {
    queue: Mutex<TurnQueue>,
    /// Runs the work of the turns; `Some` until this is dropped.
    threads: Option<Runtime>,
}

struct TurnQueue {
    /// Answers that are made at a time.
    turns: usize,
    /// Turns that each client has.
    held: HashMap<ClientId, usize>,
    waiting: VecDeque<WaitingClient>,
}

struct WaitingClient {
    client: ClientId,
    turn: oneshot::Sender<AnswerTurn>,
}

/// The turn of a client; the next one has it when this is dropped.
pub(crate) struct AnswerTurn {
    turns: Arc<AnswerTurns>,
    client: ClientId,
}

impl AnswerTurns {
    /// Creates turns for so many answers at a time, from 2.
    ///
    /// # Errors
    /// If the system refuses a runtime.
    pub(crate) fn new(turns: usize) -> io::Result<Arc<Self>> {
        let threads = Builder::new_current_thread()
            .max_blocking_threads(turns)
            .build()?;
        Ok(Arc::new(Self {
            queue: Mutex::new(TurnQueue {
                turns,
                held: HashMap::new(),
                waiting: VecDeque::new(),
            }),
            threads: Some(threads),
        }))
    }

    /// Waits for a turn of the client.
    pub(crate) async fn take(self: &Arc<Self>, client: ClientId) -> AnswerTurn {
        loop {
            let (turn, given) = oneshot::channel();
            self.queue()
                .waiting
                .push_back(WaitingClient { client, turn });
            self.give_turns();
            // Nobody drops the sender while this waits; if it were dropped, it would be asked again.
            if let Ok(turn) = given.await {
                return turn;
            }
        }
    }

    /// Gives free turns to those that wait.
    fn give_turns(self: &Arc<Self>) {
        loop {
            let next = self.queue().next();
            let Some(WaitingClient { client, turn }) = next else {
                return;
            };
            // Whoever has gone away gives the turn back at once.
            drop(turn.send(AnswerTurn {
                turns: Arc::clone(self),
                client,
            }));
        }
    }

    fn give_back(self: &Arc<Self>, client: ClientId) {
        self.queue().give_back(client);
        self.give_turns();
    }

    fn queue(&self) -> MutexGuard<'_, TurnQueue> {
        // A panic ends the process, so no change is left half done.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for AnswerTurns {
    fn drop(&mut self) {
        // This can be dropped by a thread that must not wait for others.
        if let Some(threads) = self.threads.take() {
            threads.shutdown_background();
        }
    }
}

impl AnswerTurn {
    /// Runs `work` on a thread that may block. The turn is kept until the work ends, even if the client disconnects, and
    /// is returned with its result.
    pub(crate) async fn run_work<T: Send + 'static>(
        self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> (T, Self) {
        let turns = Arc::clone(&self.turns);
        let threads = turns
            .threads
            .as_ref()
            .expect("the threads end only in `drop`");
        let done = threads.spawn_blocking(move || (work(), self)).await;
        done.expect("a panic ends the process")
    }
}

impl TurnQueue {
    fn held_by(&self, client: ClientId) -> usize {
        self.held.get(&client).copied().unwrap_or(0)
    }

    /// Takes the one that is next out of the queue and counts its turn; `None` if there is no turn for those
    /// that wait.
    fn next(&mut self) -> Option<WaitingClient> {
        self.waiting.retain(|one| !one.turn.is_closed());
        if self.held.values().sum::<usize>() >= self.turns {
            return None;
        }
        let waiting = self.waiting.iter().enumerate();
        let held = waiting.map(|(at, one)| (self.held_by(one.client), at));
        let (held, at) = held.min()?;
        if held + 1 >= self.turns {
            return None;
        }
        let next = self.waiting.remove(at)?;
        *self.held.entry(next.client).or_default() += 1;
        Some(next)
    }

    fn give_back(&mut self, client: ClientId) {
        let left = self.held_by(client).saturating_sub(1);
        match left {
            0 => self.held.remove(&client),
            left => self.held.insert(client, left),
        };
    }
}

impl Drop for AnswerTurn {
    fn drop(&mut self) {
        self.turns.give_back(self.client);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::pin::Pin;
    use std::task::{Context, Poll, Waker};

    type Waiting = Pin<Box<dyn Future<Output = AnswerTurn>>>;

    /// Asks for a turn, and returns what waits for it.
    fn ask(turns: &Arc<AnswerTurns>, client: u64) -> (Waiting, Option<AnswerTurn>) {
        let turns = Arc::clone(turns);
        let mut waiting: Waiting = Box::pin(async move { turns.take(ClientId::Key(client)).await });
        let turn = poll(&mut waiting);
        (waiting, turn)
    }

    fn poll(waiting: &mut Waiting) -> Option<AnswerTurn> {
        let mut context = Context::from_waker(Waker::noop());
        match waiting.as_mut().poll(&mut context) {
            Poll::Ready(turn) => Some(turn),
            Poll::Pending => None,
        }
    }

    #[test]
    fn one_client_cannot_hold_every_turn() {
        let turns = AnswerTurns::new(3).unwrap();
        let mut first: Vec<_> = (0..4).map(|_| ask(&turns, 1)).collect();
        let had = first.iter().filter(|(_, turn)| turn.is_some()).count();
        assert_eq!(had, 2);
        let (_, other) = ask(&turns, 2);
        assert!(other.is_some());
        let (mut waiting, none) = ask(&turns, 3);
        assert!(none.is_none());
        // The turn of the first client goes to the one that has fewer, which asked later.
        let (_, turn) = first.remove(0);
        drop(turn);
        let third = poll(&mut waiting);
        assert!(third.is_some());
        assert!(first.iter_mut().skip(1).all(|(it, _)| poll(it).is_none()));
        drop((other, third));
        assert!(poll(&mut first[1].0).is_some());
    }

    #[test]
    fn disconnected_client_takes_no_turn() {
        let turns = AnswerTurns::new(3).unwrap();
        let held: Vec<_> = [1, 1, 2].map(|client| ask(&turns, client)).into();
        assert!(held.iter().all(|(_, turn)| turn.is_some()));
        let (gone, _) = ask(&turns, 3);
        let (mut stays, _) = ask(&turns, 4);
        let (given_but_gone, _) = ask(&turns, 5);
        drop(gone);
        drop(held);
        assert!(poll(&mut stays).is_some());
        // A turn that was given and not taken is free again.
        drop(given_but_gone);
        assert!(turns.queue().held.is_empty());
        assert!(turns.queue().waiting.is_empty());
    }

    /// Work runs on as many threads as there are turns, however many requests come.
    #[tokio::test(flavor = "multi_thread")]
    async fn work_runs_on_as_many_threads_as_turns() {
        const TURNS: usize = 3;
        let turns = AnswerTurns::new(TURNS).unwrap();
        let answers = (0..60).map(|number| {
            let turns = Arc::clone(&turns);
            tokio::spawn(async move {
                let turn = turns.take(ClientId::Key(number)).await;
                let ((thread, answer), turn) = turn
                    .run_work(move || (std::thread::current().id(), number))
                    .await;
                drop(turn);
                assert_eq!(answer, number);
                thread
            })
        });
        let mut threads = HashSet::new();
        for answer in answers.collect::<Vec<_>>() {
            threads.insert(answer.await.unwrap());
        }
        assert!(threads.len() <= TURNS && !threads.is_empty());
    }
}
