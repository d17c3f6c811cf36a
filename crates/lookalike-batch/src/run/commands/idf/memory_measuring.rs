//! The measuring of the memory of a run: the terms of its first blocks are measured, and [`IdfPlan`] is made from the
//! measures.

use std::collections::HashSet;

use lookalike::Recipe;
use lookalike::text::{AnalysisScratch, TextAnalyzer};
use lookalike_io::error::Result;
use lookalike_io::source::{InputSet, ParseScratch, RowSource};

use crate::memory::MemoryLimit;
use crate::memory::frequency_plan::{IdfPlan, MeasuredTerms};
use crate::run::commands::idf::settings::IdfSettings;

/// Bytes of text after which no further block is read to estimate the number of different terms.
const MEASURED_BYTES: u64 = 32 << 20;

impl IdfPlan {
    /// Estimates a run. It reads the first blocks of the inputs, from a source of its own.
    ///
    /// # Errors
    /// If the inputs cannot be read, or if the limit is too small for any run.
    pub fn plan_run(
        source: &RowSource,
        settings: &IdfSettings,
        limit: MemoryLimit,
    ) -> Result<Self> {
        let mut plan = Self::new(limit, settings.threads)?;
        if source.is_read_once() || source.is_empty() {
            return Ok(plan);
        }
        let inputs = InputSet::open_source(source, &settings.read)?;
        let documents = match inputs.total_bytes() {
            Some(_) => inputs.expected_rows()?,
            None => None,
        };
        let Some(documents) = documents else {
            return Ok(plan);
        };
        let measured = MeasuredTerms::from_inputs(&inputs, &settings.recipe)?;
        let is_packed = settings.recipe.tokens == lookalike::recipe::TokenKind::Characters
            && settings.recipe.ngram <= 3;
        plan.estimate(&measured, documents, settings.threads, is_packed);
        Ok(plan)
    }
}

impl MeasuredTerms {
    fn from_inputs(inputs: &InputSet, recipe: &Recipe) -> Result<Self> {
        let analyzer = TextAnalyzer::new(recipe);
        let mut scratch = AnalysisScratch::default();
        let mut measured = Self::default();
        let mut of_blocks = Vec::new();
        let mut bytes = 0;
        while bytes < MEASURED_BYTES
            && let Some(block) = inputs.next_block()?
        {
            inputs.parse_block(&block, &mut ParseScratch::default(), &mut |row| {
                if let Ok(row) = row {
                    bytes += row.text.len() as u64;
                    measured.add_text(&analyzer, row.text, recipe.ngram as usize, &mut scratch);
                }
                Ok(())
            })?;
            of_blocks.push((measured.documents, measured.distinct.len()));
        }
        let middle =
            of_blocks.partition_point(|&(documents, _)| 2 * documents <= measured.documents);
        measured.half = middle.checked_sub(1).map_or((0, 0), |at| of_blocks[at]);
        Ok(measured)
    }

    /// Counts the terms of a text: each once in the text, and once in `distinct` with the bytes of its spelling.
    fn add_text(
        &mut self,
        analyzer: &TextAnalyzer,
        text: &str,
        ngram: usize,
        scratch: &mut AnalysisScratch,
    ) {
        let (mut tokens, mut ends, mut end) = (Vec::new(), Vec::new(), 0);
        analyzer.visit_terms(text, scratch, false, &mut |term| {
            end += term.text.len() + 1;
            tokens.push(term.value);
            ends.push(end);
        });
        let mut of_text = HashSet::new();
        for (at, window) in tokens.windows(ngram).enumerate() {
            let bytes: Vec<u8> = window
                .iter()
                .flat_map(|token| token.to_le_bytes())
                .collect();
            let hash = lookalike::value_hash(&bytes);
            if of_text.insert(hash) && self.distinct.insert(hash) {
                let start = at.checked_sub(1).map_or(0, |before| ends[before]);
                self.spelling_bytes += (ends[at + ngram - 1] - start) as u64;
            }
        }
        self.documents += u64::from(!of_text.is_empty());
        self.occurrences += of_text.len() as u64;
    }
}
