"""The paper's baseline cells against the public files, as tables and one figure."""

from __future__ import annotations

import pandas as pd

from diagnostics.metrics.scores import Grid
from diagnostics.paper import tables as paper
from diagnostics.paper.methods import method, ordered
from diagnostics.peers.cells import (
    NOT_REPRODUCED,
    PAPER_RULE,
    REPRODUCED,
    by_file,
    cells,
    chance,
)
from diagnostics.peers.load import Peers
from diagnostics.peers.places import counted
from diagnostics.peers.scores import scores
from diagnostics.plots.peers import Plot, cell_matrix
from diagnostics.studies.page import Page
from diagnostics.studies.peer_claims import peer_evidence
from diagnostics.studies.shared.opponents import needed
from diagnostics.studies.study import Study

STUDY = Study(name="published_tables", order=11)

CHECKED = ("DMC-Easy", "DMC-Medium", "DMC-Hard", "HumanoidBench")
"""Groups on which all three baselines have public runs."""


def sources(page: Page, *, peers: Peers | None) -> pd.DataFrame:
    """What was loaded: tasks, seeds, protocol, repository and licence of each file."""
    return needed(peers).overview()


def verdicts(page: Page, *, peers: Peers | None) -> Plot:
    """A figure of every baseline cell with the file that reproduces it."""
    table = cells(needed(peers))
    done = table["verdict"] == REPRODUCED
    checked = table["group"].isin(CHECKED)
    return cell_matrix(
        table,
        title="The paper's baseline cells recomputed from public files",
        remark=f"Rule: {PAPER_RULE}, mean and population deviation of three seeds, both to "
        f"rounding. {int((done & checked).sum())} of {int(checked.sum())} cells of DMC and "
        "HumanoidBench are reproduced. A name in a cell is the file that does so.",
    )


def cell_table(page: Page, *, peers: Peers | None) -> pd.DataFrame:
    """Every baseline cell: verdict, file, replay ratio, and how strong the match is."""
    table = cells(needed(peers))
    shown = table.assign(
        printed=[f"{row.mean:.2f} ± {row.std:.2f}" for row in table.itertuples()],
        matching=[_of(row.triples, row.tried) for row in table.itertuples()],
        wrong=[_of(row.wrong_tasks_matching, row.wrong_tasks) for row in table.itertuples()],
    )
    names = {
        "group": "group",
        "task": "task",
        "algorithm": "algorithm",
        "printed": "printed",
        "verdict": "verdict",
        "method": "file",
        "replay_ratio": "replay ratio",
        "matching": "matching triples of seeds",
        "seeds": "seeds, if one triple",
        "wrong": "wrong tasks that match",
        "rules": "other rules that match",
        "wrong_methods_matching": "other algorithms' files that match",
        "also": "other own files that match",
    }
    return shown[list(names)].rename(columns=names)


def _of(count: float, total: float) -> str:
    return "" if pd.isna(count) else f"{count:.0f} of {total:.0f}"


def counts(page: Page, *, peers: Peers | None) -> pd.DataFrame:
    """Cells reproduced under the paper's rule: one row per file, one column per group."""
    table = by_file(needed(peers))
    return _counted(table[table["rule"] == PAPER_RULE], ["algorithm", "method", "replay_ratio"])


def rules(page: Page, *, peers: Peers | None) -> pd.DataFrame:
    """Cells reproduced by the best file of each algorithm, one row per rule."""
    table = cells_by_rule(needed(peers))
    return _counted(table, ["rule"])


def cells_by_rule(peers: Peers) -> pd.DataFrame:
    """Cells that a file of their algorithm reproduces: `rule`, `group`, `cells`, `reproduced`."""
    verdict = cells(peers)
    there = verdict[verdict["tried_files"] != ""]
    rows = []
    for cell in there.itertuples():
        rows.append((PAPER_RULE, cell.group, cell.verdict == REPRODUCED))
        for rule in ("best up to T", "last up to T", "last before T"):
            rows.append((rule, cell.group, rule in cell.rules.split(", ")))
    found = pd.DataFrame(rows, columns=["rule", "group", "hit"])
    groups = found.groupby(["rule", "group"], sort=False)["hit"]
    return groups.agg(cells="size", reproduced="sum").reset_index()


def _counted(table: pd.DataFrame, rows: list[str]) -> pd.DataFrame:
    text = table["reproduced"].astype(int).astype(str) + " of " + table["cells"].astype(str)
    wide = table.assign(text=text).pivot(index=rows, columns="group", values="text")
    groups = [group for group in dict.fromkeys(paper.tasks()["group"]) if group in wide]
    wide = wide[groups].fillna("").reset_index()
    if "method" in wide:
        order = {name: place for place, name in enumerate(ordered(wide["method"]))}
        wide = wide.sort_values("method", key=lambda at: at.map(order), kind="stable")
    else:
        wide = wide.sort_values("rule", key=lambda at: at != PAPER_RULE, kind="stable")
    wide.columns.name = None
    return wide


def strength(page: Page, *, peers: Peers | None) -> pd.DataFrame:
    """How often runs of wrong tasks match a cell, under each rule."""
    table = chance(needed(peers))
    return table.rename(
        columns={
            "wrong": "cell against a wrong task, pairs tried",
            "matching": "of these, matching",
        }
    )


def seed_places(page: Page, *, peers: Peers | None) -> pd.DataFrame:
    """Cells reproduced by the three seeds at fixed places, with nothing left to choose."""
    table = counted(needed(peers))
    table = table[table["reproduced"] > 0]
    names = {
        "seeds": "seeds in the file",
        "places": "places, from the lowest",
        "printed_over_all": "printed / mean over all seeds",
    }
    return table.rename(columns=names)


def unmatched(page: Page, *, peers: Peers | None) -> pd.DataFrame:
    """Cells that no file reproduces though there are public runs, beside what those runs say."""
    known = needed(peers)
    table = cells(known)
    table = table[table["verdict"] == NOT_REPRODUCED]
    found = scores(known, Grid(None))
    rows = []
    for cell in table.itertuples():
        for name in cell.tried_files.split(", "):
            own = found[(found["method"] == name) & (found["task"] == cell.task)]["best_score"]
            rows.append(
                {
                    "group": cell.group,
                    "task": cell.task,
                    "algorithm": cell.algorithm,
                    "printed": f"{cell.mean:.2f} ± {cell.std:.2f}",
                    "file": name,
                    "replay ratio": method(name).replay_ratio,
                    "public, same rule": f"{own.mean():.2f} ± {own.std(ddof=0):.2f}",
                    "range of seeds": f"{own.min():.2f} to {own.max():.2f}",
                    "seeds": len(own),
                }
            )
    return pd.DataFrame(rows)


def ahead(page: Page, *, peers: Peers | None) -> pd.DataFrame:
    """FoG against each opponent in each suite: the rows of `fog claims --peers`."""
    table = peer_evidence(needed(peers))
    shown = table.drop(columns=["ratio", "ended", "claim", "p"])
    return shown.rename(columns={"task": "suite", "sides": "against", "counts": "counts"})
