//! `--explain-plan`: how candidates are found, their expected recall, the memory per document, and
//! a forecast of a run over given inputs.

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::Result;
use lookalike::Recipe;
use lookalike::dedup::SurveyKind;
use lookalike::plan::{
    EditUnit, LOWEST_CANDIDATE_THRESHOLD, MatchPlan, MethodSketch, SimilarityMeasure,
};
use lookalike_batch::run::{
    self, MemoryPlan, PlannedDirectories, RecallCurve, RunForecast, RunParts, RunSettings,
};
use lookalike_options::keep_order::KeepOrder;
use serde_json::{Value, json};

use super::matching::recipe_and_plan;
use super::matching_runs::MatchingRunArgs;
use crate::CommandOutcome;
use crate::commands::recipe::describe_feature;
use crate::language::engine_phrases::translate_phrase;
use crate::language::{CountedNoun, NounCount, messages};
use crate::output::{
    OutputPrinter, TextTone, escape_control, format_bar, format_bytes, format_count, pad_to_width,
};
use crate::progress::ProgressReporter;

/// Similarities at which the recall is shown.
const SHOWN_SIMILARITIES: [f64; 10] = [0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95];

/// Longest bar, in characters.
const LONGEST_BAR: usize = 40;

/// Recall below which no bar is shown, because it rounds to 0.
const NEGLIGIBLE_RECALL: f64 = 0.000_05;

/// Memory per document in bytes: key 16, state 1, sizes and places of its sketches 12, place and number of
/// its row 16.
const DOCUMENT_BYTES: usize = 45;

/// Memory per id in bytes, in addition to the id itself: its end, and a hash that finds repeated ids.
const ID_BYTES: usize = 16;

/// Run whose plan is explained.
#[derive(Clone, Copy)]
pub(crate) struct PlannedRun<'a> {
    pub(crate) args: &'a MatchingRunArgs,
    pub(crate) against: &'a [PathBuf],
    pub(crate) keep: &'a KeepOrder,
    /// The field of `--sources`.
    pub(crate) sources: Option<&'a str>,
    pub(crate) directories: PlannedDirectories<'a>,
    /// `true` if the run searches for repeated text.
    pub(crate) has_passages: bool,
    /// Purpose for which the run compares documents.
    pub(crate) purpose: SurveyKind,
}

impl PlannedRun<'_> {
    fn to_settings(self) -> Result<RunSettings> {
        Ok(RunSettings {
            sources: self.sources.map(str::to_owned),
            ..self.args.to_settings(self.keep)?
        })
    }
}

pub(crate) fn explain_plan(
    planned: PlannedRun<'_>,
    printer: &OutputPrinter,
) -> Result<CommandOutcome> {
    let (recipe, _, plan) = recipe_and_plan(&planned.args.matching.rule, &planned.args.reading)?;
    let forecast = forecast_run(planned, *printer)?;
    let memory = plan_memory(planned)?;
    let text = if planned.args.running.json {
        let mut json = plan_to_json(&recipe, &plan);
        json["forecast"] = serde_json::to_value(&forecast)?;
        json["memory_plan"] = serde_json::to_value(&memory)?;
        format!("{json}\n")
    } else {
        let mut text = plan_in_words(&recipe, &plan, printer);
        if let Some(forecast) = forecast {
            text.push_str(&forecast_in_words(&forecast, planned.purpose, printer));
        }
        let is_set = planned.args.memory.is_some();
        if let Some(memory) = memory.filter(|memory| is_set || memory.out_of_core) {
            text.push_str(&memory_in_words(&memory, printer));
        }
        text
    };
    printer.write_data(&text)?;
    Ok(CommandOutcome::Done)
}

/// Returns the forecast of a run over the inputs, or `None` if there are none.
fn forecast_run(planned: PlannedRun<'_>, printer: OutputPrinter) -> Result<Option<RunForecast>> {
    if planned.args.inputs.is_empty() {
        return Ok(None);
    }
    let settings = RunSettings {
        audit: None,
        ..planned.to_settings()?
    };
    let inputs = planned.args.run_inputs(planned.against);
    let forecast = ProgressReporter::watch_run(printer, false, "", |reporter| {
        let directories = planned.directories;
        run::forecast_run(&inputs, &settings, planned.purpose, directories, reporter)
    })?;
    Ok(Some(forecast))
}

/// Returns the plan of the memory of a run over the inputs, or `None` if there are none or nothing limits it.
fn plan_memory(planned: PlannedRun<'_>) -> Result<Option<MemoryPlan>> {
    let settings = planned.to_settings()?;
    let Some(limit) = settings.memory.filter(|_| !planned.args.inputs.is_empty()) else {
        return Ok(None);
    };
    let inputs = planned.args.run_inputs(planned.against);
    Ok(Some(MemoryPlan::plan_run(
        &inputs,
        &settings,
        limit,
        RunParts {
            has_index: planned.directories.index.is_some(),
            has_passages: planned.has_passages,
        },
    )?))
}

fn memory_in_words(plan: &MemoryPlan, printer: &OutputPrinter) -> String {
    let mut text = String::new();
    let heading = messages::limited_memory(&format_bytes(plan.limit_bytes));
    let _ = writeln!(
        text,
        "{}",
        printer.paint_for_output(TextTone::Heading, &heading)
    );
    if let Some((expected, most)) = plan.expected_bytes.zip(plan.in_memory_bytes) {
        let (expected, most) = (format_bytes(expected), format_bytes(most));
        let all = messages::memory_of_all(&expected, &most);
        push_forecast_line(&mut text, &messages::all(), &all);
    }
    let where_it_runs = if plan.out_of_core {
        let disk = format_bytes(plan.disk_bytes);
        messages::plan_out_of_core(&disk, &format_bytes(plan.resident_bytes))
    } else {
        messages::plan_in_memory()
    };
    push_forecast_line(&mut text, &messages::plan(), &where_it_runs);
    if let Some(passages) = &plan.passages {
        let described = messages::memory_of_passages(
            passages.bytes_per_document,
            passages.bytes_per_run,
            passages.disk_bytes_per_run,
            passages.disk_bytes_per_repeat,
        );
        push_forecast_line(&mut text, &messages::passages(), &described);
    }
    let least = plan.smallest_limit_bytes.div_ceil(1_000_000);
    push_forecast_line(&mut text, &messages::least(), &format!("--memory {least}M"));
    text
}

fn forecast_in_words(
    forecast: &RunForecast,
    purpose: SurveyKind,
    printer: &OutputPrinter,
) -> String {
    let mut text = String::new();
    let heading = messages::prediction(
        NounCount(forecast.documents, CountedNoun::Document),
        &format_count(forecast.sampled),
    );
    let _ = writeln!(
        text,
        "{}",
        printer.paint_for_output(TextTone::Heading, &heading)
    );
    let mut line = |label: &str, value: &str| push_forecast_line(&mut text, label, value);
    for route in &forecast.compared {
        let compared = messages::pairs_to_compare(
            &round_to_two_digits(route.pairs),
            &round_to_two_digits(route.false_candidates),
            &format_count(route.sampled_pairs),
            &format_count(route.sampled_false),
            &format_count(route.verified_pairs),
        );
        line(route.route, &compared);
    }
    if forecast.compared.is_empty() {
        line(&messages::pairs(), &messages::no_pair_was_compared());
    }
    let memory = messages::memory_with_buffers(&format_bytes(forecast.memory_bytes));
    line(&messages::memory(), &memory);
    let seconds = messages::seconds(format_args!("{:.1}", forecast.seconds));
    let threads = NounCount(forecast.threads as u64, CountedNoun::Thread);
    let time = match purpose {
        SurveyKind::Pairs => messages::time_to_compare(&seconds, threads),
        SurveyKind::Verdicts => messages::time_to_decide(&seconds, threads),
    };
    line(&messages::time(), &time);
    if let Some(seconds) = forecast.learning_seconds {
        let seconds = messages::seconds(format_args!("{seconds:.1}"));
        line("", &messages::time_to_learn(&seconds));
    }
    if forecast.bad_rows > 0 {
        let bad = NounCount(forecast.bad_rows, CountedNoun::Row);
        line(&messages::bad(), &messages::unusable_of_sample(bad));
    }
    text
}

/// Appends a line below a heading: a label and a value.
fn push_forecast_line(text: &mut String, label: &str, value: &str) {
    let _ = writeln!(text, "  {} {value}", pad_to_width(label, 10));
}

/// Formats a number with two significant digits.
fn round_to_two_digits(number: f64) -> String {
    let digits = number.max(1.0).log10().floor() as i32;
    let step = 10f64.powi((digits - 1).max(0));
    format_count(((number / step).round() * step) as u64)
}

/// Returns the similarities to show, including the threshold of candidates, with their recall.
fn sample_points(plan: &MatchPlan, curve: RecallCurve) -> Vec<(f64, f64)> {
    let mut at: Vec<f64> = SHOWN_SIMILARITIES.to_vec();
    if curve.axis_name() == "cosine" {
        at.extend([0.98, 0.99]);
    } else {
        at.push(plan.candidate_threshold().get());
    }
    at.push(1.0);
    at.sort_by(f64::total_cmp);
    at.dedup();
    at.into_iter()
        .map(|similarity| (similarity, curve.recall_at(similarity)))
        .collect()
}

fn plan_in_words(recipe: &Recipe, plan: &MatchPlan, printer: &OutputPrinter) -> String {
    let mut text = String::new();
    let mut line = |label: &str, value: &str| {
        let _ = writeln!(text, "{} {value}", pad_to_width(label, 10));
    };
    let name = escape_control(&recipe.name);
    let features = describe_feature(recipe);
    let features = translate_phrase(&features);
    line(
        &messages::recipe(),
        &messages::features_are(&name, recipe.recipe_id(), &features),
    );
    line(&messages::matches(), &describe_predicate(plan));
    for (label, route) in describe_routes(plan) {
        line(&label, &route);
    }
    line(&messages::memory(), &describe_memory(plan));
    if let Some(curve) = RecallCurve::from_plan(plan) {
        let axis = translate_phrase(curve.axis_name());
        let heading = messages::predicted_recall(&axis);
        let _ = writeln!(
            text,
            "{}",
            printer.paint_for_output(TextTone::Heading, &heading)
        );
        for (similarity, recall) in sample_points(plan, curve) {
            let plot = format_bar(
                if recall < NEGLIGIBLE_RECALL {
                    0.0
                } else {
                    recall
                },
                LONGEST_BAR,
            );
            let threshold = plan.candidate_threshold().get();
            let here = similarity == threshold && curve.axis_name() == "Jaccard";
            let mark = if here {
                messages::threshold_mark()
            } else {
                String::new()
            };
            let _ = writeln!(
                text,
                "  {similarity:.3}  {recall:.4}  {plot:<LONGEST_BAR$}{mark}"
            );
        }
    }
    // Bars shorter than the full width are padded with blanks, which are removed here.
    text.lines()
        .flat_map(|line| [line.trim_end(), "\n"])
        .collect()
}

fn describe_predicate(plan: &MatchPlan) -> String {
    let threshold = plan.threshold().get();
    let measure = plan.match_settings().measure;
    if plan.match_settings().method.finds_equal_texts_alone() {
        return messages::equal_texts_alone();
    }
    if measure == SimilarityMeasure::Sketch {
        return describe_unchecked(plan, threshold);
    }
    let similarity = translate_phrase(measure.descriptor().formula);
    let unit = match (plan.sequence_measure(), plan.match_settings().unit) {
        (None, _) => String::new(),
        (Some(_), EditUnit::Characters) => messages::in_characters(),
        (Some(_), EditUnit::Words) => messages::in_words(),
    };
    format!(
        "{similarity}{unit} >= {threshold}{}",
        describe_candidates(plan)
    )
}

fn describe_unchecked(plan: &MatchPlan, threshold: f64) -> String {
    let alone = match plan.match_settings().method.descriptor().sketch {
        MethodSketch::Fingerprint => return messages::distance_unverified(),
        MethodSketch::EqualKey(key) => {
            return messages::equal_key_unverified(&translate_phrase(key.equality));
        }
        MethodSketch::Smallest => messages::by_smallest_hashes(),
        MethodSketch::Nothing | MethodSketch::Signature => messages::share_of_equal_slots(),
    };
    messages::estimate_unverified(&alone, threshold)
}

/// Describes the pairs for which a measure other than the Jaccard index is computed.
fn describe_candidates(plan: &MatchPlan) -> String {
    if plan.match_settings().measure == SimilarityMeasure::Jaccard
        || !plan.has_candidate_threshold()
    {
        return String::new();
    }
    let least = plan.candidate_threshold().get();
    let floor = plan.sequence_measure().is_some() && least <= LOWEST_CANDIDATE_THRESHOLD;
    let least = format!("{least:.4}");
    if floor {
        messages::candidates_from_lowest(&least)
    } else {
        messages::candidates_from(&least)
    }
}

fn describe_routes(plan: &MatchPlan) -> Vec<(String, String)> {
    let mut routes = vec![(messages::equal(), messages::equal_texts_match())];
    let mut add = |name: &str, route: String| routes.push((name.to_owned(), route));
    if let Some(join) = plan.join_plan() {
        let who = match plan.band_plan() {
            Some(_) => messages::joined_documents(join.max_features, join.max_partner_features),
            None => messages::all_documents(),
        };
        let route = if plan.joins_by_containment() {
            messages::join_of_any_lengths(&who)
        } else {
            messages::join_finds_all(&who)
        };
        add("join", route);
    }
    if let Some(bands) = plan.band_plan() {
        let slots = plan.signature_slots();
        let route = messages::bands_and_rows(bands.bands, bands.rows, slots, bands.min_equal_slots);
        let is_for_longer = plan.join_plan().is_some();
        let route = if is_for_longer {
            messages::longer_documents(&route)
        } else {
            route
        };
        add("MinHash", route);
    }
    if let Some(distance) = plan.distance() {
        let bits = plan.fingerprint_bits();
        let route = match plan.block_plan() {
            Some(blocks) => messages::fingerprints_share_block(blocks.count, bits),
            None => messages::fingerprints_within(distance.get(), bits),
        };
        add("SimHash", route);
    }
    if let Some(count) = plan.sentence_count() {
        let route = match count {
            1 => messages::same_longest_sentence(),
            count => messages::same_longest_sentences(count),
        };
        add("sentences", route);
    } else if let Some(key) = plan.equal_key() {
        let route = messages::documents_with_equal_key(&translate_phrase(key.equality));
        add(key.route.name(), route);
    }
    if let Some(smallest) = plan.bottom_k_plan() {
        let route = messages::share_smallest_hashes(
            smallest.bucket_keys,
            smallest.hashes,
            smallest.min_shared_hashes,
        );
        add("bottom-k", route);
    }
    routes
}

fn describe_memory(plan: &MatchPlan) -> String {
    let sketch = match (plan.sketch_bytes(), plan.join_plan()) {
        (0, _) => String::new(),
        (bytes, Some(join)) => messages::bytes_of_longer(bytes, join.max_features),
        (bytes, None) => messages::bytes_of_sketch(bytes),
    };
    messages::bytes_of_document(DOCUMENT_BYTES, ID_BYTES, &sketch)
}

fn plan_to_json(recipe: &Recipe, plan: &MatchPlan) -> Value {
    let settings = plan.match_settings();
    let joins_all = plan.band_plan().is_none();
    let curve = RecallCurve::from_plan(plan);
    let has_bound = !plan.joins_by_containment();
    let candidate_threshold = has_bound.then(|| plan.candidate_threshold().get());
    json!({
        "recipe": recipe.name,
        "recipe_id": recipe.recipe_id().to_string(),
        "threshold": plan.threshold().get(),
        "measure": settings.measure.name(),
        "unit": plan.sequence_measure().map(|_| match settings.unit {
            EditUnit::Characters => "characters",
            EditUnit::Words => "words",
        }),
        "candidate_threshold": candidate_threshold,
        "join": plan.join_plan().map(|join| if joins_all {
            json!({ "max_features": null, "max_partner_features": null })
        } else {
            json!({ "max_features": join.max_features, "max_partner_features": join.max_partner_features })
        }),
        "minhash": plan.band_plan().map(|bands| json!({
            "bands": bands.bands,
            "rows": bands.rows,
            "slots": plan.signature_slots(),
            "min_equal_slots": bands.min_equal_slots,
        })),
        "simhash": plan.distance().map(|distance| json!({
            "distance": distance.get(),
            "bits": plan.fingerprint_bits(),
            "blocks": plan.block_plan().map(|blocks| blocks.count),
        })),
        "sentences": plan.sentence_count(),
        "bottomk": plan.bottom_k_plan().map(|smallest| json!({
            "bucket_keys": smallest.bucket_keys,
            "hashes": smallest.hashes,
            "min_shared_hashes": smallest.min_shared_hashes,
        })),
        "recall": curve.map(|curve| sample_points(plan, curve).into_iter().map(|(similarity, recall)| json!({
            "similarity": similarity,
            "recall": recall,
        })).collect::<Vec<_>>()),
        "bytes_per_document": DOCUMENT_BYTES,
        "bytes_per_sketch": plan.sketch_bytes(),
    })
}
