"""Plans as data: what they expand to, and what is said about mistakes in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from fog.cli.train import configure
from fog.errors import ConfigError
from fog.settings import tasks
from fog.settings.variants import VARIANTS, resolve
from fog.sweep import plan, planfile
from fog.sweep.job import Job
from fog.sweep.plan import Block, Plan

TWO_BLOCKS = """
name: two
scale: 0.02
seeds: 0-1
settings: {width: 32, probes: all}
runs:
  - tasks: [cartpole-swingup]
    variants: [sac, fog]
  - tasks: suite:mujoco
    variants: fog
    seeds: [7]
    settings: {width: 64, epsilon: 1e-3}
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "plan.yaml"
    path.write_text(text)
    return path


def test_blocks_inherit_and_override(tmp_path: Path) -> None:
    found = planfile.read(write(tmp_path, TWO_BLOCKS))
    jobs = {job.label: job.config for job in found.jobs({})}
    assert len(jobs) == 2 * 2 + 4
    small = jobs["cartpole-swingup sac seed1"]
    assert small == resolve("cartpole-swingup", "sac", 0.02, seed=1, width=32, probes=("all",))
    large = jobs["Ant-v4 fog seed7"]
    assert (large.network.width, large.replay.epsilon) == (64, 1e-3)
    assert large.run.probes == ("all",)


def test_flags_lie_over_the_plan(tmp_path: Path) -> None:
    found = planfile.read(write(tmp_path, TWO_BLOCKS))
    jobs = found.jobs({"width": 16, "out": "elsewhere"}, scale=0.05)
    assert {job.config.network.width for job in jobs} == {16}
    assert {job.config.run.scale for job in jobs} == {0.05}
    assert all(job.directory.is_relative_to(Path.cwd() / "elsewhere") for job in jobs)


def test_a_plan_narrows_to_what_is_asked_for(tmp_path: Path) -> None:
    found = planfile.read(write(tmp_path, TWO_BLOCKS))
    jobs = found.only([], ["fog"], [1]).jobs({})
    assert [job.label for job in jobs] == ["cartpole-swingup fog seed1"]
    with pytest.raises(ConfigError, match=r"--seeds: 3 is not in .*plan.yaml, which has 0, 1, 7"):
        found.only([], [], [3])
    with pytest.raises(ConfigError, match="no run is left"):
        found.only(["Ant-v4"], ["sac"], []).jobs({})


def test_the_longest_runs_come_first_and_equal_ones_go_seed_by_seed() -> None:
    mixed = Plan("x", (Block(("cartpole-swingup", "humanoid-walk"), ("sac", "fog"), (0, 1)),))
    labels = [job.label for job in mixed.jobs({})]
    assert labels[:2] == ["humanoid-walk fog seed0", "humanoid-walk fog seed1"]
    assert labels[-1] == "cartpole-swingup sac seed1"
    equal = Plan("x", (Block(("Ant-v4",), ("sac", "sac-reset"), (0, 1)),))
    assert [job.label.partition(" ")[2] for job in equal.jobs({})] == [
        "sac seed0",
        "sac-reset seed0",
        "sac seed1",
        "sac-reset seed1",
    ]


def test_one_run_in_two_blocks_is_one_run_unless_it_differs() -> None:
    block = Block(("Ant-v4",), ("sac",), (0, 1))
    assert len(Plan("x", (block, block)).jobs({})) == 2
    other = Block(("Ant-v4",), ("sac",), (1,), {"width": 32})
    clash = "asked for twice, with width = 256 and width = 32"
    with pytest.raises(ConfigError, match=f"p.yaml: block 2: Ant-v4 sac seed1 is {clash}"):
        Plan("x", (block, other), source="p.yaml").jobs({})
    apart = Block(("Ant-v4",), ("sac",), (1,), {"width": 32, "out": "narrow"})
    assert len(Plan("x", (block, apart)).jobs({})) == 3


def test_suites_are_spelt_out() -> None:
    assert len(plan.task_names(["suite:all"])) == 41
    assert plan.task_names(["suite:dmc-hard"]) == plan.task_names(
        ["dog-run", "dog-trot", "dog-walk", "humanoid-run", "humanoid-walk"]
    )
    for suite, count in (("mujoco", 4), ("dmc", 13), ("metaworld", 10), ("humanoidbench", 14)):
        names = plan.task_names([f"suite:{suite}"])
        assert len(names) == count
        assert {tasks.get(name).suite for name in names} == {suite}


def test_seeds_as_people_write_them() -> None:
    assert plan.seed_numbers(["0-2", 5, "1"]) == (0, 1, 2, 5)
    for wrong in ("2-0", "a", "-1", "0-99999999", True, 1.5):
        with pytest.raises(ConfigError, match="seeds: "):
            plan.seed_numbers([wrong])


MISTAKES = [
    ("taks: [Ant-v4]", "unknown key 'taks': did you mean 'tasks'?"),
    ("tasks: [Ant-v5]", "unknown task 'Ant-v5': did you mean 'Ant-v4'?"),
    ("tasks: [suite:mujco]", "unknown suite 'mujco': did you mean 'mujoco'?"),
    ("tasks: [Ant-v4]\nvariants: [sak]", "unknown variant 'sak': did you mean 'sac'?"),
    ("tasks: [Ant-v4]\nsettings: {widht: 3}", "unknown setting 'widht': did you mean 'width'?"),
    ("tasks: [Ant-v4]\nsettings: {width: wide}", "width: expected integer, got 'wide'"),
    ("tasks: [Ant-v4]\nsettings: {seed: 3}", "seed stands beside settings, as seeds"),
    ("tasks: [Ant-v4]\nwidth: 64", "width belongs below settings:"),
    ("task: [Ant-v4]", "task: in a plan it is tasks"),
    ("tasks: [Ant-v4]\nseeds: many", "seeds: expected numbers or ranges such as 0-4"),
    ("tasks: [Ant-v4]\nscale: small", "scale: expected number, got 'small'"),
    ("tasks: [Ant-v4]\nscale: 2", "scale: must be > 0 and <= 1, got 2"),
    ("tasks: 3", "tasks: expected a list of names, got 3"),
    ("tasks: [Ant-v4]\ntasks: [dog-run]", "'tasks' appears twice"),
    ("runs: [{tasks: [Ant-v4]}, {seeds: 0}]", "block 2: no tasks given"),
    ("runs: [{tasks: [Ant-v4]}, {sedes: 0}]", "block 2: unknown key 'sedes'"),
    ("runs: Ant-v4", "runs: expected a list of blocks"),
    ("- Ant-v4", "expected a plan: name, scale, tasks"),
    ("", "expected a plan"),
    ("tasks: [", "not valid YAML"),
]


@pytest.mark.parametrize(("text", "said"), MISTAKES, ids=[said[:30] for _, said in MISTAKES])
def test_a_mistake_is_one_line_that_names_the_file(tmp_path: Path, text: str, said: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        planfile.read(path).jobs({})
    assert said in str(caught.value)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


def test_a_plan_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read plan .*no\.yaml: No such file"):
        planfile.read(tmp_path / "no.yaml")


ODD_SETTINGS = {
    "reset_steps": (),
    "expansion_updates": (30, 60),
    "tensorboard": False,
    "actor_layer_norm": True,
    "target_entropy": -0.5,
    "wandb": None,
    "epsilon": 1e-3,
    "probes": ("dormancy", "features:at=0.2+0.5:size=1000"),
    "out": "a folder/with = signs",
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_command_of_a_run_resolves_to_its_config(variant: str) -> None:
    for settings in ({}, ODD_SETTINGS):
        job = Job.of("humanoid-walk", variant, 3, 0.1, settings)
        config, actions = configure(job.flags)
        assert config == job.config
        assert not actions.resume
