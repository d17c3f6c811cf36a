//! Indexes of documents are the same files in any memory.

use std::collections::BTreeMap;
use std::path::Path;

use lookalike::Recipe;
use lookalike::passages::PassageSettings;
use lookalike_batch::index::{
    AddSummary, BuildSettings, IndexReadOptions, RowContent, add_to_index, build_index,
    verify_index,
};
use lookalike_batch::run::{MemoryLimit, SilentProgress};
use lookalike_io::source::{IdField, ReadOptions};
use tempfile::tempdir;

/// Documents of 1 to 300 words, some of them empty or too short, and some ids twice.
fn write_corpus(path: &Path, seed: u64, documents: u64) {
    let hash = |at: u64| lookalike::value_hash(&(seed << 40 | at).to_le_bytes());
    let mut rows = String::new();
    for document in 0..documents {
        let word = |at: u64| format!("{:x}", hash(document * 1000 + at) >> 50);
        let count = match document % 17 {
            0 => 0,
            1 => 1,
            _ => hash(document) % 300,
        };
        let words: Vec<String> = (0..count).map(word).collect();
        let id = format!("{seed}-{}", if document % 50 == 3 { 3 } else { document });
        rows += &format!(
            "{}\n",
            serde_json::json!({ "id": id, "text": words.join(" ") })
        );
    }
    std::fs::write(path, rows).unwrap();
}

fn build_settings(texts: bool, distance_only: bool, finds_passages: bool) -> BuildSettings {
    BuildSettings {
        recipe: Some(Recipe::default()),
        bits: 64,
        distance: 3,
        plan: "auto".to_owned(),
        index_memory: None,
        texts,
        distance_only,
        passages: finds_passages.then(|| PassageSettings::new(12).unwrap()),
        replace: false,
    }
}

fn read_options(numbered: bool, memory: Option<MemoryLimit>) -> IndexReadOptions {
    let mut read = ReadOptions {
        block_bytes: 64 << 10,
        ..ReadOptions::default()
    };
    if numbered {
        read.fields.id = IdField::RowNumber;
    }
    IndexReadOptions {
        content: RowContent::Documents,
        read,
        strict: false,
        threads: 2,
        memory,
    }
}

/// Returns the files of an index by their names.
fn files(index_path: &Path) -> BTreeMap<String, Vec<u8>> {
    let files = std::fs::read_dir(index_path).unwrap();
    let named = files.map(|file| {
        let file = file.unwrap();
        let name = file.file_name().into_string().unwrap();
        (name, std::fs::read(file.path()).unwrap())
    });
    named.filter(|(name, _)| name != "lock").collect()
}

/// A limit of which so many bytes are for fingerprints, postings and columns.
fn working_set(bytes: u64) -> Option<MemoryLimit> {
    Some(MemoryLimit {
        bytes: 1 << 40,
        is_set: true,
        working_set: Some(bytes),
    })
}

#[test]
fn indexes_are_the_same_files_in_any_memory() {
    let directory = tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let inputs = [path("a.jsonl"), path("b.jsonl"), path("c.jsonl")];
    for (seed, (input, documents)) in (1..).zip(inputs.iter().zip([3000, 2500, 40])) {
        write_corpus(input, seed, documents);
    }
    // The first addition is merged with the rows before it, and the second one is not.
    let make =
        |name: &str, settings: &BuildSettings, reading: &IndexReadOptions| -> [AddSummary; 3] {
            let (index_path, silent) = (path(name), &SilentProgress);
            let [first, second, third] = inputs.each_ref().map(std::slice::from_ref);
            [
                build_index(&index_path, first, settings, reading, None, silent).unwrap(),
                add_to_index(&index_path, second, reading, None, silent).unwrap(),
                add_to_index(&index_path, third, reading, None, silent).unwrap(),
            ]
        };
    for (number, settings) in [
        build_settings(false, false, false),
        build_settings(true, false, false),
        build_settings(true, true, true),
    ]
    .iter()
    .enumerate()
    {
        let numbered = number == 1;
        let free = format!("free-{number}");
        let unbounded = make(&free, settings, &read_options(numbered, None));
        assert!(unbounded.iter().all(|summary| summary.spilled_bytes == 0));
        assert_eq!(unbounded[2].index.segments.len(), 2, "{unbounded:?}");
        let expected = files(&path(&free));
        for bytes in [4 << 20, 1 << 30] {
            let name = format!("bounded-{number}-{bytes}");
            let reading = read_options(numbered, working_set(bytes));
            let bounded = make(&name, settings, &reading);
            let spilled = bounded[0].spilled_bytes;
            assert!(
                if bytes == 1 << 30 {
                    spilled == 0
                } else {
                    spilled > 20_000
                },
                "{spilled}"
            );
            assert_eq!(
                bounded.each_ref().map(|summary| summary.repeated_ids),
                unbounded.each_ref().map(|summary| summary.repeated_ids)
            );
            assert!(files(&path(&name)) == expected, "{settings:?} {bytes}");
        }
        verify_index(&path(&free), 2, &SilentProgress).unwrap();
    }
}
