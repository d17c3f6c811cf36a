"""Runs every pipeline of this folder on the same files and writes bench/results/peers.json.

The Python pipelines with one thread read the whole file; datatrove reads its first rows, with
several workers. Every answer is judged against exact Jaccard under the pipelines' own features, so
that no speed stands without its recall. On a machine that is busy with other things the times would
flatter whoever runs last, so it refuses to start there. Where `target/release/lookalike` exists it runs on the same
files with as many threads, and the ratios of its speed to theirs are written down too.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from datetime import date
from itertools import islice
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent


def machine():
    """The processor, its cores and memory, the system's kind: nothing that names a machine."""
    model = platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "memory_gib": round(memory / 2**30, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }


def unpack(path, folder):
    """The file itself, or its contents in `folder` if it is compressed with zstd."""
    path = Path(path)
    if path.suffix != ".zst":
        return path
    import zstandard

    plain = folder / path.stem
    with open(path, "rb") as packed, open(plain, "wb") as out:
        zstandard.ZstdDecompressor().copy_stream(packed, out)
    return plain


def head(path, folder, rows):
    """The first `rows` rows of the file, as a file of its own."""
    part = folder / f"{path.stem}_{rows}.jsonl"
    with open(path, "rb") as source, open(part, "wb") as out:
        out.writelines(islice(source, rows))
    return part


def run_peer(name, path, folder, *arguments):
    """One pipeline in a process of its own; its answer and its file of removed rows."""
    removed = folder / f"removed_{name}.jsonl"
    command = [sys.executable, HERE / f"{name}_pipeline.py", path, folder / "out.jsonl", removed]
    print(f"running {name} on {path.name}", file=sys.stderr)
    done = subprocess.run(
        [*command, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    if done.returncode != 0:
        sys.exit(f"{name} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1]), removed


def run_lookalike(binary, path, folder, threads, recipe):
    """The command on the peers' n-grams, timed from outside: starting and writing included."""
    out, removed = folder / "lookalike_out.jsonl", folder / f"removed_lookalike_{threads}.jsonl"
    for old in (out, removed):
        old.unlink(missing_ok=True)
    command = [binary, "dedup", path, "-o", out, "--removed", removed, "--json", "--recipe", recipe]
    command += ["--threshold", "0.8"]
    print(f"running lookalike on {path.name}, {threads} threads", file=sys.stderr)
    seconds, report = None, None
    for _ in range(3):
        start = time.perf_counter()
        done = subprocess.run(
            [*command, "--threads", str(threads)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        elapsed = time.perf_counter() - start
        if done.returncode != 0:
            sys.exit(f"lookalike failed:\n{done.stderr}")
        seconds = min(elapsed, seconds or elapsed)
        report = json.loads(done.stdout)
    version = subprocess.run([binary, "--version"], capture_output=True, text=True).stdout.split()
    size = path.stat().st_size
    answer = {
        "tool": "lookalike",
        "version": version[-1],
        "file": path.name,
        "documents": report["documents"],
        "bytes": size,
        "seconds": round(seconds, 3),
        "cpu_seconds": None,
        "megabytes_per_second": round(size / 1e6 / seconds, 3),
        "kept": report["kept"],
        "workers": threads,
        "check": "exact",
        "settings": {key: report[key] for key in ("method", "threshold", "recipe")},
    }
    return answer, removed


def judge(path, text, ngram, threshold, runs):
    """Adds recall and precision to each of `runs`, which answered for the same file."""
    print(f"judging {path.name} by exact {ngram}-grams of {text} text", file=sys.stderr)
    command = [sys.executable, HERE / "judge.py", path, text, str(ngram), str(threshold)]
    done = subprocess.run(
        [*command, *(removed for _, removed in runs)], stdout=subprocess.PIPE, text=True, check=True
    )
    for (answer, _), line in zip(runs, done.stdout.splitlines()):
        features = {"text": text, "ngram": ngram, "threshold": threshold}
        answer["judged_by"] = {**features, **json.loads(line)}


def add_ratios(answers):
    """How many times faster the command was than each peer with equal workers on the same file."""
    ours = {
        (answer["file"], answer["workers"]): answer["seconds"]
        for answer in answers
        if answer["tool"] == "lookalike"
    }
    for answer in answers:
        base = ours.get((answer["file"], answer["workers"]))
        if base and answer["tool"] != "lookalike":
            answer["lookalike_is_faster_by"] = round(answer["seconds"] / base, 2)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("input", nargs="?", default=ROOT.parent / "shared/data/en_docs.jsonl.zst",
                        help="JSONL with `id` and `text`, plain or .zst")
    parser.add_argument("-o", "--output", default=ROOT / "bench/results/peers.json", type=Path)
    parser.add_argument("--lookalike", default=ROOT / "target/release/lookalike", type=Path,
                        help="the command to run beside them; left out if there is no such file")
    parser.add_argument("--rows", default=4000, type=int, help="rows for datatrove (4000)")
    parser.add_argument("--workers", default=2, type=int, help="workers for datatrove (2)")
    parser.add_argument("--busy", action="store_true", help="measure on a busy machine all the same")
    arguments = parser.parse_args()

    load = os.getloadavg()[0]
    if load > 0.5 and not arguments.busy:
        sys.exit(f"the machine is busy (load {load:.2f}, must be at most 0.5); wait, or give --busy")

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        whole = unpack(arguments.input, folder)
        part = head(whole, folder, arguments.rows)
        on_whole = [run_peer(peer, whole, folder) for peer in ("rensa", "datasketch")]
        on_part = [run_peer("datatrove", part, folder, str(arguments.workers))]
        if arguments.lookalike.exists():
            on_whole.append(run_lookalike(arguments.lookalike, whole, folder, 1, "words-3"))
            on_part.append(run_lookalike(
                arguments.lookalike, part, folder, arguments.workers, "words-5"))
        judge(whole, "plain", 3, 0.8, on_whole)
        judge(part, "simplified", 5, 0.8, on_part)
    answers = [answer for answer, _ in on_whole + on_part]
    add_ratios(answers)
    result = {
        "date": date.today().isoformat(),
        "machine": machine(),
        "load_before": round(load, 2),
        "runs": answers,
    }
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n")
    for answer in answers:
        print(json.dumps(answer, ensure_ascii=False))


if __name__ == "__main__":
    main()
