"""Which files of each repository hold each method's curves, and how to recognise a checkout."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from diagnostics.errors import AnalysisError
from diagnostics.peers import formats, tidy
from diagnostics.peers.formats import Found


@dataclass(frozen=True)
class Feed:
    """One file or folder of a repository.

    Attributes:
        file: below the checkout.
        method: whose curves it holds.
        read: the reader of its format.
        rank: where two repositories have the same task of a method, the lower rank is kept: the
            method's own authors before others.
        part: which part of the file, for the note on where data comes from.
    """

    file: str
    method: str
    read: Callable[[Path], Found] = formats.read_long
    rank: int = 0
    part: str = ""


@dataclass(frozen=True)
class Repository:
    """A repository that publishes curves."""

    name: str
    licence: str
    feeds: tuple[Feed, ...]


_NIKISHIN = "curves/sac/max_steps_2000000_resets_{}_config.updates_per_step_{}{}"

REPOSITORIES = (
    Repository(
        "nicklashansen/tdmpc2",
        "MIT",
        (Feed("results/tdmpc2", "tdmpc2", formats.read_by_task),),
    ),
    Repository(
        "SonyResearch/simba",
        "Apache-2.0",
        (
            Feed("results/sac_simba.csv", "simba-utd2"),
            Feed("results/bro.csv", "bro-simba-repo"),
            Feed("results/td7.csv", "td7"),
            Feed("results/dreamerv3.csv", "dreamerv3"),
            Feed("results/tdmpc2.csv", "tdmpc2", rank=1),
        ),
    ),
    Repository(
        "naumix/BiggerRegularizedOptimistic",
        "MIT",
        tuple(
            Feed("trainingdata.zip", method, partial(formats.read_arrays, folder=part), part=part)
            for method, part in (("bro-utd10", "BRO"), ("bro-utd2", "BRO_fast"))
        ),
    ),
    Repository(
        "DAVIAN-Robotics/SimbaV2",
        "Apache-2.0",
        (
            Feed("results/simbaV2_utd2.csv", "simbav2-utd2"),
            Feed("results/simbaV2_utd8.csv", "simbav2-utd8"),
            Feed("results/scaling/utd/simbaV2_utd2_reset.csv", "simbav2-utd2-reset"),
            Feed("results/scaling/utd/simba_utd2.csv", "simba-utd2", rank=1),
            Feed("results/scaling/utd/simba_utd2_reset.csv", "simba-utd2-reset"),
            Feed("results/scaling/utd/simba_utd8.csv", "simba-utd8"),
            Feed("results/scaling/utd/simba_utd8_reset.csv", "simba-utd8-reset"),
            Feed("results/baseline/bro_utd2.csv", "bro-utd2", rank=1),
            Feed("results/baseline/bro_utd10.csv", "bro-utd10", rank=1),
            Feed("results/baseline/sac.csv", "sac"),
            Feed("results/baseline/crossq.csv", "crossq"),
            Feed("results/baseline/redq_utd20.csv", "redq-utd20"),
            Feed("results/baseline/droq_utd20.csv", "droq-utd20"),
        ),
    ),
    Repository("danielpalenicek/xqc", "MIT", (Feed("results/xqc.csv", "xqc"),)),
    Repository(
        "evgenii-nikishin/rl_with_resets",
        "MIT",
        tuple(
            Feed(
                _NIKISHIN.format(bool(end), ratio, "_reset_interval_200000" if end else ""),
                f"sac-nikishin-utd{ratio}{end}",
                formats.read_by_seed,
            )
            for ratio in (1, 32)
            for end in ("", "-reset")
        ),
    ),
)


def detect(checkout: Path) -> Repository | None:
    """The repository that a folder is a checkout of: the one with most of its files there.

    None if the folder holds tidy tables instead; neither is an error.
    """
    if not checkout.is_dir():
        what = "is not a folder" if checkout.exists() else "does not exist"
        raise AnalysisError(f"cannot import: {checkout} {what}")
    best = _most(checkout)
    if best is not None:
        return best
    if any(tidy.is_tidy(path) for path in tidy.tables(checkout)):
        return None
    if (checkout / "HEAD").is_file() and (checkout / "objects").is_dir():
        raise AnalysisError(f"{checkout} is a git directory without files: `git clone` it first")
    for parent in checkout.absolute().parents[:2]:
        if _most(parent) is not None:
            raise AnalysisError(f"{checkout} is part of a checkout: give --from {parent}")
    known = ", ".join(f"{at.name} ({at.feeds[0].file})" for at in REPOSITORIES)
    raise AnalysisError(f"{checkout} holds no published results in a known format: {known}")


def _most(folder: Path) -> Repository | None:
    there = {at: _share(folder, at.feeds) for at in REPOSITORIES}
    best = max(there, key=lambda at: there[at])
    return best if there[best] > 0 else None


def _share(folder: Path, feeds: Sequence[Feed]) -> float:
    return sum((folder / feed.file).exists() for feed in feeds) / len(feeds)


def commit(checkout: Path) -> str | None:
    """The commit that is checked out; None if git cannot tell."""
    ask = ["git", "-C", str(checkout), "rev-parse", "HEAD", "--show-toplevel"]
    try:
        done = subprocess.run(ask, capture_output=True, text=True, check=False, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    told = done.stdout.split("\n")
    # A folder that was only unpacked may lie within the checkout of something else.
    mine = done.returncode == 0 and Path(told[1]).resolve() == checkout.resolve()
    return told[0] if mine else None
