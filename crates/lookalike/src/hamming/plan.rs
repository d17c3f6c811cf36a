//! Plans: the tables that find every fingerprint within a distance, and the predicted cost of a
//! look-up.
//!
//! A plan cuts fingerprints into blocks and gives each table a condition on them. A table *sees* a
//! pair of fingerprints that meets its condition. There are two shapes:
//!
//! - [`PlanShape::Blocks`]: one table per block, with a radius r. Complete iff Σ(r + 1) ≥ k + 1,
//!   because two fingerprints that differ in more than r bits of every block differ in at least
//!   Σ(r + 1) > k bits (the general pigeonhole principle; Norouzi, Punjani and Fleet 2012, with free radii Qin et al.
//!   2018). For
//!   example, the four 16-bit blocks of the classic index for k = 3 are `16,16,16,16; 0,0,0,0`.
//! - [`PlanShape::Combinations`]: one table per choice of some of the blocks, all of which must be
//!   equal. Complete iff at least k blocks are left out, because k differing bits lie in at most k
//!   blocks (Manku, Jain and Das Sarma 2007, whose permuted sorted tables put the chosen blocks
//!   first by a permutation π and compare the leading p bits; here the chosen bits are the key).
//!
//! A scan is the plan with one table that sees every pair.
//!
//! [`PlanShape::Neighbourhoods`] is the opposite trade, for small indexes only: the neighbourhood of every
//! stored fingerprint is stored too, so that a look-up visits one bucket. See
//! [`MOST_NEIGHBOURHOODS`].
//!
//! Costs are predicted for evenly distributed fingerprints from the measured cost of a cache line.
//! A prediction is a lower bound, because real fingerprints are skewed.

use std::fmt;

use super::fingerprint_code::low_bits_mask;
use super::key::{BlockKey, CoveringCode, MOST_SEGMENTS};
use super::segment::FingerprintLayout;
use crate::error::{Error, Result};
use crate::types::Distance;

/// The data that an index is planned for, and its limits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlanRequest {
    /// Number of fingerprints.
    pub count: u64,
    /// Bits of a fingerprint, 8–128.
    pub bits: u32,
    /// Largest distance that queries may use.
    pub distance: Distance,
    /// Largest size of the index in bytes. `None` stands for three times the size of the bare
    /// fingerprints or 64 MiB, whichever is larger; if no plan is so small, the smallest plan is
    /// allowed.
    pub memory: Option<u64>,
}

/// Default size limit of an index, as a multiple of its bare fingerprints. For example, ten
/// permuted tables are predicted to be faster but take eight times the size, and they are slower
/// when their file is mapped with small pages.
const DEFAULT_SIZE_RATIO: f64 = 3.0;

/// Size in bytes that an index may always take by default.
const ALWAYS_ALLOWED_BYTES: f64 = (64 << 20) as f64;

/// Largest distance that a plan supports.
pub const MOST_DISTANCE: u32 = 16;

/// The blocks that fingerprints are cut into, and the condition of every table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlanShape {
    /// One table per block.
    Blocks {
        /// Bits of each block, from the lowest bit on.
        widths: Vec<u32>,
        /// Number of bits in which each block may differ.
        radii: Vec<u32>,
    },
    /// One table per choice of `chosen` blocks, which must be equal.
    Combinations {
        /// Bits of each block, from the lowest bit on.
        widths: Vec<u32>,
        /// Number of blocks per table.
        chosen: u32,
    },
    /// A scan, and a table in which every fingerprint is stored under all keys within the distance of its
    /// own. The key is the upper bits of the fingerprint.
    Neighbourhoods,
}

/// Arrangement of the words of a bucket in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BucketLayout {
    /// One cache line per bucket, with an overflow: fastest.
    Lines,
    /// Buckets one after another, with a directory: smallest.
    Packed,
}

/// The tables that find every fingerprint within a distance.
///
/// ```
/// use lookalike::Distance;
/// use lookalike::hamming::{HammingPlan, PlanRequest};
///
/// let distance = Distance::new(3, 64)?;
/// let request = PlanRequest { count: 1_000_000, bits: 64, distance, memory: None };
/// let blocks = HammingPlan::from_name("blocks", &request)?;
/// assert_eq!(blocks.plan_shape().to_string(), "16,16,16,16; 0,0,0,0");
/// // The chosen plan is predicted to be the fastest within the memory, up to a tenth.
/// let chosen = HammingPlan::choose_plan(&request)?;
/// println!("{}: {:.0} bytes", chosen.plan_shape(), chosen.predict_cost(request.count).bytes);
/// # Ok::<_, lookalike::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HammingPlan {
    bits: u32,
    distance: Distance,
    shape: PlanShape,
    layout: BucketLayout,
    key_bits: u32,
    tables: Vec<PlanTable>,
}

/// One table of a plan: the bits that it compares and the key of its buckets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PlanTable {
    /// Bits that the table compares.
    pub(crate) mask: u128,
    /// Number of these bits in which it lets fingerprints differ.
    pub(crate) radius: u32,
    pub(crate) key: BlockKey,
}

/// Predicted cost of a look-up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CostPrediction {
    /// Buckets visited.
    pub probes: f64,
    /// Fingerprints in these buckets.
    pub candidates: f64,
    /// Fingerprints whose remaining bits must be fetched.
    pub survivors: f64,
    /// Bytes of the whole index.
    pub bytes: f64,
    /// Nanoseconds of one look-up among many, on one thread. The cost of matches is not included.
    /// It grows with the number of tables that see a match, which is most of them with
    /// combinations.
    pub nanoseconds: f64,
}

/// One table of permuted fingerprints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TablePermutation {
    /// π: the blocks in the order of the table, counted from the lowest bits.
    pub order: Vec<u32>,
    /// Number of blocks at the front of the order that must be equal.
    pub leading: u32,
    /// p: number of bits in these blocks.
    pub leading_bits: u32,
}

/// Largest number of bits of a bucket number.
pub(crate) const MOST_KEY_BITS: u32 = 26;

/// Largest number of fingerprints whose neighbourhoods are stored. At 64 bits and distance 3, a fingerprint
/// has 43,745 neighbours; the 20 upper bits of these have 1,351 values, which take 5 kB.
pub const MOST_NEIGHBOURHOODS: u64 = 10_000;

/// Largest number of bits of the keys under which neighbourhoods are stored.
const NEIGHBOURHOOD_KEY_BITS: u32 = 20;

/// Default size limit of stored neighbourhoods in bytes. Keys are shortened until they fit.
const NEIGHBOURHOOD_BYTES: f64 = (256u64 << 20) as f64;

/// Name of the plan with stored neighbourhoods.
const NEIGHBOURHOODS_NAME: &str = "neighbourhoods";

/// Largest number of buckets of one table that a look-up may visit.
const MOST_PROBES: f64 = 20_000.0;

/// Predicted times whose ratio is at most this count as equal.
const TIED_TIME_RATIO: f64 = 1.1;

/// Largest average number of entries per cache line; with more, too many buckets overflow.
const LINE_LOAD: f64 = 12.0;

impl PlanRequest {
    /// Returns the default size limit in bytes.
    fn comfortable(&self) -> f64 {
        let bare = self.count as f64 * f64::from(self.bits) / 8.0;
        (DEFAULT_SIZE_RATIO * bare).max(ALWAYS_ALLOWED_BYTES)
    }
}

impl HammingPlan {
    /// Chooses the plan with the lowest predicted time within the memory of the request, or a
    /// smaller plan that takes up to a tenth longer.
    ///
    /// # Errors
    /// Returns an error if the bits are not 8–128, if the distance is above [`MOST_DISTANCE`] or
    /// not below the bits, or if no plan fits the memory.
    pub fn choose_plan(request: &PlanRequest) -> Result<Self> {
        let plans = Self::all_plans(request)?;
        let bytes = |plan: &Self| plan.predict_cost(request.count).bytes;
        let smallest = plans.iter().map(bytes).fold(f64::INFINITY, f64::min);
        let memory = request.memory.map_or_else(
            || request.comfortable().max(smallest),
            |memory| memory as f64,
        );
        let fitting = plans.into_iter().filter(|plan| bytes(plan) <= memory);
        Self::best_of(fitting, request.count).ok_or_else(|| {
            Error::setting_error(format!(
                "{} fingerprints of {} bits take at least {smallest:.0} bytes, which is above the \
                 limit of {memory:.0} for the index: allow a larger index (--index-memory) or split it",
                request.count, request.bits
            ))
        })
    }

    /// Returns the smallest of the plans whose predicted time is within a tenth of the lowest,
    /// because predictions cannot tell such times apart. `None` if there are no plans.
    pub fn best_of(plans: impl IntoIterator<Item = Self>, count: u64) -> Option<Self> {
        let costs = plans.into_iter().map(|plan| {
            let cost = plan.predict_cost(count);
            (plan, cost)
        });
        let costs: Vec<_> = costs.collect();
        let times = costs.iter().map(|(_, cost)| cost.nanoseconds);
        let fastest = times.fold(f64::INFINITY, f64::min);
        costs
            .into_iter()
            .filter(|(_, cost)| cost.nanoseconds <= TIED_TIME_RATIO * fastest)
            .min_by(|(_, a), (_, b)| a.bytes.total_cmp(&b.bytes))
            .map(|(plan, _)| plan)
    }

    /// Returns all plans that [`choose_plan`](Self::choose_plan) considers.
    ///
    /// # Errors
    /// Returns an error if the bits are not 8–128, or if the distance is above [`MOST_DISTANCE`] or
    /// not below the bits.
    pub fn all_plans(request: &PlanRequest) -> Result<Vec<Self>> {
        check_request(request)?;
        let (bits, distance) = (request.bits, request.distance.get());
        let mut shapes = vec![scan_shape()];
        for blocks in 1..=(distance + 1).min(bits / 4).max(1) {
            shapes.push(block_shape(bits, distance, blocks));
        }
        // With one extra block, combinations equal the shape of k + 1 blocks.
        for extra in 2..=3 {
            let blocks = distance + extra;
            let tables = binomial(blocks, extra);
            if distance > 0 && blocks <= bits / 4 && tables <= 24 {
                shapes.push(combination_shape(bits, distance, blocks));
            }
        }
        let mut plans = Vec::new();
        for shape in shapes {
            for layout in [BucketLayout::Lines, BucketLayout::Packed] {
                plans.push(Self::with_fitting_keys(request, shape.clone(), layout)?);
            }
        }
        // A scan costs no more than this many visits.
        plans.retain(|plan| {
            plan.tables
                .iter()
                .all(|table| table.expected_probes() <= MOST_PROBES)
        });
        Ok(plans)
    }

    /// Returns the plan of a name or of a [shape](PlanShape). The names are `auto`, `scan`, `blocks`
    /// (distance + 1 equal blocks; `4x16` is the same for 64 bits and distance 3), `permuted`
    /// (all choices of two blocks out of distance + 2) and `neighbourhoods` (stored neighbourhoods, for
    /// at most [`MOST_NEIGHBOURHOODS`] fingerprints).
    ///
    /// A shape is written as it is displayed: the widths of the blocks from the lowest bit on, and after
    /// a semicolon the number of bits in which each block may differ or the number of blocks that must
    /// be equal, for example `32,32; 1,1` or `13,13,13,13,12; any 2 equal_blocks_table`. Widths alone
    /// get the smallest radii that miss nothing.
    ///
    /// # Errors
    /// Returns an error if there is no such name or shape, if the plan does not fit the request or
    /// would miss pairs, or in the cases of [`choose_plan`](Self::choose_plan).
    pub fn from_name(name: &str, request: &PlanRequest) -> Result<Self> {
        check_request(request)?;
        let (bits, distance) = (request.bits, request.distance.get());
        let shape = match name {
            "auto" => return Self::choose_plan(request),
            "scan" => scan_shape(),
            "blocks" => block_shape(bits, distance, distance + 1),
            "4x16" if bits == 64 && distance <= 3 => block_shape(64, 3, 4),
            "4x16" => {
                return Err(Error::setting_error(format!(
                    "the plan 4x16 is for 64 bits and a distance of at most 3, not for {bits} bits \
                     and {distance}: use `blocks`"
                )));
            }
            "permuted" => combination_shape(bits, distance, distance + 2),
            NEIGHBOURHOODS_NAME => return Self::with_neighbourhoods(request),
            _ => PlanShape::parse_shape(name, distance).ok_or_else(|| {
                Error::setting_error(format!(
                    "there is no plan `{name}`: give auto, blocks, 4x16, permuted, neighbourhoods or \
                     scan, or widths of blocks such as `22,21,21`, followed by the bits that may differ in \
                     each, as in `22,21,21; 1,0,0` or `13,13,13,13,12; any 2 equal`"
                ))
            })?,
        };
        let fits = |plan: &Self| {
            let bytes = plan.predict_cost(request.count).bytes;
            request.memory.is_none_or(|memory| bytes <= memory as f64)
        };
        let lines = Self::with_fitting_keys(request, shape.clone(), BucketLayout::Lines)?;
        let packed = Self::with_fitting_keys(request, shape, BucketLayout::Packed)?;
        let faster = |a: &Self, b: &Self| {
            let time = |plan: &Self| plan.predict_cost(request.count).nanoseconds;
            time(a) <= time(b)
        };
        Ok(if fits(&lines) && faster(&lines, &packed) {
            lines
        } else {
            packed
        })
    }

    /// Checks that an index may hold this many fingerprints by the plan of a name.
    ///
    /// # Errors
    /// Returns an error if the plan stores neighbourhoods and there are more than
    /// [`MOST_NEIGHBOURHOODS`] fingerprints.
    pub fn check_count(name: &str, count: u64) -> Result<()> {
        if name != NEIGHBOURHOODS_NAME || count <= MOST_NEIGHBOURHOODS {
            return Ok(());
        }
        Err(Error::setting_error(format!(
            "the plan {NEIGHBOURHOODS_NAME} is for at most {MOST_NEIGHBOURHOODS} fingerprints, and there are \
             {count}: use the plan auto, which finds the same ones"
        )))
    }

    /// Creates the plan with stored neighbourhoods, with the longest keys that fit the memory.
    fn with_neighbourhoods(request: &PlanRequest) -> Result<Self> {
        Self::check_count(NEIGHBOURHOODS_NAME, request.count)?;
        let most = request
            .memory
            .map_or(NEIGHBOURHOOD_BYTES, |memory| memory as f64);
        let plan = |key_bits| {
            let (bits, distance) = (request.bits, request.distance);
            let shape = PlanShape::Neighbourhoods;
            Self::new(bits, distance, shape, BucketLayout::Packed, key_bits)
        };
        let longest = NEIGHBOURHOOD_KEY_BITS.min(request.bits);
        for key_bits in (1..=longest).rev() {
            let plan = plan(key_bits)?;
            if plan.predict_cost(request.count).bytes <= most {
                return Ok(plan);
            }
        }
        plan(0)
    }

    /// Creates a plan with the number of buckets that suits the request.
    fn with_fitting_keys(
        request: &PlanRequest,
        shape: PlanShape,
        layout: BucketLayout,
    ) -> Result<Self> {
        let load = request.count.max(1) as f64 / LINE_LOAD;
        let key_bits = (load.log2().ceil().max(0.0) as u32).min(MOST_KEY_BITS);
        // The code of two codewords has 22 bits. It is kept for a tenth more fingerprints, on
        // fuller lines, because a 23rd bit costs one more visit and a directory twice as long.
        let key_bits = if key_bits == 23 && load < f64::from(1 << 22) * 1.1 {
            22
        } else {
            key_bits
        };
        Self::new(request.bits, request.distance, shape, layout, key_bits)
    }

    /// Creates a plan from its parts. A table has at most 2^`key_bits` buckets.
    ///
    /// # Errors
    /// Returns an error if the plan would miss pairs, or if a part is out of its range.
    pub(crate) fn new(
        bits: u32,
        distance: Distance,
        shape: PlanShape,
        layout: BucketLayout,
        key_bits: u32,
    ) -> Result<Self> {
        shape.check_shape(bits, distance.get())?;
        if key_bits > MOST_KEY_BITS {
            return Err(Error::setting_error(format!(
                "2^{key_bits} buckets are more than 2^{MOST_KEY_BITS}"
            )));
        }
        let tables = match &shape {
            PlanShape::Neighbourhoods if layout == BucketLayout::Lines => {
                return Err(Error::setting_error(
                    "stored neighbourhoods have packed buckets, not lines",
                ));
            }
            PlanShape::Neighbourhoods => {
                vec![PlanTable::block_table(0, 0, MOST_DISTANCE, key_bits)]
            }
            PlanShape::Blocks { widths, radii } => block_starts(widths)
                .zip(widths.iter().zip(radii))
                .map(|(start, (&width, &radius))| {
                    PlanTable::block_table(start, width, radius, key_bits)
                })
                .collect(),
            PlanShape::Combinations { widths, chosen } => {
                let blocks: Vec<_> = block_starts(widths).zip(widths.iter().copied()).collect();
                block_subsets(blocks.len() as u32, *chosen)
                    .map(|subset| {
                        let taken = blocks.iter().enumerate();
                        let taken = taken.filter(|(at, _)| subset >> at & 1 == 1);
                        PlanTable::equal_blocks_table(taken.map(|(_, &block)| block), key_bits)
                    })
                    .collect()
            }
        };
        Ok(Self {
            bits,
            distance,
            shape,
            layout,
            key_bits,
            tables,
        })
    }

    /// Returns the bits of a fingerprint.
    pub fn fingerprint_bits(&self) -> u32 {
        self.bits
    }

    /// Returns the largest distance that queries may use.
    pub fn distance(&self) -> Distance {
        self.distance
    }

    /// Returns the blocks and the condition of every table.
    pub fn plan_shape(&self) -> &PlanShape {
        &self.shape
    }

    /// Returns the arrangement of buckets in memory.
    pub fn bucket_layout(&self) -> BucketLayout {
        self.layout
    }

    pub(crate) fn key_bits(&self) -> u32 {
        self.key_bits
    }

    /// Returns the permuted tables (Manku, Jain and Das Sarma 2007) of a plan whose tables require
    /// equal blocks; empty for other plans.
    pub fn permutations(&self) -> Vec<TablePermutation> {
        let (widths, chosen) = match &self.shape {
            PlanShape::Combinations { widths, chosen } => (widths, *chosen),
            PlanShape::Blocks { widths, radii } if radii.iter().all(|&radius| radius == 0) => {
                (widths, 1)
            }
            PlanShape::Blocks { .. } | PlanShape::Neighbourhoods => return Vec::new(),
        };
        let blocks = widths.len() as u32;
        block_subsets(blocks, chosen)
            .map(|subset| {
                let first = |block: &u32| subset >> block & 1 == 1;
                let (leading, behind): (Vec<u32>, Vec<u32>) = (0..blocks).partition(first);
                let leading_bits = leading.iter().map(|&block| widths[block as usize]).sum();
                TablePermutation {
                    order: [leading, behind].concat(),
                    leading: chosen,
                    leading_bits,
                }
            })
            .collect()
    }

    pub(crate) fn plan_tables(&self) -> &[PlanTable] {
        &self.tables
    }

    /// Returns the key under which neighbourhoods are stored, if the plan stores them.
    pub(crate) fn neighbourhood_key(&self) -> Option<BlockKey> {
        let key = || BlockKey::direct_key(&[(0, self.bits)], self.key_bits);
        (self.shape == PlanShape::Neighbourhoods).then(key)
    }

    /// Returns the number of tables in memory and in a file.
    pub(crate) fn stored_tables(&self) -> usize {
        self.tables.len() + usize::from(self.neighbourhood_key().is_some())
    }

    /// Predicts the cost of a look-up by stored neighbourhoods.
    fn predict_neighbourhood_cost(&self, key: BlockKey, count: f64) -> CostPrediction {
        let (buckets, stored) = (
            key.bucket_count() as f64,
            ball_volume(key.bucket_bits(), self.distance.get()),
        );
        let candidates = count * stored / buckets;
        // The scan has a word, a row and a rest of every fingerprint.
        let fingerprints = count * (8.0 + self.rest_bytes() as f64);
        let table = 4.0 * (count * stored + buckets + 1.0);
        CostPrediction {
            probes: 1.0,
            candidates,
            survivors: candidates,
            bytes: fingerprints + table,
            nanoseconds: 40.0
                + 2.0 * line_nanoseconds(table)
                + candidates * line_nanoseconds(fingerprints),
        }
    }

    /// Predicts the cost of a look-up among `count` evenly distributed fingerprints.
    pub fn predict_cost(&self, count: u64) -> CostPrediction {
        let count = count as f64;
        if let Some(key) = self.neighbourhood_key() {
            return self.predict_neighbourhood_cost(key, count);
        }
        let mut total = CostPrediction {
            probes: 0.0,
            candidates: 0.0,
            survivors: 0.0,
            bytes: count * (4.0 + self.rest_bytes() as f64),
            nanoseconds: 40.0,
        };
        // Fraction of the fingerprints of a bucket whose 32-bit word is within the distance by
        // chance.
        let passing = ball_volume(32, self.distance.get()) / 2f64.powi(32);
        for (at, table) in self.tables.iter().enumerate() {
            let buckets = table.key.bucket_count() as f64;
            let probes = table.expected_probes();
            let load = count / buckets;
            let (bytes, lines_a_probe) = match self.layout {
                BucketLayout::Lines => {
                    let overflow = lines_beyond(load);
                    let directory = if at == 0 { 4.0 } else { 0.0 };
                    (
                        buckets * (64.0 * (1.0 + overflow) + directory),
                        1.0 + overflow,
                    )
                }
                BucketLayout::Packed => (4.0 * count + 4.0 * buckets, 1.0 + (load + 7.0) / 16.0),
            };
            let line = line_nanoseconds(bytes);
            let first = match self.layout {
                BucketLayout::Lines => 1.0,
                BucketLayout::Packed => 1.6,
            };
            // The lines of a bucket after the first are read in sequence, so memory bandwidth sets
            // their cost.
            let following = if bytes < 1e6 { 2.0 } else { 8.0 };
            let candidates = probes * load;
            total.probes += probes;
            total.candidates += candidates;
            total.bytes += bytes;
            total.survivors += candidates * passing;
            total.nanoseconds +=
                probes * (first * line + (lines_a_probe - first).max(0.0) * following);
        }
        total.nanoseconds += total.survivors * 60.0;
        total
    }

    /// Returns the bytes of a fingerprint that neither its bucket nor its word in the first table
    /// determines.
    pub(crate) fn rest_bytes(&self) -> usize {
        FingerprintLayout::new(self).rest_bytes()
    }
}

impl PlanShape {
    /// Parses the displayed form, ignoring blanks. Widths alone get the smallest radii that miss
    /// nothing at the distance. Returns `None` if the text is no shape. Does not check that the
    /// shape is complete.
    fn parse_shape(text: &str, distance: u32) -> Option<Self> {
        let list = |text: &str| -> Option<Vec<u32>> {
            let numbers = text.split(',').map(|number| number.trim().parse().ok());
            numbers.collect()
        };
        let Some((widths, rule)) = text.split_once(';') else {
            let widths = list(text)?;
            let blocks = u32::try_from(widths.len()).ok()?;
            let Self::Blocks { radii, .. } = block_shape(0, distance, blocks) else {
                return None;
            };
            return Some(Self::Blocks { widths, radii });
        };
        let (widths, rule) = (list(widths)?, rule.trim());
        let chosen = rule
            .strip_prefix("any ")
            .and_then(|rest| rest.strip_suffix(" equal"));
        Some(match chosen {
            Some(chosen) => Self::Combinations {
                widths,
                chosen: chosen.trim().parse().ok()?,
            },
            None => Self::Blocks {
                widths,
                radii: list(rule)?,
            },
        })
    }

    /// Checks that no pair within `distance` is missed, and that all parts are in range.
    fn check_shape(&self, bits: u32, distance: u32) -> Result<()> {
        let (Self::Blocks { widths, .. } | Self::Combinations { widths, .. }) = self else {
            return Ok(());
        };
        let sum: u64 = widths.iter().map(|&width| u64::from(width)).sum();
        if widths.is_empty() || widths.len() > 64 || sum > u64::from(bits) {
            return Err(Error::setting_error(format!(
                "the blocks have {sum} bits in total, and the fingerprint has {bits} bits"
            )));
        }
        let complete = match self {
            Self::Blocks { widths, radii } => {
                let sees: u64 = radii.iter().map(|&radius| u64::from(radius) + 1).sum();
                widths.len() == radii.len() && sees > u64::from(distance)
            }
            Self::Combinations { widths, chosen } => {
                let blocks = widths.len() as u32;
                *chosen >= 1
                    && *chosen <= MOST_SEGMENTS as u32
                    && binomial(blocks, *chosen) <= 1 << 10
                    && chosen.saturating_add(distance) <= blocks
            }
            Self::Neighbourhoods => true,
        };
        if complete {
            Ok(())
        } else {
            Err(Error::setting_error(format!(
                "the plan {self} would miss pairs at the distance {distance}"
            )))
        }
    }
}

impl PlanTable {
    fn block_table(start: u32, width: u32, radius: u32, key_bits: u32) -> Self {
        let covering = [CoveringCode::TwoOf15, CoveringCode::OneOf31]
            .into_iter()
            .find(|code| key_bits <= code.key_bits());
        let key = match covering {
            Some(code) if radius == 1 && width >= code.covered_bits() && width <= 32 => {
                BlockKey::Covering {
                    shift: start,
                    code,
                    bits: key_bits,
                }
            }
            _ => BlockKey::direct_key(&[(start, width)], key_bits),
        };
        Self {
            mask: low_bits_mask(start + width) ^ low_bits_mask(start),
            radius,
            key,
        }
    }

    /// Creates a table that requires equality of its blocks, given as start and width.
    fn equal_blocks_table(blocks: impl Iterator<Item = (u32, u32)>, key_bits: u32) -> Self {
        let mut runs: Vec<(u32, u32)> = Vec::new();
        let mut mask = 0;
        for (start, width) in blocks {
            mask |= low_bits_mask(start + width) ^ low_bits_mask(start);
            match runs.last_mut() {
                Some(last) if last.0 + last.1 == start => last.1 += width,
                _ => runs.push((start, width)),
            }
        }
        Self {
            mask,
            radius: 0,
            key: BlockKey::direct_key(&runs, key_bits),
        }
    }

    fn expected_probes(&self) -> f64 {
        match self.key {
            BlockKey::Direct { bits, .. } => ball_volume(bits, self.radius),
            BlockKey::Covering { code, .. } => match code {
                // A word that is a codeword itself (1 in 16, or 1 in 32) needs only its own bucket,
                // because it is the nearest codeword of all its neighbours.
                CoveringCode::TwoOf15 => 1.0 + 2.0 * 7.0 * 15.0 / 16.0,
                CoveringCode::OneOf31 => 1.0 + 15.0 * 31.0 / 32.0,
            },
        }
    }
}

fn check_request(request: &PlanRequest) -> Result<()> {
    let PlanRequest { bits, distance, .. } = *request;
    if !(8..=128).contains(&bits) {
        return Err(Error::setting_error(format!(
            "fingerprints of {bits} bits: a fingerprint has 8–128 bits"
        )));
    }
    if distance.get() > MOST_DISTANCE || distance.get() >= bits {
        return Err(Error::setting_error(format!(
            "the distance {} is above {MOST_DISTANCE} or not below the {bits} bits",
            distance.get()
        )));
    }
    Ok(())
}

fn scan_shape() -> PlanShape {
    PlanShape::Blocks {
        widths: vec![0],
        radii: vec![MOST_DISTANCE],
    }
}

/// Returns blocks of about equal width. The first ones are the wider and get the larger radii.
fn block_shape(bits: u32, distance: u32, blocks: u32) -> PlanShape {
    let radius_sum = distance + 1 - blocks.min(distance + 1);
    let share = |total: u32, at: u32| total / blocks + u32::from(at < total % blocks);
    PlanShape::Blocks {
        widths: (0..blocks).map(|at| share(bits, at)).collect(),
        radii: (0..blocks).map(|at| share(radius_sum, at)).collect(),
    }
}

fn combination_shape(bits: u32, distance: u32, blocks: u32) -> PlanShape {
    PlanShape::Combinations {
        widths: (0..blocks)
            .map(|at| bits / blocks + u32::from(at < bits % blocks))
            .collect(),
        chosen: blocks - distance,
    }
}

/// Returns the lowest bit of every block.
fn block_starts(widths: &[u32]) -> impl Iterator<Item = u32> {
    widths.iter().scan(0, |next, width| {
        let start = *next;
        *next += width;
        Some(start)
    })
}

/// Returns all subsets of `chosen` out of `blocks` blocks as bit masks, in ascending order.
fn block_subsets(blocks: u32, chosen: u32) -> impl Iterator<Item = u64> {
    (0..1u64 << blocks).filter(move |subset| subset.count_ones() == chosen)
}

/// Returns the binomial coefficient, saturating at `u64::MAX`.
fn binomial(of: u32, some: u32) -> u64 {
    (0..some.min(of)).fold(1u64, |value, at| {
        value.saturating_mul(u64::from(of - at)) / u64::from(at + 1)
    })
}

/// Returns the number of words of `bits` bits that differ from a given word in at most `radius`
/// bits.
pub(crate) fn ball_volume(bits: u32, radius: u32) -> f64 {
    (0..=radius.min(bits))
        .map(|some| binomial(bits, some) as f64)
        .sum()
}

/// Returns the nanoseconds to read a random cache line from this much memory when many lines are
/// prefetched.
pub(crate) fn line_nanoseconds(bytes: f64) -> f64 {
    let megabytes = bytes / 1e6;
    if megabytes < 1.0 {
        return 3.0;
    }
    (5.0 + 1.2 * megabytes.log2()).min(22.0)
}

/// Returns the average number of overflow lines of a bucket with `load` entries on average. The
/// first line holds 16 entries, or 15 and the place of the overflow; the overflow begins with its
/// count.
fn lines_beyond(load: f64) -> f64 {
    // With such a load, hardly any bucket is without overflow.
    if load > MOST_COUNTED {
        return (load - 14.0) / 16.0 + 0.5;
    }
    chance_above(load, 16)
        + (30..10 * MOST_COUNTED as u32)
            .step_by(16)
            .map(|most| chance_above(load, most))
            .sum::<f64>()
}

/// Largest load for which chances are summed up: e^−load is then far from the smallest `f64`.
pub(crate) const MOST_COUNTED: f64 = 60.0;

/// Returns the probability that a bucket has more than `most` entries if it has `load` on average,
/// which must be at most [`MOST_COUNTED`].
pub(crate) fn chance_above(load: f64, most: u32) -> f64 {
    let mut term = (-load).exp();
    let mut sum = term;
    for entries in 1..=most {
        term *= load / f64::from(entries);
        sum += term;
    }
    (1.0 - sum).max(0.0)
}

impl fmt::Display for PlanShape {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |numbers: &[u32]| {
            let numbers: Vec<_> = numbers.iter().map(u32::to_string).collect();
            numbers.join(",")
        };
        match self {
            Self::Blocks { widths, .. } if widths == &[0] => formatter.write_str("scan"),
            Self::Blocks { widths, radii } => {
                write!(formatter, "{}; {}", list(widths), list(radii))
            }
            Self::Combinations { widths, chosen } => {
                write!(formatter, "{}; any {chosen} equal", list(widths))
            }
            Self::Neighbourhoods => formatter.write_str(NEIGHBOURHOODS_NAME),
        }
    }
}

impl fmt::Display for HammingPlan {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let covering = self
            .tables
            .iter()
            .any(|table| matches!(table.key, BlockKey::Covering { .. }));
        let keys = if covering {
            "covering keys"
        } else {
            "direct keys"
        };
        let layout = match self.layout {
            BucketLayout::Lines => "lines",
            BucketLayout::Packed => "packed",
        };
        write!(
            formatter,
            "{} ({keys} of {} bits, {layout})",
            self.shape, self.key_bits
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hamming::{FingerprintCode, HammingSegment};

    fn request(count: u64, bits: u32, distance: u32) -> PlanRequest {
        PlanRequest {
            count,
            bits,
            distance: Distance::new(distance, bits).unwrap(),
            memory: None,
        }
    }

    /// Returns `true` if some table sees two fingerprints that differ in these bits.
    fn sees(tables: &[PlanTable], differing: u128) -> bool {
        let sees = |table: &PlanTable| (differing & table.mask).count_ones() <= table.radius;
        tables.iter().any(sees)
    }

    fn all_seen(plan: &HammingPlan) -> bool {
        let near = |differing: &u128| differing.count_ones() <= plan.distance.get();
        (0..1 << plan.bits)
            .filter(near)
            .all(|differing| sees(&plan.tables, differing))
    }

    #[test]
    fn plans_find_every_pair_within_their_distance() {
        for bits in 8..=13 {
            for distance in 0..=6.min(bits - 1) {
                for plan in HammingPlan::all_plans(&request(1000, bits, distance)).unwrap() {
                    assert!(all_seen(&plan), "{plan} at {bits} bits and {distance}");
                }
                for name in ["auto", "scan", "blocks"] {
                    let plan =
                        HammingPlan::from_name(name, &request(1000, bits, distance)).unwrap();
                    assert!(all_seen(&plan), "{plan} at {bits} bits and {distance}");
                }
            }
        }
    }

    /// Tries all radii of all cuts of a few bits. A plan is complete exactly when Σ(r + 1) > k,
    /// unless a block is too narrow to differ in more bits than its radius.
    #[test]
    fn pigeonhole_rule_is_tight() {
        let cuts: [&[u32]; 5] = [&[9], &[5, 4], &[3, 3, 3], &[4, 3, 2], &[3, 2, 2, 2]];
        for widths in cuts {
            for code in 0..4u32.pow(widths.len() as u32) {
                let digits = (0..widths.len() as u32).map(|at| code / 4u32.pow(at) % 4);
                let radii: Vec<_> = digits.collect();
                let narrow = widths
                    .iter()
                    .zip(&radii)
                    .any(|(width, radius)| radius >= width);
                let sum: u32 = radii.iter().map(|radius| radius + 1).sum();
                for distance in 0..9 {
                    let shape = PlanShape::Blocks {
                        widths: widths.to_vec(),
                        radii: radii.clone(),
                    };
                    let allowed = Distance::new(distance, 9).unwrap();
                    let plan = HammingPlan::new(9, allowed, shape, BucketLayout::Packed, 9);
                    assert_eq!(plan.is_ok(), sum > distance);
                    match plan {
                        Ok(plan) => assert!(all_seen(&plan), "{plan} at {distance}"),
                        Err(_) if narrow => {}
                        Err(_) => {
                            let tables: Vec<_> = block_starts(widths)
                                .zip(widths.iter().zip(&radii))
                                .map(|(start, (&width, &radius))| {
                                    PlanTable::block_table(start, width, radius, 9)
                                })
                                .collect();
                            let near = |bits: &u128| bits.count_ones() <= distance;
                            assert!(!(0..512).filter(near).all(|bits| sees(&tables, bits)));
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn combinations_need_one_block_above_distance() {
        let plan = |blocks: u32, chosen, distance| {
            let widths = vec![12 / blocks; blocks as usize];
            let distance = Distance::new(distance, 12).unwrap();
            let shape = PlanShape::Combinations { widths, chosen };
            HammingPlan::new(12, distance, shape, BucketLayout::Lines, 12)
        };
        for blocks in [2, 3, 4, 6] {
            for chosen in 1..=blocks {
                for distance in 0..7 {
                    let plan = plan(blocks, chosen, distance);
                    assert_eq!(plan.is_ok(), chosen + distance <= blocks);
                    assert!(plan.is_ok_and(|plan| all_seen(&plan)) || chosen + distance > blocks);
                }
            }
        }
        assert!(plan(4, 0, 1).is_err());
    }

    #[test]
    fn classic_plans_have_their_names() {
        let named = |name| HammingPlan::from_name(name, &request(50_000_000, 64, 3));
        let four = named("4x16").unwrap();
        assert_eq!(four.plan_shape().to_string(), "16,16,16,16; 0,0,0,0");
        assert_eq!(four, named("blocks").unwrap());
        let permuted = named("permuted").unwrap();
        assert_eq!(
            permuted.plan_shape().to_string(),
            "13,13,13,13,12; any 2 equal"
        );
        assert_eq!(permuted.plan_tables().len(), 10);
        assert_eq!(named("scan").unwrap().plan_shape().to_string(), "scan");
        assert!(named("best").unwrap_err().to_string().contains("`best`"));
        let pairs: Vec<_> = permuted.permutations();
        let bits: Vec<u32> = pairs.iter().map(|table| table.leading_bits).collect();
        assert_eq!(bits, [26, 26, 26, 26, 26, 26, 25, 25, 25, 25]);
        assert_eq!(pairs[1].order, [0, 2, 1, 3, 4]);
        assert_eq!(pairs[1].leading, 2);
        assert_eq!(four.permutations()[3].order, [3, 0, 1, 2]);
        assert_eq!(four.permutations()[3].leading_bits, 16);
        assert!(named("32,32").unwrap().permutations().is_empty());
    }

    #[test]
    fn neighbourhoods_are_for_small_indexes() {
        let named = |count, distance| {
            HammingPlan::from_name("neighbourhoods", &request(count, 64, distance))
        };
        let plan = named(10_000, 3).unwrap();
        assert_eq!(plan.plan_shape().to_string(), "neighbourhoods");
        assert_eq!(
            plan.to_string(),
            "neighbourhoods (direct keys of 20 bits, packed)"
        );
        let cost = plan.predict_cost(10_000);
        assert_eq!((cost.probes, cost.candidates.round()), (1.0, 13.0));
        let error = named(10_001, 3).unwrap_err().to_string();
        assert!(
            error.contains("at most 10000 fingerprints, and there are 10001"),
            "{error}"
        );
        assert!(HammingPlan::check_count("neighbourhoods", 10_001).is_err());
        assert!(HammingPlan::check_count("auto", 10_001).is_ok());
        // Keys are shortened until the neighbourhoods fit.
        for (distance, memory) in [(16, None), (8, None), (3, Some(1_000_000)), (3, Some(1))] {
            let request = PlanRequest {
                memory,
                ..request(10_000, 64, distance)
            };
            let plan = HammingPlan::from_name("neighbourhoods", &request).unwrap();
            let most = memory.map_or(NEIGHBOURHOOD_BYTES, |memory| memory as f64);
            let bytes = plan.predict_cost(10_000).bytes;
            assert!(bytes <= most || plan.key_bits() == 0, "{plan}: {bytes}");
        }
        // They are never chosen unless they are named.
        let all = HammingPlan::all_plans(&request(10, 64, 3)).unwrap();
        assert!(all.iter().all(|plan| plan.neighbourhood_key().is_none()));
    }

    #[test]
    fn every_plan_is_named_by_its_shape() {
        for (bits, distance) in [(64, 3), (64, 6), (128, 7), (32, 0), (24, 2)] {
            let request = request(1_000_000, bits, distance);
            for plan in HammingPlan::all_plans(&request).unwrap() {
                let named =
                    HammingPlan::from_name(&plan.plan_shape().to_string(), &request).unwrap();
                assert_eq!(named.plan_shape(), plan.plan_shape());
                if let PlanShape::Blocks { widths, .. } = plan.plan_shape()
                    && widths != &[0]
                {
                    let widths: Vec<String> = widths.iter().map(u32::to_string).collect();
                    let named = HammingPlan::from_name(&widths.join(" , "), &request).unwrap();
                    assert_eq!(named.plan_shape(), plan.plan_shape());
                }
            }
        }
        let refused = |name: &str| {
            let refused = HammingPlan::from_name(name, &request(1000, 64, 3));
            refused.unwrap_err().to_string()
        };
        for name in [
            "",
            "22,21,x",
            "22;",
            "22,21,21; any",
            "22,21,21; any 2",
            ";",
            "-3,67",
        ] {
            assert!(refused(name).contains("there is no plan"), "{name}");
        }
        for name in [
            "22,21,21; 0,0,0",
            "13,13,13,13,12; any 3 equal",
            "22,21,21; 1,0",
        ] {
            assert!(refused(name).contains("would miss pairs"), "{name}");
        }
        assert!(refused("40,40").contains("80 bits"));
        assert!(refused("99999999999").contains("there is no plan"));
        assert!(HammingPlan::from_name("4x16", &request(1000, 32, 3)).is_err());
    }

    #[test]
    fn chosen_plan_fits_the_memory_limit() {
        let free = PlanRequest {
            memory: Some(u64::MAX),
            ..request(50_000_000, 64, 3)
        };
        let fastest = HammingPlan::choose_plan(&free).unwrap();
        let bytes = |plan: &HammingPlan| plan.predict_cost(free.count).bytes as u64;
        let mut last = fastest.predict_cost(free.count).nanoseconds;
        let mut memory = bytes(&fastest);
        let mut plans = 0;
        loop {
            let limited = PlanRequest {
                memory: Some(memory),
                ..free
            };
            let Ok(plan) = HammingPlan::choose_plan(&limited) else {
                break;
            };
            assert!(bytes(&plan) <= memory);
            assert!(plan.predict_cost(free.count).nanoseconds >= last);
            last = plan.predict_cost(free.count).nanoseconds;
            memory = bytes(&plan) - 1;
            plans += 1;
        }
        assert!(plans > 2);
        let none = PlanRequest {
            memory: Some(1000),
            ..free
        };
        assert!(
            HammingPlan::choose_plan(&none)
                .unwrap_err()
                .to_string()
                .contains("limit of 1000 for the index")
        );
    }

    #[test]
    fn default_plan_has_moderate_memory() {
        for (count, bits, distance) in [(50_000_000, 64, 3), (1 << 30, 64, 6), (50_000_000, 128, 7)]
        {
            let free = request(count, bits, distance);
            let bytes = |plan: &HammingPlan| plan.predict_cost(count).bytes;
            let chosen = HammingPlan::choose_plan(&free).unwrap();
            assert!(bytes(&chosen) <= free.comfortable(), "{chosen}");
            let greedy = HammingPlan::choose_plan(&PlanRequest {
                memory: Some(u64::MAX),
                ..free
            });
            assert!(bytes(&greedy.unwrap()) >= bytes(&chosen));
        }
        // If no plan is within the default limit, the smallest is chosen.
        let wide = request(50_000_000, 8, 2);
        assert!(HammingPlan::choose_plan(&wide).is_ok());
    }

    #[test]
    fn impossible_plans_are_refused() {
        for (bits, distance) in [(7, 1), (129, 1), (64, 17)] {
            let distance = Distance::new(distance, 200).unwrap();
            assert!(
                HammingPlan::choose_plan(&PlanRequest {
                    bits,
                    distance,
                    ..request(10, 64, 3)
                })
                .is_err()
            );
        }
        let distance = Distance::new(9, 200).unwrap();
        assert!(
            HammingPlan::choose_plan(&PlanRequest {
                bits: 9,
                distance,
                ..request(10, 64, 3)
            })
            .is_err()
        );
    }

    /// Average loads from 3 to 80 entries per bucket, for both layouts and both widths.
    #[test]
    fn predicted_memory_matches_used_memory() {
        fn check<C: FingerprintCode>(bits: u32, codes: &[C]) {
            for load in [3, 8, 12, 15, 17, 20, 24, 40, 61, 80] {
                for layout in [BucketLayout::Lines, BucketLayout::Packed] {
                    let distance = Distance::new(3, bits).unwrap();
                    let shape = block_shape(bits, 3, 4);
                    let plan = HammingPlan::new(bits, distance, shape, layout, 10).unwrap();
                    let codes = &codes[..load << 10];
                    let built = HammingSegment::build_index(&plan, codes)
                        .unwrap()
                        .size_in_bytes() as f64;
                    let predicted = plan.predict_cost(codes.len() as u64).bytes;
                    let ratio = predicted / built;
                    assert!(
                        (0.95..1.05).contains(&ratio),
                        "{bits} bits, {load} a bucket, {layout:?}: {predicted} for {built}"
                    );
                }
            }
        }
        let narrow: Vec<u64> = (0..80 << 10).map(crate::hash::mix_bits).collect();
        let wide: Vec<u128> = narrow
            .iter()
            .map(|&code| u128::from(code) << 64 | u128::from(crate::hash::mix_bits(!code)))
            .collect();
        check(64, &narrow);
        check(128, &wide);
    }

    /// These plans were measured to be as fast or faster there, and smaller.
    #[test]
    fn fifty_million_fingerprints_use_lines() {
        for (distance, shape) in [(3, "32,32; 1,1"), (6, "22,21,21; 2,1,1")] {
            let chosen = HammingPlan::choose_plan(&request(50_000_000, 64, distance)).unwrap();
            assert_eq!(chosen.bucket_layout(), BucketLayout::Lines, "{chosen}");
            assert_eq!(chosen.plan_shape().to_string(), shape);
        }
    }

    #[test]
    fn smallest_of_equally_fast_plans_is_chosen() {
        let count = 50_000_000;
        let plans = HammingPlan::all_plans(&request(count, 64, 3)).unwrap();
        let best = HammingPlan::best_of(plans.clone(), count)
            .unwrap()
            .predict_cost(count);
        let costs = plans.iter().map(|plan| plan.predict_cost(count));
        let fastest = costs.clone().map(|cost| cost.nanoseconds);
        let fastest = fastest.fold(f64::INFINITY, f64::min);
        assert!(best.nanoseconds <= TIED_TIME_RATIO * fastest);
        let smaller = costs.filter(|cost| cost.bytes < best.bytes);
        assert!(
            smaller
                .into_iter()
                .all(|cost| cost.nanoseconds > TIED_TIME_RATIO * fastest)
        );
        assert_eq!(HammingPlan::best_of([], count), None);
    }

    #[test]
    fn few_fingerprints_are_scanned() {
        let plan = HammingPlan::choose_plan(&request(10, 64, 3)).unwrap();
        assert!(plan.predict_cost(10).nanoseconds < 1000.0);
        let large = HammingPlan::choose_plan(&request(50_000_000, 64, 3)).unwrap();
        assert!(large.predict_cost(50_000_000).nanoseconds < 1000.0);
    }
}
