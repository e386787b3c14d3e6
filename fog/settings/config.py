"""The whole experiment as frozen dataclasses: validated at construction, plain data otherwise.

Defaults are FoG's hyperparameter table (Appendix B.1 of the paper) on a one-million-step task;
`fog.settings.variants` holds what differs for the others. Step-like settings count environment
steps, update-like settings count gradient updates, and the names say which.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from fog.errors import ConfigError
from fog.settings.options import check, check_increasing, option, unknown
from fog.settings.tasks import DEFAULT_RESETS, Task
from fog.settings.tasks import get as task_of
from fog.system.text import shown


@dataclass(frozen=True)
class RunConfig:
    """What to train, for how long, and what to measure during training."""

    task: str = option("humanoid-walk", "task name; `fog tasks` lists them")
    action_repeat: int = option(1, "simulator steps for each environment step", ge=1)
    termination: Literal["suite", "never"] = option(
        "suite", "never: episodes run to their time limit"
    )
    variant: str = option("fog", "named set of settings; `fog variants` lists them")
    seed: int = option(0, "seed of every random stream of the run", ge=0, lt=2**31)
    scale: float = option(1.0, "shortens the whole experiment; 1 is the paper's length", gt=0, le=1)
    steps: int = option(1_000_000, "environment steps", ge=1)
    warmup_steps: int = option(5_000, "random actions before the first update", ge=1)
    eval_every: int = option(5_000, "environment steps between evaluations", ge=1)
    eval_episodes: int = option(10, "episodes per evaluation, deterministic actions", ge=1)
    window_steps: int = option(100_000, "width of a critic-loss window (heatmap cell)", ge=1)
    log_every: int = option(1_000, "environment steps between rows of train.csv", ge=1)
    probes: tuple[str, ...] = option((), "probes to attach: all (except curvature), none, or names")

    def __post_init__(self) -> None:
        check(self)

    def known_task(self) -> Task:
        """The task as this run plays it."""
        return dataclasses.replace(
            task_of(self.task), action_repeat=self.action_repeat, termination=self.termination
        )


@dataclass(frozen=True)
class NetworkConfig:
    """Widths and depths. Depth counts residual blocks, each of two dense layers.

    A critic has stem_layers + 2 x depth + 1 dense layers, head included: FoG grows from 6 to 8 and
    10, the motivating SAC (a stem of two, no block at first) from 3 to 5 and 7.
    """

    width: int = option(512, "hidden units of every layer", ge=1, le=2**16)
    actor_width: int | None = option(
        None,
        "hidden units of the actor; none is width / 2 (bro), width / 4 (simba)",
        ge=1,
        le=2**16,
    )
    stem_layers: int = option(1, "critic layers before the blocks: 1 or 2", ge=1, le=2)
    critic_layer_norm: bool = option(True, "LayerNorm after the critics' hidden layers")
    initial_depth: int = option(2, "critic blocks at the start and after each reset", ge=0, le=100)
    maximal_depth: int = option(4, "critic blocks after the last expansion", ge=0, le=100)
    activation: Literal["elu", "relu"] = option("elu", "activation of actor and critics")
    hidden_layers: int = option(3, "hidden layers of a critic, the actor has one less (ne)", ge=2)
    critics: int = option(2, "Q functions, one or two (simba; others have two)", ge=1, le=2)
    quantiles: int = option(100, "quantiles of the return that a critic learns (bro)", ge=2)
    actor_layer_norm: bool = option(False, "LayerNorm after the actor's hidden layers")

    def __post_init__(self) -> None:
        check(self)
        if self.maximal_depth < self.initial_depth:
            raise ConfigError(
                f"maximal_depth: must be at least initial_depth ({self.initial_depth}), "
                f"got {self.maximal_depth}"
            )


@dataclass(frozen=True)
class AgentConfig:
    """The learning rule: SAC, OBAC on top of it, or an opponent of FoG."""

    backbone: Literal["sac", "obac", "bro", "simba", "ne"] = option(
        "obac", "algorithm: sac, obac (adds the offline critics), bro, simba, ne"
    )
    replay_ratio: float = option(10.0, "gradient updates per step; may be below 1", gt=0, le=1e6)
    batch_size: int = option(256, "transitions per update", ge=1)
    discount: float = option(0.99, "discount factor gamma", ge=0, lt=1)
    polyak: float = option(0.005, "target network step per update", gt=0, le=1)
    pessimism: float = option(1.0, "how twins combine: 1 takes the minimum, 0 the mean", ge=0, le=1)
    critic_lr: float = option(3e-4, "critic learning rate before expansion decay", gt=0)
    actor_lr: float = option(3e-4, "actor learning rate", gt=0)
    temperature_lr: float = option(3e-4, "entropy temperature learning rate", gt=0)
    weight_decay: float = option(1e-4, "AdamW weight decay of the critics; 0 is Adam", ge=0)
    initial_temperature: float = option(1.0, "initial entropy temperature", gt=0)
    target_entropy: float = option(-0.5, "entropy target per action dimension")
    log_std_map: Literal["clip", "smooth"] = option(
        "clip", "bound the actor's log standard deviation by clipping or smoothly by tanh"
    )
    log_std_min: float = option(-20.0, "lower bound of the actor's log standard deviation")
    log_std_max: float = option(2.0, "upper bound of the actor's log standard deviation")
    bc_weight: float = option(1e-3, "behaviour cloning weight lambda (obac)", ge=0)
    bc_wait_updates: int = option(
        250_000, "OBAC wait: updates without cloning after the start or a reset", ge=0
    )
    expectile: float = option(0.9, "expectile of the offline value (obac)", gt=0, lt=1)

    def __post_init__(self) -> None:
        check(self)
        if self.log_std_min >= self.log_std_max:
            raise ConfigError(
                f"log_std_min: must be below log_std_max ({self.log_std_max}), "
                f"got {self.log_std_min}"
            )


@dataclass(frozen=True)
class ReplayConfig:
    """The replay buffer, and how transitions are drawn from it."""

    sampler: Literal["uniform", "decay", "per", "cuer", "swd"] = option(
        "decay", "how transitions are drawn"
    )
    capacity: int = option(1_000_000, "transitions kept", ge=1)
    epsilon: float = option(1e-5, "decay rate per environment step of age", gt=0, lt=1)
    tau: float = option(0.1, "minimum sampling weight of decay and swd", ge=0, le=1)
    # The age at which the weight meets tau is then about that of decay: 225,000 and 230,000 steps.
    swd_horizon: int = option(
        250_000, "environment steps in which the weight of swd would fall to 0", ge=1
    )
    per_alpha: float = option(0.6, "priority exponent of per", ge=0, le=1)
    per_beta: float = option(0.4, "importance exponent of per, annealed to 1", ge=0, le=1)
    cuer_quota: Literal["batch", "step"] = option(
        "batch", "draws that cuer owes a new transition: a batch, or an environment step's worth"
    )
    storage: Literal["memory", "memmap"] = option("memory", "memmap keeps the buffer on disk")

    def __post_init__(self) -> None:
        check(self)


@dataclass(frozen=True)
class LifecycleConfig:
    """When networks reset, when critics grow, and how many priming updates training starts with."""

    reset_steps: tuple[int, ...] = option(
        DEFAULT_RESETS, "environment steps at which everything learnable is re-initialised", ge=1
    )
    expansion_updates: tuple[int, ...] = option(
        (50_000, 200_000), "updates after the start or a reset at which critics gain a block", ge=1
    )
    growth: Literal["block", "injection"] = option(
        "block", "what critics gain: a residual block, or a plasticity injection (sac, obac, bro)"
    )
    # An amount set by hand: no variant sets it, so `--scale` has nothing to scale. At most what
    # the paper's whole training takes, a million steps at replay ratio 10.
    priming_updates: int = option(
        0, "extra updates on the warm-up data, made when the warm-up ends", ge=0, le=10_000_000
    )

    def __post_init__(self) -> None:
        check(self)
        check_increasing("reset_steps", self.reset_steps)
        check_increasing("expansion_updates", self.expansion_updates)


@dataclass(frozen=True)
class RuntimeConfig:
    """Where and how the run runs. Nothing here changes the results beyond rounding."""

    out: str = option("runs", "folder that holds the run directories")
    device: Literal["auto", "cpu", "cuda"] = option("auto", "auto uses a GPU if there is one")
    threads: int = option(1, "CPU threads of the update", ge=1, le=4096)
    compile: Literal["auto", "on", "off"] = option("auto", "auto compiles where that saves time")
    backend: Literal["auto", "plain"] = option(
        "auto", "plain: the readable update, by autograd; auto: the fast one if there is one"
    )
    precision: Literal["float32", "bfloat16"] = option("float32", "bfloat16 is mixed precision")
    checkpoint_every: int = option(50_000, "environment steps between checkpoints", ge=1)
    tensorboard: bool = option(True, "mirror train.csv and evals.csv to TensorBoard")
    wandb: str | None = option(None, "mirror to this Weights & Biases project")
    video_episodes: int = option(0, "videos to record of the final policy", ge=0)

    def __post_init__(self) -> None:
        check(self)
        if not self.out.strip() or "\0" in self.out:
            raise ConfigError(f"out: expected a folder, got {shown(self.out)}")


@dataclass(frozen=True)
class Config:
    """All settings of one run: enough to run it again."""

    run: RunConfig = field(default_factory=RunConfig)
    network: NetworkConfig = field(default_factory=NetworkConfig)
    agent: AgentConfig = field(default_factory=AgentConfig)
    replay: ReplayConfig = field(default_factory=ReplayConfig)
    lifecycle: LifecycleConfig = field(default_factory=LifecycleConfig)
    runtime: RuntimeConfig = field(default_factory=RuntimeConfig)

    def __post_init__(self) -> None:
        for name, cls in GROUPS.items():
            if not isinstance(getattr(self, name), cls):
                raise ConfigError(f"{name}: expected a {cls.__name__}")
        batch, run = self.agent.batch_size, self.run
        if batch > self.replay.capacity:
            raise ConfigError(
                f"batch_size: {batch} is larger than the buffer (capacity {self.replay.capacity})"
            )
        if run.warmup_steps < batch:
            raise ConfigError(
                f"warmup_steps: {run.warmup_steps} collects less than one batch_size ({batch})"
            )
        if run.steps <= run.warmup_steps:
            raise ConfigError(
                f"steps: {run.steps} ends within the random warm-up; raise steps, or lower "
                f"warmup_steps ({run.warmup_steps})"
            )

    @classmethod
    def from_flat(cls, settings: Mapping[str, Any]) -> Config:
        """Build a config from settings by bare name; the rest keep their defaults."""
        grouped: dict[str, dict[str, Any]] = {group: {} for group in GROUPS}
        for name, value in settings.items():
            if name not in group_of():
                raise unknown("setting", name, group_of())
            grouped[group_of()[name]][name] = value
        return cls(**{group: GROUPS[group](**values) for group, values in grouped.items()})

    def flat(self) -> dict[str, Any]:
        """Every setting by its bare name."""
        return {name: getattr(getattr(self, group), name) for name, group in group_of().items()}

    def replace(self, **changes: Any) -> Config:
        """A copy with settings changed by their bare names: `config.replace(width=64, tau=0.0)`."""
        return self.from_flat(self.flat() | changes)


GROUPS: dict[str, type] = {
    "run": RunConfig,
    "network": NetworkConfig,
    "agent": AgentConfig,
    "replay": ReplayConfig,
    "lifecycle": LifecycleConfig,
    "runtime": RuntimeConfig,
}


@functools.cache
def group_of() -> dict[str, str]:
    """Group of every setting. Bare names are unique, so a flag needs no prefix."""
    return {item.name: group for group, cls in GROUPS.items() for item in dataclasses.fields(cls)}
