//! The fourth step: resolves whole components with the deduplication of one machine.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::component_texts::{ComponentTexts, CreateTextSpill};
use super::{ShuffleSetup, TextName};
use crate::dedup::{
    CopyPairs, DedupOutcome, MatchCorpus, MatchingPair, TextReanalysis, find_pairs, find_verdicts,
};
use crate::error::{Error, ErrorKind, Result};
use crate::similarity::Route;
use crate::sketch::DocumentSketches;
use crate::text::{AnalysisScratch, TextAnalysis};
use crate::types::{DocId, Similarity};

/// A document of a component.
#[derive(Clone, Copy, Debug)]
pub struct ComponentDocument<'a> {
    /// Component of the document.
    pub component: u64,
    /// Name of the text.
    pub name: TextName,
    /// Position of the document.
    pub position: &'a [u8],
    /// Partition, if documents match only within one.
    pub partition: u64,
    /// Text, for the first document that has it.
    pub text: Option<&'a str>,
    /// `true` if other documents have this text.
    pub repeated: bool,
}

/// A removed document, and the match for which it is removed.
#[derive(Clone, Debug, PartialEq)]
pub struct ShuffleRemoval {
    /// Id of the removed document.
    pub id: String,
    /// Id of the kept document that is most similar to it; the earliest if several are equally similar.
    pub kept: String,
    /// Similarity of the two documents.
    pub similarity: Similarity,
    /// The way in which the pair was found.
    pub route: Route,
}

/// A matching pair, with the earlier document first.
#[derive(Clone, Debug, PartialEq)]
pub struct ResolvedPair {
    /// Id of the earlier document.
    pub a: String,
    /// Id of the later document.
    pub b: String,
    /// Similarity of the two documents.
    pub similarity: Similarity,
}

/// Bytes of text that are resolved together, so that small components share the fixed cost of a run.
const MAX_TEXT_BYTES: u64 = 32 << 20;

/// Bytes of memory for a text in addition to the text itself: its sketch, its position and its keys.
pub(super) const BESIDE_A_TEXT: u64 = 600;

/// Number of repeats that may wait for the verdicts of their component. It is lower in tests, so that
/// these need fewer documents.
pub(super) const MOST_WAITING_REPEATS: usize = if cfg!(test) { 1 << 9 } else { 1 << 16 };

/// Resolves components. Documents must come component by component. Within a component, repeats of
/// texts must come after all documents with texts; apart from that, any order will do.
///
/// It works in the `rayon` pool in which it is called. Memory: the texts of one component and some
/// hundred bytes for each, or some tens of megabytes of small components; repeats take none. Of a
/// component beyond the [limit](Self::with_limit), the texts go to a [spill](Self::with_text_spill) if there is one.
/// A component that takes more than that is refused before it takes more.
pub struct ComponentResolver {
    setup: Arc<ShuffleSetup>,
    pairs_wanted: bool,
    limit: u64,
    create_spill: Option<Box<CreateTextSpill>>,
    component: Option<u64>,
    /// Number of texts of the component, and the bytes that they take.
    size: (u64, u64),
    held: PendingDocuments,
    waiting: Vec<(TextName, Vec<u8>)>,
    /// Positions of the first document of the data among those that repeat a text. Only for pairs with known documents.
    first_repeats: HashMap<TextName, Vec<u8>>,
    /// Verdicts on repeated texts of the component, once it is resolved.
    verdicts: HashMap<TextName, TextVerdict>,
    walked: bool,
    removed: Vec<ShuffleRemoval>,
    pairs: Vec<ResolvedPair>,
}

/// Documents with texts that are not resolved yet.
#[derive(Default)]
struct PendingDocuments {
    documents: Vec<ResolvedDocument>,
    texts: ComponentTexts,
}

impl PendingDocuments {
    /// Adds documents of the data that have the text of a known one.
    fn add_repeats_of_known(
        &mut self,
        setup: &ShuffleSetup,
        mut first_repeats: HashMap<TextName, Vec<u8>>,
    ) {
        let known = (self.documents.iter()).filter(|member| setup.is_known(&member.position));
        let repeat = |document: &ResolvedDocument| {
            let position = first_repeats.remove(&document.name)?;
            Some(ResolvedDocument {
                position,
                text: document.text.clone(),
                ..*document
            })
        };
        let repeats: Vec<_> = known.filter_map(repeat).collect();
        self.documents.extend(repeats);
    }
}

struct ResolvedDocument {
    name: TextName,
    position: Vec<u8>,
    partition: u64,
    text: std::ops::Range<u64>,
    repeated: bool,
}

/// The verdict that later documents of the same text get.
enum TextVerdict {
    Kept(String),
    /// Matches by position, each more similar than all before it. A later document is a duplicate of
    /// the last one before its own position.
    Removed(Vec<TextMatch>),
}

struct TextMatch {
    position: Vec<u8>,
    similarity: Similarity,
    route: Route,
}

impl ComponentResolver {
    /// Returns a step that finds verdicts.
    pub fn new(setup: Arc<ShuffleSetup>) -> Self {
        Self {
            setup,
            pairs_wanted: false,
            limit: u64::MAX,
            create_spill: None,
            component: None,
            size: (0, 0),
            held: PendingDocuments::default(),
            waiting: Vec::new(),
            first_repeats: HashMap::new(),
            verdicts: HashMap::new(),
            walked: false,
            removed: Vec::new(),
            pairs: Vec::new(),
        }
    }

    /// Returns a step that finds matching pairs instead. Of equal texts, only the first document is
    /// listed. If some documents are known, each pair has one of these and one of the data, and the first of
    /// both kinds is listed.
    pub fn for_pairs(setup: Arc<ShuffleSetup>) -> Self {
        Self {
            pairs_wanted: true,
            ..Self::new(setup)
        }
    }

    /// Returns the step with a limit on the bytes of a component: those of its texts and 600 for each.
    #[must_use]
    pub fn with_limit(self, bytes: u64) -> Self {
        Self {
            limit: bytes,
            ..self
        }
    }

    /// Returns the step with a store for the texts of a component beyond the limit. Of such a component, the limit then
    /// bounds the 600 bytes beside each text alone. Verdicts are the same.
    #[must_use]
    pub fn with_text_spill(self, create: Box<CreateTextSpill>) -> Self {
        Self {
            create_spill: Some(create),
            ..self
        }
    }

    /// Adds a document.
    ///
    /// # Errors
    /// Fails if its component is beyond the limit, if texts cannot be spilled, if packed features are damaged, if a text comes
    /// after many repeats of its component, or if resolving earlier documents fails.
    pub fn add_document(&mut self, document: ComponentDocument<'_>) -> Result<()> {
        if self.component != Some(document.component) {
            if self.walked || self.held.texts.count_bytes() >= MAX_TEXT_BYTES {
                self.resolve_pending()?;
                self.verdicts.clear();
            }
            self.walked = false;
            self.component = Some(document.component);
            self.size = (0, 0);
        }
        let Some(text) = document.text else {
            return self.add_repeat(&document);
        };
        if self.walked {
            return Err(Error::setting_error(format!(
                "a text of component {} comes after its duplicates: give all texts of a component \
                 first",
                document.component
            )));
        }
        self.setup.check_text(text)?;
        self.count_text(text.len() as u64, document.position)?;
        let text = self.held.texts.append_text(text)?;
        self.held.documents.push(ResolvedDocument {
            name: document.name,
            position: document.position.to_vec(),
            partition: document.partition,
            text,
            repeated: document.repeated,
        });
        Ok(())
    }

    /// Adds a document whose text came before.
    fn add_repeat(&mut self, document: &ComponentDocument<'_>) -> Result<()> {
        if self.pairs_wanted {
            return self.note_repeat(document.name, document.position);
        }
        self.waiting
            .push((document.name, document.position.to_vec()));
        if self.waiting.len() >= MOST_WAITING_REPEATS {
            self.resolve_pending()?;
            self.walked = true;
        }
        Ok(())
    }

    /// Notes the first document of the data that repeats a text. If a known document has that text too, both may be in
    /// pairs.
    fn note_repeat(&mut self, name: TextName, position: &[u8]) -> Result<()> {
        if !self.setup.bounds.against || self.setup.is_known(position) {
            return Ok(());
        }
        match self.first_repeats.get_mut(&name) {
            Some(first) if first.as_slice() <= position => {}
            Some(first) => *first = position.to_vec(),
            None => {
                self.count_text(0, position)?;
                self.first_repeats.insert(name, position.to_vec());
            }
        }
        Ok(())
    }

    /// Counts a text of a component, and moves the texts to the spill if they are beyond the limit.
    fn count_text(&mut self, bytes: u64, position: &[u8]) -> Result<()> {
        self.size.0 += 1;
        self.size.1 += bytes + BESIDE_A_TEXT;
        if self.size.1 <= self.limit {
            return Ok(());
        }
        match &self.create_spill {
            Some(create) if self.size.0 * BESIDE_A_TEXT <= self.limit => {
                self.held.texts.move_to_spill(create)
            }
            _ => Err(self.too_large_error(position)),
        }
    }

    /// Resolves all documents added. All components must be complete.
    ///
    /// # Errors
    /// Fails if a repeat has no text in its component, or if texts are too long for the measure.
    pub fn resolve_rest(&mut self) -> Result<()> {
        self.resolve_pending()
    }

    /// Returns the removed documents since the last call.
    pub fn take_removed(&mut self) -> Vec<ShuffleRemoval> {
        std::mem::take(&mut self.removed)
    }

    /// Returns the pairs since the last call.
    pub fn take_pairs(&mut self) -> Vec<ResolvedPair> {
        std::mem::take(&mut self.pairs)
    }

    fn resolve_pending(&mut self) -> Result<()> {
        if !self.held.documents.is_empty() {
            let mut held = std::mem::take(&mut self.held);
            let first_repeats = std::mem::take(&mut self.first_repeats);
            held.add_repeats_of_known(&self.setup, first_repeats);
            let walk = ComponentWalk::new(&self.setup, held)?;
            if self.pairs_wanted {
                walk.find_pairs(&mut self.pairs)?;
            } else {
                walk.find_verdicts(&mut self.removed, &mut self.verdicts)?;
            }
        }
        for (name, position) in std::mem::take(&mut self.waiting) {
            let removed = self.resolve_repeat(name, &position)?;
            self.removed.push(removed);
        }
        Ok(())
    }

    fn too_large_error(&self, position: &[u8]) -> Error {
        let (texts, bytes) = self.size;
        let taken = match self.create_spill {
            None => format!("take {bytes}"),
            Some(_) => format!(
                "take {} beside the texts themselves, which are in a file",
                texts * BESIDE_A_TEXT
            ),
        };
        let id = self.setup.id_at_position(position).unwrap_or_default();
        let message = format!(
            "the component of document '{id}' takes more than the limit of {} bytes: its first \
             {texts} texts {taken}, and one task must hold all of them. Raise the limit if \
             tasks have the memory, or give a higher threshold or a field within which documents \
             match, so that fewer are connected",
            self.limit
        );
        Error::new(ErrorKind::Limit, message)
    }

    /// Returns the verdict on a document whose text an earlier document has.
    fn resolve_repeat(&self, name: TextName, position: &[u8]) -> Result<ShuffleRemoval> {
        let id = |position| self.setup.id_at_position(position).map(str::to_owned);
        let (kept, similarity, route) = match self.verdicts.get(&name) {
            Some(TextVerdict::Kept(kept)) => (kept.clone(), Similarity::ONE, Route::Exact),
            Some(TextVerdict::Removed(matches)) => {
                let before =
                    matches.partition_point(|match_| match_.position.as_slice() < position);
                let best = before.checked_sub(1).map(|at| &matches[at]);
                let best = best.ok_or_else(|| missing_text_error(name))?;
                (id(&best.position)?, best.similarity, best.route)
            }
            None => return Err(missing_text_error(name)),
        };
        Ok(ShuffleRemoval {
            id: id(position)?,
            kept,
            similarity,
            route,
        })
    }
}

fn missing_text_error(name: TextName) -> Error {
    Error::text_error(format!(
        "no document with the text {:032x} came before its duplicates, so the input has changed \
         during the run: copy it first",
        name.0
    ))
}

/// The documents of some components, in their total order.
struct ComponentWalk<'s> {
    setup: &'s ShuffleSetup,
    documents: Vec<ResolvedDocument>,
    texts: ComponentTexts,
    sketches: DocumentSketches,
    /// Partitions of the documents, if documents match only within one.
    partitions: Option<Vec<u64>>,
    /// Number of documents at the start that are known.
    known: usize,
    scratch: Mutex<Vec<AnalysisScratch>>,
}

/// Number of features that are kept from the first analysis.
const FEATURE_BUDGET: usize = 4 << 20;

impl<'s> ComponentWalk<'s> {
    fn new(setup: &'s ShuffleSetup, held: PendingDocuments) -> Result<Self> {
        let PendingDocuments {
            mut documents,
            texts,
        } = held;
        documents.sort_unstable_by(|a, b| a.position.cmp(&b.position));
        let mut sketches = setup.sketcher.new_sketches(FEATURE_BUDGET);
        let mut scratch = AnalysisScratch::default();
        for document in &documents {
            texts.with_text(document.text.clone(), |text| {
                let analysis = setup.analyze_text(text, &mut scratch);
                setup.sketcher.add_document(&analysis, &mut sketches);
            })?;
        }
        let partitions = documents.iter().map(|document| document.partition);
        let is_known = |document: &ResolvedDocument| setup.is_known(&document.position);
        Ok(Self {
            setup,
            partitions: setup.bounds.within.then(|| partitions.collect()),
            known: documents.partition_point(is_known),
            documents,
            texts,
            sketches,
            scratch: Mutex::new(vec![scratch]),
        })
    }

    fn match_corpus(&self) -> MatchCorpus<'_> {
        MatchCorpus {
            partitions: self.partitions.as_deref(),
            known_prefix: self.known,
            ..MatchCorpus::new(&self.setup.plan, &self.sketches, self)
        }
    }

    fn document_id(&self, document: DocId) -> Result<String> {
        let position = &self.documents[document.index()].position;
        self.setup.id_at_position(position).map(str::to_owned)
    }

    fn find_pairs(&self, into: &mut Vec<ResolvedPair>) -> Result<()> {
        // Without a known document, pairs of the data would be listed.
        if self.setup.bounds.against && self.known == 0 {
            return Ok(());
        }
        let visit = |pair: MatchingPair| {
            into.push(ResolvedPair {
                a: self.document_id(pair.a)?,
                b: self.document_id(pair.b)?,
                similarity: pair.similarity,
            });
            Ok::<_, Error>(())
        };
        find_pairs(&self.match_corpus(), CopyPairs::None, visit, &|_| {})?;
        Ok(())
    }

    fn find_verdicts(
        &self,
        removed: &mut Vec<ShuffleRemoval>,
        verdicts: &mut HashMap<TextName, TextVerdict>,
    ) -> Result<()> {
        let outcome = find_verdicts(&self.match_corpus(), &|_| {})?;
        for removal in &outcome.removals {
            removed.push(ShuffleRemoval {
                id: self.document_id(removal.document)?,
                kept: self.document_id(removal.kept.with)?,
                similarity: removal.kept.similarity,
                route: removal.kept.route,
            });
        }
        self.verdicts_for_repeats(&outcome, verdicts)
    }

    /// Determines the verdicts that later documents of the repeated texts get. Where the first document
    /// of a text is removed, a later one may be more similar to a kept document between them.
    fn verdicts_for_repeats(
        &self,
        outcome: &DedupOutcome,
        verdicts: &mut HashMap<TextName, TextVerdict>,
    ) -> Result<()> {
        let mut is_removed = vec![false; self.documents.len()];
        for removal in &outcome.removals {
            is_removed[removal.document.index()] = true;
        }
        let of = |removed: bool, repeated: bool| {
            let documents = (0u32..).zip(self.documents.iter().zip(&is_removed));
            documents
                .filter(move |(_, (document, is_removed))| {
                    **is_removed == removed && (document.repeated || !repeated)
                })
                .map(|(at, _)| DocId(at))
        };
        for document in of(false, true) {
            let verdict = TextVerdict::Kept(self.document_id(document)?);
            verdicts.insert(self.documents[document.index()].name, verdict);
        }
        let mut order: Vec<DocId> = of(false, false).collect();
        let known = order.len();
        order.extend(of(true, true));
        // A known document is always kept, so an earlier known document may be as similar to its
        // repeats.
        let is_known = |document: &DocId| document.index() < self.known;
        order.extend(of(false, true).filter(is_known));
        if order.len() == known {
            return Ok(());
        }
        let mut matches: HashMap<DocId, Vec<TextMatch>> = HashMap::new();
        let corpus = MatchCorpus {
            order: Some(&order),
            known_prefix: known,
            decisions: None,
            ..self.match_corpus()
        };
        let visit = |pair: MatchingPair| {
            let kept = &self.documents[pair.a.index()];
            let matches = matches.entry(pair.b).or_default();
            if matches
                .last()
                .is_none_or(|best| pair.similarity > best.similarity)
            {
                matches.push(TextMatch {
                    position: kept.position.clone(),
                    similarity: pair.similarity,
                    route: pair.route,
                });
            }
            Ok::<_, Error>(())
        };
        find_pairs(&corpus, CopyPairs::All, visit, &|_| {})?;
        for (document, matches) in matches {
            let name = self.documents[document.index()].name;
            verdicts.insert(name, TextVerdict::Removed(matches));
        }
        Ok(())
    }
}

impl TextReanalysis for ComponentWalk<'_> {
    fn reanalyze_text(
        &self,
        document: DocId,
        visit: &mut dyn FnMut(&TextAnalysis<'_>),
    ) -> Result<()> {
        let pool = || self.scratch.lock().unwrap_or_else(PoisonError::into_inner);
        let mut scratch = pool().pop().unwrap_or_default();
        let range = self.documents[document.index()].text.clone();
        self.texts.with_text(range, |text| {
            visit(&self.setup.analyze_text(text, &mut scratch));
        })?;
        pool().push(scratch);
        Ok(())
    }
}
