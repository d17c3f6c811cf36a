//! Bulk requests: one document per line in, one answer per line out, in the same order.
//!
//! Lines are collected into portions, and portions pass through four stages that run at the same time, so
//! that network, cores and disk are all busy:
//!
//! ```text
//! read lines ──> prepare (all threads) ──> admit (in order) ──> settle and write answers
//! ```
//!
//! A portion is passed on when it is full, or when no more input has arrived and the next stage is free. A
//! client that sends one line and waits gets its answer at once; a client that sends a file gets large
//! portions.
//!
//! # Memory
//!
//! The bytes of a portion count towards the budget of the whole service until it is answered. A stream whose
//! current line is incomplete waits at most a second for more budget, because streams that wait for bytes
//! that others hold could deadlock. Answers that the client does not take are held up to
//! [`MAX_UNREAD_ANSWER_BYTES`] bytes, and count towards a second budget of the whole service. At the limit,
//! reading pauses until the client takes some. A client that reads nothing before it has sent everything can
//! therefore have half a million answers in one request.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, header};
use bytes::Bytes;
use lookalike::text::AnalysisScratch;
use lookalike_batch::match_options::counts_edits;
use rayon::prelude::*;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

use crate::api::body::{BYTE_ORDER_MARK, BodyReader, body_too_large, check_rate};
use crate::api::problem::{ApiProblem, ProblemCode};
use crate::api::responses::in_background;
use crate::api::router::{GoesOn, TimedRequest};
use crate::collections::open_collection::{
    AdmittedBatch, DocumentAnswer, OpenCollection, PreparedDocument, RefusedDocument,
};
use crate::json::verdicts::{RefusedLineJson, VerdictJson};
use crate::limits::byte_budget::{ByteBudget, ClientId, HeldBytes};
use crate::limits::response_budget::{AnswerStream, HeldAnswer};

/// Lines in a full portion.
const PORTION_LINES: usize = 4096;

/// Bytes in a full portion.
const PORTION_BYTES: usize = 4 << 20;

/// Blank lines that a body may have. They are skipped without an answer, but cost time.
const MAX_BLANK_LINES: u64 = 100_000;

/// Bytes of answers that a request may hold until its client takes them.
const MAX_UNREAD_ANSWER_BYTES: usize = 64 << 20;

/// Longest time that an incomplete line waits for budget.
const INCOMPLETE_LINE_PATIENCE: Duration = Duration::from_secs(1);

/// Operation on the documents of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StreamTask {
    /// Check and insert.
    Insert,
    /// Check only.
    Query,
}

/// Everything that a stream needs.
pub(crate) struct DocumentStream {
    pub(crate) open: Arc<OpenCollection>,
    pub(crate) task: StreamTask,
    pub(crate) reader: BodyReader,
    pub(crate) timed: TimedRequest,
    /// Budget, in bytes, for documents waiting in the whole service.
    pub(crate) queue: Arc<ByteBudget>,
    /// Budget, in bytes, for answers that the whole service holds.
    pub(crate) held: Arc<ByteBudget>,
    pub(crate) client: ClientId,
    /// Longest line, in bytes.
    pub(crate) longest: usize,
    /// Longest wait for budget, and for the client to take answers.
    pub(crate) patience: Duration,
}

impl DocumentStream {
    /// Starts the stream. Returns at once with a response whose body is produced in the background.
    ///
    /// # Errors
    /// If the budget for waiting documents is used up.
    pub(crate) fn begin_answer(self) -> Result<Response<Body>, ApiProblem> {
        check_room(&self.queue)?;
        let (sender, answers) = mpsc::unbounded_channel();
        let out = AnswerSink {
            sender,
            room: ByteBudget::new(MAX_UNREAD_ANSWER_BYTES),
            held: Arc::clone(&self.held),
            client: self.client,
            patience: self.patience,
        };
        tokio::spawn(self.run_stream(out));
        let mut response = Response::new(Body::new(AnswerStream::new(answers)));
        let kind = HeaderValue::from_static("application/x-ndjson");
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        response.extensions_mut().insert(GoesOn);
        Ok(response)
    }

    async fn run_stream(self, out: AnswerSink) {
        let Self {
            open,
            task,
            reader,
            timed,
            queue,
            client,
            longest,
            patience,
            ..
        } = self;
        let (portions, to_prepare) = mpsc::channel(1);
        let (prepared, to_admit) = mpsc::channel(1);
        let (admitted, to_answer) = mpsc::channel(1);
        let source = LineSource {
            reader,
            queue,
            client,
            patience,
            portion: LinePortion::new(longest),
            unended_since: None,
        };
        let reading = source.read_portions(&open, portions, &out);
        let sender = out.sender.clone();
        let preparing = prepare_portions(&open, task, sender, to_prepare, prepared);
        let admitting = admit_portions(&open, to_admit, admitted);
        let answering = answer_portions(&open, to_answer, &out);
        let (broken, (), (), ()) = tokio::join!(reading, preparing, admitting, answering);
        drop(open);
        if let Some(broken) = &broken {
            let mut text = Vec::new();
            write_refusal(&mut text, None, broken.line, &broken.problem);
            let _ = out.send_answer(text.into()).await;
        }
        timed.count_request(StatusCode::OK.as_u16());
        // The response body ends after this, when `out` is dropped.
        if let Some(broken) = broken
            && matches!(
                broken.problem.code,
                ProblemCode::TooLarge | ProblemCode::BadBody
            )
        {
            broken.reader.discard_rest().await;
        }
    }
}

/// Checks that some of the budget for waiting documents is free.
///
/// # Errors
/// [`ProblemCode::Busy`] if it is used up.
pub(crate) fn check_room(queue: &ByteBudget) -> Result<(), ApiProblem> {
    match queue.free_bytes() {
        0 => Err(queue_full()),
        _ => Ok(()),
    }
}

pub(crate) fn queue_full() -> ApiProblem {
    let detail = "the queue of waiting documents is full: send the same again";
    ApiProblem::new(ProblemCode::Busy, detail)
}

/// A line of a portion.
struct PortionLine {
    /// Line number in the body, from 1.
    number: u64,
    /// Position of its bytes in the portion; `None` if the line is too long.
    bytes: Option<Range<usize>>,
}

/// Lines that are processed together.
struct LinePortion {
    bytes: Vec<u8>,
    lines: Vec<PortionLine>,
    /// Start of the incomplete last line.
    begun: usize,
    /// Number of the incomplete line.
    number: u64,
    /// `true` if the rest of the incomplete line is skipped because it is too long.
    too_long: bool,
    longest: usize,
    permits: Option<HeldBytes>,
    /// Blank lines of the body so far.
    blank_lines: u64,
}

impl LinePortion {
    fn new(longest: usize) -> Self {
        Self {
            bytes: Vec::new(),
            lines: Vec::new(),
            begun: 0,
            number: 1,
            too_long: false,
            longest,
            permits: None,
            blank_lines: 0,
        }
    }

    fn is_full_portion(&self) -> bool {
        self.lines.len() >= PORTION_LINES || self.begun >= PORTION_BYTES
    }

    /// Adds bytes up to the end of the line that fills the portion; returns the rest.
    fn push_bytes(&mut self, mut piece: Bytes) -> Bytes {
        while !piece.is_empty() && !self.is_full_portion() {
            let end = memchr::memchr(b'\n', &piece);
            let part = piece.split_to(end.map_or(piece.len(), |end| end + 1));
            if !self.too_long {
                self.bytes
                    .extend_from_slice(&part[..end.unwrap_or(part.len())]);
                self.check_length();
            }
            if end.is_some() {
                self.end_current_line();
            }
        }
        piece
    }

    /// Returns how many bytes of a piece the portion would hold. Drops a line that becomes too long with this
    /// piece, because bytes that are dropped must not wait for budget.
    fn count_kept(&mut self, piece: &[u8]) -> usize {
        let end = memchr::memchr(b'\n', piece).unwrap_or(piece.len());
        if !self.too_long && self.bytes.len() - self.begun + end > self.longest {
            self.bytes.truncate(self.begun);
            self.too_long = true;
            self.trim_kept();
        }
        match self.too_long {
            true => piece.len() - end,
            false => piece.len(),
        }
    }

    /// Checks the number of blank lines.
    ///
    /// # Errors
    /// If the body has more than [`MAX_BLANK_LINES`].
    fn check_blank_lines(&self) -> Result<(), ApiProblem> {
        if self.blank_lines <= MAX_BLANK_LINES {
            return Ok(());
        }
        let detail =
            format!("the body has more than {MAX_BLANK_LINES} blank lines: leave them out");
        Err(ApiProblem::new(ProblemCode::TooLarge, detail))
    }

    fn check_length(&mut self) {
        if self.bytes.len() - self.begun > self.longest {
            self.bytes.truncate(self.begun);
            self.too_long = true;
        }
    }

    /// Ends the current line. Ignores a blank line, and a byte order mark before the first one.
    fn end_current_line(&mut self) {
        let mut line = self.begun..self.bytes.len();
        if self.number == 1 && self.bytes[line.clone()].starts_with(BYTE_ORDER_MARK) {
            line.start += BYTE_ORDER_MARK.len();
        }
        let blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r');
        let is_blank = self.bytes[line.clone()].iter().all(blank);
        if self.too_long || !is_blank {
            self.lines.push(PortionLine {
                number: self.number,
                bytes: (!self.too_long).then_some(line),
            });
        } else {
            self.blank_lines += 1;
        }
        self.begun = self.bytes.len();
        self.number += 1;
        self.too_long = false;
    }

    /// Takes the complete lines; the incomplete one stays.
    fn take_ended(&mut self) -> Self {
        let mut next = Self {
            number: self.number,
            too_long: self.too_long,
            blank_lines: self.blank_lines,
            ..Self::new(self.longest)
        };
        next.bytes.extend_from_slice(&self.bytes[self.begun..]);
        if !next.bytes.is_empty()
            && let Some(permits) = &mut self.permits
        {
            next.permits = Some(permits.split_bytes(next.bytes.len()));
        }
        std::mem::replace(self, next)
    }

    /// Releases the budget of bytes that are not kept: line ends, blank lines, and lines that are too long.
    fn trim_kept(&mut self) {
        let held = self.permits.as_mut().and_then(|permits| {
            let more = permits.byte_count().checked_sub(self.bytes.len())?;
            Some(permits.split_bytes(more))
        });
        drop(held);
    }

    fn line_bytes(&self, line: &PortionLine) -> Result<&[u8], ApiProblem> {
        match &line.bytes {
            Some(bytes) => Ok(&self.bytes[bytes.clone()]),
            None => Err(body_too_large("the line", self.longest as u64)),
        }
    }
}

/// Position and reason of a body that could not be read to its end.
struct BrokenRead {
    line: u64,
    problem: ApiProblem,
    reader: BodyReader,
}

/// The reading stage of a stream.
struct LineSource {
    reader: BodyReader,
    queue: Arc<ByteBudget>,
    client: ClientId,
    patience: Duration,
    portion: LinePortion,
    /// Arrival time of the current line's first bytes, while the line is incomplete.
    unended_since: Option<Instant>,
}

impl LineSource {
    /// Reads all lines and passes them on in portions; returns why it stopped before the end, if it did.
    async fn read_portions(
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
        let last = self.portion.take_ended();
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
            open.check_open()?;
            let Some(mut piece) = next.flatten() else {
                if self.portion.bytes.len() > self.portion.begun || self.portion.too_long {
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
                    self.portion.trim_kept();
                }
                if self.portion.is_full_portion() {
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
        let bytes = self.portion.bytes.len() - self.portion.begun;
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
                permit.map_err(|_| client_gone())?.send(self.portion.take_ended());
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
        let mut permits = self.queue.try_take_bytes(self.client, bytes);
        if permits.is_none() {
            self.send_portion(portions).await?;
            self.reader.stop_waiting();
            let patience = match self.portion.bytes.is_empty() {
                true => self.patience,
                false => INCOMPLETE_LINE_PATIENCE.min(self.patience),
            };
            let room = timeout(patience, self.queue.take_bytes(self.client, bytes));
            permits = Some(room.await.map_err(|_| queue_full())?);
        }
        match (&mut self.portion.permits, permits) {
            (Some(held), Some(more)) => held.merge_bytes(more),
            (held, more) => *held = more,
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
        let portion = self.portion.take_ended();
        // Time that the service takes does not count against the client.
        self.unended_since = None;
        self.reader.stop_waiting();
        portions.send(portion).await.map_err(|_| client_gone())
    }
}

/// Returns the problem of a client that disconnected or takes no answers. Nobody reads it.
fn client_gone() -> ApiProblem {
    ApiProblem::new(ProblemCode::TooSlow, "the client does not read its answers")
}

/// A portion and how far its documents are.
struct PipelineStep {
    portion: LinePortion,
    documents: PortionState,
}

/// State of the documents of a portion. Those of a query are answered by the first stage.
enum PortionState {
    Prepared(Vec<PreparedDocument>),
    Admitted(AdmittedBatch),
    Answered(Vec<DocumentAnswer>),
}

impl PortionState {
    /// Admits prepared documents.
    fn admit_prepared(self, open: &OpenCollection) -> Self {
        match self {
            Self::Prepared(prepared) => Self::Admitted(open.admit_documents(prepared)),
            later => later,
        }
    }

    /// Returns the answers, once admitted documents are on disk.
    fn into_answers(self, open: &OpenCollection) -> Vec<DocumentAnswer> {
        match self {
            Self::Prepared(prepared) => open.answers_when_durable(open.admit_documents(prepared)),
            Self::Admitted(batch) => open.answers_when_durable(batch),
            Self::Answered(answers) => answers,
        }
    }
}

async fn prepare_portions(
    open: &Arc<OpenCollection>,
    task: StreamTask,
    answers: mpsc::UnboundedSender<HeldAnswer>,
    mut portions: mpsc::Receiver<LinePortion>,
    ready: mpsc::Sender<PipelineStep>,
) {
    while let Some(portion) = portions.recv().await {
        let (open, sender) = (Arc::clone(open), answers.clone());
        let made = in_background(move || {
            let documents = match task {
                StreamTask::Insert => {
                    PortionState::Prepared(map_lines(&portion, |sent, scratch| {
                        open.prepare_document(sent, scratch)
                    }))
                }
                StreamTask::Query => {
                    let answer = |sent: &[u8], scratch: &mut AnalysisScratch| {
                        // Nobody would read the answer.
                        if sender.is_closed() {
                            return Err(client_gone().into());
                        }
                        open.query_document(sent, scratch)
                    };
                    // Costly queries must not keep the shared pool from preparing the documents of others.
                    let answers = match counts_edits(open.similarity_measure()) {
                        true => each_in_order(&portion, answer),
                        false => map_lines(&portion, answer),
                    };
                    answers.iter().for_each(|answer| open.count_query(answer));
                    PortionState::Answered(answers)
                }
            };
            PipelineStep { portion, documents }
        });
        if ready.send(made.await).await.is_err() {
            return;
        }
    }
}

/// Processes every line, on all threads.
fn map_lines<T: Send>(
    portion: &LinePortion,
    work: impl Fn(&[u8], &mut AnalysisScratch) -> Result<T, RefusedDocument> + Sync,
) -> Vec<Result<T, RefusedDocument>> {
    let lines = portion.lines.par_iter();
    lines
        .map_init(AnalysisScratch::default, |scratch, line| {
            work(portion.line_bytes(line)?, scratch)
        })
        .collect()
}

/// Works on every line, on this thread.
fn each_in_order<T>(
    portion: &LinePortion,
    work: impl Fn(&[u8], &mut AnalysisScratch) -> Result<T, RefusedDocument>,
) -> Vec<Result<T, RefusedDocument>> {
    let mut scratch = AnalysisScratch::default();
    let lines = portion.lines.iter();
    lines
        .map(|line| work(portion.line_bytes(line)?, &mut scratch))
        .collect()
}

async fn admit_portions(
    open: &Arc<OpenCollection>,
    mut ready: mpsc::Receiver<PipelineStep>,
    admitted: mpsc::Sender<PipelineStep>,
) {
    while let Some(PipelineStep { portion, documents }) = ready.recv().await {
        let open = Arc::clone(open);
        let documents = in_background(move || documents.admit_prepared(&open)).await;
        let step = PipelineStep { portion, documents };
        if admitted.send(step).await.is_err() {
            return;
        }
    }
}

async fn answer_portions(
    open: &Arc<OpenCollection>,
    mut admitted: mpsc::Receiver<PipelineStep>,
    out: &AnswerSink,
) {
    while let Some(PipelineStep { portion, documents }) = admitted.recv().await {
        let open = Arc::clone(open);
        let text = in_background(move || write_answers(&portion, &documents.into_answers(&open)));
        if out.send_answer(text.await.into()).await.is_err() {
            return;
        }
    }
}

fn write_answers(portion: &LinePortion, answers: &[DocumentAnswer]) -> Vec<u8> {
    let mut text = Vec::with_capacity(answers.len() * 96);
    for (line, answer) in portion.lines.iter().zip(answers) {
        match answer {
            Ok(answer) => write_line(&mut text, &VerdictJson::from(answer)),
            Err(RefusedDocument { id, problem }) => {
                write_refusal(&mut text, id.as_deref(), line.number, problem);
            }
        }
    }
    text
}

fn write_refusal(text: &mut Vec<u8>, id: Option<&str>, line: u64, problem: &ApiProblem) {
    let problem = problem.to_json();
    write_line(text, &RefusedLineJson { id, line, problem });
}

fn write_line(text: &mut Vec<u8>, line: &impl serde::Serialize) {
    serde_json::to_writer(&mut *text, line).expect("strings and numbers serialise");
    text.push(b'\n');
}

/// Destination of the answers of a stream.
struct AnswerSink {
    sender: mpsc::UnboundedSender<HeldAnswer>,
    /// Budget for untaken answers of this request; `held` is that of the whole service.
    room: Arc<ByteBudget>,
    held: Arc<ByteBudget>,
    client: ClientId,
    patience: Duration,
}

impl AnswerSink {
    /// Queues answers for the client once there is budget for them.
    ///
    /// # Errors
    /// If the client has disconnected, or takes no answers for too long.
    async fn send_answer(&self, text: Bytes) -> Result<(), ()> {
        let bytes = text
            .len()
            .min(self.held.total_bytes())
            .min(MAX_UNREAD_ANSWER_BYTES);
        let room = async {
            let own = self.room.take_bytes(self.client, bytes).await;
            let held = self.held.take_bytes(self.client, bytes).await;
            (Some(own), held)
        };
        tokio::select! {
            room = timeout(self.patience, room) => {
                let room = room.map_err(|_| ())?;
                self.sender.send(HeldAnswer::new(text, room)).map_err(|_| ())
            }
            () = self.sender.closed() => Err(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines with their numbers; `None` for a line that is too long.
    type Lines = Vec<(u64, Option<Vec<u8>>)>;

    fn lines_of(portion: &LinePortion) -> Lines {
        let lines = portion.lines.iter();
        lines
            .map(|line| {
                (
                    line.number,
                    portion.line_bytes(line).ok().map(<[u8]>::to_vec),
                )
            })
            .collect()
    }

    /// Returns the same lines, computed in the simplest way.
    fn plainly(body: &[u8], longest: usize) -> Lines {
        let lines = (1..).zip(body.split(|&byte| byte == b'\n'));
        lines
            .filter(|(_, line)| !line.trim_ascii().is_empty())
            .map(|(number, line)| (number, (line.len() <= longest).then(|| line.to_vec())))
            .collect()
    }

    fn cut(body: &[u8], longest: usize, piece: impl Fn(usize) -> usize) -> Lines {
        let (mut portion, mut lines, mut at) = (LinePortion::new(longest), Vec::new(), 0);
        while at < body.len() {
            let end = (at + piece(at).max(1)).min(body.len());
            let mut rest = Bytes::copy_from_slice(&body[at..end]);
            while !rest.is_empty() {
                rest = portion.push_bytes(rest);
                if portion.is_full_portion() {
                    assert!(portion.lines.len() <= PORTION_LINES);
                    lines.extend(lines_of(&portion.take_ended()));
                }
            }
            at = end;
        }
        if portion.bytes.len() > portion.begun || portion.too_long {
            portion.end_current_line();
        }
        lines.extend(lines_of(&portion.take_ended()));
        lines
    }

    #[test]
    fn lines_are_the_same_wherever_pieces_end() {
        let long = "x".repeat(50);
        let pieces = [
            "a",
            "",
            "\r",
            " \t ",
            "bc\r",
            "longest!",
            "too long!",
            &long,
            "é",
            "",
            "end",
        ];
        for ends in ["\n", ""] {
            let body = pieces.join("\n") + ends;
            let expected = plainly(body.as_bytes(), 8);
            assert_eq!(
                expected.iter().filter(|(_, line)| line.is_none()).count(),
                2
            );
            for size in 1..=body.len() {
                assert_eq!(cut(body.as_bytes(), 8, |_| size), expected, "{size}");
            }
            for seed in 0..50 {
                let piece = |at: usize| (at * 31 + seed * 17) % 7;
                assert_eq!(cut(body.as_bytes(), 8, piece), expected, "seed {seed}");
            }
        }
    }

    #[test]
    fn portions_are_bounded() {
        let many: Vec<u8> = (0..3 * PORTION_LINES)
            .flat_map(|n| format!("{n}\n").into_bytes())
            .collect();
        assert_eq!(cut(&many, 100, |_| many.len()), plainly(&many, 100));
        let mut portion = LinePortion::new(PORTION_BYTES);
        let large = [vec![b'x'; PORTION_BYTES], b"\nrest".to_vec()].concat();
        let rest = portion.push_bytes(large.into());
        assert!(portion.is_full_portion());
        assert_eq!(&rest[..], b"rest");
    }

    #[test]
    fn bytes_that_wait_are_given_back() {
        let queue = ByteBudget::new(1000);
        let mut portion = LinePortion::new(100);
        portion.permits = queue.try_take_bytes(ClientId::Key(0), 300);
        portion.push_bytes(Bytes::from_static(b"line\nbegun"));
        let taken = portion.take_ended();
        assert_eq!(queue.free_bytes(), 700);
        drop(taken);
        assert_eq!(queue.free_bytes(), 1000 - "begun".len());
        drop(portion);
        assert_eq!(queue.free_bytes(), 1000);
    }
}
