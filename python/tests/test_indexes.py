"""Indexes against exact scans."""

import random
import signal
import threading
import time

import numpy as np
import pytest

import lookalike as la
from lookalike.compat.datasketch import MinHashLSH


def near(codes, queries, distance):
    return {
        (q, at)
        for q, query in enumerate(queries)
        for at, code in enumerate(codes)
        if bin(int(query) ^ int(code)).count("1") <= distance
    }


def made_codes(bits, distance, seed=1):
    source = random.Random(seed)
    codes = [source.getrandbits(bits) for _ in range(400)]
    for code in codes[:120]:
        for bit in source.sample(range(bits), distance + 1):
            code ^= 1 << bit
            codes.append(code)
    return codes


@pytest.mark.parametrize("bits", [16, 64, 96, 128])
@pytest.mark.parametrize("distance", [0, 1, 3, 6])
def test_hamming_index_equals_a_scan(bits, distance):
    codes = made_codes(bits, distance)
    rows = np.array([[code & (2**64 - 1), code >> 64] for code in codes], dtype=np.uint64)
    rows = rows[:, 0] if bits <= 64 else rows
    index = la.HammingIndex(distance=distance, bits=bits)
    index.add(rows)
    queries = codes[::7]
    for within in {distance, max(0, distance - 1)}:
        found = index.search(rows[::7], within)
        pairs = list(zip(found.query.tolist(), found.id.tolist()))
        assert len(pairs) == len(set(pairs)) and pairs == sorted(pairs)
        assert set(pairs) == near(codes, queries, within)
        for (q, at), far in zip(pairs, found.distance.tolist()):
            assert bin(queries[q] ^ codes[at]).count("1") == far
    gone = list(range(0, len(codes), 2))
    assert index.remove(gone) == len(gone) and index.remove(gone) == 0
    assert len(index) == len(codes) - len(gone)
    found = index.search(rows[::7])
    assert set(zip(found.query.tolist(), found.id.tolist())) == {
        (q, at) for q, at in near(codes, queries, distance) if at % 2
    }
    with pytest.raises(la.SettingError):
        index.search(rows[:1], distance + 1)


def test_hamming_index_ids():
    index = la.HammingIndex(distance=3)
    index.add([1, 2], ids=[10, 11])
    with pytest.raises(la.SettingError, match="the index already has the id 11"):
        index.add([3, 4], ids=[12, 11])
    assert len(index) == 2
    with pytest.raises(la.SettingError, match="ids repeats 5: give each id once"):
        index.add([3, 4], ids=[5, 5])
    with pytest.raises(la.SettingError, match="2 codes and 1 id were given"):
        index.add([3, 4], ids=[5])
    index.remove(11)
    index.add([7], ids=[11])
    assert index.search([7], 0).id.tolist() == [11]
    for wrong in ([-1], [1.5], ["a"]):
        with pytest.raises((la.SettingError, ValueError)):
            index.add(np.array(wrong))
    with pytest.raises(la.SettingError, match="2 words of 64 bits"):
        index.add(np.zeros((1, 2), dtype=np.uint64))
    for distance, bits in ((17, 64), (64, 64), (3, 129)):
        with pytest.raises(la.LookalikeError):
            la.HammingIndex(distance=distance, bits=bits)


def test_masked_codes_are_skipped():
    codes = la.simhash(["the ferry leaves at seven", "", "the ferry leaves at seven"])
    index = la.HammingIndex()
    index.add(codes)
    assert len(index) == 2
    assert index.search(codes).query.tolist() == [0, 0, 2, 2]
    assert index.search(codes).id.tolist() == [0, 2, 0, 2]


def test_threads_share_an_index():
    index = la.HammingIndex(distance=2)
    codes = np.arange(8000, dtype=np.uint64) << np.uint64(20)

    def work(part):
        index.add(codes[part::4], ids=np.arange(8000, dtype=np.uint64)[part::4])
        index.search(codes[part::40])

    workers = [threading.Thread(target=work, args=(part,)) for part in range(4)]
    [worker.start() for worker in workers]
    [worker.join() for worker in workers]
    assert len(index) == 8000
    assert (index.search(codes, 0).id == np.arange(8000)).all()


def all_at_once(count, work):
    """Calls work(0), work(1), … in threads that start together; the errors it raised."""
    begin, errors = threading.Barrier(count), []

    def run(number):
        begin.wait()
        try:
            work(number)
        except Exception as error:
            errors.append(error)

    workers = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    [worker.start() for worker in workers]
    [worker.join() for worker in workers]
    return errors


def test_concurrent_adds_get_distinct_ids():
    codes = np.arange(4000, dtype=np.uint64) << np.uint64(20)
    index = la.HammingIndex(distance=0)

    def add(part):
        for start in range(0, 1000, 10):
            index.add(codes[part * 1000 + start :][:10])

    assert all_at_once(4, add) == []
    found = index.search(codes)
    assert sorted(found.id.tolist()) == list(range(4000)) and len(index) == 4000
    signatures = np.random.default_rng(1).integers(0, 2**32, (400, 128), dtype=np.uint32)
    bands = la.LshIndex(threshold=0.8)
    assert all_at_once(4, lambda part: [bands.add(row) for row in signatures[part * 100 :][:100]]) == []
    found = bands.search(signatures, least=1.0)
    assert sorted(found.id.tolist()) == list(range(400)) and found.query.tolist() == list(range(400))


def test_one_of_concurrent_adds_of_an_id_wins():
    for index, rows in (
        (la.HammingIndex(), np.zeros(1, dtype=np.uint64)),
        (la.LshIndex(), np.zeros((1, 128), dtype=np.uint32)),
    ):
        for number in range(100):
            errors = all_at_once(2, lambda _: index.add(rows, ids=[number]))
            assert [type(error) for error in errors] == [la.SettingError]
        assert len(index) == 100
        removed = []
        for number in range(100):
            all_at_once(2, lambda _: removed.append(index.remove([number])))
        assert sum(removed) == 100 and len(index) == 0 and len(index.search(rows).id) == 0


class Stop(Exception):
    pass


def stopped(seconds, work):
    """Seconds until a signal, given after some, ends a call."""

    def stop(*_):
        raise Stop

    before = signal.signal(signal.SIGALRM, stop)
    begun = time.monotonic()
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        with pytest.raises(Stop):
            work()
        return time.monotonic() - begun
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_interrupt_ends_a_search():
    """Of work that goes on for minutes."""
    codes = np.random.default_rng(2).integers(0, 2**63, 200_000, dtype=np.uint64)
    index = la.HammingIndex(distance=16)
    index.add(codes)
    assert stopped(0.2, lambda: index.search(codes)) < 10
    bands = la.LshIndex()
    alike = np.zeros((5000, 128), dtype=np.uint32)
    bands.add(alike)
    # They share all bands but the last one with all signatures, and none has all slots of another.
    nearly = alike.copy()
    nearly[:, -1] = 1
    assert stopped(0.2, lambda: bands.search(nearly, least=1)) < 10


@pytest.mark.parametrize("bits", [64, 128])
def test_interrupted_add_of_codes_adds_none(bits):
    codes = np.random.default_rng(3).integers(0, 2**63, (3_000_000, bits // 64), dtype=np.uint64)
    index = la.HammingIndex(distance=3, bits=bits)
    index.add(codes[:10], ids=range(7_000_000, 7_000_010))
    ids = np.arange(3_000_000, dtype=np.uint64)
    stopped(0.1, lambda: index.add(codes, ids=ids))
    assert len(index) == 10 and 0 not in index and 7_000_009 in index
    found = index.search(codes[:20])
    assert found.id.tolist() == list(range(7_000_000, 7_000_010))
    index.add(codes[:20], ids=range(20))
    assert sorted(index.search(codes[19:20]).id.tolist()) == [19]


def test_interrupted_add_of_signatures_adds_none():
    signatures = np.random.default_rng(3).integers(0, 2**32, (200_000, 128), dtype=np.uint32)
    signatures[:, :6] = 1
    index = la.LshIndex()
    index.add(signatures[:10], ids=range(7_000_000, 7_000_010))
    ids = np.arange(200_000, dtype=np.uint64)
    stopped(0.1, lambda: index.add(signatures, ids=ids))
    assert len(index) == 10 and 0 not in index and 7_000_009 in index
    assert set(index.search(signatures[:20]).id.tolist()) == set(range(7_000_000, 7_000_010))
    index.add(signatures[:20], ids=range(20))
    assert index.search(signatures[19:20], least=1).id.tolist() == [19]


def test_one_repeated_id_refuses_all():
    """Also where there are more than are added at a time."""
    for index, rows in (
        (la.HammingIndex(), np.zeros(1000, dtype=np.uint64)),
        (la.LshIndex(), np.zeros((1000, 128), dtype=np.uint32)),
    ):
        index.add(rows[:1], ids=[999])
        for ids in (range(1000), [*range(998), 0, 998]):
            with pytest.raises(la.SettingError, match="the index already has the id 999|ids repeats 0: give each id once"):
                index.add(rows, ids=ids)
        assert len(index) == 1 and 0 not in index
    codes = np.zeros(1000, dtype=np.uint64)
    codes[999] = 1 << 20
    index = la.HammingIndex(bits=16)
    with pytest.raises(la.SettingError, match="more than 16 bits"):
        index.add(codes)
    assert len(index) == 0 and len(index.search([0]).id) == 0


def test_lsh_index_finds_what_shares_a_band():
    source = random.Random(5)
    texts = []
    for number in range(300):
        words = [f"w{source.randrange(500)}" for _ in range(120)]
        if number % 3:
            words = texts[-1].split()
            words[source.randrange(len(words))] = "changed"
        texts.append(" ".join(words))
    signatures = la.minhash(texts)
    index = la.LshIndex(threshold=0.8)
    assert (index.bands, index.rows) == (21, 6)
    index.add(signatures)
    found = index.search(signatures, least=0.5)
    bands = signatures[:, :126].reshape(len(texts), 21, 6)
    expected = {}
    for q in range(len(texts)):
        shares = (signatures == signatures[q]).mean(axis=1)
        candidates = (bands == bands[q]).all(axis=2).any(axis=1)
        expected.update({(q, int(at)): shares[at] for at in np.flatnonzero(candidates & (shares >= 0.5))})
    pairs = zip(found.query.tolist(), found.id.tolist())
    assert dict(zip(pairs, found.similarity.tolist())) == expected and len(expected) > 500
    assert index.remove([0, 1, 999]) == 2 and len(index) == 298
    assert not {0, 1} & set(index.search(signatures).id.tolist())
    with pytest.raises(la.SettingError, match="64 slots where the index has 128"):
        index.add(signatures[:, :64])
    with pytest.raises(la.SettingError, match="30 bands of 5 rows do not fit 128 slots"):
        la.LshIndex(params=(30, 5))


def test_empty_input_can_be_added_and_searched():
    wide = la.HammingIndex(bits=128)
    signatures = la.LshIndex()
    for index in (wide, signatures):
        index.add([])
        assert len(index) == 0 and index.search([]).id.tolist() == []


@pytest.mark.parametrize("least", [None, float("nan"), -0.1, 2, 1.01])
def test_invalid_least_share_is_refused(least):
    with pytest.raises(la.SettingError, match="least is .*: give a share from 0 to 1"):
        la.LshIndex().search(la.minhash(["the ferry leaves at seven"]), least=least)


def test_empty_minhash_index_is_true():
    assert MinHashLSH() and len(MinHashLSH()) == 0


def test_removal_keeps_the_other_signatures():
    source = np.random.default_rng(7)
    signatures = source.integers(0, 2**32, (6000, 128), dtype=np.uint32)
    index = la.LshIndex(threshold=0.8)
    index.add(signatures)
    gone = np.arange(6000)[np.arange(6000) % 5 != 0]
    assert index.remove(gone) == 4800
    found = index.search(signatures)
    assert found.id.tolist() == found.query.tolist() == list(range(0, 6000, 5))
    index.add(signatures[gone[:10]], ids=gone[:10])
    found = index.search(signatures[:20])
    assert found.id.tolist() == found.query.tolist() == [*range(13), 15]


def test_matches_are_true_where_there_are_some_and_count_them():
    index, bands = la.HammingIndex(distance=0), la.LshIndex()
    signatures = la.minhash(["the ferry leaves at seven", "a bridge over the river"])
    index.add([5, 5], ids=[1, 2])
    bands.add(signatures[:1])
    for found, missed in ((index.search([5]), index.search([6])), (bands.search(signatures[:1]), bands.search(signatures[1:]))):
        assert found and len(found) == len(found.id) > 0
        assert not missed and len(missed) == 0
        assert found != missed and found == found and len({found, missed}) == 2
        assert found.to_pandas().columns.tolist() == list(found.to_polars().columns)
        with pytest.raises(AttributeError):
            found.id = missed.id
