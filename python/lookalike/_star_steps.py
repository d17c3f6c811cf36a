"""Connected components of any size, as steps over record batches: alternating large stars and small stars.

An edge connects two nodes and is listed in both directions. A large-star step connects the larger neighbours of every
node with the smallest of its neighbours and itself. A small-star step connects every node with the smallest one that the
edges of its partition connect it with; in the paper, with its smallest neighbour. Neither changes which nodes are
connected. The rounds end when every component is one star around its smallest node. The nodes of a chain halve in about
every round, so components whose nodes are at most n edges apart end after about 2 · log₂ n rounds, and after fewer with
few partitions.

Source: Kiveris et al., "Connected Components in MapReduce and Beyond", 2014. Memory: 100 bytes for each edge of a
partition.
"""

from __future__ import annotations

from typing import Any, Iterator

import numpy as np

from ._steps import Batches, labels_of

#: An edge from ``u`` to ``v``. A row without ``u`` tells the number ``v`` of edges that a step made, and whether the
#: edges before it were not stars yet.
EDGES = "u bigint, v bigint, is_open boolean"

_SIGN = np.int64(-(2**63))


def unpack_links(batches: Batches) -> Iterator[Any]:
    """Turns blocks of links into edges."""
    for batch in batches:
        for block in batch.column("block"):
            links = np.frombuffer(block.as_py(), "<i8").reshape(-1, 2)
            yield _in_both_directions(links[:, 0], links[:, 1])


def large_stars(batches: Batches) -> Iterator[Any]:
    """Turns all edges from some nodes into edges from larger neighbours to the smallest one, in one direction."""
    nodes, neighbours = _distinct(*_edges_of(batches))
    if len(nodes) == 0:
        return
    starts = np.flatnonzero(np.append(True, nodes[1:] != nodes[:-1]))
    sizes = np.diff(np.append(starts, len(nodes)))
    least = np.repeat(np.minimum.reduceat(neighbours, starts), sizes)
    is_larger = neighbours > nodes
    # In a star, the centre has no smaller neighbour and every other node has just one.
    smaller = np.add.reduceat((~is_larger).astype(np.int64), starts)
    larger = sizes - smaller
    is_open = bool(np.any(((smaller > 0) & (larger > 0)) | (smaller > 1)))
    edges = _distinct(neighbours[is_larger], np.minimum(least, nodes)[is_larger])
    yield _batch_of(*edges)
    yield _stats_of(len(edges[0]), is_open)


def small_stars(batches: Batches) -> Iterator[Any]:
    """Turns edges from larger nodes to smaller ones into edges to the smallest connected node."""
    # The engine orders nodes as unsigned numbers.
    edges = np.stack(_edges_of(batches), axis=1) ^ _SIGN
    labels = labels_of([edges.tobytes()])
    nodes, centres = (np.asarray(labels.column(name)) ^ _SIGN for name in ("node", "component"))
    is_other = nodes != centres
    yield _in_both_directions(nodes[is_other], centres[is_other])


def _edges_of(batches: Batches) -> tuple[Any, Any]:
    columns = [(batch.column("u"), batch.column("v")) for batch in batches]
    empty = np.zeros(0, np.int64)
    first, second = zip((empty, empty), *((np.asarray(u), np.asarray(v)) for u, v in columns))
    return np.concatenate(first).astype(np.int64), np.concatenate(second).astype(np.int64)


def _distinct(first: Any, second: Any) -> tuple[Any, Any]:
    order = np.lexsort((second, first))
    first, second = first[order], second[order]
    is_new = np.ones(len(first), bool)
    is_new[1:] = (first[1:] != first[:-1]) | (second[1:] != second[:-1])
    return first[is_new], second[is_new]


def _in_both_directions(first: Any, second: Any) -> Any:
    return _batch_of(np.concatenate([first, second]), np.concatenate([second, first]))


def _batch_of(first: Any, second: Any) -> Any:
    import pyarrow as pa

    columns = [pa.array(first, pa.int64()), pa.array(second, pa.int64()), pa.nulls(len(first), pa.bool_())]
    return pa.RecordBatch.from_arrays(columns, ["u", "v", "is_open"])


def _stats_of(edges: int, is_open: bool) -> Any:
    import pyarrow as pa

    columns = [pa.array([None], pa.int64()), pa.array([edges], pa.int64()), pa.array([is_open], pa.bool_())]
    return pa.RecordBatch.from_arrays(columns, ["u", "v", "is_open"])
