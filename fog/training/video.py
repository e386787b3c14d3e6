"""Films of the trained policy. The only part of training that needs OpenGL."""

from __future__ import annotations

from pathlib import Path

import gymnasium
import numpy as np

from fog import envs
from fog.agent import Agent
from fog.settings.config import Config

DEFAULT_FPS = 30


def check(config: Config) -> None:
    """Fail now, not after days of training, if this machine cannot render the task."""
    _make(config).close()


def film(agent: Agent, config: Config, directory: Path) -> list[Path]:
    """Play the deterministic policy and write one MP4 for each of `video_episodes` episodes."""
    env = _make(config)
    directory.mkdir(parents=True, exist_ok=True)
    paths = []
    for k in range(config.runtime.video_episodes):
        path = directory / f"episode-{k}.mp4"
        _film_episode(env, agent, k, path)
        paths.append(path)
    env.close()
    return paths


def _make(config: Config) -> gymnasium.Env:
    run = config.run
    return envs.make(run.known_task(), run.seed, stream="video", render_mode="rgb_array")


def _film_episode(env: gymnasium.Env, agent: Agent, k: int, path: Path) -> None:
    import imageio.v3

    obs, _ = env.reset(options={"episode": k})
    frames = [_even(env.render())]
    over = False
    while not over:
        obs, _, terminated, truncated, _ = env.step(agent.act(obs, deterministic=True))
        frames.append(_even(env.render()))
        over = terminated or truncated
    fps = env.metadata.get("render_fps", DEFAULT_FPS)
    imageio.v3.imwrite(path, np.stack(frames), fps=fps, macro_block_size=1)


def _even(frame: object) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    """Video codecs take even sizes only."""
    image = np.asarray(frame, np.uint8)
    return image[: image.shape[0] // 2 * 2, : image.shape[1] // 2 * 2]
