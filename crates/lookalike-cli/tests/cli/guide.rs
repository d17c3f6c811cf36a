//! The examples of the documents show the real output of the program.
//!
//! Every block that opens with ` ```console ` is run: those of `README.md` and of each page below `docs/`. The commands of
//! a page run one after another in a directory with the `examples` of the repository. From `lookalike serve` on they
//! share one shell, because the service must stay. The pages about the service in production are one session together.
//! Chinese pages have the same commands, which [`super::pages`] compares, and the output of the program in Chinese.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::pages::{PageLanguage, read_page, root, user_pages, with_blocks_of};
use crate::support::Place;

/// The pages about the service in production, in the order of their session.
const SERVICE_PAGES: [&str; 12] = [
    "docs/service/index.md",
    "docs/service/deploy.md",
    "docs/service/keys.md",
    "docs/service/collections.md",
    "docs/service/recipes.md",
    "docs/service/documents.md",
    "docs/service/clusters.md",
    "docs/service/decisions.md",
    "docs/service/backup.md",
    "docs/service/incidents.md",
    "docs/service/upgrade.md",
    "docs/service/monitoring.md",
];

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
        if entry.is_dir() {
            copy_directory(&entry, &copy)
        } else {
            fs::copy(&entry, copy).unwrap();
        }
    }
}

/// Returns a shell that finds the program and makes it speak a language. Other programs sort and cut as in English.
fn shell(place: &Place, language: PageLanguage) -> Command {
    let program = Path::new(env!("CARGO_BIN_EXE_lookalike")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let mut shell = Command::new("sh");
    shell
        .env("PATH", path)
        .env("LC_ALL", "")
        .env("LANG", "C.UTF-8")
        .env("LC_MESSAGES", language.locale())
        .current_dir(place.path(""));
    shell
}

/// Returns the lines that a command prints, those of standard error first.
fn run_command(place: &Place, language: PageLanguage, command: &str) -> Vec<String> {
    let ran = shell(place, language)
        .args(["-c", command])
        .output()
        .unwrap();
    let said = String::from_utf8(ran.stderr).unwrap();
    assert!(ran.status.success(), "{command}: {said}");
    let out = String::from_utf8(ran.stdout).unwrap();
    let said = said.lines().map(without_time);
    said.chain(out.lines().map(str::to_owned)).collect()
}

/// Sets the time and the speed that a summary states to zero, because they differ at each run.
fn without_time(line: &str) -> String {
    let forms = [(" in ", " s", ": "), ("，用时 ", " 秒", "，")];
    let stated = forms.iter().find_map(|(opening, unit, speed)| {
        let (before, after) = line.split_once(opening)?;
        let (seconds, rest) = after.split_once(unit)?;
        seconds.parse::<f64>().ok()?;
        let is_speed = rest.starts_with(speed) && rest.ends_with(" MB/s");
        let rest = if is_speed { "" } else { rest };
        Some(format!("{before}{opening}0.0{unit}{rest}"))
    });
    stated.unwrap_or_else(|| line.to_owned())
}

/// Runs each argument in one shell and prints it before its output. Ends the service afterwards.
const SESSION: &str = r#"
    trap 'kill $!' EXIT
    for command; do
        printf '\n$ %s\n' "$command"
        eval "$command"
    done
"#;

/// Runs commands as if pasted into a shell, except for the port of the service. Returns the lines that each of them
/// prints, without empty ones.
fn run_session(place: &Place, language: PageLanguage, commands: &[&str]) -> Vec<Vec<String>> {
    // Outside a terminal, curl would print its progress.
    place.write(".curlrc", "silent\nshow-error\n");
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let (usual, port) = (":7600", format!(":{}", free.local_addr().unwrap().port()));
    drop(free);
    let ran = shell(place, language)
        .args(["-c", SESSION, "sh"])
        .args(commands.iter().map(|command| command.replace(usual, &port)))
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
    let mut outputs: Vec<Vec<String>> = Vec::new();
    // A single answer has no line end.
    for line in real.lines().filter(|line| !line.is_empty()) {
        match line.strip_prefix("$ ") {
            Some(_) => outputs.push(Vec::new()),
            None => outputs.last_mut().unwrap().push(line.to_owned()),
        }
    }
    assert_eq!(outputs.len(), commands.len(), "{real}");
    outputs
}

/// Returns the commands of the examples in a page.
fn commands(page: &str) -> Vec<&str> {
    let examples = page.split("```console\n").skip(1);
    let lines = examples.flat_map(|rest| rest.split("```").next().unwrap().lines());
    lines.filter_map(|line| line.strip_prefix("$ ")).collect()
}

/// Returns the page with the given outputs after its commands.
fn with_outputs(page: &str, outputs: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut outputs = outputs.into_iter();
    let mut filled = String::new();
    let mut in_example = false;
    for line in page.lines() {
        let is_border = line.starts_with("```");
        if is_border {
            in_example = line == "```console";
        }
        let is_command = in_example && line.starts_with("$ ");
        if !in_example || is_border || is_command {
            let _ = writeln!(filled, "{line}");
        }
        if is_command {
            for output in outputs.next().unwrap() {
                let _ = writeln!(filled, "{output}");
            }
        }
    }
    filled
}

/// Returns a page with the output of every command after it.
fn filled(page: &str, language: PageLanguage) -> String {
    let commands = commands(page);
    let served = commands
        .iter()
        .position(|command| command.starts_with("lookalike serve"));
    let (single, session) = commands.split_at(served.unwrap_or(commands.len()));
    let place = with_examples();
    let mut outputs: Vec<_> = single
        .iter()
        .map(|command| run_command(&place, language, command))
        .collect();
    if !session.is_empty() {
        outputs.extend(run_session(&place, language, session));
    }
    with_outputs(page, outputs)
}

/// Returns the pages about the service with the output of every command after it, all from one session.
fn filled_service_pages(language: PageLanguage) -> Vec<(PathBuf, String)> {
    let pages = SERVICE_PAGES.map(|name| {
        let page = language.page_of(Path::new(name));
        let text = read_page(&page);
        (page, text)
    });
    let commands: Vec<_> = pages.iter().flat_map(|(_, page)| commands(page)).collect();
    let mut outputs = run_session(&with_examples(), language, &commands).into_iter();
    pages
        .iter()
        .map(|(name, page)| (name.clone(), with_outputs(page, outputs.by_ref())))
        .collect()
}

/// Returns the pages with commands, apart from those about the service in production, with the output of every command.
fn filled_example_pages(language: PageLanguage) -> impl Iterator<Item = (PathBuf, String)> {
    let pages = user_pages().into_iter().filter(|page| {
        let is_session = SERVICE_PAGES.iter().any(|name| page == Path::new(name));
        !is_session && read_page(page).contains("```console\n")
    });
    pages.map(move |page| {
        let page = language.page_of(&page);
        let filled = filled(&read_page(&page), language);
        (page, filled)
    })
}

fn assert_current(name: &Path, filled: &str) {
    let page = read_page(name);
    for (at, (written, real)) in page.lines().zip(filled.lines()).enumerate() {
        assert_eq!(
            written,
            real,
            "{}:{}: bring it up to date with `./test -- --ignored write_the_guide`",
            name.display(),
            at + 1
        );
    }
    assert_eq!(
        page.lines().count(),
        filled.lines().count(),
        "{}",
        name.display()
    );
}

fn assert_examples_current(language: PageLanguage) {
    let mut checked = 0;
    for (page, filled) in filled_example_pages(language) {
        assert_current(&page, &filled);
        checked += 1;
    }
    assert!(checked > 12, "{checked}");
}

fn assert_service_pages_current(language: PageLanguage) {
    for (page, filled) in filled_service_pages(language) {
        assert_current(&page, &filled);
    }
}

#[test]
fn guide_examples_are_current() {
    assert_examples_current(PageLanguage::English);
}

#[test]
fn chinese_guide_examples_are_current() {
    assert_examples_current(PageLanguage::Chinese);
}

#[test]
fn service_page_examples_are_current() {
    assert_service_pages_current(PageLanguage::English);
}

#[test]
fn chinese_service_page_examples_are_current() {
    assert_service_pages_current(PageLanguage::Chinese);
}

/// Commands in other blocks need what a test has not, for example an object store. The program knows their options.
#[test]
fn commands_that_cannot_run_are_valid() {
    let place = Place::new();
    let mut checked = 0;
    for page in user_pages() {
        let text = read_page(&page);
        // Odd parts are inside a block; the rest of its first line names its language.
        for block in text.split("\n```").skip(1).step_by(2) {
            if block.starts_with("console\n") {
                continue;
            }
            for line in block.lines().filter(|line| line.starts_with("lookalike ")) {
                let end = [" | ", " > ", " # "]
                    .iter()
                    .filter_map(|mark| line.find(mark));
                let command = &line[..end.min().unwrap_or(line.len())];
                let help = format!("{command} --help");
                let _ = run_command(&place, PageLanguage::English, &help);
                checked += 1;
            }
        }
    }
    assert!(checked > 8, "{checked}");
    let unknown = shell(&place, PageLanguage::English)
        .args(["-c", "lookalike dedup in.jsonl --treshold 0.8 --help"])
        .output();
    assert!(!unknown.unwrap().status.success());
}

#[test]
#[ignore = "writes the outputs in the documents anew"]
fn write_the_guide() {
    write_outputs(PageLanguage::English);
    for page in user_pages() {
        let chinese = root().join(PageLanguage::Chinese.page_of(&page));
        if let Ok(text) = fs::read_to_string(&chinese) {
            fs::write(chinese, with_blocks_of(&text, &read_page(&page))).unwrap();
        }
    }
    write_outputs(PageLanguage::Chinese);
}

/// Writes the outputs of all commands into the pages of a language.
fn write_outputs(language: PageLanguage) {
    let pages = filled_example_pages(language).chain(filled_service_pages(language));
    for (page, filled) in pages {
        fs::write(root().join(page), filled).unwrap();
    }
}
