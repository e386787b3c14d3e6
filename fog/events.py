"""The probe protocol: what a training run tells its observers, and what they may look at.

A probe is a class with a `name` that overrides the hooks it needs. It is found through the entry
point group `fog.probes`, and is called by the trainer, or by an adapter for another library's
agent. It may look at everything in the `View` and change nothing: no gradient left behind, no
number drawn from a stream that is not its own. A hook that is not overridden is never called.

Nothing here depends on the trainer, so whoever can implement `Subject` and `Memory` for an agent
can attach every probe to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fog.probing.cost import Outline as Outline
from fog.probing.cost import ProbeCost as ProbeCost

if TYPE_CHECKING:
    import torch
    from torch import Tensor

Phase = Literal["before", "after"]
ChangeKind = Literal["reset", "expansion"]


@dataclass(frozen=True)
class EnvStep:
    """One transition has been added to the replay, under `id`."""

    id: int
    reward: float
    terminated: bool
    truncated: bool


@dataclass(frozen=True)
class Update:
    """One or several gradient updates have been made.

    `ids` are the transitions drawn, one row for each update; `metrics` are means over the rows.
    """

    ids: NDArray[np.int64]
    metrics: Mapping[str, float]


@dataclass(frozen=True)
class Change:
    """The networks are about to be, or have just been, reset or expanded."""

    kind: ChangeKind
    phase: Phase


@dataclass(frozen=True)
class Episode:
    """One evaluation episode, whole: transitions that are never trained on.

    `observations` has one row more than `actions`: the last is the final observation.
    """

    observations: NDArray[np.float32]
    actions: NDArray[np.float32]
    rewards: NDArray[np.float32]
    terminated: bool


@dataclass(frozen=True)
class Facts:
    """What a probe must know about a run before it starts. Steps are environment steps."""

    seed: int
    steps: int
    """How long the run is going to be."""
    window_steps: int
    """Width of an insertion window: transition i belongs to window i // window_steps."""
    batch_size: int
    discount: float
    capacity: int
    """Transitions that the replay keeps."""
    sampler: str
    """`uniform`, `decay`, or any other name, for which no expectation is known."""
    epsilon: float = 0.0
    """Decay rate of the sampler `decay`."""
    tau: float = 1.0
    """Minimal weight of the sampler `decay`."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Every setting of the run by name, for probes that know the trainer they run in."""


class Transitions(Protocol):
    """A batch of transitions with leading shape (B,)."""

    @property
    def obs(self) -> Tensor:
        """Observations, (B, obs_dim)."""

    @property
    def action(self) -> Tensor:
        """Actions as the critic sees them, (B, act_dim)."""

    @property
    def reward(self) -> Tensor:
        """Rewards, (B,)."""

    @property
    def bootstrap(self) -> Tensor:
        """0 iff the episode terminated here, else 1, (B,)."""

    @property
    def next_obs(self) -> Tensor:
        """Observations after the action, (B, obs_dim)."""


class TransitionBatch(NamedTuple):
    """A batch made by a probe or an adapter."""

    obs: Tensor
    action: Tensor
    reward: Tensor
    bootstrap: Tensor
    next_obs: Tensor


class Loss(NamedTuple):
    """Training loss of single transitions and the target they are regressed on, (B,) each."""

    loss: Tensor
    target: Tensor


LossFunction: TypeAlias = "Callable[[Transitions, Tensor], Mapping[str, Loss]]"


class Hidden(NamedTuple):
    """One hidden layer on a batch, (members, B, width) each.

    `output` is h = f(z), what the layer hands on. `gradient` is d loss_b / d z_b at the input z of
    its activation f, after LayerNorm where there is one; loss_b is what transition b adds to the
    network's own training loss before averaging. A layer without an activation has h = z.
    """

    output: Tensor
    gradient: Tensor


class Subject(Protocol):
    """An agent under observation. Every method reads the networks as they are now.

    Nothing here draws random numbers of its own, writes to the agent or leaves gradients behind;
    except from `evaluate`, `loss` and `critic_loss`, results are detached. Noise is standard
    normal, (B, act_dim), and the caller's.
    """

    @property
    def device(self) -> torch.device:
        """Where batches and noise must be."""

    @property
    def act_dim(self) -> int:
        """Length of an action."""

    @property
    def critics(self) -> tuple[str, ...]:
        """Q functions, the acting one first: ("online",) or ("online", "offline")."""

    @property
    def networks(self) -> tuple[str, ...]:
        """All trained networks with hidden layers: the critics, "actor", perhaps "value"."""

    def losses(self, batch: Transitions, noise: Tensor) -> Mapping[str, Loss]:
        """The training loss by network, unweighted: each critic, and "value" where there is V."""

    def bulk_losses(self, total: int) -> tuple[int, LossFunction]:
        """How to get the losses of `total` transitions fast: rows at a time, and the function."""

    def q_values(self, critic: str, obs: Tensor, action: Tensor) -> Tensor:
        """Q of every member, (members, B)."""

    def features(self, network: str, obs: Tensor, action: Tensor) -> Tensor:
        """What the network's last dense layer sees, (members, B, width)."""

    def action(self, obs: Tensor) -> Tensor:
        """The deterministic action, (B, act_dim)."""

    def policy(self, obs: Tensor) -> tuple[Tensor, Tensor] | None:
        """Mean and log std of the Gaussian before squashing, (B, act_dim) each; None without."""

    def log_prob(self, obs: Tensor, action: Tensor) -> Tensor:
        """Log pi(a | s) of given actions, (B,); NaN if the policy is deterministic."""

    def entropy_bonus(self, obs: Tensor, noise: Tensor) -> Tensor:
        """-alpha log pi(a | s) of a sampled action, (B,); zeros without entropy regularisation."""

    def hidden(self, network: str, batch: Transitions, noise: Tensor) -> Mapping[str, Hidden]:
        """Every hidden dense layer in order of depth, with the gradient its neurons receive."""

    def parameters(self, network: str) -> Mapping[str, Tensor]:
        """The network's parameters, live: to be read or cloned."""

    def gradients(self, network: str, batch: Transitions, noise: Tensor) -> Mapping[str, Tensor]:
        """Gradient of the mean training loss with respect to `parameters(network)`."""

    def evaluate(
        self, critic: str, params: Mapping[str, Tensor], obs: Tensor, action: Tensor
    ) -> Tensor:
        """Q of every member (members, B) if the critic had these parameters; differentiable."""

    def loss(
        self, critic: str, params: Mapping[str, Tensor], batch: Transitions, noise: Tensor
    ) -> Tensor:
        """Training loss (B,) if the critic had these parameters; twice differentiable.

        Targets stay as they are.
        """

    def updated(self, batch: Transitions, noise: Tensor) -> Subject | None:
        """A copy of the agent after one more update on the batch; None if it cannot be had.

        Noise is (2, B, act_dim). The agent itself, its optimisers and counters stay as they are.
        """

    def critic_loss(self, critic: str, values: Tensor, target: Tensor) -> Tensor:
        """Training loss per transition (B,) of values (members, B) and a target; differentiable."""

    def fresh(self, critic: str, rng: np.random.Generator) -> Mapping[str, Tensor]:
        """New initial values for `parameters(critic)`, drawn from `rng` as a newborn's would be."""

    def critic_lr(self) -> float:
        """Learning rate of the critics now."""


class Memory(Protocol):
    """A replay under observation. Transitions are numbered from 0 in the order of arrival."""

    @property
    def size(self) -> int:
        """Transitions stored now: `added - size` to `added - 1`."""

    @property
    def added(self) -> int:
        """Transitions ever added."""

    @property
    def counts(self) -> NDArray[np.int32]:
        """Draws of every transition ever added."""

    def take(self, ids: NDArray[np.int64]) -> Transitions:
        """Stored transitions; does not count as drawing them."""

    def chunks(self, size: int) -> Iterator[tuple[NDArray[np.int64], Transitions]]:
        """All stored transitions, oldest first, at most `size` at a time."""


class Table(Protocol):
    """Where a probe records: columns of equal length, stamped with the environment step."""

    def write(self, columns: Mapping[str, Any]) -> None:
        """Append rows."""


class View(Protocol):
    """What a probe may look at."""

    @property
    def facts(self) -> Facts:
        """What is known of the run beforehand."""

    @property
    def env_step(self) -> int:
        """Environment steps so far."""

    @property
    def updates(self) -> int:
        """Gradient updates so far, over all resets."""

    @property
    def subject(self) -> Subject:
        """Networks and losses, for reading."""

    @property
    def replay(self) -> Memory:
        """Stored transitions and draw counts, for reading."""

    @property
    def rng(self) -> np.random.Generator:
        """The probe's own random stream, kept in checkpoints."""

    def table(self, name: str) -> Table:
        """The probe's table of that name, made on first use."""


class Probe:
    """Base of every probe: each hook does nothing, and costs nothing unless overridden.

    Keyword arguments of the constructor are the probe's options: `--probes name:option=value`.
    """

    name: str

    def cost(self, run: Outline) -> ProbeCost:
        """What the probe, with its options, will take in such a run.

        Estimates ask for it. One that does not override it counts as nothing and is named there.
        """
        return ProbeCost()

    def on_start(self, view: View) -> None:
        """Training is about to start or to resume; a ValueError says what the probe lacks."""

    def on_env_step(self, view: View, event: EnvStep) -> None:
        """A transition was added."""

    def on_update(self, view: View, event: Update) -> None:
        """Updates were made."""

    def on_change(self, view: View, event: Change) -> None:
        """Networks are about to change, or have changed: called twice for each change."""

    def on_evaluation(self, view: View, episodes: list[Episode]) -> None:
        """An evaluation ended."""

    def on_window(self, view: View) -> None:
        """A window of `facts.window_steps` ended; a reset on this step comes afterwards."""

    def on_end(self, view: View) -> None:
        """Training is over."""

    def state(self) -> dict[str, Any]:
        """What the probe must remember across a resume: plain data and numpy arrays."""
        return {}

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore what `state` returned."""
