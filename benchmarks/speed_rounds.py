"""Workers taking turns: one at a time, in a new order in every round."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from speed_workers import TOGETHER, Contender

WORKER = Path(__file__).with_name("speed_workers.py")
OURS = ("fog", "products", "kernels", "fog-steps")
_JAX = ("sbx", "sbx-steps", "bro", "simba")


class WorkerError(Exception):
    """A contender could not start, or died; the message is what it said last."""


def cores(count: int, first: int = 0) -> set[int]:
    """`count` of the processor's cores that this process may use."""
    return set(sorted(os.sched_getaffinity(0))[first : first + count])


def say(line: str) -> None:
    """Progress, which is not a result."""
    print(line, file=sys.stderr, flush=True)


class Worker:
    """One contender in its process; `wait` for it, then give it turns."""

    def __init__(self, contender: Contender, python: str, pinned: set[int]) -> None:
        self.contender = contender
        self.facts: dict[str, Any] = {}
        self._pinned = pinned
        self._said = tempfile.TemporaryFile("w+")  # noqa: SIM115 - lives as long as the worker
        self._process = subprocess.Popen(
            [python, str(WORKER), contender.json()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            text=True,
            env=_environment(contender),
            # XLA sizes its thread pool by the cores it finds. The others may compile on all.
            preexec_fn=self._pin if contender.kind in _JAX else None,
        )

    def wait(self) -> None:
        """Until it has warmed up; then it stays on its cores.

        Raises:
            WorkerError: it cannot run here.
        """
        word, _, facts = self._hear().partition(" ")
        if word != "ready":
            raise WorkerError(f"said {word!r} and not that it is ready")
        self.facts = json.loads(facts)
        for thread in Path(f"/proc/{self._process.pid}/task").iterdir():
            os.sched_setaffinity(int(thread.name), self._pinned)

    def begin(self, amount: int) -> None:
        """Let it work."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{amount}\n")
        self._process.stdin.flush()

    def end(self) -> tuple[float, float]:
        """Wall and processor seconds of the work begun."""
        wall, processor = map(float, self._hear().split())
        return wall, processor

    def turn(self, amount: int) -> tuple[float, float]:
        """Wall and processor seconds of `amount` of work, nobody else working."""
        self.begin(amount)
        return self.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._said):
            if pipe is not None:
                pipe.close()

    def _pin(self) -> None:
        os.sched_setaffinity(0, self._pinned)

    def _hear(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if line:
            return line.strip()
        self._process.wait()
        self._said.seek(0)
        last = [said.strip() for said in self._said if said.strip()][-1:]
        raise WorkerError(last[0] if last else f"exit code {self._process.returncode}")


def _environment(contender: Contender) -> dict[str, str]:
    threads = str(contender.threads)
    caps = {"OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads, "JAX_PLATFORMS": "cpu"}
    if contender.threads == 1:
        caps["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    return {**os.environ, **caps}


@dataclass(frozen=True)
class Pace:
    """How long everybody works."""

    rounds: int
    turn: float
    """Seconds of one turn."""
    python: str = sys.executable
    """Interpreter of the peers' environment."""


@dataclass
class Measured:
    """Seconds per update (or step), one value per contender and round, by both clocks."""

    wall: dict[str, list[float]] = field(default_factory=dict)
    processor: dict[str, list[float]] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    """Contenders that could not be measured, and why."""
    facts: dict[str, dict[str, Any]] = field(default_factory=dict)

    def times(self, clock: str) -> dict[str, list[float]]:
        """By `wall` or `processor` time."""
        return self.wall if clock == "wall" else self.processor

    def ratio(self, slow: str, fast: str, clock: str = "wall") -> float | None:
        """Median over rounds of slow's time over fast's; None if either is missing."""
        times = self.times(clock)
        if slow not in times or fast not in times:
            return None
        return float(np.median(np.array(times[slow]) / np.array(times[fast])))

    def rate(self, name: str, clock: str = "wall") -> float | None:
        """Median updates (or steps) per second."""
        times = self.times(clock).get(name)
        return None if times is None else float(1.0 / np.median(times))


def amount_for(worker: Worker, seconds: float) -> int:
    """Work that fills a turn, a multiple of `TOGETHER`."""
    worker.turn(TOGETHER)
    took = worker.turn(TOGETHER)[0]
    return max(1, round(seconds / took)) * TOGETHER


def interleave(contenders: Mapping[str, Contender], pace: Pace) -> Measured:
    """Start all contenders, then give each a turn in every round, in a new order each time.

    Nobody works while another has its turn. All are pinned to the same cores, as many as they
    have threads.
    """
    found = Measured()
    with ExitStack() as stack:
        workers = start(stack, contenders, pace, found)
        amounts = {name: amount_for(worker, pace.turn) for name, worker in workers.items()}
        for name in workers:
            found.wall[name], found.processor[name] = [], []
        order = np.random.default_rng(0)
        for _ in range(pace.rounds):
            for name in order.permutation(list(workers)):
                wall, processor = workers[name].turn(amounts[name])
                found.wall[name].append(wall / amounts[name])
                found.processor[name].append(processor / amounts[name])
    return found


def start(
    stack: ExitStack,
    contenders: Mapping[str, Contender],
    pace: Pace,
    found: Measured,
    pins: Sequence[set[int]] | None = None,
) -> dict[str, Worker]:
    """Start everybody at once and wait; who fails is noted as missing.

    Args:
        stack: ends the workers.
        contenders: by name.
        pace: says which interpreter the peers have.
        found: takes the reasons of those that fail.
        pins: cores of each; the first ones for all if None.
    """
    starting: dict[str, Worker] = {}
    for index, (name, contender) in enumerate(contenders.items()):
        python = sys.executable if contender.kind in OURS else pace.python
        pinned = cores(contender.threads) if pins is None else pins[index]
        starting[name] = stack.enter_context(Worker(contender, python, pinned))
    ready: dict[str, Worker] = {}
    for name, worker in starting.items():
        try:
            worker.wait()
        except WorkerError as error:
            found.missing[name] = str(error)
            say(f"  {name}: not measured: {error}")
            continue
        ready[name] = worker
        found.facts[name] = worker.facts
    return ready
