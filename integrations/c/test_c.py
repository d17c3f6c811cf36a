"""The C library in C, Java and Go, beside the command and the Python package over the same texts."""

import ctypes
import functools
import json
import os
import re
import shutil
import subprocess
import threading
from pathlib import Path

import lookalike as la
import pytest
from built_command import command  # noqa: F401
from made import ROOT, blocks_of, made_documents, read_jsonl, write_jsonl

HERE = Path(__file__).parent

#: Settings of the library, and the options of `dedup` that mean the same.
SETTINGS = [
    ({}, []),
    ({"threshold": 0.5, "window": "1h"}, ["--threshold", "0.5", "--window", "1h", "--time", "at"]),
    ({"window_documents": 50}, ["--window", "50s", "--time", "row"]),
    (
        {"method": "simhash", "distance": 6, "verify": "none"},
        ["--method", "simhash", "--distance", "6", "--verify", "none"],
    ),
    ({"recipe": "words-3", "changes": ["minhash.slots=64"]}, ["--recipe", "words-3", "--set", "minhash.slots=64"]),
]


def need(program):
    return shutil.which(program) or pytest.skip(f"there is no {program} here")


def run(*arguments, **options):
    done = subprocess.run([str(one) for one in arguments], capture_output=True, **options)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def plain_blocks():
    """The code blocks of the page that have no language: commands."""
    blocks = (ROOT / "docs/c.md").read_text(encoding="utf-8").split("```")[1::2]
    return [block.strip() for block in blocks if block.startswith("\n")]


@pytest.fixture(scope="session")
def library(command, tmp_path_factory):
    """The library, installed in a folder by the commands of the page."""
    built = command.program.with_name("liblookalike_c.so")
    if not built.exists():
        pytest.skip(f"{built} is not built: cargo build --package lookalike-c")
    prefix = tmp_path_factory.mktemp("prefix")
    build, *lines, reload = plain_blocks()[0].splitlines()
    assert (build, reload) == ("cargo build --release --package lookalike-c", "ldconfig")
    script = "\n".join(lines).replace("/usr/local", str(prefix)).replace("target/release", str(built.parent.resolve()))
    run("bash", "-e", "-c", script, cwd=ROOT)
    return prefix / "lib"


@pytest.fixture(scope="session")
def environment(library):
    """Variables by which compilers and programs find the library as if it were in /usr/local."""
    include = str(library.parent / "include")
    names = {"C_INCLUDE_PATH": include, "LIBRARY_PATH": str(library), "LD_LIBRARY_PATH": str(library)}
    return {**os.environ, **names}


@pytest.fixture(scope="session")
def compile_c(environment):
    """Compiles a program in C."""
    need("cc")

    def compile(source, target, *flags):
        run("cc", "-std=c11", "-Wall", "-Wextra", "-Werror", source, "-o", target, *flags, "-llookalike", env=environment)
        return target

    return compile


@pytest.fixture(scope="session")
def java(environment, tmp_path_factory):
    """Runs a Java program with the package `lookalike` and its native methods, compiled as the page says."""
    home = Path(need("javac")).resolve().parents[1]
    folder = tmp_path_factory.mktemp("java")
    shutil.copy(HERE / "java/lookalike_jni.c", folder)
    glue = next(block for block in plain_blocks() if "lookalike_jni.c" in block)
    run("bash", "-c", glue, cwd=folder, env={**environment, "JAVA_HOME": str(home)})
    sources = (*(HERE / "java/lookalike").glob("*.java"), HERE / "java/Demo.java")
    run("javac", "--release", "17", "-Xlint:all", "-Werror", "-d", folder, *sources)
    return ("java", "-Xcheck:jni", f"-Djava.library.path={folder}", "-cp", str(folder))


@pytest.fixture(scope="session")
def go(environment, tmp_path_factory):
    """The environment of Go, whose cache is that of this run."""
    need("go")
    return {**environment, "GOCACHE": str(tmp_path_factory.mktemp("go")), "GOPROXY": "off"}


@pytest.fixture(scope="session")
def streams(request, tmp_path_factory):
    """The program of the stream in a language."""

    @functools.cache
    def program(language):
        target = tmp_path_factory.mktemp(language) / "stream"
        if language == "c":
            return (request.getfixturevalue("compile_c")(HERE / "examples/stream.c", target),)
        if language == "java":
            return (*request.getfixturevalue("java"), "Demo", "stream")
        run("go", "build", "-o", target, ".", cwd=HERE / "go", env=request.getfixturevalue("go"))
        return (target,)

    return program


@pytest.fixture(scope="session")
def texts():
    """Texts in English and Chinese on one line each, in the order of their times."""
    rows = [*made_documents(500), *read_jsonl(ROOT / "examples/news.jsonl"), *read_jsonl(ROOT / "testdata/golden/texts.jsonl")]
    rows = [{"id": row["id"], "text": " ".join(row["text"].splitlines()).replace("\t", " ")} for row in rows]
    return [{**row, "at": 1_700_000_000 + 30 * at, "row": at} for at, row in enumerate(rows)]


def verdict_rows(output):
    rows = (line.split("\t") for line in output.decode().splitlines())
    return [(name, kept, float(similarity), method) for name, kept, similarity, method in rows]


def test_header_declares_exactly_what_is_exported(library):
    need("nm")
    symbols = run("nm", "-D", "--defined-only", library / "liblookalike.so.1").decode()
    # With the features of the whole workspace, a crate of object stores exports names of its own.
    exported = {name for name in re.findall(r" T (\w+)", symbols) if not name.startswith("crc_fast_")}
    header = re.sub(r"/\*.*?\*/", "", (library.parent / "include/lookalike.h").read_text(), flags=re.S)
    assert exported == set(re.findall(r"\b(lookalike_\w+)\(", header)) != set()
    assert "liblookalike.so.1" in run("readelf", "-d", library / "liblookalike.so.1").decode()


@pytest.mark.parametrize("checker", ["sanitizers", "valgrind"])
def test_wrong_calls_are_refused(compile_c, environment, tmp_path, checker):
    if checker == "sanitizers":
        flags = ("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
        program = (compile_c(HERE / "misuse.c", tmp_path / "misuse", *flags),)
    else:
        # Optimised Rust compares parts of values that it does not use, which is no error. The sanitizers look at the rest.
        checks = ("--undef-value-errors=no", "--leak-check=full", "--errors-for-leak-kinds=definite")
        valgrind = (need("valgrind"), "--quiet", "--error-exitcode=9", *checks)
        program = (*valgrind, compile_c(HERE / "misuse.c", tmp_path / "misuse", "-g"))
    assert run(*program, env=environment) == b"0 wrong\n"


@pytest.mark.parametrize("language", ["c", "java", "go"])
@pytest.mark.parametrize(("settings", "options"), SETTINGS)
def test_verdicts_are_those_of_the_command(command, environment, streams, texts, tmp_path, language, settings, options):
    rows = "".join(f"{row['id']}\t{'' if 'window_documents' in settings else row['at']}\t{row['text']}\n" for row in texts)
    output = run(*streams(language), json.dumps(settings), input=rows.encode(), env=environment)
    write_jsonl(tmp_path / "in.jsonl", texts)
    removed = ("--removed", tmp_path / "removed.tsv", "--forms", "off", "--quiet")
    command("dedup", tmp_path / "in.jsonl", "-o", tmp_path / "out.jsonl", *removed, *options)
    lines = (tmp_path / "removed.tsv").read_text().splitlines()[1:]
    expected = [(row[0], row[1], float(row[2]), row[3]) for row in (line.split("\t") for line in lines)]
    assert len(expected) > 20
    assert verdict_rows(output) == expected


def test_lines_are_deduplicated_as_by_the_command(command, environment, compile_c, texts, tmp_path):
    program = compile_c(HERE / "examples/dedup.c", tmp_path / "dedup")
    (tmp_path / "in.txt").write_text("".join(row["text"] + "\n" for row in texts if row["text"].strip()))
    with open(tmp_path / "in.txt", "rb") as lines:
        kept = run(program, '{"threshold": 0.6}', stdin=lines, env=environment)
    options = ("--threshold", "0.6", "--forms", "off", "--quiet")
    command("dedup", tmp_path / "in.txt", "-o", tmp_path / "out.txt", *options)
    assert kept == (tmp_path / "out.txt").read_bytes()
    refused = subprocess.run([program, '{"threshold": 7}'], capture_output=True, input=b"", env=environment)
    assert refused.returncode == 2 and b"threshold" in refused.stderr


@pytest.mark.parametrize("bits", [64, 128])
def test_values_of_java_are_those_of_the_command(command, environment, java, texts, tmp_path, bits):
    settings = json.dumps({"changes": [f"simhash.bits={bits}"]})
    lines = "".join(row["text"] + "\n" for row in texts).encode()
    sketches = [line.split("\t") for line in run(*java, "Demo", "sketch", settings, input=lines, env=environment).decode().split("\n")[:-1]]
    write_jsonl(tmp_path / "in.jsonl", texts)
    for column, method in enumerate(["simhash", "minhash"]):
        answer = command("fingerprint", tmp_path / "in.jsonl", "--method", method, "--set", f"simhash.bits={bits}", "--quiet")
        values = [line.split("\t")[1] for line in answer.stdout.splitlines()[1:]]
        given = [row[column] if column or row[0] == "-" else row[0][32 - bits // 4 :] for row in sketches]
        assert given == [value.replace("-", "") if column else value for value in values]


def test_comparisons_of_java_are_those_of_the_command(command, environment, java, texts):
    for a, b in [(5, 6), (502, 503), (565, 566)]:
        both = [texts[a]["text"], texts[b]["text"]]
        given = run(*java, "Demo", "compare", "{}", input="\n".join(both).encode(), env=environment).decode()
        assert given + "\n" == command("compare", "--json", "--literal", "--", *both).stdout


def test_java_streams_serve_threads_and_refuse_wrong_calls(environment, java, texts):
    texts = [row for row in texts if row["text"].strip()]
    rows = "".join(f"{row['id']}\t\t{row['text']}\n" for row in texts).encode()
    kept, *refusals = run(*java, "Demo", "check", "{}", input=rows, env=environment).decode().splitlines()
    assert int(kept) == len(la.dedup(texts, forms="off").kept_rows)
    assert refusals == [
        "Stream is closed: create another one",
        "text is NULL: give a valid pointer",
        "text is not valid UTF-8: byte 0 is 0xff; convert the text to UTF-8 before the call",
        "the threshold 7 is not above 0 and at most 1: give a similarity such as 0.8",
    ]


class Document(ctypes.Structure):
    _fields_ = [
        ("text", ctypes.c_char_p),
        ("text_length", ctypes.c_size_t),
        ("id", ctypes.c_char_p),
        ("id_length", ctypes.c_size_t),
        ("time", ctypes.c_int64),
    ]


class Verdict(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_bool) for name in ("is_duplicate", "is_late", "has_seq")),
        ("seq", ctypes.c_uint64),
        ("similarity", ctypes.c_double),
        ("method", ctypes.c_char_p),
        ("of", ctypes.c_char_p),
        ("of_length", ctypes.c_size_t),
    ]


class CStream:
    """A stream by the library itself."""

    def __init__(self, library, settings=None, path=None):
        self.library, self.pointer = ctypes.CDLL(str(library / "liblookalike.so.1")), ctypes.c_void_p()
        if path is None:
            read, given = ctypes.c_void_p(), json.dumps(settings).encode()
            self.call("settings_read", given, ctypes.c_size_t(len(given)), ctypes.byref(read))
            self.call("stream_new", read, ctypes.byref(self.pointer))
            self.library.lookalike_settings_free(ctypes.byref(read))
        else:
            self.call("stream_open", *self.name(path), ctypes.byref(self.pointer))

    def call(self, name, *arguments):
        error = ctypes.c_void_p()
        status = getattr(self.library, f"lookalike_{name}")(*arguments, ctypes.byref(error))
        assert status == 0, name

    def name(self, path):
        return bytes(path), ctypes.c_size_t(len(bytes(path)))

    def save(self, path):
        self.call("stream_save", self.pointer, *self.name(path))

    def insert(self, row):
        text, name, verdict = row["text"].encode(), row["id"].encode(), Verdict()
        document = Document(text, len(text), name, len(name), row["at"] * 1_000_000)
        self.call("stream_insert", self.pointer, ctypes.byref(document), ctypes.byref(verdict))
        answer = (verdict.of.decode() if verdict.is_duplicate else None, verdict.seq)
        return answer


def test_saved_streams_are_those_of_python(library, texts, tmp_path):
    half, path = len(texts) // 2, tmp_path / "stream.arrow"
    options = {"threshold": 0.6, "window": "1h", "skew": "5m", "changes": ["ngram=3"]}
    stream = CStream(library, options)
    of_python = la.Stream(threshold=0.6, window="1h", skew=300, recipe=la.Recipe("default", ngram=3))
    for row in texts[:half]:
        answer = of_python.insert(row["text"], row["id"], row["at"])
        assert stream.insert(row) == (answer.of, answer.seq)
    stream.save(path)
    of_python.save(tmp_path / "python.arrow")
    assert la.Stream.open(path).kept_rows() == of_python.kept_rows()
    others = [CStream(library, path=path), CStream(library, path=tmp_path / "python.arrow")]
    opened = la.Stream.open(path)
    for row in texts[half:]:
        answer = opened.insert(row["text"], row["id"], row["at"])
        assert [other.insert(row) for other in others] == [(answer.of, answer.seq)] * 2


def test_of_equal_documents_of_many_threads_one_is_kept(library, texts):
    # Empty texts match nothing.
    stream, answers, texts = CStream(library, {}), [], [row for row in texts if row["text"].strip()]

    def insert():
        answers.extend(stream.insert(row) for row in texts)

    threads = [threading.Thread(target=insert) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    kept = sum(of is None for of, _ in answers)
    assert kept == len(la.dedup(texts, forms="off").kept_rows)
    assert sorted(seq for _, seq in answers) == list(range(4 * len(texts)))


@pytest.mark.parametrize("page", ["docs/c.md", "docs/zh/c.md"])
@pytest.mark.parametrize("language", ["c", "java"])
def test_programs_of_the_page_print_what_it_says(request, environment, tmp_path, page, language):
    [shown], [program] = blocks_of(page, "text"), blocks_of(page, language)
    if language == "c":
        (tmp_path / "page.c").write_text(program)
        output = run(request.getfixturevalue("compile_c")(tmp_path / "page.c", tmp_path / "page"), env=environment)
    else:
        *start, classes = request.getfixturevalue("java")
        (tmp_path / "Page.java").write_text(program)
        run("javac", "-cp", classes, "-d", tmp_path, tmp_path / "Page.java")
        output = run(*start, f"{classes}:{tmp_path}", "Page", env=environment)
    assert output.decode() == shown
