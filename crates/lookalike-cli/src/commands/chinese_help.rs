//! Help and refusals of the command line in Chinese.
//!
//! The definition of the command line stays English. Its texts are replaced before the parser renders them
//! ([`translate_command`]), and the few words of the parser itself afterwards ([`translate_rendered`]).

use clap::builder::StyledStr;
use clap::{Arg, Command};
use unicode_width::UnicodeWidthChar;

use crate::language::engine_phrases::translate_phrase;
use crate::language::help_texts::{find_help_text, translate_help};

/// A place where a line may break. The parser breaks lines at spaces alone, which Chinese does not have. The mark is
/// removed from the rendered text, with the space before it.
const BREAK_MARK: &str = " \u{2063}";

/// A character behind each one that takes two columns of a terminal. The parser counts characters to break lines, so it
/// counts these right. It is removed from the rendered text.
const WIDE_MARK: char = '\u{2064}';

/// Marks behind which a line may break.
const BREAKING_MARKS: [char; 5] = ['，', '。', '；', '：', '、'];

/// The heading of the usage, which stands on the line of the heading.
const USAGE: &str = "Usage:";

/// Headings and marks of the parser that begin a line.
const HEADINGS: [(&str, &str); 5] = [
    (USAGE, "用法："),
    ("Arguments:", "参数："),
    ("Options:", "选项："),
    ("Commands:", "命令："),
    ("Possible values:", "可选值："),
];

/// Words of the parser within lines.
const PARSER_WORDS: [(&str, &str); 8] = [
    ("[default: ", "[默认："),
    (
        "Print help (see more with '--help')",
        "显示帮助（用 '--help' 看全部）",
    ),
    (
        "Print help (see a summary with '-h')",
        "显示帮助（用 '-h' 看简要帮助）",
    ),
    (
        "Print this message or the help of the given subcommand(s)",
        "显示本帮助，或所给命令的帮助",
    ),
    ("Print help", "显示帮助"),
    ("Print version", "显示版本"),
    ("[OPTIONS]", "[选项]"),
    ("[COMMAND]", "[命令]"),
];

/// The help for which texts are replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HelpLength {
    /// The short help, for which defaults and values stay what the parser writes behind a text.
    Short,
    /// The full help, for which they become part of the text, because values have texts of their own there.
    Full,
}

/// Replaces the texts of a command and of all commands in it. `missing` gets each text that has no Chinese.
pub(super) fn translate_command(
    mut command: Command,
    length: HelpLength,
    missing: &mut dyn FnMut(&str),
) -> Command {
    let mut translate = |text: Option<&StyledStr>| {
        text.map(|text| mark_breaks(&translate_help(&text.to_string(), missing)))
    };
    let about = translate(command.get_about());
    let long_about = translate(command.get_long_about());
    let after_help = translate(command.get_after_help());
    let after_long_help = translate(command.get_after_long_help());
    if let Some(text) = about {
        command = command.about(text);
    }
    if let Some(text) = long_about {
        command = command.long_about(text);
    }
    if let Some(text) = after_help {
        command = command.after_help(text);
    }
    if let Some(text) = after_long_help {
        command = command.after_long_help(text);
    }
    command
        .mut_args(|argument| translate_argument(argument, length, missing))
        .mut_subcommands(|command| translate_command(command, length, missing))
}

/// Replaces the texts of an argument, and its heading.
fn translate_argument(argument: Arg, length: HelpLength, missing: &mut dyn FnMut(&str)) -> Arg {
    let heading = argument.get_help_heading().and_then(|heading| {
        let chinese = find_help_text(heading);
        if chinese.is_none() {
            missing(heading);
        }
        chinese
    });
    let mut translate = |text: String| translate_help(&text, missing);
    let help = argument.get_help().map(StyledStr::to_string);
    let help = help.map(&mut translate);
    let long_help = argument.get_long_help().map(StyledStr::to_string);
    let mut long = long_help.map(&mut translate).or_else(|| help.clone());
    let mut short = help;
    let mut argument = argument;
    if length == HelpLength::Full {
        let (values, explained) = list_values(&argument, &mut translate);
        let default = describe_default(&argument);
        for (text, parts, gap) in [
            (&mut long, [&default, &explained], "\n\n"),
            (&mut short, [&default, &values], " "),
        ] {
            let text = text.get_or_insert_default();
            for part in parts.into_iter().flatten() {
                text.push_str(gap);
                text.push_str(part);
            }
        }
        // The parser accepts these settings for options with a value alone.
        if argument.get_action().takes_values() {
            argument = argument.hide_default_value(true).hide_possible_values(true);
        }
    }
    if let Some(short) = short {
        argument = argument.help(mark_breaks(&short));
    }
    if let Some(long) = long {
        argument = argument.long_help(mark_breaks(&long));
    }
    match heading {
        Some(heading) => argument.help_heading(heading),
        None => argument,
    }
}

/// Returns the values of an argument on one line for the short help, and with their texts for the long one.
fn list_values(
    argument: &Arg,
    translate: &mut dyn FnMut(String) -> String,
) -> (Option<String>, Option<String>) {
    let values = argument.get_possible_values();
    let is_listed = argument.get_action().takes_values() && !argument.is_hide_possible_values_set();
    let shown: Vec<_> = values.iter().filter(|value| !value.is_hide_set()).collect();
    if !is_listed || shown.is_empty() {
        return (None, None);
    }
    let names: Vec<_> = shown.iter().map(|value| value.get_name()).collect();
    let line = format!("[可选值：{}]", names.join("、"));
    let mut explained = String::from("可选值：");
    for value in &shown {
        explained.push_str("\n- ");
        explained.push_str(value.get_name());
        if let Some(help) = value.get_help() {
            explained.push('：');
            explained.push_str(&translate(help.to_string()));
        }
    }
    let has_texts = shown.iter().any(|value| value.get_help().is_some());
    let long = if has_texts { explained } else { line.clone() };
    (Some(line), Some(long))
}

fn describe_default(argument: &Arg) -> Option<String> {
    let values = argument.get_default_values();
    let is_shown = argument.get_action().takes_values() && !argument.is_hide_default_value_set();
    let values: Vec<_> = values.iter().map(|value| value.to_string_lossy()).collect();
    (is_shown && !values.is_empty()).then(|| format!("[默认：{}]", values.join("、")))
}

/// Marks the places of a text at which a line may break. Lines of examples are not broken.
fn mark_breaks(text: &str) -> String {
    let mut marked = String::with_capacity(text.len() * 9 / 8);
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        marked.push(character);
        if character.width() == Some(2) {
            marked.push(WIDE_MARK);
        }
        let is_before_end = characters.peek().is_none_or(|next| *next == '\n');
        if BREAKING_MARKS.contains(&character) && !is_before_end {
            marked.push_str(BREAK_MARK);
        }
    }
    marked
}

/// Returns rendered help with the words of the parser in Chinese, and without marks of breaks. Escape sequences of colours
/// stay.
pub(crate) fn translate_rendered(text: &str) -> String {
    let text = text.replace(WIDE_MARK, "");
    let lines = text.split('\n').map(remove_breaks);
    let unmarked = translate_values(&lines.collect::<Vec<_>>().join("\n"));
    let lines = unmarked.split('\n').map(|line| {
        let bare = without_escapes(line);
        let heading = HEADINGS
            .iter()
            .find(|(english, _)| bare.starts_with(english));
        let mut line = match heading {
            Some((english, chinese)) => {
                let line = line.replacen(english, chinese, 1);
                // A full-width colon has its space in it.
                line.replacen(' ', "", usize::from(*english == USAGE))
            }
            None if is_own_heading(&bare) => with_wide_colon(line),
            None => line.to_owned(),
        };
        for (english, chinese) in PARSER_WORDS {
            line = line.replace(english, chinese);
        }
        line
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns `true` for a heading of the definition, behind which the parser writes a colon.
fn is_own_heading(line: &str) -> bool {
    let begins = line.starts_with(|c: char| ('\u{4e00}'..='\u{9fff}').contains(&c));
    begins && line.ends_with(':')
}

/// Returns a heading with a full-width colon. Escape sequences may follow the colon.
fn with_wide_colon(line: &str) -> String {
    match line.rsplit_once(':') {
        Some((heading, rest)) => format!("{heading}：{rest}"),
        None => line.to_owned(),
    }
}

/// Returns a line without the marks of breaks. The space before a mark belongs to it, except where the line was broken and the
/// spaces are those of the indent.
fn remove_breaks(line: &str) -> String {
    let mark = BREAK_MARK.trim_start();
    let words = line.trim_start_matches(' ');
    let indent = &line[..line.len() - words.len()];
    let words = words.strip_prefix(mark).unwrap_or(words);
    format!("{indent}{}", words.replace(BREAK_MARK, ""))
}

/// Replaces the mark before a list of values, also where a line breaks within it.
fn translate_values(text: &str) -> String {
    const FIRST_WORD: &str = "[possible";
    let mut translated = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(FIRST_WORD) {
        translated.push_str(before);
        match after.trim_start().strip_prefix("values:") {
            Some(values) => {
                translated.push_str("[可选值：");
                rest = values.strip_prefix(' ').unwrap_or(values);
            }
            None => {
                translated.push_str(FIRST_WORD);
                rest = after;
            }
        }
    }
    translated + rest
}

/// Returns a refusal of the parser in the language of this process, line by line. A list of values is translated by its
/// heading.
pub(crate) fn translate_refusal(text: &str) -> String {
    let lines = text.split('\n').map(|line| {
        let words = line.trim_start();
        let indent = &line[..line.len() - words.len()];
        if let Some(usage) = words.strip_prefix("Usage: ") {
            return format!("{indent}用法：{}", usage.replace("[OPTIONS]", "[选项]"));
        }
        let values = words.strip_prefix("[possible values: ");
        if let Some(values) = values.and_then(|values| values.strip_suffix(']')) {
            return format!("{indent}[可选值：{}]", values.replace(", ", "、"));
        }
        format!("{indent}{}", translate_phrase(words))
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn without_escapes(line: &str) -> String {
    let mut bare = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, escape)) = rest.split_once('\u{1b}') {
        bare.push_str(before);
        rest = escape.split_once('m').map_or("", |(_, after)| after);
    }
    bare.push_str(rest);
    bare
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::commands::{CommandLine, brief_help};

    #[test]
    fn every_text_of_the_help_has_chinese() {
        let mut missing = Vec::new();
        let mut collect = |text: &str| missing.push(text.to_owned());
        translate_command(CommandLine::command(), HelpLength::Full, &mut collect);
        assert!(missing.is_empty(), "add to help_texts.json: {missing:#?}");
    }

    /// No paragraph of the help of any command is left in English, apart from names, examples and placeholders.
    #[test]
    fn rendered_help_is_chinese() {
        fn check(command: &mut Command, path: &str) {
            for text in [command.render_help(), command.render_long_help()] {
                let text = translate_rendered(&text.to_string());
                assert!(!text.contains(['\u{2063}', WIDE_MARK]), "{path}");
                for english in [
                    "Usage:",
                    "Options:",
                    "Print help",
                    "[default",
                    "possible values",
                ] {
                    assert!(!text.contains(english), "{path}: {english} in {text}");
                }
            }
            for inner in command.get_subcommands_mut() {
                let path = format!("{path} {}", inner.get_name());
                check(inner, &path);
            }
        }
        let command = CommandLine::command();
        let mut command = translate_command(command, HelpLength::Full, &mut |_| {});
        command.build();
        check(&mut command, "lookalike");
    }

    #[test]
    fn short_help_stays_on_a_page() {
        let command = CommandLine::command();
        let command = translate_command(command, HelpLength::Short, &mut |_| {});
        let mut command = brief_help::shorten_help(command);
        command.build();
        for inner in command.get_subcommands_mut() {
            let name = inner.get_name().to_owned();
            let text = translate_rendered(&inner.render_help().to_string());
            assert!(text.lines().count() <= 60, "{name}: {text}");
        }
    }

    #[test]
    fn lines_break_behind_marks_and_nowhere_else() {
        assert_eq!(translate_rendered("输入:"), "输入：");
        assert_eq!(translate_rendered(&mark_breaks("一，二。三")), "一，二。三");
        assert_eq!(
            translate_values("a [possible\n    values: b]"),
            "a [可选值：b]"
        );
        assert_eq!(translate_rendered("  一，\n  \u{2063}二"), "  一，\n  二");
        assert_eq!(
            translate_rendered("\u{1b}[1mUsage:\u{1b}[0m x"),
            "\u{1b}[1m用法：\u{1b}[0mx"
        );
    }
}
