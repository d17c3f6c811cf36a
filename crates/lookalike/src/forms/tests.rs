use super::form_index::{FormIndex, do_forms_agree, visit_form_keys};
use super::{Form, FormLearner, FormTable, LEAST_TEXTS};
use crate::Recipe;
use crate::text::{SpanTokenizer, SpannedTokens};

fn tokens(text: &str) -> Vec<u64> {
    let mut tokens = SpannedTokens::default();
    let tokenizer = SpanTokenizer::new(&Recipe::default());
    tokenizer.tokenize_text(text, &mut tokens).unwrap();
    tokens.values().to_vec()
}

fn index(forms: &[&[&str]]) -> FormIndex {
    let forms = forms.iter().enumerate().map(|(at, frame)| Form {
        name: at.to_string(),
        documents: 0,
        frame: frame.iter().map(|&part| part.to_owned()).collect(),
        values: Vec::new(),
    });
    let table = FormTable::from_forms(forms.collect());
    FormIndex::new(&Recipe::default(), &table, |part, into| {
        into.extend(tokens(part))
    })
}

fn values(index: &FormIndex, text: &str) -> Vec<u64> {
    let mut values = Vec::new();
    index.append_values(&tokens(text), &mut values);
    values
}

const OFFER: [&str; 3] = [
    "Only this week in all our shops: the lamp",
    "for a price of",
    "euros, as long as there are some left.",
];

fn offer(name: &str, price: u32) -> String {
    format!("{} {name} {} {price} {}", OFFER[0], OFFER[1], OFFER[2])
}

#[test]
fn texts_of_one_form_agree_if_all_slots_do() {
    let index = index(&[&OFFER]);
    let a = values(&index, &offer("Sol", 20));
    assert_eq!(a.len(), 3);
    for (name, price, agree) in [
        ("Sol", 20, true),
        ("SOL", 20, true),
        ("Sol", 21, false),
        ("Luna", 20, false),
        ("Sol Mini", 20, false),
    ] {
        let b = values(&index, &offer(name, price));
        assert_eq!(do_forms_agree(&a, &b), agree, "{name} {price}");
        assert_eq!(do_forms_agree(&b, &a), agree, "{name} {price}");
    }
    let with_header = format!("From our newsletter. {}", offer("Sol", 20));
    assert_eq!(values(&index, &with_header), a);
    // Words of the frame beside the slots are other ones.
    let edited = offer("Sol", 20).replace("the lamp", "our desk light");
    assert_eq!(values(&index, &edited.replace("desk light", "light")), a);
    assert_eq!(
        values(&index, &offer("Sol", 20).replace("of 20", "at 20")),
        a
    );
    assert_eq!(
        values(&index, &offer("Sol", 20).replace("euros", "€uro")),
        a
    );
    let other = values(&index, "A text about something else, of no form at all.");
    assert!(other.is_empty() && !do_forms_agree(&a, &other));
    assert!(do_forms_agree(&other, &other));
}

/// Of five slots one may differ, of ten two, of four none.
#[test]
fn one_slot_in_five_may_differ() {
    for (slots, differing, agree) in [
        (4, 0, true),
        (4, 1, false),
        (5, 1, true),
        (5, 2, false),
        (10, 2, true),
        (10, 3, false),
        (60, 7, true),
        (60, 8, false),
    ] {
        let a: Vec<u64> = (0..=slots).collect();
        let mut b = a.clone();
        b[1..=differing].iter_mut().for_each(|value| *value += 100);
        assert_eq!(do_forms_agree(&a, &b), agree, "{differing} of {slots}");
        b[0] += 1;
        assert!(!do_forms_agree(&a, &b), "another form");
        assert!(!do_forms_agree(&a, &[]) && !do_forms_agree(&[], &a));
    }
}

fn form_keys(values: &[u64]) -> Vec<u64> {
    let mut keys = Vec::new();
    visit_form_keys(values, |key| keys.push(key));
    keys
}

/// Documents that may match by their forms share a key, wherever their slots differ.
#[test]
fn agreeing_forms_share_a_key() {
    for slots in 1..=12_u64 {
        let a: Vec<u64> = (0..=slots).collect();
        let keys = form_keys(&a);
        assert_eq!(keys.len() as u64, slots / 5 + 1);
        for first in 1..=slots as usize {
            for second in first..=slots as usize {
                let mut b = a.clone();
                b[first] += 100;
                b[second] += 100;
                let shared = form_keys(&b).iter().any(|key| keys.contains(key));
                assert!(
                    shared || !do_forms_agree(&a, &b),
                    "{first} and {second} of {slots}"
                );
            }
        }
    }
    assert_eq!(form_keys(&[]), [0]);
    assert_ne!(form_keys(&[1, 2]), form_keys(&[1, 3]));
}

/// The frame of which most tokens are in the text is its form; a part of a frame is not.
#[test]
fn form_is_the_one_with_most_of_the_frame() {
    let longer = [
        OFFER[0],
        OFFER[1],
        OFFER[2],
        "Order it now by telephone at the number of your shop.",
    ];
    let index = index(&[&OFFER, &longer]);
    let form = |text: &str| index.find_form(&tokens(text)).map(|found| found.form);
    assert_eq!(form(&offer("Sol", 20)), Some(0));
    let text = format!("{} {}", offer("Sol", 20), longer[3]);
    assert_eq!(form(&text), Some(1));
    assert_eq!(form(OFFER[0]), None);
    assert_eq!(form(""), None);
}

fn learn(texts: &[String]) -> Option<Form> {
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let learner = FormLearner::new(&Recipe::default());
    learner.learn_form(&texts, texts.len() as u64).unwrap()
}

fn number_word(number: usize) -> String {
    format!("w{}", number * 7919 % 1000)
}

#[test]
fn filled_forms_have_a_form() {
    let offers: Vec<String> = (0..12)
        .map(|at| offer(&number_word(at), 100 + at as u32))
        .collect();
    let form = learn(&offers).unwrap();
    assert_eq!(form.slot_count(), 2);
    assert!(form.frame[0].ends_with("the lamp") && form.frame[1] == "for a price of");
    assert_eq!(form.values[1][..2], ["100", "101"]);
    assert_eq!(
        learn(&offers[..LEAST_TEXTS]).map(|form| form.slot_count()),
        Some(2)
    );
    assert!(learn(&offers[..LEAST_TEXTS - 1]).is_none());
    let repeated = [&offers[..5], &offers[..5]].concat();
    assert!(learn(&repeated).is_none());
    // Chinese: every character is a token.
    let notices: Vec<String> = (0..8)
        .map(|at| {
            format!(
                "各位居民请注意：本小区{}号楼将于{}日停水，请提前储水备用，给您带来不便敬请谅解。",
                3 + at,
                11 + at
            )
        })
        .collect();
    assert_eq!(learn(&notices).unwrap().slot_count(), 2);
}

/// Copies of an article differ at their edges, and at places where most of them agree.
#[test]
fn copies_of_an_article_have_no_form() {
    let words: Vec<String> = (0..120).map(number_word).collect();
    let copies: Vec<String> = (0..20)
        .map(|copy| {
            let mut words = words.clone();
            words[10 + copy * 5] = format!("edited{copy}");
            words.truncate(120 - copy % 5);
            format!(
                "From paper {copy}. {} Read by {copy} people",
                words.join(" ")
            )
        })
        .collect();
    assert!(learn(&copies).is_none());
    // Two versions of a sentence are no values of a slot.
    let versions: Vec<String> = (0..20)
        .map(|copy| {
            let mut words = words.clone();
            words[60] = ["ten", "twelve"][copy % 2].to_owned();
            words.join(" ")
        })
        .collect();
    assert!(learn(&versions).is_none());
}

/// In a group of joined groups some texts may only share a sentence with the frame.
#[test]
fn a_form_needs_texts_with_its_whole_frame() {
    let offers: Vec<String> = (0..LEAST_TEXTS as u32)
        .map(|at| offer(&number_word(at as usize), 100 + at))
        .collect();
    let others = (0..3).map(|at| format!("{} {}. It is late.", OFFER[2], number_word(at + 50)));
    let others: Vec<String> = others.collect();
    assert!(learn(&[&offers[..LEAST_TEXTS - 1], &others].concat()).is_none());
    let form = learn(&[&offers[..], &others].concat()).unwrap();
    assert_eq!(form.documents, LEAST_TEXTS as u64);
}

#[test]
fn form_of_several_groups_is_one_form() {
    let learner = FormLearner::new(&Recipe::default());
    let group = |from: usize| {
        let offers: Vec<String> = (from..from + 10)
            .map(|at| offer(&number_word(at), at as u32))
            .collect();
        learn(&offers).unwrap()
    };
    let mut other = group(0);
    other.name = "other".to_owned();
    other.frame = vec!["The minutes of".to_owned(), "were agreed".to_owned()];
    let table = learner.make_table(vec![group(0), group(20), other.clone()]);
    assert_eq!(table.forms().len(), 2);
    assert!(table.forms().contains(&other));
}

/// Each form that a person has rejected counts, not only the first one of which the frame has enough.
#[test]
fn rejected_forms_are_left_out_with_their_like() {
    let learner = FormLearner::new(&Recipe::default());
    let with_frame = |name: &str, frame: &[&str]| {
        let frame = frame.iter().map(|&part| part.to_owned()).collect();
        Form::from_frame(name.to_owned(), frame).unwrap()
    };
    let more = "Order it by telephone from Monday to Friday, or in the shop around the corner of your street.";
    let long = format!("{} {more}", OFFER[2]);
    let short_form = with_frame("short", &OFFER);
    let long_form = with_frame("long", &[OFFER[0], OFFER[1], &long]);
    let learned = FormTable::from_forms(vec![long_form.clone()]);
    let correct = |rejected: Vec<Form>| learner.correct_table(learned.clone(), &[], rejected);
    assert_eq!(correct(vec![short_form.clone()]), learned);
    for rejected in [vec![long_form.clone()], vec![short_form, long_form.clone()]] {
        assert_eq!(correct(rejected).forms(), []);
    }
    // Two frames of one name, which is a hash of 32 bits, are both kept.
    let mut other = with_frame("long", &["The minutes of", "were agreed by all"]);
    other.documents = 9;
    let names: Vec<String> = learner
        .make_table(vec![long_form, other])
        .forms()
        .iter()
        .map(|form| form.name.clone())
        .collect();
    assert_eq!(names, ["long", "long-2"]);
}

/// Slots of titles are often at their edges. Headers of some copies are no slots.
#[test]
fn edges_of_titles_are_slots() {
    let titles: Vec<String> = (0..10)
        .map(|at| {
            format!(
                "{} closes higher on heavy trading at {}",
                number_word(at),
                200 + 3 * at
            )
        })
        .collect();
    let form = learn(&titles).unwrap();
    assert_eq!(form.frame, ["", "closes higher on heavy trading at", ""]);
    let table = FormTable::from_forms(vec![form]);
    assert_eq!(
        FormTable::parse_table("copy", &table.to_toml()).unwrap(),
        table
    );
    let index = FormIndex::new(&Recipe::default(), &table, |part, into| {
        into.extend(tokens(part))
    });
    let all: Vec<_> = titles.iter().map(|title| values(&index, title)).collect();
    for (at, a) in all.iter().enumerate() {
        assert_eq!(a.len(), 3);
        assert_eq!(
            all.iter().filter(|b| do_forms_agree(a, b)).count(),
            1,
            "{at}"
        );
    }
    let copies: Vec<String> = (0..10)
        .map(|at| {
            let header = if at % 2 == 0 {
                number_word(at)
            } else {
                String::new()
            };
            format!("{header} shares close higher on heavy trading in the north")
        })
        .collect();
    assert!(learn(&copies).is_none());
}
