//! The files that a recipe names: reading, digests, and checks line by line.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Recipe, WeightScheme, YanyiwuRecipe};
use crate::compat::{File, Sources, Tables};
use crate::error::{Error, Result};
use crate::forms::FormTable;
use crate::hash;
use crate::text::features_of_terms;
use crate::text::weight::{TableKind, WeightTable};

/// Hash domain of the digests.
const DIGEST_DOMAIN: u64 = 3;

/// The names of a recipe's files with the digests of their contents. After [`Recipe::read_recipe`] it
/// also holds the contents themselves, shared between clones.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RecipeFiles {
    digests: BTreeMap<String, String>,
    #[serde(skip)]
    contents: BTreeMap<String, Arc<[u8]>>,
    #[serde(skip)]
    loaded: Option<Arc<LoadedFiles>>,
}

/// The parsed contents of a recipe's files.
#[derive(Debug, Default)]
pub(crate) struct LoadedFiles {
    pub(crate) words: Vec<UserWord>,
    pub(crate) stopwords: Vec<String>,
    pub(crate) table: Option<WeightTable>,
    pub(crate) forms: Option<FormTable>,
    /// Tables of the scheme `yanyiwu`.
    pub(crate) tables: Option<Arc<Tables>>,
}

/// A line of a user dictionary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UserWord {
    pub(crate) word: String,
    /// Frequency of the word. If it is `None`, the word gets the frequency that it needs to stay whole.
    pub(crate) frequency: Option<usize>,
    pub(crate) part: Option<String>,
}

/// Largest frequency of a word in a user dictionary.
const MOST_FREQUENT: usize = 1_000_000_000;

/// Two values are equal if they have the same names with the same digests.
impl PartialEq for RecipeFiles {
    fn eq(&self, other: &Self) -> bool {
        self.digests == other.digests
    }
}

impl Eq for RecipeFiles {}

impl fmt::Debug for RecipeFiles {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_map().entries(&self.digests).finish()
    }
}

impl RecipeFiles {
    /// Returns `true` if the recipe names no files.
    pub fn is_empty(&self) -> bool {
        self.digests.is_empty()
    }

    /// Returns the name and content of every file that has been read, ordered by name.
    pub fn iter_contents(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.contents
            .iter()
            .map(|(name, content)| (name.as_str(), &**content))
    }

    /// Returns the name and the digest of every file, ordered by name.
    pub fn iter_digests(&self) -> impl Iterator<Item = (&str, &str)> {
        let digests = self.digests.iter();
        digests.map(|(name, digest)| (name.as_str(), digest.as_str()))
    }
}

/// A file as it was read: its content, and the place that messages name.
pub(super) type ReadFile = (Arc<[u8]>, String);

impl Recipe {
    /// Returns the names of the recipe's files, each with the key that contains it.
    pub fn file_names(&self) -> Vec<(&'static str, &str)> {
        let user = self
            .segment
            .as_ref()
            .and_then(|segment| segment.user.as_deref());
        let stopwords = self
            .filter
            .stopword_files()
            .map(|name| ("filter.stopwords", name));
        let table = self.simhash.table.as_deref();
        let forms = self.forms.as_deref();
        (forms.map(|name| ("forms", name)).into_iter())
            .chain(user.map(|name| ("segment.user", name)))
            .chain(stopwords)
            .chain(table.map(|name| ("simhash.table", name)))
            .chain(self.yanyiwu.iter().flat_map(YanyiwuRecipe::named_files))
            .collect()
    }

    /// Returns `true` if the recipe has the contents of all files that it names, as [`Recipe::read_recipe`] and
    /// [`Recipe::read_with_files`] read them. Only then can texts be analysed with it.
    pub fn has_loaded_files(&self) -> bool {
        self.file_names().is_empty() || self.files.loaded.is_some()
    }

    /// Returns the recipe with a table of forms in place of its own, under a name for people.
    ///
    /// # Errors
    /// [`ErrorKind::Recipe`](crate::ErrorKind::Recipe) if the recipe has the scheme of another tool, whose features have
    /// no tokens of a text.
    pub fn with_forms(mut self, name: &str, table: &FormTable) -> Result<Self> {
        let old = self.forms.replace(name.to_owned());
        for name in old.iter().map(String::as_str).chain([name]) {
            self.files.digests.remove(name);
            self.files.contents.remove(name);
        }
        let contents = self.files.contents.clone();
        let forms: Arc<[u8]> = table.to_toml().into_bytes().into();
        let mut recipe = self.validate()?;
        recipe.load_files(&|key, name| {
            let content = match key {
                "forms" => Some(&forms),
                _ => contents.get(name),
            };
            let content = content.ok_or("its content was not read")?;
            Ok((content.clone(), name.to_owned()))
        })?;
        Ok(recipe)
    }

    /// Returns the table of forms, if the recipe has one.
    ///
    /// # Panics
    /// If the files of the recipe were not read.
    pub fn form_table(&self) -> Option<FormTable> {
        self.forms.as_ref()?;
        self.loaded_files().forms.clone()
    }

    /// Returns the recipe without its table of forms.
    pub fn without_forms(mut self) -> Self {
        if let Some(name) = self.forms.take() {
            self.files.digests.remove(&name);
            self.files.contents.remove(&name);
        }
        self
    }

    /// Returns the parsed contents of the recipe's files.
    pub(crate) fn loaded_files(&self) -> Arc<LoadedFiles> {
        if self.file_names().is_empty() {
            return Arc::default();
        }
        let loaded = self.files.loaded.clone();
        loaded.expect(
            "a recipe that names files must be read with Recipe::read, which reads the files",
        )
    }

    /// Returns `true` if the weights come from a table of document frequencies.
    pub(crate) fn has_frequencies(&self) -> bool {
        let loaded = self.loaded_files();
        let table = loaded.table.as_ref();
        table.is_some_and(|table| table.kind != TableKind::Plain)
    }

    /// Returns the recipe, or an error if it has the digest of a file that it does not name.
    pub(super) fn without_stray_files(self) -> Result<Self> {
        let named = self.file_names();
        let is_named = |name: &String| named.iter().any(|(_, named)| named == name);
        match self.files.digests.keys().find(|name| !is_named(name)) {
            None => Ok(self),
            Some(stray) => Err(self.recipe_error(format!(
                "[files] has '{stray}', which the recipe does not name"
            ))),
        }
    }

    /// Reads the named files with `read`, which returns a file or the reason why there is none.
    pub(super) fn load_files(
        &mut self,
        read: &dyn Fn(&str, &str) -> Result<ReadFile, String>,
    ) -> Result<()> {
        let named: Vec<_> = self
            .file_names()
            .into_iter()
            .map(|(key, name)| (key, name.to_owned()))
            .collect();
        for (key, name) in &named {
            let file =
                read(key, name).map_err(|reason| self.recipe_error(format!("{key}: {reason}")))?;
            let content = self.check_named_file(key, name, file)?;
            self.files.contents.insert(name.clone(), content);
        }
        if !named.is_empty() {
            self.files.loaded = Some(Arc::new(self.understand()?));
        }
        Ok(())
    }

    fn check_named_file(
        &mut self,
        key: &str,
        name: &str,
        (content, place): ReadFile,
    ) -> Result<Arc<[u8]>> {
        let digest = format!("{:032x}", hash::hash_bytes(DIGEST_DOMAIN, &content));
        match self.files.digests.get(name) {
            Some(said) if *said != digest => Err(self.recipe_error(format!(
                "{key}: {place} has the digest {digest}, but [files] says {said}: it is not the \
                 file of the recipe"
            ))),
            _ => {
                self.files.digests.insert(name.to_owned(), digest);
                Ok(content)
            }
        }
    }

    fn understand(&self) -> Result<LoadedFiles> {
        let mut loaded = LoadedFiles::default();
        for (key, name) in self.file_names() {
            let text = self.file_text(key, name)?;
            match key {
                "segment.user" => loaded.words = user_words(name, text)?,
                "filter.stopwords" => loaded.stopwords.extend(parse_stopwords(text)),
                "forms" => loaded.forms = Some(FormTable::parse_table(name, text)?),
                "simhash.table" => loaded.table = Some(self.parse_table(name, text)?),
                // The tables of a scheme are parsed together, below.
                _ => {}
            }
        }
        if let Some(yanyiwu) = &self.yanyiwu {
            let tables = Tables::read(&self.yanyiwu_sources(yanyiwu)?)?;
            loaded.tables = Some(Arc::new(tables));
        }
        Ok(loaded)
    }

    fn file_text(&self, key: &str, name: &str) -> Result<&str> {
        let content = std::str::from_utf8(&self.files.contents[name]);
        let text = content.map_err(|cause| {
            let valid = &self.files.contents[name][..cause.valid_up_to()];
            let line = 1 + valid.iter().filter(|&&byte| byte == b'\n').count();
            self.recipe_error(format!("{key}: {name}:{line}: the line is not UTF-8"))
        })?;
        Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
    }

    fn yanyiwu_sources<'r>(&'r self, yanyiwu: &'r YanyiwuRecipe) -> Result<Sources<'r>> {
        let file = |key: &str, name: &'r String| {
            let text = self.file_text(key, name)?;
            Ok(File { name, text })
        };
        let user = yanyiwu.user.as_ref();
        Ok(Sources {
            dictionary: file("yanyiwu.dictionary", &yanyiwu.dictionary)?,
            user: user.map(|name| file("yanyiwu.user", name)).transpose()?,
            hmm: file("yanyiwu.hmm", &yanyiwu.hmm)?,
            idf: file("yanyiwu.idf", &yanyiwu.idf)?,
            stopwords: file("yanyiwu.stopwords", &yanyiwu.stopwords)?,
        })
    }

    fn parse_table(&self, name: &str, text: &str) -> Result<WeightTable> {
        let table = WeightTable::parse_table(name, text)?;
        let weights = self.simhash.weights;
        match (&table.kind, weights) {
            (TableKind::Frequencies(head), WeightScheme::Tfidf | WeightScheme::Levels) => {
                let own = self.terms_id().to_string();
                if head.terms_id == own || self.restricts_terms_of(&head.terms_id) {
                    return Ok(table);
                }
                Err(self.recipe_error(format!(
                    "simhash.table: {name} was learned under the recipe {} (terms {}), which has \
                     other terms than this recipe (terms {own}): learn a table with `lookalike \
                     idf` (in Python Idf.learn). Only filters may be added afterwards, to a recipe \
                     of single tokens (ngram = 1)",
                    head.recipe, head.terms_id
                )))
            }
            (TableKind::Frequencies(_), _) => Err(self.recipe_error(format!(
                "simhash.table: {name} is a table of document frequencies; simhash.weights = \
                 \"given\" takes lines of term, tab, weight"
            ))),
            (TableKind::Plain, WeightScheme::Tfidf) => Err(self.recipe_error(format!(
                "simhash.table: {name} is not a table of document frequencies, which simhash.weights \
                 = \"tfidf\" needs: learn one with `lookalike idf` (in Python Idf.learn), or use the weights \
                 of this one, which may be jieba's idf.txt, with simhash.weights = \"given\""
            ))),
            (TableKind::Plain, WeightScheme::Levels) => {
                self.without_contradictions(name, table.refuse_other_levels(name)?)
            }
            (TableKind::Plain, _) => self.without_contradictions(name, table),
        }
    }

    /// Returns `true` if this recipe makes the terms of another one except those that its filters leave
    /// out.
    ///
    /// This is possible for single tokens only, because the neighbours of a token that is left out make
    /// n-grams that the other recipe does not have.
    fn restricts_terms_of(&self, terms_id: &str) -> bool {
        let filter = &self.filter;
        let has = [
            filter.least_characters > 1,
            !filter.stopwords.is_empty(),
            !filter.parts.is_empty(),
        ];
        // Bit i of `removed` is set to remove filter i; every combination is tried.
        let without = |removed: usize| {
            let is_removed = |at: usize| removed >> at & 1 == 1;
            let mut wider = self.clone();
            if is_removed(0) {
                wider.filter.least_characters = 0;
            }
            if is_removed(1) {
                wider.filter.stopwords.clear();
            }
            if is_removed(2) {
                wider.filter.parts.clear();
            }
            wider
        };
        let are_there = |removed: &usize| (0..3).all(|at| removed >> at & 1 == 0 || has[at]);
        let mut choices = (1..8).filter(are_there).map(without);
        self.ngram == 1 && choices.any(|wider| wider.terms_id().to_string() == terms_id)
    }

    fn without_contradictions(&self, name: &str, table: WeightTable) -> Result<WeightTable> {
        let terms = table.rows.iter().map(|(term, ..)| &**term);
        let features = features_of_terms(self, terms);
        table.refuse_contradictions(name, &features)
    }

    /// Returns the same recipe with other names for its files. `name` maps the key that contains a name, and
    /// the name, to the new name.
    #[must_use]
    pub fn with_file_names(mut self, name: impl Fn(&str, &str) -> String) -> Self {
        let files = self.file_names().into_iter();
        let names: BTreeMap<String, String> = files
            .map(|(key, old)| (old.to_owned(), name(key, old)))
            .collect();
        let new = |old: &String| names.get(old).unwrap_or(old).clone();
        let RecipeFiles {
            digests, contents, ..
        } = &mut self.files;
        *digests = digests
            .iter()
            .map(|(old, it)| (new(old), it.clone()))
            .collect();
        *contents = contents
            .iter()
            .map(|(old, it)| (new(old), it.clone()))
            .collect();
        self.rename_files(|old| *old = new(old));
        self
    }

    /// Removes the files that the recipe no longer names, and parses the others again.
    pub(crate) fn without_forgotten_files(mut self) -> Result<Self> {
        let named = self.file_names();
        let named: BTreeSet<String> = named.iter().map(|(_, name)| (*name).to_owned()).collect();
        self.files.digests.retain(|name, _| named.contains(name));
        self.files.contents.retain(|name, _| named.contains(name));
        self.files.loaded = if named.is_empty() {
            None
        } else {
            Some(Arc::new(self.understand()?))
        };
        Ok(self)
    }

    /// Replaces the names of files by their digests, for the identity.
    pub(super) fn name_files_by_content(&mut self) {
        let digests = std::mem::take(&mut self.files).digests;
        self.rename_files(|name| {
            if let Some(digest) = digests.get(name.as_str()) {
                digest.clone_into(name);
            }
        });
        self.filter.stopwords.sort_unstable();
    }

    fn rename_files(&mut self, rename: impl Fn(&mut String)) {
        if let Some(user) = self
            .segment
            .as_mut()
            .and_then(|segment| segment.user.as_mut())
        {
            rename(user);
        }
        self.forms.iter_mut().for_each(&rename);
        self.filter.stopwords.iter_mut().for_each(&rename);
        self.simhash.table.iter_mut().for_each(&rename);
        let tables = self.yanyiwu.iter_mut();
        tables
            .flat_map(YanyiwuRecipe::file_names_mut)
            .for_each(&rename);
    }
}

/// Returns the words of a list with one word per line.
fn parse_stopwords(text: &str) -> impl Iterator<Item = String> {
    let words = text.lines().map(str::trim);
    words.filter(|word| !word.is_empty()).map(str::to_owned)
}

fn user_words(name: &str, text: &str) -> Result<Vec<UserWord>> {
    let lines = text.lines().enumerate();
    lines
        .filter(|(_, line)| !line.trim().is_empty())
        .map(|(at, line)| {
            parse_user_word(line)
                .map_err(|what| Error::recipe_error(format!("{name}:{}: {what}", at + 1)))
        })
        .collect()
}

fn parse_user_word(line: &str) -> Result<UserWord, String> {
    let mut fields = line.split_whitespace();
    let word = fields.next().unwrap_or_default().to_owned();
    let mut part = fields.next();
    let frequency = match part.filter(|field| field.starts_with(|c: char| !c.is_alphabetic())) {
        None => None,
        Some(field) => {
            part = fields.next();
            let number = field.parse().ok();
            let number = number.filter(|number| (1..=MOST_FREQUENT).contains(number));
            Some(number.ok_or_else(|| {
                format!(
                    "'{field}' is not a valid frequency: give a whole number from 1 to {MOST_FREQUENT} \
                     after the word"
                )
            })?)
        }
    };
    if let Some(rest) = part.and_then(|_| fields.next()) {
        return Err(format!(
            "'{rest}' is too much: a line has a word, a frequency (a number) and a part of speech"
        ));
    }
    Ok(UserWord {
        word,
        frequency,
        part: part.map(str::to_owned),
    })
}
