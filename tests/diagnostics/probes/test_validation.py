"""The validation loss against the training loss on evaluation transitions."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from diagnostics.probes.validation import Validation
from tests.diagnostics.probes.stage import build, episodes, normals


def test_validation_is_the_loss_on_evaluation_transitions(tmp_path):
    stage = build(tmp_path, Validation())
    made = episodes()
    stage.probes.evaluation(made)
    table = stage.read("validation").set_index("critic")
    noise = normals(stage.rng("validation"), 19)
    rows, k = [], 0
    for episode in made:
        for t in range(len(episode.rewards)):
            last = t == len(episode.rewards) - 1
            ends = 0.0 if last and episode.terminated else 1.0
            one = stage.everything()._replace(
                obs=torch.from_numpy(episode.observations[t : t + 1]),
                action=torch.from_numpy(episode.actions[t : t + 1]),
                reward=torch.from_numpy(episode.rewards[t : t + 1]),
                bootstrap=torch.tensor([ends]),
                next_obs=torch.from_numpy(episode.observations[t + 1 : t + 2]),
                weight=torch.ones(1),
            )
            found = stage.agent.networks.transition_losses(one, noise[k : k + 1])
            losses = [found[name].loss for name in ("online", "offline", "value")]
            rows.append([*losses, found["offline"].target])
            k += 1
    found = np.array([[float(part) for part in row] for row in rows])
    for column, critic in enumerate(("online", "offline", "value")):
        assert table.loc[critic, "mean"] == pytest.approx(found[:, column].mean(), rel=1e-6)
        assert table.loc[critic, "std"] == pytest.approx(found[:, column].std(), rel=1e-6)
        assert table.loc[critic, "count"] == 19
    wanted = found[:, 1].mean() / found[:, 3].var()
    assert table.loc["offline", "scaled"] == pytest.approx(wanted, rel=1e-6)
