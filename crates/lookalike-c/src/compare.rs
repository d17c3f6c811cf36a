//! Two texts side by side: the verdict as numbers, and every step as the JSON of `lookalike compare --json`.

use std::ffi::{CString, c_char};
use std::ptr;

use lookalike::compare::Comparison;
use lookalike::passages::PassageSettings;
use lookalike_batch::run::run_in_caller;
use lookalike_comparison::comparison::{ComparedSide, ComparisonCase, GIVEN_TEXT};
use lookalike_comparison::shared_passages::SharedPassages;

use crate::call::{CallError, CallResult, CallStatus, run_call};
use crate::pointers::{check_place, reference, text, write_answer};
use crate::settings::CallSettings;
use crate::stream::method_name;

/// The verdict of a comparison.
#[repr(C)]
pub(crate) struct PairVerdict {
    is_match: bool,
    has_similarity: bool,
    has_distance: bool,
    distance: u32,
    similarity: f64,
    method: *const c_char,
}

/// A text as a caller hands it over: its bytes and their number.
struct GivenText {
    characters: *const c_char,
    length: usize,
}

/// Two texts and the settings of their comparison.
struct TextPair<'a> {
    settings: &'a CallSettings,
    a: &'a str,
    b: &'a str,
}

impl<'a> TextPair<'a> {
    unsafe fn from_pointers(
        settings: *const CallSettings,
        a: GivenText,
        b: GivenText,
    ) -> CallResult<Self> {
        // SAFETY: the contract of the header.
        unsafe {
            Ok(Self {
                settings: reference("settings", settings)?,
                a: text("a", a.characters, a.length)?,
                b: text("b", b.characters, b.length)?,
            })
        }
    }

    fn compare(&self) -> CallResult<Comparison> {
        let CallSettings {
            recipe, matching, ..
        } = self.settings;
        Ok(run_in_caller(|| {
            Ok(Comparison::new(recipe, *matching, self.a, self.b))
        })??)
    }

    fn find_passages(&self) -> CallResult<SharedPassages> {
        let both = [self.a, self.b];
        let found =
            SharedPassages::find_all(&self.settings.recipe, both, PassageSettings::default());
        Ok(found?)
    }

    fn to_json(&self) -> CallResult<String> {
        let side = |text: &str| ComparedSide {
            place: GIVEN_TEXT.to_owned(),
            text: text.to_owned(),
        };
        let case = ComparisonCase {
            recipe: &self.settings.recipe,
            a: side(self.a),
            b: side(self.b),
            compared: self.compare()?,
            shared: self.find_passages()?,
            top: 0,
            distance: self.settings.matching.distance,
        };
        Ok(serde_json::to_string(&case).expect("texts and numbers serialise"))
    }
}

/// Compares two texts.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn lookalike_compare(
    settings: *const CallSettings,
    a: *const c_char,
    a_length: usize,
    b: *const c_char,
    b_length: usize,
    verdict: *mut PairVerdict,
    error: *mut *mut CallError,
) -> CallStatus {
    // SAFETY: the contract of the header.
    unsafe {
        run_call(error, || {
            let pair = TextPair::from_pointers(
                settings,
                GivenText {
                    characters: a,
                    length: a_length,
                },
                GivenText {
                    characters: b,
                    length: b_length,
                },
            )?;
            check_place("verdict", verdict)?;
            let compared = pair.compare()?;
            let (matched, similarity) = (compared.verdict.matched, compared.verdict.similarity);
            let fingerprints = compared.a.fingerprint.zip(compared.b.fingerprint);
            let distance = fingerprints.map(|(a, b)| (a ^ b).count_ones());
            let answer = PairVerdict {
                is_match: matched.is_some(),
                has_similarity: similarity.is_some(),
                has_distance: distance.is_some(),
                distance: distance.unwrap_or_default(),
                similarity: similarity.unwrap_or_default(),
                method: matched.map_or(ptr::null(), |(route, _)| method_name(route).as_ptr()),
            };
            write_answer("verdict", verdict, answer)
        })
    }
}

/// Compares two texts with every step, as JSON.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn lookalike_compare_json(
    settings: *const CallSettings,
    a: *const c_char,
    a_length: usize,
    b: *const c_char,
    b_length: usize,
    json: *mut *mut c_char,
    error: *mut *mut CallError,
) -> CallStatus {
    // SAFETY: the contract of the header.
    unsafe {
        run_call(error, || {
            write_answer("json", json, ptr::null_mut())?;
            let pair = TextPair::from_pointers(
                settings,
                GivenText {
                    characters: a,
                    length: a_length,
                },
                GivenText {
                    characters: b,
                    length: b_length,
                },
            )?;
            write_answer("json", json, own_string(pair.to_json()?))
        })
    }
}

/// Finds the passages that two texts share, as JSON.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn lookalike_passages_json(
    settings: *const CallSettings,
    a: *const c_char,
    a_length: usize,
    b: *const c_char,
    b_length: usize,
    json: *mut *mut c_char,
    error: *mut *mut CallError,
) -> CallStatus {
    // SAFETY: the contract of the header.
    unsafe {
        run_call(error, || {
            write_answer("json", json, ptr::null_mut())?;
            let pair = TextPair::from_pointers(
                settings,
                GivenText {
                    characters: a,
                    length: a_length,
                },
                GivenText {
                    characters: b,
                    length: b_length,
                },
            )?;
            let shared = pair.find_passages()?.to_json();
            write_answer("json", json, own_string(shared.to_string()))
        })
    }
}

/// Returns a string that its caller frees. JSON escapes NUL.
fn own_string(json: String) -> *mut c_char {
    CString::new(json).expect("JSON has no NUL").into_raw()
}

/// Frees a string and sets the pointer to null.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn lookalike_string_free(string: *mut *mut c_char) {
    // SAFETY: the contract of the header: the string is null or comes from `own_string`.
    unsafe {
        if let Some(string) = string.as_mut()
            && !string.is_null()
        {
            drop(CString::from_raw(std::mem::replace(
                string,
                ptr::null_mut(),
            )));
        }
    }
}
