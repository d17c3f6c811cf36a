//! Measures how fast inputs are read: `read_speed THREADS FILE…`.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use lookalike_io::error::{Error, ErrorKind, Result};
use lookalike_io::source::{InputSet, ParseScratch, ReadOptions};

#[expect(clippy::print_stdout, reason = "an example")]
fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let usage = || Error::new(ErrorKind::Usage, "usage: read_speed THREADS FILE…");
    let threads: u32 = arguments
        .next()
        .and_then(|text| text.parse().ok())
        .ok_or_else(usage)?;
    let paths: Vec<PathBuf> = arguments.map(PathBuf::from).collect();
    for _ in 0..3 {
        let start = Instant::now();
        let inputs = InputSet::open_paths(&paths, &ReadOptions::default())?;
        let (rows, bytes, bad) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            let work = || -> Result<()> {
                let mut scratch = ParseScratch::default();
                let (mut row_count, mut byte_count, mut bad_count) = (0, 0, 0);
                while let Some(block) = inputs.next_block()? {
                    inputs.parse_block(&block, &mut scratch, &mut |row| {
                        match row {
                            Ok(row) => {
                                row_count += 1;
                                byte_count += u64::from(row.place.byte_length());
                                std::hint::black_box(row.text);
                            }
                            Err(_) => bad_count += 1,
                        }
                        Ok(())
                    })?;
                    inputs.recycle_block(block);
                }
                rows.fetch_add(row_count, Ordering::Relaxed);
                bytes.fetch_add(byte_count, Ordering::Relaxed);
                bad.fetch_add(bad_count, Ordering::Relaxed);
                Ok(())
            };
            let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            workers
                .into_iter()
                .filter_map(|worker| worker.join().ok())
                .collect::<Result<Vec<_>>>()
        })?;
        let seconds = start.elapsed().as_secs_f64();
        let (rows, bytes) = (rows.into_inner(), bytes.into_inner());
        println!(
            "{rows} rows, {} bad, {bytes} bytes in {seconds:.3} s: {:.0} MB/s, {:.2} M rows/s",
            bad.into_inner(),
            bytes as f64 / 1e6 / seconds,
            rows as f64 / 1e6 / seconds
        );
    }
    Ok(())
}
