"""Shares of dormant neurons from recorded scores."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from diagnostics.dormant import dormant_ratios, event_changes


def row(phase, gradient, layer="stem", member=0, step=10):
    return {
        "task": "t",
        "variant": "fog",
        "seed": 0,
        "label": "fog",
        "run": "r",
        "env_step": step,
        "phase": phase,
        "network": "online",
        "layer": layer,
        "member": member,
        "gradient": np.asarray(gradient, np.float32),
        "activation": np.ones(len(gradient), np.float32),
    }


def test_a_neuron_is_compared_with_its_own_layer():
    table = pd.DataFrame([row("cadence", [0, 1, 1, 2]), row("cadence", [10, 10], layer="block0")])
    ratios = dormant_ratios(table, score="gradient", tau=0.1)
    assert ratios["neurons"].tolist() == [6]
    assert ratios["dormant"].tolist() == [1]
    assert ratios["ratio"].iloc[0] == pytest.approx(1 / 6)
    assert dormant_ratios(table, score="activation")["ratio"].tolist() == [0]


def test_tau_zero_counts_exact_zeros_only():
    table = pd.DataFrame([row("cadence", [0, 1e-9, 1, 1])])
    assert dormant_ratios(table, tau=0.0)["dormant"].tolist() == [1]
    assert dormant_ratios(table, tau=0.1)["dormant"].tolist() == [2]


def test_changes_at_expansions_pair_before_with_after():
    table = pd.DataFrame(
        [row("before expansion", [0, 1]), row("after expansion", [1, 1]), row("cadence", [0, 0, 1])]
    )
    changes = event_changes(dormant_ratios(table))
    assert changes[["before", "after"]].to_numpy().tolist() == [[0.5, 0.0]]


def test_nothing_recorded():
    assert dormant_ratios(pd.DataFrame()).empty
