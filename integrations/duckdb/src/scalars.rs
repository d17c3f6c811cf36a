//! The functions of one row. A row without a text has no result, and neither has a text without a sketch.

use std::ffi::CStr;

use libduckdb_sys as ffi;
use lookalike::passages::PassageSettings;
use lookalike::similarity::jaccard_index;
use lookalike_comparison::shared_passages::{SharedPassage, SharedPassages};

use crate::columns::{CallRows, InputColumn, ResultColumn};
use crate::recipe_tools::{RecipeTools, RowRecipes};
use crate::registration::{ScalarFunction, ValueType, register_scalar};

/// Registers all functions of this module.
///
/// # Errors
/// If DuckDB refuses one.
///
/// # Safety
/// The connection must be open.
pub(crate) unsafe fn register_all(connection: ffi::duckdb_connection) -> Result<(), String> {
    // SAFETY: the caller's connection is open.
    unsafe {
        register_scalar::<SimHashFunction>(connection)?;
        register_scalar::<MinHashFunction>(connection)?;
        register_scalar::<JaccardFunction>(connection)?;
        register_scalar::<HammingFunction>(connection)?;
        register_scalar::<PassagesFunction>(connection)
    }
}

/// Returns the parameters without and with a recipe at the end.
fn with_optional_recipe(texts: usize) -> Vec<Vec<ValueType>> {
    vec![
        vec![ValueType::TEXT; texts],
        vec![ValueType::TEXT; texts + 1],
    ]
}

/// `simhash(text [, recipe])`.
struct SimHashFunction;

impl ScalarFunction for SimHashFunction {
    const NAME: &'static CStr = c"simhash";

    fn parameters() -> Vec<Vec<ValueType>> {
        with_optional_recipe(1)
    }

    fn result() -> ValueType {
        ValueType::FINGERPRINT
    }

    fn compute(rows: &CallRows, result: ResultColumn) -> Result<(), String> {
        let mut recipes = RowRecipes::default();
        rows.compute_each(1, result, |row| {
            let tools = recipes.tools_for(rows.optional_text(1, row))?;
            check_fingerprint_bits(tools)?;
            let text = rows.columns[0].text_at(row);
            let fingerprint = tools.analyze_text(text, |analysis| {
                tools.simhasher.original_fingerprint(analysis)
            });
            match fingerprint {
                // SAFETY: the result has unsigned numbers of 64 bits.
                Some(fingerprint) => unsafe { result.set_number(row, fingerprint as u64) },
                None => result.set_missing(row),
            }
            Ok(())
        })
    }
}

/// # Errors
/// If the fingerprints of a recipe have more bits than the result.
fn check_fingerprint_bits(tools: &RecipeTools) -> Result<(), String> {
    let bits = tools.recipe.simhash.bits;
    if bits <= u64::BITS {
        return Ok(());
    }
    Err(format!(
        "the recipe '{}' has fingerprints of {bits} bits, and the result has 64: use another recipe",
        tools.recipe.name
    ))
}

/// `minhash(text [, recipe])`.
struct MinHashFunction;

impl ScalarFunction for MinHashFunction {
    const NAME: &'static CStr = c"minhash";

    fn parameters() -> Vec<Vec<ValueType>> {
        with_optional_recipe(1)
    }

    fn result() -> ValueType {
        ValueType::List(Box::new(ValueType::SLOT))
    }

    fn compute(rows: &CallRows, result: ResultColumn) -> Result<(), String> {
        let (mut recipes, mut slots) = (RowRecipes::default(), Vec::new());
        rows.compute_each(1, result, |row| {
            let tools = recipes.tools_for(rows.optional_text(1, row))?;
            slots.resize(tools.minhasher.slot_count(), 0);
            let text = rows.columns[0].text_at(row);
            let has_signature = tools.analyze_text(text, |analysis| {
                tools.minhasher.original_signature(analysis, &mut slots)
            });
            if !has_signature {
                result.set_missing(row);
                return Ok(());
            }
            let (elements, first) = result.begin_list(row, slots.len())?;
            for (at, slot) in slots.iter().enumerate() {
                // SAFETY: the list has unsigned numbers of 32 bits, and room for all of them.
                unsafe { elements.set_number::<u32>(first + at, *slot) };
            }
            Ok(())
        })
    }
}

/// `shingle_jaccard(a, b [, recipe])`.
struct JaccardFunction;

impl ScalarFunction for JaccardFunction {
    const NAME: &'static CStr = c"shingle_jaccard";

    fn parameters() -> Vec<Vec<ValueType>> {
        with_optional_recipe(2)
    }

    fn result() -> ValueType {
        ValueType::REAL
    }

    fn compute(rows: &CallRows, result: ResultColumn) -> Result<(), String> {
        let mut recipes = RowRecipes::default();
        let mut features = [Vec::new(), Vec::new()];
        rows.compute_each(2, result, |row| {
            let tools = recipes.tools_for(rows.optional_text(2, row))?;
            for (features, column) in features.iter_mut().zip(&rows.columns) {
                features.clear();
                tools.analyze_text(column.text_at(row), |analysis| {
                    analysis.append_features(features);
                });
            }
            if features.iter().all(Vec::is_empty) {
                // The index of two empty sets is undefined, as in `lookalike compare`.
                result.set_missing(row);
                return Ok(());
            }
            let similarity = jaccard_index(&features[0], &features[1]).get();
            // SAFETY: the result has real numbers.
            unsafe { result.set_number::<f64>(row, similarity) };
            Ok(())
        })
    }
}

/// `hamming_distance(a, b)`.
struct HammingFunction;

impl ScalarFunction for HammingFunction {
    const NAME: &'static CStr = c"hamming_distance";

    fn parameters() -> Vec<Vec<ValueType>> {
        vec![vec![ValueType::FINGERPRINT; 2]]
    }

    fn result() -> ValueType {
        ValueType::INTEGER
    }

    fn compute(rows: &CallRows, result: ResultColumn) -> Result<(), String> {
        rows.compute_each(2, result, |row| {
            // SAFETY: the parameters have unsigned numbers of 64 bits, and the result has signed ones.
            unsafe {
                let a: u64 = rows.columns[0].number_at(row);
                let b: u64 = rows.columns[1].number_at(row);
                result.set_number::<i64>(row, (a ^ b).count_ones().into());
            }
            Ok(())
        })
    }
}

/// `shared_passages(a, b [, recipe [, min_length]])`.
struct PassagesFunction;

impl ScalarFunction for PassagesFunction {
    const NAME: &'static CStr = c"shared_passages";

    fn parameters() -> Vec<Vec<ValueType>> {
        let mut parameters = with_optional_recipe(2);
        parameters.push([vec![ValueType::TEXT; 3], vec![ValueType::INTEGER]].concat());
        parameters
    }

    fn result() -> ValueType {
        let fields = vec![
            (c"a_start", ValueType::INTEGER),
            (c"a_end", ValueType::INTEGER),
            (c"b_start", ValueType::INTEGER),
            (c"b_end", ValueType::INTEGER),
            (c"length", ValueType::INTEGER),
            (c"similarity", ValueType::REAL),
            (c"kind", ValueType::TEXT),
            (c"text", ValueType::TEXT),
        ];
        ValueType::List(Box::new(ValueType::Structure(fields)))
    }

    fn compute(rows: &CallRows, result: ResultColumn) -> Result<(), String> {
        let mut recipes = RowRecipes::default();
        rows.compute_each(2, result, |row| {
            let tools = recipes.tools_for(rows.optional_text(2, row))?;
            let texts = [0, 1].map(|at| rows.columns[at].text_at(row));
            let settings = parse_passage_settings(rows.optional_column(3, row), row)?;
            let shared = SharedPassages::find_all(&tools.recipe, texts, settings);
            let passages = shared.map_err(|error| error.to_string())?.passages;
            let (elements, first) = result.begin_list(row, passages.len())?;
            for (at, passage) in passages.iter().enumerate() {
                write_passage(passage, texts[1], elements, first + at);
            }
            Ok(())
        })
    }
}

/// Returns the settings with the least length that a row gives, or those of the command.
///
/// # Errors
/// If the length is out of range.
fn parse_passage_settings(
    min_length: Option<&InputColumn>,
    row: usize,
) -> Result<PassageSettings, String> {
    let Some(column) = min_length else {
        return Ok(PassageSettings::default());
    };
    // SAFETY: the fourth parameter has signed numbers of 64 bits.
    let given: i64 = unsafe { column.number_at(row) };
    let words = u32::try_from(given.max(0)).unwrap_or(u32::MAX);
    PassageSettings::new(words).map_err(|error| error.to_string())
}

/// Writes the fields of [`PassagesFunction::result`]. The text is that of the second document.
fn write_passage(passage: &SharedPassage, text: &str, elements: ResultColumn, at: usize) {
    let SharedPassage { a, b, .. } = passage;
    let numbers = [
        a.characters.start,
        a.characters.end,
        b.characters.start,
        b.characters.end,
        passage.length,
    ];
    for (field, number) in numbers.into_iter().enumerate() {
        // SAFETY: these fields have signed numbers of 64 bits.
        unsafe { elements.field_column(field).set_number(at, number as i64) };
    }
    let [similarity, kind, words] =
        [0, 1, 2].map(|field| elements.field_column(numbers.len() + field));
    // SAFETY: this field has real numbers.
    unsafe { similarity.set_number::<f64>(at, passage.similarity) };
    kind.set_text(at, passage.kind.kind_name());
    words.set_text(at, &text[b.bytes.clone()]);
}
