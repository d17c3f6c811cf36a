//! Rows of every preset and files of every format, each written by the test.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use lookalike_io::sink::{OutputRows, OutputTarget, RowChange, WriteOptions, prepare_kept};
use lookalike_io::source::RowPlace;
use serde_json::json;
use tempfile::TempDir;

use super::*;

/// Files of benchmarks in a directory that is removed after the test.
struct BenchmarkFolder(TempDir);

impl BenchmarkFolder {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    fn path(&self) -> PathBuf {
        self.0.path().to_owned()
    }

    /// Writes a file, compressed according to its extension.
    fn store(&self, name: &str, contents: &str) -> PathBuf {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("gz") => {
                let file = fs::File::create(&path).unwrap();
                let mut writer = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
                writer.write_all(contents.as_bytes()).unwrap();
                writer.finish().unwrap();
            }
            Some("zst") => {
                let bytes = zstd::encode_all(contents.as_bytes(), 1).unwrap();
                fs::write(&path, bytes).unwrap();
            }
            _ => fs::write(&path, contents).unwrap(),
        }
        path
    }

    /// Reads the folder and shows errors without its path.
    fn read(
        &self,
        names: &[&str],
        fields: Option<&str>,
    ) -> std::result::Result<BenchmarkSet, String> {
        let paths: Vec<PathBuf> = names.iter().map(|name| self.0.path().join(name)).collect();
        let fields = fields.map(|fields| fields.parse::<ItemFields>().unwrap());
        let read = ReadOptions::default();
        let read = read_benchmarks(&paths, fields.as_ref(), &read, OptionSpelling::Options);
        let folder = format!("{}/", self.0.path().display());
        read.map_err(|error| error.to_string().replace(&folder, ""))
    }
}

/// An item, as a test compares it.
fn item(question: &str, choices: &[&str], answer: &str, passage: &str) -> ParsedItem {
    ParsedItem {
        question: question.to_owned(),
        choices: choices.iter().map(|&choice| choice.to_owned()).collect(),
        answer: answer.to_owned(),
        passage: passage.to_owned(),
    }
}

fn texts_of_item(item: &BenchmarkItem) -> ParsedItem {
    ParsedItem {
        question: item.question.clone(),
        choices: item.choices.clone(),
        answer: item.answer.clone(),
        passage: item.passage.clone(),
    }
}

/// Rows of every preset, with their items.
fn rows_of_presets() -> Vec<(&'static str, Value, ParsedItem)> {
    let colours = ["teal", "rust", "plum", "sand"];
    let hue = "Which colour does the made-up harbour flag of Orrin have?";
    let tram = "The tram of Quill turns at the mill.";
    let lettered = ["(A)teal", "(B)rust", "(C)plum", "(D)sand"];
    let plain = |answer| item(hue, &colours, answer, "");
    vec![
        (
            "mmlu",
            json!({"question": hue, "subject": "flags", "choices": colours, "answer": 2}),
            plain("plum"),
        ),
        (
            "mmlu-pro",
            json!({"question_id": 7, "question": hue, "options": colours, "answer": "B", "answer_index": 1,
                "cot_content": ""}),
            plain("rust"),
        ),
        (
            "gsm8k",
            json!({"question": "Orrin buys 3 ropes of 4 m. How long are they?", "answer": "3 * 4 = 12\n#### 12"}),
            item(
                "Orrin buys 3 ropes of 4 m. How long are they?",
                &[],
                "3 * 4 = 12\n#### 12",
                "",
            ),
        ),
        (
            "arc",
            json!({"id": "q1", "question": hue, "choices": {"text": colours, "label": ["A", "B", "C", "D"]},
                "answerKey": "D"}),
            plain("sand"),
        ),
        (
            "arc",
            json!({"id": "q1", "question_stem": hue, "choices": {"text": colours, "label": ["1", "2", "3", "4"]},
                "answerKey": "1"}),
            plain("teal"),
        ),
        (
            "arc-stem",
            json!({"question": {"stem": hue, "choices": [{"label": "A", "text": "teal"}, {"label": "B", "text": "rust"}]},
                "answerKey": "B"}),
            item(hue, &["teal", "rust"], "rust", ""),
        ),
        (
            "hellaswag",
            json!({"ind": 4, "ctx_a": "a", "ctx_b": "b", "ctx": tram, "endings": colours, "label": "3"}),
            item(tram, &colours, "sand", ""),
        ),
        (
            "hellaswag",
            json!({"ctx": tram, "endings": colours, "label": ""}),
            item(tram, &colours, "", ""),
        ),
        (
            "agieval",
            json!({"passage": tram, "question": hue, "options": lettered, "label": "C", "answer": null}),
            item(hue, &colours, "plum", tram),
        ),
        (
            "agieval",
            json!({"passage": null, "question": "奥林港的旗是什么颜色?", "options": lettered, "label": ["A", "D"]}),
            item("奥林港的旗是什么颜色?", &colours, "teal\nsand", ""),
        ),
        (
            "agieval-query",
            json!({"query": format!("{tram} Q: {hue} Answer Choices: (A)teal (B)rust\nA: Among A through B, the \
                answer is"), "choices": ["(A)teal", "(B)rust"], "gold": [1]}),
            item(hue, &["teal", "rust"], "rust", tram),
        ),
        (
            "agieval-query",
            json!({"query": "问题：奥林港的旗是什么颜色? 选项：(A)青 (B)紫\n答案：从A到B, 我们应选择",
                "choices": ["(A)青", "(B)紫"], "gold": [0]}),
            item("奥林港的旗是什么颜色?", &["青", "紫"], "青", ""),
        ),
        (
            "c-eval",
            json!({"id": 0, "question": hue, "A": "teal", "B": "rust", "C": "plum", "D": "sand", "answer": "A"}),
            plain("teal"),
        ),
        (
            "c-eval",
            json!({"": 3, "Question": hue, "A": 1, "B": 2, "C": 3, "D": 4, "Answer": "B"}),
            item(hue, &["1", "2", "3", "4"], "2", ""),
        ),
        (
            "humaneval",
            json!({"task_id": "T/1", "prompt": "def orrin(a):", "canonical_solution": "    return a + 1", "test": ""}),
            item("def orrin(a):", &[], "return a + 1", ""),
        ),
        (
            "mbpp",
            json!({"task_id": 1, "text": "Write a function that counts flags.", "code": "def f(x): return len(x)"}),
            item(
                "Write a function that counts flags.",
                &[],
                "def f(x): return len(x)",
                "",
            ),
        ),
        (
            "truthfulqa",
            json!({"question": hue, "best_answer": "It has none", "correct_answers": ["It has none", "None"],
                "incorrect_answers": ["Teal"]}),
            item(hue, &["It has none", "None", "Teal"], "It has none", ""),
        ),
        (
            "truthfulqa",
            json!({"Question": hue, "Best Answer": "It has none", "Correct Answers": "It has none; None",
                "Incorrect Answers": "Teal"}),
            item(hue, &["It has none", "None", "Teal"], "It has none", ""),
        ),
        (
            "truthfulqa-choice",
            json!({"question": hue, "mc1_targets": {"choices": ["teal", "rust"], "labels": [0, 1]},
                "mc2_targets": {"choices": [], "labels": []}}),
            item(hue, &["teal", "rust"], "rust", ""),
        ),
        (
            "winogrande",
            json!({"sentence": "The rope was longer than the mast, so _ was cut.", "option1": "rope",
                "option2": "mast", "answer": "1"}),
            item(
                "The rope was longer than the mast, so _ was cut.",
                &["rope", "mast"],
                "rope",
                "",
            ),
        ),
        (
            "piqa",
            json!({"goal": "Dry a flag", "sol1": "Hang it up", "sol2": "Sink it", "label": 0}),
            item("Dry a flag", &["Hang it up", "Sink it"], "Hang it up", ""),
        ),
        (
            "copa",
            json!({"premise": tram, "choice1": "It waits", "choice2": "It sings", "question": "effect", "label": 1}),
            item(tram, &["It waits", "It sings"], "It sings", ""),
        ),
        (
            "medmcqa",
            json!({"id": "m", "question": hue, "opa": "teal", "opb": "rust", "opc": "plum", "opd": "sand", "cop": 3,
                "exp": "As the log says."}),
            plain("sand"),
        ),
        (
            "boolq",
            json!({"question": "does the tram of quill turn", "passage": tram, "answer": true}),
            item("does the tram of quill turn", &[], "yes", tram),
        ),
        (
            "boolq",
            json!({"question": "does the tram of quill sing", "passage": tram, "label": 0, "idx": 3}),
            item("does the tram of quill sing", &[], "no", tram),
        ),
        (
            "squad",
            json!({"id": "a", "context": tram, "question": "Where does it turn?",
                "answers": {"text": ["the mill", "mill"], "answer_start": [27, 31]}}),
            item("Where does it turn?", &[], "the mill", tram),
        ),
        (
            "squad",
            json!({"context": tram, "question": "Who drives it?", "answers": {"text": [], "answer_start": []}}),
            item("Who drives it?", &[], "", tram),
        ),
        (
            "triviaqa",
            json!({"question": hue, "question_id": "t", "answer": {"value": "Teal", "aliases": ["teal", "Teal blue"]}}),
            item(hue, &[], "Teal", ""),
        ),
        (
            "nq-open",
            json!({"question": hue, "answer": ["teal", "blue green"]}),
            item(hue, &[], "teal", ""),
        ),
        (
            "drop",
            json!({"passage": tram, "question": "Where?", "answers_spans": {"spans": ["mill"], "types": ["span"]}}),
            item("Where?", &[], "mill", tram),
        ),
        (
            "math",
            json!({"problem": "Find $x$ with $x+1=3$.", "level": "1", "solution": "So $x=\\boxed{2}$.",
                "answer": "2"}),
            item("Find $x$ with $x+1=3$.", &[], "So $x=\\boxed{2}$.", ""),
        ),
        (
            "gpqa",
            json!({"Record ID": "r1", "Question": hue, "Correct Answer": "plum", "Incorrect Answer 1": "teal",
                "Incorrect Answer 2": "rust", "Incorrect Answer 3": "sand"}),
            item(hue, &["plum", "teal", "rust", "sand"], "plum", ""),
        ),
        (
            "sciq",
            json!({"question": hue, "distractor3": "sand", "distractor1": "teal", "distractor2": "rust",
                "correct_answer": "plum", "support": tram}),
            item(hue, &["plum", "teal", "rust", "sand"], "plum", tram),
        ),
        (
            "siqa",
            json!({"context": tram, "question": "Why?", "answerA": "rain", "answerB": "snow", "answerC": "fog",
                "label": "3"}),
            item("Why?", &["rain", "snow", "fog"], "fog", tram),
        ),
        (
            "race",
            json!({"example_id": "m1.txt", "article": tram, "question": "It turns at _ .", "options": colours,
                "answer": "B"}),
            item("It turns at _ .", &colours, "rust", tram),
        ),
        (
            "lambada",
            json!({"text": "They all went back to the mill"}),
            item("They all went back to the", &[], "mill", ""),
        ),
        (
            "ifeval",
            json!({"key": 1000, "prompt": "Write about flags without commas.", "instruction_id_list": ["no_comma"],
                "kwargs": [{}]}),
            item("Write about flags without commas.", &[], "", ""),
        ),
        (
            "aime",
            json!({"ID": "x-1", "Problem": "Find the number of flags.", "Answer": 204}),
            item("Find the number of flags.", &[], "204", ""),
        ),
        (
            "bbh",
            json!({"input": "not ( True ) and True is", "target": "False"}),
            item("not ( True ) and True is", &[], "False", ""),
        ),
        (
            "nli",
            json!({"premise": tram, "hypothesis": "The tram has a mill.", "label": 1}),
            item("The tram has a mill.", &[], "", tram),
        ),
        (
            "mt-bench",
            json!({"question_id": 81, "category": "w", "turns": ["Name a flag.", "Name another."]}),
            item("Name a flag.\nName another.", &[], "", ""),
        ),
        (
            "question-choices",
            json!({"question": hue, "options": {"A": "teal", "B": "rust"}, "answer_idx": "B", "answer": "rust"}),
            item(hue, &["teal", "rust"], "rust", ""),
        ),
        (
            "question-choices",
            json!({"context": tram, "query": "Where?", "options": ["mill", "sea"], "correct_option": 0}),
            item("Where?", &["mill", "sea"], "mill", tram),
        ),
        (
            "question-answer",
            json!({"question": "How many?", "answer": "12", "answer_number": 12}),
            item("How many?", &[], "12", ""),
        ),
        (
            "question",
            json!({"question": "How many?", "answer": null}),
            item("How many?", &[], "", ""),
        ),
        (
            "instruction",
            json!({"instruction": "Count the flags.", "input": "a b", "output": "2"}),
            item("Count the flags.", &[], "2", "a b"),
        ),
        (
            "prompt",
            json!({"prompt": "Count the flags.", "completion": "2"}),
            item("Count the flags.", &[], "2", ""),
        ),
    ]
}

#[test]
fn every_preset_reads_its_rows() {
    let folder = BenchmarkFolder::new();
    let rows = rows_of_presets();
    for (at, (preset, row, expected)) in rows.iter().enumerate() {
        let found =
            ItemPreset::find(RowFields::new(row.as_object().unwrap())).map(|found| found.name);
        assert_eq!(found, Some(*preset), "{row}");
        let name = format!("{at}.jsonl");
        folder.store(&name, &format!("{row}\n"));
        // The row that an evaluation harness has logged is the same item.
        let logged = json!({"doc_id": 5, "doc": row, "target": "x", "resps": [["y"]]});
        folder.store(&format!("logged-{name}"), &format!("{logged}\n"));
        for name in [name.clone(), format!("logged-{name}")] {
            let set = folder.read(&[&name], None).unwrap();
            assert_eq!(set.items.len(), 1, "{row}");
            assert_eq!(&texts_of_item(&set.items[0]), expected, "{row}");
            assert_eq!(set.benchmarks[0].presets, [*preset]);
        }
    }
    let tested: HashSet<&str> = rows.iter().map(|(preset, ..)| *preset).collect();
    assert_eq!(tested.len(), ItemPreset::count());
}

/// Rows that a preset with the same fields must not take.
#[test]
fn rows_of_other_things_are_not_items() {
    for row in [
        json!({"text": "a corpus", "url": "u"}),
        json!({"text": "a review", "label": 1}),
        json!({"question": null, "answer": "x"}),
        json!({"question": ["a list"], "answer": "x"}),
        json!({"id": 1}),
    ] {
        let found = ItemPreset::find(RowFields::new(row.as_object().unwrap()));
        assert_eq!(found.map(|preset| preset.name), None, "{row}");
    }
}

struct AllRows(Vec<(RowPlace, u64)>);

impl OutputRows for AllRows {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn place_of(&self, index: usize) -> RowPlace {
        self.0[index].0
    }

    fn row_number(&self, index: usize) -> u64 {
        self.0[index].1
    }

    fn is_kept(&self, _index: usize) -> bool {
        true
    }
}

/// Writes the rows of JSONL as a file of another format.
fn convert(jsonl: &Path, output: &Path) {
    let mut options = ReadOptions::default();
    options.fields.text = vec!["question".to_owned()];
    let inputs = InputSet::open_paths(&[jsonl.to_owned()], &options).unwrap();
    let mut rows = Vec::new();
    let mut scratch = ParseScratch::default();
    while let Some(block) = inputs.next_block().unwrap() {
        let mut visit = |row: lookalike_io::source::RowResult<'_>| {
            let row = row.unwrap();
            rows.push((row.place, row.number));
            Ok(())
        };
        inputs
            .parse_block(&block, &mut scratch, &mut visit)
            .unwrap();
    }
    let options = WriteOptions {
        change: RowChange::Unchanged,
        threads: 1,
    };
    let target = OutputTarget::Path(output.to_owned());
    let written = prepare_kept(&inputs, &AllRows(rows), &target, &options, &|_| {}).unwrap();
    written.commit_output().unwrap();
}

#[test]
fn every_format_has_the_same_items() {
    let folder = BenchmarkFolder::new();
    let rows: Vec<Value> = (0..300)
        .map(|row| {
            json!({"id": format!("q{row}"), "question": format!("How long is rope {row}, \"roughly\"?\n{}", "x".repeat(row)),
                "choices": {"text": [format!("{row} m"), "none", "it's new"], "label": ["A", "B", "C"]},
                "answerKey": &"ABC"[row % 3..=row % 3]})
        })
        .collect();
    let lines: String = rows.iter().map(|row| format!("{row}\n")).collect();
    let jsonl = folder.store("a.jsonl", &lines);
    let list = serde_json::to_string_pretty(&rows).unwrap();
    folder.store("a.json", &list);
    folder.store("a.jsonl.gz", &lines);
    folder.store("a.json.zst", &list);
    for name in ["a.parquet", "a.arrow", "a.arrows"] {
        convert(&jsonl, &folder.path().join(name));
    }
    // As pandas writes the table of a dataset: arrays are printed.
    let quote = |cell: &str| format!("\"{}\"", cell.replace('"', "\"\""));
    let mut csv = "id,question,choices,answerKey\n".to_owned();
    for row in &rows {
        let texts = row["choices"]["text"].as_array().unwrap();
        let choices = format!(
            "{{'text': array(['{}', 'none', \"it's new\"], dtype=object), 'label': array(['A', 'B', 'C'],\n      \
             dtype=object)}}",
            texts[0].as_str().unwrap()
        );
        csv += &format!(
            "{},{},{},{}\r\n",
            row["id"].as_str().unwrap(),
            quote(row["question"].as_str().unwrap()),
            quote(&choices),
            row["answerKey"].as_str().unwrap()
        );
    }
    folder.store("a.csv", &csv);
    let expected = folder.read(&["a.jsonl"], None).unwrap();
    assert_eq!(expected.items.len(), 300);
    assert_eq!(expected.items[4].answer, "none");
    assert_eq!(expected.items[4].id, "q4");
    assert_eq!(expected.benchmarks[0].name, "a");
    for name in [
        "a.json",
        "a.jsonl.gz",
        "a.json.zst",
        "a.parquet",
        "a.arrow",
        "a.arrows",
        "a.csv",
    ] {
        let found = folder.read(&[name], None).unwrap();
        assert_eq!(found.items, expected.items, "{name}");
        assert_eq!(found.benchmarks[0].presets, ["arc"]);
        assert_eq!(found.benchmarks[0].rejected, 0);
    }
    folder.store(
        "b.tsv",
        "question\tA\tB\tC\tD\tanswer\nHow \"far\"?\t1\t2\t3\t4\tD\n",
    );
    let found = folder.read(&["b.tsv"], None).unwrap();
    assert_eq!(
        texts_of_item(&found.items[0]),
        item("How \"far\"?", &["1", "2", "3", "4"], "4", "")
    );
    assert_eq!(found.items[0].id, "1");
}

#[test]
fn directories_hold_many_benchmarks() {
    let folder = BenchmarkFolder::new();
    let row = |question: &str| format!("{}\n", json!({"question": question, "answer": "x"}));
    folder.store("in/mmlu/all/test-00000-of-00002.jsonl", &row("one?"));
    folder.store("in/mmlu/all/test-00001-of-00002.jsonl", &row("two?"));
    folder.store(
        "in/ceval/data/law.csv",
        "Question,A,B,C,D,Answer\nthree?,1,2,3,4,B\n",
    );
    folder.store("in/piqa.csv", "goal,sol1,sol2,label\nfour?,up,down,1\n");
    folder.store("in/none.jsonl", "");
    folder.store("in/README.txt", "read me\n");
    folder.store("in/picture.png", "");
    folder.store("alone.jsonl", &row("five?"));
    let set = folder.read(&["in", "alo*.jsonl"], None).unwrap();
    let names: Vec<_> = set
        .benchmarks
        .iter()
        .map(|info| info.name.as_str())
        .collect();
    assert_eq!(
        names,
        ["ceval/law", "mmlu/all/test", "piqa", "none", "alone"]
    );
    let counts: Vec<_> = set.benchmarks.iter().map(|info| info.items).collect();
    assert_eq!(counts, [1, 2, 1, 0, 1]);
    assert_eq!(set.benchmarks[1].sources.len(), 2);
    let items: Vec<_> = (set.items.iter())
        .map(|item| (item.benchmark, item.id.as_str(), item.question.as_str()))
        .collect();
    assert_eq!(
        items,
        [
            (0, "1", "three?"),
            (1, "1", "one?"),
            (1, "2", "two?"),
            (2, "1", "four?"),
            (4, "1", "five?")
        ]
    );
    let skipped: Vec<_> = set
        .skipped_files
        .iter()
        .map(|name| name.rsplit('/').next())
        .collect();
    assert_eq!(skipped, [Some("picture.png"), Some("README.txt")]);
}

#[test]
fn given_fields_replace_presets() {
    let folder = BenchmarkFolder::new();
    let rows = [
        json!({"q": {"body": "one?"}, "a": "red", "b": "blue", "right": "b", "question": "no", "key": 9}),
        json!({"q": {"body": "two?"}, "a": "up", "b": "down", "right": "up", "about": "a tower"}),
        json!({"q": {"body": " "}, "a": "up"}),
        json!({"q": {}, "a": "up"}),
        json!({"q": {"body": ["x"]}}),
    ];
    let lines: String = rows.iter().map(|row| format!("{row}\n")).collect();
    folder.store("a.jsonl", &lines);
    let fields = "question=q.body,choices=a+b,answer=right,passage=about,id=key";
    let set = folder.read(&["a.jsonl"], Some(fields)).unwrap();
    let items: Vec<_> = set.items.iter().map(texts_of_item).collect();
    assert_eq!(
        items,
        [
            item("one?", &["red", "blue"], "blue", ""),
            item("two?", &["up", "down"], "up", "a tower")
        ]
    );
    assert_eq!(set.items[0].id, "9");
    assert_eq!(set.items[1].id, "2");
    let info = &set.benchmarks[0];
    assert_eq!(
        (info.items, info.rejected, &info.presets[..]),
        (2, 3, &["fields"][..])
    );
    let reasons: Vec<_> = info
        .rejected_rows
        .iter()
        .map(|row| row.reason.as_str())
        .collect();
    assert_eq!(
        reasons,
        [
            "the question is empty",
            "the field `q.body`, which --fields names for the question, is missing among `a`, `q`",
            "the field `q.body` is a list, where a text is wanted"
        ]
    );
    assert!(info.rejected_rows[1].place.ends_with("a.jsonl:4"));
    // Inner rows of a harness, and one field with all choices.
    let logged = json!({"doc_id": 3, "doc": {"stem_text": "six?", "opts": ["x", "y"], "gold": 1}});
    folder.store("b.jsonl", &format!("{logged}\n"));
    let set = folder
        .read(
            &["b.jsonl"],
            Some("question=stem_text,choices=doc.opts,answer=gold,id=doc_id"),
        )
        .unwrap();
    assert_eq!(
        texts_of_item(&set.items[0]),
        item("six?", &["x", "y"], "y", "")
    );
    assert_eq!(set.items[0].id, "3");
}

#[test]
fn rows_with_one_answer_each_make_items() {
    let folder = BenchmarkFolder::new();
    let row = |key: &str,
               part: &str,
               number: u64,
               question: &str,
               answer: &str,
               is_correct: Option<bool>| {
        let mut row = json!({"eval_key": key, "config": part, "split": "test", "eval_instance_index": number,
            "question": question, "answer": answer, "doc_id": 1, "fingerprint": "00"});
        if let Some(is_correct) = is_correct {
            row["is_correct"] = is_correct.into();
        }
        format!("{row}\n")
    };
    let first = [
        row("flags", "all", 0, "Which?", "(A)teal", Some(false)),
        row("flags", "all", 0, "Which?", "(B)rust", Some(true)),
        row("flags", "all", 0, "Which?", "B", None),
        row("flags", "all", 1, "How many?", "twelve", None),
        row("flags", "sea", 0, "Where?", "north", None),
    ];
    let second = [
        // The rows of an item are in two files.
        row("flags", "sea", 0, "Where?", "south", None),
        row("flags", "sea", 0, "Where else?", "east", Some(false)),
        row("ropes", "", 0, " ", "x", None),
        row("ropes", "", 1, "Long?", "yes", None),
    ];
    folder.store("flags-1.jsonl.gz", &first.concat());
    folder.store("flags-2.jsonl.gz", &second.concat());
    let set = folder
        .read(&["flags-1.jsonl.gz", "flags-2.jsonl.gz"], None)
        .unwrap();
    let found: Vec<_> = (set.items.iter())
        .map(|item| (item.benchmark, item.id.as_str(), texts_of_item(item)))
        .collect();
    assert_eq!(
        found,
        [
            (0, "0", item("Which?", &["teal", "rust"], "rust", "")),
            (0, "1", item("How many?", &[], "twelve", "")),
            (0, "sea:0", item("Where?", &["north", "south"], "", "")),
            (0, "sea:0#2", item("Where else?", &["east"], "", "")),
            (2, "1", item("Long?", &[], "yes", "")),
        ]
    );
    let names: Vec<_> = set
        .benchmarks
        .iter()
        .map(|info| info.name.as_str())
        .collect();
    assert_eq!(names, ["flags/test", "flags-2", "ropes/test"]);
    assert_eq!(
        (set.benchmarks[0].items, set.benchmarks[0].sources.len()),
        (4, 2)
    );
    assert_eq!(set.benchmarks[1].rejected, 1);
    assert_eq!(set.benchmarks[2].presets, ["decon"]);
}

#[test]
fn some_rows_without_items_are_reported() {
    let folder = BenchmarkFolder::new();
    let mut lines = String::from("{\"question\": \"one?\", \"answer\": \"x\", \"id\": 7}\n");
    lines += "{\"question\": \"\", \"answer\": \"x\"}\n{\"answer\": \"x\"}\nno JSON\n";
    lines += "{\"question\": \"two?\", \"answer\": \"x\", \"id\": 7}\n";
    lines += "{\"question\": \"three?\", \"answer\": \"x\"}\n";
    lines += &"{}\n".repeat(30);
    folder.store("a.jsonl", &lines);
    let set = folder.read(&["a.jsonl"], None).unwrap();
    let ids: Vec<_> = set.items.iter().map(|item| item.id.as_str()).collect();
    assert_eq!(ids, ["7", "7#2", "6"]);
    let info = &set.benchmarks[0];
    assert_eq!(
        (info.items, info.rejected, info.rejected_rows.len()),
        (3, 33, 20)
    );
    let shown: Vec<_> = (info.rejected_rows.iter())
        .map(|row| {
            let place = row.place.rsplit('/').next().unwrap();
            format!("{place}: {}", row.reason)
        })
        .take(4)
        .collect();
    assert_eq!(
        shown,
        [
            "a.jsonl:2: the question is empty",
            "a.jsonl:3: its fields are those of no known benchmark: `answer`",
            "a.jsonl:4: the row is not valid JSON: expected ident at its byte 2",
            "a.jsonl:7: its fields are those of no known benchmark: none",
        ]
    );
}

#[test]
fn files_without_items_are_errors() {
    let folder = BenchmarkFolder::new();
    folder.store(
        "odd.jsonl",
        "\n{\"n\": 1, \"body\": \"A long text\", \"head\": \"short\"}\n",
    );
    folder.store("odd.csv", "n,body\n1,A long text\n");
    folder.store(
        "logged.jsonl",
        "{\"doc_id\": 1, \"doc\": {\"stem_text\": \"six?\"}}\n",
    );
    folder.store(
        "blank.jsonl",
        "{\"question\": \" \"}\n{\"question\": \"\"}\n",
    );
    folder.store("broken.jsonl", "{\n");
    folder.store("empty.jsonl", "");
    folder.store("notes.txt", "a\n");
    folder.store("texts/notes.txt", "a\n");
    folder.store("fine.jsonl", "{\"question\": \"one?\"}\n");
    folder.store("x/y/fine.jsonl", "{\"question\": \"one?\"}\n");
    folder.store("z/y/fine.jsonl", "{\"question\": \"one?\"}\n");
    let cases: [(&[&str], Option<&str>, &str); 11] = [
        (
            &["odd.jsonl"],
            None,
            "odd.jsonl:2: its fields are those of no known benchmark: `body`, `head`, `n`; say which field is the \
             question, for example --fields question=body",
        ),
        (
            &["fine.jsonl", "odd.csv"],
            None,
            "odd.csv:2: its fields are those of no known benchmark: `body`, `n`; say which field is the question, for \
             example --fields question=body",
        ),
        (
            &["logged.jsonl"],
            None,
            "logged.jsonl:1: its fields are those of no known benchmark: `stem_text`; say which field is the question, \
             for example --fields question=doc.stem_text",
        ),
        (
            &["odd.jsonl"],
            Some("question=text"),
            "odd.jsonl:2: the field `text`, which --fields names for the question, is missing among `body`, `head`, \
             `n`; for example, say --fields question=body",
        ),
        (
            &["odd.jsonl"],
            Some("question=body,answer=gold"),
            "no row has the field `gold`, which --fields names for `answer`",
        ),
        (
            &["odd.jsonl"],
            Some("question=body,choices=head"),
            "none of the 1 rows of odd.jsonl is an item of a benchmark; the first, odd.jsonl:2: the field `head` is no \
             list of choices: \"short\"",
        ),
        (
            &["blank.jsonl"],
            None,
            "none of the 2 rows of blank.jsonl is an item of a benchmark; the first, blank.jsonl:1: the question is \
             empty",
        ),
        (
            &["broken.jsonl"],
            None,
            "none of the 1 rows of broken.jsonl is an item of a benchmark; the first, broken.jsonl:1: the row is not \
             valid JSON: EOF while parsing an object at its byte 1",
        ),
        (
            &["empty.jsonl"],
            None,
            "there is no item of a benchmark, because no file has rows: empty.jsonl",
        ),
        (
            &["notes.txt"],
            None,
            "notes.txt is text, a document in each line, whose rows have no fields: give a benchmark as JSONL, a JSON \
             list, CSV, TSV, Parquet or Arrow",
        ),
        (
            &["texts"],
            None,
            "texts holds only plain text, whose rows have no fields",
        ),
    ];
    for (names, fields, expected) in cases {
        assert_eq!(folder.read(names, fields).unwrap_err(), expected);
    }
    let shared = folder.read(&["x/y/fine.jsonl", "z/y/fine.jsonl"], None);
    assert_eq!(
        shared.unwrap_err(),
        "x/y/fine.jsonl and z/y/fine.jsonl would both be the benchmark `y/fine`: give the directory above them, or \
         rename one"
    );
    let missing = folder.read(&["missing.jsonl"], None).unwrap_err();
    assert!(
        missing.starts_with("cannot open missing.jsonl"),
        "{missing}"
    );
}
