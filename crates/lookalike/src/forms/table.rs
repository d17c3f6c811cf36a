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

use std::collections::HashSet;

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

    /// Returns the forms, in the order of the table.
    pub fn forms(&self) -> &[Form] {
        &self.forms
    }

    /// Parses a table. `name` is the name that messages give.
    ///
    /// # Errors
    /// [`ErrorKind::Recipe`](crate::ErrorKind::Recipe) if the text is no table of this version, if two forms have the
    /// same name, or if a frame has fewer than two parts.
    pub fn parse_table(name: &str, text: &str) -> Result<Self> {
        let refuse = |reason: String| Error::recipe_error(format!("{name}: {reason}"));
        let table: Self = toml::from_str(text).map_err(|cause| {
            refuse(format!("this is not a table of forms: {}", cause.message()))
        })?;
        if table.lookalike_forms != VERSION {
            return Err(refuse(format!(
                "the table of forms has version {}, but this program reads version {VERSION}",
                table.lookalike_forms
            )));
        }
        let mut names = HashSet::new();
        for form in &table.forms {
            if !names.insert(&form.name) {
                return Err(refuse(format!("two forms have the name '{}'", form.name)));
            }
            let inner = form.frame.iter().skip(1).rev().skip(1);
            if inner.clone().any(|part| part.trim().is_empty())
                || form.frame.iter().all(|part| part.trim().is_empty())
            {
                return Err(refuse(format!(
                    "the frame of '{}' has an empty part: only its first or its last part may be empty, where the slot \
                     is at the edge of the text",
                    form.name
                )));
            }
            if form.frame.len() < 2 {
                return Err(refuse(format!(
                    "the frame of '{}' has no slot: give at least two parts, between which the slot stands",
                    form.name
                )));
            }
        }
        Ok(table)
    }

    /// Returns the table as a TOML document.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("a table of forms has only strings, lists and small numbers")
    }
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
    fn wrong_tables_are_refused_with_the_reason() {
        assert!(refused("form = 3").contains("forms.toml: this is not a table of forms"));
        assert!(refused("lookalike_forms = 2").contains("has version 2"));
        let form = "[[form]]\nname = \"a\"\nframe = [\"x\", \"y\"]\n";
        let twice = format!("lookalike_forms = 1\n{form}{form}");
        assert!(refused(&twice).contains("two forms have the name 'a'"));
        let short = "lookalike_forms = 1\n[[form]]\nname = \"a\"\nframe = [\"x\"]\n";
        assert!(refused(short).contains("has no slot"));
        assert_eq!(
            FormTable::parse_table("empty", "lookalike_forms = 1").unwrap(),
            FormTable::default()
        );
    }
}
