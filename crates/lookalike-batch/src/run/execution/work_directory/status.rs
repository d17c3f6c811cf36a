//! The state of an interruptible run, seen from outside.

use std::fs::{self, File, TryLockError};
use std::path::Path;

use lookalike_io::count_copied_bytes;
use lookalike_io::error::{Error, Result, display_path};
use serde::Serialize;

use crate::run::execution::work_directory::locking::{
    LEARNING_DIRECTORY, LOCK_FILE, read_manifest,
};
use crate::run::execution::work_directory::manifest::{StepKind, WorkManifest, WorkStage};
use crate::run::execution::work_directory::step_file::read_step;
use crate::run::execution::work_directory::{manifest, seconds_since_1970};

/// The state of an interruptible run.
#[derive(Debug, Clone, Serialize)]
pub struct WorkStatus {
    /// `true` if the run learns its forms, in a pass of its own before all others. All else is then about this pass.
    pub learns_forms: bool,
    /// The stage that the run is in.
    pub stage: WorkStage,
    /// The number of the process that works on the run; `None` if none does.
    pub process: Option<u32>,
    /// Reading: bytes of all inputs on disk.
    pub read: StageProgress,
    /// Documents in the steps of reading, with those of `--against`.
    pub documents: u64,
    /// Deciding: documents. The total is `None` until all are read.
    pub decided: StageProgress,
    /// Complete steps.
    pub steps: u64,
    /// Bytes of the files of all steps.
    pub step_bytes: u64,
    /// Bytes of objects in stores that the directory keeps until the run is finished.
    pub object_bytes: u64,
    /// Seconds since the run began.
    pub age_seconds: u64,
    /// Seconds since the last step, or since the stage began.
    pub idle_seconds: u64,
    /// Files that are missing or damaged, each with the reason.
    pub damaged: Vec<String>,
}

/// Part of a stage that is in complete steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct StageProgress {
    /// Amount that is done.
    pub done: u64,
    /// Amount in all, if it is known.
    pub total: Option<u64>,
}

impl StageProgress {
    /// Returns the share that is done, from 0 to 1, if the total is known.
    pub fn share_done(self) -> Option<f64> {
        let total = self.total?;
        Some(match total {
            0 => 1.0,
            total => (self.done as f64 / total as f64).min(1.0),
        })
    }
}

/// Reads the state of the run in a directory, also while a process works on it. The sizes of all steps are
/// compared with the manifest; with `verifies`, their content is read and verified too.
///
/// # Errors
/// If the directory holds no run, or its manifest is damaged.
pub fn read_work_status(path: &Path, verifies: bool) -> Result<WorkStatus> {
    let process = find_process(path)?;
    let object_bytes = count_copied_bytes(path);
    let learning_path = path.join(LEARNING_DIRECTORY);
    let (path, manifest) = match (read_manifest(path)?, read_manifest(&learning_path)?) {
        (Some(manifest), _) => (path, manifest),
        (None, Some(manifest)) => (&*learning_path, manifest),
        (None, None) => {
            return Err(Error::input_error(format!(
                "{} holds no run: it has no {}; `lookalike dedup --work` makes one",
                display_path(path),
                manifest::MANIFEST_FILE
            )));
        }
    };
    let inputs = manifest.against.iter().chain(&manifest.inputs);
    let total_bytes = inputs.map(|input| input.bytes).sum();
    let sum = |kinds: &[StepKind], of: &dyn Fn(&manifest::StepEntry) -> u64| -> u64 {
        let steps = manifest.steps.iter();
        let steps = steps.filter(|step| kinds.contains(&step.kind));
        steps.map(of).sum()
    };
    let reading = [StepKind::Against, StepKind::Documents];
    let read = match manifest.stage {
        WorkStage::Read => sum(&reading, &|step| step.input_bytes).min(total_bytes),
        WorkStage::Decide | WorkStage::Write | WorkStage::Finished => total_bytes,
    };
    let now = seconds_since_1970();
    Ok(WorkStatus {
        learns_forms: path == learning_path,
        stage: manifest.stage,
        process,
        read: StageProgress {
            done: read,
            total: Some(total_bytes),
        },
        documents: sum(&reading, &|step| step.documents),
        decided: StageProgress {
            // A run out of core, and one that takes benchmarks out of a corpus, store no verdicts.
            done: match (manifest.stage, manifest.documents) {
                (WorkStage::Write | WorkStage::Finished, Some(documents)) => documents,
                _ => sum(&[StepKind::Verdicts], &|step| step.documents),
            },
            total: manifest.documents,
        },
        steps: manifest.steps.len() as u64,
        step_bytes: manifest.steps.iter().map(|step| step.bytes).sum(),
        object_bytes,
        age_seconds: now.saturating_sub(manifest.started),
        idle_seconds: now.saturating_sub(manifest.changed),
        damaged: find_damage(path, &manifest, verifies),
    })
}

/// Returns the number of the process that has locked a directory.
fn find_process(path: &Path) -> Result<Option<u32>> {
    let place = path.join(LOCK_FILE);
    let failed = |cause| Error::read_error("read", display_path(&place), cause);
    let file = match File::open(&place) {
        Ok(file) => file,
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(cause) => return Err(failed(cause)),
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(None),
        Err(TryLockError::WouldBlock) => {
            let number = fs::read_to_string(&place).map_err(failed)?;
            Ok(Some(number.trim().parse().unwrap_or(0)))
        }
        Err(TryLockError::Error(cause)) => Err(failed(cause)),
    }
}

pub(super) fn find_damage(path: &Path, manifest: &WorkManifest, verifies: bool) -> Vec<String> {
    let steps = manifest.named_steps();
    steps
        .filter_map(|(name, step)| {
            let file = path.join(&name);
            if verifies {
                let read = read_step(&file, manifest.run, step);
                return read.err().map(|error| error.to_string());
            }
            match fs::metadata(&file) {
                Err(cause) => Some(format!("{}: {cause}", display_path(&file))),
                Ok(metadata) if metadata.len() != step.bytes => Some(format!(
                    "{}: it has {} bytes, where the manifest says {}",
                    display_path(&file),
                    metadata.len(),
                    step.bytes
                )),
                Ok(_) => None,
            }
        })
        .collect()
}
