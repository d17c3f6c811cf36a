//! Runs that several processes share give the results of one process, byte for byte.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use lookalike_batch::run::{
    DedupOutputs, DedupSummary, RunInputs, RunSettings, ShardNumber, ShardOutcome, ShardStage,
    SilentProgress, WorkSettings, read_shards_status, run_dedup, run_shard,
};
use lookalike_io::sink::OutputTarget;
use tempfile::{TempDir, tempdir};

use crate::out_of_core::{all_settings, write_corpus};

/// A run over several files.
struct SharedRun {
    directory: TempDir,
    inputs: RunInputs,
    settings: RunSettings,
    annotates: bool,
    /// `true` if each input has its own output.
    mirrors: bool,
}

impl SharedRun {
    fn new(settings: RunSettings, number: usize) -> Self {
        let directory = tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let seed = number as u64 * 10;
        let files: Vec<PathBuf> = [300, 7, 200, 150]
            .into_iter()
            .zip(["a.jsonl", "b.jsonl", "c.jsonl", "d.jsonl"])
            .enumerate()
            .map(|(at, (documents, name))| {
                write_corpus(&path(name), seed + at as u64, documents);
                path(name)
            })
            .collect();
        let (documents, against) = match number % 3 {
            2 => (files[..2].to_vec(), files[2..].to_vec()),
            _ => (files, Vec::new()),
        };
        let inputs = RunInputs {
            documents: documents.into(),
            against: against.into(),
        };
        Self {
            inputs,
            settings,
            annotates: number % 5 == 4,
            mirrors: number % 2 == 1,
            directory,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn outputs(&self, name: &str) -> DedupOutputs {
        let output = |what: &str| Some(OutputTarget::Path(self.path(&format!("{name}-{what}"))));
        DedupOutputs {
            kept: match self.mirrors {
                true => output("kept/"),
                false => output("kept.jsonl"),
            },
            annotate: self.annotates,
            removed: output("removed.tsv"),
            clusters: output("clusters.tsv"),
            rejected: output("rejected"),
            ..DedupOutputs::default()
        }
    }

    fn run_shard(&self, text: &str) -> Result<ShardOutcome, lookalike_io::error::Error> {
        let work = WorkSettings {
            directory: self.path("work"),
            resume: true,
        };
        let shard = ShardNumber::parse(text).unwrap();
        let outputs = self.outputs("shared");
        run_shard(
            &self.inputs,
            &self.settings,
            &outputs,
            (&work, shard),
            &SilentProgress,
        )
    }

    /// Runs all shards in the given order, again and again until one of them finishes the run.
    fn run_all(&self, order: &[u32], count: u32) -> DedupSummary {
        let rounds = 3 + u32::from(self.mirrors);
        for _ in 0..rounds {
            for index in order {
                match self.run_shard(&format!("{index}/{count}")).unwrap() {
                    ShardOutcome::Finished(summary) => return *summary,
                    ShardOutcome::Waiting { missing, .. } => assert!(!missing.is_empty()),
                    ShardOutcome::WrittenByAnother => panic!("there is no other process"),
                }
            }
        }
        panic!("{rounds} rounds of all shards did not finish the run")
    }

    fn assert_outputs_are_equal(&self, what: &str) {
        let kept: &[&str] = match self.mirrors {
            true => &["kept/a.jsonl", "kept/b.jsonl"],
            false => &["kept.jsonl"],
        };
        for output in ["removed.tsv", "clusters.tsv", "rejected"]
            .iter()
            .chain(kept)
        {
            let bytes = |name: &str| read(&self.path(&format!("{name}-{output}")));
            assert!(bytes("alone") == bytes("shared"), "{output}: {what}");
        }
        if self.mirrors {
            let names = |name: &str| {
                let entries = std::fs::read_dir(self.path(name)).unwrap();
                entries
                    .map(|it| it.unwrap().file_name())
                    .collect::<BTreeSet<_>>()
            };
            assert_eq!(names("alone-kept"), names("shared-kept"), "{what}");
        }
    }
}

fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap()
}

#[test]
fn verdicts_are_those_of_one_process() {
    let orders: [&[u32]; 4] = [&[1], &[2, 1], &[3, 1, 2], &[5, 2, 7, 1, 6, 3, 4]];
    for (number, settings) in all_settings().into_iter().enumerate() {
        let run = SharedRun::new(settings, number);
        let alone = run_dedup(
            &run.inputs,
            &run.settings,
            &run.outputs("alone"),
            &SilentProgress,
        )
        .unwrap();
        assert!(alone.removed > 10, "{}", alone.removed);
        let order = orders[number % orders.len()];
        let shared = run.run_all(order, order.len() as u32);
        let what = format!("{:?} {order:?}", run.settings.matching);
        run.assert_outputs_are_equal(&what);
        let shown = |summary: &DedupSummary| {
            let mut json = serde_json::to_value(summary).unwrap();
            for field in ["seconds", "stages", "spilled"] {
                json.as_object_mut().unwrap().remove(field);
            }
            json
        };
        assert_eq!(shown(&alone), shown(&shared), "{what}");
    }
}

fn default_run(number: usize) -> SharedRun {
    let mut settings = RunSettings::default();
    settings.read.block_bytes = 8 << 10;
    SharedRun::new(settings, number)
}

#[test]
fn shards_that_come_twice_change_nothing() {
    let run = default_run(0);
    let outputs = run.outputs("alone");
    run_dedup(&run.inputs, &run.settings, &outputs, &SilentProgress).unwrap();
    let stage = |text: &str| match run.run_shard(text).unwrap() {
        ShardOutcome::Waiting { stage, missing } => (stage, missing),
        done => panic!("shard {text}: {done:?}"),
    };
    assert_eq!(stage("2/3"), (ShardStage::Read, vec![1, 3]));
    assert_eq!(stage("2/3"), (ShardStage::Read, vec![1, 3]));
    assert_eq!(stage("1/3"), (ShardStage::Read, vec![3]));
    // The last one of a stage goes on.
    assert_eq!(stage("3/3"), (ShardStage::Link, vec![1, 2]));
    assert_eq!(stage("3/3"), (ShardStage::Link, vec![1, 2]));
    let status = read_shards_status(&run.path("work"), true)
        .unwrap()
        .unwrap();
    assert_eq!(
        (status.shards, status.stage, status.finished),
        (3, Some(ShardStage::Link), false)
    );
    assert_eq!((status.missing, status.damaged), (vec![1, 2], Vec::new()));
    assert_eq!(stage("1/3"), (ShardStage::Link, vec![2]));
    assert_eq!(stage("2/3"), (ShardStage::Decide, vec![1, 3]));
    assert_eq!(stage("3/3"), (ShardStage::Decide, vec![1]));
    for _ in 0..2 {
        let done = run.run_shard("1/3").unwrap();
        assert!(matches!(done, ShardOutcome::Finished(_)), "{done:?}");
        run.assert_outputs_are_equal("");
    }
    let status = read_shards_status(&run.path("work"), false)
        .unwrap()
        .unwrap();
    assert!(status.finished && status.stage.is_none());
    // An output that is gone is written again.
    std::fs::remove_file(run.path("shared-removed.tsv")).unwrap();
    run.run_shard("2/3").unwrap();
    run.assert_outputs_are_equal("");
}

#[test]
fn shards_of_another_run_are_refused_by_name() {
    let mut run = default_run(0);
    let refused = |run: &SharedRun, text: &str, reason: &str| {
        let error = run.run_shard(text).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    };
    run.run_shard("1/2").unwrap();
    refused(&run, "1/3", "divided into 2 shards, not 3");
    run.run_shard("2/2").unwrap();
    // Another setting, for the same shard and for one that reads the steps of all.
    run.settings.keep = lookalike_batch::run::KeepOrder::Last;
    refused(&run, "1/2", "keep rule");
    run.settings.keep = lookalike_batch::run::KeepOrder::First;
    let damage = run.path("work/shards/0001-of-0002/documents-000001.step");
    let mut bytes = read(&damage);
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&damage, bytes).unwrap();
    refused(&run, "1/2", "documents-000001.step is damaged");
    let status = read_shards_status(&run.path("work"), true)
        .unwrap()
        .unwrap();
    assert_eq!(status.damaged.len(), 1, "{:?}", status.damaged);
}

#[test]
fn changed_inputs_are_named() {
    let run = default_run(1);
    run.run_shard("1/2").unwrap();
    run.run_shard("2/2").unwrap();
    // The same bytes at another time.
    let changed = run.path("d.jsonl");
    std::fs::write(&changed, read(&changed)).unwrap();
    for shard in ["1/2", "2/2"] {
        let error = run.run_shard(shard).unwrap_err().to_string();
        assert!(
            error.contains("d.jsonl has changed since it was begun"),
            "{error}"
        );
    }
}

#[test]
fn options_that_need_one_process_are_refused() {
    let run = default_run(0);
    let work = WorkSettings {
        directory: run.path("work"),
        resume: true,
    };
    let outputs = DedupOutputs {
        components: true,
        ..run.outputs("shared")
    };
    let shard = ShardNumber::parse("1/2").unwrap();
    let error = run_shard(
        &run.inputs,
        &run.settings,
        &outputs,
        (&work, shard),
        &SilentProgress,
    );
    let error = error.unwrap_err().to_string();
    assert!(error.contains("not divided among shards"), "{error}");
}
