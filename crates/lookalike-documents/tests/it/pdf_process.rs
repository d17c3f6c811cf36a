//! The process that reads a PDF file, played by scripts: its texts, its ends and its limits.

use std::fs;

use lookalike_documents::{PdfLimits, PdfReader};
use tempfile::tempdir;

/// Reads a long file with a script for a reader, which is given the three limits.
fn read_by_script(script: &str, limits: PdfLimits) -> Result<String, String> {
    let directory = tempdir().unwrap();
    let path = directory.path().join("reader");
    fs::write(&path, script).unwrap();
    let reader = PdfReader::new("/bin/sh".into(), &path, limits);
    reader.read_pdf(&vec![b'x'; 10 << 20], 100)
}

#[test]
fn ends_of_the_pdf_reader_become_texts_or_reasons() {
    let limits = PdfLimits {
        memory_bytes: 7 << 20,
        cpu_seconds: 8,
        wall_seconds: 60,
    };
    let read = |script: &str| read_by_script(script, limits);
    assert_eq!(
        read("cat > /dev/null; printf '中 %s' \"$*\""),
        Ok("中 7340032 8 100".into())
    );
    // Among them is the variable by which long runs of the tests are asked for.
    assert_eq!(
        read("cat > /dev/null; env | grep -c '^LOOKALIKE_'; :"),
        Ok("0\n".into())
    );
    assert_eq!(
        read("printf 'it is torn'; exit 1"),
        Err("it is torn".into())
    );
    for (script, reason) in [
        ("kill -XCPU $$", "more than 8 s of processor time"),
        (
            "echo memory allocation of 9 bytes failed >&2; kill -ABRT $$",
            "more than 7 MiB of memory",
        ),
        (
            "echo the thread has overflowed its stack >&2; kill -ABRT $$",
            "64 MiB of stack",
        ),
        ("kill -KILL $$", "ended by signal 9"),
        ("echo sorry >&2; exit 2", "(sorry)"),
        ("printf '\\377'", "no text"),
        // More than the largest text is not read.
        ("while :; do printf xxxxxxxxxx; done", "failed"),
    ] {
        let told = read(script).unwrap_err();
        assert!(told.contains(reason), "{script}: {told}");
    }
    let missing = PdfReader::new("/nowhere/reader".into(), "", limits);
    let told = missing.read_pdf(b"", 100).unwrap_err();
    assert!(told.contains("cannot be started"), "{told}");
}

#[test]
fn pdf_reader_that_hangs_is_killed() {
    let limits = PdfLimits {
        wall_seconds: 1,
        ..PdfLimits::default()
    };
    let started = std::time::Instant::now();
    let told = read_by_script("exec sleep 60", limits).unwrap_err();
    assert!(told.contains("more than 1 s, the limit"), "{told}");
    assert!(started.elapsed().as_secs() < 30);
}
