"""Save a figure so that it can be trusted later: image, plotted numbers and provenance."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.mathtext import MathTextParser
from matplotlib.text import Text

from diagnostics.plots.style import RC, styled

DISTRIBUTION = "fog-diagnostics"
CHECKOUT = Path(__file__).resolve().parents[2]
_FORMULAS = MathTextParser("path")


def save_figure(
    figure: Figure,
    name: str,
    out: str | Path,
    table: pd.DataFrame,
    parameters: Mapping[str, Any],
) -> list[Path]:
    """Write `<name>.png`, `.pdf`, `.csv` and `.json` into `out`.

    Args:
        figure: What to save.
        name: File name without extension.
        out: Directory; created if needed.
        table: The plotted numbers, one row per point.
        parameters: Everything the figure depends on, to be written into the provenance.

    Returns:
        The four paths, the image first.
    """
    directory = Path(out)
    directory.mkdir(parents=True, exist_ok=True)
    paths = [directory / f"{name}{suffix}" for suffix in (".png", ".pdf", ".csv", ".json")]
    spell_out(figure)
    with styled():
        figure.savefig(paths[0], dpi=RC["savefig.dpi"])
        # Without a date the same figure is the same file, and version control stays quiet.
        figure.savefig(paths[1], metadata={"CreationDate": None})
    table.to_csv(paths[2], index=False)
    provenance = {
        "figure": name,
        "parameters": {key: _plain(value) for key, value in parameters.items()},
        "rows": len(table),
        "columns": list(table.columns),
        "code": code_version(),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    paths[3].write_text(json.dumps(provenance, indent=1) + "\n")
    return paths


def spell_out(figure: Figure) -> None:
    """Draw text that is not a formula literally: a task may be called `$x^{$`."""
    # Tick labels get their text only when they are requested or drawn.
    for axes in figure.axes:
        axes.get_xticklabels()
        axes.get_yticklabels()
    for text in figure.findobj(Text):
        # matplotlib typesets each line separately.
        formulas = [line for line in text.get_text().split("\n") if line.count("$") > 1]
        try:
            for line in formulas:
                _FORMULAS.parse(line)
        except ValueError:
            text.set_parse_math(False)


def portable(path: str) -> str:
    """A path below the checkout as seen from its root, so that it holds on any machine."""
    try:
        return Path(path).resolve().relative_to(CHECKOUT).as_posix()
    except ValueError:
        return path


def code_version() -> dict[str, Any]:
    """Version of the installed package, and the git commit if the code runs from a checkout."""
    try:
        package = version(DISTRIBUTION)
    except PackageNotFoundError:
        package = None
    commit = _git("rev-parse", "HEAD")
    # Figures are results: drawing one must not make the next look like it came from changed code.
    code = (":/", ":(top,exclude)figures")
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", *code)
    return {
        "package": package,
        "commit": commit,
        "uncommitted_changes": None if changed is None else bool(changed),
        "numpy": np.__version__,
    }


def _git(*arguments: str) -> str | None:
    command = ["git", "-C", str(Path(__file__).parent), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, str | int | float | bool) or value is None:
        return value
    return str(value)
