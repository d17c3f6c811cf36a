//! The border of a call: a status for C, an error object with a message, and no panic.

use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use lookalike_io::ErrorKind as RunErrorKind;
use lookalike_options::{OptionError, OptionErrorKind};

use crate::pointers::free_boxed;

/// The outcome of a call, as numbers that stay.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallStatus {
    /// Done.
    Ok = 0,
    /// A pointer is null, a length is too large, a text is not UTF-8, a time is beyond its limit.
    BadArgument = 1,
    /// A setting or a recipe is not valid.
    BadSetting = 2,
    /// A file cannot be read or written, or has the wrong content.
    BadFile = 3,
    /// More data than the engine can hold or is allowed to compare.
    Limit = 4,
    /// A defect of the library.
    Internal = 5,
}

/// A failed call: its status, and a sentence that names the value, the limit and the place.
#[derive(Debug)]
pub(crate) struct CallError {
    status: CallStatus,
    message: CString,
}

pub(crate) type CallResult<T = ()> = Result<T, CallError>;

impl CallError {
    pub(crate) fn new(status: CallStatus, message: impl Into<String>) -> Self {
        let message = message.into().replace('\0', "\u{fffd}");
        Self {
            status,
            message: CString::new(message).expect("every NUL is replaced"),
        }
    }

    pub(crate) fn argument(message: impl Into<String>) -> Self {
        Self::new(CallStatus::BadArgument, message)
    }

    /// Names the place of the failure before its message.
    pub(crate) fn with_place(self, place: &str) -> Self {
        Self::new(
            self.status,
            format!("{place}: {}", self.message.to_string_lossy()),
        )
    }

    pub(crate) fn setting(message: impl Into<String>) -> Self {
        Self::new(CallStatus::BadSetting, message)
    }
}

impl From<lookalike::Error> for CallError {
    fn from(error: lookalike::Error) -> Self {
        Self::new(status_of_kind(error.kind()), error.to_string())
    }
}

impl From<OptionError> for CallError {
    fn from(error: OptionError) -> Self {
        let status = match error.kind() {
            OptionErrorKind::UnreadableFile => CallStatus::BadFile,
            _ => CallStatus::BadSetting,
        };
        Self::new(status, error.to_string())
    }
}

impl From<lookalike_io::Error> for CallError {
    fn from(error: lookalike_io::Error) -> Self {
        let cause = std::error::Error::source(&error);
        let engine = cause.and_then(|cause| cause.downcast_ref::<lookalike::Error>());
        let status = match (error.kind(), engine) {
            (RunErrorKind::Engine, Some(engine)) => status_of_kind(engine.kind()),
            (RunErrorKind::Usage | RunErrorKind::Engine, _) => CallStatus::BadSetting,
            (RunErrorKind::Limit, _) => CallStatus::Limit,
            _ => CallStatus::BadFile,
        };
        Self::new(status, error.to_string())
    }
}

fn status_of_kind(kind: lookalike::ErrorKind) -> CallStatus {
    use lookalike::ErrorKind as Kind;
    match kind {
        Kind::File | Kind::Text => CallStatus::BadFile,
        Kind::Limit | Kind::TooCostly => CallStatus::Limit,
        _ => CallStatus::BadSetting,
    }
}

/// Runs a call, and returns its status. A failure is stored at `error` unless that is null; a panic is one.
pub(crate) unsafe fn run_call(
    error: *mut *mut CallError,
    call: impl FnOnce() -> CallResult,
) -> CallStatus {
    let outcome = catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|_| {
        let message = "the library has a defect and stopped this call: free the stream or settings that it used";
        Err(CallError::new(CallStatus::Internal, message))
    });
    let status = match &outcome {
        Ok(()) => CallStatus::Ok,
        Err(failure) => failure.status,
    };
    if !error.is_null() {
        let failure = outcome.map_or_else(
            |failure| Box::into_raw(Box::new(failure)),
            |()| ptr::null_mut(),
        );
        // SAFETY: by the contract of the header, `error` points to a pointer that can be written.
        unsafe { error.write(failure) };
    }
    status
}

/// Returns the message of an error, which lives as long as the error.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn lookalike_error_message(error: *const CallError) -> *const c_char {
    // SAFETY: by the contract of the header, `error` is null or an error that is not freed.
    match unsafe { error.as_ref() } {
        Some(error) => error.message.as_ptr(),
        None => c"".as_ptr(),
    }
}

/// Frees an error and sets the pointer to null.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn lookalike_error_free(error: *mut *mut CallError) {
    // SAFETY: as for the message.
    unsafe { free_boxed(error) }
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;

    use super::*;

    #[test]
    fn panics_and_failures_become_errors() {
        let succeed: fn() -> CallResult = || Ok(());
        let cases = [
            (succeed, CallStatus::Ok, ""),
            (|| panic!("a defect"), CallStatus::Internal, "has a defect"),
            (
                || Err(CallError::argument("a\0b")),
                CallStatus::BadArgument,
                "a\u{fffd}b",
            ),
        ];
        for (call, status, message) in cases {
            let mut error = ptr::null_mut();
            // SAFETY: the pointer is a local variable.
            let answer = unsafe { run_call(&raw mut error, call) };
            // SAFETY: the error is not freed yet, and its message is a C string.
            let text = unsafe { CStr::from_ptr(lookalike_error_message(error)) };
            assert!(text.to_str().unwrap().contains(message), "{text:?}");
            assert_eq!((answer, error.is_null()), (status, message.is_empty()));
            // SAFETY: as above.
            unsafe { lookalike_error_free(&raw mut error) };
            assert!(error.is_null());
            // SAFETY: without a place for the error.
            assert_eq!(unsafe { run_call(ptr::null_mut(), call) }, status);
        }
    }
}
