"""Compiled updates on disk: the next run of the same shape loads its update in seconds.

torch has caches of its own, which spare the C++ compiler; with them alone every run would still
trace and lower the update again, 10 to 20 seconds for each depth.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from fog.system.code_cache import cache_folder, distrust, seal


def compiled(function: Any, arguments: tuple[Any, ...], options: dict[str, Any], key: str) -> Any:
    """`function` compiled for arguments like these, from the cache if it is there.

    `function` must belong to this package; `key` says everything about arguments and options that
    the compiled code depends on. The result does not check its arguments, but for sizes and strides
    of tensors: call it with none that differ otherwise.
    """
    path = cache_folder() / f"update-{_digest(key)}"
    made = _load(path)
    if made is None:
        wrapped: Any = torch.compile(function, fullgraph=True, dynamic=False, options=options)
        made = wrapped.aot_compile((arguments, {}))
        with _written(path) as new:
            made.save_compiled_function(new)
    # Checking takes as long as an update of width 32.
    made.disable_guard_check()
    return made


def _load(path: Path) -> Any:
    if not path.exists():
        return None
    try:
        # Reading it can run code.
        if reason := distrust(path):
            raise PermissionError(reason)
        with path.open("rb") as file:
            return torch.compiler.load_compiled_function(file)
    except Exception as error:
        # Whatever is wrong with the file, compiling again gives a good one.
        warnings.warn(f"{path} cannot be read, compiling again: {error}", stacklevel=2)
        return None


@contextlib.contextmanager
def _written(path: Path) -> Iterator[str]:
    """A name to write to, which becomes `path` when the file is whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        new = os.path.join(folder, path.name)  # noqa: PTH118 - torch wants a string
        yield new
        seal(Path(new))
        os.replace(new, path)  # noqa: PTH105


def _digest(key: str) -> str:
    # Imported late, because it takes a second.
    import torch._inductor.config as inductor

    found = hashlib.sha256()
    home = Path(__file__).parents[1]
    # All of our code, because what an update is made of is spread over many modules.
    for source in sorted(home.rglob("*")):
        if source.suffix in (".py", ".cpp", ".h"):
            found.update(source.read_bytes())
    settings = inductor.codegen_config()
    # Loops are written for as many threads as there are, and for this kind of processor.
    machine = (str(torch.get_num_threads()), torch.backends.cpu.get_cpu_capability())
    versions = (torch.__version__, platform.python_version())
    found.update("\0".join((key, settings, *machine, *versions)).encode())
    return found.hexdigest()[:24]
