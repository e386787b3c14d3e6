from __future__ import annotations

from pathlib import Path

import imageio.v3
import pytest

import fog
from fog.envs import gl_backends
from tests.training import tiny

BACKENDS = gl_backends()


@pytest.mark.skipif(
    "works" not in BACKENDS.values(), reason=f"no OpenGL backend works here: {BACKENDS}"
)
def test_the_final_policy_is_filmed(tmp_path: Path) -> None:
    run = fog.train(tiny(tmp_path, task="gym:InvertedPendulum-v4", video_episodes=2))
    films = sorted((run.directory / "videos").iterdir())
    assert [film.name for film in films] == ["episode-0.mp4", "episode-1.mp4"]
    frames = imageio.v3.imread(films[0])
    assert frames.ndim == 4 and len(frames) > 1
    assert frames.std() > 0
