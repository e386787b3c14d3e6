"""A notebook's page: the runs it is about, where its figures go, and what is missing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Concatenate, ParamSpec

import pandas as pd
from IPython.display import Image, Markdown
from matplotlib.figure import Figure

from diagnostics import Runs, load
from diagnostics.errors import AnalysisError, unknown
from diagnostics.paper.names import ordered
from diagnostics.plots.save import portable, save_figure

P = ParamSpec("P")


class MissingDataError(AnalysisError):
    """What a figure needs is not among the runs; the message says what and how to get it."""


@dataclass(frozen=True)
class Page:
    """Runs chosen for one notebook.

    Attributes:
        runs: What was chosen.
        out: Where figures and tables go.
        wanted: Variants that the notebook is about, in the paper's order; empty means any.
        tasks: Tasks with at least one chosen run.
        source: The paths that were searched.
        parameters: Everything else a figure's provenance should name.
    """

    runs: Runs
    out: Path
    wanted: tuple[str, ...]
    tasks: tuple[str, ...]
    source: str
    parameters: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def open(
        cls,
        runs: str | Sequence[str] | None,
        out: str,
        *,
        variants: Iterable[str] | None = None,
        task: str | None = None,
        grid: str = "25k",
        **parameters: Any,
    ) -> Page:
        """Load the runs below `runs` and keep those of the wanted variants and task.

        `runs` is a folder of runs, or several; None opens a page without runs. None as `variants`
        or `task` keeps all; `grid` is that of `diagnostics.load`. The notebook's other parameters
        go into the provenance of its figures.
        """
        if runs is None:
            return cls(Runs(()), Path(out), tuple(variants or ()), (), "the parameter `runs`")
        loaded = load(runs, grid=grid)
        source = runs if isinstance(runs, str) else ", ".join(runs)
        if not len(loaded):
            raise AnalysisError(
                f"no runs in {source}: train some with `fog train --out {source}`, "
                "or give the folder that holds them as `runs`"
            )
        known = sorted(set(loaded.identity["task"]))
        if task is not None and task not in known:
            raise unknown("task", task, known)
        wanted = tuple(variants or ())
        chosen = loaded.select(task=task) if task is not None else loaded
        chosen = chosen.select(variant=wanted) if wanted else chosen
        parameters = {"variants": list(wanted) or None, "task": task, "grid": grid, **parameters}
        tasks = tuple(dict.fromkeys(chosen.identity["task"]))
        return cls(chosen, Path(out), wanted, tasks, source, parameters)

    def of_task(self, task: str) -> Runs:
        """The chosen runs of one task."""
        return self.runs.select(task=task)

    def main_task(self, table: str | None = None) -> str:
        """The task with most chosen variants, then most runs, preferring those with a table."""
        self.require()
        runs = self.runs
        if table is not None:
            kept = set(runs.table(table)["run"])
            runs = runs.select(run=kept)
            if not len(runs):
                raise MissingDataError(
                    f"no run in {self.source} recorded the probe table {table!r}: "
                    f"train with the probe of that name, or with all"
                )
        groups = runs.identity.groupby("task", sort=True)["variant"].agg(["nunique", "size"])
        return str(groups.sort_values(["nunique", "size"], ascending=False, kind="stable").index[0])

    def require(self) -> None:
        """Raise `MissingDataError` if no run was chosen."""
        if not len(self.runs):
            which = ", ".join(self.wanted) or "any variant"
            raise MissingDataError(f"no run of {which} in {self.source}")

    def overview(self) -> Markdown:
        """What was found, by task and variant, and what was not."""
        if not len(self.runs):
            return _missing(f"no run of {', '.join(self.wanted)} in {self.source}")
        facts = self.runs.runs
        lines = []
        for task, of_task in facts.groupby("task", sort=True):
            lines.append(f"- **{task}**: {'; '.join(_groups(of_task))}.")
            absent = [name for name in self.wanted if name not in set(of_task["variant"])]
            if absent:
                lines[-1] += f" Missing: {', '.join(f'`{name}`' for name in absent)}."
        unfinished = facts[facts["status"] != "finished"]
        for row in unfinished.itertuples():
            lines.append(f"- `{row.run}` is {row.status} at step {row.env_step:,}.")
        for row in self.runs.problems.itertuples():
            lines.append(f"- `{row.run}`: {row.problem}.")
        return _markdown(f"{len(facts)} runs in `{self.source}`:\n\n" + "\n".join(lines))

    def draw(
        self,
        function: Callable[Concatenate[Page, P], tuple[Figure, pd.DataFrame]],
        name: str,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Image | Markdown:
        """Draw a figure, save it as PNG, PDF, CSV and JSON, and show it; or say what is missing."""
        try:
            figure, table = function(self, *args, **kwargs)
        except MissingDataError as missing:
            return _missing(str(missing))
        parameters = {
            **self.parameters,
            **kwargs,
            "function": function.__name__,
            "runs": [portable(run) for run in self.runs.identity["run"]],
        }
        picture = save_figure(figure, name, self.out, table, parameters)[0]
        width = min(960, round(figure.get_figwidth() * 96))
        return Image(str(picture), width=width)  # type: ignore[no-untyped-call]

    def tabulate(
        self,
        function: Callable[Concatenate[Page, P], pd.DataFrame],
        name: str,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> pd.DataFrame | Markdown:
        """Compute a table, save it as CSV, and show it; or say what is missing."""
        try:
            table = function(self, *args, **kwargs)
        except MissingDataError as missing:
            return _missing(str(missing))
        self.out.mkdir(parents=True, exist_ok=True)
        table.to_csv(self.out / f"{name}.csv", index=False)
        return table.style.hide(axis="index").format(precision=3, na_rep="missing")


def _groups(facts: pd.DataFrame) -> list[str]:
    """'sac: 3 seeds (scale 0.02, 20,000 steps)' for each label."""
    texts = []
    for label in ordered(facts["label"]):
        rows = facts[facts["label"] == label]
        scale, steps = rows["scale"].iloc[0], rows["steps"].iloc[0]
        seeds = f"{len(rows)} seed" + ("s" if len(rows) > 1 else "")
        length = "length unknown" if pd.isna(steps) else f"{steps:,.0f} steps"
        texts.append(f"`{label}` {seeds} ({length}, scale {scale:g})")
    return texts


def _missing(text: str) -> Markdown:
    return _markdown(f"**Missing.** {text[0].upper()}{text[1:]}.")


def _markdown(text: str) -> Markdown:
    return Markdown(text)  # type: ignore[no-untyped-call]
