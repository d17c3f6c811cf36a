//! Single documents: queries, look-ups and deletions.

use lookalike::stream::{SearchTurn, Timestamp};

use super::{Collection, DELETION_ROW_BYTES};
use crate::document::{
    DocumentContent, DuplicateEvidence, InsertAnswer, KnownDocument, PendingInsert, StoredDocument,
    hash_id,
};
use crate::error::{Error, ErrorKind, Result};
use crate::files::rows::RowVerdict;
use crate::state::{CollectionState, DocumentCheck, OpenText};

/// Documents that are deleted under one lock.
const DELETIONS_PER_LOCK: usize = 16;

impl Collection {
    /// Answers a document as [`insert_documents`](Self::insert_documents) would, but does not insert it.
    /// A document that exists with the same content gets its first answer. A document with other content
    /// is not compared with the one that it would replace.
    ///
    /// # Errors
    /// If the text of a candidate cannot be read, or the id exists with other content and the collection does
    /// not replace documents.
    pub fn query_document(&self, document: &PendingInsert) -> Result<InsertAnswer> {
        self.query_document_while(document, &|| true)
    }

    /// As [`query_document`](Self::query_document), and asks before each turn of the lock if the query may go on.
    ///
    /// # Errors
    /// As for [`query_document`](Self::query_document), and [`ErrorKind::Cancelled`] if it may not.
    pub fn query_document_while(
        &self,
        document: &PendingInsert,
        may_go_on: &dyn Fn() -> bool,
    ) -> Result<InsertAnswer> {
        self.search_by_turns(document, false, may_go_on, |state, now, check, turn| {
            state.answer_query(document, now, check, turn)
        })
    }

    /// Runs a search in turns, so that it does not hold the shared lock for long, and compares long texts without it.
    fn search_by_turns<T>(
        &self,
        document: &PendingInsert,
        lists_all: bool,
        may_go_on: &dyn Fn() -> bool,
        answer: impl Fn(
            &CollectionState,
            Timestamp,
            &mut DocumentCheck,
            &mut SearchTurn,
        ) -> Result<Option<T>>,
    ) -> Result<T> {
        let now = (self.options.clock)();
        let mut check = self.read_state()?.begin_query(document, now, lists_all);
        loop {
            if !may_go_on() {
                return Err(Error::new(ErrorKind::Cancelled, "the query was cancelled"));
            }
            let mut turn = self.options.verification.begin_turn();
            let answered = answer(&*self.read_state()?, now, &mut check, &mut turn)?;
            if let Some(answer) = answered {
                return Ok(answer);
            }
            check.do_unlocked_work(document);
        }
    }

    /// Answers a query as [`query_document`](Self::query_document) does, and also returns up to `limit` kept
    /// documents that match now, without the one that has the id of the query: the most similar first, and of
    /// equally similar ones the earliest first.
    ///
    /// It asks before each turn of the lock if the query may go on.
    ///
    /// # Errors
    /// As for [`query_document_while`](Self::query_document_while).
    pub fn query_matches(
        &self,
        document: &PendingInsert,
        limit: usize,
        may_go_on: &dyn Fn() -> bool,
    ) -> Result<(InsertAnswer, Vec<DuplicateEvidence>)> {
        self.search_by_turns(document, true, may_go_on, |state, now, check, turn| {
            state.answer_with_matches(document, now, limit, check, turn)
        })
    }

    /// Returns the document with the given id, if there is one. If the window follows the wall clock, a
    /// document that is past the window by now is not returned.
    ///
    /// # Errors
    /// If a file is damaged.
    pub fn find_document(&self, id: &str) -> Result<Option<StoredDocument>> {
        let opened = {
            let state = self.read_state()?;
            let known = self.find_in_window(&state, id)?;
            known
                .map(|known| open_document(&state, known))
                .transpose()?
        };
        opened.map(OpenDocument::into_stored).transpose()
    }

    /// Finds a document as [`find_document`](Self::find_document) does, unless its text has more than `most_text_bytes`
    /// bytes. A longer text is neither read nor copied.
    ///
    /// # Errors
    /// If a file is damaged.
    pub fn find_short_document(
        &self,
        id: &str,
        most_text_bytes: usize,
    ) -> Result<Option<DocumentLookup>> {
        let opened = {
            let state = self.read_state()?;
            let Some(known) = self.find_in_window(&state, id)? else {
                return Ok(None);
            };
            let text_bytes = state.stored_text_bytes(&known)?;
            if text_bytes > most_text_bytes {
                return Ok(Some(DocumentLookup::Long { text_bytes }));
            }
            open_document(&state, known)?
        };
        Ok(Some(DocumentLookup::Short(opened.into_stored()?)))
    }

    /// Deletes the document with the given id, so that it matches nothing any more. Answers that named it
    /// stay as they are. Returns `true` if the document existed. Its content leaves the disk with the next
    /// compaction of its partition; see [`run_maintenance`](Self::run_maintenance).
    ///
    /// # Errors
    /// If a file is damaged, the disk has no room, or a write failed, now or earlier.
    pub fn delete_document(&self, id: &str) -> Result<bool> {
        self.delete_documents(&[id])?.remove(0)
    }

    /// Deletes documents as [`delete_document`](Self::delete_document) does, all with one wait for the disk.
    /// Returns for each id `true` if the document existed, or the error that prevented its deletion.
    ///
    /// # Errors
    /// For a single document: a file is damaged. For all documents: the disk has no room, or a write failed, now
    /// or earlier.
    pub fn delete_documents(&self, ids: &[&str]) -> Result<Vec<Result<bool>>> {
        let bytes = DELETION_ROW_BYTES.saturating_mul(ids.len() as u64);
        self.check_running().and_then(|()| self.check_room(bytes))?;
        let (mut answers, mut last) = (Vec::with_capacity(ids.len()), 0);
        for portion in ids.chunks(DELETIONS_PER_LOCK) {
            // The lock is released between two portions, so that others get it.
            let mut state = self.write_state()?;
            let deleted = portion.iter().map(|id| self.delete_in(&mut state, id));
            answers.extend(deleted);
            last = state.last_row();
        }
        self.wait_for_row(last)?;
        Ok(answers)
    }

    /// Deletes a document in memory. A document that is past the window by the wall clock counts as not found,
    /// but is still deleted from the disk.
    pub(super) fn delete_in(&self, state: &mut CollectionState, id: &str) -> Result<bool> {
        let (known, now) = (state.find_by_id(id, hash_id(id))?, (self.options.clock)());
        let Some(known) = known else {
            return Ok(false);
        };
        let is_past = state.is_past_window(&known, now);
        state.delete_document(&known, now);
        Ok(!is_past)
    }

    /// Returns the document with the given id, unless the window follows the wall clock and has passed it.
    pub(super) fn find_in_window(
        &self,
        state: &CollectionState,
        id: &str,
    ) -> Result<Option<KnownDocument>> {
        let now = (self.options.clock)();
        let known = state.find_by_id(id, hash_id(id))?;
        Ok(known.filter(|known| !state.is_past_window(known, now)))
    }
}

/// A stored document with a text up to a limit, or the fact that the text is longer.
#[derive(Clone, Debug)]
pub enum DocumentLookup {
    /// A document whose text is within the limit.
    Short(StoredDocument),
    /// The text of the document is longer.
    Long {
        /// Its length in bytes, as the record states it.
        text_bytes: usize,
    },
}

/// A stored document, whose text may be unread.
pub(crate) struct OpenDocument {
    answer: InsertAnswer,
    content: OpenContent,
    meta: Option<String>,
    of_is_gone: bool,
}

/// The content of a stored document.
pub(crate) enum OpenContent {
    Fingerprint(u128),
    Text(OpenText),
}

impl OpenContent {
    pub(crate) fn text_bytes(&self) -> usize {
        match self {
            Self::Fingerprint(_) => 0,
            Self::Text(text) => text.text_bytes(),
        }
    }

    /// Returns the content, and reads it if need be. No lock is needed for that.
    pub(crate) fn into_content(self) -> Result<DocumentContent> {
        Ok(match self {
            Self::Fingerprint(fingerprint) => DocumentContent::Fingerprint(fingerprint),
            Self::Text(text) => DocumentContent::Text(text.into_text()?),
        })
    }
}

impl OpenDocument {
    /// Returns the length of its text, in bytes; 0 if it has a fingerprint in place of a text.
    pub(crate) fn text_bytes(&self) -> usize {
        self.content.text_bytes()
    }

    /// Returns the document, and reads its text if need be. No lock is needed for that.
    ///
    /// # Errors
    /// If a file is damaged.
    pub(crate) fn into_stored(self) -> Result<StoredDocument> {
        Ok(StoredDocument {
            answer: self.answer,
            content: self.content.into_content()?,
            meta: self.meta,
            of_is_gone: self.of_is_gone,
        })
    }
}

/// Opens a document, so that a long text can be read without the lock.
pub(crate) fn open_document(state: &CollectionState, known: KnownDocument) -> Result<OpenDocument> {
    Ok(OpenDocument {
        answer: known.to_answer(false),
        content: open_content(state, &known)?,
        of_is_gone: is_representative_gone(state, &known),
        meta: known.document.meta,
    })
}

/// Opens the content of a document.
pub(super) fn open_content(state: &CollectionState, known: &KnownDocument) -> Result<OpenContent> {
    Ok(match known.document.fingerprint {
        Some(fingerprint) => OpenContent::Fingerprint(fingerprint),
        None => OpenContent::Text(state.open_text(known)?),
    })
}

/// Returns `true` if a document is a duplicate of one that no longer exists.
pub(super) fn is_representative_gone(state: &CollectionState, known: &KnownDocument) -> bool {
    match known.document.verdict {
        RowVerdict::Kept { .. } => false,
        RowVerdict::Duplicate { seq, slot, .. } => !state.is_still_kept(seq, slot),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use lookalike::plan::{MatchSettings, SimilarityMeasure};
    use lookalike::text::AnalysisScratch;

    use super::*;
    use crate::document::{DocumentContent, NewDocument, StoredVerdict};
    use crate::{CollectionOptions, CollectionSettings, DiskFolder};

    /// A query with its matches verifies each candidate once: in as many steps as a query without them.
    #[test]
    fn listed_matches_are_verified_once() {
        let folder = tempfile::tempdir().unwrap();
        let disk = Arc::new(DiskFolder::open(folder.path()).unwrap());
        let settings = CollectionSettings {
            matching: MatchSettings {
                measure: SimilarityMeasure::Levenshtein,
                ..MatchSettings::default()
            },
            ..CollectionSettings::default()
        };
        let options = CollectionOptions {
            headroom: 0,
            ..CollectionOptions::default()
        };
        let collection = Collection::create_empty(disk, &settings, options).unwrap();
        let prepare = |id: &str, text: String| {
            let document = NewDocument {
                id: id.to_owned(),
                content: DocumentContent::Text(text),
                time: None,
                meta: None,
            };
            collection
                .prepare_document(document, &mut AnalysisScratch::default())
                .unwrap()
        };
        let words: String = (0..150).map(|at| format!("word{at} ")).collect();
        for id in ["a", "b", "c"] {
            let other = format!("{words}{}", format!("{id} ").repeat(60));
            collection
                .insert_documents(&[prepare(id, other)])
                .remove(0)
                .unwrap();
        }
        let query = prepare("query", format!("{words}{}", "b ".repeat(55)));
        let count_steps = |work: &dyn Fn()| {
            let steps_taken = || collection.read_state().unwrap().matcher.steps_taken();
            let before = steps_taken();
            work();
            steps_taken() - before
        };
        let expected = collection.query_document(&query).unwrap();
        assert!(matches!(expected.verdict, StoredVerdict::Duplicate(_)));
        let alone = count_steps(&|| drop(collection.query_document(&query).unwrap()));
        assert!(alone > 0);
        for limit in [0, 1, 10] {
            let (answer, matches) = collection.query_matches(&query, limit, &|| true).unwrap();
            assert_eq!(answer.verdict, expected.verdict);
            assert_eq!(matches.len().min(1), limit.min(1));
            let listed =
                count_steps(&|| drop(collection.query_matches(&query, limit, &|| true).unwrap()));
            assert_eq!(listed, alone, "{limit}");
        }
    }
}
