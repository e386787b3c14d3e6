"""Do parallel runs of a sweep disturb each other? The same runs one at a time and two at a time.

    python benchmarks/sweep.py

Eight runs of some ten seconds each (SAC at replay ratio 1, width 64, uncompiled), started by
`fog sweep` with --jobs 1 and with --jobs 2, in turns: serial, parallel, parallel, serial. The ratio
is parallel time over the ideal, serial time / jobs; its mean must not exceed 1.15. Times include
everything: the sweep's own start, the start of each process, the summary. Needs an idle machine.
"""

from __future__ import annotations

import argparse
import os
import platform
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import fmean

LIMIT = 1.15
_SETTINGS = shlex.split(
    "--tasks gym:Pendulum-v1 --variants sac --scale 1 --width 64 --replay-ratio 1 "
    "--warmup-steps 300 --eval-episodes 1 --log-every 500 --compile off --no-tensorboard"
)


def seconds(runs: int, jobs: int, steps: int, out: Path) -> float:
    """Wall-clock time of a whole sweep into a new folder."""
    command = [sys.executable, "-m", "fog", "sweep", *_SETTINGS, "--seeds", f"0-{runs - 1}"]
    command += ["--steps", str(steps), "--eval-every", str(steps)]
    command += ["--jobs", str(jobs), "--out", str(out)]
    began = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - began


def main() -> int:
    """Measure in turns and print a Markdown table; 1 if the mean ratio is above the limit."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--runs", type=int, default=8)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--steps", type=int, default=2500, help="environment steps of each run")
    parser.add_argument("--turns", type=int, default=2)
    options = parser.parse_args()
    load = os.getloadavg()[0]
    if load > 0.5:
        print(f"The machine is busy (load {load:.1f}): the numbers will not mean much", flush=True)
    print(
        f"{platform.machine()}, {os.cpu_count()} cores, {options.runs} runs, --jobs {options.jobs}"
    )
    print(
        "\n| turn | serial (s) | parallel (s) | parallel / ideal |\n|---|---|---|---|", flush=True
    )
    ratios = []
    with tempfile.TemporaryDirectory() as scratch:
        for turn in range(options.turns):
            # The order changes with every turn, so that a drift of the machine favours neither.
            order = (1, options.jobs) if turn % 2 == 0 else (options.jobs, 1)
            took = {
                jobs: seconds(options.runs, jobs, options.steps, Path(scratch, f"{turn}-{jobs}"))
                for jobs in order
            }
            ratios.append(took[options.jobs] / (took[1] / options.jobs))
            row = f"{took[1]:.1f} | {took[options.jobs]:.1f} | {ratios[-1]:.3f}"
            print(f"| {turn + 1} | {row} |", flush=True)
    print(f"\nmean ratio {fmean(ratios):.3f}, limit {LIMIT}")
    return 0 if fmean(ratios) <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
