"""Finds planted passages with several tools on the same files: seconds, and the share of them that each finds.

Sources and documents are halves of a corpus; four of five documents get a passage of 50 to 300 words of one source,
of which a share of the words is replaced. A tool finds a passage if it names the document together with its source.
The suffix array names, for every run of at least 12 words' length in bytes, the document before it in the array; its
seconds are those of the array and of the lengths of common prefixes alone.

    .venv-passages/bin/python passages.py CORPUS.jsonl [--documents 500] [--program lookalike]

`sim_text` is of the Debian package similarity-tester; copydetect and pydivsufsort are of requirements-passages.txt.
"""

import argparse
import json
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

WORD = re.compile(r"\S+\s*")
MIN_WORDS = 12


def plant(texts, count, percent, folder):
    """Writes sources and documents as files; returns the true pairs of names."""
    draw = random.Random(1)
    sources, hosts = texts[:count], texts[count : 2 * count]
    truth = set()
    for name in ("sources", "documents"):
        (folder / name).mkdir()
    for number, text in enumerate(sources):
        (folder / "sources" / f"s{number}.txt").write_text(text, encoding="utf-8")
    vocabulary = [word for text in hosts[:50] for word in WORD.findall(text)]
    for number, host in enumerate(hosts):
        words = WORD.findall(host)
        if number % 5:
            source = draw.randrange(count)
            parts = WORD.findall(sources[source])
            length = min(draw.randint(50, 300), len(parts))
            start = draw.randrange(len(parts) - length + 1)
            passage = parts[start : start + length]
            passage = [draw.choice(vocabulary) if draw.random() * 100 < percent else word for word in passage]
            at = draw.randrange(len(words))
            words = words[:at] + passage + words[at:]
            truth.add((f"d{number}.txt", f"s{source}.txt"))
        (folder / "documents" / f"d{number}.txt").write_text("".join(words), encoding="utf-8")
    return truth


def run_lookalike(folder, program):
    out = folder / "passages.tsv"
    command = [program, "passages", folder / "documents", "--against", folder / "sources", "-o", out, "--quiet"]
    subprocess.run([*command, "--min-length", str(MIN_WORDS)], check=True)
    rows = [line.split("\t") for line in out.read_text().splitlines()[1:]]
    return {(Path(row[0]).name, Path(row[1]).name) for row in rows}


def run_sim_text(folder, _):
    names = lambda part: sorted(str(it) for it in (folder / part).iterdir())
    command = ["sim_text", f"-r{MIN_WORDS}", "-n", "-S", "-T", *names("documents"), "/", *names("sources")]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    pairs = re.findall(r"(\S+\.txt): line.*?\|(\S+\.txt): line", printed)
    return {(Path(a).name, Path(b).name) for a, b in pairs}


def run_copydetect(folder, _):
    from copydetect import CopyDetector

    detector = CopyDetector(
        test_dirs=[str(folder / "documents")],
        ref_dirs=[str(folder / "sources")],
        extensions=["txt"],
        noise_t=25,
        guarantee_t=60,
        display_t=0,
        disable_filtering=True,
        silent=True,
    )
    detector.run()
    return {(Path(row[2]).name, Path(row[3]).name) for row in detector.get_copied_code_list() if row[-1] > 0}


def run_suffix_array(folder, _):
    import numpy
    from pydivsufsort import divsufsort, kasai

    names, texts, ends = [], [], []
    for part in ("documents", "sources"):
        for file in sorted((folder / part).iterdir()):
            names.append((part, file.name))
            texts.append(file.read_bytes().lower() + b"\0")
            ends.append(len(texts[-1]))
    text = b"".join(texts)
    array = divsufsort(text)
    common = kasai(text, array)
    owner = numpy.searchsorted(numpy.cumsum(ends), array, side="right")
    # Twelve words of English are some 70 bytes.
    near = numpy.flatnonzero(common[: len(array) - 1] >= 70)
    found = set()
    for a, b in {tuple(pair) for pair in zip(owner[near], owner[near + 1])}:
        pair = dict([names[a], names[b]])
        if len(pair) == 2:
            found.add((pair["documents"], pair["sources"]))
    return found


TOOLS = {
    "lookalike": run_lookalike,
    "sim_text": run_sim_text,
    "copydetect": run_copydetect,
    "suffix array": run_suffix_array,
}


def processor_seconds():
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(it.ru_utime + it.ru_stime for it in used)


def version_of(tool, program):
    if tool == "lookalike":
        return subprocess.run([program, "--version"], check=True, capture_output=True, text=True).stdout.split()[-1]
    if tool == "sim_text":
        printed = subprocess.run(["sim_text", "-v"], capture_output=True, text=True)
        return (printed.stdout + printed.stderr).strip()
    return version({"suffix array": "pydivsufsort"}.get(tool, tool))


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("corpus", type=Path)
    options.add_argument("--documents", type=int, default=500)
    options.add_argument("--program", default="lookalike")
    options.add_argument("--tools", nargs="+", choices=list(TOOLS), default=list(TOOLS))
    chosen = options.parse_args()
    with open(chosen.corpus, encoding="utf-8") as rows:
        texts = [json.loads(row)["text"] for row in rows]
    texts = [text for text in texts if len(WORD.findall(text)) >= 60]
    random.Random(0).shuffle(texts)
    for percent in (0, 10):
        with tempfile.TemporaryDirectory() as folder:
            folder = Path(folder)
            truth = plant(texts, chosen.documents, percent, folder)
            size = sum(it.stat().st_size for it in folder.rglob("*.txt"))
            for tool in chosen.tools:
                run = TOOLS[tool]
                begun, used = time.perf_counter(), processor_seconds()
                found = run(folder, chosen.program)
                seconds, used = time.perf_counter() - begun, processor_seconds() - used
                line = {
                    "tool": tool,
                    "version": version_of(tool, chosen.program),
                    "edited_percent": percent,
                    "files": 2 * chosen.documents,
                    "bytes": size,
                    "seconds": round(seconds, 3),
                    "processor_seconds": round(used, 3),
                    "recall": round(len(truth & found) / len(truth), 4),
                    "other_pairs": len(found - truth),
                }
                json.dump(line, sys.stdout, ensure_ascii=False)
                print(flush=True)


if __name__ == "__main__":
    main()
