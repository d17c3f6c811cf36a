//! The directory of a `file://` log.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use lookalike_system::FileNumber;

use crate::keys::RECORD_PREFIX;
use crate::record::RecordDigest;
use crate::store::StoreError;

/// The directory of a log, recognised by its file number or by the newest record that was read or written. While a mounted
/// directory is unmounted, its path names another directory or none, in which a second log would begin. After it is mounted
/// again, its file number may differ, and the record shows that it has the same log.
#[derive(Clone, Debug)]
pub(crate) struct LogDirectory {
    path: PathBuf,
    known: Arc<Mutex<KnownContent>>,
}

/// Content by which a directory is recognised.
#[derive(Debug)]
struct KnownContent {
    number: Option<FileNumber>,
    /// Key and digest of the newest record. All keys have the same length, so they sort by number.
    record: Option<(String, RecordDigest)>,
}

impl LogDirectory {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let known = KnownContent {
            number: read_number(path)?,
            record: None,
        };
        Ok(Self {
            path: path.to_owned(),
            known: Arc::new(Mutex::new(known)),
        })
    }

    /// Notes the content of an object that the directory has.
    pub(crate) fn note_object(&self, key: &str, content: &[u8]) {
        if key.starts_with(RECORD_PREFIX) {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            if known
                .record
                .as_ref()
                .is_none_or(|(newest, _)| newest.as_str() <= key)
            {
                known.record = Some((key.to_owned(), RecordDigest::compute(content)));
            }
        }
    }

    /// Checks that the directory is still the one that was opened.
    ///
    /// # Errors
    /// If it is gone, or another one that does not have the newest record.
    pub(crate) fn check_present(&self) -> Result<(), StoreError> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let reason = match read_number(&self.path) {
            Ok(number) if number == known.number => return Ok(()),
            Ok(number) if self.has_record(known.record.as_ref()) => {
                known.number = number;
                return Ok(());
            }
            Ok(_) => "is another one than when it was opened".to_owned(),
            Err(cause) => format!("is gone ({cause})"),
        };
        Err(StoreError::retryable(format!(
            "the directory '{}' {reason}: mount it again, or restart the replica if the log was moved",
            self.path.display()
        )))
    }

    fn has_record(&self, record: Option<&(String, RecordDigest)>) -> bool {
        record.is_some_and(|(key, digest)| {
            let content = fs::read(self.path.join(key));
            content.is_ok_and(|content| RecordDigest::compute(&content) == *digest)
        })
    }
}

fn read_number(path: &Path) -> io::Result<Option<FileNumber>> {
    Ok(FileNumber::of_file(path, &fs::metadata(path)?))
}
