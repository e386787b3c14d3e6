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
def test_tensors_are_where_they_belong_and_only_meant_reads_wait() -> None:
    """In a process of its own, because the stand-in changes torch for good."""
    command = [sys.executable, "-m", "pytest", "-q", "--tb=short", "-p", "no:xdist", str(CHECKS)]
    root = CHECKS.parents[1]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
