from __future__ import annotations

import json
import resource
from pathlib import Path

import pytest
import torch

from fog.errors import UserError
from fog.records import checkpoint


def fill(home: Path) -> None:
    checkpoint.save_tensors(home / "agent.pt", {"w": torch.arange(4.0)})
    (home / "deep").mkdir()
    checkpoint.save_json(home / "deep" / "state.json", {"a": [1, 2]})


def test_only_whole_checkpoints_appear_and_two_are_kept(tmp_path: Path) -> None:
    for step in (10, 20, 30):
        checkpoint.write(tmp_path, step, fill)
    assert [int(path.name) for path in checkpoint.candidates(tmp_path)] == [30, 20]

    def fail(home: Path) -> None:
        fill(home)
        raise OSError(28, "No space left on device")

    with pytest.raises(UserError, match="No space left on device"):
        checkpoint.write(tmp_path, 40, fail)
    assert [int(path.name) for path in checkpoint.candidates(tmp_path)] == [30, 20]
    assert not list(tmp_path.glob("partial-*"))


def test_a_full_disk_inside_of_torchs_writer_is_one_line(tmp_path: Path) -> None:
    """A limit on the size of files ends a write midway, as a full disk does."""

    def fill_up(home: Path) -> None:
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, before[1]))
        try:
            checkpoint.save_tensors(home / "agent.pt", {"w": torch.zeros(100_000)})
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)

    with pytest.raises(UserError, match=r"cannot write checkpoint .*File too large"):
        checkpoint.write(tmp_path, 10, fill_up)
    assert list(tmp_path.iterdir()) == []


def test_a_fault_while_saving_leaves_nothing_behind(tmp_path: Path) -> None:
    def fault(home: Path) -> None:
        fill(home)
        raise RuntimeError("not about the disk")

    with pytest.raises(RuntimeError, match="not about the disk"):
        checkpoint.write(tmp_path, 40, fault)
    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_of_the_same_step_is_replaced_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = checkpoint.write(tmp_path, 10, fill)
    (home / "old").touch()
    rename = Path.rename

    def fail(path: Path, target: Path) -> Path:
        if target == home and path.name == f"partial-{10:012d}":
            raise OSError(5, "Input/output error")
        return rename(path, target)

    with monkeypatch.context() as patch, pytest.raises(UserError, match="Input/output error"):
        patch.setattr(Path, "rename", fail)
        checkpoint.write(tmp_path, 10, fill)
    assert (home / "old").exists() and checkpoint.verify(home) is None
    checkpoint.write(tmp_path, 10, fill)
    assert not (home / "old").exists() and checkpoint.verify(home) is None
    assert list(tmp_path.iterdir()) == [home]


def test_other_folders_beside_checkpoints_are_left_alone(tmp_path: Path) -> None:
    mine = [tmp_path / name for name in ("0", "20261118", "000000000010.kept")]
    for folder in mine:
        folder.mkdir()
    for step in (10, 20, 30):
        home = checkpoint.write(tmp_path, step, fill)
    checkpoint.forget_newer(home)
    assert all(folder.is_dir() for folder in mine)
    assert [int(path.name) for path in checkpoint.candidates(tmp_path)] == [30, 20]


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda home: (home / "SEAL.json").unlink(), "seal is missing"),
        (lambda home: (home / "SEAL.json").write_text("{"), "seal is missing or damaged"),
        (lambda home: (home / "agent.pt").unlink(), "agent.pt is missing"),
        (lambda home: (home / "deep" / "state.json").write_text("{}"), "is truncated"),
        (lambda home: (home / "deep" / "state.json").write_text('{"a": [1, 3]}'), "is damaged"),
    ],
)
def test_damage_is_seen_and_the_one_before_is_used(tmp_path: Path, damage, said: str) -> None:
    good, bad = (checkpoint.write(tmp_path, step, fill) for step in (10, 20))
    damage(bad)
    told: list[str] = []
    assert checkpoint.newest_valid(tmp_path, told.append) == good
    assert len(told) == 1 and said in told[0]


def test_another_format_is_refused_by_number(tmp_path: Path) -> None:
    home = checkpoint.write(tmp_path, 10, fill)
    seal = json.loads((home / "SEAL.json").read_text())
    (home / "SEAL.json").write_text(json.dumps(seal | {"format": 99}))
    with pytest.raises(UserError, match="no usable checkpoint"):
        checkpoint.newest_valid(tmp_path, lambda line: None)
    assert checkpoint.verify(home) == "it has format 99, this version reads 1"


def test_loading_runs_no_code(tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> tuple:
            return (Path.touch, (tmp_path / "ran",))

    torch.save({"w": Evil()}, tmp_path / "agent.pt")
    with pytest.raises(Exception, match=r"(?i)weights.only"):
        checkpoint.load_tensors(tmp_path / "agent.pt")
    assert not (tmp_path / "ran").exists()
