//! Work on texts that clients send: what it may use, and how it ends.
//!
//! Such a request waits for a turn, then for memory, which counts towards the budget for untaken answers. It takes a
//! limited number of steps ([`passage_steps`](crate::config::ClientLimits::passage_steps)) and ends soon after its client
//! has disconnected. A request never waits for more memory while it has some, so that two of them cannot wait for
//! each other.

use std::sync::Arc;

use lookalike::passages::PassageBudget;
use tokio::time::timeout;

use crate::api::answer_text::AnswerText;
use crate::api::problem::ApiProblem;
use crate::api::responses::{in_background, with_json_type};
use crate::api::router::ApiResult;
use crate::api::stream::queue_full;
use crate::limits::byte_budget::{ByteBudget, ClientId, HeldBytes};
use crate::service::ServiceState;

/// Limits of steps and memory for one request with texts.
pub(crate) struct TextAllowance {
    /// Steps, and bytes of memory beside the texts.
    pub(crate) budget: Arc<PassageBudget>,
    held: Arc<ByteBudget>,
    client: ClientId,
    room: HeldBytes,
}

impl TextAllowance {
    /// Holds memory for texts, in all copies, and for work on them. If that is more than a request may hold, the work gets
    /// less, and fails if it needs more than that.
    ///
    /// # Errors
    /// [`ProblemCode::Busy`](crate::api::problem::ProblemCode::Busy) if other requests hold too much.
    pub(crate) fn hold_memory(
        &mut self,
        text_bytes: usize,
        work_bytes: usize,
    ) -> Result<(), ApiProblem> {
        let wanted = text_bytes
            .saturating_add(work_bytes)
            .min(largest_memory(&self.held));
        if let Some(missing) = wanted.checked_sub(self.room.byte_count()) {
            let more = self.held.try_take_bytes(self.client, missing);
            self.room.merge_bytes(more.ok_or_else(queue_full)?);
        }
        let room = self.room.byte_count();
        // Texts that fill the memory leave a part of it for work, because they are counted generously.
        let for_work = room.saturating_sub(text_bytes).max(room / 8);
        self.budget.set_max_bytes(for_work);
        Ok(())
    }

    /// Returns a part of an answer, which fails if there is no budget for it at once.
    pub(crate) fn new_part(&self) -> AnswerText {
        AnswerText::new(Arc::clone(&self.held), self.client)
    }

    /// Gives the memory back but for some bytes.
    pub(crate) fn keep_memory(&mut self, bytes: usize) {
        self.room = self.room.split_bytes(bytes);
    }
}

/// Returns the largest memory of a request, in bytes: three eighths of the budget, so that two requests and their
/// answers have room.
pub(crate) fn largest_memory(held: &ByteBudget) -> usize {
    held.total_bytes() / 8 * 3
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
    let turn = service.text_turns.take(client).await;
    let first_bytes = first_bytes.min(largest_memory(&service.answer_budget));
    let room = service.answer_budget.take_bytes(client, first_bytes);
    let room = timeout(limits.body_timeout, room).await;
    let budget = Arc::new(PassageBudget::new(limits.passage_steps, first_bytes));
    let _cancel = CancelOnDrop(Arc::clone(&budget));
    let mut allowance = TextAllowance {
        budget,
        held: Arc::clone(&service.answer_budget),
        client,
        room: room.map_err(|_| queue_full())?,
    };
    // The turn and the memory are kept until the work ends, even if the client disconnects.
    let (made, text, _turn) = in_background(move || {
        let mut text = allowance.new_part();
        let made = work(&mut allowance, &mut text);
        drop(allowance);
        (made, text, turn)
    })
    .await;
    made?;
    Ok(with_json_type(text.into_body()))
}
