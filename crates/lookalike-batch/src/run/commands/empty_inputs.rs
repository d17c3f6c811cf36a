//! Inputs without any row, which must not replace the outputs of an earlier run.

use lookalike_io::error::{Error, Result, display_path};
use lookalike_io::sink::{OutputTarget, find_replaced};
use lookalike_io::source::InputSet;
use lookalike_options::match_options::OptionSpelling;

/// Refuses inputs that have no row if an output has content, because an upstream step that has failed often leaves an
/// empty file. Call it after all rows have been read and before outputs are put in place.
///
/// # Errors
/// If one of `outputs` would be replaced; the message names it.
pub(super) fn refuse_empty_inputs<'a>(
    inputs: &InputSet,
    outputs: impl IntoIterator<Item = &'a OutputTarget>,
    spelling: OptionSpelling,
) -> Result<()> {
    for output in outputs {
        if let Some(replaced) = find_replaced(inputs, output)? {
            return Err(Error::input_error(format!(
                "{}, and {} would be replaced by an output of no rows, so every output stays as it was: check the \
                 inputs, or give {}",
                describe_inputs(inputs),
                display_path(&replaced),
                spelling.spell_option("allow-empty")
            )));
        }
    }
    Ok(())
}

/// Returns the sentence that the inputs have no row, which names a single one.
fn describe_inputs(inputs: &InputSet) -> String {
    match inputs.input_files() {
        [file] => format!("{} has no row", file.display_name()),
        files => format!("none of the {} inputs has a row", files.len()),
    }
}
