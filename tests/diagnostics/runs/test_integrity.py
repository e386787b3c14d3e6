"""A changed digit in an ended run is seen, told in one line, and is no matter of other runs."""

from __future__ import annotations

import json
import shutil
import warnings
from pathlib import Path

import pandas as pd
import pytest

import diagnostics
import fog
from diagnostics.errors import AnalysisError, RunsWarning
from diagnostics.runs.export import export
from diagnostics.runs.load import IDENTITY, Runs
from fog.cli import main
from fog.records.ledger import sealed
from tests.diagnostics.recorded import FIXTURE, copy
from tests.training import tiny

TABLES = ("evals", "train", "events", "runs", "dormancy", "sample_counts")


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs that have ended."""
    out = tmp_path_factory.mktemp("two")
    for seed in (0, 1):
        fog.train(tiny(out, seed=seed, probes=("dormancy", "sample_counts")))
    return out


@pytest.fixture
def runs(two: Path, tmp_path: Path) -> Path:
    shutil.copytree(two, tmp_path / "runs")
    return tmp_path / "runs"


def run_of(runs: Path, seed: int = 0) -> Path:
    return runs / "gym-Pendulum-v1" / "fog" / f"seed{seed}"


def loaded(path: Path) -> Runs:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RunsWarning)
        found = diagnostics.load(path)
        for name in TABLES:
            getattr(found, name)
    return found


def without_names(table: pd.DataFrame, seed: int) -> pd.DataFrame:
    own = table[table["seed"] == seed].reset_index(drop=True)
    return own.drop(columns=[*IDENTITY, *(c for c in ("problems", "idle_hours") if c in own)])


FILES = (
    "evals.csv",
    "train.csv",
    "events.csv",
    "config.yaml",
    "manifest.json",
    "probes/dormancy/joined.parquet",
    "probes/sample_counts/joined.parquet",
)


def change_a_digit(path: Path) -> None:
    """Another digit in a number of the third line: nothing that a parser could see."""
    raw = bytearray(path.read_bytes())
    third = raw.index(b"\n", raw.index(b"\n") + 1)
    at = next(k for k in range(third, len(raw)) if raw[k : k + 1] in b"12345678")
    raw[at] += 1
    path.write_bytes(raw)


def flip(path: Path, at: int) -> None:
    raw = bytearray(path.read_bytes())
    raw[at] ^= 1
    path.write_bytes(raw)


def damage(path: Path) -> None:
    if path.suffix == ".parquet":
        flip(path, path.stat().st_size // 2)
    elif path.suffix == ".json":
        path.write_text(path.read_text().replace('"env_step": 300', '"env_step": 301'))
    else:
        change_a_digit(path)


def test_ended_runs_have_no_problems(runs: Path) -> None:
    assert loaded(runs).problems.empty


@pytest.mark.parametrize("name", FILES)
def test_a_changed_digit_is_one_line_and_the_other_run_goes_on(runs: Path, name: str) -> None:
    before = loaded(runs)
    damage(run_of(runs) / name)
    after = loaded(runs)
    assert list(after.problems["run"]) == [str(run_of(runs))]
    assert name in after.problems["problem"][0]
    for table in TABLES:
        pd.testing.assert_frame_equal(
            without_names(getattr(after, table), 1),
            without_names(getattr(before, table), 1),
            check_dtype=False,
        )


@pytest.mark.parametrize("name", [name for name in FILES if name != "manifest.json"])
def test_missing_short_and_long_files_are_one_line_too(runs: Path, name: str) -> None:
    path = run_of(runs) / name
    raw = path.read_bytes()
    for content, said in ((raw[:-9], f"{len(raw) - 9} bytes"), (raw + b"1", "bytes"), (None, "")):
        if content is None:
            path.unlink()
        else:
            path.write_bytes(content)
        problems = loaded(runs).problems
        assert set(problems["run"]) == {str(run_of(runs))}
        told = list(problems["problem"])
        if name != "config.yaml":
            assert len(told) == 1, told
        assert any(said in line and name in line for line in told), told


def test_a_run_without_its_probes_is_one_line(runs: Path) -> None:
    shutil.rmtree(run_of(runs) / "probes")
    assert list(loaded(runs).problems["problem"]) == [
        "probes/dormancy/joined.parquet and 3 more files are missing"
    ]


def test_damaged_numbers_are_not_used(runs: Path) -> None:
    damage(run_of(runs) / "evals.csv")
    damage(run_of(runs) / "probes/dormancy/joined.parquet")
    found = loaded(runs)
    assert set(found.evals["seed"]) == set(found.dormancy["seed"]) == {1}
    assert found.runs.set_index("seed")["final_return"].isna().to_dict() == {0: True, 1: False}


def test_every_byte_of_a_joined_table_is_checked(runs: Path) -> None:
    """Also where only the newest measurements are read, and page headers have no checksum."""
    path = run_of(runs) / "probes/sample_counts/joined.parquet"
    expected = diagnostics.load(run_of(runs)).table("sample_counts", last=1)
    raw = path.read_bytes()
    for at in range(0, len(raw), 61):
        path.write_bytes(raw)
        flip(path, at)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RunsWarning)
            found = diagnostics.load(run_of(runs))
            table = found.table("sample_counts", last=1)
        if found.problems.empty:
            pd.testing.assert_frame_equal(table, expected)
        else:
            assert table.empty


def test_a_foreign_part_is_left_out(runs: Path) -> None:
    source = FIXTURE / "cartpole-swingup/fog/seed0/probes/sample_counts/000000000100-00.parquet"
    shutil.copy(source, run_of(runs) / "probes/sample_counts/000000000050-00.parquet")
    before = loaded(run_of(runs, 1)).sample_counts
    found = loaded(runs)
    assert "was not written by this run" in found.problems["problem"][0]
    assert len(found.sample_counts) == 2 * len(before)


def test_a_swapped_table_is_seen(runs: Path) -> None:
    for name in ("evals.csv", "probes/dormancy/joined.parquet"):
        shutil.copy(run_of(runs, 1) / name, run_of(runs) / name)
    problems = loaded(runs).problems
    assert set(problems["run"]) == {str(run_of(runs))} and len(problems) == 2


@pytest.mark.parametrize(
    "files",
    ["x", 3, [], {"evals.csv": 3}, {"evals.csv": {"bytes": []}}, {"../x": {"bytes": 1}},
     {"evals.csv": {"bytes": 1e400, "crc32": 1}}, {"\0": {"bytes": 1, "crc32": 1}},
     {"probes/dormancy/joined.parquet": {"bytes": 1, "crc32": 1, "groups": [[-5, 1, 1]]}},
     {"config.yaml": None}],
)  # fmt: skip
def test_a_record_of_a_stranger_is_a_problem_and_no_crash(runs: Path, files: object) -> None:
    path = run_of(runs) / "manifest.json"
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps(sealed({**manifest, "files": files})))
    found = loaded(runs)
    assert set(found.problems["run"]) <= {str(run_of(runs))}
    assert set(found.evals["seed"]) >= {1}


def test_runs_of_earlier_versions_have_no_record_and_load(tmp_path: Path) -> None:
    run = copy(tmp_path)
    change_a_digit(run / "evals.csv")
    assert loaded(tmp_path).problems.empty


# Exports


@pytest.mark.parametrize("options", [{}, {"rounded": True}, {"keep_host": True}])
def test_an_export_has_a_record_of_its_own(
    runs: Path, tmp_path: Path, options: dict[str, bool]
) -> None:
    done = export(runs, tmp_path / "kept", without=["sample_counts"], **options)
    assert not done.damaged
    assert loaded(tmp_path / "kept").problems.empty
    for name in ("evals.csv", "train.csv", "config.yaml"):
        damage(run_of(tmp_path / "kept") / name)
        told = loaded(tmp_path / "kept").problems["problem"]
        assert told.str.contains(name).sum() == 1, list(told)
    (part,) = (run_of(tmp_path / "kept", 1) / "probes/dormancy").iterdir()
    flip(part, 300)
    told = loaded(tmp_path / "kept").problems["problem"]
    assert told.str.contains(part.name).sum() == 1, list(told)


def test_what_was_damaged_stays_told_in_the_copy(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damage(run_of(runs) / "evals.csv")
    damage(run_of(runs) / "probes/dormancy/joined.parquet")
    assert main(["export", "--runs", str(runs), "--out", str(tmp_path / "kept")]) == 1
    assert capsys.readouterr().out.count("incomplete") == 2
    found = loaded(tmp_path / "kept")
    assert set(found.problems["run"]) == {str(run_of(tmp_path / "kept"))}
    said = "; ".join(found.problems["problem"])
    assert "when it was exported: evals.csv is not what the run wrote" in said
    assert "when it was exported: probes/dormancy/joined.parquet is not" in said
    assert set(found.evals["seed"]) == {1}


def test_a_run_left_out_for_its_manifest_is_no_success(runs: Path, tmp_path: Path) -> None:
    (run_of(runs) / "manifest.json").unlink()
    assert main(["export", "--runs", str(runs), "--out", str(tmp_path / "kept")]) == 1
    assert len(loaded(tmp_path / "kept")) == 1


# Only what is asked for


def test_columns_and_newest_measurements_are_the_same_in_every_layout(
    runs: Path, tmp_path: Path
) -> None:
    export(runs, tmp_path / "kept")
    parts = tmp_path / "parts"
    shutil.copytree(runs, parts)
    for seed in (0, 1):
        from fog.records.joining import split

        split(run_of(parts, seed))
        manifest = json.loads((run_of(parts, seed) / "manifest.json").read_text())
        manifest["files"] = None
        (run_of(parts, seed) / "manifest.json").write_text(json.dumps(sealed(manifest)))
    names = ["seed", "env_step", "network", "positive"]
    whole = loaded(runs).dormancy
    steps = sorted(set(whole["env_step"]))
    newest = whole[whole["env_step"] >= steps[-3]].reset_index(drop=True)
    for home in (runs, tmp_path / "kept", parts):
        found = diagnostics.load(home)
        few = found.table("dormancy", columns=("network", "positive"), last=3)
        assert list(few.columns) == [*IDENTITY, "env_step", "network", "positive"]
        pd.testing.assert_frame_equal(few[names], newest[names])
        assert found.problems.empty
    with pytest.raises(AnalysisError, match="did you mean 'positive'"):
        diagnostics.load(runs).table("dormancy", columns=("positve",))
