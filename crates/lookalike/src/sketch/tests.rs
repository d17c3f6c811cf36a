//! Worked examples, the plain loops that define the sketches, and statistics of the sketches.

use std::collections::BTreeSet;

use super::*;
use crate::arch::Cpu;
use crate::hash::mix_bits;
use crate::recipe::{MinHashFamily, MinHashRecipe, Recipe, SimHashRecipe, WeightScheme};
use crate::text::{AnalysisScratch, TextAnalysis, TextAnalyzer, TextToken};

/// Makes analyses whose features stand for given numbers.
struct Features {
    analyzer: TextAnalyzer,
    scratch: AnalysisScratch,
}

impl Features {
    fn new() -> Self {
        let analyzer = TextAnalyzer::new(&Recipe::built_in("words-1").unwrap());
        Self {
            analyzer,
            scratch: AnalysisScratch::default(),
        }
    }

    fn of(&mut self, numbers: impl IntoIterator<Item = u64>) -> TextAnalysis<'_> {
        let names: Vec<String> = numbers
            .into_iter()
            .map(|number| number.to_string())
            .collect();
        let features = names.iter().map(|name| (&**name, 1.0));
        self.analyzer.analyze_features(features, &mut self.scratch)
    }
}

fn all_features(analysis: &TextAnalysis<'_>) -> Vec<u64> {
    let mut all = Vec::new();
    analysis.visit_chunks(|features| all.extend_from_slice(features));
    all
}

/// Returns the signs of counters as bits, highest first.
fn bits_of(counters: &[i64]) -> u128 {
    counters
        .iter()
        .fold(0, |bits, &counter| bits << 1 | u128::from(counter > 0))
}

#[test]
fn vote_equals_worked_example() {
    assert_eq!(
        count_weighted_votes(6, [(0b100101, 4)]),
        [4, -4, -4, 4, -4, 4]
    );
    assert_eq!(
        count_weighted_votes(6, [(0b101011, 5)]),
        [5, -5, 5, -5, 5, 5]
    );
    let sum = count_weighted_votes(6, [(0b100101, 4), (0b101011, 5)]);
    assert_eq!(sum, [9, -9, 1, -1, 1, 9]);
    assert_eq!(bits_of(&sum), 0b101011);
    assert_eq!(
        count_weighted_votes(8, [(0b10011100, 5)]),
        [5, -5, -5, 5, 5, 5, -5, -5]
    );
    assert_eq!(
        count_weighted_votes(8, [(0b01110101, 4)]),
        [-4, 4, 4, 4, -4, 4, -4, 4]
    );
    let sum = count_weighted_votes(8, [(0b10011100, 5), (0b01110101, 4)]);
    assert_eq!(sum, [1, -1, -1, 9, 1, 9, -9, -1]);
    assert_eq!(bits_of(&[18, 9, -6, -9, 22, -35, 12, -5]), 0b11001010);
    assert_eq!(
        bits_of(&[1, 0, -1]),
        0b100,
        "above 0, not at least 0 and not above 1"
    );
}

#[test]
fn distances_equal_worked_examples() {
    let distance = |a: u128, b: u128| (a ^ b).count_ones();
    assert_eq!(distance(0b10101, 0b00110), 3);
    assert_eq!(distance(0b1011101, 0b1001001), 2);
    assert_eq!(distance(0b101011, 0b101000), 2);
    let a = 0b1000010010101101111111100000101011010001001111100001001011001011;
    let b = 0b1000010010101101011111100000101011010001001111100001101010001011;
    assert_eq!(distance(a, b), 3);
    let codes = [851_459_198, 847_263_864, 984_968_088];
    assert_eq!(distance(codes[0], codes[1]), 4);
    assert_eq!(distance(codes[0], codes[2]), 16);
    assert_eq!(distance(codes[1], codes[2]), 12);
}

#[test]
fn bigrams_equal_worked_example() {
    let recipe = Recipe {
        ngram: 2,
        ..Recipe::built_in("characters-3").unwrap()
    };
    let analyzer = TextAnalyzer::new(&recipe);
    let text = "the cat sat on the mat";
    let characters: Vec<char> = analyzer
        .list_tokens(text)
        .iter()
        .map(|token| match token {
            TextToken::Character(character) => *character,
            TextToken::Word(word) => panic!("'{word}' is not a character"),
        })
        .collect();
    assert_eq!(String::from_iter(&characters), text);
    let bigrams: BTreeSet<[char; 2]> = characters.windows(2).map(|two| [two[0], two[1]]).collect();
    let expected = [
        "th", "he", "e ", " c", "ca", "at", "t ", " s", "sa", " o", "on", "n ", " t", " m", "ma",
    ];
    let expected: BTreeSet<[char; 2]> = expected
        .iter()
        .map(|two| [two.chars().next().unwrap(), two.chars().last().unwrap()])
        .collect();
    assert_eq!(bigrams, expected);
    let mut distinct = Vec::new();
    analyzer
        .analyze_text(text, &mut AnalysisScratch::default())
        .append_features(&mut distinct);
    assert_eq!(distinct.len(), 15);
}

/// Returns the feature whose bits decide ties: the one whose product with an odd constant is smallest.
fn tie_feature(features: &[u64]) -> u64 {
    *features
        .iter()
        .min_by_key(|feature| feature.wrapping_mul(0xd129_42f0_4efb_2c4d))
        .unwrap()
}

/// Returns the 128-bit hash of a feature: the feature itself, and above it the feature mixed once more.
fn wide(feature: u64) -> u128 {
    u128::from(feature) | u128::from(mix_bits(feature ^ 0x6a09_e667_f3bc_c909)) << 64
}

fn plain_simhash(bits: u32, weights: WeightScheme, features: &[u64]) -> u128 {
    let mut features = features.to_vec();
    if weights == WeightScheme::Binary {
        features.sort_unstable();
        features.dedup();
    }
    let low_bits = |hash: u128| hash & u128::MAX >> (128 - bits);
    let hashes = features.iter().map(|&feature| (low_bits(wide(feature)), 1));
    let tie = wide(tie_feature(&features));
    let mut fingerprint = 0;
    for (at, counter) in count_weighted_votes(bits, hashes).into_iter().enumerate() {
        let bit = bits - 1 - at as u32;
        let set = counter > 0 || counter == 0 && tie >> bit & 1 == 1;
        fingerprint |= u128::from(set) << bit;
    }
    fingerprint
}

#[test]
fn fingerprints_equal_the_vote() {
    let mut made = Features::new();
    // Counts around the size of a round of carry-save addition and of a chunk of features.
    let counts = (1u64..=40).chain([126, 127, 128, 129, 130, 144, 145, 255, 256, 257, 272, 273]);
    for count in counts.chain([1000, 1023, 1024, 1025, 1200, 4000]) {
        for distinct in [count, count.div_ceil(2), 3] {
            let numbers = (0..count).map(|number| mix_bits(count) + number % distinct);
            let analysis = made.of(numbers);
            let features = all_features(&analysis);
            assert_eq!(features.len() as u64, count);
            for weights in [WeightScheme::Frequency, WeightScheme::Binary] {
                for bits in [8, 9, 32, 63, 64, 65, 100, 127, 128] {
                    let expected = plain_simhash(bits, weights, &features);
                    for cpu in Cpu::detect_all() {
                        let hasher = SimHasher::new(
                            &SimHashRecipe {
                                bits,
                                weights,
                                ..SimHashRecipe::default()
                            },
                            cpu,
                        );
                        assert_eq!(
                            hasher.fingerprint(&analysis),
                            Some(expected),
                            "{bits} bits of {count} features, {weights:?}, {}",
                            cpu.name()
                        );
                    }
                }
            }
        }
    }
}

/// The text has more features than the planes of one lane can hold, and bits that all features have.
#[test]
fn many_features_equal_the_vote() {
    let mut made = Features::new();
    for distinct in [1, 3, 1 << 40] {
        let analysis = made.of((0..20_000).map(|number| number % distinct));
        let expected = plain_simhash(64, WeightScheme::Frequency, &all_features(&analysis));
        for cpu in Cpu::detect_all() {
            let hasher = SimHasher::new(&SimHashRecipe::default(), cpu);
            assert_eq!(
                hasher.fingerprint(&analysis),
                Some(expected),
                "{}",
                cpu.name()
            );
        }
    }
}

#[test]
fn given_weights_vote() {
    let analyzer = TextAnalyzer::new(&Recipe::default());
    let mut scratch = AnalysisScratch::default();
    let given = [
        ("a", 4.0),
        ("b", 5.0),
        ("c", 0.25),
        ("d", 0.5),
        ("e", -1.5),
        ("f", 0.0),
    ];
    let weighted: Vec<(u128, i64)> = given
        .iter()
        .map(|&(feature, weight)| {
            let analysis = analyzer.analyze_features([(feature, 1.0)], &mut scratch);
            (wide(all_features(&analysis)[0]), (weight * 4.0) as i64)
        })
        .collect();
    for bits in [8, 64, 100, 128] {
        let low_bits = |hash: u128| hash & u128::MAX >> (128 - bits);
        let counters = count_weighted_votes(
            bits,
            weighted
                .iter()
                .map(|&(hash, weight)| (low_bits(hash), weight)),
        );
        assert!(
            counters.iter().all(|&counter| counter != 0),
            "the example has no ties"
        );
        for cpu in Cpu::detect_all() {
            let hasher = SimHasher::new(
                &SimHashRecipe {
                    bits,
                    weights: WeightScheme::Frequency,
                    ..SimHashRecipe::default()
                },
                cpu,
            );
            let analysis = analyzer.analyze_features(given, &mut scratch);
            assert_eq!(hasher.fingerprint(&analysis), Some(bits_of(&counters)));
        }
    }
    // A weight has the same effect as that number of occurrences, also on ties.
    let recipe = SimHashRecipe {
        bits: 128,
        weights: WeightScheme::Frequency,
        ..SimHashRecipe::default()
    };
    let hasher = SimHasher::new(&recipe, Cpu::detect_best());
    for times in [[3, 1, 1], [2, 1, 1], [2, 2, 2], [5, 3, 2]] {
        let names = ["a", "b", "c"];
        let given = names.into_iter().zip(times.map(f64::from));
        let weighted = hasher.fingerprint(&analyzer.analyze_features(given, &mut scratch));
        let repeated = (0..5).flat_map(|round| (0..3).filter(move |&at| round < times[at]));
        let repeated = repeated.map(|at| (names[at], 1.0));
        let counted = hasher.fingerprint(&analyzer.analyze_features(repeated, &mut scratch));
        assert_eq!(weighted, counted, "{times:?}");
    }
}

#[test]
fn texts_without_features_have_no_sketch() {
    let analyzer = TextAnalyzer::new(&Recipe::default());
    let mut scratch = AnalysisScratch::default();
    for text in ["", "!", "word"] {
        let analysis = analyzer.analyze_text(text, &mut scratch);
        let recipe = Recipe::default();
        assert_eq!(
            SimHasher::new(&recipe.simhash, Cpu::detect_best()).fingerprint(&analysis),
            None
        );
        let mut signature = [0; 128];
        assert!(
            !MinHasher::new(&recipe.minhash, Cpu::detect_best())
                .write_signature(&analysis, &mut signature)
        );
    }
}

#[test]
fn ties_are_unbiased() {
    const TEXTS: u64 = 4000;
    let mut made = Features::new();
    let hasher = SimHasher::new(
        &SimHashRecipe {
            bits: 128,
            weights: WeightScheme::Frequency,
            ..SimHashRecipe::default()
        },
        Cpu::detect_best(),
    );
    for count in [2, 4, 10, 30, 100] {
        let mut ones = [0u32; 128];
        for text in 0..TEXTS {
            let numbers = (0..count).map(|number| mix_bits((text * 1000 + number + count) << 32));
            let fingerprint = hasher.fingerprint(&made.of(numbers)).unwrap();
            (0..128).for_each(|bit| ones[bit] += (fingerprint >> bit & 1) as u32);
        }
        // Each of the 128 binomial counts is within five standard deviations (√4000/2 = 31.6).
        for (bit, &ones) in ones.iter().enumerate() {
            let off = ones.abs_diff(TEXTS as u32 / 2);
            assert!(
                off < 5 * 32,
                "{count} features, bit {bit}: {ones} of {TEXTS}"
            );
        }
        let all: u32 = ones.iter().sum();
        // The bits of one text are independent: √(4000 · 128)/2 = 358.
        assert!(
            all.abs_diff(TEXTS as u32 * 64) < 5 * 358,
            "{count} features: {all}"
        );
    }
}

#[test]
fn distance_estimates_the_angle() {
    const PAIRS: u64 = 600;
    let mut made = Features::new();
    for bits in [64, 128] {
        let recipe = SimHashRecipe {
            bits,
            weights: WeightScheme::Frequency,
            ..SimHashRecipe::default()
        };
        let hasher = SimHasher::new(&recipe, Cpu::detect_best());
        // Two sets of `size` features share `shared` of them, so their cosine is shared / size.
        for (size, shared) in [
            (400, 396),
            (400, 380),
            (400, 360),
            (401, 300),
            (400, 200),
            (300, 0),
        ] {
            let mut sum = 0;
            for pair in 0..PAIRS {
                let number = |at: u64| mix_bits(pair << 32 | at);
                let a = hasher.fingerprint(&made.of((0..size).map(number))).unwrap();
                let other = (0..shared).chain(size..2 * size - shared);
                let b = hasher.fingerprint(&made.of(other.map(number))).unwrap();
                sum += (a ^ b).count_ones();
            }
            let mean = f64::from(sum) / PAIRS as f64;
            let angle = (shared as f64 / size as f64).acos() / std::f64::consts::PI;
            let expected = f64::from(bits) * angle;
            let error = (f64::from(bits) * angle * (1.0 - angle) / PAIRS as f64).sqrt();
            // Five standard errors, and 3 % because the sets are finite.
            let tolerance = 5.0 * error + 0.03 * expected;
            assert!(
                (mean - expected).abs() < tolerance,
                "{bits} bits, {shared} of {size}: {mean}, expected {expected} ± {tolerance}"
            );
        }
    }
}

/// Runs all rounds of fast similarity sketching, without an early end. In each of the first 128, every
/// feature goes to one slot; in each of the others, all features go to the same slot.
fn plain_fast_similarity(slots: usize, features: &[u64]) -> Vec<u32> {
    let mut least = vec![u32::MAX; slots];
    for round in 0..128 + slots {
        for &feature in features {
            let hash = if round == 0 {
                feature
            } else {
                mix_bits(feature ^ (round as u64) << 32)
            };
            let slot = match round.checked_sub(128) {
                Some(slot) => slot,
                None => (((hash >> 32) * slots as u64) >> 32) as usize,
            };
            let rank = (hash & 0xff_ffff).min(0xff_fffe) as u32;
            least[slot] = least[slot].min((round as u32) << 24 | rank);
        }
    }
    least
}

fn plain_affine(slots: usize, features: &[u64]) -> Vec<u32> {
    let number = |at: usize| mix_bits(0x6d69_6e68_6173_6800 ^ at as u64) as u32;
    (0..slots)
        .map(|slot| {
            let (factor, summand) = (u64::from(number(slot) | 1), u64::from(number(slot + 128)));
            let value = |feature: &u64| ((factor * (feature >> 32) + summand) % (1 << 32)) as u32;
            features.iter().map(value).min().unwrap()
        })
        .collect()
}

const FAMILIES: [MinHashFamily; 2] = [MinHashFamily::FastSimilarity, MinHashFamily::Affine32];

#[test]
fn signatures_equal_the_plain_loops() {
    let mut made = Features::new();
    for count in (1..=20).chain([50, 100, 127, 128, 129, 300, 700, 1023, 1024, 1025, 3000]) {
        for repeats in [1, 2] {
            let analysis =
                made.of((0..count * repeats).map(|number| mix_bits(count) + number % count));
            let features = all_features(&analysis);
            for slots in [16, 17, 63, 64, 65, 100, 127, 128] {
                for family in FAMILIES {
                    let expected = match family {
                        MinHashFamily::FastSimilarity => plain_fast_similarity(slots, &features),
                        _ => plain_affine(slots, &features),
                    };
                    for cpu in Cpu::detect_all() {
                        let recipe = MinHashRecipe {
                            family,
                            slots: slots as u32,
                            seed: None,
                        };
                        let mut signature = vec![0; slots];
                        assert!(
                            MinHasher::new(&recipe, cpu).write_signature(&analysis, &mut signature)
                        );
                        assert_eq!(
                            signature,
                            expected,
                            "{family:?}, {slots} slots, {count} features, {}",
                            cpu.name()
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn equal_slots_are_counted() {
    for length in 0..300 {
        let a: Vec<u32> = (0..length).map(|at| mix_bits(at) as u32 % 3).collect();
        let b: Vec<u32> = (0..length)
            .map(|at| mix_bits(at + 1000) as u32 % 3)
            .collect();
        let expected = a.iter().zip(&b).filter(|(a, b)| a == b).count();
        assert_eq!(equal_slots(&a, &b), expected);
        assert_eq!(equal_slots(&a, &a), a.len());
    }
}

/// Returns the mean error, and the root mean square error relative to √(J(1−J)/k), over random pairs of sets
/// that share `shared` of the `union` features in their union.
fn errors(family: MinHashFamily, slots: usize, union: u64, shared: u64, pairs: u64) -> (f64, f64) {
    let recipe = MinHashRecipe {
        family,
        slots: slots as u32,
        seed: None,
    };
    let hasher = MinHasher::new(&recipe, Cpu::detect_best());
    let mut made = Features::new();
    let mut sign = |numbers: Vec<u64>| {
        let mut signature = vec![0; slots];
        hasher.write_signature(&made.of(numbers), &mut signature);
        signature
    };
    let jaccard = shared as f64 / union as f64;
    let (mut sum, mut squares) = (0.0, 0.0);
    for pair in 0..pairs {
        let number = |at: u64| mix_bits(mix_bits(union << 40 | shared << 20 | pair) ^ at);
        let own = union - shared;
        let a = sign((0..shared + own / 2).map(number).collect());
        let b = sign(
            (0..shared)
                .chain(shared + own / 2..union)
                .map(number)
                .collect(),
        );
        let error = equal_slots(&a, &b) as f64 / slots as f64 - jaccard;
        sum += error;
        squares += error * error;
    }
    let theory = (jaccard * (1.0 - jaccard) / slots as f64).sqrt();
    (sum / pairs as f64, (squares / pairs as f64).sqrt() / theory)
}

#[test]
fn estimate_has_the_predicted_bias_and_variance() {
    // Size of the union, number of pairs, and error of fast similarity sketching relative to that of
    // independent functions. The variance is half as large while there are fewer features than slots.
    for (union, pairs, fast) in [
        (5, 1500, 0.71),
        (20, 1500, 0.71),
        (60, 800, 0.71),
        (150, 600, 0.75),
        (600, 300, 0.92),
        (3000, 100, 1.0),
    ] {
        for (family, expected) in FAMILIES.into_iter().zip([fast, 1.0]) {
            for (slots, fifths) in [(128, 1), (128, 4), (100, 3)] {
                let shared = union * fifths / 5;
                let (bias, ratio) = errors(family, slots, union, shared, pairs);
                let jaccard = shared as f64 / union as f64;
                let deviation = expected * (jaccard * (1.0 - jaccard) / slots as f64).sqrt();
                let what =
                    format!("{family:?}, {slots} slots, {shared} of {union}: {bias} {ratio}");
                // Five standard errors of the mean, and of the standard deviation of normally distributed
                // errors.
                let pairs = pairs as f64;
                assert!(bias.abs() < 5.0 * deviation / pairs.sqrt(), "{what}");
                let tolerance = 5.0 / (2.0 * pairs).sqrt();
                assert!((ratio / expected - 1.0).abs() < tolerance, "{what}");
            }
        }
    }
}

#[test]
fn equal_and_disjoint_sets_are_exact() {
    for family in FAMILIES {
        for size in [1, 2, 10, 64, 500, 5000] {
            let hasher = MinHasher::new(
                &MinHashRecipe {
                    family,
                    slots: 128,
                    seed: None,
                },
                Cpu::detect_best(),
            );
            let mut made = Features::new();
            let mut sign = |numbers: Vec<u64>| {
                let mut signature = vec![0; 128];
                hasher.write_signature(&made.of(numbers), &mut signature);
                signature
            };
            for trial in 0..20 {
                let base = mix_bits(size + trial) >> 1;
                let a = sign((base..base + size).collect());
                let shuffled_and_repeated = (base..base + size).rev().chain(base..base + 1);
                assert_eq!(sign(shuffled_and_repeated.collect()), a);
                let apart = sign((base + size..base + 2 * size).collect());
                // The probability that a slot is equal by chance is below 1/10,000.
                assert!(equal_slots(&a, &apart) <= 1);
            }
        }
    }
}

#[test]
fn minima_equal_worked_example() {
    let order = ['b', 'e', 'a', 'd', 'c'];
    let sets: [&[char]; 4] = [&['a', 'd'], &['c'], &['b', 'd', 'e'], &['a', 'c', 'd']];
    let least = sets.map(|set| *order.iter().find(|element| set.contains(element)).unwrap());
    assert_eq!(least, ['a', 'c', 'b', 'a']);
}
