//! Summary of `dedup` for people.

use lookalike_batch::run::{
    DedupSummary, FormAdvice, RepeatedTextAction, SuspicionKind, SuspiciousCluster,
};

use super::args::{DedupArgs, DedupOutput, OutputArgument, explain_command};
use crate::commands::shared::outputs::is_standard;
use crate::commands::shared::summary::{SummaryText, TEXT_OPTIONS, shorten_id};
use crate::language::engine_phrases::translate_phrase;
use crate::language::{CountedNoun, NounCount, messages};
use crate::output::{OutputPrinter, TextTone, escape_control, format_bytes, format_count};

/// Number of clusters that are named.
const NAMED_CLUSTERS: usize = 5;

/// Returns the summary of a dedup run. `written` names the outputs and their files.
pub(super) fn describe_dedup(
    done: &DedupSummary,
    args: &DedupArgs,
    written: &[OutputArgument<'_>],
    printer: &OutputPrinter,
) -> String {
    let mut text = SummaryText::from_speed(done.documents, done.run.bytes, done.run.seconds);
    add_against(&mut text, done);
    text.add_line(&messages::kept(), format_count(done.kept));
    add_removed(&mut text, done);
    add_decisions(&mut text, done);
    text.add_forms(done.forms);
    add_passages(&mut text, done);
    add_clusters(&mut text, done, printer);
    let heading = messages::similarity_of_removed();
    text.add_histogram(&done.histogram, done.run.threshold, &heading, printer);
    let audit = done.audit.as_ref();
    text.add_audit(audit, messages::precision_of_removed, printer);
    add_short_texts(&mut text, done);
    text.add_rejected(done.run.rejected, done.documents, TEXT_OPTIONS);
    add_suspicions(&mut text, done, printer);
    text.add_matching(&done.run);
    text.add_spilled(done.spilled);
    if !args.dry_run {
        add_growth(&mut text, done);
    }
    add_outputs(&mut text, args, written);
    if done.removed > 0 {
        add_explain_hint(&mut text, args, written);
    }
    text.into_text()
}

fn add_against(text: &mut SummaryText, done: &DedupSummary) {
    if done.against > 0 {
        let documents = NounCount(done.against, CountedNoun::Document);
        text.add_line(&messages::reference(), documents);
    }
    if let Some(library) = &done.library {
        let rows = NounCount(library.compared, CountedNoun::Document);
        let compared = messages::compared_of_library(rows, escape_control(&library.path));
        text.add_line(&messages::library(), compared);
    }
    if done.shared_ids > 0 {
        let shared = messages::shared_ids_of(&format_count(done.shared_ids));
        text.add_line(&messages::shared_ids(), shared);
    }
    if let Some(mixed) = done.mixed_values {
        let [numbers, strings] = [mixed.numbers, mixed.strings].map(format_count);
        let mixed = messages::mixed_values_of(&numbers, &strings);
        text.add_line(&messages::mixed_values(), mixed);
    }
}

/// Adds what the library has received.
fn add_growth(text: &mut SummaryText, done: &DedupSummary) {
    let Some(library) = &done.library else {
        return;
    };
    let added = messages::added_to_library(
        NounCount(library.added, CountedNoun::Document),
        escape_control(&library.path),
        NounCount(library.rows, CountedNoun::Document),
        &format_bytes(library.bytes),
    );
    text.add_line(&messages::added(), added);
    if library.repeated_ids > 0 {
        let repeated = messages::added_again(&format_count(library.repeated_ids));
        text.add_line("", repeated);
    }
}

fn add_removed(text: &mut SummaryText, done: &DedupSummary) {
    let share = 100.0 * done.removed as f64 / done.documents.max(1) as f64;
    let removed = format_count(done.removed);
    let removed = messages::share_of(&removed, format_args!("{share:.1}"));
    text.add_line(&messages::removed(), removed);
    if let Some(dropped) = done.dropped {
        let dropped = NounCount(dropped, CountedNoun::Cluster);
        text.add_line("", messages::dropped_clusters(dropped));
    }
    for (route, documents) in done.by_route.counts() {
        if documents > 0 {
            let how = translate_phrase(route.description());
            text.add_line("", format_args!("{:>9} {how}", format_count(documents)));
        }
    }
}

fn add_decisions(text: &mut SummaryText, done: &DedupSummary) {
    let Some(decisions) = &done.decisions else {
        return;
    };
    let [same, different] = [decisions.same, decisions.different].map(format_count);
    text.add_line(
        &messages::decisions(),
        messages::decisions_made(&same, &different),
    );
    let others = [
        (decisions.forms, messages::decisions_about_forms()),
        (
            decisions.forms_not_applied,
            messages::decisions_without_forms(),
        ),
        (
            decisions.forms_without_documents,
            messages::decisions_on_absent_forms(),
        ),
        (decisions.without_pair, messages::decisions_without_pair()),
        (
            decisions.of_other_recipes,
            messages::decisions_of_other_recipes(),
        ),
    ];
    for (count, what) in others.into_iter().filter(|(count, _)| *count > 0) {
        text.add_line("", format_args!("{:>9} {what}", format_count(count)));
    }
}

fn add_passages(text: &mut SummaryText, done: &DedupSummary) {
    let Some(found) = &done.passages else {
        return;
    };
    let documents = NounCount(found.documents, CountedNoun::KeptDocument);
    let emptied = NounCount(found.emptied, CountedNoun::KeptDocument);
    let (number, tokens) = (format_count(found.passages), format_count(found.tokens));
    let (treated, emptied) = match found.action {
        RepeatedTextAction::Mark => (
            messages::passages_marked(&number, documents, &tokens),
            messages::nothing_else_in(emptied),
        ),
        RepeatedTextAction::Remove => (
            messages::passages_removed(&number, documents, &tokens),
            messages::nothing_left_of(emptied),
        ),
    };
    text.add_line(&messages::passages(), treated);
    if found.emptied > 0 {
        text.add_line("", emptied);
    }
}

fn add_clusters(text: &mut SummaryText, done: &DedupSummary, printer: &OutputPrinter) {
    text.add_line(&messages::clusters(), format_count(done.clusters));
    if let Some(components) = done.components {
        text.add_line(&messages::components(), format_count(components));
    }
    if done.largest.is_empty() {
        return;
    }
    let heading = messages::largest_clusters();
    text.add_heading(printer, TextTone::Heading, &heading);
    for cluster in done.largest.iter().take(NAMED_CLUSTERS) {
        text.add_text(format_args!(
            "  {:>9}  {:.2}  {}",
            format_count(cluster.documents),
            cluster.least_similarity,
            shorten_id(&cluster.cluster)
        ));
    }
}

/// A message about a count.
type CountMessage = fn(&str) -> String;

fn add_short_texts(text: &mut SummaryText, done: &DedupSummary) {
    let states: [(u64, CountMessage); 3] = [
        (done.states.too_short, messages::compared_as_whole),
        (done.states.symbols_only, messages::compared_as_they_are),
        (done.states.empty, messages::empty_kept),
    ];
    for (documents, describe) in states.into_iter().filter(|(documents, _)| *documents > 0) {
        let treated = describe(&format_count(documents));
        text.add_line(&messages::texts_too_short(), treated);
    }
}

fn add_suspicions(text: &mut SummaryText, done: &DedupSummary, printer: &OutputPrinter) {
    if done.suspicious.is_empty() {
        return;
    }
    text.add_heading(printer, TextTone::Warning, &messages::suspicious_clusters());
    for suspicion in done.suspicious.iter().take(NAMED_CLUSTERS) {
        let reason = translate_phrase(&suspicion.reason);
        let reason = escape_control(&reason);
        let cluster = shorten_id(&suspicion.cluster);
        text.add_text(format_args!("  {cluster}: {reason}"));
    }
    let more = done.suspicious.len().saturating_sub(NAMED_CLUSTERS);
    if more > 0 {
        text.add_text(format_args!("  {}", messages::and_more(more)));
    }
    let is_form = |suspicion: &SuspiciousCluster| suspicion.kind == SuspicionKind::Form;
    if done.suspicious.iter().any(is_form) {
        match done.form_advice {
            FormAdvice::Impossible => {}
            FormAdvice::Learn => text.add_text(messages::to_keep_forms("--forms learn")),
            FormAdvice::ExtendTable => text.add_text(messages::to_extend_forms()),
            FormAdvice::NewIndex => text.add_text(messages::to_begin_library_with_forms()),
        }
    }
}

fn add_outputs(text: &mut SummaryText, args: &DedupArgs, written: &[OutputArgument<'_>]) {
    if args.dry_run {
        text.add_line(&messages::written(), messages::nothing_written());
    }
    for (output, place) in written.iter().filter(|(_, place)| !is_standard(place)) {
        let label = match output {
            DedupOutput::KeptRows if args.annotate => messages::all_rows(),
            DedupOutput::KeptRows => messages::kept_rows(),
            DedupOutput::Removed => messages::removed(),
            DedupOutput::Clusters => messages::clusters(),
            DedupOutput::RejectedRows => messages::rejected_rows(),
            DedupOutput::Cuts => messages::cuts(),
            DedupOutput::Report => messages::report(),
        };
        text.add_line(&label, place.display());
    }
}

/// Adds the command that explains a removal.
fn add_explain_hint(text: &mut SummaryText, args: &DedupArgs, written: &[OutputArgument<'_>]) {
    let how = explain_command(args, written).unwrap_or_else(messages::run_with_removed);
    text.add_text(messages::to_see_why(&how));
}

#[cfg(test)]
mod tests {
    use lookalike::similarity::Route;
    use std::path::Path;

    use clap::Parser;
    use lookalike::Similarity;
    use lookalike_batch::run::{
        AuditReport, AuditedContents, ByEdit, ByLength, ByRoute, DifferentRemoval, EstimatedShare,
        LargeCluster, PlantedReport, RunSummary, SuspicionKind, SuspiciousCluster, TextStateCounts,
    };

    use super::*;
    use crate::commands::{Command, CommandLine};

    fn count_routes(counts: &[(Route, usize)]) -> ByRoute {
        let mut by_route = ByRoute::default();
        for &(route, count) in counts {
            (0..count).for_each(|_| by_route.count_removal(route));
        }
        by_route
    }

    fn run() -> DedupSummary {
        let similarities = [(4, 5, 10), (1, 1, 40)];
        let repeated =
            |(part, whole, count)| std::iter::repeat_n(Similarity::from_ratio(part, whole), count);
        let histogram = similarities.into_iter().flat_map(repeated).collect();
        DedupSummary {
            form_advice: FormAdvice::Learn,
            documents: 1200,
            against: 7,
            library: None,
            repeated_ids: 0,
            shared_ids: 0,
            mixed_values: None,
            kept: 1150,
            removed: 50,
            dropped: None,
            clusters: 30,
            components: None,
            forms: None,
            audit: None,
            decisions: None,
            passages: None,
            spilled: None,
            run: RunSummary {
                rejected: 2,
                bytes: 2_500_000,
                seconds: 0.5,
                method: "auto",
                measure: "jaccard",
                candidate_threshold: None,
                threshold: 0.8,
                recipe: "default-1".into(),
                recipe_id: "00ff".into(),
            },
            by_route: count_routes(&[(Route::Exact, 40), (Route::Join, 4), (Route::MinHash, 6)]),
            states: TextStateCounts {
                too_short: 3,
                symbols_only: 0,
                empty: 1,
            },
            largest: vec![LargeCluster {
                cluster: "a\u{1b}b".into(),
                documents: 12,
                least_similarity: 0.8125,
            }],
            suspicious: vec![SuspiciousCluster {
                cluster: "a".into(),
                kind: SuspicionKind::Stretched,
                count: 4,
                reason: "it is stretched".into(),
            }],
            histogram,
            stages: Vec::new(),
        }
    }

    fn dedup_of(line: &str) -> DedupArgs {
        match CommandLine::try_parse_from(line.split(' '))
            .unwrap()
            .command
        {
            Command::Dedup(args) => *args,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn dedup_summary_states_results_and_next_step() {
        let args = dedup_of("lookalike dedup in.jsonl -o out.jsonl --removed gone.tsv");
        let written = [
            (DedupOutput::KeptRows, Path::new("out.jsonl")),
            (DedupOutput::Removed, Path::new("gone.tsv")),
        ];
        let text = describe_dedup(&run(), &args, &written, &OutputPrinter::new(true));
        let expected = "\
1,200 documents (2.5 MB) in 0.5 s: 5.0 MB/s
  reference        7 documents
  kept             1,150
  removed          50 (4.2 %)
                          40 equal after normalisation
                           4 short, joined exactly
                           6 found by MinHash
  clusters         30
Largest clusters: documents, least similarity, id of the kept document
         12  0.81  a\u{fffd}b
Similarity of the removed documents to the kept ones
  0.80 to 0.85          10 ########
  0.85 to 0.90           0
  0.90 to 0.95           0
  0.95 to 1.00           0
  1                     40 ################################
  pairs below 0.8 are not searched for
  texts too short  3 too short for a feature: compared as a whole
  texts too short  1 empty: kept, because they match nothing
  bad rows         2 left out
Suspicious clusters
  a: it is stretched
  matched by       auto, threshold 0.8, recipe default-1 (00ff)
  kept rows        out.jsonl
  removed          gone.tsv
To see why a document was removed: lookalike explain gone.tsv ID in.jsonl
";
        assert_eq!(text, expected);
    }

    #[test]
    fn audit_summary_states_misses_and_confidence() {
        let share = |share: Option<f64>, low, high, cases| EstimatedShare {
            share,
            low,
            high,
            cases,
        };
        let edit = |kind, strength, recall| ByEdit {
            kind,
            strength,
            copies: 3,
            recall,
        };
        let different = |removed: &str, of_same| DifferentRemoval {
            removed: removed.to_owned(),
            kept: "a".to_owned(),
            of_same,
            reason: "numbers",
            difference: "most of the numbers differ: '1' and '2'".to_owned(),
        };
        let audited = DedupSummary {
            audit: Some(AuditReport {
                sampled: 1000,
                requested: 1000,
                seed: 4,
                least_jaccard: None,
                pairs: 70,
                recall: share(Some(0.975), 0.9, 0.99, 40),
                by_length: vec![ByLength {
                    length: "16-50",
                    recall: share(Some(0.975), 0.9, 0.99, 40),
                    precision: share(Some(1.0), 0.93, 1.0, 50),
                }],
                left_together: Some(share(Some(0.0), 0.0, 0.05, 40)),
                precision: share(Some(1.0), 0.93, 1.0, 50),
                contents: Some(AuditedContents {
                    run_compares_forms: false,
                    different: share(Some(0.25), 0.1, 0.5, 20),
                    examples: vec![different("b", 4), different("c", 1)],
                }),
                planted: Some(PlantedReport {
                    copies: 6,
                    recall: share(Some(0.5), 0.1, 0.9, 4),
                    by_edit: vec![
                        edit("typos", Some(0.005), share(Some(0.5), 0.1, 0.9, 2)),
                        edit("nfd", None, share(Some(1.0), 0.3, 1.0, 2)),
                        edit("html", None, share(None, 0.0, 1.0, 0)),
                    ],
                }),
                memory_bytes: 1 << 20,
            }),
            ..run()
        };
        let args = dedup_of("lookalike dedup in.jsonl -o out.jsonl --audit=1000");
        let text = describe_dedup(&audited, &args, &[], &OutputPrinter::new(true));
        let expected = "\
Audit: 1,000 documents sampled (seed 4) and compared exactly with all documents read after them
  recall           0.9750 (95 %: 0.9000 to 0.9900) of the matches of 40 sampled documents are found
                     0.9750 (95 %: 0.9000 to 0.9900) of 40 sampled documents of 16-50 tokens
  left together    0.0000 (95 %: 0.0000 to 0.0500) of these matches stay in the output together with the document
  precision        1.0000 (95 %: 0.9300 to 1.0000) of 50 removed documents, verified again, reach the threshold
                     1.0000 (95 %: 0.9300 to 1.0000) of 50 of 16-50 tokens
  other contents   0.2500 (95 %: 0.1000 to 0.5000) of 20 removed documents with another text have another title, other numbers or other values of a form than the kept ones
                     b and 3 more beside a: most of the numbers differ: '1' and '2'
                     c beside a: most of the numbers differ: '1' and '2'
                     to keep such documents, run again with --forms learn
  planted edits    0.5000 (95 %: 0.1000 to 0.9000) of 4 edited copies that reach the threshold, of 6 planted, are found
                     0.5000 (95 %: 0.1000 to 0.9000) of typos 0.5 %
";
        assert!(text.contains(expected), "{text}");
    }

    #[test]
    fn dry_run_summary_says_nothing_was_written() {
        let args = dedup_of("lookalike dedup in.jsonl --dry-run");
        let text = describe_dedup(&run(), &args, &[], &OutputPrinter::new(true));
        assert!(
            text.contains("nothing (--dry-run)") && text.contains("--removed FILE"),
            "{text}"
        );
    }
}
