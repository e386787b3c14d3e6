"""Probes on a Stable-Baselines3 SAC or TD3 agent, through its callback API.

    from diagnostics.adapters.sb3 import ProbeCallback
    model.learn(100_000, callback=ProbeCallback("runs/sb3/probes", probes=["critic_loss"]))

Supported: SAC and TD3 with `MlpPolicy`, one environment, the standard `ReplayBuffer`. Callbacks do
not fire inside `train()`, so probes are called at the start of the next rollout, that is, after the
updates that followed the last one. Draws are counted by wrapping the buffer's `_get_samples`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from stable_baselines3 import SAC, TD3
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.torch_layers import FlattenExtractor
from torch import Tensor

from diagnostics.adapters.modules import ObservedModules, Policy, squared_error
from diagnostics.adapters.observer import Observer
from diagnostics.adapters.sb3_buffer import BufferMemory
from fog.errors import UserError
from fog.events import Episode, Facts, Probe, Transitions


def observed_by(model: OffPolicyAlgorithm) -> ObservedModules:
    """SB3's SAC or TD3 as a agent, with its own targets and losses but the caller's noise.

    Raises:
        UserError: another algorithm, a policy that is not an MLP, or gSDE exploration.
    """
    if type(model) not in (SAC, TD3):
        raise UserError(f"no probes for {type(model).__name__}: SAC and TD3 are supported")
    if type(model.critic.features_extractor) is not FlattenExtractor:
        raise UserError("probes need an MlpPolicy: this one has a features extractor of its own")
    if getattr(model.actor, "use_sde", False):
        raise UserError("probes cannot repeat gSDE exploration noise: use use_sde=False")
    members = model.critic.q_networks
    act_dim = int(np.prod(model.action_space.shape))

    def critic_lr() -> float:
        return float(model.critic.optimizer.param_groups[0]["lr"])

    if isinstance(model, TD3):
        return ObservedModules(
            members,
            lambda batch, noise: _td3_target(model, batch, noise),
            act_dim,
            policy=_td3_policy(model),
            critic_lr=critic_lr,
        )
    return ObservedModules(
        members,
        lambda batch, noise: _sac_target(model, batch, noise),
        act_dim,
        policy=_sac_policy(model),
        loss=lambda values, target: 0.5 * squared_error(values, target),
        critic_lr=critic_lr,
    )


def _next_value(model: OffPolicyAlgorithm, obs: Tensor, action: Tensor) -> Tensor:
    values: tuple[Tensor, ...] = model.critic_target(obs, action)
    return torch.cat(values, dim=1).amin(dim=1)


def _td3_target(model: TD3, batch: Transitions, noise: Tensor) -> Tensor:
    clip = model.target_noise_clip
    smooth = (noise * model.target_policy_noise).clamp(-clip, clip)
    action = (model.actor_target(batch.next_obs) + smooth).clamp(-1, 1)
    value = _next_value(model, batch.next_obs, action)
    return batch.reward + float(model.gamma) * batch.bootstrap * value


def _td3_policy(model: TD3) -> Policy:
    def loss(batch: Transitions, noise: Tensor) -> Tensor:
        value: Tensor = model.critic.q1_forward(batch.obs, model.actor(batch.obs))
        return -value[:, 0]

    return Policy(model.actor, model.actor, loss)


def _sac_target(model: SAC, batch: Transitions, noise: Tensor) -> Tensor:
    action, log_prob = _sac_action(model, batch.next_obs, noise)
    value = _next_value(model, batch.next_obs, action) - _temperature(model) * log_prob
    return batch.reward + float(model.gamma) * batch.bootstrap * value


def _sac_policy(model: SAC) -> Policy:
    def loss(batch: Transitions, noise: Tensor) -> Tensor:
        action, log_prob = _sac_action(model, batch.obs, noise)
        value = torch.cat(model.critic(batch.obs, action), dim=1).amin(dim=1)
        return _temperature(model) * log_prob - value

    def action(obs: Tensor) -> Tensor:
        return torch.tanh(model.actor.get_action_dist_params(obs)[0])

    def bonus(obs: Tensor, noise: Tensor) -> Tensor:
        return -_temperature(model) * _sac_action(model, obs, noise)[1]

    def gaussian(obs: Tensor) -> tuple[Tensor, Tensor]:
        mean, log_std, _ = model.actor.get_action_dist_params(obs)
        return mean, log_std

    return Policy(model.actor, action, loss, bonus, gaussian)


def _sac_action(model: SAC, obs: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
    """SB3's squashed Gaussian with the caller's noise; its own constant keeps the log finite."""
    mean, log_std, _ = model.actor.get_action_dist_params(obs)
    action = torch.tanh(mean + log_std.exp() * noise)
    gaussian = -0.5 * noise.square() - log_std - 0.5 * math.log(2 * math.pi)
    return action, (gaussian - torch.log(1 - action.square() + 1e-6)).sum(dim=1)


def _temperature(model: SAC) -> Tensor:
    if model.log_ent_coef is not None:
        temperature: Tensor = model.log_ent_coef.detach().exp()
        return temperature
    return torch.as_tensor(model.ent_coef_tensor)


class ProbeCallback(BaseCallback):  # type: ignore[misc]
    """Attaches probes to `model.learn`.

    Args:
        directory: where the tables go.
        probes: names as in `fog train --probes`, or probes of one's own. Those that look at
            evaluation episodes are called only if `eval_env` is given.
        window_steps: width of an insertion window; None is a tenth of the run, as in the paper.
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
        self._memory = BufferMemory(model)
        facts = Facts(
            seed=self._seed,
            steps=steps,
            window_steps=window,
            batch_size=model.batch_size,
            discount=model.gamma,
            capacity=model.replay_buffer.buffer_size,
            sampler="uniform",
        )
        self.observer = Observer(
            observed_by(model), self._memory, facts, self._directory, self._names
        )
        self.observer.start()

    def _on_rollout_start(self) -> None:
        self._advance()
        if self._eval_env is not None and self._memory.added >= self._next_eval:
            self._next_eval = self._memory.added + (self._eval_every or 1)
            self.observer.evaluated([self._play() for _ in range(self._eval_episodes)])

    def _on_step(self) -> bool:
        # SB3 stores a step's transition after this call: what is told here are those before it.
        self._tell_added()
        return True

    def _on_training_end(self) -> None:
        self._advance()
        self.observer.end()
        self._memory.release()

    def _advance(self) -> None:
        self._tell_added()
        self.observer.advance(self._memory.added, self.model._n_updates, self._memory.drawn())

    def _tell_added(self) -> None:
        for event in self._memory.arrived():
            self.observer.added(event)

    def _play(self) -> Episode:
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
        return Episode(observations, np.asarray(actions, np.float32), gains, terminated)
