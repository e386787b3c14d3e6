"""A single-file SAC in the style of CleanRL, with our probes attached.

    python examples/cleanrl_style_sac.py --env Pendulum-v1 --steps 10000 --out runs
    fog report --runs runs --out report.html

The networks apply their activations as functions (`F.relu`), the targets and the temperature are
CleanRL's, and the replay buffer has the layout of Stable-Baselines3's, as CleanRL's has. The lines
between the two marks are all that a script of one's own needs.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import NamedTuple

import gymnasium
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from diagnostics.adapters.loop import attach

LOG_STD_MIN, LOG_STD_MAX = -5.0, 2.0


class Batch(NamedTuple):
    """What an update is made of."""

    observations: torch.Tensor
    actions: torch.Tensor
    next_observations: torch.Tensor
    dones: torch.Tensor
    rewards: torch.Tensor


class ReplayBuffer:
    """A ring of steps of several environments, in Stable-Baselines3's layout."""

    def __init__(self, capacity: int, envs: gymnasium.vector.VectorEnv) -> None:
        self.n_envs, self.action_space = envs.num_envs, envs.single_action_space
        self.buffer_size = capacity // self.n_envs
        self.pos, self.full = 0, False
        self.device = torch.device("cpu")
        shape = (self.buffer_size, self.n_envs)
        obs, act = envs.single_observation_space.shape, envs.single_action_space.shape
        self.observations = np.zeros((*shape, *obs), np.float32)
        self.next_observations = np.zeros((*shape, *obs), np.float32)
        self.actions = np.zeros((*shape, *act), np.float32)
        self.rewards, self.dones, self.timeouts = (np.zeros(shape, np.float32) for _ in range(3))

    def add(self, obs, next_obs, action, reward, terminated) -> None:
        """One step of every environment."""
        self.observations[self.pos], self.next_observations[self.pos] = obs, next_obs
        self.actions[self.pos], self.rewards[self.pos] = action, reward
        self.dones[self.pos] = terminated
        self.pos += 1
        if self.pos == self.buffer_size:
            self.pos, self.full = 0, True

    def sample(self, batch_size: int) -> Batch:
        """Transitions drawn uniformly with replacement."""
        stored = self.buffer_size if self.full else self.pos
        return self._get_samples(np.random.randint(0, stored, batch_size))  # noqa: NPY002

    def _get_samples(self, rows: np.ndarray) -> Batch:
        at = rows, np.random.randint(0, high=self.n_envs, size=(len(rows),))  # noqa: NPY002
        arrays = (
            self.observations,
            self.actions,
            self.next_observations,
            self.dones,
            self.rewards,
        )
        return Batch(*(torch.from_numpy(array[at]) for array in arrays))


class SoftQNetwork(nn.Module):
    """Q(s, a), a plain MLP."""

    def __init__(self, obs_dim: int, act_dim: int, width: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(obs_dim + act_dim, width)
        self.fc2 = nn.Linear(width, width)
        self.fc3 = nn.Linear(width, 1)

    def forward(self, obs: torch.Tensor, action: torch.Tensor) -> torch.Tensor:
        """Values, (B, 1)."""
        x = F.relu(self.fc1(torch.cat([obs, action], 1)))
        return self.fc3(F.relu(self.fc2(x)))


class Actor(nn.Module):
    """Mean and log std of a Gaussian that is squashed into the action bounds."""

    def __init__(self, obs_dim: int, space: gymnasium.spaces.Box, width: int) -> None:
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(obs_dim, width), nn.Linear(width, width)
        self.fc_mean = nn.Linear(width, space.shape[0])
        self.fc_log_std = nn.Linear(width, space.shape[0])
        low, high = torch.tensor(space.low), torch.tensor(space.high)
        self.register_buffer("action_scale", (high - low) / 2)
        self.register_buffer("action_bias", (high + low) / 2)

    def forward(self, obs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Mean and log std before squashing."""
        x = F.relu(self.fc2(F.relu(self.fc1(obs))))
        between = 0.5 * (torch.tanh(self.fc_log_std(x)) + 1)
        return self.fc_mean(x), LOG_STD_MIN + (LOG_STD_MAX - LOG_STD_MIN) * between

    def get_action(self, obs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """A sampled action of the environment and its log density, (B, 1)."""
        mean, log_std = self(obs)
        normal = torch.distributions.Normal(mean, log_std.exp())
        before = normal.rsample()
        squashed = torch.tanh(before)
        log_prob = normal.log_prob(before)
        log_prob = log_prob - torch.log(self.action_scale * (1 - squashed.square()) + 1e-6)
        action = squashed * self.action_scale + self.action_bias
        return action, log_prob.sum(1, keepdim=True)


def main(arguments: list[str] | None = None) -> None:
    """Train, and record as we go."""
    parser = argparse.ArgumentParser(description="CleanRL-style SAC with probes")
    parser.add_argument("--env", default="Pendulum-v1")
    parser.add_argument("--num-envs", type=int, default=1)
    parser.add_argument("--steps", type=int, default=10_000, help="over all environments")
    parser.add_argument("--learning-starts", type=int, default=1_000)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--buffer-size", type=int, default=1_000_000)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--gamma", type=float, default=0.99)
    parser.add_argument("--tau", type=float, default=0.005)
    parser.add_argument("--q-lr", type=float, default=1e-3)
    parser.add_argument("--policy-lr", type=float, default=3e-4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("runs"))
    args = parser.parse_args(arguments)

    np.random.seed(args.seed)  # noqa: NPY002
    torch.manual_seed(args.seed)
    envs = gymnasium.vector.SyncVectorEnv(
        [lambda: gymnasium.make(args.env)] * args.num_envs,
        autoreset_mode=gymnasium.vector.AutoresetMode.SAME_STEP,
    )
    envs.single_action_space.seed(args.seed)
    obs_dim, space = envs.single_observation_space.shape[0], envs.single_action_space
    actor = Actor(obs_dim, space, args.width)
    qf1, qf2, qf1_target, qf2_target = (
        SoftQNetwork(obs_dim, space.shape[0], args.width) for _ in range(4)
    )
    qf1_target.load_state_dict(qf1.state_dict())
    qf2_target.load_state_dict(qf2.state_dict())
    q_optimizer = torch.optim.Adam([*qf1.parameters(), *qf2.parameters()], lr=args.q_lr)
    actor_optimizer = torch.optim.Adam(actor.parameters(), lr=args.policy_lr)
    log_alpha = torch.zeros(1, requires_grad=True)
    alpha_optimizer = torch.optim.Adam([log_alpha], lr=args.q_lr)
    rb = ReplayBuffer(args.buffer_size, envs)

    # probes: begin
    probes = attach(
        args.out / args.env / "cleanrl-style-sac" / f"seed{args.seed}",
        critics=[qf1, qf2],
        target_critics=[qf1_target, qf2_target],
        policy=actor,
        temperature=lambda: log_alpha.exp().item(),
        replay=rb,
        steps=args.steps,
        batch_size=args.batch_size,
        discount=args.gamma,
        critic_lr=args.q_lr,
    )
    # probes: end

    updates = 0
    obs, _ = envs.reset(seed=args.seed)
    for global_step in range(args.num_envs, args.steps + 1, args.num_envs):
        if global_step <= args.learning_starts:
            actions = np.array([space.sample() for _ in range(args.num_envs)])
        else:
            with torch.no_grad():
                actions = actor.get_action(torch.from_numpy(obs))[0].numpy()
        next_obs, rewards, terminations, truncations, infos = envs.step(actions)
        real_next_obs = next_obs.copy()
        for index in np.flatnonzero(terminations | truncations):
            real_next_obs[index] = infos["final_obs"][index]
        rb.add(obs, real_next_obs, actions, rewards, terminations)
        obs = next_obs

        if global_step > args.learning_starts:
            data, alpha = rb.sample(args.batch_size), log_alpha.exp().item()
            with torch.no_grad():
                next_action, next_log_pi = actor.get_action(data.next_observations)
                q_next = torch.min(
                    qf1_target(data.next_observations, next_action),
                    qf2_target(data.next_observations, next_action),
                )
                soft = (q_next - alpha * next_log_pi).view(-1)
                target = data.rewards + (1 - data.dones) * args.gamma * soft
            q_loss = sum(
                F.mse_loss(qf(data.observations, data.actions).view(-1), target)
                for qf in (qf1, qf2)
            )
            q_optimizer.zero_grad()
            q_loss.backward()
            q_optimizer.step()

            pi, log_pi = actor.get_action(data.observations)
            q_pi = torch.min(qf1(data.observations, pi), qf2(data.observations, pi))
            actor_loss = (alpha * log_pi - q_pi).mean()
            actor_optimizer.zero_grad()
            actor_loss.backward()
            actor_optimizer.step()
            excess = log_pi.detach() - space.shape[0]
            alpha_loss = (-log_alpha.exp() * excess).mean()
            alpha_optimizer.zero_grad()
            alpha_loss.backward()
            alpha_optimizer.step()

            with torch.no_grad():
                for qf, qf_target in ((qf1, qf1_target), (qf2, qf2_target)):
                    for p, p_target in zip(qf.parameters(), qf_target.parameters(), strict=True):
                        p_target.lerp_(p, args.tau)
            updates += 1
        probes.step(updates)  # probes: once per step
    probes.end()  # probes: once
    envs.close()


if __name__ == "__main__":
    main()
