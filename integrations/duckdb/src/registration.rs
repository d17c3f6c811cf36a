//! Registers functions with DuckDB, and turns errors and panics into errors of a query.

use std::ffi::{CStr, CString};
use std::panic::{AssertUnwindSafe, catch_unwind};

use libduckdb_sys as ffi;

use crate::columns::{CallRows, ResultColumn};

/// Type of a parameter or a result.
#[derive(Clone, Debug)]
pub(crate) enum ValueType {
    /// A type without parameters of its own, for example a number of 64 bits.
    Simple(ffi::duckdb_type),
    /// A list of values of this type.
    List(Box<ValueType>),
    /// A structure of named fields.
    Structure(Vec<(&'static CStr, ValueType)>),
}

impl ValueType {
    pub(crate) const TEXT: Self = Self::Simple(ffi::DUCKDB_TYPE_DUCKDB_TYPE_VARCHAR);
    /// A signed number of 64 bits.
    pub(crate) const INTEGER: Self = Self::Simple(ffi::DUCKDB_TYPE_DUCKDB_TYPE_BIGINT);
    /// An unsigned number of 64 bits.
    pub(crate) const FINGERPRINT: Self = Self::Simple(ffi::DUCKDB_TYPE_DUCKDB_TYPE_UBIGINT);
    /// An unsigned number of 32 bits.
    pub(crate) const SLOT: Self = Self::Simple(ffi::DUCKDB_TYPE_DUCKDB_TYPE_UINTEGER);
    pub(crate) const REAL: Self = Self::Simple(ffi::DUCKDB_TYPE_DUCKDB_TYPE_DOUBLE);
}

/// A logical type of DuckDB, which is freed with it.
struct OwnedType(ffi::duckdb_logical_type);

impl OwnedType {
    fn new(value_type: &ValueType) -> Self {
        match value_type {
            // SAFETY: the number is that of a type.
            ValueType::Simple(number) => Self(unsafe { ffi::duckdb_create_logical_type(*number) }),
            ValueType::List(element) => {
                let element = Self::new(element);
                // SAFETY: the type of the elements is valid, and is copied.
                Self(unsafe { ffi::duckdb_create_list_type(element.0) })
            }
            ValueType::Structure(fields) => {
                let types: Vec<_> = fields.iter().map(|(_, field)| Self::new(field)).collect();
                let mut handles: Vec<_> = types.iter().map(|field| field.0).collect();
                let mut names: Vec<_> = fields.iter().map(|(name, _)| name.as_ptr()).collect();
                let count = fields.len() as ffi::idx_t;
                // SAFETY: both arrays have as many elements as the structure has fields, and are copied.
                Self(unsafe {
                    ffi::duckdb_create_struct_type(handles.as_mut_ptr(), names.as_mut_ptr(), count)
                })
            }
        }
    }
}

impl Drop for OwnedType {
    fn drop(&mut self) {
        // SAFETY: the type is destroyed once.
        unsafe { ffi::duckdb_destroy_logical_type(&raw mut self.0) };
    }
}

/// A function of one row.
pub(crate) trait ScalarFunction {
    /// Name in SQL.
    const NAME: &'static CStr;

    /// Returns the parameters of each form in which the function can be called.
    fn parameters() -> Vec<Vec<ValueType>>;

    /// Returns the type of the result.
    fn result() -> ValueType;

    /// Writes the results of rows. A row of which a required value is missing has no result.
    ///
    /// # Errors
    /// The reason why the query ends.
    fn compute(rows: &CallRows, result: ResultColumn) -> Result<(), String>;
}

/// Returns the result of `work`, or the message of its panic, which must not unwind into DuckDB.
pub(crate) fn catch_panics<T>(work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let message = panic.downcast_ref::<String>().map(String::as_str);
        let message = message.or_else(|| panic.downcast_ref::<&str>().copied());
        let message = message.unwrap_or("no reason was given");
        Err(format!("an error of lookalike itself: {message}"))
    })
}

/// Returns a text for DuckDB, cut at the first zero byte.
pub(crate) fn c_text(text: &str) -> CString {
    let end = text.find('\0').unwrap_or(text.len());
    CString::new(&text[..end]).unwrap_or_default()
}

unsafe extern "C" fn call_scalar<F: ScalarFunction>(
    info: ffi::duckdb_function_info,
    input: ffi::duckdb_data_chunk,
    output: ffi::duckdb_vector,
) {
    let computed = catch_panics(|| {
        // SAFETY: DuckDB keeps both until this function returns.
        let (rows, result) = unsafe {
            (
                CallRows::from_chunk(input),
                ResultColumn::from_vector(output),
            )
        };
        F::compute(&rows, result)
    });
    if let Err(reason) = computed {
        let reason = c_text(&format!("{}: {reason}", F::NAME.to_string_lossy()));
        // SAFETY: `info` is that of this call, and the text is copied.
        unsafe { ffi::duckdb_scalar_function_set_error(info, reason.as_ptr()) };
    }
}

/// Registers a function in all its forms.
///
/// # Errors
/// If DuckDB refuses it.
///
/// # Safety
/// The connection must be open.
pub(crate) unsafe fn register_scalar<F: ScalarFunction>(
    connection: ffi::duckdb_connection,
) -> Result<(), String> {
    // SAFETY: everything that is created here is destroyed here, and DuckDB copies what it keeps.
    let state = unsafe {
        let mut set = ffi::duckdb_create_scalar_function_set(F::NAME.as_ptr());
        for parameters in F::parameters() {
            let mut function = ffi::duckdb_create_scalar_function();
            ffi::duckdb_scalar_function_set_name(function, F::NAME.as_ptr());
            for parameter in &parameters {
                ffi::duckdb_scalar_function_add_parameter(function, OwnedType::new(parameter).0);
            }
            ffi::duckdb_scalar_function_set_return_type(function, OwnedType::new(&F::result()).0);
            // A missing recipe stands for the default one, so that rows with missing values are passed, too.
            ffi::duckdb_scalar_function_set_special_handling(function);
            ffi::duckdb_scalar_function_set_function(function, Some(call_scalar::<F>));
            ffi::duckdb_add_scalar_function_to_set(set, function);
            ffi::duckdb_destroy_scalar_function(&raw mut function);
        }
        let state = ffi::duckdb_register_scalar_function_set(connection, set);
        ffi::duckdb_destroy_scalar_function_set(&raw mut set);
        state
    };
    check_registered(state, F::NAME)
}

/// One form of an aggregate function: its types, and the functions that DuckDB calls.
pub(crate) struct AggregateForm {
    pub(crate) parameters: Vec<ValueType>,
    pub(crate) result: ValueType,
    pub(crate) state_size: ffi::duckdb_aggregate_state_size,
    pub(crate) init: ffi::duckdb_aggregate_init_t,
    pub(crate) update: ffi::duckdb_aggregate_update_t,
    pub(crate) combine: ffi::duckdb_aggregate_combine_t,
    pub(crate) finalize: ffi::duckdb_aggregate_finalize_t,
    pub(crate) destroy: ffi::duckdb_aggregate_destroy_t,
}

impl AggregateForm {
    /// Adds the form to a set of functions.
    ///
    /// # Safety
    /// The set must be valid, and the functions must fit the types.
    unsafe fn add_to_set(&self, set: ffi::duckdb_aggregate_function_set, name: &CStr) {
        // SAFETY: everything that is created here is destroyed here, and DuckDB copies what it keeps.
        unsafe {
            let mut function = ffi::duckdb_create_aggregate_function();
            ffi::duckdb_aggregate_function_set_name(function, name.as_ptr());
            for parameter in &self.parameters {
                let parameter = OwnedType::new(parameter);
                ffi::duckdb_aggregate_function_add_parameter(function, parameter.0);
            }
            let result = OwnedType::new(&self.result);
            ffi::duckdb_aggregate_function_set_return_type(function, result.0);
            ffi::duckdb_aggregate_function_set_functions(
                function,
                self.state_size,
                self.init,
                self.update,
                self.combine,
                self.finalize,
            );
            ffi::duckdb_aggregate_function_set_destructor(function, self.destroy);
            // Rows with missing values are passed, too: a missing id is an error.
            ffi::duckdb_aggregate_function_set_special_handling(function);
            ffi::duckdb_add_aggregate_function_to_set(set, function);
            ffi::duckdb_destroy_aggregate_function(&raw mut function);
        }
    }
}

/// Registers an aggregate function in all its forms.
///
/// # Errors
/// If DuckDB refuses it.
///
/// # Safety
/// The connection must be open, and the functions of each form must fit its types.
pub(crate) unsafe fn register_aggregate(
    connection: ffi::duckdb_connection,
    name: &CStr,
    forms: &[AggregateForm],
) -> Result<(), String> {
    // SAFETY: the set is destroyed here, and DuckDB copies what it keeps.
    let state = unsafe {
        let mut set = ffi::duckdb_create_aggregate_function_set(name.as_ptr());
        for form in forms {
            form.add_to_set(set, name);
        }
        let state = ffi::duckdb_register_aggregate_function_set(connection, set);
        ffi::duckdb_destroy_aggregate_function_set(&raw mut set);
        state
    };
    check_registered(state, name)
}

fn check_registered(state: ffi::duckdb_state, name: &CStr) -> Result<(), String> {
    if state == ffi::DuckDBSuccess {
        return Ok(());
    }
    let name = name.to_string_lossy();
    Err(format!(
        "DuckDB refuses the function {name}, because it has one of this name: load lookalike before the extension that \
         brings it"
    ))
}
