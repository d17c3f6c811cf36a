//! Two texts side by side: their comparison with every step, and the passages that they share.

use lookalike::compare::Comparison;
use lookalike::passages::PassageSettings;
use lookalike::plan::{EditUnit, MatchMethod, MatchSettings, SimilarityMeasure};
use lookalike::{Recipe, Threshold};
use lookalike_comparison::comparison::{ComparedSide, ComparisonCase, GIVEN_TEXT};
use lookalike_comparison::shared_passages::SharedPassages;
use lookalike_options::match_options::{MatchOptions, OptionSpelling, choose_by_name};
use serde::Deserialize;

/// Largest total size, in bytes, of the texts of a comparison, as in the service. Some similarities take time in proportion to the product of
/// both lengths, and the answer is about a hundred times as long as the texts.
pub(crate) const MAX_COMPARED_BYTES: usize = 64 << 10;

/// Largest total size, in bytes, of the texts whose passages are found. They take some 32 times as much memory, and a
/// module has at most 4 GiB.
pub(crate) const MAX_SHARED_BYTES: usize = 16 << 20;

/// Number of features that the command shows, unless it is told otherwise.
const SHOWN_FEATURES: usize = 8;

/// Two texts, and how they are compared. The names are those of requests to the service.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TextPair {
    a: String,
    b: String,
    recipe: Option<String>,
    method: Option<String>,
    measure: Option<String>,
    unit: Option<String>,
    threshold: Option<f64>,
    distance: Option<u32>,
    #[serde(default)]
    reworded: bool,
}

impl TextPair {
    /// Returns the recipe. If it needs jieba's dictionary, the attachment has it.
    fn load_recipe(&self, attachment: &[u8]) -> Result<Recipe, String> {
        let name = self.recipe.as_deref().unwrap_or("default");
        let recipe = Recipe::built_in(name).map_err(|error| error.to_string())?;
        if recipe.segmentation_mode().is_some() {
            provide_dictionary(attachment)?;
        }
        Ok(recipe)
    }

    fn match_settings(&self) -> Result<MatchSettings, String> {
        let threshold = self.threshold.map(Threshold::new).transpose();
        let options = MatchOptions {
            method: choose(
                self.method.as_deref(),
                "method",
                &MatchMethod::ALL,
                MatchMethod::name,
            )?,
            measure: choose(
                self.measure.as_deref(),
                "measure",
                &SimilarityMeasure::ALL,
                SimilarityMeasure::name,
            )?,
            unit: choose(self.unit.as_deref(), "unit", &EditUnit::ALL, EditUnit::name)?,
            threshold: threshold.map_err(|error| error.to_string())?,
            distance: self.distance,
            ..MatchOptions::default()
        };
        let settings = options.to_settings(OptionSpelling::Fields);
        settings.map_err(|error| error.to_string())
    }

    fn passage_settings(&self) -> PassageSettings {
        PassageSettings::default().with_reworded(self.reworded)
    }

    /// Refuses texts that are too long together.
    fn check_size(&self, most: usize) -> Result<(), String> {
        let bytes = self.a.len() + self.b.len();
        if bytes > most {
            return Err(format!(
                "the texts have {bytes} bytes together, more than the {most} of a page: use the command \
                 `lookalike compare`"
            ));
        }
        Ok(())
    }
}

/// Returns the choice with this name, if one is named.
fn choose<T: Copy>(
    named: Option<&str>,
    field: &str,
    choices: &[T],
    name_of: fn(T) -> &'static str,
) -> Result<Option<T>, String> {
    let chosen = named.map(|name| {
        choose_by_name(&format!("\"{field}\""), name, choices, name_of)
            .map_err(|error| error.to_string())
    });
    chosen.transpose()
}

/// Gives the engine the dictionary of jieba.
///
/// # Errors
/// If the bytes are not those of this dictionary.
#[cfg(target_family = "wasm")]
pub(crate) fn provide_dictionary(bytes: &[u8]) -> Result<(), String> {
    lookalike::text::provide_dictionary(bytes).map_err(|error| error.to_string())
}

/// Does nothing, because programs contain the dictionary.
#[cfg(not(target_family = "wasm"))]
pub(crate) fn provide_dictionary(_bytes: &[u8]) -> Result<(), String> {
    Ok(())
}

/// Compares two texts of at most [`MAX_COMPARED_BYTES`]. The answer is what `lookalike compare --literal --json` prints, byte
/// for byte.
///
/// # Errors
/// If a name or a value is not valid, options contradict each other, or the texts are too long.
pub(crate) fn compare_texts(pair: TextPair, attachment: &[u8]) -> Result<String, String> {
    pair.check_size(MAX_COMPARED_BYTES)?;
    let recipe = pair.load_recipe(attachment)?;
    let settings = pair.match_settings()?;
    let passages = pair.passage_settings();
    let compared = Comparison::new(&recipe, settings, &pair.a, &pair.b);
    let shared = SharedPassages::find_all(&recipe, [&pair.a, &pair.b], passages);
    let [a, b] = [pair.a, pair.b].map(|text| ComparedSide {
        place: GIVEN_TEXT.to_owned(),
        text,
    });
    let case = ComparisonCase {
        recipe: &recipe,
        a,
        b,
        compared: compared.map_err(|error| error.to_string())?,
        shared: shared.map_err(|error| error.to_string())?,
        top: SHOWN_FEATURES,
        distance: settings.distance,
    };
    Ok(format!("{}\n", case.to_json()))
}

/// Finds the passages that two texts of at most [`MAX_SHARED_BYTES`] share, as the field `shared` of a comparison.
///
/// # Errors
/// If the recipe is not known, or the texts are too long.
pub(crate) fn find_shared(pair: &TextPair, attachment: &[u8]) -> Result<String, String> {
    pair.check_size(MAX_SHARED_BYTES)?;
    let recipe = pair.load_recipe(attachment)?;
    let texts = [&*pair.a, &*pair.b];
    let shared = SharedPassages::find_all(&recipe, texts, pair.passage_settings());
    shared
        .map(|shared| shared.to_json().to_string())
        .map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pair(fields: &Value) -> TextPair {
        serde_json::from_value(fields.clone()).unwrap()
    }

    fn compare(fields: &Value) -> Result<Value, String> {
        compare_texts(pair(fields), b"").map(|text| serde_json::from_str(&text).unwrap())
    }

    #[test]
    fn comparison_has_verdict_steps_and_passages() {
        let text =
            "The ferry leaves at seven, and nobody on the island misses it on any day of the year.";
        let longer = format!("We asked around. {text} So we left.");
        let compared = compare(&json!({ "a": text, "b": longer, "threshold": 0.5 })).unwrap();
        assert_eq!(compared["match"], true);
        assert_eq!(compared["a"]["place"], GIVEN_TEXT);
        assert_eq!(compared["shared"]["passages"].as_array().unwrap().len(), 1);
        let shared = find_shared(&pair(&json!({ "a": text, "b": longer })), b"").unwrap();
        let shared: Value = serde_json::from_str(&shared).unwrap();
        assert_eq!(shared, compared["shared"]);
    }

    #[test]
    fn settings_are_those_of_requests() {
        let texts = ["the cat sat on the mat", "the cat sat on a mat"];
        let [a, b] = texts;
        let similarity = |measure| {
            let fields = json!({ "a": a, "b": b, "measure": measure, "threshold": 0.25 });
            compare(&fields).unwrap()["similarity"].as_f64().unwrap()
        };
        // Three pairs of words are in both, of five in each.
        assert!((similarity("jaccard") - 3.0 / 7.0).abs() < 1e-12);
        assert!((similarity("containment") - 3.0 / 5.0).abs() < 1e-12);
        let refusal = compare(&json!({ "a": a, "b": b, "measure": "luck" })).unwrap_err();
        assert!(
            refusal.starts_with("\"measure\" is 'luck', which is not one of jaccard"),
            "{refusal}"
        );
        let refusal = compare(&json!({ "a": a, "b": b, "distance": 5 })).unwrap_err();
        assert!(
            refusal.starts_with("\"distance\": 5 is for fingerprints"),
            "{refusal}"
        );
        assert!(compare(&json!({ "a": a, "b": b, "recipe": "none" })).is_err());
        assert!(compare(&json!({ "a": a, "b": b, "threshold": 1.5 })).is_err());
    }

    #[test]
    fn texts_beyond_the_limit_are_refused() {
        let fields = |bytes: usize| json!({ "a": "x".repeat(bytes), "b": "" });
        assert!(pair(&fields(10)).check_size(10).is_ok());
        let refusal = pair(&fields(11)).check_size(10).unwrap_err();
        assert!(
            refusal.starts_with("the texts have 11 bytes together, more than the 10"),
            "{refusal}"
        );
        assert!(compare(&fields(MAX_COMPARED_BYTES + 1)).is_err());
    }
}
