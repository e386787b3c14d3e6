"""Export runs as small tables, to commit or to publish with a paper.

A run directory is mostly checkpoints, and its probe tables are many small files. An exported run
has neither: config, manifest and CSV tables as they are, and each probe table joined into one file.
It is still a run directory, so everything that reads runs reads it too.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow
import pyarrow.compute
import pyarrow.parquet
from pyarrow import types

from diagnostics.errors import AnalysisError, unknown
from diagnostics.runs import export_folder, privacy
from diagnostics.runs.directories import RunFiles, discover, shared
from fog.records.ledger import fingerprint, sealed
from fog.records.statuses import SETTLED
from fog.records.tables import encoding

VECTOR_BITS = 5
"""Bits kept of the mantissa of a neuron's score or a feature: an error of at most 1.6 %."""

NUMBER_BITS = 12
"""Bits kept of the mantissa of any other measured number: an error of at most 0.013 %."""

DIGITS = 4
"""Digits kept of measured numbers in train.csv."""


@dataclass(frozen=True)
class Choice:
    """What an export keeps of a run.

    Attributes:
        without: probe tables to leave out.
        last: probe tables of which only the last measurement is kept.
        rounded: round vectors of measured numbers (neurons' scores, features) to `VECTOR_BITS`,
            single numbers of the probe tables to `NUMBER_BITS` and train.csv to `DIGITS`: the
            whole becomes a third as large. Evaluations are never rounded.
        keep_host: keep the name of the machine, absolute paths and the whole command line.
    """

    without: Collection[str] = ()
    last: Collection[str] = ()
    rounded: bool = False
    keep_host: bool = False


@dataclass
class Exported:
    """What an export did.

    Attributes:
        runs: the copies.
        left_out: run directories that were not copied, and why.
        damaged: what could not be copied completely, one line each.
        nbytes: size of the copies.
        unreadable: whether a run was left out because it is damaged, not because it is still
            running.
    """

    runs: list[Path] = field(default_factory=list)
    left_out: dict[Path, str] = field(default_factory=dict)
    damaged: list[str] = field(default_factory=list)
    nbytes: int = 0
    unreadable: bool = False


def export(
    source: Path,
    out: Path,
    *,
    without: Collection[str] = (),
    last: Collection[str] = (),
    rounded: bool = False,
    keep_host: bool = False,
) -> Exported:
    """Copy every run below `source` that has ended to the same place below `out`.

    An earlier export of the same run is replaced when the new one is complete, so the same call
    brings a collection up to date. Nothing else is removed. Runs that are being written are left
    out, and no run can be resumed while it is being copied. `out` is a new or empty folder or an
    earlier export, neither inside nor above `source`. The options are those of `Choice`.

    Raises:
        AnalysisError: there is nothing to export, a table that is named does not exist anywhere,
            or `out` holds something else. In that case nothing has been written.
    """
    if not source.is_dir():
        raise AnalysisError(f"cannot export runs: {source} is not a directory")
    export_folder.check_out(source, out)
    found = [RunFiles.open(path) for path in discover(source)]
    if not found:
        raise AnalysisError(f"{source} holds no runs: nothing to export")
    tables = {folder.name for run in found for folder in _tables(run.path)}
    for name in (*without, *last):
        if name not in tables:
            raise unknown("probe table", name, sorted(tables))
    if both := sorted(set(without) & set(last)):
        raise AnalysisError(f"{both[0]} is to be left out and to be kept in part: choose one")
    home = out.resolve()
    for run in found:
        export_folder.check_copy(home / run.path.relative_to(source), run)
    choice = Choice(without, last, rounded, keep_host)
    done = Exported()
    with export_folder.alone(home):
        for run in found:
            export_folder.recover(home / run.path.relative_to(source))
            _export_run(run.path, home / run.path.relative_to(source), choice, done)
    return done


def _export_run(path: Path, copy: Path, choice: Choice, done: Exported) -> None:
    with shared(path) as busy:
        # Read again, now that no process writes it.
        run = RunFiles.open(path)
        if busy is None and run.manifest.get("status") not in SETTLED:
            busy = "; ".join(run.problems) or "has not ended"
            done.unreadable |= bool(run.problems)
        if busy is not None:
            done.left_out[path] = busy
            return
        partial = export_folder.beside(copy, "partial")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        try:
            damaged = run.problems + _build(run, partial, choice)
            _describe(run, partial, choice, damaged)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
    done.damaged += [f"{path}: {problem}" for problem in damaged]
    if damaged and copy.exists() and any(copy.iterdir()):
        shutil.rmtree(partial)
        done.damaged.append(f"{path}: the earlier copy is kept")
        return
    export_folder.place(partial, copy)
    done.runs.append(copy)
    done.nbytes += sum(file.stat().st_size for file in copy.rglob("*.*"))


def _build(run: RunFiles, partial: Path, choice: Choice) -> list[str]:
    """Fill a new copy; returns what is damaged or missing in the run."""
    export_folder.mark(
        partial, run, rounded=choice.rounded, without=choice.without, last=choice.last
    )
    problems = []
    for name in export_folder.PLAIN:
        try:
            raw = (run.path / name).read_bytes()
            if name == "config.yaml" and not choice.keep_host:
                raw = privacy.clean_config(raw.decode()).encode()
        except FileNotFoundError:
            continue
        except (OSError, UnicodeDecodeError) as error:
            problems.append(f"{name} cannot be copied: {error}")
            continue
        if name.endswith(".csv") and not run.record.whole(name, raw):
            continue  # said below
        (partial / name).write_bytes(raw)
    for name in ("evals", "train", "events"):
        problems += run.csv(name)[1]
    if choice.rounded and not problems and (partial / "train.csv").exists():
        train = pd.read_csv(partial / "train.csv")
        train.to_csv(partial / "train.csv", index=False, float_format=f"%.{DIGITS}g")
    for folder in _tables(run.path):
        if folder.name not in choice.without:
            problems += _join(run, folder.name, partial / "probes" / folder.name, choice)
    return problems


def _describe(run: RunFiles, partial: Path, choice: Choice, damaged: list[str]) -> None:
    """Write the copy's manifest: the run's manifest, with a record of the copy's files.

    It still lists what was damaged in the run; the record covers the files the export wrote.
    """
    manifest = run.manifest | ({"damaged": damaged} if damaged else {})
    if not choice.keep_host:
        manifest = privacy.clean_manifest(manifest)
    written = sorted(path for path in partial.rglob("*") if path.is_file())
    record = {
        path.relative_to(partial).as_posix(): fingerprint(path)
        for path in written
        if path.name != export_folder.MARKER
    }
    text = json.dumps(sealed({**manifest, "files": record}), indent=2) + "\n"
    (partial / export_folder.MANIFEST).write_text(text, encoding="utf-8")


def _tables(run: Path) -> list[Path]:
    home = run / "probes"
    return sorted(path for path in home.iterdir() if path.is_dir()) if home.is_dir() else []


def _join(run: RunFiles, name: str, folder: Path, choice: Choice) -> list[str]:
    table, problems = run.table(name)
    if table is None or len(table) == 0:
        return problems
    if name in choice.last:
        steps = table["env_step"]
        table = table.filter(pyarrow.compute.equal(steps, pyarrow.compute.max(steps)))
    if choice.rounded:
        for index, field in enumerate(table.schema):
            table = table.set_column(index, field, _rounded(table[field.name]))
    folder.mkdir(parents=True)
    # Named by its last step, as a run's own parts are by theirs.
    path = folder / f"{table['env_step'][-1].as_py():012d}-00.parquet"
    # The types are those of Parquet, so Arrow's own copy of the schema only takes up space: a tenth
    # of small tables.
    smallest = {"compression_level": 19, "write_statistics": False, "store_schema": False}
    with pyarrow.parquet.ParquetWriter(
        path, table.schema, **encoding(table.schema), **smallest
    ) as writer:
        writer.add_key_value_metadata(table.schema.metadata or {})
        writer.write_table(table)
    return problems


def _rounded(column: pyarrow.ChunkedArray) -> pyarrow.Array:
    """A column whose measured numbers keep few bits, so that it compresses."""
    array = column.combine_chunks()
    if types.is_list(array.type) and types.is_floating(array.type.value_type):
        return pyarrow.ListArray.from_arrays(array.offsets, _cut(array.flatten(), VECTOR_BITS))
    return _cut(array, NUMBER_BITS) if types.is_floating(array.type) else array


def _cut(array: pyarrow.Array, kept: int) -> pyarrow.Array:
    values = np.array(array.to_numpy(zero_copy_only=False))
    bits = values.view(np.uint32 if values.dtype == np.float32 else np.uint64)
    unit = 1 << (np.finfo(values.dtype).nmant - kept)
    finite = np.isfinite(values)
    bits[finite] = (bits[finite] + unit // 2) // unit * unit
    return pyarrow.array(values, mask=np.asarray(array.is_null()))
