"""Evaluation: its own environment, its own seeds, deterministic actions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import gymnasium
import numpy as np

from fog import envs
from fog.events import Episode
from fog.settings.tasks import Task

if TYPE_CHECKING:
    from fog.agent import Agent


@dataclass(frozen=True)
class EpisodeScore:
    """What one evaluation episode earned. Success is None where the task has no such notion."""

    env_return: float
    length: int
    success_once: float | None
    success_end: float | None


class Evaluator:
    """Plays the deterministic policy. Episode k of a run always starts from the same seed."""

    def __init__(self, task: Task, seed: int, episodes: int) -> None:
        self._task = task
        self._seed = seed
        self._episodes = episodes
        self._env: gymnasium.Env | None = None

    def __call__(
        self, agent: Agent, index: int, *, record: bool
    ) -> tuple[list[EpisodeScore], list[Episode]]:
        """Run evaluation number `index` of the run, which decides the episodes' seeds.

        `record` also returns the complete episodes, for probes.
        """
        if self._env is None:
            # Made on first use: some suites open a renderer, which is slow.
            self._env = envs.make(self._task, self._seed, stream="eval")
        scores, episodes = [], []
        for k in range(index * self._episodes, (index + 1) * self._episodes):
            score, episode = _play(self._env, agent, k)
            scores.append(score)
            if record:
                episodes.append(episode)
        return scores, episodes

    def close(self) -> None:
        """Close the environment."""
        if self._env is not None:
            self._env.close()
            self._env = None


def _play(env: gymnasium.Env, agent: Agent, k: int) -> tuple[EpisodeScore, Episode]:
    obs, _ = env.reset(options={"episode": k})
    observations, actions, rewards = [obs], [], []
    successes: list[float] = []
    terminated = truncated = False
    while not (terminated or truncated):
        action = agent.act(obs, deterministic=True)
        obs, reward, terminated, truncated, info = env.step(action)
        observations.append(obs)
        actions.append(action)
        rewards.append(float(reward))
        if "success" in info:
            successes.append(float(info["success"]))
    score = EpisodeScore(
        env_return=float(np.sum(rewards)),
        length=len(rewards),
        success_once=max(successes) if successes else None,
        success_end=successes[-1] if successes else None,
    )
    episode = Episode(
        observations=np.asarray(observations, np.float32),
        actions=np.asarray(actions, np.float32),
        rewards=np.asarray(rewards, np.float32),
        terminated=terminated,
    )
    return score, episode
