"""Names for groups of runs that may be averaged: the variant, and whatever else differs.

Seeds of one task, variant and setting belong together. Runs of another scale, length or setting
do not, even if their variant has the same name, so their label says what differs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from fog.records.runtime import RUNTIME

SIZE = ("scale", "steps")
"""Settings that must agree between all variants of a task for a fair comparison."""

DOSE = "priming_updates"
"""Runs of a task that differ in it say so, whatever their variants."""

_NO_INFLUENCE = frozenset({*RUNTIME, "task", "variant", "seed", "probes", "log_every"})
"""Settings that name a run, or say where and how it ran, but not what was computed."""


_SINCE: dict[str, Any] = {DOSE: 0}
"""What runs did that were recorded before a setting existed."""


def labels(identity: pd.DataFrame, configs: Sequence[dict[str, Any]]) -> list[str]:
    """A label for every run, equal for runs that may be averaged over their seeds.

    The variant alone where that is clear; otherwise `sac (scale 0.02)`, or `fog (epsilon 0.001)`
    for runs of one size that differ in some other setting. `identity` has a row per run with `task`
    and `variant`; `configs` are the settings of the same runs, by bare name.
    """
    configs = [{**_SINCE, **config} for config in configs]
    table = pd.DataFrame(
        [
            {
                name: repr(value)
                for name, value in config.items()
                if name not in _NO_INFLUENCE or name in SIZE
            }
            for config in configs
        ],
        index=identity.index,
    )
    table = table.reindex(columns=[*SIZE, *table.columns.difference(SIZE)])
    extra = pd.Series("", index=identity.index)
    for _, rows in identity.groupby("task").groups.items():
        told = _differing(table.loc[rows, list(SIZE)])
        # Another scale means another length: the first says it all.
        told = told[:1] if "scale" in told else told
        told += _differing(table.loc[rows, [DOSE]])
        extra[rows] = _spelled(table.loc[rows, told], configs)
    size = [table[name].astype(object).fillna("") for name in (*SIZE, DOSE)]
    for _, rows in identity.groupby(["task", "variant", *size]).groups.items():
        told = _differing(table.loc[rows])
        if all(another_cuer(configs[row]) for row in rows):
            told = [*told, "cuer_quota"]
        extra[rows] += _spelled(table.loc[rows, told], configs)
    return [
        variant if not more else f"{variant} ({more.removeprefix(', ')})"
        for variant, more in zip(identity["variant"], extra, strict=True)
    ]


def another_cuer(config: Mapping[str, Any]) -> bool:
    """Whether a run used CUER's non-default reading; its label always says so."""
    return config.get("sampler") == "cuer" and config.get("cuer_quota") == "step"


def _differing(table: pd.DataFrame) -> list[str]:
    return [name for name in table.columns if table[name].nunique(dropna=False) > 1]


def _spelled(table: pd.DataFrame, configs: Sequence[dict[str, Any]]) -> list[str]:
    """`, name value` for each column, one text per row; unknown values stay unsaid."""
    return [
        "".join(
            f", {name.replace('_', ' ')} {_shown(configs[position][name])}"
            for name in table.columns
            if name in configs[position]
        )
        for position in table.index
    ]


def _shown(value: Any) -> str:
    if isinstance(value, list | tuple):
        return "/".join(str(item) for item in value) or "none"
    return f"{value:g}" if isinstance(value, float) else str(value)
