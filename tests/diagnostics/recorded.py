"""The recorded fixture runs, and copies of them that tests may damage."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pyarrow.parquet as pq

from fog.records import schema

FIXTURE = Path(__file__).parents[1] / "fixtures" / "runs"
TASK = "cartpole-swingup"
VARIANTS = ("sac", "sac-reset", "fog")


def copy(
    out: Path,
    variant: str = "fog",
    seed: int = 0,
    *,
    like: str | None = None,
    probes: bool = True,
    **settings: object,
) -> Path:
    """A copy of a recorded run below `out`, with settings of its config changed.

    `like` is the variant that was recorded, if it is another one.
    """
    source = FIXTURE / TASK / (like or variant) / "seed0"
    named = {"task": TASK, "variant": variant, "seed": seed, **settings}
    target = out / str(named["task"]) / str(named["variant"]) / f"seed{named['seed']}"
    shutil.copytree(source, target, ignore=None if probes else shutil.ignore_patterns("probes"))
    config = (target / "config.yaml").read_text()
    for name, value in named.items():
        config, changed = re.subn(rf"(?m)^  {name}: .*$", f"  {name}: {value}", config)
        assert changed == 1, name
    (target / "config.yaml").write_text(config)
    return target


def mark(table: Path, version: str) -> None:
    """Let a copied probe table, or one part of it, say that it has that schema version."""
    for part in sorted(table.glob("*.parquet")) if table.is_dir() else [table]:
        rows = pq.read_table(part)
        pq.write_table(rows.replace_schema_metadata({schema.METADATA_KEY: version}), part)
