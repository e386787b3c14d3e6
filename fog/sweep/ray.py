"""Runs on a Ray cluster: an existing one, or one on this machine that ends with the sweep.

Each run has an actor, a process of Ray that starts `fog train`, waits for it and can be told to
stop it. Ray decides where: it places an actor on a node that has what the run asks for. If the
actor dies, Linux tells the run to save, and the sweep submits it again.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import re
import signal
import socket
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fog.errors import UserError
from fog.sweep import request
from fog.sweep.engine import LOST, Ended, missing
from fog.sweep.job import Job
from fog.sweep.process import Process
from fog.sweep.request import Request, request_of

_OBJECT_STORE = 100_000_000
"""Bytes for Ray's own objects on this machine: exit codes are all that is ever stored."""
_POLL_SECONDS = 0.2
_ATTEMPTS = 3
"""Ray gives up on starting if one of its processes takes 15 s to come, as on a busy machine."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Where the cluster is, and what a run asks of it."""
    parser.add_argument_group("ray").add_argument(
        "--address", metavar="HOST:PORT", help="an existing cluster, or auto [one of this machine]"
    )
    request.add_options(parser)


def make(options: argparse.Namespace, jobs: Sequence[Job]) -> RayEngine:
    """Connect to the cluster, or start one."""
    requests = {job: request_of(options, job.config) for job in jobs}
    _connect(options.address)
    for job, wanted in requests.items():
        _check_fits(job, wanted)
    return RayEngine(options.jobs, requests)


def _connect(address: str | None) -> None:
    # Ray would send statistics of its use to its makers.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError:
        raise missing("ray", "Ray") from None
    if address is not None:
        _check_address(address)
    # Ray takes over SIGTERM, on which a sweep saves its runs.
    handler = signal.getsignal(signal.SIGTERM)
    try:
        for attempt in reversed(range(_ATTEMPTS if address is None else 1)):
            try:
                _init(address)
                return
            except Exception as error:  # Ray raises bare ones
                ray.shutdown()
                if attempt == 0:
                    said = (str(error).strip().splitlines() or [type(error).__name__])[0]
                    what = f"reach the Ray cluster at {address}" if address else "start Ray here"
                    raise UserError(f"cannot {what}: {said}") from None
    finally:
        signal.signal(signal.SIGTERM, handler)


def _init(address: str | None) -> None:
    import ray

    local = {"include_dashboard": False, "object_store_memory": _OBJECT_STORE}
    # Ray's workers import from the folder in which Ray was started; the root has nothing to import.
    with contextlib.chdir("/"):
        ray.init(
            address=address or "local",
            log_to_driver=False,
            logging_level="ERROR",
            **({} if address else local),
        )


def _check_address(address: str) -> None:
    """Refuse an address where nothing listens, because Ray would retry for many minutes."""
    if address == "auto":
        return
    host, _, port = address.rpartition(":")
    if not host or "/" in host or not re.fullmatch(r"[0-9]{1,5}", port) or int(port) > 65535:
        raise UserError(f"--address {address}: give HOST:PORT of the head node, or auto")
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except OSError as error:
        raise UserError(f"cannot reach the Ray cluster at {address}: {error}") from None


def _check_fits(job: Job, wanted: Request) -> None:
    """Refuse what no node has, because Ray would wait for such a node for ever."""
    import ray

    needs = {"CPU": wanted.cpus, "GPU": wanted.gpus, "memory": wanted.memory_bytes}
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    if any(all(node.get(name, 0) >= need for name, need in needs.items()) for node in nodes):
        return
    ray.shutdown()
    raise UserError(
        f"{job.label}: no node has {wanted.cpus} CPUs, {wanted.gpus:g} GPUs and "
        f"{wanted.memory_bytes / 1e9:.1f} GB for it; see --cpus-per-run, --gpus-per-run, "
        "--memory-per-run"
    )


class Runner:
    """The actor of one run, on the node where it runs."""

    def __init__(self, gpus: float) -> None:
        if not gpus:
            # The node may have some, but this run did not ask for one.
            os.environ["CUDA_VISIBLE_DEVICES"] = ""
        self._process: Process | None = None

    async def begin(self, job: Job, mark: Path) -> str:
        """Start or resume the run; empty, or why it cannot be started here."""
        host = socket.gethostname()
        if not mark.exists():
            return f"{mark.parent} is not shared with node {host}: put --out on shared storage"
        try:
            self._process = Process(job)
        except OSError as error:
            return f"cannot be started on node {host}: {error}"
        return ""

    async def wait(self) -> int:
        """Wait for its end; the exit code."""
        while self._process is None:
            await asyncio.sleep(_POLL_SECONDS)
        while (code := self._process.poll()) is None:
            await asyncio.sleep(_POLL_SECONDS)
        return code

    async def stop(self, at_once: bool) -> None:
        """Ask it to save and stop, or kill it."""
        if self._process is not None:
            if at_once:
                self._process.kill()
            else:
                self._process.stop()


@dataclass
class _Submitted:
    actor: Any
    begun: Any
    ended: Any
    running: bool = False


class RayEngine:
    """Actors of a Ray cluster. Ray queues those that do not fit yet."""

    def __init__(self, slots: int | None, requests: dict[Job, Request]) -> None:
        self.slots = slots
        self._requests = requests
        self._submitted: dict[Job, _Submitted] = {}
        self._stopping = False
        self._marks: dict[Path, Path] = {}

    def submit(self, jobs: Sequence[Job]) -> None:
        """Hand the runs to Ray."""
        import ray

        for job in jobs:
            wanted = self._requests[job]
            actor = (
                ray.remote(Runner)
                .options(
                    num_cpus=wanted.cpus,
                    num_gpus=wanted.gpus,
                    memory=wanted.memory_bytes,
                    max_restarts=0,
                )
                .remote(wanted.gpus)
            )
            begun = actor.begin.remote(job, self._mark(job))
            self._submitted[job] = _Submitted(actor, begun, actor.wait.remote())

    def running(self) -> frozenset[Job]:
        """Runs whose process has been started."""
        return frozenset(job for job, held in self._submitted.items() if held.running)

    def poll(self) -> list[Ended]:
        """The runs that ended since the last call."""
        found = [self._look(job, held) for job, held in self._submitted.items()]
        ended = [end for end in found if end is not None]
        for end in ended:
            self._release(end.job)
        return ended

    def _look(self, job: Job, held: _Submitted) -> Ended | None:
        import ray

        try:
            if not held.running:
                if not ray.wait([held.begun], timeout=0)[0]:
                    return None
                obstacle = ray.get(held.begun)
                if obstacle:
                    return Ended(job, 2, obstacle)
                held.running = True
            if not ray.wait([held.ended], timeout=0)[0]:
                return None
            code = int(ray.get(held.ended))
            return Ended(job, 130 if self._stopping and code < 0 else code)
        except ray.exceptions.RayError as error:
            if self._stopping:
                return Ended(job, 130)
            text = " ".join(str(error).split())
            if "ModuleNotFoundError" in text:
                return Ended(
                    job, 2, "a node cannot import fog: install this package on all of them"
                )
            return Ended(job, LOST, "its Ray worker died")

    def stop(self, *, at_once: bool = False) -> None:
        """Ask every run to save and stop, or kill it; drop those that have not begun."""
        import ray

        self._stopping = True
        for held in self._submitted.values():
            if held.running or ray.wait([held.begun], timeout=0)[0]:
                held.actor.stop.remote(at_once)
            else:
                ray.kill(held.actor)

    def close(self) -> None:
        """Leave the cluster; one of our own ends."""
        import ray

        for mark in self._marks.values():
            mark.unlink(missing_ok=True)
        ray.shutdown()

    def _release(self, job: Job) -> None:
        import ray

        ray.kill(self._submitted.pop(job).actor)

    def _mark(self, job: Job) -> Path:
        """A file in the run's --out by which a node sees whether it shares that directory."""
        out = (job.home / job.config.runtime.out).absolute()
        if out not in self._marks:
            out.mkdir(parents=True, exist_ok=True)
            self._marks[out] = out / f".shared-{uuid.uuid4().hex[:12]}"
            self._marks[out].touch()
        return self._marks[out]
