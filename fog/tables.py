"""Append-only tables of a run directory: CSV for people, Parquet for what probes record.

Both can be cut back to an earlier point, because a run resumed from a checkpoint must forget the
rows that were written after it.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np

SCHEMA_VERSION = 2


class CsvTable:
    """A CSV file that grows by whole rows, each flushed, so that a killed run keeps what it had."""

    def __init__(self, path: Path, columns: tuple[str, ...]) -> None:
        self.path = path
        self.columns = columns
        is_new = not path.exists() or path.stat().st_size == 0
        self._file = path.open("a", newline="")
        if is_new:
            self._write(columns)

    def append(self, row: Mapping[str, Any]) -> None:
        """Add one row; columns it leaves out stay empty.

        Raises:
            ValueError: the row has a column that the table lacks.
        """
        if unknown := set(row) - set(self.columns):
            raise ValueError(f"{self.path.name} has no column {sorted(unknown)}")
        self._write([_cell(row.get(column)) for column in self.columns])

    def _write(self, cells: Any) -> None:
        line = io.StringIO()
        csv.writer(line, lineterminator="\n").writerow(cells)
        self._file.write(line.getvalue())
        self._file.flush()

    def close(self) -> None:
        """Close the file; the table takes no more rows."""
        self._file.close()


def _cell(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, bool | np.bool_):
        return int(value)
    if isinstance(value, float | np.floating):
        return repr(float(value))
    return value


def truncate(path: Path, offset: int) -> None:
    """Cut a table back to the `offset` that a checkpoint remembered."""
    if path.exists() and path.stat().st_size > offset:
        with path.open("r+") as file:
            file.truncate(offset)


class ProbeTable:
    """A Parquet table written in parts, one file for each environment step that recorded to it."""

    def __init__(self, directory: Path, name: str) -> None:
        self.name = name
        self._directory = directory / name

    def write(self, env_step: int, columns: Mapping[str, Any]) -> Path:
        """Write one part: columns of equal length, with `env_step` added as the first.

        A second part of the same step (before and after a reset, say) gets a number of its own.
        """
        import pyarrow
        import pyarrow.parquet

        arrays = {name: _column(values) for name, values in columns.items()}
        lengths = {len(values) for values in arrays.values()}
        if len(lengths) != 1:
            raise ValueError(f"table {self.name}: columns of different lengths {sorted(lengths)}")
        rows = lengths.pop()
        table = pyarrow.table({"env_step": np.full(rows, env_step, np.int64), **arrays})
        table = table.replace_schema_metadata({"fog.schema": str(SCHEMA_VERSION)})
        self._directory.mkdir(parents=True, exist_ok=True)
        taken = len(list(self._directory.glob(f"{env_step:012d}-*.parquet")))
        path = self._directory / f"{env_step:012d}-{taken:02d}.parquet"
        partial = path.with_suffix(".partial")
        floats, others = _leaves(table.schema)
        pyarrow.parquet.write_table(
            table,
            partial,
            compression="zstd",
            use_dictionary=others,
            use_byte_stream_split=floats,
        )
        partial.replace(path)
        return path


def _column(values: Any) -> Any:
    """An array, or a list of vectors: matrices become list columns, one array per row in pandas."""
    if isinstance(values, list) and values and isinstance(values[0], np.ndarray):
        return values
    array = np.asarray(values)
    return list(array) if array.ndim > 1 else array


def _leaves(schema: Any) -> tuple[list[str], list[str]]:
    """Parquet's names of the floating-point columns and of the others.

    Measured numbers hardly repeat: a dictionary of them made files 60 % larger than split bytes.
    """
    from pyarrow import types

    floats: list[str] = []
    others: list[str] = []
    for field in schema:
        is_list = types.is_list(field.type)
        leaf = field.type.value_type if is_list else field.type
        path = f"{field.name}.list.element" if is_list else field.name
        (floats if types.is_floating(leaf) else others).append(path)
    return floats, others


_PART = re.compile(r"^(\d{12})-\d+\.(parquet|partial)$")


def probe_parts(directory: Path, env_step: int) -> list[str]:
    """The parts of all tables that were recorded at `env_step`, as `table/part`."""
    found = directory.glob(f"*/{env_step:012d}-*.parquet")
    return sorted(str(path.relative_to(directory)) for path in found)


def truncate_probe_tables(
    directory: Path, env_step: int, parts: Collection[str] | None = None
) -> None:
    """Remove the parts of every table that came after a checkpoint, and unfinished ones.

    Args:
        directory: where the tables are.
        env_step: the checkpoint's.
        parts: what `probe_parts` said then: the checkpoint may stand in the middle of the step.
            None keeps all parts of the step.
    """
    for path in directory.glob("*/*"):
        part = _PART.match(path.name)
        if part is None:
            continue
        at = int(part[1])
        later = at > env_step or (
            at == env_step and parts is not None and str(path.relative_to(directory)) not in parts
        )
        if later or part[2] == "partial":
            path.unlink()
