"""Runs notebooks through papermill: one after another, on the interpreter that runs this.

Executed copies are written beside the figures, each also as an HTML page, and `notebooks.json`
records how each went. A notebook that fails does not stop the others.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from diagnostics.report.kernels import pinned_kernel
from diagnostics.report.notebooks import Notebook

INDEX = "notebooks.json"


@dataclass(frozen=True)
class Outcome:
    """How the execution of one notebook went."""

    name: str
    notebook: str
    """The executed copy, beside the figures."""
    parameters: Mapping[str, Any]
    seconds: float
    error: str | None
    """What stopped it, in one line; None if nothing did."""


def execute_all(
    notebooks: Sequence[Notebook],
    out: Path,
    parameters: Mapping[str, Mapping[str, Any]],
    *,
    started: Callable[[int, Notebook], None] = lambda position, notebook: None,
    ended: Callable[[Outcome], None] = lambda outcome: None,
) -> list[Outcome]:
    """Execute notebooks and keep the executed copies in `out`.

    Args:
        notebooks: what to run, in this order.
        out: directory for the executed copies and the index; created if needed.
        parameters: values of each notebook's parameters, by its name.
        started: called with each notebook and its position before it runs.
        ended: called with each outcome.
    """
    out.mkdir(parents=True, exist_ok=True)
    outcomes = []
    with pinned_kernel() as kernel:
        for position, notebook in enumerate(notebooks):
            started(position, notebook)
            outcome = _execute(notebook, out, parameters.get(notebook.name, {}), kernel)
            outcomes.append(outcome)
            ended(outcome)
    _write_index(out / INDEX, outcomes)
    return outcomes


def _execute(
    notebook: Notebook, out: Path, parameters: Mapping[str, Any], kernel: Mapping[str, Any]
) -> Outcome:
    # Imported here: it takes a second, and mistakes should be reported before.
    import papermill

    copy = out / f"{notebook.name}.ipynb"
    began = time.monotonic()
    error = None
    try:
        papermill.execute_notebook(
            str(notebook.path),
            str(copy),
            parameters=dict(parameters),
            progress_bar=False,
            cwd=str(Path.cwd()),
            **kernel,
        )
    except papermill.PapermillExecutionError as failure:
        error = _one_line(f"{failure.ename}: {failure.evalue}")
    except Exception as failure:
        # A kernel that died, a disk that is full: the next notebook may still work.
        error = _one_line(f"{type(failure).__name__}: {failure}")
    try:
        _keep_as_html(copy)
    except Exception as failure:
        error = error or _one_line(f"not kept as HTML: {type(failure).__name__}: {failure}")
    seconds = round(time.monotonic() - began, 1)
    return Outcome(notebook.name, copy.name, dict(parameters), seconds, error)


def _keep_as_html(executed: Path) -> None:
    """A page beside the executed notebook, for any browser; only formulas need a network."""
    if not executed.exists():
        return
    import nbconvert

    # Scripts for interactive widgets are left out, because there are none. Templates are programs,
    # and nbconvert would take one from a folder `lab` in the working directory first.
    make: Any = nbconvert.HTMLExporter
    exporter = make(require_js_url="", jquery_url="", extra_template_basedirs=[])
    page, _ = exporter.from_filename(str(executed))
    executed.with_suffix(".html").write_text(page, encoding="utf-8")


def read_index(folder: Path) -> dict[str, dict[str, Any]]:
    """What `execute_all` noted about each notebook of a folder, by name; entries that fit only."""
    try:
        entries = json.loads((folder / INDEX).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    found: dict[str, dict[str, Any]] = {}
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, dict) and isinstance(entry.get("name"), str):
            found[entry["name"]] = entry
    return found


def _write_index(path: Path, outcomes: Sequence[Outcome]) -> None:
    """Replace the entries of these notebooks in the index, keeping those of earlier calls."""
    entries = read_index(path.parent)
    entries |= {outcome.name: asdict(outcome) for outcome in outcomes}
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(json.dumps([entries[name] for name in sorted(entries)], indent=1) + "\n")
    partial.replace(path)


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 300 else line[:297] + "..."
