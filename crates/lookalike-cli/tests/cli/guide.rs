//! The examples of the guide are what the program prints.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::Place;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A place with the examples of the repository.
fn with_examples() -> Place {
    let place = Place::new();
    fs::create_dir(place.path("examples")).unwrap();
    for file in fs::read_dir(root().join("examples")).unwrap() {
        let file = file.unwrap().path();
        let name = Path::new("examples").join(file.file_name().unwrap());
        fs::copy(&file, place.path(name.to_str().unwrap())).unwrap();
    }
    place
}

/// The guide with the output of every command behind it.
fn filled(guide: &str) -> String {
    let place = with_examples();
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
    let (out, said) = run(place, command);
    assert!(said.is_empty(), "{command}: {said}");
    out
}

/// What a command prints, on standard output and beside it.
fn run(place: &Place, command: &str) -> (String, String) {
    let program = Path::new(env!("CARGO_BIN_EXE_lookalike")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let ran = Command::new("sh")
        .args(["-c", command])
        .env("PATH", path)
        .current_dir(place.path(""))
        .output()
        .unwrap();
    let said = String::from_utf8(ran.stderr).unwrap();
    assert!(ran.status.success(), "{command}: {said}");
    (String::from_utf8(ran.stdout).unwrap(), said)
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

/// The first two examples, which need no service; the time in them is as it happens to be.
#[test]
fn the_first_examples_of_the_readme_are_real() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let place = with_examples();
    let examples = readme.split("```console\n").skip(1).take(2);
    for example in examples.map(|rest| rest.split("```").next().unwrap()) {
        let mut real = String::new();
        for command in example.lines().filter_map(|line| line.strip_prefix("$ ")) {
            let (out, said) = run(&place, command);
            let _ = write!(real, "$ {command}\n{said}{out}");
        }
        let untimed = |text: &str| {
            let lines = text.lines().map(|line| match line.split_once(") in ") {
                Some((before, after)) if after.ends_with(" s") => format!("{before}) in … s"),
                _ => line.to_owned(),
            });
            lines.collect::<Vec<_>>().join("\n")
        };
        assert_eq!(
            untimed(example),
            untimed(&real),
            "bring README.md up to date"
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
