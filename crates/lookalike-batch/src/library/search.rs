//! Searching an index: the matches of many queries, in the order of the queries.
//!
//! One thread parses a block of the input, searches for its queries and formats the result. The results
//! are written in order. The queries of a block are searched in batches, which become smaller if
//! queries have many matches, so that memory stays bounded.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Instant;

use lookalike::hamming::{Code, Search, Segment};
use lookalike::matching::{ComparedDocument, MOST_INDEXED};
use lookalike::plan::{self, Measure, Plan, Unit};
use lookalike::text::{Analysis, Analyzer, Extras, Scratch};
use lookalike::verify::{OfSequences, Weighted, containment, cosine, jaccard};
use lookalike::{Distance, Recipe, Similarity, Threshold};
use serde::Serialize;

use super::manifest::Manifest;
use super::matches::{MatchScratch, Matcher, SearchedSegment};
use super::rows::{Fingerprinter, Print};
use super::segments::{Part, open_index, open_part};
use super::texts::Unpacked;
use super::{Entries, Reading, by_width, directory};
use crate::error::{Error, Result, shown};
use crate::run::fingerprint::id_text;
use crate::run::ordered::{Emit, blocks_in_order};
use crate::run::read::{analyze, bad_row};
use crate::run::rejected::{BadRows, Rejected};
use crate::run::{Progress, Stage, in_pool};
use crate::sink::{Cell, Column, Output, TableRows, TableWriter, check_output};
use crate::source::{BadRow, Inputs};

/// Bytes of a block's results that are passed on before the block ends.
const PART_BYTES: usize = 8 << 20;

/// Matches that a batch of queries aims at.
const MATCHES_AT_ONCE: usize = 1 << 20;

/// Largest and first number of queries in a batch.
const MOST_QUERIES: usize = 1 << 15;
const FIRST_QUERIES: usize = 1 << 8;

/// The matches of a query that are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// All of them.
    All,
    /// The nearest matches, this many; ties are won by the rows that were added first.
    Nearest(usize),
    /// The match that was added first.
    First,
}

/// The rows that are compared with a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Candidates {
    /// The candidates of the check's match plan: rows that share a rare feature or a band of slots.
    Plan,
    /// Rows within the distance.
    Distance,
    /// Rows that share one of distance + 1 blocks of bits.
    Blocks,
}

/// The verification of candidates by their texts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Check {
    /// The Jaccard index of the sets of features, with the smallest similarity of a match.
    Jaccard(Threshold),
    /// The share of the smaller text's features that the other text also has.
    Containment(Threshold),
    /// The cosine of the weighted features.
    Cosine(Threshold),
    /// A similarity of the sequences of characters or words.
    Sequences(OfSequences, Unit, Threshold),
    /// No verification: the similarity is 1 − distance / bits.
    None,
}

impl Check {
    /// Returns the measure and the threshold, if texts are compared.
    pub fn measure(self) -> Option<(Measure, Threshold)> {
        Some(match self {
            Self::Jaccard(threshold) => (Measure::Jaccard, threshold),
            Self::Containment(threshold) => (Measure::Containment, threshold),
            Self::Cosine(threshold) => (Measure::Cosine, threshold),
            Self::Sequences(of, _, threshold) => match of {
                OfSequences::Levenshtein => (Measure::Levenshtein, threshold),
                OfSequences::Indel => (Measure::Indel, threshold),
                OfSequences::Substring => (Measure::Substring, threshold),
            },
            Self::None => return None,
        })
    }

    /// Returns the settings of the match plan with which a run finds the same matches.
    fn plan_settings(self) -> Option<plan::Settings> {
        let (measure, threshold) = self.measure()?;
        let unit = match self {
            Self::Sequences(_, unit, _) => unit,
            _ => Unit::default(),
        };
        Some(plan::Settings {
            threshold,
            measure,
            unit,
            ..plan::Settings::default()
        })
    }

    /// Returns `true` if texts are compared.
    fn compares(self) -> bool {
        self != Self::None
    }

    /// Returns the extras that analyses of the texts must contain.
    fn extras(self) -> Extras {
        Extras {
            characters: matches!(self, Self::Sequences(_, Unit::Characters, _)),
            sentences: None,
        }
    }

    /// Returns the similarity of two documents if it reaches the threshold.
    fn similarity(
        self,
        a: (&Material, usize),
        b: (&Material, usize),
    ) -> Result<Option<Similarity>> {
        let lists = || (a.0.values(a.1), b.0.values(b.1));
        let (similarity, threshold) = match self {
            Self::Jaccard(threshold) => (jaccard(lists().0, lists().1), threshold),
            Self::Containment(threshold) => (containment(lists().0, lists().1), threshold),
            Self::Cosine(threshold) => (cosine(a.0.weighted(a.1), b.0.weighted(b.1)), threshold),
            Self::Sequences(of, Unit::Characters, threshold) => {
                return Ok(of.similarity(a.0.characters(a.1), b.0.characters(b.1), threshold)?);
            }
            Self::Sequences(of, Unit::Words, threshold) => {
                return Ok(of.similarity(lists().0, lists().1, threshold)?);
            }
            Self::None => return Ok(None),
        };
        Ok(Some(similarity).filter(|&similarity| threshold.admits_similarity(similarity)))
    }
}

/// Inputs of the comparison for several documents, one after another. Only the list that the check
/// needs is filled.
#[derive(Default)]
struct Material {
    values: Vec<u64>,
    weighted: Vec<Weighted>,
    characters: Vec<u32>,
    ends: Vec<usize>,
}

impl Material {
    fn clear(&mut self) {
        self.values.clear();
        self.weighted.clear();
        self.characters.clear();
        self.ends.clear();
    }

    fn push(&mut self, check: Check, analysis: &Analysis<'_>) {
        let end = match check {
            Check::Cosine(_) => {
                analysis.weighted_features(&mut self.weighted);
                self.weighted.len()
            }
            Check::Sequences(_, Unit::Characters, _) => {
                self.characters.extend_from_slice(analysis.characters());
                self.characters.len()
            }
            Check::Sequences(_, Unit::Words, _) => {
                self.values.extend_from_slice(analysis.tokens());
                self.values.len()
            }
            Check::Jaccard(_) | Check::Containment(_) | Check::None => {
                analysis.features(&mut self.values);
                self.values.len()
            }
        };
        self.ends.push(end);
    }

    fn range(&self, at: usize) -> std::ops::Range<usize> {
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        start..self.ends[at]
    }

    fn values(&self, at: usize) -> &[u64] {
        &self.values[self.range(at)]
    }

    fn weighted(&self, at: usize) -> &[Weighted] {
        &self.weighted[self.range(at)]
    }

    fn characters(&self, at: usize) -> &[u32] {
        &self.characters[self.range(at)]
    }
}

/// Settings of a search.
#[derive(Debug, Clone)]
pub struct SearchSettings {
    /// Largest distance of a match; that of the index by default.
    pub distance: Option<u32>,
    /// The matches of a query that are listed.
    pub which: Which,
    /// Largest number of listed matches per query. Queries with more are counted.
    pub limit: Option<usize>,
    /// The rows that are compared.
    pub candidates: Candidates,
    /// The verification of candidates. If it is set, similarities are listed instead of distances.
    pub check: Option<Check>,
    /// The expected recipe. It is an error if the index has another one.
    pub recipe: Option<Recipe>,
}

/// The result of a search.
#[derive(Debug, Clone, Serialize)]
pub struct SearchSummary {
    /// Queries read.
    pub queries: u64,
    /// Queries without a fingerprint, which match only equal texts.
    pub poor: u64,
    /// Queries without text or fingerprint, which match nothing.
    pub without: u64,
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
    pub opening: f64,
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
/// If `library` is not an index or is damaged, if the index does not support the settings, or if
/// something cannot be read or written. The outputs are then unchanged.
pub fn search(
    library: &Path,
    inputs: &[PathBuf],
    settings: &SearchSettings,
    reading: &Reading,
    outputs: (&Output, Option<&Output>),
    progress: &dyn Progress,
) -> Result<SearchSummary> {
    let started = Instant::now();
    let bits = directory::read_manifest(library)?.bits;
    let job = Job {
        library,
        inputs,
        settings,
        reading,
        outputs,
        progress,
    };
    let mut summary = in_pool(reading.threads, || by_width!(bits, run(&job)))?;
    summary.seconds = started.elapsed().as_secs_f64();
    Ok(summary)
}

struct Job<'a> {
    library: &'a Path,
    inputs: &'a [PathBuf],
    settings: &'a SearchSettings,
    reading: &'a Reading,
    outputs: (&'a Output, Option<&'a Output>),
    progress: &'a dyn Progress,
}

/// An index, opened for searching.
struct Opened<C> {
    manifest: Manifest,
    recipe: Option<Recipe>,
    segments: Vec<(Segment<C>, Part)>,
    /// Position of each segment's first row among all rows.
    bases: Vec<u64>,
}

fn open<C: Code>(library: &Path) -> Result<Opened<C>> {
    directory::read_consistently(library, |manifest| {
        let mut segments = Vec::new();
        let (mut bases, mut base) = (Vec::new(), 0);
        for entry in &manifest.segments {
            let index = open_index::<C>(library, &manifest, entry)?;
            segments.push((index, open_part(library, entry)?));
            bases.push(base);
            base += entry.rows;
        }
        Ok(Opened {
            recipe: manifest.recipe(),
            manifest,
            segments,
            bases,
        })
    })
}

/// A match of a query. The order is that of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Hit {
    query: u32,
    /// The distance; or for a similarity the bits of the double, inverted.
    rank: u64,
    position: u64,
}

impl Hit {
    fn similarity(self) -> f64 {
        f64::from_bits(!self.rank)
    }

    /// Returns the rank of a similarity. It works because doubles that are not negative are ordered
    /// like their bits.
    fn rank_of(similarity: f64) -> u64 {
        !similarity.to_bits()
    }
}

/// The results of a block.
struct Made {
    rows: TableRows,
    bad: Vec<BadRow>,
    counts: Counts,
}

#[derive(Default, Clone, Copy)]
struct Counts {
    queries: u64,
    poor: u64,
    without: u64,
    matched: u64,
    matches: u64,
    truncated: u64,
    bytes: u64,
}

impl Counts {
    fn add(&mut self, other: Self) {
        self.queries += other.queries;
        self.poor += other.poor;
        self.without += other.without;
        self.matched += other.matched;
        self.matches += other.matches;
        self.truncated += other.truncated;
        self.bytes += other.bytes;
    }
}

/// The queries of a block, and buffers that a thread reuses from block to block.
struct Worker<C> {
    /// The fingerprints; a placeholder for queries without one.
    codes: Vec<C>,
    /// The queries without a fingerprint, with the keys of their texts.
    poor: Vec<(u32, u128)>,
    /// The ids, concatenated, and in `id_ends` the end of each.
    ids: String,
    id_ends: Vec<usize>,
    /// The inputs of the comparison for each query, if candidates are verified without a match plan.
    material: Material,
    /// The queries in the form in which the match plan compares them, if it finds the candidates.
    documents: Vec<ComparedDocument>,
    matching: MatchScratch,
    hits: Vec<Hit>,
    scratch: Scratch,
    number: String,
    unpacked: Vec<Unpacked>,
    other: Material,
}

impl<C> Default for Worker<C> {
    fn default() -> Self {
        Self {
            codes: Vec::new(),
            poor: Vec::new(),
            ids: String::new(),
            id_ends: Vec::new(),
            material: Material::default(),
            documents: Vec::new(),
            matching: MatchScratch::default(),
            hits: Vec::new(),
            scratch: Scratch::default(),
            number: String::new(),
            unpacked: Vec::new(),
            other: Material::default(),
        }
    }
}

impl<C> Worker<C> {
    fn clear(&mut self) {
        self.codes.clear();
        self.poor.clear();
        self.ids.clear();
        self.id_ends.clear();
        self.material.clear();
        self.documents.clear();
    }

    /// Returns `true` if a query has no fingerprint and matches only equal texts.
    fn is_poor(&self, query: u32) -> bool {
        let poor = &self.poor;
        !poor.is_empty() && poor.binary_search_by_key(&query, |&(of, _)| of).is_ok()
    }

    fn id(&self, query: usize) -> &str {
        let start = query
            .checked_sub(1)
            .map_or(0, |before| self.id_ends[before]);
        &self.ids[start..self.id_ends[query]]
    }
}

struct Searcher<'a, C> {
    opened: &'a Opened<C>,
    settings: &'a SearchSettings,
    search: Search,
    matcher: Option<Matcher>,
    analyzer: Option<Analyzer>,
    template: TableRows,
}

fn run<C: Code>(job: &Job<'_>) -> Result<SearchSummary> {
    let started = Instant::now();
    let settings = job.settings;
    let Reading {
        entries, options, ..
    } = job.reading;
    let (output, rejected) = job.outputs;
    for output in [Some(output), rejected].into_iter().flatten() {
        refuse_library(output, job.library)?;
    }
    let again = rejected.is_some();
    let inputs = Inputs::open(job.inputs, &entries.read_options(options, again)?)?;
    for output in [Some(output), rejected].into_iter().flatten() {
        check_output(output, &inputs)?;
    }
    job.progress.begin(Stage::Open, None);
    let opened = open::<C>(job.library)?;
    let distance = opened.check(job)?;
    let plan = opened.plan(settings)?;
    let matcher = opened.matcher(job.library, plan.as_ref())?;
    let opening = started.elapsed().as_secs_f64();
    let id = &options.fields.id;
    let recipe = opened.recipe.as_ref();
    let fingerprinter = Fingerprinter::new(entries, recipe, opened.manifest.bits, id)?;
    let columns = [
        Column::Text("query"),
        Column::Text("match"),
        match settings.check {
            None => Column::Integer("distance"),
            Some(_) => Column::Number("similarity"),
        },
        Column::Bool("truncated"),
    ];
    let columns = match settings.limit {
        Some(_) => &columns[..],
        None => &columns[..3],
    };
    let rejected = Rejected::create(rejected)?;
    let bad_rows = BadRows {
        inputs: &inputs,
        rejected: &rejected,
        strict: job.reading.strict,
        progress: job.progress,
        tally: Mutex::default(),
    };
    let mut table = TableWriter::create(output, columns, Some(&inputs))?;
    let compares = settings.check.filter(|check| check.compares());
    let searcher = Searcher {
        opened: &opened,
        settings,
        search: Search {
            distance: match settings.candidates {
                Candidates::Distance => Some(distance),
                Candidates::Blocks | Candidates::Plan => None,
            },
            limit: usize::MAX,
        },
        matcher,
        analyzer: recipe
            .zip(compares.filter(|_| plan.is_none()))
            .map(|(recipe, check)| Analyzer::new(recipe).with_extras(check.extras())),
        template: table.rows(),
    };
    let mut counts = Counts::default();
    blocks_in_order(
        &inputs,
        job.progress,
        |block, parse, worker: &mut Worker<C>, emit| {
            let mut made = searcher.made();
            worker.clear();
            inputs.parse(block, parse, &mut |row| {
                let row = match row {
                    Ok(row) => row,
                    Err(bad) => {
                        made.counts.bytes += u64::from(bad.place.length());
                        made.bad.push(bad);
                        return Ok(());
                    }
                };
                made.counts.bytes += u64::from(row.place.length());
                let documents = &mut worker.documents;
                let mut prepare = |analysis: &Analysis<'_>| {
                    if let Some(matcher) = searcher.matcher.as_ref().filter(|it| !it.needs_texts())
                    {
                        documents.push(matcher.comparer().prepare(analysis));
                    }
                };
                match fingerprinter.item(&inputs, &row, &mut worker.scratch, &mut prepare) {
                    Err(reason) => made.bad.push(bad_row(&inputs, &row, reason)),
                    Ok(None) => {}
                    Ok(Some(item)) => {
                        made.counts.queries += 1;
                        let code = match item.print {
                            Print::Nothing => {
                                made.counts.without += 1;
                                return Ok(());
                            }
                            Print::Code(fingerprint) => fingerprint,
                            Print::Text { key, code } => {
                                made.counts.poor += 1;
                                worker.poor.push((worker.codes.len() as u32, key));
                                code
                            }
                        };
                        worker.codes.push(C::narrow(code));
                        match item.id {
                            Some(id) => worker.ids.push_str(id),
                            None => {
                                let row = crate::source::Row { id: None, ..row };
                                worker.ids.push_str(id_text(&row, &mut worker.number));
                            }
                        }
                        worker.id_ends.push(worker.ids.len());
                        if let Some(matcher) =
                            searcher.matcher.as_ref().filter(|it| it.needs_texts())
                        {
                            let analysis = analyze(matcher.analyzer(), &row, &mut worker.scratch);
                            worker.documents.push(matcher.comparer().prepare(&analysis));
                        }
                        if let (Some(analyzer), Some(check)) = (&searcher.analyzer, compares) {
                            let analysis = analyze(analyzer, &row, &mut worker.scratch);
                            worker.material.push(check, &analysis);
                        }
                    }
                }
                Ok(())
            })?;
            searcher.search(worker, &mut made, emit)?;
            Ok(made)
        },
        |made: Made| {
            bad_rows.tell(&made.bad, made.counts.queries)?;
            counts.add(made.counts);
            table.append(made.rows)
        },
    )?;
    bad_rows.refuse_useless()?;
    table.finish()?;
    Ok(SearchSummary {
        queries: counts.queries,
        poor: counts.poor,
        without: counts.without,
        matched: counts.matched,
        matches: counts.matches,
        truncated: counts.truncated,
        rejected: rejected.finish()?,
        bytes: counts.bytes,
        seconds: 0.0,
        opening,
        fingerprints: opened.manifest.live(),
        distance: (settings.candidates == Candidates::Distance).then_some(distance.get()),
        threshold: settings.threshold(),
        measure: settings.measure(),
        candidates: describe_candidates(settings.candidates, plan.as_ref(), distance),
        recipe: recipe.map(|recipe| recipe.name.clone()),
        recipe_id: recipe.map(|recipe| recipe.id().to_string()),
    })
}

impl SearchSettings {
    fn threshold(&self) -> Option<f64> {
        let (_, threshold) = self.check?.measure()?;
        Some(threshold.get())
    }

    fn measure(&self) -> Option<&'static str> {
        let (measure, _) = self.check?.measure()?;
        Some(match measure {
            Measure::Jaccard | Measure::Sketch => "jaccard",
            Measure::Containment => "containment",
            Measure::Cosine => "cosine",
            Measure::Levenshtein => "levenshtein",
            Measure::Indel => "indel",
            Measure::Substring => "lcs",
        })
    }
}

/// Describes how candidates are found.
fn describe_candidates(candidates: Candidates, plan: Option<&Plan>, distance: Distance) -> String {
    let bands = plan.and_then(|plan| Some((plan.join()?, plan.bands()?)));
    match (candidates, bands) {
        (Candidates::Plan, Some((join, bands))) => format!(
            "exact join up to {} features, {} bands of {} slots above",
            join.short, bands.bands, bands.rows
        ),
        (Candidates::Blocks, _) => format!("one of {} equal blocks of bits", distance.get() + 1),
        _ => format!("distance at most {}", distance.get()),
    }
}

/// Refuses an output in the directory of the index.
fn refuse_library(output: &Output, library: &Path) -> Result<()> {
    let Output::Path(path) = output else {
        return Ok(());
    };
    let directory = path.parent().unwrap_or(path).canonicalize();
    match (directory, library.canonicalize()) {
        (Ok(directory), Ok(own)) if directory == own => Err(Error::usage(format!(
            "the output {} is inside the index {}: write to another place",
            shown(path),
            shown(library)
        ))),
        _ => Ok(()),
    }
}

impl<C: Code> Opened<C> {
    /// Refuses settings that the index does not support. Returns the distance.
    fn check(&self, job: &Job<'_>) -> Result<Distance> {
        let (settings, manifest) = (job.settings, &self.manifest);
        let library = shown(job.library);
        let most = manifest.distance;
        let distance = settings.distance.unwrap_or(most);
        if distance > most {
            return Err(Error::usage(format!(
                "the distance {distance} is above {most}, the distance of the index {library}: \
                 give at most {most}, or build an index with --distance {distance}"
            )));
        }
        if let Some(asked) = &settings.recipe {
            self.check_recipe(asked, &library)?;
        }
        let blocks = matches!(manifest.plan.as_str(), "blocks" | "4x16");
        if settings.candidates == Candidates::Blocks && !blocks {
            return Err(Error::usage(format!(
                "--candidates blocks needs an index of equal blocks, and the plan of {library} is \
                 `{}`: build it with --plan blocks",
                manifest.plan
            )));
        }
        let compares = settings.check.is_some_and(Check::compares);
        let by_plan = settings.candidates == Candidates::Plan;
        let by_records = by_plan && !matches!(settings.check, Some(Check::Sequences(..)));
        if by_plan && !manifest.matching && job.reading.entries == Entries::Documents {
            return Err(Error::usage(format!(
                "the index {library} stores only fingerprints, which find near texts but not all \
                 texts at a threshold: build it again with `lookalike index build {library} IN \
                 --force`, without --distance-only, or give --distance K with an index built with \
                 --texts to compare only texts within that distance"
            )));
        }
        if compares && !by_records && !manifest.texts {
            return Err(Error::usage(format!(
                "this measure compares texts, which the index {library} does not store: build it \
                 with --texts, or leave --verify and --threshold out to get distances"
            )));
        }
        if compares && job.reading.entries != Entries::Documents {
            return Err(Error::usage(
                "similarities need texts, and the queries are bare fingerprints: give documents, \
                 or leave --verify and --threshold out to get distances",
            ));
        }
        Ok(Distance::new(distance, manifest.bits)?)
    }

    /// Returns the match plan, if it finds the candidates.
    fn plan(&self, settings: &SearchSettings) -> Result<Option<Plan>> {
        let plan_settings = settings.check.and_then(Check::plan_settings);
        match (settings.candidates, plan_settings, &self.recipe) {
            (Candidates::Plan, Some(plan_settings), Some(recipe)) => {
                let plan = Plan::new(recipe, plan_settings)?;
                let reach = plan.join().map_or(0, |join| join.reach);
                if reach > MOST_INDEXED {
                    return Err(Error::usage(format!(
                        "the threshold {} needs documents of {reach} features, but an index covers \
                         those of up to {MOST_INDEXED}: give a higher threshold",
                        plan_settings.threshold.get()
                    )));
                }
                Ok(Some(plan))
            }
            _ => Ok(None),
        }
    }

    fn matcher(&self, library: &Path, plan: Option<&Plan>) -> Result<Option<Matcher>> {
        let (Some(plan), Some(recipe)) = (plan, &self.recipe) else {
            return Ok(None);
        };
        let parts = self.segments.iter().map(|(_, part)| (&part.entry, part));
        Matcher::open(library, recipe, plan, parts).map(Some)
    }

    fn check_recipe(&self, asked: &Recipe, library: &str) -> Result<()> {
        let named = |recipe: &Recipe| format!("{} ({})", recipe.name, recipe.id());
        match &self.recipe {
            Some(own) if own.id() == asked.id() => Ok(()),
            own => Err(Error::usage(format!(
                "the index {library} has {}, the queries have the recipe {}: fingerprints of two \
                 recipes never compare",
                own.as_ref().map_or_else(
                    || "fingerprints of an unknown recipe".to_owned(),
                    |own| format!("the recipe {}", named(own))
                ),
                named(asked)
            ))),
        }
    }

    /// Returns the segment of a row, and the row's index in that segment.
    fn locate(&self, position: u64) -> (usize, u64) {
        let segment = self.bases.partition_point(|&base| base <= position) - 1;
        (segment, position - self.bases[segment])
    }
}

impl<C: Code> Searcher<'_, C> {
    fn made(&self) -> Made {
        Made {
            rows: self.template.empty(),
            bad: Vec::new(),
            counts: Counts::default(),
        }
    }

    /// Searches for all queries of a block, in batches.
    fn search(&self, worker: &mut Worker<C>, made: &mut Made, emit: &Emit<'_, Made>) -> Result<()> {
        let (mut start, mut size) = (0, FIRST_QUERIES);
        while start < worker.codes.len() {
            let end = (start + size).min(worker.codes.len());
            let found = match &self.matcher {
                Some(matcher) => self.find_matches(matcher, worker, start..end)?,
                None => {
                    let found = self.find(worker, start, end);
                    self.check(worker)?;
                    found
                }
            };
            self.list(worker, made, emit)?;
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
    fn find(&self, worker: &mut Worker<C>, start: usize, end: usize) -> usize {
        let mut hits = std::mem::take(&mut worker.hits);
        hits.clear();
        let queries = &worker.codes[start..end];
        let from = |query: usize| {
            worker
                .poor
                .partition_point(|&(of, _)| (of as usize) < query)
        };
        let poor = &worker.poor[from(start)..from(end)];
        for ((index, part), &base) in self.opened.segments.iter().zip(&self.opened.bases) {
            let all_count = part.removed.count() == 0 && part.poor.count() == 0;
            let counts = |row| !part.removed.contains(row) && !part.poor.contains(row);
            index.search(queries, &self.search, |query, found| {
                let query = (start + query) as u32;
                if (all_count || counts(found.row)) && !worker.is_poor(query) {
                    hits.push(Hit {
                        query,
                        rank: found.distance.into(),
                        position: base + u64::from(found.row),
                    });
                }
            });
            for &(query, key) in poor {
                let equal = part.poor.rows_of(key);
                let there = equal.filter(|&row| !part.removed.contains(row));
                hits.extend(there.map(|row| Hit {
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
        matcher: &Matcher,
        worker: &mut Worker<C>,
        queries: std::ops::Range<usize>,
    ) -> Result<usize> {
        worker.hits.clear();
        let segments = self.opened.segments.iter().zip(&self.opened.bases);
        worker
            .unpacked
            .resize_with(self.opened.segments.len(), Unpacked::default);
        for (number, ((_, part), &base)) in segments.enumerate() {
            for query in queries.clone() {
                let segment = SearchedSegment {
                    number,
                    part,
                    unpacked: &mut worker.unpacked[number],
                };
                let hits = &mut worker.hits;
                let add = |row: u32, similarity: f64| {
                    hits.push(Hit {
                        query: query as u32,
                        rank: Hit::rank_of(similarity),
                        position: base + u64::from(row),
                    });
                };
                let document = &worker.documents[query];
                matcher.find(document, segment, &mut worker.matching, add)?;
            }
        }
        Ok(worker.hits.len())
    }

    /// Replaces distances with similarities and drops candidates below the threshold.
    fn check(&self, worker: &mut Worker<C>) -> Result<()> {
        let Some(check) = self.settings.check else {
            return Ok(());
        };
        let bits = f64::from(self.opened.manifest.bits);
        let mut hits = std::mem::take(&mut worker.hits);
        if !check.compares() {
            for hit in &mut hits {
                hit.rank = Hit::rank_of(1.0 - hit.rank as f64 / bits);
            }
            worker.hits = hits;
            return Ok(());
        }
        let Some(analyzer) = &self.analyzer else {
            worker.hits = hits;
            return Ok(());
        };
        // Sorting by position decompresses each frame of stored texts only once.
        hits.sort_unstable_by_key(|hit| (hit.position, hit.query));
        worker
            .unpacked
            .resize_with(self.opened.segments.len(), Unpacked::default);
        let mut last = None;
        let mut kept = Vec::with_capacity(hits.len());
        for hit in hits {
            if worker.is_poor(hit.query) {
                let rank = Hit::rank_of(1.0);
                kept.push(Hit { rank, ..hit });
                continue;
            }
            if last != Some(hit.position) {
                last = Some(hit.position);
                let (segment, row) = self.opened.locate(hit.position);
                let Some(texts) = &self.opened.segments[segment].1.texts else {
                    continue;
                };
                let text = texts.get(row, &mut worker.unpacked[segment])?;
                worker.other.clear();
                let analysis = analyzer.analyze(text, &mut worker.scratch);
                worker.other.push(check, &analysis);
            }
            let query = (&worker.material, hit.query as usize);
            if let Some(similarity) = check.similarity(query, (&worker.other, 0))? {
                kept.push(Hit {
                    rank: Hit::rank_of(similarity.get()),
                    ..hit
                });
            }
        }
        worker.hits = kept;
        Ok(())
    }

    /// Formats the matches as rows of the table.
    fn list(&self, worker: &mut Worker<C>, made: &mut Made, emit: &Emit<'_, Made>) -> Result<()> {
        let mut hits = std::mem::take(&mut worker.hits);
        hits.sort_unstable();
        for found in hits.chunk_by_mut(|a, b| a.query == b.query) {
            let wanted = match self.settings.which {
                Which::All => &found[..],
                Which::Nearest(count) => &found[..found.len().min(count)],
                Which::First => {
                    found.sort_unstable_by_key(|hit| hit.position);
                    &found[..1]
                }
            };
            let limit = self.settings.limit.unwrap_or(usize::MAX);
            made.counts.matched += 1;
            let is_truncated = wanted.len() > limit;
            made.counts.truncated += u64::from(is_truncated);
            for hit in &wanted[..wanted.len().min(limit)] {
                let (segment, row) = self.opened.locate(hit.position);
                let id = self.opened.segments[segment].1.names.get(row)?;
                let value = match self.settings.check {
                    None => Cell::Integer(hit.rank),
                    Some(_) => Cell::Number(hit.similarity()),
                };
                let query = worker.id(hit.query as usize);
                let cells = [
                    Cell::Text(query),
                    Cell::Text(&id),
                    value,
                    Cell::Bool(is_truncated),
                ];
                let columns = cells.len() - usize::from(self.settings.limit.is_none());
                made.rows.push(&cells[..columns])?;
                made.counts.matches += 1;
                if made.rows.bytes() >= PART_BYTES {
                    emit(std::mem::replace(made, self.made()))?;
                }
            }
        }
        worker.hits = hits;
        Ok(())
    }
}
