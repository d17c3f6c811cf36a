//! The texts of the components that are resolved together: in memory, or elsewhere if they take too much of it.

use std::ops::Range;

use crate::error::Result;

/// A store outside of the memory for the texts of a component, for example a temporary file.
///
/// [`ComponentResolver::with_text_spill`](super::ComponentResolver::with_text_spill) says when texts go there.
pub trait TextSpill: Send + Sync {
    /// Appends a text, or several at once.
    ///
    /// # Errors
    /// Fails if the text cannot be written.
    fn append_text(&mut self, text: &str) -> Result<()>;

    /// Reads the text at a range of bytes, counted from the first text on.
    ///
    /// # Errors
    /// Fails if the bytes cannot be read, or if they are not those that were appended.
    fn read_text(&self, range: Range<u64>) -> Result<String>;
}

/// Creates an empty [`TextSpill`].
pub type CreateTextSpill = dyn Fn() -> Result<Box<dyn TextSpill>> + Send + Sync;

/// Texts one after another.
#[derive(Default)]
pub(super) struct ComponentTexts {
    /// All texts, or none once they are spilled.
    in_memory: String,
    spill: Option<Box<dyn TextSpill>>,
    /// Bytes of all texts.
    length: u64,
}

impl ComponentTexts {
    /// Appends a text. Returns the range of its bytes.
    pub(super) fn append_text(&mut self, text: &str) -> Result<Range<u64>> {
        match &mut self.spill {
            None => self.in_memory.push_str(text),
            Some(spill) => spill.append_text(text)?,
        }
        let start = self.length;
        self.length += text.len() as u64;
        Ok(start..self.length)
    }

    /// Moves the texts to a spill, where later ones go as well. Does nothing if they are there.
    pub(super) fn move_to_spill(&mut self, create: &CreateTextSpill) -> Result<()> {
        if self.spill.is_none() {
            let mut spill = create()?;
            spill.append_text(&std::mem::take(&mut self.in_memory))?;
            self.spill = Some(spill);
        }
        Ok(())
    }

    /// Returns the number of bytes of all texts.
    pub(super) fn count_bytes(&self) -> u64 {
        self.length
    }

    /// Calls `use_text` with the text at a range.
    pub(super) fn with_text<R>(
        &self,
        range: Range<u64>,
        use_text: impl FnOnce(&str) -> R,
    ) -> Result<R> {
        match &self.spill {
            None => Ok(use_text(
                &self.in_memory[range.start as usize..range.end as usize],
            )),
            Some(spill) => Ok(use_text(&spill.read_text(range)?)),
        }
    }
}
