"""Bytes on disk of a finished run: its checkpoints, its tables, what probes recorded.

While a run is going it needs a little more: a third checkpoint for a moment, and probe tables in
parts, some kilobytes each, until they are joined.
"""

from __future__ import annotations

from fog.algorithms.families import FAMILIES
from fog.cost.memory import FLOAT, ring_bytes, state_bytes
from fog.cost.probes import attached, probe_costs, probe_state_bytes
from fog.cost.work import Work
from fog.records.checkpoint import KEPT
from fog.records.sizes import NetworkSpec
from fog.settings.config import Config

TENSOR_BYTES = 250
"""What torch.save spends on the name and place of a tensor."""
CHECKPOINT_BYTES = 16_000
"""Noise generator (5 KB), seal, counters, headers and empty probe states of a checkpoint."""
EVENT_BYTES = 70
"""Of a row of events.csv; checkpoints are events."""
EVAL_BYTES = 40
"""Of a row of evals.csv."""
NUMBER_BYTES = 19
"""Of a number in train.csv: doubles are written with all their digits."""
SCALAR_BYTES = 60
"""Of one number in TensorBoard's event file."""
PART_BYTES = 90
"""Of the line that a checkpoint has on each file of the probes: name, size and checksum."""
FIXED_BYTES = 4_000
"""config.yaml, manifest.json, headers of the tables."""


def checkpoint_bytes(config: Config, work: Work, spec: NetworkSpec, episode_length: int) -> int:
    """One checkpoint at the end of the run: agent, replay, state of the probes."""
    kept = min(config.replay.capacity, work.steps)
    # Beside each trained tensor the optimiser's two moments.
    tensors = sum(
        len(tree) * (1 if name in spec.UNTRAINED else 3)
        for name, tree in spec.trees(work.deepest).items()
    )
    agent = state_bytes(spec, work.deepest) + TENSOR_BYTES * tensors
    finals = FLOAT * spec.obs_dim * (kept // episode_length)
    replay = ring_bytes(kept, spec.obs_dim, spec.act_dim) + FLOAT * work.steps + finals
    if config.replay.sampler in ("per", "cuer"):
        replay += 2 * FLOAT * kept
    ledger = PART_BYTES * sum(
        cost.files for cost in probe_costs(config, work, spec, episode_length)
    )
    return agent + replay + CHECKPOINT_BYTES + ledger + probe_state_bytes(config, work, spec)


def disk_bytes(config: Config, work: Work, spec: NetworkSpec, episode_length: int) -> int:
    """The whole run directory when the run has ended and its probe tables are joined."""
    kept = min(KEPT, work.checkpoints)
    total = kept * checkpoint_bytes(config, work, spec, episode_length) + FIXED_BYTES
    if config.replay.storage == "memmap":
        total += ring_bytes(config.replay.capacity, spec.obs_dim, spec.act_dim)
    evaluations = work.evaluations * config.run.eval_episodes
    names = attached(config)
    columns = 8 + len(FAMILIES[config.agent.backbone].METRICS) + len(names)
    total += EVAL_BYTES * evaluations + NUMBER_BYTES * columns * work.log_rows
    total += EVENT_BYTES * (work.changes + work.checkpoints)
    if config.runtime.tensorboard:
        total += SCALAR_BYTES * (columns * work.log_rows + 2 * work.evaluations)
    probes = probe_costs(config, work, spec, episode_length)
    return total + sum(cost.data_bytes for cost in probes)
