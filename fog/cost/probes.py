"""What the probes of this project cost: how often they measure, on what, and what they write.

Probes are plugins that this package cannot import, so the table repeats what docs/probes.md says of
each. A probe that is not in it, one of yours say, counts as nothing and is named in the estimate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from fog import probing
from fog.agents import NetworkSpec
from fog.config import Config
from fog.cost.flops import loss_flops, total_flops, value_flops, weights
from fog.cost.work import Work

When = Literal["window", "cadence", "change", "evaluation", "snapshot"]
Rows = int | Literal["buffer", "episodes"]

CADENCE = 20
"""Measurements in each window of a probe with a cadence."""
SNAPSHOTS = (0.2, 0.4, 0.6, 0.8, 1.0)
"""When `features` takes its snapshots, as shares of the run."""
START_SECONDS = 1.2
"""What loading the probes adds to the start of a run."""
MEMORY_BYTES = 250_000_000
"""What probes add to its memory: scipy, Arrow, and batches several times larger than an update's;
measured for all of them at widths 64 and 256 alike."""
FILE_BYTES = 2_500
"""Of a small Parquet file: mostly its description of the columns."""
COUNT_BYTES = 2.0
"""Of one transition's draw count after compression."""


@dataclass(frozen=True)
class ProbeCost:
    """One probe: when it measures, on how many transitions, and what it computes of each.

    The products are multiples of known ones: all losses without gradients (`losses`), those again
    for every critic network (`targets`), the online critics and the actor alone (`values`), and
    an update with its gradients (`updates`). A test compares them with what torch counts.

    With `each_window` the rows are those of every insertion window that is stored at the time.
    `besides` are rows whose values are computed once in each measurement, whatever is stored.
    """

    when: tuple[When, ...]
    rows: Rows
    losses: float = 0.0
    targets: float = 0.0
    values: float = 0.0
    updates: float = 0.0
    each_window: bool = False
    besides: int = 0


PROBES = {
    "churn": ProbeCost(("cadence",), 512, values=2),
    "critic_loss": ProbeCost(("window",), "buffer", losses=1),
    "dormancy": ProbeCost(("cadence", "change"), 1024, targets=1, updates=0.75),
    "features": ProbeCost(("snapshot",), 2000, losses=1, values=2),
    # Mean gradients by window, and the products of 128 single gradients with each other.
    "interference": ProbeCost(
        ("window",), 512, losses=1, values=2.4, each_window=True, besides=18_000
    ),
    "norms": ProbeCost(("cadence",), 1024, targets=1, updates=1.25),
    "offpolicy": ProbeCost(("window",), 1024, values=0.32, each_window=True),
    "overestimation": ProbeCost(("evaluation",), "episodes", values=1),
    # 51 steps on 256 transitions, forward and backward through the critics.
    "plasticity": ProbeCost(("window",), 51 * 256, updates=0.48),
    "sample_counts": ProbeCost(("window",), 0),
    "srank": ProbeCost(("cadence",), 2048, losses=0.45),
    "validation": ProbeCost(("evaluation",), "episodes", losses=1),
    # 200 steps on 128 transitions, twice, forward and backward through the online critics.
    "warmstart": ProbeCost(("window",), 2 * 200 * 128, values=2.9),
}


def attached(config: Config) -> list[str]:
    """Names of the probes of a run, without their options."""
    return [spec.partition(":")[0] for spec in probing.chosen(config.run.probes)]


def moments(config: Config, work: Work) -> dict[When, int]:
    """How often each occasion comes."""
    every = max(1, config.run.window_steps // CADENCE)
    measured = (work.steps - work.warmup_steps) // every + 1
    return {
        "window": len(work.windows),
        "cadence": measured,
        "change": 2 * work.changes,
        "evaluation": work.evaluations,
        "snapshot": len(SNAPSHOTS),
    }


def probe_flops(
    name: str, config: Config, work: Work, spec: NetworkSpec, episode_length: int
) -> float:
    """FLOPs of a probe over the whole run, at the depth of most updates."""
    cost, often = PROBES[name], moments(config, work)
    depth = max(work.updates, key=lambda at: work.updates[at])
    if cost.rows == "buffer":
        rows = sum(min(at, config.replay.capacity) for at in work.windows)
    else:
        times = sum(often[when] for when in cost.when)
        if cost.each_window:
            stored = (min(at, config.replay.capacity) for at in work.windows)
            times = sum(-(-size // config.run.window_steps) for size in stored)
        each = config.run.eval_episodes * episode_length if cost.rows == "episodes" else cost.rows
        rows = times * each
    networks = 3 if spec.offline else 1
    besides = cost.besides * often["window"]
    return (
        rows * (cost.losses + networks * cost.targets) * loss_flops(spec, depth)
        + (rows * cost.values + besides) * value_flops(spec, depth)
        + rows * cost.updates * total_flops(spec, depth, 1)
    )


def probe_bytes(name: str, config: Config, work: Work, spec: NetworkSpec) -> int:
    """Bytes that a probe writes to its tables over the whole run."""
    cost, often = PROBES[name], moments(config, work)
    times = sum(often[when] for when in cost.when)
    fixed = times * FILE_BYTES
    match name:
        case "critic_loss":
            return fixed * (3 if spec.offline else 1)
        case "dormancy":
            critics = spec.ensemble + (1 if spec.offline else 0)
            layers = critics * len(weights(spec.critic(work.deepest))[:-1]) + 2
            return fixed + times * 8 * layers * spec.width
        case "features":
            most = min(cost.rows, config.replay.capacity) if isinstance(cost.rows, int) else 0
            rows = sum(min(most, round(share * work.steps)) for share in SNAPSHOTS)
            return fixed + rows * (4 * spec.width + 20)
        case "sample_counts":
            full = round(COUNT_BYTES * sum(work.windows))
            return 4 * fixed + full
        case _:
            return fixed
