//! A new collection from what can be read of a damaged one.

use std::sync::Arc;

use super::{OfflineCollection, VerifyReport};
use crate::collection::{Collection, CollectionOptions};
use crate::disk::Disk;
use crate::error::{Error, Result};
use crate::files::manifest::CollectionManifest;
use crate::settings::SettingsRecord;
use crate::transfer::BulkImport;

/// Creates a new collection from all documents of a damaged one that can still be read, in their order.
///
/// Decisions that can be read are made again. The documents are checked and inserted again. Their sequence numbers change, and so do verdicts where a
/// kept document was lost. A document whose deletion cannot be read exists again, unless a later document has
/// its id. `settings` replace a lost manifest; the checksum in each partition shows whether those of the creation are
/// the right ones. The new collection has the settings that were in force last. Returns the report and the new
/// collection.
///
/// # Errors
/// If the manifest cannot be read and no settings are given, no partition belongs to a collection with the
/// given settings, they differ from those of the creation in what cannot change, or the new disk fails.
pub fn repair_collection(
    from: &dyn Disk,
    settings: Option<&SettingsRecord>,
    to: Arc<dyn Disk>,
    options: CollectionOptions,
) -> Result<(VerifyReport, Collection)> {
    let manifest = match settings {
        Some(SettingsRecord {
            settings,
            created: Some(created),
        }) => CollectionManifest::with_lost_changes(created, settings)?,
        Some(SettingsRecord { settings, .. }) => CollectionManifest::new(settings)?,
        None => CollectionManifest::read_file(from)?,
    };
    let source = OfflineCollection::open_offline(from, manifest)?;
    if settings.is_some() && source.partitions == 0 {
        let what = "no partition belongs to a collection that was created with these settings: give those of its \
                    creation, and if they have been changed, beside them those that were in force last";
        return Err(Error::setting_error(what));
    }
    let collection = Collection::create_empty(to, &source.manifest.settings, options)?;
    // Decisions come first, so that all documents are judged by the corrected relation.
    for stored in source.decisions.decisions_after(0) {
        collection.decide(&stored.to_request())?;
    }
    let mut findings = Vec::new();
    let mut reject = |_, error: &Error| {
        findings.push(error.to_string());
        Ok(())
    };
    let mut import = BulkImport::new(&collection, &mut reject).with_replacement();
    let mut report = VerifyReport::default();
    source.visit_in_order(&mut report, &mut |number, document| {
        import.push_document(number, document)
    })?;
    import.insert_waiting()?;
    report.findings.append(&mut findings);
    Ok((report, collection))
}
