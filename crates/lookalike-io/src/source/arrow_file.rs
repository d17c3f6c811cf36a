//! Arrow IPC files and streams: where their record batches are, and single ones decoded.
//!
//! Opening reads the footer of a file, or the header of every message of a stream, and the header of each record
//! batch, which says how many rows it has. A record batch is then read by itself, at any time and on any thread. Only
//! the buffers of the wanted columns are read; the memory of the others is reserved and never touched.
//!
//! ```text
//! file     "ARROW1\0\0" | schema | dictionary batches, record batches … | end | footer | length | "ARROW1"
//! stream                  schema | dictionary batches, record batches … | end
//! message  FF FF FF FF | length of the header | header (flatbuffer) | body: one buffer after another
//! ```
//!
//! A stream may replace a dictionary between two record batches. Each batch therefore knows how many dictionary
//! batches stand before it. Of each dictionary the last complete one is decoded, and the additions after it.
//!
//! Guarantee: a damaged file is an error and not a panic, because every buffer is checked against the bytes that are
//! there before it is decoded, and the decoder validates offsets and UTF-8; what it panics on is caught. The format is that of
//! <https://arrow.apache.org/docs/format/Columnar.html>.

use std::collections::HashMap;
use std::io::Read;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::{ArrayRef, RecordBatch};
use arrow_buffer::{Buffer, MutableBuffer};
use arrow_ipc::convert::try_fb_to_schema;
use arrow_ipc::reader::{RecordBatchDecoder, read_dictionary};
use arrow_ipc::{
    Block, CompressionType, Message, MessageHeader, MetadataVersion, root_as_footer,
    root_as_message,
};
use arrow_schema::{ArrowError, DataType, Field, Fields, SchemaRef, UnionMode};
use lookalike::catch_panics;
use parquet::file::reader::{ChunkReader, Length};

use super::InputFormat;
use super::columnar::{PositionedFile, unreadable};
use super::file::InputFile;
use crate::error::Result;

/// The bytes at both ends of a file.
const FILE_MAGIC: &[u8] = b"ARROW1";

/// The first bytes of version 1 of Feather, which is another format.
const FEATHER_1_MAGIC: &[u8] = b"FEA1";

/// The first bytes of a message.
const MESSAGE_START: [u8; 4] = [0xFF; 4];

/// Bytes that a compressed buffer may expand to, whatever its length. Beyond them the length limits it.
const FREE_EXPANSION: u64 = 1 << 30;

/// Largest ratio of expanded to compressed bytes above [`FREE_EXPANSION`].
const MAX_EXPANSION: u64 = 1024;

/// An opened file or stream.
pub(crate) struct ArrowFile {
    file: PositionedFile,
    schema: SchemaRef,
    compression: Option<CompressionType>,
    batches: Vec<BatchPlace>,
    dictionaries: Vec<DictionaryPlace>,
    decoded: Mutex<DecodedDictionaries>,
}

/// The dictionaries that apply to some record batches.
#[derive(Default)]
struct DecodedDictionaries {
    /// Number of dictionary batches that stand before those record batches.
    count: usize,
    by_id: Arc<HashMap<i64, ArrayRef>>,
}

/// The place of a message, in bytes.
#[derive(Debug, Clone, Copy)]
struct MessagePlace {
    start: u64,
    /// Length of the header with its prefix.
    header: usize,
    body: u64,
}

struct BatchPlace {
    message: MessagePlace,
    rows: u64,
    /// Number of rows before it.
    first: u64,
    /// Number of dictionary batches that apply.
    dictionaries: usize,
}

struct DictionaryPlace {
    message: MessagePlace,
    id: i64,
    is_delta: bool,
}

/// A failure: a phrase that says what is wrong.
type Outcome<T> = std::result::Result<T, String>;

impl ArrowFile {
    /// Opens an input.
    ///
    /// # Errors
    /// If it is neither an Arrow file nor an Arrow stream, or a message is cut off or damaged.
    pub(crate) fn open_input(input: &InputFile) -> Result<Self> {
        let file = input.open_positioned()?;
        Self::open_positioned(file)
            .map_err(|reason| unreadable(input.display_name(), InputFormat::Arrow, &reason))
    }

    fn open_positioned(file: PositionedFile) -> Outcome<Self> {
        let start = read_bytes(&file, 0, file.len().min(8) as usize)?;
        match &start[..] {
            start if start.starts_with(FILE_MAGIC) => Self::open_file(file),
            start if start.starts_with(FEATHER_1_MAGIC) => Err(
                "it is Feather of version 1, which is another format: write it again as version 2, for example with \
                 `pyarrow.feather.write_feather`"
                    .to_owned(),
            ),
            [] => Err("it is empty, and even a file without rows has a schema".to_owned()),
            _ => Self::open_stream(file),
        }
    }

    fn open_file(file: PositionedFile) -> Outcome<Self> {
        let cut = "it has no footer at its end, so it was cut off or not completed";
        let length = file.len();
        let trailer = length
            .checked_sub(10)
            .filter(|&at| at >= 8)
            .ok_or_else(|| cut.to_owned())?;
        let end = read_bytes(&file, trailer, 10)?;
        if !end.ends_with(FILE_MAGIC) {
            return Err(cut.to_owned());
        }
        let footer_length = u32::from_le_bytes([end[0], end[1], end[2], end[3]]);
        let start = trailer
            .checked_sub(u64::from(footer_length))
            .filter(|&at| at >= 8)
            .ok_or_else(|| format!("its footer has {footer_length} bytes, more than there are"))?;
        let bytes = read_bytes(&file, start, footer_length as usize)?;
        let footer =
            root_as_footer(&bytes).map_err(|error| format!("its footer is damaged: {error}"))?;
        let schema = footer.schema().ok_or("its footer has no schema")?;
        let schema = schema_of(schema)?;
        let place = |block: &Block| place_of_block(block, start);
        let mut index = MessageIndex::default();
        for block in footer.dictionaries().iter().flatten() {
            index.add_message(&file, place(block)?)?;
        }
        for block in footer.recordBatches().iter().flatten() {
            index.add_message(&file, place(block)?)?;
        }
        Ok(index.into_file(file, schema))
    }

    fn open_stream(file: PositionedFile) -> Outcome<Self> {
        let foreign = || {
            "it begins neither as an Arrow file nor as an Arrow stream: give --format if it has another format"
                .to_owned()
        };
        let (place, bytes) = next_message(&file, 0)
            .map_err(|_| foreign())?
            .ok_or_else(foreign)?;
        let message = parse_message(&bytes).map_err(|_| foreign())?;
        let schema = message.header_as_schema().ok_or_else(foreign)?;
        let schema = schema_of(schema)?;
        let mut index = MessageIndex::default();
        let mut at = place.end();
        while let Some((place, bytes)) = next_message(&file, at)? {
            index.add_header(&file, place, &bytes)?;
            at = place.end();
        }
        let end = at + end_marker_length(&file, at)?;
        match file.len() - end {
            0 => Ok(index.into_file(file, schema)),
            more => Err(format!(
                "its stream ends at byte {end}, and {more} bytes follow: give every stream as a file of its own"
            )),
        }
    }

    /// Returns the columns.
    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Returns the compression of its buffers, that of the first compressed batch.
    pub(crate) fn compression(&self) -> Option<CompressionType> {
        self.compression
    }

    /// Returns `true` if each dictionary is complete before the first record batch and does not change.
    pub(crate) fn has_fixed_dictionaries(&self) -> bool {
        let ids: std::collections::HashSet<i64> =
            self.dictionaries.iter().map(|place| place.id).collect();
        let are_first = self
            .batches
            .first()
            .is_none_or(|first| first.dictionaries == ids.len());
        are_first && ids.len() == self.dictionaries.len()
    }

    /// Returns the length of the file in bytes.
    pub(super) fn byte_length(&self) -> u64 {
        self.file.len()
    }

    /// Returns the number of rows.
    pub(crate) fn row_count(&self) -> u64 {
        self.batches.last().map_or(0, |last| last.first + last.rows)
    }

    /// Returns the number of record batches.
    pub(crate) fn batch_count(&self) -> usize {
        self.batches.len()
    }

    /// Returns the rows of a record batch, counted from 0 in the file.
    pub(crate) fn batch_rows(&self, batch: usize) -> Range<u64> {
        let place = &self.batches[batch];
        place.first..place.first + place.rows
    }

    /// Returns the bytes of a record batch with all its columns when it is decoded. A damaged batch counts as its bytes on
    /// disk, because reading it fails.
    ///
    /// Cost: it reads the header of the batch, and eight bytes of every compressed buffer.
    pub(crate) fn decoded_batch_bytes(&self, batch: usize) -> u64 {
        let batch = &self.batches[batch];
        let expanded = self.expanded_bytes(batch).ok().flatten();
        expanded.unwrap_or(batch.message.body)
    }

    /// Returns the most bytes of memory that a record batch takes with all its columns while it is decoded: its buffers,
    /// and what they expand to if they are compressed. A damaged batch counts as nothing, because reading it fails.
    ///
    /// Cost: it reads the header of every batch, and eight bytes of every compressed buffer.
    pub(crate) fn largest_batch_bytes(&self) -> u64 {
        let bytes = |batch| self.decoding_bytes(batch).unwrap_or(0);
        self.batches.iter().map(bytes).max().unwrap_or(0)
    }

    fn decoding_bytes(&self, batch: &BatchPlace) -> Outcome<u64> {
        let expanded = self.expanded_bytes(batch)?;
        Ok(batch.message.body + expanded.unwrap_or(0))
    }

    /// Returns the bytes that the buffers of a record batch expand to; `None` if they are not compressed.
    fn expanded_bytes(&self, batch: &BatchPlace) -> Outcome<Option<u64>> {
        let place = &batch.message;
        let bytes = read_bytes(&self.file, place.start, place.header)?;
        let message = parse_message(&bytes)?;
        let header = message
            .header_as_record_batch()
            .ok_or("it is no record batch")?;
        if header.compression().is_none() {
            return Ok(None);
        }
        let mut sum = 0;
        for range in buffer_ranges(place, &header)? {
            let start = place.start + (place.header + range.start) as u64;
            let said = read_bytes(&self.file, start, range.len().min(8))?;
            if !said.is_empty() {
                sum += expanded_length(&said, range.len() as u64)?;
            }
        }
        Ok(Some(sum))
    }

    /// Decodes the wanted columns of a record batch, or all of them. `columns` ascends. Messages call the file `name`.
    ///
    /// # Errors
    /// If the file cannot be read, or the batch is damaged. The message names batch, rows and column.
    pub(crate) fn read_batch(
        &self,
        name: &str,
        batch: usize,
        columns: Option<&[usize]>,
    ) -> Result<RecordBatch> {
        self.decode_batch(batch, columns).map_err(|reason| {
            let rows = self.batch_rows(batch);
            let place = format!(
                "record batch {} (rows {} to {}): {reason}",
                batch + 1,
                rows.start + 1,
                rows.end
            );
            unreadable(name, InputFormat::Arrow, &place)
        })
    }

    fn decode_batch(&self, batch: usize, columns: Option<&[usize]>) -> Outcome<RecordBatch> {
        let place = &self.batches[batch];
        let dictionaries = self.dictionaries_of(place)?;
        let bytes = read_bytes(&self.file, place.message.start, place.message.header)?;
        let message = parse_message(&bytes)?;
        let header = message
            .header_as_record_batch()
            .ok_or("it is no record batch")?;
        let (schema, version) = (&self.schema, message.version());
        let body = self.read_body(place, &header, version, columns)?;
        let decode = |columns: Option<&[usize]>| {
            decode_checked(|| {
                let (schema, all) = (Arc::clone(schema), &*dictionaries);
                RecordBatchDecoder::try_new(&body, header, schema, all, &version)?
                    .with_projection(columns)
                    .read_record_batch()
            })
        };
        decode(columns).map_err(|error| {
            let all: Vec<usize> = (0..schema.fields().len()).collect();
            let failing = (columns.unwrap_or(&all).iter())
                .find_map(|&column| Some((column, decode(Some(&[column])).err()?)));
            match failing {
                Some((column, error)) => {
                    format!("column `{}`: {error}", schema.field(column).name())
                }
                None => error,
            }
        })
    }

    /// Reads the buffers of the wanted columns of a record batch, each at its place in the body.
    fn read_body(
        &self,
        place: &BatchPlace,
        header: &arrow_ipc::RecordBatch<'_>,
        version: MetadataVersion,
        columns: Option<&[usize]>,
    ) -> Outcome<Buffer> {
        let shapes = list_shapes(self.schema.fields(), header, version, columns);
        read_buffers(&self.file, &place.message, header, shapes.as_deref())
    }

    /// Returns the dictionaries that apply to a record batch.
    fn dictionaries_of(&self, batch: &BatchPlace) -> Outcome<Arc<HashMap<i64, ArrayRef>>> {
        if self.dictionaries.is_empty() {
            return Ok(Arc::default());
        }
        let mut decoded = self.decoded.lock().unwrap_or_else(PoisonError::into_inner);
        if decoded.count != batch.dictionaries {
            let by_id =
                Arc::new(self.decode_dictionaries(&self.dictionaries[..batch.dictionaries])?);
            *decoded = DecodedDictionaries {
                count: batch.dictionaries,
                by_id,
            };
        }
        Ok(Arc::clone(&decoded.by_id))
    }

    /// Decodes the last complete dictionary of each id, and the additions after it.
    fn decode_dictionaries(&self, places: &[DictionaryPlace]) -> Outcome<HashMap<i64, ArrayRef>> {
        let mut last: HashMap<i64, usize> = HashMap::new();
        for (at, place) in places.iter().enumerate() {
            if !place.is_delta {
                last.insert(place.id, at);
            }
        }
        let mut by_id = HashMap::new();
        for (at, place) in places.iter().enumerate() {
            if last.get(&place.id).is_some_and(|&last| at < last) {
                continue;
            }
            let broken = |reason: String| {
                format!(
                    "dictionary batch {} of the dictionary {}: {reason}",
                    at + 1,
                    place.id
                )
            };
            self.decode_dictionary(&place.message, &mut by_id)
                .map_err(broken)?;
        }
        Ok(by_id)
    }

    fn decode_dictionary(
        &self,
        place: &MessagePlace,
        by_id: &mut HashMap<i64, ArrayRef>,
    ) -> Outcome<()> {
        let bytes = read_bytes(&self.file, place.start, place.header)?;
        let message = parse_message(&bytes)?;
        let header = message
            .header_as_dictionary_batch()
            .ok_or("it is no dictionary")?;
        let data = header.data().ok_or("it has no values")?;
        let version = message.version();
        #[expect(deprecated, reason = "there is no other way from an id to its type")]
        let fields = self.schema.fields_with_dict_id(header.id());
        let values = fields.first().and_then(|field| match field.data_type() {
            DataType::Dictionary(_, values) => Some(Field::new("values", (**values).clone(), true)),
            _ => None,
        });
        let values: Fields = values.into_iter().collect();
        let shapes = list_shapes(&values, &data, version, None);
        let body = read_buffers(&self.file, place, &data, shapes.as_deref())?;
        decode_checked(|| read_dictionary(&body, header, &self.schema, by_id, &version))
    }
}

/// The messages that were found.
#[derive(Default)]
struct MessageIndex {
    batches: Vec<BatchPlace>,
    dictionaries: Vec<DictionaryPlace>,
    compression: Option<CompressionType>,
    rows: u64,
}

impl MessageIndex {
    fn add_message(&mut self, file: &PositionedFile, place: MessagePlace) -> Outcome<()> {
        let bytes = read_bytes(file, place.start, place.header)?;
        self.add_header(file, place, &bytes)
    }

    fn add_header(
        &mut self,
        file: &PositionedFile,
        message: MessagePlace,
        bytes: &[u8],
    ) -> Outcome<()> {
        let number = self.batches.len() + 1;
        if message.end() > file.len() {
            return Err(format!(
                "it ends within record batch {number}, after row {}: {} bytes are needed at byte {}, and the file has \
                 {}",
                self.rows,
                message.body,
                message.start,
                file.len()
            ));
        }
        let header = parse_message(bytes)?;
        match header.header_type() {
            MessageHeader::RecordBatch => {
                let batch = header.header_as_record_batch();
                let batch = batch.ok_or_else(|| format!("record batch {number} has no header"))?;
                let rows = u64::try_from(batch.length())
                    .ok()
                    .filter(|&it| it <= MAX_BATCH_ROWS);
                let rows = rows.ok_or_else(|| {
                    format!(
                        "record batch {number} has {} rows; at most {MAX_BATCH_ROWS} can be read",
                        batch.length()
                    )
                })?;
                self.compression = self
                    .compression
                    .or_else(|| Some(batch.compression()?.codec()));
                self.batches.push(BatchPlace {
                    message,
                    rows,
                    first: self.rows,
                    dictionaries: self.dictionaries.len(),
                });
                self.rows += rows;
                Ok(())
            }
            MessageHeader::DictionaryBatch => {
                let dictionary = header.header_as_dictionary_batch();
                let dictionary = dictionary.ok_or("a dictionary batch has no header")?;
                self.dictionaries.push(DictionaryPlace {
                    message,
                    id: dictionary.id(),
                    is_delta: dictionary.isDelta(),
                });
                Ok(())
            }
            other => Err(format!(
                "after record batch {} it has a message of the kind {other:?}; only record batches and dictionaries \
                 can be read",
                self.batches.len()
            )),
        }
    }

    fn into_file(self, file: PositionedFile, schema: SchemaRef) -> ArrowFile {
        ArrowFile {
            file,
            schema,
            compression: self.compression,
            batches: self.batches,
            dictionaries: self.dictionaries,
            decoded: Mutex::default(),
        }
    }
}

/// Largest number of rows in a record batch: that of 32-bit numbers of documents.
const MAX_BATCH_ROWS: u64 = u32::MAX as u64;

impl MessagePlace {
    fn end(&self) -> u64 {
        self.start
            .saturating_add(self.header as u64)
            .saturating_add(self.body)
    }
}

fn place_of_block(block: &Block, footer: u64) -> Outcome<MessagePlace> {
    let damaged = || "its footer is damaged: a batch lies outside of the file".to_owned();
    let place = MessagePlace {
        start: u64::try_from(block.offset()).map_err(|_| damaged())?,
        header: usize::try_from(block.metaDataLength()).map_err(|_| damaged())?,
        body: u64::try_from(block.bodyLength()).map_err(|_| damaged())?,
    };
    if place.header >= 8 && place.end() <= footer {
        Ok(place)
    } else {
        Err(damaged())
    }
}

/// Returns the place of the message at an offset and its header with the prefix, or `None` at the end of the stream.
fn next_message(file: &PositionedFile, start: u64) -> Outcome<Option<(MessagePlace, Vec<u8>)>> {
    let left = file.len() - start;
    if left == 0 {
        return Ok(None);
    }
    let cut = || format!("it ends within the message at byte {start}");
    let prefix = read_bytes(file, start, left.min(8) as usize)?;
    // Before version 0.15 of Arrow, messages began with the length.
    let (prefix_length, length) = match &prefix[..] {
        [a, b, c, d, rest @ ..] if [*a, *b, *c, *d] == MESSAGE_START => {
            (8, <[u8; 4]>::try_from(rest).map_err(|_| cut())?)
        }
        [a, b, c, d, ..] => (4, [*a, *b, *c, *d]),
        _ => return Err(cut()),
    };
    let length = u32::from_le_bytes(length);
    if length == 0 {
        return Ok(None);
    }
    let header = prefix_length + u64::from(length);
    if header > left {
        return Err(cut());
    }
    let bytes = read_bytes(file, start, header as usize)?;
    let body = parse_message(&bytes)?.bodyLength();
    let body = u64::try_from(body)
        .map_err(|_| format!("the message at byte {start} has a body of {body} bytes"))?;
    let place = MessagePlace {
        start,
        header: header as usize,
        body,
    };
    Ok(Some((place, bytes)))
}

/// Returns the length of the mark that ends a stream; 0 if it ends without one.
fn end_marker_length(file: &PositionedFile, at: u64) -> Outcome<u64> {
    let start = read_bytes(file, at, (file.len() - at).min(4) as usize)?;
    Ok(match &start[..] {
        [] => 0,
        start if start == MESSAGE_START => 8,
        _ => 4,
    })
}

/// Parses the header of a message, with its prefix.
fn parse_message(bytes: &[u8]) -> Outcome<Message<'_>> {
    let prefix = if bytes.starts_with(&MESSAGE_START) {
        8
    } else {
        4
    };
    let header = bytes
        .get(prefix..)
        .ok_or("the header of a message is too short")?;
    root_as_message(header).map_err(|error| format!("the header of a message is damaged: {error}"))
}

fn schema_of(schema: arrow_ipc::Schema<'_>) -> Outcome<SchemaRef> {
    if !schema.endianness().equals_to_target_endianness() {
        return Err("its numbers have another byte order than those of this machine".to_owned());
    }
    let schema = try_fb_to_schema(schema).map_err(|error| phrase_of(&error))?;
    Ok(Arc::new(schema))
}

/// Returns the text of an error without the name of its kind.
fn phrase_of(error: &ArrowError) -> String {
    match error {
        ArrowError::InvalidArgumentError(text)
        | ArrowError::IpcError(text)
        | ArrowError::ParseError(text)
        | ArrowError::SchemaError(text) => text.clone(),
        other => other.to_string(),
    }
}

fn read_bytes(file: &PositionedFile, start: u64, length: usize) -> Outcome<Vec<u8>> {
    let mut bytes = vec![0; length];
    fill_bytes(file, start, &mut bytes)?;
    Ok(bytes)
}

fn fill_bytes(file: &PositionedFile, start: u64, bytes: &mut [u8]) -> Outcome<()> {
    let read = file.get_read(start).map_err(|error| error.to_string());
    read?.read_exact(bytes).map_err(|cause| match cause.kind() {
        std::io::ErrorKind::UnexpectedEof => format!(
            "{} bytes are needed at byte {start}, and the file has {}",
            bytes.len(),
            file.len()
        ),
        _ => cause.to_string(),
    })
}

/// Reads the wanted buffers of a batch into a body of its whole length; all of them, if their shapes are not known.
/// Buffers that are not read are zero.
fn read_buffers(
    file: &PositionedFile,
    place: &MessagePlace,
    header: &arrow_ipc::RecordBatch<'_>,
    shapes: Option<&[BufferShape]>,
) -> Outcome<Buffer> {
    for node in header.nodes().iter().flatten() {
        if node.length() < 0 || !(0..=node.length()).contains(&node.null_count()) {
            return Err(damaged_header(
                "a column has a negative number of values or of nulls",
            ));
        }
    }
    let length = usize::try_from(place.body).map_err(|error| error.to_string())?;
    let mut body = MutableBuffer::try_from_len_zeroed(length)
        .map_err(|_| format!("its {length} bytes do not fit into the memory"))?;
    let start = place.start + place.header as u64;
    for (at, range) in buffer_ranges(place, header)?.into_iter().enumerate() {
        let shape = match shapes {
            None => BufferShape {
                is_wanted: true,
                width: 1,
            },
            // The decoder reports buffers that belong to no column.
            Some(shapes) => match shapes.get(at) {
                Some(shape) => *shape,
                None => continue,
            },
        };
        if range.is_empty() || !shape.is_wanted {
            continue;
        }
        let bytes = &mut body.as_slice_mut()[range.clone()];
        fill_bytes(file, start + range.start as u64, bytes)?;
        let expanded = match header.compression() {
            Some(_) => expanded_length(bytes, bytes.len() as u64)?,
            None => bytes.len() as u64,
        };
        if !expanded.is_multiple_of(shape.width) {
            let width = shape.width;
            let what = format!("a buffer has {expanded} bytes, which is no multiple of {width}");
            return Err(damaged_header(&what));
        }
    }
    Ok(body.into())
}

fn damaged_header(what: &str) -> String {
    format!("its header is damaged: {what}")
}

/// Returns the ranges of the buffers of a batch within its body.
fn buffer_ranges(
    place: &MessagePlace,
    header: &arrow_ipc::RecordBatch<'_>,
) -> Outcome<Vec<Range<usize>>> {
    let buffers = header.buffers();
    let ranges = buffers.iter().flatten().map(|buffer| {
        usize::try_from(buffer.offset())
            .ok()
            .zip(usize::try_from(buffer.length()).ok())
            .and_then(|(offset, size)| Some(offset..offset.checked_add(size)?))
            .filter(|range| range.end as u64 <= place.body)
            .ok_or_else(|| damaged_header("a buffer lies outside of its body"))
    });
    ranges.collect()
}

/// Returns the length of a compressed buffer when it is expanded, from its first bytes and its length. Refuses one that
/// says that it expands beyond all reason, before memory is reserved for it.
fn expanded_length(start: &[u8], length: u64) -> Outcome<u64> {
    let said = start
        .first_chunk::<8>()
        .ok_or("a compressed buffer is shorter than its length")?;
    let most = FREE_EXPANSION.max(length.saturating_mul(MAX_EXPANSION));
    let said = i64::from_le_bytes(*said);
    match u64::try_from(said) {
        Ok(expanded) if expanded <= most => Ok(expanded),
        // Not compressed.
        Err(_) if said == -1 => Ok(length - 8),
        _ => Err(format!(
            "a compressed buffer of {length} bytes says that it has {said} bytes; at most {most} are read"
        )),
    }
}

/// The facts about a buffer that follow from the type of its column.
#[derive(Clone, Copy)]
struct BufferShape {
    is_wanted: bool,
    /// Its length is a multiple of this.
    width: u64,
}

/// Returns the shapes of the buffers of a batch, of which some columns are wanted, or all of them. Returns `None` if the
/// header does not fit the columns, which the decoder reports.
fn list_shapes(
    fields: &Fields,
    header: &arrow_ipc::RecordBatch<'_>,
    version: MetadataVersion,
    columns: Option<&[usize]>,
) -> Option<Vec<BufferShape>> {
    let mut variadic = header.variadicBufferCounts().into_iter().flatten();
    let most = header.buffers().map_or(0, |buffers| buffers.len());
    let mut widths = Vec::new();
    let mut shapes = Vec::new();
    for (at, field) in fields.iter().enumerate() {
        widths.clear();
        append_widths(field.data_type(), version, most, &mut variadic, &mut widths)?;
        let is_wanted = columns.is_none_or(|columns| columns.contains(&at));
        shapes.extend(widths.iter().map(|&width| BufferShape { is_wanted, width }));
    }
    Some(shapes)
}

/// Appends the widths of the buffers of a column with all columns within it, in the order of the format. `most` limits
/// the number that a header may claim.
fn append_widths(
    data_type: &DataType,
    version: MetadataVersion,
    most: usize,
    variadic: &mut dyn Iterator<Item = i64>,
    widths: &mut Vec<u64>,
) -> Option<()> {
    let within: Vec<&DataType> = match data_type {
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::Map(item, _)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _) => vec![item.data_type()],
        DataType::Struct(fields) => fields.iter().map(|field| field.data_type()).collect(),
        DataType::RunEndEncoded(ends, values) => vec![ends.data_type(), values.data_type()],
        DataType::Union(fields, _) => fields.iter().map(|(_, it)| it.data_type()).collect(),
        _ => Vec::new(),
    };
    match data_type {
        DataType::Null | DataType::RunEndEncoded(..) => {}
        DataType::Utf8 | DataType::Binary => widths.extend([1, 4, 1]),
        DataType::LargeUtf8 | DataType::LargeBinary => widths.extend([1, 8, 1]),
        DataType::Utf8View | DataType::BinaryView => {
            let count = usize::try_from(variadic.next()?).ok()?;
            widths.extend([1, 16]);
            widths.extend(std::iter::repeat_n(1, count.min(most)));
        }
        DataType::List(_) | DataType::Map(..) => widths.extend([1, 4]),
        DataType::LargeList(_) => widths.extend([1, 8]),
        DataType::ListView(_) => widths.extend([1, 4, 4]),
        DataType::LargeListView(_) => widths.extend([1, 8, 8]),
        DataType::FixedSizeList(..) | DataType::Struct(_) => widths.push(1),
        DataType::Union(_, mode) => {
            let has_nulls = version < MetadataVersion::V5;
            widths.extend(std::iter::repeat_n(1, 1 + usize::from(has_nulls)));
            widths.extend((*mode == UnionMode::Dense).then_some(4));
        }
        DataType::Dictionary(keys, _) => widths.extend([1, keys.primitive_width()? as u64]),
        // Some writers count the padding to 8 bytes.
        other => widths.extend([1, other.primitive_width().unwrap_or(1).min(8) as u64]),
    }
    within
        .into_iter()
        .try_for_each(|inner| append_widths(inner, version, most, variadic, widths))
}

/// Calls the decoder. It panics where a damaged file passes all checks, for example by an offset within a union.
fn decode_checked<T>(decode: impl FnOnce() -> std::result::Result<T, ArrowError>) -> Outcome<T> {
    match catch_panics(decode) {
        Ok(decoded) => decoded.map_err(|error| phrase_of(&error)),
        Err(_) => Err("it is damaged".to_owned()),
    }
}
