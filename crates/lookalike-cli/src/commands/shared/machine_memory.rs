//! The memory that a run may take on this machine.

use std::fs;

/// Part of the available memory that a run takes without `--memory`.
const SHARE: f64 = 0.8;

/// Returns the bytes of memory that a run may take, if it can be determined: a share of what the machine has free
/// and of what its control group allows.
pub(crate) fn default_memory() -> Option<u64> {
    let available = available_bytes(&fs::read_to_string("/proc/meminfo").ok()?)?;
    let groups = [
        "/sys/fs/cgroup/memory.max",
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
    ];
    let limits = groups.iter().filter_map(|path| {
        let text = fs::read_to_string(path).ok()?;
        text.trim().parse::<u64>().ok()
    });
    let least = limits.fold(available, u64::min);
    Some((SHARE * least as f64) as u64)
}

/// Returns the available bytes that the system reports.
fn available_bytes(meminfo: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes = line.trim().strip_suffix("kB")?.trim();
    kibibytes.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn available_memory_is_read() {
        let text = "MemTotal:       24639064 kB\nMemAvailable:   23000000 kB\n";
        assert_eq!(available_bytes(text), Some(23_000_000 * 1024));
        assert_eq!(available_bytes("MemTotal: 5 kB\n"), None);
        assert_eq!(available_bytes("MemAvailable: x kB\n"), None);
    }
}
