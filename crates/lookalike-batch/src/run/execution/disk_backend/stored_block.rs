//! A block of documents as bytes, so that a later process of the run need not sketch it again.
//!
//! | bytes | content |
//! |---|---|
//! | 73 | the beginning of the block: [`BlockStart`] |
//! | 8 | its size on disk |
//! | 8, then 1 for each wanted field | number of wanted fields, and for each a 1 if a row has had it so far |
//! | | the documents with their sketches |
//! | | keys, features and names of texts, if the memory of the run is limited |
//! | | values of the field of `--sources`, if there is one |

use lookalike::DocumentSketcher;
use lookalike::byte_reader::ByteReader;
use lookalike::shuffle::{ShuffleBlock, ShuffleBlockKind};
use lookalike_io::source::KnownBlock;

use crate::run::execution::out_of_core::spilled_reading::ScatteredBlock;
use crate::run::reading::corpus_reader::FEATURES_IN_MEMORY;
use crate::run::reading::documents::ReadDocuments;
use crate::run::reading::element_count::{put_count, read_count};
use crate::run::reading::reading_sink::BlockSource;
use crate::run::reading::source_values::SourceValues;

/// The beginning of a block among its inputs.
#[derive(Clone, Copy)]
pub(in crate::run) struct BlockStart {
    /// The number of the first row.
    pub(in crate::run) number: u64,
    /// The place of the first row; 0 if that is not known before the rows are parsed.
    pub(in crate::run) place: u64,
    /// The node of the first row; 0 if the run has no nodes.
    pub(in crate::run) node: u64,
    /// The place of the block in its input, if it is one of lines.
    pub(in crate::run) lines: Option<KnownBlock>,
}

impl BlockStart {
    /// Returns the beginning of a block. The rows before those of its inputs have `nodes_before` nodes.
    pub(in crate::run) fn of_block(source: BlockSource<'_>, nodes_before: Option<u64>) -> Self {
        let number = source.block.row_numbers().start;
        Self {
            number,
            place: source.inputs.first_place(source.block).unwrap_or(0),
            node: nodes_before.map_or(0, |nodes| nodes + number - 1),
            lines: source.block.known_block(),
        }
    }

    /// Appends number, place and node, a byte that says whether the block is one of lines, and the six numbers of
    /// [`KnownBlock`], or zeros.
    pub(in crate::run) fn encode_start(self, into: &mut Vec<u8>) {
        for number in [self.number, self.place, self.node] {
            into.extend(number.to_le_bytes());
        }
        into.push(u8::from(self.lines.is_some()));
        let numbers = self.lines.map_or([0; 6], |block| {
            [
                block.offset,
                block.length,
                block.line,
                block.lines,
                block.rows,
                block.bytes_on_disk,
            ]
        });
        numbers
            .iter()
            .for_each(|number| into.extend(number.to_le_bytes()));
    }

    pub(in crate::run) fn decode_start(reader: &mut ByteReader<'_>) -> Option<Self> {
        let [number, place, node] = [reader.read_u64()?, reader.read_u64()?, reader.read_u64()?];
        let is_of_lines = reader.read_u8()? != 0;
        let lines = KnownBlock {
            offset: reader.read_u64()?,
            length: reader.read_u64()?,
            line: reader.read_u64()?,
            lines: reader.read_u64()?,
            rows: reader.read_u64()?,
            bytes_on_disk: reader.read_u64()?,
        };
        Some(Self {
            number,
            place,
            node,
            lines: is_of_lines.then_some(lines),
        })
    }

    /// Returns `true` if both begin at the same rows, places and nodes.
    pub(in crate::run) fn is_at(self, other: Self) -> bool {
        let at = |start: Self| (start.number, start.place, start.node);
        at(self) == at(other)
    }
}

/// A block that was stored.
pub(super) struct StoredBlockRows {
    /// Size on disk of the input block from which it was made.
    pub(super) bytes_on_disk: u64,
    pub(super) start: BlockStart,
    /// For each wanted field `true` if a row has had it so far.
    pub(super) seen_fields: Vec<bool>,
    pub(super) documents: ReadDocuments,
    pub(super) scattered: ScatteredBlock,
}

impl StoredBlockRows {
    /// Returns the bytes of a block. `keeps_lists` says whether lists of features are worth storing.
    pub(super) fn encode_rows(
        source: BlockSource<'_>,
        start: BlockStart,
        sketcher: &DocumentSketcher,
        documents: &ReadDocuments,
        scattered: &ScatteredBlock,
        keeps_lists: bool,
    ) -> Vec<u8> {
        let mut bytes = Vec::new();
        start.encode_start(&mut bytes);
        bytes.extend(source.block.bytes_on_disk().to_le_bytes());
        let seen = source.inputs.seen_fields();
        put_count(seen.len(), &mut bytes);
        bytes.extend(seen.into_iter().map(u8::from));
        documents.encode_block(sketcher, keeps_lists, &mut bytes);
        put_scattered(scattered, &mut bytes);
        if !documents.sources.is_empty() {
            documents.sources.encode_values(&mut bytes);
        }
        bytes
    }

    /// Decodes what [`encode_rows`](Self::encode_rows) has written.
    pub(super) fn decode_rows(bytes: &[u8], sketcher: &DocumentSketcher) -> Option<Self> {
        let mut reader = ByteReader::new(bytes);
        let start = BlockStart::decode_start(&mut reader)?;
        let bytes_on_disk = reader.read_u64()?;
        let fields = read_count(&mut reader)?;
        let seen = reader.read_bytes(fields)?.iter().map(|&seen| seen != 0);
        let seen_fields = seen.collect();
        let mut documents = ReadDocuments::decode_block(&mut reader, sketcher, FEATURES_IN_MEMORY)?;
        let scattered = read_scattered(&mut reader)?;
        if !reader.is_at_end() {
            documents.sources = SourceValues::decode_values(&mut reader)?;
        }
        let is_whole = reader.is_at_end() && documents.sources.fits_documents(documents.len());
        is_whole.then_some(Self {
            bytes_on_disk,
            start,
            seen_fields,
            documents,
            scattered,
        })
    }
}

/// Appends keys and features, after their number: for each its kind, its length and its bytes. The names of texts
/// follow, after the number of their bytes.
fn put_scattered(scattered: &ScatteredBlock, into: &mut Vec<u8>) {
    put_count(scattered.blocks.len(), into);
    for block in &scattered.blocks {
        into.push(u8::from(block.kind == ShuffleBlockKind::Features));
        put_count(block.block.len(), into);
        into.extend_from_slice(&block.block);
    }
    put_count(scattered.texts.len(), into);
    into.extend_from_slice(&scattered.texts);
}

/// Reads what [`put_scattered`] has written.
fn read_scattered(reader: &mut ByteReader<'_>) -> Option<ScatteredBlock> {
    let count = read_count(reader)?;
    let mut scattered = ScatteredBlock::default();
    for _ in 0..count {
        let kind = match reader.read_u8()? {
            0 => ShuffleBlockKind::Part,
            _ => ShuffleBlockKind::Features,
        };
        let length = read_count(reader)?;
        let block = reader.read_bytes(length)?.to_vec();
        let part = 0;
        scattered.blocks.push(ShuffleBlock { kind, part, block });
    }
    let length = read_count(reader)?;
    scattered.texts = reader.read_bytes(length)?.to_vec();
    Some(scattered)
}
