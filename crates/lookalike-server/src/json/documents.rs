//! Documents as clients send them, and as they are returned.
//!
//! The fields of a document are those of [`NewDocument`]. `meta` is returned byte for byte, so it must be JSON
//! that every parser accepts.

use std::fmt;

use lookalike::stream::Timestamp;
use lookalike_options::document_time::parse_time;
use lookalike_options::fingerprint_notation::FingerprintNotation;
use lookalike_store::{
    DocumentContent, InsertAnswer, LONGEST_ID, ListedDocument, NewDocument, StoredDocument,
};
use serde::de::{Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::verdicts::VerdictJson;
use super::{CappedList, JsonObject, bad_json_problem};
use crate::api::listing::MAX_IDS;
use crate::api::problem::{ApiProblem, ProblemCode, shorten_text};

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

/// A line of an export. The collection decides anew, so `seq`, `of` and `similarity` are read and dropped.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExportedJson {
    #[serde(default, deserialize_with = "deserialize_id")]
    id: Option<String>,
    text: Option<String>,
    fingerprint: Option<String>,
    time_us: i64,
    meta: Option<String>,
    #[serde(rename = "seq")]
    _seq: Option<u64>,
    #[serde(rename = "of")]
    _of: Option<String>,
    #[serde(rename = "similarity")]
    _similarity: Option<f64>,
}

/// The field by which a line of an export is recognised.
#[derive(Deserialize)]
struct ExportMark {
    #[serde(rename = "time_us")]
    _time_us: IgnoredAny,
}

/// A document that was read, before its content is checked.
struct SentDocument {
    id: Option<String>,
    text: Option<String>,
    fingerprint: Option<String>,
    time: Option<Timestamp>,
    meta: Option<String>,
}

/// Parses a document whose fingerprint, if it has one, has `bits` bits.
///
/// # Errors
/// If it is not a valid document.
pub(crate) fn read_document(bytes: &[u8], bits: u32) -> Result<NewDocument, ApiProblem> {
    let missing = || ApiProblem::new(ProblemCode::BadJson, "missing field `id`");
    let mut sent = SentDocument::read_object(bytes)?;
    let id = sent.id.take().ok_or_else(missing)?;
    sent.into_document(id, bits)
}

/// Parses a document to be queried, which needs no id.
///
/// # Errors
/// If it is not a valid document.
pub(crate) fn read_query_document(
    bytes: &[u8],
    bits: u32,
) -> Result<NewDocument<Option<String>>, ApiProblem> {
    let mut sent = SentDocument::read_object(bytes)?;
    let id = sent.id.take();
    sent.into_document(id, bits)
}

impl SentDocument {
    fn read_object(bytes: &[u8]) -> Result<Self, ApiProblem> {
        let sent: Result<JsonObject<InsertJson>, _> = serde_json::from_slice(bytes);
        let error = match sent {
            Ok(JsonObject(sent)) => return Ok(sent.into()),
            Err(error) => error,
        };
        // Only a line that is no document is searched for the mark, so that documents are parsed once.
        let mark: Result<JsonObject<ExportMark>, _> = serde_json::from_slice(bytes);
        if mark.is_err() {
            return Err(bad_json_problem(&error));
        }
        let exported: Result<JsonObject<ExportedJson>, _> = serde_json::from_slice(bytes);
        exported
            .map_err(|error| bad_json_problem(&error))?
            .0
            .try_into()
    }

    fn into_document<Id>(self, id: Id, bits: u32) -> Result<NewDocument<Id>, ApiProblem> {
        let content = match (self.text, self.fingerprint) {
            (Some(text), None) => DocumentContent::Text(text),
            (None, Some(digits)) => DocumentContent::Fingerprint(fingerprint(&digits, bits)?),
            (None, None) => return Err(bad_document("it has neither `text` nor `fingerprint`")),
            (Some(_), Some(_)) => return Err(bad_document("it has both `text` and `fingerprint`")),
        };
        self.meta.as_deref().map_or(Ok(()), check_meta)?;
        Ok(NewDocument {
            id,
            content,
            time: self.time,
            meta: self.meta,
        })
    }
}

impl From<InsertJson<'_>> for SentDocument {
    fn from(sent: InsertJson<'_>) -> Self {
        Self {
            id: sent.id,
            text: sent.text,
            fingerprint: sent.fingerprint,
            time: sent.time,
            meta: sent.meta.map(|meta| meta.get().to_owned()),
        }
    }
}

impl TryFrom<ExportedJson> for SentDocument {
    type Error = ApiProblem;

    fn try_from(line: ExportedJson) -> Result<Self, ApiProblem> {
        if line.time_us as f64 / 1e6 > LATEST_SECONDS {
            return Err(bad_document(format!(
                "the `time_us` {} is after {LATEST_DATE}, the latest that is accepted",
                line.time_us
            )));
        }
        Ok(Self {
            id: line.id,
            text: line.text,
            fingerprint: line.fingerprint,
            time: Some(Timestamp(line.time_us)),
            meta: line.meta,
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
const LATEST_SECONDS: f64 = 253_402_207_200.0;

/// [`LATEST_SECONDS`] as a date.
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
        StatedTime::Seconds(seconds) if seconds > LATEST_SECONDS => return Err(too_far(seconds)),
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

/// A stored document as it is returned.
#[derive(Serialize)]
pub(crate) struct DocumentJson<'a> {
    #[serde(flatten)]
    verdict: VerdictJson<'a>,
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
        let meta = stored.meta.as_deref();
        Self {
            of_gone: stored.of_is_gone,
            ..Self::from_parts(&stored.answer, Some(&stored.content), meta, bits)
        }
    }

    /// Cuts the text behind its first characters.
    pub(crate) fn with_text_cut(mut self, max_characters: Option<usize>) -> Self {
        if let (Some(text), Some(most)) = (self.text, max_characters) {
            let end = text.char_indices().nth(most).map(|(at, _)| at);
            self.text = Some(&text[..end.unwrap_or(text.len())]);
        }
        self
    }

    /// Converts a document of a list, which may be without its text.
    pub(crate) fn from_listed(listed: &'a ListedDocument, bits: u32) -> Self {
        let meta = listed.meta.as_deref();
        Self {
            of_gone: listed.of_is_gone,
            ..Self::from_parts(&listed.answer, listed.content.as_ref(), meta, bits)
        }
    }

    fn from_parts(
        answer: &'a InsertAnswer,
        content: Option<&'a DocumentContent>,
        meta: Option<&str>,
        bits: u32,
    ) -> Self {
        let (text, fingerprint) = match content {
            None => (None, None),
            Some(DocumentContent::Text(text)) => (Some(text.as_str()), None),
            Some(DocumentContent::Fingerprint(code)) => {
                let mut digits = String::new();
                FingerprintNotation::Hex.append_fingerprint(*code, bits, &mut digits);
                (None, Some(digits))
            }
        };
        // An imported document can have a `meta` that is not JSON; it is returned as a string.
        let meta = meta.and_then(|meta| {
            let raw = RawValue::from_string(meta.to_owned());
            raw.or_else(|_| serde_json::value::to_raw_value(meta)).ok()
        });
        Self {
            verdict: VerdictJson::from(answer),
            of_gone: false,
            time: time_to_json(answer.time),
            text,
            fingerprint,
            meta,
        }
    }
}

/// Ids of documents, as a request for several of them has them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct IdListJson {
    ids: CappedList<IdJson, MAX_IDS>,
}

/// A request for several documents.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DocumentsRequestJson {
    ids: CappedList<IdJson, MAX_IDS>,
    characters: Option<usize>,
}

/// Documents that are asked for by their ids.
#[derive(Debug, PartialEq)]
pub(crate) struct DocumentsRequest {
    pub(crate) ids: Vec<String>,
    /// Characters of each text that are answered, from its beginning; all without it.
    pub(crate) max_characters: Option<usize>,
}

/// Parses a request for several documents: an object with the field `ids`, of at most [`MAX_IDS`] ids, and optionally
/// `characters`.
///
/// # Errors
/// As for [`read_ids`].
pub(crate) fn read_documents_request(bytes: &[u8]) -> Result<DocumentsRequest, ApiProblem> {
    let sent: JsonObject<DocumentsRequestJson> =
        serde_json::from_slice(bytes).map_err(|error| bad_json_problem(&error))?;
    Ok(DocumentsRequest {
        ids: check_ids(sent.0.ids)?,
        max_characters: sent.0.characters,
    })
}

/// An id: a string or an integer, as [`deserialize_id`] takes it.
#[derive(Deserialize)]
struct IdJson(#[serde(deserialize_with = "deserialize_id")] Option<String>);

/// Parses an object with the field `ids`, of at most [`MAX_IDS`] ids.
///
/// # Errors
/// If it is not such an object, an id is null, or there are too many.
pub(crate) fn read_ids(bytes: &[u8]) -> Result<Vec<String>, ApiProblem> {
    let sent: JsonObject<IdListJson> =
        serde_json::from_slice(bytes).map_err(|error| bad_json_problem(&error))?;
    check_ids(sent.0.ids)
}

fn check_ids(ids: CappedList<IdJson, MAX_IDS>) -> Result<Vec<String>, ApiProblem> {
    if ids.count > MAX_IDS {
        let detail = format!(
            "the request has {} ids, more than the limit of {MAX_IDS}: send several requests",
            ids.count
        );
        return Err(ApiProblem::new(ProblemCode::TooLarge, detail));
    }
    let named = |(at, id): (usize, IdJson)| {
        id.0.ok_or_else(|| {
            let detail =
                format!("entry {at} of `ids` is null: give an id, a string or a whole number");
            ApiProblem::new(ProblemCode::BadJson, detail)
        })
    };
    ids.first.into_iter().enumerate().map(named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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
            (r#"{"id":"a","text":"b","seq":1}"#, "unknown field `seq`"),
            (r#"{"id":"a","text":"b","of":"c"}"#, "unknown field `of`"),
            (
                r#"{"id":"a","text":"b","similarity":1}"#,
                "unknown field `similarity`",
            ),
            (
                r#"{"id":"a","text":"b","time":1,"time_us":1}"#,
                "unknown field `time`",
            ),
            (
                r#"{"id":"a","text":"b","time_us":253402300799000000}"#,
                LATEST_DATE,
            ),
            (
                r#"{"id":"a","text":"b","time_us":1,"meta":{}}"#,
                "expected a string",
            ),
            (
                r#"{"id":"a","text":"b","time_us":1,"meta":"{"}"#,
                "of its `meta`",
            ),
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
    fn id_lists_are_read_strictly() {
        let read = |json: &str| read_ids(json.as_bytes()).map_err(|problem| problem.detail);
        let list = |count: usize| format!(r#"{{"ids":[{}1]}}"#, "1,".repeat(count - 1));
        assert_eq!(read(&list(MAX_IDS)).unwrap().len(), MAX_IDS);
        assert_eq!(read(r#"{"ids":["a",7,"a"]}"#).unwrap(), ["a", "7", "a"]);
        assert!(read(r#"{"ids":[]}"#).unwrap().is_empty());
        for (json, said) in [
            (
                &list(MAX_IDS + 3)[..],
                "1003 ids, more than the limit of 1000",
            ),
            (r#"{"ids":["a",null]}"#, "entry 1 of `ids` is null"),
            (r#"{"ids":[true]}"#, "an id, a string or a whole number"),
            (r#"{"ids":[1.5]}"#, "give it as a string"),
            (r#"{"ids":"a"}"#, "expected a list"),
            (r#"{"ids":[],"id":"a"}"#, "unknown field `id`"),
            (r#"{"ids":[],"ids":[]}"#, "duplicate field `ids`"),
            (r#"["a"]"#, "expected an object"),
            ("{}", "missing field `ids`"),
        ] {
            let refused = read(json).unwrap_err();
            assert!(refused.contains(said), "{json}: {refused}");
        }
    }

    #[test]
    fn documents_are_asked_for_with_beginnings_of_their_texts() {
        let read = |json: &str| read_documents_request(json.as_bytes());
        let asked = |max_characters| DocumentsRequest {
            ids: vec!["a".to_owned()],
            max_characters,
        };
        assert_eq!(read(r#"{"ids":["a"]}"#).unwrap(), asked(None));
        let cut = read(r#"{"ids":["a"],"characters":3}"#).unwrap();
        assert_eq!(cut, asked(Some(3)));
        let refused = read(r#"{"ids":["a"],"characters":-1}"#).unwrap_err();
        assert!(refused.detail.contains("-1"), "{}", refused.detail);
        assert!(read_ids(br#"{"ids":["a"],"characters":3}"#).is_err());
    }

    #[test]
    fn metadata_must_be_portable_json() {
        let with = |meta: &str| {
            let json = format!(r#"{{"id":"a","text":"b","meta":{meta}}}"#);
            read_document(json.as_bytes(), 64).map(|document| document.meta)
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
    fn query_documents_need_no_id() {
        let json = r#"{"text":"a"}"#;
        assert!(read_document(json.as_bytes(), 64).is_err());
        let asked = read_query_document(json.as_bytes(), 64).unwrap();
        assert_eq!(asked.id, None);
        let asked = read_query_document(br#"{"id":7,"text":"a"}"#, 64).unwrap();
        assert_eq!(asked.id.as_deref(), Some("7"));
    }
}
