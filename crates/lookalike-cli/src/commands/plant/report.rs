//! Results of `plant` for people: the summary, and the table of the effects of edits.

use std::fmt::Write as _;

use lookalike_batch::run::{PlantContaminationSummary, PlantSummary, RemainingSimilarity};

use super::args::PlantArgs;
use crate::commands::shared::audit_report::format_edit;
use crate::commands::shared::summary::{SummaryText, TEXT_OPTIONS, format_recipe};
use crate::language::{CountedNoun, NounCount, messages};
use crate::output::{OutputPrinter, TextTone, format_count, pad_to_width};

/// Returns the summary.
pub(super) fn describe_planted(done: &PlantSummary, args: &PlantArgs) -> String {
    let pairs = |number| NounCount(number, CountedNoun::Pair);
    let mut text = SummaryText::from_speed(done.documents, done.bytes, done.seconds);
    let copies = NounCount(done.copies, CountedNoun::EditedCopy);
    let sampled = NounCount(done.sampled, CountedNoun::Document);
    text.add_line(
        &messages::planted(),
        messages::planted_copies(copies, sampled, &done.mark),
    );
    if done.filled_forms > 0 {
        let repeats = NounCount(done.form_repeats, CountedNoun::Document);
        let filled = NounCount(done.filled_forms, CountedNoun::Document);
        text.add_line(&messages::forms(), messages::planted_forms(filled, repeats));
    }
    let natural = messages::natural_pairs(pairs(done.natural));
    text.add_line(&messages::natural(), natural);
    let near = messages::near_pairs(pairs(done.near_misses));
    text.add_line(&messages::near_misses(), near);
    let others = messages::other_pairs(pairs(done.siblings), pairs(done.unrelated));
    text.add_line(&messages::others(), others);
    text.add_rejected(done.rejected, done.documents, TEXT_OPTIONS);
    let recipe = format_recipe(&done.recipe, &done.recipe_id);
    let rule = messages::planting_rule(done.threshold, &recipe, done.seed);
    text.add_line(&messages::measured_by(), rule);
    text.add_line(&messages::corpus(), args.output.display());
    text.add_line(&messages::labels(), args.labels.display());
    text.into_text()
}

/// Returns the summary of planted items: their halves, and the planted documents by form.
pub(super) fn describe_contamination(done: &PlantContaminationSummary, args: &PlantArgs) -> String {
    let mut text = SummaryText::from_speed(done.documents, done.bytes, done.seconds);
    let count = format_count;
    let planted = messages::planted_items(
        &count(done.planted),
        &count(done.decoys),
        NounCount(done.sampled, CountedNoun::Document),
        &done.mark,
    );
    text.add_line(&messages::planted(), planted);
    let halves = messages::item_halves(
        &count(done.items),
        &count(done.indexed),
        &count(done.held_out),
        &count(done.unused_items),
    );
    text.add_line(&messages::items(), halves);
    text.add_rejected(done.rejected, done.documents, TEXT_OPTIONS);
    text.add_line(&messages::corpus(), args.output.display());
    text.add_line(&messages::labels(), args.labels.display());
    if let Some(indexed) = &args.contamination.indexed {
        text.add_line(&messages::indexed_items(), indexed.display());
    }
    let mut text = text.into_text();
    for form in &done.forms {
        let number = count(form.planted);
        let _ = write!(text, "  {} {number:>7}", pad_to_width(form.form, 20));
        if form.not_applicable > 0 {
            let idle = messages::form_not_applicable(&count(form.not_applicable));
            let _ = write!(text, "  {idle}");
        }
        text.push('\n');
    }
    text
}

/// Returns a line for every edit: the effect on all copies, and the share that reaches the threshold by
/// length.
pub(super) fn describe_effects(done: &PlantSummary, printer: &OutputPrinter) -> String {
    let heading = format!(
        "Similarity after each edit (lengths in tokens; above: at {} or more)",
        done.threshold
    );
    let mut text = format!(
        "{}\n",
        printer.paint_for_output(TextTone::Heading, &heading)
    );
    let lengths = length_classes(done);
    let _ = write!(
        text,
        "{:<24} {:>7} {:>7} {:>6} {:>6} {:>6}",
        "edit", "copies", "no use", "mean", "5 %", "above"
    );
    for length in &lengths {
        let _ = write!(text, " {length:>9}");
    }
    text.push('\n');
    for effect in &done.effects {
        let _ = write!(
            text,
            "{:<24} {:>7} {:>7} {:>6} {:>6} {:>6}",
            format_edit(effect.kind, effect.strength),
            effect.all.copies,
            effect.not_applicable,
            format_figure(&effect.all, effect.all.mean),
            format_figure(&effect.all, effect.all.low),
            format_figure(&effect.all, effect.all.above)
        );
        for length in &lengths {
            let of_length = effect.by_length.iter().find(|left| left.length == *length);
            let above =
                of_length.map_or_else(|| "-".to_owned(), |left| format_figure(left, left.above));
            let _ = write!(text, " {above:>9}");
        }
        text.push('\n');
    }
    text
}

/// Returns the length classes of the copies, short to long.
fn length_classes(done: &PlantSummary) -> Vec<&'static str> {
    let mut lengths = Vec::new();
    for left in done.effects.iter().flat_map(|effect| &effect.by_length) {
        if !lengths.contains(&left.length) {
            lengths.push(left.length);
        }
    }
    let least = |length: &&str| {
        let digits = length.split('-').next().unwrap_or_default();
        digits.parse::<u64>().unwrap_or_default()
    };
    lengths.sort_by_key(least);
    lengths
}

fn format_figure(left: &RemainingSimilarity, value: f64) -> String {
    if left.copies == 0 {
        "-".to_owned()
    } else {
        format!("{value:.3}")
    }
}
