//! The types of the columns that JSON rows become.
//!
//! | values of a field, in all kept rows | type |
//! |---|---|
//! | `true`, `false` | `Boolean` |
//! | whole numbers | `Int64`; `UInt64` if one is above 2^63 − 1 and none is negative |
//! | numbers, one of them with a fraction or an exponent | `Float64`, if the whole ones are exact in it |
//! | strings | `Utf8` |
//! | lists | `List` of the type of all of their items |
//! | objects | `Struct` with all members that one of them has, in the order in which they occur |
//! | only `null`, or only empty lists | `Null`, a list of `Null` |
//!
//! A missing field and `null` are both a null. Values of different kinds have no common type: that is an error, which
//! names the field and both rows.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields};

use super::json_value::JsonValue;

/// Largest number of fields of an object. More of them are data: keys that differ from row to row.
const MAX_FIELDS: usize = 10_000;

/// Whole numbers up to this are exact in 64-bit floating-point numbers: 2^53.
const MAX_EXACT: u64 = 1 << 53;

/// The type of the values of a field that were seen.
#[derive(Debug, Default)]
pub(super) struct JsonType {
    shape: JsonShape,
    /// The first row with this shape, as an index in the row set.
    row: usize,
}

#[derive(Debug, Default)]
enum JsonShape {
    #[default]
    Null,
    Bool,
    Number(NumberRange),
    Text,
    List(Box<JsonType>),
    Object(ObjectType),
}

/// For each property of numbers that matters, the first row with one that has it.
#[derive(Debug, Default, Clone, Copy)]
struct NumberRange {
    fraction: Option<usize>,
    /// Above the largest signed number of 64 bits.
    large: Option<usize>,
    negative: Option<usize>,
    /// A whole number beyond [`MAX_EXACT`].
    inexact: Option<usize>,
}

#[derive(Debug, Default)]
struct ObjectType {
    fields: Vec<(String, JsonType)>,
    places: HashMap<String, usize>,
}

/// Values without a common type.
#[derive(Debug)]
pub(super) struct TypeConflict {
    /// Names from the inside to the outside; an empty one stands for the items of a list.
    path: Vec<String>,
    /// Kinds of values, each with the index of a row that has it in the row set.
    pub(super) seen: Vec<(&'static str, usize)>,
}

impl TypeConflict {
    fn new(seen: Vec<(&'static str, usize)>) -> Self {
        Self {
            path: Vec::new(),
            seen,
        }
    }

    fn within(mut self, name: &str) -> Self {
        self.path.push(name.to_owned());
        self
    }

    /// Returns the path of the field, for example `meta.tags[]`.
    pub(super) fn field_path(&self) -> String {
        let mut path = String::new();
        for name in self.path.iter().rev() {
            if name.is_empty() {
                path.push_str("[]");
            } else {
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(name);
            }
        }
        path
    }
}

impl JsonType {
    /// Adds a value of a row.
    ///
    /// # Errors
    /// If it has no common type with the values before it.
    pub(super) fn add_value(
        &mut self,
        value: &JsonValue<'_>,
        row: usize,
    ) -> Result<(), TypeConflict> {
        if matches!(self.shape, JsonShape::Null) {
            self.row = row;
        }
        match (&mut self.shape, value) {
            (_, JsonValue::Null) => Ok(()),
            (shape @ JsonShape::Null, _) => {
                *shape = JsonShape::of_value(value);
                match value {
                    JsonValue::Bool(_) | JsonValue::Text(_) => Ok(()),
                    _ => self.add_value(value, row),
                }
            }
            (JsonShape::Bool, JsonValue::Bool(_)) | (JsonShape::Text, JsonValue::Text(_)) => Ok(()),
            (JsonShape::Number(range), JsonValue::Integer(number)) => {
                range.add_integer(*number, row);
                Ok(())
            }
            (JsonShape::Number(range), JsonValue::Unsigned(_)) => {
                range.large.get_or_insert(row);
                range.inexact.get_or_insert(row);
                Ok(())
            }
            (JsonShape::Number(range), JsonValue::Float(_)) => {
                range.fraction.get_or_insert(row);
                Ok(())
            }
            (JsonShape::List(items), JsonValue::List(values)) => values
                .iter()
                .try_for_each(|value| items.add_value(value, row))
                .map_err(|conflict| conflict.within("")),
            (JsonShape::Object(object), JsonValue::Object(members)) => {
                members.iter().try_for_each(|(name, value)| {
                    let field = object.field(name, row)?;
                    field
                        .add_value(value, row)
                        .map_err(|error| error.within(name))
                })
            }
            (shape, value) => Err(TypeConflict::new(vec![
                (shape.kind_name(), self.row),
                (JsonShape::of_value(value).kind_name(), row),
            ])),
        }
    }

    /// Adds the values of later rows.
    ///
    /// # Errors
    /// If they have no common type with those before them.
    pub(super) fn merge_later(&mut self, later: Self) -> Result<(), TypeConflict> {
        match (&mut self.shape, later.shape) {
            (_, JsonShape::Null) => Ok(()),
            (JsonShape::Null, shape) => {
                *self = Self {
                    shape,
                    row: later.row,
                };
                Ok(())
            }
            (JsonShape::Bool, JsonShape::Bool) | (JsonShape::Text, JsonShape::Text) => Ok(()),
            (JsonShape::Number(range), JsonShape::Number(other)) => {
                range.merge_later(other);
                Ok(())
            }
            (JsonShape::List(items), JsonShape::List(others)) => items
                .merge_later(*others)
                .map_err(|conflict| conflict.within("")),
            (JsonShape::Object(object), JsonShape::Object(other)) => {
                other.fields.into_iter().try_for_each(|(name, later)| {
                    let field = object.field(&name, later.row)?;
                    field
                        .merge_later(later)
                        .map_err(|error| error.within(&name))
                })
            }
            (shape, other) => Err(TypeConflict::new(vec![
                (shape.kind_name(), self.row),
                (other.kind_name(), later.row),
            ])),
        }
    }

    /// Returns the columns, if the values are objects; none if there was no value.
    ///
    /// # Errors
    /// If numbers have no common type.
    pub(super) fn to_fields(&self) -> Result<Fields, TypeConflict> {
        match &self.shape {
            JsonShape::Object(object) => object.to_fields(),
            _ => Ok(Fields::empty()),
        }
    }

    fn to_data_type(&self) -> Result<DataType, TypeConflict> {
        Ok(match &self.shape {
            JsonShape::Null => DataType::Null,
            JsonShape::Bool => DataType::Boolean,
            JsonShape::Number(range) => range.to_data_type()?,
            JsonShape::Text => DataType::Utf8,
            JsonShape::List(items) => {
                let item = items.to_data_type().map_err(|error| error.within(""))?;
                DataType::List(Arc::new(Field::new_list_field(item, true)))
            }
            JsonShape::Object(object) => DataType::Struct(object.to_fields()?),
        })
    }
}

impl JsonShape {
    /// Returns the shape of a value without what is within it.
    fn of_value(value: &JsonValue<'_>) -> Self {
        match value {
            JsonValue::Null => Self::Null,
            JsonValue::Bool(_) => Self::Bool,
            JsonValue::Integer(_) | JsonValue::Unsigned(_) | JsonValue::Float(_) => {
                Self::Number(NumberRange::default())
            }
            JsonValue::Text(_) => Self::Text,
            JsonValue::List(_) => Self::List(Box::default()),
            JsonValue::Object(_) => Self::Object(ObjectType::default()),
        }
    }

    fn kind_name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool => "a boolean",
            Self::Number(_) => "a number",
            Self::Text => "a string",
            Self::List(_) => "a list",
            Self::Object(_) => "an object",
        }
    }
}

impl NumberRange {
    fn add_integer(&mut self, number: i64, row: usize) {
        if number < 0 {
            self.negative.get_or_insert(row);
        }
        if number.unsigned_abs() > MAX_EXACT {
            self.inexact.get_or_insert(row);
        }
    }

    fn merge_later(&mut self, later: Self) {
        self.fraction = self.fraction.or(later.fraction);
        self.large = self.large.or(later.large);
        self.negative = self.negative.or(later.negative);
        self.inexact = self.inexact.or(later.inexact);
    }

    fn to_data_type(self) -> Result<DataType, TypeConflict> {
        match self {
            Self {
                fraction: Some(fraction),
                inexact: Some(inexact),
                ..
            } => Err(TypeConflict::new(vec![
                ("a number with a fraction", fraction),
                (
                    "a whole number beyond 2^53, which a fraction cannot be beside without loss",
                    inexact,
                ),
            ])),
            Self {
                fraction: Some(_), ..
            } => Ok(DataType::Float64),
            Self {
                large: Some(large),
                negative: Some(negative),
                ..
            } => Err(TypeConflict::new(vec![
                ("a negative number", negative),
                ("a number above 2^63 − 1", large),
            ])),
            Self { large: Some(_), .. } => Ok(DataType::UInt64),
            _ => Ok(DataType::Int64),
        }
    }
}

impl ObjectType {
    /// Returns the type of a field, which is added if it is new.
    fn field(&mut self, name: &str, row: usize) -> Result<&mut JsonType, TypeConflict> {
        let place = match self.places.get(name) {
            Some(&place) => place,
            None if self.fields.len() == MAX_FIELDS => {
                return Err(TypeConflict::new(vec![(
                    "an object with more than 10000 different fields",
                    row,
                )]));
            }
            None => {
                let place = self.fields.len();
                self.places.insert(name.to_owned(), place);
                self.fields.push((name.to_owned(), JsonType::default()));
                place
            }
        };
        Ok(&mut self.fields[place].1)
    }

    fn to_fields(&self) -> Result<Fields, TypeConflict> {
        let field = |(name, json): &(String, JsonType)| {
            let data_type = json.to_data_type().map_err(|error| error.within(name))?;
            Ok(Field::new(name, data_type, true))
        };
        self.fields.iter().map(field).collect()
    }
}
