"""Critics that learn quantiles of the return: measured by their loss and by their means."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from diagnostics.adapters.modules import ObservedModules
from diagnostics.adapters.parts import joined
from fog.errors import UserError
from fog.events import Loss, LossFunction, Transitions


class ObservedQuantiles(ObservedModules):
    """A critic whose members return quantiles (B, N); a value Q is the mean of its quantiles.

    `critic_loss` has both the loss that is trained on and the squared error of the means.
    `plasticity`, `warmstart` and single transitions in `interference` fit the means by squared
    error, as for our own quantile critics.

    Args:
        members: the critic's modules.
        targets: quantiles of the target (B, M), without gradient.
        act_dim: length of an action.
        quantile_loss: training loss per transition (B,) of the members' quantiles
            (members, B, N) and those of the target (B, M).
        **options: see `ObservedModules`.
    """

    def __init__(
        self,
        members: Sequence[nn.Module],
        targets: Callable[[Transitions, Tensor], Tensor],
        act_dim: int,
        quantile_loss: Callable[[Tensor, Tensor], Tensor],
        **options: Any,
    ) -> None:
        inputs = options.pop("inputs", joined)
        super().__init__(
            members,
            lambda batch, noise: targets(batch, noise).mean(dim=1),
            act_dim,
            inputs=inputs,
            **options,
        )
        self._target_quantiles = targets
        self._quantile_loss = quantile_loss

    @torch.no_grad()
    def losses(self, batch: Transitions, noise: Tensor) -> dict[str, Loss]:
        """See `ObservedAgent`."""
        target = self._target_quantiles(batch, noise)
        quantiles = self._quantiles(batch)
        mean = target.mean(dim=1)
        error = (quantiles.mean(dim=2) - mean).square().sum(dim=0)
        return {"online": Loss(self._quantile_loss(quantiles, target), mean, error, target)}

    def bulk_losses(self, total: int) -> tuple[int, LossFunction]:
        """See `ObservedAgent`."""
        return self._rows, self.losses

    def loss(
        self, critic: str, params: Mapping[str, Tensor], batch: Transitions, noise: Tensor
    ) -> Tensor:
        """See `ObservedAgent`."""
        with torch.no_grad():
            target = self._target_quantiles(batch, noise)
        outputs = self._outputs(params, batch.obs, batch.action)
        return self._quantile_loss(torch.stack(outputs), target)

    def _network_loss(
        self, network: str, batch: Transitions, noise: Tensor
    ) -> Callable[[], Tensor]:
        if network == "actor":
            return super()._network_loss(network, batch, noise)
        with torch.no_grad():
            target = self._target_quantiles(batch, noise)
        return lambda: self._quantile_loss(self._quantiles(batch), target)

    def _quantiles(self, batch: Transitions) -> Tensor:
        inputs = self._inputs(batch.obs, batch.action)
        return torch.stack([member(*inputs) for member in self._checked()])

    def _stack(self, values: list[Tensor]) -> Tensor:
        for index, value in enumerate(values):
            if value.dim() != 2:
                raise UserError(
                    f"critic {index} returned shape {tuple(value.shape)}: it must return its "
                    "quantiles, (B, N)"
                )
        return torch.stack([value.mean(dim=1) for value in values])
