//! The texts of `--base`, which all documents were given: read once, and then left out of all passages.

use lookalike::passages::BaseText;
use lookalike::text::{SpanTokenizer, SpannedTokens};
use lookalike_io::error::{Error, Result};
use lookalike_io::source::{IdField, InputSet, ParseScratch, ReadOptions};

use crate::run::commands::passages::settings::PassageRunSettings;
use crate::run::settings::RunInputs;

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

/// Reads the base texts of a run; `None` without any.
///
/// # Errors
/// If one cannot be read: a run without it would find what it should leave out.
pub(super) fn read_base(
    settings: &PassageRunSettings,
    tokenizer: &SpanTokenizer,
    max_tokens: usize,
) -> Result<Option<BaseText>> {
    if settings.base.is_empty() {
        return Ok(None);
    }
    let mut options: ReadOptions = settings.reading.read.clone();
    options.again = false;
    options.fields.id = IdField::RowNumber;
    options.fields.extra.clear();
    let inputs = InputSet::open_source(&settings.base, &options)?;
    let mut base = BaseText::new(settings.passages);
    let (mut parse, mut tokens) = (ParseScratch::default(), SpannedTokens::default());
    while let Some(block) = inputs.next_block()? {
        inputs.parse_block(&block, &mut parse, &mut |row| {
            let row = row.map_err(|bad| {
                Error::input_error(format!(
                    "a base text cannot be read, {}:{}: {}",
                    bad.file, bad.line, bad.reason
                ))
            })?;
            tokenizer.tokenize_text_within(row.text, max_tokens, &mut tokens)?;
            base.add_text(tokens.values());
            Ok(())
        })?;
        inputs.recycle_block(block);
    }
    inputs.refuse_absent_fields()?;
    if base.token_count() == 0 {
        return Err(Error::input_error(
            "the base texts have no words, so nothing would be left out: name a file with text, or leave them out"
                .to_owned(),
        ));
    }
    Ok(Some(base))
}
