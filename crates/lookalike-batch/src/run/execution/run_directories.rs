//! The directories that a run may have beside its inputs and outputs.

use std::path::Path;

use crate::index::run_index::RunIndexSettings;
use crate::run::execution::work_directory::LockedDirectory;

/// The directories of a run that last longer than the run.
#[derive(Clone, Copy, Default)]
pub(in crate::run) struct RunDirectories<'a> {
    /// The directory of a run that can be interrupted.
    pub(in crate::run) work: Option<&'a LockedDirectory>,
    /// The index whose documents come before all others.
    pub(in crate::run) index: Option<&'a RunIndexSettings>,
}

/// The directories that a run will have.
#[derive(Clone, Copy, Debug, Default)]
pub struct PlannedDirectories<'a> {
    /// The index whose documents come before all others.
    pub index: Option<&'a Path>,
    /// `true` if the run will have a directory for its steps.
    pub has_work: bool,
}
