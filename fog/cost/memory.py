"""Bytes of memory that a run needs, from the sizes of what it keeps.

The replay counts in full, as it is once it has filled up. What the process holds before training
starts (Python, torch, the simulator) is measured and added by `fog.cost.estimate`.
"""

from __future__ import annotations

from math import ceil

from fog.cost import probes
from fog.cost.flops import weights
from fog.cost.work import Work
from fog.records.sizes import NetworkSpec
from fog.settings.config import Config
from fog.training.schedule import PORTION

FLOAT = 4

KEPT_PER_LAYER = 4
"""Tensors that autograd keeps for each dense layer until its gradient is computed: the layer's
input, the product, the normalised product and the activation."""

TREES = {"per": 2, "cuer": 1}
"""Trees of priorities that a sampler keeps: their sums, and for `per` their maximum."""

TREE_BYTES = 8 * 16 / 15
"""Of a leaf of a tree of priorities and its share of the nodes above, 16 children to a node."""

SPARE_BYTES = 25_000_000
"""What torch's and Python's allocators hold beyond the tensors in a short run."""

COMPILER_BYTES = 1_000_000_000
"""While an update is compiled, in the process and in the C++ compiler it calls: 0.5 to 1 GB."""


def replay_bytes(config: Config, obs_dim: int, act_dim: int) -> int:
    """The replay at its fullest: ring, draw counts and priorities.

    A ring on disk (`storage: memmap`) counts as files, see `fog.cost.disk`, since the system may
    drop its pages at any time.
    """
    kept = min(config.replay.capacity, config.run.steps)
    total = FLOAT * config.run.steps
    if config.replay.storage == "memory":
        total += ring_bytes(kept, obs_dim, act_dim)
    trees = TREES.get(config.replay.sampler, 0)
    return total + round(trees * TREE_BYTES * config.replay.capacity)


def ring_bytes(rows: int, obs_dim: int, act_dim: int) -> int:
    """Observation, action, reward and end of each row, and a spare; see `fog.replay.storage`."""
    return FLOAT * ((rows + 1) * (obs_dim + act_dim + 2) + obs_dim)


def state_bytes(spec: NetworkSpec, depth: int) -> int:
    """Networks, targets and Adam's two moments: what a checkpoint of the agent holds."""
    counts = spec.parameters(depth)
    return FLOAT * (counts["total"] + 2 * counts["trainable"])


def update_bytes(spec: NetworkSpec, depth: int, batch_size: int) -> int:
    """What one update holds on top: gradients, and what the critics' backward pass needs."""
    counts = spec.parameters(depth)
    layers = spec.ensemble * len(weights(spec.critic(depth)))
    return FLOAT * (counts["trainable"] + KEPT_PER_LAYER * layers * batch_size * spec.width)


def run_bytes(config: Config, work: Work, spec: NetworkSpec, compiled: bool) -> int:
    """Everything that training adds to the process."""
    agent, depth = config.agent, work.deepest
    per_transition = 2 * spec.obs_dim + spec.act_dim + 3
    most = max(ceil(agent.replay_ratio), config.lifecycle.priming_updates)
    drawn = min(PORTION, most) * agent.batch_size * per_transition
    return (
        replay_bytes(config, spec.obs_dim, spec.act_dim)
        + state_bytes(spec, depth)
        + update_bytes(spec, depth, agent.batch_size)
        + FLOAT * drawn
        + SPARE_BYTES
        + (probes.MEMORY_BYTES if probes.attached(config) else 0)
        + probes.probe_state_bytes(config, work, spec)
        + (COMPILER_BYTES if compiled else 0)
    )
