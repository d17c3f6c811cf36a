//! No other crate asks which system it runs on.

use std::fs;
use std::path::{Path, PathBuf};

/// Texts by which code asks for a system or calls it. To ask whether there is a system at all is allowed.
const SYSTEM_CODE: [&str; 17] = [
    "os::unix",
    "os::linux",
    "os::macos",
    "os::windows",
    "os::fd",
    "(unix)",
    "(unix,",
    "(windows)",
    "(windows,",
    "target_os",
    "target_family = \"unix",
    "target_family = \"windows",
    "rustix::",
    "signal_hook::",
    "tokio::signal",
    "windows_sys::",
    "\"/proc/",
];

/// Folders that may: this crate, and the instructions and the memory of the engine, which also runs without a system.
const EXCEPTIONS: [&str; 2] = ["lookalike-system/src", "lookalike/src/arch"];

fn list_sources(directory: &Path, sources: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            list_sources(&path, sources);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            sources.push(path);
        }
    }
}

fn list_crate_sources(crates: &Path) -> Vec<PathBuf> {
    let mut sources = Vec::new();
    for entry in fs::read_dir(crates).unwrap() {
        let source = entry.unwrap().path().join("src");
        if source.is_dir() {
            list_sources(&source, &mut sources);
        }
    }
    sources
}

#[test]
fn no_other_crate_asks_for_the_system() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let sources = list_crate_sources(crates);
    assert!(sources.len() > 300, "{} files", sources.len());
    let exceptions = EXCEPTIONS.map(|folder| crates.join(folder));
    let mut used = vec![false; exceptions.len()];
    for source in sources {
        let text = fs::read_to_string(&source).unwrap();
        let Some(found) = SYSTEM_CODE.iter().find(|code| text.contains(*code)) else {
            continue;
        };
        let exception = exceptions
            .iter()
            .position(|folder| source.starts_with(folder));
        match exception {
            Some(at) => used[at] = true,
            None => panic!(
                "{} has `{found}`: the calls of a system belong to crates/lookalike-system",
                source.display()
            ),
        }
    }
    assert!(
        !used.contains(&false),
        "an exception is not needed: {used:?}"
    );
}
