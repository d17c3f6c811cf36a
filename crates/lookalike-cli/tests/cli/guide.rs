//! The examples of the guide are what the program prints.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::Place;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The guide with the output of every command behind it.
fn filled(guide: &str) -> String {
    let place = Place::new();
    fs::create_dir(place.path("examples")).unwrap();
    for file in fs::read_dir(root().join("examples")).unwrap() {
        let file = file.unwrap().path();
        let name = Path::new("examples").join(file.file_name().unwrap());
        fs::copy(&file, place.path(name.to_str().unwrap())).unwrap();
    }
    let mut filled = String::new();
    let mut in_example = false;
    for line in guide.lines() {
        let is_border = line.starts_with("```");
        if is_border {
            in_example = line == "```console";
        }
        match line.strip_prefix("$ ") {
            Some(command) if in_example => {
                let _ = write!(filled, "{line}\n{}", output(&place, command));
            }
            _ if in_example && !is_border => {}
            _ => {
                let _ = writeln!(filled, "{line}");
            }
        }
    }
    filled
}

fn output(place: &Place, command: &str) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_lookalike")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let ran = Command::new("sh")
        .args(["-c", command])
        .env("PATH", path)
        .current_dir(place.path(""))
        .output()
        .unwrap();
    let said = String::from_utf8(ran.stderr).unwrap();
    assert!(ran.status.success() && said.is_empty(), "{command}: {said}");
    String::from_utf8(ran.stdout).unwrap()
}

#[test]
fn the_examples_of_the_guide_are_real() {
    let guide = fs::read_to_string(root().join("docs/guide.md")).unwrap();
    for (at, (written, real)) in guide.lines().zip(filled(&guide).lines()).enumerate() {
        assert_eq!(
            written,
            real,
            "docs/guide.md:{}: bring it up to date with `./test -- --ignored write_the_guide`",
            at + 1
        );
    }
}

#[test]
#[ignore = "writes the guide anew"]
fn write_the_guide() {
    let guide = root().join("docs/guide.md");
    let text = fs::read_to_string(&guide).unwrap();
    fs::write(&guide, filled(&text)).unwrap();
}
