//! The first reading of a run out of core: all threads write sketches, keys and features to temporary files.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use lookalike::shuffle::{
    DocumentOrder, EqualTexts, FeatureBlocks, LocalKeys, LocalScatterer, MatchBounds, ShuffleBlock,
    ShuffleBlockKind, ShuffleSetup,
};
use lookalike::{DocId, DocumentSketches};
use lookalike_io::error::Result;

use crate::memory::run_plan::RunShares;
use crate::run::execution::out_of_core::lock;
use crate::run::reading::document_ids::DocumentIds;
use crate::run::reading::documents::{TextStateCounts, count_state};
use crate::run::settings::RunSettings;
use crate::temporary::part_file::PartFile;

/// The parts of the file of blocks.
pub(super) const KEYS_PART: u32 = 0;
pub(super) const FEATURES_PART: u32 = 1;

/// Number of parts among which the names of texts are divided while they are read.
const TEXT_PARTS: u32 = 64;

/// Returns the setup of the engine's shuffle for a run.
///
/// # Errors
/// If there is no match plan for the settings.
pub(in crate::run) fn shuffle_setup(settings: &RunSettings) -> Result<Arc<ShuffleSetup>> {
    let bounds = MatchBounds {
        within: settings.within.is_some(),
        ..MatchBounds::default()
    };
    let setup = ShuffleSetup::new(
        &settings.recipe,
        settings.matching,
        DocumentOrder::SMALLEST_ID,
        bounds,
    );
    Ok(setup?)
}

/// Keys, features and names of texts that a thread has made of a block of the inputs.
#[derive(Default)]
pub(in crate::run) struct ScatteredBlock {
    /// Keys and features.
    pub(in crate::run) blocks: Vec<ShuffleBlock>,
    /// Names of texts, for [`EqualTexts::append_names`].
    pub(in crate::run) texts: Vec<u8>,
}

/// Temporary files of the sketches, keys, features and names of texts that were read so far.
pub(in crate::run) struct SpillFiles {
    pub(super) setup: Arc<ShuffleSetup>,
    pub(super) shares: RunShares,
    pub(super) directory: Option<PathBuf>,
    pub(super) keys: LocalKeys,
    /// Keys and features, as the scatterers made them.
    pub(super) blocks: PartFile,
    /// Names of texts.
    pub(super) texts: PartFile,
    /// Bytes of blocks that were removed.
    pub(super) released: u64,
    /// Sketches in the order of the documents. Each block begins with the number of its documents.
    pub(super) sketches: PartFile,
    /// Text states of the new documents.
    states: Mutex<TextStateCounts>,
    /// Number of these documents that are of a form.
    documents_of_forms: AtomicU64,
}

impl SpillFiles {
    /// Begins a reading, with the directory of its temporary files.
    ///
    /// # Errors
    /// If temporary files cannot be created.
    pub(in crate::run) fn begin_reading(
        setup: Arc<ShuffleSetup>,
        shares: RunShares,
        directory: Option<PathBuf>,
    ) -> Result<Self> {
        let keys = LocalKeys::new(
            setup.clone(),
            shares.documents,
            shares.keys,
            shares.filter_bytes,
        );
        Ok(Self {
            keys,
            blocks: PartFile::with_single_blocks(directory.as_deref(), 2)?,
            texts: PartFile::create_file(directory.as_deref(), TEXT_PARTS, shares.buffered_bytes)?,
            sketches: PartFile::with_single_blocks(directory.as_deref(), 1)?,
            states: Mutex::default(),
            documents_of_forms: AtomicU64::new(0),
            released: 0,
            setup,
            shares,
            directory,
        })
    }

    /// Returns an empty list of ids, which go to a temporary file.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub(in crate::run) fn new_ids(&self) -> Result<DocumentIds> {
        DocumentIds::in_file(self.directory.as_deref())
    }

    /// Returns a step that collects the keys of documents, for one thread.
    pub(in crate::run) fn new_scatterer(&self) -> LocalScatterer {
        LocalScatterer::new(self.setup.clone())
    }

    /// Takes the keys, features and names of a thread from a block of the inputs, and counts them.
    pub(in crate::run) fn take_scattered(&self, scatterer: &mut LocalScatterer) -> ScatteredBlock {
        ScatteredBlock {
            blocks: scatterer.take_blocks(&self.keys),
            texts: scatterer.take_texts().divide_names(1).swap_remove(0),
        }
    }

    /// Counts the keys and features of a block that an earlier run has made.
    ///
    /// # Errors
    /// If a block is damaged.
    pub(in crate::run) fn count_scattered(&self, scattered: &ScatteredBlock) -> Result<()> {
        let mut blocks = scattered.blocks.iter();
        blocks.try_for_each(|block| Ok(self.keys.count_block(&block.block)?))
    }

    /// Writes keys, features and names of texts of a block of the inputs, in any order. `of_block` is `true` for new
    /// documents, with the number of the block. Blocks are read in the order of these, so that keys are chosen alike in
    /// every run over the same inputs.
    ///
    /// # Errors
    /// If they cannot be written, or if names are truncated.
    pub(in crate::run) fn push_scattered(
        &self,
        of_block: (bool, u64),
        scattered: &ScatteredBlock,
    ) -> Result<()> {
        let (is_new, ordinal) = of_block;
        let order = u64::from(is_new) << 63 | ordinal;
        for block in &scattered.blocks {
            let part = match block.kind {
                ShuffleBlockKind::Part => KEYS_PART,
                ShuffleBlockKind::Features => FEATURES_PART,
            };
            self.blocks.push_ordered_block(part, order, &block.block)?;
        }
        let mut texts = EqualTexts::default();
        texts.append_names(&scattered.texts)?;
        let divided = (0..).zip(texts.divide_names(TEXT_PARTS));
        let mut filled = divided.filter(|(_, names)| !names.is_empty());
        filled.try_for_each(|(part, names)| self.texts.push_block(part, &names))
    }

    /// Returns sketches as bytes for [`push_sketches`](Self::push_sketches).
    pub(in crate::run) fn encode_sketches(&self, sketches: &DocumentSketches) -> Vec<u8> {
        let mut bytes = (sketches.len() as u32).to_le_bytes().to_vec();
        let sketcher = self.setup.document_sketcher();
        sketcher.encode_columns(sketches, true, &mut bytes);
        bytes
    }

    /// Writes pending blocks, so that all blocks can be read.
    ///
    /// # Errors
    /// If a temporary file cannot be written.
    pub(super) fn finish_writing(&self) -> Result<()> {
        self.blocks.finish_writing()?;
        self.texts.finish_writing()?;
        self.sketches.finish_writing()
    }

    /// Chooses the keys of rare features, once everything is written.
    ///
    /// # Errors
    /// If a temporary file cannot be read.
    pub(super) fn choose_keys(&mut self) -> Result<()> {
        Ok(self.keys.choose_keys(&FeatureFile(&self.blocks))?)
    }

    /// Writes the sketches of the next documents.
    ///
    /// # Errors
    /// If they cannot be written.
    pub(in crate::run) fn push_sketches(&self, encoded: &[u8]) -> Result<()> {
        self.sketches.push_block(0, encoded)
    }

    /// Refuses rows that take more memory than the limit leaves for them.
    ///
    /// # Errors
    /// As [`RunShares::check_rows`].
    pub(in crate::run) fn check_rows(&self, documents: usize, bytes: u64) -> Result<()> {
        self.shares.check_rows(documents, bytes)
    }

    /// Adjusts the shares to the rows, once all are read.
    pub(in crate::run) fn note_rows(&mut self, documents: usize, bytes: u64) {
        self.shares = self.shares.beside_rows(documents, bytes);
    }

    /// Counts the text states of documents to decide about, and those of a form.
    pub(in crate::run) fn count_states(&self, sketches: &DocumentSketches) {
        let mut states = lock(&self.states);
        for at in 0..sketches.len() as u32 {
            count_state(&mut states, sketches.text_state(DocId(at)));
        }
        let documents = (0..sketches.len() as u32).map(DocId);
        let of_forms = documents.filter(|&document| sketches.form_id(document).is_some());
        let of_forms = of_forms.count() as u64;
        self.documents_of_forms
            .fetch_add(of_forms, Ordering::Relaxed);
    }

    /// Returns all bytes that were written to temporary files.
    pub(in crate::run) fn written_bytes(&self) -> u64 {
        self.blocks.written_bytes() + self.sketches.written_bytes() + self.texts.written_bytes()
    }

    /// Removes keys and features, once documents are linked.
    ///
    /// # Errors
    /// If no temporary file can be created.
    pub(in crate::run) fn release_blocks(&mut self) -> Result<()> {
        self.keys = LocalKeys::new(self.setup.clone(), 0, 0, 0);
        self.released += self.blocks.written_bytes();
        self.blocks = PartFile::with_single_blocks(self.directory.as_deref(), 2)?;
        Ok(())
    }

    /// Returns the text states of the documents to decide about.
    pub(in crate::run) fn text_states(&self) -> TextStateCounts {
        *lock(&self.states)
    }

    /// Returns the number of documents to decide about that are of a form.
    pub(in crate::run) fn documents_of_forms(&self) -> u64 {
        self.documents_of_forms.load(Ordering::Relaxed)
    }
}

/// The features in a file of blocks.
struct FeatureFile<'a>(&'a PartFile);

impl FeatureBlocks for FeatureFile<'_> {
    fn block_count(&self) -> usize {
        self.0.extent_count(FEATURES_PART)
    }

    fn read_block(&self, at: usize) -> lookalike::Result<Vec<u8>> {
        let mut read = Vec::new();
        let visited = self.0.visit_extent(FEATURES_PART, at, |block| {
            read.extend_from_slice(block);
            Ok(())
        });
        visited.map_err(lookalike::Error::text_error)?;
        Ok(read)
    }
}
