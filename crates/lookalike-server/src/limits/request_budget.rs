//! The part of a budget that one request takes.
//!
//! Every byte is taken twice: from the budget that all requests share, and from one of the same size that the request has
//! for itself. If the second refuses bytes, no retry obtains them, because the request gets less even while no other
//! one holds anything. Bytes that only the first refuses are in use by others at the moment.

use std::sync::Arc;

use crate::limits::byte_budget::{ByteBudget, ClientId, HeldBytes};

/// The part of a budget that one request takes.
#[derive(Clone)]
pub(crate) struct RequestBudget {
    shared: Arc<ByteBudget>,
    /// A budget of the same size, of which only this request takes.
    alone: Arc<ByteBudget>,
    client: ClientId,
}

/// Why a request gets no bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BudgetRefusal {
    /// The request would hold more than a client ever may: so many bytes.
    TooCostly(usize),
    /// Others hold too much at the moment.
    InUse,
}

/// Bytes that a request holds; released on drop.
pub(crate) struct RequestBytes {
    shared: HeldBytes,
    alone: HeldBytes,
}

impl RequestBudget {
    pub(crate) fn new(shared: Arc<ByteBudget>, client: ClientId) -> Self {
        Self {
            alone: ByteBudget::new(shared.total_bytes()),
            shared,
            client,
        }
    }

    /// Returns the size of the budget that all share.
    pub(crate) fn total_bytes(&self) -> usize {
        self.shared.total_bytes()
    }

    /// Returns how many bytes one client may hold.
    pub(crate) fn client_share(&self) -> usize {
        ByteBudget::client_share(self.total_bytes())
    }

    /// Returns how many bytes the request holds.
    pub(crate) fn held_bytes(&self) -> usize {
        self.total_bytes() - self.alone.free_bytes()
    }

    /// Takes bytes, if they are free and within the share of the client.
    ///
    /// # Errors
    /// Which of the two is not the case.
    pub(crate) fn try_take_bytes(&self, bytes: usize) -> Result<RequestBytes, BudgetRefusal> {
        let alone = self.take_alone(bytes)?;
        let shared = self.shared.try_take_bytes(self.client, bytes);
        let shared = shared.ok_or(BudgetRefusal::InUse)?;
        Ok(RequestBytes { shared, alone })
    }

    /// As [`try_take_bytes`](Self::try_take_bytes), but waits for what others hold.
    pub(crate) async fn take_bytes(&self, bytes: usize) -> Result<RequestBytes, BudgetRefusal> {
        let alone = self.take_alone(bytes)?;
        let shared = self.shared.take_bytes(self.client, bytes).await;
        Ok(RequestBytes { shared, alone })
    }

    fn take_alone(&self, bytes: usize) -> Result<HeldBytes, BudgetRefusal> {
        let alone = self.alone.try_take_bytes(self.client, bytes);
        alone.ok_or_else(|| BudgetRefusal::TooCostly(self.held_bytes().saturating_add(bytes)))
    }
}

impl RequestBytes {
    /// Returns the number of bytes held.
    pub(crate) fn byte_count(&self) -> usize {
        self.shared.byte_count()
    }

    /// Adds bytes of the same budget.
    pub(crate) fn merge_bytes(&mut self, other: Self) {
        self.shared.merge_bytes(other.shared);
        self.alone.merge_bytes(other.alone);
    }

    /// Splits bytes off, at most all of them.
    pub(crate) fn split_bytes(&mut self, bytes: usize) -> Self {
        Self {
            shared: self.shared.split_bytes(bytes),
            alone: self.alone.split_bytes(bytes),
        }
    }

    /// Returns what is held of the budget of the request, and of the one that all share.
    pub(crate) fn into_parts(self) -> (HeldBytes, HeldBytes) {
        (self.alone, self.shared)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusal_says_whether_a_retry_can_help() {
        let shared = ByteBudget::new(900);
        let budget = RequestBudget::new(Arc::clone(&shared), ClientId::Key(1));
        let mut first = budget.try_take_bytes(500).unwrap();
        let more = budget.try_take_bytes(300).unwrap();
        let refused = budget.try_take_bytes(1).err();
        assert_eq!(refused, Some(BudgetRefusal::TooCostly(801)));
        first.merge_bytes(more);
        drop(first.split_bytes(400));
        let other = shared.try_take_bytes(ClientId::Key(2), 400);
        assert_eq!(budget.try_take_bytes(100).err(), Some(BudgetRefusal::InUse));
        // Another request of the same client is no reason to give this one up.
        drop(other);
        let other = shared.try_take_bytes(ClientId::Key(1), 380);
        assert_eq!(budget.try_take_bytes(100).err(), Some(BudgetRefusal::InUse));
        drop(other);
        drop((budget.try_take_bytes(400).unwrap(), first));
        assert_eq!(shared.free_bytes(), 900);
    }
}
