"""Fast CPU versions of the SAC and OBAC updates, tested against `fog.algorithms`.

Gradients are written out by hand (`backward`, `loss_gradients`), the actor's gradient goes back
through the smaller twin alone (`minimum_twin`), and compiled updates multiply with our own kernels
(`products`, `kernels`). docs/performance.md gives the gain of each.
"""

from fog.fast.constants import (
    FastHyperparameters,
    compiler_options,
    constants,
    one_twin_pays,
    serves,
)
from fog.fast.update import transition_losses, update_

__all__ = [
    "FastHyperparameters",
    "compiler_options",
    "constants",
    "one_twin_pays",
    "serves",
    "transition_losses",
    "update_",
]
