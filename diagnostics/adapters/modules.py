"""Any critic made of torch modules as an agent of the probe protocol."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor, nn

from diagnostics.adapters.activations import hidden_layers
from diagnostics.adapters.parts import (
    Policy,
    described,
    joined,
    one_value,
    reinitialise,
    require_evaluation_mode,
    require_linear,
    squared_error,
)
from diagnostics.adapters.taps import feature_tap
from fog.errors import UserError
from fog.events import Hidden, Loss, LossFunction, ObservedAgent, Transitions
from fog.networks import squashed_log_density

Targets: TypeAlias = Callable[[Transitions, Tensor], Tensor]
"""Transitions and standard normal noise (B, act_dim) to regression targets (B,)."""


class ObservedModules:
    """A critic of one or several modules of equal shape; see `fog.events.ObservedAgent`.

    Args:
        members: the critic's modules, the twins, say; each maps `inputs(obs, action)` to (B,) or
            (B, 1).
        targets: the regression target, without gradient; must draw no random numbers itself.
        act_dim: length of an action.
        policy: the actor; None leaves it out (then also leave out `churn`, `offpolicy` and
            `overestimation`).
        loss: per-transition training loss of the members' values (members, B) and the target.
        inputs: arguments of a member.
        rows: transitions per evaluation of the whole buffer.
        update: a copy of the agent after one more update, from transitions and noise
            (2, B, act_dim); None leaves out what one update changes.
        critic_lr: the critic's learning rate now.
        init: gives a copy of a member new initial values, for `warmstart`; may draw from torch's
            global generator, which is put back afterwards. None calls the `reset_parameters` of
            every submodule, as torch does at birth.
    """

    def __init__(
        self,
        members: Sequence[nn.Module],
        targets: Targets,
        act_dim: int,
        *,
        policy: Policy | None = None,
        loss: Callable[[Tensor, Tensor], Tensor] = squared_error,
        inputs: Callable[[Tensor, Tensor], tuple[Tensor, ...]] = joined,
        rows: int = 1024,
        update: Callable[[Transitions, Tensor], ObservedAgent] | None = None,
        critic_lr: Callable[[], float] = lambda: 3e-4,
        init: Callable[[nn.Module], object] | None = None,
    ) -> None:
        self._members = list(members)
        self._targets = targets
        self._policy = policy
        self._loss = loss
        self._inputs = inputs
        self._rows = rows
        self._update = update
        self._init = reinitialise if init is None else init
        self.critic_lr = critic_lr
        self.act_dim = act_dim
        self.critics = ("online",)
        self.unmeasured: dict[str, str] = {}
        if update is None:
            # `ProbeCallback`, `attach` and `record_checkpoint` make this class and take no update.
            reason = (
                "one update on a copy of the agent: only `ObservedModules` takes a function for it"
            )
            self.unmeasured |= {"update_churn": reason, "layer_norms.update_norm": reason}
        self.networks = ("online",) if policy is None else ("online", "actor")

    @property
    def device(self) -> torch.device:
        """See `ObservedAgent`."""
        parameter = next(self._members[0].parameters(), None)
        return torch.device("cpu") if parameter is None else parameter.device

    @torch.no_grad()
    def losses(self, batch: Transitions, noise: Tensor) -> dict[str, Loss]:
        """See `ObservedAgent`."""
        target = self._target(batch, noise)
        return {"online": Loss(self._loss(self._values(batch), target), target)}

    def bulk_losses(self, total: int) -> tuple[int, LossFunction]:
        """See `ObservedAgent`."""
        return self._rows, self.losses

    @torch.no_grad()
    def q_values(self, critic: str, obs: Tensor, action: Tensor) -> Tensor:
        """See `ObservedAgent`."""
        return self._stack([member(*self._inputs(obs, action)) for member in self._checked()])

    @torch.no_grad()
    def features(self, network: str, obs: Tensor, action: Tensor) -> Tensor:
        """See `ObservedAgent`: the input of the last linear layer."""
        if network == "actor":
            require_linear(self._actor().module)
            with feature_tap(self._actor().module) as seen:
                self._actor().action(obs)
            return seen[-1].unsqueeze(0)
        found = []
        for member in self._checked():
            require_linear(member)
            with feature_tap(member) as seen:
                member(*self._inputs(obs, action))
            found.append(seen[-1])
        return torch.stack(found)

    @torch.no_grad()
    def action(self, obs: Tensor) -> Tensor:
        """See `ObservedAgent`."""
        action = self._actor().action(obs)
        if action.shape != (len(obs), self.act_dim):
            raise UserError(
                f"the policy returned shape {tuple(action.shape)} for {len(obs)} observations: it "
                f"must return ({len(obs)}, {self.act_dim})"
            )
        return action

    @torch.no_grad()
    def policy(self, obs: Tensor) -> tuple[Tensor, Tensor] | None:
        """See `ObservedAgent`."""
        gaussian = self._actor().gaussian
        return None if gaussian is None else gaussian(obs)

    @torch.no_grad()
    def log_prob(self, obs: Tensor, action: Tensor) -> Tensor:
        """See `ObservedAgent`."""
        gaussian = self.policy(obs)
        if gaussian is None:
            return obs.new_full((len(obs),), torch.nan)
        return squashed_log_density(*gaussian, action)

    @torch.no_grad()
    def entropy_bonus(self, obs: Tensor, noise: Tensor) -> Tensor:
        """See `ObservedAgent`."""
        bonus = self._actor().entropy_bonus
        return obs.new_zeros(len(obs)) if bonus is None else bonus(obs, noise)

    def hidden(self, network: str, batch: Transitions, noise: Tensor) -> dict[str, Hidden]:
        """See `ObservedAgent`: activations between two layers, in order of evaluation.

        Raises:
            UserError: none was seen.
        """
        modules = [self._actor().module] if network == "actor" else self._checked()
        # Targets come first: they may evaluate the very modules that are tapped.
        return hidden_layers(modules, self._network_loss(network, batch, noise))

    def parameters(self, network: str) -> dict[str, Tensor]:
        """See `ObservedAgent`: named `<member>.<parameter>`."""
        modules = [self._actor().module] if network == "actor" else self._members
        for module in modules:
            if next(module.parameters(), None) is None:
                raise UserError(
                    f"{described(module)} has no torch parameters: only its output is seen"
                )
        return {
            f"{index}.{name}": tensor.detach()
            for index, module in enumerate(modules)
            for name, tensor in module.named_parameters()
        }

    def gradients(self, network: str, batch: Transitions, noise: Tensor) -> dict[str, Tensor]:
        """See `ObservedAgent`."""
        modules = [self._actor().module] if network == "actor" else self._checked()
        leaves = {
            f"{index}.{name}": tensor
            for index, module in enumerate(modules)
            for name, tensor in module.named_parameters()
        }
        with torch.enable_grad():
            loss = self._network_loss(network, batch, noise)().mean()
            grads = torch.autograd.grad(loss, list(leaves.values()), allow_unused=True)
        pairs = zip(leaves.items(), grads, strict=True)
        return {name: torch.zeros_like(p) if g is None else g for (name, p), g in pairs}

    def evaluate(
        self, critic: str, params: Mapping[str, Tensor], obs: Tensor, action: Tensor
    ) -> Tensor:
        """See `ObservedAgent`."""
        return self._stack(self._outputs(params, obs, action))

    def _outputs(self, params: Mapping[str, Tensor], obs: Tensor, action: Tensor) -> list[Tensor]:
        """What every member returns if the critic had these parameters."""
        outputs = []
        for index, member in enumerate(self._checked()):
            prefix = f"{index}."
            own = {k.removeprefix(prefix): v for k, v in params.items() if k.startswith(prefix)}
            inputs = self._inputs(obs, action)
            outputs.append(torch.func.functional_call(member, own, inputs))
        return outputs

    def loss(
        self, critic: str, params: Mapping[str, Tensor], batch: Transitions, noise: Tensor
    ) -> Tensor:
        """See `ObservedAgent`."""
        target = self._target(batch, noise)
        return self._loss(self.evaluate(critic, params, batch.obs, batch.action), target)

    def updated(self, batch: Transitions, noise: Tensor) -> ObservedAgent | None:
        """See `ObservedAgent`: only whoever trains the modules knows how."""
        return None if self._update is None else self._update(batch, noise)

    def critic_loss(self, critic: str, values: Tensor, target: Tensor) -> Tensor:
        """See `ObservedAgent`."""
        return self._loss(values, target)

    def fresh(self, critic: str, rng: np.random.Generator) -> dict[str, Tensor]:
        """See `ObservedAgent`."""
        copies = [copy.deepcopy(member).cpu() for member in self._members]
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            torch.manual_seed(int(rng.integers(2**63)))
            for member in copies:
                self._init(member)
        live = self.parameters(critic)
        return {
            f"{index}.{name}": tensor.detach().to(live[f"{index}.{name}"])
            for index, member in enumerate(copies)
            for name, tensor in member.named_parameters()
        }

    def _network_loss(
        self, network: str, batch: Transitions, noise: Tensor
    ) -> Callable[[], Tensor]:
        if network == "actor":
            policy = self._actor()
            return lambda: policy.loss(batch, noise)
        target = self._target(batch, noise)
        return lambda: self._loss(self._values(batch), target)

    @torch.no_grad()
    def _target(self, batch: Transitions, noise: Tensor) -> Tensor:
        target = self._targets(batch, noise)
        if target.numel() != len(batch.reward):
            raise UserError(
                f"the targets have shape {tuple(target.shape)} for {len(batch.reward)} "
                "transitions: one number for each is needed"
            )
        return target.reshape(-1)

    def _values(self, batch: Transitions) -> Tensor:
        inputs = self._inputs(batch.obs, batch.action)
        return self._stack([member(*inputs) for member in self._checked()])

    def _stack(self, values: list[Tensor]) -> Tensor:
        return torch.stack([one_value(value, f"critic {k}") for k, value in enumerate(values)])

    def _checked(self) -> list[nn.Module]:
        for member in self._members:
            require_evaluation_mode(member)
        return self._members

    def _actor(self) -> Policy:
        if self._policy is None:
            raise UserError(
                "no policy was given: pass `policy`, or leave churn, offpolicy, overestimation out"
            )
        require_evaluation_mode(self._policy.module)
        return self._policy
