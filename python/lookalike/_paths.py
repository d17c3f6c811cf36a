"""Tables from files: paths, patterns, directories and URLs.

Files are read into memory with pyarrow. The command reads any amount, more formats and more encodings.
"""

from __future__ import annotations

import io
import os
import re
from typing import Any, Callable, Iterable, NoReturn, Union

from ._errors import InputError, MissingFileError, SettingError

FilePath = Union[str, "os.PathLike[str]"]

#: Bytes of a block of JSON lines; a row must fit into one.
_BLOCK = 64 << 20

_COMPRESSIONS = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}


def is_path(data: Any) -> bool:
    """Returns True for an ``os.PathLike``, a list of these, and a URL. Other strings are texts."""
    if isinstance(data, str):
        return is_url(data)
    if isinstance(data, os.PathLike):
        return True
    return isinstance(data, (list, tuple)) and bool(data) and all(isinstance(one, os.PathLike) for one in data)


def is_url(text: str) -> bool:
    """Returns True for a URL: a scheme, ``://``, and no white space."""
    scheme, mark, _ = text.partition("://")
    return bool(mark) and scheme.isascii() and scheme.replace("+", "").isalnum() and not any(map(str.isspace, text))


def refuse_string(what: str, text: str) -> NoReturn:
    """Refuses a string where a list of texts or a path is meant."""
    shown = repr(text)
    if len(shown) > 40:
        raise InputError(f"{what} is a string: give [text] for one text, or pathlib.Path(...) for files")
    raise InputError(f"{what} is the string {shown}: give [{shown}] for one text, or pathlib.Path({shown}) for files")


def read_source(data: Any, source: Any) -> Any:
    """Returns the data, or the rows of the files that ``source`` names in their place."""
    if source is None:
        return data
    if data is not None:
        raise SettingError("data and source were both given: give the data, or the files as source")
    several = source if isinstance(source, (list, tuple)) else [source]
    if not several or not all(isinstance(one, (str, os.PathLike)) for one in several):
        raise SettingError(f"source is {source!r}: give a path, a pattern, a directory or a URL, or a list of these")
    return read_paths(several, "source")


def read_paths(data: Any, what: str = "data") -> Any:
    """Returns the rows of files as a table, in the order of the paths; those of a pattern or directory are sorted."""
    import pyarrow as pa

    named = [data] if isinstance(data, (str, os.PathLike)) else data
    paths = [path for one in named for path in _expand(os.fspath(one), what)]
    tables = [_read(path, what) for path in paths]
    return pa.concat_tables(tables, promote_options="permissive") if len(tables) > 1 else tables[0]


def _expand(path: str, what: str) -> list[str]:
    if path.startswith(("http://", "https://")):
        return [path]
    if "://" in path:
        return _expand_url(path, what)
    if os.path.isdir(path):
        found = sorted(os.path.join(path, name) for name in os.listdir(path) if _reader_of(name))
        if not found:
            raise InputError(f"{what} is the directory {path}, which has no file of a known format ({_known()})")
        return found
    if os.path.exists(path):
        return [path]
    import glob

    found = sorted(glob.glob(path, recursive=True))
    if not found:
        raise MissingFileError(
            f"{what} is {path!r}, and no file has that name: give a path, a pattern, a URL, a table or a list of texts", path
        )
    return found


def _expand_url(url: str, what: str) -> list[str]:
    """Returns the objects of a store that a URL names: one, those of a pattern, or those below a prefix."""
    from pyarrow import fs

    scheme, _, rest = url.partition("://")
    is_pattern = any(mark in rest for mark in "*?[")
    # The part before the first pattern is the place that is listed.
    place = re.split(r"[*?\[]", rest, maxsplit=1)[0].rpartition("/")[0] if is_pattern else rest
    system, inner = fs.FileSystem.from_uri(f"{scheme}://{place}")
    if not is_pattern and system.get_file_info(inner).type != fs.FileType.Directory:
        return [url]
    infos = system.get_file_info(fs.FileSelector(inner, recursive=is_pattern, allow_not_found=True))
    names = [info.path.removeprefix(inner).lstrip("/") for info in infos if info.type == fs.FileType.File]
    base = f"{scheme}://{place.rstrip('/')}/"
    if is_pattern:
        wanted = _pattern_of(rest.removeprefix(place).lstrip("/"))
        found = sorted(base + name for name in names if wanted.fullmatch(name))
    else:
        found = sorted(base + name for name in names if _reader_of(name))
    if not found:
        raise InputError(f"{what} is {url!r}, and the store has no object of that name or pattern in a known format")
    return found


def _pattern_of(pattern: str) -> re.Pattern[str]:
    """Returns a pattern of names as a regular expression: ``*`` stays within a part of a path, ``**`` does not."""
    parts = re.split(r"(\*\*/?|\*|\?|\[[^\]]+\])", pattern)
    marks = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return re.compile("".join(marks.get(part, part if part.startswith("[") else re.escape(part)) for part in parts))


def _read(path: str, what: str) -> Any:
    reader = _reader_of(path)
    if reader is None:
        raise InputError(f"{what} is {path}, whose format is unknown by its extension: give {_known()}")
    try:
        with _open(path) as file:
            return reader(file)
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {path}: {error}") from error


def _open(path: str) -> Any:
    import pyarrow as pa

    compression = next((kind for ending, kind in _COMPRESSIONS.items() if path.endswith(ending)), None)
    if path.startswith(("http://", "https://")):
        import urllib.request

        with urllib.request.urlopen(path) as answer:
            source: Any = io.BytesIO(answer.read())
    elif "://" in path:
        from pyarrow import fs

        system, inner = fs.FileSystem.from_uri(path)
        source = system.open_input_file(inner)
    else:
        source = pa.OSFile(path)
    if compression is None:
        return source
    return pa.input_stream(source, compression=compression)


def _reader_of(path: str) -> Union[Callable[[Any], Any], None]:
    plain = path.split("?")[0]
    for ending in _COMPRESSIONS:
        plain = plain.removesuffix(ending)
    return _READERS.get(os.path.splitext(plain)[1].lower())


def _known() -> str:
    return ", ".join(_READERS) + ", each also with " + " or ".join(_COMPRESSIONS)


def _parquet(file: Any) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    # Parquet is read at any place, which a compressed stream does not allow.
    return pq.read_table(file if file.seekable() else pa.BufferReader(file.read()))


def _arrow(file: Any) -> Any:
    import pyarrow as pa

    # The name does not tell a file from a stream.
    buffer = pa.py_buffer(file.read())
    if buffer[:6].to_pybytes() == b"ARROW1":
        return pa.ipc.open_file(buffer).read_all()
    return pa.ipc.open_stream(buffer).read_all()


def _jsonl(file: Any) -> Any:
    import pyarrow.json

    return pyarrow.json.read_json(file, pyarrow.json.ReadOptions(block_size=_BLOCK))


def _delimited(delimiter: str) -> Callable[[Any], Any]:
    def read(file: Any) -> Any:
        import pyarrow.csv

        parse = pyarrow.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
        return pyarrow.csv.read_csv(file, parse_options=parse)

    return read


def _lines(file: Any) -> Any:
    import pyarrow as pa

    content = file.read().decode("utf-8-sig")
    lines: Iterable[str] = content.split("\n")[: -1 if content.endswith("\n") else None]
    return pa.table({"text": pa.array([line.removesuffix("\r") for line in lines], pa.large_string())})


_READERS: dict[str, Callable[[Any], Any]] = {
    ".parquet": _parquet,
    ".arrow": _arrow,
    ".arrows": _arrow,
    ".feather": _arrow,
    ".ipc": _arrow,
    ".jsonl": _jsonl,
    ".ndjson": _jsonl,
    ".csv": _delimited(","),
    ".tsv": _delimited("\t"),
    ".txt": _lines,
}
