//! Summaries of runs, for people.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use lookalike_batch::library::{AddSummary, Entries, Info, RemoveSummary, SearchSummary, Verified};
use lookalike_batch::run::{
    AuditReport, ByEdit, ByLength, FingerprintSummary, Histogram, IdfSummary, PairsSummary,
    PlantSummary, SegmentSummary, Share, Summary,
};

use crate::args::{
    DedupArgs, FingerprintArgs, IdfArgs, PairsArgs, PlantArgs, SearchArgs, SegmentArgs,
};
use crate::output::{Printer, Tone, bar, bytes, count, duration, plural, visible};

/// Longest bar of a plot, in characters.
const BAR: usize = 32;

/// Number of queries from which the time per query is meaningful.
const MANY_QUERIES: u64 = 10_000;

/// Number of clusters that are named.
const NAMED_CLUSTERS: usize = 5;

/// Longest id that is shown, in characters.
const SHOWN_ID: usize = 60;

/// Returns the summary of a dedup run. `written` names the outputs and their files.
pub(crate) fn dedup(
    done: &Summary,
    args: &DedupArgs,
    written: &[(&str, PathBuf)],
    printer: &Printer,
) -> String {
    let mut text = String::new();
    speed(&mut text, done.documents, done.bytes, done.seconds);
    if done.against > 0 {
        line(
            &mut text,
            "reference",
            &plural(done.against, "document", "documents"),
        );
    }
    if done.shared_ids > 0 {
        let shared = format!(
            "{} have the id or row number of a reference document: tables distinguish them by \
             source and row",
            count(done.shared_ids)
        );
        line(&mut text, "shared ids", &shared);
    }
    if let Some(mixed) = done.mixed_values {
        let told = format!(
            "{} have a number and {} a string in the field of --keep: every string counts as larger than \
             every number",
            count(mixed.numbers),
            count(mixed.strings)
        );
        line(&mut text, "mixed values", &told);
    }
    line(&mut text, "kept", &count(done.kept));
    removed(&mut text, done);
    clusters(&mut text, done, printer);
    let by_similarity = (&done.histogram, done.threshold);
    let heading = "Similarity of the removed documents to the kept ones";
    histogram(&mut text, by_similarity, heading, printer);
    audit(&mut text, done.audit.as_ref(), "removed documents", printer);
    poor_texts(&mut text, done);
    rejected(&mut text, done.rejected, done.documents);
    suspicions(&mut text, done, printer);
    let matched = (
        (done.method, done.measure, done.candidates_from),
        done.threshold,
        &done.recipe[..],
        &done.recipe_id[..],
    );
    matching(&mut text, matched);
    outputs(&mut text, done, args, written);
    text
}

/// Returns the summary of a pairs run.
pub(crate) fn pairs(done: &PairsSummary, args: &PairsArgs, printer: &Printer) -> String {
    let mut text = String::new();
    speed(&mut text, done.documents, done.bytes, done.seconds);
    line(&mut text, "pairs", &count(done.pairs));
    if done.equal > 0 {
        let equal = format!(
            "{} have the text of an earlier one{}",
            plural(done.equal, "document", "documents"),
            match args.distinct {
                true => " and are left out",
                false => ", with which each is paired; --all lists every combination",
            }
        );
        line(&mut text, "equal texts", &equal);
    }
    let by_similarity = (&done.histogram, done.threshold);
    histogram(&mut text, by_similarity, "Similarity of the pairs", printer);
    audit(&mut text, done.audit.as_ref(), "pairs", printer);
    rejected(&mut text, done.rejected, done.documents);
    let matched = (
        (done.method, done.measure, done.candidates_from),
        done.threshold,
        &done.recipe[..],
        &done.recipe_id[..],
    );
    matching(&mut text, matched);
    if let Some(output) = args.output.as_deref().filter(|output| is_file(output)) {
        line(&mut text, "written to", &output.display().to_string());
    }
    text
}

/// Returns the summary of a run that printed fingerprints.
pub(crate) fn fingerprints(done: &FingerprintSummary, args: &FingerprintArgs) -> String {
    let mut text = String::new();
    speed(&mut text, done.documents, done.bytes, done.seconds);
    if done.without > 0 {
        let poor = format!("{} too short for a fingerprint", count(done.without));
        line(&mut text, "texts too short", &poor);
    }
    rejected(&mut text, done.rejected, done.documents);
    let made = match done.method {
        "simhash" => format!("SimHash of {} bits", done.size),
        "bottomk" => format!("at most {} smallest hashes", done.size),
        "sentences" => format!("hashes of the {} longest sentences", done.size),
        _ => format!("MinHash of {} slots", done.size),
    };
    let (recipe, id) = (visible(&done.recipe), &done.recipe_id);
    line(
        &mut text,
        "sketch",
        &format!("{made}, recipe {recipe} ({id})"),
    );
    if let Some(output) = args.output.as_deref().filter(|output| is_file(output)) {
        line(&mut text, "written to", &output.display().to_string());
    }
    text
}

/// Returns the summary of a run that listed tokens.
pub(crate) fn segmented(done: &SegmentSummary, args: &SegmentArgs) -> String {
    let mut text = String::new();
    speed(&mut text, done.documents, done.bytes, done.seconds);
    rejected(&mut text, done.rejected, done.documents);
    let recipe = format!("{} ({})", visible(&done.recipe), done.recipe_id);
    line(&mut text, "recipe", &recipe);
    if let Some(output) = args.output.as_deref().filter(|output| is_file(output)) {
        line(&mut text, "written to", &output.display().to_string());
    }
    text
}

/// Returns the summary of a run that learned document frequencies.
pub(crate) fn frequencies(done: &IdfSummary, args: &IdfArgs) -> String {
    let mut text = String::new();
    speed(&mut text, done.documents, done.bytes, done.seconds);
    rejected(&mut text, done.rejected, done.documents);
    let of = plural(done.counted, "document", "documents");
    line(
        &mut text,
        "terms",
        &format!("{} of {of}", count(done.terms)),
    );
    let recipe = format!("{} (terms {})", visible(&done.recipe), done.terms_id);
    line(&mut text, "recipe", &recipe);
    if let Some(output) = args.output.as_deref().filter(|output| is_file(output)) {
        line(&mut text, "written to", &output.display().to_string());
    }
    text
}

/// Returns the summary of a planting run.
pub(crate) fn planted(done: &PlantSummary, args: &PlantArgs) -> String {
    let mut text = String::new();
    speed(&mut text, done.documents, done.bytes, done.seconds);
    let copies = format!(
        "{} of {}, with ids that end in {} and a number",
        plural(done.copies, "edited copy", "edited copies"),
        plural(done.drawn, "document", "documents"),
        done.mark
    );
    line(&mut text, "planted", &copies);
    let natural = format!(
        "{} of documents that were similar before planting",
        plural(done.natural, "pair", "pairs")
    );
    line(&mut text, "natural", &natural);
    let near = plural(done.near_misses, "pair", "pairs");
    line(
        &mut text,
        "near misses",
        &format!("{near} a little below the threshold"),
    );
    let others = format!(
        "{} of one topic or template, {} that have hardly anything in common",
        plural(done.siblings, "pair", "pairs"),
        plural(done.unrelated, "pair", "pairs")
    );
    line(&mut text, "others", &others);
    rejected(&mut text, done.rejected, done.documents);
    let (recipe, id) = (visible(&done.recipe), &done.recipe_id);
    let by = format!(
        "threshold {}, recipe {recipe} ({id}), seed {}",
        done.threshold, done.seed
    );
    line(&mut text, "measured by", &by);
    line(&mut text, "corpus", &args.output.display().to_string());
    line(&mut text, "labels", &args.labels.display().to_string());
    text
}

/// Returns the summary of building an index or adding to one.
pub(crate) fn added(done: &AddSummary, entries: &Entries) -> String {
    let mut text = String::new();
    let read = done.added + done.without;
    speed(&mut text, read, done.bytes, done.seconds);
    line(&mut text, "added", &count(done.added));
    poor(&mut text, done.poor);
    without(&mut text, done.without, "left out");
    bad_rows(&mut text, done.rejected, read, option_of(entries));
    in_library(&mut text, &done.library);
    text
}

/// Returns the summary of removing rows from an index.
pub(crate) fn removed_from_library(done: &RemoveSummary) -> String {
    let mut text = format!(
        "{} removed in {}\n",
        plural(done.removed, "row", "rows"),
        duration(done.seconds)
    );
    if !done.missing.is_empty() {
        line(&mut text, "not found", &count(done.missing.len() as u64));
    }
    in_library(&mut text, &done.library);
    text
}

fn poor(text: &mut String, documents: u64) {
    if documents > 0 {
        let poor = format!(
            "{} too short for a fingerprint: they match only equal texts",
            count(documents)
        );
        line(text, "texts too short", &poor);
    }
}

fn without(text: &mut String, rows: u64, what: &str) {
    if rows > 0 {
        line(
            text,
            "empty",
            &format!("{} without text or fingerprint: {what}", count(rows)),
        );
    }
}

fn in_library(text: &mut String, info: &Info) {
    let holds = format!(
        "{} holds {}, {}",
        visible(&info.path),
        plural(info.fingerprints, "row", "rows"),
        bytes(info.bytes)
    );
    line(text, "index", &holds);
}

/// Returns the description of an index.
pub(crate) fn library(info: &Info) -> String {
    let mut text = String::new();
    line(&mut text, "index", &visible(&info.path));
    let fingerprints = format!("{} of {} bits", count(info.fingerprints), info.bits);
    line(&mut text, "fingerprints", &fingerprints);
    if info.poor > 0 {
        let poor = format!("{} of these rows have no fingerprint", count(info.poor));
        line(&mut text, "texts too short", &poor);
    }
    if info.removed > 0 {
        let removed = format!("{} that still use disk space", count(info.removed));
        line(&mut text, "removed", &removed);
    }
    line(&mut text, "distance", &format!("at most {}", info.distance));
    line(
        &mut text,
        "recipe",
        &recipe_of(info.recipe.as_ref(), info.recipe_id.as_ref()),
    );
    let ids = match info.ids {
        None => "not known until rows are added",
        Some(true) => "stored",
        Some(false) => "row numbers",
    };
    line(&mut text, "ids", ids);
    line(
        &mut text,
        "texts",
        if info.texts { "stored" } else { "not stored" },
    );
    let matching = match info.matching {
        true => "by distance, threshold and measure",
        false => "by distance",
    };
    line(&mut text, "searched", matching);
    line(&mut text, "plan", &info.plan);
    if let Some(memory) = info.memory {
        line(&mut text, "memory", &format!("at most {}", bytes(memory)));
    }
    line(&mut text, "on disk", &bytes(info.bytes));
    for segment in &info.segments {
        let mut value = format!(
            "{}, {}",
            plural(segment.rows, "row", "rows"),
            bytes(segment.bytes)
        );
        if let Some(plan) = &segment.plan {
            let _ = write!(value, ", {plan}");
        }
        line(&mut text, "segment", &value);
    }
    text
}

fn recipe_of(name: Option<&String>, id: Option<&String>) -> String {
    match (name, id) {
        (Some(name), Some(id)) => format!("{} ({id})", visible(name)),
        _ => "unknown".to_owned(),
    }
}

/// Returns the summary of a verified index.
pub(crate) fn verified(done: &Verified) -> String {
    let mut text = format!(
        "{} ({}) with {} in {}: whole\n",
        plural(done.files, "file", "files"),
        bytes(done.bytes),
        plural(done.rows, "row", "rows"),
        duration(done.seconds)
    );
    if done.sampled > 0 {
        let sample = format!(
            "{} computed again from their texts: equal",
            count(done.sampled)
        );
        line(&mut text, "fingerprints", &sample);
    }
    text
}

/// Returns the summary of a search.
pub(crate) fn search(done: &SearchSummary, args: &SearchArgs, entries: &Entries) -> String {
    let mut text = format!(
        "{} in {} against {}",
        plural(done.queries, "query", "queries"),
        duration(done.seconds),
        plural(done.fingerprints, "row", "rows"),
    );
    let searching = done.seconds - done.opening;
    if done.queries >= MANY_QUERIES {
        let each = searching * 1e6 / done.queries as f64;
        let _ = write!(
            text,
            " ({} to open, then {each:.2} µs per query)",
            duration(done.opening)
        );
    }
    text.push('\n');
    let matches = format!(
        "{} for {} of {}",
        count(done.matches),
        count(done.matched),
        plural(done.queries, "query", "queries")
    );
    line(&mut text, "matches", &matches);
    if done.truncated > 0 {
        let more = format!(
            "{} more matches than the {} listed",
            plural(done.truncated, "query has", "queries have"),
            args.limit.unwrap_or_default()
        );
        line(&mut text, "truncated", &more);
    }
    poor(&mut text, done.poor);
    without(&mut text, done.without, "match nothing");
    bad_rows(&mut text, done.rejected, done.queries, option_of(entries));
    let recipe = recipe_of(done.recipe.as_ref(), done.recipe_id.as_ref());
    let by = match (done.measure, done.threshold) {
        (Some(measure), Some(threshold)) => format!(
            "{measure} at least {threshold}, candidates by {}, recipe {recipe}",
            done.candidates
        ),
        _ => format!("{}, recipe {recipe}", done.candidates),
    };
    line(&mut text, "matched by", &by);
    if let Some(output) = args.output.as_deref().filter(|output| is_file(output)) {
        line(&mut text, "written to", &output.display().to_string());
    }
    text
}

fn is_file(place: &Path) -> bool {
    place.as_os_str() != "-"
}

/// Appends a label and a value, aligned with other lines.
fn line(text: &mut String, label: &str, value: &str) {
    let _ = writeln!(text, "  {label:<16} {value}");
}

fn speed(text: &mut String, documents: u64, read: u64, seconds: f64) {
    let _ = write!(
        text,
        "{} ({}) in {}",
        plural(documents, "document", "documents"),
        bytes(read),
        duration(seconds)
    );
    if seconds > 0.05 {
        let _ = write!(text, ": {:.1} MB/s", read as f64 / seconds / 1e6);
    }
    text.push('\n');
}

fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        100.0 * part as f64 / whole as f64
    }
}

fn removed(text: &mut String, done: &Summary) {
    let share = percent(done.removed, done.documents);
    line(
        text,
        "removed",
        &format!("{} ({share:.1} %)", count(done.removed)),
    );
    let routes = [
        (done.by_route.exact, "equal after normalisation"),
        (done.by_route.join, "short, joined exactly"),
        (done.by_route.minhash, "found by MinHash"),
        (done.by_route.simhash, "found by SimHash"),
        (done.by_route.sentences, "of the same longest sentences"),
        (done.by_route.bottomk, "found by bottom-k"),
    ];
    for (documents, how) in routes.into_iter().filter(|(documents, _)| *documents > 0) {
        line(text, "", &format!("{:>9} {how}", count(documents)));
    }
}

fn clusters(text: &mut String, done: &Summary, printer: &Printer) {
    line(text, "clusters", &count(done.clusters));
    if let Some(components) = done.components {
        line(text, "components", &count(components));
    }
    if done.largest.is_empty() {
        return;
    }
    let heading = "Largest clusters: documents, least similarity, id of the kept document";
    let _ = writeln!(text, "{}", printer.in_message(Tone::Heading, heading));
    for cluster in done.largest.iter().take(NAMED_CLUSTERS) {
        let _ = writeln!(
            text,
            "  {:>9}  {:.2}  {}",
            count(cluster.documents),
            cluster.least_similarity,
            shown_id(&cluster.cluster)
        );
    }
}

/// Returns an id as one line of bounded length.
fn shown_id(id: &str) -> String {
    let visible = visible(id).replace(['\n', '\t'], " ");
    match visible.char_indices().nth(SHOWN_ID) {
        Some((end, _)) => format!("{}…", &visible[..end]),
        None => visible,
    }
}

/// Appends the bins from the threshold on, or from the first non-empty one if that is lower.
fn histogram(
    text: &mut String,
    (histogram, threshold): (&Histogram, f64),
    heading: &str,
    printer: &Printer,
) {
    let counts = histogram.counts();
    let Some(first_used) = counts.iter().position(|&count| count > 0) else {
        return;
    };
    // A threshold on the lower edge of a bin belongs to that bin.
    let at_threshold = (threshold * Histogram::STEPS as f64 + 1e-9) as usize;
    let most = counts.iter().copied().max().unwrap_or(1);
    let _ = writeln!(text, "{}", printer.in_message(Tone::Heading, heading));
    for (bin, &counted) in counts.iter().enumerate().skip(at_threshold.min(first_used)) {
        let (low, high) = (bin as f64, bin as f64 + 1.0);
        let steps = Histogram::STEPS as f64;
        let label = if bin == Histogram::STEPS {
            "1".to_owned()
        } else {
            format!("{:.2} to {:.2}", low / steps, high / steps)
        };
        let plot = bar(counted as f64 / most as f64, BAR);
        let row = format!("  {label:<14} {:>9} {plot}", count(counted));
        let _ = writeln!(text, "{}", row.trim_end());
    }
    if at_threshold > 0 {
        let _ = writeln!(text, "  pairs below {threshold} are not searched for");
    }
}

/// Number of kinds of edits that are named because copies were missed.
const NAMED_EDITS: usize = 5;

/// Appends the result of an audit. `reported` names what the run reports.
fn audit(text: &mut String, audit: Option<&AuditReport>, reported: &str, printer: &Printer) {
    let Some(audit) = audit else { return };
    let wanted = match audit.wanted > audit.drawn {
        true => format!(" of the {} requested", count(audit.wanted)),
        false => String::new(),
    };
    let heading = format!(
        "Audit: {}{wanted} sampled (seed {}) and compared exactly with all documents read after \
         them",
        plural(audit.drawn, "document", "documents"),
        audit.seed
    );
    let _ = writeln!(text, "{}", printer.in_message(Tone::Heading, &heading));
    let of = |cases: u64| plural(cases, "sampled document", "sampled documents");
    let least = audit.least_jaccard.map_or_else(String::new, |least| {
        format!(" with a Jaccard index of {} or more", rounded(least))
    });
    let recall = format!(
        "{} of the matches of {}{least} are found",
        share(&audit.recall),
        of(audit.recall.cases)
    );
    line(text, "recall", &recall);
    let with_cases = |of: fn(&ByLength) -> &Share| {
        let all = audit.by_length.iter();
        all.filter(move |one| of(one).cases > 0)
    };
    for of_length in with_cases(|one| &one.recall) {
        let recall = format!(
            "  {} of {} of {} tokens",
            share(&of_length.recall),
            of(of_length.recall.cases),
            of_length.length
        );
        line(text, "", &recall);
    }
    if let Some(left) = &audit.left {
        let left = format!(
            "{} of these matches stay in the output together with the document",
            share(left)
        );
        line(text, "left together", &left);
    }
    let precision = format!(
        "{} of {} {reported}, verified again, reach the threshold",
        share(&audit.precision),
        count(audit.precision.cases)
    );
    line(text, "precision", &precision);
    for of_length in with_cases(|one| &one.precision) {
        let precision = format!(
            "  {} of {} of {} tokens",
            share(&of_length.precision),
            count(of_length.precision.cases),
            of_length.length
        );
        line(text, "", &precision);
    }
    let Some(planted) = &audit.planted else {
        return;
    };
    let found = format!(
        "{} of {} that reach the threshold, of {} planted, are found",
        share(&planted.recall),
        plural(planted.recall.cases, "edited copy", "edited copies"),
        count(planted.copies)
    );
    line(text, "planted edits", &found);
    let missed = |edit: &&ByEdit| edit.recall.share.is_some_and(|share| share < 1.0);
    for edit in planted.by_edit.iter().filter(missed).take(NAMED_EDITS) {
        let strength = edit.strength.map_or_else(String::new, |strength| {
            format!(" {} %", (strength * 1000.0).round() / 10.0)
        });
        let found = format!("  {} of {}{strength}", share(&edit.recall), edit.kind);
        line(text, "", &found);
    }
}

/// Formats a share and its interval with four decimals.
fn share(share: &Share) -> String {
    let interval = format!("95 %: {:.4} to {:.4}", share.low, share.high);
    match share.share {
        Some(mean) => format!("{mean:.4} ({interval})"),
        None => "no estimate".to_owned(),
    }
}

fn poor_texts(text: &mut String, done: &Summary) {
    let states = [
        (
            done.states.poor,
            "too short for a feature: compared as a whole",
        ),
        (
            done.states.blank,
            "of punctuation and symbols only: compared as they are",
        ),
        (done.states.empty, "empty: kept, because they match nothing"),
    ];
    for (documents, what) in states.into_iter().filter(|(documents, _)| *documents > 0) {
        line(
            text,
            "texts too short",
            &format!("{} {what}", count(documents)),
        );
    }
}

fn rejected(text: &mut String, rows: u64, good: u64) {
    bad_rows(text, rows, good, "--text FIELD, or --features FIELD,");
}

/// If no row was good, the option may be the reason, so it is named.
fn bad_rows(text: &mut String, rows: u64, good: u64, option: &str) {
    let remedy = match good {
        0 => format!(", and no row is usable: check {option}"),
        _ => String::new(),
    };
    if rows > 0 {
        let rows = format!("{} left out{remedy}", count(rows));
        line(text, "bad rows", &rows);
    }
}

/// Returns the option that names the fingerprints or texts of rows.
fn option_of(entries: &Entries) -> &'static str {
    match entries {
        Entries::Documents => "--text FIELD",
        Entries::Lines(_) => "--digits",
        Entries::Field(..) => "--fingerprint FIELD",
    }
}

fn suspicions(text: &mut String, done: &Summary, printer: &Printer) {
    if done.suspicious.is_empty() {
        return;
    }
    let heading = "Suspicious clusters";
    let _ = writeln!(text, "{}", printer.in_message(Tone::Warning, heading));
    for suspicion in done.suspicious.iter().take(NAMED_CLUSTERS) {
        let _ = writeln!(
            text,
            "  {}: {}",
            shown_id(&suspicion.cluster),
            visible(&suspicion.reason)
        );
    }
    if let Some(more) = done
        .suspicious
        .len()
        .checked_sub(NAMED_CLUSTERS)
        .filter(|&more| more > 0)
    {
        let _ = writeln!(text, "  and {more} more; --json lists them all");
    }
}

/// Method, measure, and the smallest Jaccard index of candidates if another measure decides.
type Found<'a> = (&'a str, &'a str, Option<f64>);

fn matching(
    text: &mut String,
    ((method, measure, from), threshold, recipe, id): (Found<'_>, f64, &str, &str),
) {
    let by = match measure {
        "jaccard" => String::new(),
        "none" => ", unverified".to_owned(),
        measure => format!(", verified by {measure}"),
    };
    let value = format!(
        "{method}{by}, threshold {threshold}, recipe {} ({id})",
        visible(recipe)
    );
    line(text, "matched by", &value);
    if let Some(from) = from {
        let from = rounded(from);
        let from = format!("pairs with a Jaccard index of {from} or more; no others were compared");
        line(text, "candidates", &from);
    }
}

/// Rounds to four decimals.
fn rounded(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

fn outputs(text: &mut String, done: &Summary, args: &DedupArgs, written: &[(&str, PathBuf)]) {
    if args.dry_run {
        line(text, "written", "nothing (--dry-run)");
    }
    for (what, place) in written.iter().filter(|(_, place)| is_file(place)) {
        let what = if args.annotate && *what == "kept rows" {
            "all rows"
        } else {
            what
        };
        line(text, what, &place.display().to_string());
    }
    if done.removed == 0 {
        return;
    }
    match written
        .iter()
        .find(|(what, place)| *what == "removed" && is_file(place))
    {
        Some((_, removed)) => {
            let inputs = args
                .sources
                .inputs
                .iter()
                .map(|input| input.display().to_string());
            let _ = writeln!(
                text,
                "To see why a document was removed: lookalike explain {} ID {}",
                removed.display(),
                inputs.collect::<Vec<_>>().join(" ")
            );
        }
        None => {
            let _ = writeln!(
                text,
                "To see why a document was removed: run with --removed FILE, then lookalike explain"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use lookalike::Similarity;
    use lookalike_batch::run::{ByRoute, LargeCluster, Planted, States, Suspicion};

    use super::*;
    use crate::args::{Cli, Command};

    fn run() -> Summary {
        let similarities = [(4, 5, 10), (1, 1, 40)];
        let repeated =
            |(part, whole, count)| std::iter::repeat_n(Similarity::ratio(part, whole), count);
        let histogram = similarities.into_iter().flat_map(repeated).collect();
        Summary {
            documents: 1200,
            against: 7,
            repeated_ids: 0,
            shared_ids: 0,
            mixed_values: None,
            kept: 1150,
            removed: 50,
            clusters: 30,
            components: None,
            rejected: 2,
            audit: None,
            bytes: 2_500_000,
            seconds: 0.5,
            method: "auto",
            measure: "jaccard",
            candidates_from: None,
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
            },
            states: States {
                poor: 3,
                blank: 0,
                empty: 1,
            },
            largest: vec![LargeCluster {
                cluster: "a\u{1b}b".into(),
                documents: 12,
                least_similarity: 0.8125,
            }],
            suspicious: vec![Suspicion {
                cluster: "a".into(),
                reason: "it is stretched".into(),
            }],
            histogram,
            stages: Vec::new(),
        }
    }

    fn dedup_of(line: &str) -> DedupArgs {
        match Cli::try_parse_from(line.split(' ')).unwrap().command {
            Command::Dedup(args) => *args,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_person_learns_what_happened_and_what_to_do_next() {
        let args = dedup_of("lookalike dedup in.jsonl -o out.jsonl --removed gone.tsv");
        let written = [
            ("kept rows", PathBuf::from("out.jsonl")),
            ("removed", PathBuf::from("gone.tsv")),
        ];
        let text = dedup(&run(), &args, &written, &Printer::new(true));
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
    fn an_audit_says_what_was_missed_and_how_sure_that_is() {
        let share = |share: Option<f64>, low, high, cases| Share {
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
        let audited = Summary {
            audit: Some(AuditReport {
                drawn: 1000,
                wanted: 1000,
                seed: 4,
                least_jaccard: None,
                pairs: 70,
                recall: share(Some(0.975), 0.9, 0.99, 40),
                by_length: vec![ByLength {
                    length: "16-50",
                    recall: share(Some(0.975), 0.9, 0.99, 40),
                    precision: share(Some(1.0), 0.93, 1.0, 50),
                }],
                left: Some(share(Some(0.0), 0.0, 0.05, 40)),
                precision: share(Some(1.0), 0.93, 1.0, 50),
                planted: Some(Planted {
                    copies: 6,
                    recall: share(Some(0.5), 0.1, 0.9, 4),
                    by_edit: vec![
                        edit("typos", Some(0.005), share(Some(0.5), 0.1, 0.9, 2)),
                        edit("nfd", None, share(Some(1.0), 0.3, 1.0, 2)),
                        edit("html", None, share(None, 0.0, 1.0, 0)),
                    ],
                }),
                memory: 1 << 20,
            }),
            ..run()
        };
        let args = dedup_of("lookalike dedup in.jsonl -o out.jsonl --audit=1000");
        let text = dedup(&audited, &args, &[], &Printer::new(true));
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
    fn a_dry_run_says_that_nothing_was_written() {
        let args = dedup_of("lookalike dedup in.jsonl --dry-run");
        let text = dedup(&run(), &args, &[], &Printer::new(true));
        assert!(
            text.contains("nothing (--dry-run)") && text.contains("--removed FILE"),
            "{text}"
        );
    }
}
