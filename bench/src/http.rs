//! The service as clients use it: bulk, single documents over many connections, and queries.
//!
//! The program beside this one is started with an empty directory. All requests go over sockets of
//! this machine, so the results include HTTP, JSON and the client's own work on the same cores. The
//! answers are checked: in the order of their sequence numbers, the documents get the verdicts of
//! `lookalike dedup`. The same holds for a service that is killed repeatedly while documents
//! arrive, with a window that most of them leave. [`large`] measures with twenty million documents
//! in the window.

mod large;

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use lookalike_oracle::generate::{self, CorpusKind};
use serde::Deserialize;
use serde_json::json;
use tempfile::TempDir;

use crate::corpora::Corpus;
use crate::machine;
use crate::serve::{Row, Titles};

/// Number of connections that send single documents.
const CLIENT_CONNECTIONS: usize = 64;

/// Number of single documents that are sent as fast as they are answered.
const SINGLE_DOCUMENTS: usize = 200_000;

/// Single documents per second when they are sent at a fixed rate.
const DOCUMENTS_PER_SECOND: f64 = 2000.0;

/// Number of single documents that are sent at that rate.
const PACED_DOCUMENTS: usize = 20_000;

/// Sizes of the measurements.
struct Sizes {
    single: usize,
    paced: usize,
    kills: u64,
}

/// Number of times that the service is killed while the titles arrive.
const KILL_COUNT: u64 = 20;

/// Number of documents that are sent again after the service has been killed for the last time.
const RESENT_DOCUMENTS: usize = 1000;

/// Window of the collection that is killed: half a year, as in the benchmark without HTTP.
const KILLED_WINDOW: &str = "180d";

/// Seconds of a day.
const DAY_SECONDS: i64 = 86_400;

/// The measurements.
#[derive(clap::Args)]
pub struct Selection {
    /// Nothing but many titles in the window; takes 20 GB of disk.
    #[arg(long)]
    large: bool,
    /// Number of titles.
    #[arg(long, default_value_t = 20_000_000, requires = "large")]
    many: usize,
}

/// Measures on real titles and articles.
pub fn run(data: &Path, selection: &Selection) -> Result<()> {
    if selection.large {
        return large::run(data, selection.many);
    }
    let folder = tempfile::tempdir()?;
    let titles = Corpus::real(data, "zh_short.tsv", folder.path())?;
    let stream = Titles::read(&titles)?;
    let titles = titles.texts()?;
    let english = Corpus::real(data, "en_docs.jsonl", folder.path())?.texts()?;
    let sizes = Sizes {
        single: SINGLE_DOCUMENTS,
        paced: PACED_DOCUMENTS,
        kills: KILL_COUNT,
    };
    let mut rows = Vec::new();
    measure(&titles, &english, &sizes, &mut rows)?;
    killed(&stream, sizes.kills, &mut rows)?;
    machine::write("http", rows)
}

/// Runs the benchmark on few documents, as a test.
pub fn smoke() -> Result<()> {
    let made = |kind, count| {
        let made = generate::generate_corpus(kind, count, 5).into_iter();
        made.map(|(_, text)| text).collect::<Vec<_>>()
    };
    let sizes = Sizes {
        single: 1000,
        paced: 300,
        kills: 3,
    };
    let (titles, english) = (
        made(CorpusKind::Short, 5000),
        made(CorpusKind::English, 200),
    );
    measure(&titles, &english, &sizes, &mut Vec::new())?;
    large::smoke(&titles)?;
    let days = (0..titles.len()).map(|at| at as i64 / 10).collect();
    let stream = Titles {
        texts: titles,
        days,
    };
    killed(&stream, sizes.kills, &mut Vec::new())
}

fn measure(
    titles: &[String],
    english: &[String],
    sizes: &Sizes,
    rows: &mut Vec<Row>,
) -> Result<()> {
    let service = Service::start()?;
    let first = documents(titles, 0);
    bulk(&service, "titles", &first, rows)?;
    let resident = service.resident()? as f64 / first.len() as f64;
    let what = "resident memory of the process behind it";
    report(rows, what.to_owned(), first.len(), resident, "B/document");
    let long = documents(english, 0);
    bulk(&service, "english", &long, rows)?;
    service.make("single", &json!({}))?;
    let single = documents(&titles[..sizes.single.min(titles.len())], 0);
    singles(&service, "single", "documents", &single, None, rows)?;
    let answers = parsed(&service.single_answers(&single)?)?;
    check(answers, &single, &[])?;
    let paced = documents(&titles[..sizes.paced.min(titles.len())], titles.len());
    singles(
        &service,
        "titles",
        "documents",
        &paced,
        Some(DOCUMENTS_PER_SECOND),
        rows,
    )?;
    singles(
        &service,
        "titles",
        "query",
        &paced,
        Some(DOCUMENTS_PER_SECOND),
        rows,
    )?;
    // Measure the share of HTTP and the client alone.
    let nothing = vec![String::new(); paced.len()];
    singles(
        &service,
        "",
        IDLE_CALL,
        &nothing,
        Some(DOCUMENTS_PER_SECOND),
        rows,
    )
}

/// Sends dated titles in bulk to a service with a window, which is killed and started again at
/// arbitrary moments. Documents that were answered must stay answered, and in the end all documents
/// must have the verdicts of the batch engine with the same window.
fn killed(titles: &Titles, kills: u64, rows: &mut Vec<Row>) -> Result<()> {
    let dated = titles.texts.iter().zip(&titles.days).enumerate();
    let dated = dated.map(|(at, (text, day))| {
        json!({ "id": at.to_string(), "text": text, "time": day * DAY_SECONDS }).to_string()
    });
    let documents: &[String] = &dated.collect::<Vec<_>>();
    let mut service = Service::start()?;
    service.make("killed", &json!({ "window": KILLED_WINDOW }))?;
    let (mut answered, mut moment) = (Vec::new(), 0x9e37_79b9_u64);
    let mut ready = Duration::ZERO;
    for _ in 0..kills {
        moment = moment
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let share = (moment >> 40) as f64 / (1u64 << 24) as f64;
        // On average this is the time that its part of the titles takes at the usual speed.
        let part = documents.len() as f64 / kills as f64 / 1.5e5;
        let after = Duration::from_secs_f64(2.0 * share * part);
        let rest = &documents[answered.len()..];
        answered.extend(service.killed_while(&documents_path("killed"), rest, after)?);
        ready = ready.max(service.restart()?);
    }
    // Send the rest, and only some of those that were answered, because documents that have left
    // the window are forgotten.
    let resent_from = answered.len().saturating_sub(RESENT_DOCUMENTS);
    let body = documents[resent_from..].join("\n");
    let kind = "application/x-ndjson";
    let answers = service.request("POST", &documents_path("killed"), kind, body.as_bytes())?;
    let mut answers = parsed(&answers)?;
    for (now, before) in answers.iter().zip(&answered[resent_from..]) {
        ensure!(now == before, "{before:?} was answered, and now {now:?}");
    }
    answered.extend(answers.drain((answered.len() - resent_from).min(answers.len())..));
    let like_it = ["--window", KILLED_WINDOW, "--time", "time"];
    let count = answered.len();
    check(answered, documents, &like_it)?;
    let what = format!("bulk, titles in a window of {KILLED_WINDOW}, killed {kills} times");
    let unit = "s until ready again, at the most";
    report(rows, what, count, ready.as_secs_f64(), unit);
    Ok(())
}

fn parsed(answers: &str) -> Result<Vec<Answer>> {
    let answers = answers.lines().map(serde_json::from_str);
    Ok(answers.collect::<Result<_, _>>()?)
}

fn documents_path(collection: &str) -> String {
    format!("/v1/collections/{collection}/documents")
}

/// Returns one line per document; ids are numbers from `from` on.
fn documents(texts: &[String], from: usize) -> Vec<String> {
    let line = |(at, text): (usize, &String)| {
        json!({ "id": (from + at).to_string(), "text": text }).to_string()
    };
    texts.iter().enumerate().map(line).collect()
}

fn report(rows: &mut Vec<Row>, what: String, documents: usize, figure: f64, unit: &'static str) {
    println!("{what:60} {documents:9} {figure:10.3} {unit}");
    rows.push(Row {
        what,
        documents: documents as u64,
        figure,
        unit,
    });
}

/// A running service, which is killed on drop.
struct Service {
    child: Child,
    address: SocketAddr,
    folder: TempDir,
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The fields of an answer that are checked.
#[derive(Debug, Deserialize, PartialEq)]
struct Answer {
    id: String,
    verdict: String,
    of: Option<String>,
    seq: Option<u64>,
}

impl Service {
    fn start() -> Result<Self> {
        let folder = tempfile::tempdir_in(machine::root())?;
        let (child, address) = launch(folder.path())?;
        Ok(Self {
            child,
            address,
            folder,
        })
    }

    /// Returns the current memory of the process in bytes.
    fn resident(&self) -> Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kibibytes = resident.and_then(|resident| resident.trim().strip_suffix(" kB"));
        Ok(kibibytes.context("it has memory")?.parse::<u64>()? << 10)
    }

    /// Starts the service again after it was killed. Returns the time until it was ready.
    fn restart(&mut self) -> Result<Duration> {
        let started = Instant::now();
        (self.child, self.address) = launch(self.folder.path())?;
        while !self
            .request("GET", "/readyz", "application/json", b"")?
            .contains("\"ready\":true")
        {
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(started.elapsed())
    }

    /// Sends documents and kills the service after a while. Returns the answers received until
    /// then.
    fn killed_while(
        &mut self,
        path: &str,
        documents: &[String],
        after: Duration,
    ) -> Result<Vec<Answer>> {
        let mut stream = TcpStream::connect(self.address)?;
        let mut writer = stream.try_clone()?;
        let body = documents.join("\n");
        let mut answer = Vec::new();
        std::thread::scope(|scope| -> Result<()> {
            // Both threads end when the service does.
            scope.spawn(move || {
                let head = head_of("POST", path, "application/x-ndjson", body.len());
                let _ = writer.write_all(head.as_bytes());
                let _ = writer.write_all(body.as_bytes());
            });
            let answer = &mut answer;
            scope.spawn(move || stream.read_to_end(answer));
            std::thread::sleep(after);
            self.child.kill()?;
            self.child.wait()?;
            Ok(())
        })?;
        let lines = match answer.windows(4).position(|four| four == b"\r\n\r\n") {
            Some(head) => joined(&answer[head + 4..]).0,
            None => Vec::new(),
        };
        let whole = lines.iter().rposition(|&byte| byte == b'\n');
        let lines = &lines[..whole.map_or(0, |end| end + 1)];
        let lines = lines.split_inclusive(|&byte| byte == b'\n');
        lines
            .map(|line| Ok(serde_json::from_slice(line)?))
            .collect()
    }

    fn make(&self, name: &str, settings: &serde_json::Value) -> Result<()> {
        let path = format!("/v1/collections/{name}");
        let settings = settings.to_string();
        let answer = self.request("PUT", &path, "application/json", settings.as_bytes())?;
        ensure!(answer.contains("recipe_id"), "{answer}");
        Ok(())
    }

    /// Sends a request and reads its answer at the same time. Returns the body of the answer.
    fn request(&self, method: &str, path: &str, kind: &str, body: &[u8]) -> Result<String> {
        let mut stream = TcpStream::connect(self.address)?;
        stream.write_all(head_of(method, path, kind, body.len()).as_bytes())?;
        let mut answer = Vec::new();
        std::thread::scope(|scope| -> Result<()> {
            let mut writer = stream.try_clone()?;
            let written = scope.spawn(move || writer.write_all(body));
            stream.read_to_end(&mut answer)?;
            ensure!(
                matches!(written.join(), Ok(Ok(()))),
                "the body was not taken"
            );
            Ok(())
        })?;
        let head = answer.windows(4).position(|four| four == b"\r\n\r\n");
        let at = head.context("an answer has a head")? + 4;
        let chunked = answer[..at].windows(7).any(|word| word == b"chunked");
        let body = if chunked {
            let (body, is_whole) = joined(&answer[at..]);
            ensure!(is_whole, "the answer broke off");
            body
        } else {
            answer.split_off(at)
        };
        Ok(String::from_utf8(body)?)
    }

    /// Returns the answers to documents that were inserted one by one, by inserting them again.
    fn single_answers(&self, documents: &[String]) -> Result<String> {
        self.request(
            "POST",
            &documents_path("single"),
            "application/x-ndjson",
            documents.join("\n").as_bytes(),
        )
    }
}

/// Starts the service on a folder.
fn launch(folder: &Path) -> Result<(Child, SocketAddr)> {
    launch_with(folder, &[], &[])
}

/// Starts the service on a folder with further options and variables of the environment.
pub(crate) fn launch_with(
    folder: &Path,
    options: &[&str],
    environment: &[(&str, &str)],
) -> Result<(Child, SocketAddr)> {
    let mut child = Command::new(std::env::current_exe()?.with_file_name("lookalike"))
        .args(["serve", "--listen", "127.0.0.1:0", "--data"])
        .arg(folder)
        .args(options)
        .envs(environment.iter().copied())
        .stderr(Stdio::piped())
        .spawn()
        .context("cannot start the program: run `cargo build --release` first")?;
    let mut log = BufReader::new(child.stderr.take().context("it has a log")?);
    let mut line = String::new();
    log.read_line(&mut line)?;
    let address = line.trim().split("://").nth(1);
    let address = address
        .with_context(|| format!("it says '{line}'"))?
        .parse()?;
    std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
    Ok((child, address))
}

fn head_of(method: &str, path: &str, kind: &str, length: usize) -> String {
    format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
         Content-Type: {kind}\r\nContent-Length: {length}\r\n\r\n"
    )
}

/// Joins the chunks of a body as far as it was received. Returns `true` if it is complete.
fn joined(mut chunks: &[u8]) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    loop {
        let end = chunks.iter().position(|&byte| byte == b'\r');
        let size = end.and_then(|end| std::str::from_utf8(&chunks[..end]).ok());
        let size = size.and_then(|size| usize::from_str_radix(size, 16).ok());
        let (Some(end), Some(size)) = (end, size) else {
            return (body, false);
        };
        if size == 0 {
            return (body, true);
        }
        let begin = end + 2;
        let there = chunks.len().min(begin + size);
        body.extend_from_slice(chunks.get(begin..there).unwrap_or_default());
        if chunks.len() < begin + size + 2 {
            return (body, false);
        }
        chunks = &chunks[begin + size + 2..];
    }
}

/// Inserts all documents of a corpus into an empty collection with one request.
fn bulk(service: &Service, name: &str, documents: &[String], rows: &mut Vec<Row>) -> Result<()> {
    service.make(name, &json!({}))?;
    let path = documents_path(name);
    let body = documents.join("\n");
    let started = Instant::now();
    let answers = service.request("POST", &path, "application/x-ndjson", body.as_bytes())?;
    let seconds = started.elapsed().as_secs_f64();
    check(parsed(&answers)?, documents, &[])?;
    let what = format!("bulk, {name}");
    let count = documents.len();
    report(
        rows,
        what.clone(),
        count,
        count as f64 / seconds / 1e3,
        "thousand documents/s",
    );
    report(rows, what, count, body.len() as f64 / seconds / 1e6, "MB/s");
    Ok(())
}

/// Checks that the answers are those of the batch engine with some options, for the documents in
/// the order of their sequence numbers.
fn check(mut answers: Vec<Answer>, documents: &[String], options: &[&str]) -> Result<()> {
    ensure!(
        answers.len() == documents.len(),
        "{} answers",
        answers.len()
    );
    let by_id: HashMap<&str, &String> = answers
        .iter()
        .zip(documents)
        .map(|(answer, document)| (answer.id.as_str(), document))
        .collect();
    let in_order = {
        let mut order: Vec<_> = answers
            .iter()
            .map(|answer| (answer.seq, answer.id.as_str()))
            .collect();
        order.sort_unstable();
        let lines = order.iter().map(|(_, id)| format!("{}\n", by_id[id]));
        lines.collect::<String>()
    };
    let expected = batch_verdicts(&in_order, options)?;
    answers.retain(|answer| {
        let repeats = (answer.verdict == "duplicate").then_some(answer.of.as_deref());
        repeats != expected.get(&answer.id).map(|of| Some(of.as_str()))
    });
    if let Some(wrong) = answers.first() {
        let expected = expected.get(&wrong.id);
        bail!(
            "{} answers differ from the batch's: {wrong:?}, {expected:?}",
            answers.len()
        );
    }
    Ok(())
}

/// A row of the duplicates that `dedup` removes.
#[derive(Deserialize)]
struct Removed {
    id: String,
    kept: String,
}

/// Returns the representative of every duplicate, by ids.
fn batch_verdicts(documents: &str, options: &[&str]) -> Result<HashMap<String, String>> {
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("in.jsonl"), documents)?;
    let mut found = HashMap::new();
    each_removed(folder.path(), options, |Removed { id, kept }| {
        found.insert(id, kept);
        Ok(())
    })?;
    Ok(found)
}

/// Calls `visit` with every duplicate among the documents in `in.jsonl` of a folder.
fn each_removed(
    folder: &Path,
    options: &[&str],
    mut visit: impl FnMut(Removed) -> Result<()>,
) -> Result<()> {
    let removed = folder.join("removed.jsonl");
    let run = Command::new(std::env::current_exe()?.with_file_name("lookalike"))
        .args(["dedup", "--quiet", "--forms", "off"])
        .args(options)
        .arg(folder.join("in.jsonl"))
        .arg("--removed")
        .arg(&removed)
        .output()?;
    ensure!(
        run.status.success(),
        "{}",
        String::from_utf8_lossy(&run.stderr)
    );
    for line in BufReader::new(File::open(removed)?).lines() {
        visit(serde_json::from_str(&line?)?)?;
    }
    Ok(())
}

/// The call that does nothing.
const IDLE_CALL: &str = "livez";

/// Sends one document per request over many connections: as fast as they are answered, or at a
/// rate.
fn singles(
    service: &Service,
    collection: &str,
    call: &str,
    documents: &[String],
    rate: Option<f64>,
    rows: &mut Vec<Row>,
) -> Result<()> {
    let load = Load {
        address: service.address,
        line: match call {
            IDLE_CALL => format!("GET /{IDLE_CALL}"),
            _ => format!("POST /v1/collections/{collection}/{call}"),
        },
        documents,
        next: AtomicUsize::new(0),
        started: Instant::now(),
        rate,
    };
    let ended = AtomicBool::new(false);
    let (times, machine) = std::thread::scope(|scope| {
        let machine = scope.spawn(|| Machine::watched_until(&ended));
        let clients: Vec<_> = (0..CLIENT_CONNECTIONS)
            .map(|_| scope.spawn(|| load.client()))
            .collect();
        let joined = clients.into_iter().map(joined_or_failed);
        let times: Result<Vec<_>> = joined.collect();
        ended.store(true, Ordering::Relaxed);
        (times, joined_or_failed(machine))
    });
    let mut times = times?.concat();
    let seconds = load.started.elapsed().as_secs_f64();
    ensure!(times.len() == documents.len(), "{} answers", times.len());
    let (half, most) = (share_of(&mut times, 0.5), share_of(&mut times, 0.99));
    let how = rate.map_or_else(String::new, |rate| format!(" at {rate} a second"));
    let what = format!("single, {call}, {CLIENT_CONNECTIONS} connections{how}");
    let count = documents.len();
    report(
        rows,
        what.clone(),
        count,
        count as f64 / seconds / 1e3,
        "thousand documents/s",
    );
    report(rows, what.clone(), count, half, "ms, median");
    report(rows, what, count, most, "ms, 99th percentile");
    if rate.is_some() {
        machine?.report(call, rows);
    }
    Ok(())
}

fn joined_or_failed<T>(thread: ScopedJoinHandle<'_, Result<T>>) -> Result<T> {
    let failed = |_| Err(anyhow::anyhow!("a thread failed"));
    thread.join().unwrap_or_else(failed)
}

/// Returns the milliseconds that a share of the times does not exceed.
fn share_of(times: &mut [Duration], share: f64) -> f64 {
    times.sort_unstable();
    times[((times.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3
}

/// Delays of the machine itself under load. Work that waits for a processor or for the disk waits
/// at least as long.
#[derive(Default)]
struct Machine {
    /// Delays of a sleeping thread after it should wake.
    late: Vec<Duration>,
    /// Durations of syncing one page that is appended to a file.
    synced: Vec<Duration>,
}

/// Interval between two samples of the machine, so long that sampling does not disturb the
/// measurement.
const SAMPLING_INTERVAL: Duration = Duration::from_millis(10);

impl Machine {
    fn watched_until(ended: &AtomicBool) -> Result<Self> {
        let mut file = tempfile::tempfile_in(machine::root())?;
        let mut watched = Self::default();
        loop {
            let began = Instant::now();
            std::thread::sleep(SAMPLING_INTERVAL);
            watched.late.push(began.elapsed() - SAMPLING_INTERVAL);
            file.write_all(&[1; 4096])?;
            let began = Instant::now();
            file.sync_data()?;
            watched.synced.push(began.elapsed());
            if ended.load(Ordering::Relaxed) {
                return Ok(watched);
            }
        }
    }

    fn report(mut self, call: &str, rows: &mut Vec<Row>) {
        let count = self.late.len();
        let unit = "ms, 99th percentile";
        let what = format!("meanwhile ({call}): a sleeper wakes late by");
        report(rows, what, count, share_of(&mut self.late, 0.99), unit);
        let what = format!("meanwhile ({call}): the sync of a page takes");
        report(rows, what, count, share_of(&mut self.synced, 0.99), unit);
    }
}

/// State that the clients of one measurement share.
struct Load<'a> {
    address: SocketAddr,
    /// Method and path.
    line: String,
    documents: &'a [String],
    next: AtomicUsize,
    started: Instant,
    rate: Option<f64>,
}

/// Largest delay with which the system is expected to wake a sleeping thread.
const MAX_WAKE_DELAY: Duration = Duration::from_millis(2);

impl Load<'_> {
    /// Waits until so many seconds after the start, and returns the current moment. If all
    /// connections were busy then, returns the intended moment.
    fn wait_for(&self, seconds: f64) -> Instant {
        let due = self.started + Duration::from_secs_f64(seconds);
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        let now = Instant::now();
        if now > due + MAX_WAKE_DELAY { due } else { now }
    }

    /// Sends documents over one connection until none is left. Returns the durations.
    fn client(&self) -> Result<Vec<Duration>> {
        let mut writer = TcpStream::connect(self.address)?;
        writer.set_nodelay(true)?;
        let mut reader = BufReader::new(writer.try_clone()?);
        let (mut times, mut line, mut body) = (Vec::new(), String::new(), Vec::new());
        loop {
            let at = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(document) = self.documents.get(at) else {
                return Ok(times);
            };
            let begun = match self.rate {
                Some(rate) => self.wait_for(at as f64 / rate),
                None => Instant::now(),
            };
            let request = format!(
                "{} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
                 Content-Length: {}\r\n\r\n{document}",
                self.line,
                document.len()
            );
            writer.write_all(request.as_bytes())?;
            let mut length = 0;
            line.clear();
            while !line.ends_with("\r\n\r\n") {
                let from = line.len();
                ensure!(reader.read_line(&mut line)? > 0, "the answer broke off");
                if let Some(stated) = line[from..].strip_prefix("content-length: ") {
                    length = stated.trim().parse()?;
                }
            }
            body.resize(length, 0);
            reader.read_exact(&mut body)?;
            times.push(begun.elapsed());
            let body_text = || String::from_utf8_lossy(&body);
            ensure!(line.starts_with("HTTP/1.1 200 "), "{line}{}", body_text());
        }
    }
}
