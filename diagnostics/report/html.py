"""One self-contained HTML page about all runs below some folders.

The file contains everything: styles, script and images. It opens from `file://`, needs no network,
and links to the run directories and to executed notebooks by relative paths.
"""

from __future__ import annotations

import base64
import io
import json
import math
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jinja2
from matplotlib.figure import Figure

from diagnostics.diagnosis.calibration import Calibration
from diagnostics.diagnosis.verdict import VERDICTS, Diagnosis, diagnoses
from diagnostics.errors import AnalysisError
from diagnostics.metrics.curves import mean_curves
from diagnostics.metrics.scores import curve
from diagnostics.paper.names import label as paper_name
from diagnostics.plots.curves import FEW, Plot, band_text
from diagnostics.plots.save import code_version, spell_out
from diagnostics.plots.style import styled
from diagnostics.report.chart import Chart, chart
from diagnostics.report.compare import TAU, compare
from diagnostics.report.execution import read_index
from diagnostics.runs.load import Runs
from diagnostics.studies.page import MissingDataError, Page
from diagnostics.studies.shared import losses, primacy_index

_TEMPLATE = "report.html.j2"
_DPI = 144
_RUN_COLUMNS = (
    "task",
    "variant",
    "seed",
    "scale",
    "status",
    "env_step",
    "steps",
    "final_score",
    "best_score",
    "updates",
    "updates_per_second",
)


@dataclass(frozen=True)
class Picture:
    """A figure inside the page, or the sentence that replaces it."""

    title: str
    alt: str
    data: str = ""
    width: int = 0
    missing: str = ""


def render(runs: Runs, *, source: str, out: Path, notebooks: Path | None = None) -> str:
    """The page as text.

    Args:
        runs: What it is about.
        source: Where they were found, for the heading.
        out: Where the page will be; links are relative to its folder.
        notebooks: Folder of notebooks executed by `fog figures`.

    Raises:
        AnalysisError: there are no runs.
    """
    if not len(runs):
        raise AnalysisError(f"no runs in {source}: train some with `fog train --out {source}`")
    compared = compare(runs)
    calibration = Calibration.read()
    facts = runs.runs
    tasks = list(dict.fromkeys(facts["task"]))
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string(
        files("diagnostics").joinpath("data", _TEMPLATE).read_text(encoding="utf-8")
    )
    return template.render(
        source=source,
        created=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        code=code_version(),
        tau=TAU,
        rule=runs.grid.rule("best_score"),
        grid=runs.grid.name,
        tasks=[_task(runs, task, source) for task in tasks],
        diagnoses=[
            _diagnosed(agent)
            for agent in sorted(
                diagnoses(runs, calibration, every=False),
                key=lambda agent: VERDICTS.index(agent.verdict),
            )
        ],
        calibrated=calibration.task if calibration.thresholds else "",
        variants=[_variant_row(row) for row in compared.to_dict("records")],
        runs=[
            _run_row(row, run.path, out)
            for row, run in zip(facts.to_dict("records"), runs.files, strict=True)
        ],
        problems=runs.problems.to_dict("records"),
        notebooks=_notebooks(notebooks, out),
        number=_number,
        few=FEW,
    )


def _task(runs: Runs, task: str, source: str) -> dict[str, Any]:
    own = runs.select(task=task)
    page = Page(own, Path(), (), (task,), source)
    return {
        "name": task,
        "anchor": "task-" + "".join(char if char.isalnum() else "-" for char in task),
        "curves": _curves(page),
        "pictures": [
            _picture(
                "Critic loss by age of the data",
                f"Heatmaps of the critic loss on {task}, one per variant, on one colour scale",
                page,
                lambda page: losses.loss_heatmaps(page, quantity="mean"),
            ),
            _picture(
                "The same, scale-free",
                f"Heatmaps of the critic loss over target variance on {task}, one per variant",
                page,
                lambda page: losses.loss_heatmaps(page, quantity="scaled"),
            ),
            _picture(
                "Primacy-bias index",
                f"Primacy-bias index over training and ranking of the variants on {task}",
                page,
                primacy_index.primacy_index,
            ),
        ],
    }


@dataclass(frozen=True)
class Curves:
    """The learning curves of one task, or the sentence that replaces them."""

    chart: Chart | None
    note: str


def _curves(page: Page) -> Curves:
    runs = page.runs
    success = bool((runs.runs["metric"] == "success").any())
    table = mean_curves(curve(runs.evals), "success_once" if success else "return")
    if table.empty:
        return Curves(None, "No run has been evaluated yet.")
    ylabel = "success rate" if success else "evaluation return"
    return Curves(
        chart(table, runs.events, ylabel=ylabel), band_text(table["seeds"].astype(int).tolist())
    )


def _picture(title: str, alt: str, page: Page, draw: Callable[[Page], Plot]) -> Picture:
    try:
        figure, _ = draw(page)
    except MissingDataError as missing:
        return Picture(title, alt, missing=f"{str(missing)[0].upper()}{str(missing)[1:]}.")
    return Picture(title, alt, _png(figure), round(figure.get_figwidth() * 96))


def _png(figure: Figure) -> str:
    buffer = io.BytesIO()
    spell_out(figure)
    with styled():
        figure.savefig(buffer, format="png", dpi=_DPI)
    return base64.b64encode(buffer.getvalue()).decode("ascii")


def _diagnosed(agent: Diagnosis) -> dict[str, Any]:
    """A row of the first table: the answer, and what it rests on."""
    signs = [found for found in agent.findings if found.threshold is not None]
    return {
        "task": agent.task,
        "name": paper_name(agent.label),
        "label": agent.label,
        "seeds": agent.seeds,
        "verdict": agent.verdict,
        "sentence": agent.sentence,
        "signs": [vars(found) for found in signs if found.value is not None],
        "advice": [vars(advice) for advice in agent.advice],
        "notes": agent.notes,
    }


def _variant_row(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "name": paper_name(row["label"])}


def _run_row(row: dict[str, Any], path: Path, out: Path) -> dict[str, Any]:
    return {name: row[name] for name in _RUN_COLUMNS} | {
        "name": paper_name(row["label"]),
        "label": row["label"],
        "path": row["run"],
        "link": _link(path, out),
    }


def _link(target: Path, out: Path) -> str:
    """A relative address from the page to a file or folder, so that both can be moved together."""
    relative = os.path.relpath(target.resolve(), out.resolve().parent)
    return quote(Path(relative).as_posix()) + ("/" if target.is_dir() else "")


def _notebooks(folder: Path | None, out: Path) -> list[dict[str, Any]]:
    """Executed notebooks and the figures beside them; empty if there are none."""
    if folder is None or not folder.is_dir():
        return []
    entries = read_index(folder)
    names = sorted({*entries, *(path.stem for path in folder.glob("*.ipynb"))})
    found = []
    for name in names:
        path = folder / f"{name}.ipynb"
        page = path.with_suffix(".html")
        shown = page if page.exists() else path
        entry = entries.get(name, {})
        found.append(
            {
                "name": name,
                "link": _link(shown, out) if shown.exists() else "",
                "error": entry.get("error"),
                "seconds": _seconds(entry.get("seconds")),
                "figures": [
                    {"name": figure.stem, "link": _link(figure, out)}
                    for figure in _figures(path, folder)
                ],
            }
        )
    return found


def _seconds(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and abs(value) < 1e9 else None


def _figures(notebook: Path, folder: Path) -> Sequence[Path]:
    """Images that a notebook's code names, in its order; a name may hold `{...}` parts."""
    try:
        cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        code = "".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return []
    found: dict[Path, None] = {}
    for text in re.findall(r'"([\w{}-]+)"', code):
        pattern = re.sub(r"\\{\w*\\}", "[\\\\w-]+", re.escape(text))
        for path in sorted(folder.glob("*.png")):
            if re.fullmatch(pattern, path.stem):
                found[path] = None
    return list(found)


def _number(value: Any, digits: int = 4) -> str:
    """A number for a table cell; a dash where there is none."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "–"  # noqa: RUF001
    if isinstance(value, float) and abs(value) < 1e15:
        if abs(value) >= 10 ** (digits - 1):
            return f"{value:,.0f}"
        return f"{value:.{digits}g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def write(runs: Runs, out: Path, *, source: str, notebooks: Path | None = None) -> Path:
    """Render the page and write it to `out`, completely or not at all.

    Raises:
        AnalysisError: there are no runs, or `out` cannot be written.
    """
    page = render(runs, source=source, out=out, notebooks=notebooks)
    partial = out.with_name(f".{out.name}.partial")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(page, encoding="utf-8")
        partial.replace(out)
    except OSError as error:
        raise AnalysisError(f"cannot write {out}: {error}") from None
    return out
