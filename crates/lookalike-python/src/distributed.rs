//! The steps of a run on many machines ([`lookalike::shuffle`]), batch by batch.
//!
//! A step takes and returns Arrow record batches, because Spark and Ray can pass these on without a
//! copy. Blocks of bytes travel as rows with a kind, a part and the block; see [`BlockRowKind`].

use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use arrow_array::builder::{
    BinaryBuilder, BooleanBuilder, Float64Builder, Int32Builder, Int64Builder, StringBuilder,
};
use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Int32Array, Int64Array, RecordBatch,
};
use arrow_pyarrow::PyArrowType;
use arrow_schema::DataType;
use lookalike::shuffle::{
    BlockGatherer as Gathering, ComponentDocument, ComponentMembers, ComponentResolver as Settling,
    DocumentOrder, DocumentRole, DocumentScatterer as Scattering, FeatureOrder, MatchBounds,
    RepeatedText, ResolvedPair, RoleFinder as Collecting, ShuffleBlock, ShuffleBlockKind,
    ShuffleDocument, ShuffleRemoval, ShuffleSetup, TextName, TextNode, divide_block,
};
use lookalike_io::source::{first_malformed, to_binary, to_large_strings};
use lookalike_options::keep_order::{KeepKey, KeepOrder, parse_keep};
use pyo3::prelude::*;

use crate::documents::TableDocumentReader;
use crate::error::{InputError, SettingError, engine_error_to_py};
use crate::recipe::Recipe;
use crate::settings::{RuleSettings, WeightChoice};
use crate::temporary_texts::TemporaryTexts;

pub(crate) type PyRecordBatch = PyArrowType<RecordBatch>;

/// Content of a row of blocks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BlockRowKind {
    /// Keys, texts and ids; the row names their part once they are spread.
    Part = 0,
    /// Features that are not bucket keys yet.
    Features = 1,
    /// Linked pairs of nodes, 16 bytes each.
    Links = 2,
    /// Repeated texts, in the format of [`ComponentMembers`].
    Repeats = 3,
    /// An id that several rows have.
    RepeatedId = 4,
    /// Nodes of buckets that are too large to compare, 8 bytes each.
    Crowded = 5,
    /// Keys of buckets whose pairs are compared in squares, for a part.
    Split = 6,
    /// Frequencies of features.
    Table = 7,
    /// An id that several rows of the known documents have.
    RepeatedGivenId = 8,
    /// A row that cannot be used: its id and the reason, as JSON.
    Rejected = 9,
    /// Number of documents and bytes of their texts, 8 bytes each.
    Count = 10,
}

/// Bytes of blocks that are buffered before they are returned.
pub(crate) const BUFFERED_BYTES: usize = 16 << 20;

/// Largest number of links or nodes in a row.
const A_ROW: usize = 1 << 16;

/// A pool of one thread, because Spark or Ray decides how much runs in parallel.
static SINGLE_THREAD_POOL: LazyLock<rayon::ThreadPool> = LazyLock::new(|| {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
    pool.expect("a thread can be started")
});

/// Recipe, match options and order of a run.
#[pyclass(
    frozen,
    module = "lookalike._engine",
    name = "Distributed",
    from_py_object
)]
#[derive(Clone)]
pub(crate) struct ShuffleJob {
    setup: Arc<ShuffleSetup>,
    recipe: lookalike::Recipe,
    /// The keys that decide before the id.
    keys: Vec<KeepKey>,
    bounds: MatchBounds,
}

#[pymethods]
impl ShuffleJob {
    /// `id` is the field of the ids; ordering by this field is ordering by id.
    #[new]
    #[pyo3(signature = (recipe, rule, keep, id, within=false, against=false, features=false))]
    fn new(
        recipe: &Recipe,
        rule: RuleSettings,
        keep: &str,
        id: &str,
        within: bool,
        against: bool,
        features: bool,
    ) -> PyResult<Self> {
        let bounds = MatchBounds {
            within,
            against,
            features,
        };
        let keep = parse_keep(keep)
            .map_err(|reason| SettingError::new_err(format!("keep is '{keep}': {reason}")))?;
        let (keys, is_largest_id) = split_keys(&keep, id);
        let largest_values: Vec<bool> = keys
            .iter()
            .map(|key| !matches!(key, KeepKey::Min(_)))
            .collect();
        let first =
            DocumentOrder::new(&largest_values, is_largest_id).map_err(engine_error_to_py)?;
        let setup = ShuffleSetup::new(&recipe.0, rule.match_settings()?, first, bounds)
            .map_err(engine_error_to_py)?;
        Ok(Self {
            setup,
            recipe: recipe.0.clone(),
            keys,
            bounds,
        })
    }

    /// The fields with the values that order documents, in the order in which they decide.
    #[getter]
    fn order_fields(&self) -> Vec<&str> {
        let fields = self.keys.iter().filter_map(|key| match key {
            KeepKey::Min(field) | KeepKey::Max(field) => Some(&**field),
            _ => None,
        });
        fields.collect()
    }

    #[getter]
    fn threshold(&self) -> f64 {
        self.setup.match_plan().threshold().get()
    }
}

/// Returns the keys that decide before the id, and `true` if the largest id is preferred among documents that are equal by
/// them. The id stands for the order of reading. Keys behind it never decide, because ids are unique.
fn split_keys(keep: &KeepOrder, id: &str) -> (Vec<KeepKey>, bool) {
    let mut values = Vec::new();
    for key in keep.keys() {
        match key {
            KeepKey::First => return (values, false),
            KeepKey::Last => return (values, true),
            KeepKey::Min(field) if field == id => return (values, false),
            KeepKey::Max(field) if field == id => return (values, true),
            key => values.push(key.clone()),
        }
    }
    (values, false)
}

/// Returns the weights of kept documents that stand for these numbers of documents, each from 1.
#[pyfunction]
pub(crate) fn copy_weights(copies: Vec<u64>, weight_by: WeightChoice) -> PyResult<Vec<f64>> {
    let rule = weight_by.into_copy_weight()?;
    let weights = copies.into_iter().map(|copies| rule.weight_of(copies));
    Ok(weights.collect())
}

pub(crate) fn input_error(error: arrow_schema::ArrowError) -> PyErr {
    InputError::new_err(error.to_string())
}

pub(crate) fn string_column(batch: &RecordBatch, at: usize) -> PyResult<ArrayRef> {
    let schema = batch.schema();
    let field = schema.field(at);
    match field.data_type() {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Dictionary(..) => {
            if first_malformed(batch.column(at)).is_some() {
                return Err(InputError::new_err(format!(
                    "column '{}' has a string that is not UTF-8",
                    field.name()
                )));
            }
            let strings = to_large_strings(batch.column(at)).map_err(input_error)?;
            Ok(Arc::new(strings))
        }
        other => Err(InputError::new_err(format!(
            "column '{}' is of the type {other}, not strings",
            field.name()
        ))),
    }
}

impl ShuffleJob {
    pub(crate) fn setup(&self) -> &Arc<ShuffleSetup> {
        &self.setup
    }

    pub(crate) fn recipe(&self) -> &lookalike::Recipe {
        &self.recipe
    }

    /// Returns the fields that are read of documents.
    pub(crate) fn read_options(&self) -> TableDocumentReader {
        TableDocumentReader::new(&self.keys, self.bounds)
    }
}

/// Builder of rows of blocks.
#[derive(Default)]
struct BlockRows {
    kinds: Int32Builder,
    parts: Int32Builder,
    blocks: BinaryBuilder,
}

impl BlockRows {
    fn push_block(&mut self, kind: BlockRowKind, part: u32, block: &[u8]) {
        self.kinds.append_value(kind as i32);
        self.parts.append_value(part as i32);
        self.blocks.append_value(block);
    }

    fn push_blocks(&mut self, parcels: Vec<ShuffleBlock>, of_parts: BlockRowKind) {
        for parcel in parcels {
            let kind = match parcel.kind {
                ShuffleBlockKind::Part => of_parts,
                ShuffleBlockKind::Features => BlockRowKind::Features,
            };
            self.push_block(kind, parcel.part, &parcel.block);
        }
    }

    fn into_batch(mut self) -> PyResult<PyRecordBatch> {
        make_batch([
            ("kind", Arc::new(self.kinds.finish()) as ArrayRef),
            ("part", Arc::new(self.parts.finish())),
            ("block", Arc::new(self.blocks.finish())),
        ])
    }
}

pub(crate) fn make_batch<const N: usize>(
    columns: [(&str, ArrayRef); N],
) -> PyResult<PyRecordBatch> {
    let batch = RecordBatch::try_from_iter_with_nullable(
        columns.map(|(name, column)| (name, column, true)),
    );
    batch.map(PyArrowType).map_err(input_error)
}

fn missing_column(name: &str) -> PyErr {
    InputError::new_err(format!(
        "the batch has no column '{name}' of the type that this step needs"
    ))
}

pub(crate) fn typed_column<'b, T: Array + 'static>(
    batch: &'b RecordBatch,
    name: &str,
) -> PyResult<&'b T> {
    let found = batch.column_by_name(name);
    found
        .and_then(|column| column.as_any().downcast_ref())
        .ok_or_else(|| missing_column(name))
}

pub(crate) fn binary_column(batch: &RecordBatch, name: &str) -> PyResult<BinaryArray> {
    let found = batch.column_by_name(name);
    let found = found.ok_or_else(|| missing_column(name))?;
    to_binary(found).map_err(input_error)
}

/// Returns the blocks of a batch.
pub(crate) fn block_column(batch: &RecordBatch) -> PyResult<BinaryArray> {
    binary_column(batch, "block")
}

/// Sketches documents.
#[pyclass(module = "lookalike._engine")]
pub(crate) struct Scatter {
    of: ShuffleJob,
    reading: TableDocumentReader,
    scatter: Scattering,
    order: Option<FeatureOrder>,
    /// Rows that cannot be used, as JSON.
    rejected: Vec<String>,
    /// Number of documents that are not told yet, and bytes of their texts.
    counted: (u64, u64),
    /// `true` if only the features of some documents are collected.
    is_again: bool,
}

#[pymethods]
impl Scatter {
    #[new]
    #[pyo3(signature = (of, crowded=None))]
    fn new(of: ShuffleJob, crowded: Option<&[u8]>) -> Self {
        let setup = of.setup.clone();
        let is_again = crowded.is_some();
        let scatter = match crowded {
            None => Scattering::new(setup),
            Some(nodes) => Scattering::for_dense_nodes(setup, words_from_bytes(nodes)),
        };
        Self {
            scatter,
            order: None,
            reading: of.read_options(),
            rejected: Vec::new(),
            counted: (0, 0),
            is_again,
            of,
        }
    }

    /// Takes a batch of documents, and returns blocks once there are many.
    fn add(&mut self, py: Python<'_>, batch: PyRecordBatch) -> PyResult<Option<PyRecordBatch>> {
        let (reading, scatter) = (&self.reading, &mut self.scatter);
        let (documents, bytes) = (&mut self.counted.0, &mut self.counted.1);
        let bad = py.detach(|| {
            reading.visit_documents(batch.0, &mut |document| {
                scatter.add_document(document);
                *documents += 1;
                *bytes += document.text.len() as u64;
                Ok(())
            })
        })?;
        let told = bad.iter().map(serde_json::to_string);
        let told: Result<Vec<_>, _> = told.collect();
        self.rejected
            .extend(told.map_err(|error| InputError::new_err(error.to_string()))?);
        if self.scatter.pending_bytes() < BUFFERED_BYTES {
            return Ok(None);
        }
        self.finish(py).map(Some)
    }

    fn finish(&mut self, py: Python<'_>) -> PyResult<PyRecordBatch> {
        let (setup, scatter, order) = (&self.of.setup, &mut self.scatter, &mut self.order);
        let taken = py.detach(|| {
            let parcels = scatter.take_blocks();
            let features = parcels
                .iter()
                .filter(|parcel| parcel.kind == ShuffleBlockKind::Features);
            for parcel in features {
                let order = order.get_or_insert_default();
                order.count_features(setup, &parcel.block)?;
            }
            Ok(parcels)
        });
        let mut blocks = BlockRows::default();
        blocks.push_blocks(taken.map_err(engine_error_to_py)?, BlockRowKind::Part);
        for rejected in self.rejected.drain(..) {
            blocks.push_block(BlockRowKind::Rejected, 0, rejected.as_bytes());
        }
        let (documents, bytes) = std::mem::take(&mut self.counted);
        if documents > 0 && !self.is_again {
            let block = [documents.to_le_bytes(), bytes.to_le_bytes()].concat();
            blocks.push_block(BlockRowKind::Count, 0, &block);
        }
        blocks.into_batch()
    }

    /// Returns the frequencies of features in all returned blocks, or None if there were none.
    fn table(&self) -> PyResult<Option<PyRecordBatch>> {
        self.order.as_ref().map(counts_table).transpose()
    }
}

fn counts_table(order: &FeatureOrder) -> PyResult<PyRecordBatch> {
    let mut blocks = BlockRows::default();
    blocks.push_block(BlockRowKind::Table, 0, &order.to_bytes());
    blocks.into_batch()
}

fn words_from_bytes(bytes: &[u8]) -> Vec<u64> {
    let (words, _) = bytes.as_chunks::<8>();
    words.iter().map(|word| u64::from_le_bytes(*word)).collect()
}

/// Adds up the frequencies of features, and turns the rarest into bucket keys.
#[pyclass(module = "lookalike._engine")]
pub(crate) struct Features {
    of: ShuffleJob,
    order: FeatureOrder,
}

#[pymethods]
impl Features {
    #[new]
    #[pyo3(signature = (of, table=None))]
    fn new(of: ShuffleJob, table: Option<&[u8]>) -> PyResult<Self> {
        let order = table
            .map(FeatureOrder::decode_order)
            .transpose()
            .map_err(engine_error_to_py)?;
        let order = order.unwrap_or_default();
        Ok(Self { of, order })
    }

    /// Adds a table of frequencies.
    fn add(&mut self, table: &[u8]) -> PyResult<()> {
        let other = FeatureOrder::decode_order(table).map_err(engine_error_to_py)?;
        self.order = std::mem::take(&mut self.order).merge_counts(&other);
        Ok(())
    }

    /// Returns all frequencies.
    fn table(&self) -> PyResult<PyRecordBatch> {
        counts_table(&self.order)
    }

    /// Returns the blocks of a batch for each of `parts` parts: turns features into keys, and
    /// spreads keys, texts and ids.
    fn keys(&self, py: Python<'_>, batch: PyRecordBatch, parts: u32) -> PyResult<PyRecordBatch> {
        let kinds: &Int32Array = typed_column(&batch.0, "kind")?;
        let setup = &self.of.setup;
        let mut blocks = BlockRows::default();
        for (kind, block) in kinds.iter().zip(&block_column(&batch.0)?) {
            let Some(block) = block else { continue };
            let parcels = py.detach(|| match kind {
                Some(PART) => divide_block(setup, block, parts),
                Some(FEATURES) => self.order.rarest_keys(setup, block, parts),
                _ => Ok(Vec::new()),
            });
            blocks.push_blocks(parcels.map_err(engine_error_to_py)?, BlockRowKind::Part);
        }
        blocks.into_batch()
    }
}

const PART: i32 = BlockRowKind::Part as i32;
const FEATURES: i32 = BlockRowKind::Features as i32;

/// Collects all blocks of some parts.
#[pyclass(module = "lookalike._engine")]
pub(crate) struct Gather {
    gather: Option<Gathering>,
}

#[pymethods]
impl Gather {
    #[new]
    fn new(of: ShuffleJob) -> Self {
        let gather = Some(Gathering::new(of.setup));
        Self { gather }
    }

    fn add(&mut self, py: Python<'_>, batch: PyRecordBatch) -> PyResult<()> {
        let blocks = block_column(&batch.0)?;
        let Some(gather) = &mut self.gather else {
            return Err(step_finished());
        };
        let added = py.detach(|| {
            blocks
                .iter()
                .flatten()
                .try_for_each(|block| gather.add_block(block))
        });
        added.map_err(engine_error_to_py)
    }

    /// Returns the results, with the keys of squares spread over `parts` parts.
    fn finish(&mut self, py: Python<'_>, parts: u32) -> PyResult<PyRecordBatch> {
        let gather = self.gather.take().ok_or_else(step_finished)?;
        let found = py.detach(|| gather.finish_gathering(parts));
        let mut blocks = BlockRows::default();
        for links in found.links.chunks(A_ROW) {
            let bytes =
                |&(a, b): &(TextNode, TextNode)| [a.0.to_le_bytes(), b.0.to_le_bytes()].concat();
            let block: Vec<u8> = links.iter().flat_map(bytes).collect();
            blocks.push_block(BlockRowKind::Links, 0, &block);
        }
        if !found.repeats.is_empty() {
            let members = ComponentMembers::new(&[], found.repeats);
            blocks.push_block(BlockRowKind::Repeats, 0, &members.to_bytes());
        }
        for id in &found.repeated_ids {
            blocks.push_block(BlockRowKind::RepeatedId, 0, id.as_bytes());
        }
        for id in &found.repeated_known_ids {
            blocks.push_block(BlockRowKind::RepeatedGivenId, 0, id.as_bytes());
        }
        for nodes in found.dense_nodes.chunks(A_ROW) {
            let block: Vec<u8> = nodes.iter().flat_map(|node| node.0.to_le_bytes()).collect();
            blocks.push_block(BlockRowKind::Crowded, 0, &block);
        }
        blocks.push_blocks(found.split, BlockRowKind::Split);
        blocks.into_batch()
    }
}

pub(crate) fn step_finished() -> PyErr {
    InputError::new_err("this step is finished: start another one")
}

/// Returns the members of components and the repeated texts, from blocks of links and of repeats.
#[pyfunction]
pub(crate) fn members(
    py: Python<'_>,
    links: Vec<Vec<u8>>,
    repeats: Vec<Vec<u8>>,
) -> PyResult<Vec<u8>> {
    let made = py.detach(|| {
        let pair = |pair: &[u64]| (TextNode(pair[0]), TextNode(pair[1]));
        let links: Vec<_> = links
            .iter()
            .flat_map(|block| {
                words_from_bytes(block)
                    .chunks_exact(2)
                    .map(pair)
                    .collect::<Vec<_>>()
            })
            .collect();
        let mut all = Vec::new();
        for block in &repeats {
            all.extend(ComponentMembers::decode_members(block)?.into_repeats());
        }
        Ok(ComponentMembers::new(&links, all).to_bytes())
    });
    made.map_err(engine_error_to_py)
}

/// Returns the repeated texts of a batch of blocks: node, name, position of the first document, and
/// its id.
#[pyfunction]
pub(crate) fn repeats(of: &ShuffleJob, blocks: PyRecordBatch) -> PyResult<PyRecordBatch> {
    let mut nodes = Int64Builder::new();
    let (mut names, mut firsts) = (BinaryBuilder::new(), BinaryBuilder::new());
    let mut ids = StringBuilder::new();
    for block in block_column(&blocks.0)?.iter().flatten() {
        for RepeatedText { name, first } in ComponentMembers::decode_members(block)
            .map_err(engine_error_to_py)?
            .into_repeats()
        {
            nodes.append_value(name.text_node().0 as i64);
            names.append_value(name.0.to_le_bytes());
            ids.append_value(
                of.setup
                    .id_at_position(&first)
                    .map_err(engine_error_to_py)?,
            );
            firsts.append_value(first);
        }
    }
    make_batch([
        ("node", Arc::new(nodes.finish()) as ArrayRef),
        ("name", Arc::new(names.finish())),
        ("first", Arc::new(firsts.finish())),
        ("kept", Arc::new(ids.finish())),
    ])
}

/// Finds the documents that are in a component or repeat a text.
#[pyclass(module = "lookalike._engine")]
pub(crate) struct Collect {
    reading: TableDocumentReader,
    collect: Collecting,
}

#[pymethods]
impl Collect {
    #[new]
    fn new(of: ShuffleJob, members: &[u8]) -> PyResult<Self> {
        let members = ComponentMembers::decode_members(members).map_err(engine_error_to_py)?;
        Ok(Self {
            reading: of.read_options(),
            collect: Collecting::new(of.setup, Arc::new(members)),
        })
    }

    /// Returns those documents of a batch.
    fn add(&mut self, py: Python<'_>, batch: PyRecordBatch) -> PyResult<PyRecordBatch> {
        let Self { reading, collect } = self;
        let mut collected = CollectedRows::default();
        py.detach(|| {
            reading.visit_documents(batch.0, &mut |document| {
                let role = collect.document_role(document)?;
                collected.push_document(document, &role);
                Ok(())
            })
        })?;
        collected.into_batch()
    }

    /// Returns node, name, position, id, given, part and text of every document that has a name.
    fn names(&mut self, py: Python<'_>, batch: PyRecordBatch) -> PyResult<PyRecordBatch> {
        let Self { reading, collect } = self;
        let mut named = NamedTextRows::default();
        py.detach(|| {
            reading.visit_documents(batch.0, &mut |document| {
                named.push_document(document, collect);
                Ok(())
            })
        })?;
        named.into_batch()
    }
}

/// Builder of rows with the names of their texts.
#[derive(Default)]
struct NamedTextRows {
    nodes: Int64Builder,
    names: BinaryBuilder,
    positions: BinaryBuilder,
    ids: StringBuilder,
    given: BooleanBuilder,
    partitions: Int64Builder,
    texts: StringBuilder,
}

impl NamedTextRows {
    fn push_document(&mut self, document: &ShuffleDocument<'_>, collect: &mut Collecting) {
        let Some(name) = collect.text_name(document) else {
            return;
        };
        self.nodes.append_value(name.text_node().0 as i64);
        self.names.append_value(name.0.to_le_bytes());
        self.positions
            .append_value(collect.document_position(document));
        self.ids.append_value(document.id);
        self.given.append_value(document.is_known);
        self.partitions.append_value(document.partition as i64);
        self.texts.append_value(document.text);
    }

    fn into_batch(mut self) -> PyResult<PyRecordBatch> {
        make_batch([
            ("node", Arc::new(self.nodes.finish()) as ArrayRef),
            ("name", Arc::new(self.names.finish())),
            ("position", Arc::new(self.positions.finish())),
            ("id", Arc::new(self.ids.finish())),
            ("given", Arc::new(self.given.finish())),
            ("of_part", Arc::new(self.partitions.finish())),
            ("text", Arc::new(self.texts.finish())),
        ])
    }
}

/// Builder of rows for [`ComponentResolver`]; rows with `rank` 2 are decided already.
#[derive(Default)]
struct CollectedRows {
    components: Int64Builder,
    ranks: Int32Builder,
    names: BinaryBuilder,
    positions: BinaryBuilder,
    partitions: Int64Builder,
    repeated: BooleanBuilder,
    texts: StringBuilder,
    kept: StringBuilder,
}

const FIRST: i32 = 0;
const REPEAT: i32 = 1;
const DECIDED: i32 = 2;

impl CollectedRows {
    fn push_document(&mut self, document: &ShuffleDocument<'_>, role: &DocumentRole) {
        let ShuffleDocument {
            id,
            text,
            partition,
            ..
        } = *document;
        match role {
            DocumentRole::KeptHere => {}
            DocumentRole::Repeats(kept) => {
                // A decided row can go to any component, so the hash of its id spreads such rows
                // evenly.
                let anywhere = lookalike::value_hash(id.as_bytes());
                self.components.append_value(anywhere as i64);
                self.ranks.append_value(DECIDED);
                self.names.append_null();
                self.positions.append_value(id);
                self.partitions.append_value(0);
                self.repeated.append_value(true);
                self.texts.append_null();
                self.kept.append_value(kept);
            }
            DocumentRole::Member {
                component,
                name,
                position,
                first,
                repeated,
            } => {
                self.components.append_value(*component as i64);
                self.ranks.append_value(if *first { FIRST } else { REPEAT });
                self.names.append_value(name.0.to_le_bytes());
                self.positions.append_value(position);
                self.partitions.append_value(partition as i64);
                self.repeated.append_value(*repeated);
                self.texts.append_option(first.then_some(text));
                self.kept.append_null();
            }
        }
    }

    fn into_batch(mut self) -> PyResult<PyRecordBatch> {
        make_batch([
            ("component", Arc::new(self.components.finish()) as ArrayRef),
            ("rank", Arc::new(self.ranks.finish())),
            ("name", Arc::new(self.names.finish())),
            ("position", Arc::new(self.positions.finish())),
            ("of_part", Arc::new(self.partitions.finish())),
            ("repeated", Arc::new(self.repeated.finish())),
            ("text", Arc::new(self.texts.finish())),
            ("kept", Arc::new(self.kept.finish())),
        ])
    }
}

/// Decides whole components.
#[pyclass(module = "lookalike._engine")]
pub(crate) struct Settle {
    settle: Settling,
    pairs: bool,
    decided: Vec<(String, String)>,
}

#[pymethods]
impl Settle {
    /// `limit` is the largest number of bytes of a component in memory. The texts of a larger one go to a temporary file
    /// in `directory`, or in the one of the system.
    #[new]
    #[pyo3(signature = (of, pairs, limit, directory=None))]
    fn new(of: ShuffleJob, pairs: bool, limit: u64, directory: Option<PathBuf>) -> Self {
        let settle = if pairs {
            Settling::for_pairs(of.setup)
        } else {
            Settling::new(of.setup)
        };
        Self {
            settle: settle
                .with_limit(limit)
                .with_text_spill(TemporaryTexts::spill_to(directory)),
            pairs,
            decided: Vec::new(),
        }
    }

    /// Takes collected rows by component and rank, and returns the results that are known by then.
    fn add(&mut self, py: Python<'_>, batch: PyRecordBatch) -> PyResult<PyRecordBatch> {
        let batch = &batch.0;
        let components: &Int64Array = typed_column(batch, "component")?;
        let ranks: &Int32Array = typed_column(batch, "rank")?;
        let partitions: &Int64Array = typed_column(batch, "of_part")?;
        let repeated: &BooleanArray = typed_column(batch, "repeated")?;
        let (names, positions) = (
            binary_column(batch, "name")?,
            binary_column(batch, "position")?,
        );
        let [texts, kept] = ["text", "kept"].map(|name| {
            let at = batch.schema().index_of(name).map_err(input_error)?;
            string_column(batch, at)
        });
        let (texts, kept) = (texts?, kept?);
        let (texts, kept) = (texts.as_string::<i64>(), kept.as_string::<i64>());
        let settled = py.detach(|| {
            SINGLE_THREAD_POOL.install(|| {
                for row in 0..batch.num_rows() {
                    if ranks.value(row) == DECIDED {
                        let id = String::from_utf8_lossy(positions.value(row)).into_owned();
                        self.decided.push((id, kept.value(row).to_owned()));
                        continue;
                    }
                    let name = names.value(row).try_into().unwrap_or_default();
                    self.settle.add_document(ComponentDocument {
                        component: components.value(row) as u64,
                        name: TextName(u128::from_le_bytes(name)),
                        position: positions.value(row),
                        partition: partitions.value(row) as u64,
                        text: texts.is_valid(row).then(|| texts.value(row)),
                        repeated: repeated.value(row),
                    })?;
                }
                Ok(())
            })
        });
        settled.map_err(engine_error_to_py)?;
        self.take_resolved()
    }

    fn finish(&mut self, py: Python<'_>) -> PyResult<PyRecordBatch> {
        let settle = &mut self.settle;
        let settled = py.detach(|| SINGLE_THREAD_POOL.install(|| settle.resolve_rest()));
        settled.map_err(engine_error_to_py)?;
        self.take_resolved()
    }
}

impl Settle {
    fn take_resolved(&mut self) -> PyResult<PyRecordBatch> {
        if self.pairs {
            return pairs_to_batch(self.settle.take_pairs());
        }
        removed_to_batch(
            self.settle.take_removed(),
            std::mem::take(&mut self.decided),
        )
    }
}

fn removed_to_batch(
    walked: Vec<ShuffleRemoval>,
    decided: Vec<(String, String)>,
) -> PyResult<PyRecordBatch> {
    let (mut ids, mut kept) = (StringBuilder::new(), StringBuilder::new());
    let (mut similarities, mut methods) = (Float64Builder::new(), StringBuilder::new());
    for removed in walked {
        ids.append_value(removed.id);
        kept.append_value(removed.kept);
        similarities.append_value(removed.similarity.get());
        methods.append_value(removed.route.name());
    }
    for (id, of) in decided {
        ids.append_value(id);
        kept.append_value(of);
        similarities.append_value(1.0);
        methods.append_value("exact");
    }
    make_batch([
        ("id", Arc::new(ids.finish()) as ArrayRef),
        ("kept", Arc::new(kept.finish())),
        ("similarity", Arc::new(similarities.finish())),
        ("method", Arc::new(methods.finish())),
    ])
}

fn pairs_to_batch(pairs: Vec<ResolvedPair>) -> PyResult<PyRecordBatch> {
    let (mut a, mut b) = (StringBuilder::new(), StringBuilder::new());
    let mut similarities = Float64Builder::new();
    for pair in pairs {
        a.append_value(pair.a);
        b.append_value(pair.b);
        similarities.append_value(pair.similarity.get());
    }
    make_batch([
        ("a", Arc::new(a.finish()) as ArrayRef),
        ("b", Arc::new(b.finish())),
        ("similarity", Arc::new(similarities.finish())),
    ])
}
