//! Calls of Windows that the standard library does not have.
//!
//! Each function is one call, or a few that belong together, with sizes and pointers that the compiler checks as far as it
//! can. Nothing here keeps a pointer that it was given.

use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::os::windows::ffi::OsStrExt;
use std::os::windows::io::AsRawHandle;
use std::path::Path;
use std::ptr::{null, null_mut};
use std::sync::OnceLock;
use std::time::Duration;

use windows_sys::Win32::Foundation::{
    ERROR_ACCESS_DENIED, ERROR_SHARING_VIOLATION, FILETIME, INVALID_HANDLE_VALUE,
};
use windows_sys::Win32::Globalization::GetUserDefaultLocaleName;
use windows_sys::Win32::Storage::FileSystem::{
    BY_HANDLE_FILE_INFORMATION, GetDiskFreeSpaceExW, GetFileInformationByHandle,
};
use windows_sys::Win32::System::Console::{
    ENABLE_VIRTUAL_TERMINAL_PROCESSING, GetConsoleMode, GetConsoleProcessList, GetStdHandle,
    STD_ERROR_HANDLE, STD_OUTPUT_HANDLE, SetConsoleCtrlHandler, SetConsoleMode,
};
use windows_sys::Win32::System::JobObjects::{
    AssignProcessToJobObject, CreateJobObjectW, JOB_OBJECT_LIMIT_DIE_ON_UNHANDLED_EXCEPTION,
    JOB_OBJECT_LIMIT_PROCESS_MEMORY, JOB_OBJECT_LIMIT_PROCESS_TIME,
    JOBOBJECT_EXTENDED_LIMIT_INFORMATION, JobObjectExtendedLimitInformation,
    SetInformationJobObject,
};
use windows_sys::Win32::System::ProcessStatus::{K32GetProcessMemoryInfo, PROCESS_MEMORY_COUNTERS};
use windows_sys::Win32::System::SystemInformation::{GlobalMemoryStatusEx, MEMORYSTATUSEX};
use windows_sys::Win32::System::Threading::{
    GetCurrentProcess, GetProcessHandleCount, GetProcessTimes,
};
use windows_sys::core::BOOL;

use crate::files::{DiskSpace, FileNumber};

/// Bytes of memory of the machine.
#[derive(Debug, Clone, Copy)]
pub(super) struct MemoryStatus {
    pub(super) total: u64,
    pub(super) available: u64,
}

/// A stream that a console can show.
#[derive(Debug, Clone, Copy)]
pub(super) enum StandardStream {
    Output,
    Error,
}

/// Units of 100 nanoseconds, in which Windows counts time, per second.
const TIME_UNITS_PER_SECOND: u64 = 10_000_000;

/// Returns the result of a call that reports success by a number other than 0.
fn check_success(result: BOOL) -> io::Result<()> {
    if result == 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Returns `true` for errors by which Windows says that another process has the file open.
pub(super) fn is_in_use(error: &io::Error) -> bool {
    let code = error.raw_os_error().map(|code| code as u32);
    matches!(code, Some(ERROR_ACCESS_DENIED | ERROR_SHARING_VIOLATION))
}

/// Returns the size of the disk with a directory.
pub(super) fn read_disk_space(directory: &Path) -> io::Result<DiskSpace> {
    let mut name: Vec<u16> = std::path::absolute(directory)?
        .as_os_str()
        .encode_wide()
        .collect();
    // The name of a share ends with a separator, and a separator is allowed after every other name.
    name.extend([u16::from(b'\\'), 0]);
    let mut space = DiskSpace { size: 0, free: 0 };
    // SAFETY: the name ends with a zero, and both numbers can be written.
    check_success(unsafe {
        GetDiskFreeSpaceExW(
            name.as_ptr(),
            &raw mut space.free,
            &raw mut space.size,
            null_mut(),
        )
    })?;
    Ok(space)
}

/// Returns the number of an open file.
pub(super) fn read_file_number(file: &File) -> Option<FileNumber> {
    let mut information = BY_HANDLE_FILE_INFORMATION::default();
    // SAFETY: the handle is open, and the structure can be written.
    let result = unsafe { GetFileInformationByHandle(file.as_raw_handle(), &raw mut information) };
    check_success(result).ok()?;
    Some(FileNumber {
        device: information.dwVolumeSerialNumber.into(),
        file: join_halves(information.nFileIndexHigh, information.nFileIndexLow),
    })
}

fn join_halves(high: u32, low: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

/// Returns the memory of the machine.
pub(super) fn read_memory() -> Option<MemoryStatus> {
    let mut status = MEMORYSTATUSEX {
        dwLength: size_of::<MEMORYSTATUSEX>() as u32,
        ..Default::default()
    };
    // SAFETY: the structure states its length and can be written.
    check_success(unsafe { GlobalMemoryStatusEx(&raw mut status) }).ok()?;
    Some(MemoryStatus {
        total: status.ullTotalPhys,
        available: status.ullAvailPhys,
    })
}

/// Returns the processor time of this process.
pub(super) fn read_cpu_time() -> Option<Duration> {
    let mut times = [FILETIME::default(); 4];
    let [created, ended, kernel, user] = &mut times;
    // SAFETY: the handle stands for this process, and the four times can be written.
    check_success(unsafe { GetProcessTimes(GetCurrentProcess(), created, ended, kernel, user) })
        .ok()?;
    let units = |time: &FILETIME| join_halves(time.dwHighDateTime, time.dwLowDateTime);
    let sum = units(kernel) + units(user);
    let nanoseconds = (sum % TIME_UNITS_PER_SECOND) as u32 * 100;
    Some(Duration::new(sum / TIME_UNITS_PER_SECOND, nanoseconds))
}

/// Returns the resident memory of this process.
pub(super) fn read_resident_bytes() -> Option<u64> {
    let mut counters = PROCESS_MEMORY_COUNTERS::default();
    let bytes = size_of::<PROCESS_MEMORY_COUNTERS>() as u32;
    // SAFETY: the handle stands for this process, and the structure of this size can be written.
    check_success(unsafe {
        K32GetProcessMemoryInfo(GetCurrentProcess(), &raw mut counters, bytes)
    })
    .ok()?;
    Some(counters.WorkingSetSize as u64)
}

/// Returns the number of open handles of this process.
pub(super) fn count_handles() -> Option<u64> {
    let mut count = 0;
    // SAFETY: the handle stands for this process, and the number can be written.
    check_success(unsafe { GetProcessHandleCount(GetCurrentProcess(), &raw mut count) }).ok()?;
    // Wine counts none.
    (count > 0).then_some(u64::from(count))
}

/// Puts this process into a job with limits.
pub(super) fn limit_process(memory_bytes: u64, cpu_seconds: u64) -> io::Result<()> {
    let mut limits = JOBOBJECT_EXTENDED_LIMIT_INFORMATION::default();
    limits.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_PROCESS_MEMORY
        | JOB_OBJECT_LIMIT_PROCESS_TIME
        | JOB_OBJECT_LIMIT_DIE_ON_UNHANDLED_EXCEPTION;
    limits.BasicLimitInformation.PerProcessUserTimeLimit =
        (cpu_seconds * TIME_UNITS_PER_SECOND) as i64;
    limits.ProcessMemoryLimit = memory_bytes as usize;
    let bytes = size_of::<JOBOBJECT_EXTENDED_LIMIT_INFORMATION>() as u32;
    // SAFETY: the job has neither a name nor attributes.
    let job = unsafe { CreateJobObjectW(null(), null()) };
    if job.is_null() {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the job exists, and the structure of this size can be read. The handle of the job stays open until the
    // process ends, because the job lasts as long.
    unsafe {
        let limits: *const c_void = (&raw const limits).cast();
        check_success(SetInformationJobObject(
            job,
            JobObjectExtendedLimitInformation,
            limits,
            bytes,
        ))?;
        check_success(AssignProcessToJobObject(job, GetCurrentProcess()))
    }
}

/// The function that an interruption calls.
static INTERRUPTION: OnceLock<Box<dyn Fn() + Send + Sync>> = OnceLock::new();

unsafe extern "system" fn handle_event(_event: u32) -> BOOL {
    if let Some(interrupted) = INTERRUPTION.get() {
        interrupted();
    }
    1
}

/// Calls a function when the console or the session ends, or a person presses Ctrl-C. The system calls it in a thread of
/// its own. A second call of this function has no effect.
pub(super) fn handle_interruption(interrupted: Box<dyn Fn() + Send + Sync>) -> io::Result<()> {
    if INTERRUPTION.set(interrupted).is_err() {
        return Ok(());
    }
    // SAFETY: the handler is a function of this program, and lasts as long as the process.
    check_success(unsafe { SetConsoleCtrlHandler(Some(handle_event), 1) })
}

/// Makes a console interpret the codes of colours. A stream that is no console stays as it is.
pub(super) fn show_colours(stream: StandardStream) {
    let stream = match stream {
        StandardStream::Output => STD_OUTPUT_HANDLE,
        StandardStream::Error => STD_ERROR_HANDLE,
    };
    let mut mode = 0;
    // SAFETY: handles that are no console are refused by the calls, and the number can be written.
    unsafe {
        let handle = GetStdHandle(stream);
        if handle != INVALID_HANDLE_VALUE && GetConsoleMode(handle, &raw mut mode) != 0 {
            SetConsoleMode(handle, mode | ENABLE_VIRTUAL_TERMINAL_PROCESSING);
        }
    }
}

/// Returns the number of processes that share the console of this one; 0 if it has none.
pub(super) fn count_console_processes() -> u32 {
    let mut processes = [0; 4];
    // SAFETY: the list can be written, and has the length that the call is told.
    unsafe { GetConsoleProcessList(processes.as_mut_ptr(), processes.len() as u32) }
}

/// Most characters of the name of a locale, with the zero at its end.
const LONGEST_LOCALE: usize = 85;

/// Returns the name of the user's locale, such as `zh-CN`.
pub(super) fn read_locale() -> Option<String> {
    let mut name = [0; LONGEST_LOCALE];
    // SAFETY: the name can be written, and has the length that the call is told.
    let length = unsafe { GetUserDefaultLocaleName(name.as_mut_ptr(), LONGEST_LOCALE as i32) };
    let length = usize::try_from(length).ok()?.checked_sub(1)?;
    String::from_utf16(name.get(..length)?).ok()
}
