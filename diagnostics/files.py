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
import pyarrow.parquet
import yaml

from diagnostics import schema

_YAML_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_yaml(path: Path) -> tuple[dict[str, Any], list[str]]:
    """The groups of a config file."""
    try:
        document = yaml.load(path.read_text(), Loader=_YAML_LOADER)
    except FileNotFoundError:
        return {}, [f"no {path.name}"]
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        return {}, [f"{path.name} cannot be read: {_one_line(error)}"]
    if not isinstance(document, dict):
        return {}, [f"{path.name} holds no settings"]
    return document, []


def read_json(path: Path) -> tuple[dict[str, Any], list[str]]:
    """The entries of a JSON object."""
    try:
        document = json.loads(path.read_text())
    except FileNotFoundError:
        return {}, [f"no {path.name}"]
    except (OSError, ValueError) as error:
        return {}, [f"{path.name} cannot be read: {_one_line(error)}"]
    if not isinstance(document, dict):
        return {}, [f"{path.name} holds no entries"]
    return document, []


def read_csv(path: Path) -> tuple[pd.DataFrame, list[str]]:
    """The whole rows of a CSV table whose cells but `event` and `detail` are numbers."""
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return pd.DataFrame(), []
    except OSError as error:
        return pd.DataFrame(), [f"{path.name} cannot be read: {_one_line(error)}"]
    whole = _whole_lines(raw)
    problems = [] if len(whole) == len(raw) else [f"{path.name} ends in half a line: left out"]
    if not whole:
        return pd.DataFrame(), problems
    bad = 0

    def skip(_: list[str]) -> None:
        nonlocal bad
        bad += 1

    try:
        frame = pd.read_csv(io.BytesIO(whole))
    except (pd.errors.ParserError, UnicodeDecodeError):
        text = io.StringIO(whole.decode(errors="replace"))
        frame = pd.read_csv(text, engine="python", on_bad_lines=skip)
    for name in frame.columns.difference(["event", "detail"]):
        if not pd.api.types.is_numeric_dtype(frame[name]):
            frame[name] = pd.to_numeric(frame[name], errors="coerce")
    if "env_step" in frame:
        keep = frame["env_step"].notna()
        bad += int((~keep).sum())
        frame = frame[keep].astype({"env_step": "int64"}).reset_index(drop=True)
    if bad:
        problems.append(f"{path.name} has {bad} damaged rows: left out")
    return frame, problems


def _whole_lines(raw: bytes) -> bytes:
    # A machine that lost power can leave zeros where the last rows should be.
    usable = raw.split(b"\0", 1)[0]
    return usable[: usable.rfind(b"\n") + 1]


def read_parts(directory: Path, name: str) -> tuple[pyarrow.Table | None, list[str]]:
    """One run's probe table `name`, its parts in order of time; None if nothing was recorded."""
    home = directory / "probes" / name
    tables, problems = [], []
    for path in sorted(home.iterdir()) if home.is_dir() else ():
        where = f"probes/{name}/{path.name}"
        if path.suffix == ".partial":
            problems.append(f"{where} was not finished: left out")
        if path.suffix != ".parquet":
            continue
        try:
            table = pyarrow.parquet.ParquetFile(path).read()
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
    return pyarrow.concat_tables(tables, promote_options="permissive"), problems


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
