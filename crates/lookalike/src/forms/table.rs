//! A table of forms: the frames that texts of a corpus share, as text that a person reads and changes.
//!
//! ```toml
//! lookalike_forms = 1
//!
//! [[form]]
//! name = "f3b1c2d4"
//! documents = 150
//! frame = ["Weather for", "at 8 o'clock:", "degrees, wind from", "."]
//! values = [["Ulm", "Kiel"], ["14", "9"], ["west", "north"]]
//! ```
//!
//! Between two parts of a frame there is a slot. `documents` and `values`, which has examples for each slot, are for
//! readers; they have no effect.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// Version of the format.
const VERSION: u32 = 1;

/// A form: a frame with slots.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Form {
    /// Name that reports and tables give, distinct within a table.
    pub name: String,
    /// Number of documents of which the form was learned; 0 if a person added it.
    #[serde(default)]
    pub documents: u64,
    /// The parts of the frame in their order, at least two. A slot stands between two parts. The first and the last part
    /// may be empty; then a slot is at the edge of the text.
    pub frame: Vec<String>,
    /// Examples of the values of each slot.
    #[serde(default)]
    pub values: Vec<Vec<String>>,
}

impl Form {
    /// Creates a form that a person adds: it was learned of no documents and has no examples.
    ///
    /// # Errors
    /// [`ErrorKind::Recipe`](crate::ErrorKind::Recipe) if the name is blank, or if the frame has fewer than two parts, no
    /// words, or an empty part in its middle.
    pub fn from_frame(name: String, frame: Vec<String>) -> Result<Self> {
        let form = Self {
            name,
            documents: 0,
            frame,
            values: Vec::new(),
        };
        check_forms(std::slice::from_ref(&form)).map_err(Error::recipe_error)?;
        Ok(form)
    }

    /// Returns the number of slots.
    pub fn slot_count(&self) -> usize {
        self.frame.len() - 1
    }
}

/// A table of forms.
///
/// ```
/// use lookalike::forms::FormTable;
///
/// let table = FormTable::parse_table("shop.toml", r#"
/// lookalike_forms = 1
/// [[form]]
/// name = "offer"
/// frame = ["Today only:", "for", "euros."]
/// "#)?;
/// assert_eq!(table.forms()[0].slot_count(), 2);
/// assert_eq!(FormTable::parse_table("copy", &table.to_toml())?, table);
/// # Ok::<_, lookalike::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FormTable {
    lookalike_forms: u32,
    #[serde(default, rename = "form")]
    forms: Vec<Form>,
}

impl Default for FormTable {
    fn default() -> Self {
        Self::from_forms(Vec::new())
    }
}

impl FormTable {
    /// Returns the table of some forms.
    pub fn from_forms(forms: Vec<Form>) -> Self {
        Self {
            lookalike_forms: VERSION,
            forms,
        }
    }

    /// Returns the table with the forms of another one behind its own. A form whose frame is here already is left out,
    /// and one whose name another frame has here gets a further name.
    pub fn extend_with(&self, other: &Self) -> Self {
        let mut forms = self.forms.clone();
        let mut frames: HashSet<&[String]> = HashSet::new();
        frames.extend(self.forms.iter().map(|form| form.frame.as_slice()));
        let mut names: HashSet<String> = forms.iter().map(|form| form.name.clone()).collect();
        for form in &other.forms {
            if !frames.insert(&form.frame) {
                continue;
            }
            let further = (2..).map(|number| format!("{}-{number}", form.name));
            let name = std::iter::once(form.name.clone())
                .chain(further)
                .find(|name| !names.contains(name));
            let name = name.unwrap_or_default();
            names.insert(name.clone());
            forms.push(Form {
                name,
                ..form.clone()
            });
        }
        Self::from_forms(forms)
    }

    /// Returns the forms, in the order of the table.
    pub fn forms(&self) -> &[Form] {
        &self.forms
    }

    /// Parses a table. `name` is the name that messages give.
    ///
    /// # Errors
    /// [`ErrorKind::Recipe`](crate::ErrorKind::Recipe) if the text is no table of this version, if two forms have the
    /// same name or the same frame, or if a frame has fewer than two parts or no words.
    pub fn parse_table(name: &str, text: &str) -> Result<Self> {
        let refuse = |reason: String| Error::recipe_error(format!("{name}: {reason}"));
        let table: Self = toml::from_str(text).map_err(|cause| {
            let before = cause.span().and_then(|span| text.get(..span.start));
            let line = before.map_or(1, |before| before.matches('\n').count() + 1);
            refuse(format!(
                "this is not a table of forms: line {line}: {}",
                cause.message()
            ))
        })?;
        if table.lookalike_forms != VERSION {
            return Err(refuse(format!(
                "the table of forms has version {}, but this program reads version {VERSION}",
                table.lookalike_forms
            )));
        }
        check_forms(&table.forms).map_err(refuse)?;
        Ok(table)
    }

    /// Returns the table as a TOML document.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("a table of forms has only strings, lists and small numbers")
    }
}

/// Checks that the forms of a table can be told apart, and that each has words and a slot. Returns the reason if not.
fn check_forms(forms: &[Form]) -> std::result::Result<(), String> {
    let (mut names, mut frames) = (HashSet::new(), HashMap::new());
    for form in forms {
        let name = &form.name;
        if name.trim().is_empty() {
            return Err("a form has no name: give each a name".to_owned());
        }
        if !names.insert(name) {
            return Err(format!("two forms have the name '{name}'"));
        }
        if let Some(earlier) = frames.insert(&form.frame, name) {
            return Err(format!(
                "'{earlier}' and '{name}' have the same frame: strike one of them"
            ));
        }
        check_frame(form)?;
    }
    Ok(())
}

fn check_frame(Form { name, frame, .. }: &Form) -> std::result::Result<(), String> {
    if frame.len() < 2 {
        return Err(format!(
            "the frame of '{name}' has no slot: give at least two parts, between which the slot stands"
        ));
    }
    if frame[1..frame.len() - 1]
        .iter()
        .any(|part| part.trim().is_empty())
    {
        return Err(format!(
            "the frame of '{name}' has an empty part: only its first or its last part may be empty, where the slot is at \
             the edge of the text"
        ));
    }
    if !frame
        .iter()
        .any(|part| part.contains(char::is_alphanumeric))
    {
        return Err(format!("the frame of '{name}' has no words"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        FormTable::parse_table("forms.toml", text)
            .expect_err("refused")
            .to_string()
    }

    #[test]
    fn extended_table_keeps_its_forms() {
        let form = |name: &str, part: &str| Form {
            name: name.to_owned(),
            documents: 6,
            frame: vec![part.to_owned(), "end".to_owned()],
            values: Vec::new(),
        };
        let old = FormTable::from_forms(vec![form("a", "one"), form("a-2", "two")]);
        let new = FormTable::from_forms(vec![
            form("b", "one"),
            form("a", "three"),
            form("c", "four"),
        ]);
        let names_and_parts = |table: &FormTable| -> Vec<(String, String)> {
            let forms = table.forms().iter();
            forms
                .map(|form| (form.name.clone(), form.frame[0].clone()))
                .collect()
        };
        let expected = [
            ("a", "one"),
            ("a-2", "two"),
            ("a-3", "three"),
            ("c", "four"),
        ];
        let expected = expected.map(|(name, part)| (name.to_owned(), part.to_owned()));
        assert_eq!(names_and_parts(&old.extend_with(&new)), expected);
        assert_eq!(old.extend_with(&FormTable::default()), old);
    }

    #[test]
    fn wrong_tables_are_refused_with_the_reason() {
        assert!(refused("form = 3").contains("forms.toml: this is not a table of forms"));
        assert!(refused("lookalike_forms = 2").contains("has version 2"));
        let form = "[[form]]\nname = \"a\"\nframe = [\"x\", \"y\"]\n";
        let twice = format!("lookalike_forms = 1\n{form}{form}");
        assert!(refused(&twice).contains("two forms have the name 'a'"));
        let other = form.replace("\"a\"", "\"b\"");
        let equal = format!("lookalike_forms = 1\n{form}{other}");
        assert!(refused(&equal).contains("'a' and 'b' have the same frame"));
        let unnamed = form.replace("\"a\"", "\" \"");
        assert!(refused(&format!("lookalike_forms = 1\n{unnamed}")).contains("no name"));
        let wordless = form.replace("\"x\", \"y\"", "\"…\", \"!\"");
        assert!(refused(&format!("lookalike_forms = 1\n{wordless}")).contains("no words"));
        assert!(refused("lookalike_forms = 1\n\nform = 3").contains("line 3: "));
        let short = "lookalike_forms = 1\n[[form]]\nname = \"a\"\nframe = [\"x\"]\n";
        assert!(refused(short).contains("has no slot"));
        assert_eq!(
            FormTable::parse_table("empty", "lookalike_forms = 1").unwrap(),
            FormTable::default()
        );
    }
}
