//! Whole components: the walk of one machine.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::{Setup, TextName};
use crate::error::{Error, ErrorKind, Result};
use crate::matching::{CopyPairs, Corpus, Outcome, Pair, Route, Texts, find_pairs, find_verdicts};
use crate::sketches::Sketches;
use crate::text::{Analysis, Scratch};
use crate::types::{DocId, Similarity};
use crate::verify::Weighted;

/// A document of a component.
#[derive(Clone, Copy, Debug)]
pub struct Incoming<'a> {
    /// The component.
    pub component: u64,
    /// Its text.
    pub name: TextName,
    /// Its position.
    pub position: &'a [u8],
    /// Its part, where only equal ones match.
    pub part: u64,
    /// The text, of the first document that has it.
    pub text: Option<&'a str>,
    /// Whether other documents have this text.
    pub repeated: bool,
}

/// A removed document and its evidence.
#[derive(Clone, Debug, PartialEq)]
pub struct Removed {
    /// The document that is removed.
    pub id: String,
    /// The kept document that is most similar to it, the earliest of several.
    pub kept: String,
    /// How similar they are.
    pub similarity: Similarity,
    /// How the pair was found.
    pub route: Route,
}

/// A pair that matches, the earlier document first.
#[derive(Clone, Debug, PartialEq)]
pub struct SettledPair {
    /// The earlier document.
    pub a: String,
    /// The later document.
    pub b: String,
    /// How similar they are.
    pub similarity: Similarity,
}

/// Bytes of text that are settled together: small components share the cost of a walk.
const TOGETHER: usize = 32 << 20;

/// Bytes that a walk takes for a text beside the text itself: its sketch, its place, its keys.
const BESIDE_A_TEXT: u64 = 600;

/// Repeats that wait for the verdicts of their component. Tests need fewer documents with a lower one.
pub(super) const WAITING: usize = if cfg!(test) { 1 << 9 } else { 1 << 16 };

/// Walks through components. Documents come component by component; those of one component in any
/// order, except that repeats of a text come after all that have texts.
///
/// It works in the `rayon` pool in which it is called. Memory: the texts of a component and some
/// hundred bytes for each, or some tens of megabytes of small components; repeats take none. A
/// component beyond a [limit](Self::limited) is refused before it takes more.
pub struct Settle {
    setup: Arc<Setup>,
    pairs_wanted: bool,
    limit: u64,
    component: Option<u64>,
    /// Texts of the component, and bytes that they take.
    size: (u64, u64),
    held: Held,
    waiting: Vec<(TextName, Vec<u8>)>,
    /// Verdicts on repeated texts of the component, once its walk is done.
    verdicts: HashMap<TextName, Verdict>,
    walked: bool,
    removed: Vec<Removed>,
    pairs: Vec<SettledPair>,
}

/// Documents with texts that are not settled yet.
#[derive(Default)]
struct Held {
    documents: Vec<Document>,
    texts: String,
}

struct Document {
    name: TextName,
    position: Vec<u8>,
    part: u64,
    text: std::ops::Range<usize>,
    repeated: bool,
}

/// What later documents of the same text are told.
enum Verdict {
    Kept(String),
    /// By position, each more similar than all before: what a later document matches best.
    Removed(Vec<Match>),
}

struct Match {
    position: Vec<u8>,
    similarity: Similarity,
    route: Route,
}

impl Settle {
    /// Finds verdicts.
    pub fn new(setup: Arc<Setup>) -> Self {
        Self {
            setup,
            pairs_wanted: false,
            limit: u64::MAX,
            component: None,
            size: (0, 0),
            held: Held::default(),
            waiting: Vec::new(),
            verdicts: HashMap::new(),
            walked: false,
            removed: Vec::new(),
            pairs: Vec::new(),
        }
    }

    /// Finds pairs instead, of equal texts the first document.
    pub fn pairs(setup: Arc<Setup>) -> Self {
        Self {
            pairs_wanted: true,
            ..Self::new(setup)
        }
    }

    /// The same for components that take no more than so many bytes: their texts and 600 for each.
    #[must_use]
    pub fn limited(self, bytes: u64) -> Self {
        Self {
            limit: bytes,
            ..self
        }
    }

    /// Adds a document.
    ///
    /// # Errors
    /// If its component is beyond the limit, if a text comes behind many repeats of its component, or if
    /// there are no verdicts to be had.
    pub fn add(&mut self, document: Incoming<'_>) -> Result<()> {
        if self.component != Some(document.component) {
            if self.walked || self.held.texts.len() >= TOGETHER {
                self.settle()?;
                self.verdicts.clear();
            }
            self.walked = false;
            self.component = Some(document.component);
            self.size = (0, 0);
        }
        let Some(text) = document.text else {
            if !self.pairs_wanted {
                self.waiting
                    .push((document.name, document.position.to_vec()));
            }
            if self.waiting.len() >= WAITING {
                self.settle()?;
                self.walked = true;
            }
            return Ok(());
        };
        if self.walked {
            return Err(Error::setting(format!(
                "a text of component {} comes behind its repeats: give all texts of a component first",
                document.component
            )));
        }
        self.setup.check_text(text)?;
        self.size.0 += 1;
        self.size.1 += text.len() as u64 + BESIDE_A_TEXT;
        if self.size.1 > self.limit {
            return Err(self.too_large(document.position));
        }
        let start = self.held.texts.len();
        self.held.texts.push_str(text);
        self.held.documents.push(Document {
            name: document.name,
            position: document.position.to_vec(),
            part: document.part,
            text: start..self.held.texts.len(),
            repeated: document.repeated,
        });
        Ok(())
    }

    /// Settles what has been added: all components must be complete.
    ///
    /// # Errors
    /// If there are no verdicts to be had.
    pub fn finish(&mut self) -> Result<()> {
        self.settle()
    }

    /// The removed documents that are known since the last call.
    pub fn take_removed(&mut self) -> Vec<Removed> {
        std::mem::take(&mut self.removed)
    }

    /// The pairs that are known since the last call.
    pub fn take_pairs(&mut self) -> Vec<SettledPair> {
        std::mem::take(&mut self.pairs)
    }

    fn settle(&mut self) -> Result<()> {
        if !self.held.documents.is_empty() {
            let held = std::mem::take(&mut self.held);
            let walk = Walk::new(&self.setup, held);
            if self.pairs_wanted {
                walk.pairs(&mut self.pairs)?;
            } else {
                walk.verdicts(&mut self.removed, &mut self.verdicts)?;
            }
        }
        for (name, position) in std::mem::take(&mut self.waiting) {
            let removed = self.repeat(name, &position)?;
            self.removed.push(removed);
        }
        Ok(())
    }

    fn too_large(&self, position: &[u8]) -> Error {
        let (texts, bytes) = self.size;
        let id = self.setup.id_at(position).unwrap_or_default();
        let message = format!(
            "a component, that of document '{id}', takes more than the limit of {} bytes: its first {texts} \
             texts take {bytes}, and one task has to hold them all. Allow more where tasks have it, or give \
             a higher threshold or a field within which documents match, so that fewer are connected",
            self.limit
        );
        Error::new(ErrorKind::Limit, message)
    }

    /// The verdict on a document whose text an earlier one has.
    fn repeat(&self, name: TextName, position: &[u8]) -> Result<Removed> {
        let id = |position| self.setup.id_at(position).map(str::to_owned);
        let (kept, similarity, route) = match self.verdicts.get(&name) {
            Some(Verdict::Kept(kept)) => (kept.clone(), Similarity::ONE, Route::Exact),
            Some(Verdict::Removed(matches)) => {
                let before = matches.partition_point(|it| it.position.as_slice() < position);
                let best = before.checked_sub(1).map(|at| &matches[at]);
                let best = best.ok_or_else(|| no_text(name))?;
                (id(&best.position)?, best.similarity, best.route)
            }
            None => return Err(no_text(name)),
        };
        Ok(Removed {
            id: id(position)?,
            kept,
            similarity,
            route,
        })
    }
}

fn no_text(name: TextName) -> Error {
    Error::text(format!(
        "no document with the text {:032x} came before its repeats: let the input rest, or copy it first",
        name.0
    ))
}

/// The documents of some components, in their order.
struct Walk<'s> {
    setup: &'s Setup,
    documents: Vec<Document>,
    texts: String,
    sketches: Sketches,
    /// The parts of the documents, where only equal ones match.
    parts: Option<Vec<u64>>,
    /// How many of the documents, the first ones, are given as known.
    given: usize,
    scratch: Mutex<Vec<Scratch>>,
}

/// Features that are kept from the first analysis.
const FEATURE_BUDGET: usize = 4 << 20;

impl<'s> Walk<'s> {
    fn new(setup: &'s Setup, held: Held) -> Self {
        let Held {
            mut documents,
            texts,
        } = held;
        documents.sort_unstable_by(|a, b| a.position.cmp(&b.position));
        let mut sketches = setup.sketcher.sketches(FEATURE_BUDGET);
        let mut scratch = Scratch::default();
        for document in &documents {
            let text = &texts[document.text.clone()];
            let analysis = setup.analyze(text, &mut scratch);
            setup.sketcher.add(&analysis, &mut sketches);
        }
        let parts = documents.iter().map(|document| document.part);
        let is_given = |document: &Document| setup.is_given(&document.position);
        Self {
            setup,
            parts: setup.bounds.within.then(|| parts.collect()),
            given: documents.partition_point(is_given),
            documents,
            texts,
            sketches,
            scratch: Mutex::new(vec![scratch]),
        }
    }

    fn corpus<'a>(&'a self, texts: &'a dyn Texts) -> Corpus<'a> {
        Corpus {
            plan: &self.setup.plan,
            sketches: &self.sketches,
            texts,
            order: None,
            parts: self.parts.as_deref(),
            window: None,
            given: self.given,
        }
    }

    fn id(&self, document: DocId) -> Result<String> {
        let position = &self.documents[document.index()].position;
        self.setup.id_at(position).map(str::to_owned)
    }

    fn pairs(&self, into: &mut Vec<SettledPair>) -> Result<()> {
        let visit = |pair: Pair| {
            into.push(SettledPair {
                a: self.id(pair.a)?,
                b: self.id(pair.b)?,
                similarity: pair.similarity,
            });
            Ok::<_, Error>(())
        };
        let copies = match self.given {
            0 => CopyPairs::None,
            _ => CopyPairs::All,
        };
        find_pairs(&self.corpus(&AtHand(self)), copies, visit, &|_| {})?;
        Ok(())
    }

    fn verdicts(
        &self,
        removed: &mut Vec<Removed>,
        verdicts: &mut HashMap<TextName, Verdict>,
    ) -> Result<()> {
        let outcome = find_verdicts(&self.corpus(&AtHand(self)), &|_| {})?;
        for removal in &outcome.removals {
            removed.push(Removed {
                id: self.id(removal.document)?,
                kept: self.id(removal.kept.with)?,
                similarity: removal.kept.similarity,
                route: removal.kept.route,
            });
        }
        self.told_to_repeats(&outcome, verdicts)
    }

    /// What later documents of the repeated texts are told. Where the first one is removed, they may
    /// be more similar to a kept one behind it.
    fn told_to_repeats(
        &self,
        outcome: &Outcome,
        verdicts: &mut HashMap<TextName, Verdict>,
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
            let verdict = Verdict::Kept(self.id(document)?);
            verdicts.insert(self.documents[document.index()].name, verdict);
        }
        let mut order: Vec<DocId> = of(false, false).collect();
        let given = order.len();
        order.extend(of(true, true));
        // One that is given is kept, and yet another one before it may be as similar to its repeats.
        let is_known = |document: &DocId| document.index() < self.given;
        order.extend(of(false, true).filter(is_known));
        if order.len() == given {
            return Ok(());
        }
        let mut matches: HashMap<DocId, Vec<Match>> = HashMap::new();
        let texts = AtHand(self);
        let corpus = Corpus {
            order: Some(&order),
            given,
            ..self.corpus(&texts)
        };
        let visit = |pair: Pair| {
            let kept = &self.documents[pair.a.index()];
            let matches = matches.entry(pair.b).or_default();
            if matches
                .last()
                .is_none_or(|best| pair.similarity > best.similarity)
            {
                matches.push(Match {
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
            verdicts.insert(name, Verdict::Removed(matches));
        }
        Ok(())
    }
}

impl Again for Walk<'_> {
    fn again(&self, document: DocId, visit: &mut dyn FnMut(&Analysis<'_>)) {
        let pool = || self.scratch.lock().unwrap_or_else(PoisonError::into_inner);
        let mut scratch = pool().pop().unwrap_or_default();
        let text = &self.texts[self.documents[document.index()].text.clone()];
        visit(&self.setup.analyze(text, &mut scratch));
        pool().push(scratch);
    }
}

/// Has texts at hand, and analyses them again.
pub(super) trait Again: Sync {
    /// Calls back with the analysis of a document.
    fn again(&self, document: DocId, visit: &mut dyn FnMut(&Analysis<'_>));
}

/// What documents are compared by, of texts at hand.
pub(super) struct AtHand<'a, T>(pub(super) &'a T);

impl<T: Again> Texts for AtHand<'_, T> {
    fn features(&self, document: DocId, into: &mut Vec<u64>) -> Result<()> {
        self.0
            .again(document, &mut |analysis| analysis.features(into));
        Ok(())
    }

    fn weighted(&self, document: DocId, into: &mut Vec<Weighted>) -> Result<()> {
        self.0
            .again(document, &mut |analysis| analysis.weighted_features(into));
        Ok(())
    }

    fn characters(&self, document: DocId, into: &mut Vec<u32>) -> Result<()> {
        let mut take = |analysis: &Analysis<'_>| into.extend_from_slice(analysis.characters());
        self.0.again(document, &mut take);
        Ok(())
    }

    fn words(&self, document: DocId, into: &mut Vec<u64>) -> Result<()> {
        let mut take = |analysis: &Analysis<'_>| into.extend_from_slice(analysis.tokens());
        self.0.again(document, &mut take);
        Ok(())
    }
}
