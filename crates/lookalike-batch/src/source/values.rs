//! The values that a parser extracts from a row, and the row that they form.

use std::borrow::Cow;

use super::features::{Entry, Features};
use super::numbers::shortest_digits;
use super::{BadRow, Fields, InvalidText, Place, Row, RowResult, Scalar};

/// The assignment of fields to slots. A field that is wanted twice has one slot.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) names: Vec<String>,
    text: Vec<usize>,
    id: Option<usize>,
    pub(super) features: Option<usize>,
    lists_only: bool,
    extra: Vec<usize>,
}

impl Plan {
    /// Assigns a slot to each wanted field; `id` is the field of the ids, if there is one.
    pub(super) fn new(fields: &Fields, id: Option<&str>) -> Self {
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
    pub(super) fn is_kept(&self, slot: usize) -> bool {
        self.text.contains(&slot) || self.id == Some(slot) || self.features == Some(slot)
    }

    /// Returns `true` if the slot holds one of the further fields.
    pub(super) fn is_extra(&self, slot: usize) -> bool {
        self.extra.contains(&slot)
    }

    /// Returns `true` if values of this kind are acceptable for everything that the slot is wanted for.
    pub(super) fn accepts(&self, slot: usize, kind: Kind) -> bool {
        let single = !matches!(kind, Kind::List | Kind::Object);
        kind == Kind::Null
            || (!self.text.contains(&slot) || kind == Kind::Text)
                && (self.id != Some(slot) || matches!(kind, Kind::Text | Kind::Number))
                && (self.features != Some(slot) || kind == Kind::Text || !single)
                && (!self.extra.contains(&slot) || single)
    }

    /// Returns `true` if a column of this name, or a field within it, is wanted.
    pub(super) fn reads(&self, column: &str) -> bool {
        self.names.iter().any(|name| {
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
    pub(super) fn role(&self, slot: usize) -> &'static str {
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
pub(super) enum Kind {
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

impl Kind {
    fn describe(self) -> &'static str {
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
pub(super) struct Slot {
    pub(super) kind: Kind,
    pub(super) in_arena: bool,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// The values of one row. The memory is reused from row to row.
#[derive(Debug, Default)]
pub(super) struct Values {
    pub(super) slots: Vec<Slot>,
    /// Strings that had to be rewritten: unescaped, unquoted.
    pub(super) arena: String,
    /// Scratch memory for unescaping, without meaning between two strings.
    pub(super) unescaped: Vec<u8>,
    pub(super) special: Vec<u32>,
    joined: String,
    /// The id in its shortest form, if it is a number and differs from that form.
    id_digits: Option<String>,
    features: Vec<Entry>,
}

impl Values {
    /// Removes the values of the row before.
    pub(super) fn clear(&mut self, plan: &Plan) {
        self.slots.clear();
        self.slots.resize(plan.names.len(), Slot::default());
        self.arena.clear();
    }

    /// Stores a range of the row in a slot.
    pub(super) fn set(&mut self, slot: usize, kind: Kind, start: usize, end: usize) {
        self.slots[slot] = Slot {
            kind,
            in_arena: false,
            start,
            end,
        };
    }

    /// Stores a copy of `text` in a slot.
    pub(super) fn set_copy(&mut self, slot: usize, kind: Kind, text: &str) {
        let start = self.arena.len();
        self.arena.push_str(text);
        self.set_arena(slot, kind, start);
    }

    /// Stores the arena's bytes from `start` on in a slot.
    pub(super) fn set_arena(&mut self, slot: usize, kind: Kind, start: usize) {
        self.slots[slot] = Slot {
            kind,
            in_arena: true,
            start,
            end: self.arena.len(),
        };
    }

    /// Returns the kinds and texts of all slots.
    #[cfg(test)]
    pub(super) fn shown(&self, row: &str) -> Vec<(Kind, String)> {
        self.slots
            .iter()
            .map(|&slot| (slot.kind, self.get(slot, row).to_owned()))
            .collect()
    }

    fn get<'a>(&'a self, slot: Slot, row: &'a str) -> &'a str {
        let text = if slot.in_arena { &self.arena } else { row };
        &text[slot.start..slot.end]
    }

    /// Builds the parsed row.
    pub(super) fn row<'a>(
        &'a mut self,
        plan: &Plan,
        row: &'a str,
        invalid_text: InvalidText,
    ) -> Result<ParsedRow<'a>, String> {
        let features = match plan.features {
            None => None,
            Some(slot) => Some(self.read_features(plan, slot, row, invalid_text)?),
        };
        if plan.text.len() > 1 {
            self.join(plan, row)?;
        }
        self.id_digits = plan.id.and_then(|slot| {
            let slot = self.slots[slot];
            let literal = (slot.kind == Kind::Number).then(|| self.get(slot, row))?;
            match shortest_digits(literal) {
                Cow::Owned(digits) => Some(digits),
                Cow::Borrowed(_) => None,
            }
        });
        let values = &*self;
        let text = match plan.text[..] {
            [slot] => values.text(plan, slot, row, features.is_some())?,
            _ => &values.joined,
        };
        let id = plan.id.map(|slot| values.id(plan, slot, row)).transpose()?;
        let features = features.map(|in_arena| Features {
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

    fn text<'a>(
        &'a self,
        plan: &Plan,
        slot: usize,
        row: &'a str,
        may_miss: bool,
    ) -> Result<&'a str, String> {
        let value = self.slots[slot];
        match value.kind {
            Kind::Text => Ok(self.get(value, row)),
            Kind::Missing if may_miss => Ok(""),
            Kind::Missing => Err(format!("the field `{}` is missing", plan.names[slot])),
            kind => Err(wrong(plan, slot, kind, "a string")),
        }
    }

    /// Joins the texts of several fields. Missing and null fields are left out; it is an error if all
    /// of them are.
    fn join(&mut self, plan: &Plan, row: &str) -> Result<(), String> {
        let mut joined = std::mem::take(&mut self.joined);
        joined.clear();
        let mut parts = 0;
        for &slot in &plan.text {
            if matches!(self.slots[slot].kind, Kind::Missing | Kind::Null) {
                continue;
            }
            if parts > 0 {
                joined.push('\n');
            }
            joined.push_str(self.text(plan, slot, row, false)?);
            parts += 1;
        }
        self.joined = joined;
        if parts > 0 || plan.features.is_some() {
            return Ok(());
        }
        Err(format!("all of the fields {} are missing", listed(plan)))
    }

    fn id<'a>(&'a self, plan: &Plan, slot: usize, row: &'a str) -> Result<&'a str, String> {
        let value = self.slots[slot];
        match value.kind {
            Kind::Text if value.start == value.end => {
                Err(format!("the id in field `{}` is empty", plan.names[slot]))
            }
            Kind::Number => Ok(self.id_digits.as_deref().unwrap_or(self.get(value, row))),
            Kind::Text => Ok(self.get(value, row)),
            Kind::Missing => Err(format!("the field `{}` is missing", plan.names[slot])),
            kind => Err(wrong(plan, slot, kind, "a string or a number")),
        }
    }

    /// Reads the features of a slot. Returns `true` if their text is in the arena.
    fn read_features(
        &mut self,
        plan: &Plan,
        slot: usize,
        row: &str,
        invalid_text: InvalidText,
    ) -> Result<bool, String> {
        self.features.clear();
        let value = self.slots[slot];
        match value.kind {
            Kind::Text if plan.lists_only => Err(wrong(plan, slot, Kind::Text, "a list")),
            Kind::Text => {
                self.split_features(value, row);
                Ok(value.in_arena)
            }
            Kind::List | Kind::Object => {
                let mut arena = std::mem::take(&mut self.arena);
                let source = if value.in_arena {
                    arena.clone()
                } else {
                    String::new()
                };
                let source = if value.in_arena { source.as_str() } else { row };
                let json = &source[value.start..value.end];
                let read = super::json::features(json, invalid_text, &mut |text, weight| {
                    let start = arena.len();
                    arena.push_str(text);
                    self.features.push(Entry {
                        start,
                        end: arena.len(),
                        weight,
                    });
                });
                self.arena = arena;
                read.map_err(|reason| format!("the field `{}` {reason}", plan.names[slot]))?;
                Ok(true)
            }
            Kind::Missing => Err(format!("the field `{}` is missing", plan.names[slot])),
            kind => Err(wrong(plan, slot, kind, "a list, an object or a string")),
        }
    }

    fn split_features(&mut self, value: Slot, row: &str) {
        let whole = if value.in_arena { &self.arena } else { row };
        let text = &whole[value.start..value.end];
        let mut at = value.start;
        for piece in text.split(char::is_whitespace) {
            if !piece.is_empty() {
                self.features.push(Entry {
                    start: at,
                    end: at + piece.len(),
                    weight: 1.0,
                });
            }
            at += piece.len();
            at += whole[at..].chars().next().map_or(0, char::len_utf8);
        }
    }

    fn scalar<'a>(&'a self, plan: &Plan, slot: usize, row: &'a str) -> Result<Scalar<'a>, String> {
        let value = self.slots[slot];
        Ok(match value.kind {
            Kind::Missing => Scalar::Missing,
            Kind::Null => Scalar::Null,
            Kind::False => Scalar::Bool(false),
            Kind::True => Scalar::Bool(true),
            Kind::Text => Scalar::Text(self.get(value, row)),
            Kind::Number => {
                let literal = self.get(value, row);
                match literal.parse::<f64>() {
                    // Parquet writers often store NaN for a missing number.
                    Ok(value) if value.is_nan() => Scalar::Null,
                    Ok(value) => Scalar::Number { value, literal },
                    Err(_) => {
                        let name = &plan.names[slot];
                        return Err(format!("`{literal}` in field `{name}` is not a number"));
                    }
                }
            }
            kind => return Err(wrong(plan, slot, kind, "a single value")),
        })
    }
}

fn wrong(plan: &Plan, slot: usize, kind: Kind, wanted: &str) -> String {
    format!(
        "the field `{}` is {}, not {wanted}",
        plan.names[slot],
        kind.describe()
    )
}

fn listed(plan: &Plan) -> String {
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
    features: Option<Features<'a>>,
    values: &'a Values,
    row: &'a str,
}

/// The position of a row, as reports give it.
#[derive(Clone, Copy)]
pub(super) struct Position<'a> {
    pub(super) file: &'a str,
    pub(super) line: u64,
    pub(super) number: u64,
    pub(super) place: Place,
}

impl Position<'_> {
    pub(super) fn bad(self, reason: String) -> BadRow {
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
const FEW: usize = 4;

/// Calls `then` with the values of the further fields.
pub(super) fn with_extra<R>(
    values: &Values,
    plan: &Plan,
    row: &str,
    then: impl FnOnce(Result<&[Scalar<'_>], String>) -> R,
) -> R {
    let (mut few, mut many) = ([Scalar::Missing; FEW], Vec::new());
    let extra = if plan.extra.len() <= FEW {
        &mut few[..plan.extra.len()]
    } else {
        many.resize(plan.extra.len(), Scalar::Missing);
        &mut many[..]
    };
    for (scalar, &slot) in extra.iter_mut().zip(&plan.extra) {
        match values.scalar(plan, slot, row) {
            Ok(value) => *scalar = value,
            Err(reason) => return then(Err(reason)),
        }
    }
    then(Ok(extra))
}

impl<'a> ParsedRow<'a> {
    /// Creates a row of plain text, with an id from elsewhere.
    pub(super) fn plain(id: Option<&'a str>, text: &'a str, values: &'a Values) -> Self {
        Self {
            id,
            text,
            features: None,
            values,
            row: "",
        }
    }

    /// Returns the text.
    pub(super) fn text(&self) -> &'a str {
        self.text
    }

    /// Appends the row to `frames` as a frame. Returns `None` if it is too long.
    pub(super) fn encode(&self, frames: &mut Vec<u8>) -> Option<()> {
        super::frame::encode(self.id, self.text, self.features, frames)
    }

    /// Calls `visit` with the complete row.
    pub(super) fn visit<R>(
        self,
        plan: &Plan,
        position: Position<'_>,
        visit: impl FnOnce(RowResult<'_>) -> R,
    ) -> R {
        with_extra(self.values, plan, self.row, |extra| {
            visit(
                extra
                    .map_err(|reason| position.bad(reason))
                    .map(|extra| Row {
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
