"""The paper's cells against made-up files whose answer is known, and against the real ones."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from diagnostics.metrics.scores import Grid
from diagnostics.paper import tables as paper
from diagnostics.peers.cells import by_file, cells, chance
from diagnostics.peers.load import Peers, load_peers
from diagnostics.peers.places import at_places, counted
from diagnostics.peers.scores import scores
from diagnostics.studies import published_tables as published
from diagnostics.studies.peer_claims import peer_claims, peer_evidence
from tests.diagnostics.peers import madeup
from tests.diagnostics.peers.madeup import SHARED, needs_shared


def behind(task: str, algorithm: str, *, at_the_end: float = 0.0) -> dict[int, dict[int, float]]:
    """Three seeds whose best evaluations before T have the mean and deviation of a printed cell."""
    cell = paper.printed().set_index(["task", "algorithm"]).loc[(task, algorithm)]
    spread = cell["std"] * np.sqrt(1.5)
    until = int(cell["steps"])
    bests = (cell["mean"] - spread, cell["mean"], cell["mean"] + spread)
    return {
        seed: {50_000: 1.0, until - 100_000: best, until - 50_000: 2.0, until: best + at_the_end}
        for seed, best in enumerate(bests)
    }


def verdicts(path: Path, **methods: dict) -> dict:
    table = cells(load_peers(madeup.tidy(path, **methods)))
    return table.set_index(["task", "algorithm"])


def test_a_cell_is_reproduced_by_the_seeds_behind_it(tmp_path: Path) -> None:
    hidden = behind("dog-trot", "BRO", at_the_end=30.0)
    noise = {seed: {50_000: 100.0 + 7.3 * seed, 1_000_000: 90.0} for seed in range(3, 8)}
    found = verdicts(
        tmp_path,
        bro_utd2={"dog-trot": {**noise, **hidden}},
        bro_utd10={"dog-trot": noise},
        simba_utd2={"dog-trot": noise},
    )
    cell = found.loc[("dog-trot", "BRO")]
    assert cell["verdict"] == "reproduced"
    assert cell["method"] == "bro-utd2" and cell["replay_ratio"] == 2
    assert cell["seeds"] == "0, 1, 2"
    assert (cell["triples"], cell["tried"]) == (1, 56)
    # The seeds were better still at T itself, so that no other rule fits.
    assert cell["rules"] == ""
    assert found.loc[("dog-trot", "SimBa"), "verdict"] == "not reproduced"
    assert found.loc[("dog-run", "BRO"), "verdict"] == "no public runs"
    assert len(found) == 3 * 41


def test_a_file_of_another_algorithm_reproduces_nothing(tmp_path: Path) -> None:
    found = verdicts(tmp_path, simba_utd2={"dog-trot": behind("dog-trot", "BRO")})
    assert found.loc[("dog-trot", "BRO"), "verdict"] == "no public runs"
    assert found.loc[("dog-trot", "BRO"), "wrong_methods_matching"] == 1
    assert found.loc[("dog-trot", "SimBa"), "verdict"] == "not reproduced"


def test_a_wrong_task_that_matches_is_counted(tmp_path: Path) -> None:
    right = behind("dog-trot", "BRO")
    found = verdicts(
        tmp_path, bro_utd2={"dog-trot": right, "dog-run": right, "dog-walk": {0: {50_000: 1.0}}}
    )
    cell = found.loc[("dog-trot", "BRO")]
    assert (cell["wrong_tasks"], cell["wrong_tasks_matching"]) == (2, 1)


def test_a_deviation_must_match_too(tmp_path: Path) -> None:
    cell = paper.printed().set_index(["task", "algorithm"]).loc[("dog-trot", "BRO")]
    flat = {seed: {50_000: float(cell["mean"])} for seed in range(3)}
    assert verdicts(tmp_path, bro_utd2={"dog-trot": flat}).loc[("dog-trot", "BRO"), "method"] == ""


def test_a_triple_at_fixed_places_is_found_without_choosing(tmp_path: Path) -> None:
    three = iter(behind("dog-trot", "BRO").values())
    cell = paper.printed().set_index(["task", "algorithm"]).loc[("dog-trot", "BRO")]
    ten = {}
    for place in range(1, 11):
        # Ascending up to T; what counts for the cell are the values before T.
        curve = next(three) if place in (4, 7, 10) else {50_000: 5.0}
        ten[20 - place] = {**curve, 1_000_000: 10_000.0 + place}
    peers = load_peers(madeup.tidy(tmp_path, bro_utd2={"dog-trot": ten}))
    found = at_places(peers).set_index("task").loc["dog-trot"]
    assert found["reproduced"]
    assert found["found_mean"] == pytest.approx(cell["mean"], abs=0.01)
    assert found["all_seeds"] == pytest.approx((3 * cell["mean"] + 7 * 5.0) / 10, abs=0.1)
    swapped = {seed: {**at, 1_000_000: -at[1_000_000]} for seed, at in ten.items()}
    peers = load_peers(madeup.tidy(tmp_path, bro_utd2={"dog-trot": swapped}))
    assert not at_places(peers)["reproduced"].any()


def test_a_better_fog_is_ahead_and_an_equal_one_is_not(tmp_path: Path) -> None:
    tasks = paper.tasks()
    hard = tasks["name"][tasks["group"] == "DMC-Hard"]
    same = {task: behind(task, "FoG") for task in hard}
    worse = {task: {seed: {50_000: 10.0 + seed} for seed in range(5)} for task in hard}
    peers = load_peers(madeup.tidy(tmp_path, bro_utd2=same, simba_utd2=worse))
    table = peer_evidence(peers)
    public = table[table["what"].str.contains("public seeds")]
    rows = public[public["task"] == "DMC-Hard"].set_index("sides")
    assert rows.loc["FoG against SimBa", "verdict"] == "reproduced"
    assert rows.loc["FoG against SimBa", "counts"]
    # Against its own cells the difference is zero, whatever the width.
    equal = rows.loc["FoG against BRO, replay ratio 2"]
    assert equal["estimate"] == pytest.approx(0, abs=1e-6)
    assert equal["verdict"] == "inconclusive"
    # A part of the 41 tasks does not decide about all of them.
    total = public[public["task"] == "Total (5 of 41 tasks)"]
    assert len(total) == 2 and not total["counts"].any()
    unknown = table[table["what"].str.contains("not public")]
    assert set(unknown["verdict"]) == {"no data"}
    assert set(table["claim"]) == {claim.name for claim in peer_claims()}


@pytest.fixture(scope="module")
def shared() -> Peers:
    return load_peers(SHARED)


@needs_shared
def test_75_of_81_cells_are_reproduced(shared: Peers) -> None:
    table = cells(shared)
    checked = table[table["group"].isin(published.CHECKED)]
    done = checked[checked["verdict"] == "reproduced"]
    assert (len(done), len(checked)) == (75, 81)
    missing = checked[checked["verdict"] == "not reproduced"]
    assert set(zip(missing["task"], missing["algorithm"], strict=True)) == {
        ("acrobot-swingup", "SimBa"),
        ("acrobot-swingup", "BRO"),
        ("hopper-hop", "SimBa"),
        ("walker-run", "SimBa"),
        ("dog-run", "TD-MPC2"),
        ("dog-run", "BRO"),
    }
    # Returns: a match means something, since no wrong task matches.
    assert done["wrong_tasks_matching"].sum() == 0
    assert done["wrong_tasks"].sum() > 1000
    # On a task where everybody scores 999, a file of another algorithm matches too.
    assert list(done["task"][done["wrong_methods_matching"] > 0]) == ["cartpole-balance"]


@needs_shared
def test_the_bro_column_is_bro_at_replay_ratio_2(shared: Peers) -> None:
    table = by_file(shared)
    best = table[table["rule"] == "best before T"].set_index(["method", "group"])
    counted = {
        key: (int(best.loc[key, "reproduced"]), int(best.loc[key, "cells"])) for key in best.index
    }
    assert counted[("bro-utd2", "HumanoidBench")] == (14, 14)
    assert counted[("bro-utd10", "HumanoidBench")] == (0, 14)
    assert counted[("bro-utd2", "DMC-Hard")] == (4, 5)
    assert counted[("bro-utd10", "DMC-Hard")] == (0, 5)
    assert counted[("simba-utd2", "HumanoidBench")] == (14, 14)
    assert counted[("tdmpc2", "HumanoidBench")] == (14, 14)
    assert counted[("tdmpc2", "Meta-World")] == (10, 10)
    for name in ("simba-utd2", "bro-utd2", "bro-utd10"):
        assert counted[(name, "MuJoCo")] == (0, 4)


@needs_shared
def test_the_seeds_behind_cells_have_fixed_places(shared: Peers) -> None:
    table = counted(shared).set_index(["method", "group"])
    hits = {key: (int(at["reproduced"]), int(at["cells"])) for key, at in table.iterrows()}
    assert hits[("bro-utd2", "HumanoidBench")] == (14, 14)
    assert table.loc[("bro-utd2", "HumanoidBench"), "places"] == "1, 2, 3"
    assert hits[("simba-utd2", "HumanoidBench")] == (12, 14)
    assert hits[("simba-utd2", "DMC-Hard")] == (5, 5)
    assert hits[("bro-utd10", "HumanoidBench")] == (0, 14)
    found = at_places(shared)
    found = found[found["group"].isin(published.CHECKED) & found["reproduced"]]
    assert len(found.drop_duplicates(["task", "algorithm"])) == 70


@needs_shared
def test_no_other_rule_reproduces_as_many(shared: Peers) -> None:
    table = published.cells_by_rule(shared)
    table = table[table["group"].isin(published.CHECKED)]
    counted = table.groupby("rule")["reproduced"].sum()
    assert counted["best before T"] == 75
    assert counted.drop("best before T").max() < 30
    wrong = chance(shared).set_index(["rule", "metric"]).loc[("best before T", "return")]
    assert wrong["matching"] == 0 and wrong["wrong"] > 1000


@needs_shared
def test_the_published_numbers_of_ant(shared: Peers) -> None:
    table = scores(shared.select(["simba-utd2"], ["Ant-v4"]), Grid(None))
    assert len(table) == 10
    assert table["best_score"].mean() == pytest.approx(5993, abs=1)


@needs_shared
def test_all_files_load_in_two_seconds_and_300_mb() -> None:
    code = (
        "import time\n"
        "begin = time.monotonic()\n"
        "from diagnostics.peers.load import load_peers\n"
        f"peers = load_peers({str(SHARED)!r})\n"
        "status = open('/proc/self/status').read()\n"
        "peak = int(status.split('VmHWM:')[1].split()[0]) / 1024\n"
        "print(len(peers.methods), time.monotonic() - begin, peak)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    methods, seconds, megabytes = map(float, done.stdout.split())
    assert methods == 25
    # Twice the time, because tests share the machine.
    assert seconds < 4
    assert megabytes < 300
