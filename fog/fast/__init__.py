"""The updates of SAC and OBAC once more, faster on the CPU and held to `fog.algorithms` by tests.

Gradients are written out (`backward`, `loss_gradients`), the actor's gradient goes back through the
smaller twin alone (`minimum_twin`), and compiled updates multiply with kernels of our own
(`products`, `kernels`). docs/performance.md says what each is worth.
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
