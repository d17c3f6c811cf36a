//! Settings of the dedup and pairs runs.

use std::path::PathBuf;

use lookalike::Recipe;
use lookalike::plan;
use lookalike_io::source::{ReadOptions, RowSource};
use lookalike_options::keep_order::KeepOrder;
use lookalike_options::match_options::OptionSpelling;

use crate::decisions::ContentDecision;
use crate::memory::MemoryLimit;

/// Time window: how far apart in time two matching documents may be.
#[derive(Debug, Clone, PartialEq)]
pub struct RunWindow {
    /// Largest difference in time, in seconds.
    pub seconds: f64,
    /// The field with the time: a number (seconds since 1970) or an ISO 8601 date or date and time.
    pub field: String,
}

/// Settings of a dedup or pairs run.
#[derive(Debug, Clone)]
pub struct RunSettings {
    /// Determines how texts become features and sketches.
    pub recipe: Recipe,
    /// Determines how candidates are found and verified.
    pub matching: plan::MatchSettings,
    /// Determines whether the run learns forms from the documents themselves first. Two documents of one form match only
    /// if their slots agree; see [`lookalike::forms`].
    pub form_learning: FormLearning,
    /// Options of reading. The run fills `fields.extra` itself.
    pub read: ReadOptions,
    /// Decides which document of a cluster is kept.
    pub keep: KeepOrder,
    /// A field that must have equal values in both documents of a match.
    pub within: Option<String>,
    /// A field whose values are counted for each kept document: the sources of the documents that it stands for.
    pub sources: Option<String>,
    /// Largest distance in time between the documents of a match.
    pub window: Option<RunWindow>,
    /// Number of threads, from 1.
    pub threads: usize,
    /// `true` to stop at the first bad row.
    pub strict: bool,
    /// Settings of the audit, which estimates what the run misses; `None` for no audit.
    pub audit: Option<AuditSettings>,
    /// Limit on the memory of the process; `None` keeps everything in memory.
    pub memory: Option<MemoryLimit>,
    /// Directory of temporary files of a run out of core; `None` for that of the system.
    pub temporary: Option<PathBuf>,
    /// Decisions of a person, which overrule the match plan in a dedup run.
    pub decisions: Vec<ContentDecision>,
    /// The spelling of these settings in messages.
    pub spelling: OptionSpelling,
}

/// The cases in which a run learns forms from its documents.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FormLearning {
    /// It learns none. Documents are compared by the forms of the recipe, if it has any.
    Never,
    /// It learns them if the recipe can have forms and has none, and if the documents have texts. An index that exists
    /// keeps the recipe that it was made with.
    #[default]
    WherePossible,
    /// It learns them, and is refused where this is not possible.
    Always,
}

/// Settings of the audit of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditSettings {
    /// Documents to sample, from 1. `None` samples one in eighty of the expected documents, but at
    /// least 500 and at most 1,000. If the size of the input is not known, it samples 1,000.
    pub documents: Option<usize>,
    /// Seed of the sample.
    pub seed: u64,
}

impl Default for RunSettings {
    fn default() -> Self {
        Self {
            recipe: Recipe::default(),
            matching: plan::MatchSettings::default(),
            form_learning: FormLearning::default(),
            read: ReadOptions::default(),
            keep: KeepOrder::default(),
            within: None,
            sources: None,
            window: None,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            strict: false,
            audit: None,
            memory: None,
            temporary: None,
            decisions: Vec::new(),
            spelling: OptionSpelling::default(),
        }
    }
}

/// The inputs of a run.
#[derive(Debug, Clone, Default)]
pub struct RunInputs {
    /// The documents.
    pub documents: RowSource,
    /// Known documents (`--against`). They come before all others, count as kept whatever they match,
    /// and are never written.
    pub against: RowSource,
}
