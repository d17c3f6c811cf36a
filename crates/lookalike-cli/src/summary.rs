//! Summaries of runs, for people.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use lookalike_batch::index::{
    AddSummary, IndexEntries, IndexInfo, RemoveSummary, SearchSummary, VerifySummary,
};
use lookalike_batch::run::{
    AuditReport, ByEdit, ByLength, DedupSummary, EstimatedShare, FingerprintSummary, IdfSummary,
    PairsSummary, PlantSummary, SegmentSummary, SimilarityHistogram,
};

use crate::args::{
    DedupArgs, FingerprintArgs, IdfArgs, PairsArgs, PlantArgs, SearchArgs, SegmentArgs,
};
use crate::output::{
    OutputPrinter, TextTone, escape_control, format_bar, format_bytes, format_count,
    format_duration, format_plural,
};

/// Longest bar of a plot, in characters.
const BAR: usize = 32;

/// Number of queries from which the time per query is meaningful.
const MANY_QUERIES: u64 = 10_000;

/// Number of clusters that are named.
const NAMED_CLUSTERS: usize = 5;

/// Longest id that is shown, in characters.
const SHOWN_ID: usize = 60;

/// Returns the summary of a dedup run. `written` names the outputs and their files.
pub(crate) fn describe_dedup(
    done: &DedupSummary,
    args: &DedupArgs,
    written: &[(&str, PathBuf)],
    printer: &OutputPrinter,
) -> String {
    let mut text = String::new();
    append_speed(&mut text, done.documents, done.bytes, done.seconds);
    if done.against > 0 {
        append_line(
            &mut text,
            "reference",
            &format_plural(done.against, "document", "documents"),
        );
    }
    if done.shared_ids > 0 {
        let shared = format!(
            "{} have the id or row number of a reference document: tables distinguish them by \
             source and row",
            format_count(done.shared_ids)
        );
        append_line(&mut text, "shared ids", &shared);
    }
    if let Some(mixed) = done.mixed_values {
        let told = format!(
            "{} have a number and {} a string in the field of --keep: every string counts as larger than \
             every number",
            format_count(mixed.numbers),
            format_count(mixed.strings)
        );
        append_line(&mut text, "mixed values", &told);
    }
    append_line(&mut text, "kept", &format_count(done.kept));
    append_removed(&mut text, done);
    append_clusters(&mut text, done, printer);
    let by_similarity = (&done.histogram, done.threshold);
    let heading = "Similarity of the removed documents to the kept ones";
    append_histogram(&mut text, by_similarity, heading, printer);
    append_audit(&mut text, done.audit.as_ref(), "removed documents", printer);
    append_short_texts(&mut text, done);
    append_rejected(&mut text, done.rejected, done.documents);
    suspicions(&mut text, done, printer);
    let matched = (
        (done.method, done.measure, done.candidates_from),
        done.threshold,
        &done.recipe[..],
        &done.recipe_id[..],
    );
    append_matching(&mut text, matched);
    append_outputs(&mut text, done, args, written);
    text
}

/// Returns the summary of a pairs run.
pub(crate) fn describe_pairs(
    done: &PairsSummary,
    args: &PairsArgs,
    printer: &OutputPrinter,
) -> String {
    let mut text = String::new();
    append_speed(&mut text, done.documents, done.bytes, done.seconds);
    append_line(&mut text, "pairs", &format_count(done.pairs));
    if done.equal > 0 {
        let equal = format!(
            "{} have the text of an earlier one{}",
            format_plural(done.equal, "document", "documents"),
            match args.distinct {
                true => " and are left out",
                false => ", with which each is paired; --all lists every combination",
            }
        );
        append_line(&mut text, "equal texts", &equal);
    }
    let by_similarity = (&done.histogram, done.threshold);
    append_histogram(&mut text, by_similarity, "Similarity of the pairs", printer);
    append_audit(&mut text, done.audit.as_ref(), "pairs", printer);
    append_rejected(&mut text, done.rejected, done.documents);
    let matched = (
        (done.method, done.measure, done.candidates_from),
        done.threshold,
        &done.recipe[..],
        &done.recipe_id[..],
    );
    append_matching(&mut text, matched);
    if let Some(output) = args
        .output
        .as_deref()
        .filter(|output| is_regular_output(output))
    {
        append_line(&mut text, "written to", &output.display().to_string());
    }
    text
}

/// Returns the summary of a run that printed fingerprints.
pub(crate) fn fingerprints(done: &FingerprintSummary, args: &FingerprintArgs) -> String {
    let mut text = String::new();
    append_speed(&mut text, done.documents, done.bytes, done.seconds);
    if done.without > 0 {
        let poor = format!("{} too short for a fingerprint", format_count(done.without));
        append_line(&mut text, "texts too short", &poor);
    }
    append_rejected(&mut text, done.rejected, done.documents);
    let made = match done.method {
        "simhash" => format!("SimHash of {} bits", done.size),
        "bottomk" => format!("at most {} smallest hashes", done.size),
        "sentences" => format!("hashes of the {} longest sentences", done.size),
        _ => format!("MinHash of {} slots", done.size),
    };
    let (recipe, id) = (escape_control(&done.recipe), &done.recipe_id);
    append_line(
        &mut text,
        "sketch",
        &format!("{made}, recipe {recipe} ({id})"),
    );
    if let Some(output) = args
        .output
        .as_deref()
        .filter(|output| is_regular_output(output))
    {
        append_line(&mut text, "written to", &output.display().to_string());
    }
    text
}

/// Returns the summary of a run that listed tokens.
pub(crate) fn describe_segmented(done: &SegmentSummary, args: &SegmentArgs) -> String {
    let mut text = String::new();
    append_speed(&mut text, done.documents, done.bytes, done.seconds);
    append_rejected(&mut text, done.rejected, done.documents);
    let recipe = format!("{} ({})", escape_control(&done.recipe), done.recipe_id);
    append_line(&mut text, "recipe", &recipe);
    if let Some(output) = args
        .output
        .as_deref()
        .filter(|output| is_regular_output(output))
    {
        append_line(&mut text, "written to", &output.display().to_string());
    }
    text
}

/// Returns the summary of a run that learned document frequencies.
pub(crate) fn frequencies(done: &IdfSummary, args: &IdfArgs) -> String {
    let mut text = String::new();
    append_speed(&mut text, done.documents, done.bytes, done.seconds);
    append_rejected(&mut text, done.rejected, done.documents);
    let of = format_plural(done.counted, "document", "documents");
    append_line(
        &mut text,
        "terms",
        &format!("{} of {of}", format_count(done.terms)),
    );
    let recipe = format!("{} (terms {})", escape_control(&done.recipe), done.terms_id);
    append_line(&mut text, "recipe", &recipe);
    if let Some(output) = args
        .output
        .as_deref()
        .filter(|output| is_regular_output(output))
    {
        append_line(&mut text, "written to", &output.display().to_string());
    }
    text
}

/// Returns the summary of a planting run.
pub(crate) fn describe_planted(done: &PlantSummary, args: &PlantArgs) -> String {
    let mut text = String::new();
    append_speed(&mut text, done.documents, done.bytes, done.seconds);
    let copies = format!(
        "{} of {}, with ids that end in {} and a number",
        format_plural(done.copies, "edited copy", "edited copies"),
        format_plural(done.drawn, "document", "documents"),
        done.mark
    );
    append_line(&mut text, "planted", &copies);
    let natural = format!(
        "{} of documents that were similar before planting",
        format_plural(done.natural, "pair", "pairs")
    );
    append_line(&mut text, "natural", &natural);
    let near = format_plural(done.near_misses, "pair", "pairs");
    append_line(
        &mut text,
        "near misses",
        &format!("{near} a little below the threshold"),
    );
    let others = format!(
        "{} of one topic or template, {} that have hardly anything in common",
        format_plural(done.siblings, "pair", "pairs"),
        format_plural(done.unrelated, "pair", "pairs")
    );
    append_line(&mut text, "others", &others);
    append_rejected(&mut text, done.rejected, done.documents);
    let (recipe, id) = (escape_control(&done.recipe), &done.recipe_id);
    let by = format!(
        "threshold {}, recipe {recipe} ({id}), seed {}",
        done.threshold, done.seed
    );
    append_line(&mut text, "measured by", &by);
    append_line(&mut text, "corpus", &args.output.display().to_string());
    append_line(&mut text, "labels", &args.labels.display().to_string());
    text
}

/// Returns the summary of building an index or adding to one.
pub(crate) fn describe_added(done: &AddSummary, entries: &IndexEntries) -> String {
    let mut text = String::new();
    let read = done.added + done.without;
    append_speed(&mut text, read, done.bytes, done.seconds);
    append_line(&mut text, "added", &format_count(done.added));
    append_unfingerprinted(&mut text, done.poor);
    append_without(&mut text, done.without, "left out");
    append_bad_rows(&mut text, done.rejected, read, field_option(entries));
    append_index_rows(&mut text, &done.library);
    text
}

/// Returns the summary of removing rows from an index.
pub(crate) fn describe_index_removal(done: &RemoveSummary) -> String {
    let mut text = format!(
        "{} removed in {}\n",
        format_plural(done.removed, "row", "rows"),
        format_duration(done.seconds)
    );
    if !done.missing.is_empty() {
        append_line(
            &mut text,
            "not found",
            &format_count(done.missing.len() as u64),
        );
    }
    append_index_rows(&mut text, &done.library);
    text
}

fn append_unfingerprinted(text: &mut String, documents: u64) {
    if documents > 0 {
        let poor = format!(
            "{} too short for a fingerprint: they match only equal texts",
            format_count(documents)
        );
        append_line(text, "texts too short", &poor);
    }
}

fn append_without(text: &mut String, rows: u64, what: &str) {
    if rows > 0 {
        append_line(
            text,
            "empty",
            &format!("{} without text or fingerprint: {what}", format_count(rows)),
        );
    }
}

fn append_index_rows(text: &mut String, info: &IndexInfo) {
    let holds = format!(
        "{} holds {}, {}",
        escape_control(&info.path),
        format_plural(info.fingerprints, "row", "rows"),
        format_bytes(info.bytes)
    );
    append_line(text, "index", &holds);
}

/// Returns the description of an index.
pub(crate) fn describe_index(info: &IndexInfo) -> String {
    let mut text = String::new();
    append_line(&mut text, "index", &escape_control(&info.path));
    let fingerprints = format!("{} of {} bits", format_count(info.fingerprints), info.bits);
    append_line(&mut text, "fingerprints", &fingerprints);
    if info.poor > 0 {
        let poor = format!(
            "{} of these rows have no fingerprint",
            format_count(info.poor)
        );
        append_line(&mut text, "texts too short", &poor);
    }
    if info.removed > 0 {
        let removed = format!("{} that still use disk space", format_count(info.removed));
        append_line(&mut text, "removed", &removed);
    }
    append_line(&mut text, "distance", &format!("at most {}", info.distance));
    append_line(
        &mut text,
        "recipe",
        &recipe_and_id(info.recipe.as_ref(), info.recipe_id.as_ref()),
    );
    let ids = match info.ids {
        None => "not known until rows are added",
        Some(true) => "stored",
        Some(false) => "row numbers",
    };
    append_line(&mut text, "ids", ids);
    append_line(
        &mut text,
        "texts",
        if info.texts { "stored" } else { "not stored" },
    );
    let matching = match info.matching {
        true => "by distance, threshold and measure",
        false => "by distance",
    };
    append_line(&mut text, "searched", matching);
    append_line(&mut text, "plan", &info.plan);
    if let Some(memory) = info.memory {
        append_line(
            &mut text,
            "memory",
            &format!("at most {}", format_bytes(memory)),
        );
    }
    append_line(&mut text, "on disk", &format_bytes(info.bytes));
    for segment in &info.segments {
        let mut value = format!(
            "{}, {}",
            format_plural(segment.rows, "row", "rows"),
            format_bytes(segment.bytes)
        );
        if let Some(plan) = &segment.plan {
            let _ = write!(value, ", {plan}");
        }
        append_line(&mut text, "segment", &value);
    }
    text
}

fn recipe_and_id(name: Option<&String>, id: Option<&String>) -> String {
    match (name, id) {
        (Some(name), Some(id)) => format!("{} ({id})", escape_control(name)),
        _ => "unknown".to_owned(),
    }
}

/// Returns the summary of a verified index.
pub(crate) fn describe_verified(done: &VerifySummary) -> String {
    let mut text = format!(
        "{} ({}) with {} in {}: whole\n",
        format_plural(done.files, "file", "files"),
        format_bytes(done.bytes),
        format_plural(done.rows, "row", "rows"),
        format_duration(done.seconds)
    );
    if done.sampled > 0 {
        let sample = format!(
            "{} computed again from their texts: equal",
            format_count(done.sampled)
        );
        append_line(&mut text, "fingerprints", &sample);
    }
    text
}

/// Returns the summary of a search.
pub(crate) fn describe_search(
    done: &SearchSummary,
    args: &SearchArgs,
    entries: &IndexEntries,
) -> String {
    let mut text = format!(
        "{} in {} against {}",
        format_plural(done.queries, "query", "queries"),
        format_duration(done.seconds),
        format_plural(done.fingerprints, "row", "rows"),
    );
    let searching = done.seconds - done.opening;
    if done.queries >= MANY_QUERIES {
        let each = searching * 1e6 / done.queries as f64;
        let _ = write!(
            text,
            " ({} to open, then {each:.2} µs per query)",
            format_duration(done.opening)
        );
    }
    text.push('\n');
    let matches = format!(
        "{} for {} of {}",
        format_count(done.matches),
        format_count(done.matched),
        format_plural(done.queries, "query", "queries")
    );
    append_line(&mut text, "matches", &matches);
    if done.truncated > 0 {
        let more = format!(
            "{} more matches than the {} listed",
            format_plural(done.truncated, "query has", "queries have"),
            args.limit.unwrap_or_default()
        );
        append_line(&mut text, "truncated", &more);
    }
    append_unfingerprinted(&mut text, done.poor);
    append_without(&mut text, done.without, "match nothing");
    append_bad_rows(
        &mut text,
        done.rejected,
        done.queries,
        field_option(entries),
    );
    let recipe = recipe_and_id(done.recipe.as_ref(), done.recipe_id.as_ref());
    let by = match (done.measure, done.threshold) {
        (Some(measure), Some(threshold)) => format!(
            "{measure} at least {threshold}, candidates by {}, recipe {recipe}",
            done.candidates
        ),
        _ => format!("{}, recipe {recipe}", done.candidates),
    };
    append_line(&mut text, "matched by", &by);
    if let Some(output) = args
        .output
        .as_deref()
        .filter(|output| is_regular_output(output))
    {
        append_line(&mut text, "written to", &output.display().to_string());
    }
    text
}

fn is_regular_output(place: &Path) -> bool {
    place.as_os_str() != "-"
}

/// Appends a label and a value, aligned with other lines.
fn append_line(text: &mut String, label: &str, value: &str) {
    let _ = writeln!(text, "  {label:<16} {value}");
}

fn append_speed(text: &mut String, documents: u64, read: u64, seconds: f64) {
    let _ = write!(
        text,
        "{} ({}) in {}",
        format_plural(documents, "document", "documents"),
        format_bytes(read),
        format_duration(seconds)
    );
    if seconds > 0.05 {
        let _ = write!(text, ": {:.1} MB/s", read as f64 / seconds / 1e6);
    }
    text.push('\n');
}

fn percent_of(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        100.0 * part as f64 / whole as f64
    }
}

fn append_removed(text: &mut String, done: &DedupSummary) {
    let share = percent_of(done.removed, done.documents);
    append_line(
        text,
        "removed",
        &format!("{} ({share:.1} %)", format_count(done.removed)),
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
        append_line(text, "", &format!("{:>9} {how}", format_count(documents)));
    }
}

fn append_clusters(text: &mut String, done: &DedupSummary, printer: &OutputPrinter) {
    append_line(text, "clusters", &format_count(done.clusters));
    if let Some(components) = done.components {
        append_line(text, "components", &format_count(components));
    }
    if done.largest.is_empty() {
        return;
    }
    let heading = "Largest clusters: documents, least similarity, id of the kept document";
    let _ = writeln!(text, "{}", printer.in_message(TextTone::Heading, heading));
    for cluster in done.largest.iter().take(NAMED_CLUSTERS) {
        let _ = writeln!(
            text,
            "  {:>9}  {:.2}  {}",
            format_count(cluster.documents),
            cluster.least_similarity,
            shorten_id(&cluster.cluster)
        );
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

/// Appends the bins from the threshold on, or from the first non-empty one if that is lower.
fn append_histogram(
    text: &mut String,
    (histogram, threshold): (&SimilarityHistogram, f64),
    heading: &str,
    printer: &OutputPrinter,
) {
    let counts = histogram.bin_counts();
    let Some(first_used) = counts.iter().position(|&count| count > 0) else {
        return;
    };
    // A threshold on the lower edge of a bin belongs to that bin.
    let at_threshold = (threshold * SimilarityHistogram::STEPS as f64 + 1e-9) as usize;
    let most = counts.iter().copied().max().unwrap_or(1);
    let _ = writeln!(text, "{}", printer.in_message(TextTone::Heading, heading));
    for (bin, &counted) in counts.iter().enumerate().skip(at_threshold.min(first_used)) {
        let (low, high) = (bin as f64, bin as f64 + 1.0);
        let steps = SimilarityHistogram::STEPS as f64;
        let label = if bin == SimilarityHistogram::STEPS {
            "1".to_owned()
        } else {
            format!("{:.2} to {:.2}", low / steps, high / steps)
        };
        let plot = format_bar(counted as f64 / most as f64, BAR);
        let row = format!("  {label:<14} {:>9} {plot}", format_count(counted));
        let _ = writeln!(text, "{}", row.trim_end());
    }
    if at_threshold > 0 {
        let _ = writeln!(text, "  pairs below {threshold} are not searched for");
    }
}

/// Number of kinds of edits that are named because copies were missed.
const NAMED_EDITS: usize = 5;

/// Appends the result of an audit. `reported` names what the run reports.
fn append_audit(
    text: &mut String,
    audit: Option<&AuditReport>,
    reported: &str,
    printer: &OutputPrinter,
) {
    let Some(audit) = audit else { return };
    let wanted = match audit.wanted > audit.drawn {
        true => format!(" of the {} requested", format_count(audit.wanted)),
        false => String::new(),
    };
    let heading = format!(
        "Audit: {}{wanted} sampled (seed {}) and compared exactly with all documents read after \
         them",
        format_plural(audit.drawn, "document", "documents"),
        audit.seed
    );
    let _ = writeln!(text, "{}", printer.in_message(TextTone::Heading, &heading));
    let of = |cases: u64| format_plural(cases, "sampled document", "sampled documents");
    let least = audit.least_jaccard.map_or_else(String::new, |least| {
        format!(
            " with a Jaccard index of {} or more",
            round_to_four_digits(least)
        )
    });
    let recall = format!(
        "{} of the matches of {}{least} are found",
        format_share(&audit.recall),
        of(audit.recall.cases)
    );
    append_line(text, "recall", &recall);
    let with_cases = |of: fn(&ByLength) -> &EstimatedShare| {
        let all = audit.by_length.iter();
        all.filter(move |one| of(one).cases > 0)
    };
    for of_length in with_cases(|one| &one.recall) {
        let recall = format!(
            "  {} of {} of {} tokens",
            format_share(&of_length.recall),
            of(of_length.recall.cases),
            of_length.length
        );
        append_line(text, "", &recall);
    }
    if let Some(left) = &audit.left {
        let left = format!(
            "{} of these matches stay in the output together with the document",
            format_share(left)
        );
        append_line(text, "left together", &left);
    }
    let precision = format!(
        "{} of {} {reported}, verified again, reach the threshold",
        format_share(&audit.precision),
        format_count(audit.precision.cases)
    );
    append_line(text, "precision", &precision);
    for of_length in with_cases(|one| &one.precision) {
        let precision = format!(
            "  {} of {} of {} tokens",
            format_share(&of_length.precision),
            format_count(of_length.precision.cases),
            of_length.length
        );
        append_line(text, "", &precision);
    }
    let Some(planted) = &audit.planted else {
        return;
    };
    let found = format!(
        "{} of {} that reach the threshold, of {} planted, are found",
        format_share(&planted.recall),
        format_plural(planted.recall.cases, "edited copy", "edited copies"),
        format_count(planted.copies)
    );
    append_line(text, "planted edits", &found);
    let missed = |edit: &&ByEdit| edit.recall.share.is_some_and(|share| share < 1.0);
    for edit in planted.by_edit.iter().filter(missed).take(NAMED_EDITS) {
        let strength = edit.strength.map_or_else(String::new, |strength| {
            format!(" {} %", (strength * 1000.0).round() / 10.0)
        });
        let found = format!(
            "  {} of {}{strength}",
            format_share(&edit.recall),
            edit.kind
        );
        append_line(text, "", &found);
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

fn append_short_texts(text: &mut String, done: &DedupSummary) {
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
        append_line(
            text,
            "texts too short",
            &format!("{} {what}", format_count(documents)),
        );
    }
}

fn append_rejected(text: &mut String, rows: u64, good: u64) {
    append_bad_rows(text, rows, good, "--text FIELD, or --features FIELD,");
}

/// If no row was good, the option may be the reason, so it is named.
fn append_bad_rows(text: &mut String, rows: u64, good: u64, option: &str) {
    let remedy = match good {
        0 => format!(", and no row is usable: check {option}"),
        _ => String::new(),
    };
    if rows > 0 {
        let rows = format!("{} left out{remedy}", format_count(rows));
        append_line(text, "bad rows", &rows);
    }
}

/// Returns the option that names the fingerprints or texts of rows.
fn field_option(entries: &IndexEntries) -> &'static str {
    match entries {
        IndexEntries::Documents => "--text FIELD",
        IndexEntries::Lines(_) => "--digits",
        IndexEntries::Field(..) => "--fingerprint FIELD",
    }
}

fn suspicions(text: &mut String, done: &DedupSummary, printer: &OutputPrinter) {
    if done.suspicious.is_empty() {
        return;
    }
    let heading = "Suspicious clusters";
    let _ = writeln!(text, "{}", printer.in_message(TextTone::Warning, heading));
    for suspicion in done.suspicious.iter().take(NAMED_CLUSTERS) {
        let _ = writeln!(
            text,
            "  {}: {}",
            shorten_id(&suspicion.cluster),
            escape_control(&suspicion.reason)
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
type CandidateDescription<'a> = (&'a str, &'a str, Option<f64>);

fn append_matching(
    text: &mut String,
    ((method, measure, from), threshold, recipe, id): (CandidateDescription<'_>, f64, &str, &str),
) {
    let by = match measure {
        "jaccard" => String::new(),
        "none" => ", unverified".to_owned(),
        measure => format!(", verified by {measure}"),
    };
    let value = format!(
        "{method}{by}, threshold {threshold}, recipe {} ({id})",
        escape_control(recipe)
    );
    append_line(text, "matched by", &value);
    if let Some(from) = from {
        let from = round_to_four_digits(from);
        let from = format!("pairs with a Jaccard index of {from} or more; no others were compared");
        append_line(text, "candidates", &from);
    }
}

/// Rounds to four decimals.
fn round_to_four_digits(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

fn append_outputs(
    text: &mut String,
    done: &DedupSummary,
    args: &DedupArgs,
    written: &[(&str, PathBuf)],
) {
    if args.dry_run {
        append_line(text, "written", "nothing (--dry-run)");
    }
    for (what, place) in written.iter().filter(|(_, place)| is_regular_output(place)) {
        let what = if args.annotate && *what == "kept rows" {
            "all rows"
        } else {
            what
        };
        append_line(text, what, &place.display().to_string());
    }
    if done.removed == 0 {
        return;
    }
    match written
        .iter()
        .find(|(what, place)| *what == "removed" && is_regular_output(place))
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
    use lookalike_batch::run::{
        ByRoute, LargeCluster, PlantedReport, SuspiciousCluster, TextStateCounts,
    };

    use super::*;
    use crate::args::{Command, CommandLine};

    fn run() -> DedupSummary {
        let similarities = [(4, 5, 10), (1, 1, 40)];
        let repeated =
            |(part, whole, count)| std::iter::repeat_n(Similarity::from_ratio(part, whole), count);
        let histogram = similarities.into_iter().flat_map(repeated).collect();
        DedupSummary {
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
            states: TextStateCounts {
                poor: 3,
                blank: 0,
                empty: 1,
            },
            largest: vec![LargeCluster {
                cluster: "a\u{1b}b".into(),
                documents: 12,
                least_similarity: 0.8125,
            }],
            suspicious: vec![SuspiciousCluster {
                cluster: "a".into(),
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
    fn a_person_learns_what_happened_and_what_to_do_next() {
        let args = dedup_of("lookalike dedup in.jsonl -o out.jsonl --removed gone.tsv");
        let written = [
            ("kept rows", PathBuf::from("out.jsonl")),
            ("removed", PathBuf::from("gone.tsv")),
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
    fn an_audit_says_what_was_missed_and_how_sure_that_is() {
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
                planted: Some(PlantedReport {
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
    fn a_dry_run_says_that_nothing_was_written() {
        let args = dedup_of("lookalike dedup in.jsonl --dry-run");
        let text = describe_dedup(&run(), &args, &[], &OutputPrinter::new(true));
        assert!(
            text.contains("nothing (--dry-run)") && text.contains("--removed FILE"),
            "{text}"
        );
    }
}
