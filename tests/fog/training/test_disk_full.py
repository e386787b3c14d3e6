"""A disk that fills up at any moment ends a run in one line, and loses nothing that was saved."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fog.records import checkpoint
from fog.settings import config_file
from tests.training import tiny


@pytest.fixture
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    home = tmp_path / "disk"
    home.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={request.param}k", "tmpfs", str(home)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small disk is not permitted here")
    yield home
    subprocess.run(["umount", str(home)], check=True)


# In kilobytes: the tables, the first checkpoint, the second, the third beside two kept ones.
@pytest.mark.slow
@pytest.mark.parametrize("disk", [8, 24, 60, 130, 180, 260, 400, 600], indirect=True)
def test_a_full_disk_is_one_line(disk: Path, tmp_path: Path) -> None:
    config = tiny(disk / "runs", width=16, log_every=10, probes=("dormancy", "sample_counts"))
    path = tmp_path / "config.yaml"
    path.write_text(config_file.to_yaml(config))
    command = [sys.executable, "-m", "fog", "train", "--config", str(path)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert ended.returncode in (1, 2), ended.stderr
    assert "Traceback" not in ended.stderr
    assert "No space left on device" in ended.stderr.splitlines()[-1]
    for home in checkpoint.candidates(disk / "runs/gym-Pendulum-v1/fog/seed0/checkpoint"):
        assert checkpoint.verify(home) is None
