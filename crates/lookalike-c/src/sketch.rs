//! Sketches of one text, and the distance of two fingerprints.

use std::cell::RefCell;
use std::ffi::c_char;

use lookalike::text::{AnalysisScratch, TextAnalysis};

use crate::call::{CallError, CallStatus, run_call};
use crate::pointers::{array, check_place, reference, text, write_answer};
use crate::settings::CallSettings;

thread_local! {
    /// Buffers of the thread, so that a call allocates little. They hold nothing that a later call sees.
    static SCRATCH: RefCell<AnalysisScratch> = RefCell::default();
}

/// Calls `work` with the buffers of this thread.
pub(crate) fn with_scratch<T>(work: impl FnOnce(&mut AnalysisScratch) -> T) -> T {
    SCRATCH.with_borrow_mut(work)
}

fn analyze<T>(
    settings: &CallSettings,
    text: &str,
    visit: impl FnOnce(&TextAnalysis<'_>) -> T,
) -> T {
    with_scratch(|scratch| visit(&settings.analyzer.analyze_text(text, scratch)))
}

/// Returns the bits of a fingerprint under these settings, or 0 for null.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn lookalike_simhash_bits(settings: *const CallSettings) -> u32 {
    // SAFETY: the contract of the header.
    unsafe { settings.as_ref() }.map_or(0, |settings| settings.recipe.simhash.bits)
}

/// Returns the slots of a signature under these settings, or 0 for null.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn lookalike_minhash_slots(settings: *const CallSettings) -> usize {
    // SAFETY: the contract of the header.
    unsafe { settings.as_ref() }.map_or(0, |settings| settings.min_hasher.slot_count())
}

/// Computes the fingerprint of a text: the lower and the upper 64 bits.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn lookalike_simhash(
    settings: *const CallSettings,
    characters: *const c_char,
    length: usize,
    fingerprint: *mut [u64; 2],
    has_fingerprint: *mut bool,
    error: *mut *mut CallError,
) -> CallStatus {
    // SAFETY: the contract of the header.
    unsafe {
        run_call(error, || {
            let settings = reference("settings", settings)?;
            let text = text("text", characters, length)?;
            check_place("has_fingerprint", has_fingerprint)?;
            let hasher = &settings.sim_hasher;
            let bits = analyze(settings, text, |analysis| {
                hasher.original_fingerprint(analysis)
            });
            let words = bits.unwrap_or_default();
            write_answer(
                "fingerprint",
                fingerprint,
                [words as u64, (words >> 64) as u64],
            )?;
            write_answer("has_fingerprint", has_fingerprint, bits.is_some())
        })
    }
}

/// Computes the signature of a text.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn lookalike_minhash(
    settings: *const CallSettings,
    characters: *const c_char,
    length: usize,
    signature: *mut u32,
    capacity: usize,
    has_signature: *mut bool,
    error: *mut *mut CallError,
) -> CallStatus {
    // SAFETY: the contract of the header. The array is written as far as its capacity, which is checked.
    unsafe {
        run_call(error, || {
            let settings = reference("settings", settings)?;
            let text = text("text", characters, length)?;
            check_place("signature", signature)?;
            let hasher = &settings.min_hasher;
            let mut slots = vec![0; hasher.slot_count()];
            if capacity < slots.len() {
                return Err(CallError::argument(format!(
                    "capacity is {capacity}: a signature of this recipe has {} slots, as lookalike_minhash_slots says",
                    slots.len()
                )));
            }
            let found = analyze(settings, text, |analysis| {
                hasher.original_signature(analysis, &mut slots)
            });
            write_answer("has_signature", has_signature, found)?;
            signature.copy_from_nonoverlapping(slots.as_ptr(), slots.len());
            Ok(())
        })
    }
}

/// Counts the bits in which two fingerprints differ.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn lookalike_hamming_distance(
    a: *const u64,
    b: *const u64,
    distance: *mut u32,
    error: *mut *mut CallError,
) -> CallStatus {
    // SAFETY: the contract of the header.
    unsafe {
        run_call(error, || {
            let (a, b): (&[u64], &[u64]) = (array("a", a, 2)?, array("b", b, 2)?);
            let differing = a.iter().zip(b).map(|(a, b)| (a ^ b).count_ones()).sum();
            write_answer("distance", distance, differing)
        })
    }
}
