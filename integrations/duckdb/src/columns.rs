//! Reads the columns of a call, and writes those of its result.

use std::ffi::c_char;

use libduckdb_sys as ffi;

/// A column of a call, whose values are in one piece of memory.
///
/// All functions may be called only for rows of its chunk, and with the type that was registered.
#[derive(Clone, Copy)]
pub(crate) struct InputColumn {
    values: *mut u8,
    /// One bit for each row; null if all rows have values.
    validity: *mut u64,
}

impl InputColumn {
    /// Returns a column of a chunk.
    ///
    /// # Safety
    /// The chunk must be valid while the column is used, and have this column.
    unsafe fn from_chunk(chunk: ffi::duckdb_data_chunk, at: usize) -> Self {
        // SAFETY: the caller keeps the chunk.
        unsafe {
            let vector = ffi::duckdb_data_chunk_get_vector(chunk, at as ffi::idx_t);
            Self {
                values: ffi::duckdb_vector_get_data(vector).cast(),
                validity: ffi::duckdb_vector_get_validity(vector),
            }
        }
    }

    /// Returns `true` if a row has a value.
    pub(crate) fn has_value(&self, row: usize) -> bool {
        // SAFETY: the mask has a bit for each row of the chunk.
        self.validity.is_null() || unsafe { *self.validity.add(row / 64) } & (1 << (row % 64)) != 0
    }

    /// Returns the text of a row that has a value.
    pub(crate) fn text_at(&self, row: usize) -> &str {
        // SAFETY: the column has texts, which DuckDB keeps as valid UTF-8 while the chunk lives.
        unsafe {
            let string = self.values.cast::<ffi::duckdb_string_t>().add(row);
            let bytes = ffi::duckdb_string_t_data(string).cast::<u8>();
            let length = ffi::duckdb_string_t_length(*string) as usize;
            std::str::from_utf8_unchecked(std::slice::from_raw_parts(bytes, length))
        }
    }

    /// Returns the number of a row that has a value.
    ///
    /// # Safety
    /// The column must have numbers of this type.
    pub(crate) unsafe fn number_at<T: Copy>(&self, row: usize) -> T {
        // SAFETY: the caller knows the type. Numbers of 128 bits may be aligned to 64.
        unsafe { self.values.cast::<T>().add(row).read_unaligned() }
    }
}

/// The columns of a call, and the number of its rows.
pub(crate) struct CallRows {
    pub(crate) columns: Vec<InputColumn>,
    pub(crate) count: usize,
}

impl CallRows {
    /// Reads the columns of a chunk.
    ///
    /// # Safety
    /// The chunk must be valid while the columns are used.
    pub(crate) unsafe fn from_chunk(chunk: ffi::duckdb_data_chunk) -> Self {
        // SAFETY: the caller keeps the chunk.
        unsafe {
            let columns = ffi::duckdb_data_chunk_get_column_count(chunk) as usize;
            Self {
                columns: (0..columns)
                    .map(|at| InputColumn::from_chunk(chunk, at))
                    .collect(),
                count: ffi::duckdb_data_chunk_get_size(chunk) as usize,
            }
        }
    }

    /// Returns an optional column, if it is given and has a value in a row.
    pub(crate) fn optional_column(&self, column: usize, row: usize) -> Option<&InputColumn> {
        self.columns
            .get(column)
            .filter(|column| column.has_value(row))
    }

    /// Returns the text of an optional column.
    pub(crate) fn optional_text(&self, column: usize, row: usize) -> Option<&str> {
        self.optional_column(column, row)
            .map(|column| column.text_at(row))
    }

    /// Calls `compute` for each row of which the first `required` columns have values. The other rows have no result.
    ///
    /// # Errors
    /// Those of `compute`.
    pub(crate) fn compute_each(
        &self,
        required: usize,
        result: ResultColumn,
        mut compute: impl FnMut(usize) -> Result<(), String>,
    ) -> Result<(), String> {
        for row in 0..self.count {
            let columns = &self.columns[..required];
            if columns.iter().all(|column| column.has_value(row)) {
                compute(row)?;
            } else {
                result.set_missing(row);
            }
        }
        Ok(())
    }
}

/// A column of a result.
#[derive(Clone, Copy)]
pub(crate) struct ResultColumn {
    vector: ffi::duckdb_vector,
}

impl ResultColumn {
    /// Returns the column of a vector.
    ///
    /// # Safety
    /// The vector must be valid and writable while the column is used.
    pub(crate) unsafe fn from_vector(vector: ffi::duckdb_vector) -> Self {
        Self { vector }
    }

    /// Makes a row have no value.
    pub(crate) fn set_missing(&self, row: usize) {
        // SAFETY: the vector is writable.
        unsafe {
            ffi::duckdb_vector_ensure_validity_writable(self.vector);
            let validity = ffi::duckdb_vector_get_validity(self.vector);
            ffi::duckdb_validity_set_row_invalid(validity, row as ffi::idx_t);
        }
    }

    /// Writes a number.
    ///
    /// # Safety
    /// The column must have numbers of this type, and room for the row.
    pub(crate) unsafe fn set_number<T>(&self, row: usize, number: T) {
        // SAFETY: the caller knows the type. Numbers of 128 bits may be aligned to 64.
        unsafe {
            ffi::duckdb_vector_get_data(self.vector)
                .cast::<T>()
                .add(row)
                .write_unaligned(number);
        }
    }

    /// Writes a text, which is copied.
    pub(crate) fn set_text(&self, row: usize, text: &str) {
        // SAFETY: the vector has texts, and the bytes are valid during the call.
        unsafe {
            ffi::duckdb_vector_assign_string_element_len(
                self.vector,
                row as ffi::idx_t,
                text.as_ptr().cast::<c_char>(),
                text.len() as ffi::idx_t,
            );
        }
    }

    /// Makes room for a list of `length` elements in a row. Returns the column of the elements of all rows, and the place of
    /// the first one of this row.
    ///
    /// # Errors
    /// If DuckDB has no memory for it.
    pub(crate) fn begin_list(&self, row: usize, length: usize) -> Result<(Self, usize), String> {
        // SAFETY: the vector has lists.
        unsafe {
            let first = ffi::duckdb_list_vector_get_size(self.vector);
            let end = first + length as ffi::idx_t;
            if ffi::duckdb_list_vector_reserve(self.vector, end) != ffi::DuckDBSuccess
                || ffi::duckdb_list_vector_set_size(self.vector, end) != ffi::DuckDBSuccess
            {
                return Err(format!(
                    "there is no memory for a list of {length} elements: raise memory_limit"
                ));
            }
            let length = length as u64;
            self.set_number(
                row,
                ffi::duckdb_list_entry {
                    offset: first,
                    length,
                },
            );
            let elements = ffi::duckdb_list_vector_get_child(self.vector);
            Ok((Self { vector: elements }, first as usize))
        }
    }

    /// Returns a field of a column of structures.
    pub(crate) fn field_column(&self, at: usize) -> Self {
        Self {
            // SAFETY: the vector has structures with this field.
            vector: unsafe { ffi::duckdb_struct_vector_get_child(self.vector, at as ffi::idx_t) },
        }
    }
}
