//! Labelled pairs made from the real corpora, in one form for every tool.
//!
//! There are three kinds of truth, which are never mixed: judgements of people, edits of people
//! graded by an exact measure, and conversions that preserve the text. The exact measures are
//! independent of our recipes, as sets of strings: character 5-grams of the text without white
//! space for documents, and pairs of neighbouring letters and digits for titles. Pairs at .8 or
//! more are positive, those at .5 or less negative, and the others ungraded. The negatives are the
//! nearest that exist (for example siblings of one template), because random negatives flatter
//! every tool.
//!
//! The texts of a set are split into two halves, and pairs across the halves are left out. Texts of
//! one group or of one connected component of positive pairs stay together. No text is therefore in
//! both the half that settings are chosen on and the half that they are measured on.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result};
use lookalike_oracle::{all_pairs_of_sets, jaccard_index, normalize_text};
use serde_json::{Value, json};

/// The use of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Half {
    /// Choosing settings.
    Tune,
    /// Measuring settings.
    Test,
}

/// Two texts and their label.
pub struct Pair {
    /// Positions in the set's texts.
    pub texts: (usize, usize),
    /// `true` for near-duplicates.
    pub positive: bool,
    /// Kind of edit, if it is known.
    pub kind: Option<String>,
    /// Half that the pair belongs to.
    pub half: Half,
}

/// A labelled set.
pub struct Set {
    /// Name of the corpus.
    pub name: &'static str,
    /// Origin of the labels.
    pub truth: &'static str,
    /// `true` if a positive label means a near-duplicate; other sets are only reported.
    pub near_duplicates: bool,
    /// One text per row that it occurs in.
    pub texts: Vec<String>,
    /// Labelled pairs of these texts.
    pub pairs: Vec<Pair>,
}

const GRADED_BY_5_GRAMS: &str = "natural; character 5-grams: J ≥ .8 against J ≤ .5";
const GRADED_BY_2_GRAMS: &str = "natural; character pairs: J ≥ .8 against J ≤ .5";

/// Similarity from which a pair is positive; it is negative up to [`MAX_NEGATIVE_SIMILARITY`].
const MIN_POSITIVE_SIMILARITY: f64 = 0.8;
const MAX_NEGATIVE_SIMILARITY: f64 = 0.5;

/// Lowest similarity of negatives, because less similar ones would be random.
const MIN_NEGATIVE_SIMILARITY: f64 = 0.2;

/// Largest number of pairs of one label, drawn evenly.
const MAX_PAIRS_PER_LABEL: usize = 10_000;

/// Returns all sets.
pub fn sets(data: &Path) -> Result<Vec<Set>> {
    Ok(vec![
        versions(data, "en_doc_versions")?,
        versions(data, "zh_doc_versions")?,
        questions(data)?,
        grammar(data)?,
        scripts(data)?,
        graded(
            data,
            "debian_descriptions",
            0.4,
            GRADED_BY_5_GRAMS,
            shingles,
        )?,
        graded(
            data,
            "spdx_licences",
            MIN_NEGATIVE_SIMILARITY,
            GRADED_BY_5_GRAMS,
            shingles,
        )?,
        graded(
            data,
            "zh_laws",
            MIN_NEGATIVE_SIMILARITY,
            GRADED_BY_5_GRAMS,
            shingles,
        )?,
        graded(
            data,
            "zh_poems",
            MIN_NEGATIVE_SIMILARITY,
            GRADED_BY_2_GRAMS,
            bigrams,
        )?,
        answers(data)?,
        semantic(data, "zh_semantic_lcqmc_dev")?,
        semantic(data, "zh_semantic_pawsx_zh_dev_2k")?,
    ])
}

/// Writes every set as `NAME/texts.jsonl` (`id, text`), `NAME/tune.jsonl` and `NAME/test.jsonl`
/// (`a, b, label`, and `kind` if known), which `lookalike eval --corpus` reads.
pub fn run(data: &Path, out: &Path) -> Result<()> {
    for set in sets(data)? {
        let folder = out.join(set.name);
        std::fs::create_dir_all(&folder)
            .with_context(|| format!("cannot make {}", folder.display()))?;
        let create = |name: &str| File::create(folder.join(name)).map(BufWriter::new);
        let mut texts = create("texts.jsonl")?;
        for (id, text) in set.texts.iter().enumerate() {
            writeln!(texts, "{}", json!({ "id": id.to_string(), "text": text }))?;
        }
        texts.flush()?;
        for (half, name) in [(Half::Tune, "tune.jsonl"), (Half::Test, "test.jsonl")] {
            let mut pairs = create(name)?;
            for pair in set.pairs.iter().filter(|pair| pair.half == half) {
                writeln!(pairs, "{}", row(pair))?;
            }
            pairs.flush()?;
        }
        let positive = set.pairs.iter().filter(|pair| pair.positive).count();
        println!(
            "{:28} {:6} texts, {:6} positive and {:6} negative pairs: {}",
            set.name,
            set.texts.len(),
            positive,
            set.pairs.len() - positive,
            set.truth
        );
    }
    Ok(())
}

fn row(pair: &Pair) -> Value {
    let (a, b) = pair.texts;
    let mut row = json!({
        "a": a.to_string(),
        "b": b.to_string(),
        "label": i32::from(pair.positive),
    });
    if let Some(kind) = &pair.kind {
        row["kind"] = json!(kind);
    }
    row
}

/// Reads revisions of one page, graded in the file itself.
fn versions(data: &Path, name: &'static str) -> Result<Set> {
    let mut builder = Builder::default();
    for group in rows(data, name)? {
        let first = builder.texts.len();
        for version in list(&group, "versions")? {
            builder.texts.push(text(version, "text")?);
            builder.together.push((first, builder.texts.len() - 1));
        }
        for graded in list(&group, "jaccard5")? {
            let at = |i: usize| graded[i].as_u64().map(|n| first + n as usize);
            let pair = at(0).zip(at(1)).context("a pair has two positions")?;
            let similarity = graded[2].as_f64().context("a pair has an index")?;
            builder.grade(pair, similarity);
        }
    }
    Ok(builder.finish(name, GRADED_BY_5_GRAMS, true))
}

/// Returns the texts of a set of revisions, and the page of each.
pub fn pages_of_versions(data: &Path, name: &str) -> Result<(Vec<String>, Vec<usize>)> {
    let (mut texts, mut pages) = (Vec::new(), Vec::new());
    for (page, group) in rows(data, name)?.iter().enumerate() {
        for version in list(group, "versions")? {
            texts.push(text(version, "text")?);
            pages.push(page);
        }
    }
    Ok((texts, pages))
}

/// Pairs titles of one question that keep half of their character pairs, and titles of different
/// questions.
fn questions(data: &Path) -> Result<Set> {
    let mut builder = Builder::default();
    let mut group_of = Vec::new();
    for (group, row) in rows(data, "zh_question_edits")?.iter().enumerate() {
        let first = builder.texts.len();
        for title in list(row, "texts")? {
            let title = title.as_str().context("a title is a string")?;
            builder.texts.push(title.to_owned());
            builder.together.push((first, builder.texts.len() - 1));
            group_of.push(group);
        }
    }
    let sets: Vec<_> = builder.texts.iter().map(|text| bigrams(text)).collect();
    for (a, b, similarity) in all_pairs_of_sets(&sets, MIN_NEGATIVE_SIMILARITY) {
        let same = group_of[a] == group_of[b];
        if same && similarity >= 0.5 {
            builder.push((a, b), true, None);
        } else if !same && similarity < 0.5 {
            builder.push((a, b), false, None);
        }
    }
    let truth =
        "people's edits that keep J ≥ .5 of character pairs, against other questions' titles";
    Ok(builder.finish("zh_question_edits", truth, true))
}

/// Pairs sentences with their corrections, and with other sentences.
fn grammar(data: &Path) -> Result<Set> {
    let mut builder = Builder::default();
    for row in rows(data, "zh_grammar_edits")? {
        builder.texts.push(text(&row, "a")?);
        builder.texts.push(text(&row, "b")?);
    }
    let sets: Vec<_> = builder.texts.iter().map(|text| bigrams(text)).collect();
    for (a, b, similarity) in all_pairs_of_sets(&sets, 0.1) {
        let same = a / 2 == b / 2;
        if same && similarity >= 0.5 {
            builder.push((a, b), true, None);
        } else if !same && similarity < 0.5 {
            builder.push((a, b), false, None);
        }
    }
    let truth = "people's corrections that keep J ≥ .5 of character pairs, against other sentences";
    Ok(builder.finish("zh_grammar_edits", truth, true))
}

/// Pairs each page with itself in the other script, and with other pages in the other script.
fn scripts(data: &Path) -> Result<Set> {
    let mut builder = Builder::default();
    let mut simplified = Vec::new();
    for row in rows(data, "zh_traditional_simplified")? {
        simplified.push(shingles(&text(&row, "simplified")?));
        builder.texts.push(text(&row, "simplified")?);
        builder.texts.push(text(&row, "traditional")?);
    }
    for page in 0..simplified.len() {
        builder.push((2 * page, 2 * page + 1), true, None);
    }
    for (a, b, similarity) in all_pairs_of_sets(&simplified, 0.05) {
        if similarity <= MAX_NEGATIVE_SIMILARITY {
            builder.push((2 * a, 2 * b + 1), false, None);
        }
    }
    let truth = "one page in two scripts, against its nearest other pages";
    Ok(builder.finish("zh_traditional_simplified", truth, true))
}

/// Reads documents whose pairs are graded by an exact measure if they are at least as similar as
/// `nearest`.
fn graded(
    data: &Path,
    name: &'static str,
    nearest: f64,
    truth: &'static str,
    features: fn(&str) -> Vec<u128>,
) -> Result<Set> {
    let mut builder = Builder::default();
    for row in rows(data, name)? {
        builder.texts.push(text(&row, "text")?);
    }
    let sets: Vec<_> = builder.texts.iter().map(|text| features(text)).collect();
    for (a, b, similarity) in all_pairs_of_sets(&sets, nearest) {
        builder.grade((a, b), similarity);
    }
    Ok(builder.finish(name, truth, true))
}

/// Pairs originals with answers that people copied and revised, and with answers that they wrote
/// themselves.
fn answers(data: &Path) -> Result<Set> {
    let mut builder = Builder::default();
    let rows = rows(data, "plagiarism_answers")?;
    let mut originals = HashMap::new();
    for (at, row) in rows.iter().enumerate() {
        builder.texts.push(text(row, "text")?);
        if text(row, "category")? == "orig" {
            originals.insert(text(row, "task")?, at);
        }
    }
    for (at, row) in rows.iter().enumerate() {
        let kind = text(row, "category")?;
        let original = originals.get(&text(row, "task")?).copied();
        let original = original.context("a task has an original")?;
        if original != at {
            builder.push((original, at), kind != "non", Some(kind));
        }
    }
    Ok(builder.finish(
        "plagiarism_answers",
        "people: copied or revised, against independent",
        false,
    ))
}

/// Reads pairs labelled for meaning, for LCQMC only those whose surface agrees with the label.
fn semantic(data: &Path, name: &'static str) -> Result<Set> {
    let paraphrases = name.contains("lcqmc");
    let mut builder = Builder::default();
    for row in rows(data, name)? {
        let (a, b) = (text(&row, "a")?, text(&row, "b")?);
        let positive = text(&row, "label")? == "1";
        let set = |text: &str| bigrams(text).into_iter().collect::<BTreeSet<_>>();
        let similarity = jaccard_index(&set(&a), &set(&b));
        let differs = similarity <= MAX_NEGATIVE_SIMILARITY;
        let at = builder.texts.len();
        builder.texts.extend([a, b]);
        if !paraphrases
            || (!positive && differs)
            || (positive && similarity >= MIN_POSITIVE_SIMILARITY)
        {
            builder.push((at, at + 1), positive, None);
        }
    }
    let truth = if paraphrases {
        "people: other meaning and J ≤ .5, against same meaning and J ≥ .8"
    } else {
        "people: same words, same or other meaning"
    };
    Ok(builder.finish(name, truth, false))
}

#[derive(Default)]
struct Builder {
    texts: Vec<String>,
    pairs: Vec<((usize, usize), bool, Option<String>)>,
    /// Texts that stay in one half, in addition to positive pairs.
    together: Vec<(usize, usize)>,
}

impl Builder {
    fn push(&mut self, pair: (usize, usize), positive: bool, kind: Option<String>) {
        self.pairs.push((pair, positive, kind));
    }

    fn grade(&mut self, pair: (usize, usize), similarity: f64) {
        if similarity >= MIN_POSITIVE_SIMILARITY || similarity <= MAX_NEGATIVE_SIMILARITY {
            self.push(pair, similarity >= MIN_POSITIVE_SIMILARITY, None);
        }
    }

    fn finish(self, name: &'static str, truth: &'static str, near_duplicates: bool) -> Set {
        let halves = self.halves();
        let (mut positive, mut negative): (Vec<_>, Vec<_>) = self
            .pairs
            .into_iter()
            .filter(|&((a, b), ..)| halves[a] == halves[b])
            .partition(|(_, positive, _)| *positive);
        for pairs in [&mut positive, &mut negative] {
            pairs.sort_by_key(|&((a, b), ..)| mix(mix(a as u64) ^ b as u64));
            pairs.truncate(MAX_PAIRS_PER_LABEL);
            pairs.sort_by_key(|&(pair, ..)| pair);
        }
        positive.append(&mut negative);
        let pairs = positive.into_iter().map(|(texts, positive, kind)| Pair {
            texts,
            positive,
            kind,
            half: halves[texts.0],
        });
        Set {
            name,
            truth,
            near_duplicates,
            pairs: pairs.collect(),
            texts: self.texts,
        }
    }

    /// Returns the half of every text, which is that of the first text of its component.
    fn halves(&self) -> Vec<Half> {
        let mut parent: Vec<usize> = (0..self.texts.len()).collect();
        fn root(parent: &mut [usize], mut at: usize) -> usize {
            while parent[at] != at {
                parent[at] = parent[parent[at]];
                at = parent[at];
            }
            at
        }
        // Use only positive pairs, because near negatives would chain whole corpora together.
        let positive = self.pairs.iter().filter(|(_, positive, _)| *positive);
        for (a, b) in positive
            .map(|&(pair, ..)| pair)
            .chain(self.together.iter().copied())
        {
            let (a, b) = (root(&mut parent, a), root(&mut parent, b));
            parent[a.max(b)] = a.min(b);
        }
        let half = |first: usize| match mix(first as u64) % 2 {
            0 => Half::Tune,
            _ => Half::Test,
        };
        (0..parent.len())
            .map(|at| half(root(&mut parent, at)))
            .collect()
    }
}

/// The finaliser of SplitMix64, used for an even, fixed order.
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// Returns character 5-grams of the text without white space.
fn shingles(text: &str) -> Vec<u128> {
    windows(text.chars().filter(|c| !c.is_whitespace()), 5)
}

/// Returns pairs of neighbouring letters and digits of the normalised text.
fn bigrams(text: &str) -> Vec<u128> {
    windows(
        normalize_text(text).chars().filter(|c| c.is_alphanumeric()),
        2,
    )
}

/// Returns the set of windows of `n` ≤ 6 characters, with 21 bits per character.
fn windows(characters: impl Iterator<Item = char>, n: usize) -> Vec<u128> {
    let characters: Vec<char> = characters.collect();
    let pack = |window: &[char]| window.iter().fold(0, |packed, &c| packed << 21 | c as u128);
    let mut windows: Vec<u128> = characters.windows(n).map(pack).collect();
    windows.sort_unstable();
    windows.dedup();
    windows
}

/// Returns the texts of a corpus whose rows have the field `text`.
pub fn texts(data: &Path, name: &str) -> Result<Vec<String>> {
    let rows = rows(data, name)?;
    rows.iter().map(|row| text(row, "text")).collect()
}

fn rows(data: &Path, name: &str) -> Result<Vec<Value>> {
    let path = data.join(format!("{name}.jsonl.zst"));
    let file = File::open(&path)
        .with_context(|| format!("cannot open {}: give --data", path.display()))?;
    let lines = BufReader::new(zstd::Decoder::new(file)?).lines();
    lines
        .map(|line| Ok(serde_json::from_str(&line?)?))
        .collect()
}

fn list<'a>(row: &'a Value, field: &str) -> Result<&'a Vec<Value>> {
    row[field]
        .as_array()
        .with_context(|| format!("'{field}' is a list"))
}

fn text(row: &Value, field: &str) -> Result<String> {
    let text = row[field].as_str();
    Ok(text
        .with_context(|| format!("'{field}' is a string"))?
        .to_owned())
}
