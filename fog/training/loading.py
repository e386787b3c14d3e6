"""A trained agent from its run directory, for notebooks and other libraries."""

from __future__ import annotations

import warnings
from pathlib import Path

from fog.agent import Agent, build_agent
from fog.errors import UserError
from fog.records import checkpoint
from fog.records.run_directory import RunDirectory


def load_agent(path: str | Path) -> Agent:
    """The agent of a run from its newest checkpoint, on the CPU.

        action = fog.load_agent("runs/cartpole-swingup/fog/seed0").act(obs)

    Warns if that checkpoint is damaged and the one before it is loaded.

    Raises:
        UserError: the directory holds no run, no checkpoint yet, or only damaged ones.
    """
    directory = RunDirectory(Path(path))
    if not directory.config_path.exists():
        raise UserError(f"{path} is not a run directory: it has no config.yaml")
    refused: list[str] = []
    home = checkpoint.newest_valid(directory.checkpoint_path, refused.append)
    if home is None:
        raise UserError(f"{path} has no checkpoint yet: let it train, then load it")
    for line in refused:
        warnings.warn(f"{line}; checkpoint {home.name} is loaded instead", stacklevel=2)
    manifest = directory.manifest()
    agent = build_agent(directory.config(), manifest["obs_dim"], manifest["act_dim"], "cpu", False)
    counters = checkpoint.load_json(home / checkpoint.STATE)["agent"]
    agent.load_state_dict(checkpoint.load_tensors(home / checkpoint.AGENT), counters)
    return agent
