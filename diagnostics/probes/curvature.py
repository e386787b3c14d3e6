"""Curvature: leading eigenvalues of the Hessian of a critic's loss, by Lanczos."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from diagnostics.probes.common import at_least_one, noise, record_rows, sample
from fog.events import Outline, Probe, ProbeCost, View

FloatArray = NDArray[np.float64]


class Ritz(NamedTuple):
    """What Lanczos found, largest first.

    `residuals[i]` bounds the distance of `values[i]` to the nearest eigenvalue.
    """

    values: FloatArray
    residuals: FloatArray


class Curvature(Probe):
    """The largest Hessian eigenvalues of every critic's mean loss, and the most negative one.

    Targets are frozen, as they are in an update. The Hessian of twins is block diagonal, so its
    eigenvalues are those of both. Measured at the end of each window. Optional, because each step
    costs two to three backward passes, and `steps` copies of the critic's parameters are kept
    while measuring: `--probes all,curvature`.

    Args:
        batch: transitions over which the loss is averaged.
        steps: Lanczos steps, products with the Hessian.
        top: eigenvalues to record.
    """

    name = "curvature"

    def __init__(self, batch: int = 1024, steps: int = 20, top: int = 5) -> None:
        self._batch = at_least_one(batch, "batch")
        self._steps = at_least_one(steps, "steps")
        self._top = at_least_one(top, "top")

    def cost(self, run: Outline) -> ProbeCost:
        """Each product with the Hessian goes forward and backward through a backward pass."""
        rows = len(run.windows) * self._batch
        flops = rows * (run.critics * run.loss_flops + 0.8 * self._steps * run.update_flops)
        return ProbeCost(flops, len(run.windows))

    def on_window(self, view: View) -> None:
        """Measure; a reset or an expansion on this step comes afterwards."""
        agent, batch = view.agent, sample(view, self._batch)
        rows = []
        for critic in agent.critics:
            leaves = {
                name: tensor.detach().clone().requires_grad_()
                for name, tensor in agent.parameters(critic).items()
            }
            with torch.enable_grad():
                loss = agent.loss(critic, leaves, batch, noise(view, len(batch.reward))).mean()
                product = hessian_product(loss, list(leaves.values()))
                size = sum(leaf.numel() for leaf in leaves.values())
                drawn = torch.from_numpy(view.rng.standard_normal(size))
                found = lanczos(product, drawn.to(loss), self._steps)
            top = slice(0, self._top)
            rows.append(
                {
                    "critic": critic,
                    "parameters": size,
                    "steps": len(found.values),
                    "eigenvalues": found.values[top],
                    "residuals": found.residuals[top],
                    "lowest": found.values[-1],
                    "lowest_residual": found.residuals[-1],
                }
            )
        record_rows(view, "curvature", rows)


def hessian_product(loss: Tensor, leaves: list[Tensor]) -> Callable[[Tensor], Tensor]:
    """The function v to H v, H the Hessian of `loss` in all `leaves` together, flattened."""
    grads = torch.autograd.grad(loss, leaves, create_graph=True)
    flat = torch.cat([grad.reshape(-1) for grad in grads])

    def product(vector: Tensor) -> Tensor:
        parts = torch.autograd.grad(flat, leaves, vector, retain_graph=True)
        return torch.cat([part.reshape(-1) for part in parts])

    return product


def lanczos(product: Callable[[Tensor], Tensor], start: Tensor, steps: int) -> Ritz:
    """Eigenvalues of a symmetric operator by Lanczos with full reorthogonalisation.

    `start` is any vector with a part along the eigenvectors that are wanted: a random one. Stops
    early if the vectors reached span an invariant space: then the values are exact, and
    eigenvectors orthogonal to `start` stay unseen.
    """
    basis = [start / start.norm()]
    diagonal: list[float] = []
    off: list[float] = []
    for _ in range(min(steps, len(start))):
        image = product(basis[-1])
        scale = image.norm().item()
        diagonal.append(torch.dot(image, basis[-1]).item())
        # Twice: once leaves what rounding left of the older vectors.
        for _ in range(2):
            for vector in basis:
                image = image - torch.dot(image, vector) * vector
        off.append(image.norm().item())
        if off[-1] <= 10 * torch.finfo(image.dtype).eps * scale:
            off[-1] = 0.0
            break
        basis.append(image / off[-1])
    inner = off[:-1]
    values, vectors = np.linalg.eigh(np.diag(diagonal) + np.diag(inner, 1) + np.diag(inner, -1))
    residuals = np.abs(off[-1] * vectors[-1])
    return Ritz(values[::-1], residuals[::-1])
