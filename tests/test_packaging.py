"""pyproject.toml, constraints.txt and environment.yml describe one and the same environment."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CONSTRAINTS = {
    canonicalize_name(name): Version(version)
    for name, version in re.findall(
        r"^([\w.-]+)==(\S+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE
    )
}
ENVIRONMENT = yaml.safe_load((ROOT / "environment.yml").read_text())
# Installed on demand only, so they are not part of the tested set.
ON_DEMAND = {"wandb", "humanoid"}
REQUIREMENTS = [
    Requirement(text)
    for text in [
        *PROJECT["dependencies"],
        *(
            text
            for extra, texts in PROJECT["optional-dependencies"].items()
            if extra not in ON_DEMAND
            for text in texts
        ),
    ]
]


@pytest.mark.parametrize("requirement", REQUIREMENTS, ids=lambda requirement: requirement.name)
def test_every_requirement_is_pinned_to_a_version_it_allows(requirement: Requirement) -> None:
    pinned = CONSTRAINTS.get(canonicalize_name(requirement.name))
    assert pinned is not None, "not in constraints.txt"
    assert pinned in requirement.specifier


def test_the_versions_found_by_trial_are_the_pinned_ones() -> None:
    found = {
        "torch": "2.13.0",
        "mujoco": "3.3.0",
        "dm-control": "1.0.28",
        "metaworld": "3.1.1",
        "gymnasium": "1.4.0",
    }
    assert {name: str(CONSTRAINTS[name]) for name in found} == found


def test_the_packages_the_users_named_are_dependencies() -> None:
    named = (
        "torch numpy pandas matplotlib seaborn scikit-learn gymnasium mujoco dm-control "
        "metaworld jupyterlab papermill"
    )
    assert set(named.split()) <= {canonicalize_name(item.name) for item in REQUIREMENTS}


def test_the_conda_environment_is_the_same_install() -> None:
    *conda, pip = ENVIRONMENT["dependencies"]
    assert conda == ["python=3.11", "pip"]
    assert pip == {"pip": ["-c constraints.txt", "-e .[dev]"]}
    assert Version("3.11") in Requirement(f"python{PROJECT['requires-python']}").specifier


def test_extras_for_what_not_everyone_needs() -> None:
    extras = {"humanoid", "ray", "slurm", "sb3", "wandb", "docs", "dev"}
    assert extras <= set(PROJECT["optional-dependencies"])


def test_the_newest_set_pins_only_what_cannot_move() -> None:
    text = (ROOT / "constraints-newest.txt").read_text()
    pins = {
        canonicalize_name(name): Version(version)
        for name, version in re.findall(r"^([\w.-]+)==(\S+)$", text, re.MULTILINE)
    }
    assert pins == {name: CONSTRAINTS[name] for name in pins}
    assert not {"numpy", "pandas", "gymnasium"} & pins.keys()
    assert {"torch", "mujoco", "dm-control", "metaworld"} == pins.keys()


@pytest.mark.parametrize("recipe", ["Dockerfile", "apptainer.def"])
def test_containers_install_the_tested_versions(recipe: str) -> None:
    text = (ROOT / recipe).read_text()
    installs = [line for line in text.splitlines() if "pip install" in line]
    assert installs and all("-c constraints.txt" in line for line in installs)
    assert "python:3.11-slim" in text
    # The version of torch is read from the constraints, and both of its builds can be chosen.
    assert "torch==2" not in text and "s/^torch==//p" in text
    assert "cpu)" in text and "cuda)" in text and "must be cpu or cuda" in text


def test_the_lock_of_uv_has_the_pinned_versions() -> None:
    locked = tomllib.loads((ROOT / "uv.lock").read_text())
    assert locked["requires-python"] == ">=3.11, <3.13"
    versions = {
        canonicalize_name(package["name"]): Version(package["version"])
        for package in locked["package"]
        if "version" in package
    }
    assert {canonicalize_name(item.name) for item in REQUIREMENTS} <= versions.keys()
    differing = {
        name: (versions[name], pin)
        for name, pin in CONSTRAINTS.items()
        if name in versions and versions[name] != pin
    }
    assert differing == {}
