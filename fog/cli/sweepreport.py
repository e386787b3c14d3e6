"""What `fog sweep` prints before anything starts and after everything has ended."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import TYPE_CHECKING

from fog.cli.listing import short
from fog.cli.table import render
from fog.records.statuses import SETTLED
from fog.settings.variants import VARIANTS
from fog.sweep.checks import existing
from fog.sweep.entry import Entry
from fog.sweep.job import Job
from fog.sweep.sweep import Outcome
from fog.sweep.view import ORDER, duration, number
from fog.system import machine

if TYPE_CHECKING:
    from fog.cost import Estimate


def runs(jobs: Sequence[Job]) -> str:
    """Which runs a sweep holds: one line for each task and set of variants."""
    cells: dict[tuple[str, str], list[Job]] = {}
    ranks = {name: rank for rank, name in enumerate(VARIANTS)}
    for job in sorted(jobs, key=lambda job: ranks[job.config.run.variant]):
        cells.setdefault((job.config.run.task, job.config.run.variant), []).append(job)
    rows: dict[tuple[str, str, int, int], list[str]] = {}
    for (task, variant), members in cells.items():
        seeds = spans(job.config.run.seed for job in members)
        key = (task, seeds, members[0].config.run.steps, members[0].updates)
        rows.setdefault(key, []).append(variant)
    table = render(
        ["task", "seeds", "steps", "updates", "runs", "variants"],
        [
            [
                task,
                seeds,
                short(steps),
                f"{updates:,}",
                str(sum(len(cells[task, variant]) for variant in names)),
                " ".join(names),
            ]
            for (task, seeds, steps, updates), names in rows.items()
        ],
        right=frozenset({2, 3, 4}),
    )
    states = [job.status() for job in jobs]
    done = sum(state in SETTLED for state in states)
    begun = len(jobs) - done - states.count("new")
    total = sum(job.updates for job in jobs)
    return (
        f"{table}\n\n{len(jobs)} runs ({done} already finished, {begun} started), "
        f"{total:,} updates in all; steps and updates are per run"
    )


def spans(seeds: Iterable[int]) -> str:
    """Seeds as they are written: 0-2, 5."""
    parts: list[list[int]] = []
    for seed in sorted(set(seeds)):
        if parts and seed == parts[-1][-1] + 1:
            parts[-1].append(seed)
        else:
            parts.append([seed])
    return ", ".join(f"{p[0]}-{p[-1]}" if len(p) > 1 else str(p[0]) for p in parts)


def cost(estimate: Estimate, jobs: Sequence[Job], at_once: int) -> str:
    """What the sweep will take on this machine, and what the machine lacks for it."""
    disk = shutil.disk_usage(existing(jobs[0].directory)).free
    memory = machine.hardware()["memory_gib"] * 2**30
    lines = [
        f"time    about {roughly(estimate.seconds_wall)} on this machine, {at_once} runs at once "
        f"({roughly(estimate.seconds_total)} on one core)",
        f"memory  {size(estimate.peak_memory_bytes)} at the peak",
        f"disk    {size(estimate.disk_bytes)}",
    ]
    lines += [f"note: {note}" for note in estimate.notes]
    if estimate.peak_memory_bytes > memory:
        lines.append(f"note: this machine has {size(memory)} of memory; lower --jobs")
    if estimate.disk_bytes > disk:
        lines.append(f"note: only {size(disk)} of disk is free; choose another --out")
    return "\n".join(lines)


def roughly(seconds: float) -> str:
    """A time that is only estimated, without digits that mean nothing."""
    for unit, name in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * unit:
            return f"{seconds / unit:.0f} {name}"
    return f"{seconds:.0f} seconds"


def size(count: float) -> str:
    """Bytes in the unit that suits them."""
    for unit, name in ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB")):
        if count >= unit:
            return f"{count / unit:.1f} {name}"
    return f"{count / 2**10:.0f} KiB"


def summary(outcome: Outcome) -> str:
    """How every group of runs ended, what failed and why, and a one-line total."""
    tally = outcome.tally
    groups: dict[tuple[str, str], list[Entry]] = {}
    for entry in tally.entries:
        groups.setdefault((entry.job.config.run.task, entry.job.agent), []).append(entry)
    table = render(
        ["task", "variant", "done", "last return", "runs"],
        [
            [
                task,
                agent,
                f"{sum(entry.state in SETTLED for entry in members)}/{len(members)}",
                _mean_return(members),
                _states(members),
            ]
            for (task, agent), members in groups.items()
        ],
        right=frozenset({2, 3}),
    )
    lines = [table, ""]
    lines += [
        f"failed: {entry.job.label}: {entry.reason} (log: {entry.job.log})"
        for entry in tally.entries
        if entry.state == "failed"
    ]
    if outcome.disk_full:
        lines.append("The disk is full: free some space, then run the same command again")
    if outcome.detached:
        lines.append("Submitted; the same command without --detach shows and completes them")
    if any(entry.state == "busy" for entry in tally.entries):
        lines.append("Busy runs are being written by another process and were left alone")
    total = len(tally.entries)
    lines.append(f"{total} runs: {_states(tally.entries)}; {duration(tally.seconds)}")
    return "\n".join(lines)


def _mean_return(members: Sequence[Entry]) -> str:
    """Mean of the last evaluations over the finished runs."""
    returns = [
        entry.progress.last_return
        for entry in members
        if entry.state in SETTLED and entry.progress.last_return is not None
    ]
    return number(fmean(returns)) if returns else "-"


def _states(members: Sequence[Entry]) -> str:
    counts = Counter(entry.state for entry in members)
    return ", ".join(f"{counts[state]} {state}" for state in ORDER if counts[state])
