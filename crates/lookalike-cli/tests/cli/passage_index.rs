//! An index of the sources of passages: `lookalike passages index`.

use serde_json::Value;

use crate::support::{Numbers, Place, jsonl};

/// Documents that share sentences of 15 words with earlier ones, and a notice.
fn corpus(numbers: &mut Numbers, documents: usize) -> Vec<(String, String)> {
    let mut sentences: Vec<String> = Vec::new();
    let mut corpus = Vec::new();
    for at in 0..documents {
        let mut text = String::new();
        for _ in 0..4 {
            if numbers.below(3) == 0 && !sentences.is_empty() {
                text.push_str(&sentences[numbers.below(sentences.len())]);
            } else {
                let words = (0..15).map(|_| format!("w{}", numbers.below(1 << 40)));
                let sentence = format!("{}。\n", words.collect::<Vec<_>>().join(" "));
                text.push_str(&sentence);
                sentences.push(sentence);
            }
        }
        if at.is_multiple_of(4) {
            text.push_str("清晨六點，老船長已經把纜繩解開了，岸上的人都知道他今天要去東邊的小島。");
        }
        corpus.push((format!("d{at}"), text));
    }
    corpus
}

fn write_rows<'a>(place: &Place, name: &str, rows: impl IntoIterator<Item = &'a (String, String)>) {
    let rows = rows.into_iter().map(|(id, text)| (&**id, &**text));
    place.write(name, jsonl(rows));
}

/// Returns the rows of a table, without an order among the sources of a document.
fn sorted_table(place: &Place, name: &str) -> Vec<Vec<String>> {
    let mut rows = place.table(name);
    rows.sort();
    rows
}

#[test]
fn index_finds_what_the_documents_themselves_would() {
    let place = Place::new();
    let mut numbers = Numbers::new(7);
    let all = corpus(&mut numbers, 200);
    let (sources, queries) = all.split_at(150);
    write_rows(&place, "sources.jsonl", sources);
    write_rows(&place, "first.jsonl", &sources[..60]);
    write_rows(&place, "second.jsonl", &sources[60..]);
    write_rows(&place, "queries.jsonl", queries);
    place.ok("passages index build lib first.jsonl");
    place.ok("passages index add lib second.jsonl");
    place.ok("passages index verify lib");
    for limit in ["none", "5", "20", "1%"] {
        let options = format!("--max-documents {limit} --threads 2");
        let direct = place.summary(&format!(
            "passages queries.jsonl --against sources.jsonl {options} -o direct.tsv"
        ));
        let indexed = place.summary(&format!(
            "passages queries.jsonl --index lib {options} -o indexed.tsv"
        ));
        assert!(!place.table("direct.tsv").is_empty());
        assert_eq!(
            place.bytes("direct.tsv"),
            place.bytes("indexed.tsv"),
            "{limit}"
        );
        for field in [
            "documents",
            "against",
            "passages",
            "pairs",
            "longest",
            "most_copied",
        ] {
            assert_eq!(direct[field], indexed[field], "{field}");
        }
        let with_boilerplate = |it: &Value| it["boilerplate"]["documents"].clone();
        assert_eq!(with_boilerplate(&direct), with_boilerplate(&indexed));
    }
}

#[test]
fn changed_index_equals_one_that_is_built_anew() {
    let place = Place::new();
    let mut numbers = Numbers::new(11);
    let all = corpus(&mut numbers, 160);
    let (sources, queries) = all.split_at(120);
    write_rows(&place, "queries.jsonl", queries);
    for (at, part) in sources.chunks(40).enumerate() {
        write_rows(&place, &format!("part{at}.jsonl"), part);
    }
    place.ok("passages index build lib part0.jsonl");
    place.ok("passages index add lib part1.jsonl part2.jsonl");
    // A third of one part, and nearly all of another, so that a segment is written again.
    let is_gone = |at: usize| {
        if at < 40 {
            at.is_multiple_of(3)
        } else {
            at % 10 < 8
        }
    };
    let gone = (0..120).filter(|&at| is_gone(at));
    let gone: String = gone.map(|at| format!("d{at}\n")).collect();
    place.write("gone.txt", gone);
    place.ok("passages index remove lib --ids gone.txt");
    place.ok("passages index verify lib");
    let left = sources.iter().enumerate().filter(|(at, _)| !is_gone(*at));
    write_rows(&place, "left.jsonl", left.map(|(_, row)| row));
    place.ok("passages index build anew left.jsonl");
    for limit in ["none", "4"] {
        for index in ["lib", "anew"] {
            place.ok(&format!(
                "passages queries.jsonl --index {index} --max-documents {limit} -o {index}.tsv"
            ));
        }
        assert!(!place.table("anew.tsv").is_empty());
        assert_eq!(
            sorted_table(&place, "lib.tsv"),
            sorted_table(&place, "anew.tsv"),
            "{limit}"
        );
    }
    // Rows that are added again after a removal are found once.
    place.ok("passages index add lib part1.jsonl");
    place.ok("passages index verify lib");
}

#[test]
fn length_and_recipe_are_those_of_the_index() {
    let place = Place::new();
    let long = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen";
    place.write("source.txt", long);
    place.write("essay.txt", format!("Well, {}.", long.to_uppercase()));
    place.ok("passages index build lib source.txt --min-length 8");
    let info: Value =
        serde_json::from_str(place.ok("passages index info lib --json").text()).unwrap();
    assert_eq!(info["min_passage_words"], 8);
    assert!(
        place
            .ok("passages index info lib")
            .text()
            .contains("of at least 8 words")
    );
    place.ok("passages essay.txt --index lib -o out.tsv");
    assert_eq!(place.table("out.tsv")[0][1], "source.txt");
    place.ok("passages essay.txt --index lib -o out.tsv --min-length 14");
    assert_eq!(place.table("out.tsv").len(), 1);
    place.ok("passages essay.txt --index lib -o out.tsv --min-length 15");
    assert!(place.table("out.tsv").is_empty());
    place.refused(
        "passages essay.txt --index lib -o out.tsv --min-length 7",
        &["at least 8 words", "7"],
    );
    place.refused(
        "passages essay.txt --index lib --recipe default -o out.tsv",
        &["--recipe"],
    );
    place.refused(
        "passages essay.txt --index lib --against source.txt -o out.tsv",
        &["--against"],
    );
    place.refused(
        "passages essay.txt --index nothing -o out.tsv",
        &["nothing", "not an index"],
    );
    place.ok("index build plain.lib source.txt --document-per-file");
    place.refused(
        "passages essay.txt --index plain.lib -o out.tsv",
        &["passages index build"],
    );
}

fn files_of(place: &Place, folder: &str) -> Vec<String> {
    let files = std::fs::read_dir(place.path(folder)).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    names.collect()
}

#[test]
fn damaged_grams_are_refused() {
    let place = Place::new();
    let all = corpus(&mut Numbers::new(3), 50);
    write_rows(&place, "in.jsonl", &all);
    place.ok("passages index build lib in.jsonl");
    let file = files_of(&place, "lib")
        .into_iter()
        .find(|it| it.ends_with(".grams"))
        .unwrap();
    let name = format!("lib/{file}");
    let whole = place.bytes(&name);
    for at in [0, whole.len() / 2, whole.len() - 1] {
        let mut damaged = whole.clone();
        damaged[at] ^= 1;
        place.write(&name, damaged);
        place.refused("passages index verify lib", &[&file]);
    }
    place.write(&name, &whole[..whole.len() - 9]);
    place.refused("passages in.jsonl --index lib -o out.tsv", &[&file]);
    std::fs::remove_file(place.path(&name)).unwrap();
    place.refused("passages in.jsonl --index lib -o out.tsv", &[&file]);
}
