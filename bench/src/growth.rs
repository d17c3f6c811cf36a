//! The cost of short texts as their number grows: processor time and memory of `dedup` for each text.
//!
//! Titles are made so that the frequencies of character pairs stay proportional to those of `zh_short` at every
//! size: each character follows its predecessor as often as it does there. Six of ten titles are new.
//! Three are an earlier title with one character changed, and one repeats an earlier title. Title n depends on n alone,
//! so a corpus of any size begins with the smaller ones and needs no memory.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use clap::Args;
use lookalike_oracle::generate::{self, CorpusKind};
use serde::Serialize;

use crate::corpora::Corpus;
use crate::hamming::mix;
use crate::serve::Titles;
use crate::{dedup, machine};

/// Sizes of the corpora.
#[derive(Args)]
pub struct GrowthOptions {
    /// Numbers of texts, in millions.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 4, 16])]
    millions: Vec<u64>,
    /// Runs of each size; the median of their processor times counts.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Further arguments of `dedup`.
    #[arg(last = true)]
    options: Vec<String>,
}

#[derive(Serialize)]
struct Row {
    documents: u64,
    kept: u64,
    #[serde(serialize_with = "machine::rounded")]
    seconds: f64,
    /// Processor time for each document.
    #[serde(serialize_with = "machine::rounded")]
    microseconds_a_document: f64,
    /// The same relative to the smallest corpus.
    #[serde(serialize_with = "machine::rounded")]
    growth: f64,
    /// Peak memory for each document.
    #[serde(serialize_with = "machine::rounded")]
    bytes_a_document: f64,
}

/// Measures on two threads.
pub fn run(options: &GrowthOptions, data: &Path) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let titles = Titles::read(&Corpus::real(data, "zh_short.tsv", folder.path())?)?;
    let maker = TitleMaker::new(&titles.texts);
    let mut rows: Vec<Row> = Vec::new();
    for &millions in &options.millions {
        let path = folder.path().join("titles.tsv");
        maker.write_titles(millions * 1_000_000, &path)?;
        let mut row = measure(&path, options)?;
        row.growth = row.microseconds_a_document
            / rows.first().map_or(row.microseconds_a_document, |first| {
                first.microseconds_a_document
            });
        println!(
            "{:11} documents {:8.1} s {:6.2} µs each ({:.2}) {:5.0} bytes each",
            row.documents,
            row.seconds,
            row.microseconds_a_document,
            row.growth,
            row.bytes_a_document
        );
        rows.push(row);
    }
    machine::write("growth", rows)
}

/// Runs a short form on titles made from generated ones, as a test.
pub fn smoke() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let generated = generate::generate_corpus(CorpusKind::Short, 3000, 5);
    let titles: Vec<String> = generated.into_iter().map(|(_, text)| text).collect();
    let path = folder.path().join("titles.tsv");
    TitleMaker::new(&titles).write_titles(20_000, &path)?;
    let options = GrowthOptions {
        millions: Vec::new(),
        rounds: 1,
        options: Vec::new(),
    };
    let row = measure(&path, &options)?;
    // Two in ten of the first titles repeat or nearly repeat earlier ones, at least.
    ensure!(
        row.documents == 20_000 && (1000..16_000).contains(&row.kept),
        "{} of {} titles were kept",
        row.kept,
        row.documents
    );
    Ok(())
}

/// Writes titles to a file.
pub fn write_titles(count: u64, path: &Path, data: &Path) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let titles = Titles::read(&Corpus::real(data, "zh_short.tsv", folder.path())?)?;
    TitleMaker::new(&titles.texts).write_titles(count, path)
}

fn measure(input: &Path, options: &GrowthOptions) -> Result<Row> {
    let mut runs = Vec::new();
    for _ in 0..options.rounds {
        runs.push(run_once(input, options)?);
    }
    runs.sort_by(|a, b| {
        a.microseconds_a_document
            .total_cmp(&b.microseconds_a_document)
    });
    Ok(runs.swap_remove(runs.len() / 2))
}

fn run_once(input: &Path, options: &GrowthOptions) -> Result<Row> {
    let output = input.with_file_name("kept.tsv");
    let report = input.with_file_name("report.json");
    let before = child_seconds()?;
    let begun = std::time::Instant::now();
    let mut child = Command::new(dedup::binary()?)
        .arg("dedup")
        .arg(input)
        .arg("-o")
        .arg(&output)
        .args(["--json", "--quiet", "--threads", "2", "--forms", "off"])
        .args(&options.options)
        .stdout(Stdio::from(File::create(&report)?))
        .spawn()?;
    let mut peak_megabytes = 0.0f64;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        peak_megabytes = peak_megabytes.max(dedup::resident(child.id()));
        std::thread::sleep(std::time::Duration::from_millis(5));
    };
    ensure!(status.success(), "dedup failed");
    let seconds = begun.elapsed().as_secs_f64();
    let report: serde_json::Value = serde_json::from_reader(File::open(&report)?)?;
    let count = |field: &str| {
        report[field]
            .as_u64()
            .with_context(|| format!("no {field}"))
    };
    let documents = count("documents")?;
    Ok(Row {
        documents,
        kept: count("kept")?,
        seconds,
        microseconds_a_document: (child_seconds()? - before) * 1e6 / documents as f64,
        growth: 1.0,
        bytes_a_document: peak_megabytes * 1e6 / documents as f64,
    })
}

/// Returns the processor time of all children that have ended, in seconds.
pub fn child_seconds() -> Result<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields = stat
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .split_whitespace();
    // The fields `cutime` and `cstime`, in ticks of a hundredth of a second.
    let ticks: u64 = fields
        .skip(13)
        .take(2)
        .map(|ticks| ticks.parse().unwrap_or(0))
        .sum();
    Ok(ticks as f64 / 100.0)
}

/// Makes titles whose characters follow each other as those of given titles do.
struct TitleMaker {
    /// All given titles, each followed by [`TITLE_END`].
    characters: Vec<char>,
    /// Places of each character in `characters`, those of one character together, sorted by character.
    places: Vec<u32>,
    /// Start of the places of each character, by its code point.
    starts: Vec<u32>,
}

/// Character behind each title.
const TITLE_END: char = '\n';

impl TitleMaker {
    fn new(titles: &[String]) -> Self {
        let mut characters = vec![TITLE_END];
        for title in titles {
            characters.extend(title.chars());
            characters.push(TITLE_END);
        }
        // The last one has no successor.
        let followed = characters.len() - 1;
        let mut starts = vec![0u32; char::MAX as usize + 2];
        for &character in &characters[..followed] {
            starts[character as usize + 1] += 1;
        }
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let mut next = starts.clone();
        let mut places = vec![0u32; followed];
        for (place, &character) in characters[..followed].iter().enumerate() {
            let at = &mut next[character as usize];
            places[*at as usize] = place as u32;
            *at += 1;
        }
        Self {
            characters,
            places,
            starts,
        }
    }

    /// Writes the titles 0 to `count` as `id`, `text`.
    fn write_titles(&self, count: u64, path: &Path) -> Result<()> {
        let mut file = BufWriter::with_capacity(1 << 20, File::create(path)?);
        writeln!(file, "id\ttext")?;
        let mut title = String::new();
        for number in 0..count {
            self.make_title(number, &mut title);
            writeln!(file, "{number}\t{title}")?;
        }
        // Sync now, because the system would otherwise write it while a benchmark uses the disk.
        file.into_inner()?.sync_all()?;
        Ok(())
    }

    fn make_title(&self, number: u64, title: &mut String) {
        let mut random = RandomNumbers::new(number);
        match random.below(10) {
            0..6 => self.make_new(&mut random, title),
            kind => {
                if number == 0 {
                    return self.make_new(&mut random, title);
                }
                self.make_title(random.below(number), title);
                if kind < 9 {
                    self.change_character(&mut random, title);
                }
            }
        }
    }

    fn make_new(&self, random: &mut RandomNumbers, title: &mut String) {
        title.clear();
        let mut last = TITLE_END;
        loop {
            last = self.successor(last, random);
            if last != TITLE_END {
                title.push(last);
            } else if !title.is_empty() {
                return;
            }
        }
    }

    /// Draws a character that follows `last`.
    fn successor(&self, last: char, random: &mut RandomNumbers) -> char {
        let range = self.starts[last as usize]..self.starts[last as usize + 1];
        let at = range.start + random.below(u64::from(range.end - range.start)) as u32;
        self.characters[self.places[at as usize] as usize + 1]
    }

    /// Replaces one character by another one of the given titles.
    fn change_character(&self, random: &mut RandomNumbers, title: &mut String) {
        let mut characters: Vec<char> = title.chars().collect();
        let at = random.below(characters.len() as u64) as usize;
        let drawn = self.characters[random.below(self.characters.len() as u64) as usize];
        characters[at] = if drawn == TITLE_END { '的' } else { drawn };
        title.clear();
        title.extend(characters);
    }
}

/// Random numbers of one title.
struct RandomNumbers(u64);

impl RandomNumbers {
    fn new(title: u64) -> Self {
        Self(mix(title ^ 0x7469_746c_6573))
    }

    fn below(&mut self, end: u64) -> u64 {
        self.0 = mix(self.0);
        ((u128::from(self.0) * u128::from(end)) >> 64) as u64
    }
}
