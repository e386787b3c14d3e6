"""How large a critic's values are, and how large they can be."""

from __future__ import annotations

import numpy as np
import pandas as pd

_LATE = 0.8
"""Late in training: after this share of the steps made so far."""


def late_values(train: pd.DataFrame) -> pd.Series:
    """Size of the training batches' mean Q in the last fifth of each run, by run.

    The median, because the values of a run that diverges span many powers of ten. Infinite if Q is
    not finite somewhere in that fifth. Runs that log no Q are left out.

    Args:
        train: columns `run`, `env_step`, `q`, of which the last may be missing.
    """
    if "q" not in train:
        return pd.Series(dtype=float)
    table = train.assign(q=pd.to_numeric(train["q"], errors="coerce").astype(float))
    runs = table.groupby("run")
    late = (table["env_step"] > _LATE * runs["env_step"].transform("max")) & (
        runs["q"].transform("count") > 0
    )
    sizes = table["q"].abs()[late].fillna(np.inf).groupby(table["run"][late])
    return sizes.median().where(np.isfinite(sizes.max()), np.inf)


def possible_values(evals: pd.DataFrame, discount: pd.Series) -> pd.Series:
    """Roughly the largest |Q| that an agent's returns allow, by run.

    That is the value of a state from which every step brings the mean reward of the evaluation
    episode in which it was largest in size; a mean reward below 1 counts as 1, because rewards may
    be sparse. NaN where the discount is unknown or 1, and no row for runs without evaluations.

    Args:
        evals: columns `run`, `return`, `length`, one row per evaluation episode.
        discount: of each run, indexed by run.
    """
    if not {"return", "length"} <= set(evals):
        return pd.Series(dtype=float)
    returns, lengths = (
        pd.to_numeric(evals[name], errors="coerce").astype(float) for name in ("return", "length")
    )
    mean = (returns / lengths).abs()
    known = np.isfinite(mean)
    largest = mean[known].groupby(evals["run"][known]).max().clip(lower=1)
    factors = pd.to_numeric(discount, errors="coerce").astype(float)
    return largest / (1 - factors.where(factors < 1)).reindex(largest.index)
