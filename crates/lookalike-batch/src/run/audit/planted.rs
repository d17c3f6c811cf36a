//! Planted edits: edited copies of sampled documents, checked with the match plan of the run.

use std::collections::BTreeMap;

use lookalike::audit::{Estimate, similarity};
use lookalike::matching::{Corpus, Texts, route_between};
use lookalike::plant::{Edit, Planter, Stock};
use lookalike::text::{Analyzer, Scratch};
use lookalike::{Cpu, DocId, Similarity, Sketcher, Sketches};
use rayon::prelude::*;

use super::super::corpus::ReadCorpus;
use super::report::{ByEdit, Planted, Share};
use crate::error::Result;

/// One edited copy of each sampled document.
pub(super) struct Copies<'a> {
    corpus: &'a ReadCorpus<'a>,
    sketches: Sketches,
    /// Features of the originals and copies in turn: original, copy, next original, and so on.
    features: Vec<Vec<u64>>,
    edits: Vec<Edit>,
}

/// An original and its copy, as they are compared.
struct Pair {
    edit: Edit,
    sketches: Sketches,
    features: [Vec<u64>; 2],
}

impl<'a> Copies<'a> {
    /// Edits documents. Documents to which no edit applies are left out.
    pub(super) fn plant(corpus: &'a ReadCorpus<'a>, seed: u64, texts: &[(String, String)]) -> Self {
        let plan = corpus.plan;
        let recipe = corpus.recipe();
        let sketcher = Sketcher::new(recipe, plan, Cpu::best());
        let analyzer = Analyzer::new(recipe).with_extras(sketcher.extras());
        let planter = Planter::new(seed, Stock::new(texts.iter().map(|(_, text)| &text[..])));
        let pairs: Vec<Option<Pair>> = texts
            .par_iter()
            .map_init(Scratch::default, |scratch, (id, text)| {
                let order = planter.order(id, &Edit::all());
                let planted = |&edit: &Edit| Some((edit, planter.plant(id, text, &[edit])?));
                let (edit, edited) = order.iter().find_map(planted)?;
                let mut sketches = sketcher.sketches(0);
                let features = [text, &edited].map(|text| {
                    let analysis = analyzer.analyze(text, scratch);
                    sketcher.add(&analysis, &mut sketches);
                    let mut features = Vec::new();
                    analysis.features(&mut features);
                    features
                });
                Some(Pair {
                    edit,
                    sketches,
                    features,
                })
            })
            .collect();
        let mut copies = Self {
            corpus,
            sketches: sketcher.sketches(0),
            features: Vec::new(),
            edits: Vec::new(),
        };
        for pair in pairs.into_iter().flatten() {
            copies.sketches.append(&pair.sketches);
            copies.features.extend(pair.features);
            copies.edits.push(pair.edit);
        }
        copies
    }

    /// Reports which of the copies at or above the threshold the match plan finds.
    pub(super) fn report(&self) -> Result<Planted> {
        let corpus = Corpus {
            plan: self.corpus.plan,
            sketches: &self.sketches,
            texts: self,
            order: None,
            parts: None,
            window: None,
            given: 0,
        };
        let mut kinds: BTreeMap<Edit, Tally> = BTreeMap::new();
        let mut all = Tally::default();
        for (at, &edit) in self.edits.iter().enumerate() {
            let (a, b) = (DocId(2 * at as u32), DocId(2 * at as u32 + 1));
            let similarity = self.similarity(a, b);
            let found = match similarity {
                Some(_) => Some(route_between(&corpus, a, b)?.is_some()),
                None => None,
            };
            kinds.entry(edit).or_default().take(found);
            all.take(found);
        }
        let by_edit = kinds.into_iter().map(|(edit, tally)| ByEdit {
            kind: edit.kind().name(),
            strength: edit.strength(),
            copies: tally.copies,
            recall: tally.share(),
        });
        Ok(Planted {
            copies: all.copies,
            recall: all.share(),
            by_edit: by_edit.collect(),
        })
    }

    /// Returns the similarity of an original and its copy if it reaches the threshold.
    fn similarity(&self, a: DocId, b: DocId) -> Option<Similarity> {
        if self.sketches.key(a) == self.sketches.key(b) {
            return Some(Similarity::ONE);
        }
        let [a, b] = [a, b].map(|document| &self.features[document.index()]);
        similarity(self.corpus.plan, a, b)
    }
}

impl Texts for Copies<'_> {
    fn features(&self, document: DocId, into: &mut Vec<u64>) -> lookalike::Result<()> {
        into.extend_from_slice(&self.features[document.index()]);
        Ok(())
    }
}

#[derive(Default)]
struct Tally {
    copies: u64,
    /// Copies at or above the threshold.
    similar: u64,
    found: u64,
}

impl Tally {
    fn take(&mut self, found: Option<bool>) {
        self.copies += 1;
        self.similar += u64::from(found.is_some());
        self.found += u64::from(found == Some(true));
    }

    fn share(&self) -> Share {
        Share::from(Estimate::new(self.found as f64, self.similar))
    }
}
