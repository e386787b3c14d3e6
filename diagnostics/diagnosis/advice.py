"""What to try against primacy bias, and what it did for agents of known dose."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import pandas as pd

from diagnostics.diagnosis.calibration import HARMFUL_DOSE, Calibration, grows

RESET_AT = 0.1
"""Where the priming study reset once, as a share of a run. Two, at 0.15 and 0.5, did not help."""
GROW_AT = (0.135, 0.51)
"""Where its critics grew."""
FORGET_WITHIN = 0.1
"""What ER decay forgets in: a tenth of a run, as 1 / epsilon is of the paper's million steps."""
HELPED = 0.5
"""A cure helped if it gave back this share of the return that priming had cost."""


@dataclass(frozen=True)
class Advice:
    """One thing to try.

    Attributes:
        what: in words.
        evidence: what it did for primed agents of the calibration; empty if they did not try it.
        command: that trains the same agent with it; empty for an agent that is not ours.
    """

    what: str
    evidence: str
    command: str


def advise(
    facts: pd.Series, config: Mapping[str, Any], calibration: Calibration
) -> tuple[Advice, ...]:
    """Cures that the agent does not use yet: those that helped primed agents, then untested ones.

    Args:
        facts: a row of `Runs.runs`.
        config: its settings.
        calibration: says what helped.
    """
    known = _returns(calibration)
    tried = [cure for cure in _cures(config, facts["steps"]) if not cure.in_use]
    tried.sort(key=lambda cure: (_rank(known, cure.name), -known.get(cure.name, 0.0)))
    ours = "sampler" in config and "replay_ratio" in config
    source = shlex.quote(f"{facts['run']}/config.yaml")
    return tuple(
        Advice(
            cure.what,
            _evidence(known, cure.name, calibration.task),
            f"fog train --config {source} {cure.flags} --out runs/{cure.name}" if ours else "",
        )
        for cure in tried
    )


class _Cure(NamedTuple):
    """Something to try: its name, what to do, by which flags, and whether the agent has it."""

    name: str
    what: str
    flags: str
    in_use: bool


def _cures(config: Mapping[str, Any], length: float) -> list[_Cure]:
    steps = 0.0 if math.isnan(length) else length
    ratio = config.get("replay_ratio") or 1
    epsilon = 1 / max(1.0, FORGET_WITHIN * steps)
    depth = int(config.get("initial_depth") or 0) + len(GROW_AT)
    primed = int(config.get("priming_updates") or 0)
    updates = " ".join(str(primed + round(share * steps * ratio)) for share in GROW_AT)
    grew = grows(config) or config.get("backbone") == "ne"  # which grows by weights
    return [
        _Cure(
            "one_reset", "reset the networks once, early",
            f"--reset-steps {max(1, round(RESET_AT * steps))}",
            any(step < (steps or math.inf) for step in config.get("reset_steps") or ()),
        ),
        _Cure(
            "decay", "draw old transitions less often (ER decay)",
            f"--sampler decay --epsilon {epsilon:.2g}", config.get("sampler") == "decay",
        ),
        _Cure(
            "growth", "let the critics grow",
            f"--expansion-updates {updates} --maximal-depth {depth}", grew,
        ),
        _Cure(
            "layer_norm", "put LayerNorm into the critics", "--critic-layer-norm",
            bool(config.get("critic_layer_norm")),
        ),
        _Cure(
            "lower_ratio", "make fewer updates per step", f"--replay-ratio {max(1, ratio / 2):g}",
            ratio <= 1,
        ),
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


def _tested(returns: Mapping[str, float], cure: str) -> bool:
    return {cure, "none", "unprimed"} <= set(returns)


def _helped(returns: Mapping[str, float], cure: str) -> bool:
    given, cost = returns[cure] - returns["none"], returns["unprimed"] - returns["none"]
    return given > 0 and given >= HELPED * cost


def _rank(returns: Mapping[str, float], cure: str) -> int:
    """What helped comes first, then what nobody has tried, then what did not help."""
    if not _tested(returns, cure):
        return 1
    return 0 if _helped(returns, cure) else 2


def _evidence(returns: Mapping[str, float], cure: str, task: str) -> str:
    if not _tested(returns, cure):
        return ""
    word = "helped" if _helped(returns, cure) else "did not help"
    return (
        f"it {word} primed SAC on {task} (late return {returns[cure]:.0f} with it, "
        f"{returns['none']:.0f} without, {returns['unprimed']:.0f} unprimed)"
    )
