"""Fast CPU versions of the SAC and OBAC updates, tested against `fog.algorithms`.

Gradients are written out by hand (`backward`, `loss_gradients`), the actor's gradient goes back
through the smaller twin alone (`minimum_twin`), and compiled updates multiply with our own kernels
(`products`, `kernels`). docs/performance.md gives the gain of each.
"""

from fog.fast.constants import FastHyperparameters as FastHyperparameters
from fog.fast.constants import compiler_options as compiler_options
from fog.fast.constants import constants as constants
from fog.fast.constants import one_twin_pays as one_twin_pays
from fog.fast.constants import serves as serves
from fog.fast.update import transition_losses as transition_losses
from fog.fast.update import update_ as update_
