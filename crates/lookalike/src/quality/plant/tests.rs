//! The edits against what their names promise.

use super::structure::{sentence_ranges, split_units};
use super::*;
use crate::recipe::Recipe;
use crate::text::{AnalysisScratch, TextAnalyzer};
use crate::types::{DocId, Threshold};

const ENGLISH: &str = "On Friday the ferry left at 7:15, and nobody missed it.\n\
    Old men stood on the pier; they counted 12 boats \"by heart\". A dog slept.\n\
    What came later is told elsewhere! The café was closed until 2019-05-03.\n\
    Nobody asked why. Everybody knew the reason, of course, since the storm of the year before.";

const CHINESE: &str = "清晨六点，老船长已经把缆绳解开了。港口在2019年5月3日关闭，发现问题的人很少。\n\
    他们用Python写了一个程序，来计算每天的潮水。后来大家都说：这个办法很好！\n\
    书店里的灯还亮着，门口站着两个人，谁也没有说话。";

fn planter() -> EditPlanter {
    let others = [
        "Share this story\nThe mill burned down. Wheat was cheap then.\nAll rights reserved",
        "Share this story\nTwo brothers sold lamps. One of them could sing.\nAll rights reserved",
        "转载请注明出处\n山里的雪还没有化。村民们在祠堂前面等消息。\n版权所有",
        "转载请注明出处\n桥修好了，火车又开了。孩子们跑去看。\n版权所有",
    ];
    EditPlanter::new(5, TextStock::new(others))
}

fn planted(kind: EditKind, strength: usize, text: &str) -> Option<String> {
    let edit = PlantedEdit::edits_of_kind(kind).nth(strength).unwrap();
    planter().plant_edits("d", text, &[edit])
}

fn jaccard(a: &str, b: &str) -> f64 {
    let analyzer = TextAnalyzer::new(&Recipe::default());
    let [a, b] = [a, b].map(|text| {
        let mut features = Vec::new();
        analyzer
            .analyze_text(text, &mut AnalysisScratch::default())
            .append_features(&mut features);
        features
    });
    crate::similarity::jaccard_index(&a, &b).get()
}

#[test]
fn edit_kinds_keep_place_and_unique_name() {
    for (at, (kind, name, shares)) in EDIT_KINDS.into_iter().enumerate() {
        assert_eq!(kind as usize, at);
        assert_eq!(EditKind::from_name(name).unwrap(), kind);
        assert!(shares.is_sorted() && !shares.is_empty());
    }
    let names: std::collections::BTreeSet<_> = PlantedEdit::all_edits()
        .iter()
        .map(PlantedEdit::to_string)
        .collect();
    assert_eq!(names.len(), PlantedEdit::all_edits().len());
    assert!(names.contains("typos:0.5%") && names.contains("truncate-head:30%"));
    let refused = PlantedEdit::parse_edits("paraphrase")
        .unwrap_err()
        .to_string();
    assert!(refused.contains("'paraphrase'") && refused.contains("changed-number"));
    for edit in PlantedEdit::all_edits() {
        assert_eq!(PlantedEdit::parse_edits(&edit.to_string()).unwrap(), [edit]);
    }
    assert_eq!(PlantedEdit::parse_edits("typos").unwrap().len(), 4);
    for wrong in ["typos:3%", "typos:5", "nfd:5%"] {
        let refused = PlantedEdit::parse_edits(wrong).unwrap_err().to_string();
        assert!(refused.contains(wrong), "{refused}");
    }
}

#[test]
fn every_edit_changes_its_text() {
    for edit in PlantedEdit::all_edits() {
        let results = [ENGLISH, CHINESE].map(|text| {
            let planted = planter().plant_edits("d", text, &[edit]);
            assert_ne!(planted.as_deref(), Some(text), "{edit}");
            planted
        });
        // Hundredths of nine sentences are none; the texts are composed and simplified already.
        let name = edit.to_string();
        let idle = [EditKind::Nfc, EditKind::Simplified].contains(&edit.kind)
            || name.ends_with("-sentences:1%")
            || name.ends_with("-sentences:5%");
        assert_eq!(results.iter().all(Option::is_none), idle, "{edit}");
    }
}

#[test]
fn edits_depend_on_their_inputs_alone() {
    let edit = PlantedEdit::edits_of_kind(EditKind::ReplaceWords)
        .nth(3)
        .unwrap();
    let [one, other] =
        [planter(), planter()].map(|planter| planter.plant_edits("d", ENGLISH, &[edit]));
    assert_eq!(one, other);
    assert_ne!(one, planter().plant_edits("e", ENGLISH, &[edit]));
    let reseeded = EditPlanter {
        seed: 6,
        ..planter()
    };
    assert_ne!(one, reseeded.plant_edits("d", ENGLISH, &[edit]));
    // Frozen: labels that were planted once can be planted again.
    let number = PlantedEdit::edits_of_kind(EditKind::ChangedNumber)
        .next()
        .unwrap();
    let text = planter().plant_edits("d", "7 of 9", &[number]).unwrap();
    assert_eq!(
        text,
        planter().plant_edits("d", "7 of 9", &[number]).unwrap()
    );
}

#[test]
fn strengths_are_rounded_to_the_nearest_part() {
    let text: String = (0..1000).map(|at| format!("w{at} ")).collect();
    for (strength, percent) in [1, 5, 10, 20].into_iter().enumerate() {
        let kept = planted(EditKind::DeleteWords, strength, &text).unwrap();
        assert_eq!(split_units(&kept).len(), 1000 - 10 * percent);
        let more = planted(EditKind::InsertWords, strength, &text).unwrap();
        assert_eq!(split_units(&more).len(), 1000 + 10 * percent);
        let replaced = planted(EditKind::ReplaceWords, strength, &text).unwrap();
        let same = text.split(' ').zip(replaced.split(' '));
        assert_eq!(same.filter(|(a, b)| a != b).count(), 10 * percent);
    }
    let sentences: String = (0..100).map(|at| format!("Here is {at}. ")).collect();
    let fewer = planted(EditKind::DeleteSentences, 1, &sentences).unwrap();
    assert_eq!(sentence_ranges(&fewer).len(), 95);
    for (strength, percent) in [10, 30, 50].into_iter().enumerate() {
        for kind in [EditKind::TruncateHead, EditKind::TruncateTail] {
            let rest = planted(kind, strength, CHINESE).unwrap();
            let (length, whole) = (rest.chars().count(), CHINESE.chars().count());
            assert_eq!(length, whole - (whole * percent * 10 + 500) / 1000);
            assert!(CHINESE.contains(&rest));
        }
    }
}

#[test]
fn share_below_one_part_is_not_applied() {
    // 5 % of 9 characters are none, of 10 one.
    assert_eq!(
        planted(EditKind::DeleteWords, 1, "一二三四五六七八九"),
        None
    );
    assert!(planted(EditKind::DeleteWords, 1, "一二三四五六七八九十").is_some());
    for text in ["", " \n", "。。。"] {
        for edit in PlantedEdit::all_edits() {
            let words = [
                EditKind::DeleteWords,
                EditKind::InsertWords,
                EditKind::ReplaceWords,
                EditKind::Typos,
            ];
            let of_words = words.contains(&edit.kind) || edit.kind == EditKind::ZeroWidth;
            assert!(!of_words || planter().plant_edits("d", text, &[edit]).is_none());
        }
    }
    assert_eq!(planted(EditKind::ShuffleSentences, 0, "Only one."), None);
    assert_eq!(planted(EditKind::ChangedNumber, 0, "none"), None);
    let empty = EditPlanter::new(5, TextStock::default());
    for kind in [
        EditKind::InsertWords,
        EditKind::BoilerplateAfter,
        EditKind::ReplaceSentences,
    ] {
        let edit = PlantedEdit::edits_of_kind(kind).last().unwrap();
        assert_eq!(empty.plant_edits("d", ENGLISH, &[edit]), None);
    }
}

#[test]
fn default_recipe_cancels_format_edits() {
    let kinds = [
        EditKind::Traditional,
        EditKind::FullWidth,
        EditKind::Punctuation,
        EditKind::Spacing,
        EditKind::ZeroWidth,
        EditKind::Nfd,
        EditKind::UpperCase,
        EditKind::LowerCase,
    ];
    for text in [ENGLISH, CHINESE] {
        for kind in kinds {
            if let Some(edited) = planted(kind, 0, text) {
                assert_eq!(jaccard(text, &edited), 1.0, "{kind:?}\n{edited}");
            }
        }
    }
    let traditional = planted(EditKind::Traditional, 0, CHINESE).unwrap();
    assert!(traditional.contains("老船長") && traditional.contains("關閉"));
    assert_eq!(
        planted(EditKind::Simplified, 0, &traditional).unwrap(),
        CHINESE
    );
    let wide = planted(EditKind::FullWidth, 0, "at 7:15").unwrap();
    assert_eq!(wide, "ａｔ\u{3000}７：１５");
    assert_eq!(planted(EditKind::HalfWidth, 0, &wide).unwrap(), "at 7:15");
    let apart = planted(EditKind::Nfd, 0, "café").unwrap();
    assert_eq!(apart, "cafe\u{301}");
    assert_eq!(planted(EditKind::Nfc, 0, &apart).unwrap(), "café");
}

#[test]
fn wrapping_keeps_the_words() {
    let html = planted(EditKind::Html, 0, "a < b & \"c\"\nsecond").unwrap();
    assert!(html.contains("<p>a &lt; b &amp; &quot;c&quot;</p>\n<p>second</p>"));
    let markdown = planted(EditKind::Markdown, 0, ENGLISH).unwrap();
    assert!(markdown.starts_with("# On Friday"));
    assert!(markdown.contains("**"));
    assert_eq!(jaccard(ENGLISH, &markdown), 1.0);
}

#[test]
fn shuffling_keeps_the_parts() {
    let sorted = |text: &str| {
        let ranges = sentence_ranges(text);
        let mut parts: Vec<_> = ranges
            .into_iter()
            .map(|range| text[range].to_owned())
            .collect();
        parts.sort();
        parts
    };
    for text in [ENGLISH, CHINESE] {
        let shuffled = planted(EditKind::ShuffleSentences, 0, text).unwrap();
        assert_eq!(sorted(&shuffled), sorted(text));
        let paragraphs = planted(EditKind::ShuffleParagraphs, 0, text).unwrap();
        assert_eq!(sorted(&paragraphs), sorted(text));
    }
}

#[test]
fn boilerplate_is_shared_by_documents() {
    let framed = planted(EditKind::BoilerplateAfter, 0, ENGLISH).unwrap();
    let shared = [
        "Share this story",
        "All rights reserved",
        "转载请注明出处",
        "版权所有",
    ];
    let passage = framed.strip_prefix(&format!("{ENGLISH}\n")).unwrap();
    assert!(shared.contains(&passage), "{passage}");
}

#[test]
fn one_digit_of_one_number_changes() {
    for id in ["a", "b", "c", "d", "e"] {
        let edit = PlantedEdit::edits_of_kind(EditKind::ChangedNumber)
            .next()
            .unwrap();
        let edited = planter().plant_edits(id, CHINESE, &[edit]).unwrap();
        let differing = CHINESE.chars().zip(edited.chars()).filter(|(a, b)| a != b);
        let differing: Vec<_> = differing.collect();
        assert!(matches!(differing[..], [(a, b)] if a.is_ascii_digit() && b.is_ascii_digit()));
    }
}

#[test]
fn several_edits_differ_in_kind_and_all_apply() {
    let planter = planter();
    for id in ["a", "b", "c"] {
        for count in [2, 3] {
            let drawn = planter.draw_edits(id, count, &PlantedEdit::all_edits());
            let mut kinds: Vec<_> = drawn.iter().map(|edit| edit.kind).collect();
            kinds.sort();
            kinds.dedup();
            assert_eq!(kinds.len(), count);
            assert_eq!(
                drawn,
                planter.draw_edits(id, count, &PlantedEdit::all_edits())
            );
        }
    }
    let edit = |kind| PlantedEdit::edits_of_kind(kind).next().unwrap();
    let both = [edit(EditKind::UpperCase), edit(EditKind::ChangedNumber)];
    let edited = planter.plant_edits("d", "at 7", &both).unwrap();
    assert!(edited.starts_with("AT ") && edited != "AT 7");
    let idle = [edit(EditKind::UpperCase), edit(EditKind::Simplified)];
    assert_eq!(planter.plant_edits("d", "at 7", &idle), None);
    // Two that undo one another plant nothing.
    let undone = [edit(EditKind::FullWidth), edit(EditKind::HalfWidth)];
    assert_eq!(planter.plant_edits("d", "at 7", &undone), None);
}

/// Documents of one topic share some words, and every tenth is a part of another one.
fn documents() -> Vec<(DocId, Vec<u64>)> {
    let document = |at: u64| {
        let topic = at % 20;
        let shared = 4 + at % 31;
        let own = 40 - shared;
        let mut features: Vec<u64> = (0..shared).map(|word| 1000 * topic + word).collect();
        features.extend((0..own).map(|word| 1_000_000 + 100 * at + word));
        if at % 10 == 9 {
            features.truncate(shared as usize);
        }
        (DocId(at as u32), features)
    };
    (0..600).map(document).collect()
}

#[test]
fn negatives_are_exact_and_of_every_similarity() {
    let documents = documents();
    let options = NegativeOptions {
        below: Threshold::new(0.6).unwrap(),
        contained: Threshold::new(0.75).unwrap(),
        most: 400,
        seed: 3,
    };
    let drawn: Vec<_> = documents.iter().step_by(6).cloned().collect();
    let sampler = NegativeSampler::new(options, drawn.clone());
    let offered = |order: &[usize]| {
        let mut candidates = sampler.candidates();
        for &at in order {
            let (document, features) = &documents[at];
            sampler.offer(*document, features, &mut candidates);
        }
        candidates
    };
    let order: Vec<usize> = (0..600).collect();
    let linked = [(DocId(0), DocId(6)), (DocId(6), DocId(12))];
    let pairs = sampler.select(offered(&order), linked);
    // The order and the parts in which documents are offered do not count.
    let turned: Vec<usize> = (0..600).rev().collect();
    let parts = turned.chunks(70).map(&offered);
    let joined = parts
        .reduce(|one, other| sampler.merge(one, other))
        .unwrap();
    assert_eq!(sampler.select(joined, linked), pairs);
    let other = NegativeSampler::new(NegativeOptions { seed: 4, ..options }, drawn);
    let mut candidates = other.candidates();
    documents
        .iter()
        .for_each(|(document, features)| other.offer(*document, features, &mut candidates));
    assert_ne!(other.select(candidates, linked), pairs);

    let mut by_tenth = [0; 6];
    let mut neighbours: std::collections::BTreeMap<u32, Vec<u32>> = Default::default();
    for pair in &pairs {
        let [a, b] = [pair.a, pair.b].map(|document| &documents[document.index()].1);
        let mut sorted = [a.clone(), b.clone()];
        sorted.iter_mut().for_each(|pairs| pairs.sort_unstable());
        assert_eq!(
            pair.similarity,
            crate::similarity::jaccard_index(&sorted[0], &sorted[1])
        );
        assert!(pair.similarity.get() < 0.6 && pair.a < pair.b);
        assert!(crate::similarity::containment_index(&sorted[0], &sorted[1]).get() < 0.75);
        assert!(pair.a.0 % 6 == 0 || pair.b.0 % 6 == 0);
        by_tenth[(pair.similarity.get() * 10.0) as usize] += 1;
        neighbours.entry(pair.a.0).or_default().push(pair.b.0);
        neighbours.entry(pair.b.0).or_default().push(pair.a.0);
    }
    assert!(
        pairs.len() <= 400 && by_tenth.iter().all(|&count| count > 5),
        "{by_tenth:?}"
    );
    // No more than a few documents are connected.
    for &start in neighbours.keys() {
        let mut seen = std::collections::BTreeSet::from([start]);
        let mut open = vec![start];
        while let Some(at) = open.pop() {
            let new = neighbours[&at].iter().filter(|&&it| seen.insert(it));
            open.extend(new);
        }
        assert!(seen.len() <= 8, "{}", seen.len());
    }
}
