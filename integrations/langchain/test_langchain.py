"""Chunks in LangChain, before a vector store embeds them."""

import asyncio
import pickle

import lookalike as la
import pytest
from made import made_documents

pytest.importorskip("langchain_core.documents", reason="langchain-core is not installed: python/requirements-test.txt names it")

from langchain_core.documents import Document  # noqa: E402
from langchain_core.embeddings import DeterministicFakeEmbedding  # noqa: E402
from langchain_core.vectorstores import InMemoryVectorStore  # noqa: E402
from lookalike.langchain import LookalikeDedup  # noqa: E402


@pytest.fixture(scope="module")
def chunks():
    rows = made_documents(300)
    return [Document(page_content=row["text"], id=row["id"], metadata={"source": row["source"]}) for row in rows]


def test_kept_chunks_are_those_of_the_library(chunks):
    dedup = LookalikeDedup(threshold=0.8, keep="longest")
    kept = dedup.transform_documents(chunks)
    texts = [chunk.page_content for chunk in chunks]
    expected = la.dedup(texts, threshold=0.8, keep="longest")
    assert [id(chunk) for chunk in kept] == [id(chunks[row]) for row in expected.kept_rows]
    named = {(dropped.chunk.id, dropped.kept.id, dropped.similarity) for dropped in dedup.dropped}
    rows = expected.removed.to_pylist()
    assert named == {(f"d{row['position']}", f"d{row['kept_position']}", row["similarity"]) for row in rows}
    assert len(named) == len(chunks) - len(kept) > 50
    assert [dropped.chunk.id for dropped in dedup.dropped] == sorted((name for name, _, _ in named), key=lambda name: int(name[1:]))


def test_dropped_chunks_are_not_embedded(chunks):
    embedded = []

    class Counting(DeterministicFakeEmbedding):
        def embed_documents(self, texts):
            embedded.extend(texts)
            return super().embed_documents(texts)

    dedup = LookalikeDedup()
    store = InMemoryVectorStore(Counting(size=8))
    store.add_documents(dedup.transform_documents(chunks))
    assert len(embedded) == len(chunks) - len(dedup.dropped) < len(chunks)


def test_asynchronous_call_is_the_same(chunks):
    dedup = LookalikeDedup()
    assert asyncio.run(dedup.atransform_documents(chunks)) == LookalikeDedup().transform_documents(chunks)
    assert dedup.dropped


def test_chunks_of_other_tenants_stay(chunks):
    kept = LookalikeDedup(within="source").transform_documents(chunks)
    for source in "ab":
        own = [chunk for chunk in chunks if chunk.metadata["source"] == source]
        assert [chunk for chunk in kept if chunk.metadata["source"] == source] == LookalikeDedup().transform_documents(own)


@pytest.mark.parametrize("within", [None, "source"])
def test_earlier_calls_are_remembered_if_asked_for(chunks, within):
    dedup = LookalikeDedup(across_calls=True, within=within)
    kept = [chunk for start in range(0, 300, 50) for chunk in dedup.transform_documents(chunks[start : start + 50])]
    assert kept == LookalikeDedup(within=within, forms="off").transform_documents(chunks)
    places = {id(chunk): place for place, chunk in enumerate(chunks)}
    assert all(places[id(dropped.kept)] < places[id(dropped.chunk)] for dropped in dedup.dropped)
    forgetful = LookalikeDedup()
    assert forgetful.transform_documents(chunks[:1]) == forgetful.transform_documents(chunks[:1]) == chunks[:1]
    assert not dedup.transform_documents(kept[:9]) or any(not chunk.page_content.strip() for chunk in kept[:9])


def test_keep_compares_a_field_of_the_metadata(chunks):
    numbered = [
        Document(page_content=chunk.page_content, metadata={"n": number % 7, "text": "x"}) for number, chunk in enumerate(chunks)
    ]
    expected = la.dedup(
        {"text": [chunk.page_content for chunk in chunks], "n": [chunk.metadata["n"] for chunk in numbered]}, keep="max:n,longest"
    )
    kept = LookalikeDedup(keep="max:n,longest").transform_documents(numbered)
    assert [id(chunk) for chunk in kept] == [id(numbered[row]) for row in expected.kept_rows]
    assert len(kept) < len(chunks)
    # Fields with the names of the library's own columns are those of the metadata.
    assert len(LookalikeDedup(keep="max:text", within="n").transform_documents(numbered)) > len(kept)


@pytest.mark.parametrize("settings", [{"within": "nope"}, {"keep": "max:nope"}, {"within": "nope", "across_calls": True}])
def test_a_field_that_no_chunk_has_is_refused(chunks, settings):
    dedup = LookalikeDedup(**settings)
    assert dedup.transform_documents([]) == []
    with pytest.raises(la.InputError, match="no chunk has the field `nope` in its metadata, which has `source`"):
        dedup.transform_documents(chunks)
    dedup = LookalikeDedup(**settings)
    later = [Document(page_content=FORM.format(1, 2), metadata={"nope": 1}), *chunks[:9]]
    assert dedup.transform_documents(later) and dedup.transform_documents(chunks[9:20])


FORM = "On {} the ferry to the islands leaves at {} from the northern quay, and tickets are sold on board."


def test_a_table_of_forms_works_across_calls(tmp_path):
    days = ["May 2", "June 3", "July 4"] * 4
    times = [Document(page_content=FORM.format(day, f"{hour}.40")) for hour, day in enumerate(days)]
    table = tmp_path / "notices.toml"
    la.learn_forms([chunk.page_content for chunk in times], table, threshold=0.5)
    kept = {}
    for forms in (None, "off", str(table)):
        dedup = LookalikeDedup(threshold=0.5, across_calls=True, forms=forms)
        kept[forms] = [chunk for start in (0, 6) for chunk in dedup.transform_documents(times[start : start + 6])]
    assert kept[str(table)] == times
    assert kept[None] == kept["off"] == times[:1]
    with pytest.raises(la.SettingError, match="forms='learn' has no effect across calls.*give the table"):
        LookalikeDedup(forms="learn", across_calls=True)


def test_a_transformer_can_be_pickled(chunks):
    dedup = LookalikeDedup(across_calls=True)
    dedup.transform_documents(chunks[:100])
    copied = pickle.loads(pickle.dumps(dedup))
    assert copied.transform_documents(chunks[100:]) == dedup.transform_documents(chunks[100:])


def test_refusals():
    assert LookalikeDedup().transform_documents([]) == []
    with pytest.raises(la.SettingError, match="the threshold 2"):
        LookalikeDedup(threshold=2)
    with pytest.raises(la.SettingError, match="the threshold 2"):
        LookalikeDedup(threshold=2, across_calls=True)
    with pytest.raises(TypeError, match="'treshold': perhaps threshold is meant"):
        LookalikeDedup(treshold=0.8)
    with pytest.raises(la.SettingError, match="keep has no effect across calls"):
        LookalikeDedup(keep="longest", across_calls=True)
