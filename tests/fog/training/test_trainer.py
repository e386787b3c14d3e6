"""The trainer: every combination runs, the lifecycle is the planned one, runs repeat exactly."""

from __future__ import annotations

import importlib.util
import itertools
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import fog
from fog.errors import UserError
from fog.events import Change, Probe, View
from fog.records import checkpoint
from fog.records.run_directory import RunDirectory
from fog.replay import Replay, make_sampler
from fog.seeding import generator
from fog.training import run as training
from fog.training.schedule import timeline
from tests.training import assert_same_run, newest, tiny

COMBINATIONS = list(
    itertools.product(
        ("sac", "obac"), ("uniform", "decay", "per", "cuer"), (False, True), (False, True)
    )
)


@pytest.mark.parametrize(("backbone", "sampler", "resets", "grows"), COMBINATIONS)
def test_every_combination_trains(
    tmp_path: Path, backbone: str, sampler: str, resets: bool, grows: bool
) -> None:
    changes = {
        "backbone": backbone,
        "sampler": sampler,
        "reset_steps": (120, 200) if resets else (),
        "expansion_updates": (30, 60) if grows else (),
        "probes": ("all",),
    }
    config = tiny(tmp_path, **changes)
    run = fog.train(config)
    assert run.status == "finished"
    events = pd.read_csv(run.directory / "events.csv")
    planned = [(e.env_step, e.kind) for e in timeline(config).events if e.kind != "cloning"]
    changed = events[events["event"].isin(["reset", "expansion"])]
    assert list(zip(changed["env_step"], changed["event"], strict=True)) == planned
    state = checkpoint.load_json(newest(run.directory) / "state.json")
    assert state["agent"]["total_updates"] == 260
    counts = np.load(newest(run.directory) / "replay" / "counts.npy")
    assert counts.sum() == 260 * 16


def test_learning_rate_and_depth_in_the_event_log(tmp_path: Path) -> None:
    run = fog.train(tiny(tmp_path))
    events = pd.read_csv(run.directory / "events.csv")
    grown = events[events["event"] == "expansion"]
    assert list(grown["dense_layers"]) == [8, 10] * 3
    assert grown["critic_lr"].to_numpy() == pytest.approx(
        [3e-4 * 6 / dense for dense in grown["dense_layers"]]
    )
    reset = events[events["event"] == "reset"]
    assert set(reset["depth"]) == {2} and set(reset["critic_lr"]) == {3e-4}


class Noting(Probe):
    """Notes what happens to the networks at which step, and the online weights then."""

    name = "noting"

    def __init__(self) -> None:
        self.seen: list[tuple[int, str, torch.Tensor]] = []

    def _note(self, view: View, what: str) -> None:
        weights = view.agent.parameters("online")["stem.weight"].clone()
        self.seen.append((view.env_step, what, weights))

    def on_change(self, view: View, event: Change) -> None:
        self._note(view, f"{event.phase} {event.kind}")

    def on_window(self, view: View) -> None:
        self._note(view, "window")


def test_a_window_that_ends_on_a_reset_is_measured_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    probe = Noting()
    monkeypatch.setattr("fog.probing.observed.load", lambda _: [probe])
    fog.train(tiny(tmp_path, reset_steps=(200,), expansion_updates=()))
    at_reset = [(what, weights) for step, what, weights in probe.seen if step == 200]
    assert [what for what, _ in at_reset] == ["window", "before reset", "after reset"]
    measured, before, after = (weights for _, weights in at_reset)
    assert torch.equal(measured, before) and not torch.equal(measured, after)


def test_a_window_that_ends_on_an_expansion_is_measured_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    probe = Noting()
    monkeypatch.setattr("fog.probing.observed.load", lambda _: [probe])
    # 40 steps of warm-up, then one update a step: the last of step 100 is the 60th.
    fog.train(tiny(tmp_path, reset_steps=(), expansion_updates=(60,)))
    seen = [what for step, what, _ in probe.seen if step == 100]
    assert seen == ["window", "before expansion", "after expansion"]


def test_replay_ratio_below_one(tmp_path: Path) -> None:
    run = fog.train(tiny(tmp_path, replay_ratio=0.3, reset_steps=(), expansion_updates=()))
    assert fog.load_agent(run.directory).total_updates == 78


def test_the_same_seed_gives_the_same_bits_and_another_does_not(tmp_path: Path) -> None:
    one, two = (fog.train(tiny(tmp_path / name)) for name in "ab")
    assert_same_run(one.directory, two.directory)
    other = fog.train(tiny(tmp_path / "c", seed=1))
    with pytest.raises(AssertionError):
        assert_same_run(one.directory, other.directory)


def test_files_of_a_run_directory(tmp_path: Path) -> None:
    run = fog.train(tiny(tmp_path, tensorboard=True))
    evals = pd.read_csv(run.directory / "evals.csv")
    assert list(evals.columns[:2]) == ["env_step", "return"]
    assert list(evals["env_step"]) == [100, 200, 300]
    assert evals["return"].iloc[-1] == run.final_return
    events = pd.read_csv(run.directory / "events.csv")
    assert list(events.columns[:2]) == ["env_step", "event"]
    train = pd.read_csv(run.directory / "train.csv")
    assert list(train["env_step"]) == [50, 100, 150, 200, 250, 300]
    assert np.isfinite(train["critic_loss"]).all()
    manifest = json.loads((run.directory / "manifest.json").read_text())
    assert manifest["status"] == "finished"
    assert manifest["versions"]["torch"] == torch.__version__
    assert list((run.directory / "tensorboard").iterdir())
    assert RunDirectory(run.directory).config() == tiny(tmp_path, tensorboard=True)


def test_episodes_that_terminate_and_success_columns(tmp_path: Path) -> None:
    run = fog.train(tiny(tmp_path, task="gym:InvertedPendulum-v4"))
    evals = pd.read_csv(run.directory / "evals.csv")
    assert (evals["length"] < 1000).any()
    assert evals["success_once"].isna().all()
    metaworld = fog.train(tiny(tmp_path, task="mw-push-back", steps=220, reset_steps=()))
    evals = pd.read_csv(metaworld.directory / "evals.csv")
    assert set(evals["length"]) == {200}
    assert set(evals["success_once"]) <= {0.0, 1.0}


def test_action_repeat_and_termination_hold_in_training_and_evaluation(tmp_path: Path) -> None:
    config = tiny(
        tmp_path,
        task="gym:InvertedPendulum-v4",
        steps=260,
        capacity=400,
        action_repeat=10,
        termination="never",
    )
    run = fog.train(config)
    assert RunDirectory(run.directory).config().run == config.run
    # 1,000 simulator steps, ten for each action; the pendulum has long fallen.
    assert set(pd.read_csv(run.directory / "evals.csv")["length"]) == {100}
    end = np.load(newest(run.directory) / "replay" / "end.npy")
    assert list(np.flatnonzero(end >= 0)) == [99, 199]
    replay = Replay(4, 1, 400, sampler=make_sampler("decay", capacity=400, rng=generator(0, "r")))
    replay.load(newest(run.directory) / "replay")
    assert (replay.take(np.arange(260)).bootstrap == 1).all()


@pytest.mark.parametrize(("quota", "owed"), [("batch", 16.0), ("step", 48.0)])
def test_cuer_owes_one_batch_unless_told_otherwise(tmp_path: Path, quota: str, owed: float) -> None:
    run = fog.train(tiny(tmp_path, "fog-cuer", replay_ratio=3.0, cuer_quota=quota))
    state = json.loads((newest(run.directory) / "replay" / "replay.json").read_text())
    assert state["sampler_settings"]["quota"] == owed
    assert tiny(tmp_path, "fog-cuer").replay.cuer_quota == "batch"


def test_a_loaded_agent_acts_like_the_trained_one(tmp_path: Path) -> None:
    run = fog.train(tiny(tmp_path))
    agent = fog.load_agent(run.directory)
    assert agent.depth == 4 and agent.resets == 2
    obs = np.array([0.1, -0.2, 0.3], np.float32)
    action = agent.act(obs)
    assert action.shape == (1,) and abs(action[0]) <= 1
    assert np.array_equal(action, fog.load_agent(run.directory).act(obs, deterministic=True))


def test_loading_what_is_not_a_run(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is not a run directory"):
        fog.load_agent(tmp_path)
    config = tiny(tmp_path)
    RunDirectory.create(config).unlock()
    with pytest.raises(UserError, match="no checkpoint yet"):
        fog.load_agent(tmp_path / "gym-Pendulum-v1" / "fog" / "seed0")


def test_divergence_ends_the_run_and_keeps_the_last_finite_checkpoint(tmp_path: Path) -> None:
    # A learning rate this absurd overflows float32 within a few updates.
    run = fog.train(tiny(tmp_path, critic_lr=1e15, checkpoint_every=20))
    assert run.status == "diverged"
    events = pd.read_csv(run.directory / "events.csv")
    assert events["event"].iloc[-1] == "diverged"
    assert "no longer finite" in events["detail"].iloc[-1]
    weights = checkpoint.load_tensors(newest(run.directory) / "agent.pt")
    assert all(
        torch.isfinite(tensor).all() for tensor in weights.values() if tensor.is_floating_point()
    )
    manifest = json.loads((run.directory / "manifest.json").read_text())
    assert manifest["status"] == "diverged"


def test_two_writers_do_not_share_a_directory(tmp_path: Path) -> None:
    config = tiny(tmp_path)
    held = RunDirectory.create(config)
    with pytest.raises(UserError, match="being written by another process"):
        training.train(config, resume=True)
    held.unlock()
    assert training.train(config, resume=True).status == "finished"


def test_no_gpu_is_one_clear_line(tmp_path: Path) -> None:
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    with pytest.raises(UserError, match="no CUDA device here"):
        fog.train(tiny(tmp_path, device="cuda"))


@pytest.mark.parametrize("variant", ["expanded-sac", "fog"])
def test_mixed_precision_trains(tmp_path: Path, variant: str) -> None:
    run = fog.train(tiny(tmp_path, variant, precision="bfloat16"))
    assert run.status == "finished"
    weights = checkpoint.load_tensors(newest(run.directory) / "agent.pt")
    floats = {tensor.dtype for tensor in weights.values() if tensor.is_floating_point()}
    assert floats == {torch.float32}


def test_wandb_without_the_package_says_how_to_get_it(tmp_path: Path) -> None:
    if importlib.util.find_spec("wandb") is not None:
        pytest.skip("wandb is installed")
    with pytest.raises(UserError, match=r"pip install .*\.\[wandb\]"):
        fog.train(tiny(tmp_path, wandb="project"))
    # It never made a step, so the corrected command needs no --resume.
    assert fog.train(tiny(tmp_path)).status == "finished"
