//! Recipes by name or from a file, with changed fields.

use std::path::{Path, PathBuf};

use lookalike::Recipe;
use lookalike_io::error::{Error, Result};
use lookalike_options::match_options::OptionSpelling;
use toml::{Table, Value};

/// Default recipe of segmentation: it cuts texts into words, also in Chinese.
pub const SEGMENTATION_RECIPE: &str = "jieba";

/// Keys whose values are lists. A value that is not TOML is split at commas.
const LIST_KEYS: [&str; 3] = ["normalize", "filter.stopwords", "filter.parts"];

/// Keys whose values name files.
const FILE_KEYS: [&str; 8] = [
    "segment.user",
    "filter.stopwords",
    "simhash.table",
    "yanyiwu.dictionary",
    "yanyiwu.user",
    "yanyiwu.hmm",
    "yanyiwu.idf",
    "yanyiwu.stopwords",
];

/// Loads a recipe by its name or from a TOML file and applies changes such as `ngram=3`. Files that the
/// recipe names are relative to the directory of the recipe's own file; files that a change names are
/// relative to the working directory.
///
/// # Errors
/// If no recipe has this name, if a file cannot be read, or if a change makes the recipe invalid.
pub fn load_recipe(name: &str, changes: &[String], spelling: OptionSpelling) -> Result<Recipe> {
    let (toml, directory) = read_toml(name)?;
    if changes.is_empty() && directory.is_none() {
        return Ok(Recipe::built_in(name)?);
    }
    change_recipe(
        name,
        &toml,
        &directory.unwrap_or_default(),
        changes,
        spelling,
    )
}

/// Reads a recipe from TOML and applies changes. Files are relative to the working directory.
///
/// # Errors
/// If the TOML, before or after the changes, is not a valid recipe.
pub fn read_recipe(toml: &str, changes: &[String], spelling: OptionSpelling) -> Result<Recipe> {
    change_recipe("the recipe", toml, Path::new(""), changes, spelling)
}

/// Loads a recipe as [`load_recipe`] does, then rewrites the names of its files to be relative to the
/// working directory.
///
/// # Errors
/// The same as those of [`load_recipe`].
pub fn load_recipe_from_here(
    name: &str,
    changes: &[String],
    spelling: OptionSpelling,
) -> Result<Recipe> {
    let recipe = load_recipe(name, changes, spelling)?;
    let (_, directory) = read_toml(name)?;
    let directory = directory.unwrap_or_default();
    let keys: Vec<&str> = changes
        .iter()
        .filter_map(|change| change.split('=').next())
        .collect();
    Ok(recipe.with_file_names(|key, file| {
        let path = locate_file(&keys, &directory, key, file);
        path.display().to_string()
    }))
}

/// Returns the path of the file that `key` names. It is relative to the working directory if a change
/// has set the key, and otherwise to the directory of the recipe.
fn locate_file(changed: &[&str], directory: &Path, key: &str, file: &str) -> PathBuf {
    if changed.iter().any(|changed| covers_key(changed, key)) {
        PathBuf::from(file)
    } else {
        directory.join(file)
    }
}

fn change_recipe(
    name: &str,
    toml: &str,
    directory: &Path,
    changes: &[String],
    spelling: OptionSpelling,
) -> Result<Recipe> {
    if changes.is_empty() {
        return Recipe::read_in_directory(toml, directory)
            .map_err(|error| Error::from(error).with_place(name));
    }
    let unreadable = |error: toml::de::Error| Error::engine_error(format!("{name}: {error}"));
    let mut table: Table = toml.parse().map_err(unreadable)?;
    let mut keys = Vec::new();
    for change in changes {
        keys.push(apply_change(change, &mut table, spelling)?);
    }
    rename_changed(&mut table, &keys);
    let locate = |key: &str, file: &str| locate_file(&keys, directory, key, file);
    let text = toml::to_string(&table)
        .map_err(|error| Error::engine_error(format!("{name}: {error}")).with_source(error))?;
    let changed = || {
        let changes: Vec<_> = changes
            .iter()
            .map(|change| spelling.spell_change(change))
            .collect();
        format!("{name} with {}", changes.join(" "))
    };
    Recipe::read_recipe(&text, &locate).map_err(|error| Error::from(error).with_place(&changed()))
}

/// Returns the TOML of a recipe, and the directory of its file if it comes from one.
fn read_toml(name: &str) -> Result<(String, Option<PathBuf>)> {
    let path = Path::new(name);
    let is_file = !Recipe::NAMES.contains(&name)
        && (path
            .extension()
            .is_some_and(|extension| extension == "toml")
            || path.components().count() > 1
            || path.exists());
    if !is_file {
        return Ok((Recipe::built_in(name)?.to_toml(), None));
    }
    let text = std::fs::read_to_string(path).map_err(|cause| {
        Error::input_error(format!("cannot read the recipe {name}: {cause}")).with_source(cause)
    })?;
    let directory = path.parent().unwrap_or(Path::new("")).to_path_buf();
    Ok((text, Some(directory)))
}

/// Applies one change and returns its key.
fn apply_change<'c>(
    change: &'c str,
    table: &mut Table,
    spelling: OptionSpelling,
) -> Result<&'c str> {
    let spelled = spelling.spell_change(change);
    let Some((key, value)) = change
        .split_once('=')
        .filter(|(_, value)| !value.is_empty())
    else {
        return Err(Error::usage_error(format!(
            "{spelled}: give KEY=VALUE, such as ngram=3 or simhash.weights=binary"
        )));
    };
    if FILE_KEYS.iter().any(|file| covers_key(key, file)) {
        forget_digests(table, key);
    }
    let (parents, last) = key
        .rsplit_once('.')
        .map_or((None, key), |(parents, last)| (Some(parents), last));
    let mut into = table;
    for parent in parents.into_iter().flat_map(|parents| parents.split('.')) {
        let inner = into
            .entry(parent)
            .or_insert_with(|| Value::Table(Table::new()));
        into = match inner {
            Value::Table(inner) => inner,
            _ => {
                return Err(Error::usage_error(format!(
                    "{spelled}: '{parent}' is not a table of the recipe, but a value"
                )));
            }
        };
    }
    into.insert(
        last.to_owned(),
        parse_value(value, LIST_KEYS.contains(&key)),
    );
    Ok(key)
}

/// Parses a value as TOML. A value that is not TOML becomes a string, or a list of strings if `is_list`.
fn parse_value(value: &str, is_list: bool) -> Value {
    let parsed = format!("value = {value}").parse::<Table>();
    let value_of = |mut table: Table| table.remove("value").filter(|_| table.is_empty());
    let parsed = parsed.ok().and_then(value_of);
    let strings = || value.split(',').map(|item| Value::String(item.to_owned()));
    parsed.unwrap_or_else(|| {
        if is_list {
            Value::Array(strings().collect())
        } else {
            Value::String(value.to_owned())
        }
    })
}

/// Returns `true` if a change of the key `changed` also changes `key`.
fn covers_key(changed: &str, key: &str) -> bool {
    key == changed
        || key
            .strip_prefix(changed)
            .is_some_and(|rest| rest.starts_with('.'))
}

/// Removes the digests of the files that a key names before the change.
fn forget_digests(table: &mut Table, key: &str) {
    let mut value = Some(&*table).and_then(|table| table.get(key.split('.').next()?));
    for part in key.split('.').skip(1) {
        value = value.and_then(|value| value.get(part));
    }
    let mut names = Vec::new();
    if let Some(value) = value {
        collect_names(value, &mut names);
    }
    if let Some(Value::Table(files)) = table.get_mut("files") {
        files.retain(|name, _| names.iter().all(|named| named != name));
    }
}

fn collect_names(value: &Value, names: &mut Vec<String>) {
    match value {
        Value::String(name) => names.push(name.clone()),
        Value::Array(values) => values.iter().for_each(|value| collect_names(value, names)),
        Value::Table(table) => table.values().for_each(|value| collect_names(value, names)),
        _ => {}
    }
}

/// Marks the name of a changed recipe with `+`, unless a change has set the name.
fn rename_changed(table: &mut Table, keys: &[&str]) {
    if !keys.contains(&"name")
        && let Some(Value::String(name)) = table.get_mut("name")
    {
        name.push('+');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(name: &str, set: &[&str]) -> Result<Recipe> {
        let set: Vec<_> = set.iter().map(|&change| change.to_owned()).collect();
        load_recipe(name, &set, OptionSpelling::Options)
    }

    #[test]
    fn fields_are_changed_by_their_path() {
        let recipe = changed(
            "default",
            &["ngram=3", "minhash.slots=64", "tokens=characters"],
        );
        let recipe = recipe.unwrap();
        assert_eq!((recipe.ngram, recipe.minhash.slots), (3, 64));
        assert_eq!(recipe.name, "default-1+");
        let same = changed("default", &["ngram=3"]).unwrap();
        assert_eq!(
            same.recipe_id(),
            Recipe::built_in("words-3").unwrap().recipe_id()
        );
        let listed = changed("jieba", &["filter.stopwords=[\"zh\", \"en\"]", "name=mine"]).unwrap();
        assert_eq!(listed.filter.stopwords, ["zh", "en"]);
        assert_eq!(listed.name, "mine");
        let listed = changed("jieba", &["filter.stopwords=zh,en", "filter.parts=n,v"]).unwrap();
        assert_eq!(listed.filter.stopwords, ["zh", "en"]);
        assert_eq!(listed.filter.parts, ["n", "v"]);
        let steps = changed("default", &["normalize=nfkc,fold"]).unwrap();
        assert_eq!(steps.normalize.len(), 2);
        let one = changed("jieba", &["filter.stopwords=zh"]).unwrap();
        assert_eq!(one.filter.stopwords, ["zh"]);
    }

    #[test]
    fn invalid_recipe_changes_are_named() {
        for (set, message) in [
            ("ngram", "--set ngram: give KEY=VALUE"),
            ("ngram=", "--set ngram=: give KEY=VALUE"),
            (
                "ngram=33",
                "default with --set ngram=33: recipe 'default-1+': ngram is 33",
            ),
            ("ngram=many", "invalid type: string \"many\""),
            ("simhash.bit=3", "unknown field `bit`"),
            ("normalize=nfkc,fald", "unknown variant `fald`"),
            ("ngram.x=3", "'ngram' is not a table"),
            ("simhash.weights=tfidf", "needs simhash.table"),
            ("filter.stopwords=none.txt", "cannot read none.txt"),
        ] {
            let error = changed("default", &[set]).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
    }

    #[test]
    fn recipe_files_resolve_from_their_mention() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name).display().to_string();
        std::fs::write(path("stop.txt"), "一\n").unwrap();
        std::fs::write(path("other.txt"), "二\n").unwrap();
        let recipe = changed(
            "words-1",
            &[&format!("filter.stopwords={}", path("stop.txt"))],
        );
        let recipe = recipe.unwrap();
        let toml = recipe.to_toml().replace(&path("stop.txt"), "stop.txt");
        std::fs::write(path("mine.toml"), toml).unwrap();
        let reloaded = changed(&path("mine.toml"), &[]).unwrap();
        assert_eq!(reloaded.recipe_id(), recipe.recipe_id());
        let relocated =
            load_recipe_from_here(&path("mine.toml"), &[], OptionSpelling::Options).unwrap();
        assert_eq!(relocated.filter.stopwords, [path("stop.txt")]);
        let read = read_recipe(&relocated.to_toml(), &[], OptionSpelling::Options).unwrap();
        assert_eq!(
            (read.recipe_id(), relocated.recipe_id()),
            (recipe.recipe_id(), recipe.recipe_id())
        );
        let other = format!("filter.stopwords={}", path("other.txt"));
        let other = changed(&path("mine.toml"), &[&other]).unwrap();
        assert_ne!(other.recipe_id(), recipe.recipe_id());
        std::fs::write(path("stop.txt"), "三\n").unwrap();
        let error = changed(&path("mine.toml"), &[]).unwrap_err().to_string();
        assert!(
            error.contains("it is not the file of the recipe"),
            "{error}"
        );
    }
}
