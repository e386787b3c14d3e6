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
    extras = {"humanoid", "ray", "slurm", "sb3", "wandb", "dev"}
    assert extras <= set(PROJECT["optional-dependencies"])
