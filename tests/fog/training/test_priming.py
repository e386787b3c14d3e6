"""Priming: the dose is given exactly and once, amid everything else, and survives a stop."""

from __future__ import annotations

import itertools
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fog
from fog.agent import Agent
from fog.records import checkpoint
from fog.records.run_directory import RunDirectory
from fog.replay import Replay
from fog.settings.config import Config
from fog.training import learner
from fog.training.learner import Learner
from fog.training.schedule import PORTION, timeline
from tests.training import assert_same_run, newest, tiny

DOSE = 100
# 40 steps of warm-up, then 30 with an update each. Expansions fall between updates of the priming.
SHORT: dict[str, Any] = {
    "steps": 70,
    "eval_every": 70,
    "window_steps": 70,
    "reset_steps": (),
    "expansion_updates": (30, 75),
    "priming_updates": DOSE,
}


def events(run: Path) -> pd.DataFrame:
    """Without checkpoints and resumes."""
    table = pd.read_csv(run / "events.csv")
    return table[~table["event"].isin(["checkpoint", "resume"])]


@pytest.mark.parametrize(
    ("backbone", "sampler", "resets", "grows"),
    list(
        itertools.product(
            ("sac", "obac"), ("uniform", "decay", "per", "cuer"), (False, True), (False, True)
        )
    ),
)
def test_every_combination_can_be_primed(
    tmp_path: Path, backbone: str, sampler: str, resets: bool, grows: bool
) -> None:
    changes = {
        "backbone": backbone,
        "sampler": sampler,
        "reset_steps": (40, 50) if resets else (),
        "expansion_updates": (30, 75) if grows else (),
    }
    config = tiny(tmp_path, **{**SHORT, **changes})
    run = fog.train(config)
    assert run.status == "finished"
    planned = [(e.env_step, e.kind) for e in timeline(config).events if e.kind != "cloning"]
    found = events(run.directory)
    assert list(zip(found["env_step"], found["event"], strict=True)) == planned
    assert planned[0] == (40, "priming")
    if grows:
        assert list(found["updates"][:3]) == [0, 30, 75], "expansions at the right updates"
    assert fog.load_agent(run.directory).total_updates == DOSE + 30
    assert np.load(newest(run.directory) / "replay" / "counts.npy").sum() == (DOSE + 30) * 16


def test_the_event_and_the_row_of_the_priming(tmp_path: Path) -> None:
    run = fog.train(tiny(tmp_path, **SHORT))
    first = events(run.directory).iloc[0]
    assert (first["event"], first["env_step"]) == ("priming", 40)
    assert first["detail"] == "100 updates on the first 40 transitions"
    train = pd.read_csv(run.directory / "train.csv")
    assert list(train["env_step"]) == [40, 50, 70]
    assert list(train["updates"]) == [100, 110, 130]


def test_without_a_dose_nothing_is_primed(tmp_path: Path) -> None:
    run = fog.train(tiny(tmp_path, **{**SHORT, "priming_updates": 0}))
    assert "priming" not in set(events(run.directory)["event"])
    assert fog.load_agent(run.directory).total_updates == 30


@pytest.mark.parametrize("sampler", ["uniform", "decay"])
def test_draws_of_the_priming_are_expected(tmp_path: Path, sampler: str) -> None:
    """The first 40 transitions are drawn far more often than the others, as the law says."""
    changes = {"sampler": sampler, "epsilon": 0.05, "probes": ("sample_counts",)}
    run = fog.train(tiny(tmp_path, **{**SHORT, **changes, "expansion_updates": ()}))
    home = run.directory / "probes"
    (counts,) = (pd.read_parquet(path) for path in (home / "sample_counts").iterdir())
    (fit,) = (pd.read_parquet(path) for path in (home / "sample_fit").iterdir())
    first = counts["end"] <= 40
    assert counts["count"].sum() == 130 * 16
    assert counts["expected"].sum() == pytest.approx(130 * 16)
    assert counts["expected"][first].sum() > DOSE * 16
    spread = np.sqrt(counts["variance"][first].sum())
    assert abs(counts["count"][first].sum() - counts["expected"][first].sum()) < 4 * spread
    assert abs(fit["z"].iloc[0]) < 4


# Portions


@pytest.mark.parametrize("sampler", ["decay", "per"])
@pytest.mark.parametrize("changes", [{}, {"priming_updates": 0, "replay_ratio": 40.0}])
def test_memory_does_not_grow_with_the_dose(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sampler: str, changes: dict[str, Any]
) -> None:
    asked: list[int] = []
    sample = Replay.sample

    def noting(replay: Replay, batch_size: int, batches: int = 1) -> Any:
        asked.append(batches)
        return sample(replay, batch_size, batches)

    monkeypatch.setattr(Replay, "sample", noting)
    fog.train(tiny(tmp_path, **{**SHORT, "steps": 44, "sampler": sampler, **changes}))
    assert max(asked) == (1 if sampler == "per" else PORTION)
    assert sum(asked) == (160 if changes else 104)


def test_the_size_of_a_portion_decides_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = fog.train(tiny(tmp_path / "portions", sampler="uniform", **SHORT)).directory
    monkeypatch.setattr(learner, "PORTION", 1000)
    other = fog.train(tiny(tmp_path / "at once", sampler="uniform", **SHORT)).directory
    assert (one / "evals.csv").read_bytes() == (other / "evals.csv").read_bytes()
    weights, others = (checkpoint.load_tensors(newest(run) / "agent.pt") for run in (one, other))
    assert all(np.array_equal(weights[name], others[name]) for name in weights)
    drawn, again = (np.load(newest(run) / "replay" / "counts.npy") for run in (one, other))
    assert np.array_equal(drawn, again)


# Stopping in the middle


def stop_at(config: Config, updates: int, resume: bool = False) -> Path:
    """Train with a Ctrl-C during an update, in this process."""
    update = Agent.update

    def update_and_stop(agent: Agent, batches: Any) -> Any:
        stats = update(agent, batches)
        if agent.total_updates - stats.updates < updates <= agent.total_updates:
            os.kill(os.getpid(), signal.SIGINT)
        return stats

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Agent, "update", update_and_stop)
        run = fog.train(config, resume=resume)
    assert run.status == "interrupted"
    return run.directory


PROBES = ("all", "dormancy:per_window=7", "churn:per_window=7")
STOPPED = {
    "fog": {},
    "per": {"sampler": "per"},
    # The last step of all is cut, and its log row, evaluation and window follow the resume.
    "long steps": {"replay_ratio": 40.0, "steps": 43, "priming_updates": 0, "eval_every": 43},
}


@pytest.mark.parametrize("name", STOPPED)
def test_a_stop_between_updates_goes_on_to_the_same_bits(tmp_path: Path, name: str) -> None:
    changes = {**SHORT, "probes": PROBES, **STOPPED[name]}
    whole = fog.train(tiny(tmp_path / "whole", **changes)).directory
    config = tiny(tmp_path / "cut", **changes)
    total = fog.load_agent(whole).total_updates
    at = total - 35 if name == "long steps" else 45
    run = stop_at(config, at)
    state = checkpoint.load_json(newest(run) / "state.json")
    assert state["env_step"] == (43 if name == "long steps" else 40)
    assert at <= state["agent"]["total_updates"] < at + PORTION
    # Stopped again in the same step: one checkpoint replaces the other.
    stop_at(config, at + PORTION - 1, resume=True)
    assert len(checkpoint.candidates(run / "checkpoint")) == 1
    assert fog.train(config, resume=True).status == "finished"
    assert_same_run(whole, run)
    assert_same_tables(whole, run)


def test_killed_after_a_stop_in_the_priming_nothing_is_recorded_twice(tmp_path: Path) -> None:
    changes = {**SHORT, "probes": PROBES}
    whole = fog.train(tiny(tmp_path / "whole", **changes)).directory
    config = tiny(tmp_path / "cut", **changes)
    run = stop_at(config, 40)
    update = Learner.update

    def fail_after(made: Learner, stop: Any) -> None:
        update(made, stop)
        raise MemoryError

    with pytest.MonkeyPatch.context() as patch, pytest.raises(MemoryError):
        # The second expansion has happened then, and probes have measured around it.
        patch.setattr(Learner, "update", fail_after)
        fog.train(config, resume=True)
    assert RunDirectory(run).manifest()["status"] == "failed"
    assert fog.train(config, resume=True).status == "finished"
    assert_same_run(whole, run)
    assert_same_tables(whole, run)


def assert_same_tables(one: Path, other: Path) -> None:
    parts = [
        {str(path.relative_to(run)): path for path in (run / "probes").rglob("*.parquet")}
        for run in (one, other)
    ]
    assert parts[0].keys() == parts[1].keys()
    for name, path in parts[0].items():
        frames = pd.read_parquet(path), pd.read_parquet(parts[1][name])
        pd.testing.assert_frame_equal(*frames, check_exact=True)
