//! Collections that are not open: their rows and documents are read from the files alone, as far as these are
//! intact.

mod repair;
mod row_scan;
mod verify;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use lookalike::Recipe;
use lookalike::stream::Timestamp;

pub use self::repair::repair_collection;
use self::row_scan::{read_document, scan_rows};
use self::verify::SketchCacheCheck;
pub use self::verify::{VerifyReport, verify_collection};
use crate::disk::Disk;
use crate::document::{NewDocument, shorten_id};
use crate::error::Result;
use crate::files::file_names::RECIPE_FILE;
use crate::files::inventory::list_files;
use crate::files::manifest::CollectionManifest;
use crate::files::rows::PartitionRow;
use crate::recipes::read_recipe_file;
use crate::settings::CollectionSettings;
use crate::state::DecisionTable;

/// Returns the settings of a collection that is not open.
///
/// # Errors
/// If the manifest cannot be read.
pub fn read_settings(disk: &dyn Disk) -> Result<CollectionSettings> {
    let settings = CollectionManifest::read_file(disk)?.settings;
    Ok(Arc::unwrap_or_clone(settings))
}

/// Reads the recipe of a collection from its own file, even if the manifest is lost. Returns `None` if there is no such
/// file, because the recipe names no files.
///
/// # Errors
/// If the file is damaged or cannot be read.
pub fn read_recipe(disk: &dyn Disk) -> Result<Option<Recipe>> {
    if list_files(disk)?.iter().any(|file| file == RECIPE_FILE) {
        read_recipe_file(disk, RECIPE_FILE).map(Some)
    } else {
        Ok(None)
    }
}

/// A collection that is not open.
struct OfflineCollection<'a> {
    disk: &'a dyn Disk,
    manifest: CollectionManifest,
    /// Numbers of dead rows.
    dead_rows: HashSet<u64>,
    /// The row and the time of each moved document, by its sequence number.
    moved: HashMap<u64, (u64, Timestamp)>,
    /// Number of the first readable row.
    first_row: u64,
    /// Number of readable partitions.
    partitions: u64,
    /// The decisions in readable rows that hold.
    decisions: DecisionTable,
}

impl<'a> OfflineCollection<'a> {
    fn open_offline(disk: &'a dyn Disk, manifest: CollectionManifest) -> Result<Self> {
        let (mut report, mut dead_rows) = (VerifyReport::default(), HashSet::new());
        let (mut moved, mut first_row) = (HashMap::new(), u64::MAX);
        let mut decisions = DecisionTable::default();
        scan_rows(disk, &manifest, &mut report, &mut |_, number, row| {
            first_row = first_row.min(number);
            match row {
                PartitionRow::Deleted { number, .. } => drop(dead_rows.insert(*number)),
                PartitionRow::Moved {
                    from,
                    seq,
                    document,
                    ..
                } => {
                    dead_rows.insert(*from);
                    moved.insert(*seq, (number, document.time));
                }
                PartitionRow::ErasedMove { from, seq, .. } => {
                    dead_rows.insert(*from);
                    moved.remove(seq);
                }
                PartitionRow::Document(_)
                | PartitionRow::Erased { .. }
                | PartitionRow::ErasedDuplicate { .. } => {}
                PartitionRow::Decision(row) => decisions.apply_row(number, row),
            }
            Ok(())
        })?;
        moved.retain(|_, (number, _)| !dead_rows.contains(number));
        Ok(Self {
            disk,
            manifest,
            dead_rows,
            moved,
            first_row,
            partitions: report.partitions,
            decisions,
        })
    }

    /// Calls `visit` with every readable live document, in the order of sequence numbers. A moved document
    /// comes in its old position, and is read from its old row if that is readable.
    fn visit_in_order(
        &self,
        report: &mut VerifyReport,
        visit: &mut dyn FnMut(u64, NewDocument) -> Result<()>,
    ) -> Result<()> {
        let mut visited = HashSet::new();
        if self.moved.keys().any(|&seq| seq < self.first_row) {
            self.visit_documents(
                &mut VerifyReport::default(),
                &mut |number, row, document| {
                    let PartitionRow::Moved { seq, .. } = row else {
                        return Ok(());
                    };
                    if *seq >= self.first_row || !self.is_live_row(number) {
                        return Ok(());
                    }
                    visited.insert(*seq);
                    visit(number, document)
                },
            )?;
        }
        self.visit_documents(report, &mut |number, row, mut document| match row {
            PartitionRow::Document(_) => {
                if let Some(&(_, time)) = self.moved.get(&number) {
                    visited.insert(number);
                    document.time = Some(time);
                } else if !self.is_live_row(number) {
                    return Ok(());
                }
                visit(number, document)
            }
            PartitionRow::Moved { seq, .. } if self.is_live_row(number) && visited.insert(*seq) => {
                visit(number, document)
            }
            _ => Ok(()),
        })
    }

    fn is_live_row(&self, number: u64) -> bool {
        !self.dead_rows.contains(&number)
    }

    /// Calls `visit` with every readable document, live or dead, and the number of its row.
    fn visit_documents(
        &self,
        report: &mut VerifyReport,
        visit: &mut dyn FnMut(u64, &PartitionRow, NewDocument) -> Result<()>,
    ) -> Result<()> {
        let (mut documents, mut unreadable) = (0, Vec::new());
        let mut sketches = SketchCacheCheck::new(&self.manifest)?;
        scan_rows(
            self.disk,
            &self.manifest,
            report,
            &mut |partition, number, row| {
                let Some(document) = row.as_document() else {
                    return Ok(());
                };
                sketches.check_document(self.disk, partition, document);
                match read_document(partition, document) {
                    Ok(document) => {
                        documents += u64::from(self.is_live_row(number));
                        visit(number, row, document)
                    }
                    Err(error) => {
                        unreadable
                            .push(format!("document '{}': {error}", shorten_id(&document.id)));
                        Ok(())
                    }
                }
            },
        )?;
        report.documents += documents;
        report.findings.append(&mut unreadable);
        report.remade.append(&mut sketches.wrong);
        Ok(())
    }
}
