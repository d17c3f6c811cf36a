"""Filters and tables of keys, stars and slices of tables: what tasks of `lookalike.spark` do, without Spark."""

import pickle
import zlib

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pytest

from lookalike import _star_steps, _steps
from lookalike._destination_table import DestinationLayout, DestinationTable, mix_keys
from lookalike._key_filter import FilterLayout, KeyFilter


def built(keys, layout):
    numbers = layout.slice_numbers(keys)
    return KeyFilter(layout, [(int(at), layout.build_slice(keys[numbers == at])) for at in np.unique(numbers)])


def random_keys(count, seed):
    return np.random.default_rng(seed).integers(-(2**63), 2**63 - 1, count)


@pytest.mark.parametrize("count, max_bytes", [(0, 1 << 20), (1, 1 << 20), (1000, 1 << 20), (2_000_000, 64 << 20)])
def test_filter_has_its_keys_and_few_others(count, max_bytes):
    keys, others = random_keys(count, 1), random_keys(100_000, 2)
    made = built(keys, FilterLayout.for_keys(count, max_bytes))
    made = pickle.loads(pickle.dumps(made))
    assert made.has(keys).all()
    assert made.has(others).mean() < 0.01


def test_filter_keeps_its_largest_size():
    layout = FilterLayout.for_keys(10**9, 4 << 20)
    assert 1 << (layout.slices + layout.bits) == 8 * (4 << 20)
    keys = random_keys(100_000, 3)
    assert built(keys, layout).has(keys).all()


def test_slices_are_equal_however_keys_arrive():
    layout = FilterLayout.for_keys(3_000_000, 64 << 20)
    keys = random_keys(10_000, 4)
    rows = list(_steps.hash_slices(layout)([pa.record_batch({"key": pa.array(keys)})]))
    halves = [rows[0].slice(0, 4000), rows[0].slice(4000)]
    for batches in (rows, halves):
        (slices,) = _steps.build_slices(layout)(batches)
        found = KeyFilter(layout, zip(slices.column("slice").to_pylist(), slices.column("block").to_pylist()))
        assert found.slices == built(keys, layout).slices


def destinations_of(keys):
    return keys * 40503 % 65536


def built_table(keys, layout, destinations=None):
    destinations = destinations_of(keys) if destinations is None else destinations
    numbers = layout.slice_numbers(keys)
    slices = [
        (int(at), layout.build_slice(keys[numbers == at], destinations[numbers == at])) for at in np.unique(numbers)
    ]
    return pickle.loads(pickle.dumps(DestinationTable(layout, slices)))


@pytest.mark.parametrize("check_bits, others_found", [(16, 0.0005), (8, 0.02)])
@pytest.mark.parametrize("count", [0, 1, 2, 5, 1000, 1_000_000])
def test_table_has_the_destinations_of_its_keys(count, check_bits, others_found):
    keys, others = random_keys(count, 21), random_keys(100_000, 22)
    max_bytes = count * (3 + check_bits // 8)
    layout = DestinationLayout.for_keys(count, max_bytes)
    assert count == 0 or layout.check_bits == check_bits
    table = built_table(keys, layout)
    expected = dict(zip(keys.tolist(), destinations_of(keys).tolist()))
    assert table.find(keys).tolist() == [expected[key] for key in keys.tolist()]
    assert (table.find(others) >= 0).mean() <= others_found
    assert table.find(np.zeros(0, np.int64)).tolist() == []
    # A few keys more or less than a group has, and the exceptions, are the rest.
    assert table.nbytes <= max_bytes * 1.03 + 64
    placed, is_found = table.destinations(np.concatenate([keys, others]))
    assert placed.min() >= 0 and placed.max() < 65536
    assert is_found[:count].all() and len(np.unique(placed[count:])) > 40_000


def test_table_beyond_the_memory_is_not_laid_out():
    assert DestinationLayout.for_keys(1000, 5000).check_bits == 16
    assert DestinationLayout.for_keys(1000, 4999).check_bits == 8
    assert DestinationLayout.for_keys(1000, 4000).check_bits == 8
    assert DestinationLayout.for_keys(1000, 3999) is None
    assert DestinationLayout.for_keys(1, 3) is None
    assert DestinationLayout.for_keys(0, 0) is not None


@pytest.mark.parametrize("check_bits", [8, 16])
@pytest.mark.parametrize("wanted", ["destination", "key"])
def test_table_of_hashes_with_equal_high_bits(check_bits, wanted):
    """All keys are in one group, and many have equal checks."""
    candidates = random_keys(2_000_000, 23)
    high = mix_keys(candidates) >> np.uint64(56)
    keys = np.concatenate([candidates[high == 7], candidates[high == 8][:1]])
    assert len(keys) > 5000
    layout = DestinationLayout(1, 256, check_bits)
    destinations = np.full(len(keys), 9) if wanted == "destination" else destinations_of(keys)
    table = built_table(keys, layout, destinations)
    assert table.find(keys).tolist() == destinations.tolist()


@pytest.mark.parametrize("keys", [[0], [-1], [-(2**63), 2**63 - 1], [0, -1, 1, -2, 2], list(range(-5000, 5000))], ids=len)
def test_table_of_keys_of_both_signs(keys):
    keys = np.array(keys, np.int64)
    for layout in (DestinationLayout.for_keys(len(keys), 1 << 20), DestinationLayout(3, 1, 8), DestinationLayout(7, 5, 16)):
        assert built_table(keys, layout).find(keys).tolist() == destinations_of(keys).tolist()


def test_slices_of_a_table_are_equal_however_keys_arrive():
    keys = random_keys(600_000, 24)
    layout = DestinationLayout.for_keys(len(keys), 4 * len(keys))
    assert layout.slices == 3 and layout.check_bits == 8
    rows = pa.record_batch({"key": pa.array(keys), "destination": pa.array(destinations_of(keys), pa.int32())})
    shuffled = rows.take(np.random.default_rng(25).permutation(len(keys)))
    found = []
    for batches in ([rows], [shuffled.slice(0, 1000), shuffled.slice(1000)]):
        (slices,) = _steps.build_slices(layout)(_steps.hash_slices(layout)(batches))
        assert sorted(slices.column("slice").to_pylist()) == [0, 1, 2]
        found.append(dict(zip(slices.column("slice").to_pylist(), slices.column("block").to_pylist())))
        assert (DestinationTable(layout, found[-1].items()).find(keys) == destinations_of(keys)).all()
    assert found[0] == found[1]


def stars(pairs, partitions=7):
    """Components by rounds of stars in partitions, and the number of rounds."""
    block = np.array(pairs, "<i8").tobytes()
    edges = list(_star_steps.unpack_links([pa.record_batch({"block": [block]})]))
    rounds = 0
    while True:
        large, told = step_in_partitions(_star_steps.large_stars, edges, partitions)
        assert sum(row["v"] for row in told) == large.num_rows
        if not any(row["is_open"] for row in told):
            return dict(zip(large.column("u").to_pylist(), large.column("v").to_pylist())), rounds
        rounds += 1
        small, _ = step_in_partitions(_star_steps.small_stars, large.to_batches(), partitions)
        edges = small.to_batches()


def step_in_partitions(step, batches, partitions):
    """Runs a step over the edges from the nodes of each partition; returns edges and other rows."""
    table = pa.Table.from_batches(batches)
    part = np.asarray(table.column("u")) * 2654435761 % 2**32 % partitions
    made = [it for at in range(partitions) for it in step(table.filter(pa.array(part == at)).to_batches())]
    made = pa.Table.from_batches(made)
    is_edge = made.column("u").is_valid()
    return made.filter(is_edge), made.filter(pa.compute.invert(is_edge)).to_pylist()


@pytest.mark.parametrize("nodes", [2, 3, 10, 1000, 50_000])
def test_chain_becomes_a_star_in_few_rounds(nodes):
    names = np.random.default_rng(5).permutation(nodes)
    components, rounds = stars(list(zip(names[1:], names[:-1])))
    assert components == {node: 0 for node in range(1, nodes)}
    assert rounds <= 2 * np.log2(nodes)


def test_stars_equal_a_plain_union():
    source = np.random.default_rng(6)
    pairs = [(int(a), int(b)) for a, b in source.integers(-500, 500, (600, 2)) if a != b]
    parent = {}

    def root(node):
        while parent.setdefault(node, node) != node:
            node = parent[node]
        return node

    for a, b in pairs:
        a, b = root(a), root(b)
        parent[max(a, b)] = min(a, b)
    assert stars(pairs)[0] == {node: root(node) for node in list(parent) if root(node) != node}


def test_stars_of_a_star_end_at_once():
    assert stars([(0, at) for at in range(1, 50)]) == ({at: 0 for at in range(1, 50)}, 0)


def test_sum_of_slices_equals_the_sum_of_tables():
    source = np.random.default_rng(7)
    tables = [np.where(source.random(1 << 20) < 0.001, source.integers(1, 2**32, 1 << 20), 0).astype("<u4") for _ in range(3)]
    tables[0][:1 << 14] = 0
    packed = [zlib.compress(table.tobytes()) for table in tables]
    rows = list(_steps.slice_tables()([pa.record_batch({"block": [block]}) for block in packed]))
    (added,) = _steps.add_slices()(rows)
    slices = list(zip(added.column("part").to_pylist(), added.column("block").to_pylist()))
    expected = np.minimum(sum(table.astype(np.uint64) for table in tables), 2**32 - 1).astype("<u4")
    assert zlib.decompress(_steps.join_slices(slices)) == expected.tobytes()
