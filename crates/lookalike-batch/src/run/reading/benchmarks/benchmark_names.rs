//! Names of benchmarks, made from the paths of their files.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use lookalike_io::error::{Error, Result};
use lookalike_io::source::{CompressionKind, compression_by_extension, format_by_extension};

/// Directory names that say nothing about a benchmark.
const PLAIN_DIRECTORY: &str = "data";

/// Returns the name of the benchmark in a file, given its path below the directory that was named, or its file name.
///
/// The name is the path without its extensions, without the number of a part of a larger file
/// (`-00000-of-00003`), and without components named `data`:
///
/// ```text
/// mmlu/all/test-00000-of-00001.parquet  mmlu/all/test
/// gsm8k_test.jsonl.gz                   gsm8k_test
/// arc/data/test.csv                     arc/test
/// ```
pub(super) fn name_of_path(below: &Path) -> String {
    let mut parts: Vec<String> = below
        .components()
        .filter(|part| matches!(part, Component::Normal(_)))
        .map(|part| part.as_os_str().to_string_lossy().into_owned())
        .collect();
    let Some(file) = parts.pop() else {
        return String::new();
    };
    if file == "-" {
        return "stdin".to_owned();
    }
    parts.retain(|part| part != PLAIN_DIRECTORY);
    let stem = without_extensions(&file);
    parts.push(without_part_number(&stem).to_owned());
    parts.join("/")
}

/// Removes the extension of the compression and that of the format.
fn without_extensions(file: &str) -> String {
    let mut path = PathBuf::from(file);
    if compression_by_extension(&path) != CompressionKind::None {
        path.set_extension("");
    }
    if format_by_extension(&path).is_some() {
        path.set_extension("");
    }
    path.to_string_lossy().into_owned()
}

/// Removes `-00000-of-00003`, and a hash in hexadecimal digits after it.
fn without_part_number(stem: &str) -> &str {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_hash =
        |text: &str| text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let Some((before, after)) = stem.rsplit_once("-of-") else {
        return stem;
    };
    let count = match after.split_once('-') {
        Some((count, hash)) if is_hash(hash) => count,
        _ => after,
    };
    match before.rsplit_once('-') {
        Some((name, number)) if is_number(number) && is_number(count) && !name.is_empty() => name,
        _ => stem,
    }
}

/// The file of a benchmark before names are compared.
#[derive(Debug, Clone)]
pub(super) struct NamedFile {
    /// Index of the argument that named the file, or a directory above it.
    pub(super) argument: usize,
    /// The path or URL.
    pub(super) path: PathBuf,
    /// The path below the argument, or the file name.
    pub(super) below: PathBuf,
}

/// Returns a name for each file. Files of one argument share a name if they are parts of one benchmark. If files of
/// different arguments would share one, the directory that holds the file or is the argument comes before it.
///
/// # Errors
/// If files of different arguments still have the same name.
pub(super) fn name_files(files: &[NamedFile]) -> Result<Vec<String>> {
    let mut names: Vec<String> = files.iter().map(|file| name_of_path(&file.below)).collect();
    let rivals = find_rivals(files, &names);
    for at in 0..files.len() {
        if !rivals.contains_key(&names[at]) {
            continue;
        }
        let levels = files[at].below.components().count();
        let directory = files[at].path.ancestors().nth(levels);
        if let Some(directory) = directory.and_then(Path::file_name) {
            names[at] = format!("{}/{}", directory.to_string_lossy(), names[at]);
        }
    }
    match find_rivals(files, &names).pop_first() {
        None => Ok(names),
        Some((name, [first, other])) => Err(Error::usage_error(format!(
            "{} and {} would both be the benchmark `{name}`: give the directory above them, or rename one",
            files[first].path.display(),
            files[other].path.display(),
        ))),
    }
}

/// Returns the names that files of different arguments share, each with the first two such files.
fn find_rivals(files: &[NamedFile], names: &[String]) -> BTreeMap<String, [usize; 2]> {
    let mut first_files: BTreeMap<&str, usize> = BTreeMap::new();
    let mut rivals = BTreeMap::new();
    for (at, name) in names.iter().enumerate() {
        let first = *first_files.entry(name).or_insert(at);
        if files[first].argument != files[at].argument {
            rivals.entry(name.clone()).or_insert([first, at]);
        }
    }
    rivals
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_paths() {
        for (below, expected) in [
            ("mmlu/all/test-00000-of-00001.parquet", "mmlu/all/test"),
            ("gsm8k_test.jsonl", "gsm8k_test"),
            ("gsm8k/test.jsonl.gz", "gsm8k/test"),
            ("arc/data/test.csv.zst", "arc/test"),
            (
                "data/train-00001-of-00002-0123456789abcdef.parquet",
                "train",
            ),
            ("v1.5/dev.v2.tsv", "v1.5/dev.v2"),
            ("one-of-us.json", "one-of-us"),
            ("-00000-of-00001.parquet", "-00000-of-00001"),
            ("-", "stdin"),
        ] {
            assert_eq!(name_of_path(Path::new(below)), expected, "{below}");
        }
    }

    #[test]
    fn shared_names_are_told_apart_by_directories() {
        let file = |argument, path: &str, below: &str| NamedFile {
            argument,
            path: path.into(),
            below: below.into(),
        };
        let names = |files: &[NamedFile]| name_files(files).map_err(|error| error.to_string());
        let parts = [
            file(0, "in/a-00000-of-00002.parquet", "a-00000-of-00002.parquet"),
            file(0, "in/a-00001-of-00002.parquet", "a-00001-of-00002.parquet"),
        ];
        assert_eq!(names(&parts).unwrap(), ["a", "a"]);
        let apart = [
            file(0, "x/arc/main/test.csv", "main/test.csv"),
            file(1, "x/gsm8k/main/test.csv", "main/test.csv"),
            file(2, "x/piqa/dev.csv", "dev.csv"),
        ];
        assert_eq!(
            names(&apart).unwrap(),
            ["arc/main/test", "gsm8k/main/test", "dev"]
        );
        let same = [
            file(0, "a/b/test.csv", "test.csv"),
            file(1, "c/b/test.csv", "test.csv"),
        ];
        assert_eq!(
            names(&same).unwrap_err(),
            "a/b/test.csv and c/b/test.csv would both be the benchmark `b/test`: give the directory above them, or \
             rename one"
        );
    }
}
