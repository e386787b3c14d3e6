"""Run directories as tables: `diagnostics.load`.

Loading reads each run's config and manifest. Everything else is read on first use: hundreds of runs
open in seconds although their probes may have recorded gigabytes.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow

from diagnostics.errors import AnalysisError, RunsWarning, unknown
from diagnostics.metrics.scores import PAPER_GRID, Grid
from diagnostics.runs import files
from diagnostics.runs.directories import RunFiles, discover, slug, spelled
from diagnostics.runs.labels import labels
from diagnostics.runs.published import holds_peers, peer_runs
from diagnostics.runs.summary import summarise
from fog.records import schema
from fog.records.columns import CSV_COLUMNS

IDENTITY = ("task", "variant", "seed", "scale", "label", "run")
"""The first columns of every table. `label` is equal for runs that may be averaged over seeds."""


Reader = Callable[[RunFiles], tuple[pyarrow.Table | None, list[str]]]

_READERS = 4
"""Threads that read files; more than the cores, because network disks make them wait."""


def _probe_table(name: str, meaning: str) -> property:
    """A probe table as a property of `Runs`."""
    return property(lambda runs: runs.table(name), doc=meaning)


class Runs:
    """Every run below one or more paths, as tidy tables.

    Every table starts with the columns `IDENTITY`. Damaged and incomplete runs stay in, with what
    could be read of them; `problems` names them.

    Attributes:
        files: the run directories, in the order of `runs`.
        grid: the evaluations among which the best scores choose.
    """

    def __init__(self, run_files: Iterable[RunFiles], grid: Grid = PAPER_GRID) -> None:
        self.files = sorted(run_files, key=RunFiles.order)
        self.grid = grid
        self._warned = 0
        self._tables: dict[tuple[str, int | None, tuple[str, ...] | None], pd.DataFrame] = {}

    def __len__(self) -> int:
        return len(self.files)

    def __repr__(self) -> str:
        runs = self.identity
        return (
            f"<{len(self)} runs: {runs['task'].nunique()} tasks, {runs['label'].nunique()} "
            f"variants, {len(self.problems)} problems>"
        )

    @cached_property
    def identity(self) -> pd.DataFrame:
        """The columns `IDENTITY`, one row per run."""
        tasks = [run.name("task", 2) for run in self.files]
        told = (task for run, task in zip(self.files, tasks, strict=True) if "task" in run.config)
        slugs = {slug(name): name for name in told}
        table = pd.DataFrame(
            {
                "task": pd.Series([slugs.get(slug(task), task) for task in tasks], dtype="str"),
                "variant": pd.Series([run.name("variant", 1) for run in self.files], dtype="str"),
                "seed": pd.Series([run.seed for run in self.files], dtype="int64"),
                "scale": pd.to_numeric(
                    pd.Series([run.config.get("scale") for run in self.files], dtype="object"),
                    errors="coerce",
                ).astype("float64"),
            }
        )
        configs = [run.config for run in self.files]
        table["label"] = pd.Series(labels(table, configs) if configs else [], dtype="str")
        table["run"] = pd.Series([run.where for run in self.files], dtype="str")
        return table

    @cached_property
    def evals(self) -> pd.DataFrame:
        """One row per evaluation episode: `env_step`, `return`, `length`, successes."""
        return self._csv("evals")

    @cached_property
    def train(self) -> pd.DataFrame:
        """One row per logging interval: losses, Q, temperature, depth, rates, probe seconds."""
        return self._csv("train")

    @cached_property
    def _progress(self) -> pd.DataFrame:
        """The columns of `train` that every run has."""
        return self._read(lambda run: run.csv("train", CSV_COLUMNS["train"]), CSV_COLUMNS["train"])

    @cached_property
    def events(self) -> pd.DataFrame:
        """One row per priming, reset, expansion, checkpoint, resume or divergence."""
        return self._csv("events")

    @cached_property
    def runs(self) -> pd.DataFrame:
        """One row per run: status, progress, scores, speed, and every setting of its config.

        `final_return` and `best_return` are means over an evaluation's episodes: of the last
        evaluation, and of the best one strictly before the run's `steps` (the paper's rule) among
        those on the `grid`, whose points are `grid_steps` apart in this run (NaN: all evaluations).
        `final_score` and `best_score` are the same of the task's `metric`, which is the return or
        `success_once`. `idle_hours` is the time since the run wrote anything: a run that says
        `running` and has been silent for hours was killed.
        """
        facts = summarise(
            self.identity, [(run.path, run.config, run.manifest) for run in self.files],
            self.evals, self._progress, self.grid,
        )  # fmt: skip
        facts["problems"] = pd.Series(["; ".join(run.problems) for run in self.files], dtype="str")
        return facts

    critic_loss = _probe_table("critic_loss", "Critic loss by insertion window: the heatmap.")
    dormancy = _probe_table(
        "dormancy",
        """Per-neuron activation and gradient scores, one row per layer and network.

        Gradient scores of schema version 1 were taken elsewhere: `gradient` is None there.
        """,
    )
    sample_counts = _probe_table(
        "sample_counts", "How often transitions were drawn, by bins of neighbours."
    )
    features = _probe_table("features", "Penultimate critic features of sampled transitions.")
    warmstart = _probe_table(
        "warmstart",
        "Today's critic against a fresh one on the newest data: loss curves and their gap.",
    )
    offpolicy = _probe_table(
        "offpolicy",
        "Log density and distance of stored actions under today's policy, by window.",
    )
    interference = _probe_table(
        "interference",
        "Cosines of the critic's gradients on old and new data, by pairs of windows.",
    )

    @property
    def problems(self) -> pd.DataFrame:
        """What is wrong, one row each: `run` and `problem`. Grows as more tables are read."""
        rows = [(run.where, spelled(problem)) for run in self.files for problem in run.problems]
        return pd.DataFrame(rows, columns=["run", "problem"], dtype="str")

    @cached_property
    def tables(self) -> dict[str, int]:
        """Names of the probe tables on disk, and how many runs have them."""
        found: dict[str, int] = {}
        for run in self.files:
            home = run.path / "probes"
            for path in home.iterdir() if home.is_dir() else ():
                if path.is_dir():
                    found[path.name] = found.get(path.name, 0) + 1
        return dict(sorted(found.items()))

    def table(
        self, name: str, *, last: int | None = None, columns: Sequence[str] | None = None
    ) -> pd.DataFrame:
        """A probe table of all runs: the columns `IDENTITY`, then those of `schema.TABLES`.

        `name` may also be a table of your own probe (see `tables`). Runs without it are left out;
        the table is empty, with its columns, if none has it. It is kept, so a second call is free.
        `last` reads only that many of each run's newest measurements, environment steps at which
        something was recorded; `columns` reads only these, and `env_step`.
        """
        wanted = None if columns is None else tuple(dict.fromkeys(["env_step", *columns]))
        key = (name, last, wanted)
        if key not in self._tables:
            if name not in schema.TABLES and name not in self.tables:
                raise unknown("probe table", name, {**schema.TABLES, **self.tables})
            known = schema.TABLES[name].names if name in schema.TABLES else ("env_step",)
            for column in wanted or ():
                if name in schema.TABLES and column not in known:
                    raise unknown(f"column of {name}", column, known)
            self._tables[key] = self._read(
                lambda run: run.table(name, wanted, last), wanted or known
            )
        return self._tables[key]

    def _csv(self, name: str) -> pd.DataFrame:
        return self._read(lambda run: run.csv(name), CSV_COLUMNS[name])

    def _read(self, read: Reader, columns: Sequence[str]) -> pd.DataFrame:
        """One table of all runs; `columns` are those of an empty one."""
        with ThreadPoolExecutor(_READERS) as pool:
            results = list(pool.map(read, self.files))
        whole: list[tuple[int, pyarrow.Table]] = []
        for position, (table, problems) in enumerate(results):
            known = self.files[position].problems
            known += [problem for problem in problems if problem not in known]
            if table is not None:
                whole.append((position, table))
        whole = self._fitting(whole)
        self._warn()
        if not whole:
            return self._named(pd.DataFrame(columns=columns), np.empty(0, np.int64))
        joined = pyarrow.concat_tables([at for _, at in whole], promote_options="permissive")
        positions = np.repeat([position for position, _ in whole], [len(at) for _, at in whole])
        return self._named(joined.to_pandas(), positions)

    def _fitting(self, tables: list[tuple[int, pyarrow.Table]]) -> list[tuple[int, pyarrow.Table]]:
        """The tables of the runs whose columns can be joined with those of the runs before."""
        fitting: list[tuple[int, pyarrow.Table]] = []
        so_far = pyarrow.schema([])
        for position, table in tables:
            try:
                so_far = pyarrow.unify_schemas([so_far, table.schema], promote_options="permissive")
                fitting.append((position, table))
            except pyarrow.ArrowException as error:
                reason = f"a table does not match those of other runs: {files.one_line(error)}"
                self.files[position].problems.append(reason)
        return fitting

    def _named(self, table: pd.DataFrame, positions: np.ndarray[Any, Any]) -> pd.DataFrame:
        names = self.identity.take(positions).reset_index(drop=True)
        clash = [column for column in table.columns if column in IDENTITY]
        return pd.concat([names, table.drop(columns=clash)], axis=1)

    def select(self, **wanted: Any) -> Runs:
        """The runs whose columns in `identity` or `runs` have the wanted values.

        By column a value, a collection of values, or a function of a value:
        `select(task="humanoid-walk", variant=["sac", "fog"], status="finished")`.
        """
        keep = np.ones(len(self), bool)
        for name, value in wanted.items():
            table = self.identity if name in self.identity else self.runs
            if name not in table:
                raise unknown("column of runs", name, table.columns)
            keep &= table[name].map(_test(value)).to_numpy(bool)
        if keep.all():
            return self  # with the tables that it has read
        return Runs((run for run, kept in zip(self.files, keep, strict=True) if kept), self.grid)

    def _warn(self, stacklevel: int = 4) -> None:
        """Warn of problems that came up since the last warning, in one message."""
        problems = self.problems
        new, self._warned = len(problems) - self._warned, len(problems)
        if new > 0:
            shown = [f"{row.run}: {row.problem}" for row in problems.tail(new).head(3).itertuples()]
            more = f" and {new - 3} more (see .problems)" if new > 3 else ""
            warnings.warn("; ".join(shown) + more, RunsWarning, stacklevel=stacklevel)


def load(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]], *, grid: str = "25k"
) -> Runs:
    """Every run below a path, or below each of several paths, published ones included.

    A path is a folder of runs at any depth, a single run directory, or a folder of published curves
    that `fog import` wrote. Works on finished, running, killed and partly copied runs. Damage is
    warned about once and listed in `Runs.problems`; nothing is dropped silently. `grid` gives the
    evaluations that best scores choose from: an interval in environment steps at scale 1, such as
    `25k` (the paper's) or `5000`, or `all`.

    Raises:
        AnalysisError: a path does not exist or is not a directory, or the grid is unknown.
    """
    chosen = Grid.named(grid)
    roots = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    found: dict[Path, Path] = {}
    for root in map(Path, roots):
        if not root.is_dir():
            what = "is not a directory" if root.exists() else "does not exist"
            raise AnalysisError(f"cannot load runs: {root} {what}")
        for path in discover(root):
            found.setdefault(path.resolve(), path)
    published = [run for root in map(Path, roots) if holds_peers(root) for run in peer_runs(root)]
    runs = Runs([*(RunFiles.open(path) for path in found.values()), *published], chosen)
    runs._warn(stacklevel=3)
    return runs


def _test(wanted: Any) -> Callable[[Any], bool]:
    if callable(wanted):
        return lambda value: bool(wanted(value))
    if isinstance(wanted, Collection) and not isinstance(wanted, str):
        return lambda value: value in wanted
    return lambda value: bool(value == wanted)
