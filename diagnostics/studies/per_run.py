"""Numbers of a run that the paper's claims are about, one per run.

Every function takes `Runs` and returns a series indexed by run; runs that did not record what it
needs are left out. Losses and draws come as natural logarithms: a difference of two runs is then a
ratio, and one seed with a large loss does not outweigh the others.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from diagnostics.metrics import primacy
from diagnostics.metrics.dormancy import (
    dormant_ratios,
    event_changes,
    lasting_layers,
    later_changes,
)
from diagnostics.metrics.embedding import separation
from diagnostics.metrics.scores import curve
from diagnostics.runs.load import Runs

TAU = 0.1
"""A neuron is dormant if its score, by gradient or activation, is at most this share of its
layer's mean."""

LATE = 0.5
"""The late columns of a heatmap are those measured after this share of the run."""


def drawn(runs: Runs) -> pd.Series:
    """ln(draws of a transition of the oldest tenth / of the newest tenth) over the whole run."""
    table = runs.sample_counts
    found = {}
    for run, rows in table.groupby("run", sort=False):
        last = rows[rows["env_step"] == rows["env_step"].max()]
        place = (last["start"] + last["end"]) / 2 / last["end"].max()
        size = last["end"] - last["start"]
        oldest, newest = place < 0.1, place > 0.9
        if oldest.any() and newest.any():
            means = [last["count"][k].sum() / size[k].sum() for k in (oldest, newest)]
            found[run] = _log(means[0]) - _log(means[1])
    return _series(found)


def late_loss(runs: Runs, quantity: str = "mean") -> pd.Series:
    """Mean ln of the critic's loss on all windows, late in training."""
    cells = _cells(runs, quantity)
    return cells[cells["share"] > LATE].groupby("run")["log"].mean()


def diagonal(runs: Runs, quantity: str = "mean") -> pd.Series:
    """Mean ln of the critic's loss on its newest window, over all measurements."""
    return _newest(_cells(runs, quantity)).groupby("run")["log"].mean()


def late_diagonal(runs: Runs, quantity: str = "mean") -> pd.Series:
    """The same, late in training."""
    newest = _newest(_cells(runs, quantity))
    return newest[newest["share"] > LATE].groupby("run")["log"].mean()


def diagonal_growth(runs: Runs, quantity: str = "mean") -> pd.Series:
    """Growth of the loss on the newest window: ln of late in training against before."""
    newest = _newest(_cells(runs, quantity))
    late = newest["share"] > LATE
    means = (newest[part].groupby("run")["log"].mean() for part in (late, ~late))
    return next(means).sub(next(means)).dropna()


def late_index(runs: Runs, quantity: str = "mean") -> pd.Series:
    """ln(loss of the newest window / of the older half), late in training: the primacy index."""
    found = {}
    for run, rows in _cells(runs, quantity).groupby("run", sort=False):
        width = int((rows["window_end"] - rows["window_start"]).max())
        steps, values = primacy.column_indices(
            rows["env_step"], rows["window"], rows[quantity], rows["count"], width
        )
        late = values[(steps > LATE * rows["steps"].iloc[0]) & np.isfinite(values)]
        if len(late):
            found[run] = float(late.mean())
    return _series(found)


def explosion(runs: Runs, newborn: bool = True) -> pd.Series:
    """Peak training loss of the buffer critic after resets, as ln, mean over the resets.

    The rows of train.csv hold means over their interval, so a peak of a few updates is flattened.
    Without `newborn` the first row after each reset does not count: that is the loss of new
    weights, whatever the critic does later.
    """
    rows = _between_resets(runs)
    if not newborn:
        rows = rows[rows.groupby(["run", "interval"]).cumcount() > 0]
    peaks = rows.groupby(["run", "interval"])["log"].max()
    return peaks.groupby("run").mean()


def buffer_loss(runs: Runs) -> pd.Series:
    """Training loss of the buffer critic after the first reset, as ln, mean over the rows."""
    return _between_resets(runs).groupby("run")["log"].mean()


def _between_resets(runs: Runs) -> pd.DataFrame:
    """Rows of train.csv after the first reset: `log` of the loss, and which `interval`."""
    column, parts = "offline_critic_loss", []
    train = runs.train.dropna(subset=[column]) if column in runs.train else runs.train.iloc[:0]
    resets = runs.events[runs.events["event"] == "reset"] if len(train) else train
    for run, rows in train.groupby("run", sort=False):
        at = np.sort(resets["env_step"][resets["run"] == run].unique())
        # A row on the step of a reset closes the interval before it.
        interval = np.searchsorted(at, rows["env_step"].to_numpy(), side="left")
        log = np.log(rows[column].to_numpy(float))
        parts.append(pd.DataFrame({"run": run, "interval": interval, "log": log}))
    found = pd.concat(parts) if parts else pd.DataFrame(columns=["run", "interval", "log"])
    return found[found["interval"] > 0].astype({"log": float})


def dormant(runs: Runs, score: str) -> pd.Series:
    """Neurons of the online critic that are dormant by a score in per cent, mean over training."""
    ratios = _ratios(runs.dormancy, score)
    return 100 * ratios[ratios["phase"] == "cadence"].groupby("run")["ratio"].mean()


def fall_at_expansions(runs: Runs, score: str) -> pd.Series:
    """Points by which the online critic's dormant share falls at an expansion, on the same batch.

    New neurons count, dormant or not. Nothing has been learned between the two measurements. A
    curve of regular measurements, which come later, may show something else
    (`fall_after_expansions`).
    """
    changes = event_changes(_ratios(runs.dormancy, score))
    return 100 * (changes["before"] - changes["after"]).groupby(changes["run"]).mean()


def fall_after_expansions(runs: Runs, score: str) -> pd.Series:
    """Points lost from just before an expansion to the second regular measurement after it."""
    changes = later_changes(_ratios(runs.dormancy, score), measurements=2)
    return 100 * (changes["before"] - changes["after"]).groupby(changes["run"]).mean()


def fall_of_old_layers(runs: Runs, score: str) -> pd.Series:
    """The same of the layers alone that exist before and after: are old neurons revived?"""
    changes = event_changes(_ratios(lasting_layers(runs.dormancy), score))
    return 100 * (changes["before"] - changes["after"]).groupby(changes["run"]).mean()


def silhouette(runs: Runs, at: float = 0.2) -> pd.Series:
    """Silhouette of clusters of the online critic's features, after the share `at` of the run.

    A run without a snapshot within a twentieth of it is left out.
    """
    steps = runs.runs.set_index("run")["steps"]
    found = {}
    for run, rows in runs.features.groupby("run", sort=False):
        moments = rows["env_step"].unique()
        moment = moments[np.argmin(np.abs(moments - at * steps[run]))]
        if abs(moment - at * steps[run]) > 0.05 * steps[run]:
            continue
        chosen = rows["features"][rows["env_step"] == moment]
        try:
            found[run] = separation(np.stack(list(chosen)))
        except ValueError:
            # A critic that gives the same features for every point, or none that are finite.
            continue
    return _series(found)


def late_return(runs: Runs) -> pd.Series:
    """Mean score of the evaluations in the last fifth of the run."""
    facts = runs.runs.set_index("run")
    found = {}
    for run, rows in curve(runs.evals).groupby("run", sort=False):
        late = rows[rows["env_step"] > 0.8 * facts.loc[run, "steps"]]
        metric = "success_once" if facts.loc[run, "metric"] == "success" else "return"
        if len(late):
            found[run] = float(late[metric].mean())
    return _series(found)


def _cells(runs: Runs, quantity: str) -> pd.DataFrame:
    """Cells of the online critic's heatmaps that hold complete windows.

    Besides the columns of the table: `log` of the loss, the run's `steps`, `share` of it, and
    whether the cell is of the `newest` window. Cells without a positive loss are left out.
    """
    table = runs.critic_loss
    table = table[table["critic"] == "online"]
    table = table[table["count"] == table["window_end"] - table["window_start"]]
    newest = table["window"] == table.groupby(["run", "env_step"])["window"].transform("max")
    table = table.assign(newest=newest.astype(bool))
    table = table[table[quantity] > 0]
    # The columns of an empty table have no numeric type.
    loss, moment = table[quantity].astype(float), table["env_step"].astype(float)
    steps = table["run"].map(runs.runs.set_index("run")["steps"]).astype(float)
    return table.assign(log=np.log(loss), steps=steps, share=moment / steps)


def _newest(cells: pd.DataFrame) -> pd.DataFrame:
    return cells[cells["newest"]]


def _ratios(dormancy: pd.DataFrame, score: str) -> pd.DataFrame:
    return dormant_ratios(dormancy[dormancy["network"] == "online"], score=score, tau=TAU)


def _log(value: float) -> float:
    return float(np.log(value)) if value > 0 else float("nan")


def _series(found: dict[str, float]) -> pd.Series:
    return pd.Series(found, dtype=float)
