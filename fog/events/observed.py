"""What probes may look at: an agent's networks and losses, and the transitions of a replay."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import torch
    from torch import Tensor


class Transitions(Protocol):
    """A batch of transitions with leading shape (B,)."""

    @property
    def obs(self) -> Tensor:
        """Observations, (B, obs_dim)."""

    @property
    def action(self) -> Tensor:
        """Actions as the critic sees them, (B, act_dim)."""

    @property
    def reward(self) -> Tensor:
        """Rewards, (B,)."""

    @property
    def bootstrap(self) -> Tensor:
        """0 iff the episode terminated here, else 1, (B,)."""

    @property
    def next_obs(self) -> Tensor:
        """Observations after the action, (B, obs_dim)."""


class TransitionBatch(NamedTuple):
    """A batch made by a probe or an adapter."""

    obs: Tensor
    action: Tensor
    reward: Tensor
    bootstrap: Tensor
    next_obs: Tensor


class Loss(NamedTuple):
    """Training loss of single transitions and the target they are regressed on, (B,) each.

    Of a critic that learns a distribution, `target` is the target's mean and `quantiles`, (B, N),
    the target itself. `squared_error` is then the sum over members of (mean - target)^2: what can
    be laid beside the loss of another agent's critics, whose loss it is.
    """

    loss: Tensor
    target: Tensor
    squared_error: Tensor | None = None
    quantiles: Tensor | None = None

    @property
    def regressed_on(self) -> Tensor:
        """The target itself."""
        return self.target if self.quantiles is None else self.quantiles


LossFunction: TypeAlias = "Callable[[Transitions, Tensor], Mapping[str, Loss]]"


class Hidden(NamedTuple):
    """One hidden layer on a batch, (members, B, width) each.

    `output` is h = f(z), what the layer hands on. `gradient` is d loss_b / d z_b at the input z of
    its activation f, after LayerNorm where there is one; loss_b is what transition b adds to the
    network's own training loss before averaging. A layer without an activation has h = z.
    """

    output: Tensor
    gradient: Tensor


class ObservedAgent(Protocol):
    """An agent under observation. Every method reads the networks as they are now.

    Nothing here draws random numbers, writes to the agent or leaves gradients behind; except from
    `evaluate`, `loss` and `critic_loss`, results are detached. Noise is standard normal,
    (B, act_dim), and the caller's.
    """

    @property
    def device(self) -> torch.device:
        """Where batches and noise must be."""

    @property
    def act_dim(self) -> int:
        """Length of an action."""

    @property
    def critics(self) -> tuple[str, ...]:
        """Q functions, the acting one first: ("online",) or ("online", "offline")."""

    @property
    def networks(self) -> tuple[str, ...]:
        """All trained networks with hidden layers: the critics, "actor", perhaps "value"."""

    def losses(self, batch: Transitions, noise: Tensor) -> Mapping[str, Loss]:
        """The training loss by network, unweighted: each critic, and "value" if there is a V."""

    def bulk_losses(self, total: int) -> tuple[int, LossFunction]:
        """How to get the losses of `total` transitions fast: rows at a time, and the function."""

    def q_values(self, critic: str, obs: Tensor, action: Tensor) -> Tensor:
        """Q of every member, (members, B)."""

    def features(self, network: str, obs: Tensor, action: Tensor) -> Tensor:
        """What the network's last dense layer sees, (members, B, width)."""

    def action(self, obs: Tensor) -> Tensor:
        """The deterministic action, (B, act_dim)."""

    def policy(self, obs: Tensor) -> tuple[Tensor, Tensor] | None:
        """Mean and log std of the Gaussian before squashing, (B, act_dim) each; None without."""

    def log_prob(self, obs: Tensor, action: Tensor) -> Tensor:
        """Log pi(a | s) of given actions, (B,); NaN if the policy is deterministic."""

    def entropy_bonus(self, obs: Tensor, noise: Tensor) -> Tensor:
        """-alpha log pi(a | s) of a sampled action, (B,); zeros without entropy regularisation."""

    def hidden(self, network: str, batch: Transitions, noise: Tensor) -> Mapping[str, Hidden]:
        """Every hidden dense layer in order of depth, with the gradient its neurons receive."""

    def parameters(self, network: str) -> Mapping[str, Tensor]:
        """The network's parameters, live: to be read or cloned."""

    def gradients(self, network: str, batch: Transitions, noise: Tensor) -> Mapping[str, Tensor]:
        """Gradient of the mean training loss with respect to `parameters(network)`."""

    def evaluate(
        self, critic: str, params: Mapping[str, Tensor], obs: Tensor, action: Tensor
    ) -> Tensor:
        """Q of every member (members, B) if the critic had these parameters; differentiable."""

    def loss(
        self, critic: str, params: Mapping[str, Tensor], batch: Transitions, noise: Tensor
    ) -> Tensor:
        """Training loss (B,) if the critic had these parameters; twice differentiable.

        Targets stay as they are.
        """

    def updated(self, batch: Transitions, noise: Tensor) -> ObservedAgent | None:
        """A copy of the agent after one more update on the batch; None if it cannot be had.

        Noise is (2, B, act_dim). The agent itself, its optimisers and counters stay as they are.
        """

    def critic_loss(self, critic: str, values: Tensor, target: Tensor) -> Tensor:
        """Training loss per transition (B,) of values (members, B) and a target; differentiable."""

    def fresh(self, critic: str, rng: np.random.Generator) -> Mapping[str, Tensor]:
        """New initial values for `parameters(critic)`, drawn from `rng` as at initialisation."""

    def critic_lr(self) -> float:
        """Learning rate of the critics now."""


class Memory(Protocol):
    """A replay under observation. Transitions are numbered from 0 in the order of arrival."""

    @property
    def size(self) -> int:
        """Transitions stored now: `added - size` to `added - 1`."""

    @property
    def added(self) -> int:
        """Transitions ever added."""

    @property
    def counts(self) -> NDArray[np.int32]:
        """Draws of every transition ever added."""

    def take(self, ids: NDArray[np.int64]) -> Transitions:
        """Stored transitions; does not count as drawing them."""

    def chunks(self, size: int) -> Iterator[tuple[NDArray[np.int64], Transitions]]:
        """All stored transitions, oldest first, at most `size` at a time."""
