"""Readers of a run directory's files that survive what a kill leaves behind.

Each returns what can be read together with a list of sentences about what cannot.
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow
import pyarrow.csv
import pyarrow.parquet
import yaml

from diagnostics import schema

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
        return {}, [f"{path.name} cannot be read: {_one_line(error)}"]
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
        return {}, [f"{path.name} cannot be read: {_one_line(error)}"]
    if not isinstance(document, dict):
        return {}, [f"{path.name} holds no entries"]
    return document, []


def read_csv(path: Path) -> tuple[pyarrow.Table | None, list[str]]:
    """The whole rows of a CSV table in which every column but the named ones is a number.

    None if there are no rows.
    """
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return None, []
    except OSError as error:
        return None, [f"{path.name} cannot be read: {_one_line(error)}"]
    whole = _whole_lines(raw)
    problems = [] if len(whole) == len(raw) else [f"{path.name} ends in half a line: left out"]
    if whole.count(b"\n") < 2:
        return None, problems
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
        return None, [*problems, f"{path.name} cannot be read: {_one_line(error)}"]
    odd = [item.name for item in table.schema if item.name not in _TEXT and not _number(item.type)]
    if odd:
        table, bad = _numbers_only(table, odd)
        damaged += bad
    if damaged:
        problems.append(f"{path.name} has {damaged} damaged rows: left out")
    return table.cast(pyarrow.schema([_with_type(item) for item in table.schema])), problems


_TEXT = {"event", "detail"}


def _number(kind: pyarrow.DataType) -> bool:
    types = pyarrow.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_null(kind))


def _with_type(column: pyarrow.Field) -> pyarrow.Field:
    """A column without a single value has no type of its own."""
    return column.with_type(pyarrow.float64()) if pyarrow.types.is_null(column.type) else column


def _numbers_only(table: pyarrow.Table, names: list[str]) -> tuple[pyarrow.Table, int]:
    """The rows whose cells in the columns `names` are numbers, and how many are not."""
    frame = table.to_pandas()
    cells = frame[names].astype(str)
    numbers = cells.apply(pd.to_numeric, errors="coerce")
    broken = (numbers.isna() & frame[names].notna()).any(axis=1)
    frame[names] = numbers
    usable = frame[~broken]
    return pyarrow.Table.from_pandas(usable, preserve_index=False), int(broken.sum())


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
            table = pyarrow.parquet.ParquetFile(path).read(use_threads=False)
        except (OSError, pyarrow.ArrowException) as error:
            problems.append(f"{where} cannot be read: {_one_line(error)}")
            continue
        problem = _mismatch(name, table)
        if problem is None:
            tables.append(table)
        else:
            problems.append(f"{where} {problem}: left out")
    if not tables:
        return None, problems
    try:
        return pyarrow.concat_tables(tables, promote_options="permissive"), problems
    except pyarrow.ArrowException as error:
        problems.append(f"probes/{name} has parts that do not fit together: {_one_line(error)}")
        return None, problems


def _mismatch(name: str, table: pyarrow.Table) -> str | None:
    """Why a part is not what `schema` promises; tables of other people's probes are not checked."""
    version = (table.schema.metadata or {}).get(schema.METADATA_KEY.encode(), b"").decode()
    if version != str(schema.VERSION):
        return f"has schema version {version or 'unknown'}, this code reads {schema.VERSION}"
    if name in schema.TABLES:
        missing = set(schema.TABLES[name].names) - set(table.column_names)
        if missing:
            return f"lacks the columns {sorted(missing)}"
    return None


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text if len(text) <= 160 else text[:157] + "..."
