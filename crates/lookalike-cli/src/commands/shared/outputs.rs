//! Outputs of a command. They go to different places, and none overwrites a recipe.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::Args;
use lookalike_io::is_url;
use lookalike_io::sink::OutputTarget;
use lookalike_system::is_device;

use crate::language::{MessageLanguage, read_locale_variable};

/// Output for rows that cannot be used.
#[derive(Debug, Args)]
pub(crate) struct RejectedArgs {
    /// File for the rejected rows, byte for byte; for Parquet and Arrow, JSON with file, row, reason and columns
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) rejected: Option<PathBuf>,
}

impl RejectedArgs {
    pub(crate) fn target(&self) -> Option<OutputTarget> {
        self.rejected.as_deref().map(output_target)
    }
}

/// Option for inputs without rows.
#[derive(Debug, Args)]
pub(crate) struct EmptyInputArgs {
    /// Let inputs without any row replace outputs that exist. Without this, such a run is refused and they stay as they
    /// were
    #[arg(long, help_heading = "Output")]
    pub(crate) allow_empty: bool,
}

/// Outputs of a command that writes one table.
pub(crate) struct TableOutputs {
    pub(crate) table: OutputTarget,
    pub(crate) rejected: Option<OutputTarget>,
}

impl TableOutputs {
    /// Checks the outputs of a command. Without a place, the table, which messages call `name`, goes to
    /// standard output.
    pub(crate) fn new(
        name: &str,
        place: Option<&Path>,
        rejected: &RejectedArgs,
        json: bool,
        recipe: Option<&str>,
    ) -> Result<Self> {
        let place = place.unwrap_or(Path::new("-"));
        let mut named = vec![(name, place)];
        named.extend(
            rejected
                .rejected
                .as_deref()
                .map(|path| ("rejected rows", path)),
        );
        check_standard_output(&named, json)?;
        check_separate_outputs(&named, recipe)?;
        Ok(Self {
            table: output_target(place),
            rejected: rejected.target(),
        })
    }
}

/// Returns the language in which a page opens: that of `--lang`, or of the environment if it is one that pages have.
/// `None` leaves it to the browser.
pub(crate) fn page_language() -> Option<&'static str> {
    if let Some(stated) = MessageLanguage::stated() {
        return Some(stated.tag());
    }
    let set = |name| {
        let value = read_locale_variable(name)?.into_string().ok()?;
        Some(value).filter(|value| !value.is_empty())
    };
    let locale = ["LC_ALL", "LC_MESSAGES", "LANG"]
        .into_iter()
        .find_map(set)?;
    match locale.get(..2)? {
        "zh" => Some("zh"),
        "en" => Some("en"),
        _ => None,
    }
}

/// Checks that standard output receives only one thing.
pub(crate) fn check_standard_output(named: &[(&str, &Path)], json: bool) -> Result<()> {
    let outputs = named.iter().filter(|(_, place)| is_standard(place)).count();
    if outputs > 1 {
        bail!("only one output can go to standard output (-)");
    }
    if outputs == 1 && json {
        bail!(
            "--json needs standard output for the summary: write the rows to a file (-o FILE) or \
             leave --json out"
        );
    }
    Ok(())
}

/// Checks that outputs, which are named in messages, go to different places, and do not overwrite a recipe of
/// the command line.
pub(crate) fn check_separate_outputs<'a>(
    named: &[(&str, &Path)],
    recipes: impl IntoIterator<Item = &'a str>,
) -> Result<()> {
    for recipe in recipes.into_iter().map(Path::new) {
        let is_recipe =
            |place| recipe.is_file() && recipe.extension().is_some() && is_one_file(recipe, place);
        if let Some((what, place)) = named.iter().find(|(_, place)| is_recipe(place)) {
            bail!(
                "{} is the recipe of --recipe, and {what} would overwrite it: name another file",
                place.display()
            );
        }
    }
    named
        .iter()
        .try_for_each(|(what, place)| check_extension(what, place))?;
    for (index, (what, place)) in named.iter().enumerate() {
        let mut before = named[..index].iter();
        if let Some((other, _)) = before.find(|(_, earlier)| is_one_file(earlier, place)) {
            bail!(
                "{other} and {what} cannot both be written to {}",
                place.display()
            );
        }
    }
    Ok(())
}

/// Extensions of formats that no output has, and that a program which opens them would find damaged.
const FOREIGN_EXTENSIONS: [&str; 12] = [
    "doc", "docx", "htm", "html", "odp", "ods", "odt", "pdf", "ppt", "pptx", "xls", "xlsx",
];

/// Refuses an output, which messages call `what`, whose extension is that of another format.
fn check_extension(what: &str, place: &Path) -> Result<()> {
    let extension = place.extension().and_then(|extension| extension.to_str());
    let extension = extension.unwrap_or_default().to_ascii_lowercase();
    let is_page = matches!(&*extension, "htm" | "html");
    if what.ends_with("report") {
        if FOREIGN_EXTENSIONS.contains(&&*extension) && !is_page {
            bail!(
                "{}: a report is a page, which no program opens as .{extension}: give a file named .html, and print it from \
                 the browser",
                place.display()
            );
        }
        return Ok(());
    }
    if FOREIGN_EXTENSIONS.contains(&&*extension) {
        bail!(
            "{}: {what} cannot be written as .{extension}: give a file named .csv, which spreadsheet programs open, or .jsonl, \
             .tsv, .parquet, .arrow or .txt",
            place.display()
        );
    }
    Ok(())
}

/// Returns `true` if two paths name the same file, which need not exist. A terminal may show several outputs.
fn is_one_file(one: &Path, other: &Path) -> bool {
    let shows_several = |path: &Path| is_standard(path) || is_device(path);
    if one != other && (shows_several(one) || shows_several(other)) {
        return false;
    }
    if is_url(one) || is_url(other) {
        return one.as_os_str() == other.as_os_str();
    }
    let absolute = |path: &Path| -> Option<PathBuf> {
        if let Ok(path) = path.canonicalize() {
            return Some(path);
        }
        let parent = path
            .parent()
            .filter(|directory| !directory.as_os_str().is_empty());
        let parent = parent.unwrap_or(Path::new(".")).canonicalize().ok()?;
        Some(parent.join(path.file_name()?))
    };
    let (one, other) = (absolute(one), absolute(other));
    one.is_some() && one == other
}

pub(crate) fn is_standard(place: &Path) -> bool {
    place.as_os_str() == "-"
}

pub(crate) fn output_target(place: &Path) -> OutputTarget {
    if is_standard(place) {
        OutputTarget::Stdout
    } else {
        OutputTarget::Path(place.to_path_buf())
    }
}

/// Returns the file of an output, if it is one.
pub(crate) fn output_file(output: &OutputTarget) -> Option<&Path> {
    match output {
        OutputTarget::Path(path) => Some(path),
        OutputTarget::Stdout | OutputTarget::Memory(_) => None,
    }
}
