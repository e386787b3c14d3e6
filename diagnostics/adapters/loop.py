"""Probes in a training loop of plain torch, such as CleanRL's scripts.

from diagnostics.adapters.loop import attach
probes = attach("runs/Hopper-v4/cleanrl-sac/seed0", critics=[qf1, qf2], policy=actor, ...)
...
probes.step(updates)    # once per step of the environments, after the updates
...
probes.end()
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from diagnostics.adapters.actor_critic import ActionBox, Network, actor_critic
from diagnostics.adapters.modules import Targets
from diagnostics.adapters.observer import Observer
from diagnostics.adapters.sb3_buffer import BufferMemory
from fog.errors import UserError
from fog.events import Episode, Facts, Probe


class LoopProbes:
    """What `attach` returns."""

    def __init__(self, observer: Observer, memory: BufferMemory) -> None:
        self.observer = observer
        self._memory = memory

    def step(self, updates: int) -> None:
        """Call it once per step of the environments, after that step's updates.

        Args:
            updates: updates of the critics so far.
        """
        for event in self._memory.arrived():
            self.observer.added(event)
        self.observer.advance(self._memory.added, updates, self._memory.drawn())

    def evaluated(self, episodes: list[Episode]) -> None:
        """Evaluation episodes were played, for `validation`, `overestimation` and evals.csv."""
        self.observer.evaluated(episodes)

    def end(self) -> None:
        """Training is over."""
        self.observer.end()
        self._memory.release()


def attach(
    directory: str | Path,
    *,
    critics: Sequence[nn.Module],
    policy: Network,
    replay: Any,
    steps: int,
    batch_size: int,
    discount: float = 0.99,
    temperature: float | Callable[[], float] = 0.0,
    target_critics: Sequence[nn.Module] | None = None,
    target_policy: Network | None = None,
    targets: Targets | None = None,
    target_noise: float = 0.0,
    target_noise_clip: float = 0.5,
    critic_lr: float | Callable[[], float] = 3e-4,
    joined: bool = False,
    init: Callable[[nn.Module], object] | None = None,
    action_space: Any = None,
    window_steps: int | None = None,
    seed: int | None = None,
    probes: Sequence[str | Probe] = ("all",),
) -> LoopProbes:
    """Attach probes to the networks and the replay buffer of a training loop.

    Args:
        directory: the run directory, best named `<task>/<variant>/seed<k>`.
        critics: see `actor_critic`, as are all networks and settings that are not named here.
        policy: of SAC: mean and log std; of TD3: the action of the environment.
        replay: a buffer in Stable-Baselines3's layout, as CleanRL's; before anything is drawn.
        steps: how many transitions the run is going to make, over all environments.
        batch_size: transitions per update.
        discount: gamma.
        temperature: alpha now, as a number or a function.
        target_critics: Q' of the targets.
        target_policy: TD3's target actor.
        targets: regression targets of one's own.
        target_noise: of TD3's smoothing.
        target_noise_clip: of TD3's smoothing.
        critic_lr: the critics' learning rate.
        joined: whether critics take one tensor [obs, action].
        init: initial values of a critic, if `reset_parameters` is not how it is initialised.
        action_space: the environment's Box of one action, for the bounds; None takes the buffer's.
        window_steps: width of an insertion window in transitions; None is a tenth of the run.
        seed: of the run, and of the probes' own random streams; None takes it from a directory
            named `seed<k>`, or 0.
        probes: names as in `fog train --probes`, or probes of one's own.

    Raises:
        UserError: the buffer cannot be read, a named probe lacks something, or the directory holds
            a run already.
    """
    action_space = getattr(replay, "action_space", None) if action_space is None else action_space
    low, high = getattr(action_space, "low", None), getattr(action_space, "high", None)
    if low is None or high is None or np.ndim(low) != 1:
        raise UserError("action_space must be the Box of one action: pass single_action_space")
    box = ActionBox(low, high)
    agent = actor_critic(
        critics,
        policy,
        len(low),
        target_critics=target_critics,
        target_policy=target_policy,
        targets=targets,
        discount=discount,
        temperature=temperature,
        target_noise=target_noise,
        target_noise_clip=target_noise_clip,
        actions=box,
        joined=joined,
        critic_lr=critic_lr,
        init=init,
    )
    memory = BufferMemory(replay, actions=box.stretched)
    facts = Facts(
        seed=_named_seed(Path(directory)) if seed is None else seed,
        steps=steps,
        window_steps=window_steps or max(1, steps // 10),
        batch_size=batch_size,
        discount=discount,
        capacity=memory.capacity,
        sampler="uniform",
    )
    observer = Observer(agent, memory, facts, directory, probes, library="plain torch")
    try:
        observer.start()
    except UserError:
        memory.release()
        raise
    return LoopProbes(observer, memory)


def _named_seed(directory: Path) -> int:
    found = re.fullmatch(r"seed(\d{1,15})", directory.name)
    return int(found[1]) if found else 0
