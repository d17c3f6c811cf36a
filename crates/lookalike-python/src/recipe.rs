//! Recipes.

use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock};

use lookalike::forms::FormTable;
use lookalike::text::TextAnalyzer;
use lookalike_batch::recipes::{load_recipe_from_here, read_recipe};
use lookalike_options::forms_choice::FormsChoice;
use lookalike_options::match_options::OptionSpelling;
use pyo3::prelude::*;

use crate::error::{RecipeError, option_error_to_py};

/// Name of a table of forms that was not read from a file.
const FORM_TABLE: &str = "forms.toml";

/// A loaded recipe.
#[pyclass(
    frozen,
    module = "lookalike._engine",
    name = "RecipeBase",
    subclass,
    from_py_object
)]
#[derive(Clone)]
pub(crate) struct Recipe(
    pub(crate) lookalike::Recipe,
    /// Analyzer of the recipe, created on first use because that takes some milliseconds.
    Arc<OnceLock<TextAnalyzer>>,
);

impl Recipe {
    /// Returns the analyzer of the recipe. Every run under the recipe shares its tables, as long as the recipe exists.
    pub(crate) fn recipe_analyzer(&self, py: Python<'_>) -> &TextAnalyzer {
        match self.1.get() {
            Some(analyzer) => analyzer,
            None => py.detach(|| self.1.get_or_init(|| TextAnalyzer::new(&self.0))),
        }
    }
}

#[pymethods]
impl Recipe {
    #[new]
    #[pyo3(signature = (name, changes, toml=false))]
    fn new(name: &str, changes: Vec<String>, toml: bool) -> PyResult<Self> {
        let read = if toml {
            read_recipe
        } else {
            load_recipe_from_here
        };
        let recipe = read(name, &changes, OptionSpelling::Arguments);
        let refused = |error: lookalike_io::Error| RecipeError::new_err(error.to_string());
        recipe
            .map(|recipe| Self(recipe, Arc::default()))
            .map_err(refused)
    }

    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    #[getter]
    fn hash(&self) -> String {
        self.0.recipe_id().to_string()
    }

    #[getter]
    fn toml(&self) -> String {
        self.0.to_toml()
    }

    /// The table of forms as TOML, if there is one.
    #[getter]
    fn form_table(&self) -> Option<String> {
        self.0.form_table().map(|table| table.to_toml())
    }

    /// Returns the recipe without forms.
    fn without_forms(&self) -> Self {
        Self(self.0.clone().without_forms(), Arc::default())
    }

    /// Returns the recipe with a table of forms, as TOML.
    fn with_form_table(&self, table: &str) -> PyResult<Self> {
        let table = FormTable::parse_table(FORM_TABLE, table);
        let recipe = table.and_then(|table| self.0.clone().with_forms(FORM_TABLE, &table));
        let recipe = recipe.map_err(|error| RecipeError::new_err(error.to_string()))?;
        Ok(Self(recipe, Arc::default()))
    }

    /// Returns the recipe with other forms: `off`, or the file of a table.
    fn choose_forms(&self, choice: &str) -> PyResult<Self> {
        let chosen = FormsChoice::from(choice).apply_to(self.0.clone());
        let recipe = chosen.map_err(option_error_to_py)?;
        Ok(Self(recipe, Arc::default()))
    }

    #[getter]
    fn ngram(&self) -> u32 {
        self.0.ngram
    }

    #[getter]
    fn bits(&self) -> u32 {
        self.0.simhash.bits
    }

    #[getter]
    fn slots(&self) -> u32 {
        self.0.minhash.slots
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.0.recipe_id() == other.0.recipe_id()
    }

    fn __hash__(&self) -> u64 {
        let mut state = std::hash::DefaultHasher::new();
        self.0.recipe_id().to_string().hash(&mut state);
        state.finish()
    }
}
