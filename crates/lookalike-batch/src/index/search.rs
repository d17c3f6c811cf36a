//! Searching an index: the matches of many queries, in the order of the queries.
//!
//! Each block of the input is parsed, searched and formatted by one thread; many blocks are in work at once.
//! Results are written in input order. The queries of a block are searched in batches, which become smaller
//! if queries have many matches, so that memory stays bounded.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use lookalike::hamming::{FingerprintCode, HammingSegment, SearchLimits};
use lookalike::plan::{
    CandidateRule, EditUnit, MatchMethod, MatchPlan, MatchSettings, SimilarityMeasure,
};
use lookalike::similarity::{ComparedDocument, DocumentComparer, MOST_INDEXED};
use lookalike::text::{AnalysisScratch, TextAnalysis, TextAnalyzer};
use lookalike::{Distance, Recipe, Similarity, Threshold};
use lookalike_io::error::{Error, Result, display_path};
use lookalike_io::sink::{
    OutputTarget, TableCell, TableColumn, TableRows, TableWriter, check_output,
};
use lookalike_io::source::{BadRow, InputBlock, InputRow, InputSet, ParseScratch};
use serde::Serialize;

use crate::index::build_space::BuildSpace;
use crate::index::manifest::IndexManifest;
use crate::index::match_finder::{IndexMatcher, MatchScratch, SearchedSegment};
use crate::index::row_fingerprints::{ComparedValue, RowFingerprinter};
use crate::index::segments::{StoredSegment, open_index, open_stored_segment};
use crate::index::texts::UnpackedFrame;
use crate::index::{IndexReadOptions, RowContent, by_width, directory};
use crate::run::progress::{ProgressListener, RunStage};
use crate::run::reading::ordered_pipeline::{EmitChunk, parse_blocks_in_order};
use crate::run::reading::rejected_rows::{OpenedRows, RejectedRows};
use crate::run::reading::row_analysis::{analyze_row, make_bad_row};
use crate::threads::run_in_pool;

/// Bytes of a block's results that are passed on before the block ends.
const CHUNK_BYTES: usize = 8 << 20;

/// Matches that a batch of queries aims at.
const MATCHES_AT_ONCE: usize = 1 << 20;

/// Largest and first number of queries in a batch.
const MOST_QUERIES: usize = 1 << 15;
const FIRST_QUERIES: usize = 1 << 8;

/// The matches of a query that are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListedMatches {
    /// All of them.
    All,
    /// The nearest matches, this many; ties are won by the rows that were added first.
    Nearest(usize),
    /// The match that was added first.
    First,
}

/// The rows that are compared with a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchCandidates {
    /// The candidates of the check's match plan: rows that share a rare feature or a band of slots.
    Plan,
    /// Rows within the distance.
    Distance,
    /// Rows that share one of distance + 1 blocks of bits.
    Blocks,
}

/// The similarity by which candidates are compared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TextCheck {
    /// The measure. With [`SimilarityMeasure::Sketch`] no texts are compared: the similarity is
    /// 1 − distance / bits, and unit and threshold have no effect.
    pub measure: SimilarityMeasure,
    /// The unit of edits and lengths.
    pub unit: EditUnit,
    /// The least similarity of a match.
    pub threshold: Threshold,
}

impl TextCheck {
    /// Returns `true` if texts are compared.
    pub fn compares_texts(&self) -> bool {
        self.measure != SimilarityMeasure::Sketch
    }

    /// Returns the settings of the match plan with which a run finds the same matches.
    fn plan_settings(&self, candidates: SearchCandidates, distance: Distance) -> MatchSettings {
        let (method, rule) = match candidates {
            SearchCandidates::Plan => (MatchMethod::Auto, CandidateRule::Distance),
            SearchCandidates::Distance => (MatchMethod::SimHash, CandidateRule::Distance),
            SearchCandidates::Blocks => (MatchMethod::SimHash, CandidateRule::Blocks),
        };
        MatchSettings {
            method,
            threshold: self.threshold,
            distance: distance.get(),
            measure: self.measure,
            unit: self.unit,
            candidates: rule,
            ..MatchSettings::default()
        }
    }
}

/// Settings of a search.
#[derive(Debug, Clone)]
pub struct SearchSettings {
    /// Largest distance of a match; that of the index by default.
    pub distance: Option<u32>,
    /// The matches of a query that are listed.
    pub which: ListedMatches,
    /// Largest number of listed matches per query. Queries with more are counted.
    pub limit: Option<usize>,
    /// The rows that are compared.
    pub candidates: SearchCandidates,
    /// The verification of candidates. If it is set, similarities are listed instead of distances.
    pub check: Option<TextCheck>,
    /// The expected recipe. It is an error if the index has another one.
    pub recipe: Option<Recipe>,
}

/// The result of a search.
#[derive(Debug, Clone, Serialize)]
pub struct SearchSummary {
    /// Queries read.
    pub queries: u64,
    /// Queries without a fingerprint, which match only equal texts.
    pub unfingerprinted: u64,
    /// Queries without text or fingerprint, which match nothing.
    pub empty: u64,
    /// Queries with at least one match.
    pub matched: u64,
    /// Matches listed.
    pub matches: u64,
    /// Queries whose matches are not all listed, because of the limit.
    pub truncated: u64,
    /// Rows that could not be used.
    pub rejected: u64,
    /// Bytes of input, after decompression.
    pub bytes: u64,
    /// Seconds from start to the last synced byte.
    pub seconds: f64,
    /// Seconds for opening the index; included in `seconds`.
    pub opening_seconds: f64,
    /// Rows in the index.
    pub fingerprints: u64,
    /// Largest distance, if candidates are found by distance.
    pub distance: Option<u32>,
    /// Smallest similarity, if texts are compared.
    pub threshold: Option<f64>,
    /// The measure, if texts are compared.
    pub measure: Option<&'static str>,
    /// Describes how candidates are found.
    pub candidates: String,
    /// Name of the recipe, if it is known.
    pub recipe: Option<String>,
    /// Identity of the recipe, if it is known.
    pub recipe_id: Option<String>,
}

/// Writes a table with the matches of every row of the inputs.
///
/// Its columns are `query, match, distance`, or `query, match, similarity` with a check, and with a
/// limit also `truncated`. It is ordered by query, then by distance or similarity, the nearest first,
/// then by row of the index.
///
/// # Errors
///
/// If `index_path` is not an index or is damaged, if the index does not support the settings, or if
/// something cannot be read or written. The outputs are then unchanged.
pub fn search_index(
    index_path: &Path,
    inputs: &[PathBuf],
    settings: &SearchSettings,
    reading: &IndexReadOptions,
    output: &OutputTarget,
    rejected: Option<&OutputTarget>,
    progress: &dyn ProgressListener,
) -> Result<SearchSummary> {
    let started = Instant::now();
    let bits = directory::read_manifest(index_path)?.bits;
    let job = SearchJob {
        index_path,
        inputs,
        settings,
        reading,
        output,
        rejected,
        progress,
    };
    let mut summary = run_in_pool(reading.threads, || by_width!(bits, run_search(&job)))?;
    summary.seconds = started.elapsed().as_secs_f64();
    Ok(summary)
}

struct SearchJob<'a> {
    index_path: &'a Path,
    inputs: &'a [PathBuf],
    settings: &'a SearchSettings,
    reading: &'a IndexReadOptions,
    output: &'a OutputTarget,
    rejected: Option<&'a OutputTarget>,
    progress: &'a dyn ProgressListener,
}

/// An index, opened for searching.
struct OpenIndex<C> {
    manifest: IndexManifest,
    recipe: Option<Recipe>,
    segments: Vec<(HammingSegment<C>, StoredSegment)>,
    /// Position of each segment's first row among all rows.
    bases: Vec<u64>,
}

fn open_whole_index<C: FingerprintCode>(index_path: &Path) -> Result<OpenIndex<C>> {
    directory::read_consistently(index_path, |manifest| {
        let mut segments = Vec::new();
        let (mut bases, mut base) = (Vec::new(), 0);
        for entry in &manifest.segments {
            let index = open_index::<C>(index_path, &manifest, entry)?;
            segments.push((index, open_stored_segment(index_path, entry)?));
            bases.push(base);
            base += entry.rows;
        }
        Ok(OpenIndex {
            recipe: manifest.known_recipe(),
            manifest,
            segments,
            bases,
        })
    })
}

/// A match of a query. The order is that of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct QueryHit {
    query: u32,
    /// The distance; or for a similarity the bits of the double, inverted.
    rank: u64,
    position: u64,
}

impl QueryHit {
    fn similarity(self) -> f64 {
        f64::from_bits(!self.rank)
    }

    /// Returns the rank of a similarity. It works because doubles that are not negative are ordered
    /// like their bits.
    fn similarity_rank(similarity: f64) -> u64 {
        !similarity.to_bits()
    }
}

/// The results of a block.
struct SearchedBlock {
    rows: TableRows,
    bad: Vec<BadRow>,
    counts: SearchCounts,
}

#[derive(Default, Clone, Copy)]
struct SearchCounts {
    queries: u64,
    unfingerprinted: u64,
    without: u64,
    matched: u64,
    matches: u64,
    truncated: u64,
    bytes: u64,
}

impl SearchCounts {
    fn add_counts(&mut self, other: Self) {
        self.queries += other.queries;
        self.unfingerprinted += other.unfingerprinted;
        self.without += other.without;
        self.matched += other.matched;
        self.matches += other.matches;
        self.truncated += other.truncated;
        self.bytes += other.bytes;
    }
}

/// The queries of a block, and buffers that a thread reuses from block to block.
struct SearchWorker<C> {
    /// The fingerprints; a placeholder for queries without one.
    codes: Vec<C>,
    /// The queries without a fingerprint, with the keys of their texts.
    unfingerprinted: Vec<(u32, u128)>,
    /// The ids, concatenated, and in `id_ends` the end of each.
    ids: String,
    id_ends: Vec<usize>,
    /// The queries in the form in which the match plan compares them, if it does.
    documents: Vec<ComparedDocument>,
    matching: MatchScratch,
    hits: Vec<QueryHit>,
    scratch: AnalysisScratch,
    number: String,
    unpacked: Vec<UnpackedFrame>,
    stored: ComparedDocument,
}

impl<C> Default for SearchWorker<C> {
    fn default() -> Self {
        Self {
            codes: Vec::new(),
            unfingerprinted: Vec::new(),
            ids: String::new(),
            id_ends: Vec::new(),
            documents: Vec::new(),
            matching: MatchScratch::default(),
            hits: Vec::new(),
            scratch: AnalysisScratch::default(),
            number: String::new(),
            unpacked: Vec::new(),
            stored: ComparedDocument::default(),
        }
    }
}

impl<C> SearchWorker<C> {
    fn clear_queries(&mut self) {
        self.codes.clear();
        self.unfingerprinted.clear();
        self.ids.clear();
        self.id_ends.clear();
        self.documents.clear();
    }

    /// Returns `true` if a query has no fingerprint and matches only equal texts.
    fn is_unfingerprinted(&self, query: u32) -> bool {
        let unfingerprinted = &self.unfingerprinted;
        !unfingerprinted.is_empty()
            && unfingerprinted
                .binary_search_by_key(&query, |&(of, _)| of)
                .is_ok()
    }

    fn query_id(&self, query: usize) -> &str {
        let start = query
            .checked_sub(1)
            .map_or(0, |before| self.id_ends[before]);
        &self.ids[start..self.id_ends[query]]
    }
}

struct BlockSearcher<'a, C> {
    opened: &'a OpenIndex<C>,
    inputs: &'a InputSet,
    settings: &'a SearchSettings,
    search: SearchLimits,
    fingerprinter: RowFingerprinter,
    matcher: Option<&'a IndexMatcher>,
    verifier: Option<QueryVerifier>,
    template: TableRows,
}

fn run_search<C: FingerprintCode>(job: &SearchJob<'_>) -> Result<SearchSummary> {
    let started = Instant::now();
    let inputs = open_queries(job)?;
    job.progress.begin_stage(RunStage::Open, None);
    let opened = open_whole_index::<C>(job.index_path)?;
    let search = PlannedSearch::plan_search(job, &opened)?;
    let opening_seconds = started.elapsed().as_secs_f64();
    let rejected = RejectedRows::create_output(job.rejected)?;
    let mut table = create_match_table(job.output, job.settings, &inputs)?;
    let rows = OpenedRows::new(inputs, rejected, job.reading.strict, job.progress);
    let searcher = BlockSearcher::new(job, &opened, &search, &rows.inputs, table.new_rows())?;
    let mut counts = SearchCounts::default();
    parse_blocks_in_order(
        &rows.inputs,
        job.progress,
        |block, parse, worker: &mut SearchWorker<C>, emit| {
            let mut found = searcher.read_queries(block, parse, worker)?;
            searcher.search_block(worker, &mut found, emit)?;
            Ok(found)
        },
        |found: SearchedBlock| {
            rows.report_rows(&found.bad, found.counts.queries)?;
            counts.add_counts(found.counts);
            table.append_rows(found.rows)
        },
    )?;
    rows.refuse_useless()?;
    table.finish_table()?;
    let settings = job.settings;
    let compared = settings.check.filter(TextCheck::compares_texts);
    let recipe = opened.recipe.as_ref();
    let by_distance = settings.candidates == SearchCandidates::Distance;
    Ok(SearchSummary {
        queries: counts.queries,
        unfingerprinted: counts.unfingerprinted,
        empty: counts.without,
        matched: counts.matched,
        matches: counts.matches,
        truncated: counts.truncated,
        rejected: rows.into_rejected().finish_output()?,
        bytes: counts.bytes,
        seconds: 0.0,
        opening_seconds,
        fingerprints: opened.manifest.count_live_rows(),
        distance: by_distance.then_some(search.distance.get()),
        threshold: compared.map(|check| check.threshold.get()),
        measure: compared.map(|check| check.measure.name()),
        candidates: describe_candidates(settings.candidates, search.plan.as_ref(), search.distance),
        recipe: recipe.map(|recipe| recipe.name.clone()),
        recipe_id: recipe.map(|recipe| recipe.recipe_id().to_string()),
    })
}

/// Opens the inputs with the queries, and checks the outputs.
fn open_queries(job: &SearchJob<'_>) -> Result<InputSet> {
    let IndexReadOptions { content, read, .. } = job.reading;
    let outputs = || [Some(job.output), job.rejected].into_iter().flatten();
    outputs().try_for_each(|output| refuse_index(output, job.index_path))?;
    let read_options = content.read_options(read, job.rejected.is_some())?;
    let inputs = InputSet::open_paths(job.inputs, &read_options)?;
    outputs().try_for_each(|output| check_output(output, &inputs))?;
    Ok(inputs)
}

fn create_match_table(
    output: &OutputTarget,
    settings: &SearchSettings,
    inputs: &InputSet,
) -> Result<TableWriter> {
    let columns = [
        TableColumn::Text("query"),
        TableColumn::Text("match"),
        match settings.check {
            None => TableColumn::Integer("distance"),
            Some(_) => TableColumn::Number("similarity"),
        },
        TableColumn::Bool("truncated"),
    ];
    let columns = match settings.limit {
        Some(_) => &columns[..],
        None => &columns[..3],
    };
    TableWriter::create_table(output, columns, Some(inputs))
}

/// The search for candidates of queries in an index, and their check.
struct PlannedSearch {
    distance: Distance,
    /// The match plan, if texts are compared.
    plan: Option<MatchPlan>,
    /// Finds candidates by the match plan; `None` if they are found by distance or blocks.
    matcher: Option<IndexMatcher>,
}

impl PlannedSearch {
    fn plan_search<C: FingerprintCode>(job: &SearchJob<'_>, opened: &OpenIndex<C>) -> Result<Self> {
        let distance = opened.check_job(job)?;
        let plan = opened.match_plan(job.settings, distance)?;
        let by_plan = job.settings.candidates == SearchCandidates::Plan;
        let matcher = opened.open_matcher(job.index_path, plan.as_ref().filter(|_| by_plan))?;
        Ok(Self {
            distance,
            plan,
            matcher,
        })
    }

    /// Returns what compares candidates that are found by distance or blocks, if they are compared.
    fn new_verifier(&self, recipe: Option<&Recipe>) -> Option<QueryVerifier> {
        if self.matcher.is_some() {
            return None;
        }
        let (recipe, plan) = recipe.zip(self.plan.as_ref())?;
        let comparer = DocumentComparer::new(recipe, plan);
        let analyzer = TextAnalyzer::new(recipe).with_extras(comparer.required_extras());
        Some(QueryVerifier { analyzer, comparer })
    }
}

/// Compares candidates that are found by distance or blocks.
struct QueryVerifier {
    analyzer: TextAnalyzer,
    comparer: DocumentComparer,
}

/// Describes how candidates are found.
fn describe_candidates(
    candidates: SearchCandidates,
    plan: Option<&MatchPlan>,
    distance: Distance,
) -> String {
    let bands = plan.and_then(|plan| Some((plan.join_plan()?, plan.band_plan()?)));
    match (candidates, bands) {
        (SearchCandidates::Plan, _) if plan.is_some_and(MatchPlan::joins_by_containment) => {
            "exact join by containment".to_owned()
        }
        (SearchCandidates::Plan, Some((join, bands))) => format!(
            "exact join up to {} features, {} bands of {} slots above",
            join.max_features, bands.bands, bands.rows
        ),
        (SearchCandidates::Blocks, _) => {
            format!("one of {} equal blocks of bits", distance.get() + 1)
        }
        _ => format!("distance at most {}", distance.get()),
    }
}

/// Refuses an output in the directory of the index.
pub(super) fn refuse_index(output: &OutputTarget, index_path: &Path) -> Result<()> {
    let OutputTarget::Path(path) = output else {
        return Ok(());
    };
    let directory = path.parent().unwrap_or(path).canonicalize();
    match (directory, index_path.canonicalize()) {
        (Ok(directory), Ok(own)) if directory == own => Err(Error::usage_error(format!(
            "the output {} is inside the index {}: write to another place",
            display_path(path),
            display_path(index_path)
        ))),
        _ => Ok(()),
    }
}

impl<C: FingerprintCode> OpenIndex<C> {
    /// Refuses settings that the index does not support. Returns the distance.
    fn check_job(&self, job: &SearchJob<'_>) -> Result<Distance> {
        let (settings, manifest) = (job.settings, &self.manifest);
        let index_path = display_path(job.index_path);
        let most = manifest.distance;
        let distance = settings.distance.unwrap_or(most);
        if distance > most {
            return Err(Error::usage_error(format!(
                "the distance {distance} is above {most}, the distance of the index {index_path}: \
                 give at most {most}, or build an index with --distance {distance}"
            )));
        }
        if let Some(query_recipe) = &settings.recipe {
            self.check_recipe(query_recipe, &index_path)?;
        }
        let blocks = matches!(manifest.plan.as_str(), "blocks" | "4x16");
        if settings.candidates == SearchCandidates::Blocks && !blocks {
            return Err(Error::usage_error(format!(
                "--candidates blocks needs an index of equal blocks, and the plan of {index_path} is \
                 `{}`: build it with --plan blocks",
                manifest.plan
            )));
        }
        let check = settings.check.filter(TextCheck::compares_texts);
        let compares = check.is_some();
        let by_plan = settings.candidates == SearchCandidates::Plan;
        let by_sequences = check.is_some_and(|check| check.measure.sequence_measure().is_some());
        let by_records = by_plan && !by_sequences;
        if by_plan && !manifest.matching && job.reading.content == RowContent::Documents {
            return Err(Error::usage_error(format!(
                "the index {index_path} stores only fingerprints, which find near texts but not all \
                 texts at a threshold: build it again with `lookalike index build {index_path} IN \
                 --force`, without --distance-only, or give --distance K with an index built with \
                 --texts to compare only texts within that distance"
            )));
        }
        if compares && !by_records && !manifest.texts {
            return Err(Error::usage_error(format!(
                "this measure compares texts, which the index {index_path} does not store: build it \
                 with --texts, or leave --verify and --threshold out to get distances"
            )));
        }
        if compares && job.reading.content != RowContent::Documents {
            return Err(Error::usage_error(
                "similarities need texts, and the queries are bare fingerprints: give documents, \
                 or leave --verify and --threshold out to get distances",
            ));
        }
        Ok(Distance::new(distance, manifest.bits)?)
    }

    /// Returns the match plan, if texts are compared.
    fn match_plan(
        &self,
        settings: &SearchSettings,
        distance: Distance,
    ) -> Result<Option<MatchPlan>> {
        let check = settings.check.filter(TextCheck::compares_texts);
        let (Some(check), Some(recipe)) = (check, &self.recipe) else {
            return Ok(None);
        };
        let plan = MatchPlan::new(recipe, check.plan_settings(settings.candidates, distance))?;
        let reach = plan.join_plan().map_or(0, |join| join.max_partner_features);
        if reach > MOST_INDEXED && !plan.joins_by_containment() {
            return Err(Error::usage_error(format!(
                "the threshold {} needs documents of {reach} features, but an index covers \
                 those of up to {MOST_INDEXED}: give a higher threshold",
                check.threshold.get()
            )));
        }
        Ok(Some(plan))
    }

    fn open_matcher(
        &self,
        index_path: &Path,
        plan: Option<&MatchPlan>,
    ) -> Result<Option<IndexMatcher>> {
        let (Some(plan), Some(recipe)) = (plan, &self.recipe) else {
            return Ok(None);
        };
        let stored_segments = self
            .segments
            .iter()
            .map(|(_, stored)| (&stored.entry, stored));
        let space = BuildSpace::default();
        IndexMatcher::open_buckets(index_path, &space, recipe, plan, stored_segments).map(Some)
    }

    fn check_recipe(&self, query_recipe: &Recipe, index_path: &str) -> Result<()> {
        let named = |recipe: &Recipe| format!("{} ({})", recipe.name, recipe.recipe_id());
        match &self.recipe {
            Some(own) if own.recipe_id() == query_recipe.recipe_id() => Ok(()),
            own => Err(Error::usage_error(format!(
                "the index {index_path} has {}, the queries have the recipe {}: fingerprints of two \
                 recipes never compare",
                own.as_ref().map_or_else(
                    || "fingerprints of an unknown recipe".to_owned(),
                    |own| format!("the recipe {}", named(own))
                ),
                named(query_recipe)
            ))),
        }
    }

    /// Returns the segment of a row, and the row's index in that segment.
    fn locate_row(&self, position: u64) -> (usize, u64) {
        let segment = self.bases.partition_point(|&base| base <= position) - 1;
        (segment, position - self.bases[segment])
    }
}

impl<'a, C: FingerprintCode> BlockSearcher<'a, C> {
    fn new(
        job: &'a SearchJob<'a>,
        opened: &'a OpenIndex<C>,
        search: &'a PlannedSearch,
        inputs: &'a InputSet,
        template: TableRows,
    ) -> Result<Self> {
        let settings = job.settings;
        let recipe = opened.recipe.as_ref();
        let id = &job.reading.read.fields.id;
        let bits = opened.manifest.bits;
        Ok(Self {
            opened,
            inputs,
            settings,
            search: SearchLimits {
                distance: match settings.candidates {
                    SearchCandidates::Distance => Some(search.distance),
                    SearchCandidates::Blocks | SearchCandidates::Plan => None,
                },
                limit: usize::MAX,
            },
            fingerprinter: RowFingerprinter::new(&job.reading.content, recipe, bits, id)?,
            matcher: search.matcher.as_ref(),
            verifier: search.new_verifier(recipe),
            template,
        })
    }

    /// Parses the rows of a block, and prepares their queries in `worker`.
    fn read_queries(
        &self,
        block: &InputBlock,
        parse: &mut ParseScratch,
        worker: &mut SearchWorker<C>,
    ) -> Result<SearchedBlock> {
        let mut found = self.new_block_result();
        worker.clear_queries();
        self.inputs.parse_block(block, parse, &mut |row| {
            let row = match row {
                Ok(row) => row,
                Err(bad) => {
                    found.counts.bytes += u64::from(bad.place.byte_length());
                    found.bad.push(bad);
                    return Ok(());
                }
            };
            found.counts.bytes += u64::from(row.place.byte_length());
            if let Err(reason) = self.prepare_query(&row, worker, &mut found.counts) {
                found.bad.push(make_bad_row(self.inputs, &row, reason));
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// Prepares the query of a row. The error is the reason why the row cannot be used.
    fn prepare_query(
        &self,
        row: &InputRow<'_>,
        worker: &mut SearchWorker<C>,
        counts: &mut SearchCounts,
    ) -> Result<(), String> {
        let SearchWorker {
            codes,
            unfingerprinted,
            ids,
            id_ends,
            documents,
            scratch,
            number,
            ..
        } = worker;
        let needs_texts = self.matcher.is_some_and(IndexMatcher::needs_texts);
        let mut prepare = |analysis: &TextAnalysis<'_>| {
            if let Some(matcher) = self.matcher.filter(|_| !needs_texts) {
                documents.push(matcher.query_comparer().prepare_document(analysis));
            }
        };
        let prepared = self
            .fingerprinter
            .make_row(self.inputs, row, scratch, &mut prepare)?;
        let Some(query) = prepared else { return Ok(()) };
        counts.queries += 1;
        let code = match query.value {
            ComparedValue::Nothing => {
                counts.without += 1;
                return Ok(());
            }
            ComparedValue::Code(fingerprint) => fingerprint,
            ComparedValue::Text { key, code } => {
                counts.unfingerprinted += 1;
                unfingerprinted.push((codes.len() as u32, key));
                code
            }
        };
        codes.push(C::narrow_from(code));
        match query.id {
            Some(id) => ids.push_str(id),
            None => {
                number.clear();
                // Writing to a string does not fail.
                let _ = write!(number, "{}", row.number);
                ids.push_str(number);
            }
        }
        id_ends.push(ids.len());
        if let Some(matcher) = self.matcher.filter(|_| needs_texts) {
            let analysis = analyze_row(matcher.query_analyzer(), row, scratch);
            documents.push(matcher.query_comparer().prepare_document(&analysis));
        }
        if let Some(QueryVerifier { analyzer, comparer }) = &self.verifier {
            let analysis = analyze_row(analyzer, row, scratch);
            let mut document = ComparedDocument::default();
            comparer.fill_lists(&analysis, &mut document);
            documents.push(document);
        }
        Ok(())
    }

    fn new_block_result(&self) -> SearchedBlock {
        SearchedBlock {
            rows: self.template.empty_like(),
            bad: Vec::new(),
            counts: SearchCounts::default(),
        }
    }

    /// Searches for all queries of a block, in batches.
    fn search_block(
        &self,
        worker: &mut SearchWorker<C>,
        block: &mut SearchedBlock,
        emit: &EmitChunk<'_, SearchedBlock>,
    ) -> Result<()> {
        let (mut start, mut size) = (0, FIRST_QUERIES);
        while start < worker.codes.len() {
            let end = (start + size).min(worker.codes.len());
            let found = match &self.matcher {
                Some(matcher) => self.find_matches(matcher, worker, start..end)?,
                None => {
                    let found = self.find_candidates(worker, start, end);
                    self.verify_candidates(worker)?;
                    found
                }
            };
            self.list_matches(worker, block, emit)?;
            size = match found {
                0..MATCHES_AT_ONCE => (size * 4).min(MOST_QUERIES),
                _ => size,
            };
            let per_query = found.div_ceil(end - start).max(1);
            size = size.min((MATCHES_AT_ONCE / per_query).max(1));
            start = end;
        }
        Ok(())
    }

    /// Finds candidates of some queries by distance or blocks. Returns their number before
    /// verification.
    fn find_candidates(&self, worker: &mut SearchWorker<C>, start: usize, end: usize) -> usize {
        let mut hits = std::mem::take(&mut worker.hits);
        hits.clear();
        let queries = &worker.codes[start..end];
        let from = |query: usize| {
            worker
                .unfingerprinted
                .partition_point(|&(of, _)| (of as usize) < query)
        };
        let unfingerprinted = &worker.unfingerprinted[from(start)..from(end)];
        for ((index, stored), &base) in self.opened.segments.iter().zip(&self.opened.bases) {
            let all_count =
                stored.removed.count_rows() == 0 && stored.unfingerprinted.row_count() == 0;
            let counts = |row| {
                !stored.removed.contains_row(row) && !stored.unfingerprinted.contains_row(row)
            };
            index.search_queries(queries, &self.search, |query, found| {
                let query = (start + query) as u32;
                if (all_count || counts(found.row)) && !worker.is_unfingerprinted(query) {
                    hits.push(QueryHit {
                        query,
                        rank: found.distance.into(),
                        position: base + u64::from(found.row),
                    });
                }
            });
            for &(query, key) in unfingerprinted {
                let equal = stored.unfingerprinted.rows_with_key(key);
                let there = equal.filter(|&row| !stored.removed.contains_row(row));
                hits.extend(there.map(|row| QueryHit {
                    query,
                    rank: 0,
                    position: base + u64::from(row),
                }));
            }
        }
        worker.hits = hits;
        worker.hits.len()
    }

    /// Finds the matches of some queries with the match plan. Returns their number.
    fn find_matches(
        &self,
        matcher: &IndexMatcher,
        worker: &mut SearchWorker<C>,
        queries: std::ops::Range<usize>,
    ) -> Result<usize> {
        worker.hits.clear();
        let segments = self.opened.segments.iter().zip(&self.opened.bases);
        worker
            .unpacked
            .resize_with(self.opened.segments.len(), UnpackedFrame::default);
        for (number, ((_, stored), &base)) in segments.enumerate() {
            for query in queries.clone() {
                let segment = SearchedSegment {
                    number,
                    stored,
                    unpacked: &mut worker.unpacked[number],
                };
                let hits = &mut worker.hits;
                let add = |row: u32, _, similarity: Similarity| {
                    hits.push(QueryHit {
                        query: query as u32,
                        rank: QueryHit::similarity_rank(similarity.get()),
                        position: base + u64::from(row),
                    });
                };
                let document = &worker.documents[query];
                matcher.find_matches(document, segment, &mut worker.matching, add)?;
            }
        }
        Ok(worker.hits.len())
    }

    /// Replaces distances with similarities and drops candidates below the threshold.
    fn verify_candidates(&self, worker: &mut SearchWorker<C>) -> Result<()> {
        let Some(check) = self.settings.check else {
            return Ok(());
        };
        let bits = f64::from(self.opened.manifest.bits);
        let mut hits = std::mem::take(&mut worker.hits);
        if !check.compares_texts() {
            for hit in &mut hits {
                hit.rank = QueryHit::similarity_rank(1.0 - hit.rank as f64 / bits);
            }
            worker.hits = hits;
            return Ok(());
        }
        let Some(QueryVerifier { analyzer, comparer }) = &self.verifier else {
            worker.hits = hits;
            return Ok(());
        };
        // Sorting by position decompresses each frame of stored texts only once.
        hits.sort_unstable_by_key(|hit| (hit.position, hit.query));
        worker
            .unpacked
            .resize_with(self.opened.segments.len(), UnpackedFrame::default);
        let mut last = None;
        let mut kept = Vec::with_capacity(hits.len());
        for hit in hits {
            if worker.is_unfingerprinted(hit.query) {
                let rank = QueryHit::similarity_rank(1.0);
                kept.push(QueryHit { rank, ..hit });
                continue;
            }
            if last != Some(hit.position) {
                last = Some(hit.position);
                let (segment, row) = self.opened.locate_row(hit.position);
                let Some(texts) = &self.opened.segments[segment].1.texts else {
                    continue;
                };
                let text = texts.text_of_row(row, &mut worker.unpacked[segment])?;
                let analysis = analyzer.analyze_text(text, &mut worker.scratch);
                comparer.fill_lists(&analysis, &mut worker.stored);
            }
            let query = &worker.documents[hit.query as usize];
            if let Some(similarity) = comparer.verify_documents(query, &worker.stored)? {
                kept.push(QueryHit {
                    rank: QueryHit::similarity_rank(similarity.get()),
                    ..hit
                });
            }
        }
        worker.hits = kept;
        Ok(())
    }

    /// Formats the matches as rows of the table.
    fn list_matches(
        &self,
        worker: &mut SearchWorker<C>,
        block: &mut SearchedBlock,
        emit: &EmitChunk<'_, SearchedBlock>,
    ) -> Result<()> {
        let mut hits = std::mem::take(&mut worker.hits);
        hits.sort_unstable();
        for found in hits.chunk_by_mut(|a, b| a.query == b.query) {
            let listed = match self.settings.which {
                ListedMatches::All => &found[..],
                ListedMatches::Nearest(count) => &found[..found.len().min(count)],
                ListedMatches::First => {
                    found.sort_unstable_by_key(|hit| hit.position);
                    &found[..1]
                }
            };
            let limit = self.settings.limit.unwrap_or(usize::MAX);
            block.counts.matched += 1;
            let is_truncated = listed.len() > limit;
            block.counts.truncated += u64::from(is_truncated);
            for hit in &listed[..listed.len().min(limit)] {
                let (segment, row) = self.opened.locate_row(hit.position);
                let id = self.opened.segments[segment].1.ids.id_of_row(row)?;
                let value = match self.settings.check {
                    None => TableCell::Integer(hit.rank),
                    Some(_) => TableCell::Number(hit.similarity()),
                };
                let query = worker.query_id(hit.query as usize);
                let cells = [
                    TableCell::Text(query),
                    TableCell::Text(&id),
                    value,
                    TableCell::Bool(is_truncated),
                ];
                let columns = cells.len() - usize::from(self.settings.limit.is_none());
                block.rows.push_row(&cells[..columns])?;
                block.counts.matches += 1;
                if block.rows.approximate_bytes() >= CHUNK_BYTES {
                    emit(std::mem::replace(block, self.new_block_result()))?;
                }
            }
        }
        worker.hits = hits;
        Ok(())
    }
}
