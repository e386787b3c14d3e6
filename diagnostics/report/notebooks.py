"""Notebooks on disk: where they are, which parameters they take, which were chosen.

papermill only warns of a parameter that a notebook does not have, and guesses types; a misspelt
parameter then quietly draws the wrong figure. Here it is an error that names the nearest one.
"""

from __future__ import annotations

import ast
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from diagnostics.errors import AnalysisError, unknown

_HOMES = (
    Path(__file__).parents[1] / "_notebooks",  # an installed wheel; a checkout has none
    Path(__file__).parents[2] / "notebooks",  # a checkout
)
_NUMBERS = (int, float)
_NO_NOTEBOOK = (
    *(OSError, ValueError, KeyError, TypeError, AttributeError, SyntaxError, RecursionError),
)
"""Errors of reading a file that is not a notebook, or not of a known kind."""


@dataclass(frozen=True)
class Notebook:
    """One parameterised notebook."""

    name: str
    path: Path
    parameters: Mapping[str, Any]
    """Default value of each parameter; None also if it is not a literal."""

    @classmethod
    def open(cls, path: Path) -> Notebook:
        """Read the parameters of a notebook from its cell tagged `parameters`.

        Raises:
            AnalysisError: the file is not a notebook, or its parameters are not assignments.
        """
        try:
            cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
            tagged = [cell for cell in cells if "parameters" in cell["metadata"].get("tags", ())]
            sources = ["".join(cell["source"]) for cell in tagged]
            parameters = {
                name: value for source in sources for name, value in _assignments(source).items()
            }
        except _NO_NOTEBOOK as error:
            raise AnalysisError(f"cannot read notebook {path}: {error!r}") from None
        return cls(path.stem, path, parameters)


def _assignments(source: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for node in ast.parse(source).body:
        targets: Sequence[ast.expr] = ()
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AnnAssign):
            targets = (node.target,)
        for target in targets:
            if isinstance(target, ast.Name):
                found[target.id] = _literal(getattr(node, "value", None))
    return found


def _literal(node: Any) -> Any:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError):
        return None


def available() -> dict[str, Path]:
    """Every notebook of the project by name, in order of names."""
    for home in _HOMES:
        paths = sorted(home.glob("*.ipynb"))
        if paths:
            return {path.stem: path for path in paths}
    raise AnalysisError("the notebooks are missing: reinstall fog-diagnostics")


def choose(names: Iterable[str]) -> list[Notebook]:
    """The named notebooks, or all if none is named.

    Args:
        names: names as in `available()`, or paths of the user's own notebooks.

    Raises:
        AnalysisError: there is no such notebook.
    """
    known = available()
    chosen = []
    for name in dict.fromkeys(names) or known:
        own = Path(name)
        if name in known:
            chosen.append(Notebook.open(known[name]))
        elif own.suffix == ".ipynb" and os.path.exists(own):  # noqa: PTH110 - never raises
            chosen.append(Notebook.open(own))
        else:
            raise unknown("notebook", name, known)
    return chosen


def assign(notebooks: Sequence[Notebook], wanted: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Which of the wanted parameters each notebook gets, as values of the right type.

    Raises:
        AnalysisError: no chosen notebook has such a parameter, or the value is of another type.
    """
    known = sorted({name for notebook in notebooks for name in notebook.parameters})
    for name in wanted:
        if name not in known:
            raise unknown("notebook parameter", name, known)
    return {
        notebook.name: {
            name: _typed(f"{notebook.name}: {name}", text, notebook.parameters[name])
            for name, text in wanted.items()
            if name in notebook.parameters
        }
        for notebook in notebooks
    }


def _typed(where: str, text: str, default: Any) -> Any:
    """The value of a parameter's text: JSON, or Python's True, False and None."""
    value = _parsed(text)
    if isinstance(default, str):
        return text
    if default is None or value is None:
        return value
    number = isinstance(default, _NUMBERS) and not isinstance(default, bool)
    fits = (
        isinstance(value, _NUMBERS) and not isinstance(value, bool)
        if number
        else isinstance(value, list if isinstance(default, tuple) else type(default))
    )
    if not fits:
        raise AnalysisError(f"{where}: expected something like {default!r}, got {text!r}")
    return value


def _parsed(text: str) -> Any:
    constants = {"True": True, "False": False, "None": None}
    if text in constants:
        return constants[text]
    try:
        return json.loads(text)
    except ValueError:
        return text
