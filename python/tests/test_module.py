"""The package as a program, and its types."""

import mmap
import os
import struct
import subprocess
import sys
from pathlib import Path

import lookalike as la
import pytest
from made import ROOT, read_jsonl, write_jsonl

PACKAGE = ROOT / "python"


def run_module(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "lookalike", *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(PACKAGE)},
        **options,
    )


def test_module_is_the_command(command, documents, tmp_path):
    source = write_jsonl(tmp_path / "docs.jsonl", documents)
    outputs = []
    for name, run in (("theirs", command), ("ours", run_module)):
        kept, removed = tmp_path / f"{name}.jsonl", tmp_path / f"{name}.tsv"
        run("dedup", source, "-o", kept, "--removed", removed)
        outputs.append((kept.read_bytes(), removed.read_bytes()))
    assert outputs[0] == outputs[1] and read_jsonl(tmp_path / "ours.jsonl")


def test_module_has_the_exit_codes_of_the_command(tmp_path):
    assert run_module("--version").stdout.startswith("lookalike ")
    refused = run_module("dedup", tmp_path / "nothing.jsonl", "-o", tmp_path / "out.jsonl")
    assert refused.returncode == 2 and "nothing.jsonl" in refused.stderr
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"id": "1", "text": "one text of several words"}\n{"id": "2"}\n')
    assert run_module("dedup", bad, "-o", tmp_path / "out.jsonl").returncode == 1
    piped = run_module("pairs", "-", input='{"text": "the ferry leaves"}\n{"text": "The ferry leaves!"}\n')
    assert piped.returncode == 0 and "1\t2\t" in piped.stdout


CALLS = '''
import numpy as np
import lookalike as la
from lookalike.compat.datasketch import (
    HyperLogLog,
    MinHash,
    MinHashLSH,
    MinHashLSHForest,
    WeightedMinHash,
    WeightedMinHashGenerator,
)
from lookalike.compat.simhash import Simhash
from lookalike.results import Deduplicated, HammingMatches, Pairs, StreamVerdict

result: Deduplicated = la.dedup(["a text", "A text"], threshold=0.8)
rows: np.ndarray = result.kept_rows
count: int = result.summary["kept"]
found: Pairs = la.pairs(["a text", "A text"])
codes: np.ndarray = la.simhash(["a text"], recipe={"ngram": 1})
index = la.HammingIndex(distance=3)
index.add(codes)
near: HammingMatches = index.search(codes)
index.save("x.lib")
copied: la.HammingIndex = index.copy()
opened: la.Index = la.Index.build("y.lib", ["a text"])
stream = la.Stream(window="2d")
verdict: StreamVerdict = stream.insert("a text", "a", time=0.0)
kept: bool = verdict.is_kept
minhash = MinHash(num_perm=128)
minhash.update(b"x")
lsh = MinHashLSH(threshold=0.5)
lsh.insert("a", minhash)
forest = MinHashLSHForest()
forest.add("a", minhash)
weighted: WeightedMinHash = WeightedMinHashGenerator(3).minhash([1, 2, 3])
counter = HyperLogLog(p=8)
number: float = counter.count()
value: int = Simhash(["a", "b"]).value
client = la.Client("http://127.0.0.1:7600", key="k", retries=1)
replicas = la.Client(["http://a:7600", "http://b:7600"], read_your_writes=False)
position: int | None = replicas.position


async def insert() -> None:
    async with la.AsyncClient(("http://a:7600", "http://b:7600"), read_your_writes=True) as asynchronous:
        news = await asynchronous.create("news", threshold=0.8)
        await news.check_and_insert({"id": "1", "text": "a text"})
'''


@pytest.mark.parametrize("checker", ["mypy", "basedpyright"])
def test_types_of_the_package_and_of_documented_calls(checker, tmp_path):
    pytest.importorskip(checker)
    calls = tmp_path / "calls.py"
    calls.write_text(CALLS)
    if checker == "mypy":
        options = ["--strict", "--cache-dir", tmp_path / "cache", "--config-file", ROOT / "pyproject.toml"]
        arguments = [*options, PACKAGE / "lookalike", calls]
    else:
        config = tmp_path / "pyrightconfig.json"
        config.write_text(f'{{"typeCheckingMode": "standard", "extraPaths": ["{PACKAGE}"], "include": ["calls.py"]}}')
        arguments = ["--project", config]
    run = subprocess.run(
        [sys.executable, "-m", checker, *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=PACKAGE,
        env={**os.environ, "MYPYPATH": str(PACKAGE), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
    )
    assert run.returncode == 0, run.stdout[-6000:] + run.stderr[-2000:]


@pytest.mark.skipif(sys.platform != "linux", reason="reads an ELF file")
def test_engine_can_be_loaded_late():
    """Static thread-local storage is scarce, so that a library that wants it cannot be loaded after large ones."""
    with open(la._engine.__file__, "rb") as file:
        image = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    (headers,), (size, count) = struct.unpack_from("<Q", image, 32), struct.unpack_from("<HH", image, 54)
    flags = {}
    for at in range(headers, headers + size * count, size):
        kind, _, start, _, _, length = struct.unpack_from("<IIQQQQ", image, at)
        if kind == 2:  # PT_DYNAMIC
            flags.update(struct.iter_unpack("<QQ", image[start : start + length]))
    assert flags, "the engine has no dynamic section"
    assert not flags.get(30, 0) & 0x10, "DT_FLAGS has DF_STATIC_TLS"
