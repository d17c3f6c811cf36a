//! Copies a snapshot back to a disk.

use super::file_copier::FileCopier;
use crate::disk::Disk;
use crate::error::{Error, Result};
use crate::files::file_names::{MANIFEST_FILE, is_listed_or_data_file};
use crate::files::inventory::list_files;
use crate::files::manifest::CollectionManifest;
use crate::files::whole_file::{incomplete_name, publish_file};

/// Copies a collection that is not open, for example a [snapshot](crate::Collection::copy_to_snapshot), to a
/// disk without one, on which `headroom` bytes stay free. The manifest is written last: a copy without it is incomplete and is not a
/// collection. Checks nothing but the manifest; [`verify_collection`](crate::verify_collection) checks the
/// rest.
///
/// # Errors
/// If there is no collection to copy, the destination has one already, or an operation on either disk fails.
pub fn restore_collection(from: &dyn Disk, to: &dyn Disk, headroom: u64) -> Result<()> {
    CollectionManifest::read_file(from)?;
    let is_own = |name: &String| *name == MANIFEST_FILE || is_listed_or_data_file(name);
    if let Some(name) = list_files(to)?.into_iter().find(is_own) {
        let what = format!("there are files of a collection already: '{name}'");
        return Err(Error::setting_error(what));
    }
    let opened = |name: &str| {
        from.open_file(name)
            .map_err(|error| Error::disk_error("cannot open", name, &error))
    };
    let mut copier = FileCopier::new(to, headroom);
    let names = list_files(from)?.into_iter();
    let names: Vec<_> = names.filter(|name| is_listed_or_data_file(name)).collect();
    for name in &names {
        let length = opened(name)?.len();
        copier.reserve_bytes(
            length.map_err(|error| Error::disk_error("cannot read", name, &error))?,
        )?;
    }
    for name in &names {
        copier.copy_file(opened(name)?, name)?;
    }
    copier.copy_file(opened(MANIFEST_FILE)?, &incomplete_name(MANIFEST_FILE))?;
    // All other names are made durable first, because a manifest marks a copy as complete.
    to.sync_names()
        .and_then(|()| publish_file(to, MANIFEST_FILE))
        .map_err(|error| Error::disk_error("cannot write", MANIFEST_FILE, &error))
}
