"""Data sets of Hugging Face, in memory and streamed, beside the same rows in a table."""

import tracemalloc

import lookalike as la
import pytest
from made import made_documents, write_jsonl

datasets = pytest.importorskip("datasets", reason="datasets is not installed: python/requirements-test.txt names it")

import lookalike.datasets  # noqa: E402

SETTINGS = [{}, {"keep": "max:score", "within": "source"}, {"copies": "n", "sources": "source", "weight": "w"}]


@pytest.fixture(scope="module")
def rows():
    return made_documents(1200)


@pytest.mark.parametrize("settings", SETTINGS)
def test_streams_have_the_verdicts_of_tables(rows, settings):
    table = datasets.Dataset.from_list(rows)
    expected = la.dedup(rows, **settings)
    for data in (table, table.to_iterable_dataset(num_shards=5), datasets.IterableDataset.from_generator(lambda: iter(rows))):
        result = lookalike.datasets.dedup(data, **settings)
        assert type(result.kept) is type(data)
        # The second one is another epoch.
        assert list(result.kept) == list(result.kept) == expected.kept
        assert result.removed.select(["id", "kept", "similarity"]) == expected.removed.select(["id", "kept", "similarity"])
        assert result.summary["removed"] == expected.summary["removed"] > 100


def test_files_are_streamed(rows, tmp_path):
    for part in range(3):
        write_jsonl(tmp_path / f"{part}.jsonl", rows[part * 400 : part * 400 + 400])
    files = [str(tmp_path / f"{part}.jsonl") for part in range(3)]
    stream = datasets.load_dataset("json", data_files=files, split="train", streaming=True, cache_dir=str(tmp_path / "cache"))
    result = lookalike.datasets.dedup(stream, scratch=tmp_path)
    assert list(result.kept) == la.dedup(rows).kept
    assert not list(tmp_path.glob("lookalike-*"))


def test_splits_are_one_corpus(rows):
    parts = {"train": rows[:700], "test": rows[700:]}
    expected = la.dedup(datasets.DatasetDict({name: datasets.Dataset.from_list(part) for name, part in parts.items()})).kept
    streams = {name: datasets.Dataset.from_list(part).to_iterable_dataset() for name, part in parts.items()}
    kept = lookalike.datasets.dedup(datasets.IterableDatasetDict(streams)).kept
    assert isinstance(kept, datasets.IterableDatasetDict)
    assert {name: list(split) for name, split in kept.items()} == {name: split.to_list() for name, split in expected.items()}
    assert len(expected["test"]) < 450


def test_features_are_kept():
    features = datasets.Features({"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["no", "yes"])})
    data = datasets.Dataset.from_dict({"text": ["Ferry times", "ferry times!"], "label": [1, 0]}, features=features)
    kept = lookalike.datasets.dedup(data.to_iterable_dataset()).kept
    assert kept.features == features and list(kept) == [{"text": "Ferry times", "label": 1}]


def test_rows_without_a_text_are_left_out_and_named():
    data = datasets.Dataset.from_dict({"text": ["Ferry times", None, "ferry times!", "A map"]}).to_iterable_dataset()
    result = lookalike.datasets.dedup(data)
    assert [row["text"] for row in result.kept] == ["Ferry times", "A map"]
    assert [row for row, _ in result.rejected] == [1]


def test_fields_of_later_batches_may_have_another_type():
    def generate():
        for number in range(2500):
            yield {"text": f"text {number % 900} of a long row of texts", "language": None if number < 1000 else "en"}

    result = lookalike.datasets.dedup(datasets.IterableDataset.from_generator(generate), within="language", threshold=1)
    assert result.summary["removed"] == 700 and len(list(result.kept)) == 1800


@pytest.mark.parametrize(
    ("later", "message"),
    [
        (["a", "b", "x"], "row 3 has another text than at the first reading"),
        (["a", "b"], "it has 2 rows and had 3"),
        (["a", "b", "c", "d"], "row 4 has another text"),
    ],
)
def test_stream_that_changes_is_refused(later, message):
    texts = ["a", "b", "c"]
    data = datasets.IterableDataset.from_generator(lambda: iter([{"text": text} for text in texts]))
    result = lookalike.datasets.dedup(data)
    assert [row["text"] for row in result.kept] == texts
    texts[:] = later
    with pytest.raises(la.InputError, match=f"the data set has changed: {message}"):
        list(result.kept)


def test_refusals_come_before_the_data_are_read():
    read = []

    def generate():
        for number in range(5000):
            read.append(number)
            yield {"body": f"text {number}"}

    data = datasets.IterableDataset.from_generator(generate)
    with pytest.raises(la.InputError, match="no column `text` among `body`; perhaps `body` is meant"):
        lookalike.datasets.dedup(data)
    with pytest.raises(la.SettingError, match="the threshold 2"):
        lookalike.datasets.dedup(data, text="body", threshold=2)
    assert len(read) < 3000
    with pytest.raises(la.InputError, match="ds is of the type list"):
        lookalike.datasets.dedup([{"text": "a"}])


def test_rows_of_streams_are_not_held():
    """The rows have 80 MB, of which only the texts are copied."""

    def generate():
        for number in range(4000):
            yield {"text": f"text {number}", "image": bytes(20_000)}

    data = datasets.IterableDataset.from_generator(generate)
    tracemalloc.start()
    try:
        result = lookalike.datasets.dedup(data)
        kept = sum(1 for _ in result.kept)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept == result.summary["kept"] and most < 50_000_000
