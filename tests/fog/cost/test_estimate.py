"""Estimates from a calibration that is made up, so that nothing depends on this machine's speed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fog.cost import calibration, estimate
from fog.cost.dimensions import dimensions, table
from fog.cost.estimate import _wall
from fog.errors import UserError
from fog.settings.config import Config
from fog.settings.tasks import registry
from fog.settings.variants import resolve
from tests.training import tiny

Requests = list[dict[str, Any]]


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Requests:
    """A machine on which everything takes a round time; collects what was asked to be measured."""
    requests: Requests = []

    def measure(request: dict[str, Any]) -> dict[str, Any]:
        requests.append(request)
        found: dict[str, Any] = {"start": 2.0, "bytes": 200_000_000}
        if "tasks" in request:
            found["tasks"] = {
                name: {
                    "obs_dim": dimensions(name)[0],
                    "act_dim": dimensions(name)[1],
                    "episode_length": 200,
                    "make": 0.5,
                    "bytes": 10_000_000,
                    "import": 0.25,
                    "import_bytes": 5_000_000,
                    "step": 0.001,
                }
                for name in request["tasks"]
                if not name.startswith("h1-")
            }
            return found
        found["agents"] = [{"update": 0.01, "act": 0.0001} for _ in request["agents"]]
        found["samplers"] = [0.001 for _ in request["samplers"]]
        found["checkpoint"] = {"fixed": 0.1, "byte": 0.0}
        return found

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(calibration, "_measure", measure)
    return requests


def _run(**changes: Any) -> Config:
    return tiny(Path("nowhere"), "sac", reset_steps=(), expansion_updates=(), **changes)


def test_the_time_of_a_run_is_the_sum_of_what_it_repeats(measured: Requests) -> None:
    cost = estimate([_run()]).per_run[0]
    assert cost.updates == 260
    assert cost.parts == pytest.approx(
        {
            "start": 2.0 + 0.25 + 0.5,
            "steps": 300 * 0.001 + 260 * 0.0001,
            "updates": 260 * (0.01 + 0.001),
            "compiling": 0.0,
            "evaluations": 3 * 1 * 200 * (0.001 + 0.0001),
            "probes": 0.0,
            "checkpoints": 5 * 0.1,
        }
    )
    assert cost.seconds == sum(cost.parts.values())


def test_repeated_actions_cost_simulator_steps_and_no_updates(measured: Requests) -> None:
    once, thrice = (run.parts for run in estimate([_run(), _run(action_repeat=3)]).per_run)
    assert thrice["steps"] == pytest.approx(300 * 0.003 + 260 * 0.0001)
    assert thrice["evaluations"] == pytest.approx(3 * 67 * (0.003 + 0.0001))
    assert thrice["updates"] == once["updates"]


def test_probes_and_deeper_critics_and_compiling_cost_more(measured: Requests) -> None:
    plain, probed, compiled = estimate(
        [_run(), _run(probes=("critic_loss",)), _run(compile="on")]
    ).per_run
    assert probed.seconds > plain.seconds and probed.disk_bytes > plain.disk_bytes
    assert compiled.parts["compiling"] > 0
    assert compiled.parts["updates"] < plain.parts["updates"]
    assert compiled.memory_bytes > plain.memory_bytes


def test_totals_are_sums_and_memory_is_that_of_the_largest(measured: Requests) -> None:
    runs = [_run(seed=0), _run(seed=1), _run(seed=2, steps=600, capacity=600)]
    found = estimate(runs, jobs=1)
    assert found.seconds_total == pytest.approx(sum(run.seconds for run in found.per_run))
    assert found.seconds_wall == pytest.approx(found.seconds_total)
    assert found.disk_bytes == sum(run.disk_bytes for run in found.per_run)
    assert found.peak_memory_bytes == max(run.memory_bytes for run in found.per_run)
    two = sorted(run.memory_bytes for run in found.per_run)[-2:]
    assert estimate(runs, jobs=2).peak_memory_bytes == sum(two)


@pytest.mark.parametrize(
    ("seconds", "jobs", "wall"),
    [([3.0, 1.0, 2.0], 1, 6.0), ([3.0, 1.0, 2.0], 2, 3.0), ([4.0], 3, 4.0), ([], 2, 0.0)],
)
def test_runs_at_a_time(seconds: list[float], jobs: int, wall: float) -> None:
    assert _wall(seconds, jobs) == wall


def test_more_runs_than_cores_take_turns(
    measured: Requests, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    runs = [_run(seed=seed) for seed in range(4)]
    two, four = estimate(runs, jobs=2), estimate(runs, jobs=4)
    assert four.seconds_wall == pytest.approx(two.seconds_wall)
    assert any("share the cores" in note for note in four.notes)
    assert not any("share the cores" in note for note in two.notes)


def test_the_machine_is_measured_once(measured: Requests) -> None:
    first = estimate([_run()])
    asked = len(measured)
    again = estimate([_run(seed=1), _run(steps=500)])
    assert asked == 2 and len(measured) == asked
    assert "this machine was measured" in first.notes[0]
    assert "as measured on" in again.notes[0]


def test_only_what_is_new_is_measured(measured: Requests) -> None:
    estimate([_run()])
    del measured[:]
    estimate([_run(), _run(width=32)])
    assert [request.keys() for request in measured] == [{"agents", "samplers"}]
    assert [point["settings"]["width"] for point in measured[0]["agents"]] == [32]
    assert measured[0]["samplers"] == []


def test_both_ends_of_a_growing_critic_are_measured(measured: Requests) -> None:
    estimate([tiny(Path("nowhere"), "fog")])
    assert [point["depth"] for point in measured[1]["agents"]] == [2, 4]


@pytest.mark.parametrize("damage", ["{", "[]", '{"unknown": 1}'])
def test_a_damaged_cache_is_measured_anew(measured: Requests, damage: str) -> None:
    calibration.cache_path().parent.mkdir(parents=True)
    calibration.cache_path().write_text(damage)
    assert estimate([_run()]).seconds_total > 0
    assert len(measured) == 2


def test_a_cache_that_cannot_be_written_is_no_error(
    measured: Requests, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert "cannot be written" in estimate([_run()]).notes[0]


def test_other_code_has_another_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    before = calibration.cache_path()
    monkeypatch.setattr(calibration.machine, "versions", lambda: {"torch": "0"})
    assert calibration.cache_path() != before


def test_without_calibration_nothing_is_measured(measured: Requests) -> None:
    found = estimate([_run()], calibrate=False)
    assert measured == [] and found.seconds_total > 0
    assert any("not measured" in note for note in found.notes)


def test_a_suite_that_is_not_installed_is_estimated_and_named(measured: Requests) -> None:
    found = estimate([resolve("h1-walk", "fog", 0.01), resolve("h1-reach", "fog", 0.01)])
    assert all(run.seconds > 0 and run.memory_bytes > 0 for run in found.per_run)
    assert any("1 ms a step assumed: h1-walk, h1-reach" in note for note in found.notes)


def test_a_task_that_time_did_not_suffice_for_is_like_its_relatives(
    measured: Requests, monkeypatch: pytest.MonkeyPatch
) -> None:
    measure = calibration._measure

    def first_only(request: dict[str, Any]) -> dict[str, Any]:
        if "tasks" in request:
            request = {**request, "tasks": request["tasks"][:1]}
        return measure(request)

    monkeypatch.setattr(calibration, "_measure", first_only)
    names = ("cartpole-swingup", "walker-run")
    found = estimate([resolve(name, "sac", 0.01, compile="off") for name in names])
    assert any("like others of their suite: walker-run" in note for note in found.notes)
    steps = [run.parts["steps"] for run in found.per_run]
    ends = [resolve(name, "sac", 0.01).run.steps for name in names]
    assert steps[1] / ends[1] == pytest.approx(steps[0] / ends[0], rel=0.05)


def test_an_unknown_task_is_one_clear_line(measured: Requests) -> None:
    with pytest.raises(UserError, match="cannot estimate gym:NoSuch-v0: its dimensions"):
        estimate([_run(task="gym:NoSuch-v0")])


def test_a_failed_measurement_is_one_clear_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("sys.executable", "/bin/false")
    with pytest.raises(UserError, match=r"^calibration failed: exit code 1"):
        estimate([_run()])


def test_this_machine_can_be_measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    told: list[str] = []
    cost = estimate([_run(sampler="per")], say=told.append).per_run[0]
    assert len(told) == 1
    assert all(seconds > 0 for name, seconds in cost.parts.items() if name not in _UNUSED)


_UNUSED = ("compiling", "probes")


def test_every_task_of_the_paper_has_dimensions() -> None:
    assert table().keys() == registry().keys()


def _installed() -> list[str]:
    return [name for name, task in registry().items() if task.suite != "humanoidbench"]


@pytest.mark.slow
@pytest.mark.parametrize("name", _installed())
def test_the_dimensions_are_those_of_the_environments(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = table()[name]
    empty: Callable[[], dict[str, tuple[int, int]]] = dict
    monkeypatch.setattr("fog.cost.dimensions.table", empty)
    assert dimensions(name) == written
