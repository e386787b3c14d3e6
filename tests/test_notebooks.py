"""Every notebook about runs, executed by papermill on runs that were really trained."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import nbformat
import papermill
import pytest

from tests.diagnostics.recorded import FIXTURE, copy

ROOT = Path(__file__).parents[1]
TSNE = {"points": 200, "iterations": 250}
NOTEBOOKS = {
    "motivating_example": (
        {},
        ["motivating_returns", "motivating_loss", "motivating_loss_scaled", "motivating_index"],
    ),
    "per_vs_decay": (
        {"per": "sac", "decay": "sac-reset"},
        ["per_vs_decay_loss", "per_vs_decay_loss_scaled", "per_vs_decay_ratio"],
    ),
    "replay_ablation": (
        {},
        ["replay_ablation_returns", "replay_ablation_counts", "replay_ablation_loss_scaled"],
    ),
    "expansion_ablation": (
        TSNE,
        [
            "expansion_ablation_returns",
            "expansion_ablation_loss",
            "expansion_ablation_dormant_gradient",
            "expansion_ablation_dormant_activation",
            "expansion_ablation_tsne",
        ],
    ),
    "network_expansion": ({}, ["network_expansion", "network_expansion_timeline"]),
    "main_results": (
        {"grid": "all"},
        ["learning_curves_DMC-Easy", "normalised_scores", "normalised_scores_best_run"],
    ),
    "universality": ({}, ["universality_fog_sac"]),
    "similar_compute": ({"grid": "all"}, ["similar_compute"]),
    # Nobody is primed in the recorded runs: the notebook says so.
    "priming": ({}, []),
    "run_card": (
        TSNE,
        [
            "run_card_overview",
            "run_card_loss",
            "run_card_loss_scaled",
            "run_card_dormant_gradient",
            "run_card_dormant_activation",
            "run_card_inside",
            "run_card_interference",
            "run_card_offpolicy",
            "run_card_warmstart",
            "run_card_counts",
            "run_card_tsne",
        ],
    ),
    "sample_counts": (
        {"n": 1000, "epsilon": 5e-3, "draws": 4, "finite_n": 200, "finite_capacity": 50},
        ["sample_counts", "sample_counts_finite", "sample_counts_observed"],
    ),
}


def execute(name, runs, out, **parameters):
    return papermill.execute_notebook(
        ROOT / "notebooks" / f"{name}.ipynb",
        out / f"{name}.ipynb",
        parameters={"runs": str(runs), "out": str(out), **parameters},
        kernel_name="python3",
        cwd=ROOT,
        progress_bar=False,
    )


def outputs(notebook, kind):
    return [
        output["data"][kind]
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if kind in output.get("data", {})
    ]


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebook_draws_from_recorded_runs(name, tmp_path):
    parameters, figures = NOTEBOOKS[name]
    done = execute(name, FIXTURE, tmp_path, **parameters)
    assert {path.stem for path in tmp_path.glob("*.png")} == set(figures)
    assert len(outputs(done, "image/png")) == len(figures)
    for figure in figures:
        assert (tmp_path / f"{figure}.pdf").read_bytes().startswith(b"%PDF")
        provenance = json.loads((tmp_path / f"{figure}.json").read_text())
        assert provenance["rows"] > 0
        if not figure.startswith("sample_counts") or figure.endswith("observed"):
            # As seen from the root of the checkout: it must hold on any machine.
            used = provenance["parameters"]["runs"]
            assert all(run.startswith("tests/fixtures/runs/") for run in used)
    stderr = [
        output["text"]
        for cell in done.cells
        for output in cell.get("outputs", [])
        if output.get("name") == "stderr"
    ]
    assert not stderr


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebook_is_prose_and_calls(name):
    notebook = nbformat.read(ROOT / "notebooks" / f"{name}.ipynb", as_version=4)
    nbformat.validate(notebook)
    assert notebook.metadata.kernelspec.name == "python3"
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert len(code) <= 12
    tagged = [cell for cell in code if "parameters" in cell.metadata.get("tags", [])]
    assert len(tagged) == 1
    for node in ast.parse(tagged[0].source).body:
        json.dumps(ast.literal_eval(node.value))
    for cell in code:
        assert not cell.outputs
        assert cell.execution_count is None
        logic = ast.FunctionDef | ast.ClassDef | ast.Lambda | ast.For | ast.While | ast.If | ast.Try
        found = [node for node in ast.walk(ast.parse(cell.source)) if isinstance(node, logic)]
        assert not found, f"{name}: logic belongs in diagnostics"
    prose = " ".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    assert prose.count("What you see") == prose.count("What would refute it") >= 1
    if "loss_heatmaps" in " ".join(cell.source for cell in code):
        assert "larger Q" in prose, "a better agent has a larger raw loss: say so"


def test_an_empty_folder_is_one_clear_line(tmp_path):
    (tmp_path / "runs").mkdir()
    with pytest.raises(papermill.PapermillExecutionError) as caught:
        execute("motivating_example", tmp_path / "runs", tmp_path)
    assert caught.value.ename == "AnalysisError"
    assert caught.value.evalue.startswith(f"no runs in {tmp_path / 'runs'}")
    assert "\n" not in caught.value.evalue


def test_runs_without_probes_are_missing_in_a_sentence(tmp_path):
    copy(tmp_path / "runs", "sac", probes=False)
    done = execute("motivating_example", tmp_path / "runs", tmp_path)
    told = [text for text in outputs(done, "text/markdown") if text.startswith("**Missing.**")]
    assert len(told) == 4
    assert "recorded the probe table 'critic_loss'" in told[0]
    assert len(outputs(done, "image/png")) == 1


def test_other_variants_are_missing_in_a_sentence(tmp_path):
    copy(tmp_path / "runs", "sac", probes=False)
    done = execute("universality", tmp_path / "runs", tmp_path)
    told = [text for text in outputs(done, "text/markdown") if text.startswith("**Missing.**")]
    assert any("sac-utd1" in text for text in told)
    assert len(outputs(done, "image/png")) == 1


def test_scales_are_kept_apart(tmp_path):
    copy(tmp_path / "runs" / "a", "sac", probes=False)
    copy(tmp_path / "runs" / "b", "sac", probes=False, scale=0.5, steps=4000)
    execute("similar_compute", tmp_path / "runs", tmp_path, grid="all")
    table = (tmp_path / "similar_compute.csv").read_text()
    assert "scale 0.1" in table
    assert "scale 0.5" in table
