"""Probe tables of one run: only the requested columns and newest measurements.

A table is `joined.parquet` in a run that has ended, one Parquet file per measurement in one that
has not, and anything in between in one that was killed while it joined them: parts that the joined
file names are in it. Each reader returns what it can read, with sentences about what it cannot.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.compute
import pyarrow.parquet

from diagnostics.runs.files import one_line
from diagnostics.runs.integrity import LEFT_OUT, Record
from fog.records import schema
from fog.records.joining import PARTS_KEY
from fog.records.ledger import JOINED

_UNREADABLE = (OSError, pyarrow.ArrowException, UnicodeDecodeError)


class _DamagedError(Exception):
    """Why a file is left out."""


def read(
    run: Path,
    name: str,
    record: Record,
    *,
    columns: Collection[str] | None = None,
    last: int | None = None,
) -> tuple[pyarrow.Table | None, list[str]]:
    """One run's probe table, in order of time; None if nothing was recorded.

    `columns` are those to read beside `env_step`, all if None; `last` keeps only that many of the
    newest environment steps that were measured.
    """
    home = run / "probes" / name
    paths, problems = _sources(home)
    tables: list[pyarrow.Table] = []
    steps: set[int] = set()
    for path in reversed(paths):
        where = f"probes/{name}/{path.name}"
        if where in record.refused:
            continue
        if record and where not in record.entries:
            problems.append(f"{where} was not written by this run: left out")
            continue
        try:
            for table, said in _newest_first(run, where, record, columns, last is not None):
                problems += [line for line in said if line not in problems]
                tables.append(table)
                if last is None:
                    continue
                steps.update(np.unique(table["env_step"].to_numpy()).tolist())
                if len(steps) > last:
                    break
        except _DamagedError as error:
            problems.append(f"{where} {error}")
        except _UNREADABLE as error:
            problems.append(f"{where} cannot be read: {one_line(error)}")
        if last is not None and len(steps) > last:
            break
    if not tables:
        return None, problems
    try:
        whole = pyarrow.concat_tables(reversed(tables), promote_options="permissive")
    except pyarrow.ArrowException as error:
        problems.append(f"probes/{name} has parts that do not fit together: {one_line(error)}")
        return None, problems
    if last is not None:
        first = sorted(steps)[-last:][0]
        whole = whole.filter(pyarrow.compute.greater_equal(whole["env_step"], first))
    return whole, problems


def _sources(home: Path) -> tuple[list[Path], list[str]]:
    """The files that make up a table, in order of time, and whatever else is there."""
    found = sorted(home.iterdir()) if home.is_dir() else []
    problems = [
        f"probes/{home.name}/{path.name} was not finished: left out"
        for path in found
        if path.suffix == ".partial"
    ]
    parts = [path for path in found if path.suffix == ".parquet" and path.name != JOINED]
    joined = home / JOINED
    if joined not in found:
        return parts, problems
    if parts:
        inside = _names(joined)
        parts = [path for path in parts if path.name not in inside]
    return [joined, *parts], problems


def _names(joined: Path) -> set[str]:
    """Names of the parts that a joined file holds."""
    try:
        metadata = pyarrow.parquet.read_metadata(joined).metadata or {}
        return {str(name) for name, _ in json.loads(metadata[PARTS_KEY])}
    except (*_UNREADABLE, ValueError, TypeError, KeyError):
        return set()


def _newest_first(
    run: Path, where: str, record: Record, columns: Collection[str] | None, by_group: bool
) -> Iterator[tuple[pyarrow.Table, list[str]]]:
    """A file's rows in today's columns, by row groups from the last, or all at once."""
    name = Path(where).parent.name
    if not record.intact(run, where, () if by_group else None):
        raise _DamagedError(LEFT_OUT)
    with pyarrow.parquet.ParquetFile(run / where, page_checksum_verification=True) as file:
        found = file.schema_arrow
        if problem := _mismatch(name, found):
            raise _DamagedError(f"{problem}: left out")
        chosen = (
            None if columns is None else [n for n in found.names if n in {*columns, "env_step"}]
        )
        if not by_group:
            yield _as_of_today(name, file.read(chosen, use_threads=False), columns)
            return
        for group in reversed(range(file.num_row_groups)):
            if not record.intact(run, where, (group,)):
                raise _DamagedError(LEFT_OUT)
            table = file.read_row_group(group, chosen, use_threads=False)
            yield _as_of_today(name, table, columns)


def _mismatch(name: str, found: pyarrow.Schema) -> str | None:
    """Why a part is not what `schema` promises; tables of other people's probes are not checked."""
    version = _version(found)
    if version not in map(str, schema.READABLE):
        readable = " and ".join(map(str, schema.READABLE))
        return f"has schema version {version or 'unknown'}, this code reads {readable}"
    today = name in schema.TABLES and version == str(schema.VERSION)
    missing = set(schema.TABLES[name].names if today else ["env_step"]) - set(found.names)
    return f"lacks the columns {sorted(missing)}" if missing else None


def _version(found: pyarrow.Schema) -> str:
    version: bytes = (found.metadata or {}).get(schema.METADATA_KEY.encode(), b"")
    return version.decode()


def _as_of_today(
    name: str, table: pyarrow.Table, wanted: Collection[str] | None
) -> tuple[pyarrow.Table, list[str]]:
    """A part of any version in the current columns, and which of its columns are not read.

    What an older version did not record, or recorded with another meaning, is null.
    """
    version = _version(table.schema)
    if name not in schema.TABLES or version == str(schema.VERSION):
        return table, []
    changed = schema.CHANGED[int(version)].get(name, {})
    columns = {"env_step": table["env_step"]}
    for column in schema.TABLES[name].columns:
        if wanted is not None and column.name not in wanted:
            continue
        known = column.name in table.column_names and column.name not in changed
        columns[column.name] = (
            table[column.name] if known else pyarrow.nulls(len(table), _arrow_type(column.dtype))
        )
    said = [
        f"probes/{name} has schema version {version}: {column} is not read, {meaning}"
        for column, meaning in changed.items()
    ]
    return pyarrow.table(columns, metadata=table.schema.metadata), said


def _arrow_type(dtype: str) -> pyarrow.DataType:
    """The Arrow type of a column of `schema`."""
    if dtype.startswith("list<"):
        return pyarrow.list_(_arrow_type(dtype[5:-1]))
    return pyarrow.string() if dtype == "str" else pyarrow.from_numpy_dtype(np.dtype(dtype))
