//! Checks that any bytes are read as rows and bad rows, possibly followed by an error. The result
//! does not depend on the size of blocks, and is the same when rows are read again.

use std::io::Write;
use std::path::Path;

use lookalike_documents::decoding::InvalidText;
use lookalike_io::error::Result;
use lookalike_io::source::{
    BadRow, InputFormat, InputRow, InputSet, ParseScratch, ReadOptions, RowPlace, WantedFields,
};

/// Panics if the bytes violate that rule.
///
/// The first byte chooses the options, and the others are the input. Bits 0–1 choose the format and
/// bits 2–3 the size of blocks. Bit 4 accepts malformed text, bit 5 reads more fields, bit 6 turns
/// off the header, and bit 7 chooses a legacy encoding.
pub(crate) fn check(bytes: &[u8]) {
    let Some((&choice, input)) = bytes.split_first() else {
        return;
    };
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file can be made");
    file.write_all(input)
        .expect("a temporary file can be written");

    let options = options(choice);
    let small = ReadOptions {
        block_bytes: BLOCKS[usize::from(choice >> 2 & 3)],
        ..options.clone()
    };
    let (whole, error) = read(file.path(), &options);
    let (cut, small_error) = read(file.path(), &small);
    // No row is returned from a block that cannot be filled. Small blocks end closer to the damage,
    // and may find another fault before it.
    if small_error != error {
        assert!(!small_error.is_empty() && error.contains("cannot decompress"));
    }
    let handed_out = if error.is_empty() {
        cut.len()
    } else {
        whole.len()
    };
    assert_eq!(cut.get(..handed_out), Some(&whole[..]));
}

const FORMATS: [InputFormat; 4] = [
    InputFormat::Jsonl,
    InputFormat::CSV,
    InputFormat::TSV,
    InputFormat::Text,
];
const BLOCKS: [usize; 4] = [1, 2, 7, 64];

/// Block size in bytes that holds nearly all inputs, because clearing the default block takes long.
const WHOLE: usize = 1 << 14;

fn options(choice: u8) -> ReadOptions {
    let has = |bit: u8| choice >> bit & 1 == 1;
    let format = FORMATS[usize::from(choice & 3)];
    let header = !has(6);
    let named = |field: &str, column: &str| {
        let numbered = matches!(format, InputFormat::Csv { .. }) && !header;
        if numbered {
            column.to_owned()
        } else {
            field.to_owned()
        }
    };
    let more = has(5) && format != InputFormat::Text;
    ReadOptions {
        format: Some(format),
        header,
        encoding: if has(7) {
            encoding_rs::GB18030
        } else {
            encoding_rs::UTF_8
        },
        invalid_text: if has(4) {
            InvalidText::Lossy
        } else {
            InvalidText::Reject
        },
        fields: WantedFields {
            text: vec![named("text", "1")],
            features: more.then(|| named("features", "2")),
            extra: if more {
                vec![named("a.b", "3"), named("date", "1")]
            } else {
                Vec::new()
            },
            ..WantedFields::default()
        },
        block_bytes: WHOLE,
        ..ReadOptions::default()
    }
}

/// Result of reading a row.
type Outcome = std::result::Result<Seen, BadRow>;

/// A good row by value, with its features and extra fields in printed form.
#[derive(Debug, PartialEq)]
struct Seen {
    id: Option<String>,
    text: String,
    features: Option<String>,
    extra: String,
    place: RowPlace,
    number: u64,
}

impl Seen {
    fn new(row: &InputRow<'_>) -> Self {
        Self {
            id: row.id.map(str::to_owned),
            text: row.text.to_owned(),
            features: row
                .features
                .map(|features| format!("{:?}", features.iter_weighted().collect::<Vec<_>>())),
            extra: format!("{:?}", row.extra),
            place: row.place,
            number: row.number,
        }
    }
}

/// Returns the rows of an input in order, and the error that ended them. Checks that the rows are
/// the same when they are read again.
fn read(path: &Path, options: &ReadOptions) -> (Vec<Outcome>, String) {
    let mut rows = Vec::new();
    let inputs = match InputSet::open_paths(&[path.to_path_buf()], options) {
        Ok(inputs) => inputs,
        Err(error) => return (rows, error.to_string()),
    };
    let mut take = || -> Result<()> {
        let mut scratch = ParseScratch::default();
        while let Some(block) = inputs.next_block()? {
            inputs.parse_block(&block, &mut scratch, &mut |row| {
                rows.push(row.map(|row| Seen::new(&row)));
                Ok(())
            })?;
            inputs.recycle_block(block);
        }
        Ok(())
    };
    let error = take()
        .err()
        .map_or(String::new(), |error| error.to_string());
    check_again(&inputs, &rows);
    (rows, error)
}

fn check_again(inputs: &InputSet, rows: &[Outcome]) {
    let (mut scratch, mut raw) = (ParseScratch::default(), Vec::new());
    for (row, number) in rows.iter().zip(1..) {
        let (place, own) = match row {
            Ok(row) => (row.place, row.number),
            Err(bad) => (bad.place, bad.number),
        };
        assert_eq!(own, number);
        inputs
            .read_raw_row(place, &mut raw)
            .expect("a row's bytes can be read again");
        assert_eq!(raw.len(), place.byte_length() as usize);
        if let Ok(row) = row {
            let again = inputs
                .reread_row(place, &mut scratch, Seen::new)
                .expect("a good row stays good");
            assert_eq!(&Seen { number, ..again }, row);
        }
    }
}
