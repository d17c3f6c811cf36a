//! The reference of all commands in Markdown, of which `docs/reference.md` is a copy.

use std::fmt::Write as _;

use clap::builder::StyledStr;
use clap::{Arg, Command};

/// Returns the whole reference.
pub(crate) fn render_reference(mut command: Command) -> String {
    command.build();
    let mut text = String::from(
        "# Reference\n\nGenerated from the definition of the command line by `lookalike \
         reference`.\n",
    );
    let about = command.get_long_about().map(plain_text).unwrap_or_default();
    let _ = write!(text, "\n{about}\n\n{}\n", text_after_options(&command));
    text.push_str("\n## Options of every command\n\n");
    for argument in command
        .get_arguments()
        .filter(|argument| argument.is_global_set())
    {
        append_item(&mut text, argument);
    }
    append_commands(&mut text, "", &command);
    text
}

/// Appends the commands below a command, and those below each of them. `path` is its name with a space behind it.
fn append_commands(text: &mut String, path: &str, command: &Command) {
    let is_shown = |command: &&Command| !command.is_hide_set() && command.get_name() != "help";
    for inner in command.get_subcommands().filter(is_shown) {
        let name = format!("{path}{}", inner.get_name());
        append_section(text, &name, inner);
        append_commands(text, &format!("{name} "), inner);
    }
}

fn plain_text(text: &StyledStr) -> String {
    text.to_string()
}

/// Returns the text after the options, as a code block.
fn text_after_options(command: &Command) -> String {
    let after = command.get_after_long_help().or(command.get_after_help());
    after.map_or_else(String::new, |after| {
        format!("```text\n{}\n```", plain_text(after).trim_end())
    })
}

fn append_section(text: &mut String, name: &str, command: &Command) {
    let about = command
        .get_long_about()
        .or(command.get_about())
        .map(plain_text)
        .unwrap_or_default();
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ");
    let _ = write!(
        text,
        "\n## lookalike {name}\n\n{about}\n\n```text\n{usage}\n```\n"
    );
    let shown = || {
        command
            .get_arguments()
            .filter(|argument| !argument.is_hide_set() && !argument.is_global_set())
    };
    let mut headings: Vec<Option<&str>> = Vec::new();
    for argument in shown() {
        let heading = argument.get_help_heading();
        if !headings.contains(&heading) {
            headings.push(heading);
        }
    }
    headings.sort_by_key(|heading| heading.is_some());
    for heading in headings {
        let title = heading.unwrap_or("Arguments");
        let under_heading = |argument: &&Arg| argument.get_help_heading() == heading;
        let arguments: Vec<_> = shown()
            .filter(under_heading)
            .filter(|argument| !is_help_argument(argument))
            .collect();
        if arguments.is_empty() {
            continue;
        }
        let _ = write!(text, "\n### {title} of `{name}`\n\n");
        for argument in arguments {
            append_item(text, argument);
        }
    }
    let after = text_after_options(command);
    if !after.is_empty() {
        let _ = write!(text, "\n{after}\n");
    }
}

fn is_help_argument(argument: &Arg) -> bool {
    argument.get_id() == "help"
}

fn append_item(text: &mut String, argument: &Arg) {
    let help = argument
        .get_long_help()
        .or(argument.get_help())
        .map(plain_text)
        .unwrap_or_default();
    let help = help.replace(".\n\n", ". ").replace("\n\n", ". ");
    let help = help.replace('\n', " ");
    let stop = if help.ends_with('.') { "" } else { "." };
    let _ = write!(text, "- `{}`: {help}{stop}", option_signature(argument));
    let defaults: Vec<_> = argument
        .get_default_values()
        .iter()
        .map(|value| value.to_string_lossy())
        .collect();
    if argument.get_action().takes_values() && !defaults.is_empty() {
        let _ = write!(text, " Default: `{}`.", defaults.join(","));
    }
    text.push('\n');
    if argument.get_action().takes_values() {
        for value in argument
            .get_possible_values()
            .iter()
            .filter(|value| !value.is_hide_set())
        {
            let help = value.get_help().map(plain_text).unwrap_or_default();
            let _ = writeln!(text, "  - `{}`: {help}.", value.get_name());
        }
    }
}

/// Returns the signature of an argument: `-o, --output OUT`, or the name of a positional argument.
fn option_signature(argument: &Arg) -> String {
    let several = if argument
        .get_num_args()
        .is_some_and(|range| range.max_values() > 1)
    {
        "…"
    } else {
        ""
    };
    let values = argument.get_value_names().unwrap_or_default();
    let value = values
        .first()
        .map(|value| format!("{value}{several}"))
        .unwrap_or_default();
    let Some(long) = argument.get_long() else {
        return value;
    };
    let short = argument
        .get_short()
        .map(|short| format!("-{short}, "))
        .unwrap_or_default();
    if argument.is_require_equals_set() {
        format!("{short}--{long}[={value}]")
    } else if argument.get_action().takes_values() {
        format!("{short}--{long} {value}")
    } else {
        format!("{short}--{long}")
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::commands::CommandLine;

    /// Commands of every depth have a section.
    #[test]
    fn all_commands_are_in_the_reference() {
        let text = render_reference(CommandLine::command());
        for name in [
            "dedup",
            "store verify",
            "store log",
            "store log verify",
            "store log repair",
        ] {
            assert!(text.contains(&format!("\n## lookalike {name}\n")), "{name}");
        }
        assert!(!text.contains(" log help\n"));
    }
}
