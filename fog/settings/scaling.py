"""`--scale`: the same experiment in a fraction of the time, with its shape kept.

Everything that counts time is multiplied by the scale and the decay rate is divided by it, so that
resets, expansions, windows and the forgetting horizon keep their share of the run. Width, batch
size and replay ratio are never touched, nor is a dose of priming, which no variant sets.
"""

from __future__ import annotations

from typing import Any

from fog.errors import ConfigError

DURATIONS = (
    "steps",
    "eval_every",
    "window_steps",
    "log_every",
    "capacity",
    "bc_wait_updates",
    "swd_horizon",
    "checkpoint_every",
)
SCHEDULES = ("reset_steps", "expansion_updates")


def scaled(paper: dict[str, Any], scale: float, batch_size: int) -> dict[str, Any]:
    """The paper's settings, by bare name, shrunk to `scale`.

    The warm-up shrinks too, but never below the one batch that the first update needs.
    """
    if not 0 < scale <= 1:
        raise ConfigError(f"scale: must be > 0 and <= 1, got {scale}")
    shrunk: dict[str, Any] = {name: max(1, round(paper[name] * scale)) for name in DURATIONS}
    for name in SCHEDULES:
        shrunk[name] = tuple(round(at * scale) for at in paper[name])
        if len({0, *shrunk[name]}) <= len(paper[name]):
            raise ConfigError(f"scale: {scale} is too small, {name} {list(paper[name])} collapses")
    shrunk["epsilon"] = paper["epsilon"] / scale
    if shrunk["epsilon"] >= 1:
        raise ConfigError(f"scale: {scale} is too small, epsilon {paper['epsilon']} exceeds 1")
    shrunk["warmup_steps"] = max(batch_size, round(paper["warmup_steps"] * scale))
    return paper | shrunk | {"scale": scale}
