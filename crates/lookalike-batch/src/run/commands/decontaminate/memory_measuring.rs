//! The measuring of the memory of a run: the items are measured once their index is built, and the corpus is expected
//! to have the rows that samples of it suggest.

use lookalike::contamination::ContaminationIndex;
use lookalike_io::error::Result;
use lookalike_io::source::InputSet;

use super::build_index;
use super::settings::{DecontaminateInputs, DecontaminateSettings};
use crate::memory::MemoryLimit;
use crate::memory::contamination_plan::{
    ContaminationPlan, ContaminationShares, ExpectedCorpus, MeasuredItems,
};
use crate::run::reading::benchmarks::{BenchmarkItem, BenchmarkSet, OpenBenchmarks};

impl ContaminationPlan {
    /// Plans a run. It reads the benchmarks and builds their index, but of the corpus only samples.
    ///
    /// # Errors
    /// If something cannot be read, if no benchmark has an item, or if the limit is too small and was set by a user; the
    /// message says which limit would do.
    pub fn plan_run(
        inputs: &DecontaminateInputs,
        settings: &DecontaminateSettings,
        limit: MemoryLimit,
    ) -> Result<Self> {
        let benchmarks = OpenBenchmarks::open_paths(&inputs.benchmarks, &settings.read)?;
        let benchmarks = benchmarks.read_items(inputs.fields.as_ref(), settings.spelling)?;
        let items = MeasuredItems::measure(&benchmarks, &build_index(&benchmarks)?);
        let documents = &inputs.documents;
        let corpus = if documents.is_read_once() || documents.has_objects() {
            ExpectedCorpus::default()
        } else {
            let corpus = InputSet::open_source(documents, &settings.read)?;
            ExpectedCorpus::of_inputs(&corpus)?
        };
        Self::from_measures(items, corpus, settings.threads, limit)
    }
}

impl ContaminationShares {
    /// Divides the limit of the settings, once the items are known. Without a limit, or with one that the inputs cannot
    /// reach, nothing is measured.
    ///
    /// # Errors
    /// If the limit is too small and was set by a user, and if the corpus cannot be sampled.
    pub(super) fn for_run(
        inputs: &DecontaminateInputs,
        corpus: &InputSet,
        benchmarks: &BenchmarkSet,
        index: &ContaminationIndex,
        settings: &DecontaminateSettings,
    ) -> Result<Self> {
        let Some(limit) = settings.memory.filter(|limit| limit.is_set) else {
            return Ok(Self::unlimited());
        };
        let expected = if inputs.documents.has_objects() {
            ExpectedCorpus::default()
        } else {
            ExpectedCorpus::of_inputs(corpus)?
        };
        let items = MeasuredItems::measure(benchmarks, index);
        let plan = ContaminationPlan::from_measures(items, expected, settings.threads, limit)?;
        Ok(Self::from_plan(&plan, limit))
    }
}

impl ExpectedCorpus {
    fn of_inputs(inputs: &InputSet) -> Result<Self> {
        Ok(Self {
            documents: match inputs.total_bytes() {
                Some(_) => inputs.expected_rows()?,
                None => None,
            },
            decoding_bytes: inputs.decoding_bytes()?,
        })
    }
}

impl MeasuredItems {
    fn measure(benchmarks: &BenchmarkSet, index: &ContaminationIndex) -> Self {
        let items = benchmarks.items.iter();
        Self {
            items: benchmarks.items.len() as u64,
            text_bytes: items.map(count_item_bytes).sum(),
            index_bytes: index.memory_bytes() as u64,
            terms: index.term_count() as u64,
        }
    }
}

/// Returns the bytes of the texts of an item, and of the item itself.
fn count_item_bytes(item: &BenchmarkItem) -> u64 {
    let texts = [&item.id, &item.question, &item.answer, &item.passage];
    let texts = texts.into_iter().map(String::len);
    let choices = item.choices.iter();
    let choices = choices.map(|choice| choice.len() + size_of::<String>());
    (size_of::<BenchmarkItem>() + texts.sum::<usize>() + choices.sum::<usize>()) as u64
}
