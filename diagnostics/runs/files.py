"""Readers of a run directory's files that survive what a kill leaves behind.

Each returns what can be read together with a list of sentences about what cannot.
"""

from __future__ import annotations

import io
import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow
import pyarrow.csv
import pyarrow.parquet
import yaml

from fog.records import schema

_YAML_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NOT_YAML = (
    *(yaml.YAMLError, ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError),
)
"""What the reader lets through from Python: of `2026-13-01`, `!!bool x`, `? [a]`, deep nesting."""


def read_yaml(path: Path) -> tuple[dict[str, Any], list[str]]:
    """The groups of a config file."""
    try:
        document = yaml.load(path.read_text(encoding="utf-8"), Loader=_YAML_LOADER)
    except FileNotFoundError:
        return {}, [f"no {path.name}"]
    except (OSError, *_NOT_YAML) as error:
        return {}, [f"{path.name} cannot be read: {one_line(error)}"]
    if not isinstance(document, dict):
        return {}, [f"{path.name} holds no settings"]
    return document, []


def read_json(path: Path) -> tuple[dict[str, Any], list[str]]:
    """The entries of a JSON object."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}, [f"no {path.name}"]
    except (OSError, ValueError, RecursionError) as error:
        return {}, [f"{path.name} cannot be read: {one_line(error)}"]
    if not isinstance(document, dict):
        return {}, [f"{path.name} holds no entries"]
    return document, []


def read_csv(path: Path, required: Collection[str] = ()) -> tuple[pyarrow.Table | None, list[str]]:
    """The whole rows of a CSV table in which every column but the named ones is a number.

    None if there are no rows, or if the header lacks one of the `required` columns.
    """
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return None, []
    except OSError as error:
        return None, [f"{path.name} cannot be read: {one_line(error)}"]
    whole = _whole_lines(raw)
    problems = [] if len(whole) == len(raw) else [f"{path.name} ends in half a line: left out"]
    if whole.count(b"\n") < 2:
        return None, problems
    try:
        whole.decode()
    except UnicodeDecodeError:
        # Rows with the replacement are found below: a number it is not.
        whole = whole.decode(errors="replace").encode()
    damaged = 0

    def skip(_: Any) -> str:
        nonlocal damaged
        damaged += 1
        return "skip"

    try:
        table = pyarrow.csv.read_csv(
            io.BytesIO(whole),
            read_options=pyarrow.csv.ReadOptions(use_threads=False),
            parse_options=pyarrow.csv.ParseOptions(
                invalid_row_handler=skip, newlines_in_values=True
            ),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types=dict.fromkeys(_TEXT, pyarrow.string()), strings_can_be_null=True
            ),
        )
    except pyarrow.ArrowException as error:
        return None, [*problems, f"{path.name} cannot be read: {one_line(error)}"]
    if problem := _header_problem(table.column_names, required):
        return None, [*problems, f"{path.name} {problem}"]
    odd = [item.name for item in table.schema if item.name not in _TEXT and not _plain(item)]
    texts = [name for name in table.column_names if name in _TEXT]
    if odd or (_REPLACED in whole and texts):
        table, bad = _sound_rows(table, odd, texts)
        damaged += bad
    if damaged:
        problems.append(f"{path.name} has {damaged} damaged rows: left out")
    return table.cast(pyarrow.schema([_with_type(item) for item in table.schema])), problems


_TEXT = {"event", "detail"}
_COUNTS = {"env_step", "updates", "length", "episode", "episodes", "depth", "dense_layers"}
_REPLACED = "\N{REPLACEMENT CHARACTER}".encode()


def _header_problem(names: list[str], required: Collection[str]) -> str | None:
    if any(_REPLACED.decode() in name for name in names) or len(set(names)) < len(names):
        return "has a damaged header: left out"
    missing = sorted(set(required) - set(names))
    return f"lacks the columns {missing}: left out" if missing else None


def _plain(column: pyarrow.Field) -> bool:
    """Whether a column holds numbers only, and a count whole ones only."""
    types, kind = pyarrow.types, column.type
    if column.name in _COUNTS:
        return bool(types.is_integer(kind))
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_null(kind))


def _with_type(column: pyarrow.Field) -> pyarrow.Field:
    """A column without a single value has no type of its own."""
    return column.with_type(pyarrow.float64()) if pyarrow.types.is_null(column.type) else column


def _sound_rows(
    table: pyarrow.Table, numbers: list[str], texts: list[str]
) -> tuple[pyarrow.Table, int]:
    """The rows with nothing but numbers in `numbers` and whole characters in `texts`.

    Returns them with the number of those that are not like this.
    """
    frame = table.to_pandas()
    parsed = frame[numbers].astype(str).apply(pd.to_numeric, errors="coerce").astype("float64")
    broken = (parsed.isna() & frame[numbers].notna()).any(axis=1)
    for name in _COUNTS.intersection(numbers):
        count = parsed[name]
        broken |= count.notna() & ~((count % 1 == 0) & (count.abs() < 2**53))
    if "env_step" in numbers:
        broken |= parsed["env_step"].isna()
    for name in texts:
        broken |= frame[name].str.contains(_REPLACED.decode(), regex=False, na=False)
    sound = table.filter(pyarrow.array(~broken))
    for name in numbers:
        column = pyarrow.array(parsed.loc[~broken, name], from_pandas=True)
        if name in _COUNTS:
            column = column.cast(pyarrow.int64(), safe=False)
        sound = sound.set_column(sound.column_names.index(name), name, column)
    return sound, int(broken.sum())


def _whole_lines(raw: bytes) -> bytes:
    # A machine that lost power can leave zeros where the last rows should be.
    usable = raw.split(b"\0", 1)[0]
    return usable[: usable.rfind(b"\n") + 1]


def read_parts(
    directory: Path, name: str, last: int | None = None
) -> tuple[pyarrow.Table | None, list[str]]:
    """One run's probe table `name`, its parts in order of time; None if nothing was recorded.

    With `last`, only that many of the newest parts.
    """
    home = directory / "probes" / name
    tables, problems = [], []
    paths = sorted(home.iterdir()) if home.is_dir() else []
    for path in paths if last is None else paths[-last:]:
        where = f"probes/{name}/{path.name}"
        if path.suffix == ".partial":
            problems.append(f"{where} was not finished: left out")
        if path.suffix != ".parquet":
            continue
        try:
            file = pyarrow.parquet.ParquetFile(path, page_checksum_verification=True)
            table = file.read(use_threads=False)
        except (OSError, pyarrow.ArrowException, UnicodeDecodeError) as error:
            problems.append(f"{where} cannot be read: {one_line(error)}")
            continue
        problem = _mismatch(name, table)
        if problem is not None:
            problems.append(f"{where} {problem}: left out")
            continue
        table, changes = _as_of_today(name, table)
        problems += [change for change in changes if change not in problems]
        tables.append(table)
    if not tables:
        return None, problems
    try:
        return pyarrow.concat_tables(tables, promote_options="permissive"), problems
    except pyarrow.ArrowException as error:
        problems.append(f"probes/{name} has parts that do not fit together: {one_line(error)}")
        return None, problems


def _mismatch(name: str, table: pyarrow.Table) -> str | None:
    """Why a part is not what `schema` promises; tables of other people's probes are not checked."""
    version = _version(table)
    if version not in map(str, schema.READABLE):
        readable = " and ".join(map(str, schema.READABLE))
        return f"has schema version {version or 'unknown'}, this code reads {readable}"
    today = name in schema.TABLES and version == str(schema.VERSION)
    missing = set(schema.TABLES[name].names if today else ["env_step"]) - set(table.column_names)
    return f"lacks the columns {sorted(missing)}" if missing else None


def _version(table: pyarrow.Table) -> str:
    version: bytes = (table.schema.metadata or {}).get(schema.METADATA_KEY.encode(), b"")
    return version.decode()


def _as_of_today(name: str, table: pyarrow.Table) -> tuple[pyarrow.Table, list[str]]:
    """A part of any version in today's columns, and which of its own are not read.

    Null is what an older version did not record, and what meant something else in it.
    """
    version = _version(table)
    if name not in schema.TABLES or version == str(schema.VERSION):
        return table, []
    changed = schema.CHANGED[int(version)].get(name, {})
    columns = {"env_step": table["env_step"]}
    for column in schema.TABLES[name].columns:
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


def one_line(error: Exception) -> str:
    """An error's message, short enough for a list of problems."""
    text = " ".join(str(error).split())
    return text if len(text) <= 160 else text[:157] + "..."
