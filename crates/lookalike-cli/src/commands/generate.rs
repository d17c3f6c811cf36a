//! Files generated from the definition of the command line: completions, manual page, reference.

use anyhow::Result;
use clap::{Command, CommandFactory};

use crate::Outcome;
use crate::args::Cli;
use crate::output::Printer;
use crate::reference;

pub(crate) fn completions(shell: clap_complete::Shell) -> Result<Outcome> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "lookalike", &mut script);
    print(&script)
}

/// Prints one manual page with all commands.
pub(crate) fn manual() -> Result<Outcome> {
    let mut command = Cli::command();
    command.build();
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).render_title(&mut page)?;
    sections(&command, &mut page)?;
    for subcommand in command
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
    {
        let name = format!("lookalike {}", subcommand.get_name());
        sections(&subcommand.clone().display_name(name.clone()), &mut page)?;
        for inner in subcommand
            .get_subcommands()
            .filter(|inner| inner.get_name() != "help")
        {
            let name = format!("{name} {}", inner.get_name());
            sections(&inner.clone().display_name(name), &mut page)?;
        }
    }
    print(&page)
}

fn sections(command: &Command, page: &mut Vec<u8>) -> Result<()> {
    let manual = clap_mangen::Man::new(command.clone());
    manual.render_name_section(page)?;
    manual.render_synopsis_section(page)?;
    manual.render_description_section(page)?;
    manual.render_options_section(page)?;
    manual.render_extra_section(page)?;
    Ok(())
}

pub(crate) fn reference() -> Result<Outcome> {
    print(reference::markdown(Cli::command()).as_bytes())
}

fn print(bytes: &[u8]) -> Result<Outcome> {
    Printer::new(false).data(&String::from_utf8_lossy(bytes))?;
    Ok(Outcome::Done)
}
