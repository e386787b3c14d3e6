"""`fog sweep --gpus`: which GPU each run of this machine sees."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

from fog.cli.parser import Parser
from fog.errors import UserError
from fog.sweep import gpus, local
from fog.sweep.job import Job
from tests.fog.sweep.running import jobs_of


@pytest.fixture
def three(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with three GPUs, as torch would count them."""
    monkeypatch.delenv(gpus.VISIBLE, raising=False)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)


@pytest.mark.usefixtures("three")
@pytest.mark.parametrize(
    ("wanted", "found"),
    [("2", "0 1"), ("0,2", "0 2"), ("2,0", "2 0"), ("1,", "1"), ("3", "0 1 2"), (" 0 , 1", "0 1")],
)
def test_a_number_is_a_count_and_a_list_names_gpus(wanted: str, found: str) -> None:
    assert gpus.chosen(wanted) == tuple(found.split())


@pytest.mark.usefixtures("three")
def test_gpus_are_taken_from_those_that_this_process_may_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(gpus.VISIBLE, "5,GPU-a1b2, 7")
    assert gpus.chosen("2") == ("5", "GPU-a1b2")
    assert gpus.chosen("7,GPU-a1b2") == ("7", "GPU-a1b2")
    assert gpus.chosen("GPU-a1b2") == ("GPU-a1b2",)
    with pytest.raises(UserError, match="no GPU 0 here, only 5, GPU-a1b2, 7"):
        gpus.chosen("0,5")


@pytest.mark.usefixtures("three")
@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ("all", "--gpus 'all': give a count such as 2, or a list of GPUs such as 0,1"),
        ("", "give a count"),
        (",", "give a count"),
        ("-1", "give a count"),
        ("0;1", "give a count"),
        ("0,0", "names GPU 0 twice; --jobs puts several runs on each GPU"),
        ("0,3", "no GPU 3 here, only 0, 1, 2"),
        ("0", "there are 3 GPUs here (0, 1, 2)"),
        ("4", "there are 3 GPUs here (0, 1, 2)"),
    ],
)
def test_a_mistake_is_one_line(wanted: str, said: str) -> None:
    with pytest.raises(UserError) as error:
        gpus.chosen(wanted)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_a_machine_without_gpus_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    with pytest.raises(UserError, match="no CUDA device here; leave it out"):
        gpus.chosen("1")


def _engine(jobs: list[Job], *flags: str) -> local.LocalEngine:
    parser = Parser("sweep", "")
    local.add_options(parser)
    parser.add_argument("--jobs", type=int)
    return local.make(parser.parse(flags), jobs)


@pytest.mark.usefixtures("three")
def test_runs_on_the_cpu_need_no_gpu(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="these runs have --device cpu"):
        _engine(jobs_of(tmp_path, range(1), device="cpu"), "--gpus", "2")


@pytest.mark.usefixtures("three")
def test_by_default_there_is_one_run_for_each_gpu(tmp_path: Path) -> None:
    jobs = jobs_of(tmp_path, range(4))
    assert _engine(jobs, "--gpus", "2").slots == 2
    assert _engine(jobs, "--gpus", "2", "--jobs", "6").slots == 6
    assert _engine(jobs).slots == local.default_jobs(jobs)


@pytest.mark.usefixtures("three")
def test_runs_are_spread_and_a_free_gpu_is_used_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Real processes, which write down what they see and end when they are told."""
    jobs = jobs_of(tmp_path, range(5))
    code = (
        "import os, sys, time; from pathlib import Path; home = Path(sys.argv[1]); "
        "(home / 'sees').write_text(os.environ['CUDA_VISIBLE_DEVICES'])\n"
        "while not (home / 'go').exists(): time.sleep(0.01)"
    )
    monkeypatch.setattr(Job, "command", lambda job: [sys.executable, "-c", code, job.directory])
    engine = _engine(jobs, "--gpus", "2,0", "--jobs", "4")

    def end(job: Job) -> None:
        (job.directory / "go").touch()
        while job in engine.running():
            engine.poll()

    engine.submit(jobs[:4])
    end(jobs[1])
    engine.submit(jobs[4:])
    for job in (jobs[0], *jobs[2:]):
        end(job)
    seen = [(job.directory / "sees").read_text() for job in jobs]
    assert seen == ["2", "0", "2", "0", "0"]
