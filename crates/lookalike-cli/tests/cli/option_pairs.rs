//! The page about terabytes names every pair of options for large runs that does not go together.

use std::collections::BTreeSet;
use std::path::Path;

use crate::pages::read_page;
use crate::support::{Place, row};

/// The options of the page, each with what it needs.
const OPTIONS: [(&str, &str); 14] = [
    ("--memory", "--memory 400M"),
    ("--work", "--work run"),
    ("--passages", "--passages remove"),
    ("--against", "--against known.jsonl"),
    ("--library", "--library seen.lib"),
    ("--audit", "--audit"),
    ("--report", "--report report.html"),
    ("--annotate", "--annotate"),
    ("--components", "--clusters clusters.tsv --components"),
    ("--within", "--within source"),
    ("--window", "--window 2d --time time"),
    ("--copies", "--copies copies"),
    ("-o DIR/", "-o out/"),
    ("-", "-"),
];

/// Returns the pairs of options in the last table of a page: the first two cells of each row.
fn pairs_of_page(page: &str) -> BTreeSet<(String, String)> {
    let text = read_page(Path::new(page));
    let table = text.rsplit("\n\n").next().unwrap();
    let rows = table.lines().skip(2);
    let pairs = rows.map(|line| {
        let cells: Vec<_> = line.split(" | ").collect();
        let name = |cell: &str| cell.trim_start_matches("| ").replace('`', "");
        (name(cells[0]), name(cells[1]))
    });
    pairs.collect()
}

fn goes_together(first: &str, second: &str) -> bool {
    let place = Place::new();
    let rows = [("a", "one two three four"), ("b", "five six seven eight")];
    let rows = rows.map(|(id, text)| {
        let fields = r#", "source": "s", "time": "2026-03-02T01:30:00Z"}"#;
        row(id, text).replace('}', fields)
    });
    place.write("rows.jsonl", rows.concat());
    place.write("known.jsonl", &rows[0]);
    // Options with several values would take the input, so it comes first.
    let given = [first, second].into_iter().filter(|option| *option != "-");
    let options = given.collect::<Vec<_>>().join(" ");
    let reads_input = [first, second].contains(&"-");
    let input = if reads_input {
        "- --format jsonl"
    } else {
        "rows.jsonl"
    };
    let output = if options.contains("-o ") {
        ""
    } else {
        "-o kept.jsonl"
    };
    let line = format!("dedup {input} {options} {output} --quiet");
    let ran = place.run_with(&line, rows.concat().as_bytes());
    assert!(matches!(ran.code, Some(0 | 2)), "{line}\n{}", ran.err);
    ran.code == Some(0)
}

#[test]
fn page_names_the_options_that_exclude_each_other() {
    let english = pairs_of_page("docs/guide/terabytes.md");
    assert_eq!(pairs_of_page("docs/zh/guide/terabytes.md"), english);
    let mut refused = BTreeSet::new();
    for (at, (first, with_first)) in OPTIONS.iter().enumerate() {
        for (second, with_second) in &OPTIONS[at + 1..] {
            if !goes_together(with_first, with_second) {
                refused.insert(((*first).to_owned(), (*second).to_owned()));
            }
        }
    }
    assert_eq!(refused, english);
}
