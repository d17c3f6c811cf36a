"""Arguments of the wrong kind: refusals name the argument, its value and what to give."""

import pickle
from collections import OrderedDict

import numpy as np
import pyarrow as pa
import pytest

import lookalike as la
from lookalike.compat.datasketch import LeanMinHash, MinHash, MinHashLSH
from lookalike.compat.simhash import Simhash

TEXTS = ["one two three four", "one two three four!", "x y z w"]
PAIRS = [
    {"a": "one two", "b": "one two", "label": 1},
    {"a": "x y", "b": "z w", "label": 0},
]
TABLE = pa.table({"text": TEXTS, "id": ["a", "b", "c"], "at": [1, 2, 3]})


@pytest.mark.parametrize(
    "arguments,said",
    [
        ({"text": None}, "text is None: give the name of a field, or several"),
        ({"text": []}, "text is []: give the name"),
        ({"text": 3}, "text is 3: give the name"),
        ({"text": ["text", 3]}, "give the name of a field, or several"),
        ({"id": 3}, "id is 3: give the name of the field with the ids, or False"),
        ({"id": True}, "id is True"),
        ({"id": ""}, "data has no column `` among"),
        ({"threshold": "0.8"}, "threshold is '0.8': give a number"),
        ({"threshold": True}, "threshold is True: give a number"),
        ({"method": 3}, "method is 3: give a string"),
        ({"verify": False}, "verify is False: give a string"),
        ({"distance": -1, "method": "simhash"}, "distance is -1: give a whole number from 0"),
        ({"distance": 3.5, "method": "simhash"}, "distance is 3.5: give a whole number"),
        ({"sentences": -1, "method": "sentences"}, "sentences is -1: give a whole number"),
        ({"recipe": 3}, "the recipe is 3: give a name, a file, TOML or a dictionary"),
        ({"recipe": None}, "the recipe is None"),
        ({"keep": 3}, "keep is 3: give first, last, longest, max:FIELD or min:FIELD"),
        ({"within": 3}, "within is 3: give a string"),
        ({"window": [], "time": "at"}, 'window is []: give a text such as "2d"'),
        ({"window": True, "time": "at"}, "window is True"),
        ({"window": float("nan"), "time": "at"}, "window is NaN: give a number of seconds of at least 0"),
        ({"threads": -1}, "threads is -1: give a whole number from 1 to 1024"),
        ({"threads": 1.5}, "threads is 1.5"),
        ({"audit": 0}, "audit is 0: give a whole number from 1"),
        ({"audit": "x"}, "audit is 'x'"),
        ({"strict": 1}, "strict is 1: give True or False"),
        ({"components": "yes"}, "components is 'yes': give True or False"),
        ({"progress": 3}, "progress is 3: give True, False, or a function"),
        ({"features": 3}, "features is 3: give a string"),
        ({"method": "x" * 100}, "method is 'xxx"),
        ({"keep": ["first"] * 100}, "keep is of the type list: give first, last, longest, max:FIELD or min:FIELD"),
    ],
)
def test_dedup(arguments, said):
    with pytest.raises(la.LookalikeError) as raised:
        la.dedup(TABLE, **arguments)
    assert said in str(raised.value)


@pytest.mark.parametrize(
    "call,said",
    [
        (lambda: la.pairs(TABLE, all=1), "all is 1: give True or False"),
        (lambda: la.compare(None, "a"), "a is of the type NoneType: give a string"),
        (lambda: la.compare("a", b"b"), "b is of the type bytes: give a string"),
        (lambda: la.compare("a", "\ud800"), "b is not valid Unicode text"),
        (lambda: la.segment(TEXTS, id=True), "id is True"),
        (lambda: la.segment([None]), "data:1: the field `text` is null"),
        (lambda: la.simhash(TEXTS, threads=0), "threads is 0"),
        (lambda: la.minhash({}), "texts is of the type dict: give a table, or a list"),
        (lambda: la.dedup(set(TEXTS)), "data is of the type set"),
        (lambda: la.dedup([{"text": "a"}, "b"]), "data[1] is of the type str, not a dictionary"),
        (lambda: la.dedup([{"text": "a"}, {"text": 3}]), "the values of 'text' have different types"),
        (lambda: la.HammingIndex(distance=-1), "distance is -1"),
        (lambda: la.HammingIndex(bits="64"), "bits is '64'"),
        (lambda: la.HammingIndex().search([1], -1), "distance is -1"),
        (lambda: la.HammingIndex().add([1.5]), "codes contains 1.5: give whole numbers"),
        (lambda: la.HammingIndex().add(["1"]), "codes contains '1': give whole numbers"),
        (lambda: la.HammingIndex().add([2**64]), "codes contains 18446744073709551616"),
        (lambda: la.HammingIndex().add(None), "codes contains None"),
        (lambda: la.HammingIndex().add([1], ids=[True]), "ids contains True"),
        (lambda: la.HammingIndex().add(np.zeros((1, 1, 1), dtype=np.uint64)), "3 dimensions"),
        (lambda: la.HammingIndex(bits=16).search([1 << 20]), "the fingerprint 0x100000 has more than 16 bits"),
        (lambda: la.HammingIndex(bits=100).search([[0, 1 << 40]]), "has more than 100 bits"),
        (lambda: la.LshIndex(params=(1, 2, 3)), "params is (1, 2, 3): give the numbers of bands and of rows"),
        (lambda: la.LshIndex(params=(0, 1)), "the number of bands is 0"),
        (lambda: la.LshIndex(params=(2**31, 2**31)), "do not fit 128 slots"),
        (lambda: la.LshIndex().add(np.full((1, 128), 2**40)), "which has more than 32 bits"),
        (lambda: la.LshIndex().search(np.zeros((1, 128), dtype=np.uint32), least="x"), "least is 'x'"),
        (lambda: la.Recipe(3), "the recipe is 3"),
        (lambda: la.Recipe("default", ngram=None), "None is not a valid value in a recipe"),
        (lambda: la.Recipe("default", ngram="3"), 'default with ngram="3"'),
        (lambda: la.evaluate(PAIRS, recipe=[]), "recipe is []: give at least one value"),
        (lambda: la.evaluate(PAIRS, positive=1.5), "positive is 1.5 and negative None: give both"),
        (lambda: la.evaluate(PAIRS, resamples=-1), "resamples is -1"),
        (lambda: la.evaluate(PAIRS, lowest="x"), "lowest is 'x'"),
        (lambda: la.evaluate([]), "labelled is an empty list, or not all of its rows are dictionaries: give a table"),
        (lambda: la.tune(PAIRS, goal=3), "goal is 3"),
        (lambda: la.Idf.learn(TEXTS, min_documents=0), "min_documents is 0"),
        (lambda: la.Idf.learn(TEXTS, top=0), "top is 0"),
        (lambda: la.Idf.learn(TEXTS).merge(3), "3 is not a table of document frequencies"),
        (lambda: la.Idf.learn(TEXTS).merge(la.Idf.learn(TEXTS, recipe="default")), "whose terms differ from those of jieba"),
        (lambda: la.Idf.learn(TEXTS).save("/no/such/place.tsv"), "cannot write /no/such/place.tsv"),
        (lambda: la.Client("localhost"), "url is 'localhost': give a URL such as"),
        (lambda: MinHashLSH(num_perm=100_000), "bands are chosen only up to 4096: give params=(bands, rows)"),
        (lambda: MinHashLSH(num_perm=10**12, params=(10**9, 1)), "num_perm is 1000000000000"),
        (lambda: MinHashLSH(weights=0.5), "weights is 0.5"),
        (lambda: MinHashLSH(storage_config="redis"), "the storages are memory"),
        (lambda: LeanMinHash(MinHash()).bytesize("x"), "byteorder is 'x'"),
        (lambda: MinHash(hashvalues=[1.5], scheme="affine32"), "values contains 1.5"),
        (lambda: Simhash("a", f=0), "f must be a multiple of 8, got 0"),
    ],
)
def test_calls(call, said):
    with pytest.raises((la.LookalikeError, ValueError)) as raised:
        call()
    assert said in str(raised.value)


def test_numbers_of_any_library_are_numbers():
    expected = la.dedup(TEXTS, threshold=0.5).kept_rows.tolist()
    assert la.dedup(TEXTS, threshold=np.float32(0.5), threads=np.int64(1)).kept_rows.tolist() == expected
    assert la.Recipe("default", ngram=np.int32(3)).ngram == 3
    for codes in ([2**64 - 1, 1], np.array([2**64 - 1, 1], dtype=np.uint64), (2**64 - 1, 1)):
        index = la.HammingIndex(distance=0)
        index.add(codes)
        assert index.search(codes).id.tolist() == [0, 1]
        assert 1 in index and 2 not in index
    assert repr(index) == "<HammingIndex of 2 codes of 64 bits, distance 0>"


def test_rows_as_dictionaries():
    rows = [{"text": "a b c"}, {"id": "x", "text": "A B C"}, OrderedDict(text="d e f", more=1)]
    found = la.dedup(rows, id=False)
    assert found.kept == [rows[0], rows[2]]
    assert la.dedup(dict(row) for row in rows[::2]).kept == [rows[0], dict(rows[2])]
    assert la.dedup(rows).missing_ids == 2 and la.dedup(rows).kept == [rows[0], rows[2]]
    with pytest.raises(la.BadRowError, match="data:1: the field `id` is null"):
        la.dedup(rows, strict=True)


def test_one_pass_inputs_are_accepted():
    reader = la.dedup(TABLE.to_reader())
    assert reader.kept.to_pylist() == la.dedup(TABLE).kept.to_pylist()
    assert la.dedup(text for text in TEXTS).kept == [TEXTS[0], TEXTS[2]]
    polars = pytest.importorskip("polars")
    assert len(la.dedup(polars.DataFrame({"text": []})).kept) == 0

    class Once:
        def __arrow_c_stream__(self, requested_schema=None):
            return TABLE.__arrow_c_stream__(requested_schema)

    assert la.dedup(Once()).kept["id"].to_pylist() == ["a", "c"]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
def test_strings_without_utf8_are_refused(kind):
    binary = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary(), pa.string_view(): pa.binary_view()}
    texts = pa.array([b"a b c", None, b"a \xff b, longer than a view holds"], binary[kind]).view(kind)
    for table in (pa.table({"text": texts}), pa.table({"text": pa.chunked_array([texts[:2], texts[2:]])})):
        with pytest.raises(la.InputError, match="the string in row 3 of the column `text` is not UTF-8"):
            la.dedup(table)
    with pytest.raises(la.InputError, match=r"texts\[2\] is not UTF-8"):
        la.simhash(texts)
    assert la.dedup(pa.table({"text": texts[:2]})).kept_rows.tolist() == [0]
    lists = pa.ListArray.from_arrays([0, 1, 3], texts)
    with pytest.raises(la.InputError, match="the string in row 2 of the column `words` is not UTF-8"):
        la.dedup(pa.table({"words": lists}), features="words")
    # The lists of a view may stand in any order. A list that is null is not read.
    for first, row in ((2, 1), (0, 2)):
        starts, sizes = pa.array([first, 2 - first, 0], pa.int32()), pa.array([1, 1, 1], pa.int32())
        views = pa.ListViewArray.from_arrays(starts, sizes, texts)
        with pytest.raises(la.InputError, match=f"the string in row {row} of the column `words` is not UTF-8"):
            la.dedup(pa.table({"words": views}), features="words")
    masked = pa.ListViewArray.from_arrays(starts, sizes, texts, mask=pa.array([False, True, False]))
    assert la.dedup(pa.table({"words": masked}), features="words").kept_rows.tolist() == [0]


def test_errors_are_pickled():
    with pytest.raises(la.SettingError) as raised:
        la.dedup(TEXTS, threads=0)
    again = pickle.loads(pickle.dumps(raised.value))
    assert type(again) is la.SettingError and str(again) == str(raised.value)
