"""The copies of the metrics: what TensorBoard shows and what W&B is told."""

from __future__ import annotations

import json
import shutil
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

import fog
from fog.records.loggers import TensorBoard
from fog.records.run_directory import RunDirectory
from tests.training import newest, tiny


class FakeWandb:
    """Stands in for the package: remembers what it was asked to do."""

    def __init__(self) -> None:
        self.begun: list[dict[str, Any]] = []
        self.rows: list[dict[str, float]] = []
        self.finished = 0

    def init(self, **options: Any) -> SimpleNamespace:
        self.begun.append(options)
        return SimpleNamespace(log=self._log, finish=self._finish)

    def _log(self, row: dict[str, float], step: int) -> None:
        assert step == len(self.rows)  # W&B drops rows that do not go on from the last
        self.rows.append(row)

    def _finish(self) -> None:
        self.finished += 1


@pytest.fixture
def wandb(monkeypatch: pytest.MonkeyPatch) -> FakeWandb:
    fake = FakeWandb()
    monkeypatch.setitem(sys.modules, "wandb", fake)
    monkeypatch.delenv("WANDB_MODE", raising=False)
    return fake


def test_wandb_is_told_the_rows_of_both_tables(tmp_path: Path, wandb: FakeWandb) -> None:
    config = tiny(tmp_path, wandb="project")
    run = fog.train(config)
    (begun,) = wandb.begun
    assert begun["project"] == "project"
    assert begun["name"] == "gym:Pendulum-v1/fog/seed0"
    assert begun["mode"] == "offline"
    assert begun["dir"] == str(run.directory)
    assert begun["config"] == config.flat()
    assert wandb.finished == 1
    evals, train = (pd.read_csv(run.directory / name) for name in ("evals.csv", "train.csv"))
    told = [row for row in wandb.rows if "eval/return" in row]
    assert [(row["env_step"], row["eval/return"]) for row in told] == list(
        zip(evals["env_step"], evals["return"], strict=True)
    )
    told = [row for row in wandb.rows if "train/updates" in row]
    assert [row["env_step"] for row in told] == list(train["env_step"])
    for name in ("updates", "depth", "critic_loss", "temperature"):
        assert [row[f"train/{name}"] for row in told] == list(train[name])
    # Empty cells, such as a success rate the task does not have, are left out.
    assert all(isinstance(value, int | float) for row in wandb.rows for value in row.values())
    assert len(wandb.rows) == len(evals) + len(train)


def test_wandb_goes_on_with_the_same_run(
    tmp_path: Path, wandb: FakeWandb, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tiny(tmp_path, wandb="project")
    run = fog.train(config)
    told = len(wandb.rows)
    # Killed after its last rows: the checkpoint before them is the newest.
    shutil.rmtree(newest(run.directory))
    RunDirectory(run.directory).update_manifest(status="running", files=None)
    monkeypatch.setenv("WANDB_MODE", "online")
    assert fog.train(config, resume=True).status == "finished"
    assert len(wandb.rows) == told
    first, second = wandb.begun
    assert first["id"] == second["id"] and "/" not in first["id"]
    assert second["resume"] == "allow"
    assert second["mode"] == "online"


def wandb_records(file: Path) -> Iterator[bytes]:
    """The records of a .wandb file: a log of LevelDB, in blocks, behind a header of 7 bytes."""
    data, at, whole = file.read_bytes(), 7, b""
    while at + 7 <= len(data):
        left = 32768 - at % 32768
        if left < 7:
            at += left
            continue
        length, kind = struct.unpack_from("<HB", data, at + 4)
        whole += data[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # complete, or the last piece
            yield whole
            whole = b""


def test_a_run_that_w_and_b_takes_down_offline_has_no_row_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the package itself, where it is installed: `pip install wandb`."""
    pytest.importorskip("wandb")
    from wandb.proto.wandb_internal_pb2 import Record

    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    config = tiny(tmp_path, wandb="project")
    run = fog.train(config)
    shutil.rmtree(newest(run.directory))
    RunDirectory(run.directory).update_manifest(status="running", files=None)
    assert fog.train(config, resume=True).status == "finished"
    rows: list[dict[str, Any]] = []
    for file in sorted(run.directory.glob("wandb/offline-run-*/*.wandb")):
        for data in wandb_records(file):
            record = Record()
            record.ParseFromString(data)
            if record.WhichOneof("record_type") == "history":
                items = record.history.item
                row = {at.key or at.nested_key[0]: json.loads(at.value_json) for at in items}
                rows.append(row)
    tables = [pd.read_csv(run.directory / name) for name in ("evals.csv", "train.csv")]
    assert [row["_step"] for row in rows] == list(range(sum(map(len, tables))))
    told = [row["env_step"] for row in rows if "eval/return" in row]
    assert told == list(tables[0]["env_step"])


@pytest.mark.parametrize(("resumed_at", "kept"), [(0, [10]), (10, [10, 20])])
def test_tensorboard_forgets_what_a_run_forgets(
    tmp_path: Path, resumed_at: int, kept: list[int]
) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    first = TensorBoard(tmp_path, 0)
    for step in (10, 20, 30):
        first.log("eval", step, {"return": 1.0})
    first.close()
    second = TensorBoard(tmp_path, resumed_at)
    second.log("eval", resumed_at + 10, {"return": 2.0})
    second.close()
    events = EventAccumulator(str(tmp_path))
    events.Reload()
    assert [event.step for event in events.Scalars("eval/return")] == kept
    assert events.Scalars("eval/return")[-1].value == 2.0
