//! Batch sizes.

/// Batch sizes and limits of the engine's work. They determine time and memory, and never a result.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BatchSizes {
    /// Bucket keys that are sorted at a time. Bounds the memory besides the buckets to some tens of
    /// MiB, or to one key for each document where that is more.
    pub(crate) keys: usize,
    /// Keys of rare features that are sorted at a time for each document, where that is more than
    /// `keys`. Each further batch makes all features again.
    pub(crate) rare: usize,
    /// Numbers of documents with a key, above which the key may be called crowded and get a further feature.
    pub(crate) crowded_keys: &'static [u32],
    /// Time to make, sort and store a key of rare features, relative to that of looking at a document that has
    /// it. `None` combines the features of crowded keys whatever it costs.
    pub(crate) key_cost: Option<f64>,
    /// Members above which a bucket may be refined, that is, replaced by buckets of its members' rarest
    /// features.
    pub(crate) crowded: usize,
    /// Large buckets are refined if scanning them costs more than this many times the estimated cost of
    /// scanning the buckets of the rarest features.
    pub(crate) refining: f64,
    /// A bucket is dense if its members have more candidates in it than this.
    pub(crate) dense_above: usize,
    /// Features that can be compared in the time in which one feature is placed in a bitmap. Bitmaps
    /// are made once scanning buckets has cost as much as making them.
    pub(crate) price: usize,
    /// A dense set is scanned by its bitmaps instead of by its buckets if the documents to scan are at
    /// most this many times the members of the buckets.
    pub(crate) scanned: usize,
    /// Documents in the first block of a deduplication. It is small because nothing is kept yet, so
    /// every pair of the block may have to be compared.
    pub(crate) first_block: usize,
    /// Documents in the first block of a search for all pairs. It is small because each document may be
    /// compared with all others.
    pub(crate) first_pairs: usize,
    /// Documents in all later blocks of a deduplication: enough to keep all threads busy.
    pub(crate) block: usize,
    /// Documents whose dense sets are scanned together.
    pub(crate) together: usize,
    /// Documents of a block that are decided together. They are few, so that hardly any document is
    /// compared with one that turns out not to be kept.
    pub(crate) few: usize,
    /// Largest number of candidate pairs in one block of a search for all pairs, unless a single
    /// document has more.
    pub(crate) pairs: usize,
    /// Pairs of near fingerprints that are always remembered, up to 40 bytes each while buckets are
    /// built. If there are more, candidates are found by blocks of bits instead.
    pub(crate) near: usize,
    /// Pairs of near fingerprints that may be remembered for each document in addition to `near`.
    pub(crate) neighbours: usize,
    /// Features that are remembered after they were made again from a text, 8 bytes each. Characters,
    /// words and weights have as many bytes each where the measure needs them.
    pub(crate) remembered: usize,
}

impl Default for BatchSizes {
    fn default() -> Self {
        Self {
            keys: 2 << 20,
            rare: 6,
            crowded_keys: &[8, 16, 32, 64],
            key_cost: Some(3.0),
            crowded: 512,
            refining: 1.0,
            dense_above: 64,
            price: 16,
            scanned: 1,
            first_block: 32,
            first_pairs: 8,
            block: 2048,
            together: 16,
            few: 64,
            pairs: 4 << 20,
            near: 1 << 20,
            neighbours: 4,
            remembered: 8 << 20,
        }
    }
}
