//! A stream of documents in the memory of the process: check and insert, with a window.
//!
//! The verdicts are those of a collection of the service, because both use the engine's
//! [`DocumentStream`](lookalike::stream::DocumentStream) or the matcher beneath it. Nothing is on disk until it is saved.

use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lookalike::plan::MatchPlan;
use lookalike::stream::{
    DocumentPreparer, DocumentStream, DocumentVerdict, KeptDocument, SketchedDocument, Timestamp,
};
use lookalike::text::AnalysisScratch;
use lookalike_io::stream_file::{SavedDocument, read_stream, write_stream};
use lookalike_options::stream_options::StreamOptions;
use pyo3::intern;
use pyo3::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{
    InputError, SettingError, engine_error_to_py, option_error_to_py, run_error_to_py,
};
use crate::recipe::Recipe;
use crate::settings::{RuleSettings, TimeSpan, parse_window};

/// Microseconds of a second.
const MICROSECONDS_PER_SECOND: f64 = 1e6;

thread_local! {
    static SCRATCH: RefCell<AnalysisScratch> = RefCell::default();
}

/// Id of a document.
#[derive(Clone, Debug, FromPyObject, IntoPyObject, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum StreamId {
    Number(i64),
    Text(String),
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
    stream: Mutex<DocumentStream<StreamId>>,
}

impl StreamBase {
    fn lock_stream(&self) -> MutexGuard<'_, DocumentStream<StreamId>> {
        self.stream.lock().unwrap_or_else(PoisonError::into_inner)
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
        let mut stream = self.lock_stream();
        let id = id.unwrap_or(StreamId::Number(stream.next_seq() as i64));
        let verdict = if insert {
            stream.insert_document(&document, id.clone(), text, stated, wall_clock())?
        } else {
            stream.check_document(&document, stated, wall_clock())?
        };
        Ok(StreamVerdict::new(id, verdict))
    }
}

impl StreamVerdict {
    fn new(id: StreamId, verdict: DocumentVerdict<StreamId>) -> Self {
        let DocumentVerdict {
            duplicate,
            seq,
            late,
        } = verdict;
        let found = duplicate.as_ref();
        Self {
            id,
            verdict: found.map_or("kept", |_| "duplicate"),
            similarity: found.map(|found| found.similarity.get()),
            method: found.map(|found| found.route.name()),
            of: duplicate.map(|found| found.id),
            seq,
            late,
        }
    }
}

fn to_row(kept: KeptDocument<StreamId>) -> KeptRow {
    let seconds = kept.time.0 as f64 / MICROSECONDS_PER_SECOND;
    (kept.id, kept.text.into(), seconds, kept.seq)
}

fn from_row(row: KeptRow) -> KeptDocument<StreamId> {
    let (id, text, seconds, seq) = row;
    let time = Timestamp((seconds * MICROSECONDS_PER_SECOND).round() as i64);
    let text = text.into();
    KeptDocument {
        id,
        text,
        time,
        seq,
    }
}

/// Reads a stream that `save` wrote: its settings as JSON, its kept documents, and the seq of the next one.
#[pyfunction]
pub(crate) fn read_saved_stream(
    py: Python<'_>,
    path: PathBuf,
) -> PyResult<(String, Vec<KeptRow>, u64)> {
    let saved = py.detach(|| read_stream(&path)).map_err(run_error_to_py)?;
    let rows = saved.documents.into_iter().map(|saved| {
        let id: StreamId = serde_json::from_str(&saved.id).map_err(|error| {
            InputError::new_err(format!(
                "{} is not a stream that was saved: the id {}: {error}",
                path.display(),
                saved.id
            ))
        })?;
        Ok(to_row(KeptDocument {
            id,
            text: saved.text,
            time: saved.time,
            seq: saved.seq,
        }))
    });
    let rows = rows.collect::<PyResult<_>>()?;
    Ok((
        Value::Object(saved.settings).to_string(),
        rows,
        saved.next_seq,
    ))
}

#[pymethods]
impl StreamBase {
    #[new]
    fn new(
        recipe: &Recipe,
        rule: RuleSettings,
        window: Option<TimeSpan>,
        window_documents: Option<u64>,
        skew: f64,
        refresh: bool,
    ) -> PyResult<Self> {
        let settings = rule.match_settings()?;
        let plan = MatchPlan::new(&recipe.0, settings).map_err(engine_error_to_py)?;
        let reach = StreamOptions {
            window: window
                .map(parse_window)
                .transpose()?
                .map(to_duration)
                .transpose()?,
            window_documents,
            skew: to_duration(skew)?,
            refresh,
        };
        let reach = reach.to_reach().map_err(option_error_to_py)?;
        let stream = DocumentStream::new(&recipe.0, &plan, reach).map_err(engine_error_to_py)?;
        Ok(Self {
            preparer: stream.document_preparer().clone(),
            stream: Mutex::new(stream),
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
        self.lock_stream().kept_documents().map(to_row).collect()
    }

    /// Inserts kept documents as they were saved, without a check. `seq` is that of the next document.
    fn restore(&self, py: Python<'_>, rows: Vec<KeptRow>, seq: u64) -> PyResult<()> {
        let rows = rows.into_iter().map(from_row);
        py.detach(|| {
            self.lock_stream()
                .restore_documents(rows, seq, wall_clock())
        })
        .map_err(engine_error_to_py)
    }

    /// Writes the kept documents with settings as JSON.
    fn write_file(&self, py: Python<'_>, path: PathBuf, settings: &str) -> PyResult<()> {
        let settings = serde_json::from_str(settings).expect("lookalike.Stream gives an object");
        py.detach(|| {
            let stream = self.lock_stream();
            let rows = stream.kept_documents().map(|kept| SavedDocument {
                id: serde_json::to_string(&kept.id).expect("ids serialise"),
                text: kept.text,
                time: kept.time,
                seq: kept.seq,
            });
            write_stream(&path, settings, stream.next_seq(), rows)
        })
        .map_err(run_error_to_py)
    }

    /// Number of the next document, which is the number of documents stored so far.
    #[getter]
    fn seq(&self) -> u64 {
        self.lock_stream().next_seq()
    }

    /// Bytes of memory of the index, without texts.
    #[getter]
    fn index_bytes(&self) -> u64 {
        self.lock_stream().index_bytes()
    }

    fn __len__(&self) -> usize {
        self.lock_stream().len() as usize
    }
}

fn to_duration(seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds)
        .map_err(|error| SettingError::new_err(format!("the time of {seconds} s: {error}")))
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
