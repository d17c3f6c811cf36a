//! The audit of a run in its summary.

use lookalike_batch::run::{
    AuditReport, AuditedContents, ByEdit, ByLength, EstimatedShare, PlantedReport,
};

use super::summary::{SummaryText, round_to_four_digits, shorten_id};
use crate::language::engine_phrases::translate_phrase;
use crate::language::{CountedNoun, NounCount, messages};
use crate::output::{OutputPrinter, TextTone, format_count};

/// Number of kinds of edits that are named because copies were missed.
const NAMED_EDITS: usize = 5;

impl SummaryText {
    /// Adds the result of an audit, if there is one. `describe_precision` is the message of its precision.
    pub(crate) fn add_audit(
        &mut self,
        audit: Option<&AuditReport>,
        describe_precision: fn(&str, &str) -> String,
        printer: &OutputPrinter,
    ) {
        let Some(audit) = audit else { return };
        self.add_heading(printer, TextTone::Heading, &describe_sample(audit));
        self.add_audited_recall(audit);
        self.add_audited_precision(audit, describe_precision);
        match &audit.contents {
            Some(contents) => self.add_other_contents(contents),
            // Only runs that remove documents say what is left together.
            None if audit.left_together.is_some() => {
                self.add_line(&messages::other_contents(), messages::no_contents());
            }
            None => {}
        }
        if let Some(planted) = &audit.planted {
            self.add_planted_edits(planted);
        }
    }

    fn add_audited_recall(&mut self, audit: &AuditReport) {
        let least = audit.least_jaccard.map_or_else(String::new, |least| {
            messages::with_least_index(round_to_four_digits(least))
        });
        let sampled = NounCount(audit.recall.cases, CountedNoun::SampledDocument);
        let found = messages::recall_of(&format_share(&audit.recall), sampled, &least);
        self.add_line(&messages::recall(), found);
        self.add_by_length(audit, |one| &one.recall, format_sampled);
        if let Some(left) = &audit.left_together {
            let left = messages::left_together_of(&format_share(left));
            self.add_line(&messages::left_together(), left);
        }
    }

    fn add_audited_precision(
        &mut self,
        audit: &AuditReport,
        describe_precision: fn(&str, &str) -> String,
    ) {
        let (share, cases) = (
            format_share(&audit.precision),
            format_count(audit.precision.cases),
        );
        let confirmed = describe_precision(&share, &cases);
        self.add_line(&messages::precision(), confirmed);
        self.add_by_length(audit, |one| &one.precision, format_count);
    }

    /// Adds the share of removals that say something else, and what a person would look at first.
    fn add_other_contents(&mut self, contents: &AuditedContents) {
        let share = &contents.different;
        let told = messages::other_contents_of(&format_share(share), &format_count(share.cases));
        self.add_line(&messages::other_contents(), told);
        if contents.run_compares_forms {
            self.add_line("", messages::contents_by_same_rules());
        }
        for example in &contents.examples {
            let [removed, kept] = [&example.removed, &example.kept].map(|id| shorten_id(id));
            let difference = &translate_phrase(&example.difference);
            self.add_line(
                "",
                match example.of_same - 1 {
                    0 => messages::other_content(&removed, &kept, difference),
                    others => messages::other_content_of_many(&removed, others, &kept, difference),
                },
            );
        }
        if !contents.examples.is_empty() && !contents.run_compares_forms {
            self.add_line("", messages::to_keep_contents());
        }
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
                let (share, cases) = (format_share(share), format_cases(share.cases));
                self.add_line("", messages::by_length(&share, &cases, of_length.length));
            }
        }
    }

    fn add_planted_edits(&mut self, planted: &PlantedReport) {
        let cases = NounCount(planted.recall.cases, CountedNoun::EditedCopy);
        let (share, copies) = (format_share(&planted.recall), format_count(planted.copies));
        let found = messages::planted_found(&share, cases, &copies);
        self.add_line(&messages::planted_edits(), found);
        let missed = |edit: &&ByEdit| edit.recall.share.is_some_and(|share| share < 1.0);
        for edit in planted.by_edit.iter().filter(missed).take(NAMED_EDITS) {
            let (share, edit) = (
                format_share(&edit.recall),
                format_edit(edit.kind, edit.strength),
            );
            self.add_line("", messages::missed_edit(&share, &edit));
        }
    }
}

fn describe_sample(audit: &AuditReport) -> String {
    let requested = if audit.requested > audit.sampled {
        messages::of_requested(&format_count(audit.requested))
    } else {
        String::new()
    };
    let sampled = NounCount(audit.sampled, CountedNoun::Document);
    messages::audit(sampled, &requested, audit.seed)
}

fn format_sampled(cases: u64) -> String {
    NounCount(cases, CountedNoun::SampledDocument).to_string()
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
    let [low, high] = [share.low, share.high].map(|end| format!("{end:.4}"));
    let interval = messages::interval(low, high);
    match share.share {
        Some(mean) => messages::estimate(format_args!("{mean:.4}"), &interval),
        None => messages::no_estimate(),
    }
}
