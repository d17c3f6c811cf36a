//! How much a test does: a short form at every change, a long one where `./test --long` asks for it.

/// Returns `true` if tests run in their long form, because `LOOKALIKE_LONG_TESTS` is set.
pub fn is_long() -> bool {
    std::env::var_os("LOOKALIKE_LONG_TESTS").is_some()
}

/// Returns `short`, or `long` if tests run in their long form.
pub fn choose<T>(short: T, long: T) -> T {
    if is_long() { long } else { short }
}
