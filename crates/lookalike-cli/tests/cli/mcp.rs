//! `lookalike mcp`: the protocol, the tools, and clients that are wrong or malicious.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command};

use lookalike_system::create_symlink;
use serde_json::{Value, json};

use crate::service::Service;
use crate::support::{Place, gzip};

/// Largest size of an answer, in bytes, without its line end.
const MAX_ANSWER_BYTES: usize = 1 << 20;

/// A text of some words, and one that differs from it in the last.
const FERRY: &str = "The old ferry leaves the harbour at seven and returns with the evening tide from the northern islands";
const LATE_FERRY: &str = "The old ferry leaves the harbour at seven and returns with the evening tide from the northern isles";

/// A running server and its client.
struct Client {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    next_id: i64,
}

impl Client {
    /// Starts a server with these options, without a handshake.
    fn start(place: &Place, options: &str) -> Self {
        Self::run(&mut place.command(&format!("mcp {options}")))
    }

    fn run(command: &mut Command) -> Self {
        let mut child = command.stdin(std::process::Stdio::piped()).spawn().unwrap();
        Self {
            input: child.stdin.take(),
            output: BufReader::new(child.stdout.take().unwrap()),
            child,
            next_id: 1,
        }
    }

    /// Starts a server and initialises the session.
    fn connect(place: &Place, options: &str) -> Self {
        let mut client = Self::start(place, options);
        client.initialize();
        client
    }

    fn initialize(&mut self) -> Value {
        let params = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" },
        });
        let result = self.ask("initialize", params);
        self.send_line(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        result["result"].clone()
    }

    fn send_line(&mut self, line: &[u8]) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line).unwrap();
        input.write_all(b"\n").unwrap();
        input.flush().unwrap();
    }

    fn read_answer(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        assert!(line.ends_with('\n'), "the server has ended: {line}");
        assert!(line.len() <= MAX_ANSWER_BYTES + 1, "{} bytes", line.len());
        let answer: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(answer["jsonrpc"], "2.0");
        answer
    }

    /// Sends a request and returns its answer, which is the next one.
    fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.next_id;
        self.next_id += 1;
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.send_line(request.to_string().as_bytes());
        let answer = self.read_answer();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// Calls a tool and returns its result.
    fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.ask(
            "tools/call",
            json!({ "name": tool, "arguments": arguments }),
        );
        assert!(answer["error"].is_null(), "{answer}");
        answer["result"].clone()
    }

    /// Calls a tool that succeeds, and returns the content of its result.
    fn content(&mut self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], false, "{result}");
        assert!(result["content"][0]["text"].is_string(), "{result}");
        result["structuredContent"].clone()
    }

    /// Calls a tool that refuses, and returns its reason.
    fn refusal(&mut self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], true, "{result}");
        result["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// Ends the input and returns the exit code and what the server printed beside its answers.
    fn finish(mut self) -> (Option<i32>, String) {
        drop(self.input.take());
        let mut rest = String::new();
        std::io::Read::read_to_string(&mut self.output, &mut rest).unwrap();
        assert_eq!(rest, "", "more answers than requests");
        let output = self.child.wait_with_output().unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        (output.status.code(), errors)
    }
}

/// Returns the summary of a command.
fn summary_of(place: &Place, line: &str) -> Value {
    serde_json::from_slice(&place.ok(&format!("{line} --json")).out).unwrap()
}

fn rows(texts: &[(&str, &str)]) -> String {
    let rows = texts
        .iter()
        .map(|(id, text)| json!({ "id": id, "text": text }).to_string() + "\n");
    rows.collect()
}

/// Writes a corpus with one cluster of three documents, one of two, and one document that is alone.
fn write_corpus(place: &Place) {
    let other = "Nobody on the quay saw the grey boat go before the sun rose over the roofs";
    place.write(
        "in/corpus.jsonl",
        rows(&[
            ("two-1", other),
            ("one-1", FERRY),
            ("one-2", LATE_FERRY),
            (
                "alone",
                "Something else entirely is written in this very short note",
            ),
            ("two-2", &other.to_uppercase()),
            ("one-3", FERRY),
        ]),
    );
}

#[test]
fn session_begins_lists_and_ends() {
    let place = Place::new();
    place.write("in/a.txt", "text\n");
    let mut client = Client::start(&place, "--folder in");
    // A client may probe for later versions, and ping, before it begins.
    assert_eq!(
        client.ask("server/discover", json!({}))["error"]["code"],
        -32601
    );
    assert_eq!(client.ask("ping", json!({}))["result"], json!({}));
    let begun = client.initialize();
    assert_eq!(begun["protocolVersion"], "2025-11-25");
    assert_eq!(begun["serverInfo"]["name"], "lookalike");
    let folder = fs::canonicalize(place.path("in")).unwrap();
    let instructions = begun["instructions"].as_str().unwrap();
    let named = format!("below {}: give paths relative", folder.display());
    assert!(instructions.contains(&named), "{instructions}");
    assert_eq!(begun["serverInfo"]["version"], env!("CARGO_PKG_VERSION"));
    let tools = client.ask("tools/list", json!({}))["result"]["tools"].clone();
    let names: Vec<_> = tools
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(
        names,
        [
            "find_near_duplicates",
            "shared_passages",
            "compare_texts",
            "check_text",
            "explain_removal"
        ]
    );
    for tool in tools.as_array().unwrap() {
        assert_eq!(tool["annotations"]["readOnlyHint"], true, "{tool}");
        assert_eq!(tool["annotations"]["destructiveHint"], false, "{tool}");
        assert_eq!(tool["inputSchema"]["additionalProperties"], false);
        assert!(tool["title"].is_string() && tool["description"].is_string());
        assert!(tool["inputSchema"]["properties"]["insert"].is_null());
    }
    let (code, errors) = client.finish();
    assert_eq!(code, Some(0), "{errors}");
    assert!(errors.contains("MCP server"), "{errors}");
}

#[test]
fn old_clients_get_their_version() {
    let place = Place::new();
    for (asked, given) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-06-18", "2025-06-18"),
        ("1999-01-01", "2025-11-25"),
    ] {
        let mut client = Client::start(&place, "");
        let answer = client.ask("initialize", json!({ "protocolVersion": asked }));
        assert_eq!(answer["result"]["protocolVersion"], given);
        assert_eq!(client.finish().0, Some(0));
    }
}

#[test]
fn near_duplicates_are_those_of_dedup() {
    let place = Place::new();
    write_corpus(&place);
    let mut client = Client::connect(&place, "--folder in");
    let path = place.path("in/corpus.jsonl");
    let arguments = json!({ "inputs": [path], "forms": "off", "text_characters": 20 });
    let found = client.content("find_near_duplicates", arguments);
    let summary = summary_of(&place, "dedup in/corpus.jsonl --dry-run --forms off");
    for name in ["documents", "kept", "removed", "threshold", "measure"] {
        assert_eq!(found[name], summary[name], "{name}");
    }
    assert_eq!(found["cluster_count"], summary["clusters"]);
    let clusters = found["clusters"].as_array().unwrap();
    let kept: Vec<_> = clusters
        .iter()
        .map(|cluster| &cluster["kept"]["id"])
        .collect();
    assert_eq!(kept, ["one-1", "two-1"]);
    assert_eq!(clusters[0]["removed_count"], 2);
    let member = &clusters[0]["removed"][0];
    assert_eq!(member["id"], "one-2");
    assert_eq!(member["row"], 3);
    assert_eq!(member["text"], "The old ferry leaves…");
    assert!(found["left_out"].is_null());
    // The path may be relative to the folder, and a folder itself.
    for inputs in ["corpus.jsonl", "."] {
        let again = client.content(
            "find_near_duplicates",
            json!({ "inputs": [inputs], "forms": "off", "text_characters": 20 }),
        );
        assert_eq!(again, found, "{inputs}");
    }
    let first = client.content(
        "find_near_duplicates",
        json!({ "inputs": ["."], "forms": "off", "max_clusters": 1, "max_members": 1 }),
    );
    assert_eq!(first["clusters"].as_array().unwrap().len(), 1);
    assert_eq!(first["clusters"][0]["removed"].as_array().unwrap().len(), 1);
    assert_eq!(first["left_out"]["clusters"]["count"], 1);
    assert_eq!(first["left_out"]["clusters"]["next"], 1);
    let rest = client.content(
        "find_near_duplicates",
        json!({ "inputs": ["."], "forms": "off", "max_clusters": 1, "skip_clusters": 1 }),
    );
    assert_eq!(rest["clusters"][0]["kept"]["id"], "two-1");
    assert!(rest["left_out"].is_null());
}

#[test]
fn passages_are_those_of_the_command() {
    let place = Place::new();
    place.write("in/a.txt", format!("{FERRY}. Nothing else is here."));
    place.write(
        "in/b.txt",
        format!("Somebody wrote it down: {FERRY}, and left."),
    );
    place.write("out/c.txt", FERRY);
    let mut client = Client::connect(&place, "--folder in");
    let found = client.content("shared_passages", json!({ "inputs": ["."] }));
    let summary = summary_of(&place, "passages in -o passages.tsv");
    assert_eq!(found["documents"], summary["documents"]);
    assert_eq!(summary["passages"], 1);
    assert_eq!(found["passages"][0]["kind"], "verbatim");
    assert_eq!(
        found["passages"][0]["length"],
        summary["longest"][0]["length"]
    );
    assert_eq!(found["pairs"].as_array().unwrap().len(), 1);
    assert_eq!(found["documents_with_passages"], 2);
    assert_eq!(found["directed"], false);
    assert!(
        found["passages"][0]["text"]
            .as_str()
            .unwrap()
            .contains("evening tide")
    );
    let longer = json!({ "inputs": ["a.txt"], "against": ["b.txt"], "min_length": 50 });
    let found = client.content("shared_passages", longer);
    assert_eq!(found["passages"], json!([]));
    assert_eq!(found["min_length"], 50);
}

#[test]
fn comparisons_are_those_of_the_command() {
    let place = Place::new();
    let mut client = Client::connect(&place, "");
    let found = client.content("compare_texts", json!({ "a": FERRY, "b": LATE_FERRY }));
    let mut command = place.command("compare --literal --json --");
    let printed = command.args([FERRY, LATE_FERRY]).output().unwrap();
    let printed: Value = serde_json::from_slice(&printed.stdout).unwrap();
    for name in [
        "match",
        "similarity",
        "why",
        "figures",
        "differences",
        "recipe",
    ] {
        assert_eq!(found[name], printed[name], "{name}");
    }
    assert_eq!(found["match"], true);
    let apart = json!({ "a": FERRY, "b": LATE_FERRY, "threshold": 1, "measure": "levenshtein" });
    assert_eq!(client.content("compare_texts", apart)["match"], false);
    // A text that looks like an option is a text.
    let odd = client.content("compare_texts", json!({ "a": "--json", "b": "-h" }));
    assert_eq!(odd["match"], false);
}

#[test]
fn texts_are_checked_against_an_index() {
    let place = Place::new();
    place.write("in.jsonl", rows(&[("first", FERRY)]));
    place.ok("dedup in.jsonl --library seen.lib -o out.jsonl");
    let mut client = Client::connect(&place, "--index seen.lib");
    let known = client.content("check_text", json!({ "text": LATE_FERRY }));
    assert_eq!(
        (&known["new"], &known["of"]),
        (&json!(false), &json!("first"))
    );
    assert!(known["similarity"].as_f64().unwrap() > 0.75);
    let new = client.content(
        "check_text",
        json!({ "text": "a text that nobody has seen", "index": "seen.lib" }),
    );
    assert_eq!((&new["new"], &new["compared"]), (&json!(true), &json!(1)));
    assert_eq!(new["inserted"], false);
    let refused = client.refusal(
        "check_text",
        json!({ "text": "a", "insert": true, "id": "x" }),
    );
    assert!(refused.contains("unknown argument"), "{refused}");
    let refused = client.refusal("check_text", json!({ "text": "a", "index": "other.lib" }));
    assert!(refused.contains("no index of this server"), "{refused}");
    let refused = client.refusal("check_text", json!({ "text": "a", "collection": "c" }));
    assert!(refused.contains("--service"), "{refused}");
    client.finish();
    assert_eq!(summary_of(&place, "index info seen.lib")["fingerprints"], 1);

    let mut client = Client::connect(&place, "--index seen.lib --allow-insert");
    let tools = client.ask("tools/list", json!({}))["result"]["tools"].clone();
    assert_eq!(tools[3]["annotations"]["readOnlyHint"], false);
    assert!(tools[3]["inputSchema"]["properties"]["insert"].is_object());
    let second = json!({ "text": "a text that nobody has seen", "id": "second", "insert": true });
    let inserted = client.content("check_text", second.clone());
    assert_eq!(
        (&inserted["new"], &inserted["inserted"]),
        (&json!(true), &json!(true))
    );
    let again = client.content("check_text", second);
    assert_eq!(
        (&again["of"], &again["inserted"]),
        (&json!("second"), &json!(false))
    );
    // An id stands for one text. Nothing is inserted under one that another text has.
    let taken =
        json!({ "text": "another text that is not like it", "id": "second", "insert": true });
    let refused = client.refusal("check_text", taken);
    assert!(
        refused.contains("another text with the id 'second'"),
        "{refused}"
    );
    let refused = client.refusal("check_text", json!({ "text": "a", "insert": true }));
    assert!(refused.contains("needs the argument id"), "{refused}");
    client.finish();
    assert_eq!(summary_of(&place, "index info seen.lib")["fingerprints"], 2);
}

#[test]
fn texts_without_features_are_too_short_to_compare() {
    let place = Place::new();
    place.write("in.jsonl", rows(&[("first", FERRY), ("short", "b")]));
    place.ok("dedup in.jsonl --library seen.lib -o out.jsonl");
    let mut client = Client::connect(&place, "--index seen.lib");
    for text in ["", "a", "!"] {
        let result = client.call("check_text", json!({ "text": text }));
        let verdict = result["content"][0]["text"].as_str().unwrap();
        assert!(verdict.contains("too short to compare"), "{verdict}");
        assert_eq!(result["structuredContent"]["new"], Value::Null);
    }
    let equal = client.content("check_text", json!({ "text": "b" }));
    assert_eq!(
        (&equal["new"], &equal["of"]),
        (&json!(false), &json!("short"))
    );
}

#[test]
fn refusals_about_files_say_what_to_do() {
    let place = Place::new();
    write_corpus(&place);
    place.write("in/notes/other.csv", "x,y\n1,2\n");
    place.write("secret.jsonl", rows(&[("secret", FERRY)]));
    create_symlink(&place.path(""), &place.path("in/up")).unwrap();
    let mut client = Client::connect(&place, "--folder in");
    let refused = client.refusal("find_near_duplicates", json!({ "inputs": ["."] }));
    assert!(refused.contains("other.csv"), "{refused}");
    assert!(
        refused.contains("name the files with documents"),
        "{refused}"
    );
    let missing = |client: &mut Client, path: &str| {
        let refused = client.refusal("find_near_duplicates", json!({ "inputs": [path] }));
        refused.contains("does not exist")
    };
    for path in ["none.jsonl", "notes/none/a.jsonl", "./none.jsonl"] {
        assert!(missing(&mut client, path), "{path}");
    }
    let outside = place.path("none.jsonl").display().to_string();
    for path in [
        "up/none.jsonl",
        "up/secret.jsonl",
        "../none.jsonl",
        "notes/../../none",
        &outside,
    ] {
        assert!(!missing(&mut client, path), "{path}");
    }
    let resolved = fs::canonicalize(place.path("in"))
        .unwrap()
        .join("none.jsonl");
    assert!(missing(&mut client, &resolved.display().to_string()));
}

#[test]
fn texts_are_checked_against_a_service() {
    if !cfg!(feature = "object-store") {
        return;
    }
    let place = Place::new();
    let service = Service::start(&place, "");
    service.make("news", json!({}));
    let options = format!("--service http://{} --allow-insert", service.address);
    let mut client = Client::connect(&place, &options);
    let text = |text: &str| json!({ "text": text, "collection": "news" });
    let new = client.content("check_text", text(FERRY));
    assert_eq!(
        (&new["new"], &new["inserted"]),
        (&json!(true), &json!(false))
    );
    let mut insert = text(FERRY);
    insert["id"] = json!("first");
    insert["insert"] = json!(true);
    assert_eq!(client.content("check_text", insert)["inserted"], true);
    let known = client.content("check_text", text(LATE_FERRY));
    assert_eq!(
        (&known["new"], &known["of"]),
        (&json!(false), &json!("first"))
    );
    let mut missing = text(FERRY);
    for collection in ["none", "../collections/news", "..", "news/documents?x"] {
        missing["collection"] = json!(collection);
        let refused = client.refusal("check_text", missing.clone());
        let is_refused = refused.contains("the service answers 4") || refused.contains("no name");
        assert!(is_refused, "{collection}: {refused}");
    }
    client.finish();
}

#[test]
fn removals_are_explained() {
    let place = Place::new();
    write_corpus(&place);
    place.ok("dedup in/corpus.jsonl -o out.jsonl --removed in/removed.tsv --forms off");
    let mut client = Client::connect(&place, "--folder in");
    let about =
        |id: &str| json!({ "removed": "removed.tsv", "id": id, "inputs": ["corpus.jsonl"] });
    let explained = client.content("explain_removal", about("one-2"));
    let printed = place.ok("explain in/removed.tsv one-2 in/corpus.jsonl --json");
    let printed: Value = serde_json::from_slice(&printed.out).unwrap();
    for name in ["kept", "similarity", "method", "now", "differences"] {
        assert_eq!(explained[name], printed[name], "{name}");
    }
    assert_eq!(
        (&explained["removed"], &explained["kept"]),
        (&json!(true), &json!("one-1"))
    );
    let kept = client.content("explain_removal", about("one-1"));
    assert_eq!(kept["removed"], false);
    assert_eq!(kept["duplicates"], json!(["one-2", "one-3"]));
    let refused = client.refusal("explain_removal", about("nobody"));
    assert!(refused.contains("neither in"), "{refused}");
}

#[test]
fn answers_are_cut_and_say_so() {
    let place = Place::new();
    let words = |seed: usize| -> String {
        let words = (0..60).map(|at| format!("w{}x{} ", seed, at));
        words.collect()
    };
    // 400 pairs of equal texts of 10,000 characters, each of which stands in the answer twice.
    let corpus = (0..800).map(|at| {
        let text = words(at / 2).repeat(30);
        json!({ "id": format!("d{at}"), "text": text }).to_string() + "\n"
    });
    place.write("in/big.jsonl", corpus.collect::<String>());
    let mut client = Client::connect(&place, "--folder in");
    let found = client.content(
        "find_near_duplicates",
        json!({ "inputs": ["big.jsonl"], "forms": "off", "max_clusters": 1000, "text_characters": 10_000 }),
    );
    assert_eq!(found["cluster_count"], 400);
    let shown = found["clusters"].as_array().unwrap().len();
    assert!((10..400).contains(&shown), "{shown}");
    assert_eq!(found["left_out"]["clusters"]["count"], 400 - shown);
    assert_eq!(found["left_out"]["clusters"]["next"], shown);
}

/// Attacks by paths, each with a path that is refused.
fn outside_paths(place: &Place) -> Vec<String> {
    let secret = place.path("secret.jsonl").display().to_string();
    let inside = place.path("in").display().to_string();
    let mut paths: Vec<String> = [
        "../secret.jsonl",
        "./../secret.jsonl",
        "deep/../../secret.jsonl",
        "deep/../../in/../secret.jsonl",
        "..",
        "../",
        "../in-beside/a.jsonl",
        "/",
        "/etc/passwd",
        "//etc/passwd",
        "/proc/self/environ",
        "/proc/self/cwd/secret.jsonl",
        "/proc/self/fd/0",
        "/dev/zero",
        "/dev/stdin",
        "/dev/null",
        "-",
        "",
        "~/secret.jsonl",
        "$HOME",
        "*.jsonl",
        "../*.jsonl",
        "file:///etc/passwd",
        "https://example.com/a.jsonl",
        "http://127.0.0.1:1/a.jsonl",
        "s3://bucket/a.jsonl",
        "gs://bucket/a.jsonl",
        "far.jsonl",
        "up/secret.jsonl",
        "up",
        "loop",
        "dangling",
        "pipe",
        "pipe.jsonl",
        "zero.jsonl",
        "a.jsonl\0",
        "a.jsonl\0.txt",
        "a.jsonl/",
        "a.jsonl/..",
        "..\\secret.jsonl",
        "%2e%2e/secret.jsonl",
        "\u{2025}/secret.jsonl",
        "--files",
        "none.jsonl",
    ]
    .map(str::to_owned)
    .to_vec();
    paths.extend([
        secret,
        format!("{inside}/../secret.jsonl"),
        format!("{inside}-beside/a.jsonl"),
        format!("{inside}/far.jsonl"),
        "a/".repeat(2000),
        "../".repeat(1000),
        "x".repeat(5000),
        "x".repeat(300),
    ]);
    paths
}

#[test]
fn no_path_leads_out_of_the_folders() {
    let place = Place::new();
    let row = rows(&[("secret", "the secret words of nobody")]);
    place.write("secret.jsonl", &row);
    place.write("in-beside/a.jsonl", &row);
    place.write("in/a.jsonl", rows(&[("a", "an open text for everybody")]));
    place.write(
        "in/deep/b.jsonl",
        rows(&[("b", "another open text for everybody")]),
    );
    create_symlink(&place.path("secret.jsonl"), &place.path("in/far.jsonl")).unwrap();
    create_symlink(&place.path(""), &place.path("in/up")).unwrap();
    create_symlink(&place.path("in/loop"), &place.path("in/loop")).unwrap();
    create_symlink(&place.path("none"), &place.path("in/dangling")).unwrap();
    create_symlink(Path::new("/dev/zero"), &place.path("in/zero.jsonl")).unwrap();
    for pipe in ["in/pipe", "in/pipe.jsonl"] {
        let made = Command::new("mkfifo").arg(place.path(pipe)).status();
        assert!(made.unwrap().success());
    }
    let mut client = Client::connect(&place, "--folder in");
    let attacks = outside_paths(&place);
    assert!(attacks.len() >= 50, "{}", attacks.len());
    for path in &attacks {
        for (tool, arguments) in [
            ("find_near_duplicates", json!({ "inputs": [path] })),
            (
                "shared_passages",
                json!({ "inputs": ["a.jsonl"], "against": [path] }),
            ),
            (
                "explain_removal",
                json!({ "removed": path, "id": "secret", "inputs": ["a.jsonl"] }),
            ),
        ] {
            let refused = client.refusal(tool, arguments);
            assert!(!refused.contains("secret words"), "{path}: {refused}");
            assert!(refused.len() < 1000, "{path}: {refused}");
        }
    }
    // A file outside is refused as one that does not exist, so that its existence is not disclosed.
    let exists = client.refusal("find_near_duplicates", json!({ "inputs": ["/etc/passwd"] }));
    let absent = client.refusal("find_near_duplicates", json!({ "inputs": ["/etc/nobody"] }));
    assert_eq!(exists.replace("passwd", ""), absent.replace("nobody", ""));
    // A folder is read without its links to the outside.
    let found = client.content(
        "find_near_duplicates",
        json!({ "inputs": ["."], "forms": "off" }),
    );
    assert_eq!(found["documents"], 2);
    let found = client.content("shared_passages", json!({ "inputs": ["."] }));
    assert_eq!(found["documents"], 2);
    assert_eq!(client.finish().0, Some(0));
}

#[test]
fn without_folders_no_file_is_read() {
    let place = Place::new();
    place.write("a.jsonl", rows(&[("a", FERRY)]));
    let mut client = Client::connect(&place, "");
    for path in [
        "a.jsonl".to_owned(),
        place.path("a.jsonl").display().to_string(),
    ] {
        let refused = client.refusal("find_near_duplicates", json!({ "inputs": [path] }));
        assert!(refused.contains("--folder DIR"), "{refused}");
    }
    let (_, errors) = client.finish();
    assert!(errors.contains("no tool reads files"), "{errors}");
}

/// Lines that are no valid message, each with the code of its error.
fn malformed_lines() -> Vec<(Vec<u8>, i64)> {
    let request =
        |fields: &str| format!("{{\"jsonrpc\":\"2.0\",\"id\":\"x\",{fields}}}").into_bytes();
    let nested = |open: &str, close: &str, depth: usize| {
        let value = format!("{}1{}", open.repeat(depth), close.repeat(depth));
        request(&format!("\"method\":\"ping\",\"params\":{{\"a\":{value}}}"))
    };
    let call = |params: &str| request(&format!("\"method\":\"tools/call\",\"params\":{params}"));
    vec![
        (b"nonsense".to_vec(), -32700),
        (b"{".to_vec(), -32700),
        (b"{\"jsonrpc\":\"2.0\",".to_vec(), -32700),
        (b"\xff\xfe\xfd".to_vec(), -32700),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xc3\x28\"}".to_vec(),
            -32700,
        ),
        (
            br#"{"jsonrpc":"2.0","id":"\ud800","method":"ping"}"#.to_vec(),
            -32700,
        ),
        (
            b"\xef\xbb\xbf{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}".to_vec(),
            -32700,
        ),
        (b"\0\0\0\0".to_vec(), -32700),
        (b"Content-Length: 40".to_vec(), -32700),
        (b"POST / HTTP/1.1".to_vec(), -32700),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"} {}".to_vec(),
            -32700,
        ),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":1e999,\"method\":\"ping\"}".to_vec(),
            -32700,
        ),
        (nested("[", "]", 1000), -32700),
        (nested("{\"a\":", "}", 1000), -32700),
        (nested("[", "]", 1_000_000), -32700),
        (b"[".repeat(1_000_000), -32700),
        (b"null".to_vec(), -32600),
        (b"7".to_vec(), -32600),
        (b"\"ping\"".to_vec(), -32600),
        (b"[]".to_vec(), -32600),
        (
            b"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]".to_vec(),
            -32600,
        ),
        (b"{}".to_vec(), -32600),
        (br#"{"id":1,"method":"ping"}"#.to_vec(), -32600),
        (
            br#"{"jsonrpc":2.0,"id":1,"method":"ping"}"#.to_vec(),
            -32600,
        ),
        (br#"{"jsonrpc":"2.0","id":1}"#.to_vec(), -32600),
        (br#"{"jsonrpc":"2.0","id":1,"method":{}}"#.to_vec(), -32600),
        (
            br#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#.to_vec(),
            -32600,
        ),
        (
            br#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#.to_vec(),
            -32600,
        ),
        (
            br#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#.to_vec(),
            -32600,
        ),
        (
            br#"{"jsonrpc":"2.0","id":99999999999999999999,"method":"ping"}"#.to_vec(),
            -32600,
        ),
        (
            format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":\"{}\",\"method\":\"ping\"}}",
                "i".repeat(1 << 20)
            )
            .into_bytes(),
            -32600,
        ),
        (
            request("\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-11-25\"}"),
            -32600,
        ),
        (vec![b' '; (16 << 20) + 1], -32600),
        (vec![b'x'; 40 << 20], -32600),
        (request("\"method\":\"tools/unknown\""), -32601),
        (request("\"method\":\"\""), -32601),
        (
            request(&format!("\"method\":\"{}\"", "m".repeat(1 << 20))),
            -32601,
        ),
        (
            request("\"method\":\"resources/read\",\"params\":{\"uri\":\"file:///etc/passwd\"}"),
            -32601,
        ),
        (request("\"method\":\"prompts/list\""), -32601),
        (request("\"method\":\"completion/complete\""), -32601),
        (request("\"method\":\"ping\",\"params\":[]"), -32602),
        (request("\"method\":\"ping\",\"params\":null"), -32602),
        (
            request("\"method\":\"tools/list\",\"params\":{\"cursor\":\"next\"}"),
            -32602,
        ),
        (call("{}"), -32602),
        (call("{\"name\":7}"), -32602),
        (call("{\"name\":\"shell\"}"), -32602),
        (call("{\"name\":\"../compare_texts\"}"), -32602),
        (
            call("{\"name\":\"compare_texts\",\"arguments\":[]}"),
            -32602,
        ),
        (
            call("{\"name\":\"compare_texts\",\"arguments\":\"a\"}"),
            -32602,
        ),
    ]
}

#[test]
fn malformed_messages_are_answered_by_errors() {
    let place = Place::new();
    let mut client = Client::connect(&place, "");
    let attacks = malformed_lines();
    assert!(attacks.len() >= 45);
    for (line, code) in &attacks {
        client.send_line(line);
        let shown = String::from_utf8_lossy(&line[..line.len().min(80)]).into_owned();
        let answer = client.read_answer();
        assert_eq!(answer["error"]["code"], *code, "{shown}: {answer}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.len() < 500, "{shown}: {message}");
    }
    // Messages without an answer: blank lines, answers, unknown notifications, cancelled ids that nobody has.
    for line in [
        "",
        " \t ",
        "\r",
        r#"{"jsonrpc":"2.0","id":5,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":5,"error":{"code":1,"message":"m"}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/unknown"}"#,
        r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"compare_texts"}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":77}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":[]}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#,
    ] {
        client.send_line(line.as_bytes());
    }
    assert_eq!(client.ask("ping", json!({}))["result"], json!({}));
    assert_eq!(client.finish().0, Some(0));
}

#[test]
fn requests_before_the_beginning_are_refused() {
    let place = Place::new();
    let mut client = Client::start(&place, "");
    for (method, params) in [
        ("tools/list", json!({})),
        (
            "tools/call",
            json!({ "name": "compare_texts", "arguments": { "a": "a", "b": "b" } }),
        ),
    ] {
        assert_eq!(client.ask(method, params)["error"]["code"], -32600);
    }
    for params in [json!({}), json!({ "protocolVersion": 7 })] {
        assert_eq!(client.ask("initialize", params)["error"]["code"], -32602);
    }
    client.initialize();
    assert!(client.ask("tools/list", json!({}))["result"].is_object());
}

#[test]
fn wrong_arguments_are_refused_by_the_tool() {
    let place = Place::new();
    place.write("in/a.jsonl", rows(&[("a", FERRY), ("b", LATE_FERRY)]));
    place.write("in/recipe.toml", "name = \"x\"\n");
    let mut client = Client::connect(&place, "--folder in");
    let long = "x".repeat(5 << 20);
    for (tool, arguments, reason) in [
        ("compare_texts", json!({}), "missing"),
        (
            "compare_texts",
            json!({ "a": 1, "b": "b" }),
            "a must be a string",
        ),
        (
            "compare_texts",
            json!({ "a": long, "b": "b" }),
            "65536 bytes",
        ),
        (
            "compare_texts",
            json!({ "a": "a", "b": "b", "c": "c" }),
            "unknown argument",
        ),
        (
            "compare_texts",
            json!({ "a": "a", "b": "b", "threshold": 0 }),
            "above 0",
        ),
        (
            "compare_texts",
            json!({ "a": "a", "b": "b", "threshold": "0.8" }),
            "above 0",
        ),
        (
            "compare_texts",
            json!({ "a": "a", "b": "b", "measure": "meaning" }),
            "one of",
        ),
        (
            "compare_texts",
            json!({ "a": "a", "b": "b", "recipe": "/etc/passwd" }),
            "one of",
        ),
        (
            "compare_texts",
            json!({ "a": "a", "b": "b", "recipe": "in/recipe.toml" }),
            "one of",
        ),
        ("check_text", json!({ "text": long }), "4194304 bytes"),
        ("check_text", json!({ "text": "a" }), "--index"),
        (
            "find_near_duplicates",
            json!({ "inputs": [] }),
            "1 to 1000 paths",
        ),
        (
            "find_near_duplicates",
            json!({ "inputs": "a.jsonl" }),
            "1 to 1000 paths",
        ),
        (
            "find_near_duplicates",
            json!({ "inputs": vec!["a.jsonl"; 1001] }),
            "1001 values",
        ),
        (
            "find_near_duplicates",
            json!({ "inputs": ["a.jsonl"], "max_clusters": 1e9 }),
            "1 to 1000",
        ),
        (
            "find_near_duplicates",
            json!({ "inputs": ["a.jsonl"], "max_members": -1 }),
            "1 to 1000",
        ),
        (
            "find_near_duplicates",
            json!({ "inputs": ["a.jsonl"], "forms": "forms.jsonl" }),
            "learn, off",
        ),
        (
            "find_near_duplicates",
            json!({ "inputs": ["a.jsonl"], "output": "/tmp/x" }),
            "unknown argument",
        ),
        (
            "find_near_duplicates",
            json!({ "inputs": ["a.jsonl"], "text_field": "--help" }),
            "--help",
        ),
        (
            "shared_passages",
            json!({ "inputs": ["a.jsonl"], "min_length": 0 }),
            "2 to 1000",
        ),
        (
            "explain_removal",
            json!({ "removed": "a.jsonl", "id": "a", "inputs": ["a.jsonl"] }),
            "table",
        ),
    ] {
        let refused = client.refusal(tool, arguments);
        assert!(refused.contains(reason), "{tool}, {reason}: {refused}");
        assert!(refused.len() < 2000, "{}", refused.len());
    }
    assert_eq!(client.finish().0, Some(0));
}

#[test]
fn long_rows_and_bombs_are_bounded() {
    let place = Place::new();
    let long = format!("{{\"text\":\"{}\"}}\n", "x ".repeat(10 << 20));
    place.write(
        "in/bomb.jsonl.gz",
        gzip((long + "{\"text\":\"a short one\"}\n").as_bytes()),
    );
    let mut client = Client::connect(&place, "--folder in");
    let result = client.call(
        "find_near_duplicates",
        json!({ "inputs": ["bomb.jsonl.gz"], "forms": "off" }),
    );
    let found = result.to_string();
    assert!(found.contains("more than the limit of 16777216"), "{found}");
    assert_eq!(result["structuredContent"]["rejected"], 1, "{found}");
    assert!(found.len() < 4000);
    client.finish();
}

#[test]
fn calls_are_bounded_cancelled_and_timed() {
    let place = Place::new();
    let corpus = (0..3000).map(|at| {
        let words = (0..200).map(|word| format!("w{} ", (at * 7919 + word * word * 31) % 5003));
        json!({ "id": format!("{at}"), "text": words.collect::<String>() }).to_string() + "\n"
    });
    place.write("in/slow.jsonl", corpus.collect::<String>());
    let mut client = Client::connect(&place, "--folder in --threads 1");
    let call = |id: i64| {
        let params =
            json!({ "name": "find_near_duplicates", "arguments": { "inputs": ["slow.jsonl"] } });
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string()
    };
    // One runs, sixteen wait, the others are refused at once. All are sent before the first one can end.
    let calls: Vec<_> = (100..200).map(call).collect();
    client.send_line(calls.join("\n").as_bytes());
    for id in 100..200 {
        let params = json!({ "requestId": id });
        let cancelled =
            json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params });
        client.send_line(cancelled.to_string().as_bytes());
    }
    client.send_line(br#"{"jsonrpc":"2.0","id":"end","method":"ping"}"#);
    let mut codes = Vec::new();
    loop {
        let answer = client.read_answer();
        if answer["id"] == "end" {
            break;
        }
        codes.extend(answer["error"]["code"].as_i64());
    }
    assert!(codes.contains(&-32000), "{codes:?}");
    assert!(codes.iter().all(|&code| code == -32000), "{codes:?}");
    drop(client.input.take());
    let code = client.child.wait().unwrap().code();
    assert_eq!(code, Some(0));

    let mut late = Client::connect(&place, "--folder in --timeout 0.001s");
    let refused = late.refusal("find_near_duplicates", json!({ "inputs": ["slow.jsonl"] }));
    assert!(refused.contains("time limit"), "{refused}");
    assert_eq!(late.ask("ping", json!({}))["result"], json!({}));
}

#[test]
fn answers_to_all_requests_come_before_the_end() {
    let place = Place::new();
    let mut client = Client::connect(&place, "");
    for id in 10..14 {
        let params = json!({ "name": "compare_texts", "arguments": { "a": FERRY, "b": FERRY } });
        let call = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
        client.send_line(call.to_string().as_bytes());
    }
    // The last line has no end.
    let input = client.input.as_mut().unwrap();
    input
        .write_all(br#"{"jsonrpc":"2.0","id":"last","method":"ping"}"#)
        .unwrap();
    drop(client.input.take());
    let mut ids: Vec<_> = (0..5)
        .map(|_| client.read_answer()["id"].to_string())
        .collect();
    ids.sort();
    assert_eq!(ids, ["\"last\"", "10", "11", "12", "13"]);
    assert_eq!(client.finish().0, Some(0));
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    let place = Place::new();
    fs::write(place.path("file"), "").unwrap();
    for (options, reason) in [
        ("--folder none", "none"),
        ("--folder file", "is not a directory"),
        ("--index none.lib", "none.lib"),
        ("--allow-insert", "give --index LIB or --service URL"),
        ("--timeout 0s", "give a time above 0"),
        ("--service nonsense", "service"),
    ] {
        place.refused(&format!("mcp {options}"), &[reason]);
    }
}
