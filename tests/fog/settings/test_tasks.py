from __future__ import annotations

from collections import Counter

import pytest

from fog.errors import ConfigError
from fog.records.run_directory import path_of
from fog.settings import tasks
from fog.settings.variants import resolve


def test_the_41_tasks_by_table_of_the_paper() -> None:
    counts = Counter(task.group for task in tasks.registry().values())
    assert counts == {
        "MuJoCo": 4,
        "DMC-Easy": 4,
        "DMC-Medium": 4,
        "DMC-Hard": 5,
        "Meta-World": 10,
        "HumanoidBench": 14,
    }


def test_budgets_and_pessimism() -> None:
    steps = {"MuJoCo": 600_000, "DMC-Easy": 150_000, "DMC-Medium": 500_000}
    for task in tasks.registry().values():
        assert task.steps == steps.get(task.group, 1_000_000), task.name
        assert task.pessimism == (0.0 if task.group == "Meta-World" else 1.0), task.name


def test_the_four_tasks_with_the_shorter_reset_list() -> None:
    """Appendix B.1: BRO's list."""
    short = {
        task.name: task.reset_steps
        for task in tasks.registry().values()
        if task.reset_steps != tasks.DEFAULT_RESETS
    }
    bro = (15_000, 50_000, 250_000, 500_000, 750_000)
    assert short == dict.fromkeys(("h1-slide", "h1-stair", "h1-stand", "h1-walk"), bro)


def test_every_task_has_the_papers_four_scores() -> None:
    for task in tasks.registry().values():
        assert set(task.paper_scores) == {"FoG", "BRO", "SimBa", "TD-MPC2"}, task.name
    assert tasks.get("humanoid-walk").paper_scores["FoG"] == (932.03, 6.96)
    assert tasks.get("mw-pick-out-of-hole").paper_scores["SimBa"] == (1.0, 0.0)


@pytest.mark.parametrize(
    ("name", "suite", "env_id"),
    [
        ("gym:Pendulum-v1", "gym", "Pendulum-v1"),
        ("dmc:cheetah-run", "dmc", "cheetah-run"),
        ("mw:reach", "metaworld", "reach"),
        ("hb:h1-push-v0", "humanoidbench", "h1-push-v0"),
    ],
)
def test_escapes(name: str, suite: str, env_id: str) -> None:
    task = tasks.get(name)
    assert (task.suite, task.env_id, task.paper_scores) == (suite, env_id, {})
    assert ":" not in task.slug


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("gym:Ant-v4", "Ant-v4"),
        ("dmc:humanoid-walk", "humanoid-walk"),
        ("dmc:humanoid_walk", "humanoid-walk"),
        ("mw:assembly", "mw-assembly"),
        ("mw:assembly-v3", "mw-assembly"),
        ("hb:h1-walk-v0", "h1-walk"),
        ("hb:h1-balance_hard-v0", "h1-balance-hard"),
    ],
)
def test_an_escape_to_one_of_the_41_is_that_task(name: str, known: str) -> None:
    assert tasks.get(name) is tasks.get(known)
    one, other = resolve(name), resolve(known)
    assert one == other and path_of(one) == path_of(other)
    assert path_of(one).parts[1] == known


def test_every_one_of_the_41_has_an_escape() -> None:
    prefixes = {"mujoco": "gym", "dmc": "dmc", "metaworld": "mw", "humanoidbench": "hb"}
    for task in tasks.registry().values():
        assert tasks.get(f"{prefixes[task.suite]}:{task.env_id}") is task


def test_settings_of_a_task_change_nothing_by_default() -> None:
    for task in tasks.registry().values():
        assert resolve(task.name).run.known_task() == task
    run = resolve("h1-walk", action_repeat=2, termination="never").run
    assert (run.known_task().action_repeat, run.known_task().termination) == (2, "never")
    for wrong in ({"action_repeat": 0}, {"action_repeat": 1.5}, {"termination": "always"}):
        with pytest.raises(ConfigError, match=next(iter(wrong))):
            resolve("h1-walk", **wrong)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("humanoid_walk", "did you mean 'humanoid-walk'"),
        ("Humanoid-v5", "did you mean 'Humanoid-v4'"),
        ("zzz", "`fog tasks` lists them"),
        ("foo:bar", "use gym:, dmc:, mw: or hb:"),
        ("gym:", "lacks a name"),
        ("dmc:cheetah", "dmc:domain-task"),
    ],
)
def test_unknown_names_are_explained(name: str, said: str) -> None:
    with pytest.raises(ConfigError) as error:
        tasks.get(name)
    assert said in str(error.value)
