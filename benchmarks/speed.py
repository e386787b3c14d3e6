"""Speed beside Stable-Baselines3, SBX and CleanRL, and the distance to the matrix-product rate.

    python benchmarks/speed.py [--only updates products endtoend pairs scaling] [--rounds 7]
        [--turn 0.5] [--threads 1 2] [--peers-python PATH] [--cleanrl PATH]
        [--out benchmarks/out/speed] [--figures DIR]

Every contender is a process of its own, pinned to as many cores as it has threads. They take turns,
one at a time and in a new order in every round; a ratio is the median over rounds of two times of
the same round. Wall time counts, for which the machine must be idle; processor time (of all
threads) is measured beside it, and `--clock processor` reports that instead. Peers live in the
environment of `--peers-python`; those that are missing are reported as such. CleanRL is a script
and not a package: `--cleanrl` is the path of a checkout.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import speed_parts
from speed_report import Part, circumstances, markdown, plain
from speed_rounds import Pace, say
from speed_scaling import draw, scaling

PARTS = ("updates", "products", "endtoend", "pairs", "scaling")
SIZES = ((67, 21), (17, 6))


def parser() -> argparse.ArgumentParser:
    """The command line."""
    found = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    found.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    found.add_argument("--rounds", type=int, default=7)
    found.add_argument("--turn", type=float, default=0.5, help="seconds")
    found.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    found.add_argument("--widths", type=int, nargs="+", default=[64, 128, 256, 512])
    found.add_argument("--rows", type=int, default=100_000, help="transitions in every buffer")
    found.add_argument("--compile", choices=["on", "off"], default="on", help="ours")
    found.add_argument("--clock", choices=["wall", "processor"], default="wall")
    found.add_argument("--peers-python", default=sys.executable)
    found.add_argument("--cleanrl", default="", help="path of a checkout of CleanRL")
    found.add_argument("--out", type=Path, default=Path("benchmarks/out/speed"))
    found.add_argument("--figures", type=Path, help="where the figure goes; default: beside --out")
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and write the tables."""
    given = parser().parse_args(arguments)
    about = circumstances(given.peers_python)
    about |= {"threads": given.threads, "rounds": given.rounds, "turn": given.turn}
    say(f"load average {about['load_before'][0]:.2f}; wall times want an idle machine")
    options = speed_parts.Options(
        pace=Pace(given.rounds, given.turn, given.peers_python),
        threads=given.threads,
        widths=given.widths,
        sizes=SIZES,
        rows=given.rows,
        compiled=given.compile == "on",
        cleanrl=given.cleanrl,
        clock=given.clock,
    )
    parts: list[Part] = []
    for name in given.only:
        if name == "scaling":
            part, axes = scaling(options)
            folder = given.figures or given.out.parent
            draw(axes, folder, f"{given.out.name}_scaling", about | {"clock": given.clock})
        else:
            part = getattr(speed_parts, name)(options)
        parts.append(part)
        # Written after each part: an interrupted benchmark keeps what it had.
        about["load_after"] = os.getloadavg()
        text = markdown(about, parts, given.clock)
        given.out.parent.mkdir(parents=True, exist_ok=True)
        given.out.with_suffix(".md").write_text(text)
        data = json.dumps(plain(about, parts, given.clock), indent=1)
        given.out.with_suffix(".json").write_text(data + "\n")
    print(text)


if __name__ == "__main__":
    main()
