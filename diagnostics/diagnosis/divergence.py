"""Have the values of an agent diverged? Then its signs of primacy bias may be signs of that.

Many updates on little data can make values diverge (Hussing et al., 2024, "Dissecting Deep RL with
High Update Ratios"). Priming of agents without LayerNorm does so wherever it harms, so that the
calibration cannot tell the two apart; a diagnosis says which agents are concerned.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from diagnostics.metrics.values import late_values, possible_values
from diagnostics.runs.load import Runs

FACTOR = 10
"""Values this many times as large as returns allow have diverged. Entropy bonuses add less."""


def sizes(runs: Runs) -> pd.DataFrame:
    """Indexed by run: the size of late values, and what returns allow; NaN where unknown."""
    facts = runs.runs.set_index("run")
    discount = facts["discount"] if "discount" in facts else pd.Series(np.nan, facts.index)
    return pd.DataFrame(
        {
            "late": late_values(runs.train).reindex(facts.index),
            "possible": possible_values(runs.evals, discount).reindex(facts.index),
        }
    )


def note(own: pd.DataFrame) -> str | None:
    """What to say of an agent with signs; None if its values are of a possible size.

    Args:
        own: the rows of `sizes` for its seeds.
    """
    beyond = own[(own["late"] > FACTOR * own["possible"]) | np.isinf(own["late"])]
    if len(beyond):
        where = "" if len(own) == 1 else f" in {len(beyond)} of {len(own)} seeds"
        known = beyond["possible"].notna().any()
        allowed = f", where returns allow about {_rough(beyond['possible'])}" if known else ""
        return (
            f"Values have diverged{where}: the mean Q is {_rough(beyond['late'])} in size late in "
            f"training{allowed}. The signs may come from that rather than from overfitting to "
            "early data (docs/diagnosis.md)."
        )
    if own.isna().any(axis=None):
        missing = "Q" if own["late"].isna().any() else "evaluation or discount"
        return (
            f"Whether values have diverged is not known: no {missing} was recorded. Diverged "
            "values show the same signs (docs/diagnosis.md)."
        )
    return None


def _rough(values: pd.Series) -> str:
    """The median with two digits, such as 22,000."""
    median = float(values.median())
    return f"{float(f'{median:.2g}'):,.0f}" if np.isfinite(median) else "infinite"
