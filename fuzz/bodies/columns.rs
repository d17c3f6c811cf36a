//! Checks that any bytes are read as rows of a Parquet or an Arrow file, possibly followed by an error. The rows do not
//! depend on the size of blocks, and are the same when they are read again.

use std::path::Path;
use std::sync::OnceLock;

use lookalike_io::error::Result;
use lookalike_io::sink::{OutputTarget, TableCell, TableColumn, TableWriter};
use lookalike_io::source::{
    BadRow, InputFormat, InputRow, InputSet, ParseScratch, ReadOptions, WantedFields,
};

/// Panics if the bytes violate that rule.
///
/// The first byte chooses the meaning of the others. Bits 0–1 choose a Parquet file, an Arrow file or an Arrow stream.
/// Bits 2–3 choose the size of blocks. With bit 4, the other bytes are the file. Without it, they are changes to a good
/// file. A change has three bytes: two for the place, and one that is XORed with the byte there. If the third byte is 0,
/// the file is cut at the place.
pub(crate) fn check(bytes: &[u8]) {
    let Some((&choice, rest)) = bytes.split_first() else {
        return;
    };
    let sample = &samples()[usize::from(choice & 3) % NAMES.len()];
    let is_whole = choice >> 4 & 1 == 1;
    let input = if is_whole {
        rest.to_vec()
    } else {
        changed(&sample.bytes, rest)
    };
    let place = tempfile::tempdir().expect("a temporary directory can be made");
    let path = place.path().join("in");
    std::fs::write(&path, input).expect("a temporary file can be written");

    let block_bytes = BLOCKS[usize::from(choice >> 2 & 3)];
    let (rows, error) = read(&path, &options(sample.format, WHOLE));
    let (cut, cut_error) = read(&path, &options(sample.format, block_bytes));
    // Small blocks end closer to the damage.
    assert_eq!(cut.get(..rows.len()), Some(&rows[..]));
    assert_eq!(cut_error.is_empty(), error.is_empty());
    if error.is_empty() {
        assert_eq!(cut.len(), rows.len());
    }
    if !is_whole && rest.is_empty() {
        assert_eq!((rows.len(), error.as_str()), (ROWS as usize, ""));
    }
}

const NAMES: [(&str, InputFormat); 3] = [
    ("in.parquet", InputFormat::Parquet),
    ("in.arrow", InputFormat::Arrow),
    ("in.arrows", InputFormat::Arrow),
];
const BLOCKS: [usize; 4] = [1, 40, 200, 1000];
const WHOLE: usize = 1 << 14;
const ROWS: u64 = 40;

struct Sample {
    format: InputFormat,
    bytes: Vec<u8>,
}

/// Returns a good file of each kind.
fn samples() -> &'static [Sample] {
    static SAMPLES: OnceLock<Vec<Sample>> = OnceLock::new();
    SAMPLES.get_or_init(|| {
        let place = tempfile::tempdir().expect("a temporary directory can be made");
        let sample = |(name, format)| {
            let path = place.path().join(name);
            write(&path).expect("a temporary file can be written");
            let bytes = std::fs::read(path).expect("it was made");
            Sample { format, bytes }
        };
        NAMES.into_iter().map(sample).collect()
    })
}

fn write(path: &Path) -> Result<()> {
    let columns = [
        TableColumn::Text("id"),
        TableColumn::Text("text"),
        TableColumn::Number("score"),
        TableColumn::Integer("rank"),
    ];
    let mut table =
        TableWriter::create_table(&OutputTarget::Path(path.to_path_buf()), &columns, None)?;
    for row in 0..ROWS {
        let text = format!("船长解开缆绳 w{}", "x".repeat(row as usize));
        table.push_row(&[
            TableCell::Text(&row.to_string()),
            TableCell::Text(&text),
            TableCell::Number(row as f64 / 3.0),
            TableCell::Integer(row * row),
        ])?;
    }
    table.prepare_table()?.commit_output()?;
    Ok(())
}

fn changed(sample: &[u8], changes: &[u8]) -> Vec<u8> {
    let mut bytes = sample.to_vec();
    for change in changes.chunks_exact(3) {
        let at = usize::from(u16::from_be_bytes([change[0], change[1]]));
        match (bytes.len(), change[2]) {
            (0, _) => {}
            (length, 0) => bytes.truncate(at % length),
            (length, mask) => bytes[at % length] ^= mask,
        }
    }
    bytes
}

fn options(format: InputFormat, block_bytes: usize) -> ReadOptions {
    ReadOptions {
        format: Some(format),
        fields: WantedFields {
            text: vec!["text".to_owned()],
            extra: vec!["score".to_owned(), "rank".to_owned()],
            ..WantedFields::default()
        },
        block_bytes,
        ..ReadOptions::default()
    }
}

/// A good row by value, or the number of a bad one.
type Outcome = std::result::Result<Seen, u64>;

#[derive(Debug, PartialEq)]
struct Seen {
    id: Option<String>,
    text: String,
    extra: String,
}

impl Seen {
    fn new(row: &InputRow<'_>) -> Self {
        Self {
            id: row.id.map(str::to_owned),
            text: row.text.to_owned(),
            extra: format!("{:?}", row.extra),
        }
    }
}

/// Returns the rows of an input in order, and the error that ended them. Checks that the rows are the same when they are
/// read again.
fn read(path: &Path, options: &ReadOptions) -> (Vec<Outcome>, String) {
    let inputs = match InputSet::open_paths(&[path.to_path_buf()], options) {
        Ok(inputs) => inputs,
        Err(error) => return (Vec::new(), error.to_string()),
    };
    let mut rows = Vec::new();
    let mut places = Vec::new();
    let mut take = || -> Result<()> {
        let mut scratch = ParseScratch::default();
        while let Some(block) = inputs.next_block()? {
            inputs.parse_block(&block, &mut scratch, &mut |row| {
                rows.push(match row {
                    Ok(row) => {
                        places.push((rows.len(), row.place));
                        Ok(Seen::new(&row))
                    }
                    Err(BadRow { number, .. }) => Err(number),
                });
                Ok(())
            })?;
            inputs.recycle_block(block);
        }
        Ok(())
    };
    let error = take()
        .err()
        .map_or(String::new(), |error| error.to_string());
    let mut scratch = ParseScratch::default();
    for (at, place) in places {
        let again = inputs
            .reread_row(place, &mut scratch, Seen::new)
            .expect("a good row stays good");
        // Only what is compared is kept of a row.
        let before = rows[at].as_ref().expect("it has a place");
        assert_eq!((&again.id, &again.text), (&before.id, &before.text));
    }
    (rows, error)
}
