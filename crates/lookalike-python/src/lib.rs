//! `lookalike._engine`: the Python binding of the engine.
//!
//! The binding is thin, because `lookalike` and `lookalike-batch` decide the meaning of a call, and
//! `python/lookalike` decides its interface. This crate only converts: Arrow tables come in without
//! a copy (`table`), runs release the interpreter and handle Ctrl-C (`run`), and errors become
//! exceptions (`error`).

mod command;
mod compare;
mod decontaminate;
mod distributed;
mod distributed_audit;
mod distributed_contamination;
mod distributed_passages;
mod distributed_repeats;
mod documents;
mod error;
mod function_cache;
mod hamming;
mod index;
mod labelled;
mod lsh;
mod minhash;
mod passages;
mod recipe;
mod rensa;
mod run;
mod settings;
mod sketch;
mod stream;
mod table;
mod temporary_texts;
mod texts;

use pyo3::prelude::*;

/// The compiled part of the package; see `lookalike`.
#[pymodule(gil_used = false)]
#[pyo3(name = "_engine")]
mod engine {
    #[pymodule_export]
    use crate::command::run_command;
    #[pymodule_export]
    use crate::compare::{compare, segment};
    #[pymodule_export]
    use crate::decontaminate::decontaminate;
    #[pymodule_export]
    use crate::distributed::{
        Collect, Features, Gather, Scatter, Settle, ShuffleJob, copy_weights, members, repeats,
    };
    #[pymodule_export]
    use crate::distributed_audit::{
        CompareSample, SampleDocuments, SampleRemoved, audit_report, check_audit, choose_sample,
    };
    #[pymodule_export]
    use crate::distributed_contamination::{
        ContaminationJob, DecideFindings, SearchItems, check_cut, question_limit, read_items,
    };
    #[pymodule_export]
    use crate::distributed_passages::{
        CompareGroups, GatherCandidates, GatherMembers, PassageJob, ScatterGrams, document_limit,
    };
    #[pymodule_export]
    use crate::distributed_repeats::{PlaceNaming, RepeatedTextSteps, places_of_cuts};
    #[pymodule_export]
    use crate::hamming::HammingIndexBase;
    #[pymodule_export]
    use crate::index::{
        index_add, index_build, index_fingerprints, index_info, index_remove, index_search,
        index_verify,
    };
    #[pymodule_export]
    use crate::labelled::{evaluate, idf, tune};
    #[pymodule_export]
    use crate::lsh::{LshIndexBase, LshTables};
    #[pymodule_export]
    use crate::minhash::{MinHash, restore_minhash};
    #[pymodule_export]
    use crate::passages::{passages, shared_passages};
    #[pymodule_export]
    use crate::recipe::Recipe;
    #[pymodule_export]
    use crate::rensa::{NumberLsh, TokenMinHash, hash_token_sets};
    #[pymodule_export]
    use crate::run::{dedup, learn_forms, pairs};
    #[pymodule_export]
    use crate::sketch::{minhash, simhash, simhash_of_tokens};
    #[pymodule_export]
    use crate::stream::{StreamBase, StreamVerdict, read_saved_stream};

    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("RECIPES", lookalike::Recipe::NAMES.to_vec())?;
        module.add("AUDIT_PARTNERS", lookalike::quality::audit::PARTNERS)?;
        module.add("SEGMENTING", lookalike_batch::recipes::SEGMENTATION_RECIPE)
    }
}
