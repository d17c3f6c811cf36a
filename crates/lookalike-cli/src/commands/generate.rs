//! Files generated from the definition of the command line: completions, manual page, reference.

use std::fs;
use std::path::Path;

use anyhow::Result;
use clap::{Command, CommandFactory};

use super::{CommandLine, reference};
use crate::CommandOutcome;
use crate::output::{OutputPrinter, with_context};

pub(crate) fn print_completions(shell: clap_complete::Shell) -> Result<CommandOutcome> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut CommandLine::command(), "lookalike", &mut script);
    print_bytes(&script)
}

/// Prints one manual page with all commands.
pub(crate) fn print_manual() -> Result<CommandOutcome> {
    let mut command = CommandLine::command().disable_help_subcommand(true);
    command.build();
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).render_title(&mut page)?;
    append_sections(&command, &mut page)?;
    for subcommand in command
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
    {
        let name = format!("lookalike {}", subcommand.get_name());
        append_sections(&subcommand.clone().display_name(name.clone()), &mut page)?;
        for inner in subcommand
            .get_subcommands()
            .filter(|inner| inner.get_name() != "help")
        {
            let name = format!("{name} {}", inner.get_name());
            append_sections(&inner.clone().display_name(name), &mut page)?;
        }
    }
    print_bytes(&page)
}

/// Writes one manual page for each command to a directory: `lookalike.1`, `lookalike-dedup.1` and so on.
pub(crate) fn write_manual_pages(directory: &Path) -> Result<CommandOutcome> {
    let place = format!("cannot write manual pages to {}", directory.display());
    fs::create_dir_all(directory)
        .and_then(|()| clap_mangen::generate_to(CommandLine::command(), directory))
        .map_err(with_context(place))?;
    Ok(CommandOutcome::Done)
}

fn append_sections(command: &Command, page: &mut Vec<u8>) -> Result<()> {
    let manual = clap_mangen::Man::new(command.clone());
    manual.render_name_section(page)?;
    manual.render_synopsis_section(page)?;
    manual.render_description_section(page)?;
    manual.render_options_section(page)?;
    manual.render_extra_section(page)?;
    Ok(())
}

pub(crate) fn print_reference() -> Result<CommandOutcome> {
    let command = CommandLine::command().disable_help_subcommand(true);
    print_bytes(reference::render_reference(command).as_bytes())
}

fn print_bytes(bytes: &[u8]) -> Result<CommandOutcome> {
    OutputPrinter::new(false).write_data(&String::from_utf8_lossy(bytes))?;
    Ok(CommandOutcome::Done)
}
