"""Experience replay: one ring of transitions, four exact samplers, exact sample counts.

Importing this package, and drawing ids from samplers, does not import torch; building a `Replay`
does.
"""

from fog.replay.batch import Batch
from fog.replay.counts import Counts
from fog.replay.decay import DecayLaw, DecaySampler
from fog.replay.errors import ReplayError
from fog.replay.linear_decay import LinearLaw
from fog.replay.prioritised import CorrectedUniformSampler, PrioritisedSampler
from fog.replay.replay import Replay
from fog.replay.sampler import Sampler, UniformSampler
from fog.replay.samplers import SAMPLERS, make_sampler
from fog.replay.sumtree import MaxTree, SumTree

__all__ = [
    "SAMPLERS",
    "Batch",
    "CorrectedUniformSampler",
    "Counts",
    "DecayLaw",
    "DecaySampler",
    "LinearLaw",
    "MaxTree",
    "PrioritisedSampler",
    "Replay",
    "ReplayError",
    "Sampler",
    "SumTree",
    "UniformSampler",
    "make_sampler",
]
