//! Twenty million titles in the window, as clients of the service use it.
//!
//! All titles are sent over HTTP. In the end, all verdicts are compared with those of `dedup` for
//! the same titles and window.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, ensure};
use rayon::prelude::*;
use serde_json::json;

use super::{
    Answer, DOCUMENTS_PER_SECOND, Removed, Row, Service, documents_path, each_removed, report,
    singles,
};
use crate::corpora::Corpus;
use crate::machine;
use crate::serve::{Titles, generated_title};

/// Number of documents per request while the window is filled.
const DOCUMENTS_PER_REQUEST: usize = 500_000;

/// The window, and the duration that the titles are spread over, so that none leaves the window.
const LARGE_WINDOW: &str = "2d";
const TITLE_TIME_SPAN: Duration = Duration::from_secs(40 * 3600);

/// Sizes of the measurements.
struct Sizes {
    many: usize,
    paced: usize,
}

/// Fills the window and measures.
pub(super) fn run(data: &Path, many: usize) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let titles = Titles::read(&Corpus::real(data, "zh_short.tsv", folder.path())?)?;
    let sizes = Sizes {
        many,
        paced: super::PACED_DOCUMENTS,
    };
    let mut rows = Vec::new();
    measure(&titles.texts, &sizes, &mut rows)?;
    machine::write("http_large", rows)
}

/// Runs the benchmark on few titles, as a test.
pub(super) fn smoke(titles: &[String]) -> Result<()> {
    let sizes = Sizes {
        many: 20_000,
        paced: 300,
    };
    measure(titles, &sizes, &mut Vec::new())
}

fn measure(titles: &[String], sizes: &Sizes, rows: &mut Vec<Row>) -> Result<()> {
    let count = sizes.many;
    let stream = Stream::new(titles, count)?;
    let mut service = Service::start()?;
    service.make("many", &json!({ "window": LARGE_WINDOW }))?;
    // The representative of every duplicate.
    let mut repeats = Vec::with_capacity(count);
    let most = count / 10 * 9;
    for from in (0..most).step_by(DOCUMENTS_PER_REQUEST) {
        let lines = stream.lines(from, (from + DOCUMENTS_PER_REQUEST).min(most));
        take(&service.request_lines("many", &lines)?, &mut repeats)?;
    }
    let bodies: Vec<_> = (most..count)
        .step_by(DOCUMENTS_PER_REQUEST)
        .map(|from| stream.lines(from, (from + DOCUMENTS_PER_REQUEST).min(count)))
        .collect();
    let started = Instant::now();
    let answers = bodies
        .iter()
        .map(|lines| service.request_lines("many", lines));
    let answers: Vec<_> = answers.collect::<Result<_>>()?;
    let rate = (count - most) as f64 / started.elapsed().as_secs_f64() / 1e3;
    report(
        rows,
        "bulk, titles".to_owned(),
        count,
        rate,
        "thousand documents/s",
    );
    for answers in answers {
        take(&answers, &mut repeats)?;
    }
    let resident = service.resident()? as f64 / count as f64;
    let what = "resident memory of the process behind it";
    report(rows, what.to_owned(), count, resident, "B/document");

    let paced: Vec<_> = (count..count + sizes.paced)
        .map(|at| stream.line(at))
        .collect();
    singles(
        &service,
        "many",
        "query",
        &paced,
        Some(DOCUMENTS_PER_SECOND),
        rows,
    )?;
    singles(
        &service,
        "many",
        "documents",
        &paced,
        Some(DOCUMENTS_PER_SECOND),
        rows,
    )?;

    service.kill()?;
    let what = "from kill -9 to ready again";
    report(
        rows,
        what.to_owned(),
        count,
        service.restart()?.as_secs_f64(),
        "s",
    );
    service.kill()?;
    service.lose_caches()?;
    let what = "the same with every cache lost";
    report(
        rows,
        what.to_owned(),
        count,
        service.restart()?.as_secs_f64(),
        "s",
    );
    service.kill()?;
    like_a_batch(&stream, count, &repeats)
}

/// Titles with their times.
struct Stream<'a> {
    titles: &'a [String],
    count: usize,
    /// Time of the first title, in seconds since 1970.
    begins: u64,
}

impl<'a> Stream<'a> {
    fn new(titles: &'a [String], count: usize) -> Result<Self> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
        Ok(Self {
            titles,
            count,
            begins: (now - TITLE_TIME_SPAN).as_secs(),
        })
    }

    fn line(&self, at: usize) -> String {
        let passed = at.min(self.count) as u64 * TITLE_TIME_SPAN.as_secs() / self.count as u64;
        json!({
            "id": at.to_string(),
            "text": generated_title(at, self.titles),
            "time": self.begins + passed,
        })
        .to_string()
    }

    fn lines(&self, from: usize, to: usize) -> String {
        let lines = (from..to).into_par_iter().map(|at| self.line(at) + "\n");
        lines.collect()
    }
}

/// Collects the representatives of documents, by number, from answers in their order.
fn take(answers: &str, repeats: &mut Vec<Option<u32>>) -> Result<()> {
    for line in answers.lines() {
        let answer: Answer = serde_json::from_str(line).with_context(|| line.to_owned())?;
        let at = repeats.len();
        ensure!(
            (answer.id.parse(), answer.seq) == (Ok(at), Some(at as u64 + 1)),
            "document {at} was answered {line}"
        );
        ensure!(
            (answer.verdict == "duplicate") == answer.of.is_some(),
            "{line}"
        );
        repeats.push(answer.of.map(|of| of.parse()).transpose()?);
    }
    Ok(())
}

/// Checks that all documents have the verdicts of the batch engine for the same titles and window.
fn like_a_batch(stream: &Stream<'_>, count: usize, repeats: &[Option<u32>]) -> Result<()> {
    ensure!(repeats.len() == count, "{} answers", repeats.len());
    let folder = tempfile::tempdir_in(machine::root())?;
    let mut input = BufWriter::new(File::create(folder.path().join("in.jsonl"))?);
    for from in (0..count).step_by(DOCUMENTS_PER_REQUEST) {
        let lines = stream.lines(from, (from + DOCUMENTS_PER_REQUEST).min(count));
        input.write_all(lines.as_bytes())?;
    }
    input.into_inner()?.sync_all()?;
    let mut expected = vec![None; count];
    let options = ["--window", LARGE_WINDOW, "--time", "time"];
    each_removed(folder.path(), &options, |Removed { id, kept }| {
        expected[id.parse::<usize>()?] = Some(kept.parse::<u32>()?);
        Ok(())
    })?;
    let differ = |&at: &usize| expected[at] != repeats[at];
    let wrong = (0..count).filter(differ).count();
    ensure!(
        wrong == 0,
        "{wrong} answers differ from the batch's, the first of them to {:?}",
        (0..count).find(differ)
    );
    Ok(())
}

impl Service {
    /// Returns the answers to documents in bulk.
    fn request_lines(&self, collection: &str, lines: &str) -> Result<String> {
        let kind = "application/x-ndjson";
        self.request("POST", &documents_path(collection), kind, lines.as_bytes())
    }

    fn kill(&mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Removes files that the service can rebuild.
    fn lose_caches(&self) -> Result<()> {
        let mut folders = vec![self.folder.path().to_owned()];
        let mut lost = 0;
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder)? {
                let path = entry?.path();
                if path.is_dir() {
                    folders.push(path);
                } else if path
                    .extension()
                    .is_some_and(|extension| extension == "sketches")
                {
                    std::fs::remove_file(path)?;
                    lost += 1;
                }
            }
        }
        ensure!(lost > 0, "there are no caches");
        Ok(())
    }
}
