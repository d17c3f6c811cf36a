//! An extension of DuckDB: near-duplicates, fingerprints and shared passages in SQL.
//!
//! | function | result |
//! |---|---|
//! | `near_duplicates(text, id [, threshold [, recipe [, forms]]])` | aggregate: the documents that `lookalike dedup` removes |
//! | `simhash(text [, recipe])` | the fingerprint of `lookalike fingerprint` |
//! | `minhash(text [, recipe])` | the slots of the signature of `lookalike fingerprint --method minhash` |
//! | `shingle_jaccard(a, b [, recipe])` | the Jaccard index of `lookalike compare` |
//! | `hamming_distance(a, b)` of two fingerprints | the number of differing bits |
//! | `shared_passages(a, b [, recipe [, min_length]])` | the passages of `lookalike compare` |
//!
//! The table macros and the names that DuckDB uses otherwise (`jaccard`, `hamming`) are in a catalog of their own, which is
//! called `lookalike`; see `macros`. All values are those of the command, because the same crates compute them.
//!
//! The functions are registered through version 1 of DuckDB's C interface. It is stable, so that one file serves all
//! releases of DuckDB from 1.2 on.
//!
//! | module | job |
//! |---|---|
//! | `interface` | connects to the database that loads the extension |
//! | `columns` | reads the columns of a call and writes those of its result |
//! | `registration` | registers functions, and turns errors and panics into errors of a query |
//! | `recipe_tools` | recipes by name, with their analyzers and hashers |
//! | `scalars` | the functions of one row |
//! | `aggregate` | `near_duplicates` |
//! | `macros` | the catalog `lookalike` |

#![allow(
    unsafe_code,
    reason = "DuckDB calls extensions through its C interface"
)]

mod aggregate;
mod columns;
mod interface;
mod macros;
mod recipe_tools;
mod registration;
mod scalars;

use libduckdb_sys as ffi;

/// Registers everything. DuckDB calls it when it loads the extension. Returns `false` after an error, whose message DuckDB
/// then has.
///
/// # Safety
/// The pointers must be those with which DuckDB calls an extension.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lookalike_init_c_api(
    info: ffi::duckdb_extension_info,
    access: *const ffi::duckdb_extension_access,
) -> bool {
    // SAFETY: the caller passes the pointers of DuckDB.
    unsafe {
        interface::with_connection(info, access, |connection| {
            macros::refuse_taken_name(connection)?;
            scalars::register_all(connection)?;
            aggregate::register_all(connection)?;
            macros::create_all(connection);
            Ok(())
        })
    }
}
