"""How long an update, a simulator step and a start take on this machine: measured once, then kept.

Measurements live in one JSON file of the user's cache directory for each machine, set of versions
and state of this code. What is missing for the given runs is measured and added; what cannot be
measured is filled in by `fog.cost.assumptions`, which says so.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import fog
from fog.cost.dimensions import dimensions
from fog.cost.flops import total_flops
from fog.cost.work import work_of
from fog.errors import UserError
from fog.fast import one_twin_pays
from fog.records.run_directory import write_atomically
from fog.records.sizes import NetworkSpec
from fog.records.specs import spec_of
from fog.settings import tasks
from fog.settings.config import Config
from fog.system import machine
from fog.system.children import python
from fog.training.device import device_of

Say = Callable[[str], None]

TASK_SECONDS = 6.0
"""Time for the simulators of one suite; those that do not fit are taken to be like the others."""

_NEAR = 1.15
"""An update within this factor in FLOPs of a measured one is not measured."""
_CODE = (
    *("*.py", "agent/*.py", "algorithms/*.py", "cost/*.py", "envs/*.py", "fast/**/*.py"),
    *("fast/**/*.cpp", "networks/*.py", "replay/*.py"),
)
"""Files of the package whose change makes old measurements void."""


@dataclass
class Calibration:
    """Measurements by what was measured. Times are in seconds."""

    process: dict[str, float] = field(default_factory=dict)
    """`start` and `bytes` of a process that has imported the trainer."""
    suites: dict[str, dict[str, float]] = field(default_factory=dict)
    """`import` and `import_bytes` of each suite."""
    tasks: dict[str, dict[str, float]] = field(default_factory=dict)
    updates: dict[str, list[list[float]]] = field(default_factory=dict)
    """For each kind of update, pairs of (FLOPs, seconds)."""
    acts: dict[str, float] = field(default_factory=dict)
    samplers: dict[str, float] = field(default_factory=dict)
    checkpoint: dict[str, float] = field(default_factory=dict)
    measured: str = ""
    """When the newest of them was taken."""

    def update_seconds(self, kind: str, flops: float) -> float:
        """An uncompiled update: linear in FLOPs between the measured ones of its kind."""
        points = sorted(self.updates[kind])
        least, most = points[0], points[-1]
        if flops <= least[0]:
            return least[1] * flops / least[0]
        if flops >= most[0]:
            return most[1] * flops / most[0]
        return float(np.interp(flops, [at for at, _ in points], [at for _, at in points]))


@dataclass(frozen=True)
class Point:
    """An update to be measured, or known."""

    config: Config
    obs_dim: int
    act_dim: int
    depth: int

    @property
    def spec(self) -> NetworkSpec:
        """Its networks."""
        return spec_of(self.config.flat(), self.obs_dim, self.act_dim)

    @property
    def flops(self) -> int:
        """Its FLOPs."""
        batch_size = self.config.agent.batch_size
        return total_flops(self.spec, self.depth, batch_size, one_twin_pays(self.config))


def kind_of(config: Config) -> str:
    """What decides the speed of an update besides its FLOPs."""
    network, agent, runtime = config.network, config.agent, config.runtime
    parts = (agent.backbone, network.critic_layer_norm, network.width, network.activation)
    where = (device_of(config).type, runtime.threads, runtime.precision)
    return "/".join(map(str, (*parts, network.actor_layer_norm, agent.batch_size, *where)))


def sampler_of(config: Config) -> str:
    """What decides the speed of drawing a batch."""
    return f"{config.replay.sampler}/{config.agent.batch_size}"


def extremes(configs: Iterable[Config]) -> dict[str, tuple[Point, Point]]:
    """The cheapest and the most expensive update of every kind among the runs."""
    points: dict[str, list[Point]] = {}
    for config in configs:
        obs_dim, act_dim = dimensions(config.run.task)
        for depth in work_of(config).updates:
            point = Point(config, obs_dim, act_dim, depth)
            points.setdefault(kind_of(config), []).append(point)
    return {
        kind: (min(found, key=lambda at: at.flops), max(found, key=lambda at: at.flops))
        for kind, found in points.items()
    }


def calibrate(calibration: Calibration, configs: Sequence[Config], say: Say) -> float:
    """Measure what is missing for these runs, in place; the seconds it took, 0 if nothing was."""
    began = time.perf_counter()
    busy = False
    for suite, names in _missing_tasks(calibration, configs).items():
        busy = busy or _told(say)
        found = _measure({"tasks": names, "seconds": TASK_SECONDS})
        _take_tasks(calibration, suite, found)
    points, samplers = _missing_updates(calibration, configs)
    if points or samplers or not calibration.checkpoint:
        busy = busy or _told(say)
        _measure_agents(calibration, points, samplers)
    if not busy:
        return 0.0
    calibration.measured = time.strftime("%Y-%m-%d %H:%M")
    return time.perf_counter() - began


def _told(say: Say) -> bool:
    say("measuring this machine once, about 15 s")
    return True


def _missing_tasks(calibration: Calibration, configs: Sequence[Config]) -> dict[str, list[str]]:
    wanted: dict[str, list[str]] = {}
    for name in dict.fromkeys(config.run.task for config in configs):
        suite = tasks.get(name).suite
        if name not in calibration.tasks and "missing" not in calibration.suites.get(suite, {}):
            wanted.setdefault(suite, []).append(name)
    return wanted


def _take_tasks(calibration: Calibration, suite: str, found: dict[str, Any]) -> None:
    calibration.process = {"start": found["start"], "bytes": found["bytes"]}
    if not found["tasks"]:
        calibration.suites[suite] = {"missing": 1.0}
    for name, numbers in found["tasks"].items():
        imported = {key: numbers.pop(key) for key in ("import", "import_bytes")}
        if suite not in calibration.suites:
            calibration.suites[suite] = imported
        calibration.tasks[name] = numbers


def _missing_updates(
    calibration: Calibration, configs: Sequence[Config]
) -> tuple[dict[str, list[Point]], dict[str, Config]]:
    points: dict[str, list[Point]] = {}
    for kind, (least, most) in extremes(configs).items():
        known = [flops for flops, _ in calibration.updates.get(kind, [])]
        if not known or min(known) > _NEAR * least.flops:
            points.setdefault(kind, []).append(least)
        if most.flops > _NEAR * max(known, default=least.flops):
            points.setdefault(kind, []).append(most)
    samplers = {sampler_of(config): config for config in configs}
    unknown = {key: at for key, at in samplers.items() if key not in calibration.samplers}
    return points, unknown


def _measure_agents(
    calibration: Calibration, points: dict[str, list[Point]], samplers: dict[str, Config]
) -> None:
    flat = [(kind, point) for kind, found in points.items() for point in found]
    found = _measure(
        {
            "agents": [
                {
                    "settings": point.config.flat(),
                    "obs_dim": point.obs_dim,
                    "act_dim": point.act_dim,
                    "depth": point.depth,
                }
                for _, point in flat
            ],
            "samplers": [
                {
                    "settings": config.flat(),
                    **dict(zip(("obs_dim", "act_dim"), dimensions(config.run.task), strict=True)),
                }
                for config in samplers.values()
            ],
        }
    )
    for (kind, point), numbers in zip(flat, found["agents"], strict=True):
        calibration.updates.setdefault(kind, []).append([float(point.flops), numbers["update"]])
        calibration.acts[kind] = numbers["act"]
    calibration.samplers |= dict(zip(samplers, found["samplers"], strict=True))
    calibration.checkpoint = found["checkpoint"]
    calibration.process = {"start": found["start"], "bytes": found["bytes"]}


def _measure(request: dict[str, Any]) -> dict[str, Any]:
    """What `fog.cost.measure` finds."""
    caps = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    with tempfile.TemporaryDirectory() as home:
        paths = [Path(home) / "request.json", Path(home) / "result.json"]
        paths[0].write_text(json.dumps(request))
        command = python("-m", "fog.cost.measure", *map(str, paths))
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **caps})
        if done.returncode != 0:
            lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
            raise UserError(f"calibration failed: {lines[-1]}; leave it out with calibrate=False")
        found: dict[str, Any] = json.loads(paths[1].read_text())
    return found


def cache_path() -> Path:
    """The file of this machine, these versions and this code."""
    root = Path(fog.__file__).parent
    digest = hashlib.sha256(json.dumps([machine.hardware(), machine.versions()]).encode())
    for file in sorted(path for pattern in _CODE for path in root.glob(pattern)):
        digest.update(file.read_bytes())
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "fog" / f"calibration-{digest.hexdigest()[:16]}.json"


def load(path: Path) -> Calibration:
    """The stored measurements; nothing if the file does not exist or cannot be read."""
    try:
        return Calibration(**json.loads(path.read_text()))
    except (OSError, ValueError, TypeError):
        return Calibration()


def save(path: Path, calibration: Calibration) -> bool:
    """Remember; False if the cache directory cannot be written, which costs only time."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps(dataclasses.asdict(calibration)) + "\n")
    except OSError:
        return False
    return True
