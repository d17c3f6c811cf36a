//! `liblookalike`: the engine for programs in C and for languages that call C.
//!
//! `include/lookalike.h` is the documentation for users. The library is thin: `lookalike-options` reads settings, the
//! engine decides, and these modules convert pointers to values and back.
//!
//! | module | holds |
//! |---|---|
//! | `call` | status codes, the error object, the border that no panic crosses |
//! | `pointers` | pointers of callers as references, with their checks |
//! | `settings` | recipe, match options and window, from JSON |
//! | `sketch` | fingerprints, signatures and their distance |
//! | `compare` | two texts side by side |
//! | `stream` | check and insert |
//!
//! # Safety
//! Every function trusts that a pointer is either null or of the type and length that the header states, and that
//! nothing is used after it was freed. All else is checked: null, lengths, UTF-8, numbers.

// Pointers of C can only be read by unsafe code. Each block says what it relies on; the common contract is above.
#![allow(unsafe_code, clippy::missing_safety_doc)]

mod call;
mod compare;
mod pointers;
mod settings;
mod sketch;
mod stream;

use std::ffi::{CStr, c_char};

/// Number of the binary interface. It grows when a function or a struct changes in a way that old callers notice.
const ABI_VERSION: u32 = 1;

const VERSION: &CStr = {
    let bytes = concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes();
    match CStr::from_bytes_with_nul(bytes) {
        Ok(version) => version,
        Err(_) => panic!("the version contains no NUL"),
    }
};

/// Returns the number of the binary interface.
#[unsafe(no_mangle)]
pub extern "C" fn lookalike_abi_version() -> u32 {
    ABI_VERSION
}

/// Returns the version of the library, which lives as long as the program.
#[unsafe(no_mangle)]
pub extern "C" fn lookalike_version() -> *const c_char {
    VERSION.as_ptr()
}
