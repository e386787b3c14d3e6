"""Returns: curves over training, and a table of final and best scores."""

from __future__ import annotations

import pandas as pd

from diagnostics.metrics import student
from diagnostics.metrics.curves import mean_curves
from diagnostics.metrics.scores import curve
from diagnostics.paper.names import label as paper_name
from diagnostics.paper.names import ordered
from diagnostics.plots.curves import Plot, curves
from diagnostics.plots.multiples import separated
from diagnostics.studies.page import MissingDataError, Page


def returns(page: Page, *, title: str = "", reference: str | None = None) -> Plot:
    """Evaluation return of every chosen variant, one panel per task.

    Args:
        page: The notebook's page.
        title: Headline.
        reference: A variant; if there are runs of it, each other variant has a panel beside it.
    """
    page.require()
    table = mean_curves(curve(page.runs.evals), "return")
    if table.empty:
        raise MissingDataError(f"no run in {page.source} has been evaluated yet")
    if reference is not None:
        return separated(table, page.runs.events, reference=reference, title=title)
    return curves(table, page.runs.events, title=title)


def scores(page: Page) -> pd.DataFrame:
    """Final and best return of every label on every task, mean with 95 % interval over seeds."""
    page.require()
    facts, best = page.runs.runs, page.runs.grid.rule("best_score")
    rows = []
    for task in page.tasks:
        of_task = facts[facts["task"] == task]
        for label in ordered(of_task["label"]):
            cells = of_task[of_task["label"] == label]
            rows.append(
                {
                    "task": task,
                    "variant": paper_name(label),
                    "final": _cell(cells["final_score"]),
                    best: _cell(cells["best_score"]),
                    "seeds": len(cells),
                    "metric": cells["metric"].iloc[0],
                }
            )
        for name in page.wanted:
            if name not in set(of_task["variant"]):
                gap = {"final": "missing", best: "missing", "seeds": 0, "metric": ""}
                rows.append({"task": task, "variant": paper_name(name), **gap})
    return pd.DataFrame(rows)


def _cell(values: pd.Series) -> str:
    known = values.dropna().to_numpy(float)
    if not len(known):
        return "missing"
    found = student.mean(known)
    if len(known) == 1:
        return f"{found.estimate:,.4g} (1 seed)"
    if found.low != found.low:
        return f"{found.estimate:,.4g} (all seeds equal)"
    return f"{found.estimate:,.4g} [{found.low:,.4g}, {found.high:,.4g}]"
