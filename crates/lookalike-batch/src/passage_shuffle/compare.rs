//! The fourth step: compares the texts of each group.

use std::ops::Range;
use std::sync::Arc;

use lookalike_comparison::shared_passages::{PassageSpot, SharedPassage, SourceComparer};
use lookalike_documents::ExtractedText;
use lookalike_io::error::{Error, Result};

use crate::passage_shuffle::{DocumentKey, PassageShuffleSetup};
use crate::run::commands::passages::settings::OffsetUnit;

/// A text of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ComparedDocumentText<'a> {
    /// The document whose group it is. Its text is the first of the group.
    pub group: DocumentKey,
    /// The document that has the text.
    pub key: DocumentKey,
    /// The id of that document.
    pub id: &'a str,
    /// The text.
    pub text: &'a str,
}

/// A passage that a document has from a source.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundPassage {
    /// Id of the document.
    pub document: String,
    /// Id of the source.
    pub source: String,
    /// Its place in the document, in the unit of the run.
    pub place: Range<usize>,
    /// Its place in the source.
    pub source_place: Range<usize>,
    /// Words and single characters of the document's part.
    pub length: usize,
    /// Share of equal tokens of both parts, rounded to four digits.
    pub similarity: f64,
    /// `verbatim`, `edited` or `reordered`.
    pub kind: &'static str,
}

/// The document whose group is compared.
#[derive(Debug)]
struct GroupOwner {
    key: DocumentKey,
    id: String,
    text: ExtractedText,
}

/// Compares the texts of groups.
///
/// Memory: one text of a group, and the passages that were not taken yet.
#[derive(Debug)]
pub struct GroupComparer {
    setup: Arc<PassageShuffleSetup>,
    /// The owner of the last group, which the next texts may continue.
    owner: Option<GroupOwner>,
    found: Vec<FoundPassage>,
}

impl GroupComparer {
    /// Returns a step without texts.
    pub fn new(setup: Arc<PassageShuffleSetup>) -> Self {
        Self {
            setup,
            owner: None,
            found: Vec::new(),
        }
    }

    /// Compares texts in the order of their groups. They may continue the group of the texts before them.
    ///
    /// # Errors
    /// If the first text of a group is not that of its document, or if a text has 4 GiB or more.
    pub fn compare_texts(&mut self, texts: &[ComparedDocumentText<'_>]) -> Result<()> {
        let groups = texts.chunk_by(|a, b| a.group == b.group);
        groups
            .into_iter()
            .try_for_each(|group| self.compare_group(group))
    }

    fn compare_group(&mut self, texts: &[ComparedDocumentText<'_>]) -> Result<()> {
        let group = texts[0].group;
        let (owner, others) = match self.owner.take() {
            Some(owner) if owner.key == group => (owner, texts),
            _ => (own_group(&texts[0])?, &texts[1..]),
        };
        if !others.is_empty() {
            let setup = Arc::clone(&self.setup);
            let mut comparer = SourceComparer::new(&setup.tokenizer, &owner.text, setup.passages)?;
            others
                .iter()
                .try_for_each(|other| self.compare_pair(&mut comparer, &owner, other))?;
        }
        self.owner = Some(owner);
        Ok(())
    }

    fn compare_pair(
        &mut self,
        comparer: &mut SourceComparer<'_>,
        owner: &GroupOwner,
        other: &ComparedDocumentText<'_>,
    ) -> Result<()> {
        let text = ExtractedText::from_plain_text(other.text.to_owned());
        let (shared, document, source) = if is_source_of(other, owner) {
            (comparer.find_passages(&text)?, &*owner.id, other.id)
        } else {
            (comparer.find_copies(&text)?, other.id, &*owner.id)
        };
        let offsets = self.setup.offsets;
        let rows = shared.passages.iter();
        self.found
            .extend(rows.map(|row| FoundPassage::new([document, source], row, offsets)));
        Ok(())
    }

    /// Returns the passages found since the last call.
    pub fn take_passages(&mut self) -> Vec<FoundPassage> {
        std::mem::take(&mut self.found)
    }
}

fn own_group(first: &ComparedDocumentText<'_>) -> Result<GroupOwner> {
    if first.key != first.group {
        return Err(Error::input_error(format!(
            "a text that the document '{}' is compared with is missing: the data must have the same rows each time it \
             is read, so write or persist it before the run",
            first.id
        )));
    }
    Ok(GroupOwner {
        key: first.key,
        id: first.id.to_owned(),
        text: ExtractedText::from_plain_text(first.text.to_owned()),
    })
}

/// Returns `true` if a text of a group is the source of its owner: the text is known, or its id is smaller and none
/// of both is known.
fn is_source_of(text: &ComparedDocumentText<'_>, owner: &GroupOwner) -> bool {
    if text.key.is_known() || owner.key.is_known() {
        text.key.is_known()
    } else {
        text.id.as_bytes() < owner.id.as_bytes()
    }
}

impl FoundPassage {
    fn new([document, source]: [&str; 2], passage: &SharedPassage, unit: OffsetUnit) -> Self {
        let place = |spot: &PassageSpot| match unit {
            OffsetUnit::Characters => spot.characters.clone(),
            OffsetUnit::Bytes => spot.bytes.clone(),
        };
        Self {
            document: document.to_owned(),
            source: source.to_owned(),
            place: place(&passage.b),
            source_place: place(&passage.a),
            length: passage.length,
            similarity: passage.similarity,
            kind: passage.kind.kind_name(),
        }
    }
}
