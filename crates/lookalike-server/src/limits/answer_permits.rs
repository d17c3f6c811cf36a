//! Permits for answers that take long to make: a few at a time, shared between clients.
//!
//! One client has at most all permits but one, so that another one finds a permit free however many such answers the
//! first asks for. A permit that is given back goes to the client that has the fewest, and among equals to whoever
//! has waited longest.
//!
//! Work runs on as many threads as there are permits, because the allocator keeps freed memory for the thread that
//! allocated it.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

use crate::limits::byte_budget::ClientId;

/// Permits of all clients.
pub(crate) struct AnswerPermits {
    queue: Mutex<PermitQueue>,
    /// Runs the work of those that have permits; `Some` until this is dropped.
    threads: Option<Runtime>,
}

struct PermitQueue {
    /// Answers that are made at a time.
    permits: usize,
    /// Permits that each client has.
    held: HashMap<ClientId, usize>,
    waiting: VecDeque<WaitingClient>,
}

struct WaitingClient {
    client: ClientId,
    permit: oneshot::Sender<AnswerPermit>,
}

/// The permit of a client; it is given back when this is dropped.
pub(crate) struct AnswerPermit {
    permits: Arc<AnswerPermits>,
    client: ClientId,
}

impl AnswerPermits {
    /// Creates permits for so many answers at a time, from 2.
    ///
    /// # Errors
    /// If the system refuses a runtime.
    pub(crate) fn new(permits: usize) -> io::Result<Arc<Self>> {
        let threads = Builder::new_current_thread()
            .max_blocking_threads(permits)
            .build()?;
        Ok(Arc::new(Self {
            queue: Mutex::new(PermitQueue {
                permits,
                held: HashMap::new(),
                waiting: VecDeque::new(),
            }),
            threads: Some(threads),
        }))
    }

    /// Waits for a permit of the client.
    pub(crate) async fn acquire_permit(self: &Arc<Self>, client: ClientId) -> AnswerPermit {
        loop {
            let (permit, given) = oneshot::channel();
            self.queue()
                .waiting
                .push_back(WaitingClient { client, permit });
            self.give_permits();
            // Nobody drops the sender while this waits; if it were dropped, it would be asked again.
            if let Ok(permit) = given.await {
                return permit;
            }
        }
    }

    /// Gives free permits to those that wait.
    fn give_permits(self: &Arc<Self>) {
        loop {
            let next = self.queue().take_next();
            let Some(WaitingClient { client, permit }) = next else {
                return;
            };
            // Whoever has gone away gives the permit back at once.
            drop(permit.send(AnswerPermit {
                permits: Arc::clone(self),
                client,
            }));
        }
    }

    fn give_back(self: &Arc<Self>, client: ClientId) {
        self.queue().give_back(client);
        self.give_permits();
    }

    fn queue(&self) -> MutexGuard<'_, PermitQueue> {
        // A panic ends the process, so no change is left half done.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for AnswerPermits {
    fn drop(&mut self) {
        // This can be dropped by a thread that must not wait for others.
        if let Some(threads) = self.threads.take() {
            threads.shutdown_background();
        }
    }
}

impl AnswerPermit {
    /// Runs `work` on a thread that may block. The permit is kept until the work ends, even if the client
    /// disconnects, and is returned with its result.
    pub(crate) async fn run_work<T: Send + 'static>(
        self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> (T, Self) {
        let permits = Arc::clone(&self.permits);
        let threads = permits
            .threads
            .as_ref()
            .expect("the threads end only in `drop`");
        let done = threads.spawn_blocking(move || (work(), self)).await;
        done.expect("a panic ends the process")
    }
}

impl PermitQueue {
    fn held_by(&self, client: ClientId) -> usize {
        self.held.get(&client).copied().unwrap_or(0)
    }

    /// Takes the next client out of the queue and counts its permit; `None` if there is no permit for those
    /// that wait.
    fn take_next(&mut self) -> Option<WaitingClient> {
        self.waiting.retain(|one| !one.permit.is_closed());
        if self.held.values().sum::<usize>() >= self.permits {
            return None;
        }
        let waiting = self.waiting.iter().enumerate();
        let held = waiting.map(|(at, one)| (self.held_by(one.client), at));
        let (held, at) = held.min()?;
        if held + 1 >= self.permits {
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

impl Drop for AnswerPermit {
    fn drop(&mut self) {
        self.permits.give_back(self.client);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::pin::Pin;
    use std::task::{Context, Poll, Waker};

    type Waiting = Pin<Box<dyn Future<Output = AnswerPermit>>>;

    /// Asks for a permit, and returns what waits for it.
    fn ask(permits: &Arc<AnswerPermits>, client: u64) -> (Waiting, Option<AnswerPermit>) {
        let permits = Arc::clone(permits);
        let mut waiting: Waiting =
            Box::pin(async move { permits.acquire_permit(ClientId::Key(client)).await });
        let permit = poll(&mut waiting);
        (waiting, permit)
    }

    fn poll(waiting: &mut Waiting) -> Option<AnswerPermit> {
        let mut context = Context::from_waker(Waker::noop());
        match waiting.as_mut().poll(&mut context) {
            Poll::Ready(permit) => Some(permit),
            Poll::Pending => None,
        }
    }

    #[test]
    fn one_client_cannot_hold_every_permit() {
        let permits = AnswerPermits::new(3).unwrap();
        let mut first: Vec<_> = (0..4).map(|_| ask(&permits, 1)).collect();
        let had = first.iter().filter(|(_, permit)| permit.is_some()).count();
        assert_eq!(had, 2);
        let (_, other) = ask(&permits, 2);
        assert!(other.is_some());
        let (mut waiting, none) = ask(&permits, 3);
        assert!(none.is_none());
        // The permit of the first client goes to the one that has fewer, which asked later.
        let (_, permit) = first.remove(0);
        drop(permit);
        let third = poll(&mut waiting);
        assert!(third.is_some());
        assert!(first.iter_mut().skip(1).all(|(it, _)| poll(it).is_none()));
        drop((other, third));
        assert!(poll(&mut first[1].0).is_some());
    }

    #[test]
    fn disconnected_client_takes_no_permit() {
        let permits = AnswerPermits::new(3).unwrap();
        let held: Vec<_> = [1, 1, 2].map(|client| ask(&permits, client)).into();
        assert!(held.iter().all(|(_, permit)| permit.is_some()));
        let (gone, _) = ask(&permits, 3);
        let (mut stays, _) = ask(&permits, 4);
        let (given_but_gone, _) = ask(&permits, 5);
        drop(gone);
        drop(held);
        assert!(poll(&mut stays).is_some());
        // A permit that was given and not taken is free again.
        drop(given_but_gone);
        assert!(permits.queue().held.is_empty());
        assert!(permits.queue().waiting.is_empty());
    }

    /// Work runs on as many threads as there are permits, however many requests come.
    #[tokio::test(flavor = "multi_thread")]
    async fn work_runs_on_as_many_threads_as_permits() {
        const PERMITS: usize = 3;
        let permits = AnswerPermits::new(PERMITS).unwrap();
        let answers = (0..60).map(|number| {
            let permits = Arc::clone(&permits);
            tokio::spawn(async move {
                let permit = permits.acquire_permit(ClientId::Key(number)).await;
                let ((thread, answer), permit) = permit
                    .run_work(move || (std::thread::current().id(), number))
                    .await;
                drop(permit);
                assert_eq!(answer, number);
                thread
            })
        });
        let mut threads = HashSet::new();
        for answer in answers.collect::<Vec<_>>() {
            threads.insert(answer.await.unwrap());
        }
        assert!(threads.len() <= PERMITS && !threads.is_empty());
    }
}
