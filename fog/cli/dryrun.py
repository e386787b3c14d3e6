"""`fog train --dry-run`: the whole experiment on one screen before anything starts."""

from __future__ import annotations

from gymnasium.spaces import flatdim

from fog import envs
from fog.cli.sweepreport import roughly, size
from fog.cli.table import render
from fog.cost import estimate
from fog.records import run_directory
from fog.records.sizes import NetworkSpec
from fog.records.specs import spec_of
from fog.settings import config_file
from fog.settings.config import Config
from fog.training.announcement import skipped
from fog.training.device import compiles, device_of
from fog.training.schedule import UpdateSchedule, timeline


def describe(config: Config) -> str:
    """Settings, timeline, parameter counts and cost of a run, as text."""
    device = device_of(config)
    env = envs.make(config.run.known_task(), config.run.seed)
    obs_dim, act_dim = flatdim(env.observation_space), flatdim(env.action_space)
    env.close()
    return "\n\n".join(
        [
            f"run directory: {run_directory.path_of(config)}",
            config_file.to_yaml(config).rstrip(),
            _lifecycle(config),
            _size(config, obs_dim, act_dim),
            _cost(config),
            f"device: {device}, compiled: {'yes' if compiles(config, device) else 'no'}",
        ]
    )


def _lifecycle(config: Config) -> str:
    plan = timeline(config)
    updates = UpdateSchedule.from_config(config)
    lines = [f"lifecycle ({updates.total(config.run.steps)} updates in all):"]
    lines += [
        f"  step {event.env_step:>8}  {event.kind:<9}  {event.detail}" for event in plan.events
    ]
    lines += [f"  {line}" for line in skipped(plan.unreached)]
    return "\n".join(lines)


def _size(config: Config, obs_dim: int, act_dim: int) -> str:
    spec = spec_of(config.flat(), obs_dim, act_dim)
    rows = []
    for depth in range(spec.initial_depth, spec.maximal_depth + 1):
        counts, rate = spec.parameters(depth), spec.learning_rate(config.agent.critic_lr, depth)
        rows.append([str(depth), str(spec.dense_layers(depth)), f"{rate:.5g}"])
        rows[-1] += [f"{counts['total']:,}", f"{counts['trainable']:,}"]
    table = render(
        ["depth", "dense layers", "critic lr", "parameters", "trainable"],
        rows,
        right=frozenset(range(5)),
    )
    transition = 4 * (obs_dim + act_dim + 3)
    megabytes = transition * config.replay.capacity / 1e6
    return (
        f"observation {obs_dim}, action {act_dim}; replay of {config.replay.capacity} transitions "
        f"takes about {megabytes:.0f} MB\n"
        f"parameters at depth {spec.initial_depth}: {_by_network(spec)}\n"
        "parameters count every network, targets included; dense layers of a critic count its "
        f"head; depth counts blocks{' and injections' if spec.injects else ''}\n{table}"
    )


def _by_network(spec: NetworkSpec) -> str:
    counts = spec.parameters(spec.initial_depth)
    named = {name: at for name, at in counts.items() if name not in ("trainable", "total")}
    return ", ".join(f"{name.replace('_', ' ')} {at:,}" for name, at in named.items())


def _cost(config: Config) -> str:
    """What is known without measuring: `fog sweep --dry-run` measures."""
    found = estimate([config], calibrate=False)
    memory, disk = size(found.peak_memory_bytes), size(found.disk_bytes)
    line = f"cost: about {roughly(found.seconds_total)} of one core, {memory} of memory, {disk} "
    return "\n".join([f"{line}on disk", *(f"  {note}" for note in found.notes)])
