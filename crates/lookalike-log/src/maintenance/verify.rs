//! Verification: every object of a log by itself, each beside the one before it, and the end of the log beside what
//! replicas and snapshots know of it.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::error::{DamageKind, LogDamage, LogError, NewerFeature};
use crate::maintenance::walk::{LogWalk, read_first_number};
use crate::maintenance::witnesses::{WitnessCheck, WitnessContradiction, read_witnesses};
use crate::record::{LogId, LogRecord, LogTail, RecordDigest};
use crate::store::{LogStore, StoreError};

/// Report of a verification.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct VerifyReport {
    /// Log of the first readable record.
    pub log: Option<LogId>,
    /// Number of the first object that was looked at.
    pub first: u64,
    /// Number of the last object that exists; 0 if there is none.
    pub last: u64,
    /// Records that were read and have no damage.
    pub records: u64,
    /// Bytes of all objects that were read.
    pub bytes: u64,
    /// All damages, by number.
    pub damages: Vec<LogDamage>,
    /// Records that a newer program wrote, by number. Their chain is not verified.
    pub newer: Vec<UnreadableRecord>,
    /// Contradictions between the log and what replicas and snapshots know of it.
    pub contradictions: Vec<WitnessContradiction>,
}

/// A record that a newer program wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct UnreadableRecord {
    /// Number of the record.
    pub number: u64,
    /// Feature that this program does not know.
    pub feature: NewerFeature,
}

impl VerifyReport {
    /// Returns `true` if the log has neither a damage nor a contradiction.
    pub fn is_whole(&self) -> bool {
        self.damages.is_empty() && self.contradictions.is_empty()
    }

    /// Returns the number of damages and contradictions of each kind, by its name in JSON.
    pub fn count_kinds(&self) -> BTreeMap<&'static str, u64> {
        let damages = self.damages.iter().map(|damage| damage.kind.name());
        let contradictions = self.contradictions.iter();
        let contradictions = contradictions.map(|contradiction| contradiction.kind.name());
        let mut counts = BTreeMap::new();
        for kind in damages.chain(contradictions) {
            *counts.entry(kind).or_default() += 1;
        }
        counts
    }

    /// Returns the number of the first object beyond which no replica of this version can read; `None` if there is none.
    pub fn first_unreadable(&self) -> Option<u64> {
        let damages = self.damages.iter().map(|damage| damage.number);
        damages
            .chain(self.newer.iter().map(|record| record.number))
            .min()
    }
}

/// Verifies all objects of a log from the number `from` on, or from the first one that was not pruned.
///
/// Reads the marks, the manifests of snapshots and then every object once, 32 at a time. Records of the last moments may be missing from the report if the store's list
/// is older.
///
/// # Errors
/// If a request fails, or a mark or manifest is malformed.
pub fn verify_log(store: &dyn LogStore, from: u64) -> Result<VerifyReport, StoreError> {
    let mut witnesses = WitnessCheck::new(read_witnesses(store)?);
    let oldest = read_first_number(store)?;
    let first = oldest.max(from);
    let mut walk = LogWalk::new(store, first)?;
    let mut chain = ChainCheck::new(first);
    let mut report = VerifyReport {
        first,
        ..VerifyReport::default()
    };
    while let Some(walked) = walk.next_object()? {
        if let Some(object) = &walked.object {
            report.last = walked.number;
            report.bytes += object.len() as u64;
        }
        match chain.check_object(walked.number, walked.object.as_deref()) {
            Ok(record) => {
                witnesses.note_record(record.number, record.log, record.digest);
                report.records += 1;
            }
            Err(LogError::Damaged(damage)) => report.damages.push(damage),
            Err(LogError::NewerVersion { number, feature }) => {
                report.newer.push(UnreadableRecord { number, feature });
            }
            Err(LogError::Store(error)) => return Err(error),
        }
    }
    report.log = chain.log;
    // A verification that begins after the end says nothing about it.
    if report.last > 0 || first == oldest {
        report.contradictions = witnesses.finish(chain.log, report.last);
    }
    Ok(report)
}

/// Knowledge of the records before a place. Verification goes on after a damage, so the digest may be unknown.
struct ChainCheck {
    log: Option<LogId>,
    time_us: i64,
    /// Digest of the record before; `None` if that cannot be read.
    digest: Option<RecordDigest>,
}

impl ChainCheck {
    fn new(first: u64) -> Self {
        Self {
            log: None,
            time_us: 0,
            digest: (first <= 1).then_some(RecordDigest::ZERO),
        }
    }

    /// Checks the next object. The record after it is compared with it, even if this one does not follow the record
    /// before.
    fn check_object(&mut self, number: u64, object: Option<&[u8]>) -> Result<LogRecord, LogError> {
        let before = self.digest.take();
        let object = object.ok_or_else(|| LogError::damaged(number, DamageKind::Missing))?;
        let record = LogRecord::decode(number, object)?;
        let place = LogTail {
            log: self.log,
            next: number,
            digest: before.unwrap_or(record.previous),
            time_us: self.time_us,
        };
        let followed = record.check_place(&place);
        if self.log.is_none_or(|log| log == record.log) {
            self.log = Some(record.log);
            self.time_us = self.time_us.max(record.time_us);
            self.digest = Some(record.digest);
        }
        followed.map(|()| record)
    }
}
