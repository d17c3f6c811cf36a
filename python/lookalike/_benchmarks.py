"""Benchmarks as the engine reads them: paths of files, and tables as temporary files."""

from __future__ import annotations

import glob
import json
import os
import tempfile
from collections.abc import Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Iterator, NoReturn, Optional

from . import _arguments as arguments
from ._data import make_rereadable, stream_of
from ._errors import InputError, LookalikeError, MissingFileError, SettingError
from ._paths import is_path, is_url

#: Name of a benchmark that is given as a table without a name.
_UNNAMED = "benchmark"

#: Directory of the tables. It comes before the name of a table that a file has, too.
_FOLDER = "tables"

#: Paths that a refusal lists.
_SHOWN_PATHS = 3

#: Roles of the fields of a benchmark.
_ROLES = ("question", "choices", "answer", "passage", "id")


class BenchmarkPaths:
    """The paths of benchmarks, of which some are temporary files."""

    def __init__(self, paths: list[str], folder: str) -> None:
        self.paths = paths
        self._prefix = os.path.join(folder, _FOLDER, "")

    def shown(self, text: str) -> str:
        """Returns a text without the directory of the temporary files."""
        return text.replace(self._prefix, "")

    def shown_summary(self, told: str) -> dict[str, Any]:
        """Returns a summary of the engine without that directory."""
        summary: dict[str, Any] = json.loads(told)
        for benchmark in summary["benchmarks"]:
            for row in benchmark["rejected_rows"]:
                row["place"] = self.shown(row["place"])
        return summary


@contextmanager
def benchmark_paths(benchmarks: Any) -> Iterator[BenchmarkPaths]:
    """Yields the paths of benchmarks; tables are temporary files until the block ends. Errors of the block that name
    such a file name the benchmark instead."""
    with tempfile.TemporaryDirectory(prefix="lookalike-") as folder:
        paths, tables = _divide(benchmarks)
        if tables:
            paths.append(os.path.join(folder, _FOLDER))
        for name, rows in tables:
            _write(Path(folder, _FOLDER), name, rows)
        opened = BenchmarkPaths(paths, folder)
        try:
            yield opened
        except LookalikeError as error:
            if opened.shown(str(error)) == str(error):
                raise
            raise type(error)(opened.shown(str(error))) from None


def _divide(benchmarks: Any) -> tuple[list[str], list[tuple[str, Any]]]:
    """Returns the paths, and the tables with their names."""
    if isinstance(benchmarks, Mapping):
        if not benchmarks:
            raise InputError("benchmarks has no benchmark: give a path, a table, or several of these")
        return [], [(_checked_name(name), rows) for name, rows in benchmarks.items()]
    if isinstance(benchmarks, str) or is_path(benchmarks):
        benchmarks = [benchmarks] if isinstance(benchmarks, (str, os.PathLike)) else benchmarks
    elif not isinstance(benchmarks, (list, tuple)) or benchmarks and isinstance(benchmarks[0], Mapping):
        benchmarks = [benchmarks]
    if not benchmarks:
        raise InputError("benchmarks has no benchmark: give a path, a table, or several of these")
    paths = [os.fspath(one) for one in benchmarks if isinstance(one, (str, os.PathLike))]
    if len(paths) == len(benchmarks) and not any(map(_is_named_file, paths)):
        _refuse_absent(paths)
    tables = [one for one in benchmarks if not isinstance(one, (str, os.PathLike))]
    numbered = [f"{_UNNAMED}{number}" for number in range(1, len(tables) + 1)]
    return paths, list(zip(numbered if len(tables) > 1 else [_UNNAMED], tables))


def _is_named_file(path: str) -> bool:
    """Returns True for a URL, and for a path or a pattern of something that is there."""
    return is_url(path) or os.path.exists(path) or glob.has_magic(path) and bool(glob.glob(path, recursive=True))


def _refuse_absent(paths: list[str]) -> NoReturn:
    shown = ", ".join(map(repr, paths[:_SHOWN_PATHS])) + (", …" if len(paths) > _SHOWN_PATHS else "")
    told = f"there is no file {shown}" if len(paths) == 1 else f"there is none of the files {shown}"
    raise MissingFileError(
        f"benchmarks: {told}: give paths, patterns, directories or URLs, or benchmarks as tables or lists of dictionaries",
        paths[0],
    )


def _checked_name(name: Any) -> str:
    parts = str(name).split("/")
    if not isinstance(name, str) or any(part.strip() != part or part[:1] in ("", ".", "_") for part in parts):
        raise InputError(f"benchmarks has the name {name!r}: give names such as 'quiz' or 'quiz/test'")
    return name


def _write(folder: Path, name: str, rows: Any) -> None:
    """Writes a table as a file."""
    what = f"benchmarks[{name!r}]"
    if isinstance(rows, (str, bytes, os.PathLike)):
        raise InputError(f"{what} is {rows!r}: give a table, or the path without a name")
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = make_rereadable(rows)
    if isinstance(rows, (list, tuple)):
        lines = [_line(row, f"{what}[{at}]") for at, row in enumerate(rows)]
        path.with_name(path.name + ".jsonl").write_text("".join(lines), encoding="utf-8")
        return
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = stream_of(rows, ["question"], what)
    table = table.read_all() if isinstance(table, pa.RecordBatchReader) else table
    pq.write_table(table, path.with_name(path.name + ".parquet"))


def _line(row: Any, what: str) -> str:
    if not isinstance(row, Mapping):
        raise InputError(f"{what} is of the type {type(row).__name__}: give a dictionary of a question and its answer")
    try:
        return json.dumps(row, ensure_ascii=False, default=_plain) + "\n"
    except (TypeError, ValueError) as error:
        raise InputError(f"{what} cannot be read: {error}") from error


def _plain(value: Any) -> Any:
    """Returns a value that JSON does not have, such as an array, as one that it has."""
    return value.tolist() if hasattr(value, "tolist") else str(value)


def named_fields(fields: Any) -> Optional[str]:
    """Returns the fields of benchmarks as the command takes them."""
    if fields is None or isinstance(fields, str):
        return fields
    if not isinstance(fields, Mapping):
        arguments.refuse("fields", fields, 'a dictionary such as {"question": "FIELD"}')
    parts = []
    for role, names in fields.items():
        if role not in _ROLES:
            raise SettingError(f"fields names the field of {role!r}; known are {', '.join(_ROLES)}")
        names = arguments.names(f"fields[{role!r}]", names)
        if any(mark in name for name in names for mark in ",+"):
            raise SettingError(f"fields[{role!r}] is {names!r}: give a field without a comma and a plus sign")
        parts.append(f"{role}={'+'.join(names)}")
    return ",".join(parts)
