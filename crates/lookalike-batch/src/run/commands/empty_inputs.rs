//! Inputs without any row, which must not replace the outputs of an earlier run.

use lookalike_io::error::{Error, Result, display_path};
use lookalike_io::sink::{OutputTarget, find_emptied};
use lookalike_io::source::InputSet;
use lookalike_options::match_options::OptionSpelling;

/// Refuses inputs that have no row if an output with content would be replaced, because an upstream step that has failed
/// often leaves an empty file. Below a directory, each output is that of one input. Call it after all rows have been read
/// and before outputs are put in place.
///
/// # Errors
/// If one of `outputs` would be replaced; the message names it.
pub(super) fn refuse_empty_inputs<'a>(
    inputs: &InputSet,
    outputs: impl IntoIterator<Item = &'a OutputTarget>,
    spelling: OptionSpelling,
) -> Result<()> {
    for output in outputs {
        if let Some(emptied) = find_emptied(inputs, output)? {
            let without_rows = match emptied.input {
                Some(input) => format!("{input} has no row"),
                None => format!(
                    "none of the {} inputs has a row",
                    inputs.input_files().len()
                ),
            };
            return Err(Error::input_error(format!(
                "{without_rows}, and {} would be replaced by an output of no rows, so every output stays as it was: check \
                 the inputs, or give {}",
                display_path(&emptied.path),
                spelling.spell_option("allow-empty")
            )));
        }
    }
    Ok(())
}
