//! Signatures of the crate gaoya for the features of texts.
//!
//! Standard input has one JSON list of strings per line, the features of one text. Standard output
//! has one JSON object per line: `minhash` (126 values of 32 bits as in its documentation, 42 bands
//! of 3) and `simhash` (hexadecimal). The time spent on signatures goes to standard error.

use std::io::{BufRead, Write};
use std::time::{Duration, Instant};

use gaoya::minhash::{MinHasher, MinHasher32};
use gaoya::simhash::{SimHash, SimSipHasher64};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let minhash = MinHasher32::new(126);
    let simhash = SimHash::<SimSipHasher64, u64, 64>::new(SimSipHasher64::new(1, 2));
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let mut times = [Duration::ZERO; 2];
    for line in std::io::stdin().lock().lines() {
        let features: Vec<String> = serde_json::from_str(&line?)?;
        let started = Instant::now();
        let values = minhash.create_signature(features.iter());
        times[0] += started.elapsed();
        let started = Instant::now();
        let code = simhash.create_signature(features.iter());
        times[1] += started.elapsed();
        let row = serde_json::json!({ "minhash": values, "simhash": format!("{code:016x}") });
        writeln!(out, "{row}")?;
    }
    out.flush()?;
    eprintln!("{} {}", times[0].as_secs_f64(), times[1].as_secs_f64());
    Ok(())
}
