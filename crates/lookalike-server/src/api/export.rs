//! Exports: all documents of a collection, one per line, while it is used.
//!
//! A portion of lines is made under one short lock, with a permit for long answers, once there is budget for it; then
//! the export waits, without a thread or a lock, until the client has taken earlier portions. An export that fails
//! ends without the end mark of the chunked encoding, so that no client takes it for a complete one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, Version, header};
use lookalike_store::DocumentExport;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::access::request_access::RequestAccess;
use crate::api::problem::{ApiProblem, ProblemCode};
use crate::api::responses::look_up;
use crate::api::router::{ApiRequest, ApiResult, TimedRequest, UnfinishedBody};
use crate::api::stream::{client_gone, queue_full};
use crate::collections::open_collection::OpenCollection;
use crate::limits::answer_permits::{AnswerPermit, AnswerPermits};
use crate::limits::byte_budget::{ByteBudget, ClientId, HeldBytes};
use crate::limits::response_budget::{AnswerStream, HeldAnswer};

/// Bytes for which an export takes budget before it makes a portion.
const PORTION_BYTES: usize = 256 << 10;

/// Budget, in bytes, for portions of one export that its client has not taken.
const UNREAD_BYTES: usize = 4 * PORTION_BYTES;

/// Streams all documents of a collection, as `lookalike store export` writes them.
pub(crate) async fn export_documents(api_request: ApiRequest) -> ApiResult {
    refuse_unframed(api_request.version)?;
    let open = api_request.look_up_collection()?;
    let (sender, answers) = mpsc::unbounded_channel();
    let sink = ExportSink {
        open: Arc::clone(&open),
        sender,
        own_budget: ByteBudget::new(UNREAD_BYTES),
        answer_budget: Arc::clone(&api_request.service.answer_budget),
        permits: Arc::clone(&api_request.service.answer_permits),
        client: api_request.client,
        access: api_request.access.clone(),
        patience: api_request.service.config.limits.body_timeout,
    };
    let begun = look_up(move || {
        DocumentExport::begin(&open.collection).map_err(|error| open.to_problem(error))
    });
    // The first portion comes before the answer, so that a damaged collection is answered with a problem.
    let (export, goes_on) = sink.send_portion(begun.await?).await?;
    let completed = Arc::new(AtomicBool::new(!goes_on));
    let body = AnswerStream::new_whole(answers, Arc::clone(&completed));
    let mut response = Response::new(Body::new(body));
    let kind = HeaderValue::from_static("application/x-ndjson");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    if goes_on {
        response.extensions_mut().insert(UnfinishedBody);
        tokio::spawn(send_rest(sink, export, completed, api_request.timed));
    }
    Ok(response)
}

/// Refuses HTTP/1.0, in which an answer that breaks off looks like a complete one.
fn refuse_unframed(version: Version) -> Result<(), ApiProblem> {
    if version >= Version::HTTP_11 {
        return Ok(());
    }
    let detail = "an export needs HTTP/1.1, because an answer in HTTP/1.0 does not show whether it is complete: \
                  let the client or the proxy use HTTP/1.1";
    Err(ApiProblem::new(ProblemCode::BadRequest, detail))
}

/// Why an export ended early.
enum BrokenExport {
    /// Nobody reads the problem.
    ClientGone,
    Failed(ApiProblem),
}

impl From<ApiProblem> for BrokenExport {
    fn from(problem: ApiProblem) -> Self {
        Self::Failed(problem)
    }
}

impl From<BrokenExport> for ApiProblem {
    fn from(broken: BrokenExport) -> Self {
        match broken {
            BrokenExport::ClientGone => client_gone(),
            BrokenExport::Failed(problem) => problem,
        }
    }
}

/// Sends the rest of an export, and notes whether it is complete.
async fn send_rest(
    sink: ExportSink,
    mut export: DocumentExport,
    completed: Arc<AtomicBool>,
    timed: TimedRequest,
) {
    let broken = loop {
        match sink.send_portion(export).await {
            Ok((rest, true)) => export = rest,
            Ok((_, false)) => {
                completed.store(true, Ordering::Release);
                return timed.count_request(StatusCode::OK.as_u16());
            }
            Err(broken) => break broken,
        }
    };
    match broken {
        BrokenExport::ClientGone => {
            timed.count_disconnected(client_gone().code.http_status().as_u16());
        }
        BrokenExport::Failed(problem) => {
            let collection = &sink.open.name;
            tracing::warn!(collection, error = problem.detail, "an export broke off");
            timed.count_request(problem.code.http_status().as_u16());
        }
    }
    // The response body ends after this, when `sink` is dropped.
}

/// Source and destination of the lines of an export.
struct ExportSink {
    open: Arc<OpenCollection>,
    sender: mpsc::UnboundedSender<HeldAnswer>,
    /// Budget for untaken lines of this export; `held` is that of the whole service.
    own_budget: Arc<ByteBudget>,
    answer_budget: Arc<ByteBudget>,
    permits: Arc<AnswerPermits>,
    client: ClientId,
    access: RequestAccess,
    patience: Duration,
}

/// Permission to make a portion: its budgets, and the permit.
struct PortionPermit {
    own: HeldBytes,
    held: HeldBytes,
    permit: AnswerPermit,
}

impl ExportSink {
    /// Makes the next portion and queues it for the client. Returns `true` if the export goes on.
    ///
    /// # Errors
    /// If the client has disconnected, its access has ended, the collection is being deleted, there is no budget for a long document in
    /// time, or a file is damaged.
    async fn send_portion(
        &self,
        mut export: DocumentExport,
    ) -> Result<(DocumentExport, bool), BrokenExport> {
        let PortionPermit { own, held, permit } = self.wait_for_permit().await?;
        let open = Arc::clone(&self.open);
        let made = permit.run_work(move || {
            let mut lines = Vec::new();
            let goes_on = export.append_lines(&open.collection, &mut lines);
            let goes_on = goes_on.map_err(|error| open.to_problem(error));
            (goes_on.map(|goes_on| (export, goes_on)), lines)
        });
        // The permit is kept until the bytes are counted.
        let ((made, lines), _permit) = made.await;
        let made = made?;
        if !lines.is_empty() {
            let held = self.fit_budget(held, lines.len()).await?;
            let answer = HeldAnswer::new(lines, (Some(own), held));
            let sent = self.sender.send(answer);
            sent.map_err(|_| BrokenExport::ClientGone)?;
        }
        Ok(made)
    }

    async fn wait_for_permit(&self) -> Result<PortionPermit, BrokenExport> {
        let permit = async {
            let bytes = PORTION_BYTES.min(self.answer_budget.total_bytes());
            PortionPermit {
                own: self.own_budget.take_bytes(self.client, PORTION_BYTES).await,
                held: self.answer_budget.take_bytes(self.client, bytes).await,
                permit: self.permits.acquire_permit(self.client).await,
            }
        };
        tokio::select! {
            biased;
            () = self.open.wait_until_closing() => Err(self.open.deleting_problem().into()),
            () = self.sender.closed() => Err(BrokenExport::ClientGone),
            problem = self.access.clone().wait_until_ended() => Err(problem.into()),
            permit = permit => Ok(permit),
        }
    }

    /// Returns budget for as many bytes as a portion has.
    async fn fit_budget(&self, mut held: HeldBytes, bytes: usize) -> Result<HeldBytes, ApiProblem> {
        let bytes = bytes.min(self.answer_budget.total_bytes());
        if let Some(more) = bytes.checked_sub(held.byte_count()) {
            let more = self.answer_budget.take_bytes(self.client, more);
            let more = timeout(self.patience, more).await;
            held.merge_bytes(more.map_err(|_| queue_full())?);
        }
        Ok(held.split_bytes(bytes))
    }
}
