"""CleanRL's SAC in the speed benchmark: its script, run as it is, on an environment that counts.

The script is one loop of an environment step and an update each, with networks of width 256. Its
environment therefore does the talking: it makes the script wait between turns. A turn includes what
the loop does besides the update: choosing an action, storing it, and a log every 100 updates.
"""

from __future__ import annotations

import os
import runpy
import sys
import tempfile
from pathlib import Path
from typing import Any

import gymnasium as gym
import torch
from speed_peers import Dummy, FloatArray
from speed_workers import TOGETHER, Channel, Clock, Contender

ROWS = 20_000
"""Random steps before learning, so that batches are drawn from more than a cache full."""


class Counting(Dummy):
    """Steps are updates here: it lets through as many as the parent asks for."""

    def __init__(self, obs: int, act: int, channel: Channel) -> None:
        super().__init__(obs, act)
        self._channel = channel
        self._turns = channel.turns()
        self._left = ROWS + 2 * TOGETHER
        self._clock: Clock | None = None

    def step(self, action: FloatArray) -> tuple[FloatArray, float, bool, bool, dict[str, Any]]:
        """Stop the clock when the turn is over, and wait for the next."""
        if self._left == 0:
            if self._clock is None:
                self._channel.ready()
            else:
                self._channel.answer(*self._clock.read())
            amount = next(self._turns, None)
            if amount is None:
                raise SystemExit
            self._left, self._clock = amount, Clock()
        self._left -= 1
        return super().step(action)


def run(contender: Contender, channel: Channel) -> None:
    """Run the script until the parent has enough."""
    home = Path(contender.cleanrl).resolve()
    sys.path.insert(0, str(home))

    def build(**_: Any) -> Counting:
        return Counting(contender.obs, contender.act, channel)

    gym.register("SpeedDummy-v0", build, disable_env_checker=True)
    torch.set_num_threads(contender.threads)
    script = home / "cleanrl" / "sac_continuous_action.py"
    flags = {
        "--env-id": "SpeedDummy-v0",
        "--learning-starts": ROWS,
        "--total-timesteps": 10**9,
        "--buffer-size": contender.rows,
        "--batch-size": contender.batch,
    }
    sys.argv = [str(script), "--no-cuda", *(str(part) for pair in flags.items() for part in pair)]
    with tempfile.TemporaryDirectory() as out:
        # It logs to the directory that it is started in.
        os.chdir(out)
        runpy.run_path(str(script), run_name="__main__")
