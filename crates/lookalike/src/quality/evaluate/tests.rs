use serde_json::Value;

use super::bootstrap::{FoundAtCuts, PairObservation, estimate_metrics, percentile};
use super::*;
use crate::error::ErrorKind;
use crate::hash::mix_bits;
use crate::plan::{MatchMethod, MatchSettings, SimilarityMeasure};
use crate::recipe::Recipe;
use crate::types::{DocId, Threshold};

/// A small random number generator.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        (mix_bits(self.0) % limit as u64) as usize
    }

    fn share(&mut self) -> f64 {
        self.below(1 << 30) as f64 / (1u64 << 30) as f64
    }

    fn text(&mut self, words: usize) -> String {
        let words: Vec<_> = (0..words)
            .map(|_| format!("w{}", self.below(3000)))
            .collect();
        words.join(" ")
    }

    fn edited(&mut self, text: &str, edits: usize) -> String {
        let mut words: Vec<_> = text.split(' ').map(str::to_owned).collect();
        for _ in 0..edits {
            let at = self.below(words.len());
            words[at] = format!("x{}", self.below(3000));
        }
        words.join(" ")
    }
}

fn vectors() -> Vec<Value> {
    let text = include_str!("../../../../../testdata/evaluate/metrics.jsonl");
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn numbers(value: &Value) -> Vec<f64> {
    let values = value.as_array().unwrap().iter();
    values.map(|value| value.as_f64().unwrap()).collect()
}

fn near(a: Option<f64>, b: f64) -> bool {
    a.is_some_and(|a| (a - b).abs() < 1e-12)
}

#[test]
fn ratios_equal_worked_examples() {
    let counts = |true_positives, false_positives, false_negatives| ConfusionCounts {
        true_positives,
        false_positives,
        false_negatives,
        true_negatives: 5,
    };
    let all = |counts: ConfusionCounts| (counts.precision(), counts.recall(), counts.f1_score());
    assert_eq!(
        all(counts(3, 1, 2)),
        (Some(0.75), Some(0.6), Some(2.0 / 3.0))
    );
    assert_eq!(all(counts(0, 0, 4)), (None, Some(0.0), Some(0.0)));
    assert_eq!(all(counts(0, 4, 0)), (Some(0.0), None, Some(0.0)));
    assert_eq!(all(counts(0, 0, 0)), (None, None, None));
}

#[test]
fn curves_equal_scikit_learn() {
    for vector in vectors() {
        let Some(given) = vector.get("curve") else {
            continue;
        };
        let scores = numbers(&given["scores"]);
        let labels = numbers(&given["labels"]);
        let pairs = scores.iter().zip(&labels);
        let curve =
            PrecisionRecallCurve::new(pairs.map(|(&score, &label)| (Some(score), label == 1.0)), 0);
        let points = vector["points"].as_array().unwrap();
        assert_eq!(curve.curve_points().len(), points.len());
        for (point, expected) in curve.curve_points().iter().rev().zip(points) {
            let expected = numbers(expected);
            assert_eq!(point.cut, expected[0]);
            assert!(near(point.counts.precision(), expected[1]));
            assert!(near(point.counts.recall(), expected[2]));
            assert!(near(point.counts.f1_score(), expected[3]));
        }
        let recalls = curve
            .curve_points()
            .iter()
            .map(|point| point.counts.recall());
        assert!(recalls.is_sorted(), "recall never rises with the threshold");
    }
}

#[test]
fn clusters_equal_scikit_learn() {
    let integers = |value: &Value| -> Vec<u64> {
        let values = value.as_array().unwrap().iter();
        values.map(|value| value.as_u64().unwrap()).collect()
    };
    for vector in vectors() {
        let Some(given) = vector.get("clusters") else {
            continue;
        };
        let (predicted, truth) = (integers(&given["predicted"]), integers(&given["truth"]));
        let scores = compare_clusters(&predicted, &truth, 0, &BootstrapOptions::default()).unwrap();
        let pairwise = integers(&vector["pairwise"]);
        let counts = ConfusionCounts {
            true_positives: pairwise[0],
            false_positives: pairwise[1],
            false_negatives: pairwise[2],
            true_negatives: 0,
        };
        let values = |averages: AveragedMetrics| {
            (
                averages.precision.value,
                averages.recall.value,
                averages.f1.value,
            )
        };
        let (precision, recall, f1) = values(scores.pairwise);
        assert_eq!((precision, recall), (counts.precision(), counts.recall()));
        assert!(counts.f1_score().is_none_or(|value| near(f1, value)));
        let expected = numbers(&vector["b_cubed"]);
        let (precision, recall, f1) = values(scores.b_cubed);
        assert!(near(precision, expected[0]) && near(recall, expected[1]));
        let mean = 2.0 * expected[0] * expected[1] / (expected[0] + expected[1]);
        assert!(near(f1, mean));
        assert_eq!(scores.exact, vector["exact"].as_u64().unwrap());
    }
}

#[test]
fn cluster_figures_equal_worked_examples() {
    // {a b c} {d e} {f} against {a b} {c d e} {f}, and four documents that are alone in both.
    let predicted = [1, 1, 1, 2, 2, 3];
    let truth = [7, 7, 8, 8, 8, 9];
    let scores = compare_clusters(&predicted, &truth, 4, &BootstrapOptions::default()).unwrap();
    assert_eq!(
        (
            scores.documents,
            scores.predicted,
            scores.truth,
            scores.exact
        ),
        (10, 2, 2, 0)
    );
    // Together in both: ab and de. Predicted: ab, ac, bc and de. True: ab, cd, ce and de.
    assert_eq!(scores.pairwise.precision.value, Some(0.5));
    assert_eq!(scores.pairwise.recall.value, Some(0.5));
    // 2/3 + 2/3 + 1/3 + 1 + 1 + 1 + 4 of 10.
    assert!(near(
        scores.b_cubed.precision.value,
        (5.0 / 3.0 + 3.0 + 4.0) / 10.0
    ));
    assert!(near(
        scores.b_cubed.recall.value,
        (2.0 + 5.0 / 3.0 + 1.0 + 4.0) / 10.0
    ));
    assert_eq!(scores.exact_set.precision.value, Some(0.0));
    let same = compare_clusters(&truth, &truth, 0, &BootstrapOptions::default()).unwrap();
    assert_eq!((same.exact, same.exact_set.f1.value), (2, Some(1.0)));
    let alone = compare_clusters(&[1, 2], &[1, 2], 0, &BootstrapOptions::default()).unwrap();
    assert_eq!(alone.pairwise, AveragedMetrics::default());
    assert_eq!(alone.b_cubed.f1.value, Some(1.0));
    assert!(compare_clusters(&[1], &[], 0, &BootstrapOptions::default()).is_err());
}

#[test]
fn best_point_is_the_strictest_of_equals() {
    let pairs = [
        (Some(0.9), true),
        (Some(0.8), true),
        (Some(0.8), false),
        (Some(0.5), true),
        (None, true),
    ];
    let curve = PrecisionRecallCurve::new(pairs, 3);
    let counts: Vec<_> = curve
        .curve_points()
        .iter()
        .map(|point| {
            (
                point.cut,
                point.counts.true_positives,
                point.counts.false_positives,
            )
        })
        .collect();
    assert_eq!(counts, [(0.9, 1, 0), (0.8, 2, 1), (0.5, 3, 1)]);
    assert_eq!(curve.curve_points()[0].counts.true_negatives, 4);
    assert_eq!(curve.best_point(TuningGoal::F1), Some(2));
    assert_eq!(curve.best_point(TuningGoal::Precision(0.9)), Some(0));
    assert_eq!(curve.best_point(TuningGoal::Precision(0.75)), Some(2));
    assert_eq!(
        PrecisionRecallCurve::new([(None, true)], 1).best_point(TuningGoal::F1),
        None
    );
    assert_eq!(
        PrecisionRecallCurve::new([(Some(1.0), false), (None, true)], 0)
            .best_point(TuningGoal::Precision(0.5)),
        None
    );
}

#[test]
fn thresholds_are_rounded_without_effect() {
    let scores = [0.9, 2.0 / 3.0, 0.6655, 0.25, 0.25 - 1e-13];
    let curve = PrecisionRecallCurve::new(scores.map(|score| (Some(score), true)), 0);
    let thresholds: Vec<_> = (0..5).map(|at| curve.rounded_threshold(at, 0.2)).collect();
    assert_eq!(thresholds[..4], [0.8, 0.666, 0.5, 0.25]);
    for (at, threshold) in thresholds.iter().enumerate() {
        let found = scores.iter().filter(|score| *score >= threshold).count();
        assert_eq!(found, at + 1, "{threshold}");
    }
    assert_eq!(
        PrecisionRecallCurve::new([(Some(1.0), true)], 0).rounded_threshold(0, 1.0),
        1.0
    );
    let low = PrecisionRecallCurve::new([(Some(0.05), true)], 0);
    assert_eq!(low.rounded_threshold(0, 0.05), 0.05);
}

#[test]
fn percentiles_lie_between_values() {
    assert_eq!(percentile(&[1.0, 2.0, 4.0], 0.5), Some(2.0));
    assert_eq!(percentile(&[1.0, 2.0, 4.0], 0.75), Some(3.0));
    assert_eq!(
        (percentile(&[3.0], 0.9), percentile(&[], 0.5)),
        (Some(3.0), None)
    );
}

/// Returns units of four pairs. All pairs of a unit are found together, with the probability `recall`,
/// so they are not independent.
fn simulated(rng: &mut Numbers, units: u32, recall: f64) -> Vec<PairObservation> {
    (0..units)
        .flat_map(|unit| {
            let found = rng.share() < recall;
            (0..4).map(move |at| PairObservation {
                units: [unit; 2],
                similar: at < 3,
                found: FoundAtCuts::from(found),
            })
        })
        .collect()
}

#[test]
fn intervals_have_their_stated_coverage() {
    let mut rng = Numbers(5);
    let (truth, rounds) = (0.7, 200);
    let mut covered = 0;
    for seed in 0..rounds {
        let observations = simulated(&mut rng, 80, truth);
        let bootstrap = BootstrapOptions {
            resamples: 300,
            seed,
            ..BootstrapOptions::default()
        };
        let recall = estimate_metrics(&observations, 0, 1, 80, &bootstrap)[0].recall;
        let interval = recall.interval.unwrap();
        covered += u32::from(interval.low <= truth && truth <= interval.high);
    }
    // 95 of 100 in the long run. If pairs were drawn one by one, it would be about 70.
    assert!((176..=199).contains(&covered), "{covered} of {rounds}");
}

#[test]
fn ranges_of_cuts_are_counted_like_single_cuts() {
    let mut rng = Numbers(9);
    let cuts = 128;
    let observations: Vec<_> = (0..300)
        .map(|_| PairObservation {
            units: [rng.below(40) as u32, rng.below(40) as u32],
            similar: rng.below(2) == 0,
            found: [
                0,
                FoundAtCuts::MAX,
                u128::from(rng.below(1 << 40) as u64) << rng.below(100),
            ][rng.below(3)],
        })
        .collect();
    let bootstrap = BootstrapOptions {
        resamples: 20,
        ..BootstrapOptions::default()
    };
    let together = estimate_metrics(&observations, 7, cuts, 40, &bootstrap);
    for (cut, together) in together.iter().enumerate() {
        let single: Vec<_> = observations
            .iter()
            .map(|pair| PairObservation {
                found: pair.found >> cut & 1,
                ..*pair
            })
            .collect();
        assert_eq!(
            *together,
            estimate_metrics(&single, 7, 1, 40, &bootstrap)[0]
        );
        let mut counts = ConfusionCounts::default();
        single
            .iter()
            .for_each(|pair| counts.add_decision(pair.similar, pair.found == 1));
        counts.true_negatives += 7;
        assert_eq!(together.counts, counts);
    }
}

#[test]
fn texts_are_classified_by_script_and_length() {
    let class = |text: &str| {
        let class = TextClass::classify_text(text);
        (class.script.name(), class.length.name(), class.tokens)
    };
    let of = |script, length: &str, tokens| (script, length.to_owned(), tokens);
    assert_eq!(
        class("今晚八点，图书馆有讲座"),
        of("without spaces", "up to 15 characters", 10)
    );
    assert_eq!(class(&"字".repeat(15)).1, "up to 15 characters");
    assert_eq!(class(&"字".repeat(16)).1, "16-50 characters");
    assert_eq!(class(&"字".repeat(2000)).1, "301-2000 characters");
    assert_eq!(class(&"字".repeat(2001)).1, "over 2000 characters");
    assert_eq!(class("It's 3 o'clock").2, 5);
    assert_eq!(class(&"word ".repeat(9)).1, "up to 9 words");
    assert_eq!(class(&"word ".repeat(10)).1, "10-30 words");
    assert_eq!(class(&"word ".repeat(1201)).1, "over 1200 words");
    assert_eq!(
        class("用 Rust 写 Web 服务"),
        of("mixed", "up to 15 characters", 6)
    );
    assert_eq!(class("🙂 !"), of("no letters", "up to 15 characters", 0));
}

fn pair(a: u32, b: u32, similar: bool) -> LabelledPair {
    LabelledPair {
        a: DocId(a),
        b: DocId(b),
        similar,
        kind: None,
    }
}

/// Returns pairs of texts: edited ones, which are similar, and unrelated ones, which share a text with
/// them.
fn pairs_of_texts(rng: &mut Numbers, count: usize, words: usize) -> LabelledTexts {
    let mut texts = Vec::new();
    let mut pairs = Vec::new();
    for at in 0..count as u32 {
        let text = rng.text(words);
        let edits = rng.below(words / 3);
        texts.push(rng.edited(&text, edits));
        texts.push(text);
        pairs.push(LabelledPair {
            kind: Some(u32::from(edits > 3)),
            ..pair(2 * at, 2 * at + 1, true)
        });
        texts[2 * at as usize + 1].push_str(" with a common end of some words");
        // Four texts and their edited versions are connected.
        let other = 2 * (at - at % 4);
        if other != 2 * at {
            pairs.push(pair(other, 2 * at + 1, false));
        }
    }
    LabelledTexts::from_pairs(texts, pairs, vec!["light".into(), "heavy".into()]).unwrap()
}

fn setting(method: MatchMethod, measure: SimilarityMeasure) -> EvaluatedSetting {
    EvaluatedSetting {
        recipe: Recipe::default(),
        matching: MatchSettings {
            method,
            measure,
            threshold: Threshold::new(0.1).unwrap(),
            distance: 12,
            ..MatchSettings::default()
        },
    }
}

fn options() -> EvaluationOptions {
    EvaluationOptions {
        thresholds: vec![0.1, 0.3, 0.5, 0.7, 0.9, 1.0],
        bootstrap: BootstrapOptions {
            resamples: 50,
            ..BootstrapOptions::default()
        },
    }
}

const METHODS: [(MatchMethod, SimilarityMeasure); 13] = [
    (MatchMethod::Auto, SimilarityMeasure::Jaccard),
    (MatchMethod::Auto, SimilarityMeasure::Containment),
    (MatchMethod::Auto, SimilarityMeasure::Levenshtein),
    (MatchMethod::Auto, SimilarityMeasure::Sketch),
    (MatchMethod::MinHash, SimilarityMeasure::Cosine),
    (MatchMethod::MinHash, SimilarityMeasure::Sketch),
    (MatchMethod::BottomK, SimilarityMeasure::Sketch),
    (MatchMethod::SimHash, SimilarityMeasure::Sketch),
    (MatchMethod::SimHash, SimilarityMeasure::Indel),
    (MatchMethod::Sentences, SimilarityMeasure::Sketch),
    (MatchMethod::Sentences, SimilarityMeasure::Jaccard),
    (MatchMethod::Join, SimilarityMeasure::Substring),
    (MatchMethod::Exact, SimilarityMeasure::Jaccard),
];

#[test]
fn every_method_is_measured_on_pairs_and_groups() {
    let mut rng = Numbers(1);
    let pairs = pairs_of_texts(&mut rng, 60, 90);
    let texts: Vec<String> = pairs.texts().to_vec();
    let groups =
        LabelledTexts::from_groups(texts.clone(), (0..120).map(|at| at / 2).collect()).unwrap();
    for (method, measure) in METHODS {
        for labelled in [&pairs, &groups] {
            let setting = setting(method, measure);
            let evaluation = Evaluation::new(labelled, &setting, &options()).unwrap();
            let total = labelled.count_similar_pairs() + labelled.count_different_pairs();
            for point in &evaluation.points {
                let ConfusionCounts {
                    true_positives,
                    false_positives,
                    false_negatives,
                    true_negatives,
                } = point.measure.counts;
                let sum = true_positives + false_positives + false_negatives + true_negatives;
                assert_eq!(sum, total, "{method:?} {measure:?}");
                let method = point.method.unwrap_or(point.measure).counts;
                if measure != SimilarityMeasure::Sketch {
                    assert!(method.true_positives <= true_positives);
                    assert!(method.false_positives <= false_positives);
                }
            }
            let found = |point: &EvaluationPoint| point.measure.counts.true_positives;
            let by_distance = evaluation.sweep == SweptParameter::Distance;
            assert!(
                evaluation.points.is_sorted_by(
                    |a, b| by_distance == (found(a) <= found(b)) || found(a) == found(b)
                )
            );
        }
    }
}

#[test]
fn measured_method_equals_a_run() {
    use super::scored::ScoredPairs;
    use crate::dedup::{CopyPairs, MatchCorpus, find_pairs};
    use crate::sketch::DocumentSketcher;
    use crate::text::{AnalysisScratch, TextAnalyzer};

    struct Again(Vec<String>);
    impl crate::dedup::DocumentSource for Again {
        fn append_features(&self, document: DocId, into: &mut Vec<u64>) -> crate::Result<()> {
            let analyzer = TextAnalyzer::new(&Recipe::default());
            let text = &self.0[document.index()];
            analyzer
                .analyze_text(text, &mut AnalysisScratch::default())
                .append_features(into);
            Ok(())
        }
    }
    let labelled = pairs_of_texts(&mut Numbers(3), 80, 70);
    for method in [
        MatchMethod::Auto,
        MatchMethod::MinHash,
        MatchMethod::BottomK,
    ] {
        let setting = setting(method, SimilarityMeasure::Jaccard);
        let scored = ScoredPairs::new(&labelled, &setting, &[]).unwrap();
        let thresholds = [0.3, 0.5, 0.8];
        let (found, planned) = scored.find_by_method(&thresholds).unwrap();
        assert_eq!(planned, 0b111);
        for (at, threshold) in thresholds.into_iter().enumerate() {
            let plan = setting.plan_at_threshold(threshold).unwrap();
            let sketcher = DocumentSketcher::new(&setting.recipe, &plan, crate::Cpu::detect_best());
            let analyzer = TextAnalyzer::new(&setting.recipe);
            let mut sketches = sketcher.new_sketches(1 << 10);
            for text in labelled.texts() {
                sketcher.add_document(
                    &analyzer.analyze_text(text, &mut AnalysisScratch::default()),
                    &mut sketches,
                );
            }
            let texts = Again(labelled.texts().to_vec());
            let corpus = MatchCorpus::new(&plan, &sketches, &texts);
            let mut run = std::collections::HashSet::new();
            let visit = |pair: crate::dedup::MatchingPair| {
                run.insert((pair.a, pair.b));
                Ok::<_, crate::Error>(())
            };
            find_pairs(&corpus, CopyPairs::All, visit, &|_| {}).unwrap();
            for (pair, found) in scored.pairs.iter().zip(&found) {
                let named = (pair.a.min(pair.b), pair.a.max(pair.b));
                assert_eq!(found >> at & 1 == 1, run.contains(&named), "{pair:?}");
            }
        }
    }
}

#[test]
fn pairs_across_groups_are_all_found() {
    let mut rng = Numbers(8);
    let labelled = pairs_of_texts(&mut rng, 40, 30);
    let texts = labelled.texts().to_vec();
    let group: Vec<u32> = (0..texts.len() as u32).map(|at| at / 3).collect();
    let groups = LabelledTexts::from_groups(texts.clone(), group.clone()).unwrap();
    let mut listed = Vec::new();
    for a in 0..texts.len() as u32 {
        for b in a + 1..texts.len() as u32 {
            listed.push(pair(a, b, group[a as usize] == group[b as usize]));
        }
    }
    let every = LabelledTexts::from_pairs(texts, listed, Vec::new()).unwrap();
    assert_eq!(
        (groups.count_similar_pairs(), groups.count_different_pairs()),
        (every.count_similar_pairs(), every.count_different_pairs())
    );
    for (method, measure) in [
        (MatchMethod::Auto, SimilarityMeasure::Jaccard),
        (MatchMethod::SimHash, SimilarityMeasure::Sketch),
        (MatchMethod::Join, SimilarityMeasure::Jaccard),
    ] {
        let setting = setting(method, measure);
        let counts = |labelled| {
            let evaluation = Evaluation::new(labelled, &setting, &options()).unwrap();
            let points = evaluation.points.iter();
            points
                .map(|point| {
                    (
                        point.cut,
                        point.measure.counts,
                        point.decisive_metrics().counts,
                    )
                })
                .collect::<Vec<_>>()
        };
        assert_eq!(counts(&groups), counts(&every));
    }
}

#[test]
fn results_do_not_depend_on_rows_and_sides() {
    let labelled = pairs_of_texts(&mut Numbers(4), 50, 40);
    let count = labelled.texts().len() as u32;
    let place = |document: DocId| DocId(count - 1 - document.0);
    let texts = labelled.texts().iter().rev().cloned().collect();
    let pairs = labelled
        .listed_pairs()
        .iter()
        .rev()
        .map(|pair| LabelledPair {
            a: place(pair.b),
            b: place(pair.a),
            ..*pair
        });
    let turned =
        LabelledTexts::from_pairs(texts, pairs.collect(), labelled.edit_kinds().to_vec()).unwrap();
    for (method, measure) in METHODS {
        let setting = setting(method, measure);
        let evaluate = |labelled| Evaluation::new(labelled, &setting, &options()).unwrap();
        assert_eq!(evaluate(&labelled), evaluate(&turned));
    }
    let parts = |labelled: &LabelledTexts| {
        labelled.split_in_halves(3).unwrap().map(|part| {
            let mut texts = part.texts().to_vec();
            texts.sort();
            texts
        })
    };
    assert_eq!(parts(&labelled), parts(&turned));
}

#[test]
fn results_do_not_depend_on_threads() {
    let labelled = pairs_of_texts(&mut Numbers(6), 40, 60);
    let evaluations: Vec<_> = [1, 2, 8]
        .into_iter()
        .map(|threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
            pool.build().unwrap().install(|| {
                let setting = setting(MatchMethod::Auto, SimilarityMeasure::Jaccard);
                Evaluation::new(&labelled, &setting, &options()).unwrap()
            })
        })
        .collect();
    assert!(evaluations.windows(2).all(|two| two[0] == two[1]));
}

#[test]
fn halves_share_no_text() {
    let mut rng = Numbers(2);
    let pairs = pairs_of_texts(&mut rng, 100, 20);
    let mut texts = pairs.texts().to_vec();
    texts[7] = texts[90].clone();
    let pairs = LabelledTexts::from_pairs(
        texts.clone(),
        pairs.listed_pairs().to_vec(),
        pairs.edit_kinds().to_vec(),
    )
    .unwrap();
    let groups = (0..texts.len() as u32).map(|at| at / 2).collect();
    let groups = LabelledTexts::from_groups(texts, groups).unwrap();
    let mut halves = Vec::new();
    for labelled in [&pairs, &groups] {
        for seed in 0..5 {
            let [choose, hold] = labelled.split_in_halves(seed).unwrap();
            assert!(
                choose
                    .texts()
                    .iter()
                    .all(|text| !hold.texts().contains(text))
            );
            let (chosen, held) = (choose.count_similar_pairs(), hold.count_similar_pairs());
            assert_eq!(chosen + held, labelled.count_similar_pairs());
            assert!(chosen.abs_diff(held) * 3 <= labelled.count_similar_pairs());
            halves.push(choose.texts().to_vec());
        }
    }
    assert_ne!(halves[0], halves[1], "the seed decides");
    assert_eq!(pairs.split_in_halves(0).unwrap()[0].texts(), &halves[0][..]);
    // All are connected.
    let chain = (0..9).map(|at| pair(at, at + 1, at % 2 == 0)).collect();
    let texts = (0..10).map(|at| format!("text {at}")).collect();
    let chain = LabelledTexts::from_pairs(texts, chain, Vec::new()).unwrap();
    let error = chain.split_in_halves(1).unwrap_err();
    assert!(error.to_string().starts_with("1 units"), "{error}");
}

#[test]
fn unmeasurable_settings_are_refused() {
    let texts = || vec!["a".to_owned(), "b".to_owned(), "c".to_owned()];
    let refused = |labelled: crate::Result<LabelledTexts>| labelled.unwrap_err().to_string();
    let of_pairs = |pairs| refused(LabelledTexts::from_pairs(texts(), pairs, Vec::new()));
    assert!(of_pairs(Vec::new()).contains("no labelled pair"));
    assert!(of_pairs(vec![pair(0, 1, true)]).contains("all 1 labelled pairs are similar"));
    assert!(of_pairs(vec![pair(0, 1, false)]).contains("none of the 1 labelled pairs is similar"));
    assert!(refused(LabelledTexts::from_groups(texts(), vec![0, 0, 0])).contains("all 3"));
    assert!(refused(LabelledTexts::from_groups(texts(), vec![0, 1, 2])).contains("none of the 3"));
    let large = LabelledTexts::from_groups(vec![String::new(); 15_000], {
        let mut groups = vec![0; 15_000];
        groups[1] = 1;
        groups
    });
    assert_eq!(large.unwrap_err().kind(), ErrorKind::Limit);

    let labelled = pairs_of_texts(&mut Numbers(1), 5, 30);
    let evaluate = |setting: &EvaluatedSetting, thresholds: Vec<f64>| {
        let options = EvaluationOptions {
            thresholds,
            ..options()
        };
        Evaluation::new(&labelled, setting, &options)
    };
    let auto = setting(MatchMethod::Auto, SimilarityMeasure::Jaccard);
    for thresholds in [vec![], vec![0.5; 128]] {
        assert!(evaluate(&auto, thresholds).is_err());
    }
    assert!(evaluate(&auto, vec![0.5; 127]).is_ok());
    let mut far = setting(MatchMethod::SimHash, SimilarityMeasure::Jaccard);
    far.matching.distance = 64;
    let error = evaluate(&far, vec![0.5]).unwrap_err().to_string();
    assert!(error.contains("64 is not below"), "{error}");
}

#[test]
fn texts_too_short_match_only_equal_texts() {
    let texts = ["", " ", "🙂", "🙂 ", "one", "ONE", "two"].map(str::to_owned);
    let pairs = vec![
        pair(0, 1, true),
        pair(2, 3, true),
        pair(4, 5, true),
        pair(4, 6, false),
    ];
    let labelled = LabelledTexts::from_pairs(texts.to_vec(), pairs, Vec::new()).unwrap();
    for (method, measure) in METHODS {
        let evaluation = Evaluation::new(&labelled, &setting(method, measure), &options()).unwrap();
        for point in evaluation.points {
            for counts in [point.measure.counts, point.decisive_metrics().counts] {
                assert_eq!(
                    (
                        counts.true_positives,
                        counts.false_positives,
                        counts.false_negatives
                    ),
                    (2, 0, 1),
                    "{method:?} {measure:?} {}",
                    point.cut
                );
            }
        }
    }
}

fn tune_options(goal: TuningGoal) -> TuneOptions {
    TuneOptions {
        goal,
        bootstrap: BootstrapOptions {
            resamples: 100,
            ..BootstrapOptions::default()
        },
    }
}

/// Pairs of texts of one template, similar if the words behind it are the same in another order.
fn shuffled(rng: &mut Numbers, count: u32) -> LabelledTexts {
    let (mut texts, mut pairs) = (Vec::new(), Vec::new());
    for at in 0..count {
        let text = rng.text(24);
        let mut words: Vec<&str> = text.split(' ').collect();
        words.rotate_left(12);
        words.swap(3, 17);
        words.swap(5, 11);
        words.swap(8, 20);
        let other = rng.edited(&text, 7);
        texts.extend([text.clone(), words.join(" "), other]);
        pairs.extend([
            pair(3 * at, 3 * at + 1, true),
            pair(3 * at, 3 * at + 2, false),
        ]);
    }
    LabelledTexts::from_pairs(texts, pairs, Vec::new()).unwrap()
}

#[test]
fn tuning_finds_discriminating_features() {
    let labelled = shuffled(&mut Numbers(12), 60);
    let lowest = Threshold::new(0.05).unwrap();
    let settings = contenders(&Recipe::default(), &labelled, lowest).unwrap();
    let tuned =
        tune_settings(&labelled, &settings, &tune_options(TuningGoal::F1), &|_| {}).unwrap();
    let chosen = &tuned.contenders[tuned.chosen];
    // The same words in another order: single words see it.
    assert_eq!(
        chosen.setting.recipe.ngram, 1,
        "{}",
        chosen.setting.recipe.name
    );
    assert_eq!(chosen.value, Some(1.0));
    assert_eq!(chosen.setting.matching.measure, SimilarityMeasure::Jaccard);
    assert_ne!(tuned.runner_up, Some(tuned.chosen));
    let held = chosen
        .setting
        .estimate_metrics(&tuned.halves[1], &BootstrapOptions::default())
        .unwrap();
    assert_eq!(held.f1.value, Some(1.0));
    let untuned = &tuned.contenders[0];
    assert_eq!(
        untuned.setting.recipe.recipe_id(),
        Recipe::default().recipe_id()
    );
    assert!(!untuned.as_good);
}

#[test]
fn equal_settings_are_decided_by_order() {
    let labelled = pairs_of_texts(&mut Numbers(4), 60, 40);
    let lowest = Threshold::new(0.05).unwrap();
    let settings = contenders(&Recipe::default(), &labelled, lowest).unwrap();
    let tuned =
        tune_settings(&labelled, &settings, &tune_options(TuningGoal::F1), &|_| {}).unwrap();
    assert!(tuned.contenders[tuned.best].as_good && tuned.contenders[tuned.chosen].as_good);
    assert!(
        tuned.contenders[..tuned.chosen]
            .iter()
            .all(|contender| !contender.as_good)
    );
    let best = tuned.contenders[tuned.best].value;
    assert!(
        tuned
            .contenders
            .iter()
            .all(|contender| contender.value <= best)
    );
    let alone = TuneOptions {
        bootstrap: BootstrapOptions {
            resamples: 0,
            ..BootstrapOptions::default()
        },
        ..tune_options(TuningGoal::F1)
    };
    let without = tune_settings(&labelled, &settings, &alone, &|_| {}).unwrap();
    assert_eq!(without.chosen, without.best);
}

#[test]
fn precision_goal_is_reached_or_refused() {
    let labelled = pairs_of_texts(&mut Numbers(4), 60, 40);
    let lowest = Threshold::new(0.05).unwrap();
    let settings = contenders(&Recipe::default(), &labelled, lowest).unwrap();
    let goal = TuningGoal::Precision(0.99);
    let tuned = tune_settings(&labelled, &settings, &tune_options(goal), &|_| {}).unwrap();
    let chosen = &tuned.contenders[tuned.chosen];
    assert!(chosen.counts.precision().unwrap() >= 0.99);
    assert_eq!(chosen.value, chosen.counts.recall());
    // Equal texts that are labelled as different.
    let texts = (0..40).map(|at| format!("one text {}", at / 2)).collect();
    let pairs = (0..20).map(|at| pair(2 * at, 2 * at + 1, at % 2 == 0));
    let equal = LabelledTexts::from_pairs(texts, pairs.collect(), Vec::new()).unwrap();
    let error = tune_settings(&equal, &settings, &tune_options(goal), &|_| {}).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("no setting reaches the precision 0.99"),
        "{error}"
    );
}

#[test]
fn tuning_depends_on_neither_rows_nor_threads() {
    let labelled = shuffled(&mut Numbers(5), 20);
    let lowest = Threshold::new(0.05).unwrap();
    let settings = contenders(&Recipe::default(), &labelled, lowest).unwrap();
    let outcome = |labelled: &LabelledTexts, threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        let run =
            || tune_settings(labelled, &settings, &tune_options(TuningGoal::F1), &|_| {}).unwrap();
        let tuned = pool.build().unwrap().install(run);
        let all = tuned.contenders.iter();
        let all: Vec<_> = all
            .map(|contender| (contender.counts, contender.value, contender.as_good))
            .collect();
        (all, tuned.best, tuned.chosen, tuned.runner_up)
    };
    let expected = outcome(&labelled, 1);
    assert_eq!(outcome(&labelled, 2), expected);
    let count = labelled.texts().len() as u32;
    let place = |document: DocId| DocId(count - 1 - document.0);
    let texts = labelled.texts().iter().rev().cloned().collect();
    let pairs = labelled.listed_pairs().iter().rev();
    let pairs =
        pairs.map(|labelled| pair(place(labelled.b).0, place(labelled.a).0, labelled.similar));
    let turned = LabelledTexts::from_pairs(texts, pairs.collect(), Vec::new()).unwrap();
    assert_eq!(outcome(&turned, 8), expected);
}

#[test]
fn jieba_is_tried_on_chinese_texts() {
    let english = shuffled(&mut Numbers(5), 4);
    let texts = ["今晚有讲座", "今晚有講座", "明天下雨"].map(str::to_owned);
    let pairs = vec![pair(0, 1, true), pair(0, 2, false)];
    let chinese = LabelledTexts::from_pairs(texts.to_vec(), pairs, Vec::new()).unwrap();
    let lowest = Threshold::new(0.05).unwrap();
    let tried = |labelled, recipe: &Recipe| contenders(recipe, labelled, lowest);
    let by_jieba = |labelled| {
        let settings = tried(labelled, &Recipe::default()).unwrap();
        settings
            .iter()
            .any(|setting| setting.recipe.tokens == crate::recipe::TokenKind::Jieba)
    };
    assert!(by_jieba(&chinese) && !by_jieba(&english));
    let own = Recipe::built_in("characters-3").unwrap();
    let settings = tried(&english, &own).unwrap();
    assert_eq!(settings[0].recipe.recipe_id(), own.recipe_id());
    let error = tried(&english, &Recipe::built_in("1e0ng").unwrap()).unwrap_err();
    assert!(error.to_string().contains("another tool"), "{error}");
}

#[test]
fn table_weights_are_tried_with_their_features() {
    let labelled = shuffled(&mut Numbers(5), 20);
    let lowest = Threshold::new(0.05).unwrap();
    let place = tempfile::tempdir().unwrap();
    let words = Recipe::built_in("words-1").unwrap();
    let head = crate::text::weight::FrequencyTableHeader::new(&words, 9, 1).to_text();
    std::fs::write(place.path().join("idf.tsv"), format!("{head}w1\t2\t1.5\n")).unwrap();
    let toml = words.to_toml().replace(
        "weights = \"frequency\"",
        "weights = \"tfidf\"\ntable = \"idf.tsv\"",
    );
    let base = Recipe::read_in_directory(&toml, place.path()).unwrap();
    let settings = contenders(&base, &labelled, lowest).unwrap();
    let weights = |method, measure| -> Vec<&str> {
        let all = settings
            .iter()
            .map(|setting| (&setting.recipe, setting.matching));
        let of_words = all.filter(|(recipe, matching)| {
            recipe.terms_id() == base.terms_id()
                && (matching.method, matching.measure) == (method, measure)
        });
        of_words
            .map(|(recipe, _)| recipe.simhash.weights.name())
            .collect()
    };
    assert_eq!(
        weights(MatchMethod::SimHash, SimilarityMeasure::Sketch),
        ["tfidf", "levels", "frequency", "binary"]
    );
    assert_eq!(
        weights(MatchMethod::Auto, SimilarityMeasure::Cosine),
        ["tfidf", "levels"]
    );
    assert_eq!(
        weights(MatchMethod::BottomK, SimilarityMeasure::Sketch),
        ["tfidf"]
    );
    for setting in &settings {
        let recipe = &setting.recipe;
        let read = Recipe::read_in_directory(&recipe.to_toml(), place.path()).unwrap();
        assert_eq!(read.recipe_id(), recipe.recipe_id(), "{}", recipe.name);
        let is_own = recipe.terms_id() == base.terms_id();
        assert!(is_own || recipe.simhash.table.is_none(), "{}", recipe.name);
    }
    assert!(tune_settings(&labelled, &settings, &tune_options(TuningGoal::F1), &|_| {}).is_ok());
}

/// Pairs of texts of 20 words each, which share so many words.
fn sharing(similar: &[(usize, u32)], different: &[(usize, u32)]) -> LabelledTexts {
    let (mut texts, mut pairs) = (Vec::new(), Vec::new());
    for (all, is_similar) in [(similar, true), (different, false)] {
        for &(shared, count) in all {
            for _ in 0..count {
                let at = texts.len() as u32;
                let words = |from: usize| {
                    let words = (from..from + 20).map(|word| format!("w{at}x{word}"));
                    words.collect::<Vec<_>>().join(" ")
                };
                texts.extend([words(0), words(20 - shared)]);
                pairs.push(pair(at, at + 1, is_similar));
            }
        }
    }
    LabelledTexts::from_pairs(texts, pairs, Vec::new()).unwrap()
}

fn of_words(method: MatchMethod, measure: SimilarityMeasure) -> EvaluatedSetting {
    EvaluatedSetting {
        recipe: Recipe::built_in("words-1").unwrap(),
        matching: MatchSettings {
            method,
            measure,
            threshold: Threshold::new(0.05).unwrap(),
            ..MatchSettings::default()
        },
    }
}

/// Similar pairs of any similarity, and others from .6 on only: nothing says what a lower threshold finds
/// wrongly.
#[test]
fn no_threshold_is_chosen_beyond_the_labels() {
    let similar = [(8, 20), (12, 20), (16, 20), (18, 20), (20, 20)];
    let settings = [of_words(MatchMethod::Auto, SimilarityMeasure::Jaccard)];
    let chosen = |labelled: &LabelledTexts, goal| {
        let tuned = tune_settings(labelled, &settings, &tune_options(goal), &|_| {});
        tuned.map(|tuned| tuned.contenders[tuned.chosen].clone())
    };
    let cut = |it: &TunedContender| it.setting.matching.threshold.get();
    // 15 of 25 words: .6; 16 of 24: .667.
    let high = sharing(&similar, &[(15, 4), (16, 4)]);
    let found = chosen(&high, TuningGoal::F1).unwrap();
    assert_eq!(found.reach.limit, Some(0.6));
    // Between .6 and the next score.
    assert_eq!(cut(&found), 0.63);
    assert_eq!(found.reach.without_different[0], [0.05, 0.6]);
    let concerns = |range, cut| found.reach.concerns(range, cut, SweptParameter::Threshold);
    assert!(concerns([0.05, 0.6], 0.6) && concerns([0.4, 1.0], 0.7));
    assert!(!concerns([0.67, 1.0], 0.7));
    // A few that share nothing do not reach the range between.
    let with_unrelated = sharing(&similar, &[(15, 4), (16, 4), (0, 30)]);
    let found = chosen(&with_unrelated, TuningGoal::F1).unwrap();
    assert_eq!(found.reach.limit, Some(0.6));
    assert_eq!(cut(&found), 0.63);
    // Without any that has something in common, nothing below the lowest pair with a label is judged.
    let unrelated = sharing(&similar, &[(0, 30)]);
    let found = chosen(&unrelated, TuningGoal::F1).unwrap();
    assert_eq!(cut(&found), 0.25);
    assert_eq!(found.reach.without_different, [[0.05, 1.0]]);
    // Others over the whole range: a lower threshold is judged by them.
    let all = [
        (2, 8),
        (4, 8),
        (6, 8),
        (9, 8),
        (11, 8),
        (13, 8),
        (15, 8),
        (16, 8),
    ];
    let found = chosen(&sharing(&similar, &all), TuningGoal::F1).unwrap();
    assert!(found.reach.limit.unwrap() < 0.1, "{:?}", found.reach);
    assert!(cut(&found) < 0.3, "{}", cut(&found));
    // One odd label above all others does not decide where they reach.
    let mut odd = all.to_vec();
    odd.push((19, 1));
    let found = chosen(&sharing(&similar, &odd), TuningGoal::F1).unwrap();
    assert!(found.reach.limit.unwrap() < 0.1, "{:?}", found.reach);
}

/// A precision that every threshold keeps says nothing of the setting.
#[test]
fn precision_goal_needs_enough_labels() {
    let similar = [(8, 20), (12, 20), (16, 20), (18, 20), (20, 20)];
    let goal = |least| tune_options(TuningGoal::Precision(least));
    let settings = [
        of_words(MatchMethod::Auto, SimilarityMeasure::Jaccard),
        of_words(MatchMethod::BottomK, SimilarityMeasure::Sketch),
    ];
    // 100 of 108 pairs are similar.
    let few = sharing(&similar, &[(15, 4), (16, 4)]);
    let error = tune_settings(&few, &settings, &goal(0.9), &|_| {})
        .unwrap_err()
        .to_string();
    for words in [
        "cannot judge the precision 0.9",
        "2 of 2 settings",
        "4 of 54 pairs",
    ] {
        assert!(error.contains(words), "{error}");
    }
    let tuned = tune_settings(&few, &settings, &goal(0.95), &|_| {}).unwrap();
    let chosen = &tuned.contenders[tuned.chosen];
    assert!(chosen.is_judged && chosen.counts.precision().unwrap() >= 0.95);
    assert!(chosen.setting.matching.threshold.get() > 0.6);
    // Equality is no matter of a threshold.
    let exact = [of_words(MatchMethod::Exact, SimilarityMeasure::Jaccard)];
    let tuned = tune_settings(&few, &exact, &goal(0.99), &|_| {}).unwrap();
    let contender = &tuned.contenders[0];
    assert!(contender.is_judged && contender.value.is_some_and(|recall| recall > 0.1));
}

#[test]
fn setting_is_tried_on_documents() {
    let texts = ["a b c d e", "a b c d f", "g h i j k", "a b c d e"].map(str::to_owned);
    let at = |threshold| {
        let mut setting = of_words(MatchMethod::Auto, SimilarityMeasure::Jaccard);
        setting.matching.threshold = Threshold::new(threshold).unwrap();
        count_removed(&setting, &texts).unwrap()
    };
    assert_eq!([at(0.5), at(0.8)], [2, 1]);
}
