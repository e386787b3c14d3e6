"""Curves of what probes saw inside the networks."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from diagnostics.metrics.internals import curves_inside, network_norms
from diagnostics.plots.card import run_inside
from fog.records import schema

EVENTS = pd.DataFrame({"event": ["reset"], "env_step": [15]})


def empty(name):
    return pd.DataFrame(columns=["run", *schema.TABLES[name].names])


def layer(step, network, norm, update, gradient=1.0, distance=2.0):
    return {
        "run": "r",
        "env_step": step,
        "network": network,
        "norm": norm,
        "gradient_norm": gradient,
        "update_norm": update,
        "birth_distance": distance,
    }


def test_norms_of_layers_add_up_by_squares():
    rows = [layer(10, "online", 3.0, 0.3), layer(10, "online", 4.0, 0.4), layer(10, "actor", 2, 1)]
    table = network_norms(pd.DataFrame(rows)).set_index("network")
    assert table.loc["online", "norm"] == pytest.approx(5.0)
    assert table.loc["online", "update_norm"] == pytest.approx(0.5)
    assert table.loc["online", "effective_lr"] == pytest.approx(0.1)
    assert table.loc["online", "gradient_ratio"] == pytest.approx(np.sqrt(2) / 5)
    assert table.loc["actor", "effective_lr"] == pytest.approx(0.5)
    unknown = network_norms(pd.DataFrame([layer(10, "online", 3.0, np.nan)]))
    assert unknown["effective_lr"].isna().all()


def test_curves_of_one_run():
    ranks = pd.DataFrame(
        {"critic": ["online", "online", "offline"], "env_step": 10, "srank": [4, 6, 99],
         "effective_rank": [2.0, 3.0, 9.0], "pca_rank": [1, 1, 9], "feature_rank": [8, 8, 9]}
    )  # fmt: skip
    twins = pd.DataFrame(
        {"critic": "online", "env_step": [10, 10, 20], "window": [0, 1, 2],
         "disagreement": [1.0, 3.0, 5.0], "q_std": [2.0, 2.0, 0.0]}
    )  # fmt: skip
    neurons = pd.DataFrame(
        {"phase": ["cadence", "after reset"], "network": "actor", "env_step": 10,
         "positive": [0.25, 0.75]}
    )  # fmt: skip
    table = curves_inside(
        ranks, neurons, pd.DataFrame([layer(10, "online", 2.0, 1.0)]), empty("update_churn"), twins
    )
    found = table.set_index(["quantity", "line", "env_step"])["value"]
    assert found["rank", "srank", 10] == 5 and found["rank", "effective_rank", 10] == 2.5
    assert found["positive", "actor", 10] == 0.25
    assert found["effective_lr", "online", 10] == 0.5
    assert found["disagreement", "newest window", 10] == 1.5
    assert found["disagreement", "oldest window", 10] == 0.5
    assert np.isnan(found["disagreement", "newest window", 20])
    figure, _ = run_inside(table, EVENTS, title="t")
    told = [text.get_text() for panel in figure.axes for text in panel.texts]
    assert told == ["not recorded"]


def test_nothing_recorded_draws_empty_panels():
    tables = ("srank", "dormancy", "layer_norms", "update_churn", "disagreement")
    table = curves_inside(*(empty(name) for name in tables))
    assert table.empty
    figure, _ = run_inside(table, EVENTS, title="t")
    assert len([text for panel in figure.axes for text in panel.texts]) == 6
