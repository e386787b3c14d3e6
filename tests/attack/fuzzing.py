"""Command lines, configs, plans and run directories, as `tests/test_fuzz.py` makes them."""

from __future__ import annotations

import io
from contextlib import redirect_stderr, redirect_stdout

from hypothesis import HealthCheck, given, seed, settings

from tests import test_fuzz
from tests.attack.outcomes import REFUSED, SURVIVED, TRACEBACK, Tally


def fuzz(kind: str, count: int) -> Tally:
    """Try `count` inputs of a kind; an exit code of 2 is a refusal."""
    tally = Tally(f"fuzz: {kind}")
    strategy, test, *_ = test_fuzz.CASES[kind]

    def attempt(case: object) -> None:
        try:
            with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
                code = test(case)
        except Exception as error:
            detail = " ".join(f"{type(error).__name__}: {error}".split())[:200]
            tally.add(repr(case)[:200], (TRACEBACK, detail))
        else:
            tally.add("", (REFUSED if code == 2 else SURVIVED, ""))

    checks = settings(
        max_examples=count, deadline=None, database=None, suppress_health_check=list(HealthCheck)
    )
    checks(seed(2026)(given(strategy)(attempt)))()
    return tally
