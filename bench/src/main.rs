//! Benchmarks that check their answers.
//!
//! - `smoke`: every benchmark in a short form on generated corpora, as a test;
//! - `sketch`, `compat`, `chinese`, `dedup`, `memory`, `hamming`, `join`, `live-texts`, `quality`,
//!   `settings`, `planted`, `passages`, `audit`, `serve`, `http`: measurements, most of them on real corpora
//!   (`--data DIRECTORY`), each written to `bench/results/NAME.json`;
//! - `live`, `measures`, `siblings`, `search`, `attacks`, `compaction`: the same without real corpora;
//! - `growth`: the cost of a short text in corpora of different sizes; `bounded`: corpora beyond the memory;
//! - `forecast`: predictions of plans beside what runs take;
//! - `labelled`: labelled pairs of the real corpora, for other tools;
//! - `tables`: copies the results to the tables of the documents; `--check` fails if they are
//!   stale.
//!
//! A time is the best of several runs after one warm-up run. Measuring on a busy machine is
//! refused.

mod attacks;
mod audit;
mod bounded;
mod chinese;
mod compaction;
mod compat;
mod contamination;
mod corpora;
mod dedup;
mod forecast;
mod forms;
mod forms_on_corpora;
mod goals;
mod growth;
mod hamming;
mod http;
mod join;
mod labelled;
mod live;
mod machine;
mod measures;
mod passages;
mod planted;
mod quality;
mod search;
mod serve;
mod settings;
mod siblings;
mod sketch;
mod tables;

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Result, bail};
use clap::{Parser, Subcommand};
use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Benchmarks that check their answers.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
    /// Where the real corpora are.
    #[arg(long, global = true, default_value = "../shared/data")]
    data: PathBuf,
    /// Measure even though the machine is busy.
    #[arg(long, global = true)]
    busy: bool,
}

#[derive(Subcommand)]
enum Command {
    /// Everything in a short form on made corpora.
    Smoke {
        /// Only these benchmarks.
        only: Vec<String>,
    },
    /// Text to sketches, one core, by instruction set.
    Sketch,
    /// Text to other tools' fingerprints, one core, by instruction set.
    Compat,
    /// Words cut by jieba, their weights and document frequencies.
    Chinese,
    /// The whole command on whole corpora, by input format.
    Dedup,
    /// The most memory that it takes.
    Memory,
    /// Processor time and memory of short texts as their number grows; 16 million take 3 GB of disk.
    Growth(growth::GrowthOptions),
    /// Time, memory and temporary files of corpora with a limit of memory; takes 15 GB of disk.
    Bounded(bounded::BoundedOptions),
    /// Predictions of `--explain-plan` beside the time, memory and temporary files that runs take.
    Forecast,
    /// Writes the titles of `growth` to a file.
    Titles {
        /// Number of titles.
        count: u64,
        /// The file, in TSV.
        out: PathBuf,
    },
    /// Documents of one template that are a little less similar than the threshold.
    Siblings,
    /// Filled forms, repeats of them, copies of articles and labelled pairs: what is lost and what is found.
    Forms,
    /// Look-ups from the command line among 50 million fingerprints; takes 2 GB of disk.
    Search,
    /// Look-ups by Hamming distance.
    Hamming(hamming::Selection),
    /// All pairs within a Hamming distance.
    Join,
    /// The live index: inserting, expiring and searching with 50 million in the window.
    Live,
    /// The live index: look-ups of the fingerprints of real texts.
    LiveTexts,
    /// Edit distance of two short sentences, a million times.
    Measures,
    /// Recall and precision against an oracle that works on strings.
    Quality,
    /// The default beside single settings, on labelled sets.
    Settings,
    /// Edits of known kind planted into the corpora, and what is found of them.
    Planted,
    /// Copied passages: what is found of planted ones, and how fast.
    Passages,
    /// Writes labelled pairs made from the real corpora into a folder.
    Labelled {
        /// The folder.
        out: PathBuf,
    },
    /// Check and insert, durably; memory, single documents and opening.
    Serve(serve::Selection),
    /// The same as clients of the service meet it.
    Http(http::Selection),
    /// Inserting while partitions are compacted, and the disk that replaced documents take.
    Compaction(compaction::CompactionOptions),
    /// The service while a client of another address attacks it: what honest clients meet, and how it ends.
    Attacks(attacks::AttackOptions),
    /// How often an audit's interval holds the truth, and what an audit costs.
    Audit,
    /// Puts the results into the documents.
    Tables {
        /// Only say whether they are up to date.
        #[arg(long)]
        check: bool,
    },
}

/// The short form of a benchmark.
type ShortForm = fn() -> Result<()>;

/// Benchmarks that have a short form, by name.
const SHORT_FORMS: [(&str, ShortForm); 23] = [
    ("sketch", sketch::smoke),
    ("compat", compat::smoke),
    ("chinese", chinese::smoke),
    ("join", join::smoke),
    ("dedup", dedup::smoke),
    ("forms", forms::smoke),
    ("siblings", siblings::smoke),
    ("growth", growth::smoke),
    ("bounded", bounded::smoke),
    ("forecast", forecast::smoke),
    ("hamming", hamming::smoke),
    ("search", search::smoke),
    ("live", live::smoke),
    ("measures", measures::smoke),
    ("serve", serve::smoke),
    ("http", http::smoke),
    ("attacks", attacks::smoke),
    ("compaction", compaction::smoke),
    ("quality", quality::smoke),
    ("planted", planted::smoke),
    ("passages", passages::smoke),
    ("contamination", contamination::smoke),
    ("audit", audit::smoke),
];

fn run_short_forms(only: &[String]) -> Result<()> {
    let is_known = |name: &&String| SHORT_FORMS.iter().any(|(known, _)| known == name);
    if let Some(unknown) = only.iter().find(|name| !is_known(name)) {
        let known = SHORT_FORMS.map(|(name, _)| name).join(", ");
        bail!("'{unknown}' has no short form: give some of {known}");
    }
    let is_asked = |name: &str| only.is_empty() || only.iter().any(|other| other == name);
    let mut chosen_forms = SHORT_FORMS.iter().filter(|(name, _)| is_asked(name));
    chosen_forms.try_for_each(|(name, run)| {
        let started = Instant::now();
        run()?;
        println!("-- {name}: {:.1} s", started.elapsed().as_secs_f64());
        Ok(())
    })
}

fn main() -> Result<()> {
    let Arguments {
        command,
        data,
        busy,
    } = Arguments::parse();
    let timed = matches!(
        command,
        Command::Sketch
            | Command::Compat
            | Command::Chinese
            | Command::Dedup
            | Command::Growth(_)
            | Command::Bounded(_)
            | Command::Siblings
            | Command::Search
            | Command::Hamming(_)
            | Command::Join
            | Command::Live
            | Command::LiveTexts
            | Command::Measures
            | Command::Serve(_)
            | Command::Http(_)
            | Command::Attacks(_)
            | Command::Compaction(_)
            | Command::Audit
    );
    if timed && !busy {
        machine::refuse_if_busy()?;
    }
    match command {
        Command::Smoke { only } => run_short_forms(&only),
        Command::Sketch => sketch::run(&data),
        Command::Compat => compat::run(&data),
        Command::Chinese => chinese::run(&data),
        Command::Join => join::run(&data),
        Command::Dedup => dedup::run(&data),
        Command::Memory => dedup::memory(&data),
        Command::Growth(options) => growth::run(&options, &data),
        Command::Bounded(options) => bounded::run(&options, &data),
        Command::Forecast => forecast::run(&data),
        Command::Titles { count, out } => growth::write_titles(count, &out, &data),
        Command::Siblings => siblings::run(),
        Command::Forms => forms::run().and_then(|()| forms_on_corpora::run(&data)),
        Command::Search => search::run(),
        Command::Hamming(selection) => hamming::run(&data, &selection),
        Command::Live => live::run(),
        Command::LiveTexts => live::texts(&data),
        Command::Measures => measures::run(),
        Command::Quality => quality::run(&data),
        Command::Settings => settings::run(&data),
        Command::Passages => passages::run(&data),
        Command::Planted => planted::run(&data),
        Command::Labelled { out } => labelled::run(&data, &out),
        Command::Serve(selection) => serve::run(&data, &selection),
        Command::Http(selection) => http::run(&data, &selection),
        Command::Attacks(options) => attacks::run(&options),
        Command::Compaction(options) => compaction::run(&options),
        Command::Audit => audit::run(&data),
        Command::Tables { check } => tables::run(check),
    }
}
