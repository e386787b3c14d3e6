"""The plans of the paper's experiments, and their miniatures."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fog.settings.tasks import registry
from fog.settings.variants import VARIANTS
from fog.sweep import planfile
from fog.sweep.plan import Plan
from fog.training.schedule import timeline

FULL = [name for name in planfile.known() if "/" not in name]
SMALL = [name for name in planfile.known() if "/" in name]


def plan_of(name: str) -> Plan:
    return planfile.read(planfile.known()[name])


def test_every_experiment_of_the_paper_has_a_plan_and_a_miniature() -> None:
    mains = [f"main_{suite}" for suite in ("mujoco", "dmc", "metaworld", "humanoidbench")]
    ablations = ["motivating_example", "replay_ablation", "expansion_ablation", "universality"]
    rebuttal = ["buffer_size", "no_resets", "fog_on_sac", "ne_compare"]
    others = ["similar_compute", "relatives"]
    assert sorted(FULL) == sorted(mains + ablations + rebuttal + others)
    assert sorted(SMALL) == sorted(f"miniature/{name}" for name in FULL)


def test_together_they_are_the_paper() -> None:
    runs = [job.config.run for name in FULL for job in plan_of(name).jobs({})]
    assert {run.task for run in runs if run.variant == "fog"} == set(registry())
    papers = {name for name, at in VARIANTS.items() if at.family != "primacy bias by dose"}
    assert {run.variant for run in runs} == papers


@pytest.mark.parametrize("name", FULL)
def test_a_plan_is_the_paper_and_scales(name: str) -> None:
    plan = plan_of(name)
    jobs = plan.jobs({})
    assert plan.name == name
    assert {job.config.run.scale for job in jobs} == {1.0}
    seeds = 6 if name == "buffer_size" else 3
    assert {job.config.run.seed for job in jobs} == set(range(seeds))
    for run in (job.config.run for job in jobs):
        assert run.steps * run.action_repeat == registry()[run.task].steps
    small = plan.jobs({}, scale=0.03)
    assert all(job.config.run.steps < 31_000 for job in small)


def test_plans_into_one_folder_share_their_runs() -> None:
    found: dict[object, object] = {}
    for name in FULL:
        for job in plan_of(name).jobs({}):
            assert found.setdefault(job.directory, job.config) == job.config


@pytest.mark.parametrize("name", SMALL)
def test_a_miniature_keeps_the_shape_of_its_experiment(name: str) -> None:
    jobs = plan_of(name).jobs({})
    full = plan_of(name.removeprefix("miniature/"))
    assert {job.config.run.variant for job in jobs} == {
        job.config.run.variant for job in full.jobs({})
    }
    for job in jobs:
        config = job.config
        kinds = [event.kind for event in timeline(config).events]
        assert config.run.steps <= 5000
        assert config.run.steps / config.run.window_steps >= 1.5
        assert config.run.steps / config.run.eval_every >= 1.5
        assert kinds.count("reset") >= min(2, len(config.lifecycle.reset_steps))
        assert kinds.count("expansion") >= (2 if config.lifecycle.expansion_updates else 0)


def test_miniatures_into_one_folder_share_their_runs() -> None:
    found: dict[object, object] = {}
    for name in SMALL:
        for job in plan_of(name).jobs({}):
            assert found.setdefault(job.directory, job.config) == job.config


def test_the_example_of_the_documentation(tmp_path: Path) -> None:
    text = (Path(__file__).parents[3] / "docs" / "sweeps.md").read_text()
    path = tmp_path / "example.yaml"
    path.write_text(text.partition("```yaml\n")[2].partition("```")[0])
    jobs = planfile.read(path).jobs({})
    assert len(jobs) == 4 * 2 * 3 + 2 * 2
    assert {job.config.network.width for job in jobs} == {64, 128}


def test_the_documentation_lists_every_plan_with_its_runs() -> None:
    text = (Path(__file__).parents[3] / "docs" / "sweeps.md").read_text()
    table = re.findall(r"^\| `(\w+)` \|.*\| (\d+) \|$", text, re.M)
    assert sorted(table) == sorted((name, str(len(plan_of(name).jobs({})))) for name in FULL)
