"""A resume over damaged tables is refused, goes back to an older checkpoint, or repairs them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fog
from fog.errors import UserError
from fog.records import checkpoint
from fog.records.run_directory import RunDirectory
from fog.settings.config import Config
from fog.training.trainer import Trainer
from tests.fog.training.test_resume import interrupt
from tests.training import assert_same_run, newest, tiny

SETTINGS: dict[str, Any] = {"probes": ("sample_counts",), "steps": 300, "checkpoint_every": 140}
"""Checkpoints at 140 and, where it is interrupted, at 250; a part at 100, 200 and 300."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fog.train(tiny(tmp_path_factory.mktemp("whole"), **SETTINGS)).directory


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return interrupt(tiny(tmp_path_factory.mktemp("stopped"), **SETTINGS), at=250)


@pytest.fixture
def cut(stopped: Path, tmp_path: Path) -> tuple[Config, Path]:
    """A run that was interrupted at 250, in a place of its own."""
    config = tiny(tmp_path, **SETTINGS)
    run = tmp_path.joinpath(*stopped.parts[-3:])
    shutil.copytree(stopped, run)
    return config, run


def flip(path: Path, at: int) -> None:
    raw = bytearray(path.read_bytes())
    raw[at] ^= 1
    path.write_bytes(raw)


def cut_off(path: Path, length: int) -> None:
    path.write_bytes(path.read_bytes()[:length])


def part(run: Path, step: int) -> Path:
    return run / "probes" / "sample_counts" / f"{step:012d}-00.parquet"


def offset(run: Path, name: str, which: int) -> int:
    home = checkpoint.candidates(run / "checkpoint")[which]
    return checkpoint.load_json(home / "state.json")["tables"][name]["bytes"]


Damage = Callable[[Path], object]

REFUSED: dict[str, tuple[Damage, str]] = {
    "evals deleted": (lambda run: (run / "evals.csv").unlink(), "evals.csv is missing"),
    "train deleted": (lambda run: (run / "train.csv").unlink(), "train.csv is missing"),
    "evals empty": (lambda run: cut_off(run / "evals.csv", 0), "evals.csv is shorter"),
    "events short": (lambda run: cut_off(run / "events.csv", 30), "events.csv is shorter"),
    "evals flipped": (lambda run: flip(run / "evals.csv", 60), "evals.csv is damaged"),
    "header flipped": (lambda run: flip(run / "train.csv", 3), "train.csv is damaged"),
    "first part deleted": (lambda run: part(run, 100).unlink(), "100-00.parquet is missing"),
    "first part cut": (lambda run: cut_off(part(run, 100), 99), "100-00.parquet is shorter"),
    "first part flipped": (lambda run: flip(part(run, 100), 70), "100-00.parquet is damaged"),
    "first footer flipped": (lambda run: flip(part(run, 100), -60), "100-00.parquet is damaged"),
    "foreign part": (
        lambda run: shutil.copy(part(run, 100), part(run, 50)),
        "50-00.parquet was not written by this run",
    ),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_no_checkpoint_continues_is_refused(cut: tuple[Config, Path], kind: str) -> None:
    config, run = cut
    damage, said = REFUSED[kind]
    damage(run)
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    with pytest.raises(UserError, match=said) as refusal:
        fog.train(config, resume=True)
    assert "\n" not in str(refusal.value)
    assert {path: path.read_bytes() for path in before} == before


OLDER: dict[str, tuple[Damage, str]] = {
    "evals short": (
        lambda run: cut_off(run / "evals.csv", offset(run, "evals.csv", 0) - 1),
        "evals.csv is shorter",
    ),
    "late row flipped": (
        lambda run: flip(run / "evals.csv", offset(run, "evals.csv", 0) - 3),
        "evals.csv is damaged",
    ),
    "late part deleted": (lambda run: part(run, 200).unlink(), "200-00.parquet is missing"),
    "late part flipped": (lambda run: flip(part(run, 200), 70), "200-00.parquet is damaged"),
    "late part longer": (
        lambda run: part(run, 200).write_bytes(part(run, 200).read_bytes() + b"0"),
        "200-00.parquet is damaged",
    ),
}


@pytest.mark.parametrize("kind", OLDER)
def test_what_the_older_checkpoint_continues_is_made_again(
    cut: tuple[Config, Path], whole: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    config, run = cut
    damage, said = OLDER[kind]
    damage(run)
    assert fog.train(config, resume=True, quiet=False).status == "finished"
    told = capsys.readouterr().err
    assert any("250 is refused" in line and said in line for line in told.splitlines())
    assert_same_run(whole, run)
    assert_same_parts(whole, run)


EXTRA: dict[str, Damage] = {
    "nothing": lambda run: None,
    "rows": lambda run: (run / "evals.csv").open("a").write("260,1.0,5,,,9\n270,1"),
    "junk": lambda run: (run / "train.csv").open("ab").write(b"\0" * 4096),
    "part": lambda run: shutil.copy(part(run, 200), part(run, 260)),
    "unfinished part": lambda run: part(run, 260).with_suffix(".partial").write_text("x"),
}


@pytest.mark.parametrize("kind", EXTRA)
def test_what_came_after_the_checkpoint_is_forgotten(
    cut: tuple[Config, Path], whole: Path, kind: str
) -> None:
    config, run = cut
    EXTRA[kind](run)
    assert fog.train(config, resume=True).status == "finished"
    assert_same_run(whole, run)
    assert_same_parts(whole, run)


def assert_same_parts(one: Path, other: Path) -> None:
    first, second = (
        {path.relative_to(home): path.read_bytes() for path in (home / "probes").rglob("*.*")}
        for home in (one, other)
    )
    assert first and first == second


def test_tables_are_on_disk_before_a_checkpoint_names_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[str] = []
    fsync = os.fsync

    def note(handle: int) -> None:
        flushed.append(str(Path(f"/proc/self/fd/{handle}").readlink()))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", note)
    run = fog.train(tiny(tmp_path, **SETTINGS)).directory
    seals = [k for k, name in enumerate(flushed) if name.endswith("SEAL.json")]
    assert len(seals) == 3
    for name in ("evals.csv", "train.csv", "events.csv", "probes/sample_counts"):
        assert str(run / name) in flushed[: seals[0]], name
    assert str(part(run, 100)) in flushed[: seals[0]]
    assert str(part(run, 200)) in flushed[seals[0] : seals[1]]


def old_style(run: Path) -> None:
    """Checkpoints as the version before wrote them."""
    for home in checkpoint.candidates(run / "checkpoint"):
        state = checkpoint.load_json(home / "state.json")
        tables = state.pop("tables")
        state["offsets"] = {name: tables[name]["bytes"] for name in tables if "/" not in name}

        def refill(new: Path, old: Path = home, state: dict[str, Any] = state) -> None:
            shutil.copytree(old, new, dirs_exist_ok=True)
            (new / "SEAL.json").unlink()
            checkpoint.save_json(new / "state.json", state)

        checkpoint.write(home.parent, int(home.name), refill)


def test_old_checkpoints_go_on_unverified_and_say_so(
    cut: tuple[Config, Path], whole: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config, run = cut
    old_style(run)
    assert fog.train(config, resume=True, quiet=False).status == "finished"
    assert "its tables could not be verified" in capsys.readouterr().err
    assert_same_run(whole, run)
    assert_same_parts(whole, run)
    assert len(checkpoint.load_json(newest(run) / "state.json")["tables"]) > 3


def test_old_checkpoints_see_what_is_short_or_missing(cut: tuple[Config, Path]) -> None:
    config, run = cut
    old_style(run)
    cut_off(run / "events.csv", 30)
    with pytest.raises(UserError, match=r"events.csv is shorter"):
        fog.train(config, resume=True)
    (run / "events.csv").unlink()
    with pytest.raises(UserError, match=r"events.csv is missing"):
        fog.train(config, resume=True)


def test_loading_an_agent_says_that_it_is_an_older_one(cut: tuple[Config, Path]) -> None:
    _, run = cut
    flip(newest(run) / "agent.pt", 2000)
    with pytest.warns(UserWarning, match=r"250 is refused: agent.pt .* 000000000140 is loaded"):
        agent = fog.load_agent(run)
    assert agent.total_updates == 100


def test_a_table_removed_while_training_is_not_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = Trainer._step

    def step_and_remove(trainer: Trainer) -> None:
        step(trainer)
        if trainer.progress.env_step == 200:
            trainer.directory.evals_path.unlink()

    monkeypatch.setattr(Trainer, "_step", step_and_remove)
    config = tiny(tmp_path, **SETTINGS)
    with pytest.raises(UserError, match=r"evals.csv was removed"):
        fog.train(config)
    assert (
        RunDirectory(
            newest(tmp_path.joinpath("gym-Pendulum-v1", "fog", "seed0")).parents[1]
        ).manifest()["status"]
        == "failed"
    )


def test_a_folder_in_the_place_of_a_later_part_is_refused(cut: tuple[Config, Path]) -> None:
    config, run = cut
    part = sorted((run / "probes").glob("*/*.parquet"))[-1]
    later = part.with_name("000000099999-00.parquet")
    later.mkdir()
    (later / "mine.txt").touch()
    with pytest.raises(UserError, match="is a folder where a run writes a file: move it away"):
        fog.train(config, resume=True)
    assert (later / "mine.txt").exists()
