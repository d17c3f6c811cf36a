//! Checks that index files of any bytes are read correctly or refused, and never cause a crash. A
//! search never prints a match that does not exist.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use lookalike::passages::PassageSettings;
use lookalike::plan::{EditUnit, SimilarityMeasure};
use lookalike::{Recipe, Threshold};
use lookalike_batch::index::{
    self, BuildSettings, IndexManifest, IndexReadOptions, ListedMatches, RowContent,
    SearchCandidates, SearchSettings, TextCheck,
};
use lookalike_batch::run::SilentProgress;
use lookalike_io::sink::OutputTarget;
use lookalike_io::source::ReadOptions;

/// Panics if the bytes violate that rule.
///
/// The first byte chooses the meaning of the others: 0 is a manifest, 1–3 is the body of a manifest
/// under a correct checksum, and any other value is a list of changes to a file of an existing
/// index. A change has three bytes: two for the place, and one that is XORed with the byte there.
/// If the third byte is 0, the file is cut at the place.
pub(crate) fn check(bytes: &[u8]) {
    let Some((&choice, rest)) = bytes.split_first() else {
        return;
    };
    match choice {
        0 => manifest(rest),
        1..4 => {
            let sum = lookalike::value_hash(rest);
            let first = format!("lookalike-library 3 {sum:016x}\n");
            manifest(&[first.as_bytes(), rest].concat());
        }
        _ => changed(usize::from(choice), rest),
    }
}

fn manifest(bytes: &[u8]) {
    let path = Path::new("manifest");
    if let Ok(manifest) = IndexManifest::parse_manifest(bytes, path) {
        let text = manifest.to_text();
        let again = IndexManifest::parse_manifest(text.as_bytes(), path)
            .expect("its own text is a manifest");
        assert_eq!(again, manifest);
        assert_eq!(again.to_text(), text);
    }
}

struct Sample {
    /// Name and bytes of every file.
    files: Vec<(String, Vec<u8>)>,
    /// Matches of all rows in the index, as lines.
    matches: BTreeSet<String>,
    rows: PathBuf,
    _place: tempfile::TempDir,
}

fn sample() -> &'static Sample {
    static SAMPLE: OnceLock<Sample> = OnceLock::new();
    SAMPLE.get_or_init(|| {
        let place = tempfile::tempdir().expect("a temporary directory can be made");
        let rows = place.path().join("in.jsonl");
        let text: String = (0..200)
            .map(|row| {
                let word = row % 40;
                // Some texts are too short for a fingerprint.
                let text = match row % 20 {
                    7 => format!("w{word}"),
                    _ => format!("one two w{word} three four {word}"),
                };
                format!("{{\"id\":\"d{row}\",\"text\":\"{text}\"}}\n")
            })
            .collect();
        std::fs::write(&rows, text).expect("a temporary file can be written");
        let library = place.path().join("lib");
        let settings = BuildSettings {
            recipe: Some(Recipe::default()),
            bits: 64,
            distance: 3,
            plan: "auto".into(),
            index_memory: None,
            texts: true,
            distance_only: false,
            passages: Some(PassageSettings::default()),
            replace: false,
        };
        let inputs = [rows.clone()];
        index::build_index(
            &library,
            &inputs,
            &settings,
            &reading(),
            None,
            &SilentProgress,
        )
        .expect("the sample is good");
        let gone: Vec<_> = (0..30).map(|row| format!("d{}", row * 3)).collect();
        index::remove_from_index(&library, &gone, 1, &SilentProgress).expect("the sample is good");
        let matches = search(&library, &rows, &place.path().join("out.tsv"))
            .expect("the sample is good")
            .lines()
            .map(str::to_owned)
            .collect();
        let files = std::fs::read_dir(&library)
            .expect("it was made")
            .map(|entry| entry.expect("it was made").file_name())
            .map(|name| name.into_string().expect("names are ASCII"))
            .filter(|name| name != "lock");
        let mut files: Vec<_> = files
            .map(|name| {
                let bytes = std::fs::read(library.join(&name)).expect("it was made");
                (name, bytes)
            })
            .collect();
        files.sort();
        Sample {
            files,
            matches,
            rows,
            _place: place,
        }
    })
}

fn reading() -> IndexReadOptions {
    IndexReadOptions {
        content: RowContent::Documents,
        read: ReadOptions::default(),
        strict: true,
        threads: 1,
        memory: None,
    }
}

fn search(library: &Path, rows: &Path, out: &Path) -> lookalike_io::Result<String> {
    let settings = SearchSettings {
        distance: None,
        which: ListedMatches::All,
        limit: None,
        candidates: SearchCandidates::Distance,
        check: Some(TextCheck {
            measure: SimilarityMeasure::Sketch,
            unit: EditUnit::default(),
            threshold: Threshold::DEFAULT,
        }),
        recipe: None,
    };
    let output = OutputTarget::Path(out.to_path_buf());
    let inputs = [rows.to_path_buf()];
    index::search_index(
        library,
        &inputs,
        &settings,
        &reading(),
        &output,
        None,
        &SilentProgress,
    )?;
    Ok(std::fs::read_to_string(out).expect("it was written"))
}

fn changed(choice: usize, changes: &[u8]) {
    let sample = sample();
    let place = tempfile::tempdir().expect("a temporary directory can be made");
    let library = place.path().join("lib");
    std::fs::create_dir(&library).expect("a directory can be made");
    let chosen = choice % sample.files.len();
    let mut same = true;
    for (at, (name, bytes)) in sample.files.iter().enumerate() {
        let mut written = bytes.clone();
        for change in changes.chunks_exact(3).filter(|_| at == chosen) {
            if written.is_empty() {
                break;
            }
            let to = usize::from(change[0]) << 8 | usize::from(change[1]);
            let to = to % written.len();
            match change[2] {
                0 => written.truncate(to),
                bits => written[to] ^= bits,
            }
        }
        same &= written == *bytes;
        std::fs::write(library.join(name), written).expect("a file can be written");
    }
    let verified = index::verify_index(&library, 1, &SilentProgress);
    assert_eq!(
        verified.is_ok(),
        same,
        "{changes:?} of {}",
        sample.files[chosen].0
    );
    if let Ok(found) = search(&library, &sample.rows, &place.path().join("out.tsv")) {
        let found: BTreeSet<_> = found.lines().map(str::to_owned).collect();
        assert_eq!(found, sample.matches);
    }
}
