//! The examples of the guide, the README and the page about the service show the real output of the program.

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
    copy_directory(&root().join("examples"), &place.path("examples"));
    place
}

fn copy_directory(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap().path();
        let copy = to.join(entry.file_name().unwrap());
        match entry.is_dir() {
            true => copy_directory(&entry, &copy),
            false => drop(fs::copy(&entry, copy).unwrap()),
        }
    }
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

/// Runs commands as if pasted into a shell, except for the port of the service. Returns the commands with their
/// output, without empty lines.
fn run_session<'a>(place: &Place, commands: impl Iterator<Item = &'a str>) -> Vec<String> {
    // Outside a terminal, curl would print its progress.
    place.write(".curlrc", "silent\nshow-error\n");
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let (usual, port) = (":7600", format!(":{}", free.local_addr().unwrap().port()));
    drop(free);
    let ran = shell(place)
        .args(["-c", SESSION, "sh"])
        .args(commands.map(|command| command.replace(usual, &port)))
        .env("CURL_HOME", place.path(""))
        .env("LOOKALIKE_LISTEN", format!("127.0.0.1{port}"))
        .output()
        .unwrap();
    let said = String::from_utf8(ran.stderr).unwrap();
    // Some versions of curl report each attempt before the service listens (7) and before it is ready (22).
    let is_attempt = |line: &&str| {
        ["curl: (7) ", "curl: (22) "]
            .iter()
            .any(|it| line.starts_with(it))
    };
    let said: String = said.lines().filter(|line| !is_attempt(line)).collect();
    let real = String::from_utf8(ran.stdout).unwrap().replace(&port, usual);
    assert_eq!(said, "", "{real}");
    // A single answer has no line end.
    let lines = real.lines().filter(|line| !line.is_empty());
    lines.map(str::to_owned).collect()
}

/// Returns the lines of the examples in a page.
fn example_lines(page: &str) -> impl Iterator<Item = &str> {
    let examples = page.split("```console\n").skip(1);
    examples.flat_map(|rest| rest.split("```").next().unwrap().lines())
}

fn without_prompt(line: &str) -> Option<&str> {
    line.strip_prefix("$ ")
}

#[test]
fn readme_service_examples_are_current() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let service = &readme[readme.find("```console\n$ lookalike serve").unwrap()..];
    let written: Vec<_> = example_lines(service).collect();
    let commands = written.iter().filter_map(|line| without_prompt(line));
    let real = run_session(&with_examples(), commands);
    assert_eq!(written, real, "bring README.md up to date");
}

/// Returns the page about the service with the output of every command after it, all from one session.
fn filled_service_page(page: &str) -> String {
    let real = run_session(
        &Place::new(),
        example_lines(page).filter_map(without_prompt),
    );
    let mut real = real.into_iter().peekable();
    let mut filled = String::new();
    let mut in_example = false;
    for line in page.lines() {
        let is_border = line.starts_with("```");
        if is_border {
            in_example = line == "```console";
        }
        if !in_example || is_border {
            let _ = writeln!(filled, "{line}");
        } else if without_prompt(line).is_some() {
            let _ = writeln!(filled, "{}", real.next().unwrap());
            while let Some(output) = real.next_if(|next| without_prompt(next).is_none()) {
                let _ = writeln!(filled, "{output}");
            }
        }
    }
    filled
}

#[test]
fn service_page_examples_are_current() {
    let page = fs::read_to_string(root().join("docs/service.md")).unwrap();
    for (at, (written, real)) in page
        .lines()
        .zip(filled_service_page(&page).lines())
        .enumerate()
    {
        assert_eq!(
            written,
            real,
            "docs/service.md:{}: bring it up to date with `./test -- --ignored write_the_service_page`",
            at + 1
        );
    }
}

#[test]
#[ignore = "writes the page about the service anew"]
fn write_the_service_page() {
    let page = root().join("docs/service.md");
    let text = fs::read_to_string(&page).unwrap();
    fs::write(&page, filled_service_page(&text)).unwrap();
}

#[test]
#[ignore = "writes the guide anew"]
fn write_the_guide() {
    let guide = root().join("docs/guide.md");
    let text = fs::read_to_string(&guide).unwrap();
    fs::write(&guide, filled(&text)).unwrap();
}
