"""What commands that read runs share."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from diagnostics.errors import AnalysisError, RunsWarning
from diagnostics.runs import Runs, load


@contextmanager
def loaded(folders: Sequence[Path]) -> Iterator[Runs]:
    """The runs below some folders, without warnings: the command tells `runs.problems` itself.

    Raises:
        AnalysisError: a folder does not exist, or none holds a run.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RunsWarning)
        runs = load(folders)
        if len(runs) == 0:
            where = ", ".join(map(str, folders))
            raise AnalysisError(f"no runs in {where}: train some with `fog train`")
        yield runs
