//! The texts of the help in Chinese, by their English.
//!
//! `help_texts.json` has a paragraph or a line of the help in each pair. The English stands in the definition of the command
//! line, from which manual pages and the reference are made; a test names each text without Chinese.

use std::collections::HashMap;
use std::sync::OnceLock;

const HELP_TEXTS_JSON: &str = include_str!("help_texts.json");

/// Returns the catalogue, which is read once.
fn help_texts() -> &'static HashMap<String, String> {
    static READ_TEXTS: OnceLock<HashMap<String, String>> = OnceLock::new();
    READ_TEXTS.get_or_init(|| {
        let pairs: Vec<(String, String)> =
            serde_json::from_str(HELP_TEXTS_JSON).expect("the file is a list of pairs");
        pairs.into_iter().collect()
    })
}

/// Returns the pairs of English and Chinese, to check their typography.
#[cfg(test)]
pub(super) fn help_text_pairs() -> Vec<(&'static str, &'static str)> {
    let pairs = help_texts().iter();
    pairs
        .map(|(english, chinese)| (english.as_str(), chinese.as_str()))
        .collect()
}

/// Returns the Chinese of a text of several paragraphs. `missing` gets each paragraph that has none, which stays English.
pub(crate) fn translate_help(text: &str, missing: &mut dyn FnMut(&str)) -> String {
    let paragraphs = text.split("\n\n");
    let chinese = paragraphs.map(|paragraph| match find_help_text(paragraph) {
        Some(chinese) => chinese.to_owned(),
        None => translate_lines(paragraph, missing),
    });
    chinese.collect::<Vec<_>>().join("\n\n")
}

/// Translates a paragraph line by line, for example a list of examples under a heading.
fn translate_lines(paragraph: &str, missing: &mut dyn FnMut(&str)) -> String {
    let lines = paragraph.split('\n').map(|line| {
        let text = line.trim_start();
        match find_help_text(text) {
            Some(chinese) => format!("{}{chinese}", &line[..line.len() - text.len()]),
            None => {
                if !is_example(line) {
                    missing(line);
                }
                line.to_owned()
            }
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns `true` for a line of an example, which is the same in every language.
fn is_example(line: &str) -> bool {
    line.trim().is_empty() || line.starts_with("  ")
}

/// Returns the Chinese of a paragraph, a line or a heading. The short help has the first paragraph without its full stop.
pub(crate) fn find_help_text(text: &str) -> Option<&'static str> {
    let texts = help_texts();
    let exact = texts.get(text).map(String::as_str);
    exact.or_else(|| {
        let with_stop = texts.get(&*format!("{text}."))?;
        Some(with_stop.trim_end_matches('。'))
    })
}
