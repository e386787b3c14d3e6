"""An actor and its critics, as torch modules or plain functions, under observation.

Covers SAC and TD3 and what lies between: y = r + gamma m (min Q'(s', a') - alpha log pi(a'|s')).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn

from diagnostics.adapters.modules import ObservedModules, Targets
from diagnostics.adapters.parts import Policy, one_value, require_evaluation_mode
from fog.errors import UserError
from fog.events import Transitions
from fog.networks import sample_action

Network: TypeAlias = nn.Module | Callable[..., Any]
"""A torch module, or any function of tensors that returns a tensor or a numpy array."""


@dataclass(frozen=True)
class ActionBox:
    """Bounds of the actions that the critic is given; probes see them stretched to [-1, 1]."""

    low: Any = -1.0
    high: Any = 1.0

    def __post_init__(self) -> None:
        low, high = np.asarray(self.low, np.float32), np.asarray(self.high, np.float32)
        if not (np.isfinite(low).all() and np.isfinite(high).all() and (low < high).all()):
            raise UserError("action bounds must be finite numbers, the lower below the upper")

    def stretched(self, action: Tensor) -> Tensor:
        """Actions of the environment to [-1, 1]."""
        half, middle = self._parts(action)
        return (action - middle) / half

    def own(self, action: Tensor) -> Tensor:
        """Actions in [-1, 1] to those of the environment."""
        half, middle = self._parts(action)
        return half * action + middle

    def log_volume(self, action: Tensor) -> Tensor:
        """Log of the factor by which stretching changes a volume of actions."""
        return self._parts(action)[0].expand_as(action[0]).log().sum()

    def _parts(self, like: Tensor) -> tuple[Tensor, Tensor]:
        low = torch.as_tensor(np.asarray(self.low, np.float32)).to(like)
        high = torch.as_tensor(np.asarray(self.high, np.float32)).to(like)
        return (high - low) / 2, (high + low) / 2


class Function(nn.Module):
    """A network that is only a function: it can be evaluated, not looked into."""

    def __init__(self, function: Callable[..., Any], described: str) -> None:
        super().__init__()
        self._function = function
        self.described = described

    def forward(self, *inputs: Tensor) -> Any:
        """Call it."""
        output = self._function(*inputs)
        if isinstance(output, tuple):
            return tuple(_tensor(part) for part in output)
        return _tensor(output)


def _tensor(output: Any) -> Tensor:
    return output if isinstance(output, Tensor) else torch.as_tensor(np.array(output, np.float32))


def actor_critic(
    critics: Sequence[Network],
    policy: Network | None,
    act_dim: int,
    *,
    target_critics: Sequence[Network] | None = None,
    target_policy: Network | None = None,
    targets: Targets | None = None,
    discount: float = 0.99,
    temperature: float | Callable[[], float] = 0.0,
    target_noise: float = 0.0,
    target_noise_clip: float = 0.5,
    actions: ActionBox | None = None,
    joined: bool = False,
    critic_lr: float | Callable[[], float] = 3e-4,
    init: Callable[[nn.Module], object] | None = None,
) -> ObservedModules:
    """Critics and a policy as an observed agent.

    Args:
        critics: Q functions of observations and actions, the twins, say; each returns (B,) or
            (B, 1).
        policy: returns actions (B, act_dim), as TD3's, or mean and log std before squashing by
            tanh, as SAC's. None needs `targets`, and leaves out what asks for a policy.
        act_dim: length of an action.
        target_critics: Q' of the targets; None takes `critics`.
        target_policy: policy of the targets; None takes `policy`.
        targets: regression targets (B,) of transitions and noise, if they are not those above.
        discount: gamma.
        temperature: alpha now; the density is that of the action that the critic is given.
        target_noise: standard deviation of TD3's target smoothing, in units of actions in [-1, 1].
        target_noise_clip: where that noise is clipped.
        actions: bounds of the actions that critics and policy use.
        joined: whether critics take one tensor [obs, action] instead of two.
        critic_lr: the critics' learning rate now, for `warmstart`.
        init: gives a copy of a critic new initial values, see `ObservedModules`.

    Raises:
        UserError: neither a policy nor targets, or no critic.
    """
    if not critics:
        raise UserError("no critic was given: pass at least one")
    if policy is None and targets is None:
        raise UserError("targets need the policy: pass `policy`, or `targets` of your own")
    box = actions or ActionBox()
    members = [_module(critic, f"critic {index}") for index, critic in enumerate(critics)]
    others = members if target_critics is None else [_module(c, "") for c in target_critics]
    actor = None if policy is None else _module(policy, "the policy")
    ahead = actor if target_policy is None else _module(target_policy, "the target policy")

    def alpha() -> float:
        return float(temperature() if callable(temperature) else temperature)

    def inputs(obs: Tensor, action: Tensor) -> tuple[Tensor, ...]:
        own = box.own(action)
        return (torch.cat([obs, own], dim=-1),) if joined else (obs, own)

    def smallest(networks: Sequence[nn.Module], obs: Tensor, action: Tensor) -> Tensor:
        name = "target critic" if networks is others and others is not members else "critic"
        values = [
            one_value(network(*inputs(obs, action)), f"{name} {index}")
            for index, network in enumerate(networks)
        ]
        return torch.stack(values).amin(dim=0)

    def usual(batch: Transitions, noise: Tensor) -> Tensor:
        assert ahead is not None
        for network in (*others, ahead):
            require_evaluation_mode(network)
        action, log_prob = _drawn(ahead, box, batch.next_obs, noise)
        if log_prob is None and target_noise > 0:
            smooth = (target_noise * noise).clamp(-target_noise_clip, target_noise_clip)
            action = (action + smooth).clamp(-1, 1)
        value = smallest(others, batch.next_obs, action)
        if log_prob is not None:
            value = value - alpha() * log_prob
        return batch.reward + discount * batch.bootstrap * value

    return ObservedModules(
        members,
        usual if targets is None else targets,
        act_dim,
        policy=None if actor is None else _policy(actor, box, alpha, members, smallest),
        inputs=inputs,
        critic_lr=critic_lr if callable(critic_lr) else lambda: float(critic_lr),
        init=init,
    )


def _policy(
    actor: nn.Module,
    box: ActionBox,
    alpha: Callable[[], float],
    members: Sequence[nn.Module],
    smallest: Callable[[Sequence[nn.Module], Tensor, Tensor], Tensor],
) -> Policy:
    def action(obs: Tensor) -> Tensor:
        output = actor(obs)
        return torch.tanh(output[0]) if isinstance(output, tuple) else box.stretched(output)

    def loss(batch: Transitions, noise: Tensor) -> Tensor:
        drawn, log_prob = _drawn(actor, box, batch.obs, noise)
        if log_prob is None:
            return -smallest(members[:1], batch.obs, drawn)
        return alpha() * log_prob - smallest(members, batch.obs, drawn)

    def bonus(obs: Tensor, noise: Tensor) -> Tensor:
        log_prob = _drawn(actor, box, obs, noise)[1]
        return obs.new_zeros(len(obs)) if log_prob is None else -alpha() * log_prob

    def gaussian(obs: Tensor) -> tuple[Tensor, Tensor] | None:
        output = actor(obs)
        return (output[0], output[1]) if isinstance(output, tuple) else None

    return Policy(actor, action, loss, bonus, gaussian)


def _drawn(
    actor: nn.Module, box: ActionBox, obs: Tensor, noise: Tensor
) -> tuple[Tensor, Tensor | None]:
    """An action in [-1, 1] and the log density of the environment's; None if deterministic."""
    output = actor(obs)
    if not isinstance(output, tuple):
        return box.stretched(output), None
    drawn = sample_action(output[0], output[1], noise)
    return drawn.action, drawn.log_prob - box.log_volume(drawn.action)


def _module(network: Network, described: str) -> nn.Module:
    return network if isinstance(network, nn.Module) else Function(network, described)
