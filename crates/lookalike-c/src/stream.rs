//! The stream: check and insert, with ids of bytes in UTF-8.

use std::ffi::{CStr, c_char};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};
use std::time::{SystemTime, UNIX_EPOCH};
use std::{ptr, slice};

use lookalike::plan::MatchPlan;
use lookalike::similarity::Route;
use lookalike::stream::{
    DocumentPreparer, DocumentStream, DocumentVerdict, KeptDocument, Timestamp,
};
use lookalike_io::stream_file::{read_stream, write_stream};
use serde_json::{Map, Value};

use crate::call::{CallError, CallResult, CallStatus, run_call};
use crate::pointers::{
    array, check_length, check_place, free_boxed, reference, text, write_answer,
};
use crate::settings::CallSettings;
use crate::sketch::with_scratch;

/// The time of a document that states none.
const NO_TIME: i64 = i64::MIN;

/// Largest time in microseconds, before and after 1970.
const LARGEST_TIME: i64 = 1_000_000_000_000_000_000;

/// A stream behind a lock, under which documents are inserted in turn. They are prepared outside of it.
pub(crate) struct LockedStream {
    preparer: DocumentPreparer,
    stream: Mutex<DocumentStream<Box<str>>>,
    /// The settings as they are saved.
    settings: Map<String, Value>,
}

/// A document as a caller gives it.
#[repr(C)]
pub(crate) struct GivenDocument {
    text: *const c_char,
    text_length: usize,
    id: *const c_char,
    id_length: usize,
    time: i64,
}

/// The answer to a document.
#[repr(C)]
pub(crate) struct StreamVerdict {
    is_duplicate: bool,
    is_late: bool,
    has_seq: bool,
    seq: u64,
    similarity: f64,
    method: *const c_char,
    of: *mut c_char,
    of_length: usize,
}

/// A document after its checks.
struct CheckedDocument<'a> {
    text: &'a str,
    id: Option<&'a str>,
    time: Option<Timestamp>,
}

impl<'a> CheckedDocument<'a> {
    unsafe fn from_given(given: &'a GivenDocument) -> CallResult<Self> {
        let time = given.time;
        if time != NO_TIME && !(-LARGEST_TIME..=LARGEST_TIME).contains(&time) {
            return Err(CallError::argument(format!(
                "time is {time}: give microseconds since 1970, at most {LARGEST_TIME}, or LOOKALIKE_NOW"
            )));
        }
        // SAFETY: the contract of the header.
        unsafe {
            Ok(Self {
                text: text("text", given.text, given.text_length)?,
                id: if given.id.is_null() {
                    None
                } else {
                    Some(text("id", given.id, given.id_length)?)
                },
                time: (time != NO_TIME).then_some(Timestamp(time)),
            })
        }
    }
}

impl StreamVerdict {
    const EMPTY: Self = Self {
        is_duplicate: false,
        is_late: false,
        has_seq: false,
        seq: 0,
        similarity: 0.0,
        method: ptr::null(),
        of: ptr::null_mut(),
        of_length: 0,
    };

    fn new(verdict: DocumentVerdict<Box<str>>) -> Self {
        let answer = Self {
            is_late: verdict.late,
            has_seq: verdict.seq.is_some(),
            seq: verdict.seq.unwrap_or_default(),
            ..Self::EMPTY
        };
        let Some(found) = verdict.duplicate else {
            return answer;
        };
        // With a NUL behind it, so that an id without one is a C string.
        let of_length = found.id.len();
        let of = [found.id.as_bytes(), &[0]].concat().into_boxed_slice();
        Self {
            is_duplicate: true,
            similarity: found.similarity.get(),
            method: method_name(found.route).as_ptr(),
            of: Box::into_raw(of).cast(),
            of_length,
            ..answer
        }
    }

    /// Frees the id.
    unsafe fn free_id(&mut self) {
        if !self.of.is_null() {
            let bytes = ptr::slice_from_raw_parts_mut(self.of.cast::<u8>(), self.of_length + 1);
            // SAFETY: the bytes come from `new`, and by the contract of the header nobody changed pointer or length.
            drop(unsafe { Box::from_raw(bytes) });
        }
        *self = Self::EMPTY;
    }
}

/// Returns the name of a route, which lives as long as the program.
pub(crate) fn method_name(route: Route) -> &'static CStr {
    match route {
        Route::Exact => c"exact",
        Route::Join => c"join",
        Route::MinHash => c"minhash",
        Route::SimHash => c"simhash",
        Route::Sentences => c"sentences",
        Route::BottomK => c"bottomk",
        Route::Decision => c"decision",
    }
}

impl LockedStream {
    fn new(settings: &CallSettings) -> CallResult<Self> {
        let plan = MatchPlan::new(&settings.recipe, settings.matching)?;
        let stream = DocumentStream::new(&settings.recipe, &plan, settings.reach)?;
        Ok(Self {
            preparer: stream.document_preparer().clone(),
            stream: Mutex::new(stream),
            settings: settings.saved.clone(),
        })
    }

    fn lock(&self) -> CallResult<MutexGuard<'_, DocumentStream<Box<str>>>> {
        self.stream.lock().map_err(|_| {
            let message = "a defect of the library stopped an earlier call on this stream: free it, and begin another";
            CallError::new(CallStatus::Internal, message)
        })
    }

    fn insert(&self, document: &CheckedDocument<'_>) -> CallResult<StreamVerdict> {
        let CheckedDocument { text, id, time } = *document;
        let prepared = with_scratch(|scratch| self.preparer.prepare_text(text, scratch));
        let mut stream = self.lock()?;
        let id = id.map_or_else(|| stream.next_seq().to_string().into(), Box::from);
        let verdict = stream.insert_document(&prepared, id, text, time, wall_clock())?;
        drop(stream);
        Ok(StreamVerdict::new(verdict))
    }

    fn query(&self, document: &CheckedDocument<'_>) -> CallResult<StreamVerdict> {
        let prepared = with_scratch(|scratch| self.preparer.prepare_text(document.text, scratch));
        let verdict = self
            .lock()?
            .check_document(&prepared, document.time, wall_clock())?;
        Ok(StreamVerdict::new(verdict))
    }

    fn save(&self, path: &Path) -> CallResult {
        let stream = self.lock()?;
        let documents = stream.kept_documents().map(|kept| KeptDocument {
            id: Value::from(&*kept.id).to_string(),
            text: kept.text,
            time: kept.time,
            seq: kept.seq,
        });
        Ok(write_stream(
            path,
            self.settings.clone(),
            stream.next_seq(),
            documents,
        )?)
    }

    fn open(path: &Path) -> CallResult<Self> {
        let saved = read_stream(path)?;
        let stream = Self::new(&CallSettings::from_saved(saved.settings)?)?;
        let documents = saved.documents.into_iter().map(|kept| KeptDocument {
            id: read_id(&kept.id),
            text: kept.text,
            time: kept.time,
            seq: kept.seq,
        });
        stream
            .lock()?
            .restore_documents(documents, saved.next_seq, wall_clock())?;
        Ok(stream)
    }
}

/// Returns the id of a saved document. Python also saves whole numbers, which become their digits.
fn read_id(json: &str) -> Box<str> {
    serde_json::from_str::<String>(json).map_or_else(|_| json.into(), Into::into)
}

fn wall_clock() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    Timestamp(since.map_or(0, |since| since.as_micros() as i64))
}

unsafe fn path(pointer: *const c_char, length: usize) -> CallResult<PathBuf> {
    // SAFETY: the contract of the header.
    unsafe { text("path", pointer, length) }.map(PathBuf::from)
}

/// Creates an empty stream.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn lookalike_stream_new(
    settings: *const CallSettings,
    stream: *mut *mut LockedStream,
    error: *mut *mut CallError,
) -> CallStatus {
    // SAFETY: the contract of the header.
    unsafe {
        run_call(error, || {
            write_answer("stream", stream, ptr::null_mut())?;
            let made = LockedStream::new(reference("settings", settings)?)?;
            write_answer("stream", stream, Box::into_raw(Box::new(made)))
        })
    }
}

/// Reads a stream from a file.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn lookalike_stream_open(
    file: *const c_char,
    length: usize,
    stream: *mut *mut LockedStream,
    error: *mut *mut CallError,
) -> CallStatus {
    // SAFETY: the contract of the header.
    unsafe {
        run_call(error, || {
            write_answer("stream", stream, ptr::null_mut())?;
            let made = LockedStream::open(&path(file, length)?)?;
            write_answer("stream", stream, Box::into_raw(Box::new(made)))
        })
    }
}

/// Writes a stream to a file.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn lookalike_stream_save(
    stream: *const LockedStream,
    file: *const c_char,
    length: usize,
    error: *mut *mut CallError,
) -> CallStatus {
    // SAFETY: the contract of the header.
    unsafe {
        run_call(error, || {
            reference("stream", stream)?.save(&path(file, length)?)
        })
    }
}

/// Frees a stream and sets the pointer to null.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn lookalike_stream_free(stream: *mut *mut LockedStream) {
    // SAFETY: the contract of the header.
    unsafe { free_boxed(stream) }
}

/// Checks a document and inserts it.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn lookalike_stream_insert(
    stream: *const LockedStream,
    document: *const GivenDocument,
    verdict: *mut StreamVerdict,
    error: *mut *mut CallError,
) -> CallStatus {
    // SAFETY: the contract of the header.
    unsafe {
        run_call(error, || {
            write_answer("verdict", verdict, StreamVerdict::EMPTY)?;
            let stream = reference("stream", stream)?;
            let document = CheckedDocument::from_given(reference("document", document)?)?;
            write_answer("verdict", verdict, stream.insert(&document)?)
        })
    }
}

/// Checks a document without inserting it.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn lookalike_stream_query(
    stream: *const LockedStream,
    document: *const GivenDocument,
    verdict: *mut StreamVerdict,
    error: *mut *mut CallError,
) -> CallStatus {
    // SAFETY: the contract of the header.
    unsafe {
        run_call(error, || {
            write_answer("verdict", verdict, StreamVerdict::EMPTY)?;
            let stream = reference("stream", stream)?;
            let document = CheckedDocument::from_given(reference("document", document)?)?;
            write_answer("verdict", verdict, stream.query(&document)?)
        })
    }
}

/// Checks documents and inserts them in order.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn lookalike_stream_insert_all(
    stream: *const LockedStream,
    documents: *const GivenDocument,
    count: usize,
    verdicts: *mut StreamVerdict,
    inserted: *mut usize,
    error: *mut *mut CallError,
) -> CallStatus {
    // SAFETY: the contract of the header. As many verdicts are written as there are documents.
    unsafe {
        run_call(error, || {
            write_answer("inserted", inserted, 0)?;
            check_length::<StreamVerdict>("verdicts", count)?;
            check_place("verdicts", verdicts)?;
            for at in 0..count {
                verdicts.add(at).write(StreamVerdict::EMPTY);
            }
            let stream = reference("stream", stream)?;
            let checked = array("documents", documents, count)?
                .iter()
                .enumerate()
                .map(|(at, given)| {
                    CheckedDocument::from_given(given)
                        .map_err(|error| error.with_place(&format!("document {at}")))
                });
            for (at, document) in checked.collect::<CallResult<Vec<_>>>()?.iter().enumerate() {
                verdicts.add(at).write(stream.insert(document)?);
                inserted.write(at + 1);
            }
            Ok(())
        })
    }
}

/// Frees the ids in verdicts.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn lookalike_verdicts_free(
    verdicts: *mut StreamVerdict,
    count: usize,
) {
    if verdicts.is_null() {
        return;
    }
    // SAFETY: the contract of the header: so many verdicts were written by this library.
    for verdict in unsafe { slice::from_raw_parts_mut(verdicts, count) } {
        // SAFETY: as above.
        unsafe { verdict.free_id() };
    }
}

/// Removes the kept documents with an id.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn lookalike_stream_remove(
    stream: *const LockedStream,
    id: *const c_char,
    length: usize,
    removed: *mut u64,
    error: *mut *mut CallError,
) -> CallStatus {
    // SAFETY: the contract of the header.
    unsafe {
        run_call(error, || {
            check_place("removed", removed)?;
            let (stream, id) = (reference("stream", stream)?, text("id", id, length)?);
            let count = stream.lock()?.remove_documents(|kept| **kept == *id);
            write_answer("removed", removed, count)
        })
    }
}

/// Counts the kept documents, and all that were stored.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn lookalike_stream_count(
    stream: *const LockedStream,
    kept: *mut u64,
    stored: *mut u64,
    error: *mut *mut CallError,
) -> CallStatus {
    // SAFETY: the contract of the header.
    unsafe {
        run_call(error, || {
            let stream = reference("stream", stream)?.lock()?;
            write_answer("kept", kept, stream.len())?;
            write_answer("stored", stored, stream.next_seq())
        })
    }
}
