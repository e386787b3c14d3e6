"""Published curves in memory: `load_peers` reads a folder of tidy tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from diagnostics.errors import AnalysisError, unknown
from diagnostics.paper import tables as paper
from diagnostics.paper.methods import MAIN, method, ordered
from diagnostics.peers import tidy

_NONE = "fetch some with `fog import --from CHECKOUT --out peers`; docs/peers.md says from where"


class Curve(NamedTuple):
    """One published run: its evaluations in order, and T."""

    method: str
    task: str
    seed: int
    steps: NDArray[np.int64]
    values: NDArray[np.float64]
    until: float


@dataclass(frozen=True, repr=False, eq=False)
class Peers:
    """The published curves of a folder.

    Attributes:
        curves: one row per evaluation, see `diagnostics.peers.tidy`, and `steps`: T of the task.
        path: the folder.
        provenance: what `fog import` noted, by method; empty for a folder it did not write.
        problems: what was left out, and why.
    """

    curves: pd.DataFrame
    path: Path
    provenance: dict[str, Any]
    problems: list[str] = field(default_factory=list)

    def __repr__(self) -> str:
        return f"{len(self.methods)} methods in {self.path.resolve().name}"

    @cached_property
    def methods(self) -> list[str]:
        """Names of the methods, the paper's opponents first."""
        return ordered(self.curves["method"].unique())

    @cached_property
    def runs(self) -> list[Curve]:
        """Every run by itself."""
        if self.curves.empty:
            return []
        rows = self.curves.sort_values(["method", "task", "seed", "env_step"], kind="stable")
        names = [rows[name].to_numpy() for name in ("method", "task", "seed")]
        changes = np.any([at[1:] != at[:-1] for at in names], axis=0)
        starts = np.flatnonzero(np.append(True, changes))
        ends = np.append(starts[1:], len(rows))
        steps, values, until = (
            rows[name].to_numpy(kind)
            for name, kind in (("env_step", np.int64), ("value", float), ("steps", float))
        )
        return [
            Curve(
                str(names[0][at]), str(names[1][at]), int(names[2][at]),
                steps[at:end], values[at:end], float(until[at]),
            )
            for at, end in zip(starts, ends, strict=True)
        ]  # fmt: skip

    def main(self) -> list[str]:
        """The methods that figures draw by default: those of `MAIN`, or all if none of them."""
        return [name for name in MAIN if name in self.methods] or self.methods

    def select(
        self, methods: Sequence[str] | None = None, tasks: Iterable[str] | None = None
    ) -> Peers:
        """The curves of some methods on some tasks; None keeps all."""
        kept = self.curves
        if methods is not None:
            for name in methods:
                if name not in self.methods:
                    raise unknown(f"published method in {self.path}", name, self.methods)
            kept = kept[kept["method"].isin(methods)]
        if tasks is not None:
            kept = kept[kept["task"].isin(set(tasks))]
        return Peers(kept, self.path, self.provenance, self.problems)

    def overview(self) -> pd.DataFrame:
        """One row per method: tasks, seeds, spacing of evaluations, protocol, source, licence."""
        rows = []
        for name in self.methods:
            own = self.curves[self.curves["method"] == name]
            seeds = own.groupby("task")["seed"].nunique()
            facts = method(name)
            rows.append(
                {
                    "method": name,
                    "tasks": len(seeds),
                    "seeds": _span(seeds.min(), seeds.max()),
                    "replay_ratio": facts.replay_ratio,
                    "resets": facts.resets,
                    "action_repeat": facts.action_repeat,
                    "repository": facts.repository,
                    "licence": facts.licence,
                }
            )
        return pd.DataFrame(rows)


def load_peers(folder: str | Path) -> Peers:
    """The tidy tables of a folder.

    Raises:
        AnalysisError: the folder does not exist, holds no tidy table, or a table is damaged.
    """
    home = Path(folder)
    if not home.is_dir():
        what = "is not a folder" if home.exists() else "does not exist"
        raise AnalysisError(f"cannot load peers: {home} {what}; {_NONE}")
    paths = tidy.tables(home)
    if not paths:
        raise AnalysisError(f"{home} holds no published curves: {_NONE}")
    parts = [tidy.parse(path) for path in paths]
    curves = pd.concat(parts, ignore_index=True)
    try:
        tidy.check(curves, home)
    except AnalysisError:
        # Checked all at once, which is faster; now for the file that is to blame.
        for path, part in zip(paths, parts, strict=True):
            tidy.check(part, path)
        raise
    curves, problems = _unmixed(curves)
    owners: dict[str, Path] = {}
    for path, part in zip(paths, parts, strict=True):
        for name in part["method"].unique():
            if name in owners:
                raise AnalysisError(f"{owners[name]} and {path} both hold {name}: keep one of them")
            owners[name] = path
    steps = paper.tasks().set_index("name")["steps"]
    curves["steps"] = curves["task"].map(steps)
    for column in ("method", "task", "metric"):
        curves[column] = curves[column].astype("category")
    return Peers(curves, home, tidy.provenance(home), problems)


def _unmixed(curves: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """The curves without tasks in which one seed has two values at a step.

    They are curves of two runs, which can no longer be told apart.
    """
    twice = curves.duplicated(tidy.KEY)
    if not twice.any():
        return curves, []
    mixed = curves.loc[twice, ["method", "task"]].drop_duplicates()
    problems = [
        f"{name}: left out {', '.join(rows['task'])}, where one seed has two values at a step; "
        "import the official file instead"
        for name, rows in mixed.groupby("method", sort=True)
    ]
    pairs = pd.MultiIndex.from_frame(mixed)
    kept = ~pd.MultiIndex.from_frame(curves[["method", "task"]]).isin(pairs)
    return curves[kept].reset_index(drop=True), problems


def _span(low: int, high: int) -> str:
    return str(low) if low == high else f"{low} to {high}"
