"""What benchmarks/cost.py measures: compiled updates, and real runs beside their estimates."""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import torch

from fog.agent import Batch, build_agent
from fog.cost import estimate
from fog.cost.peak import peak_bytes
from fog.settings.config import Config
from fog.settings.variants import resolve
from fog.sweep.job import Job
from fog.sweep.process import environment
from fog.training.device import prepare

OBS, ACT, BATCH = 24, 6, 256
POLL = 0.05
"""Seconds between two looks at the memory of another process."""
SHAPES = (
    ("sac", 64, 0),
    ("sac", 128, 0),
    ("sac", 256, 0),
    ("sac", 512, 0),
    ("fog", 64, 2),
    ("fog", 128, 2),
    ("fog", 256, 2),
    ("fog", 512, 2),
    ("fog", 64, 4),
)


def compiled(variant: str, width: int, depth: int) -> dict[str, float]:
    """Milliseconds of both forms of an update, by turns, and what compiling took, from nothing."""
    with tempfile.TemporaryDirectory() as cache:
        command = [sys.executable, __file__, variant, str(width), str(depth)]
        caps = {"TORCHINDUCTOR_CACHE_DIR": cache, "OMP_NUM_THREADS": "1"}
        done = subprocess.run(
            command, env={**os.environ, **caps}, check=True, capture_output=True, text=True
        )
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def _compare(variant: str, width: int, depth: int) -> dict[str, float]:
    prepare(threads=1)
    config = resolve(
        "gym:Pendulum-v1",
        variant,
        width=width,
        initial_depth=depth,
        maximal_depth=depth,
        expansion_updates=(),
    )
    batch = _batch()
    agents = [build_agent(config, OBS, ACT, "cpu", how) for how in (False, True)]
    agents[0].update(batch).finite  # noqa: B018 - waits
    before, began = peak_bytes(), time.process_time() + _children()
    with _compilers() as compilers:
        agents[1].update(batch).finite  # noqa: B018
    compiling = time.process_time() + _children() - began
    after = peak_bytes()
    spent: list[list[float]] = [[], []]
    ends = time.perf_counter() + 8
    while time.perf_counter() < ends or len(spent[0]) < 5:
        for agent, times in zip(agents, spent, strict=True):
            began = time.process_time()
            agent.update(batch).finite  # noqa: B018
            times.append(time.process_time() - began)
    eager, fast = (1000 * statistics.median(times) for times in spent)
    return {
        "eager": eager,
        "compiled": fast,
        "seconds": compiling,
        "megabytes": (after - before + max(compilers)) / 1e6,
    }


def _batch() -> Batch:
    rng = torch.Generator().manual_seed(0)

    def random(*shape: int) -> torch.Tensor:
        return torch.randn((1, BATCH, *shape), generator=rng)

    ones = torch.ones(1, BATCH)
    return Batch(random(OBS), random(ACT), random(), ones, random(OBS), ones)


@contextmanager
def _compilers() -> Iterator[list[int]]:
    """Collects the bytes that all processes below this one hold, several times a second."""
    seen, stop = [0], threading.Event()

    def look() -> None:
        while not stop.wait(POLL):
            seen.append(sum(map(peak_bytes, _below(os.getpid()))))

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        yield seen
    finally:
        stop.set()
        watcher.join()


def _below(pid: int) -> set[int]:
    """The processes that a process has started, and those that they have."""
    ours = Path("/proc/self/cmdline").read_bytes()
    parents: dict[int, int] = {}
    for home in Path("/proc").glob("[0-9]*"):
        # Those that end meanwhile, and for a moment a new one is still this one's twin in memory.
        with suppress(OSError):
            if (home / "cmdline").read_bytes() != ours:
                status = (home / "status").read_text()
                parents[int(home.name)] = int(status.partition("PPid:")[2].split()[0])
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {pid}


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@dataclass(frozen=True)
class Verified:
    """One real run beside its estimate."""

    name: str
    updates: int
    predicted: tuple[float, float, float]
    """Seconds, bytes of memory, bytes on disk."""
    actual: tuple[float, float, float]
    wall: float


def verify(out: Path) -> list[Verified]:
    """Estimate three short runs, then make them, one after the other."""
    short = {
        "warmup_steps": 300,
        "compile": "off",
        "tensorboard": False,
        "out": str(out),
        "checkpoint_every": 500,
        "log_every": 100,
        "eval_episodes": 2,
    }
    runs = [
        Job.of("gym:Pendulum-v1", "sac", 0, 1.0, {**short, **_sizes(64, 1500, 1.0)}),
        Job.of(
            "cartpole-swingup",
            "fog",
            0,
            0.001,
            {**short, **_sizes(64, 1000, 1.0), "probes": ("all",), "window_steps": 500},
        ),
        Job.of("HalfCheetah-v4", "sac", 0, 1.0, {**short, **_sizes(128, 900, 1.0)}),
    ]
    return [_verify(job) for job in runs]


def _sizes(width: int, steps: int, ratio: float) -> dict[str, object]:
    return {"width": width, "steps": steps, "replay_ratio": ratio, "eval_every": steps // 2}


def _verify(job: Job) -> Verified:
    cost = estimate([job.config]).per_run[0]
    began = time.perf_counter()
    process = subprocess.Popen(
        job.command(), env=environment(job), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    memory = 0
    while not (ended := os.wait4(process.pid, os.WNOHANG))[0]:
        memory = max(memory, peak_bytes(process.pid))
        time.sleep(POLL)
    _, status, used = ended
    wall = time.perf_counter() - began
    if status:
        raise SystemExit(f"{job.label} failed; run it by hand: fog train {' '.join(job.flags)}")
    size = sum(path.stat().st_size for path in job.directory.rglob("*") if path.is_file())
    return Verified(
        f"{job.config.run.task} {job.config.run.variant}, width {job.config.network.width}",
        cost.updates,
        (cost.seconds, float(cost.memory_bytes), float(cost.disk_bytes)),
        (used.ru_utime + used.ru_stime, float(memory), float(size)),
        wall,
    )


def paper(variant: str, task: str) -> Config:
    """A run of the paper."""
    return resolve(task, variant, probes=("all",))


if __name__ == "__main__":
    print(json.dumps(_compare(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
