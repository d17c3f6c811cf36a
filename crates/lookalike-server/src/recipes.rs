//! The recipes that clients have uploaded, each with the files that it names.
//!
//! They are in the directory `.recipes` beside the collections, which no collection can be named. Until it is
//! used, a recipe can be replaced and deleted. While a collection uses it, its name means the same content. A
//! collection has its own copy of the files, so it is opened and restored without this directory.
//!
//! Cost: recipes are parsed one at a time, and the ones that were used last stay in memory, up to
//! [`CACHE_SHARE`] of the queue in bytes of their files.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use lookalike::Recipe;
use lookalike_store::{DiskFolder, RecipeArchive, StoredRecipe};

use crate::api::problem::{ApiProblem, ProblemCode};
use crate::collections::{ServedCollections, check_name};
use crate::error::{Result, with_context};

/// Name of the directory below that of the collections.
pub(crate) const RECIPES_DIRECTORY: &str = ".recipes";

/// Largest number of recipes.
const MAX_RECIPES: usize = 1000;

/// Fraction of the queue: the files of all recipes in memory have at most this part of its bytes.
const CACHE_SHARE: usize = 8;

/// All uploaded recipes of a service.
pub(crate) struct ServedRecipes {
    archive: RecipeArchive,
    /// Locked in reading while a recipe is put to use, and in writing while one is replaced or deleted.
    changing: RwLock<()>,
    /// Locked while a recipe is parsed, so that at most one takes the memory for this.
    loading: Mutex<()>,
    cache: Mutex<RecipeCache>,
    /// Number of changes since the start; it grows once the files of a change are complete.
    changes: AtomicU64,
}

/// Result of an upload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UploadOutcome {
    /// There was no recipe of this name.
    Created,
    /// There was another recipe of this name, which nothing used.
    Replaced,
    /// There was the same recipe.
    Unchanged,
}

impl ServedRecipes {
    /// Opens the recipes below the directory of the collections. A damaged one is logged and does not keep the
    /// others from being used.
    ///
    /// # Errors
    /// If the directory cannot be used.
    pub(crate) fn open(data: &Path, headroom: u64, queue: usize) -> Result<Self> {
        let path = data.join(RECIPES_DIRECTORY);
        let at = format!("the directory of the recipes, {}", path.display());
        let disk = DiskFolder::open(&path).map_err(with_context(&at))?;
        let archive = RecipeArchive::open(Arc::new(disk), headroom).map_err(with_context(&at))?;
        for (recipe, found) in archive.list_recipes() {
            if let Err(error) = found {
                tracing::error!(recipe, %error, "cannot be used: upload it again");
            }
        }
        Ok(Self {
            archive,
            changing: RwLock::default(),
            loading: Mutex::default(),
            cache: Mutex::new(RecipeCache::new(queue / CACHE_SHARE)),
            changes: AtomicU64::new(0),
        })
    }

    /// Reads the recipes again, after files were put into their directory.
    ///
    /// # Errors
    /// If the directory cannot be used.
    pub(crate) fn reload_recipes(&self) -> Result<(), ApiProblem> {
        let _changing = self.begin_change();
        self.archive.reload_recipes()?;
        self.changes.fetch_add(1, Ordering::Release);
        Ok(())
    }

    /// Returns the number of uploads and deletions since the start, so that a reader of the files notices a change.
    pub(crate) fn change_count(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// Keeps all recipes as they are, until the returned guard is dropped.
    pub(crate) fn keep_unchanged(&self) -> RwLockReadGuard<'_, ()> {
        self.changing.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin_change(&self) -> RwLockWriteGuard<'_, ()> {
        self.changing
            .write()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the descriptions of all recipes; a damaged one has an error in its place.
    pub(crate) fn list_recipes(&self) -> BTreeMap<String, lookalike_store::Result<StoredRecipe>> {
        self.archive.list_recipes()
    }

    /// Returns the description of a recipe.
    ///
    /// # Errors
    /// If there is none of this name, or it is damaged.
    pub(crate) fn describe_recipe(&self, name: &str) -> Result<StoredRecipe, ApiProblem> {
        match self.archive.find_recipe(name) {
            Some(found) => found.map_err(|error| damaged_recipe(name, error)),
            None => {
                check_recipe_name(name)?;
                Err(no_recipe(name))
            }
        }
    }

    /// Returns a recipe with its files, if one has been uploaded under this name.
    ///
    /// # Errors
    /// If it is damaged or cannot be read.
    pub(crate) fn load_recipe(&self, name: &str) -> Result<Option<Recipe>, ApiProblem> {
        let Some(found) = self.archive.find_recipe(name) else {
            return Ok(None);
        };
        let about = found.map_err(|error| damaged_recipe(name, error))?;
        if let Some(recipe) = self.lock_cache().find_recipe(name, &about.recipe_id) {
            return Ok(Some(recipe));
        }
        let _loading = self.loading.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(recipe) = self.lock_cache().find_recipe(name, &about.recipe_id) {
            return Ok(Some(recipe));
        }
        let loaded = self.archive.load_recipe(name);
        let loaded = loaded.map_err(|error| damaged_recipe(name, error))?;
        if let Some(recipe) = &loaded {
            self.lock_cache().add_recipe(name, recipe);
        }
        Ok(loaded)
    }

    /// Parses an uploaded recipe with `read`, and stores it.
    ///
    /// # Errors
    /// If `read` fails, the name is in use with other content, there are too many recipes, or the disk fails or
    /// is nearly full.
    pub(crate) fn put_recipe(
        &self,
        name: &str,
        collections: &ServedCollections,
        read: impl FnOnce() -> Result<Recipe, ApiProblem>,
    ) -> Result<UploadOutcome, ApiProblem> {
        let recipe = {
            let _loading = self.loading.lock().unwrap_or_else(PoisonError::into_inner);
            read()?
        };
        let _changing = self.begin_change();
        let outcome = self.check_upload(name, &recipe, collections)?;
        if outcome != UploadOutcome::Unchanged {
            let stored = self.archive.put_recipe(name, &recipe);
            self.changes.fetch_add(1, Ordering::Release);
            stored?;
            tracing::info!(recipe = name, recipe_id = %recipe.recipe_id(), "stored");
        }
        Ok(outcome)
    }

    /// Decides what an upload does to the recipe that has its name.
    fn check_upload(
        &self,
        name: &str,
        recipe: &Recipe,
        collections: &ServedCollections,
    ) -> Result<UploadOutcome, ApiProblem> {
        let recipe_id = recipe.recipe_id().to_string();
        let known = match self.archive.find_recipe(name) {
            None => {
                self.check_count()?;
                None
            }
            Some(Ok(known)) if known.recipe_id == recipe_id => return Ok(UploadOutcome::Unchanged),
            Some(known) => Some(known),
        };
        let users = collections.users_of_recipe(name)?;
        if let Some((user, used_id)) = users.iter().find(|(_, used_id)| *used_id != recipe_id) {
            let detail = format!(
                "the recipe '{name}' would have the id {recipe_id}, but the collection '{user}' uses \
                 '{name}' with the id {used_id}: use another name, or delete the collection first"
            );
            return Err(ApiProblem::new(ProblemCode::RecipeConflict, detail));
        }
        Ok(match known {
            None => UploadOutcome::Created,
            Some(_) => UploadOutcome::Replaced,
        })
    }

    fn check_count(&self) -> Result<(), ApiProblem> {
        let count = self.archive.list_recipes().len();
        if count < MAX_RECIPES {
            return Ok(());
        }
        let detail = format!(
            "the service has {count} recipes, which is the limit: delete one that is not used"
        );
        Err(ApiProblem::new(ProblemCode::RecipeConflict, detail))
    }

    /// Deletes a recipe that no collection uses.
    ///
    /// # Errors
    /// If there is none of this name, a collection uses it, or the disk fails.
    pub(crate) fn delete_recipe(
        &self,
        name: &str,
        collections: &ServedCollections,
    ) -> Result<(), ApiProblem> {
        let _changing = self.begin_change();
        if self.archive.find_recipe(name).is_none() {
            check_recipe_name(name)?;
            return Err(no_recipe(name));
        }
        let users = collections.users_of_recipe(name)?;
        if !users.is_empty() {
            let names: Vec<_> = users.into_iter().map(|(user, _)| user).collect();
            let detail = format!(
                "the recipe '{name}' is used by the collections {}: delete them first",
                names.join(", ")
            );
            return Err(ApiProblem::new(ProblemCode::RecipeConflict, detail));
        }
        let removed = self.archive.remove_recipe(name);
        self.changes.fetch_add(1, Ordering::Release);
        removed?;
        self.lock_cache().remove_recipe(name);
        tracing::info!(recipe = name, "deleted");
        Ok(())
    }

    fn lock_cache(&self) -> MutexGuard<'_, RecipeCache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Checks the name of a recipe: as that of a collection, and not that of a built-in recipe.
pub(crate) fn check_recipe_name(name: &str) -> Result<(), ApiProblem> {
    check_name(name)?;
    if Recipe::built_in(name).is_err() {
        return Ok(());
    }
    let detail = format!("'{name}' is the name of a built-in recipe: use another name");
    Err(ApiProblem::new(ProblemCode::BadName, detail))
}

fn no_recipe(name: &str) -> ApiProblem {
    let detail = format!("there is no uploaded recipe '{name}': GET /v1/recipes lists them");
    ApiProblem::new(ProblemCode::NoRecipe, detail)
}

fn damaged_recipe(name: &str, error: lookalike_store::Error) -> ApiProblem {
    let problem = ApiProblem::from(error);
    let detail = format!(
        "the recipe '{name}' cannot be used: {}; upload it again",
        problem.detail
    );
    ApiProblem::new(problem.code, detail)
}

/// The recipes that were used last.
#[derive(Default)]
struct RecipeCache {
    /// Largest size, in bytes, of the files of all recipes here.
    most: usize,
    /// Names, identities, recipes and the bytes of their files; the one that was used last comes last.
    recipes: Vec<(String, String, Recipe, usize)>,
}

impl RecipeCache {
    fn new(most: usize) -> Self {
        Self {
            most,
            recipes: Vec::new(),
        }
    }

    fn find_recipe(&mut self, name: &str, recipe_id: &str) -> Option<Recipe> {
        let is_it = |(known, id, ..): &(String, String, _, _)| known == name && id == recipe_id;
        let at = self.recipes.iter().position(is_it)?;
        self.recipes[at..].rotate_left(1);
        self.recipes.last().map(|(_, _, recipe, _)| recipe.clone())
    }

    /// Adds a recipe and removes others until there is room. One that is too large for the cache is not kept.
    fn add_recipe(&mut self, name: &str, recipe: &Recipe) {
        self.remove_recipe(name);
        let contents = recipe.files.iter_contents();
        let bytes = contents.map(|(_, content)| content.len()).sum();
        if bytes > self.most {
            return;
        }
        let recipe_id = recipe.recipe_id().to_string();
        self.recipes
            .push((name.to_owned(), recipe_id, recipe.clone(), bytes));
        while self.recipes.iter().map(|(.., bytes)| bytes).sum::<usize>() > self.most
            || self.recipes.len() > MAX_RECIPES
        {
            self.recipes.remove(0);
        }
    }

    fn remove_recipe(&mut self, name: &str) {
        self.recipes.retain(|(known, ..)| known != name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recipe_with(bytes: usize) -> Recipe {
        let toml = Recipe::built_in("words-1").unwrap().to_toml();
        let toml = format!("{toml}\n[filter]\nstopwords = \"mine.txt\"\n");
        Recipe::read_with_files(&toml, &|_| Some(vec![b'a'; bytes].into())).unwrap()
    }

    #[test]
    fn cache_keeps_the_recipes_used_last_within_its_bytes() {
        let mut cache = RecipeCache::new(100);
        let (a, b, large) = (recipe_with(40), recipe_with(50), recipe_with(101));
        let id = |recipe: &Recipe| recipe.recipe_id().to_string();
        cache.add_recipe("a", &a);
        cache.add_recipe("b", &b);
        cache.add_recipe("large", &large);
        assert!(cache.find_recipe("large", &id(&large)).is_none());
        assert_eq!(cache.find_recipe("a", &id(&a)), Some(a.clone()));
        assert!(cache.find_recipe("a", &id(&b)).is_none());
        cache.add_recipe("c", &recipe_with(60));
        assert!(cache.find_recipe("a", &id(&a)).is_some());
        assert!(cache.find_recipe("b", &id(&b)).is_none());
        cache.remove_recipe("a");
        assert!(cache.find_recipe("a", &id(&a)).is_none());
    }

    /// A reader of the files notices each upload and deletion, and nothing else.
    #[test]
    fn changes_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        let options = lookalike_store::CollectionOptions::default();
        let collections = ServedCollections::new(folder.path(), options).unwrap();
        let recipes = ServedRecipes::open(folder.path(), 0, 1 << 20).unwrap();
        let put = |bytes: usize| {
            let mut recipe = recipe_with(bytes);
            "mine".clone_into(&mut recipe.name);
            let outcome = recipes.put_recipe("mine", &collections, || Ok(recipe));
            (outcome.unwrap(), recipes.change_count())
        };
        assert_eq!(put(1), (UploadOutcome::Created, 1));
        assert_eq!(put(1), (UploadOutcome::Unchanged, 1));
        assert_eq!(put(2), (UploadOutcome::Replaced, 2));
        recipes.delete_recipe("mine", &collections).unwrap();
        assert!(recipes.delete_recipe("mine", &collections).is_err());
        assert_eq!(recipes.change_count(), 3);
    }

    #[test]
    fn names_of_built_in_recipes_are_refused() {
        for name in Recipe::NAMES {
            assert!(check_recipe_name(name).is_err(), "{name}");
        }
        assert!(check_recipe_name("mine").is_ok());
        assert!(check_recipe_name("../mine").is_err());
    }
}
