//! Recipes by name, with what analyses and hashes texts by them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use lookalike::sketch::{MinHasher, SimHasher};
use lookalike::text::{AnalysisScratch, TextAnalysis, TextAnalyzer};
use lookalike::{Cpu, Recipe};

/// Recipe of calls that name none.
pub(crate) const DEFAULT_RECIPE: &str = "default";

/// A built-in recipe, and what analyses and hashes texts by it.
pub(crate) struct RecipeTools {
    name: String,
    pub(crate) recipe: Recipe,
    analyzer: TextAnalyzer,
    pub(crate) simhasher: SimHasher,
    pub(crate) minhasher: MinHasher,
}

/// The tools of all recipes that were used. There are as many at most as built-in recipes.
static KNOWN_TOOLS: Mutex<BTreeMap<String, Arc<RecipeTools>>> = Mutex::new(BTreeMap::new());

thread_local! {
    /// Buffers of the texts that this thread analyses.
    static SCRATCH: RefCell<AnalysisScratch> = RefCell::default();
}

impl RecipeTools {
    /// Returns the tools of a built-in recipe. Their first use in a process reads the dictionary of the recipe, if it has
    /// one.
    ///
    /// # Errors
    /// If there is no built-in recipe of this name.
    pub(crate) fn from_name(name: &str) -> Result<Arc<Self>, String> {
        let mut known = KNOWN_TOOLS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tools) = known.get(name) {
            return Ok(Arc::clone(tools));
        }
        let recipe = find_recipe(name)?;
        let tools = Arc::new(Self {
            name: name.to_owned(),
            analyzer: TextAnalyzer::new(&recipe),
            simhasher: SimHasher::new(&recipe.simhash, Cpu::detect_best()),
            minhasher: MinHasher::new(&recipe.minhash, Cpu::detect_best()),
            recipe,
        });
        known.insert(name.to_owned(), Arc::clone(&tools));
        Ok(tools)
    }

    /// Calls `visit` with the analysis of a text.
    pub(crate) fn analyze_text<T>(
        &self,
        text: &str,
        visit: impl FnOnce(&TextAnalysis<'_>) -> T,
    ) -> T {
        SCRATCH.with_borrow_mut(|scratch| visit(&self.analyzer.analyze_text(text, scratch)))
    }
}

/// Returns a built-in recipe.
///
/// # Errors
/// If there is none of this name. The message names no file, because a query reads no recipe from one.
fn find_recipe(name: &str) -> Result<Recipe, String> {
    Recipe::built_in(name).map_err(|error| {
        let reason = error.to_string();
        if ["learn", "off"].contains(&name) {
            return format!(
                "there is no recipe '{name}': give NULL for the recipe before '{name}'"
            );
        }
        let without_file = reason.strip_suffix(", or a TOML file");
        without_file.unwrap_or(&reason).to_owned()
    })
}

/// The tools of the rows of a call, which nearly always name the same recipe.
#[derive(Default)]
pub(crate) struct RowRecipes {
    last: Option<Arc<RecipeTools>>,
}

impl RowRecipes {
    /// Returns the tools of the recipe that a row names, or of the default one.
    ///
    /// # Errors
    /// As [`RecipeTools::from_name`].
    pub(crate) fn tools_for(&mut self, name: Option<&str>) -> Result<&RecipeTools, String> {
        let name = name.unwrap_or(DEFAULT_RECIPE);
        let tools = match self.last.take() {
            Some(tools) if tools.name == name => tools,
            _ => RecipeTools::from_name(name)?,
        };
        Ok(self.last.insert(tools))
    }
}
