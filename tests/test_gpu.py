"""Every agent, every probe and whole runs on a stand-in for a GPU, see docs/gpu.md."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

CHECKS = Path(__file__).with_name("gpu_checks.py")


@pytest.mark.skipif(
    not torch.backends.cuda.is_built() and not shutil.which(os.environ.get("CXX", "g++")),
    reason="a build of torch without CUDA needs a C++ compiler for this",
)
@pytest.mark.parametrize(
    "which", [pytest.param("not slow"), pytest.param("slow", marks=pytest.mark.slow)]
)
def test_tensors_are_where_they_belong_and_only_meant_reads_wait(which: str) -> None:
    """In a process of its own, because the stand-in changes torch for good."""
    command = [sys.executable, "-m", "pytest", "-q", "--tb=short", "-p", "no:xdist", "-m", which]
    root = CHECKS.parents[1]
    done = subprocess.run(
        [*command, str(CHECKS)], cwd=root, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr
