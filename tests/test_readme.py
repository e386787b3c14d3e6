"""The README's commands run one after the other, each into its own place."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.readme import BLOCK, ROOT, SMALLER, clone, commands

README = (ROOT / "README.md").read_text()


@pytest.mark.slow
def test_the_first_hour(tmp_path: Path) -> None:
    """All commands at a small size, in order, where the clone's folder has nothing else."""
    clone(tmp_path)
    made: list[str] = []
    for told, command in commands(small=True):
        before = places(tmp_path)
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, f"{told}\n{done.stdout}\n{done.stderr}"
        assert done.stdout or done.stderr, f"{told} says nothing"
        new = places(tmp_path) - before
        assert len(new) <= 1, f"{told} wrote into {new}"
        made += new
    assert made == ["first", "sweep", "figures", "report.html", "tables", "python"]
    assert {path.name for path in tmp_path.iterdir()} == {".venv", "results", "runs"}
    for page in ("figures/motivating_example.html", "report.html"):
        assert f"runs/{page}" in README
        assert (tmp_path / "runs" / page).stat().st_size > 10_000


def places(folder: Path) -> set[str]:
    runs = folder / "runs"
    return {path.name for path in runs.iterdir()} if runs.exists() else set()


def test_every_replacement_is_needed_and_make_targets_exist() -> None:
    assert all(usual in README for usual in SMALLER)
    makefile = (ROOT / "Makefile").read_text()
    blocks = "".join(text for _, text in BLOCK.findall(README))
    targets = re.findall(r"^make ([a-z]+)", blocks, re.MULTILINE)
    assert targets == ["reproduce", "test", "install"]
    assert all(f"\n{target}: " in makefile for target in targets)


def test_every_command_says_what_to_look_at() -> None:
    for language, block in BLOCK.findall(README):
        if language != "bash":
            continue
        lines = block.splitlines()
        for before, line in zip(["", *lines], lines, strict=False):
            if line.startswith(".venv/bin/fog") and "--device cuda" not in line:
                told = line.partition(" # ")[2] or before
                assert re.match(r"(# )?[A-Z]", told.strip()), line
