//! The service for one person without a terminal: a double click on the program.
//!
//! The service listens on a free port of this machine alone, keeps its collections in the user's directory for data, and
//! opens the passages page of its console in the browser. It ends with the window of the program. A second double click
//! opens the page of the service that runs: its address is in a file beside the collections.
//!
//! The file counts only while its writer lives. The system releases the lock of [`LOCK_FILE`] with the process that holds
//! it, however that ends, so that an address which a killed service left behind never leads to another server.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use lookalike_server::run_service;
use lookalike_system::{data_directory_of_user, open_in_browser};

use super::args::{ListenAddress, LogFormat, LogLevel};
use super::{ServeArgs, log_to_standard_error, service_config};
use crate::free_memory;
use crate::language::messages;
use crate::output::OutputPrinter;

/// Directory of the program in the user's directory for data.
const PROGRAM_DIRECTORY: &str = "lookalike";

/// Directory of the collections in that of the program.
const COLLECTIONS: &str = "collections";

/// File with the address of the service that runs, and a line feed, which says that the address is complete.
const ADDRESS_FILE: &str = "address";

/// File that the service locks as long as it runs. It is not [`ADDRESS_FILE`], because Windows lets nobody read a locked
/// file.
const LOCK_FILE: &str = "lock";

/// Page of the console that is opened.
const CONSOLE_PAGE: &str = "#/passages";

/// Longest time for an answer of a service that runs.
const LONGEST_ANSWER: Duration = Duration::from_secs(2);

/// Longest time until a service that runs has an address and answers.
const LONGEST_START: Duration = Duration::from_secs(30);

/// Time between two looks at a service that begins.
const START_INTERVAL: Duration = Duration::from_millis(100);

/// The result of a double click.
#[derive(Debug)]
enum DesktopStart {
    /// No service of this user runs. This program becomes it, and holds the lock until it ends.
    First(File),
    /// The service of this user runs at this address.
    Running(SocketAddr),
}

/// Serves the console to the browser of this user until the window is closed.
///
/// # Errors
/// If the user has no directory for data, or the service fails.
pub(crate) fn serve_desktop() -> Result<()> {
    let home = program_directory()?;
    let lock = match begin_or_find_service(&home, LONGEST_START)? {
        DesktopStart::First(lock) => lock,
        DesktopStart::Running(address) => {
            show_console(address);
            return Ok(());
        }
    };
    free_memory::keep_for_later();
    lookalike_system::make_files_private();
    let args = ServeArgs {
        data: Some(home.join(COLLECTIONS)),
        listen: Some(ListenAddress(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))),
        ..ServeArgs::default()
    };
    let mut config = service_config(&args)?;
    log_to_standard_error(LogLevel::Warn, LogFormat::Text);
    config.when_listening = Some(Box::new(move |address| {
        // Without the file a second double click is refused, because it finds no address.
        let _ = fs::write(home.join(ADDRESS_FILE), format!("{address}\n"));
        show_console(address);
    }));
    run_service(config)?;
    drop(lock);
    Ok(())
}

fn program_directory() -> Result<PathBuf> {
    let directory = data_directory_of_user().context(
        "the system names no directory for data of this user: start `lookalike serve --data DIR` in a terminal",
    )?;
    let directory = directory.join(PROGRAM_DIRECTORY);
    fs::create_dir_all(&directory)
        .with_context(|| format!("cannot create {}", directory.display()))?;
    Ok(directory)
}

/// Opens the console in the browser, and says how to end.
fn show_console(address: SocketAddr) {
    let page = format!("http://{address}/{CONSOLE_PAGE}");
    let note = match open_in_browser(&page) {
        Ok(()) => messages::console_is_open(&page),
        Err(_) => messages::console_without_browser(&page),
    };
    let printer = OutputPrinter::new(false);
    printer.print_note(&format!("{note}\n{}\n", messages::keep_window_open()));
}

/// Locks the directory of the program, or returns the address of the service that has locked it.
///
/// # Errors
/// If the directory cannot be locked, or a service that runs does not answer within `longest`.
fn begin_or_find_service(home: &Path, longest: Duration) -> Result<DesktopStart> {
    let end = Instant::now() + longest;
    loop {
        if let Some(lock) = lock_directory(home)? {
            return Ok(DesktopStart::First(lock));
        }
        // It may be about to begin.
        if let Some(address) = read_address(home)
            && is_alive(address).unwrap_or(false)
        {
            return Ok(DesktopStart::Running(address));
        }
        if Instant::now() >= end {
            bail!(
                "lookalike runs already, but does not answer at the address in {} within {} seconds: close its window, then \
                 start it again",
                home.join(ADDRESS_FILE).display(),
                longest.as_secs()
            );
        }
        thread::sleep(START_INTERVAL);
    }
}

/// Locks the directory and removes the address of an earlier service. Returns `None` if another process has the lock.
fn lock_directory(home: &Path) -> Result<Option<File>> {
    let path = home.join(LOCK_FILE);
    // Not truncated, because Windows refuses that for a file that another process has locked.
    let file = File::options()
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path)
        .with_context(|| format!("cannot open {}", path.display()))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(None),
        Err(TryLockError::Error(error)) => {
            return Err(error).with_context(|| format!("cannot lock {}", path.display()));
        }
    }
    let stale = home.join(ADDRESS_FILE);
    match fs::remove_file(&stale) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", stale.display()))
        }
        _ => Ok(Some(file)),
    }
}

/// Returns the address in the file, if it is complete and one of this machine alone.
fn read_address(home: &Path) -> Option<SocketAddr> {
    let text = fs::read_to_string(home.join(ADDRESS_FILE)).ok()?;
    let address: SocketAddr = text.strip_suffix('\n')?.parse().ok()?;
    address.ip().is_loopback().then_some(address)
}

/// Returns `true` if the service at an address answers that it runs.
fn is_alive(address: SocketAddr) -> io::Result<bool> {
    let mut stream = TcpStream::connect_timeout(&address, LONGEST_ANSWER)?;
    stream.set_read_timeout(Some(LONGEST_ANSWER))?;
    stream.set_write_timeout(Some(LONGEST_ANSWER))?;
    let request = format!("GET /livez HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut start = [0; 12];
    stream.read_exact(&mut start)?;
    Ok(&start == b"HTTP/1.1 200")
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    fn answer_once(answer: &'static str) -> (SocketAddr, thread::JoinHandle<String>) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let answering = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 256];
            let length = stream.read(&mut request).unwrap();
            stream.write_all(answer.as_bytes()).unwrap();
            String::from_utf8_lossy(&request[..length]).into_owned()
        });
        (address, answering)
    }

    const SHORT: Duration = Duration::from_millis(300);

    fn write_address(home: &Path, text: &str) {
        fs::write(home.join(ADDRESS_FILE), text).unwrap();
    }

    fn lock(home: &Path) -> File {
        lock_directory(home).unwrap().expect("nobody has the lock")
    }

    #[test]
    fn address_that_is_not_complete_and_local_is_none() {
        let home = tempfile::tempdir().unwrap();
        assert_eq!(read_address(home.path()), None);
        for text in [
            "",
            "\n",
            "nonsense\n",
            "127.0.0.1\n",
            "192.0.2.1:7600\n",
            "127.0.0.1:76",
        ] {
            write_address(home.path(), text);
            assert_eq!(read_address(home.path()), None, "{text}");
        }
        write_address(home.path(), "127.0.0.1:7600\n");
        assert_eq!(
            read_address(home.path()),
            Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 7600)))
        );
    }

    #[test]
    fn service_that_runs_is_found_by_its_address() {
        let home = tempfile::tempdir().unwrap();
        let _lock = lock(home.path());
        let (address, answering) = answer_once("HTTP/1.1 200 OK\r\n\r\n");
        write_address(home.path(), &format!("{address}\n"));
        let start = begin_or_find_service(home.path(), LONGEST_START).unwrap();
        assert!(matches!(start, DesktopStart::Running(found) if found == address));
        let request = answering.join().unwrap();
        assert!(request.starts_with("GET /livez HTTP/1.1\r\n"), "{request}");
    }

    #[test]
    fn address_of_a_service_that_was_killed_leads_nowhere() {
        let home = tempfile::tempdir().unwrap();
        drop(lock(home.path()));
        // Another server has the port now, and answers as the service would.
        let (address, answering) = answer_once("HTTP/1.1 200 OK\r\n\r\n");
        write_address(home.path(), &format!("{address}\n"));
        let start = begin_or_find_service(home.path(), SHORT).unwrap();
        assert!(matches!(start, DesktopStart::First(_)), "{start:?}");
        assert_eq!(read_address(home.path()), None);
        // The server has not been asked.
        assert!(!answering.is_finished());
    }

    #[test]
    fn service_without_an_answer_is_refused_and_named() {
        let home = tempfile::tempdir().unwrap();
        let _lock = lock(home.path());
        let (address, answering) = answer_once("HTTP/1.1 404 Not Found\r\n\r\n");
        write_address(home.path(), &format!("{address}\n"));
        let refusal = begin_or_find_service(home.path(), SHORT).unwrap_err();
        assert!(
            refusal
                .to_string()
                .contains(&home.path().join(ADDRESS_FILE).display().to_string()),
            "{refusal}"
        );
        answering.join().unwrap();
    }

    #[test]
    fn start_that_fails_lets_the_next_one_begin() {
        let home = tempfile::tempdir().unwrap();
        let first = lock(home.path());
        let failing = thread::spawn(move || {
            thread::sleep(SHORT);
            drop(first);
        });
        let start = begin_or_find_service(home.path(), LONGEST_START).unwrap();
        assert!(matches!(start, DesktopStart::First(_)), "{start:?}");
        failing.join().unwrap();
    }
}
