"""A small trained agent, a buffer of 50 transitions and a view of both, for testing probes.

Networks compute in double precision here: a probe and brute force then differ by what they compute
and not by how float32 rounds a batch and a single row, so they are compared to 1e-6.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from fog import seeding
from fog.agent import Agent, build_agent
from fog.algorithms import losses
from fog.events import Episode, Probe, Update
from fog.probing.dispatch import Counters, Probes, ProbeView
from fog.probing.observed import ObservedFogAgent, facts_of
from fog.replay import Batch, Replay, make_sampler
from tests.fog.agent.agent_helpers import doubled
from tests.training import tiny

OBS, ACT, SIZE = 3, 2, 50


class DoubleReplay(Replay):
    """Stores float32 as ever, and hands it out in double precision."""

    def _gather(self, ids, weights):
        return Batch(*(part.double() for part in super()._gather(ids, weights)))


def promote(agent: Agent) -> None:
    """Let the agent compute in double precision."""
    agent._set_state(doubled(agent._state))


@dataclass
class Stage:
    agent: Agent
    replay: Replay
    progress: Counters
    view: ProbeView
    probes: Probes
    directory: Path

    def read(self, table: str) -> pd.DataFrame:
        parts = sorted((self.directory / table).glob("*.parquet"))
        return pd.concat([pd.read_parquet(part) for part in parts], ignore_index=True)

    def rng(self, name: str) -> np.random.Generator:
        """A copy of the stream that the probe of that name starts with."""
        return seeding.generator(0, f"probe/{name}")

    def everything(self) -> Batch:
        replay = self.replay
        return replay.take(np.arange(replay.added - replay.size, replay.added))


def build(
    path: Path,
    *probes: Probe,
    variant: str = "fog",
    added: int = SIZE,
    double: bool = True,
    **changes,
) -> Stage:
    settings = {"window_steps": 20, "capacity": SIZE, "steps": 100, "warmup_steps": 16}
    settings |= {"expansion_updates": ()}
    config = tiny(path, variant, **{**settings, **changes})
    agent = build_agent(config, OBS, ACT)
    if double:
        promote(agent)
    sampler = make_sampler(
        config.replay.sampler,
        capacity=SIZE,
        rng=seeding.generator(0, "replay"),
        epsilon=config.replay.epsilon,
        tau=config.replay.tau,
        alpha=0.6,
        beta=0.4,
        total_steps=100,
        quota=16.0,
    )
    replay = (DoubleReplay if double else Replay)(OBS, ACT, SIZE, sampler=sampler)
    progress = Counters()
    view = ProbeView(
        facts_of(config), progress, ObservedFogAgent(agent), replay, seeding.generator(0, "x"), path
    )
    attached = Probes(list(probes), view.facts, progress, view.agent, replay, path)
    stage = Stage(agent, replay, progress, view, attached, path)
    play(stage, added)
    return stage


def play(stage: Stage, steps: int) -> None:
    """Random transitions with ends of both kinds, and an update on each of the later ones."""
    rng = np.random.default_rng(steps)
    replay = stage.replay
    for _ in range(steps):
        if replay.current_obs is None:
            replay.begin_episode(rng.standard_normal(OBS))
        end = rng.random()
        action = rng.uniform(-1, 1, ACT)
        next_obs = rng.standard_normal(OBS)
        replay.add(action, rng.standard_normal(), next_obs, end < 0.1, 0.1 < end < 0.2)
        stage.progress.env_step += 1
        if stage.progress.env_step > 16:
            batch, ids = replay.sample(16, 1)
            stats = stage.agent.update(batch)
            replay.update_priorities(ids, stats.td_error)
            stage.progress.updates += 1
            stage.probes.update(Update(ids, stats.metrics))


def episodes() -> list[Episode]:
    """One terminated and one truncated episode of different lengths."""
    rng = np.random.default_rng(3)
    made = []
    for length, terminated in ((7, True), (12, False)):
        made.append(
            Episode(
                rng.standard_normal((length + 1, OBS)),
                rng.uniform(-1, 1, (length, ACT)),
                rng.standard_normal(length),
                terminated,
            )
        )
    return made


def actor_loss(
    stage: Stage, batch: Batch, noise: torch.Tensor, mean: torch.Tensor, log_std: torch.Tensor
) -> torch.Tensor:
    """The actor's training loss per transition from its Gaussian, cloning included once it is on.

    Written out with torch.distributions and `fog.algorithms.losses`, to compare probes with.
    """
    networks, rule = stage.agent.networks, stage.agent.hyper
    before = mean + log_std.exp() * noise
    action = torch.tanh(before)
    density = torch.distributions.Normal(mean, log_std.exp()).log_prob(before)
    log_prob = (density - torch.log1p(-action.square())).sum(dim=-1)
    value = losses.combine(networks.q_values(batch.obs, action), rule.pessimism)
    loss = losses.actor_loss(log_prob, value, networks.temperature)
    offline = None
    if stage.agent.bc_active:
        offline = losses.combine(networks.q_values(batch.obs, batch.action, "offline"), 1.0)
    if offline is not None and losses.cloning_gate(value, offline):
        bounds = rule.log_std.bounds
        loss = loss - rule.bc_weight * losses.cloning_density(mean, log_std, batch.action, bounds)
    return loss


def normals(rng: np.random.Generator, rows: int) -> torch.Tensor:
    return torch.from_numpy(rng.standard_normal((rows, ACT), dtype=np.float32))
