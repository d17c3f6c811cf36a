use std::sync::Mutex;

use lookalike_oracle::effort::choose_effort;

use super::*;
use crate::hamming::fingerprint_code::low_bits_mask;
use crate::hamming::scan::scan_within;
use crate::hash::mix_bits;

type Pairs = Vec<(u32, u32, u32)>;

fn sorted(found: Mutex<Vec<NearPair>>) -> Pairs {
    let found = found.into_inner().unwrap();
    let mut pairs: Pairs = found
        .iter()
        .map(|near| (near.a, near.b, near.distance))
        .collect();
    pairs.sort_unstable();
    assert!(
        pairs.windows(2).all(|two| two[0] != two[1]),
        "a pair came up twice"
    );
    pairs
}

fn collect(found: &Mutex<Vec<NearPair>>) -> impl Fn(&[NearPair]) -> ControlFlow<()> + Sync {
    |near| {
        assert!(!near.is_empty() && near.len() <= PAIRS_PER_VISIT);
        found.lock().unwrap().extend_from_slice(near);
        ControlFlow::Continue(())
    }
}

fn joined<C: FingerprintCode>(
    codes: &[C],
    bits: u32,
    distance: Distance,
    equal: EqualRows,
) -> Pairs {
    let found = Mutex::default();
    let _ = visit_near_rows(codes, bits, distance, equal, &collect(&found)).unwrap();
    sorted(found)
}

fn joined_across<C: FingerprintCode>(
    left: &[C],
    right: &[C],
    bits: u32,
    distance: Distance,
) -> Pairs {
    let found = Mutex::default();
    let _ = near_rows_across(
        left,
        right,
        bits,
        distance,
        EqualRows::Expanded,
        &collect(&found),
    )
    .unwrap();
    sorted(found)
}

fn scanned<C: FingerprintCode>(codes: &[C], distance: Distance) -> Pairs {
    let mut pairs = Pairs::new();
    for (row, &code) in codes.iter().enumerate() {
        let behind = row as u32 + 1;
        scan_within(&codes[row + 1..], code, distance, |other, differing| {
            pairs.push((row as u32, behind + other as u32, differing));
        });
    }
    pairs
}

fn scanned_across<C: FingerprintCode>(left: &[C], right: &[C], distance: Distance) -> Pairs {
    let mut pairs = Pairs::new();
    for (row, &code) in left.iter().enumerate() {
        scan_within(right, code, distance, |other, differing| {
            pairs.push((row as u32, other as u32, differing));
        });
    }
    pairs
}

fn wide(seed: u64) -> u128 {
    u128::from(mix_bits(seed)) << 64 | u128::from(mix_bits(!seed))
}

/// Flips `count` different bits.
fn flipped(code: u128, bits: u32, count: u32, seed: u64) -> u128 {
    let mut flips = 0u128;
    let mut at = seed;
    while flips.count_ones() < count.min(bits) {
        at = mix_bits(at.wrapping_add(1));
        flips |= 1 << (at % u64::from(bits));
    }
    code ^ flips
}

/// Returns lists of fingerprints of every kind, as 128-bit integers.
fn lists(bits: u32, distance: u32, length: u64) -> Vec<(&'static str, Vec<u128>)> {
    let all = low_bits_mask(bits);
    let k = u64::from(distance);
    let random = |seed: u64| wide(seed) & all;
    let make = |one: &dyn Fn(u64) -> u128| (0..length).map(one).collect::<Vec<_>>();
    let around = |centres: u64, spread: u64| {
        make(&|seed| {
            flipped(
                random(seed % centres),
                bits,
                (mix_bits(seed) % (spread + 1)) as u32,
                seed,
            )
        })
    };
    let third = bits / 3;
    vec![
        ("random", make(&random)),
        ("few centres", around(3, k + 1)),
        ("many centres", around(length / 3 + 1, k + 2)),
        ("one flip", around(2, 1)),
        ("all equal", make(&|_| random(5))),
        (
            "two values",
            make(&|seed| flipped(random(1), bits, (seed % 2) as u32 * distance, 9)),
        ),
        ("many equal", make(&|seed| random(seed % 7))),
        (
            "at the limit",
            make(&|seed| {
                let apart = k + [0, 1, 2][(mix_bits(seed) % 3) as usize];
                flipped(
                    random(seed / 2),
                    bits,
                    (apart.saturating_sub(1) * (seed % 2)) as u32,
                    seed,
                )
            }),
        ),
        (
            "upper bits constant",
            make(&|seed| random(seed) & low_bits_mask(bits - third)),
        ),
        (
            "lower bits constant",
            make(&|seed| random(seed) & !low_bits_mask(third)),
        ),
        (
            "middle bits constant",
            make(&|seed| random(seed) & !(low_bits_mask(2 * third) ^ low_bits_mask(third))),
        ),
        (
            "few bits vary",
            make(&|seed| random(seed) & random(77) & random(78) & random(79)),
        ),
        (
            "rare ones",
            make(&|seed| random(seed) & random(!seed) & wide(seed ^ 1 << 40)),
        ),
        ("ascending", make(&|seed| u128::from(seed) & all)),
        (
            "skewed",
            make(&|seed| {
                flipped(
                    random(mix_bits(seed) % 40),
                    bits,
                    (mix_bits(seed) % 9) as u32,
                    seed,
                ) & (all ^ low_bits_mask(2))
            }),
        ),
    ]
}

fn check<C: FingerprintCode>(bits: u32, distances: &[u32], length: u64) {
    for &distance in distances.iter().filter(|&&distance| distance < bits) {
        let limit = Distance::new(distance, bits).unwrap();
        for (name, list) in lists(bits, distance, length) {
            let codes: Vec<C> = list.into_iter().map(C::narrow_from).collect();
            let context = format!("{name}, {bits} bits, distance {distance}");
            let found = joined(&codes, bits, limit, EqualRows::Expanded);
            assert!(found == scanned(&codes, limit), "{context}");
            let (left, right) = codes.split_at(codes.len() / 3);
            let found = joined_across(left, right, bits, limit);
            assert!(
                found == scanned_across(left, right, limit),
                "{context}, across"
            );
        }
    }
}

#[test]
fn join_equals_the_scan() {
    for bits in [1, 2, 8, 20, 33, 63, 64] {
        check::<u64>(bits, &(0..=16).collect::<Vec<_>>(), choose_effort(70, 200));
    }
    for bits in [65, 100, 127, 128] {
        check::<u128>(bits, &[0, 1, 3, 5, 7, 11, 16], choose_effort(70, 200));
    }
    check::<u128>(40, &[0, 2, 3], choose_effort(250, 700));
}

fn tunings() -> Vec<JoinTuning> {
    let usual = JoinTuning::default();
    // Comparing appears expensive, so everything is split as far as possible.
    let deep = JoinTuning {
        small: 1,
        compare: 1e6,
        enough: 0.01,
        ..usual
    };
    vec![
        usual,
        deep,
        JoinTuning { deepest: 1, ..deep },
        JoinTuning {
            small: 3,
            deepest: 2,
            key_bits: 2,
            ..deep
        },
        JoinTuning {
            small: 8,
            large: 9,
            tile: 5,
            ..deep
        },
        JoinTuning {
            small: 2,
            large: 64,
            pass: 0.0,
            visit: 0.0,
            ..usual
        },
        JoinTuning {
            small: 2,
            large: 2,
            tile: 3,
            pass: 1e9,
            ..usual
        },
    ]
}

fn tuned<C: FingerprintCode>(
    codes: &[C],
    distance: Distance,
    cpu: Cpu,
    tuning: JoinTuning,
) -> Pairs {
    let found: Mutex<Vec<NearPair>> = Mutex::default();
    let distinct = DistinctCodes::new(codes, C::BITS).unwrap();
    assert_eq!(
        distinct.len(),
        codes.len(),
        "the codes of this test are distinct"
    );
    let mut work = JoinBuffers::new(&distinct).unwrap();
    let visit = |pairs: &[(C, C)]| {
        found.lock().unwrap().extend(pairs.iter().map(|&(a, b)| {
            let row = |code| distinct.rows_of_value(distinct.position_of(code))[0];
            NearPair {
                a: row(a).min(row(b)),
                b: row(a).max(row(b)),
                distance: a.hamming_distance(b),
            }
        }));
        ControlFlow::Continue(())
    };
    let _ = run_join([work.borrow_side()], distance, cpu, tuning, &visit);
    let mut values = work.codes.to_vec();
    values.sort_unstable();
    assert!(
        values == distinct.codes(),
        "the values are no longer all there"
    );
    sorted(found)
}

#[test]
fn pigeonhole_rule_holds_for_small_fingerprints() {
    for bits in 8..=choose_effort(8, 10) {
        let codes: Vec<u64> = (0..1 << bits).collect();
        // Spread the bits over 64, so that the bits of a key are not contiguous.
        let spread: Vec<u64> = codes
            .iter()
            .map(|code| (code * 0x0001_0204_0810_2041) & 0x8421_0842_1084_2108 | code)
            .collect();
        for distance in 0..bits as u32 {
            let limit = Distance::new(distance, bits as u32).unwrap();
            let expected = scanned(&codes, limit);
            for (at, tuning) in tunings().into_iter().enumerate() {
                let cpus = if at < 2 && bits < 9 {
                    Cpu::detect_all()
                } else {
                    vec![Cpu::detect_best()]
                };
                for cpu in cpus {
                    let found = tuned(&codes, limit, cpu, tuning);
                    assert!(found == expected, "{bits} bits, {distance}, {tuning:?}");
                }
                if bits == 8 {
                    let found = tuned(&spread, limit, Cpu::detect_best(), tuning);
                    assert!(
                        found == scanned(&spread, limit),
                        "spread, {distance}, {tuning:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn all_tunings_and_instruction_sets_agree() {
    for distance in [0, 1, 3, 8] {
        for (name, list) in lists(64, distance, choose_effort(60, 150)) {
            let mut codes: Vec<u64> = list.iter().map(|&code| code as u64).collect();
            codes.sort_unstable();
            codes.dedup();
            let wide: Vec<u128> = codes.iter().map(|&code| u128::from(code) << 40).collect();
            let limit = Distance::new(distance, 64).unwrap();
            let expected = scanned(&codes, limit);
            for (at, tuning) in tunings().into_iter().enumerate() {
                let cpus = if at < 2 {
                    Cpu::detect_all()
                } else {
                    vec![Cpu::detect_best()]
                };
                for cpu in cpus {
                    let context = format!("{name}, {distance}, {}, {tuning:?}", cpu.name());
                    assert!(tuned(&codes, limit, cpu, tuning) == expected, "{context}");
                    assert!(
                        tuned(&wide, limit, cpu, tuning) == expected,
                        "wide, {context}"
                    );
                }
            }
        }
    }
}

#[test]
fn large_lists_do_not_depend_on_threads() {
    let length = 150_000;
    let codes: Vec<u64> = (0..length)
        .map(|seed| match seed % 10 {
            0..6 => mix_bits(seed),
            6 => flipped(u128::from(mix_bits(seed / 30)), 64, (seed % 5) as u32, seed) as u64,
            7 => {
                mix_bits(7) ^ (mix_bits(seed) & mix_bits(!seed) & mix_bits(seed ^ 9) & 0x0f0f_0f0f)
            }
            _ => mix_bits(seed % 11),
        })
        .collect();
    let limit = Distance::new(3, 64).unwrap();
    let (left, right) = codes.split_at(50_000);
    let mut expected = None;
    for threads in [1, 2, 8] {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        let found = pool.install(|| {
            let mut across = Pairs::new();
            let found = Mutex::default();
            let _ = near_rows_across(left, right, 64, limit, EqualRows::Linked, &collect(&found))
                .unwrap();
            across.extend(sorted(found));
            (joined(&codes, 64, limit, EqualRows::Linked), across)
        });
        assert!(found.0.len() > 10_000 && found.1.len() > 1000);
        assert!(
            *expected.get_or_insert(found.clone()) == found,
            "{threads} threads"
        );
    }
    // A scan gives the expected number of near values.
    let distinct = DistinctCodes::new(&codes, 64).unwrap();
    let sample: Vec<u32> = (0..distinct.len() as u32).step_by(997).collect();
    let mut degrees = vec![0; distinct.len()];
    let found = Mutex::default();
    let _ = near_values(&distinct, limit, &collect(&found)).unwrap();
    for (a, b, _) in sorted(found) {
        degrees[a as usize] += 1;
        degrees[b as usize] += 1;
    }
    for value in sample {
        let mut count = 0;
        scan_within(
            distinct.codes(),
            distinct.codes()[value as usize],
            limit,
            |_, _| count += 1,
        );
        assert_eq!(degrees[value as usize] + 1, count);
    }
}

#[test]
fn equal_fingerprints_are_linked_or_expanded() {
    let codes = [7u64, 5, 7, 7, 5, 1 << 40];
    let limit = Distance::new(1, 64).unwrap();
    assert_eq!(
        joined(&codes, 64, limit, EqualRows::Linked),
        [(0, 1, 1), (0, 2, 0), (0, 3, 0), (1, 4, 0)]
    );
    assert_eq!(
        joined(&codes, 64, limit, EqualRows::Expanded).len(),
        3 + 1 + 6
    );
    let distinct = DistinctCodes::new(&codes, 64).unwrap();
    assert_eq!(distinct.codes(), [5, 7, 1 << 40]);
    assert_eq!(
        distinct.repeated_rows().collect::<Vec<_>>(),
        [&[1, 4][..], &[0, 2, 3]]
    );
    assert_eq!(distinct.rows_of_value(2), [5]);
}

#[test]
fn million_equal_fingerprints_cost_one() {
    let mut codes = vec![mix_bits(1); 1_000_000];
    codes.push(mix_bits(1) ^ 1);
    let limit = Distance::new(3, 64).unwrap();
    assert_eq!(
        joined(&codes, 64, limit, EqualRows::Linked).len(),
        1_000_000
    );
}

#[test]
fn join_can_be_cancelled() {
    let codes: Vec<u64> = (0..5000).collect();
    let limit = Distance::new(3, 64).unwrap();
    let calls = std::sync::atomic::AtomicUsize::new(0);
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .build()
        .unwrap();
    let next = pool.install(|| {
        visit_near_rows(&codes, 64, limit, EqualRows::Linked, &|_: &[NearPair]| {
            calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            ControlFlow::Break(())
        })
    });
    assert!(next.unwrap().is_break());
    assert_eq!(calls.into_inner(), 1);
}

#[test]
fn unfitting_fingerprints_are_refused_as_a_whole() {
    let error = DistinctCodes::new(&[3u64, 256], 8).unwrap_err();
    assert!(error.to_string().contains("0x100 in row 1"), "{error}");
    let limit = Distance::new(3, 64).unwrap();
    for codes in [&[][..], &[9]] {
        assert!(joined(codes, 64, limit, EqualRows::Expanded).is_empty());
        assert!(joined_across(codes, &[], 64, limit).is_empty());
        assert!(joined_across::<u64>(&[], codes, 64, limit).is_empty());
    }
    assert_eq!(
        joined_across(&[9u64], &[9, 8], 64, limit),
        [(0, 0, 0), (0, 1, 1)]
    );
}

#[test]
fn any_distinct_values_are_sorted() {
    for (_, list) in lists(127, 3, 3000) {
        let distinct = DistinctCodes::new(&list, 127).unwrap();
        let mut expected: Vec<(u128, u32)> = list.iter().copied().zip(0..).collect();
        expected.sort_unstable();
        let rows = |at: usize| {
            let value = distinct.codes()[at];
            assert_eq!(distinct.position_of(value), at as u32);
            distinct
                .rows_of_value(at as u32)
                .iter()
                .map(move |&row| (value, row))
        };
        let found: Vec<_> = (0..distinct.len()).flat_map(rows).collect();
        assert!(found == expected);
    }
}
