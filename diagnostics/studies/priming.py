"""Primacy bias by dose: what a known amount of it does, and what cures it.

This is not the paper's study but Nikishin et al.'s "heavy priming": an agent makes K updates on its
first transitions before training continues (`priming_updates`). `results/priming` holds the plans.
The contrasts were written down before their runs, after pilots with other seeds.
"""

from __future__ import annotations

import pandas as pd

from diagnostics.metrics.values import late_values
from diagnostics.plots.card import Plot
from diagnostics.plots.layout import step_label
from diagnostics.plots.priming import by_condition
from diagnostics.studies import per_run
from diagnostics.studies.claims import Claim, late_returns
from diagnostics.studies.page import MissingDataError, Page
from diagnostics.studies.study import Study

DOSES = (0, 3_000, 10_000, 30_000, 100_000)
"""Priming updates of the study, on 200 transitions."""
HIGHEST = DOSES[-1]
HELD_OUT = ("HalfCheetah-v4",)
"""The second task: its plan has the lowest and the highest dose, and resets as the only cure."""

DEMONSTRATION: dict[str, tuple[str, str, dict[str, object]]] = {
    "Unprimed SAC": ("unprimed", "plain-sac", {"priming_updates": 0}),
    "Primed": ("primed", "plain-sac", {"priming_updates": HIGHEST}),
    "Primed, reset once": (
        "primed",
        "plain-sac-early-reset",
        {"priming_updates": HIGHEST, "reset_steps": (2_000,)},
    ),
    "Primed, with LayerNorm": ("primed", "norm-sac", {"priming_updates": HIGHEST}),
}
"""What `fog reproduce` trains: by name the folder, the variant and its settings."""


def _primed(pairs: str) -> str:
    """Every variant of a text such as `a > b` with the highest dose."""
    sides = [pair.split(">") for pair in pairs.split(",")]
    return ", ".join(" > ".join(f"{side.strip()}@{HIGHEST}" for side in pair) for pair in sides)


_CLAIMS = (
    Claim(
        "priming harms SAC without LayerNorm",
        "10,000 updates and more on the first 200 transitions lower what plain SAC returns later.",
        late_returns(f"plain-sac > plain-sac@{HIGHEST}")
        + late_returns("plain-sac > plain-sac@10000, plain-sac > plain-sac@30000", not_on=HELD_OUT)
        + late_returns("plain-sac > plain-sac@3000", counts=False, not_on=HELD_OUT),
    ),
    Claim(
        "LayerNorm protects",
        "Primed alike, SAC with LayerNorm (in actor and critics) returns more than SAC without.",
        late_returns(_primed("norm-sac > plain-sac"))
        + late_returns(f"norm-sac > plain-sac, norm-sac > norm-sac@{HIGHEST}", counts=False),
    ),
    *(
        Claim(
            f"{name} primed SAC",
            f"Primed alike, SAC without LayerNorm returns more with {how} than without.",
            late_returns(_primed(f"plain-sac-{cure} > plain-sac"), not_on=not_on)
            + late_returns(_primed(f"norm-sac-{cure} > norm-sac"), counts=False, not_on=HELD_OUT),
        )
        for name, cure, how, not_on in (
            ("resets cure", "reset", "resets", ()),
            ("ER decay cures", "decay", "ER decay", HELD_OUT),
            ("resets and ER decay cure", "reset-decay", "resets and ER decay", HELD_OUT),
            ("growth cures", "grow", "growing critics", HELD_OUT),
        )
    ),
    # Planned when the others had been judged: resets at 3,000 and 10,000 steps left too little time
    # to learn the task again, even for a healthy agent.
    Claim(
        "one early reset cures primed SAC",
        "Primed alike, SAC without LayerNorm returns more if it is reset once, a tenth into "
        "training.",
        late_returns(_primed("plain-sac-early-reset > plain-sac"))
        + late_returns(f"plain-sac-early-reset@{HIGHEST} > plain-sac", counts=False)
        + late_returns("plain-sac-early-reset > plain-sac", counts=False, not_on=HELD_OUT),
    ),
)

STUDY = Study(
    name="priming",
    order=10,
    variants=tuple(
        f"{family}-sac{cure}"
        for family in ("plain", "norm")
        for cure in ("", "-reset", "-early-reset", "-decay", "-reset-decay", "-grow")
    ),
    claims=_CLAIMS,
    judged_with="priming",
)

_FAMILIES = {"plain-sac": "SAC without LayerNorm", "norm-sac": "SAC with LayerNorm"}
_CURES = {
    "-reset": "later\nresets",
    "-early-reset": "early\nreset",
    "-decay": "ER\ndecay",
    "-reset-decay": "resets,\nER decay",
    "-grow": "growth",
}


def returns(page: Page) -> Plot:
    """Late returns by dose, and at the highest dose by cure, of both families."""
    page.require()
    return by_condition(
        *_by_condition(page, per_run.late_return(page.runs)),
        title="What priming costs, and what each cure gives back",
        ylabel="late return",
        note="Return in the last fifth of training.",
    )


def values(page: Page) -> Plot:
    """How large the critic's mean value is late in training, by the same conditions."""
    page.require()
    return by_condition(
        *_by_condition(page, late_values(page.runs.train)),
        title="What priming does to the critic's values",
        ylabel="late |mean Q|",
        note="Size of the training batches' mean Q in the last fifth of training (median).",
        logarithmic=True,
    )


def _by_condition(page: Page, late: pd.Series) -> tuple[pd.DataFrame, dict[str, dict[str, str]]]:
    """What `by_condition` draws of one number for each run."""
    facts = page.runs.runs.set_index("run").assign(value=late)
    facts = facts[(facts["status"] == "finished") & facts["value"].notna()]
    rows = []
    for run in facts.itertuples():
        family = "-".join(str(run.variant).split("-")[:2])
        cure = str(run.variant).removeprefix(family)
        condition = _condition(int(run.priming_updates), cure)
        rows.append((run.task, _FAMILIES[family], condition, int(run.seed), float(run.value)))
    if not rows:
        raise MissingDataError(f"no run of the priming study in {page.source} has finished")
    columns = ["task", "family", "condition", "seed", "value"]
    table = pd.DataFrame(rows, columns=columns).sort_values(
        ["task", "family", "seed"], ascending=False
    )
    conditions = {
        "priming updates": {_condition(dose, ""): step_label(dose) for dose in DOSES},
        f"{step_label(HIGHEST)} updates, and": {
            _condition(HIGHEST, cure): text for cure, text in _CURES.items()
        },
        "unprimed, and": {_condition(0, cure): _CURES[cure] for cure in ("-reset", "-early-reset")},
    }
    return table, _present(conditions, set(table["condition"]))


def _condition(dose: int, cure: str) -> str:
    return f"{dose}{cure}"


def _present(conditions: dict[str, dict[str, str]], known: set[str]) -> dict[str, dict[str, str]]:
    """Without the conditions that no run has."""
    kept = {
        heading: {name: text for name, text in group.items() if name in known}
        for heading, group in conditions.items()
    }
    return {heading: group for heading, group in kept.items() if group}
