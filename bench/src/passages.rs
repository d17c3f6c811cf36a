//! Copied passages: what is found of planted ones, and how fast.
//!
//! Passages of 50 to 500 words (twice as many characters) are taken from documents of one kind and put into
//! documents of another kind, changed by a known amount; a fifth of the documents have none. Sources that share
//! passages with one another are left out, because a passage would have several true sources. The command's table is
//! scored over characters (Potthast et al. 2010).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use lookalike::Recipe;
use lookalike::passages::{PassageFinder, PassageIndex, PassageSettings, PassageSource, Winnower};
use lookalike::quality::passages::{PassagePlace, PassageScores, score_passages};
use lookalike::text::{SpanTokenizer, SpannedTokens};
use lookalike_oracle::generate::OracleRandom;
use serde::Serialize;
use serde_json::Value;

use crate::corpora::Corpus;
use crate::{dedup, machine};

/// How a passage is changed.
#[derive(Clone, Copy)]
enum Change {
    /// Words (characters) are replaced, deleted or inserted.
    Edit,
    /// The sentences are shuffled, and then edited.
    Reorder,
    /// The words (characters) of groups of five are shuffled, and then edited.
    Shuffle,
}

impl Change {
    fn name(self) -> &'static str {
        match self {
            Self::Edit => "edited",
            Self::Reorder => "sentences shuffled, edited",
            Self::Shuffle => "words shuffled, edited",
        }
    }
}

/// Changes and their strengths in percent of the words (groups of five).
const PLANTED_CHANGES: [(Change, u32); 10] = [
    (Change::Edit, 0),
    (Change::Edit, 5),
    (Change::Edit, 10),
    (Change::Edit, 20),
    (Change::Edit, 30),
    (Change::Edit, 40),
    (Change::Reorder, 0),
    (Change::Reorder, 10),
    (Change::Shuffle, 20),
    (Change::Shuffle, 40),
];

#[derive(Serialize)]
struct PlantedRow {
    corpus: &'static str,
    change: &'static str,
    percent: u32,
    /// Found with `--reworded`.
    reworded: bool,
    passages: usize,
    #[serde(serialize_with = "machine::rounded")]
    precision: f64,
    #[serde(serialize_with = "machine::rounded")]
    recall: f64,
    #[serde(serialize_with = "machine::rounded")]
    granularity: f64,
    #[serde(serialize_with = "machine::rounded")]
    plagdet: f64,
}

#[derive(Serialize)]
struct SpeedRow {
    what: String,
    #[serde(serialize_with = "machine::rounded")]
    value: f64,
    unit: &'static str,
}

/// Texts by id.
type Documents = Vec<(String, String)>;

/// A corpus of planted passages.
struct PlantedCorpus {
    documents: Documents,
    sources: Documents,
    truth: Vec<PassagePlace>,
}

/// Returns `true` in so many of 100 cases.
fn happens(random: &mut OracleRandom, percent: f64) -> bool {
    random.next_below(1_000_000) < (percent * 10_000.0) as usize
}

fn shuffle<T>(random: &mut OracleRandom, items: &mut [T]) {
    for at in (1..items.len()).rev() {
        items.swap(at, random.next_below(at + 1));
    }
}

/// Returns the words of a text with the white space behind them, or its characters.
fn units(text: &str, is_chinese: bool) -> Vec<&str> {
    if is_chinese {
        return text
            .char_indices()
            .map(|(at, character)| &text[at..at + character.len_utf8()])
            .collect();
    }
    let mut units = Vec::new();
    let mut start = 0;
    let ends = text.char_indices().zip(text.chars().skip(1));
    for ((at, character), next) in ends {
        if character.is_whitespace() && !next.is_whitespace() {
            let end = at + character.len_utf8();
            units.push(&text[start..end]);
            start = end;
        }
    }
    units.push(&text[start..]);
    units
}

/// Returns a changed passage.
fn change_passage(
    passage: &[&str],
    change: Change,
    percent: u32,
    words: &[&str],
    random: &mut OracleRandom,
) -> String {
    let percent = f64::from(percent);
    let mut sentences: Vec<Vec<&str>> = vec![Vec::new()];
    for unit in passage {
        sentences.last_mut().expect("there is one").push(unit);
        let ends = |unit: &&str| {
            unit.trim_end()
                .ends_with(['.', '!', '?', '。', '！', '？', '；'])
                || unit.contains('\n')
        };
        if ends(unit) {
            sentences.push(Vec::new());
        }
    }
    if matches!(change, Change::Reorder) {
        shuffle(random, &mut sentences);
    }
    let mut units = sentences.concat();
    if matches!(change, Change::Shuffle) {
        for group in units.chunks_mut(5) {
            if happens(random, percent) {
                shuffle(random, group);
            }
        }
    }
    let mut changed = String::new();
    for unit in units {
        let step = happens(random, percent).then(|| random.next_below(3));
        if step != Some(0) && step != Some(1) {
            changed.push_str(unit);
        }
        if step == Some(1) || step == Some(2) {
            changed.push_str(words[random.next_below(words.len())]);
        }
    }
    changed
}

impl PlantedCorpus {
    fn new(
        hosts: &Documents,
        sources: &Documents,
        is_chinese: bool,
        change: Change,
        percent: u32,
        count: usize,
    ) -> Self {
        let mut random = OracleRandom::new(1);
        let words: Vec<&str> = hosts
            .iter()
            .rev()
            .take(50)
            .flat_map(|host| units(&host.1, is_chinese))
            .collect();
        let mut planted = Self {
            documents: Vec::new(),
            sources: sources.clone(),
            truth: Vec::new(),
        };
        for number in 0..count {
            let (_, host) = &hosts[number % hosts.len()];
            let id = format!("h{number}");
            if number % 5 == 0 {
                planted.documents.push((id, host.clone()));
                continue;
            }
            let at = number % sources.len();
            let parts = units(&sources[at].1, is_chinese);
            let wanted = (50 + random.next_below(450)) * if is_chinese { 2 } else { 1 };
            let length = wanted.min(parts.len());
            let start = random.next_below(parts.len() - length + 1);
            let passage = change_passage(
                &parts[start..start + length],
                change,
                percent,
                &words,
                &mut random,
            );
            let host_parts = units(host, is_chinese);
            let cut = random.next_below(host_parts.len());
            let mut text = host_parts[..cut].concat();
            let begin = text.chars().count();
            text.push_str(&passage);
            let end = text.chars().count();
            text.push(' ');
            text.push_str(&host_parts[cut..].concat());
            let characters = |range: &[&str]| range.concat().chars().count() as u64;
            let source_start = characters(&parts[..start]);
            planted.truth.push(PassagePlace {
                document: number as u32,
                source: at as u32,
                range: begin as u64..end as u64,
                source_range: source_start
                    ..source_start + characters(&parts[start..start + length]),
            });
            planted.documents.push((id, text));
        }
        planted
    }

    /// Runs the command and scores its table.
    fn score(&self, reworded: bool, folder: &Path) -> Result<PassageScores> {
        let documents = Corpus::from_documents("documents", &self.documents, folder)?;
        let sources = Corpus::from_documents("sources", &self.sources, folder)?;
        let options: &[&str] = if reworded { &["--reworded"] } else { &[] };
        let rows = run_command(&documents.path, Some(&sources.path), options, folder)?;
        let number_of = |documents: &Documents| -> BTreeMap<String, u32> {
            (0..)
                .zip(documents)
                .map(|(number, document)| (document.0.clone(), number))
                .collect()
        };
        let (documents, sources) = (number_of(&self.documents), number_of(&self.sources));
        let place = |row: &Value| -> Result<PassagePlace> {
            let id = |name: &str| row[name].as_str().unwrap_or_default();
            let end = |name: &str| row[name].as_u64().with_context(|| format!("no {name}"));
            Ok(PassagePlace {
                document: documents[id("document")],
                source: sources[id("source")],
                range: end("start")?..end("end")?,
                source_range: end("source_start")?..end("source_end")?,
            })
        };
        let found = rows.iter().map(place).collect::<Result<Vec<_>>>()?;
        Ok(score_passages(&found, &self.truth))
    }
}

/// Runs `lookalike passages` and returns the rows of its table.
fn run_command(
    documents: &Path,
    against: Option<&Path>,
    options: &[&str],
    folder: &Path,
) -> Result<Vec<Value>> {
    let out = folder.join("passages.jsonl");
    let mut command = Command::new(dedup::binary()?);
    command
        .arg("passages")
        .arg(documents)
        .arg("--quiet")
        .arg("-o")
        .arg(&out)
        .args(options);
    if let Some(against) = against {
        command.arg("--against").arg(against);
    }
    ensure!(command.status()?.success(), "passages failed");
    let table = std::fs::read_to_string(&out)?;
    table
        .lines()
        .map(|line| Ok(serde_json::from_str(line)?))
        .collect()
}

/// Returns those of some documents that share no passage with one another.
fn without_shared(documents: Documents, folder: &Path) -> Result<Documents> {
    let corpus = Corpus::from_documents("candidates", &documents, folder)?;
    let options = ["--max-documents", "none", "--min-length", "8"];
    let rows = run_command(&corpus.path, None, &options, folder)?;
    let names = rows
        .iter()
        .flat_map(|row| [&row["document"], &row["source"]]);
    let shared: BTreeSet<&str> = names.filter_map(Value::as_str).collect();
    Ok(documents
        .into_iter()
        .filter(|document| !shared.contains(&*document.0))
        .collect())
}

/// Returns the documents of a corpus whose number of characters is in a range, at most `most` of them.
fn documents_of(
    corpus: &Corpus,
    characters: std::ops::Range<usize>,
    most: usize,
) -> Result<Documents> {
    let texts = corpus.texts()?.into_iter().enumerate();
    let fits = |document: &(usize, String)| characters.contains(&document.1.chars().count());
    let named = texts
        .filter(fits)
        .map(|(at, text)| (format!("{} {at}", corpus.name), text));
    Ok(named.take(most).collect())
}

/// Measures on two threads.
pub fn run(data: &Path) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let real = |name| Corpus::real(data, name, folder.path());
    let (english, chinese) = (real("en_docs.jsonl")?, real("zh_docs.jsonl")?);
    let mut speed = measure_pairs()?;
    for corpus in [&english, &chinese] {
        speed.extend(measure_index(corpus)?);
        speed.extend(measure_run(corpus, false, folder.path())?);
    }
    let news = real("bbc_news.jsonl")?;
    for (corpus, reworded) in [(&news, false), (&news, true), (&english, true)] {
        speed.extend(measure_run(corpus, reworded, folder.path())?);
    }
    machine::write("passages_speed", speed)?;
    machine::write("passages_answers", measure_answers(data, folder.path())?)?;
    let laws = real("zh_laws.jsonl")?;
    let sources = [
        without_shared(documents_of(&news, 1500..100_000, 2000)?, folder.path())?,
        without_shared(documents_of(&chinese, 1500..20_000, 4000)?, folder.path())?,
    ];
    let hosts = [
        documents_of(&english, 2000..20_000, 1000)?,
        documents_of(&laws, 1500..200_000, 1000)?,
    ];
    let mut rows = Vec::new();
    for (at, name) in [(0, "English"), (1, "Chinese")] {
        for (change, percent) in PLANTED_CHANGES {
            let planted =
                PlantedCorpus::new(&hosts[at], &sources[at], at == 1, change, percent, 300);
            for reworded in [false, true] {
                rows.push(planted_row(
                    name,
                    change,
                    percent,
                    &planted,
                    reworded,
                    folder.path(),
                )?);
            }
        }
    }
    machine::write("passages", rows)
}

fn planted_row(
    corpus: &'static str,
    change: Change,
    percent: u32,
    planted: &PlantedCorpus,
    reworded: bool,
    folder: &Path,
) -> Result<PlantedRow> {
    let scores = planted.score(reworded, folder)?;
    let row = PlantedRow {
        corpus,
        change: change.name(),
        percent,
        reworded,
        passages: planted.truth.len(),
        precision: scores.precision.unwrap_or(0.0),
        recall: scores.recall.unwrap_or(0.0),
        granularity: scores.granularity.unwrap_or(1.0),
        plagdet: scores.plagdet.unwrap_or(0.0),
    };
    println!(
        "{corpus:8} {:28} {percent:2} % {:10} precision {:.3}, recall {:.3}, granularity {:.3}, plagdet {:.3}",
        row.change,
        if reworded { "--reworded" } else { "" },
        row.precision,
        row.recall,
        row.granularity,
        row.plagdet
    );
    Ok(row)
}

/// Text of made words.
fn made_text(words: usize, random: &mut OracleRandom) -> String {
    let mut text = String::new();
    for _ in 0..words {
        let _ = write!(text, "w{} ", random.next_below(20_000));
    }
    text
}

/// Measures pairs of texts in memory, from texts to passages: half of one is in the other.
fn measure_pairs() -> Result<Vec<SpeedRow>> {
    let mut rows = Vec::new();
    for (words, rounds) in [(330, 2000), (66_000, 10)] {
        let mut random = OracleRandom::new(7);
        let made: Vec<(String, String)> = (0..rounds)
            .map(|_| {
                let a = made_text(words, &mut random);
                let half = &a[..a[..a.len() / 2].rfind(' ').unwrap_or(0)];
                let b = format!("{} {half}", made_text(words / 2, &mut random));
                (a, b)
            })
            .collect();
        let settings = PassageSettings::default();
        let tokenizer = SpanTokenizer::new(&Recipe::default());
        let (mut finder, mut source) = (PassageFinder::new(settings), PassageSource::default());
        let (mut of_a, mut of_b) = (SpannedTokens::default(), SpannedTokens::default());
        let mut best = f64::INFINITY;
        for _ in 0..5 {
            let started = Instant::now();
            for (a, b) in &made {
                tokenizer.tokenize_text(a, &mut of_a)?;
                tokenizer.tokenize_text(b, &mut of_b)?;
                source.set_tokens(of_a.values(), settings, None);
                finder.set_document(of_b.values(), None);
                let found = finder.find_passages(&source);
                ensure!(
                    found.len() == 1,
                    "{} passages in a pair that shares one",
                    found.len()
                );
            }
            best = best.min(started.elapsed().as_secs_f64() / f64::from(rounds));
        }
        rows.push(report_speed(
            format!("a pair of texts of {words} words"),
            best * 1e6,
            "µs",
        ));
    }
    Ok(rows)
}

fn report_speed(what: String, value: f64, unit: &'static str) -> SpeedRow {
    println!("{what}: {value:.3} {unit}");
    SpeedRow { what, value, unit }
}

/// Measures the index of about 100 MB of a corpus in memory, and look-ups in it. All cores build it, except for the
/// sort of the texts. Documents of about 5 kB are looked up, and each is compared with all of its candidates.
fn measure_index(corpus: &Corpus) -> Result<Vec<SpeedRow>> {
    use rayon::prelude::*;
    let settings = PassageSettings::default();
    let tokenizer = SpanTokenizer::new(&Recipe::default());
    let mut texts = corpus.texts()?;
    let mut bytes = 0;
    texts.retain(|text| {
        bytes += text.len();
        bytes <= 100_000_000
    });
    let bytes: usize = texts.iter().map(String::len).sum();
    let started = Instant::now();
    let select = |(winnower, tokens, selected): &mut (Winnower, SpannedTokens, Vec<_>),
                  text: &String| {
        tokenizer.tokenize_text(text, tokens)?;
        winnower.select_grams(tokens.values(), selected);
        Ok::<_, lookalike::Error>(
            selected
                .iter()
                .map(|gram: &lookalike::passages::SelectedGram| gram.hash)
                .collect::<Vec<_>>(),
        )
    };
    let scratch = || {
        (
            Winnower::new(settings),
            SpannedTokens::default(),
            Vec::new(),
        )
    };
    let hashes = texts
        .par_iter()
        .map_init(scratch, select)
        .collect::<Result<Vec<_>, _>>()?;
    let pairs = (0..)
        .zip(&hashes)
        .flat_map(|(document, hashes): (u32, _)| hashes.iter().map(move |&hash| (hash, document)));
    let index = PassageIndex::from_pairs(pairs.collect(), Some(100));
    let seconds = started.elapsed().as_secs_f64();
    let name = &corpus.name;
    let mut rows = vec![
        report_speed(
            format!("index of {name}, two threads"),
            bytes as f64 / seconds / 1e6,
            "MB/s",
        ),
        report_speed(
            format!("index of {name}, memory"),
            index.memory_bytes() as f64 / bytes as f64,
            "bytes for a byte of text",
        ),
    ];
    let queries: Vec<usize> = (0..texts.len())
        .filter(|&at| (4500..5500).contains(&texts[at].len()))
        .take(300)
        .collect();
    let (mut finder, mut source) = (PassageFinder::new(settings), PassageSource::default());
    let (mut winnower, mut tokens, mut selected) = scratch();
    let (mut candidates, mut of_source) = (Vec::new(), SpannedTokens::default());
    let started = Instant::now();
    for &at in &queries {
        tokenizer.tokenize_text(&texts[at], &mut tokens)?;
        winnower.select_grams(tokens.values(), &mut selected);
        index.find_candidates(&selected, &mut candidates);
        finder.set_document(tokens.values(), None);
        let mut found = 0;
        for candidate in &candidates {
            tokenizer.tokenize_text(&texts[candidate.document as usize], &mut of_source)?;
            source.set_tokens(of_source.values(), settings, None);
            found += finder.find_passages(&source).len();
        }
        ensure!(
            found > 0 || selected.is_empty(),
            "a document shares passages with itself"
        );
    }
    let each = started.elapsed().as_secs_f64() / queries.len().max(1) as f64;
    rows.push(report_speed(
        format!("a document of 5 kB against {name}"),
        each * 1e3,
        "ms",
    ));
    Ok(rows)
}

#[derive(Serialize)]
struct AnswerRow {
    min_length: u32,
    /// Area under the ROC curve between answers of a category and independent ones, by the largest share of an answer
    /// that is in passages of one original text.
    #[serde(serialize_with = "machine::rounded")]
    copied: f64,
    #[serde(serialize_with = "machine::rounded")]
    light: f64,
    #[serde(serialize_with = "machine::rounded")]
    heavy: f64,
    #[serde(serialize_with = "machine::rounded")]
    all: f64,
}

/// Measures how well the copied share separates the answers of `plagiarism_answers` by their category.
fn measure_answers(data: &Path, folder: &Path) -> Result<Vec<AnswerRow>> {
    let packed = std::fs::File::open(data.join("plagiarism_answers.jsonl.zst"))?;
    let rows = String::from_utf8(zstd::stream::decode_all(packed)?)?;
    let rows = rows.lines().map(serde_json::from_str::<Value>);
    let rows = rows.collect::<Result<Vec<_>, _>>()?;
    let text = |row: &Value, name: &str| row[name].as_str().unwrap_or_default().to_owned();
    let named = |is_original: bool| -> Documents {
        let chosen = rows
            .iter()
            .filter(|row| (row["category"] == "orig") == is_original);
        chosen
            .map(|row| (text(row, "id"), text(row, "text")))
            .collect()
    };
    let answers = Corpus::from_documents("answers", &named(false), folder)?;
    let originals = Corpus::from_documents("originals", &named(true), folder)?;
    let mut measured = Vec::new();
    for min_length in [12, 8, 5, 4, 3] {
        let output = Command::new(dedup::binary()?)
            .args([
                "passages",
                "--json",
                "--show=1000",
                "--max-documents",
                "none",
            ])
            .args(["--min-length", &min_length.to_string(), "--against"])
            .arg(&originals.path)
            .arg("--")
            .arg(&answers.path)
            .output()?;
        ensure!(output.status.success(), "passages failed");
        let summary: Value = serde_json::from_slice(&output.stdout)?;
        let mut shares = BTreeMap::new();
        for pair in summary["most_copied"].as_array().into_iter().flatten() {
            let share = shares.entry(text(pair, "document")).or_insert(0.0);
            *share = pair["share"].as_f64().unwrap_or(0.0).max(*share);
        }
        let shares_of = |categories: &[&str]| -> Vec<f64> {
            let of_them = rows
                .iter()
                .filter(|row| categories.contains(&&*text(row, "category")));
            of_them
                .map(|row| shares.get(&text(row, "id")).copied().unwrap_or(0.0))
                .collect()
        };
        let independent = shares_of(&["non"]);
        let separation =
            |categories: &[&str]| area_under_curve(&shares_of(categories), &independent);
        let row = AnswerRow {
            min_length,
            copied: separation(&["cut"]),
            light: separation(&["light"]),
            heavy: separation(&["heavy"]),
            all: separation(&["cut", "light", "heavy"]),
        };
        println!(
            "answers, {min_length:2} words: cut {:.3}, light {:.3}, heavy {:.3}, all {:.3}",
            row.copied, row.light, row.heavy, row.all
        );
        measured.push(row);
    }
    Ok(measured)
}

/// Returns the share of pairs in which the first is larger; equal ones count half.
fn area_under_curve(positive: &[f64], negative: &[f64]) -> f64 {
    let score = |a: f64, b: f64| match a.total_cmp(&b) {
        std::cmp::Ordering::Greater => 1.0,
        std::cmp::Ordering::Equal => 0.5,
        std::cmp::Ordering::Less => 0.0,
    };
    let pairs = positive
        .iter()
        .flat_map(|&a| negative.iter().map(move |&b| score(a, b)));
    pairs.sum::<f64>() / (positive.len() * negative.len()).max(1) as f64
}

/// Measures the command on a whole corpus.
fn measure_run(corpus: &Corpus, reworded: bool, folder: &Path) -> Result<Vec<SpeedRow>> {
    let options: &[&str] = if reworded { &["--reworded"] } else { &[] };
    let out: PathBuf = folder.join("all.tsv");
    let started = Instant::now();
    let mut child = Command::new(dedup::binary()?)
        .args(["passages", "--quiet", "--threads", "2", "-o"])
        .arg(&out)
        .arg(&corpus.path)
        .args(options)
        .spawn()?;
    let mut peak: f64 = 0.0;
    let status = loop {
        peak = peak.max(dedup::resident(child.id()));
        if let Some(status) = child.try_wait()? {
            break status;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    };
    ensure!(status.success(), "passages failed");
    let seconds = started.elapsed().as_secs_f64();
    let name = [&[corpus.name.as_str()], options].concat().join(" ");
    Ok(vec![
        report_speed(
            format!("all passages within {name}, two threads"),
            seconds,
            "s",
        ),
        report_speed(
            format!("all passages within {name}, peak memory"),
            peak,
            "MB",
        ),
    ])
}

/// Runs a short form, as a test.
pub fn smoke() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let mut random = OracleRandom::new(3);
    let mut make = |name: &str, count: usize| -> Documents {
        (0..count)
            .map(|at| (format!("{name}{at}"), made_text(700, &mut random)))
            .collect()
    };
    let (hosts, sources) = (make("h", 40), make("s", 40));
    for (change, percent, reworded, least) in [
        (Change::Edit, 0, false, 0.99),
        (Change::Edit, 10, false, 0.92),
        (Change::Reorder, 5, false, 0.9),
        (Change::Shuffle, 40, true, 0.9),
    ] {
        let planted = PlantedCorpus::new(&hosts, &sources, false, change, percent, 40);
        let row = planted_row("made", change, percent, &planted, reworded, folder.path())?;
        ensure!(
            row.plagdet >= least,
            "plagdet {} is below {least}",
            row.plagdet
        );
    }
    measure_pairs()?;
    Ok(())
}
