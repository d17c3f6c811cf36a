//! The service while it is attacked: what honest clients meet meanwhile, and how it ends.
//!
//! Each attack has a service of its own, with the limits that the program has by default. The attacker comes
//! from one address of this machine with a key that may only read, or write where the attack needs it. An
//! honest client comes from another address with another key and sends single documents and queries, and reads
//! documents, at a steady rate; a third address asks `/livez` over a new connection each time. All times count from the moment
//! at which a request was due, so that a service which stands still delays every request of that time.
//!
//! In the end the service is told to stop while the attack goes on, and is started again: every insert that was
//! acknowledged must have the same answer then.

mod client;
mod kinds;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Child;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, setrlimit};
use serde::{Deserialize, Serialize};
use serde_json::json;

use self::client::{ClientLog, Connection, HonestClient, NDJSON_TYPE, probe_liveness};
use self::kinds::{ATTACK_KINDS, AttackKind, Payloads};
use crate::http::launch_with;
use crate::machine;

/// The keys of the three roles.
const READ_KEY: &str = "reading-attacker";
const WRITE_KEY: &str = "writing-attacker";
const ADMIN_KEY: &str = "honest-and-admin";

/// Addresses of the honest client, of the prober and of the attacker.
const HONEST_ADDRESS: [u8; 4] = [127, 0, 0, 2];
const PROBER_ADDRESS: [u8; 4] = [127, 0, 0, 3];
const ATTACKER_ADDRESS: [u8; 4] = [127, 0, 0, 9];

/// The collection that all of them use.
const COLLECTION_PATH: &str = "/v1/collections/a";

/// The longest that the service may take to end before it is killed.
const LONGEST_END: Duration = Duration::from_secs(60);

/// The measurements.
#[derive(clap::Args)]
pub struct AttackOptions {
    /// Seconds that each attack lasts before the service is told to stop.
    #[arg(long, default_value_t = 15)]
    seconds: u64,
    /// Only attacks with this in their names, to look at; nothing is written.
    #[arg(long)]
    only: Option<String>,
}

/// Size of an attack.
struct AttackSize {
    lasts: Duration,
    /// Requests a second of the honest client.
    rate: f64,
    /// Bytes that a bomb of zstd and one of gzip expand to.
    zstd_bomb: u64,
    gzip_bomb: u64,
    half_open: usize,
    /// Bytes of an upload before it stalls.
    upload: usize,
    /// Lines of a request whose answers are not taken.
    unread_lines: usize,
    dripping: usize,
    /// Texts that are permutations of the same blocks, and the bytes of each.
    permutations: (usize, usize),
    /// Texts that share most of their blocks, and the bytes of each.
    near_texts: (usize, usize),
    /// Bytes of a text with very many features.
    long_text: usize,
    /// Bytes of a text with copied passages, and of a file of markers.
    copied_text: usize,
    /// Bytes of an honest text in the collection that compares by edit distance.
    honest_text: usize,
    /// A request that is refused after the signal to stop counts if it had waited longer than this before.
    longest_wait: Duration,
    /// Further options of the service.
    options: &'static [&'static str],
}

const FULL_ATTACK: AttackSize = AttackSize {
    lasts: Duration::from_secs(15),
    rate: 50.0,
    zstd_bomb: 1 << 30,
    gzip_bomb: 256 << 20,
    half_open: 3000,
    upload: 15 << 20,
    unread_lines: 300_000,
    dripping: 200,
    permutations: (150, 65_000),
    near_texts: (4000, 2400),
    long_text: 8 << 20,
    copied_text: 15 << 20,
    honest_text: 2000,
    longest_wait: Duration::from_secs(1),
    options: &["--drain", "5s"],
};

/// The queue of the short form in MiB, and the memory that a service may take beside its queue.
const SHORT_QUEUE_MIB: u32 = 8;
const BESIDE_QUEUE_MIB: u32 = 128;

/// Longest that a single request of an honest client may wait in the short form while another client inserts costly
/// documents, in milliseconds. A queue that serves the attacker first lets it wait until the attack ends.
const LONGEST_HONEST_WAIT_MS: f64 = 5000.0;

/// Inserts of the honest client that are answered before an attack ends. The first ones may come before the attack.
const FEWEST_ANSWERED_INSERTS: usize = 5;

/// Parts of the names of the attacks with such inserts.
const COSTLY_INSERTS: [&str; 3] = ["single permuted texts", "near texts", "distinct words"];

const SHORT_ATTACK: AttackSize = AttackSize {
    lasts: Duration::from_millis(800),
    rate: 25.0,
    zstd_bomb: 8 << 20,
    gzip_bomb: 8 << 20,
    half_open: 300,
    upload: 500 << 10,
    unread_lines: 30_000,
    dripping: 20,
    permutations: (6, 3000),
    near_texts: (60, 600),
    long_text: 300 << 10,
    copied_text: 400 << 10,
    honest_text: 300,
    longest_wait: LONGEST_END,
    options: &[
        "--drain",
        "1s",
        "--max-queue",
        "8Mi",
        "--max-document",
        "512Ki",
    ],
};

/// Figures of one attack.
#[derive(Serialize)]
struct AttackRow {
    attack: &'static str,
    /// Requests of the honest client, and those without the answer that was due.
    requests: usize,
    refused: usize,
    #[serde(serialize_with = "machine::rounded")]
    median_ms: f64,
    #[serde(serialize_with = "machine::rounded")]
    p99_ms: f64,
    #[serde(serialize_with = "machine::rounded")]
    longest_ms: f64,
    /// Of `/livez`.
    probes: usize,
    failed_probes: usize,
    #[serde(serialize_with = "machine::rounded")]
    probe_median_ms: f64,
    #[serde(serialize_with = "machine::rounded")]
    probe_p99_ms: f64,
    #[serde(serialize_with = "machine::rounded")]
    probe_longest_ms: f64,
    /// From the signal to stop to the end.
    #[serde(serialize_with = "machine::rounded")]
    end_seconds: f64,
    acknowledged: usize,
    lost: usize,
    /// Requests or connections of the attacker.
    attempts: u64,
    /// Peak memory of the process beyond that before the attack.
    #[serde(serialize_with = "machine::rounded")]
    memory_mib: f64,
    /// Part of it that the stored documents take, as the service states it.
    #[serde(serialize_with = "machine::rounded")]
    stored_mib: f64,
}

/// Measures every attack, one after another.
pub fn run(options: &AttackOptions) -> Result<()> {
    raise_file_limit()?;
    let size = AttackSize {
        lasts: Duration::from_secs(options.seconds),
        ..FULL_ATTACK
    };
    let payloads = Payloads::new(&size)?;
    let only = options.only.as_deref().unwrap_or_default();
    let mut rows = Vec::new();
    for kind in ATTACK_KINDS.iter().filter(|kind| kind.name.contains(only)) {
        let row = measure(kind, &size, &payloads)?;
        if rows.is_empty() {
            print_heading();
        }
        row.print();
        rows.push(row);
    }
    ensure!(!rows.is_empty(), "no attack has '{only}' in its name");
    match options.only {
        None => machine::write("attacks", rows),
        Some(_) => Ok(()),
    }
}

/// Attacks of the short form that run at the same time.
const ATTACKS_AT_A_TIME: usize = 2;

/// The same in a short form, two attacks at a time, as a test: honest clients get their answers and nothing is lost.
pub fn smoke() -> Result<()> {
    raise_file_limit()?;
    let payloads = Payloads::new(&SHORT_ATTACK)?;
    let mut rows = Vec::new();
    for kinds in ATTACK_KINDS.chunks(ATTACKS_AT_A_TIME) {
        rows.extend(measure_together(kinds, &payloads)?);
    }
    print_heading();
    for row in rows {
        row.print();
        let name = row.attack;
        ensure!(
            (row.refused, row.failed_probes, row.lost) == (0, 0, 0),
            "{name}: {} honest requests and {} probes were refused, {} inserts lost",
            row.refused,
            row.failed_probes,
            row.lost
        );
        ensure!(
            row.acknowledged > 0 && row.probes > 0,
            "{name}: nothing was asked"
        );
        ensure!(
            row.end_seconds < LONGEST_END.as_secs_f64(),
            "{name}: the service does not end"
        );
        let most_mib = f64::from(SHORT_QUEUE_MIB + BESIDE_QUEUE_MIB);
        ensure!(
            row.memory_mib - row.stored_mib <= most_mib,
            "{name}: the service took {:.0} MiB and its documents {:.0} of them; beside them the limit is {most_mib}",
            row.memory_mib,
            row.stored_mib
        );
        // Others are slow because of the network or the processor alone, which a busy machine has too.
        let is_costly = COSTLY_INSERTS.iter().any(|part| name.contains(part));
        ensure!(
            !is_costly || row.longest_ms <= LONGEST_HONEST_WAIT_MS,
            "{name}: an honest request waited {:.0} ms, more than {LONGEST_HONEST_WAIT_MS}",
            row.longest_ms
        );
        let is_attack = name != ATTACK_KINDS[0].name;
        ensure!(is_attack == (row.attempts > 0), "{name}: no attack");
    }
    Ok(())
}

/// Measures attacks that run at the same time, each on a service of its own.
fn measure_together(kinds: &[AttackKind], payloads: &Payloads) -> Result<Vec<AttackRow>> {
    std::thread::scope(|scope| {
        let measured = kinds.iter().map(|kind| {
            scope.spawn(move || {
                measure(kind, &SHORT_ATTACK, payloads)
                    .with_context(|| format!("attack: {}", kind.name))
            })
        });
        let measured: Vec<_> = measured.collect();
        let failed = |_| Err(anyhow::anyhow!("a thread failed"));
        let joined = measured.into_iter();
        joined
            .map(|one| one.join().unwrap_or_else(failed))
            .collect()
    })
}

/// Raises the number of files that may be open as far as is allowed: connections are files.
fn raise_file_limit() -> Result<()> {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    setrlimit(Resource::Nofile, raised).context("cannot raise the limit of open files")?;
    Ok(())
}

/// The service that is attacked, for all threads of the attacker.
struct Target<'a> {
    address: SocketAddr,
    size: &'a AttackSize,
    payloads: &'a Payloads,
    /// The moment of the signal to stop, from then on.
    stopped: &'a OnceLock<Instant>,
    ended: &'a AtomicBool,
    attempts: &'a AtomicU64,
}

impl Target<'_> {
    fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    fn is_draining(&self) -> bool {
        self.stopped.get().is_some()
    }

    fn count_attempt(&self) {
        self.attempts.fetch_add(1, Ordering::Relaxed);
    }

    /// Connects from the address of the attacker.
    fn connect(&self) -> std::io::Result<Connection> {
        Connection::open(ATTACKER_ADDRESS, self.address)
    }
}

/// Starts a service, attacks it, lets it end under attack, and looks for what it has acknowledged.
fn measure(kind: &AttackKind, size: &AttackSize, payloads: &Payloads) -> Result<AttackRow> {
    let folder = tempfile::tempdir_in(machine::root())?;
    let mut service = RunningService::start(folder.path(), size)?;
    service.make_collection(&(kind.settings)())?;
    let idle = service.measure_memory()?;
    let honest = HonestClient::new(
        service.address,
        kind.texts(size),
        size.rate,
        size.longest_wait,
    );
    let (stopped, ended) = (OnceLock::new(), AtomicBool::new(false));
    let (attempts, probed) = (AtomicU64::new(0), AtomicUsize::new(0));
    let target = Target {
        address: service.address,
        size,
        payloads,
        stopped: &stopped,
        ended: &ended,
        attempts: &attempts,
    };
    let (attacked, log, probes, end, memory) = std::thread::scope(|scope| {
        let target = &target;
        let attackers: Vec<_> = (0..kind.threads)
            .map(|thread| scope.spawn(move || (kind.attack)(target, thread)))
            .collect();
        let probing =
            scope.spawn(|| probe_liveness(target.address, &stopped, size.longest_wait, &probed));
        let asking = scope.spawn(|| honest.run(&stopped, &ended));
        let begun = Instant::now();
        std::thread::sleep(size.lasts);
        // A busy machine may not have begun by then. A service that leaves inserts waiting is attacked further, so that the
        // times show it.
        let has_begun = || {
            let attempts = attempts.load(Ordering::Relaxed);
            let is_attacked = kind.threads == 0 || attempts > 0;
            let is_served = honest.answered() >= FEWEST_ANSWERED_INSERTS;
            is_attacked && is_served && probed.load(Ordering::Relaxed) > 0
        };
        while !has_begun() && begun.elapsed() < LONGEST_END {
            std::thread::sleep(Duration::from_millis(10));
        }
        let memory = service.measure_memory();
        let _ = stopped.set(Instant::now());
        let end = service.stop();
        ended.store(true, Ordering::Relaxed);
        let failed = |_| Err(anyhow::anyhow!("the attacker failed"));
        let attacked: Vec<Result<()>> = attackers
            .into_iter()
            .map(|one| one.join().unwrap_or_else(failed))
            .collect();
        (attacked, asking.join(), probing.join(), end, memory)
    });
    attacked.into_iter().collect::<Result<Vec<_>>>()?;
    let failed = |_| anyhow::anyhow!("a client failed");
    let (log, probes) = (log.map_err(failed)?, probes.map_err(failed)?);
    let end = end?;
    let lost = count_lost(folder.path(), size, &log)?;
    Ok(AttackRow::new(
        kind.name,
        log,
        probes,
        end,
        lost,
        attempts.load(Ordering::Relaxed),
        memory?.since(&idle),
    ))
}

/// Starts the service again and sends all that it had acknowledged: counts what has not the same answer.
fn count_lost(folder: &Path, size: &AttackSize, log: &ClientLog) -> Result<usize> {
    if log.acknowledged.is_empty() {
        return Ok(0);
    }
    let mut service = RunningService::start(folder, size)?;
    let lines = log.acknowledged.iter().map(|(sent, _)| format!("{sent}\n"));
    let lines: String = lines.collect();
    let mut connection = Connection::open(HONEST_ADDRESS, service.address)?;
    let answer = connection.ask(
        "POST",
        &format!("{COLLECTION_PATH}/documents"),
        &[("Authorization", ADMIN_KEY), ("Content-Type", NDJSON_TYPE)],
        lines.as_bytes(),
    )?;
    let answers: Vec<&str> = answer.body.lines().collect();
    let same = |(at, (_, before)): (usize, &(String, String))| answers.get(at) == Some(&&**before);
    let kept = log.acknowledged.iter().enumerate();
    let kept = kept.filter(|&pair| same(pair)).count();
    service.stop()?;
    Ok(log.acknowledged.len() - kept)
}

/// Memory of a service, in bytes.
struct ServiceMemory {
    peak_bytes: u64,
    /// Memory of the stored documents, as the service states it.
    stored_bytes: u64,
}

impl ServiceMemory {
    /// Returns how much has come since an earlier measurement.
    fn since(&self, earlier: &Self) -> Self {
        Self {
            peak_bytes: self.peak_bytes.saturating_sub(earlier.peak_bytes),
            stored_bytes: self.stored_bytes.saturating_sub(earlier.stored_bytes),
        }
    }
}

/// The part of the statistics of a collection that is read here.
#[derive(Deserialize)]
struct CollectionStats {
    /// Bytes by component.
    memory: BTreeMap<String, u64>,
}

/// A service with a key of each role; killed when dropped.
struct RunningService {
    child: Child,
    address: SocketAddr,
}

impl Drop for RunningService {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl RunningService {
    /// Starts the service and waits until it is ready.
    fn start(folder: &Path, size: &AttackSize) -> Result<Self> {
        let keys = [
            ("LOOKALIKE_READ_KEY", READ_KEY),
            ("LOOKALIKE_WRITE_KEY", WRITE_KEY),
            ("LOOKALIKE_ADMIN_KEY", ADMIN_KEY),
        ];
        let (child, address) = launch_with(folder, size.options, &keys)?;
        let service = Self { child, address };
        let begun = Instant::now();
        while service.ask("GET", "/readyz", b"")?.status != 200 {
            ensure!(begun.elapsed() < LONGEST_END, "the service is not ready");
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(service)
    }

    fn ask(&self, method: &str, path: &str, body: &[u8]) -> Result<client::HttpAnswer> {
        let headers = [
            ("Authorization", ADMIN_KEY),
            ("Content-Type", "application/json"),
        ];
        let mut connection = Connection::open(HONEST_ADDRESS, self.address)?;
        Ok(connection.ask(method, path, &headers, body)?)
    }

    /// Returns the peak memory so far, and what the stored documents take now.
    fn measure_memory(&self) -> Result<ServiceMemory> {
        let stats = self.ask("GET", &format!("{COLLECTION_PATH}/stats"), b"")?;
        ensure!(stats.status == 200, "{}", stats.body);
        let stats: CollectionStats = serde_json::from_str(&stats.body)?;
        Ok(ServiceMemory {
            peak_bytes: self.peak_bytes()?,
            stored_bytes: stats.memory.values().sum(),
        })
    }

    /// Returns the peak memory of the process so far.
    fn peak_bytes(&self) -> Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let peak = peak.and_then(|peak| peak.trim().strip_suffix(" kB"));
        let kibibytes: u64 = peak.context("the system tells no peak memory")?.parse()?;
        Ok(kibibytes << 10)
    }

    fn make_collection(&self, settings: &serde_json::Value) -> Result<()> {
        let created = self.ask("PUT", COLLECTION_PATH, settings.to_string().as_bytes())?;
        ensure!(created.status == 201, "{}", created.body);
        Ok(())
    }

    /// Sends the signal to stop; returns the time until the service has ended. One that does not end is killed
    /// after [`LONGEST_END`].
    fn stop(&mut self) -> Result<Duration> {
        let begun = Instant::now();
        kill_process(Pid::from_child(&self.child), Signal::TERM)?;
        loop {
            if let Some(status) = self.child.try_wait()? {
                ensure!(status.success(), "the service ended with {status}");
                return Ok(begun.elapsed());
            }
            if begun.elapsed() > LONGEST_END {
                self.child.kill()?;
                self.child.wait()?;
                return Ok(begun.elapsed());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn to_mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// The median, the 99th percentile and the longest of some times, in milliseconds.
fn percentiles(mut times: Vec<Duration>) -> (f64, f64, f64) {
    times.sort_unstable();
    let of = |share: f64| {
        let at = (times.len().saturating_sub(1) as f64 * share) as usize;
        times.get(at).map_or(0.0, |time| time.as_secs_f64() * 1e3)
    };
    (of(0.5), of(0.99), of(1.0))
}

impl AttackRow {
    fn new(
        attack: &'static str,
        log: ClientLog,
        probes: ClientLog,
        end: Duration,
        lost: usize,
        attempts: u64,
        memory: ServiceMemory,
    ) -> Self {
        let (requests, probed) = (log.times.len(), probes.times.len());
        let (median_ms, p99_ms, longest_ms) = percentiles(log.times);
        let (probe_median_ms, probe_p99_ms, probe_longest_ms) = percentiles(probes.times);
        Self {
            attack,
            requests,
            refused: log.refused,
            median_ms,
            p99_ms,
            longest_ms,
            probes: probed,
            failed_probes: probes.refused,
            probe_median_ms,
            probe_p99_ms,
            probe_longest_ms,
            end_seconds: end.as_secs_f64(),
            acknowledged: log.acknowledged.len(),
            lost,
            attempts,
            memory_mib: to_mib(memory.peak_bytes),
            stored_mib: to_mib(memory.stored_bytes),
        }
    }

    fn print(&self) {
        println!(
            "{:40} {:8} {:7} {:8.1} {:8.1} {:8.1} {:7} {:6} {:8.1} {:8.1} {:8.1} {:6.1} {:7} {:5} {:8} {:8.0} {:8.0}",
            self.attack,
            self.requests,
            self.refused,
            self.median_ms,
            self.p99_ms,
            self.longest_ms,
            self.probes,
            self.failed_probes,
            self.probe_median_ms,
            self.probe_p99_ms,
            self.probe_longest_ms,
            self.end_seconds,
            self.acknowledged,
            self.lost,
            self.attempts,
            self.memory_mib,
            self.stored_mib,
        );
    }
}

fn print_heading() {
    println!(
        "{:40} {:>8} {:>7} {:>8} {:>8} {:>8} {:>7} {:>6} {:>8} {:>8} {:>8} {:>6} {:>7} {:>5} {:>8} {:>8} {:>8}",
        "attack",
        "requests",
        "refused",
        "p50 ms",
        "p99 ms",
        "longest",
        "/livez",
        "failed",
        "p50 ms",
        "p99 ms",
        "longest",
        "end s",
        "acked",
        "lost",
        "attempts",
        "MiB",
        "stored",
    );
}

/// Settings of a collection that compares by features.
fn usual_settings() -> serde_json::Value {
    json!({})
}

/// Settings of a collection that compares by edit distance.
fn edit_distance_settings() -> serde_json::Value {
    settings_of_measure("levenshtein")
}

fn settings_of_measure(measure: &str) -> serde_json::Value {
    json!({ "measure": measure, "threshold": 0.8 })
}
