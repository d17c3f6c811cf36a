//! Recipes with the files that they name, each in one file.
//!
//! A dictionary, a list of stopwords or a table of weights belongs to a recipe, so the recipe and its files are
//! stored together. A collection whose recipe names files has such a file beside its manifest and depends on
//! nothing outside of its directory. A [`RecipeArchive`] is a directory of them, by name.
//!
//! ```text
//! lookalike-recipe 1 XXXXXXXX    CRC-32 of everything after this line
//! {"recipe_id": …, "recipe": …, "files": [{"name": …, "bytes": …, "digest": …}, …]}
//! the contents of the files, one after another, in this order
//! ```
//!
//! Guarantee: a file gets its name once it is complete and synced, so after an interruption either the old or
//! the new recipe is there. Names of files that a recipe contains are never used as paths.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{fs, io};

use lookalike::Recipe;
use serde::{Deserialize, Serialize};

use crate::disk::{Disk, check_free_bytes};
use crate::error::{Error, Result};
use crate::files::file_names::{INCOMPLETE, RECIPE_FILE};
use crate::files::inventory::list_files;
use crate::files::whole_file::{read_file, replace_file};

/// Extension of the files of an archive.
const RECIPE_EXTENSION: &str = ".recipe";

const RECIPE_FILE_MAGIC: &str = "lookalike-recipe";

const RECIPE_FILE_VERSION: u32 = 1;

/// Description of a stored recipe: everything except the contents of its files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredRecipe {
    /// Identity, in hexadecimal.
    pub recipe_id: String,
    /// The recipe as TOML.
    pub recipe: String,
    /// The files that the recipe names, ordered by name.
    pub files: Vec<StoredRecipeFile>,
}

/// Description of a file that a recipe names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredRecipeFile {
    /// Name in the recipe.
    pub name: String,
    /// Size in bytes.
    pub bytes: u64,
    /// Digest of the content, as the table `files` of the recipe has it.
    pub digest: String,
}

impl StoredRecipe {
    /// Describes a recipe that has the contents of its files.
    pub fn from_recipe(recipe: &Recipe) -> Self {
        let contents = recipe.files.iter_contents();
        let files = contents.zip(recipe.files.iter_digests());
        let files = files.map(|((name, content), (_, digest))| StoredRecipeFile {
            name: name.to_owned(),
            bytes: content.len() as u64,
            digest: digest.to_owned(),
        });
        Self {
            recipe_id: recipe.recipe_id().to_string(),
            recipe: recipe.to_toml(),
            files: files.collect(),
        }
    }

    /// Returns the size, in bytes, of all files of the recipe.
    pub fn file_bytes(&self) -> u64 {
        let sizes = self.files.iter().map(|file| file.bytes);
        // A damaged description can have any sizes.
        sizes.fold(0, u64::saturating_add)
    }
}

/// Returns the size, in bytes, of the files that a recipe names.
pub(crate) fn recipe_bytes(recipe: &Recipe) -> u64 {
    let contents = recipe.files.iter_contents();
    contents.map(|(_, content)| content.len() as u64).sum()
}

/// Writes a recipe with its files, durably, in place of an existing file of this name.
pub(crate) fn write_recipe(disk: &dyn Disk, name: &str, recipe: &Recipe) -> Result<()> {
    let stored = StoredRecipe::from_recipe(recipe);
    let mut head = serde_json::to_vec(&stored).expect("a recipe has only strings and numbers");
    head.push(b'\n');
    let pieces =
        || std::iter::once(&*head).chain(recipe.files.iter_contents().map(|(_, content)| content));
    let mut checksum = crc32fast::Hasher::new();
    pieces().for_each(|piece| checksum.update(piece));
    let first = format!("{}\n", first_line(checksum.finalize()));
    let content = std::iter::once(first.as_bytes()).chain(pieces());
    replace_file(disk, name, content)
        .map_err(|error| Error::disk_error("cannot write", name, &error))
}

fn first_line(checksum: u32) -> String {
    format!("{RECIPE_FILE_MAGIC} {RECIPE_FILE_VERSION} {checksum:08x}")
}

/// The bytes of a recipe file whose checksum is right.
struct RecipeFile {
    bytes: Vec<u8>,
    description: StoredRecipe,
    /// Offset of the content of the first file.
    contents_at: usize,
}

impl RecipeFile {
    fn read_file(disk: &dyn Disk, name: &str) -> Result<Self> {
        let bytes = read_file(disk, name).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => Error::damaged_file(name, "it is missing"),
            _ => Error::disk_error("cannot read", name, &error),
        })?;
        let damaged = |what: &str| Error::damaged_file(name, what);
        let first_end = find_line_end(&bytes, 0).ok_or_else(|| damaged("it has no first line"))?;
        let expected = first_line(crc32fast::hash(&bytes[first_end + 1..]));
        if bytes[..first_end] != *expected.as_bytes() {
            return Err(damaged(
                "its first line does not have the version and the checksum of its content",
            ));
        }
        let second_end = find_line_end(&bytes, first_end + 1);
        let second_end = second_end.ok_or_else(|| damaged("it has no second line"))?;
        let description: StoredRecipe = serde_json::from_slice(&bytes[first_end + 1..second_end])
            .map_err(|error| Error::damaged_file(name, error))?;
        let contents_at = second_end + 1;
        if description.file_bytes() != (bytes.len() - contents_at) as u64 {
            return Err(damaged("the sizes of its files do not add up to its own"));
        }
        Ok(Self {
            bytes,
            description,
            contents_at,
        })
    }

    /// Returns the content of the file with a name.
    fn find_content(&self, name: &str) -> Option<Arc<[u8]>> {
        let mut at = self.contents_at;
        for file in &self.description.files {
            let end = at + file.bytes as usize;
            if file.name == name {
                return Some(self.bytes[at..end].into());
            }
            at = end;
        }
        None
    }
}

fn find_line_end(bytes: &[u8], from: usize) -> Option<usize> {
    let found = bytes[from..].iter().position(|&byte| byte == b'\n');
    found.map(|at| from + at)
}

/// Reads the recipe of a collection. `toml` is the recipe in its manifest, by whose digests the files are
/// checked.
pub(crate) fn read_collection_recipe(disk: &dyn Disk, toml: &str) -> Result<Recipe> {
    // The file is read only if the recipe asks for one.
    let file = OnceCell::new();
    let find = |name: &str| {
        let file = file.get_or_init(|| RecipeFile::read_file(disk, RECIPE_FILE));
        file.as_ref().ok()?.find_content(name)
    };
    let read = Recipe::read_with_files(toml, &find);
    match file.into_inner() {
        None => Ok(read?),
        Some(Ok(_)) => read.map_err(|error| Error::damaged_file(RECIPE_FILE, error)),
        Some(Err(error)) => Err(error),
    }
}

/// Reads the recipe of a file, with the contents of the files that it names.
pub(crate) fn read_recipe_file(disk: &dyn Disk, file: &str) -> Result<Recipe> {
    let read = RecipeFile::read_file(disk, file)?;
    let find = |name: &str| read.find_content(name);
    let recipe = Recipe::read_with_files(&read.description.recipe, &find);
    recipe.map_err(|error| Error::damaged_file(file, error))
}

/// A directory of recipes by name.
///
/// Names are those of files, so the caller checks them. The archive keeps the descriptions of all recipes in
/// memory, and none of the contents.
///
/// ```
/// use std::sync::Arc;
///
/// use lookalike::Recipe;
/// use lookalike_store::{DiskFolder, RecipeArchive};
///
/// # let folder = tempfile::tempdir()?;
/// let disk = Arc::new(DiskFolder::open(folder.path())?);
/// let archive = RecipeArchive::open(disk.clone(), 0)?;
/// archive.put_recipe("mine", &Recipe::built_in("words-3")?)?;
/// drop(archive);
///
/// let archive = RecipeArchive::open(disk, 0)?;
/// assert_eq!(archive.load_recipe("mine")?, Some(Recipe::built_in("words-3")?));
/// assert!(archive.remove_recipe("mine")? && archive.list_recipes().is_empty());
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct RecipeArchive {
    disk: Arc<dyn Disk>,
    headroom: u64,
    /// Descriptions of all recipes, or why one cannot be read.
    records: Mutex<BTreeMap<String, Result<StoredRecipe>>>,
}

impl RecipeArchive {
    /// Opens an archive and checks the checksum of every recipe. A damaged recipe does not keep the others from
    /// being used. Removes what an interrupted write has left. A write leaves `headroom` bytes of the disk free.
    ///
    /// # Errors
    /// If the directory cannot be listed, or a left file cannot be removed.
    pub fn open(disk: Arc<dyn Disk>, headroom: u64) -> Result<Self> {
        let records = read_descriptions(&*disk)?;
        Ok(Self {
            disk,
            headroom,
            records: Mutex::new(records),
        })
    }

    /// Reads the descriptions of all recipes again, after files were put into the directory beside this archive.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn reload_recipes(&self) -> Result<()> {
        let records = read_descriptions(&*self.disk)?;
        *self.lock_records() = records;
        Ok(())
    }

    /// Returns `true` if a directory that is not open has recipes. One that does not exist has none.
    ///
    /// # Errors
    /// If the directory cannot be read.
    pub fn has_recipes(directory: &Path) -> io::Result<bool> {
        let entries = match fs::read_dir(directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            entries => entries?,
        };
        for entry in entries {
            let name = entry?.file_name().into_string();
            if name.is_ok_and(|name| name.ends_with(RECIPE_EXTENSION)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the descriptions of all recipes by name. A recipe that cannot be read has an error in its place.
    pub fn list_recipes(&self) -> BTreeMap<String, Result<StoredRecipe>> {
        self.lock_records().clone()
    }

    /// Returns the description of a recipe, if there is one of this name, or why it cannot be read.
    pub fn find_recipe(&self, name: &str) -> Option<Result<StoredRecipe>> {
        self.lock_records().get(name).cloned()
    }

    /// Reads a recipe with the contents of its files, if there is one of this name.
    ///
    /// # Errors
    /// If the file is damaged or cannot be read.
    pub fn load_recipe(&self, name: &str) -> Result<Option<Recipe>> {
        if self.find_recipe(name).transpose()?.is_none() {
            return Ok(None);
        }
        read_recipe_file(&*self.disk, &format!("{name}{RECIPE_EXTENSION}")).map(Some)
    }

    /// Stores a recipe with its files, in place of one of the same name. When this returns, it is on disk. If it
    /// fails or is interrupted, either the old or the new recipe is there.
    ///
    /// # Errors
    /// If the recipe does not have the contents of its files, the disk is nearly full, or a disk operation
    /// fails.
    pub fn put_recipe(&self, name: &str, recipe: &Recipe) -> Result<()> {
        check_loaded(recipe)?;
        check_free_bytes(
            &*self.disk,
            self.headroom.saturating_add(recipe_bytes(recipe)),
        )?;
        let written = write_recipe(&*self.disk, &format!("{name}{RECIPE_EXTENSION}"), recipe);
        self.update_record(name);
        written
    }

    /// Removes a recipe; returns `true` if there was one.
    ///
    /// # Errors
    /// If a disk operation fails.
    pub fn remove_recipe(&self, name: &str) -> Result<bool> {
        if self.find_recipe(name).is_none() {
            return Ok(false);
        }
        let file = format!("{name}{RECIPE_EXTENSION}");
        let removed = self.disk.remove_file(&file);
        let removed = removed.and_then(|()| self.disk.sync_names());
        self.update_record(name);
        removed.map_err(|error| Error::disk_error("cannot remove", &file, &error))?;
        Ok(true)
    }

    /// Brings the description of a recipe up to date with the disk, which after a failed operation has either
    /// the old or the new recipe.
    fn update_record(&self, name: &str) {
        let file = format!("{name}{RECIPE_EXTENSION}");
        // Locked first, so that of two changes the description that is read last is the one that stays.
        let mut records = self.lock_records();
        let is_there = list_files(&*self.disk).map(|names| names.contains(&file));
        let record = RecipeFile::read_file(&*self.disk, &file).map(|read| read.description);
        match is_there {
            Ok(false) => records.remove(name),
            _ => records.insert(name.to_owned(), record),
        };
    }

    fn lock_records(&self) -> MutexGuard<'_, BTreeMap<String, Result<StoredRecipe>>> {
        // Every change is one insertion or removal, so a poisoned lock is still consistent.
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads the descriptions of all recipes of a directory, and removes what an interrupted write has left.
fn read_descriptions(disk: &dyn Disk) -> Result<BTreeMap<String, Result<StoredRecipe>>> {
    let mut records = BTreeMap::new();
    for file in list_files(disk)? {
        if file.ends_with(&format!("{RECIPE_EXTENSION}{INCOMPLETE}")) {
            disk.remove_file(&file)
                .map_err(|error| Error::disk_error("cannot remove", &file, &error))?;
        } else if let Some(name) = file.strip_suffix(RECIPE_EXTENSION) {
            let description = RecipeFile::read_file(disk, &file).map(|read| read.description);
            records.insert(name.to_owned(), description);
        }
    }
    Ok(records)
}

/// Checks that a recipe has the contents of the files that it names.
pub(crate) fn check_loaded(recipe: &Recipe) -> Result<()> {
    let first = recipe
        .file_names()
        .first()
        .map(|&(key, name)| (key, name.to_owned()));
    match first.filter(|_| !recipe.has_loaded_files()) {
        None => Ok(()),
        Some((key, name)) => Err(Error::setting_error(format!(
            "the recipe names the file '{name}' ({key}), whose content has not been read"
        ))),
    }
}

/// Removes the recipe file that an interrupted creation of a collection has left.
pub(crate) fn remove_stray_recipe(disk: &dyn Disk, names: &[String]) -> Result<()> {
    if !names.iter().any(|name| name == RECIPE_FILE) {
        return Ok(());
    }
    disk.remove_file(RECIPE_FILE)
        .map_err(|error| Error::disk_error("cannot remove", RECIPE_FILE, &error))
}
