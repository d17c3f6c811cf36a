//! Uploads that a later process can continue: outputs of a run whose directory outlives the process.
//!
//! Outputs are opened in many places, so this process has a list of the URLs whose uploads are recorded, and of the
//! directories with the records:
//!
//! ```text
//! DIR/upload-HASH.record    the upload to one URL, and its parts that the store has
//! ```
//!
//! Guarantee: an upload of which a record remains is continued by a later process with the same output, and aborted by
//! one without it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::OutputTarget;
use crate::objects::{
    ObjectIdentity, ObjectSearch, ObjectUrl, abort_recorded_upload, find_objects, recorded_url,
};

/// Beginning and end of a record's name.
const RECORD_NAME: (&str, &str) = ("upload-", ".record");

/// Outputs of this process whose uploads are recorded.
static RECORDED_OUTPUTS: Mutex<Vec<RecordedOutput>> = Mutex::new(Vec::new());

#[derive(Debug, Clone, PartialEq, Eq)]
struct RecordedOutput {
    /// URL of an object, or of a prefix with `/` at its end.
    url: String,
    directory: PathBuf,
}

impl RecordedOutput {
    fn covers(&self, url: &str) -> bool {
        self.url == url || self.url.ends_with('/') && url.starts_with(&self.url)
    }
}

/// The uploads of a run are recorded as long as this value lives.
#[derive(Debug)]
pub struct RecordedUploads(Vec<RecordedOutput>);

impl RecordedUploads {
    /// Begins to record the uploads to targets in stores, in a directory. Aborts the uploads that the directory records
    /// for other targets, and all of them unless the run `continues` the one that began them.
    pub fn begin_in<'a>(
        directory: &Path,
        targets: impl IntoIterator<Item = &'a OutputTarget>,
        continues: bool,
    ) -> Self {
        let targets = targets.into_iter().filter_map(|target| match target {
            OutputTarget::Path(path) => ObjectUrl::from_path(path)?.ok(),
            OutputTarget::Stdout | OutputTarget::Memory(_) => None,
        });
        let outputs = targets.map(|url| RecordedOutput {
            url: url.to_string(),
            directory: directory.to_path_buf(),
        });
        let outputs: Vec<_> = outputs.collect();
        abort_stale_uploads(directory, &|url| {
            continues && outputs.iter().any(|output| output.covers(url))
        });
        lock_outputs().extend_from_slice(&outputs);
        Self(outputs)
    }
}

impl Drop for RecordedUploads {
    fn drop(&mut self) {
        let mut known = lock_outputs();
        for output in &self.0 {
            if let Some(at) = known.iter().position(|known| known == output) {
                known.swap_remove(at);
            }
        }
    }
}

fn lock_outputs() -> MutexGuard<'static, Vec<RecordedOutput>> {
    RECORDED_OUTPUTS
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
}

fn abort_stale_uploads(directory: &Path, is_wanted: &dyn Fn(&str) -> bool) {
    let Ok(entries) = fs::read_dir(directory) else {
        return;
    };
    let names = entries.flatten().map(|entry| entry.file_name());
    for name in names.filter(|name| name.to_str().is_some_and(is_record_file)) {
        let record = directory.join(name);
        if !recorded_url(&record).is_some_and(|url| is_wanted(&url)) {
            abort_recorded_upload(&record);
        }
    }
}

/// Returns `true` if a record of an upload can have this name.
pub fn is_record_file(name: &str) -> bool {
    let (front, end) = RECORD_NAME;
    let hash = name
        .strip_prefix(front)
        .and_then(|rest| rest.strip_suffix(end));
    hash.is_some_and(|hash| hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Returns the file in which the upload to a URL is recorded, if it is.
pub(super) fn find_record(url: &ObjectUrl) -> Option<PathBuf> {
    let url = url.to_string();
    let outputs = lock_outputs();
    let output = outputs.iter().find(|output| output.covers(&url))?;
    let (front, end) = RECORD_NAME;
    let hash = lookalike::value_hash(url.as_bytes());
    Some(output.directory.join(format!("{front}{hash:016x}{end}")))
}

/// Returns the length and the identity of the object that an output has become. Returns `None` if the path is no URL,
/// if there is no such object, or if the store does not answer.
pub fn find_written_object(path: &Path) -> Option<(u64, ObjectIdentity)> {
    let url = ObjectUrl::from_path(path)?.ok()?;
    match find_objects(&url).ok()? {
        ObjectSearch::Single(object) => {
            Some((object.byte_length()?, object.object_identity()?.clone()))
        }
        ObjectSearch::Prefix(_) | ObjectSearch::Pattern(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(path: &str) -> OutputTarget {
        OutputTarget::Path(PathBuf::from(path))
    }

    fn record_of(url: &str) -> Option<PathBuf> {
        let url = ObjectUrl::from_path(Path::new(url)).unwrap().unwrap();
        find_record(&url)
    }

    #[test]
    fn uploads_of_outputs_and_below_prefixes_are_recorded_while_the_run_lasts() {
        let directory = tempfile::tempdir().unwrap();
        let targets = [
            target("s3://recorded/a.jsonl"),
            target("s3://recorded/b/"),
            target("local.jsonl"),
            OutputTarget::Stdout,
        ];
        let uploads = RecordedUploads::begin_in(directory.path(), &targets, true);
        let record = record_of("s3://recorded/a.jsonl").unwrap();
        assert_eq!(record.parent(), Some(directory.path()));
        let name = record.file_name().unwrap().to_str().unwrap();
        assert!(is_record_file(name), "{name}");
        let below = record_of("s3://recorded/b/c.jsonl");
        assert!(below.is_some_and(|below| below != record));
        for other in [
            "s3://recorded/a.jsonl.gz",
            "s3://recorded/b",
            "s3://other/a.jsonl",
        ] {
            assert_eq!(record_of(other), None, "{other}");
        }
        drop(uploads);
        assert_eq!(record_of("s3://recorded/a.jsonl"), None);
    }

    #[test]
    fn records_of_other_outputs_are_removed() {
        let directory = tempfile::tempdir().unwrap();
        // A record that names no upload is of no use, whatever output it is of.
        let place = directory.path().join("upload-0123456789abcdef.record");
        let other = directory.path().join("upload-1.record");
        fs::write(&place, "{").unwrap();
        fs::write(&other, "{").unwrap();
        drop(RecordedUploads::begin_in(directory.path(), [], true));
        assert!(!place.exists() && other.exists());
    }
}
