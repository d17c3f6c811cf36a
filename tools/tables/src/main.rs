//! Writes the engine's pinned tables, `crates/lookalike/src/text/unicode/generated.rs`.
//!
//! ```text
//! cargo run -p lookalike-tables             # write the file
//! cargo run -p lookalike-tables -- --check  # fail if the file is not what would be written
//! ```
//!
//! The tables decide fingerprints, so they change only when somebody regenerates them on purpose.
//! The data crates are pinned to exact versions, must agree with each other on every code point,
//! and must belong to the Unicode version [`sources::UNICODE_VERSION`].

mod classes;
mod mappings;
mod render;
mod sources;

use std::path::Path;

use anyhow::{Context, Result, bail};

/// Path of the generated file from the root of the workspace.
const OUTPUT: &str = "crates/lookalike/src/text/unicode/generated.rs";

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(OUTPUT);
    match arguments.as_slice() {
        [] => std::fs::write(&path, generate()?).with_context(|| format!("cannot write {OUTPUT}")),
        ["--check"] => check(&path, &generate()?),
        other => bail!("the only option is --check, not {:?}", other.join(" ")),
    }
}

/// Returns the whole text of the generated file.
fn generate() -> Result<String> {
    sources::check_agreement()?;
    Ok(render::file(
        &classes::ranges(),
        &mappings::Mappings::collect()?,
    ))
}

fn check(path: &Path, expected: &str) -> Result<()> {
    let found = std::fs::read_to_string(path).with_context(|| format!("cannot read {OUTPUT}"))?;
    if found != expected {
        bail!("{OUTPUT} is stale: run `cargo run -p lookalike-tables`");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn committed_file_is_current() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../..")
            .join(OUTPUT);
        check(&path, &generate().unwrap()).unwrap();
    }

    #[test]
    fn changed_file_is_stale() {
        let path = std::env::temp_dir().join(format!("tables-{}.rs", std::process::id()));
        std::fs::write(&path, "one").unwrap();
        assert!(check(&path, "one").is_ok());
        assert!(
            check(&path, "two")
                .unwrap_err()
                .to_string()
                .contains("stale")
        );
        std::fs::remove_file(&path).unwrap();
        assert!(check(&path, "one").is_err());
    }
}
