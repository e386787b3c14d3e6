"""Variants side by side, one row per task and label: what `fog compare` prints.

Columns of the table:

- `final`: mean over seeds of each run's last evaluation.
- `best`: mean over seeds of each run's best evaluation strictly before its last step (the rule
  behind the paper's tables), among those on the grid `grid`: `25k` steps at scale 1, which are
  `grid_steps` in these runs, or `all`.
- `iqm`, `iqm_low`, `iqm_high`: interquartile mean over seeds of the last evaluation, with its 95 %
  interval (`diagnostics.metrics.student`); its ends are NaN with one seed.
- `primacy`: primacy-bias index of the online critic (`diagnostics.metrics.primacy`), mean over
  training.
- `dormant_gradient`, `dormant_activation`: share of dormant neurons in the online critic at the
  last measurement; a neuron is dormant by gradient (the paper's text) if its mean |gradient|, by
  activation (the work it cites) if its mean |activation|, is at most 0.1 of its layer's mean.
- `updates_per_second`: mean over seeds, evaluations and probes included.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pandas as pd

from diagnostics.errors import unknown
from diagnostics.metrics import primacy, statistics, student
from diagnostics.metrics.dormancy import SCORES, dormant_ratios
from diagnostics.paper.names import ordered
from diagnostics.runs.load import Runs
from diagnostics.runs.published import PUBLISHED

TAU = 0.1
"""Threshold of dormancy, as a share of the layer's mean score."""

SORTABLE = {
    "variant": True,
    "seeds": False,
    "final": False,
    "best": False,
    "iqm": False,
    "primacy": True,
    "dormant_gradient": True,
    "dormant_activation": True,
    "updates_per_second": False,
}
"""Columns to sort by, and whether small comes first."""

_SILENT_HOURS = 1.0
_NEWEST = 6
"""Enough of the newest dormancy measurements to hold one at the cadence: a reset or an expansion
may have been measured on a separate step."""

_HEATMAP = ("critic", "window", "window_start", "window_end", "count", "scaled")


def compare(runs: Runs, *, sort: str = "variant") -> pd.DataFrame:
    """The table described above.

    Args:
        runs: what to compare. Runs of other scales or settings get separate rows.
        sort: a key of `SORTABLE`; rows are sorted within their task. `variant` is the paper's
            order.

    Raises:
        AnalysisError: `sort` is not a column.
    """
    if sort not in SORTABLE:
        raise unknown("column to sort by", sort, SORTABLE)
    table = runs.runs
    per_run = table.assign(
        primacy=table["run"].map(_primacy(runs)),
        **{f"dormant_{score}": table["run"].map(_dormant(runs, score)) for score in SCORES},
    )
    rows = []
    for task, of_task in per_run.groupby("task", sort=False):
        for label in ordered(of_task["label"]):
            rows.append({"task": task, **_row(of_task[of_task["label"] == label])})
    compared = pd.DataFrame(rows)
    if sort == "variant" or compared.empty:
        return compared
    parts = [
        part.sort_values(sort, ascending=SORTABLE[sort], kind="stable")
        for _, part in compared.groupby("task", sort=False)
    ]
    return pd.concat(parts, ignore_index=True)


def _row(runs: pd.DataFrame) -> dict[str, Any]:
    final = runs["final_score"].to_numpy(float)
    iqm = student.iqm(final)
    first = runs.iloc[0]
    return {
        "variant": first["variant"],
        "label": first["label"],
        "scale": first["scale"],
        "metric": first["metric"],
        "seeds": len(runs),
        "final": _mean(final),
        "best": _mean(runs["best_score"]),
        "grid": first["grid"],
        "grid_steps": first["grid_steps"],
        "iqm": iqm.estimate,
        "iqm_low": iqm.low,
        "iqm_high": iqm.high,
        "primacy": _mean(runs["primacy"]),
        **{f"dormant_{score}": _mean(runs[f"dormant_{score}"]) for score in SCORES},
        "updates_per_second": _mean(runs["updates_per_second"]),
        "status": status(runs),
    }


def _mean(values: Any) -> float:
    return float(statistics.mean(np.asarray(values, float)[:, None]))


def status(runs: pd.DataFrame) -> str:
    """`finished`, or how many runs are in which state and how far the others are."""
    states: Counter[str] = Counter()
    for run in runs.itertuples():
        state = str(run.status)
        if state == "running" and run.idle_hours > _SILENT_HOURS:
            state = f"silent for {run.idle_hours:.0f} h"
        if state not in ("finished", "unknown", PUBLISHED) and run.steps > 0:
            state += f" at {100 * run.env_step / run.steps:.0f} %"
        states[state] += 1
    if len(states) == 1:
        return next(iter(states))
    return ", ".join(f"{count} {state}" for state, count in states.items())


def _primacy(runs: Runs) -> dict[str, float]:
    """Each run's index: the mean over the columns of its heatmap."""
    loss = runs.table("critic_loss", columns=_HEATMAP)
    loss = loss[loss["critic"] == "online"]
    found = {}
    for run, rows in loss.groupby("run", sort=False):
        width = int((rows["window_end"] - rows["window_start"]).max())
        _, indices = primacy.column_indices(
            rows["env_step"], rows["window"], rows["scaled"], rows["count"], width
        )
        found[str(run)] = _mean(indices)
    return found


def _dormant(runs: Runs, score: str) -> dict[str, float]:
    """Each run's last ratio of the online critic's neurons that are dormant by a score."""
    scores = runs.table("dormancy", last=_NEWEST, columns=("phase", "network", *SCORES))
    scores = scores[(scores["network"] == "online") & (scores["phase"] == "cadence")]
    scores = scores[scores[score].notna()]
    scores = scores[scores["env_step"] == scores.groupby("run")["env_step"].transform("max")]
    ratios = dormant_ratios(scores, score=score, tau=TAU).sort_values("env_step")
    return dict(ratios.groupby("run")["ratio"].last())
