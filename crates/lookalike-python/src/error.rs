//! Conversion of errors to the exceptions of `lookalike._errors`, by the kind of the error.

use lookalike_io::{Error, ErrorKind};
use lookalike_options::{OptionError, OptionErrorKind};
use pyo3::{PyErr, import_exception};

import_exception!(lookalike._errors, SettingError);
import_exception!(lookalike._errors, RecipeError);
import_exception!(lookalike._errors, InputError);
import_exception!(lookalike._errors, BadRowError);
import_exception!(lookalike._errors, OutputError);
import_exception!(lookalike._errors, LimitError);

/// Returns the exception of an error of a run.
pub(crate) fn run_error_to_py(error: Error) -> PyErr {
    let message = error.to_string();
    let cause = std::error::Error::source(&error);
    let engine = cause.and_then(|cause| cause.downcast_ref::<lookalike::Error>());
    match (error.kind(), engine) {
        (ErrorKind::Engine, Some(engine)) => error_of_kind(engine.kind(), message),
        (ErrorKind::Usage | ErrorKind::Engine, _) => SettingError::new_err(message),
        (ErrorKind::Input, _) => InputError::new_err(message),
        (ErrorKind::BadRow, _) => BadRowError::new_err(message),
        (ErrorKind::Limit, _) => LimitError::new_err(message),
        _ => OutputError::new_err(message),
    }
}

/// Returns the exception of an option that cannot be used.
pub(crate) fn option_error_to_py(error: OptionError) -> PyErr {
    match error.kind() {
        OptionErrorKind::UnreadableFile => InputError::new_err(error.to_string()),
        _ => SettingError::new_err(error.to_string()),
    }
}

/// Returns the exception of an error of the engine.
pub(crate) fn engine_error_to_py(error: lookalike::Error) -> PyErr {
    error_of_kind(error.kind(), error.to_string())
}

fn error_of_kind(kind: lookalike::ErrorKind, message: String) -> PyErr {
    use lookalike::ErrorKind as Kind;
    match kind {
        Kind::Recipe => RecipeError::new_err(message),
        Kind::Limit => LimitError::new_err(message),
        Kind::File | Kind::Text => InputError::new_err(message),
        _ => SettingError::new_err(message),
    }
}
