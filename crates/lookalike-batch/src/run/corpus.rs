//! The documents of a run, sketched and in their total order.

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

/// The inputs of a run, opened: those given as known, then those to be judged.
pub(super) struct Opened {
    pub(super) against: Option<Inputs>,
    pub(super) inputs: Inputs,
    /// What is wanted of the rows of both besides their texts.
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
    /// About how many rows all inputs have, if that can be known before they are read.
    pub(super) fn expected_rows(&self) -> Result<Option<f64>> {
        let against = self
            .against
            .as_ref()
            .map_or(Ok(Some(0.0)), Inputs::expected_rows)?;
        let rows = self.inputs.expected_rows()?;
        Ok(rows.zip(against).map(|(rows, against)| rows + against))
    }

    /// Bytes on disk of all inputs, if they are known.
    pub(super) fn bytes(&self) -> Option<u64> {
        let against = self.against.as_ref().map_or(Some(0), Inputs::total_bytes)?;
        Some(self.inputs.total_bytes()? + against)
    }
}

/// What is told of bad rows, the audit, and which rows are read if not all.
type With<'a> = (&'a Reject<'a>, Option<Audit>, Option<&'a Sampling>);

/// All documents of a run, read.
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
    /// Held by whoever makes features of a huge text.
    huge: Mutex<()>,
}

/// Bytes of a text whose features are made by one thread at a time, as they take several times the
/// room of the text.
const HUGE: usize = 16 << 20;

impl<'a> ReadCorpus<'a> {
    /// Reads all inputs. `reject` is told of all bad rows, in order.
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

    /// Reads some rows of all inputs.
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

    /// How many documents have the id of one that was given as known.
    pub(super) fn shared_ids(&self) -> u64 {
        shared(&self.against, &self.documents)
    }

    /// How many documents have the id of an earlier one of the same inputs.
    pub(super) fn repeated_ids(&self) -> u64 {
        self.repeated_ids.as_ref().map_or(0, |it| it.documents)
    }

    /// Tells of ids that several documents have, which a strict run refuses.
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

    /// The input of a document, and its row there, from 1.
    pub(super) fn source_of(&self, document: DocId) -> (&str, u64) {
        let (inputs, documents, index) = self.home(document);
        inputs.source_row(documents.place(index), documents.number(index))
    }

    /// How many documents were given as known.
    pub(super) fn given(&self) -> usize {
        self.against.len()
    }

    /// All documents, those given as known included.
    pub(super) fn len(&self) -> usize {
        self.given() + self.documents.len()
    }

    /// Bytes of memory of what is remembered of the documents.
    pub(super) fn bytes(&self) -> u64 {
        let of = |documents: &Documents| documents.memory();
        self.sketches.bytes() + of(&self.against) + of(&self.documents)
    }

    /// The engine's view.
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

    /// What the audit says, if one was asked for; see [`Audit::report`].
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

    /// The recipe of the run.
    pub(super) fn recipe(&self) -> &Recipe {
        self.analyzer.recipe()
    }

    /// The document that a row of the inputs became.
    pub(super) fn document_of_row(&self, number: u64) -> Option<DocId> {
        let index = self.documents.index_of(number)?;
        Some(DocId((self.given() + index) as u32))
    }

    /// The document that a row of what was given as known became.
    pub(super) fn given_of_row(&self, number: u64) -> Option<DocId> {
        self.against
            .index_of(number)
            .map(|index| DocId(index as u32))
    }

    /// Reads the text of a document again; None where its features were given.
    pub(super) fn text(&self, document: DocId, parse: &mut ParseScratch) -> Result<Option<String>> {
        let (inputs, documents, index) = self.home(document);
        inputs.reread(documents.place(index), parse, |row| {
            row.features.is_none().then(|| row.text.to_owned())
        })
    }

    /// Where a document comes from.
    fn home(&self, document: DocId) -> (&Inputs, &Documents, usize) {
        match (
            document.index().checked_sub(self.given()),
            &self.opened.against,
        ) {
            (None, Some(against)) => (against, &self.against, document.index()),
            (at, _) => (&self.opened.inputs, &self.documents, at.unwrap_or_default()),
        }
    }

    /// The id of a document.
    pub(super) fn id(&self, document: DocId) -> Result<Cow<'_, str>> {
        let (inputs, documents, index) = self.home(document);
        id_of(inputs, documents, index)
    }

    /// Reads a document again and calls back with its analysis.
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
                "row {} has changed while the run was under way: let the input rest, or copy it \
                 first",
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
