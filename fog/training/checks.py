"""What can refuse a run before anything of it is written or said."""

from __future__ import annotations

from gymnasium.spaces import flatdim

from fog import envs
from fog.records import loggers
from fog.records.specs import spec_of
from fog.settings.config import Config
from fog.training import video
from fog.training.device import compiles, device_of


def check(config: Config) -> None:
    """Check that a run can start on this machine.

    Raises:
        UserError: a device, a package, a task or OpenGL is missing, or settings do not fit.
    """
    compiles(config, device_of(config))
    loggers.check(config)
    env = envs.make(config.run.known_task(), config.run.seed)
    spec_of(config.flat(), flatdim(env.observation_space), flatdim(env.action_space))
    env.close()
    if config.runtime.video_episodes:
        video.check(config)
