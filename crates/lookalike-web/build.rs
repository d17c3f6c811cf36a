//! Gives the module a stack of 8 MiB, as the main thread of a program has one. The usual 1 MiB of WebAssembly is too small
//! for nested documents.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let family = std::env::var("CARGO_CFG_TARGET_FAMILY").unwrap_or_default();
    if family.split(',').any(|name| name == "wasm") {
        println!("cargo::rustc-link-arg-bins=-zstack-size=8388608");
    }
}
