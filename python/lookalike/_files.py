"""Files that are written as a whole, and temporary inputs for the engine."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import IO, Any, Iterator, Union

import numpy as np

from . import _engine
from ._errors import OutputError

FilePath = Union[str, "os.PathLike[str]"]


@contextmanager
def atomic_file(path: FilePath) -> Iterator[IO[bytes]]:
    """Yields a file that appears under its name when the block ends, after it is on disk; never after an error."""
    import tempfile
    from pathlib import Path

    target = Path(path)
    try:
        descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    except OSError as error:
        raise OutputError(f"cannot write {target}: {error.strerror}") from error
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        # mkstemp gives the file to its owner alone.
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@contextmanager
def parquet_input(table: Any) -> Iterator[list[str]]:
    """Yields the paths of a table as a temporary Parquet file, for the parts of the engine that read files."""
    import tempfile

    import pyarrow.parquet as pq

    with tempfile.TemporaryDirectory(prefix="lookalike-") as folder:
        path = os.path.join(folder, "rows.parquet")
        pq.write_table(table, path, compression="NONE", use_dictionary=False)
        yield [path]


def save_fingerprints(path: FilePath, codes: np.ndarray, ids: np.ndarray, bits: int, distance: int) -> None:
    """Writes codes, rows of one or two words, as an index directory of bare fingerprints."""
    import pyarrow as pa

    texts = [f"{code:x}" for code in whole_codes(codes)]
    table = pa.table({"id": pa.array([str(id) for id in ids.tolist()]), "fingerprint": pa.array(texts, pa.string())})
    settings = {
        "recipe": None,
        "bits": bits,
        "distance": distance,
        "plan": "auto",
        "texts": False,
        "distance_only": True,
        "passages": None,
        "replace": True,
    }
    with parquet_input(table) as inputs:
        _engine.index_build(os.fspath(path), inputs, settings, fingerprint_reading())


def whole_codes(codes: np.ndarray) -> list[int]:
    """Returns rows of words, the lower word first, as whole numbers."""
    if codes.ndim == 1 or codes.shape[1] == 1:
        return [int(code) for code in codes.reshape(-1).tolist()]
    return [low | high << 64 for low, high in codes.tolist()]


def fingerprint_reading(threads: Any = None) -> dict[str, Any]:
    """Returns the settings of the engine for rows with the fields ``id`` and ``fingerprint``."""
    reading = {"text": ["text"], "id": "id", "id_row": False, "features": None}
    return {"reading": reading, "fingerprint": "fingerprint", "strict": True, "threads": threads}
