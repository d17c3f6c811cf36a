//! Decisions of a person on two texts, as lines of JSON: those of a file that a report saves, and of a request.
//!
//! ```text
//! {"a":"sha256:…","b":"sha256:…","label":"different","recipe":"…","a_key":"…","b_key":"…","a_id":"7","b_id":"9"}
//! ```
//!
//! | field | holds |
//! |---|---|
//! | `a`, `b` | `sha256:` and the SHA-256 of the text in UTF-8, 64 hexadecimal digits |
//! | `label` | `same` or `different` |
//! | `recipe` | identity of the recipe of the run that the decision is about |
//! | `a_key`, `b_key` | key of the text after normalisation by that recipe, 32 hexadecimal digits |
//!
//! A line may have `form` too, with the `name` and the `frame` of a form that both texts fill. Then the label is about
//! all documents of the form. `same` says that they are copies of each other; `different` says that they are filled
//! forms and no copies.
//!
//! Other fields are for people. The key finds the documents of a text without reading every text again; the
//! content decides whether a document is meant, so texts that differ only before normalisation can be told apart.

use lookalike::content_hash::ContentHash;
use lookalike::dedup::{DecidedText, PairDecision};
use lookalike::forms::Form;
use serde::Deserialize;

/// A decision on two texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContentDecision {
    /// One text.
    pub a: DecidedText,
    /// The other text.
    pub b: DecidedText,
    /// The decision.
    pub decision: PairDecision,
    /// Identity of the recipe.
    pub recipe: String,
    /// The form of both texts, if the decision is about all its documents.
    pub form: Option<Form>,
}

/// A line of the file.
#[derive(Deserialize)]
struct DecisionLine {
    a: String,
    b: String,
    label: String,
    recipe: String,
    a_key: String,
    b_key: String,
    form: Option<FormLine>,
}

/// A form in a line.
#[derive(Deserialize)]
struct FormLine {
    name: String,
    frame: Vec<String>,
}

impl ContentDecision {
    /// Parses a line.
    ///
    /// # Errors
    /// A sentence, if the line is not a decision.
    pub fn parse_line(line: &str) -> Result<Self, String> {
        let line: DecisionLine = serde_json::from_str(line).map_err(|cause| {
            format!(
                "this is not a decision, which has a, b, label, recipe, a_key and b_key: {cause}"
            )
        })?;
        let (a, b) = (
            parse_text("a", &line.a, &line.a_key)?,
            parse_text("b", &line.b, &line.b_key)?,
        );
        if a.content == b.content {
            return Err("`a` and `b` are the same text: a decision is about two texts".to_owned());
        }
        let form = line.form.map(|FormLine { name, frame }| {
            Form::from_frame(name, frame).map_err(|error| error.to_string())
        });
        Ok(Self {
            a,
            b,
            decision: parse_label(&line.label)?,
            recipe: line.recipe,
            form: form.transpose()?,
        })
    }
}

/// Parses the content and the key of the text on one side of a decision, `a` or `b`.
///
/// # Errors
/// A sentence that names the field.
pub fn parse_text(side: &str, content: &str, key: &str) -> Result<DecidedText, String> {
    let content = ContentHash::parse_hash(content).ok_or_else(|| {
        format!("`{side}` is '{content}', not `sha256:` and 64 hexadecimal digits")
    })?;
    let is_digit = |byte: u8| byte.is_ascii_hexdigit();
    let digits = Some(key).filter(|key| key.len() == 32 && key.bytes().all(is_digit));
    let text_key = digits
        .and_then(|key| u128::from_str_radix(key, 16).ok())
        .ok_or_else(|| format!("`{side}_key` is '{key}', not 32 hexadecimal digits"))?;
    Ok(DecidedText { content, text_key })
}

/// Parses a label.
///
/// # Errors
/// A sentence, if it is not one.
pub fn parse_label(label: &str) -> Result<PairDecision, String> {
    match label {
        "same" => Ok(PairDecision::Same),
        "different" => Ok(PairDecision::Different),
        other => Err(format!("`label` is '{other}', not same or different")),
    }
}

/// Returns the label of a decision.
pub fn label_of(decision: PairDecision) -> &'static str {
    match decision {
        PairDecision::Same => "same",
        PairDecision::Different => "different",
    }
}
