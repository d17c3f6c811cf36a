//! Writes the golden vectors in `testdata/golden`, or with `--check` says whether they hold.

#[path = "../tests/golden/vectors.rs"]
mod vectors;

use std::process::ExitCode;

use lookalike::Cpu;

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let path = vectors::path("vectors.jsonl");
    let made = vectors::lines(Cpu::detect_best())?.join("\n") + "\n";
    let differs = || Ok::<_, std::io::Error>(std::fs::read_to_string(&path)? != made);
    match std::env::args().nth(1).as_deref() {
        None => std::fs::write(&path, made)?,
        Some("--check") => {
            if differs()? {
                return Err(format!("{} is not what the engine makes", path.display()).into());
            }
        }
        Some(other) => return Err(format!("'{other}' is unknown: nothing or --check").into()),
    }
    Ok(ExitCode::SUCCESS)
}
