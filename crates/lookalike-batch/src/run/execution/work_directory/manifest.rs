//! The manifest of an interruptible run: what is computed, from which inputs, and the steps that are complete.
//!
//! It is a text. The first line holds a magic word, the version and the checksum of the rest; the rest is
//! JSON. It is replaced as a whole, by renaming, after the steps that it names are on disk. Therefore it names
//! only complete steps, whenever the process ends.

use std::ffi::OsStr;
use std::path::Path;

use lookalike_io::error::{Error, Result, display_path};
use lookalike_io::source::{InputFile, InputSet};
use lookalike_io::{ObjectIdentity, is_copy_file, sink};
use serde::{Deserialize, Serialize};

use crate::run::reading::open_inputs::OpenInputs;
use crate::sealed_manifest::{FileChecksum, ManifestKind};

/// The manifest's file name.
pub(super) const MANIFEST_FILE: &str = "manifest";

const MANIFEST: ManifestKind = ManifestKind {
    magic: "lookalike-work",
    noun: "a run with --work",
    versions: &[VERSION_WORD],
    damaged_file,
};

/// The version of the manifest and of the steps.
pub(super) const WORK_FORMAT_VERSION: u32 = 3;

const VERSION_WORD: &str = "3";

/// The setting by which runs out of core and others are told apart.
pub(super) const OUT_OF_CORE_SETTING: &str = "bounded memory";

/// The stages of an interruptible run, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WorkStage {
    /// Reading and sketching.
    Read,
    /// Deciding verdicts.
    Decide,
    /// Writing outputs.
    Write,
    /// All outputs are in place.
    Finished,
}

impl WorkStage {
    /// Returns the name in messages and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Decide => "decide",
            Self::Write => "write",
            Self::Finished => "finished",
        }
    }
}

/// The kinds of steps, in the order in which a run makes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(in crate::run) enum StepKind {
    /// Sketches of documents of `--against`.
    Against,
    /// Sketches of documents of the inputs.
    Documents,
    /// Verdicts.
    Verdicts,
    /// The forms that the run has learned.
    Forms,
    /// Repeated text of kept documents.
    Cuts,
}

impl StepKind {
    pub(super) const ALL: [Self; 5] = [
        Self::Against,
        Self::Documents,
        Self::Verdicts,
        Self::Forms,
        Self::Cuts,
    ];

    /// Returns the first part of the names of its files.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Against => "against",
            Self::Documents => "documents",
            Self::Verdicts => "verdicts",
            Self::Forms => "forms",
            Self::Cuts => "cuts",
        }
    }
}

/// The manifest of an interruptible run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WorkManifest {
    /// The version of the program.
    pub(super) program: String,
    /// The number that identifies the run in all of its files.
    pub(super) run: FileChecksum,
    /// The settings that decide about results: name, and value as text.
    pub(super) settings: Vec<(String, String)>,
    pub(super) against: Vec<InputEntry>,
    pub(super) inputs: Vec<InputEntry>,
    /// Seconds since 1970 at which the run began.
    #[serde(rename = "begun")]
    pub(super) started: u64,
    /// Seconds since 1970 at which the manifest was written.
    pub(super) changed: u64,
    pub(super) stage: WorkStage,
    /// Number of all documents, once they are read.
    pub(super) documents: Option<u64>,
    /// The step of the forms that the run has learned, if it has learned any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) learned: Option<StepEntry>,
    /// Complete steps, in the order of their kinds and, of a kind, of their numbers.
    pub(super) steps: Vec<StepEntry>,
    /// The outputs in place, once the run is finished.
    pub(super) outputs: Vec<OutputEntry>,
}

/// An input, as it was when the run began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct InputEntry {
    pub(super) name: String,
    pub(super) bytes: u64,
    /// Time of the last change of a file: seconds and nanoseconds since 1970. It is 0 for an object.
    pub(super) changed: (i64, i64),
    /// The version of an object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) object: Option<ObjectIdentity>,
}

/// An output that is in place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::run) struct OutputEntry {
    /// Content of the output, for example `kept`.
    pub(in crate::run) role: String,
    pub(in crate::run) path: String,
    pub(in crate::run) bytes: u64,
    /// Time of the last change of a file: seconds and nanoseconds since 1970. It is 0 for an object.
    pub(in crate::run) changed: (i64, i64),
    /// The version of an object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::run) object: Option<ObjectIdentity>,
}

/// A complete step and its file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StepEntry {
    pub(super) kind: StepKind,
    /// First block of the inputs, or first document in the total order; from 0.
    pub(super) first: u64,
    /// The block or document after the last one.
    pub(super) end: u64,
    /// Documents that were read or decided.
    pub(super) documents: u64,
    /// Bytes of input on disk that were read.
    pub(super) input_bytes: u64,
    /// Size of the file in bytes.
    pub(super) bytes: u64,
    pub(super) checksum: FileChecksum,
}

/// Returns the error for an input that can be read only once.
pub(super) fn read_once_error(name: &str) -> Error {
    Error::usage_error(format!(
        "{name} cannot be read again after an interruption, because it is not a regular file: copy it to a file and \
         give that, or leave out --work"
    ))
}

/// Returns the error for an object in which a later process could not notice a change.
fn unversioned_error(name: &str) -> Error {
    Error::usage_error(format!(
        "{name} cannot be read again after an interruption, because its server states neither an ETag nor a version \
         nor the time of its last change: copy it to a file and give that, or leave out --work"
    ))
}

/// Returns the name of the file of a step. Steps of a kind are numbered from 1.
pub(super) fn step_file_name(kind: StepKind, number: usize) -> String {
    format!("{}-{number:06}.step", kind.name())
}

/// Name of the file of the step of learned forms.
pub(super) fn learned_file_name() -> String {
    step_file_name(StepKind::Forms, 1)
}

/// Returns `true` if a run could have made a file of this name: a step, or a temporary file of one or of a manifest.
pub(super) fn is_work_file(name: &str) -> bool {
    let plain = match name
        .strip_prefix('.')
        .and_then(|hidden| hidden.strip_suffix(".tmp"))
    {
        Some(hidden) => hidden.rsplit_once('.').map_or(hidden, |(name, _)| name),
        None => name,
    };
    let is_hidden = plain != name;
    let is_step = || {
        let (kind, number) = plain.strip_suffix(".step")?.rsplit_once('-')?;
        let is_number = number.len() >= 6 && number.bytes().all(|byte| byte.is_ascii_digit());
        Some(is_number && StepKind::ALL.iter().any(|step| step.name() == kind))
    };
    is_step() == Some(true) || is_hidden && plain == MANIFEST_FILE
}

/// Returns `true` if a file of this name holds what was transferred from stores or to them. Such files are no steps,
/// and those who write them remove them.
pub(super) fn is_transfer_file(name: &str) -> bool {
    is_copy_file(name) || sink::is_record_file(name)
}

/// Returns `true` if `name` is one under which a file is complete but not in place yet: `.TARGET.HEX.tmp`.
pub(super) fn is_temporary_of(name: &str, target: &OsStr) -> bool {
    let hidden = name
        .strip_prefix('.')
        .and_then(|rest| rest.strip_suffix(".tmp"));
    let divided = hidden.and_then(|hidden| hidden.rsplit_once('.'));
    divided.is_some_and(|(plain, random)| {
        let is_random = random.len() == 16 && random.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_random && OsStr::new(plain) == target
    })
}

/// Returns the error for a damaged file of an interruptible run.
pub(super) fn damaged_file(path: &Path, what: &str) -> Error {
    Error::input_error(format!(
        "{} is damaged: {what}; delete its directory, or name another one, to begin the run again",
        display_path(path)
    ))
}

/// The inputs of a run as they were at a moment, if all of them are regular files or objects with a version.
pub(in crate::run) struct InputMoment(Option<[Vec<InputEntry>; 2]>);

impl InputMoment {
    pub(in crate::run) fn of_inputs(opened: &OpenInputs) -> Self {
        let against = opened.against.as_ref().map(InputEntry::list_inputs);
        let lists = InputEntry::list_inputs(&opened.documents)
            .and_then(|inputs| Ok([inputs, against.transpose()?.unwrap_or_default()]));
        Self(lists.ok())
    }

    /// Returns the difference to a later moment, as a phrase; `None` if none is known.
    pub(in crate::run) fn find_change(&self, now: &Self) -> Option<String> {
        let ([inputs, against], [inputs_now, against_now]) = (self.0.as_ref()?, now.0.as_ref()?);
        difference_of_inputs("input", inputs, inputs_now)
            .or_else(|| difference_of_inputs("reference input", against, against_now))
    }
}

impl InputEntry {
    /// Returns the entries of all inputs.
    ///
    /// # Errors
    /// If an input cannot be read once more by a later process.
    pub(super) fn list_inputs(inputs: &InputSet) -> Result<Vec<Self>> {
        inputs.input_files().iter().map(Self::of_input).collect()
    }

    fn of_input(file: &InputFile) -> Result<Self> {
        let name = file.display_name();
        let object = file.object_identity();
        let changed = match object {
            Some(_) => Some((0, 0)),
            None => file.modification_time(),
        };
        let known = file.size_on_disk().zip(changed);
        let (bytes, changed) = known.ok_or_else(|| {
            if file.is_stored_object() {
                unversioned_error(name)
            } else {
                read_once_error(if name == "-" { "standard input" } else { name })
            }
        })?;
        Ok(Self {
            name: name.to_owned(),
            bytes,
            changed,
            object: object.cloned(),
        })
    }

    fn is_same(&self, other: &Self) -> bool {
        let is_same_version = match (&self.object, &other.object) {
            (Some(one), Some(other)) => one.is_same(other),
            (one, other) => one == other,
        };
        is_same_version
            && (&self.name, self.bytes, self.changed) == (&other.name, other.bytes, other.changed)
    }

    /// Returns what distinguishes the versions of an object, as a phrase.
    fn describe_version(&self) -> Option<String> {
        let object = self.object.as_ref()?;
        Some(format!("{} bytes and {object}", self.bytes))
    }
}

impl WorkManifest {
    /// Returns the content of the manifest's file.
    pub(super) fn to_text(&self) -> String {
        MANIFEST.seal_manifest(VERSION_WORD, self)
    }

    /// Parses the content of a manifest's file. Messages name it by `path`.
    ///
    /// # Errors
    /// If the content is not a manifest, has an unsupported version, is damaged or contradicts itself.
    pub(super) fn parse_manifest(bytes: &[u8], path: &Path) -> Result<Self> {
        let manifest: Self = MANIFEST.open_manifest(bytes, path)?;
        if manifest.has_gaps() {
            return Err(damaged_file(path, "its steps are not contiguous"));
        }
        Ok(manifest)
    }

    fn has_gaps(&self) -> bool {
        let in_order = self.steps.is_sorted_by_key(|step| step.kind);
        let has_gap = |kind| {
            let mut next = 0;
            self.steps_of(kind).any(|(_, step)| {
                let follows = step.first == next && step.end >= step.first;
                next = step.end;
                !follows
            })
        };
        !in_order || StepKind::ALL.into_iter().any(has_gap)
    }

    /// Returns the steps of a kind with the names of their files.
    pub(super) fn steps_of(&self, kind: StepKind) -> impl Iterator<Item = (String, &StepEntry)> {
        let steps = self.steps.iter().filter(move |step| step.kind == kind);
        (1..)
            .zip(steps)
            .map(move |(number, step)| (step_file_name(kind, number), step))
    }

    /// Returns `true` if the run is out of core.
    pub(super) fn is_out_of_core(&self) -> bool {
        let mut settings = self.settings.iter();
        settings.any(|(name, value)| name == OUT_OF_CORE_SETTING && value == "true")
    }

    /// Returns all steps with the names of their files.
    pub(super) fn named_steps(&self) -> impl Iterator<Item = (String, &StepEntry)> {
        let learned = self.learned.iter();
        let learned = learned.map(|step| (learned_file_name(), step));
        let kinds = StepKind::ALL.into_iter();
        learned.chain(kinds.flat_map(|kind| self.steps_of(kind)))
    }

    /// Returns the difference between the inputs of two runs, as a phrase; `None` if there is none.
    pub(super) fn find_input_difference(&self, now: &Self) -> Option<String> {
        difference_of_inputs("input", &self.inputs, &now.inputs)
            .or_else(|| difference_of_inputs("reference input", &self.against, &now.against))
    }

    /// Returns the difference to what a run would compute now, as a phrase; `None` if there is none.
    pub(super) fn find_difference(&self, now: &Self) -> Option<String> {
        if self.program != now.program {
            return Some(format!(
                "it was begun by lookalike {}, and this is lookalike {}",
                self.program, now.program
            ));
        }
        let settings = difference_of_settings(&self.settings, &now.settings);
        settings.or_else(|| self.find_input_difference(now))
    }
}

fn difference_of_settings(before: &[(String, String)], now: &[(String, String)]) -> Option<String> {
    let value = |settings: &[(String, String)], name: &str| {
        let found = settings.iter().find(|(other, _)| other == name);
        found.map_or_else(|| "not set".to_owned(), |(_, value)| value.clone())
    };
    let mut names = before.iter().chain(now).map(|(name, _)| name);
    let name = names.find(|name| value(before, name) != value(now, name))?;
    if name == OUT_OF_CORE_SETTING {
        let difference = if value(before, name) == "true" {
            "it was begun with temporary files, and now it would keep everything in memory: give the --memory with \
             which it was begun"
        } else {
            "it was begun with everything in memory, and now it would use temporary files: free memory, or raise \
             --memory"
        };
        return Some(difference.to_owned());
    }
    Some(format!(
        "it was begun with the {name} {}, and now the {name} is {}",
        value(before, name),
        value(now, name)
    ))
}

fn difference_of_inputs(what: &str, before: &[InputEntry], now: &[InputEntry]) -> Option<String> {
    let is_same = |at: usize| match (before.get(at), now.get(at)) {
        (Some(before), Some(now)) => before.is_same(now),
        (before, now) => before.is_none() && now.is_none(),
    };
    let at = (0..before.len().max(now.len())).find(|&at| !is_same(at))?;
    Some(match (before.get(at), now.get(at)) {
        (Some(before), Some(now)) if before.name == now.name => {
            let versions = before.describe_version().zip(now.describe_version());
            let versions = versions.map(|(old, new)| format!(": it had {old}, and now has {new}"));
            format!(
                "the {what} {} has changed since it was begun{}",
                now.name,
                versions.unwrap_or_default()
            )
        }
        (Some(before), Some(now)) => format!(
            "it was begun with the {what} {}, where now {} is given",
            before.name, now.name
        ),
        (Some(before), None) => format!("its {what} {} is not given", before.name),
        (None, Some(now)) => {
            format!("the {what} {} is given, which it does not have", now.name)
        }
        (None, None) => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(name: &str, bytes: u64, e_tag: Option<&str>, modified: &str) -> InputEntry {
        InputEntry {
            name: name.to_owned(),
            bytes,
            changed: (0, 0),
            object: Some(ObjectIdentity {
                version: None,
                e_tag: e_tag.map(str::to_owned),
                modified: Some(modified.to_owned()),
            }),
        }
    }

    #[test]
    fn a_changed_object_is_named_with_both_versions() {
        let before = [
            object("s3://b/a", 5, Some("x"), "1"),
            object("s3://b/c", 7, Some("y"), "1"),
        ];
        // The time does not count where there are tags.
        let now = [
            object("s3://b/a", 5, Some("x"), "2"),
            object("s3://b/c", 8, Some("z"), "1"),
        ];
        assert_eq!(difference_of_inputs("input", &before[..1], &now[..1]), None);
        assert_eq!(
            difference_of_inputs("input", &before, &now).unwrap(),
            "the input s3://b/c has changed since it was begun: it had 7 bytes and the ETag y, and now has 8 bytes and \
             the ETag z"
        );
        assert_eq!(
            difference_of_inputs("input", &before, &now[..1]).unwrap(),
            "its input s3://b/c is not given"
        );
        let [untagged, changed] = ["1", "2"].map(|time| [object("https://h/a", 5, None, time)]);
        assert_eq!(
            difference_of_inputs("input", &untagged, &changed).unwrap(),
            "the input https://h/a has changed since it was begun: it had 5 bytes and the time 1 of the last change, \
             and now has 5 bytes and the time 2 of the last change"
        );
    }

    #[test]
    fn entries_of_files_are_written_without_a_version() {
        let file = InputEntry {
            name: "a".to_owned(),
            bytes: 1,
            changed: (2, 3),
            object: None,
        };
        let text = serde_json::to_string(&file).unwrap();
        assert_eq!(text, r#"{"name":"a","bytes":1,"changed":[2,3]}"#);
        assert_eq!(serde_json::from_str::<InputEntry>(&text).unwrap(), file);
        let changed = InputEntry {
            changed: (2, 4),
            ..file.clone()
        };
        assert_eq!(
            difference_of_inputs("input", &[file], &[changed]).unwrap(),
            "the input a has changed since it was begun"
        );
    }

    #[test]
    fn files_of_transfers_are_no_steps() {
        for name in [
            "objects.copy",
            "objects.parts",
            "upload-0123456789abcdef.record",
        ] {
            assert!(is_transfer_file(name) && !is_work_file(name), "{name}");
        }
        for name in [
            "documents-000001.step",
            "manifest",
            "objects",
            "upload-.record",
        ] {
            assert!(!is_transfer_file(name), "{name}");
        }
    }
}
