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
from dataclasses import dataclass
from pathlib import Path

from http_proxy import HttpProxy, Throttle
from namespaces import NamespaceLink
from proxy import StoreProxy
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


@dataclass
class Disturbance:
    """Kinds of failures from which each round takes one, and the longest time that one lasts."""

    kinds: list[str]
    longest_seconds: float


KINDS = ["kill", "kill", "erase", "stop", "terminate", "none"]
LINK_KINDS = ["partition", "partition", "outage"]


def disturb(
    cluster: Cluster, numbers: random.Random, done: threading.Event, report: dict, settings: Disturbance
) -> None:
    """Kills, stops, erases or cuts off one replica, or cuts off all, while clients send."""
    at = numbers.randrange(len(cluster.replicas))
    replica = cluster.replicas[at]
    kind = numbers.choice(settings.kinds)
    report[kind] = report.get(kind, 0) + 1
    time.sleep(numbers.random() * 0.3)
    if kind == "none":
        return
    if kind == "stop":
        replica.send_signal(signal.SIGSTOP)
        done.wait(numbers.random() * settings.longest_seconds)
        replica.send_signal(signal.SIGCONT)
        return
    if kind in ("partition", "outage"):
        cut = cluster.links if kind == "outage" else [cluster.links[at]]
        for link in cut:
            mode = numbers.choice(link.cut_modes)
            field = mode.replace(" ", "_")
            report[field] = report.get(field, 0) + 1
            link.cut(mode)
        done.wait(numbers.random() * settings.longest_seconds)
        for link in cut:
            link.mend()
        return
    if kind == "terminate":
        replica.stop()
    else:
        replica.kill()
    if kind == "erase":
        replica.erase()
    done.wait(numbers.random() * settings.longest_seconds / 4)
    replica.start()
    replica.wait_until_ready()


def send_documents(cluster: Cluster, documents: list[tuple[str, str, str]], seed: int, report: dict) -> dict[str, dict]:
    """Sends documents by several clients at once; returns the answers by id, and notes their times."""
    answers: dict[str, dict] = {}
    lock = threading.Lock()

    def send(identifier: str, text: str):
        def job(client):
            body = json.dumps({"id": identifier, "text": text}).encode()
            began = time.monotonic()
            status, answer = client.request("POST", "/v1/collections/news/documents", body)
            took = time.monotonic() - began
            if status != 200:
                raise RuntimeError(f"{identifier}: {status} {answer[:300]!r}")
            with lock:
                answers[identifier] = json.loads(answer)
                report.setdefault("times", []).append(took)

        return job

    work: list[list] = [[] for _ in range(CLIENTS)]
    for at, (_, identifier, text) in enumerate(documents):
        work[at % CLIENTS].append(send(identifier, text))
    clients = run_clients(cluster, work, seed)
    report["longest_outage"] = max(
        report.get("longest_outage", 0.0), *(client.longest_outage for client in clients)
    )
    return answers


def run_round(
    cluster: Cluster, numbers: random.Random, number: int, report: dict, settings: Disturbance
) -> dict[str, dict]:
    """Returns the answers of the round by id."""
    documents = make_burst(numbers, number)
    done = threading.Event()
    failure: list[BaseException] = []

    def disturb_and_note() -> None:
        try:
            disturb(cluster, numbers, done, report, settings)
        except BaseException as error:  # noqa: BLE001
            failure.append(error)

    disturber = threading.Thread(target=disturb_and_note)
    disturber.start()
    try:
        answers = send_documents(cluster, documents, number, report)
    finally:
        done.set()
        disturber.join()
    if failure:
        raise failure[0]
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


def create_collection(cluster: Cluster) -> None:
    settings = json.dumps({"threshold": THRESHOLD}).encode()
    status, answer, _ = cluster.replicas[0].request("PUT", "/v1/collections/news", settings)
    if status != 201:
        raise RuntimeError(answer.decode())


def summarize_times(report: dict) -> None:
    """Replaces the times of all answers by their median and the 99th of 100, in milliseconds."""
    times = sorted(report.pop("times"))
    report["median_ms"] = round(times[len(times) // 2] * 1000, 1)
    report["p99_ms"] = round(times[int(len(times) * 0.99)] * 1000, 1)


def verify_log(cluster: Cluster) -> None:
    verified = cluster.log_command("verify", cluster.log)
    if verified.returncode != 0:
        raise RuntimeError(verified.stderr.decode())


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True, help="the command `lookalike`, with object stores")
    parser.add_argument("--store", choices=sorted(STORES), default="directory")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--replay-every", type=int, default=10, help="rounds between two replays by `dedup`")
    parser.add_argument("--folder", help="a folder for all files of the run, such as /dev/shm")
    parser.add_argument(
        "--cut", choices=["proxy", "namespace"], default="proxy",
        help="how a replica is cut from the store: by a proxy, which closes or holds connections, or by the link of a "
        "network namespace, which takes root",
    )
    parser.add_argument("--kinds", nargs="+", choices=sorted({*KINDS, *LINK_KINDS}), help="kinds of failures")
    parser.add_argument("--longest-failure", type=float, default=2, help="seconds that a cut or a stop lasts at most")
    parser.add_argument("--refused", type=float, default=0, help="share of the requests that get 503 SlowDown")
    parser.add_argument("--lost", type=float, default=0, help="share of the requests that are done and get 500")
    parser.add_argument("--delayed", type=float, default=0, help="share of the requests that wait up to half a second")
    arguments = parser.parse_args()
    if arguments.store == "directory" and (arguments.cut != "proxy" or throttle_of(arguments) != Throttle()):
        parser.error("a directory has no network: give --store")
    return arguments


def throttle_of(arguments: argparse.Namespace) -> Throttle:
    seconds = 0.5 if arguments.delayed else 0.0
    return Throttle(arguments.refused, arguments.lost, arguments.delayed, seconds)


def choose_link(arguments: argparse.Namespace):
    """Returns the function that makes the link of a replica to the store."""
    if arguments.cut == "namespace":
        return NamespaceLink
    throttle = throttle_of(arguments)
    if throttle == Throttle():
        return StoreProxy
    return lambda port: HttpProxy(port, throttle, arguments.seed)


def main() -> None:
    arguments = parse_arguments()
    report: dict = {}
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        folder = Path(folder)
        options = ["--snapshot-log-every", "5s", "--log-writes-per-second", "200", "--headroom", "16Mi"]
        with STORES[arguments.store](folder) as store:
            cluster = Cluster(arguments.program, folder, store, options=options, make_link=choose_link(arguments))
            if arguments.refused or arguments.lost:
                cluster.allow_failed_starts(arguments.rounds)
            run_rounds(cluster, arguments, folder, report)
    summarize_times(report)
    print(json.dumps(report))


def run_rounds(cluster: Cluster, arguments: argparse.Namespace, folder: Path, report: dict) -> None:
    """Starts the replicas, runs all rounds with their checks, and writes into the report."""
    numbers = random.Random(arguments.seed)
    kinds = arguments.kinds or KINDS + (LINK_KINDS if arguments.store != "directory" else [])
    settings = Disturbance(kinds, arguments.longest_failure)
    with cluster:
        create_collection(cluster)
        answers: dict[str, dict] = {}
        began = time.monotonic()
        for number in range(1, arguments.rounds + 1):
            answers.update(run_round(cluster, numbers, number, report, settings))
            export = check_equal(cluster, answers)
            if number % arguments.replay_every == 0 or number == arguments.rounds:
                check_replay(cluster, export, folder)
        report |= {
            "store": arguments.store, "links": arguments.cut, "rounds": arguments.rounds,
            "refused": arguments.refused, "lost": arguments.lost, "delayed": arguments.delayed,
            "failed_starts": sum(replica.failed_starts for replica in cluster.replicas),
            "documents": len(answers), "seconds": round(time.monotonic() - began, 1),
        }
        verify_log(cluster)


if __name__ == "__main__":
    main()
