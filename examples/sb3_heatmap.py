"""Train a Stable-Baselines3 SAC with our probes and draw the paper's critic-loss heatmap.

    pip install -c constraints.txt -e '.[sb3]'
    python examples/sb3_heatmap.py --steps 10000 --out sb3_heatmap

Stable-Baselines3 is no dependency of this project.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import gymnasium
import numpy as np
import pandas as pd

import diagnostics
from diagnostics.metrics.loss_grid import QUANTITIES, loss_grids
from diagnostics.metrics.primacy import column_indices
from diagnostics.plots.heatmaps import LOSS_MAP, plain_ticks, shared_norm
from diagnostics.plots.layout import crown, panels, small_print, step_axis, step_label
from diagnostics.plots.style import COLOURS, styled

LABEL = "Stable-Baselines3 SAC on Pendulum-v1"


def train(steps: int, out: Path, seed: int) -> pd.DataFrame:
    """Train on Pendulum and return the table of the critic-loss probe."""
    from stable_baselines3 import SAC

    from diagnostics.adapters.sb3 import ProbeCallback

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
    """Loss by insertion window and time of measurement, and the primacy-bias index above it.

    Both are scale-free: the loss is divided by the variance of its targets.
    """
    table = table[table["critic"] == "online"].assign(label=LABEL, run=LABEL)
    grid = loss_grids(table, "scaled")[LABEL]
    width = int((table["window_end"] - table["window_start"]).max())
    steps, index = column_indices(
        table["env_step"], table["window"], table["scaled"], table["count"], width
    )
    with styled():
        figure, (top, bottom) = panels(
            2, columns=1, width=6.4, height=3.2, sharex=True, height_ratios=[1, 3]
        )
        top.plot(steps, index, marker="o", ms=4, color=COLOURS["blue"], clip_on=False)
        top.axhline(0, color=COLOURS["black"], lw=0.8)
        top.set_ylabel("primacy-bias index")
        bottom.grid(visible=False)
        image = bottom.pcolormesh(
            grid.column_edges,
            grid.row_edges,
            np.ma.masked_invalid(grid.values),
            cmap=LOSS_MAP,
            norm=shared_norm([grid]),
        )
        # As in all heatmaps of this project, the oldest data is at the top.
        bottom.set_ylim(grid.row_edges[-1], grid.row_edges[0])
        bottom.set_xlim(grid.column_edges[0], grid.column_edges[-1])
        step_axis(bottom, "measured at env step")
        bottom.yaxis.set_major_formatter(step_label)
        bottom.set_ylabel("inserted at env step\n(oldest at the top)")
        bar = figure.colorbar(image, ax=bottom, extend="both", label=QUANTITIES["scaled"])
        plain_ticks(bar)
        crown(figure, LABEL)
        small_print(figure, "One run, one seed: no intervals. Dark is a small loss.")
        figure.savefig(path, dpi=150)


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
