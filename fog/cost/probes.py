"""What the probes of a run cost. Each says it of itself: see `fog.events.Probe.cost`.

A probe that says nothing counts as nothing and is named in the estimate.
"""

from __future__ import annotations

import functools

from fog.cost.flops import loss_flops, policy_flops, total_flops, value_flops, weights
from fog.cost.work import Work
from fog.events import Outline, Probe, ProbeCost
from fog.probing import registry
from fog.records.sizes import NetworkSpec
from fog.settings.config import Config

START_SECONDS = 1.2
"""What loading the probes adds to the start of a run."""
MEMORY_BYTES = 250_000_000
"""What probes add to its memory: scipy, Arrow, and batches several times larger than an update's;
measured for all of them at widths 64 and 256 alike."""


def attached(config: Config) -> list[str]:
    """Names of the probes of a run, without their options."""
    return [spec.partition(":")[0] for spec in registry.chosen(config.run.probes)]


def unpriced(config: Config) -> list[str]:
    """Names of the probes of a run that do not say what they cost."""
    return [probe.name for probe in _loaded(config.run.probes) if type(probe).cost is Probe.cost]


def probe_costs(
    config: Config, work: Work, spec: NetworkSpec, episode_length: int
) -> list[ProbeCost]:
    """What each probe of a run takes over the whole run."""
    run = outline(config, work, spec, episode_length)
    return [probe.cost(run) for probe in _loaded(config.run.probes)]


def probe_state_bytes(config: Config, work: Work, spec: NetworkSpec) -> int:
    """What the probes of a run keep in memory and in every checkpoint."""
    # No probe keeps anything of evaluations, so the length of their episodes does not matter.
    return sum(cost.state_bytes for cost in probe_costs(config, work, spec, 1))


def outline(config: Config, work: Work, spec: NetworkSpec, episode_length: int) -> Outline:
    """What probes may know of a run before it starts."""
    usual = max(work.updates, key=lambda depth: work.updates[depth])
    trees = (spec.critic(work.deepest), spec.value(work.deepest), spec.actor())
    fitted = 3 if spec.offline else 1
    # All but the head of each network; V has one member, and SAC none of it.
    layers = [len(weights(tree)) - 1 for tree in trees]
    neurons = spec.width * (spec.ensemble * layers[0] + max(0, layers[1]) + layers[2])
    critics = max(1, spec.ensemble // 2)
    return Outline(
        steps=work.steps,
        warmup_steps=work.warmup_steps,
        window_steps=config.run.window_steps,
        windows=work.windows,
        changes=work.changes,
        evaluations=work.evaluations,
        evaluated=config.run.eval_episodes * episode_length,
        capacity=config.replay.capacity,
        batch_size=config.agent.batch_size,
        obs_dim=spec.obs_dim,
        act_dim=spec.act_dim,
        width=spec.width,
        critics=critics,
        fitted=fitted,
        neurons=neurons,
        parameters=spec.parameters(work.deepest)["trainable"],
        tensors=critics * len(trees[0]) + len(trees[1]) + len(trees[2]),
        loss_flops=loss_flops(spec, usual),
        policy_flops=policy_flops(spec),
        value_flops=value_flops(spec, usual),
        update_flops=total_flops(spec, usual, 1),
    )


@functools.cache
def _loaded(probes: tuple[str, ...]) -> list[Probe]:
    return registry.load(probes)
