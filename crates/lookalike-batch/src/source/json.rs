//! Extracts the wanted fields of a JSON object.
//!
//! `serde_json` defines which rows are valid and what they mean. A scanner is tried first. It passes
//! over the object once, jumps from quote to backslash, and borrows strings without escapes. It gives
//! up on anything unusual: control characters, escaped keys, lone surrogates, deep nesting, and every
//! error. Therefore it never rejects a row, and a row that it accepts has the same values under
//! `serde_json`; a property test verifies this.

use std::fmt;

use lookalike::bytes;
use lookalike::weight::MOST_WEIGHT;
use memchr::{memchr, memchr2};
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::value::RawValue;

use super::values::{Kind, Plan, Slot, Values};
use super::{Fields, IdField, InvalidText};

/// The wanted fields as a tree of names.
#[derive(Debug, Default)]
pub(super) struct Paths(Vec<Node>);

#[derive(Debug)]
struct Node {
    name: String,
    slot: Option<usize>,
    children: Vec<Node>,
}

impl Paths {
    /// Inserts each name of the plan twice: as a path of names separated by dots, and as a name of its
    /// own.
    pub(super) fn new(plan: &Plan) -> Self {
        let mut paths = Self::default();
        for (slot, name) in plan.names.iter().enumerate() {
            node(&mut paths.0, name).slot = Some(slot);
            if let Some((first, rest)) = name.split_once('.') {
                let mut last = node(&mut paths.0, first);
                for part in rest.split('.') {
                    last = node(&mut last.children, part);
                }
                last.slot = Some(slot);
            }
        }
        paths
    }
}

fn node<'a>(nodes: &'a mut Vec<Node>, name: &str) -> &'a mut Node {
    let known = nodes.iter().position(|node| node.name == name);
    let at = known.unwrap_or_else(|| {
        nodes.push(Node {
            name: name.to_owned(),
            slot: None,
            children: Vec::new(),
        });
        nodes.len() - 1
    });
    &mut nodes[at]
}

/// Removes the values of an earlier field of the same name, because the last one counts.
fn forget(node: &Node, values: &mut Values) {
    if let Some(slot) = node.slot {
        values.slots[slot] = Slot::default();
    }
    for child in &node.children {
        forget(child, values);
    }
}

/// Stores the wanted fields of a row in `values`, or returns the reason why the row is bad.
pub(super) fn parse(
    row: &str,
    plan: &Plan,
    paths: &Paths,
    invalid_text: InvalidText,
    values: &mut Values,
) -> Result<(), String> {
    values.clear(plan);
    if scan(row, paths, values) {
        return Ok(());
    }
    values.clear(plan);
    define(row, paths, invalid_text, values)
}

/// Returns whether a row is an object with a field of this name; `None` if it is not a valid object.
pub(super) fn has_field(row: &str, name: &str) -> Option<bool> {
    let object: std::collections::BTreeMap<String, &RawValue> = serde_json::from_str(row).ok()?;
    Some(object.contains_key(name))
}

/// Looks for fields that an object must not have yet.
pub(crate) struct FieldProbe {
    plan: Plan,
    paths: Paths,
    values: Values,
}

impl FieldProbe {
    pub(crate) fn new(names: &[&str]) -> Self {
        let extra = names.iter().map(|&name| name.to_owned()).collect();
        let fields = Fields {
            text: Vec::new(),
            id: IdField::RowNumber,
            extra,
            ..Fields::default()
        };
        let plan = Plan::new(&fields, None);
        let paths = Paths::new(&plan);
        Self {
            plan,
            paths,
            values: Values::default(),
        }
    }

    /// Returns the first of the fields that the object has.
    pub(crate) fn find(&mut self, row: &str) -> Result<Option<&str>, String> {
        parse(
            row,
            &self.plan,
            &self.paths,
            InvalidText::Lossy,
            &mut self.values,
        )?;
        let found = self
            .values
            .slots
            .iter()
            .position(|slot| slot.kind != Kind::Missing);
        Ok(found.map(|slot| self.plan.names[slot].as_str()))
    }
}

/// Parses a row with `serde_json`, which defines the result.
fn define(
    row: &str,
    paths: &Paths,
    invalid_text: InvalidText,
    values: &mut Values,
) -> Result<(), String> {
    let mended = match invalid_text {
        InvalidText::Reject => None,
        InvalidText::Lossy => mend_surrogates(row),
    };
    let row = mended.as_deref().unwrap_or(row);
    let first = row.trim_ascii_start().bytes().next();
    if first != Some(b'{') {
        return Err(match (first, serde_json::from_str::<IgnoredAny>(row)) {
            (Some(b'['), Ok(_)) => "the row is a JSON list, not an object".to_owned(),
            (_, Ok(_)) => "the row is a JSON value, not an object".to_owned(),
            (Some(b'['), Err(_)) => {
                "the row begins a JSON list that does not end in the row: JSONL has one object per \
                 line"
                    .to_owned()
            }
            (_, Err(error)) => described(&error),
        });
    }
    let mut deserializer = serde_json::Deserializer::from_str(row);
    Object {
        nodes: &paths.0,
        values,
    }
    .deserialize(&mut deserializer)
    .and_then(|()| deserializer.end())
    .map_err(|error| match mend_surrogates(row) {
        Some(_) => "an escape in the row is half of a surrogate pair".to_owned(),
        None => described(&error),
    })
}

/// Returns the message of `serde_json` with the column as the position, because a row is a single line.
fn described(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let what = text
        .rfind(" at line ")
        .map_or(text.as_str(), |at| &text[..at]);
    format!(
        "the row is not valid JSON: {what} at its byte {}",
        error.column()
    )
}

struct Object<'a> {
    nodes: &'a [Node],
    values: &'a mut Values,
}

impl<'de> DeserializeSeed<'de> for Object<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Object<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            match self.nodes.iter().find(|node| node.name == key) {
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
                Some(node) => {
                    let value: &RawValue = map.next_value()?;
                    forget(node, self.values);
                    store(node, value.get(), self.values).map_err(serde::de::Error::custom)?;
                }
            }
        }
        Ok(())
    }
}

/// Stores a wanted value, given as JSON.
fn store(node: &Node, json: &str, values: &mut Values) -> Result<(), serde_json::Error> {
    let kind = match json.as_bytes()[0] {
        b'"' => Kind::Text,
        b'{' => Kind::Object,
        b'[' => Kind::List,
        b't' => Kind::True,
        b'f' => Kind::False,
        b'n' => Kind::Null,
        _ => Kind::Number,
    };
    if kind == Kind::Object && !node.children.is_empty() {
        let mut deserializer = serde_json::Deserializer::from_str(json);
        Object {
            nodes: &node.children,
            values,
        }
        .deserialize(&mut deserializer)?;
    }
    if let Some(slot) = node.slot {
        match kind {
            Kind::Text => values.set_copy(slot, kind, &serde_json::from_str::<String>(json)?),
            _ => values.set_copy(slot, kind, json),
        }
    }
    Ok(())
}

/// Returns the row with U+FFFD in place of every escape of a lone surrogate, or `None` if there is no
/// such escape.
fn mend_surrogates(row: &str) -> Option<String> {
    let mut mended: Option<String> = None;
    let (mut copied, mut at) = (0, 0);
    while let Some(found) = row
        .as_bytes()
        .get(at..)
        .and_then(|rest| memchr(b'\\', rest))
    {
        let start = at + found;
        let rest = &row.as_bytes()[start..];
        at = start + 2;
        let Some(unit) = escaped_unit(rest) else {
            continue;
        };
        at = start + 6;
        match unit {
            0xD800..=0xDBFF if matches!(escaped_unit(&rest[6..]), Some(0xDC00..=0xDFFF)) => at += 6,
            0xD800..=0xDFFF => {
                let mended = mended.get_or_insert_default();
                mended.push_str(&row[copied..start]);
                mended.push_str("\\uFFFD");
                copied = at;
            }
            _ => {}
        }
    }
    let mut mended = mended?;
    mended.push_str(&row[copied..]);
    Some(mended)
}

/// Returns the UTF-16 code unit of the escape `\uXXXX` at the start of `bytes`.
fn escaped_unit(bytes: &[u8]) -> Option<u32> {
    match bytes {
        [b'\\', b'u', digits @ ..] => hex4(digits),
        _ => None,
    }
}

fn hex4(bytes: &[u8]) -> Option<u32> {
    let digits = bytes.get(..4)?;
    digits.iter().try_fold(0, |unit, &digit| {
        Some(unit << 4 | char::from(digit).to_digit(16)?)
    })
}

/// Tries the fast scanner. If it returns `false`, `values` must be cleared and [`define`] must parse
/// the row.
fn scan(row: &str, paths: &Paths, values: &mut Values) -> bool {
    // Control characters are rare between values and invalid in strings. One test of the whole row is
    // cheaper than one for each string.
    if row.bytes().fold(false, |any, byte| any | (byte < 0x20)) {
        return false;
    }
    let mut scanner = Scanner {
        row,
        bytes: row.as_bytes(),
        at: 0,
        values,
    };
    scanner.blanks();
    scanner.object(&paths.0, 0).is_some() && {
        scanner.blanks();
        scanner.at == row.len()
    }
}

/// Deepest nesting that the scanner handles.
const MAX_DEPTH: usize = 32;

/// Bytes that unescaping copies in one step.
const STEP: usize = 64;

/// The character of each one-letter escape; 0 for all other letters.
static SIMPLE_ESCAPES: [u8; 256] = {
    let mut escapes = [0; 256];
    escapes[b'n' as usize] = b'\n';
    escapes[b'"' as usize] = b'"';
    escapes[b'\\' as usize] = b'\\';
    escapes[b'/' as usize] = b'/';
    escapes[b't' as usize] = b'\t';
    escapes[b'r' as usize] = b'\r';
    escapes[b'b' as usize] = 0x8;
    escapes[b'f' as usize] = 0xC;
    escapes
};

/// A fast parser of one row. Every method returns `None` if [`define`] must parse the row; otherwise it
/// leaves `at` after what it has read.
struct Scanner<'a> {
    row: &'a str,
    bytes: &'a [u8],
    at: usize,
    values: &'a mut Values,
}

impl<'a> Scanner<'a> {
    /// Skips spaces. Other white space does not occur, because a row with control characters is not
    /// scanned.
    fn blanks(&mut self) {
        while self.bytes.get(self.at) == Some(&b' ') {
            self.at += 1;
        }
    }

    fn next(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        (self.next()? == byte).then_some(())
    }

    fn object(&mut self, nodes: &[Node], depth: usize) -> Option<()> {
        self.expect(b'{')?;
        self.blanks();
        if self.bytes.get(self.at) == Some(&b'}') {
            self.at += 1;
            return Some(());
        }
        loop {
            let key = self.key()?;
            match nodes.iter().find(|node| node.name == key) {
                Some(node) => self.wanted(node, depth)?,
                None => {
                    self.ignored(depth)?;
                }
            }
            self.blanks();
            match self.next()? {
                b',' => self.blanks(),
                b'}' => return Some(()),
                _ => return None,
            }
        }
    }

    /// Reads a key without escapes, and the colon after it.
    fn key(&mut self) -> Option<&'a str> {
        self.expect(b'"')?;
        let start = self.at;
        let end = start + memchr2(b'"', b'\\', &self.bytes[start..])?;
        self.at = end;
        self.expect(b'"')?;
        self.blanks();
        self.expect(b':')?;
        self.blanks();
        Some(&self.row[start..end])
    }

    fn wanted(&mut self, node: &Node, depth: usize) -> Option<()> {
        forget(node, self.values);
        let start = self.at;
        match (self.bytes.get(start)?, node.slot) {
            (b'"', Some(slot)) => return self.string(slot),
            (b'{', _) if !node.children.is_empty() => {
                if depth == MAX_DEPTH {
                    return None;
                }
                self.object(&node.children, depth + 1)?;
                if let Some(slot) = node.slot {
                    self.values.set(slot, Kind::Object, start, self.at);
                }
            }
            (_, slot) => {
                let kind = self.ignored(depth)?;
                if let Some(slot) = slot {
                    self.values.set(slot, kind, start, self.at);
                }
            }
        }
        Some(())
    }

    /// Reads a wanted string: borrows it if it has no escapes, otherwise unescapes it into the arena.
    fn string(&mut self, slot: usize) -> Option<()> {
        self.at += 1;
        let start = self.at;
        let end = start + memchr2(b'"', b'\\', &self.bytes[start..])?;
        if self.bytes[end] == b'"' {
            self.values.set(slot, Kind::Text, start, end);
            self.at = end + 1;
            return Some(());
        }
        let arena_start = self.values.arena.len();
        self.unescape(start, end)?;
        self.values.set_arena(slot, Kind::Text, arena_start);
        Some(())
    }

    /// Unescapes the string that begins at `start` and has its first backslash at `backslash`.
    fn unescape(&mut self, start: usize, backslash: usize) -> Option<()> {
        let mut unescaped = std::mem::take(&mut self.values.unescaped);
        let mut special = std::mem::take(&mut self.values.special);
        let length = self.unescape_into(start, backslash, &mut special, &mut unescaped);
        let text = length.and_then(|length| simdutf8::basic::from_utf8(&unescaped[..length]).ok());
        let done = text.map(|text| self.values.arena.push_str(text));
        self.values.unescaped = unescaped;
        self.values.special = special;
        done
    }

    /// Writes the unescaped string to the start of `out` and returns its length.
    ///
    /// The positions of quotes and backslashes are found first, many at a time, and the bytes between
    /// them are copied in steps of a fixed size. Searching for each one and copying exactly the bytes
    /// before it would cost more in mispredicted branches than everything else together.
    fn unescape_into(
        &mut self,
        start: usize,
        backslash: usize,
        special: &mut Vec<u32>,
        out: &mut Vec<u8>,
    ) -> Option<usize> {
        // An escape is never shorter than the character that it stands for.
        let most = self.bytes.len() - start + STEP;
        if out.len() < most {
            out.resize(most, 0);
        }
        let (mut copied, mut end) = (start, 0);
        let mut window = backslash;
        while window < self.bytes.len() {
            let window_end = self.bytes.len().min(window + bytes::MOST);
            let in_window = &self.bytes[window..window_end];
            for &place in bytes::find_either(in_window, *b"\"\\", special) {
                let at = window + place as usize;
                if at < copied {
                    // This is the second character of an escape.
                    continue;
                }
                let plain = at - copied;
                match self.bytes[copied..].first_chunk::<STEP>() {
                    Some(step) if plain <= STEP => out[end..end + STEP].copy_from_slice(step),
                    _ => out[end..end + plain].copy_from_slice(&self.bytes[copied..at]),
                }
                end += plain;
                self.at = at + 1;
                if self.bytes[at] == b'"' {
                    return Some(end);
                }
                let letter = self.next()?;
                let simple = SIMPLE_ESCAPES[usize::from(letter)];
                if simple > 0 {
                    out[end] = simple;
                    end += 1;
                } else if letter == b'u' {
                    end += self.unicode_escape()?.encode_utf8(&mut out[end..]).len();
                } else {
                    return None;
                }
                copied = self.at;
            }
            window = window_end;
        }
        None
    }

    fn unicode_escape(&mut self) -> Option<char> {
        let unit = hex4(&self.bytes[self.at..])?;
        self.at += 4;
        let code = match unit {
            0xD800..=0xDBFF => {
                let low = escaped_unit(&self.bytes[self.at..])?;
                self.at += 6;
                let low = (0xDC00..=0xDFFF).contains(&low).then(|| low - 0xDC00)?;
                0x1_0000 + ((unit - 0xD800) << 10) + low
            }
            unit => unit,
        };
        char::from_u32(code)
    }

    /// Skips a value that is not wanted and returns its kind.
    fn ignored(&mut self, depth: usize) -> Option<Kind> {
        match *self.bytes.get(self.at)? {
            b'"' => self.ignored_string().map(|()| Kind::Text),
            b'{' | b'[' if depth == MAX_DEPTH => None,
            b'{' => self.object(&[], depth + 1).map(|()| Kind::Object),
            b'[' => self.ignored_list(depth + 1).map(|()| Kind::List),
            b't' => self.literal("true").map(|()| Kind::True),
            b'f' => self.literal("false").map(|()| Kind::False),
            b'n' => self.literal("null").map(|()| Kind::Null),
            _ => self.number().map(|()| Kind::Number),
        }
    }

    fn ignored_string(&mut self) -> Option<()> {
        self.at += 1;
        loop {
            self.at += memchr2(b'"', b'\\', &self.bytes[self.at..])? + 1;
            if self.bytes[self.at - 1] == b'"' {
                return Some(());
            }
            match self.next()? {
                b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => {}
                b'u' => {
                    hex4(&self.bytes[self.at..])?;
                    self.at += 4;
                }
                _ => return None,
            }
        }
    }

    fn ignored_list(&mut self, depth: usize) -> Option<()> {
        self.at += 1;
        self.blanks();
        if self.bytes.get(self.at) == Some(&b']') {
            self.at += 1;
            return Some(());
        }
        loop {
            self.blanks();
            self.ignored(depth)?;
            self.blanks();
            match self.next()? {
                b',' => {}
                b']' => return Some(()),
                _ => return None,
            }
        }
    }

    fn literal(&mut self, literal: &str) -> Option<()> {
        self.bytes[self.at..]
            .starts_with(literal.as_bytes())
            .then_some(())?;
        self.at += literal.len();
        Some(())
    }

    fn number(&mut self) -> Option<()> {
        if self.bytes.get(self.at) == Some(&b'-') {
            self.at += 1;
        }
        match self.next()? {
            b'0' => {}
            b'1'..=b'9' => self.digits(),
            _ => return None,
        }
        if self.bytes.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.some_digits()?;
        }
        if matches!(self.bytes.get(self.at), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.bytes.get(self.at), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.some_digits()?;
        }
        Some(())
    }

    fn digits(&mut self) {
        while matches!(self.bytes.get(self.at), Some(b'0'..=b'9')) {
            self.at += 1;
        }
    }

    fn some_digits(&mut self) -> Option<()> {
        let start = self.at;
        self.digits();
        (self.at > start).then_some(())
    }
}

/// Reads features from a list of strings or of `[string, weight]`, or from an object `{string:
/// weight}`.
pub(super) fn features(
    json: &str,
    invalid_text: InvalidText,
    take: &mut dyn FnMut(&str, f64),
) -> Result<(), String> {
    let mended = match invalid_text {
        InvalidText::Reject => None,
        InvalidText::Lossy => mend_surrogates(json),
    };
    let mut deserializer = serde_json::Deserializer::from_str(mended.as_deref().unwrap_or(json));
    deserializer
        .deserialize_any(FeatureList { take })
        .map_err(|error| {
            let text = error.to_string();
            let what = text
                .rfind(" at line ")
                .map_or(text.as_str(), |at| &text[..at]);
            format!("holds no features: {what}")
        })
}

struct FeatureList<'a> {
    take: &'a mut dyn FnMut(&str, f64),
}

impl<'de> Visitor<'de> for FeatureList<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of strings or of [string, weight], or an object {string: weight}")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while let Some(Feature { text, weight }) = list.next_element()? {
            (self.take)(&text, checked_weight(weight)?);
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        while let Some((text, weight)) = object.next_entry::<String, f64>()? {
            (self.take)(&text, checked_weight(weight)?);
        }
        Ok(())
    }
}

fn checked_weight<E: serde::de::Error>(weight: f64) -> Result<f64, E> {
    if weight > 0.0 && weight <= MOST_WEIGHT {
        return Ok(weight);
    }
    Err(E::custom(format_args!(
        "the weight {weight} is not a number above 0 and at most {MOST_WEIGHT}"
    )))
}

struct Feature {
    text: String,
    weight: f64,
}

impl<'de> Deserialize<'de> for Feature {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FeatureVisitor)
    }
}

struct FeatureVisitor;

impl<'de> Visitor<'de> for FeatureVisitor {
    type Value = Feature;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or [string, weight]")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Feature, E> {
        Ok(Feature {
            text: text.to_owned(),
            weight: 1.0,
        })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut pair: A) -> Result<Feature, A::Error> {
        let length = |found| serde::de::Error::invalid_length(found, &"[string, weight]");
        let text = pair.next_element()?.ok_or_else(|| length(0))?;
        let weight = pair.next_element()?.ok_or_else(|| length(1))?;
        match pair.next_element::<IgnoredAny>()? {
            None => Ok(Feature { text, weight }),
            Some(_) => Err(length(3)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn plan() -> (Plan, Paths) {
        let fields = Fields {
            text: vec!["text".to_owned()],
            id: IdField::Named("id".to_owned()),
            extra: vec!["a".to_owned(), "a.b".to_owned(), "a.b.c".to_owned()],
            ..Fields::default()
        };
        let plan = Plan::new(&fields, Some("id"));
        let paths = Paths::new(&plan);
        (plan, paths)
    }

    /// Parses a row with `define` and returns the kinds and strings of all slots.
    fn defined(row: &str) -> Option<Vec<(Kind, String)>> {
        let (plan, paths) = plan();
        let mut values = Values::default();
        values.clear(&plan);
        define(row, &paths, InvalidText::Reject, &mut values).ok()?;
        Some(values.shown(row))
    }

    fn scanned(row: &str) -> Option<Vec<(Kind, String)>> {
        let (plan, paths) = plan();
        let mut values = Values::default();
        values.clear(&plan);
        scan(row, &paths, &mut values).then(|| values.shown(row))
    }

    #[test]
    fn usual_rows_are_scanned() {
        for row in [
            r#"{"id": "1", "text": "plain"}"#,
            r#"{"id":12345678901234567890,"text":"a\n\n\"b\" \\ \/ \t \u4e2d\ud83d\ude00"}"#,
            r#" { "text" : "" , "meta":{"x":[1,-2.5e-3,{"y":null}],"z":true}, "a":{"b":{"c":1}} } "#,
            r#"{"a":1,"a":{"b":"x"},"a.b":"y","text":"\u0000","text":null}"#,
            r#"{}"#,
        ] {
            assert!(scanned(row).is_some(), "{row}");
            assert_eq!(scanned(row), defined(row), "{row}");
        }
    }

    #[test]
    fn wrong_rows_are_not_scanned() {
        for row in [
            "",
            " ",
            "{",
            "}",
            "[]",
            "1",
            "\"a\"",
            "{\"text\"}",
            "{\"text\":}",
            "{\"text\":\"a}",
            "{\"text\":\"a\"",
            "{\"text\":\"a\",}",
            "{,\"text\":\"a\"}",
            "{\"text\":\"a\"}}",
            "{\"text\":\"a\"} x",
            "{\"text\":\"a\tb\"}",
            "{\"text\":\"\\x\"}",
            "{\"text\":\"\\u12\"}",
            "{\"text\":\"\\ud800\"}",
            "{\"text\":\"\\udc00\"}",
            "{\"text\":\"\\ud800\\u0041\"}",
            "{\"text\":01}",
            "{\"text\":1.}",
            "{\"text\":.5}",
            "{\"text\":-}",
            "{\"text\":1e}",
            "{\"text\":+1}",
            "{\"text\":nul}",
            "{\"text\":True}",
            "{\"text\":NaN}",
            "{'text':'a'}",
            "{\"text\":\"a\" \"b\":1}",
            "{\"text\":[1,]}",
            "{\"text\":[1 2]}",
            "{\"text\":1 2}",
            "{\"text\":[1}",
            "{\"x\":{\"y\":}}",
            "{\"x\":\"\\u+123\"}",
            "\u{FEFF}{}",
            "{\"a\":1}\u{0}",
        ] {
            assert_eq!(scanned(row), None, "{row}");
            assert_eq!(defined(row), None, "{row}");
        }
    }

    #[test]
    fn the_last_of_equal_keys_counts() {
        let row = r#"{"text":"1","text":"2","a":{"b":1},"a":{}}"#;
        let values = defined(row).unwrap();
        assert_eq!(values[0], (Kind::Text, "2".to_owned()));
        assert_eq!(values[3].0, Kind::Missing);
    }

    #[test]
    fn lone_surrogates_are_mended_on_request() {
        let (plan, paths) = plan();
        let mut values = Values::default();
        for (text, expected) in [
            (r"a\ud800", "a\u{FFFD}"),
            (r"\udc00b", "\u{FFFD}b"),
            (r"\ud800\ud83d\ude00", "\u{FFFD}😀"),
            (r"\\ud800", r"\ud800"),
            (r"\ud800\n", "\u{FFFD}\n"),
            (r"\ud83d\ude00", "😀"),
        ] {
            let row = format!("{{\"text\":\"{text}\"}}");
            parse(&row, &plan, &paths, InvalidText::Lossy, &mut values).unwrap();
            assert_eq!(values.shown(&row)[0].1, expected, "{text}");
        }
        let row = r#"{"text":"\ud800"}"#;
        assert!(parse(row, &plan, &paths, InvalidText::Reject, &mut values).is_err());
    }

    #[test]
    fn features_in_each_form() {
        let read = |json: &str| {
            let mut found = Vec::new();
            let mut take = |text: &str, weight: f64| found.push((text.to_owned(), weight));
            features(json, InvalidText::Reject, &mut take).map(|()| found)
        };
        let expected = vec![("a".to_owned(), 1.0), ("b\n".to_owned(), 2.5)];
        assert_eq!(read(r#"["a", ["b\n", 2.5]]"#).unwrap(), expected);
        assert_eq!(read(r#"{"a": 1, "b\n": 2.5}"#).unwrap(), expected);
        for wrong in [
            r#"[1]"#,
            r#"[["a"]]"#,
            r#"[["a", 1, 2]]"#,
            r#"{"a": "b"}"#,
            r#"{"a": 0}"#,
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    /// Generates values as JSON text, with all kinds of escapes.
    fn json() -> impl Strategy<Value = String> {
        let string = prop::collection::vec(
            prop::sample::select(vec![
                "a",
                "é",
                "中",
                "😀",
                " ",
                "\\n",
                "\\\"",
                "\\\\",
                "\\/",
                "\\u4e2d",
                "\\ud83d\\ude00",
                "\\uD800",
                "\\udfff",
                "\\u00",
                "\\q",
                "\u{1}",
                "{",
                "}",
                "[",
                ",",
                ":",
            ]),
            0..6,
        )
        .prop_map(|parts| format!("\"{}\"", parts.concat()));
        let leaf = prop_oneof![
            6 => string,
            1 => prop::sample::select(vec!["null", "true", "false", "0", "-1.5e+3", "01", "1e999", "-", "tru"])
                .prop_map(str::to_owned),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            let key = prop::sample::select(vec![
                "text", "id", "a", "b", "c", "a.b", "a.b.c", "x", "t\\u0065xt", "\\ud800",
            ]);
            let member = (key, inner.clone()).prop_map(|(key, value)| format!("\"{key}\": {value}"));
            prop_oneof![
                1 => prop::collection::vec(inner, 0..4).prop_map(|all| format!("[{}]", all.join(", "))),
                3 => prop::collection::vec(member, 0..5).prop_map(|all| format!("{{{}}}", all.join(","))),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]
        #[test]
        fn scanner_and_definition_agree(row in json(), cut in 0usize..200, damage: Option<(usize, u8)>) {
            let mut row = row;
            if let Some((at, byte)) = damage {
                let mut bytes = row.clone().into_bytes();
                let at = at % bytes.len();
                bytes[at] = byte & 0x7F;
                row = String::from_utf8(bytes).unwrap_or(row);
            }
            if cut < 30 && row.is_char_boundary(row.len().saturating_sub(cut)) {
                row.truncate(row.len().saturating_sub(cut));
            }
            if let Some(values) = scanned(&row) {
                prop_assert_eq!(Some(values), defined(&row));
            }
        }
    }
}
