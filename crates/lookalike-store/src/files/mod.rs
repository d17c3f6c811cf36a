//! The files of a collection: their names, their bytes, and how they are read and written.
//!
//! | module | file |
//! |---|---|
//! | [`manifest`], [`window_history`] | the settings, and the windows so far |
//! | [`partition_list`], [`inventory`] | the list of partitions, and its comparison with the files on disk |
//! | [`partition`], [`partition_header`], [`database`], [`rows`] | the rows of a partition |
//! | [`log_progress`] | the position in a shared log, beside the rows of a partition |
//! | [`records`] | the texts of a partition |
//! | [`sketches`] | a cache of the sketches of a partition |
//! | [`whole_file`] | reading and replacing the small files |

mod database;
pub(crate) mod file_names;
pub(crate) mod inventory;
pub(crate) mod log_progress;
pub(crate) mod manifest;
pub(crate) mod partition;
pub(crate) mod partition_header;
pub(crate) mod partition_list;
pub(crate) mod partition_set;
pub(crate) mod records;
pub(crate) mod rows;
pub(crate) mod sketches;
pub(crate) mod whole_file;
pub(crate) mod window_history;

pub(crate) use self::database::PAGE_CACHE_BYTES;
