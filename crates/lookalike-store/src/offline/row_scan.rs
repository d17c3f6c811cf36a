//! Reads every row of the files of a collection, and reports damage instead of ending with it.

use super::VerifyReport;
use crate::disk::Disk;
use crate::document::{DocumentContent, NewDocument};
use crate::error::Result;
use crate::files::inventory::DiskInventory;
use crate::files::manifest::CollectionManifest;
use crate::files::partition::PartitionFiles;
use crate::files::rows::{PartitionRow, RowDocument, count_rows, number_rows};

/// Called with a partition, the number of a row, and the row.
type VisitRow<'a> = dyn FnMut(&PartitionFiles, u64, &PartitionRow) -> Result<()> + 'a;

/// Calls `visit` with every readable row, in order. Damage is added to the report.
pub(super) fn scan_rows(
    disk: &dyn Disk,
    manifest: &CollectionManifest,
    report: &mut VerifyReport,
    visit: &mut VisitRow<'_>,
) -> Result<()> {
    manifest.settings.match_plan()?;
    let inventory = DiskInventory::compare_with_disk(disk, manifest)?;
    let findings = inventory.findings.iter().map(ToString::to_string);
    report.findings.extend(findings);
    let mut expected = None;
    for names in inventory.partitions {
        let partition = match PartitionFiles::open_files(disk, manifest.seal, names) {
            Ok(partition) => partition,
            Err(error) => {
                report.findings.push(error.to_string());
                expected = None;
                continue;
            }
        };
        report.partitions += 1;
        if let Err(error) = partition.read_log_progress() {
            report.findings.push(error.to_string());
        }
        let first = partition.about.first;
        if expected.is_some_and(|expected| expected != first) {
            let expected = expected.unwrap_or_default();
            let name = partition.rows_name();
            report
                .findings
                .push(format!("'{name}' begins with row {first}, not {expected}"));
        }
        expected = scan_partition(&partition, report, visit)?;
    }
    Ok(())
}

/// Checks the rows of a partition. Returns the number after the last row, if that can be read.
fn scan_partition(
    partition: &PartitionFiles,
    report: &mut VerifyReport,
    visit: &mut VisitRow<'_>,
) -> Result<Option<u64>> {
    let mut next = Some(partition.about.first);
    let mut refused = Ok(());
    let scanned = partition.for_each_block(|first, block| {
        let expected = next.unwrap_or(first);
        let in_place = partition.check_next(first, expected);
        report
            .findings
            .extend(in_place.err().map(|error| error.to_string()));
        let rows = match block {
            Ok(rows) => rows,
            Err(error) => {
                report.findings.push(error.to_string());
                next = None;
                return Ok(());
            }
        };
        next = Some(first.saturating_add(count_rows(&rows)));
        report.rows += rows.len() as u64;
        refused =
            number_rows(first, &rows).try_for_each(|(number, row)| visit(partition, number, row));
        refused.clone()
    });
    refused?;
    if let Err(error) = scanned {
        report.findings.push(error.to_string());
        next = None;
    }
    Ok(next)
}

/// Reads the document of a row, with its record.
pub(super) fn read_document(
    partition: &PartitionFiles,
    document: &RowDocument,
) -> Result<NewDocument> {
    partition.check_record(document.place, &document.id)?;
    let content = match document.fingerprint {
        Some(fingerprint) => DocumentContent::Fingerprint(fingerprint),
        None => DocumentContent::Text(partition.visit_text(document.place.at, str::to_owned)?),
    };
    Ok(NewDocument {
        id: document.id.clone(),
        content,
        time: Some(document.time),
        meta: document.meta.clone(),
    })
}
