//! Help, version, recipes, and files generated from the definition of the command line.

use lookalike_oracle::effort::is_long_run;

use crate::support::Place;

#[test]
fn help_and_version_go_to_standard_output() {
    let place = Place::new();
    let commands = [
        "--help",
        "-h",
        "--version",
        "dedup --help",
        "pairs -h",
        "explain --help",
        "recipe --help",
    ];
    for line in commands {
        let ran = place.ok(line);
        assert!(!ran.out.is_empty() && ran.err.is_empty(), "{line}");
    }
    let help = place.ok("--help");
    assert!(help.text().contains("Exit codes:") && help.text().contains("NO_COLOR"));
    assert!(!help.text().contains("reference"));
    let ran = place.run("");
    assert_eq!((ran.code, ran.out.is_empty()), (Some(2), true));
    assert!(ran.err.contains("dedup"));
}

#[test]
fn every_option_has_a_help_text() {
    let place = Place::new();
    for command in ["dedup", "pairs", "explain", "eval", "tune", "recipe"] {
        let help = place.ok(&format!("{command} --help"));
        assert!(help.text().contains("Example"), "{command} has no example");
        for line in place
            .ok("reference")
            .text()
            .lines()
            .filter(|line| line.starts_with("- `"))
        {
            let (_, help) = line.split_once("`: ").unwrap();
            assert!(help.len() > 10, "{line}");
        }
    }
}

#[test]
fn recipes_are_listed_and_printed() {
    let place = Place::new();
    let list = place.ok("recipe");
    for name in ["default-1", "default ", "words-3", "characters-3"] {
        assert!(list.text().contains(name), "{name}");
    }
    let printed = place.ok("recipe words-3");
    assert!(printed.text().contains("ngram = 3"));
    let id = printed
        .text()
        .lines()
        .next()
        .unwrap()
        .strip_prefix("# id ")
        .unwrap();
    let listed = list
        .text()
        .lines()
        .find(|line| line.starts_with("words-3"))
        .unwrap();
    assert!(listed.contains(id));
    place.write("mine.toml", &printed.out);
    assert_eq!(place.ok("recipe mine.toml").out, printed.out);
    assert_eq!(place.ok("recipe ./mine.toml").out, printed.out);
}

#[test]
fn completions_and_manual_are_generated() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = place.ok(&format!("completions {shell}"));
        assert!(script.text().contains("threshold"), "{shell}");
    }
    let manual = place.ok("man");
    assert!(manual.text().contains(".TH lookalike") && manual.text().contains("threshold"));
}

/// Returns the commands of the program, also those within others, as the reference lists them.
fn commands(place: &Place) -> Vec<String> {
    let reference = place.ok("reference");
    let titles = reference.text().lines();
    let titles = titles.filter_map(|line| line.strip_prefix("## lookalike "));
    titles.map(str::to_owned).collect()
}

#[test]
fn each_command_has_a_manual_page() {
    let place = Place::new();
    assert!(place.ok("man -o share/man1").out.is_empty());
    let commands = commands(&place);
    assert!(commands.len() > 30, "{commands:?}");
    for command in &commands {
        let page = format!("share/man1/lookalike-{}.1", command.replace(' ', "-"));
        let page = place.read(&page);
        assert!(
            page.contains(".SH OPTIONS") || page.contains(".SH SUBCOMMANDS"),
            "{command}"
        );
    }
    let whole = place.read("share/man1/lookalike.1");
    assert!(whole.contains("lookalike\\-dedup(1)"), "{whole}");
    place.write("file", "");
    place.refused(
        "man -o file/man1",
        &["cannot write manual pages to file/man1"],
    );
}

/// The short help fits on a page, and the full help has everything, also by `help COMMAND`.
#[test]
fn short_help_fits_on_a_page() {
    let place = Place::new();
    for command in commands(&place).iter().map(String::as_str).chain([""]) {
        let brief = place.ok(&format!("{command} -h"));
        let lines = brief.text().lines().count();
        assert!(lines <= 60, "{command}: {lines} lines");
        let full = place.ok(&format!("{command} --help"));
        let has_more = full.text().lines().count() > lines;
        assert!(!has_more || brief.text().contains("--help"), "{command}");
        let asked = place.ok(&format!("help {command}"));
        assert_eq!(asked.text(), full.text(), "{command}");
    }
    let brief = place.ok("dedup -h");
    for option in ["--threshold", "--method", "--verify", "--keep", "Examples:"] {
        assert!(brief.text().contains(option), "{option}");
    }
    assert!(
        !brief.text().contains("--scratch")
            && place.ok("dedup --help").text().contains("--scratch")
    );
    place.refused("help nothing", &["unrecognized subcommand"]);
}

#[test]
fn color_is_chosen_by_an_option() {
    let place = Place::new();
    let line = "compare --literal one%20two one%20three";
    let shown = |options: &str, no_color: bool| {
        let mut command = place.command(&format!("{line} {options}"));
        if no_color {
            command.env("NO_COLOR", "1");
        }
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{options}");
        output.stdout.contains(&0x1b)
    };
    for (options, no_color, expected) in [
        ("", false, false),
        ("--color auto", false, false),
        ("--color never", false, false),
        ("--color always", false, true),
        ("--color=always", true, true),
    ] {
        assert_eq!(shown(options, no_color), expected, "{options}");
    }
    // Also in help, refusals and before the command.
    assert!(place.ok("dedup -h --color always").out.contains(&0x1b));
    let refused = place.run("dedup --nonsense --color always");
    assert!(
        refused.err.starts_with("\u{1b}[1;31mlookalike:"),
        "{}",
        refused.err
    );
    let first = place.ok("--color always recipe --help");
    assert!(first.out.contains(&0x1b));
    place.refused("--color blue recipe", &["invalid value 'blue'", "always"]);
}

/// A run without a terminal says after 30 seconds how far it is; with `--quiet` it does not.
#[test]
fn progress_is_a_line_every_30_seconds() {
    // It waits.
    if !is_long_run() {
        return;
    }
    let place = Place::new();
    let waits = |line: &str| {
        let mut child = place.spawn(line);
        let input = child.stdin.take();
        (child, input)
    };
    let (told, input) = waits("dedup - -o out.jsonl");
    let (quiet, other) = waits("dedup - -o quiet.jsonl --quiet");
    std::thread::sleep(std::time::Duration::from_millis(30_500));
    for mut input in [input, other].into_iter().flatten() {
        std::io::Write::write_all(&mut input, crate::support::row("a", "one text").as_bytes())
            .unwrap();
    }
    let told = crate::support::Ran::from(told.wait_with_output().unwrap());
    assert!(
        told.err.starts_with("reading for ") && told.code == Some(0),
        "{}",
        told.err
    );
    let quiet = crate::support::Ran::from(quiet.wait_with_output().unwrap());
    assert!(
        quiet.err.is_empty() && quiet.code == Some(0),
        "{}",
        quiet.err
    );
}

#[test]
fn reference_equals_the_option_definitions() {
    let place = Place::new();
    let made = place.ok("reference");
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference.md");
    let checked_in = std::fs::read_to_string(file).unwrap_or_default();
    assert!(
        made.text() == checked_in,
        "docs/reference.md is stale: cargo run -p lookalike-cli -- reference > docs/reference.md"
    );
}

#[test]
fn colour_is_for_terminals_only() {
    let place = Place::new();
    for line in [
        "--help",
        "recipe",
        "dedup --explain-plan",
        "dedup --nonsense",
    ] {
        let ran = place.run(line);
        assert!(
            !ran.err.contains('\u{1b}') && !ran.text().contains('\u{1b}'),
            "{line}"
        );
    }
}
