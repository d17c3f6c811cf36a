//! Calls that change something, through the shared log.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Response};
use bytes::Bytes;
use lookalike::text::AnalysisScratch;
use lookalike_log::{EntryKind, LogEntry};

use crate::access::{AccessScope, ApiCaller};
use crate::api::problem::{ApiProblem, ProblemCode};
use crate::api::responses::{QueryParameters, in_background};
use crate::api::router::{ApiCall, ApiRequest, TimedRequest};
use crate::collections::open_collection::{
    AnswerResult, OpenCollection, PreparationResult, RefusedDocument, refuse_document,
};
use crate::limits::byte_budget::HeldBytes;
use crate::replication::costly_turns::CountedTurn;
use crate::replication::proposals::{EntryAnswer, WaitingClient};
use crate::replication::{LineAnswer, PATIENCE, Replica};
use crate::service::ServiceState;

/// Header with the number of the record that a change is in, and of the record that a request waits for.
pub(crate) const POSITION_HEADER: HeaderName = HeaderName::from_static("lookalike-position");

/// Parameter with the sequence number that a request waits for.
pub(crate) const AT_LEAST: &str = "at_least";

/// Longest document, in bytes, that is prepared on the request thread, because waking another thread would take longer.
const MAX_SHORT_BYTES: usize = 16 << 10;

/// Longest check of a document before it is in the log, where texts are compared as sequences. A document that takes
/// longer would keep all others waiting on every replica.
const LONGEST_CHECK: Duration = Duration::from_millis(250);

/// Interval between two looks whether the collection of a bulk request is being deleted.
const CLOSING_INTERVAL: Duration = Duration::from_millis(50);

/// Adds the number of a record to a response.
pub(crate) fn with_position(mut response: Response<Body>, record: u64) -> Response<Body> {
    let headers = response.headers_mut();
    headers.insert(POSITION_HEADER, HeaderValue::from(record));
    response
}

/// The place of the log that a request waits for.
pub(crate) struct AskedPlace {
    replica: Arc<Replica>,
    record: Option<u64>,
    /// Name of a collection, and the sequence number that it must have reached.
    seq: Option<(String, u64)>,
    service: Arc<ServiceState>,
}

impl AskedPlace {
    /// Reads the place that a request waits for; `None` if it waits for nothing, or if there is no shared log, so that
    /// every answer has all that was answered before.
    ///
    /// # Errors
    /// If a number is malformed, or there is no such collection.
    pub(crate) fn from_request(
        call: &ApiCall,
        api_request: &ApiRequest,
    ) -> Result<Option<Self>, ApiProblem> {
        let record = position_header(&api_request.headers)?;
        let query = api_request.query.as_deref();
        let seq = if call.parameters.contains(&AT_LEAST) {
            let parameters = QueryParameters::parse_query(query, call.parameters)?;
            parameters.get_parameter::<u64>(AT_LEAST, "a sequence number")?
        } else {
            None
        };
        let Some(replica) = api_request.service.replica.clone() else {
            return Ok(None);
        };
        let seq = seq.map(|seq| (api_request.target_collection(), seq));
        let is_asked = record.is_some() || seq.is_some();
        Ok(is_asked.then_some(Self {
            replica,
            record,
            seq,
            service: Arc::clone(&api_request.service),
        }))
    }

    /// Waits until the replica has applied the place.
    ///
    /// # Errors
    /// [`ProblemCode::Behind`] if that takes too long.
    pub(crate) async fn wait(self) -> Result<(), ApiProblem> {
        if let Some(record) = self.record {
            self.replica.wait_for_record(record).await?;
        }
        match self.seq {
            Some((collection, seq)) => {
                let open = self.service.collections.look_up_collection(&collection)?;
                self.replica.wait_for_seq(open, seq).await
            }
            None => Ok(()),
        }
    }
}

/// Waits until this replica has applied all that is in the log, if it does not know a name that the caller may use:
/// another replica may have given that name to a collection a moment ago. A client that exceeds its rate makes nobody
/// look; returns `true` if the request was counted towards the rate.
pub(crate) async fn catch_up_with_name(
    timed: &TimedRequest,
    call: &ApiCall,
    caller: &ApiCaller,
    name: Option<&str>,
) -> bool {
    let service = &timed.service;
    let (Some(replica), Some(name)) = (&service.replica, name) else {
        return false;
    };
    let is_permitted = caller
        .check_access(call.role, AccessScope::Collection(&[name]))
        .is_ok();
    if !is_permitted || service.collections.has_name(name) || !timed.take_token(caller) {
        return false;
    }
    replica.catch_up().await;
    true
}

fn position_header(headers: &HeaderMap) -> Result<Option<u64>, ApiProblem> {
    let Some(value) = headers.get(POSITION_HEADER) else {
        return Ok(None);
    };
    let number = value.to_str().ok().and_then(|value| value.parse().ok());
    number.map(Some).ok_or_else(|| {
        let detail = "the header Lookalike-Position is not the number of a record";
        ApiProblem::new(ProblemCode::BadRequest, detail)
    })
}

/// Makes a change through the log; returns its answer and the number of its record.
///
/// # Errors
/// The refusal of the change, or that its outcome is unknown.
pub(crate) async fn change_through_log(
    replica: &Replica,
    kind: EntryKind,
    subject: &str,
    body: Vec<u8>,
) -> Result<(EntryAnswer, u64), ApiProblem> {
    let outcome = replica.propose_change(kind, subject, body).await?;
    outcome.into_change()
}

/// Inserts a document through the log; returns its answer and the number of its record. The budget of the document is
/// held until then, and not until its entry is applied, because the store may be away for long.
pub(crate) async fn insert_through_log(
    replica: &Replica,
    open: Arc<OpenCollection>,
    subject: &str,
    sent: Bytes,
    held_bytes: HeldBytes,
) -> Result<(AnswerResult, u64), ApiProblem> {
    let answer = if is_costly(&open) {
        insert_costly(replica, open, subject, sent).await
    } else {
        insert_prepared(replica, open, subject, sent).await
    };
    drop(held_bytes);
    answer
}

async fn insert_prepared(
    replica: &Replica,
    open: Arc<OpenCollection>,
    subject: &str,
    sent: Bytes,
) -> Result<(AnswerResult, u64), ApiProblem> {
    let prepared = if sent.len() <= MAX_SHORT_BYTES {
        open.prepare_document(&sent, &mut AnalysisScratch::default())
    } else {
        let (open, sent) = (Arc::clone(&open), sent.clone());
        in_background(move || open.prepare_document(&sent, &mut AnalysisScratch::default())).await
    };
    replica
        .insert_document(open, subject, sent, prepared, None)
        .await
}

/// Inserts a document that is costly to compare, in its turn.
async fn insert_costly(
    replica: &Replica,
    open: Arc<OpenCollection>,
    subject: &str,
    sent: Bytes,
) -> Result<(AnswerResult, u64), ApiProblem> {
    let turn = replica.begin_costly_turn(sent.len()).await?;
    let (checked, checked_bytes) = (Arc::clone(&open), sent.clone());
    let (prepared, check_time) = in_background(move || {
        let mut scratch = AnalysisScratch::default();
        let prepared = checked.prepare_document(&checked_bytes, &mut scratch)?;
        let check_time = check_cost(&checked, &checked_bytes, &mut scratch)?;
        Ok((prepared, check_time))
    })
    .await
    .map_or_else(
        |refused: RefusedDocument| (Err(refused), Duration::ZERO),
        |(prepared, check_time)| (Ok(prepared), check_time),
    );
    let turn = replica.count_costly_document(turn, check_time).await?;
    replica
        .insert_document(open, subject, sent, prepared, Some(turn))
        .await
}

/// Returns `true` if the documents of a collection are checked in turns before they are in the log, because they are
/// compared as sequences.
pub(crate) fn is_costly(open: &OpenCollection) -> bool {
    open.similarity_measure().sequence_measure().is_some()
}

/// Checks a document whose text is compared as a sequence, because no limit holds once it is in the log. Returns the
/// time that it took.
///
/// # Errors
/// [`ProblemCode::TooCostly`] if it takes longer than [`LONGEST_CHECK`].
fn check_cost(
    open: &OpenCollection,
    sent: &[u8],
    scratch: &mut AnalysisScratch,
) -> Result<Duration, RefusedDocument> {
    let begun = Instant::now();
    let may_go_on = || begun.elapsed() < LONGEST_CHECK;
    match open.query_document(sent, scratch, &may_go_on) {
        Err(refused) if refused.problem.code == ProblemCode::TooSlow => Err(RefusedDocument {
            problem: too_costly(),
            ..refused
        }),
        _ => Ok(begun.elapsed()),
    }
}

fn too_costly() -> ApiProblem {
    let milliseconds = LONGEST_CHECK.as_millis();
    let detail = format!(
        "the verification of the document takes more than {milliseconds} ms, the limit of a service with a shared log: \
         send shorter texts, or compare by another measure"
    );
    ApiProblem::new(ProblemCode::TooCostly, detail)
}

/// Deletes documents through the log, in their order; returns a result for each, and the number of the last record.
pub(crate) async fn delete_through_log(
    replica: &Replica,
    subject: &str,
    ids: &[String],
) -> Result<(Vec<Result<bool, ApiProblem>>, u64), ApiProblem> {
    let entries = ids.iter().map(|id| LogEntry {
        kind: EntryKind::Delete,
        subject: subject.to_owned(),
        body: id.clone().into_bytes(),
    });
    let outcomes = replica.propose_changes(entries.collect()).await?;
    let last = outcomes.iter().map(|outcome| outcome.record).max();
    let results = outcomes
        .into_iter()
        .map(|outcome| match outcome.into_change() {
            Ok((EntryAnswer::Deleted(was_deleted), _)) => Ok(was_deleted),
            Ok(_) => unreachable!("a deletion has the answer of a deletion"),
            Err(problem) => Err(problem),
        });
    Ok((results.collect(), last.unwrap_or(0)))
}

/// Documents of a portion of a bulk request that are in the log or on their way to it.
pub(crate) struct ProposedPortion {
    /// Kept while the request waits for the answers.
    _client: WaitingClient,
    answers: Receiver<(usize, LineAnswer)>,
    count: usize,
}

impl ProposedPortion {
    /// Proposes the documents of a portion, in their order.
    pub(crate) fn propose<'a>(
        replica: &Replica,
        open: &Arc<OpenCollection>,
        subject: &str,
        documents: impl ExactSizeIterator<Item = (PreparationResult, &'a [u8])>,
    ) -> Self {
        let (sender, answers) = channel();
        let count = documents.len();
        let reply = move |at, answer| drop(sender.send((at, answer)));
        let client = WaitingClient::default();
        replica.propose_documents(&client, (open, subject), documents, PATIENCE, &reply);
        Self {
            _client: client,
            answers,
            count,
        }
    }

    /// Proposes the documents of a portion that are costly to compare, in their order and each in its turn; returns once
    /// the last one is proposed. Once `may_go_on` fails, or a turn does not come in time, all that are left are refused.
    ///
    /// No thread waits for a turn, because the document that has it needs one for its check.
    pub(crate) async fn propose_in_turns(
        replica: &Replica,
        open: &Arc<OpenCollection>,
        subject: &str,
        documents: impl ExactSizeIterator<Item = (PreparationResult, &[u8])>,
        may_go_on: &mut (dyn FnMut() -> Result<(), ApiProblem> + Send),
    ) -> Self {
        let client = WaitingClient::default();
        let (sender, answers) = channel();
        let count = documents.len();
        let mut problem = None;
        for (at, (prepared, sent)) in documents.enumerate() {
            problem = problem.or_else(|| may_go_on().err());
            let turn = match (&prepared, &problem) {
                (Ok(_), None) => check_in_turn(replica, open, sent).await.map(Some),
                (_, Some(problem)) => Err(TurnRefusal::All(problem.clone())),
                (Err(_), None) => Ok(None),
            };
            let (prepared, turn) = match turn {
                Ok(turn) => (prepared, turn),
                Err(TurnRefusal::Document(refused)) => (Err(refused), None),
                Err(TurnRefusal::All(refusal)) => {
                    let refused = refuse_document(prepared, &refusal);
                    problem = Some(refusal);
                    (Err(refused), None)
                }
            };
            let (cost, turn) = turn.map(CountedTurn::into_parts).unzip();
            // Each copy of the reply keeps the cost, and the last one is that of the entry.
            let (cost, sender) = (Arc::new(cost), sender.clone());
            let reply = move |_, answer| {
                let _kept = &cost;
                drop(sender.send((at, answer)));
            };
            replica.wait_for_bulk_room().await;
            let document = std::iter::once((prepared, sent));
            let patience = Duration::ZERO;
            replica.propose_documents(&client, (open, subject), document, patience, &reply);
            drop(turn);
        }
        Self {
            _client: client,
            answers,
            count,
        }
    }

    /// Blocks until all documents are answered, as long as answers arrive and the collection is not being deleted.
    pub(crate) fn wait_for_answers(
        self,
        replica: &Replica,
        open: &OpenCollection,
    ) -> Vec<LineAnswer> {
        let mut answers: Vec<Option<LineAnswer>> = (0..self.count).map(|_| None).collect();
        let (mut missing, mut waited) = (self.count, Duration::ZERO);
        let problem = loop {
            if missing == 0 {
                break None;
            }
            match self.answers.recv_timeout(CLOSING_INTERVAL) {
                Ok((at, answer)) => {
                    missing -= usize::from(answers[at].is_none());
                    answers[at] = Some(answer);
                    waited = Duration::ZERO;
                }
                Err(RecvTimeoutError::Disconnected) => break Some(replica.dropped_problem()),
                Err(RecvTimeoutError::Timeout) => {
                    waited += CLOSING_INTERVAL;
                    if let Err(deleting) = open.check_not_deleting() {
                        break Some(deleting);
                    }
                    if waited >= PATIENCE {
                        break Some(replica.progress.unavailable_problem());
                    }
                }
            }
        };
        let refuse = || problem.clone().unwrap_or_else(|| replica.dropped_problem());
        answers
            .into_iter()
            .map(|answer| answer.unwrap_or_else(|| Err(refuse().into()).into()))
            .collect()
    }
}

/// Why a document has no turn.
enum TurnRefusal {
    /// The document is refused.
    Document(RefusedDocument),
    /// The document and all behind it are refused.
    All(ApiProblem),
}

/// Checks a document in its turn; returns the turn.
async fn check_in_turn<'a>(
    replica: &'a Replica,
    open: &Arc<OpenCollection>,
    sent: &[u8],
) -> Result<CountedTurn<'a>, TurnRefusal> {
    let turn = replica.begin_costly_turn(sent.len()).await;
    let turn = turn.map_err(TurnRefusal::All)?;
    let (open, sent) = (Arc::clone(open), Bytes::copy_from_slice(sent));
    let checked =
        in_background(move || check_cost(&open, &sent, &mut AnalysisScratch::default())).await;
    let check_time = checked.map_err(TurnRefusal::Document)?;
    let counted = replica.count_costly_document(turn, check_time).await;
    counted.map_err(TurnRefusal::All)
}
