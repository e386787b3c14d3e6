"""A calibration table of invented agents, for tests of what is made of such a table."""

from __future__ import annotations

import numpy as np
import pandas as pd

from diagnostics.diagnosis.calibration import FACTS, Calibration
from diagnostics.diagnosis.signs import SIGNS

GOOD = ("plasticity", "primacy_index")
"""Signs that separate; all others are noise."""


def table(seeds: int = 8, tasks: tuple[str, ...] = ("easy", "other")) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    rows = []
    for task in tasks:
        for dose, cure, norm in (
            (0, "none", False), (0, "none", True), (3_000, "none", False), (10_000, "none", False),
            (100_000, "none", False), (100_000, "one_reset", False), (100_000, "none", True),
            (100_000, "decay", False),
        ):  # fmt: skip
            sick = dose >= 10_000 and cure != "one_reset" and not norm
            for seed in range(seeds):
                group = (
                    "unprimed" if dose == 0 else "reset" if "reset" in cure else "protected" if norm
                    else "low dose" if dose < 10_000 else "primed" if cure == "none" else "treated"
                )  # fmt: skip
                facts = (
                    "calibration" if task == tasks[0] else "held out", task, "sac", seed, dose,
                    norm, cure, group, 5.0 if sick else 100.0, "abc",
                )  # fmt: skip
                row = dict(zip(FACTS, facts, strict=True))
                for sign in SIGNS:
                    row[sign.name] = rng.normal()
                row["plasticity"] = 0.1 if sick else 0.6
                row["plasticity"] += 0.02 * rng.normal() - 1e-6 * dose
                row["primacy_index"] = (1.0 if sick else -1.0) + 0.1 * rng.normal()
                rows.append(row)
    return pd.DataFrame(rows)


def calibration() -> Calibration:
    return Calibration(table())
