"""Runs as small tables to keep: what belongs into version control or beside a paper.

A run directory is mostly checkpoints, and its probe tables are many small files. An exported run
has neither: config, manifest and CSV tables as they are, and each probe table joined into one file.
It is still a run directory, so everything that reads runs reads it too.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow
import pyarrow.parquet
from pyarrow import types

from diagnostics import files
from diagnostics.errors import AnalysisError, unknown
from diagnostics.rundirs import RunFiles, discover

SETTLED = ("finished", "diverged")
MANTISSA_BITS = 8
"""Bits kept of a rounded number: a relative error of at most 2^-9, or 0.2 %."""

DIGITS = 6
"""Digits kept of a rounded row of train.csv, which is then half as large."""

_PLAIN = ("config.yaml", "manifest.json", "evals.csv", "train.csv", "events.csv")


@dataclass(frozen=True)
class Exported:
    """What an export did.

    Attributes:
        runs: the copies.
        unsettled: run directories left out because they have not ended.
        nbytes: size of the copies.
    """

    runs: list[Path]
    unsettled: list[Path]
    nbytes: int


def export(
    source: Path, out: Path, *, without: Collection[str] = (), rounded: bool = False
) -> Exported:
    """Copy every run below `source` that has ended to the same place below `out`.

    A copy that is already there is replaced, so the same call brings a collection up to date.

    Args:
        source: a folder of runs.
        out: where the copies go; not inside `source`.
        without: probe tables to leave out.
        rounded: round vectors of measured numbers (neurons' scores, features) to
            `MANTISSA_BITS`, which makes their files about three times smaller, and train.csv to
            `DIGITS`.

    Raises:
        AnalysisError: there is nothing to export, a table to leave out does not exist anywhere,
            or `out` lies inside `source`.
    """
    if not source.is_dir():
        raise AnalysisError(f"cannot export runs: {source} is no directory")
    if out.resolve().is_relative_to(source.resolve()):
        raise AnalysisError(f"cannot export into {out}: it lies inside {source}")
    found = [RunFiles.open(path) for path in discover(source)]
    if not found:
        raise AnalysisError(f"{source} holds no runs: nothing to export")
    tables = {folder.name for run in found for folder in _tables(run.path)}
    for name in without:
        if name not in tables:
            raise unknown("probe table", name, sorted(tables))
    settled = [run for run in found if run.manifest.get("status") in SETTLED]
    copies = [
        _export_run(run.path, out / run.path.relative_to(source), without, rounded)
        for run in settled
    ]
    return Exported(
        runs=copies,
        unsettled=[run.path for run in found if run not in settled],
        nbytes=sum(file.stat().st_size for copy in copies for file in copy.rglob("*.*")),
    )


def _export_run(run: Path, copy: Path, without: Collection[str], rounded: bool) -> Path:
    partial = copy.with_name(f".{copy.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    for name in _PLAIN:
        if (run / name).exists():
            shutil.copyfile(run / name, partial / name)
    if rounded and (partial / "train.csv").exists():
        train = pd.read_csv(partial / "train.csv")
        train.to_csv(partial / "train.csv", index=False, float_format=f"%.{DIGITS}g")
    for folder in _tables(run):
        if folder.name not in without:
            _join(run, folder.name, partial / "probes" / folder.name, rounded)
    shutil.rmtree(copy, ignore_errors=True)
    partial.rename(copy)
    return copy


def _tables(run: Path) -> list[Path]:
    home = run / "probes"
    return sorted(path for path in home.iterdir() if path.is_dir()) if home.is_dir() else []


def _join(run: Path, name: str, folder: Path, rounded: bool) -> None:
    table, problems = files.read_parts(run, name)
    if problems:
        raise AnalysisError(f"cannot export {run}: {problems[0]}")
    if table is None:
        return
    if rounded:
        for index, field in enumerate(table.schema):
            if types.is_list(field.type) and types.is_float32(field.type.value_type):
                table = table.set_column(index, field, _rounded(table[field.name]))
    folder.mkdir(parents=True)
    floats = [_leaf(field) for field in table.schema if types.is_floating(_kind(field))]
    pyarrow.parquet.write_table(
        table,
        # Named by its last step, as a run's own parts are by theirs.
        folder / f"{table['env_step'][-1].as_py():012d}-00.parquet",
        compression="zstd",
        compression_level=19,
        use_dictionary=[_leaf(f) for f in table.schema if not types.is_floating(_kind(f))],
        use_byte_stream_split=floats,
        write_statistics=False,
    )


def _kind(field: pyarrow.Field) -> pyarrow.DataType:
    return field.type.value_type if types.is_list(field.type) else field.type


def _leaf(field: pyarrow.Field) -> str:
    return f"{field.name}.list.element" if types.is_list(field.type) else str(field.name)


def _rounded(column: pyarrow.ChunkedArray) -> pyarrow.Array:
    """A column of vectors with all but the first bits of every mantissa zero, so that it packs."""
    vectors = column.combine_chunks()
    values = np.array(vectors.flatten().to_numpy(zero_copy_only=False), np.float32)
    bits = values.view(np.uint32)
    spare = 23 - MANTISSA_BITS
    bits += np.uint32(1 << (spare - 1))
    bits &= np.uint32(0xFFFFFFFF << spare & 0xFFFFFFFF)
    return pyarrow.ListArray.from_arrays(vectors.offsets, pyarrow.array(values))
