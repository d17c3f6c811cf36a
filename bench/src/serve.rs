//! Durable check and insert: the service without HTTP.
//!
//! Documents are prepared on all cores, and checked and inserted some thousands at a time. They are
//! acknowledged once they are on disk, while the next ones are checked. The answers are checked: a
//! stream of titles with a window gets the same verdicts as the batch engine gives to the same
//! titles.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use lookalike::dedup::{self, DocumentSource, MatchCorpus as Run, find_verdicts};
use lookalike::plan::{self, MatchMethod, MatchPlan, SimilarityMeasure};
use lookalike::stream::{StreamWindow, Timestamp};
use lookalike::text::{AnalysisScratch, TextAnalyzer};
use lookalike::{Cpu, DocId, DocumentSketcher};
use lookalike_oracle::generate::{self, CorpusKind};
use lookalike_store::{
    AdmittedDocuments, Collection, CollectionOptions, CollectionSettings, DiskFolder,
    DocumentContent, InsertAnswer, NewDocument, PendingInsert, StoredVerdict,
};
use rayon::prelude::*;
use serde::Serialize;

use crate::corpora::Corpus;
use crate::machine;

/// A figure of the service, as the results file has it.
#[derive(Serialize)]
pub(crate) struct Row {
    pub(crate) what: String,
    pub(crate) documents: u64,
    #[serde(serialize_with = "machine::rounded")]
    pub(crate) figure: f64,
    pub(crate) unit: &'static str,
}

/// Number of documents that are synced to disk while the next ones are inserted.
const SYNCED_DOCUMENTS: usize = 4096;

/// Percentage of a generated stream that repeats an earlier title.
const REPEATED_PERCENT: u64 = 40;

/// Documents in the window of the largest collections.
const LARGE_WINDOW_DOCUMENTS: usize = 50_000_000;

const DAY_MICROSECONDS: i64 = 86_400_000_000;

/// Number of single documents that are timed.
const SINGLE_DOCUMENTS: usize = 2000;

/// Documents that arrive per second while each is timed, and the longest duration in seconds.
const ARRIVALS_PER_SECOND: u32 = 2000;
const LONGEST_SECONDS: u32 = 10;

/// Number of threads that wait for the answers to these.
const CLIENT_THREADS: u32 = 16;

/// The measurements.
#[derive(clap::Args)]
pub struct Selection {
    /// Documents that are made for the large window.
    #[arg(long, default_value_t = 20_000_000)]
    many: usize,
    /// Only these, to look at; nothing is written.
    #[arg(long, value_delimiter = ',')]
    only: Vec<Part>,
    /// Nothing but fifty million in the window, with the default recipe and with SimHash; takes half an
    /// hour and 12 GB of disk.
    #[arg(long, conflicts_with_all = ["many", "only"])]
    large: bool,
}

/// A part of the measurements.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// A stream of titles with a window, against a batch.
    Stream,
    /// Titles into an empty collection.
    Titles,
    /// The same with SimHash.
    Simhash,
    /// English documents into an empty collection.
    English,
    /// Titles in a window of many documents.
    Many,
    /// The same with SimHash and a quarter of the documents.
    ManySimhash,
}

const ALL: [Part; 6] = [
    Part::Stream,
    Part::Titles,
    Part::Simhash,
    Part::English,
    Part::Many,
    Part::ManySimhash,
];

/// Measures on real titles, and with many titles made from them in the window.
pub fn run(data: &Path, selection: &Selection) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let titles = Titles::read(&Corpus::real(data, "zh_short.tsv", folder.path())?)?;
    let english = Corpus::real(data, "en_docs.jsonl", folder.path())?.texts()?;
    let mut rows = Vec::new();
    if selection.large {
        with_many(
            "default",
            &titles.texts,
            LARGE_WINDOW_DOCUMENTS,
            plan::MatchSettings::default(),
            &mut rows,
        )?;
        with_many(
            "SimHash",
            &titles.texts,
            LARGE_WINDOW_DOCUMENTS,
            simhash(),
            &mut rows,
        )?;
        return machine::write("serve_large", rows);
    }
    let some = !selection.only.is_empty();
    let parts = if some { &selection.only } else { &ALL[..] };
    for &part in parts {
        measure(part, &titles, &english, selection.many, &mut rows)?;
    }
    if some {
        return Ok(());
    }
    machine::write("serve", rows)
}

/// Runs the benchmark on few documents, as a test.
pub fn smoke() -> Result<()> {
    let made = |kind, count| {
        let made = generate::generate_corpus(kind, count, 5).into_iter();
        made.map(|(_, text)| text).collect::<Vec<_>>()
    };
    let texts = made(CorpusKind::Short, 3000);
    let days = (0..texts.len()).map(|at| at as i64 / 10).collect();
    let titles = Titles { texts, days };
    let english = made(CorpusKind::English, 200);
    ALL.into_iter()
        .try_for_each(|part| measure(part, &titles, &english, 5000, &mut Vec::new()))
}

/// Titles in the order of their dates.
pub(crate) struct Titles {
    pub(crate) texts: Vec<String>,
    /// Days since 1970.
    pub(crate) days: Vec<i64>,
}

impl Titles {
    pub(crate) fn read(corpus: &Corpus) -> Result<Self> {
        let file = std::fs::read_to_string(&corpus.path)?;
        let mut titles = Vec::new();
        for line in file.lines().skip(1) {
            let mut cells = line.splitn(4, '\t').skip(1);
            let date = cells.next().context("a row has no date")?;
            let day = day(date).with_context(|| format!("'{date}' is no date"))?;
            titles.push((day, cells.nth(1).unwrap_or_default().to_owned()));
        }
        // Each source is ordered by date; sorting merges them into one stream.
        titles.sort_by_key(|&(day, _)| day);
        let (days, texts) = titles.into_iter().unzip();
        Ok(Self { texts, days })
    }
}

/// Returns the days since 1970 of a Gregorian date, from the number of leap years before it.
fn day(date: &str) -> Option<i64> {
    let mut parts = date.splitn(3, '-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    // Years begin in March here, so that a leap day is the last day.
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let leap = year / 4 - year / 100 + year / 400;
    Some(365 * year + leap + (153 * month + 2) / 5 + day - 719_469)
}

fn measure(
    part: Part,
    titles: &Titles,
    english: &[String],
    many: usize,
    rows: &mut Vec<Row>,
) -> Result<()> {
    let default = plan::MatchSettings::default();
    match part {
        Part::Stream => stream_like_a_batch(titles, rows),
        Part::Titles => bulk("titles, default", &titles.texts, default, rows),
        Part::Simhash => bulk("titles, SimHash", &titles.texts, simhash(), rows),
        Part::English => bulk("English documents", english, default, rows),
        Part::Many => with_many("default", &titles.texts, many, default, rows),
        Part::ManySimhash => with_many("SimHash", &titles.texts, many / 4, simhash(), rows),
    }
}

/// Returns settings that match by SimHash alone.
fn simhash() -> plan::MatchSettings {
    plan::MatchSettings {
        method: MatchMethod::SimHash,
        measure: SimilarityMeasure::Sketch,
        ..plan::MatchSettings::default()
    }
}

fn report(rows: &mut Vec<Row>, what: &str, documents: usize, figure: f64, unit: &'static str) {
    println!("{what:60} {documents:9} {figure:10.3} {unit}");
    rows.push(Row {
        what: what.to_owned(),
        documents: documents as u64,
        figure,
        unit,
    });
}

/// A collection in its own folder. All documents state their times, so the clock of the collection
/// does not matter.
pub(crate) struct Place {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) collection: Collection,
}

fn options() -> CollectionOptions {
    CollectionOptions {
        clock: Arc::new(|| Timestamp(i64::MAX)),
        ..CollectionOptions::default()
    }
}

impl Place {
    fn new(settings: &CollectionSettings) -> Result<Self> {
        Self::with_options(settings, options())
    }

    pub(crate) fn with_options(
        settings: &CollectionSettings,
        options: CollectionOptions,
    ) -> Result<Self> {
        let folder = tempfile::tempdir_in(machine::root())?;
        let disk = Arc::new(DiskFolder::open(folder.path())?);
        let collection = Collection::create_empty(disk, settings, options)?;
        Ok(Self { folder, collection })
    }

    /// Closes the collection and opens it again. Returns the duration of opening.
    fn reopen(self) -> Result<(Self, Duration)> {
        let Self { folder, collection } = self;
        drop(collection);
        let started = Instant::now();
        let collection =
            Collection::open_existing(Arc::new(DiskFolder::open(folder.path())?), options())?;
        Ok((Self { folder, collection }, started.elapsed()))
    }

    fn memory(&self) -> Result<u64> {
        let stats = self.collection.collect_stats()?;
        Ok(stats.memory.iter().map(|(_, bytes)| bytes).sum())
    }
}

/// Prepares and inserts a stream that `make` generates in batches, and calls `answered` with the
/// answers. Returns the total duration.
pub(crate) fn insert(
    collection: &Collection,
    count: usize,
    make: impl Fn(usize) -> NewDocument + Sync,
    mut answered: impl FnMut(Vec<InsertAnswer>) -> Result<()>,
) -> Result<Duration> {
    let started = Instant::now();
    std::thread::scope(|scope| {
        let (sender, receiver) = sync_channel::<Result<Vec<PendingInsert>>>(4);
        let make = &make;
        scope.spawn(move || {
            for start in (0..count).step_by(SYNCED_DOCUMENTS) {
                let prepared = (start..(start + SYNCED_DOCUMENTS).min(count))
                    .into_par_iter()
                    .map_init(AnalysisScratch::default, |scratch, at| {
                        Ok(collection.prepare_document(make(at), scratch)?)
                    });
                if sender.send(prepared.collect()).is_err() {
                    return;
                }
            }
        });
        let (admitted, settled) = sync_channel::<Result<AdmittedDocuments>>(2);
        scope.spawn(move || {
            for prepared in receiver {
                let documents = prepared.map(|prepared| collection.admit_documents(&prepared));
                if admitted.send(documents).is_err() {
                    return;
                }
            }
        });
        for documents in settled {
            let answers: Result<Vec<_>, _> = collection
                .wait_until_durable(documents?)
                .into_iter()
                .collect();
            answered(answers?)?;
        }
        Ok(started.elapsed())
    })
}

fn document(at: usize, text: &str, time: i64) -> NewDocument {
    NewDocument {
        id: format!("{at}"),
        content: DocumentContent::Text(text.to_owned()),
        time: Some(Timestamp(time)),
        meta: None,
    }
}

/// Inserts the titles with a window of half a year, which holds some 400,000 of them. The verdicts
/// must be those of the batch engine, before and after the collection is opened again in the
/// middle.
fn stream_like_a_batch(titles: &Titles, rows: &mut Vec<Row>) -> Result<()> {
    let days = 180;
    let width = Duration::from_micros(days * DAY_MICROSECONDS.unsigned_abs());
    let settings = CollectionSettings {
        window: Some(StreamWindow::new(width, Duration::ZERO, false)?),
        ..CollectionSettings::default()
    };
    let expected = in_a_batch(titles, &settings.match_plan()?, days as f64)?;
    let mut place = Place::new(&settings)?;
    let mut at = 0;
    let mut took = Duration::ZERO;
    let half = titles.texts.len() / 2;
    for (from, to) in [(0, half), (half, titles.texts.len())] {
        let make = |at: usize| {
            document(
                from + at,
                &titles.texts[from + at],
                titles.days[from + at] * DAY_MICROSECONDS,
            )
        };
        took += insert(&place.collection, to - from, make, |answers| {
            for answer in answers {
                let found = match &answer.verdict {
                    StoredVerdict::Kept => None,
                    StoredVerdict::Duplicate(best) => {
                        Some((best.of.clone(), best.similarity, best.route))
                    }
                };
                ensure!(
                    found == expected[at],
                    "document {at}: {found:?}, not {:?}",
                    expected[at]
                );
                at += 1;
            }
            Ok(())
        })?;
        place = place.reopen()?.0;
    }
    let rate = titles.texts.len() as f64 / took.as_secs_f64();
    report(
        rows,
        "titles in a window of half a year",
        at,
        rate / 1e3,
        "thousand/s",
    );
    Ok(())
}

type Found = Option<(String, f64, lookalike::similarity::Route)>;

fn in_a_batch(titles: &Titles, plan: &MatchPlan, days: f64) -> Result<Vec<Found>> {
    struct Again<'a>(&'a TextAnalyzer, &'a [String]);
    impl DocumentSource for Again<'_> {
        fn append_features(&self, document: DocId, into: &mut Vec<u64>) -> lookalike::Result<()> {
            let text = &self.1[document.index()];
            self.0
                .analyze_text(text, &mut AnalysisScratch::default())
                .append_features(into);
            Ok(())
        }
    }
    let recipe = lookalike::Recipe::default();
    let analyzer = TextAnalyzer::new(&recipe);
    let sketcher = DocumentSketcher::new(&recipe, plan, Cpu::detect_best());
    let mut sketches = sketcher.new_sketches(1 << 28);
    let mut scratch = AnalysisScratch::default();
    for text in &titles.texts {
        sketcher.add_document(&analyzer.analyze_text(text, &mut scratch), &mut sketches);
    }
    let times: Vec<f64> = titles.days.iter().map(|&day| day as f64).collect();
    let run = Run {
        plan,
        sketches: &sketches,
        texts: &Again(&analyzer, &titles.texts),
        order: None,
        partitions: None,
        window: Some(dedup::TimeWindow {
            times: &times,
            width: days,
        }),
        known_prefix: 0,
        decisions: None,
    };
    let mut found = vec![None; titles.texts.len()];
    for removal in find_verdicts(&run, &|_| {})?.removals {
        let kept = removal.kept;
        let evidence = (
            kept.with.index().to_string(),
            kept.similarity.get(),
            kept.route,
        );
        found[removal.document.index()] = Some(evidence);
    }
    Ok(found)
}

/// Measures bulk insertion into an empty collection, and the time to open it again.
fn bulk(
    name: &str,
    texts: &[String],
    matching: plan::MatchSettings,
    rows: &mut Vec<Row>,
) -> Result<()> {
    let settings = CollectionSettings {
        matching,
        ..CollectionSettings::default()
    };
    let place = Place::new(&settings)?;
    let mut kept = 0;
    let took = insert(
        &place.collection,
        texts.len(),
        |at| document(at, &texts[at], at as i64),
        |answers| {
            kept += answers
                .iter()
                .filter(|answer| answer.verdict == StoredVerdict::Kept)
                .count();
            Ok(())
        },
    )?;
    let count = texts.len();
    let bytes: usize = texts.iter().map(String::len).sum();
    let seconds = took.as_secs_f64();
    let label = |what: &str| format!("{what} ({name})");
    report(
        rows,
        &label("bulk, durable"),
        count,
        count as f64 / seconds / 1e3,
        "thousand/s",
    );
    report(
        rows,
        &label("bulk, durable"),
        count,
        bytes as f64 / seconds / 1e6,
        "MB/s",
    );
    report(
        rows,
        &label("kept"),
        count,
        100.0 * kept as f64 / count as f64,
        "%",
    );
    report_memory(&place, name, count, rows)?;
    opened_again(place, &label("opening"), count, rows)?;
    Ok(())
}

fn report_memory(place: &Place, name: &str, count: usize, rows: &mut Vec<Row>) -> Result<()> {
    let a_document = |bytes: u64| bytes as f64 / count as f64;
    report(
        rows,
        &format!("memory ({name})"),
        count,
        a_document(place.memory()?),
        "B/document",
    );
    for (part, bytes) in place.collection.collect_stats()?.memory {
        report(
            rows,
            &format!("of it {part} ({name})"),
            count,
            a_document(bytes),
            "B/document",
        );
    }
    Ok(())
}

/// Returns a title of a large stream: halves of two real titles, or a repeat of an earlier title.
pub(crate) fn generated_title(at: usize, titles: &[String]) -> String {
    let mut seed = mix(at as u64);
    let mut at = at as u64;
    while at > 0 && seed % 100 < REPEATED_PERCENT {
        at = mix(seed) % at;
        seed = mix(at);
    }
    let one = &titles[(mix(seed ^ 1) % titles.len() as u64) as usize];
    let other = &titles[(mix(seed ^ 2) % titles.len() as u64) as usize];
    let half = |text: &str| text.chars().count().div_ceil(2);
    let mut text: String = one.chars().take(half(one)).collect();
    text.extend(other.chars().skip(other.chars().count() / 2));
    text
}

fn mix(mut value: u64) -> u64 {
    value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// Measures with many documents in the window: the rate of the last tenth, memory, single
/// documents, opening.
fn with_many(
    name: &str,
    titles: &[String],
    count: usize,
    matching: plan::MatchSettings,
    rows: &mut Vec<Row>,
) -> Result<()> {
    let width = Duration::from_secs(2 * 86_400);
    let settings = CollectionSettings {
        matching,
        window: Some(StreamWindow::new(width, Duration::ZERO, false)?),
        ..CollectionSettings::default()
    };
    let place = Place::new(&settings)?;
    // All documents are within the window and spread over its partitions.
    let time = |at: usize| (at as u64 * width.as_micros() as u64 / count as u64) as i64;
    let make = |at: usize| document(at, &generated_title(at, titles), time(at));
    let most = count / 10 * 9;
    insert(&place.collection, most, make, |_| Ok(()))?;
    let texts: Vec<String> = (most..count)
        .into_par_iter()
        .map(|at| generated_title(at, titles))
        .collect();
    let make = |at: usize| document(most + at, &texts[at], time(most + at));
    let last = insert(&place.collection, count - most, make, |_| Ok(()))?;
    let rate = (count - most) as f64 / last.as_secs_f64() / 1e3;
    let name = format!("many in the window, {name}");
    let label = |what: &str| format!("{what} ({name})");
    report(rows, &label("bulk, durable"), count, rate, "thousand/s");
    report_memory(&place, &name, count, rows)?;
    single(&place.collection, titles, count, time(count), rows)?;
    arriving(&place.collection, titles, count, time(count), rows)?;
    let place = opened_again(place, &label("opening"), count, rows)?;
    for entry in std::fs::read_dir(place.folder.path())? {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "sketches")
        {
            std::fs::remove_file(path)?;
        }
    }
    opened_again(place, &label("opening without sketches"), count, rows)?;
    Ok(())
}

/// Closes a collection and times opening it; checks that nothing is lost.
fn opened_again(place: Place, what: &str, count: usize, rows: &mut Vec<Row>) -> Result<Place> {
    let before = place.collection.collect_stats()?;
    let (place, opening) = place.reopen()?;
    let after = place.collection.collect_stats()?;
    ensure!(
        (before.rows, before.kept) == (after.rows, after.kept),
        "something was lost"
    );
    report(rows, what, count, opening.as_secs_f64(), "s");
    Ok(place)
}

/// Measures single documents that arrive at fixed times, even if earlier ones are not answered yet:
/// the time from the arrival of each until its answer is on disk.
fn arriving(
    collection: &Collection,
    titles: &[String],
    count: usize,
    time: i64,
    rows: &mut Vec<Row>,
) -> Result<()> {
    let between = Duration::from_secs(1) / ARRIVALS_PER_SECOND;
    let arriving = (ARRIVALS_PER_SECOND * LONGEST_SECONDS).min(count as u32);
    let started = Instant::now() + between;
    let clients: Vec<Result<Vec<f64>>> = std::thread::scope(|scope| {
        let client = |client: u32| {
            scope.spawn(move || {
                let mut scratch = AnalysisScratch::default();
                let mut took = Vec::new();
                for at in (client..arriving).step_by(CLIENT_THREADS as usize) {
                    let arrives = started + at * between;
                    std::thread::sleep(arrives.saturating_duration_since(Instant::now()));
                    let number = count + SINGLE_DOCUMENTS + at as usize;
                    let document = document(number, &generated_title(number, titles), time);
                    let prepared = collection.prepare_document(document, &mut scratch)?;
                    collection.insert_documents(&[prepared]).remove(0)?;
                    took.push(arrives.elapsed().as_secs_f64() * 1e3);
                }
                Ok(took)
            })
        };
        let clients: Vec<_> = (0..CLIENT_THREADS).map(client).collect();
        let joined = clients.into_iter().map(|client| {
            let failed = |_| Err(anyhow::anyhow!("a client failed"));
            client.join().unwrap_or_else(failed)
        });
        joined.collect()
    });
    let mut took = Vec::new();
    for client in clients {
        took.extend(client?);
    }
    report_times(
        "check and insert at 2,000 a second, durable",
        took,
        count,
        rows,
    );
    Ok(())
}

/// Measures one document after another: the check alone, and check and insert until it is on disk.
fn single(
    collection: &Collection,
    titles: &[String],
    count: usize,
    time: i64,
    rows: &mut Vec<Row>,
) -> Result<()> {
    let mut scratch = AnalysisScratch::default();
    let (mut checks, mut inserts) = (Vec::new(), Vec::new());
    for at in count..count + SINGLE_DOCUMENTS {
        let document = document(at, &generated_title(at, titles), time);
        let started = Instant::now();
        let prepared = collection.prepare_document(document, &mut scratch)?;
        let asked = collection.query_document(&prepared)?;
        checks.push(started.elapsed().as_secs_f64() * 1e3);
        let started = Instant::now();
        let answer = collection.insert_documents(&[prepared]).remove(0)?;
        inserts.push(started.elapsed().as_secs_f64() * 1e3);
        ensure!(
            answer.verdict == asked.verdict,
            "document {at}: {asked:?}, then {answer:?}"
        );
    }
    report_times("check", checks, count, rows);
    report_times("check and insert, durable", inserts, count, rows);
    Ok(())
}

/// Reports the median and the 99th percentile in milliseconds.
fn report_times(what: &str, mut times: Vec<f64>, count: usize, rows: &mut Vec<Row>) {
    times.sort_unstable_by(f64::total_cmp);
    for (share, of_100) in [("median", 50), ("99 of 100", 99)] {
        let figure = times[times.len() * of_100 / 100];
        report(rows, &format!("{what}, {share}"), count, figure, "ms");
    }
}
