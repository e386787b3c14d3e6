"""Overestimation: Q along evaluation episodes minus the return that followed."""

from __future__ import annotations

from math import ceil, log

import numpy as np
import torch
from numpy.typing import NDArray

from diagnostics.probes.common import noise, record
from fog.events import Episode, Outline, Probe, ProbeCost, View

FloatArray = NDArray[np.float64]

_TAIL = 0.05
"""Weight below which what follows a truncation may be neglected."""


class Overestimation(Probe):
    """Mean of Q(s, a) minus the discounted return, over the states of evaluation episodes.

    Q is the smaller of the online twins. The return of a terminated episode is complete. A
    truncated one is completed with gamma^n Q at its final state, n steps later, and only states at
    least H = min(ln 0.05 / ln gamma, half the episode) steps before the end are compared; the
    column `tail` is the mean of gamma^n: the share of a bias that bootstrapping hides.
    """

    name = "overestimation"

    def cost(self, run: Outline) -> ProbeCost:
        """The policy and the twins on every state of every evaluation."""
        rows = run.evaluations * run.evaluated
        return ProbeCost(rows * run.value_flops, run.evaluations)

    def on_evaluation(self, view: View, episodes: list[Episode]) -> None:
        """Compare."""
        found = [_compare(view, episode) for episode in episodes]
        q, mc, entropy, tail = np.concatenate(found, axis=1)
        record(
            view,
            "overestimation",
            {
                "states": [len(q)],
                "q": [q.mean()],
                "mc_return": [mc.mean()],
                "entropy_return": [entropy.mean()],
                "bias": [(q - mc).mean()],
                "soft_bias": [(q - mc - entropy).mean()],
                "tail": [tail.mean()],
            },
        )


def _compare(view: View, episode: Episode) -> FloatArray:
    """Q, return, entropy bonus that followed and weight of the tail, by state compared, (4, n)."""
    agent, discount = view.agent, view.facts.discount
    critic = agent.critics[0]
    length = len(episode.rewards)
    obs = torch.from_numpy(episode.observations).to(agent.device)
    action = torch.from_numpy(episode.actions).to(agent.device)
    q = agent.q_values(critic, obs[:-1], action).amin(dim=0).double().cpu().numpy()
    bonus = agent.entropy_bonus(obs, noise(view, length + 1)).double().cpu().numpy()
    # Q(s, a) holds the bonus of every state after s, but of no terminal one.
    bonus = discount * bonus[1:]
    beyond, compared = 0.0, length
    tail: FloatArray = np.zeros(length)
    if episode.terminated:
        bonus[-1] = 0.0
    else:
        final = obs[-1:]
        beyond = agent.q_values(critic, final, agent.action(final)).amin().item()
        compared = length - _horizon(discount, length)
        tail = np.power(discount, np.arange(length, 0.0, -1.0))
    mc = _discounted(episode.rewards.astype(np.float64), discount, beyond)
    return np.stack([q, mc, _discounted(bonus, discount, 0.0), tail])[:, :compared]


def _horizon(discount: float, length: int) -> int:
    # Without discounting what follows a truncation never fades, and only the half is left.
    if discount == 1.0:
        return length // 2
    enough = 1 if discount == 0.0 else ceil(log(_TAIL) / log(discount))
    return min(enough, length // 2)


def _discounted(rewards: FloatArray, discount: float, after: float) -> FloatArray:
    """Discounted sum from each step on, with value `after` beyond the last."""
    sums = np.empty_like(rewards)
    total = after
    for k in range(len(rewards) - 1, -1, -1):
        total = rewards[k] + discount * total
        sums[k] = total
    return sums
