//! The sample compared with an exact scan of all pairs.

use super::*;
use crate::arch::Cpu;
use crate::plan::{MatchMethod, MatchPlan, MatchSettings, SimilarityMeasure};
use crate::quality::plant::random::SplitMix64;
use crate::recipe::{MinHashFamily, MinHashRecipe, Recipe};
use crate::similarity;
use crate::sketch::DocumentSketcher;
use crate::text::{AnalysisScratch, TextAnalyzer};
use crate::types::Threshold;

/// Returns texts with near-duplicates at every similarity, equal texts and empty ones.
fn corpus(documents: usize, seed: u64) -> Vec<String> {
    let mut random = SplitMix64::from_document(seed, "", "corpus");
    let word = |random: &mut SplitMix64| format!("w{}", random.next_below(400));
    let mut texts: Vec<Vec<String>> = Vec::new();
    for _ in 0..documents {
        let mut words: Vec<String> = match random.next_below(3) {
            0 => (0..random.next_below(60))
                .map(|_| word(&mut random))
                .collect(),
            _ => random.choose_one(&texts).cloned().unwrap_or_default(),
        };
        let edits = random.next_below(words.len() / 16 + 2).min(words.len());
        for _ in 0..edits {
            let at = random.next_below(words.len());
            words[at] = word(&mut random);
        }
        texts.push(words);
    }
    texts.into_iter().map(|words| words.join(" ")).collect()
}

fn plan(measure: SimilarityMeasure) -> MatchPlan {
    let settings = MatchSettings {
        measure,
        // By the join, containment has no least Jaccard index.
        method: match measure {
            SimilarityMeasure::Containment => MatchMethod::MinHash,
            _ => MatchMethod::Join,
        },
        ..MatchSettings::default()
    };
    MatchPlan::new(&Recipe::default(), settings).unwrap()
}

struct Model {
    analyzer: TextAnalyzer,
    texts: Vec<String>,
}

impl Model {
    fn drawn(&self, at: usize) -> DrawnDocument {
        DrawnDocument::new(
            &self
                .analyzer
                .analyze_text(&self.texts[at], &mut AnalysisScratch::default()),
        )
    }

    /// Returns the later documents that are similar to one, by definition.
    fn partners(&self, plan: &MatchPlan, at: usize, floor: f64) -> Vec<(u64, f64)> {
        let features = |at: usize| {
            let mut features = Vec::new();
            let mut scratch = AnalysisScratch::default();
            let analysis = self.analyzer.analyze_text(&self.texts[at], &mut scratch);
            analysis.append_features(&mut features);
            (features, analysis.key)
        };
        let (own, key) = features(at);
        let similar = |other: usize| {
            let (others, other_key) = features(other);
            if own.is_empty() || others.is_empty() || key == other_key {
                return None;
            }
            let jaccard = similarity::jaccard_index(&own, &others).get();
            let (reaches, similarity) = match plan.match_settings().measure {
                SimilarityMeasure::Containment => {
                    let least = floor.min(plan.candidate_threshold().get());
                    (
                        jaccard >= least,
                        similarity::containment_index(&own, &others).get(),
                    )
                }
                _ => (jaccard >= floor, jaccard),
            };
            reaches.then_some((other as u64, similarity))
        };
        (at + 1..self.texts.len()).filter_map(similar).collect()
    }
}

#[test]
fn partners_are_all_similar_later_documents() {
    for (seed, measure, floor) in [
        (1, SimilarityMeasure::Jaccard, 0.8),
        (2, SimilarityMeasure::Jaccard, 0.6),
        (3, SimilarityMeasure::Sketch, 1.0),
        (4, SimilarityMeasure::Containment, 0.8),
    ] {
        let plan = plan(measure);
        let model = Model {
            analyzer: TextAnalyzer::new(&Recipe::default()),
            texts: corpus(300, seed),
        };
        let mut sample = DrawnSample::new(&plan, Threshold::new(floor).unwrap()).unwrap();
        let mut counter = sample.new_comparer();
        let mut scratch = AnalysisScratch::default();
        // All are drawn first and compared afterwards, as where other threads are ahead.
        let drawn: Vec<usize> = (0..300).filter(|at| at % 3 == 1).collect();
        for &at in &drawn {
            sample.add_document(at as u64, model.drawn(at));
        }
        // Removed, so that the index is rebuilt.
        for &at in drawn.iter().filter(|&&at| at % 2 == 0) {
            sample.remove_row(at as u64);
        }
        for (at, text) in model.texts.iter().enumerate().rev() {
            let analysis = model.analyzer.analyze_text(text, &mut scratch);
            sample.compare_document(at as u64, &analysis, &mut counter);
        }
        let (mut seen, mut all_seen) = (0, 0);
        for &at in &drawn {
            let mut found: Vec<_> = sample
                .partners_of(at as u64)
                .into_iter()
                .map(|partner| (partner.row, partner.similarity.get()))
                .collect();
            found.sort_unstable_by_key(|&(row, _)| row);
            let expected = if at % 2 == 0 {
                Vec::new()
            } else {
                model.partners(&plan, at, floor)
            };
            seen += found.len();
            // Partners of an equal text that was drawn before count among the stored ones.
            let same = |&&other: &&usize| model.texts[other] == model.texts[at];
            let first = *drawn.iter().find(same).unwrap_or(&at);
            if model.partners(&plan, first, floor).len() > PARTNERS {
                assert!(found.len() <= PARTNERS, "{measure:?} {at}");
                assert!(
                    found.iter().all(|pair| expected.contains(pair)),
                    "{measure:?} {at}"
                );
                continue;
            }
            assert_eq!(found, expected, "{measure:?} {at}");
            all_seen += found.len();
        }
        assert!(seen > 10 || floor == 1.0, "{seen}");
        assert!(all_seen > 10 || floor == 1.0, "{all_seen}");
    }
}

/// Features come from the code that sketches documents, by each of its methods. Documents may be drawn
/// between the start and the comparison.
#[test]
fn features_from_sketching_find_equal_partners() {
    let measures = [
        MatchMethod::Auto,
        MatchMethod::MinHash,
        MatchMethod::SimHash,
        MatchMethod::Join,
    ];
    let schemes = [MinHashFamily::FastSimilarity, MinHashFamily::Affine32];
    for (method, family) in measures
        .into_iter()
        .flat_map(|measure| schemes.map(|of| (measure, of)))
    {
        let recipe = Recipe {
            minhash: MinHashRecipe {
                family,
                ..Recipe::default().minhash
            },
            ..Recipe::default()
        };
        let settings = MatchSettings {
            method,
            ..MatchSettings::default()
        };
        let plan = MatchPlan::new(&recipe, settings).unwrap();
        let sketcher = DocumentSketcher::new(&recipe, &plan, Cpu::detect_best());
        let mut texts = corpus(200, 9);
        let long = |own: usize| format!("{}{own}", "a b c d e f g h i j k ".repeat(300));
        let longer = |own: usize| (own..own + 3000).map(|at| format!("w{at} ")).collect();
        texts.extend([long(1), long(2), longer(1), longer(2)]);
        let model = Model {
            analyzer: TextAnalyzer::new(&recipe),
            texts,
        };
        let mut plain = DrawnSample::new(&plan, Threshold::new(0.6).unwrap()).unwrap();
        let mut seeing = DrawnSample::new(&plan, Threshold::new(0.6).unwrap()).unwrap();
        let (mut counter, mut scratch) = (seeing.new_comparer(), AnalysisScratch::default());
        let mut shown = sketcher.new_sketches(1 << 20);
        for (at, text) in model.texts.iter().enumerate() {
            let analysis = model.analyzer.analyze_text(text, &mut scratch);
            counter.begin_document(&analysis);
            for sample in [&mut plain, &mut seeing] {
                sample.add_document(at as u64, model.drawn(at));
            }
            sketcher.add_showing_features(&analysis, &mut shown, &mut |features| {
                counter.add_features(features)
            });
            seeing.compare_seen(at as u64, &analysis, &mut counter);
            plain.compare_document(at as u64, &analysis, &mut plain.new_comparer());
        }
        let mut found = 0;
        for at in 0..model.texts.len() as u64 {
            assert_eq!(
                plain.partners_of(at),
                seeing.partners_of(at),
                "{method:?} {at}"
            );
            found += plain.partners_of(at).len();
        }
        assert!(found > 50, "{found}");
    }
}

/// Long documents are compared in part. A document that reaches the threshold by one feature is found,
/// and one that misses it by one feature is not.
#[test]
fn long_documents_match_up_to_the_last_feature() {
    let plan = plan(SimilarityMeasure::Jaccard);
    let recipe = Recipe {
        ngram: 1,
        ..Recipe::default()
    };
    let analyzer = TextAnalyzer::new(&recipe);
    for (seed, size) in [(1, 127), (2, 128), (3, 300), (4, 2000), (5, 20_000)] {
        let text = |own: usize| {
            let shared = (0..size - own).map(|at| format!("s{seed}x{at} "));
            let others = (0..own).map(|at| format!("o{own}x{at} "));
            shared.chain(others).collect::<String>()
        };
        let whole = text(0);
        let mut sample = DrawnSample::new(&plan, Threshold::new(0.8).unwrap()).unwrap();
        let mut scratch = AnalysisScratch::default();
        sample.add_document(
            0,
            DrawnDocument::new(&analyzer.analyze_text(&whole, &mut scratch)),
        );
        // Sizes are equal, so shared / (2 · size − shared) ≥ .8 up to a ninth of own features.
        let most = size / 9;
        for (row, own) in [(1, most), (2, most + 1), (3, most - 1)] {
            let analysis = analyzer.analyze_text(&text(own), &mut scratch);
            sample.compare_document(row, &analysis, &mut sample.new_comparer());
        }
        let mut rows: Vec<_> = sample
            .partners_of(0)
            .iter()
            .map(|partner| partner.row)
            .collect();
        rows.sort_unstable();
        assert_eq!(rows, [1, 3], "{size}");
    }
}

#[test]
fn smallest_partners_are_kept_in_any_order() {
    let plan = plan(SimilarityMeasure::Jaccard);
    let model = Model {
        analyzer: TextAnalyzer::new(&Recipe::default()),
        texts: (0..500)
            .map(|at| format!("a b c d e f g h i j k l m n o p q r s t u v w x y z {at}"))
            .collect(),
    };
    let partners = |order: &mut dyn Iterator<Item = usize>| {
        let mut sample = DrawnSample::new(&plan, Threshold::new(0.8).unwrap()).unwrap();
        sample.add_document(7, model.drawn(7));
        let mut scratch = AnalysisScratch::default();
        for at in order {
            let analysis = model.analyzer.analyze_text(&model.texts[at], &mut scratch);
            sample.compare_document(at as u64, &analysis, &mut sample.new_comparer());
        }
        sample.partners_of(7)
    };
    let forward = partners(&mut (0..500));
    assert_eq!(forward.len(), PARTNERS);
    assert!(forward.iter().all(|partner| partner.row > 7));
    assert_eq!(forward, partners(&mut (0..500).rev()));
}

#[test]
fn text_measures_have_no_sample() {
    for measure in [
        SimilarityMeasure::Cosine,
        SimilarityMeasure::Levenshtein,
        SimilarityMeasure::Indel,
        SimilarityMeasure::Substring,
    ] {
        let floor = Threshold::new(0.8).unwrap();
        assert!(DrawnSample::new(&plan(measure), floor).is_none());
    }
}
