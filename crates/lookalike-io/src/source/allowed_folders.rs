//! Folders that bound which files a program may open for somebody else.
//!
//! A program that reads paths of another program, for example `lookalike mcp`, names the folders that it may read. A
//! path is resolved first: symbolic links are followed, `.` and `..` disappear. It is allowed if the result is one of the
//! folders or lies below one. Nothing is opened for the decision.
//!
//! A file that is replaced by a link between the decision and its opening is not noticed. Whoever can do this can write
//! to an allowed folder.

use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use lookalike_system::resolve_path;

use crate::error::{Error, Result, display_path};

/// Folders outside of which no file is opened. Clones share the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedFolders(Arc<[PathBuf]>);

impl AllowedFolders {
    /// Creates the list of these folders, each resolved.
    ///
    /// # Errors
    /// If one does not exist or is no directory.
    pub fn new(folders: &[PathBuf]) -> Result<Self> {
        let resolve = |folder: &PathBuf| {
            let resolved = resolve_path(folder)
                .map_err(|cause| Error::read_error("open", display_path(folder), cause))?;
            if resolved.is_dir() {
                return Ok(resolved);
            }
            Err(Error::usage_error(format!(
                "{} is not a directory: give a folder",
                display_path(folder)
            )))
        };
        let resolved: Vec<_> = folders.iter().map(resolve).collect::<Result<_>>()?;
        Ok(Self(resolved.into()))
    }

    /// Returns the folders, resolved.
    pub fn folders(&self) -> &[PathBuf] {
        &self.0
    }

    /// Returns a path without links, `.` and `..`, or `None` if it does not exist or is not allowed. The two cases are
    /// not told apart, so that nobody learns which files exist elsewhere. A relative path is that of the first folder
    /// in which it exists.
    pub fn resolve_path(&self, path: &Path) -> Option<PathBuf> {
        if path.as_os_str().is_empty() {
            return None;
        }
        // A path that is absolute replaces the folder.
        let mut candidates = self.0.iter().map(|folder| folder.join(path));
        candidates.find_map(|candidate| {
            let resolved = resolve_path(&candidate).ok()?;
            self.is_below(&resolved).then_some(resolved)
        })
    }

    /// Returns `true` if a path would lie inside of the folders and does not exist there. It is looked for without
    /// following links, and one with `..` never is, so that nothing is told about files elsewhere.
    pub fn lacks_path(&self, path: &Path) -> bool {
        let inside: Vec<&Path> = if path.is_absolute() {
            let folders = self.0.iter();
            let inside = folders.filter_map(|folder| path.strip_prefix(folder).ok());
            inside.collect()
        } else {
            vec![path; self.0.len()]
        };
        let bases = self
            .0
            .iter()
            .filter(|folder| path.is_relative() || path.starts_with(folder));
        !inside.is_empty()
            && bases
                .zip(inside)
                .all(|(folder, rest)| is_missing_below(folder, rest))
    }

    fn is_below(&self, resolved: &Path) -> bool {
        self.0.iter().any(|folder| resolved.starts_with(folder))
    }
}

/// Returns `true` if a path below a resolved folder does not exist, and no link is on the way.
fn is_missing_below(folder: &Path, path: &Path) -> bool {
    let mut reached = folder.to_path_buf();
    for part in path.components() {
        match part {
            Component::Normal(name) => reached.push(name),
            Component::CurDir => continue,
            _ => return false,
        }
        match reached.symlink_metadata() {
            Ok(found) if found.is_dir() => {}
            Ok(_) => return false,
            Err(error) => return error.kind() == ErrorKind::NotFound,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use lookalike_system::create_symlink;
    use std::fs;

    use super::*;

    #[test]
    fn paths_are_allowed_by_what_they_lead_to() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        fs::create_dir_all(path("in/deep")).unwrap();
        fs::create_dir_all(path("inside")).unwrap();
        for name in ["in/a.txt", "in/deep/b.txt", "inside/c.txt", "d.txt"] {
            fs::write(path(name), "text").unwrap();
        }
        create_symlink(&path("in/a.txt"), &path("in/near")).unwrap();
        create_symlink(&path("d.txt"), &path("in/far")).unwrap();
        create_symlink(&path("."), &path("in/up")).unwrap();
        create_symlink(&path("in"), &path("door")).unwrap();
        create_symlink(&path("none"), &path("in/dangling")).unwrap();
        // A folder may be named by a link itself.
        let folders = AllowedFolders::new(&[path("door")]).unwrap();
        let real = |name: &str| resolve_path(&path(name)).unwrap();
        assert_eq!(folders.folders(), [real("in")]);
        for (given, expected) in [
            ("a.txt", Some("in/a.txt")),
            ("deep/../a.txt", Some("in/a.txt")),
            ("./deep/b.txt", Some("in/deep/b.txt")),
            ("near", Some("in/a.txt")),
            ("up/in/a.txt", Some("in/a.txt")),
            (".", Some("in")),
            ("far", None),
            ("up", None),
            ("up/d.txt", None),
            ("..", None),
            ("../d.txt", None),
            ("../inside/c.txt", None),
            ("dangling", None),
            ("none.txt", None),
            ("a.txt/", None),
            ("a\0.txt", None),
            ("", None),
        ] {
            let resolved = folders.resolve_path(Path::new(given));
            assert_eq!(resolved, expected.map(real), "{given}");
        }
        let absolute = |name: &str| folders.resolve_path(&path(name));
        assert_eq!(absolute("in/a.txt"), Some(real("in/a.txt")));
        assert_eq!(absolute("door/a.txt"), Some(real("in/a.txt")));
        assert_eq!((absolute("d.txt"), absolute("inside/c.txt")), (None, None));
    }

    #[test]
    fn folders_exist() {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("a"), "").unwrap();
        for name in ["a", "none"] {
            let folders = AllowedFolders::new(&[place.path().join(name)]);
            assert!(folders.is_err(), "{name}");
        }
    }
}
