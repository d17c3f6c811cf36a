//! The preparing stage: decoded rows get the sketches of their kept documents.
//!
//! The sketches come from their cache. From the first entry on that is damaged, they are computed from texts,
//! and the cache is written anew.

use std::sync::mpsc::{Receiver, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};

use lookalike::stream::{DocumentPreparer, KeyExtractor, SketchedDocument};
use lookalike::text::AnalysisScratch;
use rayon::prelude::*;

use super::{KeptDocument, ReadyIds, ReadyRows, ReplayStep, StepSender, send_step};
use crate::disk::Disk;
use crate::document::hash_id;
use crate::error::{Error, Result};
use crate::files::partition::PartitionFiles;
use crate::files::rows::{PartitionRow, RowDocument, count_rows, number_rows};
use crate::files::sketches::{SketchEntries, SketchEntry, SketchFile, SketchFileReader};

/// Source of the sketches of a partition's kept documents.
enum SketchSource {
    /// The collection has no sketches.
    Nowhere,
    File(SketchFileReader),
    /// The file is damaged from here on: sketches are computed from texts and written.
    Texts(SketchFile),
}

/// Prepares rows and sends them on; see the [module](self).
pub(super) struct RowPreparer<'a> {
    pub(super) disk: &'a dyn Disk,
    pub(super) seal: u32,
    pub(super) has_sketches: bool,
    pub(super) preparer: DocumentPreparer,
    /// Source of bucket keys, as it was when rows were last inserted.
    pub(super) extractor: &'a Mutex<KeyExtractor>,
    /// Destination of ids.
    pub(super) ids: SyncSender<ReadyIds>,
}

impl RowPreparer<'_> {
    /// Prepares all rows and passes them on. Returns the file of sketches of the last partition, if the
    /// collection has sketches.
    pub(super) fn prepare_steps(
        self,
        steps: Receiver<ReplayStep<Vec<PartitionRow>>>,
        to: &StepSender<ReadyRows>,
    ) -> Result<Option<SketchFile>> {
        let mut at: Option<PreparePosition> = None;
        let mut sketches = None;
        for step in steps {
            let step = match (step, &mut at) {
                (ReplayStep::Begin(partition), _) => {
                    at = Some(self.begin_partition(Arc::clone(&partition)));
                    ReplayStep::Begin(partition)
                }
                (ReplayStep::Rows(rows), Some(at)) => ReplayStep::Rows(self.make_ready(at, rows)?),
                (ReplayStep::Rows(_) | ReplayStep::End, _) => {
                    let ended = at
                        .take()
                        .map(|at| self.end_partition(&at.partition, at.source));
                    sketches = ended.transpose()?.flatten();
                    ReplayStep::End
                }
            };
            send_step(step, to)?;
        }
        Ok(sketches)
    }

    fn begin_partition(&self, partition: Arc<PartitionFiles>) -> PreparePosition {
        let names = partition.about.file_names();
        let open = || SketchFileReader::open_file(self.disk, self.seal, names);
        PreparePosition {
            next: partition.about.first,
            source: if self.has_sketches {
                SketchSource::File(open())
            } else {
                SketchSource::Nowhere
            },
            partition,
        }
    }

    fn end_partition(
        &self,
        partition: &PartitionFiles,
        source: SketchSource,
    ) -> Result<Option<SketchFile>> {
        match source {
            SketchSource::Nowhere => Ok(None),
            SketchSource::Texts(sketches) => Ok(Some(sketches)),
            SketchSource::File(reader) => {
                let names = partition.about.file_names();
                reader.into_writer(self.disk, self.seal, names).map(Some)
            }
        }
    }

    fn make_ready(&self, at: &mut PreparePosition, rows: Vec<PartitionRow>) -> Result<ReadyRows> {
        let before = match &at.source {
            SketchSource::File(reader) => Some(reader.clone()),
            _ => None,
        };
        let (hashes, kept) = self.prepare_rows(at, &rows)?;
        let is_from_text =
            |kept: &Option<KeptDocument>| kept.as_ref().is_some_and(|kept| kept.is_from_text);
        if let Some(before) = before.filter(|_| kept.iter().any(is_from_text)) {
            let sketches =
                before.into_writer(self.disk, self.seal, at.partition.about.file_names())?;
            at.source = SketchSource::Texts(sketches);
        }
        if let SketchSource::Texts(sketches) = &mut at.source {
            sketches.append_entries(&sketch_entries(&self.preparer, &rows, &kept))?;
        }
        let first = at.next;
        at.next = first.saturating_add(count_rows(&rows));
        let hashes = number_rows(first, &rows).zip(hashes);
        let hashes = hashes
            .filter_map(|((number, _), hash)| Some((number, hash?)))
            .collect();
        let named = self.ids.send(ReadyIds { first, hashes });
        named.map_err(|_| Error::damaged_file("rows", "their ids are not taken"))?;
        Ok(ReadyRows { rows, kept })
    }

    /// Prepares rows in parallel: the hashes of their ids, and the documents that were kept.
    fn prepare_rows(
        &self,
        at: &mut PreparePosition,
        rows: &[PartitionRow],
    ) -> Result<PreparedRows> {
        let entries: Vec<Option<SketchEntry>> = rows
            .iter()
            .map(|row| match &mut at.source {
                SketchSource::File(reader) if row.as_kept_document().is_some() => {
                    reader.next_entry()
                }
                _ => None,
            })
            .collect();
        let extractor = current_extractor(self.extractor);
        let rows = rows.par_iter().zip(entries);
        let ready = rows.map_init(AnalysisScratch::default, |scratch, (row, entry)| {
            let hash = row.as_document().map(|document| hash_id(&document.id));
            let kept = row.as_kept_document().map(|document| {
                let cached = entry
                    .as_ref()
                    .and_then(|entry| entry.sketches_for(document.content_hash));
                let prepared =
                    reprepare_document(&self.preparer, &at.partition, document, cached, scratch);
                prepared.map(|(document, is_from_text)| KeptDocument {
                    document_keys: extractor.extract_keys(&document),
                    document,
                    is_from_text,
                })
            });
            Ok((hash, kept.transpose()?))
        });
        ready.collect()
    }
}

/// Hashes of the ids of rows, and prepared kept documents.
type PreparedRows = (Vec<Option<u64>>, Vec<Option<KeptDocument>>);

/// Progress of the preparing stage in a partition.
struct PreparePosition {
    partition: Arc<PartitionFiles>,
    source: SketchSource,
    /// Number of the next row.
    next: u64,
}

fn current_extractor(extractor: &Mutex<KeyExtractor>) -> KeyExtractor {
    extractor
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clone()
}

/// Returns the cache entries of the kept documents among some rows.
fn sketch_entries(
    preparer: &DocumentPreparer,
    rows: &[PartitionRow],
    prepared: &[Option<KeptDocument>],
) -> SketchEntries {
    let mut entries = SketchEntries::default();
    for (row, prepared) in rows.iter().zip(prepared) {
        if let (Some(document), Some(kept)) = (row.as_kept_document(), prepared) {
            entries.push_entry(document.content_hash, |into| {
                preparer.encode_document(&kept.document, into)
            });
        }
    }
    entries
}

/// Prepares a kept document from its cached sketch, or else from its text; returns `true` in the second case.
fn reprepare_document(
    preparer: &DocumentPreparer,
    partition: &PartitionFiles,
    document: &RowDocument,
    cached: Option<&[u8]>,
    scratch: &mut AnalysisScratch,
) -> Result<(SketchedDocument, bool)> {
    if let Some(sketched) = cached.and_then(|cached| preparer.decode_document(cached)) {
        return Ok((sketched, false));
    }
    let sketched = match document.fingerprint {
        Some(fingerprint) => preparer.fingerprint(fingerprint)?,
        None => partition.visit_text(document.place.at, |text| {
            preparer.prepare_text(text, scratch)
        })?,
    };
    Ok((sketched, true))
}
