//! The documents of a run with their sketches and their total order.

use std::borrow::Cow;
use std::sync::{Mutex, PoisonError};

use lookalike::dedup::{self, MatchCorpus, TextReanalysis};
use lookalike::plan::MatchPlan;
use lookalike::text::{AnalysisScratch, TextAnalysis, TextAnalyzer};
use lookalike::{Cpu, DocId, DocumentSketcher, DocumentSketches, Recipe};
use lookalike_io::error::{Error, Result};
use lookalike_io::source::{BadRow, InputSet, ParseScratch, ReadOptions};

use super::audit::{AuditReport, ReportedPairs, RunAudit};
use super::documents::{ExtraFields, ReadDocuments};
use super::forecast::RowSampling;
use super::ids::{RepeatedIds, count_shared_ids, find_repeats, read_id};
use super::progress::ProgressListener;
use super::row_reader::{CorpusReader, RejectRows, analyze_row};
use super::settings::{RunInputs, RunSettings};

/// The opened inputs of a run: the documents of `--against`, and the documents to decide about.
pub(super) struct OpenInputs {
    pub(super) against: Option<InputSet>,
    pub(super) inputs: InputSet,
    /// The extra fields that are read from the rows of each.
    extra_of_given: ExtraFields,
    extra: ExtraFields,
}

impl OpenInputs {
    pub(super) fn new(paths: &RunInputs, settings: &RunSettings) -> Result<Self> {
        let options = |extra: &ExtraFields| {
            let mut options: ReadOptions = settings.read.clone();
            options.fields.extra = extra.names.clone();
            options
        };
        let extra_of_given = ExtraFields::for_known(settings);
        let against = if paths.against.is_empty() {
            None
        } else {
            Some(InputSet::open_source(
                &paths.against,
                &options(&extra_of_given),
            )?)
        };
        let extra = ExtraFields::new(settings);
        Ok(Self {
            against,
            inputs: InputSet::open_source(&paths.documents, &options(&extra))?,
            extra_of_given,
            extra,
        })
    }
}

impl OpenInputs {
    /// Returns the expected number of rows in all inputs, if it can be determined before they are read.
    pub(super) fn expected_rows(&self) -> Result<Option<f64>> {
        let against = self
            .against
            .as_ref()
            .map_or(Ok(Some(0.0)), InputSet::expected_rows)?;
        let rows = self.inputs.expected_rows()?;
        Ok(rows.zip(against).map(|(rows, against)| rows + against))
    }

    /// Returns the size on disk of all inputs in bytes, if it is known.
    pub(super) fn size_on_disk(&self) -> Option<u64> {
        let against = self
            .against
            .as_ref()
            .map_or(Some(0), InputSet::total_bytes)?;
        Some(self.inputs.total_bytes()? + against)
    }
}

/// Receiver of bad rows, the audit, and the selection of rows if not all are read.
type ReadObservers<'a> = (
    &'a RejectRows<'a>,
    Option<RunAudit>,
    Option<&'a RowSampling>,
);

/// All documents of a run after reading.
pub(super) struct ReadCorpus<'a> {
    opened: &'a OpenInputs,
    pub(super) plan: &'a MatchPlan,
    analyzer: TextAnalyzer,
    against: ReadDocuments,
    pub(super) documents: ReadDocuments,
    pub(super) sketches: DocumentSketches,
    order: Option<Vec<DocId>>,
    times: Vec<f64>,
    parts: Vec<u64>,
    width: Option<f64>,
    repeated_ids: Option<RepeatedIds>,
    audit: Option<RunAudit>,
    scratch: Mutex<Vec<(ParseScratch, AnalysisScratch)>>,
    /// Held while the features of a huge text are made.
    huge: Mutex<()>,
}

/// Bytes from which a text is huge. Only one thread at a time makes features of huge texts, because
/// that takes several times the memory of the text.
const HUGE: usize = 16 << 20;

impl<'a> ReadCorpus<'a> {
    /// Reads all inputs. `reject` receives all bad rows in order.
    pub(super) fn read_all(
        opened: &'a OpenInputs,
        settings: &RunSettings,
        plan: &'a MatchPlan,
        reject: &RejectRows<'_>,
        progress: &dyn ProgressListener,
    ) -> Result<Self> {
        let audit = RunAudit::from_settings(settings, plan)?;
        if let Some(audit) = &audit
            && let Some(rows) = opened.expected_rows()?
        {
            audit.audit_drawing().expect_rows(rows);
        }
        Self::read_observed(opened, settings, plan, (reject, audit, None), progress)
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
        let with: ReadObservers<'_> = (&reject, None, Some(sampling));
        Self::read_observed(opened, settings, plan, with, progress)
    }

    fn read_observed(
        opened: &'a OpenInputs,
        settings: &RunSettings,
        plan: &'a MatchPlan,
        (reject, audit, sampling): ReadObservers<'_>,
        progress: &dyn ProgressListener,
    ) -> Result<Self> {
        let bytes = opened.size_on_disk();
        let sketcher = DocumentSketcher::new(&settings.recipe, plan, Cpu::detect_best());
        let analyzer = TextAnalyzer::new(&settings.recipe).with_extras(sketcher.required_extras());
        let mut reader = CorpusReader {
            settings,
            analyzer: analyzer.clone(),
            sketcher,
            extra: opened.extra_of_given.clone(),
            reject,
            audit: audit.as_ref().map(|audit| (audit, bytes)),
            sampling,
        };
        let mut against = ReadDocuments::with_sketches(reader.new_sketches());
        let mut repeated_ids = None;
        if let Some(inputs) = &opened.against {
            against = reader.read_inputs(inputs, against, progress)?;
            if sampling.is_none() {
                repeated_ids = find_repeats(inputs, &against)?;
            }
        }
        if let Some(audit) = &audit {
            audit.audit_drawing().begin_inputs();
        }
        reader.extra = opened.extra.clone();
        let base = ReadDocuments::with_sketches(std::mem::take(&mut against.sketches));
        let mut documents = reader.read_inputs(&opened.inputs, base, progress)?;
        if sampling.is_none() {
            let repeated = find_repeats(&opened.inputs, &documents)?;
            repeated_ids = RepeatedIds::add_counts(repeated, repeated_ids);
            documents.check_fields(&opened.inputs, &opened.extra, settings)?;
            opened.inputs.refuse_absent_fields()?;
        }
        let mut times = std::mem::take(&mut against.times);
        times.append(&mut documents.times);
        let mut parts = std::mem::take(&mut against.parts);
        parts.append(&mut documents.parts);
        Ok(Self {
            order: documents.total_order(&settings.keep, against.len()),
            times,
            parts,
            width: settings.window.as_ref().map(|window| window.seconds),
            repeated_ids,
            sketches: std::mem::take(&mut documents.sketches),
            opened,
            plan,
            analyzer,
            against,
            documents,
            audit,
            scratch: Mutex::default(),
            huge: Mutex::default(),
        })
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

    /// Returns the name of a document's input and the row number within it, from 1.
    pub(super) fn source_and_row(&self, document: DocId) -> (&str, u64) {
        let (inputs, documents, index) = self.locate_document(document);
        inputs.source_row(documents.place_of(index), documents.row_number(index))
    }

    /// Returns the number of documents of `--against`.
    pub(super) fn known_count(&self) -> usize {
        self.against.len()
    }

    /// Returns the number of all documents, including those of `--against`.
    pub(super) fn len(&self) -> usize {
        self.known_count() + self.documents.len()
    }

    /// Returns the bytes of memory of the documents' properties and sketches.
    pub(super) fn memory_bytes(&self) -> u64 {
        let of = |documents: &ReadDocuments| documents.memory_bytes();
        self.sketches.memory_bytes() + of(&self.against) + of(&self.documents)
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
            .map(|index| DocId(index as u32))
    }

    /// Reads the text of a document again. Returns `None` if its features were given instead.
    pub(super) fn reread_text(
        &self,
        document: DocId,
        parse: &mut ParseScratch,
    ) -> Result<Option<String>> {
        let (inputs, documents, index) = self.locate_document(document);
        inputs.reread_row(documents.place_of(index), parse, |row| {
            row.features.is_none().then(|| row.text.to_owned())
        })
    }

    /// Returns the inputs and the documents to which a document belongs, and its index there.
    fn locate_document(&self, document: DocId) -> (&InputSet, &ReadDocuments, usize) {
        match (
            document.index().checked_sub(self.known_count()),
            &self.opened.against,
        ) {
            (None, Some(against)) => (against, &self.against, document.index()),
            (at, _) => (&self.opened.inputs, &self.documents, at.unwrap_or_default()),
        }
    }

    /// Returns the id of a document.
    pub(super) fn document_id(&self, document: DocId) -> Result<Cow<'_, str>> {
        let (inputs, documents, index) = self.locate_document(document);
        read_id(inputs, documents, index)
    }

    /// Reads a document again and calls `visit` with its analysis.
    fn reanalyze(&self, document: DocId, visit: impl FnOnce(&TextAnalysis<'_>)) -> Result<()> {
        let pool = || self.scratch.lock().unwrap_or_else(PoisonError::into_inner);
        let mut scratch = pool().pop().unwrap_or_default();
        let (inputs, documents, index) = self.locate_document(document);
        let (parse, text) = (&mut scratch.0, &mut scratch.1);
        let (key, is_huge) = inputs.reread_row(documents.place_of(index), parse, |row| {
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
        })?;
        if !is_huge {
            pool().push(scratch);
        }
        if key != self.sketches.text_key(document) {
            return Err(Error::input_error(format!(
                "row {} changed during the run: copy the input first, and give the copy",
                documents.row_number(index)
            )));
        }
        Ok(())
    }
}

impl TextReanalysis for ReadCorpus<'_> {
    fn reanalyze_text(
        &self,
        document: DocId,
        visit: &mut dyn FnMut(&TextAnalysis<'_>),
    ) -> lookalike::Result<()> {
        self.reanalyze(document, visit)
            .map_err(lookalike::Error::text_error)
    }
}
