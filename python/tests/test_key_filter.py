"""Filters of keys, stars and slices of tables: what tasks of `lookalike.spark` do, without Spark."""

import pickle
import zlib

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pytest

from lookalike import _star_steps, _steps
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
