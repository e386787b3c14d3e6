"""The theory notebooks, executed as a reader would: papermill, parameters, figures on disk."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import nbformat
import pandas as pd
import papermill
import pytest

ROOT = Path(__file__).parents[1]
NOTEBOOKS = {
    "theorem_1": ({"n": 5000}, ["theorem_1_counts", "theorem_1_growth"]),
    "theorem_2": (
        {"n": 5000, "epsilons": [1e-3], "epsilon": 1e-3, "taus": [0.1], "n_max": 1e6},
        ["theorem_2_counts", "theorem_2_bound", "theorem_2_floor"],
    ),
    "sample_counts": (
        {"n": 2000, "epsilon": 5e-3, "draws": 8, "finite_n": 400, "finite_capacity": 100},
        ["sample_counts", "sample_counts_finite"],
    ),
}


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebook_runs_and_draws(name, tmp_path):
    parameters, figures = NOTEBOOKS[name]
    done = papermill.execute_notebook(
        ROOT / "notebooks" / f"{name}.ipynb",
        tmp_path / "done.ipynb",
        parameters={**parameters, "out": str(tmp_path / "figures")},
        kernel_name="python3",
        cwd=ROOT,
        progress_bar=False,
    )
    pictures = [
        output
        for cell in done.cells
        for output in cell.get("outputs", [])
        if "image/png" in output.get("data", {})
    ]
    assert len(pictures) == len(figures), "every figure is also shown in the notebook"
    for figure in figures:
        path = tmp_path / "figures" / figure
        assert path.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
        assert path.with_suffix(".pdf").read_bytes().startswith(b"%PDF")
        table = pd.read_csv(path.with_suffix(".csv"))
        provenance = json.loads(path.with_suffix(".json").read_text())
        assert provenance["rows"] == len(table) > 10
        assert provenance["parameters"]
        assert {"package", "commit"} <= set(provenance["code"])


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebook_is_clean(name):
    notebook = nbformat.read(ROOT / "notebooks" / f"{name}.ipynb", as_version=4)
    nbformat.validate(notebook)
    assert notebook.metadata.kernelspec.name == "python3"
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert sum("parameters" in cell.metadata.get("tags", []) for cell in code) == 1
    for cell in code:
        assert not cell.outputs
        assert cell.execution_count is None
        for node in ast.walk(ast.parse(cell.source)):
            logic = ast.FunctionDef | ast.ClassDef | ast.Lambda | ast.For | ast.While | ast.If
            assert not isinstance(node, logic), f"{name}: logic belongs in diagnostics"
    prose = " ".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    assert prose.count("What you see") == prose.count("What would refute it") >= 2


def test_theorem_2_says_what_it_does_not_cover():
    notebook = nbformat.read(ROOT / "notebooks" / "theorem_2.ipynb", as_version=4)
    assert r"Theorem 2 covers only $\tau = 0$" in notebook.cells[0].source
