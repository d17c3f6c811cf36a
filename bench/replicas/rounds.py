#!/usr/bin/env python3
"""Rounds of near-duplicate bursts at three replicas, of which one is killed, stopped or erased in each round.

After each round, all replicas must be equal, byte for byte; of each group of near-duplicates exactly one document is
kept; every answer that a client got is in the export; and the log, replayed by `lookalike dedup`, keeps the same
documents.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from service import Cluster, run_clients
from stores import STORES

THRESHOLD = 0.6
GROUPS, VARIANTS, CLIENTS = 12, 5, 20
WORDS = [f"{a}{b}" for a in "bcdfghklmnprst" for b in ("ala", "ero", "inu", "ost", "ute", "yam", "ick", "orn")]


def make_burst(numbers: random.Random, round_number: int) -> list[tuple[str, str, str]]:
    """Returns documents as group, id and text, in a random order. Variants of a group differ in one word."""
    documents = []
    for group in range(GROUPS):
        words = [numbers.choice(WORDS) + str(numbers.randrange(1000)) for _ in range(30)]
        for variant in range(VARIANTS):
            text = list(words)
            if variant:
                text[numbers.randrange(len(text))] = f"edit{variant}"
            name = f"{round_number}-{group}"
            documents.append((name, f"{name}-{variant}", " ".join(text)))
    numbers.shuffle(documents)
    return documents


def disturb(cluster: Cluster, numbers: random.Random, done: threading.Event, report: dict) -> None:
    """Kills, stops or erases one replica while clients send."""
    at = numbers.randrange(len(cluster.replicas))
    replica = cluster.replicas[at]
    kinds = ["kill", "kill", "erase", "stop", "terminate", "none"]
    if cluster.proxies:
        kinds += ["partition", "partition", "outage"]
    kind = numbers.choice(kinds)
    report[kind] = report.get(kind, 0) + 1
    time.sleep(numbers.random() * 0.3)
    if kind == "none":
        return
    if kind == "stop":
        replica.send_signal(signal.SIGSTOP)
        done.wait(numbers.random() * 2)
        replica.send_signal(signal.SIGCONT)
        return
    if kind in ("partition", "outage"):
        cut = cluster.proxies if kind == "outage" else [cluster.proxies[at]]
        for proxy in cut:
            proxy.cut(numbers.choice(["refuse", "hang"]))
        done.wait(numbers.random() * 2)
        for proxy in cut:
            proxy.mend()
        return
    if kind == "terminate":
        replica.stop()
    else:
        replica.kill()
    if kind == "erase":
        replica.erase()
    done.wait(numbers.random() * 0.5)
    replica.start()
    replica.wait_until_ready()


def run_round(cluster: Cluster, numbers: random.Random, number: int, report: dict) -> dict[str, dict]:
    """Returns the answers of the round by id."""
    documents = make_burst(numbers, number)
    answers: dict[str, dict] = {}
    lock = threading.Lock()

    def send(identifier: str, text: str):
        def job(client):
            body = json.dumps({"id": identifier, "text": text}).encode()
            status, answer = client.request("POST", "/v1/collections/news/documents", body)
            if status != 200:
                raise RuntimeError(f"{identifier}: {status} {answer[:300]!r}")
            with lock:
                answers[identifier] = json.loads(answer)

        return job

    work: list[list] = [[] for _ in range(CLIENTS)]
    for at, (_, identifier, text) in enumerate(documents):
        work[at % CLIENTS].append(send(identifier, text))
    done = threading.Event()
    failure: list[BaseException] = []

    def disturb_and_note() -> None:
        try:
            disturb(cluster, numbers, done, report)
        except BaseException as error:  # noqa: BLE001
            failure.append(error)

    disturber = threading.Thread(target=disturb_and_note)
    disturber.start()
    clients = run_clients(cluster, work, number)
    done.set()
    disturber.join()
    if failure:
        raise failure[0]
    report["longest_outage"] = max(
        report.get("longest_outage", 0.0), *(client.longest_outage for client in clients)
    )
    return answers


def check_equal(cluster: Cluster, answers: dict[str, dict]) -> bytes:
    """Checks exports against one another and against the answers; returns the export."""
    cluster.wait_until_equal()
    exports = [replica.export("news") for replica in cluster.replicas]
    if len(set(exports)) != 1:
        raise RuntimeError("the exports of the replicas differ")
    stored = {document["id"]: document for document in map(json.loads, exports[0].splitlines())}
    for identifier, answer in answers.items():
        document = stored.get(identifier)
        if document is None:
            raise RuntimeError(f"the answered document {identifier} is missing")
        if (document.get("of"), document["seq"]) != (answer["of"], answer["seq"]):
            raise RuntimeError(f"{identifier}: answered {answer}, stored {document}")
    groups: dict[str, list[str]] = {}
    for document in stored.values():
        groups.setdefault(document["id"].rsplit("-", 1)[0], []).append(document.get("of"))
    for group, verdicts in groups.items():
        if verdicts.count(None) != 1:
            raise RuntimeError(f"of the group {group}, {verdicts.count(None)} documents are kept")
    return exports[0]


def check_replay(cluster: Cluster, export: bytes, folder: Path) -> None:
    """Checks that `dedup` over the documents in the order of the log keeps the same ones."""
    exported = cluster.log_command("export", cluster.log, "--collection", "news")
    if exported.returncode != 0:
        raise RuntimeError(exported.stderr.decode())
    seen, ordered = set(), []
    for line in exported.stdout.splitlines():
        entry = json.loads(line)
        # A document that a client sent again has its first answer.
        if entry["kind"] == "insert" and entry["body"]["id"] not in seen:
            seen.add(entry["body"]["id"])
            ordered.append(entry["body"])
    source, kept = folder / "log.jsonl", folder / "kept.jsonl"
    source.write_text("".join(json.dumps(document) + "\n" for document in ordered))
    removed = folder / "removed.jsonl"
    for output in (kept, removed):
        output.unlink(missing_ok=True)
    command = [
        cluster.program, "dedup", source, "-o", kept, "--removed", removed, "--forms", "off",
        "--threshold", str(THRESHOLD), "--quiet",
    ]
    subprocess.run(command, check=True)
    replayed = {document["id"]: None for document in map(json.loads, kept.read_text().splitlines())}
    for line in map(json.loads, removed.read_text().splitlines()):
        replayed[line["id"]] = line["kept"]
    stored = {document["id"]: document.get("of") for document in map(json.loads, export.splitlines())}
    if replayed != stored:
        differing = [key for key in stored if replayed.get(key, "-") != stored[key]]
        raise RuntimeError(f"the replay differs: {differing[:5]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True, help="the command `lookalike`, with object stores")
    parser.add_argument("--store", choices=sorted(STORES), default="directory")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--replay-every", type=int, default=10, help="rounds between two replays by `dedup`")
    arguments = parser.parse_args()
    numbers = random.Random(arguments.seed)
    report: dict = {}
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        options = ["--snapshot-log-every", "5s", "--log-writes-per-second", "200", "--headroom", "16Mi"]
        store = STORES[arguments.store](folder)
        with Cluster(arguments.program, folder, store, options=options) as cluster:
            settings = json.dumps({"threshold": THRESHOLD}).encode()
            status, answer, _ = cluster.replicas[0].request("PUT", "/v1/collections/news", settings)
            if status != 201:
                raise RuntimeError(answer.decode())
            answers: dict[str, dict] = {}
            began = time.monotonic()
            for number in range(1, arguments.rounds + 1):
                answers.update(run_round(cluster, numbers, number, report))
                export = check_equal(cluster, answers)
                if number % arguments.replay_every == 0 or number == arguments.rounds:
                    check_replay(cluster, export, folder)
            report["store"] = arguments.store
            report["rounds"] = arguments.rounds
            report["documents"] = len(answers)
            report["seconds"] = round(time.monotonic() - began, 1)
            verified = cluster.log_command("verify", cluster.log)
            if verified.returncode != 0:
                raise RuntimeError(verified.stderr.decode())
        store.stop()
    print(json.dumps(report))


if __name__ == "__main__":
    main()
