"""The tanh-squashed Gaussian policy of SAC, with noise passed in."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import torch
from torch import Tensor

_LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)


class GaussianAction(NamedTuple):
    """A sampled action with the Gaussian it came from.

    Attributes:
        action: squashed action in (-1, 1), (B, act_dim).
        log_prob: log density of the squashed action, (B,).
        mean: mean before squashing, (B, act_dim).
        log_std: bounded log standard deviation, (B, act_dim).
    """

    action: Tensor
    log_prob: Tensor
    mean: Tensor
    log_std: Tensor


class LogStd(NamedTuple):
    """How the actor's output becomes a log standard deviation.

    `clip` cuts it hard (OBAC, FoG): no gradient where it is cut. `smooth` maps it by tanh onto the
    open interval (jaxrl, the SAC family): low + (high - low) (1 + tanh(x)) / 2.
    """

    kind: Literal["clip", "smooth"]
    low: float
    high: float

    @property
    def bounds(self) -> tuple[float, float]:
        """The interval that a log standard deviation lies in."""
        return self.low, self.high

    def __call__(self, free: Tensor) -> Tensor:
        """The log standard deviation of the actor's free output."""
        return self.with_slope(free)[0]

    def with_slope(self, free: Tensor) -> tuple[Tensor, Tensor]:
        """The log standard deviation and its derivative in the free output."""
        if self.kind == "clip":
            clipped = free.clamp(self.low, self.high)
            return clipped, (free == clipped).to(free.dtype)
        half = 0.5 * (self.high - self.low)
        squashed = torch.tanh(free)
        return self.low + half * (1.0 + squashed), half * (1.0 - squashed.square())


def sample_action(mean: Tensor, log_std: Tensor, noise: Tensor) -> GaussianAction:
    """Reparameterised sample a = tanh(mean + std * noise) and its log density."""
    before = mean + log_std.exp() * noise
    gaussian = -0.5 * noise.square() - log_std - _LOG_SQRT_2PI
    action, log_slope = _tanh(before)
    return GaussianAction(action, (gaussian - log_slope).sum(dim=-1), mean, log_std)


def gaussian_log_density(mean: Tensor, log_std: Tensor, at: Tensor) -> Tensor:
    """Log density of the unsquashed Gaussian at `at`, per dimension."""
    noise = (at - mean) * (-log_std).exp()
    return -0.5 * noise.square() - log_std - _LOG_SQRT_2PI


SATURATED = 1e-6
"""Distance to -1 or 1 below which float32 no longer tells where before tanh an action was."""


def squashed_log_density(mean: Tensor, log_std: Tensor, action: Tensor) -> Tensor:
    """Log density of given squashed actions, (B,), the sum over their dimensions.

    The density is that of atanh(a) under the Gaussian times the slope 1 / (1 - a^2). A saturated
    dimension, |a| > 1 - 1e-6, has the mean density of that strip instead, its probability divided
    by its width: atanh would make of the last bit of `a` an arbitrary number of standard
    deviations, and of an action that was rounded to 1 infinitely many.
    """
    edge = 1.0 - SATURATED
    inside = action.clamp(-edge, edge)
    density = gaussian_log_density(mean, log_std, torch.atanh(inside))
    density = density - torch.log1p(inside) - torch.log1p(-inside)
    beyond = (action.sign() * mean - math.atanh(edge)) * (-log_std).exp()
    strip = torch.special.log_ndtr(beyond) - math.log(SATURATED)
    return torch.where(action.abs() > edge, strip, density).sum(dim=-1)


def _tanh(x: Tensor) -> tuple[Tensor, Tensor]:
    """tanh(x) and log(1 - tanh(x)^2), both of one exponential and exact for large and small |x|.

    The difference itself rounds to zero for large |x|; with q = exp(-2 |x|) its logarithm is
    2 (log 2 - |x| - log(1 + q)).
    """
    size = x.abs()
    less = torch.expm1(-2.0 * size)  # q - 1
    more = less + 2.0  # q + 1
    tanh = less / more
    return torch.where(x < 0.0, tanh, -tanh), 2.0 * (math.log(2.0) - size - more.log())
