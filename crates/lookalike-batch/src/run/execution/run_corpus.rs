//! The documents of a run with their sketches and their total order.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use lookalike::compare::ComparedContents;
use lookalike::dedup::{self, DocumentRemoval, MatchCorpus, PairDecisions, TextReanalysis};
use lookalike::forms::FormTable;
use lookalike::plan::MatchPlan;
use lookalike::similarity::Route;
use lookalike::text::{AnalysisScratch, TextAnalysis, TextAnalyzer};
use lookalike::{Cpu, DocId, DocumentSketcher, DocumentSketches, Recipe};
use lookalike_io::error::{Error, Result};
use rayon::prelude::*;

use crate::run::execution::form_learning::LEARNED_FORMS;
use crate::run::progress::{ProgressListener, RepeatedIds};
use crate::run::reading::corpus_reader::{FEATURES_IN_MEMORY, SketchedInputs};
use crate::run::reading::corpus_rows::{CorpusRows, IndexedDocument, IndexedDocuments};
use crate::run::reading::documents::ReadDocuments;
use crate::run::reading::open_inputs::OpenInputs;
use crate::run::reading::reading_sink::ReadBuffers;
use crate::run::reading::repeated_ids::count_shared_ids;
use crate::run::reading::row_analysis::analyze_row;
use crate::run::settings::RunSettings;

/// All documents of a run after reading. `documents`, `against`, `len` and `known_count` are those of [`CorpusRows`],
/// to which this dereferences.
pub(in crate::run) struct RunCorpus<'a> {
    rows: CorpusRows<'a>,
    pub(in crate::run) plan: &'a MatchPlan,
    analyzer: TextAnalyzer,
    /// Empty if sketches are in temporary files.
    pub(in crate::run) sketches: DocumentSketches,
    /// `true` if sketches are in memory.
    has_sketches: bool,
    /// For each document, `true` if its form was looked up; `None` if all are.
    looked_up: Option<Vec<bool>>,
    temporary: Option<PathBuf>,
    order: Option<Vec<DocId>>,
    times: Vec<f64>,
    partitions: Vec<u64>,
    width: Option<f64>,
    repeated_ids: Option<RepeatedIds>,
    decisions: Option<PairDecisions>,
    buffers: Mutex<Vec<ReadBuffers>>,
    /// Held while the features of a huge text are made.
    huge: Mutex<()>,
}

/// Bytes from which a text is huge. Only one thread at a time makes features of huge texts, because
/// that takes several times the memory of the text.
const HUGE_TEXT_BYTES: usize = 16 << 20;

/// Number of documents whose forms a thread finds at a time.
const FORMS_AT_ONCE: usize = 512;

/// Places, ids and other properties are those of the rows.
impl<'a> Deref for RunCorpus<'a> {
    type Target = CorpusRows<'a>;

    fn deref(&self) -> &CorpusRows<'a> {
        &self.rows
    }
}

impl<'a> RunCorpus<'a> {
    /// Creates the corpus of documents that were read. `has_sketches` is `false` if their sketches are in temporary
    /// files.
    pub(in crate::run) fn from_inputs(
        opened: &'a OpenInputs,
        settings: &RunSettings,
        plan: &'a MatchPlan,
        inputs: SketchedInputs,
        has_sketches: bool,
    ) -> Self {
        let SketchedInputs {
            analyzer,
            mut against,
            mut documents,
            sketches,
            repeated_ids,
        } = inputs;
        let mut times = std::mem::take(&mut against.times);
        times.append(&mut documents.times);
        let mut partitions = std::mem::take(&mut against.partitions);
        partitions.append(&mut documents.partitions);
        Self {
            has_sketches,
            looked_up: None,
            temporary: settings.temporary.clone(),
            order: documents.total_order(&settings.keep, against.len()),
            times,
            partitions,
            width: settings.window.as_ref().map(|window| window.seconds),
            repeated_ids,
            sketches,
            rows: CorpusRows {
                opened,
                indexed: IndexedDocuments::default(),
                against,
                documents,
            },
            plan,
            analyzer,
            decisions: None,
            buffers: Mutex::default(),
            huge: Mutex::default(),
        }
    }

    /// Compares documents by a table of forms too. `plan` is the plan of the run with forms. Documents that have candidates
    /// are read again, and the sketches of all are in memory.
    ///
    /// # Errors
    /// If the recipe has the scheme of another tool, or if a document cannot be read again.
    pub(in crate::run) fn use_forms(
        &mut self,
        table: &FormTable,
        plan: &'a MatchPlan,
        has_candidates: Vec<bool>,
    ) -> Result<()> {
        debug_assert!(self.has_sketches);
        let recipe = self.run_recipe().clone().with_forms(LEARNED_FORMS, table)?;
        let sketcher = DocumentSketcher::new(&recipe, plan, Cpu::detect_best());
        self.analyzer = TextAnalyzer::new(&recipe).with_extras(sketcher.required_extras());
        self.plan = plan;
        self.sketches.clear_forms();
        if table.forms().is_empty() {
            return Ok(());
        }
        let documents: Vec<DocId> = (0..self.sketches.len() as u32).map(DocId).collect();
        let of_chunks = documents
            .par_chunks(FORMS_AT_ONCE)
            .map(|documents| self.find_forms(documents, &has_candidates))
            .collect::<Result<Vec<DocumentSketches>>>()?;
        for forms in of_chunks {
            self.sketches.append_forms(&forms);
        }
        self.looked_up = Some(has_candidates);
        Ok(())
    }

    /// Goes back to a plan without forms, for a run that lists what forms keep apart. The forms are found in the texts then.
    pub(in crate::run) fn set_forms_aside(&mut self, plan: &'a MatchPlan) {
        debug_assert!(self.has_sketches && !plan.compares_forms());
        self.plan = plan;
        self.sketches.clear_forms();
        self.looked_up = Some(vec![false; self.sketches.len()]);
    }

    /// Returns what a table of forms compares of a document, and the name of its form.
    ///
    /// # Errors
    /// If the document cannot be read again.
    pub(in crate::run) fn read_contents(
        &self,
        document: DocId,
    ) -> Result<(ComparedContents, Option<&str>)> {
        let mut contents = ComparedContents::default();
        self.visit_analysis(document, |analysis| {
            contents = ComparedContents::from_analysis(analysis);
        })?;
        let form = contents.form_id();
        Ok((
            contents,
            form.and_then(|form| self.analyzer.form_name(form)),
        ))
    }

    /// Returns the name of the form of a document, if it is of one. Documents are read again if the sketches in memory do
    /// not have their forms.
    ///
    /// # Errors
    /// If a document cannot be read again.
    pub(in crate::run) fn find_form_name(&self, document: DocId) -> Result<Option<&str>> {
        let looked_up = self.looked_up.as_ref();
        let is_known = looked_up.is_none_or(|looked_up| looked_up[document.index()]);
        let form = if self.has_sketches && is_known {
            self.sketches.form_id(document)
        } else {
            let mut form = None;
            self.visit_analysis(document, |analysis| form = analysis.form_id())?;
            form
        };
        Ok(form.and_then(|form| self.analyzer.form_name(form)))
    }

    /// Returns the name of the form that both documents of a match have, if they have one. Documents that match have the
    /// same form, unless a person has decided so.
    ///
    /// # Errors
    /// As [`find_form_name`](Self::find_form_name).
    pub(in crate::run) fn find_common_form(
        &self,
        document: DocId,
        with: DocId,
        route: Route,
    ) -> Result<Option<&str>> {
        let form = self.find_form_name(document)?;
        if route == Route::Decision && form.is_some() && form != self.find_form_name(with)? {
            return Ok(None);
        }
        Ok(form)
    }

    /// Returns `true` if the forms of all documents that can match another one are in memory.
    pub(in crate::run) fn holds_forms(&self) -> bool {
        self.has_sketches && self.plan.compares_forms()
    }

    /// Returns the name of the form of a document, if the form is in memory.
    pub(in crate::run) fn held_form_name(&self, document: DocId) -> Option<&str> {
        let form = self.sketches.form_id(document)?;
        self.analyzer.form_name(form)
    }

    /// Returns the number of forms in the table of the run.
    pub(in crate::run) fn form_count(&self) -> u64 {
        self.analyzer.form_count() as u64
    }

    /// Returns a store of nothing but the forms of some documents.
    fn find_forms(&self, documents: &[DocId], has_candidates: &[bool]) -> Result<DocumentSketches> {
        let mut forms = DocumentSketches::default();
        for &document in documents {
            if has_candidates[document.index()] {
                self.visit_analysis(document, |analysis| forms.push_form(analysis))?;
            } else {
                forms.push_no_form();
            }
        }
        Ok(forms)
    }

    /// Returns the hash of each document's value of `--within`; empty if documents are not divided.
    pub(in crate::run) fn partitions(&self) -> &[u64] {
        &self.partitions
    }

    /// Returns `true` if documents of equal texts match the same others.
    pub(in crate::run) fn can_merge_equal_texts(&self) -> bool {
        self.width.is_none() && self.plan.equal_key().is_none()
    }

    /// Returns the place of every node in the total order; `None` if that is the reading order.
    pub(in crate::run) fn node_ranks(&self) -> Option<Vec<u32>> {
        let order = self.order.as_ref()?;
        let mut ranks = vec![0; self.node_count()];
        let indexed = self.rows.indexed.documents.len();
        for (rank, &document) in (0..).zip(order) {
            if document.index() >= indexed {
                ranks[self.node_of(document) as usize] = rank;
            }
        }
        Some(ranks)
    }

    /// Returns the place of every document in the total order; `None` if that is the reading order.
    pub(in crate::run) fn document_ranks(&self) -> Option<Vec<u32>> {
        let order = self.order.as_ref()?;
        let mut ranks = vec![0; order.len()];
        for (rank, document) in (0..).zip(order) {
            ranks[document.index()] = rank;
        }
        Some(ranks)
    }

    /// Sorts removals by the total order of their documents.
    pub(in crate::run) fn sort_removals(&self, removals: &mut [DocumentRemoval]) {
        let ranks = self.document_ranks();
        removals.sort_unstable_by_key(|removal| match &ranks {
            Some(ranks) => ranks[removal.document.index()],
            None => removal.document.0,
        });
    }

    /// Returns the directory of temporary files; `None` for that of the system.
    pub(in crate::run) fn temporary_directory(&self) -> Option<&Path> {
        self.temporary.as_deref()
    }

    /// Returns the value of `--within` of a document, as a hash; 0 if documents are not divided.
    pub(in crate::run) fn partition_of(&self, document: DocId) -> u64 {
        self.partitions.get(document.index()).copied().unwrap_or(0)
    }

    /// Puts documents of an index before all others. Their sketches are those of an empty text, which matches nothing,
    /// because the index has been searched. The run has no time window and no partitions.
    pub(in crate::run) fn put_indexed_first(
        &mut self,
        source: String,
        documents: Vec<IndexedDocument>,
    ) {
        debug_assert!(self.times.is_empty() && self.partitions.is_empty());
        if self.has_sketches {
            let sketcher =
                DocumentSketcher::new(self.analyzer.recipe(), self.plan, Cpu::detect_best());
            let mut sketches = sketcher.new_sketches(FEATURES_IN_MEMORY);
            sketches.reserve_documents(documents.len() + self.sketches.len());
            self.add_empty_sketches(&sketcher, documents.len(), &mut sketches);
            sketches.append_sketches(&self.sketches);
            self.sketches = sketches;
        }
        if let Some(order) = &mut self.order {
            let shift = documents.len() as u32;
            let shifted = order.iter().map(|document| DocId(document.0 + shift));
            *order = (0..shift).map(DocId).chain(shifted).collect();
        }
        self.rows.indexed = IndexedDocuments { source, documents };
    }

    /// Adds the sketches of `count` empty texts, which match nothing.
    pub(in crate::run) fn add_empty_sketches(
        &self,
        sketcher: &DocumentSketcher,
        count: usize,
        sketches: &mut DocumentSketches,
    ) {
        let mut scratch = AnalysisScratch::default();
        let empty = self.analyzer.analyze_text("", &mut scratch);
        (0..count).for_each(|_| sketcher.add_document(&empty, sketches));
    }

    /// Calls `visit` with the analysis of a document that is read again. In a run in memory it must be unchanged.
    pub(in crate::run) fn visit_analysis(
        &self,
        document: DocId,
        visit: impl FnOnce(&TextAnalysis<'_>),
    ) -> Result<()> {
        let expected = self.has_sketches.then(|| self.sketches.text_key(document));
        self.reanalyze(document, expected, visit)
    }

    /// Returns the bytes of ids in temporary files.
    pub(in crate::run) fn spilled_id_bytes(&self) -> u64 {
        self.against.ids.spilled_bytes() + self.documents.ids.spilled_bytes()
    }

    /// Returns how many documents have the id of a document of `--against`.
    ///
    /// # Errors
    /// If a temporary file of ids cannot be read.
    pub(in crate::run) fn shared_ids(&self) -> Result<u64> {
        count_shared_ids(&self.against, &self.documents)
    }

    /// Returns how many documents have the id of an earlier document of the same inputs.
    pub(in crate::run) fn repeated_ids(&self) -> u64 {
        self.repeated_ids
            .as_ref()
            .map_or(0, |repeated_ids| repeated_ids.documents)
    }

    /// Reports ids that several documents have. In a strict run they are an error.
    pub(in crate::run) fn report_repeated_ids(
        &self,
        settings: &RunSettings,
        progress: &dyn ProgressListener,
    ) -> Result<()> {
        match &self.repeated_ids {
            Some(_) if settings.strict => self.refuse_repeated_ids(settings),
            Some(repeated) => {
                progress.repeated_ids(repeated);
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Refuses ids that several documents have.
    pub(in crate::run) fn refuse_repeated_ids(&self, settings: &RunSettings) -> Result<()> {
        match &self.repeated_ids {
            Some(repeated) => Err(repeated.repeats_error(settings)),
            None => Ok(()),
        }
    }

    /// Returns the bytes of memory of the documents' properties and sketches.
    pub(in crate::run) fn memory_bytes(&self) -> u64 {
        let of = |documents: &ReadDocuments| documents.memory_bytes();
        self.sketches.memory_bytes() + of(&self.against) + of(&self.documents)
    }

    /// Sets the decisions of a person, which overrule the plan.
    pub(in crate::run) fn set_decisions(&mut self, decisions: PairDecisions) {
        self.decisions = Some(decisions);
    }

    /// Returns `true` if a person has decided about two documents.
    pub(in crate::run) fn is_decided_pair(&self, a: DocId, b: DocId) -> bool {
        let decisions = self.decisions.as_ref();
        decisions.is_some_and(|decisions| decisions.decision_between(a, b).is_some())
    }

    /// Returns the key of a text after normalisation.
    pub(in crate::run) fn key_of_text(&self, text: &str) -> u128 {
        let mut scratch = AnalysisScratch::default();
        self.analyzer.analyze_text(text, &mut scratch).key
    }

    /// Returns the corpus as the engine takes it.
    pub(in crate::run) fn match_corpus(&self) -> MatchCorpus<'_> {
        MatchCorpus {
            plan: self.plan,
            sketches: &self.sketches,
            texts: self,
            order: self.order.as_deref(),
            partitions: (!self.partitions.is_empty()).then_some(&self.partitions),
            window: self.width.map(|width| dedup::TimeWindow {
                times: &self.times,
                width,
            }),
            known_prefix: self.known_count(),
            decisions: self.decisions.as_ref(),
        }
    }

    /// Returns the recipe of the run.
    pub(in crate::run) fn run_recipe(&self) -> &Recipe {
        self.analyzer.recipe()
    }

    /// Returns the document that was read from a row of the inputs.
    pub(in crate::run) fn document_of_row(&self, number: u64) -> Option<DocId> {
        let index = self.documents.index_of_row(number)?;
        Some(DocId((self.known_count() + index) as u32))
    }

    /// Returns the document that was read from a row of `--against`.
    pub(in crate::run) fn against_document(&self, number: u64) -> Option<DocId> {
        self.against
            .index_of_row(number)
            .map(|index| DocId((self.indexed.documents.len() + index) as u32))
    }

    /// Reads a document again and calls `visit` with its analysis, which must have the text key `expected` if that is
    /// known.
    pub(in crate::run) fn reanalyze(
        &self,
        document: DocId,
        expected: Option<u128>,
        visit: impl FnOnce(&TextAnalysis<'_>),
    ) -> Result<()> {
        let pool = || self.buffers.lock().unwrap_or_else(PoisonError::into_inner);
        let mut buffers = pool().pop().unwrap_or_default();
        let (key, is_huge) = self.analyze_again(document, &mut buffers, visit)?;
        if !is_huge {
            pool().push(buffers);
        }
        if expected.is_some_and(|expected| key != expected) {
            let (_, documents, index) = self.locate_document(document);
            return Err(Error::input_error(format!(
                "row {} changed during the run: copy the input first, and give the copy",
                documents.row_number(index)
            )));
        }
        Ok(())
    }

    /// Reads a document again and calls `visit` with its analysis. Returns its text key, and whether it is so large
    /// that the buffers were released.
    pub(in crate::run) fn analyze_again(
        &self,
        document: DocId,
        ReadBuffers {
            parse,
            analysis: text,
        }: &mut ReadBuffers,
        visit: impl FnOnce(&TextAnalysis<'_>),
    ) -> Result<(u128, bool)> {
        let (inputs, documents, index) = self.locate_document(document);
        inputs.reread_row(documents.place_of(index), parse, |row| {
            let is_huge = row.text.len() > HUGE_TEXT_BYTES;
            let one = || self.huge.lock().unwrap_or_else(PoisonError::into_inner);
            let _one = is_huge.then(one);
            let analysis = analyze_row(&self.analyzer, row, text);
            visit(&analysis);
            let key = analysis.key;
            if is_huge {
                *text = AnalysisScratch::default();
            }
            (key, is_huge)
        })
    }
}

impl TextReanalysis for RunCorpus<'_> {
    fn reanalyze_text(
        &self,
        document: DocId,
        visit: &mut dyn FnMut(&TextAnalysis<'_>),
    ) -> lookalike::Result<()> {
        self.visit_analysis(document, visit)
            .map_err(lookalike::Error::text_error)
    }
}
