//! The audit of a run in its summary.

use lookalike_batch::run::{AuditReport, ByEdit, ByLength, EstimatedShare, PlantedReport};

use super::summary::{SummaryText, round_to_four_digits};
use crate::output::{OutputPrinter, TextTone, format_count, format_plural};

/// Number of kinds of edits that are named because copies were missed.
const NAMED_EDITS: usize = 5;

impl SummaryText {
    /// Adds the result of an audit, if there is one. `reported` names what the run reports.
    pub(crate) fn add_audit(
        &mut self,
        audit: Option<&AuditReport>,
        reported: &str,
        printer: &OutputPrinter,
    ) {
        let Some(audit) = audit else { return };
        self.add_heading(printer, TextTone::Heading, &describe_sample(audit));
        self.add_audited_recall(audit);
        self.add_audited_precision(audit, reported);
        if let Some(planted) = &audit.planted {
            self.add_planted_edits(planted);
        }
    }

    fn add_audited_recall(&mut self, audit: &AuditReport) {
        let least = audit.least_jaccard.map_or_else(String::new, |least| {
            format!(
                " with a Jaccard index of {} or more",
                round_to_four_digits(least)
            )
        });
        self.add_line(
            "recall",
            format_args!(
                "{} of the matches of {}{least} are found",
                format_share(&audit.recall),
                format_sampled(audit.recall.cases)
            ),
        );
        self.add_by_length(audit, |one| &one.recall, format_sampled);
        if let Some(left) = &audit.left_together {
            let left = format_share(left);
            let stay = "of these matches stay in the output together with the document";
            self.add_line("left together", format_args!("{left} {stay}"));
        }
    }

    fn add_audited_precision(&mut self, audit: &AuditReport, reported: &str) {
        self.add_line(
            "precision",
            format_args!(
                "{} of {} {reported}, verified again, reach the threshold",
                format_share(&audit.precision),
                format_count(audit.precision.cases)
            ),
        );
        self.add_by_length(audit, |one| &one.precision, format_count);
    }

    /// Adds a share for each length of documents that has cases.
    fn add_by_length(
        &mut self,
        audit: &AuditReport,
        share_of: fn(&ByLength) -> &EstimatedShare,
        format_cases: fn(u64) -> String,
    ) {
        for of_length in &audit.by_length {
            let share = share_of(of_length);
            if share.cases > 0 {
                self.add_line(
                    "",
                    format_args!(
                        "  {} of {} of {} tokens",
                        format_share(share),
                        format_cases(share.cases),
                        of_length.length
                    ),
                );
            }
        }
    }

    fn add_planted_edits(&mut self, planted: &PlantedReport) {
        self.add_line(
            "planted edits",
            format_args!(
                "{} of {} that reach the threshold, of {} planted, are found",
                format_share(&planted.recall),
                format_plural(planted.recall.cases, "edited copy", "edited copies"),
                format_count(planted.copies)
            ),
        );
        let missed = |edit: &&ByEdit| edit.recall.share.is_some_and(|share| share < 1.0);
        for edit in planted.by_edit.iter().filter(missed).take(NAMED_EDITS) {
            let (share, edit) = (
                format_share(&edit.recall),
                format_edit(edit.kind, edit.strength),
            );
            self.add_line("", format_args!("  {share} of {edit}"));
        }
    }
}

fn describe_sample(audit: &AuditReport) -> String {
    let wanted = match audit.requested > audit.sampled {
        true => format!(" of the {} requested", format_count(audit.requested)),
        false => String::new(),
    };
    format!(
        "Audit: {}{wanted} sampled (seed {}) and compared exactly with all documents read after \
         them",
        format_plural(audit.sampled, "document", "documents"),
        audit.seed
    )
}

fn format_sampled(cases: u64) -> String {
    format_plural(cases, "sampled document", "sampled documents")
}

/// Formats a kind of edit and its strength in per cent.
pub(crate) fn format_edit(kind: &str, strength: Option<f64>) -> String {
    match strength {
        None => kind.to_owned(),
        Some(strength) => format!("{kind} {} %", (strength * 1000.0).round() / 10.0),
    }
}

/// Formats a share and its interval with four decimals.
fn format_share(share: &EstimatedShare) -> String {
    let interval = format!("95 %: {:.4} to {:.4}", share.low, share.high);
    match share.share {
        Some(mean) => format!("{mean:.4} ({interval})"),
        None => "no estimate".to_owned(),
    }
}
