//! JSON of requests and answers, one file per resource.
//!
//! Unknown and duplicate fields are refused by name.

pub(crate) mod decisions;
pub(crate) mod documents;
pub(crate) mod meta_filter;
pub(crate) mod preference;
pub(crate) mod settings;
pub(crate) mod verdicts;

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;

use lookalike_options::match_options::choose_by_name;
use serde::de::value::MapAccessDeserializer;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::api::problem::{ApiProblem, ProblemCode, shorten_text};

/// Returns the problem of malformed JSON, with the position of the mistake.
fn bad_json_problem(error: &serde_json::Error) -> ApiProblem {
    let (message, column) = (error.to_string(), error.column());
    // Each line of a bulk request is parsed alone, so serde always says line 1; the real line is a separate field.
    let detail = match message.strip_suffix(&format!(" at line 1 column {column}")) {
        Some(complaint) => format!("{complaint} at column {column}"),
        None => message,
    };
    ApiProblem::new(ProblemCode::BadJson, detail)
}

/// A value given as a JSON object. Without this wrapper serde also accepts an array of the fields in order.
pub(crate) struct JsonObject<T>(pub(crate) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for JsonObject<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ObjectVisitor<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
            type Value = T;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<T, A::Error> {
                T::deserialize(MapAccessDeserializer::new(fields))
            }
        }
        deserializer
            .deserialize_map(ObjectVisitor(PhantomData))
            .map(Self)
    }
}

/// The most values of a body that becomes a tree, lists and objects included. An object counts as
/// [`VALUES_OF_OBJECT`]. So the tree takes a few megabytes beside its texts.
const MAX_VALUES: usize = 100_000;

/// Number of values as which an object counts: one as every value, and 20 more for the memory of its map with a few
/// fields.
const VALUES_OF_OBJECT: usize = 21;

fn too_many_values() -> ApiProblem {
    let detail = format!(
        "the JSON has more values than the limit of {MAX_VALUES}, of which an object counts as {VALUES_OF_OBJECT}: send \
         several requests"
    );
    ApiProblem::new(ProblemCode::TooLarge, detail)
}

/// Parses any JSON value, and refuses one that has too many values or an object with a duplicate field.
struct BoundedValueParser<'a> {
    /// Values for which there is room; `None` once there were more.
    room: &'a Cell<Option<usize>>,
}

impl BoundedValueParser<'_> {
    fn take_room<E: serde::de::Error>(&self, values: usize) -> Result<(), E> {
        let left = self.room.get().and_then(|room| room.checked_sub(values));
        self.room.set(left);
        match left {
            Some(_) => Ok(()),
            // Replaced by `too_many_values`.
            None => Err(E::custom("too many values")),
        }
    }
}

impl<'de> DeserializeSeed<'de> for BoundedValueParser<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.take_room(1)?;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for BoundedValueParser<'_> {
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
        let (room, mut list) = (self.room, Vec::new());
        while let Some(value) = values.next_element_seed(BoundedValueParser { room })? {
            list.push(value);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut given: A) -> Result<Value, A::Error> {
        self.take_room(VALUES_OF_OBJECT - 1)?;
        let (room, mut fields) = (self.room, Map::new());
        while let Some(name) = given.next_key::<String>()? {
            if fields.contains_key(&name) {
                let shown = shorten_text(&name);
                return Err(A::Error::custom(format!("duplicate field `{shown}`")));
            }
            fields.insert(name, given.next_value_seed(BoundedValueParser { room })?);
        }
        Ok(fields.into())
    }
}

/// A list of which only the first values are kept, so that a long one takes no memory before it is refused.
pub(crate) struct CappedList<T, const MOST: usize> {
    /// The first values, at most `MOST`.
    pub(crate) first: Vec<T>,
    /// Number of all values.
    pub(crate) count: usize,
}

impl<'de, T: Deserialize<'de>, const MOST: usize> Deserialize<'de> for CappedList<T, MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FirstValues<T, const MOST: usize>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>, const MOST: usize> Visitor<'de> for FirstValues<T, MOST> {
            type Value = CappedList<T, MOST>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Self::Value, A::Error> {
                let mut first = Vec::new();
                while first.len() < MOST
                    && let Some(value) = values.next_element()?
                {
                    first.push(value);
                }
                let mut count = first.len();
                while values.next_element::<IgnoredAny>()?.is_some() {
                    count += 1;
                }
                Ok(CappedList { first, count })
            }
        }
        deserializer.deserialize_seq(FirstValues(PhantomData))
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
        let room = Cell::new(Some(MAX_VALUES));
        let mut parser = serde_json::Deserializer::from_slice(bytes);
        let value = BoundedValueParser { room: &room }.deserialize(&mut parser);
        let value = value.and_then(|value| parser.end().map(|()| value));
        let is_full = room.get().is_none();
        let refused = |error| {
            if is_full {
                too_many_values()
            } else {
                bad_json_problem(&error)
            }
        };
        match value.map_err(refused)? {
            Value::Object(fields) => Ok(Self(fields)),
            _ => Err(ApiProblem::new(
                ProblemCode::BadJson,
                "the JSON is not an object",
            )),
        }
    }

    /// Returns `true` if a field is present, even if it is null.
    pub(crate) fn has_field(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Returns `true` if a field is null.
    pub(crate) fn is_null(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(Value::is_null)
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

    /// Takes a field whose value is an object, if it is present and not null.
    ///
    /// # Errors
    /// If it is not an object.
    pub(crate) fn take_object(&mut self, name: &str) -> Result<Option<Self>, ApiProblem> {
        Ok(self.take_field(name)?.map(Self))
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
}

pub(crate) fn bad_settings(complaint: impl fmt::Display) -> ApiProblem {
    ApiProblem::new(ProblemCode::BadSettings, complaint.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A body with very many values is refused before they are in memory.
    #[test]
    fn trees_are_bounded() {
        let list = |count: usize| format!(r#"{{"a":[{}0]}}"#, "0,".repeat(count - 1));
        // The list is a value too.
        let most = MAX_VALUES - VALUES_OF_OBJECT - 1;
        assert!(JsonFields::read_fields(list(most).as_bytes()).is_ok());
        let refused = JsonFields::read_fields(list(most + 1).as_bytes());
        assert!(refused.err().unwrap().detail.contains("limit of 100000"));
        let objects = format!(r#"{{"a":[{}{{}}]}}"#, r#"{"":0},"#.repeat(5000));
        let refused = JsonFields::read_fields(objects.as_bytes());
        assert_eq!(refused.err().unwrap().code, ProblemCode::TooLarge);
        let behind = JsonFields::read_fields(br#"{"a":1} x"#);
        assert!(behind.err().unwrap().detail.contains("trailing characters"));
    }
}
