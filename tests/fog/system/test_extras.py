from __future__ import annotations

import tomllib
from pathlib import Path

from fog.system.extras import install

ROOT = Path(__file__).resolve().parents[3]


def test_nothing_is_installed_by_a_name_that_is_on_no_index() -> None:
    """Anyone could put a package of that name there."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    files = [
        path
        for folder, kind in (
            ("docs", "md"),
            ("fog", "py"),
            ("diagnostics", "py"),
            ("examples", "py"),
        )
        for path in (ROOT / folder).rglob(f"*.{kind}")
    ]
    assert len(files) > 100
    for path in (ROOT / "README.md", *files):
        assert "fog-diagnostics[" not in path.read_text(encoding="utf-8"), path
    for extra in ("ray", "slurm", "sb3", "wandb"):
        assert extra in extras["optional-dependencies"]
        assert f"-e '.[{extra}]'" in install(extra)
