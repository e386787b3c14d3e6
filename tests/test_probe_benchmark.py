"""The benchmark of probes: what it calls the memory that a probe adds."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "probes.py"


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="Linux only")
def test_memory_added_forgets_what_was_freed_before():
    spec = importlib.util.spec_from_file_location("benchmark_of_probes", SCRIPT)
    benchmark = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(benchmark)
    # A larger peak than the one to be measured, as filling a replay makes.
    np.ones(200 * 2**17).sum()
    added = benchmark.memory_added(lambda: np.ones(100 * 2**17).sum())
    assert added == pytest.approx(100, abs=10)
    assert benchmark.memory_added(lambda: None) < 10
