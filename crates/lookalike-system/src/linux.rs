//! Linux alone: files without a name, `/proc`, and limits of control groups.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, openat};

/// Directory of the control groups, as systemd and container engines mount it.
const CONTROL_GROUPS: &str = "/sys/fs/cgroup";

pub(crate) fn create_unnamed(directory: &Path) -> Option<File> {
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let file = openat(CWD, directory, flags, Mode::from_raw_mode(0o666)).ok()?;
    let file = File::from(file);
    descriptor_path(&file).exists().then_some(file)
}

fn descriptor_path(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

pub(crate) fn link_unnamed(file: &File, path: &Path) -> io::Result<()> {
    let from = descriptor_path(file);
    Ok(linkat(CWD, from, CWD, path, AtFlags::SYMLINK_FOLLOW)?)
}

/// Returns the signals that this process ignores, one bit each; 0 if the system does not tell.
pub(crate) fn ignored_signals() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}

pub(crate) fn resident_bytes() -> Option<u64> {
    let pages = fs::read_to_string("/proc/self/statm").ok()?;
    let resident: u64 = pages.split(' ').nth(1)?.parse().ok()?;
    Some(resident * rustix::param::page_size() as u64)
}

pub(crate) fn open_files() -> Option<u64> {
    count_entries("/proc/self/fd")
}

pub(crate) fn thread_count() -> Option<u64> {
    count_entries("/proc/self/task")
}

fn count_entries(directory: &str) -> Option<u64> {
    Some(fs::read_dir(directory).ok()?.count() as u64)
}

pub(crate) fn total_memory() -> Option<u64> {
    least_of("MemTotal:")
}

pub(crate) fn available_memory() -> Option<u64> {
    least_of("MemAvailable:")
}

/// Returns the least of a figure of the machine and of the limits of control groups.
fn least_of(label: &str) -> Option<u64> {
    let meminfo = fs::read_to_string("/proc/meminfo").ok()?;
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let limit = group_limit(Path::new(CONTROL_GROUPS), &groups);
    let bytes = labelled_bytes(&meminfo, label)?;
    Some(limit.map_or(bytes, |limit| limit.min(bytes)))
}

/// Returns a figure of `/proc/meminfo` in bytes.
fn labelled_bytes(meminfo: &str, label: &str) -> Option<u64> {
    let mut lines = meminfo.lines();
    let line = lines.find_map(|line| line.strip_prefix(label))?;
    let kibibytes = line.trim().strip_suffix("kB")?.trim();
    kibibytes.parse::<u64>().ok()?.checked_mul(1024)
}

/// Returns the least limit of the control groups of the process and of the groups around them. `groups` is the content of
/// `/proc/self/cgroup`: a line `0::/PATH` for groups of version 2, `N:memory:/PATH` for the memory of version 1.
fn group_limit(root: &Path, groups: &str) -> Option<u64> {
    let limits = groups.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        let (root, file) = match controllers {
            "" => (root.to_owned(), "memory.max"),
            _ if controllers.split(',').any(|name| name == "memory") => {
                (root.join("memory"), "memory.limit_in_bytes")
            }
            _ => return None,
        };
        // Inside a container the path can be that outside of it, so that only the root exists.
        let group = root.join(path.trim_start_matches('/'));
        let groups_around = group
            .ancestors()
            .take_while(|ancestor| ancestor.starts_with(&root));
        let texts =
            groups_around.filter_map(|ancestor| fs::read_to_string(ancestor.join(file)).ok());
        // A group without a limit says `max`.
        texts
            .filter_map(|text| text.trim().parse::<u64>().ok())
            .min()
    });
    limits.min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_the_machine_are_read() {
        let text = "MemTotal:       24639064 kB\nMemAvailable:   23000000 kB\n";
        let read = labelled_bytes;
        assert_eq!(read(text, "MemTotal:"), Some(24_639_064 * 1024));
        assert_eq!(read(text, "MemAvailable:"), Some(23_000_000 * 1024));
        assert_eq!(read("MemFree: 5 kB\n", "MemTotal:"), None);
        assert_eq!(read("MemTotal: 5\n", "MemTotal:"), None);
        assert_eq!(read("MemTotal: x kB\n", "MemTotal:"), None);
    }

    #[test]
    fn least_limit_of_the_groups_counts() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path();
        let limit = |group: &str, file: &str, text: &str| {
            fs::create_dir_all(root.join(group)).unwrap();
            fs::write(root.join(group).join(file), text).unwrap();
        };
        let limit_of = |groups: &str| group_limit(root, groups);
        assert_eq!(limit_of("0::/system.slice/a.service\n"), None);
        limit("system.slice/a.service", "memory.max", "max\n");
        assert_eq!(limit_of("0::/system.slice/a.service\n"), None);
        limit("system.slice", "memory.max", "2000\n");
        assert_eq!(limit_of("0::/system.slice/a.service\n"), Some(2000));
        limit("system.slice/a.service", "memory.max", "1000\n");
        assert_eq!(limit_of("0::/system.slice/a.service\n"), Some(1000));
        assert_eq!(limit_of("0::/system.slice\n"), Some(2000));
        // The path outside of a container does not exist inside.
        limit("", "memory.max", "3000\n");
        assert_eq!(limit_of("0::/docker/0123\n"), Some(3000));
        limit("memory/user", "memory.limit_in_bytes", "500\n");
        assert_eq!(limit_of("4:cpu,cpuacct:/user\n"), None);
        assert_eq!(
            limit_of("5:cpu,memory:/user\n0::/system.slice\n"),
            Some(500)
        );
        assert_eq!(limit_of("no group"), None);
    }
}
