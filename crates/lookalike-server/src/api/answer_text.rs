//! The text of an answer while it is made.
//!
//! Its parts count towards the budget for untaken answers before they are allocated, so that an answer never takes
//! memory that was not granted. An answer without room ends with a problem, which the writer keeps, because the
//! serialiser knows errors of writing only. The problem is [`ProblemCode::TooCostly`] if the request would hold more than
//! a client ever may, and [`ProblemCode::Busy`] if others hold the memory and a retry can help.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use serde::Serialize;
use tokio::runtime::Handle;
use tokio::time::timeout;

use crate::api::problem::{ApiProblem, ProblemCode};
use crate::api::stream::queue_full;
use crate::limits::answer_permits::{AnswerPermit, AnswerPermits};
use crate::limits::byte_budget::ClientId;
use crate::limits::request_budget::{BudgetRefusal, RequestBudget, RequestBytes};
use crate::limits::response_budget::{HeldAnswer, whole_answer_body};

/// Bytes of the first part of an answer; each further one has twice as many, up to [`LARGEST_PART`].
const SMALLEST_PART: usize = 4 << 10;

/// Most bytes of a part.
const LARGEST_PART: usize = 256 << 10;

/// The text of an answer, in parts that count towards a budget.
pub(crate) struct AnswerText {
    budget: RequestBudget,
    /// Time for which a part waits for budget, and the runtime in which it waits. Without it a part that finds none
    /// fails.
    patience: Option<(Handle, Duration)>,
    /// Budget that was taken before, for the next parts.
    room: Option<RequestBytes>,
    parts: Vec<HeldAnswer>,
    /// The part that is being written, and its budget.
    open: Option<(Vec<u8>, RequestBytes)>,
    /// Bytes of all parts.
    length: usize,
    /// Why there is no room for more.
    problem: Option<ApiProblem>,
}

impl AnswerText {
    /// Creates an answer that has budget already. Parts beyond it wait for more up to `patience`. It is written on a thread
    /// that may block.
    pub(crate) fn new_waiting(
        budget: RequestBudget,
        room: RequestBytes,
        patience: Duration,
    ) -> Self {
        Self {
            patience: Some((Handle::current(), patience)),
            ..Self::new(budget).with_room(room)
        }
    }

    /// Returns the answer with budget that was taken before, for its first parts.
    pub(crate) fn with_room(self, room: RequestBytes) -> Self {
        Self {
            room: Some(room),
            ..self
        }
    }

    /// Creates an answer that fails if there is no budget for a part at once.
    pub(crate) fn new(budget: RequestBudget) -> Self {
        Self {
            budget,
            patience: None,
            room: None,
            parts: Vec::new(),
            open: None,
            length: 0,
            problem: None,
        }
    }

    /// Appends a value as JSON.
    ///
    /// # Errors
    /// If there is no budget.
    pub(crate) fn write_json(&mut self, value: &impl Serialize) -> Result<(), ApiProblem> {
        let written = serde_json::to_writer(&mut *self, value);
        self.check_written(written.is_ok())
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// If there is no budget.
    pub(crate) fn write_bytes(&mut self, bytes: &[u8]) -> Result<(), ApiProblem> {
        let written = self.write_all(bytes);
        self.check_written(written.is_ok())
    }

    /// Appends bytes in a part of their own, which takes no more budget than they have. So the end of an answer can be
    /// written after its largest part.
    ///
    /// # Errors
    /// If there is no budget.
    pub(crate) fn write_exactly(&mut self, bytes: &[u8]) -> Result<(), ApiProblem> {
        self.close_part();
        let held = self.budget.try_take_bytes(bytes.len());
        let held = held.map_err(|refusal| budget_problem(refusal, &self.budget))?;
        self.open = Some((bytes.to_vec(), held));
        self.length += bytes.len();
        self.close_part();
        Ok(())
    }

    /// Appends the parts of another answer.
    pub(crate) fn append(&mut self, mut other: Self) {
        self.close_part();
        other.close_part();
        self.parts.append(&mut other.parts);
        self.length += other.length;
    }

    /// Returns the number of bytes written.
    pub(crate) fn byte_count(&self) -> usize {
        self.length
    }

    /// Ends the answer: returns the budget that it does not need.
    pub(crate) fn close_answer(&mut self) {
        self.close_part();
        self.room = None;
    }

    /// Returns the answer as the body of a response.
    pub(crate) fn into_body(mut self) -> Body {
        self.close_answer();
        whole_answer_body(self.parts)
    }

    /// Returns memory and budget that the last part does not need.
    pub(crate) fn close_part(&mut self) {
        let Some((mut bytes, mut held)) = self.open.take() else {
            return;
        };
        if bytes.is_empty() {
            return;
        }
        bytes.shrink_to_fit();
        let (alone, shared) = held.split_bytes(bytes.len()).into_parts();
        self.parts
            .push(HeldAnswer::new(bytes, (Some(alone), shared)));
    }

    fn check_written(&mut self, is_written: bool) -> Result<(), ApiProblem> {
        match self.problem.take() {
            Some(problem) => Err(problem),
            None if is_written => Ok(()),
            None => Err(queue_full()),
        }
    }

    /// Begins a part.
    fn open_part(&mut self) -> Result<(), ApiProblem> {
        self.close_part();
        let wanted = self.length.clamp(SMALLEST_PART, LARGEST_PART);
        let wanted = wanted.min(self.budget.total_bytes());
        if let Some(room) = self.room.as_mut().filter(|room| room.byte_count() > 0) {
            let wanted = wanted.min(room.byte_count());
            self.open = Some((Vec::with_capacity(wanted), room.split_bytes(wanted)));
            return Ok(());
        }
        let held = match &self.patience {
            // An answer that alone exceeds the share of a client could wait for ever. A page has limits of its own.
            Some(_) if self.length + wanted > self.budget.client_share() => {
                self.budget.try_take_bytes(0)
            }
            Some((runtime, patience)) => {
                let held = self.budget.take_bytes(wanted);
                let held = runtime.block_on(async { timeout(*patience, held).await });
                held.unwrap_or(Err(BudgetRefusal::InUse))
            }
            None => self.budget.try_take_bytes(wanted),
        };
        let held = held.map_err(|refusal| budget_problem(refusal, &self.budget))?;
        self.open = Some((Vec::with_capacity(wanted), held));
        Ok(())
    }
}

/// Returns the largest memory of a request, in bytes: three eighths of the budget, so that two requests and their
/// answers have room.
pub(crate) fn largest_memory(total_bytes: usize) -> usize {
    total_bytes / 8 * 3
}

/// Waits for memory, up to `patience`, and then for a permit. A request that waits for memory has no permit, because
/// the permit would be idle meanwhile.
///
/// # Errors
/// [`ProblemCode::Busy`] if there is no memory in time, and [`ProblemCode::TooCostly`] if there never is.
pub(crate) async fn wait_for_permit(
    memory: &RequestBudget,
    bytes: usize,
    patience: Duration,
    permits: &Arc<AnswerPermits>,
    client: ClientId,
) -> Result<(RequestBytes, AnswerPermit), ApiProblem> {
    let room = timeout(patience, memory.take_bytes(bytes)).await;
    let room = room.unwrap_or(Err(BudgetRefusal::InUse));
    let room = room.map_err(|refusal| budget_problem(refusal, memory))?;
    Ok((room, permits.acquire_permit(client).await))
}

/// Returns the problem of a request whose texts, work and answer get no more memory.
pub(crate) fn budget_problem(refusal: BudgetRefusal, budget: &RequestBudget) -> ApiProblem {
    let BudgetRefusal::TooCostly(needed) = refusal else {
        return queue_full();
    };
    let detail = format!(
        "the request and its answer take {needed} bytes of memory, more than the limit of {} that one client may hold of \
         --max-queue: ask for less at once where the request can (a smaller `limit`, fewer texts), or start the service \
         with a larger --max-queue",
        budget.client_share()
    );
    ApiProblem::new(ProblemCode::TooCostly, detail)
}

impl Write for AnswerText {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let is_full = |(part, _): &(Vec<u8>, RequestBytes)| part.len() == part.capacity();
        if self.open.as_ref().is_none_or(is_full)
            && let Err(problem) = self.open_part()
        {
            self.problem = Some(problem);
            return Err(io::ErrorKind::StorageFull.into());
        }
        let (part, _) = self.open.as_mut().expect("a part was opened");
        let count = bytes.len().min(part.capacity() - part.len());
        part.extend_from_slice(&bytes[..count]);
        self.length += count;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::byte_budget::ByteBudget;

    const CLIENT: ClientId = ClientId::Key(1);

    fn request_budget(budget: &Arc<ByteBudget>) -> RequestBudget {
        RequestBudget::new(Arc::clone(budget), CLIENT)
    }

    /// Every byte is counted before it is written, and released with the answer.
    #[test]
    fn text_has_budget_from_its_first_byte() {
        let budget = ByteBudget::new(10 << 20);
        let mut text = AnswerText::new(request_budget(&budget));
        for count in 1..=100_000 {
            text.write_bytes(b"0123456789").unwrap();
            let held = budget.total_bytes() - budget.free_bytes();
            assert!(held >= 10 * count && held <= 10 * count + LARGEST_PART);
        }
        text.close_part();
        assert_eq!(text.byte_count(), 1_000_000);
        assert_eq!(budget.total_bytes() - budget.free_bytes(), 1_000_000);
        let mut whole = AnswerText::new(request_budget(&budget));
        whole.write_json(&"x").unwrap();
        whole.append(text);
        assert_eq!(whole.byte_count(), 1_000_003);
        drop(whole.into_body());
        assert_eq!(budget.free_bytes(), budget.total_bytes());
    }

    /// An answer uses the budget that it has before it takes more, and gives back what it does not need.
    #[test]
    fn text_uses_its_room_first() {
        let budget = ByteBudget::new(10 << 20);
        let request = request_budget(&budget);
        let room = request.try_take_bytes(1 << 20).unwrap();
        let mut text = AnswerText::new(request).with_room(room);
        let held = || budget.total_bytes() - budget.free_bytes();
        text.write_bytes(&[b'x'; 300 << 10]).unwrap();
        assert_eq!(held(), 1 << 20);
        text.close_answer();
        assert_eq!(held(), 300 << 10);
        drop(text);
        // All of the room is used before more is taken, even if a part is smaller than usual.
        let room = request_budget(&budget).try_take_bytes(150 << 10).unwrap();
        let others = budget.try_take_bytes(ClientId::Key(2), (10 << 20) - (150 << 10));
        assert!(others.is_some());
        let mut text = AnswerText::new(request_budget(&budget)).with_room(room);
        text.write_bytes(&[b'x'; 150 << 10]).unwrap();
        drop((text, others));
        let room = request_budget(&budget).try_take_bytes(10 << 10).unwrap();
        let mut text = AnswerText::new(request_budget(&budget)).with_room(room);
        text.write_bytes(&[b'x'; 100 << 10]).unwrap();
        text.close_answer();
        assert_eq!(held(), 100 << 10);
        drop(text);
        assert_eq!(held(), 0);
    }

    #[test]
    fn text_without_budget_is_refused() {
        let budget = ByteBudget::new(900 << 10);
        let other = budget.try_take_bytes(ClientId::Key(2), 800 << 10);
        let mut text = AnswerText::new(request_budget(&budget));
        let refused = text.write_bytes(&vec![b'x'; 200 << 10]).unwrap_err();
        assert_eq!(refused.code, ProblemCode::Busy);
        drop((other, text));
        let mut text = AnswerText::new(request_budget(&budget));
        let refused = text.write_bytes(&vec![b'x'; 850 << 10]).unwrap_err();
        assert_eq!(refused.code, ProblemCode::TooCostly);
        drop(text);
        assert_eq!(budget.free_bytes(), 900 << 10);
    }

    /// The parts of an answer count together. Where their sum is beyond what a client may ever hold, no retry helps.
    #[test]
    fn sum_of_parts_beyond_the_share_is_too_costly() {
        let budget = ByteBudget::new(900 << 10);
        let request = request_budget(&budget);
        let mut answer = AnswerText::new(request.clone());
        let refused = loop {
            let mut part = AnswerText::new(request.clone());
            match part.write_bytes(&[b'x'; 10 << 10]) {
                Ok(()) => answer.append(part),
                Err(problem) => break problem,
            }
        };
        assert_eq!(refused.code, ProblemCode::TooCostly);
        let limit = request.client_share().to_string();
        assert!(refused.detail.contains(&limit) && refused.detail.contains("smaller `limit`"));
        assert!(answer.byte_count() > 780 << 10);
        answer.write_exactly(b"]}").unwrap();
        // Memory that other requests hold gives `busy`, because a retry can help.
        drop(answer);
        let other = budget.try_take_bytes(ClientId::Key(2), 895 << 10);
        let mut part = AnswerText::new(request);
        let refused = part.write_bytes(&[b'x'; 10 << 10]).unwrap_err();
        assert_eq!(refused.code, ProblemCode::Busy);
        drop((other, part));
        assert_eq!(budget.free_bytes(), 900 << 10);
    }
}
