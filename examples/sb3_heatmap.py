"""Train a Stable-Baselines3 SAC with our probes and draw the paper's critic-loss heatmap.

    pip install stable-baselines3
    python examples/sb3_heatmap.py --steps 10000 --out sb3_heatmap

Stable-Baselines3 is no dependency of this project.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import gymnasium
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from stable_baselines3 import SAC

import diagnostics
from diagnostics.adapters.sb3 import ProbeCallback
from diagnostics.metrics.primacy import column_indices


def train(steps: int, out: Path, seed: int) -> pd.DataFrame:
    """Train on Pendulum and return the table of the critic-loss probe."""
    model = SAC(
        "MlpPolicy",
        gymnasium.make("Pendulum-v1"),
        learning_starts=500,
        batch_size=64,
        policy_kwargs={"net_arch": [64, 64]},
        seed=seed,
        device="cpu",
    )
    probes = ["critic_loss", "dormancy", "sample_counts", "churn", "validation"]
    callback = ProbeCallback(
        out / "Pendulum-v1" / "sb3-sac" / f"seed{seed}",
        probes,
        window_steps=steps // 10,
        seed=seed,
        eval_env=gymnasium.make("Pendulum-v1"),
        eval_every=steps // 5,
    )
    model.learn(steps, callback=callback)
    return diagnostics.load(out).critic_loss


def draw(table: pd.DataFrame, path: Path) -> None:
    """Insertion window against time of measurement, and the primacy-bias index above it."""
    heat = table.pivot(index="window", columns="env_step", values="mean")
    width = int(table["window_end"].iloc[0] - table["window_start"].iloc[0])
    steps, index = column_indices(
        table["env_step"], table["window"], table["scaled"], table["count"], width
    )
    figure, (top, bottom) = plt.subplots(
        2, 1, figsize=(5.5, 6), height_ratios=[1, 4], sharex=True, layout="constrained"
    )
    top.plot(np.arange(len(steps)), index, marker="o", color="black", linewidth=1)
    top.axhline(0, color="grey", linewidth=0.5)
    top.set_ylabel("primacy index")
    image = bottom.imshow(np.log10(heat.to_numpy()), cmap="viridis", origin="lower", aspect="auto")
    bottom.set_xticks(np.arange(len(heat.columns)), [f"{at / 1000:g}k" for at in heat.columns])
    labels = [f"{k * width / 1000:g}-{(k + 1) * width / 1000:g}k" for k in heat.index]
    bottom.set_yticks(np.arange(len(heat.index)), labels)
    bottom.set_xlabel("measured at environment step")
    bottom.set_ylabel("inserted at environment steps")
    figure.colorbar(image, ax=bottom, label="log10 of mean critic loss")
    figure.suptitle("Stable-Baselines3 SAC on Pendulum-v1")
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main() -> None:
    """Run the example."""
    parser = argparse.ArgumentParser(description="SB3 SAC with probes, and its heatmap")
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("sb3_heatmap"))
    arguments = parser.parse_args()
    table = train(arguments.steps, arguments.out, arguments.seed)
    draw(table, arguments.out / "heatmap.png")


if __name__ == "__main__":
    main()
