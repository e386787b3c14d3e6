"""Readers that leave, streams that are closed, output on a full disk."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial

from tests.attack.lab import Ended, Lab, clear, run_of, same
from tests.attack.outcomes import SURVIVED, WRONG, Verdict

Case = tuple[str, Callable[[], Verdict]]

REDIRECTIONS = {
    "| head -1": "{} | head -1 > /dev/null; exit ${{PIPESTATUS[0]}}",
    "2>&1 | true": "{} 2>&1 | true; exit ${{PIPESTATUS[0]}}",
    ">&-": "{} >&-",
    "2>&-": "{} 2>&-",
    ">&- 2>&- <&-": "{} >&- 2>&- <&-",
    "> /dev/full": "{} > /dev/full",
    "2> /dev/full": "{} 2> /dev/full",
}
_FULL = "> /dev/full"
"""The only one that loses what was asked for: a listing then says so, with exit code 2."""


def cases(lab: Lab, count: int) -> Iterator[Case]:
    """Every command with every redirection, the first `count` of a shuffled list."""
    found = [(how, what) for how in REDIRECTIONS for what in ("train", "compare", "tasks", "sweep")]
    lab.random.shuffle(found)
    for how, what in found[:count]:
        yield f"fog {what} {how}", partial(_attempt, lab, how, what)


def _attempt(lab: Lab, how: str, what: str) -> Verdict:
    home = lab.fresh()
    whole = str(lab.home / "whole")
    words = {
        "train": lab.command(lab.config(home / "runs")),
        "compare": ["compare", "--runs", whole],
        "tasks": ["tasks"],
        "sweep": ["sweep", "--tasks", "gym:Pendulum-v1", "--list"],
    }[what]
    line = shlex.join([sys.executable, "-P", "-m", "fog", *words])
    command = ["bash", "-c", REDIRECTIONS[how].format(line)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    ended = Ended(done.returncode, done.stdout, done.stderr)
    if (bad := ended.complaint()) is not None:
        return bad
    if what == "train":
        verdict = same(lab.whole, run_of(home / "runs"))
        clear(home)
        expected = {0}
    else:
        verdict = SURVIVED, ""
        expected = {2} if how == _FULL else {0}
    if ended.code not in expected:
        return WRONG, f"exit code {ended.code}, not {expected}: {ended.err[-200:]}"
    return ended.refusal() if ended.code == 2 else verdict
