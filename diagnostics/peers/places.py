"""Which three seeds are behind a cell: their places among all seeds of the file.

Files hold 5, 10 or 15 seeds, cells three. The seeds that reproduce a cell differ from task to task,
but not their places: sorted by their best evaluation up to T, they are the 4th, 7th and 10th of 10
or 15 seeds, and the first three of 5. With places fixed there is one triple per cell and nothing
left to choose, so that a match is worth far more than one of the best of 455.

Places were read off the matches, they are not in the paper; a file can show that they fit, not why.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from diagnostics.paper import tables as paper
from diagnostics.paper.methods import method, ordered
from diagnostics.peers.cells import BASELINES, PAPER_RULE, within_rounding
from diagnostics.peers.load import Peers
from diagnostics.peers.scores import by_rule

SORTED_BY = "best up to T"


def places(seeds: int) -> tuple[int, int, int]:
    """Places of the three seeds behind a cell, counted from the lowest, in a file of so many."""
    return (4, 7, 10) if seeds >= 10 else (1, 2, 3)


def at_places(peers: Peers) -> pd.DataFrame:
    """Every baseline cell against the one triple at the fixed places of each of its files.

    Returns:
        Columns `group`, `task`, `algorithm`, `mean`, `std` as printed, `method`, `seeds` (of the
        file), `found_mean`, `found_std` (of the triple), `reproduced`, and `all_seeds`: the mean
        over all seeds of the file under the same rule.
    """
    table = by_rule(peers, PAPER_RULE).rename(columns={"score": "best"})
    table["order"] = by_rule(peers, SORTED_BY)["score"]
    runs = {
        key: rows.sort_values(["order", "best"], kind="stable")["best"].to_numpy(float)
        for key, rows in table.dropna().groupby(["method", "task"], sort=False)
    }
    rows = []
    printed = paper.printed()
    for cell in printed[printed["algorithm"].isin(BASELINES)].itertuples():
        files = [name for name, task in runs if task == cell.task]
        for name in ordered(files):
            best = runs[(name, cell.task)]
            if method(name).family != cell.algorithm or len(best) < paper.SEEDS:
                continue
            three = best[np.array(places(len(best))) - 1]
            rows.append(
                {
                    "group": cell.group,
                    "task": cell.task,
                    "algorithm": cell.algorithm,
                    "mean": cell.mean,
                    "std": cell.std,
                    "method": name,
                    "seeds": len(best),
                    "found_mean": float(three.mean()),
                    "found_std": float(three.std()),
                    "reproduced": within_rounding(three.mean(), three.std(), cell.mean, cell.std),
                    "all_seeds": float(best.mean()),
                }
            )
    return pd.DataFrame(rows)


def counted(peers: Peers) -> pd.DataFrame:
    """Cells reproduced by the triple at the fixed places, by file and group.

    Returns:
        Columns `algorithm`, `method`, `group`, `seeds` (of the file), `places`, `cells`,
        `reproduced`, and `printed_over_all`: the mean ratio of a reproduced cell to the mean over
        all seeds of its file.
    """
    table = at_places(peers)
    ratio = table["mean"] / table["all_seeds"]
    table["ratio"] = ratio.where(table["reproduced"] & (table["all_seeds"] > 0))
    keys = ["algorithm", "method", "group", "seeds"]
    groups = table.groupby(keys, sort=False)
    found = groups.agg(
        cells=("reproduced", "size"),
        reproduced=("reproduced", "sum"),
        printed_over_all=("ratio", "mean"),
    ).reset_index()
    shown = [", ".join(map(str, places(seeds))) for seeds in found["seeds"]]
    found.insert(4, "places", shown)
    return found
