//! Records which wanted fields occur in the rows, so that a run is refused if some wanted field is in no row. Otherwise
//! such a run would replace a result with an empty one.
//!
//! Only JSON needs this, because the columns of other formats are known before the first row. All
//! threads record the rows that they parse, until each wanted field has been seen once. From then on a
//! row costs one atomic load. The question is answered after the last row: no sample from the beginning
//! can tell that not a single row has a field.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use serde::de::{DeserializeSeed, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::row_values::{FieldPlan, RowValues, ValueKind};
use super::{IdField, WantedFields};

/// Rows from which field names are collected.
const SAMPLED_ROWS: usize = 20;

/// Bytes of rows from which field names are collected.
const SAMPLED_BYTES: usize = 256 << 10;

/// Largest number of collected names.
const MOST_NAMES: usize = 40;

/// Largest depth of nested objects from which names are collected.
const MOST_DEPTH: usize = 3;

/// Common names of the text field, and of the id field, in order of preference.
const TEXT_NAMES: [&str; 13] = [
    "text",
    "content",
    "body",
    "article",
    "message",
    "raw_content",
    "document",
    "abstract",
    "sentence",
    "post",
    "description",
    "summary",
    "title",
];
const ID_NAMES: [&str; 9] = [
    "id",
    "_id",
    "uid",
    "uuid",
    "docid",
    "doc_id",
    "document_id",
    "key",
    "url",
];

/// The wanted fields that rows have had so far.
pub(super) struct FieldCensus {
    /// The wanted fields, each once, with what they are wanted for.
    wanted: Vec<(String, &'static str)>,
    present: Vec<AtomicBool>,
    is_complete: AtomicBool,
    /// Rows recorded; no longer counted one by one once the census is complete.
    rows: AtomicU64,
    sample: Mutex<FieldSample>,
}

/// Field names in the first rows.
#[derive(Debug, Default)]
struct FieldSample {
    /// Each name in order of appearance, with the total bytes of its strings.
    names: Vec<(String, usize)>,
    rows: usize,
    bytes: usize,
}

/// A wanted field that no row has.
pub(super) struct AbsentField {
    pub(super) name: String,
    pub(super) role: &'static str,
    pub(super) rows: u64,
}

impl FieldCensus {
    pub(super) fn new(fields: &WantedFields) -> Self {
        let id = match &fields.id {
            IdField::Named(name) => Some(name.as_str()),
            IdField::Default | IdField::RowNumber => None,
        };
        let plan = FieldPlan::new(fields, id);
        let wanted: Vec<_> = (plan.names.iter().enumerate())
            .filter(|&(slot, _)| !plan.may_be_absent(slot))
            .map(|(slot, name)| (name.clone(), plan.slot_role(slot)))
            .collect();
        Self {
            present: wanted.iter().map(|_| AtomicBool::new(false)).collect(),
            is_complete: AtomicBool::new(wanted.is_empty()),
            wanted,
            rows: AtomicU64::new(0),
            sample: Mutex::default(),
        }
    }

    /// Returns the index of each field of a plan among the wanted fields.
    pub(super) fn census_indices(&self, plan: &FieldPlan) -> Vec<Option<usize>> {
        let index = |name: &String| self.wanted.iter().position(|(wanted, _)| wanted == name);
        plan.names.iter().map(index).collect()
    }

    /// Records a row that could be parsed. `census_indices` are the [indices](Self::census_indices) of its plan.
    pub(super) fn observe_row(&self, census_indices: &[Option<usize>], values: &RowValues) {
        if self.is_complete.load(Ordering::Relaxed) {
            return;
        }
        self.rows.fetch_add(1, Ordering::Relaxed);
        for (slot, index) in values.slots.iter().zip(census_indices) {
            if let Some(index) = index.filter(|_| slot.kind != ValueKind::Missing) {
                self.present[index].store(true, Ordering::Relaxed);
            }
        }
        if self
            .present
            .iter()
            .all(|field| field.load(Ordering::Relaxed))
        {
            self.mark_complete();
        }
    }

    /// Returns for each wanted field whether a row has had it so far; an empty list if no row was recorded.
    pub(super) fn seen_fields(&self) -> Vec<bool> {
        let is_complete = self.is_complete.load(Ordering::Relaxed);
        if !is_complete && self.rows.load(Ordering::Relaxed) == 0 {
            return Vec::new();
        }
        let present = self.present.iter();
        present
            .map(|present| is_complete || present.load(Ordering::Relaxed))
            .collect()
    }

    /// Records rows that are not parsed, because an earlier run has parsed them. `fields_seen` are its
    /// [`seen_fields`](Self::seen_fields).
    pub(super) fn add_stored_rows(&self, row_count: u64, fields_seen: &[bool]) {
        if fields_seen.is_empty() {
            return;
        }
        self.rows.fetch_add(row_count, Ordering::Relaxed);
        let fields = self.present.iter().zip(fields_seen);
        for (present, _) in fields.filter(|(_, is_seen)| **is_seen) {
            present.store(true, Ordering::Relaxed);
        }
        if self
            .present
            .iter()
            .all(|field| field.load(Ordering::Relaxed))
        {
            self.mark_complete();
        }
    }

    /// Marks every wanted field as present: each was seen in a row, or the columns show them.
    pub(super) fn mark_complete(&self) {
        self.is_complete.store(true, Ordering::Relaxed);
    }

    /// Returns the first wanted field that no row has had so far, or `None` without rows.
    pub(super) fn first_absent(&self) -> Option<AbsentField> {
        let rows = self.rows.load(Ordering::Relaxed);
        if rows == 0 || self.is_complete.load(Ordering::Relaxed) {
            return None;
        }
        let absent = (self.present.iter()).position(|field| !field.load(Ordering::Relaxed))?;
        let (name, role) = &self.wanted[absent];
        Some(AbsentField {
            name: name.clone(),
            role,
            rows,
        })
    }

    /// Collects field names until the sample is full.
    pub(super) fn sample_rows(&self, rows: impl Iterator<Item = String>) {
        let mut sample = self.sample.lock().unwrap_or_else(PoisonError::into_inner);
        if sample.rows >= SAMPLED_ROWS || sample.bytes >= SAMPLED_BYTES {
            return;
        }
        for row in rows {
            sample.bytes += row.len();
            let mut deserializer = serde_json::Deserializer::from_str(&row);
            let names = NameCollector {
                sample: &mut sample,
                prefix: "",
                depth: 1,
            };
            let is_object = names.deserialize(&mut deserializer).is_ok();
            sample.rows += usize::from(is_object);
            if sample.rows >= SAMPLED_ROWS || sample.bytes >= SAMPLED_BYTES {
                break;
            }
        }
    }

    /// Describes the fields of the first rows, with the one that was probably meant.
    pub(super) fn describe_fields(&self, wanted: &str, role: &str) -> String {
        let sample = self.sample.lock().unwrap_or_else(PoisonError::into_inner);
        if sample.names.is_empty() {
            return "they have no field at all".to_owned();
        }
        let names: Vec<_> = sample.names.iter().map(|(name, _)| &**name).collect();
        let longest = sample.names.iter().filter(|(_, bytes)| *bytes > 0);
        let longest = longest.max_by_key(|(_, bytes)| *bytes);
        let likely = likely_field(wanted, role, &names)
            .or_else(|| longest.filter(|_| role == "text").map(|(name, _)| &**name));
        let likely = likely.map_or_else(String::new, |name| format!("; perhaps `{name}` is meant"));
        format!("they have `{}`{likely}", names.join("`, `"))
    }
}

/// Returns the end of a sentence that suggests the field that was probably meant, or an empty string.
pub(super) fn suggest_field<'a>(
    wanted: &str,
    role: &str,
    names: impl IntoIterator<Item = &'a str>,
) -> String {
    let names: Vec<_> = names.into_iter().collect();
    let likely = likely_field(wanted, role, &names);
    likely.map_or_else(String::new, |name| format!("; perhaps `{name}` is meant"))
}

/// Returns the field that was probably meant by a name that does not exist: one that is spelled similarly, one with the
/// same name in a nested object, or one that is common for this role.
fn likely_field<'a>(wanted: &str, role: &str, names: &[&'a str]) -> Option<&'a str> {
    let plain = |name: &str| -> Vec<char> {
        let letters = name.chars().filter(|letter| letter.is_alphanumeric());
        letters.flat_map(char::to_lowercase).collect()
    };
    let last = |name: &str| plain(name.rsplit('.').next().unwrap_or(name));
    let own = plain(wanted);
    let same = names.iter().find(|name| plain(name) == own);
    let nested = || names.iter().find(|name| last(name) == last(wanted));
    let alike = || {
        let distance = |name: &&&str| edit_distance(&plain(name), &own);
        let nearest = names.iter().min_by_key(distance);
        nearest.filter(|name| 3 * distance(name) <= own.len() && own.len() > 2)
    };
    let usual = || {
        let usual: &[&str] = match role {
            "text" => &TEXT_NAMES,
            "an id" => &ID_NAMES,
            _ => &[],
        };
        let has_name = |usual: &&str| names.iter().find(|name| last(name) == plain(usual));
        usual.iter().find_map(has_name)
    };
    same.or_else(nested).or_else(alike).or_else(usual).copied()
}

/// Returns the Levenshtein distance between two names.
fn edit_distance(one: &[char], other: &[char]) -> usize {
    let mut before: Vec<usize> = (0..=other.len()).collect();
    for (row, a) in one.iter().enumerate() {
        let mut diagonal = before[0];
        before[0] = row + 1;
        for (column, b) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(a != b);
            diagonal = before[column + 1];
            before[column + 1] = replaced.min(diagonal + 1).min(before[column] + 1);
        }
    }
    before[other.len()]
}

/// Collects the names of an object's fields; names in nested objects are joined by dots.
struct NameCollector<'a> {
    sample: &'a mut FieldSample,
    prefix: &'a str,
    depth: usize,
}

impl<'de> DeserializeSeed<'de> for NameCollector<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for NameCollector<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some((key, value)) = map.next_entry::<String, &RawValue>()? {
            let name = format!("{}{key}", self.prefix);
            let value = value.get();
            if value.starts_with('{') && self.depth < MOST_DEPTH {
                let mut deserializer = serde_json::Deserializer::from_str(value);
                let inner = NameCollector {
                    sample: &mut *self.sample,
                    prefix: &format!("{name}."),
                    depth: self.depth + 1,
                };
                inner
                    .deserialize(&mut deserializer)
                    .map_err(serde::de::Error::custom)?;
                continue;
            }
            if value.starts_with('[') && self.depth < MOST_DEPTH {
                // The first element shows the fields of a list of objects.
                let elements: Vec<&RawValue> =
                    serde_json::from_str(value).map_err(serde::de::Error::custom)?;
                let first = elements.first().map(|first| first.get());
                if let Some(first) = first.filter(|first| first.starts_with('{')) {
                    let mut deserializer = serde_json::Deserializer::from_str(first);
                    let inner = NameCollector {
                        sample: &mut *self.sample,
                        prefix: &format!("{name}."),
                        depth: self.depth + 1,
                    };
                    inner
                        .deserialize(&mut deserializer)
                        .map_err(serde::de::Error::custom)?;
                    continue;
                }
            }
            let bytes = if value.starts_with('"') {
                value.len()
            } else {
                0
            };
            let names = &mut self.sample.names;
            match names.iter().position(|(known, _)| *known == name) {
                Some(at) => names[at].1 += bytes,
                None if names.len() < MOST_NAMES => names.push((name, bytes)),
                None => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn likely_field_is_suggested() {
        let cases: [(&str, &str, &[&str], Option<&str>); 9] = [
            ("content", "text", &["id", "title", "body"], Some("body")),
            ("Text", "text", &["id", "body", "text"], Some("text")),
            ("txet", "text", &["id", "text_1"], None),
            ("bodi", "text", &["text", "body"], Some("body")),
            (
                "text",
                "text",
                &["meta.lang", "meta.text"],
                Some("meta.text"),
            ),
            ("key", "an id", &["body", "docid"], Some("docid")),
            ("part", "a single value", &["text", "parts"], Some("parts")),
            ("site", "a single value", &["text", "body"], None),
            ("text", "text", &[], None),
        ];
        for (wanted, role, names, expected) in cases {
            assert_eq!(likely_field(wanted, role, names), expected, "{wanted}");
        }
    }

    #[test]
    fn field_names_keep_order_with_nested_ones() {
        let fields = WantedFields {
            text: vec!["content".to_owned()],
            ..WantedFields::default()
        };
        let census = FieldCensus::new(&fields);
        assert!(census.first_absent().is_none());
        let rows = [
            r#"{"z": 1, "a": {"b": "x"}, "note": "short"}"#,
            "no JSON",
            r#"{"z": 1, "long": "a much longer string"}"#,
        ];
        census.sample_rows(rows.into_iter().map(str::to_owned));
        assert_eq!(
            census.describe_fields("content", "text"),
            "they have `z`, `a.b`, `note`, `long`; perhaps `long` is meant"
        );
    }
}
