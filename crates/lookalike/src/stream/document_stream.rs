//! A stream in the memory of a process: kept documents with their ids and texts.
//!
//! [`StreamMatcher`] knows no ids and holds no texts. [`DocumentStream`] adds both, with the partitions of the window and
//! the numbers of documents, so that a binding of another language has only to convert arguments.

use std::collections::VecDeque;
use std::num::NonZeroU64;
use std::time::Duration;

use super::{
    ArrivalTime, DocumentPreparer, DocumentSlot, KeptMatch, SketchedDocument, StreamMatcher,
    StreamTexts, StreamWindow, Timestamp,
};
use crate::error::{Error, Result};
use crate::plan::MatchPlan;
use crate::recipe::Recipe;
use crate::similarity::Route;
use crate::text::AnalysisScratch;
use crate::types::Similarity;

/// The documents that a new one is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamReach {
    /// All kept documents.
    Everything,
    /// Kept documents of a window of time.
    Time(StreamWindow),
    /// Kept documents among so many that were stored before it, repeats included.
    Documents {
        /// Number of documents.
        last: NonZeroU64,
        /// `true` if a repeat renews the reach of its original.
        refresh: bool,
    },
}

/// The answer to a document.
#[derive(Clone, Debug, PartialEq)]
pub struct DocumentVerdict<I> {
    /// The kept document that this one repeats, if it is a duplicate.
    pub duplicate: Option<DuplicateOf<I>>,
    /// Number of the document in the stream, from 0; `None` for one that was not stored.
    pub seq: Option<u64>,
    /// `true` if the document is older than the window. It matched nothing and was not stored.
    pub late: bool,
}

/// The kept document that a duplicate repeats.
#[derive(Clone, Debug, PartialEq)]
pub struct DuplicateOf<I> {
    /// Its id.
    pub id: I,
    /// Similarity of the two documents.
    pub similarity: Similarity,
    /// The way in which the pair was found.
    pub route: Route,
}

/// A kept document as it is saved.
#[derive(Clone, Debug, PartialEq)]
pub struct KeptDocument<I> {
    /// Its id.
    pub id: I,
    /// Its text.
    pub text: Box<str>,
    /// Its time; the number of the document in a stream that reaches back by documents.
    pub time: Timestamp,
    /// Its number in the stream.
    pub seq: u64,
}

/// A stream of documents with ids of the type `I`, and their texts, in memory. Ids may repeat.
///
/// It is not durable and has no clock and no lock: the caller passes the wall clock, and prepares documents
/// outside of its own lock, because [preparing](DocumentPreparer::prepare_text) takes nearly all of the time.
///
/// ```
/// use lookalike::Recipe;
/// use lookalike::plan::{MatchPlan, MatchSettings};
/// use lookalike::stream::{DocumentStream, StreamReach, Timestamp};
/// use lookalike::text::AnalysisScratch;
///
/// let recipe = Recipe::built_in("default")?;
/// let plan = MatchPlan::new(&recipe, MatchSettings::default())?;
/// let mut stream = DocumentStream::new(&recipe, &plan, StreamReach::Everything)?;
/// let mut insert = |id, text: &str| {
///     let document = stream.document_preparer().prepare_text(text, &mut AnalysisScratch::default());
///     stream.insert_document(&document, id, text, None, Timestamp(0))
/// };
/// assert!(insert("a", "The ferry leaves at seven.")?.duplicate.is_none());
/// let repeat = insert("b", "the FERRY leaves at seven!")?.duplicate.unwrap();
/// assert_eq!((repeat.id, repeat.similarity.get()), ("a", 1.0));
/// # Ok::<_, lookalike::Error>(())
/// ```
#[derive(Debug)]
pub struct DocumentStream<I> {
    matcher: StreamMatcher,
    kept: KeptTexts<I>,
    counts_documents: bool,
    next_partition: u64,
    next_seq: u64,
}

/// The ids and texts of a partition of the matcher, by their places. A removed document has an empty text.
#[derive(Debug)]
struct TextPartition<I> {
    number: u64,
    documents: Vec<(I, Box<str>)>,
}

#[derive(Debug)]
struct KeptTexts<I>(VecDeque<TextPartition<I>>);

impl<I> KeptTexts<I> {
    fn document_at(&self, slot: DocumentSlot) -> Option<&(I, Box<str>)> {
        let at = self
            .0
            .binary_search_by_key(&slot.partition, |partition| partition.number);
        self.0[at.ok()?].documents.get(slot.index as usize)
    }
}

impl<I> StreamTexts for KeptTexts<I> {
    fn visit_text(&self, slot: DocumentSlot, visit: &mut dyn FnMut(&str)) -> Result<()> {
        let (_, text) = self
            .document_at(slot)
            .expect("the matcher names only documents of partitions that are not dropped");
        visit(text);
        Ok(())
    }
}

impl<I: Clone> DocumentStream<I> {
    /// Creates an empty stream.
    ///
    /// # Errors
    /// Fails as [`StreamMatcher::new`] does.
    pub fn new(recipe: &Recipe, plan: &MatchPlan, reach: StreamReach) -> Result<Self> {
        let window = match reach {
            StreamReach::Everything => None,
            StreamReach::Time(window) => Some(window),
            // The number of a document is its time, in microseconds.
            StreamReach::Documents { last, refresh } => Some(StreamWindow::new(
                Duration::from_micros(last.get()),
                Duration::ZERO,
                refresh,
            )?),
        };
        Ok(Self {
            matcher: StreamMatcher::new(recipe, plan, window)?,
            kept: KeptTexts(VecDeque::new()),
            counts_documents: matches!(reach, StreamReach::Documents { .. }),
            next_partition: 0,
            next_seq: 0,
        })
    }

    /// Returns the preparer of documents, which can be cloned and used on any thread.
    pub fn document_preparer(&self) -> &DocumentPreparer {
        self.matcher.document_preparer()
    }

    /// Checks a document and stores it, unless it is late. `now` is the wall clock, and the time of a document that
    /// states none.
    ///
    /// # Errors
    /// If the stream counts documents and a time is stated, if the number of kept documents reaches its limit, or if
    /// the check [fails](StreamMatcher::find_match).
    pub fn insert_document(
        &mut self,
        document: &SketchedDocument,
        id: I,
        text: &str,
        stated: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<DocumentVerdict<I>> {
        let arrival = self.resolve_arrival(stated, now)?;
        if arrival.late {
            return self.find_verdict(document, &arrival).map(|found| found.1);
        }
        self.make_room(&arrival)?;
        let (found, verdict) = self.find_verdict(document, &arrival)?;
        match found {
            None => self.keep_document(document, id, text.into(), arrival.time)?,
            Some(found) => {
                self.matcher.note_time(arrival.time);
                let window = self.matcher.window();
                if window.is_some_and(StreamWindow::is_refreshing) {
                    self.matcher.refresh_document(found.slot, arrival.time);
                }
            }
        }
        let seq = Some(self.next_seq);
        self.next_seq += 1;
        Ok(DocumentVerdict { seq, ..verdict })
    }

    /// Checks a document without storing it.
    ///
    /// # Errors
    /// Fails as [`insert_document`](Self::insert_document) does.
    pub fn check_document(
        &self,
        document: &SketchedDocument,
        stated: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<DocumentVerdict<I>> {
        let arrival = self.resolve_arrival(stated, now)?;
        self.find_verdict(document, &arrival).map(|found| found.1)
    }

    /// Removes the kept documents whose id fits, and returns their number. Documents that repeated them keep their
    /// verdicts. Reads every kept id.
    pub fn remove_documents(&mut self, is_removed: impl Fn(&I) -> bool) -> u64 {
        let mut removed = 0;
        for partition in &mut self.kept.0 {
            for (index, (id, text)) in (0..).zip(&mut partition.documents) {
                let slot = DocumentSlot {
                    partition: partition.number,
                    index,
                };
                if is_removed(id) && self.matcher.remove_document(slot) {
                    *text = Box::default();
                    removed += 1;
                }
            }
        }
        removed
    }

    /// Returns the kept documents in the order of their numbers.
    pub fn kept_documents(&self) -> impl Iterator<Item = KeptDocument<I>> {
        let slots = self.kept.0.iter().flat_map(|partition| {
            (0..).zip(&partition.documents).map(|(index, kept)| {
                let slot = DocumentSlot {
                    partition: partition.number,
                    index,
                };
                (slot, kept)
            })
        });
        slots.filter_map(|(slot, (id, text))| {
            let (seq, time) = self.matcher.kept_document(slot)?;
            Some(KeptDocument {
                id: id.clone(),
                text: text.clone(),
                time,
                seq,
            })
        })
    }

    /// Inserts kept documents as they were saved, without a check. `next_seq` is the number of the next document.
    ///
    /// # Errors
    /// If the number of kept documents reaches its limit.
    pub fn restore_documents(
        &mut self,
        documents: impl Iterator<Item = KeptDocument<I>>,
        next_seq: u64,
        now: Timestamp,
    ) -> Result<()> {
        let (preparer, mut scratch) =
            (self.document_preparer().clone(), AnalysisScratch::default());
        for kept in documents {
            let document = preparer.prepare_text(&*kept.text, &mut scratch);
            let now = kept.time.max(now);
            let arrival = self.matcher.resolve_arrival(Some(kept.time), now);
            self.make_room(&arrival)?;
            self.next_seq = kept.seq;
            self.keep_document(&document, kept.id, kept.text, kept.time)?;
        }
        self.next_seq = next_seq;
        Ok(())
    }

    /// Returns the number of the next document, which is the number of documents stored so far.
    pub fn next_seq(&self) -> u64 {
        self.next_seq
    }

    /// Returns the number of kept documents. It includes documents past the window whose partition is not dropped yet.
    pub fn len(&self) -> u64 {
        self.matcher.len()
    }

    /// Returns `true` if no document is kept.
    pub fn is_empty(&self) -> bool {
        self.matcher.is_empty()
    }

    /// Returns the bytes of memory of the index, without ids and texts.
    pub fn index_bytes(&self) -> u64 {
        let parts = self.matcher.memory_by_part();
        parts.iter().map(|(_, bytes)| bytes).sum()
    }

    fn resolve_arrival(&self, stated: Option<Timestamp>, now: Timestamp) -> Result<ArrivalTime> {
        if !self.counts_documents {
            return Ok(self.matcher.resolve_arrival(stated, now));
        }
        if let Some(Timestamp(microseconds)) = stated {
            return Err(Error::setting_error(format!(
                "the time of a document is {microseconds} µs, and the stream reaches back by documents: leave the time \
                 out, or give a window of time"
            )));
        }
        let number = Timestamp(self.next_seq.try_into().unwrap_or(i64::MAX));
        Ok(self.matcher.resolve_arrival(Some(number), number))
    }

    /// Drops the partitions that have expired, and begins one if it is due.
    fn make_room(&mut self, arrival: &ArrivalTime) -> Result<()> {
        if self.matcher.is_partition_due(arrival) {
            let number = self.next_partition;
            self.matcher.begin_partition(number, arrival.clock)?;
            self.next_partition += 1;
            self.kept.0.push_back(TextPartition {
                number,
                documents: Vec::new(),
            });
        }
        while self.matcher.expired_partition(arrival).is_some() {
            self.matcher.drop_partition();
            self.kept.0.pop_front();
        }
        Ok(())
    }

    fn find_verdict(
        &self,
        document: &SketchedDocument,
        arrival: &ArrivalTime,
    ) -> Result<(Option<KeptMatch>, DocumentVerdict<I>)> {
        let found = self.matcher.find_match(document, arrival, &self.kept)?;
        let duplicate = found.and_then(|found| {
            let (id, _) = self.kept.document_at(found.slot)?;
            Some(DuplicateOf {
                id: id.clone(),
                similarity: found.similarity,
                route: found.route,
            })
        });
        let verdict = DocumentVerdict {
            duplicate,
            seq: None,
            late: arrival.late,
        };
        Ok((found, verdict))
    }

    fn keep_document(
        &mut self,
        document: &SketchedDocument,
        id: I,
        text: Box<str>,
        time: Timestamp,
    ) -> Result<()> {
        self.matcher.keep_document(document, self.next_seq, time)?;
        let newest = self.kept.0.back_mut();
        let newest = newest.expect("a partition begins before the first document is stored");
        newest.documents.push((id, text));
        Ok(())
    }
}
