//! Pointers of callers as references. Every refusal names the argument.

use std::ffi::c_char;
use std::{ptr, slice};

use crate::call::{CallError, CallResult};

fn null_pointer(name: &str) -> CallError {
    CallError::argument(format!("{name} is NULL: give a valid pointer"))
}

/// Returns the value at a pointer.
pub(crate) unsafe fn reference<'a, T>(name: &str, pointer: *const T) -> CallResult<&'a T> {
    // SAFETY: by the contract of the header, the pointer is null or valid during the call.
    unsafe { pointer.as_ref() }.ok_or_else(|| null_pointer(name))
}

/// Writes a value to the place of an answer. It need not be initialised before.
pub(crate) unsafe fn write_answer<T>(name: &str, place: *mut T, value: T) -> CallResult {
    check_place(name, place)?;
    // SAFETY: the place is not null, and by the contract of the header it can be written.
    unsafe { place.write(value) };
    Ok(())
}

/// Refuses a null pointer, before work whose result would be lost.
pub(crate) fn check_place<T>(name: &str, place: *mut T) -> CallResult {
    if place.is_null() {
        return Err(null_pointer(name));
    }
    Ok(())
}

/// Returns the bytes, or other numbers, of an array.
pub(crate) unsafe fn array<'a, T>(
    name: &str,
    pointer: *const T,
    length: usize,
) -> CallResult<&'a [T]> {
    check_length::<T>(name, length)?;
    if pointer.is_null() {
        return Err(null_pointer(name));
    }
    // SAFETY: the pointer is not null, the length is checked, and by the contract of the header so many values are there.
    Ok(unsafe { slice::from_raw_parts(pointer, length) })
}

/// Refuses a length that no array can have.
pub(crate) fn check_length<T>(name: &str, length: usize) -> CallResult {
    let most = isize::MAX as usize / size_of::<T>().max(1);
    if length > most {
        return Err(CallError::argument(format!(
            "the length of {name} is {length}: give at most {most}"
        )));
    }
    Ok(())
}

/// Returns a text.
pub(crate) unsafe fn text<'a>(
    name: &str,
    pointer: *const c_char,
    length: usize,
) -> CallResult<&'a str> {
    // SAFETY: by the contract of `array`, which is the same.
    let bytes = unsafe { array(name, pointer.cast::<u8>(), length) }?;
    std::str::from_utf8(bytes).map_err(|error| {
        let place = error.valid_up_to();
        let byte = bytes[place];
        CallError::argument(format!(
            "{name} is not valid UTF-8: byte {place} is 0x{byte:02x}; convert the text to UTF-8 before the call"
        ))
    })
}

/// Frees what a pointer at `place` owns, and sets it to null. Does nothing if either is null.
pub(crate) unsafe fn free_boxed<T>(place: *mut *mut T) {
    if place.is_null() {
        return;
    }
    // SAFETY: by the contract of the header, the place can be written, and its pointer is null or comes from
    // `Box::into_raw` of this library and is not freed yet.
    unsafe {
        let owned = place.replace(ptr::null_mut());
        if !owned.is_null() {
            drop(Box::from_raw(owned));
        }
    }
}
