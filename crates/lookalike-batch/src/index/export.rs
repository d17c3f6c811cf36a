//! The fingerprints of an index with their ids, for programs that hold them in memory.

use std::path::Path;

use lookalike::hamming::FingerprintCode;
use lookalike_io::error::Result;

use crate::index::manifest::IndexManifest;
use crate::index::segments::{open_index, open_stored_segment};
use crate::index::{by_width, directory};

/// The fingerprints of an index.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExportedFingerprints {
    /// Bits of a fingerprint.
    pub bits: u32,
    /// Largest distance of a search.
    pub distance: u32,
    /// Fingerprints of the rows that have one, in the order of the rows.
    pub codes: Vec<u128>,
    /// Ids of the same rows, in the same order.
    pub ids: Vec<String>,
}

/// Returns the fingerprints of all rows that are not removed. Rows without a fingerprint are left out.
///
/// # Errors
/// If `index_path` is not an index or is damaged.
pub fn export_fingerprints(index_path: &Path) -> Result<ExportedFingerprints> {
    directory::read_consistently(index_path, |manifest| {
        by_width!(manifest.bits, export_rows(index_path, &manifest))
    })
}

fn export_rows<C: FingerprintCode>(
    index_path: &Path,
    manifest: &IndexManifest,
) -> Result<ExportedFingerprints> {
    let mut exported = ExportedFingerprints {
        bits: manifest.bits,
        distance: manifest.distance,
        ..ExportedFingerprints::default()
    };
    for entry in &manifest.segments {
        let stored = open_stored_segment(index_path, entry)?;
        let mut rows: Vec<(u32, u128)> = Vec::new();
        open_index::<C>(index_path, manifest, entry)?.visit_rows(|row, code| {
            if !stored.removed.contains_row(row) && !stored.unfingerprinted.contains_row(row) {
                rows.push((row, code.widen()));
            }
        });
        // The index visits rows in the order of its tables.
        rows.sort_unstable();
        for (row, code) in rows {
            exported.codes.push(code);
            exported
                .ids
                .push(stored.ids.id_of_row(row.into())?.into_owned());
        }
    }
    Ok(exported)
}
