//! Summaries of `index` for people.

use lookalike_batch::index::{
    AddSummary, CompactSummary, CountsSummary, IndexInfo, RemoveSummary, RowContent, VerifySummary,
};

use crate::commands::shared::fingerprints::field_option;
use crate::commands::shared::summary::{SummaryText, format_optional_recipe};
use crate::language::{CountedNoun, NounCount, messages};
use crate::output::{escape_control, format_bytes, format_count, format_duration};

/// Returns the summary of building an index or adding to one.
pub(super) fn describe_added(done: &AddSummary, content: &RowContent) -> String {
    let read = done.added + done.empty;
    let mut text = SummaryText::from_speed(read, done.bytes, done.seconds);
    text.add_line(&messages::added(), format_count(done.added));
    text.add_unfingerprinted(done.unfingerprinted);
    text.add_empty_rows(done.empty, messages::empty_left_out);
    text.add_rejected(done.rejected, read, field_option(content));
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

/// Returns the summary of the counts of a library.
pub(super) fn describe_counts(done: &CountsSummary) -> String {
    let mut text = SummaryText::default();
    let rows = NounCount(done.rows, CountedNoun::Row);
    let documents = NounCount(done.documents, CountedNoun::Document);
    text.add_text(messages::rows_stand_for(rows, documents));
    if done.uncounted > 0 {
        let later = messages::counted_later(&format_count(done.uncounted));
        text.add_line(&messages::counts(), later);
    }
    text.into_text()
}

/// Returns the summary of a compaction.
pub(super) fn describe_compaction(done: &CompactSummary) -> String {
    let mut text = SummaryText::default();
    text.add_text(messages::segments_rewritten(
        NounCount(done.segments, CountedNoun::IndexSegment),
        &format_count(done.index.segments.len() as u64),
        &format_duration(done.seconds),
    ));
    let erased = NounCount(done.erased, CountedNoun::Row);
    text.add_line(&messages::erased(), erased);
    text.add_line(&messages::before(), format_bytes(done.bytes_before));
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
    text.add_line(&messages::index(), escape_control(&info.path));
    let count = format_count(info.fingerprints);
    let fingerprints = messages::fingerprints_of_bits(&count, info.bits);
    text.add_line(&messages::fingerprints(), fingerprints);
    if info.unfingerprinted > 0 {
        let short = messages::rows_without_fingerprint(&format_count(info.unfingerprinted));
        text.add_line(&messages::texts_too_short(), short);
    }
    if info.tombstones > 0 {
        let removed = messages::still_on_disk(&format_count(info.tombstones));
        text.add_line(&messages::removed(), removed);
    }
    text.add_line(&messages::distance(), messages::at_most(info.distance));
    let recipe = format_optional_recipe(info.recipe.as_deref(), info.recipe_id.as_deref());
    text.add_line(&messages::recipe(), recipe);
    add_contents(&mut text, info);
    text.add_line(&messages::plan(), &info.plan);
    if let Some(memory) = info.max_memory_bytes {
        let memory = messages::at_most(format_bytes(memory));
        text.add_line(&messages::memory(), memory);
    }
    text.add_line(&messages::on_disk(), format_bytes(info.bytes));
    for segment in &info.segments {
        let rows = NounCount(segment.rows, CountedNoun::Row);
        let bytes = messages::further_part(&format_bytes(segment.bytes));
        let plan = segment.plan.as_deref().map(messages::further_part);
        let plan = plan.unwrap_or_default();
        text.add_line(&messages::segment(), format_args!("{rows}{bytes}{plan}"));
    }
    text.into_text()
}

/// Adds what an index stores, and how it can be searched.
fn add_contents(text: &mut SummaryText, info: &IndexInfo) {
    let ids = match info.has_ids {
        None => messages::unknown_until_added(),
        Some(true) => messages::stored(),
        Some(false) => messages::row_numbers(),
    };
    text.add_line(&messages::ids(), ids);
    let texts = if info.has_texts {
        messages::stored()
    } else {
        messages::not_stored()
    };
    text.add_line(&messages::texts(), texts);
    let searched = if info.has_features {
        messages::by_distance_threshold_measure()
    } else {
        messages::by_distance_alone()
    };
    text.add_line(&messages::searched(), searched);
    if let Some(words) = info.min_passage_words {
        let passages = messages::passages_of_words(words);
        text.add_line(&messages::passages(), passages);
    }
}

/// Returns the summary of a verified index.
pub(super) fn describe_verified(done: &VerifySummary) -> String {
    let mut text = SummaryText::default();
    text.add_text(messages::files_whole(
        NounCount(done.files, CountedNoun::File),
        &format_bytes(done.bytes),
        NounCount(done.rows, CountedNoun::Row),
        &format_duration(done.seconds),
    ));
    if done.sampled > 0 {
        let again = messages::computed_again(&format_count(done.sampled));
        text.add_line(&messages::fingerprints(), again);
    }
    text.into_text()
}
