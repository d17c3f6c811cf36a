"""Tables in temporary or shared Arrow files, written one part after another and read without a copy."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Iterable, NamedTuple, Optional

from ._files import FilePath


class SpooledFile(NamedTuple):
    """A file of a spool: its name in the folder, and its number of rows."""

    name: str
    rows: int


class TableSpool:
    """Writes tables to the Arrow files ``00000.arrow``, ``00001.arrow`` and so on of a folder.

    A file has one schema, so a table of another schema begins the next file. Files are on disk after :meth:`close`; a
    spool that is left by an exception leaves files that no list names.
    """

    def __init__(self, folder: FilePath) -> None:
        self._folder = Path(folder)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._file: Any = None
        self._writer: Any = None
        self._schema: Any = None
        self._rows = 0
        #: The complete files.
        self.files: list[SpooledFile] = []

    def write(self, table: Any) -> None:
        """Appends the rows of a table."""
        import pyarrow as pa

        if self._writer is not None and not self._schema.equals(table.schema):
            self.end_file()
        if self._writer is None:
            self._file = open(self._folder / self._next_name(), "wb")
            self._schema = table.schema
            self._writer = pa.ipc.new_file(self._file, table.schema)
        self._writer.write_table(table)
        self._rows += table.num_rows

    def end_file(self) -> Optional[SpooledFile]:
        """Completes the current file, if there is one, and returns it; the next table begins another one."""
        if self._writer is None:
            return None
        self._writer.close()
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        ended = SpooledFile(self._next_name(), self._rows)
        self.files.append(ended)
        self._file = self._writer = self._schema = None
        self._rows = 0
        return ended

    def read(self) -> Any:
        """Completes the current file and returns all rows as a table in mapped memory; None if there are no files."""
        self.end_file()
        return read_mapped(self._folder / file.name for file in self.files)

    def _next_name(self) -> str:
        return f"{len(self.files):05d}.arrow"


def read_mapped(paths: Iterable[FilePath]) -> Any:
    """Returns the rows of Arrow files as a table in mapped memory; None without a file."""
    import pyarrow as pa

    tables = [pa.ipc.open_file(pa.memory_map(os.fspath(path))).read_all() for path in paths]
    return pa.concat_tables(tables, promote_options="permissive") if tables else None


def fields_of_settings(keep: Any, *names: Optional[str]) -> list[str]:
    """Returns the fields beside text and id that settings read: those of a rule of ``keep``, and the given ones."""
    rules = [rule.partition(":")[2].strip() for rule in keep.split(",")] if isinstance(keep, str) else []
    return list(dict.fromkeys(name for name in [*rules, *names] if name))
