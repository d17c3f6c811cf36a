//! Copies of files, to a disk on which some space must remain free.
//!
//! An append-only file can be copied up to its end at some moment, and the rest later. The copy is written
//! once from its beginning to its end, as object stores require.

use std::io;
use std::sync::Arc;

use crate::disk::{Disk, DiskFile};
use crate::error::{Error, ErrorKind, Result};
use crate::partition::{FileNames, Partition};

/// Bytes that are copied at a time.
const PIECE: usize = 8 << 20;

/// Copies files to a disk, as long as the headroom remains free.
pub(crate) struct Copier<'a> {
    to: &'a dyn Disk,
    headroom: u64,
    /// Known number of bytes still to be copied.
    ahead: u64,
    piece: Vec<u8>,
}

/// An unfinished copy of a file.
struct Begun {
    name: String,
    from: Arc<dyn DiskFile>,
    to: Arc<dyn DiskFile>,
    /// Bytes copied so far.
    at: u64,
}

impl<'a> Copier<'a> {
    pub(crate) fn new(to: &'a dyn Disk, headroom: u64) -> Self {
        Self {
            to,
            headroom,
            ahead: 0,
            piece: vec![0; PIECE],
        }
    }

    /// Announces bytes that will be copied.
    ///
    /// # Errors
    /// [`ErrorKind::Full`] if there is no room for all announced bytes.
    pub(crate) fn expect(&mut self, bytes: u64) -> Result<()> {
        self.ahead += bytes;
        self.check_room(self.ahead)
    }

    /// Copies a file that nobody writes.
    pub(crate) fn copy(&mut self, from: Arc<dyn DiskFile>, name: &str) -> Result<()> {
        let mut copy = self.begin(from, name.to_owned())?;
        self.go_on(&mut copy, u64::MAX)?;
        copy.sync()
    }

    /// Removes everything copied, if the error was that there is no room.
    pub(crate) fn make_room_after(&self, error: &Error) {
        if error.kind() != ErrorKind::Full {
            return;
        }
        for name in self.to.names().unwrap_or_default() {
            let _ = self.to.remove(&name);
        }
    }

    fn begin(&self, from: Arc<dyn DiskFile>, name: String) -> Result<Begun> {
        let to = self.to.create(&name);
        let to = to.map_err(|error| refused(&name, &error))?;
        Ok(Begun {
            name,
            from,
            to,
            at: 0,
        })
    }

    /// Copies up to offset `end`, or the end of the file.
    fn go_on(&mut self, copy: &mut Begun, end: u64) -> Result<()> {
        while copy.at < end {
            let wanted = end.saturating_sub(copy.at).min(PIECE as u64) as usize;
            let read = copy.from.read_at(&mut self.piece[..wanted], copy.at);
            let read = read.map_err(|error| refused(&copy.name, &error))?;
            if read == 0 {
                break;
            }
            self.check_room(self.ahead.max(read as u64))?;
            let written = copy.to.write_at(&self.piece[..read], copy.at);
            written.map_err(|error| refused(&copy.name, &error))?;
            copy.at += read as u64;
            self.ahead = self.ahead.saturating_sub(read as u64);
        }
        Ok(())
    }

    fn check_room(&self, bytes: u64) -> Result<()> {
        check_free(self.to, self.headroom.saturating_add(bytes))
    }
}

impl Begun {
    fn sync(&self) -> Result<()> {
        let synced = self.to.sync();
        synced.map_err(|error| refused(&self.name, &error))
    }
}

/// Returns the error of a failed copy. A write can find the disk full even if it reported free space.
fn refused(name: &str, error: &io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            Error::new(ErrorKind::Full, format!("cannot copy '{name}': {error}"))
        }
        _ => Error::disk("cannot copy", name, error),
    }
}

/// Checks that a disk has `needed` bytes free.
pub(crate) fn check_free(disk: &dyn Disk, needed: u64) -> Result<()> {
    let free = disk.free();
    let free =
        free.map_err(|error| Error::disk("cannot read the free space of", "disk", &error))?;
    if free >= needed {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Full,
        format!(
            "the disk has {free} bytes left, and {needed} are wanted for this and as a reserve"
        ),
    ))
}

/// Ends of the append-only files of a partition, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ends {
    pub(crate) texts: u64,
    pub(crate) sketches: u64,
}

/// An unfinished copy of a partition. The partition can expire meanwhile.
pub(crate) struct CopiedPartition {
    partition: Arc<Partition>,
    texts: Begun,
    /// Cache of sketches, which is optional; if it does not exist, it is not copied.
    sketches: Option<Begun>,
    rows: Option<Begun>,
}

impl CopiedPartition {
    pub(crate) fn begin(
        copier: &Copier<'_>,
        disk: &dyn Disk,
        partition: Arc<Partition>,
    ) -> Result<Self> {
        let names = partition.about.names();
        let sketches = disk.open(&names.sketches()).ok();
        let sketches = sketches.map(|file| copier.begin(file, names.sketches()));
        Ok(Self {
            texts: copier.begin(Arc::clone(&partition.texts_file), names.texts())?,
            sketches: sketches.transpose()?,
            rows: None,
            partition,
        })
    }

    pub(crate) fn names(&self) -> FileNames {
        self.partition.about.names()
    }

    /// Copies what will not change any more. Others may write meanwhile.
    pub(crate) fn copy_up_to(&mut self, copier: &mut Copier<'_>, ends: Ends) -> Result<()> {
        copier.go_on(&mut self.texts, ends.texts)?;
        match &mut self.sketches {
            Some(sketches) => copier.go_on(sketches, ends.sketches),
            None => Ok(()),
        }
    }

    /// Copies the rest of a partition while nobody writes to it. The copy is durable only after
    /// [`sync`](Self::sync).
    pub(crate) fn copy_rest(&mut self, copier: &mut Copier<'_>) -> Result<()> {
        let all = Ends {
            texts: u64::MAX,
            sketches: u64::MAX,
        };
        self.copy_up_to(copier, all)?;
        let rows = Arc::clone(&self.partition.rows_file);
        let mut rows = copier.begin(rows, self.names().rows())?;
        copier.go_on(&mut rows, u64::MAX)?;
        self.rows = Some(rows);
        Ok(())
    }

    pub(crate) fn sync(&self) -> Result<()> {
        let files = [
            Some(&self.texts),
            self.sketches.as_ref(),
            self.rows.as_ref(),
        ];
        files.into_iter().flatten().try_for_each(Begun::sync)
    }
}

/// Returns the bytes of the files of a partition.
pub(crate) fn bytes_of(partition: &Partition, disk: &dyn Disk) -> Result<u64> {
    let length = |file: &dyn DiskFile| {
        let length = file.len();
        length.map_err(|error| Error::disk("cannot read", &partition.name(), &error))
    };
    let sketches = disk.open(&partition.about.names().sketches()).ok();
    let sketches = sketches.map_or(Ok(0), |file| length(&*file))?;
    Ok(length(&*partition.texts_file)? + length(&*partition.rows_file)? + sketches)
}
