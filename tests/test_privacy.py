"""What is committed says nothing about the machine and the user it was made by."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from diagnostics.runs import privacy

ROOT = Path(__file__).parents[1]
HOMES = ("results", "tests/fixtures/runs", "figures")
ABSOLUTE = re.compile(r"(?<![\w./:])(?:/(?:root|home|Users|tmp|work|mnt|data|opt)/|~)")


def committed() -> list[Path]:
    """Text files that git knows; all files where there is no git."""
    listed = subprocess.run(
        ["git", "ls-files", *HOMES], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.splitlines()
    found = [ROOT / name for name in listed] or [
        path for home in HOMES for path in (ROOT / home).rglob("*")
    ]
    text = {".json", ".yaml", ".csv", ".md", ".txt"}
    return [path for path in found if path.suffix in text and path.is_file()]


def test_no_absolute_path() -> None:
    files = committed()
    assert len([path for path in files if path.name == "manifest.json"]) >= 56
    for path in files:
        assert not ABSOLUTE.search(path.read_text()), path


@pytest.mark.parametrize("home", ["results", "tests/fixtures/runs"])
def test_manifests_are_as_an_export_writes_them(home: str) -> None:
    manifests = sorted((ROOT / home).rglob("manifest.json"))
    assert manifests
    for path in manifests:
        manifest = json.loads(path.read_text())
        assert "host" not in manifest["hardware"] and manifest == privacy.clean_manifest(manifest)
        assert manifest["versions"]["torch"] and manifest["git_commit"] and manifest["started"]
        config = path.with_name("config.yaml").read_text()
        assert config == privacy.clean_config(config)
