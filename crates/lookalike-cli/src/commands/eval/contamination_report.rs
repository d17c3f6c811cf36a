//! Findings in a planted corpus as text for people.

use std::fmt::Write as _;

use lookalike_batch::run::{ContaminationEvaluation, DecoyFindings, FormRecall};

use crate::language::messages;
use crate::output::{
    OutputPrinter, TextTone, escape_control, format_count, pad_before, pad_to_width,
};

/// Width of the name of a form.
const NAME_WIDTH: usize = 20;

/// Width of a number or a share.
const COLUMN_WIDTH: usize = 9;

/// Returns the scores: what is found by form, then the precision and the decoys.
pub(super) fn describe_contamination(
    done: &ContaminationEvaluation,
    printer: &OutputPrinter,
) -> String {
    let (planted, decoys) = (format_count(done.planted), format_count(done.decoys));
    let mut text = messages::contamination_planted(&planted, &decoys) + "\n";
    let heading = [
        messages::figure_planted(),
        messages::figure_found(),
        messages::recall(),
        messages::figure_short(),
        messages::figure_found(),
        messages::recall(),
    ];
    append_heading(&mut text, &messages::form_of_item(), &heading, printer);
    for form in &done.forms {
        append_form(&mut text, form);
    }
    let totals = messages::contamination_precision(
        &format_share(done.precision),
        &format_count(done.right),
        &format_count(done.wrong),
    );
    let recall = format_share(done.recall);
    let _ = write!(
        text,
        "\n{} {recall}\n{} {totals}\n",
        pad_to_width(&messages::recall(), NAME_WIDTH),
        pad_to_width(&messages::precision(), NAME_WIDTH)
    );
    if done.in_hosts > 0 {
        let number = format_count(done.in_hosts);
        let _ = writeln!(text, "{}", messages::findings_in_hosts(&number));
    }
    if done.in_other_documents > 0 {
        let number = format_count(done.in_other_documents);
        let _ = writeln!(text, "{}", messages::findings_elsewhere(&number));
    }
    if !done.decoy_kinds.is_empty() {
        text.push('\n');
        let heading = [
            messages::figure_planted(),
            messages::figure_wrong(),
            messages::figure_share(),
        ];
        append_heading(&mut text, &messages::decoy(), &heading, printer);
    }
    for kind in &done.decoy_kinds {
        append_decoys(&mut text, kind);
    }
    text
}

fn append_heading(text: &mut String, name: &str, columns: &[String], printer: &OutputPrinter) {
    let mut heading = pad_to_width(name, NAME_WIDTH);
    for column in columns {
        let _ = write!(heading, " {}", pad_before(column, COLUMN_WIDTH));
    }
    let _ = writeln!(
        text,
        "{}",
        printer.paint_for_output(TextTone::Heading, &heading)
    );
}

fn append_form(text: &mut String, form: &FormRecall) {
    let _ = writeln!(
        text,
        "{} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
        pad_to_width(&escape_control(&form.form), NAME_WIDTH),
        format_count(form.planted),
        format_count(form.found),
        format_share(Some(form.recall)),
        format_count(form.short),
        format_count(form.short_found),
        format_share(form.short_recall)
    );
}

fn append_decoys(text: &mut String, kind: &DecoyFindings) {
    let _ = writeln!(
        text,
        "{} {:>9} {:>9} {:>9}",
        pad_to_width(&escape_control(&kind.form), NAME_WIDTH),
        format_count(kind.planted),
        format_count(kind.wrong),
        format_share(Some(kind.share))
    );
}

fn format_share(share: Option<f64>) -> String {
    share.map_or_else(|| "-".to_owned(), |share| format!("{share:.3}"))
}
