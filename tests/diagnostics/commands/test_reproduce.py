"""`fog reproduce` is a sweep on this machine, and then figures."""

from __future__ import annotations

from pathlib import Path

import pytest

from diagnostics.commands import reproduce
from diagnostics.studies.priming import DEMONSTRATION
from fog.errors import UserError
from fog.sweep import planfile, sweep
from tests.diagnostics import recorded
from tests.fog.sweep.scripted import Scripted, crash, interrupt_us

ROOT = Path(__file__).parents[3]


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Scripted:
    scripted = Scripted({})
    monkeypatch.setattr(sweep, "POLL_SECONDS", 0.001)
    monkeypatch.setattr(reproduce, "LocalEngine", lambda slots: scripted)
    return scripted


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    folders: list[Path] = []

    def draw(runs: Path, figures: Path, card: str) -> int:
        assert card == "primed/HalfCheetah-v4/plain-sac/seed0"
        folders.append(runs)
        return 0

    monkeypatch.setattr(reproduce, "_draw", draw)
    monkeypatch.setattr(reproduce, "seen", lambda out: [])
    return folders


def test_four_agents_are_trained_and_then_drawn(
    tmp_path: Path, engine: Scripted, drawn: list[Path]
) -> None:
    assert reproduce.command(["--out", str(tmp_path), "--seeds", "2"]) == 0
    assert sum(map(len, engine.submitted)) == 8
    primed = tmp_path / "primed" / "HalfCheetah-v4"
    trained = {path.name for path in primed.iterdir()}
    assert trained == {"plain-sac", "plain-sac-early-reset", "norm-sac"}
    assert (tmp_path / "unprimed" / "HalfCheetah-v4" / "plain-sac").is_dir()
    assert drawn == [tmp_path]
    # A second call finds all of them finished.
    assert reproduce.command(["--out", str(tmp_path), "--seeds", "2"]) == 0
    assert sum(map(len, engine.submitted)) == 8


def test_its_last_lines_say_what_was_seen(tmp_path: Path) -> None:
    for folder, variant, settings in DEMONSTRATION.values():
        dose = settings["priming_updates"]
        run = recorded.copy(tmp_path / folder, "sac", task="HalfCheetah-v4", priming_updates=dose)
        config = (run / "config.yaml").read_text()
        (run / "config.yaml").write_text(config.replace("variant: sac", f"variant: {variant}"))
        run.parent.rename(run.parent.with_name(variant))
    lines = list(reproduce.seen(tmp_path))
    assert [line.split(":")[0] for line in lines[1:5]] == list(DEMONSTRATION)
    assert all("of primacy bias" in line for line in lines[1:5])
    assert "last fifth of training" in lines[5] and "One seed each" in lines[6]


def test_nothing_is_drawn_from_half_of_the_runs(
    tmp_path: Path,
    engine: Scripted,
    drawn: list[Path],
    capsys: pytest.CaptureFixture[str],
) -> None:
    engine.script = {0: [crash(1, log="ValueError: no such luck")]}
    assert reproduce.command(["--out", str(tmp_path)]) == 1
    assert "seed0: ValueError: no such luck" in capsys.readouterr().err
    engine.script = {0: [interrupt_us]}
    assert reproduce.command(["--out", str(tmp_path)]) == 130
    assert drawn == []
    engine.script = {}
    assert reproduce.command(["--out", str(tmp_path)]) == 0
    assert drawn == [tmp_path]


def test_it_runs_what_the_miniature_plan_describes() -> None:
    plan = planfile.read(ROOT / "results" / "priming" / "reproduce.yaml")
    planned = [job.config for job in plan.jobs({})]
    ours = [job.config for job in reproduce.jobs_of([])]
    assert ours == planned


@pytest.mark.parametrize("flag", ["--seeds", "--jobs"])
def test_none_of_them_is_a_mistake(flag: str) -> None:
    with pytest.raises(UserError, match=f"{flag}: at least one, got 0"):
        reproduce.command([flag, "0"])
