"""Nothing in the folder where a command is started is run, whatever it is called.

Every test starts a command in a folder full of modules that leave a mark when they are imported.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from fog.cli.sweep import _parse
from fog.errors import UserError
from fog.sweep import ray as ray_engine
from fog.sweep import slurm
from tests.diagnostics.report.test_notebooks import write_notebook
from tests.fog.sweep.running import jobs_of

HOSTILE = (
    *("copy", "random", "json", "ctypes", "fog", "diagnostics", "numpy", "torch", "ipykernel"),
    "helper",
)
"""Modules of Python, of ours, of others, and one that only lies there."""

TINY = shlex.split(
    "--scale 0.02 --steps 60 --warmup-steps 20 --batch-size 16 --width 8 --eval-every 30 "
    "--eval-episodes 1 --log-every 20 --no-tensorboard --replay-ratio 1 --compile off --out runs"
)


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A folder whose modules write their name into `marks`, then break what imports them."""
    folder = tmp_path / "hostile"
    folder.mkdir()
    marks = tmp_path / "marks"
    for name in HOSTILE:
        (folder / f"{name}.py").write_text(
            f"open({str(marks)!r}, 'a').write({name!r} + ' ')\nraise ImportError('foreign')\n"
        )
    return folder


def fog(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`fog` as its script starts it: without the working directory on the path."""
    command = [sys.executable, "-P", "-m", "fog", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)


def assert_untouched(folder: Path) -> None:
    marks = folder.parent / "marks"
    assert not marks.exists(), marks.read_text()


def test_the_trap_works(hostile: Path) -> None:
    """A child started as it used to be would run them."""
    subprocess.run([sys.executable, "-m", "copy"], cwd=hostile, capture_output=True)
    assert (hostile.parent / "marks").read_text() == "copy "


def test_a_sweep_runs_none_of_it(hostile: Path) -> None:
    sweep = ["sweep", "--tasks", "gym:Pendulum-v1", "--variants", "sac", *TINY]
    done = fog(hostile, *sweep)
    assert_untouched(hostile)
    assert done.returncode == 0, done.stderr


def test_a_dry_run_measures_without_it(hostile: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor do children of libraries: dm_control's glfw asks `python -c` for its version."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(hostile.parent / "cache"))
    sweep = ["sweep", "--tasks", "cartpole-swingup", "--variants", "sac", *TINY]
    done = fog(hostile, *sweep, "--dry-run")
    assert_untouched(hostile)
    assert done.returncode == 0, done.stderr


def test_doctor_tries_backends_without_it(hostile: Path) -> None:
    done = fog(hostile, "doctor", "--json")
    assert_untouched(hostile)
    assert "foreign" not in done.stdout


def test_a_notebook_imports_none_of_it(hostile: Path) -> None:
    code = (
        "import copy, random, numpy, importlib.util, json, sys\n"
        "found = importlib.util.find_spec('helper') is not None\n"
        "open(out + '.json', 'w').write(json.dumps({'helper': found, 'path': sys.path}))"
    )
    book = write_notebook(hostile.parent / "mine.ipynb", 'out = "figures"', code)
    done = fog(hostile, "figures", "--only", str(book), "--out", "drawn")
    assert_untouched(hostile)
    assert done.returncode == 0, done.stdout + done.stderr
    seen = json.loads((hostile / "drawn.json").read_text())
    assert not seen["helper"]
    assert "" not in seen["path"] and str(hostile) not in seen["path"]


def test_a_page_is_not_made_by_a_template_that_lies_there(hostile: Path) -> None:
    """nbconvert looks for its template `lab` in the working directory, and templates are code."""
    (hostile / "lab").mkdir()
    (hostile / "lab" / "conf.json").write_text('{"mimetypes": {"text/html": true}}')
    code = f"cycler.__init__.__globals__.os.mkdir({str(hostile.parent / 'marks')!r})"
    (hostile / "lab" / "index.html.j2").write_text(f"{{{{ {code} }}}}")
    book = write_notebook(hostile.parent / "mine.ipynb", 'out = "figures"', "print('drawn')")
    done = fog(hostile, "figures", "--only", str(book), "--out", "drawn")
    assert done.returncode == 0, done.stdout + done.stderr
    assert not (hostile.parent / "marks").exists()
    assert "drawn" in (hostile / "drawn" / "mine.html").read_text()


def test_what_reproduce_draws_with_is_not_there(hostile: Path) -> None:
    """The commands after the training: each is a process of its own."""
    code = (
        "import sys; from pathlib import Path; from diagnostics.commands.reproduce import _draw; "
        "sys.exit(_draw(Path('nowhere'), Path('drawn'), 'none'))"
    )
    command = [sys.executable, "-P", "-c", code]
    done = subprocess.run(command, cwd=hostile, capture_output=True, text=True, timeout=300)
    assert_untouched(hostile)
    assert done.returncode == 2 and "nowhere does not exist" in done.stderr, done.stderr


def test_ray_is_not_started_in_the_working_directory(
    hostile: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ray sends its driver's working directory to every worker as a place to import from."""
    seen: list[Path] = []
    ray = SimpleNamespace(init=lambda **_: seen.append(Path.cwd()))
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.chdir(hostile)
    ray_engine._init(None)
    assert seen == [Path("/")] and Path.cwd() == hostile


def test_slurm_starts_python_without_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: dict[str, str] = {}

    class Executor:
        def __init__(self, folder: Path, *, python: str, **_: object) -> None:
            started["python"] = python

        def update_parameters(self, **_: object) -> None:
            pass

    monkeypatch.setitem(sys.modules, "submitit", SimpleNamespace(SlurmExecutor=Executor))
    for name in ("sbatch", "srun", "squeue"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    options = _parse(["--engine", "slurm", "--tasks", "gym:Pendulum-v1", "--memory-per-run", "1"])
    slurm.make(options, jobs_of(tmp_path / "runs", range(1)))
    assert shlex.split(started["python"]) == [sys.executable, "-P"]
    # Its pickles lie where nobody else can put one.
    folder = tmp_path / "runs" / ".slurm"
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o770)
    with pytest.raises(UserError, match=r"cannot hold Slurm's jobs: others can write to it"):
        slurm.make(options, jobs_of(tmp_path / "runs", range(1)))
