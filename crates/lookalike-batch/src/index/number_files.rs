//! Binary files of fingerprints: one-dimensional arrays of NumPy (`.npy`) and bare integers (`.u64`).
//!
//! Both hold little-endian integers of 64 bits one after another. Signed ones are read as two's complement, as
//! negative decimal numbers are elsewhere. The rows have no ids and are numbered through all files.
//!
//! A file is refused before anything is read if its length is not that of its integers.

use std::io::Read;
use std::path::{Path, PathBuf};

use lookalike_io::error::{Error, Result, display_path};
use lookalike_io::source::WholeInput;

/// Extensions of files of this kind.
const ARRAY_EXTENSION: &str = "npy";
const INTEGERS_EXTENSION: &str = "u64";

/// First bytes of an array of NumPy, before its version.
const NUMPY_MAGIC: &[u8] = b"\x93NUMPY";

/// Integers that are read at once.
const INTEGERS_AT_ONCE: usize = 1 << 16;

/// Bytes of an integer.
const INTEGER_BYTES: u64 = 8;

/// Returns `true` if a file is of this kind, by its extension.
pub(super) fn is_number_file(path: &Path) -> bool {
    let extension = path.extension();
    extension.is_some_and(|extension| {
        extension.eq_ignore_ascii_case(ARRAY_EXTENSION)
            || extension.eq_ignore_ascii_case(INTEGERS_EXTENSION)
    })
}

/// A file whose integers have not been read.
#[derive(Debug)]
pub(super) struct NumberFile {
    path: PathBuf,
    /// Positioned at the first integer.
    input: WholeInput,
    count: u64,
}

impl NumberFile {
    /// Opens a file and checks its length.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let name = display_path(path);
        if !is_number_file(path) {
            return Err(Error::usage_error(format!(
                "{name} is no .npy or .u64 file, but others of the inputs are: give binary files of fingerprints alone"
            )));
        }
        let mut input = WholeInput::open(path)?;
        let length = input.byte_length();
        let is_array = path
            .extension()
            .is_some_and(|extension| extension.eq_ignore_ascii_case(ARRAY_EXTENSION));
        let front = if is_array {
            ArrayFront::read(&mut input).map_err(|why| refuse_file(path, &why))?
        } else {
            ArrayFront {
                length: 0,
                count: length / INTEGER_BYTES,
            }
        };
        let bytes = front.count.checked_mul(INTEGER_BYTES);
        if bytes.and_then(|bytes| bytes.checked_add(front.length)) != Some(length) {
            let count = front.count + u64::from(!is_array);
            return Err(refuse_file(
                path,
                &format!(
                    "it has {length} bytes, which are not those of {count} integers of 8 bytes: is it cut off?"
                ),
            ));
        }
        Ok(Self {
            path: path.to_path_buf(),
            input,
            count: front.count,
        })
    }

    /// Returns the bytes of the integers.
    pub(super) fn byte_count(&self) -> u64 {
        self.count * INTEGER_BYTES
    }

    /// Calls `visit` with runs of consecutive integers, which must have at most `bits` bits.
    pub(super) fn visit_numbers(
        mut self,
        bits: u32,
        mut visit: impl FnMut(&[u64]) -> Result<()>,
    ) -> Result<()> {
        let mut numbers = vec![0u64; INTEGERS_AT_ONCE.min(self.count as usize)];
        let mut row = 0;
        while row < self.count {
            let some = (self.count - row).min(INTEGERS_AT_ONCE as u64) as usize;
            let numbers = &mut numbers[..some];
            let read = self.input.read_exact(bytemuck::cast_slice_mut(numbers));
            read.map_err(|cause| Error::read_error("read", display_path(&self.path), cause))?;
            for number in &mut *numbers {
                *number = u64::from_le(*number);
            }
            let is_wide = |number: &u64| number.checked_shr(bits).unwrap_or(0) > 0;
            if let Some(at) = numbers.iter().position(is_wide) {
                let why = format!(
                    "row {} is {}, which has more than {bits} bits",
                    row + at as u64 + 1,
                    numbers[at]
                );
                return Err(refuse_file(&self.path, &why));
            }
            visit(numbers)?;
            row += some as u64;
        }
        Ok(())
    }
}

fn refuse_file(path: &Path, why: &str) -> Error {
    Error::input_error(format!("{}: {why}", display_path(path)))
}

/// The part of an array's file before its integers.
#[derive(Debug, PartialEq, Eq)]
struct ArrayFront {
    length: u64,
    count: u64,
}

impl ArrayFront {
    /// Reads the front of an array in the format of NumPy ("NEP 1"). It has the magic, a version of two bytes, the
    /// length of the header and the header, which is a Python literal. The length has two bytes, and four from
    /// version 2 on.
    fn read(file: &mut impl Read) -> Result<Self, String> {
        let mut read = |length: usize| {
            let mut bytes = vec![0; length];
            let read = file.read_exact(&mut bytes);
            read.map_err(|_| "it is no complete array of NumPy".to_owned())?;
            Ok::<_, String>(bytes)
        };
        let begin = read(NUMPY_MAGIC.len() + 2)?;
        if !begin.starts_with(NUMPY_MAGIC) {
            return Err("it is no array of NumPy, whose files begin with \\x93NUMPY".to_owned());
        }
        let width = match begin[NUMPY_MAGIC.len()] {
            1 => 2,
            2 | 3 => 4,
            version => return Err(format!("its format has version {version}, not 1, 2 or 3")),
        };
        let length = read(width)?
            .iter()
            .rev()
            .fold(0, |sum, &byte| sum << 8 | usize::from(byte));
        if length > MAX_HEADER_BYTES {
            return Err(format!(
                "its header has {length} bytes, more than {MAX_HEADER_BYTES}"
            ));
        }
        let header = String::from_utf8_lossy(&read(length)?).into_owned();
        Ok(Self {
            length: (begin.len() + width + length) as u64,
            count: parse_header(&header)?,
        })
    }
}

/// Largest length of a header. The header of an array of integers has some hundred bytes.
const MAX_HEADER_BYTES: usize = 1 << 16;

/// Returns the number of integers by the header of an array.
fn parse_header(header: &str) -> Result<u64, String> {
    let value = |key: &str| {
        let behind = header.split_once(&format!("'{key}':"));
        let behind = behind.map(|(_, behind)| behind.trim_start());
        behind.ok_or_else(|| format!("its header has no '{key}'"))
    };
    let kind = value("descr")?;
    if !["'<u8'", "'<i8'"]
        .iter()
        .any(|known| kind.starts_with(known))
    {
        let kind = kind.split(',').next().unwrap_or_default();
        return Err(format!(
            "its values are {kind}, not '<u8' or '<i8': convert them, with array.astype(\"<u8\")"
        ));
    }
    let shape = value("shape")?;
    let shape = shape.split_inclusive(')').next().unwrap_or_default();
    let dimensions = shape
        .strip_prefix('(')
        .and_then(|inside| inside.strip_suffix(')'));
    let count = dimensions.and_then(|dimensions| dimensions.strip_suffix(',')?.trim().parse().ok());
    count.ok_or_else(|| format!("its shape is {shape}, not (N,): give an array of one dimension"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// An array as `numpy.save` writes it.
    fn array(descr: &str, shape: &str, numbers: &[u64]) -> Vec<u8> {
        let header = format!("{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}");
        let length =
            (NUMPY_MAGIC.len() + 4 + header.len() + 1).next_multiple_of(64) - NUMPY_MAGIC.len() - 4;
        let mut file = [NUMPY_MAGIC, &b"\x01\x00"[..]].concat();
        file.extend((length as u16).to_le_bytes());
        file.extend(format!("{header:<0$}\n", length - 1).bytes());
        file.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        file
    }

    fn read(path: &Path, bits: u32) -> Result<Vec<u64>> {
        let mut all = Vec::new();
        NumberFile::open(path)?.visit_numbers(bits, |some| {
            all.extend_from_slice(some);
            Ok(())
        })?;
        Ok(all)
    }

    #[test]
    fn both_kinds_hold_the_same_numbers() {
        let place = tempfile::tempdir().unwrap();
        for count in [
            0,
            1,
            INTEGERS_AT_ONCE - 1,
            INTEGERS_AT_ONCE,
            2 * INTEGERS_AT_ONCE + 7,
        ] {
            let numbers: Vec<u64> = (0..count as u64)
                .map(|number| (number << 40) ^ (number * number))
                .collect();
            let [npy, u64s] = ["a.npy", "a.U64"].map(|name| place.path().join(name));
            std::fs::write(&npy, array("'<u8'", &format!("({count},)"), &numbers)).unwrap();
            let bytes: Vec<u8> = numbers
                .iter()
                .flat_map(|number| number.to_le_bytes())
                .collect();
            std::fs::write(&u64s, bytes).unwrap();
            assert_eq!(read(&npy, 64).unwrap(), numbers);
            assert_eq!(read(&u64s, 64).unwrap(), numbers);
        }
    }

    #[test]
    fn other_files_are_refused_with_the_reason() {
        let place = tempfile::tempdir().unwrap();
        let good = array("'<u8'", "(3,)", &[1, 2, 1 << 60]);
        let version = [&good[..6], &b"\x09"[..], &good[7..]].concat();
        for (name, bytes, reason) in [
            (
                "a.npy",
                good[..good.len() - 1].to_vec(),
                "not those of 3 integers",
            ),
            (
                "a.npy",
                [&good[..], b"x"].concat(),
                "not those of 3 integers",
            ),
            ("a.npy", good[..20].to_vec(), "no complete array"),
            ("a.npy", b"0123456789abcdef\n".to_vec(), "begin with"),
            ("a.npy", version, "version 9"),
            ("a.npy", array("'<f8'", "(3,)", &[1, 2, 3]), "'<f8'"),
            ("a.npy", array("'>u8'", "(3,)", &[1, 2, 3]), "'>u8'"),
            ("a.npy", array("'<u8'", "(3, 1)", &[1, 2, 3]), "(3, 1)"),
            ("a.npy", array("'<u8'", "()", &[1]), "()"),
            (
                "a.npy",
                array("'<u8'", "(2305843009213693952,)", &[]),
                "2305843009213693952",
            ),
            (
                "a.npy",
                array("'<u8'", "(2305843009213693951,)", &[]),
                "2305843009213693951",
            ),
            ("a.u64", vec![0; 17], "17 bytes"),
            ("a.txt", Vec::new(), ".npy or .u64"),
        ] {
            let path = place.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            let error = read(&path, 64).unwrap_err().to_string();
            assert!(error.contains(reason) && error.contains(name), "{error}");
        }
        let path = place.path().join("a.npy");
        std::fs::write(&path, good).unwrap();
        assert_eq!(read(&path, 61).unwrap().len(), 3);
        let error = read(&path, 60).unwrap_err().to_string();
        assert!(error.contains("row 3 is 1152921504606846976"), "{error}");
        assert!(read(&place.path().join("none.npy"), 64).is_err());
    }

    proptest! {
        /// A changed array is refused, or has as many integers as it has bytes for.
        #[test]
        fn changed_arrays_are_read_or_refused(
            changes in proptest::collection::vec((0..160usize, any::<u8>()), 0..6),
            kept in 0..160usize,
            shape in "[(]?[0-9]{0,20},?[)]?",
        ) {
            let place = tempfile::tempdir().unwrap();
            let path = place.path().join("a.npy");
            for mut bytes in [array("'<i8'", "(4,)", &[1, 2, 3, 4]), array("'<u8'", &shape, &[5])] {
                let length = bytes.len();
                changes.iter().for_each(|&(at, byte)| bytes[at % length] = byte);
                for bytes in [&bytes[..], &bytes[..kept % length]] {
                    std::fs::write(&path, bytes).unwrap();
                    if let Ok(numbers) = read(&path, 64) {
                        prop_assert!(numbers.len() * 8 < bytes.len());
                    }
                }
            }
        }
    }
}
