"""The classes of rensa: its values, as rensa 0.5 gave them, and its calls."""

import importlib.metadata
import pickle
import random
import struct
import zlib

import numpy as np
import pytest

from lookalike.compat import rensa as compat
from lookalike.compat.rensa import CMinHash, CMinHashDeduplicator, RMinHash, RMinHashDeduplicator, RMinHashLSH

#: Tokens around the borders of the hash: nothing, 1 to 3, 4 to 7, 8 to 16 and more bytes.
TOKENS = ["the", "ferry", "leaves", "at", "seven", "", "é", "渡", "a token of more than sixteen bytes"]
TOKENS += ["0123456789abcdef", "12345678", "1234567"]

#: The values of rensa 0.5.0; the checksums are those of `struct.pack`.
DIGESTS = [
    (RMinHash, 4, 42, TOKENS, [74671487, 1054064710, 172998459, 276358304]),
    (
        RMinHash,
        7,
        0,
        TOKENS[:2],
        [4087338536, 3899166166, 3307592329, 2813015937, 3843768582, 577357405, 852127849],
    ),
    (RMinHash, 128, 42, TOKENS, 1678884296),
    (RMinHash, 128, 7, [f"t{number}" for number in range(2000)], 3771796418),
    (RMinHash, 100, 2**64 - 1, TOKENS, 3235708520),
    (
        CMinHash,
        4,
        42,
        TOKENS,
        [508569921420696307, 122012111012892223, 445216598405877582, 466677486606777714],
    ),
    (CMinHash, 128, 42, TOKENS, 2621771579),
    (CMinHash, 128, 7, [f"t{number}" for number in range(2000)], 2005118521),
    (CMinHash, 100, 2**64 - 1, TOKENS, 1442314779),
]
HASHES = [1661244765357602455, 1130151289413793158, 4523577637673327796, 14458155050928150804, 1431754454917208280]
HASHES += [17606491139363777937, 7558599288532377287, 12180031959595199512, 185606790692319311]
HASHES += [16934938474888281339, 382863626933001122, 6741296348156276188]


@pytest.mark.parametrize(("kind", "slots", "seed", "tokens", "expected"), DIGESTS)
def test_values_of_rensa(kind, slots, seed, tokens, expected):
    minhash = kind(slots, seed)
    minhash.update(tokens)
    digest = minhash.digest() if kind is RMinHash else minhash.digest_u64()
    form = "I" if kind is RMinHash else "Q"
    assert (digest if isinstance(expected, list) else zlib.crc32(struct.pack(f"<{slots}{form}", *digest))) == expected
    # They depend neither on how tokens are divided into updates, nor on their order or number.
    parts = kind(slots, seed)
    for start in range(0, len(tokens), 5):
        parts.update(tokens[start : start + 5][::-1])
    parts.update(iter(tokens))
    assert parts.digest() == minhash.digest() and parts.jaccard(minhash) == 1
    assert kind.digests_from_token_sets([tokens], slots, seed) == [minhash.digest()]
    assert pickle.loads(pickle.dumps(minhash)).digest() == minhash.digest()


def test_tokens_of_every_kind():
    assert RMinHash.hash_token_sets([TOKENS, []]) == [HASHES, []]
    encoded = [token.encode() for token in TOKENS]
    for tokens in (encoded, tuple(TOKENS), map(bytearray, encoded), map(memoryview, encoded)):
        assert RMinHash.hash_token_sets([tokens]) == [HASHES]
    # Bytes are one token, a string is its characters.
    assert RMinHash.hash_token_sets([b"ferry"]) == [HASHES[1:2]]
    assert RMinHash.hash_token_sets(["ab"]) == RMinHash.hash_token_sets([["a", "b"]])
    assert CMinHash.digests64_from_token_hash_sets([HASHES], 4, 42) == [DIGESTS[5][4]]
    assert CMinHash.digests64_from_token_sets([TOKENS], 4, 42) == [DIGESTS[5][4]]
    for bad in ([1], [None], [["a"]]):
        with pytest.raises(TypeError, match="each item must be a string or bytes"):
            RMinHash(4, 1).update(bad)
    with pytest.raises(TypeError, match="a buffer with gaps: give it C-contiguous"):
        RMinHash(4, 1).update([memoryview(b"abcd")[::2]])


def test_refusals_name_the_values():
    with pytest.raises(ValueError, match="num_perm must be greater than 0"):
        RMinHash(0, 42)
    with pytest.raises(ValueError, match="num_perm mismatch: left is 4, right is 8"):
        CMinHash(4, 42).jaccard(CMinHash(8, 42))
    with pytest.raises(ValueError, match="seed mismatch: left is 1, right is 2"):
        RMinHash(4, 1).jaccard(RMinHash(4, 2))
    for threshold, slots, bands in ((1.1, 128, 16), (0.8, 0, 16), (0.8, 128, 0), (0.8, 128, 100)):
        with pytest.raises(ValueError):
            RMinHashLSH(threshold, slots, bands)
    with pytest.raises(ValueError, match="has 64 permutations but LSH expects 128"):
        RMinHashLSH(0.8, 128, 16).insert(1, RMinHash(64, 42))
    with pytest.raises(ValueError, match="seed mismatch"):
        RMinHashDeduplicator(0.8, 64, use_lsh=True).add("a", RMinHash(64, 1))


def test_lsh_against_all_pairs():
    source = random.Random(5)
    sets = [[f"w{source.randrange(40)}" for _ in range(30)] for _ in range(60)]
    minhashes = RMinHash.from_token_sets(sets, 64, 42)
    lsh = RMinHashLSH(0.5, 64, 32)
    lsh.insert_many(minhashes, start_key=100)
    bands = np.array([one.digest() for one in minhashes]).reshape(60, 32, 2)
    shared = (bands[:, None] == bands[None]).all(axis=3).any(axis=2)
    expected = [[100 + int(at) for at in np.flatnonzero(row)] for row in shared]
    assert [sorted(found) for found in lsh.query_all(minhashes)] == expected
    assert 60 < sum(map(len, expected)) < 3600
    assert lsh.query_duplicate_flags(minhashes) == [len(row) > 1 for row in expected]
    opened = pickle.loads(pickle.dumps(lsh))
    assert opened.query_all(minhashes) == lsh.query_all(minhashes) and opened.get_num_bands() == 32
    # A key has one signature: the latest.
    lsh.insert(100, minhashes[1])
    assert 100 in lsh.query(minhashes[1]) and len(lsh) == 60
    assert lsh.remove(100) and not lsh.remove(100) and 100 not in lsh.query(minhashes[1])
    assert lsh.is_similar(minhashes[1], minhashes[1]) and lsh.get_num_perm() == 64


@pytest.mark.parametrize(
    "kept", [RMinHashDeduplicator(0.8, 128, use_lsh=lsh) for lsh in (True, False)] + [CMinHashDeduplicator(0.8, 128)]
)
def test_deduplicators(kept):
    sets = {"a": ["the", "ferry", "leaves"], "b": ["the", "ferry", "leaves"], "c": ["a", "bridge"]}
    assert kept.add_pairs(sets.items()) == [True, False, True] and kept.len() == 2
    assert kept.is_duplicate_pairs([("x", sets["a"]), ("c", ["new"]), ("y", ["new"])]) == [True, True, False]
    assert kept.get_duplicate_sets(sets.values()) == [["a"], ["a"], ["c"]]
    assert kept.remove("a") and not kept.remove("a") and kept.get_duplicates(sets["b"]) == []
    assert kept.add("b", sets["b"]) and not kept.is_empty()
    with pytest.raises(TypeError, match="the key is 1: give a string"):
        kept.add_pairs([(1, sets["a"])])
    # A known key is no reason to take a MinHash that does not compare.
    other = (CMinHash if isinstance(kept, CMinHashDeduplicator) else RMinHash)(64, 42)
    with pytest.raises(ValueError, match="num_perm mismatch: deduplicator expects 128, received 64"):
        kept.is_duplicate("b", other)
    kept.clear()
    assert kept.is_empty() and kept.add("a", sets["a"])


def test_deduplicators_take_the_slots_of_the_first_minhash():
    kept = CMinHashDeduplicator(0.8)
    with pytest.raises(ValueError, match="num_perm is not configured"):
        kept.add("a", ["the"])
    for slots, empty in ((64, kept.clear), (32, lambda: kept.remove("a")), (16, kept.clear)):
        assert kept.add("a", CMinHash(slots, 42)) and kept.add("b", ["ferry"])
        with pytest.raises(ValueError, match=f"num_perm mismatch: deduplicator expects {slots}"):
            kept.add("c", CMinHash(128, 42))
        kept.remove("b")
        empty()


def test_matrices_have_the_digests_of_their_rows():
    sets = [TOKENS, TOKENS[:2], [], TOKENS[::-1]]
    digests = RMinHash.digests_from_token_sets(sets, 64, 42)
    hashes = RMinHash.hash_token_sets(sets)
    flat = np.array([one for row in hashes for one in row], np.uint64)
    offsets = np.cumsum([0, *map(len, hashes)])
    encoded = [[token.encode() for token in tokens] for tokens in sets]
    matrices = [
        RMinHash.digest_matrix_from_token_sets(sets, 64, 42),
        RMinHash.digest_matrix_from_token_byte_sets(encoded, 64, 42),
        RMinHash.digest_matrix_from_token_hash_sets(hashes, 64, 42),
        RMinHash.digest_matrix_from_token_hash_sets([np.array(row, np.uint64) for row in hashes], 64, 42),
        RMinHash.digest_matrix_from_flat_token_hashes(flat, offsets.astype(np.uint32), 64, 42),
        RMinHash.digest_matrix_from_flat_token_hashes(flat.tolist(), offsets.tolist(), 64, 42),
    ]
    for matrix in matrices:
        assert matrix.to_rows() == digests and matrix.len() == len(matrix) == 4 and matrix.get_num_perm() == 64
        assert np.asarray(matrix).dtype == np.uint32
        assert matrix.get_rho_source_token_counts() is None
    assert RMinHash.digest_matrix_from_token_sets([], 64, 42).to_rows() == []


def test_matrices_refuse_what_is_not_theirs():
    kind = RMinHash
    with pytest.raises(TypeError, match="unsigned 64-bit integer: one is 'ok'"):
        kind.digest_matrix_from_token_hash_sets([["ok"]], 16, 42)
    with pytest.raises(TypeError, match="unsigned 64-bit integer: one is -1"):
        kind.digest_matrix_from_flat_token_hashes([-1], [0, 1], 16, 42)
    with pytest.raises(TypeError, match="the buffer has the type >u8"):
        kind.digest_matrix_from_token_hash_sets([np.array([1], ">u8")], 16, 42)
    with pytest.raises(TypeError, match="a token is a string: give bytes"):
        kind.digest_matrix_from_token_byte_sets([["ok"]], 16, 42)
    for offsets in ([], [1, 2], [0, 3, 2], [0, 1]):
        with pytest.raises(ValueError, match="row_offsets must start at 0, must not decrease, and end at 2"):
            kind.digest_matrix_from_flat_token_hashes([1, 2], offsets, 16, 42)
    for offsets in ([0.0, 2.0], memoryview(np.array([0, 1, 2, 3], np.uint64))[::2], np.array([0, 2])):
        with pytest.raises(ValueError, match="row_offsets must be an unsigned integer buffer"):
            kind.digest_matrix_from_flat_token_hashes([1, 2], offsets, 16, 42)
    for call in ("token_sets", "token_hash_sets", "flat_token_hashes"):
        with pytest.raises(NotImplementedError, match=f"call digest_matrix_from_{call}, or la.dedup"):
            getattr(kind, f"digest_matrix_from_{call}_rho")([], num_perm=16, seed=42, probes=2)
    for made in (kind(16, 42), CMinHash(16, 42), RMinHashLSH(0.8, 16, 4)):
        with pytest.raises(ValueError, match="rebuild it from the tokens"):
            made.__setstate__(b"x")


def test_matrices_in_an_index():
    sets = [["a", "b"], ["x"], ["a", "b"], ["y"]]
    matrix = RMinHash.digest_matrix_from_token_sets(sets, 16, 42)
    minhashes = RMinHash.from_token_sets(sets, 16, 42)
    lsh, other = RMinHashLSH(0.8, 16, 4), RMinHashLSH(0.8, 16, 4)
    lsh.insert_matrix(matrix, start_key=7)
    other.insert_many(minhashes, start_key=7)
    assert lsh.query_all(minhashes) == other.query_all(minhashes)
    assert lsh.query_duplicate_flags_matrix(matrix) == [True, False, True, False]
    # A key that was there counts until a row replaces it.
    lsh = RMinHashLSH(0.8, 16, 4)
    assert lsh.query_duplicate_flags_matrix_one_shot(matrix) == [True, False, True, False]
    lsh.insert(11, minhashes[1])
    assert lsh.query_duplicate_flags_matrix_one_shot(matrix) == [True, True, True, False] and len(lsh) == 1
    assert lsh.insert_matrix_and_query_duplicate_flags(matrix, start_key=7) == [True, True, True, False]
    assert lsh.insert_matrix_and_query_duplicate_flags(matrix, start_key=10) == [True, True, True, False]
    with pytest.raises(ValueError, match=f"above the maximum key {2**64 - 1}"):
        lsh.insert_matrix(matrix, start_key=2**64 - 3)
    lsh.insert_matrix(RMinHash.digest_matrix_from_token_sets([["z"]], 16, 42), start_key=2**64 - 1)
    with pytest.raises(TypeError, match="give an RMinHashDigestMatrix"):
        lsh.query_duplicate_flags_matrix(minhashes)


def test_values_beside_rensa():
    rensa = pytest.importorskip("rensa")
    if importlib.metadata.version("rensa").split(".")[:2] != ["0", "5"]:
        pytest.skip("another rensa has other values")
    source = random.Random(3)
    for name in ("RMinHash", "CMinHash"):
        for slots, seed, count in ((1, 1, 3), (64, 9, 40), (100, 0, 1000), (256, 2**63, 20)):
            tokens = [source.randbytes(source.randrange(40)) for _ in range(count)]
            ours, theirs = getattr(compat, name)(slots, seed), getattr(rensa, name)(slots, seed)
            for start in range(0, count, 7):
                ours.update(tokens[start : start + 7])
                theirs.update(tokens[start : start + 7])
            assert ours.digest() == theirs.digest()
    for _ in range(50):
        sets = [[source.choice("abcdef") for _ in range(2)] for _ in range(6)]
        known = {source.randrange(12): [source.choice("abcdef")] for _ in range(3)}
        flags = []
        for package in (compat, rensa):
            lsh = package.RMinHashLSH(0.8, 16, 4)
            for key, tokens in known.items():
                lsh.insert(key, package.RMinHash.from_token_sets([tokens], 16, 42)[0])
            matrix = package.RMinHash.digest_matrix_from_token_sets(sets, 16, 42)
            alone = lsh.query_duplicate_flags_matrix_one_shot(matrix)
            flags.append((alone, lsh.insert_matrix_and_query_duplicate_flags(matrix, 4)))
        assert flags[0] == flags[1]
