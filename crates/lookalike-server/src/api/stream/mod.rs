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

mod line_portion;
mod line_source;

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, header};
use lookalike::text::AnalysisScratch;
use rayon::prelude::*;
use tokio::sync::mpsc;
use tokio::time::timeout;

use self::line_portion::{LinePortion, PortionLine};
use self::line_source::LineSource;

use crate::access::request_access::RequestAccess;
use crate::api::body::BodyReader;
use crate::api::problem::{ApiProblem, ProblemCode};
use crate::api::replicated::{ProposedPortion, is_costly};
use crate::api::responses::in_background;
use crate::api::router::{TimedRequest, UnfinishedBody};
use crate::collections::open_collection::{
    AdmittedTurns, AnswerResult, OpenCollection, PreparationResult, RefusedDocument,
    refuse_document,
};
use crate::json::verdicts::{RefusedLineJson, VerdictJson};
use crate::limits::byte_budget::{ByteBudget, ClientId};
use crate::limits::response_budget::{AnswerStream, HeldAnswer};
use crate::replication::{LineAnswer, Replica};

/// Bytes of answers that a request may hold until its client takes them.
const MAX_UNREAD_ANSWER_BYTES: usize = 64 << 20;

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
    /// Subject of the entries of a shared log.
    pub(crate) subject: String,
    /// The part of the service that follows a shared log; documents are inserted through it.
    pub(crate) replica: Option<Arc<Replica>>,
    pub(crate) task: StreamTask,
    pub(crate) reader: BodyReader,
    pub(crate) timed: TimedRequest,
    /// Budget, in bytes, for documents waiting in the whole service.
    pub(crate) waiting_budget: Arc<ByteBudget>,
    /// Budget, in bytes, for answers that the whole service holds.
    pub(crate) answer_budget: Arc<ByteBudget>,
    pub(crate) client: ClientId,
    pub(crate) access: RequestAccess,
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
        check_room(&self.waiting_budget)?;
        let (sender, answers) = mpsc::unbounded_channel();
        let out = AnswerSink {
            sender,
            own_budget: ByteBudget::new(MAX_UNREAD_ANSWER_BYTES),
            answer_budget: Arc::clone(&self.answer_budget),
            client: self.client,
            patience: self.patience,
        };
        tokio::spawn(self.run_stream(out));
        let mut response = Response::new(Body::new(AnswerStream::new(answers)));
        let kind = HeaderValue::from_static("application/x-ndjson");
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        response.extensions_mut().insert(UnfinishedBody);
        Ok(response)
    }

    async fn run_stream(self, out: AnswerSink) {
        let Self {
            open,
            subject,
            replica,
            task,
            reader,
            timed,
            waiting_budget,
            client,
            access,
            longest,
            patience,
            ..
        } = self;
        let (portions, to_prepare) = mpsc::channel(1);
        let (prepared, to_admit) = mpsc::channel(1);
        let (admitted, to_answer) = mpsc::channel(1);
        let source = LineSource::new(reader, waiting_budget, client, longest, patience);
        let reading = source.read_portions(&open, portions, &out);
        let sender = out.sender.clone();
        let preparing = prepare_portions(&open, task, sender, to_prepare, prepared);
        let sender = out.sender.clone();
        let admitting = admit_portions(
            (&open, &subject),
            replica.as_ref(),
            access,
            sender,
            to_admit,
            admitted,
        );
        let answering = answer_portions(&open, replica.as_ref(), to_answer, &out);
        let (broken, (), (), ()) = tokio::join!(reading, preparing, admitting, answering);
        drop(open);
        if let Some(broken) = &broken {
            let mut text = Vec::new();
            write_refusal(&mut text, None, broken.line, &broken.problem);
            let _ = out.send_answer(text).await;
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
pub(crate) fn check_room(waiting_budget: &ByteBudget) -> Result<(), ApiProblem> {
    match waiting_budget.free_bytes() {
        0 => Err(queue_full()),
        _ => Ok(()),
    }
}

pub(crate) fn queue_full() -> ApiProblem {
    let detail = "the queue of waiting documents is full: send the same again";
    ApiProblem::new(ProblemCode::Busy, detail)
}

/// Returns the problem of a client that disconnected or takes no answers. Nobody reads it.
pub(crate) fn client_gone() -> ApiProblem {
    ApiProblem::new(ProblemCode::TooSlow, "the client does not read its answers")
}

/// A portion and how far its documents are.
struct PipelineStep {
    portion: LinePortion,
    documents: PortionState,
}

/// State of the documents of a portion. Queries are answered by the first stage.
enum PortionState {
    Prepared(Vec<PreparationResult>),
    Admitted(AdmittedTurns),
    /// In the shared log, or on their way to it.
    Proposed(ProposedPortion),
    Answered(Vec<AnswerResult>),
}

impl PortionState {
    /// Proposes prepared documents for the shared log, if the request may go on.
    fn propose_prepared(
        self,
        open: &Arc<OpenCollection>,
        subject: &str,
        replica: &Replica,
        portion: &LinePortion,
        may_go_on: &mut dyn FnMut() -> Result<(), ApiProblem>,
    ) -> Self {
        let prepared = match self {
            Self::Prepared(prepared) => prepared,
            later => return later,
        };
        if let Err(problem) = may_go_on() {
            let refused = prepared.into_iter();
            let refused = refused.map(|document| Err(refuse_document(document, &problem)));
            return Self::Answered(refused.collect());
        }
        let lines = portion.lines.iter();
        // A line that is too long is refused already.
        let sent = lines.map(|line| portion.line_bytes(line).unwrap_or_default());
        let documents = prepared.into_iter().zip(sent);
        Self::Proposed(ProposedPortion::propose(replica, open, subject, documents))
    }

    /// Proposes prepared documents for the shared log, one after another in their turns, as long as the request may go
    /// on.
    async fn propose_in_turns(
        self,
        open: &Arc<OpenCollection>,
        subject: &str,
        replica: &Replica,
        portion: &LinePortion,
        may_go_on: &mut (dyn FnMut() -> Result<(), ApiProblem> + Send),
    ) -> Self {
        let prepared = match self {
            Self::Prepared(prepared) => prepared,
            later => return later,
        };
        let lines = portion.lines.iter();
        let sent = lines.map(|line| portion.line_bytes(line).unwrap_or_default());
        let documents = prepared.into_iter().zip(sent);
        let proposed =
            ProposedPortion::propose_in_turns(replica, open, subject, documents, may_go_on);
        Self::Proposed(proposed.await)
    }

    /// Admits prepared documents, as long as the request may go on.
    fn admit_prepared(
        self,
        open: &OpenCollection,
        may_go_on: &mut dyn FnMut() -> Result<(), ApiProblem>,
    ) -> Self {
        match self {
            Self::Prepared(prepared) => Self::Admitted(open.admit_while(prepared, may_go_on)),
            later => later,
        }
    }

    /// Returns the answers, once admitted documents are on disk.
    fn into_answers(
        self,
        open: &OpenCollection,
        replica: Option<&Arc<Replica>>,
    ) -> Vec<LineAnswer> {
        let answers = match self {
            Self::Prepared(_) => unreachable!("a portion is admitted before it is answered"),
            Self::Proposed(proposed) => {
                let replica = replica.expect("documents are proposed by a replica");
                return proposed.wait_for_answers(replica, open);
            }
            Self::Admitted(turns) => open.wait_for_turns(turns),
            Self::Answered(answers) => answers,
        };
        answers.into_iter().map(LineAnswer::from).collect()
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
                    let prepare = |sent: &[u8], scratch: &mut AnalysisScratch| {
                        open.prepare_document(sent, scratch)
                    };
                    PortionState::Prepared(map_lines(&portion, prepare))
                }
                StreamTask::Query => {
                    let may_go_on = || !sender.is_closed();
                    let answer = |sent: &[u8], scratch: &mut AnalysisScratch| {
                        // Nobody would read the answer.
                        if !may_go_on() {
                            return Err(client_gone().into());
                        }
                        open.query_document(sent, scratch, &may_go_on)
                    };
                    let answers = if is_costly(&open) {
                        each_in_order(&portion, answer)
                    } else {
                        map_in_batches(&portion, answer)
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
    map_some_lines(portion, &portion.lines, &work)
}

/// Largest number of lines in a batch for each thread.
const MOST_LINES_PER_THREAD: usize = 64;

fn map_some_lines<T: Send>(
    portion: &LinePortion,
    lines: &[PortionLine],
    work: &(impl Fn(&[u8], &mut AnalysisScratch) -> Result<T, RefusedDocument> + Sync),
) -> Vec<Result<T, RefusedDocument>> {
    let lines = lines.par_iter();
    lines
        .map_init(AnalysisScratch::default, |scratch, line| {
            work(portion.line_bytes(line)?, scratch)
        })
        .collect()
}

/// Processes every line, on all threads, in batches of a few lines. Documents of others can use the threads between two
/// batches. A batch takes about 5 ms, and has at most [`MOST_LINES_PER_THREAD`] lines for each thread.
fn map_in_batches<T: Send>(
    portion: &LinePortion,
    work: impl Fn(&[u8], &mut AnalysisScratch) -> Result<T, RefusedDocument> + Sync,
) -> Vec<Result<T, RefusedDocument>> {
    const BATCH_TIME: Duration = Duration::from_millis(5);
    let threads = rayon::current_num_threads();
    let (mut rest, mut batch_lines) = (&portion.lines[..], threads);
    let mut done = Vec::with_capacity(rest.len());
    while !rest.is_empty() {
        let (lines, later) = rest.split_at(batch_lines.min(rest.len()));
        let begun = Instant::now();
        done.extend(map_some_lines(portion, lines, &work));
        batch_lines = if begun.elapsed() < BATCH_TIME {
            (2 * batch_lines).min(MOST_LINES_PER_THREAD * threads)
        } else {
            (batch_lines / 2).max(threads)
        };
        rest = later;
    }
    done
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

/// Admits the documents of portions. Before each turn it checks that the request may go on, because the body is not
/// read any further by then, and the documents of a portion can take many turns.
async fn admit_portions(
    collection: (&Arc<OpenCollection>, &str),
    replica: Option<&Arc<Replica>>,
    mut access: RequestAccess,
    answers: mpsc::UnboundedSender<HeldAnswer>,
    mut ready: mpsc::Receiver<PipelineStep>,
    admitted: mpsc::Sender<PipelineStep>,
) {
    while let Some(PipelineStep { portion, documents }) = ready.recv().await {
        let (open, subject) = collection;
        if let Some(replica) = replica
            && is_costly(open)
        {
            let mut may_go_on = || check_request(&mut access, &answers, open);
            let proposing =
                documents.propose_in_turns(open, subject, replica, &portion, &mut may_go_on);
            let documents = proposing.await;
            if admitted
                .send(PipelineStep { portion, documents })
                .await
                .is_err()
            {
                return;
            }
            continue;
        }
        let (open, sender) = (Arc::clone(open), answers.clone());
        let (replica, subject) = (replica.cloned(), subject.to_owned());
        let (step, kept_access) = in_background(move || {
            let mut may_go_on = || check_request(&mut access, &sender, &open);
            let documents = match &replica {
                Some(replica) => {
                    documents.propose_prepared(&open, &subject, replica, &portion, &mut may_go_on)
                }
                None => documents.admit_prepared(&open, &mut may_go_on),
            };
            (PipelineStep { portion, documents }, access)
        })
        .await;
        access = kept_access;
        if admitted.send(step).await.is_err() {
            return;
        }
    }
}

/// Checks that a request may insert further documents.
///
/// # Errors
/// If the access of its caller has ended, its client is gone, or the collection is being deleted.
fn check_request(
    access: &mut RequestAccess,
    answers: &mpsc::UnboundedSender<HeldAnswer>,
    open: &OpenCollection,
) -> Result<(), ApiProblem> {
    access.check_now()?;
    if answers.is_closed() {
        return Err(client_gone());
    }
    open.check_not_deleting()
}

async fn answer_portions(
    open: &Arc<OpenCollection>,
    replica: Option<&Arc<Replica>>,
    mut admitted: mpsc::Receiver<PipelineStep>,
    out: &AnswerSink,
) {
    while let Some(PipelineStep { portion, documents }) = admitted.recv().await {
        let (open, replica) = (Arc::clone(open), replica.cloned());
        let text = in_background(move || {
            write_answers(&portion, &documents.into_answers(&open, replica.as_ref()))
        });
        if out.send_answer(text.await).await.is_err() {
            return;
        }
    }
}

fn write_answers(portion: &LinePortion, answers: &[LineAnswer]) -> Vec<u8> {
    let mut text = Vec::with_capacity(answers.len() * 96);
    for (line, answered) in portion.lines.iter().zip(answers) {
        match &answered.answer {
            Ok(answer) => {
                let verdict = VerdictJson::from(answer).with_record(answered.record);
                write_line(&mut text, &verdict);
            }
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
    /// Budget for untaken answers of this request.
    own_budget: Arc<ByteBudget>,
    /// Budget for untaken answers of the whole service.
    answer_budget: Arc<ByteBudget>,
    client: ClientId,
    patience: Duration,
}

impl AnswerSink {
    /// Queues answers for the client once there is budget for them.
    ///
    /// # Errors
    /// If the client has disconnected, or takes no answers for too long.
    async fn send_answer(&self, text: Vec<u8>) -> Result<(), ()> {
        let bytes = text
            .len()
            .min(self.answer_budget.total_bytes())
            .min(MAX_UNREAD_ANSWER_BYTES);
        let taking = async {
            let own_bytes = self.own_budget.take_bytes(self.client, bytes).await;
            let answer_bytes = self.answer_budget.take_bytes(self.client, bytes).await;
            (Some(own_bytes), answer_bytes)
        };
        tokio::select! {
            taken = timeout(self.patience, taking) => {
                let held_bytes = taken.map_err(|_| ())?;
                self.sender.send(HeldAnswer::new(text, held_bytes)).map_err(|_| ())
            }
            () = self.sender.closed() => Err(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::watch;

    use super::*;
    use crate::access::tests::{LONG, OTHER, caller, keys};
    use crate::access::{AccessRole, AccessScope};
    use crate::collections::costly_collection::{CostlyCollection, permuted_text};

    const DOCUMENTS: usize = 12;

    /// Turns before a request ends.
    const TURNS: usize = 20;

    /// Inserts a portion of documents that take several turns each, and lets `end_request` run in the turn of the number
    /// [`TURNS`]. Returns the answers.
    async fn insert_until(
        access: RequestAccess,
        end_request: impl FnOnce(&OpenCollection, mpsc::UnboundedReceiver<HeldAnswer>) + Send + 'static,
    ) -> Vec<AnswerResult> {
        let costly = CostlyCollection::new();
        let open = Arc::clone(&costly.open);
        let mut portion = LinePortion::new(1 << 20);
        for at in 0..DOCUMENTS {
            let line =
                serde_json::json!({ "id": at.to_string(), "text": permuted_text(at as u64) });
            portion.push_bytes(format!("{line}\n").into());
        }
        let prepared = map_lines(&portion, |sent, scratch| {
            open.prepare_document(sent, scratch)
        });
        let (sender, answers) = mpsc::unbounded_channel();
        let (collection, mut left) = (Arc::clone(&open), Some((end_request, answers)));
        costly.on_turn(move |turn| {
            if let Some((end_request, answers)) = left.take_if(|_| turn == TURNS) {
                end_request(&collection, answers);
            }
        });
        let (prepared_sender, to_admit) = mpsc::channel(1);
        let (admitted, mut to_answer) = mpsc::channel(1);
        let documents = PortionState::Prepared(prepared);
        let step = PipelineStep { portion, documents };
        assert!(prepared_sender.send(step).await.is_ok());
        drop(prepared_sender);
        admit_portions((&open, "a"), None, access, sender, to_admit, admitted).await;
        let step = to_answer.recv().await.unwrap();
        let answers = in_background(move || step.documents.into_answers(&open, None)).await;
        answers
            .into_iter()
            .map(|answered| answered.answer)
            .collect()
    }

    fn new_access() -> (RequestAccess, watch::Sender<Arc<crate::access::AccessKeys>>) {
        let sender = watch::Sender::new(Arc::new(keys(&[("write", LONG, "")])));
        let known = caller(&sender.borrow(), LONG);
        let scope = AccessScope::Collection(&["a"]);
        let access = RequestAccess::new(known, AccessRole::Write, scope, sender.subscribe());
        (access, sender)
    }

    /// Checks that the first documents are inserted and all others refused, each with its id.
    fn check_end(answers: &[AnswerResult], code: ProblemCode) {
        assert_eq!(answers.len(), DOCUMENTS);
        let inserted = answers.iter().take_while(|answer| answer.is_ok()).count();
        assert!((1..DOCUMENTS).contains(&inserted), "{inserted}");
        for (at, answer) in answers.iter().enumerate().skip(inserted) {
            let refused = answer.as_ref().err().unwrap();
            assert_eq!(refused.problem.code, code);
            assert_eq!(refused.id, Some(at.to_string()));
        }
    }

    #[tokio::test]
    async fn revoked_key_inserts_nothing_after_the_current_turn() {
        let (access, keys_in_use) = new_access();
        let answers = insert_until(access, move |_, answers| {
            std::mem::forget(answers);
            keys_in_use.send_replace(Arc::new(keys(&[("write", OTHER, "")])));
        });
        check_end(&answers.await, ProblemCode::Unauthenticated);
    }

    #[tokio::test]
    async fn insertion_ends_with_its_client_and_its_collection() {
        let (access, _keys_in_use) = new_access();
        let answers = insert_until(access.clone(), |_, answers| drop(answers)).await;
        check_end(&answers, ProblemCode::TooSlow);
        let answers = insert_until(access, |open, answers| {
            // The client still waits.
            std::mem::forget(answers);
            open.begin_closing();
        });
        check_end(&answers.await, ProblemCode::Deleting);
    }

    /// Every line of a portion is answered once and in its order, whether lines take little or much.
    #[test]
    fn portion_in_batches_is_answered_as_a_whole() {
        for (lines, cost) in [
            (0, Duration::ZERO),
            (3000, Duration::ZERO),
            (40, Duration::from_millis(6)),
        ] {
            let mut portion = LinePortion::new(1 << 20);
            for at in 0..lines {
                portion.push_bytes(format!("{at}\n").into());
            }
            let answers = map_in_batches(&portion, |sent, _| {
                std::thread::sleep(cost);
                Ok(String::from_utf8(sent.to_vec()).unwrap())
            });
            let answers = answers.into_iter().map(|answer| answer.ok().unwrap());
            let sent = (0..lines).map(|at| at.to_string());
            assert!(answers.eq(sent), "{lines}");
        }
    }
}
