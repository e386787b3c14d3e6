"""The families of algorithms by name, and what a module must define to be one.

A new baseline is a module beside `sac` and `obac` with these names, one entry here, and one for its
sizes in `fog.records.specs`.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from fog.algorithms import bro, ne, obac, sac, simba
from fog.events import Loss
from fog.networks import Look, Params, Tap
from fog.records.sizes import NetworkSpec, Shapes
from fog.replay.batch import Batch
from fog.settings.config import AgentConfig


class UpdateFunction(Protocol):
    """One update, written into the tensors of `state`; see `fog.algorithms.sac.update_`."""

    def __call__(
        self, state: Any, batch: Batch, noise: Tensor, bc_active: Tensor, hyper: Any
    ) -> tuple[Tensor, Tensor]:
        """The metrics vector and the TD errors."""


class LossFunction(Protocol):
    """Training losses of single transitions; see `fog.algorithms.sac.transition_losses`."""

    def __call__(self, state: Any, batch: Batch, noise: Tensor, hyper: Any) -> dict[str, Loss]:
        """Loss and target by network."""


class Family(Protocol):
    """What a module of `fog.algorithms` defines. A state is a named tuple of the family's own."""

    METRICS: tuple[str, ...]
    """Names of what an update reports."""
    NOISES: int
    """Noise vectors (B, act_dim) of an update."""
    CRITICS: tuple[str, ...]
    """Q functions, the acting one first."""
    NETWORKS: tuple[str, ...]
    """All networks that probes look into: the critics first, the actor last."""
    KEPT: tuple[str, ...]
    """Fields of the state that a reset keeps."""
    STOCHASTIC: bool
    """Whether the policy is a Gaussian, or a single action."""
    COMPILES: bool
    """Whether an update can be compiled: what it does does not depend on how many there were."""

    def newborn(
        self,
        rng: np.random.Generator,
        spec: NetworkSpec,
        config: AgentConfig,
        device: torch.device,
    ) -> Any:
        """Fresh networks and optimisers."""

    def init_critic(self, rng: np.random.Generator, shapes: Shapes) -> Params:
        """Fresh values of a critic or of one block."""

    def decide(self, state: Any, obs: Tensor, noise: Tensor | None, hyper: Any) -> Tensor:
        """Actions in [-1, 1]: those that explore, or without noise those of evaluation."""

    def observe_(self, state: Any, obs: Tensor) -> None:
        """Take in an observation that training is about to act on."""

    def update_(
        self, state: Any, batch: Batch, noise: Tensor, bc_active: Tensor, hyper: Any
    ) -> tuple[Tensor, Tensor]:
        """One update in place."""

    def parameters(self, state: Any, network: str) -> Params:
        """The tree of one network, or of its target: "online_target"."""

    def evaluate(self, look: Look, state: Any, obs: Tensor, action: Tensor, hyper: Any) -> Tensor:
        """Values (members, B) of a critic, or of V, if it had the parameters of `look`."""

    def policy(
        self, state: Any, obs: Tensor, hyper: Any, tap: Tap | None = None
    ) -> tuple[Tensor, Tensor]:
        """Mean and log std of the policy before squashing."""

    def transition_losses(
        self, state: Any, batch: Batch, noise: Tensor, hyper: Any
    ) -> dict[str, Loss]:
        """Training losses of single transitions."""

    def network_loss(
        self, look: Look, state: Any, batch: Batch, noise: Tensor, bc_active: bool, hyper: Any
    ) -> Tensor:
        """Training loss of one network as a function of its parameters."""


FAMILIES: dict[str, Family] = {"sac": sac, "obac": obac, "bro": bro, "simba": simba, "ne": ne}
