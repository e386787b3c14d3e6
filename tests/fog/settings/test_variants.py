from __future__ import annotations

import pytest

from fog.errors import ConfigError
from fog.settings.scaling import DURATIONS, SCHEDULES
from fog.settings.variants import VARIANTS, get, horizon_discount, resolve

MOTIVATING = ("sac", "sac-reset", "per-sac", "balanced-sac", "expanded-sac")


def test_fog_is_the_papers_hyperparameter_table() -> None:
    flat = resolve("humanoid-walk", "fog").flat()
    table = {
        "backbone": "obac",
        "critic_lr": 3e-4,
        "initial_depth": 2,
        "maximal_depth": 4,
        "expansion_updates": (50_000, 200_000),
        "actor_lr": 3e-4,
        "stem_layers": 1,
        "target_entropy": -0.5,
        "log_std_map": "clip",
        "log_std_min": -20.0,
        "log_std_max": 2.0,
        "discount": 0.99,
        "batch_size": 256,
        "capacity": 1_000_000,
        "epsilon": 1e-5,
        "tau": 0.1,
        "bc_weight": 1e-3,
        "bc_wait_updates": 250_000,
        "width": 512,
        "activation": "elu",
        "replay_ratio": 10.0,
        "reset_steps": (15_000, 50_000, 100_000, 200_000, 400_000, 600_000, 800_000),
    }
    assert {name: flat[name] for name in table} == table


@pytest.mark.parametrize("name", MOTIVATING)
def test_the_motivating_variants_share_what_the_paper_says(name: str) -> None:
    config = resolve("HalfCheetah-v4", name)
    assert (config.agent.backbone, config.agent.replay_ratio, config.agent.batch_size) == (
        "sac",
        10.0,
        256,
    )
    assert config.network.actor_layer_norm and config.network.critic_layer_norm
    assert (config.network.stem_layers, config.network.initial_depth) == (2, 0)
    agent = config.agent
    assert (agent.log_std_map, agent.log_std_min, agent.log_std_max) == ("smooth", -10.0, 2.0)
    assert bool(config.lifecycle.reset_steps) == (name != "sac")


def test_what_tells_the_motivating_variants_apart() -> None:
    samplers = {name: resolve("HalfCheetah-v4", name).replay.sampler for name in MOTIVATING}
    assert list(samplers.values()) == ["uniform", "uniform", "per", "decay", "decay"]
    expanded = resolve("HalfCheetah-v4", "expanded-sac")
    assert (expanded.replay.epsilon, expanded.replay.tau) == (1e-4, 0.1)
    assert (expanded.network.initial_depth, expanded.network.maximal_depth) == (0, 2)
    assert expanded.lifecycle.expansion_updates == (50_000, 200_000)
    assert resolve("HalfCheetah-v4", "balanced-sac").lifecycle.expansion_updates == ()


def test_tasks_set_pessimism_budget_and_reset_list() -> None:
    walk = resolve("h1-walk", "fog")
    assert walk.lifecycle.reset_steps == (15_000, 50_000, 250_000, 500_000, 750_000)
    assembly = resolve("mw-assembly", "fog")
    assert (assembly.agent.pessimism, assembly.run.steps) == (0.0, 1_000_000)
    assert resolve("cartpole-swingup", "fog").run.steps == 150_000


@pytest.mark.parametrize("variant", VARIANTS)
def test_scale_shrinks_time_and_nothing_else(variant: str) -> None:
    paper, tenth = resolve("humanoid-walk", variant), resolve("humanoid-walk", variant, 0.1)
    before, after = paper.flat(), tenth.flat()
    for name in DURATIONS:
        assert after[name] == round(before[name] / 10), name
    for name in SCHEDULES:
        assert after[name] == tuple(round(at / 10) for at in before[name]), name
    assert after["epsilon"] == pytest.approx(before["epsilon"] * 10)
    assert after["warmup_steps"] == before["warmup_steps"] // 10
    untouched = set(before) - {*DURATIONS, *SCHEDULES, "epsilon", "warmup_steps", "scale"}
    assert {name: before[name] for name in untouched} == {name: after[name] for name in untouched}


def test_what_the_user_sets_is_not_scaled() -> None:
    config = resolve("humanoid-walk", "fog", 0.1, reset_steps=(7_000,), batch_size=1_024)
    assert config.lifecycle.reset_steps == (7_000,)
    dose = resolve("humanoid-walk", "fog", 0.1, priming_updates=100_000).lifecycle
    assert dose.priming_updates == 100_000
    assert config.run.warmup_steps == 1_024


def test_unknown_variant_suggests_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean 'balanced-sac'"):
        get("balanced_sac")


def test_bro_has_the_settings_of_its_code() -> None:
    bro, fast = resolve("humanoid-walk", "bro"), resolve("humanoid-walk", "bro-fast")
    assert (bro.agent.replay_ratio, fast.agent.replay_ratio) == (10.0, 2.0)
    assert bro.lifecycle.reset_steps[:3] == (15_000, 50_000, 250_000)
    assert len(bro.lifecycle.reset_steps) == 8 and fast.lifecycle.reset_steps == (15_000,)
    assert (bro.agent.batch_size, bro.run.warmup_steps, bro.agent.pessimism) == (128, 2_500, 0.0)
    assert bro.network.quantiles == 100 and bro.replay.sampler == "uniform"


@pytest.mark.parametrize(
    ("task", "repeat", "critics", "discount", "steps"),
    [
        ("humanoid-walk", 2, 1, 0.99, 500_000),
        ("h1-walk", 2, 2, 0.99, 500_000),
        ("HalfCheetah-v4", 1, 2, 0.995, 600_000),
        ("gym:Pendulum-v1", 1, 2, 0.995, 1_000_000),
    ],
)
def test_simba_follows_the_suite(task, repeat, critics, discount, steps) -> None:
    """Action repeat, number of critics and discount; as many simulator steps as the others."""
    config = resolve(task, "simba")
    assert (config.run.action_repeat, config.network.critics) == (repeat, critics)
    assert config.agent.discount == pytest.approx(discount)
    assert config.run.steps == steps
    assert config.run.eval_every * repeat == resolve(task, "fog").run.eval_every
    assert resolve(task, "simba", discount=0.9).agent.discount == 0.9


def test_the_discount_of_a_horizon_is_bounded() -> None:
    assert [horizon_discount(n, 1) for n in (10, 50, 10_000)] == [0.95, 0.95, 0.995]
    assert horizon_discount(200, 1) == pytest.approx(0.975)
    assert horizon_discount(None, 2) == pytest.approx(0.99)
