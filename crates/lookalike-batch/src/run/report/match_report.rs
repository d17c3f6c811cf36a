//! The data of the report of a run that finds matches: `dedup`, or `pairs`.
//!
//! Rows and texts are chosen in this order, until the budgets are spent:
//!
//! 1. the removals nearest to the threshold, which are the doubtful ones;
//! 2. members of the largest clusters: of each up to four drawn by hashes of their numbers, and before these the least
//!    similar of the others;
//! 3. removals whose texts are equal after normalisation, but not before it;
//! 4. some removals of every twentieth of the similarity;
//! 5. further removals, drawn by hashes of their numbers.
//!
//! In a report of pairs, the later document of a pair stands for the removed one, and the earlier one for the kept one.

use std::collections::BTreeMap;

use lookalike::DocId;
use lookalike::dedup::DocumentRemoval;
use lookalike::plan::MatchPlan;
use lookalike::similarity::Route;
use lookalike_io::error::Result;
use lookalike_io::sink::StagedOutput;
use serde::Serialize;
use serde_json::Value;

use crate::run::commands::summary::bytes_per_second;
use crate::run::execution::run_corpus::RunCorpus;
use crate::run::report::bad_rows::{BadRowReason, BadRowTally};
use crate::run::report::budgets::{
    EQUAL_TEXTS_READ, EQUAL_TEXTS_SHOWN, NEAREST_REMOVALS, PAIRS_OF_BAND, SHOWN_CLUSTERS,
    SHOWN_MEMBERS, shorten_name,
};
use crate::run::report::form_rows::{FormCollector, FormColumns, FormDocumentColumns};
use crate::run::report::plan_data::PlanData;
use crate::run::report::removal_rows::{
    ClusterColumns, CountedCluster, ListedRows, RemovalColumns, SourceNames, count_clusters,
    draw_number, list_rows, route_names,
};
use crate::run::report::shown_texts::{DifferenceColumns, ShownTexts, TextColumns};
use crate::run::report::similarity_histogram::SimilarityHistogram;
use crate::run::report::{ReportData, ReportOutput, hundredth_of};
use crate::run::settings::RunSettings;

/// The sources of a report.
pub(in crate::run) struct MatchReportInputs<'a> {
    /// `dedup` or `pairs`.
    pub(in crate::run) kind: &'static str,
    pub(in crate::run) corpus: &'a RunCorpus<'a>,
    pub(in crate::run) removals: &'a [DocumentRemoval],
    /// Documents that would be removed by their similarity alone, if the run has learned forms itself.
    pub(in crate::run) removed_without_forms: &'a [DocId],
    pub(in crate::run) settings: &'a RunSettings,
    pub(in crate::run) plan: &'a MatchPlan,
    pub(in crate::run) bad_rows: &'a BadRowTally,
    pub(in crate::run) summary: Value,
    /// The number of all matches and their counts by hundredths of similarity, if `removals` is a sample.
    pub(in crate::run) counted: Option<(usize, Vec<u64>)>,
}

/// The data of a report.
#[derive(Debug, Serialize)]
struct MatchReport {
    summary: Value,
    inputs: Vec<InputData>,
    /// All inputs, listed or not.
    input_count: usize,
    written: Vec<(String, String)>,
    explain_command: Option<String>,
    plan: PlanData,
    /// Removals by hundredths of similarity, and those of exactly 1 last.
    similarities: Vec<u64>,
    /// Pairs of a size and the number of clusters of it, ascending.
    cluster_sizes: Vec<(u64, u64)>,
    bad_rows: Vec<BadRowReason>,
    sources: Vec<String>,
    routes: Vec<&'static str>,
    clusters: ClusterColumns,
    removals: RemovalColumns,
    /// Rows of the removals nearest to the threshold, nearest first.
    nearest: Vec<usize>,
    equal_after_normalization: EqualAfterNormalization,
    texts: TextColumns,
    differences: DifferenceColumns,
    forms: FormColumns,
    form_documents: FormDocumentColumns,
}

/// An input file.
#[derive(Debug, Serialize)]
struct InputData {
    name: String,
    bytes: Option<u64>,
    #[serde(rename = "reference")]
    is_against: bool,
}

/// Removals whose texts are equal after normalisation only.
#[derive(Debug, Default, Serialize)]
struct EqualAfterNormalization {
    /// Removals equal after normalisation that were read again.
    read: usize,
    /// The removals among them whose texts differ.
    differing: usize,
    /// Rows of some of these.
    rows: Vec<usize>,
}

/// Inputs that are named.
const NAMED_INPUTS: usize = 500;

/// Collects the data of a report and writes the file, which has its final content and a temporary name until the result
/// is published.
///
/// # Errors
/// If a document cannot be read again, or the file cannot be written.
pub(in crate::run) fn write_match_report(
    inputs: &MatchReportInputs<'_>,
    output: &ReportOutput,
) -> Result<StagedOutput> {
    let data = inputs.collect_data(output)?;
    ReportData::new(inputs.kind, output.language, data).stage_file(&output.target)
}

impl MatchReportInputs<'_> {
    /// Returns the summary with the speed as the terminal tells it.
    fn summary_with_speed(&self) -> Value {
        let mut summary = self.summary.clone();
        let (bytes, seconds) = (summary["bytes"].as_u64(), summary["seconds"].as_f64());
        let speed = bytes.zip(seconds);
        let speed = speed.and_then(|(bytes, seconds)| bytes_per_second(bytes, seconds));
        summary["bytes_per_second"] = speed.into();
        summary
    }

    fn collect_data(&self, output: &ReportOutput) -> Result<MatchReport> {
        let clusters = count_clusters(self.removals);
        let mut texts = ShownTexts::new(self.corpus);
        let nearest = self.nearest_removals();
        let (equal, read) = self.find_equal(&mut texts)?;
        let mut chosen = nearest.clone();
        chosen.extend(self.members_of_largest(&clusters));
        chosen.extend(&equal.0);
        chosen.extend(self.removals_of_bands());
        chosen.extend(self.drawn_removals());
        let mut is_chosen = vec![false; self.removals.len()];
        chosen.retain(|&at| !std::mem::replace(&mut is_chosen[at], true));
        let mut sources = SourceNames::default();
        let listed = list_rows(self.corpus, self.removals, &clusters, &chosen, &mut sources)?;
        let ListedRows {
            mut removals,
            clusters: mut cluster_columns,
            removal_numbers,
            cluster_row,
        } = listed;
        let row_of = |at: usize| removal_numbers.binary_search(&at).ok();
        let forms = FormCollector {
            corpus: self.corpus,
            settings: self.settings,
            removals: self.removals,
            removed_without_forms: self.removed_without_forms,
            removes_documents: self.kind == "dedup",
        };
        let forms = forms.collect_forms(&mut sources)?;
        let mut differences = DifferenceColumns::default();
        for &at in &chosen {
            let removal = &self.removals[at];
            let (kept, removed) = (removal.kept.with, removal.document);
            let Some(row) = row_of(at) else { continue };
            let Some(runs) = texts.show_pair(kept, removed)? else {
                break;
            };
            differences.push_runs(row, runs);
            let number = |document| texts.number_of(document).map_or(-1, |number| number as i64);
            removals.text[row] = number(removed);
            cluster_columns.text[cluster_row[&kept]] = number(kept);
        }
        let (inputs, input_count) = self.list_inputs();
        let rows = |numbers: &[usize]| numbers.iter().filter_map(|&at| row_of(at)).collect();
        let mut sizes: BTreeMap<u64, u64> = BTreeMap::new();
        for cluster in &clusters {
            *sizes.entry(cluster.size).or_default() += 1;
        }
        if let Some((total, _)) = self.counted {
            removals.total = total;
        }
        Ok(MatchReport {
            summary: self.summary_with_speed(),
            inputs,
            input_count,
            written: output.written.clone(),
            explain_command: output.explain_command.clone(),
            plan: PlanData::new(self.settings, self.plan),
            similarities: self.count_similarities(),
            cluster_sizes: sizes.into_iter().collect(),
            bad_rows: self.bad_rows.list_reasons(),
            sources: sources.into_names(),
            routes: route_names(),
            nearest: rows(&nearest),
            equal_after_normalization: EqualAfterNormalization {
                read,
                differing: equal.1,
                rows: rows(&equal.0),
            },
            clusters: cluster_columns,
            removals,
            texts: texts.into_columns(),
            differences,
            forms: forms.forms,
            form_documents: forms.documents,
        })
    }

    /// Returns the removals nearest to the threshold, nearest first.
    fn nearest_removals(&self) -> Vec<usize> {
        let is_measured = |at: &usize| {
            !matches!(
                self.removals[*at].kept.route,
                Route::Exact | Route::Decision
            )
        };
        let mut nearest: Vec<usize> = (0..self.removals.len()).filter(is_measured).collect();
        let by_similarity = |&a: &usize, &b: &usize| {
            let similarity = |at: usize| self.removals[at].kept.similarity.get();
            similarity(a).total_cmp(&similarity(b)).then(a.cmp(&b))
        };
        if nearest.len() > NEAREST_REMOVALS {
            nearest.select_nth_unstable_by(NEAREST_REMOVALS, by_similarity);
            nearest.truncate(NEAREST_REMOVALS);
        }
        nearest.sort_unstable_by(by_similarity);
        nearest
    }

    /// Returns members of the largest clusters: of each the least similar, and others drawn.
    fn members_of_largest(&self, clusters: &[CountedCluster]) -> Vec<usize> {
        let largest = &clusters[..clusters.len().min(SHOWN_CLUSTERS)];
        let mut members: Vec<Vec<usize>> = vec![Vec::new(); largest.len()];
        let place = |removal: &DocumentRemoval| {
            let kept = removal.kept.with;
            largest.iter().position(|cluster| cluster.kept == kept)
        };
        for (at, removal) in self.removals.iter().enumerate() {
            if let Some(place) = place(removal) {
                members[place].push(at);
            }
        }
        for of_cluster in &mut members {
            of_cluster.sort_by_key(|&at| draw_number(self.removals[at].document));
            let half = of_cluster.len().min(SHOWN_MEMBERS / 2);
            let mut least = of_cluster.split_off(half);
            least.sort_by(|&a, &b| {
                let similarity = |at: usize| self.removals[at].kept.similarity.get();
                similarity(a).total_cmp(&similarity(b)).then(a.cmp(&b))
            });
            least.truncate(SHOWN_MEMBERS - half);
            least.append(of_cluster);
            *of_cluster = least;
        }
        members.concat()
    }

    /// Finds removals whose texts are equal after normalisation only. Returns some of them, with their number among
    /// those read, and how many were read.
    fn find_equal(&self, texts: &mut ShownTexts<'_>) -> Result<((Vec<usize>, usize), usize)> {
        let mut exact: Vec<usize> = (0..self.removals.len())
            .filter(|&at| self.removals[at].kept.route == Route::Exact)
            .collect();
        exact.sort_by_key(|&at| draw_number(self.removals[at].document));
        exact.truncate(EQUAL_TEXTS_READ);
        let (mut found, mut differing) = (Vec::new(), 0);
        for &at in &exact {
            let removal = &self.removals[at];
            let kept = texts.read_text(removal.kept.with)?;
            if kept.is_some() && kept != texts.read_text(removal.document)? {
                differing += 1;
                if found.len() < EQUAL_TEXTS_SHOWN {
                    found.push(at);
                }
            }
        }
        Ok(((found, differing), exact.len()))
    }

    /// Returns some removals of every twentieth of the similarity.
    fn removals_of_bands(&self) -> Vec<usize> {
        let mut bands: Vec<Vec<usize>> = vec![Vec::new(); SimilarityHistogram::INTERVAL_COUNT + 1];
        for at in self.drawn_numbers() {
            let similarity = self.removals[at].kept.similarity.get();
            let band =
                &mut bands[(similarity * SimilarityHistogram::INTERVAL_COUNT as f64) as usize];
            if band.len() < PAIRS_OF_BAND {
                band.push(at);
            }
        }
        bands.concat()
    }

    /// Returns removals by the numbers drawn for them.
    fn drawn_numbers(&self) -> Vec<usize> {
        let mut drawn: Vec<usize> = (0..self.removals.len()).collect();
        drawn.sort_unstable_by_key(|&at| (draw_number(self.removals[at].document), at));
        drawn
    }

    /// Returns further removals that are shown if the budget allows.
    fn drawn_removals(&self) -> Vec<usize> {
        /// Removals drawn. More texts than these fit into no budget.
        const DRAWN_REMOVALS: usize = 2000;
        let mut drawn = self.drawn_numbers();
        drawn.truncate(DRAWN_REMOVALS);
        drawn
    }

    fn count_similarities(&self) -> Vec<u64> {
        if let Some((_, counts)) = &self.counted {
            return counts.clone();
        }
        let mut counts = vec![0; 101];
        for removal in self.removals {
            counts[hundredth_of(removal.kept.similarity.get())] += 1;
        }
        counts
    }

    fn list_inputs(&self) -> (Vec<InputData>, usize) {
        let opened = self.corpus.opened;
        let against = opened
            .against
            .iter()
            .flat_map(|source| source.input_files());
        let all = against.map(|file| (file, true)).chain(
            opened
                .documents
                .input_files()
                .iter()
                .map(|file| (file, false)),
        );
        let named = all
            .clone()
            .take(NAMED_INPUTS)
            .map(|(file, is_against)| InputData {
                name: shorten_name(file.display_name()),
                bytes: file.size_on_disk(),
                is_against,
            });
        (named.collect(), all.count())
    }
}
