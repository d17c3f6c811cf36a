//! `near_duplicates(text, id [, threshold [, recipe [, forms]]])`: an aggregate over documents, whose result is the list of those
//! that `lookalike dedup` removes.
//!
//! DuckDB aggregates rows in any order, on several threads. So the documents are taken in the order of their ids, and of two
//! near-duplicates the one with the smaller id is kept: the result is that of the command over the same rows in this order.
//!
//! Memory: the texts of a group, until DuckDB has the result, and that of a run of the command. DuckDB does not count it to
//! its `memory_limit`.

mod ids;
mod run;
mod text_list;

use std::ffi::CStr;

use libduckdb_sys as ffi;

use self::ids::{IdList, NumberIds, TextIds, UuidId};
use self::run::{DocumentGroup, RemovedDocument};
use crate::columns::{CallRows, ResultColumn};
use crate::registration::{AggregateForm, ValueType, c_text, catch_panics, register_aggregate};

/// Name in SQL.
const NAME: &CStr = c"near_duplicates";

/// Registers the function for ids of each type.
///
/// # Errors
/// If DuckDB refuses it.
///
/// # Safety
/// The connection must be open.
pub(crate) unsafe fn register_all(connection: ffi::duckdb_connection) -> Result<(), String> {
    let number = ValueType::Simple;
    let mut forms = Vec::new();
    add_forms::<NumberIds<i64>>(ValueType::INTEGER, &mut forms);
    let unsigned = number(ffi::DUCKDB_TYPE_DUCKDB_TYPE_UBIGINT);
    add_forms::<NumberIds<u64>>(unsigned, &mut forms);
    let huge = number(ffi::DUCKDB_TYPE_DUCKDB_TYPE_HUGEINT);
    add_forms::<NumberIds<i128>>(huge.clone(), &mut forms);
    let uuid = number(ffi::DUCKDB_TYPE_DUCKDB_TYPE_UUID);
    add_forms::<NumberIds<UuidId>>(uuid.clone(), &mut forms);
    add_forms::<TextIds>(ValueType::TEXT, &mut forms);
    for id in [huge, uuid] {
        add_refusing_forms([id, ValueType::TEXT], refuse_order, &mut forms);
    }
    for id in REFUSED_ID_TYPES {
        add_refusing_forms([ValueType::TEXT, number(id)], refuse_id_type, &mut forms);
    }
    // SAFETY: the caller's connection is open, and `add_forms` uses the types with which `I` reads and writes.
    unsafe { register_aggregate(connection, NAME, &forms) }
}

/// Types of ids that are refused with a remedy. DuckDB casts others to these, for example decimal numbers to `DOUBLE`.
const REFUSED_ID_TYPES: [ffi::duckdb_type; 4] = [
    ffi::DUCKDB_TYPE_DUCKDB_TYPE_DOUBLE,
    ffi::DUCKDB_TYPE_DUCKDB_TYPE_DATE,
    ffi::DUCKDB_TYPE_DUCKDB_TYPE_TIMESTAMP,
    ffi::DUCKDB_TYPE_DUCKDB_TYPE_TIMESTAMP_TZ,
];

/// Adds the forms of the function with ids of a type.
fn add_forms<I: IdList>(id: ValueType, forms: &mut Vec<AggregateForm>) {
    let documents = [ValueType::TEXT, id.clone()];
    add_all_forms::<I>(documents, id, Some(update_states::<I>), forms);
}

/// Adds forms that refuse every row, because the message of DuckDB about types names no remedy.
fn add_refusing_forms(
    documents: [ValueType; 2],
    refuse: UpdateFunction,
    forms: &mut Vec<AggregateForm>,
) {
    add_all_forms::<TextIds>(documents, ValueType::TEXT, Some(refuse), forms);
}

/// Function that DuckDB calls with rows and the states to which they belong.
type UpdateFunction = unsafe extern "C" fn(
    ffi::duckdb_function_info,
    ffi::duckdb_data_chunk,
    *mut ffi::duckdb_aggregate_state,
);

/// Adds the forms without and with the optional parameters behind the two of a document.
fn add_all_forms<I: IdList>(
    documents: [ValueType; 2],
    id: ValueType,
    update: Option<UpdateFunction>,
    forms: &mut Vec<AggregateForm>,
) {
    let optional = [ValueType::REAL, ValueType::TEXT, ValueType::TEXT];
    let all: Vec<ValueType> = documents.into_iter().chain(optional).collect();
    let fields = vec![
        (c"id", id.clone()),
        (c"kept", id),
        (c"similarity", ValueType::REAL),
        (c"method", ValueType::TEXT),
    ];
    let result = ValueType::List(Box::new(ValueType::Structure(fields)));
    forms.extend((2..=all.len()).map(|count| AggregateForm {
        parameters: all[..count].to_vec(),
        result: result.clone(),
        state_size: Some(state_size),
        init: Some(init_state::<I>),
        update,
        combine: Some(combine_states::<I>),
        finalize: Some(finalize_states::<I>),
        destroy: Some(destroy_states::<I>),
    }));
}

unsafe extern "C" fn refuse_order(
    info: ffi::duckdb_function_info,
    _: ffi::duckdb_data_chunk,
    _: *mut ffi::duckdb_aggregate_state,
) {
    let reason = "the id stands before the text: give the text first, as in near_duplicates('posts', text, id) or, as an \
                  aggregate, near_duplicates(text, id)";
    report_error(info, Err(reason.to_owned()));
}

unsafe extern "C" fn refuse_id_type(
    info: ffi::duckdb_function_info,
    _: ffi::duckdb_data_chunk,
    _: *mut ffi::duckdb_aggregate_state,
) {
    let reason = "ids are whole numbers, UUIDs or texts, and not fractions, dates or times: give CAST(id AS VARCHAR)";
    report_error(info, Err(reason.to_owned()));
}

/// State of a group: a pointer to its documents, because DuckDB moves states.
type GroupState<I> = *mut DocumentGroup<I>;

/// Returns a pointer to the documents of the state at a place.
///
/// # Safety
/// The states must be initialised.
unsafe fn group_at<I>(states: *mut ffi::duckdb_aggregate_state, at: usize) -> GroupState<I> {
    // SAFETY: the state has a pointer to documents since `init_state`.
    unsafe { (*states.add(at)).cast::<GroupState<I>>().read() }
}

/// Passes the error of a call to DuckDB, if there is one.
fn report_error(info: ffi::duckdb_function_info, done: Result<(), String>) {
    if let Err(reason) = done {
        let reason = c_text(&format!("{}: {reason}", NAME.to_string_lossy()));
        // SAFETY: `info` is that of this call, and the text is copied.
        unsafe { ffi::duckdb_aggregate_function_set_error(info, reason.as_ptr()) };
    }
}

unsafe extern "C" fn state_size(_: ffi::duckdb_function_info) -> ffi::idx_t {
    size_of::<*mut ()>() as ffi::idx_t
}

unsafe extern "C" fn init_state<I: IdList>(
    _: ffi::duckdb_function_info,
    state: ffi::duckdb_aggregate_state,
) {
    let group = Box::into_raw(Box::<DocumentGroup<I>>::default());
    // SAFETY: the state has room for a pointer.
    unsafe { state.cast::<GroupState<I>>().write(group) };
}

unsafe extern "C" fn update_states<I: IdList>(
    info: ffi::duckdb_function_info,
    input: ffi::duckdb_data_chunk,
    states: *mut ffi::duckdb_aggregate_state,
) {
    let updated = catch_panics(|| {
        // SAFETY: DuckDB keeps the chunk until this function returns.
        let rows = unsafe { CallRows::from_chunk(input) };
        (0..rows.count).try_for_each(|row| {
            // SAFETY: there is a state for each row, and no other thread uses it meanwhile.
            let group = unsafe { &mut *group_at::<I>(states, row) };
            group.push_row(&rows, row)
        })
    });
    report_error(info, updated);
}

unsafe extern "C" fn combine_states<I: IdList>(
    info: ffi::duckdb_function_info,
    sources: *mut ffi::duckdb_aggregate_state,
    targets: *mut ffi::duckdb_aggregate_state,
    count: ffi::idx_t,
) {
    let combined = catch_panics(|| {
        (0..count as usize).try_for_each(|at| {
            // SAFETY: both are different states. Other threads may read the source meanwhile, and nobody uses the target.
            let (source, target) = unsafe {
                (
                    &*group_at::<I>(sources, at),
                    &mut *group_at::<I>(targets, at),
                )
            };
            target.append_group(source)
        })
    });
    report_error(info, combined);
}

unsafe extern "C" fn finalize_states<I: IdList>(
    info: ffi::duckdb_function_info,
    states: *mut ffi::duckdb_aggregate_state,
    result: ffi::duckdb_vector,
    count: ffi::idx_t,
    offset: ffi::idx_t,
) {
    let finalized = catch_panics(|| {
        (0..count as usize).try_for_each(|at| {
            // SAFETY: DuckDB keeps states and result until this function returns, and no thread changes the state.
            let (group, result) = unsafe {
                (
                    &*group_at::<I>(states, at),
                    ResultColumn::from_vector(result),
                )
            };
            let duplicates = group.find_duplicates()?;
            write_duplicates(&duplicates, group, result, offset as usize + at)
        })
    });
    report_error(info, finalized);
}

unsafe extern "C" fn destroy_states<I: IdList>(
    states: *mut ffi::duckdb_aggregate_state,
    count: ffi::idx_t,
) {
    for at in 0..count as usize {
        // SAFETY: every state is destroyed once. Freeing documents does not panic.
        drop(unsafe { Box::from_raw(group_at::<I>(states, at)) });
    }
}

/// Writes a list of duplicates with the fields that [`add_forms`] declares.
fn write_duplicates<I: IdList>(
    duplicates: &[RemovedDocument],
    group: &DocumentGroup<I>,
    result: ResultColumn,
    row: usize,
) -> Result<(), String> {
    let (elements, first) = result.begin_list(row, duplicates.len())?;
    let [id, kept, similarity, method] = [0, 1, 2, 3].map(|field| elements.field_column(field));
    for (duplicate, at) in duplicates.iter().zip(first..) {
        group.ids.write_id(duplicate.document, id, at);
        group.ids.write_id(duplicate.kept, kept, at);
        // SAFETY: this field has real numbers.
        unsafe { similarity.set_number::<f64>(at, duplicate.similarity) };
        method.set_text(at, &duplicate.method);
    }
    Ok(())
}
