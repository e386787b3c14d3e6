"""What to try against primacy bias, and what it did for agents of known dose."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from diagnostics.diagnosis.calibration import HARMFUL_DOSE, Calibration, grows

RESET_AT = (0.15, 0.5)
"""Where the priming study reset, as shares of a run."""
GROW_AT = (0.135, 0.51)
"""Where its critics grew."""


@dataclass(frozen=True)
class Advice:
    """One thing to try.

    Attributes:
        what: in words.
        evidence: what it did for primed agents of the calibration; empty if it was not tried.
        command: that trains the same agent with it; empty for an agent that is not ours.
    """

    what: str
    evidence: str
    command: str


def advise(
    facts: pd.Series, config: Mapping[str, Any], calibration: Calibration
) -> tuple[Advice, ...]:
    """Cures that the agent does not use yet, those that helped primed agents most first.

    Args:
        facts: a row of `Runs.runs`.
        config: its settings.
        calibration: says what helped.
    """
    returns = _returns(calibration)
    tried = [
        (cure, what, flag)
        for cure, what, flag, in_use in _cures(config, facts["steps"])
        if not in_use
    ]
    tried.sort(key=lambda cure: -returns.get(cure[0], float("-inf")))
    ours = "sampler" in config and "replay_ratio" in config
    return tuple(
        Advice(
            what,
            _evidence(returns, cure),
            f"fog train --config {facts['run']}/config.yaml {flag} --out runs/{cure}"
            if ours
            else "",
        )
        for cure, what, flag in tried
    )


def _cures(config: Mapping[str, Any], length: float) -> list[tuple[str, str, str, bool]]:
    """Each cure: its name, what to do, the flag, and whether the agent has it."""
    steps = 0.0 if math.isnan(length) else length
    ratio = config.get("replay_ratio") or 1
    resets = " ".join(str(round(share * steps)) for share in RESET_AT)
    depth = int(config.get("initial_depth") or 0) + len(GROW_AT)
    updates = " ".join(str(round(share * steps * ratio)) for share in GROW_AT)
    return [
        ("reset", "reset the networks early and once more", f"--reset-steps {resets}",
         bool(config.get("reset_steps"))),
        ("decay", "draw old transitions less often (ER decay)", "--sampler decay",
         config.get("sampler") == "decay"),
        ("growth", "let the critics grow", f"--expansion-updates {updates} --maximal-depth {depth}",
         grows(config)),
        ("layer_norm", "put LayerNorm into the critics", "--critic-layer-norm",
         bool(config.get("critic_layer_norm"))),
        ("lower_ratio", "make fewer updates per step", f"--replay-ratio {max(1, ratio / 2):g}",
         ratio <= 1),
    ]  # fmt: skip


def _returns(calibration: Calibration) -> dict[str, float]:
    """Median late return of the calibration's agents at its highest dose, by cure."""
    rows = calibration.values[calibration.values["set"] == "calibration"]
    highest = rows[rows["dose"] == rows["dose"].max()]
    plain = highest[~highest["layer_norm"]]
    found = {str(k): float(v) for k, v in plain.groupby("cure")["late_return"].median().items()}
    alone = highest[highest["layer_norm"] & (highest["cure"] == "none")]["late_return"]
    unprimed = rows[(rows["dose"] == 0) & (rows["cure"] == "none") & ~rows["layer_norm"]]
    if len(alone) and highest["dose"].min() >= HARMFUL_DOSE:
        found["layer_norm"] = float(alone.median())
    if len(unprimed):
        found["unprimed"] = float(unprimed["late_return"].median())
    return found


def _evidence(returns: Mapping[str, float], cure: str) -> str:
    if not {cure, "none", "unprimed"} <= set(returns):
        return ""
    return (
        f"primed SAC returned {returns[cure]:.0f} with it, {returns['none']:.0f} without, "
        f"{returns['unprimed']:.0f} unprimed"
    )
