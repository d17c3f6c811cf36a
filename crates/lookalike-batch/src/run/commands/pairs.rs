//! The pairs run: finds all pairs of near-duplicates.

use std::time::Instant;

use lookalike::DocId;
use lookalike::dedup::MatchingPair;
use lookalike::plan::MatchPlan;
use lookalike_io::error::{Error, ErrorKind, Result};
use lookalike_io::sink::{
    OutputTarget, StagedOutput, TableCell, TableColumn, TableWriter, check_output, commit_all,
};
use rayon::prelude::*;

use crate::run::commands::bad_row_outputs::BadRowOutputs;
use crate::run::commands::output_settings::PairsOutputs;
use crate::run::commands::summary::{PairsSummary, RunSummary};
use crate::run::execution::audit::report::ReportedPairs;
use crate::run::execution::form_learning;
use crate::run::execution::memory_measuring::{RunMemoryNeeds, plan_spilling};
use crate::run::execution::run_corpus::RunCorpus;
use crate::run::execution::run_directories::RunDirectories;
use crate::run::execution::run_stages::{LinkedRun, RunStorage, SketchedRun};
use crate::run::progress::{ProgressListener, RunStage};
use crate::run::reading::open_inputs::OpenInputs;
use crate::run::report::band_sample::{PairSampler, SimilarityBand};
use crate::run::report::match_report::{MatchReportInputs, write_match_report};
use crate::run::report::pair_sample::PairSample;
use crate::run::report::similarity_histogram::SimilarityHistogram;
use crate::run::report::summary_to_json;
use crate::run::settings::{FormLearning, RunInputs, RunSettings};

/// Finds all pairs of near-duplicates and writes them ordered by the position of the earlier document,
/// then of the later one. With documents to compare against, each pair has one of these and one other
/// document. [`PairsOutputs::copies`] selects the pairs of equal texts.
///
/// # Errors
/// If something cannot be read or written, or if the settings contradict each other. The outputs are
/// then unchanged.
pub fn find_pairs(
    inputs: &RunInputs,
    settings: &RunSettings,
    outputs: &PairsOutputs,
    progress: &dyn ProgressListener,
) -> Result<PairsSummary> {
    crate::threads::run_in_pool(settings.threads, || {
        run_pairs(inputs, settings, outputs, progress)
    })
}

fn run_pairs(
    paths: &RunInputs,
    settings: &RunSettings,
    outputs: &PairsOutputs,
    progress: &dyn ProgressListener,
) -> Result<PairsSummary> {
    let started = Instant::now();
    let directories = RunDirectories::default();
    let needs_all = settings.audit.map(|_| "audit");
    let needs = RunMemoryNeeds {
        needs_all: needs_all.or(outputs.apart.then_some("apart")),
        ..RunMemoryNeeds::default()
    };
    let check = || check_before_learning(paths, settings, outputs);
    let resolved =
        form_learning::resolve_forms(paths, settings, directories, needs, &check, progress)?;
    let settings = &resolved.settings;
    refuse_apart(paths, settings, outputs)?;
    let plan = MatchPlan::new(&settings.recipe, settings.matching)?;
    let (plan_with_forms, plan_without_forms) = (plan.with_forms(), plan.without_forms());
    let spill = plan_spilling(paths, settings, needs)?;
    let opened = OpenInputs::new(paths, settings)?;
    check_outputs(&opened, outputs)?;
    let bad_rows = BadRowOutputs::create_output(outputs.rejected.as_ref())?;
    let reject = |inputs: &_, rows: &_| bad_rows.push_rows(inputs, rows);
    let storage = RunStorage { work: None, spill };
    let sketched = SketchedRun::read(&opened, settings, &plan, storage, &reject, progress)?;
    sketched.corpus.report_repeated_ids(settings, progress)?;
    progress.begin_stage(RunStage::Candidates, None);
    let mut linked = sketched.link(false)?;
    if settings.form_learning == FormLearning::Always {
        form_learning::learn_and_apply_forms(&mut linked, settings, &plan_with_forms, progress)?;
    }
    let forms = linked.form_summary(None);
    if outputs.apart {
        linked.corpus.set_forms_aside(&plan_without_forms);
    }
    let found = list_pairs(&linked, outputs, progress);
    let (rejected, rejected_rows, bad_rows) = bad_rows.prepare_output()?;
    let found = match found {
        Ok(found) => found,
        // The reader of the pairs has closed the pipe, but the rejected rows are still written.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {
            commit_all(rejected_rows)?;
            return Err(error);
        }
        Err(error) => return Err(error),
    };
    let ListedPairs {
        table,
        reported,
        report_sample,
        ..
    } = found;
    let mut summary = PairsSummary {
        documents: linked.corpus.documents.len() as u64,
        pairs: found.count,
        apart: outputs.apart.then_some(found.apart),
        equal_texts: found.equal_texts as u64,
        repeated_ids: linked.corpus.repeated_ids(),
        run: RunSummary {
            seconds: started.elapsed().as_secs_f64(),
            ..RunSummary::new(&linked.corpus, &plan, rejected)
        },
        histogram: found.histogram,
        sample: found.bands,
        forms,
        audit: linked.audit_report(reported, None)?,
        spilled: linked.spilled_summary(),
    };
    let report = outputs.report.as_ref().zip(report_sample);
    let report = report.map(|(output, sample)| {
        let (total, similarities, removals) = sample.into_parts();
        let inputs = MatchReportInputs {
            kind: "pairs",
            corpus: &linked.corpus,
            removals: &removals,
            removed_without_forms: linked.removed_without_forms.as_deref().unwrap_or_default(),
            settings,
            plan: &plan,
            bad_rows: &bad_rows,
            summary: summary_to_json(&summary),
            counted: Some((total, similarities)),
        };
        write_match_report(&inputs, output)
    });
    let has_no_report = report.is_none();
    let outputs = table.into_iter().chain(rejected_rows);
    commit_all(outputs.chain(report.transpose()?))?;
    if has_no_report {
        summary.run.seconds = started.elapsed().as_secs_f64();
    }
    Ok(summary)
}

/// Checks what can be checked before forms are learned in a pass of their own.
///
/// # Errors
/// If an output is an input, or if the output of `apart` needs all documents in memory.
fn check_before_learning(
    paths: &RunInputs,
    settings: &RunSettings,
    outputs: &PairsOutputs,
) -> Result<()> {
    if paths.documents.is_read_once() || paths.against.is_read_once() {
        return Ok(());
    }
    refuse_apart(paths, settings, outputs)?;
    check_outputs(&OpenInputs::new(paths, settings)?, outputs)
}

/// Refuses to list what forms keep apart if there are no forms, or if the run is out of core.
fn refuse_apart(paths: &RunInputs, settings: &RunSettings, outputs: &PairsOutputs) -> Result<()> {
    if !outputs.apart {
        return Ok(());
    }
    if settings.form_learning == FormLearning::Never && settings.recipe.forms.is_none() {
        let spelling = settings.spelling;
        return Err(Error::usage_error(format!(
            "{} lists the pairs that forms keep apart, and this run has no forms: give {}",
            spelling.spell_option("apart"),
            spelling.spell_option("forms")
        )));
    }
    let needs = RunMemoryNeeds {
        needs_all: Some("apart"),
        ..RunMemoryNeeds::default()
    };
    plan_spilling(paths, settings, needs).map(|_| ())
}

fn check_outputs(opened: &OpenInputs, outputs: &PairsOutputs) -> Result<()> {
    let report = outputs.report.as_ref().map(|report| &report.target);
    let targets = [outputs.pairs.as_ref(), outputs.rejected.as_ref(), report];
    let mut targets = targets.into_iter().flatten();
    targets.try_for_each(|target| check_output(target, &opened.documents))
}

/// The pairs of a run: their staged table, their counts and their samples.
#[derive(Default)]
struct ListedPairs {
    count: u64,
    /// Similar pairs that forms keep apart, if they are listed.
    apart: u64,
    /// Documents whose text equals that of an earlier one.
    equal_texts: usize,
    table: Option<StagedOutput>,
    histogram: SimilarityHistogram,
    /// Pairs of each band of similarity, if they are wanted.
    bands: Option<Vec<SimilarityBand>>,
    /// Pairs for the audit.
    reported: ReportedPairs,
    /// Pairs for the report, if it is wanted.
    report_sample: Option<PairSample>,
}

/// Finds all pairs, and writes, counts and samples them.
fn list_pairs(
    linked: &LinkedRun<'_>,
    outputs: &PairsOutputs,
    progress: &dyn ProgressListener,
) -> Result<ListedPairs> {
    let corpus = &linked.corpus;
    let mut listing = PairListing::new(corpus, outputs)?;
    let total = corpus.len() as u64;
    let report_decided = |decided: usize| {
        if decided == 0 {
            progress.begin_stage(RunStage::Decide, Some(total));
        }
        progress.advance_stage(decided as u64);
    };
    let equal_texts = linked.find_pairs(
        outputs.copies,
        |pair| listing.accept_pair(pair),
        &report_decided,
    )?;
    listing.compare_pending()?;
    listing.finish_listing(equal_texts)
}

/// Number of pairs of which the contents are compared at a time.
const PAIRS_AT_ONCE: usize = 256;

/// The form of a similar pair, and the reason that keeps it apart.
#[derive(Clone, Copy)]
struct PairContents<'a> {
    /// Name of the form that both documents have.
    form: Option<&'a str>,
    /// Name of the reason why they do not match.
    apart: Option<&'static str>,
}

/// The pairs of a run as they are found: written, counted and sampled.
struct PairListing<'a> {
    corpus: &'a RunCorpus<'a>,
    found: ListedPairs,
    table: Option<PairTable<'a>>,
    sampler: Option<PairSampler>,
    /// Similar pairs whose contents are still to be compared, if those that forms keep apart are listed.
    pending: Option<Vec<MatchingPair>>,
}

impl<'a> PairListing<'a> {
    fn new(corpus: &'a RunCorpus<'a>, outputs: &PairsOutputs) -> Result<Self> {
        let create = |output| PairTable::create_table(output, corpus, outputs.apart);
        let found = ListedPairs {
            report_sample: outputs.report.as_ref().map(|_| PairSample::default()),
            ..ListedPairs::default()
        };
        Ok(Self {
            corpus,
            found,
            table: outputs.pairs.as_ref().map(create).transpose()?,
            sampler: outputs.sample.map(PairSampler::new),
            pending: outputs.apart.then(Vec::new),
        })
    }

    fn accept_pair(&mut self, pair: MatchingPair) -> Result<()> {
        let Some(pending) = &mut self.pending else {
            return self.list_pair(pair, None);
        };
        pending.push(pair);
        if pending.len() < PAIRS_AT_ONCE {
            return Ok(());
        }
        self.compare_pending()
    }

    /// Compares the contents of pending pairs, and lists these.
    fn compare_pending(&mut self) -> Result<()> {
        let Some(pending) = &mut self.pending else {
            return Ok(());
        };
        let (corpus, pairs) = (self.corpus, std::mem::take(pending));
        let mut documents: Vec<DocId> = pairs.iter().flat_map(|pair| [pair.a, pair.b]).collect();
        documents.sort_unstable();
        documents.dedup();
        let read = documents.par_iter();
        let read = read.map(|&document| corpus.read_contents(document));
        let contents = read.collect::<Result<Vec<_>>>()?;
        let contents_of = |document: DocId| {
            let at = documents.partition_point(|&other| other < document);
            &contents[at]
        };
        let compared = pairs.par_iter().map(|pair| {
            let ((in_a, form), (in_b, form_of_b)) = (contents_of(pair.a), contents_of(pair.b));
            PairContents {
                form: form.filter(|_| form == form_of_b),
                apart: in_a.name_difference(in_b),
            }
        });
        let compared: Vec<PairContents<'a>> = compared.collect();
        let mut compared = pairs.into_iter().zip(compared);
        compared.try_for_each(|(pair, contents)| self.list_pair(pair, Some(contents)))
    }

    fn list_pair(&mut self, pair: MatchingPair, contents: Option<PairContents<'a>>) -> Result<()> {
        if contents.is_some_and(|contents| contents.apart.is_some()) {
            self.found.apart += 1;
        } else {
            self.found.offer_match(&pair);
            if let Some(sampler) = &mut self.sampler {
                sampler.offer_pair(pair);
            }
        }
        let table = self.table.as_mut();
        table.map_or(Ok(()), |table| table.push_pair(&pair, contents))
    }

    fn finish_listing(self, equal_texts: usize) -> Result<ListedPairs> {
        let (corpus, histogram) = (self.corpus, &self.found.histogram);
        let threshold = corpus.plan.threshold().get();
        let describe = |sampler: PairSampler| sampler.describe_bands(histogram, threshold, corpus);
        let table = self.table.map(PairTable::prepare_table).transpose()?;
        let bands = self.sampler.map(describe).transpose()?;
        Ok(ListedPairs {
            equal_texts,
            table,
            bands,
            ..self.found
        })
    }
}

impl ListedPairs {
    /// Counts a matching pair, and offers it to the report and the audit.
    fn offer_match(&mut self, pair: &MatchingPair) {
        self.count += 1;
        if let Some(sample) = &mut self.report_sample {
            sample.offer_pair(pair);
        }
        self.reported.offer_pair(pair.a, pair.b);
        self.histogram.add_similarity(pair.similarity);
    }
}

/// The table of pairs.
struct PairTable<'a> {
    corpus: &'a RunCorpus<'a>,
    table: TableWriter,
    /// `true` if the form of each pair is listed.
    has_forms: bool,
    /// The first document of the last pair and its form. Pairs come in the order of their first documents.
    last_form: Option<(DocId, Option<&'a str>)>,
}

impl<'a> PairTable<'a> {
    const PAIR_COLUMNS: [TableColumn<'static>; 7] = [
        TableColumn::Text("a"),
        TableColumn::Text("b"),
        TableColumn::Number("similarity"),
        TableColumn::Text("a_source"),
        TableColumn::Integer("a_row"),
        TableColumn::Text("b_source"),
        TableColumn::Integer("b_row"),
    ];

    fn create_table(
        output: &OutputTarget,
        corpus: &'a RunCorpus<'a>,
        lists_apart: bool,
    ) -> Result<Self> {
        let inputs = Some(&corpus.opened.documents);
        let mut columns = Self::PAIR_COLUMNS.to_vec();
        let has_forms = corpus.plan.compares_forms() || lists_apart;
        columns.extend(has_forms.then_some(TableColumn::Text("form")));
        columns.extend(lists_apart.then_some(TableColumn::Text("apart")));
        let table = TableWriter::create_table(output, &columns, inputs)?;
        Ok(Self {
            corpus,
            table,
            has_forms,
            last_form: None,
        })
    }

    fn push_pair(&mut self, pair: &MatchingPair, contents: Option<PairContents<'a>>) -> Result<()> {
        let corpus = self.corpus;
        let (a, b) = (corpus.document_id(pair.a)?, corpus.document_id(pair.b)?);
        let (a_source, a_row) = corpus.source_and_row(pair.a);
        let (b_source, b_row) = corpus.source_and_row(pair.b);
        let mut cells = vec![
            TableCell::Text(&a),
            TableCell::Text(&b),
            TableCell::Number(pair.similarity.get()),
            TableCell::Text(a_source),
            TableCell::Integer(a_row),
            TableCell::Text(b_source),
            TableCell::Integer(b_row),
        ];
        let text_or_null = |text: Option<&'a str>| text.map_or(TableCell::Null, TableCell::Text);
        if let Some(contents) = contents {
            cells.extend([contents.form, contents.apart].map(text_or_null));
        } else if self.has_forms {
            cells.push(text_or_null(self.find_form(pair.a)?));
        }
        self.table.push_row(&cells)
    }

    /// Returns the form of the first document of the next pair, which the second one has, too.
    fn find_form(&mut self, document: DocId) -> Result<Option<&'a str>> {
        if let Some((last, form)) = self.last_form
            && last == document
        {
            return Ok(form);
        }
        let form = self.corpus.find_form_name(document)?;
        self.last_form = Some((document, form));
        Ok(form)
    }

    fn prepare_table(self) -> Result<StagedOutput> {
        self.table.prepare_table()
    }
}
