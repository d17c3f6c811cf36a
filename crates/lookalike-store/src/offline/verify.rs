//! Verification of a collection that is not open.

use std::sync::Arc;

use super::OfflineCollection;
use crate::disk::Disk;
use crate::error::Result;
use crate::files::file_names::FileNames;
use crate::files::manifest::CollectionManifest;
use crate::files::partition::PartitionFiles;
use crate::files::rows::RowDocument;
use crate::files::sketches::SketchFileReader;
use crate::state::CollectionState;

/// Result of checking every byte of a collection.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VerifyReport {
    /// Partitions that were checked.
    pub partitions: u64,
    /// Intact rows.
    pub rows: u64,
    /// Documents among them whose records are intact, without deleted ones.
    pub documents: u64,
    /// Damage found, as messages.
    pub findings: Vec<String>,
    /// Damaged or missing files of sketches. Nothing is lost with them, because they are rebuilt from the
    /// texts when the collection is opened.
    pub remade: Vec<String>,
}

/// Checks every row and every record of a collection that is not open. First completes or undoes a commit
/// that a power failure interrupted, as opening the collection would do; on a
/// [`ReadFolder`](crate::ReadFolder) only in memory.
///
/// # Errors
/// If the manifest cannot be read. All other damage is in the report.
pub fn verify_collection(disk: &dyn Disk) -> Result<VerifyReport> {
    let mut report = VerifyReport::default();
    let source = OfflineCollection::open_offline(disk, CollectionManifest::read_file(disk)?)?;
    source.visit_documents(&mut report, &mut |_, _, _| Ok(()))?;
    Ok(report)
}

/// Checks the cached sketches of kept documents, in their order.
pub(super) struct SketchCacheCheck {
    seal: u32,
    /// `true` if the collection has sketches.
    has_sketches: bool,
    /// Current partition, and its cache until an entry is wrong.
    current: Option<(FileNames, Option<SketchFileReader>)>,
    /// Names of files with a wrong entry.
    pub(super) wrong: Vec<String>,
}

impl SketchCacheCheck {
    pub(super) fn new(manifest: &CollectionManifest) -> Result<Self> {
        let seal = manifest.seal;
        Ok(Self {
            seal,
            has_sketches: CollectionState::new(Arc::clone(&manifest.settings), seal)?
                .has_sketches(),
            current: None,
            wrong: Vec::new(),
        })
    }

    pub(super) fn check_document(
        &mut self,
        disk: &dyn Disk,
        partition: &PartitionFiles,
        document: &RowDocument,
    ) {
        if !self.has_sketches || !document.is_kept() {
            return;
        }
        let names = partition.about.file_names();
        if self.current.as_ref().is_none_or(|(of, _)| *of != names) {
            self.current = Some((
                names,
                Some(SketchFileReader::open_file(disk, self.seal, names)),
            ));
        }
        let Some((_, cache)) = &mut self.current else {
            return;
        };
        let Some(reader) = cache else { return };
        let entry = reader.next_entry();
        if entry.is_none_or(|entry| entry.sketches_for(document.content_hash).is_none()) {
            *cache = None;
            self.wrong.push(names.sketches_file());
        }
    }
}
