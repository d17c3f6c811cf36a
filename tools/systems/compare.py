#!/usr/bin/env python3
"""Compares the program for Windows with the one of this system: the same inputs give the same bytes.

    tools/systems/compare.py --program target/x86_64-pc-windows-gnu/debug/lookalike.exe --runner wine \\
        --reference target/debug/lookalike

Both run each command beside copies of the same files. Exit codes, standard output and all written files are compared byte for
byte. Then it tries what only a running system shows: Ctrl-C, the service with a kill in between, two services on one
directory, tools for language models, a double click, and a folder that is dropped on the icon of the program.
"""

from __future__ import annotations

import argparse
import json
import os
import pty
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

SENTENCE = (
    "the ferry to the island leaves at seven in the morning and nobody misses it because the next one leaves at noon and "
    "the captain waits for no one"
)

#: Longest time of a step in seconds. Under Wine the first start of a program takes some.
LONGEST_STEP = 120

#: Parts of outputs that differ between two runs of the same program: times and durations.
CHANGING = [
    (re.compile(rb'"(seconds|documents_per_second|[a-z_]*_seconds|created|finished|started|time)": ?[0-9.e"T:Z+-]+'), b'"\\1": 0'),
    (re.compile(rb'\["(read|forms|match|write|[a-z ]+)",[0-9.e-]+\]'), b'["\\1",0]'),
    (re.compile(rb'"request_id": ?"[0-9a-f-]+"'), b'"request_id":""'),
    (re.compile(rb"\b[0-9.]+ (s|ms|minutes)\b(: [0-9.]+ [kMG]?B/s)?"), b"a time"),
]

COMMANDS = [
    "dedup in.jsonl -o out.jsonl --removed removed.tsv --clusters clusters.tsv --json",
    "dedup crlf.csv -o out.csv",
    "dedup news.jsonl -o news-out.jsonl --removed news.tsv",
    "pairs news.jsonl -o pairs.tsv --threshold 0.5",
    "pairs essays/甲*.txt essays/*/*.txt -o essay-pairs.tsv --threshold 0.5",
    "pairs essays/*.txt -o refused.tsv",
    "passages essays -o shared.jsonl",
    "passages essays -o shared.tsv --report shared.html",
    "compare essays/甲.txt essays/wide.txt",
    "compare essays/甲.txt essays/wide.txt --json",
    "explain removed.tsv b in.jsonl",
    "index build library in.jsonl --distance 8",
    "index info library",
    "search library in.jsonl --distance 8",
    "dedup more.jsonl -o more-out.jsonl --threads 1",
    "passages almanac.pdf essays -o pdf.tsv",
    "dedup in.jsonl --no-such-option",
    "dedup none.jsonl -o out2.jsonl",
    "dedup bad.jsonl -o out3.jsonl --rejected rejected.tsv",
    "fingerprint in.jsonl",
]


class Program:
    """A program and what starts it."""

    def __init__(self, command: list[str], is_windows: bool) -> None:
        self.command = command
        self.is_windows = is_windows
        self.environment = dict(os.environ, LANG="C.UTF-8", LC_ALL="C.UTF-8", WINEDEBUG="-all")

    def run(self, arguments: list[str], directory: Path, **options: object) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [*self.command, *arguments],
            cwd=directory,
            capture_output=True,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            timeout=LONGEST_STEP,
            check=False,
            **options,
        )

    def start(self, arguments: list[str], directory: Path, **options: object) -> subprocess.Popen[bytes]:
        # A group of its own, as a terminal gives to each command.
        return subprocess.Popen(
            [*self.command, *arguments], cwd=directory, env=self.environment, start_new_session=True, **options
        )

    def path(self, path: Path) -> str:
        """Returns an absolute path as the system of the program has it."""
        return "Z:" + str(path).replace("/", "\\") if self.is_windows else str(path)


def rows(pairs: list[tuple[str, str]], end: str = "\r\n") -> bytes:
    return "".join(json.dumps({"id": name, "text": text}, ensure_ascii=False) + end for name, text in pairs).encode()


def write_inputs(place: Path) -> None:
    essays = place / "essays"
    (essays / "class b").mkdir(parents=True)
    near = SENTENCE.replace("captain", "skipper")
    (place / "in.jsonl").write_bytes(rows([("a", SENTENCE), ("b", near), ("ç 文", "something else"), ("d", "")]))
    (place / "crlf.csv").write_bytes(f"id,text\r\na,{SENTENCE}\r\nb,{SENTENCE}\r\n".encode())
    (place / "bad.jsonl").write_bytes(rows([("a", SENTENCE)]) + b"no JSON\r\n" + rows([("b", "a last text")]))
    (place / "more.jsonl").write_bytes(rows([(f"d{n}", f"{SENTENCE} number {n // 2}") for n in range(2000)], "\n"))
    shutil.copy(ROOT / "examples/news.jsonl", place)
    shutil.copy(ROOT / "examples/archive/almanac.pdf", place)
    (essays / "甲.txt").write_bytes(f"My own words come first. {SENTENCE}. And an end.\r\n".encode())
    (essays / "class b/élève.txt").write_bytes(f"Other thoughts.\r\n{near}\r\n".encode())
    (essays / "wide.txt").write_bytes(f"\ufeffText of Notepad.\r\n{SENTENCE}\r\n".encode("utf-16-le"))
    (essays / "丙.md").write_bytes("# Title\n\nNothing of this is in another essay of the class.\n".encode())


def snapshot(place: Path) -> dict[str, bytes]:
    """Returns the content of every file, with what changes from run to run replaced."""
    found = {}
    for path in sorted(place.rglob("*")):
        if path.is_file():
            found[str(path.relative_to(place))] = without_times(path.read_bytes())
    return found


def without_times(content: bytes) -> bytes:
    for pattern, replacement in CHANGING:
        content = pattern.sub(replacement, content)
    return content


def fail(message: str) -> None:
    raise SystemExit(f"FAILED: {message}")


def check(is_true: bool, message: str) -> None:
    if not is_true:
        fail(message)


def show_difference(name: str, one: bytes, other: bytes) -> None:
    at = next((at for at, pair in enumerate(zip(one, other)) if pair[0] != pair[1]), min(len(one), len(other)))
    window = slice(max(0, at - 100), at + 200)
    fail(f"{name} differs at byte {at}:\n  reference {one[window]!r}\n  program   {other[window]!r}")


def compare_commands(program: Program, reference: Program, place: Path) -> None:
    places = [place / "reference", place / "program"]
    for command in COMMANDS:
        expected, given = (
            one.run(command.split(), directory) for one, directory in zip((reference, program), places, strict=True)
        )
        check(
            expected.returncode == given.returncode,
            f"{command}: code {given.returncode}, not {expected.returncode}\n{given.stderr.decode(errors='replace')}",
        )
        for stream in ("stdout", "stderr"):
            one, other = (without_times(getattr(run, stream)) for run in (expected, given))
            # Messages of the system are those of the system.
            if one != other and not (stream == "stderr" and b"os error" in one):
                show_difference(f"{stream} of {command}", one, other)
        one, other = (snapshot(directory) for directory in places)
        check(one.keys() == other.keys(), f"{command}: files {sorted(one.keys() ^ other.keys())}")
        for name, content in one.items():
            if content != other[name] and not name.startswith("library/"):
                show_difference(f"{name} of {command}", content, other[name])
    print(f"equal: {len(COMMANDS)} commands")


def check_paths(program: Program, reference: Program, place: Path) -> None:
    """A drive letter, a path of more than 260 characters, and characters of any script."""
    directory = place / "/".join(["Aufsätze der 作文 class"] * 14)
    directory.mkdir(parents=True)
    (directory / "in.jsonl").write_bytes(rows([("a", SENTENCE), ("b", SENTENCE)]))
    for one, name in ((reference, "r.jsonl"), (program, "p.jsonl")):
        paths = [one.path(directory / path) for path in ("in.jsonl", name)]
        check(len(paths[0]) > 260, "the path is short")
        done = one.run(["dedup", paths[0], "-o", paths[1]], place)
        check(done.returncode == 0, f"dedup {paths[0]}: {done.stderr.decode(errors='replace')}")
    check((directory / "r.jsonl").read_bytes() == (directory / "p.jsonl").read_bytes(), "outputs at long paths differ")
    print("equal: drive letter, long path, any script")


def check_tools(program: Program, reference: Program, place: Path) -> None:
    """Answers to a language model."""
    answers = []
    for one in (reference, program):
        directory = place / "program"
        asked = [
            ("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}),
            ("tools/call", {"name": "find_near_duplicates", "arguments": {"inputs": ["in.jsonl"]}}),
            ("tools/call", {"name": "shared_passages", "arguments": {"documents": ["essays"]}}),
            ("tools/call", {"name": "compare_texts", "arguments": {"a": SENTENCE, "b": SENTENCE + " but me"}}),
            ("tools/call", {"name": "find_near_duplicates", "arguments": {"inputs": ["../inside.txt"]}}),
        ]
        lines = [json.dumps({"jsonrpc": "2.0", "id": at, "method": method, "params": given}) for at, (method, given) in enumerate(asked)]
        lines.insert(1, json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}))
        process = one.start(
            ["mcp", "--folder", one.path(directory)],
            directory,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        answered, _ = process.communicate("".join(f"{line}\n" for line in lines).encode(), timeout=LONGEST_STEP)
        refused = answered.count(b'"isError":true')
        check(refused == 1, f"{refused} calls of tools are refused, not 1: {answered!r}")
        # Paths are absolute, and those of the system.
        plain = answered.replace(one.path(directory).replace("\\", "\\\\").encode(), b"DIR")
        plain = plain.replace(one.path(directory).replace("\\", "\\\\\\\\").encode(), b"DIR")
        plain = re.sub(rb"DIR\\+", b"DIR/", plain)
        check(len(plain.splitlines()) == len(asked), f"{len(plain.splitlines())} answers of mcp: {plain!r}")
        answers.append(without_times(plain))
    if answers[0] != answers[1]:
        show_difference("an answer of mcp", answers[0], answers[1])
    print("equal: answers to language models")


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


class Service:
    """A service of a program."""

    def __init__(self, program: Program, directory: Path) -> None:
        self.port = free_port()
        arguments = ["serve", "--data", "data", "--listen", f"127.0.0.1:{self.port}"]
        self.process = program.start(arguments, directory, stderr=subprocess.PIPE)

    def request(self, method: str, path: str, body: object = None, accept: str = "*/*") -> tuple[int, bytes]:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}",
            data,
            {"Content-Type": "application/json", "Accept": accept},
            method=method,
        )
        try:
            with urllib.request.urlopen(request, timeout=LONGEST_STEP) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as refusal:
            return refusal.code, refusal.read()

    def wait_until_ready(self) -> None:
        end = time.monotonic() + LONGEST_STEP
        while time.monotonic() < end:
            if self.process.poll() is not None:
                fail(f"the service has ended: {self.process.stderr.read()!r}")
            try:
                answer = self.request("GET", "/readyz")
            except OSError as error:
                answer = (0, str(error).encode())
            if answer[0] == 200:
                return
            time.sleep(0.05)
        fail(f"the service does not become ready: {answer}")

    def kill(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(LONGEST_STEP)


@contextmanager
def serving(program: Program, directory: Path) -> Iterator[Service]:
    service = Service(program, directory)
    try:
        service.wait_until_ready()
        yield service
    finally:
        if service.process.poll() is None:
            service.kill()


NEAR = {"id": "near", "text": SENTENCE.replace("captain", "skipper")}


def ask_service(service: Service) -> list[tuple[int, bytes]]:
    """Requests of an insert, a query, the pages and mistakes; returns the answers."""
    documents = "/v1/collections/news/documents"
    return [
        service.request("PUT", "/v1/collections/news", {"threshold": 0.6}),
        service.request("POST", documents, {"id": "a", "text": SENTENCE}),
        service.request("POST", "/v1/collections/news/query", {"text": NEAR["text"]}),
        service.request("GET", f"{documents}/a"),
        service.request("GET", f"{documents}/none"),
        service.request("GET", "/", accept="text/html"),
        service.request(
            "POST", "/v1/passages/documents", {"documents": [{"id": "one", "text": SENTENCE}, {"id": "two", "text": f"Quoted: {SENTENCE}"}]}
        ),
        service.request("POST", "/v1/compare", {"pairs": [{"a": SENTENCE, "b": NEAR["text"]}]}),
        service.request("POST", "/v1/fingerprint", {"texts": [SENTENCE]}),
    ]


def check_service(program: Program, reference: Program, place: Path) -> None:
    answers = []
    for one, name in ((reference, "service-reference"), (program, "service-program")):
        directory = place / name
        directory.mkdir()
        with serving(one, directory) as service:
            answers.append([(status, without_times(body)) for status, body in ask_service(service)])
            second = Service(one, directory)
            check(second.process.wait(LONGEST_STEP) == 2, "a second service on the directory is not refused")
            refusal = second.process.stderr.read()
            check(b"another process has it open" in refusal, f"the second service says {refusal!r}")
            service.request("POST", "/v1/collections/news/documents", {"id": "last", "text": "the last insert before the kill"})
            service.kill()
        with serving(one, directory) as service:
            kept = service.request("GET", "/v1/collections/news/documents/last")
            check(kept[0] == 200, f"what was inserted before a kill: {kept}")
            removed = service.request("POST", "/v1/collections/news/documents", NEAR)
            check(b'"duplicate"' in removed[1], f"a near-duplicate after a kill: {removed}")
            check(service.request("DELETE", "/v1/collections/news")[0] == 204, "the collection is not deleted")
            check(not (directory / "data/news").exists(), "the files of a deleted collection stay")
            os.killpg(service.process.pid, signal.SIGINT)
            code = service.process.wait(LONGEST_STEP)
            check(code == 0, f"the service ends with {code} after Ctrl-C")
    for expected, given in zip(*answers, strict=True):
        check(expected[0] in (200, 201, 404), f"a request is not valid: {expected}")
        check(expected[0] == given[0], f"status {given}, not {expected}")
        if expected[1] != given[1]:
            show_difference("an answer of the service", expected[1], given[1])
    print(f"equal: {len(answers[0])} answers of the service; killed, restarted, refused twice, ended by Ctrl-C")


def check_interruption(program: Program, place: Path) -> None:
    """Ctrl-C removes incomplete outputs."""
    directory = place / "interrupted"
    directory.mkdir()
    process = program.start(["dedup", "-", "-o", "out.jsonl"], directory, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdin.write(rows([(f"d{n}", f"{SENTENCE} {n}") for n in range(1000)]))
    process.stdin.flush()
    time.sleep(5)
    check(process.poll() is None, "the command has ended before Ctrl-C")
    os.killpg(process.pid, signal.SIGINT)
    code = process.wait(LONGEST_STEP)
    check(code != 0, "a command that was interrupted succeeds")
    left = [path.name for path in directory.iterdir()]
    check(not left, f"Ctrl-C leaves {left}")
    print(f"Ctrl-C ends a command with the code {code}, and leaves nothing")


class AgreeableHandler(BaseHTTPRequestHandler):
    """Answers every request with 200, as a service that runs does."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def other_server(port: int) -> Iterator[None]:
    server = ThreadingHTTPServer(("127.0.0.1", port), AgreeableHandler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()


class DoubleClick:
    """The program without arguments and with a console of its own, and the pages that it opens."""

    def __init__(self, program: Program, directory: Path) -> None:
        self.program = program
        self.directory = directory
        self.opened = directory / "opened"
        self.terminal = -1
        browser = directory / "xdg-open"
        browser.write_text(f"#!/bin/sh\nprintf '%s\\n' \"$1\" >> '{self.opened}'\n")
        browser.chmod(0o755)
        program.environment["PATH"] = f"{directory}:{os.environ['PATH']}"

    def addresses(self) -> list[str]:
        return self.opened.read_text().splitlines() if self.opened.exists() else []

    @contextmanager
    def started(self, *dropped: str) -> Iterator[subprocess.Popen[bytes]]:
        """Starts the program in a terminal that nobody else uses, which Wine makes a console. Files that are dropped on the
        icon of a program are its arguments."""
        outer, inner = pty.openpty()
        self.terminal = outer
        process = self.program.start([*dropped], self.directory, stdin=inner, stdout=inner, stderr=inner)
        os.close(inner)
        threading.Thread(target=read_to_end, args=[outer], daemon=True).start()
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(LONGEST_STEP)

    @contextmanager
    def running(self) -> Iterator[str]:
        """Starts the service, and returns the address of the page that it opens."""
        before = len(self.addresses())
        with self.started() as process:
            end = time.monotonic() + LONGEST_STEP
            while len(self.addresses()) == before and process.poll() is None and time.monotonic() < end:
                time.sleep(0.2)
            check(len(self.addresses()) == before + 1, "no page was opened in the browser")
            address = self.addresses()[-1]
            check(address.endswith("/#/passages"), f"opened {address}")
            page = urllib.request.Request(address.removesuffix("#/passages"), headers={"Accept": "text/html"})
            with urllib.request.urlopen(page, timeout=LONGEST_STEP) as answer:
                check(answer.read(15).lower() == b"<!doctype html>", "the page is not that of the console")
            yield address


def read_to_end(terminal: int) -> None:
    """Reads what a program writes to its terminal, so that it can go on writing."""
    try:
        while os.read(terminal, 4096):
            pass
    except OSError:
        # The program has ended.
        pass
    os.close(terminal)


def check_double_click(program: Program, place: Path) -> None:
    """A double click opens the page of the service, a second one the same page, and one after a kill that of a new service,
    although another server answers at the address that was left behind."""
    directory = place / "double click"
    directory.mkdir()
    click = DoubleClick(program, directory)
    with click.running() as address:
        with click.started() as again:
            check(again.wait(LONGEST_STEP) == 0, "a second double click fails")
        time.sleep(1)
        check(click.addresses() == [address] * 2, "a second double click does not open the same page")
    with other_server(int(re.search(r":(\d+)/", address)[1])), click.running() as fresh:
        check(fresh != address, "a double click opens the page of another server")
    print(f"a double click opens {address}, a second one the same, and one after a kill {fresh}")


def check_dropped_folder(program: Program, place: Path) -> None:
    """A folder that is dropped on the icon is answered in a window that stays until a key is pressed."""
    directory = place / "dropped folder"
    directory.mkdir()
    click = DoubleClick(program, directory)
    with click.started(program.path(directory)) as process:
        time.sleep(5)
        check(process.poll() is None, "the window of a dropped folder closes at once")
        os.write(click.terminal, b"\r")
        code = process.wait(LONGEST_STEP)
        check(code == 2, f"a dropped folder gives the code {code}")
    check(not click.addresses(), "a dropped folder opens a page")
    print("a folder that is dropped on the icon is answered until a key is pressed")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=Path, required=True, help="the program that is tried")
    parser.add_argument("--runner", help="what starts it, for example wine")
    parser.add_argument("--reference", type=Path, required=True, help="the program of this system")
    parser.add_argument("--only", help="name of one step")
    given = parser.parse_args()
    runner = [given.runner] if given.runner else []
    program = Program([*runner, str(given.program.resolve())], is_windows=given.program.suffix == ".exe")
    reference = Program([str(given.reference.resolve())], is_windows=False)
    with tempfile.TemporaryDirectory(prefix="lookalike-systems-") as name:
        place = Path(name)
        for directory in ("reference", "program"):
            write_inputs(place / directory)
        steps = {
            "commands": lambda: compare_commands(program, reference, place),
            "paths": lambda: check_paths(program, reference, place),
            "tools": lambda: check_tools(program, reference, place),
            "service": lambda: check_service(program, reference, place),
            "interruption": lambda: check_interruption(program, place),
            "double-click": lambda: check_double_click(program, place) if program.is_windows else None,
            "dropped-folder": lambda: check_dropped_folder(program, place) if program.is_windows else None,
        }
        for step, run in steps.items():
            if given.only in (None, step):
                run()
    sys.stdout.flush()


if __name__ == "__main__":
    main()
