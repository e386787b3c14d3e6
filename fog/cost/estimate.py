"""What a set of runs will cost, before anything starts: time, memory and disk.

    seconds of a run = start of the process and of its simulators
        + environment steps x (simulator step + choosing an action)
        + updates x (an update at that depth + drawing its batch)
        + one compilation for each depth, if compiled
        + evaluation episodes x their steps x (simulator step + choosing an action)
        + products of the probes at the speed of updates
        + checkpoints x (a fixed part + bytes)

Episodes count with their full length, so tasks that end early are overestimated.
"""

from __future__ import annotations

import copy
import heapq
import os
from collections.abc import Sequence
from dataclasses import dataclass

from fog.cost import assumptions, calibration, probes
from fog.cost.calibration import Calibration, Say, kind_of, sampler_of
from fog.cost.disk import checkpoint_bytes, disk_bytes
from fog.cost.flops import total_flops
from fog.cost.memory import run_bytes
from fog.cost.probes import attached, probe_costs, unpriced
from fog.cost.work import Work, work_of
from fog.fast import one_twin_pays
from fog.records.sizes import NetworkSpec
from fog.records.specs import spec_of
from fog.settings import tasks
from fog.settings.config import Config
from fog.training.device import compiles, device_of


@dataclass(frozen=True)
class RunCost:
    """One run."""

    task: str
    variant: str
    seed: int
    updates: int
    flops: int
    """Of all its updates, in total."""
    compiled: bool
    parts: dict[str, float]
    """Seconds by what they are spent on."""
    memory_bytes: int
    disk_bytes: int

    @property
    def seconds(self) -> float:
        """From the start of its process to the end, alone on a core."""
        return sum(self.parts.values())


@dataclass(frozen=True)
class Estimate:
    """All runs of a sweep. Times are for this machine; within a factor of 1.5 as a rule."""

    seconds_total: float
    """One run after the other."""
    seconds_wall: float
    """With `jobs` of them at a time, the longest first."""
    peak_memory_bytes: int
    """The `jobs` largest at once."""
    disk_bytes: int
    """All finished run directories; each holds one checkpoint more while it is being written."""
    per_run: list[RunCost]
    notes: list[str]
    """How the numbers came about, and what was assumed."""


def estimate(
    configs: Sequence[Config], jobs: int = 1, calibrate: bool = True, say: Say | None = None
) -> Estimate:
    """Estimate the cost of runs on this machine, `jobs` of them at a time.

    `calibrate` measures what is not yet known of this machine, about 15 s; without it the estimate
    uses what is remembered, and the numbers of a reference machine for the rest. `say` is called
    with one line if a measurement begins.
    """
    path = calibration.cache_path()
    known = calibration.load(path)
    seconds = calibration.calibrate(known, configs, say or _silent) if calibrate else 0.0
    notes = []
    if seconds:
        kept = f"kept in {path}" if calibration.save(path, known) else f"{path} cannot be written"
        notes.append(f"this machine was measured, {seconds:.0f} s; {kept}")
    elif known.measured:
        notes.append(f"this machine as measured on {known.measured}: {path}")
    filled = copy.deepcopy(known)
    notes += assumptions.fill(filled, configs)
    runs = [_run(config, filled) for config in configs]
    crowded = max(1.0, jobs * _threads(configs) / (os.cpu_count() or 1))
    if crowded > 1:
        notes.append(f"{jobs} runs at a time share the cores: each takes {crowded:.1f} x as long")
    return Estimate(
        seconds_total=sum(run.seconds for run in runs),
        seconds_wall=crowded * _wall([run.seconds for run in runs], jobs),
        peak_memory_bytes=sum(sorted(run.memory_bytes for run in runs)[-jobs:]),
        disk_bytes=sum(run.disk_bytes for run in runs),
        per_run=runs,
        notes=notes + _caveats(configs, runs),
    )


def _run(config: Config, known: Calibration) -> RunCost:
    run, work = config.run, work_of(config)
    task = known.tasks[run.task]
    spec = spec_of(config.flat(), int(task["obs_dim"]), int(task["act_dim"]))
    length = -(-int(task["episode_length"] or assumptions.EPISODE_LENGTH) // run.action_repeat)
    compiled = compiles(config, device_of(config))
    suite = known.suites[tasks.get(run.task).suite]
    memory = known.process["bytes"] + suite.get("import_bytes", 0) + task["bytes"]
    batch, pick = config.agent.batch_size, one_twin_pays(config)
    return RunCost(
        task=run.task,
        variant=run.variant,
        seed=run.seed,
        updates=work.total_updates,
        flops=sum(n * total_flops(spec, depth, batch, pick) for depth, n in work.updates.items()),
        compiled=compiled,
        parts=_seconds(config, work, spec, known, compiled, length),
        memory_bytes=round(memory) + run_bytes(config, work, spec, compiled),
        disk_bytes=disk_bytes(config, work, spec, length),
    )


def _seconds(
    config: Config, work: Work, spec: NetworkSpec, known: Calibration, compiled: bool, length: int
) -> dict[str, float]:
    kind, task = kind_of(config), known.tasks[config.run.task]
    batch, act = config.agent.batch_size, known.acts[kind]
    pick = one_twin_pays(config)
    by_depth = {depth: total_flops(spec, depth, batch, pick) for depth in work.updates}
    eager = {depth: known.update_seconds(kind, flops) for depth, flops in by_depth.items()}
    faster = assumptions.compiled_factor(config) if compiled else 1.0
    suite = known.suites[tasks.get(config.run.task).suite]
    saved = checkpoint_bytes(config, work, spec, length)
    usual = max(work.updates, key=lambda depth: work.updates[depth])
    products = sum(cost.flops for cost in probe_costs(config, work, spec, length))
    step = task["step"] * config.run.action_repeat
    start = known.process["start"] + suite.get("import", 0.0) + task["make"]
    return {
        "start": start + (probes.START_SECONDS if attached(config) else 0.0),
        "steps": work.steps * step + (work.steps - work.warmup_steps) * act,
        "updates": sum(
            count * (faster * eager[depth] + known.samplers[sampler_of(config)])
            for depth, count in work.updates.items()
        ),
        "compiling": assumptions.compile_seconds(config, work) if compiled else 0.0,
        "evaluations": work.evaluations * config.run.eval_episodes * length * (step + act),
        "probes": products * eager[usual] / by_depth[usual],
        "checkpoints": work.checkpoints
        * (known.checkpoint["fixed"] + saved * known.checkpoint["byte"]),
    }


def _wall(seconds: Sequence[float], jobs: int) -> float:
    """When the last of the runs ends, the longest started first."""
    ends = [0.0] * max(1, min(jobs, len(seconds)))
    for each in sorted(seconds, reverse=True):
        heapq.heapreplace(ends, ends[0] + each)
    return max(ends)


def _threads(configs: Sequence[Config]) -> int:
    return max((config.runtime.threads for config in configs), default=1)


def _caveats(configs: Sequence[Config], runs: Sequence[RunCost]) -> list[str]:
    notes = []
    if any(run.compiled for run in runs):
        notes.append(
            "compiled runs: speed-up and compile time measured elsewhere, see docs/cost.md"
        )
    strange = {name for config in configs for name in unpriced(config)}
    if strange:
        notes.append(
            f"cost of these probes is unknown and counts as 0: {', '.join(sorted(strange))}"
        )
    return notes


def _silent(line: str) -> None:
    del line
