//! The values that a parser extracts from a row, and the row that they form.

use std::borrow::Cow;

use lookalike_documents::decoding::InvalidText;

use super::features::{FeatureRange, RowFeatures};
use super::number_text::shortest_digits;
use super::{BadRow, FieldValue, InputRow, RowPlace, RowResult, WantedFields};

/// The assignment of fields to slots. A field that is wanted twice has one slot.
#[derive(Debug)]
pub(super) struct FieldPlan {
    pub(super) names: Vec<String>,
    text: Vec<usize>,
    id: Option<usize>,
    pub(super) features: Option<usize>,
    lists_only: bool,
    extra: Vec<usize>,
}

impl FieldPlan {
    /// Returns the field of the ids, if there is one.
    pub(super) fn id_name(&self) -> Option<&str> {
        self.id.map(|at| &*self.names[at])
    }

    /// Assigns a slot to each wanted field; `id` is the field of the ids, if there is one.
    pub(super) fn new(fields: &WantedFields, id: Option<&str>) -> Self {
        let mut names = Vec::new();
        let mut slot = |name: &str| {
            names
                .iter()
                .position(|known| known == name)
                .unwrap_or_else(|| {
                    names.push(name.to_owned());
                    names.len() - 1
                })
        };
        let text = fields.text.iter().map(|name| slot(name)).collect();
        let id = id.map(&mut slot);
        let features = fields.features.as_deref().map(&mut slot);
        let extra = fields.extra.iter().map(|name| slot(name)).collect();
        Self {
            names,
            text,
            id,
            features,
            lists_only: fields.lists_only,
            extra,
        }
    }

    /// Returns `true` if the slot is kept for reading the row again.
    pub(super) fn is_kept_slot(&self, slot: usize) -> bool {
        self.text.contains(&slot) || self.id == Some(slot) || self.features == Some(slot)
    }

    /// Returns `true` if the slot holds one of the further fields.
    pub(super) fn is_extra_slot(&self, slot: usize) -> bool {
        self.extra.contains(&slot)
    }

    /// Returns `true` if values of this kind are acceptable for everything that the slot is wanted for.
    pub(super) fn accepts_kind(&self, slot: usize, kind: ValueKind) -> bool {
        let single = !matches!(kind, ValueKind::List | ValueKind::Object);
        kind == ValueKind::Null
            || (!self.text.contains(&slot) || matches!(kind, ValueKind::Text | ValueKind::List))
                && (self.id != Some(slot) || matches!(kind, ValueKind::Text | ValueKind::Number))
                && (self.features != Some(slot) || kind == ValueKind::Text || !single)
                && (!self.extra.contains(&slot) || single)
    }

    /// Returns `true` if no field is wanted by its name, so that rows are read whole.
    pub(super) fn reads_whole_rows(&self) -> bool {
        self.names.is_empty()
    }

    /// Returns `true` if a column of this name, or a field within it, is wanted.
    pub(super) fn reads_column(&self, column: &str) -> bool {
        self.reads_whole_rows()
            || self.names.iter().any(|name| {
                let rest = name.strip_prefix(column);
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            })
    }

    /// Returns the slot of the text, if the text is a single field.
    pub(super) fn single_text(&self) -> Option<usize> {
        match self.text[..] {
            [slot] => Some(slot),
            _ => None,
        }
    }

    /// Returns the slots of the text.
    pub(super) fn text_slots(&self) -> &[usize] {
        &self.text
    }

    /// Returns what the slot is wanted for, as a message says it.
    pub(super) fn slot_role(&self, slot: usize) -> &'static str {
        match slot {
            _ if self.text.contains(&slot) => "text",
            _ if self.id == Some(slot) => "an id",
            _ if self.features == Some(slot) => "features",
            _ => "a single value",
        }
    }

    /// Returns `true` if the slot may be empty in every row: it holds only text, and features replace
    /// the text.
    pub(super) fn may_be_absent(&self, slot: usize) -> bool {
        let read_otherwise =
            self.id == Some(slot) || self.features == Some(slot) || self.extra.contains(&slot);
        self.features.is_some() && !read_otherwise
    }
}

/// The kind of a field's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum ValueKind {
    #[default]
    Missing,
    Null,
    False,
    True,
    Number,
    Text,
    List,
    Object,
}

impl ValueKind {
    fn describe_kind(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Null => "null",
            Self::False | Self::True => "a boolean",
            Self::Number => "a number",
            Self::Text => "a string",
            Self::List => "a list",
            Self::Object => "an object",
        }
    }
}

/// A value as a range of the row, or of the arena if it had to be rewritten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct ValueSlot {
    pub(super) kind: ValueKind,
    pub(super) in_arena: bool,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// The values of one row. The memory is reused from row to row.
#[derive(Debug, Default)]
pub(super) struct RowValues {
    pub(super) slots: Vec<ValueSlot>,
    /// Strings that had to be rewritten: unescaped, unquoted.
    pub(super) arena: String,
    /// Scratch memory for unescaping, without meaning between two strings.
    pub(super) unescaped: Vec<u8>,
    pub(super) special: Vec<u32>,
    joined: String,
    /// Slots whose value is that of a field with dots in its name.
    literal_names: Vec<bool>,
    /// Values of the elements of lists that have not ended yet, with their slots.
    elements: Vec<(usize, ValueSlot)>,
    /// The id in its shortest form, if it is a number and differs from that form.
    id_digits: Option<String>,
    features: Vec<FeatureRange>,
}

impl RowValues {
    /// Removes the values of the row before.
    pub(super) fn clear_row(&mut self, plan: &FieldPlan) {
        self.slots.clear();
        self.slots.resize(plan.names.len(), ValueSlot::default());
        self.literal_names.clear();
        self.literal_names.resize(plan.names.len(), false);
        self.elements.clear();
        self.arena.clear();
    }

    /// Returns `true` if a field that is itself named like the path of the slot has been read.
    pub(super) fn has_literal_name(&self, slot: usize) -> bool {
        self.literal_names[slot]
    }

    /// Records that a field has the very name of the slot, which therefore takes no value from a path.
    pub(super) fn claim_literal_name(&mut self, slot: usize) {
        self.literal_names[slot] = true;
    }

    /// Begins a list whose elements have values for slots. Returns the mark for [`join_elements`](Self::join_elements).
    pub(super) fn begin_elements(&self) -> usize {
        self.elements.len()
    }

    /// Ends an element: the values of these slots become values of the list.
    pub(super) fn end_element(&mut self, slots: &[usize]) {
        for &slot in slots {
            if self.slots[slot].kind != ValueKind::Missing && !self.literal_names[slot] {
                let value = std::mem::take(&mut self.slots[slot]);
                self.elements.push((slot, value));
            }
        }
    }

    /// Ends the list that began at a mark: each slot has the values of all elements, joined by line feeds. A single value
    /// keeps its kind; nulls are left out; an object among several values stays what it is, so that it is refused.
    pub(super) fn join_elements(&mut self, slots: &[usize], from: usize, row: &str) {
        for &slot in slots {
            let own = self.elements[from..].iter().filter(|(of, _)| *of == slot);
            let values: Vec<ValueSlot> = own.map(|(_, value)| *value).collect();
            if let Some(joined) = self.join_values(&values, row) {
                self.slots[slot] = joined;
            }
        }
        self.elements.truncate(from);
    }

    fn join_values(&mut self, values: &[ValueSlot], row: &str) -> Option<ValueSlot> {
        let is_null = |value: &&ValueSlot| value.kind == ValueKind::Null;
        let filled: Vec<_> = values.iter().filter(|value| !is_null(value)).collect();
        if let [] | [_] = filled[..] {
            return filled.first().copied().or(values.first()).copied();
        }
        let start = self.arena.len();
        for (at, &&value) in filled.iter().enumerate() {
            if at > 0 {
                self.arena.push('\n');
            }
            let items = match value.kind {
                ValueKind::List => join_strings(self.slot_text(value, row)),
                ValueKind::Object => None,
                _ => Some(self.slot_text(value, row).to_owned()),
            };
            let Some(text) = items else {
                self.arena.truncate(start);
                return Some(value);
            };
            self.arena.push_str(&text);
        }
        Some(ValueSlot {
            kind: ValueKind::Text,
            in_arena: true,
            start,
            end: self.arena.len(),
        })
    }

    /// Makes a text of each list of strings that is wanted as text: its strings, joined by line feeds.
    fn join_text_lists(&mut self, plan: &FieldPlan, row: &str) {
        for &slot in &plan.text {
            let value = self.slots[slot];
            if value.kind != ValueKind::List || plan.features == Some(slot) {
                continue;
            }
            if let Some(text) = join_strings(self.slot_text(value, row)) {
                self.set_copied_text(slot, ValueKind::Text, &text);
            }
        }
    }

    /// Stores a range of the row in a slot.
    pub(super) fn set_range(&mut self, slot: usize, kind: ValueKind, start: usize, end: usize) {
        self.slots[slot] = ValueSlot {
            kind,
            in_arena: false,
            start,
            end,
        };
    }

    /// Stores a copy of `text` in a slot.
    pub(super) fn set_copied_text(&mut self, slot: usize, kind: ValueKind, text: &str) {
        let start = self.arena.len();
        self.arena.push_str(text);
        self.set_arena_range(slot, kind, start);
    }

    /// Stores the arena's bytes from `start` on in a slot.
    pub(super) fn set_arena_range(&mut self, slot: usize, kind: ValueKind, start: usize) {
        self.slots[slot] = ValueSlot {
            kind,
            in_arena: true,
            start,
            end: self.arena.len(),
        };
    }

    /// Returns the kinds and texts of all slots.
    #[cfg(test)]
    pub(super) fn describe_slots(&self, row: &str) -> Vec<(ValueKind, String)> {
        self.slots
            .iter()
            .map(|&slot| (slot.kind, self.slot_text(slot, row).to_owned()))
            .collect()
    }

    fn slot_text<'a>(&'a self, slot: ValueSlot, row: &'a str) -> &'a str {
        let text = if slot.in_arena { &self.arena } else { row };
        &text[slot.start..slot.end]
    }

    /// Builds the parsed row.
    pub(super) fn parsed_row<'a>(
        &'a mut self,
        plan: &FieldPlan,
        row: &'a str,
        invalid_text: InvalidText,
    ) -> Result<ParsedRow<'a>, String> {
        let features = match plan.features {
            None => None,
            Some(slot) => Some(self.read_features(plan, slot, row, invalid_text)?),
        };
        self.join_text_lists(plan, row);
        if plan.text.len() > 1 {
            self.join_texts(plan, row)?;
        }
        self.id_digits = plan.id.and_then(|slot| {
            let slot = self.slots[slot];
            let literal = (slot.kind == ValueKind::Number).then(|| self.slot_text(slot, row))?;
            match shortest_digits(literal) {
                Cow::Owned(digits) => Some(digits),
                Cow::Borrowed(_) => None,
            }
        });
        let values = &*self;
        let text = match plan.text[..] {
            [slot] => values.text_of_slot(plan, slot, row, features.is_some())?,
            _ => &values.joined,
        };
        let id = plan
            .id
            .map(|slot| values.id_of_slot(plan, slot, row))
            .transpose()?;
        let features = features.map(|in_arena| RowFeatures {
            text: if in_arena { &values.arena } else { row },
            entries: &values.features,
        });
        Ok(ParsedRow {
            id,
            text,
            features,
            values,
            row,
        })
    }

    fn text_of_slot<'a>(
        &'a self,
        plan: &FieldPlan,
        slot: usize,
        row: &'a str,
        may_miss: bool,
    ) -> Result<&'a str, String> {
        let value = self.slots[slot];
        match value.kind {
            ValueKind::Text => Ok(self.slot_text(value, row)),
            ValueKind::Missing if may_miss => Ok(""),
            ValueKind::Missing => Err(format!("the field `{}` is missing", plan.names[slot])),
            kind => Err(wrong_kind_message(plan, slot, kind, "a string")),
        }
    }

    /// Joins the texts of several fields. Missing and null fields are left out; it is an error if all
    /// of them are.
    fn join_texts(&mut self, plan: &FieldPlan, row: &str) -> Result<(), String> {
        let mut joined = std::mem::take(&mut self.joined);
        joined.clear();
        let mut parts = 0;
        for &slot in &plan.text {
            if matches!(self.slots[slot].kind, ValueKind::Missing | ValueKind::Null) {
                continue;
            }
            if parts > 0 {
                joined.push('\n');
            }
            joined.push_str(self.text_of_slot(plan, slot, row, false)?);
            parts += 1;
        }
        self.joined = joined;
        if parts > 0 || plan.features.is_some() {
            return Ok(());
        }
        Err(format!(
            "all of the fields {} are missing",
            list_text_fields(plan)
        ))
    }

    fn id_of_slot<'a>(
        &'a self,
        plan: &FieldPlan,
        slot: usize,
        row: &'a str,
    ) -> Result<&'a str, String> {
        let value = self.slots[slot];
        match value.kind {
            ValueKind::Text if value.start == value.end => {
                Err(format!("the id in field `{}` is empty", plan.names[slot]))
            }
            ValueKind::Number => Ok(self
                .id_digits
                .as_deref()
                .unwrap_or(self.slot_text(value, row))),
            ValueKind::Text => Ok(self.slot_text(value, row)),
            ValueKind::Missing => Err(format!("the field `{}` is missing", plan.names[slot])),
            kind => Err(wrong_kind_message(plan, slot, kind, "a string or a number")),
        }
    }

    /// Reads the features of a slot. Returns `true` if their text is in the arena.
    fn read_features(
        &mut self,
        plan: &FieldPlan,
        slot: usize,
        row: &str,
        invalid_text: InvalidText,
    ) -> Result<bool, String> {
        self.features.clear();
        let value = self.slots[slot];
        match value.kind {
            ValueKind::Text if plan.lists_only => {
                Err(wrong_kind_message(plan, slot, ValueKind::Text, "a list"))
            }
            ValueKind::Text => {
                self.split_features(value, row);
                Ok(value.in_arena)
            }
            ValueKind::List | ValueKind::Object => {
                let mut arena = std::mem::take(&mut self.arena);
                let source = if value.in_arena {
                    arena.clone()
                } else {
                    String::new()
                };
                let source = if value.in_arena { source.as_str() } else { row };
                let json = &source[value.start..value.end];
                let read = super::json::read_features(json, invalid_text, &mut |text, weight| {
                    let start = arena.len();
                    arena.push_str(text);
                    self.features.push(FeatureRange {
                        start,
                        end: arena.len(),
                        weight,
                    });
                });
                self.arena = arena;
                read.map_err(|reason| format!("the field `{}` {reason}", plan.names[slot]))?;
                Ok(true)
            }
            ValueKind::Missing => Err(format!("the field `{}` is missing", plan.names[slot])),
            kind => Err(wrong_kind_message(
                plan,
                slot,
                kind,
                "a list, an object or a string",
            )),
        }
    }

    fn split_features(&mut self, value: ValueSlot, row: &str) {
        let whole = if value.in_arena { &self.arena } else { row };
        let text = &whole[value.start..value.end];
        let mut at = value.start;
        for piece in text.split(char::is_whitespace) {
            if !piece.is_empty() {
                self.features.push(FeatureRange {
                    start: at,
                    end: at + piece.len(),
                    weight: 1.0,
                });
            }
            at += piece.len();
            at += whole[at..].chars().next().map_or(0, char::len_utf8);
        }
    }

    fn scalar_of_slot<'a>(
        &'a self,
        plan: &FieldPlan,
        slot: usize,
        row: &'a str,
    ) -> Result<FieldValue<'a>, String> {
        let value = self.slots[slot];
        Ok(match value.kind {
            ValueKind::Missing => FieldValue::Missing,
            ValueKind::Null => FieldValue::Null,
            ValueKind::False => FieldValue::Bool(false),
            ValueKind::True => FieldValue::Bool(true),
            ValueKind::Text => FieldValue::Text(self.slot_text(value, row)),
            ValueKind::Number => {
                let literal = self.slot_text(value, row);
                match literal.parse::<f64>() {
                    // Parquet writers often store NaN for a missing number.
                    Ok(value) if value.is_nan() => FieldValue::Null,
                    Ok(value) => FieldValue::Number { value, literal },
                    Err(_) => {
                        let name = &plan.names[slot];
                        return Err(format!("`{literal}` in field `{name}` is not a number"));
                    }
                }
            }
            kind => return Err(wrong_kind_message(plan, slot, kind, "a single value")),
        })
    }
}

/// Joins the strings of a JSON list by line feeds, without nulls. Returns `None` if the list is empty or holds anything
/// else.
fn join_strings(json: &str) -> Option<String> {
    let strings: Vec<Option<String>> = serde_json::from_str(json).ok()?;
    let strings: Vec<String> = strings.into_iter().flatten().collect();
    (!strings.is_empty()).then(|| strings.join("\n"))
}

fn wrong_kind_message(plan: &FieldPlan, slot: usize, kind: ValueKind, wanted: &str) -> String {
    format!(
        "the field `{}` is {}, not {wanted}",
        plan.names[slot],
        kind.describe_kind()
    )
}

fn list_text_fields(plan: &FieldPlan) -> String {
    let names: Vec<_> = plan
        .text
        .iter()
        .map(|&slot| format!("`{}`", plan.names[slot]))
        .collect();
    names.join(", ")
}

/// A parsed row without its place.
pub(super) struct ParsedRow<'a> {
    id: Option<&'a str>,
    text: &'a str,
    features: Option<RowFeatures<'a>>,
    values: &'a RowValues,
    row: &'a str,
}

/// The position of a row, as reports give it.
#[derive(Clone, Copy)]
pub(super) struct RowPosition<'a> {
    pub(super) file: &'a str,
    pub(super) line: u64,
    pub(super) number: u64,
    pub(super) place: RowPlace,
}

impl RowPosition<'_> {
    /// Returns the position of a row that has no bytes of its own.
    pub(super) fn without_bytes(self) -> Self {
        Self {
            place: RowPlace::new(self.place.start_offset(), 0),
            ..self
        }
    }

    pub(super) fn bad_row_for(self, reason: String) -> BadRow {
        let Self {
            file,
            line,
            number,
            place,
        } = self;
        BadRow {
            file: file.to_owned(),
            line,
            number,
            reason,
            place,
        }
    }
}

/// Number of further fields that fit without an allocation.
const INLINE_FIELDS: usize = 4;

/// Calls `then` with the values of the further fields.
pub(super) fn with_extra<R>(
    values: &RowValues,
    plan: &FieldPlan,
    row: &str,
    then: impl FnOnce(Result<&[FieldValue<'_>], String>) -> R,
) -> R {
    let (mut few, mut many) = ([FieldValue::Missing; INLINE_FIELDS], Vec::new());
    let extra = if plan.extra.len() <= INLINE_FIELDS {
        &mut few[..plan.extra.len()]
    } else {
        many.resize(plan.extra.len(), FieldValue::Missing);
        &mut many[..]
    };
    for (scalar, &slot) in extra.iter_mut().zip(&plan.extra) {
        match values.scalar_of_slot(plan, slot, row) {
            Ok(value) => *scalar = value,
            Err(reason) => return then(Err(reason)),
        }
    }
    then(Ok(extra))
}

impl<'a> ParsedRow<'a> {
    /// Creates a row of plain text, with an id from elsewhere.
    pub(super) fn from_plain_text(
        id: Option<&'a str>,
        text: &'a str,
        values: &'a RowValues,
    ) -> Self {
        Self {
            id,
            text,
            features: None,
            values,
            row: "",
        }
    }

    /// Returns the text.
    pub(super) fn row_text(&self) -> &'a str {
        self.text
    }

    /// Appends the row to `frames` as a frame. Returns `None` if it is too long.
    pub(super) fn encode_frame(&self, frames: &mut Vec<u8>) -> Option<()> {
        super::frame::encode_frame(self.id, self.text, self.features, frames)
    }

    /// Calls `visit_row` with the complete row.
    pub(super) fn visit_row<R>(
        self,
        plan: &FieldPlan,
        position: RowPosition<'_>,
        visit: impl FnOnce(RowResult<'_>) -> R,
    ) -> R {
        with_extra(self.values, plan, self.row, |extra| {
            visit(
                extra
                    .map_err(|reason| position.bad_row_for(reason))
                    .map(|extra| InputRow {
                        id: self.id,
                        text: self.text,
                        features: self.features,
                        extra,
                        place: position.place,
                        number: position.number,
                        line: position.line,
                    }),
            )
        })
    }
}
