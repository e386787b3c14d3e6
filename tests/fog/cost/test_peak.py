"""Memory of a process is its own, whoever started it."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from fog.cost import calibration
from fog.cost.peak import peak_bytes

LARGE = 1_000_000_000

linux = pytest.mark.skipif(sys.platform != "linux", reason="asks /proc about another process")


def test_the_peak_stays_when_memory_is_let_go() -> None:
    before = peak_bytes()
    held = np.ones(before + 50_000_000, np.uint8)
    del held
    assert peak_bytes() > before + 50_000_000


@linux
def test_a_small_child_of_a_large_process_is_small() -> None:
    held = np.ones(LARGE, np.uint8)
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as child:
        found = peak_bytes(child.pid)
        child.communicate()
    assert held.all() and 0 < found < 50_000_000
    assert peak_bytes(child.pid) == 0


def test_the_calibration_of_a_large_process_is_that_of_a_run() -> None:
    held = np.ones(LARGE, np.uint8)
    found = calibration._measure({})
    assert held.all() and 100_000_000 < found["bytes"] < LARGE
