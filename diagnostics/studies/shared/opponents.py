"""The paper's main figures with real opponents: published curves, printed cells and our runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from diagnostics.metrics import student
from diagnostics.metrics.scores import curve
from diagnostics.paper import tables as paper
from diagnostics.paper.names import label as paper_name
from diagnostics.peers.load import Peers, load_peers
from diagnostics.peers.scores import mean_over_tasks
from diagnostics.plots.peers import Plot, looks, peer_curves
from diagnostics.runs.load import Runs
from diagnostics.studies.page import MissingDataError, Page
from diagnostics.studies.peer_claims import samples_of

SIXTEEN = (
    *("Ant-v4", "HalfCheetah-v4", "Humanoid-v4", "Walker2d-v4"),
    *("dog-run", "dog-trot", "humanoid-run", "humanoid-walk"),
    *("mw-assembly", "mw-coffee-push", "mw-pick-place-wall", "mw-stick-push"),
    *("h1-walk", "h1-run", "h1-stand", "h1-stair"),
)
"""Four tasks of each domain. The paper draws 16 too, but its text does not name them."""

OURS = "fog"
HARD = "DMC-Hard"
_CELL = " Diamonds: printed cells, mean and population deviation of three seeds, best before T."


def opened(peers: str | None) -> Peers | None:
    """The published curves of a folder; None if no folder was given."""
    return None if peers is None else load_peers(Path(peers))


def needed(peers: Peers | None) -> Peers:
    """The published curves, if a folder of them was given."""
    if peers is None:
        raise MissingDataError(
            "no published curves: `fog import` fetches them, `fog figures --peers DIR` draws them"
        )
    return peers


def suite_curves(
    page: Page, *, peers: Peers | None, group: str, methods: Sequence[str] | None = None
) -> Plot:
    """Learning curves of one group of tasks."""
    tasks = paper.tasks()
    names = list(tasks["name"][tasks["group"] == group])
    return task_curves(
        page, peers=peers, tasks=names, title=f"Main results, {group}", methods=methods
    )


def task_curves(
    page: Page,
    *,
    peers: Peers | None,
    tasks: Sequence[str] = SIXTEEN,
    title: str = "Main results on 16 of the 41 tasks, four for each domain",
    methods: Sequence[str] | None = None,
) -> Plot:
    """Learning curves of some tasks: published methods, our runs, and the printed cells."""
    known = needed(peers)
    names = list(methods or known.main())
    published = known.select(names, tasks)
    ours = own_curves(page)
    ours = ours[ours["task"].isin(tasks)]
    table = pd.concat([bands(published_curves(published)), bands(ours)], ignore_index=True)
    cells = paper.printed()
    cells = cells[cells["task"].isin(tasks)]
    order = {task: place for place, task in enumerate(tasks)}
    cells = cells.sort_values("task", key=lambda at: at.map(order), kind="stable")
    metric = paper.tasks().set_index("name")["metric"]
    return peer_curves(
        table,
        cells,
        looks(names, dict.fromkeys(ours["series"])),
        title=title,
        ylabels={
            task: "success rate" if metric[task] == "success" else "evaluation return"
            for task in tasks
        },
        remark=_CELL,
    )


def published_curves(peers: Peers) -> pd.DataFrame:
    """Published runs as rows of `bands`, up to T."""
    curves = peers.curves
    kept = curves[curves["env_step"] <= curves["steps"]]
    return pd.DataFrame(
        {
            "task": kept["task"].astype("str"),
            "series": kept["method"].astype("str"),
            "env_step": kept["env_step"],
            "value": kept["value"],
        }
    )


def own_curves(page: Page) -> pd.DataFrame:
    """Our runs in the same form: steps in frames, the task's metric, labels that say the scale."""
    columns = ["task", "series", "run", "env_step", "value"]
    if not len(page.runs):
        return pd.DataFrame(columns=columns)
    runs = chosen(page)
    facts = runs.runs.set_index("run")
    means = curve(runs.evals)
    if means.empty:
        return pd.DataFrame(columns=columns)
    of_run = facts.loc[means["run"]]
    # The files of others count frames; a decision of ours is `action_repeat` of them.
    repeat = action_repeats(of_run)
    success = (of_run["metric"] == "success").to_numpy()
    value = np.where(success, means.get("success_once", np.nan), means["return"])
    series = [
        own_label(label, scale)
        for label, scale in zip(of_run["label"], of_run["scale"], strict=True)
    ]
    return pd.DataFrame(
        {
            "task": means["task"].to_numpy(),
            "series": series,
            "run": means["run"].to_numpy(),
            "env_step": means["env_step"].to_numpy(float) * repeat,
            "value": value,
        }
    )


def chosen(page: Page) -> Runs:
    """Which of our runs to show beside published ones: FoG, or the chosen variants."""
    return page.runs.select(variant=page.wanted or (OURS,))


def action_repeats(facts: pd.DataFrame) -> NDArray[np.float64]:
    """Frames per decision of our runs; 1 if a run does not record it."""
    told = facts["action_repeat"] if "action_repeat" in facts else pd.Series(1, facts.index)
    return np.asarray(pd.to_numeric(told, errors="coerce").fillna(1), float)


def own_label(label: str, scale: float) -> str:
    """Our runs' name in a figure of published ones: whose they are, and at which scale."""
    name = paper_name(label)
    remark = "ours" if scale == 1 or "scale " in label else f"ours, scale {scale:g}"
    return f"{name[:-1]}, {remark})" if name.endswith(")") else f"{name} ({remark})"


def bands(table: pd.DataFrame) -> pd.DataFrame:
    """Mean over seeds and 95 % Student interval at every step of every task and series.

    The interval of one seed is NaN.
    """
    groups = table.groupby(["task", "series", "env_step"], sort=False)["value"]
    found = groups.agg(mean="mean", spread="std", seeds="count").reset_index()
    found = found[found["seeds"] > 0].sort_values("env_step", kind="stable")
    half = student.half_width(found["spread"], found["seeds"])
    return found.assign(low=found["mean"] - half, high=found["mean"] + half).drop(columns="spread")


def efficiency(
    page: Page, *, peers: Peers | None, group: str = HARD, methods: Sequence[str] | None = None
) -> Plot:
    """Normalised score of a group of tasks over training, mean over tasks.

    A method is drawn where all tasks of the group were evaluated; so are our labels.
    """
    known = needed(peers)
    facts = paper.tasks()
    facts = facts[facts["group"] == group].set_index("name")
    names = list(methods or known.main())
    rows = pd.concat(
        [published_curves(known.select(names, facts.index)), own_curves(page)], ignore_index=True
    )
    rows = rows[rows["task"].isin(facts.index)]
    rows["value"] = rows["value"] / rows["task"].map(facts["normaliser"]).astype(float)
    parts = []
    for (series, step), at in rows.groupby(["series", "env_step"], sort=False):
        if at["task"].nunique() < len(facts):
            continue
        samples = samples_of(at.rename(columns={"series": "method", "value": "score"}))[str(series)]
        found = mean_over_tasks(samples)
        seeds = min(count for _, _, count in samples.values())
        parts.append((group, series, step, *found, seeds))
    table = pd.DataFrame(
        parts, columns=["task", "series", "env_step", "mean", "low", "high", "seeds"]
    ).sort_values("env_step")
    cells = paper.printed()
    cells = cells[cells["group"] == group]
    fixed = paper.fixed_normalised().query("group == @group").set_index("algorithm")["mean"]
    spread = (cells["std"] / cells["normaliser"]) ** 2
    deviation = np.sqrt(spread.groupby(cells["algorithm"]).sum()) / len(facts)
    printed = pd.DataFrame(
        {
            "task": group,
            "algorithm": list(fixed.index),
            "mean": fixed.to_numpy(),
            "std": deviation[fixed.index].to_numpy(),
            "steps": int(facts["steps"].iloc[0]),
        }
    )
    ours = [name for name in dict.fromkeys(table["series"]) if name not in names]
    return peer_curves(
        table,
        printed,
        looks(names, ours),
        title=f"Normalised score on {group} over training ({len(facts)} tasks)",
        ylabels={group: "return / constant of the suite"},
        columns=1,
        remark=_CELL + " OBAC with scaling has no public runs.",
    )
