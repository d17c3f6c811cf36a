//! Expansion of paths, directories, globs and URLs into the files and objects to read, and formats by
//! extension.

use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::path::{Component, Path, PathBuf, is_separator};
use std::sync::Arc;

use glob::MatchOptions;
use lookalike_documents::foreign_files::foreign_extension;
use lookalike_documents::{DocumentKind, describe_other_document};
use lookalike_system::{NAMES_IGNORE_CASE, ShellSyntax};

use super::byte_stream::ByteStream;
use super::json_list::begins_list;
use super::{InputFormat, ReadOptions};
use crate::error::{Error, Result, display_path};
use crate::left_out_names::{is_left_by_system, is_left_out_by_pattern};
use crate::objects::{ObjectSearch, ObjectUrl, StoredObject, find_objects};

/// Largest depth of nested directories. Deeper nesting is a loop of symbolic links or mounts.
const MAX_DEPTH: usize = 128;

/// Extensions of compressed files; the format is that of the extension before them.
const COMPRESSED_EXTENSIONS: [&str; 6] = ["gz", "gzip", "zst", "zstd", "xz", "bz2"];

/// Rules of patterns for paths. With a literal leading dot, the crate finds no hidden name at all.
const PATTERN_RULES: MatchOptions = MatchOptions {
    case_sensitive: !NAMES_IGNORE_CASE,
    require_literal_separator: false,
    require_literal_leading_dot: false,
};

/// An input that was found.
pub(super) struct FoundInput {
    /// The path to open, or the URL without its query; `-` is standard input.
    pub(super) path: PathBuf,
    /// The path below the given directory, or the file name. It is the file's path in a mirrored
    /// output.
    pub(super) below: PathBuf,
    pub(super) format: InputFormat,
    /// The kind of a document file, or why files of its extension are none that can be read.
    pub(super) document: Option<std::result::Result<DocumentKind, String>>,
    pub(super) origin: InputOrigin,
}

impl FoundInput {
    /// Returns the object if its first bytes decide where its rows are read from: its parts are kept, and it has lines
    /// that are not compressed by its name.
    pub(super) fn object_to_recognise(&self) -> Option<&Arc<StoredObject>> {
        let has_lines = !self.format.is_columnar()
            && !matches!(self.format, InputFormat::Json | InputFormat::TextFile);
        let is_plain = compression_by_extension(&self.path) == CompressionKind::None;
        let InputOrigin::Object(object) = &self.origin else {
            return None;
        };
        (has_lines && is_plain && object.keeps_parts() && object.has_ranges()).then_some(object)
    }
}

/// Source of an input.
pub(super) enum InputOrigin {
    StandardInput,
    /// A file, a pipe or a device.
    File(Metadata),
    /// An object of a store or of a server.
    Object(Arc<StoredObject>),
}

impl InputOrigin {
    pub(super) fn metadata(&self) -> Option<&Metadata> {
        match self {
            Self::File(metadata) => Some(metadata),
            Self::StandardInput | Self::Object(_) => None,
        }
    }

    /// Returns `true` for a file and for an object, whose names say what is in them.
    fn has_name(&self) -> bool {
        match self {
            Self::StandardInput => false,
            Self::File(metadata) => metadata.is_file(),
            Self::Object(_) => true,
        }
    }
}

/// The result of the expansion.
pub(super) struct ExpandedInputs {
    pub(super) found: Vec<FoundInput>,
    /// Files of unknown formats in the given directories.
    pub(super) left_out: Vec<PathBuf>,
}

/// Returns `true` if the path stands for standard input.
pub(super) fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Finds all inputs, in reading order: arguments as given, and the files of a directory or a glob
/// sorted by path.
pub(super) fn find_inputs(paths: &[PathBuf], options: &ReadOptions) -> Result<ExpandedInputs> {
    let mut finder = InputFinder {
        options,
        all: ExpandedInputs {
            found: Vec::new(),
            left_out: Vec::new(),
        },
    };
    for path in paths {
        finder.find_named(path)?;
    }
    let standard_inputs = finder
        .all
        .found
        .iter()
        .filter(|found| matches!(found.origin, InputOrigin::StandardInput))
        .count();
    match standard_inputs {
        0 | 1 => Ok(finder.all),
        _ => Err(Error::usage_error(
            "standard input (`-`) is given more than once",
        )),
    }
}

struct InputFinder<'a> {
    options: &'a ReadOptions,
    all: ExpandedInputs,
}

impl InputFinder<'_> {
    fn find_named(&mut self, path: &Path) -> Result<()> {
        self.refuse_outside(path)?;
        if is_stdin(path) {
            let format = self.stream_format(None);
            let (path, below) = (path.to_path_buf(), path.to_path_buf());
            self.all.found.push(FoundInput {
                path,
                below,
                format,
                document: None,
                origin: InputOrigin::StandardInput,
            });
            return Ok(());
        }
        if let Some(url) = ObjectUrl::from_path(path) {
            return self.find_at_url(&url?);
        }
        match fs::metadata(path) {
            Ok(metadata) => self.add_existing(path, metadata),
            // Windows has no names with the characters of a pattern.
            Err(cause)
                if matches!(
                    cause.kind(),
                    std::io::ErrorKind::NotFound | std::io::ErrorKind::InvalidFilename
                ) =>
            {
                self.find_by_pattern(path, cause)
            }
            Err(cause) => Err(Error::read_error("open", display_path(path), cause)),
        }
    }

    /// Refuses a path that is not below the allowed folders, if there are any.
    fn refuse_outside(&self, path: &Path) -> Result<()> {
        match &self.options.allowed_folders {
            Some(folders) if folders.resolve_path(path).is_none() => {
                Err(Error::usage_error(format!(
                    "{} is not below a folder that may be read, or it does not exist",
                    display_path(path)
                )))
            }
            _ => Ok(()),
        }
    }

    /// Returns `true` if a file of a directory is a link to one outside of the allowed folders.
    fn leads_outside(&self, path: &Path) -> bool {
        let folders = self.options.allowed_folders.as_ref();
        folders.is_some_and(|folders| path.is_symlink() && folders.resolve_path(path).is_none())
    }

    /// Adds the objects that a URL names, as the files that a path names are added.
    fn find_at_url(&mut self, url: &ObjectUrl) -> Result<()> {
        match find_objects(url)? {
            ObjectSearch::Single(object) => self.add_object(*object, None),
            ObjectSearch::Pattern(objects) => objects
                .into_iter()
                .try_for_each(|object| self.add_object(object, None)),
            ObjectSearch::Prefix(objects) => {
                let before = self.all.found.len();
                for (below, object) in objects {
                    if self.is_taken(&below) {
                        self.add_object(object, Some(below))?
                    } else {
                        self.all.left_out.push(object.display_name().into())
                    }
                }
                if self.all.found.len() > before {
                    Ok(())
                } else {
                    Err(Error::input_error(format!(
                        "there is no object of a known format below {url}"
                    )))
                }
            }
        }
    }

    fn add_object(&mut self, mut object: StoredObject, below: Option<PathBuf>) -> Result<()> {
        if let Some(copies) = &self.options.object_copies {
            object.keep_parts(copies);
        }
        let path = PathBuf::from(object.display_name());
        let below = below.unwrap_or_else(|| PathBuf::from(path.file_name().unwrap_or_default()));
        self.add_file(path, below, InputOrigin::Object(Arc::new(object)))
    }

    fn add_existing(&mut self, path: &Path, metadata: Metadata) -> Result<()> {
        if !metadata.is_dir() {
            let below = PathBuf::from(path.file_name().unwrap_or(path.as_os_str()));
            return self.add_file(path.to_path_buf(), below, InputOrigin::File(metadata));
        }
        let before = self.all.found.len();
        self.walk_directory(path, Path::new(""), 0)?;
        if self.all.found.len() > before {
            return Ok(());
        }
        Err(Error::input_error(format!(
            "the directory {} holds no file of a known format",
            display_path(path)
        )))
    }

    fn find_by_pattern(&mut self, path: &Path, cause: std::io::Error) -> Result<()> {
        if is_joined_by_quotation_mark(path) {
            return Err(Error::usage_error(format!(
                "{} has a quotation mark: a backslash before a closing quotation mark makes it part of the path: leave the \
                 backslash out",
                display_path(path)
            ))
            .with_source(cause));
        }
        let pattern = path.to_str().filter(|text| text.contains(['*', '?', '[']));
        let Some(pattern) = pattern else {
            return Err(Error::read_error("open", display_path(path), cause));
        };
        let matches = glob::glob_with(pattern, PATTERN_RULES).map_err(|cause| {
            Error::usage_error(format!("`{pattern}` is not a valid pattern: {}", cause.msg))
                .with_source(cause)
        })?;
        let before = self.all.found.len();
        for path in matches {
            let path = path.map_err(|cause| {
                Error::input_error(format!(
                    "cannot search {}: {cause}",
                    display_path(cause.path())
                ))
            })?;
            let path = with_slashes(path);
            if is_left_out_by_pattern(pattern, &path) {
                continue;
            }
            let metadata = metadata_of(&path)?;
            self.add_existing(&path, metadata)?;
        }
        if self.all.found.len() > before {
            return Ok(());
        }
        Err(Error::input_error(format!("no file matches `{pattern}`")))
    }

    /// Adds the files of a directory and of its subdirectories. Names that begin with `.` are hidden,
    /// and Spark and Hive mark files without data by `_`; both are skipped.
    fn walk_directory(&mut self, path: &Path, below: &Path, depth: usize) -> Result<()> {
        if depth > MAX_DEPTH {
            return Err(Error::limit_error(format!(
                "{} lies more than {MAX_DEPTH} directories deep",
                display_path(path)
            )));
        }
        let unreadable = |cause| Error::read_error("list", display_path(path), cause);
        let mut names = Vec::new();
        for entry in fs::read_dir(path).map_err(unreadable)? {
            names.push(entry.map_err(unreadable)?.file_name());
        }
        names.sort();
        for name in names {
            if matches!(name.as_encoded_bytes(), [b'.' | b'_', ..]) || is_left_by_system(&name) {
                continue;
            }
            self.add_entry(join_name(path, &name), join_name(below, &name), depth)?;
        }
        Ok(())
    }

    fn add_entry(&mut self, path: PathBuf, below: PathBuf, depth: usize) -> Result<()> {
        if self.leads_outside(&path) {
            self.all.left_out.push(path);
            return Ok(());
        }
        let metadata = metadata_of(&path)?;
        let taken = self.is_taken(&path);
        match (metadata.is_dir(), metadata.is_file()) {
            // A linked directory is skipped because it may be one of its own parents.
            (true, _) if path.is_symlink() => Ok(()),
            (true, _) => self.walk_directory(&path, &below, depth + 1),
            (_, true) if taken => self.add_file(path, below, InputOrigin::File(metadata)),
            (_, true) => {
                self.all.left_out.push(path);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Returns `true` if a file that was not named by itself is read, by its extension or by the options.
    fn is_taken(&self, path: &Path) -> bool {
        self.options.document_per_file
            || self.options.format.is_some()
            || format_by_extension(path).is_some()
            || self.document_kind(path).is_some()
    }

    fn add_file(&mut self, path: PathBuf, below: PathBuf, origin: InputOrigin) -> Result<()> {
        let document = self.document_kind(&path);
        let format = match (origin.has_name(), &document) {
            (_, Some(_)) => InputFormat::TextFile,
            (true, None) => self.file_format(&path, &origin)?,
            (false, None) => self.stream_format(format_by_extension(&path)),
        };
        let delimiter = self.options.delimiter;
        let format = delimiter.map_or(format, |delimiter| format.with_delimiter(delimiter));
        self.all.found.push(FoundInput {
            path,
            below,
            format,
            document,
            origin,
        });
        Ok(())
    }

    /// Returns the kind of a document file by its extension, or why such documents cannot be read. Returns `None` if
    /// the options or the extension make the file another input.
    fn document_kind(&self, path: &Path) -> Option<std::result::Result<DocumentKind, String>> {
        let options = self.options;
        if options.document_files.is_none() || options.document_per_file || options.format.is_some()
        {
            return None;
        }
        match DocumentKind::from_path(path) {
            Ok(DocumentKind::PlainText) if !options.text_documents => None,
            Ok(kind) => Some(Ok(kind)),
            Err(_) => describe_other_document(path).map(|reason| Err(reason.to_owned())),
        }
    }

    fn file_format(&self, path: &Path, origin: &InputOrigin) -> Result<InputFormat> {
        if self.options.document_per_file {
            return Ok(InputFormat::TextFile);
        }
        match (self.options.format, format_by_extension(path)) {
            (Some(format), _) => Ok(format),
            (None, Some(InputFormat::Jsonl)) if is_named_json(path) && holds_list(path, origin) => {
                Ok(InputFormat::Json)
            }
            (None, Some(InputFormat::Text)) if self.options.text_documents => {
                Ok(InputFormat::TextFile)
            }
            (None, Some(format)) => Ok(format),
            (None, None) => Err(Error::usage_error(match foreign_extension(path) {
                Some(what) => format!("{} is {what}", display_path(path)),
                None => format!(
                    "cannot tell the format of {} by its extension; known are {}: give --format",
                    display_path(path),
                    known_extensions()
                ),
            })),
        }
    }

    /// Returns the format of a stream, which is JSONL if neither the options nor an extension decide.
    fn stream_format(&self, by_extension: Option<InputFormat>) -> InputFormat {
        if self.options.document_per_file {
            InputFormat::TextFile
        } else {
            self.options
                .format
                .or(by_extension)
                .unwrap_or(InputFormat::Jsonl)
        }
    }
}

/// Returns `true` for a path that a shell of Windows made of `"C:\my essays\" and more`: the backslash there takes the quotation
/// mark, and the words after it, into the path. Names of Windows have no quotation marks.
fn is_joined_by_quotation_mark(path: &Path) -> bool {
    ShellSyntax::CURRENT == ShellSyntax::Windows
        && path.as_os_str().as_encoded_bytes().contains(&b'"')
}

/// Returns the path of a file in a directory, with `/` between both on every system, so that the names of sources do not
/// depend on it. Paths that begin with `\\?\` have no `/`.
fn join_name(directory: &Path, name: &OsStr) -> PathBuf {
    let mut parts = directory.components();
    let prefix = match parts.next() {
        Some(Component::Prefix(prefix)) => Some(prefix.kind()),
        _ => None,
    };
    // `C:` alone is the current directory of the drive, and `C:/` its root.
    let is_drive = prefix.is_some() && parts.next().is_none();
    let is_verbatim = prefix.is_some_and(|prefix| prefix.is_verbatim());
    let text = directory.to_string_lossy();
    if is_verbatim || is_drive || text.is_empty() || text.ends_with(is_separator) {
        return directory.join(name);
    }
    let mut path = directory.as_os_str().to_owned();
    path.push("/");
    path.push(name);
    PathBuf::from(path)
}

/// Returns a path that a pattern found, with `/` on every system, as [`join_name`] has it. A name that is no Unicode stays as
/// it is.
fn with_slashes(path: PathBuf) -> PathBuf {
    let is_verbatim = matches!(
        path.components().next(),
        Some(Component::Prefix(prefix)) if prefix.kind().is_verbatim()
    );
    if is_verbatim || !is_separator('\\') {
        return path;
    }
    match path.to_str() {
        Some(text) => PathBuf::from(text.replace('\\', "/")),
        None => path,
    }
}

fn metadata_of(path: &Path) -> Result<Metadata> {
    fs::metadata(path).map_err(|cause| Error::read_error("open", display_path(path), cause))
}

/// Returns the format of a file by its extension, after the one of the compression is removed.
pub fn format_by_extension(path: &Path) -> Option<InputFormat> {
    let extension = lower_extension(path)?;
    if COMPRESSED_EXTENSIONS.contains(&extension.as_str()) {
        return format_by_extension(Path::new(path.file_stem()?))
            .filter(|format| !format.is_columnar());
    }
    InputFormat::from_extension(&extension)
}

/// Returns `true` if the name ends in `.json`, after the extension of the compression is removed.
pub(crate) fn is_named_json(path: &Path) -> bool {
    match lower_extension(path).as_deref() {
        Some("json") => true,
        Some(compressed) if COMPRESSED_EXTENSIONS.contains(&compressed) => {
            let inner = path.file_stem().map(Path::new).and_then(lower_extension);
            inner.as_deref() == Some("json")
        }
        _ => false,
    }
}

/// Bytes at the start of a file within which a JSON list must begin.
const LIST_START: usize = 4096;

/// Returns `true` if the file or object begins with a JSON list. One that cannot be read is reported when
/// it is opened.
fn holds_list(path: &Path, origin: &InputOrigin) -> bool {
    let name = display_path(path);
    let stream = match (origin, fs::File::open(path)) {
        (InputOrigin::Object(object), _) => {
            ByteStream::from_sniffed(&name, object.open_stream(), CompressionKind::None)
        }
        (_, Ok(file)) => ByteStream::from_sniffed(&name, file, CompressionKind::None),
        (_, Err(_)) => return false,
    };
    let mut start = vec![0; LIST_START];
    let mut length = 0;
    let Ok(mut stream) = stream.and_then(ByteStream::convert_utf16) else {
        return false;
    };
    while length < start.len() {
        match stream.read_bytes(&mut start[length..]) {
            Ok(read) if read > 0 => length += read,
            _ => break,
        }
    }
    begins_list(&start[..length])
}

/// The compression of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompressionKind {
    /// Not compressed.
    None,
    /// gzip; any number of members.
    Gzip,
    /// Zstandard; any number of frames.
    Zstd,
    /// xz; any number of streams. Only read.
    Xz,
    /// bzip2; any number of streams. Only read.
    Bzip2,
}

/// Bytes from which a compression is recognised.
pub(super) const LONGEST_MAGIC: usize = 10;

/// Returns the compression by a file's extension.
pub fn compression_by_extension(path: &Path) -> CompressionKind {
    match lower_extension(path).as_deref() {
        Some("gz" | "gzip") => CompressionKind::Gzip,
        Some("zst" | "zstd") => CompressionKind::Zstd,
        Some("xz") => CompressionKind::Xz,
        Some("bz2") => CompressionKind::Bzip2,
        _ => CompressionKind::None,
    }
}

/// Returns the compression by a file's first bytes, at most [`LONGEST_MAGIC`].
pub(super) fn compression_by_content(start: &[u8]) -> CompressionKind {
    match start {
        [0x1F, 0x8B, ..] => CompressionKind::Gzip,
        // A zstd frame, or a skippable frame before one.
        [0x28, 0xB5, 0x2F, 0xFD, ..] | [0x50..=0x5F, 0x2A, 0x4D, 0x18, ..] => CompressionKind::Zstd,
        [0xFD, b'7', b'z', b'X', b'Z', 0, ..] => CompressionKind::Xz,
        // The first block begins with the digits of pi; without one, those of its square root follow. Plain text does
        // not begin so.
        [
            b'B',
            b'Z',
            b'h',
            b'1'..=b'9',
            b'1',
            b'A',
            b'Y',
            b'&',
            b'S',
            b'Y',
        ] => CompressionKind::Bzip2,
        [
            b'B',
            b'Z',
            b'h',
            b'1'..=b'9',
            0x17,
            0x72,
            0x45,
            0x38,
            0x50,
            0x90,
        ] => CompressionKind::Bzip2,
        _ => CompressionKind::None,
    }
}

fn lower_extension(path: &Path) -> Option<String> {
    Some(path.extension()?.to_str()?.to_ascii_lowercase())
}

/// Returns the extensions of supported files, for messages.
fn known_extensions() -> String {
    let mut extensions: Vec<_> = InputFormat::listed_extensions().collect();
    let last = extensions.pop().unwrap_or_default();
    format!(
        "{} and {last}, the text formats also with .gz, .zst, .xz or .bz2 after them",
        extensions.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_joined_by_a_slash() {
        let joined = |directory: &str| join_name(Path::new(directory), OsStr::new("a.txt"));
        for (directory, expected) in [
            ("", "a.txt"),
            ("texts", "texts/a.txt"),
            ("texts/", "texts/a.txt"),
            ("/", "/a.txt"),
            ("texts/b", "texts/b/a.txt"),
        ] {
            assert_eq!(joined(directory).as_os_str(), OsStr::new(expected));
        }
    }
}
