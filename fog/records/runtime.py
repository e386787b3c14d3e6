"""Settings that say where and how a run works, but not what it computes (beyond rounding)."""

from __future__ import annotations

RUNTIME = (
    "out",
    "device",
    "threads",
    "compile",
    "backend",
    "checkpoint_every",
    "tensorboard",
    "wandb",
    "video_episodes",
    "storage",
)
"""A resumed run may change them, and runs that differ in them alone may be averaged."""
