"""Signs of primacy bias in a checkpoint: networks and stored transitions, without a training loop.

    from diagnostics.adapters.checkpoint import record_checkpoint
    record_checkpoint("runs/Ant-v5/theirs/seed0", "buffer.npz", critics=[q1, q2], policy=actor,
                      target_critics=[t1, t2], temperature=0.1)

`diagnostics.adapters.transitions` says what the file holds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import nn

from diagnostics.adapters.actor_critic import ActionBox, Network, actor_critic
from diagnostics.adapters.modules import ObservedModules, Targets
from diagnostics.adapters.observer import Observer
from diagnostics.adapters.transitions import StoredTransitions, TransitionSource
from fog.errors import UserError
from fog.events import Episode, Facts, Probe

_ONE_MOMENT = "a checkpoint is one moment: it needs two"
_NO_BIRTH = "the initial weights are not known"


def record_checkpoint(
    directory: str | Path,
    transitions: TransitionSource,
    *,
    critics: Sequence[Network],
    policy: Network | None = None,
    target_critics: Sequence[Network] | None = None,
    target_policy: Network | None = None,
    targets: Targets | None = None,
    discount: float = 0.99,
    temperature: float | Callable[[], float] = 0.0,
    target_noise: float = 0.0,
    target_noise_clip: float = 0.5,
    actions: ActionBox | None = None,
    joined: bool = False,
    critic_lr: float = 3e-4,
    init: Callable[[nn.Module], object] | None = None,
    env_step: int | None = None,
    updates: int = 1,
    batch_size: int = 256,
    window_steps: int | None = None,
    episodes: Sequence[Episode] = (),
    seed: int = 0,
    probes: Sequence[str | Probe] = ("all",),
    task: str | None = None,
    variant: str | None = None,
) -> Path:
    """Measure everything that needs no training loop, and write it as a run directory.

    Args:
        directory: the run directory, best named `<task>/<variant>/seed<k>`.
        transitions: file or arrays of stored transitions with their ages.
        critics: see `actor_critic`, as are all networks and settings that are not named here.
            Functions that are no torch modules can be evaluated, but not looked into.
        policy: actions, or mean and log std before squashing.
        target_critics: Q' of the targets.
        target_policy: TD3's target actor.
        targets: regression targets of one's own.
        discount: gamma.
        temperature: alpha.
        target_noise: of TD3's smoothing.
        target_noise_clip: of TD3's smoothing.
        actions: bounds of stored actions.
        joined: whether critics take one tensor [obs, action].
        critic_lr: learning rate of the fits of `warmstart`.
        init: initial values of a critic.
        env_step: transitions ever added to the replay; None if the file holds them all.
        updates: updates made so far, for the record.
        batch_size: transitions per update, for the record.
        window_steps: width of an insertion window; None is a tenth of what is stored.
        episodes: evaluation episodes of this policy, actions in [-1, 1], for `validation` and
            `overestimation`.
        seed: of the run, and of the probes' own random streams.
        probes: names as in `fog train --probes`, or probes of one's own.
        task: the environment's name; None takes it from the directory.
        variant: the agent's name; None takes it from the directory.

    Returns:
        The run directory.

    Raises:
        UserError: the transitions or the networks cannot be used; the message says why.
    """
    if updates < 1:
        raise UserError(f"updates is {updates}: a checkpoint has made at least one")
    device = _device(critics)
    box = actions or ActionBox()
    memory = StoredTransitions(transitions, env_step, device, box.stretched)
    agent = actor_critic(
        critics,
        policy,
        memory.act_dim,
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
    facts = Facts(
        seed=seed,
        steps=memory.added,
        window_steps=window_steps or max(1, memory.size // 10),
        batch_size=batch_size,
        discount=discount,
        capacity=memory.size,
        sampler="unknown",
    )
    observer = Observer(
        agent, memory, facts, directory, probes, task=task, variant=variant, library="checkpoint"
    )
    observer.check()
    observer.leave_out("churn", _ONE_MOMENT)
    observer.unmeasured["layer_norms.birth_distance"] = _NO_BIRTH
    _forget_birth(observer, agent)
    observer.start()
    observer.advance(memory.added, updates)
    if episodes:
        observer.evaluated(list(episodes))
    observer.end()
    return Path(directory)


def _device(critics: Sequence[Network]) -> torch.device:
    modules = [critic for critic in critics if isinstance(critic, nn.Module)]
    first = next((p for module in modules for p in module.parameters()), None)
    return torch.device("cpu") if first is None else first.device


def _forget_birth(observer: Observer, agent: ObservedModules) -> None:
    """A distance to initial values that nobody knows is NaN, not 0."""
    norms = observer.probe("norms")
    if norms is None:
        return
    births: dict[str, torch.Tensor] = {}
    for network in agent.networks:
        try:
            parameters = agent.parameters(network)
        except UserError:
            return
        births |= {f"{network}/{name}": tensor for name, tensor in parameters.items()}
    unknown = {f"birth/{key}": np.full(at.shape, np.nan, np.float32) for key, at in births.items()}
    norms.load_state({"next": 0, "born": dict.fromkeys(births, 0), **unknown})
