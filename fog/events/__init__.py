"""The probe protocol: what a training run tells its observers, and what they may look at.

A probe is a class with a `name` that overrides the hooks it needs. It is found through the entry
point group `fog.probes`, and is called by the trainer, or by an adapter for another library's
agent. It may look at everything in the `View` and change nothing: no gradient left behind, no
number drawn from another stream than its own. A hook that is not overridden is never called.

Nothing here depends on the trainer: implement `ObservedAgent` and `Memory` for an agent to attach
every probe to it.
"""

from fog.events.cost import Outline as Outline
from fog.events.cost import ProbeCost as ProbeCost
from fog.events.events import Change as Change
from fog.events.events import ChangeKind as ChangeKind
from fog.events.events import EnvStep as EnvStep
from fog.events.events import Episode as Episode
from fog.events.events import Facts as Facts
from fog.events.events import Phase as Phase
from fog.events.events import Update as Update
from fog.events.observed import Hidden as Hidden
from fog.events.observed import Loss as Loss
from fog.events.observed import LossFunction as LossFunction
from fog.events.observed import Memory as Memory
from fog.events.observed import ObservedAgent as ObservedAgent
from fog.events.observed import TransitionBatch as TransitionBatch
from fog.events.observed import Transitions as Transitions
from fog.events.probe import Probe as Probe
from fog.events.probe import Table as Table
from fog.events.probe import View as View
