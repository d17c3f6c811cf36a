//! Files that are read and replaced as a whole.
//!
//! Guarantee: a file gets its name once its content is durable, so after an interruption either the old or the new
//! content is there.

use std::io;

use super::file_names::INCOMPLETE;
use crate::disk::Disk;

/// Reads a file.
pub(crate) fn read_file(disk: &dyn Disk, name: &str) -> io::Result<Vec<u8>> {
    let file = disk.open_file(name)?;
    let mut bytes = vec![0; file.len()? as usize];
    file.read_exact(&mut bytes, 0)?;
    Ok(bytes)
}

/// Writes a file, durably, in place of an existing one of this name.
pub(crate) fn replace_file<'a>(
    disk: &dyn Disk,
    name: &str,
    content: impl IntoIterator<Item = &'a [u8]>,
) -> io::Result<()> {
    stage_file(disk, name, content)?;
    publish_file(disk, name)
}

/// Writes a file under the [name of an incomplete file](incomplete_name). After an error the former file is still there.
pub(crate) fn stage_file<'a>(
    disk: &dyn Disk,
    name: &str,
    content: impl IntoIterator<Item = &'a [u8]>,
) -> io::Result<()> {
    let file = disk.create_file(&incomplete_name(name))?;
    let mut at = 0;
    for part in content {
        file.write_at(part, at)?;
        at += part.len() as u64;
    }
    file.sync()
}

/// Gives a complete file its name. After an error it is unknown which file is on disk.
pub(crate) fn publish_file(disk: &dyn Disk, name: &str) -> io::Result<()> {
    disk.rename_file(&incomplete_name(name), name)?;
    disk.sync_names()
}

/// Returns the name of a file until it is complete.
pub(crate) fn incomplete_name(name: &str) -> String {
    format!("{name}{INCOMPLETE}")
}
