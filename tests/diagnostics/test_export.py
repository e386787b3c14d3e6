import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import diagnostics
from diagnostics.commands.export import command
from diagnostics.errors import AnalysisError
from diagnostics.export import export
from tests.diagnostics.recorded import copy, mark

RUNS = Path(__file__).parents[1] / "fixtures" / "runs"
TABLES = ("critic_loss", "sample_counts", "dormancy", "features", "churn")


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A run with the things that an export leaves behind, and one that has not ended."""
    home = tmp_path / "runs"
    shutil.copytree(RUNS / "cartpole-swingup" / "fog", home / "cartpole-swingup" / "fog")
    ended, running = (home / "cartpole-swingup" / "fog" / f"seed{seed}" for seed in (0, 1))
    (ended / "checkpoint").mkdir()
    (ended / "checkpoint" / "weights.npy").write_bytes(b"0" * 1000)
    (ended / ".lock").touch()
    manifest = json.loads((running / "manifest.json").read_text())
    (running / "manifest.json").write_text(json.dumps({**manifest, "status": "running"}))
    return home


def test_an_exported_run_reads_like_the_run(runs: Path, tmp_path: Path) -> None:
    done = export(runs, tmp_path / "kept")
    assert [path.name for path in done.runs] == ["seed0"]
    assert [path.name for path in done.unsettled] == ["seed1"]
    copy = done.runs[0]
    assert not (copy / "checkpoint").exists() and not (copy / ".lock").exists()
    assert done.nbytes == sum(f.stat().st_size for f in copy.rglob("*") if f.is_file())
    before, after = diagnostics.load(runs).select(seed=0), diagnostics.load(tmp_path / "kept")
    for name in TABLES:
        assert len(list((copy / "probes" / name).iterdir())) == 1
        was, now = (x.table(name).drop(columns="run") for x in (before, after))
        pd.testing.assert_frame_equal(was, now)
    pd.testing.assert_frame_equal(before.evals.drop(columns="run"), after.evals.drop(columns="run"))


def test_rounding_is_as_fine_as_promised_and_touches_vectors_and_train_only(
    runs: Path, tmp_path: Path
) -> None:
    export(runs, tmp_path / "exact")
    export(runs, tmp_path / "rounded", rounded=True)
    exact, rounded = diagnostics.load(tmp_path / "exact"), diagnostics.load(tmp_path / "rounded")
    for column in ("activation", "gradient"):
        was = np.concatenate(list(exact.dormancy[column]))
        now = np.concatenate(list(rounded.dormancy[column]))
        assert not np.array_equal(was, now)
        np.testing.assert_allclose(now, was, rtol=2.0**-9)
    pd.testing.assert_series_equal(exact.critic_loss["mean"], rounded.critic_loss["mean"])
    pd.testing.assert_frame_equal(
        exact.evals.drop(columns="run"), rounded.evals.drop(columns="run"), check_exact=True
    )
    was, now = exact.train.drop(columns="run"), rounded.train.drop(columns="run")
    assert not was.equals(now)
    pd.testing.assert_frame_equal(was, now, rtol=1e-5)
    sizes = [
        sum(f.stat().st_size for f in (tmp_path / name).rglob("dormancy/*"))
        for name in ("exact", "rounded")
    ]
    assert sizes[1] < 0.7 * sizes[0]


def test_a_second_export_brings_the_copies_up_to_date(runs: Path, tmp_path: Path) -> None:
    export(runs, tmp_path / "kept")
    manifest = runs / "cartpole-swingup" / "fog" / "seed1" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"running"', '"finished"'))
    again = export(runs, tmp_path / "kept", without=["features"])
    assert len(again.runs) == 2 and not again.unsettled
    assert diagnostics.load(tmp_path / "kept").features.empty


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--runs", "nowhere"], "is no directory"),
        (["--runs", ".", "--out", "inside"], "lies inside"),
        (["--without", "dormant"], "did you mean 'dormancy'"),
    ],
)
def test_mistakes_are_named(
    runs: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(runs.parent)
    defaults = ["--runs", "runs", "--out", "kept"]
    with pytest.raises(AnalysisError, match=message):
        command([*defaults, *arguments])
    assert not Path("kept").exists()


def test_the_command_says_what_it_did(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(["--runs", str(runs), "--out", str(tmp_path / "kept")]) == 0
    said = capsys.readouterr().out
    assert "has not ended" in said and "1 runs" in said


def test_a_table_of_which_not_all_is_read_is_not_exported(tmp_path: Path) -> None:
    """Old gradient scores are read as null: the copy would have lost them."""
    run = copy(tmp_path / "runs")
    mark(run / "probes" / "dormancy", "1")
    with pytest.raises(AnalysisError, match=r"cannot export .*dormancy has schema version 1"):
        export(tmp_path / "runs", tmp_path / "out")
    assert len(export(tmp_path / "runs", tmp_path / "out", without=["dormancy"]).runs) == 1
