"""Experience replay: one ring of transitions, four exact samplers, exact sample counts.

Importing this package, and drawing ids from samplers, does not import torch; building a `Replay`
does.
"""

from fog.replay.batch import Batch as Batch
from fog.replay.counts import Counts as Counts
from fog.replay.decay import DecayLaw as DecayLaw
from fog.replay.decay import DecaySampler as DecaySampler
from fog.replay.errors import ReplayError as ReplayError
from fog.replay.linear_decay import LinearLaw as LinearLaw
from fog.replay.prioritised import CorrectedUniformSampler as CorrectedUniformSampler
from fog.replay.prioritised import PrioritisedSampler as PrioritisedSampler
from fog.replay.replay import Replay as Replay
from fog.replay.sampler import Sampler as Sampler
from fog.replay.sampler import UniformSampler as UniformSampler
from fog.replay.samplers import SAMPLERS as SAMPLERS
from fog.replay.samplers import make_sampler as make_sampler
from fog.replay.sumtree import MaxTree as MaxTree
from fog.replay.sumtree import SumTree as SumTree
