//! Edit distance of two short sentences compared with the textbook's algorithm, and a check of
//! every measure against its definition on strings.

use std::hint::black_box;
use std::time::Instant;

use anyhow::{Result, ensure};
use lookalike::similarity::{
    SequenceMeasure, cosine_similarity, indel_distance, levenshtein_distance,
};
use lookalike::text::{AnalysisExtras, AnalysisScratch, TextAnalyzer};
use lookalike::{Recipe, Threshold};
use lookalike_oracle::generate::{self, CorpusKind};
use lookalike_oracle::sequence;
use serde_json::json;

use crate::machine;

const COMPARED_SENTENCES: [&str; 2] = [
    "你妈妈喊你回家吃饭哦，回家罗回家罗",
    "你妈妈叫你回家吃饭啦，回家罗回家罗",
];

/// Checks every measure of generated texts against its definition.
pub fn smoke() -> Result<()> {
    let analyzer = TextAnalyzer::new(&Recipe::default()).with_extras(AnalysisExtras {
        characters: true,
        sentences: None,
    });
    let least = Threshold::new(0.05)?;
    for (kind, count) in [
        (CorpusKind::Short, 60),
        (CorpusKind::English, 8),
        (CorpusKind::Chinese, 8),
    ] {
        let texts = generate::generate_corpus(kind, count, 11);
        let read = |text: &str| {
            let mut scratch = AnalysisScratch::default();
            let analysis = analyzer.analyze_text(text, &mut scratch);
            let mut weighted = Vec::new();
            analysis.weighted_features(&mut weighted);
            (analysis.characters().to_vec(), weighted)
        };
        let read: Vec<_> = texts.iter().map(|(_, text)| read(text)).collect();
        for (at, (_, a)) in texts.iter().enumerate() {
            for (of, (_, b)) in texts.iter().enumerate().take(at + 1) {
                let (plain_a, plain_b) = (sequence::characters(a), sequence::characters(b));
                let ((in_a, weights_a), (in_b, weights_b)) = (&read[at], &read[of]);
                let found = cosine_similarity(weights_a, weights_b).get();
                ensure!(
                    (found - sequence::cosine_similarity(a, b, 2)).abs() < 1e-12,
                    "{a}\n{b}"
                );
                for (measure, expected) in [
                    (
                        SequenceMeasure::Levenshtein,
                        sequence::levenshtein(&plain_a, &plain_b),
                    ),
                    (
                        SequenceMeasure::Indel,
                        sequence::indel_similarity(&plain_a, &plain_b),
                    ),
                    (
                        SequenceMeasure::Substring,
                        sequence::common_substring(&plain_a, &plain_b),
                    ),
                ] {
                    let found = measure.similarity(in_a, in_b, least)?;
                    let found = found.map(lookalike::Similarity::get);
                    let expected = Some(expected).filter(|&similarity| similarity >= least.get());
                    ensure!(
                        found == expected,
                        "{measure:?}: {found:?}, {expected:?}\n{a}\n{b}"
                    );
                }
            }
        }
    }
    Ok(())
}

/// Times a million distances of the two sentences.
pub fn run() -> Result<()> {
    const MEASURED_DISTANCES: u32 = 1_000_000;
    let [a, b] = COMPARED_SENTENCES.map(|text| text.chars().collect::<Vec<_>>());
    let milliseconds = |distance: &dyn Fn(&[char], &[char]) -> usize, times: u32| {
        let mut best = f64::INFINITY;
        for _ in 0..4 {
            let started = Instant::now();
            for _ in 0..times {
                assert_eq!(distance(black_box(&a), black_box(&b)), 2);
            }
            let all = started.elapsed().as_secs_f64() * f64::from(MEASURED_DISTANCES / times);
            best = best.min(all * 1e3);
        }
        best
    };
    let ours = |a: &[char], b: &[char]| {
        let found = levenshtein_distance(a, b, usize::MAX).ok().flatten();
        found.unwrap_or(usize::MAX)
    };
    let within =
        |a: &[char], b: &[char]| levenshtein_distance(a, b, 3).ok().flatten().unwrap_or(99);
    let by_indel = |a: &[char], b: &[char]| {
        indel_distance(a, b, usize::MAX)
            .ok()
            .flatten()
            .map_or(99, |edits| edits / 2)
    };
    let of_strings = |_: &[char], _: &[char]| {
        let [a, b] = COMPARED_SENTENCES.map(|text| black_box(text).chars().collect::<Vec<_>>());
        ours(&a, &b)
    };
    let plain = |a: &[char], b: &[char]| {
        let longer = a.len().max(b.len()) as f64;
        ((1.0 - sequence::levenshtein(a, b)) * longer).round() as usize
    };
    let row = |what: &str, milliseconds: f64| {
        let milliseconds = (milliseconds * 10.0).round() / 10.0;
        json!({ "what": what, "milliseconds": milliseconds })
    };
    machine::write(
        "measures",
        vec![
            row("Levenshtein", milliseconds(&ours, MEASURED_DISTANCES)),
            row(
                "Levenshtein, at most 3 edits",
                milliseconds(&within, MEASURED_DISTANCES),
            ),
            row(
                "Levenshtein, from UTF-8",
                milliseconds(&of_strings, MEASURED_DISTANCES),
            ),
            row("Indel", milliseconds(&by_indel, MEASURED_DISTANCES)),
            row(
                "the textbook's table",
                milliseconds(&plain, MEASURED_DISTANCES / 10),
            ),
        ],
    )
}
