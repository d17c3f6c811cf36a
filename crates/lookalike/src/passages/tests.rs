use proptest::prelude::*;

use super::grams::token_width;
use super::*;
use crate::Recipe;
use crate::text::{SpanTokenizer, SpannedTokens};

/// Distinct tokens: words from a number on.
fn words(from: u64, count: u64) -> Vec<u64> {
    (from..from + count)
        .map(|number| crate::hash::mix_bits(number) | 1 << 60)
        .collect()
}

fn find(source: &[u64], document: &[u64], min_words: u32) -> Vec<Passage> {
    find_by(source, document, PassageSettings::new(min_words).unwrap())
}

fn find_by(source: &[u64], document: &[u64], settings: PassageSettings) -> Vec<Passage> {
    let mut finder = PassageFinder::new(settings);
    finder.set_document(document, None);
    finder.find_passages(&PassageSource::new(source, settings))
}

fn ranges(passages: &[Passage]) -> Vec<(Range<usize>, Range<usize>, PassageKind)> {
    let range = |it: &Passage| (it.document.clone(), it.source.clone(), it.kind);
    passages.iter().map(range).collect()
}

#[test]
fn passage_has_the_smallest_length() {
    let source = words(0, 200);
    for (length, is_found) in [(11, false), (12, true), (13, true)] {
        let document = [&words(1000, 50), &source[60..60 + length], &words(2000, 50)].concat();
        let expected = [(50..50 + length, 60..60 + length, PassageKind::Verbatim)];
        let found = ranges(&find(&source, &document, 12));
        assert_eq!(found, expected[..usize::from(is_found)]);
    }
    // Characters have half the width.
    let source: Vec<u64> = (0..200).collect();
    for (length, is_found) in [(23, false), (24, true)] {
        let document = [&words(1000, 50), &source[60..60 + length], &words(2000, 50)].concat();
        assert_eq!(find(&source, &document, 12).len(), usize::from(is_found));
    }
}

/// Within a budget a search finds the same passages or is refused; it needs a fixed number of steps.
#[test]
fn search_within_a_budget_finds_the_same() {
    let source = words(0, 3000);
    let document = [&source[..900], &words(9000, 700), &source[1200..2900]].concat();
    for settings in [
        PassageSettings::default(),
        PassageSettings::default().with_reworded(true),
    ] {
        let prepared = PassageSource::new(&source, settings);
        let mut finder = PassageFinder::new(settings);
        finder.set_document(&document, None);
        let expected = finder.find_passages(&prepared);
        assert!(expected.len() >= 2);
        let mut is_found = |steps: u64, bytes: usize| {
            let budget = PassageBudget::new(steps, bytes);
            match finder.find_passages_within(&prepared, &budget) {
                Ok(found) => {
                    assert_eq!(found, expected);
                    true
                }
                Err(error) => {
                    assert_eq!(error.kind(), crate::ErrorKind::TooCostly);
                    false
                }
            }
        };
        assert!(!is_found(0, usize::MAX));
        assert!(is_found(1 << 20, usize::MAX));
        let (mut low, mut high) = (0, 1 << 20);
        while high - low > 1 {
            let middle = u64::midpoint(low, high);
            if is_found(middle, usize::MAX) {
                high = middle;
            } else {
                low = middle;
            }
        }
        assert!(!is_found(high - 1, usize::MAX) && is_found(high + 1, usize::MAX));
    }
}

/// Two sentences that alternate in the document and lie far apart in the source are a passage each time.
#[test]
fn memory_of_many_passages_is_bounded() {
    let (first, second) = (words(0, 13), words(100, 13));
    let source = [&first[..], &words(1000, 100), &second].concat();
    let document = [&first[..], &second].concat().repeat(3000);
    let settings = PassageSettings::default();
    let prepared = PassageSource::new(&source, settings);
    let mut finder = PassageFinder::new(settings);
    finder.set_document(&document, None);
    assert_eq!(finder.find_passages(&prepared).len(), 6000);
    let budget = PassageBudget::new(u64::MAX, 2 << 20);
    let refused = finder.find_passages_within(&prepared, &budget).unwrap_err();
    assert!(refused.to_string().contains("2097152 bytes"), "{refused}");
    budget.set_max_bytes(16 << 20);
    let found = finder.find_passages_within(&prepared, &budget).unwrap();
    assert_eq!(found.len(), 6000);
}

#[test]
fn tokens_are_counted_while_they_are_read() {
    let tokenizer = SpanTokenizer::new(&Recipe::default());
    for text in ["a b ".repeat(5000), "船到".repeat(5000), "㍿ﷺ".repeat(5000)] {
        let mut tokens = SpannedTokens::default();
        tokenizer.tokenize_text(&text, &mut tokens).unwrap();
        let count = tokens.len();
        let mut again = SpannedTokens::default();
        for most in [count, count + 1] {
            tokenizer
                .tokenize_text_within(&text, most, &mut again)
                .unwrap();
            assert_eq!(again.values(), tokens.values());
        }
        for most in [0, 1, count - 1] {
            let refused = tokenizer.tokenize_text_within(&text, most, &mut again);
            assert_eq!(refused.unwrap_err().kind(), crate::ErrorKind::TooCostly);
            assert!(again.is_empty());
        }
    }
}

#[test]
fn edits_stay_inside_a_passage() {
    let source = words(0, 300);
    let mut copy = source[100..200].to_vec();
    copy[20] = 1 << 61;
    copy.remove(45);
    copy.insert(70, 1 << 62);
    // A change near an end, too.
    copy[96] = 3 << 60;
    let document = [&words(1000, 40), &copy[..], &words(2000, 40)].concat();
    let passages = find(&source, &document, 12);
    assert_eq!(
        ranges(&passages),
        [(40..140, 100..200, PassageKind::Edited)]
    );
    assert_eq!(passages[0].matched, 97);
    assert!((passages[0].similarity() - 0.97).abs() < 1e-9);
}

#[test]
fn parts_in_another_order_are_one_passage() {
    let source = words(0, 300);
    let copy = [&source[150..190], &source[100..150], &source[190..220]].concat();
    let document = [&words(1000, 40), &copy[..], &words(2000, 40)].concat();
    let passages = find(&source, &document, 12);
    assert_eq!(
        ranges(&passages),
        [(40..160, 100..220, PassageKind::Reordered)]
    );
    assert_eq!(passages[0].matched, 120);
}

#[test]
fn distant_copies_are_passages_of_their_own() {
    let source = words(0, 400);
    let document = [
        &source[300..330],
        &words(1000, 100),
        &source[10..50],
        &words(2000, 9),
    ]
    .concat();
    let expected = [
        (0..30, 300..330, PassageKind::Verbatim),
        (130..170, 10..50, PassageKind::Verbatim),
    ];
    assert_eq!(ranges(&find(&source, &document, 12)), expected);
}

#[test]
fn place_copied_twice_is_found_twice() {
    let source = words(0, 100);
    let document = [&source[20..50], &words(1000, 100), &source[20..50]].concat();
    let expected = [
        (0..30, 20..50, PassageKind::Verbatim),
        (130..160, 20..50, PassageKind::Verbatim),
    ];
    assert_eq!(ranges(&find(&source, &document, 12)), expected);
}

#[test]
fn repetitive_texts_take_linear_time() {
    let sentence = words(0, 14);
    let many = sentence.repeat(10_000);
    let passages = find(&many, &many, 12);
    assert_eq!(
        ranges(&passages),
        [(0..140_000, 0..140_000, PassageKind::Verbatim)]
    );
    let letters = vec![7u64; 1_000_000];
    let passages = find(&letters, &letters[1..], 12);
    assert_eq!(
        ranges(&passages),
        [(0..999_999, 0..999_999, PassageKind::Verbatim)]
    );
    // Every repetition differs in one word.
    let parted = |by: u64| -> Vec<u64> {
        (0..10_000)
            .flat_map(|at| [&sentence[..], &[at + by]].concat())
            .collect()
    };
    let passages = find(&parted(1 << 50), &parted(1 << 51), 12);
    assert_eq!(passages.len(), 1);
    assert_eq!(
        (passages[0].matched, passages[0].kind),
        (140_000, PassageKind::Edited)
    );
}

#[test]
fn places_in_real_texts_are_whole_characters() {
    let tokenizer = SpanTokenizer::new(&Recipe::default());
    let source = "\u{feff}第一段。清晨六點,老船長已經把纜繩解開了，岸上的人都知道他今天要去東邊的小島。\r\n第二段。";
    let document = "他说：清晨六点老船长已经把缆绳解开了！岸上的人都知道他今天要去东边的小岛🏝️。";
    let (mut a, mut b) = (SpannedTokens::default(), SpannedTokens::default());
    tokenizer.tokenize_text(source, &mut a).unwrap();
    tokenizer.tokenize_text(document, &mut b).unwrap();
    let passages = find(a.values(), b.values(), 12);
    assert_eq!(passages.len(), 1);
    assert_eq!(passages[0].kind, PassageKind::Verbatim);
    let copied = &document[b.byte_range(passages[0].document.clone())];
    assert_eq!(
        copied,
        "清晨六点老船长已经把缆绳解开了！岸上的人都知道他今天要去东边的小岛"
    );
    let original = &source[a.byte_range(passages[0].source.clone())];
    assert_eq!(
        original,
        "清晨六點,老船長已經把纜繩解開了，岸上的人都知道他今天要去東邊的小島"
    );
}

fn tokens() -> impl Strategy<Value = Vec<u64>> {
    let token = prop_oneof![0..6u64, (1 << 60)..(1 << 60) + 6u64];
    proptest::collection::vec(token, 0..150)
}

proptest! {
    /// Every token of a run of equal tokens with the smallest width lies in a passage, and passages keep the laws.
    #[test]
    fn long_equal_runs_lie_in_passages(
        source in tokens(),
        document in tokens(),
        min_words in 2u32..8,
        reworded in any::<bool>(),
    ) {
        let settings = PassageSettings::new(min_words).unwrap().with_reworded(reworded);
        let passages = find_by(&source, &document, settings);
        let mut covered = vec![false; document.len()];
        for it in &passages {
            prop_assert!(!it.document.is_empty() && it.matched > 0);
            prop_assert!(it.matched <= it.document.len() && it.matched <= it.source.len());
            let is_equal = document[it.document.clone()] == source[it.source.clone()];
            prop_assert!(is_equal || it.kind != PassageKind::Verbatim);
            covered[it.document.clone()].fill(true);
        }
        for at in 0..document.len() {
            for place in 0..source.len() {
                let pairs = document[at..].iter().zip(&source[place..]);
                let equal = pairs.take_while(|(a, b)| a == b).count();
                let width: u32 = document[at..at + equal].iter().map(|&it| token_width(it)).sum();
                if width >= 2 * min_words {
                    prop_assert!(covered[at..at + equal].iter().all(|&it| it), "{} {}", at, place);
                }
            }
        }
    }
}

/// Every second word is replaced, and all are shuffled in groups of four.
fn reword(words_of: &[u64]) -> Vec<u64> {
    let mut changed: Vec<u64> = (0..)
        .zip(words_of)
        .map(|(at, &word)| match at % 3 {
            0 => crate::hash::mix_bits(at) | 1 << 62,
            _ => word,
        })
        .collect();
    changed.chunks_mut(4).for_each(<[u64]>::reverse);
    changed
}

#[test]
fn reworded_passages_are_found_on_request() {
    let source = words(0, 600);
    let copy = reword(&source[200..320]);
    let document = [&words(1000, 150), &copy[..], &words(2000, 150)].concat();
    assert_eq!(find(&source, &document, 12), []);
    let settings = PassageSettings::default().with_reworded(true);
    let found = find_by(&source, &document, settings);
    assert_eq!(found.len(), 1);
    let it = &found[0];
    assert_eq!((it.kind, it.matched), (PassageKind::Reworded, 80));
    let is_near = |a: usize, b: usize| a.abs_diff(b) <= 4;
    assert!(
        is_near(it.document.start, 150) && is_near(it.document.end, 270),
        "{it:?}"
    );
    assert!(
        is_near(it.source.start, 200) && is_near(it.source.end, 320),
        "{it:?}"
    );
    // Texts without a copy have none, even if they have the same frequent words.
    let common = words(5000, 5);
    let mixed = |from: u64| -> Vec<u64> {
        words(from, 600)
            .into_iter()
            .zip(common.iter().cycle())
            .flat_map(|(rare, &frequent)| [rare, frequent])
            .collect()
    };
    assert_eq!(find_by(&mixed(10_000), &mixed(20_000), settings), []);
}

#[test]
fn reworded_passages_join_the_runs_inside_them() {
    let source = words(0, 400);
    let copy = [
        &reword(&source[100..160]),
        &source[160..175],
        &reword(&source[175..240]),
    ]
    .concat();
    let document = [&words(1000, 100), &copy[..], &words(2000, 100)].concat();
    let plain = find(&source, &document, 12);
    assert_eq!(plain.len(), 1);
    assert!(plain[0].document.len() < 30);
    let found = find_by(
        &source,
        &document,
        PassageSettings::default().with_reworded(true),
    );
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].kind, PassageKind::Reworded);
    assert!(found[0].document.len() >= 130, "{found:?}");
    // A passage that runs of words find whole stays what it is.
    let settings = PassageSettings::default().with_reworded(true);
    let whole = [&words(1000, 100), &source[100..240], &words(2000, 100)].concat();
    assert_eq!(
        find_by(&source, &whole, settings),
        find(&source, &whole, 12)
    );
}

#[test]
fn repetitive_texts_take_linear_time_when_reworded() {
    let settings = PassageSettings::default().with_reworded(true);
    let letters = vec![7u64; 1_000_000];
    assert_eq!(find_by(&letters, &letters[1..], settings).len(), 1);
    let sentence = words(0, 14);
    let parted = |by: u64| -> Vec<u64> {
        (0..10_000)
            .flat_map(|at| [&reword(&sentence)[..], &[at + by]].concat())
            .collect()
    };
    find_by(&sentence.repeat(10_000), &parted(1 << 50), settings);
    // Many reworded and many equal parts, in another order.
    let source = words(0, 400_000);
    let parts = source.chunks(200).rev().enumerate();
    let document: Vec<u64> = parts
        .flat_map(|(at, part)| match at % 2 {
            0 => [
                &reword(&part[..100]),
                &words(1 << 30 | (at as u64) << 8, 60)[..],
            ]
            .concat(),
            _ => [&part[..100], &words(1 << 30 | (at as u64) << 8, 60)].concat(),
        })
        .collect();
    let found = find_by(&source, &document, settings);
    let reworded = found
        .iter()
        .filter(|passage| passage.kind == PassageKind::Reworded);
    assert_eq!((found.len(), reworded.count()), (2000, 1000));
}

#[test]
fn places_in_several_ranges_count_once() {
    assert_eq!(count_covered(vec![5..9usize, 0..3, 2..4, 6..7, 20..20]), 8);
    assert_eq!(count_covered(Vec::<Range<u64>>::new()), 0);
}

fn base_of(texts: &[&[u64]], settings: PassageSettings) -> BaseText {
    let mut base = BaseText::new(settings);
    texts.iter().for_each(|tokens| base.add_text(tokens));
    base
}

fn find_beside(
    base: &BaseText,
    source: &[u64],
    document: &[u64],
    settings: PassageSettings,
) -> Vec<Passage> {
    let mut finder = PassageFinder::new(settings);
    finder.set_document(document, Some(base));
    finder.find_passages(&PassageSource::with_base(source, settings, base))
}

#[test]
fn text_of_a_base_is_cut_from_passages() {
    let settings = PassageSettings::default();
    let question = words(0, 60);
    let base = base_of(&[&question], settings);
    let source = [&words(5000, 40), &question[..], &words(6000, 40)].concat();
    // Both have the question, and nothing else.
    let document = [&words(7000, 40), &question[..]].concat();
    assert_eq!(find(&source, &document, 12).len(), 1);
    assert_eq!(find_beside(&base, &source, &document, settings), []);
    // They share the words before the question, too.
    for (own, is_found) in [(11, false), (12, true), (13, true)] {
        let document = [&source[40 - own..100], &words(8000, 40)].concat();
        let found = ranges(&find_beside(&base, &source, &document, settings));
        let expected = [(0..own, 40 - own..40, PassageKind::Verbatim)];
        assert_eq!(found, expected[..usize::from(is_found)]);
        assert_eq!(
            ranges(&find(&source, &document, 12)),
            [(0..60 + own, 40 - own..100, PassageKind::Verbatim)]
        );
    }
    // A question between two copied parts parts them.
    let found = ranges(&find_beside(&base, &source, &source, settings));
    let expected = [
        (0..40, 0..40, PassageKind::Verbatim),
        (100..140, 100..140, PassageKind::Verbatim),
    ];
    assert_eq!(found, expected);
}

/// Five words of a question are also a phrase of an answer, so they do not part it, and do not count.
#[test]
fn phrase_of_a_base_does_not_part_a_passage() {
    let settings = PassageSettings::default();
    let question = words(0, 60);
    let base = base_of(&[&question], settings);
    for (phrase, is_whole) in [(4, true), (5, true), (12, true), (13, false)] {
        let source = [&words(5000, 20), &question[..phrase], &words(6000, 20)].concat();
        let document = [&words(7000, 40), &source[..]].concat();
        let found = find_beside(&base, &source, &document, settings);
        let end = 40 + source.len();
        let whole = [(40..end, 0..source.len(), PassageKind::Verbatim)];
        let parts = [
            (40..60, 0..20, PassageKind::Verbatim),
            (
                end - 20..end,
                source.len() - 20..source.len(),
                PassageKind::Verbatim,
            ),
        ];
        let expected = if is_whole { &whole[..] } else { &parts };
        assert_eq!(ranges(&found), expected, "{phrase}");
        assert!(found.iter().all(|passage| passage.similarity() >= 1.0));
    }
    // Six and five words of their own are too few, with seven words of the question between them.
    for (own, is_found) in [(5, false), (6, true)] {
        let source = [&words(5000, 6), &question[..7], &words(6000, own)].concat();
        let found = find_beside(&base, &source, &source, settings);
        assert_eq!(!found.is_empty(), is_found, "{own}");
        assert_eq!(find(&source, &source, 12).len(), 1);
    }
}

#[test]
fn edited_answers_to_given_questions_are_no_passages() {
    let settings = PassageSettings::default();
    let questions: Vec<Vec<u64>> = (0..6).map(|at| words(100 * at, 8)).collect();
    let sheet = questions.concat();
    let base = base_of(&[&sheet], settings);
    let answered = |from: u64| -> Vec<u64> {
        let answers = (0..).map(|at| words(from + 100 * at, 3));
        questions
            .iter()
            .zip(answers)
            .flat_map(|(question, answer)| [&question[..], &answer].concat())
            .collect()
    };
    let (one, other) = (answered(50_000), answered(70_000));
    assert_eq!(find(&one, &other, 12).len(), 1);
    assert_eq!(find_beside(&base, &one, &other, settings), []);
}

#[test]
fn reworded_passages_have_nothing_of_a_base() {
    let settings = PassageSettings::default().with_reworded(true);
    let question = words(0, 120);
    let source = [&words(1000, 150), &question[..], &words(2000, 150)].concat();
    let document = [&words(3000, 150), &question[..], &words(4000, 150)].concat();
    assert_eq!(find_by(&source, &document, settings).len(), 1);
    let base = base_of(&[&question], settings);
    assert_eq!(find_beside(&base, &source, &document, settings), []);
    let copy = reword(&words(5000, 120));
    let [source, document] = [&words(5000, 120), &copy].map(|own| [own, &question[..]].concat());
    let found = find_beside(&base, &source, &document, settings);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].kind, PassageKind::Reworded);
    assert!(
        found[0].document.end <= 124 && found[0].source.end <= 124,
        "{found:?}"
    );
}

/// Returns `true` for the tokens that lie in a gram of a base text, by their definition: a gram is the shortest run from its
/// first token that has the width.
fn scan_given(base: &[u64], tokens: &[u64], width: u32) -> Vec<bool> {
    let mut given = vec![false; tokens.len()];
    for start in 0..tokens.len() {
        let has_width = |end: &usize| {
            let run = tokens[start..*end].iter();
            run.map(|&token| token_width(token)).sum::<u32>() >= width
        };
        let Some(end) = (start..=tokens.len()).find(has_width) else {
            break;
        };
        let gram = &tokens[start..end];
        if base.windows(gram.len()).any(|window| window == gram) {
            given[start..end].fill(true);
        }
    }
    given
}

proptest! {
    /// Every equal run outside of base text lies in a passage, and no passage is made of base text.
    #[test]
    fn passages_beside_a_base_equal_a_scan(
        source in tokens(),
        document in tokens(),
        parts in proptest::collection::vec((0..150usize, 0..40usize, any::<bool>()), 0..4),
        min_words in 2u32..8,
    ) {
        let mut of_base: Vec<u64> = Vec::new();
        for (from, length, is_of_source) in parts {
            let text = if is_of_source { &source } else { &document };
            let from = from.min(text.len());
            of_base.extend(&text[from..(from + length).min(text.len())]);
            of_base.push(1 << 50);
        }
        let settings = PassageSettings::new(min_words).unwrap();
        let base = base_of(&[&of_base], settings);
        let width = (2 * min_words).min(10);
        let [given, given_source] =
            [&document, &source].map(|tokens| scan_given(&of_base, tokens, width));
        let passages = find_beside(&base, &source, &document, settings);
        let mut covered = vec![false; document.len()];
        for passage in &passages {
            let ends = [passage.document.start, passage.document.end - 1];
            prop_assert!(ends.iter().all(|&at| !given[at]), "{:?}", passage);
            let ends = [passage.source.start, passage.source.end - 1];
            prop_assert!(ends.iter().all(|&at| !given_source[at]), "{:?}", passage);
            let own = passage.document.clone().filter(|&at| !given[at]);
            let own_width: u32 = own.map(|at| token_width(document[at])).sum();
            prop_assert!(own_width >= 2 * min_words, "{:?}", passage);
            let is_equal = document[passage.document.clone()] == source[passage.source.clone()];
            prop_assert!(is_equal || passage.kind != PassageKind::Verbatim);
            covered[passage.document.clone()].fill(true);
        }
        for at in 0..document.len() {
            for place in 0..source.len() {
                let pairs = (at..document.len()).zip(place..source.len());
                let is_own = |&(a, b): &(usize, usize)| {
                    document[a] == source[b] && !given[a] && !given_source[b]
                };
                let equal = pairs.take_while(is_own).count();
                let width: u32 = document[at..at + equal].iter().map(|&token| token_width(token)).sum();
                if width >= 2 * min_words {
                    prop_assert!(covered[at..at + equal].iter().all(|&is_covered| is_covered), "{} {}", at, place);
                }
            }
        }
    }
}
