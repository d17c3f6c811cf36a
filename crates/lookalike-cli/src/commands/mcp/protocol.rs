//! Messages of JSON-RPC 2.0 as the Model Context Protocol uses them: parsing, answers, errors.

use lookalike_options::shown_text::shorten_text;
use serde_json::{Map, Value, json};

/// Versions of the protocol that are reached by the request `initialize`, the newest first.
pub(super) const PROTOCOL_VERSIONS: [&str; 4] =
    ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// Longest id of a request, in bytes. Ids come back in answers.
const MAX_ID_BYTES: usize = 256;

/// Number of characters of foreign text in a message.
pub(super) const SHOWN_CHARACTERS: usize = 80;

/// Codes of errors that JSON-RPC defines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ErrorCode {
    /// The line is not JSON.
    Parse = -32700,
    /// The JSON is not a request.
    InvalidRequest = -32600,
    MethodNotFound = -32601,
    InvalidParams = -32602,
    /// Too many calls wait. The code is of the range that servers define.
    Busy = -32000,
}

/// The id of a request, which its answer repeats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RequestId {
    Number(i64),
    Text(String),
}

impl RequestId {
    /// Returns the id, or `None` if the value cannot be one.
    pub(super) fn from_json(value: &Value) -> Option<Self> {
        match value {
            Value::Number(number) => number.as_i64().map(Self::Number),
            Value::String(text) if text.len() <= MAX_ID_BYTES => Some(Self::Text(text.clone())),
            _ => None,
        }
    }

    fn to_json(&self) -> Value {
        match self {
            Self::Number(number) => json!(number),
            Self::Text(text) => json!(text),
        }
    }
}

/// A message of the client.
#[derive(Debug, PartialEq)]
pub(super) enum ClientMessage {
    Request {
        id: RequestId,
        method: String,
        params: Map<String, Value>,
    },
    Notification {
        method: String,
        params: Map<String, Value>,
    },
    /// An answer. This server asks nothing, so it means nothing.
    Response,
}

/// An error that a client is told instead of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProtocolError {
    pub(super) code: ErrorCode,
    pub(super) message: String,
}

impl ProtocolError {
    pub(super) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }
}

/// A message that cannot be understood, with its id if it has a valid one.
#[derive(Debug, PartialEq)]
pub(super) struct RefusedMessage {
    pub(super) id: Option<RequestId>,
    pub(super) error: ProtocolError,
}

/// Parses a message. JSON may be nested up to 127 deep.
///
/// # Errors
/// If it is not JSON, or not a message of the protocol.
pub(super) fn parse_message(line: &[u8]) -> Result<ClientMessage, RefusedMessage> {
    let refuse = |id: Option<&RequestId>, code, message: &str| RefusedMessage {
        id: id.cloned(),
        error: ProtocolError::new(code, message),
    };
    let value: Value = serde_json::from_slice(line).map_err(|cause| {
        refuse(
            None,
            ErrorCode::Parse,
            &format!("the line is not valid JSON: {cause}"),
        )
    })?;
    let mut fields = match value {
        Value::Object(fields) => fields,
        Value::Array(_) => {
            let message = "batches are not supported: send one message a line";
            return Err(refuse(None, ErrorCode::InvalidRequest, message));
        }
        _ => {
            let message = "a message is a JSON object";
            return Err(refuse(None, ErrorCode::InvalidRequest, message));
        }
    };
    let id = fields.get("id").and_then(RequestId::from_json);
    let invalid = |message: &str| refuse(id.as_ref(), ErrorCode::InvalidRequest, message);
    if fields.get("jsonrpc") != Some(&json!("2.0")) {
        return Err(invalid("\"jsonrpc\" must be \"2.0\""));
    }
    if !fields.contains_key("method") {
        let is_response = fields.contains_key("result") || fields.contains_key("error");
        return if is_response {
            Ok(ClientMessage::Response)
        } else {
            Err(invalid("the message has no \"method\""))
        };
    }
    let Some(Value::String(method)) = fields.remove("method") else {
        return Err(invalid("\"method\" must be a string"));
    };
    if fields.contains_key("id") && id.is_none() {
        return Err(invalid(&format!(
            "\"id\" must be a whole number, or a string of at most {MAX_ID_BYTES} bytes"
        )));
    }
    let params = match fields.remove("params") {
        None => Map::new(),
        Some(Value::Object(params)) => params,
        Some(_) => {
            let message = "\"params\" must be an object";
            return Err(refuse(id.as_ref(), ErrorCode::InvalidParams, message));
        }
    };
    Ok(match id {
        Some(id) => ClientMessage::Request { id, method, params },
        None => ClientMessage::Notification { method, params },
    })
}

/// Returns the answer to a request, or the error of a message without a valid id.
pub(super) fn response_to(id: Option<&RequestId>, result: Result<Value, ProtocolError>) -> Value {
    let id = id.map_or(Value::Null, RequestId::to_json);
    match result {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        Err(error) => json!({
            "jsonrpc": "2.0",
            "id": id,
            "error": { "code": error.code as i32, "message": error.message },
        }),
    }
}

/// Returns the version for a client that asks for one: the same, or the newest if it is not known.
pub(super) fn negotiate_version(asked: &str) -> &'static str {
    let mut versions = PROTOCOL_VERSIONS.into_iter();
    versions
        .find(|&version| version == asked)
        .unwrap_or(PROTOCOL_VERSIONS[0])
}

/// Returns the beginning of a text of a client, for messages.
pub(super) fn show_text(text: &str) -> String {
    shorten_text(text, SHOWN_CHARACTERS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code_of(line: &str) -> (Option<RequestId>, i32) {
        let refused = parse_message(line.as_bytes()).unwrap_err();
        (refused.id, refused.error.code as i32)
    }

    #[test]
    fn messages_are_told_apart() {
        let parse = |line: &str| parse_message(line.as_bytes()).unwrap();
        let request = |id| ClientMessage::Request {
            id,
            method: "ping".to_owned(),
            params: Map::new(),
        };
        for (line, expected) in [
            (
                r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#,
                request(RequestId::Number(7)),
            ),
            (
                "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"ping\",\"params\":{}}\r",
                request(RequestId::Text("a".to_owned())),
            ),
            (
                r#"{"jsonrpc":"2.0","method":"n","params":{"a":1}}"#,
                ClientMessage::Notification {
                    method: "n".to_owned(),
                    params: Map::from_iter([("a".to_owned(), json!(1))]),
                },
            ),
            (
                r#"{"jsonrpc":"2.0","id":7,"result":{}}"#,
                ClientMessage::Response,
            ),
        ] {
            assert_eq!(parse(line), expected, "{line}");
        }
    }

    #[test]
    fn malformed_messages_have_their_codes() {
        let long = format!(
            r#"{{"jsonrpc":"2.0","id":"{}","method":"m"}}"#,
            "i".repeat(257)
        );
        let deep = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"a":{}{}}}}}"#,
            "[".repeat(200),
            "]".repeat(200)
        );
        let one = Some(RequestId::Number(1));
        for (line, id, code) in [
            ("nonsense", None, -32700),
            ("{\"jsonrpc\":", None, -32700),
            (&deep, None, -32700),
            ("7", None, -32600),
            ("null", None, -32600),
            ("[]", None, -32600),
            (
                r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#,
                None,
                -32600,
            ),
            (r#"{"id":1,"method":"ping"}"#, one.clone(), -32600),
            (
                r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
                one.clone(),
                -32600,
            ),
            (r#"{"jsonrpc":"2.0","id":1}"#, one.clone(), -32600),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":5}"#,
                one.clone(),
                -32600,
            ),
            (r#"{"jsonrpc":"2.0","id":null,"method":"m"}"#, None, -32600),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"m"}"#, None, -32600),
            (r#"{"jsonrpc":"2.0","id":[1],"method":"m"}"#, None, -32600),
            (&long, None, -32600),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"m","params":[1]}"#,
                one,
                -32602,
            ),
        ] {
            assert_eq!(code_of(line), (id, code), "{}", show_text(line));
        }
        let refused = parse_message(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}");
        assert_eq!(refused.unwrap_err().error.code, ErrorCode::Parse);
    }

    #[test]
    fn versions_are_negotiated() {
        for version in PROTOCOL_VERSIONS {
            assert_eq!(negotiate_version(version), version);
        }
        for unknown in ["2099-01-01", "", "1"] {
            assert_eq!(negotiate_version(unknown), "2025-11-25");
        }
    }
}
