"""Dormant neurons: from recorded scores of every neuron to shares of each network.

Two definitions, because the paper's text defines dormancy by gradients and cites work that
defines it by activations: *dormant (gradient)* and *dormant (activation)*, never just "dormant". A
neuron of a layer is dormant if its score is at most tau times the mean score of its layer (Sokar et
al., 2023, by activations). With LayerNorm and ELU exact zeros do not occur, so the paper's
"non-zero gradient" needs a tau.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

SCORES = ("gradient", "activation")
TAUS = (0.0, 0.025, 0.1)
"""Thresholds of the tables; 0 counts exact zeros."""


def dormant_ratios(dormancy: pd.DataFrame, *, score: str, tau: float = 0.1) -> pd.DataFrame:
    """Share of dormant neurons by run, network and measurement, all hidden layers together.

    Measurements without the score are left out: runs of schema version 1 have no gradient scores.

    Args:
        dormancy: `Runs.dormancy`.
        score: `gradient` (the paper's text) or `activation` (Sokar et al.).
        tau: Threshold, as a share of the layer's mean score; 0 means exactly zero.

    Returns:
        Columns `task`, `variant`, `seed`, `label`, `run`, `env_step`, `phase`, `network`,
        `score`, `neurons`, `dormant`, `ratio`.
    """
    keys = ["task", "variant", "seed", "label", "run", "env_step", "phase", "network", "score"]
    if not dormancy.empty:
        dormancy = dormancy[dormancy[score].notna()].assign(score=score)
    if dormancy.empty:
        return pd.DataFrame(columns=[*keys, "neurons", "dormant", "ratio"])
    counts = np.array(
        [(len(values), np.sum(values <= tau * np.mean(values))) for values in dormancy[score]]
    )
    table = dormancy[keys].assign(neurons=counts[:, 0], dormant=counts[:, 1])
    sums = table.groupby(keys, sort=False, dropna=False)[["neurons", "dormant"]].sum()
    return sums.assign(ratio=sums["dormant"] / sums["neurons"]).reset_index()


def lasting_layers(dormancy: pd.DataFrame, kind: str = "expansion") -> pd.DataFrame:
    """Measurements around events of one kind, of the layers that exist before and after.

    An expansion adds neurons, which changes the ratio of a network although nothing happened to an
    old neuron. The remaining rows show what happened to the old ones.

    Args:
        dormancy: `Runs.dormancy`.
        kind: `expansion` or `reset`.
    """
    around = dormancy[dormancy["phase"].isin([f"before {kind}", f"after {kind}"])]
    names = ["run", "env_step", "network", "layer", "member"]
    return around[around.groupby(names)["phase"].transform("nunique") == 2]


def event_changes(ratios: pd.DataFrame, kind: str = "expansion") -> pd.DataFrame:
    """The ratio just before and just after every event of one kind, one row per event."""
    names = ["task", "label", "run", "env_step", "network"]
    sides = {
        side: ratios[ratios["phase"] == f"{side} {kind}"].groupby(names)["ratio"].mean()
        for side in ("before", "after")
    }
    return pd.DataFrame(sides).dropna().reset_index()


def later_changes(
    ratios: pd.DataFrame, *, measurements: int, kind: str = "expansion"
) -> pd.DataFrame:
    """The ratio just before every event of one kind, and some regular measurements after it.

    An event is left out if another event comes before that measurement.

    Args:
        ratios: `dormant_ratios` of one network.
        measurements: which regular measurement after the event: 1 is the next one.
        kind: of event: `expansion`, `reset`.

    Returns:
        Columns `run`, `env_step` (of the event), `before`, `after`.
    """
    rows = []
    for run, table in ratios.groupby("run", sort=False):
        regular = table[table["phase"] == "cadence"].sort_values("env_step")
        events = np.unique(table.loc[table["phase"].str.startswith("before"), "env_step"])
        for event, own in table[table["phase"] == f"before {kind}"].groupby("env_step"):
            # What is measured on the step of an event comes before it.
            after = regular[regular["env_step"] > event].iloc[measurements - 1 : measurements]
            among = events[events > event]
            if len(after) and not (len(among) and among[0] < after["env_step"].iloc[0]):
                rows.append((run, event, own["ratio"].mean(), after["ratio"].iloc[0]))
    return pd.DataFrame(rows, columns=["run", "env_step", "before", "after"])


def persistence(
    dormancy: pd.DataFrame, *, score: str = "activation", tau: float = 0.1, lag: int = 1
) -> pd.DataFrame:
    """Whether the neurons that are dormant are the same ones later, by network.

    Compares each measurement at the cadence with the one `lag` measurements before it, neuron by
    neuron, over the layers that both have. Pairs with a reset between them are left out: their
    neurons have nothing in common.

    Args:
        dormancy: `Runs.dormancy`.
        score: `activation` (Sokar et al., whose question this is) or `gradient`.
        tau: Threshold, as a share of the layer's mean score; 0 means exactly zero.
        lag: Measurements between the two sides.

    Returns:
        Columns `task`, `variant`, `seed`, `label`, `run`, `network`, `env_step`, `since` (the
        earlier step), `neurons`, `dormant_before`, `dormant`, `both`; `still` = both /
        dormant_before, the share of dormant neurons that still are; `chance` = dormant / neurons,
        what `still` would be if the same number were dormant at random; `overlap` = both / the
        smaller of the two counts (Sokar et al.). NaN where nothing was dormant.
    """
    keys = ["task", "variant", "seed", "label", "run", "network"]
    counts = ["neurons", "dormant_before", "dormant", "both"]
    rows = [
        (*identity, *pair)
        for identity, table in dormancy.groupby(keys, sort=False, dropna=False)
        for pair in _pairs(table, score, tau, lag)
    ]
    found = pd.DataFrame(rows, columns=[*keys, "env_step", "since", *counts])
    smaller = found[["dormant_before", "dormant"]].min(axis=1)
    return found.assign(
        still=found["both"] / found["dormant_before"].where(found["dormant_before"] > 0),
        chance=found["dormant"] / found["neurons"],
        overlap=found["both"] / smaller.where(smaller > 0),
    )


def _pairs(
    table: pd.DataFrame, score: str, tau: float, lag: int
) -> Iterator[tuple[int, int, int, int, int, int]]:
    """Steps and counts of every pair of measurements of one network of one run."""
    resets = np.unique(table.loc[table["phase"] == "after reset", "env_step"])
    moments = []
    for step, rows in table[table["phase"] == "cadence"].groupby("env_step"):
        asleep = {
            (row.layer, row.member): np.asarray(values) <= tau * np.mean(values)
            for row, values in zip(rows.itertuples(), rows[score], strict=True)
        }
        # A reset comes after what is measured on its step.
        moments.append((int(step), int(np.searchsorted(resets, step)), asleep))
    for (since, life, old), (step, later, new) in zip(moments, moments[lag:], strict=False):
        shared = [layer for layer in old if layer in new]
        if life != later or not shared:
            continue
        before = np.concatenate([old[layer] for layer in shared])
        now = np.concatenate([new[layer] for layer in shared])
        both = int((before & now).sum())
        yield step, since, len(now), int(before.sum()), int(now.sum()), both
