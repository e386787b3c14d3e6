"""Readers of a run directory's files that survive what a kill leaves behind.

Each returns what can be read together with a list of sentences about what cannot.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow
import pyarrow.csv
import yaml

from diagnostics.runs.integrity import LEFT_OUT

_YAML_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_UNPARSED = (
    *(yaml.YAMLError, ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError),
)
"""What PyYAML lets through from Python: of `2026-13-01`, `!!bool x`, `? [a]`, deep nesting."""


def read_yaml(path: Path) -> tuple[dict[str, Any], list[str]]:
    """The groups of a config file."""
    return _entries(path, lambda text: yaml.load(text, Loader=_YAML_LOADER), "settings")


def read_json(path: Path) -> tuple[dict[str, Any], list[str]]:
    """The entries of a JSON object."""
    return _entries(path, json.loads, "entries")


def _entries(
    path: Path, parse: Callable[[str], Any], what: str
) -> tuple[dict[str, Any], list[str]]:
    try:
        document = parse(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}, [f"no {path.name}"]
    except (OSError, *_UNPARSED) as error:
        return {}, [f"{path.name} cannot be read: {one_line(error)}"]
    if not isinstance(document, dict):
        return {}, [f"{path.name} holds no {what}"]
    return document, []


def read_csv(
    path: Path,
    required: Collection[str] = (),
    whole: Callable[[bytes], bool] = lambda _: True,
    columns: Collection[str] | None = None,
) -> tuple[pyarrow.Table | None, list[str]]:
    """The complete rows of a CSV table in which every column except the named ones is a number.

    None if there are no rows, if the header lacks one of the `required` columns, or if the content
    is not `whole`. `columns` are those of the required ones to read; None reads everything.
    """
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return None, []
    except OSError as error:
        return None, [f"{path.name} cannot be read: {one_line(error)}"]
    if not whole(raw):
        return None, [f"{path.name} {LEFT_OUT}"]
    lines = _whole_lines(raw)
    problems = [] if len(lines) == len(raw) else [f"{path.name} ends in half a line: left out"]
    if lines.count(b"\n") < 2:
        return None, problems
    try:
        lines.decode()
    except UnicodeDecodeError:
        # Rows with the replacement are found below: a number it is not.
        lines = lines.decode(errors="replace").encode()
    header = lines.partition(b"\n")[0].decode().rstrip("\r")
    if problem := _header_problem(next(csv.reader([header]), []), required):
        return None, [*problems, f"{path.name} {problem}"]
    damaged = 0

    def skip(_: Any) -> str:
        nonlocal damaged
        damaged += 1
        return "skip"

    try:
        table = pyarrow.csv.read_csv(
            io.BytesIO(lines),
            read_options=pyarrow.csv.ReadOptions(use_threads=False),
            parse_options=pyarrow.csv.ParseOptions(
                invalid_row_handler=skip, newlines_in_values=True
            ),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types=dict.fromkeys(_TEXT, pyarrow.string()),
                strings_can_be_null=True,
                include_columns=[] if columns is None else list(columns),
            ),
        )
    except pyarrow.ArrowException as error:
        return None, [*problems, f"{path.name} cannot be read: {one_line(error)}"]
    odd = [item.name for item in table.schema if item.name not in _TEXT and not _plain(item)]
    texts = [name for name in table.column_names if name in _TEXT]
    if odd or (_REPLACED in lines and texts):
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
    """A column without a single value has no type."""
    return column.with_type(pyarrow.float64()) if pyarrow.types.is_null(column.type) else column


def _sound_rows(
    table: pyarrow.Table, numbers: list[str], texts: list[str]
) -> tuple[pyarrow.Table, int]:
    """The rows with only numbers in `numbers` and only complete characters in `texts`.

    Returns them with the number of rows left out.
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


def one_line(error: Exception) -> str:
    """An error's message, short enough for a list of problems."""
    text = " ".join(str(error).split())
    return text if len(text) <= 160 else text[:157] + "..."
