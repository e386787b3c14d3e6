"""Tiny runs for tests, and the comparison that says two runs are the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fog.records import checkpoint
from fog.settings.config import Config
from fog.settings.variants import resolve

TINY: dict[str, Any] = {
    "steps": 300,
    "warmup_steps": 40,
    "batch_size": 16,
    "width": 8,
    "replay_ratio": 1.0,
    "eval_every": 100,
    "eval_episodes": 1,
    "log_every": 50,
    "window_steps": 100,
    "capacity": 200,
    "checkpoint_every": 70,
    "reset_steps": (120, 200),
    "expansion_updates": (30, 60),
    "bc_wait_updates": 20,
    "compile": "off",
    "tensorboard": False,
}


def tiny(out: Path, variant: str = "fog", task: str = "gym:Pendulum-v1", **changes: Any) -> Config:
    """A run of a few seconds that goes through resets, expansions and the ring's seam."""
    return resolve(task, variant, **{**TINY, "out": str(out), **changes})


def newest(run: Path) -> Path:
    """The newest checkpoint of a run."""
    return checkpoint.candidates(run / "checkpoint")[0]


MEASURED_TIME = ("steps_per_second", "updates_per_second")


def assert_same_run(one: Path, other: Path) -> None:
    """Everything that a run computes is equal, bit for bit; only clocks may differ."""
    first, second = newest(one), newest(other)
    assert first.name == second.name
    weights, others = (checkpoint.load_tensors(home / "agent.pt") for home in (first, second))
    assert weights.keys() == others.keys()
    for name, tensor in weights.items():
        assert np.array_equal(tensor.numpy(), others[name].numpy(), equal_nan=True), name
    arrays = sorted(path.name for path in (first / "replay").glob("*.npy"))
    assert arrays == sorted(path.name for path in (second / "replay").glob("*.npy"))
    for name in arrays:
        assert (first / "replay" / name).read_bytes() == (second / "replay" / name).read_bytes()
    states = [checkpoint.load_json(home / "state.json") for home in (first, second)]
    for state in states:
        del state["tables"]
    assert states[0] == states[1]
    assert (one / "evals.csv").read_bytes() == (other / "evals.csv").read_bytes()
    for name in ("train.csv", "events.csv"):
        frames = [_comparable(path / name) for path in (one, other)]
        pd.testing.assert_frame_equal(frames[0], frames[1], check_exact=True)


def _comparable(path: Path) -> pd.DataFrame:
    frame = pd.read_csv(path)
    if "event" in frame:
        frame = frame[~frame["event"].isin(["checkpoint", "resume"])].reset_index(drop=True)
    timed = [name for name in frame if name in MEASURED_TIME or name.startswith("probe_seconds")]
    return frame.drop(columns=timed)
