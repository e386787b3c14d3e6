"""Building `products.cpp` and `multiply.h` for this processor, once."""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
from pathlib import Path

import torch

from fog.errors import UserError
from fog.system.code_cache import cache_folder, distrust, seal

SOURCE = Path(__file__).with_name("products.cpp")
_STABLE_ABI = "0x020a000000000000"
"""Of torch 2.10: the library works with every torch from then on."""
_FLAGS = ("-O3", "-std=c++20", "-shared", "-fPIC", f"-DTORCH_TARGET_VERSION={_STABLE_ABI}")


class BuildError(Exception):
    """The compiler is missing or refused; the message is what it said first."""


def library(cache: Path | None = None) -> Path:
    """The shared library, built if this source, compiler and processor have none in the cache.

    The cache is by default `fog.system.code_cache.cache_folder`. A BuildError says that it cannot
    be built here, or nowhere where others cannot write.
    """
    try:
        folder = cache or cache_folder()
    except UserError as error:
        raise BuildError(str(error)) from error
    compiler = os.environ.get("CXX", "g++")
    # What `native` means here: the folder may be shared by machines of different kinds.
    target = _run([compiler, "-march=native", "-Q", "--help=target"])
    version = _run([compiler, "--version"])
    sources = (SOURCE.read_text(), SOURCE.with_name("multiply.h").read_text())
    made_of = (*sources, target, version, torch.__version__, *_FLAGS)
    key = hashlib.sha256("\0".join(made_of).encode()).hexdigest()[:16]
    path = folder / f"products-{key}.so"
    if not path.exists() or distrust(path):
        _build(compiler, path)
    return path


def _build(compiler: str, path: Path) -> None:
    home = Path(torch.__file__).parent
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Built beside its final place and then moved, because another run may be building it too.
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            made = Path(folder) / path.name
            _run(
                [
                    *(compiler, "-march=native", *_FLAGS),
                    *("-I", str(home / "include"), str(SOURCE), "-o", str(made)),
                    *("-L", str(home / "lib"), "-ltorch_cpu"),
                ]
            )
            seal(made)
            made.replace(path)
    except OSError as error:
        raise BuildError(str(error)) from error


def _run(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except FileNotFoundError as error:
        raise BuildError(f"{command[0]} not found") from error
    except subprocess.CalledProcessError as error:
        said = [line for line in error.stderr.splitlines() if "error" in line]
        raise BuildError((said or error.stderr.splitlines() or ["no message"])[0]) from error
    return done.stdout
