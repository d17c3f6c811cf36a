//! Help, version, recipes, and files generated from the definition of the command line.

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
    for hidden in ["completions", "reference"] {
        assert!(!help.text().contains(hidden), "{hidden}");
    }
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
