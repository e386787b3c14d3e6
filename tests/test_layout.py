"""Tests lie where a newcomer looks for them: those of fog/x/y.py in tests/fog/x."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("package", ["fog", "diagnostics"])
def test_folders_of_tests_are_those_of_the_code(package: str) -> None:
    tests = ROOT / "tests" / package
    folders = {path.parent.relative_to(tests) for path in tests.rglob("test_*.py")}
    assert folders
    assert all(folder.name and (ROOT / package / folder).is_dir() for folder in folders)
