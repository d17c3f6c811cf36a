//! How much is done at a time.

/// The sizes of the portions in which the work is done: time and memory depend on them, results
/// never.
#[derive(Clone, Copy, Debug)]
pub(super) struct Portions {
    /// Keys that are sorted at a time: bounds the memory besides the groups to some tens of MiB, or
    /// to one key a document where that is more.
    pub(super) keys: usize,
    /// Keys of rare features that are sorted at a time for every document, where that is more: each
    /// further portion makes all features again.
    pub(super) rare: usize,
    /// A group of more members than this may be refined by the features of its members.
    pub(super) hot: usize,
    /// Groups of more members are refined if going through them takes more than this many times what
    /// going through those of the rarest features is thought to take.
    pub(super) refining: f64,
    /// A group whose members meet more than this is crowded.
    pub(super) crowd: usize,
    /// How many features might be compared while one finds its place in a bitmap: these are made once
    /// going through groups has cost as much.
    pub(super) price: usize,
    /// A crowd is gone through by its bitmaps instead of by groups if its documents in question are
    /// not more than so many times the members of the groups.
    pub(super) scanned: usize,
    /// Documents in the first block of a walk: until something is kept, every pair of a block may
    /// have to be compared.
    pub(super) first_block: usize,
    /// Documents in the first block where all pairs are asked for: each may be compared with all.
    pub(super) first_pairs: usize,
    /// Documents in a block once the walk is under way: enough to keep all threads busy.
    pub(super) block: usize,
    /// Documents whose crowds are gone through together.
    pub(super) together: usize,
    /// Documents of a block that are decided together: few, so that hardly any are compared with
    /// one that is not kept.
    pub(super) few: usize,
    /// Pairs of candidates that one block holds at the most when all pairs are asked for, unless a
    /// single document has more.
    pub(super) pairs: usize,
    /// Pairs of near fingerprints that are remembered in any case, up to 40 bytes each while groups
    /// are built; where there are more, candidates are found by blocks of bits.
    pub(super) near: usize,
    /// Pairs of near fingerprints that are remembered for every document besides.
    pub(super) neighbours: usize,
    /// Features that are remembered once they were made from the text again, 8 bytes each; of
    /// characters, words and weights as many bytes each where they are asked for.
    pub(super) remembered: usize,
}

impl Default for Portions {
    fn default() -> Self {
        Self {
            keys: 2 << 20,
            rare: 3,
            hot: 512,
            refining: 1.0,
            crowd: 64,
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
