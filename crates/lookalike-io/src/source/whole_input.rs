//! A file or an object that is read once from its beginning, byte for byte.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use crate::error::{Error, Result, display_path};
use crate::objects::{ObjectSearch, ObjectStream, ObjectUrl, find_objects};

/// The bytes of a file or an object, without decompression.
#[derive(Debug)]
pub struct WholeInput {
    bytes: InputBytes,
    length: u64,
}

#[derive(Debug)]
enum InputBytes {
    File(File),
    Object(ObjectStream),
}

impl WholeInput {
    /// Opens a path or the URL of an object.
    ///
    /// # Errors
    /// If there is none, if it cannot be opened, or if its length is unknown, as that of a prefix is.
    pub fn open(path: &Path) -> Result<Self> {
        if let Some(url) = ObjectUrl::from_path(path) {
            return Self::open_object(&url?);
        }
        let failed = |cause| Error::read_error("read", display_path(path), cause);
        let file = File::open(path).map_err(failed)?;
        Ok(Self {
            length: file.metadata().map_err(failed)?.len(),
            bytes: InputBytes::File(file),
        })
    }

    fn open_object(url: &ObjectUrl) -> Result<Self> {
        let ObjectSearch::Single(object) = find_objects(url)? else {
            return Err(Error::usage_error(format!(
                "{url} names several objects, where one is wanted: give the URL of each"
            )));
        };
        let Some(length) = object.byte_length() else {
            return Err(Error::input_error(format!(
                "cannot read {url}: the server does not tell its length; copy it to a file first"
            )));
        };
        Ok(Self {
            bytes: InputBytes::Object(Arc::new(*object).open_stream()),
            length,
        })
    }

    /// Returns the number of bytes.
    pub fn byte_length(&self) -> u64 {
        self.length
    }
}

impl Read for WholeInput {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        match &mut self.bytes {
            InputBytes::File(file) => file.read(room),
            InputBytes::Object(object) => object.read(room),
        }
    }
}
