//! The texts of `--base`, which all documents were given: read once, and then left out of all passages.
//!
//! They stay in memory for the whole run, so they are read before its memory is divided.

use lookalike::passages::BaseText;
use lookalike::text::{SpanTokenizer, SpannedTokens};
use lookalike_io::error::{Error, Result};
use lookalike_io::source::{IdField, InputRow, InputSet, ParseScratch, ReadOptions};

use crate::memory::MemoryLimit;
use crate::run::commands::passages::search::length_unit;
use crate::run::commands::passages::settings::PassageRunSettings;
use crate::run::settings::RunInputs;

/// Short base texts that a summary names.
const NAMED_SHORT_TEXTS: usize = 5;

/// Refuses standard input as a document and as a base text.
pub(super) fn check_standard_input(
    inputs: &RunInputs,
    settings: &PassageRunSettings,
) -> Result<()> {
    let is_given = inputs.documents.has_standard_input() || inputs.against.has_standard_input();
    if is_given && settings.base.has_standard_input() {
        return Err(Error::usage_error(
            "standard input cannot be a document and a base text: name a file for one of them",
        ));
    }
    Ok(())
}

/// The base texts of a run, and what its summary says of them.
#[derive(Debug)]
pub(super) struct RunBase {
    pub(super) text: BaseText,
    /// Unit of their lengths: `words`, or `characters` if most of them are characters of a script without spaces.
    pub(super) unit: &'static str,
    /// Number of texts that are shorter than a gram, so that nothing of them is left out.
    pub(super) short_texts: u64,
    /// The names of the first of these.
    pub(super) short_names: Vec<String>,
}

impl RunBase {
    /// Returns the bytes of memory, about.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.text.memory_bytes() as u64
    }

    fn add_text(&mut self, inputs: &InputSet, row: &InputRow<'_>, tokens: &[u64]) {
        self.text.add_text(tokens);
        if !self.text.find_given(tokens).is_empty() {
            return;
        }
        self.short_texts += 1;
        if self.short_names.len() < NAMED_SHORT_TEXTS {
            self.short_names.push(name_row(inputs, row));
        }
    }
}

/// Returns the name of a document file, or the file and the row of a text.
fn name_row(inputs: &InputSet, row: &InputRow<'_>) -> String {
    let (file, number) = inputs.source_row(row.place, row.number);
    if inputs.input_of(row.place).is_document_file() {
        file.to_owned()
    } else {
        format!("{file}:{number}")
    }
}

/// Reads the base texts of a run; `None` without any. `limit` is that of the memory of the run, if it has one.
///
/// # Errors
/// If one cannot be read: a run without it would find what it should leave out. If they take more memory than the limit.
pub(super) fn read_base(
    settings: &PassageRunSettings,
    limit: Option<MemoryLimit>,
) -> Result<Option<RunBase>> {
    if settings.base.is_empty() {
        return Ok(None);
    }
    let tokenizer = SpanTokenizer::new(&settings.reading.recipe);
    let max_tokens = settings.max_tokens();
    let mut options: ReadOptions = settings.reading.read.clone();
    options.again = false;
    options.fields.id = IdField::RowNumber;
    options.fields.extra.clear();
    let inputs = InputSet::open_source(&settings.base, &options)?;
    let mut base = RunBase {
        text: BaseText::new(settings.passages),
        unit: "words",
        short_texts: 0,
        short_names: Vec::new(),
    };
    let (mut parse, mut tokens) = (ParseScratch::default(), SpannedTokens::default());
    let mut characters = 0;
    while let Some(block) = inputs.next_block()? {
        inputs.parse_block(&block, &mut parse, &mut |row| {
            let row = row.map_err(|bad| {
                Error::input_error(format!(
                    "a base text cannot be read, {}:{}: {}",
                    bad.file, bad.line, bad.reason
                ))
            })?;
            tokenizer.tokenize_text_within(row.text, max_tokens, &mut tokens)?;
            base.add_text(&inputs, &row, tokens.values());
            if length_unit(tokens.values()) == "characters" {
                characters += tokens.values().len() as u64;
            }
            check_base_bytes(&base, limit)
        })?;
        inputs.recycle_block(block);
    }
    inputs.refuse_absent_fields()?;
    if base.text.token_count() == 0 {
        return Err(Error::input_error(
            "the base texts have no words, so nothing would be left out: name a file with text, or leave them out"
                .to_owned(),
        ));
    }
    if 2 * characters > base.text.token_count() {
        base.unit = "characters";
    }
    Ok(Some(base))
}

/// Refuses base texts that alone take more memory than a limit that a user has set.
fn check_base_bytes(base: &RunBase, limit: Option<MemoryLimit>) -> Result<()> {
    let bytes = base.memory_bytes();
    match limit {
        Some(limit) if limit.is_set && bytes > limit.bytes => Err(Error::limit_error(format!(
            "the base texts take more than {} MB of memory, the limit: give a higher one, or shorter base texts",
            limit.bytes / 1_000_000
        ))),
        _ => Ok(()),
    }
}
