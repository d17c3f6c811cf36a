//! Tests of words cut by jieba, filters, and weights from tables.

use std::path::Path;

use crate::arch::Cpu;
use crate::recipe::{NormalizationStep, Recipe, SegmentationMode, TokenKind};
use crate::sketch::SimHasher;
use crate::text::weight::{FrequencyTableHeader, WEIGHT_STEPS};
use crate::text::{AnalysisScratch, TextAnalyzer, TextState};

fn recipe_with(name: &str, fields: &str) -> Recipe {
    let mut table: toml::Table = Recipe::built_in(name).unwrap().to_toml().parse().unwrap();
    let fields: toml::Table = fields.parse().unwrap();
    for (key, value) in fields {
        match (table.get_mut(&key), value) {
            (Some(toml::Value::Table(into)), toml::Value::Table(from)) => into.extend(from),
            (_, value) => {
                table.insert(key, value);
            }
        }
    }
    toml::to_string(&table).unwrap().parse().unwrap()
}

fn cut(recipe: &Recipe, text: &str) -> String {
    let mut words = Vec::new();
    let analyzer = TextAnalyzer::new(recipe);
    analyzer.visit_terms(text, &mut AnalysisScratch::default(), false, &mut |term| {
        words.push(term.text.to_owned());
    });
    words.join("/")
}

fn named(name: &str, text: &str) -> String {
    cut(&Recipe::built_in(name).unwrap(), text)
}

fn without_hmm() -> Recipe {
    recipe_with("jieba", "segment.hmm = false")
}

/// The examples are those of jieba's documentation.
#[test]
fn jieba_modes_equal_the_published_ones() {
    for (name, text, words) in [
        ("jieba", "我来到北京清华大学", "我/来到/北京/清华大学"),
        ("jieba", "他来到了网易杭研大厦", "他/来到/了/网易/杭研/大厦"),
        (
            "jieba-full",
            "我来到北京清华大学",
            "我/来到/北京/清华/清华大学/华大/大学",
        ),
        (
            "jieba-search",
            "小明硕士毕业于中国科学院计算所，后在日本京都大学深造",
            "小明/硕士/毕业/于/中国/科学/学院/科学院/中国科学院/计算/计算所/后/在/日本/京都/大学/\
             日本京都大学/深造",
        ),
    ] {
        assert_eq!(named(name, text), words);
    }
    assert_eq!(
        cut(&without_hmm(), "他来到了网易杭研大厦"),
        "他/来到/了/网易/杭/研/大厦"
    );
}

#[test]
fn other_scripts_are_cut_as_by_the_words_unit() {
    for name in ["jieba", "jieba-full", "jieba-search"] {
        for text in [
            "The quick brown FOX, café naïve 3.14 C++ x",
            "ひらがな カタカナ",
            "한국어 텍스트",
            "ภาษาไทย",
            "Ünïcödé\u{301} ﬁne 𝒳 😀",
            "𰻞",
        ] {
            assert_eq!(named(name, text), named("words-1", text), "{name} {text}");
        }
    }
}

#[test]
fn ascii_words_stay_with_ideographs() {
    assert_eq!(named("jieba", "清华大学"), "清华大学");
    for between in ["，", " ", "\u{3000}", "\n", "、", "·", "\u{1}", "\u{2}"] {
        let text = format!("清华{between}大学");
        assert_eq!(named("jieba", &text), "清华/大学", "{between:?}");
        assert_eq!(named("jieba-full", &text), "清华/大学", "{between:?}");
    }
    // A zero-width character is removed and does not separate its neighbours.
    assert_eq!(named("jieba", "清\u{200b}华大\u{feff}学"), "清华大学");
    assert_eq!(named("jieba", "我的4S店在café旁"), "我/的/4s店/在/café/旁");
    assert_eq!(
        named("jieba-full", "卡拉ab清华 cd大学"),
        "卡拉/ab/清华/cd/大学"
    );
}

/// The expected words are those of jieba 0.42.1.
#[test]
fn full_mode_finds_words_with_ascii() {
    for (text, words) in [
        ("去4S店买", "去/4s店/买"),
        ("去4s店abc买", "去/4s店/abc/买"),
        ("在1号店", "在/1号店"),
        ("江南style舞", "江南/江南style/舞"),
    ] {
        assert_eq!(named("jieba-full", text), words);
    }
    let own = "卡拉OK 1000\nok厅 100\nrng八连胜 3\nb超 9\n";
    let recipe = with_files(
        &[("own.txt", own)],
        "jieba-full",
        "[segment]\nuser = \"own.txt\"",
    )
    .unwrap();
    for (text, words) in [
        ("卡拉ok厅", "卡拉/卡拉ok/ok厅"),
        ("rng八连胜", "rng八连胜/八连/连胜"),
        ("做b超查", "做/b超/查"),
        ("卡拉x", "卡拉/x"),
    ] {
        assert_eq!(cut(&recipe, text), words);
    }
}

#[test]
fn variants_of_a_text_have_the_same_words() {
    let recipe = Recipe::built_in("jieba").unwrap();
    let analyzer = TextAnalyzer::new(&recipe);
    let key = |text: &str| {
        analyzer
            .analyze_text(text, &mut AnalysisScratch::default())
            .key
    };
    let plain = "清晨六点，老船长已经把缆绳解开了。ABC公司";
    for variant in [
        "清晨六點，老船長已經把纜繩解開了。ABC公司",
        "清晨六点,老船长已经把缆绳解开了!ＡＢＣ公司",
        "清晨六点　老船长已经把缆绳\u{200d}解开了 abc公司",
    ] {
        assert_eq!(key(variant), key(plain), "{variant}");
    }
    assert_ne!(key("清晨六点"), key("清晨七点"));
}

/// The layout and the definition yield the same tokens for every text.
#[test]
fn spelled_tokens_equal_the_definition() {
    let texts = [
        "",
        "  \t\n ",
        "Plain words, and 中文字符 mixed; İstanbul ﬃ ½ ㎏",
        "e\u{301}\u{323} ᾳ\u{323} 각 \u{1100}\u{1161} x\u{345}",
        "a  b\tc -- d",
        "한글 𠀀𠀁 ｱｲｳ \u{202e}x",
    ];
    for tokens in [
        TokenKind::Words,
        TokenKind::Characters,
        TokenKind::Whitespace,
    ] {
        for normalize in [
            vec![],
            vec![
                NormalizationStep::Nfkc,
                NormalizationStep::Fold,
                NormalizationStep::Punctuation,
                NormalizationStep::Whitespace,
            ],
            vec![
                NormalizationStep::Fold,
                NormalizationStep::NoWhitespace,
                NormalizationStep::Punctuation,
            ],
            vec![NormalizationStep::Whitespace],
        ] {
            let recipe = Recipe {
                tokens,
                normalize,
                ..Recipe::default()
            };
            let analyzer = TextAnalyzer::new(&recipe);
            for text in texts {
                let mut spelled = Vec::new();
                analyzer.visit_terms(text, &mut AnalysisScratch::default(), false, &mut |term| {
                    spelled.push(term.value);
                });
                let defined: Vec<_> = (analyzer.list_tokens(text).iter())
                    .map(crate::text::TextToken::token_value)
                    .collect();
                assert_eq!(spelled, defined, "{recipe:?} {text:?}");
            }
        }
    }
}

#[test]
fn long_texts_are_cut_in_seamless_batches() {
    let recipe = Recipe::built_in("jieba").unwrap();
    let sentence = "我来到北京清华大学, it is fine。";
    let long = sentence.repeat(3000);
    let words = format!("{}/", cut(&recipe, sentence));
    assert_eq!(format!("{}/", cut(&recipe, &long)), words.repeat(3000));
    let unbroken = "清华大学".repeat(20_000);
    assert_eq!(cut(&recipe, &unbroken).split('/').count(), 20_000);
}

#[test]
fn filters_drop_words_by_length_list_and_tag() {
    let text = "我们的船长已经把缆绳解开了 and THE ferry is leaving";
    let least = |n: u32| recipe_with("jieba", &format!("filter.least_characters = {n}"));
    assert_eq!(cut(&least(0), text), cut(&least(1), text));
    assert!(cut(&least(1), text).contains("/的/"));
    assert!(
        cut(&least(2), text)
            .split('/')
            .all(|word| word.chars().count() >= 2)
    );
    assert!(
        cut(&least(3), text)
            .split('/')
            .all(|word| word.chars().count() >= 3)
    );
    let stopped = recipe_with("jieba", "filter.stopwords = [\"zh\", \"en\"]");
    assert_eq!(cut(&stopped, text), "船长/已经/缆绳/解开/ferry/leaving");
    let english = recipe_with("words-1", "filter.stopwords = \"en\"");
    assert_eq!(cut(&english, "The ferry IS leaving"), "ferry/leaving");
    let nouns = recipe_with("jieba", "filter.parts = \"n\"");
    assert_eq!(cut(&nouns, "船长把缆绳解开了"), "船长/缆绳");
    let content = recipe_with("jieba", "filter.parts = \"content\"");
    assert_eq!(
        cut(&content, "船长把缆绳解开了 ferry 12"),
        "船长/缆绳/解开/ferry"
    );
    // The tokens that pass the filters decide the state of the text.
    let analyzer = TextAnalyzer::new(&stopped);
    let mut scratch = AnalysisScratch::default();
    assert_eq!(
        analyzer.analyze_text("我们的", &mut scratch).state,
        TextState::SymbolsOnly
    );
    assert_eq!(
        analyzer.analyze_text("船长", &mut scratch).state,
        TextState::Fingerprintable
    );
}

/// The built-in lists must never change, because fingerprints depend on them.
#[test]
fn built_in_stopwords_are_pinned() {
    let digest = |list: &str| {
        let words = stop_words::lookup(list).unwrap();
        (words.len(), crate::value_hash(words.join("\n").as_bytes()))
    };
    assert_eq!((digest("zh"), digest("en")), PINNED_STOPWORDS);
}

const PINNED_STOPWORDS: ((usize, u64), (usize, u64)) = (
    (794, 16_950_315_557_919_800_326),
    (1298, 842_160_851_138_429_507),
);

/// Writes the files of a recipe, and reads the recipe with them.
fn with_files(files: &[(&str, &str)], name: &str, fields: &str) -> crate::Result<Recipe> {
    let directory = tempfile::tempdir().unwrap();
    for (file, content) in files {
        std::fs::write(directory.path().join(file), content).unwrap();
    }
    let toml = Recipe::built_in(name).unwrap().to_toml();
    let toml = match fields.split_once('\n') {
        Some((section, rest)) if toml.contains(section) => {
            toml.replacen(section, &format!("{section}\n{rest}"), 1)
        }
        _ => format!("{toml}\n{fields}"),
    };
    let toml = if fields.contains("weights") {
        toml.replacen("weights = \"frequency\"\n", "", 1)
    } else {
        toml
    };
    Recipe::read_in_directory(&toml, directory.path())
}

#[test]
fn user_dictionaries_make_words() {
    let text = "李小福是创新办主任也是云计算方面的专家";
    let plain = named("jieba", text);
    assert!(!plain.contains("创新办"), "{plain}");
    let user = "创新办 3 i\r\n\n李小福 2 nr\n雲計算\n";
    let recipe = with_files(&[("u.txt", user)], "jieba", "[segment]\nuser = \"u.txt\"").unwrap();
    assert_eq!(
        cut(&recipe, text),
        "李小福/是/创新办/主任/也/是/云计算/方面/的/专家"
    );
    // The embedded dictionary and other recipes are unchanged.
    assert_eq!(named("jieba", text), plain);
    assert_ne!(
        recipe.recipe_id(),
        Recipe::built_in("jieba").unwrap().recipe_id()
    );
    for (line, said) in [
        ("a\n创新办 3 i y", "u.txt:2: 'y' is too much"),
        ("创新办 0", "u.txt:1: '0' is not a valid frequency"),
        ("创新办 1.5 n", "u.txt:1: '1.5' is not a valid frequency"),
        (
            "a 1\n\nb 1000000001",
            "u.txt:3: '1000000001' is not a valid frequency",
        ),
    ] {
        let recipe = with_files(&[("u.txt", line)], "jieba", "[segment]\nuser = \"u.txt\"");
        let error = recipe.unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
}

/// A table that was learned without filters is accepted by a recipe of single tokens with added filters, but
/// not by a recipe with other terms.
#[test]
fn filters_can_follow_a_learned_table() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("s.txt"), "船长\n").unwrap();
    let read = |ngram: u32, (least, lists): (u32, &[&str]), table: Option<&str>| {
        let mut recipe = Recipe::built_in("words-1").unwrap();
        recipe.ngram = ngram;
        recipe.filter.least_characters = least;
        recipe.filter.stopwords = lists.iter().map(|&list| list.to_owned()).collect();
        if let Some(table) = table {
            std::fs::write(directory.path().join("t.tsv"), table).unwrap();
            recipe.simhash.weights = crate::recipe::WeightScheme::Tfidf;
            recipe.simhash.table = Some("t.tsv".to_owned());
        }
        Recipe::read_in_directory(&recipe.to_toml(), directory.path())
    };
    let table = |ngram: u32, filter: (u32, &[&str])| {
        let head = crate::text::weight::FrequencyTableHeader::new(
            &read(ngram, filter, None).unwrap(),
            9,
            1,
        );
        head.to_text() + "船员\t3\t1.9163\n"
    };
    let (none, stopwords, both) = ((0, &[][..]), (0, &["s.txt"][..]), (2, &["s.txt"][..]));
    for (learned, filter) in [
        (none, stopwords),
        (none, both),
        (stopwords, both),
        (both, both),
    ] {
        let read = read(1, filter, Some(&table(1, learned)));
        assert!(read.is_ok(), "{learned:?} {filter:?}: {:?}", read.err());
    }
    for (learned, filter) in [(stopwords, none), (both, stopwords)] {
        let error = read(1, filter, Some(&table(1, learned)))
            .unwrap_err()
            .to_string();
        assert!(error.contains("has other terms"), "{error}");
    }
    let error = read(2, stopwords, Some(&table(2, none)))
        .unwrap_err()
        .to_string();
    assert!(error.contains("recipe of single tokens"), "{error}");
}

#[test]
fn identity_covers_file_contents_not_names() {
    let filter = |file: &str, content: &str| {
        let fields = format!("[filter]\nstopwords = [\"{file}\"]");
        with_files(&[(file, content)], "words-1", &fields).unwrap()
    };
    let recipe = filter("a.txt", "船长\n");
    assert_eq!(recipe.recipe_id(), filter("b.txt", "船长\n").recipe_id());
    assert_ne!(recipe.recipe_id(), filter("a.txt", "船员\n").recipe_id());
    assert_ne!(recipe.terms_id(), filter("a.txt", "船员\n").terms_id());
    // The TOML contains the digest of the file with which it was made.
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("a.txt");
    std::fs::write(&place, "船长\n").unwrap();
    let again = Recipe::read_in_directory(&recipe.to_toml(), directory.path()).unwrap();
    assert_eq!((again.recipe_id(), &again), (recipe.recipe_id(), &recipe));
    std::fs::write(&place, "船员\n").unwrap();
    let error = Recipe::read_in_directory(&recipe.to_toml(), directory.path())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("a.txt has the digest") && error.contains("[files] says"),
        "{error}"
    );
    let error = Recipe::read_in_directory(&recipe.to_toml(), Path::new("/nowhere")).unwrap_err();
    assert!(
        error.to_string().contains("cannot read /nowhere/a.txt"),
        "{error}"
    );
}

#[test]
fn weights_come_from_tables() {
    let weighted = |table: &str, weights: &str, text: &str| {
        let fields = format!("[simhash]\nweights = \"{weights}\"\ntable = \"t.tsv\"");
        let recipe = with_files(&[("t.tsv", table)], "jieba", &fields).unwrap();
        let analyzer = TextAnalyzer::new(&recipe);
        let mut scratch = AnalysisScratch::default();
        let analysis = analyzer.analyze_text(text, &mut scratch);
        let mut weights: Vec<_> = analysis
            .iter_weighted()
            .unwrap()
            .map(|(_, weight)| weight)
            .collect();
        weights.sort_unstable();
        weights
    };
    let steps = |weights: &[f64]| -> Vec<i64> {
        let step = |weight: &f64| (weight * WEIGHT_STEPS as f64).round() as i64;
        weights.iter().map(step).collect()
    };
    let text = "北京大学 北京 船 船";
    assert_eq!(
        weighted("北京\t2.5\n北京大學\t4\n", "given", text),
        steps(&[2.0, 2.5, 4.0])
    );
    assert_eq!(
        weighted("北京\t2\n船\t5\n", "levels", text),
        steps(&[1.0, 2.0, 5.0])
    );
    let head = FrequencyTableHeader::new(&Recipe::built_in("jieba").unwrap(), 10, 2);
    let table = format!("{}北京\t9\t1.5\n船\t1\t3.25\n", head.to_text());
    assert_eq!(weighted(&table, "tfidf", text), steps(&[1.5, 3.25, 6.5]));
    assert_eq!(weighted(&table, "levels", text), steps(&[1.0, 2.0, 4.0]));
    let other = FrequencyTableHeader::new(&Recipe::built_in("words-1").unwrap(), 10, 0).to_text();
    for (table, weights, said) in [
        (other.as_str(), "tfidf", "has other terms than this recipe"),
        (
            other.as_str(),
            "given",
            "is a table of document frequencies",
        ),
        ("北京\t1", "tfidf", "is not a table of document frequencies"),
        ("北京\t7", "levels", "t.tsv:1: the level of '北京' is 7"),
        ("北京\tseven", "given", "t.tsv:1: 'seven' is not a weight"),
        (
            table.replace("船\t", "\t").as_str(),
            "tfidf",
            "t.tsv:8: '' is not a valid term",
        ),
        (
            table.replace("船\t", "\\q\t").as_str(),
            "tfidf",
            "t.tsv:8: '\\q' is not a valid term",
        ),
        (
            "北京\t2\n有轨电车 3",
            "given",
            "t.tsv:2: a line is a term, a tab",
        ),
    ] {
        let fields = format!("[simhash]\nweights = \"{weights}\"\ntable = \"t.tsv\"");
        let error = with_files(&[("t.tsv", table)], "jieba", &fields)
            .unwrap_err()
            .to_string();
        assert!(error.contains(said), "{error}");
    }
}

#[test]
fn weightless_features_do_not_vote() {
    let fingerprint = |table: &str, text: &str| {
        let fields = "[simhash]\nweights = \"given\"\ntable = \"t.tsv\"";
        let recipe = with_files(&[("t.tsv", table)], "jieba", fields).unwrap();
        let analyzer = TextAnalyzer::new(&recipe);
        let hasher = SimHasher::new(&recipe.simhash, Cpu::detect_best());
        hasher.fingerprint(&analyzer.analyze_text(text, &mut AnalysisScratch::default()))
    };
    let none = "的\t0\n了\t0\n不\t0\n";
    assert_eq!(fingerprint(none, "的 了 不"), None);
    assert!(fingerprint("的\t0\n了\t0\n", "的 了 不").is_some());
    let without = fingerprint(none, "北京 大学");
    assert_eq!(fingerprint(none, "的 北京 了 大学 不"), without);
}

#[test]
fn features_can_begin_and_end_with_a_space() {
    let table = " 最近\t3\n近有 \t5\n最近有 \t7\n";
    let fields = "[simhash]\nweights = \"given\"\ntable = \"t.tsv\"";
    let recipe = with_files(&[("t.tsv", table)], "characters-3", fields).unwrap();
    let analyzer = TextAnalyzer::new(&recipe);
    let mut scratch = AnalysisScratch::default();
    let analysis = analyzer.analyze_text("ab 最近有 x", &mut scratch);
    let weights: Vec<_> = analysis.iter_weighted().unwrap().collect();
    let weights: Vec<_> = weights.iter().map(|(_, it)| it / WEIGHT_STEPS).collect();
    assert_eq!(weights, [1, 1, 3, 7, 5, 1]);
}

/// The terms of a learned table map to their features, whatever the recipe's tokens.
#[test]
fn learned_terms_map_to_their_features() {
    let text = "The ferry 船长 leaves, a薴b\u{3000}x y";
    for (name, between) in [
        ("default", " "),
        ("words-3", " "),
        ("characters-3", ""),
        ("jieba", " "),
    ] {
        let recipe = Recipe::built_in(name).unwrap();
        let mut tokens = Vec::new();
        let analyzer = TextAnalyzer::new(&recipe);
        analyzer.visit_terms(text, &mut AnalysisScratch::default(), false, &mut |term| {
            tokens.push(term.text.to_owned());
        });
        let mut terms: Vec<_> = (tokens.windows(recipe.ngram as usize))
            .map(|window| window.join(between))
            .collect();
        terms.sort();
        terms.dedup();
        let mut table = FrequencyTableHeader::new(&recipe, 100, terms.len() + 1).to_text();
        for term in &terms {
            table += &format!("{}\t5\t2.0000\n", term.replace('\\', "\\\\"));
        }
        table += "zzz zzz zzz\t1\t9.0000\n";
        let fields = "[simhash]\nweights = \"tfidf\"\ntable = \"t.tsv\"";
        let weighted = with_files(&[("t.tsv", &table)], name, fields).unwrap();
        let analyzer = TextAnalyzer::new(&weighted);
        let mut scratch = AnalysisScratch::default();
        let analysis = analyzer.analyze_text(text, &mut scratch);
        let weights: Vec<_> = analysis.iter_weighted().unwrap().collect();
        assert_eq!(weights.len(), terms.len(), "{name}");
        for (_, weight) in weights {
            assert_eq!(weight % (2 * WEIGHT_STEPS), 0, "{name}");
            assert_ne!(weight, 9 * WEIGHT_STEPS, "{name}");
        }
    }
}

#[test]
fn modes_have_distinct_identities() {
    let mut ids: Vec<_> = Recipe::NAMES
        .iter()
        .map(|name| Recipe::built_in(name).unwrap().recipe_id().0)
        .collect();
    ids.push(without_hmm().recipe_id().0);
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), Recipe::NAMES.len());
    assert_eq!(
        Recipe::built_in("jieba-full").unwrap().segmentation_mode(),
        Some(SegmentationMode::Full)
    );
    let error = Recipe::built_in("jieba").unwrap().to_toml();
    let error = error
        .replace("jieba-rs-0.11.0", "jieba-rs-0.12.0")
        .parse::<Recipe>()
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("'jieba-rs-0.12.0', but this program has"),
        "{error}"
    );
}

/// Even the lightest feature has a weight. Without it, texts of different light features would all have the
/// same fingerprint.
#[test]
fn lightest_features_weigh_one_step() {
    for name in ["default-1", "1e0ng", "seomoz", "java-classic"] {
        let recipe = Recipe::built_in(name).unwrap();
        let analyzer = TextAnalyzer::new(&recipe);
        let mut scratch = AnalysisScratch::default();
        let mut fingerprint = |features: &[(&str, f64)]| {
            let analysis = analyzer.analyze_features(features.iter().copied(), &mut scratch);
            SimHasher::new(&recipe.simhash, Cpu::detect_best()).fingerprint(&analysis)
        };
        let light = fingerprint(&[("one", 1e-9), ("two", 1e-9), ("three", 1e-9)]);
        let other = fingerprint(&[("four", 1e-9), ("five", 1e-9), ("six", 1e-9)]);
        assert_ne!(light, other, "{name}");
        let step = 1.0 / WEIGHT_STEPS as f64;
        let steps = fingerprint(&[("one", step), ("two", step), ("three", step)]);
        assert_eq!(light, steps, "{name}");
    }
}
