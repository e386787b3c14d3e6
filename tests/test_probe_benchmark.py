"""The benchmark of probes: what it calls the memory that a probe adds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "probes.py"

MEASURED = f"""
import runpy
import numpy as np
memory_added = runpy.run_path({str(SCRIPT)!r})["memory_added"]
# A larger peak than the one to be measured, as filling a replay makes.
np.ones(200 * 2**17).sum()
print(memory_added(lambda: np.ones(100 * 2**17).sum()), memory_added(lambda: None))
"""


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="Linux only")
def test_memory_added_forgets_what_was_freed_before():
    # A process of its own: where a run was trained before, freed memory stays with the process.
    done = subprocess.run(
        [sys.executable, "-P", "-c", MEASURED], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    added, nothing = map(float, done.stdout.split())
    assert added == pytest.approx(100, abs=10)
    assert nothing < 10
