//! Parameters of tools. One table of each tool makes the JSON schema that clients see, and checks what they send.

use std::ffi::{OsStr, OsString};

use anyhow::{Result, bail};
use clap::{ArgMatches, Args, Command};
use serde_json::{Map, Value, json};

use super::protocol::show_text;

/// Largest number of paths in a list.
const MAX_PATHS: usize = 1000;

/// A parameter of a tool.
pub(super) struct ToolParameter {
    pub(super) name: &'static str,
    pub(super) kind: ParameterKind,
    pub(super) is_required: bool,
    pub(super) description: &'static str,
}

impl ToolParameter {
    pub(super) const fn required(
        name: &'static str,
        kind: ParameterKind,
        description: &'static str,
    ) -> Self {
        Self {
            name,
            kind,
            is_required: true,
            description,
        }
    }

    pub(super) const fn optional(
        name: &'static str,
        kind: ParameterKind,
        description: &'static str,
    ) -> Self {
        Self {
            name,
            kind,
            is_required: false,
            description,
        }
    }

    fn schema(&self) -> Value {
        let mut schema = self.kind.schema();
        schema["description"] = json!(self.description);
        schema
    }
}

/// The values of a parameter.
pub(super) enum ParameterKind {
    /// A string of at most so many bytes.
    Text { max_bytes: usize },
    /// A path.
    Path,
    /// A list with 1 to [`MAX_PATHS`] paths.
    Paths,
    /// A number above 0 and at most 1.
    Share,
    /// A whole number.
    Integer { least: u64, most: u64 },
    /// `true` or `false`.
    Flag,
    /// One of these names.
    Choice(fn() -> Vec<String>),
}

/// Longest path, in bytes; that of the system.
const MAX_PATH_BYTES: usize = 4096;

impl ParameterKind {
    fn schema(&self) -> Value {
        match self {
            Self::Text { max_bytes } => json!({ "type": "string", "maxLength": max_bytes }),
            Self::Path => json!({ "type": "string", "minLength": 1, "maxLength": MAX_PATH_BYTES }),
            Self::Paths => json!({
                "type": "array",
                "items": Self::Path.schema(),
                "minItems": 1,
                "maxItems": MAX_PATHS,
            }),
            Self::Share => json!({ "type": "number", "exclusiveMinimum": 0, "maximum": 1 }),
            Self::Integer { least, most } => {
                json!({ "type": "integer", "minimum": least, "maximum": most })
            }
            Self::Flag => json!({ "type": "boolean" }),
            Self::Choice(names) => json!({ "type": "string", "enum": names() }),
        }
    }

    /// Checks a value. Returns what it must be if it is not.
    fn check(&self, value: &Value) -> Result<(), String> {
        let (is_valid, expected) = match self {
            Self::Text { max_bytes } => (
                value.as_str().is_some_and(|text| text.len() <= *max_bytes),
                format!("a string of at most {max_bytes} bytes"),
            ),
            Self::Path => (
                value.as_str().is_some_and(is_path),
                format!("a path of 1 to {MAX_PATH_BYTES} bytes"),
            ),
            Self::Paths => (
                value.as_array().is_some_and(|paths| {
                    (1..=MAX_PATHS).contains(&paths.len())
                        && paths.iter().all(|path| path.as_str().is_some_and(is_path))
                }),
                format!("a list of 1 to {MAX_PATHS} paths"),
            ),
            Self::Share => (
                value
                    .as_f64()
                    .is_some_and(|share| share > 0.0 && share <= 1.0),
                "a number above 0 and at most 1".to_owned(),
            ),
            Self::Integer { least, most } => (
                value
                    .as_u64()
                    .is_some_and(|number| (*least..=*most).contains(&number)),
                format!("a whole number from {least} to {most}"),
            ),
            Self::Flag => (value.is_boolean(), "true or false".to_owned()),
            Self::Choice(names) => {
                let names = names();
                (
                    value
                        .as_str()
                        .is_some_and(|name| names.iter().any(|known| known == name)),
                    format!("one of {}", names.join(", ")),
                )
            }
        };
        if is_valid { Ok(()) } else { Err(expected) }
    }
}

fn is_path(text: &str) -> bool {
    (1..=MAX_PATH_BYTES).contains(&text.len()) && !text.contains('\0')
}

/// Returns the JSON schema of parameters.
pub(super) fn input_schema<'a>(
    parameters: impl Iterator<Item = &'a ToolParameter> + Clone,
) -> Value {
    let properties = parameters
        .clone()
        .map(|parameter| (parameter.name.to_owned(), parameter.schema()));
    let required = parameters
        .filter(|parameter| parameter.is_required)
        .map(|parameter| parameter.name);
    json!({
        "type": "object",
        "properties": properties.collect::<Map<_, _>>(),
        "required": required.collect::<Vec<_>>(),
        "additionalProperties": false,
    })
}

/// Checked arguments of a call.
pub(super) struct ToolInput(Map<String, Value>);

impl ToolInput {
    /// Checks the arguments of a call.
    ///
    /// # Errors
    /// If one is missing, not known or not valid.
    pub(super) fn check_arguments<'a>(
        arguments: Map<String, Value>,
        parameters: impl Iterator<Item = &'a ToolParameter> + Clone,
    ) -> Result<Self> {
        for (name, value) in &arguments {
            let known = parameters.clone().find(|parameter| parameter.name == name);
            let Some(parameter) = known else {
                let names: Vec<_> = parameters.map(|parameter| parameter.name).collect();
                bail!(
                    "unknown argument '{}': this tool has {}",
                    show_text(name),
                    names.join(", ")
                );
            };
            if let Err(expected) = parameter.kind.check(value) {
                bail!("{name} must be {expected}, not {}", describe_value(value));
            }
        }
        let mut needed = parameters.filter(|parameter| parameter.is_required);
        if let Some(missing) = needed.find(|parameter| !arguments.contains_key(parameter.name)) {
            bail!("the argument {} is missing", missing.name);
        }
        Ok(Self(arguments))
    }

    /// Returns `true` if an argument is given.
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.as_str()
    }

    pub(super) fn texts(&self, name: &str) -> Vec<&str> {
        let list = self.0.get(name).and_then(Value::as_array);
        list.into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect()
    }

    pub(super) fn number(&self, name: &str) -> Option<f64> {
        self.0.get(name)?.as_f64()
    }

    /// Returns a whole number, or `default` if it is not given.
    pub(super) fn integer(&self, name: &str, default: usize) -> usize {
        let given = self.0.get(name).and_then(Value::as_u64);
        given.map_or(default, |number| number as usize)
    }

    pub(super) fn flag(&self, name: &str) -> bool {
        self.0.get(name).and_then(Value::as_bool).unwrap_or(false)
    }
}

/// Describes a value that is not valid, without repeating much of it.
fn describe_value(value: &Value) -> String {
    match value {
        Value::String(text) if text.chars().count() <= super::protocol::SHOWN_CHARACTERS => {
            format!("'{}'", text.escape_debug())
        }
        Value::String(text) => format!("a string of {} bytes", text.len()),
        Value::Array(list) => format!("a list of {} values", list.len()),
        Value::Object(_) => "an object".to_owned(),
        other => other.to_string(),
    }
}

/// Arguments of a command, as they are typed. A tool runs with the arguments of the command that does the same, so both
/// have the same defaults, checks and refusals.
#[derive(Default)]
pub(super) struct CommandArguments {
    options: Vec<OsString>,
    values: Vec<OsString>,
}

impl CommandArguments {
    /// Adds `--NAME=VALUE`.
    pub(super) fn option(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        let mut option = OsString::from(format!("--{name}="));
        option.push(value);
        self.options.push(option);
        self
    }

    /// Adds `--NAME=VALUE` if there is a value.
    pub(super) fn option_if_given(self, name: &str, value: Option<impl AsRef<OsStr>>) -> Self {
        match value {
            Some(value) => self.option(name, value),
            None => self,
        }
    }

    /// Adds `--NAME` if it is wanted.
    pub(super) fn flag(mut self, name: &str, is_wanted: bool) -> Self {
        if is_wanted {
            self.options.push(format!("--{name}").into());
        }
        self
    }

    /// Adds values without a name. They follow `--`, so none of them is taken for an option.
    pub(super) fn values<V: Into<OsString>>(mut self, values: impl IntoIterator<Item = V>) -> Self {
        self.values.extend(values.into_iter().map(Into::into));
        self
    }

    /// Parses the arguments as those of a command.
    ///
    /// # Errors
    /// If the command would refuse them.
    pub(super) fn parse<A: Args>(self) -> Result<A> {
        let command = A::augment_args(Command::new("tool").no_binary_name(true));
        let line = self.options.into_iter().chain([OsString::from("--")]);
        let parsed = command
            .try_get_matches_from(line.chain(self.values))
            .and_then(|matches: ArgMatches| A::from_arg_matches(&matches));
        parsed.map_err(|refusal| {
            let text = refusal.to_string();
            // The rest is the usage of a command, which a client does not type.
            let reason = text.split("\n\n").next().unwrap_or_default();
            let reason = reason.strip_prefix("error: ").unwrap_or(reason);
            anyhow::anyhow!("{}", reason.trim())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARAMETERS: [ToolParameter; 7] = [
        ToolParameter::required("text", ParameterKind::Text { max_bytes: 4 }, "A text"),
        ToolParameter::optional("path", ParameterKind::Path, "A path"),
        ToolParameter::optional("paths", ParameterKind::Paths, "Paths"),
        ToolParameter::optional("share", ParameterKind::Share, "A share"),
        ToolParameter::optional(
            "count",
            ParameterKind::Integer { least: 1, most: 9 },
            "A count",
        ),
        ToolParameter::optional("flag", ParameterKind::Flag, "A flag"),
        ToolParameter::optional(
            "choice",
            ParameterKind::Choice(|| vec!["a".to_owned(), "b".to_owned()]),
            "A choice",
        ),
    ];

    fn check(arguments: Value) -> Result<ToolInput> {
        let Value::Object(arguments) = arguments else {
            unreachable!("the cases are objects");
        };
        ToolInput::check_arguments(arguments, PARAMETERS.iter())
    }

    #[test]
    fn valid_arguments_are_read() {
        let input = check(json!({
            "text": "四b", "path": "a", "paths": ["a", "b"], "share": 1, "count": 9, "flag": true, "choice": "b",
        }))
        .unwrap();
        assert_eq!(input.text("text"), Some("四b"));
        assert_eq!(input.texts("paths"), ["a", "b"]);
        assert_eq!(input.number("share"), Some(1.0));
        assert_eq!((input.integer("count", 3), input.flag("flag")), (9, true));
        let input = check(json!({ "text": "" })).unwrap();
        assert_eq!((input.integer("count", 3), input.flag("flag")), (3, false));
        assert_eq!((input.text("path"), input.number("share")), (None, None));
    }

    #[test]
    fn other_arguments_are_refused() {
        for (arguments, reason) in [
            (json!({}), "text is missing"),
            (json!({ "text": "12345" }), "at most 4 bytes"),
            (json!({ "text": 1 }), "not 1"),
            (json!({ "text": "", "more": 1 }), "unknown argument 'more'"),
            (json!({ "text": "", "path": "" }), "a path"),
            (json!({ "text": "", "path": "a\0b" }), "a path"),
            (
                json!({ "text": "", "path": "a".repeat(4097) }),
                "4097 bytes",
            ),
            (json!({ "text": "", "path": ["a"] }), "a list of 1 values"),
            (json!({ "text": "", "paths": [] }), "1 to 1000 paths"),
            (json!({ "text": "", "paths": "a" }), "1 to 1000 paths"),
            (json!({ "text": "", "paths": ["a", 1] }), "1 to 1000 paths"),
            (json!({ "text": "", "share": 0 }), "above 0"),
            (json!({ "text": "", "share": 1.5 }), "above 0"),
            (json!({ "text": "", "count": 0 }), "from 1 to 9"),
            (json!({ "text": "", "count": 10 }), "from 1 to 9"),
            (json!({ "text": "", "count": 1.5 }), "from 1 to 9"),
            (json!({ "text": "", "flag": "true" }), "true or false"),
            (json!({ "text": "", "choice": "c" }), "one of a, b"),
            (json!({ "text": "", "choice": { "a": 1 } }), "an object"),
        ] {
            let message = check(arguments.clone()).err().unwrap().to_string();
            assert!(message.contains(reason), "{arguments}: {message}");
        }
    }

    #[test]
    fn schema_has_every_parameter() {
        let schema = input_schema(PARAMETERS.iter());
        assert_eq!(schema["required"], json!(["text"]));
        let properties = schema["properties"].as_object().unwrap();
        assert_eq!(properties.len(), PARAMETERS.len());
        assert_eq!(properties["choice"]["enum"], json!(["a", "b"]));
        assert_eq!(properties["count"]["maximum"], 9);
        assert_eq!(properties["text"]["description"], "A text");
    }

    #[derive(Args)]
    struct ExampleArgs {
        #[arg(value_name = "IN", required = true)]
        inputs: Vec<OsString>,

        #[arg(long, num_args = 1..)]
        against: Vec<OsString>,

        #[arg(long)]
        number: Option<u32>,

        #[arg(long)]
        flag: bool,
    }

    #[test]
    fn values_are_never_options() {
        let parsed: ExampleArgs = CommandArguments::default()
            .option("against", "--flag")
            .option("against", "b")
            .option_if_given("number", Some("7"))
            .flag("flag", false)
            .values(["--number=9", "-h", "--"])
            .parse()
            .unwrap();
        assert_eq!(parsed.inputs, ["--number=9", "-h", "--"]);
        assert_eq!(parsed.against, ["--flag", "b"]);
        assert_eq!((parsed.number, parsed.flag), (Some(7), false));
    }

    #[test]
    fn refusals_of_commands_are_one_paragraph() {
        let arguments = CommandArguments::default().option("number", "x");
        let refused = arguments
            .values(["a"])
            .parse::<ExampleArgs>()
            .err()
            .unwrap();
        let message = refused.to_string();
        assert!(message.starts_with("invalid value 'x'"), "{message}");
        assert!(!message.contains("Usage"), "{message}");
    }
}
