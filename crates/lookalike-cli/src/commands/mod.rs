//! The command line: one module for each command, with its arguments, their conversion to validated settings,
//! the run, and the report for people. [`shared`] has what several commands have in common.
//!
//! Help, manual page, completions and `docs/reference.md` are generated from the arguments. Contradictory
//! options, and options that would have no effect, are refused. Nothing is clamped or ignored.

mod brief_help;
pub(crate) mod chinese_help;
mod compare;
mod decontaminate;
mod dedup;
mod eval;
mod explain;
pub(crate) mod fingerprint;
mod forms;
mod generate;
mod head;
mod idf;
mod index;
#[cfg(feature = "service")]
mod mcp;
mod pairs;
mod passages;
mod plant;
#[cfg(feature = "pdf")]
mod read_pdf;
mod recipe;
mod reference;
mod search;
mod segment;
#[cfg(feature = "service")]
mod serve;
pub(crate) mod shared;
mod status;
#[cfg(feature = "service")]
mod store;
mod tune;

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};

use crate::CommandOutcome;
use crate::language::{MessageLanguage, read_locale_variable};
use crate::output::ColorMode;
use chinese_help::HelpLength;
use compare::CompareArgs;
use decontaminate::DecontaminateArgs;
use dedup::DedupArgs;
use eval::EvalArgs;
use explain::ExplainArgs;
use fingerprint::FingerprintArgs;
use forms::FormsArgs;
use head::HeadArgs;
use idf::IdfArgs;
use index::IndexArgs;
#[cfg(feature = "service")]
use mcp::McpArgs;
use pairs::PairsArgs;
use passages::PassagesArgs;
use plant::PlantArgs;
use recipe::RecipeArgs;
use search::SearchArgs;
use segment::SegmentArgs;
#[cfg(feature = "service")]
use serve::ServeArgs;
#[cfg(feature = "service")]
pub(crate) use serve::serve_desktop;
use status::StatusArgs;
#[cfg(feature = "service")]
use store::StoreArgs;
use tune::TuneArgs;

const ABOUT_TEXT: &str = "Finds near-duplicates in collections of text";

const LONG_ABOUT: &str = "\
Finds near-duplicates in collections of text, in Chinese and English alike. Reads JSONL, CSV, TSV, \
Parquet, Arrow and plain text, also compressed with gzip, zstd, xz or bzip2.

Two documents match if their similarity is at least the threshold. By default, similarity is the \
Jaccard index of their pairs of neighbouring words, after normalisation has removed differences of \
case, width, punctuation, spacing and traditional or simplified characters.";

const EXAMPLE_TEXT: &str = "\
Example:
  lookalike dedup articles.jsonl -o unique.jsonl --removed removed.tsv
  lookalike explain removed.tsv 1234 articles.jsonl";

const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  done, but rows were skipped as bad
  2  refused or failed

Standard output is data; messages and progress go to standard error. A reader that closes standard \
output early is not a failure. NO_COLOR or `--color never` turns colours off. Where standard error is no \
terminal, a run reports its progress in a line every 30 seconds.";

/// Everything that can be typed.
pub(crate) type CommandLine = TypedLine<Command>;

/// A line with a command of `C` and the options of every command.
#[derive(Debug, Parser)]
#[command(
    name = "lookalike",
    version,
    about = ABOUT_TEXT,
    long_about = LONG_ABOUT,
    after_help = EXAMPLE_TEXT,
    after_long_help = format!("{EXAMPLE_TEXT}\n\n{EXIT_CODES}"),
    max_term_width = 100,
    arg_required_else_help = true
)]
pub(crate) struct TypedLine<C: Subcommand> {
    #[command(subcommand)]
    pub(crate) command: C,

    #[command(flatten)]
    pub(crate) terminal: TerminalArgs,
}

/// Options of every command.
#[derive(Debug, Args)]
pub(crate) struct TerminalArgs {
    /// When text is coloured, both data and messages
    #[arg(
        long,
        value_name = "WHEN",
        value_enum,
        default_value_t,
        global = true,
        help_heading = "Terminal"
    )]
    pub(crate) color: ColorMode,

    /// Language of progress, messages, help and errors, and in which reports open. Default: zh if LC_ALL, LC_MESSAGES or
    /// LANG says so, else en; a report without either, and the console, follow the browser. JSON and tables do not depend
    /// on it
    #[arg(
        long,
        value_name = "LANGUAGE",
        value_enum,
        global = true,
        help_heading = "Terminal"
    )]
    pub(crate) lang: Option<MessageLanguage>,
}

impl<C: Subcommand> TypedLine<C> {
    /// Parses the arguments of the process, the first of which is the program, and applies [`TerminalArgs`].
    ///
    /// # Errors
    /// If they are not valid, or ask for help or the version; the error then has that text.
    pub(crate) fn parse_arguments(arguments: &[OsString]) -> Result<Self, clap::Error> {
        // Refusals and help are printed before the options are known.
        find_color_mode(arguments).apply();
        find_language(arguments).apply();
        let color = match find_color_mode(arguments) {
            ColorMode::Auto => clap::ColorChoice::Auto,
            ColorMode::Always => clap::ColorChoice::Always,
            ColorMode::Never => clap::ColorChoice::Never,
        };
        // Named here, because the file of the program has another name on Windows.
        let mut command = Self::command().bin_name("lookalike").color(color);
        if asks_for_help(arguments) && MessageLanguage::current() == MessageLanguage::Chinese {
            let length = if brief_help::may_be_wanted(arguments) {
                HelpLength::Short
            } else {
                HelpLength::Full
            };
            // A test names the texts that have no Chinese.
            command = chinese_help::translate_command(command, length, &mut |_| {});
        }
        if brief_help::may_be_wanted(arguments) {
            command = brief_help::shorten_help(command);
        }
        let mut matches = command.try_get_matches_from_mut(arguments)?;
        let line = Self::from_arg_matches_mut(&mut matches)
            .map_err(|refusal| refusal.format(&mut command))?;
        line.terminal.color.apply();
        match line.terminal.lang {
            Some(stated) => stated.apply_as_stated(),
            None => MessageLanguage::from_environment(read_locale_variable).apply(),
        }
        Ok(line)
    }
}

/// Returns the mode that `--color` asks for, wherever it is; [`ColorMode::Auto`] if it is not valid.
fn find_color_mode(arguments: &[OsString]) -> ColorMode {
    find_option(arguments, "--color").unwrap_or_default()
}

/// Returns the language that `--lang` asks for, wherever it is; that of the environment if it is not valid.
fn find_language(arguments: &[OsString]) -> MessageLanguage {
    let stated = find_option(arguments, "--lang");
    stated.unwrap_or_else(|| MessageLanguage::from_environment(read_locale_variable))
}

/// Returns the valid value of an option, wherever it is, before the arguments are parsed.
fn find_option<T: ValueEnum>(arguments: &[OsString], option: &str) -> Option<T> {
    let texts: Vec<_> = arguments
        .iter()
        .map(|argument| argument.to_string_lossy())
        .collect();
    let follows = texts.windows(2).filter(|pair| pair[0] == option);
    let joined = texts
        .iter()
        .filter_map(|text| text.strip_prefix(option)?.strip_prefix('='));
    let mut stated = follows.map(|pair| &*pair[1]).chain(joined);
    T::from_str(stated.next()?, false).ok()
}

/// Returns `true` if the arguments may be answered with help.
fn asks_for_help(arguments: &[OsString]) -> bool {
    let is_help = |argument: &OsString| argument == "--help" || argument == "help";
    arguments.len() <= 2 || brief_help::may_be_wanted(arguments) || arguments.iter().any(is_help)
}

/// A set of commands, each of which can run.
pub(crate) trait CommandSet: Subcommand {
    /// Runs the command that was typed.
    ///
    /// # Errors
    /// If it is refused or fails.
    fn run_command(&self) -> Result<CommandOutcome>;

    /// Returns `true` if the command handles signals itself and shuts down in order, as a service does.
    fn handles_interruptions(&self) -> bool {
        false
    }
}

/// Commands of the page in the browser. They are a set of their own because a module then has the code of these alone:
/// nothing in it refers to the other commands.
#[derive(Debug, Subcommand)]
pub(crate) enum PageCommand {
    Dedup(Box<DedupArgs>),
    Passages(Box<PassagesArgs>),
}

impl CommandSet for PageCommand {
    fn run_command(&self) -> Result<CommandOutcome> {
        match self {
            Self::Dedup(args) => dedup::run_dedup(args),
            Self::Passages(args) => passages::run_passages(args),
        }
    }
}

/// Commands of the program.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Dedup(Box<DedupArgs>),
    Decontaminate(Box<DecontaminateArgs>),
    Status(StatusArgs),
    Pairs(Box<PairsArgs>),
    Passages(Box<PassagesArgs>),
    Explain(Box<ExplainArgs>),
    Compare(Box<CompareArgs>),
    Head(Box<HeadArgs>),
    Fingerprint(Box<FingerprintArgs>),
    Segment(Box<SegmentArgs>),
    Idf(Box<IdfArgs>),
    Forms(FormsArgs),
    Plant(Box<PlantArgs>),
    Index(IndexArgs),
    Search(Box<SearchArgs>),
    Eval(Box<EvalArgs>),
    Tune(Box<TuneArgs>),
    #[cfg(feature = "service")]
    Serve(Box<ServeArgs>),
    #[cfg(feature = "service")]
    Store(StoreArgs),
    #[cfg(feature = "service")]
    Mcp(McpArgs),
    Recipe(RecipeArgs),
    #[cfg(feature = "pdf")]
    ReadPdf(read_pdf::ReadPdfArgs),
    /// Print a completion script for a shell
    #[command(after_help = "\
Examples:
  lookalike completions bash > ~/.local/share/bash-completion/completions/lookalike
  lookalike completions zsh > ~/.zfunc/_lookalike
  lookalike completions fish > ~/.config/fish/completions/lookalike.fish

zsh reads ~/.zfunc if ~/.zshrc has `fpath=(~/.zfunc $fpath)` before compinit.")]
    Completions {
        /// Shell that reads the script
        #[arg(value_name = "SHELL")]
        shell: clap_complete::Shell,
    },
    /// Write the manual pages
    #[command(after_help = "\
Examples:
  lookalike man | man -l -
  lookalike man -o ~/.local/share/man/man1
  man lookalike-dedup")]
    Man {
        /// Directory for one page per command, which is created; without it, one page with all commands goes
        /// to standard output
        #[arg(short, long, value_name = "DIR")]
        output: Option<PathBuf>,
    },
    /// Print the reference of all commands as Markdown
    #[command(hide = true)]
    Reference,
}

impl CommandSet for Command {
    fn run_command(&self) -> Result<CommandOutcome> {
        match self {
            Self::Dedup(args) => dedup::run_dedup(args),
            Self::Decontaminate(args) => decontaminate::run_decontaminate(args),
            Self::Status(args) => status::run_status(args),
            Self::Pairs(args) => pairs::run_pairs(args),
            Self::Passages(args) => passages::run_passages(args),
            Self::Compare(args) => compare::run_compare(args),
            Self::Explain(args) => explain::run_explain(args),
            Self::Fingerprint(args) => fingerprint::run_fingerprint(args),
            Self::Head(args) => head::run_head(args),
            Self::Segment(args) => segment::run_segment(args),
            Self::Idf(args) => idf::run_idf(args),
            Self::Forms(args) => forms::run_forms(args),
            Self::Plant(args) => plant::run_plant(args),
            Self::Index(args) => index::run_index(args),
            Self::Search(args) => search::run_search(args),
            Self::Eval(args) => eval::run_evaluation(args),
            Self::Tune(args) => tune::run_tune(args),
            #[cfg(feature = "service")]
            Self::Serve(args) => serve::run_serve(args),
            #[cfg(feature = "service")]
            Self::Store(args) => store::run_store(args),
            #[cfg(feature = "service")]
            Self::Mcp(args) => mcp::run_mcp(args),
            Self::Recipe(args) => recipe::run_recipe(args),
            #[cfg(feature = "pdf")]
            Self::ReadPdf(args) => read_pdf::run_read_pdf(args),
            Self::Completions { shell } => generate::print_completions(*shell),
            Self::Man { output: None } => generate::print_manual(),
            Self::Man {
                output: Some(directory),
            } => generate::write_manual_pages(directory),
            Self::Reference => generate::print_reference(),
        }
    }

    #[cfg(feature = "service")]
    fn handles_interruptions(&self) -> bool {
        matches!(self, Self::Serve(_))
    }
}
