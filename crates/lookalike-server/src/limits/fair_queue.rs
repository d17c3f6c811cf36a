//! A queue in which clients take turns, so that one that brings much does not delay the others.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};

use crate::limits::byte_budget::ClientId;

/// Items of clients. Those of one client leave in the order in which they came; between clients the items leave
/// in rotation, one of each.
pub(crate) struct FairQueue<T> {
    items: HashMap<ClientId, VecDeque<T>>,
    /// Clients with items, in the order of their turns.
    turns: VecDeque<ClientId>,
}

impl<T> Default for FairQueue<T> {
    fn default() -> Self {
        Self {
            items: HashMap::new(),
            turns: VecDeque::new(),
        }
    }
}

impl<T> FairQueue<T> {
    pub(crate) fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    /// Appends an item behind those of the same client.
    pub(crate) fn push(&mut self, client: ClientId, item: T) {
        match self.items.entry(client) {
            Entry::Occupied(mut items) => items.get_mut().push_back(item),
            Entry::Vacant(entry) => {
                entry.insert(VecDeque::from([item]));
                self.turns.push_back(client);
            }
        }
    }

    /// Puts items back that were taken: they leave before the client's other ones, in the same order. The
    /// client's turn stays where it is.
    pub(crate) fn put_back(&mut self, items: Vec<(ClientId, T)>) {
        for (client, item) in items.into_iter().rev() {
            match self.items.entry(client) {
                Entry::Occupied(mut items) => items.get_mut().push_front(item),
                Entry::Vacant(entry) => {
                    entry.insert(VecDeque::from([item]));
                    self.turns.push_back(client);
                }
            }
        }
    }

    /// Removes up to `most` items.
    pub(crate) fn take(&mut self, most: usize) -> Vec<(ClientId, T)> {
        let mut taken = Vec::new();
        while taken.len() < most
            && let Some(client) = self.turns.pop_front()
        {
            let Entry::Occupied(mut items) = self.items.entry(client) else {
                continue;
            };
            if let Some(item) = items.get_mut().pop_front() {
                taken.push((client, item));
            }
            match items.get().is_empty() {
                true => drop(items.remove()),
                false => self.turns.push_back(client),
            }
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(number: u64) -> ClientId {
        ClientId::Key(number)
    }

    fn items(taken: Vec<(ClientId, &'static str)>) -> Vec<&'static str> {
        taken.into_iter().map(|(_, item)| item).collect()
    }

    #[test]
    fn clients_take_turns_and_keep_their_order() {
        let mut queue = FairQueue::default();
        for item in ["a1", "a2", "a3", "a4"] {
            queue.push(client(1), item);
        }
        queue.push(client(2), "b1");
        queue.push(client(3), "c1");
        queue.push(client(3), "c2");
        assert_eq!(items(queue.take(4)), ["a1", "b1", "c1", "a2"]);
        queue.push(client(2), "b2");
        assert_eq!(items(queue.take(9)), ["c2", "a3", "b2", "a4"]);
        assert!(queue.is_empty() && queue.items.is_empty());
        assert!(queue.take(1).is_empty());
    }

    #[test]
    fn returned_items_come_first() {
        let mut queue = FairQueue::default();
        for item in ["a1", "a2", "a3"] {
            queue.push(client(1), item);
        }
        queue.push(client(2), "b1");
        let mut taken = queue.take(4);
        assert_eq!(taken.len(), 4);
        let rest = taken.split_off(1);
        queue.push(client(1), "a4");
        queue.put_back(rest);
        let left = items(queue.take(9));
        let mut of_first = left.clone();
        of_first.retain(|&item| item != "b1");
        assert_eq!(of_first, ["a2", "a3", "a4"]);
        assert_eq!(left.len(), 4);
    }
}
