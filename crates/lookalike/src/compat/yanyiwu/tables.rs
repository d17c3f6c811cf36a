//! The tables of cppjieba: parsing line by line.

use std::ops::RangeInclusive;

use super::cut::{DictionaryEntry, HiddenMarkovModel, STATE_COUNT, WordCutter, WordDictionary};
use super::lookup3;
use crate::error::{Error, Result};
use crate::text::weight::HashLookup;

/// The text of a table, and its name for messages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct File<'t> {
    pub(crate) name: &'t str,
    pub(crate) text: &'t str,
}

/// The texts of all tables of a recipe.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sources<'t> {
    pub(crate) dictionary: File<'t>,
    pub(crate) user: Option<File<'t>>,
    pub(crate) hmm: File<'t>,
    pub(crate) idf: File<'t>,
    pub(crate) stopwords: File<'t>,
}

/// The parsed tables.
#[derive(Debug)]
pub(crate) struct Tables {
    pub(super) cutter: WordCutter,
    idf: HashLookup,
    /// Idf of a word that is not in the table: the mean of all.
    mean: f64,
    stopwords: HashLookup,
}

/// Largest idf, the same as the largest weight elsewhere.
const MOST: f64 = 1_000_000.0;

/// Largest frequency of a word in a dictionary. With this limit all sums are exact.
const MOST_FREQUENT: f64 = 1e9;

impl<'t> File<'t> {
    fn refusal(self, line: usize, what: impl std::fmt::Display) -> Error {
        Error::recipe_error(format!("{}:{line}: {what}", self.name))
    }

    /// Parses every line with `read`.
    fn rows<T>(self, read: impl Fn(&'t str) -> Result<T, String>) -> Result<Vec<T>> {
        let lines = self.text.lines().enumerate();
        lines
            .map(|(at, line)| read(line).map_err(|what| self.refusal(at + 1, what)))
            .collect()
    }

    /// Parses every line with `read`, and refuses an empty table.
    fn some_rows<T>(self, read: impl Fn(&'t str) -> Result<T, String>) -> Result<Vec<T>> {
        let rows = self.rows(read)?;
        if rows.is_empty() {
            return Err(Error::recipe_error(format!("{} is empty", self.name)));
        }
        Ok(rows)
    }
}

impl Tables {
    /// Parses the tables.
    ///
    /// # Errors
    /// [`ErrorKind::Recipe`](crate::ErrorKind::Recipe), with file and line, if a table is not in the format
    /// of cppjieba.
    pub(crate) fn read(sources: &Sources<'_>) -> Result<Self> {
        let idf = sources.idf.some_rows(idf_row)?;
        let sum: f64 = idf.iter().map(|&(_, idf)| idf).sum();
        let mean = sum / idf.len() as f64;
        // Of equal words the last one counts, but a `HashLookup` keeps the first.
        let values = idf.iter().rev();
        let values = values.map(|&(word, idf)| (key(word), idf.to_bits() as i64));
        let stopwords = sources.stopwords.text.split_terminator('\n');
        Ok(Self {
            cutter: WordCutter {
                dictionary: dictionary(sources)?,
                model: model(sources.hmm)?,
            },
            idf: HashLookup::new(values.collect()),
            mean,
            stopwords: HashLookup::new(stopwords.map(|word| (key(word), 1)).collect()),
        })
    }

    /// Returns the idf of the word with this hash.
    pub(super) fn idf(&self, word: u64) -> f64 {
        let known = self.idf.get(word);
        known.map_or(self.mean, |bits| f64::from_bits(bits as u64))
    }

    /// Returns `true` if the word with this hash is a stopword.
    pub(super) fn is_stopword(&self, word: u64) -> bool {
        self.stopwords.get(word).is_some()
    }
}

fn key(word: &str) -> u64 {
    lookup3::hash_64(word.as_bytes())
}

fn number(field: &str, range: RangeInclusive<f64>, what: &str) -> Result<f64, String> {
    let number = field.parse().ok().filter(|number| range.contains(number));
    number.ok_or_else(|| format!("'{field}' is not a valid {what}"))
}

fn idf_row(line: &str) -> Result<(&str, f64), String> {
    match line.split_terminator(' ').collect::<Vec<_>>()[..] {
        [word, idf] => {
            let what = format!("idf: it is a number from 0 to {MOST}");
            Ok((word, number(idf, 0.0..=MOST, &what)?))
        }
        _ => Err("a line is a word, a space, its idf".into()),
    }
}

fn frequency(field: &str) -> Result<f64, String> {
    let what = format!("frequency: it is a number from 1 to {MOST_FREQUENT}");
    number(field, 1.0..=MOST_FREQUENT, &what)
}

fn dictionary(sources: &Sources<'_>) -> Result<WordDictionary> {
    let mut words = sources.dictionary.some_rows(dictionary_row)?;
    let sum: f64 = words.iter().map(|&(_, frequency)| frequency).sum();
    let weight = |frequency: f64| (frequency / sum).ln();
    for (_, value) in &mut words {
        *value = weight(*value);
    }
    let mut sorted: Vec<f64> = words.iter().map(|&(_, weight)| weight).collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let usual = sorted[sorted.len() / 2];
    let own = match sources.user {
        None => Vec::new(),
        Some(user) => user.rows(user_row)?,
    };
    let own: Vec<DictionaryEntry<'_>> = own
        .into_iter()
        .flatten()
        .map(|(word, frequency)| (word, frequency.map_or(usual, weight)))
        .collect();
    Ok(WordDictionary::new(&words, &own))
}

fn dictionary_row(line: &str) -> Result<DictionaryEntry<'_>, String> {
    match line.split_terminator(' ').collect::<Vec<_>>()[..] {
        [word, count, _] if !word.is_empty() => Ok((word, frequency(count)?)),
        _ => Err(
            "a line is a word, its frequency and its part of speech, separated by spaces".into(),
        ),
    }
}

/// Parses a line of the user's dictionary: `None` if it is empty, otherwise the word and its frequency if it
/// has one.
fn user_row(line: &str) -> Result<Option<(&str, Option<f64>)>, String> {
    match line.split_terminator(' ').collect::<Vec<_>>()[..] {
        [] => Ok(None),
        [word] | [word, _] if !word.is_empty() => Ok(Some((word, None))),
        [word, count, _] if !word.is_empty() => Ok(Some((word, Some(frequency(count)?)))),
        _ => Err(
            "a line is a word, a word and its part of speech, or a word, its frequency and its \
             part of speech, separated by spaces"
                .into(),
        ),
    }
}

/// The lines of a model that are neither empty nor comments.
struct ModelLines<'t> {
    file: File<'t>,
    lines: std::iter::Enumerate<std::str::Lines<'t>>,
}

impl<'t> ModelLines<'t> {
    /// Parses the next line with `read`; `what` describes the line in messages.
    fn next<T>(&mut self, what: &str, read: impl Fn(&'t str) -> Result<T, String>) -> Result<T> {
        let mut lines = (&mut self.lines).map(|(at, line)| (at, line.trim()));
        let line = lines.find(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let Some((at, line)) = line else {
            let end = self.file.text.lines().count() + 1;
            return Err(self.file.refusal(end, format!("expected {what}")));
        };
        read(line).map_err(|error| self.file.refusal(at + 1, format!("{what}: {error}")))
    }
}

fn model(file: File<'_>) -> Result<HiddenMarkovModel> {
    let lines = file.text.lines().enumerate();
    let mut lines = ModelLines { file, lines };
    let start = lines.next("the weights of the four states at the start", state_weights)?;
    let mut steps = [[0.0; STATE_COUNT]; STATE_COUNT];
    for weights in &mut steps {
        *weights = lines.next(
            "the weights of the four states after a state",
            state_weights,
        )?;
    }
    let mut emissions = [const { Vec::new() }; STATE_COUNT];
    for weights in &mut emissions {
        *weights = lines.next("the weights of characters in a state", emissions_of)?;
    }
    Ok(HiddenMarkovModel::new(start, steps, emissions))
}

fn model_weight(field: &str) -> Result<f64, String> {
    let what = "logarithm of a probability: it is a number of at most 0";
    number(field, f64::MIN..=0.0, what)
}

fn state_weights(line: &str) -> Result<[f64; STATE_COUNT], String> {
    let weights: Vec<f64> = line
        .split_terminator(' ')
        .map(model_weight)
        .collect::<Result<_, _>>()?;
    let count = weights.len();
    weights
        .try_into()
        .map_err(|_| format!("there are {count} numbers, but {STATE_COUNT} states"))
}

fn emissions_of(line: &str) -> Result<Vec<(char, f64)>, String> {
    let fields = line.split_terminator(',');
    let emission = |field: &str| {
        let (point, weight) = field
            .split_once(':')
            .ok_or_else(|| format!("'{field}' is not a character, a colon and a weight"))?;
        let mut points = point.chars();
        match (points.next(), points.next()) {
            (Some(point), None) => Ok((point, model_weight(weight)?)),
            _ => Err(format!("'{point}' is not one character")),
        }
    };
    fields.map(emission).collect()
}
