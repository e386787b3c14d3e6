"""Shared by all tests: one thread each, because tests run in parallel."""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
