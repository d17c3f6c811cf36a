//! The forms by which a run compares documents.

use std::path::{Path, PathBuf};

use lookalike::Recipe;
use lookalike::forms::FormTable;

use crate::option_error::{OptionError, OptionErrorKind};

/// The forms by which a run compares documents: `learn`, `off`, or the file of a table.
///
/// ```
/// use lookalike_options::forms_choice::FormsChoice;
///
/// assert_eq!(FormsChoice::from("learn"), FormsChoice::Learn);
/// assert_eq!(FormsChoice::from("shop.toml"), FormsChoice::Table("shop.toml".into()));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FormsChoice {
    /// The run learns them from its own documents.
    Learn,
    /// There are none, not even those of the recipe.
    Off,
    /// Those of a table, in place of those of the recipe.
    Table(PathBuf),
}

impl From<&str> for FormsChoice {
    fn from(text: &str) -> Self {
        match text {
            "learn" => Self::Learn,
            "off" => Self::Off,
            file => Self::Table(file.into()),
        }
    }
}

impl FormsChoice {
    /// Returns the recipe with the chosen forms. If the run learns them, it has none yet.
    ///
    /// # Errors
    /// If the table cannot be read, if it is not valid, or if the recipe can have no forms.
    pub fn apply_to(&self, recipe: Recipe) -> Result<Recipe, OptionError> {
        match self {
            Self::Learn | Self::Off => Ok(recipe.without_forms()),
            Self::Table(file) if is_unknown_word(file) => Err(OptionError::new(
                OptionErrorKind::UnreadableFile,
                format!(
                    "there is no table of forms {}: give learn, off or a file",
                    file.display()
                ),
            )),
            Self::Table(file) => recipe
                .with_forms(&file.display().to_string(), &read_form_table(file)?)
                .map_err(|error| {
                    OptionError::new(OptionErrorKind::Contradiction, error.to_string())
                }),
        }
    }
}

/// Returns `true` if a name looks like a choice, for example `auto`: it has no extension, and no file has it.
fn is_unknown_word(file: &Path) -> bool {
    file.extension().is_none() && !file.exists()
}

/// Reads a table of forms.
///
/// # Errors
/// If the file cannot be read, or is not a valid table.
pub fn read_form_table(file: &Path) -> Result<FormTable, OptionError> {
    let name = file.display().to_string();
    let refused = |message: String| OptionError::new(OptionErrorKind::UnreadableFile, message);
    let text = std::fs::read_to_string(file)
        .map_err(|cause| refused(format!("cannot read the table of forms {name}: {cause}")))?;
    FormTable::parse_table(&name, &text).map_err(|error| refused(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "lookalike_forms = 1\n[[form]]\nname = \"offer\"\nframe = [\"this week the\", \"for only\"]\n";

    #[test]
    fn a_table_replaces_the_forms_of_the_recipe() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("shop.toml");
        std::fs::write(&file, TABLE).unwrap();
        let recipe = Recipe::built_in("default").unwrap();
        let chosen = FormsChoice::Table(file.clone())
            .apply_to(recipe.clone())
            .unwrap();
        assert_eq!(chosen.forms.as_deref(), file.to_str());
        for choice in [FormsChoice::Off, FormsChoice::Learn] {
            let without = choice.apply_to(chosen.clone()).unwrap();
            assert_eq!(without.recipe_id(), recipe.recipe_id());
        }
    }

    #[test]
    fn words_that_are_no_choice_are_refused_with_the_choices() {
        let recipe = Recipe::built_in("default").unwrap();
        let refusal = FormsChoice::from("auto").apply_to(recipe).unwrap_err();
        let expected = "there is no table of forms auto: give learn, off or a file";
        assert_eq!(refusal.to_string(), expected);
    }

    #[test]
    fn tables_that_cannot_be_read_are_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("none.toml");
        let refusal = read_form_table(&file).unwrap_err();
        assert_eq!(refusal.kind(), OptionErrorKind::UnreadableFile);
        assert!(refusal.to_string().contains("none.toml"), "{refusal}");
        std::fs::write(&file, "lookalike_forms = 9").unwrap();
        let refusal = read_form_table(&file).unwrap_err();
        assert!(refusal.to_string().contains("none.toml"), "{refusal}");
    }
}
