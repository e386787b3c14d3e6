"""Have the values of an agent diverged? Then its signs of primacy bias may be signs of that.

Many updates on little data can make values diverge (Hussing et al., 2024, "Dissecting Deep RL with
High Update Ratios"). Priming of agents without LayerNorm does so wherever it harms, so that the
calibration cannot tell the two apart; a diagnosis says which agents are concerned.
"""

from __future__ import annotations

import pandas as pd

from diagnostics.metrics.values import late_values, possible_values
from diagnostics.runs.load import Runs

FACTOR = 10
"""Values this many times as large as returns allow have diverged. Entropy bonuses add less."""


def diverged(runs: Runs) -> pd.DataFrame:
    """Runs whose values have diverged: indexed by run, late |Q| and what their returns allow."""
    discount = runs.runs.set_index("run")["discount"]
    sizes = pd.DataFrame(
        {"late": late_values(runs.train), "possible": possible_values(runs.evals, discount)}
    )
    return sizes[sizes["late"] > FACTOR * sizes["possible"]]


def note(own: pd.DataFrame, seeds: int) -> str:
    """What to say of an agent with this many seeds.

    Args:
        own: the rows of `diverged` that are its own, at least one.
        seeds: of the agent.
    """
    where = "" if seeds == 1 else f" in {len(own)} of {seeds} seeds"
    return (
        f"Values have diverged{where}: |Q| is {_rough(own['late'])} late in training, where "
        f"returns allow about {_rough(own['possible'])}. The signs may come from that rather than "
        "from overfitting to early data (docs/diagnosis.md)."
    )


def _rough(values: pd.Series) -> str:
    """The median with two digits, such as 22,000."""
    return f"{float(f'{values.median():.2g}'):,.0f}"
