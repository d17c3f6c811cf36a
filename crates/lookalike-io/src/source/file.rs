//! One input: its properties, and its bytes at any offset once they have been read.

use std::fs::{File, Metadata};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use lookalike_documents::DocumentKind;
use lookalike_documents::decoding::utf16_by_mark;
use lookalike_system::{FileNumber, FileVersion, PositionedAccess};

use super::byte_stream::ByteStream;
use super::columnar::{PositionedFile, unreadable};
use super::delimited::DelimitedColumns;
use super::expand::{
    CompressionKind, FoundInput, InputOrigin, LONGEST_MAGIC, compression_by_content,
    compression_by_extension, is_stdin,
};
use super::line_reader::RowEnds;
use super::{InputFormat, ReadOptions};
use crate::error::{Error, Result, display_path};
use crate::objects::{ObjectFailure, ObjectIdentity, RangeCopy, StoredObject, is_same_object};
use crate::spool::SpoolFile;

/// Objects whose beginning is requested before they are opened.
pub(super) const READ_AHEAD: usize = 8;

/// The location of an input's bytes after they have been read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InputStorage {
    /// In the file itself.
    InPlace,
    /// In the spool for streams, in one piece, decompressed or copied.
    Stream,
    /// In the spool for records, row by row.
    Records,
    /// In memory, as columns.
    Columns,
}

/// One input of a run.
#[derive(Debug)]
pub struct InputFile {
    name: String,
    path: PathBuf,
    below: PathBuf,
    format: InputFormat,
    document: Option<std::result::Result<DocumentKind, String>>,
    storage: InputStorage,
    /// `None` for standard input and objects.
    version: Option<FileVersion>,
    regular: bool,
    /// The object, if the input is one.
    object: Option<Arc<StoredObject>>,
    /// The parts of an object that were read, if it is read at any offset: of Parquet and Arrow, and of uncompressed
    /// lines whose parts outlive the process.
    ranges: Option<Arc<RangeCopy>>,
    /// The size in bytes, if the input is not a file.
    held_bytes: Option<u64>,
    /// The content of standard input, if it was copied.
    standard_input: Option<Arc<File>>,
    /// `true` if UTF-16 is converted to UTF-8 while the input is read.
    converts_utf16: bool,
    /// An open handle for reading in place.
    handle: OnceLock<File>,
    /// `true` if the handle is that of a temporary copy, made of Parquet or Arrow that was compressed or
    /// came through a pipe.
    is_copy: bool,
    /// Start of a stream in its spool.
    spooled_at: OnceLock<u64>,
    /// The columns of CSV.
    pub(super) columns: OnceLock<DelimitedColumns>,
    /// The header row of CSV, as it is in the input.
    pub(super) header: OnceLock<Vec<u8>>,
    /// The number of the first row.
    pub(super) first_number: OnceLock<u64>,
    /// End of the last row, if no line feed ends it.
    pub(super) open_end: OnceLock<u64>,
}

impl InputFile {
    /// Opens a regular file, to verify that it can be read and to see if it is compressed. `keep_open`
    /// keeps the handle. Parquet and Arrow are read at any place, so such an input that is not a plain file is
    /// first copied to an unlinked temporary file; of such an object with ranges, those that are
    /// read are kept in `ranges`. Uncompressed lines of an object whose parts outlive the process are read like a file.
    pub(super) fn new(
        found: FoundInput,
        keep_open: bool,
        options: &ReadOptions,
        ranges: &RangeSpool<'_>,
    ) -> Result<Self> {
        let name = display_path(&found.path);
        let object = match &found.origin {
            InputOrigin::Object(object) => Some(Arc::clone(object)),
            InputOrigin::StandardInput | InputOrigin::File(_) => None,
        };
        let metadata = found.origin.metadata();
        let version = metadata.map(|metadata| FileVersion::of_file(&found.path, metadata));
        let regular = metadata.is_some_and(Metadata::is_file);
        // Document files are decoded when their texts are extracted.
        let converts_utf16 = options.encoding == encoding_rs::UTF_8
            && found.document.is_none()
            && !found.format.is_columnar();
        let handle = OnceLock::new();
        let mut compressed = false;
        // A document file that cannot be opened is a bad row, as any other one that cannot be read.
        let opened = regular.then(|| open_file(&name, &found.path));
        let opened = match opened.transpose() {
            Err(_) if found.document.is_some() => None,
            opened => opened?,
        };
        if let Some(file) = opened {
            compressed = compression_by_extension(&found.path) != CompressionKind::None
                || starts_converted(&name, converts_utf16, &|bytes, start| {
                    file.read_bytes_at(bytes, start)
                })?;
            if keep_open && !compressed {
                handle.get_or_init(|| file);
            }
        }
        let is_columnar = found.format.is_columnar();
        let is_plain = compression_by_extension(&found.path) == CompressionKind::None;
        let kept_lines = found.object_to_recognise().map(RangeCopy::of_kept);
        let kept_lines = match kept_lines {
            Some(lines)
                if starts_converted(&name, converts_utf16, &|bytes, start| {
                    lines.read_at(bytes, start)
                })? =>
            {
                None
            }
            kept_lines => kept_lines.map(Arc::new),
        };
        let in_place = regular && !compressed || kept_lines.is_some();
        let columns = object
            .as_ref()
            .filter(|object| is_columnar && is_plain && object.has_ranges())
            .map(|object| ranges.copy_of(object))
            .transpose()?;
        let ranges = columns.or(kept_lines);
        let is_copy = is_columnar && !in_place && ranges.is_none();
        if is_copy {
            let copy = plain_copy(&name, &found.path, object.as_ref(), options)?;
            handle.get_or_init(|| copy);
        }
        let is_extracted = found.document.as_ref().is_some_and(is_extracted_kind);
        let storage = match (found.format, in_place && !is_extracted) {
            (format, _) if format.is_columnar() => InputStorage::Records,
            (InputFormat::Json, _) => InputStorage::Stream,
            (_, true) => InputStorage::InPlace,
            (_, false) => InputStorage::Stream,
        };
        Ok(Self {
            name,
            path: found.path,
            below: found.below,
            format: found.format,
            document: found.document,
            storage,
            version,
            regular,
            held_bytes: object.as_ref().and_then(|object| object.byte_length()),
            object,
            ranges,
            standard_input: options.standard_input.clone(),
            converts_utf16,
            handle,
            is_copy,
            spooled_at: OnceLock::new(),
            columns: OnceLock::new(),
            header: OnceLock::new(),
            first_number: OnceLock::new(),
            open_end: OnceLock::new(),
        })
    }

    /// Creates the input of a table in memory whose texts have this many bytes.
    pub(super) fn in_memory(name: &str, bytes: u64) -> Self {
        Self {
            name: name.to_owned(),
            path: PathBuf::new(),
            below: PathBuf::from(name),
            format: InputFormat::Memory,
            document: None,
            storage: InputStorage::Columns,
            version: None,
            regular: false,
            object: None,
            ranges: None,
            held_bytes: Some(bytes),
            standard_input: None,
            converts_utf16: false,
            handle: OnceLock::new(),
            is_copy: false,
            spooled_at: OnceLock::new(),
            columns: OnceLock::new(),
            header: OnceLock::new(),
            first_number: OnceLock::new(),
            open_end: OnceLock::new(),
        }
    }

    /// Returns the name as given, or as found in a directory or a listing; `-` is standard input. The name
    /// of an object is its URL, without the query of an `https://` URL.
    pub fn display_name(&self) -> &str {
        &self.name
    }

    /// Returns the path or URL.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the format.
    pub fn input_format(&self) -> InputFormat {
        self.format
    }

    /// Returns `true` if this is a document file, which the options made one document by its extension.
    pub fn is_document_file(&self) -> bool {
        self.document.is_some()
    }

    /// Returns `true` if positions in its text are not positions in the file (`.docx`, PDF). The text itself is
    /// then kept for reading it again.
    pub fn is_extracted(&self) -> bool {
        self.document.as_ref().is_some_and(is_extracted_kind)
    }

    /// Returns the kind of a document file, or why it cannot be read.
    pub(super) fn document_kind(&self) -> Option<&std::result::Result<DocumentKind, String>> {
        self.document.as_ref()
    }

    /// Returns the size on disk in bytes if this is a regular file, or the size of the object; for a table
    /// in memory, the size of its texts.
    pub fn size_on_disk(&self) -> Option<u64> {
        self.version
            .filter(|_| self.regular)
            .map(|version| version.bytes)
            .or(self.held_bytes)
    }

    /// Returns the properties by which a later process recognises an object, if its store states any.
    pub fn object_identity(&self) -> Option<&ObjectIdentity> {
        self.object.as_ref()?.object_identity()
    }

    /// Returns `true` if this is an object of a store or a file of a server.
    pub fn is_stored_object(&self) -> bool {
        self.object.is_some()
    }

    /// Returns the time of the last change of a regular file, in seconds and nanoseconds since 1970.
    pub fn modification_time(&self) -> Option<(i64, i64)> {
        self.version
            .filter(|_| self.regular)
            .map(|version| version.changed)
    }

    /// Returns the names of the columns of CSV, once the header (or the first row) has been read.
    pub fn column_names(&self) -> Option<&[String]> {
        self.columns.get().map(|columns| &columns.names[..])
    }

    /// Returns the cells of a row of CSV; none before the first row was read.
    pub fn split_cells(&self, row: &str) -> Vec<String> {
        let columns = self.columns.get();
        columns.map_or_else(Vec::new, |columns| columns.split_row(trimmed(row)))
    }

    /// Returns the path below the given directory, or the file name if no directory was given.
    pub fn path_below(&self) -> &Path {
        &self.below
    }

    /// Returns `true` if this is a regular file or an object, whose name another file can have; not
    /// standard input, a pipe or a device.
    pub(crate) fn has_file_name(&self) -> bool {
        self.regular || (self.object.is_some() && !self.below.as_os_str().is_empty())
    }

    /// Returns `true` if this is a regular file of this machine.
    pub(crate) fn is_local_file(&self) -> bool {
        self.regular
    }

    /// Returns `true` if this is the object of a URL.
    pub(crate) fn is_object(&self, url: &Path) -> bool {
        self.object.is_some() && is_same_object(&self.path, url)
    }

    /// Returns `true` if this is the file with that number, whatever its path.
    pub(crate) fn has_number(&self, number: FileNumber) -> bool {
        self.version
            .is_some_and(|version| version.number == Some(number))
    }

    /// Returns the header row of CSV as it is in the input, with its line end if it has one.
    pub fn header_row(&self) -> Option<&[u8]> {
        self.header.get().map(Vec::as_slice)
    }

    /// Returns the number of the first row over all inputs, once it has been read.
    pub fn first_number(&self) -> Option<u64> {
        self.first_number.get().copied()
    }

    /// Returns the end of the last row, in bytes of the input's data, if no line feed ends it.
    pub(crate) fn unterminated_end(&self) -> Option<u64> {
        self.open_end.get().copied()
    }

    /// Returns the error for an input with columns that is not what its format says.
    pub(crate) fn unreadable_columns(&self, reason: &str) -> Error {
        unreadable(&self.name, self.format, reason)
    }

    pub(super) fn storage(&self) -> InputStorage {
        self.storage
    }

    pub(super) fn row_ends(&self) -> RowEnds {
        match self.format {
            InputFormat::Csv {
                delimiter,
                quoting: true,
            } => RowEnds::OutsideQuotes(delimiter),
            _ => RowEnds::LineFeed,
        }
    }

    /// Requests the beginning of an object that is opened soon; does nothing for files.
    pub(super) fn read_ahead(&self) {
        if let (Some(object), InputStorage::Stream | InputStorage::InPlace) =
            (&self.object, self.storage)
        {
            object.read_ahead();
        }
    }

    /// Opens a stream of the decompressed bytes, in UTF-8 if they begin as UTF-16; elements of a JSON list become lines.
    pub(super) fn open_stream(&self) -> Result<ByteStream> {
        let mut stream = self.plain_stream()?;
        if self.converts_utf16 && self.storage != InputStorage::InPlace {
            stream = stream.convert_utf16()?;
        }
        Ok(if self.format == InputFormat::Json {
            stream.into_list_rows()
        } else {
            stream
        })
    }

    fn plain_stream(&self) -> Result<ByteStream> {
        if is_stdin(&self.path) {
            return open_standard_input(&self.name, self.standard_input.as_ref());
        }
        if let Some(object) = &self.object {
            if self.storage == InputStorage::InPlace {
                return Ok(ByteStream::from_kept_object(&self.name, object));
            }
            let compression = compression_by_extension(&self.path);
            return ByteStream::from_sniffed(&self.name, object.open_stream(), compression);
        }
        let file = open_file(&self.name, &self.path)?;
        match self.storage {
            InputStorage::Stream => {
                ByteStream::from_sniffed(&self.name, file, compression_by_extension(&self.path))
            }
            _ => Ok(ByteStream::from_plain(&self.name, file)),
        }
    }

    /// Opens the input once more, for reading at any offset.
    pub(crate) fn open_positioned(&self) -> Result<PositionedFile> {
        match &self.ranges {
            Some(ranges) => Ok(PositionedFile::from_ranges(Arc::clone(ranges))),
            None => PositionedFile::new(self.open_again()?)
                .map_err(|cause| Error::read_error("open", &self.name, cause)),
        }
    }

    /// Opens the file once more.
    fn open_again(&self) -> Result<File> {
        if let Some(copy) = self.handle.get().filter(|_| self.is_copy) {
            let again = copy.try_clone();
            return again.map_err(|cause| Error::read_error("open", &self.name, cause));
        }
        let file = open_file(&self.name, &self.path)?;
        let metadata = file
            .metadata()
            .map_err(|cause| Error::read_error("open", &self.name, cause))?;
        self.check_unchanged_by(&metadata)?;
        Ok(file)
    }

    /// Returns an error if the file has changed since it was opened.
    pub(crate) fn check_unchanged(&self) -> Result<()> {
        if !self.regular {
            return Ok(());
        }
        let metadata = std::fs::metadata(&self.path)
            .map_err(|cause| Error::read_error("read", &self.name, cause))?;
        self.check_unchanged_by(&metadata)
    }

    fn check_unchanged_by(&self, metadata: &Metadata) -> Result<()> {
        let is_same = |version| version == FileVersion::of_file(&self.path, metadata);
        if self.version.is_none_or(is_same) {
            return Ok(());
        }
        Err(Error::input_error(format!(
            "{} was changed while it was being read",
            self.name
        )))
    }

    /// Records the start of the input in the spool for streams or, with one document per file, in the
    /// spool for records.
    pub(super) fn set_spooled_at(&self, start: u64) {
        self.spooled_at.get_or_init(|| start);
    }

    /// Fills `bytes` from the input's data, from offset `start`.
    pub(super) fn read_data_at(
        &self,
        bytes: &mut [u8],
        start: u64,
        spool: Option<&SpoolFile>,
    ) -> Result<()> {
        let read = match (self.storage, spool) {
            (InputStorage::InPlace, _) => match (&self.ranges, self.handle.get()) {
                (Some(ranges), _) => ranges.read_exact_at(bytes, start),
                (None, Some(file)) => file.read_exact_bytes_at(bytes, start),
                (None, None) => self.open_again()?.read_exact_bytes_at(bytes, start),
            },
            (_, Some(spool)) => {
                spool.read_exact_at(bytes, self.spooled_at.get().copied().unwrap_or(0) + start)
            }
            (_, None) => Err(io::ErrorKind::NotFound.into()),
        };
        read.map_err(|cause| {
            if let Some(failure) = ObjectFailure::from_io(&cause) {
                return failure.clone().into_error(&self.name);
            }
            match cause.kind() {
                io::ErrorKind::UnexpectedEof => {
                    Error::input_error(format!("{} was changed while it was being read", self.name))
                }
                _ => Error::read_error("read", format!("{} at byte {start}", self.name), cause),
            }
        })
    }
}

fn is_extracted_kind(kind: &std::result::Result<DocumentKind, String>) -> bool {
    matches!(kind, Ok(DocumentKind::Docx | DocumentKind::Pdf))
}

fn open_file(name: &str, path: &Path) -> Result<File> {
    File::open(path).map_err(|cause| Error::read_error("open", name, cause))
}

/// The temporary file of all objects that are read by ranges. It is created with the first of them.
pub(super) struct RangeSpool<'a> {
    scratch: Option<&'a Path>,
    spool: OnceLock<Arc<SpoolFile>>,
}

impl<'a> RangeSpool<'a> {
    pub(super) fn new(scratch: Option<&'a Path>) -> Self {
        Self {
            scratch,
            spool: OnceLock::new(),
        }
    }

    fn copy_of(&self, object: &Arc<StoredObject>) -> Result<Arc<RangeCopy>> {
        if object.keeps_parts() {
            return Ok(Arc::new(RangeCopy::of_kept(object)));
        }
        let spool = match self.spool.get() {
            Some(spool) => spool,
            None => {
                let spool = Arc::new(SpoolFile::create_file(self.scratch)?);
                self.spool.get_or_init(|| spool)
            }
        };
        Ok(Arc::new(RangeCopy::new(object, Arc::clone(spool))))
    }
}

/// Copies a pipe, a compressed file or an object, decompressed, to an unlinked temporary file.
fn plain_copy(
    name: &str,
    path: &Path,
    object: Option<&Arc<StoredObject>>,
    options: &ReadOptions,
) -> Result<File> {
    let mut stream = if let Some(object) = object {
        ByteStream::from_sniffed(name, object.open_stream(), compression_by_extension(path))?
    } else if is_stdin(path) {
        open_standard_input(name, options.standard_input.as_ref())?
    } else {
        ByteStream::from_sniffed(name, open_file(name, path)?, compression_by_extension(path))?
    };
    copy_stream(&mut stream, options.scratch.as_deref())
}

/// Copies a stream to an unlinked temporary file in `scratch`.
fn copy_stream(stream: &mut ByteStream, scratch: Option<&Path>) -> Result<File> {
    let directory = scratch.map_or_else(std::env::temp_dir, Path::to_path_buf);
    let failed =
        |cause| Error::write_error("write a temporary file in", display_path(&directory), cause);
    let mut copy = tempfile::tempfile_in(&directory).map_err(failed)?;
    let mut room = vec![0; COPIED_BYTES_AT_ONCE];
    loop {
        match stream.read_bytes(&mut room)? {
            0 => return Ok(copy),
            length => copy.write_all(&room[..length]).map_err(failed)?,
        }
    }
}

/// Copies standard input, decompressed, to an unlinked temporary file, so that it can be read several times; see
/// [`ReadOptions::standard_input`]. The file is in `scratch`, or in the system's directory of temporary files.
///
/// # Errors
/// If it cannot be read, or the file cannot be written.
pub fn copy_standard_input(scratch: Option<&Path>) -> Result<Arc<File>> {
    let mut stream = open_standard_input("-", None)?;
    copy_stream(&mut stream, scratch).map(Arc::new)
}

/// Opens standard input, or its copy from the beginning.
fn open_standard_input(name: &str, copy: Option<&Arc<File>>) -> Result<ByteStream> {
    if let Some(copy) = copy {
        let reader = CopyReader {
            file: Arc::clone(copy),
            offset: 0,
        };
        return ByteStream::from_sniffed(name, reader, CompressionKind::None);
    }
    let file = lookalike_system::open_standard_input()
        .map_err(|cause| Error::read_error("read", name, cause))?;
    ByteStream::from_sniffed(name, file, CompressionKind::None)
}

/// Reads a shared file from an offset of its own.
struct CopyReader {
    file: Arc<File>,
    offset: u64,
}

impl Read for CopyReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.file.read_bytes_at(buffer, self.offset)?;
        self.offset += length as u64;
        Ok(length)
    }
}

/// Bytes copied at a time.
const COPIED_BYTES_AT_ONCE: usize = 1 << 20;

fn trimmed(row: &str) -> &str {
    let row = row.strip_suffix('\n').unwrap_or(row);
    row.strip_suffix('\r').unwrap_or(row)
}

/// Recognises an input that is decompressed, or converted from UTF-16, by its first bytes. `read_at` reads at an offset, so that no position moves.
fn starts_converted(
    name: &str,
    converts_utf16: bool,
    read_at: &dyn Fn(&mut [u8], u64) -> io::Result<usize>,
) -> Result<bool> {
    let mut start = [0; LONGEST_MAGIC];
    let mut length = 0;
    while length < start.len() {
        match read_at(&mut start[length..], length as u64) {
            Ok(0) => break,
            Ok(read) => length += read,
            Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
            Err(cause) => {
                return Err(match ObjectFailure::from_io(&cause) {
                    Some(failure) => failure.clone().into_error(name),
                    None => Error::read_error("read", name, cause),
                });
            }
        }
    }
    let start = &start[..length];
    let is_utf16 = converts_utf16 && utf16_by_mark(start).is_some();
    Ok(is_utf16 || compression_by_content(start) != CompressionKind::None)
}
