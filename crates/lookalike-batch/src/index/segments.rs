//! The segments of an index: opens their files, and writes new ones from rows and from other segments.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use lookalike::hamming::{FingerprintCode, HammingPlan, HammingSegment, PlanRequest};
use lookalike::{Distance, ErrorKind as EngineErrorKind};
use lookalike_io::error::{Error, Result, display_path};
use lookalike_io::sink::AtomicFile;

use crate::index::build_space::BuildSpace;
use crate::index::counts::merge_counts;
use crate::index::ids::{IdsWriter, StoredIds};
use crate::index::manifest::{
    IndexManifest, MatchingEntry, SegmentEntry, UnfingerprintedEntry, file_name,
};
use crate::index::paged::damaged_file;
use crate::index::postings::PostingList;
use crate::index::records::{DocumentRecords, RecordsWriter};
use crate::index::row_set::RowSet;
use crate::index::spill_buffer::FingerprintSpool;
use crate::index::spill_buffer::spill_failed;
use crate::index::texts::{StoredTexts, TextsWriter, UnpackedFrame};
use crate::index::tombstones::read_tombstones;
use crate::index::unfingerprinted::UnfingerprintedRows;
use crate::index::{grams, ids, texts};
use crate::sealed_manifest::FileChecksum;

/// Largest number of rows in a segment.
pub(super) const MOST_ROWS: u64 = (1 << 31) - 2;

/// Bytes of ids or texts collected before they are put into a file.
const BATCH_BYTES: usize = 1 << 20;

/// Bytes per checksum.
const CHECKSUM_PIECE_BYTES: usize = 64 << 10;

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

/// The opened files of a segment, without its Hamming index.
pub(super) struct StoredSegment {
    pub(super) entry: SegmentEntry,
    pub(super) ids: SegmentIds,
    pub(super) texts: Option<StoredTexts>,
    pub(super) unfingerprinted: UnfingerprintedRows,
    pub(super) records: Option<DocumentRecords>,
    pub(super) grams: Option<PostingList>,
    pub(super) removed: RowSet,
}

impl StoredSegment {
    /// Keeps only the pages of files that were read last from now on, because all rows are read once and in order.
    pub(super) fn keep_recent_pages(&mut self) {
        if let SegmentIds::Stored(ids) = &mut self.ids {
            ids.keep_recent_pages();
        }
        if let Some(texts) = &mut self.texts {
            texts.keep_recent_pages();
        }
        if let Some(records) = &mut self.records {
            records.keep_recent_pages();
        }
        if let Some(grams) = &mut self.grams {
            grams.keep_recent_pages();
        }
    }
}

/// Opens all of a segment except its Hamming index.
pub(super) fn open_stored_segment(
    index_path: &Path,
    entry: &SegmentEntry,
) -> Result<StoredSegment> {
    let path = |extension| index_path.join(file_name(entry.file, extension));
    let ids = match (entry.first, entry.ids) {
        (_, Some(seal)) => {
            let path = path("ids");
            let ids = StoredIds::open_file(&path)?;
            entry.check_file(&path, ids.len(), FileChecksum(ids.seal()), seal)?;
            SegmentIds::Stored(ids)
        }
        (first, None) => SegmentIds::Numbered(first.unwrap_or(1)),
    };
    let texts = match entry.texts {
        None => None,
        Some(seal) => {
            let path = path("texts");
            let texts = StoredTexts::open_file(&path)?;
            entry.check_file(&path, texts.len(), FileChecksum(texts.seal()), seal)?;
            Some(texts)
        }
    };
    let open_grams = |seal| grams::open_grams(index_path, entry.file, seal);
    Ok(StoredSegment {
        entry: entry.clone(),
        ids,
        texts,
        unfingerprinted: open_unfingerprinted(&path("poor"), entry)?,
        records: open_records(index_path, entry)?,
        grams: entry.grams.map(open_grams).transpose()?,
        removed: open_removed(index_path, entry)?,
    })
}

impl SegmentEntry {
    /// Checks that a file has the rows of the segment and the checksum that the manifest expects.
    fn check_file(
        &self,
        path: &Path,
        rows: u64,
        checksum: FileChecksum,
        expected: FileChecksum,
    ) -> Result<()> {
        if rows == self.rows && checksum == expected {
            Ok(())
        } else {
            Err(refuse_other_file(path))
        }
    }
}

fn refuse_other_file(path: &Path) -> Error {
    damaged_file(path, "it is not the file that the manifest names")
}

fn open_unfingerprinted(path: &Path, entry: &SegmentEntry) -> Result<UnfingerprintedRows> {
    let Some(expected) = &entry.unfingerprinted else {
        return Ok(UnfingerprintedRows::default());
    };
    let (unfingerprinted, seal) = UnfingerprintedRows::read_file(path, entry.rows)?;
    let is_expected =
        unfingerprinted.row_count() == expected.rows && FileChecksum(seal) == expected.seal;
    if is_expected {
        Ok(unfingerprinted)
    } else {
        Err(refuse_other_file(path))
    }
}

fn open_records(index_path: &Path, entry: &SegmentEntry) -> Result<Option<DocumentRecords>> {
    let Some(matching) = &entry.matching else {
        return Ok(None);
    };
    let has_signatures = matching.signatures.is_some();
    let records = DocumentRecords::open_files(index_path, entry.file, has_signatures)?;
    let expected = (matching.records, matching.signatures);
    if records.len() != entry.rows || records.file_checksums() != expected {
        let path = index_path.join(file_name(entry.file, "records"));
        return Err(refuse_other_file(&path));
    }
    Ok(Some(records))
}

fn open_removed(index_path: &Path, entry: &SegmentEntry) -> Result<RowSet> {
    let Some(removed) = &entry.removed else {
        return Ok(RowSet::new());
    };
    let path = index_path.join(file_name(removed.file, "removed"));
    let (rows, seal) = read_tombstones(&path, entry.rows)?;
    if rows.count_rows() != removed.rows || FileChecksum(seal) != removed.seal {
        return Err(refuse_other_file(&path));
    }
    Ok(rows)
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
        removed: 0,
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
        return Err(refuse_other_file(&path));
    }
    Ok(index)
}

/// Returns the checksum of a whole file, as [`ChecksumWriter`] computes it.
pub(super) fn checksum_of_file(path: &Path) -> Result<FileChecksum> {
    let failed = |cause| Error::read_error("read", display_path(path), cause);
    let mut file = File::open(path).map_err(failed)?;
    let mut sealing = ChecksumWriter::new(io::sink());
    let mut piece = vec![0; CHECKSUM_PIECE_BYTES];
    loop {
        let length = file.read(&mut piece).map_err(failed)?;
        if length == 0 {
            let (checksums, bytes) = sealing.finish_pieces().map_err(failed)?;
            return Ok(checksum_of_pieces(checksums, bytes));
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
            piece: Vec::with_capacity(CHECKSUM_PIECE_BYTES),
            checksums: Vec::new(),
            bytes: 0,
        }
    }

    fn put_piece(&mut self, piece: &[u8]) -> io::Result<()> {
        self.checksums
            .extend(lookalike::value_hash(piece).to_le_bytes());
        self.to.write_all(piece)
    }

    /// Ends the last piece, and returns the checksums of all pieces and the number of bytes.
    fn finish_pieces(mut self) -> io::Result<(Vec<u8>, u64)> {
        let piece = std::mem::take(&mut self.piece);
        if !piece.is_empty() {
            self.put_piece(&piece)?;
        }
        Ok((self.checksums, self.bytes))
    }
}

impl<W: Write> Write for ChecksumWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let length = bytes.len().min(CHECKSUM_PIECE_BYTES - self.piece.len());
        self.bytes += length as u64;
        if length == CHECKSUM_PIECE_BYTES {
            // A whole piece is not copied first: most bytes of a large file come in large writes.
            self.put_piece(&bytes[..length])?;
            return Ok(length);
        }
        self.piece.extend_from_slice(&bytes[..length]);
        if self.piece.len() == CHECKSUM_PIECE_BYTES {
            let mut piece = std::mem::take(&mut self.piece);
            self.put_piece(&piece)?;
            piece.clear();
            self.piece = piece;
        }
        Ok(length)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the checksum of a file by those of its pieces and its length.
fn checksum_of_pieces(mut checksums: Vec<u8>, bytes: u64) -> FileChecksum {
    checksums.extend(bytes.to_le_bytes());
    FileChecksum(lookalike::value_hash(&checksums))
}

/// Writes a file whose front is known only at the end. The pieces with the front stay in memory until then.
struct FrontedWriter<'a> {
    file: &'a File,
    front_pieces: Vec<u8>,
    front_capacity: usize,
    behind: ChecksumWriter<&'a File>,
}

impl<'a> FrontedWriter<'a> {
    fn new(mut file: &'a File, front_length: usize) -> io::Result<Self> {
        let front_capacity = front_length.next_multiple_of(CHECKSUM_PIECE_BYTES);
        file.seek(SeekFrom::Start(front_capacity as u64))?;
        Ok(Self {
            file,
            front_pieces: vec![0; front_length],
            front_capacity,
            behind: ChecksumWriter::new(file),
        })
    }

    /// Writes the front. Returns the checksum of the file and its length.
    fn finish_file(mut self, front: &[u8]) -> io::Result<(FileChecksum, u64)> {
        let (behind, bytes_behind) = self.behind.finish_pieces()?;
        self.front_pieces[..front.len()].copy_from_slice(front);
        let mut file = self.file;
        file.seek(SeekFrom::Start(0))?;
        let mut writer = ChecksumWriter::new(file);
        writer.write_all(&self.front_pieces)?;
        let (mut checksums, bytes) = writer.finish_pieces()?;
        checksums.extend(behind);
        let bytes = bytes + bytes_behind;
        Ok((checksum_of_pieces(checksums, bytes), bytes))
    }
}

impl Write for FrontedWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let left = self.front_capacity - self.front_pieces.len();
        if left == 0 {
            return self.behind.write(bytes);
        }
        let length = bytes.len().min(left);
        self.front_pieces.extend_from_slice(&bytes[..length]);
        Ok(length)
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
    codes: &FingerprintSpool<C>,
    space: &BuildSpace,
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
    let path = index_path.join(file_name(file, "codes"));
    let output = AtomicFile::create_for(&path)?;
    let failed = |cause| Error::write_error("write", display_path(&path), cause);
    let front_length = HammingSegment::<C>::front_length(&plan);
    let mut writer = FrontedWriter::new(output.as_file(), front_length).map_err(failed)?;
    let front = HammingSegment::build_file(
        &plan,
        codes,
        space.sorting,
        || space.new_buffer(),
        &mut writer,
    );
    let front = front.map_err(|error| match error.kind() {
        EngineErrorKind::File => Error::output_error(format!("{}: {error}", display_path(&path))),
        EngineErrorKind::Limit => space.explain_limit(error),
        _ => error.into(),
    })?;
    let written = writer.finish_file(&front).map_err(failed)?;
    output.commit_file()?;
    Ok(written)
}

/// Rows for a new segment: either new rows in memory or the rows of an existing segment.
pub(super) struct SegmentSource<C> {
    /// The fingerprint of every row; a placeholder for rows without one.
    pub(super) codes: FingerprintSpool<C>,
    pub(super) stored: StoredSegment,
}

impl<C: FingerprintCode> SegmentSource<C> {
    /// Opens an existing segment as a source.
    ///
    /// # Errors
    /// If its files cannot be read, are damaged, or do not fit into the memory of the space.
    pub(super) fn open_segment(
        index_path: &Path,
        manifest: &IndexManifest,
        entry: &SegmentEntry,
        space: &BuildSpace,
    ) -> Result<Self> {
        space.check_segment_fits(entry.rows * size_of::<C>() as u64 + entry.bytes)?;
        let mut stored = open_stored_segment(index_path, entry)?;
        stored.keep_recent_pages();
        let index = open_index::<C>(index_path, manifest, entry)?;
        let mut codes = vec![C::default(); index.len()];
        index.visit_rows(|row, code| codes[row as usize] = code);
        drop(index);
        let mut spool = space.new_spool();
        spool.push_codes(&codes).map_err(spill_failed)?;
        spool.finish_codes().map_err(spill_failed)?;
        Ok(Self {
            codes: spool,
            stored,
        })
    }

    fn kept_rows(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.codes.len() as u32).filter(|&row| !self.stored.removed.contains_row(row))
    }

    /// Copies the fingerprints of the rows that are not removed.
    fn copy_kept_codes(&self, to: &mut FingerprintSpool<C>) -> Result<()> {
        let mut kept = Vec::new();
        let copied = self.codes.visit_codes(|from, codes| {
            let rows = (from..).zip(codes);
            let live = rows.filter(|&(row, _)| !self.stored.removed.contains_row(row));
            kept.clear();
            kept.extend(live.map(|(_, &code)| code));
            to.push_codes(&kept)
        });
        copied.map_err(spill_failed)
    }
}

/// Writes one segment with the rows of several, without removed rows.
pub(super) fn merge_segments<C: FingerprintCode>(
    index_path: &Path,
    manifest: &mut IndexManifest,
    kept: &[SegmentEntry],
    sources: Vec<SegmentSource<C>>,
    space: &BuildSpace,
) -> Result<SegmentEntry> {
    let file = manifest.next_file;
    manifest.next_file += 1;
    let first = first_consecutive_number(&sources);
    let ids = match first {
        Some(_) => None,
        None => Some(write_merged_ids(
            &index_path.join(file_name(file, "ids")),
            &sources,
        )?),
    };
    let texts = if manifest.texts {
        Some(merge_texts(
            &index_path.join(file_name(file, "texts")),
            &sources,
        )?)
    } else {
        None
    };
    let unfingerprinted =
        write_unfingerprinted(index_path, file, &merge_unfingerprinted(&sources))?;
    let matching = if manifest.matching {
        Some(merge_records(index_path, file, &sources, space)?)
    } else {
        None
    };
    let grams = match manifest.passages {
        Some(_) => {
            let stored: Vec<_> = sources.iter().map(|source| &source.stored).collect();
            let sort = space.posting_sort();
            Some(grams::merge_grams(index_path, file, &stored, &sort)?)
        }
        None => None,
    };
    let counted: Vec<_> = sources
        .iter()
        .map(|source| (&source.stored.entry, &source.stored.removed))
        .collect();
    let counts = merge_counts(index_path, file, &counted)?;
    let mut codes = space.new_spool();
    for source in sources {
        source.copy_kept_codes(&mut codes)?;
    }
    codes.finish_codes().map_err(spill_failed)?;
    let (seal, bytes) = write_index(index_path, manifest, kept, file, &codes, space)?;
    Ok(SegmentEntry {
        file,
        rows: codes.len() as u64,
        codes: seal,
        bytes,
        first,
        ids,
        texts,
        unfingerprinted,
        matching,
        grams,
        removed: None,
        counts,
    })
}

fn merge_records<C: FingerprintCode>(
    index_path: &Path,
    file: u64,
    sources: &[SegmentSource<C>],
    space: &BuildSpace,
) -> Result<MatchingEntry> {
    let records = || sources.iter().map(|source| source.stored.records.as_ref());
    let slots = records()
        .flatten()
        .find_map(DocumentRecords::signature_slots);
    let slots = slots.unwrap_or(0) as usize;
    let mut writer = RecordsWriter::create_files(index_path, file, slots, space)?;
    for (source, records) in sources.iter().zip(records()) {
        if let Some(records) = records {
            writer.copy_rows(records, &source.stored.removed)?;
        }
    }
    let (_, signatures) = writer.finish_files()?;
    let mut records = DocumentRecords::open_files(index_path, file, signatures.is_some())?;
    records.keep_recent_pages();
    records.write_postings(index_path, file, &space.posting_sort())
}

fn merge_unfingerprinted<C: FingerprintCode>(sources: &[SegmentSource<C>]) -> UnfingerprintedRows {
    let mut base = 0;
    let mut all = Vec::new();
    for source in sources {
        let StoredSegment {
            unfingerprinted,
            removed,
            ..
        } = &source.stored;
        let removed_before = removed.rank_before();
        let entries = unfingerprinted.sorted_entries().iter();
        let live = entries.filter(|&&(_, row)| !removed.contains_row(row));
        all.extend(live.map(|&(key, row)| (key, base + row - removed_before(row))));
        base += source.codes.len() as u32 - removed.count_rows() as u32;
    }
    UnfingerprintedRows::from_unsorted(all)
}

/// Returns the number of the first row if all rows are numbered consecutively, without removed ones.
fn first_consecutive_number<C: FingerprintCode>(sources: &[SegmentSource<C>]) -> Option<u64> {
    let mut next = None;
    let mut first = None;
    for source in sources {
        let SegmentIds::Numbered(own) = source.stored.ids else {
            return None;
        };
        if source.stored.removed.count_rows() > 0 || next.is_some_and(|next| next != own) {
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
    let mut batch = ids::IdBatch::default();
    for source in sources {
        let mut push = |row: u64, id: &str| {
            if !source.stored.removed.contains_row(row as u32) {
                batch.push_id(id);
            }
            if batch.byte_count() >= BATCH_BYTES {
                writer.append_batch(&batch)?;
                batch.clear_ids();
            }
            Ok(())
        };
        match &source.stored.ids {
            SegmentIds::Stored(ids) => ids.visit_ids(push)?,
            SegmentIds::Numbered(first) => (0..source.codes.len() as u64)
                .try_for_each(|row| push(row, &(first + row).to_string()))?,
        }
    }
    writer.append_batch(&batch)?;
    Ok(FileChecksum(writer.finish_file()?))
}

fn merge_texts<C: FingerprintCode>(
    path: &Path,
    sources: &[SegmentSource<C>],
) -> Result<FileChecksum> {
    let mut writer = TextsWriter::create_file(path)?;
    for source in sources {
        let Some(texts) = &source.stored.texts else {
            continue;
        };
        if source.stored.removed.count_rows() == 0 {
            writer.copy_texts(texts)?;
            continue;
        }
        let (mut batch, mut unpacked) = (texts::TextBatch::default(), UnpackedFrame::default());
        for row in source.kept_rows() {
            batch.push_text(texts.text_of_row(row.into(), &mut unpacked)?)?;
            if batch.compressed_bytes() >= BATCH_BYTES {
                batch.close_frame()?;
                writer.append_batch(&batch)?;
                batch.clear_frames();
            }
        }
        batch.close_frame()?;
        writer.append_batch(&batch)?;
    }
    Ok(FileChecksum(writer.finish_file()?))
}
