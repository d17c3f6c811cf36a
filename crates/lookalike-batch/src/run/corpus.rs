//! The documents of a run with their sketches and their total order.

use std::borrow::Cow;
use std::sync::{Mutex, PoisonError};

use lookalike::matching::{self, Corpus, Texts};
use lookalike::plan::Plan;
use lookalike::text::{Analysis, Analyzer, Scratch};
use lookalike::verify::Weighted;
use lookalike::{Cpu, DocId, Recipe, Sketcher, Sketches};

use super::audit::{Audit, AuditReport, Reported};
use super::documents::{Documents, Extra};
use super::forecast::Sampling;
use super::ids::{RepeatedIds, find_repeats, id_of, shared};
use super::progress::Progress;
use super::read::{Reader, Reject, analyze};
use super::settings::{RunInputs, Settings};
use crate::error::{Error, Result};
use crate::source::{BadRow, Inputs, ParseScratch, ReadOptions};

/// The opened inputs of a run: the documents of `--against`, and the documents to decide about.
pub(super) struct Opened {
    pub(super) against: Option<Inputs>,
    pub(super) inputs: Inputs,
    /// The extra fields that are read from the rows of each.
    extra_of_given: Extra,
    extra: Extra,
}

impl Opened {
    pub(super) fn new(paths: &RunInputs, settings: &Settings) -> Result<Self> {
        let options = |extra: &Extra| {
            let mut options: ReadOptions = settings.read.clone();
            options.fields.extra = extra.names.clone();
            options
        };
        let extra_of_given = Extra::of_given(settings);
        let against = if paths.against.is_empty() {
            None
        } else {
            Some(Inputs::open_source(
                &paths.against,
                &options(&extra_of_given),
            )?)
        };
        let extra = Extra::new(settings);
        Ok(Self {
            against,
            inputs: Inputs::open_source(&paths.documents, &options(&extra))?,
            extra_of_given,
            extra,
        })
    }
}

impl Opened {
    /// Returns the expected number of rows in all inputs, if it can be determined before they are read.
    pub(super) fn expected_rows(&self) -> Result<Option<f64>> {
        let against = self
            .against
            .as_ref()
            .map_or(Ok(Some(0.0)), Inputs::expected_rows)?;
        let rows = self.inputs.expected_rows()?;
        Ok(rows.zip(against).map(|(rows, against)| rows + against))
    }

    /// Returns the size on disk of all inputs in bytes, if it is known.
    pub(super) fn bytes(&self) -> Option<u64> {
        let against = self.against.as_ref().map_or(Some(0), Inputs::total_bytes)?;
        Some(self.inputs.total_bytes()? + against)
    }
}

/// Receiver of bad rows, the audit, and the selection of rows if not all are read.
type With<'a> = (&'a Reject<'a>, Option<Audit>, Option<&'a Sampling>);

/// All documents of a run after reading.
pub(super) struct ReadCorpus<'a> {
    opened: &'a Opened,
    pub(super) plan: &'a Plan,
    analyzer: Analyzer,
    against: Documents,
    pub(super) documents: Documents,
    pub(super) sketches: Sketches,
    order: Option<Vec<DocId>>,
    times: Vec<f64>,
    parts: Vec<u64>,
    width: Option<f64>,
    repeated_ids: Option<RepeatedIds>,
    audit: Option<Audit>,
    scratch: Mutex<Vec<(ParseScratch, Scratch)>>,
    /// Held while the features of a huge text are made.
    huge: Mutex<()>,
}

/// Bytes from which a text is huge. Only one thread at a time makes features of huge texts, because
/// that takes several times the memory of the text.
const HUGE: usize = 16 << 20;

impl<'a> ReadCorpus<'a> {
    /// Reads all inputs. `reject` receives all bad rows in order.
    pub(super) fn read(
        opened: &'a Opened,
        settings: &Settings,
        plan: &'a Plan,
        reject: &Reject<'_>,
        progress: &dyn Progress,
    ) -> Result<Self> {
        let audit = Audit::of(settings, plan)?;
        if let Some(audit) = &audit
            && let Some(rows) = opened.expected_rows()?
        {
            audit.drawing().expect(rows);
        }
        Self::read_with(opened, settings, plan, (reject, audit, None), progress)
    }

    /// Reads a sample of the rows of all inputs.
    pub(super) fn sample(
        opened: &'a Opened,
        settings: &Settings,
        plan: &'a Plan,
        sampling: &Sampling,
        progress: &dyn Progress,
    ) -> Result<Self> {
        let reject = |_: &Inputs, _: &[BadRow]| Ok(());
        let with: With<'_> = (&reject, None, Some(sampling));
        Self::read_with(opened, settings, plan, with, progress)
    }

    fn read_with(
        opened: &'a Opened,
        settings: &Settings,
        plan: &'a Plan,
        (reject, audit, sampling): With<'_>,
        progress: &dyn Progress,
    ) -> Result<Self> {
        let bytes = opened.bytes();
        let sketcher = Sketcher::new(&settings.recipe, plan, Cpu::best());
        let analyzer = Analyzer::new(&settings.recipe).with_extras(sketcher.extras());
        let mut reader = Reader {
            settings,
            analyzer: analyzer.clone(),
            sketcher,
            extra: opened.extra_of_given.clone(),
            reject,
            audit: audit.as_ref().map(|audit| (audit, bytes)),
            sampling,
        };
        let mut against = Documents::with_sketches(reader.sketches());
        let mut repeated_ids = None;
        if let Some(inputs) = &opened.against {
            against = reader.read(inputs, against, progress)?;
            if sampling.is_none() {
                repeated_ids = find_repeats(inputs, &against)?;
            }
        }
        if let Some(audit) = &audit {
            audit.drawing().begin_inputs();
        }
        reader.extra = opened.extra.clone();
        let base = Documents::with_sketches(std::mem::take(&mut against.sketches));
        let mut documents = reader.read(&opened.inputs, base, progress)?;
        if sampling.is_none() {
            let repeated = find_repeats(&opened.inputs, &documents)?;
            repeated_ids = RepeatedIds::join(repeated, repeated_ids);
            documents.check_fields(&opened.inputs, &opened.extra, settings)?;
            opened.inputs.refuse_absent_fields()?;
        }
        let mut times = std::mem::take(&mut against.times);
        times.append(&mut documents.times);
        let mut parts = std::mem::take(&mut against.parts);
        parts.append(&mut documents.parts);
        Ok(Self {
            order: documents.order(&settings.keep, against.len()),
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
        shared(&self.against, &self.documents)
    }

    /// Returns how many documents have the id of an earlier document of the same inputs.
    pub(super) fn repeated_ids(&self) -> u64 {
        self.repeated_ids.as_ref().map_or(0, |it| it.documents)
    }

    /// Reports ids that several documents have. In a strict run they are an error.
    pub(super) fn tell_repeated_ids(
        &self,
        settings: &Settings,
        progress: &dyn Progress,
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
    pub(super) fn refuse_repeated_ids(&self, settings: &Settings) -> Result<()> {
        match &self.repeated_ids {
            Some(repeated) => Err(repeated.refuse(settings)),
            None => Ok(()),
        }
    }

    /// Returns the name of a document's input and the row number within it, from 1.
    pub(super) fn source_of(&self, document: DocId) -> (&str, u64) {
        let (inputs, documents, index) = self.home(document);
        inputs.source_row(documents.place(index), documents.number(index))
    }

    /// Returns the number of documents of `--against`.
    pub(super) fn given(&self) -> usize {
        self.against.len()
    }

    /// Returns the number of all documents, including those of `--against`.
    pub(super) fn len(&self) -> usize {
        self.given() + self.documents.len()
    }

    /// Returns the bytes of memory of the documents' properties and sketches.
    pub(super) fn bytes(&self) -> u64 {
        let of = |documents: &Documents| documents.memory();
        self.sketches.bytes() + of(&self.against) + of(&self.documents)
    }

    /// Returns the corpus as the engine takes it.
    pub(super) fn corpus(&self) -> Corpus<'_> {
        Corpus {
            plan: self.plan,
            sketches: &self.sketches,
            texts: self,
            order: self.order.as_deref(),
            parts: (!self.parts.is_empty()).then_some(&self.parts),
            window: self.width.map(|width| matching::Window {
                times: &self.times,
                width,
            }),
            given: self.given(),
        }
    }

    /// Returns the report of the audit, if there is one; see [`Audit::report`].
    pub(super) fn audited(
        &self,
        reported: Reported,
        kept: Option<&dyn Fn(DocId) -> bool>,
    ) -> Result<Option<AuditReport>> {
        let audit = self.audit.as_ref();
        audit
            .map(|audit| audit.report(self, reported, kept))
            .transpose()
    }

    /// Returns the recipe of the run.
    pub(super) fn recipe(&self) -> &Recipe {
        self.analyzer.recipe()
    }

    /// Returns the document that was read from a row of the inputs.
    pub(super) fn document_of_row(&self, number: u64) -> Option<DocId> {
        let index = self.documents.index_of(number)?;
        Some(DocId((self.given() + index) as u32))
    }

    /// Returns the document that was read from a row of `--against`.
    pub(super) fn given_of_row(&self, number: u64) -> Option<DocId> {
        self.against
            .index_of(number)
            .map(|index| DocId(index as u32))
    }

    /// Reads the text of a document again. Returns `None` if its features were given instead.
    pub(super) fn text(&self, document: DocId, parse: &mut ParseScratch) -> Result<Option<String>> {
        let (inputs, documents, index) = self.home(document);
        inputs.reread(documents.place(index), parse, |row| {
            row.features.is_none().then(|| row.text.to_owned())
        })
    }

    /// Returns the inputs and the documents to which a document belongs, and its index there.
    fn home(&self, document: DocId) -> (&Inputs, &Documents, usize) {
        match (
            document.index().checked_sub(self.given()),
            &self.opened.against,
        ) {
            (None, Some(against)) => (against, &self.against, document.index()),
            (at, _) => (&self.opened.inputs, &self.documents, at.unwrap_or_default()),
        }
    }

    /// Returns the id of a document.
    pub(super) fn id(&self, document: DocId) -> Result<Cow<'_, str>> {
        let (inputs, documents, index) = self.home(document);
        id_of(inputs, documents, index)
    }

    /// Reads a document again and calls `visit` with its analysis.
    fn again(&self, document: DocId, visit: impl FnOnce(&Analysis<'_>)) -> Result<()> {
        let pool = || self.scratch.lock().unwrap_or_else(PoisonError::into_inner);
        let mut scratch = pool().pop().unwrap_or_default();
        let (inputs, documents, index) = self.home(document);
        let (parse, text) = (&mut scratch.0, &mut scratch.1);
        let (key, is_huge) = inputs.reread(documents.place(index), parse, |row| {
            let is_huge = row.text.len() > HUGE;
            let one = || self.huge.lock().unwrap_or_else(PoisonError::into_inner);
            let _one = is_huge.then(one);
            let analysis = analyze(&self.analyzer, row, text);
            visit(&analysis);
            let key = analysis.key;
            if is_huge {
                *text = Scratch::default();
            }
            (key, is_huge)
        })?;
        if !is_huge {
            pool().push(scratch);
        }
        if key != self.sketches.key(document) {
            return Err(Error::input(format!(
                "row {} changed during the run: copy the input first, and give the copy",
                documents.number(index)
            )));
        }
        Ok(())
    }
}

impl Texts for ReadCorpus<'_> {
    fn features(&self, document: DocId, into: &mut Vec<u64>) -> lookalike::Result<()> {
        self.again(document, |analysis| analysis.features(into))
            .map_err(lookalike::Error::text)
    }

    fn weighted(&self, document: DocId, into: &mut Vec<Weighted>) -> lookalike::Result<()> {
        self.again(document, |analysis| analysis.weighted_features(into))
            .map_err(lookalike::Error::text)
    }

    fn characters(&self, document: DocId, into: &mut Vec<u32>) -> lookalike::Result<()> {
        self.again(document, |analysis| {
            into.extend_from_slice(analysis.characters())
        })
        .map_err(lookalike::Error::text)
    }

    fn words(&self, document: DocId, into: &mut Vec<u64>) -> lookalike::Result<()> {
        self.again(document, |analysis| {
            into.extend_from_slice(analysis.tokens())
        })
        .map_err(lookalike::Error::text)
    }
}
