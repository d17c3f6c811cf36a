//! Extracted texts of documents as `.txt` files of a directory.

use std::collections::HashSet;
use std::io::Write as _;
use std::path::{Component, Path, PathBuf};

use super::WrittenOutput;
use super::atomic::{AtomicFile, OutputDirectories, SealedFile};
use super::staged_output::StagedOutput;
use crate::error::{Error, Result, display_path};

/// Writes texts below a directory. None has its name until all are committed.
pub struct ExtractedTextWriter {
    directory: PathBuf,
    taken: HashSet<String>,
    sealed: Vec<SealedFile>,
    directories: OutputDirectories,
    written: WrittenOutput,
}

impl ExtractedTextWriter {
    /// Creates a writer below a directory, which is created with its first file.
    pub fn new(directory: &Path) -> Self {
        Self {
            directory: directory.to_path_buf(),
            taken: HashSet::new(),
            sealed: Vec::new(),
            directories: OutputDirectories::default(),
            written: WrittenOutput::default(),
        }
    }

    /// Writes and syncs the text of a document, and returns the path that it will have: the id with `.txt` after it.
    /// If another id has led to this path, `-2`, `-3`, … stands before `.txt`. Paths that differ only in case
    /// count as equal. A file that exists and has this text stays as it is.
    ///
    /// # Errors
    /// If the directory or the file cannot be created or written, or if a file of this path has another text.
    pub fn write_text(&mut self, id: &str, text: &str) -> Result<PathBuf> {
        let name = self.free_name(id);
        let path = self.directory.join(name);
        if path.symlink_metadata().is_ok() {
            return if has_content(&path, text) {
                Ok(path)
            } else {
                Err(Error::output_error(format!(
                    "{} exists already and has another text: name another directory, or remove the file",
                    display_path(&path)
                )))
            };
        }
        if let Some(parent) = path.parent() {
            self.directories.create_with_parents(parent)?;
            if self.written.rows == 0 {
                self.directories.begin_journal(&self.directory)?;
            }
        }
        let file = AtomicFile::create_for(&path)?;
        file.as_file()
            .write_all(text.as_bytes())
            .map_err(|cause| Error::write_error("write", display_path(&path), cause))?;
        self.sealed.push(file.seal_file()?);
        self.written.rows += 1;
        self.written.bytes += text.len() as u64;
        Ok(path)
    }

    fn free_name(&mut self, id: &str) -> String {
        let parts: Vec<_> = Path::new(id)
            .components()
            .filter_map(|part| match part {
                Component::Normal(name) => Some(name.to_string_lossy()),
                _ => None,
            })
            .collect();
        let base = if parts.is_empty() {
            "document".to_owned()
        } else {
            parts.join("/")
        };
        let numbered = (2u64..).map(|number| format!("{base}-{number}.txt"));
        let mut names = std::iter::once(format!("{base}.txt")).chain(numbered);
        names
            .find(|name| self.taken.insert(name.to_lowercase()))
            .expect("the names are endless")
    }

    /// Returns the number of files that were written.
    pub fn text_count(&self) -> u64 {
        self.written.rows
    }

    /// Returns the files, complete and on disk, for [`commit_all`](super::commit_all) with the other outputs.
    pub fn prepare_texts(self) -> StagedOutput {
        StagedOutput {
            written: self.written,
            sealed: self.sealed,
            single: None,
            directories: self.directories,
        }
    }
}

/// Returns `true` if a path is a file with this content.
fn has_content(path: &Path, text: &str) -> bool {
    let is_as_long = |it: std::fs::Metadata| it.is_file() && it.len() == text.len() as u64;
    path.metadata().is_ok_and(is_as_long)
        && std::fs::read(path).is_ok_and(|bytes| bytes == text.as_bytes())
}
