//! The process and its limits. A test starts its own program again as a child process.

use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use lookalike_system::{
    ProcessFailure, available_memory, has_own_console, limit_process, machine_name,
    read_process_failure, read_process_use, total_memory,
};

/// Variable that tells a child what to do.
const CHILD_WORK: &str = "LOOKALIKE_SYSTEM_TEST_CHILD";

fn run_child(work: &str) -> ExitStatus {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "processes::children_work", "--nocapture"])
        .env(CHILD_WORK, work)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap()
}

/// The work of the children; no work if no test has started it.
#[test]
fn children_work() {
    match std::env::var(CHILD_WORK).as_deref() {
        Ok("abort") => std::process::abort(),
        Ok("memory") => {
            limit_process(512 << 20, 60).unwrap();
            let mut bytes: Vec<u8> = Vec::new();
            let refused = bytes.try_reserve_exact(4 << 30).is_err();
            std::process::exit(if refused { 7 } else { 8 });
        }
        Ok("processor") => {
            limit_process(4 << 30, 1).unwrap();
            let mut sum = 0u64;
            while read_process_use().cpu_time < Some(Duration::from_secs(20)) {
                sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(1));
            }
            std::process::exit(9);
        }
        Ok(other) => panic!("{other}"),
        Err(_) => {}
    }
}

#[test]
fn memory_of_a_process_is_limited() {
    let status = run_child("memory");
    assert_eq!(status.code(), Some(7), "{status:?}");
    assert_eq!(read_process_failure(status), None);
}

#[test]
fn processor_time_of_a_process_is_limited() {
    let status = run_child("processor");
    let failure = read_process_failure(status);
    assert_eq!(failure, Some(ProcessFailure::CpuLimit), "{status:?}");
}

#[test]
fn a_process_that_aborts_is_recognised() {
    let status = run_child("abort");
    let failure = read_process_failure(status);
    assert!(
        matches!(failure, Some(ProcessFailure::Aborted(_))),
        "{status:?} {failure:?}"
    );
}

#[test]
fn use_of_a_process_is_reported() {
    let mut sum = 0u64;
    let before = read_process_use().cpu_time.unwrap();
    while read_process_use().cpu_time.unwrap() < before + Duration::from_millis(40) {
        sum = std::hint::black_box(sum + 1);
    }
    let known = read_process_use();
    assert!(known.resident_bytes.is_none_or(|bytes| bytes > 1 << 20));
    assert!(known.open_files.is_none_or(|files| files > 2));
    assert!(known.threads.is_none_or(|threads| threads > 0));
    assert!(known.max_open_files.is_none_or(|files| files > 16));
    if cfg!(target_os = "linux") {
        let figures = [
            known.resident_bytes,
            known.open_files,
            known.threads,
            known.max_open_files,
        ];
        assert!(figures.iter().all(Option::is_some), "{figures:?}");
    }
}

#[test]
fn free_memory_is_at_most_all_memory() {
    let (all, free) = (total_memory(), available_memory());
    assert_eq!(all.is_some(), free.is_some());
    assert!(all.is_some() || !cfg!(any(target_os = "linux", windows)));
    assert!(free <= all, "{free:?} of {all:?}");
}

#[test]
fn the_machine_has_a_name_and_tests_have_no_console() {
    assert!(!machine_name().is_empty());
    assert!(!has_own_console());
}
