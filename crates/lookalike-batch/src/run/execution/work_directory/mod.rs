//! Runs that survive a kill: a directory with everything that a run has computed so far.
//!
//! ```text
//! DIR/manifest               what is computed, from which inputs; the steps that are complete
//! DIR/lock                   locked by the process that works on the run; holds its number
//! DIR/forms/                 files as these, of the pass in which the run learns its forms; removed after it
//! DIR/forms-000001.step      the forms that the run has learned, if it has learned any
//! DIR/against-000001.step    sketches of documents of `--against`
//! DIR/documents-000001.step  sketches of documents of the inputs, some seconds of work each
//! DIR/verdicts-000001.step   verdicts of documents, in their total order
//! DIR/cuts-000001.step       repeated text of kept documents, in the order of reading
//! DIR/objects.copy, .parts   what was read of objects in stores; removed when the run is finished
//! DIR/upload-HASH.record     an upload to a store that is not completed, and its parts that the store has
//! ```
//!
//! A run ends a step after a twentieth of the time since it began, at least a quarter of a second and at most
//! 30 seconds, or when the step has 32 MiB. A thread of its own writes the file, syncs it, and then replaces
//! the manifest, so that reading and deciding go on meanwhile.
//!
//! Guarantees: the directory describes a state of the run at any moment, whenever the process is killed or the
//! power fails. A resumed run repeats what was computed since the last complete step, and its outputs are the bytes
//! that an uninterrupted run writes. It is refused if its inputs, its settings or the program have changed, or if
//! a file of the directory is damaged; the message names the difference or the file. A run out of core links and decides again,
//! and the forms are learned again from the steps of their pass.
//!
//! Stored blocks come back in `disk_backend`. Stored verdicts are continued in `run_stages::continue_verdicts`, and stored
//! cuts in `commands/repeated_text/cut_choice.rs`. A run
//! whose outputs are already written is skipped in `commands/dedup/opening.rs`.
//!
//! Objects of stores: a later process asks each for its version, and takes from `objects.copy` what an earlier one has
//! read. So no byte is transferred twice, apart from the parts on their way at the kill. The files are of `lookalike_io`.
//!
//! Cost: a resumed run reads compressed inputs, JSON lists and Parquet again up to where it was, because rows are compared and
//! copied later. It analyses only rows that no step has. It then builds the buckets of all documents but the removed ones.
//! Outputs are one step, which is repeated.

pub(in crate::run) mod cut_steps;
mod learned_step;
mod locking;
pub(in crate::run) mod manifest;
pub(in crate::run) mod reading_steps;
mod status;
mod step_file;
pub(in crate::run) mod verdict_steps;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use lookalike_io::error::{Error, Result, display_path};
use lookalike_io::sink::{OutputTarget, find_written_object, parent_directory};
use lookalike_io::source::{InputSet, ReadOptions};
use lookalike_io::{is_url, remove_copies};
use lookalike_system::FileVersion;

pub(in crate::run) use self::learned_step::{LearnedStep, RemovedWithoutForms};
pub use self::locking::WorkSettings;
pub(in crate::run) use self::locking::{BegunRun, LockedDirectory};
use self::locking::{LEARNING_DIRECTORY, read_manifest};
pub use self::manifest::WorkStage;
pub(in crate::run) use self::manifest::{InputMoment, OutputEntry};
pub use self::status::{StageProgress, WorkStatus, read_work_status};
use crate::run::execution::work_directory::manifest::{InputEntry, WorkManifest};
use crate::run::execution::work_directory::step_file::NewStep;
use crate::run::reading::open_inputs::OpenInputs;
use crate::run::settings::RunSettings;
use crate::sealed_manifest::FileChecksum;

/// An output of a run, with the name of its content, for example `kept`.
pub(in crate::run) struct NamedOutput<'a> {
    pub(in crate::run) name: String,
    pub(in crate::run) target: &'a OutputTarget,
}

/// An opened directory of an interruptible run. No other process changes it meanwhile.
pub(in crate::run) struct WorkDirectory {
    state: Arc<WorkState>,
    /// The manifest when the directory was opened.
    before: WorkManifest,
    clock: Mutex<StepClock>,
    writing: Mutex<Option<JoinHandle<Result<()>>>>,
}

struct WorkState {
    path: PathBuf,
    manifest: Mutex<WorkManifest>,
    /// Held as long as a thread still writes a step.
    _lock: Arc<File>,
}

/// Decides when a step ends.
struct StepClock {
    started: Instant,
    last_step: Instant,
}

impl StepClock {
    /// A step takes this share of the time since the run began.
    const ELAPSED_DIVISOR: u32 = 20;
    const SHORTEST_STEP: Duration = Duration::from_millis(250);
    const LONGEST_STEP: Duration = Duration::from_secs(30);

    fn new() -> Self {
        let started = Instant::now();
        Self {
            started,
            last_step: started,
        }
    }

    fn is_due(&self) -> bool {
        let share = self.started.elapsed() / Self::ELAPSED_DIVISOR;
        self.last_step.elapsed() >= share.clamp(Self::SHORTEST_STEP, Self::LONGEST_STEP)
    }
}

/// Bytes from which a step ends in any case.
const LARGE_STEP_BYTES: usize = 32 << 20;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn seconds_since_1970() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

impl WorkDirectory {
    /// Begins a run of `dedup` in a directory, or continues the one in it.
    ///
    /// # Errors
    /// As [`open_described`](Self::open_described).
    pub(in crate::run) fn open_run(
        directory: &LockedDirectory,
        settings: &RunSettings,
        opened: &OpenInputs,
        is_out_of_core: bool,
        learned: Option<&LearnedStep>,
    ) -> Result<Self> {
        let settings = describe_settings(settings, is_out_of_core);
        let against = opened.against.as_ref();
        Self::open_described(directory, settings, &opened.documents, against, learned)
    }

    /// Begins a run in a directory, or continues the one in it. `settings` are those that decide about its result, each
    /// with a name for messages.
    ///
    /// # Errors
    /// - If the directory holds a run with other inputs or settings, or a run of another version.
    /// - If an input cannot be read again, or if the directory cannot be written.
    pub(in crate::run) fn open_described(
        directory: &LockedDirectory,
        settings: Vec<(String, String)>,
        documents: &InputSet,
        against: Option<&InputSet>,
        learned: Option<&LearnedStep>,
    ) -> Result<Self> {
        let path = &directory.path;
        let new = NewRun {
            manifest: new_manifest(settings, documents, against)?,
            learned,
        };
        let manifest = match read_manifest(path)?.filter(|_| directory.resume) {
            Some(there) => {
                if let Some(difference) = there.find_difference(&new.manifest) {
                    return Err(Error::usage_error(format!(
                        "cannot resume the run in {}: {difference}; delete the directory, or name another one, \
                         to begin again",
                        display_path(path)
                    )));
                }
                there
            }
            None => new.begin_in(path)?,
        };
        // The manifest comes first: it must not name a step that is removed.
        write_manifest(path, &manifest)?;
        remove_unnamed_files(path, &manifest);
        Ok(Self {
            state: Arc::new(WorkState {
                path: path.clone(),
                manifest: Mutex::new(manifest.clone()),
                _lock: Arc::clone(&directory.lock),
            }),
            before: manifest,
            clock: Mutex::new(StepClock::new()),
            writing: Mutex::new(None),
        })
    }

    /// Returns `true` if a step that has `bytes` bytes should end now.
    fn is_step_due(&self, bytes: usize) -> bool {
        bytes >= LARGE_STEP_BYTES || lock(&self.clock).is_due()
    }

    /// Writes a step in another thread, once the step before it is written.
    ///
    /// # Errors
    /// If the step before it could not be written.
    fn submit_step(&self, step: NewStep) -> Result<()> {
        self.wait_for_writing()?;
        lock(&self.clock).last_step = Instant::now();
        let state = Arc::clone(&self.state);
        let writing = std::thread::Builder::new()
            .name("step".to_owned())
            .spawn(move || state.write_step(&step))
            .map_err(|cause| Error::write_error("start a thread for", self.name(), cause))?;
        *lock(&self.writing) = Some(writing);
        Ok(())
    }

    /// Waits until the last step is on disk and in the manifest.
    fn wait_for_writing(&self) -> Result<()> {
        match lock(&self.writing).take() {
            None => Ok(()),
            Some(writing) => writing
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
        }
    }

    fn name(&self) -> String {
        display_path(&self.state.path)
    }

    /// Records that all documents are read.
    pub(in crate::run) fn finish_reading(&self, documents: u64) -> Result<()> {
        self.wait_for_writing()?;
        self.change_manifest(|manifest| {
            manifest.documents = Some(documents);
            manifest.stage = manifest.stage.max(WorkStage::Decide);
        })
    }

    /// Records that all documents have a verdict.
    pub(in crate::run) fn finish_deciding(&self) -> Result<()> {
        self.wait_for_writing()?;
        self.change_manifest(|manifest| manifest.stage = manifest.stage.max(WorkStage::Write))
    }

    /// Records that all outputs are in place, and removes the copies of objects. Copies that cannot be removed remain,
    /// because the run has done what it was to do; they go with the directory.
    pub(in crate::run) fn finish_run(&self, outputs: &[NamedOutput<'_>]) -> Result<()> {
        let outputs = list_outputs(outputs).unwrap_or_default();
        self.change_manifest(|manifest| {
            manifest.stage = WorkStage::Finished;
            manifest.outputs = outputs;
        })?;
        let _ = remove_copies(&self.state.path);
        Ok(())
    }

    /// Returns `true` if the run was finished before, and these outputs are still those that it wrote.
    pub(in crate::run) fn has_written(&self, outputs: &[NamedOutput<'_>]) -> bool {
        self.before.stage == WorkStage::Finished
            && list_outputs(outputs).is_some_and(|now| now == self.before.outputs)
    }

    /// Removes temporary names beside outputs. The run that is resumed left them if it was killed while it put its
    /// outputs in place. Outputs that mirror directories are left out. Names that cannot be removed remain.
    pub(in crate::run) fn remove_interrupted_outputs(&self, outputs: &[NamedOutput<'_>]) {
        if self.before.stage != WorkStage::Write {
            return;
        }
        for output in outputs {
            if let OutputTarget::Path(path) = output.target
                && let Some(name) = path.file_name()
                && let Ok(entries) = fs::read_dir(parent_directory(path))
            {
                let is_left = |entry: &fs::DirEntry| {
                    manifest::is_temporary_of(&entry.file_name().to_string_lossy(), name)
                };
                for entry in entries.flatten().filter(is_left) {
                    let _ = fs::remove_file(entry.path());
                }
            }
        }
    }

    fn change_manifest(&self, change: impl FnOnce(&mut WorkManifest)) -> Result<()> {
        let mut manifest = lock(&self.state.manifest);
        let before = manifest.clone();
        change(&mut manifest);
        if *manifest == before {
            return Ok(());
        }
        manifest.changed = seconds_since_1970();
        write_manifest(&self.state.path, &manifest)
    }
}

impl Drop for WorkDirectory {
    /// Waits for the thread that writes, so that no other run finds the directory locked. A failure is ignored,
    /// because a run that did not wait itself has failed already.
    fn drop(&mut self) {
        let _ = self.wait_for_writing();
    }
}

impl WorkState {
    fn write_step(&self, step: &NewStep) -> Result<()> {
        let mut manifest = lock(&self.manifest);
        let number = manifest.steps_of(step.kind).count() + 1;
        let path = self.path.join(manifest::step_file_name(step.kind, number));
        let entry = step_file::write_step(&path, manifest.run, step)?;
        manifest.steps.push(entry);
        manifest.changed = seconds_since_1970();
        write_manifest(&self.path, &manifest)
    }
}

/// A run that may begin now.
struct NewRun<'a> {
    manifest: WorkManifest,
    /// The forms that it has learned.
    learned: Option<&'a LearnedStep>,
}

impl NewRun<'_> {
    /// Begins the run: writes the step of its forms, if it has learned any. Returns its manifest, which names the step.
    ///
    /// # Errors
    /// If the inputs have changed since the forms were learned, or if the step cannot be written.
    fn begin_in(mut self, path: &Path) -> Result<WorkManifest> {
        if let Some(learned) = self.learned {
            let pass = read_manifest(&path.join(LEARNING_DIRECTORY))?;
            let difference = pass.and_then(|pass| pass.find_input_difference(&self.manifest));
            if let Some(difference) = difference {
                return Err(Error::input_error(format!(
                    "the run in {} has learned its forms from other inputs: {difference}; delete the directory, or \
                     name another one, to begin again",
                    display_path(path)
                )));
            }
            let place = path.join(manifest::learned_file_name());
            self.manifest.learned = Some(learned.write_step(&place, self.manifest.run)?);
        }
        Ok(self.manifest)
    }
}

/// Returns the manifest of a run that begins now.
fn new_manifest(
    settings: Vec<(String, String)>,
    documents: &InputSet,
    against: Option<&InputSet>,
) -> Result<WorkManifest> {
    let against = against.map(InputEntry::list_inputs);
    let mut manifest = WorkManifest {
        program: env!("CARGO_PKG_VERSION").to_owned(),
        run: FileChecksum(0),
        settings,
        against: against.transpose()?.unwrap_or_default(),
        inputs: InputEntry::list_inputs(documents)?,
        started: seconds_since_1970(),
        changed: seconds_since_1970(),
        stage: WorkStage::Read,
        documents: None,
        learned: None,
        steps: Vec::new(),
        outputs: Vec::new(),
    };
    // The time makes two runs with the same settings different.
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.map_or(0, |since| since.as_nanos());
    let identity = format!("{now} {} {}", std::process::id(), manifest.to_text());
    manifest.run = FileChecksum(lookalike::value_hash(identity.as_bytes()));
    Ok(manifest)
}

/// Returns the settings that decide about results, each with a name for messages. Outputs, threads and `--strict`
/// are not among them: a resumed run may have others. Steps of a run out of core hold keys too.
fn describe_settings(settings: &RunSettings, out_of_core: bool) -> Vec<(String, String)> {
    let RunSettings {
        recipe,
        matching,
        form_learning: _,
        read,
        keep,
        within,
        sources,
        window,
        threads: _,
        strict: _,
        audit: _,
        memory: _,
        temporary: _,
        decisions,
        spelling: _,
    } = settings;
    let window = window.as_ref();
    let window = window.map(|window| format!("{} s in field {}", window.seconds, window.field));
    let none = || "not set".to_owned();
    let decisions = (!decisions.is_empty()).then(|| {
        let hash = lookalike::value_hash(format!("{decisions:?}").as_bytes());
        format!("{} ({hash:016x})", decisions.len())
    });
    let named = [
        (
            "recipe",
            format!("{} ({})", recipe.name, recipe.recipe_id()),
        ),
        ("method", matching.method.name().to_owned()),
        ("threshold", matching.threshold.get().to_string()),
        ("distance", matching.distance.to_string()),
        ("measure", matching.measure.name().to_owned()),
        ("unit", matching.unit.name().to_owned()),
        ("candidates", matching.candidates.name().to_owned()),
        ("number of sentences", matching.sentences.to_string()),
        ("keep rule", keep.to_string()),
        ("field of `within`", within.clone().unwrap_or_else(none)),
        ("field of `sources`", sources.clone().unwrap_or_else(none)),
        ("window", window.unwrap_or_else(none)),
        ("decisions", decisions.unwrap_or_else(none)),
    ];
    let named = named.map(|(name, value)| (name.to_owned(), value));
    let out_of_core = (
        manifest::OUT_OF_CORE_SETTING.to_owned(),
        out_of_core.to_string(),
    );
    let settings = named.into_iter().chain(describe_reading(read));
    settings.chain([out_of_core]).collect()
}

/// Returns the options of reading that decide about results, each with a name for messages.
pub(in crate::run) fn describe_reading(read: &ReadOptions) -> Vec<(String, String)> {
    let none = || "not set".to_owned();
    let named = [
        ("text field", read.fields.text.join(",")),
        ("id field", format!("{:?}", read.fields.id)),
        (
            "field of features",
            read.fields.features.clone().unwrap_or_else(none),
        ),
        ("kind of features", format!("{}", read.fields.lists_only)),
        ("format", format!("{:?}", read.format)),
        ("header", read.header.to_string()),
        ("delimiter", format!("{:?}", read.delimiter)),
        ("encoding", read.encoding.name().to_owned()),
        (
            "treatment of invalid text",
            format!("{:?}", read.invalid_text),
        ),
        (
            "documents of plain text",
            format!("{}, {}", read.document_per_file, read.text_documents),
        ),
        ("document files", read.document_files.is_some().to_string()),
        ("largest row", read.max_row_bytes.to_string()),
        ("block size", read.block_bytes.to_string()),
    ];
    let owned = named.map(|(name, value)| (name.to_owned(), value));
    owned.into()
}

/// Returns the outputs as they are in place now; `None` if one is missing or is no single file or object.
fn list_outputs(outputs: &[NamedOutput<'_>]) -> Option<Vec<OutputEntry>> {
    let entry = |output: &NamedOutput<'_>| {
        let OutputTarget::Path(path) = output.target else {
            return None;
        };
        let (bytes, changed, object) = if is_url(path) {
            let (bytes, object) = find_written_object(path)?;
            (bytes, (0, 0), Some(object))
        } else {
            let metadata = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
            let version = FileVersion::of_file(path, &metadata);
            (version.bytes, version.changed, None)
        };
        Some(OutputEntry {
            role: output.name.clone(),
            path: display_path(path),
            bytes,
            changed,
            object,
        })
    };
    outputs.iter().map(entry).collect()
}

fn write_manifest(path: &Path, manifest: &WorkManifest) -> Result<()> {
    let place = path.join(manifest::MANIFEST_FILE);
    step_file::write_file(&place, &[manifest.to_text().as_bytes()])
}

/// Removes files that the manifest does not name: those of a step that was interrupted, of a finished run, and of the
/// pass that learned the forms. The next run tries again to remove files that cannot be removed now.
fn remove_unnamed_files(path: &Path, manifest: &WorkManifest) {
    let named: Vec<String> = manifest.named_steps().map(|(name, _)| name).collect();
    let Ok(entries) = fs::read_dir(path) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name == LEARNING_DIRECTORY {
            let _ = fs::remove_dir_all(entry.path());
        } else if manifest::is_work_file(&name) && !named.contains(&name) {
            let _ = fs::remove_file(entry.path());
        }
    }
}
