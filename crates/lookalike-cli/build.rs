//! Gives the program on Windows as much stack as programs of Linux have, because the parser of the command line needs more
//! than the 1 MiB of Windows in builds without optimisation.

use std::env;

/// Bytes of stack of the main thread.
const STACK_BYTES: u32 = 8 << 20;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let setting = |name: &str| env::var(name).unwrap_or_default();
    if setting("CARGO_CFG_TARGET_OS") != "windows" {
        return;
    }
    if setting("CARGO_CFG_TARGET_ENV") == "msvc" {
        println!("cargo:rustc-link-arg-bins=/STACK:{STACK_BYTES}");
    } else {
        println!("cargo:rustc-link-arg-bins=-Wl,--stack,{STACK_BYTES}");
    }
}
