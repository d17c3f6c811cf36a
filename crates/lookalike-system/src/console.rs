//! Terminals, standard streams, and what a person who starts a program without a terminal has.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::PathBuf;

use crate::current;

/// Standard output without the buffer of the standard library.
///
/// On Windows a console takes characters and no bytes, so that text for it goes through the standard library.
#[derive(Debug)]
pub struct StandardOutput(Stream);

#[derive(Debug)]
enum Stream {
    File(File),
    Console(io::Stdout),
}

impl Write for StandardOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            Stream::File(file) => file.write(bytes),
            Stream::Console(console) => console.lock().write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.0 {
            Stream::File(file) => file.flush(),
            Stream::Console(console) => console.lock().flush(),
        }
    }
}

/// Opens standard output.
///
/// # Errors
/// If the process has none.
pub fn open_standard_output() -> io::Result<StandardOutput> {
    let stream = if current::is_output_console() {
        Stream::Console(io::stdout())
    } else {
        Stream::File(current::standard_output()?)
    };
    Ok(StandardOutput(stream))
}

/// Opens standard input without the buffer of the standard library.
///
/// # Errors
/// If the process has none.
pub fn open_standard_input() -> io::Result<Box<dyn Read + Send>> {
    if current::is_input_console() {
        return Ok(Box::new(io::stdin()));
    }
    Ok(Box::new(current::standard_input()?))
}

/// Makes a console show colours, as terminals of Unix do. A console that cannot shows the codes of colours as characters.
pub fn prepare_console() {
    current::prepare_console();
}

/// Returns `true` if the program has a console of its own, which nobody else writes to: it was started by a double click.
/// Always `false` on Unix.
pub fn has_own_console() -> bool {
    current::has_own_console()
}

/// Returns the directory for data of programs of this user, if the system has one. The caller creates a directory in it.
pub fn data_directory_of_user() -> Option<PathBuf> {
    current::data_directory_of_user()
}

/// Returns the locale that the user has chosen outside of the environment, such as `zh-CN`. `None` on Unix, where the
/// environment has it.
pub fn locale_of_user() -> Option<String> {
    current::locale_of_user()
}

/// Opens an address in the browser of the user.
///
/// # Errors
/// If no program can be started for it.
pub fn open_in_browser(address: &str) -> io::Result<()> {
    current::open_in_browser(address)
}
