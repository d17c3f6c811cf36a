//! Aliases: further names of collections, which can be switched from one collection to another in one step.
//!
//! They are stored in one file of the data directory, which is written anew with every change:
//!
//! ```text
//! lookalike-aliases 1 XXXXXXXX    CRC-32 of everything after this line
//! {"live": "posts-2", …}          the collection of each alias
//! ```

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

use lookalike_system::{Directory, replace_file};

use crate::error::{Result, bail, with_context};

/// Name of the file in the data directory.
const ALIASES_FILE: &str = "aliases.json";

const ALIASES_MAGIC: &str = "lookalike-aliases 1";

/// Largest number of aliases.
pub(crate) const MAX_ALIASES: usize = 1000;

/// The aliases by name, each with its collection.
pub(crate) type AliasMap = BTreeMap<String, String>;

/// The aliases of a service.
pub(crate) struct CollectionAliases {
    directory: PathBuf,
    aliases: RwLock<AliasMap>,
}

impl CollectionAliases {
    /// Reads the aliases of a data directory.
    ///
    /// # Errors
    /// If the file cannot be read or is damaged.
    pub(crate) fn open(directory: &Path) -> Result<Self> {
        let path = directory.join(ALIASES_FILE);
        let aliases = match fs::read_to_string(&path) {
            Ok(text) => parse_file(&text).map_err(with_context(format!(
                "the aliases in {}: restore the file, or remove it and set the aliases again",
                path.display()
            )))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => AliasMap::new(),
            Err(error) => bail!("cannot read the aliases in {}: {error}", path.display()),
        };
        Ok(Self {
            directory: directory.to_owned(),
            aliases: RwLock::new(aliases),
        })
    }

    /// Returns the collection of an alias.
    pub(crate) fn find_collection(&self, alias: &str) -> Option<String> {
        self.read_map().get(alias).cloned()
    }

    /// Returns an alias of a collection, if it has one.
    pub(crate) fn find_alias(&self, collection: &str) -> Option<String> {
        let aliases = self.read_map();
        let found = aliases.iter().find(|(_, target)| *target == collection);
        found.map(|(alias, _)| alias.clone())
    }

    /// Returns all aliases.
    pub(crate) fn list_aliases(&self) -> AliasMap {
        self.read_map().clone()
    }

    /// Replaces all aliases. The new ones are on disk before requests see them. Changes must not be made at
    /// the same time.
    ///
    /// # Errors
    /// If a disk operation fails.
    pub(crate) fn replace_aliases(&self, aliases: AliasMap) -> io::Result<()> {
        write_aliases(&self.directory, &aliases)?;
        *self.aliases.write().unwrap_or_else(PoisonError::into_inner) = aliases;
        Ok(())
    }

    fn read_map(&self) -> std::sync::RwLockReadGuard<'_, AliasMap> {
        // The map is replaced in one step, so a poisoned lock is still consistent.
        self.aliases.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns `true` if a data directory that is not open has aliases.
///
/// # Errors
/// If the file cannot be read or is damaged.
pub(crate) fn has_aliases(directory: &Path) -> Result<bool> {
    let aliases = CollectionAliases::open(directory)?;
    Ok(!aliases.list_aliases().is_empty())
}

/// Writes the aliases of a data directory; they are on disk when this returns.
///
/// # Errors
/// If a disk operation fails.
pub(crate) fn write_aliases(directory: &Path, aliases: &AliasMap) -> io::Result<()> {
    let new = directory.join(format!("{ALIASES_FILE}.new"));
    let body = serde_json::to_string_pretty(aliases)?;
    let mut file = File::create(&new)?;
    file.write_all(format!("{}\n{body}", first_line(&body)).as_bytes())?;
    file.sync_all()?;
    replace_file(&new, &directory.join(ALIASES_FILE))?;
    Directory::sync_path(directory)
}

fn first_line(body: &str) -> String {
    format!("{ALIASES_MAGIC} {:08x}", crc32fast::hash(body.as_bytes()))
}

fn parse_file(text: &str) -> Result<AliasMap> {
    let Some((first, body)) = text.split_once('\n') else {
        bail!("the file has no first line");
    };
    if first != first_line(body) {
        bail!("the first line does not have the version and the checksum of the rest");
    }
    serde_json::from_str(body).map_err(with_context("the file is damaged"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aliases_survive_and_damage_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let open = || CollectionAliases::open(folder.path());
        let aliases = open().unwrap();
        assert!(aliases.list_aliases().is_empty());
        let map: AliasMap = [("live".to_owned(), "posts-1".to_owned())].into();
        aliases.replace_aliases(map.clone()).unwrap();
        let reopened = open().unwrap();
        assert_eq!(reopened.list_aliases(), map);
        assert_eq!(reopened.find_collection("live").as_deref(), Some("posts-1"));
        assert_eq!(reopened.find_alias("posts-1").as_deref(), Some("live"));
        assert_eq!(reopened.find_alias("posts-2"), None);
        // An interrupted write leaves the former file.
        fs::write(folder.path().join(format!("{ALIASES_FILE}.new")), "half").unwrap();
        assert_eq!(open().unwrap().list_aliases(), map);
        let path = folder.path().join(ALIASES_FILE);
        let good = fs::read(&path).unwrap();
        for at in 0..good.len() {
            let mut damaged = good.clone();
            damaged[at] ^= 1;
            fs::write(&path, damaged).unwrap();
            assert!(open().is_err(), "byte {at}");
        }
        fs::write(&path, &good[..good.len() - 1]).unwrap();
        assert!(open().is_err());
    }
}
