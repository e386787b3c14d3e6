"""Does our SAC learn as well as Stable-Baselines3's? Same network, same settings, several seeds.

    python benchmarks/learning.py --steps 60000 --seeds 0 1 2 --out benchmarks/out/learning

Both sides are SAC at replay ratio 1 on HalfCheetah-v4 with the motivating critic (a stem and one
residual block, LayerNorm after every dense layer) and the same actor, learning rates, target
entropy, warm-up and batch size. Each run is a process of its own with one thread; finished runs are
skipped, so the command can be interrupted. Needs stable-baselines3 for its half.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

EPISODES = 5
WARMUP = 5_000


def ours(task: str, seed: int, steps: int, width: int, out: Path) -> list[tuple[int, float]]:
    """Train our SAC; returns (env_step, mean return) of its evaluations."""
    import fog

    config = fog.resolve(
        task,
        "sac-utd1",
        steps=steps,
        seed=seed,
        width=width,
        eval_every=steps // 12,
        eval_episodes=EPISODES,
        warmup_steps=WARMUP,
        tensorboard=False,
        out=str(out / "runs"),
    )
    begun = (out / "runs" / task / "sac-utd1" / f"seed{seed}" / "config.yaml").exists()
    run = fog.train(config, resume=begun)
    returns: dict[int, list[float]] = {}
    with (run.directory / "evals.csv").open() as file:
        for row in csv.DictReader(file):
            returns.setdefault(int(row["env_step"]), []).append(float(row["return"]))
    return [(at, float(np.mean(values))) for at, values in returns.items()]


def peer(task: str, seed: int, steps: int, width: int, out: Path) -> list[tuple[int, float]]:
    """Train Stable-Baselines3's SAC with the same network; returns the same."""
    import gymnasium
    import torch
    from stable_baselines3 import SAC
    from stable_baselines3.common.evaluation import evaluate_policy

    torch.set_num_threads(1)
    warnings.simplefilter("ignore", DeprecationWarning)
    env = gymnasium.make(task)
    model = SAC(
        _policy(width),
        env,
        learning_rate=3e-4,
        learning_starts=WARMUP,
        batch_size=256,
        target_entropy=-0.5 * gymnasium.spaces.flatdim(env.action_space),
        seed=seed,
        device="cpu",
    )
    evaluation = gymnasium.make(task)
    evaluation.reset(seed=10_000 + seed)
    points = []
    every = steps // 12
    for at in range(every, steps + 1, every):
        model.learn(every, reset_num_timesteps=False)
        mean, _ = evaluate_policy(model, evaluation, n_eval_episodes=EPISODES, warn=False)
        points.append((at, float(mean)))
    return points


def _policy(width: int) -> type:
    """Stable-Baselines3's policy with the motivating networks in it."""
    import torch
    from stable_baselines3.common.policies import ContinuousCritic
    from stable_baselines3.sac.policies import SACPolicy
    from torch import nn

    def dense(fan_in: int, fan_out: int) -> nn.Linear:
        layer = nn.Linear(fan_in, fan_out)
        nn.init.orthogonal_(layer.weight, 2**0.5)
        nn.init.zeros_(layer.bias)
        return layer

    class Residual(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Sequential(dense(width, width), nn.LayerNorm(width), nn.ReLU())
            self.outer = nn.Sequential(dense(width, width), nn.LayerNorm(width))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            out: torch.Tensor = x + self.outer(self.inner(x))
            return out

    def stem(fan_in: int) -> list[nn.Module]:
        return [dense(fan_in, width), nn.LayerNorm(width), nn.ReLU()]

    class Policy(SACPolicy):  # type: ignore[misc]
        def make_actor(self, features_extractor: Any = None) -> Any:
            actor = super().make_actor(features_extractor)
            actor.latent_pi = nn.Sequential(*stem(actor.features_dim), *stem(width))
            actor.mu = dense(width, self.action_space.shape[0])
            actor.log_std = dense(width, self.action_space.shape[0])
            return actor.to(self.device)

        def make_critic(self, features_extractor: Any = None) -> ContinuousCritic:
            critic = super().make_critic(features_extractor)
            inputs = critic.features_extractor.features_dim + self.action_space.shape[0]
            for index in range(len(critic.q_networks)):
                network = nn.Sequential(*stem(inputs), Residual(), dense(width, 1))
                critic.add_module(f"qf{index}", network)
                critic.q_networks[index] = network
            return critic.to(self.device)

    return Policy


SIDES: dict[str, Callable[..., list[tuple[int, float]]]] = {"ours": ours, "sb3": peer}


def _result(out: Path, side: str, seed: int) -> Path:
    return out / f"{side}-seed{seed}.json"


def main() -> None:
    """Run what is missing, then print both sides."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--task", default="HalfCheetah-v4")
    parser.add_argument("--steps", type=int, default=60_000)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--out", type=Path, default=Path("benchmarks/out/learning"))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--one", nargs=2, metavar=("SIDE", "SEED"), help="one run, for workers")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.one:
        side, seed = options.one[0], int(options.one[1])
        points = SIDES[side](options.task, seed, options.steps, options.width, options.out)
        _result(options.out, side, seed).write_text(json.dumps(points))
        return
    pending = [
        (side, seed)
        for seed in options.seeds
        for side in SIDES
        if not _result(options.out, side, seed).exists()
    ]
    running: list[subprocess.Popen[bytes]] = []
    environment = os.environ | {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    while pending or running:
        while pending and len(running) < options.jobs:
            side, seed = pending.pop(0)
            shared = ["--task", options.task, "--steps", str(options.steps)]
            shared += ["--width", str(options.width), "--out", str(options.out)]
            command = [sys.executable, __file__, *shared, "--one", side, str(seed)]
            print(f"started {side} seed {seed}", flush=True)
            running.append(subprocess.Popen(command, env=environment))
        running[0].wait()
        running = [process for process in running if process.poll() is None]
    print(f"\n{options.task}, {options.steps} steps, width {options.width}: return by seed\n")
    print("| side | " + " | ".join(f"seed {seed}" for seed in options.seeds) + " | mean | best |")
    print("|---|" + "---|" * (len(options.seeds) + 2))
    for side in SIDES:
        files = [_result(options.out, side, seed) for seed in options.seeds]
        curves = [json.loads(file.read_text()) if file.exists() else [] for file in files]
        finals = [curve[-1][1] if curve else float("nan") for curve in curves]
        best = [max((at for _, at in curve), default=float("nan")) for curve in curves]
        cells = " | ".join(f"{value:.0f}" for value in finals)
        print(f"| {side} | {cells} | {np.mean(finals):.0f} | {np.mean(best):.0f} |")


if __name__ == "__main__":
    main()
