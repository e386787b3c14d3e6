from __future__ import annotations

import json
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import diagnostics
import fog
from diagnostics.errors import AnalysisError, RunsWarning
from diagnostics.metrics.dormancy import dormant_ratios
from diagnostics.runs.load import IDENTITY, Runs
from fog.cli import main
from fog.records import schema
from tests.diagnostics.recorded import FIXTURE, TASK, VARIANTS, copy, mark
from tests.training import tiny


@pytest.fixture(scope="module")
def runs() -> Runs:
    return diagnostics.load(FIXTURE)


def load_damaged(path: Path) -> Runs:
    """Load and read everything, with the warnings that a damaged run gives."""
    with pytest.warns(RunsWarning):
        loaded = diagnostics.load(path)
        assert len(loaded.runs) == len(loaded)
        loaded.events  # noqa: B018
        for name in schema.TABLES:
            loaded.table(name)
    return loaded


def problem_of(loaded: Runs, run: Path) -> str:
    return "; ".join(loaded.problems.loc[loaded.problems["run"] == str(run), "problem"])


# Intact runs


def test_every_run_is_found(runs: Runs) -> None:
    found = {(row.task, row.variant, row.seed) for row in runs.identity.itertuples()}
    assert found == {(TASK, variant, seed) for variant in VARIANTS for seed in (0, 1)}
    assert runs.problems.empty


def test_every_table_of_the_schema_starts_with_the_names_of_the_run(runs: Runs) -> None:
    for table in (runs.evals, runs.train, runs.events, runs.runs):
        assert tuple(table.columns[: len(IDENTITY)]) == IDENTITY
        assert table["run"].nunique() == 6
    recorded = set(schema.TABLES) - {"critic_loss_raw", "curvature"}
    assert set(runs.tables) == recorded
    for name in recorded:
        table = runs.table(name)
        assert tuple(table.columns) == (*IDENTITY, *schema.TABLES[name].names), name
        assert table["run"].nunique() == 6, name


def test_what_the_trainer_writes_today_is_what_the_fixture_shows(
    tmp_path: Path, runs: Runs
) -> None:
    settings = {"steps": 120, "reset_steps": (80,), "eval_every": 120, "window_steps": 120}
    fog.train(tiny(tmp_path, "fog", TASK, probes=("all",), **settings))
    fresh = diagnostics.load(tmp_path)
    assert fresh.problems.empty
    recorded = runs.select(variant="fog")
    assert fresh.tables.keys() == recorded.tables.keys()
    for name in fresh.tables:
        new, old = fresh.table(name), recorded.table(name)
        assert list(new.columns) == list(old.columns), name
        assert (new.dtypes == old.dtypes).all(), name
    for name in ("evals", "train", "events", "runs"):
        assert list(getattr(fresh, name).columns) == list(getattr(recorded, name).columns), name
    facts = ["group", "metric", "normaliser", "paper_row"]
    assert fresh.runs[facts].iloc[0].tolist() == recorded.runs[facts].iloc[0].tolist()


def test_the_named_tables_are_the_probe_tables(runs: Runs) -> None:
    for name in ("critic_loss", "dormancy", "sample_counts", "features"):
        assert getattr(runs, name) is runs.table(name)


def test_tables_are_what_pandas_reads(runs: Runs) -> None:
    path = FIXTURE / TASK / "fog" / "seed1"
    ours = runs.evals[runs.evals["run"] == str(path)].drop(columns=list(IDENTITY))
    theirs = pd.read_csv(path / "evals.csv")
    pd.testing.assert_frame_equal(ours.reset_index(drop=True), theirs, check_dtype=False)
    parts = sorted((path / "probes" / "critic_loss").glob("*.parquet"))
    theirs = pd.concat([pd.read_parquet(part) for part in parts], ignore_index=True)
    ours = runs.critic_loss[runs.critic_loss["run"] == str(path)].drop(columns=list(IDENTITY))
    pd.testing.assert_frame_equal(ours.reset_index(drop=True), theirs, check_dtype=False)


def test_facts_of_a_run_agree_with_its_files(runs: Runs) -> None:
    for row in runs.runs.itertuples():
        manifest = json.loads((Path(row.run) / "manifest.json").read_text())
        evals = pd.read_csv(Path(row.run) / "evals.csv")
        means = evals.groupby("env_step")["return"].mean()
        assert row.status == "finished" == manifest["status"]
        assert row.final_return == pytest.approx(manifest["final_return"])
        # The evaluation at the last step is not strictly before T.
        every = diagnostics.load(row.run, grid="all").runs.iloc[0]
        assert every["best_return"] == pytest.approx(means[means.index < row.steps].max())
        assert every["grid"] == "all" and np.isnan(every["grid_steps"])
        assert (row.grid, row.grid_steps) == ("25k", 25_000 * row.scale)
        assert (row.env_step, row.normaliser, row.group) == (800, 1000.0, "DMC-Easy")
        assert (row.width, row.replay_ratio, row.steps) == (8, 1.0, 800)
        train = pd.read_csv(Path(row.run) / "train.csv")
        slow, fast = train["updates_per_second"].min(), train["updates_per_second"].max()
        assert slow <= row.updates_per_second <= fast


def test_the_newest_measurements_alone(runs: Runs) -> None:
    last = runs.table("srank", last=1)
    everything = runs.table("srank")
    assert 0 < len(last) < len(everything)
    assert set(last["env_step"]) < set(everything["env_step"])
    assert last["env_step"].max() == everything["env_step"].max()


def test_select(runs: Runs) -> None:
    chosen = runs.select(variant=["sac", "fog"], seed=1)
    assert list(chosen.identity["variant"]) == ["fog", "sac"]
    assert len(runs.select(best_score=lambda score: score > 1e9)) == 0
    with pytest.raises(AnalysisError, match="did you mean 'variant'"):
        runs.select(varant="sac")


def test_an_unknown_table_is_an_error_with_a_hint(runs: Runs) -> None:
    with pytest.raises(AnalysisError, match="did you mean 'dormancy'"):
        runs.table("dormncy")


def test_single_runs_several_paths_and_overlaps() -> None:
    one = FIXTURE / TASK / "sac" / "seed0"
    assert len(diagnostics.load(one)) == 1
    assert len(diagnostics.load([one, FIXTURE / TASK / "fog"])) == 3
    assert len(diagnostics.load([FIXTURE, one, str(FIXTURE)])) == 6


def test_nothing_there(tmp_path: Path) -> None:
    empty = diagnostics.load(tmp_path)
    assert len(empty) == 0
    assert empty.runs.empty
    assert {"status", "final_score", "scale", "normaliser"} <= set(empty.runs.columns)
    for name in schema.TABLES:
        assert tuple(empty.table(name).columns) == (*IDENTITY, *schema.TABLES[name].names)
    assert "return" in empty.evals
    with pytest.raises(AnalysisError, match="does not exist"):
        diagnostics.load(tmp_path / "nowhere")


def test_a_probe_of_someone_else(tmp_path: Path) -> None:
    run = copy(tmp_path)
    (run / "probes" / "srank").rename(run / "probes" / "my_probe")
    loaded = diagnostics.load(tmp_path)
    assert len(loaded.table("my_probe")) > 0
    assert loaded.table("srank").empty


def test_loading_needs_no_torch() -> None:
    code = (
        f"import sys, diagnostics; diagnostics.load({str(FIXTURE)!r}).runs;"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=FIXTURE.parents[2])


def test_the_package_itself_is_light() -> None:
    code = "import sys, diagnostics; assert not {'torch', 'pandas', 'numpy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=FIXTURE.parents[2])


# Damage


def test_half_a_line_at_the_end(tmp_path: Path) -> None:
    run = copy(tmp_path)
    whole = len(pd.read_csv(run / "evals.csv"))
    with (run / "evals.csv").open("a") as file:
        file.write("900,12")
    loaded = load_damaged(tmp_path)
    assert len(loaded.evals) == whole
    assert "evals.csv ends in half a line" in problem_of(loaded, run)


def test_zeros_after_a_power_cut(tmp_path: Path) -> None:
    run = copy(tmp_path)
    whole = len(pd.read_csv(run / "train.csv"))
    with (run / "train.csv").open("ab") as file:
        file.write(b"\0" * 512)
    loaded = load_damaged(tmp_path)
    assert len(loaded.train) == whole
    assert "train.csv" in problem_of(loaded, run)


def test_damaged_rows_in_the_middle(tmp_path: Path) -> None:
    run = copy(tmp_path)
    lines = (run / "evals.csv").read_text().splitlines()
    lines[3] = "100,7"
    lines[5] = "200,##,1000,,,3"
    (run / "evals.csv").write_text("\n".join(lines) + "\n")
    loaded = load_damaged(tmp_path)
    assert "evals.csv has 2 damaged rows" in problem_of(loaded, run)
    assert len(loaded.evals) == len(lines) - 3
    assert loaded.evals["return"].dtype == np.float64


BAD = {
    "a byte that is no text": lambda raw: replaced(raw, len(raw) // 2, b"\xff"),
    "a letter in the header": lambda raw: replaced(raw, 2, b"\xff"),
    "another column": lambda raw: replaced(raw, 2, b"x"),
    "a column twice": lambda raw: raw.replace(raw.split(b",")[1], b"env_step", 1),
    "an open quote": lambda raw: replaced(raw, raw.index(b"\n") + 3, b'"'),
    "a number too many": lambda raw: raw + raw.splitlines(keepends=True)[-1][:-1] + b",9\n",
    "a number without end": lambda raw: raw.replace(b"00,", b"9" * 400 + b",", 1),
}


def replaced(raw: bytes, at: int, byte: bytes) -> bytes:
    return raw[:at] + byte + raw[at + 1 :]


@pytest.mark.parametrize("name", ["evals.csv", "train.csv", "events.csv"])
@pytest.mark.parametrize("kind", BAD)
def test_one_bad_byte_is_a_problem_of_its_run_alone(
    tmp_path: Path, runs: Runs, kind: str, name: str
) -> None:
    home = tmp_path / "runs"
    for seed in (0, 1):
        copy(home, "fog", seed)
    bad = home / TASK / "fog" / "seed0"
    (bad / name).write_bytes(BAD[kind]((bad / name).read_bytes()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RunsWarning)
        loaded = diagnostics.load(home)
        tables = {name: getattr(loaded, name) for name in ("evals", "train", "events", "runs")}
    assert set(loaded.problems["run"]) <= {str(bad)}
    assert name in problem_of(loaded, bad)
    for table in ("evals", "train", "events"):
        # Both are copies of the same recorded run.
        expected = getattr(runs.select(variant="fog", seed=0), table)
        found = tables[table][tables[table]["seed"] == 1].reset_index(drop=True)
        names = [name for name in expected if name not in IDENTITY]
        pd.testing.assert_frame_equal(found[names], expected[names], check_dtype=False)


def test_commands_go_on_without_the_bad_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "runs"
    for variant in ("sac", "fog"):
        for seed in (0, 1):
            copy(home, variant, seed)
    for name in ("evals.csv", "train.csv", "events.csv"):
        path = home / TASK / "fog" / "seed0" / name
        path.write_bytes(replaced(path.read_bytes(), 3, b"\xff"))
    page = tmp_path / "report.html"
    for words in (["compare"], ["claims"], ["report", "--out", str(page)]):
        assert main([*words, "--runs", str(home)]) == 0, words
    said = capsys.readouterr()
    assert "Traceback" not in said.err
    assert "evals.csv has a damaged header" in said.out + said.err
    assert "evals.csv has a damaged header" in page.read_text()


def test_a_probe_table_that_does_not_fit_is_left_out(tmp_path: Path) -> None:
    for seed in (0, 1):
        run = copy(tmp_path, "fog", seed)
        (run / "probes" / "mine").mkdir()
        columns = {"env_step": [1], "x": ["text"] if seed else [1.5]}
        table = pa.table(columns).replace_schema_metadata({"fog.schema": "1"})
        pq.write_table(table, run / "probes" / "mine" / "000000000001-00.parquet")
    with pytest.warns(RunsWarning, match="does not match those of other runs"):
        table = diagnostics.load(tmp_path).table("mine")
    assert list(table["x"]) == [1.5]


def test_details_of_events_stay_text(tmp_path: Path) -> None:
    details = {"sac": '"loss is nan,\nfor good"', "fog": "7", "sac-reset": "2026-11-16"}
    for variant, detail in details.items():
        with (copy(tmp_path, variant, probes=False) / "events.csv").open("a") as file:
            file.write(f"900,diverged,1,1,3,0.0003,{detail}\n")
    loaded = diagnostics.load(tmp_path)
    told = loaded.events[loaded.events["event"] == "diverged"].set_index("variant")["detail"]
    assert told.to_dict() == {
        "sac": "loss is nan,\nfor good",
        "fog": "7",
        "sac-reset": "2026-11-16",
    }
    assert loaded.problems.empty


def test_a_config_with_nonsense_in_it(tmp_path: Path) -> None:
    copy(tmp_path, "sac", 0, probes=False, scale="many")
    copy(tmp_path, "sac", 1, probes=False)
    table = diagnostics.load(tmp_path).runs.set_index("seed")
    assert np.isnan(table.loc[0, "scale"])
    assert table.loc[1, "scale"] == 0.1


@pytest.mark.parametrize("name", ["manifest.json", "config.yaml"])
def test_a_missing_or_broken_description(tmp_path: Path, name: str) -> None:
    gone, broken = copy(tmp_path, "sac", 0), copy(tmp_path, "sac", 1)
    intact = copy(tmp_path, "sac", 2)
    (gone / name).unlink()
    (broken / name).write_text('{"status": [' if name.endswith("json") else "run: [")
    loaded = load_damaged(tmp_path)
    assert len(loaded) == 3
    assert f"no {name}" in problem_of(loaded, gone)
    assert f"{name} cannot be read" in problem_of(loaded, broken)
    assert problem_of(loaded, intact) == ""
    # What the file would have told is told by the path.
    assert set(loaded.identity["task"]) == {TASK}
    assert set(loaded.identity["variant"]) == {"sac"}
    assert list(loaded.identity["seed"].sort_values()) == [0, 1, 2]
    assert loaded.evals["run"].nunique() == 3
    if name == "manifest.json":
        assert list(loaded.runs["status"]) == ["unknown", "unknown", "finished"]
        assert list(loaded.runs["env_step"]) == [800, 800, 800]


def test_damaged_and_unfinished_parts_of_a_probe_table(tmp_path: Path) -> None:
    run = copy(tmp_path)
    home = run / "probes" / "critic_loss"
    parts = sorted(home.glob("*.parquet"))
    kept = len(pd.read_parquet(parts[0]))
    parts[1].write_bytes(parts[1].read_bytes()[:100])
    (home / "000000000900-00.parquet").touch()
    (home / "000000000900-01.partial").touch()
    loaded = load_damaged(tmp_path)
    assert len(loaded.critic_loss) == kept
    said = problem_of(loaded, run)
    assert f"{parts[1].name} cannot be read" in said
    assert "000000000900-00.parquet cannot be read" in said
    assert "000000000900-01.partial was not finished" in said


def test_a_table_of_another_schema_is_refused_by_name(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    run = copy(tmp_path)
    part = sorted((run / "probes" / "norms").glob("*.parquet"))[0]
    table = pq.read_table(part)
    pq.write_table(table.replace_schema_metadata({schema.METADATA_KEY: "99"}), part)
    part = sorted((run / "probes" / "srank").glob("*.parquet"))[0]
    pq.write_table(pq.read_table(part).drop(["width"]), part)
    mark(part, str(schema.VERSION))
    loaded = load_damaged(tmp_path)
    assert "schema version 99" in problem_of(loaded, run)
    assert "lacks the columns ['width']" in problem_of(loaded, run)
    assert not loaded.table("norms").empty


def test_best_scores_choose_on_the_grid_of_the_run_s_scale(tmp_path: Path) -> None:
    """At scale 0.01 the grid's points are 250, 500 and 750; evaluations come every 100 steps."""
    run = copy(tmp_path, probes=False, scale=0.01)
    means = pd.read_csv(run / "evals.csv").groupby("env_step")["return"].mean()
    loaded = diagnostics.load(tmp_path)
    for runs in (loaded, loaded.select(variant="fog")):
        row = runs.runs.iloc[0]
        assert row["grid_steps"] == 250
        assert row["best_return"] == pytest.approx(means[[200, 500, 700]].max())
        assert row["best_score"] == row["best_return"]
    finer = diagnostics.load(tmp_path, grid="20k").runs.iloc[0]
    assert finer["best_return"] == pytest.approx(means[[200, 400, 600]].max())


def test_old_gradient_scores_are_not_read_under_the_new_name(tmp_path: Path) -> None:
    """Schema version 1 took them after the activation; everything else means the same today."""
    old, new = copy(tmp_path, seed=0), copy(tmp_path, seed=1)
    for table in (old / "probes").iterdir():
        mark(table, "1")
    mark(new / "probes" / "dormancy", "2")
    loaded = load_damaged(tmp_path)
    scores = loaded.dormancy
    of_old = scores["run"] == str(old)
    assert of_old.any() and not of_old.all()
    assert scores["gradient"][of_old].isna().all() and scores["gradient"][~of_old].notna().all()
    assert scores["activation"].notna().all()
    ratios = {s: set(dormant_ratios(scores, score=s)["run"]) for s in ("activation", "gradient")}
    assert ratios == {"activation": {str(old), str(new)}, "gradient": {str(new)}}
    for name in loaded.tables:
        assert set(loaded.table(name)["run"]) == {str(old), str(new)}, name
    assert problem_of(loaded, old) == (
        "probes/dormancy has schema version 1: gradient is not read, it was taken after the "
        "activation, where a dead ReLU neuron looks active"
    )
    assert set(loaded.problems["run"]) == {str(old)}


def test_columns_that_an_old_table_could_not_have_are_null(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    run = copy(tmp_path)
    for name, column in (("srank", "width"), ("dormancy", "layer"), ("plasticity", "area")):
        for part in (run / "probes" / name).glob("*.parquet"):
            pq.write_table(pq.read_table(part).drop([column]), part)
        mark(run / "probes" / name, "1")
        rows = diagnostics.load(tmp_path).table(name)
        assert len(rows) and rows[column].isna().all(), name
        assert set(schema.TABLES[name].names) <= set(rows.columns)
    assert diagnostics.load(tmp_path).table("srank")["srank"].notna().all()


def test_old_and_new_parts_of_one_table_are_told_apart(tmp_path: Path) -> None:
    run = copy(tmp_path)
    parts = sorted((run / "probes" / "dormancy").glob("*.parquet"))
    mark(parts[0], "1")
    mark(parts[1], "2")
    scores = load_damaged(tmp_path).dormancy
    first = len(pd.read_parquet(parts[0]))
    assert scores["gradient"][:first].isna().all() and scores["gradient"][first:].notna().all()
    assert scores["activation"].notna().all()


def test_a_directory_that_was_only_begun(tmp_path: Path) -> None:
    copy(tmp_path, "sac")
    begun = tmp_path / TASK / "fog" / "seed3"
    begun.mkdir(parents=True)
    loaded = load_damaged(tmp_path)
    assert problem_of(loaded, begun) == "no config.yaml; no manifest.json"
    row = loaded.runs[loaded.runs["run"] == str(begun)].iloc[0]
    assert (row["variant"], row["seed"], row["status"], row["env_step"]) == ("fog", 3, "unknown", 0)
    assert np.isnan(row["final_score"])


def test_a_finished_run_without_evaluations_is_named(tmp_path: Path) -> None:
    run = copy(tmp_path)
    (run / "evals.csv").write_text("env_step,return,length,success_once,success_end,episode\n")
    assert "evals.csv is missing or empty" in problem_of(load_damaged(tmp_path), run)


def test_problems_are_warned_of_once(tmp_path: Path) -> None:
    (copy(tmp_path) / "manifest.json").unlink()
    with pytest.warns(RunsWarning, match="no manifest.json"):
        loaded = diagnostics.load(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loaded.runs  # noqa: B018
        loaded.critic_loss  # noqa: B018
    assert loaded.runs["problems"].iloc[0] == "no manifest.json"


# Labels


def test_seeds_share_a_label_and_scales_do_not(tmp_path: Path) -> None:
    for scale in (0.1, 0.2):
        copy(tmp_path / str(scale), "sac", 0, probes=False, scale=scale)
        copy(tmp_path / str(scale), "sac", 1, probes=False, scale=scale)
    copy(tmp_path, "fog", probes=False)
    table = diagnostics.load(tmp_path).identity
    counts = table.groupby("label").size().to_dict()
    assert counts == {"sac (scale 0.1)": 2, "sac (scale 0.2)": 2, "fog (scale 0.1)": 1}


def test_variants_may_differ_in_settings_but_runs_of_one_may_not(tmp_path: Path) -> None:
    copy(tmp_path, "sac", 0, probes=False)
    copy(tmp_path, "fog", 0, probes=False, width=32)
    assert set(diagnostics.load(tmp_path).identity["label"]) == {"sac", "fog"}
    copy(tmp_path, "fog", 1, probes=False, epsilon=0.5, threads=7)
    labels = set(diagnostics.load(tmp_path).identity["label"])
    assert labels == {"sac", "fog (epsilon 0.0001, width 32)", "fog (epsilon 0.5, width 8)"}


def test_hundreds_of_runs(tmp_path: Path) -> None:
    for k in range(300):
        copy(tmp_path, VARIANTS[k % 3], k // 3 % 20, probes=k < 3, task=f"t{k // 60}")
    loaded = diagnostics.load(tmp_path)
    assert len(loaded) == len(loaded.runs) == 300
    assert loaded.runs["final_return"].notna().all()
    assert loaded.identity.groupby(["task", "label"]).size().tolist() == [20] * 15
    assert loaded.critic_loss["run"].nunique() == 3
