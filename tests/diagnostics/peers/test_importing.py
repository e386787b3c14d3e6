from __future__ import annotations

import json
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from diagnostics.paper.methods import methods
from diagnostics.peers import formats
from diagnostics.peers.checkouts import REPOSITORIES, detect
from diagnostics.peers.formats import our_task
from fog.cli import main
from tests.diagnostics.peers import madeup
from tests.diagnostics.peers.madeup import value


@pytest.fixture(scope="module")
def checkouts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    home = tmp_path_factory.mktemp("checkouts")
    return {name: make(home / name) for name, make in madeup.CHECKOUTS.items()}


def run_import(*arguments: object) -> int:
    return main(["import", *map(str, arguments)])


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("h1_balance_hard_v0", "h1-balance-hard"),
        ("h1-balance_hard-v0", "h1-balance-hard"),
        ("Humanoid_v4", "Humanoid-v4"),
        ("dog_run", "dog-run"),
        ("assembly-v2-goal-observable", "mw-assembly"),
        ("mw-assembly", "mw-assembly"),
        ("h1hand-walk-v0", None),
        ("myo-key-turn", None),
    ],
)
def test_tasks_have_many_spellings(theirs: str, ours: str | None) -> None:
    assert our_task(theirs) == ours


def test_every_format_is_read_as_it_was_written(checkouts: dict[str, Path]) -> None:
    found = {
        "long": formats.read_long(checkouts["simba"] / "results/sac_simba.csv"),
        "by task": formats.read_by_task(checkouts["tdmpc2"] / "results/tdmpc2"),
        "arrays": formats.read_arrays(checkouts["bro"] / "trainingdata.zip", "BRO_fast"),
        "by seed": formats.read_by_seed(next((checkouts["nikishin"] / "curves/sac").iterdir())),
    }
    outside = {
        "long": ["myo_key_turn"],
        "by task": ["cup-spin"],
        "arrays": ["fish-swim"],
        "by seed": ["swimmer-swimmer15"],
    }
    assert {name: at.outside for name, at in found.items()} == outside
    for name, (rows, _, _) in found.items():
        returns = rows[rows["metric"] == "return"]
        assert len(returns), name
        for row in returns.itertuples():
            assert row.value == pytest.approx(value(row.seed, row.env_step)), name
    # 40 evaluations of 10 seeds, 25k frames apart, the first after 25k.
    arrays = found["arrays"].rows
    assert set(arrays["task"]) == {"dog-run", "mw-assembly"}
    assert sorted(arrays["env_step"].unique()) == list(range(25_000, 1_000_001, 25_000))
    assert set(arrays["metric"][arrays["task"] == "mw-assembly"]) == {"success"}


def test_all_repositories_into_one_folder(
    checkouts: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "peers"
    assert run_import("--from", *checkouts.values(), "--out", out) == 0
    told = capsys.readouterr().out
    wanted = {feed.method for at in REPOSITORIES for feed in at.feeds}
    assert wanted <= set(methods())
    # simba_utd8_reset was left out of the made-up checkout on purpose.
    assert {path.stem for path in out.glob("*.csv")} == wanted - {"simba-utd8-reset"}
    assert "not there: " in told and "simba_utd8_reset.csv" in told
    assert "not among the paper's 41 tasks: 1 of nicklashansen/tdmpc2 (cup-spin" in told
    noted = json.loads((out / "peers.json").read_text())["methods"]
    # The authors' own runs first; what they lack from others.
    sources = {entry["repository"]: entry["tasks"] for entry in noted["bro-utd10"]}
    assert sources == {
        "naumix/BiggerRegularizedOptimistic": ["dog-run", "mw-assembly"],
        "DAVIAN-Robotics/SimbaV2": ["Ant-v4"],
    }
    assert {entry["licence"] for entry in noted["bro-utd10"]} == {"MIT", "Apache-2.0"}
    assert {entry["repository"] for entry in noted["tdmpc2"]} == {
        "nicklashansen/tdmpc2",
        "SonyResearch/simba",
    }
    assert all(len(entry["sha256"]) == 64 for entries in noted.values() for entry in entries)
    xqc = pd.read_csv(out / "xqc.csv")
    assert set(xqc["task"]) == {"Ant-v4", "dog-run"}


def test_a_run_listed_again_under_another_seed_is_one_run(tmp_path: Path) -> None:
    path = madeup.long_csv(tmp_path / "x.csv", "x", {"dog-run": 100_000}, seeds=(0, 1000))
    once = pd.read_csv(path, index_col=0)
    swapped = once.assign(seed=once["seed"].map({0: 1000, 1000: 0}))
    pd.concat([once, swapped, once], ignore_index=True).to_csv(path)
    found = formats.read_long(path)
    assert len(found.rows) == 2 * 11 and not found.notes
    for row in found.rows.itertuples():
        assert row.value == pytest.approx(value(row.seed, row.env_step))
    # Two values of one run at one step: the first is kept, and told.
    last = once.tail(2).head(1).assign(value=-1.0)
    pd.concat([once, last], ignore_index=True).to_csv(path)
    found = formats.read_long(path)
    assert len(found.rows) == 2 * 11 and -1.0 not in set(found.rows["value"])
    assert "1 evaluations appear twice with two values" in found.notes[0]


def test_the_order_of_imports_does_not_matter(checkouts: dict[str, Path], tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    run_import("--from", *checkouts.values(), "--out", one)
    for checkout in reversed(checkouts.values()):
        assert run_import("--from", checkout, "--out", other) == 0
    assert {path.name for path in one.iterdir()} == {path.name for path in other.iterdir()}
    for path in one.glob("*.csv"):
        assert path.read_bytes() == (other / path.name).read_bytes(), path.name


def test_a_tidy_folder_can_be_imported(checkouts: dict[str, Path], tmp_path: Path) -> None:
    run_import("--from", checkouts["bro"], "--out", tmp_path / "a")
    assert run_import("--from", tmp_path / "a", "--out", tmp_path / "b") == 0
    assert (tmp_path / "a" / "bro-utd2.csv").read_bytes() == (
        tmp_path / "b" / "bro-utd2.csv"
    ).read_bytes()
    noted = json.loads((tmp_path / "b" / "peers.json").read_text())["methods"]
    assert noted["bro-utd2"][0]["repository"] == "naumix/BiggerRegularizedOptimistic"
    mine = madeup.tidy(tmp_path / "mine", my_method={"dog-run": {0: {25_000: 1.0}}})
    assert run_import("--from", mine, "--out", tmp_path / "b") == 0
    noted = json.loads((tmp_path / "b" / "peers.json").read_text())["methods"]
    assert noted["my-method"][0]["licence"] == "unknown"


def _empty(home: Path) -> Path:
    home.mkdir()
    return home


def _bare(home: Path) -> Path:
    (home / "objects").mkdir(parents=True)
    (home / "HEAD").write_text("ref: refs/heads/main\n")
    return home


def _part(home: Path) -> Path:
    return madeup.xqc(home) / "results"


def _pointer(home: Path) -> Path:
    madeup.xqc(home)
    (home / "results/xqc.csv").write_text(madeup.POINTER)
    return home


def _pointer_zip(home: Path) -> Path:
    home.mkdir()
    (home / "trainingdata.zip").write_text(madeup.POINTER)
    return home


def _other_columns(home: Path) -> Path:
    madeup.xqc(home)
    table = pd.read_csv(home / "results/xqc.csv").rename(columns={"env_step": "frames"})
    table.to_csv(home / "results/xqc.csv")
    return home


def _other_tasks(home: Path) -> Path:
    madeup.long_csv(home / "results/xqc.csv", "xqc", {"myo-key-turn": 100_000})
    return home


def _other_shape(home: Path) -> Path:
    home.mkdir()
    np.save(home / "dog-run.npy", np.zeros(40))
    with zipfile.ZipFile(home / "trainingdata.zip", "w") as archive:
        archive.write(home / "dog-run.npy", "trainingdata/BRO/dog-run.npy")
    return home


def _pickled(home: Path) -> Path:
    home.mkdir()
    np.save(home / "dog-run.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with zipfile.ZipFile(home / "trainingdata.zip", "w") as archive:
        archive.write(home / "dog-run.npy", "trainingdata/BRO/dog-run.npy")
    return home


def _unknown_task(home: Path) -> Path:
    madeup.tidy(home, mine={"dog-run": {0: {0: 1.0}}})
    (home / "mine.csv").write_text((home / "mine.csv").read_text().replace("dog-run", "dog-rnu"))
    return home


def _newer(home: Path) -> Path:
    madeup.tidy(home, mine={"dog-run": {0: {0: 1.0}}})
    madeup.provenance(home, version=2)
    return home


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda home: home / "nowhere", "does not exist"),
        (
            _empty,
            "holds no published results in a known format: nicklashansen/tdmpc2 (results/tdmpc2)",
        ),
        (_bare, "is a git directory without files: `git clone` it first"),
        (_part, "is part of a checkout: give --from"),
        (_pointer, "is a pointer, not data: run `git lfs pull` in its checkout"),
        (_pointer_zip, "trainingdata.zip is a pointer, not data"),
        (_other_columns, "has no column env_step: another version of the file"),
        (_other_tasks, "holds no task of the paper"),
        (_other_shape, "has shape (40,), expected (evaluations, seeds)"),
        (_pickled, "cannot read"),
        (_unknown_task, "'dog-rnu': did you mean 'dog-run'?"),
        (_newer, "has version 2, but this program reads 1: import the peers again"),
    ],
)
def test_mistakes_are_one_line_and_nothing_is_written(
    make, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checkout, out = make(tmp_path / "given"), tmp_path / "out"
    assert run_import("--from", checkout, "--out", out) == 2
    streams = capsys.readouterr()
    assert streams.err.startswith("fog: ") and streams.err.count("\n") == 1
    assert said in streams.err
    assert not out.exists()


def test_other_files_in_out_are_left_alone(
    checkouts: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    assert run_import("--from", checkouts["xqc"], "--out", tmp_path) == 2
    assert "holds other files" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_table_of_another_hand_is_left_alone(
    checkouts: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_import("--from", checkouts["xqc"], "--out", tmp_path)
    madeup.tidy(tmp_path, mine={"dog-run": {0: {25_000: 1.0}}})
    before = (tmp_path / "mine.csv").read_bytes()
    assert run_import("--from", checkouts["bro"], "--out", tmp_path) == 2
    assert "mine.csv was not written by `fog import`" in capsys.readouterr().err
    assert (tmp_path / "mine.csv").read_bytes() == before
    assert not (tmp_path / "bro-utd2.csv").exists()


def test_a_failed_import_keeps_the_earlier_one(checkouts: dict[str, Path], tmp_path: Path) -> None:
    out = tmp_path / "peers"
    run_import("--from", checkouts["bro"], "--out", out)
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    broken = _pointer(tmp_path / "broken")
    assert run_import("--from", checkouts["simba"], broken, "--out", out) == 2
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


def test_checkouts_are_told_apart(checkouts: dict[str, Path]) -> None:
    found = {name: detect(path) for name, path in checkouts.items()}
    assert {name: at.name for name, at in found.items() if at} == {
        "tdmpc2": "nicklashansen/tdmpc2",
        "simba": "SonyResearch/simba",
        "bro": "naumix/BiggerRegularizedOptimistic",
        "simbav2": "DAVIAN-Robotics/SimbaV2",
        "xqc": "danielpalenicek/xqc",
        "nikishin": "evgenii-nikishin/rl_with_resets",
    }
