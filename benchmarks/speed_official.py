"""The official BRO and SimBa in the speed benchmark: their own update on batches of ours.

Each is run from a checkout of its repository, in the peers' environment (jax, flax, optax,
tensorflow-probability). Batches lie ready in memory, so drawing them costs nothing, unlike ours.
"""

from __future__ import annotations

import sys
import types
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from speed_workers import TOGETHER, Channel, Contender, Work, calls, serve


class Batch(NamedTuple):
    """What BRO's update takes."""

    observations: Any
    actions: Any
    rewards: Any
    masks: Any
    next_observations: Any


def run(contender: Contender, channel: Channel) -> None:
    """Serve turns until the parent has enough."""
    jax.tree_map = jax.tree_util.tree_map  # gone from jax since
    sys.path.insert(0, contender.checkout)
    serve(channel, {"bro": bro, "simba": simba}[contender.kind](contender))


def bro(contender: Contender) -> Work:
    """`BRO.update` with ten batches a call, one seed."""
    # Their module of this name imports gym, which the update does not need.
    stub = types.ModuleType("jaxrl.replay_buffer")
    stub.Batch = Batch  # type: ignore[attr-defined]
    sys.modules["jaxrl.replay_buffer"] = stub
    from jaxrl.bro.bro_learner import BRO

    obs, act = jnp.zeros((1, contender.obs)), jnp.zeros((1, contender.act))
    agent = BRO(0, obs, act, num_seeds=1)
    batch = Batch(*(each[None] for each in _columns(contender, TOGETHER)))

    def work(amount: int) -> None:
        for _ in calls(amount):
            info = agent.update(batch, TOGETHER, 0)
            jax.block_until_ready((info, agent.critic.params, agent.actor_o.params))

    return work


def simba(contender: Contender) -> Work:
    """The jitted update behind `SACAgent.update` with two critics, a batch a call."""
    # Their logger imports it, which the update does not need.
    sys.modules.setdefault("wandb", types.ModuleType("wandb"))
    from scale_rl.agents.sac import sac_agent as official

    config = official.SACConfig(
        seed=0,
        num_train_envs=1,
        max_episode_steps=1000,
        normalize_observation=True,
        actor_block_type="residual",
        actor_num_blocks=1,
        actor_hidden_dim=128,
        actor_learning_rate=1e-4,
        actor_weight_decay=1e-2,
        critic_block_type="residual",
        critic_num_blocks=2,
        critic_hidden_dim=contender.width,
        critic_learning_rate=1e-4,
        critic_weight_decay=1e-2,
        critic_use_cdq=True,
        temp_target_entropy=-0.5 * contender.act,
        temp_target_entropy_coef=-0.5,
        temp_initial_value=0.01,
        temp_learning_rate=1e-4,
        temp_weight_decay=0.0,
        target_tau=0.005,
        gamma=0.99,
        n_step=1,
        mixed_precision=False,
    )
    state = official._init_sac_networks(contender.obs, contender.act, config)
    names = ("observation", "action", "reward", "terminated", "next_observation")
    columns = _columns(contender, TOGETHER)
    batches = [dict(zip(names, each, strict=True)) for each in zip(*columns, strict=True)]
    for batch in batches:
        batch["terminated"] = 1.0 - batch["terminated"]
    constants = (config.gamma, 1, True, config.target_tau, config.temp_target_entropy)

    def work(amount: int) -> None:
        nonlocal state
        for _ in calls(amount):
            for batch in batches:
                *state, info = official._update_sac_networks(*state, batch, *constants)
            jax.block_until_ready((info, state))

    return work


def _columns(contender: Contender, count: int) -> tuple[Any, ...]:
    """Random transitions: observation, action, reward, mask, next observation."""
    rng, size = np.random.default_rng(0), contender.batch

    def normal(*shape: int) -> Any:
        return jnp.asarray(rng.standard_normal((count, size, *shape)), jnp.float32)

    mask = jnp.ones((count, size))
    return (
        *(normal(contender.obs), jnp.tanh(normal(contender.act)), normal(), mask),
        normal(contender.obs),
    )
