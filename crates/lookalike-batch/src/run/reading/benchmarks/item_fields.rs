//! The fields of items, as a user names them: `question=…,choices=…,answer=…,passage=…,id=…`.

use std::fmt;
use std::str::FromStr;

use lookalike_io::error::Error;

/// The names in the order in which messages list them.
const FIELD_ROLES: [&str; 5] = ["question", "choices", "answer", "passage", "id"];

/// The fields of a row that make an item. They replace the presets.
///
/// `a.b` reaches the field `b` of an object `a`, and also a field that is itself named `a.b`.
///
/// ```text
/// question=prompt,choices=option_a+option_b+option_c,answer=key
/// question=doc.query,answer=doc.gold,id=doc_id
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemFields {
    /// The field of the question.
    pub question: String,
    /// The fields of the choices, in their order. A single one may hold a list, or an object with the choices by their
    /// labels.
    pub choices: Vec<String>,
    /// The field of the right answer: its text, or the label or the number of a choice.
    pub answer: Option<String>,
    /// The field of the passage.
    pub passage: Option<String>,
    /// The field of the id.
    pub id: Option<String>,
}

impl ItemFields {
    /// Returns all fields with their roles, the question first.
    pub(super) fn named_fields(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let [question, choices, answer, passage, id] = FIELD_ROLES;
        let optional = [
            (answer, &self.answer),
            (passage, &self.passage),
            (id, &self.id),
        ];
        let optional = optional.into_iter();
        std::iter::once((question, &*self.question))
            .chain(self.choices.iter().map(move |name| (choices, &**name)))
            .chain(optional.filter_map(|(role, name)| Some((role, name.as_deref()?))))
    }
}

impl FromStr for ItemFields {
    type Err = Error;

    /// Parses `role=field` pairs with commas between them.
    ///
    /// # Errors
    /// An unknown role, a role that is given twice or without a field, and a missing question.
    fn from_str(text: &str) -> Result<Self, Error> {
        let refuse = |reason: String| Err(Error::usage_error(format!("`{text}` {reason}")));
        let mut values: [Option<&str>; 5] = [None; 5];
        for part in text.split(',').map(str::trim) {
            let Some((role, field)) = part.split_once('=') else {
                return refuse(format!(
                    "has the part `{part}` without `=`: write, for example, question=FIELD"
                ));
            };
            let (role, field) = (role.trim(), field.trim());
            let Some(at) = FIELD_ROLES.iter().position(|known| *known == role) else {
                return refuse(format!(
                    "names the field of `{role}`; known are {}",
                    FIELD_ROLES.join(", ")
                ));
            };
            if field.is_empty() {
                return refuse(format!("names no field for `{role}`"));
            }
            if values[at].replace(field).is_some() {
                let hint = if role == "choices" {
                    ": join several fields by `+`, for example choices=A+B+C"
                } else {
                    ""
                };
                return refuse(format!("names `{role}` twice{hint}"));
            }
        }
        let [question, choices, answer, passage, id] = values;
        let Some(question) = question else {
            return refuse("has no question: add question=FIELD".to_owned());
        };
        let choices: Vec<String> = choices.map_or_else(Vec::new, |names| {
            names
                .split('+')
                .map(|name| name.trim().to_owned())
                .collect()
        });
        if choices.iter().any(String::is_empty) {
            return refuse("names an empty field among the `choices`".to_owned());
        }
        Ok(Self {
            question: question.to_owned(),
            choices,
            answer: answer.map(str::to_owned),
            passage: passage.map(str::to_owned),
            id: id.map(str::to_owned),
        })
    }
}

impl fmt::Display for ItemFields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "question={}", self.question)?;
        if !self.choices.is_empty() {
            write!(f, ",choices={}", self.choices.join("+"))?;
        }
        let optional = [
            ("answer", &self.answer),
            ("passage", &self.passage),
            ("id", &self.id),
        ];
        for (role, field) in optional {
            if let Some(field) = field {
                write!(f, ",{role}={field}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_parsed_and_shown() {
        let fields: ItemFields = "id=n, choices=a + b.c, question=Question Text,passage=p,answer=k"
            .parse()
            .unwrap();
        assert_eq!(fields.choices, ["a", "b.c"]);
        let shown = "question=Question Text,choices=a+b.c,answer=k,passage=p,id=n";
        assert_eq!(fields.to_string(), shown);
        assert_eq!(shown.parse::<ItemFields>().unwrap(), fields);
        let named: Vec<_> = fields.named_fields().collect();
        assert_eq!(named[0], ("question", "Question Text"));
        assert_eq!(named[2], ("choices", "b.c"));
        assert_eq!(named.len(), 6);
    }

    #[test]
    fn malformed_fields_are_refused() {
        for (text, expected) in [
            (
                "question",
                "`question` has the part `question` without `=`: write, for example, question=FIELD",
            ),
            (
                "query=q",
                "`query=q` names the field of `query`; known are question, choices, answer, passage, id",
            ),
            ("question=", "`question=` names no field for `question`"),
            ("answer=a", "`answer=a` has no question: add question=FIELD"),
            (
                "question=a,question=b",
                "`question=a,question=b` names `question` twice",
            ),
            (
                "question=a,choices=b,choices=c",
                "`question=a,choices=b,choices=c` names `choices` twice: join several fields by `+`, for example \
                 choices=A+B+C",
            ),
            (
                "question=a,choices=b++c",
                "`question=a,choices=b++c` names an empty field among the `choices`",
            ),
        ] {
            assert_eq!(
                text.parse::<ItemFields>().unwrap_err().to_string(),
                expected
            );
        }
    }
}
