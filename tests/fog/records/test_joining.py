"""Joined at the end of a run: nothing is lost at any moment, and it can be taken back exactly."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import fog
from diagnostics.runs import probe_tables
from diagnostics.runs.integrity import Record
from fog.errors import UserError
from fog.records import joining
from fog.records.ledger import JOINED, Ledger, fingerprint
from fog.records.run_directory import RunDirectory
from fog.records.tables import ProbeTable
from tests.training import assert_same_run, newest, tiny


class KilledError(BaseException):
    """Stands for kill -9: nothing catches it."""


@pytest.fixture
def run(tmp_path: Path) -> tuple[Path, Ledger]:
    """A run directory with two tables of some parts."""
    ledger = Ledger(tmp_path)
    random = np.random.default_rng(0)
    for name, steps in (("scores", 5), ("losses", 3)):
        table = ProbeTable(tmp_path / "probes", name, ledger)
        for step in range(10, 10 + steps):
            columns = {
                "layer": ["a", "b"],
                "neurons": random.normal(size=(2, 3)).astype(np.float32),
                "mean": random.normal(size=2),
            }
            table.write(step, columns)
    return tmp_path, ledger


def files(run: Path) -> dict[str, bytes]:
    found = sorted((run / "probes").glob("*/*"))
    return {path.relative_to(run).as_posix(): path.read_bytes() for path in found}


def rows(run: Path) -> dict[str, Any]:
    """What the analysis reads."""
    return {
        name: (probe_tables.read(run, name, Record())[0] or pytest.fail(name)).to_pydict()
        for name in ("scores", "losses")
    }


def kill_at(patch: pytest.MonkeyPatch, moment: int) -> list[str]:
    """Let the process die at its so many-th change of the disk."""
    done: list[str] = []

    def counted(change: Callable[..., Any], name: str) -> Callable[..., Any]:
        def at_this_moment(*args: Any, **kwargs: Any) -> Any:
            if len(done) == moment:
                raise KilledError
            done.append(name)
            return change(*args, **kwargs)

        return at_this_moment

    for home, name in ((Path, "unlink"), (Path, "replace"), (os, "fsync")):
        patch.setattr(home, name, counted(getattr(home, name), name))
    return done


def test_one_file_for_each_table_with_the_same_rows(run: tuple[Path, Ledger]) -> None:
    home, ledger = run
    before = rows(home)
    record = joining.join(home, ledger.files)
    assert set(files(home)) == {f"probes/{name}/{JOINED}" for name in ("losses", "scores")}
    assert rows(home) == before
    for name, known in record.items():
        assert fingerprint(home / name, 1 << 30) == {k: known[k] for k in ("bytes", "crc32")}
        raw = (home / name).read_bytes()
        assert sum(length for _, length, _ in known["groups"]) == len(raw)


def test_taken_apart_the_parts_are_the_same_bits(run: tuple[Path, Ledger]) -> None:
    home, ledger = run
    before = files(home)
    joining.join(home, ledger.files)
    joining.split(home)
    assert files(home) == before


@pytest.mark.parametrize("size", [1, 1 << 22])
def test_killed_at_any_moment_of_joining(
    run: tuple[Path, Ledger], monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    home, ledger = run
    monkeypatch.setattr(joining, "GROUP_BYTES", size)
    whole, before = rows(home), files(home)
    kills = 0
    while True:
        with pytest.MonkeyPatch.context() as patch:
            done = kill_at(patch, kills)
            try:
                joining.join(home, ledger.files)
            except KilledError:
                kills += 1
            else:
                break
        assert rows(home) == whole, done
        joining.split(home)
        assert files(home) == before, done
    assert kills > 12
    assert rows(home) == whole


def test_killed_at_any_moment_of_taking_apart(run: tuple[Path, Ledger]) -> None:
    home, ledger = run
    whole, before = rows(home), files(home)
    kills = 0
    while True:
        joining.join(home, ledger.files)
        with pytest.MonkeyPatch.context() as patch:
            done = kill_at(patch, kills)
            try:
                joining.split(home)
            except KilledError:
                kills += 1
            else:
                break
        assert rows(home) == whole, done
        joining.split(home)
        assert files(home) == before, done
    assert kills > 12


def test_what_does_not_fit_together_or_was_changed_stays_in_parts(
    run: tuple[Path, Ledger],
) -> None:
    home, ledger = run
    ProbeTable(home / "probes", "losses", ledger).write(99, {"layer": [1]})
    damaged = sorted((home / "probes" / "scores").iterdir())[1]
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"x")
    before = files(home)
    record = joining.join(home, ledger.files)
    assert files(home) == before
    assert record == ledger.files


def test_parts_of_another_pyarrow_stay_as_they_are(run: tuple[Path, Ledger]) -> None:
    """They could not be made again bit for bit, and the checkpoint knows their checksums."""
    home, ledger = run
    part = sorted((home / "probes" / "scores").iterdir())[2]
    pq.write_table(pq.read_table(part), part, compression="snappy")
    ledger.files[part.relative_to(home).as_posix()] = fingerprint(part, 1 << 30)
    assert len(joining.join(home, ledger.files)) == 5 + 1
    assert len(list((home / "probes" / "scores").iterdir())) == 5


def test_a_disk_without_room_keeps_the_parts(
    run: tuple[Path, Ledger], monkeypatch: pytest.MonkeyPatch
) -> None:
    home, ledger = run
    before = files(home)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(joining._Sink, "write", full)
    assert joining.join(home, ledger.files) == ledger.files
    assert files(home) == before


def test_names_of_foreign_joined_files_lead_nowhere(run: tuple[Path, Ledger]) -> None:
    home, ledger = run
    joining.join(home, ledger.files)
    joined = home / "probes" / "scores" / JOINED
    table = pq.read_table(joined)
    listed = f'[["../../../evil.parquet", {len(table)}]]'
    pq.write_table(table.replace_schema_metadata({joining.PARTS_KEY: listed}), joined)
    joining.split(home)
    assert joined.exists()
    assert not list(home.parent.rglob("evil*"))


# Whole runs

SETTINGS: dict[str, Any] = {"probes": ("sample_counts", "dormancy"), "checkpoint_every": 140}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fog.train(tiny(tmp_path_factory.mktemp("finished"), **SETTINGS)).directory


def again(finished: Path, tmp_path: Path) -> Path:
    """A copy of the run that was killed before it could say that it has finished."""
    run = tmp_path.joinpath(*finished.parts[-3:])
    shutil.copytree(finished, run)
    RunDirectory(run).update_manifest(status="running", files=None)
    return run


def assert_same_tables(one: Path, other: Path) -> None:
    assert files(one) and files(one) == files(other)


def test_a_finished_run_is_joined_and_recorded(finished: Path) -> None:
    names = {path.name for path in (finished / "probes").glob("*/*")}
    assert names == {JOINED}
    record = RunDirectory(finished).manifest()["files"]
    on_disk = {*files(finished), "evals.csv", "train.csv", "events.csv", "config.yaml"}
    assert set(record) == on_disk
    for name, known in record.items():
        found = fingerprint(finished / name, 1 << 30)
        assert found == {key: known[key] for key in ("bytes", "crc32")}, name


@pytest.mark.parametrize("back", [0, 1])
def test_it_goes_on_from_any_of_its_checkpoints(finished: Path, tmp_path: Path, back: int) -> None:
    run = again(finished, tmp_path)
    for _ in range(back):
        shutil.rmtree(newest(run))
    assert fog.train(tiny(tmp_path, **SETTINGS), resume=True).status == "finished"
    assert_same_run(finished, run)
    assert_same_tables(finished, run)


def test_without_a_checkpoint_it_starts_over(finished: Path, tmp_path: Path) -> None:
    run = again(finished, tmp_path)
    shutil.rmtree(run / "checkpoint")
    (run / "probes" / "dormancy" / JOINED).write_bytes(b"junk")
    assert fog.train(tiny(tmp_path, **SETTINGS), resume=True).status == "finished"
    assert_same_tables(finished, run)


@pytest.mark.parametrize("at", [300, -20])
def test_a_damaged_joined_table_is_refused_by_name(finished: Path, tmp_path: Path, at: int) -> None:
    run = again(finished, tmp_path)
    path = run / "probes" / "dormancy" / JOINED
    raw = bytearray(path.read_bytes())
    raw[at] ^= 1
    path.write_bytes(raw)
    with pytest.raises(UserError, match=r"probes/dormancy/\d+-00.parquet is missing and cannot"):
        fog.train(tiny(tmp_path, **SETTINGS), resume=True)
    assert path.read_bytes() == raw
