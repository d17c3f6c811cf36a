//! Summary of `dedup` for people.

use lookalike_batch::run::{DedupSummary, RepeatedTextAction};

use super::args::{DedupArgs, NamedOutput, explain_command};
use crate::commands::shared::outputs::is_standard;
use crate::commands::shared::summary::{MatchDescription, SummaryText, TEXT_OPTIONS};
use crate::output::{
    OutputPrinter, TextTone, escape_control, format_bytes, format_count, format_plural,
};

/// Number of clusters that are named.
const NAMED_CLUSTERS: usize = 5;

/// Longest id that is shown, in characters.
const SHOWN_ID: usize = 60;

/// Returns the summary of a dedup run. `written` names the outputs and their files.
pub(super) fn describe_dedup(
    done: &DedupSummary,
    args: &DedupArgs,
    written: &[NamedOutput<'_>],
    printer: &OutputPrinter,
) -> String {
    let mut text = SummaryText::from_speed(done.documents, done.bytes, done.seconds);
    add_references(&mut text, done);
    text.add_line("kept", format_count(done.kept));
    add_removed(&mut text, done);
    add_decisions(&mut text, done);
    add_passages(&mut text, done);
    add_clusters(&mut text, done, printer);
    let heading = "Similarity of the removed documents to the kept ones";
    text.add_histogram((&done.histogram, done.threshold), heading, printer);
    text.add_audit(done.audit.as_ref(), "removed documents", printer);
    add_short_texts(&mut text, done);
    text.add_rejected(done.rejected, done.documents, TEXT_OPTIONS);
    add_suspicions(&mut text, done, printer);
    text.add_matching(MatchDescription {
        method: done.method,
        measure: done.measure,
        threshold: done.threshold,
        candidate_threshold: done.candidate_threshold,
        recipe: &done.recipe,
        recipe_id: &done.recipe_id,
    });
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

fn add_references(text: &mut SummaryText, done: &DedupSummary) {
    if done.against > 0 {
        let documents = format_plural(done.against, "document", "documents");
        text.add_line("reference", documents);
    }
    if let Some(library) = &done.library {
        let rows = format_plural(library.compared, "document", "documents");
        text.add_line(
            "library",
            format_args!("{rows} of {}", escape_control(&library.path)),
        );
    }
    if done.shared_ids > 0 {
        let shared = format_count(done.shared_ids);
        text.add_line(
            "shared ids",
            format_args!(
                "{shared} have the id or row number of a reference document: tables distinguish \
                 them by source and row"
            ),
        );
    }
    if let Some(mixed) = done.mixed_values {
        text.add_line(
            "mixed values",
            format_args!(
                "{} have a number and {} a string in the field of --keep: every string counts as \
                 larger than every number",
                format_count(mixed.numbers),
                format_count(mixed.strings)
            ),
        );
    }
}

/// Adds what the library has received.
fn add_growth(text: &mut SummaryText, done: &DedupSummary) {
    let Some(library) = &done.library else {
        return;
    };
    text.add_line(
        "added",
        format_args!(
            "{} to {}, which holds {}, {}",
            format_plural(library.added, "document", "documents"),
            escape_control(&library.path),
            format_plural(library.rows, "document", "documents"),
            format_bytes(library.bytes)
        ),
    );
    if library.repeated_ids > 0 {
        let repeated = format_count(library.repeated_ids);
        text.add_line(
            "",
            format_args!(
                "{repeated} of them have an id that the library had: `lookalike index remove` removes all documents \
                 of an id"
            ),
        );
    }
}

fn add_removed(text: &mut SummaryText, done: &DedupSummary) {
    let share = 100.0 * done.removed as f64 / done.documents.max(1) as f64;
    let removed = format_count(done.removed);
    text.add_line("removed", format_args!("{removed} ({share:.1} %)"));
    let routes = [
        (done.by_route.exact, "equal after normalisation"),
        (done.by_route.join, "short, joined exactly"),
        (done.by_route.minhash, "found by MinHash"),
        (done.by_route.simhash, "found by SimHash"),
        (done.by_route.sentences, "of the same longest sentences"),
        (done.by_route.bottomk, "found by bottom-k"),
        (done.by_route.decision, "decided as the same by a person"),
    ];
    for (documents, how) in routes.into_iter().filter(|(documents, _)| *documents > 0) {
        text.add_line("", format_args!("{:>9} {how}", format_count(documents)));
    }
}

fn add_decisions(text: &mut SummaryText, done: &DedupSummary) {
    let Some(decisions) = &done.decisions else {
        return;
    };
    text.add_line(
        "decisions",
        format_args!(
            "{} the same, {} different",
            format_count(decisions.same),
            format_count(decisions.different)
        ),
    );
    let others = [
        (decisions.without_pair, "met no pair of documents"),
        (decisions.of_other_recipes, "of another recipe: not applied"),
    ];
    for (count, what) in others.into_iter().filter(|(count, _)| *count > 0) {
        text.add_line("", format_args!("{:>9} {what}", format_count(count)));
    }
}

fn add_passages(text: &mut SummaryText, done: &DedupSummary) {
    let Some(found) = &done.passages else {
        return;
    };
    let what = match found.action {
        RepeatedTextAction::Mark => "marked",
        RepeatedTextAction::Remove => "removed",
    };
    text.add_line(
        "passages",
        format_args!(
            "{} {what} in {}, with {} words or characters in all",
            format_count(found.passages),
            format_plural(found.documents, "kept document", "kept documents"),
            format_count(found.tokens)
        ),
    );
    if found.emptied > 0 {
        let documents = format_plural(found.emptied, "kept document", "kept documents");
        let what = match found.action {
            RepeatedTextAction::Mark => "nothing else is in",
            RepeatedTextAction::Remove => "nothing is left of",
        };
        text.add_line("", format_args!("{what} {documents}"));
    }
}

fn add_clusters(text: &mut SummaryText, done: &DedupSummary, printer: &OutputPrinter) {
    text.add_line("clusters", format_count(done.clusters));
    if let Some(components) = done.components {
        text.add_line("components", format_count(components));
    }
    if done.largest.is_empty() {
        return;
    }
    let heading = "Largest clusters: documents, least similarity, id of the kept document";
    text.add_heading(printer, TextTone::Heading, heading);
    for cluster in done.largest.iter().take(NAMED_CLUSTERS) {
        text.add_text(format_args!(
            "  {:>9}  {:.2}  {}",
            format_count(cluster.documents),
            cluster.least_similarity,
            shorten_id(&cluster.cluster)
        ));
    }
}

/// Returns an id as one line of bounded length.
fn shorten_id(id: &str) -> String {
    let visible = escape_control(id).replace(['\n', '\t'], " ");
    match visible.char_indices().nth(SHOWN_ID) {
        Some((end, _)) => format!("{}…", &visible[..end]),
        None => visible,
    }
}

fn add_short_texts(text: &mut SummaryText, done: &DedupSummary) {
    let states = [
        (
            done.states.too_short,
            "too short for a feature: compared as a whole",
        ),
        (
            done.states.symbols_only,
            "of punctuation and symbols only: compared as they are",
        ),
        (done.states.empty, "empty: kept, because they match nothing"),
    ];
    for (documents, what) in states.into_iter().filter(|(documents, _)| *documents > 0) {
        let documents = format_count(documents);
        text.add_line("texts too short", format_args!("{documents} {what}"));
    }
}

fn add_suspicions(text: &mut SummaryText, done: &DedupSummary, printer: &OutputPrinter) {
    if done.suspicious.is_empty() {
        return;
    }
    text.add_heading(printer, TextTone::Warning, "Suspicious clusters");
    for suspicion in done.suspicious.iter().take(NAMED_CLUSTERS) {
        let reason = escape_control(&suspicion.reason);
        let cluster = shorten_id(&suspicion.cluster);
        text.add_text(format_args!("  {cluster}: {reason}"));
    }
    let more = done.suspicious.len().saturating_sub(NAMED_CLUSTERS);
    if more > 0 {
        text.add_text(format_args!("  and {more} more; --json lists them all"));
    }
}

fn add_outputs(text: &mut SummaryText, args: &DedupArgs, written: &[NamedOutput<'_>]) {
    if args.dry_run {
        text.add_line("written", "nothing (--dry-run)");
    }
    for (name, place) in written.iter().filter(|(_, place)| !is_standard(place)) {
        let name = match *name {
            "kept rows" if args.annotate => "all rows",
            name => name,
        };
        text.add_line(name, place.display());
    }
}

/// Adds the command that explains a removal.
fn add_explain_hint(text: &mut SummaryText, args: &DedupArgs, written: &[NamedOutput<'_>]) {
    let how = explain_command(args, written)
        .unwrap_or_else(|| "run with --removed FILE, then lookalike explain".to_owned());
    text.add_text(format_args!("To see why a document was removed: {how}"));
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use clap::Parser;
    use lookalike::Similarity;
    use lookalike_batch::run::{
        AuditReport, ByEdit, ByLength, ByRoute, EstimatedShare, LargeCluster, PlantedReport,
        SuspicionKind, SuspiciousCluster, TextStateCounts,
    };

    use super::*;
    use crate::commands::{Command, CommandLine};

    fn run() -> DedupSummary {
        let similarities = [(4, 5, 10), (1, 1, 40)];
        let repeated =
            |(part, whole, count)| std::iter::repeat_n(Similarity::from_ratio(part, whole), count);
        let histogram = similarities.into_iter().flat_map(repeated).collect();
        DedupSummary {
            documents: 1200,
            against: 7,
            library: None,
            repeated_ids: 0,
            shared_ids: 0,
            mixed_values: None,
            kept: 1150,
            removed: 50,
            clusters: 30,
            components: None,
            rejected: 2,
            audit: None,
            decisions: None,
            passages: None,
            spilled: None,
            bytes: 2_500_000,
            seconds: 0.5,
            method: "auto",
            measure: "jaccard",
            candidate_threshold: None,
            threshold: 0.8,
            recipe: "default-1".into(),
            recipe_id: "00ff".into(),
            by_route: ByRoute {
                exact: 40,
                join: 4,
                minhash: 6,
                simhash: 0,
                sentences: 0,
                bottomk: 0,
                decision: 0,
            },
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
            ("kept rows", Path::new("out.jsonl")),
            ("removed", Path::new("gone.tsv")),
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
