//! Runs that several processes share, on any machines that see the directory.
//!
//! ```text
//! DIR/shards/0003-of-0016/   what the third of 16 processes has computed, as a directory of an interruptible run
//!     documents-*.step       sketches and keys of its share of the input files (with those of --against)
//!     links-000001.step      links of its share of the keys
//!     removals-000001.step   removals of its share of the components
//!     written-000001.step    the directory with the outputs of its input files, if each has its own
//! DIR/manifest               the outputs, once they are in place
//! ```
//!
//! A share of the inputs is whole files that follow one another. So the steps of all shards, one shard after another,
//! are the steps of all inputs. Nobody coordinates the processes: each computes its share of the first stage that it has
//! not computed, if all shards have computed the stage before.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use lookalike_io::error::{Error, Result, display_path};
use lookalike_io::sink::OutputTarget;
use lookalike_io::source::{InputFormat, InputSet, RowSource};
use serde::Serialize;

use super::manifest::{InputEntry, StepKind, WorkManifest, WorkStage, damaged_file};
use super::step_file::{NewStep, read_step};
use super::{
    WorkDirectory, WorkSettings, create_directory, new_manifest, read_manifest, seconds_since_1970,
    try_lock_directory,
};
use crate::run::corpus_rows::OpenInputs;
use crate::run::settings::{RunInputs, RunSettings};

/// The directory of all shards.
pub(super) const SHARDS: &str = "shards";

/// One of the processes that share a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShardNumber {
    /// From 1 to `count`.
    pub index: u32,
    /// Number of processes, from 1 to [`MOST`](Self::MOST).
    pub count: u32,
}

impl ShardNumber {
    /// Largest number of processes that share a run.
    pub const MOST: u32 = 4096;

    /// Parses `3/16`.
    ///
    /// # Errors
    /// If the text is no such number; the message is a phrase.
    pub fn parse(text: &str) -> Result<Self, String> {
        let numbers = text.split_once('/').and_then(|(index, count)| {
            let (index, count) = (index.parse().ok()?, count.parse().ok()?);
            Some(Self { index, count })
        });
        numbers
            .filter(|it| (1..=Self::MOST).contains(&it.count) && (1..=it.count).contains(&it.index))
            .ok_or_else(|| {
                format!(
                    "give the number of a shard and the number of all, such as 3/16: from 1/1 to {0}/{0}",
                    Self::MOST
                )
            })
    }

    /// Returns `true` if a number of a component is in the share of this shard.
    pub(in crate::run) fn takes_number(self, number: u32) -> bool {
        let hash = u64::from(number.wrapping_mul(0x9e37_79b1));
        (hash * u64::from(self.count)) >> 32 == u64::from(self.index - 1)
    }

    fn all_of(count: u32) -> impl Iterator<Item = Self> {
        (1..=count).map(move |index| Self { index, count })
    }

    fn directory_name(self) -> String {
        format!("{:04}-of-{:04}", self.index, self.count)
    }

    /// Parses what [`directory_name`](Self::directory_name) has made.
    fn parse_directory(name: &str) -> Option<Self> {
        let text = name.replacen("-of-", "/", 1);
        let number = Self::parse(&text).ok()?;
        (number.directory_name() == name).then_some(number)
    }
}

impl fmt::Display for ShardNumber {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.index, self.count)
    }
}

/// The stages whose work is divided among shards, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ShardStage {
    /// Reading and sketching the inputs.
    Read,
    /// Linking documents that share keys.
    Link,
    /// Deciding verdicts.
    Decide,
    /// Writing the outputs of a share of the inputs, if each input has its own.
    Write,
}

impl ShardStage {
    /// The stages of every run.
    const ALL: [Self; 3] = [Self::Read, Self::Link, Self::Decide];

    fn step_kind(self) -> StepKind {
        match self {
            Self::Read => StepKind::Documents,
            Self::Link => StepKind::Links,
            Self::Decide => StepKind::Removals,
            Self::Write => StepKind::Written,
        }
    }

    fn is_done(self, manifest: &WorkManifest) -> bool {
        match self {
            Self::Read => manifest.stage > WorkStage::Read,
            Self::Link | Self::Decide | Self::Write => {
                manifest.steps_of(self.step_kind()).next().is_some()
            }
        }
    }
}

/// The steps of a shard, as they were when its manifest was read.
pub(in crate::run) struct ShardSteps {
    pub(super) path: PathBuf,
    pub(super) manifest: WorkManifest,
}

/// The shards of a run, of which one is worked on by this process.
pub(in crate::run) struct RunShards<'a> {
    work: &'a Path,
    settings: &'a RunSettings,
    shard: ShardNumber,
    /// The inputs of every shard.
    inputs: Vec<ShardInputs>,
    own: WorkDirectory,
}

/// The files that a shard reads.
struct ShardInputs {
    against: Range<usize>,
    documents: Range<usize>,
}

impl<'a> RunShards<'a> {
    /// Opens the directory of a shard, to begin or to continue it.
    ///
    /// # Errors
    /// If the inputs cannot be divided, if the run was divided into another number of shards, and the errors of a
    /// [`WorkDirectory`].
    pub(in crate::run) fn open_shard(
        work: &'a WorkSettings,
        settings: &'a RunSettings,
        shard: ShardNumber,
        opened: &OpenInputs,
    ) -> Result<Self> {
        let files = |inputs: Option<&InputSet>| {
            inputs.map_or(Ok(Vec::new()), |inputs| {
                divide_files(inputs, shard.count as usize)
            })
        };
        let (against, documents) = (
            files(opened.against.as_ref())?,
            files(Some(&opened.inputs))?,
        );
        let none = || 0..0;
        let inputs: Vec<ShardInputs> = (0..shard.count as usize)
            .map(|at| ShardInputs {
                against: against.get(at).cloned().unwrap_or_else(none),
                documents: documents[at].clone(),
            })
            .collect();
        let path = &work.directory;
        create_directory(path)?;
        refuse_undivided(path)?;
        refuse_other_counts(path, shard)?;
        create_directory(&path.join(SHARDS))?;
        let expected = expected_manifest(settings, opened, &inputs[shard.index as usize - 1])?;
        let directory = path.join(SHARDS).join(shard.directory_name());
        Ok(Self {
            own: WorkDirectory::open_directory(&directory, true, expected)?,
            work: path,
            settings,
            shard,
            inputs,
        })
    }

    /// Returns the inputs of this shard alone.
    pub(in crate::run) fn own_inputs(&self, opened: &OpenInputs) -> RunInputs {
        let own = &self.inputs[self.shard.index as usize - 1];
        let paths = |inputs: Option<&InputSet>, range: &Range<usize>| {
            let files = inputs.map_or(&[][..], InputSet::input_files);
            let paths = files[range.clone()]
                .iter()
                .map(|file| file.path().to_owned());
            RowSource::Paths(paths.collect())
        };
        RunInputs {
            documents: paths(Some(&opened.inputs), &own.documents),
            against: paths(opened.against.as_ref(), &own.against),
        }
    }

    /// Returns the directory of this shard.
    pub(in crate::run) fn own_directory(&self) -> &WorkDirectory {
        &self.own
    }

    /// Returns `true` if this shard has done its share of a stage.
    pub(in crate::run) fn has_done(&self, stage: ShardStage) -> bool {
        stage.is_done(&super::lock(&self.own.state.manifest))
    }

    /// Returns the shards that have not done their share of a stage.
    ///
    /// # Errors
    /// If a manifest is damaged.
    pub(in crate::run) fn find_missing(&self, stage: ShardStage) -> Result<Vec<u32>> {
        let mut missing = Vec::new();
        for shard in ShardNumber::all_of(self.shard.count) {
            let manifest = read_manifest(&self.path_of(shard))?;
            if !manifest.is_some_and(|manifest| stage.is_done(&manifest)) {
                missing.push(shard.index);
            }
        }
        Ok(missing)
    }

    /// Returns the input files of this shard, from and to.
    pub(in crate::run) fn own_files(&self) -> (usize, usize) {
        let own = &self.inputs[self.shard.index as usize - 1].documents;
        (own.start, own.end)
    }

    /// Records that this shard has written the outputs of its inputs to a directory.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(in crate::run) fn store_written(&self, directory: &OutputTarget) -> Result<()> {
        self.store_share(ShardStage::Write, directory.to_string().into_bytes())
    }

    /// Returns the shards that have not written the outputs of their inputs to a directory.
    ///
    /// # Errors
    /// If a manifest or a step is damaged.
    pub(in crate::run) fn find_unwritten(
        &self,
        directory: &OutputTarget,
        opened: &OpenInputs,
    ) -> Result<Vec<u32>> {
        let mut missing = Vec::new();
        for (index, shard) in (1..).zip(self.load_steps(opened)?) {
            let is_this = |bytes: &[u8]| Some(bytes == directory.to_string().as_bytes());
            let has_written = ShardStage::Write.is_done(&shard.manifest)
                && shard.read_share(ShardStage::Write, is_this)?;
            if !has_written {
                missing.push(index);
            }
        }
        Ok(missing)
    }

    fn path_of(&self, shard: ShardNumber) -> PathBuf {
        self.work.join(SHARDS).join(shard.directory_name())
    }

    /// Returns the steps of all shards.
    ///
    /// # Errors
    /// If a shard is missing, damaged, or of other inputs or settings.
    pub(in crate::run) fn load_steps(&self, opened: &OpenInputs) -> Result<Vec<ShardSteps>> {
        let shards = ShardNumber::all_of(self.shard.count).zip(&self.inputs);
        let steps = shards.map(|(shard, inputs)| {
            let path = self.path_of(shard);
            let manifest = read_manifest(&path)?.ok_or_else(|| {
                Error::input_error(format!(
                    "{} has no manifest any more: begin shard {shard} again",
                    display_path(&path)
                ))
            })?;
            let expected = expected_manifest(self.settings, opened, inputs)?;
            if let Some(difference) = manifest.find_difference(&expected) {
                return Err(Error::usage_error(format!(
                    "cannot use shard {shard} in {}: {difference}; delete its directory to begin it again",
                    display_path(&path)
                )));
            }
            Ok(ShardSteps { path, manifest })
        });
        steps.collect()
    }

    /// Stores what this shard has computed of a stage.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(in crate::run) fn store_share(&self, stage: ShardStage, content: Vec<u8>) -> Result<()> {
        let kind = stage.step_kind();
        let before = super::lock(&self.own.state.manifest).steps_of(kind).count() as u64;
        self.own.submit_step(NewStep {
            kind,
            range: before..before + 1,
            documents: 0,
            input_bytes: 0,
            content,
        })?;
        self.own.wait_for_writing()
    }

    /// Opens the directory of the run, to write its outputs. Returns `None` if another process does that.
    ///
    /// # Errors
    /// The errors of a [`WorkDirectory`].
    pub(in crate::run) fn open_outputs(
        &self,
        opened: &OpenInputs,
    ) -> Result<Option<WorkDirectory>> {
        let manifest = new_manifest((self.settings, true), opened)?;
        let lock = try_lock_directory(self.work)?;
        let open = |lock| WorkDirectory::open_locked(self.work, lock, true, manifest);
        lock.map(open).transpose()
    }
}

impl ShardSteps {
    /// Reads what the shard has stored last of a stage after that of reading, and decodes it.
    ///
    /// # Errors
    /// If it cannot be read or decoded.
    pub(in crate::run) fn read_share<T>(
        &self,
        stage: ShardStage,
        decode: impl Fn(&[u8]) -> Option<T>,
    ) -> Result<T> {
        let kind = stage.step_kind();
        let (name, entry) = self.manifest.steps_of(kind).last().ok_or_else(|| {
            Error::input_error(format!(
                "{} has no step of {} any more",
                display_path(&self.path),
                kind.name()
            ))
        })?;
        let path = self.path.join(name);
        let content = read_step(&path, self.manifest.run, entry)?;
        decode(content.as_bytes())
            .ok_or_else(|| damaged_file(&path, "its content is not of this run"))
    }
}

/// Returns the manifest that a shard of a run has at its beginning.
fn expected_manifest(
    settings: &RunSettings,
    opened: &OpenInputs,
    inputs: &ShardInputs,
) -> Result<WorkManifest> {
    let mut manifest = new_manifest((settings, true), opened)?;
    let take = |entries: &mut Vec<InputEntry>, range: &Range<usize>| {
        *entries = entries[range.clone()].to_vec();
    };
    take(&mut manifest.against, &inputs.against);
    take(&mut manifest.inputs, &inputs.documents);
    Ok(manifest)
}

/// Divides files among shards by their sizes. Each shard has files that follow one another, perhaps none.
fn divide_files(inputs: &InputSet, shards: usize) -> Result<Vec<Range<usize>>> {
    let files = inputs.input_files();
    if let Some(file) = files
        .iter()
        .find(|file| file.input_format() == InputFormat::TextFile)
    {
        return Err(Error::usage_error(format!(
            "{} is one document, and several of them are read together: a run over document files cannot be \
             divided into shards",
            file.display_name()
        )));
    }
    let sizes: Vec<u64> = files
        .iter()
        .map(|file| file.size_on_disk().unwrap_or(0))
        .collect();
    Ok(divide_sizes(&sizes, shards))
}

fn divide_sizes(sizes: &[u64], shards: usize) -> Vec<Range<usize>> {
    let total = u128::from(sizes.iter().sum::<u64>().max(1));
    let mut before = 0u128;
    // The shard of a file is that in which its middle lies.
    let of_files: Vec<usize> = sizes
        .iter()
        .map(|&size| {
            let middle = before + u128::from(size) / 2;
            before += u128::from(size);
            ((middle * shards as u128 / total) as usize).min(shards - 1)
        })
        .collect();
    (0..shards)
        .map(|shard| {
            let end = |shard: usize| of_files.partition_point(|&of| of < shard);
            end(shard)..end(shard + 1)
        })
        .collect()
}

fn refuse_undivided(path: &Path) -> Result<()> {
    match read_manifest(path)? {
        Some(_) if !path.join(SHARDS).is_dir() => Err(Error::usage_error(format!(
            "{} holds a run that is not divided into shards: leave out --shard, or name another directory",
            display_path(path)
        ))),
        _ => Ok(()),
    }
}

fn refuse_other_counts(path: &Path, shard: ShardNumber) -> Result<()> {
    let other = list_shards(path)?
        .into_iter()
        .find(|it| it.count != shard.count);
    match other {
        Some(other) => Err(Error::usage_error(format!(
            "{} holds a run that is divided into {} shards, not {}: give --shard I/{0}, or name another directory",
            display_path(path),
            other.count,
            shard.count
        ))),
        None => Ok(()),
    }
}

/// Returns the shards that have a directory, in order.
fn list_shards(path: &Path) -> Result<Vec<ShardNumber>> {
    let place = path.join(SHARDS);
    let entries = match std::fs::read_dir(&place) {
        Ok(entries) => entries,
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(cause) => return Err(Error::read_error("read", display_path(&place), cause)),
    };
    let names = entries.flatten().map(|entry| entry.file_name());
    let mut shards: Vec<ShardNumber> = names
        .filter_map(|name| ShardNumber::parse_directory(&name.to_string_lossy()))
        .collect();
    shards.sort_unstable_by_key(|shard| shard.index);
    Ok(shards)
}

/// How far the shards of a run are, seen from outside.
#[derive(Debug, Clone, Serialize)]
pub struct ShardsStatus {
    /// Number of shards.
    pub shards: u32,
    /// The first stage that is not complete; `None` if all are.
    pub stage: Option<ShardStage>,
    /// The shards that have not done their share of that stage, ascending.
    pub missing: Vec<u32>,
    /// `true` if the outputs are in place.
    pub finished: bool,
    /// Documents in the steps of reading, with those of `--against`.
    pub documents: u64,
    /// Bytes of the files of all steps.
    pub step_bytes: u64,
    /// Seconds since the last step of any shard.
    pub idle_seconds: u64,
    /// Files that are missing or damaged, each with the reason.
    pub damaged: Vec<String>,
}

/// Reads the state of a run that is divided into shards, also while processes work on it; `None` if the directory holds
/// no such run.
///
/// # Errors
/// If a manifest is damaged.
pub fn read_shards_status(path: &Path, verifies: bool) -> Result<Option<ShardsStatus>> {
    let Some(first) = list_shards(path)?.first().copied() else {
        return Ok(None);
    };
    let mut manifests = Vec::new();
    let mut damaged = Vec::new();
    for shard in ShardNumber::all_of(first.count) {
        let directory = path.join(SHARDS).join(shard.directory_name());
        let manifest = read_manifest(&directory)?;
        if let Some(manifest) = &manifest {
            damaged.extend(super::status::find_damage(&directory, manifest, verifies));
        }
        manifests.push((shard.index, manifest));
    }
    let missing_of = |stage: ShardStage| -> Vec<u32> {
        let missing = manifests
            .iter()
            .filter(|(_, manifest)| !manifest.as_ref().is_some_and(|it| stage.is_done(it)));
        missing.map(|(index, _)| *index).collect()
    };
    let open = ShardStage::ALL
        .into_iter()
        .map(|stage| (stage, missing_of(stage)))
        .find(|(_, missing)| !missing.is_empty());
    let there = manifests
        .iter()
        .filter_map(|(_, manifest)| manifest.as_ref());
    let steps = there.clone().flat_map(|manifest| &manifest.steps);
    let changed = there.map(|manifest| manifest.changed).max().unwrap_or(0);
    let finished = read_manifest(path)?.is_some_and(|it| it.stage == WorkStage::Finished);
    let (stage, missing) = match open {
        Some((stage, missing)) => (Some(stage), missing),
        None => (None, Vec::new()),
    };
    Ok(Some(ShardsStatus {
        shards: first.count,
        stage,
        missing,
        finished,
        documents: steps.clone().map(|step| step.documents).sum(),
        step_bytes: steps.map(|step| step.bytes).sum(),
        idle_seconds: seconds_since_1970().saturating_sub(changed),
        damaged,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_shards_parse_and_print() {
        let number = ShardNumber::parse("3/16").unwrap();
        assert_eq!((number.index, number.count), (3, 16));
        assert_eq!(number.to_string(), "3/16");
        assert_eq!(
            ShardNumber::parse_directory(&number.directory_name()),
            Some(number)
        );
        assert_eq!(ShardNumber::parse_directory("3-of-16"), None);
        for text in [
            "", "3", "0/4", "5/4", "1/0", "1/5000", "a/b", "-1/4", "1/4/2",
        ] {
            assert!(ShardNumber::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn every_number_is_in_one_share_and_shares_are_alike() {
        for count in [1, 2, 3, 16] {
            let mut sizes = vec![0u32; count as usize];
            for number in 0..40_000 {
                let takers = ShardNumber::all_of(count).filter(|it| it.takes_number(number));
                let takers: Vec<u32> = takers.map(|it| it.index).collect();
                assert_eq!(takers.len(), 1, "{number} of {count}");
                sizes[takers[0] as usize - 1] += 1;
            }
            let even = 40_000 / count;
            assert!(
                sizes.iter().all(|&size| size.abs_diff(even) < even / 10),
                "{sizes:?}"
            );
        }
    }

    #[test]
    fn files_are_divided_by_their_sizes() {
        assert_eq!(divide_sizes(&[10; 4], 2), [0..2, 2..4]);
        assert_eq!(divide_sizes(&[30, 10, 10, 10], 2), [0..1, 1..4]);
        assert_eq!(divide_sizes(&[5], 3), [0..0, 0..1, 1..1]);
        assert_eq!(divide_sizes(&[], 2), [0..0, 0..0]);
        assert_eq!(divide_sizes(&[0, 0], 2), [0..2, 2..2]);
    }
}
