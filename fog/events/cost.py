"""What a probe says about its own cost, before the run that it is attached to starts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Outline:
    """A run before it starts, as far as the cost of a probe depends on it.

    Networks count at the depth where most updates are made, for products, and at their deepest,
    for sizes. FLOPs are those of one transition.
    """

    steps: int
    """Environment steps."""
    warmup_steps: int
    window_steps: int
    windows: tuple[int, ...]
    """Environment steps at which a window ends."""
    changes: int
    """Resets and expansions."""
    evaluations: int
    evaluated: int
    """Transitions of one evaluation."""
    capacity: int
    """Transitions that the replay keeps."""
    batch_size: int
    obs_dim: int
    act_dim: int
    width: int
    critics: int
    """Pairs of twins: 1, or 2 with offline critics."""
    fitted: int
    """Networks that are regressed on targets: 1, or 3 with offline critics and V."""
    neurons: int
    """Hidden neurons of all networks and members."""
    parameters: int
    """Of all trained networks."""
    tensors: int
    """Weights, biases and so on of all trained networks, twins as one."""
    loss_flops: int
    """All training losses, without gradients."""
    policy_flops: int
    """The policy alone."""
    value_flops: int
    """The policy and the online twins."""
    update_flops: int
    """An update with its gradients."""

    def measurements(self, per_window: int) -> int:
        """How often a probe measures that does so `per_window` times a window, from warm-up on."""
        every = max(1, self.window_steps // per_window)
        return (self.steps - self.warmup_steps) // every + 1

    def stored(self, step: int) -> int:
        """Transitions in the replay at an environment step."""
        return min(step, self.capacity)


@dataclass(frozen=True)
class ProbeCost:
    """What a probe takes over a whole run.

    `flops` are those of its matrix products, which the estimate turns into seconds by the speed of
    updates. `files` are the Parquet files that it writes, `data_bytes` what is in them beyond a few
    numbers each, and `state_bytes` what it keeps in memory and in every checkpoint.
    """

    flops: float = 0.0
    files: int = 0
    data_bytes: int = 0
    state_bytes: int = 0
