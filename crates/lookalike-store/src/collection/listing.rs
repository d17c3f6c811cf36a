//! Documents in the order of their sequence numbers: pages, and the walk that an export makes too.
//!
//! A document keeps its sequence number for ever, also if it is moved or its partition is compacted. So a list can
//! continue after any number, and documents that are inserted meanwhile are at its end.

use std::ops::ControlFlow;

use lookalike::stream::Timestamp;

use super::Collection;
use super::documents::{OpenContent, is_representative_gone, open_content};
use crate::document::{InsertAnswer, KnownDocument, ListedDocument};
use crate::error::Result;
use crate::state::CollectionState;

/// Most steps under one lock, some milliseconds of work, before writers get the lock. A sequence number without a live
/// document takes one step.
pub(super) const STEPS_PER_LOCK: u64 = 1 << 16;

/// Steps of reading a row.
pub(super) const WALK_STEPS_OF_ROW: u64 = 256;

/// Bytes of metadata and texts that take one step.
pub(super) const BYTES_OF_WALK_STEP: u64 = 4;

/// Number of locks for one page: it examines at most 16,384 documents, or 4 million numbers without one.
pub(super) const LOCKS_PER_PAGE: usize = 64;

/// Bytes of ids, metadata and texts after which a page ends.
pub(super) const PAGE_BYTES: usize = 16 << 20;

/// The documents that a page lists.
pub struct DocumentSelection<'a> {
    /// Largest number of documents of the page, at least 1.
    pub count: usize,
    /// `true` if texts are read.
    pub has_texts: bool,
    /// Returns `true` for a document that is listed, by the answer to it and its metadata.
    pub accepts: &'a dyn Fn(&InsertAnswer, Option<&str>) -> bool,
}

/// A page of documents, and the beginning of the next page.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DocumentPage {
    /// The documents of this page.
    pub documents: Vec<ListedDocument>,
    /// Last sequence number that was examined, to be passed as `after`; `None` at the end of the collection.
    pub continue_after: Option<u64>,
}

impl Collection {
    /// Returns the documents with sequence numbers after `after` that a selection accepts, in their order, kept ones
    /// and duplicates. `after` is the [`continue_after`](DocumentPage::continue_after) of the previous page, or any
    /// sequence number; 0 begins with the first document. A page ends early after 16 MiB, or if many documents were
    /// examined: it can be short, even empty, and still have a `continue_after`.
    ///
    /// If the window follows the wall clock, documents that are past it by now are left out.
    ///
    /// # Errors
    /// If a file is damaged.
    pub fn list_documents(
        &self,
        after: u64,
        selection: &DocumentSelection<'_>,
    ) -> Result<DocumentPage> {
        let mut walk = DocumentWalk::new(after, u64::MAX);
        let mut builder = PageBuilder {
            selection,
            now: (self.options.clock)(),
            documents: Vec::new(),
            bytes: 0,
        };
        for _ in 0..LOCKS_PER_PAGE {
            let goes_on = walk.visit_under_lock(self, &mut |state, known| {
                builder.offer_document(state, known)
            })?;
            if !goes_on || builder.is_full() {
                let continue_after = goes_on.then_some(walk.after);
                return builder.into_page(continue_after);
            }
        }
        builder.into_page(Some(walk.after))
    }
}

/// A page that is being filled.
struct PageBuilder<'a> {
    selection: &'a DocumentSelection<'a>,
    now: Timestamp,
    documents: Vec<OpenListedDocument>,
    bytes: usize,
}

/// A document of the page. Its text is read later, without the lock.
struct OpenListedDocument {
    answer: InsertAnswer,
    content: Option<OpenContent>,
    meta: Option<String>,
    of_is_gone: bool,
}

impl OpenListedDocument {
    fn into_listed(self) -> Result<ListedDocument> {
        Ok(ListedDocument {
            answer: self.answer,
            content: self.content.map(OpenContent::into_content).transpose()?,
            meta: self.meta,
            of_is_gone: self.of_is_gone,
        })
    }
}

impl PageBuilder<'_> {
    fn is_full(&self) -> bool {
        self.documents.len() >= self.selection.count || self.bytes >= PAGE_BYTES
    }

    /// Adds a document if it is accepted. Returns the bytes of its text, or breaks if the page is full.
    fn offer_document(
        &mut self,
        state: &CollectionState,
        known: KnownDocument,
    ) -> Result<ControlFlow<(), usize>> {
        let answer = known.to_answer(false);
        let is_listed = !state.is_past_window(&known, self.now)
            && (self.selection.accepts)(&answer, known.document.meta.as_deref());
        if !is_listed {
            return Ok(ControlFlow::Continue(0));
        }
        let has_content = self.selection.has_texts || known.document.fingerprint.is_some();
        let content = has_content
            .then(|| open_content(state, &known))
            .transpose()?;
        let text_bytes = content.as_ref().map_or(0, OpenContent::text_bytes);
        let meta_bytes = known.document.meta.as_ref().map_or(0, String::len);
        self.bytes += known.document.id.len() + meta_bytes + text_bytes;
        self.documents.push(OpenListedDocument {
            answer,
            content,
            of_is_gone: is_representative_gone(state, &known),
            meta: known.document.meta,
        });
        Ok(if self.is_full() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(text_bytes)
        })
    }

    /// Reads the texts, which needs no lock, and returns the page.
    fn into_page(self, continue_after: Option<u64>) -> Result<DocumentPage> {
        let documents = self
            .documents
            .into_iter()
            .map(OpenListedDocument::into_listed);
        Ok(DocumentPage {
            documents: documents.collect::<Result<_>>()?,
            continue_after,
        })
    }
}

/// A walk through the live documents in the order of their sequence numbers. Between two locks
/// documents may be inserted, moved and deleted, and partitions may be compacted and expire.
#[derive(Debug)]
pub(crate) struct DocumentWalk {
    /// Last sequence number that was examined.
    after: u64,
    /// Last sequence number of the walk.
    last: u64,
}

/// Visits a document, and returns the bytes that were read of its text. The walk stops after this document if it
/// breaks.
type VisitDocument<'a> =
    dyn FnMut(&CollectionState, KnownDocument) -> Result<ControlFlow<(), usize>> + 'a;

impl DocumentWalk {
    pub(crate) fn new(after: u64, last: u64) -> Self {
        Self { after, last }
    }

    /// Visits the next documents under one lock, until its steps are used up. Returns `false` at the end of the walk.
    pub(crate) fn visit_under_lock(
        &mut self,
        collection: &Collection,
        visit: &mut VisitDocument<'_>,
    ) -> Result<bool> {
        let state = collection.read_state()?;
        let (mut reader, mut steps) = (state.document_reader(), 0);
        for seq in state.seqs_after(self.after) {
            if seq > self.last {
                break;
            }
            if steps >= STEPS_PER_LOCK {
                return Ok(true);
            }
            self.after = seq;
            steps += 1;
            if state.is_dead_document(seq) {
                continue;
            }
            steps += WALK_STEPS_OF_ROW;
            let Some(known) = reader.find_by_seq(seq)? else {
                continue;
            };
            // Metadata is in the row, and a row is read with its neighbours.
            let meta_bytes = known.document.meta.as_ref().map_or(0, String::len);
            let ControlFlow::Continue(text_bytes) = visit(&state, known)? else {
                return Ok(true);
            };
            steps += (meta_bytes + text_bytes) as u64 / BYTES_OF_WALK_STEP;
        }
        Ok(false)
    }
}
