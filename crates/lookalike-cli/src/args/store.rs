//! Arguments of `store`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::snapshots::Place;

/// Look after a collection of the service: check it, mend it, carry it elsewhere
///
/// DIR is the directory of one collection, below the --data of the service. No service may have it open
/// meanwhile; copies of a running one are made with POST /v1/collections/NAME/snapshot.
#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct StoreArgs {
    #[command(subcommand)]
    pub(crate) command: StoreCommand,
}

/// What is to be done with a collection.
#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    Verify(StoreVerifyArgs),
    Repair(StoreRepairArgs),
    Restore(StoreRestoreArgs),
    Export(StoreExportArgs),
    Import(StoreImportArgs),
}

/// Check that every byte of a collection is as it was written
///
/// A commit that a loss of power interrupted is read as the service would complete or undo it. Nothing is
/// written, so the collection may be on a disk that refuses writes. What is wrong is told, and ends the
/// command with 2. Sketches that are wrong or missing are told too: they are made again of the texts when the
/// service opens the collection, and nothing is lost with them.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  lookalike store verify /var/lib/lookalike/news")]
pub(crate) struct StoreVerifyArgs {
    /// The directory of the collection
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,

    #[command(flatten)]
    pub(crate) telling: StoreTelling,
}

/// Make a new collection of all that can still be read of a damaged one
///
/// The documents are checked and inserted anew in their order. So their sequence numbers change, and
/// where a kept document was lost, so do verdicts. Documents are there again whose deletion was lost. The
/// damaged one stays as it is. Ends with 1 if something was lost.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lookalike store repair /var/lib/lookalike/news /var/lib/lookalike/news-mended
  lookalike store repair --settings news.json data/news data/news-mended")]
pub(crate) struct StoreRepairArgs {
    /// The directory of the damaged collection
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,

    /// The directory of the new one
    #[arg(value_name = "NEW")]
    pub(crate) new: PathBuf,

    /// The settings that it was made with, where its manifest is damaged or lost (JSON, as `store export`
    /// writes and PUT /v1/collections/NAME takes them)
    #[arg(long, value_name = "FILE")]
    pub(crate) settings: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) telling: StoreTelling,
}

/// Bring a snapshot back as a collection
///
/// Copies it from a directory or an object store to a directory that is new, below the --data of a service
/// that is started then, and checks every byte of it. What is wrong is told, and ends the command with 2.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lookalike store restore /backup/news/monday /var/lib/lookalike/news
  lookalike store restore s3://backup/lookalike/news/monday /var/lib/lookalike/news")]
pub(crate) struct StoreRestoreArgs {
    /// The directory of the snapshot, or its URL in an object store
    #[arg(value_name = "SNAPSHOT")]
    pub(crate) snapshot: Place,

    /// The directory of the collection
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,

    #[command(flatten)]
    pub(crate) telling: StoreTelling,
}

/// Write every document of a collection as JSONL
///
/// In their order, with the fields id, time_us (microseconds since 1970), text or fingerprint, meta, seq,
/// and of those that repeat another of and similarity.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  lookalike store export /var/lib/lookalike/news -o news.jsonl.zst --settings news.json")]
pub(crate) struct StoreExportArgs {
    /// The directory of the collection
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,

    /// The documents: a file whose extension says how it is compressed (.gz, .zst); without it,
    /// standard output
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,

    /// The settings of the collection, as `store import` and PUT /v1/collections/NAME take them (JSON)
    #[arg(long, value_name = "FILE")]
    pub(crate) settings: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) telling: StoreTelling,
}

/// Insert the documents of an export into a collection
///
/// In their order and with their times. Verdicts fall anew, and are the same if nothing was deleted or
/// late. What is there already with the same content stays as it is, so an import that was
/// interrupted can be made again. Rows that are none of an export, of another content under a known id or
/// older than the window are reported and skipped, and end the command with 1.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lookalike store import data/news news.jsonl.zst --settings news.json
  lookalike store import data/news more.jsonl")]
pub(crate) struct StoreImportArgs {
    /// The directory of the collection
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,

    /// An export (.jsonl, also .gz and .zst), or - for standard input
    #[arg(value_name = "IN")]
    pub(crate) input: PathBuf,

    /// Make the collection, with these settings (JSON)
    #[arg(long, value_name = "FILE")]
    pub(crate) settings: Option<PathBuf>,

    /// Stop at the first bad row: what was inserted before stays
    #[arg(long)]
    pub(crate) strict: bool,

    #[command(flatten)]
    pub(crate) telling: StoreTelling,
}

/// What a command tells.
#[derive(Debug, Args)]
#[command(next_help_heading = "Running")]
pub(crate) struct StoreTelling {
    /// Print the summary as one JSON object on standard output
    #[arg(long)]
    pub(crate) json: bool,

    /// No summary on standard error: errors and warnings only
    #[arg(short, long)]
    pub(crate) quiet: bool,
}
