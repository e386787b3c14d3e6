"""Seconds from `fog train` to its first environment step, uncompiled.

    python benchmarks/startup.py [--runs 5]

The task is HalfCheetah-v4, which ends the process at its first step. Limit: 5 s.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import gymnasium

LIMIT = 5.0
REACHED = 17
"""Exit code of a process that came to its first step."""
TASK = "gym:startup:FirstStep-v0"


class FirstStep(gymnasium.Wrapper):
    """HalfCheetah-v4 until somebody moves."""

    def __init__(self) -> None:
        super().__init__(gymnasium.make("HalfCheetah-v4"))

    def step(self, action: object) -> tuple[object, float, bool, bool, dict[str, object]]:
        """End the process."""
        os._exit(REACHED)


# A run imports this file as the module `startup`.
gymnasium.register("FirstStep-v0", entry_point="startup:FirstStep")


def seconds(out: Path) -> float:
    """One start."""
    command = [sys.executable, "-m", "fog", "train", "--task", TASK, "--variant", "fog"]
    command += ["--compile", "off", "--out", str(out)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    began = time.perf_counter()
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode != REACHED:
        raise SystemExit(f"no step was made: {done.stderr.strip()}")
    return time.perf_counter() - began


def main() -> int:
    """Print the times; 1 if their median is above the limit."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        took = [seconds(Path(scratch, str(run))) for run in range(options.runs)]
    shown = ", ".join(f"{each:.2f}" for each in took)
    print(f"first step after {shown} s; median {statistics.median(took):.2f} s, limit {LIMIT:g} s")
    return 0 if statistics.median(took) <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
