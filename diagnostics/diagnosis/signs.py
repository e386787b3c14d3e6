"""Signs of primacy bias: numbers of a run that may tell a biased agent from a healthy one.

Whether a sign can tell is not decided here. `diagnostics.diagnosis.calibration` measures it on
agents with a known dose of primacy bias, and a verdict uses only the signs that passed.

Each sign is one number per measurement. A run's own number is the mean over the second half of what
it has been trained so far: primacy bias is what early data does to later learning.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from diagnostics.diagnosis import measures
from diagnostics.runs.load import Runs

LATE = 0.5
"""Measurements after this share of the steps made so far count."""


@dataclass(frozen=True)
class Sign:
    """One candidate.

    Attributes:
        name: in tables and JSON.
        title: in a sentence.
        probe: what `--probes` must name to record it.
        higher: whether a biased agent is expected to have more of it. Written down before the
            calibration: a sign that separates the other way round is not used.
        cannot_tell: what the number does not say.
        measure: the number at every measurement, as columns `run`, `env_step`, `value`.
    """

    name: str
    title: str
    probe: str
    higher: bool
    cannot_tell: str
    measure: measures.Measure

    def late(self, runs: Runs) -> pd.DataFrame:
        """The finite numbers of the second half of each run."""
        table = self.measure(runs)
        table = table[np.isfinite(table["value"].astype(float))]
        reached = runs.runs.set_index("run")["env_step"]
        return table[table["env_step"] > LATE * table["run"].map(reached).astype(float)]

    def by_run(self, runs: Runs) -> pd.Series:
        """The mean of `late` for each run that has it."""
        return self.late(runs).groupby("run")["value"].mean().astype(float)


SIGNS: tuple[Sign, ...] = (
    Sign(
        "primacy_index",
        "loss on the newest data over the oldest (primacy index), ln",
        "critic_loss",
        True,
        "why: the newest data has been drawn least, and larger targets have larger losses",
        measures.primacy_index("mean"),
    ),
    Sign(
        "primacy_index_scaled",
        "the same, each loss over the variance of its targets, ln",
        "critic_loss",
        True,
        "why: the newest data has been drawn least",
        measures.primacy_index("scaled"),
    ),
    Sign(
        "warmstart_gap",
        "loss of today's critic over a fresh one's after learning a change on new data, ln",
        "warmstart",
        True,
        "the cause: dead units, large weights and poor features all raise it",
        measures.warmstart_gap("change"),
    ),
    Sign(
        "warmstart_gap_targets",
        "the same, on the targets themselves, where today's critic has a head start, ln",
        "warmstart",
        True,
        "a critic that knows its targets already from one that learns them fast",
        measures.warmstart_gap("targets"),
    ),
    Sign(
        "plasticity",
        "how well the critic can fit random targets (1 perfectly, 0 not at all)",
        "plasticity",
        False,
        "how useful the features are for the real targets",
        measures.plasticity,
    ),
    Sign(
        "dormant_activation",
        "share of the critic's neurons dormant by activation",
        "dormancy",
        True,
        "whether the neurons are needed",
        measures.dormant_share("activation"),
    ),
    Sign(
        "dormant_gradient",
        "share of the critic's neurons dormant by gradient",
        "dormancy",
        True,
        "whether the neurons are needed",
        measures.dormant_share("gradient"),
    ),
    Sign(
        "srank",
        "rank of the critic's features (srank) over their number",
        "srank",
        False,
        "a simple task from a collapsed network",
        measures.rank_share("srank"),
    ),
    Sign(
        "effective_rank",
        "effective rank of the critic's features over their number",
        "srank",
        False,
        "a simple task from a collapsed network",
        measures.rank_share("effective_rank"),
    ),
    Sign(
        "weight_norm",
        "root mean square of the critic's parameters, ln",
        "norms",
        True,
        "harm: before LayerNorm weights grow without changing the function",
        measures.weight_norm,
    ),
    Sign(
        "offpolicy",
        "how much further the oldest actions are from the policy than the newest",
        "offpolicy",
        True,
        "whether old data harms",
        measures.offpolicy,
    ),
    Sign(
        "interference",
        "cosine of the critic's gradients on the oldest and the newest data",
        "interference",
        False,
        "conflict from noise: gradients of a fitted critic are small and random",
        measures.interference,
    ),
    Sign(
        "draws_imbalance",
        "draws of the oldest tenth of the data over the newest tenth, ln",
        "sample_counts",
        True,
        "what was learned from the draws; it describes the sampler and not the agent",
        measures.draws_imbalance,
    ),
    Sign(
        "validation_gap",
        "loss on unseen episodes over the newest stored data, both scale-free, ln",
        "validation",
        True,
        "overfitting from the difference between evaluation and exploration",
        measures.validation_gap,
    ),
)

BY_NAME = {sign.name: sign for sign in SIGNS}


def measured(runs: Runs) -> pd.DataFrame:
    """Every sign of every run: indexed by run, one column per sign, NaN where not recorded."""
    index = pd.Index(runs.identity["run"], name="run")
    return pd.DataFrame({sign.name: sign.by_run(runs).reindex(index) for sign in SIGNS})
