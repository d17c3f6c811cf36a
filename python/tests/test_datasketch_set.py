"""The rest of datasketch's classes: the values of the installed package, for the same calls."""

import asyncio
import importlib
import pickle
import pkgutil
import random
import warnings

import datasketch
import numpy as np
import pytest

from lookalike.compat import datasketch as compat
from lookalike.compat.datasketch import (
    AsyncMinHashLSH,
    MinHash,
    MinHashLSH,
    MinHashLSHBloom,
    MinHashLSHEnsemble,
    MinHashLSHForest,
    WeightedMinHashGenerator,
    WeightedMinHashLSH,
    WeightedMinHashLSHForest,
    bBitMinHash,
)


def made_sets(count, seed=3):
    source = random.Random(seed)
    words = [f"w{number}" for number in range(400)]
    sets = []
    for _ in range(count):
        if sets and source.random() < 0.5:
            base = set(source.choice(sets))
            base -= set(source.sample(sorted(base), min(len(base) - 1, source.randrange(4))))
        else:
            base = set()
        sets.append(base | set(source.sample(words, source.randrange(1, 30))))
    return sets


def signed(values, num_perm=128, scheme="affine32"):
    """The MinHash of a set, by this package and by datasketch."""
    messages = [value.encode() for value in sorted(values)]
    both = MinHash(num_perm, scheme=scheme), datasketch.MinHash(num_perm, scheme=scheme)
    for minhash in both:
        minhash.update_batch(messages)
    return both


@pytest.mark.parametrize("scheme", ["affine32", "affine64", "legacy"])
@pytest.mark.parametrize("trees", [3, 8])
def test_forest_answers_are_those_of_datasketch(trees, scheme):
    ours, theirs = MinHashLSHForest(64, trees), datasketch.MinHashLSHForest(64, trees)
    pairs = [signed(values, 64, scheme) for values in made_sets(80)]
    for key, (own, other) in enumerate(pairs):
        ours.add(key, own)
        theirs.add(key, other)
    assert ours.is_empty() and not ours.query(pairs[0][0], 3)
    ours.index()
    theirs.index()
    assert not ours.is_empty() and 5 in ours and 80 not in ours
    assert ours.keys == theirs.keys
    assert ours.sorted_hashtables == theirs.sorted_hashtables
    for own, other in pairs:
        for depth in range(1, ours.k + 1):
            assert list(ours._query(own, depth, trees)) == list(theirs._query(other, depth, trees))
        assert set(ours.query(own, 4)) == set(theirs.query(other, 4))
    hashed = ours.get_minhash_hashvalues(7)
    assert hashed.dtype == theirs.get_minhash_hashvalues(7).dtype
    assert np.array_equal(hashed, theirs.get_minhash_hashvalues(7))
    again = pickle.loads(pickle.dumps(ours))
    assert set(again.query(pairs[3][0], 4)) == set(ours.query(pairs[3][0], 4))


def test_forest_refuses_what_datasketch_refuses():
    for arguments in [(0, 8), (8, 0), (8, 9)]:
        with pytest.raises(ValueError):
            MinHashLSHForest(*arguments)
    forest = MinHashLSHForest(64)
    minhash, _ = signed({"a"}, 64)
    forest.add("a", minhash)
    with pytest.raises(ValueError, match="already been added"):
        forest.add("a", minhash)
    with pytest.raises(ValueError, match="out of range"):
        forest.add("b", signed({"a"}, 32)[0])
    with pytest.raises(ValueError, match="scheme"):
        forest.query(signed({"a"}, 64, "legacy")[0], 1)
    with pytest.raises(ValueError, match="positive"):
        forest.query(minhash, 0)
    with pytest.raises(KeyError):
        forest.get_minhash_hashvalues("b")


@pytest.mark.parametrize("threshold,num_perm,parts,most", [(0.8, 128, 4, 8), (0.5, 64, 16, 4), (0.95, 32, 1, 2)])
def test_ensemble_is_that_of_datasketch(threshold, num_perm, parts, most):
    settings = {"threshold": threshold, "num_perm": num_perm, "num_part": parts, "m": most}
    ours, theirs = MinHashLSHEnsemble(**settings), datasketch.MinHashLSHEnsemble(**settings)
    assert np.allclose(ours.xqs, theirs.xqs) and (ours.params == theirs.params).all()
    sets = made_sets(120)
    pairs = [signed(values, num_perm) for values in sets]
    ours.index([(key, own, len(values)) for key, ((own, _), values) in enumerate(zip(pairs, sets))])
    theirs.index([(key, other, len(values)) for key, ((_, other), values) in enumerate(zip(pairs, sets))])
    assert (ours.lowers, ours.uppers) == (theirs.lowers, theirs.uppers)
    for (own, other), values in zip(pairs, sets):
        assert sorted(ours.query(own, len(values))) == sorted(theirs.query(other, len(values)))
    assert 3 in ours and 500 not in ours
    with pytest.raises(ValueError, match="non-empty"):
        ours.index([])


def test_partitions_of_sizes_are_those_of_datasketch():
    from datasketch.lshensemble_partition import optimal_partitions

    from lookalike._ensemble import partition_sizes

    source = np.random.default_rng(5)
    for count in [1, 2, 3, 7, 40, 90]:
        sizes = np.sort(source.choice(1000, count, replace=False) + 1)
        counts = source.integers(1, 50, count)
        for parts in [1, 2, 3, 5, 16]:
            assert partition_sizes(sizes, counts, parts) == optimal_partitions(sizes, counts, parts)


def test_weighted_minhashes_are_those_of_datasketch():
    source = np.random.default_rng(1)
    ours, theirs = WeightedMinHashGenerator(50, 96, 4), datasketch.WeightedMinHashGenerator(50, 96, 4)
    rows = source.integers(0, 4, (30, 50)) * source.random((30, 50))
    rows[7] = 0
    rows[8, 3:] = 0
    many, others = ours.minhash_many(rows), theirs.minhash_many(rows)
    for at, row in enumerate(rows):
        if at == 7:
            assert many[at] is None and others[at] is None
            with pytest.raises(ValueError, match="all zeros"):
                ours.minhash(row)
            continue
        for vector in (row, row.tolist(), row.astype(np.float32)):
            own, other = ours.minhash(vector), theirs.minhash(vector)
            assert np.array_equal(own.hashvalues, other.hashvalues) and own.hashvalues.dtype == other.hashvalues.dtype
        assert np.array_equal(many[at].hashvalues, others[at].hashvalues)
    scipy_sparse = pytest.importorskip("scipy.sparse")
    sparse = ours.minhash_many(scipy_sparse.csr_matrix(rows))
    assert sparse[3] == many[3] and sparse[7] is None
    a, b = ours.minhash(rows[0]), ours.minhash(rows[1])
    assert a.jaccard(b) == theirs.minhash(rows[0]).jaccard(theirs.minhash(rows[1]))
    assert a == a.copy() and a != b and len(a) == 96
    for wrong in [5, [1, 2]]:
        with pytest.raises((TypeError, ValueError)):
            ours.minhash(wrong)


def test_weighted_minhashes_can_be_indexed():
    generator = WeightedMinHashGenerator(20, 128)
    others = datasketch.WeightedMinHashGenerator(20, 128)
    source = np.random.default_rng(2)
    base = source.integers(1, 9, 20)
    rows = [base + source.integers(0, 2, 20) * (at % 3) for at in range(20)]
    ours, theirs = WeightedMinHashLSH(0.6, 128), datasketch.WeightedMinHashLSH(0.6, 128)
    forest, other_forest = WeightedMinHashLSHForest(128), datasketch.WeightedMinHashLSHForest(128)
    for key, row in enumerate(rows):
        ours.insert(key, generator.minhash(row))
        theirs.insert(key, others.minhash(row))
        forest.add(key, generator.minhash(row))
        other_forest.add(key, others.minhash(row))
    forest.index()
    other_forest.index()
    for row in rows:
        assert set(ours.query(generator.minhash(row))) == set(theirs.query(others.minhash(row)))
        depths = range(1, forest.k + 1)
        assert all(
            list(forest._query(generator.minhash(row), depth, 8))
            == list(other_forest._query(others.minhash(row), depth, 8))
            for depth in depths
        )


@pytest.mark.parametrize("scheme", ["affine32", "affine64", "legacy"])
@pytest.mark.parametrize("bits", [0, 1, 2, 3, 7, 12, 31, 32])
def test_b_bit_minhashes_are_those_of_datasketch(bits, scheme):
    (a, other_a), (b, other_b) = (signed(values, 100, scheme) for values in ({"a", "b", "c"}, {"b", "c", "d", "e"}))
    for share in (0.0, 0.1):
        ours = bBitMinHash(a, bits, share), bBitMinHash(b, bits, share)
        theirs = datasketch.bBitMinHash(other_a, bits, share), datasketch.bBitMinHash(other_b, bits, share)
        assert np.array_equal(ours[0].hashvalues, theirs[0].hashvalues)
        if bits:
            assert ours[0].jaccard(ours[1]) == pytest.approx(theirs[0].jaccard(theirs[1]), abs=1e-12)
            assert bytes(ours[0].__getstate__()) == bytes(theirs[0].__getstate__())
            assert ours[0].bytesize() == theirs[0].bytesize()
            again = pickle.loads(pickle.dumps(ours[0]))
            assert again == ours[0] and again != ours[1]
    with pytest.raises(ValueError, match="b must be"):
        bBitMinHash(a, 33)
    with pytest.raises(ValueError, match="different b"):
        bBitMinHash(a, 2).jaccard(bBitMinHash(b, 3))


@pytest.mark.parametrize("name", ["HyperLogLog", "HyperLogLogPlusPlus"])
@pytest.mark.parametrize("precision", [4, 6, 8, 12, 16])
def test_hyperloglogs_are_those_of_datasketch(name, precision):
    ours, theirs = getattr(compat, name)(precision), getattr(datasketch, name)(precision)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in range(3000):
            value = str(number).encode()
            ours.update(value)
            theirs.update(value)
            if number in (0, 7, 30, 100, 300, 1000, 2999):
                assert ours.count() == pytest.approx(theirs.count(), rel=1e-12)
    assert np.array_equal(ours.reg, theirs.reg) and len(ours) == len(theirs)
    buffers = bytearray(ours.bytesize()), bytearray(theirs.bytesize())
    ours.serialize(buffers[0])
    theirs.serialize(buffers[1])
    assert buffers[0] == buffers[1]
    assert type(ours).deserialize(buffers[0]) == ours == pickle.loads(pickle.dumps(ours)) == ours.copy()
    other = getattr(compat, name)(precision)
    other.update(b"x")
    union = type(ours).union(ours, other)
    merged = ours.copy()
    merged.merge(other)
    assert union == merged and not union.is_empty()
    merged.clear()
    assert merged.is_empty()
    with pytest.raises(ValueError, match="range"):
        getattr(compat, name)(3)
    with pytest.raises(ValueError, match="precisions"):
        ours.merge(getattr(compat, name)(10))


def test_bloom_index_finds_what_shares_a_band(tmp_path):
    plain, bloom = MinHashLSH(0.5), MinHashLSHBloom(0.5, n=500, fp=1e-6, save_dir=tmp_path / "bloom")
    assert (bloom.b, bloom.r) == (plain.b, plain.r)
    pairs = [signed(values)[0] for values in made_sets(150)]
    for key, minhash in enumerate(pairs):
        assert bloom.query(minhash) == bool(plain.query(minhash))
        plain.insert(key, minhash)
        bloom.insert(minhash)
    bloom.sync()
    again = MinHashLSHBloom(0.5, n=1, fp=0.5, save_dir=tmp_path / "bloom")
    assert all(again.query(minhash) for minhash in pairs)
    assert not again.query(signed({"none of these"})[0])
    with pytest.raises(ValueError, match="Expecting minhash"):
        bloom.insert(signed({"a"}, 64)[0])
    (tmp_path / "bloom" / "band-0.bloom").write_bytes(b"something else")
    with pytest.raises(ValueError, match="not a Bloom filter"):
        MinHashLSHBloom(0.5, n=500, fp=1e-6, save_dir=tmp_path / "bloom")
    with pytest.warns(RuntimeWarning, match="save directory"):
        MinHashLSHBloom(0.5, n=5, fp=0.1)
    for wrong in [{"n": 0, "fp": 0.1}, {"n": 5, "fp": 1.0}, {"n": 5}, {"fp": 0.1}]:
        with pytest.raises(ValueError):
            MinHashLSHBloom(0.5, save_dir=tmp_path, **wrong)


def test_hashtables_of_an_index_are_those_of_datasketch():
    ours, theirs = MinHashLSH(0.5), datasketch.MinHashLSH(0.5)
    for key, values in enumerate(made_sets(60)):
        own, other = signed(values)
        ours.insert(key, own)
        theirs.insert(key, other)
    ours.remove(3)
    theirs.remove(3)
    for own, other in zip(ours.hashtables, theirs.hashtables):
        assert {band: set(keys) for band, keys in own.items()} == {band: set(other[band]) for band in other}
    with pytest.raises(TypeError):
        ours.hashtables[0][b"x"] = {1}


def test_asynchronous_index_answers_as_the_other_does():
    sets = made_sets(40)

    async def run():
        answers = []
        async with AsyncMinHashLSH(0.5) as lsh:
            async with lsh.insertion_session() as session:
                for key, values in enumerate(sets):
                    await session.insert(key, signed(values)[0])
            for values in sets:
                answers.append(await lsh.query(signed(values)[0]))
            await lsh.remove(0)
            assert not await lsh.has_key(0) and await lsh.has_key(1) and not await lsh.is_empty()
            assert len(await lsh.get_counts()) == lsh.b
            with pytest.raises(ValueError, match="exists"):
                await lsh.insert(1, signed(sets[1])[0])
        return answers

    plain = MinHashLSH(0.5)
    for key, values in enumerate(sets):
        plain.insert(key, signed(values)[0])
    assert asyncio.run(run()) == [plain.query(signed(values)[0]) for values in sets]


def test_bulk_signatures_are_those_of_single_ones():
    lists = [[f"{number}-{at}".encode() for at in range(number % 90)] for number in range(3000)]
    for scheme in ("affine32", "affine64", "legacy"):
        bulk = MinHash.bulk(lists, num_perm=64, scheme=scheme)
        assert len(bulk) == len(lists)
        for at in (0, 1, 89, 1500, 2999):
            single = MinHash(64, scheme=scheme)
            single.update_batch(lists[at])
            assert bulk[at] == single
    assert MinHash.bulk(iter([(b"a", bytearray(b"b"))]))[0] == MinHash.bulk([[b"a", b"b"]])[0]
    assert MinHash.bulk([]) == []
    with pytest.raises(TypeError, match="encoded"):
        MinHash.bulk([["text"]])


def test_pickled_minhashes_are_equal_and_small():
    for scheme, width in (("affine32", 4), ("affine64", 8), ("legacy", 8)):
        minhash = MinHash(128, seed=5, scheme=scheme)
        minhash.update(b"ferry")
        data = pickle.dumps(minhash, protocol=5)
        assert pickle.loads(data) == minhash and len(data) < 128 * width + 120
        more = pickle.loads(data)
        more.update(b"seven")
        minhash.update(b"seven")
        assert more == minhash


def test_bloom_table_is_that_of_one_band():
    ours = compat.BloomTable(100, 1e-6, 3)
    ours.insert([1, 2, 3])
    assert ours.query([1, 2, 3]) and not ours.query([1, 2, 4])
    with pytest.raises(RuntimeError, match="Invalid length for indices, 2, expected 3"):
        ours.insert([1, 2])


def test_modules_have_the_names_of_those_of_datasketch():
    """Every class that is here can be imported from the module in which datasketch has it."""
    ours = {module.name for module in pkgutil.iter_modules(compat.__path__)}
    absent = {"experimental", "hnsw", "hyperloglog_const", "lshensemble_partition", "storage"}
    assert ours == {module.name for module in pkgutil.iter_modules(datasketch.__path__)} - absent
    for name in ours:
        own, theirs = (importlib.import_module(f"{package.__name__}.{name}") for package in (compat, datasketch))
        for exported in own.__all__:
            assert getattr(own, exported) is getattr(compat, exported)
            assert exported == "BloomTable" or hasattr(theirs, exported), exported
