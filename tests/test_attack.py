"""A tiny `make attack`, and whether it would find anything."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def run(*words: str) -> subprocess.CompletedProcess[str]:
    # Apart, because the attack forks, and this process may have threads.
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, *words], cwd=ROOT, env=environment, capture_output=True, text=True
    )


def test_a_few_of_some_kinds() -> None:
    kinds = ["kill an export", "damage and load an agent", "fuzz config"]
    done = run("-m", "tests.attack", "--quick", "--only", *kinds)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert lines[-1].startswith("| **all** |")
    tried, *_, lost, wrong, traceback, _ = map(int, lines[-1].split("|")[2:-1])
    assert tried > 10 and lost == wrong == traceback == 0


BLIND = """
import sys, tempfile
from pathlib import Path
from diagnostics.runs.integrity import Record
from tests.attack import damage, outcomes
from tests.attack.lab import Lab

with tempfile.TemporaryDirectory() as scratch:
    lab = Lab(Path(scratch))
    seen = damage._analysed(lab, "evals.csv", "of another run")
    assert seen[0] == outcomes.REFUSED, seen
    Record.whole = lambda self, name, raw: True
    Record.check = lambda self, run: []
    missed = damage._analysed(lab, "evals.csv", "of another run")
    assert missed[0] == outcomes.WRONG, missed
    tally = outcomes.run("blind", [("", lambda: missed)])
    assert outcomes.failed([tally]) and "silently wrong" in tally.findings[0]
"""


def test_an_analysis_that_does_not_look_is_found_out() -> None:
    done = run("-c", BLIND)
    assert done.returncode == 0, done.stderr
