//! Permissions of a server: the folders that it reads, the indexes and the service that it asks, its limits.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, bail};
use lookalike_batch::index::index_info;
use lookalike_io::source::{AllowedFolders, ReadOptions};

use super::args::McpArgs;
use super::protocol::show_text;
use super::service_client::ServiceClient;
use super::tool_input::{CommandArguments, ToolInput};

/// Largest row of an input, as `--max-row` has it.
const MAX_ROW: &str = "16Mi";

/// The settings of a server.
pub(super) struct ToolServer {
    folders: AllowedFolders,
    indexes: Vec<PathBuf>,
    service: Option<ServiceClient>,
    allows_insert: bool,
    timeout: Duration,
    memory: Option<u64>,
    threads: Option<usize>,
}

impl ToolServer {
    /// Creates a server from the arguments of the command.
    ///
    /// # Errors
    /// If a folder or an index does not exist, or the address of the service is not valid.
    pub(super) fn new(args: &McpArgs) -> Result<Self> {
        let folders = AllowedFolders::new(&args.folder)?;
        for index in &args.index {
            index_info(index)?;
        }
        if args.timeout.is_zero() {
            bail!("--timeout 0s would stop every call: give a time above 0, such as 5m");
        }
        if args.allow_insert && args.index.is_empty() && args.service.is_none() {
            bail!(
                "--allow-insert has no effect without an index or a service: give --index LIB or --service URL, or \
                 leave it out"
            );
        }
        Ok(Self {
            folders,
            indexes: args.index.clone(),
            service: args
                .service
                .as_deref()
                .map(ServiceClient::new)
                .transpose()?,
            allows_insert: args.allow_insert,
            timeout: args.timeout,
            memory: args.memory,
            threads: args.threads,
        })
    }

    /// Returns the folders that may be read.
    pub(super) fn folders(&self) -> &[PathBuf] {
        self.folders.folders()
    }

    /// Describes what the tools can read, for the model that uses them.
    pub(super) fn describe_sources(&self) -> String {
        let mut described = if self.folders().is_empty() {
            "This server reads no files.".to_owned()
        } else {
            format!(
                "Files are read below {}: give paths relative to these folders, or whole ones.",
                list_paths(self.folders())
            )
        };
        if !self.indexes.is_empty() {
            let indexes = list_paths(&self.indexes);
            described.push_str(&format!(" check_text asks the indexes {indexes}."));
        }
        if self.service.is_some() {
            described.push_str(" check_text asks the collections of a service.");
        }
        described
    }

    pub(super) fn allows_insert(&self) -> bool {
        self.allows_insert
    }

    /// Returns the longest time of a call.
    pub(super) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Returns the service.
    ///
    /// # Errors
    /// If there is none.
    pub(super) fn service(&self) -> Result<&ServiceClient> {
        match &self.service {
            Some(service) => Ok(service),
            None => bail!(
                "this server asks no service: start it with `lookalike mcp --service URL`, or leave `collection` out"
            ),
        }
    }

    /// Returns the index that an argument names by its path or its file name; without an argument the only one.
    ///
    /// # Errors
    /// If it is none of those that the server was given.
    pub(super) fn find_index(&self, named: Option<&str>) -> Result<&Path> {
        let list = || list_paths(&self.indexes);
        match (named, &self.indexes[..]) {
            (_, []) => bail!(
                "this server asks no index: start it with `lookalike mcp --index LIB`, or name a `collection` of a \
                 service"
            ),
            (None, [only]) => Ok(only),
            (None, _) => bail!("name the `index`, which is one of {}", list()),
            (Some(name), indexes) => {
                let is_named = |index: &&PathBuf| {
                    index.as_path() == Path::new(name)
                        || index.file_name().is_some_and(|file| file == name)
                };
                match indexes.iter().find(is_named) {
                    Some(index) => Ok(index),
                    None => bail!(
                        "'{}' is no index of this server, which has {}",
                        show_text(name),
                        list()
                    ),
                }
            }
        }
    }

    /// Resolves a path of a client. Nothing outside of the folders is opened, and the refusal does not tell whether it
    /// exists. It tells so of a path inside of them.
    ///
    /// # Errors
    /// If the path is outside, does not exist, or is neither a file nor a directory.
    pub(super) fn resolve_path(&self, text: &str) -> Result<PathBuf> {
        if self.folders().is_empty() {
            bail!(
                "this server may read no files: start it with `lookalike mcp --folder DIR` and give paths below DIR"
            );
        }
        let resolved = self.folders.resolve_path(Path::new(text));
        let readable = resolved.filter(|path| path.is_file() || path.is_dir());
        readable.ok_or_else(|| {
            let (shown, folders) = (show_text(text), list_paths(self.folders()));
            if self.folders.lacks_path(Path::new(text)) {
                return anyhow::anyhow!(
                    "'{shown}' does not exist in the folders of this server ({folders})"
                );
            }
            anyhow::anyhow!(
                "'{shown}' is no file or directory below the folders of this server ({folders}): give a path below one \
                 of them"
            )
        })
    }

    /// Resolves all paths of an argument.
    ///
    /// # Errors
    /// As [`resolve_path`](Self::resolve_path).
    pub(super) fn resolve_paths(&self, input: &ToolInput, name: &str) -> Result<Vec<PathBuf>> {
        let texts = input.texts(name).into_iter();
        texts.map(|text| self.resolve_path(text)).collect()
    }

    /// Returns the options of reading, kept inside of the folders.
    pub(super) fn bound_reading(&self, options: ReadOptions) -> ReadOptions {
        ReadOptions {
            allowed_folders: Some(self.folders.clone()),
            ..options
        }
    }

    /// Returns the arguments of reading that all tools with files have.
    pub(super) fn reading_arguments(&self, input: &ToolInput) -> CommandArguments {
        let threads = self.threads.map(|threads| threads.to_string());
        CommandArguments::default()
            .option("max-row", MAX_ROW)
            .option_if_given("text", input.text("text_field"))
            .option_if_given("id", input.text("id_field"))
            .option_if_given("threads", threads)
    }

    /// Returns the arguments of a run with a limit of memory.
    pub(super) fn run_arguments(&self, input: &ToolInput) -> CommandArguments {
        let memory = self.memory.map(|bytes| bytes.to_string());
        self.reading_arguments(input)
            .option_if_given("memory", memory)
    }
}

fn list_paths(paths: &[PathBuf]) -> String {
    let paths = paths.iter().map(|path| path.display().to_string());
    paths.collect::<Vec<_>>().join(", ")
}
