"""Holm's correction, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from diagnostics.metrics.holm import holm


def test_holm_by_hand() -> None:
    """The smallest times 4, the next times 3, and never below the one before."""
    found = holm(np.array([0.04, 0.01, 0.03, 0.005]))
    assert found == pytest.approx([0.06, 0.03, 0.06, 0.02])
