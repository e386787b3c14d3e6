"""The attack on runs, exports and input: `make attack`.

    python -m tests.attack [--quick] [--only NAME ..] [--seed N]

Kills, damages, fuzzes and fills disks in a temporary folder, goes on or reads what is left, and
compares it with runs that nobody disturbed, bit for bit. Ends with 1 if anything was lost, was
wrong without a word, or ended in a traceback.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

# Before numpy: a process that has threads of its own cannot be forked safely.
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import time

import fog.training.trainer  # noqa: F401
from tests.attack import damage, disk, fuzzing, kills, outcomes, streams
from tests.attack.lab import Lab
from tests.attack.outcomes import Tally

FULL = {
    "injected": 45,
    "random": 15,
    "export": 20,
    "streams": 16,
    "disk": 22,
    "resume": 0.15,
    "agents": 0.3,
    "share": 1.0,
    "fuzz": 1.0,
}
QUICK = {
    "injected": 4,
    "random": 2,
    "export": 3,
    "streams": 3,
    "disk": 4,
    "resume": 0.02,
    "agents": 0.02,
    "share": 0.1,
    "fuzz": 0.05,
}
"""How many of each; of damage the share of all files and ways."""
FUZZ = {"command line": 300, "config": 300, "plan": 150, "run directory": 50}


def attacks(lab: Lab, size: dict[str, float]) -> dict[str, Callable[[], Tally]]:
    """Every kind of attack by name."""
    share = size["share"]
    found: dict[str, Callable[[], Tally]] = {
        "kill at a change": lambda: outcomes.run(
            "kill -9 at a change of the disk, resume", kills.injected(lab, int(size["injected"]))
        ),
        "kill at random": lambda: outcomes.run(
            "kill -9 at a random moment, resume", kills.at_random(lab, int(size["random"]))
        ),
        "kill an export": lambda: outcomes.run(
            "kill -9 of an export, export again", kills.exporting(lab, int(size["export"]))
        ),
        "damage and resume": lambda: outcomes.run(
            "damage a killed run, resume", damage.Killed(lab).cases(size["resume"])
        ),
        "damage and load an agent": lambda: outcomes.run(
            "damage a checkpoint, load its agent", damage.agents(lab, size["agents"])
        ),
        "damage and compare": lambda: outcomes.run(
            "damage an ended run, load and compare", damage.analysed(lab, share)
        ),
        "damage and export": lambda: outcomes.run(
            "damage an ended run, export, load the copy", damage.exported(lab, share)
        ),
    }
    for kind, count in FUZZ.items():
        found[f"fuzz {kind}"] = lambda kind=kind, count=count: _fuzzed(  # type: ignore[misc]
            kind, max(5, int(size["fuzz"] * count))
        )
    found["streams"] = lambda: outcomes.run(
        "closed and full streams", streams.cases(lab, int(size["streams"]))
    )
    found["disk"] = lambda: _disk(lab, int(size["disk"]))
    return found


def _fuzzed(kind: str, count: int) -> Tally:
    began = time.monotonic()
    tally = fuzzing.fuzz(kind, count)
    tally.seconds = time.monotonic() - began
    return tally


def _disk(lab: Lab, count: int) -> Tally:
    name = "disk full (a small tmpfs), then room again"
    if not disk.permitted(lab):
        return Tally(name, skipped="mounting is not permitted here")
    return outcomes.run(name, disk.cases(lab, count))


def attack(home: Path, *, quick: bool, only: list[str] | None, seed: int) -> list[Tally]:
    """Attack in a folder."""
    lab = Lab(home, seed)
    chosen = attacks(lab, QUICK if quick else FULL)
    tallies = []
    for name in only or chosen:
        tallies.append(chosen[name]())
        sys.stderr.write(f"{tallies[-1].name}: {dict(tallies[-1].counts)}\n")
    return tallies


def main() -> int:
    """Attack and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--quick", action="store_true", help="a few of each, about a minute")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="only these kinds")
    parser.add_argument("--seed", type=int, default=2026, help="of all chances [2026]")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        tallies = attack(Path(scratch), quick=options.quick, only=options.only, seed=options.seed)
    sys.stdout.write(outcomes.table(tallies) + "\n")
    return int(outcomes.failed(tallies))


if __name__ == "__main__":
    sys.exit(main())
