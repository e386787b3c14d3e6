"""Normalised scores of published methods beside the paper's and ours, and what grids do to them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd

from diagnostics.metrics.scores import PAPER_GRID, Grid, best_score
from diagnostics.paper import tables as paper
from diagnostics.peers.load import Peers
from diagnostics.peers.scores import mean_over_tasks, scores
from diagnostics.plots.peers import Plot, grid_gains, looks, peer_bars
from diagnostics.studies.page import MissingDataError, Page
from diagnostics.studies.peer_claims import Sample, samples_of
from diagnostics.studies.shared.opponents import (
    action_repeats,
    chosen,
    needed,
    own_curves,
    own_label,
)

SHARED = "shared"


def overview_bars(
    page: Page,
    *,
    peers: Peers | None,
    score: str = "best_score",
    normalisation: str = "by_constant",
    aligned: bool = True,
    methods: Sequence[str] | None = None,
) -> Plot:
    """Normalised scores by suite: the paper's four methods as printed, published runs, and ours.

    `by_best_run` is the paper's rule: over the best single run of all methods shown. FoG's best run
    is known within bounds only; bars then stand in the middle of what is possible, and the line
    shows the bounds. `aligned` takes the best on the coarsest grid of the methods of a task, not on
    each file's. None as `methods` takes the main ones.
    """
    known = needed(peers)
    names = list(methods or known.main())
    table = scores(known.select(names), None if aligned else Grid(None))
    grids = table.groupby("task", observed=True)["grid_steps"].first() if aligned else None
    table = pd.concat([table, _own_scores(page, grids)], ignore_index=True)
    table["score"] = table[score]
    facts = paper.tasks().set_index("name")
    constant = normalisation == "by_constant"
    divisors = _divisors(table, facts, normalisation)
    shared = _shared(table, names, facts)
    groups = {str(name): list(rows.index) for name, rows in facts.groupby("group", sort=False)}
    groups[f"{SHARED} ({len(shared)} tasks)"] = shared
    rows: list[dict[str, object]] = []
    printed = paper.printed()
    series = [(name, "paper") for name in paper.ALGORITHMS]
    series += [(name, "published") for name in names]
    series += [(name, "ours") for name in dict.fromkeys(table["method"]) if name not in names]
    for name, source in series:
        if source == "paper":
            cells = printed[printed["algorithm"] == name]
            values = {
                cell.task: (cell.mean, cell.std**2 * paper.SEEDS / (paper.SEEDS - 1), paper.SEEDS)
                for cell in cells.itertuples()
            }
        else:
            values = samples_of(table[table["method"] == name]).get(name, {})
        for group, tasks in groups.items():
            rows.append(_bar(name, source, group, tasks, values, divisors, constant))
    known_scores = pd.DataFrame(rows)
    ours = [name for name, source in series if source == "ours"]
    over = "a constant of the suite" if constant else "the best single run"
    grid = "the coarsest grid of each task" if aligned else "each file's own grid"
    rule = f"best before T on {grid}" if score == "best_score" else "last evaluation up to T"
    whisker = (
        "Lines: 95 % Student interval over seeds."
        if constant
        else "Lines: what is possible, since FoG's best single run is known within bounds only."
    )
    return peer_bars(
        known_scores,
        looks(names, ours),
        title=f"Normalised score ({rule} / {over})",
        ylabel="normalised score",
        remark=f"Paper: printed cells, three seeds, best before T. {whisker} "
        f"{SHARED}: the tasks on which every published method shown has runs. 'n of m': the "
        "method has runs on n of the suite's m tasks only.",
    )


def _own_scores(page: Page, grids: pd.Series | None) -> pd.DataFrame:
    """Our runs' scores, on the grid of each task (times the scale) where one is given."""
    columns = ["method", "task", "seed", "best_score", "final_score"]
    if not len(page.runs):
        return pd.DataFrame(columns=columns)
    facts = chosen(page).runs
    facts = facts[facts["task"].isin(set(paper.tasks()["name"]))]
    named = facts.assign(
        method=[own_label(run.label, run.scale) for run in facts.itertuples()],
    )[columns]
    if grids is None:
        return named
    own = own_curves(page)
    bests = []
    for run in facts.itertuples():
        rows = own[own["run"] == run.run]
        spacing = Grid(int(grids.get(run.task, PAPER_GRID.steps))).spacing(run.scale)
        until = run.steps * action_repeats(facts.loc[[run.Index]])[0]
        steps, values = rows["env_step"].to_numpy(float), rows["value"].to_numpy(float)
        bests.append(best_score(steps, values, until, spacing))
    return named.assign(best_score=bests)


def _shared(table: pd.DataFrame, names: Iterable[str], facts: pd.DataFrame) -> list[str]:
    covered = [set(table["task"][table["method"] == name].astype("str")) for name in names]
    return [task for task in facts.index if all(task in tasks for tasks in covered)]


def _divisors(
    table: pd.DataFrame, facts: pd.DataFrame, normalisation: str
) -> dict[str, tuple[float, float]]:
    """The least and the largest number that a task's scores may have to be divided by."""
    if normalisation == "by_constant":
        return {task: (float(at), float(at)) for task, at in facts["normaliser"].items()}
    bounds = paper.best_run_bounds()
    best = table.groupby("task", observed=True)["score"].max()
    found = {}
    for task in facts.index:
        if facts.loc[task, "metric"] == "success":
            found[task] = (1.0, 1.0)
            continue
        top = float(best.get(task, 0.0))
        found[task] = (
            max(top, float(bounds.loc[task, "low"])),
            max(top, float(bounds.loc[task, "high"])),
        )
    return found


def _bar(
    name: str,
    source: str,
    group: str,
    tasks: Sequence[str],
    values: Mapping[str, Sample],
    divisors: Mapping[str, tuple[float, float]],
    intervals: bool,
) -> dict[str, object]:
    row: dict[str, object] = {"group": group, "series": name, "source": source, "of": len(tasks)}
    there = [task for task in tasks if task in values]
    if not there:
        return {**row, "score": math.nan, "low": math.nan, "high": math.nan, "tasks": 0, "seeds": 0}
    if intervals:
        score, low, high = mean_over_tasks(
            {task: _divided(values[task], divisors[task][0]) for task in there}
        )
    else:
        low = float(np.mean([values[task][0] / divisors[task][1] for task in there]))
        high = float(np.mean([values[task][0] / divisors[task][0] for task in there]))
        score = (low + high) / 2
    seeds = min(values[task][2] for task in there)
    return {**row, "score": score, "low": low, "high": high, "tasks": len(there), "seeds": seeds}


def _divided(sample: Sample, by: float) -> Sample:
    mean, variance, seeds = sample
    return mean / by, variance / by**2, seeds


def grid_gain(page: Page, *, peers: Peers | None, methods: Sequence[str] | None = None) -> Plot:
    """How much a finer grid of evaluations adds to the best score, by suite."""
    known = needed(peers)
    names = list(methods or known.main())
    table = scores(known.select(names))
    facts = paper.tasks().set_index("name")
    normaliser = table["task"].map(facts["normaliser"]).astype(float)
    table["gain"] = (table["own_score"] - table["best_score"]) / normaliser
    table["group"] = table["task"].map(facts["group"])
    rows = []
    for (group, name), at in table.dropna(subset=["gain"]).groupby(
        ["group", "method"], observed=True
    ):
        if not (at["gain"] > 0).any():
            continue
        samples = samples_of(
            at.drop(columns="score", errors="ignore").rename(columns={"gain": "score"})
        )
        found = mean_over_tasks(samples[str(name)])
        rows.append(
            {
                "group": group,
                "series": str(name),
                "gain": found.estimate,
                "low": found.low,
                "high": found.high,
                "grid_steps": int(at["grid_steps"].max()),
                "runs": len(at),
            }
        )
    if not rows:
        raise MissingDataError("all these published methods were evaluated on one grid")
    order = {group: place for place, group in enumerate(dict.fromkeys(facts["group"]))}
    found_table = pd.DataFrame(rows).sort_values(
        "group", key=lambda at: at.map(order), kind="stable"
    )
    return grid_gains(
        found_table, looks(names), title="What frequent evaluation adds to 'best before T'"
    )
