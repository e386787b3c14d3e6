"""The code in the documentation runs."""

from __future__ import annotations

import re
from pathlib import Path

import gymnasium
import pytest

from fog.settings.variants import VARIANTS

DOCS = Path(__file__).resolve().parent.parent / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_extending(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (DOCS / "extending.md").read_text()
    blocks = BLOCK.findall(text)
    assert len(blocks) == 7
    monkeypatch.chdir(tmp_path)
    scope: dict[str, object] = {}
    try:
        for block in blocks:
            exec(compile(block, "docs/extending.md", "exec"), scope)  # the page is ours
        _probe_writes_its_table(scope, tmp_path)
    finally:
        gymnasium.registry.pop("Reach-v0", None)
        VARIANTS.pop("fog-slow-decay", None)


def _probe_writes_its_table(scope: dict[str, object], path: Path) -> None:
    """The page's probe is announced by a package; here it is handed over directly."""
    from tests.diagnostics.probes.stage import build

    stage = build(path / "probe", scope["MeanReward"](last=10))  # type: ignore[operator]
    stage.probes.window()
    wanted = stage.everything().reward[-10:].mean().item()
    assert stage.read("mean_reward")["reward"].iloc[0] == pytest.approx(wanted)
