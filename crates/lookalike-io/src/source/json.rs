//! Extracts the wanted fields of a JSON object.
//!
//! `serde_json` defines which rows are valid and what they mean. A scanner is tried first. It passes
//! over the object once, jumps from quote to backslash, and borrows strings without escapes. It gives
//! up on anything unusual: control characters, escaped keys, lone surrogates, deep nesting, and every
//! error. Therefore it never rejects a row, and a row that it accepts has the same values under
//! `serde_json`; a property test verifies this.

use std::fmt;

use lookalike::bytes;
use lookalike::text::weight::MOST_WEIGHT;
use lookalike_documents::decoding::InvalidText;
use memchr::{memchr, memchr2};
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::row_values::{FieldPlan, RowValues, ValueKind, ValueSlot};
use super::{IdField, WantedFields};

/// The wanted fields as a tree of names.
#[derive(Debug, Default)]
pub(super) struct FieldPaths(Vec<PathNode>);

#[derive(Debug)]
struct PathNode {
    name: String,
    slot: Option<usize>,
    /// `true` at the end of a path of names, where a field that is itself named like the path has priority.
    is_path: bool,
    children: Vec<PathNode>,
    /// The slots of all nodes below this one.
    slots_below: Vec<usize>,
}

impl PathNode {
    /// Returns the slot that a value at this node belongs to.
    fn open_slot(&self, values: &RowValues) -> Option<usize> {
        self.slot
            .filter(|&slot| !self.is_path || !values.has_literal_name(slot))
    }

    /// Collects the slots below each node.
    fn collect_slots(&mut self) -> Vec<usize> {
        let below = self.children.iter_mut().flat_map(Self::collect_slots);
        self.slots_below = below.collect();
        let own = self.slot.into_iter();
        own.chain(self.slots_below.iter().copied()).collect()
    }
}

impl FieldPaths {
    /// Inserts each name of the plan twice: as a path of names separated by dots, and as a name of its
    /// own.
    pub(super) fn new(plan: &FieldPlan) -> Self {
        let mut paths = Self::default();
        for (slot, name) in plan.names.iter().enumerate() {
            child_node(&mut paths.0, name).slot = Some(slot);
            if let Some((first, rest)) = name.split_once('.') {
                let mut last = child_node(&mut paths.0, first);
                for part in rest.split('.') {
                    last = child_node(&mut last.children, part);
                }
                last.slot = Some(slot);
                last.is_path = true;
            }
        }
        for node in &mut paths.0 {
            node.collect_slots();
        }
        paths
    }
}

fn child_node<'a>(nodes: &'a mut Vec<PathNode>, name: &str) -> &'a mut PathNode {
    let known = nodes.iter().position(|node| node.name == name);
    let at = known.unwrap_or_else(|| {
        nodes.push(PathNode {
            name: name.to_owned(),
            slot: None,
            is_path: false,
            children: Vec::new(),
            slots_below: Vec::new(),
        });
        nodes.len() - 1
    });
    &mut nodes[at]
}

/// Removes the values of an earlier field of the same name, because the last one counts. A field with dots in its name
/// has priority over a path of names.
fn forget_earlier(node: &PathNode, values: &mut RowValues) {
    if let Some(slot) = node.open_slot(values) {
        values.slots[slot] = ValueSlot::default();
        if !node.is_path {
            values.claim_literal_name(slot);
        }
    }
    for child in &node.children {
        forget_earlier(child, values);
    }
}

/// Stores the wanted fields of a row in `values`, or returns the reason why the row is bad.
pub(super) fn parse_row(
    row: &str,
    plan: &FieldPlan,
    paths: &FieldPaths,
    invalid_text: InvalidText,
    values: &mut RowValues,
) -> Result<(), String> {
    values.clear_row(plan);
    if scan_row(row, paths, values) {
        return Ok(());
    }
    values.clear_row(plan);
    parse_by_definition(row, paths, invalid_text, values)
}

/// Returns whether a row is an object with a field of this name; `None` if it is not a valid object.
pub(super) fn has_field(row: &str, name: &str) -> Option<bool> {
    let object: std::collections::BTreeMap<String, &RawValue> = serde_json::from_str(row).ok()?;
    Some(object.contains_key(name))
}

/// Looks for fields that an object must not have yet.
pub(crate) struct FieldProbe {
    plan: FieldPlan,
    paths: FieldPaths,
    values: RowValues,
}

impl FieldProbe {
    pub(crate) fn new(names: &[&str]) -> Self {
        let extra = names.iter().map(|&name| name.to_owned()).collect();
        let fields = WantedFields {
            text: Vec::new(),
            id: IdField::RowNumber,
            extra,
            ..WantedFields::default()
        };
        let plan = FieldPlan::new(&fields, None);
        let paths = FieldPaths::new(&plan);
        Self {
            plan,
            paths,
            values: RowValues::default(),
        }
    }

    /// Returns the first of the fields that the object has.
    pub(crate) fn find_field(&mut self, row: &str) -> Result<Option<&str>, String> {
        parse_row(
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
            .position(|slot| slot.kind != ValueKind::Missing);
        Ok(found.map(|slot| self.plan.names[slot].as_str()))
    }
}

/// Parses a row with `serde_json`, which defines the result.
fn parse_by_definition(
    row: &str,
    paths: &FieldPaths,
    invalid_text: InvalidText,
    values: &mut RowValues,
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
            (_, Err(error)) => describe_error(&error),
        });
    }
    let mut deserializer = serde_json::Deserializer::from_str(row);
    ObjectVisitor {
        nodes: &paths.0,
        values,
    }
    .deserialize(&mut deserializer)
    .and_then(|()| deserializer.end())
    .map_err(|error| describe_row_error(row, &error))
}

/// Returns all fields of a row that is an object. Values are parsed that [`parse_row`] passes over.
pub(super) fn parse_fields(
    row: &str,
    invalid_text: InvalidText,
) -> Result<Map<String, Value>, String> {
    let mended = match invalid_text {
        InvalidText::Reject => None,
        InvalidText::Lossy => mend_surrogates(row),
    };
    let row = mended.as_deref().unwrap_or(row);
    serde_json::from_str(row).map_err(|error| describe_row_error(row, &error))
}

fn describe_row_error(row: &str, error: &serde_json::Error) -> String {
    match mend_surrogates(row) {
        Some(_) => "an escape in the row is half of a surrogate pair".to_owned(),
        None => describe_error(error),
    }
}

/// Returns the message of `serde_json` with the column as the position, because a row is a single line.
fn describe_error(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let what = text
        .rfind(" at line ")
        .map_or(text.as_str(), |at| &text[..at]);
    format!(
        "the row is not valid JSON: {what} at its byte {}",
        error.column()
    )
}

struct ObjectVisitor<'a> {
    nodes: &'a [PathNode],
    values: &'a mut RowValues,
}

impl<'de> DeserializeSeed<'de> for ObjectVisitor<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for ObjectVisitor<'_> {
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
                    forget_earlier(node, self.values);
                    store_value(node, value.get(), self.values)
                        .map_err(serde::de::Error::custom)?;
                }
            }
        }
        Ok(())
    }
}

/// Stores a wanted value, given as JSON.
fn store_value(
    node: &PathNode,
    json: &str,
    values: &mut RowValues,
) -> Result<(), serde_json::Error> {
    let kind = match json.as_bytes()[0] {
        b'"' => ValueKind::Text,
        b'{' => ValueKind::Object,
        b'[' => ValueKind::List,
        b't' => ValueKind::True,
        b'f' => ValueKind::False,
        b'n' => ValueKind::Null,
        _ => ValueKind::Number,
    };
    if kind == ValueKind::Object && !node.children.is_empty() {
        let mut deserializer = serde_json::Deserializer::from_str(json);
        ObjectVisitor {
            nodes: &node.children,
            values,
        }
        .deserialize(&mut deserializer)?;
    }
    if kind == ValueKind::List && !node.children.is_empty() {
        store_elements(node, json, values)?;
    }
    if let Some(slot) = node.open_slot(values) {
        match kind {
            ValueKind::Text => {
                values.set_copied_text(slot, kind, &serde_json::from_str::<String>(json)?)
            }
            _ => values.set_copied_text(slot, kind, json),
        }
    }
    Ok(())
}

/// Largest number of lists in one another of which values are wanted.
const MAX_LIST_DEPTH: usize = 128;

/// Stores the wanted values of the objects in a list, joined.
fn store_elements(
    node: &PathNode,
    json: &str,
    values: &mut RowValues,
) -> Result<(), serde_json::Error> {
    let from = values.begin_elements();
    append_elements(node, json, values, 0)?;
    values.join_elements(&node.slots_below, from, "");
    Ok(())
}

/// Appends the wanted values of the objects in a list, and of those in its lists, which are joined together with them: a join
/// of each inner list would copy all texts once more.
fn append_elements(
    node: &PathNode,
    json: &str,
    values: &mut RowValues,
    depth: usize,
) -> Result<(), serde_json::Error> {
    if depth == MAX_LIST_DEPTH {
        return Err(serde::de::Error::custom(format!(
            "lists are nested more than {MAX_LIST_DEPTH} deep"
        )));
    }
    let elements: Vec<&RawValue> = serde_json::from_str(json)?;
    for element in elements {
        let element = element.get();
        if element.starts_with('[') {
            append_elements(node, element, values, depth + 1)?;
            continue;
        }
        if element.starts_with('{') {
            let mut deserializer = serde_json::Deserializer::from_str(element);
            ObjectVisitor {
                nodes: &node.children,
                values,
            }
            .deserialize(&mut deserializer)?;
        }
        values.end_element(&node.slots_below);
    }
    Ok(())
}

/// Returns the row with U+FFFD in place of every escape of a lone surrogate, or `None` if there is no
/// such escape.
pub(super) fn mend_surrogates(row: &str) -> Option<String> {
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
        [b'\\', b'u', digits @ ..] => parse_hex4(digits),
        _ => None,
    }
}

fn parse_hex4(bytes: &[u8]) -> Option<u32> {
    let digits = bytes.get(..4)?;
    digits.iter().try_fold(0, |unit, &digit| {
        Some(unit << 4 | char::from(digit).to_digit(16)?)
    })
}

/// Tries the fast scanner. If it returns `false`, `values` must be cleared and
/// [`parse_by_definition`] must parse the row.
fn scan_row(row: &str, paths: &FieldPaths, values: &mut RowValues) -> bool {
    // Control characters are rare between values and invalid in strings. One test of the whole row is
    // cheaper than one for each string.
    if row.bytes().fold(false, |any, byte| any | (byte < 0x20)) {
        return false;
    }
    let mut scanner = JsonScanner {
        row,
        bytes: row.as_bytes(),
        at: 0,
        values,
    };
    scanner.skip_blanks();
    scanner.scan_object(&paths.0, 0).is_some() && {
        scanner.skip_blanks();
        scanner.at == row.len()
    }
}

/// Deepest nesting that the scanner handles.
const MAX_DEPTH: usize = 32;

/// Bytes that unescaping copies in one step.
const COPIED_BYTES_AT_ONCE: usize = 64;

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

/// A fast parser of one row. Every method returns `None` if [`parse_by_definition`] must parse the row;
/// otherwise it leaves `at` after what it has read.
struct JsonScanner<'a> {
    row: &'a str,
    bytes: &'a [u8],
    at: usize,
    values: &'a mut RowValues,
}

impl<'a> JsonScanner<'a> {
    /// Skips spaces. Other white space does not occur, because a row with control characters is not
    /// scanned.
    fn skip_blanks(&mut self) {
        while self.bytes.get(self.at) == Some(&b' ') {
            self.at += 1;
        }
    }

    fn next_byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    fn expect_byte(&mut self, byte: u8) -> Option<()> {
        (self.next_byte()? == byte).then_some(())
    }

    fn scan_object(&mut self, nodes: &[PathNode], depth: usize) -> Option<()> {
        self.expect_byte(b'{')?;
        self.skip_blanks();
        if self.bytes.get(self.at) == Some(&b'}') {
            self.at += 1;
            return Some(());
        }
        loop {
            let key = self.scan_key()?;
            match nodes.iter().find(|node| node.name == key) {
                Some(node) => self.scan_wanted(node, depth)?,
                None => {
                    self.skip_value(depth)?;
                }
            }
            self.skip_blanks();
            match self.next_byte()? {
                b',' => self.skip_blanks(),
                b'}' => return Some(()),
                _ => return None,
            }
        }
    }

    /// Reads a key without escapes, and the colon after it.
    fn scan_key(&mut self) -> Option<&'a str> {
        self.expect_byte(b'"')?;
        let start = self.at;
        let end = start + memchr2(b'"', b'\\', &self.bytes[start..])?;
        self.at = end;
        self.expect_byte(b'"')?;
        self.skip_blanks();
        self.expect_byte(b':')?;
        self.skip_blanks();
        Some(&self.row[start..end])
    }

    fn scan_wanted(&mut self, node: &PathNode, depth: usize) -> Option<()> {
        forget_earlier(node, self.values);
        let start = self.at;
        let slot = node.open_slot(self.values);
        match (self.bytes.get(start)?, slot) {
            (b'"', Some(slot)) => return self.scan_string(slot),
            (b'{', _) if !node.children.is_empty() => {
                if depth == MAX_DEPTH {
                    return None;
                }
                self.scan_object(&node.children, depth + 1)?;
                if let Some(slot) = slot {
                    self.values
                        .set_range(slot, ValueKind::Object, start, self.at);
                }
            }
            (b'[', _) if !node.children.is_empty() => {
                self.scan_elements(node, depth)?;
                if let Some(slot) = slot {
                    self.values.set_range(slot, ValueKind::List, start, self.at);
                }
            }
            (_, slot) => {
                let kind = self.skip_value(depth)?;
                if let Some(slot) = slot {
                    self.values.set_range(slot, kind, start, self.at);
                }
            }
        }
        Some(())
    }

    /// Reads a list, and joins the wanted values of the objects in it.
    fn scan_elements(&mut self, node: &PathNode, depth: usize) -> Option<()> {
        let from = self.values.begin_elements();
        self.append_elements(node, depth)?;
        self.values.join_elements(&node.slots_below, from, self.row);
        Some(())
    }

    /// Appends the wanted values of the objects in a list, and of those in its lists.
    fn append_elements(&mut self, node: &PathNode, depth: usize) -> Option<()> {
        if depth + 1 >= MAX_DEPTH {
            return None;
        }
        self.at += 1;
        self.skip_blanks();
        if self.bytes.get(self.at) == Some(&b']') {
            self.at += 1;
            return Some(());
        }
        loop {
            self.skip_blanks();
            match self.bytes.get(self.at)? {
                b'{' => {
                    self.scan_object(&node.children, depth + 2)?;
                    self.values.end_element(&node.slots_below);
                }
                b'[' => self.append_elements(node, depth + 1)?,
                _ => {
                    self.skip_value(depth + 1)?;
                }
            }
            self.skip_blanks();
            match self.next_byte()? {
                b',' => {}
                b']' => return Some(()),
                _ => return None,
            }
        }
    }

    /// Reads a wanted string: borrows it if it has no escapes, otherwise unescapes it into the arena.
    fn scan_string(&mut self, slot: usize) -> Option<()> {
        self.at += 1;
        let start = self.at;
        let end = start + memchr2(b'"', b'\\', &self.bytes[start..])?;
        if self.bytes[end] == b'"' {
            self.values.set_range(slot, ValueKind::Text, start, end);
            self.at = end + 1;
            return Some(());
        }
        let arena_start = self.values.arena.len();
        self.unescape_string(start, end)?;
        self.values
            .set_arena_range(slot, ValueKind::Text, arena_start);
        Some(())
    }

    /// Unescapes the string that begins at `start` and has its first backslash at `backslash`.
    fn unescape_string(&mut self, start: usize, backslash: usize) -> Option<()> {
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
        let most = self.bytes.len() - start + COPIED_BYTES_AT_ONCE;
        if out.len() < most {
            out.resize(most, 0);
        }
        let (mut copied, mut end) = (start, 0);
        let mut window = backslash;
        while window < self.bytes.len() {
            let window_end = self.bytes.len().min(window + bytes::MOST_SEARCHED_BYTES);
            let in_window = &self.bytes[window..window_end];
            for &place in bytes::find_either(in_window, *b"\"\\", special) {
                let at = window + place as usize;
                if at < copied {
                    // This is the second character of an escape.
                    continue;
                }
                let plain = at - copied;
                match self.bytes[copied..].first_chunk::<COPIED_BYTES_AT_ONCE>() {
                    Some(step) if plain <= COPIED_BYTES_AT_ONCE => {
                        out[end..end + COPIED_BYTES_AT_ONCE].copy_from_slice(step)
                    }
                    _ => out[end..end + plain].copy_from_slice(&self.bytes[copied..at]),
                }
                end += plain;
                self.at = at + 1;
                if self.bytes[at] == b'"' {
                    return Some(end);
                }
                let letter = self.next_byte()?;
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
        let unit = parse_hex4(&self.bytes[self.at..])?;
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
    fn skip_value(&mut self, depth: usize) -> Option<ValueKind> {
        match *self.bytes.get(self.at)? {
            b'"' => self.ignored_string().map(|()| ValueKind::Text),
            b'{' | b'[' if depth == MAX_DEPTH => None,
            b'{' => self.scan_object(&[], depth + 1).map(|()| ValueKind::Object),
            b'[' => self.ignored_list(depth + 1).map(|()| ValueKind::List),
            b't' => self.scan_literal("true").map(|()| ValueKind::True),
            b'f' => self.scan_literal("false").map(|()| ValueKind::False),
            b'n' => self.scan_literal("null").map(|()| ValueKind::Null),
            _ => self.scan_number().map(|()| ValueKind::Number),
        }
    }

    fn ignored_string(&mut self) -> Option<()> {
        self.at += 1;
        loop {
            self.at += memchr2(b'"', b'\\', &self.bytes[self.at..])? + 1;
            if self.bytes[self.at - 1] == b'"' {
                return Some(());
            }
            match self.next_byte()? {
                b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => {}
                b'u' => {
                    parse_hex4(&self.bytes[self.at..])?;
                    self.at += 4;
                }
                _ => return None,
            }
        }
    }

    fn ignored_list(&mut self, depth: usize) -> Option<()> {
        self.at += 1;
        self.skip_blanks();
        if self.bytes.get(self.at) == Some(&b']') {
            self.at += 1;
            return Some(());
        }
        loop {
            self.skip_blanks();
            self.skip_value(depth)?;
            self.skip_blanks();
            match self.next_byte()? {
                b',' => {}
                b']' => return Some(()),
                _ => return None,
            }
        }
    }

    fn scan_literal(&mut self, literal: &str) -> Option<()> {
        self.bytes[self.at..]
            .starts_with(literal.as_bytes())
            .then_some(())?;
        self.at += literal.len();
        Some(())
    }

    fn scan_number(&mut self) -> Option<()> {
        if self.bytes.get(self.at) == Some(&b'-') {
            self.at += 1;
        }
        match self.next_byte()? {
            b'0' => {}
            b'1'..=b'9' => self.skip_digits(),
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

    fn skip_digits(&mut self) {
        while matches!(self.bytes.get(self.at), Some(b'0'..=b'9')) {
            self.at += 1;
        }
    }

    fn some_digits(&mut self) -> Option<()> {
        let start = self.at;
        self.skip_digits();
        (self.at > start).then_some(())
    }
}

/// Reads features from a list of strings or of `[scan_string, weight]`, or from an object `{string:
/// weight}`.
pub(super) fn read_features(
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
        while let Some(JsonFeature { text, weight }) = list.next_element()? {
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

struct JsonFeature {
    text: String,
    weight: f64,
}

impl<'de> Deserialize<'de> for JsonFeature {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FeatureVisitor)
    }
}

struct FeatureVisitor;

impl<'de> Visitor<'de> for FeatureVisitor {
    type Value = JsonFeature;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or [string, weight]")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<JsonFeature, E> {
        Ok(JsonFeature {
            text: text.to_owned(),
            weight: 1.0,
        })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut pair: A) -> Result<JsonFeature, A::Error> {
        let length = |found| serde::de::Error::invalid_length(found, &"[string, weight]");
        let text = pair.next_element()?.ok_or_else(|| length(0))?;
        let weight = pair.next_element()?.ok_or_else(|| length(1))?;
        match pair.next_element::<IgnoredAny>()? {
            None => Ok(JsonFeature { text, weight }),
            Some(_) => Err(length(3)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn plan() -> (FieldPlan, FieldPaths) {
        let fields = WantedFields {
            text: vec!["text".to_owned()],
            id: IdField::Named("id".to_owned()),
            extra: vec!["a".to_owned(), "a.b".to_owned(), "a.b.c".to_owned()],
            ..WantedFields::default()
        };
        let plan = FieldPlan::new(&fields, Some("id"));
        let paths = FieldPaths::new(&plan);
        (plan, paths)
    }

    /// Parses a row with `parse_by_definition` and returns the kinds and strings of all slots.
    fn defined(row: &str) -> Option<Vec<(ValueKind, String)>> {
        let (plan, paths) = plan();
        let mut values = RowValues::default();
        values.clear_row(&plan);
        parse_by_definition(row, &paths, InvalidText::Reject, &mut values).ok()?;
        Some(values.describe_slots(row))
    }

    fn scanned(row: &str) -> Option<Vec<(ValueKind, String)>> {
        let (plan, paths) = plan();
        let mut values = RowValues::default();
        values.clear_row(&plan);
        scan_row(row, &paths, &mut values).then(|| values.describe_slots(row))
    }

    #[test]
    fn ordinary_rows_are_scanned() {
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
    fn malformed_rows_are_not_scanned() {
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
    fn last_of_equal_keys_wins() {
        let row = r#"{"text":"1","text":"2","a":{"b":1},"a":{}}"#;
        let values = defined(row).unwrap();
        assert_eq!(values[0], (ValueKind::Text, "2".to_owned()));
        assert_eq!(values[3].0, ValueKind::Missing);
    }

    #[test]
    fn values_of_objects_in_a_list_are_joined() {
        for (row, expected) in [
            (
                r#"{"a":[{"b":"x"},{"b":"y\n"},{"b":"z"}]}"#,
                (ValueKind::Text, "x\ny\n\nz"),
            ),
            (
                r#"{"a":[{"b":"x"},{"c":1},{"b":null},7,[{"b":"y"}]]}"#,
                (ValueKind::Text, "x\ny"),
            ),
            (r#"{"a":[{"b":1}]}"#, (ValueKind::Number, "1")),
            (
                r#"{"a":[{"b":1},{"b":true},{"b":["p","q"]}]}"#,
                (ValueKind::Text, "1\ntrue\np\nq"),
            ),
            (
                r#"{"a":[{"b":{"d":1}},{"b":"x"}]}"#,
                (ValueKind::Object, r#"{"d":1}"#),
            ),
            (r#"{"a":[]}"#, (ValueKind::Missing, "")),
            (
                r#"{"a":[{"b":"x"}],"a":[{"b":"y"}]}"#,
                (ValueKind::Text, "y"),
            ),
            (
                r#"{"a.b":"own","a":[{"b":"x"},{"b":"y"}]}"#,
                (ValueKind::Text, "own"),
            ),
            (r#"{"a":{"b":"x"},"a.b":"own"}"#, (ValueKind::Text, "own")),
            (r#"{"a.b":"own","a":{"b":"x"}}"#, (ValueKind::Text, "own")),
        ] {
            let values = defined(row).unwrap();
            assert_eq!((values[3].0, &*values[3].1), expected, "{row}");
            assert_eq!(scanned(row), Some(values), "{row}");
        }
    }

    #[test]
    fn lone_surrogates_are_replaced_on_request() {
        let (plan, paths) = plan();
        let mut values = RowValues::default();
        for (text, expected) in [
            (r"a\ud800", "a\u{FFFD}"),
            (r"\udc00b", "\u{FFFD}b"),
            (r"\ud800\ud83d\ude00", "\u{FFFD}😀"),
            (r"\\ud800", r"\ud800"),
            (r"\ud800\n", "\u{FFFD}\n"),
            (r"\ud83d\ude00", "😀"),
        ] {
            let row = format!("{{\"text\":\"{text}\"}}");
            parse_row(&row, &plan, &paths, InvalidText::Lossy, &mut values).unwrap();
            assert_eq!(values.describe_slots(&row)[0].1, expected, "{text}");
        }
        let row = r#"{"text":"\ud800"}"#;
        assert!(parse_row(row, &plan, &paths, InvalidText::Reject, &mut values).is_err());
    }

    #[test]
    fn features_parse_in_every_form() {
        let read = |json: &str| {
            let mut found = Vec::new();
            let mut take = |text: &str, weight: f64| found.push((text.to_owned(), weight));
            read_features(json, InvalidText::Reject, &mut take).map(|()| found)
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
        fn scanner_agrees_with_definition(row in json(), cut in 0usize..200, damage: Option<(usize, u8)>) {
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
