"""Shared by all tests: one thread each, because tests run in parallel, and no deadlines."""

from __future__ import annotations

import os

import hypothesis

os.environ.setdefault("OMP_NUM_THREADS", "1")

# A busy machine is no failure.
hypothesis.settings.register_profile("no deadline", deadline=None)
hypothesis.settings.load_profile("no deadline")
