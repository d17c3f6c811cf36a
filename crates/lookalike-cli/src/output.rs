//! Terminal output. One printer decides on standard output, standard error, progress and colour.
//!
//! Data goes to standard output, messages go to standard error. A failing standard error does not stop the
//! program. Colour is used on terminals only, unless [`ColorMode`] says otherwise, and never carries meaning by
//! itself; `NO_COLOR` turns it off.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering};

use lookalike_system::FileVersion;
use unicode_width::UnicodeWidthStr;

use crate::language::{CountedNoun, MessageLanguage, NounCount, messages};

/// When text is coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
#[repr(u8)]
pub(crate) enum ColorMode {
    /// On a terminal, unless NO_COLOR is set or TERM is dumb
    #[default]
    Auto,
    /// Also into a file or a pipe, and with NO_COLOR
    Always,
    /// Nowhere
    Never,
}

/// The mode of this process, which every printer follows.
static COLOR_MODE: AtomicU8 = AtomicU8::new(ColorMode::Auto as u8);

impl ColorMode {
    /// Makes this the mode of all printers that are created from now on.
    pub(crate) fn apply(self) {
        COLOR_MODE.store(self as u8, Ordering::Relaxed);
    }

    fn current() -> Self {
        let mode = COLOR_MODE.load(Ordering::Relaxed);
        let modes = [Self::Auto, Self::Always, Self::Never];
        modes
            .into_iter()
            .find(|choice| *choice as u8 == mode)
            .unwrap_or_default()
    }

    /// Returns `true` if text for this stream is coloured.
    fn paints(self, stream: &impl IsTerminal) -> bool {
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto => {
                std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
                    && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
                    && stream.is_terminal()
            }
        }
    }
}

/// Writes to standard output and standard error.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OutputPrinter {
    quiet: bool,
    progress: bool,
    paint_output: bool,
    paint_messages: bool,
}

/// Meaning of a piece of text, which decides its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextTone {
    /// A heading.
    Heading,
    /// An error.
    Error,
    /// A warning.
    Warning,
    /// Text that only the first of two texts has.
    Left,
    /// Text that only the second of two texts has.
    Right,
}

impl TextTone {
    fn ansi_code(self) -> &'static str {
        match self {
            Self::Heading => "1",
            Self::Error => "1;31",
            Self::Warning => "1;33",
            Self::Left => "31",
            Self::Right => "32",
        }
    }
}

impl OutputPrinter {
    /// Creates the printer of this process. `quiet` leaves only errors and warnings.
    pub(crate) fn new(quiet: bool) -> Self {
        let mode = ColorMode::current();
        Self {
            quiet,
            progress: io::stderr().is_terminal() && !quiet,
            paint_output: mode.paints(&io::stdout()),
            paint_messages: mode.paints(&io::stderr()),
        }
    }

    /// Returns `true` if text for standard error is coloured.
    pub(crate) fn paints_messages(&self) -> bool {
        self.paint_messages
    }

    /// Returns `true` if text for standard output is coloured.
    pub(crate) fn paints_output(&self) -> bool {
        self.paint_output
    }

    /// Returns `true` if errors and warnings are all that is printed.
    pub(crate) fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// Returns `true` if progress is shown as a bar.
    pub(crate) fn shows_progress(&self) -> bool {
        self.progress
    }

    /// Writes data to standard output.
    ///
    /// # Errors
    /// If it cannot be written, also because the pipe is closed.
    pub(crate) fn write_data(&self, text: &str) -> io::Result<()> {
        let mut output = io::stdout().lock();
        output.write_all(text.as_bytes())?;
        output.flush()
    }

    /// Prints a message unless `quiet` is set. The message contains its own line end.
    pub(crate) fn print_note(&self, text: &str) {
        if !self.quiet {
            to_standard_error(text);
        }
    }

    /// Prints a warning of one line.
    pub(crate) fn print_warning(&self, text: impl Display) {
        // A full-width colon has its space in it.
        let gap = match MessageLanguage::current() {
            MessageLanguage::English => " ",
            MessageLanguage::Chinese => "",
        };
        let mark = messages::warning();
        let mark = self.in_message(TextTone::Warning, &mark);
        to_standard_error(&format!("{mark}{gap}{text}\n"));
    }

    /// Prints why the run failed, and a hint what to do next if there is one.
    pub(crate) fn print_failure(&self, error: impl Display, hint: Option<&str>) {
        let error = escape_control(&error.to_string()).into_owned();
        let mut text = format!(
            "{} {error}\n",
            self.in_message(TextTone::Error, "lookalike:")
        );
        if let Some(hint) = hint {
            text.push_str(&format!("{hint}\n"));
        }
        to_standard_error(&text);
    }

    /// Returns text for standard error in a tone.
    pub(crate) fn in_message<'a>(&self, tone: TextTone, text: &'a str) -> Cow<'a, str> {
        paint_text(self.paint_messages, tone, text)
    }

    /// Returns text for standard output in a tone.
    pub(crate) fn paint_for_output<'a>(&self, tone: TextTone, text: &'a str) -> Cow<'a, str> {
        paint_text(self.paint_output, tone, text)
    }
}

/// Output files that existed before a run, each as it was then.
#[derive(Debug, Default)]
pub(crate) struct ReplacedFiles(Vec<(PathBuf, FileVersion)>);

impl ReplacedFiles {
    /// Finds the outputs that are non-empty files.
    pub(crate) fn find_existing<'a>(places: impl IntoIterator<Item = &'a Path>) -> Self {
        let existing = |place: &'a Path| {
            let metadata = place.metadata().ok()?;
            let is_there = metadata.is_file() && metadata.len() > 0;
            is_there.then(|| (place.to_path_buf(), FileVersion::of_file(place, &metadata)))
        };
        Self(places.into_iter().filter_map(existing).collect())
    }

    /// Reports, after a completed run, which of the files were replaced. A run that was finished before leaves them.
    pub(crate) fn report_replaced(&self, printer: &OutputPrinter) {
        let is_same = |(place, before): &&(PathBuf, FileVersion)| {
            let now = place.metadata();
            now.is_ok_and(|now| FileVersion::of_file(place, &now) == *before)
        };
        for (place, _) in self.0.iter().filter(|warning| !is_same(warning)) {
            let replaced = messages::replaced(place.display());
            printer.print_note(&format!("{}\n", escape_control(&replaced)));
        }
    }
}

fn to_standard_error(text: &str) {
    // There is no other place to report that standard error fails.
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

fn paint_text(paint: bool, tone: TextTone, text: &str) -> Cow<'_, str> {
    if paint {
        Cow::Owned(format!("\u{1b}[{}m{text}\u{1b}[0m", tone.ansi_code()))
    } else {
        Cow::Borrowed(text)
    }
}

/// Replaces control characters in foreign text, because on a terminal they could move the cursor or change
/// what was printed before.
pub(crate) fn escape_control(text: &str) -> Cow<'_, str> {
    let harmful = |c: char| c.is_control() && c != '\n' && c != '\t';
    if !text.contains(harmful) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(
        text.chars()
            .map(|c| if harmful(c) { '\u{fffd}' } else { c })
            .collect(),
    )
}

/// Prefixes an error with its subject.
pub(crate) fn with_context<E: Display>(what: impl Display) -> impl FnOnce(E) -> anyhow::Error {
    move |cause| anyhow::anyhow!("{what}: {cause}")
}

/// Formats a whole number with thousands separators.
pub(crate) fn format_count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a count with its noun: `1 document`, `2 documents`.
pub(crate) fn format_plural(number: u64, one: &str, many: &str) -> String {
    format!(
        "{} {}",
        format_count(number),
        if number == 1 { one } else { many }
    )
}

/// Formats bytes in the unit that leaves one to three digits before the decimal point.
pub(crate) fn format_bytes(number: u64) -> String {
    const BYTE_UNITS: [(u64, &str); 4] = [
        (1_000_000_000_000, "TB"),
        (1_000_000_000, "GB"),
        (1_000_000, "MB"),
        (1000, "kB"),
    ];
    match BYTE_UNITS.iter().find(|(unit, _)| number >= *unit) {
        Some((unit, name)) => format!("{:.1} {name}", number as f64 / *unit as f64),
        None => NounCount(number, CountedNoun::Byte).to_string(),
    }
}

/// Formats a duration for people.
pub(crate) fn format_duration(seconds: f64) -> String {
    if seconds < 120.0 {
        return messages::seconds(format_args!("{seconds:.1}"));
    }
    let minutes = (seconds / 60.0).round() as u64;
    match minutes {
        0..120 => messages::minutes(minutes),
        _ => messages::hours(minutes / 60, minutes % 60),
    }
}

/// Returns a text followed by spaces up to a width in columns of a terminal.
pub(crate) fn pad_to_width(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(text.width())))
}

/// Returns a text behind spaces up to a width in columns of a terminal.
pub(crate) fn pad_before(text: &str, width: usize) -> String {
    format!("{}{text}", " ".repeat(width.saturating_sub(text.width())))
}

/// Returns a bar of up to `width` characters for a share from 0 to 1. It is empty only if the share is 0.
pub(crate) fn format_bar(share: f64, width: usize) -> String {
    let length = (share * width as f64).round() as usize;
    "#".repeat(length.clamp(usize::from(share > 0.0), width))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_formatted_for_people() {
        let counts = [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (1_234_567, "1,234,567"),
        ];
        for (number, text) in counts {
            assert_eq!(format_count(number), text);
        }
        let sizes = [
            (1, "1 byte"),
            (999, "999 bytes"),
            (1000, "1.0 kB"),
            (1_230_000_000, "1.2 GB"),
        ];
        for (number, text) in sizes {
            assert_eq!(format_bytes(number), text);
        }
        let durations = [
            (0.04, "0.0 s"),
            (119.9, "119.9 s"),
            (120.0, "2 min"),
            (7320.0, "2 h 2 min"),
        ];
        for (seconds, text) in durations {
            assert_eq!(format_duration(seconds), text);
        }
        assert_eq!(
            (
                format_bar(0.0, 10),
                format_bar(0.001, 10),
                format_bar(1.0, 3)
            ),
            ("".into(), "#".into(), "###".into())
        );
    }

    #[test]
    fn control_characters_cannot_reach_a_terminal() {
        assert_eq!(escape_control("a\tb\n中"), "a\tb\n中");
        assert_eq!(
            escape_control("a\u{1b}[2Jb\r\u{9b}"),
            "a\u{fffd}[2Jb\u{fffd}\u{fffd}"
        );
    }
}
