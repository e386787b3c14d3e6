"""When measurements of this machine are void."""

from __future__ import annotations

from pathlib import Path

import fog
from fog.cost import calibration


def test_a_change_of_the_code_of_an_update_voids_measurements() -> None:
    root = Path(fog.__file__).parent
    found = [list(root.glob(pattern)) for pattern in calibration._CODE]
    assert all(found)
    packages = {path.relative_to(root).parts[0] for files in found for path in files}
    assert packages >= {"agent", "algorithms", "envs", "fast", "networks", "replay"}
