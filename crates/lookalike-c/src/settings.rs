//! Settings from JSON, with the names and values of `lookalike.Stream` in Python.

use std::ffi::c_char;
use std::ptr;
use std::time::Duration;

use lookalike::plan::{MatchPlan, MatchSettings};
use lookalike::sketch::{MinHasher, SimHasher};
use lookalike::stream::StreamReach;
use lookalike::text::TextAnalyzer;
use lookalike::{Cpu, Recipe};
use lookalike_batch::recipes::{load_recipe_from_here, read_recipe};
use lookalike_options::match_options::{NamedMatchOptions, OptionSpelling};
use lookalike_options::stream_options::StreamOptions;
use lookalike_options::units::parse_duration;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::call::{CallError, CallResult, CallStatus, run_call};
use crate::pointers::{free_boxed, text, write_answer};

/// Settings that are checked, with what every call under them shares.
pub(crate) struct CallSettings {
    pub(crate) recipe: Recipe,
    pub(crate) matching: MatchSettings,
    pub(crate) reach: StreamReach,
    pub(crate) analyzer: TextAnalyzer,
    pub(crate) sim_hasher: SimHasher,
    pub(crate) min_hasher: MinHasher,
    /// The settings as a saved stream has them.
    pub(crate) saved: Map<String, Value>,
}

/// Settings as a caller gives them.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct GivenSettings {
    /// Name, file or TOML of the recipe.
    recipe: Option<String>,
    /// Changes of the recipe, such as `ngram=3`.
    #[serde(skip_serializing)]
    changes: Vec<String>,
    method: Option<String>,
    threshold: Option<f64>,
    distance: Option<u32>,
    candidates: Option<String>,
    sentences: Option<usize>,
    verify: Option<String>,
    unit: Option<String>,
    window: Option<TimeSpan>,
    window_documents: Option<u64>,
    skew: Option<TimeSpan>,
    refresh: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "give window and skew as 2d, 36h or 15m, or as seconds"
)]
enum TimeSpan {
    Seconds(f64),
    Text(String),
}

impl TimeSpan {
    fn to_duration(&self, name: &str) -> CallResult<Duration> {
        let (shown, duration) = match self {
            Self::Seconds(seconds) => (
                seconds.to_string(),
                Duration::try_from_secs_f64(*seconds).map_err(|error| error.to_string()),
            ),
            Self::Text(text) => (format!("'{text}'"), parse_duration(text)),
        };
        duration.map_err(|reason| CallError::setting(format!("{name} is {shown}: {reason}")))
    }
}

impl CallSettings {
    /// Parses settings.
    pub(crate) fn parse(json: &str) -> CallResult<Self> {
        // A list of values in order would be read, too.
        if !json.trim_start().starts_with('{') {
            let message = "the settings are not a JSON object: give {}, or fields such as {\"threshold\": 0.8}";
            return Err(CallError::setting(message));
        }
        let given: GivenSettings = serde_json::from_str(json)
            .map_err(|error| CallError::setting(format!("the settings: {error}")))?;
        Self::new(given)
    }

    /// Returns the settings of a saved stream.
    pub(crate) fn from_saved(saved: Map<String, Value>) -> CallResult<Self> {
        let given = serde_json::from_value(Value::Object(saved));
        let given = given.map_err(|error| CallError::setting(format!("the settings: {error}")))?;
        Self::new(given)
    }

    fn new(given: GivenSettings) -> CallResult<Self> {
        let named = given.recipe.as_deref().unwrap_or("default");
        let is_toml = named.contains('\n');
        let read = if is_toml {
            read_recipe
        } else {
            load_recipe_from_here
        };
        let recipe = read(named, &given.changes, OptionSpelling::Arguments)?;
        let matching = given.match_options().to_options()?;
        let matching = matching.to_settings(OptionSpelling::Arguments)?;
        MatchPlan::new(&recipe, matching)?;
        let cpu = Cpu::detect_best();
        Ok(Self {
            matching,
            reach: given.stream_options()?.to_reach()?,
            analyzer: TextAnalyzer::new(&recipe),
            sim_hasher: SimHasher::new(&recipe.simhash, cpu),
            min_hasher: MinHasher::new(&recipe.minhash, cpu),
            saved: given.to_saved(&recipe)?,
            recipe,
        })
    }
}

impl GivenSettings {
    fn match_options(&self) -> NamedMatchOptions {
        NamedMatchOptions {
            method: self.method.clone(),
            threshold: self.threshold,
            distance: self.distance,
            candidates: self.candidates.clone(),
            sentences: self.sentences,
            verify: self.verify.clone(),
            unit: self.unit.clone(),
        }
    }

    fn stream_options(&self) -> CallResult<StreamOptions> {
        let duration = |name, span: &Option<TimeSpan>| {
            span.as_ref().map(|span| span.to_duration(name)).transpose()
        };
        Ok(StreamOptions {
            window: duration("window", &self.window)?,
            window_documents: self.window_documents,
            skew: duration("skew", &self.skew)?.unwrap_or_default(),
            refresh: self.refresh,
        })
    }

    /// Returns the settings as Python saves them: the recipe as TOML, the skew in seconds.
    fn to_saved(&self, recipe: &Recipe) -> CallResult<Map<String, Value>> {
        let skew = self.stream_options()?.skew.as_secs_f64();
        let saved = serde_json::to_value(self).expect("names and numbers serialise");
        let Value::Object(mut saved) = saved else {
            unreachable!("a struct is an object")
        };
        saved.retain(|_, value| !value.is_null());
        saved.insert("recipe".to_owned(), recipe.to_toml().into());
        saved.insert("skew".to_owned(), skew.into());
        Ok(saved)
    }
}

/// Reads settings.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn lookalike_settings_read(
    json: *const c_char,
    length: usize,
    settings: *mut *mut CallSettings,
    error: *mut *mut CallError,
) -> CallStatus {
    // SAFETY: the contract of the header.
    unsafe {
        run_call(error, || {
            write_answer("settings", settings, ptr::null_mut())?;
            let read = CallSettings::parse(text("json", json, length)?)?;
            write_answer("settings", settings, Box::into_raw(Box::new(read)))
        })
    }
}

/// Frees settings and sets the pointer to null.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn lookalike_settings_free(settings: *mut *mut CallSettings) {
    // SAFETY: the contract of the header.
    unsafe { free_boxed(settings) }
}
