//! Dedup runs that several processes share, without a coordinator.

use lookalike::byte_reader::ByteReader;
use lookalike::dedup::{DedupOutcome, DocumentRemoval};
use lookalike_io::error::{Error, Result};
use lookalike_io::sink::commit_all;

use super::{DecidedRun, DedupSession, DocumentVerdicts, check_outputs};
use crate::run::corpus_rows::OpenInputs;
use crate::run::out_of_core::{self, ShareLinks, plan_shared_run};
use crate::run::progress::{ProgressListener, RunStage};
use crate::run::read_corpus::{ReadCorpus, RunObservers, StoredReading};
use crate::run::rejected::RejectedRows;
use crate::run::report::BadRowTally;
use crate::run::settings::{DedupOutputs, RunInputs, RunSettings};
use crate::run::summary::DedupSummary;
use crate::run::work_directory::{
    self, RunShards, ShardNumber, ShardStage, ShardSteps, WorkSettings,
};

/// The result of a process in a run that several share.
#[derive(Debug)]
pub enum ShardOutcome {
    /// It was the last one, and wrote the outputs.
    Finished(Box<DedupSummary>),
    /// It has done its share of a stage that others have not done yet.
    Waiting {
        /// The stage.
        stage: ShardStage,
        /// The shards that have not done their share of it, ascending.
        missing: Vec<u32>,
    },
    /// Everything is decided, and another process writes the outputs at this moment.
    WrittenByAnother,
}

/// Does the share of one of several processes in a dedup run, as far as the shares of the others allow it: reads a share
/// of the inputs; once all are read, links a share of the keys; once all are linked, decides a share of the components;
/// once all is decided, and if each input has its own output, writes the outputs of its share of the inputs. The process
/// that finds everything done writes all other outputs. They are those of [`run_dedup`](super::run_dedup). The shards may come in any order, at the same time, more than once, and from any
/// machines that see the directory and the inputs under the same names. A process that was killed is continued by the
/// same call.
///
/// # Errors
/// As [`run_resumable_dedup`](super::run_resumable_dedup); also if the inputs are document files, if the run was divided
/// into another number of shards, and if another process works on the same shard.
pub fn run_shard(
    inputs: &RunInputs,
    settings: &RunSettings,
    outputs: &DedupOutputs,
    (work, shard): (&WorkSettings, ShardNumber),
    progress: &dyn ProgressListener,
) -> Result<ShardOutcome> {
    crate::run::run_in_pool(settings.threads, || {
        let session = DedupSession::start_run(settings)?;
        session.do_share(inputs, outputs, (work, shard), progress)
    })
}

impl DedupSession<'_> {
    fn do_share(
        mut self,
        paths: &RunInputs,
        outputs: &DedupOutputs,
        (work, shard): (&WorkSettings, ShardNumber),
        progress: &dyn ProgressListener,
    ) -> Result<ShardOutcome> {
        check_shared_options(self.settings, outputs)?;
        let opened = OpenInputs::new(paths, self.settings)?;
        let sizes = plan_shared_run(paths, self.settings, &opened)?;
        check_outputs(&opened, outputs)?;
        let shards = RunShards::open_shard(work, self.settings, shard, &opened)?;
        let waiting = |stage: ShardStage| -> Result<Option<ShardOutcome>> {
            let missing = shards.find_missing(stage)?;
            let is_open = !missing.is_empty();
            Ok(is_open.then_some(ShardOutcome::Waiting { stage, missing }))
        };
        if !shards.has_done(ShardStage::Read) {
            let settings = settings_of_share(self.settings, &opened)?;
            let own = OpenInputs::new(&shards.own_inputs(&opened), &settings)?;
            let target = (shards.own_directory(), sizes);
            ReadCorpus::read_share(&own, &settings, &self.plan, target, progress)?;
        }
        if let Some(outcome) = waiting(ShardStage::Read)? {
            return Ok(outcome);
        }
        let steps = shards.load_steps(&opened)?;
        let plan = self.plan;
        let rejected = RejectedRows::create_output(outputs.rejected.as_ref())?;
        let bad_rows = BadRowTally::default();
        let reject = |inputs: &_, rows: &_| {
            bad_rows.add_rows(rows);
            rejected.push_rows(inputs, rows)
        };
        // Blocks are read from the inputs once more, because rows are compared and copied later.
        let again = OpenInputs::new(paths, self.settings)?;
        let observers = RunObservers {
            reject: &reject,
            stored: StoredReading::Shards(&steps),
            spill: Some(sizes),
        };
        let mut corpus =
            ReadCorpus::read_for_run(&again, self.settings, &plan, observers, progress)?;
        corpus.tell_repeated_ids(self.settings, progress)?;
        self.stage_done("read");
        if !shards.has_done(ShardStage::Link) {
            progress.begin_stage(RunStage::Candidates, None);
            let links = corpus.link_share(shard)?;
            shards.store_share(ShardStage::Link, links.encode_links())?;
        }
        if let Some(outcome) = waiting(ShardStage::Link)? {
            return Ok(outcome);
        }
        if !shards.has_done(ShardStage::Decide) {
            let removals = decide_share(&mut corpus, (&shards, &opened), shard, progress)?;
            shards.store_share(ShardStage::Decide, encode_removals(&removals))?;
        }
        if let Some(outcome) = waiting(ShardStage::Decide)? {
            return Ok(outcome);
        }
        let outcome = join_removals(&corpus, &shards.load_steps(&opened)?)?;
        self.stage_done("match");
        let mut outputs = outputs.clone();
        if let Some(kept) = outputs.kept.take_if(|kept| kept.mirrors_inputs()) {
            let written = DedupOutputs {
                kept: Some(kept.clone()),
                annotate: outputs.annotate,
                ..DedupOutputs::default()
            };
            let is_open = |missing: &[u32]| missing.contains(&shard.index);
            if is_open(&shards.find_unwritten(&kept, &opened)?) {
                let verdicts = DocumentVerdicts::new(&corpus, &outcome, None);
                let files = (None, Some(shards.own_files()));
                commit_all(verdicts.write_kept(
                    &again,
                    &written,
                    files,
                    self.settings,
                    progress,
                )?)?;
                shards.store_written(&kept)?;
            }
            let missing = shards.find_unwritten(&kept, &opened)?;
            if !missing.is_empty() {
                let stage = ShardStage::Write;
                return Ok(ShardOutcome::Waiting { stage, missing });
            }
        }
        let Some(directory) = shards.open_outputs(&opened)? else {
            return Ok(ShardOutcome::WrittenByAnother);
        };
        let is_written = directory.has_written(&outputs);
        let nothing = DedupOutputs::default();
        let wanted = &outputs;
        let outputs = if is_written { &nothing } else { &outputs };
        let decided = DecidedRun {
            corpus: &corpus,
            opened: &again,
            outcome: &outcome,
            components: None,
            prepared: None,
            bad_rows: &bad_rows,
        };
        let rejected = match is_written {
            true => RejectedRows::create_output(None)?,
            false => rejected,
        };
        let (summary, staged) = self.stage_results(decided, rejected, outputs, progress)?;
        commit_all(staged)?;
        directory.finish_run(work_directory::list_outputs(wanted).unwrap_or_default())?;
        let summary = self.finish_summary(summary);
        Ok(ShardOutcome::Finished(Box::new(summary)))
    }
}

/// Refuses what one process has to do alone.
fn check_shared_options(settings: &RunSettings, outputs: &DedupOutputs) -> Result<()> {
    let spelling = &settings.spelling;
    let refused = [
        ("audit", settings.audit.is_some()),
        ("decisions", !settings.decisions.is_empty()),
        ("passages", outputs.passages.is_some()),
        ("components", outputs.components),
    ];
    match refused.into_iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => Err(Error::usage_error(format!(
            "{} is not divided among shards: leave it out, or run without {}",
            spelling.spell_option(option),
            spelling.spell_option("shard")
        ))),
        None => Ok(()),
    }
}

/// Returns the settings with which a shard reads its inputs. Whether rows have ids is decided by the first input of the
/// whole run.
fn settings_of_share(settings: &RunSettings, opened: &OpenInputs) -> Result<RunSettings> {
    let mut of_share = settings.clone();
    if let Some(block) = opened.inputs.next_block()? {
        opened.inputs.recycle_block(block);
        of_share.read.fields.id = opened.inputs.id_field();
    }
    Ok(of_share)
}

fn decide_share(
    corpus: &mut ReadCorpus<'_>,
    (shards, opened): (&RunShards<'_>, &OpenInputs),
    shard: ShardNumber,
    progress: &dyn ProgressListener,
) -> Result<Vec<DocumentRemoval>> {
    let nodes = corpus.node_count();
    let steps = shards.load_steps(opened)?;
    let decode = |bytes: &[u8]| ShareLinks::decode_links(bytes, nodes);
    let links = steps
        .iter()
        .map(|shard| shard.read_share(ShardStage::Link, decode));
    let links = links.collect::<Result<Vec<_>>>()?;
    corpus.group_share((&links, shard))?;
    drop(links);
    let total = corpus.len() as u64;
    let deciding = |done: usize| {
        if done == 0 {
            progress.begin_stage(RunStage::Decide, Some(total));
        }
        progress.advance_stage(done as u64);
    };
    let Some(grouping) = corpus.grouping() else {
        return Ok(Vec::new());
    };
    let (outcome, _) = out_of_core::decide_groups(corpus, grouping, (&[], false), &deciding)?;
    Ok(outcome.removals)
}

fn encode_removals(removals: &[DocumentRemoval]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(DocumentRemoval::BYTES * removals.len());
    removals
        .iter()
        .for_each(|removal| removal.encode_removal(&mut bytes));
    bytes
}

/// Returns the removals of all shards, in the total order.
fn join_removals(corpus: &ReadCorpus<'_>, steps: &[ShardSteps]) -> Result<DedupOutcome> {
    let documents = corpus.len();
    let decode = |bytes: &[u8]| {
        let mut reader = ByteReader::new(bytes);
        let mut removals = Vec::with_capacity(bytes.len() / DocumentRemoval::BYTES);
        while !reader.is_at_end() {
            let removal = DocumentRemoval::decode_removal(&mut reader)?;
            let highest = removal.document.index().max(removal.kept.with.index());
            removals.push(Some(removal).filter(|_| highest < documents)?);
        }
        Some(removals)
    };
    let mut removals = Vec::new();
    for shard in steps {
        removals.extend(shard.read_share(ShardStage::Decide, decode)?);
    }
    corpus.sort_removals(&mut removals);
    Ok(DedupOutcome { removals })
}
