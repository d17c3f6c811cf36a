//! A queue that serves clients in rotation, so that one that brings much does not delay the others.
//!
//! Items are taken as a batch, and those that the batch did not reach are put back. A client that was served goes
//! behind all others, whether its item was finished or needs further batches. So a client waits for at most as
//! many batches as there are clients before it, and nothing that others push or put back makes them more.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet, VecDeque};

use crate::limits::byte_budget::ClientId;

/// Items of clients. The items of one client leave in the order in which they came. Between clients the items leave
/// in rotation, one of each.
pub(crate) struct FairQueue<T> {
    items: HashMap<ClientId, VecDeque<T>>,
    /// Clients with items, in the order in which they are served.
    client_order: VecDeque<ClientId>,
}

impl<T> Default for FairQueue<T> {
    fn default() -> Self {
        Self {
            items: HashMap::new(),
            client_order: VecDeque::new(),
        }
    }
}

impl<T> FairQueue<T> {
    pub(crate) fn is_empty(&self) -> bool {
        self.client_order.is_empty()
    }

    /// Appends an item behind those of the same client.
    pub(crate) fn push(&mut self, client: ClientId, item: T) {
        match self.items.entry(client) {
            Entry::Occupied(mut items) => items.get_mut().push_back(item),
            Entry::Vacant(entry) => {
                entry.insert(VecDeque::from([item]));
                self.client_order.push_back(client);
            }
        }
    }

    /// Puts items back that were taken and not finished: they leave before the client's other ones, in the same
    /// order. Clients that were not `served` come first again, in the order of their items, and those that were
    /// come last, behind clients that pushed meanwhile.
    pub(crate) fn put_back(&mut self, items: Vec<(ClientId, T)>, served: &[ClientId]) {
        let served_clients: HashSet<ClientId> = served.iter().copied().collect();
        let mut placed = HashSet::new();
        let mut client_order = VecDeque::new();
        let in_batch = items.iter().map(|&(client, _)| client);
        let waiting = in_batch.chain(self.client_order.iter().copied());
        for client in waiting.filter(|client| !served_clients.contains(client)) {
            if placed.insert(client) {
                client_order.push_back(client);
            }
        }
        for (client, item) in items.into_iter().rev() {
            self.items.entry(client).or_default().push_front(item);
        }
        for &client in served {
            if self.items.contains_key(&client) && placed.insert(client) {
                client_order.push_back(client);
            }
        }
        self.client_order = client_order;
    }

    /// Removes up to `most` items, and no more once those that are removed weigh `most_weight`.
    pub(crate) fn take_batch(
        &mut self,
        most: usize,
        most_weight: usize,
        weight: impl Fn(&T) -> usize,
    ) -> Vec<(ClientId, T)> {
        let (mut taken, mut taken_weight) = (Vec::new(), 0);
        while taken.len() < most
            && taken_weight < most_weight
            && let Some(client) = self.client_order.pop_front()
        {
            let Entry::Occupied(mut items) = self.items.entry(client) else {
                continue;
            };
            if let Some(item) = items.get_mut().pop_front() {
                taken_weight += weight(&item);
                taken.push((client, item));
            }
            if items.get().is_empty() {
                drop(items.remove())
            } else {
                self.client_order.push_back(client)
            }
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn client(number: u64) -> ClientId {
        ClientId::Key(number)
    }

    fn take<T>(queue: &mut FairQueue<T>, most: usize) -> Vec<(ClientId, T)> {
        queue.take_batch(most, usize::MAX, |_| 1)
    }

    fn items(taken: Vec<(ClientId, &'static str)>) -> Vec<&'static str> {
        taken.into_iter().map(|(_, item)| item).collect()
    }

    #[test]
    fn clients_are_served_in_rotation_and_keep_their_order() {
        let mut queue = FairQueue::default();
        for item in ["a1", "a2", "a3", "a4"] {
            queue.push(client(1), item);
        }
        queue.push(client(2), "b1");
        queue.push(client(3), "c1");
        queue.push(client(3), "c2");
        assert_eq!(items(take(&mut queue, 4)), ["a1", "b1", "c1", "a2"]);
        queue.push(client(2), "b2");
        assert_eq!(items(take(&mut queue, 9)), ["c2", "a3", "b2", "a4"]);
        assert!(queue.is_empty() && queue.items.is_empty());
        assert!(take(&mut queue, 1).is_empty());
    }

    /// The item that reaches the weight is the last one, so a heavy item alone is taken all the same.
    #[test]
    fn weight_limits_what_is_taken() {
        let mut queue = FairQueue::default();
        for item in ["aaaa", "aa", "a"] {
            queue.push(client(1), item);
        }
        queue.push(client(2), "b");
        let mut take = |most_weight| items(queue.take_batch(9, most_weight, |item| item.len()));
        assert_eq!(take(4), ["aaaa"]);
        assert_eq!(take(3), ["b", "aa"]);
        assert_eq!(take(1), ["a"]);
    }

    /// A client whose item takes many batches, and that pushes another item during each, does not keep others
    /// from theirs.
    #[test]
    fn served_client_goes_behind_the_others() {
        let mut queue = FairQueue::default();
        queue.push(client(1), "a1");
        queue.push(client(2), "b1");
        queue.push(client(1), "a2");
        let taken = take(&mut queue, 9);
        queue.push(client(3), "c1");
        queue.put_back(taken, &[client(1)]);
        assert_eq!(items(take(&mut queue, 9)), ["b1", "c1", "a1", "a2"]);
    }

    #[derive(Clone, Debug)]
    enum QueueStep {
        Push {
            client: u64,
        },
        /// Takes up to `most` items, of which the batch finishes `finished`; then it may work in vain on the next
        /// one. Some clients push meanwhile.
        Batch {
            most: usize,
            finished: usize,
            pushed: Vec<u64>,
        },
    }

    const CLIENTS: u64 = 6;

    fn queue_steps() -> impl Strategy<Value = Vec<QueueStep>> {
        let pushed = prop::collection::vec(0..CLIENTS, 0..4);
        let step = prop_oneof![
            (0..CLIENTS).prop_map(|client| QueueStep::Push { client }),
            (1..12usize, 0..4usize, pushed).prop_map(|(most, finished, pushed)| QueueStep::Batch {
                most,
                finished,
                pushed
            }),
        ];
        prop::collection::vec(step, 0..80)
    }

    proptest! {
        /// Whatever is pushed, taken and put back: nothing is lost, the items of a client keep their order, and
        /// no client waits for more batches than there are clients.
        #[test]
        fn client_waits_for_as_many_batches_as_there_are_clients(steps in queue_steps()) {
            let mut queue = FairQueue::default();
            let mut waiting: HashMap<u64, VecDeque<usize>> = HashMap::new();
            let mut batches_waited: HashMap<u64, u64> = HashMap::new();
            let mut next = 0;
            let mut push = |queue: &mut FairQueue<usize>, waiting: &mut HashMap<u64, VecDeque<usize>>, number: u64| {
                queue.push(client(number), next);
                waiting.entry(number).or_default().push_back(next);
                next += 1;
            };
            for step in steps {
                let (most, finished, pushed) = match step {
                    QueueStep::Push { client } => {
                        push(&mut queue, &mut waiting, client);
                        continue;
                    }
                    QueueStep::Batch { most, finished, pushed } => (most, finished, pushed),
                };
                let mut taken = take(&mut queue, most);
                let rest = taken.split_off(finished.min(taken.len()));
                let mut served: Vec<ClientId> = taken.iter().map(|&(client, _)| client).collect();
                for &(client, item) in &taken {
                    let ClientId::Key(number) = client else { unreachable!("all clients have keys") };
                    prop_assert_eq!(waiting.get_mut(&number).unwrap().pop_front(), Some(item));
                }
                served.extend(rest.first().filter(|_| taken.is_empty()).map(|&(client, _)| client));
                for number in pushed {
                    push(&mut queue, &mut waiting, number);
                }
                queue.put_back(rest, &served);
                for number in 0..CLIENTS {
                    let is_waiting = waiting.get(&number).is_some_and(|items| !items.is_empty());
                    let waited = batches_waited.entry(number).or_default();
                    let is_served = served.contains(&client(number));
                    *waited = if is_waiting && !is_served { *waited + 1 } else { 0 };
                    prop_assert!(*waited <= CLIENTS, "client {number} waits for {waited} batches");
                }
            }
            let left: usize = waiting.values().map(VecDeque::len).sum();
            prop_assert_eq!(take(&mut queue, usize::MAX).len(), left);
            prop_assert!(queue.is_empty() && queue.items.is_empty());
        }
    }

    #[test]
    fn returned_items_come_first() {
        let mut queue = FairQueue::default();
        for item in ["a1", "a2", "a3"] {
            queue.push(client(1), item);
        }
        queue.push(client(2), "b1");
        let mut taken = take(&mut queue, 4);
        assert_eq!(taken.len(), 4);
        let rest = taken.split_off(1);
        queue.push(client(1), "a4");
        queue.put_back(rest, &[client(1)]);
        let left = items(take(&mut queue, 9));
        let mut of_first = left.clone();
        of_first.retain(|&item| item != "b1");
        assert_eq!(of_first, ["a2", "a3", "a4"]);
        assert_eq!(left.len(), 4);
    }
}
