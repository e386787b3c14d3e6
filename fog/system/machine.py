"""What this run ran on: versions, hardware and code, for the manifest and `fog doctor`."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

from fog import __version__

PACKAGES = ("torch", "numpy", "gymnasium", "mujoco", "dm_control", "metaworld", "humanoid_bench")


def versions() -> dict[str, str | None]:
    """Installed versions of what decides a run's numbers; None where a package is absent."""
    found: dict[str, str | None] = {"fog": __version__, "python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = None
    return found


def git_commit() -> str | None:
    """Commit of the checkout the code runs from, `-dirty` if changed; None without a checkout."""
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return None
    try:
        describe = ["git", "-C", str(root), "describe", "--always", "--abbrev=40", "--dirty"]
        result = subprocess.run(describe, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return result.stdout.strip()


def cpu_name() -> str:
    """The processor's name, as reported by the system."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def hardware() -> dict[str, Any]:
    """Host, processor and memory."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "host": platform.node(),
        "system": platform.platform(),
        "cpu": cpu_name(),
        "cores": os.cpu_count(),
        "memory_gib": round(memory / 2**30, 1),
    }
