//! The calls of the page, and what each is answered with.

use lookalike::Recipe;
use lookalike_documents::{DocumentKind, ExtractOptions, extract_text};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::side_by_side::{self, MAX_SHARED_BYTES, TextPair};
use crate::sketch_steps::{self, BandCall, HashedPair, PermutedSets};

/// A call. Unknown fields are refused, so that a page and a module of different versions do not misunderstand each other.
#[derive(Debug, Deserialize)]
#[serde(tag = "call", rename_all = "snake_case", deny_unknown_fields)]
enum PageCall {
    /// The recipes.
    Abilities {},
    /// Two texts through every step, as `lookalike compare --literal --json` prints them. The attachment is the dictionary
    /// of jieba, if the recipe needs it.
    Compare(TextPair),
    /// The passages that two texts share. The attachment is as for `Compare`.
    Shared(TextPair),
    /// Features with given hashes and weights, as `lookalike compare --hashes --json` prints them.
    Hashes(HashedPair),
    /// Sets of shingles under given permutations, as `lookalike fingerprint --permutation --json` prints them.
    Permutations(PermutedSets),
    /// Bands of MinHash slots, and the probability that a pair is found.
    Bands(BandCall),
    /// The text of a document file, which is the attachment.
    Extract { name: String },
}

/// Answers a call: one line of JSON and the attachment behind it.
///
/// # Errors
/// The reason why there is no answer, a sentence.
pub(crate) fn answer_call(input: &[u8]) -> Result<String, String> {
    let (line, attachment) = split_line(input);
    let call: PageCall = serde_json::from_slice(line)
        .map_err(|cause| format!("the call is not understood: {cause}"))?;
    match call {
        PageCall::Abilities {} => Ok(list_abilities().to_string()),
        PageCall::Compare(pair) => side_by_side::compare_texts(pair, attachment),
        PageCall::Shared(pair) => side_by_side::find_shared(&pair, attachment),
        PageCall::Hashes(pair) => sketch_steps::explain_hashes(&pair),
        PageCall::Permutations(sets) => sketch_steps::explain_permutations(&sets),
        PageCall::Bands(bands) => sketch_steps::draw_bands(&bands),
        PageCall::Extract { name } => extract_attachment(&name, attachment),
    }
}

/// Splits the input behind its first line.
fn split_line(input: &[u8]) -> (&[u8], &[u8]) {
    match input.iter().position(|&byte| byte == b'\n') {
        Some(end) => (&input[..end], &input[end + 1..]),
        None => (input, &[]),
    }
}

/// Returns the recipes, each with `true` if its words are cut by jieba.
fn list_abilities() -> Value {
    let recipes = Recipe::NAMES.into_iter().map(|name| {
        let recipe = Recipe::built_in(name).expect("the name is one of the built-in recipes");
        json!({ "name": name, "jieba": recipe.segmentation_mode().is_some() })
    });
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "recipes": recipes.collect::<Vec<_>>(),
    })
}

/// Returns the text of a document file of at most [`MAX_SHARED_BYTES`].
fn extract_attachment(name: &str, bytes: &[u8]) -> Result<String, String> {
    let kind = DocumentKind::from_path(name.as_ref())
        .map_err(|reason| format!("{name} is not read: {reason}"))?;
    let options = ExtractOptions {
        guesses_encoding: true,
        max_bytes: MAX_SHARED_BYTES as u32,
        ..ExtractOptions::default()
    };
    let extracted = extract_text(kind, bytes, &options)
        .map_err(|reason| format!("{name} is not read: {reason}"))?;
    let guessed_encoding = options.guessed_encoding_of(kind, bytes);
    Ok(json!({ "text": extracted.text, "guessed_encoding": guessed_encoding }).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(call: &Value, attachment: &[u8]) -> Result<Value, String> {
        let input = [call.to_string().as_bytes(), b"\n", attachment].concat();
        answer_call(&input).map(|text| serde_json::from_str(&text).unwrap())
    }

    #[test]
    fn abilities_name_every_recipe_and_which_need_the_dictionary() {
        let abilities = answer(&json!({ "call": "abilities" }), b"").unwrap();
        let recipes = abilities["recipes"].as_array().unwrap();
        assert_eq!(recipes.len(), Recipe::NAMES.len());
        let with_jieba = recipes.iter().filter(|recipe| recipe["jieba"] == true);
        let names: Vec<_> = with_jieba.map(|recipe| recipe["name"].clone()).collect();
        assert!(names.contains(&json!("jieba")) && !names.contains(&json!("default")));
    }

    #[test]
    fn document_file_becomes_its_text() {
        let call = json!({ "call": "extract", "name": "page.html" });
        let answered = answer(&call, b"<p>Fish &amp; <b>chips</b></p>").unwrap();
        assert_eq!(answered["text"], "Fish & chips\n");
        assert_eq!(answered["guessed_encoding"], Value::Null);
        let call = json!({ "call": "extract", "name": "notice.txt" });
        let gbk = b"\xb9\xab\xb8\xe6\xa3\xba\xb1\xbe\xd6\xdc\xc1\xf9\xcd\xa3\xcb\xae\xa1\xa3";
        let answered = answer(&call, gbk).unwrap();
        assert_eq!(answered["text"], "公告：本周六停水。");
        assert_eq!(answered["guessed_encoding"], "gb18030");
        let broken = answer(
            &json!({ "call": "extract", "name": "a.docx" }),
            b"no archive",
        );
        assert!(broken.unwrap_err().starts_with("a.docx is not read: "));
    }

    #[test]
    fn calls_of_another_version_are_refused() {
        for call in [
            json!({ "call": "guess" }),
            json!({ "call": "compare", "a": "x", "b": "y", "mood": "good" }),
            json!({ "call": "compare", "a": "x" }),
        ] {
            let refusal = answer(&call, b"").unwrap_err();
            assert!(
                refusal.starts_with("the call is not understood: "),
                "{refusal}"
            );
        }
        assert!(answer_call(b"").is_err());
    }
}
