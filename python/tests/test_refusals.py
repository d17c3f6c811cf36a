"""Refusals of wrong arguments: their class, and what they say helps."""

import errno
import pathlib
import pickle
from datetime import datetime, timezone

import numpy as np
import pandas as pd
import polars as pl
import pytest

import lookalike as la
import lookalike.pandas
import lookalike.polars
from lookalike.errors import ArgumentTypeError, MissingFileError, MissingRecipeError, RecipeError

TEXTS = ["the ferry leaves at seven", "a bridge over the river", "THE FERRY leaves at seven!"]
CODES = np.arange(3, dtype=np.uint64)


def refusal(call):
    """Returns the class and the message of an error."""
    try:
        call()
    except Exception as error:
        return type(error), str(error)
    raise AssertionError("nothing was refused")


@pytest.mark.parametrize(
    "call",
    [
        lambda: la.dedup(TEXTS, threshold="0.8"),
        lambda: la.dedup(TEXTS, threads=2.0),
        lambda: la.dedup(TEXTS, strict=1),
        lambda: la.dedup(TEXTS, text=5),
        lambda: la.dedup(TEXTS, id=True),
        lambda: la.dedup(TEXTS, keep=False),
        lambda: la.dedup(TEXTS, window=[]),
        lambda: la.dedup(TEXTS, recipe=5),
        lambda: la.dedup(5),
        lambda: la.dedup(None),
        lambda: la.compare("a", None),
        lambda: la.passages("a text", 5),
        lambda: la.Stream().insert(3),
        lambda: la.Stream().insert("a", 1.5),
        lambda: la.Stream().insert("a", time="noon"),
        lambda: la.HammingIndex(bits="64"),
        lambda: la.HammingIndex().add([1.5]),
        lambda: la.Client("http://a", timeout="x"),
        lambda: la.Client("http://a").collection(3),
    ],
)
def test_a_wrong_type_is_a_type_error(call):
    kind, _ = refusal(call)
    assert kind is ArgumentTypeError
    assert issubclass(kind, (TypeError)) and issubclass(kind, la.SettingError) and issubclass(kind, la.InputError)


def test_a_wrong_value_is_no_type_error():
    for call in (lambda: la.dedup(TEXTS, threshold=2), lambda: la.dedup(TEXTS, threads=0), lambda: la.dedup(TEXTS, text=[])):
        assert refusal(call)[0] is la.SettingError


@pytest.mark.parametrize(
    "call",
    [
        la.LshIndex.open,
        la.HammingIndex.open,
        la.Index,
        la.Stream.open,
        la.Idf.load,
        lambda path: la.Recipe(path),
        lambda path: la.dedup(pathlib.Path(path)),
        lambda path: la.dedup(source=path),
        lambda path: la.dedup(TEXTS, forms=path),
        lambda path: la.decontaminate(TEXTS, path),
    ],
)
def test_a_missing_file_is_an_os_error(call, tmp_path):
    path = str(tmp_path / "nowhere.toml")
    with pytest.raises(FileNotFoundError) as missing:
        call(path)
    error = missing.value
    assert isinstance(error, MissingFileError) and isinstance(error, la.InputError)
    assert error.errno == errno.ENOENT and error.filename == path and path in str(error)
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error) and again.filename == path and type(again) is type(error)


def test_a_missing_recipe_is_a_recipe_error_too():
    assert issubclass(MissingRecipeError, RecipeError)
    assert refusal(lambda: la.Recipe("nowhere.toml"))[0] is MissingRecipeError


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: la.dedup(TEXTS, 0.8), "but 2 were given: perhaps threshold=0.8 is meant"),
        (lambda: la.pairs(TEXTS, "text"), "but 2 were given: perhaps text='text' is meant"),
        (lambda: la.simhash(TEXTS, 4), "but 2 were given: give the further ones by their names"),
        (lambda: la.dedup(TEXTS, n_jobs=2), "'n_jobs': use threads"),
        (lambda: la.dedup(TEXTS, column="text"), "'column': use text"),
        (lambda: la.minhash(TEXTS, num_perm=64), 'minhash() got an unexpected keyword argument \'num_perm\': the recipe has'),
        (lambda: la.LshIndex(num_perm=128), 'for example recipe={"minhash": {"slots": 64}}'),
        (lambda: la.simhash(TEXTS, recip="default"), "perhaps recipe is meant"),
        (lambda: la.passages(TEXTS, minlength=3), "perhaps min_length is meant"),
        (lambda: la.segment(TEXTS, weigths=True), "perhaps weights is meant"),
        (lambda: la.compare("a", "b", treshold=0.8), "perhaps threshold is meant"),
        (lambda: la.evaluate([], recip="default"), "perhaps recipe is meant"),
        (lambda: la.tune([], gaol="f1"), "perhaps goal is meant"),
        (lambda: la.HammingIndex(dist=3), "HammingIndex() got an unexpected keyword argument 'dist': perhaps distance is meant"),
        (lambda: la.Idf.learn(TEXTS, thread=2), "perhaps threads is meant"),
        (la.Idf, "an Idf is made by Idf.learn, or read by Idf.load"),
    ],
)
def test_arguments_of_a_call_are_suggested(call, said):
    kind, message = refusal(call)
    assert kind is TypeError and said in message


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: la.dedup(TEXTS, keep=False), "keep is False: give first, last, longest, max:FIELD or min:FIELD"),
        (lambda: la.dedup(TEXTS, copies=True), 'copies is True: give the name of the added field, such as "copies"'),
        (lambda: la.dedup(TEXTS, weight=True), 'weight is True: give the name of the added field, such as "weight"'),
        (lambda: la.dedup(TEXTS, forms="of"), "forms is 'of', and there is no such file: give \"learn\", \"off\" or the path"),
        (lambda: la.dedup(TEXTS, weight="w", weight_by="cube"), "weight_by is 'cube', and there is no such file: give \"log\", \"sqrt\""),
        (lambda: la.HammingIndex(distance=17), "distance is 17: give a whole number from 0 to 16; numpy.bitwise_count"),
        (lambda: la.LshIndex().search(la.minhash(TEXTS), least=2), "least is 2: give a share from 0 to 1"),
        (lambda: la.passages(TEXTS, "text"), "for a table text names its column, and against=[…] takes the other documents"),
        (lambda: la.tune(TEXTS), "or a list of dictionaries, with the columns `a`, `b`, `label`"),
        (lambda: la.Stream().insert("a text", True), "id is True: give a string, for example with str(id)"),
        (lambda: la.Stream().insert("a text", time=pd.NaT), "time is NaT: give seconds since 1970, a datetime, or None"),
        (lambda: la.Stream().insert("a text", time=np.datetime64("NaT")), "give seconds since 1970, a datetime, or None"),
        (lambda: la.Stream().insert_many([{"text": "a", "id": True}]), "documents[0]: id is True: give a string"),
        (lambda: la.Client("http://a", timeout=-1), "timeout is -1: give seconds above 0"),
        (lambda: la.Client("http://a").collection(""), "name is '': give the name of a collection"),
    ],
)
def test_refusals_say_what_to_give(call, said):
    kind, message = refusal(call)
    assert issubclass(kind, la.LookalikeError) and said in message


def test_columns_of_numbers_have_their_type_as_other_packages_write_it():
    for call in (la.dedup, la.pairs, la.passages, la.segment):
        for data in ({"text": [1, 2]}, pd.DataFrame({"text": [1, 2]}), pl.DataFrame({"text": [1, 2]})):
            kind, message = refusal(lambda: call(data))
            assert kind is la.InputError
            assert "is of the type int64, which cannot be used as text: convert it to strings, for example with `.astype(str)`" in message


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"n_gram": 3}, "default with n_gram=3: `n_gram`: a recipe has no such field: perhaps `ngram` is meant"),
        ({"simhash": {"bit": 64}}, "`simhash.bit`: a recipe has no such field: perhaps `bits` is meant, of `bits`, `weights`"),
        ({"zebra": 1}, "`zebra`: a recipe has no such field: give one of `name`, `version`"),
        ({"ngram": "3"}, "ngram is '3': give a whole number from 1 to 32"),
        ({"tokens": "wrds"}, "tokens is 'wrds': perhaps `words` is meant, of `words`, `characters`"),
    ],
)
def test_fields_of_a_recipe_are_refused_without_a_line_of_toml(changes, said):
    for call in (lambda: la.Recipe(**changes), lambda: la.dedup(TEXTS, recipe=changes)):
        kind, message = refusal(call)
        assert kind is RecipeError and said in message and "line" not in message
    if "n_gram" in changes:
        assert "`n_gram = 3`, line 1" in refusal(lambda: la.Recipe("n_gram = 3\n"))[1]


def test_ids_of_indexes_are_refused_with_their_origin():
    for make, rows in ((la.HammingIndex, CODES), (la.LshIndex, la.minhash(TEXTS))):
        index = make()
        index.add(rows[:1], ids=[0])
        kind, message = refusal(lambda: index.add(rows[1:2]))
        assert kind is la.SettingError and "the index already has the id 0" in message
        assert message.endswith("ids that are not given count from 0: give ids")
        assert refusal(lambda: index.add(rows[:2], ids=[7, 7])) == (la.SettingError, "ids repeats 7: give each id once")
        assert "give ids" not in refusal(lambda: index.add(rows[1:2], ids=[0]))[1]
        assert len(index) == 1


def test_an_index_names_its_calls_and_removes_a_single_id(tmp_path):
    (tmp_path / "other").mkdir()
    for open_index in (la.Index, la.HammingIndex.open):
        for path in (tmp_path / "nowhere", tmp_path / "other"):
            assert "build one with `la.Index.build`" in refusal(lambda: open_index(path))[1]
    index = la.Index.build(tmp_path / "lib", TEXTS)
    assert index.remove(2)["removed"] == 1 and index.remove("1")["removed"] == 1 and index.remove([3])["removed"] == 1
    assert refusal(lambda: index.remove(2.5)) == (ArgumentTypeError, "ids is 2.5: give an id, or a list of ids")


def test_names_are_suggested():
    with pytest.raises(KeyError, match="there is no preset 'finewebb': give fineweb, nemo"):
        la.presets["finewebb"]
    assert "finewebb" not in la.presets and la.presets.get("finewebb") is None
    with pytest.raises(AttributeError, match="no attribute 'deduplicate': perhaps dedup is meant"):
        la.deduplicate
    assert not hasattr(la, "zebra")


def test_numbers_and_times_of_numpy_are_accepted():
    assert la.dedup(TEXTS, strict=np.bool_(True), components=np.bool_(False)).kept == TEXTS[:2]
    instant = datetime(2024, 5, 1, 12, tzinfo=timezone.utc)
    stream = la.Stream(window="1d")
    stream.insert(TEXTS[0], "a", time=instant)
    later = np.datetime64("2024-05-02T11:59:59.5")
    assert stream.query(TEXTS[2], time=later).verdict == "duplicate"
    assert stream.query(TEXTS[2], time=later + np.timedelta64(1, "s")).verdict == "kept"


def test_fingerprints_of_a_column_belong_to_its_rows():
    texts = [TEXTS[0], None, TEXTS[1]]
    expected = la.simhash(texts)
    series = pd.Series(texts, index=[7, 8, 9])
    frame = pd.DataFrame({"text": texts}, index=[7, 8, 9])
    for column in (series.lookalike.simhash(), frame.lookalike.simhash()):
        assert column.index.tolist() == [7, 8, 9] and str(column.dtype) == "UInt64"
        assert column.isna().tolist() == [False, True, False]
        assert column.tolist()[::2] == [int(expected[0]), int(expected[2])]
    assert str(series[:1].lookalike.simhash().dtype) == "UInt64"
    frame = pl.DataFrame({"text": texts})
    for column in (frame["text"].lookalike.simhash(), frame.lookalike.simhash(), frame.lazy().lookalike.simhash()):
        assert column.dtype == pl.UInt64 and column.to_list() == [int(expected[0]), None, int(expected[2])]
    assert series.lookalike.simhash(recipe={"simhash": {"bits": 128}}).shape == (3, 2)


def test_a_client_shows_no_password():
    for url in ("http://user:SECRET@host", ["http://a", "https://SECRET@host"], "ftp://user:SECRET@host"):
        kind, message = refusal(lambda: la.Client(url))
        assert kind is la.SettingError and "SECRET" not in message and "host" in message
    client = la.Client("http://host", key="SECRET")
    assert "SECRET" not in repr(client) and pickle.loads(pickle.dumps(client))._key == "SECRET"


def test_calls_on_many_machines_suggest_arguments():
    import lookalike.ray
    import lookalike.spark

    for call in (lookalike.spark.pairs, lookalike.ray.pairs, lookalike.spark.dedup):
        kind, message = refusal(lambda: call(None, "text", treshold=0.8))
        assert kind is la.SettingError and "has no argument treshold: perhaps threshold is meant" in message
    for call in (lookalike.spark.passages, lookalike.spark.repeated_passages):
        kind, message = refusal(lambda: call(None, minlength=8))
        assert kind is TypeError and "'minlength': perhaps min_length is meant" in message
