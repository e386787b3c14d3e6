"""Score against what it costs: parameters, updates, and the product of both over training."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from diagnostics.metrics import student
from diagnostics.paper.names import label as paper_name
from diagnostics.paper.names import ordered
from diagnostics.plots.scores import Plot, score_against
from diagnostics.runs.architecture import growth
from diagnostics.runs.load import Runs
from diagnostics.studies.page import MissingDataError, Page
from diagnostics.studies.shared.returns import returns
from diagnostics.studies.study import Study

COMPARISONS: dict[str, tuple[str, ...]] = {
    "similar_compute": ("fog", "bro-deep", "simba-deep"),
    "ne_compare": ("fog-ne", "ne", "ne-large"),
}
"""Opponents of similar size by the plan that trains them."""

STUDY = Study(name="similar_compute", order=9, plans=tuple(COMPARISONS))

_COSTS = (
    ("parameters", "largest network: parameters\n(all networks with targets)"),
    ("updates", "gradient updates"),
    ("parameter_updates", "sum over updates of trained parameters"),
)


def costs(runs: Runs) -> pd.DataFrame:
    """Per run: the largest number of parameters, updates, and trained parameters times updates.

    The product is a proxy for compute that charges a growing network only for its current size.
    """
    rows = []
    for run, identity in zip(runs.files, runs.identity.to_dict("records"), strict=True):
        facts = runs.runs[runs.runs["run"] == identity["run"]].iloc[0]
        own = runs.events[runs.events["run"] == identity["run"]]
        try:
            history = growth(run.config, run.manifest, own)
        except KeyError:
            continue
        spans = np.diff(np.append(history["updates"], max(facts["updates"], 0)))
        trained = history["trained_parameters"].to_numpy(float)
        rows.append(
            {
                "task": identity["task"],
                "label": identity["label"],
                "run": identity["run"],
                "parameters": int(history["total_parameters"].max()),
                "updates": facts["updates"],
                "parameter_updates": float((trained * np.maximum(spans, 0)).sum()),
                "final_score": facts["final_score"],
                "best_score": facts["best_score"],
            }
        )
    return pd.DataFrame(rows)


def cost_table(page: Page, *, score: str = "best_score") -> pd.DataFrame:
    """Per label of the main task: mean score with its interval, and what it cost."""
    page.require()
    task = page.main_task()
    found = costs(page.of_task(task))
    if found.empty or found[score].isna().all():
        raise MissingDataError(
            f"no run on {task} in {page.source} has a score yet ({page.runs.grid.rule(score)})"
        )
    rows = []
    for label in ordered(found["label"]):
        cells = found[found["label"] == label].dropna(subset=[score])
        if cells.empty:
            continue
        values = cells[score].to_numpy(float)
        scored = student.mean(values)
        rows.append(
            {
                "task": task,
                "label": label,
                "variant": paper_name(label),
                "rule": page.runs.grid.rule(score),
                "score": scored.estimate,
                "low": scored.low,
                "high": scored.high,
                "seeds": len(values),
                **{name: float(cells[name].mean()) for name, _ in _COSTS},
            }
        )
    return pd.DataFrame(rows)


def score_for_cost(page: Page, *, score: str = "best_score") -> Plot:
    """The table as a figure: one panel per measure of cost."""
    table = cost_table(page, score=score)
    title = f"Score against cost, {table['task'].iloc[0]}"
    return score_against(table, _COSTS, title=title, ylabel=f"score ({page.runs.grid.rule(score)})")


def opponents(page: Page) -> pd.DataFrame:
    """What there is of each comparison with an opponent: runs by task and variant, 0 if missing."""
    page.require()
    found = page.runs.identity.groupby(["task", "variant"]).size()
    rows = [
        {
            "plan": plan,
            "task": task,
            "variant": paper_name(name),
            "runs": found.get((task, name), 0),
        }
        for plan, names in COMPARISONS.items()
        for task in page.tasks
        for name in names
    ]
    return pd.DataFrame(rows)


def ne_compare(page: Page) -> Plot:
    """Returns of Neuroplastic Expansion, small and large, beside the FoG that is set against it."""
    names = COMPARISONS["ne_compare"]
    chosen = page.runs.select(variant=names)
    if not {"ne", "ne-large"} & set(chosen.identity["variant"]):
        raise MissingDataError(
            f"no run of ne or ne-large in {page.source}: train them with "
            "`fog sweep --plan ne_compare`"
        )
    return returns(replace(page, runs=chosen, wanted=names), title="Neuroplastic Expansion")
