//! Columns built from JSON values whose types are known.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::builder::{
    BooleanBuilder, Float64Builder, Int64Builder, StringBuilder, UInt64Builder,
};
use arrow_array::{ArrayRef, ListArray, NullArray, RecordBatch, RecordBatchOptions, StructArray};
use arrow_buffer::{NullBufferBuilder, OffsetBuffer};
use arrow_schema::{ArrowError, DataType, FieldRef, Fields, SchemaRef};

use super::json_value::{JsonMember, JsonValue};

/// A value that does not have the type of its column, because the input has changed.
pub(super) struct UnexpectedType;

/// Builds batches of rows.
pub(super) struct JsonBatchBuilder {
    schema: SchemaRef,
    object: ObjectBuilder,
}

impl JsonBatchBuilder {
    pub(super) fn new(schema: &SchemaRef) -> Self {
        Self {
            schema: Arc::clone(schema),
            object: ObjectBuilder::new(schema.fields()),
        }
    }

    /// Appends a row.
    pub(super) fn append_row(&mut self, row: &JsonValue<'_>) -> Result<(), UnexpectedType> {
        match row {
            JsonValue::Object(members) => self.object.append_members(members),
            _ => Err(UnexpectedType),
        }
    }

    /// Returns the rows and begins again.
    pub(super) fn finish_batch(&mut self) -> Result<RecordBatch, ArrowError> {
        let rows = std::mem::take(&mut self.object.length);
        let columns = self.object.finish_columns()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)
    }
}

enum JsonColumnBuilder {
    Nulls(usize),
    Bools(BooleanBuilder),
    Integers(Int64Builder),
    Unsigned(UInt64Builder),
    Floats(Float64Builder),
    Texts(StringBuilder),
    Lists {
        field: FieldRef,
        /// Number of items of each row.
        lengths: Vec<usize>,
        valid: NullBufferBuilder,
        items: Box<JsonColumnBuilder>,
    },
    Objects {
        fields: Fields,
        valid: NullBufferBuilder,
        object: Box<ObjectBuilder>,
    },
}

/// Builds the columns of objects.
struct ObjectBuilder {
    places: HashMap<String, usize>,
    columns: Vec<JsonColumnBuilder>,
    /// For each column, the number of objects after the last one that has it.
    filled: Vec<usize>,
    length: usize,
}

impl ObjectBuilder {
    fn new(fields: &Fields) -> Self {
        let places = fields.iter().enumerate();
        Self {
            places: places
                .map(|(at, field)| (field.name().clone(), at))
                .collect(),
            columns: (fields.iter())
                .map(|field| JsonColumnBuilder::new(field.data_type()))
                .collect(),
            filled: vec![0; fields.len()],
            length: 0,
        }
    }

    fn append_members(&mut self, members: &[JsonMember<'_>]) -> Result<(), UnexpectedType> {
        self.length += 1;
        for (name, value) in members {
            let &place = self.places.get(&**name).ok_or(UnexpectedType)?;
            self.columns[place].append_value(value)?;
            self.filled[place] = self.length;
        }
        self.fill_missing();
        Ok(())
    }

    fn append_null(&mut self) {
        self.length += 1;
        self.fill_missing();
    }

    fn fill_missing(&mut self) {
        for (column, filled) in self.columns.iter_mut().zip(&mut self.filled) {
            if *filled < self.length {
                column.append_null();
                *filled = self.length;
            }
        }
    }

    fn finish_columns(&mut self) -> Result<Vec<ArrayRef>, ArrowError> {
        self.filled.fill(0);
        self.length = 0;
        self.columns
            .iter_mut()
            .map(JsonColumnBuilder::finish_array)
            .collect()
    }
}

impl JsonColumnBuilder {
    fn new(data_type: &DataType) -> Self {
        match data_type {
            DataType::Boolean => Self::Bools(BooleanBuilder::new()),
            DataType::Int64 => Self::Integers(Int64Builder::new()),
            DataType::UInt64 => Self::Unsigned(UInt64Builder::new()),
            DataType::Float64 => Self::Floats(Float64Builder::new()),
            DataType::Utf8 => Self::Texts(StringBuilder::new()),
            DataType::List(field) => Self::Lists {
                field: Arc::clone(field),
                lengths: Vec::new(),
                valid: NullBufferBuilder::new(0),
                items: Box::new(Self::new(field.data_type())),
            },
            DataType::Struct(fields) => Self::Objects {
                fields: fields.clone(),
                valid: NullBufferBuilder::new(0),
                object: Box::new(ObjectBuilder::new(fields)),
            },
            // The types of JSON have no others.
            _ => Self::Nulls(0),
        }
    }

    fn append_value(&mut self, value: &JsonValue<'_>) -> Result<(), UnexpectedType> {
        match (self, value) {
            (column, JsonValue::Null) => column.append_null(),
            (Self::Bools(builder), JsonValue::Bool(value)) => builder.append_value(*value),
            (Self::Integers(builder), JsonValue::Integer(number)) => builder.append_value(*number),
            (Self::Unsigned(builder), JsonValue::Integer(number)) => {
                builder.append_value(u64::try_from(*number).map_err(|_| UnexpectedType)?);
            }
            (Self::Unsigned(builder), JsonValue::Unsigned(number)) => builder.append_value(*number),
            (Self::Floats(builder), JsonValue::Integer(number)) => {
                builder.append_value(*number as f64);
            }
            (Self::Floats(builder), JsonValue::Float(number)) => builder.append_value(*number),
            (Self::Texts(builder), JsonValue::Text(text)) => builder.append_value(text),
            (
                Self::Lists {
                    lengths,
                    valid,
                    items,
                    ..
                },
                JsonValue::List(values),
            ) => {
                values
                    .iter()
                    .try_for_each(|value| items.append_value(value))?;
                lengths.push(values.len());
                valid.append_non_null();
            }
            (Self::Objects { valid, object, .. }, JsonValue::Object(members)) => {
                object.append_members(members)?;
                valid.append_non_null();
            }
            _ => return Err(UnexpectedType),
        }
        Ok(())
    }

    fn append_null(&mut self) {
        match self {
            Self::Nulls(count) => *count += 1,
            Self::Bools(builder) => builder.append_null(),
            Self::Integers(builder) => builder.append_null(),
            Self::Unsigned(builder) => builder.append_null(),
            Self::Floats(builder) => builder.append_null(),
            Self::Texts(builder) => builder.append_null(),
            Self::Lists { lengths, valid, .. } => {
                lengths.push(0);
                valid.append_null();
            }
            Self::Objects { valid, object, .. } => {
                object.append_null();
                valid.append_null();
            }
        }
    }

    fn finish_array(&mut self) -> Result<ArrayRef, ArrowError> {
        Ok(match self {
            Self::Nulls(count) => Arc::new(NullArray::new(std::mem::take(count))),
            Self::Bools(builder) => Arc::new(builder.finish()),
            Self::Integers(builder) => Arc::new(builder.finish()),
            Self::Unsigned(builder) => Arc::new(builder.finish()),
            Self::Floats(builder) => Arc::new(builder.finish()),
            Self::Texts(builder) => Arc::new(builder.finish()),
            Self::Lists {
                field,
                lengths,
                valid,
                items,
            } => {
                let offsets = OffsetBuffer::from_lengths(std::mem::take(lengths));
                let items = items.finish_array()?;
                Arc::new(ListArray::try_new(
                    Arc::clone(field),
                    offsets,
                    items,
                    valid.finish(),
                )?)
            }
            Self::Objects {
                fields,
                valid,
                object,
            } => {
                let length = object.length;
                let columns = object.finish_columns()?;
                let valid = valid.finish();
                if columns.is_empty() {
                    Arc::new(StructArray::new_empty_fields(length, valid)) as ArrayRef
                } else {
                    Arc::new(StructArray::try_new(fields.clone(), columns, valid)?)
                }
            }
        })
    }
}
