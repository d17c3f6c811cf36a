//! Items in documents, from texts to findings.

use proptest::prelude::*;

use super::*;
use crate::byte_reader::ByteReader;

/// A question of eleven rarer words and its answer.
const QUESTION: &str =
    "Which northern glacier feeds the turbulent Kaldur river above the abandoned mill?";
const ANSWER: &str = "The Svartur icefield";

fn build(items: &[ItemTexts<'_>]) -> ContaminationIndex {
    ContaminationIndex::build(items.iter().copied()).unwrap()
}

fn item<'a>(question: &'a str, answer: &'a str) -> ItemTexts<'a> {
    ItemTexts {
        question,
        choices: &[],
        answer,
        passage: "",
    }
}

/// Returns what is found in each document, with the counts of all of them as the corpus.
fn find_all(index: &ContaminationIndex, texts: &[&str]) -> Vec<Vec<(u32, FoundParts, u32)>> {
    let mut searcher = ItemSearcher::new(index);
    let mut corpus = CorpusTerms::new(index);
    let mut candidates = Vec::new();
    for text in texts {
        let mut found = Vec::new();
        searcher.search_text(text, &mut found).unwrap();
        candidates.push(found);
        corpus.add_counted(&searcher.take_counts());
    }
    let weights = EvidenceWeights::new(index, &corpus);
    let judge = |candidate: &ItemCandidate| {
        let evidence = candidate.weigh_evidence(index, &weights)?;
        let score = (1000.0 * evidence.score).round() as u32;
        Some((candidate.item, evidence.found, score))
    };
    let judged = candidates
        .iter()
        .map(|found| found.iter().filter_map(judge).collect());
    judged.collect()
}

#[test]
fn question_is_found_in_every_form() {
    let index = build(&[item(QUESTION, ANSWER)]);
    let forms = [
        QUESTION.to_owned(),
        format!("Before. {QUESTION} After."),
        QUESTION.to_uppercase(),
        QUESTION.replace(' ', "\n"),
        QUESTION.replace(' ', " | "),
        QUESTION.replace([',', '?'], " ;; "),
        QUESTION.replace("glacier", "<b class=\"x\">glacier</b>&nbsp;"),
        QUESTION.replace("glacier", "\\textbf{glacier}"),
        QUESTION.replace("glacier", "**[glacier](https://example.org/a/b)**"),
        QUESTION.replace("turbulent", "calm"),
    ];
    for form in &forms {
        let found = &find_all(&index, &[form])[0];
        assert_eq!(found.len(), 1, "{form}");
        assert_eq!(
            (found[0].0, found[0].1),
            (0, FoundParts::Question),
            "{form}"
        );
    }
    let with_answer = format!("{QUESTION}\nAnswer: the svartur icefield.");
    assert_eq!(
        find_all(&index, &[&with_answer])[0],
        [(0, FoundParts::Both, 1000)]
    );
}

#[test]
fn chinese_scripts_do_not_matter() {
    let index = build(&[item(
        "哪一条冰川给废弃磨坊上游的湍急河流供水？",
        "斯瓦图尔冰原",
    )]);
    let text = "題目：哪一條冰川給廢棄磨坊上游的湍急河流供水？答案：斯瓦圖爾冰原。";
    assert_eq!(find_all(&index, &[text])[0], [(0, FoundParts::Both, 1000)]);
}

#[test]
fn short_and_common_question_needs_its_answer() {
    let index = build(&[item("What is in the house?", "An umbrella stand")]);
    let texts = [
        "What is in the house?",
        "What is in the house? An umbrella stand.",
        "What is in the house? It is far away from here. On the next day they went to the market and bought an umbrella \
         stand.",
    ];
    let found = find_all(&index, &texts);
    assert_eq!(found[0], []);
    assert_eq!(found[1], [(0, FoundParts::Both, 1000)]);
}

#[test]
fn words_in_another_order_are_no_item() {
    let index = build(&[item(QUESTION, ANSWER)]);
    let mut words: Vec<&str> = QUESTION.split(' ').collect();
    words.reverse();
    let reversed = words.join(" ");
    let far = QUESTION.replace(' ', &format!(" {} ", "other words in between ".repeat(8)));
    let half = &QUESTION[..QUESTION.len() / 2];
    for text in [&*reversed, &far, half] {
        assert_eq!(find_all(&index, &[text])[0], [], "{text}");
    }
}

#[test]
fn long_answer_is_found_without_its_question() {
    let answer = "Multiply the seven crates by the nineteen lanterns in each crate, subtract the four lanterns that \
                  broke during the crossing, and divide the remainder among the three lighthouses of the strait.";
    let index = build(&[item(
        "How many lanterns does every lighthouse of the strait receive?",
        answer,
    )]);
    let found = &find_all(&index, &[&format!("Notes. {answer} End.")])[0];
    assert!(found.contains(&(0, FoundParts::Answer, 1000)), "{found:?}");
}

#[test]
fn equal_questions_are_told_apart_by_their_choices() {
    let question = "Which of the following statements is true of the passage above?";
    let first = [
        "the lantern failed".to_owned(),
        "the harbour froze".to_owned(),
    ];
    let second = [
        "an otter swims upstream".to_owned(),
        "a heron nests early".to_owned(),
    ];
    let with_choices = |choices| ItemTexts {
        choices,
        ..item(question, "")
    };
    let index = build(&[with_choices(&first), with_choices(&second)]);
    assert_eq!(index.question_number(0), index.question_number(1));
    let text = format!("{question}\nA. a heron nests early\nB. an otter swims upstream");
    let mut searcher = ItemSearcher::new(&index);
    let mut candidates = Vec::new();
    searcher.search_text(&text, &mut candidates).unwrap();
    let mut corpus = CorpusTerms::new(&index);
    corpus.add_counted(&searcher.take_counts());
    let weights = EvidenceWeights::new(&index, &corpus);
    let together = candidates.iter().filter(|candidate| {
        let evidence = candidate.weigh_evidence(&index, &weights);
        evidence.is_some_and(|evidence| evidence.is_enough_together)
    });
    assert_eq!(
        together.map(|candidate| candidate.item).collect::<Vec<_>>(),
        [1]
    );
}

#[test]
fn empty_texts_and_items_find_nothing() {
    let index = build(&[item("", ""), item("Why?", "Because"), item(QUESTION, "")]);
    assert!(!index.is_findable(0) && !index.is_findable(1) && index.is_findable(2));
    assert_eq!(index.question_number(0), None);
    for text in ["", " ", "???", "Why? Because"] {
        assert_eq!(find_all(&index, &[text])[0], []);
    }
    assert_eq!(find_all(&build(&[]), &[QUESTION])[0], []);
}

#[test]
fn candidates_and_counts_are_the_same_after_storing() {
    let index = build(&[
        item(QUESTION, ANSWER),
        item("What is in the house?", "An umbrella stand"),
    ]);
    let mut searcher = ItemSearcher::new(&index);
    let mut candidates = Vec::new();
    let text = format!("{QUESTION} {ANSWER}. What is in the house? An umbrella stand.");
    searcher.search_text(&text, &mut candidates).unwrap();
    assert_eq!(candidates.len(), 2);
    let mut bytes = Vec::new();
    candidates
        .iter()
        .for_each(|candidate| candidate.append_bytes(&mut bytes));
    let terms = searcher.take_counts();
    terms.append_bytes(&mut bytes);
    let mut reader = ByteReader::new(&bytes);
    for candidate in &candidates {
        assert_eq!(
            ItemCandidate::from_bytes(&mut reader, &index).as_ref(),
            Some(candidate)
        );
    }
    assert_eq!(CountedTerms::from_bytes(&mut reader, &index), Some(terms));
    assert!(reader.is_at_end());
    // Bytes that are cut short are refused, wherever that is.
    for length in 0..bytes.len() {
        let mut reader = ByteReader::new(&bytes[..length]);
        let first = ItemCandidate::from_bytes(&mut reader, &index);
        let second = first.and_then(|_| ItemCandidate::from_bytes(&mut reader, &index));
        assert_eq!(
            second.and_then(|_| CountedTerms::from_bytes(&mut reader, &index)),
            None
        );
    }
}

#[test]
fn counts_are_sums_over_documents() {
    let index = build(&[item(QUESTION, ANSWER)]);
    let texts = [QUESTION, "the river and the mill", "nothing of it", ""];
    let count = |texts: &[&str]| {
        let mut searcher = ItemSearcher::new(&index);
        let mut corpus = CorpusTerms::new(&index);
        for text in texts {
            searcher.search_text(text, &mut Vec::new()).unwrap();
            corpus.add_counted(&searcher.take_counts());
        }
        corpus
    };
    let mut sum = count(&texts[..1]);
    sum.add_counts(&count(&texts[1..]));
    assert_eq!(sum, count(&texts));
    let numbers = sum.to_numbers();
    assert_eq!(CorpusTerms::from_numbers(&numbers, &index).unwrap(), sum);
    assert!(CorpusTerms::from_numbers(&numbers[1..], &index).is_err());
}

proptest! {
    /// A question that stands in a text token by token is a candidate, whatever is around it and beside it.
    #[test]
    fn verbatim_questions_are_candidates(
        questions in prop::collection::vec(prop::collection::vec(0_usize..40, 3..20), 1..30),
        chosen in 0_usize..30,
        before in prop::collection::vec(0_usize..60, 0..40),
        after in prop::collection::vec(0_usize..60, 0..40),
    ) {
        let word = |&word: &usize| format!("w{word}");
        let text_of = |words: &[usize]| words.iter().map(word).collect::<Vec<_>>().join(" ");
        let texts: Vec<String> = questions.iter().map(|words| text_of(words)).collect();
        let index = build(&texts.iter().map(|text| item(text, "")).collect::<Vec<_>>());
        let chosen = chosen % texts.len();
        let document = format!("{} {} {}", text_of(&before), texts[chosen], text_of(&after));
        let mut candidates = Vec::new();
        ItemSearcher::new(&index).search_text(&document, &mut candidates).unwrap();
        let found = candidates.iter().any(|candidate| candidate.item == chosen as u32);
        prop_assert!(found, "{:?} in {:?}", texts[chosen], document);
        let numbers: Vec<_> = candidates.iter().map(|candidate| (candidate.item, candidate.part)).collect();
        prop_assert!(numbers.is_sorted() && numbers.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
