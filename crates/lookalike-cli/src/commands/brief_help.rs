//! The short help of a command (`-h`), which fits on a page.
//!
//! The full help (`--help`), the manual pages and the reference have every option with all of its text. The short
//! help has the options that most runs need, each with the first clause of its text.

use std::ffi::OsString;

use clap::builder::StyledStr;
use clap::{Arg, Command};
use unicode_width::UnicodeWidthStr;

use crate::language::messages;

/// Longest text of an option, in columns of a terminal. A longer one is cut after a clause.
const LONGEST_TEXT: usize = 72;

/// Marks after which a text goes into details, and the shortest clause before each that says enough, in
/// columns.
const CLAUSE_ENDS: [(&str, usize); 8] = [
    ("; ", 12),
    ("；", 12),
    (": ", 12),
    ("：", 12),
    (" (", 22),
    ("（", 22),
    (", ", 22),
    ("，", 22),
];

/// Options that few runs need. Only the full help has them.
const RARE_OPTIONS: [&str; 53] = [
    "allow-empty",
    "audit-seed",
    "body-timeout",
    "candidates",
    "components",
    "connections-per-address",
    "contradictory",
    "copies",
    "cuts",
    "decisions",
    "delimiter",
    "digits",
    "distance",
    "document-per-file",
    "drain",
    "drop-all",
    "encoding",
    "features",
    "fingerprint",
    "hashes",
    "header-timeout",
    "id-row",
    "keep-count",
    "kind",
    "log-requests",
    "lossy",
    "max-body",
    "max-header",
    "max-passage-steps",
    "max-row",
    "max-verification-steps",
    "min-length",
    "most-sources",
    "negative",
    "no-header",
    "passage-memory",
    "positive",
    "rejected",
    "resamples",
    "resume",
    "scratch",
    "seed",
    "sentences",
    "set",
    "slow-request",
    "sources",
    "strict",
    "texts",
    "traces",
    "trusted-proxy",
    "unit",
    "weight",
    "weight-by",
];

/// Options whose values the short help lists.
const LISTED_VALUES: [&str; 4] = ["method", "verify", "passages", "by"];

/// Returns `true` if the arguments may ask for the short help. Otherwise the texts need not be shortened.
pub(super) fn may_be_wanted(arguments: &[OsString]) -> bool {
    arguments.iter().skip(1).any(|argument| {
        let argument = argument.as_encoded_bytes();
        argument.starts_with(b"-") && !argument.starts_with(b"--") && argument.contains(&b'h')
    })
}

/// Shortens the short help of a command and of all commands in it.
pub(super) fn shorten_help(command: Command) -> Command {
    let is_rare = |argument: &Arg| {
        let is_named = |name| RARE_OPTIONS.contains(&name);
        argument.is_global_set() || argument.get_long().is_some_and(is_named)
    };
    let has_rare = command.get_arguments().any(is_rare);
    let command = command
        .mut_args(|argument| {
            let is_hidden = argument.is_hide_short_help_set() || is_rare(&argument);
            let text = argument.get_help().map(StyledStr::to_string);
            let hides_values = argument.get_action().takes_values()
                && argument
                    .get_long()
                    .is_some_and(|name| !LISTED_VALUES.contains(&name));
            let mut argument = argument.hide_short_help(is_hidden);
            if hides_values {
                argument = argument.hide_possible_values(true);
            }
            match text {
                Some(text) => argument.help(first_clause(&text).to_owned()),
                None => argument,
            }
        })
        .mut_subcommands(shorten_help);
    if !has_rare {
        return command;
    }
    let examples = command.get_after_help().map(StyledStr::to_string);
    let examples = examples.map_or_else(String::new, |examples| examples + "\n\n");
    command.after_help(examples + &messages::help_has_more())
}

/// Returns the first clause of a text: a sentence or, if that is long, the part of it before a semicolon, colon,
/// bracket or comma.
fn first_clause(text: &str) -> &str {
    let sentence = text.split_once(". ").map_or(text, |(first, _)| first);
    let sentence = sentence
        .split_once('。')
        .map_or(sentence, |(first, _)| first);
    let fits = |clause: &str| {
        let opened = clause.matches(['(', '（']).count();
        clause.width() <= LONGEST_TEXT && opened == clause.matches([')', '）']).count()
    };
    if fits(sentence) {
        return sentence;
    }
    let mut clauses = CLAUSE_ENDS.into_iter().filter_map(|(mark, shortest)| {
        let (clause, _) = sentence.split_once(mark)?;
        (fits(clause) && clause.width() >= shortest).then_some(clause)
    });
    clauses.next().unwrap_or(sentence)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::commands::CommandLine;

    #[test]
    fn clauses_are_cut_where_they_end() {
        for (text, clause) in [
            ("Number of threads", "Number of threads"),
            (
                "Maximum size of a row: bytes, or with the unit K, M, G (of 1000) or Ki, Mi, Gi (of 1024)",
                "Maximum size of a row",
            ),
            (
                "Inputs: files, directories, globs, URLs, or - for standard input (read as JSONL unless --format is given)",
                "Inputs: files, directories, globs, URLs, or - for standard input",
            ),
            (
                "Stop at the first bad row. `dedup` does more",
                "Stop at the first bad row",
            ),
        ] {
            assert_eq!(first_clause(text), clause);
        }
    }

    #[test]
    fn rare_options_exist() {
        fn has_option(command: &Command, name: &str) -> bool {
            let mut own = command.get_arguments();
            own.any(|argument| argument.get_long() == Some(name))
                || command
                    .get_subcommands()
                    .any(|subcommand| has_option(subcommand, name))
        }
        let command = CommandLine::command();
        for name in RARE_OPTIONS {
            assert!(has_option(&command, name), "{name}");
        }
    }
}
