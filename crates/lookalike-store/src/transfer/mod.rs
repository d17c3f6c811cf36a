//! Documents of a collection as lines of JSON: export and import.

mod bulk_import;
mod export;
mod export_line;
mod import;

pub(crate) use self::bulk_import::BulkImport;
pub use self::bulk_import::{ImportCounts, RejectDocument};
pub use self::export::{DocumentExport, export_documents};
pub use self::import::import_documents;
