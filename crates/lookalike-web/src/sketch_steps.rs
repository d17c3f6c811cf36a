//! The steps of SimHash and MinHash, for people who learn how they work.

use lookalike::Recipe;
use lookalike::Threshold;
use lookalike::plan::{BandPlan, MatchMethod, MatchPlan, MatchSettings};
use lookalike_comparison::comparison::FingerprintShape;
use lookalike_comparison::worked_examples::{ShingleSets, WeightedHashes};
use serde::Deserialize;
use serde_json::{Value, json};

/// Two documents whose features have given hashes and weights.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HashedPair {
    a: String,
    b: String,
    distance: Option<u32>,
}

/// Documents as sets of shingles, and permutations of all shingles.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PermutedSets {
    documents: Vec<String>,
    permutations: Vec<String>,
}

/// Bands of MinHash slots: those that the engine plans for a threshold, or given ones.
#[derive(Debug, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub(crate) enum BandCall {
    /// The bands for a threshold.
    Planned { threshold: f64 },
    /// These bands.
    Given { bands: usize, rows: usize },
}

/// Largest number of slots, as a recipe can have them.
const MAX_SLOTS: usize = 65_536;

/// Returns both documents with every step to their fingerprints, as `lookalike compare --hashes --json` prints them.
///
/// # Errors
/// If a document is malformed, or both cannot be compared. The reason names the value.
pub(crate) fn explain_hashes(pair: &HashedPair) -> Result<String, String> {
    let parse = |letter: &str, text: &str| {
        WeightedHashes::parse_document(text).map_err(|reason| format!("{letter}: {reason}"))
    };
    let (a, b) = (parse("A", &pair.a)?, parse("B", &pair.b)?);
    a.check_comparable(&b)?;
    let shape = FingerprintShape::with_distance(a.bits, pair.distance)
        .map_err(|reason| format!("the distance {reason}"))?;
    let sides = [a.to_json(), b.to_json()];
    let verdict = shape.verdict_as_json(a.fingerprint, b.fingerprint, sides);
    Ok(format!("{verdict}\n"))
}

/// Returns the minima of the documents under every permutation, and the similarities of all pairs.
///
/// # Errors
/// If a set or a permutation is malformed. The reason names the value.
pub(crate) fn explain_permutations(sets: &PermutedSets) -> Result<String, String> {
    let sets = ShingleSets::parse_sets(&sets.documents, &sets.permutations)?;
    Ok(format!("{}\n", sets.to_json()))
}

/// Returns bands and rows, and the probabilities that a pair is found at Jaccard indexes 0, 0.01, … 1.
///
/// # Errors
/// If the threshold is not valid or too low for bands, or if there are no bands, no rows or too many slots.
pub(crate) fn draw_bands(call: &BandCall) -> Result<String, String> {
    let plan = match *call {
        BandCall::Planned { threshold } => plan_bands(threshold)?,
        BandCall::Given { bands, rows } => check_bands(bands, rows)?,
    };
    let similarities = (0..=100).map(|at| f64::from(at) / 100.0);
    let curve: Vec<f64> = similarities
        .map(|jaccard| plan.expected_recall(jaccard))
        .collect();
    let answer: Value = json!({ "bands": plan.bands, "rows": plan.rows, "curve": curve });
    Ok(answer.to_string())
}

/// Returns the bands that the engine plans for the default recipe.
fn plan_bands(threshold: f64) -> Result<BandPlan, String> {
    let settings = MatchSettings {
        method: MatchMethod::MinHash,
        threshold: Threshold::new(threshold).map_err(|error| error.to_string())?,
        ..MatchSettings::default()
    };
    let recipe = Recipe::built_in("default").map_err(|error| error.to_string())?;
    let plan = MatchPlan::new(&recipe, settings).map_err(|error| error.to_string())?;
    Ok(plan
        .band_plan()
        .expect("candidates by MinHash share a band"))
}

fn check_bands(bands: usize, rows: usize) -> Result<BandPlan, String> {
    let slots = bands.checked_mul(rows);
    if slots.is_none_or(|slots| slots == 0 || slots > MAX_SLOTS) {
        return Err(format!(
            "{bands} bands of {rows} rows are not 1 to {MAX_SLOTS} slots: give fewer, but at least one of each"
        ));
    }
    Ok(BandPlan {
        bands,
        rows,
        min_equal_slots: 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: Result<String, String>) -> Value {
        serde_json::from_str(&text.unwrap()).unwrap()
    }

    #[test]
    fn hashes_of_the_articles_have_their_fingerprints() {
        let pair = HashedPair {
            a: "CSDN=100101:4 博客=101011:5".to_owned(),
            b: "CSDN=100101:4 博客=101011:3".to_owned(),
            distance: Some(1),
        };
        let explained = parse(explain_hashes(&pair));
        assert_eq!(explained["a"]["bits"], "101011");
        assert_eq!(explained["b"]["bits"], "100101");
        assert_eq!(
            (&explained["distance"], &explained["match"]),
            (&json!(3), &json!(false))
        );
        let wide = HashedPair {
            distance: Some(6),
            ..pair
        };
        let refusal = explain_hashes(&wide).unwrap_err();
        assert!(
            refusal.starts_with("the distance is 6: give less than the 6 bits"),
            "{refusal}"
        );
    }

    #[test]
    fn permutations_of_the_articles_have_their_minima() {
        let sets = PermutedSets {
            documents: ["S1=a d", "S2=c", "S3=b d e", "S4=a c d"]
                .map(str::to_owned)
                .to_vec(),
            permutations: vec!["b e a d c".to_owned()],
        };
        let explained = parse(explain_permutations(&sets));
        assert_eq!(
            explained["permutations"][0]["minima"],
            json!(["a", "c", "b", "a"])
        );
    }

    #[test]
    fn bands_are_planned_or_given() {
        let planned = parse(draw_bands(&BandCall::Planned { threshold: 0.9 }));
        assert_eq!(
            (&planned["bands"], &planned["rows"]),
            (&json!(12), &json!(10))
        );
        let given = parse(draw_bands(&BandCall::Given { bands: 20, rows: 5 }));
        let curve = given["curve"].as_array().unwrap();
        assert_eq!(
            (curve.len(), curve[0].as_f64(), curve[100].as_f64()),
            (101, Some(0.0), Some(1.0))
        );
        let expected = 1.0 - (1.0 - 0.5f64.powi(5)).powi(20);
        assert!((curve[50].as_f64().unwrap() - expected).abs() < 1e-12);
        for (bands, rows) in [(0, 5), (5, 0), (MAX_SLOTS, 2), (usize::MAX, usize::MAX)] {
            assert!(draw_bands(&BandCall::Given { bands, rows }).is_err());
        }
        assert!(draw_bands(&BandCall::Planned { threshold: 1.5 }).is_err());
        assert!(draw_bands(&BandCall::Planned { threshold: 0.01 }).is_err());
    }
}
