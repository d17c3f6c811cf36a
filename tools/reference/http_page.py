#!/usr/bin/env python3
"""Writes `docs/http.md`, the reference of the service's calls, from the `/openapi.json` of a running service.

    tools/reference/http_page.py PROGRAM [--check]

Every call has an example in curl and in Python. Their requests are sent, one after another, against a service that this
program starts: one that fails ends it, and so does a call without an example. With `--check` nothing is written, and a
page that differs is an error.
"""

from __future__ import annotations

import argparse
import hashlib
import http.client
import json
import os
import shlex
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Iterator, NamedTuple, Optional

PAGE = Path(__file__).resolve().parents[2] / "docs" / "http.md"
METHODS = ["get", "put", "post", "patch", "delete"]
LINES = "application/x-ndjson"

HEAD = """# The HTTP interface

This page is made from `/openapi.json` of the service, which programs can read. The requests of the examples are sent when
the page is made.

- Bodies and responses are JSON in UTF-8. Calls that take one document or many also take a document on each line
  (`Content-Type: application/x-ndjson`), and then answer with a line for each.
- With keys, each request has the header `Authorization: Bearer KEY`; a call says which role it needs.
- An error is `application/problem+json` with `type`, `title`, `status`, `code` and `detail`. `code` does not change between
  versions. `Retry-After` says when the same request may succeed.
- In Python, `service = la.Client("http://127.0.0.1:7600")`; `service.call` sends any call, and
  [the client](python/service.md) has methods for most of them.
"""


class Example(NamedTuple):
    """A call that is run: path with its query, body, and the same by the Python client and, of files, by curl."""

    call: str
    path: str
    body: Any = None
    python: Optional[str] = None
    kind: str = "application/json"
    curl: Optional[str] = None


FERRY = "The ferry leaves at seven from the old pier behind the market."
RECIPE = """name = "own"
version = 1
normalize = ["nfkc", "fold"]
tokens = "words"
ngram = 2

[simhash]
bits = 64
weights = "frequency"

[minhash]
family = "fast-similarity"
slots = 128
"""

DAILY = FERRY + " Daily."


def name_content(text: str) -> str:
    """Returns the name of a text in a decision."""
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


BOUNDARY = "boundary-of-the-parts"


def form_of(part: str, name: str, content: str) -> bytes:
    head = f'Content-Disposition: form-data; name="{part}"; filename="{name}"'
    return f"--{BOUNDARY}\r\n{head}\r\n\r\n{content}\r\n--{BOUNDARY}--\r\n".encode()


# In the order in which they are run. Calls that remove something come after those that need it.
EXAMPLES = [
    Example("GET /", "/", python=""),
    Example("GET /livez", "/livez"),
    Example("GET /readyz", "/readyz", python="service.is_ready()"),
    Example("GET /metrics", "/metrics", python=""),
    Example("GET /v1/activity", "/v1/activity"),
    Example("GET /openapi.json", "/openapi.json"),
    Example("PUT /v1/recipes/{recipe}", "/v1/recipes/own", form_of("recipe", "own.toml", RECIPE),
            'service.upload_recipe("own", "own.toml")', f"multipart/form-data; boundary={BOUNDARY}",
            "curl -X PUT localhost:7600/v1/recipes/own -F recipe=@own.toml"),
    Example("GET /v1/recipes", "/v1/recipes", python="service.recipes()"),
    Example("GET /v1/recipes/{recipe}", "/v1/recipes/own", python='service.recipe("own")'),
    Example("DELETE /v1/recipes/{recipe}", "/v1/recipes/own", python='service.delete_recipe("own")'),
    Example("PUT /v1/collections/{collection}", "/v1/collections/news", {"threshold": 0.75, "window": "2d"},
            'service.create("news", threshold=0.75, window="2d")'),
    Example("GET /v1/collections", "/v1/collections", python="service.collections()"),
    Example("GET /v1/collections/{collection}", "/v1/collections/news", python='service.collection("news").settings()'),
    Example("PATCH /v1/collections/{collection}", "/v1/collections/news", {"window": "3d"},
            'service.collection("news").change(window="3d")'),
    Example("POST /v1/collections/{collection}/documents", "/v1/collections/news/documents",
            {"id": "1", "text": FERRY, "meta": {"source": "news"}},
            f'service.collection("news").check_and_insert([{{"id": "1", "text": "{FERRY}"}}])'),
    Example("POST /v1/collections/{collection}/documents", "/v1/collections/news/documents",
            [{"id": "2", "text": DAILY}, {"id": "3", "text": "Snow closed the pass at noon on Monday."}],
            'service.collection("news").insert_stream(documents)', LINES),
    Example("POST /v1/collections/{collection}/query", "/v1/collections/news/query", {"text": FERRY},
            f'service.collection("news").query([{{"text": "{FERRY}"}}])'),
    Example("GET /v1/collections/{collection}/documents", "/v1/collections/news/documents?limit=10&verdict=kept",
            python='service.collection("news").documents(verdict="kept")'),
    Example("GET /v1/collections/{collection}/documents/{id}", "/v1/collections/news/documents/1",
            python='service.collection("news").get("1")'),
    Example("POST /v1/collections/{collection}/documents/get", "/v1/collections/news/documents/get",
            {"ids": ["1", "2"]}, 'service.collection("news").get_many(["1", "2"])'),
    Example("GET /v1/collections/{collection}/clusters", "/v1/collections/news/clusters?limit=10",
            python='service.collection("news").clusters()'),
    Example("GET /v1/collections/{collection}/clusters/{id}", "/v1/collections/news/clusters/1",
            python='service.collection("news").cluster("1")'),
    Example("POST /v1/collections/{collection}/decisions", "/v1/collections/news/decisions",
            {"a_id": "1", "b_id": "2", "label": "different"},
            'service.collection("news").decide([{"a_id": "1", "b_id": "2", "label": "different"}])'),
    Example("GET /v1/collections/{collection}/decisions", "/v1/collections/news/decisions",
            python='service.collection("news").decisions()'),
    Example("DELETE /v1/collections/{collection}/decisions/{a}/{b}", f"/v1/collections/news/decisions/{name_content(FERRY)}/{name_content(DAILY)}",
            python='service.collection("news").withdraw_decision(a, b)'),
    Example("GET /v1/collections/{collection}/stats", "/v1/collections/news/stats",
            python='service.collection("news").stats()'),
    Example("POST /v1/collections/{collection}/passages", "/v1/collections/news/passages", {"text": FERRY},
            f'service.collection("news").passages("{FERRY}")'),
    Example("GET /v1/collections/{collection}/export", "/v1/collections/news/export",
            python='service.collection("news").export()'),
    Example("POST /v1/collections/{collection}/forms/learn", "/v1/collections/news/forms/learn"),
    Example("POST /v1/collections/{collection}/snapshot", "/v1/collections/news/snapshot", {"name": "monday"},
            'service.collection("news").snapshot("monday")'),
    Example("GET /v1/snapshots", "/v1/snapshots", python="service.snapshots()"),
    Example("POST /v1/collections/{collection}/restore", "/v1/collections/monday/restore",
            {"from": "news", "snapshot": "monday"}, 'service.restore("monday", "monday", source="news")'),
    Example("DELETE /v1/snapshots/{collection}/{snapshot}", "/v1/snapshots/news/monday",
            python='service.delete_snapshot("news", "monday")'),
    Example("PUT /v1/aliases/{alias}", "/v1/aliases/live", {"collection": "news"},
            'service.set_alias("live", "news")'),
    Example("POST /v1/aliases", "/v1/aliases", {"set": {"live": "monday"}, "remove": []},
            'service.change_aliases(set={"live": "monday"})'),
    Example("GET /v1/aliases", "/v1/aliases", python="service.aliases()"),
    Example("DELETE /v1/aliases/{alias}", "/v1/aliases/live", python='service.delete_alias("live")'),
    Example("DELETE /v1/collections/{collection}/documents/{id}", "/v1/collections/news/documents/3",
            python='service.collection("news").delete("3")'),
    Example("POST /v1/collections/{collection}/documents/delete", "/v1/collections/news/documents/delete",
            {"ids": ["1", "2"]}, 'service.collection("news").delete_many(["1", "2"])'),
    Example("DELETE /v1/collections/{collection}", "/v1/collections/monday",
            python='service.collection("monday").drop()'),
    Example("POST /v1/compare", "/v1/compare", {"pairs": [{"a": "one two three", "b": "one two four"}]}),
    Example("POST /v1/fingerprint", "/v1/fingerprint", {"texts": [FERRY]}),
    Example("POST /v1/segment", "/v1/segment", {"texts": [FERRY], "recipe": "default"}),
    Example("POST /v1/extract", "/v1/extract?name=note.txt", b"One line.", 'service.extract_text("note.txt")',
            "application/octet-stream",
            "curl 'localhost:7600/v1/extract?name=note.txt' -H 'Content-Type: application/octet-stream' "
            "--data-binary @note.txt"),
    Example("POST /v1/passages", "/v1/passages", {"pairs": [{"a": FERRY, "b": FERRY}]}),
    Example("POST /v1/passages/documents", "/v1/passages/documents",
            {"documents": [{"id": "a", "text": FERRY}, {"id": "b", "text": FERRY}]},
            'service.document_passages([{"id": "a", "text": text}, {"id": "b", "text": text}])'),
]


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Service:
    """A service without keys, in a directory of its own, that ends with the block."""

    def __init__(self, program: str) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.port = free_port()
        command = [program, "serve", "--data", f"{self.folder.name}/data", "--listen", f"127.0.0.1:{self.port}"]
        command += ["--snapshots", f"{self.folder.name}/snapshots"]
        environment = {**os.environ, "LANG": "C.UTF-8"}
        self.log = open(f"{self.folder.name}/log", "w+")
        self.process = subprocess.Popen(command, stderr=self.log, stdout=subprocess.DEVNULL, env=environment)

    def __enter__(self) -> "Service":
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                if self.request("GET", "/readyz")[0] == 200:
                    return self
            except OSError:
                time.sleep(0.05)
        self.log.seek(0)
        sys.exit(f"the service did not start: {self.log.read()}")

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait()
        self.log.close()
        self.folder.cleanup()

    def request(self, method: str, path: str, body: Optional[bytes] = None, kind: str = "application/json") -> tuple:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        headers = {"Content-Type": kind} if body is not None else {}
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        answer = (response.status, response.read().decode(errors="replace"))
        connection.close()
        return answer


def encode_body(example: Example) -> Optional[bytes]:
    if example.body is None or isinstance(example.body, bytes):
        return example.body
    if example.kind == LINES:
        return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in example.body).encode()
    return json.dumps(example.body, ensure_ascii=False).encode()


def run_examples(service: Service) -> None:
    for example in EXAMPLES:
        method = example.call.split(" ")[0]
        status, answer = service.request(method, example.path, encode_body(example), example.kind)
        # What is written is indexed for passages a moment later.
        while status == 503 and '"passages_not_ready"' in answer:
            time.sleep(0.1)
            status, answer = service.request(method, example.path, encode_body(example), example.kind)
        if not 200 <= status < 300 or '"status":4' in answer:
            sys.exit(f"the example of {example.call} fails: {status} {answer}")


def curl_of(example: Example) -> str:
    if example.curl is not None:
        return example.curl
    method = example.call.split(" ")[0]
    url = shlex.quote(f"localhost:7600{example.path}")
    body = encode_body(example)
    if body is None:
        return f"curl {url}" if method == "GET" else f"curl -X {method} {url}"
    text = shlex.quote(body.decode().rstrip("\n"))
    if example.kind == LINES:
        return f"printf '%s\\n' {text} | curl {url} -H 'Content-Type: {LINES}' --data-binary @-"
    given = "" if method == "POST" else f"-X {method} "
    return f"curl {given}{url} --json {text}"


def python_of(example: Example) -> str:
    if example.python is not None:
        return example.python
    method = example.call.split(" ")[0]
    body = "" if example.body is None else f", {json.dumps(example.body, ensure_ascii=False)}"
    return f'service.call("{method}", "{example.path}"{body})'


class Schemas:
    """Schemas of the description, and the words for their types and limits."""

    def __init__(self, description: dict) -> None:
        self.named = description["components"]["schemas"]

    def resolve(self, schema: dict) -> dict:
        reference = schema.get("$ref")
        return self.named[reference.rsplit("/", 1)[1]] if reference else schema

    def describe_type(self, schema: dict) -> str:
        if "$ref" in schema:
            name = schema["$ref"].rsplit("/", 1)[1]
            return f"[{name}](#{name.lower()})"
        for key in ("oneOf", "anyOf"):
            if key in schema:
                return " or ".join(self.describe_type(part) for part in schema[key])
        if "enum" in schema:
            values = [value for value in schema["enum"] if value is not None]
            return ", ".join(f"`{value}`" for value in values)
        kind = schema.get("type", "any JSON")
        kinds = [part for part in (kind if isinstance(kind, list) else [kind]) if part != "null"]
        words = " or ".join(kinds)
        if "array" in kinds and "items" in schema:
            words = f"list of {self.describe_type(schema['items'])}"
        elif "object" in kinds and "properties" in schema:
            words = "object: " + ", ".join(f"`{name}`" for name in schema["properties"])
        limits = [
            f"{sign} {schema[key]}"
            for key, sign in (("minimum", "≥"), ("exclusiveMinimum", ">"), ("maximum", "≤"))
            if key in schema
        ]
        return " ".join([words, *limits])

    def fields(self, schema: dict) -> Iterator[tuple[str, str, str]]:
        """Yields name, type and description of the fields of an object."""
        schema = self.resolve(schema)
        required = set(schema.get("required", []))
        for name, field in schema.get("properties", {}).items():
            words = field.get("description", "")
            if "default" in field:
                words = f"{words} Default: `{json.dumps(field['default'])}`.".strip()
            if name in required and schema.get("additionalProperties") is False:
                words = f"Required. {words}".strip()
            yield name, self.describe_type(field), words


def table(rows: list[tuple[str, ...]], head: tuple[str, ...]) -> str:
    if not rows:
        return ""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n\n"


def body_schema(content: dict) -> Optional[dict]:
    for kind in content.values():
        if "schema" in kind and ("$ref" in kind["schema"] or "properties" in kind["schema"]):
            return kind["schema"]
    return None


def name_schema(schema: dict) -> str:
    name = schema.get("$ref", "").rsplit("/", 1)[-1]
    return f"[{name}](#{name.lower()})" if name else "an object"


def write_call(call: str, operation: dict, examples: list[Example]) -> str:
    summary = operation["summary"]
    parts = [f"## {call}\n\n{summary[0].upper()}{summary[1:]}.{(' ' + operation['description']) if 'description' in operation else ''}\n\n"]
    parameters = [
        (f"`{parameter['name']}`", parameter["in"], describe_parameter(parameter))
        for parameter in operation["parameters"]
        if parameter["in"] != "path"
    ]
    parts.append(table(parameters, ("parameter", "in", "meaning")))
    sent = operation.get("requestBody")
    if sent:
        schema = body_schema(sent["content"])
        lines = " or one on each line (`application/x-ndjson`)" if LINES in sent["content"] else ""
        parts.append(f"Body: {name_schema(schema) if schema else ', '.join(sent['content'])}{lines}.\n\n")
    answers = []
    for status, response in operation["responses"].items():
        if status == "default" or "$ref" in response:
            continue
        schema = body_schema(response.get("content", {}))
        words = response.get("description", "")
        answers.append(f"{status}: {words}{' ' + name_schema(schema) + '.' if schema else ''}")
    errors = [status for status, response in operation["responses"].items() if "$ref" in response and status != "default"]
    answers += [f"Errors of its own: {', '.join(errors)}."] if errors else []
    parts.append("".join(f"- {answer}\n" for answer in answers) + "\n")
    curls = "\n".join(curl_of(example) for example in examples)
    pythons = "\n".join(python_of(example) for example in examples)
    parts.append(f"```sh\n{curls}\n```\n\n")
    if pythons:
        parts.append(f"```python\n{pythons}\n```\n\n")
    return "".join(parts)


def describe_parameter(parameter: dict) -> str:
    schema = parameter.get("schema", {})
    words = parameter.get("description", "")
    if "enum" in schema:
        words += " One of " + ", ".join(f"`{value}`" for value in schema["enum"]) + "."
    if "default" in schema:
        words += f" Default: `{json.dumps(schema['default'])}`."
    return words.strip()


def write_page(description: dict) -> str:
    schemas = Schemas(description)
    by_call: dict[str, list[Example]] = {}
    for example in EXAMPLES:
        by_call.setdefault(example.call, []).append(example)
    parts = [HEAD, "\n"]
    contents, calls = [], []
    for path, operations in description["paths"].items():
        # A document may have the id `get` or `delete`, which are names of calls, too.
        if path.endswith(("/documents/get", "/documents/delete")):
            operations = {"post": operations["post"]}
        for method in METHODS:
            if method not in operations:
                continue
            call = f"{method.upper()} {path}"
            if call not in by_call:
                sys.exit(f"{call} has no example: add one to EXAMPLES of {Path(__file__).name}")
            anchor = "".join(letter for letter in call.lower() if letter.isalnum() or letter in " -_").replace(" ", "-")
            contents.append((f"[`{call}`](#{anchor})", operations[method]["summary"]))
            calls.append(write_call(call, operations[method], by_call.pop(call)))
    if by_call:
        sys.exit(f"there is no such call: {', '.join(by_call)}")
    parts.append(table(contents, ("call", "what it does")))
    parts += calls
    parts.append("# Objects\n\n")
    for name, schema in schemas.named.items():
        fields = [(f"`{field}`", kind, words) for field, kind, words in schemas.fields(schema)]
        about = schema.get("description", "")
        parts.append(f"## {name}\n\n{about + chr(10) + chr(10) if about else ''}")
        if fields:
            parts.append(table(fields, ("field", "type", "meaning")))
        else:
            parts.append(f"{schemas.describe_type(schema)}\n\n")
    return "".join(parts).rstrip("\n") + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="the command `lookalike`")
    parser.add_argument("--check", action="store_true", help="fail if the page differs")
    arguments = parser.parse_args()
    with Service(arguments.program) as service:
        description = json.loads(service.request("GET", "/openapi.json")[1])
        run_examples(service)
    page = write_page(description)
    if not arguments.check:
        PAGE.write_text(page, encoding="utf-8")
    elif page != PAGE.read_text(encoding="utf-8"):
        sys.exit(f"docs/http.md differs from the service: run tools/reference/http_page.py {arguments.program}")


if __name__ == "__main__":
    main()
