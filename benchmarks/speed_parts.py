"""The parts of the speed benchmark: who is compared on what."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

import numpy as np
from speed_report import Part, Requirement, missing_notes, required, seconds, table
from speed_rounds import Measured, Pace, amount_for, cores, interleave, say, start
from speed_workers import Contender

CLEANRL_WIDTH = 256
"""The only width that its script has."""


@dataclass(frozen=True)
class Options:
    """What the command line asks for."""

    pace: Pace
    threads: Sequence[int]
    widths: Sequence[int]
    sizes: Sequence[tuple[int, int]]
    """Observation and action dimensions; all but the first on one thread only."""
    rows: int
    compiled: bool
    cleanrl: str
    clock: str


def updates(options: Options) -> Part:
    """SAC of the same shape, beside its peers."""
    lines, data, requirements, all_found = [], [], [], []
    names = ("fog", "fog eager", "SB3", "SBX", "CleanRL")
    for threads in options.threads:
        sizes = options.sizes if threads == 1 else options.sizes[:1]
        for (obs, act), width in ((size, width) for size in sizes for width in options.widths):
            label = f"obs {obs} / act {act}, width {width}, threads {threads}"
            say(f"updates: {label}")
            found = interleave(_sac_contenders(options, obs, act, width, threads), options.pace)
            all_found.append(found)
            ratios = [found.ratio(peer, "fog", options.clock) for peer in names[2:]]
            rates = [found.rate(name, options.clock) for name in names]
            limit = found.ratio("SBX", "kernels", options.clock)
            lines.append((label, *rates, *ratios, limit))
            data.append({"case": label, "seconds_per_update": seconds(found)})
            requirements += _sac_requirements(label, width, found)
    compiled = "compiled, as in a long run" if options.compiled else "not compiled here"
    notes = [
        f"`fog` is {compiled}. An update includes drawing its batch. CleanRL's also includes its "
        "loop around the update: one action chosen and stored. `kernels / SBX` is what "
        "`fog / SBX` would be if all but the products of our update cost nothing; calling them "
        "from Python, as is done for it, takes 0.1 ms.",
        *missing_notes(all_found),
    ]
    if not options.cleanrl:
        notes.append("CleanRL not measured: pass --cleanrl with the path of a checkout.")
    head = ["updates/s", *names, *(f"fog / {peer}" for peer in names[2:]), "kernels / SBX"]
    return Part("SAC updates per second", table(head, lines), data, requirements, notes)


def _sac_contenders(
    options: Options, obs: int, act: int, width: int, threads: int
) -> dict[str, Contender]:
    base = Contender("fog", obs, act, width, threads, compiled=options.compiled, rows=options.rows)
    found = {
        "fog": base,
        "fog eager": replace(base, compiled=False),
        "SB3": replace(base, kind="sb3"),
        "SBX": replace(base, kind="sbx"),
        "kernels": replace(base, kind="kernels"),
    }
    if options.cleanrl and width == CLEANRL_WIDTH:
        found["CleanRL"] = replace(base, kind="cleanrl", cleanrl=options.cleanrl)
    return found


def _sac_requirements(label: str, width: int, found: Measured) -> list[Requirement]:
    limits = [("SBX", 1.1)]
    if width == 64:
        limits.append(("SB3", 3.0))
    if width == 256:
        limits += [("SB3", 1.8), ("CleanRL", 1.8)]
    return [required(f"fog / {peer}, {label}", found, peer, "fog", limit) for peer, limit in limits]


def products(options: Options) -> Part:
    """How near to the matrix-product rate the deep critics come, on the first number of threads."""
    lines, data, requirements = [], [], []
    (obs, act), threads = options.sizes[0], options.threads[0]
    for variant, width, depth in (
        ("fog", 512, 2),
        ("fog", 512, 4),
        ("sac", 256, 0),
        ("sac", 256, 2),
    ):
        width = min(width, max(options.widths))
        label = f"{variant}, width {width}, depth {depth}"
        say(f"products: {label}")
        base = Contender(
            "fog",
            obs,
            act,
            width,
            threads,
            compiled=options.compiled,
            variant=variant,
            depth=depth,
            rows=options.rows,
        )
        contenders = {"fog": base, "eager": replace(base, compiled=False)}
        contenders |= {kind: replace(base, kind=kind) for kind in ("products", "kernels")}
        found = interleave(contenders, options.pace)
        flops = found.facts.get("products", {}).get("flops", 0)
        rates = {name: found.rate(name, options.clock) for name in contenders}
        speeds = [None if rate is None else rate * flops / 1e9 for rate in rates.values()]
        shares = [found.ratio(bare, "fog", options.clock) for bare in ("products", "kernels")]
        lines.append((label, rates["fog"], rates["eager"], flops / 1e9, *speeds, *shares))
        data.append({"case": label, "flops": flops, "seconds_per_update": seconds(found)})
        requirements += [
            required(f"{label}: share of bare {bare}", found, bare, "fog", 0.8)
            for bare in ("products", "kernels")
        ]
    head = ["case", "updates/s", "eager", "GFLOP per update"]
    head += ["GFLOP/s", "eager", "torch's products", "our kernels"]
    head += ["fog / torch's products", "fog / our kernels"]
    note = (
        f"obs {obs} / act {act}, {threads} thread(s). The bare products are all those of one "
        "update, in the same shapes and the same memory, and nothing else, by torch (whose FLOP "
        "counter agrees with their count) and by our kernels (biases, gates and sums included)."
    )
    title = "Distance to the matrix-product rate"
    return Part(title, table(head, lines), data, requirements, [note])


def endtoend(options: Options) -> Part:
    """Environment steps per second of whole runs on HalfCheetah-v4."""
    lines, data, requirements, all_found = [], [], [], []
    width = min(256, max(options.widths))
    for ratio in (1, 10):
        label = f"replay ratio {ratio}"
        say(f"endtoend: {label}")
        base = Contender(
            "fog-steps",
            width=width,
            threads=options.threads[0],
            compiled=options.compiled,
            ratio=ratio,
        )
        found = interleave({"fog": base, "SBX": replace(base, kind="sbx-steps")}, options.pace)
        all_found.append(found)
        rates = [found.rate(name, options.clock) for name in ("fog", "SBX")]
        lines.append((label, *rates, found.ratio("SBX", "fog", options.clock)))
        data.append({"case": label, "seconds_per_step": seconds(found)})
        if ratio == 10:
            requirements.append(required(f"fog / SBX, {label}", found, "SBX", "fog", 1.1))
    head = ["environment steps/s", "fog", "SBX", "fog / SBX"]
    notes = missing_notes(all_found)
    title = f"End to end on HalfCheetah-v4, SAC of width {width}"
    return Part(title, table(head, lines), data, requirements, notes)


def pairs(options: Options) -> Part:
    """Two runs at once, each on a core of its own, against one alone."""
    (obs, act), width = options.sizes[0], min(256, max(options.widths))
    base = Contender("fog", obs, act, width, compiled=options.compiled, rows=options.rows)
    if len(cores(2)) < 2:
        return Part("Two runs at once", ["Not measured: only one core here."], [])
    lines, data, all_found = [], [], []
    for name, kind in (("fog", "fog"), ("SB3", "sb3"), ("SBX", "sbx")):
        say(f"pairs: {name}")
        found = _pair(replace(base, kind=kind), name, options.pace)
        all_found.append(found)
        data.append({"case": name, "seconds_per_update": seconds(found)})
        slower = found.ratio("together", "alone", options.clock)
        rates = [found.rate(which, options.clock) for which in ("alone", "together")]
        lines.append((name, *rates, slower, None if slower is None else 2 / slower))
    head = ["updates/s of one run", "alone", "two at once", "slowdown", "throughput of two"]
    note = f"Width {width}, obs {obs} / act {act}, one thread each, pinned to a core each."
    title = "Two runs at once"
    return Part(title, table(head, lines), data, notes=[note, *missing_notes(all_found)])


def _pair(contender: Contender, name: str, pace: Pace) -> Measured:
    """Seconds per update of one alone and of both together; each round measures both workers."""
    found = Measured()
    with ExitStack() as stack:
        both = {f"{name} 1": contender, f"{name} 2": contender}
        workers = list(start(stack, both, pace, found, [cores(1), cores(1, 1)]).values())
        if len(workers) < 2:
            return found
        amounts = [amount_for(worker, pace.turn) for worker in workers]
        order = np.random.default_rng(0)
        for which in ("alone", "together"):
            found.wall[which], found.processor[which] = [], []
        for _ in range(pace.rounds):
            for which in order.permutation(["alone", "together"]):
                if which == "together":
                    for worker, amount in zip(workers, amounts, strict=True):
                        worker.begin(amount)
                    took = [worker.end() for worker in workers]
                else:
                    took = [w.turn(amount) for w, amount in zip(workers, amounts, strict=True)]
                per_update = np.array(took) / np.array(amounts)[:, None]
                wall, processor = per_update.mean(axis=0)
                found.wall[which].append(float(wall))
                found.processor[which].append(float(processor))
    return found
