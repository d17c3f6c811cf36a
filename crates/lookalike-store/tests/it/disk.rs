//! A simulated disk that can lose power, fail and lie.
//!
//! Until a file is synced, its writes are in doubt: after a power failure, each sector of 512 bytes of each
//! write may or may not be there, and so may each change of length. Names are journaled, as in real file
//! systems: of the changes that were not synced, some first ones are there and the others are not.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex};

use lookalike_store::{Disk, DiskFile};

use crate::support::Random;

const SECTOR: u64 = 512;

/// Message of a read that fails.
pub(crate) const UNREADABLE: &str = "a sector cannot be read";

#[derive(Clone, Debug)]
enum Change {
    Write { at: u64, bytes: Vec<u8> },
    Length(u64),
}

#[derive(Clone, Default, Debug)]
struct Data {
    now: Vec<u8>,
    durable: Vec<u8>,
    doubtful: Vec<Change>,
}

#[derive(Clone, Debug)]
enum Rename {
    Link(String, usize),
    Unlink(String),
}

type Names = BTreeMap<String, usize>;

fn apply_name(names: &mut Names, change: &Rename) {
    match change {
        Rename::Link(name, file) => names.insert(name.clone(), *file),
        Rename::Unlink(name) => names.remove(name),
    };
}

/// A failure of an operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Fault {
    /// Nothing is done.
    Error(io::ErrorKind),
    /// Half of the bytes are written.
    Short,
}

#[derive(Clone, Default)]
struct Inner {
    files: Vec<Data>,
    names: Names,
    durable_names: Names,
    doubtful_names: Vec<Rename>,
    /// Modifying operations so far.
    operations: u64,
    /// Reads so far.
    reads: u64,
    /// Bytes that were written so far.
    written: usize,
    unreadable: Option<u64>,
    refuses_reads: bool,
    lies: bool,
    fault: Option<(u64, Fault)>,
    free: u64,
}

/// Called with the disk before every operation.
type Hook = Arc<dyn Fn(&Simulated, u64) + Send + Sync>;

/// Called with the name of the file and the length of the buffer before every read.
type ReadHook = Arc<dyn Fn(&str, usize) + Send + Sync>;

#[derive(Clone)]
pub(crate) struct Simulated {
    inner: Arc<Mutex<Inner>>,
    hook: Arc<Mutex<Option<Hook>>>,
    read_hook: Arc<Mutex<Option<ReadHook>>>,
}

impl fmt::Debug for Simulated {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Simulated")
    }
}

impl Simulated {
    pub(crate) fn new() -> Self {
        Self::of(Inner {
            free: 1 << 40,
            ..Inner::default()
        })
    }

    fn of(inner: Inner) -> Self {
        Self {
            inner: Arc::new(Mutex::new(inner)),
            hook: Arc::default(),
            read_hook: Arc::default(),
        }
    }

    /// From now on, syncs succeed without doing anything.
    pub(crate) fn lie(&self) {
        self.inner.lock().unwrap().lies = true;
    }

    /// Makes the `operation`-th operation from now on fail once.
    pub(crate) fn fail(&self, operation: u64, fault: Fault) {
        let mut inner = self.inner.lock().unwrap();
        inner.fault = Some((inner.operations + operation, fault));
    }

    /// Makes the `read`-th read from now on fail once.
    pub(crate) fn fail_read(&self, read: u64) {
        let mut inner = self.inner.lock().unwrap();
        inner.unreadable = Some(inner.reads + read);
    }

    /// From now on all reads fail, or none.
    pub(crate) fn refuse_reads(&self, refuses: bool) {
        self.inner.lock().unwrap().refuses_reads = refuses;
    }

    pub(crate) fn reads(&self) -> u64 {
        self.inner.lock().unwrap().reads
    }

    /// Bytes that were written so far.
    pub(crate) fn written(&self) -> usize {
        self.inner.lock().unwrap().written
    }

    /// Bytes that were written to files and not synced.
    pub(crate) fn unsynced(&self) -> usize {
        let inner = self.inner.lock().unwrap();
        let changes = inner.files.iter().flat_map(|file| &file.doubtful);
        let bytes = changes.map(|change| match change {
            Change::Write { bytes, .. } => bytes.len(),
            Change::Length(_) => 0,
        });
        bytes.sum()
    }

    pub(crate) fn set_free(&self, free: u64) {
        self.inner.lock().unwrap().free = free;
    }

    pub(crate) fn operations(&self) -> u64 {
        self.inner.lock().unwrap().operations
    }

    pub(crate) fn set_hook(&self, hook: impl Fn(&Simulated, u64) + Send + Sync + 'static) {
        *self.hook.lock().unwrap() = Some(Arc::new(hook));
    }

    pub(crate) fn set_read_hook(&self, hook: impl Fn(&str, usize) + Send + Sync + 'static) {
        *self.read_hook.lock().unwrap() = Some(Arc::new(hook));
    }

    /// Calls the hook of reads.
    fn observe_read(&self, file: usize, length: usize) {
        let hook = self.read_hook.lock().unwrap().clone();
        if let Some(hook) = hook {
            let names = self.inner.lock().unwrap().names.clone();
            let name = names.iter().find(|&(_, &at)| at == file);
            hook(name.map_or("", |(name, _)| name), length);
        }
    }

    /// Returns the content of all files by name.
    pub(crate) fn contents(&self) -> BTreeMap<String, Vec<u8>> {
        let inner = self.inner.lock().unwrap();
        let names = inner.names.iter();
        names
            .map(|(name, &file)| (name.clone(), inner.files[file].now.clone()))
            .collect()
    }

    /// Returns another disk with the present content, synced or not.
    pub(crate) fn copy(&self) -> Self {
        let inner = self.inner.lock().unwrap().clone();
        let mut copy = Inner {
            free: inner.free,
            names: inner.names.clone(),
            durable_names: inner.names,
            ..Inner::default()
        };
        copy.files = inner
            .files
            .into_iter()
            .map(|data| Data {
                durable: data.now.clone(),
                now: data.now,
                doubtful: Vec::new(),
            })
            .collect();
        Self::of(copy)
    }

    /// Returns the disk as it may be after a power failure now.
    pub(crate) fn after_power_loss(&self, random: &mut Random) -> Self {
        let inner = self.inner.lock().unwrap();
        let mut names = inner.durable_names.clone();
        let arrived = random.below(inner.doubtful_names.len() + 1);
        for change in &inner.doubtful_names[..arrived] {
            apply_name(&mut names, change);
        }
        let percent = [0, 100, 50, random.below(101)][random.below(4)];
        let used: Vec<usize> = names.values().copied().collect();
        let files = inner.files.iter().enumerate().map(|(at, data)| {
            if !used.contains(&at) {
                return Data::default();
            }
            let now = arrived_of(data, percent, random);
            Data {
                durable: now.clone(),
                now,
                doubtful: Vec::new(),
            }
        });
        let files = files.collect();
        Self::of(Inner {
            files,
            durable_names: names.clone(),
            names,
            free: inner.free,
            ..Inner::default()
        })
    }

    /// Flips a bit of a file.
    pub(crate) fn flip(&self, name: &str, at: usize, bit: u8) {
        let mut inner = self.inner.lock().unwrap();
        let file = inner.names[name];
        inner.files[file].now[at] ^= 1 << bit;
        inner.files[file].durable[at] ^= 1 << bit;
    }

    /// Returns the first position of some bytes in a file.
    pub(crate) fn position(&self, name: &str, bytes: &[u8]) -> Option<usize> {
        let inner = self.inner.lock().unwrap();
        let file = &inner.files[inner.names[name]].now;
        file.windows(bytes.len()).position(|there| there == bytes)
    }

    pub(crate) fn length(&self, name: &str) -> usize {
        let inner = self.inner.lock().unwrap();
        inner.files[inner.names[name]].now.len()
    }

    /// Counts an operation and calls the hook before it; returns the fault to apply.
    fn operation(&self) -> Option<Fault> {
        let (number, fault) = {
            let mut inner = self.inner.lock().unwrap();
            inner.operations += 1;
            let number = inner.operations;
            let fault = inner.fault.take_if(|(at, _)| *at == number);
            (number, fault)
        };
        let hook = self.hook.lock().unwrap().clone();
        if let Some(hook) = hook {
            hook(self, number);
        }
        fault.map(|(_, fault)| fault)
    }

    fn change_names(
        &self,
        changes: impl FnOnce(&mut Inner) -> io::Result<Vec<Rename>>,
    ) -> io::Result<()> {
        if let Some(Fault::Error(kind)) = self.operation() {
            return Err(kind.into());
        }
        let mut inner = self.inner.lock().unwrap();
        let changes = changes(&mut inner)?;
        for change in changes {
            apply_name(&mut inner.names, &change);
            inner.doubtful_names.push(change);
        }
        Ok(())
    }

    fn file(&self, file: usize) -> Arc<dyn DiskFile> {
        Arc::new(Open {
            disk: self.clone(),
            file,
        })
    }
}

/// Returns the content of a file that survives a power failure.
fn arrived_of(data: &Data, percent: usize, random: &mut Random) -> Vec<u8> {
    let mut bytes = data.durable.clone();
    for change in &data.doubtful {
        match change {
            Change::Length(length) => {
                if random.chance(percent) {
                    set_length(&mut bytes, *length as usize);
                }
            }
            Change::Write { at, bytes: written } => {
                let end = at + written.len() as u64;
                let mut start = *at;
                while start < end {
                    let next = (start / SECTOR * SECTOR + SECTOR).min(end);
                    if random.chance(percent) {
                        let (from, to) = ((start - at) as usize, (next - at) as usize);
                        write(&mut bytes, start, &written[from..to]);
                    }
                    start = next;
                }
            }
        }
    }
    bytes
}

/// Cuts a file, or fills it up with zeros. A much longer one is allocated anew, because the allocator has zeros at hand, and
/// tests create thousands of databases.
fn set_length(bytes: &mut Vec<u8>, length: usize) {
    if length <= bytes.len() * 2 {
        bytes.resize(length, 0);
        return;
    }
    let mut longer = vec![0; length];
    longer[..bytes.len()].copy_from_slice(bytes);
    *bytes = longer;
}

fn write(bytes: &mut Vec<u8>, at: u64, written: &[u8]) {
    let (start, end) = (at as usize, at as usize + written.len());
    if bytes.len() < end {
        set_length(bytes, end);
    }
    bytes[start..end].copy_from_slice(written);
}

impl Disk for Simulated {
    fn create_file(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let mut file = 0;
        self.change_names(|inner| {
            file = inner.files.len();
            inner.files.push(Data::default());
            Ok(vec![Rename::Link(name.to_owned(), file)])
        })?;
        Ok(self.file(file))
    }

    fn open_file(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let file = self.inner.lock().unwrap().names.get(name).copied();
        Ok(self.file(file.ok_or(io::ErrorKind::NotFound)?))
    }

    fn file_names(&self) -> io::Result<Vec<String>> {
        Ok(self.inner.lock().unwrap().names.keys().cloned().collect())
    }

    fn rename_file(&self, from: &str, to: &str) -> io::Result<()> {
        self.change_names(|inner| {
            let file = *inner.names.get(from).ok_or(io::ErrorKind::NotFound)?;
            // Both are one change of the journal: there is never a moment without either name.
            Ok(vec![
                Rename::Link(to.to_owned(), file),
                Rename::Unlink(from.to_owned()),
            ])
        })
    }

    fn remove_file(&self, name: &str) -> io::Result<()> {
        self.change_names(|inner| {
            inner.names.get(name).ok_or(io::ErrorKind::NotFound)?;
            Ok(vec![Rename::Unlink(name.to_owned())])
        })
    }

    fn sync_names(&self) -> io::Result<()> {
        if let Some(Fault::Error(kind)) = self.operation() {
            return Err(kind.into());
        }
        let mut inner = self.inner.lock().unwrap();
        if !inner.lies {
            inner.doubtful_names.clear();
            inner.durable_names = inner.names.clone();
        }
        Ok(())
    }

    fn free_bytes(&self) -> io::Result<u64> {
        Ok(self.inner.lock().unwrap().free)
    }
}

#[derive(Debug)]
struct Open {
    disk: Simulated,
    file: usize,
}

impl DiskFile for Open {
    fn len(&self) -> io::Result<u64> {
        Ok(self.disk.inner.lock().unwrap().files[self.file].now.len() as u64)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        if let Some(Fault::Error(kind)) = self.disk.operation() {
            return Err(kind.into());
        }
        let mut inner = self.disk.inner.lock().unwrap();
        let data = &mut inner.files[self.file];
        set_length(&mut data.now, len as usize);
        data.doubtful.push(Change::Length(len));
        Ok(())
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.disk.observe_read(self.file, bytes.len());
        let mut inner = self.disk.inner.lock().unwrap();
        inner.reads += 1;
        let read = inner.reads;
        if inner.unreadable.take_if(|at| *at == read).is_some() || inner.refuses_reads {
            return Err(io::Error::other(UNREADABLE));
        }
        let data = &inner.files[self.file].now;
        let there = data.get(offset as usize..).unwrap_or_default();
        let count = there.len().min(bytes.len());
        bytes[..count].copy_from_slice(&there[..count]);
        Ok(count)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let fault = self.disk.operation();
        if let Some(Fault::Error(kind)) = fault {
            return Err(kind.into());
        }
        let short = fault == Some(Fault::Short);
        let bytes = if short {
            &bytes[..bytes.len() / 2]
        } else {
            bytes
        };
        let mut inner = self.disk.inner.lock().unwrap();
        inner.written += bytes.len();
        let data = &mut inner.files[self.file];
        write(&mut data.now, offset, bytes);
        data.doubtful.push(Change::Write {
            at: offset,
            bytes: bytes.to_owned(),
        });
        if short {
            return Err(io::ErrorKind::WriteZero.into());
        }
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        if self.disk.operation().is_some() {
            return Err(io::Error::other("the sync failed"));
        }
        let mut inner = self.disk.inner.lock().unwrap();
        if inner.lies {
            return Ok(());
        }
        let data = &mut inner.files[self.file];
        for change in std::mem::take(&mut data.doubtful) {
            match change {
                Change::Length(length) => set_length(&mut data.durable, length as usize),
                Change::Write { at, bytes } => write(&mut data.durable, at, &bytes),
            }
        }
        Ok(())
    }
}
