"""Which signs tell agents of known primacy bias from healthy ones."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from diagnostics.diagnosis.calibration import USABLE, Calibration, separation
from diagnostics.diagnosis.signs import SIGNS
from diagnostics.plots.calibration import areas, dose_response
from diagnostics.plots.card import Plot
from diagnostics.studies.page import MissingDataError, Page
from diagnostics.studies.study import Study

STUDY = Study(name="calibration", order=15)


def separations(page: Page, *, calibration: str | None = None) -> pd.DataFrame:
    """How well each sign separates, by task: areas with their intervals, and the threshold."""
    known = _read(calibration)
    rows = []
    for task, values in known.values.groupby("task", sort=False):
        for sign in SIGNS:
            found = separation(sign, values)
            rows.append(
                {
                    "task": task,
                    "set": values["set"].iloc[0],
                    "sign": sign.name,
                    "primed": found.primed,
                    "unprimed": found.unprimed,
                    "reset": found.reset,
                    **_ends("from_unprimed", found.from_unprimed),
                    **_ends("from_reset", found.from_reset),
                    **_ends("dose_response", found.dose_response),
                    **_ends("with_layer_norm", found.protected),
                    "threshold": known.thresholds.get(sign.name, float("nan")),
                }
            )
    return pd.DataFrame(rows)


def _ends(name: str, found: tuple[float, float, float]) -> dict[str, float]:
    return {name: found[0], f"{name}_low": found[1], f"{name}_high": found[2]}


def roc_areas(page: Page, *, calibration: str | None = None) -> Plot:
    """The areas of all signs, calibration and held-out task beside each other."""
    table = separations(page, calibration=calibration)
    table = table.assign(
        task=table["task"] + " (" + table["set"] + ")",
        estimate=table["from_unprimed"],
        low=table["from_unprimed_low"],
        high=table["from_unprimed_high"],
    )
    table = table[table["estimate"].notna()]
    if table.empty:
        raise MissingDataError("the calibration table has no primed and unprimed runs of one task")
    used = list(_read(calibration).thresholds)
    return areas(table, used, usable=USABLE, title="Which signs separate (bold: used)")


def doses(page: Page, *, calibration: str | None = None, held_out: bool = False) -> Plot:
    """Every sign against the dose."""
    known = _read(calibration)
    values = known.values[known.values["set"] == ("held out" if held_out else "calibration")]
    if values.empty:
        raise MissingDataError("the calibration table has no held-out task")
    task = values["task"].iloc[0]
    return dose_response(
        values,
        {sign.name: sign.name for sign in SIGNS},
        known.thresholds,
        title=f"Signs by dose on {task} (bold: used; dashed: threshold)",
    )


def _read(path: str | None) -> Calibration:
    return Calibration.read(None if path is None else Path(path))
