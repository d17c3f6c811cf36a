//! Arguments of `store`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Subcommand};
use lookalike_options::document_time::parse_time;
use lookalike_server::{RestorePoint, SnapshotPlace};

use crate::commands::shared::running::SummaryArgs;

/// Maintain a collection of the service: check, repair, export, import
///
/// DIR is the directory of one collection, below the --data of the service. No service may have it open at
/// the same time; to copy a collection of a running service, use POST /v1/collections/NAME/snapshot.
#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct StoreArgs {
    #[command(subcommand)]
    pub(crate) command: StoreCommand,
}

/// Commands on a collection.
#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    Verify(StoreVerifyArgs),
    Repair(StoreRepairArgs),
    Restore(StoreRestoreArgs),
    Export(StoreExportArgs),
    Import(StoreImportArgs),
    Log(LogArgs),
}

/// Check that every byte of a collection is as it was written
///
/// Reads a commit that a power loss interrupted as the service would complete or undo it. Writes nothing, so
/// the collection may be on a read-only disk. Damage is reported, and the exit code is then 2. Wrong or
/// missing sketches are reported too, but nothing is lost with them: the service computes them again from the
/// texts when it opens the collection.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  lookalike store verify /var/lib/lookalike/news")]
pub(crate) struct StoreVerifyArgs {
    /// Directory of the collection
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,

    #[command(flatten)]
    pub(crate) telling: SummaryArgs,
}

/// Make a new collection from the readable parts of a damaged one
///
/// Checks and inserts the documents anew, in their order. Therefore their sequence numbers change, and so do
/// verdicts where a kept document was lost. Documents whose deletion was lost return. The damaged collection
/// stays as it is. The exit code is 1 if something was lost.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lookalike store repair /var/lib/lookalike/news /var/lib/lookalike/news-mended
  lookalike store repair --settings news.json data/news data/news-mended")]
pub(crate) struct StoreRepairArgs {
    /// Directory of the damaged collection
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,

    /// Directory of the new collection
    #[arg(value_name = "NEW")]
    pub(crate) new: PathBuf,

    /// Settings of the damaged collection, needed if its manifest is damaged or lost: JSON as `store export
    /// --settings` writes it or GET /v1/collections/NAME answers. If they have been changed, those of the
    /// creation (`created`) must be in it; the new collection has the last ones. A recipe with files is read
    /// from the damaged collection where its copy is intact
    #[arg(long, value_name = "FILE")]
    pub(crate) settings: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) telling: SummaryArgs,
}

/// Restore a snapshot as a collection, or a shared log as a data directory
///
/// Copies a snapshot from a directory or an object store to a new directory, below the --data of a service that
/// is started afterwards, and checks every byte. Damage is reported, and the exit code is then 2.
///
/// SNAPSHOT may also be the URL of a shared log (`serve --shared-log`). Then DIR becomes a --data directory with
/// all collections, recipes and aliases as they were at the moment of --at, which the summary names. A service
/// can be started with it, without the log or as the beginning of a new one. A restoration that fails leaves
/// no directory.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lookalike store restore /backup/news/monday /var/lib/lookalike/news
  lookalike store restore s3://backup/lookalike/news/monday /var/lib/lookalike/news
  lookalike store restore s3://bucket/log /var/lib/lookalike-yesterday --at 2026-11-29T14:00:00Z")]
pub(crate) struct StoreRestoreArgs {
    /// Directory of the snapshot, or its URL in an object store
    #[arg(value_name = "SNAPSHOT")]
    pub(crate) snapshot: SnapshotPlace,

    /// Directory of the collection
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,

    /// Restore a shared log as it was at this moment: a time (2026-11-29T14:00:00Z), the number of a record, or
    /// `latest`. Default: `latest`, if SNAPSHOT is the URL of a shared log
    #[arg(long, value_name = "TIME|SEQ")]
    pub(crate) at: Option<RestoreMoment>,

    #[command(flatten)]
    pub(crate) telling: SummaryArgs,
}

/// Write every document of a collection as JSONL
///
/// Writes the documents in their order, with the fields id, time_us (microseconds since 1970), text or
/// fingerprint, meta and seq; duplicates also have of and similarity.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  lookalike store export /var/lib/lookalike/news -o news.jsonl.zst --settings news.json")]
pub(crate) struct StoreExportArgs {
    /// Directory of the collection
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,

    /// File for the documents, compressed if its extension is .gz or .zst; without it, standard output
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,

    /// File for the settings of the collection (JSON, as `store import` takes them): those in force, and in
    /// `created` those of its creation if they have been changed, which only `store repair` uses. PUT
    /// /v1/collections/NAME takes the file without `created` and `recipe_files`
    #[arg(long, value_name = "FILE")]
    pub(crate) settings: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) telling: SummaryArgs,
}

/// Insert the documents of an export into a collection
///
/// Inserts them in their order and with their times, and decides the verdicts anew; they are the same if
/// nothing was deleted or late. Documents that the collection already has with the same content stay as they
/// are, so an interrupted import can be repeated. Rows that are not rows of an export, that have other
/// content under a known id, or that are older than the window are reported and skipped; the exit code is
/// then 1.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lookalike store import data/news news.jsonl.zst --settings news.json
  lookalike store import data/news more.jsonl")]
pub(crate) struct StoreImportArgs {
    /// Directory of the collection
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,

    /// Export to read (.jsonl, also .gz and .zst), or - for standard input
    #[arg(value_name = "IN")]
    pub(crate) input: PathBuf,

    /// Create the collection with these settings (JSON, as `store export --settings` writes it)
    #[arg(long, value_name = "FILE")]
    pub(crate) settings: Option<PathBuf>,

    /// Stop at the first bad row; documents inserted before it stay
    #[arg(long)]
    pub(crate) strict: bool,

    #[command(flatten)]
    pub(crate) telling: SummaryArgs,
}

/// Moment whose state of a shared log is restored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RestoreMoment(pub(crate) RestorePoint);

impl FromStr for RestoreMoment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "latest" {
            return Ok(Self(RestorePoint::Latest));
        }
        if let Ok(record) = text.parse() {
            return Ok(Self(RestorePoint::Record(record)));
        }
        let seconds = parse_time(text).ok_or_else(|| {
            format!(
                "'{text}' is no moment: give a time, such as 2026-11-29T14:00:00Z, the number of a record, or latest"
            )
        })?;
        Ok(Self(RestorePoint::Time((seconds * 1e6) as i64)))
    }
}

/// Look at a shared log, check it, and repair it
///
/// URL is the --shared-log of the replicas: s3://bucket/prefix, gs://…, az://… or file:///directory. Only a
/// program built with `--features object-store` supports them.
#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct LogArgs {
    #[command(subcommand)]
    pub(crate) command: LogCommand,
}

/// Commands on a shared log.
#[derive(Debug, Subcommand)]
pub(crate) enum LogCommand {
    Status(LogStatusArgs),
    Verify(LogVerifyArgs),
    Repair(LogRepairArgs),
    Prune(LogPruneArgs),
    Export(LogExportArgs),
}

/// Show the extent of a shared log, who writes to it, and how far the replicas are
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  lookalike store log status s3://bucket/log")]
pub(crate) struct LogStatusArgs {
    /// URL of the log
    #[arg(value_name = "URL")]
    pub(crate) url: String,

    #[command(flatten)]
    pub(crate) telling: SummaryArgs,
}

/// Check that every record of a shared log is as it was written, and that none is missing
///
/// Also compares the end of the log with the marks of replicas and with the snapshots, because the records alone
/// do not tell that the last ones are lost. Damage is reported, and the exit code is then 2. Writes nothing.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  lookalike store log verify s3://bucket/log")]
pub(crate) struct LogVerifyArgs {
    /// URL of the log
    #[arg(value_name = "URL")]
    pub(crate) url: String,

    /// Number of the first record to check
    #[arg(long, value_name = "SEQ", default_value_t = 1)]
    pub(crate) from: u64,

    #[command(flatten)]
    pub(crate) telling: SummaryArgs,
}

/// Write damaged and missing records of a shared log back from the copies of a replica
///
/// Stop all replicas first. A copy is written only where it fits the records before and after it. If the copies
/// end with other records than the log, nothing is overwritten without --replace. The exit code is 2 if something
/// could not be repaired.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  lookalike store log repair s3://bucket/log --from /var/lib/lookalike")]
pub(crate) struct LogRepairArgs {
    /// URL of the log
    #[arg(value_name = "URL")]
    pub(crate) url: String,

    /// The --data of a replica, which has copies of the records
    #[arg(long, value_name = "DIR")]
    pub(crate) from: PathBuf,

    /// Put the copies in place of other whole records at the end of the log, if the copies reach as far as the
    /// log. The replaced records are kept below `replaced/`
    #[arg(long)]
    pub(crate) replace: bool,

    #[command(flatten)]
    pub(crate) telling: SummaryArgs,
}

/// Remove records of a shared log that no replica needs any more
///
/// Replicas with --snapshot-log-every do this by themselves. The last 1,024 records stay. A replica that has not
/// applied the removed records must start with an empty directory, and a new replica needs a snapshot behind them.
/// Also removes what interrupted snapshots have left, if it is older than a day.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  lookalike store log prune s3://bucket/log --before 120000")]
pub(crate) struct LogPruneArgs {
    /// URL of the log
    #[arg(value_name = "URL")]
    pub(crate) url: String,

    /// Number of the first record that stays
    #[arg(long, value_name = "SEQ")]
    pub(crate) before: u64,

    #[command(flatten)]
    pub(crate) telling: SummaryArgs,
}

/// Write the entries of a shared log as JSONL, in their order
///
/// A line has the number and time of the record, the place in it, the kind, the collection, and what was sent:
/// documents as the clients sent them. If a record is damaged, the entries before it are written, and the exit
/// code is 2.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  lookalike store log export s3://bucket/log --collection news -o news-log.jsonl")]
pub(crate) struct LogExportArgs {
    /// URL of the log
    #[arg(value_name = "URL")]
    pub(crate) url: String,

    /// Write the entries of this collection alone
    #[arg(long, value_name = "NAME")]
    pub(crate) collection: Option<String>,

    /// File for the entries; without it, standard output
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) telling: SummaryArgs,
}
