"""SAC at replay ratio 1 beside the published runs of SAC."""

from __future__ import annotations

from pathlib import Path

import pytest

from diagnostics.peers.load import load_peers
from diagnostics.studies import universality
from diagnostics.studies.page import MissingDataError, Page
from tests.diagnostics.peers import madeup
from tests.diagnostics.recorded import TASK, copy


def _page(home: Path) -> Page:
    for variant in universality.LOW_RATIO:
        copy(home, variant, like="sac", probes=False)
    return Page.open(str(home), str(home), variants=universality.LOW_RATIO)


def test_both_variants_stand_beside_the_public_sac_of_their_tasks(tmp_path: Path) -> None:
    seeds = {0: {0: 10.0, 50_000: 100.0}, 1: {0: 30.0, 50_000: 200.0}}
    folder = madeup.tidy(tmp_path / "peers", sac={TASK: seeds, "Ant-v4": seeds}, xqc={TASK: seeds})
    figure, table = universality.beside_public(_page(tmp_path / "runs"), peers=load_peers(folder))
    assert set(table["task"]) == {TASK}
    public = table[table["series"] == "sac"].set_index("env_step")
    assert list(public["mean"]) == [20.0, 150.0] and set(public["seeds"]) == {2}
    own = set(table["series"]) - {"sac"}
    assert len(own) == 2 and all("ours" in name for name in own)
    lines = {line.get_color() for line in figure.axes[0].lines}
    assert len(lines) == 3


def test_without_published_sac_of_the_task_it_says_so(tmp_path: Path) -> None:
    page = _page(tmp_path / "runs")
    with pytest.raises(MissingDataError, match="fog import"):
        universality.beside_public(page, peers=None)
    elsewhere = madeup.tidy(tmp_path / "peers", sac={"Ant-v4": {0: {0: 1.0}}})
    with pytest.raises(MissingDataError, match="nothing to set side by side"):
        universality.beside_public(page, peers=load_peers(elsewhere))
