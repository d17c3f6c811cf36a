//! The first reading: all threads convert rows to sketches; the results are in input order.

use crate::run::reading::row_analysis::analyze_row;
use crate::run::reading::row_analysis::make_bad_row;
use std::time::Instant;

use lookalike::byte_reader::ByteReader;
use lookalike::quality::audit::SampleComparer;
use lookalike::shuffle::{LocalScatterer, ShuffleBlock, ShuffleBlockKind};
use lookalike::text::{AnalysisScratch, TextAnalyzer};
use lookalike::{DocId, DocumentSketcher, DocumentSketches};
use lookalike_io::error::{Error, Result};
use lookalike_io::source::{BadRow, InputBlock, InputRow, InputSet, KnownBlock, ParseScratch};

use crate::run::execution::audit::RunAudit;
use crate::run::execution::out_of_core::spilled_reading::{ScatteredBlock, SpilledReading};
use crate::run::execution::work_directory::reading::{ReadingSteps, StoredBlock};
use crate::run::progress::ProgressListener;
use crate::run::reading::documents::{ExtraFields, ReadDocuments};
use crate::run::reading::element_count::{put_count, read_count};
use crate::run::reading::ordered_pipeline::first_blocks_in_order;
use crate::run::reading::rejected_rows::{RowTally, tell_bad_rows};
use crate::run::reading::row_sampling::RowSampling;
use crate::run::settings::RunSettings;

/// Everything needed to convert a row to a sketch.
pub(in crate::run) struct CorpusReader<'a> {
    pub(in crate::run) settings: &'a RunSettings,
    pub(in crate::run) analyzer: TextAnalyzer,
    pub(in crate::run) sketcher: DocumentSketcher,
    pub(in crate::run) extra: ExtraFields,
    /// Receives all bad rows in order.
    pub(in crate::run) reject: &'a RejectRows<'a>,
    /// The audit of the run, with the size on disk of all inputs in bytes, if it is known.
    pub(in crate::run) audit: Option<(&'a RunAudit, Option<u64>)>,
    /// The selection of rows if not all are read. Bad rows are then only counted.
    pub(in crate::run) sampling: Option<&'a RowSampling>,
    /// `true` if these are all rows of a run, some of which must be usable.
    pub(in crate::run) is_whole: bool,
    /// The steps of these inputs, if the run can be interrupted.
    pub(in crate::run) steps: Option<ReadingSteps<'a>>,
    /// The temporary files of sketches and keys, if the run is out of core.
    pub(in crate::run) spill: Option<SpillTarget<'a>>,
}

/// Where the sketches and keys of one set of inputs go, if they do not stay in memory.
#[derive(Clone, Copy)]
pub(in crate::run) struct SpillTarget<'a> {
    pub(in crate::run) reading: &'a SpilledReading,
    /// Node of the first row of these inputs.
    pub(in crate::run) first_node: u64,
    /// `true` if the run decides about these documents.
    pub(in crate::run) is_judged: bool,
}

/// The documents of a block.
struct BlockPart {
    documents: ReadDocuments,
    /// The sketches as bytes, if they do not stay in memory.
    spilled: Option<Vec<u8>>,
    /// The bytes to store, if the run can be interrupted and the block is not stored yet.
    encoded: Option<Vec<u8>>,
    bytes_on_disk: u64,
}

/// A block that was stored.
struct StoredRows {
    /// Size on disk of what it was made from.
    size: u64,
    start: BlockStart,
    /// For each wanted field: whether a row has had it so far.
    seen: Vec<bool>,
    documents: ReadDocuments,
    scattered: ScatteredBlock,
}

/// Where a block begins among its inputs.
#[derive(Clone, Copy)]
struct BlockStart {
    /// The number of the first row.
    number: u64,
    /// The place of the first row; 0 if that is not known before the rows are parsed.
    place: u64,
    /// The node of the first row; 0 if the run has no nodes.
    node: u64,
    /// Where the block is in its input, if it is one of lines.
    known: Option<KnownBlock>,
}

impl BlockStart {
    /// Appends number, place and node, a byte that says whether the block is one of lines, and the six numbers of
    /// [`KnownBlock`], or zeros.
    fn encode_start(self, into: &mut Vec<u8>) {
        for number in [self.number, self.place, self.node] {
            into.extend(number.to_le_bytes());
        }
        into.push(u8::from(self.known.is_some()));
        let known = self.known.map_or([0; 6], |it| {
            [
                it.offset,
                it.length,
                it.line,
                it.lines,
                it.rows,
                it.bytes_on_disk,
            ]
        });
        known
            .iter()
            .for_each(|number| into.extend(number.to_le_bytes()));
    }

    fn decode_start(reader: &mut ByteReader<'_>) -> Option<Self> {
        let [number, place, node] = [reader.read_u64()?, reader.read_u64()?, reader.read_u64()?];
        let is_known = reader.read_u8()? != 0;
        let known = KnownBlock {
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
            known: is_known.then_some(known),
        })
    }

    /// Returns `true` if both begin at the same rows, places and nodes.
    fn is_at(self, other: Self) -> bool {
        let at = |it: Self| (it.number, it.place, it.node);
        at(self) == at(other)
    }
}

/// Receives the bad rows of a block.
pub(in crate::run) type RejectRows<'a> = dyn Fn(&InputSet, &[BadRow]) -> Result<()> + Sync + 'a;

/// The buffers of one thread.
#[derive(Default)]
struct ReadWorker {
    parse: ParseScratch,
    scratch: AnalysisScratch,
    /// The counter of the audit, if there is one.
    counter: Option<SampleComparer>,
    /// The keys of documents, if they do not stay in memory.
    scatterer: Option<LocalScatterer>,
}

/// Number of features of short documents kept from the first reading; they take 96 MiB.
pub(in crate::run) const FEATURES_HELD: usize = 12 << 20;

/// Number of documents after which memory is reserved for all.
const FIRST_DOCUMENTS: usize = 4096;

impl CorpusReader<'_> {
    /// Creates an empty store of sketches.
    pub(in crate::run) fn new_sketches(&self) -> DocumentSketches {
        self.sketcher.new_sketches(FEATURES_HELD)
    }

    /// Reads all inputs and appends their documents to `documents`.
    pub(in crate::run) fn read_inputs(
        &self,
        inputs: &InputSet,
        documents: ReadDocuments,
        progress: &dyn ProgressListener,
    ) -> Result<ReadDocuments> {
        let (mut documents, mut tally) = (documents, RowTally::default());
        let mut expected = match self.sampling {
            None => inputs.expected_rows()?,
            Some(_) => None,
        };
        first_blocks_in_order(
            inputs,
            progress,
            || self.new_worker(),
            &|| self.next_block(inputs),
            |block, worker, _| self.read_block(inputs, block, worker),
            |part| {
                self.join_part(inputs, part, (&mut documents, &mut tally), progress)?;
                // The first documents show how long their lists are.
                if documents.len() >= FIRST_DOCUMENTS
                    && let Some(rows) = expected.take()
                {
                    documents.reserve_documents((1.02 * rows) as usize);
                }
                Ok(())
            },
        )?;
        if let Some(steps) = &self.steps {
            steps.finish_steps()?;
        }
        if self.is_whole {
            tally.refuse_useless(inputs)?;
        }
        Ok(documents)
    }

    /// Returns the next block. Blocks of steps are not read again where that is possible.
    fn next_block(&self, inputs: &InputSet) -> Result<Option<InputBlock>> {
        if self.sampling.is_some_and(RowSampling::is_enough) {
            return Ok(None);
        }
        let Some(steps) = &self.steps else {
            return inputs.next_block();
        };
        inputs.next_block_unless_known(&|ordinal| {
            let find = |bytes: &[u8]| BlockStart::decode_start(&mut ByteReader::new(bytes))?.known;
            Ok(steps.peek_block(ordinal, find)?.flatten())
        })
    }

    fn new_worker(&self) -> ReadWorker {
        ReadWorker {
            counter: self.audit.map(|(audit, _)| audit.new_comparer()),
            scatterer: self.spill.map(|spill| spill.reading.new_scatterer()),
            ..ReadWorker::default()
        }
    }

    fn read_block(
        &self,
        inputs: &InputSet,
        block: &InputBlock,
        worker: &mut ReadWorker,
    ) -> Result<BlockPart> {
        let bytes_on_disk = block.bytes_on_disk();
        if let Some(steps) = &self.steps
            && let Some(stored) = steps.take_block(block.ordinal())?
        {
            let (documents, scattered) =
                self.restore_block((inputs, block), steps, &stored, worker)?;
            if let Some(spill) = self.spill {
                spill.reading.count_scattered(&scattered)?;
            }
            return Ok(BlockPart {
                spilled: self.spill_block(block, &documents, &scattered)?,
                documents,
                encoded: None,
                bytes_on_disk,
            });
        }
        let documents = self.sketch_block(inputs, block, worker)?;
        let scattered = match (self.spill, &mut worker.scatterer) {
            (Some(spill), Some(scatterer)) => spill.reading.take_scattered(scatterer),
            _ => ScatteredBlock::default(),
        };
        let steps = self.steps.as_ref();
        let encoded =
            steps.map(|steps| self.encode_block((inputs, block), (&documents, &scattered), steps));
        Ok(BlockPart {
            spilled: self.spill_block(block, &documents, &scattered)?,
            documents,
            encoded,
            bytes_on_disk,
        })
    }

    /// Writes the keys of a block to their file, and returns the sketches as bytes, if they do not stay in memory.
    fn spill_block(
        &self,
        block: &InputBlock,
        documents: &ReadDocuments,
        scattered: &ScatteredBlock,
    ) -> Result<Option<Vec<u8>>> {
        let Some(spill) = self.spill else {
            return Ok(None);
        };
        let at = (spill.is_judged, block.ordinal());
        spill.reading.push_scattered(at, scattered)?;
        if spill.is_judged {
            spill.reading.count_states(&documents.sketches);
        }
        Ok(Some(spill.reading.encode_sketches(&documents.sketches)))
    }

    /// Returns the bytes of a block: where it begins (73), its size on disk (8), the number of wanted fields (8), a byte
    /// for each of them that says whether a row has had it so far, the documents, and their keys.
    fn encode_block(
        &self,
        (inputs, block): (&InputSet, &InputBlock),
        (documents, scattered): (&ReadDocuments, &ScatteredBlock),
        steps: &ReadingSteps<'_>,
    ) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.start_of_block(inputs, block).encode_start(&mut bytes);
        bytes.extend(block.bytes_on_disk().to_le_bytes());
        let seen = inputs.seen_fields();
        put_count(seen.len(), &mut bytes);
        bytes.extend(seen.into_iter().map(u8::from));
        documents.encode_block(&self.sketcher, steps.keeps_lists(), &mut bytes);
        put_scattered(scattered, &mut bytes);
        bytes
    }

    /// Returns the documents of a block that is stored, and their keys, without sketching them again.
    fn restore_block(
        &self,
        (inputs, block): (&InputSet, &InputBlock),
        steps: &ReadingSteps<'_>,
        stored: &StoredBlock,
        worker: &mut ReadWorker,
    ) -> Result<(ReadDocuments, ScatteredBlock)> {
        let refuse = |what: &str| steps.refuse_block(stored, what);
        let StoredRows {
            size,
            start,
            seen,
            mut documents,
            scattered,
        } = self
            .decode_block(stored.as_bytes())
            .ok_or_else(|| refuse("its documents cannot be read"))?;
        if size != block.bytes_on_disk() {
            return Err(refuse("it was made from another input"));
        }
        let rows = block.row_numbers();
        inputs.observe_seen(rows.end - rows.start, &seen);
        let here = self.start_of_block(inputs, block);
        if !here.is_at(start) {
            return Err(refuse("its rows were at another place"));
        }
        if !block.has_fixed_places() {
            let mut places = Vec::new();
            inputs.parse_block(block, &mut worker.parse, &mut |row| {
                places.push(match row {
                    Ok(row) => (row.number, row.place),
                    Err(bad) => (bad.number, bad.place),
                });
                Ok(())
            })?;
            if !documents.replace_places(&places) {
                return Err(refuse("it was made from other rows"));
            }
        }
        Ok((documents, scattered))
    }

    fn start_of_block(&self, inputs: &InputSet, block: &InputBlock) -> BlockStart {
        let number = block.row_numbers().start;
        BlockStart {
            number,
            place: inputs.first_place(block).unwrap_or(0),
            node: self.spill.map_or(0, |spill| spill.first_node + number - 1),
            known: block.known_block(),
        }
    }

    /// Decodes what [`encode_block`](Self::encode_block) has written.
    fn decode_block(&self, bytes: &[u8]) -> Option<StoredRows> {
        let mut reader = ByteReader::new(bytes);
        let start = BlockStart::decode_start(&mut reader)?;
        let size = reader.read_u64()?;
        let fields = read_count(&mut reader)?;
        let seen = reader.read_bytes(fields)?.iter().map(|&seen| seen != 0);
        let seen = seen.collect();
        let documents = ReadDocuments::decode_block(&mut reader, &self.sketcher, FEATURES_HELD)?;
        let scattered = read_scattered(&mut reader)?;
        reader.is_at_end().then_some(StoredRows {
            size,
            start,
            seen,
            documents,
            scattered,
        })
    }

    fn sketch_block(
        &self,
        inputs: &InputSet,
        block: &InputBlock,
        worker: &mut ReadWorker,
    ) -> Result<ReadDocuments> {
        if let Some(sampling) = self.sampling {
            sampling.begin_block(block);
        }
        if let Some((audit, bytes)) = self.audit {
            let buffers = (&mut worker.parse, &mut worker.scratch);
            audit.audit_drawing().draw_from_block(
                (inputs, bytes),
                block,
                &self.analyzer,
                buffers,
            )?;
        }
        self.read_part(inputs, block, worker)
    }

    fn join_part(
        &self,
        inputs: &InputSet,
        part: BlockPart,
        (documents, tally): (&mut ReadDocuments, &mut RowTally),
        progress: &dyn ProgressListener,
    ) -> Result<()> {
        let BlockPart {
            documents: mut part,
            spilled,
            encoded,
            bytes_on_disk,
        } = part;
        if part.len() > 0 {
            progress.rows_usable();
        }
        tally.add_rows(part.len() as u64, &part.bad);
        tell_bad_rows(&part.bad, progress, self.settings.strict, |rows| {
            (self.reject)(inputs, rows)
        })?;
        let added = part.len() as u64;
        if let (Some(spill), Some(sketches)) = (self.spill, spilled) {
            spill.reading.push_sketches(&sketches)?;
            part.sketches = DocumentSketches::default();
            let bytes = documents.memory_bytes() + documents.value_bytes();
            spill.reading.check_rows(documents.len(), bytes)?;
        }
        documents.append_documents(&mut part);
        if let Some(steps) = &self.steps {
            steps.note_room(documents.sketches.has_feature_room());
            if let Some(encoded) = encoded {
                steps.push_block(&encoded, added, bytes_on_disk)?;
            }
        }
        let limit = lookalike::DocId::LIMIT;
        if documents.len() >= limit {
            return Err(Error::limit_error(format!(
                "a run holds at most {limit} documents"
            )));
        }
        Ok(())
    }

    /// Adds a row of a sample. A sampled row stands alone between others that are skipped, so its first analysis reads
    /// code and tables into the caches again. The second one takes as long as among other rows, and is the one that counts.
    fn sample_row(
        &self,
        row: &InputRow<'_>,
        scratch: &mut AnalysisScratch,
        part: &mut ReadDocuments,
        sampling: &RowSampling,
    ) {
        let begun = Instant::now();
        if part.push_row(row, &self.extra).is_err() {
            sampling.count_bad_row();
            return;
        }
        analyze_row(&self.analyzer, row, scratch);
        let warm = Instant::now();
        let analysis = analyze_row(&self.analyzer, row, scratch);
        self.sketcher.add_document(&analysis, &mut part.sketches);
        sampling.add_sketching(warm.elapsed(), begun.elapsed());
    }

    fn read_part(
        &self,
        inputs: &InputSet,
        block: &InputBlock,
        worker: &mut ReadWorker,
    ) -> Result<ReadDocuments> {
        let ReadWorker {
            parse,
            scratch,
            counter,
            scatterer,
        } = worker;
        let base = self
            .audit
            .map_or(0, |(audit, _)| audit.audit_drawing().row_number_base());
        let mut part = ReadDocuments::with_sketches(self.new_sketches());
        inputs.parse_block(block, parse, &mut |row| {
            if let Some(sampling) = self.sampling {
                let Ok(row) = row else {
                    sampling.count_bad_row();
                    return Ok(());
                };
                if sampling.takes_row(row.number) {
                    self.sample_row(&row, scratch, &mut part, sampling);
                }
                return Ok(());
            }
            let bad = match row {
                Ok(row) => {
                    part.bytes += u64::from(row.place.byte_length());
                    match part.push_row(&row, &self.extra) {
                        Ok(()) => {
                            let analysis = analyze_row(&self.analyzer, &row, scratch);
                            let (Some((audit, _)), Some(counter)) = (self.audit, &mut *counter)
                            else {
                                self.sketcher.add_document(&analysis, &mut part.sketches);
                                if let (Some(spill), Some(scatterer)) =
                                    (self.spill, &mut *scatterer)
                                {
                                    let node = spill.node_of_row(row.number)?;
                                    let within = part.parts.last().copied().unwrap_or(0);
                                    let at = DocId(part.sketches.len() as u32 - 1);
                                    let sketched = (&part.sketches, at);
                                    scatterer.add_document((node, within), sketched, &analysis);
                                }
                                return Ok(());
                            };
                            counter.begin_document(&analysis);
                            let sketches = &mut part.sketches;
                            let see = &mut |features: &[u64]| counter.take_features(features);
                            self.sketcher.add_showing_features(&analysis, sketches, see);
                            audit.compare_with_drawn(base + row.number, &analysis, counter);
                            return Ok(());
                        }
                        Err(reason) => make_bad_row(inputs, &row, reason),
                    }
                }
                Err(bad) => {
                    part.bytes += u64::from(bad.place.byte_length());
                    bad
                }
            };
            part.bad.push(bad);
            Ok(())
        })?;
        Ok(part)
    }
}

impl SpillTarget<'_> {
    fn node_of_row(&self, number: u64) -> Result<u32> {
        u32::try_from(self.first_node + number - 1).map_err(|_| {
            Error::limit_error(format!(
                "a run in bounded memory reads at most {} rows, with those of the documents to compare against",
                1u64 << 32
            ))
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
