"""The cost of single calls of the package beside those of the packages it replaces, in one process; writes
bench/results/python_calls.json.

    python bench/compare/python_calls.py

It wants `datasketch`, `simhash` and `rensa` beside the package, and a release build of it. Each figure is the shortest of
several runs, in microseconds of processor time of the process for one call.
"""

import json
import pathlib
import pickle
import random
import sys
import time

import datasketch
import rensa
import simhash

import lookalike as la
from lookalike.compat.datasketch import MinHash, MinHashLSH
from lookalike.compat.simhash import Simhash
from compare import ROOT, machine


def measure(call, count=1, runs=5):
    """The least processor time of a call, in microseconds, divided by the number of things it does."""
    best = float("inf")
    for _ in range(runs):
        begun = time.process_time()
        call()
        best = min(best, time.process_time() - begun)
    return best / count * 1e6


def each(call, values):
    return lambda: [call(value) for value in values]


MEASURED = []


def report(what, ours, theirs=None, other=""):
    ratio = f"{theirs / ours:8.2f}x of {other} ({theirs:.2f})" if theirs else ""
    print(f"{what:48} {ours:10.2f} us {ratio}", flush=True)
    row = {"what": f"`{what}`" if "(" in what else what, "microseconds": ours, "beside": other or "–"}
    MEASURED.append({**row, "other": theirs, "ratio": theirs and theirs / ours})


def main():
    source = random.Random(1)
    words = [f"word{number}" for number in range(5000)]
    tokens = [source.sample(words, 400) for _ in range(200)]
    encoded = [[token.encode() for token in one] for one in tokens]
    letters = ["".join(source.choices("abcdefghijklmnopqrstuvwxyz", k=2000)) for _ in range(40)]
    text = "The ferry leaves at seven, and nobody on the island misses it."

    for name, call in {
        "la.simhash([text])": lambda: la.simhash([text]),
        "la.compare(text, text)": lambda: la.compare(text, text),
        "la.segment([text], recipe='default')": lambda: la.segment([text], recipe="default"),
        "la.dedup([text])": lambda: la.dedup([text], forms="off"),
    }.items():
        call()
        report(name, measure(lambda: [call() for _ in range(200)], 200))

    ours, theirs = (measure(each(kind, tokens), 200) for kind in (Simhash, simhash.Simhash))
    report("Simhash(400 tokens)", ours, theirs, "simhash")
    sha = lambda data: __import__("hashlib").sha1(data).digest()
    ours, theirs = (
        measure(each(lambda one, kind=kind: kind(one, hashfunc=sha), tokens), 200) for kind in (Simhash, simhash.Simhash)
    )
    report("Simhash(400 tokens, hashfunc=…)", ours, theirs, "simhash")
    ours, theirs = (
        measure(each(lambda one, kind=kind: kind(one, reg=r"[a-z]+"), letters), 40)
        for kind in (Simhash, simhash.Simhash)
    )
    report("Simhash(text, reg=…)", ours, theirs, "simhash")

    def signed_here(one):
        minhash = MinHash(128)
        minhash.update_batch(one)
        minhash.is_empty()
        return minhash

    def signed_there(one):
        minhash = rensa.RMinHash(128, 42)
        minhash.update(one)
        minhash.digest()
        return minhash

    report(
        "MinHash.update_batch(400 tokens)",
        measure(each(signed_here, encoded), 200),
        measure(each(signed_there, tokens), 200),
        "rensa",
    )
    bulk = measure(lambda: MinHash.bulk(encoded, num_perm=128), 200)
    theirs = measure(lambda: rensa.RMinHash.from_token_sets(tokens, 128, 42), 200)
    report("MinHash.bulk(…), a document of 400 tokens", bulk, theirs, "rensa")

    def signed_alike(kind):
        return each(lambda one: kind(128, 42).update(one), tokens)

    for name in ("RMinHash", "CMinHash"):
        ours, theirs = (measure(signed_alike(getattr(package, name)), 200) for package in (la, rensa))
        report(f"{name}(128, 42).update(400 tokens)", ours, theirs, "rensa")

    many = MinHash.bulk([[b"%d" % (number + at) for at in range(30)] for number in range(5000)], num_perm=128)
    others = []
    for number in range(5000):
        minhash = rensa.RMinHash(128, 42)
        minhash.update([str(number + at) for at in range(30)])
        others.append(minhash)

    def inserted_here():
        lsh = MinHashLSH(num_perm=128, params=(16, 8))
        for key, minhash in enumerate(many):
            lsh.insert(key, minhash)
        return lsh

    def inserted_there():
        lsh = rensa.RMinHashLSH(0.8, 128, 16)
        for key, minhash in enumerate(others):
            lsh.insert(key, minhash)
        return lsh

    report("MinHashLSH.insert(key, minhash)", measure(inserted_here, 5000), measure(inserted_there, 5000), "rensa")
    here, there = inserted_here(), inserted_there()
    report(
        "MinHashLSH.query(minhash)",
        measure(each(here.query, many), 5000),
        measure(each(there.query, others), 5000),
        "rensa",
    )
    made = datasketch.MinHash(128)
    made.update(b"x")
    report(
        "pickle of a MinHash, both ways",
        measure(lambda: [pickle.loads(pickle.dumps(many[0])) for _ in range(1000)], 1000),
        measure(lambda: [pickle.loads(pickle.dumps(made)) for _ in range(1000)], 1000),
        "datasketch",
    )
    titles = [" ".join(source.sample(words, 9)) for _ in range(20_000)]

    def streamed():
        stream = la.Stream()
        for title in titles:
            stream.insert(title)

    report("Stream.insert(title)", measure(streamed, 20_000, 2))
    output = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "bench/results/python_calls.json")
    output.write_text(json.dumps({"machine": machine(), "measured": MEASURED}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
