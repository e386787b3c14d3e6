"""What the paper costs: writes docs/cost.md.

python benchmarks/cost.py             everything below but `compiled`, into docs/cost.md (minutes)
python benchmarks/cost.py verify      three short runs beside their estimates
python benchmarks/cost.py compiled    compiled against uncompiled updates (20 minutes); its numbers
                                      are the table COMPILED in fog/cost/assumptions.py
"""

from __future__ import annotations

import argparse
import platform
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import torch
from cost_measured import SHAPES, compiled, paper, verify
from torch.utils.flop_counter import FlopCounterMode

from fog.agent import Batch, build_agent
from fog.cost import Estimate, RunCost, estimate
from fog.cost.assumptions import COMPILE_SECONDS, COMPILED
from fog.cost.dimensions import dimensions
from fog.cost.flops import TERMS, total_flops, update_flops
from fog.cost.work import work_of
from fog.fast import one_twin_pays
from fog.records.sizes import NetworkSpec
from fog.records.specs import spec_of
from fog.sweep import planfile
from fog.sweep.job import Job
from fog.sweep.view import duration
from fog.system import machine

ROOT = Path(__file__).resolve().parent.parent
PEAKS = (20e12, 100e12, 300e12)
UTILISATION = 0.3
FLOOR = 0.5e-3
TASKS = ("humanoid-walk", "HalfCheetah-v4")
VARIANTS = (
    *("sac", "expanded-sac", "fog", "fog-fixed4", "fog-sac", "sac-utd1"),
    *("bro", "simba", "ne"),
)
HOUR, YEAR = 3600.0, 365.25 * 24 * 3600.0


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; every column but the first is a number."""
    lines = [header, ["---", *["--:"] * (len(header) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def counted_by_torch(spec: NetworkSpec, variant: str, depth: int, task: str) -> int:
    """FLOPs of one real, uncompiled update."""
    config = paper(variant, task).replace(
        initial_depth=depth, maximal_depth=depth, expansion_updates=()
    )
    agent = build_agent(config, spec.obs_dim, spec.act_dim, "cpu", False)
    shape = (1, config.agent.batch_size)
    ones = torch.ones(shape)
    obs, action = torch.zeros(*shape, spec.obs_dim), torch.zeros(*shape, spec.act_dim)
    with FlopCounterMode(display=False) as counter:
        agent.update(Batch(obs, action, ones, ones, obs, ones))
    return int(counter.get_total_flops())


def flops_section() -> str:
    """FLOPs by variant and depth, counted twice."""
    rows = []
    for variant in VARIANTS:
        config = paper(variant, TASKS[0])
        for depth in work_of(config).updates:
            row = [variant, str(depth)]
            for task in TASKS:
                own = paper(variant, task)
                spec = spec_of(own.flat(), *dimensions(task))
                ours = total_flops(spec, depth, own.agent.batch_size, one_twin_pays(own))
                torchs = counted_by_torch(spec, variant, depth, task)
                row += [f"{ours / 1e9:.3f}", f"{torchs / 1e9:.3f}{'' if ours == torchs else ' !'}"]
            rows.append(row)
    header = ["variant", "blocks"]
    header += [f"{task}, {who}" for task in TASKS for who in ("counted", "torch")]
    return table(header, rows)


def terms_section() -> str:
    """Where the FLOPs of FoG's largest update go."""
    config = paper("fog", TASKS[0])
    spec = spec_of(config.flat(), *dimensions(TASKS[0]))
    counted = update_flops(spec, 4, config.agent.batch_size, one_twin_pays(config))
    whole = sum(counted.values())
    return table(
        ["term", "why", "GFLOP", "share"],
        [
            [
                term.name,
                term.reason,
                f"{counted[term.name] / 1e9:.2f}",
                f"{counted[term.name] / whole:.1%}",
            ]
            for term in TERMS
        ],
    )


def accelerator_seconds(run: RunCost, peak: float) -> float:
    """A run on an accelerator: its updates there, its simulators where they are now."""
    updates = max(run.flops / (peak * UTILISATION), run.updates * FLOOR)
    return updates + run.parts["steps"] + run.parts["evaluations"]


def runs_section(known: Estimate) -> str:
    """Hours, memory and disk of single runs."""
    rows = []
    for run in known.per_run:
        hours = [accelerator_seconds(run, peak) / HOUR for peak in PEAKS]
        simulators = (run.parts["steps"] + run.parts["evaluations"]) / HOUR
        rows.append(
            [
                f"{run.variant}, {run.task}",
                f"{run.updates / 1e6:.2f}",
                f"{run.flops / 1e15:.1f}",
                f"{run.seconds / HOUR:,.0f}",
                f"{simulators:.1f}",
                *(f"{each:.1f}" for each in hours),
                f"{run.memory_bytes / 1e9:.1f}",
                f"{run.disk_bytes / 1e9:.1f}",
            ]
        )
    header = ["run", "updates (M)", "PFLOP", "CPU h", "of it simulators"]
    header += [f"{peak / 1e12:.0f} TFLOP/s h" for peak in PEAKS]
    return table([*header, "memory GB", "disk GB"], rows)


def paper_section() -> tuple[str, list[str]]:
    """Every plan of the paper, and all of them with shared runs counted once."""
    plans = {
        path.stem: planfile.read(path).jobs({}) for path in sorted((ROOT / "plans").glob("*.yaml"))
    }
    every: dict[Path, Job] = {job.directory: job for jobs in plans.values() for job in jobs}
    configs = [job.config for job in every.values()]
    # One estimate measures as many simulators as fit into a few seconds; here all are wanted.
    known = estimate(configs)
    while any("like others" in note for note in known.notes):
        known = estimate(configs)
    costs = dict(zip(every, known.per_run, strict=True))
    rows = [_plan_row(name, [costs[job.directory] for job in plans[name]]) for name in plans]
    rows.append(_plan_row("**all, shared runs once**", list(costs.values())))
    header = ["plan", "runs", "updates (M)", "EFLOP", "CPU-years"]
    header += [f"{peak / 1e12:.0f} TFLOP/s days" for peak in PEAKS]
    return table([*header, "disk GB"], rows), known.notes


def _plan_row(name: str, runs: Sequence[RunCost]) -> list[str]:
    days = [sum(accelerator_seconds(run, peak) for run in runs) / HOUR / 24 for peak in PEAKS]
    return [
        name,
        str(len(runs)),
        f"{sum(run.updates for run in runs) / 1e6:,.0f}",
        f"{sum(run.flops for run in runs) / 1e18:,.1f}",
        f"{sum(run.seconds for run in runs) / YEAR:.1f}",
        *(f"{each:,.0f}" for each in days),
        f"{sum(run.disk_bytes for run in runs) / 1e9:,.0f}",
    ]


def verify_section() -> str:
    """Estimates beside real runs."""
    with tempfile.TemporaryDirectory() as home:
        found = verify(Path(home))
    rows = []
    for each in found:
        row = [each.name, str(each.updates)]
        for guess, real, unit in zip(each.predicted, each.actual, (1.0, 1e6, 1e6), strict=True):
            row.append(f"{guess / unit:.1f} / {real / unit:.1f} = {guess / real:.2f}")
        rows.append([*row, f"{each.wall:.0f}"])
    header = ["run", "updates", "processor s", "memory MB", "disk MB", "wall-clock s"]
    return table(header, rows)


def compiled_section() -> str:
    """The factors that estimates use for compiled runs."""
    widths = sorted({width for factors in COMPILED.values() for width in factors})
    rows = [
        [name, *(f"{factors[at]:.2f}" if at in factors else "" for at in widths)]
        for name, factors in COMPILED.items()
    ]
    seconds = "; ".join(
        f"{name} {constant:.0f} s and {block:.0f} s for each block"
        for name, (constant, block) in COMPILE_SECONDS.items()
    )
    shown = table(["compiled / uncompiled, by width", *map(str, widths)], rows)
    return f"{shown}\n\nCompiling, once for each depth and machine: {seconds}."


def document() -> None:
    """Write docs/cost.md."""
    torch.set_num_threads(1)
    singles = estimate([paper(v, task) for v in VARIANTS for task in TASKS], say=print)
    plans, notes = paper_section()
    text = (ROOT / "benchmarks" / "cost.md.in").read_text()
    parts = {
        "machine": f"{machine.cpu_name()}, {platform.python_version()}, torch {torch.__version__}",
        "flops": flops_section(),
        "terms": terms_section(),
        "runs": runs_section(singles),
        "plans": plans,
        "notes": "\n".join(f"- {note}" for note in notes if "calibration-" not in note),
        "compiled": compiled_section(),
        "verified": verify_section(),
        "utilisation": f"{UTILISATION:.0%}",
        "floor": f"{FLOOR * 1e3:g} ms",
    }
    for name, part in parts.items():
        text = text.replace(f"<{name}>", part)
    (ROOT / "docs" / "cost.md").write_text(text)
    print(f"wrote {ROOT / 'docs' / 'cost.md'}")


def measure_compiled() -> None:
    """Print the measurements behind `fog.cost.assumptions`."""
    for variant, width, depth in SHAPES:
        found = compiled(variant, width, depth)
        print(
            f"{variant} width {width} depth {depth}: eager {found['eager']:.2f} ms, compiled "
            f"{found['compiled']:.2f} ms, factor {found['compiled'] / found['eager']:.2f}, "
            f"compiling {duration(found['seconds'])}, {found['megabytes']:.0f} MB",
            flush=True,
        )


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("what", nargs="?", choices=["document", "verify", "compiled"])
    match parser.parse_args().what:
        case "verify":
            print(verify_section())
        case "compiled":
            measure_compiled()
        case _:
            document()


if __name__ == "__main__":
    main()
