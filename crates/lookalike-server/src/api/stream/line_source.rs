//! The reading stage of a bulk request: from a body to portions of lines.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

use super::line_portion::LinePortion;
use super::{AnswerSink, client_gone, queue_full};
use crate::api::body::{BodyReader, check_rate};
use crate::api::problem::ApiProblem;
use crate::collections::open_collection::OpenCollection;
use crate::limits::byte_budget::{ByteBudget, ClientId};

/// Longest time that an incomplete line waits for budget.
const INCOMPLETE_LINE_PATIENCE: Duration = Duration::from_secs(1);

/// Position and reason of a body that could not be read to its end.
pub(super) struct BrokenRead {
    pub(super) line: u64,
    pub(super) problem: ApiProblem,
    pub(super) reader: BodyReader,
}

/// The reading stage of a stream.
pub(super) struct LineSource {
    reader: BodyReader,
    waiting_budget: Arc<ByteBudget>,
    client: ClientId,
    patience: Duration,
    portion: LinePortion,
    /// Arrival time of the current line's first bytes, while the line is incomplete.
    unended_since: Option<Instant>,
}

impl LineSource {
    /// Creates the stage. Lines have at most `longest` bytes; `patience` is the longest wait for budget.
    pub(super) fn new(
        reader: BodyReader,
        waiting_budget: Arc<ByteBudget>,
        client: ClientId,
        longest: usize,
        patience: Duration,
    ) -> Self {
        Self {
            reader,
            waiting_budget,
            client,
            patience,
            portion: LinePortion::new(longest),
            unended_since: None,
        }
    }

    /// Reads all lines and passes them on in portions; returns why it stopped before the end, if it did.
    pub(super) async fn read_portions(
        mut self,
        open: &OpenCollection,
        portions: mpsc::Sender<LinePortion>,
        out: &AnswerSink,
    ) -> Option<BrokenRead> {
        let result = tokio::select! {
            result = self.read_lines(open, &portions) => result,
            () = out.sender.closed() => Err(client_gone()),
        };
        let line = self.portion.number;
        // Lines that came before the failure are still answered.
        let last = self.portion.take_complete_lines();
        // The incomplete line releases its budget here.
        let reader = self.into_reader();
        if !last.lines.is_empty() {
            let _ = portions.send(last).await;
        }
        result.err().map(|problem| BrokenRead {
            line,
            problem,
            reader,
        })
    }

    fn into_reader(self) -> BodyReader {
        self.reader
    }

    async fn read_lines(
        &mut self,
        open: &OpenCollection,
        portions: &mpsc::Sender<LinePortion>,
    ) -> Result<(), ApiProblem> {
        loop {
            // A client that sends nothing must not keep a collection from being deleted.
            let next = tokio::select! {
                biased;
                () = open.wait_until_closing() => None,
                next = self.next_piece(portions) => Some(next?),
            };
            open.check_not_deleting()?;
            let Some(mut piece) = next.flatten() else {
                if self.portion.bytes.len() > self.portion.line_start || self.portion.too_long {
                    self.portion.end_current_line();
                }
                return Ok(());
            };
            let kept = self.portion.count_kept(&piece);
            self.wait_for_room(kept, portions).await?;
            self.check_line_rate(&piece)?;
            while !piece.is_empty() {
                piece = self.portion.push_bytes(piece);
                if piece.is_empty() {
                    self.portion.release_unused_budget();
                }
                if self.portion.is_full() {
                    self.send_portion(portions).await?;
                }
            }
            self.portion.check_blank_lines()?;
        }
    }

    /// Refuses a line that arrives too slowly for the budget it occupies.
    fn check_line_rate(&mut self, piece: &[u8]) -> Result<(), ApiProblem> {
        if piece.contains(&b'\n') {
            self.unended_since = None;
            return Ok(());
        }
        let since = *self.unended_since.get_or_insert_with(Instant::now);
        let bytes = self.portion.bytes.len() - self.portion.line_start;
        check_rate(since, self.patience, bytes)
    }

    /// Returns the next piece of the body. While there is none, passes on the lines read so far as soon as
    /// the next stage is free.
    async fn next_piece(
        &mut self,
        portions: &mpsc::Sender<LinePortion>,
    ) -> Result<Option<Bytes>, ApiProblem> {
        if self.portion.lines.is_empty() {
            return self.reader.next_piece().await;
        }
        tokio::select! {
            biased;
            piece = self.reader.next_piece() => piece,
            permit = portions.reserve() => {
                permit.map_err(|_| client_gone())?.send(self.portion.take_complete_lines());
                self.reader.next_piece().await
            }
        }
    }

    /// Waits for budget for `bytes` more bytes. If there is none, it first passes on the lines it holds.
    async fn wait_for_room(
        &mut self,
        bytes: usize,
        portions: &mpsc::Sender<LinePortion>,
    ) -> Result<(), ApiProblem> {
        let mut permits = self.waiting_budget.try_take_bytes(self.client, bytes);
        if permits.is_none() {
            self.send_portion(portions).await?;
            self.reader.stop_waiting();
            let patience = if self.portion.bytes.is_empty() {
                self.patience
            } else {
                INCOMPLETE_LINE_PATIENCE.min(self.patience)
            };
            let taken = timeout(patience, self.waiting_budget.take_bytes(self.client, bytes));
            permits = Some(taken.await.map_err(|_| queue_full())?);
        }
        match (&mut self.portion.permits, permits) {
            (Some(held_bytes), Some(more)) => held_bytes.merge_bytes(more),
            (held_bytes, more) => *held_bytes = more,
        }
        Ok(())
    }

    async fn send_portion(
        &mut self,
        portions: &mpsc::Sender<LinePortion>,
    ) -> Result<(), ApiProblem> {
        if self.portion.lines.is_empty() {
            return Ok(());
        }
        let portion = self.portion.take_complete_lines();
        // Time that the service takes does not count against the client.
        self.unended_since = None;
        self.reader.stop_waiting();
        portions.send(portion).await.map_err(|_| client_gone())
    }
}
