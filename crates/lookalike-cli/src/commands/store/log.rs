//! `lookalike store log`: a shared log from outside.

use std::io::Write;
use std::sync::Arc;

use anyhow::{Result, bail};
use lookalike_io::sink::ByteWriter;
use lookalike_log::{
    ABANDONED_AFTER, DamageKind, EntryKind, FolderCopies, LogDamage, LogEntry, LogError, LogRecord,
    LogStatus, LogStore, LogTail, RepairOptions, RepairReport, ReplicaStatus, SharedLog,
    SnapshotExtent, UnrepairedRecords, VerifyReport, describe_record, log_status, prune_log,
    read_first_number, read_marks, read_snapshot_extents, record_key, remove_incomplete_snapshots,
    repair_log, verify_log,
};
use lookalike_server::{SHARED_LOG_COPIES, check_log_exists, with_log_store};
use serde_json::{Value, json};

use super::args::{
    LogArgs, LogCommand, LogExportArgs, LogPruneArgs, LogRepairArgs, LogStatusArgs, LogVerifyArgs,
};
use super::{OutputLines, SHOWN_FINDINGS, data_output, print_summary};
use crate::CommandOutcome;
use crate::commands::status::describe_seconds;
use crate::language::engine_phrases::translate_phrase;
use crate::language::{CountedNoun, NounCount, messages};
use crate::output::{OutputPrinter, escape_control, format_count, with_context};

pub(super) fn run_log(args: &LogArgs) -> Result<CommandOutcome> {
    match &args.command {
        LogCommand::Status(args) => run_status(args),
        LogCommand::Verify(args) => run_verify(args),
        LogCommand::Repair(args) => run_repair(args),
        LogCommand::Prune(args) => run_prune(args),
        LogCommand::Export(args) => run_export(args),
    }
}

/// Calls `work` with the store of a log that exists.
fn with_existing_log<T>(url: &str, work: impl FnOnce(Arc<dyn LogStore>) -> Result<T>) -> Result<T> {
    with_log_store(url, |store| {
        check_log_exists(url, &*store)?;
        work(store)
    })
}

/// Returns the name of a record in the language of messages, with its number and its object.
pub(super) fn name_record(number: u64) -> String {
    translate_phrase(&describe_record(number)).into_owned()
}

fn current_time_us() -> i64 {
    jiff::Timestamp::now().as_microsecond()
}

fn run_status(args: &LogStatusArgs) -> Result<CommandOutcome> {
    let status = with_existing_log(&args.url, |store| {
        log_status(&*store).map_err(with_context(&args.url))
    })?;
    let words = describe_status(&status, current_time_us());
    print_summary(&args.telling, serde_json::to_value(&status)?, Some(words))?;
    Ok(CommandOutcome::Done)
}

fn describe_status(status: &LogStatus, now_us: i64) -> String {
    let mut lines = vec![match status.first.zip(status.last) {
        None => messages::log_is_empty(),
        Some((first, last)) => {
            let records = NounCount(status.records, CountedNoun::LogRecord);
            messages::log_extent(records, first, last, &format_megabytes(status.bytes))
        }
    }];
    for writer in &status.writers {
        let records = NounCount(writer.records, CountedNoun::LogRecord);
        lines.push(messages::log_writer(&writer.writer, records, writer.format));
    }
    for replica in &status.replicas {
        lines.extend(describe_replica(replica, now_us));
    }
    for snapshot in &status.snapshots {
        let megabytes = format_megabytes(snapshot.bytes);
        lines.push(if snapshot.complete {
            messages::log_snapshot(&snapshot.name, &megabytes)
        } else {
            messages::log_snapshot_incomplete(&snapshot.name, &megabytes)
        });
    }
    if status.unreadable > 0 {
        let records = NounCount(status.unreadable, CountedNoun::LogRecord);
        lines.push(messages::log_unreadable(records));
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn format_megabytes(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 / 1e6)
}

/// Returns how far a replica is, and what is wrong with it, in a line each.
fn describe_replica(replica: &ReplicaStatus, now_us: i64) -> Vec<String> {
    let mark = &replica.mark;
    let lag = NounCount(replica.lag, CountedNoun::LogRecord);
    let age = messages::time_ago(&describe_seconds(mark.age_seconds(now_us)));
    let mut lines = vec![messages::log_replica(
        &mark.name,
        &escape_control(&mark.version),
        mark.applied,
        lag,
        &age,
    )];
    if let Some(reason) = &mark.stopped {
        let reason = escape_control(reason);
        lines.push(messages::log_replica_stopped(&mark.name, &reason));
    }
    if mark.other_instance.is_some() {
        lines.push(messages::log_replica_of_two(&mark.name));
    }
    lines
}

fn run_verify(args: &LogVerifyArgs) -> Result<CommandOutcome> {
    let report = with_existing_log(&args.url, |store| {
        verify_log(&*store, args.from).map_err(with_context(&args.url))
    })?;
    warn_of_findings(&report);
    let mut summary = serde_json::to_value(&report)?;
    summary["kinds"] = serde_json::to_value(report.count_kinds())?;
    print_summary(&args.telling, summary, Some(describe_verified(&report)))?;
    if report.is_whole() {
        return Ok(CommandOutcome::Done);
    }
    bail!(
        "the shared log {} is not whole. Damages: {}; contradictions to what replicas and snapshots know: {}; whole \
         records: {}; `lookalike store log repair` writes back what a replica has a copy of",
        args.url,
        format_count(report.damages.len() as u64),
        format_count(report.contradictions.len() as u64),
        format_count(report.records)
    );
}

fn warn_of_findings(report: &VerifyReport) {
    let damages = report.damages.iter().map(|damage| {
        let reason = damage.kind.to_string();
        messages::log_damage(&name_record(damage.number), &translate_phrase(&reason))
    });
    let contradictions = report.contradictions.iter();
    let contradictions = contradictions.map(|found| {
        let reason = found.to_string();
        translate_phrase(&reason).into_owned()
    });
    let printer = OutputPrinter::new(false);
    for finding in contradictions.chain(damages).take(SHOWN_FINDINGS) {
        printer.print_warning(escape_control(&finding));
    }
    let findings = report.damages.len() + report.contradictions.len();
    let more = findings.saturating_sub(SHOWN_FINDINGS);
    if more > 0 {
        let count = NounCount(more as u64, CountedNoun::Finding);
        printer.print_warning(messages::more_findings(count));
    }
}

fn describe_verified(report: &VerifyReport) -> String {
    let records = NounCount(report.records, CountedNoun::LogRecord);
    let words = if report.is_whole() {
        messages::log_whole(records, report.first, report.last)
    } else {
        let kinds: Vec<_> = report
            .count_kinds()
            .iter()
            .map(|(kind, count)| format!("{kind} {}", format_count(*count)))
            .collect();
        messages::log_not_whole(records, report.first, report.last, &kinds.join(", "))
    };
    words + "\n"
}

fn run_repair(args: &LogRepairArgs) -> Result<CommandOutcome> {
    let folder = args.from.join(SHARED_LOG_COPIES);
    if !folder.is_dir() {
        bail!(
            "{} has no copies of a shared log: name the --data of a replica that has followed this log",
            args.from.display()
        );
    }
    let copies = FolderCopies::open(&folder);
    let copies = copies.map_err(with_context(folder.display()))?;
    let options = RepairOptions {
        replaces_end: args.replace,
    };
    // A store that has lost everything is repaired, too.
    let report = with_log_store(&args.url, |store| {
        check_no_replica_runs(&*store, &args.url)?;
        repair_log(&*store, &copies, options).map_err(with_context(&args.url))
    })?;
    let printer = OutputPrinter::new(false);
    for records in report.unrepaired.iter().take(SHOWN_FINDINGS) {
        let reason = translate_phrase(&records.reason);
        let warning = messages::log_not_repaired(&name_records(records), &reason);
        printer.print_warning(escape_control(&warning));
    }
    let summary = serde_json::to_value(&report)?;
    print_summary(&args.telling, summary, Some(describe_repair(&report)))?;
    if report.unrepaired.is_empty() {
        return Ok(CommandOutcome::Done);
    }
    let unrepaired = report.unrepaired.iter().map(UnrepairedRecords::count).sum();
    bail!(
        "{} records of the shared log {} could not be repaired: try the copies of another replica, or restore a \
         snapshot with `lookalike store restore --at`",
        format_count(unrepaired),
        args.url
    );
}

/// Refuses to work on a log while a replica has left a mark in the last moments.
fn check_no_replica_runs(store: &dyn LogStore, url: &str) -> Result<()> {
    let now_us = current_time_us();
    let marks = read_marks(store).map_err(with_context(url))?;
    let Some(mark) = marks.iter().find(|mark| mark.is_running(now_us)) else {
        return Ok(());
    };
    bail!(
        "the replica '{name}' of {url} seems to run, because it has left a mark {age} s ago: stop all replicas before a \
         repair; if it was killed, wait until its mark is 30 s old, or remove 'replicas/{name}' from the store",
        name = mark.name,
        age = mark.age_seconds(now_us)
    );
}

fn name_records(records: &UnrepairedRecords) -> String {
    if records.count() == 1 {
        name_record(records.number)
    } else {
        messages::log_record_range(records.number, records.last)
    }
}

fn describe_repair(report: &RepairReport) -> String {
    let count = |numbers: &[u64]| NounCount(numbers.len() as u64, CountedNoun::LogRecord);
    let mut words = messages::log_repaired(count(&report.repaired)) + "\n";
    if !report.replaced.is_empty() {
        words += &messages::log_replaced(count(&report.replaced));
        words.push('\n');
    }
    words
}

fn run_prune(args: &LogPruneArgs) -> Result<CommandOutcome> {
    let (report, removed, first) = with_existing_log(&args.url, |store| {
        let snapshots = read_snapshot_extents(&*store).map_err(with_context(&args.url))?;
        if !snapshots
            .iter()
            .any(|snapshot| snapshot.tail.next >= args.before)
        {
            bail!(
                "the shared log {} has no complete snapshot behind {}, so no replica could start without its data: let \
                 a replica make one first (--snapshot-log-every)",
                args.url,
                describe_record(args.before)
            );
        }
        let report = prune_log(&*store, args.before).map_err(with_context(&args.url))?;
        let unchanged_since_us = current_time_us() - ABANDONED_AFTER.as_micros() as i64;
        let removed = remove_incomplete_snapshots(&*store, unchanged_since_us);
        let first = find_first_restorable(&snapshots, report.before);
        Ok((report, removed.map_err(with_context(&args.url))?, first))
    })?;
    let records = NounCount(report.removed, CountedNoun::LogRecord);
    let mut words = messages::log_pruned(records, report.before) + "\n";
    let time = jiff::Timestamp::from_microsecond(first.time_us).unwrap_or_default();
    let first_record = first.next.saturating_sub(1);
    words += &messages::log_restorable_from(first_record, time);
    words.push('\n');
    if !removed.is_empty() {
        words += &messages::log_snapshots_removed(&removed.join(", "));
        words.push('\n');
    }
    let mut summary = serde_json::to_value(&report)?;
    summary["removed_snapshots"] = removed.into();
    summary["first_restorable"] = json!({ "record": first_record, "time": time.to_string() });
    print_summary(&args.telling, summary, Some(words))?;
    Ok(CommandOutcome::Done)
}

/// Returns the place of the first moment that can be restored from a log without the records before a number: the beginning
/// of the log, or the earliest end of a snapshot that the records continue.
fn find_first_restorable(snapshots: &[SnapshotExtent], before: u64) -> LogTail {
    if before <= 1 {
        return LogTail::default();
    }
    let usable = snapshots
        .iter()
        .filter(|snapshot| snapshot.tail.next >= before);
    let first = usable
        .map(|snapshot| snapshot.end)
        .min_by_key(|end| end.next);
    first.unwrap_or_default()
}

/// An export, as far as it goes.
#[derive(Default)]
struct ExportedLog {
    entries: u64,
    /// Number of the last record whose entries are written.
    last: Option<u64>,
    /// Damage at which the export ends.
    damage: Option<LogError>,
}

fn run_export(args: &LogExportArgs) -> Result<CommandOutcome> {
    let output = data_output(args.output.as_deref(), &args.telling)?;
    let exported = with_existing_log(&args.url, |store| {
        let mut lines = OutputLines {
            writer: ByteWriter::create_output(&output)?,
            waiting: Vec::new(),
        };
        let exported = export_entries(store, args, &mut lines)?;
        lines.flush()?;
        lines.writer.finish_output()?;
        Ok(exported)
    })?;
    let entries = NounCount(exported.entries, CountedNoun::LogEntry);
    let words = messages::log_exported(entries) + "\n";
    let damage = exported.damage.as_ref().map(ToString::to_string);
    let summary = json!({
        "entries": exported.entries,
        "last": exported.last,
        "damage": damage,
    });
    print_summary(&args.telling, summary, Some(words))?;
    let Some(damage) = damage else {
        return Ok(CommandOutcome::Done);
    };
    let end = exported.last.map_or_else(
        || "has no record".to_owned(),
        |last| format!("ends with {}", describe_record(last)),
    );
    bail!("the export of {} {end}: {damage}", args.url);
}

/// Writes a line for each entry, in their order, up to the first record that cannot be read.
fn export_entries(
    store: Arc<dyn LogStore>,
    args: &LogExportArgs,
    out: &mut impl Write,
) -> Result<ExportedLog> {
    let mut exported = ExportedLog::default();
    let mut tail = LogTail::default();
    let first = read_first_number(&*store).map_err(with_context(&args.url))?;
    // The records before the first one have been removed.
    if first > 1 {
        match read_first_record(&*store, first) {
            Ok(record) => {
                exported.entries += export_record(&record, args, out)?;
                exported.last = Some(first);
                tail = record.tail();
            }
            Err(LogError::Store(error)) => return Err(with_context(&args.url)(error)),
            Err(damage) => {
                exported.damage = Some(damage);
                return Ok(exported);
            }
        }
    }
    let mut log = SharedLog::open(store, "export", tail);
    loop {
        match log.read_next() {
            Ok(Some(record)) => {
                exported.entries += export_record(&record, args, out)?;
                exported.last = Some(record.number);
            }
            Ok(None) => return Ok(exported),
            Err(LogError::Store(error)) => return Err(with_context(&args.url)(error)),
            Err(damage) => {
                exported.damage = Some(damage);
                return Ok(exported);
            }
        }
    }
}

fn read_first_record(store: &dyn LogStore, number: u64) -> Result<LogRecord, LogError> {
    let missing = LogError::Damaged(LogDamage {
        number,
        kind: DamageKind::Missing,
    });
    let object = store.read(&record_key(number))?.ok_or(missing)?;
    LogRecord::decode(number, &object)
}

fn export_record(record: &LogRecord, args: &LogExportArgs, out: &mut impl Write) -> Result<u64> {
    let mut exported = 0;
    for (at, entry) in record.entries.iter().enumerate() {
        let wanted = args.collection.as_ref();
        if wanted.is_none_or(|wanted| is_of_collection(&entry.subject, wanted)) {
            write_entry(record, at, entry, out)?;
            exported += 1;
        }
    }
    Ok(exported)
}

/// Returns `true` for the name of a collection, and for an alias with the collection that it led to.
fn is_of_collection(subject: &str, collection: &str) -> bool {
    let by_alias = subject.split_once('@');
    subject == collection || by_alias.is_some_and(|(_, named)| named == collection)
}

fn write_entry(
    record: &LogRecord,
    at: usize,
    entry: &LogEntry,
    out: &mut impl Write,
) -> Result<()> {
    let mut line = json!({
        "record": record.number,
        "entry": at,
        "time_us": record.time_us,
        "writer": record.writer,
        "kind": entry.kind.to_string(),
        "subject": entry.subject,
    });
    match entry.kind {
        EntryKind::Delete => line["id"] = String::from_utf8_lossy(&entry.body).into(),
        EntryKind::PutRecipe => line["bytes"] = entry.body.len().into(),
        _ if entry.body.is_empty() => {}
        _ => line["body"] = serde_json::from_slice::<Value>(&entry.body)?,
    }
    serde_json::to_writer(&mut *out, &line)?;
    out.write_all(b"\n")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The earliest state that is left is that of a snapshot whose next records are in the log.
    #[test]
    fn first_restorable_state_is_that_of_a_snapshot() {
        let place = |next| LogTail {
            next,
            ..LogTail::default()
        };
        let snapshot = |tail, end| SnapshotExtent {
            name: String::new(),
            tail: place(tail),
            end: place(end),
        };
        let snapshots = [snapshot(9, 12), snapshot(4, 5), snapshot(20, 20)];
        for (before, next) in [(1, 1), (4, 5), (5, 12), (9, 12), (10, 20)] {
            let first = find_first_restorable(&snapshots, before);
            assert_eq!(first.next, next, "{before}");
        }
    }
}
