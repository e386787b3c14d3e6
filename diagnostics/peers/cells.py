"""The paper's baseline cells, one by one: which public file reproduces each, under which rule.

A cell is a mean and a population standard deviation over three seeds, printed to two decimals. A
file reproduces it if three of its seeds have both, up to rounding. Files hold up to 15 seeds, so
up to 455 triples are tried; how many triples of *wrong* tasks would have matched the same cell says
how much a match means. Every cell is also tried against every other file and under three other
rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from diagnostics.paper import tables as paper
from diagnostics.paper.methods import method, ordered
from diagnostics.peers.load import Peers
from diagnostics.peers.scores import RULES, by_rule

PAPER_RULE = "best before T"
BASELINES = ("TD-MPC2", "SimBa", "BRO")
REPRODUCED = "reproduced"
NOT_REPRODUCED = "not reproduced"
NO_RUNS = "no public runs"
_SLACK = 0.0101
_SLACK_LARGE = 0.0601
_LARGE = 1000.0
"""Cells have two decimals; public values may be rounded to two as well, above this to one."""


_NO_MATCH: dict[str, object] = {
    "replay_ratio": np.nan,
    "seeds": "",
    **dict.fromkeys(("triples", "tried", "wrong_tasks", "wrong_tasks_matching"), np.nan),
}


@cache
def _triples(seeds: int) -> NDArray[np.int64]:
    return np.array(list(combinations(range(seeds), paper.SEEDS)), dtype=np.int64).reshape(-1, 3)


@dataclass(frozen=True)
class Triples:
    """Every triple of seeds of every file and task, flat.

    Attributes:
        groups: one row per file and task: `method`, `task`, `seeds`.
        owner: position in `groups` of each triple.
        members: seeds of each triple.
        mean: of each triple.
        std: population standard deviation of each.
    """

    groups: pd.DataFrame
    owner: NDArray[np.int64]
    members: NDArray[np.int64]
    mean: NDArray[np.float64]
    std: NDArray[np.float64]

    @classmethod
    def of(cls, scores: pd.DataFrame) -> Triples:
        """From a table of `by_rule`."""
        groups: list[tuple[str, str, int]] = []
        # So that there is something to join if no run has a score.
        owners: list[NDArray[np.int64]] = [np.empty(0, np.int64)]
        members: list[NDArray[np.int64]] = [np.empty((0, 3), np.int64)]
        values: list[NDArray[np.float64]] = [np.empty((0, 3))]
        usable = scores[scores["score"].notna()]
        for (name, task), rows in usable.groupby(["method", "task"], observed=True, sort=False):
            rows = rows.sort_values("seed")
            picks = _triples(len(rows))
            owners.append(np.full(len(picks), len(groups)))
            groups.append((str(name), str(task), len(rows)))
            members.append(rows["seed"].to_numpy(np.int64)[picks])
            values.append(rows["score"].to_numpy(float)[picks])
        table = pd.DataFrame(groups, columns=["method", "task", "seeds"])
        owner, member, value = (
            np.concatenate(owners),
            np.concatenate(members),
            np.concatenate(values),
        )
        return cls(table, owner, member, value.mean(axis=1), value.std(axis=1))

    def matching(self, mean: float, std: float) -> NDArray[np.bool_]:
        """Which triples have a printed mean and deviation."""
        return np.asarray(within_rounding(self.mean, self.std, mean, std))


def within_rounding(mean: Any, std: Any, printed_mean: float, printed_std: float) -> Any:
    """Whether means and deviations are the printed ones up to rounding."""
    slack = _SLACK_LARGE if abs(printed_mean) >= _LARGE else _SLACK
    return (np.abs(mean - printed_mean) <= slack) & (np.abs(std - printed_std) <= slack)


@lru_cache(maxsize=2)
def _tables(peers: Peers) -> dict[str, Triples]:
    """The triples under every rule; kept, because several tables are made of them."""
    return {rule: Triples.of(by_rule(peers, rule)) for rule in RULES}


def cells(peers: Peers) -> pd.DataFrame:
    """The verdict on every baseline cell of the paper's six tables.

    Returns:
        One row per task and baseline: `group`, `task`, `algorithm`, `mean`, `std` as printed;
        `verdict`; `method`: the file that reproduces it under the paper's rule, of the
        algorithm's own files (the first in their order); `replay_ratio` of that file; `seeds`: the
        seeds that match, if only one triple does; `triples`: how many match of `tried`;
        `also`: further own files that match; `rules`: other rules under which an own file matches;
        `wrong_tasks`, `wrong_tasks_matching`: the same file's runs on other tasks of the metric
        held against this cell; `wrong_methods_matching`: files of other algorithms that match on
        this task.
    """
    tables = _tables(peers)
    printed = paper.printed()
    printed = printed[printed["algorithm"].isin(BASELINES)]
    metric = paper.tasks().set_index("name")["metric"]
    rows = [_cell(cell._asdict(), tables, metric) for cell in printed.itertuples(index=False)]
    return pd.DataFrame(rows)


def _cell(
    cell: dict[str, object], tables: Mapping[str, Triples], metric: pd.Series
) -> dict[str, object]:
    task, mean, std = str(cell["task"]), float(str(cell["mean"])), float(str(cell["std"]))
    algorithm = str(cell["algorithm"])
    found = tables[PAPER_RULE]
    hits = np.bincount(found.owner[found.matching(mean, std)], minlength=len(found.groups))
    groups = found.groups.assign(
        hits=hits,
        own=[method(name).family == algorithm for name in found.groups["method"]],
    )
    here = groups[groups["task"] == task]
    own = here[here["own"]].set_index("method")
    matching = [name for name in ordered(own.index) if own.loc[name, "hits"] > 0]
    row: dict[str, object] = {
        "group": cell["group"],
        "task": task,
        "algorithm": algorithm,
        "mean": mean,
        "std": std,
        "verdict": REPRODUCED if matching else NOT_REPRODUCED if len(own) else NO_RUNS,
        "method": matching[0] if matching else "",
        "also": ", ".join(matching[1:]),
        "tried_files": ", ".join(ordered(own.index)),
        "rules": ", ".join(
            rule
            for rule, table in tables.items()
            if rule != PAPER_RULE and _matches(table, task, algorithm, mean, std)
        ),
        "wrong_methods_matching": int((~here["own"] & (here["hits"] > 0)).sum()),
        **_NO_MATCH,
    }
    if not matching:
        return row
    name = matching[0]
    same = groups[(groups["method"] == name) & (groups["task"] != task)]
    same = same[same["task"].map(metric) == metric[task]]
    position = int(here.index[here["method"] == name][0])
    triples = found.members[(found.owner == position) & found.matching(mean, std)]
    return row | {
        "replay_ratio": method(name).replay_ratio,
        "seeds": ", ".join(map(str, triples[0])) if len(triples) == 1 else "",
        "triples": len(triples),
        "tried": len(_triples(int(own.loc[name, "seeds"]))),
        "wrong_tasks": len(same),
        "wrong_tasks_matching": int((same["hits"] > 0).sum()),
    }


def _matches(table: Triples, task: str, algorithm: str, mean: float, std: float) -> bool:
    hit = set(table.owner[table.matching(mean, std)])
    here = table.groups[table.groups["task"] == task]
    return any(
        position in hit and method(name).family == algorithm
        for position, name in zip(here.index, here["method"], strict=True)
    )


def by_file(peers: Peers) -> pd.DataFrame:
    """How many cells each file of an algorithm reproduces, by group of tasks and rule.

    Returns:
        Columns `algorithm`, `method`, `replay_ratio`, `group`, `rule`, `cells` (that the file has
        runs for) and `reproduced`.
    """
    printed = paper.printed()
    rows = []
    for rule, table in _tables(peers).items():
        for algorithm in BASELINES:
            wanted = printed[printed["algorithm"] == algorithm].set_index("task")
            for position, group in enumerate(table.groups.itertuples()):
                if method(group.method).family != algorithm or group.task not in wanted.index:
                    continue
                cell = wanted.loc[group.task]
                mine = table.owner == position
                hit = bool((table.matching(cell["mean"], cell["std"]) & mine).any())
                rows.append((algorithm, group.method, cell["group"], rule, hit))
    found = pd.DataFrame(rows, columns=["algorithm", "method", "group", "rule", "hit"])
    groups = found.groupby(["algorithm", "method", "group", "rule"], sort=False)["hit"]
    counted = groups.agg(cells="size", reproduced="sum").reset_index()
    counted.insert(2, "replay_ratio", [method(name).replay_ratio for name in counted["method"]])
    return counted


def chance(peers: Peers) -> pd.DataFrame:
    """How often a cell is matched by runs that cannot be behind it.

    Every baseline cell is held against all tasks of the same metric but its own, in each of its
    algorithm's files.

    Returns:
        Columns `rule`, `metric`, `wrong` (pairs of cell and wrong task tried), `matching`.
    """
    printed = paper.printed()
    printed = printed[printed["algorithm"].isin(BASELINES)]
    metric = paper.tasks().set_index("name")["metric"]
    rows = []
    for rule, table in _tables(peers).items():
        groups = table.groups
        families = np.array([method(name).family for name in groups["method"]])
        kinds = groups["task"].map(metric).to_numpy(str)
        for cell in printed.itertuples():
            hit = np.bincount(
                table.owner[table.matching(cell.mean, cell.std)], minlength=len(groups)
            )
            wrong = (families == cell.algorithm) & (kinds == cell.metric)
            wrong &= (groups["task"] != cell.task).to_numpy()
            rows.append((rule, cell.metric, int(wrong.sum()), int((hit[wrong] > 0).sum())))
    found = pd.DataFrame(rows, columns=["rule", "metric", "wrong", "matching"])
    return found.groupby(["rule", "metric"], sort=False).sum().reset_index()
