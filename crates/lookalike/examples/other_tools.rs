//! Makes the fingerprints of the Python package `simhash` and the signatures of `datasketch`, bit for bit,
//! and compares them.
//!
//! ```text
//! cargo run -p lookalike --example other_tools
//! ```
//!
//! The numbers in the assertions are those that the two packages print, in versions 2.1.2 and 2.0.0.
#![expect(clippy::print_stdout, reason = "an example")]

use std::error::Error;

use lookalike::similarity::jaccard_index;
use lookalike::sketch::{MinHasher, SimHasher, equal_slots};
use lookalike::text::{AnalysisScratch, TextAnalyzer};
use lookalike::{Cpu, Recipe, Result};

const TEXTS: [&str; 4] = [
    "The night train to the coast leaves at ten past eleven and arrives before breakfast.",
    "The night train to the coast leaves at ten past eleven and arrives after breakfast.",
    "海边的夜车十一点十分出发，早饭之前到达。",
    "A bakery on the corner sells rye bread until noon.",
];

/// Returns the fingerprint of `Simhash(text).value` for every text. Its features are four characters each.
fn simhashes(texts: &[&str]) -> Result<Vec<u128>> {
    let recipe = Recipe::built_in("1e0ng")?;
    let analyzer = TextAnalyzer::new(&recipe);
    let hasher = SimHasher::new(&recipe.simhash, Cpu::detect_best());
    let mut scratch = AnalysisScratch::default();
    let fingerprint =
        |text: &&str| hasher.original_fingerprint(&analyzer.analyze_text(text, &mut scratch));
    // The package gives a fingerprint to every text, so none is missing here.
    Ok(texts.iter().filter_map(fingerprint).collect())
}

/// A text as `datasketch` and as its own set of features.
struct Signed {
    signature: Vec<u32>,
    features: Vec<u64>,
}

/// Returns the signature of `MinHash(num_perm=128, seed=1)` for every text, with the parts between white
/// space as its features.
fn signatures(texts: &[&str]) -> Result<Vec<Signed>> {
    let recipe = Recipe::built_in("datasketch-affine32")?;
    let analyzer = TextAnalyzer::new(&recipe);
    let hasher = MinHasher::new(&recipe.minhash, Cpu::detect_best());
    let mut scratch = AnalysisScratch::default();
    let signed = texts.iter().map(|text| {
        let analysis = analyzer.analyze_text(text, &mut scratch);
        let mut signature = vec![0; hasher.slot_count()];
        hasher.original_signature(&analysis, &mut signature);
        let mut features = Vec::new();
        analysis.append_features(&mut features);
        Signed {
            signature,
            features,
        }
    });
    Ok(signed.collect())
}

fn main() -> Result<(), Box<dyn Error>> {
    let fingerprints = simhashes(&TEXTS)?;
    for (fingerprint, text) in fingerprints.iter().zip(TEXTS) {
        println!("{fingerprint:016x} {text}");
    }
    let distance = |a: usize, b: usize| (fingerprints[a] ^ fingerprints[b]).count_ones();
    println!(
        "simhash: the first two texts differ in {} of 64 bits",
        distance(0, 1)
    );
    println!(
        "simhash: the first and the last differ in {} of 64 bits",
        distance(0, 3)
    );
    assert_eq!(
        fingerprints,
        [
            0x3d6d_cef3_9759_e113,
            0x3d6d_ca77_97fb_6112,
            0x4229_361c_21f7_18a6,
            0xc67b_afc2_df2b_891d,
        ]
    );
    assert_eq!((distance(0, 1), distance(0, 3)), (8, 28));

    let signed = signatures(&TEXTS)?;
    for other in [1, 3] {
        let (a, b) = (&signed[0], &signed[other]);
        let equal = equal_slots(&a.signature, &b.signature);
        let slots = a.signature.len();
        println!(
            "datasketch: texts 0 and {other} share {equal} of {slots} slots, estimate {:.3}, Jaccard {:.3}",
            equal as f64 / slots as f64,
            jaccard_index(&a.features, &b.features).get()
        );
    }
    assert_eq!(
        signed[0].signature[..4],
        [228_396_827, 535_603_112, 127_903_570, 391_048_611]
    );
    assert_eq!(equal_slots(&signed[0].signature, &signed[1].signature), 113);
    assert_eq!(equal_slots(&signed[0].signature, &signed[3].signature), 3);
    // The first two texts have 15 words each and share 14 of them.
    assert_eq!(
        jaccard_index(&signed[0].features, &signed[1].features).get(),
        14.0 / 16.0
    );

    // Fingerprints of different recipes are never compared: the identity of the recipe tells them apart.
    let [own, other] =
        ["default", "1e0ng"].map(|name| Recipe::built_in(name).map(|it| it.recipe_id()));
    assert_ne!(own?, other?);
    Ok(())
}

#[test]
fn example_holds() -> Result<(), Box<dyn Error>> {
    main()
}
