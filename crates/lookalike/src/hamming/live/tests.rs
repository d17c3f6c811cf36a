use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use proptest::prelude::*;

use super::*;
use crate::hamming::scan::scan_within;
use crate::hash::mix_bits;

/// Small chunks and segments, so that few fingerprints need several of them.
fn small(first: u64) -> LiveSizes {
    LiveSizes {
        chunk_bits: 5,
        segment_bits: 6,
        first,
    }
}

fn live<C: FingerprintCode>(bits: u32, distance: u32, first: u64) -> LiveIndex<C> {
    LiveIndex::with_shape(bits, Distance::new(distance, bits).unwrap(), small(first)).unwrap()
}

/// A live index and the entries that it must hold.
struct Model<C> {
    live: LiveIndex<C>,
    entries: BTreeMap<u64, (C, u64)>,
    bits: u32,
    slot: u64,
}

impl<C: FingerprintCode> Model<C> {
    fn new(bits: u32, distance: u32, first: u64) -> Self {
        Self {
            live: live(bits, distance, first),
            entries: BTreeMap::new(),
            bits,
            slot: 0,
        }
    }

    fn insert(&mut self, codes: &[C]) {
        let added = self.live.insert_many(codes, self.slot).unwrap();
        assert_eq!(added.end - added.start, codes.len() as u64);
        let entries = codes.iter().map(|&code| (code, self.slot));
        self.entries.extend(added.zip(entries));
    }

    fn remove(&mut self, seq: u64) {
        let expected = self.entries.remove(&seq).is_some();
        assert_eq!(self.live.remove_code(SequenceNumber(seq)), expected);
        assert!(!self.live.remove_code(SequenceNumber(seq)));
    }

    fn expire_before(&mut self, slot: u64) {
        self.live.expire_before(slot);
        self.slot = self.slot.max(slot);
        self.entries.retain(|_, &mut (_, other)| other >= slot);
    }

    fn check(&self, queries: &[C], distance: u32) {
        assert_eq!(self.live.len(), self.entries.len() as u64);
        let distance = Distance::new(distance, self.bits).unwrap();
        let seqs: Vec<u64> = self.entries.keys().copied().collect();
        let codes: Vec<C> = self.entries.values().map(|&(code, _)| code).collect();
        let mut expected = Vec::new();
        for (query, &code) in queries.iter().enumerate() {
            scan_within(&codes, code, distance, |row, differing| {
                expected.push((query, SequenceNumber(seqs[row]), differing));
            });
        }
        let mut many = Vec::new();
        let visit = |query, seq, differing| many.push((query, seq, differing));
        self.live.search_many(queries, distance, visit).unwrap();
        assert!(many.is_sorted_by_key(|&(query, ..)| query));
        many.sort_unstable();
        assert_eq!(many, expected);
        let mut single = Vec::new();
        for (query, &code) in queries.iter().enumerate() {
            let visit = |seq, differing| single.push((query, seq, differing));
            self.live.search_within(code, distance, visit).unwrap();
        }
        single.sort_unstable();
        assert_eq!(single, expected);
    }
}

/// Distribution of the codes that are made from seeds.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Uniform,
    /// A few centres, with some bits flipped.
    Clustered,
    /// One centre, with some bits flipped.
    Ball,
    Equal,
    /// The lowest 32 bits agree.
    HalfConstant,
}

const KINDS: [Kind; 5] = [
    Kind::Uniform,
    Kind::Clustered,
    Kind::Ball,
    Kind::Equal,
    Kind::HalfConstant,
];

fn wide(seed: u64) -> u128 {
    u128::from(mix_bits(seed ^ 0x5eed)) << 64 | u128::from(mix_bits(seed.wrapping_add(3)))
}

fn flipped(code: u128, flips: u64, bits: u32, seed: u64) -> u128 {
    (0..flips).fold(code, |code, flip| {
        code ^ 1 << (mix_bits(seed ^ (flip + 1) << 40) % u64::from(bits))
    })
}

impl Kind {
    fn code<C: FingerprintCode>(self, seed: u64, bits: u32, distance: u32) -> C {
        let flips = mix_bits(seed) % u64::from(2 * distance + 3);
        let code = match self {
            Self::Uniform => wide(seed),
            Self::Clustered => flipped(wide(seed % 7), flips, bits, seed),
            Self::Ball => flipped(0, flips, bits, seed),
            Self::Equal => u128::MAX / 3,
            Self::HalfConstant => wide(seed) >> 32 << 32,
        };
        C::narrow_from(code & low_bits_mask(bits))
    }
}

#[derive(Clone, Debug)]
enum Step {
    Insert(u64, u16),
    Remove(u64),
    RemoveMany(u64, u16),
    NextSlot,
    Expire(u64),
    Check(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (any::<u64>(), 1..400u16).prop_map(|(seed, count)| Step::Insert(seed, count)),
        2 => any::<u64>().prop_map(Step::Remove),
        1 => (any::<u64>(), 1..200u16).prop_map(|(seed, count)| Step::RemoveMany(seed, count)),
        3 => Just(Step::NextSlot),
        2 => (0..6u64).prop_map(Step::Expire),
        2 => any::<u64>().prop_map(Step::Check),
    ]
}

fn run<C: FingerprintCode>(bits: u32, distance: u32, first: u64, kind: Kind, steps: &[Step]) {
    let mut model = Model::<C>::new(bits, distance, first);
    let mut next = first;
    for step in steps {
        match *step {
            Step::Insert(seed, count) => {
                // Some seeds are repeated, some are new.
                let seeds =
                    (0..u64::from(count)).map(|at| (seed >> (at % 3 * 20)).wrapping_add(at));
                let codes: Vec<C> = seeds.map(|seed| kind.code(seed, bits, distance)).collect();
                model.insert(&codes);
                next += codes.len() as u64;
            }
            Step::Remove(seed) => {
                let back = seed % 300;
                model.remove(next.saturating_sub(back));
            }
            Step::RemoveMany(seed, count) => {
                let begin = next - (seed % 1000).min(next - first);
                (begin..begin + u64::from(count)).for_each(|seq| model.remove(seq));
            }
            Step::NextSlot => model.slot += 1,
            Step::Expire(back) => model.expire_before(model.slot.saturating_sub(back)),
            Step::Check(seed) => check_around(&model, kind, distance, seed),
        }
    }
    check_around(&model, kind, distance, 1);
}

/// Checks queries at about the largest distance from stored codes, and unrelated queries.
fn check_around<C: FingerprintCode>(model: &Model<C>, kind: Kind, distance: u32, seed: u64) {
    let mut queries = Vec::new();
    let codes: Vec<C> = model.entries.values().map(|&(code, _)| code).collect();
    for at in 0..12u64 {
        if let Some(code) = codes.get(mix_bits(seed ^ at) as usize % codes.len().max(1)) {
            let flips = (u64::from(distance) + at % 3).saturating_sub(1);
            let near = flipped(code.widen(), flips, model.bits, seed ^ at);
            queries.push(C::narrow_from(near));
        }
        queries.push(kind.code(mix_bits(seed ^ at << 8), model.bits, distance));
    }
    model.check(&queries, distance);
    model.check(&queries[..1], distance / 2);
    model.check(&[], distance);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_state_equals_the_scan(
        steps in prop::collection::vec(step(), 1..60),
        kind in prop::sample::select(&KINDS[..]),
        (bits, distance) in prop::sample::select(&[
            (64, 3), (64, 0), (64, 1), (64, 2), (64, 4), (64, 6), (64, 8), (64, 16), (50, 3),
            (33, 3), (20, 2), (8, 3), (1, 0), (17, 16),
        ][..]),
        first in prop::sample::select(&[0u64, 100, (1 << 32) - 1500, (7 << 32) - 10][..]),
    ) {
        run::<u64>(bits, distance, first, kind, &steps);
    }

    #[test]
    fn wide_codes_equal_the_scan(
        steps in prop::collection::vec(step(), 1..40),
        kind in prop::sample::select(&KINDS[..]),
        (bits, distance) in prop::sample::select(&[
            (128, 3), (128, 0), (128, 5), (128, 7), (128, 12), (128, 16), (100, 4), (65, 3),
        ][..]),
    ) {
        run::<u128>(bits, distance, 5, kind, &steps);
    }
}

#[test]
fn distances_around_the_limit_are_found() {
    for (bits, distances) in [(64, vec![0, 1, 2, 3, 5, 9]), (40, vec![3, 16])] {
        for distance in distances {
            let mut model = Model::<u64>::new(bits, distance, 0);
            let mut queries = Vec::new();
            for seed in 0..300 {
                let code = wide(seed) as u64 & low_bits_mask(bits) as u64;
                model.insert(&[code]);
                // Flip distinct bits, within a block or spread over all blocks.
                for count in distance.saturating_sub(1)..=distance + 1 {
                    for stride in [1, 7, bits / (distance + 2)] {
                        let flip =
                            |at| 1u64 << ((mix_bits(seed) as u32 % bits + at * stride) % bits);
                        queries.push((0..count).fold(code, |code, at| code ^ flip(at)));
                    }
                }
            }
            model.check(&queries, distance);
        }
    }
}

#[test]
fn memory_stays_bounded_while_the_window_slides() {
    for kind in KINDS {
        let index = live::<u64>(64, 3, (1 << 32) - 40_000);
        let window = 6_000u64;
        let mut bytes = Vec::new();
        for at in 0..30 * window {
            let slot = at / (window / 10);
            if at % (window / 10) == 0 {
                index.expire_before(slot.saturating_sub(9));
            }
            index.insert_code(kind.code(at, 64, 3), slot).unwrap();
            if at % window == window - 1 {
                bytes.push(index.memory_bytes());
            }
        }
        assert_eq!(index.len(), window);
        assert!(
            bytes.iter().skip(4).all(|&later| later <= bytes[3] * 5 / 4),
            "{kind:?}: {bytes:?}"
        );
    }
}

#[test]
fn memory_of_abandoned_buckets_is_reused() {
    // One bucket after another is filled far beyond its lines, and then left alone.
    let index = live::<u64>(64, 3, 0);
    let mut bytes = Vec::new();
    for round in 0..60u64 {
        index.expire_before(round.saturating_sub(2));
        let codes: Vec<u64> = (0..2000)
            .map(|at| mix_bits(round) << 32 | mix_bits(at ^ round << 20) >> 32)
            .collect();
        index.insert_many(&codes, round).unwrap();
        bytes.push(index.memory_bytes());
    }
    assert!(bytes[59] <= bytes[12] * 5 / 4, "{bytes:?}");
}

#[test]
fn memory_of_removed_codes_is_reused() {
    for kind in KINDS {
        let index = live::<u64>(64, 3, 0);
        let mut bytes = Vec::new();
        for at in 0..80_000u64 {
            let SequenceNumber(seq) = index.insert_code(kind.code(at, 64, 3), 0).unwrap();
            if let Some(old) = seq.checked_sub(2000) {
                assert!(index.remove_code(SequenceNumber(old)));
            }
            if at % 4000 == 3999 {
                bytes.push(index.memory_bytes());
            }
        }
        assert_eq!(index.len(), 2000);
        // The log keeps one bit per code of the segments in between.
        assert!(
            bytes[19] <= bytes[4] * 5 / 4 + 10_000,
            "{kind:?}: {bytes:?}"
        );
    }
}

#[test]
fn rarely_repeated_code_outlives_many_windows() {
    // Groups keep numbers that have long expired until their lines are tidied up.
    let mut model = Model::<u64>::new(64, 3, (1 << 32) - 3000);
    for round in 0..400u64 {
        model.slot = round;
        let mut codes: Vec<u64> = (0..20).map(|at| mix_bits(round * 20 + at)).collect();
        codes.push(42);
        model.insert(&codes);
        model.expire_before(round.saturating_sub(2));
        if round % 10 == 0 {
            model.check(&[42, 43, codes[0]], 3);
        }
    }
}

#[test]
fn concurrent_readers_see_valid_states_only() {
    let index = live::<u64>(64, 3, (1 << 32) - 30_000);
    let first = (1u64 << 32) - 30_000;
    let code = |seq: u64| {
        // One in four repeats a few values.
        let seed = if seq.is_multiple_of(4) { seq % 12 } else { seq };
        mix_bits(seed)
    };
    let count = if cfg!(debug_assertions) {
        60_000
    } else {
        300_000
    };
    // All numbers below `inserted` are inserted; only numbers below `expiring` may have expired.
    let (inserted, expiring) = (AtomicU64::new(first), AtomicU64::new(first));
    let done = AtomicBool::new(false);
    let distance = Distance::new(3, 64).unwrap();
    let (index, inserted, expiring, done) = (&index, &inserted, &expiring, &done);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut seq = first;
            while seq < first + count {
                let size = 1 + mix_bits(seq) % 300;
                let codes: Vec<u64> = (seq..seq + size).map(code).collect();
                index.insert_many(&codes, seq).unwrap();
                seq += size;
                inserted.store(seq, Ordering::SeqCst);
                if mix_bits(seq).is_multiple_of(4) {
                    // A batch has up to 300 numbers, and its slot is the first of them.
                    expiring.store(seq - 5000 + 300, Ordering::SeqCst);
                    index.expire_before(seq - 5000);
                }
            }
            done.store(true, Ordering::SeqCst);
        });
        for reader in 0..2u64 {
            scope.spawn(move || {
                let mut round = reader << 40;
                while !done.load(Ordering::SeqCst) {
                    round += 1;
                    let there = inserted.load(Ordering::SeqCst);
                    let wanted: Vec<u64> = (0..200)
                        .map(|at| {
                            there
                                .saturating_sub(1 + mix_bits(round ^ at << 20) % 4000)
                                .max(first)
                        })
                        .collect();
                    if there == first {
                        continue;
                    }
                    let queries: Vec<u64> = wanted.iter().map(|&seq| code(seq) ^ 0b101).collect();
                    let mut found = vec![Vec::new(); queries.len()];
                    let visit = |query: usize, SequenceNumber(seq), differing| {
                        assert_eq!(differing, 2);
                        assert_eq!(code(seq) ^ 0b101, queries[query]);
                        found[query].push(seq);
                    };
                    index.search_many(&queries, distance, visit).unwrap();
                    let gone = expiring.load(Ordering::SeqCst);
                    for (mut found, &wanted) in found.into_iter().zip(&wanted) {
                        assert!(wanted < gone || found.contains(&wanted));
                        let all = found.len();
                        found.sort_unstable();
                        found.dedup();
                        assert_eq!(found.len(), all, "something was found twice");
                    }
                }
            });
        }
    });
}

#[test]
fn search_inside_a_callback_works() {
    let index = live::<u64>(64, 3, 0);
    index.insert_many(&[1, 2, 3], 0).unwrap();
    let distance = Distance::new(3, 64).unwrap();
    let mut pairs = 0;
    let visit = |SequenceNumber(seq), _| {
        index
            .search_within(seq, distance, |_, _| pairs += 1)
            .unwrap();
        index.insert_code(u64::MAX, 0).unwrap();
    };
    index.search_within(0, distance, visit).unwrap();
    assert_eq!((pairs, index.len()), (9, 6));
}

#[test]
fn invalid_settings_are_refused_by_name() {
    let distance = |value| Distance::new(value, 64).unwrap();
    let refused = |result: Result<LiveIndex<u64>>| result.unwrap_err().to_string();
    assert!(refused(LiveIndex::new(65, distance(3))).contains("65 bits"));
    assert!(refused(LiveIndex::new(0, distance(0))).contains("0 bits"));
    assert!(refused(LiveIndex::new(64, distance(17))).contains("17"));
    assert!(refused(LiveIndex::new(8, distance(9))).contains("9"));

    let index = live::<u64>(40, 3, 0);
    let wide = index.insert_many(&[1, 1 << 40], 0).unwrap_err().to_string();
    assert!(
        wide.contains("0x10000000000") && wide.contains("40"),
        "{wide}"
    );
    assert!(index.is_empty());
    index.insert_code(1, 5).unwrap();
    let late = index.insert_code(1, 4).unwrap_err().to_string();
    assert!(late.contains("slot 4") && late.contains("slot 5"), "{late}");
    index.expire_before(9);
    assert!(index.insert_code(1, 8).is_err() && index.insert_code(1, 9).is_ok());
    let far = index.search_within(1, Distance::new(4, 40).unwrap(), |_, _| {});
    assert!(far.unwrap_err().to_string().contains("4 is above 3"));
}

#[test]
fn window_has_a_limit() {
    let mut log = CodeLog::<u64>::new(4, 100);
    log.check_admission(0, LiveIndex::<u64>::LIMIT, LiveIndex::<u64>::LIMIT)
        .unwrap();
    log.reserve_codes(1).unwrap();
    log.begin_slot(3);
    log.push_code(7);
    let full = log
        .check_admission(3, LiveIndex::<u64>::LIMIT, LiveIndex::<u64>::LIMIT)
        .unwrap_err();
    assert_eq!(full.kind(), crate::ErrorKind::Limit);
    assert!(full.to_string().contains("2147483648"), "{full}");
    log.expire_before(4);
    log.check_admission(4, LiveIndex::<u64>::LIMIT, LiveIndex::<u64>::LIMIT)
        .unwrap();
}
