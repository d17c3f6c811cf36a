//! Filled forms, repeats of them and copies of articles: what is lost and what is found.
//!
//! A form has a frame of 30 to 400 tokens and slots for 1 to 30 % of its text: names, numbers, dates, codes, categories and
//! words. One filled form in ten is repeated: verbatim, with a header, or with two edited words outside the slots. Copies
//! of an article have cut ends, headers, footers and edited words. A filled form is lost if neither it nor a repeat of
//! it is kept. Titles have frames of 6 to 28 tokens, and slots also at their edges.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use lookalike_oracle::generate::OracleRandom;
use serde::Serialize;

use crate::{dedup, machine};

/// One line of the table: forms of one size.
#[derive(Serialize)]
struct FormSizeRow {
    language: &'static str,
    corpus: &'static str,
    forms: &'static str,
    documents_of_form: usize,
    filled_forms: usize,
    #[serde(serialize_with = "machine::rounded")]
    lost_percent: f64,
}

/// One line of the table: all forms and articles of a language.
#[derive(Serialize)]
struct FormCorpusRow {
    language: &'static str,
    corpus: &'static str,
    forms: &'static str,
    documents: usize,
    #[serde(serialize_with = "machine::rounded")]
    lost_percent: f64,
    #[serde(serialize_with = "machine::rounded")]
    lost_percent_from_twelve: f64,
    #[serde(serialize_with = "machine::rounded")]
    repeats_removed: f64,
    #[serde(serialize_with = "machine::rounded")]
    copies_removed: f64,
    /// Groups of copies of an article that are kept apart by a form.
    #[serde(serialize_with = "machine::rounded")]
    articles_apart_percent: f64,
}

/// The language of a corpus.
#[derive(Clone, Copy, PartialEq)]
enum FormLanguage {
    English,
    Chinese,
}

impl FormLanguage {
    fn name(self) -> &'static str {
        match self {
            Self::English => "English",
            Self::Chinese => "Chinese",
        }
    }

    /// Returns what stands between two tokens.
    fn separator(self) -> &'static str {
        match self {
            Self::English => " ",
            Self::Chinese => "",
        }
    }
}

/// The sizes of a corpus. Numbers of documents are those of different texts.
struct FormSizes {
    /// Name of a corpus of these sizes in the tables.
    corpus: &'static str,
    /// Tokens of frames.
    frame_tokens: &'static [usize],
    /// Least number of tokens of a frame before the first slot and behind the last one.
    edge_tokens: usize,
    /// Largest number of slots.
    most_slots: usize,
    /// Tokens of articles.
    article_tokens: &'static [usize],
    /// Number of forms for each number of documents.
    forms: Vec<(usize, usize)>,
    /// Number of articles for each number of copies.
    articles: Vec<(usize, usize)>,
    /// Documents that are neither.
    others: usize,
}

impl FormSizes {
    fn full() -> Self {
        Self {
            corpus: "alone",
            frame_tokens: &TEXT_TOKENS,
            edge_tokens: 3,
            most_slots: 24,
            article_tokens: &ARTICLE_TOKENS,
            forms: vec![
                (8, 60),
                (12, 60),
                (20, 40),
                (40, 24),
                (60, 24),
                (150, 12),
                (500, 6),
                (1000, 2),
                (10_000, 1),
            ],
            articles: vec![
                (2, 300),
                (3, 200),
                (6, 150),
                (10, 100),
                (20, 60),
                (50, 20),
                (100, 8),
                (500, 2),
            ],
            others: 0,
        }
    }

    /// The same documents among a hundred times as many others would take hours to generate in every run, so the others
    /// are some twenty times as many as those of the smaller forms.
    fn mixed() -> Self {
        Self {
            corpus: "among others",
            frame_tokens: &TEXT_TOKENS,
            edge_tokens: 3,
            most_slots: 24,
            article_tokens: &ARTICLE_TOKENS,
            forms: vec![(8, 20), (12, 20), (20, 10), (60, 6)],
            articles: vec![(2, 60), (6, 30), (20, 10)],
            others: 100_000,
        }
    }

    /// Titles, such as those of draws and of closing prices. Their slots are also at their edges.
    fn titles() -> Self {
        Self {
            corpus: "titles",
            frame_tokens: &[6, 8, 10, 14, 20, 28],
            edge_tokens: 0,
            most_slots: 3,
            article_tokens: &[10, 14, 20, 28],
            forms: vec![
                (8, 120),
                (12, 120),
                (20, 80),
                (60, 48),
                (150, 24),
                (1000, 4),
            ],
            articles: vec![(2, 300), (3, 200), (6, 150), (10, 100), (20, 60), (50, 20)],
            others: 0,
        }
    }

    fn short() -> Self {
        Self {
            corpus: "short",
            frame_tokens: &TEXT_TOKENS,
            edge_tokens: 3,
            most_slots: 24,
            article_tokens: &ARTICLE_TOKENS,
            forms: vec![(12, 6), (40, 2)],
            articles: vec![(2, 6), (10, 4)],
            others: 20,
        }
    }
}

const TEXT_TOKENS: [usize; 6] = [30, 60, 100, 150, 250, 400];

const ARTICLE_TOKENS: [usize; 4] = [80, 150, 300, 600];

/// The kind of the values of a slot.
#[derive(Clone, Copy)]
enum ValueKind {
    Number,
    SmallNumber,
    Date,
    Name,
    Code,
    Category,
    Words,
}

const VALUE_KINDS: [ValueKind; 9] = [
    ValueKind::Number,
    ValueKind::Date,
    ValueKind::Name,
    ValueKind::Code,
    ValueKind::Category,
    ValueKind::SmallNumber,
    ValueKind::Words,
    ValueKind::Number,
    ValueKind::Name,
];

impl ValueKind {
    /// Returns the number of tokens of a value, about.
    fn tokens(self, language: FormLanguage) -> usize {
        let (english, chinese) = match self {
            Self::Number | Self::SmallNumber | Self::Code => (1, 1),
            Self::Date => (3, 6),
            Self::Name => (2, 3),
            Self::Category => (1, 2),
            Self::Words => (3, 4),
        };
        match language {
            FormLanguage::English => english,
            FormLanguage::Chinese => chinese,
        }
    }
}

/// Kind of a document of the corpus.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum DocumentKind {
    FilledForm { documents_of_form: usize },
    Article,
    Other,
}

struct FormDocument {
    kind: DocumentKind,
    /// Documents with the same number say the same.
    content: usize,
    text: String,
}

/// Writes words and texts.
struct TextWriter {
    language: FormLanguage,
    random: OracleRandom,
}

/// Number of different words.
const VOCABULARY: usize = 6000;

impl TextWriter {
    /// Returns the word with a number: two syllables or more, or two characters.
    fn spell(&self, word: usize) -> String {
        match self.language {
            FormLanguage::English => {
                const CONSONANTS: &[u8] = b"bdfgklmnprstvwz";
                const VOWELS: &[u8] = b"aeiou";
                let mut rest = word;
                let mut spelling = String::new();
                while rest > 0 || spelling.len() < 4 {
                    spelling.push(char::from(CONSONANTS[rest % CONSONANTS.len()]));
                    rest /= CONSONANTS.len();
                    spelling.push(char::from(VOWELS[rest % VOWELS.len()]));
                    rest /= VOWELS.len();
                }
                spelling
            }
            FormLanguage::Chinese => {
                let character =
                    |at: usize| char::from_u32(0x4e00 + at as u32).expect("a character");
                String::from_iter([character(word * 7 % 1900), character(word * 13 / 4 % 1900)])
            }
        }
    }

    /// Returns the tokens of a word; frequent words are more probable.
    fn word(&mut self) -> Vec<String> {
        let word = self.random.next_rank(VOCABULARY);
        self.split_word(word)
    }

    fn split_word(&self, word: usize) -> Vec<String> {
        let spelling = self.spell(word);
        match self.language {
            FormLanguage::English => vec![spelling],
            FormLanguage::Chinese => spelling.chars().map(String::from).collect(),
        }
    }

    /// Returns a text of some tokens, in sentences.
    fn text(&mut self, tokens: usize) -> Vec<String> {
        let mut text = Vec::new();
        let mut sentence = 0;
        while text.len() < tokens {
            text.extend(self.word());
            sentence += 1;
            if sentence > 6 + self.random.next_below(10)
                && let Some(last) = text.last_mut()
            {
                last.push_str(match self.language {
                    FormLanguage::English => ".",
                    FormLanguage::Chinese => "。",
                });
                sentence = 0;
            }
        }
        text.truncate(tokens);
        text
    }

    fn value(&mut self, kind: ValueKind) -> Vec<String> {
        let number = |random: &mut OracleRandom, most: usize| 1 + random.next_below(most);
        match kind {
            ValueKind::Number => vec![number(&mut self.random, 99_999).to_string()],
            ValueKind::SmallNumber => vec![number(&mut self.random, 40).to_string()],
            ValueKind::Date => {
                let year = 2000 + self.random.next_below(26);
                let (month, day) = (number(&mut self.random, 12), number(&mut self.random, 28));
                match self.language {
                    FormLanguage::English => vec![format!("{year}-{month:02}-{day:02}")],
                    FormLanguage::Chinese => vec![format!("{year}年{month}月{day}日")],
                }
            }
            ValueKind::Name => {
                let (first, last) = (self.random.next_below(300), self.random.next_below(600));
                let mut name = self.split_word(1000 + first);
                name.extend(self.split_word(2000 + last));
                name.truncate(kind.tokens(self.language));
                name
            }
            ValueKind::Code => {
                let letter = char::from(b'A' + self.random.next_below(8) as u8);
                vec![format!("{letter}{}", 1000 + self.random.next_below(9000))]
            }
            ValueKind::Category => {
                let category = self.random.next_below(12);
                self.split_word(3000 + category)
            }
            ValueKind::Words => {
                let words = (0..3).flat_map(|_| {
                    let word = self.random.next_below(VOCABULARY);
                    self.split_word(word)
                });
                let mut words: Vec<String> = words.collect();
                words.truncate(kind.tokens(self.language));
                words
            }
        }
    }

    fn join(&self, tokens: &[String]) -> String {
        tokens.join(self.language.separator())
    }

    fn choose<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.random.next_below(choices.len())]
    }
}

/// A corpus of filled forms and articles.
struct FormCorpus {
    writer: TextWriter,
    documents: Vec<FormDocument>,
    contents: usize,
}

impl FormCorpus {
    fn generate(language: FormLanguage, sizes: &FormSizes, seed: u64) -> Self {
        let random = OracleRandom::new(seed);
        let mut corpus = Self {
            writer: TextWriter { language, random },
            documents: Vec::new(),
            contents: 0,
        };
        for &(documents, forms) in &sizes.forms {
            (0..forms).for_each(|_| corpus.add_form(documents, sizes));
        }
        for &(copies, articles) in &sizes.articles {
            (0..articles).for_each(|_| corpus.add_article(copies, sizes));
        }
        for _ in 0..sizes.others {
            let length = corpus.writer.choose(&[30, 60, 120, 250]);
            let text = corpus.writer.text(length);
            corpus.add(DocumentKind::Other, &text);
            corpus.contents += 1;
        }
        corpus.shuffle();
        corpus
    }

    fn shuffle(&mut self) {
        for at in (1..self.documents.len()).rev() {
            let other = self.writer.random.next_below(at + 1);
            self.documents.swap(at, other);
        }
    }

    fn add(&mut self, kind: DocumentKind, tokens: &[String]) {
        self.documents.push(FormDocument {
            kind,
            content: self.contents,
            text: self.writer.join(tokens),
        });
    }

    fn choose_slots(&mut self, frame: usize, most: usize) -> Vec<ValueKind> {
        let share = self.writer.choose(&[1, 3, 5, 8, 12, 20, 30]);
        let mut slots = Vec::new();
        let mut tokens = 0;
        while tokens == 0 || (100 * tokens < share * frame && slots.len() < most) {
            let kind = self.writer.choose(&VALUE_KINDS);
            tokens += kind.tokens(self.writer.language);
            slots.push(kind);
        }
        // Of a few categories and small numbers, two forms would be filled alike by chance.
        let tells_apart =
            |kind: &ValueKind| !matches!(kind, ValueKind::Category | ValueKind::SmallNumber);
        if !slots.iter().any(tells_apart) {
            slots[0] = ValueKind::Name;
        }
        slots
    }

    fn add_form(&mut self, documents_of_form: usize, sizes: &FormSizes) {
        let kind = DocumentKind::FilledForm { documents_of_form };
        let length = self.writer.choose(sizes.frame_tokens);
        let frame = self.writer.text(length);
        let slots = self.choose_slots(length, sizes.most_slots);
        let edge = sizes.edge_tokens;
        let mut places: Vec<usize> = slots
            .iter()
            .map(|_| {
                edge + self
                    .writer
                    .random
                    .next_below(length - 2 * edge + usize::from(edge == 0))
            })
            .collect();
        places.sort_unstable();
        let mut seen = HashSet::new();
        while seen.len() < documents_of_form {
            let values: Vec<Vec<String>> =
                slots.iter().map(|&slot| self.writer.value(slot)).collect();
            if seen.insert(values.clone()) {
                let (text, is_value) = fill_form(&frame, &places, &values);
                self.add(kind, &text);
                if self.writer.random.next_below(10) == 0 {
                    let repeat = self.repeat_form(&text, &is_value);
                    self.add(kind, &repeat);
                }
                self.contents += 1;
            }
        }
    }

    fn repeat_form(&mut self, text: &[String], is_value: &[bool]) -> Vec<String> {
        match self.writer.random.next_below(3) {
            0 => text.to_vec(),
            1 => {
                let header = self.writer.text(2.max(text.len() / 25));
                [&header, text].concat()
            }
            _ => {
                let mut text = text.to_vec();
                for _ in 0..2 {
                    let at = self.writer.random.next_below(text.len());
                    if !is_value[at] {
                        text[at] = self.writer.word().swap_remove(0);
                    }
                }
                text
            }
        }
    }

    fn add_article(&mut self, copies: usize, sizes: &FormSizes) {
        let length = self.writer.choose(sizes.article_tokens);
        let article = self.writer.text(length);
        for copy in 0..copies {
            let mut text = article.clone();
            if copy > 0 {
                self.edit_copy(&mut text);
            }
            self.add(DocumentKind::Article, &text);
        }
        self.contents += 1;
    }

    fn edit_copy(&mut self, text: &mut Vec<String>) {
        let length = text.len();
        let mut happens = |percent: usize| self.writer.random.next_below(100) < percent;
        let (is_cut, is_edited, has_header, has_footer) =
            (happens(40), happens(60), happens(40), happens(40));
        if is_cut {
            text.truncate(length - self.writer.random.next_below(length / 8));
        }
        if is_edited {
            for _ in 0..=self.writer.random.next_below(1.max(length / 50)) {
                let at = self.writer.random.next_below(text.len());
                text[at] = self.writer.word().swap_remove(0);
            }
        }
        if has_header {
            let header = self.writer.text(3.max(length / 16));
            text.splice(0..0, header);
        }
        if has_footer {
            let footer = self.writer.text(3.max(length / 16));
            text.extend(footer);
        }
    }

    fn write(&self, path: &Path) -> Result<()> {
        let mut lines = String::new();
        for (id, document) in self.documents.iter().enumerate() {
            let text = serde_json::to_string(&document.text)?;
            let content = document.content;
            writeln!(
                lines,
                "{{\"id\": {id}, \"content\": {content}, \"text\": {text}}}"
            )?;
        }
        Ok(std::fs::write(path, lines)?)
    }
}

/// Returns the tokens of a filled form, and which of them are values.
fn fill_form(
    frame: &[String],
    places: &[usize],
    values: &[Vec<String>],
) -> (Vec<String>, Vec<bool>) {
    let (mut text, mut is_value) = (Vec::new(), Vec::new());
    let mut start = 0;
    let ends = places.iter().copied().chain([frame.len()]);
    let values = values.iter().map(Vec::as_slice).chain([&[][..]]);
    for (end, value) in ends.zip(values) {
        text.extend_from_slice(&frame[start..end]);
        text.extend_from_slice(value);
        is_value.resize(is_value.len() + end - start, false);
        is_value.resize(text.len(), true);
        start = end;
    }
    (text, is_value)
}

/// Runs the command, and returns for each document whether it is kept.
fn run_command(input: &Path, forms: &str, documents: usize) -> Result<Vec<bool>> {
    let output = input.with_extension("kept.jsonl");
    let status = Command::new(dedup::binary()?)
        .arg("dedup")
        .arg(input)
        .arg("-o")
        .arg(&output)
        .args(["--forms", forms, "--quiet"])
        .status()?;
    ensure!(status.success(), "dedup --forms {forms} failed");
    let mut is_kept = vec![false; documents];
    for line in std::fs::read_to_string(&output)?.lines() {
        let row: serde_json::Value = serde_json::from_str(line)?;
        let id = row["id"].as_u64().context("an id")?;
        is_kept[id as usize] = true;
    }
    Ok(is_kept)
}

/// Returns the contents of which two documents reach the threshold by their similarity alone, equal texts among them.
fn find_similar_contents(input: &Path, corpus: &FormCorpus) -> Result<HashSet<usize>> {
    let output = Command::new(dedup::binary()?)
        .arg("pairs")
        .arg(input)
        .args(["--within", "content", "--forms", "off", "--quiet"])
        .output()?;
    ensure!(output.status.success(), "pairs --within content failed");
    let pairs = String::from_utf8(output.stdout)?;
    let contents = pairs.lines().skip(1).map(|pair| {
        let (id, _) = pair.split_once('\t').context("a pair")?;
        Ok(corpus.documents[id.parse::<usize>()?].content)
    });
    contents.collect()
}

/// Counts over the contents of a corpus.
#[derive(Default)]
struct FormCounts {
    /// By the number of documents of a form: filled forms, and those that are lost.
    by_size: BTreeMap<usize, (usize, usize)>,
    repeats: usize,
    repeats_removed: usize,
    copies: usize,
    copies_removed: usize,
    articles: usize,
    articles_apart: usize,
}

/// Counts what is kept in a run, beside a run without forms. Each has a flag for every document that is kept. `similar` are
/// the contents of which the repeat is similar enough.
fn count_contents(
    corpus: &FormCorpus,
    similar: &HashSet<usize>,
    run: &[bool],
    without: &[bool],
) -> FormCounts {
    let mut contents: HashMap<usize, Vec<usize>> = HashMap::new();
    for (at, document) in corpus.documents.iter().enumerate() {
        contents.entry(document.content).or_default().push(at);
    }
    let mut counts = FormCounts::default();
    for (content, members) in &contents {
        let count_kept = |is_kept: &[bool]| members.iter().filter(|&&at| is_kept[at]).count();
        let (kept, kept_without) = (count_kept(run), count_kept(without));
        match corpus.documents[members[0]].kind {
            DocumentKind::FilledForm { documents_of_form } => {
                let (all, lost) = counts.by_size.entry(documents_of_form).or_default();
                *all += 1;
                *lost += usize::from(kept == 0);
                if similar.contains(content) {
                    counts.repeats += 1;
                    counts.repeats_removed += usize::from(kept <= 1);
                }
            }
            DocumentKind::Article => {
                counts.articles += 1;
                counts.articles_apart += usize::from(kept > kept_without);
                // Copies that are found without forms.
                counts.copies += members.len() - kept_without.max(1);
                counts.copies_removed += members.len() - kept.max(kept_without).max(1);
            }
            DocumentKind::Other => {}
        }
    }
    counts
}

fn percent(part: usize, whole: usize) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}

/// Measures a corpus with and without forms.
fn measure(
    language: FormLanguage,
    sizes: &FormSizes,
    seed: u64,
) -> Result<(Vec<FormSizeRow>, Vec<FormCorpusRow>)> {
    let folder = tempfile::tempdir()?;
    let input = folder.path().join("forms.jsonl");
    let corpus = FormCorpus::generate(language, sizes, seed);
    corpus.write(&input)?;
    let documents = corpus.documents.len();
    let without = run_command(&input, "off", documents)?;
    let with = run_command(&input, "learn", documents)?;
    let similar = find_similar_contents(&input, &corpus)?;
    let (mut size_rows, mut corpus_rows) = (Vec::new(), Vec::new());
    for (forms, run) in [("off", &without), ("learn", &with)] {
        let counts = count_contents(&corpus, &similar, run, &without);
        let mut all = (0, 0);
        let mut from_twelve = (0, 0);
        for (&documents_of_form, &(filled, lost)) in &counts.by_size {
            size_rows.push(FormSizeRow {
                language: language.name(),
                corpus: sizes.corpus,
                forms,
                documents_of_form,
                filled_forms: filled,
                lost_percent: percent(lost, filled),
            });
            all = (all.0 + filled, all.1 + lost);
            if documents_of_form >= 12 {
                from_twelve = (from_twelve.0 + filled, from_twelve.1 + lost);
            }
        }
        corpus_rows.push(FormCorpusRow {
            language: language.name(),
            corpus: sizes.corpus,
            forms,
            documents,
            lost_percent: percent(all.1, all.0),
            lost_percent_from_twelve: percent(from_twelve.1, from_twelve.0),
            repeats_removed: percent(counts.repeats_removed, counts.repeats) / 100.0,
            copies_removed: percent(counts.copies_removed, counts.copies) / 100.0,
            articles_apart_percent: percent(counts.articles_apart, counts.articles),
        });
    }
    Ok((size_rows, corpus_rows))
}

/// Measures both languages: texts alone and mixed into other text, and titles.
pub fn run() -> Result<()> {
    let (mut size_rows, mut corpus_rows) = (Vec::new(), Vec::new());
    for sizes in [FormSizes::full(), FormSizes::mixed(), FormSizes::titles()] {
        for language in [FormLanguage::English, FormLanguage::Chinese] {
            let (sizes, corpora) = measure(language, &sizes, 11)?;
            size_rows.extend(sizes);
            corpus_rows.extend(corpora);
        }
    }
    size_rows.retain(|row| row.forms == "learn");
    machine::write("form_sizes", size_rows)?;
    machine::write("forms", corpus_rows)
}

/// Runs a short form, as a test.
pub fn smoke() -> Result<()> {
    for language in [FormLanguage::English, FormLanguage::Chinese] {
        let (_, rows) = measure(language, &FormSizes::short(), 5)?;
        let [without, with] = &rows[..] else {
            anyhow::bail!("two rows are expected");
        };
        ensure!(
            with.lost_percent < 3.0 && without.lost_percent > 10.0 * with.lost_percent,
            "{} % of the filled forms are lost, {} % without forms",
            with.lost_percent,
            without.lost_percent
        );
        ensure!(
            with.repeats_removed > 0.9 && with.copies_removed > 0.98,
            "{} of the repeats and {} of the copies are removed",
            with.repeats_removed,
            with.copies_removed
        );
    }
    Ok(())
}
