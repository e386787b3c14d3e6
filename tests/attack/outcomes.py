"""What became of each attempt, and the table of all."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

SURVIVED = "survived"
REFUSED = "refused in one line"
LOST = "lost"
WRONG = "silently wrong"
TRACEBACK = "traceback"

OUTCOMES = (SURVIVED, REFUSED, LOST, WRONG, TRACEBACK)
BAD = (LOST, WRONG, TRACEBACK)

Verdict = tuple[str, str]
"""An outcome, and what is known about it."""


@dataclass
class Tally:
    """Outcomes of one kind of attack.

    Attributes:
        name: the kind.
        counts: how often each outcome came.
        findings: what went wrong, one line each.
        skipped: why it was not tried.
        seconds: how long it took.
    """

    name: str
    counts: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)
    skipped: str = ""
    seconds: float = 0.0

    @property
    def tried(self) -> int:
        """Number of attempts."""
        return sum(self.counts.values())

    def add(self, case: str, verdict: Verdict) -> None:
        """Count one attempt."""
        outcome, detail = verdict
        self.counts[outcome] += 1
        if outcome in BAD:
            self.findings.append(f"{self.name}: {case}: {outcome}: {detail}")


def run(name: str, cases: Iterable[tuple[str, Callable[[], Verdict]]]) -> Tally:
    """Try every case of a kind of attack."""
    tally = Tally(name)
    began = time.monotonic()
    for case, attempt in cases:
        tally.add(case, attempt())
    tally.seconds = time.monotonic() - began
    return tally


def table(tallies: list[Tally]) -> str:
    """All outcomes, as a table for a document, with what went wrong below it."""
    header = ("attack", "tried", *OUTCOMES, "seconds")
    lines = ["| " + " | ".join(header) + " |", "|---" + "|---:" * (len(header) - 1) + "|"]
    for tally in tallies:
        if tally.skipped:
            lines.append(f"| {tally.name} | skipped: {tally.skipped}" + " |" * len(OUTCOMES) + " |")
            continue
        cells = [tally.counts[outcome] for outcome in OUTCOMES]
        numbers = " | ".join(map(str, [tally.tried, *cells, round(tally.seconds)]))
        lines.append(f"| {tally.name} | {numbers} |")
    total = sum((tally.counts for tally in tallies), Counter())
    numbers = [sum(total.values()), *(total[outcome] for outcome in OUTCOMES)]
    seconds = round(sum(tally.seconds for tally in tallies))
    lines.append("| **all** | " + " | ".join(map(str, [*numbers, seconds])) + " |")
    findings = [line for tally in tallies for line in tally.findings]
    return "\n".join([*lines, *([""] if findings else []), *findings])


def failed(tallies: list[Tally]) -> bool:
    """Whether anything was lost, wrong without a word, or ended in a traceback."""
    return any(tally.counts[outcome] for tally in tallies for outcome in BAD)
