//! The segments of an index: opens their files, and writes new ones from rows and from other segments.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;

use lookalike::Distance;
use lookalike::hamming::{Code, Plan, Request, Segment};

use super::ids::{self, Ids, IdsWriter};
use super::manifest::{Manifest, MatchingEntry, PoorEntry, Seal, SegmentEntry, file_name};
use super::paged::damaged;
use super::poor::Poor;
use super::records::{Records, RecordsWriter};
use super::removed::Removed;
use super::texts::{self, Texts, TextsWriter, Unpacked};
use crate::error::{Error, Result, shown};
use crate::sink::AtomicFile;

/// Largest number of rows in a segment.
pub(super) const MOST_ROWS: u64 = (1 << 31) - 2;

/// Bytes of ids or texts collected before they are put into a file.
const LOT: usize = 1 << 20;

/// Bytes per checksum.
const PIECE: usize = 64 << 10;

/// The ids of a segment.
pub(super) enum Names {
    /// Consecutive numbers from this one.
    Numbered(u64),
    Stored(Ids),
}

impl Names {
    pub(super) fn get(&self, row: u64) -> Result<Cow<'_, str>> {
        match self {
            Self::Numbered(first) => Ok(Cow::Owned((first + row).to_string())),
            Self::Stored(ids) => ids.get(row),
        }
    }
}

/// A segment without its Hamming index.
pub(super) struct Part {
    pub(super) entry: SegmentEntry,
    pub(super) names: Names,
    pub(super) texts: Option<Texts>,
    pub(super) poor: Poor,
    pub(super) records: Option<Records>,
    pub(super) removed: Removed,
}

/// Opens all of a segment except its Hamming index.
pub(super) fn open_part(library: &Path, entry: &SegmentEntry) -> Result<Part> {
    let path = |extension| library.join(file_name(entry.file, extension));
    let fits = |path: &Path, rows: u64, seal: u64, expected: Seal| match rows == entry.rows
        && Seal(seal) == expected
    {
        true => Ok(()),
        false => Err(damaged(path, "it is not the file that the manifest names")),
    };
    let names = match (entry.first, entry.ids) {
        (_, Some(seal)) => {
            let path = path("ids");
            let ids = Ids::open(&path)?;
            fits(&path, ids.len(), ids.seal(), seal)?;
            Names::Stored(ids)
        }
        (first, None) => Names::Numbered(first.unwrap_or(1)),
    };
    let texts = match entry.texts {
        None => None,
        Some(seal) => {
            let path = path("texts");
            let texts = Texts::open(&path)?;
            fits(&path, texts.len(), texts.seal(), seal)?;
            Some(texts)
        }
    };
    let poor = match &entry.poor {
        None => Poor::default(),
        Some(of) => {
            let path = path("poor");
            let (poor, seal) = Poor::read(&path, entry.rows)?;
            fits(&path, entry.rows - of.rows + poor.count(), seal, of.seal)?;
            poor
        }
    };
    let records = match &entry.matching {
        None => None,
        Some(matching) => {
            let records = Records::open(library, entry.file, matching.signatures.is_some())?;
            let expected = (matching.records, matching.signatures);
            if records.len() != entry.rows || records.seals() != expected {
                let path = path("records");
                return Err(damaged(&path, "it is not the file that the manifest names"));
            }
            Some(records)
        }
    };
    let removed = match &entry.removed {
        None => Removed::none(),
        Some(removed) => {
            let path = library.join(file_name(removed.file, "removed"));
            let (bits, seal) = Removed::read(&path, entry.rows)?;
            if bits.count() != removed.rows || Seal(seal) != removed.seal {
                return Err(damaged(&path, "it is not the file that the manifest names"));
            }
            bits
        }
    };
    Ok(Part {
        entry: entry.clone(),
        names,
        texts,
        poor,
        records,
        removed,
    })
}

/// Writes the rows without a fingerprint, if there are any.
pub(super) fn write_poor(library: &Path, file: u64, poor: &Poor) -> Result<Option<PoorEntry>> {
    if poor.count() == 0 {
        return Ok(None);
    }
    let seal = poor.write(&library.join(file_name(file, "poor")))?;
    Ok(Some(PoorEntry {
        rows: poor.count(),
        gone: 0,
        seal: Seal(seal),
    }))
}

/// Opens the Hamming index of a segment.
pub(super) fn open_index<C: Code>(
    library: &Path,
    manifest: &Manifest,
    entry: &SegmentEntry,
) -> Result<Segment<C>> {
    let path = library.join(file_name(entry.file, "codes"));
    let metadata =
        std::fs::metadata(&path).map_err(|cause| Error::reading("read", shown(&path), cause))?;
    if metadata.len() != entry.bytes {
        let what = format!("it has {} bytes instead of {}", metadata.len(), entry.bytes);
        return Err(damaged(&path, &what));
    }
    let index = Segment::<C>::open(&path)?;
    let plan = index.plan();
    if index.len() as u64 != entry.rows
        || plan.bits() != manifest.bits
        || plan.distance().get() < manifest.distance
    {
        return Err(damaged(&path, "it is not the file that the manifest names"));
    }
    Ok(index)
}

/// Returns the checksum of a whole file, as [`Sealing`] computes it.
pub(super) fn seal_of(path: &Path) -> Result<Seal> {
    let failed = |cause| Error::reading("read", shown(path), cause);
    let mut file = File::open(path).map_err(failed)?;
    let mut sealing = Sealing::new(io::sink());
    let mut piece = vec![0; PIECE];
    loop {
        let length = file.read(&mut piece).map_err(failed)?;
        if length == 0 {
            return Ok(sealing.finish().map_err(failed)?.0);
        }
        sealing.write_all(&piece[..length]).map_err(failed)?;
    }
}

/// Writes bytes through and computes their checksum in pieces.
struct Sealing<W> {
    to: W,
    piece: Vec<u8>,
    checksums: Vec<u8>,
    bytes: u64,
}

impl<W: Write> Sealing<W> {
    fn new(to: W) -> Self {
        Self {
            to,
            piece: Vec::with_capacity(PIECE),
            checksums: Vec::new(),
            bytes: 0,
        }
    }

    fn piece_done(&mut self) -> io::Result<()> {
        self.checksums
            .extend(lookalike::value_hash(&self.piece).to_le_bytes());
        self.to.write_all(&self.piece)?;
        self.piece.clear();
        Ok(())
    }

    fn finish(mut self) -> io::Result<(Seal, u64, W)> {
        if !self.piece.is_empty() {
            self.piece_done()?;
        }
        self.checksums.extend(self.bytes.to_le_bytes());
        Ok((
            Seal(lookalike::value_hash(&self.checksums)),
            self.bytes,
            self.to,
        ))
    }
}

impl<W: Write> Write for Sealing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(PIECE - self.piece.len());
        self.piece.extend_from_slice(&bytes[..taken]);
        self.bytes += taken as u64;
        if self.piece.len() == PIECE {
            self.piece_done()?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Builds and writes the Hamming index of a new segment. Returns its checksum and size.
pub(super) fn write_index<C: Code>(
    library: &Path,
    manifest: &Manifest,
    kept: &[SegmentEntry],
    file: u64,
    codes: &[C],
) -> Result<(Seal, u64)> {
    let others: u64 = kept.iter().map(|entry| entry.bytes).sum();
    let request = Request {
        count: codes.len() as u64,
        bits: manifest.bits,
        distance: Distance::new(manifest.distance, manifest.bits)?,
        memory: manifest.memory.map(|memory| memory.saturating_sub(others)),
    };
    let plan = Plan::named(&manifest.plan, &request)?;
    let index = Segment::build(&plan, codes)?;
    let path = library.join(file_name(file, "codes"));
    let output = AtomicFile::create(&path)?;
    let failed = |cause| Error::writing("write", shown(&path), cause);
    let mut sealing = Sealing::new(BufWriter::with_capacity(4 * PIECE, output.file()));
    index.write(&mut sealing).map_err(failed)?;
    let (seal, bytes, mut buffered) = sealing.finish().map_err(failed)?;
    buffered.flush().map_err(failed)?;
    drop(buffered);
    output.commit()?;
    Ok((seal, bytes))
}

/// Rows for a new segment: either new rows in memory or the rows of an existing segment.
pub(super) struct Source<C> {
    /// The fingerprint of every row; a placeholder for rows without one.
    pub(super) codes: Vec<C>,
    pub(super) part: Part,
}

impl<C: Code> Source<C> {
    /// Opens an existing segment as a source.
    pub(super) fn of(library: &Path, manifest: &Manifest, entry: &SegmentEntry) -> Result<Self> {
        let part = open_part(library, entry)?;
        let index = open_index::<C>(library, manifest, entry)?;
        let mut codes = vec![C::default(); index.len()];
        index.for_each(|row, code| codes[row as usize] = code);
        Ok(Self { codes, part })
    }

    fn kept(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.codes.len() as u32).filter(|&row| !self.part.removed.contains(row))
    }
}

/// Writes one segment with the rows of several, without removed rows.
pub(super) fn merge<C: Code>(
    library: &Path,
    manifest: &mut Manifest,
    kept: &[SegmentEntry],
    sources: Vec<Source<C>>,
) -> Result<SegmentEntry> {
    let file = manifest.next_file;
    manifest.next_file += 1;
    let first = common_numbers(&sources);
    let ids = match first {
        Some(_) => None,
        None => Some(merge_ids(&library.join(file_name(file, "ids")), &sources)?),
    };
    let texts = match manifest.texts {
        true => Some(merge_texts(
            &library.join(file_name(file, "texts")),
            &sources,
        )?),
        false => None,
    };
    let poor = write_poor(library, file, &merge_poor(&sources))?;
    let matching = match manifest.matching {
        true => Some(merge_records(library, file, &sources)?),
        false => None,
    };
    let mut sources = sources.into_iter();
    let mut codes = Vec::new();
    if let Some(first) = sources.next() {
        codes = without_removed(first);
    }
    for source in sources {
        codes.append(&mut without_removed(source));
    }
    let (seal, bytes) = write_index(library, manifest, kept, file, &codes)?;
    Ok(SegmentEntry {
        file,
        rows: codes.len() as u64,
        codes: seal,
        bytes,
        first,
        ids,
        texts,
        poor,
        matching,
        removed: None,
    })
}

fn merge_records<C: Code>(
    library: &Path,
    file: u64,
    sources: &[Source<C>],
) -> Result<MatchingEntry> {
    let records = || sources.iter().map(|source| source.part.records.as_ref());
    let slots = records().flatten().find_map(Records::slots);
    let mut writer = RecordsWriter::create(library, file, slots.unwrap_or(0) as usize)?;
    for (source, records) in sources.iter().zip(records()) {
        if let Some(records) = records {
            writer.copy(records, &source.part.removed)?;
        }
    }
    let (_, signatures) = writer.finish()?;
    Records::open(library, file, signatures.is_some())?.write_postings(library, file)
}

fn merge_poor<C: Code>(sources: &[Source<C>]) -> Poor {
    let mut base = 0;
    let mut all = Vec::new();
    for source in sources {
        let Part { poor, removed, .. } = &source.part;
        let gone_before = removed.ranks();
        let entries = poor.entries().iter();
        let left = entries.filter(|&&(_, row)| !removed.contains(row));
        all.extend(left.map(|&(key, row)| (key, base + row - gone_before(row))));
        base += source.codes.len() as u32 - removed.count() as u32;
    }
    Poor::of(all)
}

fn without_removed<C: Code>(source: Source<C>) -> Vec<C> {
    if source.part.removed.count() == 0 {
        return source.codes;
    }
    source
        .kept()
        .map(|row| source.codes[row as usize])
        .collect()
}

/// Returns the number of the first row if all rows are numbered consecutively.
fn common_numbers<C: Code>(sources: &[Source<C>]) -> Option<u64> {
    let mut next = None;
    let mut first = None;
    for source in sources {
        let Names::Numbered(own) = source.part.names else {
            return None;
        };
        if source.part.removed.count() > 0 || next.is_some_and(|next| next != own) {
            return None;
        }
        first = first.or(Some(own));
        next = Some(own + source.codes.len() as u64);
    }
    first
}

fn merge_ids<C: Code>(path: &Path, sources: &[Source<C>]) -> Result<Seal> {
    let mut writer = IdsWriter::create(path)?;
    let mut lot = ids::Lot::default();
    for source in sources {
        let mut push = |row: u64, id: &str| {
            if !source.part.removed.contains(row as u32) {
                lot.push(id);
            }
            if lot.bytes() >= LOT {
                writer.put(&lot)?;
                lot.clear();
            }
            Ok(())
        };
        match &source.part.names {
            Names::Stored(ids) => ids.for_each(push)?,
            Names::Numbered(first) => (0..source.codes.len() as u64)
                .try_for_each(|row| push(row, &(first + row).to_string()))?,
        }
    }
    writer.put(&lot)?;
    Ok(Seal(writer.finish()?))
}

fn merge_texts<C: Code>(path: &Path, sources: &[Source<C>]) -> Result<Seal> {
    let mut writer = TextsWriter::create(path)?;
    for source in sources {
        let Some(texts) = &source.part.texts else {
            continue;
        };
        if source.part.removed.count() == 0 {
            writer.copy(texts)?;
            continue;
        }
        let (mut lot, mut unpacked) = (texts::Lot::default(), Unpacked::default());
        for row in source.kept() {
            lot.push(texts.get(row.into(), &mut unpacked)?)?;
            if lot.bytes() >= LOT {
                lot.close()?;
                writer.put(&lot)?;
                lot.clear();
            }
        }
        lot.close()?;
        writer.put(&lot)?;
    }
    Ok(Seal(writer.finish()?))
}
