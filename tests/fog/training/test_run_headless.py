"""A run that has lost its config is not started anew over its tables."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import fog
from fog.errors import UserError
from tests.training import tiny


@pytest.mark.parametrize("left", ["evals.csv", "checkpoint"])
def test_a_run_without_its_config_is_kept(tmp_path: Path, left: str) -> None:
    run = fog.train(tiny(tmp_path, steps=60, probes=("none",))).directory
    for path in list(run.iterdir()):
        if path.name not in (left, ".lock"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    for resume in (False, True):
        with pytest.raises(UserError, match=rf"holds {left} of a run, but not its config.yaml"):
            fog.train(tiny(tmp_path, steps=60, probes=("none",)), resume=resume)
    assert {path: path.read_bytes() for path in before} == before
    fog.train(tiny(tmp_path, seed=1, steps=60, probes=("none",)))
