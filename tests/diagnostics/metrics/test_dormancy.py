"""Shares of dormant neurons from recorded scores."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from diagnostics.metrics.dormancy import (
    TAUS,
    dormant_ratios,
    event_changes,
    lasting_layers,
    later_changes,
    persistence,
)
from diagnostics.studies.page import MissingDataError
from diagnostics.studies.shared.dormancy import dormancy, dormancy_at_expansions


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
    assert ratios["score"].tolist() == ["gradient"]


def test_measurements_without_a_score_are_left_out_and_never_count_as_zero():
    """Runs of schema version 1 have no gradient scores: None in the table."""
    old = row("cadence", [0, 1], step=10) | {"gradient": None, "run": "old"}
    table = pd.DataFrame([old, row("cadence", [0, 1], step=20)])
    ratios = dormant_ratios(table, score="gradient")
    assert ratios["run"].tolist() == ["r"] and ratios["ratio"].tolist() == [0.5]
    assert len(dormant_ratios(table, score="activation")) == 2
    assert dormant_ratios(pd.DataFrame([old]), score="gradient").empty


def test_a_picture_without_scores_says_why():
    old = row("cadence", [0, 1]) | {"gradient": None}
    with pytest.raises(MissingDataError, match=r"here has gradient scores.*schema version 1"):
        dormancy(page_of(pd.DataFrame([old])), score="gradient")


def test_tau_zero_counts_exact_zeros_only():
    table = pd.DataFrame([row("cadence", [0, 1e-9, 1, 1])])
    assert dormant_ratios(table, score="gradient", tau=0.0)["dormant"].tolist() == [1]
    assert dormant_ratios(table, score="gradient", tau=0.1)["dormant"].tolist() == [2]


def test_changes_at_expansions_pair_before_with_after():
    table = pd.DataFrame(
        [row("before expansion", [0, 1]), row("after expansion", [1, 1]), row("cadence", [0, 0, 1])]
    )
    changes = event_changes(dormant_ratios(table, score="gradient"))
    assert changes[["before", "after"]].to_numpy().tolist() == [[0.5, 0.0]]


def test_later_changes_reach_to_a_regular_measurement():
    table = pd.DataFrame(
        [
            row("cadence", [0, 0, 0, 1], step=10),  # on the step of the event: before it
            row("before expansion", [0, 0, 1, 1], step=10),
            row("after expansion", [0, 0, 1, 1], step=10),
            row("cadence", [0, 0, 0, 1], step=12),
            row("cadence", [0, 1, 1, 1], step=15),
            row("cadence", [1, 1, 1, 1], step=18),
            row("before reset", [1, 1, 1, 1], step=18),
        ]
    )
    ratios = dormant_ratios(table, score="gradient")
    wanted = {1: [0.5, 0.75], 2: [0.5, 0.25], 3: [0.5, 0.0]}
    for measurements, expected in wanted.items():
        found = later_changes(ratios, measurements=measurements)
        assert found[["env_step", "before", "after"]].to_numpy().tolist() == [[10, *expected]]
    assert later_changes(ratios, measurements=4).empty
    assert later_changes(ratios, measurements=1, kind="reset").empty


def test_events_that_another_event_follows_too_soon_are_left_out():
    table = pd.DataFrame(
        [
            row("before expansion", [0, 0, 1, 1], step=10),
            row("cadence", [0, 1, 1, 1], step=12),
            row("before reset", [0, 0, 1, 1], step=13),
            row("cadence", [1, 1, 1, 1], step=15),
        ]
    )
    ratios = dormant_ratios(table, score="gradient")
    assert len(later_changes(ratios, measurements=1)) == 1
    assert later_changes(ratios, measurements=2).empty


def grown():
    """A run whose new block lowers the share although every old neuron stays as it was."""
    return pd.DataFrame(
        [
            row("cadence", [0, 0, 1, 1]),
            row("before expansion", [0, 0.05, 1, 1]),
            row("after expansion", [0, 0.05, 1, 1]),
            row("after expansion", [1, 1, 1, 1], layer="block2.inner"),
            row("before expansion", [0, 1], step=20),
            row("after expansion", [1, 1], step=20),
        ]
    )


def test_lasting_layers_are_those_on_both_sides_of_an_event():
    kept = lasting_layers(grown())
    assert set(kept["layer"]) == {"stem"} and "cadence" not in set(kept["phase"])
    assert len(kept) == 4
    assert lasting_layers(grown(), "reset").empty
    changes = event_changes(dormant_ratios(kept, score="gradient", tau=0.1))
    assert changes[["before", "after"]].to_numpy().tolist() == [[0.5, 0.5], [0.5, 0.0]]


def page_of(table):
    return SimpleNamespace(
        main_task=lambda _: "t", runs=SimpleNamespace(dormancy=table), source="here"
    )


def test_the_table_of_expansions_has_every_threshold_and_the_old_layers():
    table = dormancy_at_expansions(page_of(grown()))
    assert TAUS == (0, 0.025, 0.1)
    rows = table[table["dormant by"] == "gradient"].set_index("tau")
    assert list(rows.index) == list(TAUS)
    assert rows["expansions"].tolist() == [2, 2, 2]
    assert rows["before (%)"].tolist() == [37.5, 37.5, 50]
    assert rows["after (%)"].tolist() == [6.25, 6.25, 12.5]
    assert rows["fell in (%)"].tolist() == [100, 100, 100]
    assert rows["old layers before (%)"].tolist() == [37.5, 37.5, 50]
    assert rows["old layers after (%)"].tolist() == [12.5, 12.5, 25]
    assert rows["old layers fell in (%)"].tolist() == [50, 50, 50]


def test_a_table_without_expansions_says_so():
    with pytest.raises(MissingDataError, match="here measured dormancy around an expansion"):
        dormancy_at_expansions(page_of(pd.DataFrame([row("cadence", [0, 1])])))


def test_nothing_recorded():
    assert dormant_ratios(pd.DataFrame(), score="gradient").empty


def test_persistence_counts_the_same_neurons():
    """Four neurons: 0 and 1 sleep at first, then 1 and 2, then after a reset 3."""
    table = pd.DataFrame(
        [
            row("cadence", [0, 0, 1, 1], step=10),
            row("cadence", [1, 0, 0, 1], step=20),
            row("cadence", [9, 9, 9], layer="block0.inner", step=20),
            row("after reset", [1, 1, 1, 0], step=20),
            row("cadence", [1, 1, 1, 0], step=30),
            row("cadence", [1, 1, 1, 1], step=40),
        ]
    )
    found = persistence(table, score="gradient")
    # The measurement on the step of a reset belongs to the life before it.
    assert found[["since", "env_step"]].to_numpy().tolist() == [[10, 20], [30, 40]]
    first, last = found.iloc[0], found.iloc[1]
    assert (first["neurons"], first["dormant_before"], first["dormant"], first["both"]) == (
        4, 2, 2, 1,
    )  # fmt: skip
    assert first["still"] == first["chance"] == first["overlap"] == 0.5
    assert last["still"] == 0.0 and last["chance"] == 0.0 and np.isnan(last["overlap"])
    assert persistence(table, score="activation", tau=0.5)["still"].isna().all()
    assert persistence(table, score="gradient", lag=2).empty


def test_persistence_against_sets():
    rng = np.random.default_rng(0)
    scores = rng.random((6, 2, 40)) ** 4
    table = pd.DataFrame(
        row("cadence", scores[k, member], member=member, step=k)
        for k in range(6)
        for member in range(2)
    )
    found = persistence(table, score="gradient", tau=0.2, lag=2)
    assert len(found) == 4
    for _, each in found.iterrows():
        sets = [
            {(m, i) for m in range(2) for i in range(40)
             if scores[step, m, i] <= 0.2 * scores[step, m].mean() * (1 + 1e-6)}
            for step in (each["since"], each["env_step"])
        ]  # fmt: skip
        assert each["still"] == pytest.approx(len(sets[0] & sets[1]) / len(sets[0]))
        assert each["overlap"] == pytest.approx(len(sets[0] & sets[1]) / min(map(len, sets)))
