"""What an estimate assumes where nothing was measured, with the source of each number.

Measured with `benchmarks/cost.py` on one core with AVX2; docs/cost.md shows the measurements.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

import numpy as np

from fog.cost.calibration import Calibration, Point, extremes, kind_of, sampler_of
from fog.cost.dimensions import dimensions
from fog.cost.flops import products
from fog.cost.work import Work
from fog.settings import tasks
from fog.settings.config import Config
from fog.training.device import device_of

SECONDS_PER_PRODUCT = 1.3e-4
SECONDS_PER_FLOP = 1 / 51e9
"""Uncompiled updates of widths 16 to 512 on one thread take about this, within a third."""

START, START_BYTES = 2.5, 230e6
ACT, DRAW = 2e-4, 2e-4
CHECKPOINT = {"fixed": 0.05, "byte": 3e-9}
SIMULATOR: dict[str, float] = {"step": 1e-3, "make": 0.5, "bytes": 100e6}
"""An average simulator: those of the paper take 0.1 to 4 ms for a step."""
EPISODE_LENGTH = 1000

COMPILED: dict[str, dict[int, float]] = {
    "sac": {64: 0.44, 128: 0.51, 256: 0.59, 512: 0.73},
    "obac": {64: 0.53, 128: 0.65, 256: 0.64, 512: 0.82},
    "bro": {512: 0.45},
    "simba": {512: 0.94},
    "ne": {256: 1.0},
}
"""Time of a compiled update over that of an uncompiled one, by width; those of bro and simba are
from `benchmarks/opponents.py`, and ne is not compiled."""
COMPILE_SECONDS = {"sac": (19.0, 13.0), "obac": (31.0, 13.0)}
"""Seconds of compiling for the first time: a constant, and so much for each block.

Measured were obac at two depths and sac at one; a block is taken to cost as much in both, and other
algorithms as much as obac."""


def fill(calibration: Calibration, configs: Sequence[Config]) -> list[str]:
    """Put assumptions where these runs need numbers that were not measured; says which."""
    notes = []
    calibration.process = calibration.process or {"start": START, "bytes": START_BYTES}
    calibration.checkpoint = calibration.checkpoint or CHECKPOINT
    alike, unknown = _fill_tasks(calibration, configs)
    if alike:
        notes.append(f"simulators taken to be like others of their suite: {few(alike)}")
    if unknown:
        step = SIMULATOR["step"]
        notes.append(f"simulators not measured, {step * 1e3:g} ms a step assumed: {few(unknown)}")
    unmeasured = [kind for kind in map(kind_of, configs) if kind not in calibration.updates]
    for kind, points in extremes(configs).items():
        if kind in unmeasured:
            calibration.updates[kind] = [[at.flops, _update(at)] for at in points]
    for config in configs:
        calibration.acts.setdefault(kind_of(config), ACT)
        calibration.samplers.setdefault(sampler_of(config), DRAW)
    if unmeasured:
        notes.append(
            "updates were not measured here: speed of a reference machine, see docs/cost.md"
        )
    return notes


def compiled_factor(config: Config) -> float:
    """How much of an uncompiled update's time a compiled one takes; unknown, so 1, on a GPU."""
    if device_of(config).type != "cpu":
        return 1.0
    table = COMPILED[config.agent.backbone]
    widths = np.log([float(width) for width in table])
    return float(np.interp(np.log(config.network.width), widths, list(table.values())))


def compile_seconds(config: Config, work: Work) -> float:
    """Compiling once for each depth. Runs of one shape share the result through the cache."""
    constant, block = COMPILE_SECONDS.get(config.agent.backbone, COMPILE_SECONDS["obac"])
    return sum(constant + block * depth for depth in work.updates)


def _fill_tasks(calibration: Calibration, configs: Sequence[Config]) -> tuple[list[str], list[str]]:
    """Fill in tasks that were not measured: those with measured relatives, and those without."""
    alike: list[str] = []
    unknown: list[str] = []
    measured = dict(calibration.tasks)
    for name in dict.fromkeys(config.run.task for config in configs):
        task = tasks.get(name)
        calibration.suites.setdefault(task.suite, {})
        if name in measured:
            continue
        like = [at for other, at in measured.items() if tasks.get(other).suite == task.suite]
        (alike if like else unknown).append(name)
        numbers = {key: fmean(at[key] for at in like or [SIMULATOR]) for key in SIMULATOR}
        obs_dim, act_dim = dimensions(name)
        length = task.episode_length or EPISODE_LENGTH
        known = {"obs_dim": obs_dim, "act_dim": act_dim, "episode_length": length}
        calibration.tasks[name] = numbers | known
    return alike, unknown


def _update(point: Point) -> float:
    count = products(point.spec, point.depth)
    return SECONDS_PER_PRODUCT * count + SECONDS_PER_FLOP * point.flops


def few(names: Sequence[str]) -> str:
    """Names for one line."""
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
