//! The decompressed bytes of one input, from start to end.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::bufread::MultiGzDecoder;
use zstd::stream::read::Decoder as ZstdDecoder;

use super::expand::{Compression, compression_by_content};
use super::list::ListRows;
use crate::error::{Error, Result};

/// Compressed bytes read at a time.
const COMPRESSED_BUFFER: usize = 256 << 10;

/// A sequential reader that knows its position in the file on disk.
pub(super) struct Stream {
    name: String,
    reader: Box<dyn Read + Send>,
    position: Arc<AtomicU64>,
    compression: Compression,
    is_list: bool,
}

impl Stream {
    /// Reads `file` without decompression.
    pub(super) fn plain(name: &str, file: File) -> Self {
        let position = Arc::new(AtomicU64::new(0));
        let reader = Box::new(Counted {
            file,
            position: Arc::clone(&position),
        });
        Self {
            name: name.to_owned(),
            reader,
            position,
            compression: Compression::None,
            is_list: false,
        }
    }

    /// Converts a JSON list into one line per element.
    pub(super) fn into_list_rows(self) -> Self {
        Self {
            reader: Box::new(ListRows::new(self.reader)),
            is_list: true,
            ..self
        }
    }

    /// Decompresses `file` according to its first bytes; `expected` is the compression that its name
    /// indicates.
    pub(super) fn sniffed(name: &str, file: File, expected: Compression) -> Result<Self> {
        let position = Arc::new(AtomicU64::new(0));
        let counted = Counted {
            file,
            position: Arc::clone(&position),
        };
        let mut buffered = BufReader::with_capacity(COMPRESSED_BUFFER, counted);
        let mut start = [0; 4];
        let length =
            peek(&mut buffered, &mut start).map_err(|cause| Error::reading("read", name, cause))?;
        let compression = compression_by_content(&start[..length]);
        if expected != Compression::None && compression != expected {
            return Err(Error::input(format!(
                "{name} is not compressed as its extension says: its first {length} bytes are \
                 {:02X?}",
                &start[..length]
            )));
        }
        let whole = io::Cursor::new(start).take(length as u64).chain(buffered);
        let reader: Box<dyn Read + Send> = match compression {
            Compression::None => Box::new(whole),
            Compression::Gzip => Box::new(MultiGzDecoder::new(whole)),
            Compression::Zstd => Box::new(
                ZstdDecoder::with_buffer(whole)
                    .map_err(|cause| Error::reading("decompress", name, cause))?,
            ),
        };
        Ok(Self {
            name: name.to_owned(),
            reader,
            position,
            compression,
            is_list: false,
        })
    }

    /// Returns the number of bytes read from the file on disk.
    pub(super) fn position(&self) -> u64 {
        self.position.load(Ordering::Relaxed)
    }

    /// Reads some bytes into `room` and returns their number; 0 at the end.
    pub(super) fn read(&mut self, room: &mut [u8]) -> Result<usize> {
        loop {
            match self.reader.read(room) {
                Ok(length) => return Ok(length),
                Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
                Err(cause) => return Err(self.unreadable(cause)),
            }
        }
    }

    fn unreadable(&self, cause: io::Error) -> Error {
        let position = self.position();
        if self.is_list && cause.kind() == io::ErrorKind::InvalidData {
            return Error::input(format!("cannot read {} as a JSON list: {cause}", self.name));
        }
        if self.compression == Compression::None {
            let place = format!("{} at byte {position}", self.name);
            return Error::reading("read", place, cause);
        }
        let damage = match cause.kind() {
            io::ErrorKind::UnexpectedEof => "the file is truncated".to_owned(),
            _ => cause.to_string(),
        };
        let message = format!(
            "cannot decompress {} near its byte {position}: {damage}",
            self.name
        );
        Error::input(message).with_source(cause)
    }
}

/// Reads up to four bytes from the front and returns their number.
fn peek(reader: &mut impl BufRead, start: &mut [u8; 4]) -> io::Result<usize> {
    let mut length = 0;
    while length < start.len() {
        match reader.read(&mut start[length..]) {
            Ok(0) => break,
            Ok(read) => length += read,
            Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
            Err(cause) => return Err(cause),
        }
    }
    Ok(length)
}

struct Counted {
    file: File,
    position: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let length = self.file.read(room)?;
        self.position.fetch_add(length as u64, Ordering::Relaxed);
        Ok(length)
    }
}
