"""Columns of a run's CSV tables."""

from __future__ import annotations

EVALS = ("env_step", "return", "length", "success_once", "success_end", "episode")
EVENTS = ("env_step", "event", "updates", "depth", "dense_layers", "critic_lr", "detail")
TRAIN = ("env_step", "updates", "updates_per_second")
"""train.csv has more: they depend on the agent and the probes."""

CSV_COLUMNS = {"evals": EVALS, "train": TRAIN, "events": EVENTS}
"""Columns that every CSV table of a name has."""
