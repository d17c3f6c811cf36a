//! Decisions of a person on pairs of texts: the file that a report saves, and the run that honours it.
//!
//! The file is JSON Lines, one decision a line, so that two files are joined by writing one behind the other, and
//! `eval` and `tune` read it as labels. [`decision_lines`](lookalike_comparison::decision_lines) describes a line.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;
use std::path::{Path, PathBuf};

use lookalike::content_hash::ContentHash;
use lookalike::dedup::PairDecision;
pub use lookalike_comparison::decision_lines::ContentDecision;
use lookalike_comparison::decision_lines::label_of;
use lookalike_io::error::{Error, Result, display_path};
use serde::Serialize;

/// Counts of the decisions that a run was given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DecisionSummary {
    /// Pairs of texts decided as the same.
    pub same: u64,
    /// Pairs of texts decided as different.
    pub different: u64,
    /// Decisions among these whose two texts are not both in the inputs, or are in documents that cannot match, for
    /// example because a window separates them.
    pub without_pair: u64,
    /// Decisions made under another recipe, which are not applied.
    pub of_other_recipes: u64,
    /// Decisions about all documents of a form. They count as decisions about a pair of texts, too.
    #[serde(skip_serializing_if = "is_zero")]
    pub forms: u64,
    /// Decisions about a form that were applied to the pair of texts alone, because the run learned no forms.
    #[serde(skip_serializing_if = "is_zero")]
    pub forms_not_applied: u64,
    /// Decisions about a form that had no effect: among the documents that resemble another one, none has the form. For
    /// example, the texts have changed. A run out of core does not count them.
    #[serde(skip_serializing_if = "is_zero")]
    pub forms_without_documents: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Reads files of decisions. A repeated decision counts once.
///
/// # Errors
/// If a file cannot be read, if a line is not a decision, or if two lines decide one pair in both ways.
pub fn read_decisions(paths: &[PathBuf]) -> Result<Vec<ContentDecision>> {
    let mut read = DecisionReader::default();
    paths.iter().try_for_each(|path| read.read_file(path))?;
    Ok(read.decisions)
}

/// Collects the decisions of several files.
#[derive(Default)]
struct DecisionReader {
    decisions: Vec<ContentDecision>,
    /// Pairs of contents under a recipe.
    decided_pairs: DecidedSubjects<(ContentHash, ContentHash, String)>,
    /// Frames under a recipe.
    decided_forms: DecidedSubjects<(Vec<String>, String)>,
}

/// Decisions by their subjects, with the places of their lines.
struct DecidedSubjects<S>(HashMap<S, (PairDecision, String)>);

impl<S> Default for DecidedSubjects<S> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<S: Eq + Hash> DecidedSubjects<S> {
    /// Notes a decision. Returns `true` if it is the first one on its subject.
    ///
    /// # Errors
    /// The place of an earlier decision on the subject, if that decides the opposite.
    fn note_decision(
        &mut self,
        subject: S,
        decision: PairDecision,
        place: &str,
    ) -> std::result::Result<bool, String> {
        match self.0.entry(subject) {
            Entry::Vacant(entry) => {
                entry.insert((decision, place.to_owned()));
                Ok(true)
            }
            Entry::Occupied(entry) if entry.get().0 == decision => Ok(false),
            Entry::Occupied(entry) => Err(entry.get().1.clone()),
        }
    }
}

impl DecisionReader {
    fn read_file(&mut self, path: &Path) -> Result<()> {
        let name = display_path(path);
        let bytes = std::fs::read(path).map_err(|cause| {
            Error::input_error(format!("cannot read the decisions in {name}: {cause}"))
                .with_source(cause)
        })?;
        let text = std::str::from_utf8(&bytes)
            .map_err(|_| Error::input_error(format!("the decisions in {name} are not UTF-8")))?;
        for (at, line) in text.lines().enumerate() {
            // Files that are joined can each begin with a byte order mark.
            let line = line.trim_start_matches('\u{feff}');
            if line.trim().is_empty() {
                continue;
            }
            let place = format!("{name}:{}", at + 1);
            let refuse = |reason: String| Error::input_error(format!("{place}: {reason}"));
            let one = ContentDecision::parse_line(line).map_err(refuse)?;
            let (a, b) = (one.a.content, one.b.content);
            let pair = (a.min(b), a.max(b), one.recipe.clone());
            let opposite = |what: &str, first: String| {
                refuse(format!(
                    "{what} decided as {}, but {first} decides the opposite: remove one of the two lines",
                    label_of(one.decision)
                ))
            };
            let is_new_pair = self
                .decided_pairs
                .note_decision(pair, one.decision, &place)
                .map_err(|first| opposite("these two texts are", first))?;
            let form = one.form.as_ref();
            let is_new_form = form.map(|form| {
                let frame = (form.frame.clone(), one.recipe.clone());
                self.decided_forms
                    .note_decision(frame, one.decision, &place)
                    .map_err(|first| opposite("this form is", first))
            });
            let is_new_form = is_new_form.transpose()?.unwrap_or(false);
            if is_new_pair || is_new_form {
                self.decisions.push(one);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(a: &str, b: &str, label: &str) -> String {
        let (content_a, content_b) = (ContentHash::from_text(a), ContentHash::from_text(b));
        format!(
            "{{\"a\":\"{content_a}\",\"b\":\"{content_b}\",\"label\":\"{label}\",\"recipe\":\"r\",\
             \"a_key\":\"{:032x}\",\"b_key\":\"{:032x}\",\"a_id\":\"for people\"}}\n",
            1, 2
        )
    }

    fn read(text: &str) -> Result<Vec<ContentDecision>> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        read_decisions(&[file.path().to_owned()])
    }

    #[test]
    fn hash_is_printed_and_parsed() {
        let hash = ContentHash::from_text("");
        let text = hash.to_string();
        assert_eq!(
            text,
            "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
        assert_eq!(ContentHash::parse_hash(&text), Some(hash));
        for wrong in ["", "sha256:", "e3b0", &text[..70], &text.replace('e', "ё")] {
            assert_eq!(ContentHash::parse_hash(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn decisions_are_read_once() {
        let text = [
            line("x", "y", "same"),
            "\n".into(),
            line("y", "x", "same"),
            line("x", "z", "different"),
        ]
        .concat();
        let found = read(&text).unwrap();
        let decisions: Vec<_> = found.iter().map(|row| row.decision).collect();
        assert_eq!(decisions, [PairDecision::Same, PairDecision::Different]);
        assert_eq!(found[0].a.content, ContentHash::from_text("x"));
        assert_eq!((found[0].a.text_key, found[0].b.text_key), (1, 2));
    }

    #[test]
    fn decision_about_a_form_has_its_frame() {
        let pair = line("x", "y", "different");
        let with_form = |form: &str| pair.replace("\"a_id\"", &format!("\"form\":{form},\"a_id\""));
        let text = pair.clone() + &with_form(r#"{"name":"offer","frame":["Today:","euros"]}"#);
        let found = read(&text).unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].form, None);
        let form = found[1].form.as_ref().unwrap();
        assert_eq!((&*form.name, form.slot_count()), ("offer", 1));
        let form = r#"{"name":"offer","frame":["Today:","euros"]}"#;
        assert_eq!(read(&(text.clone() + &with_form(form))).unwrap().len(), 2);
        // Another pair of the form says the opposite.
        let opposite = with_form(form)
            .replace(
                &ContentHash::from_text("y").to_string(),
                &ContentHash::from_text("z").to_string(),
            )
            .replace("different", "same");
        let refused = read(&(text + &opposite)).unwrap_err().to_string();
        assert!(
            refused.contains(":3: this form is decided as same, but "),
            "{refused}"
        );
        let refused = read(&with_form(r#"{"name":"offer","frame":["Today:"]}"#));
        let refused = refused.unwrap_err().to_string();
        assert!(
            refused.contains(":1: the frame of 'offer' has no slot"),
            "{refused}"
        );
    }

    #[test]
    fn wrong_lines_are_refused_with_their_place() {
        let contradiction = line("x", "y", "same") + &line("y", "x", "different");
        for (text, message) in [
            (
                &*contradiction,
                ":2: these two texts are decided as different, but /",
            ),
            (&line("x", "y", "yes"), ":1: `label` is 'yes'"),
            (&line("x", "x", "same"), ":1: `a` and `b` are the same text"),
            (
                &line("x", "y", "same").replace("sha256", "md5"),
                ":1: `a` is 'md5:",
            ),
            ("{\"a\":1}", ":1: this is not a decision"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
    }
}
