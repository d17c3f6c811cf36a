//! Arguments of `mcp`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use lookalike_options::units::{parse_duration, parse_size};

use crate::commands::shared::running::parse_threads;

/// Answer a language model by the Model Context Protocol
///
/// A program that has a model, such as an editor, starts this command and speaks with it over standard input and standard
/// output. The model can find near-duplicates and copied passages in files, compare two texts, ask whether a text is new
/// to an index or a service, and ask why a document was removed.
///
/// It reads files below the folders of --folder only, and changes nothing unless --allow-insert is given. Answers have at
/// most 1 MiB, messages of the client 16 MiB. One call runs at a time. The command ends with its input.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lookalike mcp --folder ~/corpus
  lookalike mcp --folder essays --folder sources --index seen.lib
  LOOKALIKE_SERVICE_KEY=… lookalike mcp --service https://texts.example:7600 --allow-insert")]
pub(crate) struct McpArgs {
    /// Folder whose files may be read, with all folders below it; may be repeated. Without one, no tool reads files
    ///
    /// Symbolic links are followed first: a link to a file elsewhere is not read. Relative paths of a model are those of
    /// the first folder in which they exist.
    #[arg(long, value_name = "DIR")]
    pub(crate) folder: Vec<PathBuf>,

    /// Index that can be asked whether a text is new, as `dedup --library` and `index build` write it; may be repeated
    #[arg(long, value_name = "LIB")]
    pub(crate) index: Vec<PathBuf>,

    /// Service that can be asked whether a text is new to a collection. The variable LOOKALIKE_SERVICE_KEY holds its key
    #[arg(long, value_name = "URL")]
    pub(crate) service: Option<String>,

    /// Let the model insert new texts into indexes and collections
    #[arg(long)]
    pub(crate) allow_insert: bool,

    /// Maximum time of a call: a number with the unit s, m or h. A run stops at its next report of progress
    #[arg(
        long,
        value_name = "DURATION",
        value_parser = parse_duration,
        default_value = "5m",
        help_heading = "Running"
    )]
    pub(crate) timeout: Duration,

    /// Maximum memory of the process in a run over files, as in `dedup`: bytes, or with the unit K, M, G (of 1000) or Ki,
    /// Mi, Gi (of 1024)
    ///
    /// Default: four fifths of the available memory of the machine or of its control group.
    #[arg(long, value_name = "SIZE", value_parser = parse_size, help_heading = "Running")]
    pub(crate) memory: Option<u64>,

    /// Number of worker threads; results do not depend on it. Default: one per core
    #[arg(long, value_name = "N", value_parser = parse_threads, help_heading = "Running")]
    pub(crate) threads: Option<usize>,
}
