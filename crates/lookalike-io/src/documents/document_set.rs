//! The document files of directories, globs and paths, read on many threads and handed on in order.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::{DocumentKind, ExtractOptions, ExtractedText, extract_text};
use crate::error::{Error, Result, display_path};
use crate::ordered_results::work_in_order;
use crate::source::{
    BadRow, ByteStream, ReadOptions, RowPlace, compression_by_extension, find_inputs, is_stdin,
};

/// Bytes read at a time.
const READ_BYTES: usize = 64 << 10;

/// Files that are one document each.
pub struct DocumentSet {
    files: Vec<DocumentFile>,
    options: ExtractOptions,
}

struct DocumentFile {
    path: PathBuf,
    id: String,
    /// `true` if the path was given and not found in a directory. It is then text if its extension says
    /// nothing.
    is_named: bool,
}

/// A document with its text.
#[derive(Debug, Clone)]
pub struct ReadDocument {
    /// The path below the given directory, with `/` between its parts; otherwise the path as given.
    pub id: String,
    /// The path for messages.
    pub file: String,
    /// The number over all files, from 1, bad ones included.
    pub number: u64,
    /// The kind of the file.
    pub kind: DocumentKind,
    /// The text.
    pub extracted: ExtractedText,
}

/// A document, or a file that cannot be read with its reason.
pub type DocumentResult = std::result::Result<ReadDocument, BadRow>;

impl DocumentSet {
    /// Finds the files in reading order: arguments as given, and the files of a directory or a glob sorted by path.
    /// Nothing is opened. Hidden files (`.` or `_` first) of directories are left out, `-` is standard input.
    ///
    /// # Errors
    /// If a path does not exist, a directory cannot be listed or is empty, or a pattern matches nothing.
    pub fn find_documents(paths: &[PathBuf], options: ExtractOptions) -> Result<Self> {
        let listing = ReadOptions {
            document_per_file: true,
            ..ReadOptions::default()
        };
        let mut files = Vec::new();
        for path in paths {
            let in_directory = path.is_dir();
            let found = find_inputs(std::slice::from_ref(path), &listing)?;
            files.extend(found.found.into_iter().map(|found| DocumentFile {
                id: join_parts(if in_directory {
                    &found.below
                } else {
                    &found.path
                }),
                path: found.path,
                is_named: !in_directory,
            }));
        }
        if files.iter().filter(|file| is_stdin(&file.path)).count() > 1 {
            return Err(Error::usage_error(
                "standard input (`-`) is given more than once",
            ));
        }
        Ok(Self { files, options })
    }

    /// Returns the number of files.
    pub fn file_count(&self) -> usize {
        self.files.len()
    }

    /// Reads every file on `threads` threads, and calls `visit` with the results in order. At most one text per
    /// thread waits for its turn.
    ///
    /// # Errors
    /// Those of `visit`; they end the reading.
    pub fn visit_documents(
        &self,
        threads: usize,
        mut visit: impl FnMut(DocumentResult) -> Result<()> + Send,
    ) -> Result<()> {
        work_in_order(
            self.files.len(),
            threads,
            || (),
            |index, ()| Ok(self.read_document(index)),
            |document, ()| visit(document),
        )
    }

    /// Reads the file at `index`, from 0.
    ///
    /// # Errors
    /// The file with the reason why it has no text.
    pub fn read_document(&self, index: usize) -> DocumentResult {
        let file = &self.files[index];
        let number = index as u64 + 1;
        let name = display_path(&file.path);
        match self.read_file(file) {
            Ok((kind, extracted)) => Ok(ReadDocument {
                id: file.id.clone(),
                file: name,
                number,
                kind,
                extracted,
            }),
            Err(reason) => Err(BadRow {
                file: name,
                line: 1,
                number,
                reason,
                place: RowPlace::new(0, 0),
            }),
        }
    }

    fn read_file(
        &self,
        file: &DocumentFile,
    ) -> std::result::Result<(DocumentKind, ExtractedText), String> {
        let by_extension = DocumentKind::from_path(&file.path);
        let kind = match by_extension {
            Err(_) if file.is_named && has_no_extension(&file.path) => DocumentKind::PlainText,
            by_extension => by_extension?,
        };
        let most = self.options.max_bytes as usize;
        let bytes = read_whole(&file.path, most).map_err(|error| error.to_string())?;
        Ok((kind, extract_text(kind, &bytes, &self.options)?))
    }
}

fn has_no_extension(path: &Path) -> bool {
    path.extension().is_none()
}

fn join_parts(path: &Path) -> String {
    let separator = std::path::MAIN_SEPARATOR_STR;
    path.to_string_lossy().replace(separator, "/")
}

/// Reads a file, decompressed, if it has at most `most` bytes.
fn read_whole(path: &Path, most: usize) -> Result<Vec<u8>> {
    let name = display_path(path);
    let mut bytes = Vec::new();
    if is_stdin(path) {
        let mut limited = io::stdin().lock().take(most as u64 + 1);
        limited
            .read_to_end(&mut bytes)
            .map_err(|cause| Error::read_error("read", &name, cause))?;
    } else {
        let opened = File::open(path).map_err(|cause| Error::read_error("open", &name, cause))?;
        let size = opened.metadata().map_or(0, |it| it.len());
        bytes.reserve(usize::try_from(size).unwrap_or(most).min(most) + 1);
        let stream = ByteStream::from_sniffed(&name, opened, compression_by_extension(path))?;
        read_until_limit(stream, most, &mut bytes)?;
    }
    if bytes.len() <= most {
        return Ok(bytes);
    }
    Err(Error::limit_error(format!(
        "the file has more than {most} bytes, the limit of a document"
    )))
}

/// Appends the bytes of a stream, and stops after the limit is passed.
fn read_until_limit(mut stream: ByteStream, most: usize, bytes: &mut Vec<u8>) -> Result<()> {
    let mut room = vec![0; READ_BYTES];
    while bytes.len() <= most {
        match stream.read_bytes(&mut room)? {
            0 => break,
            length => bytes.extend_from_slice(&room[..length]),
        }
    }
    Ok(())
}
