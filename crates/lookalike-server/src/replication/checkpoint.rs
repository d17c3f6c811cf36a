//! The checkpoint: how far the data directory of a replica has followed the log.
//!
//! ```text
//! lookalike-checkpoint 1 XXXXXXXX    CRC-32 of everything after this line
//! {"state": "following", …}
//! ```

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

use lookalike_log::{LogTail, RecordDigest};
use lookalike_system::{Directory, replace_file};
use serde::{Deserialize, Serialize};

use crate::error::{Result, bail, with_context};

/// Name of the file in the data directory.
const CHECKPOINT_FILE: &str = "shared-log.json";

const CHECKPOINT_MAGIC: &str = "lookalike-checkpoint 1";

/// State of a data directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum DirectoryState {
    /// Everything before the tail is on disk.
    Following,
    /// A snapshot is being copied; an interrupted copy is begun again.
    Restoring,
    /// The collections of the directory are becoming the beginning of a new log.
    #[serde(rename = "founding")]
    Beginning,
}

/// How far a data directory has followed the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LogCheckpoint {
    pub(crate) state: DirectoryState,
    /// Name of the replica that wrote it.
    pub(crate) replica: String,
    pub(crate) tail: LogTail,
    /// Number of entries of the record behind the tail that are on disk, too.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) partial_entries: u32,
    /// Name of the snapshot from which the directory began; `None` if it began empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) snapshot: Option<String>,
    /// SHA-256 of the manifest of that snapshot, because another one may take its name; `None` in checkpoints of older
    /// versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) manifest: Option<RecordDigest>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl LogCheckpoint {
    /// Returns the checkpoint of a directory at a place of the log, without a snapshot.
    pub(super) fn new(state: DirectoryState, replica: &str, tail: LogTail) -> Self {
        Self {
            state,
            replica: replica.to_owned(),
            tail,
            partial_entries: 0,
            snapshot: None,
            manifest: None,
        }
    }

    /// Reads the checkpoint of a data directory; `None` if it has not followed a log.
    ///
    /// # Errors
    /// If the file cannot be read or is damaged.
    pub(crate) fn read_file(directory: &Path) -> Result<Option<Self>> {
        let path = directory.join(CHECKPOINT_FILE);
        let at = format!("the checkpoint of the shared log, {}", path.display());
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            text => text.map_err(with_context(&at))?,
        };
        let Some((first, body)) = text.split_once('\n') else {
            bail!("{at}: it has no first line: start with an empty directory");
        };
        if first != first_line(body) {
            bail!(
                "{at}: its first line does not have the version and the checksum of the rest: start with an empty \
                 directory"
            );
        }
        serde_json::from_str(body)
            .map(Some)
            .map_err(with_context(at))
    }

    /// Removes the checkpoint of a data directory, which a service uses without the log from now on. What it changes is
    /// not in the log, so the directory must not go on there.
    ///
    /// # Errors
    /// If a disk operation fails.
    pub(crate) fn remove_file(directory: &Path) -> io::Result<()> {
        let known = Self::read_file(directory).ok().flatten();
        match fs::remove_file(directory.join(CHECKPOINT_FILE)) {
            // Whoever opens the directory says what is wrong with it.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) =>
            {
                Ok(())
            }
            Err(error) => Err(error),
            Ok(()) => {
                // Further records of the log are unknown here, because its URL is not given.
                let applied = known.map(|checkpoint| checkpoint.tail.next.saturating_sub(1));
                tracing::warn!(
                    applied,
                    "the directory has followed a shared log up to the record `applied`, and leaves it: what other replicas \
                     have written after that record is not in it; it can begin a new log, and not go on with this one"
                );
                Directory::sync_path(directory)
            }
        }
    }

    /// Writes the checkpoint; it is on disk when this returns.
    ///
    /// # Errors
    /// If a disk operation fails.
    pub(crate) fn write_file(&self, directory: &Path) -> io::Result<()> {
        let new = directory.join(format!("{CHECKPOINT_FILE}.new"));
        let body = serde_json::to_string(self)?;
        let mut file = File::create(&new)?;
        file.write_all(format!("{}\n{body}", first_line(&body)).as_bytes())?;
        file.sync_all()?;
        replace_file(&new, &directory.join(CHECKPOINT_FILE))?;
        Directory::sync_path(directory)
    }
}

fn first_line(body: &str) -> String {
    format!(
        "{CHECKPOINT_MAGIC} {:08x}",
        crc32fast::hash(body.as_bytes())
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A checkpoint is read as it was written, and a changed byte is noticed.
    #[test]
    fn damaged_checkpoint_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(LogCheckpoint::read_file(folder.path()).unwrap(), None);
        let tail = LogTail {
            next: 7,
            ..LogTail::default()
        };
        let checkpoint = LogCheckpoint {
            snapshot: Some("0000000000000001-a".to_owned()),
            manifest: Some(RecordDigest([7; 32])),
            ..LogCheckpoint::new(DirectoryState::Following, "a", tail)
        };
        checkpoint.write_file(folder.path()).unwrap();
        let read = LogCheckpoint::read_file(folder.path()).unwrap();
        assert_eq!(read, Some(checkpoint));
        let path = folder.path().join(CHECKPOINT_FILE);
        let bytes = fs::read(&path).unwrap();
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            fs::write(&path, changed).unwrap();
            assert!(LogCheckpoint::read_file(folder.path()).is_err(), "{at}");
        }
    }
}
