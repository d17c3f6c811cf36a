//! An index beside which a run decides about its documents, and to which it adds those that it keeps.
//!
//! The documents of the index come before those of the run, in the order of their rows, and count as kept whatever they
//! match. The run asks for the best match of each document and decides by it as if it had read all documents of the
//! index.
//!
//! ```text
//! open            lock, manifest, segments
//! find_best       a document → the most similar row
//! add_rows        kept rows → a new segment, whose files nothing names yet
//! (outputs of the run appear)
//! finish_run      the manifest that names the segment replaces the old one
//! ```
//!
//! Guarantees:
//! * The matches are those of the run's match plan, as `lookalike search` finds them.
//! * The index grows after the outputs of the run are complete, or not at all. If the run ends in between, its
//!   repetition writes the same outputs and adds the same rows.
//! * The index is locked from its opening to the end of the run, so no other process changes it in between.
//!
//! Cost: opening maps the files of the index. A look-up reads the buckets of its document. Bands of long documents and
//! containment are exceptions: their buckets are built when the index is opened, in a temporary file if the memory is
//! limited; see
//! [`match_finder`](super::match_finder) and [`containment`](super::containment). Adding reads all ids once.

use crate::run::reading::corpus_rows::IndexedDocument;
use std::path::{Path, PathBuf};

use lookalike::hamming::{FingerprintCode, HammingSegment, SearchLimits};
use lookalike::passages::PassageSettings;
use lookalike::plan::{CandidateRule, MatchMethod, MatchPlan};
use lookalike::similarity::{ComparedDocument, DocumentComparer, MOST_INDEXED, Route};
use lookalike::text::{TextAnalysis, TextState};
use lookalike::{Distance, Similarity};
use lookalike_io::error::{Error, Result, display_path};
use lookalike_io::sink::OutputTarget;
use lookalike_io::source::{InputSet, ParseScratch, RowPlace};
use rayon::prelude::*;
use serde::Serialize;

use crate::index::build::{IndexChange, PlacedRows, copy_tables, new_manifest, place_rows};
use crate::index::build_space::BuildSpace;
use crate::index::counts::{COUNTS_FILE, CountsWriter, DocumentCounts, update_counts};
use crate::index::directory::{DirectoryKind, IndexLock, NewDirectory};
use crate::index::indexed_passages::IndexedPassages;
use crate::index::manifest::{CountsEntry, IndexManifest, SegmentEntry, file_name};
use crate::index::match_finder::{IndexMatcher, MatchScratch, SearchedSegment};
use crate::index::records::DocumentRecords;
use crate::index::row_batches::{NewRows, RecordScratch, RowBatch, RowRecorder};
use crate::index::row_numbers::RowNumbers;
use crate::index::search::refuse_index;
use crate::index::segments::{StoredSegment, open_index, open_stored_segment};
use crate::index::texts::UnpackedFrame;
use crate::index::{BuildSettings, IndexReadOptions, RowContent, by_width, directory, inspect};
use crate::run::progress::ProgressListener;
use crate::run::settings::RunSettings;

/// Largest distance of a new index for runs that compare no fingerprints.
const USUAL_DISTANCE: u32 = 3;

/// Rows that a thread records at a time.
const BATCH_ROWS: usize = 256;

/// Largest number of rows, and about the most bytes of their inputs, that all threads record before the rows are
/// appended.
const ROWS_AT_ONCE: usize = 64 * BATCH_ROWS;
const BYTES_AT_ONCE: u64 = 64 << 20;

/// The index of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunIndexSettings {
    /// Its directory. An index is created there if there is none.
    pub path: PathBuf,
    /// `true` to add the kept documents. Otherwise nothing is changed or created.
    pub adds_kept: bool,
}

/// The index of a run, before and after.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RunIndexSummary {
    /// The directory.
    pub path: String,
    /// Rows with which the documents were compared.
    pub compared: u64,
    /// Kept documents added. Empty texts are not added.
    pub added: u64,
    /// Added documents with an id that the index had.
    pub repeated_ids: u64,
    /// Rows after the run.
    pub rows: u64,
    /// Bytes on disk after the run.
    pub bytes: u64,
}

/// The memory of a run that an index may use.
#[derive(Debug, Clone)]
pub(crate) struct RunIndexMemory {
    /// Bytes for building buckets when the index is opened, and for building a segment when rows are added.
    pub(crate) bytes: u64,
    /// The directory of the rest.
    pub(crate) directory: PathBuf,
}

/// A row of an index that matches a document.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct IndexHit {
    /// Position among all rows, removed ones included.
    pub(crate) position: u64,
    pub(crate) similarity: Similarity,
    pub(crate) route: Route,
}

/// Buffers that a thread reuses from document to document.
#[derive(Default)]
pub(crate) struct RunIndexScratch {
    matching: MatchScratch,
    unpacked: Vec<UnpackedFrame>,
    near: Vec<(u32, u32)>,
}

/// The right to change the index, in one of two forms.
enum RunIndexLock {
    /// Nothing is changed.
    None,
    Existing(#[expect(dead_code, reason = "held until it is dropped")] IndexLock),
    New(NewDirectory),
}

/// An open segment.
struct RunSegment {
    stored: StoredSegment,
    /// Position of its first row among all rows, and among those that are not removed.
    base: u64,
    live_base: u64,
    /// Its fingerprints, if the plan compares them.
    near: Option<Box<dyn NearRowSearch>>,
}

/// A search for near fingerprints of any width.
trait NearRowSearch: Send + Sync {
    /// Calls `visit` with every near row and its distance.
    fn visit_near(&self, code: u128, limits: &SearchLimits, visit: &mut dyn FnMut(u32, u32));
}

impl<C: FingerprintCode> NearRowSearch for HammingSegment<C> {
    fn visit_near(&self, code: u128, limits: &SearchLimits, visit: &mut dyn FnMut(u32, u32)) {
        self.search_queries(&[C::narrow_from(code)], limits, |_, found| {
            visit(found.row, found.distance);
        });
    }
}

/// An index that a run has opened.
pub(crate) struct RunIndex {
    path: PathBuf,
    manifest: IndexManifest,
    segments: Vec<RunSegment>,
    matcher: IndexMatcher,
    limits: SearchLimits,
    space: BuildSpace,
    placed: Option<PlacedRows>,
    is_finished: bool,
    lock: RunIndexLock,
}

impl RunIndex {
    /// Opens or creates the index of a run. `passages` are those that the run searches in the rows of the index too. `memory`
    /// limits the memory beside its rows.
    ///
    /// # Errors
    ///
    /// If the directory holds something else or is locked by another process, or if the index does not support the
    /// settings of the run.
    pub(crate) fn open(
        settings: &RunIndexSettings,
        run: &RunSettings,
        plan: &MatchPlan,
        passages: Option<PassageSettings>,
        memory: Option<RunIndexMemory>,
    ) -> Result<Self> {
        let space = memory.map_or_else(BuildSpace::default, |memory| {
            BuildSpace::with_working_set(memory.bytes, memory.bytes / 2, &memory.directory)
        });
        let path = &settings.path;
        check_method(plan, run, path)?;
        directory::refuse_url(path)?;
        let (lock, manifest) = lock_manifest(settings, run, plan, passages)?;
        let opened = match manifest {
            Some(manifest) => {
                check_index(&manifest, run, plan, path)?;
                check_passages(&manifest, passages, path)?;
                let segments = open_segments(path, &manifest, plan)?;
                (manifest, segments)
            }
            None => directory::read_consistently(path, |manifest| {
                check_index(&manifest, run, plan, path)?;
                check_passages(&manifest, passages, path)?;
                let segments = open_segments(path, &manifest, plan)?;
                Ok((manifest, segments))
            })?,
        };
        let (manifest, segments) = opened;
        let stored_segments = segments
            .iter()
            .map(|segment| (&segment.stored.entry, &segment.stored));
        let matcher = IndexMatcher::open_buckets(path, &space, &run.recipe, plan, stored_segments)?;
        Ok(Self {
            path: path.clone(),
            limits: SearchLimits {
                distance: plan
                    .distance()
                    .filter(|_| plan.match_settings().candidates == CandidateRule::Distance),
                limit: usize::MAX,
            },
            manifest,
            segments,
            matcher,
            space,
            placed: None,
            is_finished: false,
            lock,
        })
    }

    /// Refuses an output in the directory of the index.
    pub(crate) fn check_output(&self, output: &OutputTarget) -> Result<()> {
        refuse_index(output, &self.path)
    }

    /// Returns the name of the directory in messages and tables.
    pub(crate) fn display_name(&self) -> String {
        display_path(&self.path)
    }

    /// Bytes of memory that stay taken for the rows of the index.
    pub(crate) fn row_bytes(&self, threads: usize) -> u64 {
        let records = self
            .segments
            .iter()
            .filter_map(|segment| segment.stored.records.as_ref());
        self.matcher.row_bytes(threads) + records.map(DocumentRecords::row_bytes).sum::<u64>()
    }

    /// Returns the most similar row that matches a document, the first one if several are equally similar.
    pub(crate) fn find_best(
        &self,
        analysis: &TextAnalysis<'_>,
        scratch: &mut RunIndexScratch,
    ) -> Result<Option<IndexHit>> {
        if analysis.state == TextState::Empty || self.segments.is_empty() {
            return Ok(None);
        }
        let query = self.comparer().prepare_document(analysis);
        scratch
            .unpacked
            .resize_with(self.segments.len(), UnpackedFrame::default);
        let mut best: Option<IndexHit> = None;
        for (number, segment) in self.segments.iter().enumerate() {
            let mut offer = |row: u32, route, similarity| {
                if best.is_none_or(|best| similarity > best.similarity) {
                    best = Some(IndexHit {
                        position: segment.base + u64::from(row),
                        similarity,
                        route,
                    });
                }
            };
            match &segment.near {
                None => {
                    let searched = SearchedSegment {
                        number,
                        stored: &segment.stored,
                        unpacked: &mut scratch.unpacked[number],
                    };
                    let matching = &mut scratch.matching;
                    self.matcher
                        .find_matches(&query, searched, matching, &mut offer)?;
                }
                Some(near) => self.find_near(number, near.as_ref(), &query, scratch, offer)?,
            }
        }
        Ok(best)
    }

    /// Calls `offer` with every match of a segment whose fingerprint is near, in ascending order.
    fn find_near(
        &self,
        number: usize,
        near: &dyn NearRowSearch,
        query: &ComparedDocument,
        scratch: &mut RunIndexScratch,
        mut offer: impl FnMut(u32, Route, Similarity),
    ) -> Result<()> {
        let stored = &self.segments[number].stored;
        let Some(code) = self.comparer().fingerprint(query) else {
            let key = self.comparer().whole_text_key(query);
            let equal = stored.unfingerprinted.rows_with_key(key);
            equal
                .filter(|&row| !stored.removed.contains_row(row))
                .for_each(|row| offer(row, Route::Exact, Similarity::ONE));
            return Ok(());
        };
        let mut rows = std::mem::take(&mut scratch.near);
        rows.clear();
        near.visit_near(code, &self.limits, &mut |row, distance| {
            if !stored.removed.contains_row(row) && !stored.unfingerprinted.contains_row(row) {
                rows.push((row, distance));
            }
        });
        rows.sort_unstable();
        for &(row, distance) in &rows {
            let searched = SearchedSegment {
                number,
                stored,
                unpacked: &mut scratch.unpacked[number],
            };
            let matching = &mut scratch.matching;
            let compared = self
                .matcher
                .verify_near_row(query, searched, row, distance, matching)?;
            if let Some((route, similarity)) = compared {
                offer(row, route, similarity);
            }
        }
        scratch.near = rows;
        Ok(())
    }

    fn comparer(&self) -> &DocumentComparer {
        self.matcher.query_comparer()
    }

    /// Returns the names of the rows at ascending positions.
    pub(crate) fn name_rows(&self, positions: &[u64]) -> Result<Vec<IndexedDocument>> {
        let mut named = Vec::with_capacity(positions.len());
        for segment in &self.segments {
            let end = segment.base + segment.stored.entry.rows;
            let removed_before = segment.stored.removed.rank_before();
            let segment_positions = &positions[named.len()..];
            for position in
                &segment_positions[..segment_positions.partition_point(|&position| position < end)]
            {
                let row = position - segment.base;
                named.push(IndexedDocument {
                    position: *position,
                    id: segment.stored.ids.id_of_row(row)?.into_owned(),
                    row_number: segment.live_base + row - u64::from(removed_before(row as u32)) + 1,
                });
            }
        }
        Ok(named)
    }

    /// Opens the texts of the index as sources of passages; `None` if the index is new and has none. About `bytes` bytes of
    /// its files stay in memory.
    ///
    /// # Errors
    ///
    /// If files are damaged, or if the index has too many rows.
    pub(crate) fn open_passages(&self, bytes: u64) -> Result<Option<IndexedPassages>> {
        if self.segments.is_empty() {
            return Ok(None);
        }
        let mut passages = IndexedPassages::open_parts(&self.path, &self.manifest)?;
        passages.keep_within(bytes);
        Ok(Some(passages))
    }

    /// Returns `true` if the run adds rows.
    pub(crate) fn adds_rows(&self) -> bool {
        !matches!(self.lock, RunIndexLock::None)
    }

    /// Adds counts of rows by their positions, ascending: documents that the run has removed because of them. The index has
    /// the counts after [`finish_run`](Self::finish_run).
    ///
    /// # Errors
    ///
    /// If counts cannot be read or written.
    pub(crate) fn add_counts(&mut self, counts: Vec<(u64, DocumentCounts)>) -> Result<()> {
        let mut counts = counts.into_iter().peekable();
        for (number, segment) in self.segments.iter().enumerate() {
            let end = segment.base + segment.stored.entry.rows;
            let mut updates = Vec::new();
            while let Some((position, counts)) = counts.next_if(|&(position, _)| position < end) {
                updates.push(((position - segment.base) as u32, counts));
            }
            if !updates.is_empty() {
                update_counts(&self.path, &mut self.manifest, number, &updates)?;
            }
        }
        Ok(())
    }

    /// Writes rows of the inputs as a new segment. The index names it after [`finish_run`](Self::finish_run).
    ///
    /// # Errors
    ///
    /// If an id is repeated in a strict run, if some rows have ids and others of the index none, or if something
    /// cannot be read or written.
    pub(crate) fn add_rows(
        &mut self,
        added: &AddedRows<'_>,
        run: &RunSettings,
        progress: &dyn ProgressListener,
    ) -> Result<()> {
        let reading = reading_of_run(run);
        let change = IndexChange {
            index_path: &self.path,
            replaces: false,
            reading: &reading,
            space: &self.space,
            rejected: None,
            is_of_run: true,
            progress,
        };
        self.manifest.sources.clone_from(&run.sources);
        let bits = self.manifest.bits;
        let placed = by_width!(bits, place_run_rows(&change, &mut self.manifest, added))?;
        self.placed = Some(placed);
        Ok(())
    }

    /// Makes the index name the rows that were added. Call it after the outputs of the run have appeared.
    pub(crate) fn finish_run(mut self) -> Result<RunIndexSummary> {
        let compared = self.compared_rows();
        if self.adds_rows() {
            directory::replace_manifest(&self.path, &self.manifest)?;
        }
        self.is_finished = true;
        if let RunIndexLock::New(directory) = std::mem::replace(&mut self.lock, RunIndexLock::None)
        {
            directory.keep_directory()?;
        }
        let info = inspect::info_from_manifest(&self.path, &self.manifest);
        let placed = self.placed.as_ref();
        Ok(RunIndexSummary {
            path: info.path,
            compared,
            added: placed.map_or(0, |placed| placed.added),
            repeated_ids: placed.map_or(0, |placed| placed.repeated_ids),
            rows: info.fingerprints,
            bytes: info.bytes,
        })
    }

    fn compared_rows(&self) -> u64 {
        let live = self
            .segments
            .iter()
            .map(|segment| segment.stored.entry.count_live_rows());
        live.sum()
    }
}

impl Drop for RunIndex {
    /// Removes the files of a run that has failed. [`NewDirectory`] does so itself.
    fn drop(&mut self) {
        if !self.is_finished && matches!(self.lock, RunIndexLock::Existing(_)) {
            directory::clean_after_failure(&self.path);
        }
    }
}

/// Returns `true` if there is an index at `path`.
///
/// # Errors
/// If the directory cannot be read.
pub(crate) fn is_index(path: &Path) -> Result<bool> {
    Ok(directory::directory_kind(path)? == DirectoryKind::Index)
}

/// Checks that an index that does not exist can be made at a place.
///
/// # Errors
/// If the place is a URL or has something else, or if the plan finds no pairs in an index.
pub(crate) fn check_new_index(path: &Path, run: &RunSettings) -> Result<()> {
    directory::refuse_url(path)?;
    if directory::directory_kind(path)? == DirectoryKind::Strange {
        return Err(strange_directory_error(path));
    }
    check_method(&MatchPlan::new(&run.recipe, run.matching)?, run, path)
}

fn strange_directory_error(path: &Path) -> Error {
    Error::usage_error(format!(
        "--library: {} exists and is not an index: give a new name, or the directory that `lookalike index build` made",
        display_path(path)
    ))
}

/// Locks the index if the run adds to it. Also returns its manifest, or that of a new index; `None` if there is an
/// index that the run does not change.
fn lock_manifest(
    settings: &RunIndexSettings,
    run: &RunSettings,
    plan: &MatchPlan,
    passages: Option<PassageSettings>,
) -> Result<(RunIndexLock, Option<IndexManifest>)> {
    let path = &settings.path;
    match directory::directory_kind(path)? {
        DirectoryKind::Strange => Err(strange_directory_error(path)),
        DirectoryKind::Index if settings.adds_kept => {
            let lock = directory::lock_index(path)?;
            let manifest = directory::read_manifest(path)?;
            directory::remove_unnamed_files(path, Some(&manifest));
            Ok((RunIndexLock::Existing(lock), Some(manifest)))
        }
        DirectoryKind::Index => Ok((RunIndexLock::None, None)),
        DirectoryKind::Free => {
            let manifest = manifest_for_run(run, plan, passages, path)?;
            if !settings.adds_kept {
                return Ok((RunIndexLock::None, Some(manifest)));
            }
            let directory = NewDirectory::make_directory(path)?;
            create_index(path, manifest)
                .map(|manifest| (RunIndexLock::New(directory), Some(manifest)))
        }
    }
}

/// Writes the files of a new index that its manifest names. The directory must be locked.
fn create_index(path: &Path, mut manifest: IndexManifest) -> Result<IndexManifest> {
    if directory::directory_kind(path)? != DirectoryKind::Free {
        return Err(Error::output_error(format!(
            "another process has created the index {} meanwhile: repeat the run",
            display_path(path)
        )));
    }
    directory::remove_unnamed_files(path, None);
    copy_tables(path, &mut manifest)?;
    Ok(manifest)
}

/// Returns the manifest of a new index that supports the settings of a run.
fn manifest_for_run(
    run: &RunSettings,
    plan: &MatchPlan,
    passages: Option<PassageSettings>,
    path: &Path,
) -> Result<IndexManifest> {
    let compares_texts = plan.sequence_measure().is_some() || plan.compares_forms();
    if compares_texts && run.read.fields.features.is_some() {
        return Err(Error::usage_error(format!(
            "--library {}: this measure compares texts, and --features gives none that could be stored: leave \
             --library out, or choose another --verify",
            display_path(path)
        )));
    }
    if passages.is_some() && run.read.fields.features.is_some() {
        return Err(Error::usage_error(format!(
            "--library {}: passages are found in texts, and --features gives none that could be stored: leave \
             --library or --passages out",
            display_path(path)
        )));
    }
    let settings = match plan.distance() {
        None => (USUAL_DISTANCE, "auto"),
        Some(distance) => match plan.match_settings().candidates {
            CandidateRule::Distance => (distance.get(), "auto"),
            CandidateRule::Blocks => (distance.get(), "blocks"),
        },
    };
    let (distance, hamming_plan) = settings;
    let settings = BuildSettings {
        bits: run.recipe.simhash.bits,
        recipe: Some(run.recipe.clone()),
        distance,
        plan: hamming_plan.to_owned(),
        index_memory: None,
        texts: compares_texts || passages.is_some(),
        distance_only: false,
        passages,
        replace: false,
    };
    new_manifest(&settings, &reading_of_run(run))
}

/// Returns how a run reads the rows that an index receives.
fn reading_of_run(run: &RunSettings) -> IndexReadOptions {
    IndexReadOptions {
        content: RowContent::Documents,
        read: run.read.clone(),
        strict: run.strict,
        threads: run.threads,
        memory: None,
    }
}

/// Refuses settings that no index supports.
fn check_method(plan: &MatchPlan, run: &RunSettings, path: &Path) -> Result<()> {
    let name = display_path(path);
    let method = plan.match_settings().method;
    if !matches!(
        method,
        MatchMethod::Auto | MatchMethod::Exact | MatchMethod::SimHash
    ) {
        return Err(Error::usage_error(format!(
            "--library {name} finds candidates by --method auto, exact or simhash, because it does not store what \
             --method {} compares: choose one of these, or give the documents themselves with --against",
            method.name()
        )));
    }
    if let Some(field) = &run.within {
        return Err(Error::usage_error(format!(
            "--library {name} stores no values of the field '{field}' of --within: keep one library for each value, \
             or give the documents themselves with --against"
        )));
    }
    if run.window.is_some() {
        return Err(Error::usage_error(format!(
            "--library {name} stores no times, which --window compares: give the documents themselves with \
             --against, or use a collection of `lookalike serve`, which forgets by time"
        )));
    }
    let reach = plan.join_plan().map_or(0, |join| join.max_partner_features);
    if reach > MOST_INDEXED && !plan.joins_by_containment() {
        return Err(Error::usage_error(format!(
            "the threshold {} needs documents of {reach} features, but --library {name} covers those of up to \
             {MOST_INDEXED}: give a higher threshold",
            plan.threshold().get()
        )));
    }
    Ok(())
}

/// Refuses an index that does not support the settings of a run.
fn check_index(
    manifest: &IndexManifest,
    run: &RunSettings,
    plan: &MatchPlan,
    path: &Path,
) -> Result<()> {
    let name = display_path(path);
    check_recipe(manifest, run, &name)?;
    if let Some(field) = &manifest.sources
        && manifest.sources != run.sources
    {
        return Err(Error::usage_error(format!(
            "the library {name} counts the sources of documents by the field '{field}', and would lose those of this run: \
             give --sources {field}"
        )));
    }
    if !manifest.matching {
        return Err(Error::usage_error(format!(
            "the library {name} stores only fingerprints, which do not tell equal texts from near ones: build it \
             again with `lookalike index build {name} IN --force`, without --distance-only"
        )));
    }
    if plan.sequence_measure().is_some() && !manifest.texts {
        return Err(Error::usage_error(format!(
            "this measure compares texts, which the library {name} does not store: build it with `lookalike index \
             build --texts`, or choose --verify jaccard, containment or cosine"
        )));
    }
    if run.read.fields.features.is_some() && manifest.texts {
        return Err(Error::usage_error(format!(
            "the library {name} stores texts, and --features gives none: use another library"
        )));
    }
    match plan.distance() {
        None => Ok(()),
        Some(distance) => check_distance(manifest, plan, distance, &name),
    }
}

/// Refuses an index whose rows do not show all passages of a run.
fn check_passages(
    manifest: &IndexManifest,
    passages: Option<PassageSettings>,
    path: &Path,
) -> Result<()> {
    let Some(passages) = passages else {
        return Ok(());
    };
    let (name, wanted) = (display_path(path), passages.min_words());
    match manifest.passage_settings().map(PassageSettings::min_words) {
        Some(least) if least <= wanted => Ok(()),
        Some(least) => Err(Error::usage_error(format!(
            "the library {name} finds passages of at least {least} words, and --min-length is {wanted}: give {least} \
             or more, or begin a new library"
        ))),
        None => Err(Error::usage_error(format!(
            "the library {name} does not store the texts and grams of its rows, in which passages are found: begin a \
             new library with --passages, leave --passages out, or give the documents themselves with --against"
        ))),
    }
}

fn check_recipe(manifest: &IndexManifest, run: &RunSettings, name: &str) -> Result<()> {
    let Some(own) = manifest.known_recipe() else {
        return Err(Error::usage_error(format!(
            "the library {name} holds bare fingerprints of an unknown recipe, with which documents do not compare: \
             use a library of documents"
        )));
    };
    if own.recipe_id() == run.recipe.recipe_id() {
        return Ok(());
    }
    let [own_features, run_features] =
        [&own, &run.recipe].map(|recipe| recipe.clone().without_forms().recipe_id());
    if own_features == run_features {
        return Err(Error::usage_error(format!(
            "the library {name} was made with other forms than those of the run, or without any, and documents of two \
             recipes never compare: leave --forms out to use those of the library, or give another library"
        )));
    }
    Err(Error::usage_error(format!(
        "the library {name} has the recipe {} ({}), the run has {} ({}), and documents of two recipes never compare: \
         leave --recipe out to use that of the library, or give another library",
        own.name,
        own.recipe_id(),
        run.recipe.name,
        run.recipe.recipe_id()
    )))
}

fn check_distance(
    manifest: &IndexManifest,
    plan: &MatchPlan,
    distance: Distance,
    name: &str,
) -> Result<()> {
    let (distance, most) = (distance.get(), manifest.distance);
    let by_blocks = plan.match_settings().candidates == CandidateRule::Blocks;
    let has_blocks = matches!(manifest.plan.as_str(), "blocks" | "4x16");
    if by_blocks && (!has_blocks || distance != most) {
        return Err(Error::usage_error(format!(
            "--candidates blocks at the distance {distance} needs a library of {} equal blocks, and the plan of {name} \
             is `{}` for the distance {most}: build it with `lookalike index build --plan blocks --distance \
             {distance}`",
            distance + 1,
            manifest.plan
        )));
    }
    if distance > most {
        Err(Error::usage_error(format!(
            "the distance {distance} is above {most}, the distance of the library {name}: give at most {most}, or \
             build a library with `lookalike index build --distance {distance}`"
        )))
    } else {
        Ok(())
    }
}

fn open_segments(
    path: &Path,
    manifest: &IndexManifest,
    plan: &MatchPlan,
) -> Result<Vec<RunSegment>> {
    let (mut base, mut live_base) = (0, 0);
    let mut segments = Vec::new();
    for entry in &manifest.segments {
        let bits = manifest.bits;
        let near = match plan.distance() {
            None => None,
            Some(_) => Some(by_width!(bits, open_near(path, manifest, entry))?),
        };
        segments.push(RunSegment {
            stored: open_stored_segment(path, entry)?,
            base,
            live_base,
            near,
        });
        base += entry.rows;
        live_base += entry.count_live_rows();
    }
    Ok(segments)
}

fn open_near<C: FingerprintCode>(
    path: &Path,
    manifest: &IndexManifest,
    entry: &SegmentEntry,
) -> Result<Box<dyn NearRowSearch>> {
    Ok(Box::new(open_index::<C>(path, manifest, entry)?))
}

/// Rows of a run's inputs that become rows of the index.
pub(crate) struct AddedRows<'a> {
    pub(crate) inputs: &'a InputSet,
    /// Place and number of each row.
    pub(crate) rows: &'a [(RowPlace, u64)],
    /// Number of the last row of all inputs, whether it is added or not.
    pub(crate) last_row: u64,
    /// Returns the documents for which a row stands, by its number.
    pub(crate) counts: &'a (dyn Fn(u64) -> DocumentCounts + Sync),
}

/// Writes rows of the inputs as a new segment, which the manifest then names.
fn place_run_rows<C: FingerprintCode>(
    change: &IndexChange<'_>,
    manifest: &mut IndexManifest,
    added: &AddedRows<'_>,
) -> Result<PlacedRows> {
    let file = manifest.next_file;
    manifest.next_file += 1;
    let id = &change.reading.read.fields.id;
    let recorder = RowRecorder::new(manifest, &RowContent::Documents, id)?;
    let mut new = NewRows::<C>::create_files(change, manifest, file, &recorder)?;
    let mut rest = added.rows;
    let mut numbers = RowNumbers::default();
    while !rest.is_empty() {
        let (taken, later) = rest.split_at(count_rows_at_once(rest));
        rest = later;
        let batches: Vec<(RowBatch<C>, RowNumbers)> = taken
            .par_chunks(BATCH_ROWS)
            .map_init(
                <(ParseScratch, RecordScratch)>::default,
                |(parse, scratch), rows| {
                    record_batch(added.inputs, &recorder, rows, parse, scratch)
                },
            )
            .collect::<Result<_>>()?;
        for (batch, recorded) in batches {
            new.append_batch(change, batch)?;
            numbers.append_numbers(&recorded);
        }
    }
    new.counts = Some(write_new_counts(change, manifest, &numbers, added)?);
    new.last = added.last_row;
    new.finish_codes()?;
    place_rows(change, manifest, file, new)
}

/// Returns the number of rows that are recorded before they are appended, at least 1.
fn count_rows_at_once(rows: &[(RowPlace, u64)]) -> usize {
    let mut bytes = 0;
    let fitting = rows.iter().take(ROWS_AT_ONCE).take_while(|(place, _)| {
        let is_first = bytes == 0;
        bytes += u64::from(place.byte_length()).max(1);
        is_first || bytes <= BYTES_AT_ONCE
    });
    fitting.count()
}

fn record_batch<C: FingerprintCode>(
    inputs: &InputSet,
    recorder: &RowRecorder,
    rows: &[(RowPlace, u64)],
    parse: &mut ParseScratch,
    scratch: &mut RecordScratch,
) -> Result<(RowBatch<C>, RowNumbers)> {
    let mut batch = RowBatch::default();
    let mut numbers = RowNumbers::default();
    for &(place, number) in rows {
        let before = batch.row_count();
        let recorded = inputs.reread_row(place, parse, |row| {
            recorder.record_row(inputs, row, number, scratch, &mut batch)
        })?;
        if let Err(reason) = recorded? {
            return Err(Error::input_error(format!("row {number}: {reason}")));
        }
        if batch.row_count() > before {
            numbers.push_number(number);
        }
    }
    Ok((batch.take_closed()?, numbers))
}

/// Writes the counts of new rows, which have these numbers in the inputs.
fn write_new_counts(
    change: &IndexChange<'_>,
    manifest: &mut IndexManifest,
    numbers: &RowNumbers,
    added: &AddedRows<'_>,
) -> Result<CountsEntry> {
    let file = manifest.next_file;
    manifest.next_file += 1;
    let path = change.index_path.join(file_name(file, COUNTS_FILE));
    let mut writer = CountsWriter::create_file(&path)?;
    for (row, number) in (0u32..).zip(numbers.iter_ranges().flatten()) {
        writer.push_row(row, &(added.counts)(number))?;
    }
    Ok(CountsEntry {
        file,
        seal: writer.finish_file()?,
        uncounted: 0,
    })
}
