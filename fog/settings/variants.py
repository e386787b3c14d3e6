"""Named variants as data, and the one way from (task, variant, scale) to a config.

A variant is a set of config overrides, never a code path. `resolve` applies, in this order: the
defaults, the task's own settings, the variant, the scale, then what the user set by hand, which
means exactly what it says and is not scaled.
"""

from __future__ import annotations

from typing import Any

from fog.settings import tasks
from fog.settings.config import AgentConfig, Config, RunConfig
from fog.settings.opponents import OPPONENTS
from fog.settings.options import unknown
from fog.settings.scaling import scaled
from fog.settings.variant import Variant as Variant
from fog.settings.variant import of_family

_SAC: dict[str, Any] = {
    "backbone": "sac",
    "width": 256,
    "stem_layers": 2,
    "initial_depth": 0,
    "maximal_depth": 0,
    "expansion_updates": (),
    "activation": "relu",
    "actor_layer_norm": True,
    "weight_decay": 0.0,
    "log_std_map": "smooth",
    "log_std_min": -10.0,
    "sampler": "uniform",
}
_BALANCED = {**_SAC, "sampler": "decay", "epsilon": 1e-4, "tau": 0.1}
_GROWING: dict[str, Any] = {"maximal_depth": 2, "expansion_updates": (50_000, 200_000)}
_STANDARD: dict[str, Any] = {
    **_SAC,
    "critic_layer_norm": False,
    "actor_layer_norm": False,
    "replay_ratio": 1.0,
}

# Agents for a known dose of primacy bias (`priming_updates`): SAC with and without LayerNorm at
# replay ratio 2, each alone and with one cure at a time.
_PATIENTS: dict[str, tuple[str, dict[str, Any]]] = {
    "plain-sac": ("SAC without LayerNorm at replay ratio 2", {**_STANDARD, "replay_ratio": 2.0}),
    "norm-sac": ("SAC with LayerNorm at replay ratio 2", {**_SAC, "replay_ratio": 2.0}),
}
_CURES: dict[str, tuple[str, bool, dict[str, Any]]] = {
    "": ("", False, {}),
    "-reset": (", resets", True, {}),
    "-early-reset": (", one early reset", True, {"reset_steps": (100_000,)}),
    "-decay": (", ER decay", False, {"sampler": "decay"}),
    "-reset-decay": (", resets and ER decay", True, {"sampler": "decay"}),
    "-grow": (", growing critics", False, _GROWING),
}


def _fixed(depth: int) -> dict[str, Any]:
    """Critics of so many blocks that do not grow."""
    return {"expansion_updates": (), "initial_depth": depth, "maximal_depth": depth}


_BUFFERS = (50_000, 100_000, 250_000, 500_000)

_ALL = (
    *of_family(
        "motivating example",
        ("sac", "SAC, uniform replay, no resets", False, _SAC),
        ("sac-reset", "SAC with the reset list", True, _SAC),
        ("per-sac", "SAC with resets and prioritised replay", True, {**_SAC, "sampler": "per"}),
        ("balanced-sac", "SAC with resets and ER decay", True, _BALANCED),
        (
            "expanded-sac",
            "SAC with resets, ER decay and growing critics (3 to 7 dense layers)",
            True,
            {**_BALANCED, **_GROWING},
        ),
    ),
    *of_family(
        "FoG and its ablations",
        ("fog", "FoG: OBAC, ER decay, critics growing from depth 2 to 4", True, {}),
        ("fog-uniform", "FoG without forgetting", True, {"sampler": "uniform"}),
        ("fog-per", "FoG with prioritised replay", True, {"sampler": "per"}),
        ("fog-cuer", "FoG with corrected uniform replay", True, {"sampler": "cuer"}),
        ("fog-fixed2", "FoG without growing, depth 2", True, _fixed(2)),
        ("fog-fixed4", "FoG without growing, depth 4", True, _fixed(4)),
        (
            "obac-scaled",
            "OBAC scaled up: no forgetting, no growing",
            True,
            {**_fixed(2), "sampler": "uniform"},
        ),
    ),
    *of_family(
        "universality",
        ("fog-sac", "FoG on SAC: without the offline critics", True, {"backbone": "sac"}),
        ("sac-utd1", "standard SAC at replay ratio 1: MLP 256-256, no LayerNorm", False, _STANDARD),
        (
            "sac-utd1-decay",
            "standard SAC at replay ratio 1 with ER decay",
            False,
            {**_STANDARD, "sampler": "decay"},
        ),
    ),
    *of_family(
        "rebuttal",
        *(
            (
                f"sac-utd1-{size // 1000}k",
                f"standard SAC at replay ratio 1 with a buffer of {size // 1000}k transitions",
                False,
                {**_STANDARD, "capacity": size},
            )
            for size in _BUFFERS
        ),
        ("fog-utd2", "FoG without resets at replay ratio 2", False, {"replay_ratio": 2.0}),
        (
            "fog-sac-utd2",
            "FoG on SAC at replay ratio 2",
            True,
            {"backbone": "sac", "replay_ratio": 2.0},
        ),
        (
            "fog-ne",
            "FoG set against NE: SAC, an MLP that grows two blocks, replay ratio 2, no resets",
            False,
            {
                "backbone": "sac",
                "replay_ratio": 2.0,
                "stem_layers": 2,
                "initial_depth": 0,
                "maximal_depth": 2,
            },
        ),
    ),
    *OPPONENTS,
    *of_family(
        "primacy bias by dose",
        *(
            (f"{name}{cure}", f"{told}{how}", resets, {**settings, **changes})
            for name, (told, settings) in _PATIENTS.items()
            for cure, (how, resets, changes) in _CURES.items()
        ),
    ),
)
VARIANTS: dict[str, Variant] = {variant.name: variant for variant in _ALL}


def get(name: str) -> Variant:
    """The variant of that name; the error suggests the nearest one."""
    if name not in VARIANTS:
        raise unknown("variant", name, VARIANTS)
    return VARIANTS[name]


def resolve(task: str, variant: str = "fog", scale: float = 1.0, **overrides: Any) -> Config:
    """The full config of a named experiment.

    Args:
        task: a task name or escape, see `fog.settings.tasks`.
        variant: a name of `VARIANTS`.
        scale: 1 is the paper; 0.1 is the same experiment in a tenth of the steps.
        **overrides: settings by bare name, in real units: they are not scaled.

    Raises:
        ConfigError: an unknown name, a wrong type or an impossible combination.
    """
    # Their types first: from a file they can be anything.
    RunConfig(task=task, variant=variant, scale=scale)
    known_task, known_variant = tasks.get(task), get(variant)
    paper = Config().flat() | {
        "task": known_task.name,
        "variant": variant,
        "steps": known_task.steps,
        "pessimism": known_task.pessimism,
        "reset_steps": known_task.reset_steps if known_variant.resets else (),
        **known_variant.settings,
        **known_variant.suites.get(known_task.suite, {}),
    }
    for name in FRAMES:
        paper[name] //= paper["action_repeat"]
    if known_variant.horizon_discount:
        repeat = overrides.get("action_repeat", paper["action_repeat"])
        paper["discount"] = horizon_discount(known_task.episode_length, repeat)
    batch_size = overrides.get("batch_size", paper["batch_size"])
    AgentConfig(batch_size=batch_size)
    return Config.from_flat(scaled(paper, scale, batch_size) | overrides)


FRAMES = ("steps", "eval_every", "window_steps", "log_every", "checkpoint_every")
"""Settings that a variant with an action repeat of its own divides by it: as many simulator steps
as the other agents have."""


def horizon_discount(episode_length: int | None, action_repeat: int) -> float:
    """SimBa's (and TD-MPC2's) discount: a fifth of an episode ahead, within [0.95, 0.995]."""
    fifth = (episode_length or 1_000) / max(1, action_repeat) / 5.0
    return min(max((fifth - 1.0) / fifth, 0.95), 0.995)


def differences(variant: Variant) -> dict[str, Any]:
    """What the variant changes against FoG, for listings."""
    changed: dict[str, Any] = {} if variant.resets else {"reset_steps": ()}  # or its own
    fog = Config().flat()
    return changed | {key: at for key, at in variant.settings.items() if fog[key] != at}
