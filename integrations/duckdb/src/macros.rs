//! The catalog `lookalike`: macros under names that a function of an extension cannot have.
//!
//! A table function of version 1 of the C interface cannot read a table of the user, but a table macro can. A macro needs a
//! catalog. Those of DuckDB itself take none, temporary ones end with their connection, and those of the user belong to the
//! user, so the macros are in a database in memory that is attached as `lookalike`.
//!
//! `jaccard` and `hamming` exist in DuckDB with another meaning: they compare the characters of two texts.

use std::ffi::CStr;
use std::ptr;

use libduckdb_sys as ffi;

/// The statements, each after the one before it has succeeded. A read-only database takes an attached one only if that may
/// be written. Macros have several forms, because DuckDB 1.2 takes no default values by their place.
///
/// `check_texts` refuses a table whose texts are one constant. They are if the name of the column is in single quotes,
/// because `'text'` is a text; all rows but one would then be near-duplicates. `alias` gives an argument as it was written.
const STATEMENTS: [&CStr; 5] = [
    c"ATTACH ':memory:' AS lookalike (READ_WRITE)",
    c"CREATE MACRO lookalike.check_texts(written, found, constant) AS
      CASE WHEN found > 1 AND starts_with(written, '''')
      THEN error(format('near_duplicates: all {} rows have the text ''{}'': give the columns without single quotes, as in near_duplicates(''posts'', text, id); a name with a space stands in double quotes', found, constant))
      ELSE true END",
    c"CREATE MACRO lookalike.near_duplicates
      (documents, text, id) AS TABLE
      (SELECT unnest(near_duplicates(text, id), max_depth := 2) FROM query_table(documents)
      HAVING lookalike.check_texts(min(alias(text)), count(text), min(text))),
      (documents, text, id, threshold) AS TABLE
      (SELECT unnest(near_duplicates(text, id, threshold), max_depth := 2) FROM query_table(documents)
      HAVING lookalike.check_texts(min(alias(text)), count(text), min(text))),
      (documents, text, id, threshold, recipe) AS TABLE
      (SELECT unnest(near_duplicates(text, id, threshold, recipe), max_depth := 2) FROM query_table(documents)
      HAVING lookalike.check_texts(min(alias(text)), count(text), min(text))),
      (documents, text, id, threshold, recipe, forms) AS TABLE
      (SELECT unnest(near_duplicates(text, id, threshold, recipe, forms), max_depth := 2) FROM query_table(documents)
      HAVING lookalike.check_texts(min(alias(text)), count(text), min(text)))",
    c"CREATE MACRO lookalike.jaccard
      (a, b) AS shingle_jaccard(a, b),
      (a, b, recipe) AS shingle_jaccard(a, b, recipe)",
    c"CREATE MACRO lookalike.hamming(a, b) AS hamming_distance(a, b)",
];

/// Fails if a database of the user has the name of the catalog.
const FIND_DATABASE: &CStr =
    c"SELECT error(database_name) FROM duckdb_databases() WHERE database_name = 'lookalike'";

/// Removes what a statement that failed has left.
const DETACH: &CStr = c"DETACH lookalike";

/// Refuses to load beside a database of the user that has the name of the catalog.
///
/// # Errors
/// If there is one.
///
/// # Safety
/// The connection must be open.
pub(crate) unsafe fn refuse_taken_name(connection: ffi::duckdb_connection) -> Result<(), String> {
    // SAFETY: the caller says that the connection is open.
    if unsafe { run_statement(connection, FIND_DATABASE) } {
        return Ok(());
    }
    Err("the extension attaches a database `lookalike`, and yours has that name: open it under another one, for \
         example ATTACH 'lookalike.duckdb' AS mine"
        .to_owned())
}

/// Creates the catalog with all macros, if DuckDB attaches a database. The functions, which the macros call, exist in any
/// case, so that it is no error if it does not. A catalog that lacks a macro does not stay.
///
/// # Safety
/// The connection must be open.
pub(crate) unsafe fn create_all(connection: ffi::duckdb_connection) {
    // SAFETY: the caller says that the connection is open.
    let run = |statement: &CStr| unsafe { run_statement(connection, statement) };
    let [attach, macros @ ..] = STATEMENTS;
    if run(attach) && !macros.into_iter().all(run) {
        run(DETACH);
    }
}

/// Runs a statement, and returns `true` if it succeeds.
///
/// # Safety
/// The connection must be open.
unsafe fn run_statement(connection: ffi::duckdb_connection, statement: &CStr) -> bool {
    // SAFETY: the connection is open; DuckDB accepts a null pointer for a result that nobody reads.
    let state = unsafe { ffi::duckdb_query(connection, statement.as_ptr(), ptr::null_mut()) };
    state == ffi::DuckDBSuccess
}
