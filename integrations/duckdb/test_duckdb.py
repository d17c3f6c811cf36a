"""The extension in DuckDB, beside the command over the same rows."""

import csv
import io
import json
import random
import re
import subprocess
import sys
import uuid

import pytest
from built_command import PROGRAM, command  # noqa: F401
from made import ROOT, made_documents, read_jsonl, write_jsonl

duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed: python/requirements-test.txt names it")

LIBRARY_NAMES = ["liblookalike_duckdb.so", "liblookalike_duckdb.dylib", "lookalike_duckdb.dll"]
#: Ids of each type, by the number of a document. Texts and UUIDs have another order than the numbers.
ID_TYPES = {
    "INTEGER": lambda number: number - 700,
    "BIGINT": lambda number: number - 2**62,
    "UBIGINT": lambda number: 2**64 - 2000 + number,
    "HUGEINT": lambda number: 2**100 + number,
    "UUID": lambda number: str(uuid.UUID(int=random.Random(number).getrandbits(128))),
    "VARCHAR": lambda number: f"d{number}",
}


@pytest.fixture(scope="session")
def extension(tmp_path_factory):
    """The file that DuckDB loads, made of the library that stands beside the command."""
    libraries = [PROGRAM.parent / name for name in LIBRARY_NAMES]
    found = next((library for library in libraries if library.exists()), None)
    if found is None:
        pytest.skip(f"{libraries[0]} is not built: cargo build --package lookalike-duckdb")
    file = tmp_path_factory.mktemp("extension") / "lookalike.duckdb_extension"
    subprocess.run([sys.executable, ROOT / "integrations/duckdb/package", found, file], check=True)
    return file


@pytest.fixture
def connect(extension):
    """Opens a database and loads the extension."""
    opened = []

    def open_database(path=":memory:", **options):
        connection = duckdb.connect(path, config={"allow_unsigned_extensions": "true"}, **options)
        opened.append(connection)
        connection.load_extension(str(extension))
        return connection

    yield open_database
    for connection in opened:
        connection.close()


@pytest.fixture
def connection(connect):
    return connect()


@pytest.fixture(scope="module")
def news():
    return read_jsonl(ROOT / "examples/news.jsonl")


def fill(connection, rows, id_type="VARCHAR", table="posts"):
    """Makes a table of rows in any order."""
    rows = random.Random(len(rows)).sample(rows, len(rows))
    connection.execute(f"CREATE OR REPLACE TABLE {table} (id {id_type}, body VARCHAR)")
    columns = {"id": [str(row["id"]) for row in rows], "body": [row["text"] for row in rows]}
    connection.execute(
        f"INSERT INTO {table} SELECT CAST(unnest($id::VARCHAR[]) AS {id_type}), unnest($body::VARCHAR[])", columns
    )


def removed_by_command(command, rows, folder, *options):
    """What the command removes of rows, in their order."""
    path, removed = write_jsonl(folder / "rows.jsonl", rows), folder / "removed.jsonl"
    command("dedup", path, "--removed", removed, "-o", folder / "kept.jsonl", *options)
    return [(row["id"], row["kept"], row["similarity"], row["method"]) for row in read_jsonl(removed)]


def with_ids(documents, id_type):
    """Documents with ids of a type, in the order that DuckDB has for them."""
    rows = [{"id": ID_TYPES[id_type](number), "text": row["text"]} for number, row in enumerate(documents)]
    return sorted(rows, key=lambda row: row["id"])


@pytest.mark.parametrize("id_type", ID_TYPES)
def test_near_duplicates_are_those_of_the_command(connection, command, tmp_path, id_type):
    rows = with_ids(made_documents(1500, seed=4), id_type)
    fill(connection, rows, id_type)
    expected = removed_by_command(command, [{**row, "id": str(row["id"])} for row in rows], tmp_path)
    found = connection.execute("FROM lookalike.near_duplicates('posts', body, id)").fetchall()
    assert [(str(id), str(kept), *values) for id, kept, *values in found] == expected
    assert len(expected) > 300
    types = connection.execute("DESCRIBE FROM lookalike.near_duplicates('posts', body, id)").fetchall()
    id_type = id_type.replace("INTEGER", "BIGINT")
    assert [kind[:2] for kind in types] == [("id", id_type), ("kept", id_type), ("similarity", "DOUBLE"), ("method", "VARCHAR")]


@pytest.mark.parametrize("options", [(0.5,), (0.9,), (0.75, "characters-3"), (0.6, "jieba"), (1, "words-1"), (0.75, "default", "off"), (0.75, "default", "learn")])
def test_options_are_those_of_the_command(connection, command, tmp_path, news, options):
    made = made_documents(500, seed=2)
    for rows in (news, made, read_jsonl(ROOT / "examples/forms.jsonl")):
        rows = sorted(({"id": str(row["id"]), "text": row["text"]} for row in rows), key=lambda row: row["id"])
        fill(connection, rows)
        given = [item for name, value in zip(("--threshold", "--recipe", "--forms"), options) for item in (name, value)]
        expected = removed_by_command(command, rows, tmp_path, *given)
        arguments = ", ".join(map(repr, options))
        query = f"SELECT unnest(near_duplicates(body, id, {arguments}), max_depth := 2) FROM posts"
        assert connection.execute(query).fetchall() == expected
        assert rows is not made or len(expected) > 50


def test_result_is_the_same_with_any_number_of_threads(connection):
    rows = with_ids(made_documents(3000, seed=7) * 50, "BIGINT")
    fill(connection, rows, "BIGINT")
    results = []
    for threads in (1, 2, 8):
        connection.execute(f"SET threads = {threads}")
        results.append(connection.execute("FROM lookalike.near_duplicates('posts', body, id, 0.8)").fetchall())
    assert results[0] == results[1] == results[2]
    assert len(results[0]) > 140_000


def test_each_group_is_a_run_of_its_own(connection, command, tmp_path):
    documents = made_documents(2000, seed=3)
    rows = with_ids(documents, "BIGINT")
    fill(connection, rows, "BIGINT")
    # Two large groups beside many small ones, so that small and large runs take turns.
    connection.execute("CREATE TABLE groups AS SELECT id, CASE WHEN hash(id) % 4 < 3 THEN hash(id) % 2 ELSE hash(id) % 97 END AS part FROM posts")
    query = "SELECT part, list(id), near_duplicates(body, id, 0.7) FROM posts JOIN groups USING (id) GROUP BY part"
    sizes, found = [], 0
    for part, ids, duplicates in connection.execute(query).fetchall():
        members = set(ids)
        own = [{**row, "id": str(row["id"])} for row in rows if row["id"] in members]
        if len(own) < 40 and part % 12:
            continue
        expected = removed_by_command(command, own, tmp_path, "--threshold", 0.7, "--allow-empty")
        assert [(str(row["id"]), str(row["kept"]), row["similarity"], row["method"]) for row in duplicates] == expected
        sizes.append(len(own))
        found += len(expected)
    assert min(sizes) < 20 and max(sizes) > 600 and found > 200


def test_states_are_used_again_in_windows(connection):
    rows = with_ids(made_documents(60, seed=5), "BIGINT")
    fill(connection, rows, "BIGINT")
    query = """SELECT id, len(near_duplicates(body, id) OVER (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND {end})) AS found
        FROM posts ORDER BY id"""
    for end in ("CURRENT ROW", "UNBOUNDED FOLLOWING", "3 FOLLOWING"):
        windows = connection.execute(query.format(end=end)).fetchall()
        following = {"CURRENT ROW": 0, "3 FOLLOWING": 3}.get(end, len(rows))
        for number, (id, found) in enumerate(windows):
            last = rows[min(number + following, len(rows) - 1)]["id"]
            alone = connection.execute(f"SELECT len(near_duplicates(body, id)) FROM posts WHERE id <= {last}").fetchone()
            assert alone == (found,), (end, id)
    assert windows[-1][1] > 5


def test_rows_without_text_are_no_documents(connection):
    query = "SELECT near_duplicates(body, id) FROM (VALUES {}) AS posts(id, body)"
    pair = "(3, 'the ferry leaves at seven'), (1, 'The ferry leaves at seven!')"
    found = [{"id": 3, "kept": 1, "similarity": 1.0, "method": "exact"}]
    assert connection.execute(query.format(pair)).fetchone() == (found,)
    assert connection.execute(query.format(pair + ", (0, NULL), (NULL, NULL), (9, ''), (8, '')")).fetchone() == (found,)
    assert connection.execute(query.format("(1, NULL::VARCHAR)")).fetchone() == ([],)
    assert connection.execute(query.format("(1, NULL::VARCHAR)") + " WHERE false").fetchone() == ([],)


def test_fingerprints_are_those_of_the_command(connection, command, tmp_path, news):
    rows = [{"id": str(number), "text": row["text"]} for number, row in enumerate([*made_documents(400), *news])]
    path = write_jsonl(tmp_path / "rows.jsonl", rows)
    fill(connection, rows)
    for recipe in ("default", "characters-3", "jieba", "1e0ng", "java-classic", "datasketch-affine32"):
        for function, options in (("simhash", ["--method", "simhash", "--digits", "decimal"]), ("minhash", ["--method", "minhash"])):
            table = tmp_path / "table.jsonl"
            command("fingerprint", path, "--recipe", recipe, *options, "-o", table)
            query = f"SELECT id, {function}(body, '{recipe}') FROM posts"
            # A text without a fingerprint has `-` or null there.
            expected = {row["id"]: row["fingerprint"] for row in read_jsonl(table)}
            expected = {id: None if value == "-" else int(value) if function == "simhash" and value else value for id, value in expected.items()}
            assert dict(connection.execute(query).fetchall()) == expected, (recipe, function)
    default = connection.execute("SELECT bool_and(simhash(body) IS NOT DISTINCT FROM simhash(body, 'default')) FROM posts")
    assert default.fetchone() == (True,)


def compared_pairs(news):
    """Pairs of texts in both languages, most of them alike."""
    source, texts = random.Random(1), [row["text"] for row in news]
    pairs = [("", ""), ("", "a"), ("a", "a"), ("渡", "渡"), ("the ferry leaves", "the ferry leaves"), (texts[0], texts[0])]
    pairs += [(a["text"], b["text"]) for a, b in zip(news, news[1:]) if a["source"] and b["source"]]
    return pairs + [(text, text[: len(text) // 2] + " 岛 x " + text[len(text) // 3 :]) for text in source.sample(texts, 20)]


def test_comparisons_are_those_of_the_command(connection, command, news):
    pairs, similar, passages = compared_pairs(news), 0, 0
    for a, b in pairs:
        case = json.loads(command("compare", "--literal", "--json", "--", a, b).stdout)
        query = "SELECT shingle_jaccard($a, $b), lookalike.jaccard($a, $b), shared_passages($a, $b), hamming_distance(simhash($a), simhash($b))"
        jaccard, by_macro, shared, distance = connection.execute(query, {"a": a, "b": b}).fetchone()
        assert jaccard == by_macro == case["figures"]["jaccard"]["value"], (a, b)
        assert distance == case["distance"], (a, b)
        expected = [
            {
                "a_start": passage["a"]["start"], "a_end": passage["a"]["end"],
                "b_start": passage["b"]["start"], "b_end": passage["b"]["end"],
                "length": passage["length"], "similarity": passage["similarity"], "kind": passage["kind"],
                "text": b[passage["b"]["start"] : passage["b"]["end"]],
            }
            for passage in case["shared"]["passages"]
        ]  # fmt: skip
        assert shared == expected, (a, b)
        similar += (jaccard or 0) > 0.3
        passages += len(shared)
    assert similar > 20 and passages > 20


def test_functions_of_duckdb_keep_their_meaning(connection):
    alone = duckdb.connect()
    for call in ("jaccard('duck', 'luck')", "hamming('duck', 'luck')"):
        assert connection.execute(f"SELECT {call}").fetchone() == alone.execute(f"SELECT {call}").fetchone()
    query = "SELECT lookalike.hamming(simhash('the ferry leaves'), simhash('the ferry left')), lookalike.hamming(7, 0)"
    assert connection.execute(query).fetchone() == (connection.execute("SELECT bit_count(xor(simhash('the ferry leaves'), simhash('the ferry left')))").fetchone()[0], 3)


@pytest.mark.parametrize("function", ["simhash(NULL)", "minhash(NULL::VARCHAR)", "shingle_jaccard('a', NULL)", "shared_passages(NULL, 'a')", "hamming_distance(NULL, 1)"])
def test_missing_values_have_no_result(connection, function):
    assert connection.execute(f"SELECT {function}").fetchone() == (None,)


@pytest.mark.parametrize("threads", [1, 4])
def test_columns_with_missing_values_have_results_elsewhere(connection, threads):
    connection.execute(f"SET threads = {threads}")
    connection.execute(
        """CREATE TABLE words AS SELECT i, CASE WHEN i % 3 = 0 THEN NULL WHEN i % 3 = 1 THEN 'x' ELSE 'word ' || i || ' of many' END AS body
        FROM range(200000) numbers(i)"""
    )
    query = """SELECT count(simhash(body)), count(minhash(body)), count(*) FILTER (len(minhash(body)) = 128),
        count(DISTINCT simhash(body)), count(shingle_jaccard(body, body)) FROM words"""
    assert connection.execute(query).fetchone() == (66_666, 66_666, 66_666, 66_666, 66_666)


@pytest.mark.parametrize(
    "query, message",
    [
        ("SELECT near_duplicates(body, id, 1.5) FROM posts", "near_duplicates: .*1.5"),
        ("SELECT near_duplicates(body, id, 0) FROM posts", "near_duplicates: .*0"),
        # A query reads no recipe from a file, so that the message offers none.
        ("SELECT near_duplicates(body, id, 0.8, 'nonsense') FROM posts", "near_duplicates: .*nonsense.*jieba-search$"),
        ("SELECT near_duplicates(body, id, 0.8, 'default', 'none') FROM posts", "forms is 'none': give 'learn' or 'off'"),
        ("SELECT near_duplicates(body, NULL::BIGINT) FROM posts", "near_duplicates: the document '.*' has no id"),
        ("SELECT near_duplicates(body, id, 0.8, 'off') FROM posts", "no recipe 'off': give NULL for the recipe before 'off'"),
        ("FROM lookalike.near_duplicates('posts', body, id, 0.8, 'learn')", "give NULL for the recipe before 'learn'"),
        ("FROM lookalike.near_duplicates('posts', id, body)", "give the text first, as in near_duplicates.'posts', text, id."),
        ("SELECT near_duplicates(id, body, 0.8) FROM posts", "give the text first, .*near_duplicates.text, id."),
        ("SELECT near_duplicates(uuid(), body) FROM posts", "give the text first"),
        ("FROM lookalike.near_duplicates('posts', body, id / 2.5)", r"give CAST\(id AS VARCHAR\)"),
        ("FROM lookalike.near_duplicates('posts', body, id::DECIMAL(9, 2))", r"give CAST\(id AS VARCHAR\)"),
        ("FROM lookalike.near_duplicates('posts', body, DATE '2026-01-01' + id::INTEGER)", r"give CAST\(id AS VARCHAR\)"),
        ("FROM lookalike.near_duplicates('posts', body, TIMESTAMP '2026-01-01 10:00:00')", r"give CAST\(id AS VARCHAR\)"),
        ("SELECT shared_passages(body, body, NULL, 1) FROM posts", "shared_passages: a passage of at least 1 words is out of range"),
        ("SELECT near_duplicates(body, id, id / 10.0) FROM posts", "threshold 0.[12] and .* 0.[12] .*give all rows"),
        ("SELECT simhash(body, 'nonsense') FROM posts", "simhash: .*nonsense"),
        ("SELECT shared_passages(body, body, 'nonsense') FROM posts", "shared_passages: .*nonsense"),
    ],
)
def test_errors_name_the_value(connection, query, message):
    connection.execute("CREATE TABLE posts AS FROM (VALUES (1, 'the ferry leaves'), (2, 'the ferry left')) AS posts(id, body)")
    with pytest.raises(duckdb.Error, match=message):
        connection.execute(query).fetchall()
    assert connection.execute("SELECT count(simhash(body)) FROM posts").fetchone() == (2,)


def test_table_function_takes_expressions_and_views(connection, news):
    fill(connection, news)
    connection.execute("CREATE VIEW recent AS SELECT body AS id, upper(id) AS text FROM posts")
    expected = connection.execute("FROM lookalike.near_duplicates('posts', body, id, 0.75)").fetchall()
    assert len(expected) > 10
    # Columns that have the names of parameters with another meaning.
    swapped = connection.execute("FROM lookalike.near_duplicates('recent', id, lower(text), 0.75)").fetchall()
    assert sorted(swapped) == sorted(expected)
    unnamed = connection.execute("WITH chosen AS (FROM posts) FROM lookalike.near_duplicates(chosen, body, id)").fetchall()
    assert unnamed == expected


@pytest.mark.parametrize("columns", ["'body', 'id'", "body, 'id'", "body, 7"])
def test_names_of_columns_in_quotes_are_refused(connection, news, columns):
    fill(connection, news)
    id = columns.rpartition(", ")[2].strip("'")
    message = f"near_duplicates: all {len(news)} rows have the id '{id}': .*without quotes"
    for options in ("", ", 0.8", ", 0.8, 'words-1'", ", 0.8, 'words-1', 'off'"):
        with pytest.raises(duckdb.Error, match=message):
            connection.execute(f"FROM lookalike.near_duplicates('posts', {columns}{options})").fetchall()
    # A table with one document, or with none, has results.
    for condition in ("id = 'en-bridge-1'", "false"):
        connection.execute(f"CREATE OR REPLACE VIEW few AS FROM posts WHERE {condition}")
        assert connection.execute("FROM lookalike.near_duplicates('few', body, id)").fetchall() == []


@pytest.mark.parametrize("options", ["", ", 0.8", ", 0.8, 'words-1'", ", 0.8, 'words-1', 'off'"])
def test_a_constant_text_is_refused(connection, news, options):
    fill(connection, news)
    connection.execute('CREATE VIEW spaced AS SELECT body AS "full text", id FROM posts')
    message = f"near_duplicates: all {len(news)} rows have the text 'full text': .*double quotes"
    with pytest.raises(duckdb.Error, match=message):
        connection.execute(f"FROM lookalike.near_duplicates('spaced', 'full text', id{options})").fetchall()
    found = connection.execute(f"FROM lookalike.near_duplicates('spaced', \"full text\", id{options})").fetchall()
    assert found == connection.execute(f"FROM lookalike.near_duplicates('posts', body, id{options})").fetchall()
    # Equal texts of a column are documents.
    connection.execute("CREATE TABLE equal AS SELECT i AS id, 'the ferry leaves' AS text FROM range(5) numbers(i)")
    assert len(connection.execute(f"FROM lookalike.near_duplicates('equal', text, id{options})").fetchall()) == 4


@pytest.mark.parametrize("id_type", ID_TYPES)
def test_repeated_ids_are_refused_by_name(connection, id_type):
    rows = with_ids(made_documents(40, seed=4), id_type)
    rows[5]["id"] = rows[3]["id"]
    fill(connection, rows, id_type)
    with pytest.raises(duckdb.Error, match=f"near_duplicates: 2 rows have the id '{rows[3]['id']}': give each document"):
        connection.execute("FROM lookalike.near_duplicates('posts', body, id)").fetchall()


def test_columns_in_the_wrong_order_are_refused(connection):
    rows = [{"id": row["id"], "text": f"{number} {row['text']} " * 4} for number, row in enumerate(made_documents(40)) if row["text"]]
    fill(connection, rows)
    with pytest.raises(duckdb.Error, match="the ids have .* bytes on average and the texts .: give the text before the id"):
        connection.execute("FROM lookalike.near_duplicates('posts', id, body)").fetchall()


def test_uuids_of_parquet_files_are_refused_with_a_remedy(connection, tmp_path):
    for id in ("id", "CAST(id AS VARCHAR)"):
        connection.execute(f"COPY (SELECT {id} AS id, 'some text' AS text FROM (SELECT uuid() AS id)) TO '{tmp_path}/posts.parquet'")
        arguments = ["dedup", tmp_path / "posts.parquet", "--id", "id", "-o", tmp_path / "kept.jsonl"]
        ran = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True)
        assert ("write UUIDs as text, in DuckDB with CAST" in ran.stderr) == (id == "id"), ran.stderr
    assert ran.returncode == 0


def test_shared_passages_have_a_least_length(connection):
    words = " ".join(f"w{number}" for number in range(9))
    query = "SELECT len(shared_passages($words, $words)), len(shared_passages($words, $words, NULL, 9)), len(shared_passages($words, $words, 'default', 10))"
    assert connection.execute(query, {"words": words}).fetchone() == (0, 1, 0)


def test_forms_are_off_in_the_macro_too(connection):
    connection.execute(f"CREATE TABLE offers AS FROM '{ROOT}/examples/forms.jsonl'")
    count = "SELECT count(*) FROM lookalike.near_duplicates('offers', text, id{})"
    assert connection.execute(count.format("")).fetchone() == (7,)
    assert connection.execute(count.format(", NULL, NULL, 'off'")).fetchone() == (29,)


def test_file_of_a_database_is_free_again(connect, tmp_path):
    path = tmp_path / "posts.duckdb"
    first = connect(str(path))
    first.execute("CREATE TABLE posts AS SELECT i AS id, 'the ferry leaves' AS body FROM range(3) numbers(i)")
    first.close()
    script = "import duckdb, sys; print(duckdb.connect(sys.argv[1]).execute('SELECT count(*) FROM posts').fetchone())"
    other = subprocess.run([sys.executable, "-c", script, path], capture_output=True, text=True)
    assert other.stdout == "(3,)\n", other.stderr
    # Nothing of the extension is in the file, and a read-only database takes it, too.
    alone = duckdb.connect(str(path), read_only=True)
    assert alone.execute("SELECT count(*) FROM duckdb_functions() WHERE function_name = 'near_duplicates'").fetchone() == (0,)
    alone.close()
    second = connect(str(path), read_only=True)
    assert len(second.execute("FROM lookalike.near_duplicates('posts', body, id)").fetchall()) == 2


def test_database_of_the_same_name_is_refused(connect, extension, tmp_path):
    path = tmp_path / "lookalike.duckdb"
    connection = duckdb.connect(str(path), config={"allow_unsigned_extensions": "true"})
    connection.execute("CREATE TABLE posts AS SELECT i AS id, 'the ferry leaves' AS body FROM range(3) numbers(i)")
    with pytest.raises(duckdb.Error, match="attaches a database `lookalike`, and yours has that name: open it under another"):
        connection.load_extension(str(extension))
    assert connection.execute("SELECT count(*) FROM posts").fetchone() == (3,)
    connection.close()
    # It can be attached under another name.
    connection = connect()
    connection.execute(f"ATTACH '{path}' AS mine")
    assert len(connection.execute("FROM lookalike.near_duplicates('mine.posts', body, id)").fetchall()) == 2


@pytest.mark.parametrize("page", ["docs/duckdb.md", "docs/zh/duckdb.md"])
def test_statements_of_the_page(connection, monkeypatch, page):
    """Every statement runs as it stands there, and the tables below statements are their results."""
    monkeypatch.chdir(ROOT)
    blocks = re.findall(r"^```(sql|csv)\n(.*?)^```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    results, tables = [], 0
    for language, block in blocks:
        if language == "csv":
            header, *rows = list(csv.reader(io.StringIO(block)))
            names, result = results[-1]
            assert (header, rows) == (names, [[str(value) for value in row] for row in result])
            tables += 1
            continue
        cursor = connection.execute(block)
        results.append(([column[0] for column in cursor.description], cursor.fetchall()))
        # Each block has a result with rows.
        assert results[-1][1], block
    assert (len(results), tables) == (6, 3)
    (removed,) = connection.execute("SELECT (SELECT count(*) FROM posts) - (SELECT count(*) FROM clean)").fetchone()
    counted = next(result for names, result in results if names == ["removed"])
    assert counted == [(removed,)] and removed > 20


def test_example_of_the_release(extension):
    script = ROOT / "integrations/duckdb/examples/removed.py"
    ran = subprocess.run([sys.executable, script, ROOT / "examples/news.jsonl"], cwd=extension.parent, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert "zh-tram-3 is a near-duplicate of zh-tram-1: 0.977\n" in ran.stdout
