//! The segments of an index: opens their files, and writes new ones from rows and from other segments.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;

use lookalike::Distance;
use lookalike::hamming::{FingerprintCode, HammingPlan, HammingSegment, PlanRequest};
use lookalike_io::error::{Error, Result, display_path};
use lookalike_io::sink::AtomicFile;

use super::grams;
use super::ids::{self, IdsWriter, StoredIds};
use super::manifest::{
    FileChecksum, IndexManifest, MatchingEntry, SegmentEntry, UnfingerprintedEntry, file_name,
};
use super::paged::damaged_file;
use super::postings::PostingList;
use super::records::{DocumentRecords, RecordsWriter};
use super::texts::{self, StoredTexts, TextsWriter, UnpackedFrame};
use super::tombstones::Tombstones;
use super::unfingerprinted::UnfingerprintedRows;

/// Largest number of rows in a segment.
pub(super) const MOST_ROWS: u64 = (1 << 31) - 2;

/// Bytes of ids or texts collected before they are put into a file.
const LOT: usize = 1 << 20;

/// Bytes per checksum.
const PIECE: usize = 64 << 10;

/// The ids of a segment.
pub(super) enum SegmentIds {
    /// Consecutive numbers from this one.
    Numbered(u64),
    Stored(StoredIds),
}

impl SegmentIds {
    pub(super) fn id_of_row(&self, row: u64) -> Result<Cow<'_, str>> {
        match self {
            Self::Numbered(first) => Ok(Cow::Owned((first + row).to_string())),
            Self::Stored(ids) => ids.id_of_row(row),
        }
    }
}

/// A segment without its Hamming index.
pub(super) struct SegmentPart {
    pub(super) entry: SegmentEntry,
    pub(super) names: SegmentIds,
    pub(super) texts: Option<StoredTexts>,
    pub(super) unfingerprinted: UnfingerprintedRows,
    pub(super) records: Option<DocumentRecords>,
    pub(super) grams: Option<PostingList>,
    pub(super) removed: Tombstones,
}

/// Opens all of a segment except its Hamming index.
pub(super) fn open_segment_part(index_path: &Path, entry: &SegmentEntry) -> Result<SegmentPart> {
    let path = |extension| index_path.join(file_name(entry.file, extension));
    let fits = |path: &Path, rows: u64, seal: u64, expected: FileChecksum| match rows == entry.rows
        && FileChecksum(seal) == expected
    {
        true => Ok(()),
        false => Err(damaged_file(
            path,
            "it is not the file that the manifest names",
        )),
    };
    let names = match (entry.first, entry.ids) {
        (_, Some(seal)) => {
            let path = path("ids");
            let ids = StoredIds::open_file(&path)?;
            fits(&path, ids.len(), ids.file_checksum(), seal)?;
            SegmentIds::Stored(ids)
        }
        (first, None) => SegmentIds::Numbered(first.unwrap_or(1)),
    };
    let texts = match entry.texts {
        None => None,
        Some(seal) => {
            let path = path("texts");
            let texts = StoredTexts::open_file(&path)?;
            fits(&path, texts.len(), texts.file_checksum(), seal)?;
            Some(texts)
        }
    };
    let unfingerprinted = match &entry.poor {
        None => UnfingerprintedRows::default(),
        Some(of) => {
            let path = path("poor");
            let (unfingerprinted, seal) = UnfingerprintedRows::read_file(&path, entry.rows)?;
            fits(
                &path,
                entry.rows - of.rows + unfingerprinted.row_count(),
                seal,
                of.seal,
            )?;
            unfingerprinted
        }
    };
    let records = match &entry.matching {
        None => None,
        Some(matching) => {
            let records =
                DocumentRecords::open_files(index_path, entry.file, matching.signatures.is_some())?;
            let expected = (matching.records, matching.signatures);
            if records.len() != entry.rows || records.file_checksums() != expected {
                let path = path("records");
                return Err(damaged_file(
                    &path,
                    "it is not the file that the manifest names",
                ));
            }
            Some(records)
        }
    };
    let grams = match entry.grams {
        None => None,
        Some(seal) => Some(grams::open_grams(index_path, entry.file, seal)?),
    };
    let removed = match &entry.removed {
        None => Tombstones::without_rows(),
        Some(removed) => {
            let path = index_path.join(file_name(removed.file, "removed"));
            let (bits, seal) = Tombstones::read_file(&path, entry.rows)?;
            if bits.count_removed() != removed.rows || FileChecksum(seal) != removed.seal {
                return Err(damaged_file(
                    &path,
                    "it is not the file that the manifest names",
                ));
            }
            bits
        }
    };
    Ok(SegmentPart {
        entry: entry.clone(),
        names,
        texts,
        unfingerprinted,
        records,
        grams,
        removed,
    })
}

/// Writes the rows without a fingerprint, if there are any.
pub(super) fn write_unfingerprinted(
    index_path: &Path,
    file: u64,
    unfingerprinted: &UnfingerprintedRows,
) -> Result<Option<UnfingerprintedEntry>> {
    if unfingerprinted.row_count() == 0 {
        return Ok(None);
    }
    let seal = unfingerprinted.write_file(&index_path.join(file_name(file, "poor")))?;
    Ok(Some(UnfingerprintedEntry {
        rows: unfingerprinted.row_count(),
        gone: 0,
        seal: FileChecksum(seal),
    }))
}

/// Opens the Hamming index of a segment.
pub(super) fn open_index<C: FingerprintCode>(
    index_path: &Path,
    manifest: &IndexManifest,
    entry: &SegmentEntry,
) -> Result<HammingSegment<C>> {
    let path = index_path.join(file_name(entry.file, "codes"));
    let metadata = std::fs::metadata(&path)
        .map_err(|cause| Error::read_error("read", display_path(&path), cause))?;
    if metadata.len() != entry.bytes {
        let what = format!("it has {} bytes instead of {}", metadata.len(), entry.bytes);
        return Err(damaged_file(&path, &what));
    }
    let index = HammingSegment::<C>::open_file(&path)?;
    let plan = index.plan();
    if index.len() as u64 != entry.rows
        || plan.fingerprint_bits() != manifest.bits
        || plan.distance().get() < manifest.distance
    {
        return Err(damaged_file(
            &path,
            "it is not the file that the manifest names",
        ));
    }
    Ok(index)
}

/// Returns the checksum of a whole file, as [`ChecksumWriter`] computes it.
pub(super) fn checksum_of_file(path: &Path) -> Result<FileChecksum> {
    let failed = |cause| Error::read_error("read", display_path(path), cause);
    let mut file = File::open(path).map_err(failed)?;
    let mut sealing = ChecksumWriter::new(io::sink());
    let mut piece = vec![0; PIECE];
    loop {
        let length = file.read(&mut piece).map_err(failed)?;
        if length == 0 {
            return Ok(sealing.finish_checksum().map_err(failed)?.0);
        }
        sealing.write_all(&piece[..length]).map_err(failed)?;
    }
}

/// Writes bytes through and computes their checksum in pieces.
struct ChecksumWriter<W> {
    to: W,
    piece: Vec<u8>,
    checksums: Vec<u8>,
    bytes: u64,
}

impl<W: Write> ChecksumWriter<W> {
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

    fn finish_checksum(mut self) -> io::Result<(FileChecksum, u64, W)> {
        if !self.piece.is_empty() {
            self.piece_done()?;
        }
        self.checksums.extend(self.bytes.to_le_bytes());
        Ok((
            FileChecksum(lookalike::value_hash(&self.checksums)),
            self.bytes,
            self.to,
        ))
    }
}

impl<W: Write> Write for ChecksumWriter<W> {
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
pub(super) fn write_index<C: FingerprintCode>(
    index_path: &Path,
    manifest: &IndexManifest,
    kept: &[SegmentEntry],
    file: u64,
    codes: &[C],
) -> Result<(FileChecksum, u64)> {
    let rows: u64 = kept.iter().map(|entry| entry.rows).sum();
    HammingPlan::check_count(&manifest.plan, rows + codes.len() as u64)?;
    let others: u64 = kept.iter().map(|entry| entry.bytes).sum();
    let request = PlanRequest {
        count: codes.len() as u64,
        bits: manifest.bits,
        distance: Distance::new(manifest.distance, manifest.bits)?,
        memory: manifest.memory.map(|memory| memory.saturating_sub(others)),
    };
    let plan = HammingPlan::from_name(&manifest.plan, &request)?;
    let index = HammingSegment::build_index(&plan, codes)?;
    let path = index_path.join(file_name(file, "codes"));
    let output = AtomicFile::create_for(&path)?;
    let failed = |cause| Error::write_error("write", display_path(&path), cause);
    let mut sealing = ChecksumWriter::new(BufWriter::with_capacity(4 * PIECE, output.as_file()));
    index.write_file(&mut sealing).map_err(failed)?;
    let (seal, bytes, mut buffered) = sealing.finish_checksum().map_err(failed)?;
    buffered.flush().map_err(failed)?;
    drop(buffered);
    output.commit_file()?;
    Ok((seal, bytes))
}

/// Rows for a new segment: either new rows in memory or the rows of an existing segment.
pub(super) struct SegmentSource<C> {
    /// The fingerprint of every row; a placeholder for rows without one.
    pub(super) codes: Vec<C>,
    pub(super) part: SegmentPart,
}

impl<C: FingerprintCode> SegmentSource<C> {
    /// Opens an existing segment as a source.
    pub(super) fn open_segment(
        index_path: &Path,
        manifest: &IndexManifest,
        entry: &SegmentEntry,
    ) -> Result<Self> {
        let part = open_segment_part(index_path, entry)?;
        let index = open_index::<C>(index_path, manifest, entry)?;
        let mut codes = vec![C::default(); index.len()];
        index.visit_rows(|row, code| codes[row as usize] = code);
        Ok(Self { codes, part })
    }

    fn kept_rows(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.codes.len() as u32).filter(|&row| !self.part.removed.contains_row(row))
    }
}

/// Writes one segment with the rows of several, without removed rows.
pub(super) fn merge_segments<C: FingerprintCode>(
    index_path: &Path,
    manifest: &mut IndexManifest,
    kept: &[SegmentEntry],
    sources: Vec<SegmentSource<C>>,
) -> Result<SegmentEntry> {
    let file = manifest.next_file;
    manifest.next_file += 1;
    let first = common_numbers(&sources);
    let ids = match first {
        Some(_) => None,
        None => Some(write_merged_ids(
            &index_path.join(file_name(file, "ids")),
            &sources,
        )?),
    };
    let texts = match manifest.texts {
        true => Some(merge_texts(
            &index_path.join(file_name(file, "texts")),
            &sources,
        )?),
        false => None,
    };
    let unfingerprinted =
        write_unfingerprinted(index_path, file, &merge_unfingerprinted(&sources))?;
    let matching = match manifest.matching {
        true => Some(merge_records(index_path, file, &sources)?),
        false => None,
    };
    let grams = match manifest.passages {
        Some(_) => {
            let parts: Vec<_> = sources.iter().map(|source| &source.part).collect();
            Some(grams::merge_grams(index_path, file, &parts)?)
        }
        None => None,
    };
    let mut sources = sources.into_iter();
    let mut codes = Vec::new();
    if let Some(first) = sources.next() {
        codes = without_removed(first);
    }
    for source in sources {
        codes.append(&mut without_removed(source));
    }
    let (seal, bytes) = write_index(index_path, manifest, kept, file, &codes)?;
    Ok(SegmentEntry {
        file,
        rows: codes.len() as u64,
        codes: seal,
        bytes,
        first,
        ids,
        texts,
        poor: unfingerprinted,
        matching,
        grams,
        removed: None,
    })
}

fn merge_records<C: FingerprintCode>(
    index_path: &Path,
    file: u64,
    sources: &[SegmentSource<C>],
) -> Result<MatchingEntry> {
    let records = || sources.iter().map(|source| source.part.records.as_ref());
    let slots = records()
        .flatten()
        .find_map(DocumentRecords::signature_slots);
    let mut writer = RecordsWriter::create_files(index_path, file, slots.unwrap_or(0) as usize)?;
    for (source, records) in sources.iter().zip(records()) {
        if let Some(records) = records {
            writer.copy_rows(records, &source.part.removed)?;
        }
    }
    let (_, signatures) = writer.finish_files()?;
    DocumentRecords::open_files(index_path, file, signatures.is_some())?
        .write_postings(index_path, file)
}

fn merge_unfingerprinted<C: FingerprintCode>(sources: &[SegmentSource<C>]) -> UnfingerprintedRows {
    let mut base = 0;
    let mut all = Vec::new();
    for source in sources {
        let SegmentPart {
            unfingerprinted,
            removed,
            ..
        } = &source.part;
        let gone_before = removed.rank_before();
        let entries = unfingerprinted.sorted_entries().iter();
        let left = entries.filter(|&&(_, row)| !removed.contains_row(row));
        all.extend(left.map(|&(key, row)| (key, base + row - gone_before(row))));
        base += source.codes.len() as u32 - removed.count_removed() as u32;
    }
    UnfingerprintedRows::from_unsorted(all)
}

fn without_removed<C: FingerprintCode>(source: SegmentSource<C>) -> Vec<C> {
    if source.part.removed.count_removed() == 0 {
        return source.codes;
    }
    source
        .kept_rows()
        .map(|row| source.codes[row as usize])
        .collect()
}

/// Returns the number of the first row if all rows are numbered consecutively.
fn common_numbers<C: FingerprintCode>(sources: &[SegmentSource<C>]) -> Option<u64> {
    let mut next = None;
    let mut first = None;
    for source in sources {
        let SegmentIds::Numbered(own) = source.part.names else {
            return None;
        };
        if source.part.removed.count_removed() > 0 || next.is_some_and(|next| next != own) {
            return None;
        }
        first = first.or(Some(own));
        next = Some(own + source.codes.len() as u64);
    }
    first
}

fn write_merged_ids<C: FingerprintCode>(
    path: &Path,
    sources: &[SegmentSource<C>],
) -> Result<FileChecksum> {
    let mut writer = IdsWriter::create_file(path)?;
    let mut lot = ids::IdLot::default();
    for source in sources {
        let mut push = |row: u64, id: &str| {
            if !source.part.removed.contains_row(row as u32) {
                lot.push_id(id);
            }
            if lot.byte_count() >= LOT {
                writer.put_lot(&lot)?;
                lot.clear_ids();
            }
            Ok(())
        };
        match &source.part.names {
            SegmentIds::Stored(ids) => ids.visit_ids(push)?,
            SegmentIds::Numbered(first) => (0..source.codes.len() as u64)
                .try_for_each(|row| push(row, &(first + row).to_string()))?,
        }
    }
    writer.put_lot(&lot)?;
    Ok(FileChecksum(writer.finish_file()?))
}

fn merge_texts<C: FingerprintCode>(
    path: &Path,
    sources: &[SegmentSource<C>],
) -> Result<FileChecksum> {
    let mut writer = TextsWriter::create_file(path)?;
    for source in sources {
        let Some(texts) = &source.part.texts else {
            continue;
        };
        if source.part.removed.count_removed() == 0 {
            writer.copy_texts(texts)?;
            continue;
        }
        let (mut lot, mut unpacked) = (texts::TextLot::default(), UnpackedFrame::default());
        for row in source.kept_rows() {
            lot.push_text(texts.text_of_row(row.into(), &mut unpacked)?)?;
            if lot.byte_count() >= LOT {
                lot.close_frame()?;
                writer.put_lot(&lot)?;
                lot.clear_texts();
            }
        }
        lot.close_frame()?;
        writer.put_lot(&lot)?;
    }
    Ok(FileChecksum(writer.finish_file()?))
}
