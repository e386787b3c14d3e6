"""How large a critic's values are, and how large they can be."""

from __future__ import annotations

import pandas as pd

_LATE = 0.8
"""Late in training: after this share of the steps made so far."""


def late_values(train: pd.DataFrame) -> pd.Series:
    """Median |Q| of the training batches in the last fifth of each run, by run.

    The median, because the values of a run that diverges span many powers of ten.

    Args:
        train: columns `run`, `env_step`, `q`; empty if no run has them.
    """
    if "q" not in train:
        return pd.Series(dtype=float)
    table = train[["run", "env_step", "q"]].dropna()
    late = table[table["env_step"] > _LATE * table.groupby("run")["env_step"].transform("max")]
    return late["q"].abs().groupby(late["run"]).median()


def possible_values(evals: pd.DataFrame, discount: pd.Series) -> pd.Series:
    """Roughly the largest |Q| that an agent's returns allow, by run.

    That is the value of a state from which every step brings the mean reward of the run's best (or
    worst) evaluation episode; a mean reward below 1 counts as 1, because rewards may be sparse.

    Args:
        evals: columns `run`, `return`, `length`, one row per evaluation episode.
        discount: of each run, indexed by run.
    """
    mean = (evals["return"] / evals["length"]).abs().groupby(evals["run"]).max()
    return mean.clip(lower=1) / (1 - discount.astype(float))
