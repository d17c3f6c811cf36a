"""Items of benchmarks planted into a corpus: what `lookalike decontaminate` and decon (allenai/decon) find of them.

    bench/compare/contamination.py --pair CORPUS.jsonl DIRECTORY… --alone CORPUS.jsonl DIRECTORY… [--decon PROGRAM]

Each pair is a corpus and a directory of benchmarks; those of `--alone` are not given to decon. Half of the items are searched for and planted, in every form; the other
half are decoys. Both programs get the same files, with their defaults and two threads, and the findings of both are scored by
`lookalike eval --contamination`. decon reports at most one finding for a document; build it with `cargo build --release` in
its own repository, or leave it out. The speed is that of the original corpus, without making the index of the items, the
better of two runs; the memory of the index is the peak of a run over one short document. Results:
bench/results/contamination_forms.json and contamination_runs.json.
"""

import argparse
import json
import resource
import subprocess
import tempfile
import time
from pathlib import Path

from compare import ROOT, machine

COMMAND = ROOT / "target/release/lookalike"
RESULTS = ROOT / "bench/results"
ROUNDS = 2
# A search that takes longer is stopped: decon has no result on Chinese text by then.
MOST_SECONDS = 300


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--pair", nargs=2, type=Path, action="append", default=[])
    parser.add_argument("--alone", nargs=2, type=Path, action="append", default=[])
    parser.add_argument("--decon", type=Path)
    parser.add_argument("--documents", type=int, default=500)
    options = parser.parse_args()
    forms, runs = [], []
    pairs = [(*pair, options.decon) for pair in options.pair] + [(*pair, None) for pair in options.alone]
    for corpus, benchmarks, decon in pairs:
        with tempfile.TemporaryDirectory() as folder:
            compare(corpus, benchmarks, decon, options.documents, Path(folder), forms, runs)
        for name, measured in [("contamination_forms", forms), ("contamination_runs", runs)]:
            result = {"machine": machine(), "measured": measured}
            text = json.dumps(result, indent=1, ensure_ascii=False, sort_keys=True)
            (RESULTS / f"{name}.json").write_text(text + "\n")


def compare(corpus, benchmarks, decon, documents, folder, forms, runs):
    planted, truth, items = (folder / name for name in ("planted.jsonl", "truth.tsv", "items.jsonl"))
    summary_of(
        *["plant", corpus, "--contamination", benchmarks, "-o", planted, "--labels", truth],
        *["--indexed", items, "--documents", documents, "--id-row"],
    )
    names = [json.loads(line) for line in items.open(encoding="utf-8")]
    evals = folder / "evals"
    write_evals(names, evals)
    kinds = {}
    for tool in ["lookalike", "decon"] if decon else ["lookalike"]:
        findings = folder / f"{tool}.tsv"
        if tool == "lookalike":
            summary_of("decontaminate", planted, "--benchmarks", items, "--findings", findings)
        elif not search_with_decon(decon, planted, evals, names, findings):
            print(f"decon was stopped after {MOST_SECONDS} s: {corpus.stem}, {benchmarks.name}", flush=True)
            continue
        scored = summary_of("eval", findings, "--contamination", truth)
        for row in scored["forms"] + scored["decoy_kinds"]:
            found = row["found"] if "found" in row else row["wrong"]
            kind = kinds.setdefault(row["form"], {"kind": row["form"], "planted": row["planted"]})
            kind["is_decoy"] = "wrong" in row
            kind[tool] = round(found / max(1, row["planted"]), 4)
            if row.get("short"):
                kind["short"] = row["short"]
                kind[f"{tool}_short"] = round(row["short_recall"], 4)
        measured = measure(tool, decon, corpus, items, evals, folder)
        run = {"corpus": corpus.stem, "benchmarks": benchmarks.name, "tool": tool, "items": len(names)}
        found, wrong = (sum(row[key] for row in scored[rows]) for key, rows in (("found", "forms"), ("wrong", "decoy_kinds")))
        run["document_precision"] = round(found / max(1, found + wrong), 4)
        run |= {key: scored[key] for key in ("planted", "right", "wrong", "in_other_documents", "precision", "recall")}
        runs.append(run | measured)
        print(json.dumps(runs[-1]), flush=True)
    for kind in kinds.values():
        forms.append({"corpus": corpus.stem, "benchmarks": benchmarks.name, **kind})


def summary_of(*arguments):
    """Runs a job of the command, and returns its summary."""
    command = [COMMAND, *map(str, arguments), "--json", "--quiet", "--threads", "2"]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def write_evals(items, evals):
    """Writes items in the form of decon: one row for each choice."""
    evals.mkdir()
    with (evals / "items.jsonl").open("w", encoding="utf-8") as file:
        row = 0
        for at, item in enumerate(items):
            for choice in item["choices"] or [item["answer"]]:
                entry = {
                    "eval_key": "items",
                    "eval_instance_index": at,
                    "split": "test",
                    "question": item["question"],
                    "answer": choice,
                    "config": "all",
                    "doc_id": row,
                    "is_correct": choice == item["answer"],
                    "fingerprint": f"{row:016x}",
                }
                if item["passage"]:
                    entry["passage"] = item["passage"]
                file.write(json.dumps(entry) + "\n")
                row += 1


def decon_command(decon, training, evals, reports):
    return [
        *[decon, "detect", "--training-dir", training, "--evals-dir", evals],
        *["--report-output-dir", reports, "--worker-threads", "2"],
    ]


def search_with_decon(decon, corpus, evals, items, findings):
    """Writes the findings of decon as a table that `lookalike eval` reads. Returns `False` if it takes too long."""
    ids = [json.loads(line).get("id") for line in corpus.open(encoding="utf-8")]
    with tempfile.TemporaryDirectory() as folder:
        training, reports = Path(folder) / "training", Path(folder) / "reports"
        training.mkdir()
        copy(corpus, training)
        command = decon_command(decon, training, evals, reports)
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=MOST_SECONDS)
        except subprocess.TimeoutExpired:
            return False
        with findings.open("w", encoding="utf-8") as table:
            table.write("id\tbenchmark\titem\n")
            for report in sorted(reports.glob("*.jsonl")):
                for line in report.open(encoding="utf-8"):
                    found = json.loads(line)
                    item = items[found["eval_instance_index"]]
                    row = found["training_line"]
                    table.write(f"{ids[row] or row + 1}\t{item['benchmark']}\t{item['id']}\n")
    return True


def copy(file, folder):
    (folder / file.name).write_bytes(file.read_bytes())


def measure(tool, decon, corpus, items, evals, folder):
    """Returns the speed over a corpus, and the memory of the index."""
    short = folder / "short.jsonl"
    short.write_text('{"id":"1","text":"A short document."}\n')
    megabytes = corpus.stat().st_size / 1e6
    best, cpu = min((timed(tool, decon, corpus, items, evals) for _ in range(ROUNDS)))
    of_index, index_cpu = min((timed(tool, decon, short, items, evals) for _ in range(ROUNDS)))
    return {
        "megabytes": round(megabytes, 1),
        "seconds": round(best, 2),
        "index_seconds": round(of_index, 2),
        "megabytes_per_second": round(megabytes / max(best - of_index, 1e-3), 1),
        "cpu_seconds": round(cpu, 2),
        "index_megabytes": peak_of(command_of(tool, decon, short, items, evals)),
        "peak_megabytes": peak_of(command_of(tool, decon, corpus, items, evals)),
    }


def command_of(tool, decon, corpus, items, evals):
    """Returns a function that gives the command line, with directories of its own."""

    def command(folder):
        if tool == "lookalike":
            return [
                *[COMMAND, "decontaminate", corpus, "--benchmarks", items, "--findings", folder / "found.tsv"],
                *["--quiet", "--threads", "2"],
            ]
        training = folder / "training"
        training.mkdir()
        copy(corpus, training)
        return decon_command(decon, training, evals, folder / "reports")

    return command


def timed(tool, decon, corpus, items, evals):
    """Returns the seconds of a run, and its seconds of processor time."""
    with tempfile.TemporaryDirectory() as folder:
        command = command_of(tool, decon, corpus, items, evals)(Path(folder))
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        started = time.monotonic()
        subprocess.run(command, check=True, capture_output=True)
        seconds = time.monotonic() - started
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def peak_of(make_command):
    """Returns the largest memory of a run, in MB."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["/usr/bin/time", "-f", "%M", *make_command(Path(folder))]
        told = subprocess.run(command, check=True, capture_output=True, text=True).stderr
        return round(int(told.strip().splitlines()[-1]) * 1024 / 1e6, 1)


if __name__ == "__main__":
    main()
