//! Run-time choice of the fastest instructions that this CPU has. This is the only unsafe code.
//!
//! A kernel is written once, in plain Rust, generic over an [`Arch`] that offers the few operations which the
//! compiler does not find by itself. [`Cpu::run`] compiles the kernel once per instruction set and calls the
//! best version. The plain version is the definition: every other version is the same source code with other
//! instructions. Results therefore never depend on the CPU, and tests compare all versions.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(any(target_family = "wasm", test))]
mod heap_pages;
mod memory;
mod plain;
#[cfg(target_arch = "x86_64")]
mod x86_64;

use std::sync::OnceLock;

pub(crate) use memory::{ChunkedLines, LargePageArray, MemoryMut, ReadOnlyMemory};
pub(crate) use plain::Plain;

/// Bytes of a block, for example of [`Arch::ascii_block`].
pub(crate) const BLOCK: usize = 64;

/// Classes of the bytes of a block of 64; bit i describes byte i.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockMasks {
    /// ASCII letters and digits.
    pub(crate) word: u64,
    /// Spaces and ASCII control characters.
    pub(crate) space: u64,
    /// Bytes of 128 and above.
    pub(crate) non_ascii: u64,
}

/// The operations that are written by hand for an instruction set.
pub(crate) trait Arch: Copy {
    /// Copies a block, with `A`–`Z` in lower case if `FOLD`, and classifies its bytes.
    fn ascii_block<const FOLD: bool>(
        self,
        block: &[u8; BLOCK],
        copy: &mut [u8; BLOCK],
    ) -> BlockMasks;

    /// Returns the bytes of a block that equal one of `wanted`; bit i stands for byte i.
    fn either(self, block: &[u8; BLOCK], wanted: [u8; 2]) -> u64;

    /// Writes `base + i` for every set bit i of `bits`, ascending, and returns the number of set bits. The
    /// contents of `positions` behind them are unspecified.
    fn positions(self, bits: u64, base: u32, positions: &mut [u32; BLOCK]) -> usize;

    /// Returns the words of a line that differ from `query` in at most `limit` bits; bit i stands for word i.
    fn near(self, line: &CacheLine, query: u32, limit: u32) -> u32;

    /// Returns the numbers that differ from `query` in at most `limit` bits; bit i stands for number i.
    fn near_64(self, numbers: &[u64; 8], query: u64, limit: u32) -> u32;

    /// Returns the numbers that differ from `query` in at most `limit` bits; bit i stands for number i.
    fn near_128(self, numbers: &[u128; 4], query: u128, limit: u32) -> u32;

    /// Returns the number of differing bits between two lists of blocks, up to the end of the shorter one.
    fn differing(self, a: &[[u64; 8]], b: &[[u64; 8]]) -> u64;

    /// Packs the bits of `word` at the positions where `mask` has ones into the lowest bits.
    fn gather(self, word: u64, mask: u64) -> u64;

    /// Moves each of eight strips to its next column: lane i to the column of the symbol `symbols[i]`, whose rows
    /// in this strip are `rows[symbols[i]][i]`; a symbol without an entry has none.
    ///
    /// The upper edge of a lane is the lower edge of the lane before it, as its last step left it. Where `first`
    /// has ones, the upper edge is `above` instead: 1 in the first number for a rise, in the second for a fall.
    fn advance_strips(
        self,
        strips: &mut StripLanes,
        rows: &[[u64; LANES]],
        symbols: &[u32; LANES],
        first: &[u64; LANES],
        above: [u64; 2],
    );
}

/// Number of strips that [`Arch::advance_strips`] moves.
pub(crate) const LANES: usize = 8;

/// Eight strips of a table of Levenshtein distances, 64 rows high each (Myers 1999, Hyyrö 2003). Bit i of a lane
/// describes row i of its strip, in the column that it has reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StripLanes {
    /// Rows whose value is one more than that of the row above.
    pub(crate) rises: [u64; LANES],
    /// Rows whose value is one less than that of the row above.
    pub(crate) falls: [u64; LANES],
    /// Rows whose value is one more than in the column before.
    pub(crate) right_rises: [u64; LANES],
    /// Rows whose value is one less than in the column before.
    pub(crate) right_falls: [u64; LANES],
}

impl StripLanes {
    /// The left border of the table, where every row is one more than the one above. The column before a lane's
    /// first one equals no symbol and has no difference above, so it leaves the lane as it is here.
    pub(crate) const BORDER: Self = Self {
        rises: [u64::MAX; LANES],
        falls: [0; LANES],
        right_rises: [0; LANES],
        right_falls: [0; LANES],
    };
}

/// One cache line of 32-bit words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, align(64))]
pub(crate) struct CacheLine(pub(crate) [u32; LINE]);

/// Number of words in a [`CacheLine`].
pub(crate) const LINE: usize = 16;

/// Asks the CPU to load the cache line of a value, without waiting for it.
#[inline(always)]
pub fn prefetch<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    x86_64::prefetch(value);
    #[cfg(target_arch = "aarch64")]
    aarch64::prefetch(value);
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = value;
}

/// A computation that is compiled once for every instruction set.
///
/// Implementations mark `run` and all that it calls in its hot loop `#[inline(always)]`.
pub(crate) trait Kernel {
    type Output;

    fn run<A: Arch>(self, arch: A) -> Self::Output;
}

/// The instruction set that kernels run with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cpu(InstructionSet);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InstructionSet {
    Plain,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "aarch64")]
    Neon,
}

impl Cpu {
    /// Returns the best instruction set that this CPU has.
    pub fn detect_best() -> Self {
        static BEST: OnceLock<Cpu> = OnceLock::new();
        *BEST.get_or_init(|| {
            *Self::detect_all()
                .last()
                .expect("the plain one is always there")
        })
    }

    /// Returns every instruction set that this CPU has, the plain one first and the best one last. All give
    /// the same results; benchmarks and tests choose between them.
    pub fn detect_all() -> Vec<Self> {
        #[allow(unused_mut)]
        let mut all = vec![Self(InstructionSet::Plain)];
        #[cfg(target_arch = "x86_64")]
        {
            if x86_64::has_avx2() {
                all.push(Self(InstructionSet::Avx2));
            }
            if x86_64::has_avx2() && x86_64::has_avx512() {
                all.push(Self(InstructionSet::Avx512));
            }
        }
        #[cfg(target_arch = "aarch64")]
        all.push(Self(InstructionSet::Neon));
        all
    }

    /// Returns the name for reports: `plain`, `avx2`, `avx512` or `neon`.
    pub fn name(self) -> &'static str {
        match self.0 {
            InstructionSet::Plain => "plain",
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx512 => "avx512",
            #[cfg(target_arch = "aarch64")]
            InstructionSet::Neon => "neon",
        }
    }

    /// Runs a kernel with this instruction set.
    #[inline]
    pub(crate) fn run<K: Kernel>(self, kernel: K) -> K::Output {
        match self.0 {
            InstructionSet::Plain => kernel.run(Plain),
            // SAFETY: `detect_all` is the only constructor of levels, and it asks the CPU first.
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx2 => unsafe { x86_64::run_avx2(kernel) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx512 => unsafe { x86_64::run_avx512(kernel) },
            #[cfg(target_arch = "aarch64")]
            InstructionSet::Neon => aarch64::run_neon(kernel),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Blocks<'a, const FOLD: bool>(&'a [u8; BLOCK]);

    impl<const FOLD: bool> Kernel for Blocks<'_, FOLD> {
        type Output = ([u8; BLOCK], BlockMasks);

        fn run<A: Arch>(self, arch: A) -> Self::Output {
            let mut copy = [0; BLOCK];
            let masks = arch.ascii_block::<FOLD>(self.0, &mut copy);
            (copy, masks)
        }
    }

    struct Either<'a>(&'a [u8; BLOCK], [u8; 2]);

    impl Kernel for Either<'_> {
        type Output = u64;

        fn run<A: Arch>(self, arch: A) -> u64 {
            arch.either(self.0, self.1)
        }
    }

    struct Near(CacheLine, u32, u32);

    impl Kernel for Near {
        type Output = u32;

        fn run<A: Arch>(self, arch: A) -> u32 {
            arch.near(&self.0, self.1, self.2)
        }
    }

    #[test]
    fn all_instruction_sets_find_the_same_near_words() {
        for seed in 0..500u64 {
            let query = crate::hash::mix_bits(seed) as u32;
            let line = CacheLine(std::array::from_fn(|at| {
                let flips = (0..at as u64 + seed % 20)
                    .map(|flip| crate::hash::mix_bits(seed ^ flip << 20) % 32);
                flips.fold(query, |word, flip| word ^ 1 << flip)
            }));
            for limit in [0, 1, 2, 3, 4, 7, 16, 31, 32] {
                let expected = (0..LINE)
                    .filter(|&at| (line.0[at] ^ query).count_ones() <= limit)
                    .fold(0, |mask, at| mask | 1 << at);
                for cpu in Cpu::detect_all() {
                    assert_eq!(
                        cpu.run(Near(line, query, limit)),
                        expected,
                        "{}",
                        cpu.name()
                    );
                }
            }
        }
    }

    struct NearNumbers([u64; 8], u64, u32);

    impl Kernel for NearNumbers {
        type Output = (u32, u32);

        fn run<A: Arch>(self, arch: A) -> (u32, u32) {
            let Self(numbers, query, limit) = self;
            let wide: [u128; 4] =
                std::array::from_fn(|at| widen(numbers[2 * at], numbers[2 * at + 1]));
            let other = query.rotate_left(limit);
            let wide = arch.near_128(&wide, widen(query, other), limit);
            (arch.near_64(&numbers, query, limit), wide)
        }
    }

    fn widen(low: u64, high: u64) -> u128 {
        u128::from(high) << 64 | u128::from(low)
    }

    #[test]
    fn all_instruction_sets_find_equal_near_numbers() {
        for seed in 0..500u64 {
            let query = crate::hash::mix_bits(seed);
            for limit in [0, 1, 2, 3, 4, 8, 16, 31, 63, 64, 127, 128] {
                let numbers: [u64; 8] = std::array::from_fn(|at| {
                    let flips = at as u64 / 2 + seed % 20;
                    let base = query.rotate_left(if at % 2 == 0 { 0 } else { limit });
                    (0..flips).fold(base, |number, flip| {
                        number ^ 1 << (crate::hash::mix_bits(seed ^ flip << 20) % 64)
                    })
                });
                let near = |ones: u32, at: usize| u32::from(ones <= limit) << at;
                let narrow = (0..8).fold(0, |mask, at| {
                    mask | near((numbers[at] ^ query).count_ones(), at)
                });
                let wide = (0..4).fold(0, |mask, at| {
                    let high = numbers[2 * at + 1] ^ query.rotate_left(limit);
                    mask | near(
                        (numbers[2 * at] ^ query).count_ones() + high.count_ones(),
                        at,
                    )
                });
                for cpu in Cpu::detect_all() {
                    let found = cpu.run(NearNumbers(numbers, query, limit));
                    assert_eq!(found, (narrow, wide), "{} {limit}", cpu.name());
                }
            }
        }
    }

    struct Differing<'a>(&'a [[u64; 8]], &'a [[u64; 8]]);

    impl Kernel for Differing<'_> {
        type Output = u64;

        fn run<A: Arch>(self, arch: A) -> u64 {
            arch.differing(self.0, self.1)
        }
    }

    #[test]
    fn all_instruction_sets_count_equal_bits() {
        let numbers = |seed: u64, blocks: u64| -> Vec<[u64; 8]> {
            let block = |block| {
                std::array::from_fn(|at| crate::hash::mix_bits(seed ^ block << 8 ^ at as u64))
            };
            (0..blocks).map(block).collect()
        };
        for blocks in 0..12 {
            for others in [blocks, 3, 0] {
                let (a, b) = (numbers(1 << 40, blocks), numbers(1 << 50, others));
                let pairs = a.as_flattened().iter().zip(b.as_flattened());
                let expected: u64 = pairs.map(|(a, b)| u64::from((a ^ b).count_ones())).sum();
                for cpu in Cpu::detect_all() {
                    assert_eq!(cpu.run(Differing(&a, &b)), expected, "{}", cpu.name());
                    assert_eq!(cpu.run(Differing(&a, &a)), 0, "{}", cpu.name());
                }
            }
        }
    }

    struct Gather(u64, u64);

    impl Kernel for Gather {
        type Output = u64;

        fn run<A: Arch>(self, arch: A) -> u64 {
            arch.gather(self.0, self.1)
        }
    }

    #[test]
    fn all_instruction_sets_gather_equal_bits() {
        let mix = crate::hash::mix_bits;
        let masks = (0..300).map(|seed| mix(seed) & mix(seed ^ 77) >> (seed % 60));
        for mask in masks.chain([0, 1, 1 << 63, u64::MAX]) {
            let word = mix(mask);
            let ones: Vec<u32> = (0..64).filter(|at| mask >> at & 1 == 1).collect();
            let expected = (0..)
                .zip(&ones)
                .fold(0, |bits, (at, one)| bits | (word >> one & 1) << at);
            for cpu in Cpu::detect_all() {
                assert_eq!(cpu.run(Gather(word, mask)), expected, "{}", cpu.name());
            }
        }
    }

    struct Strips<'a>(
        StripLanes,
        &'a [[u64; LANES]],
        [u32; LANES],
        [u64; LANES],
        [u64; 2],
    );

    impl Kernel for Strips<'_> {
        type Output = StripLanes;

        fn run<A: Arch>(self, arch: A) -> StripLanes {
            let Self(mut strips, rows, symbols, first, above) = self;
            arch.advance_strips(&mut strips, rows, &symbols, &first, above);
            strips
        }
    }

    #[test]
    fn all_instruction_sets_advance_equal_strips() {
        let mix = crate::hash::mix_bits;
        let lanes = |seed: u64| std::array::from_fn(|lane| mix(seed << 8 | lane as u64));
        for seed in 0..3000 {
            let rows: Vec<[u64; LANES]> = (0..seed % 9).map(|at| lanes(seed << 20 | at)).collect();
            let rises: [u64; LANES] = lanes(mix(seed));
            let [falls, right_falls]: [[u64; LANES]; 2] = [lanes(mix(!seed)), lanes(mix(seed ^ 5))];
            let strips = StripLanes {
                rises,
                falls: std::array::from_fn(|lane| falls[lane] & !rises[lane]),
                right_rises: falls,
                right_falls: std::array::from_fn(|lane| right_falls[lane] & !falls[lane]),
            };
            // Symbols without an entry are among them, also the largest number.
            let symbols = std::array::from_fn(|lane| match mix(seed ^ lane as u64) {
                large if large % 31 == 0 => u32::MAX - (large % 2) as u32,
                other => (other % 10) as u32,
            });
            let mut first = [0; LANES];
            first[seed as usize % LANES] = u64::MAX;
            for above in [[0, 0], [1, 0], [0, 1]] {
                let step = || Strips(strips, &rows, symbols, first, above);
                let expected = Cpu(InstructionSet::Plain).run(step());
                for cpu in Cpu::detect_all() {
                    assert_eq!(cpu.run(step()), expected, "{}", cpu.name());
                }
            }
        }
    }

    struct Positions(u64, u32);

    impl Kernel for Positions {
        type Output = Vec<u32>;

        fn run<A: Arch>(self, arch: A) -> Vec<u32> {
            let mut positions = [0; BLOCK];
            let count = arch.positions(self.0, self.1, &mut positions);
            positions[..count].to_vec()
        }
    }

    #[test]
    fn all_instruction_sets_read_equal_blocks() {
        let mut state = 1u64;
        for round in 0..2000u64 {
            let mut block = [0; BLOCK];
            for (at, byte) in block.iter_mut().enumerate() {
                state = crate::hash::mix_bits(state.wrapping_add(round));
                *byte = if round < 256 {
                    (round as u8).wrapping_add(at as u8)
                } else {
                    state as u8
                };
            }
            for cpu in Cpu::detect_all() {
                assert_eq!(
                    cpu.run(Blocks::<true>(&block)),
                    Plain.blocks::<true>(&block)
                );
                assert_eq!(
                    cpu.run(Blocks::<false>(&block)),
                    Plain.blocks::<false>(&block)
                );
                let wanted = [block[3], block[round as usize % BLOCK] ^ 1];
                let expected = (0..BLOCK)
                    .filter(|&at| wanted.contains(&block[at]))
                    .fold(0, |bits, at| bits | 1 << at);
                assert_eq!(cpu.run(Either(&block, wanted)), expected);
            }
        }
    }

    impl Plain {
        fn blocks<const FOLD: bool>(self, block: &[u8; BLOCK]) -> ([u8; BLOCK], BlockMasks) {
            let mut masks = BlockMasks {
                word: 0,
                space: 0,
                non_ascii: 0,
            };
            let mut copy = *block;
            for (at, byte) in copy.iter_mut().enumerate() {
                masks.word |= u64::from(byte.is_ascii_alphanumeric()) << at;
                masks.space |= u64::from(*byte == b' ' || byte.is_ascii_control()) << at;
                masks.non_ascii |= u64::from(!byte.is_ascii()) << at;
                if FOLD {
                    byte.make_ascii_lowercase();
                }
            }
            (copy, masks)
        }
    }

    #[test]
    fn all_instruction_sets_find_equal_positions() {
        let mut state = 7;
        for round in 0..3000u32 {
            state = crate::hash::mix_bits(state + 1);
            let bits = match round {
                0 => 0,
                1 => u64::MAX,
                2..66 => 1 << (round - 2),
                _ => state & crate::hash::mix_bits(state) >> (round % 64),
            };
            let expected: Vec<u32> = (0..64)
                .filter(|at| bits >> at & 1 == 1)
                .map(|at| round + at)
                .collect();
            for cpu in Cpu::detect_all() {
                assert_eq!(cpu.run(Positions(bits, round)), expected, "{}", cpu.name());
            }
        }
    }
}
