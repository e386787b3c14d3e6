"""A read-only view of an agent's networks for probes and notebooks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor

from fog.agent.backend import Backend
from fog.algorithms.birth import temperature
from fog.events import Loss
from fog.networks import LayerTap, Look, Params, Tap, depth_of
from fog.replay.batch import Batch


class Networks:
    """Networks of an agent as they are at the time of the call.

    Nothing here draws random numbers or writes to the agent. Trees are live: read them before the
    next update, or clone them. Gradients may be taken through every function.
    """

    def __init__(self, state: Callable[[], Any], backend: Backend) -> None:
        self._state = state
        self._backend = backend
        self.hyper = backend.hyper

    @property
    def state(self) -> Any:
        """Every tensor of the agent, live."""
        return self._state()

    @property
    def critics(self) -> tuple[str, ...]:
        """Names of the critics this agent has, targets left out."""
        return self._backend.family.CRITICS

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all networks with hidden layers, targets left out."""
        return self._backend.family.NETWORKS

    @property
    def depth(self) -> int:
        """Residual blocks of the critics."""
        return depth_of(self._state().critic)

    @property
    def temperature(self) -> Tensor:
        """Entropy temperature alpha."""
        return temperature(self._state())

    def parameters(self, network: str) -> Params:
        """The tree of a network of `names`, or of a critic's target."""
        return self._backend.family.parameters(self._state(), network)

    def critic(self, which: str = "online") -> Params:
        """The tree of the twins that `critics` names, or of their targets: "online_target"."""
        name = which.removesuffix("_target")
        if name not in self.critics:
            raise ValueError(f"this agent has no {name} critics, only {', '.join(self.critics)}")
        return self.parameters(which)

    def actor(self) -> Params:
        """The policy's tree."""
        return self.parameters("actor")

    def value_net(self) -> Params:
        """The tree of OBAC's V, an ensemble of one; empty for SAC."""
        return dict(self._state().value)

    def q_values(self, obs: Tensor, action: Tensor, which: str = "online") -> Tensor:
        """Twin values, (2, B); of a quantile critic the means."""
        return self.evaluate(Look(which, self.critic(which)), obs, action)

    def evaluate(self, look: Look, obs: Tensor, action: Tensor) -> Tensor:
        """Values (members, B) of a critic, or of V, if it had the parameters of `look`."""
        return self._backend.family.evaluate(look, self._state(), obs, action, self.hyper)

    def q_layers(
        self,
        obs: Tensor,
        action: Tensor,
        which: str = "online",
        perturbation: Mapping[str, Tensor] | None = None,
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Twin values and every hidden output (2, B, width) in order of depth.

        Names: "stem", "block<i>.inner" (both after the activation), "block<i>.outer" (LayerNorm
        output before the residual sum) and "features" (the penultimate representation).
        """
        recorder = LayerTap(perturbation)
        look = Look(which, self.critic(which), tap=recorder)
        values = self.evaluate(look, obs, action)
        return values, recorder.layers

    def features(self, obs: Tensor, action: Tensor, which: str = "online") -> Tensor:
        """Penultimate features of the twins, (2, B, width)."""
        return self.q_layers(obs, action, which)[1]["features"]

    def value(self, obs: Tensor) -> Tensor:
        """V(s), (B,)."""
        return self.evaluate(Look("value", self.value_net()), obs, obs[:, :0])[0]

    def policy(self, obs: Tensor, tap: Tap | None = None) -> tuple[Tensor, Tensor]:
        """Mean and log standard deviation before squashing, each (B, act_dim)."""
        return self._backend.family.policy(self._state(), obs, self.hyper, tap)

    def policy_layers(
        self, obs: Tensor, perturbation: Mapping[str, Tensor] | None = None
    ) -> tuple[tuple[Tensor, Tensor], dict[str, Tensor]]:
        """The policy's Gaussian and the outputs of "hidden0" and "hidden1"."""
        recorder = LayerTap(perturbation)
        return self.policy(obs, recorder), recorder.layers

    def transition_losses(self, batch: Batch, noise: Tensor) -> dict[str, Loss]:
        """Training losses per transition by network; noise (B, act_dim) is the caller's."""
        return self._backend.transition_losses(self._state(), batch, noise, self.hyper)
