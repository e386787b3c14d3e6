"""kill -9 at chosen changes of the disk and at random moments, then go on."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from tests.attack.lab import Lab, clear
from tests.attack.outcomes import LOST, REFUSED, SURVIVED, WRONG, Verdict
from tests.attack.reading import differences

Case = tuple[str, Callable[[], Verdict]]


def injected(lab: Lab, count: int) -> Iterator[Case]:
    """Kills before changes of the run directory, spread over a run; every third is killed again."""
    moments = sorted(lab.random.sample(range(lab.changes), min(count, lab.changes)))
    # The last changes are those of joining: all of them, where an even spread has few.
    tail = range(max(0, lab.changes - count // 3), lab.changes)
    for number, moment in enumerate(sorted({*moments[:: 3 if count > 30 else 2], *tail})):
        second = lab.random.randrange(lab.changes // 2) if number % 3 == 0 else None
        yield f"change {moment}, then {second}", partial(_killed, lab, moment, None, second)


def at_random(lab: Lab, count: int) -> Iterator[Case]:
    """Kills by the clock, in the middle of whatever is being written."""
    began = time.monotonic()
    lab.train(lab.config(f"timed{count}"))
    length = time.monotonic() - began
    for _ in range(count):
        seconds = lab.random.uniform(0.0, length)
        yield f"after {seconds:.2f} s", partial(_killed, lab, None, seconds, None)


def _killed(lab: Lab, moment: int | None, seconds: float | None, second: int | None) -> Verdict:
    home = lab.fresh()
    config = lab.config(home / "runs")
    watch = home / "runs"
    lab.fork(lab.command(config), kill_at=moment, kill_after=seconds, watch=watch)
    if second is not None and any(watch.rglob("config.yaml")):
        lab.fork(lab.command(config, "--resume"), kill_at=second, watch=watch)
    outcome, detail = lab.resumed(config)
    clear(home)
    # Whoever is only killed must always be able to go on.
    return (LOST, detail) if outcome == REFUSED else (outcome, detail)


def exporting(lab: Lab, count: int) -> Iterator[Case]:
    """Kills while runs are exported: the source and the earlier copy stay, a new export mends."""
    told = lab.home / "export_changes"
    out = lab.fresh() / "kept"
    lab.fork(_export(lab, out), watch=out, count_into=told)
    changes = int(told.read_text())
    for moment in sorted(lab.random.sample(range(changes), min(count, changes))):
        yield f"change {moment}", partial(_killed_export, lab, out, moment)


def _export(lab: Lab, out: Path) -> list[str]:
    return ["export", "--runs", str(lab.home / "whole"), "--out", str(out)]


def _killed_export(lab: Lab, good: Path, moment: int) -> Verdict:
    out = lab.fresh() / "kept"
    if moment % 2:
        shutil.copytree(good, out)
    lab.fork(_export(lab, out), kill_at=moment, watch=out)
    if moment % 2:
        # Between two renames the earlier copy lies beside its place; the next export puts it back.
        for hidden in out.rglob(".seed*.earlier"):
            if not (place := hidden.with_name(hidden.name[1:].removesuffix(".earlier"))).exists():
                shutil.copytree(hidden, place)
        if differences(good, out)[0]:
            return LOST, "an earlier copy is not whole after a killed export"
        clear(out)
        shutil.copytree(good, out)
        lab.fork(_export(lab, out), kill_at=moment, watch=out)
    ended = lab.fork(_export(lab, out))
    if (bad := ended.complaint()) is not None:
        return bad
    if ended.code:
        return ended.refusal()
    changed, problems = differences(good, out)
    clear(out.parent)
    if changed or problems:
        return WRONG, f"the export differs: {changed} {problems}"
    return SURVIVED, ""
