//! Prefilter data: the few bytes of a sketch that are sent with keys and rule out most pairs.

use super::Setup;
use crate::matching::Rule;
use crate::sketches::{Brief, LONG, Reader, Sketches};
use crate::types::DocId;

/// The kind of prefilter data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// None: all documents that share a key are linked.
    Nothing,
    /// Size and parities of a feature set, for documents in the exact join.
    Brief,
    /// Four bits of every slot of a signature, and the set size if the plan has an exact join.
    Slots,
    /// The SimHash fingerprint.
    Code,
}

impl Layout {
    /// Returns the prefilter data that is sent with the keys of a plan's sketches.
    pub(super) fn of_sketches(setup: &Setup) -> Self {
        if setup.plan.bands().is_some() {
            Self::Slots
        } else if setup.plan.distance().is_some() {
            Self::Code
        } else {
            Self::Nothing
        }
    }

    pub(super) fn number(self) -> u8 {
        self as u8
    }

    pub(super) fn from_number(number: u8) -> Option<Self> {
        let all = [Self::Nothing, Self::Brief, Self::Slots, Self::Code];
        all.into_iter().find(|layout| layout.number() == number)
    }
}

const BITS: usize = 4;
const SLOTS_A_WORD: usize = 64 / BITS;
/// Lowest bit of each slot in a word.
const LOWEST: u64 = u64::MAX / 15;

/// Prefilter data of many documents.
#[derive(Clone, Debug)]
pub(super) enum Glances {
    Nothing,
    Briefs(Vec<Brief>),
    Slots {
        sizes: Vec<u32>,
        words: usize,
        bits: Vec<u64>,
    },
    Codes(Vec<u128>),
}

impl Glances {
    pub(super) fn new(layout: Layout, setup: &Setup) -> Self {
        match layout {
            Layout::Nothing => Self::Nothing,
            Layout::Brief => Self::Briefs(Vec::new()),
            Layout::Slots => Self::Slots {
                sizes: Vec::new(),
                words: setup.plan.slots().div_ceil(SLOTS_A_WORD),
                bits: Vec::new(),
            },
            Layout::Code => Self::Codes(Vec::new()),
        }
    }

    pub(super) fn layout(&self) -> Layout {
        match self {
            Self::Nothing => Layout::Nothing,
            Self::Briefs(_) => Layout::Brief,
            Self::Slots { .. } => Layout::Slots,
            Self::Codes(_) => Layout::Code,
        }
    }

    /// Adds a document, which must have the sketches of this layout.
    pub(super) fn push(&mut self, sketches: &Sketches, document: DocId) {
        match self {
            Self::Nothing => {}
            Self::Briefs(briefs) => briefs.push(sketches.brief(document)),
            Self::Slots { sizes, words, bits } => {
                let brief = sketches.brief_of(document);
                sizes.push(brief.map_or(LONG, |brief| brief.size));
                let start = bits.len();
                bits.resize(start + *words, 0);
                let signature = sketches.signature(document).unwrap_or_default();
                for (at, &slot) in signature.iter().enumerate() {
                    let shift = at % SLOTS_A_WORD * BITS;
                    bits[start + at / SLOTS_A_WORD] |= few_bits(slot) << shift;
                }
            }
            Self::Codes(codes) => codes.push(sketches.fingerprint(document).unwrap_or(0)),
        }
    }

    /// Adds a document from other prefilter data of the same layout.
    pub(super) fn copy(&mut self, other: &Self, at: usize) {
        match (self, other) {
            (Self::Briefs(to), Self::Briefs(from)) => to.push(from[at]),
            (
                Self::Slots { sizes, words, bits },
                Self::Slots {
                    sizes: from_sizes,
                    bits: from,
                    ..
                },
            ) => {
                sizes.push(from_sizes[at]);
                bits.extend_from_slice(&from[at * *words..][..*words]);
            }
            (Self::Codes(to), Self::Codes(from)) => to.push(from[at]),
            _ => {}
        }
    }

    pub(super) fn write(&self, into: &mut Vec<u8>) {
        match self {
            Self::Nothing => {}
            Self::Briefs(briefs) => {
                let sizes = briefs.iter().map(|brief| brief.size.to_le_bytes());
                sizes.for_each(|size| into.extend(size));
                let parities = briefs.iter().map(|brief| brief.parities().to_le_bytes());
                parities.for_each(|parities| into.extend(parities));
            }
            Self::Slots { sizes, bits, .. } => {
                sizes
                    .iter()
                    .for_each(|size| into.extend(size.to_le_bytes()));
                bits.iter().for_each(|word| into.extend(word.to_le_bytes()));
            }
            Self::Codes(codes) => codes
                .iter()
                .for_each(|code| into.extend(code.to_le_bytes())),
        }
    }

    /// Reads and appends the data of `count` documents. Returns `None` if there are too few bytes.
    pub(super) fn read(&mut self, reader: &mut Reader<'_>, count: usize) -> Option<()> {
        match self {
            Self::Nothing => {}
            Self::Briefs(briefs) => {
                let sizes = reader.list(count, u32::from_le_bytes)?;
                let parities = reader.list(count, u64::from_le_bytes)?;
                let both = sizes.into_iter().zip(parities);
                briefs.extend(both.map(|(size, parities)| Brief::without_key(size, parities)));
            }
            Self::Slots { sizes, words, bits } => {
                sizes.extend(reader.list(count, u32::from_le_bytes)?);
                bits.extend(reader.list(count.checked_mul(*words)?, u64::from_le_bytes)?);
            }
            Self::Codes(codes) => codes.extend(reader.list(count, u128::from_le_bytes)?),
        }
        Some(())
    }
}

/// Returns a few bits of a slot, each of which depends on the whole slot.
fn few_bits(slot: u32) -> u64 {
    u64::from(slot.wrapping_mul(0x9e37_79b1) >> (32 - BITS))
}

/// Compares prefilter data. Guarantee: two candidates are never ruled out.
pub(super) struct Sight<'s> {
    setup: &'s Setup,
    rule: Rule<'s>,
    /// Number of unused slots in the last word.
    padding: usize,
}

impl<'s> Sight<'s> {
    pub(super) fn new(setup: &'s Setup) -> Self {
        let slots = setup.plan.slots();
        Self {
            setup,
            rule: Rule::new(&setup.plan),
            padding: slots.next_multiple_of(SLOTS_A_WORD) - slots,
        }
    }

    pub(super) fn may_match(&self, glances: &Glances, a: usize, b: usize) -> bool {
        match glances {
            Glances::Nothing => true,
            Glances::Briefs(briefs) => self.rule.joins(briefs[a], briefs[b]).unwrap_or(false),
            Glances::Slots { sizes, words, bits } => {
                let reach = self.setup.plan.join().map_or(0, |join| join.reach);
                let decided_by_the_join = sizes[a].max(sizes[b]) as usize <= reach;
                !decided_by_the_join && {
                    let (a, b) = (&bits[a * words..][..*words], &bits[b * words..][..*words]);
                    self.near(a, b)
                }
            }
            Glances::Codes(codes) => self.within(codes[a], codes[b]),
        }
    }

    /// Returns `true` if enough slots may be equal. Equal slots have equal bits, so at least as many
    /// slots have equal bits as are equal.
    fn near(&self, a: &[u64], b: &[u64]) -> bool {
        let Some(bands) = self.setup.plan.bands() else {
            return true;
        };
        let mut differing = 0;
        for (a, b) in a.iter().zip(b) {
            let bits = a ^ b;
            let bits = bits | bits >> 1;
            differing += ((bits | bits >> 2) & LOWEST).count_ones() as usize;
        }
        a.len() * SLOTS_A_WORD - self.padding - differing >= bands.least_equal
    }

    fn within(&self, a: u128, b: u128) -> bool {
        match (self.setup.plan.blocks(), self.setup.plan.distance()) {
            (Some(blocks), _) => blocks.share(a, b),
            (None, Some(distance)) => (a ^ b).count_ones() <= distance.get(),
            (None, None) => true,
        }
    }
}
