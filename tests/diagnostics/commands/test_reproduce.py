"""`fog reproduce` is a sweep on this machine, and then figures."""

from __future__ import annotations

from pathlib import Path

import pytest

from diagnostics.commands import reproduce
from diagnostics.studies.motivating_example import STUDY
from fog.errors import UserError
from fog.sweep import planfile, sweep
from tests.fog.sweep.scripted import Scripted, crash, interrupt_us


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Scripted:
    scripted = Scripted({})
    monkeypatch.setattr(sweep, "POLL_SECONDS", 0.001)
    monkeypatch.setattr(reproduce, "LocalEngine", lambda slots: scripted)
    return scripted


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    folders: list[Path] = []

    def draw(runs: Path, figures: Path) -> int:
        folders.append(runs)
        return 0

    monkeypatch.setattr(reproduce, "_draw", draw)
    return folders


def test_five_variants_are_trained_and_then_drawn(
    tmp_path: Path, engine: Scripted, drawn: list[Path]
) -> None:
    assert reproduce.command(["--out", str(tmp_path), "--seeds", "2"]) == 0
    assert sum(map(len, engine.submitted)) == 10
    assert {path.name for path in (tmp_path / "cartpole-swingup").iterdir()} == set(STUDY.variants)
    assert drawn == [tmp_path]
    # A second call finds all of them finished.
    assert reproduce.command(["--out", str(tmp_path), "--seeds", "2"]) == 0
    assert sum(map(len, engine.submitted)) == 10


def test_nothing_is_drawn_from_half_of_the_runs(
    tmp_path: Path,
    engine: Scripted,
    drawn: list[Path],
    capsys: pytest.CaptureFixture[str],
) -> None:
    engine.script = {0: [crash(1, log="ValueError: no such luck")]}
    assert reproduce.command(["--out", str(tmp_path)]) == 1
    assert "expanded-sac seed0: ValueError: no such luck" in capsys.readouterr().err
    engine.script = {0: [interrupt_us]}
    assert reproduce.command(["--out", str(tmp_path)]) == 130
    assert drawn == []
    engine.script = {}
    assert reproduce.command(["--out", str(tmp_path)]) == 0
    assert drawn == [tmp_path]


def test_it_runs_what_the_miniature_plan_describes() -> None:
    plan = planfile.read(Path("miniature/motivating_example"))
    planned = {job.label: job.config for job in plan.jobs({"out": "runs/reproduce"})}
    assert {job.label: job.config for job in reproduce.jobs_of([])} == planned


@pytest.mark.parametrize("flag", ["--seeds", "--jobs"])
def test_none_of_them_is_a_mistake(flag: str) -> None:
    with pytest.raises(UserError, match=f"{flag}: at least one, got 0"):
        reproduce.command([flag, "0"])
