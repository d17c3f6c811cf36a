//! Figures of the process and its disk, under the names that Prometheus exporters use; figures of our own begin with
//! `lookalike_`.

use std::path::Path;
use std::time::{Duration, SystemTime};

use lookalike_options::machine_memory::memory_limit;
use lookalike_system::{read_disk_space, read_process_use};

/// A figure: its name, its kind, its description and its value.
pub(crate) type ProcessFigure = (&'static str, &'static str, &'static str, f64);

/// Returns the figures of the process that started at `started`, and of the disk with `directory`. Figures
/// that the system does not report are left out.
pub(crate) fn process_figures(started: SystemTime, directory: &Path) -> Vec<ProcessFigure> {
    let since_1970 = started.duration_since(SystemTime::UNIX_EPOCH);
    let disk = read_disk_space(directory);
    let process = read_process_use();
    let number = |value: u64| value as f64;
    let figures = [
        (
            "process_start_time_seconds",
            "gauge",
            "Start of the process, in seconds since 1970.",
            since_1970.ok().map(|since_1970| since_1970.as_secs_f64()),
        ),
        (
            "process_cpu_seconds_total",
            "counter",
            "Processor time of the process, user and system.",
            process.cpu_time.as_ref().map(Duration::as_secs_f64),
        ),
        (
            "process_resident_memory_bytes",
            "gauge",
            "Resident memory of the process.",
            process.resident_bytes.map(number),
        ),
        (
            "lookalike_memory_limit_bytes",
            "gauge",
            "Memory of the machine, or the limit of the control group if that is smaller.",
            memory_limit().map(number),
        ),
        (
            "process_open_fds",
            "gauge",
            "Open file descriptors.",
            process.open_files.map(number),
        ),
        (
            "process_max_fds",
            "gauge",
            "Maximum number of open file descriptors.",
            process.max_open_files.map(number),
        ),
        (
            "process_threads",
            "gauge",
            "Threads of the process.",
            process.threads.map(number),
        ),
        (
            "lookalike_disk_size_bytes",
            "gauge",
            "Size of the disk with the directory of the collections.",
            disk.map(|disk| number(disk.size)),
        ),
        (
            "lookalike_disk_free_bytes",
            "gauge",
            "Free bytes of the disk with the directory of the collections.",
            disk.map(|disk| number(disk.free)),
        ),
    ];
    let known = figures
        .into_iter()
        .filter_map(|(name, kind, help, value)| Some((name, kind, help, value?)));
    known.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A system may not report some. Every system reports at least these four.
    #[test]
    fn every_figure_is_known_here() {
        let figures = process_figures(SystemTime::now(), Path::new("."));
        let process = read_process_use();
        let unknown = [
            process.resident_bytes,
            process.open_files,
            process.max_open_files,
            process.threads,
            memory_limit(),
        ];
        let unknown = unknown.iter().filter(|value| value.is_none()).count();
        assert_eq!(figures.len() + unknown, 9, "{figures:?}");
        let names: Vec<_> = figures.iter().map(|(name, ..)| *name).collect();
        for name in [
            "process_start_time_seconds",
            "process_cpu_seconds_total",
            "lookalike_disk_size_bytes",
            "lookalike_disk_free_bytes",
        ] {
            assert!(names.contains(&name), "{name}");
        }
        for (name, _, _, value) in figures {
            assert!(value > 0.0, "{name}: {value}");
        }
    }
}
