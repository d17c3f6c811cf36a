//! Memory budgets, in bytes, that all requests share fairly.
//!
//! A client may hold up to [`LARGEST_SHARE_OF_FREE`] times the bytes that are free after it has taken them. So one that
//! stalls leaves room for others: alone it gets 8/9 of the budget, and n clients that take all they can leave
//! 1/(8n + 1) of it. This is the dynamic threshold of shared packet buffers (A. K. Choudhury and E. L. Hahne,
//! "Dynamic queue length thresholds for shared-memory packet switches", 1998). A client that holds nothing
//! may take all that is free, because a small budget must still take one large document.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// Largest ratio of the bytes that a client holds to the bytes that are free.
const LARGEST_SHARE_OF_FREE: usize = 8;

/// Identity of a client, for budgets and rate limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ClientId {
    /// The client has a key; the first 64 bits of its hash.
    Key(u64),
    /// The client has no key. Of an IPv6 address only the network counts: the first 64 bits.
    Address(IpAddr),
}

impl ClientId {
    /// Identifies a client without a key.
    pub(crate) fn from_address(address: IpAddr) -> Self {
        Self::Address(network_of(address))
    }
}

/// Returns an IPv4 address as it is, and the first 64 bits of an IPv6 address.
pub(crate) fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => {
            let bits = u128::from(address) >> 64 << 64;
            IpAddr::V6(bits.into())
        }
    }
}

/// A number of bytes that all requests share.
pub(crate) struct ByteBudget {
    total: usize,
    holdings: Mutex<BudgetHoldings>,
    released: Notify,
}

#[derive(Debug)]
struct BudgetHoldings {
    free: usize,
    /// Held bytes that have no content yet.
    empty: usize,
    by_client: HashMap<ClientId, usize>,
}

impl ByteBudget {
    pub(crate) fn new(total: usize) -> Arc<Self> {
        Arc::new(Self {
            total,
            holdings: Mutex::new(BudgetHoldings {
                free: total,
                empty: 0,
                by_client: HashMap::new(),
            }),
            released: Notify::new(),
        })
    }

    /// Returns how many bytes of a budget of `total` bytes a single client may hold.
    pub(crate) fn client_share(total: usize) -> usize {
        total - total.div_ceil(LARGEST_SHARE_OF_FREE + 1)
    }

    /// Returns the size of the whole budget.
    pub(crate) fn total_bytes(&self) -> usize {
        self.total
    }

    /// Returns the bytes that no client holds.
    pub(crate) fn free_bytes(&self) -> usize {
        self.lock_holdings().free
    }

    /// Returns the held bytes that have a content.
    pub(crate) fn used_bytes(&self) -> u64 {
        let holdings = self.lock_holdings();
        (self.total - holdings.free - holdings.empty) as u64
    }

    /// Takes bytes for a client, if they are free and within its share.
    pub(crate) fn try_take_bytes(
        self: &Arc<Self>,
        client: ClientId,
        bytes: usize,
    ) -> Option<HeldBytes> {
        let mut holdings = self.lock_holdings();
        let free = holdings.free.checked_sub(bytes)?;
        let held = holdings.by_client.get(&client).copied().unwrap_or(0);
        if held > 0 && held + bytes > free.saturating_mul(LARGEST_SHARE_OF_FREE) {
            return None;
        }
        holdings.free = free;
        if bytes > 0 {
            *holdings.by_client.entry(client).or_default() += bytes;
        }
        Some(HeldBytes {
            budget: Arc::clone(self),
            client,
            bytes,
            empty: 0,
        })
    }

    /// Waits until a client can take bytes. Asking for more than the whole budget waits for ever.
    pub(crate) async fn take_bytes(self: &Arc<Self>, client: ClientId, bytes: usize) -> HeldBytes {
        loop {
            let mut released = std::pin::pin!(self.released.notified());
            // A release between the attempt and the wait must not be missed.
            released.as_mut().enable();
            if let Some(held) = self.try_take_bytes(client, bytes) {
                return held;
            }
            released.await;
        }
    }

    fn return_bytes(&self, client: ClientId, bytes: usize) {
        if bytes == 0 {
            return;
        }
        let mut holdings = self.lock_holdings();
        holdings.free += bytes;
        if let Entry::Occupied(mut held) = holdings.by_client.entry(client) {
            *held.get_mut() -= bytes;
            if *held.get() == 0 {
                held.remove();
            }
        }
        drop(holdings);
        self.released.notify_waiters();
    }

    fn lock_holdings(&self) -> MutexGuard<'_, BudgetHoldings> {
        // A panic ends the process, so no change is left half done.
        self.holdings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Bytes that a client holds; released on drop.
pub(crate) struct HeldBytes {
    budget: Arc<ByteBudget>,
    client: ClientId,
    bytes: usize,
    /// Bytes at the end that have no content yet.
    empty: usize,
}

impl HeldBytes {
    /// Returns the number of bytes held.
    pub(crate) fn byte_count(&self) -> usize {
        self.bytes
    }

    /// Sets the number of bytes that have no content yet.
    pub(crate) fn set_empty(&mut self, empty: usize) {
        let mut holdings = self.budget.lock_holdings();
        holdings.empty = holdings.empty - self.empty + empty;
        self.empty = empty;
    }

    /// Adds bytes that the same client holds of the same budget.
    pub(crate) fn merge_bytes(&mut self, mut other: Self) {
        debug_assert!(Arc::ptr_eq(&self.budget, &other.budget) && self.client == other.client);
        self.bytes += std::mem::take(&mut other.bytes);
    }

    /// Splits bytes off, at most all of them.
    pub(crate) fn split_bytes(&mut self, bytes: usize) -> Self {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        Self {
            budget: Arc::clone(&self.budget),
            client: self.client,
            bytes,
            empty: 0,
        }
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        if self.empty > 0 {
            self.set_empty(0);
        }
        self.budget.return_bytes(self.client, self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(last: u8) -> ClientId {
        ClientId::from_address(IpAddr::from([10, 0, 0, last]))
    }

    /// Takes bytes one by one until the client gets no more.
    fn take_all(budget: &Arc<ByteBudget>, client: ClientId) -> Vec<HeldBytes> {
        std::iter::from_fn(|| budget.try_take_bytes(client, 1)).collect()
    }

    #[test]
    fn large_clients_leave_room_for_others() {
        let budget = ByteBudget::new(900);
        let first = take_all(&budget, client(1));
        assert_eq!(first.len(), 800);
        assert_eq!(ByteBudget::client_share(900), 800);
        let second = take_all(&budget, client(2));
        // The first client holds more than its share now, and keeps it.
        assert_eq!((second.len(), budget.free_bytes()), (88, 12));
        assert!(budget.try_take_bytes(client(3), 12).is_some());
        assert!(budget.try_take_bytes(client(1), 1).is_none());
        drop(first);
        drop(second);
        assert_eq!(budget.free_bytes(), 900);
        assert!(budget.lock_holdings().by_client.is_empty());
    }

    #[test]
    fn idle_client_may_take_the_whole_budget() {
        let budget = ByteBudget::new(100);
        assert!(budget.try_take_bytes(client(1), 101).is_none());
        let all = budget.try_take_bytes(client(1), 100).unwrap();
        assert!(budget.try_take_bytes(client(2), 1).is_none());
        drop(all);
        assert!(budget.try_take_bytes(client(2), 1).is_some());
    }

    #[test]
    fn parts_are_released_once() {
        let budget = ByteBudget::new(100);
        let mut held = budget.try_take_bytes(client(1), 60).unwrap();
        let part = held.split_bytes(20);
        assert_eq!((held.byte_count(), part.byte_count()), (40, 20));
        drop(part);
        assert_eq!(budget.free_bytes(), 60);
        held.merge_bytes(budget.try_take_bytes(client(1), 5).unwrap());
        assert_eq!((held.byte_count(), budget.free_bytes()), (45, 55));
        assert_eq!(held.split_bytes(1000).byte_count(), 45);
        assert_eq!(budget.free_bytes(), 100);
    }

    #[tokio::test]
    async fn release_wakes_all_waiting_clients() {
        let budget = ByteBudget::new(10);
        let all = budget.try_take_bytes(client(1), 10).unwrap();
        let waiting: Vec<_> = (2..5)
            .map(|at| {
                let budget = Arc::clone(&budget);
                tokio::spawn(async move { budget.take_bytes(client(at), 3).await.byte_count() })
            })
            .collect();
        tokio::task::yield_now().await;
        drop(all);
        for one in waiting {
            assert_eq!(one.await.unwrap(), 3);
        }
        assert_eq!(budget.free_bytes(), 10);
    }

    #[test]
    fn client_is_identified_by_network() {
        let address = |text: &str| ClientId::from_address(text.parse().unwrap());
        assert_eq!(address("2001:db8::1"), address("2001:db8::ffff:2"));
        assert_ne!(address("2001:db8::1"), address("2001:db8:0:1::1"));
        assert_eq!(address("::ffff:10.0.0.1"), address("10.0.0.1"));
        assert_ne!(address("10.0.0.1"), address("10.0.0.2"));
    }
}
