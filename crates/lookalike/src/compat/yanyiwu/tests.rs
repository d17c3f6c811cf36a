use std::collections::BTreeMap;

use super::lookup3;
use crate::recipe::Recipe;
use crate::sketch::{SimHasher, list_ballots};
use crate::text::{AnalysisScratch, TextAnalyzer};

const RECIPE: &str = r#"
name = "small"
version = 1
scheme = "yanyiwu"
[yanyiwu]
dictionary = "words"
hmm = "model"
idf = "idf"
stopwords = "stop"
[simhash]
bits = 64
weights = "tfidf"
[minhash]
family = "fast-similarity"
slots = 128
"#;

const WORDS: &str = "渡口 40 n\n渡口边 2 s\n边上 9 f\n清早 25 t\n老船 12 n\n船 30 n\n的 400 uj\nA-B 3 nz\n我们 90 r\n";

/// In this model 阿 begins words, 蛮 ends them, and 呀 is a word itself.
const MODEL: &str = "# start\n-0.2 -3.14e+100 -3.14e+100 -1.5\n\n# steps\n\
    -3.14e+100 -0.5 -0.9 -3.14e+100\n-0.6 -3.14e+100 -3.14e+100 -0.8\n\
    -3.14e+100 -0.3 -1.2 -3.14e+100\n-0.7 -3.14e+100 -3.14e+100 -0.6\n\
    阿:-1,蛮:-7,呀:-9\n阿:-8,蛮:-1,呀:-9\n阿:-8,蛮:-4,呀:-9\n阿:-5,蛮:-5,呀:-1\n";

/// The mean of these idfs is 5.
const IDF: &str = "渡口 2\n清早 4\n老船 8\n阿蛮 6\n";

const STOP: &str = "我们\n,\n";

const USER: &str = "清早的 v\n蛮\n老船家 7 n\n";

fn tables() -> BTreeMap<&'static str, String> {
    let tables = [
        ("words", WORDS),
        ("model", MODEL),
        ("idf", IDF),
        ("stop", STOP),
        ("user", USER),
    ];
    tables.map(|(name, text)| (name, text.to_owned())).into()
}

fn read(toml: &str, tables: &BTreeMap<&str, String>) -> crate::error::Result<Recipe> {
    let place = tempfile::tempdir().unwrap();
    for (name, text) in tables {
        std::fs::write(place.path().join(name), text).unwrap();
    }
    Recipe::read_in_directory(toml, place.path())
}

fn recipe() -> Recipe {
    read(RECIPE, &tables()).unwrap()
}

fn with_top(top: usize) -> Recipe {
    let toml = RECIPE.replace("\"tfidf\"", &format!("\"tfidf\"\ntop = {top}"));
    read(&toml, &tables()).unwrap()
}

fn words(recipe: &Recipe, text: &str) -> Vec<String> {
    let tokens = TextAnalyzer::new(recipe).list_tokens(text);
    tokens.iter().map(|token| token.text()).collect()
}

fn fingerprint(recipe: &Recipe, text: &str) -> u64 {
    let mut scratch = AnalysisScratch::default();
    let analyzer = TextAnalyzer::new(recipe);
    let simhash = SimHasher::new(&recipe.simhash, analyzer.cpu());
    simhash
        .original_fingerprint(&analyzer.analyze_text(text, &mut scratch))
        .unwrap() as u64
}

/// Computes the vote with weights whose sums are exact in any order.
fn vote(weighted: &[(&str, i64)]) -> u64 {
    let sum = |bit: u32| -> i64 {
        let votes = weighted.iter().map(|&(word, weight)| {
            match lookup3::hash_64(word.as_bytes()) >> bit & 1 {
                1 => weight,
                _ => -weight,
            }
        });
        votes.sum()
    };
    (0..64).map(|bit| u64::from(sum(bit) > 0) << bit).sum()
}

#[test]
fn short_words_and_stopwords_are_dropped() {
    let recipe = recipe();
    for (text, expected) in [
        ("", ""),
        ("渡口", "渡口"),
        ("渡口边上", "渡口 边上"),
        ("渡口边", "渡口边"),
        ("渡，口", ""),
        ("清早的老船", "清早 老船"),
        ("我们清早", "清早"),
        // The model: pairs of characters, and characters that it has not seen.
        ("阿蛮", "阿蛮"),
        ("呀阿蛮呀阿蛮", "阿蛮 阿蛮"),
        ("船阿蛮", ""),
        ("清早阿蛮呀", "清早 阿蛮"),
        ("阿 蛮", ""),
        // Letters and digits stay together, with decimals behind them.
        ("abc", "abc"),
        ("ab1c2.50d", "ab1c2.50"),
        ("3.14.15", "3.14 15"),
        ("3.x", ""),
        ("渡口5G船", "渡口 5G"),
        ("xA-B1", "A-B"),
    ] {
        assert_eq!(words(&recipe, text).join(" "), expected, "{text}");
    }
}

#[test]
fn user_words_weigh_the_median_or_their_value() {
    let toml = RECIPE.replace("[yanyiwu]\n", "[yanyiwu]\nuser = \"user\"\n");
    let recipe = read(&toml, &tables()).unwrap();
    assert_ne!(recipe.recipe_id(), self::recipe().recipe_id());
    for (text, expected) in [
        ("清早的老船家", "清早的 老船家"),
        // The user's words of one character do not go through the model.
        ("阿蛮", ""),
        ("渡口", "渡口"),
    ] {
        assert_eq!(words(&recipe, text).join(" "), expected, "{text}");
    }
}

#[test]
fn unknown_words_vote_with_the_mean_idf() {
    let recipe = recipe();
    for (text, weighted) in [
        ("渡口清早渡口", &[("渡口", 4), ("清早", 4)][..]),
        (
            "老船，渡口边。渡口",
            &[("老船", 8), ("渡口边", 5), ("渡口", 2)],
        ),
        ("阿蛮和abc我们", &[("阿蛮", 6), ("abc", 5)]),
        ("船", &[]),
    ] {
        assert_eq!(fingerprint(&recipe, text), vote(weighted), "{text}");
    }
}

#[test]
fn recipe_sets_number_of_voting_words() {
    let text = "老船阿蛮的清早的渡口";
    let all = [("老船", 8), ("阿蛮", 6), ("清早", 4), ("渡口", 2)];
    for top in 1..=5 {
        let expected = vote(&all[..top.min(4)]);
        assert_eq!(fingerprint(&with_top(top), text), expected, "{top}");
    }
}

#[test]
fn default_number_of_votes_grows_with_length() {
    let words: Vec<String> = (0..300).map(|at| format!("w{at}")).collect();
    for (count, bytes) in [
        (5, 0),
        (5, 719),
        (6, 720),
        (199, 23_999),
        (200, 24_000),
        (200, 30_000),
    ] {
        let mut text = words.join(" ");
        text.truncate(bytes.max(40));
        text.push_str(&" ".repeat(bytes.saturating_sub(text.len())));
        let expected = fingerprint(&with_top(count), &text);
        assert_eq!(fingerprint(&recipe(), &text), expected, "{bytes}");
        if count < 200 && bytes > 40 {
            assert_ne!(
                fingerprint(&with_top(count + 1), &text),
                expected,
                "{bytes}"
            );
        }
    }
}

#[test]
fn given_features_all_vote_in_doubles() {
    let recipe = with_top(1);
    let mut scratch = AnalysisScratch::default();
    let analyzer = TextAnalyzer::new(&recipe);
    let features = [("渡口", 1e-9), ("清早", 3e-9), ("x", 1e-9)];
    let analysis = analyzer.analyze_features(features, &mut scratch);
    let simhash = SimHasher::new(&recipe.simhash, analyzer.cpu());
    let expected = vote(&[("渡口", 1), ("清早", 3), ("x", 1)]);
    assert_eq!(
        simhash.original_fingerprint(&analysis),
        Some(expected.into())
    );
    let hashes: [u128; 3] = features.map(|(word, _)| lookup3::hash_64(word.as_bytes()).into());
    assert_eq!(list_ballots(&analysis), hashes);
}

#[test]
fn wordless_texts_have_the_empty_fingerprint() {
    let recipe = recipe();
    let analyzer = TextAnalyzer::new(&recipe);
    let simhash = SimHasher::new(&recipe.simhash, analyzer.cpu());
    let mut scratch = AnalysisScratch::default();
    let analysis = analyzer.analyze_text("船。我们", &mut scratch);
    assert_eq!(simhash.original_fingerprint(&analysis), Some(0));
    assert_eq!(simhash.fingerprint(&analysis), None);
}

#[test]
fn bad_table_lines_are_named() {
    let toml = RECIPE.replace("[yanyiwu]\n", "[yanyiwu]\nuser = \"user\"\n");
    for (name, text, said) in [
        ("words", "", "words is empty"),
        (
            "words",
            "渡口 4 n\n边上 9\n",
            "words:2: a line is a word, its frequency",
        ),
        (
            "words",
            "渡口 4 n\n\n",
            "words:2: a line is a word, its frequency",
        ),
        (
            "words",
            " 4 n\n",
            "words:1: a line is a word, its frequency",
        ),
        (
            "words",
            "渡口 0 n\n",
            "words:1: '0' is not a valid frequency: it is a number from 1 to 1000000000",
        ),
        (
            "words",
            "渡口 1000000001 n\n",
            "'1000000001' is not a valid frequency",
        ),
        ("user", "蛮 n n n\n", "user:1: a line is a word, a word and"),
        ("user", "\n蛮 x n\n", "user:2: 'x' is not a valid frequency"),
        (
            "idf",
            "渡口 2\n清早4\n",
            "idf:2: a line is a word, a space, its idf",
        ),
        (
            "idf",
            "渡口 -1\n",
            "idf:1: '-1' is not a valid idf: it is a number from 0 to 1000000",
        ),
        ("idf", "渡口 NaN\n", "'NaN' is not a valid idf"),
        ("idf", "", "idf is empty"),
        (
            "model",
            "# x\n-1 -1 -1\n",
            "model:2: the weights of the four states at the start: there are 3 numbers, but 4 states",
        ),
        (
            "model",
            "-1 -1 -1 1\n",
            "'1' is not a valid logarithm of a probability",
        ),
        (
            "model",
            "-1 -1 -1 -1\n",
            "model:2: expected the weights of the four states after a state",
        ),
    ] {
        let mut tables = tables();
        tables.insert(name, text.to_owned());
        let error = read(&toml, &tables).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
    for (from, to, said) in [
        (
            "阿:-1,",
            "阿-1,",
            "model:9: the weights of characters in a state: '阿-1' is not a character",
        ),
        ("阿:-1,", "阿蛮:-1,", "'阿蛮' is not one character"),
        (
            "阿:-5,蛮:-5,呀:-1\n",
            "",
            "model:12: expected the weights of characters",
        ),
    ] {
        let mut tables = tables();
        tables.insert("model", MODEL.replacen(from, to, 1));
        let error = read(&toml, &tables).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
}

#[test]
fn scheme_needs_its_tables_and_weights() {
    for (from, to, said) in [
        (
            "\"yanyiwu\"\n",
            "\"seomoz\"\n",
            "[yanyiwu] and scheme = \"yanyiwu\" need each other",
        ),
        ("scheme = \"yanyiwu\"\n", "", "unknown field `yanyiwu`"),
        ("idf = \"idf\"\n", "", "missing field `idf`"),
        (
            "bits = 64",
            "bits = 63",
            "simhash.bits is 63, but must be 64",
        ),
        (
            "\"tfidf\"",
            "\"frequency\"",
            "set simhash.weights = \"tfidf\"",
        ),
        (
            "\"tfidf\"",
            "\"tfidf\"\ntable = \"idf\"",
            "has its weights in yanyiwu.idf",
        ),
        ("\"tfidf\"", "\"tfidf\"\ntop = 0", "simhash.top is 0"),
    ] {
        let toml = RECIPE.replacen(from, to, 1);
        assert_ne!(toml, RECIPE);
        let error = read(&toml, &tables()).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
    let bare = RECIPE.replace(
        "[yanyiwu]\ndictionary = \"words\"\nhmm = \"model\"\nidf = \"idf\"\nstopwords = \"stop\"\n",
        "",
    );
    let error = read(&bare, &tables()).unwrap_err().to_string();
    assert!(error.contains("need each other"), "{error}");
    let error = Recipe::built_in("yanyiwu").unwrap_err().to_string();
    assert!(
        error.contains("dictionary = \"jieba.dict.utf8\""),
        "{error}"
    );
}

#[test]
fn identity_covers_content_not_table_names() {
    let recipe = recipe();
    let again = read(&recipe.to_toml(), &tables()).unwrap();
    assert_eq!(again, recipe);
    let mut renamed = tables();
    renamed.insert("other", renamed["idf"].clone());
    let other = RECIPE.replace("idf = \"idf\"", "idf = \"other\"");
    assert_eq!(
        read(&other, &renamed).unwrap().recipe_id(),
        recipe.recipe_id()
    );
    for name in ["words", "model", "idf", "stop"] {
        let mut changed = tables();
        let text = match name {
            "model" => MODEL.replace("-0.2", "-0.25"),
            "words" => WORDS.replace("40", "41"),
            _ => format!("{}x 1\n", changed[name]),
        };
        changed.insert(name, text);
        assert_ne!(
            read(RECIPE, &changed).unwrap().recipe_id(),
            recipe.recipe_id(),
            "{name}"
        );
        let error = read(&recipe.to_toml(), &changed).unwrap_err().to_string();
        assert!(
            error.contains("it is not the file of the recipe"),
            "{error}"
        );
    }
}
