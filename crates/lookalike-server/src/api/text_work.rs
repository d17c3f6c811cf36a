//! Work on texts that clients send: what it may use, and how it ends.
//!
//! Such a request waits for memory, which counts towards the budget for untaken answers, then for a permit. It takes
//! a limited number of steps ([`passage_steps`](crate::config::ClientLimits::passage_steps)) and ends soon after its
//! client has disconnected. A request never waits for memory while it has a permit or other memory, so that no permit
//! is idle and no two requests wait for each other.

use std::sync::Arc;

use lookalike::passages::PassageBudget;

use crate::api::answer_text::{AnswerText, budget_problem, largest_memory, wait_for_permit};
use crate::api::problem::ApiProblem;
use crate::api::responses::{MUCH_MEMORY, with_json_type};
use crate::api::router::ApiResult;
use crate::api::stream::client_gone;
use crate::limits::byte_budget::ClientId;
use crate::limits::request_budget::{RequestBudget, RequestBytes};
use crate::service::ServiceState;

/// Limits of steps and memory for one request with texts.
pub(crate) struct TextAllowance {
    /// Steps, and bytes of memory beside the texts.
    pub(crate) budget: Arc<PassageBudget>,
    memory: RequestBudget,
    room: RequestBytes,
}

impl TextAllowance {
    /// Holds memory for texts, in all copies, and for work on them. If that is more than a request may hold, the work gets
    /// less, and fails if it needs more than that.
    ///
    /// # Errors
    /// [`ProblemCode::Busy`](crate::api::problem::ProblemCode::Busy) if other requests hold too much, and
    /// [`ProblemCode::TooCostly`](crate::api::problem::ProblemCode::TooCostly) if this one would.
    pub(crate) fn hold_memory(
        &mut self,
        text_bytes: usize,
        work_bytes: usize,
    ) -> Result<(), ApiProblem> {
        let wanted = text_bytes
            .saturating_add(work_bytes)
            .min(largest_memory(self.memory.total_bytes()));
        if let Some(missing) = wanted.checked_sub(self.room.byte_count()) {
            let more = self.memory.try_take_bytes(missing);
            let more = more.map_err(|refusal| budget_problem(refusal, &self.memory))?;
            self.room.merge_bytes(more);
        }
        let room = self.room.byte_count();
        // Texts that fill the memory leave a part of it for work, because they are counted generously.
        let for_work = room.saturating_sub(text_bytes).max(room / 8);
        self.budget.set_max_bytes(for_work);
        Ok(())
    }

    /// Returns a part of an answer, which fails if there is no budget for it at once.
    pub(crate) fn new_part(&self) -> AnswerText {
        AnswerText::new(self.memory.clone())
    }

    /// Checks that the client still waits for its answer. Work that takes no steps asks before each document.
    ///
    /// # Errors
    /// If the client has disconnected.
    pub(crate) fn check_client(&self) -> Result<(), ApiProblem> {
        if self.budget.is_cancelled() {
            Err(client_gone())
        } else {
            Ok(())
        }
    }

    /// Gives the memory back but for some bytes.
    pub(crate) fn keep_memory(&mut self, bytes: usize) {
        self.room = self.room.split_bytes(bytes);
    }
}

/// Cancels work when the request ends before it, because its client has disconnected.
struct CancelOnDrop(Arc<PassageBudget>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Answers a request with texts. `first_bytes` is the memory that it needs at once; of more than a request may hold, it gets
/// as much as that.
///
/// # Errors
/// Any error of `work`, or [`ProblemCode::Busy`](crate::api::problem::ProblemCode::Busy) if there is no memory in time.
pub(crate) async fn answer_with_work(
    service: &Arc<ServiceState>,
    client: ClientId,
    first_bytes: usize,
    work: impl FnOnce(&mut TextAllowance, &mut AnswerText) -> Result<(), ApiProblem> + Send + 'static,
) -> ApiResult {
    let limits = &service.config.limits;
    let memory = RequestBudget::new(Arc::clone(&service.answer_budget), client);
    let first_bytes = first_bytes.min(largest_memory(memory.total_bytes()));
    let permits = &service.text_permits;
    let begun = wait_for_permit(&memory, first_bytes, limits.body_timeout, permits, client);
    let (room, permit) = begun.await?;
    let budget = Arc::new(PassageBudget::new(limits.passage_steps, first_bytes));
    let release_memory = service.config.release_memory;
    let _cancel = CancelOnDrop(Arc::clone(&budget));
    let mut allowance = TextAllowance {
        budget,
        memory,
        room,
    };
    // The memory is kept until the work ends, even if the client disconnects.
    let working = permit.run_work(move || {
        let mut text = allowance.new_part();
        let made = work(&mut allowance, &mut text);
        drop(allowance);
        if first_bytes.max(text.byte_count()) >= MUCH_MEMORY {
            release_memory();
        }
        (made, text)
    });
    let ((made, text), _permit) = working.await;
    made?;
    Ok(with_json_type(text.into_body()))
}

#[cfg(test)]
impl TextAllowance {
    /// Creates the allowance of a request that has a budget of its own, with unlimited steps.
    pub(crate) fn new_alone(total_bytes: usize) -> Self {
        let budget = crate::limits::byte_budget::ByteBudget::new(total_bytes);
        let memory = RequestBudget::new(budget, ClientId::Key(1));
        Self {
            budget: Arc::new(PassageBudget::unlimited()),
            room: memory.try_take_bytes(0).unwrap_or_else(|_| panic!()),
            memory,
        }
    }

    /// Takes all bytes that the request may hold beside those that it has, but for some.
    pub(crate) fn take_all_but(&self, bytes: usize) -> RequestBytes {
        let most = self.memory.client_share() - self.memory.held_bytes();
        let taken = self.memory.try_take_bytes(most - bytes);
        taken.unwrap_or_else(|_| panic!("they are free"))
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};
    use std::time::Duration;

    use super::*;
    use crate::limits::answer_permits::AnswerPermits;
    use crate::limits::byte_budget::ByteBudget;

    /// A request that waits for memory leaves the permit to one that has it.
    #[test]
    fn request_that_waits_for_memory_has_no_permit() {
        const CLIENT: ClientId = ClientId::Key(1);
        let budget = ByteBudget::new(1000);
        let other = budget.try_take_bytes(ClientId::Key(2), 900);
        // Each client has one permit.
        let permits = AnswerPermits::new(2).unwrap();
        let memory = RequestBudget::new(Arc::clone(&budget), CLIENT);
        let begin = |bytes| {
            let patience = Duration::from_secs(1000);
            Box::pin(wait_for_permit(&memory, bytes, patience, &permits, CLIENT))
        };
        let mut context = Context::from_waker(Waker::noop());
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        let _entered = runtime.enter();
        let (mut large, mut small) = (begin(200), begin(10));
        assert!(large.as_mut().poll(&mut context).is_pending());
        let Poll::Ready(Ok(begun)) = small.as_mut().poll(&mut context) else {
            panic!("the permit is idle");
        };
        drop(other);
        assert!(large.as_mut().poll(&mut context).is_pending());
        drop(begun);
        assert!(matches!(
            large.as_mut().poll(&mut context),
            Poll::Ready(Ok(_))
        ));
    }
}
