//! The connection to the database that loads the extension.
//!
//! DuckDB passes its functions as a table of pointers, which grows at its end with every release. `libduckdb-sys` reads
//! every pointer of the newest table that it knows. An older DuckDB has a shorter table, so `libduckdb-sys` gets a copy that
//! is filled up with null pointers behind the functions of [`INTERFACE_VERSION`].

use std::cell::Cell;
use std::ffi::{c_char, c_void};
use std::mem::{MaybeUninit, offset_of};
use std::ptr;

use libduckdb_sys as ffi;

use crate::registration::{c_text, catch_panics};

/// Oldest version of the C interface that has all functions which the extension calls.
const INTERFACE_VERSION: &str = "v1.2.0";

/// Size of the table of DuckDB 1.2.0, in bytes: the place of the first function that came later.
const FIRST_TABLE_BYTES: usize = offset_of!(ffi::duckdb_ext_api_v1, duckdb_appender_error_data);

thread_local! {
    /// The filled-up table while [`with_connection`] initialises `libduckdb-sys`.
    static FILLED_TABLE: Cell<*const c_void> = const { Cell::new(ptr::null()) };
}

/// Calls `work` with a connection to the database that loads the extension. The connection is closed afterwards, because an
/// open one would keep the files of the database locked. Returns `false` after an error, which is passed to DuckDB.
///
/// # Safety
/// The pointers must be those with which DuckDB calls an extension.
pub(crate) unsafe fn with_connection(
    info: ffi::duckdb_extension_info,
    access: *const ffi::duckdb_extension_access,
    work: impl FnOnce(ffi::duckdb_connection) -> Result<(), String>,
) -> bool {
    // SAFETY: the caller passes the pointers of DuckDB.
    let access = unsafe { &*access };
    let loaded = catch_panics(|| {
        // SAFETY: as above, and the functions are known once the interface is loaded.
        let mut connection = unsafe {
            load_interface(info, access)?;
            connect_to_database(info, access)?
        };
        let done = catch_panics(|| work(connection));
        // SAFETY: the connection is open, and is closed once.
        unsafe { ffi::duckdb_disconnect(&raw mut connection) };
        done
    });
    let Err(reason) = loaded else { return true };
    if let Some(set_error) = access.set_error {
        // SAFETY: DuckDB copies the text.
        unsafe { set_error(info, c_text(&reason).as_ptr()) };
    }
    false
}

/// Makes the functions of DuckDB known to `libduckdb-sys`.
///
/// # Errors
/// If this DuckDB does not have the functions.
///
/// # Safety
/// The pointers must be those with which DuckDB calls an extension.
unsafe fn load_interface(
    info: ffi::duckdb_extension_info,
    access: &ffi::duckdb_extension_access,
) -> Result<(), String> {
    let too_old = || {
        format!(
            "this DuckDB does not have version {INTERFACE_VERSION} of the C interface: use DuckDB 1.2 or later"
        )
    };
    let get_api = access.get_api.ok_or_else(too_old)?;
    // SAFETY: `info` is that of this call.
    let table = unsafe { get_api(info, c_text(INTERFACE_VERSION).as_ptr()) };
    if table.is_null() {
        return Err(too_old());
    }
    let mut filled = MaybeUninit::<ffi::duckdb_ext_api_v1>::zeroed();
    let copied = ffi::duckdb_extension_access {
        get_api: Some(filled_table),
        ..*access
    };
    // SAFETY: every DuckDB with this interface has at least so many bytes of functions, and zeros are absent functions. The
    // copy lives until the pointers are read.
    unsafe {
        let target = filled.as_mut_ptr().cast::<u8>();
        ptr::copy_nonoverlapping(table.cast::<u8>(), target, FIRST_TABLE_BYTES);
        FILLED_TABLE.set(target.cast());
        let loaded = ffi::duckdb_rs_extension_api_init(info, &raw const copied, INTERFACE_VERSION);
        FILLED_TABLE.set(ptr::null());
        if loaded? { Ok(()) } else { Err(too_old()) }
    }
}

/// Returns the filled-up table in the place of DuckDB's own.
unsafe extern "C" fn filled_table(
    _: ffi::duckdb_extension_info,
    _: *const c_char,
) -> *const c_void {
    FILLED_TABLE.get()
}

/// Opens a connection to the database that loads the extension.
///
/// # Errors
/// If DuckDB refuses it.
///
/// # Safety
/// `info` and `access` must be those of DuckDB, and the interface loaded.
unsafe fn connect_to_database(
    info: ffi::duckdb_extension_info,
    access: &ffi::duckdb_extension_access,
) -> Result<ffi::duckdb_connection, String> {
    let get_database = access.get_database;
    let get_database =
        get_database.ok_or("DuckDB does not say which database loads the extension")?;
    let mut connection = ptr::null_mut();
    // SAFETY: DuckDB returns a pointer to its database, or null after an error.
    unsafe {
        let database = get_database(info);
        if database.is_null() {
            return Err("DuckDB passes no database to the extension".to_owned());
        }
        if ffi::duckdb_connect(*database, &raw mut connection) != ffi::DuckDBSuccess {
            return Err("the extension cannot connect to the database that loads it".to_owned());
        }
    }
    Ok(connection)
}
