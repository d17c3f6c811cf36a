//! The examples of the guide and the README show the real output of the program.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::Place;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Creates a place with the examples of the repository.
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

/// Returns the guide with the output of every command after it.
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

/// Returns a shell that finds the program.
fn shell(place: &Place) -> Command {
    let program = Path::new(env!("CARGO_BIN_EXE_lookalike")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let mut shell = Command::new("sh");
    shell.env("PATH", path).current_dir(place.path(""));
    shell
}

/// Returns the standard output and the standard error of a command.
fn run(place: &Place, command: &str) -> (String, String) {
    let ran = shell(place).args(["-c", command]).output().unwrap();
    let said = String::from_utf8(ran.stderr).unwrap();
    assert!(ran.status.success(), "{command}: {said}");
    (String::from_utf8(ran.stdout).unwrap(), said)
}

#[test]
fn guide_examples_are_current() {
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

/// The first two examples, which need no service. The time in their output may differ.
#[test]
fn readme_examples_are_current() {
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
                Some((before, after)) if after.starts_with(|c: char| c.is_ascii_digit()) => {
                    format!("{before}) in some seconds")
                }
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

/// Runs each argument in one shell and prints it before its output. Ends the service afterwards.
const SESSION: &str = r#"
    trap 'kill $!' EXIT
    for command; do
        printf '\n$ %s\n' "$command"
        eval "$command"
    done
"#;

/// Runs the example of the service as if pasted into a shell, except for the port.
#[test]
fn readme_service_examples_are_current() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let mut examples = readme.split("```console\n").skip(1);
    let example = examples.find(|it| it.starts_with("$ lookalike serve"));
    let example = example.unwrap().split("```").next().unwrap();
    let place = with_examples();
    // Outside a terminal, curl would print its progress.
    place.write(".curlrc", "silent\nshow-error\n");
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let (usual, port) = (":7600", format!(":{}", free.local_addr().unwrap().port()));
    drop(free);
    let commands = example.lines().filter_map(|line| line.strip_prefix("$ "));
    let ran = shell(&place)
        .args(["-c", SESSION, "sh"])
        .args(commands.map(|command| command.replace(usual, &port)))
        .env("CURL_HOME", place.path(""))
        .env("LOOKALIKE_LISTEN", format!("127.0.0.1{port}"))
        .output()
        .unwrap();
    let said = String::from_utf8(ran.stderr).unwrap();
    // Some versions of curl report each attempt to connect before the service listens.
    let is_attempt = |line: &&str| line.starts_with("curl: (7) ");
    let said: String = said.lines().filter(|line| !is_attempt(line)).collect();
    let real = String::from_utf8(ran.stdout).unwrap().replace(&port, usual);
    // A single answer has no line end.
    let real: Vec<_> = real.lines().filter(|line| !line.is_empty()).collect();
    let written: Vec<_> = example.lines().collect();
    assert_eq!((written, ""), (real, &*said), "bring README.md up to date");
}

#[test]
#[ignore = "writes the guide anew"]
fn write_the_guide() {
    let guide = root().join("docs/guide.md");
    let text = fs::read_to_string(&guide).unwrap();
    fs::write(&guide, filled(&text)).unwrap();
}
