//! Response bodies whose bytes count towards a budget until the client takes them.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use axum::body::Body;
use bytes::Bytes;
use hyper::body::Frame;
use tokio::sync::mpsc;

use crate::limits::byte_budget::HeldBytes;
use crate::limits::detached_bytes::detach_bytes;

/// Largest piece, in bytes, that is passed to a connection. Bytes passed on no longer count.
const PIECE_BYTES: usize = 64 << 10;

/// An answer and the budget that it occupies.
pub(crate) struct HeldAnswer {
    text: Bytes,
    /// Budget of the request, if it has one, and budget of the whole service.
    _room: (Option<HeldBytes>, HeldBytes),
}

impl HeldAnswer {
    pub(crate) fn new(text: Vec<u8>, room: (Option<HeldBytes>, HeldBytes)) -> Self {
        Self {
            text: detach_bytes(text),
            _room: room,
        }
    }
}

/// A response body that consists of successive answers.
pub(crate) struct AnswerStream {
    more: mpsc::UnboundedReceiver<HeldAnswer>,
    now: Option<HeldAnswer>,
    /// Set before the end by the producer of an answer that must be complete.
    completed: Option<Arc<AtomicBool>>,
}

impl AnswerStream {
    pub(crate) fn new(more: mpsc::UnboundedReceiver<HeldAnswer>) -> Self {
        Self {
            more,
            now: None,
            completed: None,
        }
    }

    /// Creates a body that breaks off, so that the client notices it, unless `completed` is set when the answers
    /// end.
    pub(crate) fn new_whole(
        more: mpsc::UnboundedReceiver<HeldAnswer>,
        completed: Arc<AtomicBool>,
    ) -> Self {
        Self {
            completed: Some(completed),
            ..Self::new(more)
        }
    }

    /// Returns an error if the answers ended before they were complete.
    fn check_completed(&self) -> io::Result<()> {
        let completed = self.completed.as_ref();
        if completed.is_none_or(|completed| completed.load(Ordering::Acquire)) {
            Ok(())
        } else {
            Err(io::ErrorKind::UnexpectedEof.into())
        }
    }

    /// Returns the next piece of the current answer.
    fn next_piece(&mut self) -> Option<Bytes> {
        let held = self.now.as_mut()?;
        let piece = held.text.split_to(held.text.len().min(PIECE_BYTES));
        if held.text.is_empty() {
            self.now = None;
        }
        Some(piece)
    }
}

/// Returns a response body that consists of the parts of one answer.
pub(crate) fn whole_answer_body(parts: Vec<HeldAnswer>) -> Body {
    let (sender, more) = mpsc::unbounded_channel();
    for part in parts {
        // The receiver is in this function.
        let _ = sender.send(part);
    }
    drop(sender);
    Body::new(AnswerStream::new(more))
}

impl hyper::body::Body for AnswerStream {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let this = self.get_mut();
        loop {
            if let Some(piece) = this.next_piece() {
                return Poll::Ready(Some(Ok(Frame::data(piece))));
            }
            match ready!(this.more.poll_recv(context)) {
                Some(held) => this.now = Some(held),
                None => return Poll::Ready(this.check_completed().err().map(Err)),
            }
        }
    }
}
