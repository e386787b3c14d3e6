from __future__ import annotations

from collections import Counter

import pytest

from fog import tasks
from fog.errors import ConfigError


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
    short = {t.name for t in tasks.registry().values() if t.reset_steps == tasks.BRO_RESETS}
    assert short == {"h1-stand", "h1-walk", "h1-stair", "h1-slide"}


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
    ("name", "said"),
    [
        ("humanoid_walk", "did you mean 'humanoid-walk'"),
        ("Humanoid-v5", "did you mean 'Humanoid-v4'"),
        ("zzz", "`fog tasks` lists them"),
        ("foo:bar", "use gym:, dmc:, mw: or hb:"),
        ("gym:", "names nothing"),
        ("dmc:cheetah", "dmc:domain-task"),
    ],
)
def test_unknown_names_are_explained(name: str, said: str) -> None:
    with pytest.raises(ConfigError) as error:
        tasks.get(name)
    assert said in str(error.value)
