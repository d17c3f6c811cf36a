"""The tools for language models, by the official client of the Model Context Protocol."""

import asyncio
import json

import pytest

mcp = pytest.importorskip("mcp")

FERRY = "The old ferry leaves the harbour at seven and returns with the evening tide from the northern islands"
LATE_FERRY = FERRY.replace("islands", "isles")


@pytest.fixture
def corpus(tmp_path):
    folder = tmp_path / "corpus"
    folder.mkdir()
    rows = [("first", FERRY), ("second", LATE_FERRY), ("other", "Nobody on the quay saw the grey boat go")]
    lines = [json.dumps({"id": name, "text": text}) for name, text in rows]
    (folder / "rows.jsonl").write_text("\n".join(lines) + "\n")
    return folder


def with_client(command, options, work, mode="auto"):
    """Runs work with a client of a server with these options."""

    async def run():
        server = mcp.StdioServerParameters(command=str(command.program), args=["mcp", *map(str, options)])
        async with mcp.Client(server, mode=mode, read_timeout_seconds=60) as client:
            return await work(client)

    return asyncio.run(run())


async def content_of(client, tool, **arguments):
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    assert result.content[0].text
    return result.structured_content


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_handshake_and_list_of_tools(command, corpus, mode):
    async def work(client):
        assert client.protocol_version == "2025-11-25"
        assert client.server_info.name == "lookalike"
        assert client.instructions
        return (await client.list_tools()).tools

    tools = with_client(command, ["--folder", corpus], work, mode)
    assert [tool.name for tool in tools] == [
        "find_near_duplicates",
        "shared_passages",
        "compare_texts",
        "check_text",
        "explain_removal",
    ]
    assert all(tool.annotations.read_only_hint for tool in tools)
    assert all(tool.input_schema["type"] == "object" for tool in tools)


def test_files_are_searched(command, corpus, tmp_path):
    removed = corpus / "removed.tsv"
    command("dedup", corpus / "rows.jsonl", "-o", tmp_path / "kept.jsonl", "--removed", removed, "--forms", "off")

    async def work(client):
        rows = [str(corpus / "rows.jsonl")]
        found = await content_of(client, "find_near_duplicates", inputs=rows, forms="off")
        assert found["documents"] == 3
        cluster = found["clusters"][0]
        assert cluster["kept"]["id"] == "first"
        assert [member["id"] for member in cluster["removed"]] == ["second"]
        passages = await content_of(client, "shared_passages", inputs=rows)
        assert passages["pairs"][0]["document"] == "second"
        explained = await content_of(client, "explain_removal", removed="removed.tsv", id="second", inputs=rows)
        assert explained["kept"] == "first"
        assert explained["similarity"] == cluster["removed"][0]["similarity"]

    with_client(command, ["--folder", corpus], work)


def test_texts_are_compared_and_checked(command, corpus, tmp_path):
    library = tmp_path / "seen.lib"
    command("dedup", corpus / "rows.jsonl", "-o", tmp_path / "kept.jsonl", "--library", library, "--forms", "off")

    async def check(client):
        compared = await content_of(client, "compare_texts", a=FERRY, b=LATE_FERRY)
        assert compared["match"] and compared["passages"]
        known = await content_of(client, "check_text", text=LATE_FERRY)
        assert (known["new"], known["of"]) == (False, "first")
        refused = await client.call_tool("check_text", {"text": "a new one", "insert": True, "id": "new"})
        assert refused.is_error

    with_client(command, ["--index", library], check)

    async def insert(client):
        text = "this text was seen by nobody at all"
        inserted = await content_of(client, "check_text", text=text, insert=True, id="new")
        assert (inserted["new"], inserted["inserted"]) == (True, True)
        again = await content_of(client, "check_text", text=text)
        assert (again["new"], again["of"]) == (False, "new")

    with_client(command, ["--index", library, "--allow-insert"], insert)


def test_refusals_reach_the_client(command, corpus, tmp_path):
    (tmp_path / "secret.jsonl").write_text('{"text": "secret words"}\n')

    async def work(client):
        for path in ["../secret.jsonl", str(tmp_path / "secret.jsonl"), "/etc/passwd", "https://example.com/a.jsonl"]:
            refused = await client.call_tool("find_near_duplicates", {"inputs": [path]})
            assert refused.is_error
            assert "the folders of this server" in refused.content[0].text
        with pytest.raises(mcp.MCPError) as unknown:
            await client.call_tool("shell", {"command": "ls"})
        assert unknown.value.error.code == -32602
        # The session goes on.
        assert await content_of(client, "compare_texts", a="a", b="b")

    with_client(command, ["--folder", corpus], work)
