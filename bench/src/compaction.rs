//! Inserting while partitions are compacted, and the disk that documents take which are replaced again
//! and again.
//!
//! The same documents are inserted into two collections that were filled alike: one is left alone, the
//! other is compacted all the time, at the pace that the service has. Replacements go on meanwhile, so
//! something is always dead. In the end every inserted document must be there, and the files must be intact.

use std::path::Path;

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use lookalike::text::AnalysisScratch;
use lookalike_store::{
    Collection, CollectionOptions, CollectionSettings, CompactionTrigger, DocumentContent,
    MaintenancePace, NewDocument, OnConflict, ReadFolder, verify_collection,
};

use crate::machine;
use crate::serve::{Place, Row, insert};

/// Sizes of the measurements.
struct Sizes {
    /// Documents of the collection before anything is measured; half of them are replaced then.
    filled: usize,
    /// Documents a second and for how long, in inserts of one and of a hundred.
    rate: u32,
    seconds: u32,
    /// Documents in bulk.
    bulk: usize,
    /// Repetitions of the measurement in bulk.
    repeats: usize,
    /// Ids that are replaced, and how often.
    replaced: (usize, usize),
    /// Dead bytes from which on partitions are compacted.
    least_dead_bytes: u64,
    /// Time between two looks whether compaction is due.
    look: Duration,
}

/// Words of documents whose insertion is timed, and of those that are replaced again and again: 60 and
/// 500 bytes.
const INSERTED_WORDS: usize = 8;
const REPLACED_WORDS: usize = 70;

/// Threads that insert at a rate.
const CLIENT_THREADS: u32 = 64;

/// Documents of the larger inserts.
const DOCUMENTS_PER_INSERT: u32 = 100;

/// The measurements.
#[derive(clap::Args)]
pub struct CompactionOptions {
    /// With a tenth of the documents and half of the time, to look at; nothing is written.
    #[arg(long)]
    little: bool,
}

/// Measures with a collection of some hundred megabytes.
pub fn run(options: &CompactionOptions) -> Result<()> {
    let sizes = Sizes {
        filled: 600_000,
        rate: 2000,
        seconds: 15,
        bulk: 400_000,
        repeats: 3,
        replaced: (8000, 100),
        least_dead_bytes: CompactionTrigger::default().least_dead_bytes,
        look: Duration::from_secs(1),
    };
    let mut rows = Vec::new();
    if options.little {
        let little = Sizes {
            filled: sizes.filled / 10,
            seconds: sizes.seconds / 2,
            bulk: sizes.bulk / 4,
            repeats: 1,
            ..sizes
        };
        return measure(&little, &mut rows);
    }
    measure(&sizes, &mut rows)?;
    machine::write("compaction", rows)
}

/// Measures few documents, as a test.
pub fn smoke() -> Result<()> {
    let sizes = Sizes {
        filled: 4000,
        rate: 400,
        seconds: 1,
        bulk: 4000,
        repeats: 1,
        replaced: (800, 12),
        least_dead_bytes: 64 << 10,
        look: Duration::from_millis(5),
    };
    measure(&sizes, &mut Vec::new())
}

fn measure(sizes: &Sizes, rows: &mut Vec<Row>) -> Result<()> {
    for (together, what) in [
        (1, "inserts of 1"),
        (DOCUMENTS_PER_INSERT, "inserts of 100"),
    ] {
        for is_compacted in [false, true] {
            let label = format!("{what}, {} documents a second", sizes.rate);
            paced(sizes, together, is_compacted, &label, rows)?;
        }
    }
    bulk(sizes, rows)?;
    replaced(sizes, rows)
}

fn report(rows: &mut Vec<Row>, what: String, documents: usize, figure: f64, unit: &'static str) {
    println!("{what:70} {documents:9} {figure:10.3} {unit}");
    rows.push(Row {
        what,
        documents: documents as u64,
        figure,
        unit,
    });
}

fn settings() -> CollectionSettings {
    CollectionSettings {
        on_conflict: OnConflict::Replace,
        ..CollectionSettings::default()
    }
}

/// A document with an id, which says something else in every round and is like no other: its last word is the
/// round.
fn document(id: usize, round: usize, words: usize) -> NewDocument {
    let mut state = (id * 1000 + round) as u64;
    let word = |_| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        format!("{:x}", state >> 40)
    };
    let words: Vec<_> = (0..words).map(word).collect();
    NewDocument {
        id: id.to_string(),
        content: DocumentContent::Text(format!("{} {round}", words.join(" "))),
        time: None,
        meta: None,
    }
}

/// A collection in which half of the documents were replaced.
fn filled(sizes: &Sizes) -> Result<Place> {
    // Only what is told to be compacted is.
    let options = CollectionOptions {
        compaction: CompactionTrigger {
            dead_share: 2.0,
            ..CompactionTrigger::default()
        },
        ..CollectionOptions::default()
    };
    let place = Place::with_options(&settings(), options)?;
    for (round, count) in [(0, sizes.filled), (1, sizes.filled / 2)] {
        let make = |at| document(at, round, INSERTED_WORDS);
        insert(&place.collection, count, make, |_| Ok(()))?;
    }
    Ok(place)
}

/// Compacts all the time, until it has ended and a partition was compacted; counts how often that was.
fn compact_until(collection: &Collection, ended: &AtomicBool, count: &AtomicU64) -> Result<()> {
    let mut pace = MaintenancePace::new();
    let goes_on = || !ended.load(Ordering::Relaxed) || count.load(Ordering::Relaxed) == 0;
    while goes_on() {
        let mut go_on = || {
            pace.rest();
            goes_on()
        };
        count.fetch_add(collection.compact_all(&mut go_on)?, Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// Does something to a collection, which is compacted meanwhile or not; returns how often it was, too.
fn beside<T>(
    collection: &Collection,
    is_compacted: bool,
    work: impl FnOnce() -> Result<T>,
) -> Result<(T, u64)> {
    if !is_compacted {
        return Ok((work()?, 0));
    }
    let (ended, count) = (AtomicBool::new(false), AtomicU64::new(0));
    let done = std::thread::scope(|scope| {
        let compacting = scope.spawn(|| compact_until(collection, &ended, &count));
        let done = work();
        ended.store(true, Ordering::Relaxed);
        let failed = |_| Err(anyhow::anyhow!("compaction failed"));
        compacting.join().unwrap_or_else(failed)?;
        done
    })?;
    Ok((done, count.into_inner()))
}

fn state_of(is_compacted: bool) -> &'static str {
    if is_compacted {
        "while compacted"
    } else {
        "left alone"
    }
}

/// Inserts that arrive at their times: how long after its time each is on disk. Half of them replace others.
fn paced(
    sizes: &Sizes,
    together: u32,
    is_compacted: bool,
    what: &str,
    rows: &mut Vec<Row>,
) -> Result<()> {
    let place = filled(sizes)?;
    let collection = &place.collection;
    let count = sizes.rate * sizes.seconds / together;
    let between = Duration::from_secs(1) * together / sizes.rate;
    let next = AtomicU32::new(0);
    let started = Instant::now() + between;
    let client = || -> Result<Vec<Duration>> {
        let (mut scratch, mut took) = (AnalysisScratch::default(), Vec::new());
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= count {
                return Ok(took);
            }
            let ids = (0..together).map(|one| id_of(sizes, (at * together + one) as usize));
            let prepared = ids.map(|id| {
                collection.prepare_document(document(id, 2, INSERTED_WORDS), &mut scratch)
            });
            let prepared: Vec<_> = prepared.collect::<Result<_, _>>()?;
            let due = started + at * between;
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            let answers = collection.insert_documents(&prepared);
            took.push(due.elapsed());
            answers.into_iter().collect::<Result<Vec<_>, _>>()?;
        }
    };
    let (times, compacted) = beside(collection, is_compacted, || {
        let clients: Vec<Result<Vec<Duration>>> = std::thread::scope(|scope| {
            let clients: Vec<_> = (0..CLIENT_THREADS).map(|_| scope.spawn(client)).collect();
            let failed = |_| Err(anyhow::anyhow!("a client failed"));
            let joined = clients.into_iter();
            joined
                .map(|one| one.join().unwrap_or_else(failed))
                .collect()
        });
        Ok(clients.into_iter().collect::<Result<Vec<_>>>()?.concat())
    })?;
    let inserted = (count * together) as usize;
    check(&place, sizes, inserted)?;
    let state = state_of(is_compacted);
    for (name, figure) in percentiles(times) {
        report(
            rows,
            format!("{what}, {name} ({state})"),
            inserted,
            figure,
            "ms",
        );
    }
    if is_compacted {
        ensure!(compacted > 0, "nothing was compacted");
        let what = format!("{what}, compacted meanwhile");
        report(rows, what, inserted, compacted as f64, "times");
    }
    Ok(())
}

/// The id of an insert: every second one is there already.
fn id_of(sizes: &Sizes, at: usize) -> usize {
    match at % 2 {
        0 => at / 2 % sizes.filled,
        _ => sizes.filled + at / 2,
    }
}

fn percentiles(mut times: Vec<Duration>) -> [(&'static str, f64); 3] {
    times.sort_unstable();
    let of = |share: f64| {
        let at = (times.len().saturating_sub(1) as f64 * share) as usize;
        times.get(at).map_or(0.0, |time| time.as_secs_f64() * 1e3)
    };
    [
        ("median", of(0.5)),
        ("99 of 100", of(0.99)),
        ("longest", of(1.0)),
    ]
}

/// All that was inserted at a rate is there, and the files are whole.
fn check(place: &Place, sizes: &Sizes, inserted: usize) -> Result<()> {
    let stats = place.collection.collect_stats()?;
    let expected = (sizes.filled + inserted / 2) as u64;
    ensure!(
        stats.rows == expected,
        "{} documents, not {expected}",
        stats.rows
    );
    for at in (0..inserted).step_by(inserted.div_ceil(200)) {
        let id = id_of(sizes, at).to_string();
        let stored = place.collection.find_document(&id)?;
        let stored = stored.with_context(|| format!("document {id} is lost"))?;
        let DocumentContent::Text(text) = &stored.content else {
            anyhow::bail!("document {id} has no text");
        };
        ensure!(text.ends_with(" 2"), "document {id}: {text}");
    }
    Ok(())
}

/// New documents in bulk, as fast as they are taken.
fn bulk(sizes: &Sizes, rows: &mut Vec<Row>) -> Result<()> {
    let mut best = [Duration::MAX; 2];
    for _ in 0..sizes.repeats {
        for (at, is_compacted) in [false, true].into_iter().enumerate() {
            let place = filled(sizes)?;
            let make = |at| document(sizes.filled + at, 0, INSERTED_WORDS);
            let (took, _) = beside(&place.collection, is_compacted, || {
                insert(&place.collection, sizes.bulk, make, |_| Ok(()))
            })?;
            best[at] = best[at].min(took);
            let rows = place.collection.collect_stats()?.rows;
            ensure!(
                rows == (sizes.filled + sizes.bulk) as u64,
                "{rows} documents"
            );
            check_files(place)?;
        }
    }
    let rate = |took: Duration| sizes.bulk as f64 / took.as_secs_f64() / 1e3;
    for (took, is_compacted) in best.into_iter().zip([false, true]) {
        let what = format!("bulk ({})", state_of(is_compacted));
        report(rows, what, sizes.bulk, rate(took), "thousand/s");
    }
    let share = rate(best[1]) / rate(best[0]);
    let what = "bulk while compacted, share of that left alone".to_owned();
    report(rows, what, sizes.bulk, share, "");
    Ok(())
}

fn check_files(place: Place) -> Result<()> {
    let Place { folder, collection } = place;
    drop(collection);
    let report = verify_collection(&ReadFolder::open(folder.path())?)?;
    ensure!(report.findings.is_empty(), "{:?}", report.findings);
    Ok(())
}

/// Bytes of the files in a folder.
fn bytes_in(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        bytes += entry?.metadata()?.len();
    }
    Ok(bytes)
}

/// The same ids with other texts, round after round, while it is looked now and then whether compaction
/// is due, as the service does.
fn replaced(sizes: &Sizes, rows: &mut Vec<Row>) -> Result<()> {
    let (ids, rounds) = sizes.replaced;
    let options = CollectionOptions {
        compaction: CompactionTrigger {
            least_dead_bytes: sizes.least_dead_bytes,
            ..CompactionTrigger::default()
        },
        ..CollectionOptions::default()
    };
    let place = Place::with_options(&settings(), options)?;
    let collection = &place.collection;
    let (mut once, mut most) = (0, 0);
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| -> Result<()> {
        let maintaining = scope.spawn(|| maintain_until(collection, sizes.look, &ended));
        let mut replacing = || -> Result<()> {
            for round in 0..rounds {
                let make = |id| document(id, round, REPLACED_WORDS);
                insert(collection, ids, make, |_| Ok(()))?;
                most = bytes_in(place.folder.path())?.max(most);
                if round == 0 {
                    once = most;
                }
            }
            Ok(())
        };
        let done = replacing();
        ended.store(true, Ordering::Relaxed);
        let failed = |_| Err(anyhow::anyhow!("compaction failed"));
        maintaining.join().unwrap_or_else(failed)?;
        done
    })?;
    collection.run_maintenance(&mut || true)?;
    let after = bytes_in(place.folder.path())?;
    let stats = collection.collect_stats()?;
    ensure!(stats.rows == ids as u64, "{} documents", stats.rows);
    let share = |bytes: u64| bytes as f64 / once as f64;
    let what = format!("disk after {rounds} rounds of replacement, of that after one");
    report(rows, what, ids, share(after), "");
    let what = format!("disk at most meanwhile, of that after one of {rounds} rounds");
    report(rows, what, ids, share(most), "");
    ensure!(
        after <= 2 * once,
        "{after} bytes after {rounds} rounds, {once} after one"
    );
    check_files(place)
}

/// Does what is due until it has ended, with a rest between two looks.
fn maintain_until(collection: &Collection, look: Duration, ended: &AtomicBool) -> Result<()> {
    while !ended.load(Ordering::Relaxed) {
        std::thread::sleep(look);
        let mut pace = MaintenancePace::new();
        collection.run_maintenance(&mut || {
            pace.rest();
            true
        })?;
    }
    Ok(())
}
