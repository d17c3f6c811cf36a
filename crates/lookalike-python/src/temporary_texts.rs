//! Texts of a component that exceeds the memory of a task, in a temporary file.

use std::ops::Range;
use std::path::PathBuf;

use lookalike::Error;
use lookalike::shuffle::{CreateTextSpill, TextSpill};
use lookalike_io::spool::SpoolFile;

/// Texts in a temporary file without a name, which vanishes with the process.
pub(crate) struct TemporaryTexts {
    file: SpoolFile,
    directory: PathBuf,
}

impl TemporaryTexts {
    /// Returns a function that creates files in `directory`, or in the system's one for temporary files.
    pub(crate) fn spill_to(directory: Option<PathBuf>) -> Box<CreateTextSpill> {
        let directory = directory.unwrap_or_else(std::env::temp_dir);
        Box::new(move || {
            let texts = Self::create_in(directory.clone());
            texts.map(|texts| Box::new(texts) as Box<dyn TextSpill>)
        })
    }

    fn create_in(directory: PathBuf) -> lookalike::Result<Self> {
        match SpoolFile::create_file(Some(&directory)) {
            Ok(file) => Ok(Self { file, directory }),
            Err(error) => Err(Error::text_error(format!(
                "the texts of a component exceed the memory of a task and need a temporary file: {error}. Give Spark \
                 another directory by spark.local.dir, or raise component_memory"
            ))),
        }
    }
}

impl TextSpill for TemporaryTexts {
    fn append_text(&mut self, text: &str) -> lookalike::Result<()> {
        let Err(error) = self.file.append_bytes(text.as_bytes()) else {
            return Ok(());
        };
        Err(Error::text_error(format!(
            "the texts of a component exceed the memory of a task and go to a temporary file in {}, but: {error}. \
             Free space there, or raise component_memory",
            self.directory.display()
        )))
    }

    fn read_text(&self, range: Range<u64>) -> lookalike::Result<String> {
        let mut bytes = vec![0; (range.end - range.start) as usize];
        let failed = |error: &dyn std::fmt::Display| {
            Error::text_error(format!(
                "cannot read bytes {range:?} of the texts of a component in a temporary file in {}: {error}. Run again",
                self.directory.display()
            ))
        };
        self.file
            .read_exact_at(&mut bytes, range.start)
            .map_err(|error| failed(&error))?;
        String::from_utf8(bytes).map_err(|error| failed(&error))
    }
}
