//! Every name in a plan that the program prints has an entry in the glossary.

use std::collections::BTreeSet;
use std::path::Path;

use super::pages::{PageLanguage, read_page};
use crate::support::{Place, jsonl};

/// The glossary of the guide.
const GLOSSARY: &str = "docs/guide/glossary.md";

/// Labels in plans that are no names: they stand before settings and figures.
const OTHER_LABELS: [&str; 6] = ["recipe", "matches", "memory", "pairs", "plan", "time"];

/// Returns the words in the first column of the tables of a page.
fn glossary_names(page: &Path) -> BTreeSet<String> {
    let page = read_page(page);
    let rows = page.lines().filter_map(|line| line.strip_prefix("| "));
    let cells = rows.filter_map(|row| row.split(" | ").next());
    let names = cells.flat_map(|cell| cell.split(", "));
    names.map(str::to_owned).collect()
}

/// Returns the first words of lines of `--explain-plan`, without headings and the curve of the recall.
fn route_labels(plan: &str) -> BTreeSet<String> {
    let lines = plan.lines().map(str::trim_start);
    let labels = lines.filter_map(|line| {
        let (label, rest) = line.split_once(' ')?;
        let is_name = label.starts_with(|c: char| c.is_ascii_alphabetic());
        let is_label = is_name && rest.starts_with(' ');
        (is_label && !OTHER_LABELS.contains(&label)).then(|| label.to_owned())
    });
    labels.collect()
}

/// Returns the names in a plan for fingerprints, such as `any 2 equal (direct keys of 22 bits, lines)`.
fn names_in(plan: &str) -> BTreeSet<String> {
    let (shape, inner) = plan.split_once(" (").unwrap();
    let (inner, _) = inner.split_once(')').unwrap();
    let shape = shape.rsplit("; ").next().unwrap();
    let details = inner.split(", ");
    let details = details.map(|details| details.split(" of ").next().unwrap().to_owned());
    let is_name = |name: &str| name.starts_with(|c: char| c.is_ascii_alphabetic());
    let number = |c: char| if c.is_ascii_digit() { 'N' } else { c };
    let shape = is_name(shape).then(|| shape.chars().map(number).collect());
    details.chain(shape).collect()
}

/// Returns a list in a message, from behind `before` up to `after`.
fn listed(message: &str, before: &str, after: &str) -> BTreeSet<String> {
    let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
    let (_, rest) = message.split_once(before).unwrap();
    let (list, _) = rest.split_once(after).unwrap();
    list.split(", ").map(str::to_owned).collect()
}

/// Returns the names in the plans of runs over documents, by every method.
fn names_of_runs(place: &Place) -> BTreeSet<String> {
    let text = "The keeper of the harbour lights the lamp before night.";
    place.write("in.jsonl", jsonl([("1", text), ("2", &text.repeat(40))]));
    let refused = place.run("dedup in.jsonl --method none").err;
    let methods = listed(&refused, "[possible values: ", "]");
    assert!(methods.len() > 5, "{methods:?}");
    let mut names = methods.clone();
    for method in &methods {
        let plan = place.ok(&format!(
            "dedup in.jsonl --explain-plan --method {method} --memory 2G"
        ));
        names.extend(route_labels(plan.text()));
    }
    names
}

/// Returns the names in the plans for fingerprints.
fn names_of_indexes(place: &Place) -> BTreeSet<String> {
    let refused = place.run("index plan --count 9 --plan none").err;
    let mut names = listed(&refused, "give ", " or scan");
    names.insert("scan".to_owned());
    assert!(names.len() > 5, "{names:?}");
    for options in ["", "--live", "--count 1K --plan neighbourhoods"] {
        let count = if options.contains("--count") {
            ""
        } else {
            "--count 50M"
        };
        let printed = place.ok(&format!("index plan {count} {options}"));
        let plans = printed.text().lines().skip(2);
        let plans = plans.take_while(|line| !line.starts_with("Tables"));
        names
            .extend(plans.flat_map(|line| {
                names_in(line.rsplit("  ").find(|it| it.contains(" (")).unwrap())
            }));
    }
    names
}

#[test]
fn names_in_plans_are_in_the_glossary() {
    let place = Place::new();
    let known = glossary_names(Path::new(GLOSSARY));
    let printed: BTreeSet<_> = names_of_runs(&place)
        .into_iter()
        .chain(names_of_indexes(&place))
        .collect();
    for name in [
        "join",
        "minhash",
        "bottom-k",
        "covering keys",
        "any N equal",
        "live",
    ] {
        assert!(printed.contains(name), "{name}: {printed:?}");
    }
    let missing: Vec<_> = printed.difference(&known).collect();
    assert!(missing.is_empty(), "{GLOSSARY} lacks {missing:?}");
}

#[test]
fn glossaries_have_the_same_words() {
    let english = Path::new(GLOSSARY);
    let chinese = PageLanguage::Chinese.page_of(english);
    let mut words = [glossary_names(english), glossary_names(&chinese)];
    let headings = ["word", "name", "英文"];
    for words in &mut words {
        words.retain(|word| !headings.contains(&&**word));
    }
    assert!(words[0].len() > 60, "{:?}", words[0]);
    assert_eq!(words[0], words[1]);
}
