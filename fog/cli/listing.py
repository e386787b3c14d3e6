"""`fog tasks` and `fog variants`: what can be run."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from typing import Any

from fog.cli.parser import Parser
from fog.cli.table import render
from fog.settings.options import unknown
from fog.settings.tasks import DEFAULT_RESETS, GROUPS, registry
from fog.settings.variants import VARIANTS, differences


def short(number: float) -> str:
    """600000 as 600k, 1000000 as 1M."""
    for unit, suffix in ((1_000_000, "M"), (1_000, "k")):
        if number >= unit and number % (unit / 10) == 0:
            return f"{number / unit:g}{suffix}"
    return f"{number:g}"


def tasks(argv: Sequence[str]) -> int:
    """List the paper's tasks with budget, reset list and printed scores."""
    parser = Parser("tasks", "List the paper's 41 tasks, with the results it prints.")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--group", metavar="NAME", help=f"only one of: {', '.join(GROUPS)}")
    options = parser.parse(argv)
    if options.group is not None and options.group not in GROUPS:
        raise unknown("group", options.group, GROUPS)
    chosen = [task for task in registry().values() if options.group in (None, task.group)]
    if options.json:
        print(json.dumps([_task_record(task) for task in chosen], indent=2))
        return 0
    rows = [
        [
            task.name,
            task.group,
            short(task.steps),
            "default" if task.reset_steps == DEFAULT_RESETS else "own",
            f"{task.pessimism:g}",
            task.metric,
            *(f"{task.paper_scores[name].mean:.2f}" for name in ("FoG", "BRO", "SimBa", "TD-MPC2")),
        ]
        for task in chosen
    ]
    header = ["task", "group", "steps", "resets", "pessimism", "metric"]
    header += ["FoG*", "BRO*", "SimBa*", "TD-MPC2*"]
    print(render(header, rows, right=frozenset({2, 4, 6, 7, 8, 9})))
    print(f"\n{len(rows)} tasks. * as printed in the paper, mean of 3 seeds. Beyond these: gym:ID,")
    print("dmc:domain-task, mw:task, hb:id, for example gym:Pendulum-v1 or dmc:cheetah-run.")
    print(f"Default resets: {_resets(DEFAULT_RESETS)}.")
    own: dict[tuple[int, ...], list[str]] = {}
    for task in chosen:
        own.setdefault(task.reset_steps, []).append(task.name)
    for steps, names in own.items():
        if steps != DEFAULT_RESETS:
            print(f"Resets of {', '.join(names)}: {_resets(steps)}.")
    return 0


def _resets(steps: Sequence[int]) -> str:
    return " ".join(short(at) for at in steps)


def _task_record(task: Any) -> dict[str, Any]:
    scores = {name: score._asdict() for name, score in task.paper_scores.items()}
    return dataclasses.asdict(task) | {"paper_scores": scores}


def variants(argv: Sequence[str]) -> int:
    """List the named variants and what each changes against FoG."""
    parser = Parser(
        "variants", "List the named agents: each is a set of overrides of FoG's settings."
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse(argv)
    if options.json:
        records = [
            {
                "name": variant.name,
                "family": variant.family,
                "summary": variant.summary,
                "resets": variant.resets,
                "overrides": differences(variant),
            }
            for variant in VARIANTS.values()
        ]
        print(json.dumps(records, indent=2))
        return 0
    family = None
    width = max(map(len, VARIANTS))
    for variant in VARIANTS.values():
        if variant.family != family:
            family = variant.family
            print(f"\n{family}" if variant.name != next(iter(VARIANTS)) else family)
        print(f"  {variant.name:<{width}}  {variant.summary}")
    print("\n`fog train --variant NAME --dry-run --task T` prints every setting of a variant.")
    return 0
