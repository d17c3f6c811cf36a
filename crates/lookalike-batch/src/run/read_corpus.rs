//! The documents of a run with their sketches and their total order.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use lookalike::dedup::{self, DocumentRemoval, MatchCorpus, PairDecisions, TextReanalysis};
use lookalike::plan::MatchPlan;
use lookalike::text::{AnalysisScratch, TextAnalysis, TextAnalyzer};
use lookalike::{Cpu, DocId, DocumentSketcher, DocumentSketches, Recipe, RecipeId};
use lookalike_io::error::{Error, Result};
use lookalike_io::source::{BadRow, InputSet, ParseScratch};

use super::audit::{AuditReport, ReportedPairs, RunAudit};
use super::corpus_rows::{CorpusRows, IndexedDocuments, OpenInputs};
use super::documents::ReadDocuments;
use super::forecast::RowSampling;
use super::ids::{RepeatedIds, count_shared_ids, find_repeats};
use super::out_of_core::{
    DocumentGrouping, SpillSizes, SpilledReading, count_state, shuffle_setup,
};
use super::progress::ProgressListener;
use super::row_reader::{CorpusReader, FEATURES_HELD, RejectRows, SpillTarget, analyze_row};
use super::settings::RunSettings;
use super::summary::{SpilledSummary, TextStateCounts};
use super::work_directory::{ReadingSteps, StepKind, WorkDirectory};
use crate::index::IndexedDocument;

/// The parties to a reading, apart from its inputs.
struct ReadObservers<'a> {
    /// Receiver of bad rows.
    reject: &'a RejectRows<'a>,
    audit: Option<RunAudit>,
    /// The selection of rows if not all are read.
    sampling: Option<&'a RowSampling>,
    /// The directory of the run, if it can be interrupted.
    work: Option<&'a WorkDirectory>,
    /// How the work is divided if sketches and keys go to temporary files.
    spill: Option<SpillSizes>,
}

/// The parties to the reading of all rows.
#[derive(Clone, Copy)]
pub(super) struct RunObservers<'a> {
    /// Receiver of all bad rows in order.
    pub(super) reject: &'a RejectRows<'a>,
    /// The directory of the run, if it can be interrupted.
    pub(super) work: Option<&'a WorkDirectory>,
    /// How the work is divided if sketches and keys go to temporary files.
    pub(super) spill: Option<SpillSizes>,
}

/// All documents of a run after reading.
pub(super) struct ReadCorpus<'a> {
    rows: CorpusRows<'a>,
    pub(super) plan: &'a MatchPlan,
    analyzer: TextAnalyzer,
    /// Empty in a run out of core.
    pub(super) sketches: DocumentSketches,
    /// The temporary files of a run out of core, until its documents are linked.
    spilled: Option<SpilledReading>,
    /// The documents that may match, in a run out of core.
    grouping: Option<DocumentGrouping>,
    temporary: Option<PathBuf>,
    text_states: TextStateCounts,
    order: Option<Vec<DocId>>,
    times: Vec<f64>,
    parts: Vec<u64>,
    width: Option<f64>,
    repeated_ids: Option<RepeatedIds>,
    audit: Option<RunAudit>,
    decisions: Option<PairDecisions>,
    scratch: Mutex<Vec<(ParseScratch, AnalysisScratch)>>,
    /// Held while the features of a huge text are made.
    huge: Mutex<()>,
}

/// Bytes from which a text is huge. Only one thread at a time makes features of huge texts, because
/// that takes several times the memory of the text.
const HUGE: usize = 16 << 20;

/// Places, ids and other properties are those of the rows.
impl<'a> Deref for ReadCorpus<'a> {
    type Target = CorpusRows<'a>;

    fn deref(&self) -> &CorpusRows<'a> {
        &self.rows
    }
}

impl<'a> ReadCorpus<'a> {
    /// Reads all inputs into memory. `reject` receives all bad rows in order.
    pub(super) fn read_all(
        opened: &'a OpenInputs,
        settings: &RunSettings,
        plan: &'a MatchPlan,
        reject: &RejectRows<'_>,
        progress: &dyn ProgressListener,
    ) -> Result<Self> {
        let observers = RunObservers {
            reject,
            work: None,
            spill: None,
        };
        Self::read_for_run(opened, settings, plan, observers, progress)
    }

    /// Reads all inputs. If there is a directory of the run, documents that it holds are not sketched again, and
    /// it takes the others.
    pub(super) fn read_for_run(
        opened: &'a OpenInputs,
        settings: &RunSettings,
        plan: &'a MatchPlan,
        observers: RunObservers<'_>,
        progress: &dyn ProgressListener,
    ) -> Result<Self> {
        let RunObservers {
            reject,
            work,
            spill,
        } = observers;
        let audit = RunAudit::from_settings(settings, plan)?;
        if let Some(audit) = &audit
            && let Some(rows) = opened.expected_rows()?
        {
            audit.audit_drawing().expect_rows(rows);
        }
        let observers = ReadObservers {
            reject,
            audit,
            sampling: None,
            work,
            spill,
        };
        let corpus = Self::read_observed(opened, settings, plan, observers, progress)?;
        if let Some(work) = work {
            work.finish_reading(corpus.len() as u64)?;
        }
        Ok(corpus)
    }

    /// Returns the identity of the recipe.
    pub(super) fn recipe_id(&self) -> RecipeId {
        self.analyzer.recipe_id()
    }

    /// Returns the hash of each document's value of `--within`; empty if documents are not divided.
    pub(super) fn parts(&self) -> &[u64] {
        &self.parts
    }

    /// Reads a sample of the rows of all inputs.
    pub(super) fn read_sample(
        opened: &'a OpenInputs,
        settings: &RunSettings,
        plan: &'a MatchPlan,
        sampling: &RowSampling,
        progress: &dyn ProgressListener,
    ) -> Result<Self> {
        let reject = |_: &InputSet, _: &[BadRow]| Ok(());
        let observers = ReadObservers {
            reject: &reject,
            audit: None,
            sampling: Some(sampling),
            work: None,
            spill: None,
        };
        Self::read_observed(opened, settings, plan, observers, progress)
    }

    fn read_observed(
        opened: &'a OpenInputs,
        settings: &RunSettings,
        plan: &'a MatchPlan,
        observers: ReadObservers<'_>,
        progress: &dyn ProgressListener,
    ) -> Result<Self> {
        let ReadObservers {
            reject,
            audit,
            sampling,
            work,
            spill,
        } = observers;
        let is_whole = sampling.is_none();
        let bytes = opened.size_on_disk();
        let sketcher = DocumentSketcher::new(&settings.recipe, plan, Cpu::detect_best());
        let analyzer = TextAnalyzer::new(&settings.recipe).with_extras(sketcher.required_extras());
        let spilled = match spill {
            Some(sizes) => Some(SpilledReading::begin_reading(
                shuffle_setup(settings)?,
                sizes,
                settings.temporary.clone(),
            )?),
            None => None,
        };
        let mut reader = CorpusReader {
            settings,
            analyzer: analyzer.clone(),
            sketcher,
            extra: opened.extra_of_given.clone(),
            reject,
            audit: audit.as_ref().map(|audit| (audit, bytes)),
            sampling,
            is_whole,
            steps: None,
            spill: spilled.as_ref().map(|reading| SpillTarget {
                reading,
                first_node: 0,
                is_judged: false,
            }),
        };
        let mut against = ReadDocuments::with_sketches(reader.new_sketches());
        let mut repeated_ids = None;
        if let Some(inputs) = &opened.against {
            reader.steps = work.map(|work| ReadingSteps::new(work, StepKind::Against));
            against = reader.read_inputs(inputs, against, progress)?;
            if is_whole {
                repeated_ids = find_repeats(inputs, &against)?;
            }
        }
        if let Some(audit) = &audit {
            audit.audit_drawing().begin_inputs();
        }
        if let Some(spill) = &mut reader.spill {
            spill.first_node = against.last_number();
            spill.is_judged = true;
        }
        reader.extra = opened.extra.clone();
        reader.steps = work.map(|work| ReadingSteps::new(work, StepKind::Documents));
        let base = ReadDocuments::with_sketches(std::mem::take(&mut against.sketches));
        let mut documents = reader.read_inputs(&opened.inputs, base, progress)?;
        if is_whole {
            let repeated = find_repeats(&opened.inputs, &documents)?;
            repeated_ids = RepeatedIds::add_counts(repeated, repeated_ids);
            documents.check_fields(&opened.inputs, &opened.extra, settings)?;
            opened.inputs.refuse_absent_fields()?;
        }
        let mut times = std::mem::take(&mut against.times);
        times.append(&mut documents.times);
        let mut parts = std::mem::take(&mut against.parts);
        parts.append(&mut documents.parts);
        let sketches = std::mem::take(&mut documents.sketches);
        let known = against.len();
        let text_states = match &spilled {
            Some(spilled) => spilled.text_states(),
            None => count_text_states(&sketches, known),
        };
        let mut spilled = spilled;
        if let Some(spilled) = &mut spilled {
            let of_rows = |rows: &ReadDocuments| rows.memory_bytes() + rows.value_bytes();
            let columns = 8 * (times.len() + parts.len()) as u64;
            let bytes = of_rows(&against) + of_rows(&documents) + columns;
            spilled.note_rows(against.len() + documents.len(), bytes);
        }
        Ok(Self {
            spilled,
            grouping: None,
            temporary: settings.temporary.clone(),
            text_states,
            order: documents.total_order(&settings.keep, against.len()),
            times,
            parts,
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
            audit,
            decisions: None,
            scratch: Mutex::default(),
            huge: Mutex::default(),
        })
    }

    /// Links and groups the documents of a run out of core. `merges_equal_texts` says whether documents of equal
    /// texts get equal verdicts, as far as the settings allow it.
    ///
    /// # Errors
    /// If temporary files or inputs cannot be read or written, or if a component does not fit into the memory.
    pub(super) fn group_documents(&mut self, merges_equal_texts: bool) -> Result<()> {
        let Some(reading) = self.spilled.take() else {
            return Ok(());
        };
        let merges = merges_equal_texts && self.can_merge_equal_texts();
        self.grouping = Some(DocumentGrouping::group_documents(reading, self, merges)?);
        Ok(())
    }

    fn can_merge_equal_texts(&self) -> bool {
        self.width.is_none() && self.plan.equal_key().is_none()
    }

    /// Returns the groups of a run out of core.
    pub(super) fn grouping(&self) -> Option<&DocumentGrouping> {
        self.grouping.as_ref()
    }

    /// Returns the place of every node in the total order; `None` if that is the reading order.
    pub(super) fn node_ranks(&self) -> Option<Vec<u32>> {
        let order = self.order.as_ref()?;
        let mut ranks = vec![0; self.node_count()];
        let indexed = self.rows.indexed.rows.len();
        for (rank, &document) in (0..).zip(order) {
            if document.index() >= indexed {
                ranks[self.node_of(document) as usize] = rank;
            }
        }
        Some(ranks)
    }

    /// Returns the place of every document in the total order; `None` if that is the reading order.
    pub(super) fn document_ranks(&self) -> Option<Vec<u32>> {
        let order = self.order.as_ref()?;
        let mut ranks = vec![0; order.len()];
        for (rank, document) in (0..).zip(order) {
            ranks[document.index()] = rank;
        }
        Some(ranks)
    }

    /// Sorts removals by the total order of their documents.
    pub(super) fn sort_removals(&self, removals: &mut [DocumentRemoval]) {
        let ranks = self.document_ranks();
        removals.sort_unstable_by_key(|removal| match &ranks {
            Some(ranks) => ranks[removal.document.index()],
            None => removal.document.0,
        });
    }

    /// Returns the directory of temporary files; `None` for that of the system.
    pub(super) fn temporary_directory(&self) -> Option<&Path> {
        self.temporary.as_deref()
    }

    /// Returns how much of the run went to temporary files, if it was out of core.
    pub(super) fn spilled_summary(&self) -> Option<SpilledSummary> {
        self.grouping
            .as_ref()
            .map(DocumentGrouping::summarize_spilled)
    }

    /// Returns the text states of the documents to decide about.
    pub(super) fn text_states(&self) -> TextStateCounts {
        self.text_states
    }

    /// Returns the value of `--within` of a document, as a hash; 0 if documents are not divided.
    pub(super) fn part_of(&self, document: DocId) -> u64 {
        self.parts.get(document.index()).copied().unwrap_or(0)
    }

    /// Puts documents of an index before all others. Their sketches are those of an empty text, which matches nothing,
    /// because the index has been searched. The run has no time window and no partitions.
    pub(super) fn put_indexed_first(&mut self, source: String, rows: Vec<IndexedDocument>) {
        debug_assert!(self.times.is_empty() && self.parts.is_empty());
        if self.spilled.is_none() {
            let sketcher =
                DocumentSketcher::new(self.analyzer.recipe(), self.plan, Cpu::detect_best());
            let mut sketches = sketcher.new_sketches(FEATURES_HELD);
            sketches.reserve_documents(rows.len() + self.sketches.len());
            self.add_empty_sketches(&sketcher, rows.len(), &mut sketches);
            sketches.append_sketches(&self.sketches);
            self.sketches = sketches;
        }
        if let Some(order) = &mut self.order {
            let shift = rows.len() as u32;
            let shifted = order.iter().map(|document| DocId(document.0 + shift));
            *order = (0..shift).map(DocId).chain(shifted).collect();
        }
        self.rows.indexed = IndexedDocuments { source, rows };
    }

    /// Adds the sketches of so many empty texts, which match nothing.
    pub(super) fn add_empty_sketches(
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
    pub(super) fn visit_analysis(
        &self,
        document: DocId,
        visit: impl FnOnce(&TextAnalysis<'_>),
    ) -> Result<()> {
        match self.spilled {
            None => self.reanalyze(document, Some(self.sketches.text_key(document)), visit),
            Some(_) => self.reanalyze(document, None, visit),
        }
    }

    /// Returns how many documents have the id of a document of `--against`.
    pub(super) fn shared_ids(&self) -> u64 {
        count_shared_ids(&self.against, &self.documents)
    }

    /// Returns how many documents have the id of an earlier document of the same inputs.
    pub(super) fn repeated_ids(&self) -> u64 {
        self.repeated_ids.as_ref().map_or(0, |it| it.documents)
    }

    /// Reports ids that several documents have. In a strict run they are an error.
    pub(super) fn tell_repeated_ids(
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
    pub(super) fn refuse_repeated_ids(&self, settings: &RunSettings) -> Result<()> {
        match &self.repeated_ids {
            Some(repeated) => Err(repeated.refuse_repeats(settings)),
            None => Ok(()),
        }
    }

    /// Returns the bytes of memory of the documents' properties and sketches.
    pub(super) fn memory_bytes(&self) -> u64 {
        let of = |documents: &ReadDocuments| documents.memory_bytes();
        self.sketches.memory_bytes() + of(&self.against) + of(&self.documents)
    }

    /// Sets the decisions of a person, which overrule the plan.
    pub(super) fn set_decisions(&mut self, decisions: PairDecisions) {
        self.decisions = Some(decisions);
    }

    /// Returns `true` if a person has decided about two documents.
    pub(super) fn is_decided_pair(&self, a: DocId, b: DocId) -> bool {
        let decisions = self.decisions.as_ref();
        decisions.is_some_and(|it| it.decision_between(a, b).is_some())
    }

    /// Returns the key of a text after normalisation.
    pub(super) fn key_of_text(&self, text: &str) -> u128 {
        let mut scratch = AnalysisScratch::default();
        self.analyzer.analyze_text(text, &mut scratch).key
    }

    /// Returns the corpus as the engine takes it.
    pub(super) fn match_corpus(&self) -> MatchCorpus<'_> {
        MatchCorpus {
            plan: self.plan,
            sketches: &self.sketches,
            texts: self,
            order: self.order.as_deref(),
            partitions: (!self.parts.is_empty()).then_some(&self.parts),
            window: self.width.map(|width| dedup::TimeWindow {
                times: &self.times,
                width,
            }),
            known_prefix: self.known_count(),
            decisions: self.decisions.as_ref(),
        }
    }

    /// Returns the report of the audit, if there is one; see [`RunAudit::report_run`].
    pub(super) fn audit_report(
        &self,
        reported: ReportedPairs,
        kept: Option<&dyn Fn(DocId) -> bool>,
    ) -> Result<Option<AuditReport>> {
        let audit = self.audit.as_ref();
        audit
            .map(|audit| audit.report_run(self, reported, kept))
            .transpose()
    }

    /// Returns the recipe of the run.
    pub(super) fn run_recipe(&self) -> &Recipe {
        self.analyzer.recipe()
    }

    /// Returns the document that was read from a row of the inputs.
    pub(super) fn document_of_row(&self, number: u64) -> Option<DocId> {
        let index = self.documents.index_of_row(number)?;
        Some(DocId((self.known_count() + index) as u32))
    }

    /// Returns the document that was read from a row of `--against`.
    pub(super) fn known_of_row(&self, number: u64) -> Option<DocId> {
        self.against
            .index_of_row(number)
            .map(|index| DocId((self.indexed.rows.len() + index) as u32))
    }

    /// Reads a document again and calls `visit` with its analysis, which must have the text key `expected` if that is
    /// known.
    pub(super) fn reanalyze(
        &self,
        document: DocId,
        expected: Option<u128>,
        visit: impl FnOnce(&TextAnalysis<'_>),
    ) -> Result<()> {
        let pool = || self.scratch.lock().unwrap_or_else(PoisonError::into_inner);
        let mut scratch = pool().pop().unwrap_or_default();
        let (key, is_huge) = self.analyze_again(document, &mut scratch, visit)?;
        if !is_huge {
            pool().push(scratch);
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
    pub(super) fn analyze_again(
        &self,
        document: DocId,
        (parse, text): &mut (ParseScratch, AnalysisScratch),
        visit: impl FnOnce(&TextAnalysis<'_>),
    ) -> Result<(u128, bool)> {
        let (inputs, documents, index) = self.locate_document(document);
        inputs.reread_row(documents.place_of(index), parse, |row| {
            let is_huge = row.text.len() > HUGE;
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

impl TextReanalysis for ReadCorpus<'_> {
    fn reanalyze_text(
        &self,
        document: DocId,
        visit: &mut dyn FnMut(&TextAnalysis<'_>),
    ) -> lookalike::Result<()> {
        self.reanalyze(document, Some(self.sketches.text_key(document)), visit)
            .map_err(lookalike::Error::text_error)
    }
}

/// Counts the text states of documents behind the known ones.
fn count_text_states(sketches: &DocumentSketches, known: usize) -> TextStateCounts {
    let mut states = TextStateCounts::default();
    for at in known..sketches.len() {
        count_state(&mut states, sketches.text_state(DocId(at as u32)));
    }
    states
}
