"""The GPUs of this machine that a local sweep may use, and which of them each run sees."""

from __future__ import annotations

import os
import re
from collections import Counter

from fog.errors import UserError
from fog.system.text import shown

VISIBLE = "CUDA_VISIBLE_DEVICES"
"""A process sees the GPUs that it names, numbered from 0."""
_DEVICE = re.compile(r"[0-9]+|(GPU|MIG)-[0-9A-Za-z/-]+")


def chosen(wanted: str) -> tuple[str, ...]:
    """The GPUs that `--gpus` asks for: a count of them, or a list such as 0,1.

    A list of one ends with a comma. GPUs are named as in `CUDA_VISIBLE_DEVICES`; where that is set,
    only those in it are there.

    Raises:
        UserError: it is neither, or asks for a GPU that is not there.
    """
    asked = f"--gpus {shown(wanted)}"
    names = [name.strip() for name in wanted.removesuffix(",").split(",")]
    if not all(_DEVICE.fullmatch(name) for name in names):
        raise UserError(f"{asked}: give a count such as 2, or a list of GPUs such as 0,1")
    if repeated := [name for name, times in Counter(names).items() if times > 1]:
        raise UserError(
            f"{asked}: names GPU {repeated[0]} twice; --jobs puts several runs on each GPU"
        )
    there = visible()
    if not there:
        raise UserError(f"{asked}: no CUDA device here; leave it out")
    if "," not in wanted and wanted.strip().isdecimal():
        if not 1 <= int(wanted) <= len(there):
            raise UserError(f"{asked}: there are {len(there)} GPUs here ({', '.join(there)})")
        return there[: int(wanted)]
    if absent := [name for name in names if name not in there]:
        raise UserError(f"{asked}: no GPU {absent[0]} here, only {', '.join(there)}")
    return tuple(names)


def visible() -> tuple[str, ...]:
    """Names of the GPUs that this process may use."""
    # Only now, because it takes seconds to import.
    import torch

    count = torch.cuda.device_count()
    named = os.environ.get(VISIBLE)
    if named is None:
        return tuple(map(str, range(count)))
    return tuple(name.strip() for name in named.split(","))[:count]
