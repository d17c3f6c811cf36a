//! Figures of the process and its disk, under the names that Prometheus exporters use; figures of our own begin with
//! `lookalike_`.

use std::path::Path;
use std::time::{Duration, SystemTime};

use lookalike_options::machine_memory::memory_limit;
use rustix::process::Resource;
use rustix::time::ClockId;

/// A figure: its name, its kind, its description and its value.
pub(crate) type ProcessFigure = (&'static str, &'static str, &'static str, f64);

/// Returns the figures of the process that started at `started`, and of the disk with `directory`. Figures
/// that the system does not report are left out.
pub(crate) fn process_figures(started: SystemTime, directory: &Path) -> Vec<ProcessFigure> {
    let since_1970 = started.duration_since(SystemTime::UNIX_EPOCH);
    let disk = rustix::fs::statvfs(directory).ok();
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
            Some(cpu_time().as_secs_f64()),
        ),
        (
            "process_resident_memory_bytes",
            "gauge",
            "Resident memory of the process.",
            resident_bytes(),
        ),
        (
            "lookalike_memory_limit_bytes",
            "gauge",
            "Memory of the machine, or the limit of the control group if that is smaller.",
            memory_limit().map(|bytes| bytes as f64),
        ),
        (
            "process_open_fds",
            "gauge",
            "Open file descriptors.",
            std::fs::read_dir("/proc/self/fd")
                .ok()
                .map(|entries| entries.count() as f64),
        ),
        (
            "process_max_fds",
            "gauge",
            "Maximum number of open file descriptors.",
            rustix::process::getrlimit(Resource::Nofile)
                .current
                .map(|current| current as f64),
        ),
        (
            "process_threads",
            "gauge",
            "Threads of the process.",
            std::fs::read_dir("/proc/self/task")
                .ok()
                .map(|entries| entries.count() as f64),
        ),
        (
            "lookalike_disk_size_bytes",
            "gauge",
            "Size of the disk with the directory of the collections.",
            disk.as_ref()
                .map(|disk| (disk.f_blocks * disk.f_frsize) as f64),
        ),
        (
            "lookalike_disk_free_bytes",
            "gauge",
            "Free bytes of the disk with the directory of the collections.",
            disk.as_ref()
                .map(|disk| (disk.f_bavail * disk.f_frsize) as f64),
        ),
    ];
    let known = figures
        .into_iter()
        .filter_map(|(name, kind, help, value)| Some((name, kind, help, value?)));
    known.collect()
}

fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(
        time.tv_sec.unsigned_abs(),
        u32::try_from(time.tv_nsec).unwrap_or(0),
    )
}

/// Returns the resident memory, on systems with `/proc`.
fn resident_bytes() -> Option<f64> {
    let pages = std::fs::read_to_string("/proc/self/statm").ok()?;
    let resident: u64 = pages.split(' ').nth(1)?.parse().ok()?;
    Some((resident * rustix::param::page_size() as u64) as f64)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn every_figure_is_known_here() {
        let figures = process_figures(SystemTime::now(), Path::new("."));
        assert_eq!(figures.len(), 9);
        for (name, _, _, value) in figures {
            assert!(value > 0.0, "{name}: {value}");
        }
    }
}
