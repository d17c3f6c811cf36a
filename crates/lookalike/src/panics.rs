//! Calls of other libraries that panic on damaged data.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

thread_local! {
    static IS_CAUGHT: Cell<bool> = const { Cell::new(false) };
}

/// Calls a function of a library that may panic on what it is given, and returns the panic as an error. What the call
/// changes must not be used after a panic.
///
/// The panic hook is not told of it. For that, the first call puts a hook of its own before the one that is set.
///
/// # Errors
/// The payload of the panic.
pub fn catch_panics<T>(call: impl FnOnce() -> T) -> std::thread::Result<T> {
    static SILENT_HOOK: Once = Once::new();
    SILENT_HOOK.call_once(|| {
        let previous = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if !IS_CAUGHT.get() {
                previous(panic);
            }
        }));
    });
    let before = IS_CAUGHT.replace(true);
    let called = panic::catch_unwind(AssertUnwindSafe(call));
    IS_CAUGHT.set(before);
    called
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panics_are_returned_at_any_depth() {
        assert_eq!(catch_panics(|| 7).unwrap(), 7);
        let inner = || {
            let caught = catch_panics(|| -> () { panic!("inside") });
            assert_eq!(caught.unwrap_err().downcast_ref(), Some(&"inside"));
            panic!("outside");
        };
        let caught: std::thread::Result<()> = catch_panics(inner);
        assert_eq!(caught.unwrap_err().downcast_ref(), Some(&"outside"));
        assert!(!IS_CAUGHT.get());
    }
}
