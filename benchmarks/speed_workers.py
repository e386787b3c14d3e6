"""A contender of the speed benchmark in a process of its own.

    python benchmarks/speed_workers.py '{"kind": "fog", "obs": 17, "act": 6, "width": 64}'

Prints "ready" and what it has to tell as JSON once it has warmed up (compiled). Then, for each line
`N` on its input, it makes N updates (or steps) and answers with wall and processor seconds. Started
by `speed_rounds`; one line of input and output each, so it can also be tried by hand.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, TextIO

BATCH = 256
TOGETHER = 10
"""Updates in one call: the replay ratio of the paper."""

Work = Callable[[int], None]


@dataclass(frozen=True)
class Contender:
    """Who works, on what. A worker gets it as JSON."""

    kind: str
    """Whose work it is; `main` lists them."""
    obs: int = 67
    act: int = 21
    width: int = 256
    threads: int = 1
    compiled: bool = True
    """Ours only."""
    variant: str = "plain"
    """Ours only: `plain` is SAC of the peers' shape; else a variant of `fog variants`."""
    depth: int = 0
    batch: int = BATCH
    rows: int = 100_000
    """Transitions in the buffer."""
    ratio: int = 10
    """Updates per environment step, where steps are counted."""
    cleanrl: str = ""
    """Path of a checkout of CleanRL."""
    checkout: str = ""
    """Path of a checkout of the official BRO or SimBa."""

    def json(self) -> str:
        """For the worker's command line."""
        return json.dumps(asdict(self))


class Channel:
    """The conversation with the parent, out of reach of libraries that print."""

    def __init__(self) -> None:
        self._answers: TextIO = os.fdopen(os.dup(1), "w", buffering=1)
        os.dup2(2, 1)

    def ready(self, facts: dict[str, Any] | None = None) -> None:
        """Warm-up is over."""
        print("ready", json.dumps(facts or {}), file=self._answers)

    def turns(self) -> Iterator[int]:
        """How much to do, turn by turn, until the parent closes its end."""
        for line in sys.stdin:
            yield int(line)

    def answer(self, wall: float, processor: float) -> None:
        """What the turn took."""
        print(wall, processor, file=self._answers)


class Clock:
    """Wall and processor seconds since it was made; the latter of all threads of the process."""

    def __init__(self) -> None:
        self._wall, self._processor = time.perf_counter(), time.process_time()

    def read(self) -> tuple[float, float]:
        """Wall seconds, processor seconds."""
        return time.perf_counter() - self._wall, time.process_time() - self._processor


def serve(channel: Channel, work: Work, facts: dict[str, Any] | None = None) -> None:
    """Warm up, then work on demand."""
    work(TOGETHER)
    work(TOGETHER)
    channel.ready(facts)
    for amount in channel.turns():
        clock = Clock()
        work(amount)
        channel.answer(*clock.read())


def calls(amount: int) -> range:
    """The calls of `TOGETHER` updates each that make `amount`."""
    if amount % TOGETHER:
        raise ValueError(f"{amount} updates are not a multiple of {TOGETHER}")
    return range(amount // TOGETHER)


def main() -> None:
    """Be the contender that the command line describes."""
    contender = Contender(**json.loads(sys.argv[1]))
    channel = Channel()
    # Each imports what it needs and no more: peers live in another environment than ours may.
    match contender.kind:
        case "fog" | "products" | "kernels" | "fog-steps":
            import speed_ours

            speed_ours.run(contender, channel)
        case "sb3" | "sbx" | "sbx-steps":
            import speed_peers

            speed_peers.run(contender, channel)
        case "cleanrl":
            import speed_cleanrl

            speed_cleanrl.run(contender, channel)
        case "bro" | "simba":
            import speed_official

            speed_official.run(contender, channel)
        case other:
            raise SystemExit(f"no contender called {other}")


if __name__ == "__main__":
    main()
