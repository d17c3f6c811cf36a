#!/usr/bin/env python3
"""Measures speed and beginning of replicas, and writes `bench/results/replicas_*.json`.

Rounds, the hour of feed and the counts of requests take long and run by themselves; their last lines, in a file, are
stored by `--rounds`, `--feed`, `--requests` and others. Everything else is measured with `--program`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

from speed import make_titles, measure_bulk, measure_put, measure_single

RESULTS = Path(__file__).resolve().parents[1] / "results"


def machine() -> dict:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    memory = int(Path("/proc/meminfo").read_text().split()[1]) / 2**20
    return {
        "cores": os.cpu_count(), "cpu": names[0] if names else platform.machine(), "memory_gib": round(memory, 1),
        "python": platform.python_version(), "system": f"{platform.system()} {platform.machine()}",
    }


def store(name: str, rows: list[dict]) -> None:
    result = {"machine": machine(), "measured": rows}
    text = json.dumps(result, indent=1, ensure_ascii=False, sort_keys=True)
    (RESULTS / f"{name}.json").write_text(text + "\n")


def measure_inserts(program: str) -> list[dict]:
    with tempfile.TemporaryDirectory() as folder:
        put = measure_put(Path(folder), 400)
    cases = {
        "one object of the log alone, written and synced": put,
        "insert, no log, one after another": measure_single(program, False, 0, 400, 0.0),
        "insert, log, one after another, 1,000 records a second": measure_single(program, True, 1000, 400, 0.0),
        "lone insert, log, 4 records a second": measure_single(program, True, 4, 60, 0.4),
    }
    return [
        {"what": what, "median_ms": round(median, 2), "p99_ms": round(high, 2)}
        for what, (median, high) in cases.items()
    ]


def measure_bulks(program: str, titles: int, runs: int) -> list[dict]:
    lines = make_titles(titles)
    rows = []
    for run in range(1, runs + 1):
        without = measure_bulk(program, lines, titles, False)
        with_log = measure_bulk(program, lines, titles, True)
        rows.append({
            "run": run, "documents": titles, "without": round(without), "with": round(with_log),
            "share": round(with_log / without, 3),
        })
    return rows


def read_lines(path: Path) -> list[dict]:
    """Returns the reports among the lines of runs."""
    return [json.loads(line) for line in path.read_text().splitlines() if line.startswith("{")]


def parse_rounds(path: Path) -> list[dict]:
    rows = read_lines(path)
    for row in rows:
        row["disturbed"] = row["rounds"] - row.get("none", 0)
        row["longest_outage"] = round(row["longest_outage"], 2)
    return rows


def replace_rows(name: str, rows: list[dict], field: str) -> list[dict]:
    """Returns the stored rows, of which those with the same value of a field are replaced."""
    path = RESULTS / f"{name}.json"
    stored = json.loads(path.read_text())["measured"] if path.exists() else []
    replaced = {row[field] for row in rows}
    return [row for row in stored if row[field] not in replaced] + rows


def parse_requests(path: Path) -> list[dict]:
    """Returns a row for each kind of requests, with the settings of the run and what it reached."""
    rows = []
    for run in read_lines(path):
        requests = run.pop("requests")
        rows += [{**run, **request} for request in requests]
    return rows


def parse_full_disk(path: Path) -> list[dict]:
    rows = read_lines(path)
    for row in rows:
        row["longest_outage"] = round(row["longest_outage"], 2)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", help="the command `lookalike`, with object stores")
    parser.add_argument("--titles", type=int, default=300_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--new-replica", type=int, default=0, help="titles of the snapshot of a new replica")
    parser.add_argument("--folder", help="a folder with room for three times these titles")
    parser.add_argument("--rounds", type=Path, help="file with the last lines of runs of rounds.py")
    parser.add_argument("--namespaces", type=Path, help="the same of runs with --cut namespace")
    parser.add_argument("--throttled", type=Path, help="the same of runs with --refused, and of runs without it")
    parser.add_argument("--full-disk", type=Path, help="file with the last line of full_disk.py")
    parser.add_argument("--requests", type=Path, help="file with the last line of request_counts.py")
    parser.add_argument("--exclusive", type=Path, help="file with the last lines of runs of exclusive.py")
    parser.add_argument("--feed", type=Path, help="file with the last line of feed.py")
    arguments = parser.parse_args()
    if arguments.new_replica and not arguments.program:
        parser.error("--new-replica needs --program")
    if arguments.program and arguments.runs:
        store("replicas_inserts", measure_inserts(arguments.program))
        store("replicas_bulk", measure_bulks(arguments.program, arguments.titles, arguments.runs))
    if arguments.new_replica:
        command = [sys.executable, "beginning.py", "--program", arguments.program]
        command += ["--titles", str(arguments.new_replica)]
        command += ["--folder", arguments.folder] if arguments.folder else []
        answer = subprocess.run(command, check=True, capture_output=True, cwd=Path(__file__).parent)
        store("replicas_beginning", [json.loads(answer.stdout)])
    if arguments.rounds:
        rows = replace_rows("replicas_rounds", parse_rounds(arguments.rounds), "store")
        store("replicas_rounds", rows)
    if arguments.namespaces:
        store("replicas_namespaces", parse_rounds(arguments.namespaces))
    if arguments.throttled:
        store("replicas_throttled", parse_rounds(arguments.throttled))
    if arguments.full_disk:
        store("replicas_full_disk", parse_full_disk(arguments.full_disk))
    if arguments.requests:
        store("replicas_requests", parse_requests(arguments.requests))
    if arguments.exclusive:
        store("replicas_exclusive", read_lines(arguments.exclusive))
    if arguments.feed:
        last = arguments.feed.read_text().splitlines()[-1]
        store("replicas_feed", [json.loads(last)])


if __name__ == "__main__":
    main()
