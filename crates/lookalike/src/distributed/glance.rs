//! The few bytes of a sketch that travel with keys, and whether two of them rule a pair out.

use super::Setup;
use crate::matching::Rule;
use crate::sketches::{Brief, LONG, Reader, Sketches};
use crate::types::DocId;

/// What is known of documents at a glance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// Nothing: what shares a key is linked.
    Nothing,
    /// Size and parities of a set of features: what takes part in the exact join.
    Brief,
    /// Four bits of every slot of a signature, and the size where the join wants it.
    Slots,
    /// The fingerprint.
    Code,
}

impl Layout {
    /// What travels with the keys of a plan's sketches.
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
/// The lowest bit of each slot of a word.
const LOWEST: u64 = u64::MAX / 15;

/// Glances of many documents.
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

    /// Adds a document that has what the layout is made of.
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

    /// Adds a document of other glances of the same layout.
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

    /// Appends what was written of `count` documents; None if there is too little.
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

/// A few bits of a slot, each of which depends on all of it.
fn few_bits(slot: u32) -> u64 {
    u64::from(slot.wrapping_mul(0x9e37_79b1) >> (32 - BITS))
}

/// Whether glances leave it open that two documents are candidates: never false for two that are.
pub(super) struct Sight<'s> {
    setup: &'s Setup,
    rule: Rule<'s>,
    /// Slots of the last word that are no slots of the signature.
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

    /// Equal slots have equal bits, so there are at least as many equal bits.
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
