//! `lookalike mcp`: the runs of other commands as tools of a language model, by the Model Context Protocol.
//!
//! A tool turns its arguments into those of the command that does the same, and runs what that command runs. What is
//! here is the protocol, the bounds, and the choice of what an answer has.
//!
//! | module | part |
//! |---|---|
//! | `frames`, `protocol` | lines of bounded length → messages of JSON-RPC |
//! | `session`, `call_queue`, `call_watch` | one client: answers, waiting calls, cancelled and late calls |
//! | `tool_input`, `answer` | checked arguments with their schema; answers of bounded size |
//! | `tool_server` | what the server may do: its folders, indexes, service, limits |
//! | `tools` | the tools |
//! | `service_client` | requests to a service |

mod answer;
mod args;
mod call_queue;
mod call_watch;
mod frames;
mod protocol;
mod service_client;
mod session;
mod tool_input;
mod tool_server;
mod tools;

use std::io;

use anyhow::Result;

pub(crate) use self::args::McpArgs;
use self::tool_server::ToolServer;
use crate::CommandOutcome;
use crate::language::messages;
use crate::output::OutputPrinter;

pub(crate) fn run_mcp(args: &McpArgs) -> Result<CommandOutcome> {
    let server = ToolServer::new(args)?;
    let printer = OutputPrinter::new(false);
    printer.print_note(&format!(
        "{}\n",
        messages::mcp_waits(server.folders().len())
    ));
    if server.folders().is_empty() {
        printer.print_warning(messages::mcp_without_folders());
    }
    session::serve_client(server, io::stdin().lock(), io::stdout())?;
    Ok(CommandOutcome::Done)
}
