"""The golden vectors, through Python."""

import hashlib

import numpy as np
import pytest

import lookalike as la
from lookalike.compat.datasketch import MinHash
from lookalike.compat.simhash import Simhash
from made import ROOT, read_jsonl

TEXTS = {row["id"]: row["text"] for row in read_jsonl(ROOT / "testdata/golden/texts.jsonl")}
VECTORS = read_jsonl(ROOT / "testdata/golden/vectors.jsonl")


@pytest.mark.parametrize("name", sorted({vector["recipe"] for vector in VECTORS}))
def test_golden_vectors(name):
    vectors = [vector for vector in VECTORS if vector["recipe"] == name]
    texts = [TEXTS[vector["text"]] for vector in vectors]
    recipe = la.Recipe(name)
    assert {recipe.hash} == {vector["recipe_id"] for vector in vectors}

    def hexadecimal(row, width):
        return "".join(f"{int(number):0{width}x}" for number in reversed(np.atleast_1d(row)))

    wide = la.Recipe(name, simhash={"bits": 128, "weights": "frequency"})
    narrow = la.Recipe(name, simhash={"bits": 64, "weights": "frequency"})
    affine = la.Recipe(name, minhash={"family": "affine32"})
    made = la.simhash(texts, recipe=narrow), la.simhash(texts, recipe=wide)
    signed = la.minhash(texts, recipe=recipe), la.minhash(texts, recipe=affine)
    for at, vector in enumerate(vectors):
        for key, codes in zip(("simhash_64", "simhash_128"), made):
            masked = np.ma.getmaskarray(codes)[at].any()
            assert (None if masked else hexadecimal(np.ma.getdata(codes)[at], 16)) == vector[key]
        for key, rows in zip(("fast_similarity", "affine_32"), signed):
            masked = np.ma.getmaskarray(rows)[at].any()
            row = "".join(f"{int(slot):08x}" for slot in np.ma.getdata(rows)[at])
            assert (None if masked else row) == vector[key]


COMPAT = read_jsonl(ROOT / "testdata/compat/vectors.jsonl")


def told(numbers):
    """A signature as the vectors have a long one."""
    return hashlib.md5(np.asarray(numbers, dtype="<u4").tobytes()).hexdigest()[:16]


def check_signature(row, vector, key):
    expected = vector[key]
    assert (row.tolist() if isinstance(expected, list) else told(row)) == expected, (key, vector)


def test_vectors_of_other_tools():
    vectors = [vector for vector in COMPAT if "text" in vector]
    texts = [vector["text"] for vector in vectors]
    for name in ("1e0ng", "seomoz", "news-md5", "java-classic"):
        codes = la.simhash(texts, recipe=name)
        assert [f"{int(code):016x}" for code in codes] == [vector[name] for vector in vectors], name
    for name in ("datasketch-legacy", "datasketch-affine32"):
        for row, vector in zip(la.minhash(texts, recipe=name), vectors, strict=True):
            check_signature(row, vector, f"{name}-1")


def test_other_tools_through_their_classes():
    vectors = [vector for vector in COMPAT if "text" in vector]
    assert len(vectors) > 1000
    for vector in vectors[::7]:
        assert f"{Simhash(vector['text']).value:016x}" == vector["1e0ng"]
        for seed in (1, 42):
            for scheme in ("legacy", "affine32"):
                minhash = MinHash(seed=seed, scheme=scheme)
                minhash.update_batch([word.encode() for word in vector["text"].split()])
                check_signature(minhash.hashvalues, vector, f"datasketch-{scheme}-{seed}")
