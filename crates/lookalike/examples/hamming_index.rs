//! Builds an index of fingerprints, searches it within a distance, and compares the answers with a scan.
//!
//! ```text
//! cargo run --release -p lookalike --example hamming_index
//! ```
#![expect(clippy::print_stdout, reason = "an example")]

use std::error::Error;

use lookalike::hamming::scan::scan_within;
use lookalike::hamming::{HammingPlan, HammingSegment, PlanRequest, SearchLimits};
use lookalike::{Distance, value_hash};

const BITS: u32 = 64;
const FINGERPRINTS: u64 = 200_000;

/// Returns a copy of a fingerprint in which `count` bits differ, at most nine.
fn flip_bits(fingerprint: u64, count: u32) -> u64 {
    (0..count).fold(fingerprint, |bits, at| bits ^ 1 << (7 * at))
}

fn main() -> Result<(), Box<dyn Error>> {
    // Hashes of numbers stand for the SimHash fingerprints of unrelated documents.
    let fingerprints: Vec<u64> = (0..FINGERPRINTS)
        .map(|number| value_hash(&number.to_le_bytes()))
        .collect();
    // Query i is fingerprint 1,000 · i with i bits changed.
    let queries: Vec<u64> = (0..6u32)
        .map(|changed| flip_bits(fingerprints[1000 * changed as usize], changed))
        .collect();

    // The plan cuts fingerprints into blocks, so that two within distance 3 nearly agree in some block.
    let distance = Distance::new(3, BITS)?;
    let plan = HammingPlan::choose_plan(&PlanRequest {
        count: FINGERPRINTS,
        bits: BITS,
        distance,
        memory: None,
    })?;
    let index: HammingSegment<u64> = HammingSegment::build_index(&plan, &fingerprints[..])?;
    println!(
        "{} fingerprints, blocks {}, {:.1} bytes each",
        index.len(),
        plan.plan_shape(),
        index.size_in_bytes() as f64 / index.len() as f64
    );
    println!(
        "a look-up compares about {:.0} of them",
        plan.predict_cost(FINGERPRINTS).candidates
    );

    // All queries are answered at once, because their memory accesses then overlap.
    let mut found = vec![Vec::new(); queries.len()];
    index.search_queries(
        &queries,
        &SearchLimits::within_distance(distance),
        |query, near| {
            found[query].push((near.row as usize, near.distance));
        },
    );

    for (changed, (query, mut by_index)) in (0u32..).zip(queries.iter().zip(found)) {
        // The scan compares with every fingerprint: it is the definition of the answer.
        let mut by_scan = Vec::new();
        scan_within(&fingerprints, *query, distance, |row, distance| {
            by_scan.push((row, distance));
        });
        by_index.sort_unstable();
        println!("query {query:016x}: (row, distance) {by_index:?}");
        assert_eq!(by_index, by_scan);
        // A fingerprint with at most 3 changed bits finds the one that it was made from.
        let original = (1000 * changed as usize, changed);
        assert_eq!(by_index.contains(&original), changed <= distance.get());
    }
    Ok(())
}

#[test]
fn example_holds() -> Result<(), Box<dyn Error>> {
    main()
}
