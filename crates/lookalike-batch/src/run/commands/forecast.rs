//! Forecast of a run's comparisons, memory and time, from a sample of its rows.
//!
//! Rows are sampled by their numbers, so the sample of an input is always the same. It passes through
//! the reading and matching of a run within limits of documents, bytes of text, candidate pairs and steps of
//! comparing ([`SurveyLimits`]). So the time of a forecast, beside the reading of the inputs, is bounded
//! however large they are and whatever the measure. Counts of documents are scaled by the sampled share, and counts
//! of pairs by its square; if documents are compared only with kept ones, by the power that the sample
//! shows. All counts are the same at any number of threads, and times are measured.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use lookalike::dedup::{CandidateSurvey, ComparedPairs, SurveyKind, SurveyLimits, survey_corpus};
use lookalike::plan::MatchPlan;
use lookalike::similarity::Route;
use lookalike_io::error::{Error, Result};
use lookalike_io::source::{BadRow, InputSet};
use serde::Serialize;

use crate::run::execution::form_learning::FormLearningPass;
use crate::run::execution::run_corpus::RunCorpus;
use crate::run::execution::run_directories::PlannedDirectories;
use crate::run::progress::{ProgressListener, RunStage};
use crate::run::reading::corpus_reader::read_inputs;
use crate::run::reading::open_inputs::OpenInputs;
use crate::run::reading::row_sampling::RowSampling;
use crate::run::settings::{RunInputs, RunSettings};

/// The expected comparisons, memory and time of a run.
#[derive(Debug, Clone, Serialize)]
pub struct RunForecast {
    /// Documents in the sample.
    pub sampled: u64,
    /// Rows read that cannot be used. The run will reject them, and possibly more among rows not read.
    pub bad_rows: u64,
    /// The share of all rows in the sample.
    pub sampled_share: f64,
    /// Steps of comparing that the sample took: a feature, symbol or weight that was read, or a column of an
    /// edit distance.
    pub sampled_steps: u64,
    /// All documents: counted if the whole input was read, otherwise estimated.
    pub documents: u64,
    /// Expected comparisons, by route.
    pub compared: Vec<ForecastPairs>,
    /// Bytes of memory at the end of reading, without buffers and the memory for finding candidates.
    pub memory_bytes: u64,
    /// Seconds of reading, learning forms, finding candidates and verifying, without writing.
    pub seconds: f64,
    /// Seconds of these for learning forms: all documents are decided once more, and read once more in a pass of its own.
    /// `None` if the run learns none. Texts of removed documents, which are read again, are not counted.
    pub learning_seconds: Option<f64>,
    /// Number of threads that the forecast assumes.
    pub threads: usize,
}

/// The pairs of one route. Only the first of several equal texts takes part.
#[derive(Debug, Clone, Serialize)]
pub struct ForecastPairs {
    /// `join`, `minhash`, …
    pub route: &'static str,
    /// Pairs that the run will compare.
    pub pairs: f64,
    /// Expected pairs among them that do not match.
    pub false_candidates: f64,
    /// Candidate pairs in the sample.
    pub sampled_pairs: u64,
    /// Pairs among them that were compared.
    pub verified_pairs: u64,
    /// Pairs among the compared ones that did not match.
    pub sampled_false: u64,
}

impl ForecastPairs {
    fn new(route: Route, counts: ComparedPairs, scale: f64) -> Self {
        let pairs = counts.pairs as f64 * scale;
        Self {
            route: route.name(),
            pairs,
            false_candidates: pairs * (1.0 - counts.matching_share()),
            sampled_pairs: counts.pairs,
            verified_pairs: counts.verified,
            sampled_false: counts.verified - counts.matching,
        }
    }
}

/// Factor by which finding the candidates of a document takes longer among all documents than in the sample. Measured
/// on corpora of 30 thousand to 1.5 million documents.
const FINDING_BEYOND_CACHES: f64 = 1.8;

/// Predicts a run from a sample of its rows. It reads at most 1 GiB of the inputs. Bad rows are counted
/// and otherwise ignored. A run with `directories` learns forms in a pass of its own, and beside an index that exists it learns
/// none.
///
/// # Errors
/// If an input cannot be read, or is standard input, because the run could not read it again.
pub fn forecast_run(
    paths: &RunInputs,
    settings: &RunSettings,
    followed: SurveyKind,
    directories: PlannedDirectories<'_>,
    progress: &dyn ProgressListener,
) -> Result<RunForecast> {
    crate::threads::run_in_pool(settings.threads, || {
        let learning = FormLearningPass::of_run(paths, settings, directories)?;
        sample_and_forecast(paths, settings, followed, learning, progress)
    })
}

fn sample_and_forecast(
    paths: &RunInputs,
    settings: &RunSettings,
    followed: SurveyKind,
    learning: Option<FormLearningPass>,
    progress: &dyn ProgressListener,
) -> Result<RunForecast> {
    let plan = MatchPlan::new(&settings.recipe, settings.matching)?;
    let opened = OpenInputs::new(paths, settings)?;
    let Some(bytes) = opened.size_on_disk() else {
        return Err(Error::usage_error(
            "standard input can be read only once, so a prediction from it is not possible: leave \
             it out, or give a file",
        ));
    };
    let sampling = RowSampling::new(bytes);
    let started = Instant::now();
    let ignore = |_: &InputSet, _: &[BadRow]| Ok(());
    let sample = read_inputs(&opened, settings, &plan, &sampling, &ignore, progress)?;
    let corpus = RunCorpus::from_inputs(&opened, settings, &plan, sample, true);
    let reading_seconds = started.elapsed().as_secs_f64();
    progress.begin_stage(RunStage::Candidates, None);
    let started = Instant::now();
    let survey = survey_corpus(&corpus.match_corpus(), followed, SurveyLimits::default())?;
    let matching_seconds = started.elapsed().as_secs_f64();
    Ok(ForecastScale {
        sampling: &sampling,
        threads: settings.threads,
        learning,
    }
    .scale_forecast(&corpus, &survey, reading_seconds, matching_seconds))
}

/// Scales figures of the sample to all documents.
struct ForecastScale<'a> {
    sampling: &'a RowSampling,
    threads: usize,
    learning: Option<FormLearningPass>,
}

impl ForecastScale<'_> {
    fn scale_forecast(
        &self,
        corpus: &RunCorpus<'_>,
        survey: &CandidateSurvey,
        reading_seconds: f64,
        matching_seconds: f64,
    ) -> RunForecast {
        let share = self.sampling.read_share() * self.sampling.chosen_share();
        let of_documents = 1.0 / share.max(f64::MIN_POSITIVE);
        let of_pairs = survey.scale_factor(of_documents);
        let rows = self.sampling.rows.load(Ordering::Relaxed);
        let bad = self.sampling.bad.load(Ordering::Relaxed);
        let documents =
            rows.saturating_sub(bad) as f64 / self.sampling.read_share().max(f64::MIN_POSITIVE);
        // Verification time grows with the pairs, all other time with the documents, and candidates are found more slowly
        // where buckets are in memory and not in the processor's caches.
        let of_threads = |time: Duration| time.as_secs_f64() / self.threads as f64;
        let comparing = of_threads(survey.comparing);
        let finding = (matching_seconds - of_threads(survey.spent)).max(0.0);
        let by_route = survey.by_route.iter();
        let reading = self.scale_reading(reading_seconds);
        let deciding = FINDING_BEYOND_CACHES * finding * of_documents + comparing * of_pairs;
        let learning_seconds = self.learning.map(|learning| match learning {
            FormLearningPass::InMemory => deciding,
            FormLearningPass::Separate => reading + deciding,
        });
        RunForecast {
            sampled: corpus.len() as u64,
            bad_rows: bad,
            sampled_share: share,
            sampled_steps: survey.steps,
            documents: documents.round() as u64,
            compared: by_route
                .map(|&(route, counts)| ForecastPairs::new(route, counts, of_pairs))
                .collect(),
            memory_bytes: (corpus.memory_bytes() as f64 * of_documents) as u64,
            seconds: reading + deciding + learning_seconds.unwrap_or(0.0),
            learning_seconds,
            threads: self.threads,
        }
    }

    /// Returns the time of reading. Sketching time grows with the sampled rows, all other time with the
    /// bytes read.
    fn scale_reading(&self, seconds: f64) -> f64 {
        let of_threads = |nanoseconds: &AtomicU64| {
            nanoseconds.load(Ordering::Relaxed) as f64 / 1e9 / self.threads as f64
        };
        let sketching = of_threads(&self.sampling.sketching);
        let rest = (seconds - of_threads(&self.sampling.spent_nanoseconds)).max(0.0);
        (rest + sketching / self.sampling.chosen_share()) / self.sampling.read_share()
    }
}
