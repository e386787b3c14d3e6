"""How old the transitions are that each sampler draws, over the life of a run without a network.

    python benchmarks/replay_ages.py [--scale 0.1] [--ratios 1 10]

The paper's run shrunk as `--scale` does it: 1e6 x scale steps, a buffer that keeps them all, a
warm-up of 5,000 x scale (at least one batch), decay of 1e-5 / scale with floor 0.1, batches of 256.
Ages are counted over the last tenth of the run, in per cent of what is stored then.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fog.replay import Sampler, make_sampler
from fog.seeding import generator

BATCH = 256
ROWS = (
    ("uniform", "uniform", None),
    ("decay", "decay", None),
    ("cuer, quota batch", "cuer", "batch"),
    ("cuer, quota step", "cuer", "step"),
)


def ages(sampler: Sampler, steps: int, warmup: int, ratio: int) -> tuple[float, float, float]:
    """Mean age, and the shares of draws among the newest hundredth and the older half, in per cent.

    Age and shares are relative to the number of transitions stored at the draw.
    """
    kept: list[np.ndarray] = []
    for step in range(steps):
        sampler.add(step)
        if step < warmup or not (sampler.feedback or step >= 0.9 * steps):
            continue
        for _ in range(ratio if sampler.feedback else 1):
            batches = 1 if sampler.feedback else ratio
            ids, _ = sampler.draw(batches, BATCH, 0, step + 1)
            if step >= 0.9 * steps:
                kept.append(((step - ids) / (step + 1)).astype(np.float32).ravel())
    relative = np.concatenate(kept)
    return (
        100 * float(relative.mean(dtype=float)),
        100 * float((relative < 0.01).mean()),
        100 * float((relative >= 0.5).mean()),
    )


def main() -> None:
    """Print the table of docs/replay.md."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=float, default=0.1)
    parser.add_argument("--ratios", type=int, nargs="+", default=[1, 10])
    options = parser.parse_args()
    steps = round(1e6 * options.scale)
    warmup = max(BATCH, round(5000 * options.scale))
    print(f"{steps:,} steps, warm-up {warmup}, batch {BATCH}; the last tenth of the run\n")
    print("| replay ratio | sampler | mean age | newest hundredth | older half |")
    print("|---:|---|---:|---:|---:|")
    for ratio in options.ratios:
        for title, name, quota in ROWS:
            sampler = make_sampler(
                name,
                capacity=steps,
                rng=generator(0, "replay"),
                epsilon=1e-5 / options.scale,
                tau=0.1,
                quota=BATCH * (ratio if quota == "step" else 1),
            )
            mean, newest, older = ages(sampler, steps, warmup, ratio)
            row = f"| {ratio} | {title} | {mean:.1f} % | {newest:.1f} % | {older:.1f} % |"
            print(row, flush=True)


if __name__ == "__main__":
    main()
