//! JSON of requests and answers, one file per resource.
//!
//! Unknown and duplicate fields are refused by name.

pub(crate) mod documents;
pub(crate) mod meta_filter;
pub(crate) mod preference;
pub(crate) mod settings;
pub(crate) mod verdicts;

use std::fmt;
use std::marker::PhantomData;

use lookalike_options::match_options::choose_by_name;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::api::problem::{ApiProblem, ProblemCode, shorten_text};

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

pub(crate) fn bad_settings(what: impl fmt::Display) -> ApiProblem {
    ApiProblem::new(ProblemCode::BadSettings, what.to_string())
}
