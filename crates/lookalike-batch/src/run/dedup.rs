//! The dedup run: removes near-duplicates.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Instant;

use lookalike::matching::{self, Outcome, Route};
use lookalike::plan::Plan;
use lookalike::text::State;
use lookalike::{DocId, RecipeId, Threshold};

use super::audit::{AuditReport, Reported};
use super::corpus::{Opened, ReadCorpus};
use super::progress::{Progress, Stage};
use super::rejected::Rejected;
use super::settings::{DedupOutputs, RunInputs, Settings};
use super::summary::{ByRoute, LargeCluster, States, Summary, Suspicion};
use crate::error::Result;
use crate::rule::{measure_name, method_name};
use crate::sink::{
    Annotation, Cell, Column, Output, Prepared, RowSet, TableWriter, WriteOptions, check_kept,
    check_output, check_table, commit_all, prepare_kept,
};
use crate::source::Place;

/// Removes near-duplicates. Of two documents that match, the earlier one in the total order is kept.
///
/// # Errors
/// If something cannot be read or written, or if the settings contradict each other. The outputs are
/// then unchanged.
pub fn dedup(
    inputs: &RunInputs,
    settings: &Settings,
    outputs: &DedupOutputs,
    progress: &dyn Progress,
) -> Result<Summary> {
    super::in_pool(settings.threads, || {
        Run::start(settings)?.dedup(inputs, outputs, progress)
    })
}

struct Run<'a> {
    settings: &'a Settings,
    plan: Plan,
    started: Instant,
    stages: Vec<(&'static str, f64)>,
}

impl<'a> Run<'a> {
    fn start(settings: &'a Settings) -> Result<Self> {
        let plan = Plan::new(&settings.recipe, settings.matching)?;
        Ok(Self {
            settings,
            plan,
            started: Instant::now(),
            stages: Vec::new(),
        })
    }

    fn stage_done(&mut self, name: &'static str) {
        let before: f64 = self.stages.iter().map(|(_, seconds)| seconds).sum();
        self.stages
            .push((name, self.started.elapsed().as_secs_f64() - before));
    }

    fn dedup(
        mut self,
        paths: &RunInputs,
        outputs: &DedupOutputs,
        progress: &dyn Progress,
    ) -> Result<Summary> {
        let opened = Opened::new(paths, self.settings)?;
        check_outputs(&opened, outputs)?;
        let rejected = Rejected::create(outputs.rejected.as_ref())?;
        let plan = self.plan;
        let reject = |inputs: &_, row: &_| rejected.push(inputs, row);
        let corpus = ReadCorpus::read(&opened, self.settings, &plan, &reject, progress)?;
        corpus.tell_repeated_ids(self.settings, progress)?;
        self.stage_done("read");
        progress.begin(Stage::Candidates, None);
        let total = corpus.len() as u64;
        let deciding = |done: usize| {
            if done == 0 {
                progress.begin(Stage::Decide, Some(total));
            }
            progress.advance(done as u64);
        };
        // If verdicts are decided in row order, rows are copied while later verdicts are still open.
        let early = outputs.kept.as_ref().filter(|output| {
            let in_order = corpus.corpus().order.is_none() && !outputs.annotate;
            in_order && self.settings.threads > 1 && output.appears_complete()
        });
        let verdicts_so_far = VerdictsSoFar::new(&corpus);
        let writing = AtomicBool::new(false);
        let copied = |rows| {
            if writing.load(Ordering::Relaxed) {
                progress.advance(rows);
            }
        };
        let copy = |output: &Output| {
            let options = WriteOptions {
                annotate: None,
                threads: self.settings.threads,
            };
            prepare_kept(&opened.inputs, &verdicts_so_far, output, &options, &copied)
        };
        let (outcome, components, prepared) = std::thread::scope(|scope| -> Result<_> {
            let copying = early.map(|output| scope.spawn(|| copy(output)));
            let ending = verdicts_so_far.ending();
            let outcome = matching::follow_verdicts(&corpus.corpus(), &|decided, removals| {
                deciding(decided);
                verdicts_so_far.take(decided, removals);
            })?;
            drop(ending);
            let components = if outputs.components {
                Some(matching::find_components(&corpus.corpus(), &outcome)?)
            } else {
                None
            };
            self.stage_done("match");
            let prepared = copying.map(|copying| {
                progress.begin(Stage::Write, Some(corpus.documents.len() as u64));
                writing.store(true, Ordering::Relaxed);
                copying
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            });
            Ok((outcome, components, prepared.transpose()?))
        })?;
        let verdicts = Verdicts::new(&corpus, &outcome, components);
        // Kept rows come last, because standard output and pipes cannot take them back.
        let tables = verdicts.write_tables(outputs, &opened)?;
        let (rejected, bad_rows) = rejected.prepare()?;
        let kept = match prepared {
            Some(kept) => Some(kept),
            None => verdicts.write_kept(&opened, outputs, self.settings, progress)?,
        };
        commit_all(tables.into_iter().chain(bad_rows).chain(kept))?;
        self.stage_done("write");
        self.summary(&corpus, &outcome, &verdicts, rejected)
    }

    fn summary(
        self,
        corpus: &ReadCorpus<'_>,
        outcome: &Outcome,
        verdicts: &Verdicts<'_>,
        rejected: u64,
    ) -> Result<Summary> {
        let documents = corpus.documents.len() as u64;
        let audit = verdicts.audited()?;
        let removed = outcome.removals.len() as u64;
        let id: RecipeId = self.settings.recipe.id();
        let clusters = verdicts.clusters();
        Ok(Summary {
            documents,
            against: corpus.given() as u64,
            repeated_ids: corpus.repeated_ids(),
            shared_ids: corpus.shared_ids(),
            mixed_values: corpus.documents.mixed_values(),
            kept: documents - removed,
            removed,
            clusters: clusters.len() as u64,
            components: verdicts.component_count(),
            rejected,
            bytes: corpus.documents.bytes,
            method: method_name(self.plan.settings().method),
            measure: measure_name(self.plan.settings().measure),
            candidates_from: self.plan.candidates_from().map(Threshold::get),
            threshold: self.plan.threshold().get(),
            recipe: self.settings.recipe.name.clone(),
            recipe_id: id.to_string(),
            by_route: by_route(outcome),
            states: states(corpus),
            largest: largest(corpus, &clusters)?,
            suspicious: suspicious(corpus, &clusters, verdicts)?,
            histogram: similarities(outcome).collect(),
            audit,
            seconds: self.started.elapsed().as_secs_f64(),
            stages: self.stages,
        })
    }
}

fn check_outputs(opened: &Opened, outputs: &DedupOutputs) -> Result<()> {
    if let Some(output) = &outputs.kept {
        check_kept(&opened.inputs, output, outputs.annotate)?;
    }
    for table in [&outputs.removed, &outputs.clusters].into_iter().flatten() {
        check_table(table)?;
    }
    let all = [
        &outputs.kept,
        &outputs.removed,
        &outputs.clusters,
        &outputs.rejected,
    ];
    for output in all.into_iter().flatten() {
        check_output(output, &opened.inputs)?;
        if let Some(against) = &opened.against {
            check_output(output, against)?;
        }
    }
    Ok(())
}

/// The verdicts of all documents, by document.
struct Verdicts<'a> {
    corpus: &'a ReadCorpus<'a>,
    outcome: &'a Outcome,
    /// Index of each document's removal in the outcome, or [`KEPT`].
    removal: Vec<u32>,
    components: Option<Vec<DocId>>,
    threshold: f64,
}

const KEPT: u32 = u32::MAX;

/// A kept document and the documents that were removed for it.
#[derive(Clone, Copy)]
struct Cluster {
    kept: DocId,
    removed: u64,
    least: f64,
}

impl<'a> Verdicts<'a> {
    fn new(
        corpus: &'a ReadCorpus<'a>,
        outcome: &'a Outcome,
        components: Option<Vec<DocId>>,
    ) -> Self {
        let mut removal = vec![KEPT; corpus.len()];
        for (at, removed) in outcome.removals.iter().enumerate() {
            removal[removed.document.index()] = at as u32;
        }
        let threshold = corpus.plan.threshold().get();
        Self {
            corpus,
            outcome,
            removal,
            components,
            threshold,
        }
    }

    fn removal(&self, document: DocId) -> Option<&matching::Removal> {
        match self.removal[document.index()] {
            KEPT => None,
            at => Some(&self.outcome.removals[at as usize]),
        }
    }

    /// Returns the documents of the inputs, without those of `--against`, in reading order.
    fn documents(&self) -> impl Iterator<Item = DocId> + '_ {
        (self.corpus.given()..self.corpus.len()).map(|at| DocId(at as u32))
    }

    /// Returns the clusters by size, largest first, then in reading order.
    fn clusters(&self) -> Vec<Cluster> {
        let mut removed = vec![(0u64, 1.0f64); self.corpus.len()];
        for removal in &self.outcome.removals {
            let (count, least) = &mut removed[removal.kept.with.index()];
            *count += 1;
            *least = least.min(removal.kept.similarity.get());
        }
        let mut clusters: Vec<_> = (0u32..)
            .zip(removed)
            .filter(|(_, (count, _))| *count > 0)
            .map(|(at, (removed, least))| Cluster {
                kept: DocId(at),
                removed,
                least,
            })
            .collect();
        clusters.sort_by_key(|cluster| std::cmp::Reverse(cluster.removed));
        clusters
    }

    /// Returns the report of the audit on these verdicts, if there is one.
    fn audited(&self) -> Result<Option<AuditReport>> {
        let mut reported = Reported::default();
        for removal in &self.outcome.removals {
            reported.offer(removal.document, removal.kept.with);
        }
        let kept = |document| self.removal(document).is_none();
        self.corpus.audited(reported, Some(&kept))
    }

    fn component_count(&self) -> Option<u64> {
        let components = self.components.as_ref()?;
        let others = components
            .iter()
            .enumerate()
            .filter(|(at, first)| first.index() != *at);
        let mut firsts: Vec<_> = others.map(|(_, first)| *first).collect();
        firsts.sort_unstable();
        firsts.dedup();
        Some(firsts.len() as u64)
    }

    fn write_tables(&self, outputs: &DedupOutputs, opened: &Opened) -> Result<Vec<Prepared>> {
        let removed = outputs.removed.as_ref();
        let removed =
            removed.map(|output| Prepared::even_if_unread(self.write_removed(output, opened)));
        let removed = removed.transpose()?;
        let clusters = outputs.clusters.as_ref();
        let clusters =
            clusters.map(|output| Prepared::even_if_unread(self.write_clusters(output, opened)));
        Ok(removed.into_iter().chain(clusters.transpose()?).collect())
    }

    fn write_kept(
        &self,
        opened: &Opened,
        outputs: &DedupOutputs,
        settings: &Settings,
        progress: &dyn Progress,
    ) -> Result<Option<Prepared>> {
        let Some(output) = &outputs.kept else {
            return Ok(None);
        };
        progress.begin(Stage::Write, Some(self.corpus.documents.len() as u64));
        let annotate = |index: usize| self.annotation(index);
        let options = WriteOptions {
            annotate: if outputs.annotate {
                Some(&annotate)
            } else {
                None
            },
            threads: settings.threads,
        };
        let rows = Rows {
            verdicts: self,
            all: outputs.annotate,
        };
        let advance = |done| progress.advance(done);
        let prepared = prepare_kept(&opened.inputs, &rows, output, &options, &advance);
        Prepared::even_if_unread(prepared).map(Some)
    }

    fn write_removed(&self, output: &Output, opened: &Opened) -> Result<Prepared> {
        let columns = [
            Column::Text("id"),
            Column::Text("kept"),
            Column::Number("similarity"),
            Column::Text("method"),
            Column::Number("threshold"),
            Column::Text("cluster"),
            Column::Text("source"),
            Column::Integer("row"),
            Column::Text("kept_source"),
            Column::Integer("kept_row"),
        ];
        let mut table = TableWriter::create(output, &columns, Some(&opened.inputs))?;
        for document in self.documents() {
            let Some(removal) = self.removal(document) else {
                continue;
            };
            let kept = self.corpus.id(removal.kept.with)?;
            let (source, row) = self.corpus.source_of(document);
            let (kept_source, kept_row) = self.corpus.source_of(removal.kept.with);
            table.push(&[
                Cell::Text(&self.corpus.id(document)?),
                Cell::Text(&kept),
                Cell::Number(removal.kept.similarity.get()),
                Cell::Text(removal.kept.route.name()),
                Cell::Number(self.threshold),
                Cell::Text(&kept),
                Cell::Text(source),
                Cell::Integer(row),
                Cell::Text(kept_source),
                Cell::Integer(kept_row),
            ])?;
        }
        table.prepare()
    }

    fn write_clusters(&self, output: &Output, opened: &Opened) -> Result<Prepared> {
        let mut columns = vec![
            Column::Text("id"),
            Column::Text("cluster"),
            Column::Text("representative"),
            Column::Number("similarity"),
            Column::Bool("kept"),
            Column::Text("source"),
            Column::Integer("row"),
        ];
        columns.extend(self.components.as_ref().map(|_| Column::Text("component")));
        let mut represents = vec![false; self.corpus.len()];
        for removal in &self.outcome.removals {
            represents[removal.kept.with.index()] = true;
        }
        // A document may be alone in its cluster but share a component with others.
        let mut connected = vec![0u32; self.components.as_ref().map_or(0, Vec::len)];
        for component in self.components.iter().flatten() {
            connected[component.index()] += 1;
        }
        let is_connected = |document: DocId| {
            let component = self.components.as_ref().map(|it| it[document.index()]);
            component.is_some_and(|component| connected[component.index()] > 1)
        };
        let mut table = TableWriter::create(output, &columns, Some(&opened.inputs))?;
        for document in (0..self.corpus.len()).map(|at| DocId(at as u32)) {
            let removal = self.removal(document);
            if removal.is_none() && !represents[document.index()] && !is_connected(document) {
                continue;
            }
            let kept = removal.map_or(document, |removal| removal.kept.with);
            let similarity = removal.map_or(1.0, |removal| removal.kept.similarity.get());
            let (id, cluster) = (self.corpus.id(document)?, self.corpus.id(kept)?);
            let (source, row) = self.corpus.source_of(document);
            let mut cells = vec![
                Cell::Text(&id),
                Cell::Text(&cluster),
                Cell::Text(&cluster),
                Cell::Number(similarity),
                Cell::Bool(removal.is_none()),
                Cell::Text(source),
                Cell::Integer(row),
            ];
            let component = match &self.components {
                Some(components) => Some(self.corpus.id(components[document.index()])?),
                None => None,
            };
            cells.extend(component.as_deref().map(Cell::Text));
            table.push(&cells)?;
        }
        table.prepare()
    }

    fn annotation(&self, index: usize) -> Result<Annotation> {
        let document = DocId((self.corpus.given() + index) as u32);
        let removal = self.removal(document);
        let kept = removal.map_or(document, |removal| removal.kept.with);
        let cluster = self.corpus.id(kept)?.into_owned();
        Ok(Annotation {
            duplicate_of: removal.map(|_| cluster.clone()),
            similarity: removal.map(|removal| removal.kept.similarity.get()),
            cluster,
        })
    }
}

/// The rows of the inputs with the verdicts decided so far. Asking for a later verdict blocks until it
/// is decided.
struct VerdictsSoFar<'a> {
    corpus: &'a ReadCorpus<'a>,
    removed: Vec<AtomicBool>,
    /// Number of documents with a verdict.
    decided: AtomicUsize,
    /// The lock for waiting until `decided` grows.
    waiting: Mutex<()>,
    grown: Condvar,
}

impl<'a> VerdictsSoFar<'a> {
    fn new(corpus: &'a ReadCorpus<'a>) -> Self {
        Self {
            corpus,
            removed: (0..corpus.len()).map(|_| AtomicBool::new(false)).collect(),
            decided: AtomicUsize::new(0),
            waiting: Mutex::new(()),
            grown: Condvar::new(),
        }
    }

    fn take(&self, decided: usize, removals: &[matching::Removal]) {
        for removal in removals {
            self.removed[removal.document.index()].store(true, Ordering::Relaxed);
        }
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        self.decided.store(decided, Ordering::Release);
        drop(waiting);
        self.grown.notify_all();
    }

    /// Returns a guard that ends all waiting when it is dropped, because no more verdicts follow.
    fn ending(&self) -> impl Drop + '_ {
        struct Ending<'a>(&'a VerdictsSoFar<'a>);
        impl Drop for Ending<'_> {
            fn drop(&mut self) {
                self.0.take(usize::MAX, &[]);
            }
        }
        Ending(self)
    }
}

impl RowSet for VerdictsSoFar<'_> {
    fn len(&self) -> usize {
        self.corpus.documents.len()
    }

    fn place(&self, index: usize) -> Place {
        self.corpus.documents.place(index)
    }

    fn number(&self, index: usize) -> u64 {
        self.corpus.documents.number(index)
    }

    fn kept(&self, index: usize) -> bool {
        let document = self.corpus.given() + index;
        let undecided = || self.decided.load(Ordering::Acquire) <= document;
        if undecided() {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            while undecided() {
                waiting = self
                    .grown
                    .wait(waiting)
                    .unwrap_or_else(PoisonError::into_inner);
            }
        }
        !self.removed[document].load(Ordering::Relaxed)
    }
}

/// The rows of the inputs with their final verdicts.
struct Rows<'a> {
    verdicts: &'a Verdicts<'a>,
    all: bool,
}

impl RowSet for Rows<'_> {
    fn len(&self) -> usize {
        self.verdicts.corpus.documents.len()
    }

    fn place(&self, index: usize) -> Place {
        self.verdicts.corpus.documents.place(index)
    }

    fn number(&self, index: usize) -> u64 {
        self.verdicts.corpus.documents.number(index)
    }

    fn kept(&self, index: usize) -> bool {
        self.all || self.verdicts.removal[self.verdicts.corpus.given() + index] == KEPT
    }
}

fn by_route(outcome: &Outcome) -> ByRoute {
    let mut counts = ByRoute::default();
    for removal in &outcome.removals {
        match removal.kept.route {
            Route::Exact => counts.exact += 1,
            Route::Join => counts.join += 1,
            Route::MinHash => counts.minhash += 1,
            Route::SimHash => counts.simhash += 1,
            Route::Sentences => counts.sentences += 1,
            Route::BottomK => counts.bottomk += 1,
        }
    }
    counts
}

fn states(corpus: &ReadCorpus<'_>) -> States {
    let mut states = States::default();
    for at in corpus.given()..corpus.len() {
        match corpus.sketches.state(DocId(at as u32)) {
            State::Rich => {}
            State::Poor => states.poor += 1,
            State::Blank => states.blank += 1,
            State::Empty => states.empty += 1,
        }
    }
    states
}

/// Largest number of clusters that a summary names.
const LARGEST: usize = 10;

fn largest(corpus: &ReadCorpus<'_>, clusters: &[Cluster]) -> Result<Vec<LargeCluster>> {
    let named = clusters.iter().take(LARGEST).map(|cluster| {
        Ok(LargeCluster {
            cluster: corpus.id(cluster.kept)?.into_owned(),
            documents: cluster.removed + 1,
            least_similarity: cluster.least,
        })
    });
    named.collect()
}

/// Fewest removed documents of a cluster that is reported as suspicious. They must also be more than 2
/// % of all documents.
const GIANT: u64 = 100;

fn suspicious(
    corpus: &ReadCorpus<'_>,
    clusters: &[Cluster],
    verdicts: &Verdicts<'_>,
) -> Result<Vec<Suspicion>> {
    let documents = corpus.documents.len() as u64;
    let giant = |cluster: &&Cluster| cluster.removed >= GIANT && 50 * cluster.removed > documents;
    let mut found = Vec::new();
    for cluster in clusters.iter().filter(giant).take(LARGEST) {
        found.push(Suspicion {
            cluster: corpus.id(cluster.kept)?.into_owned(),
            reason: format!(
                "giant: {} of {documents} documents; most of their text may be a template or \
                 boilerplate",
                cluster.removed + 1
            ),
        });
    }
    for (component, chained) in verdicts.stretched().into_iter().take(LARGEST) {
        found.push(Suspicion {
            cluster: corpus.id(component)?.into_owned(),
            reason: format!(
                "stretched: its component connects {chained} clusters by chains of matches, and \
                 their representatives are below the threshold with one another"
            ),
        });
    }
    Ok(found)
}

/// Smallest number of kept documents in a component that is reported as stretched.
const STRETCHED: u64 = 4;

impl Verdicts<'_> {
    /// Returns components that connect many kept documents, largest first.
    fn stretched(&self) -> Vec<(DocId, u64)> {
        let Some(components) = &self.components else {
            return Vec::new();
        };
        let mut kept = vec![0u64; components.len()];
        for (at, component) in components.iter().enumerate() {
            if self.removal[at] == KEPT {
                kept[component.index()] += 1;
            }
        }
        let many = |(_, count): &(DocId, u64)| *count >= STRETCHED;
        let mut found: Vec<_> = (0u32..).map(DocId).zip(kept).filter(many).collect();
        found.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
        found
    }
}

fn similarities(outcome: &Outcome) -> impl Iterator<Item = lookalike::Similarity> {
    let removals = outcome.removals.iter();
    removals.map(|removal| removal.kept.similarity)
}
