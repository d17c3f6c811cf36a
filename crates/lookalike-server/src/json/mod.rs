//! JSON of requests and answers: documents, verdicts, settings.
//!
//! Unknown fields are refused by name. The fields of a document are those of [`NewDocument`]. `meta` is
//! returned byte for byte, so it must be JSON that every parser accepts.

use std::cell::RefCell;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::marker::PhantomData;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Duration;

use lookalike::online::{StreamWindow, Timestamp};
use lookalike::plan;
use lookalike::{Recipe, Threshold};
use lookalike_batch::FingerprintNotation;
use lookalike_batch::match_options::{
    CANDIDATES, MEASURES, METHODS, MatchOptions, OptionSpelling, UNITS, candidates_name,
    choose_by_name, measure_name, method_name, unit_name,
};
use lookalike_batch::run::{parse_period, parse_time};
use lookalike_store::{
    CollectionContent, CollectionSettings, DocumentCluster, DocumentContent, ExpiryClock,
    InsertAnswer, LONGEST_ID, NewDocument, OnConflict, StoredDocument, StoredVerdict,
};
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::api::problem::{ApiProblem, ProblemCode};
use crate::error::Error;

/// Parses JSON that is a whole body, or part of one.
///
/// # Errors
/// [`ProblemCode::BadJson`], with the position of the mistake.
pub(crate) fn read_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiProblem> {
    serde_json::from_slice(bytes).map_err(|error| bad_json_problem(&error))
}

fn bad_json_problem(error: &serde_json::Error) -> ApiProblem {
    let (told, column) = (error.to_string(), error.column());
    // Answers in bulk give the line number in a field of their own.
    let detail = match told.strip_suffix(&format!(" at line 1 column {column}")) {
        Some(what) => format!("{what} at column {column}"),
        None => told,
    };
    ApiProblem::new(ProblemCode::BadJson, detail)
}

/// A value given as a JSON object. Without this wrapper serde also accepts an array of the fields in order.
pub(crate) struct JsonObject<T>(pub(crate) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for JsonObject<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NamedOnly<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for NamedOnly<T> {
            type Value = T;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<T, A::Error> {
                T::deserialize(MapAccessDeserializer::new(fields))
            }
        }
        deserializer
            .deserialize_map(NamedOnly(PhantomData))
            .map(Self)
    }
}

/// The id of a line that is not a valid document.
#[derive(Deserialize)]
struct NamedOnly {
    #[serde(default, deserialize_with = "deserialize_id")]
    id: Option<String>,
}

/// Returns the id of a refused line, if it can be read.
pub(crate) fn readable_id(bytes: &[u8]) -> Option<String> {
    let named: JsonObject<NamedOnly> = serde_json::from_slice(bytes).ok()?;
    named.0.id.filter(|id| id.len() <= LONGEST_ID)
}

/// A document as clients send it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct InsertJson<'a> {
    #[serde(default, deserialize_with = "deserialize_id")]
    id: Option<String>,
    text: Option<String>,
    fingerprint: Option<String>,
    #[serde(default, deserialize_with = "deserialize_time")]
    time: Option<Timestamp>,
    #[serde(borrow)]
    meta: Option<&'a RawValue>,
}

/// Parses a document whose fingerprint, if it has one, has `bits` bits.
///
/// # Errors
/// If it is not a valid document.
pub(crate) fn read_document(bytes: &[u8], bits: u32) -> Result<NewDocument, ApiProblem> {
    let sent: JsonObject<InsertJson<'_>> =
        serde_json::from_slice(bytes).map_err(|error| bad_json_problem(&error))?;
    let missing = || ApiProblem::new(ProblemCode::BadJson, "missing field `id`");
    let id = sent.0.id.clone().ok_or_else(missing)?;
    sent.0.into_document(id, bits)
}

/// Parses a document to be queried. A document without an id gets [`NAMELESS`].
///
/// # Errors
/// If it is not a valid document.
pub(crate) fn read_query_document(bytes: &[u8], bits: u32) -> Result<NewDocument, ApiProblem> {
    let sent: JsonObject<InsertJson<'_>> =
        serde_json::from_slice(bytes).map_err(|error| bad_json_problem(&error))?;
    let id = sent.0.id.clone().unwrap_or_else(|| NAMELESS.clone());
    sent.0.into_document(id, bits)
}

/// Placeholder for the id of a query without one. It has 128 random bits and is never shown, so no document
/// has it, and looking it up finds nothing.
static NAMELESS: LazyLock<String> = LazyLock::new(|| {
    let random = || RandomState::new().hash_one(0);
    format!("\0{:016x}{:016x}", random(), random())
});

/// Returns the id, or `None` if it is the placeholder.
pub(crate) fn stated_id(id: &str) -> Option<&str> {
    (id != *NAMELESS).then_some(id)
}

/// Replaces the placeholder in a message by "(without an id)".
pub(crate) fn without_name(detail: &str) -> String {
    detail.replace(&format!("'{}'", *NAMELESS), "(without an id)")
}

impl InsertJson<'_> {
    fn into_document(self, id: String, bits: u32) -> Result<NewDocument, ApiProblem> {
        let content = match (self.text, self.fingerprint) {
            (Some(text), None) => DocumentContent::Text(text),
            (None, Some(digits)) => DocumentContent::Fingerprint(fingerprint(&digits, bits)?),
            (None, None) => return Err(bad_document("it has neither `text` nor `fingerprint`")),
            (Some(_), Some(_)) => return Err(bad_document("it has both `text` and `fingerprint`")),
        };
        let meta = self.meta.map(RawValue::get);
        meta.map_or(Ok(()), check_meta)?;
        Ok(NewDocument {
            id,
            content,
            time: self.time,
            meta: meta.map(str::to_owned),
        })
    }
}

/// Refuses JSON that some parser does not accept, because `meta` is returned as it is: an unpaired surrogate,
/// a number out of range of `f64`, and nesting of 128 levels or more.
fn check_meta(meta: &str) -> Result<(), ApiProblem> {
    let read: Result<SkippedValue, _> = serde_json::from_str(meta);
    read.map(|SkippedValue| ()).map_err(|error| {
        let detail = format!("{} of its `meta`", bad_json_problem(&error).detail);
        ApiProblem::new(ProblemCode::BadJson, detail)
    })
}

/// A JSON value that was parsed to its end and discarded.
struct SkippedValue;

impl<'de> Deserialize<'de> for SkippedValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AnyValue;

        impl<'de> Visitor<'de> for AnyValue {
            type Value = SkippedValue;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a JSON value")
            }

            fn visit_unit<E>(self) -> Result<SkippedValue, E> {
                Ok(SkippedValue)
            }

            fn visit_bool<E>(self, _: bool) -> Result<SkippedValue, E> {
                Ok(SkippedValue)
            }

            fn visit_u64<E>(self, _: u64) -> Result<SkippedValue, E> {
                Ok(SkippedValue)
            }

            fn visit_i64<E>(self, _: i64) -> Result<SkippedValue, E> {
                Ok(SkippedValue)
            }

            fn visit_f64<E>(self, _: f64) -> Result<SkippedValue, E> {
                Ok(SkippedValue)
            }

            fn visit_str<E>(self, _: &str) -> Result<SkippedValue, E> {
                Ok(SkippedValue)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<SkippedValue, A::Error> {
                while let Some(SkippedValue) = values.next_element()? {}
                Ok(SkippedValue)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<SkippedValue, A::Error> {
                while let Some((SkippedValue, SkippedValue)) = fields.next_entry()? {}
                Ok(SkippedValue)
            }
        }
        deserializer.deserialize_any(AnyValue)
    }
}

fn bad_document(detail: impl Into<String>) -> ApiProblem {
    ApiProblem::new(ProblemCode::BadDocument, detail)
}

fn fingerprint(digits: &str, bits: u32) -> Result<u128, ApiProblem> {
    match FingerprintNotation::Hex.parse_fingerprint(digits, bits) {
        Ok(Some(code)) => Ok(code),
        Ok(None) => Err(bad_document(
            "the fingerprint '-' is that of a text without a fingerprint, which matches nothing: \
             leave it out",
        )),
        Err(what) => Err(bad_document(what)),
    }
}

/// Parses an id: a string, or an integer, which is taken by its digits. `null` counts as absent.
fn deserialize_id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    struct IdValue;

    impl Visitor<'_> for IdValue {
        type Value = Option<String>;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("an id, a string or a whole number")
        }

        fn visit_unit<E>(self) -> Result<Option<String>, E> {
            Ok(None)
        }

        fn visit_str<E>(self, id: &str) -> Result<Option<String>, E> {
            Ok(Some(id.to_owned()))
        }

        fn visit_string<E>(self, id: String) -> Result<Option<String>, E> {
            Ok(Some(id))
        }

        fn visit_u64<E>(self, id: u64) -> Result<Option<String>, E> {
            Ok(Some(id.to_string()))
        }

        fn visit_i64<E>(self, id: i64) -> Result<Option<String>, E> {
            Ok(Some(id.to_string()))
        }

        /// Refuses the number, because its original digits are lost.
        fn visit_f64<E: serde::de::Error>(self, _: f64) -> Result<Option<String>, E> {
            Err(E::custom(format!(
                "the `id` is a number, but not a whole number from {} to {} in digits alone: give \
                 it as a string",
                i64::MIN,
                u64::MAX
            )))
        }
    }
    deserializer.deserialize_any(IdValue)
}

/// Latest accepted time, in seconds since 1970: the latest that can be written as a date. No document has a
/// later one, but milliseconds mistaken for seconds are later.
const LATEST: f64 = 253_402_207_200.0;

/// [`LATEST`] as a date.
const LATEST_DATE: &str = "9999-12-30T22:00:00Z";

/// Parses seconds since 1970, or an ISO 8601 date with or without a time.
fn deserialize_time<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Timestamp>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum StatedTime {
        Seconds(f64),
        Text(String),
    }
    let expected = "a `time` is seconds since 1970 or an ISO 8601 date or date and time";
    let too_far = |seconds: f64| {
        D::Error::custom(format!(
            "the `time` {seconds} is after {LATEST_DATE}, the latest that is accepted: {expected}, \
             not milliseconds"
        ))
    };
    let Some(stated) =
        Option::<StatedTime>::deserialize(deserializer).map_err(|_| D::Error::custom(expected))?
    else {
        return Ok(None);
    };
    let seconds = match stated {
        StatedTime::Seconds(seconds) if seconds > LATEST => return Err(too_far(seconds)),
        StatedTime::Seconds(seconds) => in_microseconds(seconds).ok_or_else(|| seconds.to_string()),
        StatedTime::Text(text) => parse_time(text.trim())
            .and_then(in_microseconds)
            .ok_or_else(|| format!("'{}'", shorten_text(&text))),
    };
    let none = |value| {
        D::Error::custom(format!(
            "the `time` {value} is not a valid time: {expected}, up to {LATEST_DATE}"
        ))
    };
    seconds.map(Some).map_err(none)
}

fn in_microseconds(seconds: f64) -> Option<Timestamp> {
    let microseconds = (seconds * 1e6).round();
    let most = i64::MAX as f64;
    (microseconds > -most && microseconds < most).then_some(Timestamp(microseconds as i64))
}

/// Returns a time in ISO 8601, or in seconds if its year is out of range.
fn time_to_json(time: Timestamp) -> Value {
    match jiff::Timestamp::from_microsecond(time.0) {
        Ok(timestamp) => timestamp.to_string().into(),
        Err(_) => (time.0 as f64 / 1e6).into(),
    }
}

/// The verdict on a document. For a query without an id, `deserialize_id` is null, and so is
/// `cluster_id` if nothing matches.
#[derive(Serialize)]
pub(crate) struct VerdictJson<'a> {
    id: Option<&'a str>,
    verdict: &'static str,
    of: Option<&'a str>,
    cluster: Option<&'a str>,
    similarity: Option<f64>,
    seq: Option<u64>,
}

impl<'a> From<&'a InsertAnswer> for VerdictJson<'a> {
    fn from(answer: &'a InsertAnswer) -> Self {
        let evidence = match &answer.verdict {
            StoredVerdict::Kept => None,
            StoredVerdict::Duplicate(evidence) => Some(evidence),
        };
        Self {
            id: stated_id(&answer.id),
            verdict: if evidence.is_some() {
                "duplicate"
            } else {
                "kept"
            },
            of: evidence.map(|it| it.of.as_str()),
            cluster: stated_id(answer.cluster_id()),
            similarity: evidence.map(|it| it.similarity),
            seq: answer.seq,
        }
    }
}

/// The entry for a refused line, in place of its answer.
#[derive(Serialize)]
pub(crate) struct RefusedLineJson<'a> {
    pub(crate) id: Option<&'a str>,
    /// Line number, from 1.
    pub(crate) line: u64,
    pub(crate) problem: crate::api::problem::ProblemJson<'a>,
}

/// A stored document as it is returned.
#[derive(Serialize)]
pub(crate) struct DocumentJson<'a> {
    #[serde(flatten)]
    told: VerdictJson<'a>,
    /// `true` if the kept document that it names no longer exists.
    of_gone: bool,
    time: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fingerprint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    meta: Option<Box<RawValue>>,
}

impl<'a> DocumentJson<'a> {
    pub(crate) fn new(stored: &'a StoredDocument, bits: u32) -> Self {
        let (text, fingerprint) = match &stored.content {
            DocumentContent::Text(text) => (Some(text.as_str()), None),
            DocumentContent::Fingerprint(code) => {
                let mut digits = String::new();
                FingerprintNotation::Hex.append_fingerprint(*code, bits, &mut digits);
                (None, Some(digits))
            }
        };
        // An imported document can have a `meta` that is not JSON; it is returned as a string.
        let meta = stored.meta.as_ref().and_then(|meta| {
            let raw = RawValue::from_string(meta.clone());
            raw.or_else(|_| serde_json::value::to_raw_value(meta)).ok()
        });
        Self {
            told: VerdictJson::from(&stored.answer),
            of_gone: stored.of_is_gone,
            time: time_to_json(stored.answer.time),
            text,
            fingerprint,
            meta,
        }
    }
}

/// A cluster as it is returned.
#[derive(Serialize)]
pub(crate) struct ClusterJson<'a> {
    cluster: &'a str,
    kept: VerdictJson<'a>,
    /// Newest first.
    members: Vec<VerdictJson<'a>>,
    more: bool,
    /// Value of `after` for the next page; null at the end.
    next: Option<u64>,
}

impl<'a> From<&'a DocumentCluster> for ClusterJson<'a> {
    fn from(cluster: &'a DocumentCluster) -> Self {
        Self {
            cluster: &cluster.kept.id,
            kept: VerdictJson::from(&cluster.kept),
            members: cluster.members.iter().map(VerdictJson::from).collect(),
            more: cluster.more,
            next: cluster
                .members
                .last()
                .filter(|_| cluster.more)
                .and_then(|last| last.seq),
        }
    }
}

/// A JSON value in which no object has a duplicate field.
struct UniqueFields(Value);

impl<'de> Deserialize<'de> for UniqueFields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AnyValue;

        impl<'de> Visitor<'de> for AnyValue {
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
                while let Some(UniqueFields(value)) = values.next_element()? {
                    list.push(value);
                }
                Ok(list.into())
            }

            fn visit_map<A: MapAccess<'de>>(self, mut given: A) -> Result<Value, A::Error> {
                let mut fields = Map::new();
                while let Some((name, UniqueFields(value))) = given.next_entry::<String, _>()? {
                    if fields.contains_key(&name) {
                        let shown = shorten_text(&name);
                        return Err(A::Error::custom(format!("duplicate field `{shown}`")));
                    }
                    fields.insert(name, value);
                }
                Ok(fields.into())
            }
        }
        deserializer.deserialize_any(AnyValue).map(Self)
    }
}

/// The fields of a JSON object, taken one by one. Fields that remain at the end are unknown.
pub(crate) struct JsonFields(Map<String, Value>);

impl JsonFields {
    /// Parses a JSON object.
    ///
    /// # Errors
    /// If it is not one.
    pub(crate) fn read_fields(bytes: &[u8]) -> Result<Self, ApiProblem> {
        let UniqueFields(value) = read_json(bytes)?;
        match value {
            Value::Object(fields) => Ok(Self(fields)),
            _ => Err(ApiProblem::new(ProblemCode::BadJson, "it is not an object")),
        }
    }

    /// Takes a field, if it is present and not null.
    ///
    /// # Errors
    /// If it does not have this type.
    pub(crate) fn take_field<T: DeserializeOwned>(
        &mut self,
        name: &str,
    ) -> Result<Option<T>, ApiProblem> {
        let Some(value) = self.0.remove(name).filter(|value| !value.is_null()) else {
            return Ok(None);
        };
        serde_json::from_value(value).map(Some).map_err(|error| {
            ApiProblem::new(ProblemCode::BadJson, format!("the field `{name}`: {error}"))
        })
    }

    /// Takes a required field.
    ///
    /// # Errors
    /// If it is missing, or does not have this type.
    pub(crate) fn need_field<T: DeserializeOwned>(&mut self, name: &str) -> Result<T, ApiProblem> {
        let missing = || {
            ApiProblem::new(
                ProblemCode::BadJson,
                format!("the field `{name}` is missing"),
            )
        };
        self.take_field(name)?.ok_or_else(missing)
    }

    /// Takes a field whose value is the name of one of `choices`.
    ///
    /// # Errors
    /// If it is none of them.
    pub(crate) fn choose_field<T: Copy>(
        &mut self,
        name: &str,
        choices: &[T],
        name_of: fn(T) -> &'static str,
    ) -> Result<Option<T>, ApiProblem> {
        let Some(chosen) = self.take_field::<String>(name)? else {
            return Ok(None);
        };
        let field = format!("the field `{name}`");
        let chosen = choose_by_name(&field, &shorten_text(&chosen), choices, name_of);
        chosen.map(Some).map_err(bad_settings)
    }

    /// Ends the parsing of the object.
    ///
    /// # Errors
    /// If a field was not taken.
    pub(crate) fn refuse_rest(self) -> Result<(), ApiProblem> {
        match self.0.keys().next() {
            None => Ok(()),
            Some(name) => Err(ApiProblem::new(
                ProblemCode::BadJson,
                format!("the field `{}` is unknown", shorten_text(name)),
            )),
        }
    }

    /// Takes the field `recipe`, which is a name or the TOML of a recipe. Without it, uses the recipe
    /// `usual`.
    ///
    /// # Errors
    /// If it is not a recipe, or a recipe that names files.
    pub(crate) fn take_recipe(&mut self, usual: &str) -> Result<Recipe, ApiProblem> {
        let named = self.take_field::<String>("recipe")?;
        resolve_recipe(named.as_deref().unwrap_or(usual))
    }

    /// Takes the match options.
    ///
    /// # Errors
    /// If a value is invalid, contradicts the method or has no effect.
    pub(crate) fn take_matching(&mut self) -> Result<plan::MatchSettings, ApiProblem> {
        self.take_options()?
            .to_settings(OptionSpelling::Fields)
            .map_err(bad_settings)
    }

    /// Takes the match options of a collection. For a collection of fingerprints the only option is the
    /// distance.
    fn matching_of(&mut self, holds: CollectionContent) -> Result<plan::MatchSettings, ApiProblem> {
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
            method: self.choose_field("method", &METHODS, method_name)?,
            threshold: threshold.map_err(bad_settings)?,
            distance: self.take_field("distance")?,
            candidates: self.choose_field("candidates", &CANDIDATES, candidates_name)?,
            sentences: self
                .take_field::<NonZeroUsize>("sentences")?
                .map(NonZeroUsize::get),
            measure: self.choose_field("measure", &MEASURES, measure_name)?,
            unit: self.choose_field("unit", &UNITS, unit_name)?,
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
        parse_period(&text).map(Some).map_err(wrong)
    }
}

/// Default limit of how far times may be ahead of the wall clock.
const SKEW: Duration = Duration::from_secs(300);

/// Returns the default skew: half of a short window at most, because otherwise one document from as far ahead
/// would make documents with correct times late.
fn usual_skew(width: Duration) -> Duration {
    SKEW.min(width / 2)
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
    let method = *asked.method.get_or_insert(plan::MatchMethod::SimHash);
    let measure = *asked.measure.get_or_insert(plan::SimilarityMeasure::Sketch);
    let (name, must, is) = if method != plan::MatchMethod::SimHash {
        ("method", "simhash", method_name(method))
    } else if measure != plan::SimilarityMeasure::Sketch {
        ("measure", "none", measure_name(measure))
    } else {
        return Ok(());
    };
    Err(bad_settings(format!(
        "`holds` is 'fingerprints', so nothing else can be compared: `{name}` must be '{must}' and \
         is '{is}'; leave it out"
    )))
}

fn bad_settings(what: impl fmt::Display) -> ApiProblem {
    ApiProblem::new(ProblemCode::BadSettings, what.to_string())
}

/// Returns as much of a text as a message shows.
fn shorten_text(text: &str) -> String {
    text.chars().take(60).collect()
}

/// Returns a recipe by name, or from its TOML. A recipe that names files is refused before any file is read.
fn resolve_recipe(text: &str) -> Result<Recipe, ApiProblem> {
    if !text.contains(['=', '\n']) {
        return Recipe::built_in(text).map_err(|_| {
            bad_settings(format!(
                "there is no recipe named '{}': give one of {}, or the TOML of a recipe itself",
                shorten_text(text),
                Recipe::NAMES.join(", ")
            ))
        });
    }
    let asked = RefCell::new(None);
    let refuse = |what: &str, file: &str| {
        asked.replace(Some(format!(
            "the recipe names the file '{}' ({what}): the service takes recipes without files",
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
pub(crate) fn read_settings(bytes: &[u8]) -> Result<CollectionSettings, ApiProblem> {
    let settings = settings_of_one(bytes)?;
    settings.window.as_ref().map_or(Ok(()), check_skew)?;
    Ok(settings)
}

/// Parses the settings of a stored collection, as [`write_settings`] writes them.
///
/// # Errors
/// If the JSON is not valid settings.
pub fn read_stored_settings(json: &[u8]) -> Result<CollectionSettings, Error> {
    settings_of_one(json).map_err(|problem| Error::new(problem.detail))
}

/// Returns the settings of a collection as the JSON of an answer.
///
/// # Errors
/// If serialisation fails, which is not known to happen.
pub fn write_settings(settings: &CollectionSettings) -> serde_json::Result<Vec<u8>> {
    serde_json::to_vec_pretty(&SettingsJson::from(settings))
}

/// Parses the settings of a collection that may exist already. Any skew is accepted, because earlier versions
/// did not limit it.
///
/// # Errors
/// If a field is unknown, has an invalid value, or contradicts another.
pub(crate) fn settings_of_one(bytes: &[u8]) -> Result<CollectionSettings, ApiProblem> {
    let mut fields = JsonFields::read_fields(bytes)?;
    let holds = fields.take_field("holds")?.unwrap_or_default();
    let settings = CollectionSettings {
        recipe: fields.take_recipe("default")?,
        matching: fields.matching_of(holds)?,
        window: fields.take_window()?,
        holds,
        on_conflict: fields.take_field("on_conflict")?.unwrap_or_default(),
    };
    fields.refuse_rest()?;
    settings.match_plan().map_err(bad_settings)?;
    Ok(settings)
}

/// Settings as they are returned. Parsing them gives the same settings.
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
            method: asked.method.map(method_name),
            threshold: asked.threshold.map(Threshold::get),
            distance: asked.distance,
            candidates: asked.candidates.map(candidates_name),
            sentences: asked.sentences,
            measure: asked.measure.map(measure_name),
            unit: asked.unit.map(unit_name),
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
    let fields = |settings| match serde_json::to_value(SettingsJson::from(settings)) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    };
    let (known, asked) = (fields(known), fields(asked));
    let mut names: Vec<_> = known.keys().chain(asked.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let value = |fields: &Map<String, Value>, name: &str| {
        let value = fields.get(name).unwrap_or(&Value::Null);
        shorten_text(&value.to_string())
    };
    let differ = names.iter().filter(|it| known.get(**it) != asked.get(**it));
    let told = differ.map(|it| {
        let (known, asked) = (value(&known, it), value(&asked, it));
        format!("its `{it}` is {known}, not {asked}")
    });
    told.collect::<Vec<_>>().join("; ")
}

/// Returns the name of a built-in recipe, or the TOML of another one.
fn recipe_to_json(recipe: &Recipe) -> String {
    match Recipe::built_in(&recipe.name) {
        Ok(known) if known == *recipe => recipe.name.clone(),
        _ => recipe.to_toml(),
    }
}

/// Returns a duration in the largest unit of which it is a whole multiple, or in seconds.
fn period_to_json(period: Duration) -> String {
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
        read_settings(json.as_bytes()).unwrap_err().detail
    }

    #[test]
    fn what_is_told_of_settings_makes_the_same() {
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
            let made =
                read_settings(case.as_bytes()).unwrap_or_else(|it| panic!("{case}: {}", it.detail));
            let told = serde_json::to_vec(&SettingsJson::from(&made)).unwrap();
            assert_eq!(read_settings(&told).unwrap(), made, "{case}");
        }
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_name() {
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
    fn bare_fingerprints_are_compared_by_nothing_else() {
        let made = |json: &str| {
            read_settings(json.as_bytes()).unwrap_or_else(|it| panic!("{}", it.detail))
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
    fn a_skew_is_no_longer_than_its_window() {
        let skew = |json: &str| {
            let made = read_settings(json.as_bytes()).unwrap_or_else(|it| panic!("{}", it.detail));
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
        let one = settings_of_one(json.as_bytes()).unwrap();
        assert_eq!(one.window.unwrap().skew(), Duration::from_secs(61));
    }

    #[test]
    fn files_that_a_recipe_names_are_not_read() {
        let jieba = Recipe::built_in("jieba").unwrap().to_toml();
        let toml = jieba.replace("[segment]", "[segment]\nuser = \"/etc/passwd\"");
        assert_ne!(toml, jieba);
        let detail = refused(&serde_json::json!({ "recipe": toml }).to_string());
        assert!(detail.contains("names the file '/etc/passwd'"), "{detail}");
    }

    #[test]
    fn documents_are_read_strictly() {
        let read = |json: &str| read_document(json.as_bytes(), 64);
        let it =
            read(r#"{"id":7,"text":"a","time":"2024-05-01T00:00:00Z","meta":{"b": 1}}"#).unwrap();
        assert_eq!((&it.id[..], it.meta.as_deref()), ("7", Some(r#"{"b": 1}"#)));
        assert_eq!(it.time, Some(Timestamp(1_714_521_600_000_000)));
        let same = read(r#"{"id":"7","text":"a","time":1714521600,"meta":null}"#).unwrap();
        assert_eq!((same.time, same.meta), (it.time, None));
        let code = read(r#"{"id":"x","fingerprint":"00000000000000ff"}"#).unwrap();
        assert_eq!(code.content, DocumentContent::Fingerprint(255));
        for (json, said) in [
            (r#"{"text":"a"}"#, "missing field `id`"),
            (r#"{"id":"a"}"#, "neither `text` nor `fingerprint`"),
            (r#"{"id":"a","text":"b","fingerprint":"1"}"#, "both"),
            (r#"{"id":null,"text":"b"}"#, "missing field `id`"),
            (
                r#"{"id":true,"text":"b"}"#,
                "an id, a string or a whole number",
            ),
            (r#"{"id":1.5,"text":"b"}"#, "give it as a string"),
            (
                r#"{"id":18446744073709551616,"text":"b"}"#,
                "from -9223372036854775808 to 18446744073709551615",
            ),
            (r#"{"id":"a","txt":"b"}"#, "unknown field `txt`"),
            (
                r#"{"id":"a","text":"b","text":"c"}"#,
                "duplicate field `text`",
            ),
            (r#"{"id":"a","text":"\ud800"}"#, "hex escape"),
            (
                r#"{"id":"a","text":"b","time":"soon"}"#,
                "the `time` 'soon' is not a valid time",
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
            (r#"{"id":"a","fingerprint":"-"}"#, "matches nothing"),
            (r#"{"id":"a","text":"b"} {}"#, "trailing characters"),
            (r#"["a","b",null,null,null]"#, "expected an object"),
        ] {
            let problem = read(json).unwrap_err();
            assert!(problem.detail.contains(said), "{json}: {}", problem.detail);
        }
        assert!(read_document(b"{\"id\":\"a\",\"text\":\"\xff\"}", 64).is_err());
        let deep = format!(
            r#"{{"id":{}1{}}}"#,
            "[".repeat(100_000),
            "]".repeat(100_000)
        );
        assert!(read_document(deep.as_bytes(), 64).is_err());
    }

    #[test]
    fn what_is_given_back_is_json_for_everybody() {
        let with = |meta: &str| {
            let json = format!(r#"{{"id":"a","text":"b","meta":{meta}}}"#);
            read_document(json.as_bytes(), 64).map(|it| it.meta)
        };
        let nested = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        for meta in [
            r#"{"a": [1e300, -0.10, "\ud83d\ude00", {"": null}]}"#,
            "123456789012345678901234567890",
            &nested(127),
        ] {
            assert_eq!(with(meta).unwrap().as_deref(), Some(meta));
        }
        for (meta, said) in [
            (r#""\ud800""#, "hex escape"),
            (r#"["\ude00 "]"#, "hex escape"),
            (r#"{"\ud800":1}"#, "hex escape"),
            ("[1e999]", "number out of range"),
            (&nested(128), "recursion limit exceeded"),
            (&nested(100_000), "recursion limit exceeded"),
        ] {
            let detail = with(meta).unwrap_err().detail;
            assert!(
                detail.contains(said) && detail.ends_with(" of its `meta`"),
                "{detail}"
            );
        }
    }

    #[test]
    fn what_is_asked_about_needs_no_name() {
        let json = r#"{"text":"a"}"#;
        assert!(read_document(json.as_bytes(), 64).is_err());
        let asked = read_query_document(json.as_bytes(), 64).unwrap();
        assert_eq!((stated_id(&asked.id), stated_id("a")), (None, Some("a")));
        let asked = read_query_document(br#"{"id":7,"text":"a"}"#, 64).unwrap();
        assert_eq!(asked.id, "7");
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
            assert_eq!(period_to_json(Duration::from_secs_f64(seconds)), told);
        }
    }
}
