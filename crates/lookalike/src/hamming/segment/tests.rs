use std::path::Path;

use lookalike_oracle::effort::choose_effort;

use super::*;
use crate::hamming::fingerprint_code::low_bits_mask;
use crate::hamming::plan::PlanRequest;
use crate::hamming::scan::scan_within;
use crate::hash::mix_bits;
use crate::types::Distance;

fn request(count: usize, bits: u32, distance: u32) -> PlanRequest {
    PlanRequest {
        count: count as u64,
        bits,
        distance: Distance::new(distance, bits).unwrap(),
        memory: None,
    }
}

fn random(bits: u32, seed: u64) -> u128 {
    let wide = u128::from(mix_bits(seed)) << 64 | u128::from(mix_bits(seed ^ 0x5555_0000));
    wide & low_bits_mask(bits)
}

fn flipped(code: u128, bits: u32, flips: u32, seed: u64) -> u128 {
    let mut code = code;
    let mut left = flips.min(bits);
    let mut at = seed;
    let original = code;
    while left > 0 {
        at = mix_bits(at + 1);
        let bit = (at % u64::from(bits)) as u32;
        if (code ^ original) >> bit & 1 == 0 {
            code ^= 1 << bit;
            left -= 1;
        }
    }
    code
}

/// Returns lists of fingerprints of several kinds, each with its name.
fn corpora(bits: u32, distance: u32, count: usize) -> Vec<(&'static str, Vec<u128>)> {
    let uniform: Vec<_> = (0..count as u64).map(|seed| random(bits, seed)).collect();
    let clustered = (0..count as u64).map(|seed| {
        let centre = random(bits, 1000 + seed % 7);
        flipped(
            centre,
            bits,
            (mix_bits(seed) % u64::from(distance + 3)) as u32,
            seed,
        )
    });
    let equal = vec![random(bits, 5); count];
    let half = low_bits_mask(bits / 2);
    let constant = uniform.iter().map(|code| code & half).collect();
    let other = uniform.iter().map(|code| code & !half).collect();
    let few = (0..count as u64)
        .map(|seed| random(bits, seed % 3))
        .collect();
    let clustered = clustered.collect();
    vec![
        ("uniform", uniform),
        ("clustered", clustered),
        ("equal", equal),
        ("constant upper half", constant),
        ("constant lower half", other),
        ("few", few),
        ("none", Vec::new()),
        ("one", vec![random(bits, 9)]),
    ]
}

fn check<C: FingerprintCode>(plan: &HammingPlan, name: &str, codes: &[u128]) {
    let (bits, distance) = (plan.fingerprint_bits(), plan.distance().get());
    let codes: Vec<C> = codes.iter().map(|&code| C::narrow_from(code)).collect();
    let segment = HammingSegment::build_index(plan, &codes[..]).unwrap();
    assert_eq!(segment.len(), codes.len());
    let mut back = vec![C::default(); codes.len()];
    segment.visit_rows(|row, code| back[row as usize] = code);
    assert_eq!(back, codes, "{plan} {name}");

    let mut queries: Vec<C> = codes.iter().copied().step_by(codes.len() / 8 + 1).collect();
    for at in 0..queries.len() {
        for flips in distance.saturating_sub(1)..=distance + 1 {
            let near = flipped(queries[at].widen(), bits, flips, at as u64);
            queries.push(C::narrow_from(near));
        }
    }
    queries.extend((0..5).map(|seed| C::narrow_from(random(bits, 777 + seed))));
    for k in [distance, distance.saturating_sub(1)] {
        let k = Distance::new(k, bits).unwrap();
        let mut expected = Vec::new();
        for (at, &query) in queries.iter().enumerate() {
            scan_within(&codes, query, k, |row, distance| {
                let row = row as u32;
                expected.push((at, SegmentMatch { distance, row }));
            });
        }
        expected.sort_unstable();
        for cpu in Cpu::detect_all() {
            let segment = segment.clone().with_instructions(cpu);
            let mut found = Vec::new();
            let cut =
                segment.search_queries(&queries, &SearchLimits::within_distance(k), |at, one| {
                    assert!(found.last().is_none_or(|&(last, _)| last <= at));
                    found.push((at, one));
                });
            assert!(cut.is_empty());
            found.sort_unstable();
            let differs = (0..found.len().max(expected.len()))
                .find(|&at| found.get(at) != expected.get(at))
                .map(|at| (found.get(at), expected.get(at)));
            assert_eq!(differs, None, "{plan} {name} {k:?} {}", cpu.name());
        }
    }
}

fn check_all(bits: u32, distance: u32, count: usize) {
    for (name, codes) in corpora(bits, distance, count) {
        let mut plans = HammingPlan::all_plans(&request(codes.len(), bits, distance)).unwrap();
        // Add the plans for far more and for far fewer fingerprints.
        for other in [1, 1 << 15] {
            if codes.len() < 100 && other > 1 {
                continue;
            }
            let request = request(other, bits, distance);
            let few = |plan: &HammingPlan| plan.key_bits() <= 16 || other == 1;
            plans.extend(
                HammingPlan::all_plans(&request)
                    .unwrap()
                    .into_iter()
                    .filter(few),
            );
        }
        // Few bytes allow only short keys for many fingerprints at large distances: their neighbourhoods by
        // long keys would take longer to build than all else. A single fingerprint has the longest keys.
        let stored = PlanRequest {
            memory: Some(9_000_000),
            ..request(codes.len(), bits, distance)
        };
        plans.push(HammingPlan::from_name("neighbourhoods", &stored).unwrap());
        for plan in plans {
            if bits <= 64 {
                check::<u64>(&plan, name, &codes);
            } else {
                check::<u128>(&plan, name, &codes);
            }
        }
    }
}

#[test]
fn every_plan_equals_the_scan_at_64_bits() {
    for distance in 0..=4 {
        check_all(64, distance, choose_effort(120, 500));
    }
    for distance in 5..=7 {
        check_all(64, distance, choose_effort(50, 150));
    }
}

#[test]
fn every_plan_equals_the_scan_at_128_bits() {
    for distance in [3, 7] {
        check_all(128, distance, choose_effort(60, 200));
    }
    for distance in [0, 1, 2, 4, 5, 6, 8, 9, 12, 16] {
        check_all(128, distance, choose_effort(15, 50));
    }
}

#[test]
fn every_plan_equals_the_scan_at_odd_widths() {
    for (bits, distance) in [(8, 2), (9, 0), (20, 3), (33, 1), (63, 3), (65, 3), (100, 2)] {
        check_all(bits, distance, choose_effort(80, 250));
    }
}

#[test]
fn large_distances_equal_the_scan() {
    for distance in 8..=16 {
        check_all(64, distance, choose_effort(7, 20));
    }
}

fn written<C: FingerprintCode>(segment: &HammingSegment<C>) -> Vec<u8> {
    let mut bytes = Vec::new();
    segment.write_file(&mut bytes).unwrap();
    bytes
}

fn opened(bytes: &[u8]) -> Result<HammingSegment<u64>> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), bytes).unwrap();
    HammingSegment::open_file(file.path())
}

fn answers(segment: &HammingSegment<u64>, queries: &[u64]) -> Vec<(usize, SegmentMatch)> {
    let mut found = Vec::new();
    segment.search_queries(
        queries,
        &SearchLimits::within_distance(segment.plan().distance()),
        |at, one| {
            found.push((at, one));
        },
    );
    found
}

/// Returns all plans at 64 bits and distance 3, and last the one with stored neighbourhoods.
fn with_neighbourhoods(count: usize) -> Vec<HammingPlan> {
    // Few bytes allow only short keys, so the files are small.
    let request = PlanRequest {
        memory: Some(100_000),
        ..request(count, 64, 3)
    };
    let mut plans = HammingPlan::all_plans(&request).unwrap();
    plans.push(HammingPlan::from_name("neighbourhoods", &request).unwrap());
    plans
}

#[test]
fn neighbourhoods_stop_at_the_limits() {
    let plan = HammingPlan::from_name("neighbourhoods", &request(10, 64, 3)).unwrap();
    let codes: Vec<u64> = (0..10_001).map(mix_bits).collect();
    let error = HammingSegment::build_index(&plan, &codes[..]).unwrap_err();
    assert!(error.to_string().contains("10001 fingerprints"), "{error}");
    let same = vec![7u64; 10_000];
    let segment = HammingSegment::build_index(&plan, &same[..]).unwrap();
    let limits = SearchLimits {
        distance: None,
        limit: 9,
    };
    let mut found = 0;
    assert_eq!(
        segment.search_queries(&[0, 7, 1 << 40], &limits, |_, _| found += 1),
        [0, 1]
    );
    assert_eq!(found, 18);
    assert_eq!(segment.distinct_count(), 1);
}

#[test]
fn files_round_trip_at_any_number_of_threads() {
    for (name, codes) in corpora(64, 3, 300) {
        let codes: Vec<_> = codes.iter().map(|&code| code as u64).collect();
        for plan in with_neighbourhoods(codes.len()) {
            let files: Vec<_> = [1, 2, 8]
                .iter()
                .map(|&threads| {
                    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
                    let pool = pool.build().unwrap();
                    pool.install(|| {
                        written(&HammingSegment::build_index(&plan, &codes[..]).unwrap())
                    })
                })
                .collect();
            assert!(files.iter().all(|file| file == &files[0]), "{plan} {name}");
            let segment = HammingSegment::build_index(&plan, &codes[..]).unwrap();
            let again = opened(&files[0]).unwrap();
            assert_eq!(written(&again), files[0]);
            assert_eq!(answers(&again, &codes), answers(&segment, &codes));
        }
    }
}

/// Returns the file of an index that is built into it, with slices of this many bytes.
fn built_to_file<C: FingerprintCode>(
    plan: &HammingPlan,
    codes: &[C],
    slice_bytes: usize,
) -> Vec<u8> {
    let memory = BuildMemory {
        slice_bytes,
        most_bytes: None,
    };
    let mut behind = Vec::new();
    let built = HammingSegment::build_file(plan, codes, memory, Vec::new, &mut behind);
    let mut file = built.unwrap();
    assert_eq!(file.len(), HammingSegment::<C>::front_length(plan));
    file.append(&mut behind);
    file
}

#[test]
fn files_built_in_parts_equal_those_of_an_index_in_memory() {
    for (name, codes) in corpora(64, 3, 300) {
        let codes: Vec<_> = codes.iter().map(|&code| code as u64).collect();
        for plan in with_neighbourhoods(codes.len()) {
            let expected = written(&HammingSegment::build_index(&plan, &codes[..]).unwrap());
            let file = built_to_file(&plan, &codes, 1 << 30);
            assert!(file == expected, "{plan} {name}");
        }
    }
}

#[test]
fn files_are_the_same_with_slices_of_any_size() {
    // Enough for four parts.
    let count = 40_000;
    let few = |seed: u64| mix_bits(seed % 30_000) & 0x3fff_ffff_ffff_ffff;
    let codes: Vec<_> = (0..count).map(few).collect();
    let wide: Vec<_> = (0..count).map(|seed| random(100, seed)).collect();
    for name in ["auto", "blocks", "22,21,21; 1,0,0"] {
        let plan = HammingPlan::from_name(name, &request(codes.len(), 64, 3)).unwrap();
        let expected = written(&HammingSegment::build_index(&plan, &codes[..]).unwrap());
        for slice_bytes in [1, 200_000, 1 << 30] {
            assert!(
                built_to_file(&plan, &codes, slice_bytes) == expected,
                "{plan} {slice_bytes}"
            );
        }
    }
    let plan = HammingPlan::choose_plan(&request(wide.len(), 100, 3)).unwrap();
    let expected = written(&HammingSegment::build_index(&plan, &wide[..]).unwrap());
    assert!(built_to_file(&plan, &wide, 300_000) == expected);
}

#[test]
fn too_many_fingerprints_of_one_bucket_are_refused() {
    let codes = vec![7u64; 20_000];
    let plan = HammingPlan::choose_plan(&request(codes.len(), 64, 3)).unwrap();
    let build = |most_bytes| {
        let memory = BuildMemory {
            slice_bytes: 100_000,
            most_bytes: Some(most_bytes),
        };
        HammingSegment::build_file(&plan, &codes[..], memory, Vec::new, &mut Vec::new())
    };
    let error = build(1_000_000).unwrap_err().to_string();
    assert!(
        error.contains("20000 of the fingerprints") && error.contains("allow 520000 bytes more"),
        "{error}"
    );
    build(1_520_000).unwrap();
}

#[test]
fn damaged_files_are_refused() {
    for (_, codes) in corpora(64, 3, 60) {
        let codes: Vec<_> = codes.iter().map(|&code| code as u64).collect();
        for plan in with_neighbourhoods(1000).iter().rev().step_by(3) {
            let file = written(&HammingSegment::build_index(plan, &codes[..]).unwrap());
            for length in [0, 1, 7, 8, 20, 24, 100, file.len() / 2, file.len() - 1] {
                assert!(opened(&file[..length.min(file.len() - 1)]).is_err());
            }
            let mut longer = file.clone();
            longer.push(0);
            assert!(opened(&longer).is_err());
            for seed in 0..20 {
                let bit = mix_bits(seed) as usize % (8 * file.len());
                let mut other = file.clone();
                other[bit / 8] ^= 1 << (bit % 8);
                // Only the padding between sections may change undetected.
                if let Ok(segment) = opened(&other) {
                    assert_eq!(written(&segment), file);
                }
            }
        }
    }
}

#[test]
fn file_errors_name_the_fault() {
    let plan = HammingPlan::choose_plan(&request(10, 64, 3)).unwrap();
    let file = written(&HammingSegment::build_index(&plan, &[1u64, 2, 3][..]).unwrap());
    let why = |bytes: &[u8]| opened(bytes).unwrap_err().to_string();
    assert!(why(b"some text").contains("not an index"));
    let mut other = file.clone();
    other[8] = 9;
    assert!(why(&other).contains("version 9"));
    // A machine of the other byte order would have written the version like this.
    let mut other = file.clone();
    other[8..12].reverse();
    file::mend(&mut other);
    assert!(why(&other).contains("byte order"));
    assert!(why(&file[..file.len() - 1]).contains("truncated"));
    let narrow = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(narrow.path(), &file).unwrap();
    let wide = HammingSegment::<u128>::open_file(narrow.path()).unwrap_err();
    assert!(wide.to_string().contains("64 bits"));
    assert!(HammingSegment::<u64>::open_file(Path::new("/nowhere/at/all")).is_err());
}

/// Changed values under correct checksums must not mislead a look-up.
#[test]
fn contradictory_files_are_refused_or_harmless() {
    let codes: Vec<_> = (0..400)
        .map(|seed| mix_bits(seed % 350) & !0xffff)
        .collect();
    for plan in HammingPlan::all_plans(&request(400, 64, 3)).unwrap() {
        let file = written(&HammingSegment::build_index(&plan, &codes[..]).unwrap());
        for seed in 0..choose_effort(20, 60) {
            let mut other = file.clone();
            let at = file::body(&file) + mix_bits(seed) as usize % (file.len() - file::body(&file));
            other[at] = mix_bits(seed + 1) as u8;
            file::mend(&mut other);
            if let Ok(segment) = opened(&other) {
                answers(&segment, &codes);
                segment.visit_rows(|row, _| assert!(row < 400));
            }
        }
    }
}

#[test]
fn limit_truncates_and_is_reported() {
    let codes = vec![5u64; 100];
    let segment = HammingSegment::build_index(
        &HammingPlan::choose_plan(&request(100, 64, 3)).unwrap(),
        &codes[..],
    )
    .unwrap();
    let search = SearchLimits {
        limit: 7,
        ..SearchLimits::within_distance(Distance::new(3, 64).unwrap())
    };
    let mut found = 0;
    assert_eq!(
        segment.search_queries(&[4, u64::MAX, 5], &search, |_, _| found += 1),
        [0, 2]
    );
    assert_eq!(found, 14);
    let search = SearchLimits {
        limit: 100,
        ..search
    };
    assert!(segment.search_queries(&[4], &search, |_, _| {}).is_empty());
}

#[test]
fn no_distance_finds_all_that_share_a_block() {
    let count = choose_effort(200, 600);
    let codes: Vec<_> = (0..count)
        .map(|seed| mix_bits(seed) & 0x00ff_00ff_0f0f_f0f0)
        .collect();
    for name in ["blocks", "permuted"] {
        let plan = HammingPlan::from_name(name, &request(count as usize, 64, 3)).unwrap();
        let segment = HammingSegment::build_index(&plan, &codes[..]).unwrap();
        let search = SearchLimits {
            distance: None,
            limit: usize::MAX,
        };
        let mut found = Vec::new();
        segment.search_queries(&codes, &search, |at, one| {
            found.push((at, one.row as usize))
        });
        found.sort_unstable();
        let shares = |a: u64, b: u64| {
            let tables = plan.plan_tables().iter();
            tables
                .clone()
                .any(|table| (a ^ b).count_ones_in(table.mask) <= table.radius)
        };
        let mut expected = Vec::new();
        for (at, &query) in codes.iter().enumerate() {
            let others = codes.iter().enumerate();
            expected.extend(
                others
                    .filter(|&(_, &code)| shares(query, code))
                    .map(|(row, _)| (at, row)),
            );
        }
        assert!(
            found == expected,
            "{plan}: {} found of {}",
            found.len(),
            expected.len()
        );
    }
}
