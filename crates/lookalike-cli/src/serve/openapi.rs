//! The description of all calls as OpenAPI 3.1, made from their table.

use serde_json::{Map, Value, json};

use super::access::Role;
use super::api::{CALLS, Call};
use super::problem::Code;

/// The document.
pub(super) fn document() -> Value {
    let mut paths = Map::new();
    for call in &CALLS {
        let path = paths.entry(call.path).or_insert_with(|| json!({}));
        path[call.method.as_str().to_ascii_lowercase()] = operation(call);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "lookalike",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Checks documents for near-duplicates and takes them in, in one step.",
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "paths": paths,
        "components": {
            "schemas": schemas(),
            "securitySchemes": { "key": { "type": "http", "scheme": "bearer" } },
            "responses": {
                "Problem": {
                    "description": "What is wrong.",
                    "content": { "application/problem+json": { "schema": reference("Problem") } },
                },
            },
        },
    })
}

fn reference(schema: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{schema}") })
}

fn operation(call: &Call) -> Value {
    let (status, schema) = call.gives;
    let mut good = json!({ "description": "Done." });
    if let Some(schema) = schema {
        good["content"] = json!({ "application/json": { "schema": reference(schema) } });
    }
    let mut operation = json!({
        "operationId": call.name,
        "summary": call.about,
        "parameters": parameters(call),
        "responses": { "default": { "$ref": "#/components/responses/Problem" } },
    });
    if let Some((schema, many)) = call.takes {
        let mut content = json!({ "application/json": { "schema": reference(schema) } });
        if many {
            content["application/x-ndjson"] = lines_of(reference(schema));
            good["content"]["application/x-ndjson"] = lines_of(reference("AnswerToALine"));
        }
        operation["requestBody"] = json!({ "required": true, "content": content });
    }
    operation["responses"][status.to_string()] = good.clone();
    if call.name == "ready" {
        operation["responses"]["503"] = good.clone();
    }
    if status == 201 && call.method == axum::http::Method::PUT {
        operation["responses"]["200"] = good;
    }
    if call.role != Role::Anyone {
        operation["security"] = json!([{ "key": [] }, {}]);
        operation["description"] = format!("Needs the role {}.", call.role.name()).into();
    }
    operation
}

/// Many values, a line each. OpenAPI 3.1 has no word for the schema of a line; 3.2 will take `itemSchema`.
fn lines_of(line: Value) -> Value {
    json!({
        "schema": { "type": "string", "description": "A JSON value a line; see x-itemSchema for each." },
        "x-itemSchema": line,
    })
}

fn parameters(call: &Call) -> Value {
    let in_path = call.path.split('/').filter_map(|part| {
        let name = part.strip_prefix('{')?.strip_suffix('}')?;
        let schema = match name {
            "collection" => json!({ "type": "string", "pattern": "^[a-z0-9][a-z0-9_-]{0,63}$" }),
            _ => json!({ "type": "string" }),
        };
        Some(json!({ "name": name, "in": "path", "required": true, "schema": schema }))
    });
    let in_query = call.parameters.iter().map(|name| {
        let schema = match *name {
            "after" => json!({ "type": "string" }),
            _ => json!({ "type": "integer", "minimum": 1 }),
        };
        json!({ "name": name, "in": "query", "schema": schema })
    });
    in_path.chain(in_query).collect()
}

fn object(required: &[&str], properties: Value) -> Value {
    json!({ "type": "object", "required": required, "properties": properties })
}

/// An object that has no other fields. Those that are not required may be null as well.
fn strict(required: &[&str], mut properties: Value) -> Value {
    let fields = properties.as_object_mut().into_iter().flatten();
    for (_, schema) in fields.filter(|(name, _)| !required.contains(&name.as_str())) {
        allow_null(schema);
    }
    let mut object = object(required, properties);
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

fn list(of: Value) -> Value {
    json!({ "type": "array", "items": of })
}

fn schemas() -> Value {
    let text = json!({ "type": "string" });
    let id = json!({ "type": "string", "minLength": 1, "maxLength": 512 });
    let number = json!({ "type": "integer", "minimum": 0 });
    let flag = json!({ "type": "boolean" });
    let period = json!({ "type": "string", "pattern": "^[0-9.]+([eE][+-]?[0-9]+)?[smhdw]$" });
    let any = json!({});
    let whole = json!({ "type": "integer", "minimum": i64::MIN, "maximum": u64::MAX });
    let answer = answer(&text);
    let mut asked = answer.clone();
    for (name, about) in [
        ("id", "None if it was asked without one."),
        (
            "cluster",
            "None if it was asked without an id, and nothing matches.",
        ),
    ] {
        asked["properties"][name] = json!({ "type": ["string", "null"], "description": about });
    }
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
    let codes: Vec<_> = Code::ALL.iter().map(|code| code.name()).collect();
    json!({
        "Problem": object(&["type", "title", "status", "code", "detail"], json!({
            "type": text, "title": text, "status": number, "code": { "enum": codes }, "detail": text,
        })),
        "Settings": strict(&[], settings(&text, &period)),
        "Collection": object(&["name", "recipe_id", "settings"], json!({
            "name": text, "recipe_id": text, "settings": reference("Settings"),
        })),
        "Collections": object(&["collections"], json!({
            "collections": list(object(&["name", "state"], json!({
                "name": text,
                "state": {
                    "enum": ["opening", "open", "full", "damaged", "stopped", "failed", "deleting"],
                },
            }))),
        })),
        "Document": strict(&["id"], sent(json!({ "oneOf": [id, whole] }))),
        "Question": strict(&[], sent(json!({
            "description": "With one, what is known under it decides: the same content has its first answer, \
                            other content is refused, or not compared with where it is replaced.",
            "oneOf": [id, whole, { "type": "null" }],
        }))),
        "Answer": answer,
        "AnswerToAQuestion": asked,
        "RefusedLine": object(&["id", "line", "problem"], json!({
            "id": { "type": ["string", "null"] },
            "line": { "type": "integer", "minimum": 1 },
            "problem": reference("Problem"),
        })),
        "AnswerToALine": {
            "description": "The answer to a line, in the order of the lines; blank lines have none.",
            "oneOf": [reference("AnswerToAQuestion"), reference("RefusedLine")],
        },
        "Stored": stored,
        "Cluster": object(&["cluster", "kept", "members", "more"], json!({
            "cluster": text,
            "kept": reference("Answer"),
            "members": list(reference("Answer")),
            "more": flag,
        })),
        "Clusters": object(&["clusters", "next"], json!({
            "clusters": list(reference("Cluster")),
            "next": { "type": ["string", "null"] },
        })),
        "Stats": object(&["rows", "kept", "partitions", "last_durable_row", "memory"], json!({
            "rows": number,
            "kept": number,
            "partitions": number,
            "last_durable_row": number,
            "memory": { "type": "object", "additionalProperties": number },
            "stopped": { "type": ["string", "null"] },
        })),
        "SnapshotName": strict(&["name"], json!({ "name": text })),
        "Snapshot": object(&["collection", "name"], json!({ "collection": text, "name": text })),
        "CompareRequest": strict(&["pairs"], {
            let mut properties = matching(&text);
            properties["pairs"] = list(strict(&["a", "b"], json!({ "a": text, "b": text })));
            properties
        }),
        "CompareResults": object(&["results"], json!({ "results": list(json!({ "type": "object" })) })),
        "FingerprintRequest": strict(&["texts"], json!({
            "texts": list(text.clone()),
            "recipe": text,
            "method": { "enum": ["simhash", "minhash", "bottomk", "sentences"] },
            "format": { "enum": ["hex", "decimal", "binary"] },
            "sentences": { "type": "integer", "minimum": 1 },
        })),
        "FingerprintResults": object(&["recipe", "recipe_id", "fingerprints"], json!({
            "recipe": text,
            "recipe_id": text,
            "fingerprints": list(json!({
                "oneOf": [text, list(number.clone()), { "type": "null" }],
            })),
        })),
        "SegmentRequest": strict(&["texts"], json!({
            "texts": list(text.clone()), "recipe": text, "weights": flag,
        })),
        "SegmentResults": object(&["recipe", "recipe_id", "results"], json!({
            "recipe": text, "recipe_id": text, "results": list(json!({ "type": "object" })),
        })),
        "Live": object(&["live"], json!({ "live": flag })),
        "Ready": object(&["ready", "collections", "opening", "stopped", "failed", "full", "damaged"], json!({
            "ready": flag,
            "collections": number,
            "full": list(text.clone()),
            "damaged": list(text.clone()),
            "opening": list(text.clone()),
            "stopped": list(text.clone()),
            "failed": list(text.clone()),
        })),
    })
}

fn answer(text: &Value) -> Value {
    object(
        &["id", "verdict", "of", "cluster", "similarity", "seq"],
        json!({
            "id": text,
            "verdict": { "enum": ["kept", "duplicate"] },
            "of": { "type": ["string", "null"] },
            "cluster": text,
            "similarity": { "type": ["number", "null"] },
            "seq": { "type": ["integer", "null"] },
        }),
    )
}

fn sent(id: Value) -> Value {
    json!({
        "id": id,
        "text": { "type": "string", "description": "What it says; where texts are held." },
        "fingerprint": {
            "type": "string",
            "pattern": "^(0x)?[0-9a-fA-F]+$",
            "description": "Hexadecimal digits; where bare fingerprints are held.",
        },
        "time": {
            "type": ["number", "string", "null"],
            "description": "Seconds since 1970, or an ISO 8601 date or date and time, in UTC unless it says \
                            otherwise; now without one. What is ahead of the clock by more than the skew counts \
                            as of the clock and the skew.",
        },
        "meta": { "description": "Anything up to 64 KiB, less than 128 deep; given back byte for byte." },
    })
}

fn matching(text: &Value) -> Value {
    json!({
        "recipe": text,
        "method": {
            "enum": ["auto", "minhash", "simhash", "exact", "join", "sentences", "bottomk"],
        },
        "threshold": { "type": "number", "exclusiveMinimum": 0, "maximum": 1 },
        "distance": { "type": "integer", "minimum": 0 },
        "candidates": { "enum": ["distance", "blocks"] },
        "sentences": { "type": "integer", "minimum": 1 },
        "measure": {
            "enum": ["jaccard", "containment", "cosine", "levenshtein", "indel", "lcs", "none"],
        },
        "unit": { "enum": ["characters", "words"] },
    })
}

fn settings(text: &Value, period: &Value) -> Value {
    let mut properties = matching(text);
    properties["window"] = period.clone();
    properties["skew"] = period.clone();
    properties["refresh"] = json!({ "type": "boolean" });
    properties["holds"] = json!({ "enum": ["texts", "fingerprints"] });
    properties["on_conflict"] = json!({ "enum": ["refuse", "replace"] });
    properties
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every name that a `$ref` in a value refers to.
    fn references<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
        match value {
            Value::Object(fields) => {
                found.extend(fields.get("$ref").and_then(Value::as_str));
                fields.values().for_each(|it| references(it, found));
            }
            Value::Array(values) => values.iter().for_each(|it| references(it, found)),
            _ => {}
        }
    }

    #[test]
    fn every_schema_that_is_named_is_there() {
        let document = document();
        let mut found = Vec::new();
        references(&document, &mut found);
        assert!(found.len() > CALLS.len());
        for name in found {
            let pointer = name.trim_start_matches('#');
            assert!(document.pointer(pointer).is_some(), "{name}");
        }
    }

    #[test]
    fn calls_have_names_of_their_own() {
        let names: std::collections::BTreeSet<_> = CALLS.iter().map(|call| call.name).collect();
        assert_eq!(names.len(), CALLS.len());
    }
}
