"""Numbers of a run, from tables small enough to work out by hand."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest

import diagnostics
from diagnostics.metrics.embedding import embed
from diagnostics.runs.load import Runs
from diagnostics.studies import per_run
from diagnostics.studies.claims import Measure
from diagnostics.studies.study import paper_claims
from tests.diagnostics.recorded import FIXTURE


def runs(**tables: Any) -> Runs:
    """Something with the tables of `Runs` and nothing else."""
    facts = pd.DataFrame({"run": ["a"], "steps": [400], "metric": ["return"]})
    return cast(Runs, SimpleNamespace(**{"runs": facts, **tables}))


def heatmap(loss: dict[tuple[int, int], float]) -> pd.DataFrame:
    """A table `critic_loss` with windows of 100 steps from {(step, window): loss}."""
    rows = [
        {
            "run": "a",
            "critic": critic,
            "env_step": step,
            "window": window,
            "window_start": 100 * window,
            "window_end": 100 * window + 100,
            "count": 100,
            "mean": value * factor,
            "scaled": 10 * value * factor,
        }
        for (step, window), value in loss.items()
        for critic, factor in (("online", 1.0), ("offline", 77.0))
    ]
    return pd.DataFrame(rows)


# Loss e^k, so that logarithms are the numbers below; columns at 100, 200, 300, 400.
LOGS = {
    (100, 0): 1.0,
    (200, 0): 2.0, (200, 1): 3.0,
    (300, 0): 4.0, (300, 1): 4.0, (300, 2): 7.0,
    (400, 0): 1.0, (400, 1): 1.0, (400, 2): 5.0, (400, 3): 9.0,
}  # fmt: skip
LOSS = heatmap({cell: float(np.exp(value)) for cell, value in LOGS.items()})


def test_the_diagonal_is_the_newest_window_of_the_online_critic() -> None:
    found = runs(critic_loss=LOSS)
    assert per_run.diagonal(found)["a"] == pytest.approx((1 + 3 + 7 + 9) / 4)
    assert per_run.late_diagonal(found)["a"] == pytest.approx((7 + 9) / 2)
    assert per_run.diagonal_growth(found)["a"] == pytest.approx((7 + 9) / 2 - (1 + 3) / 2)


def test_a_window_that_is_filling_or_has_no_loss_never_moves_the_diagonal() -> None:
    table = LOSS.copy()
    table.loc[(table["env_step"] == 400) & (table["window"] == 3), "count"] = 60
    # The newest complete window of step 400 is then the third, with e^5.
    assert per_run.late_diagonal(runs(critic_loss=table))["a"] == pytest.approx((7 + 5) / 2)
    table = LOSS.copy()
    table.loc[(table["env_step"] == 400) & (table["window"] == 3), "mean"] = np.nan
    assert per_run.late_diagonal(runs(critic_loss=table))["a"] == pytest.approx(7)


def test_the_late_loss_is_of_all_windows() -> None:
    found = per_run.late_loss(runs(critic_loss=LOSS))["a"]
    assert found == pytest.approx((4 + 4 + 7 + 1 + 1 + 5 + 9) / 7)


def test_the_late_index_compares_newest_and_older_half() -> None:
    # At 300 of three windows the oldest one, at 400 of four the oldest two.
    found = per_run.late_index(runs(critic_loss=LOSS))["a"]
    assert found == pytest.approx(((7 - 4) + (9 - 1)) / 2)


def test_the_scale_free_loss_is_the_other_column() -> None:
    found = per_run.diagonal(runs(critic_loss=LOSS), quantity="scaled")["a"]
    assert found == pytest.approx(5 + np.log(10))


def test_draws_per_transition_of_the_last_snapshot() -> None:
    counts = pd.DataFrame(
        {
            "run": "a",
            "env_step": [50, 100, 100, 100, 100],
            "start": [0, 0, 5, 10, 90],
            "end": [50, 5, 10, 90, 100],
            "count": [999, 30, 50, 500, 20],
        }
    )
    # 80 draws of the oldest ten, 20 of the newest ten.
    assert per_run.drawn(runs(sample_counts=counts))["a"] == pytest.approx(np.log(4))


def test_an_explosion_is_the_peak_between_resets_and_not_before_the_first() -> None:
    train = pd.DataFrame(
        {
            "run": "a",
            "env_step": [50, 100, 150, 200, 250, 300],
            "offline_critic_loss": [1e9, 1e8, 2.0, 8.0, np.nan, 4.0],
        }
    )
    events = pd.DataFrame(
        {"run": "a", "env_step": [100, 120, 200], "event": ["reset", "expansion", "reset"]}
    )
    # A row on the step of a reset closes the interval before it.
    found = per_run.explosion(runs(train=train, events=events))["a"]
    assert found == pytest.approx((np.log(8) + np.log(4)) / 2)
    mean = per_run.buffer_loss(runs(train=train, events=events))["a"]
    assert mean == pytest.approx((np.log(2) + np.log(8) + np.log(4)) / 3)


def test_without_the_newborn_the_first_row_after_a_reset_does_not_count() -> None:
    train = pd.DataFrame(
        {
            "run": "a",
            "env_step": [100, 150, 200, 250, 300, 350],
            "offline_critic_loss": [1e8, 50.0, 8.0, 2.0, 60.0, 4.0],
        }
    )
    events = pd.DataFrame({"run": "a", "env_step": [100, 250], "event": "reset"})
    found = runs(train=train, events=events)
    assert per_run.explosion(found)["a"] == pytest.approx((np.log(50) + np.log(60)) / 2)
    assert per_run.explosion(found, newborn=False)["a"] == pytest.approx(
        (np.log(8) + np.log(4)) / 2
    )


def test_agents_without_a_buffer_critic_have_no_explosion() -> None:
    train = pd.DataFrame({"run": ["a"], "env_step": [100], "critic_loss": [1.0]})
    assert per_run.explosion(runs(train=train, events=pd.DataFrame())).empty


def dormancy(rows: list[tuple[str, str, list[float]]]) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                "task": "t", "variant": "v", "seed": 0, "label": "v", "run": "a", "env_step": 200,
                "phase": phase, "network": "online", "layer": layer, "member": 0,
                "gradient": np.array(scores), "activation": np.ones(len(scores)),
            }
            for phase, layer, scores in rows
        ]
    )  # fmt: skip


def test_dormancy_in_points_with_and_without_the_newborn() -> None:
    found = runs(
        dormancy=dormancy(
            [
                ("before expansion", "first", [0.0, 0.0, 1.0, 1.0]),
                ("after expansion", "first", [0.0, 1.0, 1.0, 1.0]),
                ("after expansion", "block", [1.0, 1.0, 1.0, 1.0]),
                ("cadence", "first", [0.0, 1.0, 1.0, 1.0]),
            ]
        )
    )
    by = {"score": "gradient"}
    assert per_run.fall_at_expansions(found, **by)["a"] == pytest.approx(100 * (2 / 4 - 1 / 8))
    assert per_run.fall_of_old_layers(found, **by)["a"] == pytest.approx(100 * (2 / 4 - 1 / 4))
    assert per_run.dormant(found, **by)["a"] == pytest.approx(25)
    # Every activation is 1 there: nothing is dormant by that score.
    assert per_run.dormant(found, score="activation")["a"] == 0


def test_clusters_at_the_snapshot_nearest_to_a_fifth() -> None:
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(40, 3))
    apart = noise + 50 * (np.arange(40) % 2)[:, None]
    features = pd.DataFrame(
        {
            "run": "a",
            "env_step": [80] * 40 + [400] * 40,
            "features": [*apart, *noise],
        }
    )
    early = per_run.silhouette(runs(features=features))["a"]
    late = per_run.silhouette(runs(features=features), at=1.0)["a"]
    assert early > 0.9 > 0.6 > late
    assert early == pytest.approx(embed(apart).silhouette)


def test_a_snapshot_of_another_time_is_no_stand_in() -> None:
    rng = np.random.default_rng(0)
    features = pd.DataFrame(
        {"run": "a", "env_step": 300, "features": list(rng.normal(size=(40, 3)))}
    )
    assert per_run.silhouette(runs(features=features)).empty
    assert len(per_run.silhouette(runs(features=features), at=0.75)) == 1


def test_features_that_do_not_vary_are_left_out() -> None:
    features = pd.DataFrame({"run": "a", "env_step": 80, "features": [np.ones(3)] * 40})
    assert per_run.silhouette(runs(features=features)).empty


def test_late_return_is_the_mean_of_the_last_fifth_of_the_evaluations() -> None:
    evals = pd.DataFrame(
        {
            "run": "a",
            "env_step": [320, 360, 360, 400],
            "return": [1000.0, 10.0, 30.0, 40.0],
        }
    )
    assert per_run.late_return(runs(evals=evals))["a"] == pytest.approx((20 + 40) / 2)


def test_success_where_the_task_is_scored_by_it() -> None:
    facts = pd.DataFrame({"run": ["a"], "steps": [400], "metric": ["success"]})
    evals = pd.DataFrame({"run": "a", "env_step": [400], "return": [7.0], "success_once": [1.0]})
    assert per_run.late_return(runs(runs=facts, evals=evals))["a"] == 1.0


@pytest.mark.parametrize(
    "measure",
    [
        per_run.drawn,
        per_run.late_loss,
        per_run.late_index,
        per_run.diagonal_growth,
        per_run.late_return,
        partial(per_run.silhouette, at=1.0),
        partial(per_run.dormant, score="activation"),
    ],
)
def test_recorded_runs_have_one_number_each(measure: Any) -> None:
    loaded = diagnostics.load(FIXTURE)
    values = measure(loaded)
    assert set(values.index) <= set(loaded.identity["run"])
    assert values.index.is_unique
    assert len(values) >= 4
    assert np.isfinite(values).all()


MEASURES = sorted({part.measure for claim in paper_claims() for part in claim.contrasts}, key=str)


@pytest.mark.parametrize("measure", MEASURES)
def test_nothing_recorded_gives_nothing(measure: Measure) -> None:
    empty = diagnostics.load(FIXTURE).select(variant="no such")
    assert measure(empty).empty
