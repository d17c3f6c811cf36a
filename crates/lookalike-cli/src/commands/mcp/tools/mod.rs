//! The tools: for each a description, its parameters, and the run of a command.

mod comparison;
mod duplicates;
mod passages;
mod removal;
mod text_check;

use anyhow::Result;
use lookalike::Recipe;
use lookalike::plan::SimilarityMeasure;
use serde_json::{Map, Value, json};

use super::answer::ToolAnswer;
use super::call_watch::CallWatch;
use super::tool_input::{ParameterKind, ToolInput, ToolParameter, input_schema};
use super::tool_server::ToolServer;

/// A tool.
pub(super) struct ToolDescription {
    pub(super) name: &'static str,
    title: &'static str,
    description: &'static str,
    parameters: &'static [ToolParameter],
    /// Parameters that exist only if the server may insert. A tool without any changes nothing.
    insert_parameters: &'static [ToolParameter],
    /// `true` if it may ask another machine.
    is_open_world: bool,
    run: fn(&ToolServer, &ToolInput, &CallWatch) -> Result<ToolAnswer>,
}

/// All tools, in the order in which a client lists them.
pub(super) static TOOLS: [ToolDescription; 5] = [
    duplicates::TOOL,
    passages::TOOL,
    comparison::TOOL,
    text_check::TOOL,
    removal::TOOL,
];

impl ToolDescription {
    fn parameters_of(
        &self,
        server: &ToolServer,
    ) -> impl Iterator<Item = &'static ToolParameter> + Clone {
        let inserting: &[_] = if server.allows_insert() {
            self.insert_parameters
        } else {
            &[]
        };
        self.parameters.iter().chain(inserting)
    }

    /// Returns the description as `tools/list` has it.
    pub(super) fn describe(&self, server: &ToolServer) -> Value {
        let inserts = server.allows_insert() && !self.insert_parameters.is_empty();
        json!({
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": input_schema(self.parameters_of(server)),
            "annotations": {
                "title": self.title,
                "readOnlyHint": !inserts,
                "destructiveHint": false,
                "idempotentHint": !inserts,
                "openWorldHint": self.is_open_world,
            },
        })
    }

    /// Runs the tool.
    ///
    /// # Errors
    /// If the arguments are refused, or the run fails.
    pub(super) fn run_tool(
        &self,
        server: &ToolServer,
        arguments: Map<String, Value>,
        watch: &CallWatch,
    ) -> Result<ToolAnswer> {
        let input = ToolInput::check_arguments(arguments, self.parameters_of(server))?;
        watch.stop_if_over();
        (self.run)(server, &input, watch)
    }
}

/// Kinds and descriptions of parameters that several tools have.
const FIELD_NAME: ParameterKind = ParameterKind::Text { max_bytes: 1000 };
const ID_TEXT: ParameterKind = ParameterKind::Text { max_bytes: 4096 };
const RECIPE_NAME: ParameterKind =
    ParameterKind::Choice(|| Recipe::NAMES.map(str::to_owned).to_vec());
const MEASURE_NAME: ParameterKind = ParameterKind::Choice(|| {
    let names = SimilarityMeasure::ALL
        .into_iter()
        .map(SimilarityMeasure::name);
    names.map(str::to_owned).collect()
});

const TEXT_FIELD: ToolParameter = ToolParameter::optional(
    "text_field",
    FIELD_NAME,
    "Field of a row with the text; several are separated by commas. Default: text. Plain text needs none",
);
const ID_FIELD: ToolParameter = ToolParameter::optional(
    "id_field",
    FIELD_NAME,
    "Field of a row with its id. Default: id if the first row has it, else the row number",
);
const THRESHOLD: ToolParameter = ToolParameter::optional(
    "threshold",
    ParameterKind::Share,
    "Least similarity of a match. Default: 0.75",
);
const MEASURE: ToolParameter = ToolParameter::optional(
    "measure",
    MEASURE_NAME,
    "Measure of similarity. Default: jaccard",
);
const RECIPE: ToolParameter = ToolParameter::optional(
    "recipe",
    RECIPE_NAME,
    "Recipe that turns texts into features. Default: default",
);

/// Returns a number as an option of a command has it.
fn spell_number(number: Option<f64>) -> Option<String> {
    number.map(|number| number.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_different() {
        let mut names: Vec<_> = TOOLS.iter().map(|tool| tool.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), TOOLS.len());
        for tool in &TOOLS {
            let parameters = tool.parameters.iter().chain(tool.insert_parameters);
            let mut names: Vec<_> = parameters.map(|parameter| parameter.name).collect();
            let count = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), count, "{}", tool.name);
        }
    }
}
