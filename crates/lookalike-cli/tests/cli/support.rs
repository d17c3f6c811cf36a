//! Directories, files and runs of the program.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, StringArray};
use lookalike_io::source::to_large_strings;
use parquet::arrow::ArrowWriter;
use serde_json::Value;
use tempfile::TempDir;

/// The directory of a test, in which the program runs.
pub(crate) struct Place(TempDir);

/// The result of a run of the program.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) out: Vec<u8>,
    pub(crate) err: String,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// Runs a script in a file system in memory of `bytes`, mounted at `small`. Returns what it printed and its
    /// errors, or `None` if the system lets a test have none.
    #[expect(clippy::print_stderr, reason = "a test says that it is skipped")]
    pub(crate) fn run_on_small_disk(&self, bytes: usize, script: &str) -> Option<(String, String)> {
        self.write("small/.keep", "");
        let mounted =
            format!("mount -t tmpfs -o size={bytes} none small && cd small || exit 77\n{script}");
        let ran = Command::new("unshare")
            .args(["--map-root-user", "--mount", "sh", "-c", &mounted])
            .current_dir(self.path(""))
            .output()
            .ok()?;
        let [said, error] =
            [ran.stdout, ran.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        if !said.contains("code ") {
            eprintln!("skipped: no file system for a test here");
            return None;
        }
        assert!(error.contains("No space left"), "{error}");
        Some((said, error))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        String::from_utf8(self.bytes(name)).unwrap()
    }

    pub(crate) fn bytes(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.path(name).exists()
    }

    /// Returns the names of everything in the directory, including hidden files.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// Returns the program with arguments that are separated by spaces; `%20` is a space within an argument. Runs that say
    /// nothing of forms learn none, so that the definition by similarity alone holds for them.
    pub(crate) fn command(&self, line: &str) -> Command {
        let compares = line.starts_with("dedup ") || line.starts_with("pairs ");
        let mut command = self.command_as_given(line);
        if compares && !line.contains("--forms") {
            command.args(["--forms", "off"]);
        }
        command
    }

    /// Returns the program with exactly these arguments; see [`command`](Self::command).
    pub(crate) fn command_as_given(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lookalike"));
        command.args(line.split_whitespace().map(|word| word.replace("%20", " ")));
        command
            .current_dir(self.0.path())
            .env_remove("NO_COLOR")
            .envs(["LC_ALL", "LC_MESSAGES", "LANG"].map(|name| (name, "C")))
            .env("COLUMNS", "100");
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub(crate) fn run(&self, line: &str) -> Ran {
        Ran::from(self.command(line).output().unwrap())
    }

    pub(crate) fn spawn(&self, line: &str) -> Child {
        self.command(line).stdin(Stdio::piped()).spawn().unwrap()
    }

    /// Runs the program and expects success. Returns the peak memory in bytes, except for some milliseconds
    /// before the end.
    pub(crate) fn peak_of(&self, line: &str) -> u64 {
        self.run_and_watch(line).1
    }

    /// Runs the program with `--json` and expects success. Returns the summary and what [`peak_of`](Self::peak_of) does.
    pub(crate) fn summary_and_peak(&self, line: &str) -> (serde_json::Value, u64) {
        let (ran, peak) = self.run_and_watch(&format!("{line} --json"));
        (serde_json::from_slice(&ran.out).unwrap(), peak)
    }

    /// Runs the program, which prints less than a pipe holds, and watches its memory.
    fn run_and_watch(&self, line: &str) -> (Ran, u64) {
        let mut child = self.spawn(line);
        let mut most = 0;
        while child.try_wait().unwrap().is_none() {
            most = most.max(peak_memory(child.id()).unwrap_or(0));
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        let ran = Ran::from(child.wait_with_output().unwrap());
        assert_eq!(ran.code, Some(0), "{line}\n{}", ran.err);
        (ran, most)
    }

    pub(crate) fn run_with(&self, line: &str, input: &[u8]) -> Ran {
        let mut child = self.spawn(line);
        let mut stdin = child.stdin.take().unwrap();
        std::thread::scope(|scope| {
            // A program that refuses its arguments does not read its input.
            scope.spawn(move || drop(stdin.write_all(input)));
            Ran::from(child.wait_with_output().unwrap())
        })
    }

    /// Runs the program and expects success without bad rows.
    pub(crate) fn ok(&self, line: &str) -> Ran {
        let ran = self.run(line);
        assert_eq!(ran.code, Some(0), "{line}\n{}", ran.err);
        ran
    }

    /// Runs the program with exactly these arguments, and expects success; see [`command`](Self::command).
    pub(crate) fn ok_as_given(&self, line: &str) -> Ran {
        let ran = self.run_as_given(line);
        assert_eq!(ran.code, Some(0), "{line}\n{}", ran.err);
        ran
    }

    /// Runs the program with exactly these arguments; see [`command`](Self::command).
    pub(crate) fn run_as_given(&self, line: &str) -> Ran {
        Ran::from(self.command_as_given(line).output().unwrap())
    }

    /// Runs the program and expects a refusal that contains all of `words`, and nothing on standard output.
    pub(crate) fn refused(&self, line: &str, words: &[&str]) -> Ran {
        let ran = self.run(line);
        assert_eq!(ran.code, Some(2), "{line}\n{}", ran.err);
        assert!(ran.out.is_empty(), "{line}");
        let said = ran.err.split_whitespace().collect::<Vec<_>>().join(" ");
        for word in words {
            assert!(said.contains(word), "{line}: no '{word}' in: {said}");
        }
        assert!(
            !said.contains("panicked") && !said.contains("mistake in the program"),
            "{said}"
        );
        ran
    }

    /// Returns the summary of a command with `--json`.
    pub(crate) fn summary(&self, line: &str) -> Value {
        let ran = self.run(&format!("{line} --json"));
        assert!(matches!(ran.code, Some(0 | 1)), "{line}\n{}", ran.err);
        serde_json::from_slice(&ran.out).unwrap_or_else(|error| panic!("{line}: {error}"))
    }

    /// Returns the ids of the rows of a JSONL file.
    pub(crate) fn ids(&self, name: &str) -> Vec<String> {
        let ids = self.read(name);
        ids.lines()
            .map(|row| text_of(&serde_json::from_str::<Value>(row).unwrap()["id"]))
            .collect()
    }

    /// Returns the rows of a TSV file after its header.
    pub(crate) fn table(&self, name: &str) -> Vec<Vec<String>> {
        rows(&self.read(name))
    }
}

impl Ran {
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.out).unwrap()
    }
}

impl From<std::process::Output> for Ran {
    fn from(output: std::process::Output) -> Self {
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        Self {
            code: output.status.code(),
            out: output.stdout,
            err,
        }
    }
}

/// Returns the peak memory of a process in bytes; `None` once it has ended.
pub(crate) fn peak_memory(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let peak = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes = peak.trim().strip_suffix(" kB")?;
    Some(kibibytes.parse::<u64>().ok()? << 10)
}

/// Returns the rows of a TSV table after its header.
pub(crate) fn rows(table: &str) -> Vec<Vec<String>> {
    table
        .lines()
        .skip(1)
        .map(|row| row.split('\t').map(str::to_owned).collect())
        .collect()
}

fn text_of(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

/// Returns a row of JSONL.
pub(crate) fn row(id: &str, text: &str) -> String {
    format!("{}\n", serde_json::json!({ "id": id, "text": text }))
}

/// Returns rows of JSONL.
pub(crate) fn jsonl<'a>(documents: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    documents
        .into_iter()
        .map(|(id, text)| row(id, text))
        .collect()
}

/// Writes columns of strings as Parquet.
pub(crate) fn write_parquet(path: &Path, columns: &[(&str, Vec<&str>)]) {
    let arrays = columns.iter().map(|(name, values)| {
        (
            *name,
            Arc::new(StringArray::from(values.clone())) as ArrayRef,
        )
    });
    let batch = RecordBatch::try_from_iter(arrays).unwrap();
    let file = fs::File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

/// Formats a value: strings, numbers and booleans as they are, all others in Rust's notation.
fn display_value(array: &ArrayRef, row: usize) -> String {
    if let Some(flags) = array.as_boolean_opt() {
        return flags.value(row).to_string();
    }
    let value = array.slice(row, 1);
    match to_large_strings(&value) {
        Ok(string) => string.value(0).to_owned(),
        Err(_) => format!("{value:?}"),
    }
}

/// Reads a column from Parquet.
pub(crate) fn read_parquet(path: &Path, column: &str) -> Vec<String> {
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    let file = fs::File::open(path).unwrap();
    let reader = ParquetRecordBatchReaderBuilder::try_new(file)
        .unwrap()
        .build()
        .unwrap();
    let mut values = Vec::new();
    for batch in reader {
        let batch = batch.unwrap();
        let array = batch
            .column_by_name(column)
            .unwrap_or_else(|| panic!("no {column}"));
        values.extend((0..array.len()).map(|row| display_value(array, row)));
    }
    values
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(crate) fn gunzip(bytes: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    flate2::read::MultiGzDecoder::new(bytes)
        .read_to_end(&mut plain)
        .unwrap();
    plain
}

pub(crate) fn bzip2(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ::bzip2::write::BzEncoder::new(Vec::new(), ::bzip2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(crate) fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 6);
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(crate) fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).unwrap()
}

pub(crate) fn unzstd(bytes: &[u8]) -> Vec<u8> {
    zstd::decode_all(bytes).unwrap()
}

/// A small pseudo-random number generator, the same on every machine.
pub(crate) struct Numbers(u64);

impl Numbers {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns a number below `limit`.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % limit as u64) as usize
    }

    /// Returns a text of this many words.
    pub(crate) fn text(&mut self, words: usize) -> String {
        let words: Vec<_> = (0..words)
            .map(|_| format!("word{}", self.below(5000)))
            .collect();
        words.join(" ")
    }

    /// Returns the text with this many words replaced.
    pub(crate) fn edited(&mut self, text: &str, edits: usize) -> String {
        let mut words: Vec<_> = text.split(' ').map(str::to_owned).collect();
        for _ in 0..edits {
            let at = self.below(words.len());
            words[at] = format!("other{}", self.below(5000));
        }
        words.join(" ")
    }

    /// Returns short and long documents with many near-duplicates at every similarity.
    pub(crate) fn corpus(&mut self, documents: usize) -> Vec<(String, String)> {
        let mut texts: Vec<String> = Vec::new();
        for _ in 0..documents {
            let length = [3, 8, 20, 60, 70, 120, 300][self.below(7)];
            let text = if texts.is_empty() || self.below(3) == 0 {
                self.text(length)
            } else {
                let origin = self.below(texts.len());
                let edits = self.below(texts[origin].split(' ').count() / 12 + 2);
                self.edited(&texts[origin].clone(), edits)
            };
            texts.push(text);
        }
        (0..).map(|n| format!("d{n}")).zip(texts).collect()
    }
}

/// Returns documents as JSONL.
pub(crate) fn corpus_jsonl(corpus: &[(String, String)]) -> String {
    jsonl(corpus.iter().map(|(id, text)| (&id[..], &text[..])))
}
