"""The paper's opponents as variants, and FoG with parts of its relatives."""

from __future__ import annotations

from typing import Any

from fog.settings.variant import Variant

_OPPONENTS = "opponents"

_BRO: dict[str, Any] = {
    "backbone": "bro",
    "actor_layer_norm": True,
    "initial_depth": 2,
    "maximal_depth": 2,
    "expansion_updates": (),
    "activation": "relu",
    "pessimism": 0.0,
    "log_std_map": "smooth",
    "log_std_min": -10.0,
    "sampler": "uniform",
    "batch_size": 128,
    "warmup_steps": 2_500,
}
_SIMBA: dict[str, Any] = {
    "backbone": "simba",
    "actor_layer_norm": True,
    "initial_depth": 2,
    "maximal_depth": 2,
    "expansion_updates": (),
    "activation": "relu",
    "replay_ratio": 2.0,
    "critic_lr": 1e-4,
    "actor_lr": 1e-4,
    "temperature_lr": 1e-4,
    "weight_decay": 1e-2,
    "initial_temperature": 0.01,
    "log_std_map": "smooth",
    "log_std_min": -10.0,
    "sampler": "uniform",
}
_SIMBA_SUITES: dict[str, dict[str, Any]] = {
    "dmc": {"action_repeat": 2, "critics": 1},
    "metaworld": {"critics": 1},
    "humanoidbench": {"action_repeat": 2},
}
"""One critic where episodes only end by their time limit."""
_NE: dict[str, Any] = {
    "backbone": "ne",
    "width": 256,
    "initial_depth": 0,
    "maximal_depth": 0,
    "expansion_updates": (),
    "activation": "relu",
    "weight_decay": 0.0,
    "replay_ratio": 1.0,
    "warmup_steps": 25_000,
    "sampler": "uniform",
}
_DEEP = {"initial_depth": 10, "maximal_depth": 10}
_BRO_RESETS = (15_000, 50_000, 250_000, 500_000, 750_000, 1_000_000, 1_500_000, 2_000_000)
"""BRO resets before the updates of the step after each of these, which is after those of these."""

OPPONENTS = (
    Variant(
        "bro",
        _OPPONENTS,
        "BRO: quantile critics, optimistic actor, replay ratio 10, its own reset list",
        False,
        {**_BRO, "reset_steps": _BRO_RESETS},
    ),
    Variant(
        "bro-fast",
        _OPPONENTS,
        "BRO at replay ratio 2, which resets once",
        False,
        {**_BRO, "replay_ratio": 2.0, "reset_steps": _BRO_RESETS[:1]},
    ),
    Variant(
        "bro-deep",
        _OPPONENTS,
        "BRO with critics of 10 blocks at replay ratio 2, no resets",
        False,
        {**_BRO, **_DEEP, "replay_ratio": 2.0, "reset_steps": ()},
    ),
    Variant(
        "simba",
        _OPPONENTS,
        "SimBa: normalised observations, LayerNorm before each block, replay ratio 2",
        False,
        _SIMBA,
        _SIMBA_SUITES,
        horizon_discount=True,
    ),
    Variant(
        "simba-deep",
        _OPPONENTS,
        "SimBa with critics of 10 blocks",
        False,
        {**_SIMBA, **_DEEP},
        _SIMBA_SUITES,
        horizon_discount=True,
    ),
    Variant(
        "ne",
        _OPPONENTS,
        "Neuroplastic Expansion: TD3 with sparse networks that grow, replay ratio 1",
        False,
        _NE,
    ),
    Variant(
        "ne-large",
        _OPPONENTS,
        "Neuroplastic Expansion with four hidden layers of 1024, replay ratio 2",
        False,
        {**_NE, "width": 1024, "hidden_layers": 4, "replay_ratio": 2.0},
    ),
    Variant(
        "fog-bro",
        _OPPONENTS,
        "FoG on BRO: ER decay, critics growing from depth 2 to 4, BRO's reset list",
        False,
        {
            **_BRO,
            "sampler": "decay",
            "maximal_depth": 4,
            "expansion_updates": (50_000, 200_000),
            "reset_steps": _BRO_RESETS,
        },
    ),
    Variant(
        "fog-swd",
        _OPPONENTS,
        "FoG with sample weight decay: a weight that falls linearly with age",
        True,
        {"sampler": "swd"},
    ),
    Variant(
        "fog-injection",
        _OPPONENTS,
        "FoG with plasticity injections in place of expansions",
        True,
        {"growth": "injection"},
    ),
)
