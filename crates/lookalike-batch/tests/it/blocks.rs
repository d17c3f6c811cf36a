//! Complete runs give the same outputs for every block size.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use lookalike::dedup::CopyPairs;
use lookalike_batch::run::{
    DedupOutputs, PairsOutputs, RunInputs, RunSettings, SilentProgress, find_pairs, run_dedup,
};
use lookalike_io::sink::OutputTarget;
use lookalike_io::source::RowSource;
use tempfile::{TempDir, tempdir};

/// Long and short texts, of which every third resembles the one before it, and one bad row.
fn corpus() -> Vec<String> {
    let word = |seed: u64| format!("{:x}", lookalike::value_hash(&seed.to_le_bytes()) >> 44);
    let text = |document: u64| {
        let about = document - u64::from(document % 3 == 2);
        let words = (0..8 + about % 60).map(|at| word(1000 * about + at));
        let mut words: Vec<_> = words.collect();
        if about != document {
            words[3] = "另一个".to_owned();
        }
        words.join(" ")
    };
    let mut rows: Vec<_> = (0..400)
        .map(|at| format!("{{\"id\":\"d{at}\",\"text\":\"{}\"}}\n", text(at)))
        .collect();
    rows.insert(170, "{\"id\":\"bad\"}\n".to_owned());
    rows
}

/// Returns all files that a run writes with this block size.
fn outputs(place: &TempDir, inputs: &[PathBuf], block_bytes: usize) -> Vec<Vec<u8>> {
    let mut settings = RunSettings {
        threads: 3,
        ..RunSettings::default()
    };
    settings.read.block_bytes = block_bytes;
    let inputs = RunInputs {
        documents: RowSource::Paths(inputs.to_vec()),
        against: RowSource::default(),
    };
    let names = [
        "kept",
        "removed.tsv",
        "clusters.tsv",
        "bad",
        "all",
        "pairs.tsv",
    ];
    let [kept, removed, clusters, bad, all, found] = names.map(|name| place.path().join(name));
    let output = |path: &PathBuf| OutputTarget::Path(path.clone());
    let whole = DedupOutputs {
        kept: Some(output(&kept)),
        removed: Some(output(&removed)),
        clusters: Some(output(&clusters)),
        components: true,
        rejected: Some(output(&bad)),
        ..DedupOutputs::default()
    };
    let summary = run_dedup(&inputs, &settings, &whole, &SilentProgress).unwrap();
    assert_eq!((summary.documents, summary.run.rejected), (400, 1));
    assert!(summary.removed > 100, "{}", summary.removed);
    let annotated = DedupOutputs {
        kept: Some(output(&all)),
        annotate: true,
        ..DedupOutputs::default()
    };
    run_dedup(&inputs, &settings, &annotated, &SilentProgress).unwrap();
    let paired = PairsOutputs {
        pairs: Some(output(&found)),
        sample: None,
        copies: CopyPairs::All,
        apart: false,
        rejected: None,
        report: None,
    };
    find_pairs(&inputs, &settings, &paired, &SilentProgress).unwrap();
    let written = [kept, removed, clusters, bad, all, found];
    written.iter().map(|path| fs::read(path).unwrap()).collect()
}

fn gzip_in_two_members(bytes: &[u8]) -> Vec<u8> {
    let (first, second) = bytes.split_at(bytes.len() / 2);
    let members = [first, second].map(|part| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(part).unwrap();
        encoder.finish().unwrap()
    });
    members.concat()
}

/// The bytes of every output are the same for any block size, even if most rows are longer than a
/// block.
#[test]
fn block_size_changes_no_result() {
    let place = tempdir().unwrap();
    let rows = corpus();
    let (first, second) = rows.split_at(250);
    let paths = ["a.jsonl", "b.jsonl.gz"].map(|name| place.path().join(name));
    fs::write(&paths[0], first.concat()).unwrap();
    fs::write(&paths[1], gzip_in_two_members(second.concat().as_bytes())).unwrap();
    let whole = outputs(&place, &paths, 1 << 20);
    assert!(whole.iter().all(|bytes| bytes.len() > 10));
    for block_bytes in [64, 1000, 4096, 30_000] {
        assert!(
            outputs(&place, &paths, block_bytes) == whole,
            "{block_bytes}"
        );
    }
}
