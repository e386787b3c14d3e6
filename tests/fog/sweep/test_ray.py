"""The Ray engine: what it says without Ray, and real clusters of this machine."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from fog.cli import main
from fog.records.run_directory import RunDirectory
from fog.sweep.job import Job
from fog.sweep.process import run
from fog.sweep.ray import Runner
from fog.system.extras import install
from tests.training import TINY, assert_same_run

HAS_RAY = importlib.util.find_spec("ray") is not None
# `make test-slow` installs Ray and says so: there a missing Ray is a failure.
needs_ray = pytest.mark.skipif(
    not HAS_RAY and "FOG_ALL_TESTS" not in os.environ,
    reason=f"Ray is not installed: {install('ray')}",
)


def _job(out: Path, seed: int = 0) -> Job:
    settings = {**TINY, "steps": 1500, "checkpoint_every": 100, "out": str(out)}
    return Job.of("gym:Pendulum-v1", "sac", seed, 1.0, settings)


def _command(out: Path, *flags: str, seeds: int = 6) -> list[str]:
    """`fog sweep` over the runs of `_job`."""
    grid = ("--task=", "--variant=", "--seed=")
    settings = [flag for flag in _job(out).flags if not flag.startswith(grid)]
    which = ["--tasks", "gym:Pendulum-v1", "--variants", "sac", "--seeds", f"0-{seeds - 1}"]
    return ["sweep", *which, *settings, "--engine", "ray", "--memory-per-run", "0.5", *flags]


def _start(command: list[str]) -> subprocess.Popen[str]:
    # A group of its own, so that Ctrl-C reaches all that a terminal would send it to.
    return subprocess.Popen(
        [sys.executable, "-m", "fog", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        process_group=0,
    )


def _wait_for_checkpoint(job: Job, sweep: subprocess.Popen[str], seconds: float = 240.0) -> None:
    ends = time.monotonic() + seconds
    while job.checkpoint_step() == 0:
        assert sweep.poll() is None and time.monotonic() < ends, "no checkpoint came"
        time.sleep(0.05)


def _worker_of(job: Job) -> int:
    """The process of Ray that started the run: the parent of its `fog train`."""
    for home in Path("/proc").glob("[0-9]*"):
        try:
            arguments = (home / "cmdline").read_text().split("\0")
        except OSError:
            continue
        if f"--out={job.config.runtime.out}" in arguments and job.flags[2] in arguments:
            return _parent_of(int(home.name))
    raise AssertionError(f"{job.label} is not running")


def _parent_of(process: int) -> int:
    status = Path(f"/proc/{process}/status").read_text()
    return int(status.partition("PPid:")[2].split()[0])


def _raylets_of(node: Any) -> list[int]:
    """The processes of a node of Ray that start its workers."""
    return [info.process.pid for info in node.all_processes["raylet"]]


def _assert_undisturbed(jobs: list[Job], elsewhere: Path) -> None:
    for job in jobs:
        seed = job.config.run.seed
        alone = _job(elsewhere, seed)
        assert run(alone) == 0
        assert_same_run(job.directory, alone.directory)


@pytest.mark.skipif(HAS_RAY, reason="Ray is installed")
def test_without_ray_it_says_what_to_install(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(_command(tmp_path)) == 2
    said = capsys.readouterr().err
    assert (
        "engine ray needs Ray: pip install -c constraints.txt -e '.[ray]' in the checkout" in said
    )
    assert len(said.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_node_that_does_not_share_the_directory_says_so(tmp_path: Path) -> None:
    job = _job(tmp_path)
    said = asyncio.run(Runner(0.0).begin(job, tmp_path / ".shared-elsewhere"))
    assert said.startswith(f"{tmp_path} is not shared with node")
    assert not job.directory.exists()


def test_a_run_that_did_not_ask_for_a_graphics_card_sees_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    Runner(0.5)
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "0,1"
    Runner(0.0)
    assert os.environ["CUDA_VISIBLE_DEVICES"] == ""


@pytest.mark.slow
@needs_ray
def test_a_worker_is_killed_and_all_runs_finish_with_the_same_bits(tmp_path: Path) -> None:
    out = tmp_path / "runs"
    jobs = [_job(out, seed) for seed in range(6)]
    with _start(_command(out)) as sweep:
        _wait_for_checkpoint(jobs[0], sweep)
        os.kill(_worker_of(jobs[0]), signal.SIGKILL)
        said, _ = sweep.communicate(timeout=600)
    assert sweep.returncode == 0, said
    events = (jobs[0].directory / "events.csv").read_text()
    assert "resume" in events
    assert list(out.glob(".shared-*")) == []
    _assert_undisturbed(jobs, tmp_path / "alone")


@pytest.mark.slow
@needs_ray
def test_a_node_of_an_existing_cluster_dies_and_the_other_goes_on(tmp_path: Path) -> None:
    from ray.cluster_utils import Cluster

    out = tmp_path / "runs"
    jobs = [_job(out, seed) for seed in range(3)]
    room = {"memory": 2_000_000_000, "object_store_memory": 80_000_000}
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **room})
    try:
        nodes = [cluster.add_node(num_cpus=1, **room) for _ in range(2)]
        with _start(_command(out, "--address", cluster.address, seeds=3)) as sweep:
            _wait_for_checkpoint(jobs[0], sweep)
            # The node of this run: that of another may have nothing to resume from yet.
            raylet = _parent_of(_worker_of(jobs[0]))
            [doomed] = [node for node in nodes if raylet in _raylets_of(node)]
            cluster.remove_node(doomed, allow_graceful=False)
            said, _ = sweep.communicate(timeout=600)
    finally:
        cluster.shutdown()
    assert sweep.returncode == 0, said
    resumed = [job for job in jobs if "resume" in (job.directory / "events.csv").read_text()]
    assert len(resumed) == 1
    _assert_undisturbed(jobs, tmp_path / "alone")


@pytest.mark.slow
@needs_ray
def test_ctrl_c_saves_the_runs_and_the_same_command_goes_on(tmp_path: Path) -> None:
    out = tmp_path / "runs"
    jobs = [_job(out, seed) for seed in range(3)]
    with _start(_command(out, seeds=3)) as sweep:
        _wait_for_checkpoint(jobs[0], sweep)
        os.killpg(sweep.pid, signal.SIGINT)
        said, _ = sweep.communicate(timeout=120)
    assert sweep.returncode == 130, said
    assert RunDirectory(jobs[0].directory).manifest()["status"] == "interrupted"
    assert jobs[2].status() == "new"
    with _start(_command(out, seeds=3)) as sweep:
        said, _ = sweep.communicate(timeout=600)
    assert sweep.returncode == 0, said
    _assert_undisturbed(jobs, tmp_path / "alone")


@pytest.mark.slow
@needs_ray
def test_a_request_that_no_node_can_serve_is_refused(tmp_path: Path) -> None:
    with _start(_command(tmp_path, "--gpus-per-run", "64")) as sweep:
        said, _ = sweep.communicate(timeout=240)
    assert sweep.returncode == 2
    assert "no node has 1 CPUs, 64 GPUs" in said.splitlines()[-1]


@needs_ray
@pytest.mark.parametrize(
    ("address", "complaint"),
    [
        ("127.0.0.1:1", "cannot reach the Ray cluster at 127.0.0.1:1"),
        ("ray://head:10001", "give HOST:PORT of the head node"),
        ("somewhere", "give HOST:PORT of the head node"),
    ],
)
def test_a_wrong_address_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], address: str, complaint: str
) -> None:
    assert main(_command(tmp_path, "--address", address)) == 2
    said = capsys.readouterr().err
    assert complaint in said and len(said.splitlines()) == 1
