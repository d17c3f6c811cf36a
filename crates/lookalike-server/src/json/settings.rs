//! Settings: those of a collection, and recipe and match options of every request.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use lookalike::plan::{CandidateRule, EditUnit, MatchMethod, MatchSettings, SimilarityMeasure};
use lookalike::stream::StreamWindow;
use lookalike::{Recipe, Threshold};
use lookalike_options::match_options::{MatchOptions, OptionSpelling};
use lookalike_options::units::parse_duration;
use lookalike_store::{
    CollectionContent, CollectionSettings, ExpiryClock, OnConflict, SettingsChange, SettingsRecord,
};
use serde::Serialize;
use serde_json::{Map, Value};

use super::{JsonFields, bad_settings};
use crate::api::problem::{ApiProblem, shorten_text};
use crate::error::Error;

/// Look-up of an uploaded recipe by its name.
pub(crate) type NamedRecipes<'a> = &'a dyn Fn(&str) -> Result<Option<Recipe>, ApiProblem>;

impl JsonFields {
    /// Takes the field `recipe`, which is the name of a recipe, `uploaded` or built in, or the TOML of one.
    /// Without it, uses the recipe `usual`.
    ///
    /// # Errors
    /// If it is not a recipe, or TOML that names files.
    pub(crate) fn take_recipe(
        &mut self,
        usual: &str,
        uploaded: NamedRecipes,
    ) -> Result<Recipe, ApiProblem> {
        let named = self.take_field::<String>("recipe")?;
        resolve_recipe(named.as_deref().unwrap_or(usual), uploaded)
    }

    /// Takes the match options.
    ///
    /// # Errors
    /// If a value is invalid, contradicts the method or has no effect.
    pub(crate) fn take_matching(&mut self) -> Result<MatchSettings, ApiProblem> {
        self.take_options()?
            .to_settings(OptionSpelling::Fields)
            .map_err(bad_settings)
    }

    /// Takes the match options of a collection. For a collection of fingerprints the only option is the
    /// distance.
    fn matching_of(&mut self, holds: CollectionContent) -> Result<MatchSettings, ApiProblem> {
        let mut asked = self.take_options()?;
        if holds == CollectionContent::Fingerprints {
            compare_fingerprints_alone(&mut asked)?;
        }
        asked
            .to_settings(OptionSpelling::Fields)
            .map_err(bad_settings)
    }

    fn take_options(&mut self) -> Result<MatchOptions, ApiProblem> {
        let threshold = self
            .take_field("threshold")?
            .map(Threshold::new)
            .transpose();
        Ok(MatchOptions {
            method: self.choose_field("method", &MatchMethod::ALL, MatchMethod::name)?,
            threshold: threshold.map_err(bad_settings)?,
            distance: self.take_field("distance")?,
            candidates: self.choose_field(
                "candidates",
                &CandidateRule::ALL,
                CandidateRule::name,
            )?,
            sentences: self
                .take_field::<NonZeroUsize>("sentences")?
                .map(NonZeroUsize::get),
            measure: self.choose_field(
                "measure",
                &SimilarityMeasure::ALL,
                SimilarityMeasure::name,
            )?,
            unit: self.choose_field("unit", &EditUnit::ALL, EditUnit::name)?,
        })
    }

    fn take_window(&mut self) -> Result<Option<StreamWindow>, ApiProblem> {
        let width = self.take_period("window")?;
        let skew = self.take_period("skew")?;
        let refresh = self.take_field::<bool>("refresh")?;
        let expire = self.take_field::<ExpiryClock>("expire")?;
        let Some(width) = width else {
            return match (skew, refresh, expire) {
                (None, None, None) => Ok(None),
                _ => Err(bad_settings(
                    "`skew`, `refresh` and `expire` need a `window`, which is missing",
                )),
            };
        };
        let skew = skew.unwrap_or_else(|| usual_skew(width));
        let window = StreamWindow::new(width, skew, refresh.unwrap_or(false));
        let by_wall = expire == Some(ExpiryClock::Wall);
        let window = window.map(|window| window.with_wall_clock(by_wall));
        window.map(Some).map_err(bad_settings)
    }

    /// Refuses settings that a collection keeps for ever, and null.
    fn refuse_fixed(&self) -> Result<(), ApiProblem> {
        if let Some(name) = FIXED_SETTINGS.into_iter().find(|name| self.has_field(name)) {
            return Err(bad_settings(format!(
                "the field `{name}` cannot change, because the verdicts so far depend on it: make a new \
                 collection and switch an alias"
            )));
        }
        let null = CHANGEABLE_SETTINGS
            .into_iter()
            .find(|name| self.is_null(name));
        let Some(name) = null else { return Ok(()) };
        Err(bad_settings(match name {
            "window" => {
                "the field `window` is null: a window cannot be removed; make a new collection and switch an \
                 alias"
                    .to_owned()
            }
            _ => format!("the field `{name}` is null: give a value, or leave it out to keep the present one"),
        }))
    }

    fn take_period(&mut self, name: &str) -> Result<Option<Duration>, ApiProblem> {
        let Some(text) = self.take_field::<String>(name)? else {
            return Ok(None);
        };
        let wrong = |what| {
            bad_settings(format!(
                "the field `{name}` is '{}': {what}",
                shorten_text(&text)
            ))
        };
        parse_duration(&text).map(Some).map_err(wrong)
    }
}

/// Settings of a collection that can change.
pub(crate) const CHANGEABLE_SETTINGS: [&str; 5] =
    ["window", "skew", "refresh", "expire", "on_conflict"];

/// Settings of a collection that cannot change.
const FIXED_SETTINGS: [&str; 9] = [
    "recipe",
    "method",
    "threshold",
    "distance",
    "measure",
    "unit",
    "candidates",
    "sentences",
    "holds",
];

/// Default limit of how far times may be ahead of the wall clock.
const LONGEST_USUAL_SKEW: Duration = Duration::from_secs(300);

/// Returns the default skew: half of a short window at most, because otherwise one document from as far ahead
/// would make documents with correct times late.
fn usual_skew(width: Duration) -> Duration {
    LONGEST_USUAL_SKEW.min(width / 2)
}

/// Refuses a skew longer than the window: after one document from as far ahead, every document with a correct
/// time would be late, and no duplicates would be found.
fn check_skew(window: &StreamWindow) -> Result<(), ApiProblem> {
    if window.skew() <= window.width() {
        return Ok(());
    }
    let [skew, width, usual] = [window.skew(), window.width(), usual_skew(window.width())];
    Err(bad_settings(format!(
        "`skew` is {}, which is longer than the `window` of {}: one document from so far ahead \
         would make all documents with correct times late; give at most {1}, or leave it out for \
         {}",
        period_to_json(skew),
        period_to_json(width),
        period_to_json(usual)
    )))
}

/// Sets the method and measure of a collection of fingerprints, which follow from its content.
fn compare_fingerprints_alone(asked: &mut MatchOptions) -> Result<(), ApiProblem> {
    let method = *asked.method.get_or_insert(MatchMethod::SimHash);
    let measure = *asked.measure.get_or_insert(SimilarityMeasure::Sketch);
    let (name, must, is) = if method != MatchMethod::SimHash {
        ("method", "simhash", method.name())
    } else if measure != SimilarityMeasure::Sketch {
        ("measure", "none", measure.name())
    } else {
        return Ok(());
    };
    Err(bad_settings(format!(
        "`holds` is 'fingerprints', so nothing else can be compared: `{name}` must be '{must}' and \
         is '{is}'; leave it out"
    )))
}

/// Returns a recipe by name, or from its TOML. TOML that names files is refused before any file is read.
fn resolve_recipe(text: &str, uploaded: NamedRecipes) -> Result<Recipe, ApiProblem> {
    if !text.contains(['=', '\n']) {
        // An uploaded recipe stays what it is if a later version has a built-in one of its name.
        if let Some(recipe) = uploaded(text)? {
            return Ok(recipe);
        }
        return Recipe::built_in(text).map_err(|_| {
            bad_settings(format!(
                "there is no recipe named '{}': give one of {}, the name of an uploaded recipe (GET \
                 /v1/recipes lists them), or the TOML of a recipe itself",
                shorten_text(text),
                Recipe::NAMES.join(", ")
            ))
        });
    }
    let asked = RefCell::new(None);
    let refuse = |what: &str, file: &str| {
        asked.replace(Some(format!(
            "the recipe names the file '{}' ({what}): upload it with its files (PUT \
             /v1/recipes/NAME) and give its name",
            shorten_text(file)
        )));
        // The returned path is never opened.
        PathBuf::new()
    };
    let read = Recipe::read_recipe(text, &refuse);
    match asked.into_inner() {
        Some(refusal) => Err(bad_settings(refusal)),
        None => read.map_err(bad_settings),
    }
}

/// Parses the settings of a collection to be created.
///
/// # Errors
/// If a field is unknown, has an invalid value, or contradicts another.
pub(crate) fn read_settings(
    bytes: &[u8],
    uploaded: NamedRecipes,
) -> Result<CollectionSettings, ApiProblem> {
    let settings = settings_of_one(JsonFields::read_fields(bytes)?, uploaded)?;
    settings.window.as_ref().map_or(Ok(()), check_skew)?;
    Ok(settings)
}

/// Parses a change of settings.
///
/// # Errors
/// If a field is unknown, null, has an invalid value, or is a setting that cannot change, or there is none.
pub(crate) fn read_change(bytes: &[u8]) -> Result<SettingsChange, ApiProblem> {
    let mut fields = JsonFields::read_fields(bytes)?;
    fields.refuse_fixed()?;
    let change = SettingsChange {
        width: fields.take_period("window")?,
        skew: fields.take_period("skew")?,
        refresh: fields.take_field("refresh")?,
        expire: fields.take_field("expire")?,
        on_conflict: fields.take_field("on_conflict")?,
    };
    fields.refuse_rest()?;
    if change == SettingsChange::default() {
        let given = CHANGEABLE_SETTINGS
            .map(|name| format!("`{name}`"))
            .join(", ");
        let what = format!("the change is empty: give at least one of {given}");
        return Err(bad_settings(what));
    }
    Ok(change)
}

/// Look-up of a recipe by its name, where no service has uploaded recipes.
pub type FindRecipe<'a> = &'a dyn Fn(&str) -> lookalike_store::Result<Option<Recipe>>;

/// Parses the settings of a stored collection, as [`write_settings`] writes them, or as the fields `settings` and
/// `created` of the answer of `GET /v1/collections/NAME`. `find_recipe` finds a recipe that is not built in.
///
/// # Errors
/// If the JSON is not valid settings, or there is no recipe of this name.
pub fn read_stored_settings(
    json: &[u8],
    find_recipe: FindRecipe<'_>,
) -> Result<SettingsRecord, Error> {
    let read = || {
        let mut fields = JsonFields::read_fields(json)?;
        let files = fields.take_field::<BTreeMap<String, String>>(RECIPE_FILES)?;
        let files = files.as_ref();
        let created = fields.take_object(CREATED_FIELD)?;
        if let Some(settings) = fields.take_object("settings")? {
            for name in ["name", "recipe_id"] {
                fields.take_field::<String>(name)?;
            }
            fields.refuse_rest()?;
            fields = settings;
        }
        let created = created.map(|created| read_one_stored(created, files, find_recipe));
        Ok(SettingsRecord {
            created: created.transpose()?,
            settings: read_one_stored(fields, files, find_recipe)?,
        })
    };
    read().map_err(|problem: ApiProblem| Error::new(problem.detail))
}

/// Parses settings whose recipe is TOML and names `files`, is built in, or is found.
fn read_one_stored(
    mut fields: JsonFields,
    files: Option<&BTreeMap<String, String>>,
    find_recipe: FindRecipe<'_>,
) -> Result<CollectionSettings, ApiProblem> {
    let Some(files) = files else {
        return settings_of_one(fields, &|name| find_stored_recipe(name, find_recipe));
    };
    let toml: String = fields.need_field("recipe")?;
    let find = |name: &str| files.get(name).map(|content| content.as_bytes().into());
    let recipe = Recipe::read_with_files(&toml, &find).map_err(bad_settings)?;
    settings_with(fields, recipe)
}

fn find_stored_recipe(
    name: &str,
    find_recipe: FindRecipe<'_>,
) -> Result<Option<Recipe>, ApiProblem> {
    let is_built_in = Recipe::built_in(name).is_ok();
    match find_recipe(name) {
        Ok(None) | Err(_) if is_built_in => Ok(None),
        Ok(Some(recipe)) => Ok(Some(recipe)),
        Ok(None) => Err(bad_settings(format!(
            "there is no recipe named '{}': give one of {}, the TOML of a recipe itself, or the file that \
             `lookalike store export --settings` has written, which has the files of the recipe",
            shorten_text(name),
            Recipe::NAMES.join(", ")
        ))),
        Err(error) => Err(bad_settings(format!(
            "the recipe '{}' cannot be read: {error}",
            shorten_text(name)
        ))),
    }
}

/// Name of the field with the settings at the creation, if they have been changed.
const CREATED_FIELD: &str = "created";

/// Name of the field with the contents of the files of a recipe, in settings that are written to a file.
const RECIPE_FILES: &str = "recipe_files";

/// Settings with everything that they need.
#[derive(Serialize)]
struct WholeSettingsJson<'a> {
    #[serde(flatten)]
    settings: SettingsJson,
    /// Contents of the files that the recipe names, by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    recipe_files: Option<BTreeMap<&'a str, Cow<'a, str>>>,
    /// Settings at the creation, if they have been changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    created: Option<SettingsJson>,
}

/// Returns the settings of a collection as the JSON of an answer, with the TOML and the files of a recipe that
/// names files, and with the settings at the creation if they have been changed.
///
/// # Errors
/// If serialisation fails, which is not known to happen.
pub fn write_settings(
    settings: &CollectionSettings,
    created: Option<&CollectionSettings>,
) -> serde_json::Result<Vec<u8>> {
    let mut whole = WholeSettingsJson {
        settings: SettingsJson::from(settings),
        recipe_files: None,
        created: created.map(SettingsJson::from),
    };
    let recipe = &settings.recipe;
    if !recipe.files.is_empty() {
        let both = std::iter::once(&mut whole.settings).chain(&mut whole.created);
        both.for_each(|settings| settings.recipe = recipe.to_toml());
        // A recipe is read only if its files are UTF-8, so nothing is replaced.
        let contents = recipe.files.iter_contents();
        let texts = contents.map(|(name, content)| (name, String::from_utf8_lossy(content)));
        whole.recipe_files = Some(texts.collect());
    }
    serde_json::to_vec_pretty(&whole)
}

/// Parses the settings of a collection that may exist already. Any skew is accepted, because earlier versions
/// did not limit it.
///
/// # Errors
/// If a field is unknown, has an invalid value, or contradicts another.
pub(crate) fn settings_of_one(
    mut fields: JsonFields,
    uploaded: NamedRecipes,
) -> Result<CollectionSettings, ApiProblem> {
    let recipe = fields.take_recipe("default", uploaded)?;
    settings_with(fields, recipe)
}

/// Parses all settings but the recipe.
fn settings_with(mut fields: JsonFields, recipe: Recipe) -> Result<CollectionSettings, ApiProblem> {
    let holds = fields.take_field("holds")?.unwrap_or_default();
    let settings = CollectionSettings {
        recipe,
        matching: fields.matching_of(holds)?,
        window: fields.take_window()?,
        holds,
        on_conflict: fields.take_field("on_conflict")?.unwrap_or_default(),
    };
    fields.refuse_rest()?;
    settings.match_plan().map_err(bad_settings)?;
    Ok(settings)
}

/// Settings as they are returned. Parsing them gives the same settings, as long as an uploaded recipe is there.
#[derive(Serialize)]
pub(crate) struct SettingsJson {
    recipe: String,
    method: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    threshold: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    distance: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    candidates: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sentences: Option<usize>,
    measure: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<&'static str>,
    window: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    skew: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refresh: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expire: Option<ExpiryClock>,
    holds: CollectionContent,
    on_conflict: OnConflict,
}

impl From<&CollectionSettings> for SettingsJson {
    fn from(settings: &CollectionSettings) -> Self {
        let asked = MatchOptions::from_settings(&settings.matching);
        let window = settings.window.as_ref();
        Self {
            recipe: recipe_to_json(&settings.recipe),
            method: asked.method.map(MatchMethod::name),
            threshold: asked.threshold.map(Threshold::get),
            distance: asked.distance,
            candidates: asked.candidates.map(CandidateRule::name),
            sentences: asked.sentences,
            measure: asked.measure.map(SimilarityMeasure::name),
            unit: asked.unit.map(EditUnit::name),
            window: window.map(|window| period_to_json(window.width())),
            skew: window.map(|window| period_to_json(window.skew())),
            refresh: window.map(StreamWindow::is_refreshing),
            expire: window.map(ExpiryClock::from_window),
            holds: settings.holds,
            on_conflict: settings.on_conflict,
        }
    }
}

/// Returns a message that lists the settings in which a request differs from an existing collection.
pub(crate) fn difference(known: &CollectionSettings, asked: &CollectionSettings) -> String {
    let fields = |settings: &CollectionSettings| {
        let mut fields = match serde_json::to_value(SettingsJson::from(settings)) {
            Ok(Value::Object(fields)) => fields,
            _ => Map::new(),
        };
        if known.recipe.name == asked.recipe.name {
            let recipe_id = settings.recipe.recipe_id().to_string();
            fields.insert("recipe_id".to_owned(), recipe_id.into());
        }
        fields
    };
    let (known, asked) = (fields(known), fields(asked));
    let mut names: Vec<_> = known.keys().chain(asked.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let value = |fields: &Map<String, Value>, name: &str| {
        let value = fields.get(name).unwrap_or(&Value::Null);
        shorten_text(&value.to_string())
    };
    let differ = names
        .iter()
        .filter(|name| known.get(**name) != asked.get(**name));
    let told = differ.map(|difference| {
        let (known, asked) = (value(&known, difference), value(&asked, difference));
        format!("its `{difference}` is {known}, not {asked}")
    });
    told.collect::<Vec<_>>().join("; ")
}

/// Returns the name of a recipe that is built in or names files, or the TOML of another one.
fn recipe_to_json(recipe: &Recipe) -> String {
    if !recipe.files.is_empty() {
        return recipe.name.clone();
    }
    match Recipe::built_in(&recipe.name) {
        Ok(known) if known == *recipe => recipe.name.clone(),
        _ => recipe.to_toml(),
    }
}

/// Returns a duration in the largest unit of which it is a whole multiple, or in seconds.
fn period_to_json(period: Duration) -> String {
    const PERIOD_UNITS: [(u64, char); 5] = [
        (604_800, 'w'),
        (86_400, 'd'),
        (3600, 'h'),
        (60, 'm'),
        (1, 's'),
    ];
    let seconds = period.as_secs();
    let whole = PERIOD_UNITS
        .iter()
        .find(|(unit, _)| seconds > 0 && seconds.is_multiple_of(*unit));
    match whole {
        Some((unit, sign)) if period.subsec_nanos() == 0 => format!("{}{sign}", seconds / unit),
        _ => format!("{}s", period.as_secs_f64()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads settings where no recipe has been uploaded.
    fn read_settings(bytes: &[u8]) -> Result<CollectionSettings, ApiProblem> {
        super::read_settings(bytes, &|_| Ok(None))
    }

    /// Reads stored settings where no recipe is found.
    fn read_stored_settings(json: &[u8]) -> Result<SettingsRecord, Error> {
        super::read_stored_settings(json, &|_| Ok(None))
    }

    fn refused(json: &str) -> String {
        read_settings(json.as_bytes()).unwrap_err().detail
    }

    #[test]
    fn settings_json_round_trips() {
        let toml = Recipe::built_in("words-3")
            .unwrap()
            .to_toml()
            .replace("words-3", "mine");
        let cases = [
            "{}".to_owned(),
            r#"{"recipe":"words-3","threshold":0.9,"window":"2d","skew":"90s","refresh":true}"#
                .into(),
            r#"{"method":"simhash","distance":5,"measure":"none","holds":"fingerprints"}"#.into(),
            r#"{"method":"simhash","candidates":"blocks","measure":"lcs","unit":"words"}"#.into(),
            r#"{"method":"exact","on_conflict":"replace","window":"1.5s"}"#.into(),
            r#"{"window":"2d","expire":"wall"}"#.into(),
            r#"{"method":"sentences","sentences":2,"measure":"none"}"#.into(),
            serde_json::json!({ "recipe": toml }).to_string(),
        ];
        for case in cases {
            let made = read_settings(case.as_bytes())
                .unwrap_or_else(|problem| panic!("{case}: {}", problem.detail));
            let told = serde_json::to_vec(&SettingsJson::from(&made)).unwrap();
            assert_eq!(read_settings(&told).unwrap(), made, "{case}");
        }
    }

    #[test]
    fn invalid_fields_are_refused_by_name() {
        for (json, said) in [
            (r#"{"treshold":0.8}"#, "the field `treshold` is unknown"),
            (
                r#"{"threshold":"high"}"#,
                "the field `threshold`: invalid type",
            ),
            (r#"{"threshold":1.5}"#, "1.5"),
            (
                r#"{"method":"magic"}"#,
                "the field `method` is 'magic', which is not one of auto,",
            ),
            (r#"{"distance":3}"#, "\"distance\": 3 is for fingerprints"),
            (r#"{"skew":"1s"}"#, "need a `window`, which is missing"),
            (
                r#"{"window":"2 days"}"#,
                "the field `window` is '2 days': give a number with a unit",
            ),
            (
                r#"{"window":"1e30s"}"#,
                "the field `window` is '1e30s': the duration is too long: give 30s",
            ),
            (r#"{"window":"0s"}"#, "below a microsecond"),
            (
                r#"{"holds":"fingerprints","method":"minhash"}"#,
                "`method` must be 'simhash' and is 'minhash'",
            ),
            (
                r#"{"holds":"fingerprints","measure":"jaccard"}"#,
                "`measure` must be 'none' and is 'jaccard'",
            ),
            (
                r#"{"recipe":"nonsense"}"#,
                "no recipe named 'nonsense': give one of default-1, default, ",
            ),
            (r#"{"recipe":"nonsense"}"#, "or the TOML of a recipe itself"),
            (r#"[]"#, "not an object"),
            (
                r#"{"threshold":0.8,"threshold":0.9}"#,
                "duplicate field `threshold`",
            ),
            (r#"{"threshold":1e-9}"#, "threshold"),
        ] {
            let detail = refused(json);
            assert!(detail.contains(said), "{json}: {detail}");
        }
    }

    #[test]
    fn bare_fingerprints_refuse_other_measures() {
        let made = |json: &str| {
            read_settings(json.as_bytes()).unwrap_or_else(|problem| panic!("{}", problem.detail))
        };
        let whole =
            made(r#"{"holds":"fingerprints","method":"simhash","measure":"none","distance":3}"#);
        for json in [
            r#"{"holds":"fingerprints"}"#,
            r#"{"holds":"fingerprints","distance":3}"#,
            r#"{"holds":"fingerprints","distance":3,"method":"simhash"}"#,
            r#"{"holds":"fingerprints","distance":3,"measure":"none"}"#,
        ] {
            assert_eq!(made(json), whole, "{json}");
        }
    }

    #[test]
    fn skew_is_at_most_the_window() {
        let skew = |json: &str| {
            let made = read_settings(json.as_bytes())
                .unwrap_or_else(|problem| panic!("{}", problem.detail));
            period_to_json(made.window.unwrap().skew())
        };
        for (window, usual) in [
            ("2d", "5m"),
            ("10m", "5m"),
            ("598s", "299s"),
            ("1s", "0.5s"),
        ] {
            assert_eq!(
                skew(&format!(r#"{{"window":"{window}"}}"#)),
                usual,
                "{window}"
            );
        }
        for (asked, told) in [("59s", "59s"), ("60s", "1m")] {
            let json = format!(r#"{{"window":"1m","skew":"{asked}"}}"#);
            assert_eq!(skew(&json), told);
        }
        let json = r#"{"window":"1m","skew":"61s"}"#;
        let detail = refused(json);
        let said = "`skew` is 61s, which is longer than the `window` of 1m";
        assert!(detail.contains(said), "{detail}");
        assert!(
            detail.contains("at most 1m, or leave it out for 30s"),
            "{detail}"
        );
        // An existing collection with such a skew can still be read.
        let one = read_stored_settings(json.as_bytes()).unwrap();
        assert_eq!(one.settings.window.unwrap().skew(), Duration::from_secs(61));
    }

    #[test]
    fn files_named_by_a_recipe_are_not_read() {
        let jieba = Recipe::built_in("jieba").unwrap().to_toml();
        let toml = jieba.replace("[segment]", "[segment]\nuser = \"/etc/passwd\"");
        assert_ne!(toml, jieba);
        let detail = refused(&serde_json::json!({ "recipe": toml }).to_string());
        assert!(detail.contains("names the file '/etc/passwd'"), "{detail}");
    }

    /// Settings that are written to a file contain the files of the recipe, and answers only its name.
    #[test]
    fn stored_settings_have_the_files_of_the_recipe() {
        let toml = Recipe::built_in("words-1").unwrap().to_toml();
        let toml = format!("{toml}\n[filter]\nstopwords = \"mine.txt\"\n");
        let content: std::sync::Arc<[u8]> = "\u{feff}the\nof\n".as_bytes().into();
        let mut recipe = Recipe::read_with_files(&toml, &|_| Some(content.clone())).unwrap();
        recipe.name = "mine".to_owned();
        let settings = CollectionSettings {
            recipe,
            ..CollectionSettings::default()
        };
        assert_eq!(SettingsJson::from(&settings).recipe, "mine");
        let written = write_settings(&settings, None).unwrap();
        let record = SettingsRecord::from(settings.clone());
        assert_eq!(read_stored_settings(&written).unwrap(), record);
        let replacing = CollectionSettings {
            on_conflict: OnConflict::Replace,
            ..settings.clone()
        };
        let changed = write_settings(&replacing, Some(&settings)).unwrap();
        let record = SettingsRecord {
            settings: replacing,
            created: Some(settings.clone()),
        };
        assert_eq!(read_stored_settings(&changed).unwrap(), record);
        let written = String::from_utf8(written).unwrap();
        for (wrong, said) in [
            (
                written.replace("recipe_files", "recipe_file"),
                "names the file 'mine.txt'",
            ),
            (
                written.replace("of\\n", "off\\n"),
                "it is not the file of the recipe",
            ),
        ] {
            assert_ne!(wrong, written);
            let error = read_stored_settings(wrong.as_bytes()).unwrap_err();
            assert!(error.to_string().contains(said), "{error}");
        }
        // Over HTTP only uploaded recipes have files.
        assert!(refused(&written).contains("names the file 'mine.txt'"));
        let uploaded = |name: &str| Ok((name == "mine").then(|| settings.recipe.clone()));
        let by_name = super::read_settings(br#"{"recipe":"mine"}"#, &uploaded).unwrap();
        assert_eq!(by_name, settings);
    }

    /// Stored settings are those of an answer of the service too, with those of the creation, and name a recipe that
    /// is found.
    #[test]
    fn stored_settings_are_those_of_an_answer() {
        let mine = Recipe {
            name: "mine".to_owned(),
            ..Recipe::built_in("words-1").unwrap()
        };
        let found = mine.clone();
        let find = |name: &str| Ok((name == "mine").then(|| found.clone()));
        let answer = r#"{"name":"news","recipe_id":"12","settings":{"recipe":"mine","window":"4d"},
            "created":{"recipe":"mine","window":"2d"}}"#;
        let record = super::read_stored_settings(answer.as_bytes(), &find).unwrap();
        let days =
            |settings: &CollectionSettings| settings.window.unwrap().width().as_secs() / 86_400;
        let created = record.created.unwrap();
        assert_eq!((days(&record.settings), days(&created)), (4, 2));
        assert!(record.settings.recipe == mine && created.recipe == mine);
        let whole = r#"{"name":"news","recipe_id":"12","settings":{"recipe":"words-3"}}"#;
        let record = read_stored_settings(whole.as_bytes()).unwrap();
        assert_eq!(
            (&*record.settings.recipe.name, record.created),
            ("words-3", None)
        );
        for (json, said) in [
            (answer, "there is no recipe named 'mine'"),
            (
                r#"{"settings":{},"threshold":0.8}"#,
                "the field `threshold` is unknown",
            ),
            (
                r#"{"settings":{},"created":{"treshold":1}}"#,
                "the field `treshold` is unknown",
            ),
            (r#"{"created":7}"#, "the field `created`"),
        ] {
            let error = read_stored_settings(json.as_bytes())
                .unwrap_err()
                .to_string();
            assert!(error.contains(said) && !error.contains("upload"), "{error}");
        }
        let damaged = |_: &str| {
            let why = std::io::Error::other("bad disk");
            Err(lookalike_store::Error::from(lookalike::Error::text_error(
                why,
            )))
        };
        let refused = super::read_stored_settings(answer.as_bytes(), &damaged).unwrap_err();
        assert!(
            refused.to_string().contains("'mine' cannot be read"),
            "{refused}"
        );
        let built_in = super::read_stored_settings(whole.as_bytes(), &damaged).unwrap();
        assert_eq!(built_in.settings.recipe.name, "words-3");
    }

    #[test]
    fn durations_are_written_with_their_unit() {
        for (seconds, told) in [
            (0.0, "0s"),
            (1.5, "1.5s"),
            (90.0, "90s"),
            (300.0, "5m"),
            (172_800.0, "2d"),
            (604_800.0, "1w"),
        ] {
            assert_eq!(period_to_json(Duration::from_secs_f64(seconds)), told);
        }
    }
}
