//! `lookalike store log`: a shared log from outside.

use std::io::Write;
use std::sync::Arc;

use anyhow::{Result, bail};
use lookalike_io::sink::ByteWriter;
use lookalike_log::{
    EntryKind, FolderCopies, LogEntry, LogRecord, LogStatus, LogStore, LogTail, RepairReport,
    SharedLog, VerifyReport, log_status, prune_log, record_key, repair_log, verify_log,
};
use lookalike_server::{SHARED_LOG_COPIES, with_log_store};
use serde_json::{Value, json};

use super::args::{
    LogArgs, LogCommand, LogExportArgs, LogPruneArgs, LogRepairArgs, LogStatusArgs, LogVerifyArgs,
};
use super::{OutputLines, SHOWN_FINDINGS, data_output, print_summary};
use crate::CommandOutcome;
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

fn run_status(args: &LogStatusArgs) -> Result<CommandOutcome> {
    let status = with_log_store(&args.url, |store| {
        log_status(&*store).map_err(with_context(&args.url))
    })?;
    let words = describe_status(&status);
    print_summary(&args.telling, serde_json::to_value(&status)?, Some(words))?;
    Ok(CommandOutcome::Done)
}

fn describe_status(status: &LogStatus) -> String {
    let Some((first, last)) = status.first.zip(status.last) else {
        return messages::log_is_empty() + "\n";
    };
    let records = NounCount(status.records, CountedNoun::LogRecord);
    let megabytes = format!("{:.1}", status.bytes as f64 / 1e6);
    let mut words = messages::log_extent(records, first, last, &megabytes) + "\n";
    for writer in &status.writers {
        let records = NounCount(writer.records, CountedNoun::LogRecord);
        words += &messages::log_writer(&writer.writer, records, writer.format);
        words.push('\n');
    }
    for replica in &status.replicas {
        let (mark, lag) = (
            &replica.mark,
            NounCount(replica.lag, CountedNoun::LogRecord),
        );
        words += &messages::log_replica(&mark.name, &mark.version, mark.applied, lag);
        words.push('\n');
    }
    for snapshot in &status.snapshots {
        let megabytes = format!("{:.1}", snapshot.bytes as f64 / 1e6);
        words += &messages::log_snapshot(&snapshot.name, &megabytes);
        words.push('\n');
    }
    if status.unreadable > 0 {
        let records = NounCount(status.unreadable, CountedNoun::LogRecord);
        words += &messages::log_unreadable(records);
        words.push('\n');
    }
    words
}

fn run_verify(args: &LogVerifyArgs) -> Result<CommandOutcome> {
    let report = with_log_store(&args.url, |store| {
        verify_log(&*store, args.from).map_err(with_context(&args.url))
    })?;
    let printer = OutputPrinter::new(false);
    let damages: Vec<_> = report.damages.iter().map(ToString::to_string).collect();
    for damage in damages.iter().take(SHOWN_FINDINGS) {
        printer.print_warning(escape_control(damage));
    }
    let is_whole = report.damages.is_empty();
    let words = is_whole.then(|| describe_verified(&report));
    let summary = json!({
        "first": report.first,
        "last": report.last,
        "records": report.records,
        "bytes": report.bytes,
        "damages": damages,
        "newer": report.newer.iter().map(|newer| newer.number).collect::<Vec<_>>(),
    });
    print_summary(&args.telling, summary, words)?;
    if is_whole {
        return Ok(CommandOutcome::Done);
    }
    bail!(
        "the shared log {} is damaged at {} of {} records; `lookalike store log repair` writes back what a replica has \
         a copy of",
        args.url,
        format_count(report.damages.len() as u64),
        format_count(report.records)
    );
}

fn describe_verified(report: &VerifyReport) -> String {
    let records = NounCount(report.records, CountedNoun::LogRecord);
    messages::log_whole(records, report.first, report.last) + "\n"
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
    let report = with_log_store(&args.url, |store| {
        repair_log(&*store, &copies).map_err(with_context(&args.url))
    })?;
    let printer = OutputPrinter::new(false);
    for record in report.unrepaired.iter().take(SHOWN_FINDINGS) {
        let reason = escape_control(&record.reason).into_owned();
        printer.print_warning(messages::log_not_repaired(record.number, &reason));
    }
    print_summary(
        &args.telling,
        repair_as_json(&report),
        Some(describe_repair(&report)),
    )?;
    if report.unrepaired.is_empty() {
        return Ok(CommandOutcome::Done);
    }
    bail!(
        "{} records of the shared log {} could not be repaired: try the copies of another replica, or restore a \
         snapshot with `lookalike store restore --at`",
        format_count(report.unrepaired.len() as u64),
        args.url
    );
}

fn repair_as_json(report: &RepairReport) -> Value {
    let unrepaired = report.unrepaired.iter();
    let unrepaired: Vec<_> = unrepaired
        .map(|record| json!({ "number": record.number, "reason": record.reason }))
        .collect();
    json!({
        "objects": report.objects,
        "repaired": report.repaired,
        "unrepaired": unrepaired,
    })
}

fn describe_repair(report: &RepairReport) -> String {
    let records = NounCount(report.repaired.len() as u64, CountedNoun::LogRecord);
    messages::log_repaired(records) + "\n"
}

fn run_prune(args: &LogPruneArgs) -> Result<CommandOutcome> {
    let report = with_log_store(&args.url, |store| {
        let status = log_status(&*store).map_err(with_context(&args.url))?;
        let first_of = |name: &str| u64::from_str_radix(name.split('-').next()?, 16).ok();
        let is_behind = |name: &str| first_of(name).is_some_and(|first| first >= args.before);
        if !status
            .snapshots
            .iter()
            .any(|snapshot| is_behind(&snapshot.name))
        {
            bail!(
                "the shared log {} has no snapshot behind record {}, so no replica could start without its data: let a \
                 replica make one first (--snapshot-log-every)",
                args.url,
                args.before
            );
        }
        prune_log(&*store, args.before).map_err(with_context(&args.url))
    })?;
    let records = NounCount(report.removed, CountedNoun::LogRecord);
    let words = messages::log_pruned(records, report.before) + "\n";
    let summary = json!({
        "before": report.before,
        "last": report.last,
        "removed": report.removed,
        "bytes": report.bytes,
    });
    print_summary(&args.telling, summary, Some(words))?;
    Ok(CommandOutcome::Done)
}

fn run_export(args: &LogExportArgs) -> Result<CommandOutcome> {
    let output = data_output(args.output.as_deref(), &args.telling)?;
    let mut lines = OutputLines {
        writer: ByteWriter::create_output(&output)?,
        waiting: Vec::new(),
    };
    let exported = with_log_store(&args.url, |store| export_entries(store, args, &mut lines))?;
    lines.flush()?;
    lines.writer.finish_output()?;
    let entries = NounCount(exported, CountedNoun::LogEntry);
    let words = messages::log_exported(entries) + "\n";
    let summary = json!({ "entries": exported });
    print_summary(&args.telling, summary, Some(words))?;
    Ok(CommandOutcome::Done)
}

/// Writes a line for each entry, in their order; returns their number.
fn export_entries(
    store: Arc<dyn LogStore>,
    args: &LogExportArgs,
    out: &mut impl Write,
) -> Result<u64> {
    let status = log_status(&*store).map_err(with_context(&args.url))?;
    let mut exported = 0;
    let mut tail = LogTail::default();
    // The records before the first one have been removed.
    if let Some(first) = status.first.filter(|first| *first > 1) {
        let object = store
            .read(&record_key(first))
            .map_err(with_context(&args.url))?;
        let record = LogRecord::decode(first, &object.unwrap_or_default());
        let record = record.map_err(with_context(&args.url))?;
        exported += export_record(&record, args, out)?;
        tail = record.tail();
    }
    let mut log = SharedLog::open(store, "export", tail);
    while let Some(record) = log.read_next().map_err(with_context(&args.url))? {
        exported += export_record(&record, args, out)?;
    }
    Ok(exported)
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
