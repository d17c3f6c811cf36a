//! JSON as it comes and goes: documents, answers, settings.
//!
//! Fields that are not known are refused by name. A document is what [`Document`] says; `meta` is given
//! back byte for byte.

use std::cell::RefCell;
use std::fmt;
use std::marker::PhantomData;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use lookalike::online::{Time, Window};
use lookalike::plan;
use lookalike::{Recipe, Threshold};
use lookalike_batch::Digits;
use lookalike_batch::rule::{
    Asked, Spelling, candidates_name, measure_name, method_name, unit_name,
};
use lookalike_batch::run::parse_time;
use lookalike_store::{
    Answer, Cluster, Content, Document, Holds, LONGEST_ID, OnConflict, Settings, Stored, Verdict,
};
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::problem::{Code, Problem};
use crate::args::{Candidates, Method, Period, Unit, Verify};

/// Reads JSON that is all of a body, or a part of it.
///
/// # Errors
/// With the place of what is wrong.
pub(super) fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    serde_json::from_slice(bytes).map_err(|error| bad_json(&error))
}

fn bad_json(error: &serde_json::Error) -> Problem {
    let (told, column) = (error.to_string(), error.column());
    // In bulk the number of the line is told beside it.
    let detail = match told.strip_suffix(&format!(" at line 1 column {column}")) {
        Some(what) => format!("{what} at column {column}"),
        None => told,
    };
    Problem::new(Code::BadJson, detail)
}

/// What is given as a JSON object, and not as a list of its fields without their names.
pub(super) struct Object<T>(pub(super) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Named<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Named<T> {
            type Value = T;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<T, A::Error> {
                T::deserialize(MapAccessDeserializer::new(fields))
            }
        }
        deserializer.deserialize_map(Named(PhantomData)).map(Self)
    }
}

/// The id alone of what is no document.
#[derive(Deserialize)]
struct Named {
    #[serde(deserialize_with = "id")]
    id: String,
}

/// The id of what was refused, if it can be read.
pub(super) fn id_of(bytes: &[u8]) -> Option<String> {
    let named: Object<Named> = serde_json::from_slice(bytes).ok()?;
    Some(named.0.id).filter(|id| id.len() <= LONGEST_ID)
}

/// A document as it comes.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sent<'a> {
    #[serde(deserialize_with = "id")]
    id: String,
    text: Option<String>,
    fingerprint: Option<String>,
    #[serde(default, deserialize_with = "time")]
    time: Option<Time>,
    #[serde(borrow)]
    meta: Option<&'a RawValue>,
}

/// Reads a document; fingerprints have so many bits.
///
/// # Errors
/// If it is not one.
pub(super) fn document(bytes: &[u8], bits: u32) -> Result<Document, Problem> {
    let sent: Object<Sent<'_>> = serde_json::from_slice(bytes).map_err(|error| bad_json(&error))?;
    let sent = sent.0;
    let content = match (sent.text, sent.fingerprint) {
        (Some(text), None) => Content::Text(text),
        (None, Some(digits)) => Content::Fingerprint(fingerprint(&digits, bits)?),
        (None, None) => return Err(wrong("it has neither `text` nor `fingerprint`")),
        (Some(_), Some(_)) => return Err(wrong("it has both `text` and `fingerprint`")),
    };
    Ok(Document {
        id: sent.id,
        content,
        time: sent.time,
        meta: sent.meta.map(|meta| meta.get().to_owned()),
    })
}

fn wrong(detail: impl Into<String>) -> Problem {
    Problem::new(Code::BadDocument, detail)
}

fn fingerprint(digits: &str, bits: u32) -> Result<u128, Problem> {
    match Digits::Hex.read(digits, bits) {
        Ok(Some(code)) => Ok(code),
        Ok(None) => Err(wrong(
            "the fingerprint '-' is that of a text that has none: such a text matches none",
        )),
        Err(what) => Err(wrong(what)),
    }
}

/// A string, or a whole number by its digits.
fn id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    struct Id;

    impl Visitor<'_> for Id {
        type Value = String;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("an id, a string or a whole number")
        }

        fn visit_str<E>(self, id: &str) -> Result<String, E> {
            Ok(id.to_owned())
        }

        fn visit_string<E>(self, id: String) -> Result<String, E> {
            Ok(id)
        }

        fn visit_u64<E>(self, id: u64) -> Result<String, E> {
            Ok(id.to_string())
        }

        fn visit_i64<E>(self, id: i64) -> Result<String, E> {
            Ok(id.to_string())
        }
    }
    deserializer.deserialize_any(Id)
}

/// The latest time that can be said as a date, in seconds since 1970. No document is of a later one, but
/// milliseconds taken for seconds are.
const LATEST: f64 = 253_402_207_200.0;

/// The same as a date.
const LATEST_DATE: &str = "9999-12-30T22:00:00Z";

/// Seconds since 1970, or an ISO 8601 date or date and time.
fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Time>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Stated {
        Seconds(f64),
        Text(String),
    }
    let expected = "a `time` is seconds since 1970 or an ISO 8601 date or date and time";
    let too_far = |seconds: f64| {
        D::Error::custom(format!(
            "the `time` {seconds} is after {LATEST_DATE}, the latest that is taken: {expected}, not \
             milliseconds"
        ))
    };
    let Some(stated) =
        Option::<Stated>::deserialize(deserializer).map_err(|_| D::Error::custom(expected))?
    else {
        return Ok(None);
    };
    let seconds = match stated {
        Stated::Seconds(seconds) if seconds > LATEST => return Err(too_far(seconds)),
        Stated::Seconds(seconds) => in_microseconds(seconds).ok_or_else(|| seconds.to_string()),
        Stated::Text(text) => parse_time(text.trim())
            .and_then(in_microseconds)
            .ok_or_else(|| format!("'{}'", beginning(&text))),
    };
    let none = |value| {
        D::Error::custom(format!(
            "the `time` {value} is none: {expected}, up to {LATEST_DATE}"
        ))
    };
    seconds.map(Some).map_err(none)
}

fn in_microseconds(seconds: f64) -> Option<Time> {
    let microseconds = (seconds * 1e6).round();
    let most = i64::MAX as f64;
    (microseconds > -most && microseconds < most).then_some(Time(microseconds as i64))
}

/// A time as ISO 8601, or as seconds if it is beyond the years that this can say.
fn stated(time: Time) -> Value {
    match jiff::Timestamp::from_microsecond(time.0) {
        Ok(timestamp) => timestamp.to_string().into(),
        Err(_) => (time.0 as f64 / 1e6).into(),
    }
}

/// The verdict on a document as it is written.
#[derive(Serialize)]
pub(super) struct Told<'a> {
    id: &'a str,
    verdict: &'static str,
    of: Option<&'a str>,
    cluster: &'a str,
    similarity: Option<f64>,
    seq: Option<u64>,
}

impl<'a> From<&'a Answer> for Told<'a> {
    fn from(answer: &'a Answer) -> Self {
        let evidence = match &answer.verdict {
            Verdict::Kept => None,
            Verdict::Duplicate(evidence) => Some(evidence),
        };
        Self {
            id: &answer.id,
            verdict: if evidence.is_some() {
                "duplicate"
            } else {
                "kept"
            },
            of: evidence.map(|it| it.of.as_str()),
            cluster: answer.cluster(),
            similarity: evidence.map(|it| it.similarity),
            seq: answer.seq,
        }
    }
}

/// A line that was not taken, in the place of its answer.
#[derive(Serialize)]
pub(super) struct Untaken<'a> {
    pub(super) id: Option<&'a str>,
    /// The number of the line, from 1 on.
    pub(super) line: u64,
    pub(super) problem: super::problem::Written<'a>,
}

/// A stored document as it is written.
#[derive(Serialize)]
pub(super) struct Shown<'a> {
    #[serde(flatten)]
    told: Told<'a>,
    /// Whether the kept document that it repeats is gone.
    of_gone: bool,
    time: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fingerprint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    meta: Option<Box<RawValue>>,
}

impl<'a> Shown<'a> {
    pub(super) fn new(stored: &'a Stored, bits: u32) -> Self {
        let (text, fingerprint) = match &stored.content {
            Content::Text(text) => (Some(text.as_str()), None),
            Content::Fingerprint(code) => {
                let mut digits = String::new();
                Digits::Hex.write(*code, bits, &mut digits);
                (None, Some(digits))
            }
        };
        // What was not JSON when it came, in an import, is told as a string.
        let meta = stored.meta.as_ref().and_then(|meta| {
            let raw = RawValue::from_string(meta.clone());
            raw.or_else(|_| serde_json::value::to_raw_value(meta)).ok()
        });
        Self {
            told: Told::from(&stored.answer),
            of_gone: stored.of_is_gone,
            time: stated(stored.answer.time),
            text,
            fingerprint,
            meta,
        }
    }
}

/// A cluster as it is written.
#[derive(Serialize)]
pub(super) struct Group<'a> {
    cluster: &'a str,
    kept: Told<'a>,
    /// The newest first.
    members: Vec<Told<'a>>,
    more: bool,
}

impl<'a> From<&'a Cluster> for Group<'a> {
    fn from(cluster: &'a Cluster) -> Self {
        Self {
            cluster: &cluster.kept.id,
            kept: Told::from(&cluster.kept),
            members: cluster.members.iter().map(Told::from).collect(),
            more: cluster.more,
        }
    }
}

/// A value in which no object has a field twice.
struct Unique(Value);

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;

        impl<'de> Visitor<'de> for Any {
            type Value = Value;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a JSON value")
            }

            fn visit_unit<E>(self) -> Result<Value, E> {
                Ok(Value::Null)
            }

            fn visit_bool<E>(self, flag: bool) -> Result<Value, E> {
                Ok(flag.into())
            }

            fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
                Ok(number.into())
            }

            fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
                Ok(number.into())
            }

            fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
                Ok(number.into())
            }

            fn visit_str<E>(self, text: &str) -> Result<Value, E> {
                Ok(text.into())
            }

            fn visit_string<E>(self, text: String) -> Result<Value, E> {
                Ok(text.into())
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Value, A::Error> {
                let mut list = Vec::new();
                while let Some(Unique(value)) = values.next_element()? {
                    list.push(value);
                }
                Ok(list.into())
            }

            fn visit_map<A: MapAccess<'de>>(self, mut given: A) -> Result<Value, A::Error> {
                let mut fields = Map::new();
                while let Some((name, Unique(value))) = given.next_entry::<String, _>()? {
                    if fields.contains_key(&name) {
                        let shown = beginning(&name);
                        return Err(A::Error::custom(format!("duplicate field `{shown}`")));
                    }
                    fields.insert(name, value);
                }
                Ok(fields.into())
            }
        }
        deserializer.deserialize_any(Any).map(Self)
    }
}

/// The fields of a JSON object, taken one after the other; what is left in the end is not known.
pub(super) struct Fields(Map<String, Value>);

impl Fields {
    /// # Errors
    /// If it is no JSON object.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, Problem> {
        let Unique(value) = read(bytes)?;
        match value {
            Value::Object(fields) => Ok(Self(fields)),
            _ => Err(Problem::new(Code::BadJson, "it is no object")),
        }
    }

    /// The value of a field, if it is there and not null.
    ///
    /// # Errors
    /// If it is not of this type.
    pub(super) fn take<T: DeserializeOwned>(&mut self, name: &str) -> Result<Option<T>, Problem> {
        let Some(value) = self.0.remove(name).filter(|value| !value.is_null()) else {
            return Ok(None);
        };
        serde_json::from_value(value)
            .map(Some)
            .map_err(|error| Problem::new(Code::BadJson, format!("the field `{name}`: {error}")))
    }

    /// A field that must be there.
    ///
    /// # Errors
    /// If it is not, or not of this type.
    pub(super) fn need<T: DeserializeOwned>(&mut self, name: &str) -> Result<T, Problem> {
        let missing = || Problem::new(Code::BadJson, format!("the field `{name}` is missing"));
        self.take(name)?.ok_or_else(missing)
    }

    /// One of several names.
    ///
    /// # Errors
    /// If it is none of them.
    pub(super) fn choose<T: ValueEnum>(&mut self, name: &str) -> Result<Option<T>, Problem> {
        let Some(chosen) = self.take::<String>(name)? else {
            return Ok(None);
        };
        let found = T::from_str(&chosen, false).map(Some);
        found.map_err(|_| {
            let names = T::value_variants().iter();
            let names: Vec<_> = names.filter_map(ValueEnum::to_possible_value).collect();
            let names: Vec<_> = names.iter().map(|it| it.get_name()).collect();
            unsettled(format!(
                "the field `{name}` is '{}', which is none of {}",
                beginning(&chosen),
                names.join(", ")
            ))
        })
    }

    /// # Errors
    /// If a field was not taken.
    pub(super) fn end(self) -> Result<(), Problem> {
        match self.0.keys().next() {
            None => Ok(()),
            Some(name) => Err(Problem::new(
                Code::BadJson,
                format!("the field `{}` is not known here", beginning(name)),
            )),
        }
    }

    /// The recipe that `recipe` names or is; the usual one where there is none.
    ///
    /// # Errors
    /// If it is none, or names files.
    pub(super) fn recipe(&mut self, usual: &str) -> Result<Recipe, Problem> {
        let named = self.take::<String>("recipe")?;
        recipe(named.as_deref().unwrap_or(usual))
    }

    /// What matches.
    ///
    /// # Errors
    /// If something is no choice, contradicts the method or would have no effect.
    pub(super) fn matching(&mut self) -> Result<plan::Settings, Problem> {
        let threshold = self.take("threshold")?.map(Threshold::new).transpose();
        let asked = Asked {
            method: self.choose::<Method>("method")?.map(Into::into),
            threshold: threshold.map_err(unsettled)?,
            distance: self.take("distance")?,
            candidates: self.choose::<Candidates>("candidates")?.map(Into::into),
            sentences: self
                .take::<NonZeroUsize>("sentences")?
                .map(NonZeroUsize::get),
            measure: self.choose::<Verify>("measure")?.map(Into::into),
            unit: self.choose::<Unit>("unit")?.map(Into::into),
        };
        asked.settings(Spelling::Fields).map_err(unsettled)
    }

    fn window(&mut self) -> Result<Option<Window>, Problem> {
        let width = self.period("window")?;
        let skew = self.period("skew")?;
        let refresh = self.take::<bool>("refresh")?;
        let Some(width) = width else {
            return match (skew, refresh) {
                (None, None) => Ok(None),
                _ => Err(unsettled(
                    "`skew` and `refresh` are of a `window`, which is missing",
                )),
            };
        };
        let window = Window::new(width, skew.unwrap_or(SKEW), refresh.unwrap_or(false));
        window.map(Some).map_err(unsettled)
    }

    fn period(&mut self, name: &str) -> Result<Option<Duration>, Problem> {
        let Some(text) = self.take::<String>(name)? else {
            return Ok(None);
        };
        let period: Result<Period, String> = text.parse();
        let wrong = |what| {
            unsettled(format!(
                "the field `{name}` is '{}': {what}",
                beginning(&text)
            ))
        };
        Ok(Some(period.map_err(wrong)?.0))
    }
}

/// How far times may be ahead of the wall clock where nothing else is asked for.
const SKEW: Duration = Duration::from_secs(300);

fn unsettled(what: impl fmt::Display) -> Problem {
    Problem::new(Code::BadSettings, what.to_string())
}

/// As much of a text as a message shows.
fn beginning(text: &str) -> String {
    text.chars().take(60).collect()
}

/// A recipe by its name, or from its TOML. A recipe that names files is refused before one is read.
fn recipe(text: &str) -> Result<Recipe, Problem> {
    if !text.contains(['=', '\n']) {
        return Recipe::named(text).map_err(unsettled);
    }
    let asked = RefCell::new(None);
    let refuse = |what: &str, file: &str| {
        asked.replace(Some(format!(
            "the recipe names the file '{}' ({what}): the service takes recipes without files",
            beginning(file)
        )));
        // There is no file without a name.
        PathBuf::new()
    };
    let read = Recipe::read(text, &refuse);
    match asked.into_inner() {
        Some(refusal) => Err(unsettled(refusal)),
        None => read.map_err(unsettled),
    }
}

/// Reads the settings of a collection.
///
/// # Errors
/// If a field is not known, no choice, or contradicts another.
pub(super) fn settings(bytes: &[u8]) -> Result<Settings, Problem> {
    let mut fields = Fields::read(bytes)?;
    let settings = Settings {
        recipe: fields.recipe("default")?,
        matching: fields.matching()?,
        window: fields.window()?,
        holds: fields.take("holds")?.unwrap_or_default(),
        on_conflict: fields.take("on_conflict")?.unwrap_or_default(),
    };
    fields.end()?;
    settings.plan().map_err(unsettled)?;
    Ok(settings)
}

/// Settings as they are told; read again they are the same.
#[derive(Serialize)]
pub(super) struct Chosen {
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
    holds: Holds,
    on_conflict: OnConflict,
}

impl From<&Settings> for Chosen {
    fn from(settings: &Settings) -> Self {
        let asked = Asked::of(&settings.matching);
        let window = settings.window.as_ref();
        Self {
            recipe: told_recipe(&settings.recipe),
            method: asked.method.map(method_name),
            threshold: asked.threshold.map(Threshold::get),
            distance: asked.distance,
            candidates: asked.candidates.map(candidates_name),
            sentences: asked.sentences,
            measure: asked.measure.map(measure_name),
            unit: asked.unit.map(unit_name),
            window: window.map(|window| told_period(window.width())),
            skew: window.map(|window| told_period(window.skew())),
            refresh: window.map(Window::refreshes),
            holds: settings.holds,
            on_conflict: settings.on_conflict,
        }
    }
}

/// In what settings that are asked for differ from those of a collection.
pub(super) fn difference(known: &Settings, asked: &Settings) -> String {
    let fields = |settings| match serde_json::to_value(Chosen::from(settings)) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    };
    let (known, asked) = (fields(known), fields(asked));
    let mut names: Vec<_> = known.keys().chain(asked.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let value = |fields: &Map<String, Value>, name: &str| {
        let value = fields.get(name).unwrap_or(&Value::Null);
        beginning(&value.to_string())
    };
    let differ = names.iter().filter(|it| known.get(**it) != asked.get(**it));
    let told = differ.map(|it| {
        let (known, asked) = (value(&known, it), value(&asked, it));
        format!("its `{it}` is {known}, not {asked}")
    });
    told.collect::<Vec<_>>().join("; ")
}

/// The name of a recipe that is built in, else its TOML.
fn told_recipe(recipe: &Recipe) -> String {
    match Recipe::named(&recipe.name) {
        Ok(known) if known == *recipe => recipe.name.clone(),
        _ => recipe.to_toml(),
    }
}

/// A length of time in the largest unit that it is a whole number of, or in seconds.
fn told_period(period: Duration) -> String {
    const UNITS: [(u64, char); 5] = [
        (604_800, 'w'),
        (86_400, 'd'),
        (3600, 'h'),
        (60, 'm'),
        (1, 's'),
    ];
    let seconds = period.as_secs();
    let whole = UNITS
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

    fn refused(json: &str) -> String {
        settings(json.as_bytes()).unwrap_err().detail
    }

    #[test]
    fn what_is_told_of_settings_makes_the_same() {
        let toml = Recipe::named("words-3")
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
            r#"{"method":"sentences","sentences":2,"measure":"none"}"#.into(),
            serde_json::json!({ "recipe": toml }).to_string(),
        ];
        for case in cases {
            let made =
                settings(case.as_bytes()).unwrap_or_else(|it| panic!("{case}: {}", it.detail));
            let told = serde_json::to_vec(&Chosen::from(&made)).unwrap();
            assert_eq!(settings(&told).unwrap(), made, "{case}");
        }
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_name() {
        for (json, said) in [
            (
                r#"{"treshold":0.8}"#,
                "the field `treshold` is not known here",
            ),
            (
                r#"{"threshold":"high"}"#,
                "the field `threshold`: invalid type",
            ),
            (r#"{"threshold":1.5}"#, "1.5"),
            (
                r#"{"method":"magic"}"#,
                "the field `method` is 'magic', which is none of auto,",
            ),
            (r#"{"distance":3}"#, "\"distance\": 3 is for fingerprints"),
            (r#"{"skew":"1s"}"#, "of a `window`, which is missing"),
            (
                r#"{"window":"2 days"}"#,
                "the field `window` is '2 days': give a number with a unit",
            ),
            (r#"{"window":"0s"}"#, "below a microsecond"),
            (r#"{"holds":"fingerprints"}"#, "must be 'simhash'"),
            (r#"{"recipe":"nonsense"}"#, "nonsense"),
            (r#"[]"#, "no object"),
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
    fn files_that_a_recipe_names_are_not_read() {
        let jieba = Recipe::named("jieba").unwrap().to_toml();
        let toml = jieba.replace("[segment]", "[segment]\nuser = \"/etc/passwd\"");
        assert_ne!(toml, jieba);
        let detail = refused(&serde_json::json!({ "recipe": toml }).to_string());
        assert!(detail.contains("names the file '/etc/passwd'"), "{detail}");
    }

    #[test]
    fn documents_are_read_strictly() {
        let read = |json: &str| document(json.as_bytes(), 64);
        let it =
            read(r#"{"id":7,"text":"a","time":"2024-05-01T00:00:00Z","meta":{"b": 1}}"#).unwrap();
        assert_eq!((&it.id[..], it.meta.as_deref()), ("7", Some(r#"{"b": 1}"#)));
        assert_eq!(it.time, Some(Time(1_714_521_600_000_000)));
        let same = read(r#"{"id":"7","text":"a","time":1714521600,"meta":null}"#).unwrap();
        assert_eq!((same.time, same.meta), (it.time, None));
        let code = read(r#"{"id":"x","fingerprint":"00000000000000ff"}"#).unwrap();
        assert_eq!(code.content, Content::Fingerprint(255));
        for (json, said) in [
            (r#"{"text":"a"}"#, "missing field `id`"),
            (r#"{"id":"a"}"#, "neither `text` nor `fingerprint`"),
            (r#"{"id":"a","text":"b","fingerprint":"1"}"#, "both"),
            (
                r#"{"id":1.5,"text":"b"}"#,
                "an id, a string or a whole number",
            ),
            (r#"{"id":"a","txt":"b"}"#, "unknown field `txt`"),
            (
                r#"{"id":"a","text":"b","text":"c"}"#,
                "duplicate field `text`",
            ),
            (r#"{"id":"a","text":"\ud800"}"#, "hex escape"),
            (
                r#"{"id":"a","text":"b","time":"soon"}"#,
                "the `time` 'soon' is none",
            ),
            (
                r#"{"id":"a","text":"b","time":"9999-12-31T23:59:59Z"}"#,
                LATEST_DATE,
            ),
            (r#"{"id":"a","text":"b","time":253402300799}"#, LATEST_DATE),
            (
                r#"{"id":"a","text":"b","time":1e300}"#,
                "seconds since 1970",
            ),
            (r#"{"id":"a","fingerprint":"xyz"}"#, "xyz"),
            (r#"{"id":"a","fingerprint":"-"}"#, "matches none"),
            (r#"{"id":"a","text":"b"} {}"#, "trailing characters"),
            (r#"["a","b",null,null,null]"#, "expected an object"),
        ] {
            let problem = read(json).unwrap_err();
            assert!(problem.detail.contains(said), "{json}: {}", problem.detail);
        }
        assert!(document(b"{\"id\":\"a\",\"text\":\"\xff\"}", 64).is_err());
        let deep = format!(
            r#"{{"id":"a","text":"b","meta":{}1{}}}"#,
            "[".repeat(100_000),
            "]".repeat(100_000)
        );
        assert!(document(deep.as_bytes(), 64).is_ok());
        let deep = format!(
            r#"{{"id":{}1{}}}"#,
            "[".repeat(100_000),
            "]".repeat(100_000)
        );
        assert!(document(deep.as_bytes(), 64).is_err());
    }

    #[test]
    fn lengths_of_time_are_told_in_their_unit() {
        for (seconds, told) in [
            (0.0, "0s"),
            (1.5, "1.5s"),
            (90.0, "90s"),
            (300.0, "5m"),
            (172_800.0, "2d"),
            (604_800.0, "1w"),
        ] {
            assert_eq!(told_period(Duration::from_secs_f64(seconds)), told);
        }
    }
}
