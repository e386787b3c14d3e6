"""Updates per second of our BRO and SimBa beside the official code, on one thread.

    python benchmarks/opponents.py --peers-python PATH --bro CHECKOUT --simba CHECKOUT
        [--rounds 7] [--turn 2] [--clock processor]

Networks and batches have the sizes of the papers; SimBa has two critics, as on HumanoidBench. All
contenders take turns in one run, as in `benchmarks/speed.py`; a ratio is the median over rounds of
their time over ours.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from speed_report import table
from speed_rounds import Pace, interleave, say
from speed_workers import Contender

SIZES = ((67, 21), (17, 6))
"""humanoid-walk and HalfCheetah-v4."""
AGENTS = {"bro": (128, 512), "simba": (256, 512)}
"""Batch size and width of the critics."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--peers-python", default=sys.executable)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--turn", type=float, default=2.0, help="seconds")
    parser.add_argument("--clock", choices=["wall", "processor"], default="processor")
    for name in AGENTS:
        parser.add_argument(f"--{name}", default="", help="checkout of the official code")
    given = parser.parse_args()
    pace = Pace(given.rounds, given.turn, given.peers_python)
    rows = []
    for name, (batch, width) in AGENTS.items():
        checkout = getattr(given, name)
        if not checkout:
            say(f"{name}: not measured, pass --{name} with a checkout of the official code")
            continue
        for obs, act in SIZES:
            ours = Contender("fog", obs, act, width, variant=name, depth=2, batch=batch)
            contenders = {
                "ours": ours,
                "ours, not compiled": replace(ours, compiled=False),
                "official": replace(ours, kind=name, checkout=checkout),
            }
            found = interleave(contenders, pace)
            rates = [found.rate(each, given.clock) for each in contenders]
            ratio = found.ratio("official", "ours", given.clock)
            rows.append([f"{name}, {obs} / {act}", *rates, ratio])
    head = ["updates/s", "ours", "ours, not compiled", "official", "ours / official"]
    print("\n".join(table(head, rows)))


if __name__ == "__main__":
    main()
