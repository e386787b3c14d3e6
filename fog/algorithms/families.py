"""The families of algorithms by name, and what a module must define to be one.

A new baseline is a module beside `sac` and `obac` with these names, and one entry here.
"""

from __future__ import annotations

from typing import Any, Protocol

from torch import Tensor

from fog.algorithms import obac, sac
from fog.algorithms.hyperparameters import Hyperparameters
from fog.algorithms.state import State
from fog.events import Loss
from fog.networks import Params, Tap
from fog.replay.batch import Batch


class UpdateFunction(Protocol):
    """One update, written into the tensors of `state`; see `fog.algorithms.sac.update_`."""

    def __call__(
        self, state: State, batch: Batch, noise: Tensor, bc_active: Tensor, hyper: Any
    ) -> tuple[Tensor, Tensor]:
        """The metrics vector and the TD errors."""


class LossFunction(Protocol):
    """Training losses of single transitions; see `fog.algorithms.sac.transition_losses`."""

    def __call__(self, state: State, batch: Batch, noise: Tensor, hyper: Any) -> dict[str, Loss]:
        """Loss and target by network."""


class Family(Protocol):
    """What a module of `fog.algorithms` defines."""

    METRICS: tuple[str, ...]

    def update_(
        self, state: State, batch: Batch, noise: Tensor, bc_active: Tensor, hyper: Hyperparameters
    ) -> tuple[Tensor, Tensor]:
        """One update in place."""

    def transition_losses(
        self, state: State, batch: Batch, noise: Tensor, hyper: Hyperparameters
    ) -> dict[str, Loss]:
        """Training losses of single transitions."""

    def network_loss(
        self,
        network: str,
        params: Params,
        target: Tensor | None,
        state: State,
        batch: Batch,
        noise: Tensor,
        bc_active: bool,
        hyper: Hyperparameters,
        tap: Tap | None = None,
    ) -> Tensor:
        """Training loss of one network as a function of its parameters."""


FAMILIES: dict[str, Family] = {"sac": sac, "obac": obac}
