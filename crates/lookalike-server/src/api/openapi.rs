//! The OpenAPI 3.1 description of all calls, made from their table.

use lookalike::Recipe;
use lookalike::passages::PassageSettings;
use lookalike::plan::{CandidateRule, EditUnit, MatchMethod, SimilarityMeasure};
use lookalike_documents::DocumentKind;
use lookalike_options::fingerprint_notation::FingerprintNotation;
use lookalike_options::sketch_kind::SketchKind;
use lookalike_store::StoredRecipe;
use serde_json::{Map, Value, json};

use crate::access::AccessRole;
use crate::activity::MAX_SAMPLES;
use crate::api::decision_schemas::{decision_parameter, decision_schemas};
use crate::api::documents::{
    CLUSTERS_ON_PAGE, CLUSTERS_WITH_PREFERRED, COMPARED_ON_PAGE, MAX_MATCHES, MEMBER_LIMITS,
    MEMBERS_ON_PAGE, MOST_COMPARED,
};
use crate::api::listing::{DOCUMENTS_ON_PAGE, MAX_CONDITIONS, MAX_IDS};
use crate::api::problem::ProblemCode;
use crate::api::recipe_upload::{MAX_PARTS, MAX_UPLOAD_BYTES};
use crate::api::replicated::AT_LEAST;
use crate::api::router::{ApiCall, CALLS, NamedPart};
use crate::api::texts::{MAX_DOCUMENTS, MAX_SOURCES, REPORT_LANGUAGES};
use crate::api::{extraction, forms};
use crate::collections::MAX_ALIASES;
use crate::collections::nearest_document::MAX_COMPARED;
use crate::json::settings::CHANGEABLE_SETTINGS;

/// Returns the OpenAPI document.
pub(crate) fn openapi_document() -> Value {
    let mut paths = Map::new();
    for call in &CALLS {
        let path = paths.entry(call.path).or_insert_with(|| json!({}));
        path[call.method.as_str().to_ascii_lowercase()] = describe_operation(call);
        for (named_path, named) in call.named_paths() {
            let path = paths.entry(named_path).or_insert_with(|| json!({}));
            path[call.method.as_str().to_ascii_lowercase()] = describe_named(call, named);
        }
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "lookalike",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Checks documents for near-duplicates and inserts them, in one step. Every response \
                has the header X-Request-Id: that of the request, or a new one.",
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "paths": paths,
        "components": {
            "schemas": all_schemas(),
            "securitySchemes": { "key": { "type": "http", "scheme": "bearer" } },
            "responses": shared_responses(),
        },
    })
}

fn schema_reference(schema: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{schema}") })
}

fn describe_operation(call: &ApiCall) -> Value {
    let (status, schema) = call.gives;
    let mut good = json!({ "description": answer_description(call) });
    if let Some(schema) = schema {
        let schema = schema_reference(schema);
        good["content"] = match call.name {
            "export" => json!({ "application/x-ndjson": lines_schema(schema) }),
            "learn_forms" => json!({
                "application/json": { "schema": schema },
                forms::TOML_TYPE: { "schema": { "type": "string" } },
            }),
            _ => json!({ "application/json": { "schema": schema } }),
        };
    }
    let mut parameters = parameters(call);
    let mut operation = json!({
        "operationId": call.name,
        "summary": call.about,
        "responses": problem_responses(call),
    });
    if let Some((schema, many)) = call.takes {
        let media_type = match call.name {
            "put_recipe" => "multipart/form-data",
            "extract" => extraction::FILE_TYPE,
            _ => "application/json",
        };
        let mut content = json!({ media_type: { "schema": schema_reference(schema) } });
        if let Some(example) = body_example(call.name) {
            content[media_type]["example"] = example;
        }
        if many {
            content["application/x-ndjson"] = lines_schema(schema_reference(schema));
        }
        // The answer to decisions has all lines in one object.
        if many && call.name != "decide" {
            good["content"]["application/x-ndjson"] = lines_schema(schema_reference("LineVerdict"));
        }
        parameters.push(encoding_parameter());
        operation["requestBody"] = json!({ "required": true, "content": content });
    }
    operation["parameters"] = parameters.into();
    operation["responses"][status.to_string()] = good.clone();
    if call.name == "ready" {
        operation["responses"]["503"] = good.clone();
    }
    if status == 201 && call.method == axum::http::Method::PUT {
        operation["responses"]["200"] = good;
    }
    if call.role != AccessRole::Anyone {
        operation["security"] = json!([{ "key": [] }, {}]);
        operation["description"] = format!("Needs the role {}.", call.role.role_name()).into();
    }
    operation
}

/// Returns the operation of a call at the path of another one, where its last part has a fixed value.
fn describe_named(call: &ApiCall, (name, value): NamedPart) -> Value {
    let mut operation = describe_operation(call);
    operation["operationId"] = format!("{}_named_{value}", call.name).into();
    operation["summary"] = format!("{} (the {name} `{value}`)", call.about).into();
    if let Some(parameters) = operation["parameters"].as_array_mut() {
        parameters.retain(|parameter| parameter["name"] != name);
    }
    operation
}

/// Returns an example of the body of a call, where the schema alone does not show the use.
fn body_example(call: &str) -> Option<Value> {
    match call {
        "put_recipe" => {
            let recipe = example_recipe();
            let contents = recipe.files.iter_contents();
            let contents = contents.map(|(_, it)| String::from_utf8_lossy(it).into_owned());
            Some(json!({ "recipe": recipe.to_toml(), "file": contents.collect::<Vec<_>>() }))
        }
        "decide" => Some(json!({ "label": "different", "a_id": "1", "b_id": "2" })),
        "get_documents" | "delete_documents" => Some(json!({ "ids": ["1", "2"] })),
        "put_collection" => Some(json!({ "recipe": "mine", "window": "2d" })),
        "patch_collection" => Some(json!({ "window": "7d", "on_conflict": "replace" })),
        "segment" => Some(json!({ "recipe": "mine", "texts": ["the keeper of the lamp"] })),
        "fingerprint" => Some(json!({ "recipe": "mine", "texts": ["the keeper of the lamp"] })),
        "compare" => Some(json!({
            "recipe": "mine",
            "pairs": [{ "a": "the keeper of the lamp", "b": "keeper of a lamp" }],
        })),
        _ => None,
    }
}

fn min_length_schema() -> Value {
    json!({
        "type": "integer",
        "minimum": 2,
        "maximum": PassageSettings::MAX_WORDS,
        "description": "Shortest passage in words, 12 by default; a word counts as two characters of a script \
            without spaces.",
    })
}

fn reworded_schema() -> Value {
    json!({
        "type": "boolean",
        "description": "Also find passages that share many of their rarer words, in whatever order; not by default.",
    })
}

fn base_schema() -> Value {
    json!({
        "type": "array",
        "items": { "type": "string" },
        "description": format!("Texts that all were given, such as a question or a form, at most {MAX_DOCUMENTS}. They \
            are no part of any passage: each run of five words (ten characters) of them counts for nothing."),
    })
}

fn directed_schema() -> Value {
    json!({
        "type": "boolean",
        "description": "True if it is known which of two documents is the source, because sources were given. \
            Otherwise the names `source` and `a` say only which one was read first.",
    })
}

fn partial_schema() -> Value {
    json!({
        "type": "boolean",
        "description": "If true, a search that takes more work or memory than a request may is answered with what was \
            found so far, and `complete` is false. By default it is refused with 422 `too_costly`.",
    })
}

fn complete_schema() -> Value {
    json!({
        "type": "boolean",
        "description": "False if the search ended early because of `partial`.",
    })
}

/// Returns the schema of a passage of one of several documents, as a row of the table of passages.
fn document_passage_schema() -> Value {
    let (text, number) = (
        json!({ "type": "string" }),
        json!({ "type": "integer", "minimum": 0 }),
    );
    object_schema(
        &[
            "document",
            "source",
            "start",
            "end",
            "source_start",
            "source_end",
            "length",
            "similarity",
            "kind",
        ],
        json!({
            "document": text,
            "source": text,
            "start": number,
            "end": number,
            "source_start": number,
            "source_end": number,
            "length": number,
            "similarity": { "type": "number", "minimum": 0, "maximum": 1 },
            "kind": text,
        }),
    )
}

/// Returns the schema of a passage that two texts share.
fn passage_schema() -> Value {
    let spot = || {
        let count = |least: u32| json!({ "type": "integer", "minimum": least });
        object_schema(
            &["start", "end", "line"],
            json!({ "start": count(0), "end": count(0), "line": count(1) }),
        )
    };
    object_schema(
        &["a", "b", "length", "similarity", "kind"],
        json!({
            "a": spot(),
            "b": spot(),
            "length": { "type": "integer", "minimum": 1 },
            "similarity": { "type": "number", "minimum": 0, "maximum": 1 },
            "kind": { "enum": ["verbatim", "edited", "reordered", "reworded"] },
        }),
    )
}

/// Returns the recipe of the examples: words without those of a list.
fn example_recipe() -> Recipe {
    let words = Recipe::built_in("words-1")
        .expect("it is built in")
        .to_toml();
    let toml = format!("{words}\n[filter]\nstopwords = \"stopwords.txt\"\n");
    let read = Recipe::read_with_files(&toml, &|_| Some(b"the\nof\n"[..].into()));
    Recipe {
        name: "mine".to_owned(),
        ..read.expect("a list of two words is valid")
    }
}

/// Returns the content of a body with one value per line. OpenAPI 3.1 cannot describe the schema of a line;
/// version 3.2 has `itemSchema`.
fn lines_schema(line: Value) -> Value {
    json!({
        "schema": { "type": "string", "description": "One JSON value per line; x-itemSchema has \
            the schema of a line." },
        "x-itemSchema": line,
    })
}

/// Returns the description of a successful response.
fn answer_description(call: &ApiCall) -> &'static str {
    match (call.gives, call.takes) {
        ((204, _), _) => "Deleted.",
        _ if call.name == "export" => {
            "The documents that exist when the export begins, in the order of `seq`; those deleted or replaced \
             meanwhile are left out. Needs HTTP/1.1: a response that ends without the last chunk is incomplete."
        }
        _ if call.name == "decide" => "The effect of each decision, in their order.",
        (_, Some((_, true))) => "The verdict; for many documents, one answer each, in their order.",
        ((201, _), _) if call.name == "put_recipe" => {
            "Created now (201); exists with the same content, or replaced another recipe (200)."
        }
        ((201, _), _) => "Created now (201), or exists with the same content (200).",
        _ => "The result.",
    }
}

/// Returns the error responses of a call. All have the same form and differ in their code.
fn problem_responses(call: &ApiCall) -> Value {
    let mut problems = json!({ "default": { "$ref": "#/components/responses/Problem" } });
    let mut may_be = |status: &str, response: &str| {
        let response = format!("#/components/responses/{response}");
        problems[status] = json!({ "$ref": response });
    };
    if call.takes.is_some() {
        may_be("413", "TooLarge");
        may_be("429", "Busy");
    }
    if matches!(
        call.name,
        "insert"
            | "query"
            | "put_collection"
            | "patch_collection"
            | "delete_collection"
            | "snapshot"
            | "restore"
            | "delete_snapshot"
            | "put_alias"
            | "change_aliases"
            | "put_recipe"
            | "delete_recipe"
    ) {
        may_be("409", "Conflict");
    }
    if matches!(
        call.name,
        "insert"
            | "delete_document"
            | "delete_documents"
            | "decide"
            | "withdraw_decision"
            | "put_collection"
            | "patch_collection"
            | "snapshot"
            | "put_recipe"
    ) {
        may_be("507", "DiskFull");
    }
    if call.path.contains("{collection}") || matches!(call.name, "put_recipe" | "delete_recipe") {
        may_be("503", "Unavailable");
    }
    problems
}

/// Returns the responses that calls have in common.
fn shared_responses() -> Value {
    let problem = |about: &str| {
        json!({
            "description": about,
            "content": { "application/problem+json": { "schema": schema_reference("Problem") } },
        })
    };
    let retried = |about: &str| {
        let mut response = problem(about);
        response["headers"] = json!({
            "Retry-After": {
                "description": "Seconds after which the same request may succeed.",
                "schema": { "type": "integer", "minimum": 1 },
            },
        });
        response
    };
    json!({
        "Problem": problem("The error."),
        "Conflict": problem("The id has other content, or the name is in use."),
        "TooLarge": problem("The document or the request exceeds a limit."),
        "Busy": retried("The queue is full or the rate limit is reached: send the same request \
            again."),
        "Unavailable": retried(
            "The collection is being opened or deleted, or accepts no more writes (then without \
             Retry-After).",
        ),
        "DiskFull": retried("The disk is nearly full: writes are refused."),
    })
}

/// Description of the parameter that waits for a document.
const ABOUT_AT_LEAST: &str = "With a shared log: waits until this replica has applied the document with this `seq`, \
    up to 10 s, and is 503 `behind` after that. The header `Lookalike-Position` waits in the same way for the record \
    with its number; the response to a change has it.";

/// Returns the parameter for the compression of a body.
fn encoding_parameter() -> Value {
    json!({
        "name": "Content-Encoding",
        "in": "header",
        "description": "Compression of the body; limits apply to the expanded body.",
        "schema": { "enum": ["gzip", "zstd", "identity"] },
    })
}

fn parameters(call: &ApiCall) -> Vec<Value> {
    let in_path = call.path.split('/').filter_map(|part| {
        let name = part.strip_prefix('{')?.strip_suffix('}')?;
        let schema = match name {
            "collection" | "alias" | "recipe" | "snapshot" => short_name(),
            _ => json!({ "type": "string" }),
        };
        Some(json!({ "name": name, "in": "path", "required": true, "schema": schema }))
    });
    if call.name == "list_documents" {
        return in_path.chain(listing_parameters()).collect();
    }
    let count = |(usual, most): (usize, usize)| json!({ "type": "integer", "minimum": 1, "maximum": most, "default": usual });
    let in_query = call.parameters.iter().map(|name| {
        if *name == "prefer" {
            return preference_parameter(call);
        }
        let of_decisions = decision_parameter(call.name, name);
        if let Some((schema, about)) = of_decisions {
            return query_parameter(name, schema, about.to_owned());
        }
        if *name == META_FILTER {
            let whose = "Only clusters whose kept document has";
            return query_parameter(META_FILTER, json!({ "type": "string" }), describe_filter(whose));
        }
        let (schema, about) = match (*name, call.name) {
            ("id", _) => (
                json!({ "type": "string" }),
                "The id, if the path ends in `-`. Clients resolve the ids `.` and `..` in a path, so these stand here.",
            ),
            ("after", "get_cluster") => (
                json!({ "type": "integer", "minimum": 0 }),
                "The `next` of the previous response: only the members after it are listed.",
            ),
            (AT_LEAST, _) => (json!({ "type": "integer", "minimum": 0 }), ABOUT_AT_LEAST),
            ("format", _) => (
                json!({ "enum": ["json", "toml"], "default": "json" }),
                "`toml` for the table alone, as a file of a recipe.",
            ),
            ("collection", _) => (short_name(), "Only the snapshots of this collection."),
            ("name", _) => {
                let about = "Name of the file. Its extension says what the file is: .txt, .md, .html, .docx or .pdf.";
                let schema = json!({ "type": "string", "minLength": 1 });
                return json!({ "name": name, "in": "query", "required": true, "description": about, "schema": schema });
            }
            ("after", _) => (
                json!({ "type": "string" }),
                "The `next` of the previous page.",
            ),
            ("limit", "query") => (
                json!({ "type": "integer", "minimum": 1, "maximum": MAX_MATCHES }),
                "Number of `matches` in the response, of one document: the most similar first, and of \
                 equally similar ones the earliest first. Without it, there is no such field.",
            ),
            ("nearest", _) => (
                json!({ "type": "boolean", "default": false }),
                "True if the response to one document that matches nothing has `nearest`; needs `limit`.",
            ),
            ("limit", _) => (
                count(CLUSTERS_ON_PAGE),
                "Number of clusters per page; multiplied by `members`, at most 100,000. A page can have fewer, even \
                 none, and still a `next`: it ends after 16,384 examined documents.",
            ),
            (_, "list_clusters") => (
                count(MEMBERS_ON_PAGE),
                "Number of members listed for each cluster, the newest first.",
            ),
            _ => (
                count(MEMBER_LIMITS),
                "Number of members listed, the newest first; `more` is true if there are others. If many members \
                 were deleted, a response can have fewer, even none, although there are others.",
            ),
        };
        json!({ "name": name, "in": "query", "description": about, "schema": schema })
    });
    in_path.chain(in_query).collect()
}

/// Returns the parameters of a list of documents.
fn listing_parameters() -> impl Iterator<Item = Value> {
    let (usual, most) = DOCUMENTS_ON_PAGE;
    let parameters = [
        (
            "after",
            json!({ "type": "integer", "minimum": 0 }),
            "The `next` of the previous page, or any `seq`: only documents with a larger `seq` are listed."
                .to_owned(),
        ),
        (
            "limit",
            json!({ "type": "integer", "minimum": 1, "maximum": most, "default": usual }),
            "Number of documents per page. A page can have fewer, even none, and still a `next`: it ends after \
             16 MiB, and after 16,384 examined documents."
                .to_owned(),
        ),
        (
            "text",
            json!({ "type": "boolean", "default": false }),
            "True if the documents have their `text`.".to_owned(),
        ),
        (
            "verdict",
            json!({ "enum": ["kept", "duplicate"] }),
            "Only documents with this verdict.".to_owned(),
        ),
        (
            META_FILTER,
            json!({ "type": "string" }),
            describe_filter("Only documents with"),
        ),
        (
            AT_LEAST,
            json!({ "type": "integer", "minimum": 0 }),
            ABOUT_AT_LEAST.to_owned(),
        ),
    ];
    parameters
        .into_iter()
        .map(|(name, schema, about)| query_parameter(name, schema, about))
}

/// Name of the parameters for conditions on `meta`.
const META_FILTER: &str = "meta.FIELD";

/// Returns a parameter of a query by its name, schema and description.
fn query_parameter(name: &str, schema: Value, about: String) -> Value {
    json!({ "name": name, "in": "query", "description": about, "schema": schema })
}

/// Describes the conditions on `meta`; `whose` says of what they hold.
fn describe_filter(whose: &str) -> String {
    format!(
        "{whose} this value of the top-level field FIELD of `meta`, for example `meta.source=news`; of several, at most \
         {MAX_CONDITIONS}, all must hold. A value that is a JSON number, `true`, `false`, `null` or string in quotes is \
         compared as such, numbers by their value; any other is a string. `null` also stands for a missing field. Names \
         and values are percent-encoded, and `+` is a blank."
    )
}

/// Returns the parameter that asks for the preferred document of clusters.
fn preference_parameter(call: &ApiCall) -> Value {
    let (compared, page) = match call.name {
        "list_clusters" => (
            COMPARED_ON_PAGE,
            format!(" `limit` is then at most {CLUSTERS_WITH_PREFERRED}."),
        ),
        _ => (MOST_COMPARED, String::new()),
    };
    json!({
        "name": "prefer",
        "in": "query",
        "schema": { "type": "string", "pattern": "^(max|min):.+$" },
        "description": format!(
            "`max:FIELD` or `min:FIELD`: each cluster then has `preferred`, the document with the largest or \
             smallest value of this top-level field of `meta`, of the representative and the {compared} newest \
             members. Values are ordered as by `--keep max:`; documents without the field come last, and of \
             equal ones the earliest is preferred. Verdicts do not depend on it.{page}"
        ),
    })
}

/// Returns the schema of the name of a collection, recipe or snapshot.
fn short_name() -> Value {
    json!({ "type": "string", "pattern": "^[a-z0-9][a-z0-9_-]{0,63}$" })
}

fn object_schema(required: &[&str], properties: Value) -> Value {
    json!({ "type": "object", "required": required, "properties": properties })
}

/// Returns the schema of an object without other fields. Optional fields may also be null.
fn strict_object_schema(required: &[&str], mut properties: Value) -> Value {
    let fields = properties.as_object_mut().into_iter().flatten();
    for (_, schema) in fields.filter(|(name, _)| !required.contains(&name.as_str())) {
        allow_null(schema);
    }
    let mut object = object_schema(required, properties);
    object["additionalProperties"] = false.into();
    object
}

fn allow_null(schema: &mut Value) {
    if let Some(names) = schema.get_mut("enum").and_then(Value::as_array_mut) {
        names.push(Value::Null);
    }
    if let Some(Value::String(one)) = schema.get("type") {
        schema["type"] = json!([one, "null"]);
    }
}

fn list_schema(of: Value) -> Value {
    json!({ "type": "array", "items": of })
}

fn all_schemas() -> Value {
    let mut schemas = document_schemas();
    for more in [
        listing_schemas(),
        administration_schemas(),
        decision_schemas(),
    ] {
        for (name, schema) in more.as_object().into_iter().flatten() {
            schemas[name] = schema.clone();
        }
    }
    schemas
}

/// Returns the schema of the nearest document of a query.
fn nearest_schema(text: &Value, number: &Value) -> Value {
    let document = object_schema(
        &["id", "similarity", "seq"],
        json!({ "id": text, "similarity": { "type": "number" }, "seq": number }),
    );
    let mut nearest = object_schema(
        &["document", "considered", "complete"],
        json!({
            "document": {
                "description": "The kept document that is most similar by the measure of the collection (by the Jaccard \
                    index if that is `none`), the earliest of several, without the one with this id. Null if none of \
                    those compared shares anything.",
                "oneOf": [document, { "type": "null" }],
            },
            "considered": { "type": "integer", "minimum": 0, "description": "Number of kept documents that were compared." },
            "complete": {
                "type": "boolean",
                "description": format!("True if these are all kept documents. Of more than {MAX_COMPARED}, those are \
                    compared that share most of their words with the document in the same order; none while the \
                    passages of the collection are being indexed."),
            },
        }),
    );
    nearest["description"] = "With `nearest=true`, and only if nothing matches.".into();
    nearest
}

/// Returns the schemas of everything but aliases and snapshots.
fn document_schemas() -> Value {
    // Names of collections for callers who may read; only their number for others.
    let names_or_count = json!({
        "oneOf": [list_schema(json!({ "type": "string" })), { "type": "integer", "minimum": 0 }],
    });
    let text = json!({ "type": "string" });
    let id = json!({ "type": "string", "minLength": 1, "maxLength": 512 });
    let number = json!({ "type": "integer", "minimum": 0 });
    let flag = json!({ "type": "boolean" });
    let period = json!({ "type": "string", "pattern": "^[0-9.]+([eE][+-]?[0-9]+)?[smhdw]$" });
    let any = json!({});
    let whole = json!({ "type": "integer", "minimum": i64::MIN, "maximum": u64::MAX });
    let named_text = strict_object_schema(&["id", "text"], json!({ "id": text, "text": text }));
    let answer = answer_schema(&text);
    let mut asked = answer.clone();
    for (name, about) in [
        ("id", "Null if the request has no id."),
        (
            "cluster",
            "Null if the request has no id and nothing matches.",
        ),
    ] {
        asked["properties"][name] = json!({ "type": ["string", "null"], "description": about });
    }
    asked["properties"]["matches"] = json!({
        "description": "With `limit`: the kept documents that match, without the one with this id.",
        "type": "array",
        "items": object_schema(&["id", "similarity", "seq"], json!({
            "id": text, "similarity": { "type": "number" }, "seq": number,
        })),
    });
    asked["properties"]["nearest"] = nearest_schema(&text, &number);
    let mut stored = answer.clone();
    for (name, schema) in [
        ("of_gone", &flag),
        ("time", &any),
        ("text", &text),
        ("fingerprint", &text),
        ("meta", &any),
    ] {
        stored["properties"][name] = schema.clone();
    }
    let codes: Vec<_> = ProblemCode::ALL
        .iter()
        .map(|code| code.code_name())
        .collect();
    json!({
        "Problem": object_schema(&["type", "title", "status", "code", "detail"], json!({
            "type": text, "title": text, "status": number, "code": { "enum": codes }, "detail": text,
            "request_id": {
                "type": "string",
                "description": "The X-Request-Id of the request, or a new id, as in the header of the response and \
                    in the log; not in problems of single lines.",
            },
        })),
        "CollectionSettings": strict_object_schema(&[], settings_schema(&text, &period)),
        "SettingsChange": change_schema(&text, &period),
        "Collection": object_schema(&["name", "recipe_id", "settings"], json!({
            "name": text, "recipe_id": text, "settings": schema_reference("CollectionSettings"),
            "created": {
                "$ref": "#/components/schemas/CollectionSettings",
                "description": "Settings at the creation, if they have been changed; `store repair` needs them \
                    if the manifest is lost.",
            },
        })),
        "CollectionList": object_schema(&["collections"], json!({
            "collections": list_schema(object_schema(&["name", "state"], json!({
                "name": text,
                "state": {
                    "enum": ["opening", "open", "full", "damaged", "unreadable", "stopped", "failed", "deleting"],
                },
            }))),
        })),
        "Document": strict_object_schema(&["id"], sent_schema(json!({ "oneOf": [id, whole] }))),
        "QueryDocument": strict_object_schema(&[], sent_schema(json!({
            "description": "Optional. If the collection has the id: the same content gets its \
                            first answer; other content is refused, or, in a collection that \
                            replaces, the stored document is ignored.",
            "oneOf": [id, whole, { "type": "null" }],
        }))),
        "Verdict": answer,
        "QueryVerdict": asked,
        "RefusedLine": object_schema(&["id", "line", "problem"], json!({
            "id": { "type": ["string", "null"] },
            "line": { "type": "integer", "minimum": 1 },
            "problem": schema_reference("Problem"),
        })),
        "LineVerdict": {
            "description": "The answer to one line, in the order of the lines; blank lines get no \
                answer.",
            "oneOf": [schema_reference("QueryVerdict"), schema_reference("RefusedLine")],
        },
        "StoredDocument": stored,
        "Cluster": object_schema(&["cluster", "kept", "members", "more", "next"], json!({
            "cluster": text,
            "kept": schema_reference("Verdict"),
            "members": list_schema(schema_reference("Verdict")),
            "more": flag,
            "next": { "type": ["integer", "null"], "description": "Value of `after` for the next \
                members." },
            "preferred": schema_reference("PreferredDocument"),
        })),
        "PreferredDocument": {
            "type": "object",
            "required": ["document", "value", "considered", "complete"],
            "description": "The document of the cluster that `prefer` asks for; only with `prefer`, and not if \
                the cluster has gone meanwhile.",
            "properties": {
                "document": schema_reference("Verdict"),
                "value": { "description": "Value of the field in its `meta`; null if it has none." },
                "considered": {
                    "type": "integer", "minimum": 1,
                    "description": "Number of documents that were compared.",
                },
                "complete": {
                    "type": "boolean",
                    "description": "Whether these are all documents of the cluster. A response compares at most \
                        16 MiB of `meta`.",
                },
            },
        },
        "ClusterPage": object_schema(&["clusters", "next"], json!({
            "clusters": list_schema(schema_reference("Cluster")),
            "next": { "type": ["string", "null"] },
        })),
        "CollectionStats": object_schema(&["rows", "dead_rows", "kept", "partitions", "last_durable_row", "memory"], json!({
            "rows": { "type": "integer", "minimum": 0, "description": "Documents in the \
                collection." },
            "dead_rows": {
                "type": "integer", "minimum": 0,
                "description": "Rows on disk of deleted, replaced or moved documents, and of their \
                    deletions; compaction removes them.",
            },
            "kept": number,
            "partitions": number,
            "last_durable_row": number,
            "memory": { "type": "object", "additionalProperties": number },
            "stopped": { "type": ["string", "null"] },
        })),
        "Activity": object_schema(&["interval_seconds", "bounds_seconds", "samples"], json!({
            "interval_seconds": number,
            "bounds_seconds": list_schema(json!({ "type": "number" })),
            "samples": {
                "type": "array",
                "maxItems": MAX_SAMPLES,
                "description": "The last ten minutes, the oldest interval first; less after a start.",
                "items": object_schema(&["time", "seconds", "kept", "duplicates", "insert_times"], json!({
                    "time": { "type": "string", "format": "date-time", "description": "End of the interval." },
                    "seconds": { "type": "number", "description": "Length of the interval." },
                    "kept": number,
                    "duplicates": number,
                    "insert_times": {
                        "type": "array",
                        "items": number,
                        "description": "Requests to insert by their time: for each of `bounds_seconds` those that took \
                            at most that, without those before, and at last those that took longer. Empty if there \
                            were none.",
                    },
                })),
            },
        })),
        "CompareRequest": strict_object_schema(&["pairs"], {
            let mut properties = matching_schema(&text);
            properties["pairs"] = list_schema(strict_object_schema(&["a", "b"], json!({ "a": text, "b": text })));
            properties
        }),
        "CompareResults": object_schema(&["results"], json!({ "results": list_schema(json!({ "type": "object" })) })),
        "PassagesRequest": strict_object_schema(&["pairs"], json!({
            "pairs": list_schema(strict_object_schema(&["a", "b"], json!({ "a": text, "b": text }))),
            "recipe": text,
            "min_length": min_length_schema(),
            "reworded": reworded_schema(),
            "base": base_schema(),
            "partial": partial_schema(),
        })),
        "PassagesResults": object_schema(&["recipe", "recipe_id", "directed", "results", "complete"], json!({
            "complete": complete_schema(),
            "directed": directed_schema(),
            "recipe": text,
            "recipe_id": text,
            "results": list_schema(object_schema(&["passages", "share_of_a", "share_of_b"], json!({
                "passages": list_schema(passage_schema()),
                "share_of_a": number,
                "share_of_b": number,
            }))),
        })),
        "DocumentPassagesRequest": strict_object_schema(&["documents"], json!({
            "documents": list_schema(named_text.clone()),
            "against": {
                "type": "array",
                "items": named_text,
                "description": format!("Possible sources. Without them, the documents are compared with one another. All \
                    together are at most {MAX_DOCUMENTS}."),
            },
            "recipe": text,
            "min_length": min_length_schema(),
            "reworded": reworded_schema(),
            "base": base_schema(),
            "max_documents": {
                "type": ["integer", "string"],
                "description": "In how many documents a run of five words (ten characters) may be before no two documents \
                    are compared for it alone: a number from 1, a percentage such as \"50%\", or \"none\". By default 20 \
                    documents, or 0.1% of them if that is more.",
            },
            "report": {
                "type": "boolean",
                "description": "Also answer with the report, as `lookalike passages --report` writes it; not by default.",
            },
            "language": { "enum": REPORT_LANGUAGES, "description": "Language in which the report opens." },
            "partial": partial_schema(),
        })),
        "DocumentPassages": object_schema(&["recipe", "recipe_id", "directed", "summary", "passages", "complete"], json!({
            "complete": complete_schema(),
            "directed": directed_schema(),
            "recipe": text,
            "recipe_id": text,
            "summary": { "type": "object", "description": "Totals, as `lookalike passages --json` prints them." },
            "passages": list_schema(document_passage_schema()),
            "report": { "type": "string", "description": "The report: one HTML page." },
        })),
        "SourcesRequest": strict_object_schema(&["text"], json!({
            "text": text,
            "min_length": {
                "type": "integer",
                "minimum": PassageSettings::default().min_words(),
                "maximum": PassageSettings::MAX_WORDS,
                "description": "Shortest passage in words, 12 by default; a word counts as two characters of a \
                    script without spaces.",
            },
            "limit": { "type": "integer", "minimum": 1, "maximum": MAX_SOURCES, "description": "Sources, 10 by default." },
            "base": base_schema(),
            "partial": partial_schema(),
        })),
        "SourcesResult": object_schema(&["candidates", "examined", "found", "sources", "complete"], json!({
            "complete": complete_schema(),
            "candidates": number,
            "examined": number,
            "found": number,
            "sources": list_schema(object_schema(
                &["id", "cluster", "seq", "copied", "longest", "passages", "share_of_a", "share_of_b"],
                json!({
                    "id": text,
                    "cluster": text,
                    "seq": number,
                    "copied": number,
                    "longest": number,
                    "passages": list_schema(passage_schema()),
                    "share_of_a": number,
                    "share_of_b": number,
                }),
            )),
        })),
        "DocumentFile": {
            "type": "string",
            "format": "binary",
            "description": "The bytes of the file, at most those of a document (`--max-document`), as for its text. \
                Text, Markdown and HTML are UTF-8, UTF-16 with its mark, or in the encoding that their bytes suggest.",
        },
        "ExtractedFile": object_schema(&["name", "kind", "text", "guessed_encoding"], json!({
            "name": text,
            "kind": { "enum": DocumentKind::NAMES },
            "text": text,
            "guessed_encoding": {
                "type": ["string", "null"],
                "description": "Encoding in which the file was read, if its bytes alone suggest it; otherwise null.",
            },
        })),
        "FingerprintRequest": strict_object_schema(&["texts"], json!({
            "texts": list_schema(text.clone()),
            "recipe": text,
            "method": { "enum": SketchKind::METHODS.map(MatchMethod::name) },
            "digits": { "enum": FingerprintNotation::ALL.map(FingerprintNotation::option_name) },
            "sentences": { "type": "integer", "minimum": 1 },
        })),
        "FingerprintResults": object_schema(&["recipe", "recipe_id", "fingerprints"], json!({
            "recipe": text,
            "recipe_id": text,
            "fingerprints": list_schema(json!({
                "oneOf": [text, list_schema(number.clone()), { "type": "null" }],
            })),
        })),
        "SegmentRequest": strict_object_schema(&["texts"], json!({
            "texts": list_schema(text.clone()), "recipe": text, "weights": flag,
        })),
        "SegmentResults": object_schema(&["recipe", "recipe_id", "results"], json!({
            "recipe": text, "recipe_id": text, "results": list_schema(json!({ "type": "object" })),
        })),
        "Liveness": object_schema(&["live"], json!({ "live": flag })),
        "Readiness": readiness_schema(&flag, &names_or_count),
    })
}

/// Returns the schema of the answer about readiness.
fn readiness_schema(flag: &Value, names_or_count: &Value) -> Value {
    object_schema(
        &[
            "ready",
            "collections",
            "opening",
            "stopped",
            "failed",
            "full",
            "damaged",
            "unreadable",
        ],
        json!({
            "ready": flag,
            "collections": { "type": "integer", "minimum": 0 },
            "full": names_or_count,
            "damaged": names_or_count,
            "unreadable": names_or_count,
            "opening": names_or_count,
            "stopped": names_or_count,
            "failed": names_or_count,
            "log": {
                "type": "object",
                "description": "With a shared log: how far this replica is, why it `stopped`, and the error of the \
                                store while the log is `unavailable`; to callers who may not read, only if it is so.",
            },
        }),
    )
}

/// Returns the schemas of calls on many documents.
fn listing_schemas() -> Value {
    let text = json!({ "type": "string" });
    let id = json!({ "type": ["string", "integer"] });
    let mut deletion = object_schema(
        &["id"],
        json!({
            "id": text,
            "deleted": { "type": "boolean", "description": "False if no document has the id." },
            "problem": schema_reference("Problem"),
        }),
    );
    deletion["description"] =
        "The result for one id: `deleted`, or the `problem` that prevented it.".into();
    json!({
        "LearnedForms": object_schema(&["forms", "documents", "complete", "table"], json!({
            "forms": { "type": "integer" },
            "documents": { "type": "integer", "description": "Documents of the clusters that were listed." },
            "complete": { "type": "boolean", "description": "False if clusters were not listed, or texts not read." },
            "table": { "type": "string", "description": "The table of forms, as TOML: a file of a recipe." },
        })),
        "DocumentPage": object_schema(&["documents", "next"], json!({
            "documents": list_schema(schema_reference("StoredDocument")),
            "next": {
                "type": ["integer", "null"], "minimum": 0,
                "description": "Value of `after` for the next page; null at the end. It stays valid whatever is \
                    inserted, deleted or compacted.",
            },
        })),
        "DocumentIds": strict_object_schema(&["ids"], json!({
            "ids": { "type": "array", "items": id, "maxItems": MAX_IDS },
        })),
        "DocumentsRequest": strict_object_schema(&["ids"], json!({
            "ids": { "type": "array", "items": id, "maxItems": MAX_IDS },
            "characters": {
                "type": "integer", "minimum": 0,
                "description": "Largest number of characters of each `text`, from its beginning. Without it, texts are \
                    whole.",
            },
        })),
        "StoredDocuments": object_schema(&["documents"], json!({
            "documents": {
                "type": "array",
                "description": "In the order of the ids; null for an id that no document has.",
                "items": { "oneOf": [schema_reference("StoredDocument"), { "type": "null" }] },
            },
        })),
        "DeletionResults": object_schema(&["results"], json!({
            "results": {
                "type": "array", "items": deletion,
                "description": "In the order of the ids. All deletions are on disk.",
            },
        })),
        "ExportedDocument": object_schema(&["id", "time_us", "seq"], json!({
            "id": text,
            "time_us": { "type": "integer", "description": "Microseconds since 1970." },
            "text": text,
            "fingerprint": { "type": "string", "description": "32 hexadecimal digits." },
            "meta": { "type": "string", "description": "The JSON of the document's `meta`, in a string." },
            "seq": { "type": "integer", "minimum": 1 },
            "of": text,
            "similarity": { "type": "number" },
        })),
    })
}

/// Returns the schema of an uploaded recipe, each property of which is a part of the body.
fn recipe_upload_schema(text: &Value) -> Value {
    let mut upload = object_schema(
        &["recipe"],
        json!({
            "recipe": text,
            "file": {
                "description": "A file that the recipe names, with its name there as the filename; \
                    one part per file.",
                "type": "array",
                "items": { "type": "string", "format": "binary" },
                "maxItems": MAX_PARTS - 1,
            },
        }),
    );
    upload["properties"]["recipe"]["description"] = "The recipe as TOML. It gets the name of the \
        path. If it has a table `files`, each file must have the digest there."
        .into();
    upload["description"] = format!(
        "The parts of the body, at most {MAX_UPLOAD_BYTES} bytes, and at most 2/9 of --max-queue."
    )
    .into();
    upload["additionalProperties"] = false.into();
    upload
}

fn recipe_schema(text: &Value, number: &Value) -> Value {
    let file = object_schema(
        &["name", "bytes", "digest"],
        json!({ "name": text, "bytes": number, "digest": text }),
    );
    let mut recipe = object_schema(
        &["name", "recipe_id", "recipe", "files", "collections"],
        json!({
            "name": text,
            "recipe_id": text,
            "recipe": { "type": "string", "description": "The recipe as TOML, with the digests of its files." },
            "files": list_schema(file),
            "collections": {
                "type": "array", "items": text,
                "description": "Open collections that use it. While there is one, the name keeps its \
                    content.",
            },
        }),
    );
    let example = StoredRecipe::from_recipe(&example_recipe());
    recipe["example"] = json!({
        "name": "mine",
        "recipe_id": example.recipe_id,
        "files": example.files,
        "collections": ["news"],
        "recipe": example.recipe,
    });
    recipe
}

/// Returns the schemas of aliases and snapshots.
fn administration_schemas() -> Value {
    let text = json!({ "type": "string" });
    let number = json!({ "type": "integer", "minimum": 0 });
    let aliases = json!({
        "type": "object",
        "description": "The collection of each alias.",
        "additionalProperties": short_name(),
        "maxProperties": MAX_ALIASES,
    });
    json!({
        "AliasList": object_schema(&["aliases"], json!({ "aliases": aliases })),
        "AliasTarget": strict_object_schema(&["collection"], json!({ "collection": short_name() })),
        "Alias": object_schema(&["alias", "collection"], json!({ "alias": text, "collection": text })),
        "AliasChanges": strict_object_schema(&[], json!({
            "set": aliases,
            "remove": list_schema(short_name()),
        })),
        "SnapshotRequest": strict_object_schema(&["name"], json!({ "name": short_name() })),
        "Snapshot": object_schema(&["collection", "name"], json!({ "collection": text, "name": text })),
        "RecipeUpload": recipe_upload_schema(&text),
        "RecipeList": object_schema(&["recipes"], json!({
            "recipes": list_schema(object_schema(&["name", "state", "recipe_id", "bytes"], json!({
                "name": text,
                "state": { "enum": ["intact", "damaged"] },
                "recipe_id": { "type": ["string", "null"] },
                "bytes": { "type": ["integer", "null"], "description": "Size of all its files." },
            }))),
        })),
        "Recipe": recipe_schema(&text, &number),
        "SnapshotList": object_schema(&["snapshots"], json!({
            "snapshots": list_schema(object_schema(&["collection", "name", "bytes", "time"], json!({
                "collection": text,
                "name": text,
                "bytes": number,
                "time": { "type": "string", "format": "date-time" },
            }))),
        })),
        "RestoreRequest": strict_object_schema(&["snapshot"], json!({
            "snapshot": short_name(),
            "from": {
                "type": "string",
                "description": "The collection of the snapshot. Default: the one in the path.",
            },
        })),
    })
}

fn answer_schema(text: &Value) -> Value {
    object_schema(
        &["id", "verdict", "of", "cluster", "similarity", "seq"],
        json!({
            "id": text,
            "verdict": { "enum": ["kept", "duplicate"] },
            "of": { "type": ["string", "null"] },
            "cluster": text,
            "similarity": { "type": ["number", "null"] },
            "seq": { "type": ["integer", "null"] },
            "record": {
                "type": "integer",
                "minimum": 1,
                "description": "With a shared log, in the lines of the response to a bulk insert: the number of the record \
                                that the document is in, for the header `Lookalike-Position` of later requests.",
            },
        }),
    )
}

fn sent_schema(id: Value) -> Value {
    json!({
        "id": id,
        "text": { "type": "string", "description": "The text, in a collection of texts." },
        "fingerprint": {
            "type": "string",
            "pattern": "^(0x)?[0-9a-fA-F]+$",
            "description": "Hexadecimal digits, in a collection of bare fingerprints.",
        },
        "time": {
            "type": ["number", "string", "null"],
            "description": "Seconds since 1970, or an ISO 8601 date or date and time, in UTC \
                            unless it has an offset. Default: now. A time further ahead of the \
                            wall clock than the skew counts as the wall clock plus the skew.",
        },
        "meta": { "description": "Any JSON value of up to 64 KiB and less than 128 levels; \
            returned byte for byte. An exported line has it as a string of JSON." },
        "time_us": {
            "type": "integer", "minimum": i64::MIN, "maximum": i64::MAX,
            "description": "Microseconds since 1970, in place of `time`. It marks an exported line.",
        },
        "seq": { "type": ["integer", "null"], "minimum": 0, "description": "Only in an exported line, beside `time_us`. It is ignored." },
        "of": { "type": ["string", "null"], "description": "Only in an exported line, beside `time_us`. It is ignored." },
        "similarity": { "type": ["number", "null"], "description": "Only in an exported line, beside `time_us`. It is ignored." },
    })
}

fn matching_schema(text: &Value) -> Value {
    let mut recipe = text.clone();
    recipe["description"] =
        "Name of a recipe, built in or uploaded, or the TOML of a recipe that names no \
        files."
            .into();
    recipe["default"] = "default".into();
    json!({
        "recipe": recipe,
        "method": {
            "enum": MatchMethod::ALL.map(MatchMethod::name),
            "description": "Method that finds candidates. Default: `auto`; `simhash` for bare \
                fingerprints.",
        },
        "threshold": {
            "type": "number", "exclusiveMinimum": 0, "maximum": 1, "default": 0.75,
            "description": "Minimum similarity of a match (≥).",
        },
        "distance": {
            "type": "integer", "minimum": 0, "default": 3,
            "description": "Maximum number of differing bits (≤); for `simhash`.",
        },
        "candidates": {
            "enum": CandidateRule::ALL.map(CandidateRule::name),
            "description": "Rule for candidate fingerprints; for `simhash`.",
        },
        "sentences": {
            "type": "integer", "minimum": 1,
            "description": "Number of longest sentences that represent a text; for `sentences`.",
        },
        "measure": {
            "enum": SimilarityMeasure::ALL.map(SimilarityMeasure::name),
            "description": "Measure of similarity. Default: `jaccard`; `none` for bare \
                fingerprints.",
        },
        "unit": {
            "enum": EditUnit::ALL.map(EditUnit::name),
            "description": "Unit of edits; for `levenshtein`, `indel` and `lcs`.",
        },
    })
}

/// Returns the schema of a change of settings. What is left out stays as it is.
fn change_schema(text: &Value, period: &Value) -> Value {
    let all = settings_schema(text, period);
    let change = |name: &str| {
        let mut schema = all[name].clone();
        if let Some(schema) = schema.as_object_mut() {
            schema.remove("default");
        }
        (name.to_owned(), schema)
    };
    let properties: Map<_, _> = CHANGEABLE_SETTINGS.into_iter().map(change).collect();
    let mut schema = strict_object_schema(&[], properties.into());
    schema["minProperties"] = 1.into();
    schema["description"] =
        "New values of settings; those left out stay. A window cannot be added or removed. \
        The other settings of a collection cannot change."
            .into();
    schema
}

fn settings_schema(text: &Value, period: &Value) -> Value {
    let period = |about: &str| {
        let mut period = period.clone();
        period["description"] = about.into();
        period
    };
    let mut properties = matching_schema(text);
    properties["window"] = period(
        "Maximum time between two documents that match; without it, documents never expire.",
    );
    properties["skew"] = period(
        "Maximum time by which documents can be ahead of the wall clock, at most the window. \
         Default: 5m, or half of a window below 10m.",
    );
    properties["refresh"] = json!({
        "type": "boolean", "default": false,
        "description": "True if the window of a kept document runs from its last duplicate.",
    });
    properties["expire"] = json!({
        "enum": ["documents", "wall"], "default": "documents",
        "description": "Clock by which documents leave the window: the newest time of a document, \
            or also the wall clock while nothing arrives. With `wall`, documents with a stated \
            time before the window are late.",
    });
    properties["holds"] = json!({
        "enum": ["texts", "fingerprints"], "default": "texts",
        "description": "Content of the documents: texts, or only fingerprints that other programs \
            computed.",
    });
    properties["on_conflict"] = json!({
        "enum": ["refuse", "replace"], "default": "refuse",
        "description": "Treatment of other content under a known id.",
    });
    properties
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Collects the targets of every `$ref` in a value.
    fn references<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
        match value {
            Value::Object(fields) => {
                found.extend(fields.get("$ref").and_then(Value::as_str));
                fields.values().for_each(|field| references(field, found));
            }
            Value::Array(values) => values.iter().for_each(|value| references(value, found)),
            _ => {}
        }
    }

    #[test]
    fn every_named_schema_exists() {
        let document = openapi_document();
        let mut found = Vec::new();
        references(&document, &mut found);
        assert!(found.len() > CALLS.len());
        for name in found {
            let pointer = name.trim_start_matches('#');
            assert!(document.pointer(pointer).is_some(), "{name}");
        }
    }

    #[test]
    fn limits_are_part_of_the_schema() {
        let document = openapi_document();
        let at = |pointer: &str| document.pointer(pointer).cloned().unwrap_or_default();
        let of = |path: &str, call: &str| {
            at(&format!(
                "/paths/~1v1~1collections~1{{collection}}{path}/{call}"
            ))
        };
        let insert = of("~1documents", "post");
        for status in ["409", "413", "429", "503", "507"] {
            assert!(insert["responses"][status].is_object(), "{status}");
        }
        for response in ["Busy", "Unavailable", "DiskFull"] {
            let header = format!("/components/responses/{response}/headers/Retry-After");
            assert!(at(&header).is_object(), "{response}");
        }
        let named = |call: &Value, name: &str| {
            let parameters = call["parameters"].as_array().unwrap().clone();
            let found = parameters
                .into_iter()
                .find(|parameter| parameter["name"] == name);
            found.unwrap()["schema"].clone()
        };
        assert_eq!(named(&insert, "Content-Encoding")["enum"][1], "zstd");
        let clusters = of("~1clusters", "get");
        assert_eq!(named(&clusters, "limit")["maximum"], 1000);
        assert_eq!(named(&clusters, "members")["maximum"], 1000);
        let cluster = of("~1clusters~1{id}", "get");
        assert_eq!(named(&cluster, "members")["maximum"], 100_000);
        let name = "/components/schemas/SnapshotRequest/properties/name/pattern";
        assert_eq!(at(name), named(&insert, "collection")["pattern"]);
        let settings = at("/components/schemas/CollectionSettings/properties");
        for (name, schema) in settings.as_object().unwrap() {
            assert!(schema["description"].is_string(), "{name}");
        }
    }

    #[test]
    fn call_names_are_unique() {
        let names: std::collections::BTreeSet<_> = CALLS.iter().map(|call| call.name).collect();
        assert_eq!(names.len(), CALLS.len());
    }
}
