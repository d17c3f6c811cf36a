//! Runs over tables in memory give the same results as runs over files.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StringArray};
use lookalike_batch::run::{DedupOutputs, RunInputs, RunSettings, SilentProgress, run_dedup};
use lookalike_io::sink::{CollectedTable, OutputTarget};
use lookalike_io::source::{MemoryTable, RowSource};
use tempfile::tempdir;

#[test]
fn table_run_equals_file_run() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("rows.jsonl");
    let texts: Vec<String> = (0..400)
        .map(|row| {
            let ending = if row % 5 == 0 { "again" } else { "" };
            format!(
                "the ferry number {} leaves the island at {} o'clock in the morning, and at noon, {ending}",
                row % 60,
                row % 3
            )
        })
        .collect();
    let lines: String = texts
        .iter()
        .map(|text| format!("{}\n", serde_json::json!({ "text": text })))
        .collect();
    std::fs::write(&path, lines).unwrap();
    let batch = RecordBatch::try_from_iter([(
        "text",
        Arc::new(StringArray::from_iter_values(&texts)) as ArrayRef,
    )]);
    let batch = batch.unwrap();
    // Tables of results name their source, so the table has the name of the file.
    let table = MemoryTable::new(
        path.to_str().unwrap(),
        batch.schema(),
        vec![batch.slice(0, 33), batch.slice(33, 367)],
    );
    let run = |documents: RowSource, kept: OutputTarget| {
        let removed = CollectedTable::default();
        let outputs = DedupOutputs {
            kept: Some(kept),
            removed: Some(OutputTarget::Memory(removed.clone())),
            ..DedupOutputs::default()
        };
        let inputs = RunInputs {
            documents,
            ..RunInputs::default()
        };
        let summary =
            run_dedup(&inputs, &RunSettings::default(), &outputs, &SilentProgress).unwrap();
        (
            summary.kept,
            summary.removed,
            removed.take_batches().unwrap().1,
        )
    };
    let out = directory.path().join("kept.jsonl");
    let of_file = run(vec![path].into(), OutputTarget::Path(out.clone()));
    let rows = CollectedTable::default();
    let in_memory = run(
        RowSource::Table(table.unwrap()),
        OutputTarget::Memory(rows.clone()),
    );
    assert_eq!(of_file, in_memory);
    assert!(in_memory.0 > 0 && in_memory.1 > 0);
    let (_, batches) = rows.take_batches().unwrap();
    let kept: String = batches
        .iter()
        .flat_map(|batch| {
            let rows = batch
                .column(0)
                .as_any()
                .downcast_ref::<arrow_array::UInt64Array>();
            rows.unwrap().values().to_vec()
        })
        .map(|row| format!("{}\n", serde_json::json!({ "text": texts[row as usize] })))
        .collect();
    assert_eq!(kept, std::fs::read_to_string(out).unwrap());
}
