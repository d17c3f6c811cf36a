//! Arguments of `store`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use lookalike_server::SnapshotPlace;

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

/// Restore a snapshot as a collection
///
/// Copies it from a directory or an object store to a new directory, below the --data of a service that is
/// started afterwards, and checks every byte. Damage is reported, and the exit code is then 2.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lookalike store restore /backup/news/monday /var/lib/lookalike/news
  lookalike store restore s3://backup/lookalike/news/monday /var/lib/lookalike/news")]
pub(crate) struct StoreRestoreArgs {
    /// Directory of the snapshot, or its URL in an object store
    #[arg(value_name = "SNAPSHOT")]
    pub(crate) snapshot: SnapshotPlace,

    /// Directory of the collection
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,

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
