//! The service for one person without a terminal: a double click on the program.
//!
//! The service listens on a free port of this machine alone, keeps its collections in the user's directory for data, and
//! opens the passages page of its console in the browser. It ends with the window of the program. A second double click
//! opens the page of the service that runs: its address is in a file beside the collections.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
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

/// File with the address of the service that runs.
const ADDRESS_FILE: &str = "address";

/// Page of the console that is opened.
const CONSOLE_PAGE: &str = "#passages";

/// Longest time for an answer of a service that may run.
const LONGEST_ANSWER: Duration = Duration::from_secs(2);

/// Serves the console to the browser of this user until the window is closed.
///
/// # Errors
/// If the user has no directory for data, or the service fails.
pub(crate) fn serve_desktop() -> Result<()> {
    let home = program_directory()?;
    if let Some(address) = find_running_service(&home) {
        show_console(address);
        return Ok(());
    }
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
        // Without the file a second double click is refused, because the directory is in use.
        let _ = fs::write(home.join(ADDRESS_FILE), address.to_string());
        show_console(address);
    }));
    run_service(config)?;
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

/// Returns the address of the service of this user that runs, if there is one.
fn find_running_service(home: &Path) -> Option<SocketAddr> {
    let text = fs::read_to_string(home.join(ADDRESS_FILE)).ok()?;
    let address: SocketAddr = text.trim().parse().ok()?;
    let is_running = address.ip().is_loopback() && is_alive(address).unwrap_or(false);
    is_running.then_some(address)
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

    fn answer_once(answer: &'static str) -> (SocketAddr, std::thread::JoinHandle<String>) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let answering = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 256];
            let length = stream.read(&mut request).unwrap();
            stream.write_all(answer.as_bytes()).unwrap();
            String::from_utf8_lossy(&request[..length]).into_owned()
        });
        (address, answering)
    }

    #[test]
    fn a_service_that_runs_is_found_by_its_address() {
        let home = tempfile::tempdir().unwrap();
        assert_eq!(find_running_service(home.path()), None);
        let write = |text: &str| fs::write(home.path().join(ADDRESS_FILE), text).unwrap();
        for text in ["", "nonsense", "127.0.0.1", "192.0.2.1:7600"] {
            write(text);
            assert_eq!(find_running_service(home.path()), None, "{text}");
        }
        let (address, answering) = answer_once("HTTP/1.1 200 OK\r\n\r\n");
        write(&address.to_string());
        assert_eq!(find_running_service(home.path()), Some(address));
        let request = answering.join().unwrap();
        assert!(request.starts_with("GET /livez HTTP/1.1\r\n"), "{request}");
        // The service has ended, and nobody listens.
        assert_eq!(find_running_service(home.path()), None);
    }

    #[test]
    fn another_program_at_the_address_is_not_the_service() {
        let home = tempfile::tempdir().unwrap();
        let (address, answering) = answer_once("HTTP/1.1 404 Not Found\r\n\r\n");
        fs::write(home.path().join(ADDRESS_FILE), address.to_string()).unwrap();
        assert_eq!(find_running_service(home.path()), None);
        answering.join().unwrap();
    }
}
