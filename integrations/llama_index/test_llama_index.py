"""Nodes in an ingestion pipeline of LlamaIndex, before they are embedded."""

import asyncio

import lookalike as la
import pytest
from made import made_documents

pytest.importorskip("llama_index.core", reason="llama-index-core is not installed: python/requirements-test.txt names it")

from llama_index.core import MockEmbedding  # noqa: E402
from llama_index.core.ingestion import IngestionPipeline  # noqa: E402
from llama_index.core.schema import ImageNode, NodeRelationship, RelatedNodeInfo, TextNode  # noqa: E402
from lookalike.llama_index import LookalikeDedup  # noqa: E402


@pytest.fixture
def nodes():
    rows = made_documents(300)
    nodes = [TextNode(text=row["text"], id_=row["id"], metadata={"source": row["source"]}) for row in rows]
    for before, after in zip(nodes, nodes[1:]):
        after.relationships[NodeRelationship.PREVIOUS] = RelatedNodeInfo(node_id=before.node_id)
    return nodes


def test_pipeline_embeds_kept_nodes_alone(nodes):
    dedup = LookalikeDedup(threshold=0.8)
    dumped = {node.node_id: node.model_dump(exclude={"embedding"}) for node in nodes}
    pipeline = IngestionPipeline(transformations=[dedup, MockEmbedding(embed_dim=4)])
    kept = pipeline.run(nodes=nodes)
    expected = la.dedup([node.text for node in nodes], threshold=0.8)
    assert [node.node_id for node in kept] == [f"d{row}" for row in expected.kept_rows]
    assert all(node.embedding for node in kept)
    assert all(node.model_dump(exclude={"embedding"}) == dumped[node.node_id] for node in kept)
    named = {(dropped.chunk.node_id, dropped.kept.node_id, dropped.similarity) for dropped in dedup.dropped}
    rows = expected.removed.to_pylist()
    assert named == {(f"d{row['position']}", f"d{row['kept_position']}", row["similarity"]) for row in rows}
    assert len(named) > 50 and all(dropped.chunk.embedding is None for dropped in dedup.dropped)


def test_asynchronous_pipeline_is_the_same(nodes):
    dedup = LookalikeDedup()
    kept = asyncio.run(IngestionPipeline(transformations=[dedup]).arun(nodes=nodes))
    assert [node.node_id for node in kept] == [node.node_id for node in LookalikeDedup()(nodes)]
    assert dedup.dropped


def test_cache_tells_settings_apart(nodes):
    pipeline = IngestionPipeline(transformations=[LookalikeDedup(threshold=1)])
    exact = len(pipeline.run(nodes=nodes))
    pipeline.transformations = [LookalikeDedup(threshold=0.5)]
    assert len(pipeline.run(nodes=nodes)) < exact
    again = LookalikeDedup(threshold=0.5)
    pipeline.transformations = [again]
    assert len(pipeline.run(nodes=nodes)) < exact and not again.dropped


def test_nodes_of_other_tenants_stay(nodes):
    kept = {node.node_id for node in LookalikeDedup(within="source")(nodes)}
    for source in "ab":
        own = [node for node in nodes if node.metadata["source"] == source]
        assert {node.node_id for node in LookalikeDedup()(own)} == {node.node_id for node in own} & kept


def test_earlier_calls_are_remembered_if_asked_for(nodes):
    dedup = LookalikeDedup(across_calls=True)
    kept = [node.node_id for start in (0, 150) for node in dedup(nodes[start : start + 150])]
    assert kept == [node.node_id for node in LookalikeDedup(forms="off")(nodes)]


def test_nodes_without_text_stay():
    images = [ImageNode(image_url=f"a.org/{number}.png") for number in range(3)]
    assert LookalikeDedup()(images) == images


def test_a_component_can_be_stored_and_settings_are_checked(nodes):
    stored = LookalikeDedup(threshold=0.6, within="source").to_dict()
    restored = LookalikeDedup.from_dict(stored)
    assert (restored.threshold, restored.within, restored.class_name()) == (0.6, "source", "LookalikeDedup")
    assert restored(nodes) == LookalikeDedup(threshold=0.6, within="source")(nodes)
    with pytest.raises(la.SettingError, match="the threshold 2"):
        LookalikeDedup(threshold=2)
    with pytest.raises(TypeError, match="'treshold': perhaps threshold is meant"):
        LookalikeDedup(treshold=0.8)


def test_fields_of_the_metadata_exist_and_are_compared(nodes):
    for number, node in enumerate(nodes):
        node.metadata["n"] = number
    kept = LookalikeDedup(keep="max:n")(nodes)
    assert [node.node_id for node in kept] == [node.node_id for node in LookalikeDedup(keep="last")(nodes)]
    for settings in ({"within": "nope"}, {"keep": "min:nope"}):
        with pytest.raises(la.InputError, match="no chunk has the field `nope` in its metadata, which has `source`, `n`"):
            LookalikeDedup(**settings)(nodes)
