"""Append-only tables of a run directory: CSV for people, Parquet for what probes record.

Both note what they write in the run's ledger, because a run resumed from a checkpoint must forget
the rows that were written after it, and must find those before it as they were.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fog.records.ledger import Ledger
from fog.records.schema import VERSION


class CsvTable:
    """A CSV file of complete rows, each flushed when appended, so that a killed run keeps them."""

    def __init__(self, path: Path, columns: tuple[str, ...], ledger: Ledger) -> None:
        self.path = path
        self.columns = columns
        self._ledger = ledger
        is_new = not path.exists() or path.stat().st_size == 0
        self._file = path.open("ab")
        if is_new:
            self._write(columns)

    def append(self, row: Mapping[str, Any]) -> None:
        """Add one row; columns it leaves out stay empty."""
        if unknown := set(row) - set(self.columns):
            raise ValueError(f"{self.path.name} has no column {sorted(unknown)}")
        self._write([_cell(row.get(column)) for column in self.columns])

    def _write(self, cells: Any) -> None:
        line = io.StringIO()
        csv.writer(line, lineterminator="\n").writerow(cells)
        data = line.getvalue().encode()
        self._file.write(data)
        self._file.flush()
        self._ledger.extend(self.path, data)

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


class ProbeTable:
    """A Parquet table written in parts, one file for each environment step that recorded to it."""

    def __init__(self, directory: Path, name: str, ledger: Ledger | None = None) -> None:
        self.name = name
        self._directory = directory / name
        self._ledger = ledger

    def write(self, env_step: int, columns: Mapping[str, Any]) -> Path:
        """Write one part: columns of equal length, with `env_step` added as the first.

        A second part of the same step (such as before and after a reset) gets another number.
        """
        import pyarrow

        arrays = {name: _column(values) for name, values in columns.items()}
        lengths = {len(values) for values in arrays.values()}
        if len(lengths) != 1:
            raise ValueError(f"table {self.name}: columns of different lengths {sorted(lengths)}")
        rows = lengths.pop()
        table = pyarrow.table({"env_step": np.full(rows, env_step, np.int64), **arrays})
        table = table.cast(_as_read_back(table.schema))
        self._directory.mkdir(parents=True, exist_ok=True)
        taken = len(list(self._directory.glob(f"{env_step:012d}-*.parquet")))
        path = self._directory / f"{env_step:012d}-{taken:02d}.parquet"
        partial = path.with_suffix(".partial")
        data = part_bytes(table)
        partial.write_bytes(data)
        partial.replace(path)
        if self._ledger is not None:
            self._ledger.extend(path, data)
        return path


def part_bytes(table: Any) -> bytes:
    """A pyarrow table as the file of a part: the same rows give the same bytes."""
    import pyarrow
    import pyarrow.parquet

    sink = pyarrow.BufferOutputStream()
    pyarrow.parquet.write_table(table, sink, **encoding(table.schema))
    data: bytes = sink.getvalue().to_pybytes()
    return data


def encoding(schema: Any) -> dict[str, Any]:
    """How columns are written: small, and with a checksum in every page.

    Measured numbers hardly repeat: a dictionary of them made files 60 % larger than split bytes.
    """
    floats, others = _leaves(schema)
    return {
        "compression": "zstd",
        "use_dictionary": others,
        "use_byte_stream_split": floats,
        "write_page_checksum": True,
    }


def _as_read_back(schema: Any) -> Any:
    """The schema of a table that was written and read: the entries of lists have another name.

    Written like this, a table that is read and written again has the same bytes.
    """
    import pyarrow

    fields = []
    for field in schema:
        if pyarrow.types.is_list(field.type):
            element = pyarrow.field("element", field.type.value_type)
            field = field.with_type(pyarrow.list_(element))
        fields.append(field)
    return pyarrow.schema(fields, metadata={"fog.schema": str(VERSION)})


def _column(values: Any) -> Any:
    """An array, or a list of vectors: matrices become list columns, one array per row in pandas."""
    if isinstance(values, list) and values and isinstance(values[0], np.ndarray):
        return values
    array = np.asarray(values)
    return list(array) if array.ndim > 1 else array


def _leaves(schema: Any) -> tuple[list[str], list[str]]:
    """Parquet's names of the floating-point columns and of the others."""
    from pyarrow import types

    floats: list[str] = []
    others: list[str] = []
    for field in schema:
        is_list = types.is_list(field.type)
        leaf = field.type.value_type if is_list else field.type
        path = f"{field.name}.list.element" if is_list else field.name
        (floats if types.is_floating(leaf) else others).append(path)
    return floats, others
