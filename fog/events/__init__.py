"""The probe protocol: what a training run tells its observers, and what they may look at.

A probe is a class with a `name` that overrides the hooks it needs. It is found through the entry
point group `fog.probes`, and is called by the trainer, or by an adapter for another library's
agent. It may look at everything in the `View` and change nothing: no gradient left behind, no
number drawn from another stream than its own. A hook that is not overridden is never called.

Nothing here depends on the trainer: implement `ObservedAgent` and `Memory` for an agent to attach
every probe to it.
"""

from fog.events.cost import Outline, ProbeCost
from fog.events.events import (
    Change,
    ChangeKind,
    EnvStep,
    Episode,
    Facts,
    Phase,
    Update,
)
from fog.events.observed import (
    Hidden,
    Loss,
    LossFunction,
    Memory,
    ObservedAgent,
    TransitionBatch,
    Transitions,
)
from fog.events.probe import Probe, Table, View

__all__ = [
    "Change",
    "ChangeKind",
    "EnvStep",
    "Episode",
    "Facts",
    "Hidden",
    "Loss",
    "LossFunction",
    "Memory",
    "ObservedAgent",
    "Outline",
    "Phase",
    "Probe",
    "ProbeCost",
    "Table",
    "TransitionBatch",
    "Transitions",
    "Update",
    "View",
]
