//! The decompressed bytes of one input, from start to end.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bzip2::bufread::MultiBzDecoder;
use flate2::bufread::MultiGzDecoder;
use liblzma::bufread::XzDecoder;
use zstd::stream::read::Decoder as ZstdDecoder;

use encoding_rs::Encoding;
use lookalike_documents::decoding::utf16_by_mark;

use super::expand::{CompressionKind, LONGEST_MAGIC, compression_by_content};
use super::json_list::{ListRows, MalformedList};
use super::utf16::{LONGEST_MARK, Utf16Reader};
use crate::error::{Error, Result};
use crate::objects::{ObjectFailure, StoredObject};

/// Compressed bytes read at a time.
const COMPRESSED_BUFFER: usize = 256 << 10;

/// A sequential reader that knows its position in the file on disk.
pub(super) struct ByteStream {
    name: String,
    reader: Box<dyn Read + Send>,
    position: Arc<AtomicU64>,
    compression: CompressionKind,
    /// The encoding that is converted to UTF-8, if it is UTF-16.
    converted: Option<&'static Encoding>,
    /// The input, if it can be sought: one that is neither compressed nor a JSON list.
    seekable: Option<SeekableInput>,
}

/// An input that is read on from any byte.
enum SeekableInput {
    /// A second handle of a file.
    File(File),
    /// An object whose parts are kept.
    Object(Arc<StoredObject>),
}

impl ByteStream {
    /// Reads `file` without decompression.
    pub(super) fn from_plain(name: &str, file: File) -> Self {
        let position = Arc::new(AtomicU64::new(0));
        // Both handles share one file offset, so that seeking one moves the other. If duplicating fails, nothing can be
        // skipped.
        let seekable = file.try_clone().ok().map(SeekableInput::File);
        let reader = Box::new(CountedReader {
            inner: file,
            position: Arc::clone(&position),
        });
        Self {
            name: name.to_owned(),
            reader,
            position,
            compression: CompressionKind::None,
            converted: None,
            seekable,
        }
    }

    /// Reads an object whose parts are kept without decompression.
    pub(super) fn from_kept_object(name: &str, object: &Arc<StoredObject>) -> Self {
        let position = Arc::new(AtomicU64::new(0));
        let reader = Box::new(CountedReader {
            inner: object.open_stream(),
            position: Arc::clone(&position),
        });
        Self {
            name: name.to_owned(),
            reader,
            position,
            compression: CompressionKind::None,
            converted: None,
            seekable: Some(SeekableInput::Object(Arc::clone(object))),
        }
    }

    /// Continues at a byte of the input. Returns `false` if the input cannot be sought; the caller then reads up to
    /// `byte`.
    ///
    /// # Errors
    /// If the file cannot be read from there.
    pub(super) fn seek_to(&mut self, byte: u64) -> Result<bool> {
        match &mut self.seekable {
            None => return Ok(false),
            Some(SeekableInput::File(file)) => {
                let sought = file.seek(io::SeekFrom::Start(byte));
                sought.map_err(|cause| {
                    Error::read_error("read", format!("{} at byte {byte}", self.name), cause)
                })?;
            }
            Some(SeekableInput::Object(object)) => {
                self.reader = Box::new(CountedReader {
                    inner: object.open_stream_at(byte),
                    position: Arc::clone(&self.position),
                });
            }
        }
        self.position.store(byte, Ordering::Relaxed);
        Ok(true)
    }

    /// Converts a JSON list into one line per element.
    pub(super) fn into_list_rows(self) -> Self {
        Self {
            reader: Box::new(ListRows::new(self.reader)),
            seekable: None,
            ..self
        }
    }

    /// Decompresses `source`, a file or an object, according to its first bytes; `expected` is the
    /// compression that its name indicates.
    pub(super) fn from_sniffed(
        name: &str,
        source: impl Read + Send + 'static,
        expected: CompressionKind,
    ) -> Result<Self> {
        let position = Arc::new(AtomicU64::new(0));
        let counted = CountedReader {
            inner: source,
            position: Arc::clone(&position),
        };
        let mut buffered = BufReader::with_capacity(COMPRESSED_BUFFER, counted);
        let mut start = [0; LONGEST_MAGIC];
        let length =
            read_magic(&mut buffered, &mut start).map_err(|cause| match ObjectFailure::from_io(
                &cause,
            ) {
                Some(failure) => failure.clone().into_error(name),
                None => Error::read_error("read", name, cause),
            })?;
        let compression = compression_by_content(&start[..length]);
        if expected != CompressionKind::None && compression != expected {
            let contents = describe_start(&start[..length], compression);
            return Err(Error::input_error(format!(
                "{name} is not compressed as its extension says: {contents}; rename it"
            )));
        }
        let whole = io::Cursor::new(start).take(length as u64).chain(buffered);
        let reader: Box<dyn Read + Send> = match compression {
            CompressionKind::None => Box::new(whole),
            CompressionKind::Gzip => Box::new(MultiGzDecoder::new(whole)),
            CompressionKind::Zstd => Box::new(
                ZstdDecoder::with_buffer(whole)
                    .map_err(|cause| Error::read_error("decompress", name, cause))?,
            ),
            CompressionKind::Xz => Box::new(XzDecoder::new_stream(whole, xz_stream(name)?)),
            CompressionKind::Bzip2 => Box::new(MultiBzDecoder::new(whole)),
        };
        Ok(Self {
            name: name.to_owned(),
            reader,
            position,
            compression,
            converted: None,
            seekable: None,
        })
    }

    /// Converts UTF-16 to UTF-8 if the bytes begin with the byte order mark of UTF-16.
    ///
    /// # Errors
    /// If the first bytes cannot be read.
    pub(super) fn convert_utf16(mut self) -> Result<Self> {
        let mut start = [0; LONGEST_MARK];
        let mut length = 0;
        while length < start.len() {
            match self.read_bytes(&mut start[length..])? {
                0 => break,
                read => length += read,
            }
        }
        let converted = utf16_by_mark(&start[..length]);
        let whole = io::Cursor::new(start)
            .take(length as u64)
            .chain(self.reader);
        let reader: Box<dyn Read + Send> = match converted {
            Some(encoding) => Box::new(Utf16Reader::new(whole, encoding)),
            None => Box::new(whole),
        };
        Ok(Self {
            reader,
            converted,
            seekable: None,
            ..self
        })
    }

    /// Returns the encoding from which the bytes are converted to UTF-8, if they are.
    pub(super) fn converted_encoding(&self) -> Option<&'static Encoding> {
        self.converted
    }

    /// Returns the bytes read from the file or object so far, compressed, including read-ahead.
    pub(super) fn source_position(&self) -> u64 {
        self.position.load(Ordering::Relaxed)
    }

    /// Reads some bytes into `room` and returns their number; 0 at the end.
    pub(super) fn read_bytes(&mut self, room: &mut [u8]) -> Result<usize> {
        loop {
            match self.reader.read(room) {
                Ok(length) => return Ok(length),
                Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
                Err(cause) => return Err(self.unreadable(cause)),
            }
        }
    }

    fn unreadable(&self, cause: io::Error) -> Error {
        let position = self.source_position();
        if let Some(failure) = ObjectFailure::from_io(&cause) {
            return failure.clone().into_error(&self.name);
        }
        if MalformedList::is_cause_of(&cause) {
            return Error::input_error(format!(
                "cannot read {} as a JSON list: {cause}",
                self.name
            ));
        }
        if self.compression == CompressionKind::None {
            let place = format!("{} at byte {position}", self.name);
            return Error::read_error("read", place, cause);
        }
        let damage = match cause.kind() {
            io::ErrorKind::UnexpectedEof => "the file is truncated".to_owned(),
            _ => cause.to_string(),
        };
        let message = format!(
            "cannot decompress {} near its byte {position}: {damage}",
            self.name
        );
        Error::input_error(message).with_source(cause)
    }
}

/// Memory limit of the xz decoder in bytes. Dictionaries of 128 MiB fit, twice that of the highest preset.
const XZ_MEMORY: u64 = 256 << 20;

fn xz_stream(name: &str) -> Result<liblzma::stream::Stream> {
    liblzma::stream::Stream::new_stream_decoder(XZ_MEMORY, liblzma::stream::CONCATENATED)
        .map_err(|cause| Error::read_error("decompress", name, cause.into()))
}

/// Reads the first bytes and returns their number.
fn read_magic(reader: &mut impl BufRead, start: &mut [u8; LONGEST_MAGIC]) -> io::Result<usize> {
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

/// A file or an object whose bytes are counted.
struct CountedReader<R> {
    inner: R,
    position: Arc<AtomicU64>,
}

impl<R: Read> Read for CountedReader<R> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let length = self.inner.read(room)?;
        self.position.fetch_add(length as u64, Ordering::Relaxed);
        Ok(length)
    }
}
/// Describes a file by its first bytes and the compression that these mean.
fn describe_start(start: &[u8], compression: CompressionKind) -> String {
    if compression != CompressionKind::None {
        return format!("it is compressed by {compression:?}").to_lowercase();
    }
    let is_text = |byte: &u8| byte.is_ascii_graphic() || byte.is_ascii_whitespace();
    match start {
        [] => "it is empty".to_owned(),
        [b'{' | b'[', ..] => "it looks like JSON that is not compressed".to_owned(),
        _ if start.iter().all(is_text) => "it looks like text that is not compressed".to_owned(),
        _ => format!("its first {} bytes are {start:02X?}", start.len()),
    }
}
