//! The machine of a measurement, and the files of results.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

/// Returns the processor, its cores and memory, without anything that identifies a machine.
pub fn describe() -> Value {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let field = |text: &str, name: &str| {
        let line = text
            .lines()
            .find(|line| line.starts_with(name))
            .unwrap_or_default();
        line.split(':')
            .nth(1)
            .unwrap_or("unknown")
            .trim()
            .to_owned()
    };
    let memory = field(&read("/proc/meminfo"), "MemTotal");
    let kib: f64 = memory.trim_end_matches(" kB").parse().unwrap_or(0.0);
    json!({
        "cpu": field(&read("/proc/cpuinfo"), "model name"),
        "instructions": lookalike::Cpu::detect_best().name(),
        "cores": std::thread::available_parallelism().map_or(0, usize::from),
        "memory_gib": (kib / 1024.0 / 1024.0).round(),
    })
}

/// Returns an error if other work keeps the machine busy.
pub fn refuse_if_busy() -> Result<()> {
    let load = std::fs::read_to_string("/proc/loadavg").context("cannot read the load")?;
    let load: f64 = load
        .split(' ')
        .next()
        .unwrap_or_default()
        .parse()
        .unwrap_or(0.0);
    if load > 0.7 {
        bail!("the machine is busy (load {load:.2}); wait until it is below 0.7, or give --busy");
    }
    Ok(())
}

/// Writes the results of a benchmark.
pub fn write(name: &str, measured: impl Serialize) -> Result<()> {
    let path = results().join(format!("{name}.json"));
    std::fs::create_dir_all(results())?;
    let all = json!({ "machine": describe(), "measured": serde_json::to_value(measured)? });
    std::fs::write(&path, serde_json::to_string_pretty(&all)? + "\n")
        .with_context(|| format!("cannot write {}", path.display()))?;
    eprintln!("wrote {}", path.display());
    Ok(())
}

/// Returns the folder of the results.
pub fn results() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("results")
}

/// Returns the root of the project.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Serializes a number with three digits after the point.
pub fn rounded<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64((value * 1000.0).round() / 1000.0)
}
