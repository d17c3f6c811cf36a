//! Summaries of `index` for people.

use lookalike_batch::index::{
    AddSummary, CompactSummary, IndexEntries, IndexInfo, RemoveSummary, VerifySummary,
};

use crate::commands::shared::fingerprints::field_option;
use crate::commands::shared::summary::{SummaryText, format_optional_recipe};
use crate::language::{CountedNoun, NounCount, messages};
use crate::output::{escape_control, format_bytes, format_count, format_duration, format_plural};

/// Returns the summary of building an index or adding to one.
pub(super) fn describe_added(done: &AddSummary, entries: &IndexEntries) -> String {
    let read = done.added + done.empty;
    let mut text = SummaryText::from_speed(read, done.bytes, done.seconds);
    text.add_line(&messages::added(), format_count(done.added));
    text.add_unfingerprinted(done.unfingerprinted);
    text.add_empty_rows(done.empty, messages::empty_left_out);
    text.add_rejected(done.rejected, read, field_option(entries));
    if done.spilled_bytes > 0 {
        let written = messages::written_to_disk(&format_bytes(done.spilled_bytes));
        text.add_line(&messages::out_of_core(), written);
    }
    add_index(&mut text, &done.index);
    text.into_text()
}

/// Returns the summary of removing rows.
pub(super) fn describe_removal(done: &RemoveSummary) -> String {
    let mut text = SummaryText::default();
    let rows = NounCount(done.removed, CountedNoun::Row);
    text.add_text(messages::removed_in(rows, &format_duration(done.seconds)));
    if !done.missing.is_empty() {
        let missing = format_count(done.missing.len() as u64);
        text.add_line(&messages::not_found(), missing);
    }
    add_index(&mut text, &done.index);
    text.into_text()
}

/// Returns the summary of a compaction.
pub(super) fn describe_compaction(done: &CompactSummary) -> String {
    let mut text = SummaryText::default();
    text.add_text(format_args!(
        "{} written as {} in {}",
        format_plural(done.segments, "segment", "segments"),
        format_count(done.index.segments.len() as u64),
        format_duration(done.seconds)
    ));
    text.add_line("erased", format_plural(done.erased, "row", "rows"));
    text.add_line("before", format_bytes(done.bytes_before));
    add_index(&mut text, &done.index);
    text.into_text()
}

fn add_index(text: &mut SummaryText, info: &IndexInfo) {
    let path = escape_control(&info.path);
    let rows = NounCount(info.fingerprints, CountedNoun::Row);
    let held = messages::index_holds(&path, rows, &format_bytes(info.bytes));
    text.add_line(&messages::index(), held);
}

/// Returns the description of an index.
pub(super) fn describe_index(info: &IndexInfo) -> String {
    let mut text = SummaryText::default();
    text.add_line("index", escape_control(&info.path));
    let count = format_count(info.fingerprints);
    text.add_line(
        "fingerprints",
        format_args!("{count} of {} bits", info.bits),
    );
    if info.unfingerprinted > 0 {
        let short = format_count(info.unfingerprinted);
        text.add_line(
            "texts too short",
            format_args!("{short} of these rows have no fingerprint"),
        );
    }
    if info.tombstones > 0 {
        let removed = format_count(info.tombstones);
        text.add_line(
            "removed",
            format_args!("{removed} that still use disk space"),
        );
    }
    text.add_line("distance", format_args!("at most {}", info.distance));
    let recipe = format_optional_recipe(info.recipe.as_deref(), info.recipe_id.as_deref());
    text.add_line("recipe", recipe);
    add_contents(&mut text, info);
    text.add_line("plan", &info.plan);
    if let Some(memory) = info.max_memory_bytes {
        text.add_line("memory", format_args!("at most {}", format_bytes(memory)));
    }
    text.add_line("on disk", format_bytes(info.bytes));
    for segment in &info.segments {
        let rows = format_plural(segment.rows, "row", "rows");
        let plan = segment.plan.iter().map(|plan| format!(", {plan}"));
        let plan: String = plan.collect();
        let bytes = format_bytes(segment.bytes);
        text.add_line("segment", format_args!("{rows}, {bytes}{plan}"));
    }
    text.into_text()
}

/// Adds what an index stores, and how it can be searched.
fn add_contents(text: &mut SummaryText, info: &IndexInfo) {
    let ids = match info.has_ids {
        None => "not known until rows are added",
        Some(true) => "stored",
        Some(false) => "row numbers",
    };
    text.add_line("ids", ids);
    let texts = if info.has_texts {
        "stored"
    } else {
        "not stored"
    };
    text.add_line("texts", texts);
    let searched = match info.has_features {
        true => "by distance, threshold and measure",
        false => "by distance",
    };
    text.add_line("searched", searched);
    if let Some(words) = info.min_passage_words {
        text.add_line(
            "passages",
            format_args!("of at least {words} words, with `lookalike passages IN --index`"),
        );
    }
}

/// Returns the summary of a verified index.
pub(super) fn describe_verified(done: &VerifySummary) -> String {
    let mut text = SummaryText::default();
    text.add_text(format_args!(
        "{} ({}) with {} in {}: whole",
        format_plural(done.files, "file", "files"),
        format_bytes(done.bytes),
        format_plural(done.rows, "row", "rows"),
        format_duration(done.seconds)
    ));
    if done.sampled > 0 {
        let sampled = format_count(done.sampled);
        text.add_line(
            "fingerprints",
            format_args!("{sampled} computed again from their texts: equal"),
        );
    }
    text.into_text()
}
