"""Probes on agents of Stable-Baselines3 and sb3-contrib, through the callback API.

    from diagnostics.adapters.sb3 import ProbeCallback
    model.learn(100_000, callback=ProbeCallback("runs/Ant-v5/sb3-sac/seed0"))

Supported: SAC, TD3, DDPG, TQC and CrossQ with `MlpPolicy`, any number of environments, the plain
`ReplayBuffer`. Callbacks do not fire inside `train()`, so probes are called at the start of the
next rollout, that is, after the updates that followed the last one. Draws are counted by wrapping
the buffer's `_get_samples`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import stable_baselines3
from stable_baselines3.common.callbacks import BaseCallback

from diagnostics.adapters.observer import Observer
from diagnostics.adapters.sb3_agents import observed_by
from diagnostics.adapters.sb3_buffer import BufferMemory
from fog.errors import UserError
from fog.events import Episode, Facts, Probe

__all__ = ["BufferMemory", "ProbeCallback", "observed_by"]


class ProbeCallback(BaseCallback):  # type: ignore[misc]
    """Attaches probes to `model.learn`.

    Args:
        directory: the run directory, best named `<task>/<variant>/seed<k>`.
        probes: names as in `fog train --probes`, or probes of one's own. Those that look at
            evaluation episodes are called only if `eval_env` is given.
        window_steps: width of an insertion window in transitions, over all environments; None is
            a tenth of the run, as in the paper.
        seed: of the probes' own random streams.
        eval_env: a Gymnasium environment to evaluate in.
        eval_every: environment steps between evaluations; None is half a window.
        eval_episodes: episodes per evaluation.
    """

    def __init__(
        self,
        directory: str | Path,
        probes: Sequence[str | Probe] = ("all",),
        *,
        window_steps: int | None = None,
        seed: int = 0,
        eval_env: Any = None,
        eval_every: int | None = None,
        eval_episodes: int = 3,
    ) -> None:
        super().__init__()
        self._directory = directory
        self._names = probes
        self._window_steps = window_steps
        self._seed = seed
        self._eval_env = eval_env
        self._eval_every = eval_every
        self._eval_episodes = eval_episodes
        self._next_eval = 0
        self.observer: Observer

    def _on_training_start(self) -> None:
        model, steps = self.model, self.model._total_timesteps
        window = self._window_steps or max(1, steps // 10)
        self._eval_every = self._eval_every or max(1, window // 2)
        if getattr(model, "replay_buffer", None) is None:
            raise UserError("this model has no replay buffer: probes need one")
        self._memory = BufferMemory(model.replay_buffer, model._vec_normalize_env)
        facts = Facts(
            seed=self._seed,
            steps=steps,
            window_steps=window,
            batch_size=model.batch_size,
            discount=model.gamma,
            capacity=self._memory.capacity,
            sampler="uniform",
        )
        library = f"stable-baselines3 {stable_baselines3.__version__} {type(model).__name__}"
        try:
            self.observer = Observer(
                observed_by(model),
                self._memory,
                facts,
                self._directory,
                self._names,
                library=library,
            )
            with _evaluation_mode(model):
                self.observer.start()
        except UserError:
            self._memory.release()
            raise

    def _on_rollout_start(self) -> None:
        with _evaluation_mode(self.model):
            self._advance()
            if self._eval_env is not None and self._memory.added >= self._next_eval:
                self._next_eval = self._memory.added + (self._eval_every or 1)
                played = [self._play() for _ in range(self._eval_episodes)]
                self.observer.evaluated([each for each, _ in played], [each for _, each in played])

    def _on_step(self) -> bool:
        # SB3 stores a step's transition after this call: what is told here are those before it.
        self._tell_added()
        return True

    def _on_training_end(self) -> None:
        with _evaluation_mode(self.model):
            self._advance()
            self.observer.end()
        self._memory.release()

    def _advance(self) -> None:
        self._tell_added()
        self.observer.advance(self._memory.added, self.model._n_updates, self._memory.drawn())

    def _tell_added(self) -> None:
        for event in self._memory.arrived():
            self.observer.added(event)

    def _play(self) -> tuple[Episode, float]:
        env, model = self._eval_env, self.model
        normaliser = model._vec_normalize_env
        obs, _ = env.reset()
        seen, actions, rewards = [obs], [], []
        terminated = truncated = False
        while not (terminated or truncated):
            shown = obs if normaliser is None else normaliser.normalize_obs(obs)
            action, _ = model.predict(shown, deterministic=True)
            obs, reward, terminated, truncated, _ = env.step(action)
            seen.append(obs)
            actions.append(model.policy.scale_action(action))
            rewards.append(float(reward))
        observations = np.asarray(seen, np.float32)
        if normaliser is not None:
            observations = normaliser.normalize_obs(observations).astype(np.float32)
        gains = np.asarray(rewards, np.float32)
        if normaliser is not None:
            gains = normaliser.normalize_reward(gains).astype(np.float32)
        episode = Episode(observations, np.asarray(actions, np.float32), gains, terminated)
        return episode, sum(rewards)


@contextmanager
def _evaluation_mode(model: Any) -> Iterator[None]:
    """Batch statistics and dropout stay as they are while probes look, and the mode comes back."""
    modes = {module: module.training for module in model.policy.modules()}
    model.policy.set_training_mode(False)
    try:
        yield
    finally:
        for module, training in modes.items():
            module.training = training
