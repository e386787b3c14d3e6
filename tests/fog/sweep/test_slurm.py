"""The Slurm engine: its options, submitit alone, and a real cluster from Debian's packages."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from fog.cli import main
from fog.errors import UserError
from fog.records.run_directory import RunDirectory
from fog.sweep import sbatch
from fog.sweep.job import Job
from fog.sweep.process import run
from fog.system.extras import install
from tests.fog.sweep import slurmcluster
from tests.training import TINY, assert_same_run

HAS_SUBMITIT = importlib.util.find_spec("submitit") is not None
# `make test-slow` installs submitit and says so: there a missing one is a failure. Slurm itself is
# the machine's, and may be missing even then.
NO_SUBMITIT = not HAS_SUBMITIT and "FOG_ALL_TESTS" not in os.environ
ABSENT = slurmcluster.absent() + (["submitit"] if NO_SUBMITIT else [])
needs_submitit = pytest.mark.skipif(
    NO_SUBMITIT, reason=f"submitit is not installed: {install('slurm')}"
)
needs_slurm = pytest.mark.skipif(
    bool(ABSENT),
    reason=f"not installed: {', '.join(ABSENT)}; "
    f"apt-get install slurm-wlm munge, {install('slurm')}",
)


def _job(out: Path, seed: int = 0) -> Job:
    settings = {**TINY, "steps": 1500, "checkpoint_every": 300, "out": str(out)}
    return Job.of("gym:Pendulum-v1", "sac", seed, 1.0, settings)


def _command(out: Path, *flags: str, seeds: int = 3) -> list[str]:
    """`fog sweep` over the runs of `_job`."""
    grid = ("--task=", "--variant=", "--seed=")
    settings = [flag for flag in _job(out).flags if not flag.startswith(grid)]
    which = ["--tasks", "gym:Pendulum-v1", "--variants", "sac", "--seeds", f"0-{seeds - 1}"]
    return ["sweep", *which, *settings, "--engine", "slurm", "--memory-per-run", "0.5", *flags]


# Without a cluster


@pytest.mark.parametrize(
    ("text", "minutes"),
    [
        ("90", 90),
        ("90:30", 91),
        ("4:00:00", 240),
        ("0:00:30", 1),
        ("2-12", 3600),
        ("1-00:30", 1470),
        ("1-12:00:00", 2160),
    ],
)
def test_times_are_written_as_slurm_writes_them(text: str, minutes: int) -> None:
    assert sbatch.minutes_of(text) == minutes


@pytest.mark.parametrize("text", ["", "soon", "1:2:3:4", "-5", "0", "1h"])
def test_other_times_are_refused(text: str) -> None:
    with pytest.raises(UserError, match=r"^--time"):
        sbatch.minutes_of(text)


def test_options_of_sbatch_are_passed_on() -> None:
    found = sbatch.extras(["partition=gpu", "--account=me", "exclusive", "mail_type=END"])
    assert found == {"partition": "gpu", "account": "me", "exclusive": True, "mail-type": "END"}


@pytest.mark.parametrize(
    ("item", "complaint"),
    [
        ("time=5", "use --time"),
        ("mem=4G", "use --memory-per-run"),
        ("signal=TERM@9", "set by the sweep itself"),
        ("partition=", "write KEY=VALUE"),
        ("=gpu", "write KEY=VALUE"),
    ],
)
def test_options_that_the_sweep_needs_are_refused(item: str, complaint: str) -> None:
    with pytest.raises(UserError, match=complaint):
        sbatch.extras([item])


def test_half_a_graphics_card_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(_command(tmp_path, "--gpus-per-run", "0.5")) == 2
    assert "Slurm allocates whole GPUs" in capsys.readouterr().err


@pytest.mark.skipif(HAS_SUBMITIT, reason="submitit is installed")
def test_without_submitit_it_says_what_to_install(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(_command(tmp_path)) == 2
    said = capsys.readouterr().err
    assert "engine slurm needs submitit: pip install -c constraints.txt -e '.[slurm]'" in said


@needs_submitit
def test_without_slurm_it_says_where_to_start(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(_command(tmp_path / "runs")) == 2
    assert "needs Slurm's commands (sbatch)" in capsys.readouterr().err


# Without a cluster, with submitit


@pytest.mark.slow
@needs_submitit
def test_submitit_runs_a_run_here_and_requeues_it(tmp_path: Path) -> None:
    """The job itself, by submitit's local executor: all there is where Slurm is not installed."""
    import submitit

    from fog.sweep.slurm import Run

    job = _job(tmp_path / "runs")
    executor = submitit.LocalExecutor(tmp_path / "submitit")
    executor.update_parameters(timeout_min=10)
    handle = executor.submit(Run(job)).cancel_at_deletion()
    ends = time.monotonic() + 240
    while not job.checkpoint_step():
        assert time.monotonic() < ends, handle.stderr()
        time.sleep(0.05)
    # What submitit sends to a job shortly before its time limit.
    os.kill(_child_of(int(handle.job_id)), signal.SIGUSR2)
    assert handle.result() == 0
    assert "resume" in (job.directory / "events.csv").read_text()
    assert "Interrupted; everything is saved" in job.log.read_text()
    _assert_undisturbed([job], tmp_path / "alone")


def _child_of(pid: int) -> int:
    for status in Path("/proc").glob("[0-9]*/status"):
        with suppress(OSError):
            if int(status.read_text().partition("PPid:")[2].split()[0]) == pid:
                return int(status.parent.name)
    raise AssertionError(f"{pid} has no child")


# On a cluster


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with slurmcluster.cluster(tmp_path_factory.mktemp("slurm")) as found:
        yield found


class _Sweep:
    """A sweep as a process of its own."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self._environment = environment
        self.process = subprocess.Popen(
            [sys.executable, "-m", "fog", *command],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment,
            process_group=0,
        )

    def wait_for(self, job: Job, *, resumed: bool = False, seconds: float = 240.0) -> None:
        """Wait until a run trains, or trains again."""
        ends = time.monotonic() + seconds
        events = job.directory / "events.csv"
        while not (job.checkpoint_step() and (not resumed or "resume" in events.read_text())):
            assert self.process.poll() is None, self.process.communicate()[0]
            assert time.monotonic() < ends, f"{job.label} does not come"
            time.sleep(0.05)

    def end(self, seconds: float = 600.0) -> tuple[int, str]:
        """Wait for its end; exit code and what it said."""
        said, _ = self.process.communicate(timeout=seconds)
        return self.process.returncode, said


def _slurm(environment: dict[str, str], *command: str) -> str:
    return subprocess.run(
        command, env=environment, check=True, capture_output=True, text=True
    ).stdout


def _assert_undisturbed(jobs: list[Job], elsewhere: Path) -> None:
    for job in jobs:
        alone = _job(elsewhere, job.config.run.seed)
        assert run(alone) == 0
        assert_same_run(job.directory, alone.directory)


@pytest.mark.slow
@needs_slurm
def test_requeued_runs_go_on_and_all_finish_with_the_same_bits(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    out = tmp_path / "runs"
    jobs = [_job(out, seed) for seed in range(3)]
    sweep = _Sweep(_command(out), environment)
    sweep.wait_for(jobs[0])
    first, second = (f"{_array(environment)}_{k}" for k in (0, 1))
    _slurm(environment, "scontrol", "requeue", first)
    sweep.wait_for(jobs[1])
    # What Slurm sends to every process of a job shortly before its time limit.
    _slurm(environment, "scancel", "--signal=USR2", second)
    code, said = sweep.end()
    assert code == 0, said
    for job in jobs[:2]:
        assert "resume" in (job.directory / "events.csv").read_text()
        assert "Interrupted; everything is saved" in job.log.read_text()
    arrays = {path.name.partition("_")[0] for path in (out / ".slurm").glob("*_*_submitted.pkl")}
    assert len(arrays) == 1
    _assert_undisturbed(jobs, tmp_path / "alone")


def _array(environment: dict[str, str]) -> str:
    """The id of the only array in the queue."""
    ids = set(_slurm(environment, "squeue", "-h", "-r", "-o", "%F").split())
    assert len(ids) == 1
    return ids.pop()


@pytest.mark.slow
@needs_slurm
def test_ctrl_c_saves_the_runs_and_the_same_command_goes_on(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    out = tmp_path / "runs"
    jobs = [_job(out, seed) for seed in range(2)]
    sweep = _Sweep(_command(out, "--jobs", "1", seeds=2), environment)
    sweep.wait_for(jobs[0])
    os.killpg(sweep.process.pid, signal.SIGINT)
    code, said = sweep.end(120)
    assert code == 130, said
    assert RunDirectory(jobs[0].directory).manifest()["status"] == "interrupted"
    assert jobs[1].status() == "new"
    assert _slurm(environment, "squeue", "-h") == ""
    code, said = _Sweep(_command(out, "--jobs", "1", seeds=2), environment).end()
    assert code == 0, said
    _assert_undisturbed(jobs, tmp_path / "alone")


@pytest.mark.slow
@needs_slurm
def test_a_detached_array_needs_no_sweep(tmp_path: Path, environment: dict[str, str]) -> None:
    out = tmp_path / "runs"
    jobs = [_job(out, seed) for seed in range(2)]
    code, said = _Sweep(_command(out, "--detach", seeds=2), environment).end(120)
    assert code == 0, said
    assert all(job.status() != "finished" for job in jobs)
    code, said = _Sweep(_command(out, seeds=2), environment).end(120)
    assert code == 2 and "already in Slurm's queue" in said
    ends = time.monotonic() + 240
    while any(job.status() != "finished" for job in jobs):
        assert time.monotonic() < ends
        time.sleep(0.5)
    _assert_undisturbed(jobs, tmp_path / "alone")


@pytest.mark.slow
@needs_slurm
def test_what_slurm_refuses_is_said_in_its_words(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    sweep = _Sweep(_command(tmp_path / "runs", "--slurm", "partition=nowhere"), environment)
    code, said = sweep.end(120)
    assert code == 1
    assert "Slurm refused it" in said and "invalid partition" in said
