use super::*;
use crate::plan::MatchMethod;
use crate::similarity::SequenceMeasure;
use crate::sketch::TieBreaker;
use crate::types::Threshold;

fn compare(recipe: &str, settings: MatchSettings, a: &str, b: &str) -> Comparison {
    Comparison::new(&Recipe::built_in(recipe).unwrap(), settings, a, b).unwrap()
}

const CAT: &str = "the cat sat on the mat";
const OTHER_CAT: &str = "the cat sat on a mat";

#[test]
fn steps_are_consistent() {
    for name in Recipe::NAMES {
        let recipe = Recipe::built_in(name).unwrap();
        for text in [
            CAT,
            "你妈妈喊你回家吃饭哦，回家罗回家罗",
            "Ⅻ, mixed 中文!",
            "x",
        ] {
            let compared = compare(name, MatchSettings::default(), text, CAT);
            let steps = &compared.a;
            let (Some(print), true) = (steps.fingerprint, !steps.features.is_empty()) else {
                continue;
            };
            let bits = recipe.simhash.bits;
            let mut sums = vec![0.0; bits as usize];
            for feature in &steps.features {
                let votes = feature.signed_votes(bits);
                sums.iter_mut()
                    .zip(votes)
                    .for_each(|(sum, vote)| *sum += vote);
            }
            assert_eq!(sums, steps.sums, "{name}: {text}");
            for (at, sum) in sums.into_iter().enumerate() {
                let bit = print >> (bits as usize - 1 - at) & 1;
                let expected = match (sum == 0.0, steps.tie, steps.deciding_feature()) {
                    (false, _, _) => u128::from(sum > 0.0),
                    (true, Some(TieBreaker::Bit(bit)), _) => bit.into(),
                    (true, _, Some(feature)) => feature.hash >> (bits as usize - 1 - at) & 1,
                    (true, _, None) => panic!("{name}: {text}: nothing decides"),
                };
                assert_eq!(bit, expected, "{name}: {text}");
            }
            let counted: usize = steps.features.iter().map(|feature| feature.count).sum();
            let mut scratch = AnalysisScratch::default();
            let analyzer = TextAnalyzer::new(&recipe);
            assert_eq!(
                counted,
                analyzer.analyze_text(text, &mut scratch).feature_count()
            );
        }
    }
}

#[test]
fn figures_equal_a_worked_example() {
    let compared = compare("words-1", MatchSettings::default(), CAT, OTHER_CAT);
    let value = |name: &str| compared.find_figure(name).unwrap().value.unwrap();
    // {the cat sat on mat} and {the cat sat on a mat}.
    assert_eq!(value("Jaccard"), 5.0 / 6.0);
    assert_eq!(value("containment"), 1.0);
    // Dot product 2·1 + 4 over the lengths of (2, 1, 1, 1, 1) and of six ones.
    assert_eq!(value("cosine of counts"), 6.0 / 48f64.sqrt());
    assert_eq!(value("cosine of weights"), value("cosine of counts"));
    assert_eq!(value("Euclidean distance"), 2f64.sqrt());
    assert_eq!(value("Levenshtein by words"), 5.0 / 6.0);
    assert_eq!(value("Indel by words"), 10.0 / 12.0);
    // "the" becomes "a": three edits in 22 characters.
    assert_eq!(value("Levenshtein"), 19.0 / 22.0);
    assert_eq!(value("longest common substring"), 2.0 * 15.0 / 42.0);
    assert_eq!(value("bottom-k"), 5.0 / 6.0);
    assert_eq!(compared.a.normalized, CAT);
    assert_eq!(compared.a.features[0].text, "the");
    assert_eq!(compared.a.features[0].count, 2);
}

#[test]
fn verdict_equals_a_run_and_gives_the_reason() {
    let settings = |method, threshold| MatchSettings {
        method,
        threshold: Threshold::new(threshold).unwrap(),
        ..MatchSettings::default()
    };
    let why = |settings, a, b| {
        let verdict = compare("words-1", settings, a, b).verdict;
        (verdict.matched.map(|(route, _)| route), verdict.why)
    };
    let five_sixths = 5.0 / 6.0;
    let (route, said) = why(settings(MatchMethod::Auto, five_sixths), CAT, OTHER_CAT);
    assert_eq!(route, Some(Route::Join));
    assert!(said.contains("Jaccard 0.8333"), "{said}");
    let (route, said) = why(settings(MatchMethod::Auto, 0.84), CAT, OTHER_CAT);
    assert_eq!(route, None);
    assert!(said.contains("is below the threshold 0.84"), "{said}");
    let (route, said) = why(
        settings(MatchMethod::Auto, 0.8),
        CAT,
        "The CAT sat, on the mat!",
    );
    assert_eq!(route, Some(Route::Exact));
    assert!(said.contains("equal"), "{said}");
    let (route, said) = why(
        settings(MatchMethod::SimHash, 0.8),
        CAT,
        "we all scream for ice cream",
    );
    assert_eq!(route, None);
    assert!(said.contains("bits, more than the distance 3"), "{said}");
    let (route, said) = why(settings(MatchMethod::Exact, 1.0), CAT, OTHER_CAT);
    assert_eq!(route, None);
    assert!(said.contains("not equal"), "{said}");
    for (a, b, expected) in [
        ("", "", "matches nothing"),
        ("!", "?", "too short for a feature"),
    ] {
        let (route, said) = why(settings(MatchMethod::Auto, 0.8), a, b);
        assert_eq!(route, None);
        assert!(said.contains(expected), "{said}");
    }
}

#[test]
fn every_measure_decides_by_the_shown_figure() {
    for measure in [
        SimilarityMeasure::Jaccard,
        SimilarityMeasure::Containment,
        SimilarityMeasure::Cosine,
        SimilarityMeasure::Levenshtein,
        SimilarityMeasure::Indel,
        SimilarityMeasure::Substring,
    ] {
        for unit in [EditUnit::Characters, EditUnit::Words] {
            let settings = MatchSettings {
                method: MatchMethod::Join,
                measure,
                unit,
                threshold: Threshold::new(0.6).unwrap(),
                ..MatchSettings::default()
            };
            let compared = compare("words-1", settings, CAT, OTHER_CAT);
            let plan = MatchPlan::new(&Recipe::built_in("words-1").unwrap(), settings).unwrap();
            let shown = deciding_figure(&plan, &compared.figures, Route::Join).unwrap();
            let (_, similarity) = compared.verdict.matched.unwrap();
            assert_eq!(shown.value, Some(similarity.get()), "{measure:?} {unit:?}");
        }
    }
}

#[test]
fn unverified_match_shows_its_route_figure() {
    let settings = MatchSettings {
        measure: SimilarityMeasure::Sketch,
        ..MatchSettings::default()
    };
    let words = |from: usize, count| (from..from + count).map(|word| format!("w{word}"));
    let (mut matched, mut estimated) = (0, 0);
    for own in 1..60 {
        for shared in [30, 200] {
            let text = |from| {
                words(0, shared)
                    .chain(words(from, own))
                    .collect::<Vec<_>>()
                    .join(" ")
            };
            let compared = compare("words-1", settings, &text(1000), &text(2000));
            let verdict = &compared.verdict;
            let name = if shared + own > 64 {
                "MinHash"
            } else {
                "Jaccard"
            };
            let figure = compared.find_figure(name).unwrap();
            assert_eq!(verdict.similarity, figure.value, "{shared} {own}");
            assert!(verdict.why.contains(name), "{}", verdict.why);
            let reaches = figure.value.is_some_and(|value| value >= 0.75);
            assert!(reaches || verdict.matched.is_none(), "{shared} {own}");
            matched += usize::from(verdict.matched.is_some());
            estimated += usize::from(name == "MinHash");
        }
    }
    assert!((10..100).contains(&matched) && (10..100).contains(&estimated));
}

#[test]
fn compat_texts_are_normalised_by_their_scheme() {
    let text = " THE  Cat, sat\u{3000}on Ünter-den ΟΔΟΣ 猫。 x_y ";
    for (name, expected) in [
        ("1e0ng", "thecatsatonünterdenοδος猫x_y"),
        ("seomoz", "the cat sat on ünter den οδος 猫 x_y"),
        ("news-md5", "THE Cat, sat on Ünter-den ΟΔΟΣ 猫。 x_y"),
        (
            "java-classic",
            "THE Cat, sat\u{3000}on Ünter-den ΟΔΟΣ 猫。 x_y",
        ),
        (
            "datasketch-affine32",
            "THE Cat, sat on Ünter-den ΟΔΟΣ 猫。 x_y",
        ),
    ] {
        let compared = compare(name, MatchSettings::default(), text, expected);
        assert_eq!(compared.a.normalized, expected, "{name}");
        assert_eq!(
            compared.find_figure("Levenshtein").unwrap().value,
            Some(1.0),
            "{name}"
        );
        assert_eq!(compared.a.fingerprint, compared.b.fingerprint, "{name}");
        assert_eq!(compared.a.signature, compared.b.signature, "{name}");
    }
}

#[test]
fn texts_without_features_have_no_figures() {
    let compared = compare("default", MatchSettings::default(), "a", "A");
    assert!(compared.verdict.matched.is_some());
    for name in [
        "Jaccard",
        "containment",
        "cosine of counts",
        "Euclidean distance",
    ] {
        assert_eq!(compared.find_figure(name).unwrap().value, None, "{name}");
    }
    assert_eq!(
        compared.find_figure("Levenshtein").unwrap().value,
        Some(1.0)
    );
    assert_eq!(compared.find_figure("bottom-k"), None);
    let compared = compare("default", MatchSettings::default(), "!!!", "!!!");
    assert_eq!(compared.find_figure("Levenshtein").unwrap().value, None);
    assert_eq!(compared.verdict.similarity, Some(1.0));
}

#[test]
fn unverified_match_has_sketches_as_reason() {
    let by = |method, distance| MatchSettings {
        method,
        distance,
        measure: SimilarityMeasure::Sketch,
        ..MatchSettings::default()
    };
    let why = |settings, a, b| compare("words-1", settings, a, b).verdict.why;
    let differing = compare("words-1", MatchSettings::default(), CAT, OTHER_CAT);
    let differing = differing.a.fingerprint.unwrap() ^ differing.b.fingerprint.unwrap();
    let distance = differing.count_ones();
    let said = why(by(MatchMethod::SimHash, distance), CAT, OTHER_CAT);
    assert!(said.contains("at most the distance"), "{said}");
    let said = why(by(MatchMethod::SimHash, distance - 1), CAT, OTHER_CAT);
    assert!(said.contains("more than the distance"), "{said}");
    let [a, b] = [
        "A short one. What a long sentence this is!",
        "What a long sentence this is! No.",
    ];
    let one = MatchSettings {
        sentences: 1,
        ..by(MatchMethod::Sentences, 3)
    };
    assert_eq!(why(one, a, b), "their longest sentences are the same");
}

#[test]
fn too_few_shared_features_are_given_as_reason() {
    let settings = MatchSettings {
        method: MatchMethod::Join,
        measure: SimilarityMeasure::Levenshtein,
        threshold: Threshold::new(0.9).unwrap(),
        ..MatchSettings::default()
    };
    // One or two letters differ in each of three words.
    let [a, b] = [
        "international cooperations notwithstanding",
        "internationel cooperationz notwithstendin",
    ];
    let said = compare("words-1", settings, a, b).verdict;
    assert_eq!(said.matched, None);
    assert!(
        said.why.contains("too few features to be candidates"),
        "{}",
        said.why
    );
}

#[test]
fn too_different_texts_are_reported() {
    let [a, b] = [1u32, 5].map(|from| (from..from + 6).collect::<Vec<_>>());
    let character = SymbolNoun {
        singular: "character",
        plural: "characters",
    };
    let levenshtein =
        |most| SequenceMeasure::Levenshtein.describe_similarity(&a, &b, most, character);
    let (similarity, detail) = levenshtein(6).unwrap();
    assert_eq!(similarity.get(), 0.0);
    assert_eq!(detail, "6 edits, 6 characters in the longer");
    let refused = levenshtein(5).unwrap_err().to_string();
    assert!(refused.contains("differ in more than 5 edits"), "{refused}");
}

#[test]
fn inputs_of_sketches_are_shown() {
    let compared = compare("words-1", MatchSettings::default(), CAT, OTHER_CAT);
    let [a, b] = [&compared.a.smallest, &compared.b.smallest];
    assert!(a.is_sorted() && (a.len(), b.len()) == (5, 6));
    for steps in [&compared.a, &compared.b] {
        let mut values: Vec<_> = steps.features.iter().map(|feature| feature.value).collect();
        values.sort_unstable();
        assert_eq!(steps.smallest, values);
        assert_eq!(steps.sentences, None);
    }
    let long: String = (0..200).map(|word| format!("w{word} ")).collect();
    let kept = compare("words-1", MatchSettings::default(), &long, "")
        .a
        .smallest;
    assert_eq!(kept.len(), 128);
    let settings = MatchSettings {
        method: MatchMethod::Sentences,
        sentences: 2,
        ..MatchSettings::default()
    };
    let text = "One is short. Another one is the longest. This is longer.";
    let compared = compare("words-1", settings, text, "?!");
    let sentences = compared.a.sentences.unwrap();
    let sentences: Vec<_> = sentences
        .iter()
        .map(|sentence| (&*sentence.text, sentence.characters))
        .collect();
    let expected = [("Another one is the longest.", 26), ("This is longer.", 14)];
    assert_eq!(sentences, expected);
    assert_eq!(compared.b.sentences, Some(Vec::new()));
}
