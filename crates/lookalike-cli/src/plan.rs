//! `--explain-plan`: how candidates are found, their expected recall, the memory per document, and a forecast
//! of a run over given inputs.

use std::f64::consts::PI;
use std::fmt::Write as _;

use anyhow::Result;
use lookalike::Recipe;
use lookalike::matching::Surveyed;
use lookalike::plan::{Bands, LEAST_CANDIDATES, Measure, Plan, Smallest, Unit};
use lookalike_batch::run::{self, Forecast, measure_name};
use serde_json::{Value, json};

use crate::Outcome;
use crate::commands::recipe::features;
use crate::output::{Printer, Tone, bar, bytes, count, plural, visible};
use crate::progress::Reporter;
use crate::settings::{self, ForecastOf};

/// Similarities at which the recall is shown.
const SIMILARITIES: [f64; 10] = [0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95];

/// Longest bar, in characters.
const BAR: usize = 40;

/// Recall below which no bar is shown, because it rounds to 0.
const NEGLIGIBLE: f64 = 0.000_05;

/// Memory per document in bytes: key 16, state 1, sizes and places of its sketches 12, place and number of
/// its row 16.
const DOCUMENT_BYTES: usize = 45;

/// Memory per id in bytes, in addition to the id itself: its end, and a hash that finds repeated ids.
const ID_BYTES: usize = 16;

pub(crate) fn explain(of: ForecastOf<'_>, printer: &Printer) -> Result<Outcome> {
    let (recipe, _, plan) = settings::plan_of(&of.matching.rule, of.reading)?;
    let forecast = forecast(of, *printer)?;
    let text = if of.running.json {
        let mut json = as_json(&recipe, &plan);
        json["forecast"] = serde_json::to_value(&forecast)?;
        format!("{json}\n")
    } else {
        let mut text = in_words(&recipe, &plan, printer);
        if let Some(forecast) = forecast {
            text.push_str(&forecast_in_words(&forecast, of.followed, printer));
        }
        text
    };
    printer.data(&text)?;
    Ok(Outcome::Done)
}

/// Returns the forecast of a run over the inputs, or `None` if there are none.
fn forecast(of: ForecastOf<'_>, printer: Printer) -> Result<Option<Forecast>> {
    let Some((inputs, settings)) = settings::forecast_of(of)? else {
        return Ok(None);
    };
    let reporter = Reporter::new(printer, false);
    let forecast = run::forecast(&inputs, &settings, of.followed, &reporter);
    reporter.finish("");
    Ok(Some(forecast?))
}

fn forecast_in_words(forecast: &Forecast, followed: Surveyed, printer: &Printer) -> String {
    let mut text = String::new();
    let heading = format!(
        "Prediction for {} documents, from a sample of {} with different texts",
        count(forecast.documents),
        count(forecast.sampled)
    );
    let _ = writeln!(text, "{}", printer.in_output(Tone::Heading, &heading));
    let mut line = |label: &str, value: &str| {
        let _ = writeln!(text, "  {label:<8} {value}");
    };
    for route in &forecast.compared {
        let compared = format!(
            "{} pairs to compare, {} of them false candidates (the sample has {}, and {} of {} \
             compared were false)",
            about(route.pairs),
            about(route.false_candidates),
            count(route.sampled_pairs),
            count(route.sampled_false),
            count(route.verified_pairs)
        );
        line(route.route, &compared);
    }
    if forecast.compared.is_empty() {
        line("pairs", "no pair was compared in the sample");
    }
    line(
        "memory",
        &format!("about {}, plus buffers", bytes(forecast.memory)),
    );
    let compare = match followed {
        Surveyed::Pairs => "compare all pairs",
        Surveyed::Verdicts => "decide",
    };
    let time = format!(
        "about {:.1} s to read and {compare} with {} thread{}, without writing",
        forecast.seconds,
        forecast.threads,
        if forecast.threads == 1 { "" } else { "s" }
    );
    line("time", &time);
    if forecast.bad > 0 {
        let bad = plural(forecast.bad, "row", "rows");
        line(
            "bad",
            &format!("{bad} of the sample cannot be used: a run reports each with its reason"),
        );
    }
    text
}

/// Formats a number with two significant digits.
fn about(number: f64) -> String {
    let digits = number.max(1.0).log10().floor() as i32;
    let step = 10f64.powi((digits - 1).max(0));
    count(((number / step).round() * step) as u64)
}

/// Expected share of pairs that become candidates, as a function of similarity.
#[derive(Debug, Clone, Copy)]
struct Curve {
    kind: CurveKind,
    threshold: f64,
}

#[derive(Debug, Clone, Copy)]
enum CurveKind {
    /// As a function of the Jaccard index.
    Bands { bands: Bands, slots: usize },
    /// As a function of the Jaccard index.
    Smallest(Smallest),
    /// As a function of the cosine of the weighted features.
    Distance { most: u32, bits: u32 },
}

impl Curve {
    fn of(plan: &Plan) -> Option<Self> {
        let by_bands = plan.bands().map(|bands| CurveKind::Bands {
            bands,
            slots: plan.slots(),
        });
        let by_smallest = plan.smallest().map(CurveKind::Smallest);
        // Documents that share a block can have any distance, so there is no curve.
        let by_distance = plan.distance().filter(|_| plan.blocks().is_none());
        let bits = plan.bits();
        let by_distance = by_distance.map(|distance| CurveKind::Distance {
            most: distance.get(),
            bits,
        });
        let threshold = plan.candidate_threshold().get();
        by_bands
            .or(by_smallest)
            .or(by_distance)
            .map(|kind| Self { kind, threshold })
    }

    fn axis(&self) -> &'static str {
        match self.kind {
            CurveKind::Bands { .. } | CurveKind::Smallest(_) => "Jaccard",
            CurveKind::Distance { .. } => "cosine",
        }
    }

    /// Returns the expected recall. With bands, a pair must share a band and have enough equal slots. The two
    /// conditions are strongly correlated, so the smaller probability is taken.
    fn recall(&self, similarity: f64) -> f64 {
        match self.kind {
            CurveKind::Bands { bands, slots } => {
                let differing = (slots - bands.least_equal) as u32;
                bands
                    .recall(similarity)
                    .min(at_most(differing, slots as u32, 1.0 - similarity))
            }
            CurveKind::Smallest(smallest) => {
                let differing = (smallest.kept - smallest.least_equal) as u32;
                let near = at_most(differing, smallest.kept as u32, 1.0 - similarity);
                smallest.recall(similarity).min(near)
            }
            CurveKind::Distance { most, bits } => at_most(most, bits, similarity.acos() / PI),
        }
    }

    /// Returns the similarities to show, including the threshold, with their recall.
    fn points(&self) -> Vec<(f64, f64)> {
        let mut at: Vec<f64> = SIMILARITIES.to_vec();
        if matches!(self.kind, CurveKind::Distance { .. }) {
            at.extend([0.98, 0.99]);
        } else {
            at.push(self.threshold);
        }
        at.push(1.0);
        at.sort_by(f64::total_cmp);
        at.dedup();
        at.into_iter()
            .map(|similarity| (similarity, self.recall(similarity)))
            .collect()
    }
}

/// Returns the probability of at most `most` successes in `trials` trials of the given probability.
fn at_most(most: u32, trials: u32, probability: f64) -> f64 {
    if probability <= 0.0 {
        return 1.0;
    }
    if probability >= 1.0 {
        return f64::from(u8::from(most >= trials));
    }
    let odds = probability / (1.0 - probability);
    let mut term = (1.0 - probability).powi(trials as i32);
    let mut sum = 0.0;
    for successes in 0..=most.min(trials) {
        sum += term;
        term *= odds * f64::from(trials - successes) / f64::from(successes + 1);
    }
    sum.min(1.0)
}

fn in_words(recipe: &Recipe, plan: &Plan, printer: &Printer) -> String {
    let mut text = String::new();
    let mut line = |label: &str, value: &str| {
        let _ = writeln!(text, "{label:<10} {value}");
    };
    let name = visible(&recipe.name);
    line(
        "recipe",
        &format!(
            "{name} ({}): features are {}",
            recipe.id(),
            features(recipe)
        ),
    );
    line("matches", &predicate(plan));
    for (label, route) in routes(plan) {
        line(label, &route);
    }
    line("memory", &memory(plan));
    if let Some(curve) = Curve::of(plan) {
        let heading = format!("Predicted recall of pairs, by {}", curve.axis());
        let _ = writeln!(text, "{}", printer.in_output(Tone::Heading, &heading));
        for (similarity, recall) in curve.points() {
            let plot = bar(if recall < NEGLIGIBLE { 0.0 } else { recall }, BAR);
            let here = similarity == curve.threshold && curve.axis() == "Jaccard";
            let mark = if here { "  <- threshold" } else { "" };
            let _ = writeln!(text, "  {similarity:.3}  {recall:.4}  {plot:<BAR$}{mark}");
        }
    }
    // Bars shorter than the full width are padded with blanks, which are removed here.
    text.lines()
        .flat_map(|line| [line.trim_end(), "\n"])
        .collect()
}

fn predicate(plan: &Plan) -> String {
    let threshold = plan.threshold().get();
    let measure = plan.settings().measure;
    if !plan.finds_by_features() && plan.distance().is_none() && plan.sentences().is_none() {
        return "texts that are equal after normalisation".to_owned();
    }
    if measure == Measure::Sketch {
        return unchecked(plan, threshold);
    }
    let similarity = match measure {
        Measure::Jaccard | Measure::Sketch => "Jaccard index of the sets of features",
        Measure::Containment => "shared features / features of the smaller document",
        Measure::Cosine => "cosine of the weighted features",
        Measure::Levenshtein => "1 - edits / length of the longer text",
        Measure::Indel => "1 - (insertions + deletions) / length of both texts",
        Measure::Substring => "2 x longest common substring / length of both texts",
    };
    let unit = match (plan.of_sequences(), plan.settings().unit) {
        (None, _) => "",
        (Some(_), Unit::Characters) => ", in characters,",
        (Some(_), Unit::Words) => ", in words,",
    };
    format!("{similarity}{unit} >= {threshold}{}", among(plan))
}

fn unchecked(plan: &Plan, threshold: f64) -> String {
    let alone = match (plan.distance(), plan.sentences(), plan.smallest()) {
        (Some(_), ..) => return "the distance alone, without verification".to_owned(),
        (_, Some(_), _) => return "the same longest sentences, without verification".to_owned(),
        (.., Some(_)) => "estimate from the smallest hashes",
        _ => "share of equal slots",
    };
    format!("{alone} >= {threshold}, without verification")
}

/// Describes the pairs for which a measure other than the Jaccard index is computed.
fn among(plan: &Plan) -> String {
    if plan.settings().measure == Measure::Jaccard || !plan.finds_by_features() {
        return String::new();
    }
    let least = plan.candidate_threshold().get();
    let floor = plan.of_sequences().is_some() && least <= LEAST_CANDIDATES;
    let why = if floor {
        ", the lowest that is searched for: edits can leave less"
    } else {
        ""
    };
    format!(", for pairs with a Jaccard index >= {least:.4}{why}")
}

fn routes(plan: &Plan) -> Vec<(&'static str, String)> {
    let mut routes = vec![(
        "equal",
        "texts that are equal after normalisation match".to_owned(),
    )];
    if let Some(join) = plan.join() {
        let who = if plan.bands().is_some() {
            format!(
                "documents of up to {} features with those of up to {}",
                join.short, join.reach
            )
        } else {
            "all documents".to_owned()
        };
        routes.push(("join", format!("{who}: every pair is found")));
    }
    if let Some(bands) = plan.bands() {
        routes.push((
            "MinHash",
            format!(
                "{}{} bands x {} rows of {} slots; pairs with fewer than {} equal slots are \
                 skipped",
                if plan.join().is_some() {
                    "longer documents: "
                } else {
                    ""
                },
                bands.bands,
                bands.rows,
                plan.slots(),
                bands.least_equal
            ),
        ));
    }
    if let Some(distance) = plan.distance() {
        let route = match plan.blocks() {
            Some(blocks) => format!(
                "fingerprints that share one of {} blocks of their {} bits, at any distance",
                blocks.count,
                plan.bits()
            ),
            None => format!(
                "fingerprints that differ in at most {} of {} bits",
                distance.get(),
                plan.bits()
            ),
        };
        routes.push(("SimHash", route));
    }
    if let Some(count) = plan.sentences() {
        let route = match count {
            1 => "documents with the same longest sentence".to_owned(),
            count => format!("documents with the same {count} longest sentences"),
        };
        routes.push(("sentences", route));
    }
    if let Some(smallest) = plan.smallest() {
        let route = format!(
            "documents that share one of their {} smallest hashes; of {} stored, pairs that share \
             fewer than {} of the smallest of both are skipped",
            smallest.meeting, smallest.kept, smallest.least_equal
        );
        routes.push(("bottom-k", route));
    }
    routes
}

fn memory(plan: &Plan) -> String {
    let sketch = match (plan.sketch_bytes(), plan.join()) {
        (0, _) => String::new(),
        (bytes, Some(join)) => {
            format!(
                ", {bytes} more per document with more than {} features",
                join.short
            )
        }
        (bytes, None) => format!(", {bytes} more per sketch"),
    };
    format!("{DOCUMENT_BYTES} bytes per document, {ID_BYTES} plus its length per id{sketch}")
}

fn as_json(recipe: &Recipe, plan: &Plan) -> Value {
    let settings = plan.settings();
    let joins_all = plan.bands().is_none();
    let curve = Curve::of(plan);
    json!({
        "recipe": recipe.name,
        "recipe_id": recipe.id().to_string(),
        "threshold": plan.threshold().get(),
        "measure": measure_name(settings.measure),
        "unit": plan.of_sequences().map(|_| match settings.unit {
            Unit::Characters => "characters",
            Unit::Words => "words",
        }),
        "candidate_threshold": plan.candidate_threshold().get(),
        "join": plan.join().map(|join| if joins_all {
            json!({ "short": null, "reach": null })
        } else {
            json!({ "short": join.short, "reach": join.reach })
        }),
        "minhash": plan.bands().map(|bands| json!({
            "bands": bands.bands,
            "rows": bands.rows,
            "slots": plan.slots(),
            "least_equal": bands.least_equal,
        })),
        "simhash": plan.distance().map(|distance| json!({
            "distance": distance.get(),
            "bits": plan.bits(),
            "blocks": plan.blocks().map(|blocks| blocks.count),
        })),
        "sentences": plan.sentences(),
        "bottomk": plan.smallest().map(|smallest| json!({
            "meeting": smallest.meeting,
            "kept": smallest.kept,
            "least_equal": smallest.least_equal,
        })),
        "recall": curve.map(|curve| curve.points().into_iter().map(|(similarity, recall)| json!({
            "similarity": similarity,
            "recall": recall,
        })).collect::<Vec<_>>()),
        "bytes_per_document": DOCUMENT_BYTES,
        "bytes_per_sketch": plan.sketch_bytes(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binomial_sums() {
        assert!((at_most(0, 3, 0.5) - 0.125).abs() < 1e-12);
        assert!((at_most(1, 3, 0.5) - 0.5).abs() < 1e-12);
        assert_eq!(
            (at_most(3, 64, 0.0), at_most(3, 64, 1.0), at_most(3, 3, 1.0)),
            (1.0, 0.0, 1.0)
        );
        assert!((at_most(64, 64, 0.3) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn the_curve_rises_and_keeps_its_promise_at_the_threshold() {
        let plan = Plan::new(&Recipe::default(), lookalike::plan::Settings::default()).unwrap();
        let curve = Curve::of(&plan).unwrap();
        let points = curve.points();
        assert!(points.is_sorted_by(|a, b| a.1 <= b.1), "{points:?}");
        assert!(curve.recall(0.8) >= lookalike::plan::RECALL);
        assert!(curve.recall(0.5) < 0.05);
    }
}
