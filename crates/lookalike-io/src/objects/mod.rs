//! Objects of object stores (S3, Google, Azure) and of HTTPS servers as inputs and outputs.
//!
//! A path that begins with `s3://`, `gs://`, `az://` or `https://` names an object ([`ObjectUrl`]).
//!
//! # Reading
//!
//! Objects are read by ranges of [`PART_BYTES`], several at the same time. A request that fails, is
//! throttled or is cut is repeated with growing pauses; only the range is read again, never what came
//! before it. The first answer fixes the version of the object (its `ETag`, or else its time and size).
//! An answer with another version is an error, so that the rows of a run are those of one version.
//!
//! A run that can be continued after a kill keeps what it reads of objects in its directory (`object_copies`). A later
//! process transfers only the rest, of the version that the first question of the first process was answered with.
//!
//! | format | what is read | what is kept |
//! |---|---|---|
//! | lines, lists, documents | the object once, in order ([`ObjectStream`]) | the text, in a temporary file, if rows are read again |
//! | Parquet | the footer and the wanted columns, later the columns of the output ([`RangeCopy`]) | each part that was read, in a temporary file, so that none is read twice |
//!
//! # Writing
//!
//! An output is complete in a temporary file before its parts are uploaded. The store shows nothing until
//! the upload is completed, which is one request. An upload that does not get that far is aborted. One of a run that
//! can be continued is recorded instead (`upload_record`), and a later process sends the parts that are missing.
//!
//! # Limits
//!
//! A store that gives no answer within a minute is given up, with its credentials and all repetitions
//! (`first_answer`).
//!
//! The module is there in every build, so that URLs are recognised. Without the Cargo feature
//! `object-store` every URL is refused with a message that names it.

#[cfg(feature = "object-store")]
mod client;
#[cfg(feature = "object-store")]
mod first_answer;
#[cfg(feature = "object-store")]
mod listing;
#[cfg(feature = "object-store")]
mod object_copies;
mod object_identity;
#[cfg(feature = "object-store")]
mod object_stream;
#[cfg(feature = "object-store")]
mod range_copy;
#[cfg(feature = "object-store")]
mod stored_object;
#[cfg(not(feature = "object-store"))]
mod unavailable;
#[cfg(feature = "object-store")]
mod upload;
#[cfg(feature = "object-store")]
mod upload_record;
mod url;

use std::fmt;
use std::fs;
use std::io;
use std::path::Path;

use crate::error::Error;

#[cfg(feature = "object-store")]
pub use self::client::install_cryptography;
#[cfg(feature = "object-store")]
pub use self::object_copies::ObjectCopies;
pub use self::object_identity::ObjectIdentity;
#[cfg(feature = "object-store")]
pub(crate) use self::{
    listing::find_objects,
    object_stream::ObjectStream,
    range_copy::RangeCopy,
    stored_object::StoredObject,
    upload::{ObjectUpload, abort_recorded_upload, recorded_url},
};
#[cfg(not(feature = "object-store"))]
pub use unavailable::ObjectCopies;
#[cfg(not(feature = "object-store"))]
pub(crate) use unavailable::{
    ObjectStream, ObjectUpload, RangeCopy, StoredObject, abort_recorded_upload, find_objects,
    recorded_url,
};
pub use url::is_url;
pub(crate) use url::{ObjectUrl, is_same_object};

/// Bytes of one request: 4 MiB. At usual latencies (20 to 100 ms) four of them at the same time read
/// more than 100 MB/s, and they take 16 MiB of memory.
#[cfg(feature = "object-store")]
const PART_BYTES: u64 = 4 << 20;

/// Bytes of the first request. They suffice for recognising a format, and for most small objects.
#[cfg(feature = "object-store")]
const FIRST_BYTES: u64 = 256 << 10;

/// The files of [`ObjectCopies`].
const COPY_FILE: &str = "objects.copy";
const PARTS_FILE: &str = "objects.parts";

/// Returns `true` if a file of this name is one of [`ObjectCopies`].
pub fn is_copy_file(name: &str) -> bool {
    [COPY_FILE, PARTS_FILE].contains(&name)
}

/// Returns the bytes of the copies of objects in a directory; 0 without copies.
pub fn count_copied_bytes(directory: &Path) -> u64 {
    let copy = fs::metadata(directory.join(COPY_FILE));
    copy.map_or(0, |metadata| metadata.len())
}

/// Removes the copies of objects from a directory. A process that has them open reads them on.
///
/// # Errors
/// If a file cannot be removed.
pub fn remove_copies(directory: &Path) -> Result<(), Error> {
    // The entries go first, because they must not outlive the parts that they name.
    for name in [PARTS_FILE, COPY_FILE] {
        let place = directory.join(name);
        match fs::remove_file(&place) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => {
                return Err(Error::write_error("remove", place.display(), cause));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Objects that a URL names.
#[cfg_attr(
    not(feature = "object-store"),
    expect(dead_code, reason = "no object is found in this build")
)]
pub(crate) enum ObjectSearch {
    /// The URL is that of an object.
    Single(Box<StoredObject>),
    /// The URL is that of a prefix. The objects below it, without hidden ones, each with its path below the
    /// prefix, sorted by path.
    Prefix(Vec<(std::path::PathBuf, StoredObject)>),
    /// The URL is a pattern. The objects that it matches, sorted by path; at least one.
    Pattern(Vec<StoredObject>),
}

/// The reason why an object cannot be read.
#[derive(Debug, Clone)]
#[cfg_attr(
    not(feature = "object-store"),
    expect(dead_code, reason = "no object is read in this build")
)]
pub(crate) enum ObjectFailure {
    /// The object has another version than when it was first read, or was removed.
    Changed,
    /// A request failed, after all of its repetitions.
    Failed(String),
}

impl ObjectFailure {
    /// Returns the error that names the object.
    pub(crate) fn into_error(self, name: &str) -> Error {
        match self {
            Self::Changed => {
                Error::input_error(format!("{name} was changed while it was being read"))
            }
            Self::Failed(reason) => Error::input_error(format!("cannot read {name}: {reason}")),
        }
    }

    /// Returns the failure that a read passed on.
    pub(crate) fn from_io(cause: &io::Error) -> Option<&Self> {
        cause.get_ref()?.downcast_ref()
    }
}

impl fmt::Display for ObjectFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Changed => f.write_str("it was changed while it was being read"),
            Self::Failed(reason) => f.write_str(reason),
        }
    }
}

impl std::error::Error for ObjectFailure {}

impl From<ObjectFailure> for io::Error {
    fn from(failure: ObjectFailure) -> Self {
        Self::other(failure)
    }
}
