//! Conversion of arguments into validated settings.
//!
//! Contradictory options, and options that would have no effect, are refused. Nothing is clamped or ignored.

mod evaluation;

use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use lookalike::matching::{CopyPairs, SurveyKind};
use lookalike::plan::{self, MatchPlan, SENTENCES};
use lookalike::plant::PlantedEdit;
use lookalike::verify::SequenceMeasure;
use lookalike::{Recipe, Threshold};
use lookalike_batch::FingerprintNotation;
use lookalike_batch::index::{
    self, BuildSettings, IndexEntries, ListedMatches, SearchSettings, TextCheck,
};
use lookalike_batch::match_options::{MatchOptions, OptionSpelling, check_unit};
use lookalike_batch::recipes;
use lookalike_batch::run::{
    AuditSettings, DedupOutputs, FingerprintSettings, IdfSettings, KeepOrder, PairsOutputs,
    PlantOutputs, PlantSettings, RunInputs, RunSettings, RunWindow, SegmentSettings, SegmentTexts,
    SketchKind, TermListing,
};
use lookalike_io::sink::OutputTarget;
use lookalike_io::source::{self, IdField, InvalidText, ReadOptions, WantedFields};

use crate::args::{
    self, AuditArgs, BareFingerprintArgs, DedupArgs, FingerprintArgs, FormatArg, IdfArgs,
    IndexBuildArgs, InputArgs, InputFormatArgs, MatchRuleArgs, MatchingArgs, MeasureArg, MethodArg,
    NotationArg, PairsArgs, PlantArgs, ReadingArgs, RecipeChangeArgs, RunningArgs, SearchArgs,
    SegmentArgs, SketchMethod, UnitArg,
};

pub(crate) use lookalike_batch::run::{parse_duration, parse_goal, parse_keep};

pub(crate) use evaluation::{ClustersRun, EvalRun, TuneRun};

/// Settings of a dedup run.
pub(crate) struct DedupRun {
    pub(crate) inputs: RunInputs,
    pub(crate) settings: RunSettings,
    pub(crate) outputs: DedupOutputs,
    /// Outputs named by options, with their descriptions, for the summary.
    pub(crate) written: Vec<(&'static str, PathBuf)>,
}

/// Arguments that determine how much a run has to do.
#[derive(Clone, Copy)]
pub(crate) struct ForecastOf<'a> {
    pub(crate) sources: &'a InputArgs,
    pub(crate) against: &'a [PathBuf],
    pub(crate) matching: &'a MatchingArgs,
    pub(crate) input_format: &'a InputFormatArgs,
    pub(crate) reading: &'a ReadingArgs,
    pub(crate) running: &'a RunningArgs,
    pub(crate) keep: &'a KeepOrder,
    /// Purpose for which the run compares documents.
    pub(crate) followed: SurveyKind,
}

/// Settings of a pairs run.
pub(crate) struct PairsRun {
    pub(crate) inputs: RunInputs,
    pub(crate) settings: RunSettings,
    pub(crate) outputs: PairsOutputs,
}

impl DedupRun {
    pub(crate) fn new(args: &DedupArgs) -> Result<Self> {
        let settings = run_settings(
            &args.matching,
            &args.input_format,
            &args.reading,
            (&args.running, &args.audit),
            &args.keep,
        )?;
        let places = [
            ("kept rows", &args.output),
            ("removed", &args.removed),
            ("clusters", &args.clusters),
            ("rejected rows", &args.rejected),
        ];
        let named: Vec<_> = places
            .into_iter()
            .filter_map(|(what, place)| place.clone().map(|place| (what, place)))
            .collect();
        check_dedup_outputs(args, &named)?;
        let written = if args.dry_run { Vec::new() } else { named };
        let outputs = DedupOutputs {
            kept: args.output.as_deref().map(output_target),
            annotate: args.annotate,
            removed: args.removed.as_deref().map(output_target),
            clusters: args.clusters.as_deref().map(output_target),
            components: args.components,
            rejected: args.rejected.as_deref().map(output_target),
        };
        let nothing = DedupOutputs {
            components: args.components,
            ..DedupOutputs::default()
        };
        let outputs = if args.dry_run { nothing } else { outputs };
        let inputs = RunInputs {
            documents: args.sources.inputs.clone().into(),
            against: args.against.clone().into(),
        };
        Ok(Self {
            inputs,
            settings,
            outputs,
            written,
        })
    }
}

fn check_dedup_outputs(args: &DedupArgs, named: &[(&str, PathBuf)]) -> Result<()> {
    if named.is_empty() && !args.dry_run {
        bail!(
            "no output is given: give -o OUT for the kept rows, or --removed, --clusters or \
             --rejected, or --dry-run for the summary alone"
        );
    }
    if args.annotate && args.output.is_none() {
        bail!("--annotate adds fields to the rows of -o OUT, which is missing");
    }
    check_standard_output(
        named.iter().map(|(_, place)| place.as_path()),
        args.running.json,
    )?;
    let places: Vec<_> = named
        .iter()
        .map(|(what, place)| (*what, &**place))
        .collect();
    check_separate_outputs(&places, &[&args.matching.rule.recipe])
}

/// Checks that outputs, which are named in messages, go to different places, and do not overwrite a recipe of
/// the command line.
fn check_separate_outputs(named: &[(&str, &Path)], recipes: &[&str]) -> Result<()> {
    for recipe in recipes.iter().map(Path::new) {
        let is_recipe =
            |place| recipe.is_file() && recipe.extension().is_some() && is_one_file(recipe, place);
        if let Some((what, place)) = named.iter().find(|(_, place)| is_recipe(place)) {
            bail!(
                "{} is the recipe of --recipe, and {what} would overwrite it: name another file",
                place.display()
            );
        }
    }
    for (index, (what, place)) in named.iter().enumerate() {
        let mut before = named[..index].iter();
        if let Some((other, _)) = before.find(|(_, earlier)| is_one_file(earlier, place)) {
            bail!(
                "{other} and {what} cannot both be written to {}",
                place.display()
            );
        }
    }
    Ok(())
}

/// Returns `true` if two paths name the same file, which need not exist. A terminal may show several outputs.
fn is_one_file(one: &Path, other: &Path) -> bool {
    let shows_several = |path: &Path| {
        let metadata = path.metadata();
        is_standard(path) || metadata.is_ok_and(|it| it.file_type().is_char_device())
    };
    if one != other && (shows_several(one) || shows_several(other)) {
        return false;
    }
    let absolute = |path: &Path| -> Option<PathBuf> {
        if let Ok(path) = path.canonicalize() {
            return Some(path);
        }
        let parent = path.parent().filter(|it| !it.as_os_str().is_empty());
        let parent = parent.unwrap_or(Path::new(".")).canonicalize().ok()?;
        Some(parent.join(path.file_name()?))
    };
    let (one, other) = (absolute(one), absolute(other));
    one.is_some() && one == other
}

/// Returns the inputs and settings from which a run is predicted, or `None` if there are no inputs.
pub(crate) fn forecast_of(args: ForecastOf<'_>) -> Result<Option<(RunInputs, RunSettings)>> {
    if args.sources.inputs.is_empty() {
        return Ok(None);
    }
    let settings = run_settings(
        args.matching,
        args.input_format,
        args.reading,
        (args.running, &AuditArgs::default()),
        args.keep,
    )?;
    let inputs = RunInputs {
        documents: args.sources.inputs.clone().into(),
        against: args.against.to_vec().into(),
    };
    Ok(Some((inputs, settings)))
}

impl PairsRun {
    pub(crate) fn new(args: &PairsArgs) -> Result<Self> {
        let running = &args.running;
        let settings = run_settings(
            &args.matching,
            &args.input_format,
            &args.reading,
            (running, &args.audit),
            &KeepOrder::First,
        )?;
        let pairs = args.output.clone().unwrap_or_else(|| PathBuf::from("-"));
        let recipe = &args.matching.rule.recipe;
        let named = [("pairs", Some(&pairs)), rejected_output(&args.rejected)];
        check_outputs(&named, running.json, &[recipe])?;
        let outputs = PairsOutputs {
            pairs: output_target(&pairs),
            copies: match (args.all, args.distinct) {
                (true, _) => CopyPairs::All,
                (_, true) => CopyPairs::None,
                _ => CopyPairs::WithEarliest,
            },
            rejected: args.rejected.as_deref().map(output_target),
        };
        let inputs = RunInputs {
            documents: args.sources.inputs.clone().into(),
            against: args.against.clone().into(),
        };
        Ok(Self {
            inputs,
            settings,
            outputs,
        })
    }
}

/// Settings of a run that prints fingerprints.
pub(crate) struct FingerprintRun {
    pub(crate) settings: FingerprintSettings,
    pub(crate) output: OutputTarget,
    pub(crate) rejected: Option<OutputTarget>,
}

impl FingerprintRun {
    pub(crate) fn new(args: &FingerprintArgs) -> Result<Self> {
        let table = args.output.clone().unwrap_or_else(|| PathBuf::from("-"));
        let named = [("the table", Some(&table)), rejected_output(&args.rejected)];
        check_outputs(&named, args.running.json, &[&args.recipe])?;
        let recipe = load_recipe(&args.recipe, &args.changes)?;
        let method = args
            .method
            .unwrap_or_else(|| SketchMethod::default_for(&recipe));
        let sketch = match (method, args.digits) {
            (SketchMethod::Simhash, notation) => SketchKind::SimHash(notation_from_arg(notation)),
            (method, Some(_)) => bail!(
                "--digits is for SimHash fingerprints; --method {method}, here {how}, has only one \
                 notation: leave one of them out",
                method = match method {
                    SketchMethod::Bottomk => "bottomk",
                    SketchMethod::Sentences => "sentences",
                    _ => "minhash",
                },
                how = if args.method.is_some() {
                    "given"
                } else {
                    "the default of the recipe"
                }
            ),
            (SketchMethod::Minhash, None) => SketchKind::MinHash,
            (SketchMethod::Bottomk, None) => SketchKind::BottomK,
            (SketchMethod::Sentences, None) => {
                check_has_text(&args.reading, "--method sentences")?;
                SketchKind::Sentences(args.sentences.unwrap_or(SENTENCES))
            }
        };
        if let Some(sentences) = args.sentences
            && args.method != Some(SketchMethod::Sentences)
        {
            bail!("--sentences {sentences} is for --method sentences: give both or neither");
        }
        let settings = FingerprintSettings {
            recipe,
            sketch,
            read: read_options(args.input_format.format, &args.reading)?,
            threads: thread_count(args.running.threads),
            strict: args.running.strict,
        };
        Ok(Self {
            settings,
            output: output_target(&table),
            rejected: args.rejected.as_deref().map(output_target),
        })
    }
}

impl SketchMethod {
    /// Returns the default sketch of a recipe.
    pub(crate) fn default_for(recipe: &Recipe) -> Self {
        let scheme = recipe.scheme;
        let signs = scheme.is_some_and(|scheme| scheme.minhash_family().is_some());
        if signs { Self::Minhash } else { Self::Simhash }
    }
}

/// Settings of a run that lists tokens.
pub(crate) struct SegmentRun {
    pub(crate) texts: SegmentTexts,
    pub(crate) settings: SegmentSettings,
    pub(crate) output: OutputTarget,
    pub(crate) rejected: Option<OutputTarget>,
}

impl SegmentRun {
    pub(crate) fn new(args: &SegmentArgs) -> Result<Self> {
        let table = args.output.clone().unwrap_or_else(|| PathBuf::from("-"));
        let named = [("the table", Some(&table)), rejected_output(&args.rejected)];
        check_outputs(&named, args.running.json, &[&args.recipe])?;
        refuse_features(&args.reading)?;
        let settings = SegmentSettings {
            recipe: load_recipe(&args.recipe, &args.changes)?,
            listing: if args.weights {
                TermListing::Weights
            } else {
                TermListing::Tokens
            },
            read: read_options(args.input_format.format, &args.reading)?,
            threads: thread_count(args.running.threads),
            strict: args.running.strict,
        };
        let texts = if args.literal.is_empty() {
            SegmentTexts::Inputs(args.inputs.clone().into())
        } else {
            SegmentTexts::Literal(args.literal.clone())
        };
        Ok(Self {
            texts,
            settings,
            output: output_target(&table),
            rejected: args.rejected.as_deref().map(output_target),
        })
    }
}

/// Settings of a run that learns document frequencies.
pub(crate) struct IdfRun {
    pub(crate) settings: IdfSettings,
    pub(crate) output: OutputTarget,
    pub(crate) rejected: Option<OutputTarget>,
}

impl IdfRun {
    pub(crate) fn new(args: &IdfArgs) -> Result<Self> {
        let table = args.output.clone().unwrap_or_else(|| PathBuf::from("-"));
        let named = [("the table", Some(&table)), rejected_output(&args.rejected)];
        check_outputs(&named, args.running.json, &[&args.recipe])?;
        refuse_features(&args.reading)?;
        let settings = IdfSettings {
            recipe: load_recipe(&args.recipe, &args.changes)?,
            least_documents: args.min_documents,
            top: args.top,
            merge: args.merge.clone(),
            read: read_options(args.input_format.format, &args.reading)?,
            threads: thread_count(args.running.threads),
            strict: args.running.strict,
        };
        Ok(Self {
            settings,
            output: output_target(&table),
            rejected: args.rejected.as_deref().map(output_target),
        })
    }
}

/// Settings of a planting run.
pub(crate) struct PlantRun {
    pub(crate) settings: PlantSettings,
    pub(crate) outputs: PlantOutputs,
}

impl PlantRun {
    pub(crate) fn new(args: &PlantArgs) -> Result<Self> {
        check_plant_outputs(args)?;
        check_has_text(&args.reading, "lookalike plant")?;
        let threshold = args
            .threshold
            .unwrap_or(plan::MatchSettings::default().threshold);
        let near = match args.near {
            Some(near) => near,
            None => Threshold::new(0.75 * threshold.get())?,
        };
        let mut edits: Vec<_> = args.edits.iter().flatten().copied().collect();
        edits.sort_unstable();
        edits.dedup();
        if edits.is_empty() {
            edits = PlantedEdit::all_edits();
        }
        Ok(Self {
            settings: PlantSettings {
                recipe: load_recipe(&args.recipe, &args.changes)?,
                threshold,
                near,
                documents: args.documents,
                copies: args.copies,
                combined: args.combined,
                edits,
                pairs: args.pairs,
                seed: args.seed,
                read: read_options(args.input_format.format, &args.reading)?,
                threads: thread_count(args.running.threads),
                strict: args.running.strict,
            },
            outputs: PlantOutputs {
                corpus: output_target(&args.output),
                labels: output_target(&args.labels),
                rejected: args.rejected.as_deref().map(output_target),
            },
        })
    }
}

/// Checks the outputs. Standard output receives the table of effects, so nothing else may go there.
fn check_plant_outputs(args: &PlantArgs) -> Result<()> {
    let places = [
        ("the corpus", Some(&args.output)),
        ("the labels", Some(&args.labels)),
        ("rejected rows", args.rejected.as_ref()),
    ];
    let named: Vec<_> = places
        .into_iter()
        .filter_map(|(what, place)| Some((what, place?.as_path())))
        .collect();
    if let Some((what, _)) = named.iter().find(|(_, place)| is_standard(place)) {
        bail!("{what} cannot go to standard output, because it receives the table of effects");
    }
    check_separate_outputs(&named, &[&args.recipe])
}

/// Parses `--edits`.
pub(crate) fn parse_edits(text: &str) -> Result<Vec<PlantedEdit>> {
    Ok(PlantedEdit::parse_edits(text)?)
}

/// Refuses ready-made features for a command that makes them itself.
fn refuse_features(reading: &ReadingArgs) -> Result<()> {
    match &reading.features {
        None => Ok(()),
        Some(field) => bail!(
            "--features {field} has ready-made features, and this command computes them from \
             texts: leave it out"
        ),
    }
}

/// Refuses changes to a recipe if none is named.
fn refuse_changes(changes: &RecipeChangeArgs) -> Result<()> {
    match changes.set.first() {
        None => Ok(()),
        Some(change) => bail!(
            "--set {change} changes the recipe of --recipe, which is missing: give both or neither"
        ),
    }
}

/// Settings of building an index or adding to one.
pub(crate) struct AddRun {
    pub(crate) reading: index::IndexReadOptions,
    pub(crate) rejected: Option<OutputTarget>,
}

/// Returns the settings of a new index.
pub(crate) fn build_settings(args: &IndexBuildArgs) -> Result<BuildSettings> {
    let bare = reads_bare_fingerprints(&args.bare);
    let recipe = match (&args.recipe, bare) {
        (Some(name), _) => Some(load_recipe(name, &args.changes)?),
        (None, true) => {
            refuse_changes(&args.changes)?;
            None
        }
        (None, false) => Some(load_recipe("default", &args.changes)?),
    };
    if let (Some(recipe), Some(bits)) = (&recipe, args.bits)
        && recipe.simhash.bits != bits
    {
        bail!(
            "--bits {bits} contradicts the recipe {}, whose fingerprints have {} bits: give a \
             recipe with simhash.bits = {bits} (`lookalike recipe {} > mine.toml`)",
            recipe.name,
            recipe.simhash.bits,
            recipe.name
        );
    }
    let bits = recipe.as_ref().map(|recipe| recipe.simhash.bits);
    Ok(BuildSettings {
        bits: bits.or(args.bits).unwrap_or(64),
        recipe,
        distance: args.distance,
        plan: args.plan.clone(),
        memory: args.memory,
        texts: args.texts,
        distance_only: args.distance_only,
        replace: args.force,
    })
}

impl AddRun {
    pub(crate) fn new(
        inputs: &[PathBuf],
        bare: &BareFingerprintArgs,
        format: &InputFormatArgs,
        reading: &ReadingArgs,
        (running, rejected): (&RunningArgs, Option<&Path>),
    ) -> Result<Self> {
        check_standard_output(rejected.into_iter(), running.json)?;
        Ok(Self {
            reading: index_read_options(inputs, bare, format, reading, running)?,
            rejected: rejected.map(output_target),
        })
    }
}

fn reads_bare_fingerprints(bare: &BareFingerprintArgs) -> bool {
    bare.fingerprints || bare.fingerprint.is_some()
}

/// Returns how rows of an index, or queries, are read.
fn index_read_options(
    inputs: &[PathBuf],
    bare: &BareFingerprintArgs,
    format: &InputFormatArgs,
    reading: &ReadingArgs,
    running: &RunningArgs,
) -> Result<index::IndexReadOptions> {
    let options = read_options(format.format, reading)?;
    let entries = if reads_bare_fingerprints(bare) {
        check_bare(reading)?;
        let (digits, field) = (notation_from_arg(bare.digits), bare.fingerprint.as_deref());
        IndexEntries::bare_fingerprints(digits, field, inputs, options.format)
    } else if bare.digits.is_some() {
        bail!("--digits is for bare fingerprints: add --fingerprints or --fingerprint FIELD");
    } else {
        IndexEntries::Documents
    };
    if matches!(entries, IndexEntries::Lines(_)) && (reading.no_header || reading.document_per_file)
    {
        bail!(
            "lines of fingerprints are recognised with or without a header: leave --no-header and \
             --document-per-file out, or name the column with --fingerprint"
        );
    }
    Ok(index::IndexReadOptions {
        entries,
        options,
        strict: running.strict,
        threads: thread_count(running.threads),
    })
}

/// Refuses options about texts if there are none.
fn check_bare(reading: &ReadingArgs) -> Result<()> {
    let texts = [
        ("--text", !reading.text.is_empty()),
        ("--features", reading.features.is_some()),
    ];
    match texts.into_iter().find(|(_, given)| *given) {
        None => Ok(()),
        Some((option, _)) => bail!(
            "{option} is for documents, and the rows are bare fingerprints: leave one of them out"
        ),
    }
}

/// Settings of a search.
pub(crate) struct SearchRun {
    pub(crate) settings: SearchSettings,
    pub(crate) reading: index::IndexReadOptions,
    pub(crate) output: OutputTarget,
    pub(crate) rejected: Option<OutputTarget>,
}

impl SearchRun {
    pub(crate) fn new(args: &SearchArgs) -> Result<Self> {
        let table = args.output.clone().unwrap_or_else(|| PathBuf::from("-"));
        let named = [("the table", Some(&table)), rejected_output(&args.rejected)];
        let recipes: Vec<&str> = args.recipe.iter().map(String::as_str).collect();
        check_outputs(&named, args.running.json, &recipes)?;
        let default = plan::MatchSettings::default().threshold;
        let threshold = args.threshold.unwrap_or(default);
        let verify = args.verify.unwrap_or(MeasureArg::Jaccard);
        let unit = edit_unit(verify, args.unit, &args.reading)?;
        let check = match (args.verify, args.threshold) {
            (None, None) => None,
            (None | Some(MeasureArg::Jaccard), _) => Some(TextCheck::Jaccard(threshold)),
            (Some(MeasureArg::Containment), _) => Some(TextCheck::Containment(threshold)),
            (Some(MeasureArg::Cosine), _) => Some(TextCheck::Cosine(threshold)),
            (Some(MeasureArg::Levenshtein | MeasureArg::Indel | MeasureArg::Lcs), _) => args
                .verify
                .and_then(of_sequences)
                .map(|of| TextCheck::Sequences(of, unit, threshold)),
            (Some(MeasureArg::None), None) => Some(TextCheck::None),
            (Some(MeasureArg::None), Some(_)) => bail!(
                "--threshold has no effect with --verify none, where --distance alone decides: \
                 leave --threshold out"
            ),
        };
        if let (Some(distance), args::CandidatesArg::Blocks) = (args.distance, args.candidates) {
            bail!(
                "--distance {distance} has no effect with --candidates blocks, which selects all \
                 fingerprints that share a block: leave one of them out"
            );
        }
        let which = match (args.nearest, args.first) {
            (Some(count), _) => ListedMatches::Nearest(count),
            (None, true) => ListedMatches::First,
            (None, false) => ListedMatches::All,
        };
        let recipe = match &args.recipe {
            Some(name) => Some(load_recipe(name, &args.changes)?),
            None => {
                refuse_changes(&args.changes)?;
                None
            }
        };
        // If a distance is given, it chooses the candidates, as with `pairs --method simhash`.
        let compares = check.is_some_and(|check| check.measure_and_threshold().is_some());
        let by_plan = compares && args.distance.is_none();
        let settings = SearchSettings {
            distance: args.distance,
            which,
            limit: args.limit,
            candidates: match args.candidates {
                args::CandidatesArg::Distance if by_plan => index::SearchCandidates::Plan,
                args::CandidatesArg::Distance => index::SearchCandidates::Distance,
                args::CandidatesArg::Blocks => index::SearchCandidates::Blocks,
            },
            check,
            recipe,
        };
        Ok(Self {
            settings,
            reading: index_read_options(
                &args.inputs,
                &args.bare,
                &args.input_format,
                &args.reading,
                &args.running,
            )?,
            output: output_target(&table),
            rejected: args.rejected.as_deref().map(output_target),
        })
    }
}

/// Returns the notation of fingerprints: hexadecimal unless another is given.
pub(crate) fn notation_from_arg(notation: Option<NotationArg>) -> FingerprintNotation {
    match notation {
        None | Some(NotationArg::Hex) => FingerprintNotation::Hex,
        Some(NotationArg::Decimal) => FingerprintNotation::Decimal,
        Some(NotationArg::Binary) => FingerprintNotation::Binary,
    }
}

/// An optional output, with its name for messages.
type NamedOutput<'a> = (&'a str, Option<&'a PathBuf>);

fn rejected_output(place: &Option<PathBuf>) -> NamedOutput<'_> {
    ("rejected rows", place.as_ref())
}

/// Checks that outputs go to different places, only one of them to standard output, and none to a recipe.
fn check_outputs(named: &[NamedOutput<'_>], json: bool, recipes: &[&str]) -> Result<()> {
    let named = named.iter().copied();
    let given = named.filter_map(|(what, place)| Some((what, place?.as_path())));
    let named: Vec<_> = given.collect();
    check_standard_output(named.iter().map(|&(_, place)| place), json)?;
    check_separate_outputs(&named, recipes)
}

/// Checks that standard output receives only one thing.
fn check_standard_output<'a>(places: impl Iterator<Item = &'a Path>, json: bool) -> Result<()> {
    let outputs = places.filter(|place| is_standard(place)).count();
    if outputs > 1 {
        bail!("only one output can go to standard output (-)");
    }
    if outputs == 1 && json {
        bail!(
            "--json needs standard output for the summary: write the rows to a file (-o FILE) or \
             leave --json out"
        );
    }
    Ok(())
}

fn is_standard(place: &Path) -> bool {
    place.as_os_str() == "-"
}

fn output_target(place: &Path) -> OutputTarget {
    if is_standard(place) {
        OutputTarget::Stdout
    } else {
        OutputTarget::Path(place.to_path_buf())
    }
}

/// Returns the similarity of sequences that an option names, if it names one.
pub(crate) fn of_sequences(verify: MeasureArg) -> Option<SequenceMeasure> {
    match verify {
        MeasureArg::Levenshtein => Some(SequenceMeasure::Levenshtein),
        MeasureArg::Indel => Some(SequenceMeasure::Indel),
        MeasureArg::Lcs => Some(SequenceMeasure::Substring),
        MeasureArg::Jaccard | MeasureArg::Containment | MeasureArg::Cosine | MeasureArg::None => {
            None
        }
    }
}

/// Returns the unit of edits. Refuses a unit that has no effect, and characters where there are none.
pub(crate) fn edit_unit(
    verify: MeasureArg,
    unit: Option<UnitArg>,
    reading: &ReadingArgs,
) -> Result<plan::EditUnit> {
    check_unit(verify.into(), unit.map(Into::into), OptionSpelling::Options)?;
    match unit {
        Some(UnitArg::Words) => Ok(plan::EditUnit::Words),
        None | Some(UnitArg::Characters) => {
            if of_sequences(verify).is_some() && reading.features.is_some() {
                bail!(
                    "--features has no characters to count: add --unit words, which counts every \
                     feature as a word"
                );
            }
            Ok(plan::EditUnit::Characters)
        }
    }
}

fn check_has_text(reading: &ReadingArgs, option: &str) -> Result<()> {
    if reading.features.is_some() {
        bail!("{option} needs texts, and --features has no texts: leave one of them out");
    }
    Ok(())
}

fn run_settings(
    matching: &MatchingArgs,
    input_format: &InputFormatArgs,
    reading: &ReadingArgs,
    (running, audit): (&RunningArgs, &AuditArgs),
    keep: &KeepOrder,
) -> Result<RunSettings> {
    let (recipe, chosen, _) = recipe_and_plan(&matching.rule, reading)?;
    let window = match (matching.window, &matching.time) {
        (Some(seconds), Some(field)) => Some(RunWindow {
            seconds,
            field: field.clone(),
        }),
        _ => None,
    };
    Ok(RunSettings {
        recipe,
        matching: chosen,
        read: read_options(input_format.format, reading)?,
        keep: keep.clone(),
        within: matching.within.clone(),
        window,
        threads: thread_count(running.threads),
        strict: running.strict,
        audit: audit_settings(audit),
        spelling: OptionSpelling::Options,
    })
}

/// Returns the settings of the audit, if one was requested.
fn audit_settings(args: &AuditArgs) -> Option<AuditSettings> {
    args.audit.map(|documents| AuditSettings {
        documents,
        seed: args.audit_seed.unwrap_or(1),
    })
}

/// Returns the number of threads: as given, or one per core.
pub(crate) fn thread_count(given: Option<usize>) -> usize {
    given.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// Returns the recipe, the match options, and the plan that follows from both.
pub(crate) fn recipe_and_plan(
    rule: &MatchRuleArgs,
    reading: &ReadingArgs,
) -> Result<(Recipe, plan::MatchSettings, MatchPlan)> {
    let (recipe, chosen) = chosen_options(rule, reading)?;
    let plan = MatchPlan::new(&recipe, chosen)?;
    Ok((recipe, chosen, plan))
}

/// Returns the recipe and the match options.
fn chosen_options(
    rule: &MatchRuleArgs,
    reading: &ReadingArgs,
) -> Result<(Recipe, plan::MatchSettings)> {
    let chosen = MatchOptions::from(rule).to_settings(OptionSpelling::Options)?;
    edit_unit(rule.verify, rule.unit, reading)?;
    if rule.method == MethodArg::Sentences {
        check_has_text(reading, "--method sentences")?;
    }
    Ok((load_recipe(&rule.recipe, &rule.changes)?, chosen))
}

/// Loads a recipe by its name or file, with the changes of `--set`.
pub(crate) fn load_recipe(name: &str, changes: &RecipeChangeArgs) -> Result<Recipe> {
    Ok(recipes::load_recipe(
        name,
        &changes.set,
        OptionSpelling::Options,
    )?)
}

/// Returns how inputs are read.
pub(crate) fn read_options(
    format: Option<FormatArg>,
    reading: &ReadingArgs,
) -> Result<ReadOptions> {
    let format = format.map(|format| match format {
        FormatArg::Jsonl => source::InputFormat::Jsonl,
        FormatArg::Json => source::InputFormat::Json,
        FormatArg::Csv => source::InputFormat::CSV,
        FormatArg::Tsv => source::InputFormat::TSV,
        FormatArg::Parquet => source::InputFormat::Parquet,
        FormatArg::Text => source::InputFormat::Text,
    });
    if reading.no_header && !matches!(format, None | Some(source::InputFormat::Csv { .. })) {
        bail!("--no-header is for CSV and TSV only");
    }
    let defaults = ReadOptions::default();
    let id = match &reading.id {
        Some(field) => IdField::Named(field.clone()),
        None if reading.id_row => IdField::RowNumber,
        None => IdField::Default,
    };
    let text = match &reading.text[..] {
        [] => defaults.fields.text,
        fields => fields.iter().map(|it| it.trim().to_owned()).collect(),
    };
    if text.iter().any(String::is_empty) {
        bail!("--text names an empty field: give names separated by commas, such as title,body");
    }
    Ok(ReadOptions {
        format,
        header: !reading.no_header,
        encoding: reading.encoding,
        invalid_text: if reading.lossy {
            InvalidText::Lossy
        } else {
            InvalidText::Reject
        },
        document_per_file: reading.document_per_file,
        fields: WantedFields {
            text,
            id,
            features: reading.features.clone(),
            ..WantedFields::default()
        },
        max_row_bytes: reading.max_row,
        scratch: reading.scratch.clone(),
        ..defaults
    })
}

/// Parses `--threshold`.
pub(crate) fn parse_threshold(text: &str) -> Result<Threshold, String> {
    let value: f64 = text
        .parse()
        .map_err(|_| "give a number above 0 and at most 1, such as 0.8".to_owned())?;
    Threshold::new(value).map_err(|error| error.to_string())
}

/// Parses `--max-row`, in bytes.
pub(crate) fn parse_row_size(text: &str) -> Result<u32, String> {
    let bytes = size_with_unit(text).and_then(|bytes| u32::try_from(bytes).ok());
    bytes.ok_or_else(|| "give a size from 1 byte to 4 GiB, such as 500000, 100M or 1Gi".to_owned())
}

/// Parses `--memory`, in bytes.
pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    size_with_unit(text).ok_or_else(|| "give a size, such as 500000, 100M or 1Gi".to_owned())
}

/// Parses `--count`.
pub(crate) fn parse_count(text: &str) -> Result<u64, String> {
    let number = text.replace([',', '_'], "");
    size_with_unit(&number)
        .filter(|_| !text.contains(['i', 'b', 'B']))
        .ok_or_else(|| "give a number of at least 1, such as 1000000, 50M or 1G".to_owned())
}

/// Parses `--nearest` and `--limit`.
pub(crate) fn parse_limit(text: &str) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|&limit| limit > 0)
        .ok_or_else(|| "give a number of at least 1".to_owned())
}

/// Parses a number above 0 with an optional unit.
fn size_with_unit(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit: u64 = match text[digits.len()..].trim_end_matches(['b', 'B']) {
        "" => 1,
        "k" | "K" => 1000,
        "m" | "M" => 1_000_000,
        "g" | "G" => 1_000_000_000,
        "Ki" => 1 << 10,
        "Mi" => 1 << 20,
        "Gi" => 1 << 30,
        _ => return None,
    };
    let number = digits.parse::<u64>().ok()?;
    number.checked_mul(unit).filter(|&bytes| bytes > 0)
}

/// Parses `--encoding`.
pub(crate) fn parse_encoding(label: &str) -> Result<&'static encoding_rs::Encoding, String> {
    encoding_rs::Encoding::for_label(label.as_bytes()).ok_or_else(|| {
        "no encoding has this label: give one of the Encoding Standard, such as utf-8, gb18030, \
         big5, shift_jis, euc-kr or windows-1252"
            .to_owned()
    })
}

/// Parses `--thread_count`.
pub(crate) fn parse_threads(text: &str) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|threads| (1..=MOST_THREADS).contains(threads))
        .ok_or_else(|| format!("give a number from 1 to {MOST_THREADS}"))
}

/// Largest number of threads: more than the machines for this program have cores, but few enough to start.
const MOST_THREADS: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_sizes_fit_into_32_bits() {
        let cases = [
            ("1", 1),
            ("64K", 64_000),
            ("1Ki", 1024),
            ("1MiB", 1 << 20),
            ("2GB", 2_000_000_000),
        ];
        for (text, bytes) in cases {
            assert_eq!(parse_row_size(text), Ok(bytes), "{text}");
        }
        assert_eq!(parse_row_size("4294967295"), Ok(u32::MAX));
        for text in [
            "",
            "0",
            "4Gi",
            "5G",
            "-1",
            "1.5M",
            "1X",
            "M",
            "99999999999999999999",
        ] {
            assert!(parse_row_size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn thresholds_and_threads_have_ranges() {
        for text in ["0", "-1", "1.01", "NaN", "eighty"] {
            assert!(parse_threshold(text).is_err(), "{text}");
        }
        assert!(parse_threshold("1").is_ok() && parse_threshold("0.000001").is_ok());
        assert!(parse_threads("0").is_err() && parse_threads("1025").is_err());
        assert_eq!(
            (parse_threads("1"), parse_threads("1024")),
            (Ok(1), Ok(1024))
        );
    }
}
