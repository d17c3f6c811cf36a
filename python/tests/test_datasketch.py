"""The classes of datasketch: its values, its documented examples with the import changed, pickles."""

import copy
import os
import pickle
import random
import struct
import threading
import time

import numpy as np
import pytest

from lookalike.compat import datasketch as compat
from lookalike.compat.datasketch import LeanMinHash, MinHash, MinHashLSH

datasketch = pytest.importorskip("datasketch")

SCHEMES = ("affine32", "affine64", "legacy")


def both(*arguments, **settings):
    return MinHash(*arguments, **settings), datasketch.MinHash(*arguments, **settings)


def check_same(ours, theirs):
    assert ours.hashvalues.dtype == theirs.hashvalues.dtype
    assert (ours.hashvalues == theirs.hashvalues).all()
    assert (ours.permutations == theirs.permutations).all()
    assert ours.permutations.dtype == theirs.permutations.dtype
    assert (ours.scheme, ours.seed, ours.num_perm) == (theirs.scheme, theirs.seed, theirs.num_perm)
    assert len(ours) == len(theirs) and ours.is_empty() == theirs.is_empty()
    assert ours.count() == pytest.approx(theirs.count(), rel=1e-12)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("num_perm", [1, 63, 64, 65, 128, 200, 256])
@pytest.mark.parametrize("seed", [1, 0, 42, 2**32 - 1])
def test_values_equal_datasketch(scheme, num_perm, seed):
    source = random.Random(num_perm)
    ours, theirs = both(num_perm=num_perm, seed=seed, scheme=scheme)
    check_same(ours, theirs)
    # Lengths around those of one block of SHA-1.
    for length in (0, 1, 3, 15, 16, 54, 55, 56, 63, 64, 65, 119, 200):
        value = source.randbytes(length)
        ours.update(value)
        theirs.update(value)
    check_same(ours, theirs)
    for count in (0, 1, 63, 64, 1023, 1024, 1025):
        values = [source.randbytes(9) for _ in range(count)]
        ours.update_batch(values)
        theirs.update_batch(values)
    check_same(ours, theirs)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_hash_functions_of_the_caller(scheme):
    bits = 64 if scheme == "affine64" else 32
    hashfunc = lambda value: hash(value) & ((1 << bits) - 1)  # noqa: E731
    ours, theirs = both(hashfunc=hashfunc, scheme=scheme)
    for value in [*range(3000), "a", ("b", 1)]:
        ours.update(value)
        theirs.update(value)
    check_same(ours, theirs)
    ours.update_batch(range(5000, 5010))
    theirs.update_batch(range(5000, 5010))
    check_same(ours, theirs)
    assert ours.hashfunc is hashfunc
    for wrong in (lambda _: -1, lambda _: 1 << 64, lambda _: 1 << 32):
        if scheme != "affine32" and wrong(0) == 1 << 32:
            continue
        with pytest.raises(ValueError, match="out of range"):
            MinHash(hashfunc=wrong, scheme=scheme).update(b"x")
    with pytest.raises(ZeroDivisionError):
        MinHash(hashfunc=lambda _: 1 // 0).update(b"x")


def test_jaccard_merge_union_copy_and_equality():
    words = [b"%d" % number for number in range(300)]
    a, b, c = (MinHash(), MinHash(), MinHash())
    x, y, z = (datasketch.MinHash(), datasketch.MinHash(), datasketch.MinHash())
    for one, other, part in ((a, x, words[:200]), (b, y, words[100:]), (c, z, words[250:])):
        one.update_batch(part)
        other.update_batch(part)
    assert a.jaccard(b) == x.jaccard(y) and a.jaccard(a) == 1.0
    check_same(MinHash.union(a, b, c), datasketch.MinHash.union(x, y, z))
    twin = a.copy()
    assert twin == a and not (twin == b) and a != x
    for made in (copy.copy(a), copy.deepcopy(a), pickle.loads(pickle.dumps(a))):
        assert made == a and made is not a and type(made) is MinHash
        made.update_batch(words[200:])
        assert made != a
    a.merge(b)
    x.merge(y)
    check_same(a, x)
    assert not (twin == a)
    a.clear()
    assert a.is_empty() and a == MinHash()


def test_incompatible_sketches_are_refused():
    base = MinHash()
    for other, said in (
        (MinHash(scheme="legacy"), "schemes"),
        (MinHash(seed=2), "seeds"),
        (MinHash(num_perm=64), "numbers of permutation functions"),
    ):
        for call in (base.jaccard, base.merge, lambda one: MinHash.union(base, one)):
            with pytest.raises(ValueError, match=said):
                call(other)
    with pytest.raises(ValueError, match="less than 2"):
        MinHash.union(base)


@pytest.mark.parametrize(
    "settings,error",
    [
        ({"num_perm": 0}, ValueError),
        ({"num_perm": -1}, ValueError),
        ({"scheme": "affine16"}, ValueError),
        ({"hashfunc": 3}, ValueError),
        ({"hashvalues": [1, 2]}, ValueError),
        ({"hashvalues": [1, 2**32], "scheme": "affine32"}, ValueError),
        ({"hashvalues": [1, -2], "scheme": "affine32"}, ValueError),
        ({"hashvalues": [1, 2], "permutations": ([1], [2]), "scheme": "legacy"}, ValueError),
        ({"num_perm": 1, "permutations": ([2], [2]), "scheme": "affine32"}, ValueError),
        ({"gpu_mode": "always"}, RuntimeError),
        ({"seed": -1}, ValueError),
        ({"num_perm": 10**12}, ValueError),
    ],
)
def test_invalid_arguments_are_refused(settings, error):
    with pytest.raises(error):
        MinHash(**settings)


def test_strings_are_refused_buffers_are_bytes():
    with pytest.raises(TypeError, match="encoded"):
        MinHash().update("text")
    with pytest.raises(TypeError, match="encoded"):
        MinHash().update_batch(["text"])
    ours, theirs = both()
    for value in (bytearray(b"abc"), memoryview(b"abd"), np.arange(5), np.int64(7)):
        ours.update(value)
        theirs.update(value)
    ours.update_batch(np.arange(10))
    theirs.update_batch(np.arange(10))
    check_same(ours, theirs)


def test_state_of_datasketch_round_trips():
    for scheme in SCHEMES:
        theirs = datasketch.MinHash(scheme=scheme)
        theirs.update_batch([b"a", b"b"])
        ours = MinHash(hashvalues=theirs.hashvalues, permutations=theirs.permutations, scheme=scheme)
        check_same(ours, theirs)
        ours.update(b"c")
        theirs.update(b"c")
        check_same(ours, theirs)
        check_same(pickle.loads(pickle.dumps(ours)), theirs)
        back = datasketch.MinHash(
            hashvalues=ours.digest(), permutations=ours.permutations, seed=ours.seed, scheme=ours.scheme
        )
        assert back.jaccard(theirs) == 1.0
        ours.hashvalues = theirs.hashvalues
        assert ours.jaccard(MinHash(hashvalues=theirs.hashvalues, scheme=scheme)) == 1.0
        with pytest.raises(ValueError):
            ours.hashvalues[0] = 1


def test_bulk_and_generator():
    data = [[b"token1", b"token2"], [], [b"token3"] * 3]
    theirs = datasketch.MinHash.bulk(data, num_perm=64)
    for made in (MinHash.bulk(data, num_perm=64), MinHash.generator(data, num_perm=64)):
        for one, other in zip(made, theirs, strict=True):
            check_same(one, other)


def test_threads_share_a_minhash():
    shared = MinHash()
    parts = [[b"%d" % (number * 8 + part) for number in range(2000)] for part in range(8)]

    def add(part):
        for value in part:
            shared.update(value)
            if value.endswith(b"7"):
                shared.count()

    workers = [threading.Thread(target=add, args=(part,)) for part in parts]
    [worker.start() for worker in workers]
    [worker.join() for worker in workers]
    alone = MinHash()
    alone.update_batch([value for part in parts for value in part])
    assert shared == alone


class Named(MinHash):
    """A subclass with something of its own."""

    def __new__(cls, *arguments, name="unnamed", **settings):
        self = super().__new__(cls, *arguments, **settings)
        self.name = name
        return self


def test_copies_keep_their_subclass():
    own = Named(num_perm=16, name="own")
    own.update(b=b"x")
    for made in (copy.copy(own), copy.deepcopy(own), pickle.loads(pickle.dumps(own))):
        assert type(made) is Named and made.name == "own" and made == own
    assert own.copy() != own and own.copy().jaccard(own) == 1.0


def test_objects_of_datasketch_are_refused():
    ours, theirs = both()
    lsh = MinHashLSH()
    for call in (
        ours.jaccard,
        ours.merge,
        lsh.query,
        lambda other: lsh.insert("key", other),
        lambda other: MinHash.union(ours, other),
    ):
        with pytest.raises(TypeError, match=r"datasketch.minhash.MinHash is not a lookalike.compat.datasketch.MinHash: make one of it"):
            call(theirs)
        with pytest.raises(TypeError, match=r"^int is not a lookalike.compat.datasketch.MinHash$"):
            call(3)
    lsh.insert("key", MinHash(hashvalues=theirs.hashvalues, seed=theirs.seed, scheme=theirs.scheme))
    assert len(lsh) == 1


def lean_pair(scheme="affine32", seed=1, num_perm=128):
    ours, theirs = both(num_perm=num_perm, seed=seed, scheme=scheme)
    for value in (b"a", b"b", b"%d" % seed):
        ours.update(value)
        theirs.update(value)
    return ours, LeanMinHash(ours), datasketch.LeanMinHash(theirs)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("num_perm", [1, 3, 128])
@pytest.mark.parametrize("byteorder", list("@=<>!"))
def test_lean_bytes_equal_datasketch(scheme, num_perm, byteorder):
    _, ours, theirs = lean_pair(scheme, 7, num_perm)
    assert ours.bytesize(byteorder) == theirs.bytesize(byteorder)
    one, other = bytearray(ours.bytesize(byteorder) + 3), bytearray(theirs.bytesize(byteorder) + 3)
    ours.serialize(one, byteorder)
    theirs.serialize(other, byteorder)
    assert one == other
    for buffer in (one, bytes(one), memoryview(one)):
        again = LeanMinHash.deserialize(buffer, byteorder)
        assert again == ours and (again.seed, again.scheme, len(again)) == (7, scheme, num_perm)
    assert (datasketch.LeanMinHash.deserialize(one, byteorder).hashvalues == ours.hashvalues).all()
    with pytest.raises(ValueError, match="enough space"):
        ours.serialize(bytearray(ours.bytesize(byteorder) - 1), byteorder)
    with pytest.raises(struct.error):
        LeanMinHash.deserialize(one[: ours.bytesize(byteorder) - 1], byteorder)


def test_lean_minhash_only_compares():
    minhash, lean, theirs = lean_pair()
    other = lean_pair(seed=1)[0]
    other.update(b"one more")
    assert lean.jaccard(other) == other.jaccard(lean) == minhash.jaccard(other) < 1
    assert lean != minhash and lean == LeanMinHash(theirs) and len({lean, LeanMinHash(theirs)}) == 1
    given = LeanMinHash(seed=1, hashvalues=minhash.hashvalues, scheme="affine32")
    assert given == lean and given.count() == minhash.count()
    for made in (lean.copy(), copy.copy(lean), copy.deepcopy(lean), pickle.loads(pickle.dumps(lean))):
        assert type(made) is LeanMinHash and made == lean and made is not lean
    assert LeanMinHash.union(lean, LeanMinHash(other)) == LeanMinHash(MinHash.union(minhash, other))
    back = MinHash(seed=lean.seed, hashvalues=lean.hashvalues, scheme=lean.scheme)
    assert back == minhash
    lsh = MinHashLSH(threshold=0.5)
    lsh.insert("lean", lean)
    lsh.insert("full", other)
    assert sorted(lsh.query(lean)) == sorted(lsh.query(minhash)) == ["full", "lean"]
    for refused in (lambda: lean.update(b"x"), lambda: lean.update_batch([b"x"])):
        with pytest.raises(TypeError, match="Cannot update a LeanMinHash"):
            refused()
    assert not hasattr(lean, "permutations") and not hasattr(lean, "hashfunc")
    for settings, said in (
        ({}, "give a minhash"),
        ({"seed": 1}, "give a minhash"),
        ({"seed": 1, "hashvalues": [1]}, "scheme must be specified"),
        ({"minhash": minhash, "scheme": "legacy"}, "conflicts"),
        ({"seed": 1, "hashvalues": [], "scheme": "affine32"}, "positive"),
    ):
        with pytest.raises(ValueError, match=said):
            LeanMinHash(**settings)
    with pytest.raises(ValueError, match="Unknown permutation scheme code: 9"):
        LeanMinHash.deserialize(struct.pack("<qiB", 1, -1, 9), "<")


# The examples of datasketch's documentation, but for the import.


def test_minhash_example():
    data1 = ["minhash", "is", "a", "probabilistic", "data", "structure", "for", "estimating", "the", "similarity", "between", "datasets"]
    data2 = ["minhash", "is", "a", "probability", "data", "structure", "for", "estimating", "the", "similarity", "between", "documents"]

    m1, m2 = MinHash(), MinHash()
    for d in data1:
        m1.update(d.encode("utf8"))
    for d in data2:
        m2.update(d.encode("utf8"))
    s1, s2 = set(data1), set(data2)
    actual_jaccard = float(len(s1.intersection(s2))) / float(len(s1.union(s2)))
    assert m1.jaccard(m2) == pytest.approx(actual_jaccard, abs=0.12)


def test_minhash_lsh_example():
    set1 = set("minhash is a probabilistic data structure for estimating the similarity between datasets".split())
    set2 = set("minhash is a probability data structure for estimating the similarity between documents".split())
    set3 = set("minhash is probability data structure for estimating the similarity between documents".split())

    m1 = MinHash(num_perm=128)
    m2 = MinHash(num_perm=128)
    m3 = MinHash(num_perm=128)
    for d in set1:
        m1.update(d.encode("utf8"))
    for d in set2:
        m2.update(d.encode("utf8"))
    for d in set3:
        m3.update(d.encode("utf8"))

    lsh = MinHashLSH(threshold=0.5, num_perm=128)
    lsh.insert("m2", m2)
    lsh.insert("m3", m3)
    assert sorted(lsh.query(m1)) == ["m2", "m3"]

    lsh = MinHashLSH(threshold=0.5, num_perm=128)
    with lsh.insertion_session() as session:
        for key, minhash in [("m1", m1), ("m2", m2), ("m3", m3)]:
            session.insert(key, minhash)
    assert "m1" in lsh and "m4" not in lsh
    lsh.remove("m1")
    assert "m1" not in lsh


EXAMPLES = {
    "union": """
m1 = MinHash(num_perm=128)
m1.update_batch(np.random.randint(low=0, high=30, size=10))
m2 = MinHash(num_perm=128)
m2.update_batch(np.random.randint(low=0, high=30, size=10))
m = MinHash.union(m1, m2)
told = m.count(), m.jaccard(m1)
""",
    "ranked query": """
minhashes = MinHash.bulk(np.random.randint(low=0, high=30, size=(100, 10)), num_perm=128)
lsh = MinHashLSH(threshold=0.5, num_perm=128)
for i, m in enumerate(minhashes):
    lsh.insert(i, m)
query = minhashes[0]
results = lsh.query(query)
results = [(query.jaccard(minhashes[key]), key) for key in results]
results.sort(reverse=True)
told = results
""",
    "sessions": """
minhashes = []
for i in range(100):
    m = MinHash(num_perm=128)
    m.update_batch(np.random.randint(low=0, high=30, size=10))
    minhashes.append(m)
lsh = MinHashLSH(threshold=0.5, num_perm=128)
with lsh.insertion_session() as session:
    for i, m in enumerate(minhashes):
        session.insert(i, m)
keys_to_delete = [1, 2, 3]
with lsh.deletion_session() as session:
    for key in keys_to_delete:
        session.remove(key)
told = sorted(lsh.keys.keys()), sorted(lsh.query(minhashes[1]))
""",
    "bulk": """
data = [[b"token1", b"token2", b"token3"], [b"token4", b"token5", b"token6"]]
minhashes = MinHash.bulk(data, num_perm=64)
told = [m.count() for m in minhashes], [m.count() for m in MinHash.generator(data, num_perm=64)]
""",
    "another hash": """
def _hash_func(d):
    return sum(d.encode()) * 2654435761 % 2**32

m = MinHash(hashfunc=_hash_func)
m.update("new value")
told = m.count()
""",
    "bands": """
lsh = MinHashLSH(threshold=0.9, num_perm=128)
told = [(lsh.b, lsh.r)]
lsh = MinHashLSH(num_perm=128, params=(16, 8))
told.append((lsh.b, lsh.r))
lsh = MinHashLSH(threshold=0.5, num_perm=128, weights=(0.4, 0.6))
told.append((lsh.b, lsh.r))
""",
    "lean": """
minhash = MinHash(num_perm=128)
minhash.update_batch([b"a", b"b"])
lean_minhash = LeanMinHash(minhash)
lean_minhash2 = LeanMinHash(seed=minhash.seed, hashvalues=minhash.hashvalues, scheme=minhash.scheme)
told = [lean_minhash.jaccard(lean_minhash2), lean_minhash.jaccard(minhash)]
minhash = MinHash(seed=lean_minhash.seed, hashvalues=lean_minhash.digest(), scheme=lean_minhash.scheme)
buf = bytearray(lean_minhash.bytesize())
lean_minhash.serialize(buf)
told += [bytes(buf), LeanMinHash.deserialize(buf) == lean_minhash]
lean_minhashs = [lean_minhash, lean_minhash2]
size = lean_minhashs[0].bytesize()
buf = bytearray(size * len(lean_minhashs))
for i, one in enumerate(lean_minhashs):
    one.serialize(memoryview(buf)[i * size :])
told += [bytes(buf), pickle.loads(pickle.dumps(lean_minhash)) == lean_minhash]
""",
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_agree_under_both_imports(name):
    told = []
    for package in (compat, datasketch):
        np.random.seed(3)
        names = {one: getattr(package, one) for one in ("MinHash", "MinHashLSH", "LeanMinHash")}
        names.update(np=np, pickle=pickle)
        exec(EXAMPLES[name], names)
        told.append(rounded(names["told"]))
    assert told[0] == told[1]


def rounded(told):
    """Sums of floating point, added in another order, differ in the last digit."""
    if isinstance(told, (list, tuple)):
        return [rounded(one) for one in told]
    return round(float(told), 9) if isinstance(told, float) else told


@pytest.mark.parametrize("num_perm", [2, 16, 64, 128, 256])
def test_bands_equal_datasketch(num_perm):
    for threshold in (0.05, 0.3, 0.5, 0.51, 0.75, 0.8, 0.9, 0.95):
        for weights in ((0.5, 0.5), (0.4, 0.6), (0.9, 0.1), (0, 1), (1, 0)):
            try:
                theirs = datasketch.MinHashLSH(threshold, num_perm, weights)
            except ValueError:
                with pytest.raises(ValueError):
                    MinHashLSH(threshold, num_perm, weights)
                continue
            ours = MinHashLSH(threshold, num_perm, weights)
            assert (ours.b, ours.r) == (theirs.b, theirs.r), (threshold, weights)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_index_results_equal_datasketch(scheme):
    source = random.Random(3)
    ours = MinHashLSH(num_perm=128, params=(16, 8))
    theirs = datasketch.MinHashLSH(num_perm=128, params=(16, 8))
    assert ours.is_empty() and theirs.is_empty()
    sets = []
    for number in range(200):
        values = [b"%d" % source.randrange(400) for _ in range(60)]
        if number % 3:
            values = sets[-1][0][: source.randrange(30, 60)] + values[:4]
        pair = both(scheme=scheme)
        pair[0].update_batch(values)
        pair[1].update_batch(values)
        sets.append((values, *pair))
    for number, (_, one, other) in enumerate(sets):
        ours.insert(("key", number), one)
        theirs.insert(("key", number), other)
    matches = 0
    for _, one, other in sets:
        assert set(ours.query(one)) == set(theirs.query(other))
        assert ours._query_b(one, 5) == theirs._query_b(other, 5)
        matches += len(ours.query(one))
    assert matches > len(sets)
    assert ours.get_counts() == [dict(counts) for counts in theirs.get_counts()]
    keys = [("key", 1), ("key", 50)]
    for keys in (keys, [*keys, "nowhere"]):
        assert ours.get_subset_counts(*keys) == [dict(counts) for counts in theirs.get_subset_counts(*keys)]
    for number in range(0, 200, 2):
        ours.remove(("key", number))
        theirs.remove(("key", number))
    again = pickle.loads(pickle.dumps(ours))
    for _, one, other in sets:
        assert set(ours.query(one)) == set(theirs.query(other)) == set(again.query(one))
    assert len(ours) == 100 and ours.get_counts() == [dict(counts) for counts in theirs.get_counts()]
    for index in (ours, theirs):
        index.add_to_query_buffer(sets[1][1 if index is ours else 2])
        index.add_to_query_buffer(sets[2][1 if index is ours else 2])
    assert set(ours.collect_query_buffer()) == set(theirs.collect_query_buffer())


def test_long_lists_equal_datasketch():
    values = [b"%d" % (number * number) for number in range(10_001)]
    for scheme in SCHEMES:
        ours, theirs = both(scheme=scheme)
        ours.update(b"before")
        theirs.update(b"before")
        # What is no bytes is taken one by one.
        ours.update_batch([*values[:7000], bytearray(b"buffer"), *values[7000:]])
        theirs.update_batch([*values[:7000], bytearray(b"buffer"), *values[7000:]])
        assert (ours.digest() == theirs.digest()).all()


def test_long_lists_release_the_interpreter():
    values = [b"%d" % number for number in range(3_000_000)]
    minhash, ticks = MinHash(), 0
    thread = threading.Thread(target=minhash.update_batch, args=(values,))
    thread.start()
    while thread.is_alive():
        ticks += 1
        time.sleep(0.001)
    assert ticks > 10 and not minhash.is_empty()


def test_subclass_with_own_arguments_works():
    class Named(MinHashLSH):
        def __init__(self, name):
            super().__init__(threshold=0.5, num_perm=64)
            self.name = name

    class Unready(MinHashLSH):
        def __init__(self):
            pass

    index = Named("titles")
    minhash = MinHash(num_perm=64)
    minhash.update(b"one")
    index.insert("a", minhash)
    assert index.query(minhash) == ["a"] and (index.h, index.name) == (64, "titles")
    globals()["Named"] = Named
    Named.__qualname__ = "Named"
    again = pickle.loads(pickle.dumps(index))
    assert type(again) is Named and again.query(minhash) == ["a"] and again.name == "titles"
    with pytest.raises(ValueError, match="super"):
        Unready().query(minhash)


def test_removed_keys_release_their_memory():
    index = MinHashLSH(num_perm=16, params=(4, 4))
    minhashes = [MinHash(num_perm=16) for _ in range(50)]
    for number, minhash in enumerate(minhashes):
        minhash.update(b"%d" % number)

    def around(times):
        """A window of ten keys that slides."""
        for number in range(times):
            index.insert(number, minhashes[number % 50])
            if number >= 10:
                index.remove(number - 10)
        keys = list(index.keys)
        for key in keys:
            assert key in index.query(minhashes[key % 50])
            index.remove(key)
        return keys

    assert around(2_000) == list(range(1_990, 2_000))
    before = memory()
    around(200_000)
    assert index.is_empty() and memory() - before < 8 << 20


def memory():
    """Bytes of memory that the process has."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_index_merges_and_refuses():
    one, two = MinHash(), MinHash()
    one.update(b"a")
    two.update(b"b")
    left, right = MinHashLSH(), MinHashLSH()
    left.insert("one", one)
    right.insert("two", two)
    left.merge(right, check_overlap=True)
    assert left.query(two) == ["two"]
    with pytest.raises(ValueError, match="overlapping"):
        left.merge(right, check_overlap=True)
    with pytest.raises(ValueError, match="already exists"):
        left.insert("one", one)
    with pytest.raises(ValueError, match="does not exist"):
        left.remove("three")
    with pytest.raises(ValueError, match="length 128, got 64"):
        left.insert("short", MinHash(64))
    with pytest.raises(ValueError, match="scheme"):
        left.query(MinHash(scheme="legacy"))
    with pytest.raises(ValueError, match="different initialization"):
        left.merge(MinHashLSH(params=(4, 4)))
    with pytest.raises(TypeError):
        left.insert(["unhashable"], one)
    for settings in (
        {"threshold": 1.1},
        {"num_perm": 1},
        {"weights": (0.5, 0.6)},
        {"params": (20, 10)},
        {"storage_config": {"type": "cassandra"}},
        {"storage_config": {"basename": b"x"}},
        {"params": (0, 4)},
        {"params": (-1, 4)},
        {"prepickle": True},
    ):
        with pytest.raises(ValueError):
            MinHashLSH(**settings)
    for storage in ({}, {"type": "dict"}, {"type": "dict", "basename": b"x"}):
        MinHashLSH(storage_config=storage)


def test_unchecked_repeated_key_keeps_both():
    (one, other), (two, more) = both(), both()
    for minhash, value in ((one, b"a"), (other, b"a"), (two, b"b"), (more, b"b")):
        minhash.update(value)
    ours, theirs = MinHashLSH(), datasketch.MinHashLSH()
    for lsh, first, second in ((ours, one, two), (theirs, other, more)):
        lsh.insert("key", first)
        for _ in range(3):
            lsh.insert("key", second, check_duplication=False)
        assert lsh.query(first) == lsh.query(second) == ["key"]
        lsh.insert("other", second, check_duplication=False)
    assert len(ours) == 2 and ours.get_counts() == [dict(counts) for counts in theirs.get_counts()]
    again = pickle.loads(pickle.dumps(ours))
    assert again.query(one) == ["key"] and again.get_counts() == ours.get_counts()
    # A merge unites what a key has in both.
    merged = MinHashLSH()
    merged.insert("key", one)
    merged.merge(ours)
    assert merged.get_counts() == ours.get_counts() and merged.query(one) == ["key"]
    ours.remove("key")
    assert ours.query(one) == [] and ours.query(two) == ["other"]


def test_keys_of_an_index():
    minhash, other = both()
    ours, theirs = MinHashLSH(), datasketch.MinHashLSH()
    for key in ("a", ("b", 2), 3):
        ours.insert(key, minhash)
        theirs.insert(key, other)
    assert list(ours.keys) == list(theirs.keys) == ["a", ("b", 2), 3]
    assert set(ours.keys.keys()) == set(theirs.keys.keys()) and ours.keys.size() == theirs.keys.size() == 3
    assert ours.keys.get("a") == theirs.keys.get("a") and ours.keys.has_key(3) and 4 not in ours.keys
    assert [dict(table) for table in ours.hashtables] == [
        {band: frozenset(table[band]) for band in table} for table in theirs.hashtables
    ]


def test_one_of_concurrent_inserts_of_a_key_wins():
    from test_indexes import all_at_once

    minhashes = [MinHash(num_perm=16) for _ in range(4)]
    for number, minhash in enumerate(minhashes):
        minhash.update(b"%d" % number)
    lsh = MinHashLSH(num_perm=16, params=(4, 4))
    for key in range(200):
        errors = all_at_once(4, lambda number: lsh.insert(key, minhashes[number]))
        assert [str(error) for error in errors] == ["The given key already exists"] * 3
    assert len(lsh) == 200 and all(sum(counts.values()) == 200 for counts in lsh.get_counts())
    found = [key for minhash in minhashes for key in lsh.query(minhash)]
    assert sorted(set(found)) == list(range(200))
    for key in range(200):
        errors = all_at_once(4, lambda _: lsh.remove(key))
        assert [str(error) for error in errors] == ["The given key does not exist"] * 3
    assert lsh.is_empty() and lsh.get_counts() == [{}] * 4

    def come_and_go(number):
        for round in range(300):
            try:
                if (round + number) % 2:
                    lsh.insert("key", minhashes[number])
                else:
                    lsh.remove("key")
            except ValueError:
                pass
            assert len(lsh.query(minhashes[number])) <= 1

    assert all_at_once(4, come_and_go) == []
    if "key" in lsh:
        lsh.remove("key")
    assert lsh.is_empty() and lsh.get_counts() == [{}] * 4


def test_keys_can_run_python_code():
    """A key whose hash or comparison uses the index itself does not stop it."""
    lsh = MinHashLSH(num_perm=16, params=(4, 4))
    minhash = MinHash(num_perm=16)

    class Key:
        def __init__(self, name):
            self.name = name

        def __hash__(self):
            lsh.query(minhash)
            return hash(self.name)

        def __eq__(self, other):
            len(lsh)
            return self.name == other.name

    for name in "ab":
        lsh.insert(Key(name), minhash)
    with pytest.raises(ValueError, match="already exists"):
        lsh.insert(Key("a"), minhash)
    lsh.remove(Key("a"))
    assert [key.name for key in lsh.query(minhash)] == ["b"]
