//! Execution: the sketched documents of a run, in memory or in temporary files, their links and their verdicts.

pub(crate) mod audit;
pub(crate) mod disk_backend;
pub(crate) mod form_learning;
pub(crate) mod index_matches;
pub(in crate::run) mod memory_measuring;
pub(crate) mod out_of_core;
pub(crate) mod person_decisions;
pub(crate) mod run_corpus;
pub(in crate::run) mod run_directories;
pub(crate) mod run_stages;
pub(crate) mod work_directory;
