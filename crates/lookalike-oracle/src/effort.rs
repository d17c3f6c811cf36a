//! Effort of tests: a short form runs at every change, and a long form under `./test --long`.

/// Returns `true` if tests run in their long form, because `LOOKALIKE_LONG_TESTS` is set.
pub fn is_long_run() -> bool {
    std::env::var_os("LOOKALIKE_LONG_TESTS").is_some()
}

/// Returns `short`, or `long` if tests run in their long form.
pub fn choose_effort<T>(short: T, long: T) -> T {
    if is_long_run() { long } else { short }
}
