//! A stream of documents in the memory of the process: check and insert, with a window.
//!
//! The verdicts are those of a collection of the service, because both use the engine's
//! [`StreamMatcher`]. Nothing is on disk; `lookalike.Stream` saves the kept documents as a table.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lookalike::plan::MatchPlan;
use lookalike::stream::{
    ArrivalTime, DocumentPreparer, DocumentSlot, KeptMatch, SketchedDocument, StreamMatcher,
    StreamTexts, StreamWindow, Timestamp,
};
use lookalike::text::AnalysisScratch;
use pyo3::intern;
use pyo3::prelude::*;

use crate::error::{SettingError, engine_error_to_py};
use crate::recipe::Recipe;
use crate::settings::{RuleSettings, TimeSpan, parse_window};

/// Microseconds of a second.
const MICROSECONDS_PER_SECOND: f64 = 1e6;

thread_local! {
    static SCRATCH: RefCell<AnalysisScratch> = RefCell::default();
}

/// Id of a document.
#[derive(Clone, Debug, FromPyObject, IntoPyObject)]
pub(crate) enum StreamId {
    Number(i64),
    Text(String),
}

/// A kept document.
struct StreamDocument {
    id: StreamId,
    text: Box<str>,
}

/// Kept documents of a partition of the matcher, by their places.
struct KeptPartition {
    number: u64,
    documents: Vec<StreamDocument>,
}

#[derive(Default)]
struct StreamDocuments(VecDeque<KeptPartition>);

impl StreamDocuments {
    fn document_at(&self, slot: DocumentSlot) -> Option<&StreamDocument> {
        let at = self
            .0
            .binary_search_by_key(&slot.partition, |partition| partition.number);
        self.0[at.ok()?].documents.get(slot.index as usize)
    }
}

impl StreamTexts for StreamDocuments {
    fn visit_text(&self, slot: DocumentSlot, visit: &mut dyn FnMut(&str)) -> lookalike::Result<()> {
        let kept = self
            .document_at(slot)
            .expect("the matcher names only documents of sections that are not dropped");
        visit(&kept.text);
        Ok(())
    }
}

struct StreamState {
    matcher: StreamMatcher,
    kept: StreamDocuments,
    next_partition: u64,
    /// Number of documents that were stored, which is the `seq` of the next one.
    next_seq: u64,
}

/// The answer to a document.
///
/// >>> import lookalike as la
/// >>> stream = la.Stream()
/// >>> stream.insert("The ferry leaves at seven.", "a").is_kept
/// True
/// >>> answer = stream.insert("the FERRY leaves at seven!", "b")
/// >>> answer.verdict, answer.of, answer.similarity, answer.seq
/// ('duplicate', 'a', 1.0, 1)
#[pyclass(frozen, get_all, module = "lookalike._engine")]
pub(crate) struct StreamVerdict {
    /// Id of the document.
    id: StreamId,
    /// "kept" or "duplicate".
    verdict: &'static str,
    /// Id of the kept document that this one repeats, if it is a duplicate.
    of: Option<StreamId>,
    /// Similarity to that document.
    similarity: Option<f64>,
    /// The way in which the pair was found.
    method: Option<&'static str>,
    /// Number of the document in the stream, from 0; None for one that was not stored.
    seq: Option<u64>,
    /// True if the document is older than the window. It matched nothing and was not stored.
    late: bool,
}

#[pymethods]
impl StreamVerdict {
    /// True if the document was kept.
    #[getter]
    fn is_kept(&self) -> bool {
        self.verdict == "kept"
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let shown = |id: &StreamId| -> PyResult<String> {
            Ok(id.clone().into_pyobject(py)?.repr()?.to_string())
        };
        let id = shown(&self.id)?;
        Ok(match (&self.of, self.similarity) {
            (Some(of), Some(similarity)) => {
                format!(
                    "<StreamVerdict {id}: duplicate of {}, {similarity}>",
                    shown(of)?
                )
            }
            _ if self.late => format!("<StreamVerdict {id}: kept, late and not stored>"),
            _ => format!("<StreamVerdict {id}: kept>"),
        })
    }
}

/// A kept document with its time in seconds and its seq.
type KeptRow = (StreamId, String, f64, u64);

/// The engine of `lookalike.Stream`.
#[pyclass(frozen, subclass, module = "lookalike._engine")]
pub(crate) struct StreamBase {
    preparer: DocumentPreparer,
    state: Mutex<StreamState>,
}

impl StreamBase {
    fn lock_state(&self) -> MutexGuard<'_, StreamState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn prepare_text(&self, text: &str) -> SketchedDocument {
        SCRATCH.with_borrow_mut(|scratch| self.preparer.prepare_text(text, scratch))
    }

    /// Checks a document and stores it unless `insert` is `false`.
    fn check_document(
        &self,
        text: &str,
        id: Option<StreamId>,
        stated: Option<Timestamp>,
        insert: bool,
    ) -> lookalike::Result<StreamVerdict> {
        let document = self.prepare_text(text);
        let mut state = self.lock_state();
        let id = id.unwrap_or(StreamId::Number(state.next_seq as i64));
        let arrival = state.matcher.resolve_arrival(stated, wall_clock());
        let stores = insert && !arrival.late;
        if stores {
            state.make_room(&arrival)?;
        }
        let found = state.matcher.find_match(&document, &arrival, &state.kept)?;
        let seq = stores.then_some(state.next_seq);
        let verdict = state.make_verdict(&id, found, seq, arrival.late);
        if stores {
            state.store_document(&document, StreamDocument::new(id, text), found, &arrival)?;
        }
        Ok(verdict)
    }
}

impl StreamDocument {
    fn new(id: StreamId, text: &str) -> Self {
        Self {
            id,
            text: text.into(),
        }
    }
}

impl StreamState {
    /// Drops the partitions that have expired, and begins one if it is due.
    fn make_room(&mut self, arrival: &ArrivalTime) -> lookalike::Result<()> {
        if self.matcher.is_partition_due(arrival) {
            let number = self.next_partition;
            self.matcher.begin_partition(number, arrival.clock)?;
            self.next_partition += 1;
            self.kept.0.push_back(KeptPartition {
                number,
                documents: Vec::new(),
            });
        }
        while self.matcher.expired_partition(arrival).is_some() {
            self.matcher.drop_partition();
            self.kept.0.pop_front();
        }
        Ok(())
    }

    fn make_verdict(
        &self,
        id: &StreamId,
        found: Option<KeptMatch>,
        seq: Option<u64>,
        late: bool,
    ) -> StreamVerdict {
        let of = found.and_then(|found| self.kept.document_at(found.slot));
        StreamVerdict {
            id: id.clone(),
            verdict: if found.is_some() { "duplicate" } else { "kept" },
            of: of.map(|kept| kept.id.clone()),
            similarity: found.map(|found| found.similarity.get()),
            method: found.map(|found| found.route.name()),
            seq,
            late,
        }
    }

    fn store_document(
        &mut self,
        document: &SketchedDocument,
        kept: StreamDocument,
        found: Option<KeptMatch>,
        arrival: &ArrivalTime,
    ) -> lookalike::Result<()> {
        let time = arrival.time;
        match found {
            None => self.keep_document(document, kept, time)?,
            Some(found) => {
                self.matcher.note_time(time);
                let refreshes = self
                    .matcher
                    .window()
                    .is_some_and(StreamWindow::is_refreshing);
                if refreshes {
                    self.matcher.refresh_document(found.slot, time);
                }
            }
        }
        self.next_seq += 1;
        Ok(())
    }

    fn keep_document(
        &mut self,
        document: &SketchedDocument,
        kept: StreamDocument,
        time: Timestamp,
    ) -> lookalike::Result<()> {
        self.matcher.keep_document(document, self.next_seq, time)?;
        let newest = self.kept.0.back_mut();
        let newest = newest.expect("a section begins before the first document is stored");
        newest.documents.push(kept);
        Ok(())
    }
}

#[pymethods]
impl StreamBase {
    #[new]
    fn new(
        recipe: &Recipe,
        rule: RuleSettings,
        window: Option<TimeSpan>,
        skew: f64,
        refresh: bool,
    ) -> PyResult<Self> {
        let settings = rule.match_settings()?;
        let plan = MatchPlan::new(&recipe.0, settings).map_err(engine_error_to_py)?;
        let window = window.map(|span| stream_window(span, skew, refresh));
        let window = window.transpose()?;
        let matcher = StreamMatcher::new(&recipe.0, &plan, window).map_err(engine_error_to_py)?;
        Ok(Self {
            preparer: matcher.document_preparer().clone(),
            state: Mutex::new(StreamState {
                matcher,
                kept: StreamDocuments::default(),
                next_partition: 0,
                next_seq: 0,
            }),
        })
    }

    /// Checks a document and inserts it, in one atomic step. Without an id its id is its seq.
    #[pyo3(signature = (text, id=None, time=None))]
    fn insert(
        &self,
        py: Python<'_>,
        text: &str,
        id: Option<StreamId>,
        time: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<StreamVerdict> {
        let stated = time.map(read_time).transpose()?;
        py.detach(|| self.check_document(text, id, stated, true))
            .map_err(engine_error_to_py)
    }

    /// Checks a document without inserting it.
    #[pyo3(signature = (text, id=None, time=None))]
    fn query(
        &self,
        py: Python<'_>,
        text: &str,
        id: Option<StreamId>,
        time: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<StreamVerdict> {
        let stated = time.map(read_time).transpose()?;
        py.detach(|| self.check_document(text, id, stated, false))
            .map_err(engine_error_to_py)
    }

    /// Returns the kept documents in the order of their seq: id, text, time in seconds and seq.
    fn kept_rows(&self) -> Vec<KeptRow> {
        let state = self.lock_state();
        let mut rows = Vec::new();
        for partition in &state.kept.0 {
            for (index, kept) in (0..).zip(&partition.documents) {
                let slot = DocumentSlot {
                    partition: partition.number,
                    index,
                };
                if let Some((order, time)) = state.matcher.kept_document(slot) {
                    let seconds = time.0 as f64 / MICROSECONDS_PER_SECOND;
                    rows.push((kept.id.clone(), kept.text.to_string(), seconds, order));
                }
            }
        }
        rows
    }

    /// Inserts kept documents as they were saved, without a check. `seq` is that of the next document.
    fn restore(&self, py: Python<'_>, rows: Vec<KeptRow>, seq: u64) -> PyResult<()> {
        py.detach(|| {
            let mut state = self.lock_state();
            for (id, text, seconds, order) in rows {
                let document = self.prepare_text(&text);
                let time = Timestamp((seconds * MICROSECONDS_PER_SECOND).round() as i64);
                let arrival = state
                    .matcher
                    .resolve_arrival(Some(time), time.max(wall_clock()));
                state.make_room(&arrival)?;
                state.next_seq = order;
                state.keep_document(&document, StreamDocument::new(id, &text), time)?;
            }
            state.next_seq = seq;
            lookalike::Result::Ok(())
        })
        .map_err(engine_error_to_py)
    }

    /// Number of the next document, which is the number of documents stored so far.
    #[getter]
    fn seq(&self) -> u64 {
        self.lock_state().next_seq
    }

    /// Bytes of memory of the index, without texts.
    #[getter]
    fn index_bytes(&self) -> u64 {
        let parts = self.lock_state().matcher.memory_by_part();
        parts.iter().map(|(_, bytes)| bytes).sum()
    }

    fn __len__(&self) -> usize {
        self.lock_state().matcher.len() as usize
    }
}

fn stream_window(span: TimeSpan, skew: f64, refresh: bool) -> PyResult<StreamWindow> {
    let duration = |seconds: f64| {
        Duration::try_from_secs_f64(seconds)
            .map_err(|error| SettingError::new_err(format!("the time of {seconds} s: {error}")))
    };
    StreamWindow::new(duration(parse_window(span)?)?, duration(skew)?, refresh)
        .map_err(engine_error_to_py)
}

fn wall_clock() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    Timestamp(since.map_or(0, |since| since.as_micros() as i64))
}

/// Reads seconds since 1970, or a datetime; one without a time zone is UTC.
fn read_time(time: &Bound<'_, PyAny>) -> PyResult<Timestamp> {
    let py = time.py();
    let seconds = match time.extract::<f64>() {
        Ok(seconds) => seconds,
        Err(_) => py
            .import(intern!(py, "lookalike._stream"))?
            .getattr(intern!(py, "seconds_of"))?
            .call1((time,))?
            .extract()?,
    };
    if !seconds.is_finite() || seconds.abs() > 1e12 {
        return Err(SettingError::new_err(format!(
            "time is {seconds}: give seconds since 1970, or a datetime"
        )));
    }
    Ok(Timestamp((seconds * MICROSECONDS_PER_SECOND).round() as i64))
}
