"""A disk that is full at any moment of training and exporting, and has room again later."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from tests.attack.lab import Lab
from tests.attack.outcomes import LOST, REFUSED, SURVIVED, Verdict
from tests.attack.reading import differences

Case = tuple[str, Callable[[], Verdict]]
SIZES = (8, 24, 60, 100, 130, 180, 220, 260, 300, 340, 400)
"""In kilobytes: too small for the tables, for the first checkpoint, the second, the third."""


def permitted(lab: Lab) -> bool:
    """Whether a small disk can be mounted here."""
    home = lab.fresh()
    if not _mount(home, 64):
        return False
    _unmount(home)
    return True


def cases(lab: Lab, count: int) -> Iterator[Case]:
    """Training and exporting onto disks of several sizes."""
    every = max(1, len(SIZES) // max(1, count // 2))
    for size in SIZES[::every]:
        yield f"train onto {size} kB", partial(_train, lab, size)
        yield f"export onto {size} kB", partial(_export, lab, size)


def _train(lab: Lab, size: int) -> Verdict:
    home = lab.fresh()
    assert _mount(home, size)
    try:
        config = lab.config(home / "runs")
        command = lab.command(config)
        # The settings lie on the full disk too, where it has no room even for them.
        ended = lab.fork(command)
        if (bad := ended.complaint()) is not None:
            return bad
        verdict: Verdict = (SURVIVED, "") if ended.code == 0 else ended.refusal()
        _resize(home, 1 << 16)
        after = lab.resumed(config)
        if after[0] == REFUSED:
            return LOST, f"cannot go on with more room: {after[1]}"
        return verdict if after[0] == SURVIVED else after
    finally:
        _unmount(home)


def _export(lab: Lab, size: int) -> Verdict:
    home = lab.fresh()
    assert _mount(home, size)
    try:
        command = ["export", "--runs", str(lab.home / "whole"), "--out", str(home / "kept")]
        ended = lab.fork(command)
        if (bad := ended.complaint()) is not None:
            return bad
        verdict: Verdict = (SURVIVED, "") if ended.code == 0 else ended.refusal()
        _resize(home, 1 << 16)
        again = lab.fork(command)
        if again.code:
            return LOST, f"cannot export with more room: {again.err[-200:]}"
        changed, problems = differences(lab.home / "whole", home / "kept")
        return (LOST, f"{changed} {problems}") if changed or problems else verdict
    finally:
        _unmount(home)


def _mount(home: Path, kilobytes: int) -> bool:
    command = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(home)]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


def _resize(home: Path, kilobytes: int) -> None:
    command = ["mount", "-o", f"remount,size={kilobytes}k", str(home)]
    subprocess.run(command, capture_output=True, check=True)


def _unmount(home: Path) -> None:
    subprocess.run(["umount", "--lazy", str(home)], capture_output=True, check=True)
