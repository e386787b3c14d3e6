"""Our agents under observation: the losses are those of training, with taps."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from fog.agent import Batch, Networks
from fog.agent.backend import Backend
from fog.algorithms import losses
from fog.algorithms.gradient import gradient
from fog.algorithms.state import clone_state
from fog.events import Facts, Hidden, Loss, LossFunction, Transitions
from fog.networks import (
    Activation,
    Look,
    Params,
    Tap,
    activate,
    sample_action,
    squashed_log_density,
)
from fog.probing.dispatch import Counters, Probes
from fog.probing.registry import load
from fog.records.ledger import Ledger
from fog.records.sizes import NetworkSpec
from fog.replay import Replay

if TYPE_CHECKING:
    from fog.agent import Agent
    from fog.settings.config import Config

_CACHED_VALUES = 262_144
"""Activations of one layer of one member per chunk: 1 MB, so that a layer stays in cache."""

_WORTH_COMPILING = 200_000
"""Transitions from which the 15 s that compiling takes are repaid within a few windows."""


def facts_of(config: Config) -> Facts:
    """What a config tells probes of any library."""
    run, replay = config.run, config.replay
    return Facts(
        seed=run.seed,
        steps=run.steps,
        window_steps=run.window_steps,
        batch_size=config.agent.batch_size,
        discount=config.agent.discount,
        capacity=replay.capacity,
        sampler=replay.sampler,
        epsilon=replay.epsilon,
        tau=replay.tau,
        settings=config.flat(),
    )


def observe(
    config: Config,
    progress: Counters,
    agent: Agent,
    replay: Replay,
    directory: Path,
    ledger: Ledger,
) -> Probes:
    """Attach the probes that a config names to a run of ours."""
    probes = load(config.run.probes)
    observed = ObservedFogAgent(agent)
    return Probes(probes, facts_of(config), progress, observed, replay, directory, ledger)


class _Watch:
    """A tap that keeps every output, and a zero added to the activation's input for its gradient.

    Before the activation and not after it: a ReLU that is off lets no gradient through, so its
    neuron learns nothing, although the layers above would like its output to change.
    """

    def __init__(self) -> None:
        self.outputs: dict[str, Tensor] = {}
        self.zeros: dict[str, Tensor] = {}

    def __call__(self, name: str, z: Tensor, activation: Activation | None) -> Tensor:
        # The residual sum is not a layer of neurons, only a sum of layers.
        if name == "features":
            return z
        zero = torch.zeros_like(z, requires_grad=True)
        output = activate(z + zero, activation)
        self.outputs[name], self.zeros[name] = output.detach(), zero
        return output


class ObservedFogAgent:
    """An agent of ours under observation; see `fog.events.ObservedAgent`."""

    def __init__(self, agent: Agent, networks: Networks | None = None) -> None:
        """Observe an agent, or what it would be with other `networks` of the same shapes."""
        self._agent = agent
        self._networks = agent.networks if networks is None else networks
        self._stochastic = agent.backend.family.STOCHASTIC
        self.device = agent.device
        self.act_dim = agent.spec.act_dim
        self.critics = self._networks.critics
        self.networks = self._networks.names

    def losses(self, batch: Transitions, noise: Tensor) -> dict[str, Loss]:
        """See `ObservedAgent`: those that are trained on."""
        return self._networks.transition_losses(_batch(batch), noise)

    def bulk_losses(self, total: int) -> tuple[int, LossFunction]:
        """See `ObservedAgent`; compiled where the run is compiled and the buffer repays it."""
        agent = self._agent
        if self.device.type != "cpu":
            return 4096, self.losses
        rows = max(64, min(4096, _CACHED_VALUES // agent.spec.width))
        if not agent.compiled or total < _WORTH_COMPILING:
            return rows, self.losses
        compiled = _compiled_losses(agent.backend, agent.spec, agent.depth, rows)
        state = self._networks.state

        def function(batch: Transitions, noise: Tensor) -> Mapping[str, Loss]:
            if len(noise) != rows:
                return self.losses(batch, noise)
            return compiled(state, _batch(batch), noise)

        return rows, function

    @torch.no_grad()
    def q_values(self, critic: str, obs: Tensor, action: Tensor) -> Tensor:
        """See `ObservedAgent`."""
        return self._networks.q_values(obs, action, critic)

    @torch.no_grad()
    def features(self, network: str, obs: Tensor, action: Tensor) -> Tensor:
        """See `ObservedAgent`."""
        seen: list[Tensor] = []

        def tap(name: str, z: Tensor, activation: Activation | None) -> Tensor:
            output = activate(z, activation)
            seen[:] = [output]
            return output

        if network == "actor":
            self._networks.policy(obs, tap)
        else:
            look = Look(network, self.parameters(network), tap=tap)
            self._networks.evaluate(look, obs, action)
        last = seen[0]
        return last if last.dim() == 3 else last.unsqueeze(0)

    @torch.no_grad()
    def action(self, obs: Tensor) -> Tensor:
        """See `ObservedAgent`."""
        return torch.tanh(self._networks.policy(obs)[0])

    @torch.no_grad()
    def policy(self, obs: Tensor) -> tuple[Tensor, Tensor] | None:
        """See `ObservedAgent`."""
        return self._networks.policy(obs) if self._stochastic else None

    @torch.no_grad()
    def log_prob(self, obs: Tensor, action: Tensor) -> Tensor:
        """See `ObservedAgent`."""
        if not self._stochastic:
            return torch.full_like(action[:, 0], torch.nan)
        return squashed_log_density(*self._networks.policy(obs), action)

    @torch.no_grad()
    def entropy_bonus(self, obs: Tensor, noise: Tensor) -> Tensor:
        """See `ObservedAgent`."""
        if not self._stochastic:
            return torch.zeros_like(noise[:, 0])
        drawn = sample_action(*self._networks.policy(obs), noise)
        return -self._networks.temperature * drawn.log_prob

    def hidden(self, network: str, batch: Transitions, noise: Tensor) -> dict[str, Hidden]:
        """See `ObservedAgent`."""
        watch = _Watch()
        with torch.enable_grad():
            loss = self._loss(network, self.parameters(network), batch, noise, watch)
            grads = torch.autograd.grad(loss.sum(), list(watch.zeros.values()))
        found = {}
        for name, grad in zip(watch.zeros, grads, strict=True):
            output = watch.outputs[name]
            # The actor has no ensemble dimension.
            pair = (output, grad) if output.dim() == 3 else (output[None], grad[None])
            found[name] = Hidden(*pair)
        return found

    def parameters(self, network: str) -> Params:
        """See `ObservedAgent`."""
        return self._networks.parameters(network)

    def gradients(self, network: str, batch: Transitions, noise: Tensor) -> Params:
        """See `ObservedAgent`."""

        def loss(params: Params) -> tuple[Tensor, tuple[Tensor, ...]]:
            return self._loss(network, params, batch, noise).mean(), ()

        params = self.parameters(network)
        grads = gradient(loss, params)[2]
        # What is frozen has none.
        return {name: grads.get(name, torch.zeros_like(at)) for name, at in params.items()}

    def evaluate(
        self, critic: str, params: Mapping[str, Tensor], obs: Tensor, action: Tensor
    ) -> Tensor:
        """See `ObservedAgent`."""
        return self._networks.evaluate(Look(critic, dict(params)), obs, action)

    def updated(self, batch: Transitions, noise: Tensor) -> ObservedFogAgent:
        """See `ObservedAgent`: the agent's own update."""
        agent = self._agent
        active = torch.tensor(agent.bc_active, device=self.device)
        state = clone_state(self._networks.state)
        agent.backend.update_(state, _batch(batch), noise, active, agent.hyper)
        return ObservedFogAgent(agent, Networks(lambda: state, agent.backend))

    def loss(
        self, critic: str, params: Mapping[str, Tensor], batch: Transitions, noise: Tensor
    ) -> Tensor:
        """See `ObservedAgent`."""
        return self._loss(critic, dict(params), batch, noise)

    def critic_loss(self, critic: str, values: Tensor, target: Tensor) -> Tensor:
        """See `ObservedAgent`."""
        return losses.critic_loss(values, target)

    def fresh(self, critic: str, rng: np.random.Generator) -> Params:
        """See `ObservedAgent`: of the current depth, freshly initialised."""
        live = self.parameters(critic)
        init = self._agent.backend.family.init_critic
        drawn = init(rng, {name: tuple(tensor.shape) for name, tensor in live.items()})
        return {name: drawn[name].to(tensor) for name, tensor in live.items()}

    def critic_lr(self) -> float:
        """See `ObservedAgent`."""
        return self._agent.critic_lr

    def _loss(
        self,
        network: str,
        params: Params,
        batch: Transitions,
        noise: Tensor,
        tap: Tap | None = None,
    ) -> Tensor:
        """The training loss of one network per transition, as a function of its parameters."""
        agent, state = self._agent, self._networks.state
        target = None if network == "actor" else self.losses(batch, noise)[network].regressed_on
        return agent.backend.family.network_loss(
            Look(network, params, target, tap),
            state,
            _batch(batch),
            noise,
            agent.bc_active,
            agent.hyper,
        )


@functools.cache
def _compiled_losses(
    backend: Backend, spec: NetworkSpec, depth: int, rows: int
) -> Callable[[Any, Batch, Tensor], dict[str, Loss]]:
    def losses(state: Any, batch: Batch, noise: Tensor) -> dict[str, Loss]:
        return backend.transition_losses(state, batch, noise, backend.hyper)

    # A copy of the code per shape, because the compiler counts recompilations per code object.
    copy = types.FunctionType(
        losses.__code__.replace(), losses.__globals__, "losses", None, losses.__closure__
    )
    return torch.compile(copy, fullgraph=True, dynamic=False, options={"cpp_wrapper": True})


def _batch(batch: Transitions) -> Batch:
    """The loss function reads no weights, so a batch that a probe made needs none."""
    if isinstance(batch, Batch):
        return batch
    weight = torch.ones_like(batch.reward)
    return Batch(batch.obs, batch.action, batch.reward, batch.bootstrap, batch.next_obs, weight)
