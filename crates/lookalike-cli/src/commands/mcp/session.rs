//! A session: one client, from `initialize` to the end of the input.
//!
//! ```text
//! input ─ reader thread ─┬─ initialize, ping, tools/list, cancellations: answered at once
//!                        └─ tools/call → queue → working thread ─ answers
//! ```
//!
//! Guarantees:
//! * Every request that is not cancelled has one answer: a result or an error. Nothing that a client sends ends the
//!   session, except for the end of the input.
//! * One call runs at a time, in the order of arrival.
//! * Nothing but messages goes to the output, each a line of at most [`MAX_ANSWER_BYTES`].

use std::io::{self, BufRead, Write};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::answer::{MAX_ANSWER_BYTES, refusal_result};
use super::call_queue::{CallQueue, ToolCall};
use super::call_watch::{CallStopped, CallWatch};
use super::frames::{FrameReader, MAX_FRAME_BYTES, MessageFrame};
use super::protocol::{
    ClientMessage, ErrorCode, ProtocolError, RequestId, negotiate_version, parse_message,
    response_to, show_text,
};
use super::tool_server::ToolServer;
use super::tools::TOOLS;
use crate::commands::shared::documents::lock_ignoring_poison;
use crate::output::escape_control;

/// Longest time for which calls go on after the end of the input.
const PATIENCE_AT_END: Duration = Duration::from_secs(10);

/// Stack of the thread that works on calls, in bytes: that of the main thread, on which commands run.
const STACK_BYTES: usize = 8 << 20;

/// Text for the model that uses the tools, whatever the server may do.
const INSTRUCTIONS: &str = "\
Finds near-duplicate texts, in Chinese and English alike. Similarity is the Jaccard index of pairs of neighbouring words \
after normalisation; a match has at least the threshold, 0.75 unless another is given. Answers are cut to 1 MiB: `left_out` says how much is missing and how to get it.";

/// Serves one client until its input ends.
///
/// # Errors
/// If the input cannot be read or the output cannot be written.
pub(super) fn serve_client<W: Write + Send + 'static>(
    server: ToolServer,
    input: impl BufRead,
    output: W,
) -> io::Result<()> {
    let shared = Arc::new(SharedSession {
        server,
        queue: CallQueue::default(),
        output: Mutex::new(output),
    });
    let worker = Arc::clone(&shared);
    std::thread::Builder::new()
        .name("calls".to_owned())
        .stack_size(STACK_BYTES)
        .spawn(move || worker.work_on_calls())?;
    let mut reader = SessionReader {
        shared: &shared,
        is_initialized: false,
    };
    let result = reader.read_messages(&mut FrameReader::new(input));
    shared.queue.close_queue();
    shared.queue.drain_calls(PATIENCE_AT_END);
    result
}

/// The part of a session that both threads use.
struct SharedSession<W> {
    server: ToolServer,
    queue: CallQueue,
    output: Mutex<W>,
}

impl<W: Write> SharedSession<W> {
    fn answer(
        &self,
        id: Option<&RequestId>,
        result: Result<Value, ProtocolError>,
    ) -> io::Result<()> {
        let mut line = response_to(id, result).to_string();
        if line.len() >= MAX_ANSWER_BYTES {
            let reason = format!(
                "the answer has {} bytes, more than the limit of {MAX_ANSWER_BYTES}: ask for less",
                line.len()
            );
            line = response_to(id, Ok(refusal_result(&reason))).to_string();
        }
        line.push('\n');
        let mut output = lock_ignoring_poison(&self.output);
        output.write_all(line.as_bytes())?;
        output.flush()
    }

    /// Works on calls until the queue is closed and empty, or the output cannot be written.
    fn work_on_calls(&self) {
        while let Some((call, watch)) = self.queue.take_call(self.server.timeout()) {
            let result = self.run_call(call.tool, call.arguments, &watch);
            let written = if watch.is_cancelled() {
                Ok(())
            } else {
                self.answer(Some(&call.id), Ok(result))
            };
            self.queue.finish_call();
            if written.is_err() {
                // Nobody reads answers any more.
                self.queue.close_queue();
                self.queue.drain_calls(Duration::ZERO);
                return;
            }
        }
    }

    fn run_call(
        &self,
        tool: &'static super::tools::ToolDescription,
        arguments: Map<String, Value>,
        watch: &CallWatch,
    ) -> Value {
        let run = || tool.run_tool(&self.server, arguments, watch);
        match catch_unwind(AssertUnwindSafe(run)) {
            Ok(Ok(answer)) => answer.into_result(),
            Ok(Err(_)) if watch.is_over() => self.stopped_result(),
            Ok(Err(error)) => refusal_result(&escape_control(&format!("{error:#}"))),
            Err(payload) if payload.is::<CallStopped>() => self.stopped_result(),
            Err(payload) => resume_unwind(payload),
        }
    }

    fn stopped_result(&self) -> Value {
        refusal_result(&format!(
            "stopped after the time limit of {} s: give fewer or smaller files, or start the server with a longer \
             --timeout",
            self.server.timeout().as_secs_f64()
        ))
    }
}

/// The reading side of a session.
struct SessionReader<'a, W> {
    shared: &'a SharedSession<W>,
    is_initialized: bool,
}

impl<W: Write> SessionReader<'_, W> {
    fn read_messages(&mut self, frames: &mut FrameReader<impl BufRead>) -> io::Result<()> {
        loop {
            match frames.next_frame()? {
                MessageFrame::End => return Ok(()),
                MessageFrame::TooLong => self.shared.answer(
                    None,
                    Err(ProtocolError::new(
                        ErrorCode::InvalidRequest,
                        format!(
                            "a message has at most {} MiB: this one was dropped",
                            MAX_FRAME_BYTES >> 20
                        ),
                    )),
                )?,
                MessageFrame::Line(line) if line.trim_ascii().is_empty() => {}
                MessageFrame::Line(line) => self.handle_line(line)?,
            }
        }
    }

    fn handle_line(&mut self, line: &[u8]) -> io::Result<()> {
        match parse_message(line) {
            Err(refused) => self.shared.answer(refused.id.as_ref(), Err(refused.error)),
            Ok(ClientMessage::Response) => Ok(()),
            Ok(ClientMessage::Notification { method, params }) => {
                if method == "notifications/cancelled"
                    && let Some(id) = params.get("requestId").and_then(RequestId::from_json)
                {
                    self.shared.queue.cancel_call(&id);
                }
                Ok(())
            }
            Ok(ClientMessage::Request { id, method, params }) => {
                match self.handle_request(&id, &method, params, line.len()) {
                    Ok(None) => Ok(()),
                    Ok(Some(result)) => self.shared.answer(Some(&id), Ok(result)),
                    Err(error) => self.shared.answer(Some(&id), Err(error)),
                }
            }
        }
    }

    /// Returns the result of a request, or `None` if its answer comes later.
    fn handle_request(
        &mut self,
        id: &RequestId,
        method: &str,
        params: Map<String, Value>,
        bytes: usize,
    ) -> Result<Option<Value>, ProtocolError> {
        match method {
            "ping" => Ok(Some(json!({}))),
            "initialize" => self.initialize(&params).map(Some),
            "tools/list" | "tools/call" if !self.is_initialized => Err(ProtocolError::new(
                ErrorCode::InvalidRequest,
                "the session is not initialized: send the request initialize first",
            )),
            "tools/list" => self.list_tools(&params).map(Some),
            "tools/call" => self.queue_call(id, params, bytes).map(|()| None),
            other => Err(ProtocolError::new(
                ErrorCode::MethodNotFound,
                format!("this server has no method '{}'", show_text(other)),
            )),
        }
    }

    fn initialize(&mut self, params: &Map<String, Value>) -> Result<Value, ProtocolError> {
        if self.is_initialized {
            return Err(ProtocolError::new(
                ErrorCode::InvalidRequest,
                "the session is initialized already",
            ));
        }
        let Some(asked) = params.get("protocolVersion").and_then(Value::as_str) else {
            return Err(ProtocolError::new(
                ErrorCode::InvalidParams,
                "protocolVersion must be a string",
            ));
        };
        self.is_initialized = true;
        Ok(json!({
            "protocolVersion": negotiate_version(asked),
            "capabilities": { "tools": { "listChanged": false } },
            "serverInfo": {
                "name": "lookalike",
                "title": "lookalike: near-duplicate texts",
                "version": env!("CARGO_PKG_VERSION"),
            },
            "instructions": format!("{INSTRUCTIONS} {}", self.shared.server.describe_sources()),
        }))
    }

    fn list_tools(&self, params: &Map<String, Value>) -> Result<Value, ProtocolError> {
        if params.contains_key("cursor") {
            return Err(ProtocolError::new(
                ErrorCode::InvalidParams,
                "the list of tools has one page, so there is no cursor",
            ));
        }
        let tools = TOOLS.iter().map(|tool| tool.describe(&self.shared.server));
        Ok(json!({ "tools": tools.collect::<Vec<_>>() }))
    }

    fn queue_call(
        &self,
        id: &RequestId,
        mut params: Map<String, Value>,
        bytes: usize,
    ) -> Result<(), ProtocolError> {
        let invalid = |message: String| ProtocolError::new(ErrorCode::InvalidParams, message);
        let Some(Value::String(name)) = params.remove("name") else {
            return Err(invalid("the name of a tool must be a string".to_owned()));
        };
        let Some(tool) = TOOLS.iter().find(|tool| tool.name == name) else {
            let names: Vec<_> = TOOLS.iter().map(|tool| tool.name).collect();
            return Err(invalid(format!(
                "there is no tool '{}': the tools are {}",
                show_text(&name),
                names.join(", ")
            )));
        };
        let arguments = match params.remove("arguments") {
            None => Map::new(),
            Some(Value::Object(arguments)) => arguments,
            Some(_) => return Err(invalid("arguments must be an object".to_owned())),
        };
        self.shared.queue.push_call(ToolCall {
            id: id.clone(),
            tool,
            arguments,
            bytes,
        })
    }
}
