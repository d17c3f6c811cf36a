//! The audit of a run on many machines: what its tasks draw, and the report of what they found.
//!
//! The tasks compare documents by [`SampleAudit`]. The figures are those of a run on one machine, from the
//! same sums.

use std::sync::Arc;

use lookalike::plan::MatchPlan;
use lookalike::quality::audit::{default_sample_size, draw_limit};
use lookalike::shuffle::{SampleAudit, SampledDocument, ShuffleSetup};
use lookalike::text::AnalysisScratch;
use lookalike::{Recipe, value_hash};
use lookalike_io::error::Result;
use lookalike_options::match_options::OptionSpelling;

use crate::run::execution::audit::open_sample;
use crate::run::execution::audit::planted::EditedCopies;
use crate::run::execution::audit::planted::PlantedReport;
use crate::run::execution::audit::report::{AuditReport, least_jaccard, most_planted_bytes};
use crate::run::execution::audit::tallies::{
    FoundPairs, PairPrecision, RECHECKED_PAIRS, SimilarCounts, SmallestNumbers, list_by_length,
};
use crate::run::settings::AuditSettings;

/// Refuses plans that cannot be audited; arguments are spelled as in Python.
///
/// # Errors
/// Fails if the plan has no exact similarity to compare with, or one that does not compare features.
pub fn check_shuffle_audit(plan: &MatchPlan) -> Result<()> {
    open_sample(plan, OptionSpelling::Arguments).map(drop)
}

/// The documents of a run, counted by its tasks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CountedDocuments {
    /// Number of documents, also of those given as known.
    pub documents: u64,
    /// Bytes of their texts.
    pub bytes: u64,
}

/// The size of a sample, and who may be in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleDraw {
    /// Requested number of documents.
    pub requested: usize,
    /// Largest number of a document that may be sampled.
    pub limit: u64,
}

impl SampleDraw {
    /// Chooses the sample of a run.
    pub fn choose(settings: AuditSettings, counted: CountedDocuments) -> Self {
        let all = counted.documents as f64;
        let requested = settings
            .documents
            .unwrap_or_else(|| default_sample_size(all));
        Self {
            requested,
            limit: draw_limit(requested, all, 1.0),
        }
    }
}

/// A random sample of removed documents: those with the smallest hashes of their ids and of those of their kept
/// documents.
#[derive(Debug)]
pub struct RemovedSample {
    pairs: SmallestNumbers<(String, String)>,
}

impl Default for RemovedSample {
    fn default() -> Self {
        Self {
            pairs: SmallestNumbers::new(RECHECKED_PAIRS),
        }
    }
}

impl RemovedSample {
    /// Adds a removed document and the kept one that it names.
    pub fn offer_removed(&mut self, id: &str, kept: &str) {
        let number = value_hash(&[id.as_bytes(), kept.as_bytes()].join(&0));
        if self.pairs.wants(number) {
            self.pairs.offer(number, (id.to_owned(), kept.to_owned()));
        }
    }

    /// Returns the sampled pairs of a removed document and its kept one.
    pub fn into_pairs(self) -> Vec<(String, String)> {
        let pairs = self.pairs.into_ascending().into_iter();
        pairs.map(|(_, pair)| pair).collect()
    }
}

/// A similar document that counts for a sampled one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartnerFinding {
    /// Index of the sampled document.
    pub sampled: usize,
    /// `true` if the match plan makes the two candidates.
    pub found: bool,
    /// `true` if both remain in the output.
    pub left_together: bool,
}

/// The texts of a removed document and of the kept one that it names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemovedTexts {
    /// Text of the removed document.
    pub removed: String,
    /// Text of the kept document. Several if a document that is given as known has the same id as another one;
    /// the pair is right if one of them matches.
    pub kept: Vec<String>,
}

/// The findings of an audit, from all tasks.
#[derive(Debug, Clone, Default)]
pub struct AuditFindings {
    /// Counts of all documents.
    pub counted: CountedDocuments,
    /// Sampled documents, by their numbers.
    pub sampled: Vec<SampledDocument>,
    /// Similar documents that count, at most 16 for each sampled document.
    pub partners: Vec<PartnerFinding>,
    /// Texts of the sampled removals.
    pub removed: Vec<RemovedTexts>,
}

impl AuditFindings {
    /// Builds the report of a run that removed documents. `recipe` must be the one of the setup.
    ///
    /// # Errors
    /// Fails if the plan cannot be audited, or if packed features are damaged.
    pub fn report(
        &self,
        setup: &Arc<ShuffleSetup>,
        recipe: &Recipe,
        settings: AuditSettings,
    ) -> Result<AuditReport> {
        let plan = setup.match_plan();
        let audit = SampleAudit::new(setup.clone(), &self.sampled)?;
        let mut counts = vec![SimilarCounts::default(); self.sampled.len()];
        for partner in &self.partners {
            counts[partner.sampled].add_pair(partner.found, partner.left_together);
        }
        let mut found = FoundPairs::default();
        for (tokens, counts) in audit.token_counts().into_iter().zip(counts) {
            found.add_document(tokens, counts);
        }
        let precision = self.measure_precision(setup)?;
        let requested = SampleDraw::choose(settings, self.counted).requested as u64;
        Ok(AuditReport {
            contents: None,
            sampled: self.sampled.len() as u64,
            requested: requested.min(self.counted.documents),
            seed: settings.seed,
            least_jaccard: least_jaccard(plan),
            pairs: found.pairs,
            recall: found.recall.to_share(),
            by_length: list_by_length(&found, &precision),
            left_together: Some(found.left_together.to_share()),
            precision: precision.all.to_share(),
            planted: self.report_planted(setup, recipe, settings)?,
            memory_bytes: audit.memory_bytes(),
        })
    }

    fn measure_precision(&self, setup: &ShuffleSetup) -> Result<PairPrecision> {
        let mut precision = PairPrecision::default();
        let mut scratch = AnalysisScratch::default();
        for pair in &self.removed {
            let (mut right, mut tokens) = (false, 0);
            for kept in &pair.kept {
                let compared = setup.compare_exactly(kept, &pair.removed, &mut scratch)?;
                (right, tokens) = (compared.matches, compared.tokens);
                if right {
                    break;
                }
            }
            precision.add_pair(tokens, right);
        }
        Ok(precision)
    }

    /// Plants edits in the sampled documents; see [`most_planted_bytes`].
    fn report_planted(
        &self,
        setup: &ShuffleSetup,
        recipe: &Recipe,
        settings: AuditSettings,
    ) -> Result<Option<PlantedReport>> {
        if setup.has_given_features() {
            return Ok(None);
        }
        let most = most_planted_bytes(settings, self.counted.bytes);
        let mut bytes = 0;
        let within_limit = self
            .sampled
            .iter()
            .enumerate()
            .take_while(|(at, document)| {
                bytes += document.text.len() as u64;
                bytes <= most || *at == 0
            });
        let texts: Vec<_> = within_limit
            .map(|(_, document)| (document.id.clone(), document.text.clone()))
            .collect();
        let copies = EditedCopies::plant_copies(setup.match_plan(), recipe, settings.seed, &texts);
        copies.report_recall().map(Some)
    }
}
